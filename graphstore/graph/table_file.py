"""The file of the graph tables, and the note next to it, which records how far they are and the file's checksum when it was closed properly.

If the two disagree (deleted, left dirty by a crash, damaged, of another engine), the tables are unusable and are rebuilt.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from graphstore.errors import EngineError
from graphstore.ledger.files import is_alone, open_plain, plain_bytes, remove_cut, replace_whole

TABLES, NOTE = "graph.kuzu", "graph.json"


class Unusable(Exception):
    """Says why the tables on disk cannot be used, as part of a sentence."""


class GraphFile:
    """The files `graph.kuzu` and `graph.json` in a store's folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / TABLES
        self._note = folder / NOTE

    @property
    def absent(self) -> bool:
        """Return True if neither file exists."""
        return not (os.path.lexists(self._note) or self._files())

    def note(self, engine: str, schema: int, looks: Future[dict[str, int]]) -> dict[str, Any]:
        """Return the note written when this engine and schema closed the file properly. `looks`: the result of `looks`. Raises Unusable if there is none, or
        if the file has changed since."""
        try:
            note = orjson.loads(plain_bytes(self._note))
        except (OSError, orjson.JSONDecodeError):
            note = None
        if not isinstance(note, dict):
            raise Unusable(f"{NOTE} is missing or damaged")
        if not self.path.exists():
            raise Unusable(f"{TABLES} is missing")
        leftover = self.path.with_name(f"{TABLES}.wal")
        if not note.get("clean") or (leftover.exists() and leftover.stat().st_size):
            raise Unusable("they were not closed well")
        if note.get("engine") != engine or note.get("schema") != schema:
            raise Unusable("they were made by another version")
        if not all(map(is_alone, self._files())):  # the engine opens them itself
            raise Unusable(f"{TABLES} is a link, or no plain file")
        if looks.result() != {name: note.get(name) for name in ("size", "checksum")}:
            raise Unusable(f"{TABLES} is damaged")
        return note

    def mark_dirty(self) -> None:
        """Note that the file is being changed, before anything is written to it. Raises EngineError if the disk refuses."""
        self._write({"clean": False})

    def mark_clean(self, note: dict[str, Any]) -> None:
        """Note that the file is complete and closed, and how far it is. Raises EngineError if the disk refuses."""
        self._write({"clean": True, **note, **self.looks()})

    def remove(self) -> None:
        """Remove the file and those that the engine left next to it. Raises EngineError if the disk refuses, also for a folder of that name."""
        try:
            remove_cut(self._files())
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self.path}: {error.strerror}. Remove it: the tables are made anew."
            ) from error

    def _files(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{TABLES}*"))

    def free_space(self) -> str:
        """Return the free space, in brackets."""
        return f" ({shutil.disk_usage(self.path.parent).free >> 20} MB are free on {self.path.parent})"

    def looks(self) -> dict[str, int]:
        """Return the size and the checksum of the file."""
        total = 0
        part = memoryview(bytearray(1 << 20))  # one buffer: allocating memory costs as much as reading
        with open(open_plain(self.path, os.O_RDONLY), "rb", buffering=0) as source:
            while read := source.readinto(part):
                total = crc32(part[:read], total)
        return {"size": self.path.stat().st_size, "checksum": total}

    def _write(self, note: dict[str, Any]) -> None:
        try:
            replace_whole(self._note, orjson.dumps(note, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        except OSError as error:
            raise EngineError(
                f"cannot write {error.filename2 or error.filename or self._note}: {error.strerror}. The journal is not concerned; free some space, or remove what has that name."
            ) from error
