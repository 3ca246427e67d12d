"""The server that many share a store by: found, or started in the background where nobody holds the store.

Who starts it holds a lock on its log meanwhile, so that one is started, not many. It ends by itself once nobody has been connected for a while.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from graphstore.core.folder import server_file
from graphstore.core.journal.files import open_plain

try:
    import fcntl
except ImportError:  # pragma: no cover - a platform without flock
    fcntl = None  # type: ignore[assignment]

IDLE = 60.0
"""Seconds a server that was started in the background stays without a client."""
STARTING = 30.0  # seconds it has to answer
_MOMENT = 2.0  # seconds that a lock of a holder who shares it with nobody is waited for
_PAUSE = 0.01
_LOG_BYTES = 1 << 20  # a longer log begins anew
_NOT_FOR_IT = ("GRAPHSTORE_READ_ONLY", "GRAPHSTORE_CONFIG", "GRAPHSTORE_HOST", "GRAPHSTORE_PORT")


def joined(place: Path, *, start: bool = True) -> tuple[str, str] | None:
    """The address and token of the server of a folder; one is started where nobody holds the folder.

    None where another process holds it and does not share it, or where no server could be started: to open the store tells why.
    """
    until = time.monotonic() + STARTING
    while True:
        server = server_file.serving(place)
        if server is not None or not (start and fcntl is not None):
            return server
        with _turn(place) as mine:
            if mine:
                return server_file.serving(place) or (_start(place) if _is_free(place) else None)
        if time.monotonic() >= until:
            return None
        time.sleep(_PAUSE)


def again(place: Path, *, start: bool) -> tuple[str, str] | None:
    """The same for who was connected to a server that has ended. One that somebody started is his to start again, unless `start` says otherwise."""
    return joined(place, start=start or server_file.how_started(place) not in (None, "by hand"))


@contextlib.contextmanager
def _turn(place: Path) -> Iterator[bool]:
    """Whether it is this process's turn to start a server."""
    fd = open_plain(place / server_file.LOG, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            if os.fstat(fd).st_size > _LOG_BYTES:
                os.ftruncate(fd, 0)
            yield True
    finally:
        os.close(fd)


def _is_free(place: Path) -> bool:
    """Whether nobody holds the store, at the latest in a moment."""
    until = time.monotonic() + _MOMENT
    while server_file.holder(place) is not None:
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def _start(place: Path) -> tuple[str, str] | None:
    """Start a server for the folder, and wait until it answers; None when it ends instead."""
    command = [sys.executable, "-P", "-m", "graphstore", "serve", str(place.resolve())]
    options = ["--host", "127.0.0.1", "--port", "0", "--idle", f"{IDLE:g}", "--no-ticks"]
    with open(open_plain(place / server_file.LOG, os.O_WRONLY | os.O_APPEND), "ab") as log:
        os.fchmod(log.fileno(), 0o600)
        process = subprocess.Popen(
            [*command, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
    threading.Thread(target=process.wait, name="graphstore-reaper", daemon=True).start()
    until = time.monotonic() + STARTING
    while process.poll() is None and time.monotonic() < until:
        server = server_file.serving(place, wait=0)
        if server is not None:
            return server
        time.sleep(_PAUSE)
    return None


def _environment() -> dict[str, str]:
    """That of this process, in which the same package is found, without what was meant for a server that somebody starts himself."""
    found = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT}
    root = Path(__file__).resolve().parents[2]
    if str(root) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), found.get("PYTHONPATH"))))
    return found
