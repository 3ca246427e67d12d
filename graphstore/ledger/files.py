"""Reads and writes the files of a store's folder: as a whole, with durable names, and with clean-up after interrupted writes.

The folder may belong to another user. So its files are never opened through a symbolic link, and only if they are plain files: a pipe must not block anybody,
and a device must not be touched. A file that is written in place must have no second name (hard link), except segments of the journal, which backups may
share.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from graphstore.errors import ConflictError, EngineError
from graphstore.ledger.file_lock import try_lock

if sys.platform == "darwin":
    import fcntl


_WAYS_OUT = {
    errno.ENOSPC: "Free some space, and open it again.",
    errno.EDQUOT: "Free some space, and open it again.",
    errno.EMFILE: "Too many files are open in this process: close some or raise its limit (ulimit -n), and open it again.",
    errno.ENFILE: "Too many files are open on this machine: close some, and open it again.",
    errno.EACCES: "Give this user the right to it, and open it again.",
    errno.EPERM: "Give this user the right to it, and open it again.",
}


def way_out(error: OSError) -> str:
    """Return the remedy for a system error on opening a store."""
    return _WAYS_OUT.get(error.errno or 0, "Mend that, and open it again.")


_PATIENCE = 1.0  # seconds
_CAREFULLY = sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")
)


def open_plain(name: Path, flags: int, *, alone: bool = False, mode: int = 0o644) -> int:
    """Open a plain file of a store's folder; `O_CREAT` creates a missing one with the rights `mode`. Raises OSError for a link, a pipe, a device or a
    folder; with `alone` also for a file that has another name.
    """
    try:
        fd = os.open(name, flags | _CAREFULLY, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _no_plain(name, error.errno) from None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _no_plain(name, errno.EINVAL)
        if alone and found.st_nlink > 1:
            raise OSError(errno.EMLINK, "is a hard link: the file has another name too. Remove it", str(name))
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_plain(name: Path) -> None:
    """Raise OSError if a name is that of a link, not of a plain file, or of a file with another name. It protects files that foreign code opens."""
    try:
        found = name.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise _no_plain(name, errno.EINVAL)
    if found.st_nlink > 1:
        raise OSError(errno.EMLINK, "is a hard link: the file has another name too. Remove one", str(name))


def status_of(name: str) -> os.stat_result | None:
    """Return the status of a name, of a link itself and not of its target; None if nothing has the name."""
    try:
        return os.lstat(name)
    except OSError:
        return None


def _no_plain(name: Path, number: int) -> OSError:
    what = "a symbolic link" if name.is_symlink() else "a folder" if name.is_dir() else "no plain file"
    return OSError(number, f"is {what}, and a store opens plain files alone. Remove it", str(name))


def plain_bytes(name: Path) -> bytes:
    """Return the bytes of a plain file of a store's folder. Raises OSError, also for a link or a pipe."""
    with open(open_plain(name, os.O_RDONLY), "rb") as source:
        return source.read()


def own_bytes(file: Path) -> bytes:
    """Return the bytes of a file in a store's folder. Raises OSError for a link, and if the file's owner is neither the folder's nor this process's user:
    anybody may be allowed to put files into a folder.
    """
    fd = open_plain(file, os.O_RDONLY)
    with open(fd, "rb") as source:
        found = os.fstat(fd)
        if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), file.parent.stat().st_uid):
            raise OSError(errno.EPERM, f"belongs to somebody else (user {found.st_uid})", str(file))
        return source.read()


def own_folder(path: Path) -> bool:
    """Return True if no other user may put files into a folder: this user owns it, and it is not writable by everybody."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return True
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & stat.S_IWOTH)


def is_alone(name: Path) -> bool:
    """Return True if a name is that of a plain file without another name, or of nothing."""
    try:
        check_plain(name)
    except OSError:
        return False
    return True


def sync(fd: int) -> None:
    """Make the contents of a file durable. Raises OSError.

    On macOS, fsync leaves data in the cache of the disk and F_FULLFSYNC does not. If a file system lacks that call, fsync is used.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
    os.fsync(fd)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Windows cannot: a power failure there may restore an earlier name, but never half a file."""
    if sys.platform == "win32":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        sync(fd)
    finally:
        os.close(fd)


def patiently(change: Callable[[], object]) -> None:
    """Rename, remove or resize a file. Windows refuses that while any process has the file open, so there it is retried for a second.

    Raises OSError.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            change()
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() >= until:
                raise
            time.sleep(0.01)


def replace_whole(name: Path, data: bytes) -> None:
    """Replace a file atomically and durably: write a copy next to it, sync it, and rename it over the file. On OSError the copy is removed.

    An existing file with the name of the copy is removed first, never written to.
    """
    fresh = name.with_name(f"{name.name}.new")
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFULLY, 0o666)
    try:
        with open(fd, "wb", buffering=0):
            write_all(fd, data)
            sync(fd)
            if sys.platform != "win32":  # Windows cannot rename an open file
                fresh.replace(name)
        if sys.platform == "win32":
            patiently(lambda: fresh.replace(name))
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(name.parent)


def remove_cut(names: Iterable[Path]) -> None:
    """Truncate and remove files: a process that has them open would otherwise keep their space and contents. Of a link only the name is removed."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            if is_alone(name):
                patiently(partial(os.truncate, name, 0))
            patiently(name.unlink)


def remove_tree(path: Path) -> None:
    """Remove a folder with its contents, or a file of that name. Of a link only the name is removed. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        patiently(partial(rmtree, path))
    else:
        patiently(partial(path.unlink, missing_ok=True))


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes at the current position of a file. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream for a new file. It is written under another name and renamed once it is on the disk, if nothing has its name.

    A killed process leaves `.NAME.part`, which the next writer of NAME removes. Raises ConflictError if NAME exists or is being written, EngineError if the
    disk refuses; then no file remains.
    """
    _refuse_taken(target)
    part = _part(target)
    with _disk_errors(target):
        sink = open(_begin(part, target), "wb")  # noqa: SIM115 - closed below
        try:
            with sink:
                yield sink
                sink.flush()
                sync(sink.fileno())
                linked = _linked(part, target)
            if not linked:
                _refuse_taken(target)
                part.rename(target)
        finally:
            patiently(partial(part.unlink, missing_ok=True))
        sync_folder(target.parent)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill. It becomes `target` when the block ends and its files are on the disk; on failure it is removed.

    A killed process leaves `.NAME.part`, as in `new_file`. The caller must sync the files. Raises ConflictError if `target` exists and is not an empty
    folder, or is being written, EngineError if the disk refuses.
    """
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise ConflictError(f"{target} exists and is not empty. Choose another folder, or empty it first.")
    part = _part(target)
    with _disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        held = _begin_folder(part, target) if sys.platform == "win32" else _begin(part, target, folder=True)
        try:
            yield part
            for folder, _, _ in os.walk(part):
                sync_folder(Path(folder))
            # Windows cannot replace a folder, not even an empty one
            if sys.platform == "win32" and target.exists():
                target.rmdir()
            patiently(lambda: part.replace(target))
        except BaseException:
            rmtree(part, ignore_errors=True)
            raise
        finally:
            os.close(held)
            if sys.platform == "win32":
                with contextlib.suppress(OSError):  # another process already has it open
                    _folder_lock(part).unlink()
        sync_folder(target.parent)


def _part(target: Path) -> Path:
    return target.with_name(f".{target.name}.part")


def _refuse_taken(target: Path) -> None:
    if os.path.lexists(target):
        raise ConflictError(f"{target} exists. Choose another name, or remove it first.")


@contextmanager
def _disk_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror or error}.") from error


def _begin(part: Path, target: Path, *, folder: bool = False) -> int:
    """Create and lock the file or folder that will become `target`, after removing what a killed process left of it. Return its descriptor."""
    while True:
        try:
            if folder:
                part.mkdir()
                fd = os.open(part, os.O_RDONLY | _CAREFULLY)
            else:
                fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFULLY, 0o666)
        except FileExistsError:
            _remove_left(part, target)
            continue
        try:
            _hold(fd, target)
            if _same(fd, part):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # another process took it for a leftover and removed it


def _begin_folder(part: Path, target: Path) -> int:
    """Do the same on Windows, where a folder can neither be locked nor be renamed while a file in it is open: lock a file next to it."""
    fd = os.open(_folder_lock(part), os.O_RDWR | os.O_CREAT | _CAREFULLY, 0o666)
    try:
        _hold(fd, target)
        remove_tree(part)
        part.mkdir()
    except BaseException:
        os.close(fd)
        raise
    return fd


def _folder_lock(part: Path) -> Path:
    return part.with_name(f"{part.name}.lock")


def _remove_left(part: Path, target: Path) -> None:
    try:
        fd = os.open(part, os.O_RDONLY | _CAREFULLY)
    except FileNotFoundError:
        return
    try:
        _hold(fd, target)
        if not _same(fd, part):
            return
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            rmtree(part)
        elif sys.platform != "win32":
            part.unlink()
    finally:
        os.close(fd)
    if sys.platform == "win32":  # Windows cannot remove an open file, so one that is being written stays
        with contextlib.suppress(PermissionError):
            part.unlink(missing_ok=True)


def _hold(fd: int, target: Path) -> None:
    """Lock an open file until it is closed. Raises ConflictError if another process has locked it."""
    if not try_lock(fd):
        raise ConflictError(
            f"{target} is being written just now. Wait until that ends, or choose another name."
        )


def _same(fd: int, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(name))
    except FileNotFoundError:
        return False


def _linked(part: Path, target: Path) -> bool:
    """Give a finished file its name, if nothing has that name. Return False on a file system without hard links. Raises ConflictError."""
    try:
        os.link(part, target)
    except FileExistsError:
        _refuse_taken(target)
    except OSError:
        return False
    return True
