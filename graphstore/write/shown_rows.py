"""Shows a transaction to its own reads: what it has done so far is written as rows, and taken back before the transaction itself is written.

The rows have the numbers that the transaction's working set has, and those that the transaction has closed again are among them: so a read finds what
a verb finds. Each time only what was done since is written, unless a verb that failed or is under way may have changed what is there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any
from zlib import crc32

from graphstore.ledger.branch_rows import SPAN, TRUNK, Line
from graphstore.ledger.chain import UNDO, dumps
from graphstore.ledger.field_rows import add_periods
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.row_writing import close_rows, replace_taken
from graphstore.ledger.standings import StandingWriter
from graphstore.ledger.word_rows import WordRows
from graphstore.read.columns import Mark
from graphstore.search.row_search import RowSearch
from graphstore.values.period import OPEN, instant
from graphstore.write.transaction import Progress, Transaction


class ShownRows:
    """Writes the rows of one open transaction, and takes them back."""

    def __init__(self, ledger: Ledger, work: Transaction, line: Line) -> None:
        self._ledger, self._work, self._line = ledger, work, line
        self.versions, self.operations = work.mark.versions, work.mark.ops  # how many are committed
        self._begun = self._shown = work.begun
        self._may_change = False  # whether a verb was under way when this was shown

    @cached_property
    def search(self) -> RowSearch:
        """Return what searches the rows that are shown. It keeps what it has read, by numbers that others may get when more is shown."""
        return RowSearch()

    def show(self) -> None:
        """Write what the transaction has done. Raises EngineError when the disk refuses: nothing is shown then."""
        ledger, now = self._ledger, self._work.point()
        if not ledger.is_showing or self._may_change:
            ledger.hide()
            self._shown = self._begun
        if now == self._shown:
            return
        try:
            self._write(now)
        except sqlite3.Error as error:
            raise ledger.not_shown(error) from error
        except BaseException:
            ledger.hide()
            raise
        self._shown, self._may_change = now, self._work.is_deciding

    def hide(self) -> None:
        """Take the rows back."""
        self._ledger.hide()

    def _write(self, now: Progress) -> None:
        work, since = self._work, self._shown
        if not self._ledger.is_showing:
            self._connection, self._first_body = self._ledger.begin_showing(work.tx)
            self._standings, self._words = StandingWriter(self._connection), WordRows()
            since = since._replace(bodies=0)  # the reason of the transaction is one
        bodies = enumerate(work.bodies[since.bodies : now.bodies], self._first_body + since.bodies)
        self._insert("body", ((number, body, crc32(body)) for number, body in bodies))
        self._write_operations(since.mark, now.mark)
        self._write_things(since.mark, now.mark)
        self._write_links(since.mark, now.mark)
        turns = work.index.turns_since(since.mark.ops)
        self._number("changed", [(ent, *turn[1:], 1) for ent, turn in turns])
        self._write_taken(since)
        self._write_kinds_and_settings(since, now)
        if now.mark.versions > since.mark.versions:
            self._words.add(self._connection, since.mark.versions)
        elif now.settings > since.settings and self._line is TRUNK:
            self._words.refresh(self._connection)
        rows = range(since.mark.rows, now.mark.rows)
        if earlier := [row for row in rows if work.index.r_ver[row] < since.mark.versions]:
            add_periods(self._connection, earlier)
        self._standings.note(self._head(since, now, [ent for ent, _ in turns]), since.mark.ops, self._line)
        self._standings.write(work.tx)
        vars(self).pop("search", None)

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        found = list(rows)
        if found:
            marks = ", ".join("?" * len(found[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", found)

    def _number(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows into a table that numbers them itself."""
        if rows:
            [first] = self._connection.execute(self._line.next_number(table)).fetchone()
            self._insert(f"all_{table}", ((number, *row) for number, row in enumerate(rows, first)))

    def _body(self, pos: int, length: int) -> int | None:
        """Return the number of a body; None where nothing was given."""
        if not length:
            return None
        return pos if pos >= 0 else self._first_body - pos - 1

    def _write_operations(self, since: Mark, now: Mark) -> None:
        index, ops = self._work.index, range(since.ops, now.ops)
        self._insert(
            "all_operation",
            (
                (op, index.o_tx[op], index.o_verb[op], index.o_subject[op], index.o_author[op],
                 self._body(index.o_pos[op], index.o_len[op]))
                for op in ops
            ),
        )  # fmt: skip
        self._insert(
            "all_undone", ((instant(index.o_subject[op]), op) for op in ops if index.o_verb[op] == UNDO)
        )

    def _write_things(self, since: Mark, now: Mark) -> None:
        index = self._work.index
        self._insert(
            "all_entity",
            (
                (ent, index.names[ent], int(index.is_event[ent]), index.kind[ent], index.key[ent], index.scope[ent], index.born[ent])
                for ent in range(since.entities, now.entities)
            ),
        )  # fmt: skip
        self._insert(
            "all_version",
            (
                (ver, index.v_ent[ver], index.v_num[ver], self._body(index.v_pos[ver], index.v_len[ver]), _operation(index.v_op[ver]))
                for ver in range(since.versions, now.versions)
            ),
        )  # fmt: skip
        self._insert(
            "all_period",
            (
                (row, index.r_ent[row], index.r_ver[row], index.r_from[row], index.r_to[row], index.r_tx[row], index.r_end[row],
                 index.r_op[row], _operation(index.r_close[row]))
                for row in range(since.rows, now.rows)
            ),
        )  # fmt: skip
        closed = index.closings[since.closings : now.closings]
        ended = [(row, index.r_end[row], index.r_close[row]) for row in closed]
        close_rows(self._connection, self._line, "period", ended)
        self._insert("all_occurrence", self._occurrences(range(since.seen, now.seen)))

    def _occurrences(self, rows: range) -> Iterator[tuple[Any, ...]]:
        index, later = self._work.index, dict[int, int]()
        for row in reversed(rows):
            event = index.s_ent[row]
            ordinal = len(index.seen_of[event]) - later.get(event, 0)
            later[event] = later.get(event, 0) + 1
            times = index.s_at[row], index.s_tx[row], index.s_op[row], index.s_first[row], index.s_last[row]
            yield (row, event, *times, ordinal)

    def _write_links(self, since: Mark, now: Mark) -> None:
        index = self._work.index
        self._insert(
            "all_link",
            (
                (link, index.l_name[link], index.l_kind[link], index.l_src[link], index.l_tgt[link])
                for link in range(since.links, now.links)
            ),
        )
        self._insert(
            "all_claim",
            (
                (claim, index.c_link[claim], index.c_num[claim], index.c_strength[claim] or None, int(index.c_inferred[claim]),
                 index.c_by[claim], self._body(index.c_pos[claim], index.c_len[claim]), _operation(index.c_op[claim]))
                for claim in range(since.claims, now.claims)
            ),
        )  # fmt: skip
        self._insert(
            "all_link_period",
            (
                (row, index.k_link[row], index.k_claim[row], index.k_from[row], index.k_to[row], index.k_tx[row], index.k_end[row],
                 index.k_op[row], _operation(index.k_close[row]))
                for row in range(since.link_rows, now.link_rows)
            ),
        )  # fmt: skip
        closed = index.link_closings[since.link_closings : now.link_closings]
        ended = [(row, index.k_end[row], index.k_close[row]) for row in closed]
        close_rows(self._connection, self._line, "link_period", ended)

    def _write_taken(self, since: Progress) -> None:
        work, rows = self._work, list[tuple[Any, ...]]()
        for link in sorted(work.taken_since(since)):
            replace_taken(self._connection, self._line, link, work.tx)
            rows += [(link, *piece, work.tx, OPEN) for piece in work.index.taken.get(link, ())]
        self._number("taken", rows)

    def _write_kinds_and_settings(self, since: Progress, now: Progress) -> None:
        index, tx = self._work.index, self._work.tx
        promoted = ({"promoted": name} for name in index.promoted[since.promoted : now.promoted])
        kinds = [*index.kinds[since.kinds : now.kinds], *promoted]
        settings = index.settings[since.settings : now.settings]
        pairs = [pair for setting in settings for pair in setting.items()]
        self._number("defined", [(tx, dumps(kind).decode()) for kind in kinds])
        self._number("setting", [(tx, name, dumps(value).decode()) for name, value in pairs])

    def _head(self, since: Progress, now: Progress, turned: list[int]) -> dict[str, Any]:
        """Return what the writer of standings reads of the head of a line, which names closed rows by their places on the line."""
        index, first, stop = self._work.index, since.mark, now.mark
        names, stops = index.names, index.r_to
        rows, link_rows = range(first.rows, stop.rows), range(first.link_rows, stop.link_rows)
        return {
            "ops": [(index.o_verb[op], index.o_subject[op]) for op in range(first.ops, stop.ops)],
            "entities": [(names[ent],) for ent in range(first.entities, stop.entities)],
            "rows": [
                (names[index.r_ent[row]], 0, None, None if stops[row] >= OPEN else stops[row], 0)
                for row in rows
            ],
            "closed": [(row % SPAN, 0) for row in index.closings[first.closings : stop.closings]],
            "link_rows": [(index.l_name[index.k_link[row]],) for row in link_rows],
            "link_closed": [
                (row % SPAN, 0) for row in index.link_closings[first.link_closings : stop.link_closings]
            ],
            "turns": [(names[ent],) for ent in turned],
            "kinds": index.kinds[since.kinds : now.kinds],
        }


def _operation(op: int) -> int | None:
    """Return the number of an operation; None for -1, where there is none."""
    return None if op < 0 else op
