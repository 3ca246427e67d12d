"""Read the whole store at no coordinate: its tables, the changes of each transaction, counts, verification, a dump."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from graphstore.errors import DamageError, InvalidError
from graphstore.graph.limits import LIMITS
from graphstore.ledger import backup as dumps
from graphstore.ledger import readings
from graphstore.ledger.database import WritingCosts
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.readings import Agent, ReadingsRecorder
from graphstore.read import counted, operations, settings
from graphstore.read import ids as known_ids
from graphstore.read.points import Point
from graphstore.search import model_vectors
from graphstore.store import briefing, histories, over_time, readers, recipes
from graphstore.values import findings, inputs
from graphstore.values.inputs import optional_text
from graphstore.values.models import Snapshot
from graphstore.values.period import BEGINNING, OPEN, TimeLike, moment
from graphstore.view import snapshots
from graphstore.write import retention
from graphstore.write.writer import Progress, Writer

if TYPE_CHECKING:
    from graphstore.graph.engine import Result
    from graphstore.graph.limits import QueryLimits
    from graphstore.graph.workers import Allowance, Workers
    from graphstore.values.findings import Change, Reading, Verification
    from graphstore.write.retention import KindContent

P = ParamSpec("P")
T = TypeVar("T")


class WholeStore(Writer):
    """An open store and the reads that concern all of it."""

    def query_tables(self, cypher: str, *, limits: QueryLimits | None = LIMITS, **params: Any) -> Result:
        """Read-only Cypher over the whole history: the tables of `cypher/schema.cypher`, periods as columns.

        `limits=None`: for a text or an answer of any size; so no parameter of a text can be named $limits. Raises QueryError for a text that
        writes, misses a parameter, is larger or nested deeper than is allowed, or does not run.
        """
        from graphstore.graph import macros

        core = self._core
        given = macros.with_coordinate(cypher, params, self._axis)
        self._usable()
        core.hide_rows()  # the tables contain what is committed
        return core.graphs.query_tables(self._usable, cypher, given, limits)

    def history_table(
        self,
        kind: str | None = None,
        fields: str | Iterable[str] | None = None,
        *,
        tx: TimeLike | Sequence[TimeLike | None] | None = None,
        valid: Sequence[TimeLike | None] | None = None,
        clip: bool = False,
        coalesce_on: str | Iterable[str] | None = None,
    ) -> Result:
        """Every row of nodes (of a kind) as a table, by id, valid_from and tx_from: both periods, who said it first, when and why, and the fields of the
        content, each of the one type that its values have ever had (JSON text where they differ).

        `tx`: what was believed then, by default now; a pair (from, to), None for an open end: all that was believed at some instant of it. `valid`: what
        holds at some instant of [from, to). `clip` cuts the periods to these. `coalesce_on`: only the id, these columns and the periods, neighbouring
        periods over which the columns stay the same as one. Raises InvalidError for a span that is empty, for an unknown column, and for a field that no
        content of a node has ever had.
        """
        return histories.history(
            self,
            kind,
            None if fields is None else inputs.names("fields", fields),
            *histories.ends(valid, "valid"),
            **_tx(tx),
            clip=clip,
            coalesce_on=None if coalesce_on is None else inputs.names("coalesce_on", coalesce_on),
        )

    def links_table(
        self,
        kind: str | None = None,
        *,
        tx: TimeLike | Sequence[TimeLike | None] | None = None,
        valid: Sequence[TimeLike | None] | None = None,
        clip: bool = False,
    ) -> Result:
        """Every row of links (of a kind) as a table, with both periods, who said it and when; otherwise as `history_table`."""
        return histories.links(self, kind, *histories.ends(valid, "valid"), **_tx(tx), clip=clip)

    def changes_table(self, since: TimeLike | None = None, until: TimeLike | None = None) -> Result:
        """What each transaction after `since`, up to `until`, changed, as a table: the periods of valid time over which something is said since then (`added`)
        or no more (`removed`), with its value, who did it and why. A piece that is only written anew is no change. Raises InvalidError when `since` is after `until`."""
        return histories.changes(self, since, until)

    def over(
        self, *, valid: over_time.Every | TimeLike | None = None, tx: over_time.Every | TimeLike | None = None
    ) -> over_time.Over:
        """The graph at many instants: `valid=("2024-01-01", "2025-01-01", "1 month")` is each first of a month of 2024, as known at `tx` (default: now); or
        so over `tx`: how belief grew. It has `query`, `nodes`, `count`, `total` and `compare`, each one table with a column `at`.

        Raises InvalidError when not exactly one of them is (from, to, step), for a step that is none, and for a tx that has not come yet.
        """
        ranges = [axis for axis, given in (("valid", valid), ("tx", tx)) if isinstance(given, tuple | list)]
        if len(ranges) != 1:
            raise InvalidError(
                "over() wants one of valid and tx as (from, to, step), such as ('2024-01-01', '2025-01-01', '1 month')."
            )
        axis: over_time.TimeAxis = "valid" if ranges == ["valid"] else "tx"
        every, other = (valid, tx) if axis == "valid" else (tx, valid)
        assert isinstance(every, tuple | list) and not isinstance(other, tuple | list)
        if len(every) != 3:
            raise InvalidError(f"{axis} has {len(every)} values. Give (from, to, step).")
        begin, end = (self.instant_of(each, axis, axis, "from") for each in every[:2])
        instants = over_time.instants_of(begin, end, every[2])
        if axis == "valid":
            fixed = self._known_by("now" if other is None else other)
        else:
            self._known_by(moment(instants[-1]))
            fixed = self.instant_of("now" if other is None else other, "valid", "valid")
        return over_time.Over(self, axis, instants, fixed)

    def recipe(
        self, name: str, *, valid: TimeLike | None = None, tx: TimeLike | None = None, **params: Any
    ) -> Result:
        """The answer of a question that comes with the package, by its name; `recipes()` lists them.

        It is asked at a coordinate, by default now. `since` and `until` are times, by default all there are; other parameters are as the recipe says.
        Raises InvalidError for an unknown recipe, and for parameters that it has not, or that are missing.
        """
        return recipes.asked(self, name, valid, tx, params)

    def recipes(self) -> list[recipes.Recipe]:
        """The questions that come with the package, each with what it answers and the parameters it takes."""
        return list(recipes.recipes().values())

    @contextmanager
    def _queries_apart(self, allowance: Allowance | None = None) -> Iterator[Workers | None]:
        """Run Cypher in processes of its own within the block, for stores that serve others. Yields None and changes nothing inside another such block, or if the platform
        does not support it."""
        from graphstore.graph.workers import AVAILABLE, Workers

        if not AVAILABLE or self._core.graphs.workers is not None:
            yield None
            return
        workers = Workers(self._core.graphs.driver, allowance)
        self._queries_in(workers)
        try:
            yield workers
        finally:
            workers.stop()
            self._queries_in(None)
            workers.close()

    def _queries_in(self, workers: Workers | None) -> None:
        with self._core.lock:
            if not self._core.closed:
                for line in self._lines:
                    line._core.graphs.serve(workers)

    def snapshot(self, name: str) -> Snapshot:
        """Give the present coordinate a name that `as_of(name)` accepts, for ever.

        Raises ConflictError for a name that is given already, InvalidError for one that reads as a time.
        """
        wanted = snapshots.name_of(name)
        with self.verb(is_narrow=True) as work:
            snapshots.refuse_taken(work.index, wanted)
            kept = settings.setting_of(work.tx, work.tx, work.author)
            self.keep_setting("snapshot", settings.KEPT + wanted, kept, wanted)
            return next(each for each in snapshots.known(work.index, work.tx) if each.name == wanted)

    def snapshots(self) -> list[Snapshot]:
        """The named coordinates, in the order they were named."""
        return self._by_rows(settings.snapshots)

    def touch(self, ids: str | Iterable[str]) -> None:
        """Count a lookup of each thing, as `recall` does with its hits. In memory: see `flush_accesses`.

        Raises NotFoundError for an unknown id; InvalidError on a store that is only read.
        """
        self._writable()
        self._count_access(self._by_rows(known_ids.things, inputs.ids("ids", ids)))

    def readers_of(
        self, id: str | Iterable[str] | None = None, *, tx: TimeLike | None = None
    ) -> list[Reading]:
        """Whose answers contained a thing, or several, and when: one reading for each answer and thing, newest first. With `tx`: of the answers before that
        transaction; and without an id, those that contained what it invalidated or made shaky.

        Only interfaces that were started with `record_reads` record it. What they answered in the last second may be missing, and after a kill it
        stays so. On a branch: the answers from that branch. Raises NotFoundError for an unknown id, InvalidError without id and tx.
        """
        if id is None and tx is None:
            raise InvalidError("readers_of() wants an id, or the tx of a transaction. Give one of them.")
        before = OPEN if tx is None else self.instant_of(tx, "tx", "tx", "from")
        if id is None:
            return readers.readers_of_write(self, before)
        return readers.readers_of(self, self._by_rows(known_ids.things, inputs.ids("id", id)), before)

    def brief(
        self,
        agent: str | None = None,
        *,
        budget_tokens: int = 2_000,
        user: str | None = None,
        project: str | None = None,
        path: str | None = None,
        scope: str | None = None,
        since: TimeLike | None = None,
        valid: TimeLike | None = None,
        tx: TimeLike | None = None,
    ) -> briefing.Brief:
        """Brief an agent before it works, in at most `budget_tokens`: decisions and facts by weight, what changed since its last visit, which things in answers
        to it no longer hold, open items, contradictions, what is shaky, and plans due. Every line has an id; what had no room is counted.

        `agent`: its name, under which this visit is recorded. `user`, `project`, `path`: without what names another one. `scope`: only what is in it or below.
        `since`: changes from this tx on, instead of those since the last visit, or of the last 7 days if none is recorded. At another `valid` or `tx` no visit
        is recorded. Raises InvalidError for a budget below 100 tokens, and for a time that is none.
        """
        optional_text("agent", agent)
        return briefing.brief(
            self,
            Agent(agent) if agent else None,
            briefing.BriefQuestion(budget_tokens, user, project, path, scope),
            self._record_reads() if agent and not self.read_only else None,
            since=since,
            valid=valid,
            tx=tx,
        )

    def _record_reads(self, days: float | None = None) -> ReadingsRecorder:
        """Return the recorder of an interface's answers to this store. It ends with the store. `days`: how long a reading is kept."""
        trunk = self._lines[0]
        if trunk._recorder is None:
            trunk._recorder = ReadingsRecorder(
                self._ledger.database.again, trunk._now, readings.DAYS if days is None else days
            )
        return trunk._recorder

    def rebuild(self, progress: Progress | None = None) -> None:
        """Make the rows of the ledger anew from its chain, and the graph tables."""
        with self._writer:
            self._usable()
            if not self.read_only:
                self._ledger.rebuild_rows()
            self._begin_again()
            self._core.graphs.rebuild(progress)

    def changes(self, since: TimeLike | None = None, until: TimeLike | None = None) -> list[Change]:
        """What each transaction did, oldest first; with `since`, only what came after that tx: pass the last `Change.tx` to go on. With `until`, only what
        came by then. `changes_table` has the periods and values. Raises InvalidError when `since` is after `until`."""
        self._usable()
        after, last = self.bounds_of(since, until, "tx")
        return self._by_committed_rows(operations.changes, after, last, None)

    def _changes(self, since: TimeLike | None, most: int) -> list[Change]:
        """Return the first `changes` after `since`: at most `most`, plus the rest of their last transaction."""
        self._usable()
        after = -OPEN if since is None else self.instant_of(since, "since", "tx")
        return self._by_committed_rows(operations.changes, after, OPEN, most)

    def _last_changes(self, most: int) -> list[Change]:
        """Return the last of `changes`, at most `most`, newest first."""
        self._usable()
        return self._by_committed_rows(operations.last_changes, most)

    def _by_committed_rows(
        self, answer: Callable[Concatenate[Point, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Return the answer of a function of statements about what is committed."""
        core = self._core
        core.hide_rows()
        valid, tx = self.coordinate()
        with core.rows.snapshot() as database:
            return answer(Point(database, valid, tx, core.vocabulary), *args, **named)

    def _contents(self, kind: str) -> list[KindContent]:
        """Return the committed nodes of a kind that are not forgotten, with any standing, in the order they were recorded."""
        self._usable()
        self._core.hide_rows()
        assert self._core.rows is not None
        with self._core.rows.snapshot() as database:
            return retention.Evictable(database).contents(kind)

    def _unchanging(self) -> AbstractContextManager[object]:
        """Return a block in which no write becomes visible to its reads."""
        return self._core.answering.snapshot()

    def _is_settled(self) -> bool:
        """Return True if this is the trunk, and no open transaction has written anything."""
        return isinstance(self._core.rows, Ledger) and (self._open is None or self._open.empty)

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: nodes, events, versions, rows, links, link_rows, transactions, journal_bytes, last_tx, custom_kinds."""
        self._usable()
        found = {
            "path": None if self.path is None else str(self.path),
            **self._by_committed_rows(counted.stats),
        }
        if self._core.working is not None and self._core.is_worker:  # uncommitted kinds count too
            found["custom_kinds"] = [kind["name"] for kind in self._core.working.kinds]
        return found

    def _tables_thrown_away(self) -> int:
        """Return how often the graph tables in use differed from what was written, and were rebuilt."""
        return self._core.graphs.thrown_away

    def _writing(self) -> tuple[WritingCosts, int] | None:
        """Return the costs of writing in this process, and the size of the WAL in bytes."""
        database = self._ledger.database
        return database.writing(), database.wal_size()

    def verify(self) -> Verification:
        """Read the whole chain again, compare the rows with it, and every value of the graph tables with the rows. Changes nothing."""
        self._usable()
        if self._open is not None and self._owner == threading.get_ident():
            raise InvalidError("verify() inside transaction(). Leave the block first.")
        problems, transactions, _ = self._place.check()
        try:
            problems += self._core.graphs.verify()
        except DamageError as error:  # a body needed to build the tables
            if not problems:
                problems.append(findings.Problem(file=str(self._place.file), line=None, message=str(error)))
        if damaged := model_vectors.damaged_vectors(self._ledger.database):
            message = f"damaged vectors: {damaged:,}. A search by meaning makes them of the texts again."
            problems.append(findings.Problem(file=str(self._place.file), line=None, message=message))
        return findings.Verification(
            ok=not problems,
            problems=tuple(problems),
            transactions=transactions,
            checked=("journal", "rows", "graph tables"),
        )

    def export(self, path: str | os.PathLike[str], *, since: TimeLike | None = None) -> int:
        """Write the whole store as one file for `graphstore.restore`. Returns the number of lines. An existing file is refused.

        The file gets its name when all of it is on the disk, and its last line says how many transactions it holds. `since`: only the transactions after
        that tx, as a bundle for `merge_store` of a store that has those before.
        """
        self._usable()
        after = None if since is None else self.instant_of(since, "since", "tx")
        ledger = self._ledger
        if not self.read_only:
            if not ledger.database.writes_here:
                self._place.remove_forgotten(ledger)
            ledger.settle()  # a dump contains nothing that the store may still lose
        return dumps.save(ledger, Path(path), after)


def _tx(tx: TimeLike | Sequence[TimeLike | None] | None) -> dict[str, Any]:
    """Return a tx, or a span of it, as keyword arguments of the calls."""
    if tx is None or isinstance(tx, str) or not isinstance(tx, Sequence):
        return {"tx": tx}
    begin, end = histories.ends(tx, "tx")
    # a span with two open ends covers everything
    return {"tx_from": moment(BEGINNING) if begin is None else begin, "tx_to": end}
