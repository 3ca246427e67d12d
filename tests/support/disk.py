"""A disk that refuses, and files that another process searches: this one may have the ledger open, and must not open its files itself."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphstore import GraphStore
from graphstore.ledger.ledger import Ledger

_SEARCH = """
import pathlib, sys
root, word = pathlib.Path(sys.argv[1]), sys.argv[2].encode()
for file in sorted(root.rglob("*")):
    if file.is_file() and word in file.read_bytes():
        print(file.relative_to(root))
"""
_SEARCH_MANY = """
import pathlib, sys
data = [file.read_bytes() for file in pathlib.Path(sys.argv[1]).rglob("*") if file.is_file()]
for word in sys.argv[2:]:
    if any(word.encode() in each for each in data):
        print(word)
"""
_SEARCH_HEX = _SEARCH.replace("sys.argv[2].encode()", "bytes.fromhex(sys.argv[2])")
_EDIT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
"""


@contextlib.contextmanager
def no_room(left: int = 0) -> Iterator[None]:
    """A block in which every write of this process to a file fails, or only those beyond so many bytes of it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def no_commit(store: GraphStore) -> Iterator[None]:
    """A block in which SQLite refuses each COMMIT of a store, in the threads that have used it before, for a reason that does not tell what reached the disk."""
    journal = store._core.journal
    assert isinstance(journal, Ledger)
    connections = [each.connection for each in journal.database._accesses if each.connection is not None]
    for connection in connections:
        connection.set_authorizer(
            lambda action, word, *_: (
                sqlite3.SQLITE_DENY
                if (action, word) == (sqlite3.SQLITE_TRANSACTION, "COMMIT")
                else sqlite3.SQLITE_OK
            )
        )
    try:
        yield
    finally:
        for connection in connections:
            connection.set_authorizer(None)


def files_with(path: Path, text: str) -> list[str]:
    """The files below a folder that contain a text, as another process reads them."""
    return _run(_SEARCH, str(path), text).splitlines()


def hex_in_files(path: Path, digits: str) -> list[str]:
    """The files below a folder that contain some bytes, given as hexadecimal digits, as another process reads them."""
    return _run(_SEARCH_HEX, str(path), digits).splitlines()


def words_in_files(path: Path, words: Sequence[str]) -> set[str]:
    """Return those of the words that any file below a folder contains, as another process reads them."""
    return set(_run(_SEARCH_MANY, str(path), *words).splitlines())


def edit(path: Path, statement: str) -> None:
    """Run a statement on the ledger of a store that may be open here."""
    _run(_EDIT, str(path / "ledger.db"), statement)


def _run(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-S", "-E", "-c", *words], capture_output=True, text=True, check=True
    ).stdout
