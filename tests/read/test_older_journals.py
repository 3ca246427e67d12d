"""A journal whose lines do not say what changed a content answers by the same rules."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore.ledger.chain import GENESIS, check, encoded
from tests.conftest import Clock
from tests.support.old_release import open_old

pytestmark = pytest.mark.in_process("it writes the files of the journal itself")


def without_changes(path: Path) -> None:
    """Write the journal anew as it was before lines recorded changes of content."""
    (file,) = (path / "journal").glob("*.jsonl")
    header, *lines = file.read_bytes().splitlines()
    prev, written = GENESIS, [header + b"\n"]
    for line in lines:
        head, verbatim = check(line)
        head.pop("turns", None)
        head["prev"] = prev
        again = encoded(head, verbatim.bodies)
        prev = again.digest
        written.append(again.line())
    file.write_bytes(b"".join(written))


def test_it_is_read_from_the_contents(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "memory.gs"
    with open_old(path, clock=clock) as store:
        for id in ("changed", "retagged", "looked-at"):
            store.add_node("fact", {"n": 1}, id=id, valid_from="2026-01-01")
            store.add_node("fact", {}, id=f"on-{id}", derived_from=id, valid_from="2026-01-01")
        clock.move(days=1)
        store.revise("changed", {"n": 2})
        store.revise("retagged", {"n": 1}, tags=["new"])
        store.revise("looked-at", {"n": 2}, valid_from="2026-01-10")
        clock.move(days=1)
        store.confirm("on-looked-at", reason="still so")
        told = {node.id: node.standing for node in store.nodes()}
    without_changes(path)

    for _ in range(2):
        with graphstore.open(path, clock=clock) as store:
            assert told == {node.id: node.standing for node in store.nodes()}
            assert ["on-changed"] == [found.node.id for found in store.shaky()]
            assert store.verify().ok
