"""Lists the believed rows of a thing or a slot by valid_from. From a long list it reads only the rows that are needed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, overload

from graphstore.values.period import OPEN, Instant


class BelievedRows:
    """The believed rows, in memory if they are few. If they are many, statements read those stored before the transaction."""

    def __init__(
        self,
        begins: Callable[[int], Instant],
        rows: Iterable[int] = (),
        read: Callable[..., list[int]] | None = None,
        closed: Iterable[int] = (),
    ) -> None:
        """Prepare the list.

        Args:
            begins: returns the valid_from of a row.
            rows: all rows; with `read`, only those that the transaction has opened and not closed.
            read: returns the stored rows for a condition, an order, a limit and the values of the condition; None if `rows` has all.
            closed: stored rows that the transaction has closed.
        """
        self._begins, self._read = begins, read
        self._rows, self._closed = sorted(rows, key=begins), set(closed)

    def last_before(self, at: Instant) -> int:
        """Return the last row that starts before an instant, or -1."""
        place = bisect_left(self._rows, at, key=self._begins)
        found = self._rows[place - 1 : place] + self._stored("valid_from < ?", "valid_from DESC", at)
        return max(found, key=self._begins, default=-1)

    def first_since(self, at: Instant) -> int:
        """Return the first row that starts at an instant or later, or -1."""
        place = bisect_left(self._rows, at, key=self._begins)
        found = self._stored("valid_from >= ?", "valid_from", at) + self._rows[place : place + 1]
        return min(found, key=self._begins, default=-1)

    def between(self, start: Instant, stop: Instant) -> list[int]:
        """Return the rows that start in [start, stop)."""
        begins = self._begins
        found = self._rows[
            bisect_left(self._rows, start, key=begins) : bisect_left(self._rows, stop, key=begins)
        ]
        if self._read is not None:
            stored = self._read("valid_from >= ? AND valid_from < ?", "valid_from", -1, start, stop)
            found = sorted([row for row in stored if row not in self._closed] + found, key=begins)
        return found

    def insert(self, row: int) -> None:
        """Add a row that the transaction opens, or whose closing it undoes."""
        if self._read is not None and row in self._closed:
            self._closed.remove(row)
        else:
            insort(self._rows, row, key=self._begins)

    def remove(self, row: int) -> None:
        """Remove a row that the transaction closes, or whose opening it undoes."""
        if self._rows[-1:] == [row]:
            self._rows.pop()
        elif self._read is None or row in self._rows:
            self._rows.remove(row)
        else:
            self._closed.add(row)

    def _stored(self, condition: str, order: str, at: Instant) -> list[int]:
        """Return the first stored row that matches and is not closed, as a list; empty if all rows are in memory."""
        if self._read is None:
            return []
        rows = self._read(condition, order, len(self._closed) + 1, at)
        return [row for row in rows if row not in self._closed][:1]

    def _all(self) -> list[int]:
        if self._read is not None:
            self._rows, self._read = self.between(-OPEN, OPEN), None
        return self._rows

    def __bool__(self) -> bool:
        return bool(self._rows) or self.first_since(-OPEN) >= 0

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: Any) -> Any:
        if self._read is None or at not in (0, -1, slice(None, 1)):
            return self._all()[at]
        row = self.last_before(OPEN) if at == -1 else self.first_since(-OPEN)
        if row < 0 and isinstance(at, int):
            raise IndexError("nothing is believed")
        return row if isinstance(at, int) else [row][: row >= 0]
