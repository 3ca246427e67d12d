"""Reads what some scopes contain from the rows of a ledger: statements of the trunk are rewritten to see only what is inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from graphstore.ledger.branch_rows import TRUNK
from graphstore.ledger.database import Database, Values
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.scoped_rows import ScopedRows
from graphstore.values.period import OPEN, Instant

_STATE = """
SELECT (SELECT group_concat(value) FROM property WHERE name IN ('rewritten', 'removals')), operation, link, defined FROM next_number
"""
_LAST = "SELECT tx FROM done WHERE number >= ? ORDER BY number DESC LIMIT 1"
_KINDS_SINCE = "SELECT DISTINCT kind FROM link WHERE number >= ?"
_DEFINED = "SELECT kind FROM defined ORDER BY number"


@dataclass(frozen=True)
class _KnownState:
    """Holds what was read at a state of the ledger. `removed` changes when something is removed; three fields are the next row numbers."""

    removed: str
    operations: int = 0
    links: int = 0
    defined: int = 0
    last: Instant = 0
    kinds: frozenset[str] = frozenset()


class ScopedDatabase:
    """Fetches the rows of the trunk that some scopes contain."""

    branch: str | None = None
    forked: Instant = OPEN
    line = TRUNK

    def __init__(self, database: Database, rows: ScopedRows) -> None:
        self.whole, self._rows = database, rows
        self.file: Path = database.file

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement of the trunk, limited to the scopes."""
        return self.whole.rows(self._rows.statement(statement), values)


class ScopedLedger:
    """Answers for what some scopes of a ledger contain."""

    def __init__(self, ledger: Ledger, scopes: tuple[str, ...]) -> None:
        self.ledger, self._scopes = ledger, scopes
        self._known = _KnownState("")
        self._told: frozenset[str] = frozenset()  # kinds of link that `last_tx_and_new_kinds` has returned
        self.database = self._database(frozenset())

    def _database(self, kinds: frozenset[str]) -> ScopedDatabase:
        return ScopedDatabase(self.ledger.database, ScopedRows(self._scopes, kinds))

    @contextmanager
    def snapshot(self) -> Iterator[ScopedDatabase]:
        """Yield the reader of the scopes, in a block in which this thread reads one state of the ledger."""
        with self.ledger.database.snapshot():
            yield self.database

    def last_tx_and_new_kinds(self) -> tuple[Instant, list[dict[str, Any]] | None]:
        """Return the last tx at which something inside was written (0: never), and the kinds of link inside; None if there are no new kinds."""
        self.ledger.hide()
        known = self._follow()
        if known.kinds == self._told:
            return known.last, None
        self._told = known.kinds
        return known.last, [orjson.loads(kind) for (kind,) in self.database.rows(_DEFINED)]

    def _follow(self) -> _KnownState:
        """Read what was written since the last call, and return the new state."""
        whole = self.ledger.database
        with whole.snapshot():
            [(removed, operations, links, defined)] = whole.rows(_STATE)
            known = self._known
            if removed != known.removed or operations < known.operations:
                known = _KnownState(removed)
            last, kinds = known.last, known.kinds
            if operations > known.operations:
                last = next((tx for (tx,) in self.database.rows(_LAST, (known.operations,))), last)
            if defined and (links > known.links or not known.defined):
                since = known.links if known.defined else 0
                kinds |= {kind for (kind,) in self.database.rows(_KINDS_SINCE, (since,))}
            known = _KnownState(removed, operations, links, defined, last, kinds)
        if kinds != self._known.kinds:
            self.database = self._database(kinds)
        if not whole.writes_here:  # otherwise it may be undone
            self._known = known
        return known
