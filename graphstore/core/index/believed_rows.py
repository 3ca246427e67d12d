"""Lists the rows that are believed of a thing, or in a slot, by valid_from, and reads only those from the ledger that a question is about."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from graphstore.values.period import OPEN, Instant


class BelievedRows:
    """Answers by statements on the rows that were stored before the transaction; what that has opened and closed is kept here."""

    def __init__(
        self,
        read: Callable[..., list[int]],
        valid_from: Callable[[int], Instant],
        opened: Iterable[int] = (),
        closed: Iterable[int] = (),
    ) -> None:
        """Prepare the answers.

        Args:
            read: returns the stored rows for a condition, an order and a limit, followed by the values of the condition.
            opened: rows that the transaction has opened, and not closed again.
            closed: stored rows that it has closed.
        """
        self._read, self._from = read, valid_from
        self._opened, self._closed = sorted(opened, key=self._from), set(closed)
        self._all: list[int] | None = None

    def last_before(self, at: Instant) -> int:
        """Return the last row that begins before an instant, or -1."""
        known = self._opened if self._all is None else self._all
        place = bisect_left(known, at, key=self._from)
        found = known[place - 1 : place]
        if self._all is None:
            found += self._stored("valid_from < ?", "valid_from DESC", at)
        return max(found, key=self._from, default=-1)

    def first_since(self, at: Instant) -> int:
        """Return the first row that begins at an instant or later, or -1."""
        known = self._opened if self._all is None else self._all
        place = bisect_left(known, at, key=self._from)
        found = known[place : place + 1]
        if self._all is None:
            found = self._stored("valid_from >= ?", "valid_from", at) + found
        return min(found, key=self._from, default=-1)

    def between(self, start: Instant, stop: Instant) -> list[int]:
        """Return the rows that begin in [start, stop)."""
        known = self._opened if self._all is None else self._all
        found = known[bisect_left(known, start, key=self._from) : bisect_left(known, stop, key=self._from)]
        if self._all is None:
            stored = self._read("valid_from >= ? AND valid_from < ?", "valid_from", -1, start, stop)
            found = sorted([row for row in stored if row not in self._closed] + found, key=self._from)
        return found

    def insert(self, row: int) -> None:
        """Add a row that the transaction opens, or closes no longer."""
        if row in self._closed:
            self._closed.remove(row)
        else:
            self._insert(self._opened, row)
        if self._all is not None:
            self._insert(self._all, row)

    def remove(self, row: int) -> None:
        """Remove a row that the transaction closes, or opens no longer."""
        if row in self._opened:
            self._opened.remove(row)
        else:
            self._closed.add(row)
        if self._all is not None:
            self._all.remove(row)

    def _insert(self, rows: list[int], row: int) -> None:
        begins = self._from(row)
        rows.insert(bisect_left(rows, begins + 1, key=self._from), row)

    def _stored(self, condition: str, order: str, at: Instant) -> list[int]:
        rows = self._read(condition, order, len(self._closed) + 1, at)
        return [row for row in rows if row not in self._closed][:1]

    def _read_all(self) -> list[int]:
        if self._all is None:
            self._all = self.between(-OPEN, OPEN)
        return self._all

    def __bool__(self) -> bool:
        return bool(self._opened) or self.first_since(-OPEN) >= 0

    def __len__(self) -> int:
        return len(self._read_all())

    def __iter__(self) -> Iterator[int]:
        return iter(self._read_all())

    def __getitem__(self, at: Any) -> Any:
        if at == -1 or at == 0:
            row = self.last_before(OPEN) if at else self.first_since(-OPEN)
            if row < 0:
                raise IndexError("nothing is believed")
            return row
        if at == slice(None, 1):
            first = self.first_since(-OPEN)
            return [] if first < 0 else [first]
        return self._read_all()[at]
