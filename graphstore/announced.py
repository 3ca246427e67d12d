"""Where a store is served: a file in its folder while a server holds it, so that others on this machine find the server.

`server.json` says url, pid, host and since when. One whose process is gone, or that does not hold the store's lock, says nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from graphstore import tokens
from graphstore.errors import LockedError
from graphstore.files import replace_whole

FILE = "server.json"
_LOCK = "lock"
_STARTING = 10.0  # seconds a server that just starts is waited for
_STEP = 0.02


def announce(folder: Path, url: str | None) -> None:
    """Say where this process serves the store; None: it is about to."""
    told = {
        "url": url,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(),
    }
    old = os.umask(0o177)
    try:
        replace_whole(folder / FILE, orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
    finally:
        os.umask(old)


def withdraw(folder: Path) -> None:
    """Serve no more. What another process said meanwhile stays."""
    told = _told(folder)
    if told is not None and told["pid"] == os.getpid():
        with contextlib.suppress(OSError):
            (folder / FILE).unlink()


def refuse_served(folder: Path) -> None:
    """Raise LockedError when a process of this machine serves the store, or is about to."""
    told = _told(folder)
    if told is not None and told["pid"] != os.getpid() and lives(told["pid"]):
        where = told["url"] or "an address it is about to tell"
        raise LockedError(
            f"{folder} is served already, on {where} (pid {told['pid']}). Use that server, or stop it first."
        )


def serving(folder: str | os.PathLike[str], wait: float = _STARTING) -> tuple[str, str] | None:
    """The URL and the token of the server of this machine that holds a store; None when none does, or its token may not be read.

    One that is just starting is waited for, so many seconds at most.
    """
    place = Path(folder)
    until = time.monotonic() + wait
    while (told := _told(place)) is not None and lives(told["pid"]):
        url = told["url"]
        if url is not None:
            token = tokens.read(place) or tokens.read(place, tokens.READ)
            return (url, token) if token and _holds(place, told["pid"]) else None
        if time.monotonic() >= until:
            return None
        time.sleep(_STEP)
    return None


def _told(folder: Path) -> dict[str, Any] | None:
    try:
        told = orjson.loads((folder / FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(told, dict) or told.get("host") != socket.gethostname():
        return None
    url, pid = told.get("url"), told.get("pid")
    return told if isinstance(pid, int) and pid > 0 and (url is None or isinstance(url, str)) else None


def _holds(folder: Path, pid: int) -> bool:
    """Whether the store's lock names this process as its holder."""
    try:
        return (folder / _LOCK).read_text(errors="replace").startswith(f"pid {pid} ")
    except OSError:
        return False


def lives(pid: int) -> bool:
    """Whether there is a process of that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True
