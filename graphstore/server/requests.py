"""Reads requests from ASGI and writes answers: caller, origin, size, body. It knows nothing of the store.

It uses ASGI alone: the work of a web framework per request would cost more than the write itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson

from graphstore.errors import InvalidError
from graphstore.values.inputs import distinct, json_read, text_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]

JSON = b"application/json"
_LET_GO, _LET_GO_SECONDS = 64 << 20, 2.0  # limits for draining a refused body: bytes, seconds
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Response(NamedTuple):
    """A whole answer, small enough to keep for a request that is sent again."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    kind: bytes = JSON


class Request(NamedTuple):
    """Identifies a request that may be sent again: `key` in this process, `id` in the ledger. `again`: its client has sent it before."""

    key: bytes
    id: str
    again: bool


def request_of(path: str, headers: Headers) -> Request | None:
    """Return the identity of a request that may be sent again; None if it has no id of its own."""
    id = headers.get(b"graphstore-request")
    if id is None:
        return None
    key = path.encode() + b" " + id
    return Request(key, blake2b(key, digest_size=16).hexdigest(), b"graphstore-again" in headers)


class Refused(Exception):
    """A request that is refused before it reaches the store."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        after: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.after, self.headers = status, after, headers

    def answer(self) -> Response:
        """Return the answer. `after`: the seconds until another try makes sense."""
        headers = self.headers
        if self.after is not None:
            headers = ((b"retry-after", str(self.after).encode()),)
        if self.status == 401 and not headers:
            headers = ((b"www-authenticate", b"Bearer"),)
        content = {"error": _WORDS.get(self.status, "InvalidError"), "message": str(self)}
        return Response(self.status, orjson.dumps(content), headers)


_WORDS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFoundError",
    405: "Forbidden",
    406: "NotAcceptable",
    408: "TooLate",
    413: "TooLarge",
    415: "NotAcceptable",
    429: "Busy",
    431: "TooLarge",
    503: "Busy",
    504: "TooLate",
}


class ClientGone(Exception):
    """The client has disconnected."""


class Apart(NamedTuple):
    """Holds the query parameters apart from arguments: coordinate, branch, author, transaction, seconds that a query may run, and the wanted
    parts of the answer. `others`: the rest."""

    valid: str | None = None
    tx: str | None = None
    as_of: str | None = None
    without: str | None = None
    branch: str | None = None
    author: str | None = None
    transaction: str | None = None
    seconds: str | None = None
    fields: str | None = None
    brief: str | None = None
    part: str | None = None
    others: tuple[tuple[str, str], ...] = ()

    def only(self, *names: str) -> Apart:
        """Return itself. Raise InvalidError for a parameter not among `names`, which would be ignored."""
        allowed = {*names, "others"}
        for name, value in zip(self._fields, self, strict=True):
            if value is not None and name not in allowed:
                raise InvalidError(f"{name} has no effect here. Leave it out.")
        if self.others:
            raise InvalidError.choice("parameter", self.others[0][0], names)
        return self

    def given_to(self, parameters: Collection[str]) -> Apart:
        """Return a copy in which parameters that the call defines itself are moved to `others`."""
        own = {
            name: value for name, value in self._asdict().items() if name in parameters and value is not None
        }
        return self._replace(**dict.fromkeys(own), others=(*self.others, *own.items())) if own else self


_NOTHING_APART = Apart()
_APART = frozenset(Apart._fields) - {"others"}


def apart(query: bytes) -> Apart:
    """Return the parameters of a query string. Raise Refused (422) if one is given twice, or is not valid UTF-8."""
    if not query:
        return _NOTHING_APART
    return _apart(query) if len(query) <= _REMEMBERED else _apart.__wrapped__(query)


_FIELDS = 200  # the most parameters of a query
_REMEMBERED = 512  # bytes; a longer query is not worth caching


@lru_cache(maxsize=1024)  # a client sends the same author, branch and coordinate each time
def _apart(query: bytes) -> Apart:
    named: dict[str, str] = {}
    others: list[tuple[str, str]] = []
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except UnicodeDecodeError:
        raise Refused(422, "the query is no UTF-8. Write what is not ASCII as %XX of its UTF-8.") from None
    except ValueError:
        raise Refused(
            422,
            f"the query has more than {_FIELDS} parameters. Ask by POST, with the arguments as a JSON object.",
        ) from None
    for name, value in pairs:
        if name not in _APART:
            others.append((name, value))
        elif name in named:
            raise Refused(422, f"{name} is given twice. Give it once.")
        else:
            named[name] = text_of(name, value, empty=name in ("valid", "tx"))  # refused later if empty
    return Apart(**named, others=tuple(others))


class Gate:
    """Admits the Host and Origin of this machine, and those that were named.

    A page in a browser can be made to send requests here under a name of its own (DNS rebinding). Its Host and Origin reveal that.
    """

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._origins = {origin.encode().lower().rstrip(b"/") for origin in origins}
        self._known: set[bytes] = set()

    def check(self, headers: Headers) -> bytes | None:
        """Return the origin of a page that was named; None for this server's own, or if no page asks. Raise Refused (403) for others."""
        host = headers.get(b"host", b"")
        if host not in self._known:
            self._admit(host)
        origin = headers.get(b"origin")
        if origin is None or origin in (b"http://" + host, b"https://" + host):
            return None
        if origin.lower() in self._origins:
            return origin
        raise Refused(
            403, f"origin {origin.decode('latin-1')!r} may not ask here. Name it with --allow-origin."
        )

    def _admit(self, host: bytes) -> None:
        name = host.decode("latin-1").lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        else:
            name = name.partition(":")[0]
        if "*" not in self._hosts and name not in self._hosts:
            raise Refused(
                403, f"host {name!r} is not served here. Name it with --allow-host {name or 'NAME'}."
            )
        if len(self._known) < 100:
            self._known.add(host)


class Heads:
    """Tracks requests whose head is incomplete, and strangers: connections that have shown no token yet.

    A client that sends a head slowly, or without end, is disconnected. A stranger has only `stranger` seconds for a head and between two requests.
    If one address has more than `strangers`, the one that has waited longest is disconnected.
    """

    def __init__(self, seconds: float, most: int, *, stranger: float, strangers: int) -> None:
        self._seconds, self._most, self._stranger, self._strangers = seconds, most, stranger, strangers
        # By allowed seconds, then transport: the deadline, and the bytes of the head received so far.
        self._awaited: dict[float, dict[Any, list[float]]] = {}
        self._transports: dict[Any, Any] = {}  # by the address and port of the client
        self._of_address: dict[str, dict[Any, None]] = {}  # strangers in order of arrival

    def come(self, client: Any, transport: Any) -> None:
        """Record a new connection and wait for its first request."""
        self._transports[client] = transport
        strangers = self._of_address.setdefault(_address(client), {})
        strangers[transport] = None
        if len(strangers) > self._strangers:
            self._drop(next(iter(strangers)))
            strangers.pop(next(iter(strangers)))
        self.begin(transport, client)

    def gone(self, client: Any, transport: Any) -> None:
        """Remove a closed connection."""
        self.end(transport)
        if self._transports.get(client) is transport:
            del self._transports[client]
        self._acquaint(client, transport)

    def know(self, client: Any) -> None:
        """Record that a client has shown a token: it is no longer a stranger."""
        transport = self._transports.get(client)
        if transport is not None:
            self._acquaint(client, transport)

    def rest(self, client: Any) -> None:
        """Record an answered request. A stranger must send its next one soon."""
        transport = self._transports.get(client)
        if transport is None or not self._is_strange(client, transport):
            return
        if not self._waits(transport):
            self._await(transport, self._stranger)

    def cut(self, client: Any) -> None:
        """Close a connection at once."""
        transport = self._transports.get(client)
        if transport is not None:
            self._drop(transport)

    def strangers(self) -> int:
        """Return the number of strangers."""
        return sum(map(len, self._of_address.values()))

    def _is_strange(self, client: Any, transport: Any) -> bool:
        return transport in self._of_address.get(_address(client), ())

    def _acquaint(self, client: Any, transport: Any) -> None:
        address = _address(client)
        strangers = self._of_address.get(address)
        if strangers is not None:
            strangers.pop(transport, None)
            if not strangers:
                del self._of_address[address]

    def begin(self, transport: Any, client: Any) -> None:
        """Start waiting for the head of a request, unless part of it has come already."""
        if any(size for _, size in self._waits(transport)):
            return
        self.end(transport)
        strange = self._is_strange(client, transport)
        self._await(transport, min(self._seconds, self._stranger) if strange else self._seconds)

    def _await(self, transport: Any, seconds: float) -> None:
        self._awaited.setdefault(seconds, {})[transport] = [monotonic() + seconds, 0]

    def _waits(self, transport: Any) -> list[list[float]]:
        return [awaited[transport] for awaited in self._awaited.values() if transport in awaited]

    def end(self, transport: Any) -> None:
        """Stop waiting: the head is complete, or the connection has closed."""
        for awaited in self._awaited.values():
            awaited.pop(transport, None)

    def grow(self, transport: Any, size: int) -> None:
        """Count received bytes of a head. Refuse it (431) if it is too large."""
        for awaited in self._waits(transport):
            awaited[1] += size
            if awaited[1] > self._most:
                self._refuse(transport, 431, f"the head of the request is larger than {self._most:,} bytes.")

    async def watch(self) -> None:
        """Disconnect clients that are late, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            self._let_go()

    def _let_go(self) -> None:
        now = monotonic()
        for seconds, awaited in list(self._awaited.items()):
            while awaited:
                transport, (until, size) = next(iter(awaited.items()))
                if until > now:
                    break
                if size:
                    self._refuse(transport, 408, f"the request did not come whole within {seconds:g} s.")
                else:
                    self._drop(transport)

    def _drop(self, transport: Any) -> None:
        self.end(transport)
        transport.abort()

    def _refuse(self, transport: Any, status: int, message: str) -> None:
        self.end(transport)
        found = Refused(status, message).answer()
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(found.body)}\r\nconnection: close\r\n\r\n"
        transport.write(head.encode() + found.body)
        transport.close()


def _address(client: Any) -> str:
    return client[0] if client else ""


_LOOK = 0.25  # seconds between two checks for late clients
_PIECE = 1 << 18  # bytes of an answer that are sent at a time
_REASONS = {408: "Request Timeout", 431: "Request Header Fields Too Large"}


async def until_left(receive: Receive) -> None:
    """Wait until a client disconnects. What it sends meanwhile is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def body_of(headers: Headers, receive: Receive, most: int, seconds: float) -> bytes:
    """Return the body of a request. Raise Refused if it exceeds `most` bytes (413) or takes too long (504), ClientGone on a disconnect."""
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length) > most):
        await leave_unread(receive)
        raise Refused(413, _too_large(most))
    try:
        async with asyncio.timeout(seconds):
            return await _body(receive, most)
    except TimeoutError:
        raise Refused(504, f"the request did not come whole within {seconds:g} s.") from None


async def _body(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        data: bytes = message.get("body", b"")
        size += len(data)
        if size > most:
            if message.get("more_body"):
                await leave_unread(receive)
            raise Refused(413, _too_large(most))
        if not message.get("more_body"):
            return b"".join([*parts, data]) if parts else data
        parts.append(data)


async def leave_unread(receive: Receive) -> None:
    """Drain the rest of a refused body, for a while. A client that is disconnected while sending never reads the reason."""
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LET_GO_SECONDS):
            while size < _LET_GO:
                message = await receive()
                if not message.get("more_body"):
                    return
                size += len(message["body"])


def _too_large(most: int) -> str:
    return f"the request is larger than {most:,} bytes. Send it in parts, or as bulk_load."


def arguments(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty body is an empty object. Raise InvalidError, or Refused (422) for another value."""
    if not body:
        return {}
    found = json_read("the body", body) if len(body) <= _WHOLE else _read_in_turns(body)
    if not isinstance(found, dict):
        raise Refused(422, "the body is no JSON object. Give the arguments by name.")
    return found


def _read_in_turns(body: bytes) -> Any:
    """Parse JSON like `json_read`, more slowly, but with other threads running: orjson blocks them until it has read all. Raise InvalidError."""
    if _SURROGATE.search(body) is not None:
        return json_read("the body", body)
    try:
        return json.loads(
            body.decode(),
            object_pairs_hook=distinct("the body"),
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_refuse,
        )
    except InvalidError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"the body is not JSON: {error}.") from None


# These, like `distinct`, are Python functions, so that the interpreter can switch threads in between.
def _whole(text: str) -> int:
    return int(text)


def _real(text: str) -> float:
    found = float(text)
    return found if isfinite(found) else _refuse(text)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_WHOLE = 1 << 19  # bytes; a larger body is parsed in Python
_SURROGATE = re.compile(rb"\\u[dD]")


def version_number(match: bytes) -> int:
    """Return the version number in a header If-Match. Raise Refused (422) if it is not a number."""
    text = match.decode("latin-1").strip()
    number = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Refused(422, f'If-Match {text!r} is no number of a version. Give one, such as If-Match: "2".')
    return int(number)


async def answer(send: Send, found: Response) -> None:
    """Send an answer, a large one in pieces."""
    status, headers, kind = found.status, found.headers, found.kind
    body: bytes | memoryview = found.body
    of_body = (
        [] if status in (204, 304) else [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    )
    await send({"type": "http.response.start", "status": status, "headers": [*of_body, *headers]})
    while len(body) > _PIECE:
        piece, body = body[:_PIECE], memoryview(body)[_PIECE:]
        await send({"type": "http.response.body", "body": bytes(piece), "more_body": True})
        await asyncio.sleep(0)  # lets other tasks run
    await send({"type": "http.response.body", "body": bytes(body)})
