"""A file or a folder that an export makes: there whole and on disk, or not at all, and never in place of another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from graphstore.errors import ConflictError, EngineError


@contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """Where to write a file that is not there yet. Raises ConflictError when it is, EngineError when the disk refuses; nothing is left then."""
    try:
        sink = open(target, "xb")  # noqa: SIM115 - closed below
    except FileExistsError:
        raise ConflictError(f"{target} exists. Choose another name, or remove it first.") from None
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}.") from error
    try:
        with sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise EngineError(f"cannot write {target}: {error.strerror}.") from error
        raise


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends; nothing is left of it when that fails.

    Raises ConflictError when `target` is there already and is no empty folder, EngineError when the disk refuses.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConflictError(f"{target} exists and is not empty. Choose another folder, or empty it first.")
    fresh = target.with_name(f"{target.name}.new")
    try:
        fresh.mkdir(parents=True)
    except FileExistsError:
        raise ConflictError(f"{fresh} exists: another export was not ended. Remove it first.") from None
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}.") from error
    try:
        yield fresh
        fresh.replace(target)
    except BaseException as error:
        rmtree(fresh, ignore_errors=True)
        if isinstance(error, OSError):
            raise EngineError(f"cannot write {target}: {error.strerror}.") from error
        raise
