"""Reads a store at one coordinate from the rows of its ledger; within a verb, from its working set.

`Reader` holds the reads; a `View` is a reader whose coordinate never changes, a `GraphStore` one whose coordinate is now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.read import causal_chains, conflicts, hops, light_rows, link_fate, shaken, view_diff
from graphstore.core.read.from_rows import rows_first, working_set_first
from graphstore.core.read.row_sight import row_sight
from graphstore.core.read.rows import Row, of_sentence
from graphstore.core.read.sight import Core, Sight
from graphstore.core.read.succession import Succession
from graphstore.core.tables.guard import LIMITS, Limits
from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.database import Readable
from graphstore.read import (
    chains,
    contradicting,
    described,
    differing,
    event_list,
    ids,
    inspected,
    linked,
    operations,
    settings,
    superseding,
    walking,
    walks,
    whole_view,
)
from graphstore.read.points import NotInRows, Point
from graphstore.read.walks import By, Direction
from graphstore.values import content_diff as differences
from graphstore.values.coordinates import Axis, resolve
from graphstore.values.inputs import at_least_one, json_object, optional_text, text_of, whole_number
from graphstore.values.link_filter import ALL, link_filter
from graphstore.values.models import (
    Chain,
    Change,
    Contradiction,
    Coordinate,
    Event,
    FieldChange,
    Inspection,
    Link,
    LinkId,
    LinkInspection,
    LinkSupersession,
    Node,
    Shaky,
    Snapshot,
    Supersession,
    Version,
    ViewDiff,
)
from graphstore.values.painter import Painted
from graphstore.values.period import OPEN, Instant, Period, TimeLike, bounds, exactly, instant, moment
from graphstore.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    import networkx
    import pyarrow

    from graphstore.core.tables.engine import Result


Read = TypeVar("Read", bound=Callable[..., Any])
T = TypeVar("T")

_FEW, _SHORT = 64, 64 << 10  # rows and links, and bytes, that are read in microseconds
_TRIES = 2


def unlocked(read: Read) -> Read:
    """A read that holds no lock: it neither waits for who writes nor keeps anybody waiting.

    What is written meanwhile has a later tx than any reader's and is passed over. When the `Epoch` of the store moved on, or a column was shorter than
    another, it reads again, in the end with the lock held.
    """

    @wraps(read)
    def reading(self: Reader, *args: Any, **named: Any) -> Any:
        if named or len(args) != 1 or type(args[0]) is not str:
            args = tuple(map(_again, args))
            named = {name: _again(value) for name, value in named.items()}
        epoch = self._core.epoch
        for _ in range(_TRIES):
            number = epoch.number
            if epoch.under_way:
                break
            here = self._pinned_now()
            try:
                found = read(here, *args, **named)
            except GraphStoreError:
                if epoch.number == number and (here is self or here._is_undisturbed()):
                    raise
            except (
                Exception
            ):  # a column was too short for a moment; what fails with the lock held too is raised
                pass
            else:
                if epoch.number == number and (here is self or here._is_undisturbed()):
                    return found
        with self._core.lock:
            return read(self, *args, **named)

    return cast(Read, reading)


def _again(value: Any) -> Any:
    """An argument that can be read twice."""
    return tuple(value) if hasattr(value, "__next__") else value


class Reading:
    """The store's lock held for as long as something is read at one coordinate: `with view.reading() as sight`."""

    __slots__ = ("_ahead", "_is_narrow", "_lock", "_reader", "_snapshot")

    def __init__(self, reader: Reader, ahead: Instant, is_narrow: bool) -> None:
        self._reader, self._ahead, self._lock = reader, ahead, reader._core.lock
        self._is_narrow = is_narrow
        self._snapshot: AbstractContextManager[Readable] | None = None

    def __enter__(self) -> Sight:
        self._lock.acquire()
        try:
            core, (valid, tx) = self._reader._core, self._reader._coordinate()
            valid = max(valid, self._ahead)
            if self._is_narrow and core.is_worker:
                with core.on_working_set():
                    return Sight(core, valid, tx)
            ledger = core.answering
            if ledger is None:
                return Sight(core, valid, tx)
            snapshot = ledger.snapshot()
            point = Point(snapshot.__enter__(), valid, tx, core.vocabulary)
            self._snapshot = snapshot
            return row_sight(core, core.journal, point)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            if self._snapshot is not None:
                self._snapshot.__exit__(None, None, None)
        finally:
            self._lock.release()


class Reader(Painted):
    """The reads, at the coordinate that `_coordinate` gives."""

    _core: Core

    def _coordinate(self) -> tuple[Instant, Instant]:
        raise NotImplementedError

    def _pinned_now(self) -> View:
        """What answers one read beside the writer, at one coordinate: a view itself, of a store its view of now."""
        raise NotImplementedError

    def _is_undisturbed(self) -> bool:
        """Whether no transaction has begun that this would see and should not."""
        return True

    def _time(self, value: TimeLike, what: str, axis: Axis = "valid") -> Instant:
        """The instant of an argument; ages such as `7d` count back from the valid time of these answers."""
        if not isinstance(value, str):
            return instant(value, what)
        return resolve(value, what, instant(self.at.valid), self._names, axis=axis)

    def _bounds(self, since: TimeLike | None, until: TimeLike | None, axis: Axis = "valid") -> Period:
        """The instants of `since` and `until`, each open when it is None. Raises InvalidError when the first is after the second."""
        return bounds(
            -OPEN if since is None else self._time(since, "since", axis),
            OPEN if until is None else self._time(until, "until", axis),
        )

    def _known_by(self, tx: TimeLike) -> Instant:
        """The instant of a tx that these answers know of. Raises InvalidError for a later one."""
        at, known = self._time(tx, "tx", "tx"), self._coordinate()[1]
        if at > known:
            raise InvalidError(f"tx {exactly(at)} is later than {exactly(known)}, that of these answers.")
        return at

    def _names(self) -> list[Snapshot]:
        """The snapshots whose names may stand for a time."""
        return self._core.snapshots(self._coordinate()[1])

    def _sight(self) -> Sight:
        return Sight(self._core, *self._coordinate())

    @unlocked
    def _looked(self, look: Callable[[Sight], T], ahead: Instant = -OPEN) -> T:
        """What a function finds here, at one coordinate and beside whoever writes. It may be called again: it keeps nothing but in what it gives."""
        valid, tx = self._coordinate()
        return look(Sight(self._core, max(valid, ahead), tx))

    def _searched(self, look: Callable[[Sight], T]) -> T:
        """Do as `_looked`, with a function that searches and looks at few things: rows answer it, within a verb its working set."""
        core = self._core
        ledger = core.answering
        if ledger is None and not core.is_worker and not core.index.pending:
            ledger = core.rows
        if ledger is not None:
            with suppress(NotInRows):
                valid, tx = self._coordinate()
                with ledger.snapshot() as database, no_collecting():
                    point = Point(database, valid, tx, core.vocabulary)
                    return look(row_sight(core, core.journal, point))
        return self._looked(look)

    def _count_access(self, ids: Iterable[str]) -> None:
        """Count these things as looked up, once each."""
        self._core.accesses.count(ids)

    def reading(self, *, ahead: Instant = -OPEN, is_narrow: bool = False) -> Reading:
        """What stands here as numbers, for functions that look at it and write: one coordinate, with nothing written meanwhile.

        A context manager; what it gives is valid inside the block alone. `ahead`: a valid time to read at if it is later. `is_narrow`: no more is looked at
        than ids lead to, so a transaction has it without rows. A store that lies elsewhere refuses: register the function, and it runs where the store is.
        """
        return Reading(self, ahead, is_narrow)

    @property
    def _why_closed(self) -> str | None:
        """Why nothing can be read any more, None while it can."""
        return self._core.closed

    def _is_brief(self, id: object, *, now: bool = False) -> bool:
        """Whether a point read of an id looks at little and waits for nothing: few rows, links and bytes, and nothing that rests on what may have
        fallen, unless it is asked as is known `now` and how it stands is kept."""
        return ids.is_brief(Point(self._core.rows.database, OPEN, OPEN), id)

    def _pinned(self, valid: Instant, tx: Instant) -> View:
        """A view of the same trunk or branch at exactly this coordinate, which is not looked at again."""
        return View(self._core, valid, tx)

    @rows_first(settings.setting)
    @unlocked
    def _setting(self, name: str) -> Any:
        """The value of a setting of the store, None when it was never set."""
        return self._core.index.setting(name)

    def _reads_as(self, other: Reader) -> bool:
        """Whether another view or store reads the same trunk or branch."""
        return self._core is other._core

    @working_set_first(ids.knows)
    @unlocked
    def knows(self, id: str) -> bool:
        """Whether a node or event has exactly this id and was recorded by the view's tx, whatever became of it."""
        sight = self._sight()
        return sight.entity(id) >= 0

    @rows_first(light_rows.scan)
    @unlocked
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
        _refuse_no_text(kind=kind, scope=scope, tag=tag)
        sight = self._sight()
        return list(sight.scan(kind=kind, key=key, scope=scope, tag=tag, events=events, content=content))

    @property
    def at(self) -> Coordinate:
        """The coordinate of these answers."""
        valid, tx = self._coordinate()
        return Coordinate(valid=moment(min(valid, OPEN)), tx=moment(tx))

    @property
    def vocabulary(self) -> Vocabulary:
        """The link kinds there are, those the store defined for itself included."""
        return self._core.vocabulary

    @rows_first(ids.whole_id)
    @unlocked
    def whole_id(self, text: str) -> str:
        """The whole id that a person means: a unique beginning (6 characters or more) of an id that the store made is made whole, of a node, an event
        or a link known at the view's tx; with `-v{n}` behind it too. Any other text is given back: no other call takes a beginning for an id.

        Raises NotFoundError where several ids begin so.
        """
        return self._sight().whole_id(text_of("id", text))

    # ------------------------------------------------------------------ one thing

    @working_set_first(described.node)
    @unlocked
    def node(self, id: str) -> Node:
        """The node as it stands at the coordinate.

        Raises NotFoundError when it does not stand there: the message names its standing and its successor.
        """
        sight = self._sight()
        index = sight.index
        ent, number = sight.resolve(id)
        if index.is_event[ent]:
            raise InvalidError(f"{index.names[ent]!r} is an event. Read it with event({index.names[ent]!r}).")
        if number:
            return sight.described(ent, number)
        row = index.find(ent, sight.valid, sight.tx)
        if row < 0:
            raise NotFoundError(sight.absence(ent))
        return sight.node(row, sight.upright(ent))

    @working_set_first(described.event)
    @unlocked
    def event(self, id: str) -> Event:
        """The event, when it has happened by the coordinate and is believed there. Raises NotFoundError otherwise."""
        sight = self._sight()
        index = sight.index
        ent, _ = sight.resolve(id)
        if not index.is_event[ent]:
            raise InvalidError(f"{index.names[ent]!r} is a node. Read it with node({index.names[ent]!r}).")
        row = sight.find(ent)
        if row < 0:
            raise NotFoundError(sight.absence(ent))
        return sight.event(row, sight.standing(ent), sight.links_of(ent))

    @overload
    def history(self, id: LinkId) -> list[Link]: ...  # type: ignore[overload-overlap]
    @overload
    def history(self, id: str) -> list[Version]: ...
    @rows_first(described.history)
    @unlocked
    def history(self, id: str) -> list[Version] | list[Link]:
        """Every row of the node, or of the link, believed at the view's tx, over all valid time, by valid_from."""
        sight = self._sight()
        link = link_fate.named(sight, id)
        if link >= 0:
            return [sight.link(row) for row in sight.believed_link(link)]
        return [sight.version(row) for row in sight.index.believed(sight.resolve_node(id), sight.tx)]

    @overload
    def versions(self, id: LinkId) -> list[Link]: ...  # type: ignore[overload-overlap]
    @overload
    def versions(self, id: str) -> list[Version]: ...
    @rows_first(described.versions)
    @unlocked
    def versions(self, id: str) -> list[Version] | list[Link]:
        """Every row of the node, or of the link, ever believed up to the view's tx, by (tx_from, valid_from): what was recorded, and until when it
        was believed."""
        sight = self._sight()
        link = link_fate.named(sight, id)
        if link >= 0:
            return [sight.link(row) for row in link_fate.recorded(sight, link)]
        index = sight.index
        rows = [row for row in index.rows_of[sight.resolve_node(id)] if index.r_tx[row] <= sight.tx]
        rows.sort(key=lambda row: (index.r_tx[row], index.r_from[row]))
        return [sight.version(row) for row in rows]

    @rows_first(described.diff)
    @unlocked
    def diff(self, id: str, old: int, new: int) -> list[FieldChange]:
        """What changed in the content from version `old` to version `new`, as paths. Raises NotFoundError for an unknown number and where the contents
        were forgotten, InvalidError for what is no number of a version."""
        for name, number in (("old", old), ("new", new)):
            at_least_one(name, number)
        sight = self._sight()
        ent = sight.resolve_node(id)
        first, second = (sight.content(ent, number) for number in (old, new))
        if gone := sight.index.word(ent):
            raise NotFoundError(
                f"the contents of {sight.index.names[ent]!r} were {gone}: they cannot be compared."
            )
        return differences.diff(first, second)

    @rows_first(operations.operations)
    @unlocked
    def operations(self, id: str) -> list[Change]:
        """What was done to one thing, or to one link by its whole id, up to the view's tx, oldest first: who recorded it, when and why.

        An operation on another thing that closed a part of this one is among them. Raises NotFoundError for an unknown id.
        """
        sight = self._sight()
        return [sight.change(op) for op in sight.operations(id)]

    @overload
    def inspect(self, id: LinkId) -> LinkInspection: ...  # type: ignore[overload-overlap]
    @overload
    def inspect(self, id: str) -> Inspection: ...
    @rows_first(inspected.inspect)
    @unlocked
    def inspect(self, id: str) -> Inspection | LinkInspection:
        """One thing with any standing, its links both ways, and its believed history; of a link its ends and its believed periods."""
        sight = self._sight()
        index = sight.index
        link = link_fate.named(sight, id)
        if link >= 0:
            return link_fate.inspected(sight, link)
        ent, number = sight.resolve(id)
        event = index.is_event[ent]
        node: Node | Event
        if event:
            node = sight.event_and_links(ent)
        else:
            node = sight.described(ent, number) if number else sight.thing(ent)
        return Inspection(
            node=node,
            links=tuple(
                link for link in hops.links(sight, ent, ALL, begins=True) if link.kind != hops.SAME_TOPIC
            ),
            backlinks=tuple(hops.stored(sight, index.into, ent)),
            same_topic=tuple(hops.links(sight, ent, hops.TOPIC, begins=True)),
            confirmations=sight.confirmations(ent),
            history=() if event else tuple(sight.version(row) for row in index.believed(ent, sight.tx)),
        )

    # ------------------------------------------------------------------ many things

    @rows_first(described.nodes)
    @unlocked
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
        _refuse_no_text(kind=kind, scope=scope, tag=tag)
        said = {} if content is None else json_object("content", content)
        sight = self._sight()
        found = []
        for ent in sight.entities(False, kind, key, scope):
            row = sight.find(ent)
            if row >= 0:
                node = sight.node(row, sight.upright(ent))
                told = node.content.items() if said else ()
                if (tag is None or tag in node.tags) and all(each in told for each in said.items()):
                    found.append(node)
        return found

    @rows_first(event_list.events)
    @unlocked
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
        _refuse_no_text(type=type, pattern=pattern)
        begin, end = self._bounds(since, until)
        bounded = since is not None or until is not None
        sight = self._sight()
        index = sight.index
        near = None if related_to is None else sight.neighbours(sight.resolve(related_to)[0])
        found = []
        types = None if type is None else (type,)
        for ent in sight.happening(begin, end, types) if near is None else sorted(near):
            row = sight.find(ent) if index.is_event[ent] else -1
            if row < 0 or (type is not None and index.kind[ent] != type):
                continue
            if bounded and not any(begin <= at < end for at in sight.happened.instants(ent)):
                continue
            event = sight.event(row, sight.standing(ent), sight.links_of(ent))
            if pattern is None or pattern.lower() in event.description.lower():
                found.append((-index.r_from[row], event.id, event))
        return [event for _, _, event in sorted(found, key=lambda each: each[:2])]

    def compare(self, other: Reader) -> ViewDiff:
        """What `other` has that this has not (added), the other way round (removed), and nodes with another content, text or tags (changed).

        `other` may be a view of a branch.
        """
        here, there = self._both(other)
        if here._reads_as(there):
            return here._compared_at(*there._coordinate())
        return here._compared(there)

    def changes_to(self, other: Reader) -> Result:
        """What is otherwise at another coordinate, as a table of one row for each field: id, kind, change (added, removed, changed), field, old and new value as
        JSON text, the period of the description that is there (of what is removed: that was), and who said it, or took it away, and why."""
        here, there = self._both(other)
        if here._reads_as(there):
            return here._changed_at(*there._coordinate())
        return here._changed(there)

    def _both(self, other: Reader) -> tuple[View, View]:
        """This and another view of the same store. Raises InvalidError for something else."""
        if not isinstance(other, Reader) or other._core.journal is not self._core.journal:
            raise InvalidError("compare wants another view of the same store.")
        two_stores = not (isinstance(self, View) or isinstance(other, View))
        with self._core.lock if two_stores else nullcontext():  # both at one now
            return self._fixed(), other._fixed()

    def _fixed(self) -> View:
        """A view itself, of a store one of now."""
        raise NotImplementedError

    @rows_first(differing.compare)
    @unlocked
    def _compared_at(self, valid: Instant, tx: Instant) -> ViewDiff:
        return view_diff.compare(self._sight(), self._core.sight(valid, tx))

    @rows_first(view_diff.field_changes_by_rows)
    @unlocked
    def _changed_at(self, valid: Instant, tx: Instant) -> Result:
        return view_diff.field_changes(self._sight(), self._core.sight(valid, tx))

    def _point(self) -> Point:
        """Return this coordinate of the rows of the ledger. Raises NotInRows within a verb."""
        ledger = self._core.answering
        if ledger is None:
            raise NotInRows
        return Point(ledger.database, *self._coordinate(), self._core.vocabulary)

    @rows_first(lambda point, other: differing.compare_lines(point, other._point()))
    @unlocked
    def _compared(self, other: View) -> ViewDiff:
        return view_diff.compare(self._sight(), other._sight())

    @rows_first(lambda point, other: view_diff.field_changes_of_lines(point, other._point()))
    @unlocked
    def _changed(self, other: View) -> Result:
        return view_diff.field_changes(self._sight(), other._sight())

    # ------------------------------------------------------------------ links

    @working_set_first(linked.links_from)
    @unlocked
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
        core, coordinate = self._core, self._coordinate()
        wanted = link_filter(core.vocabulary, kinds, group, strength, confidence, created_by)
        return hops.links_at(core, coordinate, id, wanted, begins=True)

    @working_set_first(linked.backlinks_to)
    @unlocked
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
        core, coordinate = self._core, self._coordinate()
        wanted = link_filter(core.vocabulary, kinds, group, strength, confidence, created_by)
        return hops.links_at(core, coordinate, id, wanted, begins=False)

    @rows_first(linked.link_history)
    @unlocked
    def link_history(self, source: str, kind: str, target: str) -> list[Link]:
        """Every period believed at the view's tx of every link that says `source kind target`, by (valid_from, tx_from, id), as it is stored.

        `kind` may be an inverse name, and of a symmetric kind either end may come first. Raises NotFoundError for an unknown end, InvalidError for an
        unknown kind.
        """
        sight = self._sight()
        said = sight.core.vocabulary.sentence(source, kind, target, "explicit")
        ends = sight.resolve(said.source)[0], said.kind, sight.resolve(said.target)[0]
        rows = [row for link in of_sentence(sight.index, *ends) for row in sight.believed_link(link)]
        return [sight.link(row) for row in sorted(rows, key=sight.link_order)]

    def supersedes(self, id: str) -> list[Link]:
        """What this supersedes: each thing once, by its `supersedes` link or else by its `transition`."""
        links = self.links_from(id, ("supersedes", "transition"))
        replaced = {link.target for link in links if link.kind == "supersedes"}
        return [link for link in links if link.kind == "supersedes" or link.target not in replaced]

    @overload
    def what_superseded(self, id: LinkId) -> LinkSupersession: ...  # type: ignore[overload-overlap]
    @overload
    def what_superseded(self, id: str) -> Supersession: ...
    @rows_first(superseding.what_superseded)
    @unlocked
    def what_superseded(self, id: str) -> Supersession | LinkSupersession:
        """What became of a thing: each step away from it with who, why, since when and when recorded; and what stands now.

        `id` may be `{id}-v{n}`: then newer versions of the same node are steps as well. Of a link: how it was unlinked, said again otherwise or ended
        at the view's valid time, and whether it holds.
        """
        sight = self._sight()
        link = link_fate.named(sight, id)
        if link >= 0:
            return link_fate.became(sight, link)
        return Succession(sight).of(*sight.resolve(id))

    @rows_first(chains.causes)
    @unlocked
    def causes(self, id: str, depth: int = 5) -> Chain:
        """What led to this, nearest first, at most `depth` links away."""
        return causal_chains.causes(self._sight(), id, depth)

    @rows_first(chains.effects)
    @unlocked
    def effects(self, id: str, depth: int = 5) -> Chain:
        """What this led to, nearest first, at most `depth` links away."""
        return causal_chains.effects(self._sight(), id, depth)

    @rows_first(walking.walk)
    @unlocked
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
        return walks.walk(causal_chains.IndexGround(self._sight()), ids, kinds, hops, direction)

    @rows_first(walking.paths)
    @unlocked
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
        return walks.paths(
            causal_chains.IndexGround(self._sight()), source, target, kinds, direction, limit, depth
        )

    @rows_first(shaken.shaky)
    @unlocked
    def shaky(self, limit: int | None = None) -> list[Shaky]:
        """What stands here and rests on something that has fallen since it was last revised or confirmed: the latest fall first, then the nearest to it.

        Each with the fallen thing, the links from it to there, how and why it fell. Revising or confirming a thing clears it.
        """
        most = whole_number("limit", limit)
        with no_collecting():
            sight = self._sight()
            return [sight.shaky(found) for found in islice(sight.resting.shaky_entities(), most)]

    @rows_first(contradicting.contradictions)
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

        def look(sight: Sight) -> list[Contradiction]:
            ent = None if of is None else sight.resolve(of)[0]
            return conflicts.contradictions(
                sight, settled=settled, candidates=candidates, limit=limit, of=ent
            )

        return self._searched(look)

    @rows_first(contradicting.contradiction)
    @unlocked
    def contradiction(self, one: str, other: str) -> Contradiction:
        """The contradiction between two things, decided or not. Raises NotFoundError when no link records one and they are no candidates."""
        sight = self._sight()
        return conflicts.between(sight, sight.resolve(one)[0], sight.resolve(other)[0])

    # ------------------------------------------------------------------ the graph

    def query(self, cypher: str, *, limits: Limits | None = LIMITS, **params: Any) -> Result:
        """Any reading Cypher over exactly this view's graph: no temporal predicate has to be written.

        `limits=None`: for a text or an answer of any size; so no parameter of a text can be named $limits. Raises QueryError for a text that
        writes, misses a parameter, is larger or nested deeper than is allowed, or does not run.
        """
        from graphstore.core.tables import macros

        if "VALID_TIME" in str(cypher).upper():
            return self._query_periods(cypher, params, limits)
        core = self._core
        given = macros.with_coordinate(cypher, params, self._axis)
        return core.graphs.query(core, self._coordinate, cypher, given, limits)

    def _query_periods(self, cypher: str, params: Mapping[str, Any], limits: Limits | None) -> Result:
        """The answer of a text that speaks of VALID_TIME: of all periods of a span where it begins with FOR VALID_TIME."""
        from graphstore.core.tables import macros, period_graph

        core, where = self._core, self._coordinate
        span = None
        if period_graph.begins_with_periods(cypher):
            valid, tx = where()
            clause = period_graph.clause_of(cypher, params, limits)
            cypher, params = clause.text, clause.params
            since, until = (
                None if each is None else self._time(each, "valid", "valid")
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
        """The answers of a text at coordinates that differ on one axis, when one graph of them all has them."""
        return self._core.graphs.at_each(self._core, at, axis, cypher, params)

    def _axis(self, axis: Axis, value: TimeLike | None) -> Instant:
        """A time of an axis, by default that of this view."""
        if value is not None:
            return self._time(value, axis, axis)
        valid, tx = self._coordinate()
        return valid if axis == "valid" else tx

    def to_arrow(self) -> pyarrow.Table:
        """The nodes that stand here as one Arrow table: id, kind, key, scope, number, content (JSON text), text, tags, …"""
        from graphstore.core.tables.graph_from_rows import nodes_as_table

        ledger = self._core.answering or self._core.rows
        assert ledger is not None
        valid, tx = self._coordinate()
        with ledger.snapshot() as database:
            return nodes_as_table(Point(database, valid, tx))

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """What stands here as a networkx MultiDiGraph: node attributes are the fields of Node or Event, edge keys are link ids."""
        import networkx

        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        found = self._whole()
        for thing in (*found.things, *found.absent):
            graph.add_node(thing.id, **_attributes(thing))
        for link in found.links:
            graph.add_edge(link.source, link.target, key=link.id, **link.model_dump())
        return graph

    @rows_first(whole_view.whole)
    @unlocked
    def _whole(self) -> whole_view.WholeView:
        """All that stands here, other things that links join, and the links that hold."""
        sight = self._sight()
        index = sight.index
        things: list[Node | Event] = [*self.nodes(), *self.events()]
        known = {thing.id for thing in things}
        rows = [row for link in range(len(index.l_name)) if (row := sight.held(link)) >= 0]
        links = [index.k_link[row] for row in rows]
        ends = dict.fromkeys(end for link in links for end in (index.l_src[link], index.l_tgt[link]))
        absent = [sight.thing(ent) for ent in ends if index.names[ent] not in known]
        return whole_view.WholeView(things, absent, [sight.link(row) for row in rows])


class View(Reader):
    """The graph at one coordinate. It never changes; make as many as you like."""

    __slots__ = ("_core", "_tx", "_valid")

    def __init__(self, core: Core, valid: Instant, tx: Instant) -> None:
        self._core = core
        self._valid = valid
        self._tx = tx

    def _coordinate(self) -> tuple[Instant, Instant]:
        self._core.refuse_closed()
        return self._valid, self._tx

    def _pinned_now(self) -> View:
        return self

    def _fixed(self) -> View:
        return self

    @property
    def _folder(self) -> Path | None:
        """Where its store lies; None in memory."""
        vectors = self._core.vectors
        return None if vectors is None else vectors.folder

    @rows_first(walking.path)
    @unlocked
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
        return walks.path(
            causal_chains.IndexGround(self._sight()), source, target, kinds, by, direction, depth
        )

    def __repr__(self) -> str:
        return f"<View valid {exactly(self._valid)}, as known at {exactly(self._tx)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (id(self._core), self._valid, self._tx) == (id(other._core), other._valid, other._tx)

    def __hash__(self) -> int:
        return hash((id(self._core), self._valid, self._tx))


def _refuse_no_text(**filters: str | None) -> None:
    """Raises InvalidError for a filter that is no text: nothing equals it, so the answer would be empty."""
    for name, value in filters.items():
        optional_text(name, value)


def _attributes(thing: Node | Event) -> dict[str, Any]:
    return thing.model_dump(exclude={"links"})  # they are the edges
