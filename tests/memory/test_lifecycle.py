"""What memory lets go of: chunks whose time is over, the oldest beyond the cap, never a permanent one; killed half-way, the next tick goes on."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import graphstore
from graphstore import InvalidError, lifecycle, timeline
from graphstore.memory import Memory
from graphstore.values.layers import Layer
from tests.conftest import Clock, day
from tests.ledger.test_forgetting import files_with
from tests.support.disk import words_in_files
from tests.support.embedding import Concepts
from tests.support.ledger_rows import rows

pytestmark = pytest.mark.served

WORKER = Path(__file__).parents[1] / "support/lifecycle_worker.py"
LAYERS = ("soul", "conversation", "tool", "group", "er1", "observation")


@pytest.fixture
def memory(store):
    return Memory(store)


def standing(store) -> set[str]:
    return {node.text for node in store.nodes("chunk")}


# ---------------------------------------------------------------- time


def test_each_layer_keeps_its_time_from_when_it_was_told(store, memory, clock):
    for layer in LAYERS:
        memory.remember(layer, layer=layer, valid_from="2020-01-01")

    gone = {}
    for days in (13, 14, 29, 30, 59, 60, 10_000):
        clock.set(day("2026-02-01") + timedelta(days=days, seconds=1))
        gone[days] = lifecycle.run(store).layers
    assert {
        13: {}, 14: {"tool": 1}, 29: {}, 30: {"conversation": 1}, 59: {}, 60: {"group": 1}, 10_000: {},
    } == gone  # fmt: skip
    assert {"soul", "er1", "observation"} == standing(store)


def test_time_is_over_at_its_end_and_not_before(store, memory, clock):
    node = memory.remember("a log", layer="tool")
    end = node.tx_from + timedelta(days=14)

    assert () == lifecycle.due(store, end - timedelta(microseconds=1)).expired
    assert (node.id,) == lifecycle.due(store, end).expired


def test_describing_anew_gives_no_more_time(store, memory, clock):
    node = memory.remember("a log", layer="tool")
    clock.move(days=10)
    store.revise(node.id, {}, text="a longer log")
    memory.remember("a log", layer="tool")
    clock.move(days=5)

    assert node.id in lifecycle.run(store).expired


def test_what_goes_is_evicted_and_its_tombstone_stays(store, memory, clock):
    node = memory.remember("a log", layer="tool")
    clock.move(days=15)
    pruned = lifecycle.run(store)

    found = store.inspect(node.id).node
    assert ("evicted", {}, None) == (found.standing, found.content, found.text)
    assert "its time in memory is over" == store.changes()[-1].reason
    assert (1, 0, 0) == (len(pruned.expired), pruned.left, pruned.stats.chunks)
    again = memory.remember("a log", layer="tool")
    assert again.id != node.id and {"a log"} == standing(store)


def test_what_was_superseded_goes_as_well(store, memory, clock):
    memory.remember("one", layer="tool", key="k")
    memory.remember("two", layer="tool", key="k")
    clock.move(days=15)

    assert 2 == len(lifecycle.run(store).expired)
    assert () == lifecycle.run(store).expired


def test_a_layer_of_ones_own_has_its_own_time(store, clock):
    memory = Memory(store, layers=[Layer("notes", "notes:", timedelta(hours=1)), Layer("kept", "kept:")])
    for layer in ("notes", "kept"):
        memory.remember(layer, layer=layer)
    clock.move(days=365)

    assert {"notes": 1} == lifecycle.run(store).layers


# ---------------------------------------------------------------- the cap


def test_the_cap_takes_the_oldest_and_never_a_permanent_one(store, clock):
    memory = Memory(store, cap=5)
    for number in range(4):
        clock.move(hours=1)
        memory.remember(f"soul {number}", layer="soul")
        memory.remember(f"talk {number}", layer="conversation")

    pruned = lifecycle.run(store)

    assert (3, 5, 5) == (len(pruned.capped), pruned.left, pruned.cap)
    assert {*(f"soul {number}" for number in range(4)), "talk 3"} == standing(store)
    Memory(store, cap=2)
    assert (1, 4) == (len(lifecycle.run(store).capped), lifecycle.run(store).left)


def test_what_only_a_branch_knows_goes_too(disk_store, clock):
    """Also of a branch that was deleted: what is over is in no file."""
    for name in ("open", "deleted"):
        branch = disk_store.branch(name)
        Memory(branch).remember(f"SECRET of {name}", layer="tool")
        Memory(branch, layers=[Layer(f"l{name}", f"l{name}:", timedelta(days=1))]).remember(
            f"SECRET note of {name}", layer=f"l{name}"
        )
        Memory(branch).remember(f"for ever of {name}", layer="soul")
    disk_store.delete_branch("deleted")
    clock.move(days=15)
    assert ({"lopen": 1, "ldeleted": 1, "tool": 2}, 4) == (
        lifecycle.due(disk_store).layers,
        len(lifecycle.run(disk_store).expired),
    )

    assert [] == files_with(disk_store.path, "SECRET")
    assert ["for ever of open"] == [node.text for node in disk_store.on("open").nodes("chunk")]
    assert "nothing gone: 0 chunks, at most 50,000." == str(lifecycle.run(disk_store))


def test_events_past_the_retention_go_too_and_the_shape_of_their_trace_stays(tmp_path, clock):
    with graphstore.open(tmp_path / "m.gs", clock=clock, retention_days=30) as store:
        for span, parent in (("a", None), ("b", "a")):
            timeline.record_message(
                store, "TEXT", "SECRET", trace_id="t" * 8, span_id=span, parent_span_id=parent
            )
        before = timeline.trace(store, "t" * 8)
        assert () == lifecycle.run(store).events
        clock.move(days=31)
        due = lifecycle.due(store)
        assert {event.id for span in before.spans for event in span.events} == set(due.events)
        assert str(lifecycle.run(store)).endswith("at most 50,000. And 2 events past the retention.")

        assert [("a", None), ("b", "a")] == [
            (span.span_id, span.parent_span_id) for span in timeline.trace(store, "t" * 8).spans
        ]
        assert [] == files_with(store.path, "SECRET")
        assert () == lifecycle.run(store).events


def test_what_the_trunk_was_told_later_has_its_own_time(disk_store, clock):
    branch = disk_store.branch("x")
    Memory(branch).remember("said on both", layer="tool")
    clock.move(days=10)
    Memory(disk_store).remember("said on both", layer="tool")
    clock.move(days=10)

    assert () == lifecycle.run(disk_store).expired


def test_what_is_of_no_layer_never_goes(store, clock):
    memory = Memory(store, cap=1)
    store.add_node("chunk", {}, id="stray", text="of no layer")
    store.add_node("fact", {}, id="fact", text="no chunk", scope="tool:")
    memory.remember("a log", layer="tool")
    clock.move(days=100)
    lifecycle.run(store)

    assert ({"of no layer"}, "stands") == (standing(store), store.node("fact").standing)
    assert {None: 1} == {layer.layer: layer.chunks for layer in memory.stats().layers if layer.chunks}


# ---------------------------------------------------------------- looking first


def test_what_is_due_can_be_looked_at_with_nothing_done(store, memory, clock):
    memory.remember("a log", layer="tool")
    clock.move(days=15)
    before = store.stats()
    found = lifecycle.due(store)

    assert ({"tool": 1}, 0) == (found.layers, found.left)
    assert "1 to go (tool 1): 1 whose time is over, 0 beyond the cap of 50,000. 0 stay." == str(found)
    assert before == store.stats()
    assert found.expired == lifecycle.run(store).expired
    assert "nothing gone: 0 chunks, at most 50,000." == str(lifecycle.run(store))


def test_a_transaction_or_a_reader_is_refused(disk_store, clock):
    memory = Memory(disk_store)
    memory.remember("a log", layer="tool")
    clock.move(days=15)
    with pytest.raises(InvalidError, match="inside transaction"), disk_store.transaction():
        lifecycle.run(disk_store)
    with graphstore.open(disk_store.path, read_only=True, clock=clock) as reader:
        assert 1 == len(lifecycle.due(reader).expired)
        with pytest.raises(InvalidError, match="read only"):
            lifecycle.run(reader)


# ---------------------------------------------------------------- killed

COUNT = 40


def secret(number: int) -> str:
    return f"SECRET car number {number}."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Half of its chunks expire after two weeks, and it keeps ten."""
    path = tmp_path / "memory.gs"
    clock = Clock("2026-01-01")
    with graphstore.open(path, clock=clock) as store:
        memory = Memory(store, Concepts(), cap=10)
        for number in range(COUNT):
            clock.move(minutes=1)
            memory.remember(
                secret(number), layer="tool" if number % 2 else "conversation", source=f"{number}"
            )
        store.query_tables("MATCH (n) RETURN count(*)")
    return path


def run(path: Path, *at: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, str(WORKER), str(path), "2026-01-20", *at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdin is not None
    assert b"ready\n" == process.stdout.readline()
    process.stdin.write(b"go\n")
    process.stdin.flush()
    return process


def finish(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None and process.stdin is not None
    done = b"done" in process.stdout.read()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    return done


def is_whole(path: Path) -> None:
    """Each chunk is there as it was, or in no file; the next tick does the rest."""
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        there = {node.text for node in store.nodes("chunk")}
        assert there == words_in_files(path, [secret(number) for number in range(COUNT)])
        assert len(there) in (COUNT, COUNT // 2, 10)
        assert there == {hit.node.text for hit in memory.recall("truck", COUNT, hops=0)}
        assert () == store.verify().problems
        lifecycle.run(store, "2026-01-20")
        assert {secret(number) for number in range(COUNT - 20, COUNT, 2)} == standing(store)
        assert [(10,)] == rows(path, "SELECT count(*) FROM vector")
    assert graphstore.verify(path).ok


@pytest.mark.rest
def test_killed_at_random_moments_the_next_tick_goes_on(path, tmp_path):
    chance = random.Random(3)
    for number in range(5):
        copy = tmp_path / f"copy-{number}.gs"
        shutil.copytree(path, copy)
        process = run(copy)
        time.sleep(chance.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        finish(process)
        is_whole(copy)


@pytest.mark.rest
@pytest.mark.parametrize(
    "function",
    ("statement", "replace", "unlink", "fsync", "ftruncate", "write", "open"),
)
def test_ended_at_any_call_the_next_tick_goes_on(path, tmp_path, function):
    for number in range(1, 60):
        copy = tmp_path / f"copy-{number}.gs"
        shutil.copytree(path, copy)
        done = finish(run(copy, function, str(number)))
        is_whole(copy)
        shutil.rmtree(copy)
        if done:
            break
    else:
        pytest.fail(f"{function} is called more often than that")
