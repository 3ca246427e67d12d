"""Release 0.1: its tree, and folders as it left them, with a journal of lines in files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.old_journal import header
from lab import releases


def tree_of_old(folder: Path) -> Path:
    """Put the tree of release 0.1 into a folder. Skips the test where the clone does not have its commit."""
    try:
        return releases.taken_out(releases.RELEASE_0_1, folder)
    except subprocess.CalledProcessError:
        pytest.skip("this clone has no history: fetch it whole to run release 0.1")


@contextmanager
def open_old(path: Path, **options: Any) -> Iterator[GraphStore]:
    """Open a store, and leave its folder behind with the journal of release 0.1 in the place of the ledger: the lines are the same."""
    with graphstore.open(path, **options) as store:
        yield store
    with closing(Ledger(Database(path / NAME, read_only=True))) as ledger:
        lines = b"".join(line.line() for line in ledger.verbatim())
    (path / "journal").mkdir()
    (path / "journal" / "00000001.jsonl").write_bytes(header(1) + lines)
    for file in path.glob(f"{NAME}*"):
        file.unlink()
