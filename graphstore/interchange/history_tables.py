"""Reads the whole history up to a tx as Arrow tables, part by part, and exports it as Parquet: the graph tables without what was recorded later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.errors import InvalidError
from graphstore.graph.texts import sections
from graphstore.ledger.files import new_file, new_folder
from graphstore.values.event_fields import BODY
from graphstore.values.period import TimeLike, instant, iso
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

PART = 100_000
"""Rows read at a time."""


class _HistoryTable(NamedTuple):
    query: str
    counted: str | None  # the store's count of its rows; None if all rows are one part
    schema: pa.Schema


_INSTANT = pa.timestamp("us", tz="UTC")
_TYPES = {
    **dict.fromkeys(("tx", "told", "occurred_at", "valid_from", "valid_to", "tx_from", "tx_to"), _INSTANT),
    **dict.fromkeys(("number", "strength"), pa.int64()),
    **dict.fromkeys(("remainder", "authorized", "history"), pa.bool_()),
    "tags": pa.list_(pa.string()),
}
"""The types of columns other than text."""
_BELIEVED = "tx_from tx_to opened_by closed_by"
_HELD = f"author told told_by remainder valid_from valid_to {_BELIEVED}"


def _table(query: str, counted: str | None, columns: str) -> _HistoryTable:
    types = [(name, _TYPES.get(name, pa.string())) for name in columns.split()]
    return _HistoryTable(query, counted, pa.schema(types))


_TABLES = {
    "nodes": _table("recorded_nodes", None, "id kind key scope tx_from"),
    "versions": _table(
        "recorded_versions", "rows", f"node_id ref number content text tags trigger source {_HELD}"
    ),
    "events": _table(
        "recorded_events",
        "operations",
        f"id type occurred_at {' '.join(field.name for field in BODY)} {_BELIEVED}",
    ),
    "occurrences": _table("recorded_occurrences", "operations", "event_id occurred_at tx_from opened_by"),
    "links": _table(
        "recorded_links",
        "link_rows",
        f"id source kind target reason strength confidence history created_by metadata {_HELD}",
    ),
    "operations": _table("recorded_operations", "operations", "id tx verb subject author reason"),
}
NAMES = tuple(_TABLES)


class StoreHistory:
    """What a store recorded up to an instant. What is recorded or closed later is not in it, however late it is read."""

    def __init__(self, store: Reader, tx: TimeLike | None = None) -> None:
        """`tx`: default now. Raises InvalidError for a view: it is of one coordinate, and of no history."""
        if not hasattr(store, "query_tables"):
            raise InvalidError(
                f"{store!r} is a view, which is of one coordinate. Give the store, and tx= for what it knew then."
            )
        self._store: Store = store  # type: ignore[assignment]
        self.tx: datetime = self._store.as_of(tx=tx).at.tx

    @staticmethod
    def schema(name: str) -> pa.Schema:
        """The columns of a table, named in `NAMES`: instants in UTC, an open end null, contents and metadata JSON text."""
        return _TABLES[name].schema

    def parts(self, name: str) -> Iterator[pa.Table]:
        """The rows of a table, in the order they were recorded, at most `PART` at once."""
        table = _TABLES[name]
        section = sections()[table.query]
        last = 1 if table.counted is None else self._store.stats()[table.counted]
        own: dict[str, Any] = {} if getattr(self._store, "_core", None) is None else {"limits": None}
        for low in range(0, last, PART):
            bounds: dict[str, Any] = {} if table.counted is None else {"low": low, "high": low + PART}
            found = self._store.query_tables(section.text, tx=self.tx, **own, **bounds).to_arrow()
            found = found.sort_by([(column, "ascending") for column in section.order])
            if found.num_rows:
                yield self._known(found).select(table.schema.names).cast(table.schema)

    def believed(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a table that were believed at the tx, one by one."""
        for part in self.parts(name):
            yield from part.filter(pc.is_null(part["tx_to"])).to_pylist()

    def _known(self, rows: pa.Table) -> pa.Table:
        """Return the rows as they were believed at the tx: what was closed later is open."""
        if "tx_to" not in rows.column_names:
            return rows
        later = pc.fill_null(pc.greater(rows["tx_to"], pa.scalar(self.tx, _INSTANT)), False)
        for column in ("tx_to", "closed_by"):
            kind = rows.schema.field(column).type
            rows = rows.set_column(
                rows.column_names.index(column),
                column,
                pc.if_else(later, pa.scalar(None, kind), rows[column]),
            )
        return rows


def export_parquet(store: Reader, path: str | os.PathLike[str], *, tx: TimeLike | None = None) -> int:
    """Write what a store recorded up to `tx` (default: now) as a folder of Parquet. Gives the number of rows.

    `nodes`, `versions`, `events`, `occurrences` (of an event that came again), `links` and `operations`: the columns are those of
    `cypher/schema.cypher`, an open end is null, `opened_by` and `closed_by` are ids of operations. The tx is in the metadata of each file.
    Raises ConflictError when something is in the folder, InvalidError for a view.
    """
    import pyarrow.parquet

    history = StoreHistory(store, tx)
    count = 0
    with new_folder(Path(path)) as folder:
        for name in NAMES:
            schema = history.schema(name).with_metadata({"graphstore.tx": iso(instant(history.tx))})
            with (
                new_file(folder / f"{name}.parquet") as sink,
                pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd") as writer,
            ):
                for part in history.parts(name):
                    writer.write_table(part.replace_schema_metadata(schema.metadata))
                    count += part.num_rows
    return count
