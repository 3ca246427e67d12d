"""A whole store as one file: the journal's header and every line of it, in order. `GraphStore.export` writes it, this reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import orjson

from graphstore.core.journal.files import sync_folder
from graphstore.core.journal.journal import SEGMENT_BYTES
from graphstore.core.journal.line import GENESIS, SCHEMA, check, header
from graphstore.errors import DamageError, EngineError, NotFoundError


def load(dump: Path, folder: Path) -> int:
    """Make the journal of a new store from a dump, verifying each line. Returns the number of lines.

    Raises DamageError with file and line; the folder is then left without a journal.
    """
    if not dump.is_file():
        raise NotFoundError(f"no dump at {dump}.")
    folder.mkdir(parents=True, exist_ok=True)
    prev, count, segment, more = GENESIS, 0, 0, False
    names: list[Path] = []
    with open(dump, "rb") as source:
        _check_header(dump, source.readline())
        sink: IO[bytes] | None = None
        try:
            for number, line in enumerate(source, 2):
                if sink is None or (not more and sink.tell() >= SEGMENT_BYTES):
                    sink = _next_segment(sink, folder / f"{segment + 1:08}.jsonl", names)
                    segment += 1
                if not line.endswith(b"\n"):
                    raise DamageError(
                        f"{dump} line {number}: the last line is cut off. Nothing was restored."
                    )
                try:
                    head, prev, _ = check(line[:-1], prev)
                except ValueError as error:
                    raise DamageError(f"{dump} line {number}: {error}. Nothing was restored.") from None
                more = bool(head.get("more"))
                sink.write(line)
                count += 1
            if more:
                raise DamageError(f"{dump}: the last transaction is cut off. Nothing was restored.")
            _next_segment(sink, None if sink else folder / "00000001.jsonl", names)
        except BaseException:
            if sink is not None:
                sink.close()
            for name in names:
                name.unlink(missing_ok=True)
            raise
    sync_folder(folder)
    return count


def _check_header(dump: Path, line: bytes) -> None:
    if line == header(1):
        return
    try:
        schema = orjson.loads(line)["schema"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        schema = None
    if isinstance(schema, int) and schema > SCHEMA:
        raise EngineError(
            f"{dump} was written with schema {schema}; this graphstore reads up to {SCHEMA}. Install a newer graphstore."
        )
    raise DamageError(f"{dump} line 1: it is not the header of a graphstore dump. Nothing was restored.")


def _next_segment(sink: IO[bytes] | None, name: Path | None, names: list[Path]) -> IO[bytes]:
    if sink is not None:
        sink.flush()
        os.fsync(sink.fileno())
        sink.close()
        if name is None:
            return sink
    assert name is not None
    names.append(name)
    fresh = open(name, "wb")  # noqa: SIM115 - closed by the next call
    fresh.write(header(len(names)))
    if sink is None:
        fresh.flush()
    return fresh
