"""A store's folder: its lock, its files, and how its index is loaded.

memory.gs/
  journal/00000001.jsonl …   the truth
  lock                       the writer's pid, held by the operating system while it lives
  server.json, token …       where it is served, and what a client shows to be let in
  accesses.json              how often things were looked up since that was last written to the journal: of a store in PostgreSQL
  graph.kuzu, graph.json     the graph tables and how far they are (disposable)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import orjson

from graphstore.core.folder import branch_index, forgetting, rewrite
from graphstore.core.folder.server_file import LOCK, holder, own_bytes
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.journal.file_lock import try_lock
from graphstore.core.journal.files import (
    is_alone,
    open_new,
    open_plain,
    own_folder,
    patiently,
    plain_bytes,
    pwrite_all,
    read_at,
    remove_cut,
    remove_tree,
    replace_whole,
    sync_folder,
    way_out,
    write_all,
)
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import GENESIS
from graphstore.core.journal.positions import Position
from graphstore.core.journal.seam import Seam
from graphstore.errors import DamageError, EngineError, InvalidError, LockedError
from graphstore.ledger.write_lock import command
from graphstore.values.models import Problem
from graphstore.values.period import Instant, iso, moment

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
        """What to do where another process holds the folder."""
        return (
            "Wait until it closes, open with read_only=True to follow it, or let it be shared, so that many can write: "
            f"graphstore.open({str(self.path)!r}, share=True) there, or graphstore serve {self.path}"
        )

    def open_journal(self, durability: str) -> Seam:
        """The journal, as this place has it open."""
        return Journal(self.journal, writer=not self.read_only)

    def fresh_journal(self) -> Seam:
        """The journal once more, only to be read, from its beginning."""
        return Journal(self.journal, writer=False)

    def problems(self, journal: Seam) -> list[Problem]:
        """What is wrong with the journal elsewhere than in the files."""
        return []

    def rebuild_rows(self, journal: Seam) -> None:
        """Make what is derived from the journal anew, where anything is."""

    def finish(self, journal: Seam) -> None:
        """Finish, as the store is closed, what another process could not while this one had files of the folder open."""

    def release(self) -> None:
        """Let another writer in."""
        if self._lock is not None:
            _open_here.discard(self._real)
            with contextlib.suppress(OSError):
                os.close(self._lock)
            self._lock = None

    def prepare(self, journal: Seam, notify: Callable[[str], None]) -> bool:
        """Do what opening does before the index is loaded. Returns whether the index may wait until something needs it."""
        if not self.follows:
            with contextlib.suppress(OSError):  # what is forgotten removes them, or says that it cannot
                remove_cut(self.path.glob(_OLD_VECTORS))
        if not self.follows and self.tables is None and not self.tables_elsewhere:
            notify(
                f"{self.path} belongs to somebody else, or everybody may write it: the graph tables are kept in memory, for the engine "
                "that opens their files follows links."
            )
        return False

    def load(self, journal: Seam, notify: Callable[[str], None]) -> Index:
        """Read the index from the journal. Sets a torn tail aside."""
        reach = known_reach(self.path)
        index, _ = self.replay(journal)
        if lost := shortage(self.journal, reach, index.transactions, index.last_tx):
            raise DamageError(lost)
        if journal.torn is not None and not self.follows:
            journal.make_ready()
            if journal.torn.size:
                notify(str(journal.torn))
        if not self.follows:
            journal.settle()
            if self._old.exists():
                notify(f"{self._old} could not be removed: it has what was evicted. Remove it.")
        if index.unfinished:
            self.forget(index, journal)
        return index

    def forget(self, index: Index, journal: Seam) -> None:
        """Remove evicted and erased contents from every file; a reader only hides them. Raises EngineError when the disk refuses."""
        forgetting.hide(index)
        if self.follows:
            index.left = None
            return
        try:
            gone = forgetting.names(index)
            self._remove_copies()
            self._remove_torn(list(forgetting.as_written(gone)))
            journal.settle()
            forgetting.finish(index, journal, branch_index.remaining(index, journal))
        except OSError as error:
            raise EngineError(
                f"cannot remove contents from {error.filename or self.path}: {error.strerror}. What was forgotten is not shown any more, but "
                "its content is still in the files. Open the store again: that finishes it.",
                outcome="kept",
            ) from error

    def compact(
        self,
        deleted: Iterable[tuple[str, Instant]],
        journal: Seam,
        gone: set[str],
        last: rewrite.Transaction,
        tx: Instant,
        folded: frozenset[Instant] = frozenset(),
    ) -> None:
        """Replace the journal by one without the things of these ids, the `deleted` branches (see `BranchRecords.deleted`) and the `folded` transactions,
        with one transaction more, at `tx`. Raises EngineError when the disk refuses: everything is then as it was, or its outcome says otherwise."""
        old = Journal(self.journal, writer=False)
        try:
            rewrite.write(
                rewrite.chained(chain(rewrite.left(old, gone, deleted, folded), [last])),
                self._fresh,
                journal.generation + 1,
            )
        finally:
            old.close()
        try:
            self._replacing(self._fresh, journal)
            self._keep_torn(list(forgetting.as_written(gone)))
            self._remove_copies()
            remove_tree(self._old)
            with journal.quiet():
                journal.reopen()
                self._swap()
        except OSError as error:
            if not os.path.lexists(
                self.journal
            ):  # both are kept: which of them counts is decided when it is opened again
                raise self._half_swapped(journal, error, tx) from error
            raise EngineError(
                f"cannot put {self._fresh} in place: {error.strerror}. Nothing was evicted.",
                outcome="not kept",
            ) from error
        finally:
            if os.path.lexists(self.journal):
                shutil.rmtree(self._fresh, ignore_errors=True)
        self._leave_old(journal, tx)

    def _replacing(self, fresh: Path, journal: Seam) -> None:
        """Called before these segments take the place of the journal. Raises EngineError when they may not."""

    def _swap(self) -> None:
        try:
            self.journal.rename(self._old)
            self._fresh.rename(self.journal)
        except BaseException:
            if not self.journal.exists():
                self._old.rename(self.journal)
            raise

    def _half_swapped(self, journal: Seam, error: OSError, tx: Instant) -> EngineError:
        why = f"{self._fresh} could not be put in the place of {self.journal}, nor that be put back ({error.strerror})."
        journal.break_off(why)
        return EngineError(
            f"{why} Whether it was evicted is unknown. Close the store and open it again: that decides it. changes() has the tx "
            f"{moment(tx).isoformat()} when it was.",
            outcome="unknown",
            tx=moment(tx),
        )

    def _leave_old(self, journal: Seam, tx: Instant) -> None:
        """The new journal is in place: make that durable, and remove the old one."""
        try:
            sync_folder(self.path)
        except (
            OSError
        ) as error:  # a crash may bring the old journal back, without what would be appended to this one
            why = f"the new journal without what was evicted is in place, but {self.path} cannot be made durable ({error.strerror})."
            journal.break_off(why)
            raise EngineError(
                f"{why} Close the store and open it again. changes() has the tx {moment(tx).isoformat()} when it was evicted for good.",
                outcome="unknown",
                tx=moment(tx),
            ) from error
        try:
            remove_tree(self._old)
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self._old}: {error.strerror}. What was evicted is not in the store any more, but its "
                "content is still in that folder. Open the store again: that finishes it.",
                outcome="kept",
            ) from error

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

    def _remove_torn(self, names: list[bytes]) -> None:
        for file in self.journal.glob("*.bin"):
            if not is_alone(file) or _may_name(plain_bytes(file), names):
                file.unlink()

    def _keep_torn(self, names: list[bytes]) -> None:
        for file in self.journal.glob("*.bin"):
            if is_alone(file) and not _may_name(torn := plain_bytes(file), names):
                with open_new(self._fresh / file.name) as copy:
                    write_all(copy.fileno(), torn)

    def replay(self, journal: Seam, upto: int | None = None) -> tuple[Index, int]:
        """The index from the journal alone; from its first `upto` transactions only. A reader looks again at what seems broken while a writer lives."""
        looks = _LOOKS
        for left in reversed(range(_TRIES if self.follows else 1)):
            journal.start_at(Position(0, 0), GENESIS)
            index = Index()
            try:
                count = self._follow(index, journal, upto)
                break
            except FileNotFoundError:
                if not left:
                    raise
            except DamageError:
                looks -= not journal.renewed()
                if not left or not looks or not self.is_written():
                    raise
            time.sleep(0.01)  # the writer is replacing the files
            journal.reopen()
        return index, count

    def is_written(self) -> bool:
        """Whether a living process holds the store for writing."""
        return holder(self.path) is not None

    @staticmethod
    def _follow(index: Index, journal: Seam, upto: int | None = None) -> int:
        count = 0
        with no_collecting():
            for lines in journal.read():
                for line in lines:
                    index.apply(*line)
                count += len(lines)
                if upto is not None and index.transactions >= upto:
                    break
        return count

    def keep_accesses(self, counts: dict[str, int], journal: Seam) -> None:
        """Keep what was counted and is not in the journal until the next opening for writing. Raises OSError, EngineError and LockedError."""
        replace_whole(self.path / _ACCESSES, orjson.dumps(counts))

    def kept_accesses(self, journal: Seam) -> dict[str, int]:
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


# caches that depend on earlier reads, not only on the journal
_NOT_COMPARED = frozenset(
    {
        "changed",
        "taken",
        "rests",
        "based",
        "fell",
        "refuted",
        "tainted",
        "prints",
        "printed",
        "looked",
        "left",
        "retaken",
    }
)


def _may_name(torn: bytes, names: list[bytes]) -> bool:
    """Whether a torn commit names one of these ids, or breaks off before it could. Contents come first in a line, ids last."""
    last = torn.rstrip(b"\0").removesuffix(b"\n").rpartition(b"\n")[2]
    try:
        orjson.loads(last)
    except orjson.JSONDecodeError:
        return True
    return any(name in torn for name in names)


def verify_index(place: Folder, index: Index, journal: Seam) -> list[Problem]:
    """The differences of a resident index and the journal, as far as the index has followed it."""
    fresh, problems = read_anew(place, index.transactions)
    problems += place.problems(journal)
    if place.follows and not place.shared:  # the rest is the writer's, and may be half written
        problems = [problem for problem in problems if fresh is None]
        if journal.renewed():  # the files of this index were replaced
            return problems
    if fresh is None or problems:
        return problems
    if fresh.unfinished:
        left = [*forgetting.hide(fresh), *branch_index.remaining(fresh, journal)]
        if left and not place.follows:
            problems.append(
                Problem(
                    file=str(place.journal),
                    line=None,
                    message=f"{len(left)} forgotten contents are in it still. Reopen the store.",
                )
            )
    return [*problems, *unexplained(fresh), *differing(index, fresh)]


def differing(index: Index, fresh: Index) -> list[Problem]:
    """The differences of an index and a rebuilt one."""
    return [
        Problem(
            file="index",
            line=None,
            message=f"the index in memory differs from the journal in {name!r}. Reopen the store.",
        )
        for name, value in vars(fresh).items()
        if not (name.startswith("_") or name in _NOT_COMPARED)
        and getattr(index, name) != value
        and _plain(getattr(index, name)) != _plain(value)
    ]


def unexplained(index: Index) -> list[Problem]:
    """Contents that are missing without an eviction or erasure."""
    return [
        not_explained(index.names[index.v_ent[ver]], index.v_num[ver])
        for ver, length in enumerate(index.v_len)
        if length == 0 and index.v_ent[ver] not in index.gone
    ]


def not_explained(id: str, number: int) -> Problem:
    """Return the problem that the content of a version is missing."""
    message = f"the content of {id!r} version {number} is missing, though it was never evicted or erased."
    return Problem(file=_JOURNAL, line=None, message=message)


def _plain(value: object) -> object:
    return {key: inner for key, inner in value.items() if inner} if isinstance(value, dict) else value


def read_anew(place: Folder, upto: int | None = None) -> tuple[Index | None, list[Problem]]:
    """The index from the journal alone (its first `upto` transactions), or the problem that stopped it."""
    try:
        journal = place.fresh_journal()
    except EngineError as error:
        return None, [Problem(file=str(place.journal), line=None, message=str(error))]
    try:
        index, _ = place.replay(journal, upto if place.follows or place.shared else None)
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
        return index, problems
    except DamageError as error:
        file, line = _where(str(error))
        return None, [Problem(file=file, line=line, message=str(error))]
    except (OSError, EngineError) as error:
        file = str(getattr(error, "filename", None) or place.journal)
        return None, [Problem(file=file, line=None, message=f"it cannot be read: {error}")]
    finally:
        journal.close()


def _where(message: str) -> tuple[str, int | None]:
    head, _, rest = message.partition(" line ")
    number = rest.split(":", 1)[0]
    return head, int(number) if number.isdigit() else None
