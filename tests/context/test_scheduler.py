"""What a store that is open for long does by itself, each when it is due by the store's clock; a tick that fails stops nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.context.observer import Observer
from graphstore.context.scheduler import Ticking, usual
from graphstore.memory import Memory
from graphstore.server import run
from tests.support.served import Wire, serve_in_thread

pytestmark = pytest.mark.in_process("its clock and sources are objects of the test")

HOUR = timedelta(hours=1)


def test_a_tick_is_done_at_once_and_then_every_so_often(store, clock):
    done: list[str] = []
    ticking = Ticking(store, [("count", lambda: done.append("again"), HOUR)])

    assert (True, False) == (ticking.do("count"), ticking.do("count"))
    clock.move(minutes=59)
    assert not ticking.do("count")
    clock.move(minutes=1)
    assert ticking.do("count")
    assert 2 == len(done)


def test_a_tick_that_fails_is_tried_again_when_it_is_due(store, clock):
    ticking = Ticking(store, [("broken", lambda: 1 / 0, HOUR)])

    with pytest.raises(ZeroDivisionError):
        ticking.do("broken")
    assert not ticking.do("broken")
    clock.move(hours=1)
    with pytest.raises(ZeroDivisionError):
        ticking.do("broken")


def test_memory_lets_go_once_a_day(store, clock):
    chunk = Memory(store).remember("it rains today", layer="conversation")
    ticking = usual(store)
    ticking.do("lifecycle")
    assert [chunk.id] == [node.id for node in store.nodes("chunk")]
    clock.move(days=400)

    assert ticking.do("lifecycle")
    assert "evicted" == store.inspect(chunk.id).node.standing


def test_a_queue_that_is_long_enough_is_compressed(store, clock):
    first = Observer(store, threshold=2)
    ticking = usual(store, observer=Observer(store, lambda messages: "* likes tea", threshold=1))
    first.enqueue("I like tea", user="ada")
    clock.move(minutes=1)

    assert ticking.do("observer")
    assert ["likes tea"] == [node.text for node in store.nodes("chunk")]


class Notes:
    """A service with one page of notes."""

    name = "notes"

    def fetch(self, cursor: Any, /) -> tuple[Iterable[Mapping[str, Any]], Any]:
        return ([], cursor) if cursor else ([{"id": "1", "text": "buy milk"}], 1)


class Down(Notes):
    """A service that does not answer."""

    name = "down"

    def fetch(self, cursor: Any, /) -> tuple[Iterable[Mapping[str, Any]], Any]:
        raise ConnectionError("nobody there")


def test_services_and_files_are_kept_in_step(store, tmp_path):
    (tmp_path / "SOUL.md").write_text("# Who\n\nI am terse.\n", encoding="utf-8")
    ticking = usual(store, sources=[Notes(), Down()], souls=[tmp_path])
    for name in ticking.names[:-2] + ticking.names[-1:]:
        ticking.do(name)

    assert {"buy milk", "I am terse."} == {
        line for node in store.nodes("chunk") for line in [node.text.splitlines()[-1]]
    }
    with pytest.raises(RuntimeError, match="nobody there"):
        ticking.do("sync down")


def test_ticks_go_on_in_a_server_and_one_that_fails_is_counted(disk_store: GraphStore):
    ticks = [("broken", lambda: 1 / 0, timedelta(0)), ("note", lambda: _note(disk_store), timedelta(0))]
    ticking = Ticking(disk_store, ticks)

    def started(calling: Any) -> Any:
        return run.together([run.tick(calling, ticking, 0.01)])

    with serve_in_thread(disk_store, started=started) as url:
        wire = Wire(url)
        while not wire.get("/events?type=noted"):
            time.sleep(0.01)
        text = wire.get("/metrics").decode()

    assert 'graphstore_tick_errors_total{of="broken"}' in text
    assert 'graphstore_ticks_total{of="note"}' in text
    assert 'of="broken"} 0' not in text


def _note(store: GraphStore) -> None:
    store.record_event("noted", "a tick", id="evt_note")


def test_others_write_while_a_compressor_thinks(disk_store: GraphStore):
    thinking, done = threading.Event(), threading.Event()

    def compress(messages: Any) -> str:
        thinking.set()
        assert done.wait(20)
        return "- [LOW] likes tea"

    watching = Observer(disk_store, compress, threshold=1)
    ticking = usual(disk_store, observer=watching)

    def started(calling: Any) -> Any:
        return run.together([run.tick(calling, ticking, 0.01)])

    Observer(disk_store).enqueue("I like tea", user="ada")
    with serve_in_thread(disk_store, started=started) as url:
        wire = Wire(url)
        assert thinking.wait(20)
        disk_store_events = len(wire.get("/events?type=noted"))
        wire.post("/record_event", {"type": "noted", "description": "meanwhile"})
        assert disk_store_events + 1 == len(wire.get("/events?type=noted"))
        done.set()
        while not wire.get("/nodes?kind=chunk"):
            time.sleep(0.01)
