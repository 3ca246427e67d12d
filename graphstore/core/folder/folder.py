"""What the folder of a ledger has in common with that of release 0.1, whose journal an upgrade and a check read.

memory.gs/
  journal/00000001.jsonl …   the truth of a store of release 0.1
  lock                       the writer's pid, held by the operating system while it lives
  server.json, token …       where it is served, and what a client shows to be let in
  graph.kuzu, graph.json     the graph tables and how far they are (disposable)
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson

from graphstore.core.folder.server_file import LOCK, holder, own_bytes
from graphstore.core.journal.file_lock import try_lock
from graphstore.core.journal.files import (
    open_plain,
    own_folder,
    patiently,
    plain_bytes,
    pwrite_all,
    read_at,
    remove_cut,
    remove_tree,
    sync_folder,
    way_out,
)
from graphstore.core.journal.journal import Journal
from graphstore.errors import DamageError, EngineError, InvalidError, LockedError
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.write_lock import command
from graphstore.values.models import Problem
from graphstore.values.period import Instant, instant, iso

_JOURNAL, _NOTE = "journal", "graph.json"
_SAVED = ("index.bin", "words.bin")  # copies of the index that earlier versions left
_ACCESSES = "accesses.json"
_OLD_VECTORS = "vectors-*"  # left by earlier versions, and not read: they are made of the texts again
COPY = "copy-of"  # a file with the address of the store that a folder is a copy of
_LOOKS = 3  # so often the lock is tried, which others may touch, and a journal that seems broken is read
_TRIES = 100  # attempts of a reader, 10 ms apart, while the writer replaces files
_open_here: set[str] = set()


class Folder:
    """One store's place on disk."""

    tables_elsewhere = False  # whether another process has the graph tables of the folder open
    shared = False  # whether other processes write to the store while this one has it open
    timeout = 30.0  # seconds that a writer waits for the others

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.shown: Path | None = path  # the folder that users are told; None of a store in memory
        self.named = str(path)  # as it was opened
        self.read_only = read_only
        self.follows = read_only  # whether the files are another process's
        self.journal = path / _JOURNAL
        self.tables = path if not read_only and own_folder(path) else None
        self._fresh, self._old = path / f"{_JOURNAL}.new", path / f"{_JOURNAL}.old"
        self._lock: int | None = None
        self._real = ""

    def hold(self) -> None:
        """Become the only writer. Raises LockedError naming who is."""
        if self.follows:
            return
        real = str(self.path.resolve())
        if real in _open_here:
            raise LockedError(
                f"{self.path} is open for writing in this process already (pid {os.getpid()}). Share that store, or close it first."
            )
        fd = open_plain(self.path / LOCK, os.O_RDWR | os.O_CREAT, alone=True)
        try:
            self._take(fd)
        except BaseException:
            os.close(fd)
            raise
        self._lock, self._real = fd, real
        _open_here.add(real)
        try:
            self._mend()
        except BaseException:
            self.release()
            raise

    def _take(self, fd: int) -> None:
        if not _locked(fd):
            known = read_at(fd, 0, 200).decode(errors="replace").strip() or "unknown"
            raise LockedError(
                f"{self.path} is held by another writer ({known}{command(known)}). {self._way_out()}"
            )
        os.ftruncate(fd, 0)
        pwrite_all(fd, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def _way_out(self) -> str:
        """Return what to do where another process holds the folder."""
        return "Wait until it closes."

    def release(self) -> None:
        """Let another writer in."""
        if self._lock is not None:
            _open_here.discard(self._real)
            with contextlib.suppress(OSError):
                os.close(self._lock)
            self._lock = None

    def prepare(self, journal: Ledger, notify: Callable[[str], None]) -> bool:
        """Do what opening does before anything is read. Returns whether that is all."""
        if not self.follows:
            with contextlib.suppress(OSError):  # what is forgotten removes them, or says that it cannot
                remove_cut(self.path.glob(_OLD_VECTORS))
        if not self.follows and self.tables is None and not self.tables_elsewhere:
            notify(
                f"{self.path} belongs to somebody else, or everybody may write it: the graph tables are kept in memory, for the engine "
                "that opens their files follows links."
            )
        return False

    def _mend(self) -> None:
        """Finish a replacement that a process left unfinished."""
        if not self.journal.exists():
            for folder in (self._fresh, self._old):
                if folder.is_dir() and not folder.is_symlink():
                    folder.rename(self.journal)
                    break
        for folder in (self._fresh, self._old):
            with contextlib.suppress(OSError):
                remove_tree(folder)
        for file in (*self.journal.glob("*.new"), *self.path.glob("*.new")):
            with contextlib.suppress(OSError):  # it is in the way of nothing but what wants that name
                file.unlink()

    def _remove_copies(self) -> None:
        """Remove files with contents, or with places that will move."""
        remove_cut([*self.path.glob("graph.kuzu*"), *self.path.glob(_OLD_VECTORS)])
        files = [self.path / name for name in _SAVED]
        for name in (*self.path.glob(f"{_NOTE}*"), *files, *(file.with_suffix(".new") for file in files)):
            patiently(partial(name.unlink, missing_ok=True))
        sync_folder(self.path)

    def is_written(self) -> bool:
        """Whether a living process holds the store for writing."""
        return holder(self.path) is not None

    def kept_accesses(self, journal: Ledger) -> dict[str, int]:
        """What was counted before, once."""
        if self.follows:
            return {}
        with contextlib.suppress(OSError, ValueError, AttributeError):
            kept = orjson.loads((raw := plain_bytes(self.path / _ACCESSES)) or b"{}")
            if raw:
                (self.path / _ACCESSES).unlink()
            return {name: count for name, count in kept.items() if type(count) is int and count > 0}
        return {}


class Reach(NamedTuple):
    """Says what the graph tables of a folder know of the journal that they were made from; `transactions` is None where that was not noted."""

    file: Path
    changed: int
    transactions: int | None
    last_tx: Instant


def known_reach(place: Path) -> Reach | None:
    """Return how far the journal of a store reached when its tables were closed well; None where that was not noted."""
    file = place / _NOTE
    try:
        note, changed = orjson.loads(own_bytes(file)), file.stat().st_mtime_ns
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(note, dict) or type(note.get("last_tx")) is not int:
        return None
    count = note.get("transactions")
    return Reach(file, changed, count if type(count) is int else None, note["last_tx"])


def shortage(truth: Path, known: Reach | None, there: int, reached: Instant) -> str | None:
    """Return what to tell when a ledger or journal, at `truth`, has lost transactions that a copy knows; None when it has them all.

    Args:
        there: how many transactions it has.
        reached: the last of them.
    """
    if known is None:
        return None
    file, changed, transactions, last_tx = known
    left = transactions - there if transactions is not None else int(last_tx > reached)
    try:
        if (
            left <= 0 or file.stat().st_mtime_ns != changed
        ):  # the writer has replaced it meanwhile, and with it the journal
            return None
    except OSError:
        return None
    count = f"{left}" if transactions is not None else "at least 1"
    return (
        f"{truth}: {count} {'transaction' if left == 1 else 'transactions'} missing: {file.name} was made when it reached to "
        f"{iso(last_tx)}, and now it ends at {iso(reached) if there else 'its beginning'} with {there}. Nothing was changed. "
        f"Bring back {truth.name}, or restore a dump or a backup into a new folder. To go on without what is missing, for good, remove {_NOTE} first."
    )


def here(path: str | os.PathLike[str]) -> None:
    """Raises InvalidError for an address where a folder on this machine is wanted; a Path has one slash of it less."""
    scheme, address, _ = os.fspath(path).partition(":/")
    scheme = scheme.lower() if address else ""
    if scheme.startswith(("postgresql", "postgres")):
        raise InvalidError(
            "that is the address of a store in PostgreSQL, and this needs the folder of a store. Copy it into one with: graphstore copy 'ADDRESS' FOLDER"
        )
    if scheme in ("http", "https"):
        raise InvalidError(
            f"{os.fspath(path)} is the address of a server, and this needs the folder of a store. Do it where the folder lies."
        )


@contextlib.contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system refuses while a store is opened into an EngineError, with the path and the way out."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"cannot open {_named(path, error)}: {error.strerror or error}. Nothing is lost. {way_out(error)}"
        ) from error


def _named(path: str | os.PathLike[str], error: OSError) -> str:
    """The file of an error, and the store where that does not show in it."""
    file = error.filename if isinstance(error.filename, str) else ""
    return f"{file} of {path}" if file and not file.startswith(os.fspath(path)) else file or os.fspath(path)


def _locked(fd: int) -> bool:
    """Take the writer's lock. Returns False when another process has it; one that only looks at it has it for a moment."""
    for _ in range(_LOOKS):
        if try_lock(fd):
            return True
        time.sleep(0.001)
    return try_lock(fd)


def read_anew(place: Folder) -> tuple[int, Instant, list[Problem]]:
    """Read the journal of release 0.1 again. Return how many transactions it has, when the last one was, and what is wrong with it."""
    journal, count, last_tx = Journal(place.journal), 0, 0
    try:
        for lines in journal.read():
            count, last_tx = count + 1, instant(lines[-1].head["tx"])
        problems = []
        torn = journal.torn
        if torn is not None and torn.size and not place.is_written():  # else it is being written
            problems.append(
                Problem(
                    file=torn.file,
                    line=torn.line,
                    message=f"{torn.size} bytes of a commit that was never acknowledged",
                )
            )
        return count, last_tx, problems
    except DamageError as error:
        file, line = _where(str(error))
        return 0, 0, [Problem(file=file, line=line, message=str(error))]
    except (OSError, EngineError) as error:
        file = str(getattr(error, "filename", None) or place.journal)
        return 0, 0, [Problem(file=file, line=None, message=f"it cannot be read: {error}")]
    finally:
        journal.close()


def _where(message: str) -> tuple[str, int | None]:
    head, _, rest = message.partition(" line ")
    number = rest.split(":", 1)[0]
    return head, int(number) if number.isdigit() else None
