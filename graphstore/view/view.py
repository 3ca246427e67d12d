"""Read a store at one coordinate from the rows of its ledger; within a verb, from its working set.

`Reader` holds the reads. A `View` is a reader whose coordinate never changes; the coordinate of a `GraphStore` is now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from graphstore.errors import InvalidError
from graphstore.graph.limits import LIMITS
from graphstore.read import (
    chains,
    described,
    differing,
    ids,
    linked,
    operations,
    settings,
    superseding,
    walks,
)
from graphstore.read.points import Point
from graphstore.values import coordinates
from graphstore.values.gc_pause import no_collecting
from graphstore.values.inputs import ids as given_ids
from graphstore.values.inputs import whole_number
from graphstore.values.models import Coordinate, Event, Link, LinkId, Node, Snapshot, Version
from graphstore.values.painter import Painted
from graphstore.values.period import OPEN, Instant, Period, TimeLike, exactly, instant, moment
from graphstore.values.vocabulary import Vocabulary
from graphstore.view import conflicts, join_candidates, light_rows, shaken, working_sight
from graphstore.view import sight as sights

if TYPE_CHECKING:
    from pathlib import Path

    import networkx
    import pyarrow

    from graphstore.graph.engine import Result
    from graphstore.graph.limits import QueryLimits
    from graphstore.read.walks import By, Direction
    from graphstore.values.coordinates import Axis, Meaning
    from graphstore.values.findings import (
        Chain,
        Change,
        Contradiction,
        FieldChange,
        Grounds,
        Inspection,
        JoinCandidate,
        LinkInspection,
        LinkSupersession,
        Shaky,
        Supersession,
        ViewDiff,
        WriteWarnings,
    )
    from graphstore.view.rows import Row
    from graphstore.view.sight import Core, Sight
    from graphstore.view.working_sight import WorkingSight


P = ParamSpec("P")
T = TypeVar("T")


class Reader(Painted):
    """The reads, at the coordinate that `coordinate` gives."""

    _core: Core

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return the valid time and the tx of these answers, in microseconds since 1970."""
        raise NotImplementedError

    @property
    def _asks_first(self) -> bool:
        """Return True if the coordinate must be fixed before the rows are read: others may commit at an earlier instant meanwhile."""
        return False

    def instant_of(
        self, value: TimeLike, what: str, axis: Axis = "valid", meaning: Meaning | None = None
    ) -> Instant:
        """The instant of an argument; ages such as `7d` count back from the valid time of these answers. `meaning`: the instant of a date or another span that is
        meant; None for that of the argument's name."""
        if isinstance(value, datetime):
            return instant(value, what)
        known = instant(self.at.tx) if axis == "tx" else None
        return coordinates.resolve(
            value, what, instant(self.at.valid), self._names, axis=axis, present=known, meaning=meaning
        )

    def bounds_of(self, since: TimeLike | None, until: TimeLike | None, axis: Axis = "valid") -> Period:
        """The instants of `since` and `until`, each open when it is None. Raises InvalidError when the first is after the second. Of transactions
        `until` is the last instant that is in, otherwise the first that is not."""
        begin, end = coordinates.between(
            since, until, lambda value, what, meaning: self.instant_of(value, what, axis, meaning)
        )
        return begin, end if until is None or axis == "valid" else self.instant_of(
            until, "until", axis, "as of"
        )

    def _known_by(self, tx: TimeLike) -> Instant:
        """Return the instant of a tx known to these answers. Raises InvalidError for a later one."""
        at, known = self.instant_of(tx, "tx", "tx", "as of"), self.coordinate()[1]
        if at > known:
            raise InvalidError(f"tx {exactly(at)} is later than {exactly(known)}, that of these answers.")
        return at

    def _names(self) -> list[Snapshot]:
        """Return the snapshots whose names may be used as a time."""
        return self._core.snapshots(self.coordinate()[1])

    def _by_rows(self, answer: Callable[Concatenate[Point, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Return the answer of a function of statements at this coordinate. It includes the changes of an open transaction of this thread."""
        core = self._core
        ledger = core.answering
        at = self.coordinate() if self._asks_first else None
        with ledger.snapshot() as database:
            valid, tx = at or self.coordinate()
            return answer(Point(database, valid, tx, core.vocabulary), *args, **named)

    def _count_access(self, ids: Iterable[str]) -> None:
        """Count one lookup of each of these things."""
        self._core.accesses.count(ids)

    @overload
    def reading(self, *, ahead: Instant = ...) -> AbstractContextManager[Sight]: ...
    @overload
    def reading(
        self, *, ahead: Instant = ..., is_narrow: bool
    ) -> AbstractContextManager[Sight | WorkingSight]: ...
    @contextmanager
    def reading(self, *, ahead: Instant = -OPEN, is_narrow: bool = False) -> Iterator[Any]:
        """What stands here as numbers, for functions that look at it and write: one coordinate, with nothing written meanwhile.

        A context manager; what it gives is valid inside the block alone. `ahead`: a valid time to read at if it is later. `is_narrow`: no more is looked at
        than ids lead to, so a transaction has it without rows. A store that lies elsewhere refuses: register the function, and it runs where the store is.
        """
        core = self._core
        if is_narrow and core.is_worker:
            valid, tx = self.coordinate()
            with core.on_working_set():
                sight = working_sight.WorkingSight(core, max(valid, ahead), tx)
            yield sight
            return
        ledger = core.answering
        at = self.coordinate() if self._asks_first else None
        with ledger.snapshot() as database, no_collecting():
            valid, tx = at or self.coordinate()
            yield sights.sight_of(core, Point(database, max(valid, ahead), tx, core.vocabulary))

    @property
    def _why_closed(self) -> str | None:
        """Return why nothing can be read any more, None while reads are possible."""
        return self._core.closed

    def _is_brief(self, id: object, *, now: bool = False) -> bool:
        """Return True if a point read of an id is cheap: few rows, links and bytes, and its standing is known without waiting. `now`: read at the current coordinate, where
        standings may be cached."""
        return ids.is_brief(Point(self._core.rows.database, OPEN, OPEN), id)

    def pinned(self, valid: Instant, tx: Instant) -> View:
        """A view of the same trunk or branch at exactly this coordinate, which is not looked at again."""
        return View(self._core, valid, tx)

    def setting(self, name: str) -> Any:
        """The value of a setting of the store, None when it was never set."""
        return self._by_rows(settings.setting, name)

    def _reads_as(self, other: Reader) -> bool:
        """Return True if another view or store reads the same trunk or branch."""
        return self._core is other._core

    def knows(self, id: str) -> bool:
        """Whether a node or event has exactly this id and was recorded by the view's tx, whatever became of it."""
        return self._by_rows(ids.knows, id)

    def scan(
        self,
        kind: str | None = None,
        *,
        key: str | None = None,
        scope: str | None = None,
        tag: str | None = None,
        events: bool = False,
        content: bool = False,
    ) -> list[Row]:
        """The nodes (with `events` the events) that stand at the coordinate as light rows, in the order they were first known.

        As `nodes`, many times faster: ids, numbers and instants as integers come from memory, contents are read with `content` or a `tag` only.
        Of a store that lies elsewhere it raises InvalidError: ask `nodes`, `events` or `query` there.
        """
        return self._by_rows(
            light_rows.scan, kind, key=key, scope=scope, tag=tag, events=events, content=content
        )

    @property
    def at(self) -> Coordinate:
        """The coordinate of these answers."""
        valid, tx = self.coordinate()
        return Coordinate(valid=moment(min(valid, OPEN)), tx=moment(tx))

    @property
    def vocabulary(self) -> Vocabulary:
        """The link kinds there are, those the store defined for itself included."""
        return self._core.vocabulary

    def whole_id(self, text: str) -> str:
        """The whole id that a person means: a unique beginning (6 characters or more) of an id that the store made is made whole, of a node, an event
        or a link known at the view's tx; with `-v{n}` behind it too. Any other text is given back: no other call takes a beginning for an id.

        Raises NotFoundError where several ids begin so.
        """
        return self._by_rows(ids.whole_id, text)

    # ------------------------------------------------------------------ one thing

    def node(self, id: str) -> Node:
        """The node as it stands at the coordinate.

        Raises NotFoundError when it does not stand there: the message names its standing and its successor.
        """
        return self._by_rows(described.node, id)

    def event(self, id: str) -> Event:
        """The event, when it has happened by the coordinate and is believed there. Raises NotFoundError otherwise."""
        return self._by_rows(described.event, id)

    @overload
    def history(self, id: LinkId) -> list[Link]: ...  # type: ignore[overload-overlap]
    @overload
    def history(self, id: str) -> list[Version]: ...
    def history(self, id: str) -> list[Version] | list[Link]:
        """Every row of the node, or of the link, believed at the view's tx, over all valid time, by valid_from."""
        return self._by_rows(described.history, id)

    @overload
    def versions(self, id: LinkId) -> list[Link]: ...  # type: ignore[overload-overlap]
    @overload
    def versions(self, id: str) -> list[Version]: ...
    def versions(self, id: str) -> list[Version] | list[Link]:
        """Every row of the node, or of the link, ever believed up to the view's tx, by (tx_from, valid_from): what was recorded, and until when it
        was believed."""
        return self._by_rows(described.versions, id)

    def diff(self, id: str, old: int, new: int) -> list[FieldChange]:
        """What changed in the content from version `old` to version `new`, as paths. Raises NotFoundError for an unknown number and where the contents
        were forgotten, InvalidError for what is no number of a version."""
        return self._by_rows(described.diff, id, old, new)

    def operations(self, id: str) -> list[Change]:
        """What was done to one thing, or to one link by its whole id, up to the view's tx, oldest first: who recorded it, when and why.

        An operation on another thing that closed a part of this one is among them. Raises NotFoundError for an unknown id.
        """
        return self._by_rows(operations.operations, id)

    @overload
    def inspect(self, id: LinkId) -> LinkInspection: ...  # type: ignore[overload-overlap]
    @overload
    def inspect(self, id: str) -> Inspection: ...
    def inspect(self, id: str) -> Inspection | LinkInspection:
        """One thing with any standing, its links both ways, its believed history, and what it rests on; of a link its ends and its believed periods."""
        return self._by_rows(shaken.inspect_with_grounds, id)

    # ------------------------------------------------------------------ many things

    def nodes(
        self,
        kind: str | None = None,
        *,
        key: str | None = None,
        scope: str | None = None,
        tag: str | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> list[Node]:
        """The nodes that stand at the coordinate, in the order they were first known; filters are ANDed.

        `content`: fields of the content and their values, such as `{"session": "s1"}`.
        """
        return self._by_rows(described.nodes, kind, key=key, scope=scope, tag=tag, content=content)

    def events(
        self,
        type: str | None = None,
        *,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        related_to: str | None = None,
        pattern: str | None = None,
    ) -> list[Event]:
        """The events that have happened by the coordinate, newest `occurred_at` first; filters are ANDed.

        `since` and `until`: an occurrence of it lies in [since, until). `related_to`: linked with that id either way. `pattern`: part of the
        description, whatever the case. Raises InvalidError when `since` is after `until`.
        """
        return self._by_rows(
            described.events, type, since=since, until=until, related_to=related_to, pattern=pattern
        )

    def compare(self, other: Reader) -> ViewDiff:
        """What `other` has that this has not (added), the other way round (removed), and nodes with another content, text or tags (changed).

        `other` may be a view of a branch.
        """
        here, there = self._both(other)
        if here._reads_as(there):
            return here._by_rows(differing.compare, *there.coordinate())
        return here._by_rows(
            lambda point: differing.compare_lines(point, there._point(), here._shares_rows(there))
        )

    def changes_to(self, other: Reader) -> Result:
        """What is otherwise at another coordinate, as a table of one row for each field: id, kind, change (added, removed, changed), field, old and new value as
        JSON text, the period of the description that is there (of what is removed: that was), and who said it, or took it away, and why."""
        from graphstore.graph.result import Result

        here, there = self._both(other)
        if here._reads_as(there):
            rows = here._by_rows(differing.field_rows, *there.coordinate())
        else:
            rows = here._by_rows(
                lambda point: differing.field_rows_of_lines(point, there._point(), here._shares_rows(there))
            )
        types = ["STRING"] * 6 + ["TIMESTAMP"] * 2 + ["STRING"] * 2
        return Result(differing.FIELDS, rows, types=types)

    def _both(self, other: Reader) -> tuple[View, View]:
        """Return this and another view of the same store. Raises InvalidError for anything else."""
        if not isinstance(other, Reader) or other._asked_of is not self._asked_of:
            raise InvalidError("compare wants another view of the same store.")
        here = self.fixed()
        if isinstance(self, View) or isinstance(other, View):
            return here, other.fixed()
        return here, other.pinned(*here.coordinate())  # two stores at the same instant

    @property
    def _asked_of(self) -> object:
        """Return the ledger that is read. Readers of the same ledger can be compared."""
        return self._core.journal

    def _shares_rows(self, other: Reader) -> bool:
        """Return True if rows of another reader with the same numbers are the same rows."""
        return other._core.journal is self._core.journal

    def fixed(self) -> View:
        """A view itself, of a store one of now."""
        raise NotImplementedError

    def _point(self) -> Point:
        """Return this coordinate of the rows of the ledger."""
        core = self._core
        return Point(core.answering.database, *self.coordinate(), core.vocabulary)

    # ------------------------------------------------------------------ links

    def links_from(
        self,
        id: str,
        kinds: Iterable[str] | str = (),
        *,
        group: str | None = None,
        strength: int | None = None,
        confidence: str | None = None,
        created_by: str | None = None,
    ) -> list[Link]:
        """The links that hold at the coordinate with this as their source, by (valid_from, tx_from, id); symmetric ones from either end.

        An inverse name among `kinds` (`causes`) gives those links turned round, under that name. `strength`: at least so strong; a link without
        one counts as 3.
        """
        return self._by_rows(
            linked.links_from,
            id,
            kinds,
            group=group,
            strength=strength,
            confidence=confidence,
            created_by=created_by,
        )

    def backlinks_to(
        self,
        id: str,
        kinds: Iterable[str] | str = (),
        *,
        group: str | None = None,
        strength: int | None = None,
        confidence: str | None = None,
        created_by: str | None = None,
    ) -> list[Link]:
        """The links that hold at the coordinate with this as their target: otherwise as `links_from`."""
        return self._by_rows(
            linked.backlinks_to,
            id,
            kinds,
            group=group,
            strength=strength,
            confidence=confidence,
            created_by=created_by,
        )

    def link_history(self, source: str, kind: str, target: str) -> list[Link]:
        """Every period believed at the view's tx of every link that says `source kind target`, by (valid_from, tx_from, id), as it is stored.

        `kind` may be an inverse name, and of a symmetric kind either end may come first. Raises NotFoundError for an unknown end, InvalidError for an
        unknown kind.
        """
        return self._by_rows(linked.link_history, source, kind, target)

    def supersedes(self, id: str) -> list[Link]:
        """What this supersedes: each thing once, by its `supersedes` link or else by its `transition`."""
        links = self.links_from(id, ("supersedes", "transition"))
        replaced = {link.target for link in links if link.kind == "supersedes"}
        return [link for link in links if link.kind == "supersedes" or link.target not in replaced]

    @overload
    def what_superseded(self, id: LinkId) -> LinkSupersession: ...  # type: ignore[overload-overlap]
    @overload
    def what_superseded(self, id: str) -> Supersession: ...
    def what_superseded(self, id: str) -> Supersession | LinkSupersession:
        """What became of a thing, over all valid time: each step away from it, who, why, since when and when recorded; and what stands now.

        `id` may be `{id}-v{n}`: then newer versions of the same node are steps as well. Of a link: how it was unlinked, said again otherwise or ended
        at the view's valid time, and whether it holds.
        """
        return self._by_rows(superseding.what_superseded, id)

    def causes(self, id: str, depth: int = 5) -> Chain:
        """What led to this, nearest first, at most `depth` links away."""
        return self._by_rows(chains.causes, id, depth)

    def effects(self, id: str, depth: int = 5) -> Chain:
        """What this led to, nearest first, at most `depth` links away."""
        return self._by_rows(chains.effects, id, depth)

    def walk(
        self,
        ids: Iterable[str] | str,
        kinds: Iterable[str] | str = (),
        hops: int = 2,
        direction: Direction = "both",
    ) -> Chain:
        """What lies around the ids, at most `hops` links away: the nearest first, the first id as root. By default along all kinds that are walked.

        `direction`: `out` from source to target, `in`, or `both`. An inverse name among `kinds` is walked the other way round.
        """
        return self._by_rows(walks.walk, ids, kinds, hops, direction)

    def paths(
        self,
        source: str,
        target: str,
        kinds: Iterable[str] | str = (),
        direction: Direction = "out",
        limit: int = 100,
        depth: int = 10,
    ) -> list[Chain]:
        """Every path along links whose `valid_from` never goes back, that passes nothing twice and has at most `depth` hops.

        Ordered by (hops, arrival, link ids). With `both` also those along which it never goes forward, and chains of causes, whenever
        their links began: see `View.path`. Where there are more than `limit`, the last one given is `truncated`.
        """
        return self._by_rows(
            walks.paths, source, target, kinds, direction=direction, limit=limit, depth=depth
        )

    def grounds(self, id: str) -> Grounds:
        """Return what a thing rests on here: its foundations, how many of them still stand, which were invalidated, how, when and why, and what makes the
        thing shaky. Raises NotFoundError for an unknown id.
        """
        return self._by_rows(shaken.grounds, id)

    def shaky(self, limit: int | None = None) -> list[Shaky]:
        """What stands here and rests on something that has fallen since it was last revised or confirmed: the latest fall first, then the nearest to it.

        Each with the fallen thing, the links from it to there, how and why it fell. Revising or confirming a thing clears it.
        """
        return self._by_rows(shaken.shaky, limit)

    def contradictions(
        self,
        settled: bool = False,
        candidates: bool = True,
        limit: int | None = None,
        of: str | None = None,
    ) -> list[Contradiction]:
        """What cannot both be right and both stands: pairs that `contradicts` links join, then candidates: pairs of nodes of one scope that speak of
        the same with different values (`link` is None, `about` says of what): one slot, one field of one subject, one topic tag. Each the newer first.

        `settled=True` adds pairs that are decided or of which one no longer stands. `limit`: at most so many. `of`: those of this id alone; of
        candidates those in its slot, with its tags or nearest in words. Raises NotFoundError for an unknown `of`.
        """
        with self.reading() as sight:
            ent = None if of is None else sight.resolve(of)[0]
            return conflicts.contradictions(
                sight, settled=settled, candidates=candidates, limit=limit, of=ent
            )

    def warnings_of(self, ids: Iterable[str] | str) -> list[WriteWarnings]:
        """What stands when these things hold and says the same (`similar`) or may contradict them (`maybe_contrary`), one answer for each id, as a
        write with `warn=True` returns it. Compared are the things of the same scope that share the key, a tag or words, and those nearest in meaning
        where the store has an embedder. Raises NotFoundError for an unknown id.
        """
        from graphstore.view import write_warnings

        return write_warnings.warnings_of(self, given_ids("ids", ids))

    def joinable(self, limit: int | None = None) -> list[JoinCandidate]:
        """Pairs of nodes that stand here and may be one thing: of one kind and scope, with one name (whatever its case and composition) or nearly the same
        statement. The newest first; at most `limit`. The store never joins them by itself: each has the call that does, and the one that states that
        they are two things.
        """
        with self.reading() as sight:
            return join_candidates.candidates(sight, whole_number("limit", limit))

    def contradiction(self, one: str, other: str) -> Contradiction:
        """The contradiction between two things, decided or not. Two that are no candidates are compared by their words, as `warnings_of` does. Raises
        NotFoundError when no link records one and they do not seem to disagree."""
        from graphstore.view import vector_search

        with self.reading() as sight:
            meaning = partial(vector_search.cosine, self)
            return conflicts.between(sight, sight.resolve(one)[0], sight.resolve(other)[0], meaning)

    # ------------------------------------------------------------------ the graph

    def query(self, cypher: str, *, limits: QueryLimits | None = LIMITS, **params: Any) -> Result:
        """Any reading Cypher over exactly this view's graph: no temporal predicate has to be written.

        `limits=None`: for a text or an answer of any size; so no parameter of a text can be named $limits. Raises QueryError for a text that
        writes, misses a parameter, is larger or nested deeper than is allowed, or does not run.
        """
        from graphstore.graph import macros

        if "VALID_TIME" in str(cypher).upper():
            return self._query_periods(cypher, params, limits)
        core = self._core
        given = macros.with_coordinate(cypher, params, self._axis)
        return core.graphs.query(core, self.coordinate, cypher, given, limits)

    def _query_periods(self, cypher: str, params: Mapping[str, Any], limits: QueryLimits | None) -> Result:
        """Return the answer of a query that mentions VALID_TIME. With FOR VALID_TIME at its start, it covers all periods of a span."""
        from graphstore.graph import macros, period_graph

        core, where = self._core, self.coordinate
        span = None
        clause = period_graph.clause_of(cypher, params, limits)
        if clause is not None:
            valid, tx = where()
            cypher, params = clause.text, clause.params
            since, until = (
                None
                if each is None
                else self.instant_of(each, "valid", "valid", "as of" if clause.is_instant else "from")
                for each in (clause.since, clause.until)
            )
            if clause.is_instant:
                valid = since or valid
            else:
                span = period_graph.of_clause(since, until, tx)

            def where() -> tuple[Instant, Instant]:
                return valid, tx

        given = macros.with_coordinate(cypher, params, self._axis)
        return core.graphs.query(core, where, cypher, given, limits, span)

    def _at_each(
        self, at: Sequence[tuple[Instant, Instant]], axis: Axis, cypher: str, params: Mapping[str, Any]
    ) -> list[Result] | None:
        """Return the answers of a query at coordinates that differ on one axis; None if no single graph holds them all."""
        return self._core.graphs.at_each(self._core, at, axis, cypher, params)

    def _axis(self, axis: Axis, value: TimeLike | None) -> Instant:
        """Return a time on an axis; the default is that of this view."""
        if value is not None:
            return self.instant_of(value, axis, axis, "as of")
        valid, tx = self.coordinate()
        return valid if axis == "valid" else tx

    def to_arrow(self) -> pyarrow.Table:
        """The nodes that stand here as one Arrow table: id, kind, key, scope, number, content (JSON text), text, tags, …"""
        from graphstore.graph.graph_from_rows import nodes_as_table

        return self._by_rows(nodes_as_table)

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """What stands here as a networkx MultiDiGraph: node attributes are the fields of Node or Event, edge keys are link ids."""
        import networkx

        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        things, links = self._by_rows(described.whole_view)
        for thing in things:
            graph.add_node(thing.id, **thing.model_dump(exclude={"links"}))  # links are the edges
        for link in links:
            graph.add_edge(link.source, link.target, key=link.id, **link.model_dump())
        return graph


class View(Reader):
    """The graph at one coordinate. It never changes; make as many as you like."""

    __slots__ = ("_core", "_tx", "_valid")

    def __init__(self, core: Core, valid: Instant, tx: Instant) -> None:
        self._core = core
        self._valid = valid
        self._tx = tx

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return the valid time and the tx of this view, in microseconds since 1970."""
        self._core.refuse_closed()
        return self._valid, self._tx

    def fixed(self) -> View:
        """Return this view."""
        return self

    @property
    def _folder(self) -> Path | None:
        """Return the folder of its store; None in memory."""
        vectors = self._core.vectors
        return None if vectors is None else vectors.folder

    def path(
        self,
        source: str,
        target: str,
        kinds: Iterable[str] | str = (),
        by: By = "hops",
        direction: Direction = "out",
        depth: int | None = None,
    ) -> Chain:
        """The best path along links whose `valid_from` never goes back: by fewest `hops`, or by earliest `arrival` (of the last link).

        With `direction="both"` also those along which it never goes forward, and chains of causes either way, whenever their links began: so from
        an effect to whatever `causes` finds there is one. Of as many hops, and by arrival, those forward in time come first.
        Its nodes and links are in the order of the path; that from a thing to itself has none. `depth`: at most so many hops.
        Raises NotFoundError when there is no path. A view's alone: the `path` of a store is its folder.
        """
        return self._by_rows(walks.path, source, target, kinds, by=by, direction=direction, depth=depth)

    def __repr__(self) -> str:
        return f"<View valid {exactly(self._valid)}, as known at {exactly(self._tx)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (id(self._core), self._valid, self._tx) == (id(other._core), other._valid, other._tx)

    def __hash__(self) -> int:
        return hash((id(self._core), self._valid, self._tx))
