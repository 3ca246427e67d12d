"""Statements about what scopes hold: they find rows by their keys as those about the whole store do, and take a scope as it is spelled."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

import pytest

import graphstore
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.scoped_rows import ScopedRows, within
from graphstore.memory import recall
from graphstore.store.scoped_store import ScopedStore
from tests.ledger.test_questions import ABOUT_ONE_THING, FROM_AN_INSTANT_ON, STATEMENTS, empty, parameters

__all__ = ["empty"]

ROWS = ScopedRows(("team/a", "shared"), frozenset({"wears"}))
INSIDE = {"w", "back"}  # within the conditions: what is linked with a subject, what was taken back


@pytest.mark.parametrize("name", [*ABOUT_ONE_THING, *FROM_AN_INSTANT_ON])
def test_a_statement_of_scopes_finds_its_rows_by_key(name: str, empty: Any) -> None:
    empty.create_function("has_hidden_reason", 3, lambda *_: False)
    statement = STATEMENTS[name]
    text = ROWS.statement(statement.text)
    own = {*re.findall(r"^(?:WITH(?: RECURSIVE)? )?(\w+) \([\w, ]+\) AS ", statement.text, re.MULTILINE)}
    own |= {*re.findall(r"[ ,](\w+) \([\w, ]+\) AS ", text)}

    plan = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {text}", parameters(statement))]

    scans = [line.split()[1] for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line]
    assert {*scans} <= own | INSIDE, plan


@pytest.mark.parametrize(
    "scope",
    [
        "team/a",
        "team/a/",
        "team/a/x",
        "team/a0",
        "team/a-b",
        "team/ab",
        "team",
        "",
        "Team/a",
        "it's",
        "it's/x",
    ],
)
def test_a_scope_is_inside_as_a_path(scope: str) -> None:
    granted = ("team/a", "it's")
    with graphstore.open(":memory:") as store:
        store.add_node("fact", {"n": 1}, id="node", scope=scope)
        store.record_event("error", "it broke", id="event", metadata={"scope": scope})
        seen = ScopedStore(store, granted)
        expected = within(scope, granted)
        assert (expected, expected) == (bool(seen.nodes()), bool(seen.events()))


def test_words_that_only_something_outside_says_are_unknown_and_weigh_nothing() -> None:
    with graphstore.open(":memory:") as store:
        store.add_node("fact", {"statement": "the budget of the kitchen"}, id="a1", scope="team/a")
        alone = recall.recall(ScopedStore(store, ("team/a",)).as_of(), "budget zebra kitch")
        for n in range(3):
            store.add_node("fact", {"statement": f"zebra budget kitch {n}"}, id=f"b{n}", scope="team/b")
        found = recall.recall(ScopedStore(store, ("team/a",)).as_of(), "budget zebra kitch")
    assert ["a1"] == [hit.node.id for hit in found.hits]
    assert [hit.score for hit in alone.hits] == [hit.score for hit in found.hits]
    assert str(alone) == str(found)


def test_an_occurrence_that_names_another_scope_is_left_out() -> None:
    with graphstore.open(":memory:") as store:
        for day in (2, 1, 3, 4):
            said = {"scope": "team/a", "day": day}
            store.record_event("error", "it broke", fingerprint="f", metadata=said, occurred_at=f"2026-01-0{day}")  # fmt: skip
        [event] = store.events()
        journal = store._core.journal
        assert isinstance(journal, Ledger)
        with journal.database.transaction() as connection:  # as an older release merged events of two scopes
            for number, data in connection.execute("SELECT number, data FROM body").fetchall():
                if b'"own"' in data and (b'"day":1' in data or b'"day":4' in data):
                    data = data.replace(b"team/a", b"team/b")
                    connection.execute("UPDATE body SET data = ?, checksum = ? WHERE number = ?", (data, crc32(data), number))  # fmt: skip
        scoped = ScopedStore(store, ("team/a",))
        seen = scoped.event(event.id)
        latest = [each.last_seen for each in scoped.events()]
    assert 4 == event.count
    assert ({"scope": "team/a", "day": 3}, 2) == (seen.metadata, seen.count)
    assert ("2026-01-02", "2026-01-03") == (str(seen.first_seen.date()), str(seen.last_seen.date()))
    assert [seen.last_seen] == latest
