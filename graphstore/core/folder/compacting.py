"""Gives the free pages of a store's file back to the system."""

from __future__ import annotations

import os
from contextlib import closing
from typing import NamedTuple

from graphstore.core.folder.folder import opening
from graphstore.core.folder.locating import locate
from graphstore.ledger.database import Database


class Compacted(NamedTuple):
    """The size of a ledger in bytes, before and after its free pages were given back.

    `whole` is False when another process reads an old snapshot: the file shrinks when that reader has ended and the store is written again.
    """

    before: int
    after: int
    whole: bool


def compact(path: str | os.PathLike[str]) -> Compacted:
    """Write the file of a store without its free pages. Other processes may have the store open; they write again afterwards.

    Raises NotFoundError where there is no store, InvalidError for a store that is not a folder, EngineError for a store of release 0.1 and when the disk
    refuses: it needs twice the room of the file for a moment.
    """
    with opening(path):
        place = locate(path, read_only=True, create=False)
        with closing(Database(place.file, timeout=place.timeout)) as database:
            before = place.file.stat().st_size
            whole = database.remove_freed_bytes()
        return Compacted(before, place.file.stat().st_size, whole)
