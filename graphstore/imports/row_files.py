"""Reads files of rows one row at a time: tables with a header, JSON lines. An unreadable row is reported with its line; the rest is read."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphstore.errors import InvalidError

Row = Mapping[str, Any]


class Unreadable(Exception):
    """States why a row cannot be read."""


# ---- reading files ----------------------------------------------------------------------------


def rows_of(source: str | Path | Iterable[Row], format: str) -> tuple[str, Iterator[tuple[int, Row | str]]]:
    """Return the name for reports, and the rows with their lines. A string instead of a row is the reason why it is damaged."""
    if not isinstance(source, (str, Path)):
        return "rows", enumerate(source, start=1)
    readers = {"csv": _csv_rows, "jsonl": json_rows}
    if format not in readers:
        raise InvalidError.choice("format", format, readers)
    path = Path(source)
    if not path.is_file():
        raise InvalidError(f"there is no file {str(path)!r}.")
    return str(path), readers[format](path)


def _csv_rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    with _long_cells(), path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = next(reader, [])
        if len(set(header)) < len(header):
            twice = sorted({column for column in header if header.count(column) > 1})
            raise InvalidError(f"{str(path)!r} has two columns of one name: {', '.join(twice)}. Rename one.")
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield line, f"no CSV: {error}"
                continue
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) != len(header):
                yield line, f"{len(cells)} cells where the header has {len(header)}"
            elif any(_is_broken(cell) for cell in cells):
                yield line, "not UTF-8"
            else:
                yield line, dict(zip(header, cells, strict=True))


def json_rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    """Yield the objects of a JSON-lines file with their lines. A string instead of an object is the reason why the line is damaged."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            if _is_broken(text):
                yield line, "not UTF-8"
                continue
            try:
                found = json.loads(text, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                yield line, f"no JSON: {error}"
                continue
            yield line, found if isinstance(found, dict) else f"no JSON object but {type(found).__name__}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_broken(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


@contextmanager
def _long_cells() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
