"""The spans of a trace as a tree: what is told of each put together, cycles broken, what is missing kept as a placeholder. Pure: no store, no clock.

What is odd in a trace (a child that begins before its parent, a span told twice) is noted and never mended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from graphstore.values.event_fields import SPAN_IDS
from graphstore.values.models import Json
from graphstore.values.period import Instant

ENDED_AT = "ended_at"
"""In the metadata of an event with a span id: when the span ended, as ISO 8601 text."""


def place(body: Json) -> Json:
    """Where an event stands in its trace: the ids, and when its span ended. That much is left of it when it is evicted."""
    kept = {name: body[name] for name in SPAN_IDS if name in body}
    ended = body.get("metadata", {}).get(ENDED_AT)
    return {**kept, ENDED_AT: ended} if isinstance(ended, str) else kept


class Told(NamedTuple):
    """One event of a trace as the tree sees it. `end`: when its span ended, where the event says so."""

    id: str
    at: Instant
    span: str | None
    parent: str | None
    end: Instant | None = None


@dataclass(slots=True)
class Twig:
    """A span: the events told of it in order, from the earliest to the end that is known. One that nothing is told of is `missing`."""

    span: str
    told: list[Told] = field(default_factory=list)
    parent: str | None = None
    children: list[Twig] = field(default_factory=list)
    depth: int = 0

    @property
    def missing(self) -> bool:
        """Whether it is only named, as the parent of another."""
        return not self.told

    @property
    def start(self) -> Instant | None:
        """The earliest instant told of it."""
        return self.told[0].at if self.told else None

    @property
    def end(self) -> Instant | None:
        """The end that its events state, or the last of several events; None where only one instant is known."""
        stated = [each.end for each in self.told if each.end is not None]
        if stated:
            return max(stated)
        return self.told[-1].at if self.told and self.told[-1].at > self.told[0].at else None


class Tree(NamedTuple):
    """The roots in order of time, the events of no span, the cycles that were broken, and what was odd."""

    roots: list[Twig]
    loose: list[Told]
    cycles: list[tuple[str, ...]]
    notes: list[str]

    def walk(self) -> Iterator[Twig]:
        """Every span, each right after its parent and the parent's earlier children."""
        waiting = list(reversed(self.roots))
        while waiting:
            twig = waiting.pop()
            yield twig
            waiting += reversed(twig.children)


def tree(told: Iterable[Told]) -> Tree:
    """The tree of what is told of one trace. Spans lie in order of their start; a placeholder where its first child begins."""
    ordered = sorted(told, key=lambda each: (each.at, each.id))
    twigs: dict[str, Twig] = {}
    notes: list[str] = []
    for each in ordered:
        if each.span is not None:
            twigs.setdefault(each.span, Twig(each.span)).told.append(each)
    for twig in list(twigs.values()):
        parents = list(dict.fromkeys(each.parent for each in twig.told if each.parent is not None))
        if len(parents) > 1:
            notes.append(
                f"span {twig.span} is told with {len(parents)} parents, {', '.join(parents)}: shown under the first."
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
    _lay_out(grown, twigs)
    return grown


def _break(twigs: dict[str, Twig]) -> list[tuple[str, ...]]:
    """Make the earliest span of each cycle a root. Gives the cycles, each from there on."""
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


def _lay_out(grown: Tree, twigs: dict[str, Twig]) -> None:
    """Put brothers and sisters in order, and say how deep each lies."""
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
    return twig.told[0].at if twig.told else 0


def skew(twig: Twig, twigs: Mapping[str, Twig]) -> int:
    """By how many microseconds a span begins before its parent, 0 where it does not, or where that cannot be said."""
    above = twigs.get(twig.parent or "")
    if above is None or above.start is None or twig.start is None:
        return 0
    return max(0, above.start - twig.start)
