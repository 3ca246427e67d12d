"""A dump is the same bytes whoever wrote it: release 0.1 from its journal, or a ledger; restored and exported again it is itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError, GraphStore
from graphstore.ledger.old_journal import header
from tests.conftest import Clock
from tests.support.old_release import open_old

pytestmark = pytest.mark.in_process("opens stores of its own")


def fill(store: GraphStore) -> None:
    store.add_node("fact", {"says": "a secret"}, id="gone")
    store.add_node("fact", {"n": 1, "more": True}, id="stays", reason="seen")
    store.branch("idea").add_node("fact", {"n": 2}, id="new")
    with store.transaction():
        for number in range(1_500):
            store.add_node("fact", {"n": number}, id=f"n{number}")
    store.erase("gone", reason="asked for")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of release 0.1."""
    with open_old(tmp_path / "old.gs", clock=Clock("2026-01-01")) as store:
        fill(store)
        store.export(tmp_path / "dump")
    return tmp_path / "dump"


def test_a_dump_of_release_0_1_is_itself_after_it_was_restored_and_exported(dump, tmp_path):
    with graphstore.restore(dump, tmp_path / "new.gs") as store:
        assert store.verify().ok
        assert {"n": 2} == store.on("idea").node("new").content
        assert store.export(tmp_path / "again") == len(dump.read_bytes().splitlines()) - 2

    assert dump.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_dump_of_the_upgraded_store_is_the_same(dump, tmp_path):
    with graphstore.open(tmp_path / "old.gs") as store:
        store.export(tmp_path / "again")

    assert dump.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_dump_of_a_ledger_is_itself_after_it_was_restored_and_exported(tmp_path):
    with graphstore.open(tmp_path / "one.gs") as store:
        fill(store)
        store.export(tmp_path / "dump")
    with graphstore.restore(tmp_path / "dump", tmp_path / "two.gs") as store:
        assert store.verify().ok
        store.export(tmp_path / "again")

    assert (tmp_path / "dump").read_bytes() == (tmp_path / "again").read_bytes()


def test_the_dumps_before_schema_2_are_restored_with_a_notice(dump, tmp_path):
    lines = dump.read_bytes().splitlines(keepends=True)
    (tmp_path / "older").write_bytes(b"".join([header(1), *lines[1:-1]]))

    with graphstore.restore(tmp_path / "older", tmp_path / "new.gs") as store:
        assert "earlier version" in store.notices[0]
        store.export(tmp_path / "again")

    assert dump.read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("number", [2, 3, -1])
def test_a_dump_that_was_changed_leaves_nothing(dump, tmp_path, number):
    lines = dump.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"digest":"', b'"digest":"f', 1)
    dump.write_bytes(b"".join(lines))

    with pytest.raises(DamageError, match=f"line {number % len(lines) + 1}"):
        graphstore.restore(dump, tmp_path / "new.gs")

    assert {"dump", "old.gs"} == {file.name for file in tmp_path.iterdir()}
