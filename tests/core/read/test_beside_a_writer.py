"""Readers beside a writer: they hold no lock, wait for nobody, and never see what is not committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, InvalidError, View
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("it holds the locks of a store of its own")

WAIT = 30.0  # seconds after which a thread that should not wait is known to wait


def test_reads_wait_neither_for_the_writer_nor_for_whoever_holds_the_index(filled: GraphStore) -> None:
    before = filled.as_of()
    alone = answers(before)
    with filled.transaction():
        filled.revise("a", {"says": "pending"})
        filled.retract("b", reason="pending")
        filled.link("c", "supports", "a")
        with filled._core.lock:
            assert alone == elsewhere(lambda: answers(before))
            assert alone == elsewhere(lambda: answers(filled.as_of(tx=before.at.tx, valid=before.at.valid)))
            assert {"says": "first"} == elsewhere(lambda: filled.node("a").content)
            assert elsewhere(lambda: filled.as_of().knows("b"))
            far = elsewhere(lambda: filled.as_of(valid="2100-01-01"))
            ids = ["a", "b"]
            assert ids == elsewhere(
                lambda: far.query("MATCH (n:Node) RETURN n.id AS id ORDER BY id").to_arrow()["id"].to_pylist()
            )
            assert ids == sorted(elsewhere(far.to_arrow)["id"].to_pylist())
    assert {"says": "pending"} == filled.node("a").content


def test_a_write_does_not_wait_for_a_long_read(filled: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    view = filled.as_of()
    raw = filled._core.journal.raw

    def slow(pos: int, length: int) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert go_on.wait(WAIT)
        return raw(pos, length)

    expected = view.nodes()
    monkeypatch.setattr(filled._core.journal, "raw", slow)
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(view.nodes()))
    reader.start()
    assert begun.wait(WAIT)
    filled.revise("a", {"says": "written meanwhile"})
    filled.add_node("fact", {"says": "new"}, id="new")
    go_on.set()
    reader.join(WAIT)
    assert [expected] == found


def test_a_read_over_a_failed_verb_or_a_new_index_is_read_again(filled: GraphStore) -> None:
    view = filled.as_of()
    core, tries = filled._core, 0

    class Counted(View):
        def _coordinate(self) -> tuple[int, int]:
            nonlocal tries
            tries += 1
            if tries == 1:
                elsewhere(fails)
            if tries == 2:
                elsewhere(filled._rebuild_index)
            return super()._coordinate()

    def fails() -> None:
        with pytest.raises(InvalidError):
            filled.link("a", "supersedes", "a")
        with suppress(ZeroDivisionError), filled.transaction():
            filled.add_node("fact", {"says": "taken back"})
            raise ZeroDivisionError

    assert view.node("a") == Counted(core, view._valid, view._tx).node("a")
    assert 3 == tries


def test_the_present_of_a_clock_that_stands_still_is_read_whole(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        store.add_node("fact", {"says": "first"}, id="a")
        clock.move(seconds=1)
        coordinate, reader, wrote = store._coordinate, threading.get_ident(), False

        def written_meanwhile() -> tuple[int, int]:
            nonlocal wrote
            here = coordinate()
            if not wrote and threading.get_ident() == reader:
                wrote = True
                elsewhere(lambda: store.revise("a", {"says": "second"}))
            return here

        store._coordinate = written_meanwhile  # type: ignore[method-assign]
        assert "second" == store.node("a").content["says"]


# ---------------------------------------------------------------------------------------------- under way


@pytest.fixture
def filled() -> Iterator[GraphStore]:
    with graphstore.open(":memory:") as store:
        for id in "abc":
            store.add_node("fact", {"says": "first"}, id=id)
        store.link("a", "derived_from", "b")
        store.supersede("c", by="a")
        yield store


def answers(view: View) -> dict[str, Any]:
    """What point reads say at a coordinate, errors too."""
    found: dict[str, Any] = {}
    for id in ("a", "b", "c", "new"):
        for read in READS:
            try:
                found[f"{read} {id}"] = getattr(view, read)(id)
            except GraphStoreError as error:
                found[f"{read} {id}"] = f"{type(error).__name__}: {error}"
    found["nodes"] = view.nodes()
    found["shaky"] = view.shaky()
    return found


READS = (
    "node",
    "links_from",
    "backlinks_to",
    "history",
    "versions",
    "what_superseded",
    "inspect",
    "effects",
    "causes",
)


def elsewhere(work: Callable[[], Any]) -> Any:
    """What some work gives in another thread, which may not wait."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert found, "it waits"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
