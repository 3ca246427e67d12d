"""Reads from the rows of a ledger which branches exist, where each forked, and how far it was merged and has pulled."""

from __future__ import annotations

from dataclasses import dataclass

from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.database import RowReader
from graphstore.values.period import Instant

_LINES = "SELECT number, name, parent, fork FROM line ORDER BY number"
_CHANGES = """
SELECT o.tx, o.verb, o.subject FROM (SELECT DISTINCT name FROM line) l CROSS JOIN operation o ON o.subject = l.name
WHERE o.verb IN ('branch', 'merge', 'delete_branch') ORDER BY o.number
"""
# what the trunk forgets is recorded on each branch too, but is not a transaction there
_OWN = f"o.number >= l.number * {SPAN} AND o.number < (l.number + 1) * {SPAN}"
_RECORDED = f"{_OWN} AND o.verb NOT IN ('evict', 'erase')"
_LAST = f"""
SELECT l.number, (SELECT o.tx FROM all_operation o WHERE {_RECORDED} ORDER BY o.number DESC LIMIT 1),
       (SELECT o.tx FROM all_operation o WHERE o.subject = l.name AND {_OWN} AND o.verb = 'pull' ORDER BY o.number DESC LIMIT 1)
FROM line l
"""
_TRANSACTIONS = (
    f"SELECT l.number, (SELECT count(DISTINCT o.tx) FROM all_operation o WHERE {_RECORDED}) FROM line l"
)


@dataclass(slots=True)
class BranchRecord:
    """One branch, deleted or not. It inherits what the trunk, or its parent branch, knew at `fork`."""

    name: str
    fork: Instant
    made: Instant
    parent: BranchRecord | None
    transactions: int = 0
    last: Instant | None = None
    merged: Instant | None = None
    deleted: Instant | None = None
    pulled: Instant | None = None
    covered: Instant | None = None  # the trunk has it up to here, by merges of branches that forked from it

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
        """Return the tx of the last change that the branch has and did not inherit from the trunk; None if there is none."""
        above = None if self.parent is None else self.parent.last_change
        inherited = None if above is None else min(above, self.fork)
        return inherited if self.last is None else self.last

    def note_merge(self, tx: Instant) -> None:
        """Record a merge of the branch into the trunk. What it has inherited from parent branches came with it."""
        self.merged, record = tx, self
        while record.parent is not None:
            upto, record = record.fork, record.parent
            record.covered = upto if record.covered is None else max(record.covered, upto)


class BranchRecords(list[BranchRecord]):
    """The branches of one ledger, in the order of creation."""

    def find(self, name: str) -> BranchRecord | None:
        """Return the newest branch of a name, deleted or not."""
        return next((record for record in reversed(self) if record.name == name), None)

    def find_made_at(self, name: str, at: Instant) -> BranchRecord | None:
        """Return the branch with this name that was created at an instant: names may be reused."""
        return next((record for record in self if (record.name, record.made) == (name, at)), None)

    def living(self) -> list[BranchRecord]:
        """Return the branches that were not deleted."""
        return [record for record in self if record.deleted is None]

    def begun_from(self, record: BranchRecord) -> list[BranchRecord]:
        """Return the branches that forked from a branch, including deleted ones."""
        return [each for each in self if each.parent is record]


def branch_records(database: RowReader, *, count: bool = False) -> BranchRecords:
    """Return all branches, including deleted ones.

    Args:
        count: also count the transactions of each, which reads all operations of each branch.
    """
    found, numbered = BranchRecords(), dict[int, BranchRecord]()
    lines = iter(database.rows(_LINES))
    for tx, verb, name in database.rows(_CHANGES):
        if verb == "branch":
            number, name, parent, fork = next(lines)  # numbered in the order of creation
            numbered[number] = BranchRecord(name, fork, tx, numbered.get(parent))
            found.append(numbered[number])
        elif (record := found.find(name)) is not None and verb == "merge":
            record.note_merge(tx)
        elif record is not None:
            record.deleted = tx
    for number, last, pulled in database.rows(_LAST):
        numbered[number].last, numbered[number].pulled = last, pulled
    for number, transactions in database.rows(_TRANSACTIONS) if count else ():
        numbered[number].transactions = transactions
    return found
