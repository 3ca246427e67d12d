"""Records what a ledger knows of branches: where each began, and how far it was merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphstore.values.period import Instant, instant


@dataclass(slots=True)
class BranchRecord:
    """One branch, deleted or not: it begins with what the trunk, or its parent branch, knew at `fork`."""

    name: str
    fork: Instant
    made: Instant
    pieces: list[tuple[int, int]] = field(default_factory=list)  # where its lines are, as (position, length)
    transactions: int = 0
    last: Instant | None = None
    merged: Instant | None = None
    deleted: Instant | None = None
    parent: BranchRecord | None = None
    pulled: Instant | None = None
    covered: Instant | None = None  # up to here it came to the trunk with a branch that began from it

    @property
    def base(self) -> Instant:
        """Return the instant up to which the trunk has all that the branch has."""
        if self.merged is not None:
            own = self.merged
        else:
            own = self.fork if self.parent is None else min(self.fork, self.parent.base)
        return own if self.covered is None else max(own, self.covered)

    @property
    def latest(self) -> Instant:
        """Return the instant up to which the branch has all that the trunk has."""
        if self.pulled is not None:
            return self.pulled
        return self.fork if self.parent is None else min(self.fork, self.parent.latest)

    @property
    def last_change(self) -> Instant | None:
        """Return when something was recorded last that the branch has and the trunk had not from the start."""
        above = None if self.parent is None else self.parent.last_change
        inherited = None if above is None else min(above, self.fork)
        return inherited if self.last is None else self.last


class BranchRecords(list[BranchRecord]):
    """The branches of one ledger, in the order they were made."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, BranchRecord] = {}  # of each name the one made last

    def find(self, name: str) -> BranchRecord | None:
        """Return the branch of that name made last, deleted or not."""
        return self._last.get(name)

    def made(self, name: str, at: Instant) -> BranchRecord | None:
        """Return the branch of that name that was made at an instant: a name may be used again."""
        return next((record for record in self if (record.name, record.made) == (name, at)), None)

    def living(self) -> list[BranchRecord]:
        """Return those that were not deleted."""
        return [record for record in self if record.deleted is None]

    def begun_from(self, record: BranchRecord) -> list[BranchRecord]:
        """Return the branches that began from a branch, deleted ones too."""
        return [each for each in self if each.parent is record]

    def add(self, record: BranchRecord) -> None:
        """Add a branch."""
        self.append(record)
        self._last[record.name] = record

    def note(self, changes: list[list[Any]], tx: Instant) -> None:
        """Record that branches were made, merged or deleted, or took over what the trunk had."""
        for verb, name, *fork in changes:
            if verb == "branch":
                parent = self.find(fork[1]) if len(fork) > 1 else None
                self.add(BranchRecord(name, instant(fork[0]), tx, parent=parent))
                continue
            record = self.find(name)
            assert record is not None
            if verb == "merge":
                record.merged = tx
                while record.parent is not None:
                    upto, record = record.fork, record.parent
                    record.covered = upto if record.covered is None else max(record.covered, upto)
            elif verb == "pull":
                record.pulled = tx
            else:
                record.deleted = tx
