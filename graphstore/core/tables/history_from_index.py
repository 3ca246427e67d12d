"""Read the whole history from the index: of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index
from graphstore.core.journal.seam import Seam
from graphstore.core.tables.history_source import (
    ChangedEvent,
    ClosedLink,
    ClosedVersion,
    Event,
    Link,
    Node,
    Occurrence,
    Operation,
    Reached,
    Thing,
    Version,
)
from graphstore.values.period import OPEN, Instant


class IndexHistory:
    """Reads what an index has committed. A row that an open transaction has closed counts as open."""

    def __init__(self, index: Index, journal: Seam) -> None:
        self._index, self._journal = index, journal

    def reading(self) -> AbstractContextManager[object]:
        """Return a block that reads one state of the index: the caller holds its lock."""
        return nullcontext()

    def reached(self) -> Reached:
        """Return how far the index goes."""
        index, journal = self._index, self._journal
        mark = index.mark()
        return Reached(mark, journal.end, journal.digest, index.o_tx[mark.ops - 1] if mark.ops else 0)

    def goes_on(self, done: Reached, now: Reached) -> bool:
        """Return True: who replaces the index lets go of the tables that follow it."""
        return True

    def transactions(self, upto: Reached) -> int:
        """Return how many transactions there are."""
        return self._index.transactions

    def promoted(self) -> Sequence[str]:
        """Return the kinds of link that were given tables of their own."""
        return self._index.promoted

    def things(self, first: int, stop: int) -> list[Thing]:
        """Return nodes and events."""
        index = self._index
        return [Thing(ent, index.names[ent], index.is_event[ent]) for ent in range(first, stop)]

    def nodes(self, numbers: Sequence[int]) -> list[Node]:
        """Return the rows of these nodes."""
        index = self._index
        return [
            Node(index.names[ent], index.kind[ent], index.key[ent], index.scope[ent], index.born[ent])
            for ent in numbers
        ]

    def events(self, numbers: Sequence[int]) -> list[Event]:
        """Return the rows of these events."""
        pending = self._pending()
        return [self._event(ent, pending) for ent in numbers]

    def _event(self, ent: int, pending: set[int]) -> Event:
        index, ver = self._index, self._index.versions_of[ent][0]
        # an event recorded and taken back in one transaction held at no instant, but a link may name it
        rows, born, gone = index.rows_of[ent], index.born[ent], index.gone.get(ent, -1)
        end, by = self._end(ent, pending)
        return Event(
            index.names[ent],
            index.kind[ent],
            index.r_from[rows[0]] if rows else born,
            born,
            end,
            index.r_op[rows[0]] if rows else None,
            by,
            index.word(ent),
            self._data(index.v_pos[ver], index.v_len[ver]),
            self._data(index.o_pos[gone], index.o_len[gone]) if gone >= 0 else None,
        )

    def _end(self, ent: int, pending: set[int]) -> tuple[Instant, int | None]:
        """Return until when an event is believed, by its last committed row, and what closed that."""
        index, committed = self._index, self._index.mark().rows
        row = next((row for row in reversed(index.rows_of[ent]) if row < committed), -1)
        if row < 0:
            return index.born[ent], None
        return _closed(index.r_end[row], index.r_close[row], row in pending)

    def versions(self, first: int, stop: int) -> list[Version]:
        """Return those of the periods that are of nodes."""
        index, pending = self._index, self._pending()
        found = []
        for row in range(first, stop):
            ent = index.r_ent[row]
            if index.is_event[ent]:
                continue
            ver = index.r_ver[row]
            op = index.v_op[ver]
            found.append(
                Version(
                    row,
                    index.names[ent],
                    index.v_num[ver],
                    *self._told(op, index.r_tx[row]),
                    index.r_from[row],
                    index.r_to[row],
                    index.r_tx[row],
                    *_ends(index.r_end[row], index.r_op[row], index.r_close[row], row in pending),
                    index.word(ent),
                    self._data(index.v_pos[ver], index.v_len[ver]),
                )
            )
        return found

    def occurrences(self, first: int, stop: int) -> list[Occurrence]:
        """Return occurrences."""
        index = self._index
        return [
            Occurrence(row, index.names[index.s_ent[row]], index.s_at[row], index.s_tx[row], index.s_op[row])
            for row in range(first, stop)
        ]

    def operations(self, first: int, stop: int) -> list[Operation]:
        """Return operations."""
        index = self._index
        return [
            Operation(
                op,
                index.o_tx[op],
                index.o_verb[op],
                index.o_subject[op],
                index.o_author[op],
                self._data(index.o_pos[op], index.o_len[op]),
            )
            for op in range(first, stop)
        ]

    def links(self, first: int, stop: int) -> list[Link]:
        """Return periods of links."""
        index = self._index
        pending = set(index.link_closings[index.mark().link_closings :])
        found = []
        for row in range(first, stop):
            link, claim = index.k_link[row], index.k_claim[row]
            found.append(
                Link(
                    row,
                    index.l_name[link],
                    *self._ends_of(link),
                    index.c_strength[claim] or None,
                    index.c_inferred[claim],
                    index.c_by[claim],
                    *self._told(index.c_op[claim], index.k_tx[row]),
                    index.k_from[row],
                    index.k_to[row],
                    index.k_tx[row],
                    *_ends(index.k_end[row], index.k_op[row], index.k_close[row], row in pending),
                    self._data(index.c_pos[claim], index.c_len[claim]),
                )
            )
        return found

    def closed_versions(self, since: Mark, upto: Mark) -> list[ClosedVersion]:
        """Return what was closed between two marks."""
        index = self._index
        rows = dict.fromkeys(index.closings[since.closings : upto.closings])
        return [
            ClosedVersion(row, index.r_end[row], index.r_close[row])
            for row in rows
            if not index.is_event[index.r_ent[row]]
        ]

    def changed_events(self, since: Mark, upto: Mark) -> list[ChangedEvent]:
        """Return the events of which a period was opened or closed between two marks."""
        index, pending = self._index, self._pending()
        rows = [*range(since.rows, upto.rows), *index.closings[since.closings : upto.closings]]
        events = dict.fromkeys(ent for ent in map(index.r_ent.__getitem__, rows) if index.is_event[ent])
        return [ChangedEvent(ent, index.names[ent], *self._end(ent, pending)) for ent in events]

    def closed_links(self, since: Mark, upto: Mark) -> list[ClosedLink]:
        """Return what was closed of links between two marks."""
        index = self._index
        return [
            ClosedLink(row, *self._ends_of(index.k_link[row]), index.k_end[row], index.k_close[row])
            for row in dict.fromkeys(index.link_closings[since.link_closings : upto.link_closings])
        ]

    def _pending(self) -> set[int]:
        """Return the rows closed by a transaction that is not committed."""
        index = self._index
        return set(index.closings[index.mark().closings :])

    def _told(self, op: int, recorded: Instant) -> tuple[str | None, Instant, int | None]:
        """Return who recorded something first, when, and in which operation."""
        index = self._index
        return (index.o_author[op], index.o_tx[op], op) if op >= 0 else (None, recorded, None)

    def _ends_of(self, link: int) -> tuple[str, str, str, int, int]:
        """Return the kind of a link, the ids of what it joins, and whether these are events."""
        index = self._index
        source, target = index.l_src[link], index.l_tgt[link]
        return (
            index.l_kind[link],
            index.names[source],
            index.names[target],
            index.is_event[source],
            index.is_event[target],
        )

    def _data(self, pos: int, length: int) -> bytes | None:
        return self._journal.raw(pos, length) if length else None


def _closed(end: Instant, by: int, is_pending: bool) -> tuple[Instant, int | None]:
    return (OPEN, None) if by < 0 or is_pending else (end, by)


def _ends(end: Instant, opened: int, closed: int, is_pending: bool) -> tuple[Instant, int, int | None]:
    end, by = _closed(end, closed, is_pending)
    return end, opened, by
