"""A trace as a tree: spans put together from what is told of them, and everything odd about them said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore import GraphStore, InvalidError, NotFoundError, timeline
from graphstore.events.timeline import Trace, record_message
from graphstore.values import spans
from graphstore.values.spans import SpanEvent
from tests.conftest import START, Clock, after

pytestmark = pytest.mark.served


def tell(store: GraphStore, span: str | None, at: float, parent: str | None = None, **more: Any) -> str:
    """One event of the trace `request`, so many seconds after the start."""
    words = more.pop("description", f"{span} at {at:g}")
    return store.record_event(
        more.pop("type", "step"),
        words,
        occurred_at=after(at),
        trace_id="request",
        span_id=span,
        parent_span_id=parent,
        **more,
    ).event.id


@pytest.fixture
def late(store: GraphStore, clock: Clock) -> GraphStore:
    """A store on a day when every instant of the test has passed."""
    clock.move(days=1)
    return store


def shape(found: Trace) -> list[tuple[str, int]]:
    return [(each.span_id, each.depth) for each in found.spans]


# ---- the tree ---------------------------------------------------------------------------------


def test_spans_hang_under_their_parents_in_order_of_time(late: GraphStore) -> None:
    tell(late, "b", 3, "root")
    tell(late, "root", 0)
    tell(late, "a", 1, "root")
    tell(late, "leaf", 2, "a")
    found = timeline.trace(late, "request")

    assert [("root", 0), ("a", 1), ("leaf", 2), ("b", 1)] == shape(found)
    assert ["root"] == [each.span_id for each in found.roots]
    assert ("a", "b") == found.span("root").children
    assert () == found.notes


def test_a_later_event_of_the_same_span_tells_its_end(late: GraphStore) -> None:
    tell(late, "work", 1)
    tell(late, "work", 3.5)
    tell(late, "note", 2, "work")
    found = timeline.trace(late, "request")

    work, note = found.span("work"), found.span("note")
    assert (after(1), after(3.5), 2.5) == (work.start, work.end, work.duration)
    assert (after(2), None, None) == (note.start, note.end, note.duration)
    assert ["work at 1", "work at 3.5"] == [event.description for event in work.events]


def test_an_event_may_say_when_its_span_ended(late: GraphStore) -> None:
    tell(late, "work", 1, metadata={"ended_at": after(2).isoformat()})
    tell(late, "other", 1, metadata={"ended_at": "later"})
    tell(late, "back", 3, metadata={"ended_at": after(2).isoformat()})
    found = timeline.trace(late, "request")

    assert (after(2), 1.0) == (found.span("work").end, found.span("work").duration)
    assert None is found.span("other").end
    assert -1.0 == found.span("back").duration
    assert any("'later' is no ISO 8601 time" in note for note in found.notes)
    assert "span back ends 1 s before it begins." in found.notes


def test_a_parent_nobody_told_of_keeps_its_place(late: GraphStore) -> None:
    tell(late, "one", 1, "gone")
    tell(late, "two", 2, "gone")
    found = timeline.trace(late, "request")

    assert [("gone", 0), ("one", 1), ("two", 1)] == shape(found)
    assert (True, None, ()) == (
        found.span("gone").missing,
        found.span("gone").start,
        found.span("gone").events,
    )


def test_parents_in_a_circle_are_broken_at_the_first_and_reported(late: GraphStore) -> None:
    tell(late, "b", 1, "a")
    tell(late, "a", 2, "c")
    tell(late, "c", 3, "b")
    tell(late, "self", 4, "self")
    tell(late, "below", 5, "c")
    found = timeline.trace(late, "request")

    assert [("b", 0), ("c", 1), ("a", 2), ("below", 2), ("self", 0)] == shape(found)
    assert [("self",), ("b", "a", "c")] == sorted(found.cycles, key=len)
    assert any("go in a circle: b is shown as a root" in note for note in found.notes)


def test_a_child_that_begins_before_its_parent_is_noted_and_left_as_told(late: GraphStore) -> None:
    tell(late, "parent", 1)
    tell(late, "child", 0.75, "parent")
    found = timeline.trace(late, "request")

    assert (0.25, after(0.75)) == (found.span("child").skew, found.span("child").start)
    assert ("span child begins 250 ms before its parent parent.",) == found.notes


def test_events_of_no_span_hang_at_the_root(late: GraphStore) -> None:
    tell(late, "span", 1)
    tell(late, None, 2, description="by the way")
    found = timeline.trace(late, "request")

    assert ["by the way"] == [event.description for event in found.events]
    assert [("span", 0)] == shape(found)


def test_what_is_told_twice_is_shown_once_and_said(late: GraphStore) -> None:
    first = tell(late, "span", 1, description="same")
    second = tell(late, "span", 1, description="same")
    tell(late, "span", 1, description="same", agent="another")
    found = timeline.trace(late, "request")

    assert 2 == len(found.span("span").events)
    assert any("repeats" in note and {first, second} <= set(note.split()) for note in found.notes)


def test_a_span_with_two_parents_is_under_the_first_told(late: GraphStore) -> None:
    tell(late, "p", 0)
    tell(late, "q", 0.5)
    tell(late, "x", 1, "q")
    tell(late, "x", 2, "p")
    found = timeline.trace(late, "request")

    assert "q" == found.span("x").parent_span_id
    assert any("has 2 parents, q, p" in note for note in found.notes)


# ---- time and forgetting ----------------------------------------------------------------------


def test_a_trace_is_that_of_its_coordinate(store: GraphStore, clock: Clock) -> None:
    tell(store, "root", 0)
    before = store.as_of()
    clock.move(seconds=10)
    tell(store, "child", 5, "root")

    assert [("root", 0)] == shape(timeline.trace(before, "request"))
    assert [("root", 0), ("child", 1)] == shape(timeline.trace(store, "request"))
    assert [("root", 0)] == shape(timeline.trace(store.as_of(valid=after(2)), "request"))


def test_evicted_events_keep_their_place_and_lose_their_words(disk_store: GraphStore, clock: Clock) -> None:
    clock.move(days=1)
    root = tell(disk_store, "root", 0, description="a secret", metadata={"ended_at": after(4).isoformat()})
    tell(disk_store, "child", 1, "root")
    loose = tell(disk_store, None, 2, description="another secret")
    whole = shape(timeline.trace(disk_store, "request"))
    disk_store.evict(ids=[root, loose])
    found = timeline.trace(disk_store, "request")

    assert whole == shape(found)
    assert ("[evicted]", START, after(4)) == (
        found.span("root").name,
        found.span("root").start,
        found.span("root").end,
    )
    assert ["[evicted]"] == [event.description for event in found.events]
    assert ("evicted", "request", "root") == (
        disk_store.inspect(root).node.standing,
        disk_store.inspect(root).node.trace_id,  # type: ignore[union-attr]
        disk_store.inspect(root).node.span_id,  # type: ignore[union-attr]
    )
    assert [] == [file for file in disk_store.path.rglob("*.jsonl") if b"secret" in file.read_bytes()]
    assert disk_store.verify().ok


def test_an_evicted_place_outlives_opening_anew_and_a_dump(
    disk_store: GraphStore, clock: Clock, tmp_path: Any
) -> None:
    import graphstore

    clock.move(days=1)
    root = tell(disk_store, "root", 0)
    tell(disk_store, "child", 1, "root")
    disk_store.evict(ids=[root], reason="too old")
    disk_store.export(tmp_path / "dump")
    disk_store.close()
    for opened in (
        graphstore.open(disk_store.path, clock=clock),
        graphstore.restore(tmp_path / "dump", tmp_path / "again.gs"),
    ):
        with opened as store:
            found = timeline.trace(store, "request")
            assert [("root", 0), ("child", 1)] == shape(found)
            assert not found.span("root").missing
            assert "too old" == next(change.reason for change in store.changes() if change.verb == "evict")


@pytest.mark.parametrize("first", ["evicted before", "not evicted"])
def test_an_erased_event_leaves_nothing_in_its_trace(
    disk_store: GraphStore, clock: Clock, first: str
) -> None:
    clock.move(days=1)
    root = tell(disk_store, "whose-root", 0)
    tell(disk_store, "child", 1)
    assert 2 == len(timeline.trace(disk_store, "request").spans)
    if first == "evicted before":
        disk_store.evict(ids=[root], reason="too old")
        assert 2 == len(timeline.trace(disk_store, "request").spans)
    disk_store.erase(root, reason="private")

    assert [("child", 0)] == shape(timeline.trace(disk_store, "request"))
    assert [] == [file for file in disk_store.path.rglob("*.jsonl") if b"whose-root" in file.read_bytes()]
    assert disk_store.verify().ok


def test_cypher_sees_the_place_of_an_evicted_event(late: GraphStore) -> None:
    late.evict(ids=[tell(late, "root", 0)])

    asked = "MATCH (e:Event) RETURN e.trace_id, e.span_id, e.description"
    assert [
        {"e.trace_id": "request", "e.span_id": "root", "e.description": "[evicted]"}
    ] == late.query_tables(asked).rows()


def test_a_trace_of_which_all_is_erased_is_unknown(late: GraphStore) -> None:
    late.erase(tell(late, "root", 0), reason="private")

    with pytest.raises(NotFoundError, match="no trace 'request'"):
        timeline.trace(late, "request")


# ---- asking and showing -----------------------------------------------------------------------


def test_a_trace_is_asked_by_its_whole_id(late: GraphStore) -> None:
    whole = "4bf92f3577b34da6a3ce929d0e0e4736"
    late.record_event("step", "x", trace_id=whole, span_id="s")
    late.record_event("step", "x", trace_id="4bf92f", span_id="t")

    assert "4bf92f" == timeline.trace(late, "4bf92f").trace_id
    with pytest.raises(NotFoundError, match=f"no trace '{whole[:20]}'.*Nearest: '{whole}'"):
        timeline.trace(late, whole[:20])


def test_a_beginning_of_a_traces_id_is_made_whole_when_it_is_one(late: GraphStore) -> None:
    one, other = "4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f35aaaa4da6a3ce929d0e0e4736"
    for name in (one, other, "4bf92f3577b3-chosen", "request-of-ana"):
        late.record_event("step", "x", trace_id=name, span_id="s")

    for text in (one, "4bf92", "request-of", "abcdef", "4BF92F3577"):
        assert text == timeline.whole_trace_id(late, text)
    assert one == timeline.whole_trace_id(late, one[:10])
    with pytest.raises(NotFoundError, match="ambiguous"):
        timeline.whole_trace_id(late, one[:8])


def test_a_trace_draws_itself(late: GraphStore) -> None:
    record_message(late, "TEXT", "hello", sender="ana", trace_id="request", span_id="a", occurred_at=after(0))
    tell(
        late,
        "b",
        0.5,
        "a",
        type="span",
        description="look it up",
        metadata={"ended_at": after(1).isoformat()},
    )
    tell(late, "c", 0.25, "b", type="span", description="early")
    record_message(late, "TEXT", "found", sender="bot", trace_id="request", span_id="a", occurred_at=after(2))
    tell(late, "d", 3, "lost", type="span", description="orphan")
    tell(late, None, 4, description="v2", type="deploy")
    record_message(late, "IMAGE", media_path="x.png", trace_id="request", occurred_at=after(5))

    assert [
        "trace request: 5 spans and 2 of no span, 2026-02-01, 5 s",
        "├─ TEXT ana: hello  2 s",
        "│  │  · TEXT bot: found  +2 s",
        "│  └─ look it up  500 ms",
        "│     └─ early  begins 250 ms before its parent",
        "├─ (missing span lost)",
        "│  └─ orphan",
        "├─ · deploy v2  +4 s",
        "└─ · IMAGE x.png  +5 s",
        "note: span c begins 250 ms before its parent b.",
    ] == str(timeline.trace(late, "request")).splitlines()


def test_a_trace_shows_itself_in_a_notebook(late: GraphStore) -> None:
    tell(late, "a", 0, description="<b>bold</b>")
    tell(late, "b", 1, "a", metadata={"ended_at": after(2).isoformat()})
    html = timeline.trace(late, "request")._repr_html_()

    assert "<svg" in html
    assert "<b>bold" not in html


def test_a_trace_a_thousand_spans_deep_is_a_tree(late: GraphStore) -> None:
    with late.transaction():
        for number in range(1000):
            tell(late, f"s{number}", number / 1000, f"s{number - 1}" if number else None)
    found = timeline.trace(late, "request")

    assert 999 == found.span("s999").depth
    assert found.model_dump_json()
    assert str(found).endswith("more lines")


# ---- the tree alone ---------------------------------------------------------------------------

_NAMES = st.sampled_from("abcdef")


@given(st.lists(st.tuples(st.integers(0, 9), _NAMES | st.none(), _NAMES | st.none()), max_size=20))
def test_every_span_is_in_the_tree_once_under_its_parent_or_at_the_root(drawn: list[Any]) -> None:
    told = [SpanEvent(f"e{number}", at, span, parent) for number, (at, span, parent) in enumerate(drawn)]
    grown = spans.tree(told)
    walked = list(grown.walk())
    parents: dict[str, str] = {}
    for each in sorted(told, key=lambda each: (each.at, each.id)):
        if each.span and each.parent:
            parents.setdefault(each.span, each.parent)

    assert sorted({each.span for each in told if each.span} | {*parents.values()}) == sorted(
        twig.span for twig in walked
    )
    assert sorted(each.id for each in told) == sorted(
        each.id for group in (grown.loose, *(twig.events for twig in walked)) for each in group
    )
    for twig in walked:
        assert all(child.parent == twig.span and child.depth == twig.depth + 1 for child in twig.children)
    assert all(twig.depth == 0 and twig.parent is None for twig in grown.roots)


def test_the_end_of_a_span_is_a_field(store, clock):
    clock.move(days=1)
    work = store.record_event(
        "span", "work", trace_id="t", span_id="a", occurred_at=after(0), ended_at=after(5), metadata={"n": 1}
    ).event
    told = store.record_event(
        "span", "told", trace_id="t", span_id="b", parent_span_id="a", occurred_at=after(1),
        metadata={"ended_at": after(3).isoformat()},
    ).event  # fmt: skip
    store.bulk_load(
        events=[
            {"type": "span", "description": "loaded", "id": "c", "trace_id": "t", "span_id": "c", "occurred_at": after(2), "ended_at": after(4), "metadata": {"m": 2}},
            {"type": "span", "description": "open", "id": "d", "trace_id": "t", "span_id": "d", "occurred_at": after(2)},
        ]
    )  # fmt: skip

    assert (after(5), 1) == (work.ended_at, work.metadata["n"])
    assert [after(5), after(3), after(4), None] == [
        store.event(id).ended_at for id in (work.id, told.id, "c", "d")
    ]
    assert {"a": after(5), "b": after(3), "c": after(4), "d": None} == {
        span.span_id: span.end for span in timeline.trace(store, "t").spans
    }
    assert 2 == store.event("c").metadata["m"]
    store.evict(ids=[work.id])
    assert after(5) == store.inspect(work.id).node.ended_at
    with pytest.raises(InvalidError, match="ended_at 'soon' is no time"):
        store.record_event("span", "x", trace_id="t", span_id="e", ended_at="soon")
