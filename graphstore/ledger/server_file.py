"""Records where a store is served: `server.json`, by which other processes of this machine find the server, and the files of its tokens."""

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
LOG = "server.log"  # written by release 0.1
SERVED, TOKEN, READ_TOKEN, METRICS_TOKEN = "server.json", "token", "token-read", "token-metrics"
_STARTING = 10.0  # seconds to wait for a starting server
_TRIES = 20  # attempts to write a file that another server may remove before it is renamed


def announce(place: Path, url: str | None) -> None:
    """Write the URL at which this process serves the store; None while it starts or stops.

    Raises EngineError if the disk refuses.
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
            except (FileExistsError, FileNotFoundError):  # another starting server writes it too
                if not left or not place.is_dir():
                    raise
    except OSError as error:
        name = error.filename2 or error.filename or place / SERVED
        raise EngineError(f"cannot write {name}: {error.strerror}.") from error
    finally:
        os.umask(before)


def withdraw(place: Path) -> None:
    """Remove the file unless another process has replaced it."""
    server = served(place)
    if server is not None and server["pid"] == os.getpid():
        with contextlib.suppress(OSError):
            patiently((place / SERVED).unlink)


def left(place: Path) -> dict[str, Any] | None:
    """Return the record of a server that was killed: its address and process. None if the last server stopped properly or is running."""
    server = server_record(place)
    return None if server is None or _is_alive(server) else server


def refuse_served(place: Path) -> None:
    """Raise LockedError if another process of this machine serves the store or is starting to."""
    server = served(place)
    if server is not None and server["pid"] != os.getpid():
        where = server["url"] or "an address not known yet"
        raise LockedError(
            f"{place} is served already, on {where} (pid {server['pid']}). Use that server, or stop it first."
        )


def refuse_memory(place: Path) -> None:
    """Raise InvalidError for a store in memory: it ends with its process, and has no folder for tokens."""
    if str(place) == MEMORY:
        raise InvalidError(
            f"{place} is gone with its process and has no folder for its tokens. Serve a folder, such as /tmp/scratch.gs."
        )


def serving(path: str | os.PathLike[str], wait: float = _STARTING) -> tuple[str, str] | None:
    """Return the URL and token of the server of a store on this machine; None if there is none, or its tokens cannot be read.

    Waits at most `wait` seconds for a starting server.
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
    """Return the record of a running server of this machine, with `pid` and `url` (None while it starts). Files of users who may not write the folder
    are ignored."""
    server = server_record(place)
    return server if server is not None and _is_alive(server) else None


def _is_alive(server: dict[str, Any]) -> bool:
    """Return True if the process of a record is alive, and is not a later one with the same number."""
    pid, recorded = server["pid"], server.get("process")
    found = process_start(pid)
    return lives(pid) and (recorded is None or found is None or recorded == found)


def server_record(place: Path) -> dict[str, Any] | None:
    """Return the record of the last server of this machine, even if it was killed; None if there is none."""
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
    """Return a token in a store's folder; None if it is missing or cannot be read."""
    try:
        return own_bytes(place / name).decode("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
