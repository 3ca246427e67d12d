"""Read what a change feed gives from the index: of a store in PostgreSQL, and of a branch."""

from __future__ import annotations

from bisect import bisect_right

import pyarrow as pa

from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import tombstone
from graphstore.core.index.rollback import mark_at
from graphstore.core.journal.seam import Seam
from graphstore.core.tables.arrow_tables import read_bodies
from graphstore.core.tables.history_from_index import IndexHistory
from graphstore.core.tables.history_source import Event, HistorySource
from graphstore.store.feed_source import EVENT, NODE, Closed, End, EventPeriod, event_periods_as_table
from graphstore.values.period import Instant


class IndexFeed:
    """Reads what an index has committed."""

    def __init__(self, index: Index, journal: Seam) -> None:
        self._index, self._raw = index, journal.raw
        self.history: HistorySource = IndexHistory(index, journal)

    def identity(self) -> str | None:
        """Return the first transaction and the line; None while nothing is recorded."""
        index = self._index
        return f"{index.o_tx[0]} {index.branch or 'trunk'}" if index.mark().ops else None

    def reached(self, tx: Instant | None) -> tuple[Mark, Instant]:
        """Return how much there is, or was at a tx, and the tx of its last transaction (0: there is none)."""
        index = self._index
        mark = index.mark() if tx is None else mark_at(index, tx)
        return mark, index.o_tx[mark.ops - 1] if mark.ops else 0

    def has(self, tx: Instant) -> bool:
        """Return True if a transaction has this tx."""
        index = self._index
        ops = bisect_right(index.o_tx, tx, hi=index.mark().ops)
        return bool(ops) and index.o_tx[ops - 1] == tx

    def event_periods(self, first: int, stop: int) -> pa.Table:
        """Return the rows of those periods that are of events."""
        index = self._index
        rows = [row for row in range(first, stop) if index.is_event[index.r_ent[row]]]
        ents = [index.r_ent[row] for row in rows]
        versions = [index.versions_of[ent][0] for ent in ents]
        bodies = read_bodies(self._raw, [(index.v_pos[ver], index.v_len[ver]) for ver in versions])
        return event_periods_as_table(
            [
                EventPeriod(
                    row, index.names[ent], index.kind[ent], index.r_from[row], index.r_tx[row], index.r_op[row],
                    body or tombstone(index, self._raw, ent),
                )
                for row, ent, body in zip(rows, ents, bodies, strict=True)
            ]
        )  # fmt: skip

    def closed(self, name: str, first: int, stop: int) -> list[Closed]:
        """Return those closings of periods, or of periods of links, that are of a table."""
        index = self._index
        if name == "links":
            rows, ends, by = list(index.link_closings[first:stop]), index.k_end, index.k_close
        else:
            rows, ends, by = list(index.closings[first:stop]), index.r_end, index.r_close
            rows = [row for row in rows if bool(index.is_event[index.r_ent[row]]) == (name == "events")]
        return [Closed(row, ends[row], by[row]) for row in rows]

    def events(self, ids: list[str]) -> list[Event]:
        """Return the rows of those of some things that are events."""
        index = self._index
        return self.history.events([ent for ent in map(index.ids.__getitem__, ids) if index.is_event[ent]])

    def owners(self, periods: list[int]) -> list[str]:
        """Return the id of the thing of each period."""
        index = self._index
        return [index.names[index.r_ent[row]] for row in periods]

    def ends(self, periods: list[int]) -> list[End]:
        """Return what the link of each period of a link joins."""
        index = self._index
        found = []
        for link in (index.k_link[row] for row in periods):
            source, target = index.l_src[link], index.l_tgt[link]
            label = [EVENT if index.is_event[end] else NODE for end in (source, target)]
            names = index.names[source], index.names[target]
            found.append(End(label[0], names[0], index.l_kind[link], label[1], names[1]))
        return found

    def forgotten(self, first: int, stop: int) -> dict[str, list[str]]:
        """Return what operations forgot, as `ChangeFeed.forgotten` does."""
        index = self._index
        ents = [ent for ent, op in index.gone.items() if first <= op < stop]
        links = {link for ent in ents for side in (index.out, index.into) for link in side.get(ent, ())}
        found: dict[str, list[str]] = {"versions": [], "events": []}
        for ent in ents:
            found["events" if index.is_event[ent] else "versions"].append(index.names[ent])
        return found | {"links": [index.l_name[link] for link in sorted(links)]}

    def without_reason(self, operations: list[str]) -> list[str]:
        """Return those of some operations that have no reason."""
        return [id for id in operations if not self._index.o_len[int(id)]]

    def periods(self, name: str, ids: list[str], stop: int) -> list[int]:
        """Return the numbers of the periods of some things, or links."""
        index = self._index
        known, rows_of = (
            (index.link_ids, index.rows_of_link) if name == "links" else (index.ids, index.rows_of)
        )
        return [row for id in ids for row in rows_of[known[id]] if row < stop]
