"""Who may do what with a served store: a token for everything, one for reading and one for metrics, in files that only their owner may read."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Literal

from graphstore.core.folder.folder import METRICS_TOKEN, READ_TOKEN, TOKEN, own_bytes, token_in
from graphstore.core.journal.files import write_all
from graphstore.errors import EngineError, InvalidError

__all__ = ["TOKEN", "Tokens", "kept", "made", "shown"]

Scope = Literal["read", "write", "metrics"]
_LEAST = 16


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The tokens of a store: `write` allows everything, `read` only reading, `metrics` only `/metrics`; none has that when it is empty."""

    write: str
    read: str
    metrics: str = ""

    def scope(self, shown: bytes) -> Scope | None:
        """The scope of a token; None for an unknown one. Runs in constant time."""
        writes = compare_digest(shown, self.write.encode())
        reads = compare_digest(shown, self.read.encode())
        measures = compare_digest(shown, self.metrics.encode()) and bool(self.metrics)
        return "write" if writes else "read" if reads else "metrics" if measures else None


def made() -> Tokens:
    """New tokens, 256 random bits each."""
    return Tokens(*(secrets.token_urlsafe(32) for _ in range(3)))


def kept(place: Path) -> Tokens:
    """The tokens in a store's folder, made when they are missing; that for metrics only where the folder may be written.

    Raises InvalidError for a file others may read or that holds no token, EngineError when the disk refuses.
    """
    write, read = _kept(place / TOKEN), _kept(place / READ_TOKEN)
    try:
        return Tokens(write, read, _kept(place / METRICS_TOKEN))
    except (
        EngineError
    ):  # a store that was served before there was such a token, followed by who may only read it
        return Tokens(write, read)


def shown(place: Path) -> tuple[str, ...]:
    """The tokens of a store, each with its scope, in words. Raises InvalidError when it was never served."""
    write, read = token_in(place), token_in(place, READ_TOKEN)
    if write is None or read is None:
        raise InvalidError(
            f"{place} has no tokens yet. They are made when it is served first: graphstore serve {place}"
        )
    metrics = token_in(place, METRICS_TOKEN)
    return (f"write   {write}", f"read    {read}", *([f"metrics {metrics}"] if metrics else []))


def _kept(file: Path) -> str:
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _checked(file)
    except OSError as error:
        raise EngineError(
            f"cannot make {file}: {error.strerror}. Serve the store once as somebody who may write its folder: the tokens lie there."
        ) from error
    try:
        token = secrets.token_urlsafe(32)
        write_all(fd, token.encode() + b"\n")
        os.fsync(fd)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise EngineError(
            f"cannot write {file}: {error.strerror}. Free some space and serve the store again."
        ) from error
    finally:
        os.close(fd)
    return token


def _checked(file: Path) -> str:
    try:
        token = own_bytes(file).decode("ascii").strip()
        if os.name == "posix" and file.lstat().st_mode & 0o077:
            raise InvalidError(f"{file} may be read by others. Take that from them: chmod 600 {file}")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read ({error}). Remove it: a new one is made.") from error
    if len(token) < _LEAST:
        raise InvalidError(
            f"{file} holds no token of {_LEAST} characters or more. Remove it: a new one is made."
        )
    return token
