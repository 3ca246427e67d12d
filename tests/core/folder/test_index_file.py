"""The saved index: what is loaded from it is what the journal says, nothing of it may be damaged, and loading it takes no more steps for a larger store."""

from __future__ import annotations

import shutil
import sys
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.core.folder import index_file
from graphstore.core.folder.folder import differing
from graphstore.core.folder.ledger_folder import LedgerFolder
from graphstore.core.index.columns import Columns
from graphstore.core.index.index import Index
from graphstore.errors import DamageError
from tests.conftest import Clock, day
from tests.support.ledger_rows import change, rows

pytestmark = pytest.mark.in_process("looks at the saved index")


def told(store: GraphStore, clock: Clock, count: int) -> None:
    """A little of everything, over and over."""
    for number in range(count):
        clock.move(days=1)
        old, new, event = f"old-{number}", f"neu-ü{number}", f"event-{number}"
        store.add_node("fact", {"n": number}, id=old, key=f"slot-{number % 5}", scope=f"s{number}")
        store.add_node(
            "task", {"n": number}, id=f"task-{number}", valid_from="2025-01-01", valid_to="2025-03-01"
        )
        store.link(f"task-{number}", "derived_from", old, reason="it says so")
        store.link(f"task-{number}", "contradicts", old)
        store.add_node("fact", {"n": -number}, id=new)
        store.supersede(old, by=new, reason="the world moved on")
        store.record_event("error", "it broke", id=event, occurred_at="2025-02-01", fingerprint=event)
        store.record_event("error", "it broke", occurred_at="2025-02-03", fingerprint=event)
        store.revise(f"task-{number}", {"n": 0}, valid_from="2025-02-01")
        store.confirm(new, reason="seen")
        store.retract(f"task-{number}", reason="a slip")
        if number % 7 == 3:
            store.undo(store.changes()[-1].tx, reason="not that")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path, clock = tmp_path / "memory.gs", Clock("2026-01-01")
    with graphstore.open(path, clock=clock) as store:
        store._core.read_index()
        told(store, clock, 30)
    return path


def loaded(path: Path) -> Index:
    copy = index_file.read(path / "index.bin")
    assert copy is not None
    return copy.index()


def replayed(path: Path) -> Index:
    folder = LedgerFolder(path, read_only=True)
    ledger = folder.fresh_journal()
    try:
        return folder.replay(ledger)[0]
    finally:
        ledger.close()


def same(one: Columns, other: Columns) -> None:
    for name in ("taken", "rests", "based", "fell", "tainted", "retaken"):
        assert getattr(one, name) == getattr(other, name), name
    assert not differing(one, other) and not differing(other, one)


def test_what_is_loaded_is_what_the_journal_says(path: Path) -> None:
    same(loaded(path), replayed(path))


def test_what_grew_from_a_saved_index_is_what_the_journal_says(path: Path) -> None:
    clock = Clock("2026-06-01")
    with graphstore.open(path, clock=clock) as store:
        for number in range(5):
            store.supersede(f"neu-ü{number}", by=f"neu-ü{number + 1}", reason="again")
            store.record_event("error", "it broke", occurred_at="2025-02-05", fingerprint=f"event-{number}")
            store.retract(f"old-{number + 20}", reason="a slip")
        store.add_node("fact", {}, id="new", key="slot-1", scope="new")
        store.undo(store.changes()[-1].tx, reason="not that")
        same(store._core.index, replayed(path))
        assert store.verify().ok


@pytest.mark.parametrize("seed", range(8))
def test_what_a_load_leaves_out_is_what_the_journal_says(path: Path, seed: int) -> None:
    """Rows that one transaction opened and closed are not stored; their versions get no number, and others the next one."""
    chance = Random(seed)
    known = [f"neu-ü{number}" for number in range(5)] + ["a", "b", "c"]
    versions: list[dict[str, Any]] = [{"node_id": name, "content": {}} for name in known[-3:]]
    for number in range(40):
        start = day("2025-01-01") + timedelta(days=chance.randrange(30))
        stop = chance.choice((None, start + timedelta(days=chance.randrange(1, 20))))
        row = {"node_id": chance.choice(known), "content": {"n": number}, "text": str(number)}
        versions.append({**row, "valid_from": start, "valid_to": stop})
    links = [{"source": "a", "kind": kind, "target": "b"} for kind in ("supersedes", "derived_from")]
    with graphstore.open(path, clock=Clock("2026-06-01")) as store:
        index = store._core.index
        there = sum(map(bool, index.v_num))
        store.bulk_load(versions=versions, links=links)
        assert sum(map(bool, index.v_num)) < there + len(versions)
        same(index, replayed(path))
        store.retract(known[seed % 5], reason="a slip")
        store.bulk_load(versions=versions[3:9])
        same(index, replayed(path))
        assert store.verify().ok


def test_an_index_saved_again_is_the_same_file(path: Path, tmp_path: Path) -> None:
    copy = index_file.read(path / "index.bin")
    assert copy is not None
    index = copy.index()
    for name in list(index.ids)[::3]:
        index.now_of[index.ids[name]], index.out.get(index.ids[name])
    for name, one in (("again", index), ("anew", replayed(path))):
        index_file.write(tmp_path / name, one, copy.position, copy.digest, copy.seals)
        assert (path / "index.bin").read_bytes() == (tmp_path / name).read_bytes()


def test_a_transaction_that_fails_leaves_a_loaded_index_as_it_was(path: Path) -> None:
    with graphstore.open(path, clock=Clock("2026-06-01")) as store:
        before = replayed(path)
        with pytest.raises(RuntimeError), store.transaction():
            store.add_node("fact", {}, id="more")
            store.supersede("neu-ü1", by="more", reason="again")
            store.link("task-3", "contradicts", "more")
            store.retract("neu-ü2", reason="a slip")
            store.confirm("neu-ü3", reason="seen")
            raise RuntimeError
        assert not differing(store._core.index, before)


def test_a_branch_from_a_loaded_index_is_one_from_the_journal(path: Path) -> None:
    with graphstore.open(path, clock=Clock("2026-06-01")) as store:
        store.branch("trial", tx=store.changes()[40].tx).add_node("fact", {}, id="on the branch")
        store.branch("late").add_node("fact", {}, id="on the other")
        known = [store.on(name)._core.index for name in ("trial", "late")]
        (path / "index.bin").unlink()
        with graphstore.open(path, read_only=True) as other:
            for name, index in zip(("trial", "late"), known, strict=True):
                same(index, other.on(name)._core.index)


def test_damage_in_any_part_is_noticed(path: Path) -> None:
    file = path / "index.bin"
    good = file.read_bytes()
    copy = index_file.read(file)
    assert copy is not None
    base = len(good) - 4 - len(copy._data)
    places = {name: base + at for name, (at, size, _) in copy._header["blocks"].items() if size}
    assert len(places) > 90
    for name, at in {
        **places,
        "magic": 3,
        "size": 20,
        "header": 40,
        "end": len(good) - 1,
        "before": base - 1,
    }.items():
        harmed = bytearray(good)
        harmed[at] ^= 0x10
        file.write_bytes(harmed)
        assert index_file.read(file) is None, name
    for size in (0, 5, 24, 40, base, len(good) - 1):
        file.write_bytes(good[:size])
        assert index_file.read(file) is None, size


def steps(path: Path) -> int:
    """How many calls loading takes."""
    found = 0

    def count(*_: object) -> None:
        nonlocal found
        found += 1

    sys.setprofile(count)
    try:
        loaded(path)
    finally:
        sys.setprofile(None)
    return found


def test_loading_takes_as_many_steps_for_a_larger_store(path: Path, tmp_path: Path) -> None:
    larger, clock = tmp_path / "larger.gs", Clock("2026-01-01")
    with graphstore.open(larger, clock=clock) as store, store.transaction():
        for number in range(2000):
            store.add_node("fact", {"n": number}, id=f"n{number}", key=f"k{number}", valid_to="2030-01-01")
            if number:
                store.link(f"n{number}", "derived_from", f"n{number - 1}")
    with graphstore.open(larger, clock=clock) as store:
        store._core.read_index()
    assert steps(larger) <= steps(path) < 2000


def told_anew(store: GraphStore) -> bool:
    return any("index.bin" in notice for notice in store.notices)


def harm(path: Path, table: str, column: str, number: int, at: int) -> tuple[str, str]:
    """The statements that change one byte of a value, and that change it back."""
    [(good,)] = rows(path, f"SELECT {column} FROM {table} WHERE number = {number}")
    bad = bytearray(good)
    bad[at % len(bad)] ^= 0x01
    to_bad, to_good = (
        f"UPDATE {table} SET {column} = X'{value.hex()}' WHERE number = {number}" for value in (bad, good)
    )
    return to_bad, to_good


def test_a_ledger_that_the_saved_index_knows_is_not_read_again(path: Path) -> None:
    """What is in a row that is not read cannot hinder the opening."""
    to_bad, to_good = harm(path, "chain", "head", 3, 20)
    change(path, to_bad)
    with graphstore.open(path) as store:
        assert {"n": -7} == store.node("neu-ü7").content and not told_anew(store)
        assert not store.verify().ok
    change(path, to_good)
    with graphstore.open(path) as store:
        assert store.verify().ok


def test_a_byte_changed_in_any_head_is_noticed_where_it_is_read_and_by_verify(path: Path) -> None:
    [(count,)] = rows(path, "SELECT count(*) FROM chain")
    for number in range(1, count + 1, count // 7):
        to_bad, to_good = harm(path, "chain", "head", number, number * 7)
        saved = (path / "index.bin").read_bytes()
        change(path, to_bad)
        (problem,) = graphstore.verify(path).problems
        assert number == problem.line
        (path / "index.bin").unlink()
        for read_only in (False, True):
            with (
                pytest.raises(DamageError, match=f"line {number}"),
                graphstore.open(path, read_only=read_only) as store,
            ):
                store._core.read_index()
        change(path, to_good)
        (path / "index.bin").write_bytes(saved)
    with graphstore.open(path) as store:
        assert not told_anew(store) and store.verify().ok


def test_a_body_that_went_bad_by_itself_is_noticed_when_it_is_read(path: Path) -> None:
    [(number,)] = rows(path, """SELECT number FROM body WHERE CAST(data AS TEXT) LIKE '%"n":-7}%'""")
    [(data,)] = rows(path, f"SELECT data FROM body WHERE number = {number}")
    change(path, harm(path, "body", "data", number, data.index(b'"n":-7') + 5)[0])
    with graphstore.open(path) as store:
        assert {"n": -6} == store.node("neu-ü6").content
        with pytest.raises(DamageError, match="do not match their checksum"):
            store.node("neu-ü7")
        assert not store.verify().ok


def test_a_copy_of_the_folder_opens_by_its_saved_index(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy.gs", copy_function=shutil.copyfile)
    with graphstore.open(tmp_path / "copy.gs") as store:
        assert isinstance(store._core.index.r_from, memoryview) and not told_anew(store)


def test_reading_touches_little_and_copies_no_column(path: Path) -> None:
    with graphstore.open(path, clock=Clock("2026-06-01")) as store:
        index = store._core.index
        store.node("neu-ü7")
        assert isinstance(index.r_from, memoryview)
        assert (
            max(
                dict.__len__(part)
                for part in (index.names, index.now_of, index.rows_of, index.out, index.ids)
            )
            < 9
        )
        store.confirm("neu-ü7", reason="seen")
        assert not isinstance(index.r_from, memoryview)


def test_a_saved_index_may_be_replaced_while_it_is_used(path: Path) -> None:
    with graphstore.open(path, read_only=True) as store:
        (path / "index.bin").unlink()
        (path / "index.bin").write_bytes(b"something else")
        assert {"n": -7} == store.node("neu-ü7").content
        assert 30 == len([node for node in store.nodes(kind="fact") if node.id.startswith("neu")])
