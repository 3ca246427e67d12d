"""The whole history as a folder of Parquet, for DuckDB, pandas, polars, Spark: a file for each table, both periods as columns."""

from __future__ import annotations

import os
from pathlib import Path

from graphstore.interchange.history_tables import NAMES, History
from graphstore.ledger.files import new_file, new_folder
from graphstore.values.period import TimeLike, instant, iso
from graphstore.view.view import Reader

__all__ = ["export_parquet"]


def export_parquet(store: Reader, path: str | os.PathLike[str], *, tx: TimeLike | None = None) -> int:
    """Write what a store recorded up to `tx` (default: now) as a folder of Parquet. Gives the number of rows.

    `nodes`, `versions`, `events`, `occurrences` (of an event that came again), `links` and `operations`: the columns are those of
    `cypher/schema.cypher`, an open end is null, `opened_by` and `closed_by` are ids of operations. The tx is in the metadata of each file.
    Raises ConflictError when something is in the folder, InvalidError for a view.
    """
    import pyarrow.parquet

    history = History(store, tx)
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
