"""Keeps the entries of a session file in columns. A file of 130 MB may hold a million entries, and an object for each would cost twice the file.

An `Entry` is made on request.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import overload

from graphstore.values.period import BEGINNING, EPOCH, MICROSECOND, Instant, moment

Place = tuple[int, int, int]
"""The position of an entry in its file: line number, and offset and length of its JSON in bytes."""
NEVER: Instant = BEGINNING - 1
"""The value in `times` for an entry without a timestamp."""


@dataclass(slots=True)
class Entry:
    """An entry without its body, which is read from the file on request. `offset` and `length` of its JSON are in bytes."""

    position: int
    id: str
    parent_id: str | None
    type: str
    timestamp: datetime | None
    line: int
    offset: int
    length: int
    is_content: bool
    sidechain: bool
    role: str | None


class Entries(Sequence[Entry]):
    """Holds all entries of a file in order. Walks over all entries use the columns; `parents` holds positions, -1 for none."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.parents = array("q")
        self.foreign: dict[int, str] = {}
        """By position: a parent id that was not seen before the entry, as the entry names it."""
        self.times = array("q")
        self.content, self.sidechain = bytearray(), bytearray()
        self._kinds, self._roles = array("I"), array("I")
        self._lines, self._offsets, self._lengths = array("I"), array("Q"), array("Q")
        self._words: list[str] = []
        self._numbers: dict[str | None, int] = {}

    def add(
        self,
        id: str,
        above: int,
        place: Place,
        *,
        kind: str,
        role: str | None,
        at: datetime | None,
        content: bool,
        sidechain: bool,
    ) -> None:
        """Add an entry whose parent is the one at position `above` (-1: none)."""
        self.ids.append(id)
        self.parents.append(above)
        self.times.append(NEVER if at is None else (at - EPOCH) // MICROSECOND)
        self.content.append(content)
        self.sidechain.append(sidechain)
        numbers = self._numbers
        self._kinds.append(numbers[kind] if kind in numbers else self._number(kind))
        self._roles.append(numbers[role] if role in numbers else self._number(role))
        line, offset, length = place
        self._lines.append(line)
        self._offsets.append(offset)
        self._lengths.append(length)

    def move(self, position: int, place: Place) -> None:
        """Record that an entry was written again at another place of the file."""
        self._lines[position], self._offsets[position], self._lengths[position] = place

    def _number(self, word: str | None) -> int:
        self._words.append(word or "")
        return self._numbers.setdefault(word, len(self._words) - 1)

    def type(self, position: int) -> str:
        """Return the type of an entry."""
        return self._words[self._kinds[position]]

    def line(self, position: int) -> int:
        """Return the line of an entry, counted from 1."""
        return self._lines[position]

    def _at(self, position: int) -> Entry:
        above, time = self.parents[position], self.times[position]
        parent = self.foreign.get(position) if self.foreign else None
        return Entry(
            position,
            self.ids[position],
            self.ids[above] if parent is None and above >= 0 else parent,
            self._words[self._kinds[position]],
            None if time == NEVER else moment(time),
            self._lines[position],
            self._offsets[position],
            self._lengths[position],
            bool(self.content[position]),
            bool(self.sidechain[position]),
            self._words[self._roles[position]] or None,
        )

    __hash__ = None  # type: ignore[assignment]  # mutable, so not hashable

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Entry]:
        return map(self._at, range(len(self.ids)))

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> list[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | list[Entry]:
        if isinstance(at, slice):
            return [self._at(position) for position in range(*at.indices(len(self.ids)))]
        size = len(self.ids)
        if not -size <= at < size:
            raise IndexError(f"there is no entry {at}: the file has {size}")
        return self._at(at % size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Entries)):
            return NotImplemented
        return len(self) == len(other) and all(one == its for one, its in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"
