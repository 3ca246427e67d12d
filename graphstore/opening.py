"""The ways into a store: open it, restore it from a dump, verify one that refuses to open."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphstore.core.folder import folder
from graphstore.core.folder import restore as dumps
from graphstore.core.folder.folder import verify
from graphstore.core.journal.files import new_folder
from graphstore.errors import ConflictError, InvalidError, LockedError
from graphstore.store.store import Clock, GraphStore
from graphstore.values.inputs import text_of, whole_number

if TYPE_CHECKING:
    from graphstore.core.read.vector_search import Embedder

__all__ = ["open", "restore", "served", "verify"]

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
    embedder: str | Embedder | None = None,
    token: str | None = None,
    timeout: float | None = None,
) -> GraphStore:
    """Open a store: a folder such as `memory.gs`, made when it is not there (unless `create=False`), or `":memory:"`; or one that a server holds, by its address,
    such as `"http://127.0.0.1:7464"`. A folder that a server on this machine holds is opened through it, unless it is only to be read.

    `read_only=True` follows another process's journal: `refresh()` moves it on. `clock` gives an aware datetime. `durability="interval"` makes commits durable
    every 50 ms instead of one by one. `author` is the default author of transactions. `retention_days` and `retention_bytes` are kept in the
    store, see `set_retention`: each opening for writing evicts the events that are older. `embedder`: what finds texts by their meaning too: a name such as `"wordllama"`, kept in the store as
    by `embedders.set_embedder`, or a function, used in this opening alone. `token` is the server's access token (default: the
    environment's GRAPHSTORE_TOKEN), `timeout` how many seconds it has to answer. Clock and durability of a store that is served are its server's.

    Raises LockedError when another writer holds it, DamageError (with file and line) for a damaged journal, EngineError for a newer schema or
    what the system refuses (with the file and the way out; nothing stays open or locked then),
    InvalidError for a path that is no store, NotFoundError when there is none and none is made.
    """
    if driver not in _DRIVERS:
        raise InvalidError.choice("driver", driver, _DRIVERS)
    options = _options(
        read_only, clock, durability, author, token, timeout, retention_days, retention_bytes, embedder
    )
    if isinstance(path, str) and path.startswith(("http://", "https://")):
        return options.at(path)
    with folder.opening(path):
        place = folder.locate(path, read_only=read_only, create=create)
        try:
            place.hold()
        except LockedError:
            found = None if place.path is None or place.held_here() else folder.serving(place.path)
            if found is None:
                raise
            return options.at(found[0], token=found[1])
        try:
            store = GraphStore(place, clock=clock, driver=driver, durability=durability, author=author)
        except BaseException:
            place.release()
            raise
        options.keep(store)
        return store


def served(path: str | os.PathLike[str], *, author: str | None = None) -> GraphStore | None:
    """The store of a folder, only to be read, through the server that holds it on this machine; None when none does. Quicker than reading its journal."""
    found = folder.serving(path, wait=0)
    return None if found is None else open(found[0], read_only=True, author=author, token=found[1])


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of `open` beside the path, checked."""

    read_only: bool
    clock: Clock | None
    durability: str
    author: str | None
    token: str | None
    timeout: float | None
    days: int | None
    size: int | None
    embedder: str | Embedder | None

    def at(self, url: str, *, token: str | None = None) -> GraphStore:
        """The store that a server at this address holds."""
        from graphstore.remote import remote

        if self.clock is not None:
            raise InvalidError(f"{url} has a clock of its own: that of its server. Leave clock out.")
        if self.durability != "commit":
            raise InvalidError(
                f"{url} is made durable by its server, commit by commit. Leave durability out."
            )
        store = remote.connect(
            url, token or self.token, author=self.author, read_only=self.read_only, timeout=self.timeout,
        )  # fmt: skip
        if self.days or self.size or self.embedder:
            self.keep(store)
        return store

    def keep(self, store: GraphStore) -> None:
        """Apply the settings to a store that was just opened. Closes it when that fails."""
        try:
            if self.embedder is not None:
                from graphstore.memory import embedders

                embedders.use(store, self.embedder)
            if self.days or self.size:
                kept = store.retention
                store.set_retention(days=self.days or kept["days"], bytes=self.size or kept["bytes"])
            if not self.read_only:
                store.evict_old()
        except BaseException:
            store.close()
            raise


def _options(
    read_only: bool,
    clock: Clock | None,
    durability: str,
    author: str | None,
    token: str | None,
    timeout: float | None,
    retention_days: int | None,
    retention_bytes: int | None,
    embedder: str | Embedder | None,
) -> _Options:
    if durability not in _DURABILITY:
        raise InvalidError.choice("durability", durability, _DURABILITY)
    if clock is not None and not callable(clock):
        raise InvalidError(f"clock {clock!r} is no clock. Give a callable that returns an aware datetime.")
    if author is not None:
        text_of("author", author)
    days = whole_number("retention_days", retention_days)
    size = whole_number("retention_bytes", retention_bytes)
    if read_only and (days or size):
        raise InvalidError(
            "a reader keeps nothing. Leave retention_days and retention_bytes out, or open for writing."
        )
    return _Options(read_only, clock, durability, author, token, timeout, days, size, embedder)


def restore(
    dump: str | os.PathLike[str], path: str | os.PathLike[str], *, clock: Clock | None = None
) -> GraphStore:
    """Make a new store at `path` from a dump that `export` wrote, verifying each line and that none is missing, and open it.

    It is made beside `path`, in `.NAME.part`, and gets its name when it is whole and on the disk: a killed restore leaves nothing at `path`,
    and the next one removes its rest. Raises DamageError with the dump's line, ConflictError when `path` is there already; nothing is left behind then.
    """
    folder.here(path)
    target = Path(path)
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise ConflictError(f"{target} is there already. Restore into a new name.")
    with new_folder(target) as fresh:
        loaded = dumps.load(Path(dump), fresh / "journal")
    try:
        store = open(target, create=False, clock=clock)
    except LockedError:  # another process has opened it meanwhile: it is whole
        raise
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    if not loaded.whole:
        store.notices.append(dumps.unsure(Path(dump)))
    return store
