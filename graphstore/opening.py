"""The ways into a store: open it, restore it from a dump, verify one that refuses to open."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

from graphstore import dump as dumps
from graphstore import folder
from graphstore.errors import ConflictError, EngineError, InvalidError
from graphstore.folder import verify
from graphstore.inputs import text_of
from graphstore.retention import whole_number
from graphstore.store import Clock, GraphStore

__all__ = ["open", "restore", "verify"]

_DRIVERS = ("kuzu", "ladybug")
_DURABILITY = ("commit", "interval")


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    clock: Clock | None = None,
    driver: Literal["kuzu", "ladybug"] = "kuzu",
    durability: Literal["commit", "interval"] = "commit",
    author: str | None = None,
    retention_days: int | None = None,
    retention_bytes: int | None = None,
) -> GraphStore:
    """Open a store: a folder such as `memory.gs`, made when it is not there (unless `create=False`), or `":memory:"`.

    `read_only=True` follows another process's journal: `refresh()` moves it on. `clock` gives an aware datetime. `durability="interval"` makes commits durable
    every 50 ms instead of one by one. `author` is who writes, unless a transaction says otherwise. `retention_days` and `retention_bytes` are kept in the
    store, see `set_retention`: each opening for writing evicts the events that are older.

    Raises LockedError when another writer holds it, DamageError (with file and line) for a damaged journal, EngineError for a newer schema,
    InvalidError for a path that is no store, NotFoundError when there is none and none is made.
    """
    if driver not in _DRIVERS:
        raise InvalidError.choice("driver", driver, _DRIVERS)
    if durability not in _DURABILITY:
        raise InvalidError.choice("durability", durability, _DURABILITY)
    if clock is not None and not callable(clock):
        raise InvalidError(f"clock {clock!r} is no clock. Give a callable that returns an aware datetime.")
    if author is not None:
        text_of("author", author)
    days, size = (
        whole_number("retention_days", retention_days),
        whole_number("retention_bytes", retention_bytes),
    )
    if read_only and (days or size):
        raise InvalidError(
            "a reader keeps nothing. Leave retention_days and retention_bytes out, or open for writing."
        )
    place = folder.locate(path, read_only=read_only, create=create)
    place.hold()
    try:
        store = GraphStore(place, clock=clock, driver=driver, durability=durability, author=author)
    except BaseException:
        place.release()
        raise
    try:
        if days or size:
            kept = store.retention
            store.set_retention(days=days or kept["days"], bytes=size or kept["bytes"])
        if not read_only:
            store.evict_old()
    except BaseException:
        store.close()
        raise
    return store


def restore(
    dump: str | os.PathLike[str], path: str | os.PathLike[str], *, clock: Clock | None = None
) -> GraphStore:
    """Make a new store at `path` from a dump that `export` wrote, verifying each line, and open it.

    Raises DamageError with the dump's line, ConflictError when `path` is there already; nothing is left behind then.
    """
    target = Path(path)
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise ConflictError(f"{target} is there already. Restore into a new name.")
    made = not target.exists()
    try:
        dumps.load(Path(dump), target / "journal")
        return open(target, create=False, clock=clock)
    except BaseException as error:
        shutil.rmtree(target if made else target / "journal", ignore_errors=True)
        if isinstance(error, OSError):
            raise EngineError(f"cannot restore into {target}: {error.strerror}.") from error
        raise
