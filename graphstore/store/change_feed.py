"""What was recorded and what was closed after a position, as Arrow tables: for copies elsewhere that follow a store.

A table only grows, by rows and by *closings*: a closing says of one row when, and by which operation, the belief in it ended. How many of both a copy has
taken is its position. A copy that keeps its position in the same transaction as the rows has each of them once, however often it is interrupted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.occurrences import tombstone
from graphstore.core.index.rollback import mark_at
from graphstore.core.tables.arrow_tables import (
    event_columns,
    instants,
    names_of,
    numbers,
    picked,
    read_bodies,
    texts,
)
from graphstore.core.tables.history_arrow import (
    events_as_table,
    links_as_table,
    nodes_as_table,
    occurrences_as_table,
    operations_as_table,
    versions_as_table,
)
from graphstore.core.tables.history_from_index import IndexHistory
from graphstore.errors import ConflictError, InvalidError
from graphstore.values.period import OPEN, Instant

if TYPE_CHECKING:
    from graphstore.core.index.index import Index
    from graphstore.core.read.sight import Sight
    from graphstore.store.store import Store

PART = 50_000
"""Rows, or closings, read at once."""
_ROWS = {"nodes": "entities", "versions": "rows", "events": "rows", "occurrences": "seen", "links": "link_rows",
         "operations": "ops"}  # fmt: skip
_CLOSINGS = {"versions": "closings", "events": "closings", "links": "link_closings"}
NAMES = tuple(_ROWS)
"""The tables, in the order in which a copy takes them: when the operations of a transaction are there, so is all that they did."""


class Position(NamedTuple):
    """How much of a table was taken: so many of the rows and closings that the store counts, and the tx of its last transaction then, in microseconds."""

    rows: int = 0
    closings: int = 0
    tx: Instant = 0


class End(NamedTuple):
    """A link: the label and id of its source, its kind, the label and id of its target."""

    source_label: str
    source: str
    kind: str
    target_label: str
    target: str


NODE, EVENT = "Node", "Event"


class ChangeFeed:
    """The tables of a store, read from a position on. Beside whoever writes; it sees what is committed and durable."""

    def __init__(self, store: Store) -> None:
        """Raises InvalidError for a view, and for a store that lies elsewhere: its rows are read where it is."""
        if getattr(store, "_core", None) is None or not hasattr(store, "query_tables"):
            raise InvalidError(
                f"{store!r} is no store that is open here. Open its folder, or its address in PostgreSQL, with read_only=True."
            )
        self._store = store

    def identity(self) -> str | None:
        """What tells this store, or this branch of one, from others: its first transaction. None while nothing is recorded."""

        def look(sight: Sight) -> str | None:
            index = sight.index
            return f"{index.o_tx[0]} {index.branch or 'trunk'}" if index.mark().ops else None

        return self._store._looked(look)

    def goal(self, tx: Instant | None = None) -> dict[str, Position]:
        """How far each table has come, or had come at a tx."""
        self._store.refresh()
        if not self._store.read_only:
            self._store._core.journal.settle()

        def look(sight: Sight) -> dict[str, Position]:
            index = sight.index
            mark = index.mark() if tx is None else mark_at(index, tx)
            counts, last = mark._asdict(), index.o_tx[mark.ops - 1] if mark.ops else 0
            return {
                name: Position(counts[_ROWS[name]], counts.get(_CLOSINGS.get(name, ""), 0), last)
                for name in NAMES
            }

        return self._store._looked(look)

    def check(self, since: Position, copy: str) -> None:
        """Raise ConflictError when a copy at this position has what the store has not."""

        def look(sight: Sight) -> bool:
            index = sight.index
            ops = bisect_right(index.o_tx, since.tx, hi=index.mark().ops)
            return bool(ops) and index.o_tx[ops - 1] == since.tx

        if since.tx and not self._store._looked(look):
            raise ConflictError(
                f"{copy} has a transaction that the store has not: it was made from another store, or from a later state of this one. "
                "Name another place, or remove what is there."
            )

    def parts(
        self, name: str, since: Position, upto: Position, part: int | None = None
    ) -> Iterator[tuple[pa.Table, Position]]:
        """The rows of a table from one position to another, then its closings, at most `part` (default `PART`) at once, each with the position after it.

        Rows have the columns of `cypher/schema.cypher`, `row` as a number, but no tx_to and no closed_by; an open end of valid time is null. Closings have
        `row`, `tx_to` and `closed_by`. Instants are in UTC.
        """
        part = part or PART
        for low in range(since.rows, upto.rows, part):
            high = min(low + part, upto.rows)
            yield self._read(name, low, high), Position(high, since.closings, since.tx)
        for low in range(since.closings, upto.closings, part):
            high = min(low + part, upto.closings)
            yield self._closed(name, low, high), Position(upto.rows, high, since.tx)

    def events(self, ids: list[str]) -> pa.Table:
        """Events as the graph tables have them now, one row each, with both ends of the belief in them; of the ids that are nodes none."""

        def look(sight: Sight) -> pa.Table:
            index = sight.index
            ents = [ent for ent in map(index.ids.__getitem__, ids) if index.is_event[ent]]
            table = events_as_table(IndexHistory(index, sight.core.journal).events(ents))
            for at, column in enumerate(table.schema):
                if pa.types.is_timestamp(column.type):
                    table = table.set_column(at, column.name, table[at].cast(pa.timestamp("us", tz="UTC")))
            return table

        return self._store._looked(look)

    def things(self, low: int, high: int) -> list[str]:
        """The ids of the nodes and events from one number of rows of `nodes` to another."""
        return self._store._looked(lambda sight: [sight.index.names[ent] for ent in range(low, high)])

    def of_rows(self, rows: list[int]) -> list[str]:
        """Of which event each row of `events` is."""

        def look(sight: Sight) -> list[str]:
            index = sight.index
            return [index.names[index.r_ent[row]] for row in rows]

        return self._store._looked(look)

    def ends(self, rows: list[int]) -> list[End]:
        """Where each row of `links` is."""

        def look(sight: Sight) -> list[End]:
            index = sight.index
            found = []
            for link in (index.k_link[row] for row in rows):
                source, target = index.l_src[link], index.l_tgt[link]
                label = [EVENT if index.is_event[end] else NODE for end in (source, target)]
                names = index.names[source], index.names[target]
                found.append(End(label[0], names[0], index.l_kind[link], label[1], names[1]))
            return found

        return self._store._looked(look)

    def forgotten(self, since: Position, upto: Position) -> dict[str, list[str]]:
        """What was evicted or erased by the operations between two positions, by the table that had its contents: ids of nodes and events, which lead to
        `versions` and `events`, and of their links."""

        def look(sight: Sight) -> dict[str, list[str]]:
            index = sight.index
            ents = [ent for ent, op in index.gone.items() if since.rows <= op < upto.rows]
            links = {link for ent in ents for side in (index.out, index.into) for link in side.get(ent, ())}
            found: dict[str, list[str]] = {"versions": [], "events": []}
            for ent in ents:
                found["events" if index.is_event[ent] else "versions"].append(index.names[ent])
            return found | {"links": [index.l_name[link] for link in sorted(links)]}

        return self._store._looked(look)

    def without_reason(self, operations: list[str]) -> list[str]:
        """Those of some operations, by id, that have no reason, or none any more."""
        return self._store._looked(lambda sight: [id for id in operations if not sight.index.o_len[int(id)]])

    def of_things(self, name: str, ids: list[str], upto: Position) -> pa.Table:
        """The rows up to a position that some nodes, events or links have in `versions`, `events` or `links`, as they are to be read now."""

        def look(sight: Sight) -> pa.Table:
            index = sight.index
            known, rows_of = (
                (index.link_ids, index.rows_of_link) if name == "links" else (index.ids, index.rows_of)
            )
            rows = [row for id in ids for row in rows_of[known[id]] if row < upto.rows]
            tables = [_known(_rows(sight, name, row, row + 1)) for row in rows]
            return pa.concat_tables(tables) if tables else _known(_rows(sight, name, 0, 0))

        return self._store._looked(look)

    def _read(self, name: str, low: int, high: int) -> pa.Table:
        def look(sight: Sight) -> pa.Table:
            return _known(_rows(sight, name, low, high))

        return self._store._looked(look)

    def _closed(self, name: str, low: int, high: int) -> pa.Table:
        import numpy as np

        def look(sight: Sight) -> pa.Table:
            index = sight.index
            if name == "links":
                rows, ends, by = np.asarray(index.link_closings[low:high]), index.k_end, index.k_close
            else:
                rows, ends, by = np.asarray(index.closings[low:high]), index.r_end, index.r_close
                rows = rows[picked(index.is_event, picked(index.r_ent, rows)) == (name == "events")]
            return _known(
                {
                    "row": numbers(rows),
                    "tx_to": instants(picked(ends, rows)),
                    "closed_by": names_of(picked(by, rows)),
                }
            )

        return self._store._looked(look)


def _rows(sight: Sight, name: str, low: int, high: int) -> pa.Table | dict[str, pa.Array]:
    index = sight.index
    history = IndexHistory(index, sight.core.journal)
    match name:
        case "nodes":
            nodes = [ent for ent in range(low, high) if not index.is_event[ent]]
            return nodes_as_table(history.nodes(nodes))
        case "versions":
            return versions_as_table(history.versions(low, high))
        case "events":
            return _event_rows(sight, [row for row in range(low, high) if index.is_event[index.r_ent[row]]])
        case "occurrences":
            return occurrences_as_table(history.occurrences(low, high))
        case "links":
            return links_as_table(history.links(low, high))
        case _:
            return operations_as_table(history.operations(low, high))


def _event_rows(sight: Sight, rows: list[int]) -> dict[str, pa.Array]:
    """The rows of events. An event whose first occurrence was recorded late, or that was taken back and given back, has several."""
    index: Index = sight.index
    ents = [index.r_ent[row] for row in rows]
    versions = [index.versions_of[ent][0] for ent in ents]
    bodies = read_bodies(sight.core.journal.raw, [(index.v_pos[ver], index.v_len[ver]) for ver in versions])
    bodies = [
        body or tombstone(index, sight.core.journal.raw, ent) for ent, body in zip(ents, bodies, strict=True)
    ]
    types = [index.kind[ent] for ent in ents]
    return {
        "row": numbers(rows),
        "id": texts([index.names[ent] for ent in ents]),
        "type": texts(types),
        "occurred_at": instants([index.r_from[row] for row in rows]),
        **event_columns(types, bodies),
        "tx_from": instants([index.r_tx[row] for row in rows]),
        "opened_by": names_of([index.r_op[row] for row in rows]),
    }


def _known(columns: pa.Table | dict[str, pa.Array]) -> pa.Table:
    """The columns as a copy has them: instants in UTC, an open end null, the number of a row as a number."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    is_closing = table.column_names == ["row", "tx_to", "closed_by"]
    if not is_closing:
        table = table.drop_columns([name for name in ("tx_to", "closed_by") if name in table.column_names])
    last = instants([OPEN])[0]
    for at, column in enumerate(table.schema):
        values = table[column.name]
        if pa.types.is_timestamp(column.type):
            if column.name == "valid_to":
                values = pc.if_else(pc.equal(values, last), pa.nulls(1, column.type)[0], values)
            table = table.set_column(at, column.name, values.cast(pa.timestamp("us", tz="UTC")))
        elif column.name == "row":
            table = table.set_column(at, column.name, values.cast(pa.int64()))
    return table
