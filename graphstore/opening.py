"""The ways into a store: open it, restore it from a dump, verify one that refuses to open."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphstore.core.folder import folder, server_file
from graphstore.core.folder import restore as dumps
from graphstore.core.folder.copying import copy
from graphstore.core.folder.folder import verify
from graphstore.core.journal.cluster import is_cluster
from graphstore.core.journal.files import new_folder
from graphstore.errors import ConflictError, EngineError, InvalidError, LockedError
from graphstore.store.store import Clock, GraphStore
from graphstore.values.inputs import text_of, whole_number
from graphstore.values.period import BEGINNING, Instant, TimeLike, exactly, instant

if TYPE_CHECKING:
    from graphstore.core.read.vector_search import Embedder

__all__ = ["copy", "open", "restore", "served", "verify"]

_DRIVERS = ("kuzu", "ladybug")
_DURABILITY = ("commit", "interval")
_MOMENT = 2.0  # seconds that who shares a store waits for a lock that is about to go
_LAG = 10.0  # seconds that a reader waits for what it is to know at least
_SHARING = "graphstore.server.in_process"  # there with the extra of the server


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
    such as `"http://127.0.0.1:7464"`, or the addresses of several with commas; or one in PostgreSQL, `"postgresql://host/database?store=team"`, which many processes open and write at once. A folder that a server on this machine holds is opened through it, unless it is only to be read.

    `read_only=True` follows another process's journal: `refresh()` moves it on. `clock` gives an aware datetime. `durability="interval"` makes commits durable
    every 50 ms instead of one by one. `author` is the default author of transactions. `retention_days` and `retention_bytes` are kept in the
    store, see `set_retention`: each opening for writing evicts the events that are older. `embedder`: what finds texts by their meaning too: a name such as `"wordllama"`, kept in the store as
    by `embedders.set_embedder`, or a function, used in this opening alone. `token` is the server's access token (default: the
    environment's GRAPHSTORE_TOKEN), `timeout` how many seconds it has to answer; of a folder
    that another writer holds, how many seconds to wait for it (default: none). Clock and durability of a store that is served are its server's.
    `share=True` lets other processes of this machine in while this one holds the folder, and goes on through another's server when that holds it.
    `at_least` waits until what was written by that tx is known here (`last_write` of who wrote), or so many transactions (`stats()["transactions"]`): a reader
    of another process's journal lags a little.

    Raises LockedError when another writer holds it (for longer than `timeout`), DamageError (with file and line) for a damaged journal, EngineError for a newer schema or
    what the system refuses (with the file and the way out; nothing stays open or locked then),
    InvalidError for a path that is no store, NotFoundError when there is none and none is made.
    """
    if driver not in _DRIVERS:
        raise InvalidError.choice("driver", driver, _DRIVERS)
    wanted = _wanted(at_least)
    options = _options(
        read_only, clock, durability, author, token, timeout, retention_days, retention_bytes, embedder
    )
    if isinstance(path, str) and path.startswith(("http://", "https://")):
        return options.at(path, at_least=_tx_of_server(wanted))
    if is_cluster(path):
        return _cluster(str(path), options, driver=driver, create=create, share=share, at_least=wanted)
    with folder.opening(path):
        place = folder.locate(path, read_only=read_only, create=create)
        found = _held(place, _MOMENT if share else 0.0, timeout)
        if found is not None:
            return options.at(found[0], token=found[1], folder=place.path, share=share)
        try:
            store = GraphStore(place, clock=clock, driver=driver, durability=durability, author=author)
        except BaseException:
            place.release()
            raise
        options.keep(store)
        if share:
            _let_others_in(store)
        return _with_at_least(store, wanted)


def _cluster(
    url: str,
    options: _Options,
    *,
    driver: str,
    create: bool,
    share: bool,
    at_least: _AtLeast | None,
) -> GraphStore:
    """The store of that name in PostgreSQL, followed from here on."""
    from graphstore.core.folder.cluster_cache import ClusterPlace

    if share:
        raise InvalidError(
            "a store in PostgreSQL is open to other processes as it is: each opens its address. Leave share out."
        )
    place = ClusterPlace(url, read_only=options.read_only, create=create)
    try:
        place.hold()
        store = GraphStore(
            place, clock=options.clock, driver=driver, durability=options.durability, author=options.author
        )
    except BaseException:
        place.release()
        raise
    store._watch()
    options.keep(store)
    return _with_at_least(store, at_least)


def _with_at_least(store: GraphStore, wanted: _AtLeast | None) -> GraphStore:
    """Wait until a store has followed its writers to so many transactions, or to a tx. Closes it when that is not soon."""
    if wanted is None:
        return store
    try:
        if wanted.transactions is not None:
            count = store._followed_to(wanted.transactions, _LAG)
            known, enough = f"there are {count} transactions here", count >= wanted.transactions
        else:
            enough = store._followed_to_tx(wanted.tx, _LAG)
            last = exactly(store._last_tx) if store._first_tx is not None else "none"
            known = f"the last transaction here is {last}"
    except BaseException:
        store.close()
        raise
    if enough:
        return store
    store.close()
    raise EngineError(f"at_least={wanted.said}: {known}. Ask a server that has more, or leave at_least out.")


class _AtLeast(NamedTuple):
    """What is to be known: so many transactions, or what was written by a tx; and as it was said."""

    transactions: int | None
    tx: Instant
    said: object


def _wanted(said: int | TimeLike | None) -> _AtLeast | None:
    """Raises InvalidError for what is neither a number of transactions nor a tx."""
    if said is None:
        return None
    if isinstance(said, int) and not isinstance(said, bool):
        if said < 0:
            raise InvalidError(
                f"at_least {said} is out of range. Give how many transactions are to be known, 0 or more, or a tx."
            )
        return _AtLeast(said, BEGINNING, said)
    if isinstance(said, str | date):
        return _AtLeast(None, instant(said, "at_least"), said)
    raise InvalidError(
        f'at_least {said!r} is neither a number of transactions nor a tx. Give last_write of who wrote, or its stats()["transactions"].'
    )


def _tx_of_server(wanted: _AtLeast | None) -> Instant | None:
    if wanted is None:
        return None
    if wanted.transactions is not None:
        raise InvalidError(
            f"at_least={wanted.said}: of a store that is served say the tx that is to be known, last_write of who wrote."
        )
    return wanted.tx


def _held(place: folder.Folder, patience: float, timeout: float | None) -> tuple[str, str] | None:
    """Hold the folder, or find the server that does. Raises LockedError where another process holds it for longer than that, and lets nobody in; with a
    `timeout` where anybody does, of this process too."""
    until = time.monotonic() + (patience if timeout is None else _seconds(timeout))
    while True:
        try:
            place.hold()
            return None
        except LockedError:
            here = place.path is None or place.held_here()
            found = None if here or place.path is None else server_file.serving(place.path)
            if found is not None:
                return found
            if (here and timeout is None) or time.monotonic() >= until:
                raise
        time.sleep(0.02)


def _seconds(timeout: float) -> float:
    """A timeout that is one. Raises InvalidError otherwise."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout < inf:
        raise InvalidError(f"timeout {timeout!r} is no time. Give seconds as a number of at least 0.")
    return float(timeout)


def shared(
    path: str | os.PathLike[str], *, author: str | None = None, read_only: bool = False
) -> GraphStore | None:
    """The store of a folder through its server, which is started in the background where nobody holds the folder; None where that cannot be."""
    from graphstore.remote import sharing

    with folder.opening(path):
        place = folder.locate(path, read_only=False, create=True)
        if place.path is None or place.held_here():
            return None
        found = sharing.joined(place.path)
    if found is None:
        return None
    options = _options(read_only, None, "commit", author, None, None, None, None, None)
    return options.at(found[0], token=found[1], folder=place.path, share=True)


def _let_others_in(store: GraphStore) -> None:
    """Serve a store from this process, until it is closed."""
    if store.path is None or store.read_only:
        raise InvalidError(
            "share=True is for a store in a folder that is opened for writing. Leave it out, or give a folder."
        )
    try:
        in_process = import_module(_SHARING)
    except ImportError as error:
        store.close()
        raise InvalidError(
            f"to share a store needs {error.name}. Install it: pip install 'graphstore[server]'"
        ) from None
    try:
        store._before_close(in_process.serving(store))
    except BaseException:
        store.close()
        raise


def served(path: str | os.PathLike[str], *, author: str | None = None) -> GraphStore | None:
    """The store of a folder, only to be read, through the server that holds it on this machine; None when none does. Quicker than reading its journal."""
    found = server_file.serving(path, wait=0)
    if found is None:
        return None
    options = _options(True, None, "commit", author, None, None, None, None, None)
    return options.at(found[0], token=found[1], folder=Path(path))


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

    def at(
        self,
        url: str,
        *,
        token: str | None = None,
        folder: Path | None = None,
        share: bool = False,
        at_least: Instant | None = None,
    ) -> GraphStore:
        """The store that a server at this address holds; of a folder, the server that holds it at each call."""
        from graphstore.remote import remote, sharing

        if self.clock is not None:
            raise InvalidError(f"{url} has a clock of its own: that of its server. Leave clock out.")
        if self.durability != "commit":
            raise InvalidError(
                f"{url} is made durable by its server, commit by commit. Leave durability out."
            )
        store = remote.connect(
            url, token or self.token, author=self.author, read_only=self.read_only, timeout=self.timeout, at_least=at_least,
            find=None if folder is None else partial(
                sharing.again, folder, start=share or server_file.how_started(folder) == "in the background"
            ),
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
