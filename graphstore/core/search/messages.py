"""An index of messages by sender, thread and trace: read from the bodies once, then kept in memory.

The body of an event never changes, so it is indexed once for all coordinates. A query takes the shortest list of its filters, checks
the others in columns, and then whether the event stands at its coordinate. All of it is a copy, made on first use.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from itertools import compress
from operator import itemgetter
from typing import Any

import orjson

from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import kept_place
from graphstore.core.journal.line import FORGETTING
from graphstore.core.search.source import At, Source
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant

FIELDS = ("trace", "sender", "thread", "type", "classification", "authorized")
"""The indexed fields of messages. By trace other events are found too."""
_BATCH = 4_096
_FIRST = 256  # rows checked at once, then four times as many
_MANY = 4_096  # rows that are checked in columns
_FEW = 8  # of so many messages one: then each is looked at by itself
_Place = tuple[Instant, str]
_Test = tuple["array[int]", int]  # a column, and the number in it; 0: any number but that

Fields = dict[str, Any]
"""The indexed fields of an event; one that is no message has no `authorized`."""


class Postings:
    """The messages and traces of one store. Each read follows the index first, one thread at a time.

    Lists of rows only grow at their end: where a row belongs before others, a new list replaces the old one, which readers may go on with.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # nobody waits for the store's lock while he holds it
        self._index: Index | None = None
        self._asked: tuple[Index | None, dict[int, bool]] = (None, {})  # events whose bodies were looked at
        self._begin()

    def _begin(self) -> None:
        self._rows = 0  # indexed rows
        self._ops = 0  # operations checked for forgetting
        self._messages = array("q")
        self._numbers: dict[str, dict[Any, int]] = {field: {} for field in FIELDS}
        self._lists: dict[str, list[array[int]]] = {field: [array("q")] for field in FIELDS}  # number 0: none
        self._columns: dict[str, array[int]] = {field: array("I") for field in FIELDS}  # by row

    # ------------------------------------------------------------------ questions

    def messages(
        self,
        sight: At,
        wanted: Mapping[str, Any],
        since: Instant,
        until: Instant,
        before: _Place | None = None,
        among: set[int] | None = None,
    ) -> Iterator[int]:
        """The rows of messages that stand here, happened in [since, until) and have these values; newest first, from below `before` on. `among`: only of
        these entities."""
        index = sight.index
        self._follow(sight.core)
        until = min(until, sight.valid + 1)
        if among is not None and len(among) * _FEW < len(self._messages):
            committed = self._of(index, among, wanted, since, until, before)
        else:
            committed = self._committed(index, wanted, since, until, before)
        pending = self._pending(sight.core, wanted, since, until, before)
        place = _placing(index)
        rows = merge(committed, pending, key=place, reverse=True) if pending else committed
        known_rows = bisect_right(index.r_tx, sight.tx)
        for row in rows:
            ent = index.r_ent[row]
            if among is not None and ent not in among:
                continue
            if row < known_rows and index.find(ent, sight.valid, sight.tx) == row:
                yield row

    def voices(self, sight: At, field: str) -> Iterator[tuple[str, list[int]]]:
        """The rows of messages that stand here by what they have in a field, newest first; who has the newest one comes first."""
        self._follow(sight.core)
        column, names = self._columns[field], {number: name for name, number in self._numbers[field].items()}
        pending = {row: fields.get(field) for row, fields in self._open_fields(sight.core)}
        found: dict[str, list[int]] = {}
        for row in self.messages(sight, {}, -OPEN, OPEN):
            name = pending[row] if row in pending else names.get(column[row]) if row < len(column) else None
            if name is not None:
                found.setdefault(name, []).append(row)
        return iter(found.items())

    def admitted(self, sight: At) -> Callable[[int], bool]:
        """Which entities are no messages, or were authorized. The body of an event is read when it is asked for: to note those of all takes long."""
        core, index = sight.core, sight.index
        with self._lock:
            if self._asked[0] is not index:
                self._asked = index, {}
        known, is_event = self._asked[1], index.is_event

        def is_admitted(ent: int) -> bool:
            if not is_event[ent]:
                return True
            found = known.get(ent)
            if found is None:
                ver = index.versions_of[ent][0]
                raw = core.raw(index.v_pos[ver], index.v_len[ver]) if index.v_len[ver] else b""
                found = b'"authorized":false' not in raw or orjson.loads(raw).get("authorized") is not False
                if ver < index.mark().versions:  # else it may be rolled back
                    known[ent] = found
            return found or ent in index.gone

        return is_admitted

    def around(self, sight: At, row: int, most: int) -> list[int]:
        """The rows of the thread of a message, itself and up to `most` before and after it, by when they happened, then as they were recorded.
        None of an open transaction."""
        index = sight.index
        self._follow(sight.core)
        number = self._columns["thread"][row] if row < self._rows else 0
        if not number:
            return []
        rows, start = self._lists["thread"][number], index.r_from.__getitem__
        known = bisect_right(index.r_tx, sight.tx)

        def stands(each: int) -> bool:
            return each < known and index.find(index.r_ent[each], sight.valid, sight.tx) == each

        def side(places: range) -> Iterator[int]:
            """Those that stand, as many as are wanted, and whatever happened at the instant of the last."""
            found, last = 0, 0
            for each in map(rows.__getitem__, places):
                if found >= most and start(each) != last:
                    return
                if stands(each):
                    found, last = found + 1, start(each)
                    yield each

        low, high = (cut(rows, start(row), key=start) for cut in (bisect_left, bisect_right))
        now = filter(stands, rows[low:high])
        near = [*side(range(low - 1, -1, -1)), *now, *side(range(high, len(rows)))]
        near.sort(key=lambda each: (start(each), index.r_ent[each]))
        at = near.index(row) if row in near else -most - 1
        return near[max(0, at - most) : at + most + 1] if at >= 0 else []

    def trace(self, sight: At, trace_id: str) -> list[int]:
        """The events of a trace that have happened here, and the evicted ones that had, in the order they were first known."""
        index, core = sight.index, sight.core
        self._follow(core)
        number = self._numbers["trace"].get(trace_id)
        rows = [] if number is None else list(self._lists["trace"][number])
        rows += [row for row, fields in self._open_fields(core) if fields.get("trace") == trace_id]
        known = {index.r_ent[row] for row in rows}
        return [ent for ent in sorted(known) if index.born[ent] <= sight.tx and _stood(sight, ent)]

    def traces(self, sight: At) -> list[str]:
        """The ids of the traces of which something had begun by here, in the order they were first known."""
        import numpy as np

        self._follow(sight.core)
        index, column, numbers = sight.index, self._columns["trace"], self._numbers["trace"]
        begun = np.frombuffer(index.r_from[: len(column)].tobytes(), np.int64) <= sight.valid
        there = np.bincount(
            np.frombuffer(column.tobytes(), np.uint32)[: len(begun)][begun],
            minlength=len(self._lists["trace"]),
        )
        kept = [name for name, number in numbers.items() if there[number] and self._lists["trace"][number]]
        open_ones = (fields["trace"] for _, fields in self._open_fields(sight.core) if "trace" in fields)
        return list(dict.fromkeys([*kept, *open_ones]))

    def _committed(
        self, index: Index, wanted: Mapping[str, Any], since: Instant, until: Instant, before: _Place | None
    ) -> Iterator[int]:
        numbers = {field: self._numbers[field].get(value, 0) for field, value in wanted.items()}
        lists = {field: self._lists[field][number] for field, number in numbers.items()}
        by = min(lists, key=lambda field: len(lists[field]), default="")
        shortest = lists.get(by, self._messages)
        tests = [(self._columns[field], number) for field, number in numbers.items() if field != by]
        if by == "trace":  # the only list with events that are no messages
            tests.append((self._columns["authorized"], 0))
        starts = index.r_from.__getitem__
        low, high = bisect_left(shortest, since, key=starts), bisect_left(shortest, until, key=starts)
        if before is not None:
            high = min(high, bisect_left(shortest, before, key=_placing(index)))
        step = _FIRST
        while high > low:
            rows = shortest[max(low, high - step) : high][::-1]
            high, step = high - len(rows), step * 4 if step < _MANY else len(shortest)
            yield from _passing_many(rows, tests) if len(rows) > _MANY else _passing(rows, tests)

    def _of(
        self,
        index: Index,
        ents: set[int],
        wanted: Mapping[str, Any],
        since: Instant,
        until: Instant,
        before: _Place | None,
    ) -> Iterator[int]:
        """The same of few entities, each looked at."""
        tests = [
            (self._columns[field], self._numbers[field].get(value, 0)) for field, value in wanted.items()
        ]
        authorized, place = self._columns["authorized"], _placing(index)
        rows = [
            row
            for ent in ents
            if index.is_event[ent]
            for row in index.rows_of[ent]
            if row < self._rows
            and authorized[row]
            and since <= index.r_from[row] < until
            and (before is None or place(row) < before)
            and all(number and column[row] == number for column, number in tests)
        ]
        return iter(sorted(rows, key=place, reverse=True))

    def _pending(
        self, core: Source, wanted: Mapping[str, Any], since: Instant, until: Instant, before: _Place | None
    ) -> list[int]:
        index = core.index
        place = _placing(index)
        rows = [
            row
            for row, fields in self._open_fields(core)
            if "authorized" in fields
            and wanted.items() <= fields.items()
            and since <= index.r_from[row] < until
            and (before is None or place(row) < before)
        ]
        return sorted(rows, key=place, reverse=True)

    def _open_fields(self, core: Source) -> list[tuple[int, Fields]]:
        """The fields of events in an open transaction: read each time, since it may be rolled back."""
        rows = range(core.index.mark().rows, len(core.index.r_ent))
        return _fields_of(core, rows) if rows else []

    # ------------------------------------------------------------------ following

    def _follow(self, core: Source) -> None:
        """Index what was committed since, and drop what was forgotten."""
        index = core.index
        with self._lock:
            if self._index is not index:
                self._begin()
                self._index, self._ops = index, index.mark().ops
            self.drop(index)
            goal = index.mark().rows
            if self._rows < goal:
                self._replaced: dict[
                    int, array[int]
                ] = {}  # the lists that no other thread has yet, by identity
                try:
                    with no_collecting():
                        for lo in range(self._rows, goal, _BATCH):
                            self._note(core, range(lo, min(lo + _BATCH, goal)))
                    if index.is_forgetting():
                        raise RuntimeError("something is being forgotten. Read again")
                except BaseException:
                    self._index = None  # interrupted between two columns: begin again
                    raise

    def _note(self, core: Source, rows: range) -> None:
        place, more = _placing(core.index), bytes(4 * len(rows))
        for column in self._columns.values():
            column.frombytes(more)
        for row, fields in _fields_of(core, rows):
            if "authorized" in fields:
                self._messages = self._with(self._messages, row, place)
            for field, value in fields.items():
                numbers, lists = self._numbers[field], self._lists[field]
                number = numbers.setdefault(value, len(lists))
                if number == len(lists):
                    lists.append(array("q"))
                lists[number] = self._with(lists[number], row, place)
                self._columns[field][row] = number
        self._rows = rows.stop

    def _with(self, rows: array[int], row: int, place: Any) -> array[int]:
        if not rows or place(rows[-1]) <= place(row):
            rows.append(row)
            return rows
        own = self._replaced.get(id(rows))
        if own is not rows:
            own = rows[:]
            self._replaced[id(own)] = own
        insort(own, row, key=place)
        return own

    def drop(self, index: Index) -> None:
        """Drop what was forgotten. An evicted event keeps its trace."""
        with self._lock:
            ops = index.mark().ops  # an open transaction may still be rolled back
            if self._index is not index or self._ops >= ops:
                return
            fresh = [
                index.ids[index.o_subject[op]]
                for op in range(self._ops, ops)
                if index.o_verb[op] in FORGETTING and index.o_subject[op]
            ]
            self._ops = ops
            evicted = {row for ent in fresh for row in index.rows_of[ent] if row < self._rows}
            if not evicted:
                return
            erased = {row for row in evicted if index.word(index.r_ent[row]) == "erased"}
            self._messages = _without(self._messages, evicted)
            for field in FIELDS:
                gone = erased if field == "trace" else evicted
                column, lists = self._columns[field], self._lists[field]
                for number in {column[row] for row in gone} - {0}:
                    lists[number] = _without(lists[number], gone)
                for row in gone:
                    column[row] = 0
                for value in [value for value, number in self._numbers[field].items() if not lists[number]]:
                    del self._numbers[field][value]


def _passing(rows: array[int], tests: list[_Test]) -> array[int]:
    for column, number in tests:
        same = number.__eq__ if number else (0).__ne__
        rows = array("q", compress(rows, map(same, map(column.__getitem__, rows))))
    return rows


def _passing_many(rows: array[int], tests: list[_Test]) -> array[int]:
    """The same over whole columns: ten times as fast for many rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def whole(values: array[int]) -> pa.Array:
        kind = pa.int64() if values.typecode == "q" else pa.uint32()
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])

    left = whole(rows)
    for column, number in tests:
        values = whole(column[:]).take(left)  # a copy: an array with an exported buffer cannot grow
        left = left.filter(pc.equal(values, number) if number else pc.not_equal(values, 0))
    found = array("q")
    found.frombytes(memoryview(left.buffers()[1])[: 8 * len(left)] if len(left) else b"")
    return found


def _fields_of(core: Source, rows: range) -> list[tuple[int, Fields]]:
    """The rows of messages and of events in a trace, in order, each with its fields."""
    index = core.index
    wanted, raw, found = [], [], list[tuple[int, Fields]]()
    for row in rows:
        ent, ver = index.r_ent[row], index.r_ver[row]
        if not index.is_event[ent]:
            continue
        if ent in index.gone:
            trace = kept_place(index, core.raw, ent).get("trace_id")
            if trace is not None:
                found.append((row, {"trace": trace}))
        elif index.v_len[ver]:
            wanted.append(row)
            raw.append(bytes(core.raw(index.v_pos[ver], index.v_len[ver])))
    for row, body in zip(wanted, orjson.loads(b"[%b]" % b",".join(raw)), strict=True):
        if fields := message_fields(index.kind[index.r_ent[row]], body):
            found.append((row, fields))
    return sorted(found, key=itemgetter(0))


def message_fields(type: str, body: Json) -> Fields:
    """The indexed fields of an event of this type with this body."""
    fields: Fields = {}
    if "trace_id" in body:
        fields["trace"] = body["trace_id"]
    authorized = authorized_of(type, body)
    if authorized is not None:
        fields |= {"authorized": authorized, "type": type}
        fields |= {name: body[name] for name in ("sender", "thread", "classification") if name in body}
    return fields


def _stood(sight: At, ent: int) -> bool:
    """Whether an event has happened and is believed here, or was before it was evicted."""
    index = sight.index
    if index.word(ent) != "evicted":
        return index.find(ent, sight.valid, sight.tx) >= 0
    before = min(sight.tx, index.o_tx[index.gone[ent]] - 1)
    return index.stood(ent, sight.valid, before) in ("stands", "superseded")


def _placing(index: Index) -> Any:
    """Where a row stands among messages: by when it happened, then by its id."""
    start, ent, names = index.r_from, index.r_ent, index.names
    return lambda row: (start[row], names[ent[row]])


def _without(rows: array[int], gone: set[int]) -> array[int]:
    return array("q", (row for row in rows if row not in gone))
