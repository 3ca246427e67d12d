"""Sends requests over HTTP, one open connection per thread. It is minimal, so that a write costs its caller little more than the write itself.

A request that fails in transit is sent once more if that is safe: reads, and writes with an id of their own, which the server recognizes.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from graphstore.errors import EngineError, InvalidError, Outcome
from graphstore.values.doors import AGENT, DOOR
from graphstore.values.period import Instant, instant, iso

CONNECTING = 5.0
"""Seconds in which a connection must be established."""
ANSWERING = 600.0
"""Default seconds for an answer. The server has its own limits, and an import may take long."""
_MOST_WAIT = 5.0  # the longest wait in seconds before another try at a busy server
_PIECE = 1 << 16
_TRIES = 8  # tries per request if there are several servers
Finding = Callable[[], tuple[str, str]]
"""Returns the address and the token of the next of several servers."""


class Reply(NamedTuple):
    """Holds an answer of a server: status, headers with names in lower case, body."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Broken(Exception):
    """The connection ended, or the answer made no sense."""


class Wire:
    """One connection, used by one thread."""

    def __init__(self, secure: bool, host: str, port: int, head: str, timeout: float | None) -> None:
        self.head = head
        made = socket.create_connection((host, port), CONNECTING)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(timeout)
        self._socket = _encrypted(made, host) if secure else made
        self._answers: Any = self._socket.makefile("rb", _PIECE)
        self.pid = os.getpid()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def exchange(self, request: bytes, sink: Callable[[bytes], Any] | None) -> Reply:
        """Send a request and read the answer. The body of a good answer goes to `sink` piece by piece, if there is one."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server may have sent a reason
            self.send(request)
        status, headers = self.begun()
        parts: list[bytes] = []
        take = sink if sink is not None and status == 200 else parts.append
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            self.chunks(take)
        else:
            self._exactly(int(headers.get(b"content-length", b"0")), take)
        return Reply(status, headers, parts[0] if len(parts) == 1 else b"".join(parts))

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def begun(self) -> tuple[int, dict[bytes, bytes]]:
        """Read the status and the headers of an answer."""
        line = self._answers.readline(_PIECE)
        if not line.startswith(b"HTTP/1.") or len(line) < 12:
            raise Broken("it was closed" if not line else "what came is no HTTP")
        status = int(line[9:12])
        headers = {}
        while (line := self._answers.readline(_PIECE)) not in (b"\r\n", b"\n"):
            name, colon, value = line.partition(b":")
            if not colon:
                raise Broken("it was closed")
            headers[name.lower()] = value.strip()
        return status, headers

    def _exactly(self, size: int, take: Callable[[bytes], Any]) -> None:
        left = size
        while left:
            piece = self._answers.read(min(left, 1 << 20))
            if not piece:
                raise Broken("it was closed in the middle of an answer")
            left -= len(piece)
            take(piece)

    def chunks(self, take: Callable[[bytes], Any]) -> None:
        """Read a chunked answer to its end."""
        while True:
            size = int(self._answers.readline(_PIECE).split(b";")[0] or b"x", 16)
            if size:
                self._exactly(size, take)
            if self._answers.readline(_PIECE) not in (b"\r\n", b"\n"):
                raise Broken("it was closed in the middle of an answer")
            if not size:
                return


def _encrypted(made: socket.socket, host: str) -> socket.socket:
    import ssl

    return ssl.create_default_context().wrap_socket(made, server_hostname=host)


class _OutgoingRequest(NamedTuple):
    """Holds a request before its server is chosen."""

    first: str
    rest: str
    body: bytes
    write: bool

    def sent(self, head: str, *, again: bool) -> bytes:
        """Return the bytes for a server. `again`: a server may already have executed the request."""
        more = "Graphstore-Again: yes\r\n" if again and self.write else ""
        return f"{self.first}{head}{self.rest}{more}\r\n".encode("latin-1") + self.body

    @property
    def held(self) -> bool:
        """Return True if it belongs to a transaction, which one server holds."""
        return "transaction=" in self.first.partition("?")[2] or self.first.startswith("POST /transaction/")

    def refuse_moved(self) -> None:
        """Raise EngineError if it is part of a transaction, since that ended with its server."""
        if "transaction=" in self.first.partition("?")[2]:
            raise EngineError(
                "the server that held the transaction has ended. Nothing of it was kept: do it again.",
                outcome="not kept",
            )


def in_turn(urls: Sequence[str], tokens: Sequence[str]) -> Finding:
    """Return a function that returns the listed servers in turn, starting with the second. Raise InvalidError for an invalid address."""
    for url in urls:
        _parts(url)
    places = list(zip(urls, tokens if len(tokens) > 1 else [*tokens] * len(urls), strict=True))
    return cycle([*places[1:], places[0]]).__next__


class ServerConnection:
    """Connects to one server, or to one of several, for all threads of a process. Each thread has its own connection; a forked child makes new ones."""

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout: float | None = None,
        find: Finding | None = None,
    ) -> None:
        self.timeout = ANSWERING if timeout is None else timeout
        self._find = find
        self._moving = threading.Lock()
        self._noting = threading.Lock()
        self.written: Instant | None = None
        """The tx of the last write through it, as its server reported. Every server must know it before answering."""
        self._is_at(url, token)
        self.local = threading.local()
        """Holds the connection of each thread."""
        self._wires: weakref.WeakSet[Wire] = weakref.WeakSet()
        self.closed: str | None = None
        self.folder: Path | str | None = "not asked yet"
        """The folder of the store on the machine of the server; None for a store in memory."""

    def _is_at(self, url: str, token: str | None) -> None:
        secure, host, port = _parts(url)
        name = f"[{host}]" if ":" in host else host
        head = f"Host: {name}:{port}\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
        self._place = secure, host, port, head
        self.url = f"{'https' if secure else 'http'}://{name}:{port}"

    def _move(self, gone: str) -> bool:
        """Switch to the next server after `gone` has failed. Return False if there is only one server."""
        if self._find is None:
            return False
        with self._moving:
            if self.url == gone:
                self._is_at(*self._find())
            return True

    def close(self, why: str) -> None:
        """Close every connection. Later requests raise InvalidError with the reason."""
        self.closed = why
        for wire in list(self._wires):
            if wire.pid == os.getpid():
                wire.close()

    def request(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        accept: str,
        kind: str = "application/json",
        write: bool = False,
        sink: Callable[[bytes], Any] | None = None,
    ) -> Reply:
        """Send a request, and once more if the connection breaks or the server is busy. A write has a request id, so that it is executed once.

        Raise EngineError if there is no answer; the message states whether something may have been written.
        """
        own = ""
        if write:
            own = f"Graphstore-Request: {os.urandom(16).hex()}\r\nUser-Agent: {AGENT}{DOOR.get()}\r\n"
        if self.written is not None:
            own += f"Graphstore-At-Least: {iso(self.written)}\r\n"
        rest = f"Accept: {accept}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{own}"
        asked = _OutgoingRequest(f"{method} {target} HTTP/1.1\r\n", rest, body, write)
        reply = self._exchange(asked, sink)
        if reply.status in (429, 503) and reply.headers.get(b"retry-after", b"").isdigit():
            if asked.held or not self._move(self.url):
                time.sleep(min(int(reply.headers[b"retry-after"]), _MOST_WAIT))
            else:
                self._drop()
            reply = self._exchange(asked, sink)
        if (told := reply.headers.get(b"graphstore-written")) is not None:
            self._note(instant(told.decode("latin-1")))
        return reply

    def _note(self, written: Instant) -> None:
        with self._noting:
            self.written = written if self.written is None else max(self.written, written)

    def _exchange(self, asked: _OutgoingRequest, sink: Callable[[bytes], Any] | None) -> Reply:
        write, sent = asked.write, False
        for left in reversed(range(_TRIES if self._find else 2)):
            last, url = not left, self.url
            try:
                wire = self._wire()
            except OSError as error:
                if not last and self._move(url):
                    asked.refuse_moved()
                    continue
                raise EngineError(
                    self._unreached(error, write and sent), outcome=_outcome(write, sent)
                ) from None
            try:
                request = asked.sent(wire.head, again=sent)
                sent = True
                reply = wire.exchange(request, sink)
                if reply.headers.get(b"connection", b"").lower() == b"close":
                    self._drop()
                return reply
            except TimeoutError:
                self._drop()
                if not last and sink is None and self._move(url):
                    asked.refuse_moved()
                    continue
                raise EngineError(
                    f"{self.url} did not answer within {self.timeout:g} s.{_unsure(write)} Give more time with timeout=.",
                    outcome=_outcome(write, sent),
                ) from None
            except (OSError, Broken, ValueError) as error:
                self._drop()
                if last or sink is not None:
                    raise EngineError(
                        f"the connection to {self.url} broke: {error}.{_unsure(write)}",
                        outcome=_outcome(write, sent),
                    ) from None
            except BaseException:  # an unread answer would be taken for the next request's
                self._drop()
                raise
        raise AssertionError

    def _wire(self) -> Wire:
        if self.closed:
            raise InvalidError(self.closed)
        wire: Wire | None = getattr(self.local, "wire", None)
        if wire is None or wire.pid != os.getpid():
            wire = self.local.wire = Wire(*self._place, self.timeout)
            self._wires.add(wire)
        return wire

    def _drop(self) -> None:
        wire: Wire | None = getattr(self.local, "wire", None)
        self.local.wire = None
        if wire is not None:
            wire.close()
        if self.closed:
            raise InvalidError(self.closed)

    def _unreached(self, error: OSError, unsure: bool) -> str:
        why = error.strerror or str(error) or type(error).__name__
        tail = _unsure(True) if unsure else " Is the server running? graphstore serve STORE starts one."
        return f"no server answers at {self.url}: {why}.{tail}"


def _outcome(write: bool, sent: bool) -> Outcome | None:
    return None if not write else "unknown" if sent else "not kept"


def _unsure(write: bool) -> str:
    """Return the sentence about a write without an answer."""
    if not write:
        return ""
    return " Whether it was written is not known: look with changes() or by its id, before you do it again."


def _parts(url: str) -> tuple[bool, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidError(f"{url!r} is no address: {error}. Give http://HOST:PORT.") from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.path not in ("", "/")
        or parts.query
    ):
        raise InvalidError(f"{url!r} is no address of a server. Give http://HOST:PORT.")
    secure = parts.scheme == "https"
    return secure, parts.hostname, port or (443 if secure else 80)
