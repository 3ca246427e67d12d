"""Stores as release 0.1 keeps them in a folder: a journal of files, and a lock for one writer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from graphstore import GraphStore
from graphstore.core.folder.folder import Folder


def open_old(
    path: Path,
    *,
    read_only: bool = False,
    clock: Callable[[], datetime] | None = None,
    author: str | None = None,
) -> GraphStore:
    """Open a folder by the classes of release 0.1, which made its journal."""
    if not read_only:
        path.mkdir(parents=True, exist_ok=True)
    place = Folder(path, read_only=read_only)
    place.hold()
    try:
        return GraphStore(place, clock=clock, driver="kuzu", durability="commit", author=author)
    except BaseException:
        place.release()
        raise
