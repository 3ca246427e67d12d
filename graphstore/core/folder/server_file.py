"""The file in a served store's folder by which others on this machine find the server, with `folder.serving`."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from graphstore.core.folder import folder
from graphstore.core.journal.files import replace_whole
from graphstore.errors import EngineError, InvalidError, LockedError


def announce(place: Path, url: str | None) -> None:
    """Write where this process serves the store; None while it starts. Raises EngineError when the disk refuses."""
    server = {
        "url": url,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(),
    }
    before = os.umask(0o177)
    try:
        replace_whole(place / folder.SERVED, orjson.dumps(server, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        name = error.filename2 or error.filename or place / folder.SERVED
        raise EngineError(f"cannot write {name}: {error.strerror}.") from error
    finally:
        os.umask(before)


def withdraw(place: Path) -> None:
    """Remove the file, unless another process has replaced it."""
    server = folder.served(place)
    if server is not None and server["pid"] == os.getpid():
        with contextlib.suppress(OSError):
            (place / folder.SERVED).unlink()


def left(place: Path) -> dict[str, Any] | None:
    """What a server that ended without a word left behind: its address and process; None where the last one ended well, or serves."""
    server = folder.server_record(place) if place.is_dir() else None
    return None if server is None or folder.holder(place) is not None else server


def is_held(place: Path) -> bool:
    """Whether another process holds the store for writing."""
    return folder.holder(place) not in (None, os.getpid())


def refuse_served(place: Path) -> None:
    """Raise LockedError when another process of this machine serves the store, or is starting to. A server without the store's lock does not count."""
    server = folder.served(place)
    if server is not None and folder.holder(place) == server["pid"] != os.getpid():
        where = server["url"] or "an address not known yet"
        raise LockedError(
            f"{place} is served already, on {where} (pid {server['pid']}). Use that server, or stop it first."
        )


def refuse_memory(place: Path) -> None:
    """Raise InvalidError for a store in memory: it is gone with its process, and has no folder for its tokens."""
    if str(place) == folder.MEMORY:
        raise InvalidError(
            f"{place} is gone with its process and has no folder for its tokens. Serve a folder, such as /tmp/scratch.gs."
        )
