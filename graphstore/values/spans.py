"""Arrange the spans of a trace as a tree: the events of each span together, cycles broken, missing spans as placeholders. Pure: no store, no clock.

Anomalies of a trace (a child that begins before its parent, a span with two parents) are reported, never repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from graphstore.errors import InvalidError
from graphstore.values.event_fields import ENDED_AT, SPAN_IDS
from graphstore.values.models import Json
from graphstore.values.period import Instant, instant, moment


def place(body: Json) -> Json:
    """Return the place of an event in its trace: the ids, and the end of its span. It remains when the event is evicted."""
    kept = {name: body[name] for name in SPAN_IDS if name in body}
    ended = body.get("metadata", {}).get(ENDED_AT)
    return {**kept, ENDED_AT: ended} if isinstance(ended, str) else kept


def ended(*said: Mapping[str, Any]) -> datetime | None:
    """Return when the span of an event ended, from the first of these mappings with a valid time; None if there is none."""
    for each in said:
        if ENDED_AT in each:
            with suppress(InvalidError):
                return moment(instant(each[ENDED_AT], ENDED_AT))
    return None


class SpanEvent(NamedTuple):
    """One event of a trace, as the tree needs it. `end`: the end of its span, if it has one; `shown`: the object that shows it."""

    id: str
    at: Instant
    span: str | None
    parent: str | None
    end: Instant | None = None
    shown: Any = None


@dataclass(slots=True)
class Twig:
    """A span: its events in order, from the earliest on. A span without events is `missing`."""

    span: str
    events: list[SpanEvent] = field(default_factory=list)
    parent: str | None = None
    children: list[Twig] = field(default_factory=list)
    depth: int = 0

    @property
    def missing(self) -> bool:
        """Return True if it only occurs as the parent of another span."""
        return not self.events

    @property
    def start(self) -> Instant | None:
        """Return the earliest instant of its events."""
        return self.events[0].at if self.events else None

    @property
    def end(self) -> Instant | None:
        """Return the latest end that its events state, else the instant of the last event; None if only one instant is known."""
        stated = [each.end for each in self.events if each.end is not None]
        if stated:
            return max(stated)
        return self.events[-1].at if self.events and self.events[-1].at > self.events[0].at else None


class Tree(NamedTuple):
    """The roots in order of time, the events without a span, the broken cycles, and the anomalies."""

    roots: list[Twig]
    loose: list[SpanEvent]
    cycles: list[tuple[str, ...]]
    notes: list[str]

    def walk(self) -> Iterator[Twig]:
        """Yield every span, each right after its parent and the parent's earlier children."""
        waiting = list(reversed(self.roots))
        while waiting:
            twig = waiting.pop()
            yield twig
            waiting += reversed(twig.children)


def tree(events: Iterable[SpanEvent]) -> Tree:
    """Return the tree of the events of one trace. Spans are in order of their start; a placeholder starts with its first child."""
    ordered = sorted(events, key=lambda each: (each.at, each.id))
    twigs: dict[str, Twig] = {}
    notes: list[str] = []
    for each in ordered:
        if each.span is not None:
            twigs.setdefault(each.span, Twig(each.span)).events.append(each)
    for twig in list(twigs.values()):
        parents = list(dict.fromkeys(each.parent for each in twig.events if each.parent is not None))
        if len(parents) > 1:
            notes.append(
                f"span {twig.span} has {len(parents)} parents, {', '.join(parents)}: shown under the first."
            )
        if parents:
            twig.parent = parents[0]
            twigs.setdefault(parents[0], Twig(parents[0]))
    cycles = _break(twigs)
    notes += [
        f"the parents of {', '.join(cycle)} go in a circle: {cycle[0]} is shown as a root."
        for cycle in cycles
    ]
    roots = []
    for twig in twigs.values():
        if twig.parent is None:
            roots.append(twig)
        else:
            twigs[twig.parent].children.append(twig)
    grown = Tree(roots, [each for each in ordered if each.span is None], cycles, notes)
    _order(grown, twigs)
    return grown


def _break(twigs: dict[str, Twig]) -> list[tuple[str, ...]]:
    """Make the earliest span of each cycle a root. Return the cycles, each from its root on."""
    seen: set[str] = set()
    cycles = []
    for first in twigs:
        path: dict[str, None] = {}
        at: str | None = first
        while at is not None and at not in seen:
            seen.add(at)
            path[at] = None
            at = twigs[at].parent
        if at is None or at not in path:
            continue
        names = list(path)
        cycle = names[names.index(at) :]  # each is followed by its parent
        root = min(cycle, key=lambda name: (_start(twigs[name]), name))
        place = cycle.index(root)
        cycles.append((*cycle[place:], *cycle[:place]))
        twigs[root].parent = None
    return cycles


def _order(grown: Tree, twigs: dict[str, Twig]) -> None:
    """Sort siblings, and set the depth of each span."""
    begins: dict[str, tuple[Instant, str]] = {}
    for twig in twigs.values():
        if twig.missing:
            begins[twig.span] = (min((_start(child) for child in twig.children), default=0), twig.span)
        else:
            begins[twig.span] = (_start(twig), twig.span)
    for brothers in (grown.roots, *(twig.children for twig in twigs.values())):
        brothers.sort(key=lambda twig: begins[twig.span])
    for twig in grown.walk():
        for child in twig.children:
            child.depth = twig.depth + 1


def _start(twig: Twig) -> Instant:
    return twig.events[0].at if twig.events else 0


def skew(twig: Twig, twigs: Mapping[str, Twig]) -> int:
    """Return by how many microseconds a span begins before its parent; 0 if it does not, or if that is unknown."""
    above = twigs.get(twig.parent or "")
    if above is None or above.start is None or twig.start is None:
        return 0
    return max(0, above.start - twig.start)
