"""Write the rows of a query to a file: Parquet, CSV, or one JSON object a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from graphstore.errors import InvalidError
from graphstore.graph.result import Result
from graphstore.ledger.files import new_file


def save(result: Result, path: Path) -> None:
    """Write a new file in the format of its suffix. Raises InvalidError for another suffix, ConflictError if the name is taken."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InvalidError.choice("ending of a file of rows", kind, tuple(KINDS))
    with new_file(path) as sink:
        KINDS[kind](result, sink)


def _parquet(result: Result, sink: BinaryIO) -> None:
    import pyarrow.parquet

    try:
        pyarrow.parquet.write_table(result.to_arrow(), sink, compression="zstd")
    except pyarrow.ArrowException as error:
        raise InvalidError(
            f"these rows cannot be Parquet ({error}). Return single properties, or write .jsonl."
        ) from None


def write_csv(result: Result, sink: BinaryIO) -> None:
    """Write rows below a header line; lists and objects as JSON, NULL as nothing."""
    text = io.TextIOWrapper(sink, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows([_field(value) for value in row.values()] for row in result.legible())
    text.detach()


def csv_text(result: Result) -> str:
    """Return rows as CSV below a header line."""
    sink = io.BytesIO()
    write_csv(result, sink)
    return sink.getvalue().decode()


def _field(value: Any) -> Any:
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return value
    return orjson.dumps(value).decode()


def _jsonl(result: Result, sink: BinaryIO) -> None:
    for row in result.legible():
        sink.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


KINDS: dict[str, Callable[[Result, BinaryIO], None]] = {
    ".parquet": _parquet,
    ".csv": write_csv,
    ".jsonl": _jsonl,
}
