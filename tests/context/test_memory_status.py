"""How the memory of a store is, in one answer, and the chunks of a layer by page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import GraphStore, InvalidError
from graphstore.context import memory_status
from graphstore.context.feeders import Sync
from graphstore.context.observer import Observer
from graphstore.context.scheduler import Ticking
from graphstore.memory.memory import Memory
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("makes ticks of its own")


def test_layers_queues_and_what_waits(store: GraphStore, clock: Clock) -> None:
    Memory(store).remember("the build failed", layer="tool", source="tool:ci")
    observer = Observer(store, lambda messages: "- [LOW] one\n- [LOW] two", threshold=2)
    for text in ("one", "two", "three"):
        clock.move(minutes=1)
        observer.enqueue(text, user="ana", thread="t")

    found = memory_status.status(store)
    assert 1 == next(each.chunks for each in found.layers if each.layer == "tool")
    [queue] = found.queues
    assert ("ana", "t", 1, 2) == (queue.user, queue.thread, queue.waiting, queue.observed)
    assert queue.compressed_at is not None
    assert 2 == queue.threshold
    assert (2, None, ()) == (found.observations, found.embedding.embedder, found.ticks)


def test_ticks_say_when_and_what_failed_and_are_done_now(store: GraphStore, clock: Clock) -> None:
    wrong = ["no route"]

    def work() -> None:
        if wrong:
            raise OSError(wrong[0])

    ticks = Ticking(store, [("sync notes", work, timedelta(minutes=5))])
    with pytest.raises(OSError, match="no route"):
        ticks.do("sync notes")
    [tick] = memory_status.status(store).ticks
    assert (1, "OSError: no route", None) == (tick.failures, tick.error, tick.ended)
    assert ("sync notes: OSError: no route",) == memory_status.status(store).errors
    wrong.clear()
    memory_status.do_now(store, "sync notes")
    [tick] = memory_status.status(store).ticks
    assert (0, None) == (tick.failures, tick.error)
    assert tick.ended is not None
    assert tick.last is not None
    assert tick.next == tick.last + timedelta(minutes=5)
    with pytest.raises(InvalidError, match="sync notes"):
        memory_status.do_now(store, "sync dreams")


def test_what_fails_outside_of_ticks_is_told_until_it_goes_well(store: GraphStore, clock: Clock) -> None:
    class Notes:
        name = "notes"
        broken = True

        def fetch(self, cursor, /):  # type: ignore[no-untyped-def]
            if self.broken:
                raise OSError("no route")
            return [], cursor

    said = ["down"]

    def compress(messages: object) -> str:
        if said:
            raise RuntimeError(said[0])
        return "- [LOW] noticed"

    watching, notes = Observer(store, compress, threshold=1), Notes()
    sync = Sync(store, notes)
    watching.enqueue("one", user="ana", thread="t")
    sync.run()
    assert ("observer ana/t: RuntimeError: down", "sync notes: OSError: no route") == tuple(
        sorted(memory_status.status(store).errors)
    )
    said.clear()
    notes.broken = False
    watching.observe("ana", "t")
    sync.run()
    assert () == memory_status.status(store).errors


def test_chunks_of_a_layer_by_page(store: GraphStore, clock: Clock) -> None:
    memory = Memory(store)
    for number in range(5):
        clock.move(seconds=1)
        memory.remember(f"note {number}", layer="group", source="group:g")

    page = memory_status.chunks(store, "group", limit=2)
    assert (["note 4", "note 3"], 5, 2) == ([each.text for each in page.chunks], page.total, page.skip)
    rest = memory_status.chunks(store, "group", limit=2, skip=4)
    assert (["note 0"], None) == ([each.text for each in rest.chunks], rest.skip)
    with pytest.raises(InvalidError, match="layer"):
        memory_status.chunks(store, "dreams")
