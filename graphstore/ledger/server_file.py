"""Says where a store is served: `server.json`, by which others on this machine find the server, and the files of its tokens."""

from __future__ import annotations

import contextlib
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from graphstore.errors import EngineError, InvalidError, LockedError
from graphstore.ledger.files import own_bytes, patiently, replace_whole
from graphstore.ledger.processes import host_name, lives, process_start

MEMORY = ":memory:"
LOG = "server.log"  # of release 0.1
SERVED, TOKEN, READ_TOKEN, METRICS_TOKEN = "server.json", "token", "token-read", "token-metrics"
_STARTING = 10.0  # seconds to wait for a server that is starting
_TRIES = 20  # so often a file is written that another server may remove before it has its name


def announce(place: Path, url: str | None) -> None:
    """Write where this process serves the store; None while it starts or ends.

    Raises EngineError when the disk refuses.
    """
    server = {
        "url": url,
        "pid": os.getpid(),
        "process": process_start(os.getpid()),
        "host": host_name(),
        "started": datetime.now(UTC).isoformat(),
    }
    before = os.umask(0o177)
    try:
        for left in reversed(range(_TRIES)):
            try:
                replace_whole(place / SERVED, orjson.dumps(server, option=orjson.OPT_INDENT_2) + b"\n")
                break
            except (FileExistsError, FileNotFoundError):  # another server that starts writes it too
                if not left or not place.is_dir():
                    raise
    except OSError as error:
        name = error.filename2 or error.filename or place / SERVED
        raise EngineError(f"cannot write {name}: {error.strerror}.") from error
    finally:
        os.umask(before)


def withdraw(place: Path) -> None:
    """Remove the file, unless another process has replaced it."""
    server = served(place)
    if server is not None and server["pid"] == os.getpid():
        with contextlib.suppress(OSError):
            patiently((place / SERVED).unlink)


def left(place: Path) -> dict[str, Any] | None:
    """Return what a server left behind that was killed: its address and process. None if the last one ended well, or serves."""
    server = server_record(place)
    return None if server is None or _is_alive(server) else server


def refuse_served(place: Path) -> None:
    """Raise LockedError when another process of this machine serves the store, or is starting to."""
    server = served(place)
    if server is not None and server["pid"] != os.getpid():
        where = server["url"] or "an address not known yet"
        raise LockedError(
            f"{place} is served already, on {where} (pid {server['pid']}). Use that server, or stop it first."
        )


def refuse_memory(place: Path) -> None:
    """Raise InvalidError for a store in memory: it is gone with its process, and has no folder for its tokens."""
    if str(place) == MEMORY:
        raise InvalidError(
            f"{place} is gone with its process and has no folder for its tokens. Serve a folder, such as /tmp/scratch.gs."
        )


def serving(path: str | os.PathLike[str], wait: float = _STARTING) -> tuple[str, str] | None:
    """Return the URL and the token of the server of a store on this machine; None if there is none, or its tokens may not be read.

    Waits at most `wait` seconds for a server that is starting.
    """
    place = Path(path)
    until = time.monotonic() + wait
    while (server := served(place)) is not None:
        if server["url"] is not None:
            token = token_in(place) or token_in(place, READ_TOKEN)
            return (server["url"], token) if token else None
        if time.monotonic() >= until:
            return None
        time.sleep(0.02)
    return None


def served(place: Path) -> dict[str, Any] | None:
    """Return the record of a live server of this machine: `pid`, and `url`, None while it is starting. A file of a user who may not write the folder is
    ignored."""
    server = server_record(place)
    return server if server is not None and _is_alive(server) else None


def _is_alive(server: dict[str, Any]) -> bool:
    """Return True if the process of a record lives, and is not another one that got its number since."""
    pid, recorded = server["pid"], server.get("process")
    found = process_start(pid)
    return lives(pid) and (recorded is None or found is None or recorded == found)


def server_record(place: Path) -> dict[str, Any] | None:
    """Return the same of the last server of this machine, also of one that was killed."""
    try:
        server = orjson.loads(own_bytes(place / SERVED))
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(server, dict) or server.get("host") != host_name():
        return None
    url, pid = server.get("url"), server.get("pid")
    if not isinstance(pid, int) or pid <= 0 or not (url is None or isinstance(url, str)):
        return None
    return server


def token_in(place: Path, name: str = TOKEN) -> str | None:
    """Return a token in a store's folder; None when there is none, or when it may not be read."""
    try:
        return own_bytes(place / name).decode("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
