"""The entries of a session file, kept in columns: a file of 130 MB may hold a million of them, and an object for each would cost twice the file.

An `Entry` is made when it is requested.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import overload

from graphstore.values.period import BEGINNING, EPOCH, MICROSECOND, Instant, moment

Place = tuple[int, int, int]
"""Where an entry stands in its file: the line, the offset and the length of its JSON in bytes."""
NEVER: Instant = BEGINNING - 1
"""Stands in `times` for an entry that does not say when it was."""


@dataclass(slots=True)
class Entry:
    """An entry without its body: that is read from the file on request. `offset` and `length` are those of its JSON, in bytes."""

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
    """All entries of a file in order. The columns are for walks over all of them: `parents` are positions, -1 where there is none."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.parents = array("q")
        self.foreign: dict[int, str] = {}
        """Parents that were not seen before the entry, as it names them."""
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
        """Add an entry that hangs on the one at `above`."""
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
        """Note that an entry was written again, as it is now, at another place of the file."""
        self._lines[position], self._offsets[position], self._lengths[position] = place

    def _number(self, word: str | None) -> int:
        self._words.append(word or "")
        return self._numbers.setdefault(word, len(self._words) - 1)

    def type(self, position: int) -> str:
        """The type of an entry."""
        return self._words[self._kinds[position]]

    def line(self, position: int) -> int:
        """The line of an entry, from 1 on."""
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

    __hash__ = None  # type: ignore[assignment]  # it grows

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
