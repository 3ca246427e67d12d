"""Branches as the journal tells of them: where each began, and where its lines lie. The trunk notes no more of them than that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphstore.core.journal.positions import SHIFT
from graphstore.values.period import Instant, instant


@dataclass(slots=True)
class Strand:
    """One branch, deleted or not: it begins with what the trunk knew at `fork`."""

    name: str
    fork: Instant
    made: Instant
    pieces: list[tuple[int, int]] = field(default_factory=list)  # where its lines lie, as (position, length)
    transactions: int = 0
    last: Instant | None = None
    merged: Instant | None = None
    deleted: Instant | None = None

    @property
    def base(self) -> Instant:
        """Up to when the trunk has what the branch has."""
        return self.fork if self.merged is None else self.merged


class Strands:
    """The branches of one journal, in the order they were made."""

    def __init__(self) -> None:
        self._all: list[Strand] = []

    def __iter__(self) -> Iterator[Strand]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strands) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    def find(self, name: str) -> Strand | None:
        """The branch of that name made last, deleted or not."""
        return next((strand for strand in reversed(self._all) if strand.name == name), None)

    def saved(self) -> list[list[Any]]:
        """All of them as plain lists."""
        return [
            [
                each.name,
                each.fork,
                each.made,
                each.pieces,
                each.transactions,
                each.last,
                each.merged,
                each.deleted,
            ]
            for each in self._all
        ]

    @classmethod
    def loaded(cls, told: list[list[Any]]) -> Strands:
        """What `saved` gave."""
        found = cls()
        for name, fork, made, pieces, *more in told:
            found.add(Strand(name, fork, made, [(pos, length) for pos, length in pieces], *more))
        return found

    def living(self) -> list[Strand]:
        """Those that were not deleted."""
        return [strand for strand in self._all if strand.deleted is None]

    def add(self, strand: Strand) -> None:
        """One more."""
        self._all.append(strand)

    def note(self, told: list[list[Any]], tx: Instant) -> None:
        """Branches were made, merged or deleted."""
        for verb, name, *fork in told:
            if verb == "branch":
                self.add(Strand(name, instant(fork[0]), tx))
                continue
            strand = self.find(name)
            assert strand is not None
            if verb == "merge":
                strand.merged = tx
            else:
                strand.deleted = tx

    def tell(self, name: str, tx: Instant, at: tuple[int, int], *, whole: bool) -> None:
        """A line, or several that follow each other, were told on a branch."""
        strand = self.find(name)
        assert strand is not None
        pos, length = at
        if strand.pieces and sum(strand.pieces[-1]) == pos:
            strand.pieces[-1] = (strand.pieces[-1][0], strand.pieces[-1][1] + length)
        else:
            strand.pieces.append((pos, length))
        strand.transactions += whole
        strand.last = tx

    def move(self, segment: int, to: Any) -> None:
        """A segment was written anew: `to` says where lies what lay at a position."""
        for strand in self._all:
            for number, (pos, length) in enumerate(strand.pieces):
                if pos >> SHIFT == segment:
                    start = to(pos)
                    strand.pieces[number] = (start, to(pos + length) - start)
