"""Show a transaction to its own reads: write its changes as rows, and remove them before the transaction itself is written.

The rows have the numbers of the transaction's working set. They include rows that the transaction has closed again, so a read finds what a verb finds. Each call writes
only the changes since the last one, unless a failed or running verb may have altered those.
"""

from __future__ import annotations

import sqlite3
from functools import cached_property
from zlib import crc32

from graphstore.ledger.branch_rows import LineNumbers
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.row_writing import RowWriter
from graphstore.ledger.standings import StandingWriter
from graphstore.ledger.word_rows import WordRows
from graphstore.search.row_search import RowSearch
from graphstore.write.transaction import Composer, Progress, Transaction


class ShownRows:
    """Writes the rows of one open transaction, and removes them."""

    def __init__(self, ledger: Ledger, work: Transaction, line: LineNumbers) -> None:
        self._ledger, self._work, self._line = ledger, work, line
        self.versions, self.operations = work.mark.versions, work.mark.ops  # numbers of committed ones
        self._begun = self._shown = work.begun
        self._may_change = False  # True if a verb was running when this was shown

    @cached_property
    def search(self) -> RowSearch:
        """Return the search over the rows that are shown. It caches what it reads by number, and `show` may assign the numbers to other rows."""
        return RowSearch()

    def show(self) -> None:
        """Write what the transaction has done. Raises EngineError if the disk refuses; nothing is shown then."""
        ledger, now = self._ledger, self._work.point()
        if not ledger.is_showing or self._may_change:
            ledger.hide()
            self._shown = self._begun
        if now == self._shown:
            return
        try:
            self._write(self._shown)
        except sqlite3.Error as error:
            raise ledger.not_shown(error) from error
        except BaseException:
            ledger.hide()
            raise
        self._shown, self._may_change = now, self._work.is_deciding

    def hide(self) -> None:
        """Remove the rows."""
        self._ledger.hide()

    def _write(self, since: Progress) -> None:
        tx = self._work.tx
        if not self._ledger.is_showing:
            self._connection, self._next_body = self._ledger.begin_showing(tx)
            self._standings, self._words = StandingWriter(self._connection), WordRows()
            self._before: RowWriter | None = None
        for line in Composer(self._work, since).lines_to_show():
            first, self._next_body = self._next_body, self._next_body + len(line.bodies)
            bodies = ((number, body, crc32(body)) for number, body in enumerate(line.bodies, first))
            self._connection.executemany("INSERT INTO body VALUES (?, ?, ?)", bodies)
            self._before = RowWriter(
                self._connection,
                line.head,
                first,
                self._words,
                line=self._line,
                before=self._before,
                bodies=line.bodies,
            )
            for note in self._before.write():
                self._standings.note(*note)
        self._standings.write(tx)
        vars(self).pop("search", None)
