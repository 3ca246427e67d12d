"""The ways into a store: open it, restore it from a dump, verify one that refuses to open, compact its file."""

from __future__ import annotations

import os
import shutil
import warnings
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graphstore.errors import ConflictError, InvalidError, LockedError
from graphstore.ledger import backup as dumps
from graphstore.ledger.files import new_folder
from graphstore.ledger.folder import Folder
from graphstore.ledger.locating import compact, here, locate, opening, verify
from graphstore.store.store import Clock, GraphStore
from graphstore.values.inputs import text_of, whole_number
from graphstore.values.period import TimeLike
from graphstore.view.core_state import Core

if TYPE_CHECKING:
    from graphstore.view.vector_search import Embedder

__all__ = ["compact", "open", "restore", "verify"]

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
    share: bool = False,
    at_least: int | TimeLike | None = None,
) -> GraphStore:
    """Open a store: a folder such as `memory.gs`, made when it is not there (unless `create=False`), or `":memory:"`; or one that a server holds, by its address,
    such as `"http://127.0.0.1:7464"`, or the addresses of several with commas; or one in PostgreSQL, such as `"postgresql://host/database?store=team"`. Any number of processes on one machine open a folder and write it at once.

    `read_only=True` only reads, also where nothing may be written. `clock` gives an aware datetime. `durability="interval"` makes commits durable
    every 50 ms instead of one by one. `author` is the default author of transactions. `retention_days` and `retention_bytes` are kept in the
    store, see `set_retention`: each opening for writing evicts the events that are older. `embedder`: what finds texts by their meaning too: a name such as `"wordllama"`, kept in the store as
    by `embedders.set_embedder`, or a function, used in this opening alone. `token` is the server's access token (default: the
    environment's GRAPHSTORE_TOKEN), `timeout` how many seconds it has to answer; of a folder,
    how many seconds a write waits for those of other processes (default: 30). Clock and durability of a store that is served are its server's.
    `share` and `at_least` have no effect any more and are deprecated.

    Raises LockedError when release 0.1 has it open, DamageError (with file and line) for a damaged journal, EngineError for a newer schema or
    what the system refuses (with the file and the way out; nothing stays open or locked then),
    InvalidError for a path that is no store, NotFoundError when there is none and none is made.
    """
    if driver not in _DRIVERS:
        raise InvalidError.choice("driver", driver, _DRIVERS)
    for name, is_given in (("share", share), ("at_least", at_least is not None)):
        if is_given:
            warnings.warn(
                f"{name}= of graphstore.open has no effect any more. Leave it out.",
                DeprecationWarning,
                stacklevel=2,
            )
    _refuse_wrong(durability, clock, author)
    limits = _limits(retention_days, retention_bytes, read_only)
    if isinstance(path, str) and path.startswith(("http://", "https://")):
        _refuse_of_a_server(path, clock, durability)
        from graphstore.remote import remote

        served = remote.connect(path, token, author=author, read_only=read_only, timeout=timeout)
        if limits or embedder:
            _keep(served, limits, embedder)
        return served
    with opening(path):
        place = locate(path, read_only=read_only, create=create)
        if timeout is not None:
            place.timeout = _seconds(timeout)
        store = _store_in(
            place, clock=clock or place.clock, driver=driver, durability=durability, author=author
        )
        _keep(store, limits, embedder)
        return store


def _refuse_wrong(durability: str, clock: object, author: object) -> None:
    """Raise InvalidError for an option that is none."""
    if durability not in _DURABILITY:
        raise InvalidError.choice("durability", durability, _DURABILITY)
    if clock is not None and not callable(clock):
        raise InvalidError(f"clock {clock!r} is no clock. Give a callable that returns an aware datetime.")
    if author is not None:
        text_of("author", author)


def _limits(days: int | None, size: int | None, read_only: bool) -> dict[str, int]:
    """Return the limits of retention that were given. Raises InvalidError."""
    days, size = whole_number("retention_days", days), whole_number("retention_bytes", size)
    if read_only and (days or size):
        raise InvalidError(
            "a reader keeps nothing. Leave retention_days and retention_bytes out, or open for writing."
        )
    return {name: limit for name, limit in (("days", days), ("bytes", size)) if limit}


def _refuse_of_a_server(url: str, clock: Clock | None, durability: str) -> None:
    """Raise InvalidError for options that only a server can set."""
    if clock is not None:
        raise InvalidError(f"{url} has a clock of its own: that of its server. Leave clock out.")
    if durability != "commit":
        raise InvalidError(f"{url} is made durable by its server, commit by commit. Leave durability out.")


def _store_in(place: Folder, **options: Any) -> GraphStore:
    """Open the store of a folder, and let go of the folder when that fails."""
    place.hold()
    try:
        return GraphStore(place, **options)
    except BaseException:
        place.release()
        raise


def _embedder(name: str) -> Embedder:
    """Return the embedder with a name. Loads it when a store first needs it."""
    from graphstore.memory import embedders

    return embedders.ready(name)


Core.embedder_of = staticmethod(_embedder)


def _seconds(timeout: float) -> float:
    """Return a timeout that is one. Raises InvalidError otherwise."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout < inf:
        raise InvalidError(f"timeout {timeout!r} is no time. Give seconds as a number of at least 0.")
    return float(timeout)


def _keep(store: GraphStore, limits: dict[str, int], embedder: str | Embedder | None) -> None:
    """Apply the settings given to `open` to a store that was just opened. Closes it when that fails."""
    try:
        if embedder is not None:
            from graphstore.memory import embedders

            embedders.use(store, embedder)
        if limits:
            store.set_retention(**(store.retention | limits))
        if not store.read_only:
            store.evict_old()
    except BaseException:
        store.close()
        raise


def restore(
    dump: str | os.PathLike[str], path: str | os.PathLike[str], *, clock: Clock | None = None
) -> GraphStore:
    """Make a new store at `path` from a dump that `export` wrote, verifying each line and that none is missing, and open it.

    It is made beside `path`, in `.NAME.part`, and gets its name when it is whole and on the disk: a killed restore leaves nothing at `path`,
    and the next one removes its rest. Raises DamageError with the dump's line, ConflictError when `path` is there already; nothing is left behind then.
    """
    here(path)
    target = Path(path)
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise ConflictError(f"{target} is there already. Restore into a new name.")
    with new_folder(target) as fresh:
        is_whole = dumps.load(Path(dump), fresh)
    try:
        store = open(target, create=False, clock=clock)
    except LockedError:  # another process has opened it meanwhile: it is whole
        raise
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    if not is_whole:
        store.notices.append(dumps.unsure(Path(dump)))
    return store
