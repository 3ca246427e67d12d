"""Runs a server as a process: opens the store, announces its address, runs ticks, and stops without losing anything."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import graphstore
from graphstore.errors import EngineError, InvalidError
from graphstore.ledger import server_file, tokens
from graphstore.remote.calls import CALLS
from graphstore.server import logs as log
from graphstore.server.agents import Agents
from graphstore.server.dispatch import Calling
from graphstore.server.http_app import Patience, ServerLimits, app
from graphstore.server.requests import LOOPBACK
from graphstore.store.store import GraphStore
from graphstore.values.doors import DOOR

if TYPE_CHECKING:
    from graphstore.context.scheduler import Ticking
    from graphstore.server.issuer import Issuer

_log = logging.getLogger("graphstore")
PORT = 7464
_COLLECT = (20_000, 50, 100)
_BACKLOG = 1024
_LAST = 10  # seconds that open requests have to finish
_KEEP_ALIVE = 300  # seconds that a connection may be silent: clients keep theirs open
_STUCK = 2.0  # seconds between two tries of a reader that cannot follow
_SETTLED = 3.0  # seconds in which the first clients are answered
_FOLLOW = 0.25  # seconds between two reads of the journal by a reader


@dataclass(frozen=True, slots=True)
class Listening:
    """Holds the settings of a server: its address, the admitted hosts and origins, the folder of calls' files, the recording of reads, and the
    issuer of access tokens with the public address that they are for and the claim that names their scopes."""

    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    limits: ServerLimits = field(default_factory=ServerLimits)
    patience: Patience = field(default_factory=Patience)
    files: Path | None = None
    record_reads: bool = False
    reads_days: float | None = None
    issuer: str | None = None
    resource: str | None = None
    scope_claim: str | None = None

    def names(self) -> tuple[str, ...]:
        """Return the host names under which clients may reach it."""
        public = urlsplit(self.resource or "").hostname
        return (*self.hosts, self.host, *([public] if public else []))

    def trusted(self, url: str, read_only: bool) -> Issuer | None:
        """Return the trusted issuer of access tokens for a server at `url`; None without one. Raise InvalidError if an option is invalid, or a package is missing."""
        if self.issuer is None:
            if self.resource or self.scope_claim:
                raise InvalidError(
                    "--resource and --scope-claim are for the tokens of an issuer. Name it with --issuer URL."
                )
            return None
        if self.resource is None and not is_loopback(self.host):
            raise InvalidError(
                f"tokens are issued for an address, and {self.host} is not the one that clients use. Name that with --resource URL."
            )
        try:
            from graphstore.server.issuer import Issuer
        except ImportError as error:
            raise InvalidError(
                f"an issuer needs {error.name}. Install it: pip install 'graphstore[oauth]'"
            ) from None
        return Issuer(self.issuer, self.resource or url, scope_claim=self.scope_claim, read_only=read_only)

    def admitting(self, url: str, read_only: bool = False) -> dict[str, Any]:
        """Return the settings as arguments of `app` for a server at `url`."""
        return {
            "issuer": self.trusted(url, read_only),
            "read_only": read_only,
            "limits": self.limits,
            "patience": self.patience,
            "hosts": self.names(),
            "origins": self.origins,
            "files": self.files,
            "record_reads": self.record_reads,
            "reads_days": self.reads_days,
        }


def serve(
    folder: Path,
    *,
    listening: Listening,
    read_only: bool = False,
    prepared: Callable[[GraphStore], Ticking | None] | None = None,
    every: float = 10.0,
    report: Callable[[str], None] = print,
    driver: str = "kuzu",
    lines: tuple[str, str] | None = None,
    idle: float | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the store of a folder until a signal stops the server.

    `prepared` gets the opened store and returns the periodic tasks, which are checked `every` seconds. `lines`: level and form of log lines on standard
    error; None: leave logging as it is. `idle`: stop after this many seconds without a client. `ready`: called with the URL in its own thread once
    requests are answered. Raise LockedError if another server has the store, InvalidError for a store in memory, EngineError if it cannot listen.
    """
    server_file.refuse_memory(folder)
    if lines is not None:
        log.set_up(*lines)
    if not read_only:
        server_file.refuse_served(folder)
    before, named = None if read_only else server_file.left(folder), str(folder)
    with contextlib.ExitStack() as stack:
        _make_room(listening.limits.connections)
        sockets = stack.enter_context(listen(listening))
        url = url_of(listening.host, sockets.getsockname()[1])
        settings = listening.admitting(url, read_only)
        store = _opened(stack, folder, read_only, driver)
        _report_notices(store, report)
        _report_takeover(folder, before)
        ticking = _ticking(stack, store, prepared)

        @contextlib.asynccontextmanager
        async def beside(calling: Calling) -> AsyncIterator[None]:
            if not read_only:
                server_file.announce(folder, url)
            _report_start(named, folder, url, listening, report)
            log.say(logging.INFO, "start", store=named, url=url, pid=os.getpid(), read_only=read_only)
            made.agents = Agents(store, url=url, hosts=listening.names(), read_only=read_only)
            calling.warm_queries()
            due = None if ticking is None or read_only else tick(calling, ticking, every)
            others = follow_writers(calling) if read_only or store._place.shared else None
            end = None if idle is None else server.end_when_alone(idle)
            reached = None if ready is None else asyncio.to_thread(ready, url)
            issuer = _report_issuer(made.issuer, report)
            async with together([made.agents.run(), due, others, end, reached, _import_calls(), issuer]):
                yield

        made = app(store, tokens=tokens.kept(folder), started=beside, **settings)
        gc.freeze()  # opened objects live as long as the server: the collector need not scan them again
        gc.set_threshold(*_COLLECT)
        server = _Server(made, folder)
        if not read_only:
            server_file.refuse_served(folder)  # another server may have started at the same moment
        server.run([sockets])
        log.say(logging.INFO, "stop", store=named, url=url, pid=os.getpid())
        _report_notices(store, report)


def _opened(stack: contextlib.ExitStack, folder: Path, read_only: bool, driver: Any) -> GraphStore:
    """Open the store, and mark its folder as about to be served. Raise LockedError if another server was faster."""
    store = stack.enter_context(graphstore.open(folder, read_only=read_only, driver=driver))
    if not read_only:
        server_file.refuse_served(folder)
        stack.callback(server_file.withdraw, folder)
        server_file.announce(folder, None)
    return store


def _ticking(
    stack: contextlib.ExitStack, store: GraphStore, prepared: Callable[[GraphStore], Ticking | None] | None
) -> Ticking | None:
    """Return the periodic tasks. What they hold is written before the store is closed."""
    ticking = prepared(store) if prepared is not None else None
    if ticking is not None:
        stack.callback(ticking.end)
    return ticking


async def _import_calls() -> None:
    """Import what the calls need, once the first clients are answered."""
    await asyncio.sleep(_SETTLED)
    await asyncio.to_thread(len, CALLS)


def _report_start(
    named: str, folder: Path, url: str, listening: Listening, report: Callable[[str], None]
) -> None:
    report(f"serving {named} on {url} (token in {folder / tokens.TOKEN})")
    if listening.host != "127.0.0.1":
        report(_reached(listening.host, int(url.rpartition(":")[2]), listening.hosts))


async def _report_issuer(issuer: Issuer | None, report: Callable[[str], None]) -> None:
    """Report the trusted issuer, and why its keys cannot be read."""
    if issuer is None:
        return
    report(f"access tokens of {issuer.url} for {issuer.resource} are admitted")
    if (failure := await issuer.unavailable()) is not None:
        _log.warning("%s", failure)
        report(f"note: {failure}. Its tokens are refused until it answers")


def _report_takeover(folder: Path, before: dict[str, Any] | None) -> None:
    if before is not None:
        log.say(logging.WARNING, "takeover", store=str(folder), pid=before["pid"], url=before["url"])


def _report_notices(store: GraphStore, report: Callable[[str], None]) -> None:
    while store.notices:
        report(f"note: {store.notices.pop(0)}")


class _Server(uvicorn.Server):
    """A uvicorn server that informs the app of the signal to stop."""

    def __init__(self, made: Any, folder: Path) -> None:
        self._served, self._folder = made, folder
        super().__init__(config(made))

    async def end_when_alone(self, idle: float) -> None:
        """Stop the server after `idle` seconds without a connection."""
        since = time.monotonic()
        while not self.should_exit:
            await asyncio.sleep(min(1.0, idle / 4))
            if self._served.connections:
                since = time.monotonic()
            elif time.monotonic() - since >= idle:
                self.should_exit = True
                self._served.end()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Finish open requests at the first signal. Exit at once at the second; acknowledged writes are durable."""
        if self.should_exit:
            server_file.withdraw(self._folder)
            os._exit(128 + sig)
        self.should_exit = True
        self._served.end()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._until_stopped(sockets))

    async def _until_stopped(self, sockets: list[socket.socket] | None) -> None:
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(sig, self.handle_exit, sig, None)
            except (NotImplementedError, RuntimeError):  # another platform, or not the main thread
                with contextlib.suppress(ValueError):
                    signal.signal(sig, self.handle_exit)
        await self._serve(sockets)


def config(made: Any) -> uvicorn.Config:
    """Return the configuration of uvicorn for an app that `http_app.app` made."""
    return uvicorn.Config(
        made,
        http=_protocol(made),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,  # uvicorn's lines are written like those of the server
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_LAST,
        backlog=_BACKLOG,
    )


def _protocol(served: Any) -> Any:
    """Return a uvicorn protocol that tells the app of new and closed connections, and limits time and size of a request's head."""
    heads = served.heads

    class Informing(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if served.come(self.client):
                heads.come(self.client, self.transport)
            else:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            heads.gone(self.client, self.transport)
            served.gone(self.client)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            heads.grow(self.transport, len(data))

        def on_message_begin(self) -> None:
            heads.begin(self.transport, self.client)
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            heads.end(self.transport)
            super().on_headers_complete()

    return Informing


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def listen(listening: Listening) -> socket.socket:
    """Return the listening socket of an address. Raise EngineError if it is not available."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":  # Windows lets two processes listen on one port with it
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listening.host, listening.port))
        made.listen(_BACKLOG)  # connections that come before it answers wait
    except (OSError, OverflowError) as error:
        made.close()
        raise EngineError(
            f"cannot listen on {listening.host} port {listening.port}: {error}. Choose another with --port, or --port 0 for any that is free."
        ) from error
    made.set_inheritable(True)
    return made


def _make_room(connections: int) -> None:
    """Raise the limit of open files to fit all connections and the store's own files, as far as the system permits."""
    if sys.platform == "win32":  # Windows has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def url_of(host: str, port: int) -> str:
    """Return the address of a server for clients on its machine."""
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"  # clients on this machine; others know its name
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reached(host: str, port: int, names: Iterable[str]) -> str:
    """Describe the address of a server, and the names by which others reach it."""
    where = "every address of this machine" if host in ("0.0.0.0", "::") else "this machine alone"
    if not is_loopback(host) and host not in ("0.0.0.0", "::"):
        where = "the network of that address"
    shown = f"[{host}]" if ":" in host else host
    own = () if host in ("0.0.0.0", "::") else (host,)
    asked = ", ".join(dict.fromkeys(("localhost", *names, *own)))
    return f"listening on {shown}:{port}: {where}, asked for as {asked}"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    return host in LOOPBACK or host.startswith("127.")


@contextlib.asynccontextmanager
async def together(working: Iterable[Coroutine[Any, Any, None] | None]) -> AsyncIterator[None]:
    """Run coroutines while the block runs."""
    tasks = [asyncio.ensure_future(each) for each in working if each is not None]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def tick(calling: Calling, ticking: Ticking, every: float) -> None:
    """Run due tasks on the writer's thread, checking `every` seconds. A failure is logged and counted; the task runs again when due."""
    DOOR.set("server")
    while True:
        for name in ticking.names:
            try:
                if await _ticked(calling, ticking, name):
                    calling.metrics.count("ticks", name)
            except Exception as error:
                calling.metrics.count("tick_errors", name)
                _log.error("tick %s failed: %s", name, error)
        await asyncio.sleep(every)


async def _ticked(calling: Calling, ticking: Ticking, name: str) -> bool:
    """Run a task if it is due. Its slow part, which writes nothing, runs on another thread, so that others write meanwhile."""
    if not ticking.begin(name):
        return False
    rest = await asyncio.to_thread(ticking.ask, name)
    await calling.turn(partial(ticking.finish, name, rest), alone=True)
    return True


async def follow_writers(calling: Calling) -> None:
    """Follow the journal of other writing processes. While that fails, /health and every answer of a reader of a folder report it."""
    told, known = None, calling.store.last_tx
    while True:
        try:
            await calling.aside(calling.store.refresh)
            if calling.store.last_tx != known:
                calling.news()
            told, known = None, calling.store.last_tx
            calling.cut_off = False
        except Exception as error:
            calling.cut_off = True
            if str(error) != told:
                _log.error("the journal could not be followed: %s", error)
            told = str(error)
        await asyncio.sleep(_FOLLOW if told is None else _STUCK)
