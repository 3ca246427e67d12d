"""Reads a branch from the rows of a ledger: statements of the trunk are rewritten to read the rows of the branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphstore.errors import InvalidError
from graphstore.ledger.branch_rows import ALL_LINES, MADE_THEN, LineNumbers, lines_of
from graphstore.ledger.database import RowReader, Values
from graphstore.ledger.ledger import Ledger, last_tx_and_kinds
from graphstore.values.period import Instant

_MADE_LAST = """
SELECT tx, verb FROM operation WHERE subject = ? AND verb IN ('branch', 'delete_branch') ORDER BY number DESC LIMIT 1
"""
OVER = "branch {!r} was deleted. branches() lists those there are."
_REWRITTEN = "SELECT value, 0 FROM property WHERE name = 'rewritten'"
_STATE = """
SELECT value, EXISTS (SELECT 1 FROM operation WHERE subject = :name AND verb = 'delete_branch' AND tx > :made)
FROM property WHERE name = 'rewritten'
"""


class BranchDatabase:
    """Fetches the rows of one branch."""

    def __init__(self, database: RowReader, branch: str, line: LineNumbers) -> None:
        self._database, self.line = database, line
        self.file, self.forked = database.file, line.forked
        self.branch: str | None = branch

    @property
    def whole(self) -> BranchDatabase:
        """Return itself: it hides no rows of the branch."""
        return self

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement of the trunk, run on the branch."""
        return self._database.rows(self.line.statement(statement), values)


class BranchLedger:
    """Answers for one branch of a ledger, identified by its name and the tx of its creation."""

    def __init__(self, ledger: Ledger, name: str, made: Instant) -> None:
        self.ledger, self._name = ledger, name
        self._named = {"name": name, "made": made}
        self._kinds_known = 0
        self.is_deleted = False  # True if the branch was deleted by the last call of `last_tx_and_new_kinds`
        # the number of times the chain was rewritten, and the branch as of then: a rewriting may remove rows that it inherits
        self._found: tuple[int, BranchDatabase] | None = None

    @property
    def database(self) -> BranchDatabase:
        """Return the reader of the branch's rows, as this thread sees them now."""
        return self._look(_REWRITTEN)[0]

    def _look(self, statement: str, values: Values = ()) -> tuple[BranchDatabase, bool]:
        database, found = self.ledger.database, self._found
        [(rewritten, is_deleted)] = database.rows(statement, values)
        if found is None or found[0] != rewritten:
            rows = database.rows(MADE_THEN, self._named)
            if not rows:
                raise InvalidError(OVER.format(self._name))
            self._found = found = rewritten, BranchDatabase(database, self._name, lines_of(rows)[-1])
        return found[1], bool(is_deleted)

    @contextmanager
    def snapshot(self) -> Iterator[BranchDatabase]:
        """Yield the reader of the branch, in a block in which this thread reads one state of the ledger."""
        with self.ledger.database.snapshot():
            yield self.database

    def last_tx_and_new_kinds(self) -> tuple[Instant, list[dict[str, Any]] | None]:
        """Return the last tx of all lines, and new kinds of link of the branch, as `Ledger.last_tx_and_new_kinds` does."""
        self.ledger.hide()
        kept = self.ledger.database.kept()
        if self in kept:
            return kept[self], None
        database, self.is_deleted = self._look(_STATE, self._named)
        kept[self], self._kinds_known, kinds = last_tx_and_kinds(database, self._kinds_known)
        return kept[self], kinds


def branch_made(ledger: Ledger, name: str) -> Instant | None:
    """Return the tx at which a branch was created; None if there is none of this name, or it was deleted."""
    try:
        found = ledger.database.rows(_MADE_LAST, (name,))
    except UnicodeEncodeError:  # the name has a lone surrogate
        return None
    return next((tx for tx, verb in found if verb == "branch"), None)


def branch_databases(database: RowReader) -> list[BranchDatabase]:
    """Return readers of the rows of all branches, including deleted ones, in the order of creation."""
    return [BranchDatabase(database, line.name or "", line) for line in lines_of(database.rows(ALL_LINES))]
