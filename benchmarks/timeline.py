"""What the timeline costs: a page of 100,000 messages by any of its filters, a trace of a thousand spans, spans in and out.

Every page is compared with a plain scan of the same messages before it is timed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

import orjson

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import once, race
from graphstore import timeline as room

MESSAGES, PAGE = 100_000, 50
DEEP = 1_000
END = datetime(2026, 6, 30, tzinfo=UTC)
MILLI = 1e-3
_FIELDS = {name: name for name in ("sender", "thread", "type", "classification", "authorized")}


def talk(count: int) -> list[dict[str, Any]]:
    """Messages of fifty people in a thousand threads, oldest first. Senders of even numbers never speak in threads of odd ones."""
    chance = random.Random(11)
    found = []
    for number in range(count):
        thread = chance.randrange(1_000)
        kind = chance.choices(("TEXT", "AUDIO", "IMAGE", "SYSTEM"), (55, 40, 4, 1))[0]
        found.append(
            {
                "id": f"msg_{number:06}",
                "type": kind,
                "classification": "written" if kind == "TEXT" else "spoken",
                "description": f"message {number} says what such a message says, in about as many words as one has",
                "sender": f"user-{2 * chance.randrange(25) + thread % 2}",
                "thread": f"thread-{thread}",
                "trace_id": f"trace-{number // 4}",
                "span_id": f"span-{number}",
                "authorized": chance.random() > 0.001,
                "occurred_at": END - timedelta(seconds=count - number),
            }
        )
    return found


def scan(told: list[dict[str, Any]], filters: dict[str, Any]) -> list[str]:
    """The ids of the newest messages that match, by looking at every one from the newest on."""
    wanted = [(_FIELDS[name], value) for name, value in filters.items()]
    matching = (one["id"] for one in reversed(told) if all(one[name] == value for name, value in wanted))
    return list(itertools.islice(matching, PAGE))


QUESTIONS: dict[str, dict[str, Any]] = {
    "no filter": {},
    "one sender": {"sender": "user-3"},
    "one thread": {"thread": "thread-7"},
    "sender and thread": {"sender": "user-3", "thread": "thread-7"},
    "not authorized": {"authorized": False},
    "a sender who never writes that type in that thread": {
        "sender": "user-3",
        "thread": "thread-8",
        "type": "TEXT",
    },
    "two filters of many messages, none of both": {"type": "TEXT", "classification": "spoken"},
}


def timeline(arena: Arena) -> Iterator[Row]:
    count = arena.scaled(MESSAGES)
    told = talk(count)
    store = graphstore.open(arena.folder / "timeline", clock=lambda: END)
    store.bulk_load(events=told)
    view = store.as_of()
    size = f"{count:,} messages"

    def row(work: str, took: dict[str, float], budget: float | None, floor_is: str) -> Row:
        made = arena.row(work, took, budget, floor_is)
        made.size = size
        return made

    first, page = once(partial(room.messages, view))
    assert [one.id for one in page] == scan(told, {})
    yield row("the first page: every body read once", {"ours": first}, None, "")
    for what, filters in QUESTIONS.items():
        ask = partial(room.messages, view, **filters)
        assert [one.id for one in ask()] == scan(told, filters), filters
        took = race({"ours": _timed(ask), "floor": _timed(partial(scan, told, filters))}, arena.turns)
        yield row(f"a page of 50: {what}", took, 5 * MILLI, "scan of dicts in memory")
    middle = room.messages(view, limit=count // 2).cursor
    assert middle is not None
    far = partial(room.messages, view, cursor=middle)
    assert [one.id for one in far()] == [one["id"] for one in reversed(told)][count // 2 : count // 2 + PAGE]
    yield row(
        "a page of 50 in the middle, by its cursor", race({"ours": _timed(far)}, arena.turns), 5 * MILLI, ""
    )

    spent = []
    for number in range(arena.turns):
        room.record_message(store, "TEXT", f"new {number}", sender="user-3")
        took_one, page = once(partial(room.messages, store, sender="user-3"))
        assert page.events[0].description == f"new {number}"
        spent.append(took_one)
    yield row("a page right after a message was recorded", {"ours": median(spent)}, 5 * MILLI, "")
    store.close()
    yield from _traces(arena)


def _timed(work: Callable[[], Any]) -> Callable[[], float]:
    return lambda: once(work)[0]


def _traces(arena: Arena) -> Iterator[Row]:
    """A trace of a thousand spans, read as a tree; the same spans taken in and given out."""
    from graphstore.imports.otlp import import_otlp, traces_data

    spans = [
        {
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": f"{number + 1:016x}",
            **({"parentSpanId": f"{number // 3 + 1:016x}"} if number else {}),
            "name": f"step {number}",
            "kind": 1,
            "startTimeUnixNano": str(1_780_000_000_000_000_000 + number * 1_000),
            "endTimeUnixNano": str(1_780_000_000_000_900_000 + number * 1_000),
            "attributes": [{"key": "n", "value": {"intValue": str(number)}}],
        }
        for number in range(DEEP)
    ]
    found = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    data = orjson.dumps(found)
    with graphstore.open(arena.folder / "traces", clock=lambda: END) as store:
        taken, done = once(partial(import_otlp, store, data))
        assert done.spans == DEEP
        trace_id = spans[0]["traceId"]
        tree = room.trace(store, trace_id)
        assert [each.span_id for each in tree.spans if each.parent_span_id == spans[0]["spanId"]] == [
            each["spanId"] for each in spans[1:3]
        ]
        out = traces_data(store)
        assert len(out.resource_spans[0].scope_spans[0].spans) == DEEP
        rows = (
            (
                "a trace as a tree",
                race({"ours": _timed(partial(room.trace, store, trace_id))}, arena.turns),
                "",
            ),
            (
                "OTLP/JSON in",
                {"ours": taken, "floor": once(partial(orjson.loads, data))[0]},
                "reading the JSON",
            ),
            ("OTLP out", race({"ours": _timed(partial(traces_data, store))}, arena.turns), ""),
        )
        for work, took, floor_is in rows:
            made = arena.row(work, took, None, floor_is)
            made.size = f"{DEEP // 1_000}k spans"
            yield made
