"""Read at one coordinate from the rows of a ledger, for functions that read few things."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, cast

from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import COUNTS
from graphstore.ledger.statements import Statement
from graphstore.read import settings
from graphstore.read.counted import counts
from graphstore.read.described import STANDINGS_OF, described, shown, standings, things
from graphstore.read.ids import beside, is_link, resolve
from graphstore.read.index_of_rows import NAMES, IndexOfRows, NamedEntity, Number
from graphstore.read.points import Point, as_json
from graphstore.read.standing_rules import Index
from graphstore.search.asserted import Asserted
from graphstore.search.lookups import Accesses, Counts
from graphstore.search.message_rows import MessageRows, fingerprints
from graphstore.search.name_rows import NameRows
from graphstore.search.row_search import RowSearch, ends_of, known_periods, known_versions
from graphstore.search.search import Matches
from graphstore.search.source import Source
from graphstore.values.keys import slot_name
from graphstore.values.models import Event, Link, Node, Snapshot
from graphstore.values.period import OPEN, Instant
from graphstore.values.vocabulary import Vocabulary
from graphstore.view import light_rows
from graphstore.view.core_state import Core
from graphstore.view.rows import LinkEdge, NumberedRows, Row

__all__ = ["Core", "Sight", "in_time", "sight_of"]

_MEMOS = 32


class TurningInstant(NamedTuple):
    """An instant at which something begins, ends or is recorded."""

    at: Instant


class LookedUp(NamedTuple):
    """Stores the counts of lookups that one operation recorded."""

    number: int
    tx: Instant
    data: bytes | None
    checksum: int | None


class VersionPeriod(NamedTuple):
    """Names a period in which a version holds."""

    number: int
    entity: int


class Made(NamedTuple):
    """Names the operation that made a link."""

    number: int
    verb: str


ENTITIES_OF = Statement("entities_of", Number)
HAPPENING = Statement("happening", Number)
LATEST = Statement("latest", Number)
TURNS = Statement("turns", TurningInstant)
TRANSACTIONS_BY = Statement("transactions_by", TurningInstant)
LOOKED_UP = Statement("looked_up", LookedUp)
LINK_MADE = Statement("link_made", Made)
LINKS_MADE = Statement("links_made", Number)
VERSION_PERIODS = Statement("version_periods", VersionPeriod)
_BELIEVED_BY = "SELECT version FROM period WHERE tx_from <= ? ORDER BY number"
CLOSING = Statement("closing", Number)
WRITTEN_AFTER = Statement("written_after", Number)


@dataclass
class RowCore(Source):
    """Shares state among the readers of a ledger's rows that answer one question."""

    point: Point
    search: RowSearch
    vocabulary: Vocabulary
    accesses: Accesses
    asserted: Asserted
    whole: Core
    operations: int = OPEN  # an upper bound of the committed operations
    versions: int = OPEN

    @cached_property
    def state(self) -> Hashable:
        """Return a key that changes when cached copies of the rows become invalid."""
        ends = ends_of(self.point)
        return "rows", ends.rewritten

    @cached_property
    def naming(self) -> NameRows:
        """Return the index of nodes by key and tag."""
        return NameRows(self.point, self.index)

    @cached_property
    def postings(self) -> MessageRows:
        """Return the message index."""
        return MessageRows(self.point)


class Sight(NumberedRows):
    """Reads the store at (valid, tx) from the rows of a ledger, each column when it is first needed. Suited to few things."""

    __slots__ = ()
    index: IndexOfRows

    # ------------------------------------------------------------------ ids

    def resolve(self, id: str) -> tuple[int, int]:
        """Return the entity with a full id, or with a reference `{id}-v{n}`, as known here; and n or 0."""
        entity, number = resolve(self.point, id)
        return entity.thing, number

    def ids_beside(self, id: str) -> list[str]:
        """Return the known ids that a misspelt id may mean."""
        return beside(self.point, id)

    def knows_link(self, id: str) -> bool:
        """Return True if a link with exactly this id was ever made."""
        return is_link(self.point, id)

    def links_made(self) -> int:
        """Return how many links were ever made."""
        return counts(self.point).links

    def made_by_now(self, links: Iterable[int]) -> set[int]:
        """Return the links among these that were made by the sight's tx."""
        return {row.number for row in self.point.rows(LINKS_MADE, numbers=as_json(list(links)))}

    def in_slot(self, kind: str | None, key: str, scope: str) -> Iterable[int]:
        """Return every node known here with a key in a scope, in the order they were first known. `kind`: None for any."""
        return self.entities(False, kind, key, scope)

    def closed_by(self, id: str) -> int:
        """Return the last operation that closed a row of a thing or link with exactly this id, for `change`; -1 if none did."""
        [row] = self.point.rows(CLOSING, id=id)
        return row.number

    def made_by(self, link: int) -> tuple[int, str]:
        """Return the operation that made a link, for `change`, and its verb."""
        [made] = self.point.rows(LINK_MADE, number=link)
        return made.number, made.verb

    # ------------------------------------------------------------------ lists of things

    def entities(
        self, events: bool, kind: str | None = None, key: str | None = None, scope: str | None = None
    ) -> Iterator[int]:
        """Return every node (or event) known here, in the order they were first known. Filters of None match everything; `kind` is the type of an event.

        Also reads their periods and versions.
        """
        slot = None if key is None else slot_name(key)
        rows = self.point.rows(ENTITIES_OF, events=bool(events), kind=kind, key=slot, scope=scope)
        ents = [row.number for row in rows]
        self.index.read_things(ents)
        return iter(ents)

    def of_kinds(self, kinds: Iterable[str], events: bool) -> list[int]:
        """Return every node (or event) of some kinds (or types) known here, in the order they were first known."""
        return sorted(chain.from_iterable(self.entities(events, kind) for kind in dict.fromkeys(kinds)))

    def happening(
        self, since: Instant = -OPEN, until: Instant = OPEN, types: Collection[str] | None = None
    ) -> list[int]:
        """Return the events known here that may have happened in [since, until) by here: all that did, and few others. `types`: None for all.

        They are in the order they were first known. Also reads everything that determines when they happened.
        """
        wanted = None if types is None else as_json(sorted(types))
        until = min(until, self.valid + 1)
        events = [row.number for row in self.point.rows(HAPPENING, since=since, until=until, types=wanted)]
        self.index.read_events(events)
        return events

    def fingerprints(self) -> Iterator[tuple[int, str]]:
        """Return every event that has a fingerprint, in the order they were recorded. Also reads everything that determines when they happened."""
        found = list(fingerprints(self.point))
        self.index.read_events(ent for ent, _ in found)
        return iter(found)

    def newest(self, most: int) -> list[int]:
        """Return the last recorded things that stand here, newest first."""
        return [row.number for row in self.point.rows(LATEST, most=most)]

    def names(self) -> list[NamedEntity]:
        """Return the ids and keys of all things, in the order in which they were first known."""
        return self.point.rows(NAMES)

    def recorded_beside(self, ent: int, distance: int) -> int:
        """Return the thing recorded `distance` places after another one (negative: before it); -1 if there is none."""
        place = ent % SPAN + distance
        return self.point.database.line.row("entity", place) if 0 <= place < self.index.count else -1

    def latest(self, most: int) -> tuple[list[int], int]:
        """Return the last recorded things that stand here, newest first, and the number of all that stand."""
        found = self.newest(1 << 62)
        return found[:most], len(found)

    def written_after(self, tx: Instant) -> set[int]:
        """Return the things with a row written after a transaction and by the sight's tx."""
        line = self.point.database.line
        first, stop = (line.row("period", known_periods(self.point, at)) for at in (tx, self.tx))
        return {row.number for row in self.point.rows(WRITTEN_AFTER, first=first, stop=stop)}

    def held_versions(self, versions: Iterable[int]) -> list[int]:
        """Return the rows of these versions that hold here, in the order in which they were recorded."""
        found = self.point.rows(VERSION_PERIODS, numbers=as_json(list(versions)))
        self.index.read_things([row.entity for row in found])
        return [row.number for row in found]

    def versions_ever(self) -> Iterable[int]:
        """Return every committed version believed by the sight's tx, in the order in which they were first believed. Also reads all about them."""
        committed = cast(RowCore, self.core).versions
        named = dict.fromkeys(version for (version,) in self.point.database.rows(_BELIEVED_BY, (self.tx,)))
        versions = [version for version in named if version % SPAN < committed]
        self.index.read_versions(versions)
        self.index.read_things(dict.fromkeys(self.index.v_ent[version] for version in versions))
        return versions

    def node_rows(self) -> list[int]:
        """Return the rows of all nodes that hold here, in the order in which the nodes were first known."""
        return self.index.read_held_nodes()

    def held_of(self, kinds: Collection[str]) -> list[int]:
        """Return the rows of all links of some kinds that hold here, in the order in which the links were made."""
        return [row for link in self.index.read_links_of(kinds) if (row := self.held(link)) >= 0]

    def edges_of(self, kinds: Collection[str]) -> Iterator[LinkEdge]:
        """Yield every link of these kinds ever made, in the order they were made."""
        return map(self._edge, self.index.read_links_ever(kinds))

    def tagged_versions(self, name: str) -> list[int]:
        """Return the versions with a tag that were recorded by now. `name`: the tag as topics name it."""
        tagged = self.core.naming.tagged(name)
        stop = self.point.database.line.row("version", known_versions(self.point))
        return list(tagged[: bisect_left(tagged, stop)])

    def scan(self, **filters: Any) -> list[Row]:
        """Return the nodes, or the events, that stand here, as `light_rows.scan` does."""
        return light_rows.scan(self.point, **filters)

    def admitted(self) -> Callable[[int], bool]:
        """Return a predicate on entities: True unless the entity is a message that was not authorized."""
        return self._messages.admitted()

    # ------------------------------------------------------------------ standings

    def stands(self, ent: int) -> bool:
        """Return True if an entity stands here, shaky or not."""
        return self.standing(ent) in ("stands", "shaky")

    def standing(self, ent: int) -> str:
        """Return the standing of an entity here."""
        found = self._standings.get(ent)
        if found is None:
            self._read_standings([ent])
            found = self._standings[ent]
        return found

    def _read_standings(self, ents: Iterable[int]) -> None:
        missing = [ent for ent in ents if ent not in self._standings]
        if missing:
            found = self.point.rows(STANDINGS_OF, numbers=as_json(missing))
            self._standings.update({each.number: each.standing for each in found})

    def standings_of(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the standings here of the known things among some ids."""
        return dict(standings(self.point, ids))

    def upright(self, ent: int) -> str:
        """Return the standing of an entity that stands: `stands` or `shaky`."""
        return self.standing(ent)

    def is_superseded(self, ent: int) -> bool:
        """Return True if a link that supersedes an event holds here. The event must hold here too."""
        return self.standing(ent) == "superseded"

    def shown_by(self, ent: int) -> tuple[str, int]:
        """Return the standing of an entity by its own rows alone, and the row that shows it: the one that holds, else its last; -1 if none."""
        standing, index = self.standing(ent), self.index
        row = index.last_cover(ent, self.valid, self.tx) if (row := self.find(ent)) < 0 else row
        if standing in ("superseded", "ended"):
            believed = index.believed(ent, self.tx)
            row = next((each for each in reversed(believed) if index.r_from[each] <= self.valid), row)
        return "stands" if standing == "shaky" else standing, row

    # ------------------------------------------------------------------ values

    def thing(self, ent: int) -> Node | Event:
        """Return a node or event with any standing."""
        [found] = self.things([ent])
        return found

    def things(self, ents: Iterable[int]) -> list[Node | Event]:
        """Return nodes and events with any standing."""
        ents = list(ents)
        missing = [ent for ent in ents if ent not in self._things]
        self.index.read_entities(missing)
        found = things(self.point, map(self.id, missing))
        for ent in missing:
            self._things[ent] = found[self.id(ent)]
            self._standings[ent] = self._things[ent].standing
        return [self._things[ent] for ent in ents]

    def described(self, ent: int, number: int) -> Node:
        """Return the node as one of its versions describes it."""
        return described(self.point, self.id(ent), number)

    def things_of(self, ids: Iterable[str]) -> dict[str, Node | Event]:
        """Return the known nodes and events among some ids, with any standing, by id."""
        return things(self.point, ids)

    def events_of(self, ids: Iterable[str]) -> list[Event]:
        """Return the known events among some ids, with any standing, each with its links."""
        return [event for event in shown(self.point, ids).values() if isinstance(event, Event)]

    def event_and_links(self, ent: int) -> Event:
        """Return an event with any standing, and its links."""
        [found] = self.events_and_links([ent])
        return found

    def events_and_links(self, ents: Iterable[int]) -> list[Event]:
        """Return events with any standing, each with its links."""
        ids = [self.id(ent) for ent in ents]
        found = shown(self.point, ids)
        return [cast(Event, found[id]) for id in ids]

    def event(self, row: int, standing: str, links: tuple[Link, ...] | None = None) -> Event:
        """Return a row of an event that holds here as a value."""
        found = self.thing(self.entity_of(row))
        return Event.made({**found.__dict__, "standing": standing, "links": links})

    # ------------------------------------------------------------------ searching

    @property
    def _messages(self) -> MessageRows:
        """Return the index of messages and traces."""
        messages: MessageRows = self.core.postings
        return messages

    @property
    def _search(self) -> RowSearch:
        """Return the word search."""
        search: RowSearch = self.core.search
        return search

    def messages(
        self,
        wanted: Mapping[str, Any],
        since: Instant,
        until: Instant,
        before: tuple[Instant, str] | None,
        among: set[int] | None = None,
    ) -> Iterator[int]:
        """Return the rows of messages that stand here, as `MessageRows.messages` finds them."""
        return self._messages.messages(self, wanted, since, until, before, among)

    def voices(self, field: str) -> Iterator[tuple[str, list[int]]]:
        """Yield the rows of messages that stand here, grouped by sender or thread as `MessageRows.voices` does."""
        return self._messages.voices(self, field)

    def around(self, row: int, most: int) -> list[int]:
        """Return the neighbours of a message in its thread, itself included, as `MessageRows.around` finds them."""
        return [self.index.r_ent[each] for each in self._messages.around(self, row, most)]

    def traces(self) -> list[str]:
        """Return the ids of all traces with an event by here."""
        return self._messages.traces()

    def found(
        self,
        text: str,
        most: int,
        kinds: frozenset[str] = frozenset(),
        weigh: Callable[[int], float] | None = None,
        seen: Callable[[int], bool] | None = None,
    ) -> Matches:
        """Return the best matches of a text among the things that stand here, as `RowSearch.find` ranks them."""
        ahead = None if weigh is None else self.read_weighed
        return self._search.find(self, text, most, kinds=kinds, weigh=weigh, seen=seen, ahead=ahead)

    def found_ever(
        self, text: str, kinds: frozenset[str], *, fallen: bool = False
    ) -> Iterator[tuple[int, int, float]]:
        """Yield the versions, past ones included, that contain a word of a text: entity, version number and score. Best first. `fallen`: exclude versions that stand here."""
        among = ~self._search.standing(self).alive if fallen else None
        return self._numbered(self._search.find_known(self, text, kinds, among))

    def planned(self, text: str, kinds: frozenset[str]) -> Iterator[tuple[int, int, float]]:
        """Return what `found_ever` does, of the versions of plans: things that begin later than this valid time."""
        standing = self._search.standing(self)
        if not standing.planned:
            return iter(())
        return self._numbered(self._search.find_known(self, text, kinds, standing.plans()))

    def _numbered(self, matches: Iterator[tuple[int, float]]) -> Iterator[tuple[int, int, float]]:
        """Yield the entity, the version's number and the score of each version that was found."""
        index = self.index
        return ((index.v_ent[ver], index.v_num[ver], score) for ver, score in matches)

    def trace(self, trace_id: str) -> list[int]:
        """Return the events of a trace, as `MessageRows.trace` finds them. Also reads everything that determines when they happened."""
        events = self._messages.trace(trace_id)
        self.index.read_events(events)
        return events

    def follow_lookups(self) -> Accesses:
        """Return the counts of lookups, including all that are written."""
        point, line = self.point, self.point.database.line
        ends = ends_of(point)

        def written(first: int) -> Iterator[Counts]:
            for row in point.rows(LOOKED_UP, first=line.row("operation", first)):
                yield row.tx, point.content(row.data, row.checksum, "counts of lookups").get(COUNTS, {})

        committed = min(ends.operations, cast(RowCore, self.core).operations)
        self.core.accesses.read_written(ends.rewritten, committed, written)
        return self.core.accesses

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots known here, whose names may be used as a time."""
        return settings.snapshots(self.point)

    # ------------------------------------------------------------------ caches until the next write

    def memo(self) -> dict[Any, Any]:
        """Return the cache of answers, which is valid until the next write."""
        ends, whole = ends_of(self.point), self._whole
        state, memo = ("rows", ends.rewritten, ends.operations), whole.memo
        if memo.get("state") != state or len(memo) > _MEMOS:
            whole.memo = memo = {"state": state}  # a reader concurrent with a writer keeps its own
        return memo

    @property
    def _whole(self) -> Core:
        return cast(RowCore, self.core).whole

    def turns(self, axis: str) -> list[Instant]:
        """Return, in order, the instants at which something believed here begins or ends (`valid`), or was recorded by now (`tx`). They are cached until the next write."""
        memo = self.memo()
        key = ("turns", axis, self.tx if not self.sees_all() else self.index.last_tx)
        found: list[Instant] | None = memo.get(key)
        if found is None:
            rows = self.point.rows(TRANSACTIONS_BY if axis == "tx" else TURNS)
            found = memo[key] = [row.at for row in rows if axis == "tx" or -OPEN < row.at < OPEN]
        return found

    def sees_all(self) -> bool:
        """Return True if this coordinate includes every committed transaction."""
        return self.index.last_tx <= self.tx

    # ------------------------------------------------------------------ prefetching

    @property
    def point(self) -> Point:
        """Return the point of the ledger whose rows are read here."""
        return cast(RowCore, self.core).point

    def read_names(self, ents: Iterable[int]) -> None:
        """Read the names and kinds of things at once."""
        self.index.read_entities(ents)

    def read_things(self, ents: Iterable[int]) -> None:
        """Read things with their periods and versions at once."""
        self.index.read_things(ents)

    def read_links(self, ents: Iterable[int]) -> None:
        """Read the links of things at once."""
        self.index.read_links(ents)

    def read_events(self, ents: Iterable[int]) -> None:
        """Read at once the events among some things, with all that determines when they happened and whether they are open."""
        self.index.read_events(ents)

    def read_weighed(self, ents: Iterable[int]) -> None:
        """Read at once everything by which things are weighed."""
        ents = list(ents)
        self.index.read_weighed(ents)
        self._read_standings(ents)

    def read_ends(self, ents: Iterable[int]) -> None:
        """Read at once the other ends of the links of some things, and their standings."""
        self._read_standings(self.index.read_ends(ents))


def sight_of(core: Core, point: Point) -> Sight:
    """Return a sight at a point. A transaction that reads its own rows caches nothing it finds, since the rows are removed again."""
    shown = core.shown if core.is_worker else None
    search = core.row_search if shown is None else shown.search
    rows = RowCore(
        IndexOfRows(point), core.journal, point, search, core.vocabulary, core.accesses, core.asserted, core
    )
    if shown is not None:
        rows.asserted, rows.operations, rows.versions = Asserted(), shown.operations, shown.versions
    return Sight(cast(Core, rows), point.valid, point.tx)


def in_time(index: Index, effect: int, cause: int, since: Instant | None, tx: Instant) -> bool:
    """Return True if the cause starts no later than its effect, as believed at `tx`. An event starts when it occurred.

    `since`: the start of the link, if given. A node may then be an effect of something that began later than the node. An event may be if it occurred again at `since` or
    later.
    """
    begun, shown = index.start(cause, tx), index.start(effect, tx)
    if begun is None or shown is None or begun <= shown:
        return True
    if since is None or begun > since:
        return False
    return not index.is_event[effect] or since <= index.last_seen(effect, tx)
