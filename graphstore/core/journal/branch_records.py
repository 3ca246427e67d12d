"""What the journal records of branches: where each began, and where its lines are. The trunk's index holds no more of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphstore.core.journal.positions import SHIFT
from graphstore.values.period import Instant, instant


@dataclass(slots=True)
class BranchRecord:
    """One branch, deleted or not: it begins with what the trunk knew at `fork`."""

    name: str
    fork: Instant
    made: Instant
    pieces: list[tuple[int, int]] = field(default_factory=list)  # where its lines are, as (position, length)
    transactions: int = 0
    last: Instant | None = None
    merged: Instant | None = None
    deleted: Instant | None = None

    @property
    def base(self) -> Instant:
        """Up to this instant the trunk has all that the branch has."""
        return self.fork if self.merged is None else self.merged


class BranchRecords:
    """The branches of one journal, in the order they were made."""

    def __init__(self) -> None:
        self._all: list[BranchRecord] = []

    def __iter__(self) -> Iterator[BranchRecord]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BranchRecords) and self._all == other._all

    __hash__ = None  # type: ignore[assignment]

    def find(self, name: str) -> BranchRecord | None:
        """The branch of that name made last, deleted or not."""
        return next((record for record in reversed(self._all) if record.name == name), None)

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
    def loaded(cls, saved: list[list[Any]]) -> BranchRecords:
        """The inverse of `saved`."""
        found = cls()
        for name, fork, made, pieces, *more in saved:
            found.add(BranchRecord(name, fork, made, [(pos, length) for pos, length in pieces], *more))
        return found

    def living(self) -> list[BranchRecord]:
        """Those that were not deleted."""
        return [record for record in self._all if record.deleted is None]

    def add(self, record: BranchRecord) -> None:
        """Add a branch."""
        self._all.append(record)

    def note(self, changes: list[list[Any]], tx: Instant) -> None:
        """Record that branches were made, merged or deleted."""
        for verb, name, *fork in changes:
            if verb == "branch":
                self.add(BranchRecord(name, instant(fork[0]), tx))
                continue
            record = self.find(name)
            assert record is not None
            if verb == "merge":
                record.merged = tx
            else:
                record.deleted = tx

    def add_line(self, name: str, tx: Instant, at: tuple[int, int], *, whole: bool) -> None:
        """Record that a line, or several adjacent ones, were written on a branch."""
        record = self.find(name)
        assert record is not None
        pos, length = at
        if record.pieces and sum(record.pieces[-1]) == pos:
            record.pieces[-1] = (record.pieces[-1][0], record.pieces[-1][1] + length)
        else:
            record.pieces.append((pos, length))
        record.transactions += whole
        record.last = tx

    def move(self, segment: int, to: Any) -> None:
        """Adjust to a rewritten segment: `to` maps old positions to new ones."""
        for record in self._all:
            for number, (pos, length) in enumerate(record.pieces):
                if pos >> SHIFT == segment:
                    start = to(pos)
                    record.pieces[number] = (start, to(pos + length) - start)
