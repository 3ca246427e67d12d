"""Keeps the tokens of a served store: one for everything, one for reading and one for metrics, in files that only their owner may read, and
named tokens, of which only hashes are stored."""

from __future__ import annotations

import os
import re
import secrets
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Literal

import orjson

from graphstore.errors import ConflictError, EngineError, InvalidError, NotFoundError
from graphstore.ledger.files import open_plain, own_bytes, patiently, sync, write_all
from graphstore.ledger.server_file import METRICS_TOKEN, READ_TOKEN, TOKEN, token_in

__all__ = ["TOKEN", "Grant", "StoreTokens", "add", "grants", "is_scope", "kept", "revoke", "shown"]

Scope = Literal["read", "write", "metrics"]
_LEAST = 16
NAMED = "tokens.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a named token. `scopes`: what it may see, empty for everything. `expires`: Unix seconds. `record_reads`: the store records what
    its answers contained."""

    name: str
    rights: str
    scopes: tuple[str, ...]
    expires: float | None
    hash: str
    record_reads: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class StoreTokens:
    """The tokens of a store: `write` allows everything, `read` only reading, `metrics` only `/metrics`; an empty token matches nothing."""

    write: str
    read: str
    metrics: str = ""
    folder: Path | None = None

    def scope(self, shown: bytes) -> Scope | None:
        """Return the scope of a token; None for an unknown one. Runs in constant time."""
        writes = compare_digest(shown, self.write.encode())
        reads = compare_digest(shown, self.read.encode())
        measures = compare_digest(shown, self.metrics.encode()) and bool(self.metrics)
        return "write" if writes else "read" if reads else "metrics" if measures else None

    def grant(self, shown: bytes) -> Grant | None:
        """Return the grant of a named token that has not expired; None for an unknown one."""
        if self.folder is None:
            return None
        hashed, found = _hash(shown), None
        for each in grants(self.folder):
            if compare_digest(hashed, each.hash):
                found = each
        return None if found is None or (found.expires or time.time() + 1) <= time.time() else found


def kept(place: Path) -> StoreTokens:
    """Return the tokens in a store's folder, and create missing ones; that for metrics only if the folder is writable.

    Raises InvalidError if others may read a file or it has no token, EngineError if the disk refuses.
    """
    write, read = _kept(place / TOKEN), _kept(place / READ_TOKEN)
    try:
        return StoreTokens(write, read, _kept(place / METRICS_TOKEN), place)
    except EngineError:  # an older store without such a token, followed by a user who may only read it
        return StoreTokens(write, read, folder=place)


def grants(place: Path) -> list[Grant]:
    """Return the named tokens, without revoked ones. Raises InvalidError if the file cannot be read: then none of them is accepted."""
    try:
        raw = own_bytes(place / NAMED)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidError(f"{place / NAMED} cannot be read ({error}).") from error
    try:
        return [
            Grant(
                one["name"],
                one["rights"],
                tuple(one["scopes"]),
                one["expires"],
                one["hash"],
                one.get("record_reads", False),
            )
            for one in orjson.loads(raw)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidError(f"{place / NAMED} is no list of tokens. Remove it, and make them anew.") from error


def add(
    place: Path,
    name: str,
    *,
    scopes: tuple[str, ...] = (),
    rights: str = "read",
    days: float | None = None,
    record_reads: bool = False,
) -> str:
    """Create a named token and return it; it is never shown again. `days`: its lifetime. `record_reads`: record what its answers contained.

    Raises InvalidError for invalid arguments, ConflictError if the name is taken.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidError(
            f"{name!r} is no name of a token. Give up to 64 of: letters, digits, '.', '_', '-'."
        )
    if rights not in ("read", "write", "admin"):
        raise InvalidError.choice("rights", rights, ("read", "write", "admin"))
    if scopes and rights == "admin":
        raise InvalidError(
            "a token with scopes is for what they hold. Give --rights write, or leave --scope out."
        )
    if not all(map(is_scope, scopes)):
        raise InvalidError("a scope is a path such as team/a: not empty, and no '/' at its ends.")
    if days is not None and not 0 < days < 100_000:
        raise InvalidError(f"{days:g} days is no time. Give a number above 0.")
    known = grants(place)
    if any(each.name == name for each in known):
        raise ConflictError(f"there is a token {name!r}. Revoke it first, or choose another name.")
    token = secrets.token_urlsafe(32)
    expires = None if days is None else time.time() + days * 86_400
    _write(place, [*known, Grant(name, rights, scopes, expires, _hash(token.encode()), record_reads)])
    return token


def is_scope(given: object) -> bool:
    """Return True for the path of a scope: text that is not empty, without `/` at its ends or twice in a row."""
    return isinstance(given, str) and bool(given) and given == given.strip("/ ") and "//" not in given


def revoke(place: Path, name: str) -> None:
    """Revoke a token from the next request on. Raises NotFoundError if there is none of that name."""
    known = grants(place)
    left = [each for each in known if each.name != name]
    if len(left) == len(known):
        raise NotFoundError.nearest("token", name, lambda: [each.name for each in known])
    _write(place, left)


def _hash(token: bytes) -> str:
    return sha256(token).hexdigest()


def _write(place: Path, known: list[Grant]) -> None:
    fresh = place / f"{NAMED}.new"
    content = [{**asdict(one), "scopes": one.scopes} for one in known]
    try:
        _make(fresh, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
        patiently(lambda: fresh.replace(place / NAMED))
    except FileExistsError:
        raise ConflictError(f"somebody else changes the tokens. When nobody does, remove {fresh}.") from None
    except OSError as error:
        raise EngineError(f"cannot write {error.filename or place / NAMED}: {error.strerror}.") from error


def _make(file: Path, data: bytes) -> None:
    """Create a file durably that only its owner may read. Raises FileExistsError, and OSError with the file's name if it cannot be created."""
    fd = open_plain(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600)
    try:
        with open(fd, "wb", buffering=0):
            write_all(fd, data)
            sync(fd)
    except OSError:
        file.unlink(missing_ok=True)
        raise


def shown(place: Path) -> tuple[str, ...]:
    """Return lines that show the tokens of a store with their scopes. Raises InvalidError if it was never served."""
    write, read = token_in(place), token_in(place, READ_TOKEN)
    if write is None or read is None:
        raise InvalidError(
            f"{place} has no tokens yet. They are made when it is served first: graphstore serve {place}"
        )
    metrics = token_in(place, METRICS_TOKEN)
    return (f"write   {write}", f"read    {read}", *([f"metrics {metrics}"] if metrics else []))


def _kept(file: Path) -> str:
    token = secrets.token_urlsafe(32)
    try:
        _make(file, token.encode() + b"\n")
    except FileExistsError:
        return _checked(file)
    except OSError as error:
        if error.filename is None:
            raise EngineError(
                f"cannot write {file}: {error.strerror}. Free some space and serve the store again."
            ) from error
        raise EngineError(
            f"cannot make {file}: {error.strerror}. Serve the store once as somebody who may write its folder: the tokens lie there."
        ) from error
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
