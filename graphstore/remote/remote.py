"""A store in another process, reached over HTTP: the same reads and verbs, each sent to the server that holds it.

Nothing is cached here: every answer is the server's. A verb is called by its name (see `calls.py`). Arguments that cannot be sent are refused here.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import os
import weakref
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import update_wrapper, wraps
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self, TypeVar
from urllib.parse import urlencode

import orjson

from graphstore.errors import EngineError, GraphStoreError, InvalidError, NotFoundError
from graphstore.graph.engine import seconds_limit
from graphstore.ledger import backup as dumps
from graphstore.ledger.files import new_file, new_folder
from graphstore.remote import arguments, codec
from graphstore.remote import calls as contract
from graphstore.remote.calls import CALLS, Call
from graphstore.remote.http_client import Reply, ServerConnection, in_turn
from graphstore.store import other_stores, registry
from graphstore.store.store import Branch, GraphStore, Store
from graphstore.values.findings import BranchInfo, Counterfact, Merge, MergeConflict, ViewDiff
from graphstore.values.inputs import text_of
from graphstore.values.models import Coordinate, Snapshot
from graphstore.values.period import OPEN, Instant, TimeLike, instant, iso, moment
from graphstore.view.view import Reader, View

F = TypeVar("F", bound=Callable[..., Any])
READ_ONLY = "the store is open read only. Open it with read_only=False to write."
_ASK = "Ask nodes, events, inspect or query: the server answers them."
TOKEN = "GRAPHSTORE_TOKEN"
"""The environment variable for the token."""


class NotHere(InvalidError, AttributeError):
    """An attribute inside the store was read on a remote store."""


class _OpenTransaction(NamedTuple):
    """A transaction that a thread has open: the server's token for it, and its branch."""

    token: str
    branch: str | None

    def __str__(self) -> str:
        return "the trunk" if self.branch is None else f"branch {self.branch!r}"


class Remote(registry.Elsewhere):
    """The common part of remote stores and views: the connection, and the coordinate of their reads."""

    _line: ServerConnection
    _branch: str | None
    _author: str | None
    _reading: bool

    @property
    def read_only(self) -> bool:
        """True if this end refuses to write."""
        return self._reading

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not name.startswith("__"):
            raise NotHere(
                f"{name} is inside the store, and this one is at {self._line.url}: what is public reaches it, the rest needs graphstore.open(FILE) where it lies."
                if name != "_line"
                else "this store was never opened. Use graphstore.open(URL)."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: it is a connection. Open the URL again where it is needed."
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    # ------------------------------------------------------------------ asking

    def _at(self) -> dict[str, str]:
        """Return the coordinate to read at, without the branch."""
        return {}

    def _names(self) -> list[Snapshot]:
        store = RemoteStore(self._line)
        store._branch = self._branch
        return store.snapshots()

    def _usable(self) -> None:
        if self._line.closed:
            raise InvalidError(self._line.closed)

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        call = CALLS[name]
        self._usable()
        if call.scope == "write" and self.read_only:
            raise InvalidError(READ_ONLY)
        given = arguments.arguments(call, args, kwargs)
        target = "/" + name.replace(".", "/")
        if call.scope == "read" and (names := call.files & given.keys()):
            return self._download(call, target, given, names)
        try:
            reply = self._post(target, arguments.body(call, given), write=call.scope == "write")
        except InvalidError as error:
            raise InvalidError(arguments.not_sent(call, given, str(error))) from None
        value = contract.decode(call, reply.body)
        progress = kwargs.get("progress")
        if callable(progress):
            progress(1, 1)
        return value

    def _download(self, call: Call, target: str, given: dict[str, Any], names: frozenset[str]) -> Any:
        """Write a file or folder on this side from the server's answer."""
        (place,) = (Path(given.pop(name)) for name in names)
        if place.suffix in (".pb", ".binpb", ".bin") and call.name == "otlp.export_otlp":
            traces = self._ask("otlp.traces_data", (), {})
            with new_file(place) as sink:
                sink.write(traces.SerializeToString(deterministic=True))
            return sum(len(scope.spans) for each in traces.resource_spans for scope in each.scope_spans)
        reply = self._post(target, arguments.body(call, given), write=False)
        if reply.headers.get(b"content-type") == b"application/zip":
            with new_folder(place) as fresh, zipfile.ZipFile(io.BytesIO(reply.body)) as packed:
                packed.extractall(fresh)
        else:
            with new_file(place) as sink:
                sink.write(reply.body)
        return contract.decode(call, reply.headers[b"graphstore-answer"])

    def _post(
        self,
        target: str,
        body: bytes,
        *,
        write: bool,
        kind: str = "application/json",
        **more: str,
    ) -> Reply:
        """Send a request and return the answer. Raise the error that the server answers with."""
        query = {} if write else self._at()
        if self._branch is not None:
            query["branch"] = self._branch
        if write and self._author is not None:
            query["author"] = self._author
        if not write and (seconds := seconds_limit()) is not None:
            query["seconds"] = f"{seconds:g}"
        held = getattr(self._line.local, "held", None)
        if held is not None:
            query["transaction"] = held.token
        query.update(more)
        if query:
            target = f"{target}?{urlencode(query)}"
        return _good(
            self._line.request("POST", target, body, accept=codec.EXACT, kind=kind, write=write), self._line
        )

    # ------------------------------------------------------------------ only in the store's process

    def reading(self, **_: Any) -> NoReturn:
        registry.refuse(self, "reading()", _ASK)

    def scan(self, *_: Any, **__: Any) -> NoReturn:
        registry.refuse(self, "scan()", _ASK)

    def knows(self, id: str) -> NoReturn:
        registry.refuse(self, "knows()", _ASK)

    # ------------------------------------------------------------------ more than one request

    @property
    def vocabulary(self) -> Any:
        return self._ask("vocabulary", (), {})

    def compare(self, other: Any) -> ViewDiff:
        """Return the differences from another view; see `View.compare`."""
        return self._ask("compare", (self._place_of(other),), {})  # type: ignore[no-any-return]

    def changes_to(self, other: Any) -> Any:
        """Return the differences from another view as a table; see `View.changes_to`."""
        return self._ask("changes_to", (self._place_of(other),), {})

    def _place_of(self, other: Any) -> Any:
        """Return another view of this store, or the name of a branch, as an argument."""
        if isinstance(other, str):
            return other
        if not isinstance(other, Remote) or other._line is not self._line:
            raise InvalidError("compare wants another view of the same store.")
        return other._named_as()

    def _named_as(self) -> dict[str, Any]:
        """Return this view or store as an argument of a call."""
        return {**self._at(), "branch": self._branch}

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _repr_markdown_(self) -> str:
        return f"`{self!r}`"


def _good(reply: Reply, line: ServerConnection) -> Reply:
    if reply.status < 300:
        return reply
    try:
        answer = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict) or "message" not in answer:
        raise EngineError(
            f"{line.url} answered with status {reply.status}, and not as graphstore does. Is it one of its servers?"
        )
    raise contract.error_in(reply.status, answer)


def _forwarding(name: str, original: Any) -> Any:
    """Return a method or property that calls the server, with docstring and signature of the original."""
    if isinstance(original, property):

        def value(self: Remote) -> Any:
            return self._ask(name, (), {})

        return property(value, doc=original.__doc__)

    @wraps(original)
    def forward(self: Remote, *args: Any, **kwargs: Any) -> Any:
        return self._ask(name, args, kwargs)

    return forward


def _forwards(cls: type) -> type:
    """Forward every call that the class itself does not answer."""
    for name in dir(cls):
        if name in contract.NAMES and not any(
            name in vars(base) for base in cls.__mro__[:-1] if issubclass(base, Remote)
        ):
            setattr(cls, name, _forwarding(name, inspect.getattr_static(cls, name)))
    return cls


def _documented_as(original: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that copies the docstring of the original."""

    def mark(method: F) -> F:
        return update_wrapper(method, original)  # type: ignore[return-value]

    return mark


@_forwards
class RemoteView(Remote, View):
    """The graph at one coordinate of a remote store."""

    def __init__(self, line: ServerConnection, branch: str | None, valid: Instant, tx: Instant) -> None:
        self._line, self._branch, self._author, self._reading = line, branch, None, True
        self._valid, self._tx = valid, tx
        self._query = {"valid": iso(min(valid, OPEN)), "tx": iso(tx)}

    def _at(self) -> dict[str, str]:
        return dict(self._query)

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return the valid time and the tx of this view, in microseconds since 1970."""
        self._usable()
        return self._valid, self._tx

    def _at_each(self, *_: Any) -> None:
        """Return None, so that the caller queries each view on its own at the server."""

    @property
    def at(self) -> Coordinate:
        """Return the coordinate of these answers."""
        valid, tx = self.coordinate()
        return Coordinate(valid=moment(min(valid, OPEN)), tx=moment(tx))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemoteView):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return id(self._line), self._branch, self._valid, self._tx


class RemoteCounterfactual(RemoteView):
    """A counterfactual view of a remote store. `left_out`, `omitted` and `by_effects`: as of `Counterfactual`."""

    def __init__(
        self, line: ServerConnection, branch: str | None, without: str, found: Counterfact, at: Coordinate
    ) -> None:
        super().__init__(line, branch, instant(at.valid), instant(at.tx))
        self._query["without"] = without
        self.counterfact = found
        self.left_out, self.omitted, self.by_effects = found.left_out, found.omitted, found.by_effects

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> RemoteCounterfactual:
        """Return the counterfactual at another coordinate; each axis defaults to this one."""
        line = RemoteStore(self._line)
        line._branch = self._branch
        found = line.as_of(valid=valid, tx=tx).at
        at = Coordinate(
            valid=self.at.valid if valid is None else found.valid,
            tx=self.at.tx if tx is None else min(found.tx, self.at.tx),
        )
        return RemoteCounterfactual(self._line, self._branch, self._query["without"], self.counterfact, at)

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._query["without"])


class _Served(Remote, Store):
    """Holds the methods that a remote store and its branches share."""

    @_documented_as(Store.without)
    def without(self, **omitted: Any) -> Any:
        given = {
            name: iso(self.instant_of(getattr(value, "tx", value), "tx", "tx", "from"))
            if name == "tx"
            else value
            for name, value in omitted.items()
            if value is not None
        }
        found = self._ask("without", (), given)
        text = ",".join(f"{name}={value}" for name, value in given.items())
        return RemoteCounterfactual(self._line, self._branch, text, found, found.at)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._line.url

    @property
    def path(self) -> Path | None:
        """The folder of the store on its own machine; None for one in memory."""
        folder = self._line.folder
        if isinstance(folder, str):
            path = self._ask("stats", (), {})["path"]
            folder = self._line.folder = None if path is None else Path(path)
        return folder

    @property
    def last_write(self) -> datetime | None:
        """The tx of the last transaction when a write by way of this connection was answered last; None before the first. Every later read of it waits
        until its server knows that."""
        return None if self._line.written is None else moment(self._line.written)

    def _forked(self, name: str, at: View | None, tx: TimeLike | None, reason: str | None) -> BranchInfo:
        """Return the new branch that begins from this line."""
        if at is not None:
            if tx is not None:
                raise InvalidError("at= and tx= mean the same thing. Give one of them.")
            if not isinstance(at, RemoteView) or at._line is not self._line or at._branch != self._branch:
                line = "the trunk" if self._branch is None else f"branch {self._branch!r}"
                raise InvalidError(
                    f"a branch of {line} begins at a view of it. Give at= one that as_of(…) of it gave, or tx=."
                )
            tx = moment(at._tx)
        found: BranchInfo = self._ask("branch", (name,), {"tx": tx, "reason": reason})
        return found

    # ------------------------------------------------------------------ coordinates

    @_documented_as(GraphStore.as_of)
    def as_of(
        self, snapshot: TimeLike | None = None, *, valid: TimeLike | None = None, tx: TimeLike | None = None
    ) -> View:
        return self._view(self._ask("as_of", (snapshot,), {"valid": valid, "tx": tx}))

    @_documented_as(GraphStore.knowledge_at)
    def knowledge_at(self, t: TimeLike) -> View:
        return self._view(self._ask("knowledge_at", (t,), {}))

    @_documented_as(GraphStore.recipe)
    def recipe(
        self, name: str, *, valid: TimeLike | None = None, tx: TimeLike | None = None, **params: Any
    ) -> Any:
        return super().recipe(name, valid=valid, tx=tx, **params)  # a query, with the same result type

    def _view(self, at: Coordinate) -> RemoteView:
        return RemoteView(self._line, self._branch, instant(at.valid), instant(at.tx))

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def transaction(
        self, *, at: TimeLike | None = None, author: str | None = None, reason: str | None = None
    ) -> Iterator[Self]:
        """Many verbs, one instant, all or nothing, as on any store: while it is open, all others who write wait.

        The server rolls back a transaction that is idle for a while, or whose client has gone.
        """
        local = self._line.local
        self._usable()
        if getattr(local, "held", None) is not None:
            raise InvalidError(
                "a transaction is open in this thread already: one block is one transaction. End it first."
            )
        if self.read_only:
            raise InvalidError(READ_ONLY)
        given = {
            "at": at if at is None or isinstance(at, str) else iso(instant(at)),
            "author": None if author is None else text_of("author", author),
            "reason": None if reason is None else text_of("reason", reason, empty=True),
        }
        stated = {name: value for name, value in given.items() if value is not None}
        token = orjson.loads(self._post("/transaction", orjson.dumps(stated), write=True).body)["transaction"]
        local.held = _OpenTransaction(token, self._branch)
        try:
            yield self
        except BaseException:
            local.held = None
            with contextlib.suppress(GraphStoreError):  # it has already ended, or its server is gone
                self._post(f"/transaction/{token}/abort", b"", write=True)
            raise
        finally:
            local.held = None
        self._post(f"/transaction/{token}/commit", b"", write=True)

    # ------------------------------------------------------------------ the whole store

    @_documented_as(GraphStore.bulk_load)
    def bulk_load(
        self,
        *,
        nodes: Any = None,
        versions: Any = None,
        events: Any = None,
        links: Any = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        self._usable()
        if self.read_only:
            raise InvalidError(READ_ONLY)
        given = {"nodes": nodes, "versions": versions, "events": events, "links": links}
        tables = {name: _table(rows) for name, rows in given.items() if rows is not None}
        if tables and all(hasattr(table, "schema") for table in tables.values()):
            body = b"".join(codec.arrow_out(table) for table in tables.values())
            reply = self._post("/bulk_load", body, write=True, kind=codec.ARROW, tables=",".join(tables))
            counts = contract.decode(CALLS["bulk_load"], reply.body)
        else:
            rows = {
                name: table.to_pylist() if hasattr(table, "schema") else table
                for name, table in tables.items()
            }
            counts = self._ask("bulk_load", (), rows)
        if progress is not None:
            progress(sum(counts.values()), sum(counts.values()))
        return counts  # type: ignore[no-any-return]

    @_documented_as(GraphStore.export)
    def export(self, path: str | os.PathLike[str], *, since: TimeLike | None = None) -> int:
        self._usable()
        after = (
            ""
            if since is None
            else f"?{urlencode({'since': since if isinstance(since, str) else iso(instant(since))})}"
        )
        lines, end = 0, b""

        def write(piece: bytes) -> None:
            nonlocal lines, end
            lines += piece.count(b"\n")
            end = (end + piece)[-dumps.END_BYTES :]
            sink.write(piece)

        with new_file(Path(path)) as sink:
            _good(self._line.request("GET", f"/export{after}", accept="*/*", sink=write), self._line)
        return dumps.lines_in(end, lines)


@_forwards
class RemoteStore(_Served, GraphStore):
    """A remote store, opened by `graphstore.open("http://…")`. Its reads and verbs are those of any store."""

    def __init__(self, line: ServerConnection, *, author: str | None = None, read_only: bool = False) -> None:
        self._line, self._branch, self._author, self._reading = line, None, author, read_only
        self._branches: dict[tuple[str, Any], RemoteBranch] = {}
        self._handles: weakref.WeakSet[RemoteBranch] = weakref.WeakSet()
        self.notices: list[str] = []

    def close(self) -> None:
        """Close the connection. The store itself stays open where it is."""
        held = getattr(self._line.local, "held", None)
        if held is not None:
            where = "" if held.branch == self._branch else f" of {held}"
            raise InvalidError(f"close() inside transaction(){where}. Leave the block first.")
        self._line.close("the store is closed. Open it again with graphstore.open(…).")

    def __repr__(self) -> str:
        state = "closed" if self._line.closed else "read only" if self.read_only else "open"
        return f"<RemoteStore {self._line.url!r} {state}>"

    # ------------------------------------------------------------------ branches

    @property
    def _trunk(self) -> GraphStore:
        return self

    @_documented_as(GraphStore.branch)
    def branch(
        self, name: str, *, at: View | None = None, tx: TimeLike | None = None, reason: str | None = None
    ) -> Branch:
        return self._not_made(name) if self.read_only else self._handle(self._forked(name, at, tx, reason))

    @_documented_as(GraphStore.on)
    def on(self, name: str) -> Branch:
        return self._handle(self._ask("on", (name,), {}))

    def _handle(self, info: BranchInfo) -> RemoteBranch:
        known = self._branches.get((info.name, info.made_at))
        if known is None or known._closed:
            known = self._branches[info.name, info.made_at] = RemoteBranch(self, info)
            self._handles.add(known)
        return known

    def _name_of(self, branch: Any) -> Any:
        if not isinstance(branch, Branch):
            return branch
        if not isinstance(branch, RemoteBranch) or branch._line is not self._line:
            raise InvalidError(
                f"{branch!r} is a branch of another store. branches() lists those of this one."
            )
        if branch._is_gone:
            raise NotFoundError(branch._over())
        return branch.name

    @_documented_as(GraphStore.delete_branch)
    def delete_branch(self, name: str | Branch, *, reason: str | None = None) -> None:
        gone = self._name_of(name)
        self._ask("delete_branch", (gone,), {"reason": reason})
        for handle in self._handles:
            if handle.name == gone and not handle._is_gone:
                handle._go()

    @_documented_as(GraphStore.merge)
    def merge(self, name: str | Branch, *, decide: Any = None, reason: str | None = None) -> Merge:
        branch = self._name_of(name)
        return _asked_until_decided(
            lambda sides: self._ask("merge", (branch,), {"decide": sides, "reason": reason}), decide
        )

    @_documented_as(GraphStore.merge_store)
    def merge_store(
        self,
        other: str | os.PathLike[str] | GraphStore,
        *,
        name: str | None = None,
        decide: Any = None,
        reason: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Merge:
        self._usable()
        with other_stores.bundled(other) as bundle:
            how = {"name": name, "reason": reason, "progress": progress}
            return _asked_until_decided(
                lambda sides: self._ask("merge_store", (str(bundle),), {"decide": sides, **how}), decide
            )


def _asked_until_decided(ask: Callable[[Any], Merge], decide: Any) -> Merge:
    """Merge through a server. If `decide` is a function, repeat the merge with its decisions until it has no more."""
    if not callable(decide):
        return ask(decide)
    decided: dict[str, str] = {}
    while True:
        found = ask(decided or None)
        more = {} if found.merged else _decided_by(decide, found.conflicts, decided)
        if not more:
            return found
        decided |= more


def _table(rows: Any) -> Any:
    """Return rows as an Arrow table if they are one or a polars DataFrame, else as a list."""
    if hasattr(rows, "to_arrow") and not hasattr(rows, "to_pylist"):  # polars
        return rows.to_arrow()
    if hasattr(rows, "schema") and hasattr(rows, "to_pylist"):
        return rows
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # pandas
        from graphstore.store.bulk import rows as plain_rows

        return [
            {
                name: moment(value) if name in _TIMES and value is not None else value
                for name, value in row.items()
            }
            for row in plain_rows(rows)
        ]
    return rows if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__") else list(rows)


def _decided_by(
    decide: Callable[[MergeConflict], str | None],
    conflicts: tuple[MergeConflict, ...],
    before: Mapping[str, str],
) -> dict[str, str]:
    """Return a function's decisions on new conflicts, by id."""
    found: dict[str, str | None] = {}
    for conflict in conflicts:
        if conflict.decision is None and conflict.id not in before:
            side = decide(conflict)
            if found.setdefault(conflict.id, side) != side:
                raise InvalidError(
                    f"{conflict.id!r} is in several conflicts that were decided differently. Through a server one word holds for a thing: decide them alike, or merge where the store is."
                )
    return {id: side for id, side in found.items() if side is not None}


@_forwards
class RemoteBranch(_Served, Branch):
    """A branch of a remote store."""

    merge, delete_branch = Branch.merge, Branch.delete_branch
    evict, erase, forget, set_retention = Branch.evict, Branch.erase, Branch.forget, Branch.set_retention
    merge_store = Branch.merge_store

    def __init__(self, trunk: RemoteStore, info: BranchInfo) -> None:
        self._line, self._author, self._reading = trunk._line, trunk._author, trunk.read_only
        self._store, self._branch, self.name = trunk, info.name, info.name
        self._made = instant(info.made_at)
        self._closed: str | None = None
        self._is_gone = False
        self.notices = trunk.notices

    @property
    def _trunk(self) -> GraphStore:
        return self._store

    @_documented_as(Branch.branch)
    def branch(
        self, name: str, *, at: View | None = None, tx: TimeLike | None = None, reason: str | None = None
    ) -> Branch:
        if self.read_only:
            return self._not_made(name)
        return self._store._handle(self._forked(name, at, tx, reason))

    @_documented_as(Branch.pull)
    def pull(self, *, decide: Any = None, reason: str | None = None) -> Merge:
        return _asked_until_decided(
            lambda sides: self._ask("pull", (), {"decide": sides, "reason": reason}), decide
        )

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            return super()._ask(name, args, kwargs)
        except NotFoundError as error:
            if str(error).startswith(f"no branch {self.name!r}."):
                self._go()
                raise InvalidError(self._over()) from None
            raise

    def _go(self) -> None:
        """Mark the branch as deleted: its name may be used again."""
        self._is_gone, self._closed = True, self._over()

    @property
    def is_loaded(self) -> bool:
        """Always false: its index is the server's."""
        return False

    def _usable(self) -> None:
        if self._closed:
            raise InvalidError(self._closed)
        super()._usable()

    def close(self) -> None:
        """Release the handle. The branch stays; `on(name)` of the trunk returns it again."""
        self._closed = f"branch {self.name!r} was closed. Get it again with on({self.name!r})."

    def on(self, name: str) -> Branch:
        """Another branch of the same store."""
        return self._store.on(name)

    def __repr__(self) -> str:
        return f"<Branch {self.name!r} of {self._store!r}>"


def connect(
    url: str,
    token: str | None = None,
    *,
    author: str | None = None,
    read_only: bool = False,
    timeout: float | None = None,
) -> RemoteStore:
    """Connect to the store that a server holds. Of several addresses, with commas, use the first that answers, and move on when it stops answering.

    `token`: grants access (default: the environment's GRAPHSTORE_TOKEN); one for all addresses, or with commas one for each. `timeout` is in seconds.
    Raise EngineError if no server answers, InvalidError for an unknown token.
    """
    urls = url.split(",")
    tokens = (token or os.environ.get(TOKEN) or "").split(",")
    if len(tokens) not in (1, len(urls)):
        raise InvalidError(
            f"{len(tokens)} tokens for {len(urls)} addresses. Give one for all of them, or one for each."
        )
    line = ServerConnection(urls[0], tokens[0], timeout, in_turn(urls, tokens) if len(urls) > 1 else None)
    store = RemoteStore(line, author=author, read_only=read_only)
    try:
        store.path  # noqa: B018  # reads it now: a wrong token is reported here, and the folder stays known after the connection is closed
    except BaseException:
        line.close("the store was not opened.")
        raise
    return store


_TIMES = frozenset({"valid_from", "valid_to", "tx_from", "tx_to", "occurred_at"})

__all__ = ["Reader", "RemoteBranch", "RemoteStore", "RemoteView", "connect"]
