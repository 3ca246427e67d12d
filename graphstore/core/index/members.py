"""Which things are of a kind and a scope, which links are of a kind, and which events of a type happened in a time: lists of numbers, so that a
filter looks at what it asks for alone.

They are made when first asked for, moved on by whoever asks next, and cut with the columns. No write waits for them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from threading import Lock
from typing import Any, Protocol

from graphstore.core.index.gc_pause import no_collecting
from graphstore.values.period import Instant

_SOME = 16  # of so many that lie in order one may come between them


class Listed(Protocol):
    """The columns that the lists follow."""

    is_event: bytearray
    kind: list[str]
    scope: list[str]
    l_kind: list[str]
    r_ent: array[int]
    r_from: array[int]
    s_ent: array[int]
    s_at: array[int]


class Members:
    """The lists of one index. A reader holds the lock while he moves them on, and a rollback while it cuts the columns they follow."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._things = _Things()
        self._links = _Links()
        self._times = _Times()

    # ------------------------------------------------------------------ questions

    def things(
        self, index: Listed, events: bool, kind: str | None, scope: str | None, count: int
    ) -> Sequence[int]:
        """The nodes, or the events, of a kind and of a scope (None: of any) among the first `count` things, in order; one of the two has to be named."""
        things = self._things_by(index, count)
        if kind is None:
            lists = things.of_scope.get((events, scope or ""), [])
        elif scope is None:
            lists = things.of_kind.get((events, kind), [])
        else:
            lists = [things.lists[events, kind, scope]] if (events, kind, scope) in things.lists else []
        parts = [each[: bisect_left(each, count)] for each in lists]
        return parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts))

    def events_of(self, index: Listed, types: Iterable[str], count: int) -> int:
        """How many of the first `count` things are events of some types."""
        of_kind = self._things_by(index, count).of_kind
        lists = (each for type in types for each in of_kind.get((True, type), ()))
        return sum(bisect_left(each, count) for each in lists)

    def scopes(self, index: Listed) -> list[str]:
        """The scopes that nodes have, or had in what was rolled back."""
        there = self._things_by(index, len(index.kind)).of_scope
        return [scope for events, scope in list(there) if not events]

    def links(self, index: Listed, kinds: Iterable[str]) -> Sequence[int]:
        """The links of some kinds, in the order they were made."""
        links = self._links
        if links.count < links.there(index):
            links = self._move("_links", index)
        parts = [links.lists[kind][:] for kind in dict.fromkeys(kinds) if kind in links.lists]
        return parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts))

    def within(
        self, index: Listed, types: Iterable[str] | None, since: Instant, until: Instant, most: int
    ) -> set[int] | None:
        """The events of some types (None: of any) that were ever said to have happened in [since, until); None where they were said so more than
        `most` times."""
        times = self._times
        if times.counts != times.there(index):
            times = self._move("_times", index)
        instant, found = times.instant_in(index), []
        for rows in times.of(types):
            first, last = (bisect_left(rows, at, key=instant) for at in (since, until))
            most -= last - first
            if most < 0:
                return None
            found.append(rows[first:last])
        return {times.event_in(index, row) for row in chain.from_iterable(found)}

    # ------------------------------------------------------------------ keeping up

    def _things_by(self, index: Listed, count: int) -> _Things:
        things = self._things
        if things.count < min(count, things.there(index)):
            things = self._move("_things", index)
        return things

    def _move(self, name: str, index: Listed) -> Any:
        """Lists that were moved on to the present end of the columns."""
        with no_collecting(), self.lock:  # no collection begins while it is held
            lists = getattr(self, name)
            try:
                lists.follow(index)
            except BaseException:  # interrupted, or a column was too short for a moment: begin again
                setattr(self, name, type(lists)())
                raise
            return lists

    def cut(self, index: Listed, things: int, links: int, rows: int, seen: int) -> None:
        """Cut the lists back to so many things, links, rows and occurrences: before the columns are cut, with the lock held until they are."""
        self._things.cut(index, things)
        self._links.cut(index, links)
        self._times.cut(index, rows, seen)


class _Things:
    """The things of each kind and scope."""

    def __init__(self) -> None:
        self.count = 0
        self.lists: dict[tuple[bool, str, str], array[int]] = {}
        self.of_kind: dict[tuple[bool, str], list[array[int]]] = {}
        self.of_scope: dict[tuple[bool, str], list[array[int]]] = {}

    def there(self, index: Listed) -> int:
        return min(len(index.is_event), len(index.kind), len(index.scope))

    def follow(self, index: Listed) -> None:
        count, lists = self.there(index), self.lists
        columns = (_from(each, self.count, count) for each in (index.is_event, index.kind, index.scope))
        for ent, what in enumerate(zip(*columns, strict=True), self.count):
            there = lists.get(what)
            if there is None:
                there = lists[what] = array("i")
                event, kind, scope = what
                self.of_kind.setdefault((event, kind), []).append(there)
                self.of_scope.setdefault((event, scope), []).append(there)
            there.append(ent)
        self.count = count

    def cut(self, index: Listed, count: int) -> None:
        for ent in range(self.count - 1, count - 1, -1):
            self.lists[bool(index.is_event[ent]), index.kind[ent], index.scope[ent]].pop()
        self.count = min(self.count, count)


class _Links:
    """The links of each kind."""

    def __init__(self) -> None:
        self.count = 0
        self.lists: dict[str, array[int]] = {}

    def there(self, index: Listed) -> int:
        return len(index.l_kind)

    def follow(self, index: Listed) -> None:
        count, lists = self.there(index), self.lists
        for link, kind in enumerate(_from(index.l_kind, self.count, count), self.count):
            there = lists.get(kind)
            if there is None:
                there = lists[kind] = array("i")
            there.append(link)
        self.count = count

    def cut(self, index: Listed, count: int) -> None:
        for link in range(self.count - 1, count - 1, -1):
            self.lists[index.l_kind[link]].pop()
        self.count = min(self.count, count)


class _Times:
    """The rows of events, and under `~number` their further occurrences, by when they happened: of each type, and of all (None)."""

    def __init__(self) -> None:
        self.counts = 0, 0  # rows, occurrences
        self.lists: dict[str | None, array[int]] = {None: array("i")}

    def there(self, index: Listed) -> tuple[int, int]:
        return min(len(index.r_ent), len(index.r_from)), min(len(index.s_ent), len(index.s_at))

    def of(self, types: Iterable[str] | None) -> Iterator[array[int]]:
        """The lists of some types; None: the one of all."""
        wanted: Iterable[str | None] = (None,) if types is None else dict.fromkeys(types)
        return (self.lists[type] for type in wanted if type in self.lists)

    def event_in(self, index: Listed, row: int) -> int:
        """The event of a row, or of an occurrence."""
        return index.r_ent[row] if row >= 0 else index.s_ent[~row]

    def instant_in(self, index: Listed) -> Callable[[int], Instant]:
        """What tells when a row begins, or an occurrence happened."""
        r_from, s_at = index.r_from, index.s_at
        return lambda row: r_from[row] if row >= 0 else s_at[~row]

    def follow(self, index: Listed) -> None:
        rows, seen = self.there(index)
        is_event, first = index.is_event, self.counts[0]
        ents = enumerate(_from(index.r_ent, first, rows), first)
        fresh: dict[str | None, list[int]] = {None: [row for row, ent in ents if is_event[ent]]}
        fresh[None] += [~row for row in range(self.counts[1], seen)]
        kinds = index.kind if any(self.counts) else list(index.kind)  # of a saved one nothing is kept
        for row in fresh[None]:
            fresh.setdefault(kinds[self.event_in(index, row)], []).append(row)
        instant = self.instant_in(index)
        for type, some in fresh.items():
            self.lists[type] = _in_order(self.lists.get(type, array("i")), some, instant)
        self.counts = rows, seen

    def cut(self, index: Listed, rows: int, seen: int) -> None:
        if self.counts[0] <= rows and self.counts[1] <= seen:
            return
        gone = [row for row in range(rows, self.counts[0]) if index.is_event[index.r_ent[row]]]
        gone += [~row for row in range(seen, self.counts[1])]
        instant = self.instant_in(index)
        for row in gone:
            for type in (None, index.kind[self.event_in(index, row)]):
                there = self.lists[type]
                del there[there.index(row, bisect_left(there, instant(row), key=instant))]
        self.counts = min(self.counts[0], rows), min(self.counts[1], seen)


def _from(column: Any, start: int, stop: int) -> Iterable[Any]:
    """A part of a column, read so that nothing of a saved one is kept."""
    if start == 0:
        return islice(column, stop)
    return map(column.__getitem__, range(start, stop))


def _in_order(there: array[int], fresh: list[int], instant: Callable[[int], Instant]) -> array[int]:
    """A list with more in it, by their instants. Where those do not all come after it, it is another list: readers go on with the one they have."""
    fresh.sort(key=instant)
    if not fresh or not there or instant(there[-1]) <= instant(fresh[0]):
        there.extend(fresh)
    elif len(fresh) * _SOME < len(there):
        there = there[:]
        for row in fresh:
            there.insert(bisect_right(there, instant(row), key=instant), row)
    else:
        there = array("i", sorted(chain(there, fresh), key=instant))
    return there
