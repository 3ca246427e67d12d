"""The rows of a branch answer what its index answers, after random histories, and its statements find their rows by key."""

from __future__ import annotations

import importlib
import inspect
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.branch_rows import NUMBERED, TRUNK, LineNumbers
from graphstore.ledger.statements import schema_statements
from graphstore.memory.recall import recall
from graphstore.remote import calls
from graphstore.store import registry
from tests.ledger import test_questions as questions
from tests.ledger.test_branch_rows import Branching
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")


@pytest.mark.parametrize("seed", seeds(1, 3, 50))
def test_another_opening_of_a_store_answers_the_same_on_its_branches(seed: int, tmp_path: Path) -> None:
    """It writes itself in some rounds."""
    history, chance = Branching(tmp_path / "memory.gs", seed), random.Random(seed)
    with closing(history.trunk) as store, graphstore.open(store.path, clock=store._clock) as other:
        for step in range(20):
            history.go_on(2)
            with suppress(GraphStoreError):
                if chance.random() < 0.1:
                    store.delete_branch(store.branches()[0].name if store.branches() else "none")
                if chance.random() < 0.05:
                    store.evict(ids=[chance.choice(questions.THINGS)], keep_audit=False)
            for name in [info.name for info in store.branches()]:
                here, there = store.on(name), other.on(name)
                with suppress(GraphStoreError):
                    if chance.random() < 0.1:
                        there.add_node("fact", {"says": "x"}, id=f"{step} of {name}")
                history.store = here
                at = history.coordinate()
                history.store = store
                assert answers(here, at) == answers(there, at), (step, name)


def answers(line: Any, at: dict[str, Any]) -> list[Any]:
    """Return what a line answers at a coordinate."""
    view = line.as_of(**at)
    found = [
        view.nodes(),
        view.events(),
        view.shaky(),
        line.changes(),
        line.snapshots(),
        line.vocabulary.kinds,
        {name: value for name, value in line.stats().items() if name != "journal_bytes"},
        line.branches(),
        line.info,
    ]
    reads = (view.inspect, view.versions, view.operations, view.what_superseded, view.causes)
    return found + [questions.outcome(read, id) for read in reads for id in questions.THINGS]


# ---------------------------------------------------------------------- without the index

OPENED_ELSEWHERE = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    exec(sys.argv[2])
"""


def elsewhere(path: Path, code: str) -> None:
    """Run statements about `store` in another process."""
    subprocess.run([sys.executable, "-c", OPENED_ELSEWHERE, str(path), code], check=True, timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a node, which a branch and a branch of that describe otherwise."""
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"says": "blue"}, id="sky", key="colour")
        side = store.branch("side")
        side.revise("sky", {"says": "red"})
        side.branch("deep").revise("sky", {"says": "black"})
        store.revise("sky", {"says": "grey"})
    return tmp_path / "memory.gs"


def test_a_branch_answers_without_any_index(path):
    with graphstore.open(path) as store:
        side, deep = store.on("side"), store.on("deep")

        assert ["grey", "red", "black"] == [line.node("sky").content["says"] for line in (store, side, deep)]
        assert ["add_node", "revise"] == [change.verb for change in deep.operations("sky")][:2]
        assert [None, "deep", "deep"] == [change.branch for change in deep.operations("sky")]
        assert 3 == len(deep.versions("sky"))
        assert "black" in deep.query("MATCH (n:Node) RETURN n.content AS c").rows()[0]["c"]


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "warnings_of": ("sky",), "changes_to": (), "compare": (), "contradiction": ("sky", "sky"), "diff": (1, 2), "knowledge_at": ("2026-01-01",), "link_history": ("sky", "part_of", "sky"), "on": (), "path": (), "paths": (), "query": ("MATCH (n) RETURN n.id",), "query_tables": ("MATCH (n) RETURN count(n)",),
    "recipe": (), "walk": ("sky",), "whole_id": ("0123456",),
}  # fmt: skip
"""Arguments of reads that do not take an id first; none: such a read is asked elsewhere."""
NEEDS_THE_INDEX = {"verify"}  # it compares the index with the chain


def test_no_read_of_a_branch_needs_an_index(path):
    reads = sorted(calls._READS | calls._WHOLE_READS - NEEDS_THE_INDEX)
    for room in calls._ROOMS.values():
        for module in room:
            vars(importlib.import_module(module))  # runs it
    functions = [each for each in registry.registered().values() if each.scope == "read"]
    assert len(reads) > 40
    assert len(functions) > 40
    with graphstore.open(path, read_only=True) as store:
        side, then = store.on("side"), store.changes()[0].tx
        for reader in (side, side.as_of(), side.as_of(tx=then)):
            for name in reads:
                read = getattr(reader, name, None) if ARGUMENTS.get(name) != () else None
                if callable(read):
                    takes_id = next(iter(inspect.signature(read).parameters), None) == "id"
                    with suppress(GraphStoreError):
                        read(*(("sky",) if takes_id else ()), *ARGUMENTS.get(name, ()))
        for each in functions:
            needed = list(inspect.signature(each.function).parameters.values())[1:]
            given = [
                "sky" for one in needed if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
            ]
            with suppress(GraphStoreError, TypeError):
                found = each.function(side, *given)
                list(found) if isinstance(found, Iterator) else None
        side.compare(store.as_of())
        side.changes_to(store.as_of())
        store.compare(store.on("deep"))
        assert [1, 1] == [
            len(recall(line, "red")) + len(recall(line, "blue")) for line in (side, store.as_of(tx=then))
        ]
        with pytest.raises(NotFoundError, match="no branch 'sid'"):
            store.on("sid")


def test_a_branch_follows_what_another_process_writes(path):
    with graphstore.open(path) as store:
        side = store.on("side")
        before = side.as_of()
        assert "red" == side.node("sky").content["says"]

        elsewhere(
            path,
            "store.on('side').revise('sky', {'says': 'pink'}); store.on('side').define_kind('fits', symmetric=True)",
        )

        assert "pink" == side.node("sky").content["says"]
        assert "red" == before.node("sky").content["says"]
        assert "fits" in side.vocabulary.kinds
        assert "fits" not in store.vocabulary.kinds
        elsewhere(path, "store.evict(ids=['sky'])")
        with pytest.raises(NotFoundError, match="evicted"):
            side.node("sky")


def test_a_branch_that_another_process_deletes_answers_no_more(path):
    with graphstore.open(path) as store:
        deep = store.on("deep")
        view = deep.as_of()

        elsewhere(
            path,
            "store.delete_branch('deep'); store.branch('deep').add_node('fact', {'says': 'new'}, id='moon')",
        )

        with pytest.raises(InvalidError, match="branch 'deep' was deleted"):
            deep.node("sky")
        assert store.on("deep").knows("moon")
        assert view is not None


def test_a_branch_is_found_in_a_chain_that_another_process_rewrites(path):
    with graphstore.open(path) as store:
        side, deep = store.on("side"), store.on("deep")
        elsewhere(path, "store.delete_branch('deep'); store.add_node('fact', {'says': 'long'}, id='text')")
        elsewhere(path, "store.branch('deep').revise('sky', {'says': 'white'})")
        assert "red" == side.node("sky").content["says"]
        last = store.on("deep")
        assert "white" == last.node("sky").content["says"]

        elsewhere(path, "store.evict(ids=['text'], keep_audit=False)")

        assert ["red", "white"] == [line.node("sky").content["says"] for line in (side, last)]
        with pytest.raises(InvalidError, match="branch 'deep' was deleted"):
            deep.node("sky")


# ---------------------------------------------------------------------- plans

COUNTS_OF_ALL = {"counts"}  # not asked of a branch
MARKS = dict.fromkeys(NUMBERED, 7)
NESTED = LineNumbers(2, LineNumbers(1, TRUNK, 50, MARKS), 60, dict.fromkeys(NUMBERED, 9))


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema_statements():
            connection.execute(statement)
        yield connection


def plan_of(connection: sqlite3.Connection, text: str, values: Any) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


@pytest.mark.parametrize("name", [*questions.ABOUT_ONE_THING, *questions.FROM_AN_INSTANT_ON])
def test_a_statement_finds_the_rows_of_a_branch_by_key(name, empty):
    statement = questions.STATEMENTS[name]
    own = {*re.findall(r"^(?:WITH(?: RECURSIVE)? )?(\w+) \([\w, ]+\) AS ", statement.text, re.MULTILINE)}

    plan = plan_of(empty, NESTED.statement(statement.text), questions.parameters(statement))

    scans = [line.split()[1] for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line]
    assert {*scans} <= own | {"CONSTANT"}, plan


@pytest.mark.parametrize("name", questions.STATEMENTS)
def test_a_statement_reads_no_more_tables_of_a_branch_as_a_whole_than_of_the_trunk(name, empty):
    statement = questions.STATEMENTS[name]

    def scanned(text: str) -> list[str]:
        plan = plan_of(empty, text, questions.parameters(statement))
        return [line for line in plan if line.startswith(("SCAN", "USE TEMP")) and "VIRTUAL" not in line]

    assert len(scanned(NESTED.statement(statement.text))) <= len(scanned(statement.text)), (
        scanned(NESTED.statement(statement.text)),
        scanned(statement.text),
    )
