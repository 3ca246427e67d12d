"""Where a store is served: a file in its folder while a server holds it, so that others on this machine find the server by `folder.serving`."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import orjson

from graphstore.core.folder import folder
from graphstore.core.journal.files import replace_whole
from graphstore.errors import EngineError, InvalidError, LockedError


def announce(place: Path, url: str | None) -> None:
    """Say where this process serves the store; None: it is about to. Raises EngineError when the disk refuses."""
    told = {
        "url": url,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(),
    }
    before = os.umask(0o177)
    try:
        replace_whole(place / folder.SERVED, orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise EngineError(f"cannot write {place / folder.SERVED}: {error.strerror}.") from error
    finally:
        os.umask(before)


def withdraw(place: Path) -> None:
    """Serve no more. What another process said meanwhile stays."""
    told = folder.served(place)
    if told is not None and told["pid"] == os.getpid():
        with contextlib.suppress(OSError):
            (place / folder.SERVED).unlink()


def is_held(place: Path) -> bool:
    """Whether another process holds the store for writing."""
    return folder.holder(place) not in (None, os.getpid())


def refuse_served(place: Path) -> None:
    """Raise LockedError when another process of this machine serves the store, or is about to: one that has no lock of it says so no more."""
    told = folder.served(place)
    if told is not None and folder.holder(place) == told["pid"] != os.getpid():
        where = told["url"] or "an address it is about to tell"
        raise LockedError(
            f"{place} is served already, on {where} (pid {told['pid']}). Use that server, or stop it first."
        )


def refuse_memory(place: Path) -> None:
    """Raise InvalidError for a store in memory: it is gone with its process, and has no folder for its tokens."""
    if str(place) == folder.MEMORY:
        raise InvalidError(
            f"{place} is gone with its process and has no folder for its tokens. Serve a folder, such as /tmp/scratch.gs."
        )
