"""Whatever call of the system fails beneath a public call: what is raised is an error of the package, which names the file."""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStoreError
from graphstore.interchange import formats
from graphstore.ledger import server_file
from graphstore.ledger import tokens as access_tokens
from graphstore.memory import Memory
from tests.support.embedding import Concepts

pytestmark = [pytest.mark.in_process("the disk fails beneath it"), pytest.mark.rest]

USES = {
    "add": lambda store, out: store.add_node("fact", {"k": 1}),
    "load": lambda store, out: store.bulk_load(versions=[{"node_id": "bulk", "content": {}}]),
    "tables": lambda store, out: store.query_tables("MATCH (n:Node) RETURN count(*)"),
    "query": lambda store, out: store.query("MATCH (n:Node) RETURN count(*)"),
    "rebuild": lambda store, out: store.rebuild(),
    "export": lambda store, out: store.export(out),
    "verify": lambda store, out: store.verify(),
    "changes": lambda store, out: store.changes(),
    "evict": lambda store, out: store.evict(ids=["event-1"]),
    "purge": lambda store, out: store.evict(ids=["event-2"], keep_audit=False),
    "erase": lambda store, out: store.erase("fact-a", reason="asked for"),
    "branch": lambda store, out: store.branch("draft").add_node("fact", {}),
    "merge": lambda store, out: store.merge("work"),
    "undo": lambda store, out: store.undo(store.changes()[-1], reason="wrong"),
    "vectors": lambda store, out: (
        Memory(store, Concepts()).remember("a dog barks", layer="soul", source="SOUL.md"),
        Memory(store, Concepts()).recall("cat", 1),
    ),
    "tokens": lambda store, out: access_tokens.kept(store.path),
    "server": lambda store, out: (server_file.announce(store.path, "http://x"), server_file.withdraw(store.path)),
    "arrow": lambda store, out: store.to_arrow(),
    "close": lambda store, out: store.close(),
    "graphml": lambda store, out: formats.export(store, out, format="graphml"),
    "parquet": lambda store, out: formats.export(store, out, format="parquet"),
    "neo4j": lambda store, out: formats.export(store, out, format="neo4j-csv"),
}  # fmt: skip
CALLS = (
    "open", "fsync", "fdatasync", "replace", "rename", "unlink", "write", "pwrite", "pread", "ftruncate", "truncate", "mkdir", "rmdir",
    "builtins.open",
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "memory.gs"
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        memory.remember("the car is red", layer="soul", source="SOUL.md")
        memory.recall("truck", 1)
        for number in range(10):
            store.record_event("deploy", f"event {number}", id=f"event-{number}")
        for name in ("fact-a", "fact-b"):
            store.add_node("fact", {"n": 1}, id=name)
        store.link("fact-a", "uses", "fact-b")
        store.branch("work").add_node("fact", {}, id="on-branch")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    return path


def failing(patched: pytest.MonkeyPatch, function: str, number: int) -> list[int]:
    """Make one call of a function fail, by its number, or none at 0. The list gets an entry for each call."""
    owner, name = (builtins, "open") if function == "builtins.open" else (os, function)
    real, calls = getattr(owner, name), []

    def call(*args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*args, **kwargs)

    patched.setattr(owner, name, call)
    if owner is builtins:
        patched.setattr(io, "open", call)
    return calls


def used(template: Path, below: Path, use: str, numbers: dict[str, int]) -> dict[str, int]:
    """Use a copy of the store where a call of each function fails, by its number. Return how often each is called."""
    path = below / "memory.gs"
    shutil.copytree(template, path)
    store = graphstore.open(path)
    with pytest.MonkeyPatch.context() as patched:
        calls = {function: failing(patched, function, number) for function, number in numbers.items()}
        try:
            USES[use](store, below / "out")
        except EngineError as error:
            assert str(below) in str(error), error
        except GraphStoreError:
            pass
    try:
        store.close()
    except EngineError as error:
        assert str(path) in str(error)
    with graphstore.open(path) as again:
        assert again.verify().ok
    return {function: len(made) for function, made in calls.items()}


@pytest.mark.parametrize("use", USES)
def test_a_call_that_fails_is_an_error_of_the_package(template, tmp_path, use):
    for function, count in used(template, tmp_path, use, dict.fromkeys(CALLS, 0)).items():
        for number in {*range(1, min(count, 10) + 1), count} - {0}:
            below = tmp_path / f"{function}-{number}"
            below.mkdir()
            used(template, below, use, {function: number})
            shutil.rmtree(below)
