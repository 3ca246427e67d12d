"""Lets one writer of a store write at a time, among the threads of a process and the processes of a machine.

Threads first queue in their process, in order of arrival. The thread whose turn it is then locks a file. The operating system releases that lock when a
process ends, so a killed writer does not block others. Waiting does not poll: a helper thread blocks in the operating system's lock. If the lock arrives when
no thread waits any more, the helper releases it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet, WeakValueDictionary

from graphstore.errors import EngineError, LockedError
from graphstore.ledger.file_lock import try_lock, unlock, wait_lock
from graphstore.ledger.files import open_plain, plain_bytes, status_of, way_out, write_all
from graphstore.ledger.processes import host_name
from graphstore.values.text import line

_TURN = 0.1  # seconds between checks for Ctrl-C on Windows
PARKING = 5.0  # seconds that a helper thread stays without work: contending writers wait thousands of times a second


class WriteLock:
    """Gives one thread of one process at a time the right to write.

    All locks of a process on one file share a queue. A forked child holds none of its parent's locks.
    """

    def __init__(self, file: Path, purpose: str = "") -> None:
        """Open the lock file, and create it if it is missing. Raises EngineError.

        Args:
            purpose: added to the signature of this process in the file while it holds the lock.
        """
        self.file = file.absolute()
        self._purpose = purpose.encode()
        self._name = str(self.file)
        self._held = False
        self._closed = False
        self._identity: tuple[int, int] | None = None
        self._fd: int | None = None
        self._helper: _Helper | None = None
        real = os.path.normcase(self.file.parent.resolve() / file.name)
        with _guard:
            self._fd = self._open()
            queue = _queues.get(real)
            if queue is None:
                queue = _queues[real] = _Queue()
            self._queue = queue
            _locks.add(self)

    @property
    def held(self) -> bool:
        """Return True while a thread of this process holds this lock."""
        return self._held

    def acquire(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the turn to write.

        Raises LockedError when the time is over, EngineError if the lock file cannot be locked, or was removed or replaced since this lock opened it. Raises
        RuntimeError if this thread already holds the lock.
        """
        thread = threading.get_ident()
        if self._queue.owner == thread:
            raise RuntimeError(f"this thread holds {self.file} already. Release it first.")
        deadline = time.monotonic() + timeout
        try:
            if not self._queue.enter(self, thread, timeout):
                raise self._refused(timeout, here=True)
            if not self._lock_file(deadline):
                raise self._refused(timeout)
            self._check_place()
            self._sign()
            self._held = True
        except BaseException:
            self._give_up(thread)
            raise

    def release(self) -> None:
        """Let the next writer write. Does nothing if this thread does not hold the lock, as in a child that was forked meanwhile."""
        thread = threading.get_ident()
        if self._queue.owner == thread and self._queue.lock is self:
            self._give_up(thread)

    def close(self) -> None:
        """Release the lock if this thread holds it, and close the file. If another thread holds it, the file is closed at its release."""
        self._closed = True
        self.release()
        with _guard:
            self.close_if_idle()

    def _lock_file(self, deadline: float) -> bool:
        """Lock the file, and return False if the deadline passes. Only the thread whose turn it is calls this."""
        if self._closed:
            raise EngineError(f"{self.file} is closed. Open the store again to write.", outcome="not kept")
        if self._fd is None:  # closed for a fork
            with _guard:
                self._fd = self._open()
        try:
            if not (self._helper is not None and self._helper.working) and try_lock(self._fd):
                return True
            return self._wait(self._fd, deadline)
        except OSError as error:
            raise EngineError(
                f"cannot lock {self.file}: {error.strerror}. Nothing was written. {way_out(error)}",
                outcome="not kept",
            ) from error

    def _wait(self, fd: int, deadline: float) -> bool:
        """Wait until the helper has locked the file, and return False if the deadline passes. Raises OSError."""
        with _guard:
            if self._helper is None or self._helper.ended:
                self._helper = _Helper(self._arrived_late)
                try:
                    self._helper.start()
                except RuntimeError as error:
                    self._helper = None
                    raise EngineError(
                        f"cannot wait for {self.file}: {error}. Try again later.", outcome="not kept"
                    ) from error
            helper = self._helper
            helper.want(fd)
        if not _acquired(helper.arrived, deadline - time.monotonic()):
            with _guard:
                if helper.working:
                    helper.wanted = False
                    return False
        if helper.error is not None:
            raise helper.error
        return True

    def _arrived_late(self, fd: int) -> None:
        """Unlock a file that was locked after the last thread stopped waiting. The caller holds the guard."""
        unlock(fd)
        if self._closed:
            self.close_if_idle()

    def _give_up(self, thread: int) -> None:
        """End the turn of a thread, or its waiting, and unlock the file. An interrupt during this does not leave the lock held."""
        try:
            self._pass_on(thread)
        except KeyboardInterrupt:
            self._pass_on(thread)
            raise

    def _pass_on(self, thread: int) -> None:
        """Do the work of `_give_up`. It may be repeated after an interrupt."""
        with _guard:
            try:
                if self._queue.owner == thread:
                    self._held = False
                    if self._helper is not None and self._helper.working:
                        self._helper.wanted = False
                    elif self._fd is not None:
                        unlock(self._fd)
            finally:
                self._queue.leave(thread)
            if self._closed:
                self.close_if_idle()

    def close_if_idle(self) -> None:
        """Close the file unless a thread of this process has locked it or waits for it. The caller holds the guard."""
        waits = self._helper is not None and self._helper.working
        if self._fd is not None and self._queue.lock is not self and not waits:
            fd, self._fd = self._fd, None
            os.close(fd)

    def forget(self) -> None:
        """Discard, in a forked child, what belongs to its parent. Closing a copied descriptor does not unlock the parent's file."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd, self._helper, self._held = None, None, False
        self._queue.empty()

    def _open(self) -> int:
        """Open the file, and create it the first time if it is missing. Raises EngineError, also if another file has replaced the one opened first."""
        create = 0 if self._identity else os.O_CREAT
        try:
            fd = open_plain(self.file, os.O_RDWR | create, alone=True, mode=0o600)
        except FileNotFoundError as error:
            if self._identity:
                raise moved(self.file) from error
            raise self._not_opened(error) from error
        except OSError as error:
            raise self._not_opened(error) from error
        found = os.fstat(fd)
        identity = found.st_dev, found.st_ino
        if self._identity not in (None, identity):
            os.close(fd)
            raise moved(self.file)
        self._identity = identity
        return fd

    def _not_opened(self, error: OSError) -> EngineError:
        return EngineError(
            f"cannot open {self.file}: {error.strerror}. Nothing was written. {way_out(error)}",
            outcome="not kept",
        )

    def _check_place(self) -> None:
        """Raise EngineError if the path of the file leads to another file or to none: its folder was moved or removed."""
        found = status_of(self._name)
        if found is None or self._identity != (found.st_dev, found.st_ino):
            raise moved(self.file)

    def _sign(self) -> None:
        """Write the holder's name into the file. Errors of the disk are ignored: the signature only informs people."""
        assert self._fd is not None
        try:
            signature = b"%b%b\n" % (_signature, self._purpose)
            os.lseek(self._fd, 0, os.SEEK_SET)
            if os.read(self._fd, 512) != signature:
                os.lseek(self._fd, 0, os.SEEK_SET)
                write_all(self._fd, signature)
                os.ftruncate(self._fd, len(signature))
        except OSError:  # suppress() would cost a tenth of an acquisition
            pass

    def holder(self) -> str:
        """Return the file's text about the process that holds the lock or held it last."""
        with contextlib.suppress(OSError):
            return plain_bytes(self.file)[:200].decode(errors="replace").strip() or "unknown"
        return "unknown"

    def _refused(self, timeout: float, *, here: bool = False) -> LockedError:
        folder, holder = self.file.parent, self.holder()
        if here:
            who = f"another thread of this process (pid {os.getpid()})"
        else:
            who = f"another process ({holder}{command(holder)})"
        return LockedError(
            f"{folder} is being written by {who}, and was for {max(timeout, 0):g} seconds. Write again later or with a longer timeout, or end that writer.",
            outcome="not kept",
        )


def moved(file: Path) -> EngineError:
    """Return the error for a file whose path leads to another file now, or to none."""
    return EngineError(
        f"{file} was moved, removed or replaced after this process had opened it. Nothing was written. Open the store again where it is now.",
        outcome="not kept",
    )


class _Turn:
    """The place of a waiting thread in a queue."""

    __slots__ = ("come", "lock", "thread")

    def __init__(self, lock: WriteLock, thread: int) -> None:
        self.lock, self.thread = lock, thread
        self.come = threading.Lock()
        self.come.acquire()


class _Queue:
    """Gives the threads of this process their turns at one file, in order of arrival."""

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Remove all threads."""
        self.owner = 0  # id of the thread whose turn it is; 0 if there is none
        self.lock: WriteLock | None = None  # the lock that the owner uses
        self.waiting: deque[_Turn] = deque()

    def enter(self, lock: WriteLock, thread: int, timeout: float) -> bool:
        """Wait for the turn of this thread, and return False at the timeout. On an exception the caller must call `leave`."""
        with _guard:
            if not self.owner and not self.waiting:
                self.owner, self.lock = thread, lock
                return True
            turn = _Turn(lock, thread)
            self.waiting.append(turn)
        _acquired(turn.come, timeout)
        with _guard:
            if self.owner or self.waiting[0] is not turn:
                return False
            self.owner, self.lock = thread, lock
            self.waiting.popleft()
            return True

    def leave(self, thread: int) -> None:
        """End the turn of this thread, or its waiting, and wake the next thread. May be repeated: an interrupt can come at any point."""
        with _guard:
            if self.owner == thread:
                self.owner, self.lock = 0, None
            if self.waiting:
                for turn in list(self.waiting):
                    if turn.thread == thread:
                        self.waiting.remove(turn)
                if not self.owner and self.waiting and self.waiting[0].come.locked():
                    self.waiting[0].come.release()


class _Helper(threading.Thread):
    """Blocks in the operating system's lock on behalf of threads that must be able to stop waiting. The guard protects all fields."""

    def __init__(self, arrived_late: Callable[[int], None]) -> None:
        super().__init__(name="graphstore-write-lock", daemon=True)
        self.working = False  # True while it blocks or is about to
        self.wanted = False  # True while a thread waits for the result
        self.ended = False
        self.error: OSError | None = None
        self.arrived = threading.Lock()
        self._arrived_late = arrived_late
        self._fd = -1
        self._begin = threading.Lock()
        self._begin.acquire()

    def want(self, fd: int) -> None:
        """Start to lock this file. If the helper still waits for it on behalf of a thread that has stopped waiting, continue that wait."""
        self.wanted = True
        if not self.working:
            self.arrived = threading.Lock()
            self.arrived.acquire()
            self.error, self._fd, self.working = None, fd, True
            self._begin.release()

    def run(self) -> None:
        while self._has_work():
            error: OSError | None = None
            try:
                wait_lock(self._fd)
            except OSError as caught:
                error = caught
            with _guard:
                self.working, self.error = False, error
                if self.wanted:
                    self.arrived.release()
                else:
                    self._arrived_late(self._fd)

    def _has_work(self) -> bool:
        if self._begin.acquire(timeout=PARKING):
            return True
        with _guard:
            self.ended = not self.working
        return not self.ended and self._begin.acquire()


def command(holder: str) -> str:
    """Return the program of the process that a lock's signature names, as `program` does; empty if it runs on another machine."""
    pid, _, host = holder.removeprefix("pid ").partition(" on ")
    return program(int(pid)) if pid.isdecimal() and host == host_name() else ""


def program(pid: int) -> str:
    """Return a process's program and first arguments, such as `: python -m graphstore mcp`; empty if the system does not show them.

    Later arguments and code after `-c` are left out: they may be confidential.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:4]
    except OSError:
        return ""
    if "-c" in words:
        words = words[: words.index("-c") + 1]
    shown = line(" ".join(Path(word).name for word in words if word))
    return f": {shown}" if shown else ""


def _acquired(waited: threading.Lock, timeout: float) -> bool:
    """Wait at most `timeout` seconds for a lock of this process. On Windows, Ctrl-C does not interrupt a waiting thread, so it waits in short steps."""
    until = time.monotonic() + timeout
    while sys.platform == "win32" and until - time.monotonic() > _TURN:
        if waited.acquire(timeout=_TURN):
            return True
    return waited.acquire(timeout=min(max(until - time.monotonic(), 0.0), threading.TIMEOUT_MAX))


def _signed() -> bytes:
    return f"pid {os.getpid()} on {host_name()}".encode()


_guard = (
    threading.RLock()
)  # protects all fields here, each time for microseconds; also held while this process forks
_queues: WeakValueDictionary[str, _Queue] = WeakValueDictionary()
_locks: WeakSet[WriteLock] = WeakSet()
_signature = _signed()


def _before_fork() -> None:
    """Close idle lock files, so that no child has a copy. They are opened again when needed."""
    _guard.acquire()
    for lock in _locks:
        lock.close_if_idle()


def _in_parent() -> None:
    _guard.release()


def _in_child() -> None:
    global _guard, _signature
    _guard = threading.RLock()
    _signature = _signed()
    for lock in _locks:
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
