"""Serves a store over HTTP, for many processes at once: every call of the registry under its name.

`POST /{name}` takes the arguments as a JSON object, `GET` takes those of a read in the query. `/docs` and `/openapi.json` describe them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.routing import BaseRoute, Match, Route, Router

import graphstore
from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.readings import Agent
from graphstore.ledger.tokens import Grant, StoreTokens
from graphstore.remote import calls, received
from graphstore.remote.calls import Call
from graphstore.server import http_rules as rules
from graphstore.server import logs, media, page_files
from graphstore.server.agents import PATH as AGENTS
from graphstore.server.agents import Agents
from graphstore.server.call_files import CallFiles
from graphstore.server.dispatch import (
    ARROW,
    EVENTS,
    KINDS,
    Calling,
    ServerLimits,
    encoder,
    pinned_at,
    prepared,
)
from graphstore.server.docs_page import page
from graphstore.server.group_commit import Patience
from graphstore.server.metrics import KIND as METRICS
from graphstore.server.metrics import Metrics, gauges_of
from graphstore.server.openapi import described
from graphstore.server.read_records import READER, ReadRecord
from graphstore.server.requests import (
    Apart,
    ClientGone,
    Gate,
    Headers,
    Heads,
    Receive,
    Refused,
    Response,
    Scope,
    Send,
    answer,
    apart,
    arguments,
    body_of,
    leave_unread,
    request_of,
    until_left,
    version_number,
)
from graphstore.server.scoped_writes import ScopedWrites
from graphstore.store.scoped_store import ScopedStore
from graphstore.store.store import GraphStore
from graphstore.values.doors import DOOR, SIGNED, SIGNER, Signer, door_of
from graphstore.values.period import TimeLike, instant, iso, moment

if TYPE_CHECKING:
    from graphstore.server.issuer import Issuer

__all__ = ["Patience", "ServedStore", "ServerLimits", "app"]

_log = logging.getLogger("graphstore")
_HEARTBEAT = 15.0  # seconds without news after which a stream sends a heartbeat
_LOOK = 1.0  # seconds after which a stream checks for news itself, since other processes write too
_OPEN = page_files.ENDPOINTS.keys() | {"/health", "/docs", "/openapi.json"}  # reveal nothing of the store
# statuses that may be sent before the request body was read
_UNREAD = frozenset({401, 403, 404, 405, 406, 413, 415, 504})
_PAGE = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_OF_WRITES = ("branch", "author", "transaction")
_AT_ONCE = 500  # changes that a stream reads and buffers at a time
_CLOUD_EVENTS = "cloud_events.cloud_events"
_TABLES = ("nodes", "versions", "events", "links")
_STREAMS = frozenset({"/changes", AGENTS})
_LET_IN = 0.5  # seconds between two checks that a stream's token is still valid
_NO_TOKEN = "no token. Send the header Authorization: Bearer TOKEN."
_UNKNOWN_TOKEN = "that token is not known here. It is in the store's folder, where it was served first."
_NARROW = ("insufficient_scope", "this token is for reading.")
_OVER_EVERYTHING = frozenset({"/metrics", "/query_tables", "/recipe", "/activity"})


class Exchange(NamedTuple):
    """Holds one admitted request: the rights of its token, its headers, and its ASGI channels."""

    rights: str
    headers: Headers
    scope: Scope
    receive: Receive
    send: Send
    reader: Agent | None
    """The agent that is answered, if reads are recorded."""
    call: Call | None
    challenge: tuple[tuple[bytes, bytes], ...] = ()
    """The headers of a refusal that wants the right to write."""

    @property
    def method(self) -> str:
        return self.scope["method"]  # type: ignore[no-any-return]

    @property
    def path(self) -> str:
        return self.scope["path"]  # type: ignore[no-any-return]

    def asked(self) -> Apart:
        """Return the parameters of the query apart from the arguments."""
        return apart(self.scope["query_string"])

    def want_write(self, what: str) -> None:
        """Raise Refused (403) if the token only permits reading."""
        if self.rights != "write":
            raise Refused(
                403, f"{what} wants the token for writing; this one is for reading.", headers=self.challenge
            )


Handler = Callable[[Exchange], Awaitable[Response | None]]
"""Answers a request; returns None if it has sent the answer itself."""


class Endpoint:
    """Wraps a handler as the ASGI app of a route."""

    def __init__(self, served: ServedStore, handler: Handler) -> None:
        self._served, self._handler = served, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope["exchange"]
        found = await self._handler(exchange)
        if found is not None:
            if rules.is_compressible(found, exchange.headers):
                found = await self._served.compressed(found)
            await answer(send, found)


class CallRoute(BaseRoute):
    """Routes a path to the call of that name."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return a full match if the path names a call."""
        return (Match.NONE if scope["exchange"].call is None else Match.FULL), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a call, if the method is allowed."""
        methods = ("GET", "HEAD", "POST") if scope["exchange"].call.scope == "read" else ("POST",)
        if scope["method"] not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        await self._endpoint(scope, receive, send)


class ServedStore:
    """Admits requests, and passes each to its route. `pages`: routes that reveal nothing of the store."""

    def __init__(
        self,
        store: GraphStore,
        tokens: StoreTokens | None,
        *,
        limits: ServerLimits,
        patience: Patience,
        gate: Gate,
        read_only: bool,
        files: CallFiles | None = None,
        reads: ReadRecord | None = None,
        heads: Heads | None = None,
        pages: Sequence[BaseRoute] = (),
        issuer: Issuer | None = None,
        lifespan: Any = None,
    ) -> None:
        self._reads = reads or ReadRecord(store)
        self._store, self._tokens = store, tokens
        self.issuer = issuer
        self._limits, self._patience, self._gate, self._read_only = limits, patience, gate, read_only
        self._files = files or CallFiles()
        self.router = Router([*self._routes(), *pages], redirect_slashes=False, lifespan=lifespan)
        self.agents: Agents | None = None
        self.metrics = Metrics()
        self._followers: dict[object, dict[str, Any]] = {}
        self.calling: Calling | None = None
        self.stopping = asyncio.Event()
        self.heads = heads or Heads(
            limits.upload, limits.head, stranger=limits.stranger, strangers=limits.strangers
        )
        self._active = self._connections = 0
        self._streams: Counter[str] = Counter()  # by the rights of their token
        self._exports: Counter[str] = Counter()
        self._holders: dict[Any, str] = {}  # by connection: the token of the transaction it last used
        self._beginning: set[Any] = set()  # connections that wait for a transaction to begin
        self._lent: dict[bytes, Grant] = {}  # tokens by which agents behind a token with scopes write
        self._parts: dict[tuple[str, ...], ServedStore] = {}  # by scopes: the server for what such tokens see
        self._turns: defaultdict[tuple[str, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closings: set[asyncio.Future[None]] = set()  # of parts that nobody uses any more
        self.users = 0
        """The number of requests that this part of a store is answering."""
        self.closing = contextlib.AsyncExitStack()
        """Closes this part of a store."""

    def _routes(self) -> list[BaseRoute]:
        endpoint = partial(Endpoint, self)
        return [
            CallRoute(endpoint(self._called)),
            Route("/health", endpoint(self._health), methods=["GET"]),
            Route("/metrics", endpoint(self._metrics), methods=["GET"]),
            Route("/rights", endpoint(self._rights), methods=["GET"]),
            Route("/activity", endpoint(self._activity), methods=["GET"]),
            Route("/export", endpoint(self._export), methods=["GET"]),
            Route("/media/{id:path}", endpoint(self._media), methods=["GET"]),
            Route("/batch", endpoint(self._batch), methods=["POST"]),
            Route("/webhooks/deploy", endpoint(self._deployed), methods=["POST"]),
            Route("/transaction", endpoint(self._begin), methods=["POST"]),
            Route("/transaction/{token}/{word}", endpoint(self._end_of), methods=["POST"]),
            Route(AGENTS, endpoint(self._agent)),
        ]

    # ------------------------------------------------------------------ lifecycle

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Calling]:
        """Answer calls within the block. At its end no write is running; the store stays open."""
        self.calling = Calling(
            self._store,
            self._limits,
            self._patience,
            self.metrics,
            read_only=self._read_only,
            files=self._files,
        )
        watching = asyncio.ensure_future(self.heads.watch())
        try:
            yield self.calling
        finally:
            watching.cancel()
            self.end()
            parts, self._parts = self._parts, {}
            await asyncio.gather(*self._closings, *(part.closing.aclose() for part in parts.values()))
            calling, self.calling = self.calling, None
            await asyncio.get_running_loop().run_in_executor(None, calling.stop, 30.0)

    def end(self) -> None:
        """Refuse new requests, end the streams, and abort an open transaction, so that those who wait for it are answered."""
        self.stopping.set()
        for part in self._parts.values():
            part.end()
        if self.calling is not None:
            self.calling.end_queries()
            self.calling.serving.hold_no_more()
            self.calling.news()

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        return self._connections

    def come(self, client: Any) -> bool:
        """Count a new connection. Return False if there are too many; `gone` is called for it in any case."""
        self._connections += 1
        return self._connections <= self._limits.connections

    def gone(self, client: Any) -> None:
        """Count a closed connection. Its client may have died while it held a transaction."""
        self._connections -= 1
        self._beginning.discard(client)
        token = self._holders.pop(client, None)
        if token is not None and self.calling is not None and token not in self._holders.values():
            self.calling.serving.gone(token)

    # ------------------------------------------------------------------ one request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.router(scope, receive, send)
            return
        start = perf_counter()
        method, path = scope["method"], scope["path"]
        headers: Headers = dict(scope["headers"])
        call = _call_at(path)
        origin, rights, status = None, "", 200
        found: Response | None = None

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._active += 1
        try:
            try:
                origin = self._gate.check(headers)
                if origin is not None:
                    send = rules.with_cors(send, origin)
                wants_methods = method == "OPTIONS" and path != AGENTS
                rights, grant = ("", None) if wants_methods else await self._let_in(path, headers)
            except Refused:
                if b"content-length" in headers or b"transfer-encoding" in headers:
                    await leave_unread(receive)
                raise
            if path in _STREAMS and method == "GET":
                receive = self._while_let_in(path, headers, receive)
            reader = self._reads.reader(grant, rights)
            challenge = self._challenge(path, _NARROW) if rights == "read" else ()
            exchange = Exchange(rights, headers, scope, receive, noting, reader, call, challenge)
            await self._lead(exchange, grant)
        except HTTPException as error:
            found = _unrouted(error, method, path, headers, origin)
        except (Refused, GraphStoreError) as error:
            found = _refusal(error)
            if found.status == 401:
                logs.refused(path, scope.get("client"), str(error))
        except ClientGone:
            status = 499
        except Exception as error:
            _log.exception("%s failed", path)
            found = _refusal(error)
        finally:
            self._active -= 1
        if found is not None:
            await answer(noting, found)
        self.heads.rest(scope.get("client"))
        took = perf_counter() - start
        name = call.name if call is not None else "unknown" if status == 404 else "other"
        self.metrics.answered(name, status, took)
        logs.answered(method, path, status, took, client=scope.get("client"), rights=rights)

    async def _lead(self, exchange: Exchange, grant: Grant | None) -> None:
        """Pass an admitted request to its route, on the part of the store that its token sees."""
        scope, headers = exchange.scope, exchange.headers
        is_of_all = grant is None or not grant.scopes
        if exchange.rights:
            self.heads.know(scope.get("client"))
            if (wanted := headers.get(b"graphstore-at-least")) is not None:
                await self._calling().known(wanted, of_all=is_of_all)
        if grant is not None:
            scope[SIGNED] = grant.name
        if exchange.method == "POST":
            DOOR.set(_door_of(exchange))
            SIGNER.set(Signer(grant.name, exchange.asked().author) if grant and grant.name else None)
        async with contextlib.AsyncExitStack() as stack:
            served = self
            if grant is not None and not is_of_all:
                served = await stack.enter_async_context(self._within(grant, exchange.path))
            scope["exchange"], scope["app"] = exchange, served
            await served.router(scope, exchange.receive, exchange.send)

    async def _let_in(self, path: str, headers: Headers) -> tuple[str, Grant | None]:
        """Return the rights of the caller (`read`, `write` or `metrics`; empty for a public path) and the grant of a named token, or of one of an issuer."""
        if self.calling is None or self.stopping.is_set():
            raise Refused(503, "the server is stopping.", after=2)
        if self._tokens is None:
            return "write", None
        if path in _OPEN or (self.issuer is not None and path in self.issuer.documents):
            return "", None
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise Refused(401, _NO_TOKEN, headers=self._challenge(path))
        scheme, _, shown = authorization.partition(b" ")
        if scheme.lower() == b"bearer":
            scoped = self._tokens.scope(shown.strip())
            if scoped == "metrics" and path != "/metrics":
                raise Refused(403, "this token is for /metrics alone.")
            if scoped is not None:
                return scoped, None
            grant = self._tokens.grant(shown.strip()) or self._lent.get(shown.strip())
            if grant is None and self.issuer is not None and shown.count(b".") == 2:
                grant = await self.issuer.grant(shown.strip().decode("latin-1"), path)
            if grant is not None:
                return ("read" if grant.rights == "read" else "write"), grant
        raise Refused(401, _UNKNOWN_TOKEN, headers=self._challenge(path, ("invalid_token", _UNKNOWN_TOKEN)))

    def _challenge(self, path: str, why: tuple[str, str] = ("", "")) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header that names where a client gets a token, and why it needs another one; nothing without an issuer."""
        return () if self.issuer is None else self.issuer.challenge(path, *why)

    def _while_let_in(self, path: str, headers: Headers, receive: Receive) -> Receive:
        """Return a `receive` for a stream. It reports a disconnect when the token is revoked or expires."""

        async def received() -> MutableMapping[str, Any]:
            asked = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait((asked,), timeout=_LET_IN))[0]:
                    await self._let_in(path, headers)
                return asked.result()
            except Refused:
                return {"type": "http.disconnect"}
            finally:
                asked.cancel()

        return received

    @contextlib.asynccontextmanager
    async def _within(self, grant: Grant, path: str) -> AsyncIterator[ServedStore]:
        """Yield the server for the part of the store that a token with scopes sees. Raise Refused (403) for calls on the whole store."""
        if path in _OVER_EVERYTHING:
            raise Refused(403, f"{path[1:]} is of the whole store. It wants a token without scopes.")
        scopes = tuple(sorted(set(grant.scopes)))
        async with self._turns[scopes]:
            part = self._parts.pop(scopes, None) or await self._part_of(scopes)
            self._parts[scopes] = part  # the last is the one used latest
        part.users += 1
        try:
            yield part
        finally:
            part.users -= 1
            self._close_unused()

    def _close_unused(self) -> None:
        """Close the parts that were not used for longest, while there are too many."""
        unused = [scopes for scopes, part in self._parts.items() if not part.users]
        for scopes in unused[: max(0, len(self._parts) - self._limits.parts)]:
            closing = asyncio.ensure_future(self._parts.pop(scopes).closing.aclose())
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)

    async def _part_of(self, scopes: tuple[str, ...]) -> ServedStore:
        """Open a read-only server for the part of the store that the scopes contain. It shares the connections of this one."""
        store = await asyncio.to_thread(ScopedStore, self._store, scopes)
        token = secrets.token_urlsafe(32)
        self._lent[token.encode()] = Grant("", "write", scopes, None, "")
        made = ServedStore(
            store,
            None,
            limits=self._limits,
            patience=self._patience,
            gate=self._gate,
            read_only=True,
            reads=self._reads.within(store),
            heads=self.heads,
        )
        made.closing.callback(store.close)
        made.closing.callback(self._lent.pop, token.encode(), None)
        calling = await made.closing.enter_async_context(made.open())
        calling.scoped = ScopedWrites(self._calling(), store, scopes)
        followers = self._calling().followers
        followers.append(calling.news)
        made.closing.callback(followers.remove, calling.news)
        if self.agents is not None:
            made.agents = self.agents.to(store, token)
            made.closing.callback(asyncio.ensure_future(made.agents.run()).cancel)
        return made

    async def _called(self, exchange: Exchange) -> Response | None:
        """Answer a call by its name."""
        call, asked = exchange.call, exchange.asked()
        assert call is not None
        if exchange.method == "POST":
            if call.scope == "write":
                exchange.want_write(call.name)
            return await self._posted(call, asked, exchange)
        if call.name == "changes" and b"text/event-stream" in exchange.headers.get(b"accept", b""):
            return await self._changes(exchange)
        asked = asked.given_to(call.parameters)
        args = self._of_server(call, received.from_query(call, asked.others))
        self._files.check(call, args, exchange.rights, get=True)
        return await self._read(call, args, asked, exchange)

    async def _agent(self, exchange: Exchange) -> None:
        """Answer a request of an agent: a lasting stream or one call."""
        if self.agents is None:
            raise HTTPException(404)
        exchange.scope[READER] = exchange.reader
        stays = exchange.method == "GET"
        with self._followed("agent", "mcp", exchange) if stays else contextlib.nullcontext():
            await self.agents.answer(
                exchange.rights, self.stopping, exchange.scope, exchange.receive, exchange.send
            )

    async def _read(self, call: Call, args: dict[str, Any], asked: Apart, exchange: Exchange) -> Response:
        """Answer a GET of a call, and state how long the answer may be cached."""
        kind = _kind(call, exchange.headers)
        found = await self._calling().read(call, args, asked, kind, exchange.receive)
        self._reads.add(exchange.reader, call, args, asked, found)
        return rules.unchanged(rules.cacheable(found, asked, self._store.last_tx), exchange.headers)

    async def compressed(self, found: Response) -> Response:
        """Return an answer compressed; a large one is compressed on a reader's thread."""
        if len(found.body) < rules.LARGE or self.calling is None:
            return rules.compressed(found)
        return await self.calling.aside(partial(rules.compressed, found))  # type: ignore[no-any-return]

    def _of_server(self, call: Call, args: dict[str, Any]) -> dict[str, Any]:
        """Add the arguments that only the server knows: the source of exported events must not be a path of this machine."""
        if call.name != _CLOUD_EVENTS or args.get("source") is not None:
            return args
        first = self._store._first_tx  # identifies the store for others, wherever it is stored
        return {**args, "source": f"urn:graphstore:{'new' if first is None else iso(first)}"}

    async def _body(self, exchange: Exchange) -> bytes:
        """Return the JSON body of a request. Raise Refused if its type is not JSON, or if it is too large."""
        rules.read_as_json(exchange.headers)
        return await body_of(exchange.headers, exchange.receive, self._limits.body, self._limits.upload)

    async def _posted(self, call: Call, asked: Apart, exchange: Exchange) -> Response:
        calling, headers = self._calling(), exchange.headers
        kind = _kind(call, headers)
        if call.name == "bulk_load" and ARROW in headers.get(b"content-type", b""):
            body = await body_of(headers, exchange.receive, self._limits.load, self._limits.upload)
            args = await calling.aside(partial(_tables, body, asked))
            asked = asked._replace(others=()).only(*_OF_WRITES)
        else:
            body = await self._body(exchange)
            asked.only(*(_OF_WRITES if call.scope == "write" else Apart._fields))
            args = await calling.parsed(body, lambda body: received.prepare(call, arguments(body)))
            args = self._of_server(call, args)
        if b"if-match" in headers:
            args = _expecting(call, args, headers[b"if-match"])
        if call.files:
            self._files.check(call, args, exchange.rights)
        if asked.transaction is not None:
            self._holders[exchange.scope["client"]] = asked.transaction
        if call.scope == "read":
            found = await calling.read(call, args, asked, kind, exchange.receive)
            self._reads.add(exchange.reader, call, args, asked, found)
            return found
        request = request_of(exchange.path, headers)
        return await calling.once(request, lambda: calling.write(call, args, asked, kind, request))

    def _calling(self) -> Calling:
        assert self.calling is not None
        return self.calling

    # ------------------------------------------------------------------ endpoints other than calls

    async def _health(self, _: Exchange) -> Response:
        stopped = self._calling().cut_off
        health = {
            "status": "the journal cannot be read" if stopped else "ok",
            "name": "graphstore",
            "version": graphstore.__version__,
        }
        return Response(503 if stopped else 200, orjson.dumps(health))

    async def _rights(self, exchange: Exchange) -> Response:
        may = "read" if self._read_only and self._calling().scoped is None else exchange.rights
        return Response(200, orjson.dumps({"rights": may}), ((b"cache-control", b"no-store"),))

    async def _activity(self, _: Exchange) -> Response:
        """Answer with the clients that follow the store through this server, and the interface of each recent write, by tx."""
        wrote = [{"tx": moment(tx), "door": door} for tx, door in self._store._doors().items()]
        followers = list(self._followers.values())
        found = {"followers": followers, "connections": self._connections, "doors": wrote}
        return Response(200, calls.encode(found), ((b"cache-control", b"no-store"),))

    @contextlib.contextmanager
    def _followed(self, what: str, door: str, exchange: Exchange) -> Iterator[None]:
        """Count a follower within the block: a reader of `changes`, or an `agent`."""
        key, client = object(), exchange.scope.get("client")
        self._followers[key] = {
            "what": what,
            "door": door,
            "rights": exchange.rights,
            "client": client[0] if client else None,
            "since": datetime.now(UTC),
        }
        try:
            yield
        finally:
            del self._followers[key]

    async def _media(self, exchange: Exchange) -> Response:
        calling, asked = self._calling(), exchange.asked().only("valid", "tx", "as_of", "branch")
        id = exchange.scope["path_params"]["id"]
        reader = calling.line(asked).as_of(asked.as_of, valid=asked.valid, tx=asked.tx)
        found = partial(media.answered, reader, id, exchange.headers, self._files.folders)
        return await calling.aside(found)  # type: ignore[no-any-return]

    async def _metrics(self, _: Exchange) -> Response:
        calling = self._calling()
        stats = await calling.aside(self._store.stats)
        gauges = {
            "writes_waiting": calling.serving.waiting,
            "reads_under_way": calling.reading,
            "requests_under_way": self._active,
            "connections": self._connections,
            "connections_without_token": self.heads.strangers(),
            "streams": self._streams.total(),
            "exports": self._exports.total(),
            "transaction_open": int(calling.serving.in_transaction),
            "readings_lost": 0 if self._store._recorder is None else self._store._recorder.lost,
            "tables_thrown_away": self._store._tables_thrown_away(),
            **gauges_of(stats),
            **calling.memory(),
        }
        text = self.metrics.text(calling.serving.groups, gauges, self._store._writing())
        return Response(200, text, (), METRICS)

    async def _deployed(self, exchange: Exchange) -> Response:
        """Answer the deploy webhook of a service. The body is the payload of `events.observe_deploy`."""
        call = calls.CALLS["events.observe_deploy"]
        exchange.want_write(call.name)
        calling, asked = self._calling(), exchange.asked().only(*_OF_WRITES)
        raw = await self._body(exchange)
        args = await calling.parsed(raw, lambda body: received.prepare(call, {"payload": arguments(body)}))
        request = request_of(exchange.path, exchange.headers)
        return await calling.once(
            request, lambda: calling.write(call, args, asked, _kind(call, exchange.headers), request)
        )

    async def _batch(self, exchange: Exchange) -> Response:
        exchange.want_write("batch")
        calling, asked = self._calling(), exchange.asked()
        calling.refuse_read_only()
        if asked.others not in ((), (("answers", "ids"),)):
            raise InvalidError(
                f"{'='.join(asked.others[0])} is not known here. Leave it out, or write answers=ids."
            )
        ids = bool(asked.others)
        asked = asked._replace(others=()).only("branch", "author", "transaction")
        body = await calling.parsed(await self._body(exchange), _batch_of)
        for _, call, args in body["calls"]:
            self._files.check(call, args, exchange.rights)
        kind = rules.accepted(exchange.headers.get(b"accept"), KINDS)
        request = request_of(exchange.path, exchange.headers)
        return await calling.once(
            request, lambda: calling.batch(body, asked, ids=ids, kind=kind, request=request)
        )

    async def _begin(self, exchange: Exchange) -> Response:
        calling, asked = self._calling(), exchange.asked().only("branch", "author")
        body = arguments(await self._body(exchange))
        if body.get("read_only") is True:
            if len(body) > 1:
                raise InvalidError.choice("argument", min(body.keys() - {"read_only"}), ("read_only",))
            token, tx = await calling.aside(partial(calling.pinned, asked))
            return Response(200, orjson.dumps({"transaction": token, "tx": tx}))
        exchange.want_write("transaction")
        calling.refuse_read_only()
        client = exchange.scope["client"]
        self._beginning.add(client)
        token, tx = await calling.begin(body, asked)
        if client not in self._beginning:  # its client has disconnected
            await calling.end(token, commit=False)
            raise ClientGone
        self._beginning.discard(client)
        self._holders[client] = token
        return Response(200, orjson.dumps({"transaction": token, "tx": tx}))

    async def _end_of(self, exchange: Exchange) -> Response:
        calling = self._calling()
        exchange.asked().only("branch", "author")
        await body_of(exchange.headers, exchange.receive, self._limits.body, self._limits.upload)
        token, word = (exchange.scope["path_params"][name] for name in ("token", "word"))
        if word not in ("commit", "abort"):
            raise InvalidError.choice("end of a transaction", word, ("commit", "abort"))
        if pinned_at(token) is not None:
            return Response(200, b"null")
        exchange.want_write("transaction")
        request = request_of(exchange.path, exchange.headers)

        async def end() -> Response:
            written = await calling.end(token, commit=word == "commit", request=request)
            for client in [client for client, held in self._holders.items() if held == token]:
                del self._holders[client]
            return Response(200, b"null", (*calling.told(), *written) if word == "commit" else ())

        return await calling.once(request, end)

    async def _export(self, exchange: Exchange) -> Response | None:
        calling, limits, rights = self._calling(), self._limits, exchange.rights
        if exchange.method == "HEAD":
            return Response(200, b"", (), b"application/jsonl")
        others = dict(exchange.asked().others)
        if unknown := others.keys() - {"since"}:
            raise InvalidError.choice("argument", min(unknown), ("since",))
        since = others.get("since")
        busy = f"{limits.exports} exports by this token are under way. Wait for one to end."
        with (
            _one_more(self._exports, rights, limits.exports, busy, 10),
            tempfile.TemporaryDirectory(prefix="graphstore-") as folder,
        ):
            dump = Path(folder) / "dump.jsonl"
            needed = await calling.aside(lambda: self._store.stats()["journal_bytes"])
            free = shutil.disk_usage(folder).free
            if needed > free - limits.room:
                raise Refused(
                    503, f"a dump needs {needed:,} bytes in {tempfile.gettempdir()}, where {free:,} are free.", after=60
                )  # fmt: skip
            await calling.aside(partial(self._store.export, dump, since=since))
            sent = FileResponse(dump, media_type="application/jsonl")
            try:
                async with asyncio.timeout(limits.export):
                    await sent(exchange.scope, exchange.receive, self._paced(exchange))
            except TimeoutError:
                raise ClientGone from None
        return None

    async def _changes(self, exchange: Exchange) -> Response | None:
        """Answer with a stream of changes until the client disconnects."""
        asked, headers, rights = exchange.asked(), exchange.headers, exchange.rights
        if exchange.method == "HEAD":
            return Response(200, b"", (), b"text/event-stream; charset=utf-8")
        unknown = dict(asked.others).keys() - {"since"}
        if unknown:
            raise InvalidError.choice("argument", min(unknown), ("since",))
        busy = f"{self._limits.streams} streams are open by this token. End one."
        with _one_more(self._streams, rights, self._limits.streams, busy, 30):
            last = headers.get(b"last-event-id", b"").decode("latin-1")
            since: str | None = last or dict(asked.others).get("since")
            if since is not None:
                at = self._calling().line(asked).instant_of(since, "since", "tx")
                if since.strip().lower() == "now":  # a write in progress may get an earlier instant
                    at = min(self._store.coordinate()[1], self._store.last_tx)
                since = iso(at)
            with self._followed("changes", _door_of(exchange), exchange):
                await self._stream(since, asked, exchange.receive, self._paced(exchange))
        return None

    def _paced(self, exchange: Exchange) -> Send:
        """Return a `send` that disconnects a client which reads nothing for too long. It then raises ClientGone."""

        async def sent(message: MutableMapping[str, Any]) -> None:
            try:
                async with asyncio.timeout(self._limits.stalled):
                    await exchange.send(message)
            except TimeoutError:
                self.heads.cut(exchange.scope.get("client"))
                raise ClientGone from None

        return sent

    async def _stream(self, since: TimeLike | None, asked: Apart, receive: Receive, send: Send) -> None:
        """Send one server-sent event per transaction, with its tx as id, so that a client can resume there."""
        calling = self._calling()
        left = asyncio.ensure_future(until_left(receive))
        kind = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        quiet = monotonic() + _HEARTBEAT
        try:
            while not (self.stopping.is_set() or left.done()):
                written = calling.written
                found, since = await calling.aside(partial(_news, calling, asked, since))
                if found:
                    await send({"type": "http.response.body", "body": found, "more_body": True})
                    continue
                waiting = asyncio.ensure_future(written.wait())
                done, _ = await asyncio.wait(
                    (waiting, left), timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                if not done and monotonic() >= quiet:
                    quiet = monotonic() + _HEARTBEAT
                    await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})
        except Exception as error:  # the head has been sent, so an error can only be the last event
            _log.exception("a stream of changes failed")
            await send({"type": "http.response.body", "body": _last(error), "more_body": True})
        finally:
            left.cancel()
            await send({"type": "http.response.body", "body": b""})


def app(
    store: GraphStore,
    *,
    tokens: StoreTokens | None = None,
    limits: ServerLimits | None = None,
    patience: Patience | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    read_only: bool = False,
    files: Path | None = None,
    record_reads: bool = False,
    reads_days: float | None = None,
    issuer: Issuer | None = None,
    started: Callable[[Calling], contextlib.AbstractAsyncContextManager[None]] | None = None,
) -> ServedStore:
    """Return the ASGI app that serves a store, which it does not close.

    `tokens=None` permits everything to everyone: for tests, or where something else controls access. `hosts`, `origins`: those admitted besides this
    machine's own. `files`: the folder of paths in calls; without it no call may name a file. `record_reads`: record what each answer contained, for
    `reads_days`; otherwise only for tokens made with `--record-reads`. `issuer`: whose access
    tokens are admitted besides the tokens of the store. `started`: a context that runs while the app serves.
    """

    @contextlib.asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        async with served.open() as calling, contextlib.AsyncExitStack() as stack:
            if started is not None:
                await stack.enter_async_context(started(calling))
            yield

    @cache  # not needed for the start of a server
    def document() -> dict[str, Any]:
        return described(calls.CALLS, path_of)

    def openapi(_: Request) -> JSONResponse:
        return JSONResponse(document())

    def docs(_: Request) -> HTMLResponse:
        return HTMLResponse(page(document()), headers=_PAGE)

    pages = {**page_files.ENDPOINTS, "/openapi.json": openapi, "/docs": docs}
    pages |= (
        {} if issuer is None else {path: partial(_document, each) for path, each in issuer.documents.items()}
    )
    compressed = [Middleware(GZipMiddleware)]
    served = ServedStore(
        store,
        tokens,
        limits=limits or ServerLimits(),
        patience=patience or Patience(),
        gate=Gate(hosts, origins),
        read_only=read_only or store.read_only,
        files=CallFiles(files),
        reads=ReadRecord(store, every=record_reads, days=reads_days),
        pages=[Route(path, endpoint, middleware=compressed) for path, endpoint in pages.items()],
        issuer=issuer,
        lifespan=life,
    )
    return served


def _document(content: dict[str, Any], _: Request) -> JSONResponse:
    return JSONResponse(content)


def _call_at(path: str) -> Call | None:
    """Return the call of a path, and import what it needs."""
    room, slash, name = path[1:].partition("/")
    return None if "." in path else calls.CALLS.get(f"{room}.{name}" if slash else room)


def path_of(call: Call) -> str:
    """Return the path of a call: `/node`, `/topics/latest_on`."""
    return "/" + call.name.replace(".", "/")


def _kind(call: Call, headers: Headers) -> bytes:
    """Return the media type that a client prefers. Raise Refused (406) if there is none, except for an answer that may be a file."""
    kinds = (EVENTS, *KINDS) if call.name == _CLOUD_EVENTS else KINDS
    try:
        return rules.accepted(headers.get(b"accept"), kinds)
    except Refused:
        if call.scope == "read" and call.files:
            return KINDS[0]
        raise


def _expecting(call: Call, args: dict[str, Any], match: bytes) -> dict[str, Any]:
    """Return the arguments with the version of a header If-Match. Raise InvalidError if the call expects no version, or names another one."""
    number = version_number(match)
    if "if_number" not in call.parameters:
        raise InvalidError(f"{call.name} expects no version. Leave If-Match out.")
    if args.get("if_number", number) != number:
        raise InvalidError(
            f"If-Match and if_number= ({args['if_number']!r}) name two versions. Give one of them."
        )
    return {**args, "if_number": number}


def _batch_of(raw: bytes) -> dict[str, Any]:
    """Return the body of a batch, with its calls prepared."""
    body = arguments(raw)
    unknown = body.keys() - {"calls", "author", "reason"}
    if unknown:
        raise InvalidError.choice("argument", min(unknown), ("calls", "author", "reason"))
    return {**body, "calls": prepared(body.get("calls"))}


@contextlib.contextmanager
def _one_more(under_way: Counter[str], rights: str, most: int, busy: str, after: int) -> Iterator[None]:
    """Count one more by tokens of these rights within the block. Raise Refused (429) if there are already `most`."""
    if under_way[rights] >= most:
        raise Refused(429, busy, after=after)
    under_way[rights] += 1
    try:
        yield
    finally:
        under_way[rights] -= 1


def _door_of(exchange: Exchange) -> str:
    return door_of(exchange.headers.get(b"user-agent", b"").decode("latin-1"))


def _unrouted(
    error: HTTPException, method: str, path: str, headers: Headers, origin: bytes | None
) -> Response:
    """Return the answer to a path without a route, or to a method that the route does not allow."""
    if error.status_code == 404:
        paths = map(path_of, calls.CALLS.values())
        return _refusal(Refused(404, str(NotFoundError.nearest("call", path, lambda: paths))))
    allowed = [one for one in ("GET", "HEAD", "POST") if one in (error.headers or {})["Allow"]] + ["OPTIONS"]
    if method == "OPTIONS":
        return rules.options(allowed, headers, origin)
    return _refusal(rules.other_method(method, path, allowed))


def _refusal(error: Exception) -> Response:
    if isinstance(error, Refused):
        found = error.answer()
        if error.status in _UNREAD:  # the rest of the body may never end
            return found._replace(headers=(*found.headers, (b"connection", b"close")))
        return found
    status, content = calls.error_out(error)
    return Response(status, orjson.dumps(content))


def _tables(body: bytes, asked: Apart) -> dict[str, Any]:
    """Return the tables of a bulk load, sent as one Arrow stream after another."""
    import pyarrow

    named = [name for key, value in asked.others if key == "tables" for name in value.split(",")]
    if not named or len(set(named)) != len(named) or not set(named) <= set(_TABLES):
        raise InvalidError(
            f"tables={','.join(named)!r} does not name the tables. Name each once: {', '.join(_TABLES)}."
        )
    source = pyarrow.BufferReader(body)
    found = {}
    for name in named:
        try:
            with pyarrow.ipc.open_stream(source) as stream:
                found[name] = stream.read_all()
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidError(f"the stream of {name} cannot be read: {error}") from None
    return found


def _news(calling: Calling, asked: Apart, since: TimeLike | None) -> tuple[bytes, TimeLike | None]:
    """Return the next durable transactions after `since` as events, and the tx after which to continue."""
    line = calling.line(asked)
    parts: list[bytes] = []
    encode = encoder(b"application/json")
    together: list[Any] = []
    for change in [*line._changes(since, _AT_ONCE), None]:
        if together and (change is None or change.tx != together[0].tx):
            since = together[0].tx
            parts.append(b"id: %b\ndata: %b\n\n" % (iso(instant(since)).encode(), encode(together)))
            together = []
        if change is not None:
            together.append(change)
    return b"".join(parts), since


def _last(error: Exception) -> bytes:
    return b"event: error\ndata: %b\n\n" % _refusal(error).body
