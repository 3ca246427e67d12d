"""Restrict which files may be read: any, or only those below some folders, as for calls from another process.

Below such a folder no symbolic link is followed, and only regular files are opened. Each part of a path is opened relative to the one before, so that it
cannot be replaced with a link between check and use. Windows has no such open: there the path is checked before and after.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import cast

_names: ContextVar[Mapping[Path, str]] = ContextVar("names", default={})  # noqa: B039 - never changed
_folders: ContextVar[tuple[Path, ...] | None] = ContextVar("folders", default=None)
_PLAIN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


@contextmanager
def held_to(*folders: Path, names: Mapping[Path, str] = MappingProxyType({})) -> Iterator[None]:
    """Restrict this thread, within the block, to reading below these folders; without folders it may read nothing. They must be absolute paths without links.

    `names`: the displayed names of copies, by their paths.
    """
    before, named = _folders.set(folders), _names.set(names)
    try:
        yield
    finally:
        _folders.reset(before)
        _names.reset(named)


def called(path: Path) -> str:
    """Return the displayed name of a file: its path, or for a copy that of the original."""
    for copy, name in _names.get().items():
        if path == copy:
            return name
        if copy in path.parents:
            return f"{name.rstrip('/')}/{path.relative_to(copy).as_posix()}"
    return str(path)


def is_file(path: Path) -> bool:
    """Return True if there is a file that may be read."""
    if _folders.get() is None:
        return path.is_file()
    try:
        with opened(path):
            return True
    except (OSError, ValueError):
        return False


def opened(path: Path, buffering: int = -1) -> BufferedReader:
    """Open a file to read it. Raises OSError: PermissionError for one outside of the folders."""
    folders = _folders.get()
    if folders is None:
        return cast(BufferedReader, open(path, "rb", buffering=buffering))
    for folder in folders:
        if (parts := parts_below(folder, path)) is not None:
            fd = _by_path(folder.joinpath(*parts)) if sys.platform == "win32" else below(folder, parts)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise PermissionError(f"{path} is no regular file")
                return cast(BufferedReader, os.fdopen(fd, "rb", buffering=buffering))
            except BaseException:
                os.close(fd)
                raise
    raise PermissionError(f"{path} is out of reach")


def parts_below(folder: Path, path: Path) -> tuple[str, ...] | None:
    """Return the names that lead from a folder to a path, which may be relative to it; None if the path is not below it by name."""
    if path.anchor and not path.is_absolute():  # on Windows: relative to another drive, or to the root of one
        return None
    try:
        parts = path.relative_to(folder).parts if path.is_absolute() else path.parts
    except ValueError:
        return None
    return None if ".." in parts or any("\0" in part for part in parts) else parts


def _by_path(place: Path) -> int:
    """Return a descriptor of a file, if its path has no link before and after the file is opened. Raises OSError."""
    _refuse_links(place)
    fd = os.open(place, _PLAIN)
    try:
        _refuse_links(place)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _refuse_links(place: Path) -> None:
    if os.path.normcase(os.path.realpath(place, strict=True)) != os.path.normcase(place):
        raise PermissionError(f"{place} is out of reach: a link is on the way")


def below(folder: Path | int, parts: tuple[str, ...]) -> int:
    """Return a descriptor of the regular file or folder to which these names lead from a folder, without links on the way. Raises OSError."""
    if sys.platform == "win32":
        raise NotImplementedError("Windows opens no file from the descriptor of a folder")
    if isinstance(folder, int):
        at = os.dup(folder)
    else:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in parts:
            looked = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
            if not (stat.S_ISREG(looked) or stat.S_ISDIR(looked)):  # opening a device may have effects
                raise PermissionError(f"{name} is neither a file nor a folder")
            at, before = os.open(name, _PLAIN, dir_fd=at), at
            os.close(before)
        return at
    except BaseException:
        os.close(at)
        raise
