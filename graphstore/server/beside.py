"""Folders of a server outside its store: one that was killed leaves none for long, the next server removes them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from graphstore.ledger.processes import lives

_NAME = "graphstore-copy-"


def copy_folder() -> Path:
    """A new folder for a copy of a store, that only this user may look into. Those of processes that have ended are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_NAME}*"):
        pid = left.name.removeprefix(_NAME).partition("-")[0]
        if pid.isdigit() and not lives(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_NAME}{os.getpid()}-"))
