"""Tells whether a thing is shaky at a coordinate by one row of the ledger. Each transaction has written these rows for all that it changed."""

from __future__ import annotations

from graphstore.core.index.shaky_spans import ASK_JUDGE, NO, YES
from graphstore.ledger.ledger import Ledger
from graphstore.values.period import Instant

_SHAKY = """
SELECT (SELECT value FROM property WHERE name = 'rewritten'),
       EXISTS (SELECT 1 FROM shaky WHERE entity = ? AND valid_from <= ? AND tx_from <= ? AND valid_to > ? AND tx_to > ?)
"""


class ShakyRows:
    """Answers in place of the spans that `Shaken` keeps in memory. The rows are of the trunk. Nothing is made or dropped here."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.raw: object = None

    @property
    def touched(self) -> set[int]:
        """Nothing is noted: a transaction writes its rows."""
        return set()

    def says(self, entity: int, valid: Instant, tx: Instant) -> int:
        """Whether an entity that stands at (valid, tx) is shaky: YES, NO, or ASK_JUDGE for what is not committed yet."""
        ledger = self._ledger
        if tx > ledger.committed_tx:
            return ASK_JUDGE
        [(rewritten, found)] = ledger.database.rows(_SHAKY, (entity, valid, tx, valid, tx))
        if rewritten != ledger.generation:
            return ASK_JUDGE  # another process has given entities other numbers
        return YES if found else NO

    def keeps(self, entity: int) -> bool:
        """Whether the judge is not asked of an entity now."""
        return True

    def look(self, entity: int) -> None:
        """There is nothing to be made of an entity."""

    def follow(self) -> None:
        """There is nothing to be dropped."""

    def fill(self, since: object) -> None:
        """There is nothing to be made of what was written."""
