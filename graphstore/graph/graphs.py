"""The graphs for Cypher: the tables of the whole history and the graphs of views, updated or built on demand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import EngineError, QueryError
from graphstore.read.points import NotInRows, Point
from graphstore.values import libraries
from graphstore.values.gc_pause import no_collecting
from graphstore.values.period import OPEN, Instant, moment
from graphstore.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from graphstore.graph.graph_from_rows import GraphSpan, ViewState
    from graphstore.graph.limits import QueryLimits
    from graphstore.graph.projection import Projection
    from graphstore.graph.result import Result
    from graphstore.graph.view_graph import ViewGraph
    from graphstore.graph.workers import AnyEngine, Worker, Workers
    from graphstore.ledger.branch_ledger import BranchLedger
    from graphstore.ledger.ledger import Ledger
    from graphstore.ledger.scoped_ledger import ScopedLedger
    from graphstore.values.coordinates import Axis
    from graphstore.values.findings import Problem

KEPT_VIEWS = 4
_FREE_EVERY = 5.0  # seconds; right after it a graph takes three times as long to build
_COPY_AFTER = 0.25  # seconds that a graph is busy before a second process gets a copy of it
_TURN = 2.0  # seconds that closing waits for a query over the tables

Coordinate = tuple[Instant, Instant]
"""The valid time and the tx."""


class _GraphKey(NamedTuple):
    """Identifies a graph by its stretch of valid time, or its span, and the state of the ledger; `number` tells copies in several processes apart."""

    since: Instant
    until: Instant
    state: ViewState
    span: GraphSpan | None
    number: int


class _GraphRequest(NamedTuple):
    """Holds whose graph is wanted, at which coordinate, and from the rows of which ledger."""

    core: Any
    where: Callable[[], Coordinate]
    span: GraphSpan | None
    ledger: Ledger | BranchLedger | ScopedLedger


class Graphs:
    """Opens the engine on first use: a store without Cypher queries never loads it."""

    def __init__(
        self,
        folder: Path | None,
        journal: Ledger,
        vocabulary: Vocabulary,
        *,
        driver: str,
        notify: Callable[[str], None],
        ledger: Ledger | BranchLedger | None = None,
    ) -> None:
        self._ledger = ledger  # its rows are the whole history; None: reads are limited to scopes
        self._folder = folder
        self._journal, self._vocabulary = journal, vocabulary
        self.driver, self._notify = driver, notify
        self._projection: Projection | None = None
        self._views: OrderedDict[_GraphKey, ViewGraph] = OrderedDict()
        self._turn = threading.RLock()  # held by the one query over the tables
        self._following = threading.RLock()  # held while the tables are changed, closed or dropped
        self._building = threading.RLock()  # held while a graph is searched for or built
        self._workers: Workers | None = None
        self._freed = -_FREE_EVERY  # when freed memory was last returned to the system

    def drop_built(self) -> None:
        """Drop everything built on rows that were replaced, or that holds evicted or erased contents."""
        with self._building:
            self._views.clear()  # not closed, as another thread may be reading one; the last reader frees it
        with self._following:
            if self._projection is not None:
                self._projection.abandon()
                self._projection = None

    @property
    def projection(self) -> Projection:
        """Return the tables of the whole history."""
        from graphstore.graph.history_from_rows import RowHistory
        from graphstore.graph.projection import Projection

        if self._projection is None:
            assert self._ledger is not None
            self._projection = Projection(
                self._folder,
                RowHistory(self._ledger),
                self._journal,
                driver=self.driver,
                notify=self._notify,
                workers=self._workers,
            )
        return self._projection

    def serve(self, workers: Workers | None) -> None:
        """Run queries in these processes from now on; with None in this process."""
        if self._workers is not workers:
            self.close()
            self._workers = workers

    @property
    def workers(self) -> Workers | None:
        """Return the processes in which queries run; None for this one."""
        return self._workers

    def query_tables(
        self,
        ready: Callable[[], None],
        cypher: str,
        params: Mapping[str, Any],
        limits: QueryLimits | None,
    ) -> Result:
        """Answer a text over the tables, which follow all commits first. Writers do not wait for that.

        Args:
            ready: raises InvalidError when the store is closed.
        """
        from graphstore.graph import macros, unknown_names
        from graphstore.graph.workers import ProcessEngine

        if self._workers is not None:
            _refuse(cypher, params, limits)
        with self._turn:
            while True:
                with self._following:
                    ready()
                    engine = self.tables()
                try:
                    with engine.worker.claimed if isinstance(engine, ProcessEngine) else nullcontext():
                        written = macros.written_out(
                            cypher, partial(macros.in_content, engine, "Version"), of_view=False
                        )
                        try:
                            return engine.query(written, params, limits=limits)
                        except QueryError as error:
                            raise unknown_names.in_the_tables(error, engine) from None
                except EngineError:
                    if not engine.gone:  # else it was closed meanwhile by an erasure
                        raise

    def query(
        self,
        core: Any,
        where: Callable[[], Coordinate],
        cypher: str,
        params: Mapping[str, Any],
        limits: QueryLimits | None,
        span: GraphSpan | None = None,
    ) -> Result:
        """Answer a text over the graph of a view, or of a `span` as known at its tx. The lock of `core` is free while the query runs and while the graph is
        built."""
        while True:
            with suppress(NotInRows):  # something was forgotten meanwhile
                asked = _GraphRequest(core, where, span, core.answering or core.rows)
                return self._query(asked, cypher, params, limits)

    def _query(
        self, asked: _GraphRequest, cypher: str, params: Mapping[str, Any], limits: QueryLimits | None
    ) -> Result:
        workers = self._workers
        if workers is None:
            graph = self._view(asked, cypher, limits)
            return graph.query(cypher, params, limits=limits)
        from graphstore.graph.workers import EngineGone

        _refuse(cypher, params, limits)
        until = monotonic() + workers.patience()
        while True:
            graph, worker = self._claimed(workers, asked, until)
            try:
                return graph.query(cypher, params, limits=limits)
            except EngineGone:
                if monotonic() > until:
                    raise
            finally:
                workers.give_back(worker)

    def _claimed(self, workers: Workers, asked: _GraphRequest, until: float) -> tuple[ViewGraph, Worker]:
        """Claim a free process with the graph of a view: an existing one, else a new one. Raises QueryError if none is free in time."""
        from graphstore.graph.workers import ProcessEngine

        began = monotonic()
        while True:
            with self._reading(asked) as point:
                kept = self._kept(asked.span, point)
                for graph in kept:
                    assert isinstance(graph.engine, ProcessEngine)
                    claim = graph.engine.claim()
                    if claim is not None:
                        return graph, claim
            now = monotonic()
            if kept and now - began < _COPY_AFTER:
                workers.wait(_COPY_AFTER)
                continue
            worker = workers.claim_for_new()
            if worker is None:
                workers.wait(_COPY_AFTER)
                workers.refuse_late(until)
                continue
            try:
                worker.await_start()
                return self._built(asked, worker), worker
            except BaseException:
                workers.give_back(worker)
                raise

    @contextmanager
    def _reading(self, asked: _GraphRequest) -> Iterator[Point]:
        """Enter a block in which one graph at a time is searched for or built, in one state of the ledger; yields the point."""
        valid, tx = asked.where()  # before the snapshot: this call follows other writers
        with self._building, asked.ledger.snapshot() as database:
            yield Point(database, valid, tx, asked.core.vocabulary)

    def at_each(
        self, core: Any, at: Sequence[Coordinate], axis: Axis, cypher: str, params: Mapping[str, Any]
    ) -> list[Result] | None:
        """Answer a text at coordinates that differ on one axis, over one graph of them all. Return None if each coordinate must be queried separately."""
        from graphstore.graph import period_graph
        from graphstore.graph.graph_from_rows import GraphSpan
        from graphstore.graph.limits import LIMITS

        found = period_graph.at_each(cypher, params)
        if found is None:
            return None
        if core.is_worker:  # its transaction may still change what is visible
            return None
        spans = [(times[0], times[-1] + 1) for times in zip(*at, strict=True)]
        instants = tuple(each[axis == "tx"] for each in at)
        span = GraphSpan(spans[0], spans[1], axis, instants, found.properties)
        try:
            return [
                self.query(
                    core,
                    lambda: at[-1],
                    found.text,
                    {**params, "valid": moment(valid), "tx": moment(tx)},
                    LIMITS,
                    span,
                )
                for valid, tx in at
            ]
        except QueryError:
            return None  # if the text is invalid, the first separate graph reports why

    def tables(self) -> AnyEngine:
        """Return the engine of the tables, which contain everything committed."""
        return self.projection.engine()

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Rebuild the tables."""
        with self._turn, self._following:
            self.projection.rebuild(progress)

    @property
    def thrown_away(self) -> int:
        """Return how often the tables in use differed from what was written and were rebuilt."""
        return 0 if self._projection is None else self._projection.thrown_away

    def verify(self) -> list[Problem]:
        """Return the differences between the tables and the history."""
        with self._turn, self._following:
            return self.projection.verify()

    def _view(self, asked: _GraphRequest, cypher: str, limits: QueryLimits | None) -> ViewGraph:
        """Return the wanted graph in this process's memory, ready for a text. It serves every coordinate at which it would be the same."""
        libraries.load(*libraries.ARROW, self.driver)
        with self._reading(asked) as point:
            kept = self._kept(asked.span, point)
            graph = kept[0] if kept else self._build(asked, point, None)
            return graph.make_ready(cypher, limits)

    def _kept(self, span: GraphSpan | None, point: Point) -> list[ViewGraph]:
        """Return the existing graphs for a coordinate or a span."""
        from graphstore.graph.graph_from_rows import state_of

        state, found = state_of(point), []
        for key, graph in list(self._views.items()):
            if graph.engine.gone or graph.broken or key.state.forgetting != state.forgetting:
                del self._views[key]
            elif key.state == state and key.span == span and key.since <= point.valid < key.until:
                self._views.move_to_end(key)
                found.append(graph)
        return found

    def _built(self, asked: _GraphRequest, worker: Worker) -> ViewGraph:
        with self._reading(asked) as point:
            return self._build(asked, point, worker).make_ready(None)

    def _build(self, asked: _GraphRequest, point: Point, worker: Worker | None) -> ViewGraph:
        from graphstore.graph import loading
        from graphstore.graph.engine import NODE_GROUP, Engine
        from graphstore.graph.graph_from_rows import GraphSpan, RowSource, state_of, stretch_of
        from graphstore.graph.workers import ProcessEngine

        def engine(memory: int, things: int) -> AnyEngine:
            threads = 1 if things <= NODE_GROUP else 0
            if worker is None or self._workers is None:
                return Engine(None, driver=self.driver, buffer_pool=memory, threads=threads)
            return ProcessEngine(None, worker, self._workers.allowance, buffer_pool=memory, threads=threads)

        span, state = asked.span, state_of(point)
        with no_collecting():
            source = RowSource(point, GraphSpan.at(point.valid, point.tx) if span is None else span)
            graph = loading.build(source, span, self._vocabulary, engine=engine)
        if not asked.core.is_worker:  # an open transaction may change its own view
            stretch = stretch_of(point) if span is None else (-OPEN, OPEN + 1)
            self._views[_GraphKey(*stretch, state, span, id(graph))] = graph
        if len(self._views) > KEPT_VIEWS:
            # not closed, as another thread may be reading it; the last reader frees it
            self._views.popitem(last=False)
            self._give_back_memory()
        return graph

    def _give_back_memory(self) -> None:
        """Return freed memory to the system, if the C library can: an engine in memory frees many small pieces, which the library keeps otherwise."""
        import ctypes

        if monotonic() - self._freed >= _FREE_EVERY:
            with suppress(AttributeError, OSError, TypeError):  # not glibc
                ctypes.CDLL(None).malloc_trim(0)
                self._freed = monotonic()

    def close(self) -> None:
        """Release every engine; the tables are closed properly."""
        while self._views:
            graph = self._views.popitem()[1]
            if self._workers is None:
                graph.close()
        if self._projection is None:
            return
        with self._following:
            pass  # an update of the tables ends first
        free = self._turn.acquire(timeout=_TURN)  # a query that hangs does not block closing
        try:
            with self._following:
                if free:
                    self._projection.close()
                else:
                    self._projection.abandon()
        finally:
            self._projection = None
            if free:
                self._turn.release()


def _refuse(cypher: str, params: Mapping[str, Any], limits: QueryLimits | None) -> None:
    """Refuse what can be refused without a process. Raises QueryError."""
    from graphstore.graph.guard import check_stoppable, guard
    from graphstore.graph.statement import parse

    statement = parse(cypher, limits)
    guard(statement)
    if limits is not None:
        check_stoppable(statement, params)
