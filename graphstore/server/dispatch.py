"""Answers the calls of a served store: writes on the writer's thread, fast point reads at once, other reads on a few threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from graphstore.errors import EngineError, GraphStoreError, InvalidError
from graphstore.graph import engine
from graphstore.graph.workers import Allowance, resident
from graphstore.ledger.ledger import DoneElsewhere
from graphstore.remote import calls as contract
from graphstore.remote import codec, received
from graphstore.remote.calls import Call
from graphstore.server import call_files, resent, write_headers
from graphstore.server.call_files import CallFiles, Download
from graphstore.server.group_commit import Patience, Serving, WriteTurn
from graphstore.server.metrics import Metrics
from graphstore.server.requests import (
    Apart,
    ClientGone,
    Receive,
    Refused,
    Request,
    Response,
    until_left,
)
from graphstore.server.scoped_writes import EVERYDAY, PART_CALLS, ScopedWrites
from graphstore.server.shortening import shortened
from graphstore.store import counterfactual
from graphstore.values import file_access
from graphstore.values.doors import DOOR, SIGNER, through
from graphstore.values.findings import Recorded
from graphstore.values.period import BEGINNING, instant, iso
from graphstore.view.view import View

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore, Store
    from graphstore.view.view import Reader

EXACT = b"application/vnd.graphstore.exact+json"
ARROW = b"application/vnd.apache.arrow.stream"
EVENTS = b"application/cloudevents-batch+json"
KINDS = (b"application/json", EXACT, ARROW)
"""The media types of answers to calls. The first is the default."""
# Small verbs, each a transaction of its own that needs only its line of the journal. They share a sync.
GROUPED = EVERYDAY | {
    "define_kind",
    "define_point",
    "promote_kind",
    "set_trust",
    "set_languages",
    "snapshot",
}
# Answered from the index in microseconds if little is known of the id. Another thread would cost more than the answer.
AT_ONCE = frozenset({"node", "event", "history", "versions", "links_from", "backlinks_to", "supersedes"})
# Calls that may run for long, and can be stopped.
QUERIES = frozenset({"query", "query_tables", "recipe"})
ENDED = "the server that held the transaction has ended. Nothing of it was kept: do it again."
ELSEWHERE = "another server holds the transaction, and may end it yet. changes() tells within seconds whether it was kept: look before you do it again."
LARGE = 64 << 10  # bytes; a larger body is parsed on a reader's thread, so that others are answered meanwhile
_STEP = 0.005  # seconds between two checks whether a tx is known
_LAST_QUERIES = 2.0  # seconds that queries have to finish when the server stops
_READING = "read-"
_OUTCOMES, _OUTCOME_BYTES = 4096, 32 << 20


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits what one request may ask for, and how many may wait. Times are in seconds, sizes in bytes.

    `stranger`: the longest silence of a connection without a token; `strangers`: the most such connections of one address. `streams`, `exports`: the
    most per token; `export`: the longest duration of one. `stalled`: the longest time that its client reads nothing; `room`: the space it leaves on the
    disk. `behind`: the longest wait of a read for its client's writes elsewhere. `parts`: how many parts of the store, for tokens with scopes, stay open
    when nobody uses them. `cache`: the memory that graphs and tables for Cypher may keep.
    """

    body: int = 32 << 20
    load: int = 2 << 30
    head: int = 64 << 10
    connections: int = 2_000
    stranger: float = 10.0
    strangers: int = 256
    upload: float = 60.0
    query: float = 30.0
    read: float = 60.0
    write: float = 60.0
    readers: int = 4
    waiting_reads: int = 256
    waiting_writes: int = 10_000
    streams: int = 64
    exports: int = 2
    export: float = 3_600.0
    stalled: float = 30.0
    room: int = 64 << 20
    behind: float = 5.0
    parts: int = 128
    cache: int = 1 << 30


class Calling:
    """Answers calls on a store. It must be made within the event loop that its answers belong to."""

    def __init__(
        self,
        store: GraphStore,
        limits: ServerLimits,
        patience: Patience,
        metrics: Metrics,
        *,
        read_only: bool,
        files: CallFiles | None = None,
    ) -> None:
        self.store, self.limits, self.metrics, self.read_only = store, limits, metrics, read_only
        self._files = files or CallFiles()
        self._counterfactual: tuple[tuple[Any, ...], counterfactual.Counterfactual] | None = None
        self._loop = asyncio.get_running_loop()
        self._apart = ExitStack()
        self._workers = self._apart.enter_context(
            store._queries_apart(Allowance(seconds=limits.query, cache=limits.cache))
        )
        self.cut_off = False
        """True while writes of other processes cannot be read."""
        self.scoped: ScopedWrites | None = None
        """The writes of a token with scopes, if this object answers for one."""
        self.serving = Serving(store, self._answered, patience=patience)
        self._pool = ThreadPoolExecutor(limits.readers, thread_name_prefix="graphstore reader")
        self._reading = 0
        self._asked: list[WriteTurn] = []
        self._outcomes: OrderedDict[bytes, asyncio.Future[Response]] = OrderedDict()
        self._outcome_bytes = 0
        self.followers: list[Callable[[], None]] = []
        """Called at all news; parts of the store register themselves here."""
        self.written = asyncio.Event()
        """Set when something has become durable, and then replaced by a new event."""

    # ------------------------------------------------------------------ writing

    def _answered(self, turns: Sequence[WriteTurn]) -> None:
        self._loop.call_soon_threadsafe(self._resolve, turns)

    def _resolve(self, turns: Sequence[WriteTurn]) -> None:
        for turn in turns:
            if not turn.done.done():
                turn.done.set_result(None)
        self.news()

    def news(self) -> None:
        """Wake those who wait for a write."""
        if self.written is not None:
            self.written.set()
            self.written = asyncio.Event()
        for follow in self.followers:
            follow()

    def _hand_over(self) -> None:
        """Pass all writes of one loop iteration to the writer at once. They share a sync, and the writer does not wake for the first alone."""
        asked, self._asked = self._asked, []
        for turn in asked:
            self.serving.ask(turn)

    async def turn(self, work: Callable[[], Any], *, alone: bool, within: str | None = None) -> Any:
        """Run `work` on the writer's thread. Return its value once it is durable. Raise the errors of the work, or Refused if too many wait."""
        if self.serving.waiting >= self.limits.waiting_writes:
            raise Refused(503, "too many writes are waiting. Nothing was written: try again.", after=1)
        work = through(DOOR.get(), SIGNER.get())(work)
        turn = WriteTurn(work, alone=alone, done=self._loop.create_future())
        if within is not None:
            self.serving.ask_within(within, turn)
            return await _done(turn)
        if not self._asked:
            self._loop.call_soon(self._hand_over)
        self._asked.append(turn)
        return await _done(turn, self.limits.write)

    async def begin(
        self, asked: Mapping[str, Any], apart: Apart, around: Callable[..., Any] | None = None
    ) -> tuple[str, str]:
        """Begin a transaction that its client ends. Return its token and its instant. `around` replaces the usual way to begin it."""
        unknown = asked.keys() - {"at", "author", "reason", "read_only"}
        if unknown or asked.get("read_only"):
            raise InvalidError.choice(
                "argument", min(unknown or {"read_only"}), ("at", "author", "reason", "read_only")
            )
        asked = {name: value for name, value in asked.items() if name != "read_only"}
        if self.scoped is not None and around is None:
            if asked.get("at") is not None:  # a refusal would reveal when others wrote
                raise Refused(403, "at= is of the whole store. It wants a token without scopes.")
            return await self.scoped.main.begin(asked, apart, self.scoped.transaction)
        asking = DOOR.get(), SIGNER.get()

        @contextmanager
        def opening() -> Iterator[write_headers.WriteNote]:
            written, how = write_headers.WriteNote(), {"author": apart.author, **asked}
            line = self.line(apart)
            noting = write_headers.noting_write(line, written) if around is None else nullcontext()
            block = line.transaction(**how) if around is None else around(written, **how)
            with through(*asking), noting, block:
                yield written

        self._hand_over()
        turn = self.serving.begin(
            opening,
            lambda token: (token, iso(self.line(apart).coordinate()[1])),
            done=self._loop.create_future(),
        )
        return await _done(turn, self.limits.write)  # type: ignore[no-any-return]

    def pinned(self, apart: Apart) -> tuple[str, str]:
        """Return the token and tx of a read-only transaction. The token is its coordinate, so it holds no lock and needs no end."""
        at = self.line(apart).as_of().at
        valid, tx = iso(instant(at.valid)), iso(instant(at.tx))
        return f"{_READING}{valid},{tx}", tx

    async def end(
        self, token: str, *, commit: bool, request: Request | None = None
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Commit or abort a transaction. Return headers that state what it did. Raise the errors of the commit, or ConflictError if it is over."""
        if self.scoped is not None:
            return await self.scoped.main.end(token, commit=commit, request=request)
        id = None if request is None else request.id
        if commit and request is not None and request.again and not self.serving.knows(token):
            if await self.aside(partial(resent.kept_of, self.store, request.id)):
                return ()
            if await self.aside(partial(resent.is_held_elsewhere, self.store)):
                raise EngineError(ELSEWHERE, outcome="unknown")
            if await self.aside(partial(resent.kept_of, self.store, request.id)):  # committed in the meantime
                return ()
            raise EngineError(ENDED, outcome="not kept")
        turn = WriteTurn(done=self._loop.create_future(), ends="commit" if commit else "abort", request=id)
        self.serving.ask_within(token, turn)
        written = await _done(turn)
        return () if written is None else written.headers

    def _run(self, call: Call, reader: Reader, args: dict[str, Any], line: Store) -> Any:
        """Run a call, limited to files that it may name. Return its value, or a Download if it wrote a file for the caller."""
        if call.files:
            return call_files.run(
                self._files, lambda given: contract.run(call, reader, given, line), call, args
            )
        if "." not in call.name:  # a room may read files that the store's records name
            return contract.run(call, reader, args, line)
        with file_access.held_to(*self._files.folders):
            return contract.run(call, reader, args, line)

    async def write(
        self, call: Call, args: dict[str, Any], apart: Apart, kind: bytes, request: Request | None = None
    ) -> Response:
        """Run a call that writes."""
        self.refuse_read_only()
        is_of_part = self.scoped is not None and call.name in PART_CALLS
        if self.scoped is not None and not is_of_part:
            args = self.scoped.arguments(call.name, args)
        author, encode = apart.author, encoder(kind)
        _refuse_trunk(call, apart)
        written = write_headers.WriteNote()

        def work(store: GraphStore) -> bytes:
            line = store if apart.branch is None else store.on(apart.branch)
            with write_headers.noting_write(line, written):
                if author is None or author == line._author:
                    return encode(self._run(call, line, args, line))
                with line._writer:
                    before, line._author = line._author, author
                    try:
                        return encode(self._run(call, line, args, line))
                    finally:
                        line._author = before

        alone = call.name not in GROUPED or apart.branch is not None
        if self.scoped is not None:
            write = (
                self.scoped.write_part(work)
                if is_of_part
                else self.scoped.write(work, apart, request, written)
            )
            body = await write
        else:
            body = await self._once(request, work, alone=alone, within=apart.transaction)
        readers = (
            await self.aside(partial(write_headers.readers_header, self.line(apart), written.tx))
            if written.tx
            else ()
        )
        return Response(200, body, (*self.told(), *written.headers, *readers), kind)

    def told(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header with the tx of the last write. A client sends it to other servers, which then wait until they know that write."""
        written = self.store._written if self.scoped is None else self.scoped.written()
        return ((b"graphstore-written", _iso(written)),) if written >= BEGINNING else ()

    async def known(self, tx: bytes, *, of_all: bool = True) -> None:
        """Wait until a tx is known here. Raise Refused (503) if that takes too long, InvalidError if `tx` is not a time. `of_all`: the refusal may
        state the last known tx."""
        wanted, store = _instant_of(tx), self.store
        until = monotonic() + self.limits.behind
        while store._lags(wanted):
            if monotonic() > until:
                last = iso(store.last_tx) if store.last_tx >= BEGINNING else "nothing"
                known = f": it knows {last}" if of_all else ""
                raise Refused(
                    503, f"this server has not followed to tx {tx.decode()} yet{known}. Ask another, or again.", after=1
                )  # fmt: skip
            await asyncio.sleep(_STEP)

    def refuse_read_only(self) -> None:
        """Raise Refused (403) if nothing may be written."""
        if self.read_only and self.scoped is None:
            raise Refused(403, "the server is read only.")

    async def _once(
        self, request: Request | None, work: Callable[[GraphStore], bytes], *, alone: bool, within: str | None
    ) -> bytes:
        """Run `work` on the writer's thread. If an earlier server executed this request, return the answer it would have given."""
        store = self.store
        if request is None or within is not None:
            return await self.turn(partial(work, store), alone=alone, within=within)  # type: ignore[no-any-return]
        answered = partial(resent.answered_again, store, request.id, work)
        since = store._done_elsewhere()
        if request.again and await self.aside(partial(resent.kept_of, store, request.id)):
            return await self.aside(answered)  # type: ignore[no-any-return]

        def asked() -> bytes:
            with store._asked_by(request.id, since):
                return work(store)

        try:
            return await self.turn(asked, alone=alone)  # type: ignore[no-any-return]
        except DoneElsewhere:
            return await self.aside(answered)  # type: ignore[no-any-return]

    async def batch(
        self,
        asked: Mapping[str, Any],
        apart: Apart,
        *,
        ids: bool,
        kind: bytes,
        request: Request | None = None,
    ) -> Response:
        """Run many calls in one transaction, all or nothing. Return the list of their answers, or only ids. `asked["calls"]` comes from `prepared`."""
        self.refuse_read_only()
        prepared = asked["calls"]
        for _, call, _ in prepared:
            _refuse_trunk(call, apart)
        if self.scoped is not None:
            prepared = [(at, call, self.scoped.arguments(call.name, args)) for at, call, args in prepared]
        author, reason = asked.get("author") or apart.author, asked.get("reason")
        encode, written = encoder(kind), write_headers.WriteNote()

        def work(store: GraphStore) -> bytes:
            line = store if apart.branch is None else store.on(apart.branch)
            block = (
                line.transaction(author=author, reason=reason)
                if apart.transaction is None and self.scoped is None
                else line.verb()
            )
            with engine.time_limit(self.limits.query), write_headers.noting_write(line, written), block:
                values = _each(self._run, line, prepared)
                if ids:
                    return encode(list(map(_id_of, values)))  # this holds no value longer than necessary
                return b"[" + b",".join([encode(value) for value in values]) + b"]"

        if self.scoped is not None:
            body = await self.scoped.write(work, apart, request, written, author=author, reason=reason)
        else:
            alone = apart.branch is not None
            body = await self._once(request, work, alone=alone, within=apart.transaction)
        return Response(200, body, (*self.told(), *written.headers), kind)

    # ------------------------------------------------------------------ reading

    def line(self, apart: Apart) -> Store:
        """Return the requested line of belief: the trunk or a branch."""
        return self.store if apart.branch is None else self.store.on(apart.branch)

    def _reader(self, call: Call, apart: Apart) -> Reader:
        line = self.line(apart)
        _refuse_trunk(call, apart)
        if apart.without is not None:
            return self._without(call, line, apart)
        if apart.valid is None and apart.tx is None and apart.as_of is None:
            return line
        if call.on != "view":
            raise InvalidError(
                f"{call.name} is asked of the store, not at a coordinate. Leave valid, tx and as_of out."
            )
        return line.as_of(apart.as_of, valid=apart.valid, tx=apart.tx)

    def _without(self, call: Call, line: Store, apart: Apart) -> Reader:
        """Return the requested counterfactual view. The last one is kept for further questions until something is written."""
        if call.on != "view" or apart.as_of is not None:
            raise InvalidError(
                f"{call.name} does not take `without` here: leave it out. Beside `without` give valid and tx, and not as_of."
            )
        assert apart.without is not None
        wanted = apart.branch, apart.without, line.last_tx
        if self._counterfactual is None or self._counterfactual[0] != wanted:
            made = line.without(**counterfactual.arguments(apart.without))
            self._counterfactual = wanted, made
        return self._counterfactual[1].as_of(valid=apart.valid, tx=apart.tx)

    def _read(self, call: Call, args: dict[str, Any], apart: Apart, kind: bytes) -> Response:
        line = self.line(apart)
        reader = self._reader(call, apart)
        valid, tx = reader.coordinate()
        if reader is line and apart.transaction is None:
            if _is_of_any_view(line, call.name):
                reader = line.pinned(valid, tx)  # fixes this coordinate, whatever is written meanwhile
            # The next write may still get the present instant. So the answer names an instant that no write can get any more.
            tx = min(tx, line.last_tx)
        value = self._run(call, reader, args, line)
        if call.name == "stats" and self.scoped is not None:
            value = {**value, "path": None}
        if isinstance(value, Download):
            return Response(
                200, value.body, (*_coordinate(valid, tx), (b"graphstore-answer", value.answer)), value.kind
            )
        body = encoder(kind)(value)
        if (apart.fields, apart.brief, apart.part) != (None, None, None):
            body = shortened(body, kind, apart)
        return Response(200, body, _coordinate(valid, tx), kind)

    async def read(
        self,
        call: Call,
        args: dict[str, Any],
        apart: Apart,
        kind: bytes,
        receive: Receive | None = None,
    ) -> Response:
        """Run a call that reads, and state the coordinate of the answer. `receive` reports that the client of a query has disconnected."""
        pinned = pinned_at(apart.transaction)
        if pinned is not None:
            if apart.tx is not None or apart.as_of is not None:
                raise InvalidError("the transaction has its tx. Leave tx and as_of out.")
            apart = apart._replace(transaction=None, valid=apart.valid or pinned[0], tx=pinned[1])
        seconds = self.limits.query if apart.seconds is None else _seconds(apart.seconds, self.limits.query)
        answer = partial(self._read, call, args, apart, kind)

        def work() -> Response:
            with engine.time_limit(seconds):
                return answer()

        if apart.transaction is not None:
            turn = self.turn if self.scoped is None else self.scoped.main.turn
            within: Response = await turn(work, alone=True, within=apart.transaction)
            return within
        now = apart.tx is None and apart.as_of is None
        if call.name in AT_ONCE and apart.branch is None and self.store._is_brief(args.get("id"), now=now):
            return answer()
        if receive is not None and call.name in QUERIES:
            return await self._while_wanted(work, receive)
        return await self.aside(work)  # type: ignore[no-any-return]

    async def _while_wanted(self, work: Callable[[], Response], receive: Receive) -> Response:
        """Return the answer to a query, and stop the query if its client disconnects. Raise ClientGone then."""
        stopping = threading.Event()

        def stoppable() -> Response:
            if stopping.is_set():
                raise ClientGone  # the client left while the query waited for a thread
            with engine.stopped_by(stopping):
                return work()

        async def leaving() -> None:
            await until_left(receive)
            stopping.set()

        left = asyncio.ensure_future(leaving())
        try:
            return await self.aside(stoppable)  # type: ignore[no-any-return]
        except GraphStoreError:
            if stopping.is_set():
                raise ClientGone from None
            raise
        finally:
            left.cancel()

    async def parsed(self, body: bytes, work: Callable[[bytes], Any]) -> Any:
        """Parse a body, on a reader's thread if it is large. Raise the errors of the parsing, or Refused if too many wait."""
        return work(body) if len(body) <= LARGE else await self.aside(partial(work, body))

    async def aside(self, work: Callable[[], Any]) -> Any:
        """Run a function on a reader's thread and return its value. Raise Refused if too many wait, or if it takes too long."""
        if self._reading >= self.limits.waiting_reads:
            raise Refused(503, "too many reads are waiting. Try again.", after=1)
        self._reading += 1
        pending = self._loop.run_in_executor(self._pool, work)
        pending.add_done_callback(self._done_reading)
        done, _ = await asyncio.wait((pending,), timeout=self.limits.read)
        if not done:
            pending.cancel()
            raise Refused(504, f"the answer took longer than {self.limits.read:g} s.", after=10)
        return pending.result()

    def _done_reading(self, pending: asyncio.Future[Any]) -> None:
        self._reading -= 1
        if not pending.cancelled():
            pending.exception()

    @property
    def reading(self) -> int:
        """Return the number of reads that run or wait for a thread."""
        return self._reading

    # ------------------------------------------------------------------ sent again

    async def once(self, asked: Request | None, doing: Callable[[], Any]) -> Response:
        """Run a request once, and return the same outcome to every repetition of it."""
        if asked is None:
            return await doing()  # type: ignore[no-any-return]
        request = asked.key
        known = self._outcomes.get(request)
        if known is not None:
            return await asyncio.shield(known)
        outcome: asyncio.Future[Response] = self._loop.create_future()
        self._outcomes[request] = outcome
        try:
            found: Response = await doing()
        except BaseException as error:
            # If it failed, another try may run it again. If it may have been executed, no try may.
            if not (isinstance(error, EngineError) and error.outcome in ("kept", "unknown")):
                self._outcomes.pop(request, None)
            if not outcome.done():
                outcome.set_exception(error if isinstance(error, Exception) else _stopped())
                outcome.exception()
            raise
        outcome.set_result(found)
        self._outcome_bytes += len(found.body)
        while len(self._outcomes) > _OUTCOMES or self._outcome_bytes > _OUTCOME_BYTES:
            first = next(iter(self._outcomes))
            gone = self._outcomes[first]
            if not gone.done() or first == request:
                break
            del self._outcomes[first]
            self._outcome_bytes -= 0 if gone.exception() else len(gone.result().body)
        return found

    # ------------------------------------------------------------------ the end

    def warm_queries(self) -> None:
        """Start a process for Cypher before the first query."""
        if self._workers is not None:
            self._workers.warm()

    def memory(self) -> dict[str, int]:
        """Return sizes in bytes: kept and allowed memory of graphs and tables for Cypher, memory of their processes and of this one."""
        workers = self._workers
        return {
            "cache_bytes": 0 if workers is None else workers.kept(),
            "cache_allowed_bytes": self.limits.cache,
            "workers_memory_bytes": 0 if workers is None else workers.memory(),
            "server_memory_bytes": resident(os.getpid()),
        }

    def end_queries(self) -> None:
        """Give running queries a little time, then stop them."""
        if self._workers is not None:
            ending = threading.Timer(_LAST_QUERIES, self._workers.stop)
            ending.daemon = True
            ending.start()

    def stop(self, seconds: float) -> None:
        """Stop the writer, its open transaction and the readers. Block for at most `seconds`."""
        if self._workers is not None:
            self._workers.stop()
        self._hand_over()
        self.serving.stop(seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._apart.close()


async def _done(turn: WriteTurn, seconds: float | None = None) -> Any:
    """Return the value of a turn. Raise its error, or Refused (504) if it has not begun within `seconds`."""
    done, _ = await asyncio.wait((turn.done,), timeout=seconds)
    if not done:
        if turn.claim():
            raise Refused(504, "others were writing for too long. Nothing was written: try again.", after=5)
        await turn.done
    if turn.error is not None:
        raise turn.error
    return turn.value


def pinned_at(token: str | None) -> tuple[str, str] | None:
    """Return the coordinate of a read-only transaction; None for a transaction that the writer holds."""
    if token is None or not token.startswith(_READING):
        return None
    valid, _, tx = token.removeprefix(_READING).partition(",")
    return valid, tx


def _refuse_trunk(call: Call, apart: Apart) -> None:
    if call.on == "branch" and apart.branch is None:
        raise InvalidError(f"{call.name} is asked of a branch. Name one: branch=.")


def _coordinate(valid: int, tx: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"graphstore-valid", _iso(valid)), (b"graphstore-tx", _iso(tx)))


def _is_of_any_view(line: Store, name: str) -> bool:
    """Return True for a read that the store inherits from View unchanged."""
    own = getattr(type(line), name, None)
    return own is not None and own is getattr(View, name, None)


@lru_cache(maxsize=1024)
def _instant_of(tx: bytes) -> int:
    return instant(tx.decode("latin-1"), "Graphstore-At-Least")


def _iso(at: int) -> bytes:
    return iso(at).encode()


def encoder(kind: bytes) -> Callable[[Any], bytes]:
    """Return the function that encodes a value as a media type."""
    return _ENCODERS[kind]


def _arrow(value: Any) -> bytes:
    import pyarrow

    table = value.to_arrow() if hasattr(value, "to_arrow") else value
    if not isinstance(table, pyarrow.Table):
        raise Refused(406, "this answer is no table. Ask for it as JSON.")
    return codec.arrow_out(table)


_ENCODERS: dict[bytes, Callable[[Any], bytes]] = {
    b"application/json": contract.encode,
    EVENTS: contract.encode,
    EXACT: partial(contract.encode, exact=True),
    ARROW: _arrow,
}


def _seconds(text: str, most: float) -> float:
    """Return the seconds that a query may run: the client's wish, up to the server's limit. Raise InvalidError if it is not a number above 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not seconds > 0:
        raise InvalidError(f"{text!r} is no time. Give seconds= as a number above 0.")
    return min(seconds, most)


def _stopped() -> Refused:
    return Refused(
        503, "the server was stopped before it was known how this ended. Look whether it was done."
    )


Prepared = list[tuple[int, Call, dict[str, Any]]]


def prepared(calls: Any) -> Prepared:
    """Return the calls of a batch, numbered, with their arguments. Raise InvalidError for the first that is not a call."""
    if not isinstance(calls, list):
        raise InvalidError('calls is no list. Give [["add_node", {"kind": …}], …].')
    return [_prepared(number, each) for number, each in enumerate(calls)]


def _prepared(number: int, each: Any) -> tuple[int, Call, dict[str, Any]]:
    if not (
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], dict)
    ):
        raise InvalidError(f'call {number} is no call. Give ["add_node", {{"kind": …}}].')
    name, args = each
    call = contract.CALLS.get(name)
    if call is None:
        raise InvalidError(f"call {number}: there is no call {name!r}.")
    try:
        return number, call, received.prepare(call, args)
    except GraphStoreError as error:
        raise type(error)(f"call {number}, {name}: {error}") from None


def _each(run: Callable[..., Any], line: Store, prepared: Prepared) -> Iterator[Any]:
    for number, call, args in prepared:
        try:
            value = run(call, line, args, line)
        except GraphStoreError as error:
            raise type(error)(f"call {number}, {call.name}: {error} Nothing of the batch was kept.") from None
        yield value
        del value  # a value that nothing references at the next call is never built


def _id_of(value: Any) -> Any:
    """Return the id of a verb's value, a list of ids, or None if the value has no id."""
    kind = type(value)  # isinstance() would read the value's class, which builds the value
    if kind is list:
        return [_id_of(each) for each in value]
    if issubclass(kind, Recorded):
        return value.event.id
    return getattr(value, "id", None)
