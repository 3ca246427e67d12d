"""How often things were looked up: counted without a write, told in one operation, never of the past."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, InvalidError, NotFoundError
from graphstore.memory.recall import recall
from graphstore.values.decay import Decay, weight
from tests.support.disk import no_room
from tests.support.ledger_rows import recorded, rows

pytestmark = pytest.mark.in_process("counts what waits in the store's memory")


def touches(store) -> list[str]:
    return [change.verb for change in store.changes() if change.verb == "touch"]


def weighs(view, id: str = "one") -> float:
    return {hit.node.id: hit.weight for hit in recall(view, "login", 50, decay=Decay())}[id]


def known(store, id: str = "one", view=None) -> int:
    """How often a thing was looked up, as told by a view's tx."""
    with (view or store).reading() as sight:
        return sight.follow_lookups().total(id, sight.tx)


@pytest.fixture
def login(disk_store):
    disk_store.add_node("fact", {}, id="one", text="login by token", valid_from="2025-02-01")
    disk_store.add_node("fact", {}, id="two", text="lunch at noon", valid_from="2025-02-01")
    return disk_store


def test_hits_of_recall_count_and_nothing_is_written_for_them(login):
    before = login.changes()
    for _ in range(3):
        recall(login, "login")

    assert ({"one": 3}, before) == (login._core.accesses.waiting, login.changes())
    assert 0 == known(login)


def test_point_reads_do_not_count_and_touch_does(login):
    login.node("one")
    login.inspect("one")
    assert {} == login._core.accesses.waiting

    login.touch("one")
    login.touch(["one", "two", "one"])
    assert {"one": 2, "two": 1} == login._core.accesses.waiting


def test_unknown_thing_cannot_be_touched_and_then_none_is(login):
    with pytest.raises(NotFoundError, match="Nearest: 'two'"):
        login.touch(["one", "twoo"])
    assert {} == login._core.accesses.waiting


def test_counts_are_told_in_one_operation(login):
    login.touch(["one", "two"])
    login.touch("one")

    assert 2 == login.flush_accesses()
    assert (["touch"], 2, 1) == (touches(login), known(login), known(login, "two"))
    assert 0 == login.flush_accesses()
    assert ["touch"] == touches(login)


def test_counts_add_up(login, clock):
    for _ in range(3):
        clock.move(days=1)
        login.touch("one")
        login.flush_accesses()

    assert 3 == known(login)


def test_who_only_reads_writes_no_transaction_and_the_next_commit_has_what_was_counted(login, clock):
    written = recorded(login.path)
    for _ in range(2):
        recall(login, "login")
        login.close()
        assert written == recorded(login.path)
        login = graphstore.open(login.path, clock=clock)
        assert ([], 0) == (touches(login), known(login))

    login.add_node("fact", {}, id="three")
    assert (["touch"], 2) == (touches(login), known(login))
    login.close()
    with graphstore.open(login.path, clock=clock) as again:
        assert {} == again._core.accesses.waiting
        assert again.verify().ok


def test_two_openings_keep_their_counts_together_and_the_next_has_them_once(login, clock):
    with graphstore.open(login.path, clock=clock) as other:
        other.touch(["one", "two"])
    login.touch("one")
    login.close()
    with graphstore.open(login.path, read_only=True, clock=clock) as reader:
        assert {} == reader._core.accesses.waiting

    (login.path / "accesses.json").write_bytes(b'{"two": 5}')
    with graphstore.open(login.path, clock=clock) as again:
        assert {"one": 2, "two": 6} == again._core.accesses.waiting
        assert not (login.path / "accesses.json").exists()
        assert [] == rows(login.path, "SELECT * FROM lookup")
        again.add_node("fact", {}, id="three")
        assert (2, 6) == (known(again), known(again, "two"))


def test_counts_that_wait_leave_with_what_leaves_no_trace(login, clock):
    with graphstore.open(login.path, clock=clock) as other:
        other.touch(["one", "two"])
    login.evict(ids=["two"], keep_audit=False)

    assert [("one", 1)] == rows(login.path, "SELECT * FROM lookup")


@pytest.mark.parametrize("kept", [b"", b"[1]", b"no json", b'{"one": "many", "two": -1}'])
def test_counts_that_are_none_are_passed_over(login, clock, kept):
    login.close()
    (login.path / "accesses.json").write_bytes(kept)
    with graphstore.open(login.path, clock=clock) as again:
        assert {} == again._core.accesses.waiting


def test_commit_tells_along_what_has_waited_for_a_quarter_of_an_hour(login, clock):
    recall(login, "login")
    login.add_node("fact", {}, id="three")
    clock.move(minutes=14)
    login.add_node("fact", {}, id="four")
    assert [] == touches(login)

    clock.move(minutes=2)
    transactions = login.stats()["transactions"]
    login.add_node("fact", {}, id="five")
    assert (["touch"], transactions + 1) == (touches(login), login.stats()["transactions"])
    assert login.changes()[-1].tx == login.changes()[-2].tx

    recall(login, "login")
    clock.move(minutes=1)
    login.add_node("fact", {}, id="six")
    assert ["touch"] == touches(login)


def test_transaction_that_fails_leaves_the_counts_waiting(login, clock):
    recall(login, "login")
    login.add_node("fact", {}, id="three")
    clock.move(hours=1)
    with pytest.raises(ZeroDivisionError), login.transaction():
        login.add_node("fact", {}, id="four")
        raise ZeroDivisionError

    assert {"one": 1} == login._core.accesses.waiting


def test_disk_that_refuses_leaves_the_counts_waiting(login, clock):
    recall(login, "login")
    login.add_node("fact", {}, id="three")
    clock.move(hours=1)

    with no_room():
        with pytest.raises(EngineError):
            login.add_node("fact", {}, id="four")
        with pytest.raises(EngineError):
            login.flush_accesses()
    assert {"one": 1} == login._core.accesses.waiting
    assert (1, 1) == (login.flush_accesses(), known(login))


def test_flush_inside_a_transaction_is_refused(login):
    login.touch("one")
    with login.transaction(), pytest.raises(InvalidError, match="inside transaction"):
        login.flush_accesses()
    assert {"one": 1} == login._core.accesses.waiting


def test_looked_up_thing_weighs_more_from_then_on(login, clock):
    before = login.as_of()
    clock.move(days=1)
    for _ in range(3):
        login.touch("one")
    login.flush_accesses()

    assert pytest.approx(weight(366, accesses=3)) == weighs(login)
    assert pytest.approx(weight(365)) == weighs(before)


def test_recall_as_of_the_past_is_not_changed_by_what_is_looked_up_later(login, clock):
    clock.move(days=1)
    view = login.as_of()
    first = recall(view, "login lunch", decay=Decay())
    for _ in range(4):
        clock.move(days=1)
        for _ in range(10):
            recall(login, "login")
        login.flush_accesses()

    assert recall(view, "login lunch", decay=Decay()) == first
    assert recall(login.as_of(valid=view.at.valid, tx=view.at.tx), "login lunch", decay=Decay()) == first


def test_follower_never_writes_and_sees_what_was_told(login):
    with graphstore.open(login.path, read_only=True) as follower:
        recall(follower, "login")
        with pytest.raises(InvalidError, match="read only"):
            follower.touch("one")
        with pytest.raises(InvalidError, match="read only"):
            follower.flush_accesses()
        assert 0 == known(follower)
        login.touch("one")
        login.flush_accesses()
        assert 1 == known(follower)
    assert ["touch"] == touches(login)


def test_crash_loses_only_what_was_not_told(tmp_path: Path):
    script = (
        "import os, sys, graphstore\n"
        "store = graphstore.open(sys.argv[1])\n"
        "store.add_node('fact', {}, id='one')\n"
        "store.touch('one'); store.flush_accesses(); store.touch('one')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "memory.gs"], env=environment, timeout=60)
    assert -9 == done.returncode

    with graphstore.open(tmp_path / "memory.gs") as store:
        assert (1, ["one"]) == (known(store), [node.id for node in store.nodes()])


def test_counts_are_in_a_dump_and_read_from_the_journal_alone(login, clock, tmp_path):
    login.touch(["one", "two"])
    login.flush_accesses()
    login.export(tmp_path / "dump")
    with graphstore.restore(tmp_path / "dump", tmp_path / "copy.gs", clock=clock) as copy:
        assert 1 == known(copy)
        copy.export(tmp_path / "again")

    assert (tmp_path / "dump").read_bytes() == (tmp_path / "again").read_bytes()


def test_counts_of_what_is_erased_stay_by_its_id_and_what_leaves_no_trace_takes_them_along(login, clock):
    login.touch(["one", "two"])
    login.flush_accesses()
    login.erase("one", reason="asked to")
    login.touch("two")
    login.evict(ids=["two"], keep_audit=False)
    login.close()

    told = b"".join(
        raw for (raw,) in rows(login.path, "SELECT head FROM chain UNION ALL SELECT data FROM body") if raw
    )
    assert (True, False) == (b'"one":1' in told, b'"two"' in told)
    with graphstore.open(login.path, clock=clock) as again:
        assert again.verify().ok
        assert not again.knows("two")
        again.add_node("fact", {}, id="two")
        assert 0 == known(again, "two")
        assert {"touch"} <= {row["o.verb"] for row in again.query_tables("MATCH (o:Op) RETURN o.verb").rows()}


def test_counts_in_memory_leave_no_trace_either(store):
    store.add_node("fact", {}, id="one")
    store.add_node("fact", {}, id="two")
    store.touch(["one", "two"])
    store.flush_accesses()
    store.evict(ids=["two"], keep_audit=False)

    assert store.verify().ok
    assert 1 == known(store)
