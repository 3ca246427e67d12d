"""Lets the rows of a ledger answer also when the index of its store is loaded."""

from __future__ import annotations

import threading

from graphstore.core.read.sight import Core, LedgerRows
from graphstore.ledger.ledger import Ledger


class AnswersByRows(Core):
    """What the readers and the writer of a store share, where rows answer all that they can: not what is not committed yet."""

    @property
    def answering(self) -> LedgerRows | None:
        """The ledger, unless this thread has written something that is not committed."""
        journal = self.journal
        if not isinstance(journal, Ledger) or journal.database._turn == threading.get_ident():
            return None
        return self.rows
