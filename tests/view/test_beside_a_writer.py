"""Readers beside a writer: they hold no lock, wait for nobody, and never see what is not committed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, View, consolidation, recall, timeline
from graphstore.context import observer, working
from graphstore.context.feeders import soul
from graphstore.events.report import history_report, patterns
from graphstore.memory.memory import Memory
from graphstore.show.scenes import glance
from graphstore.topics.topics import latest_on, topic
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


def test_the_present_of_a_clock_that_stands_still_is_read_whole(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        store.add_node("fact", {"says": "first"}, id="a")
        clock.move(seconds=1)
        coordinate, reader, wrote = store.coordinate, threading.get_ident(), False

        def written_meanwhile() -> tuple[int, int]:
            nonlocal wrote
            here = coordinate()
            if not wrote and threading.get_ident() == reader:
                wrote = True
                elsewhere(lambda: store.revise("a", {"says": "second"}))
            return here

        store.coordinate = written_meanwhile  # type: ignore[method-assign]
        assert "second" == store.node("a").content["says"]


@pytest.fixture(scope="module")
def busy() -> Iterator[GraphStore]:
    with graphstore.open(":memory:") as store:
        work = Work(store)
        for _ in range(120):
            work.one()
        yield store


DAY = 86_400_000_000
LONG: dict[str, Callable[[View], Any]] = {
    "contradictions": lambda view: view.contradictions(settled=True),
    "contradictions of one": lambda view: view.contradictions(of="fact 3"),
    "compare": lambda view: view.compare(view.pinned(view._valid - DAY, view._tx)),
    "shaky": lambda view: view.shaky(),
    "nodes": lambda view: view.nodes(tag="auth"),
    "events": lambda view: view.events(),
    "recall": lambda view: recall.recall(view, "cache policy", k=50),
    "mentions": lambda view: recall.mentions(view, "cache policy", k=50),
    "recall by filters": lambda view: recall.recall(view, "kind:fact", k=50),
    "latest_on": lambda view: latest_on(view, "auth"),
    "latest_on by words": lambda view: latest_on(view, "cache policy"),
    "topic": lambda view: topic(view, "slot"),
    "consolidate": lambda view: consolidation.consolidate(view),
    "consolidations": lambda view: consolidation.consolidations(view),
    "history_report": lambda view: history_report(view, since="90d"),
    "patterns": lambda view: patterns(view, since="90d"),
    "messages": lambda view: timeline.messages(view, sender="ann", limit=None),
    "messages by words": lambda view: timeline.messages(view, text="policy", limit=None),
    "trace": lambda view: timeline.trace(view, TRACE),
    "observations": lambda view: observer.observations(view),
    "observed": lambda view: observer.messages(view, "ann"),
    "expertises": lambda view: working.expertises(view),
    "soul": lambda view: soul(view),
    "glance": lambda view: glance(view, 5),
}


@pytest.mark.parametrize("read", LONG.values(), ids=LONG)
def test_a_read_of_much_waits_for_nobody_who_holds_the_index(
    busy: GraphStore, read: Callable[[View], Any]
) -> None:
    view = busy.as_of()
    with busy._core.lock:
        found = elsewhere(lambda: read(view))
    assert read(view) == found


def test_what_concerns_the_whole_store_waits_for_nobody_who_holds_the_index(busy: GraphStore) -> None:
    with busy._core.lock:
        changes = elsewhere(busy.changes)
        stats = elsewhere(lambda: Memory(busy).stats())
        counts = elsewhere(busy.stats)
    assert changes == busy.changes()
    assert counts == busy.stats()
    assert stats == Memory(busy).stats()


def test_answers_beside_a_writer_are_those_given_afterwards(hurried: None) -> None:
    """Every read of much, again and again at new coordinates, while a thread adds, revises, dates back, fails and rolls back."""
    with graphstore.open(":memory:") as store:
        work = Work(store)
        for _ in range(20):
            work.one()
        told: list[tuple[str, View, Any]] = []
        changes: list[tuple[View, Any]] = []
        failed: list[BaseException] = []

        def reads(names: list[str]) -> None:
            try:
                for name in names:
                    view = store.as_of()
                    told.append((name, view, _answer(LONG[name], view)))
                    now = store.as_of()
                    changes.append((now, [each for each in store.changes() if each.tx <= now.at.tx]))
            except BaseException as error:
                failed.append(error)

        names = list(LONG)
        threads = [threading.Thread(target=reads, args=(part,)) for part in (names, names[::-1])]
        for thread in threads:
            thread.start()
        for _ in range(60):
            work.one()
        for thread in threads:
            thread.join()
        assert not failed, failed
        for name, view, answer in told:
            assert _answer(LONG[name], view) == answer, (name, view)
        whole = store.changes()
        assert all([each for each in whole if each.tx <= view.at.tx] == seen for view, seen in changes)


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


TRACE = "a" * 32


class Work:
    """Writes one thing after another: of a topic, in slots, with tags, messages that come late, links, what fails and what is rolled back."""

    def __init__(self, store: GraphStore) -> None:
        self.store, self.turn = store, count()
        self.start = datetime.now(UTC) - timedelta(days=30)

    def one(self) -> None:
        turn = next(self.turn)
        store, at = self.store, self.start + timedelta(minutes=(turn * 7919) % 40_000)
        says = {"subject": f"s{turn % 5}", "policy": f"cache policy {turn % 3} of {turn}"}
        store.add_node(
            "fact", says, id=f"fact {turn}", tags=["auth"] if turn % 2 else [], valid_from=at, source="told"
        )
        timeline.record_message(
            store, "TEXT", f"the policy of {turn}", id=f"message {turn}", sender="ann" if turn % 3 else "bob", thread="t",
            occurred_at=at, trace_id=TRACE if turn % 4 == 0 else None,
        )  # fmt: skip
        if turn % 3 == 0:
            store.add_node("setting", {"value": turn}, key="slot", id=f"slot {turn}", valid_from=at)
        if turn and turn % 4 == 0:
            store.link(f"fact {turn}", "contradicts", f"fact {turn - 1}", reason="said otherwise")
            store.link(f"fact {turn}", "derived_from", f"fact {turn - 2}")
        if turn and turn % 5 == 0:
            store.revise(f"fact {turn - 1}", {"policy": f"another cache {turn}"}, reason="better")
        if turn and turn % 7 == 0:
            store.supersede(f"fact {turn - 3}", by=f"fact {turn}", reason="the world moved on")
            store.record_event("error", f"policy failed {turn % 2}", occurred_at=at)
        with suppress(GraphStoreError):
            store.link(f"fact {turn}", "supersedes", f"fact {turn}")
        with suppress(ZeroDivisionError), store.transaction():
            store.add_node(
                "fact", {"policy": "cache policy taken back"}, id="never", tags=["auth"], key="slot"
            )
            timeline.record_message(
                store,
                "TEXT",
                "a policy taken back",
                id="no message",
                sender="ann",
                thread="t",
                occurred_at=at,
            )
            raise ZeroDivisionError


def _answer(read: Callable[[View], Any], view: View) -> Any:
    """What a read gives; its error where it finds nothing."""
    try:
        return read(view)
    except GraphStoreError as error:
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns so often that they meet in the middle of everything."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)
