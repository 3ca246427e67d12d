"""Reads things, periods and links from the rows of a ledger into columns, each on first use. It serves reads that visit few things."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple
from weakref import proxy

from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.statements import Number, Statement
from graphstore.read.columns import Count, Lists, LoadedColumn, Mark, NumbersByKey
from graphstore.read.points import UNDONE, Point, as_json
from graphstore.read.settings import setting_at
from graphstore.read.standing_rules import Index
from graphstore.values.period import OPEN, Instant

__all__ = ["ENTITIES_NUMBERED", "FORGOTTEN", "NAMES", "SHAKY", "IndexOfRows", "NamedEntity", "Number"]


class PeriodOf(NamedTuple):
    """A row of `period`."""

    number: int
    entity: int
    version: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None


class ConfirmationOf(NamedTuple):
    """An operation that confirmed the thing with an id."""

    id: str
    operation: int


class EntityOf(NamedTuple):
    """The properties of a thing."""

    number: int
    id: str
    is_event: int
    kind: str
    key: str | None
    scope: str
    tx_from: Instant


class NamedEntity(NamedTuple):
    """The id and key of a thing."""

    number: int
    id: str
    key: str | None


class VersionNumbered(NamedTuple):
    """A version: its entity, and the number and length of its body."""

    number: int
    entity: int
    ordinal: int
    body: int
    length: int
    operation: int


class LinkOfKind(NamedTuple):
    """A link."""

    number: int
    id: str
    kind: str
    source: int
    target: int


class LinkRow(NamedTuple):
    """A period of a link, with its claim."""

    number: int
    link: int
    claim: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    strength: int
    is_inferred: int
    is_history: int
    created_by: str
    body: int
    length: int
    operation: int
    recorded_at: Instant


class OperationOf(NamedTuple):
    """An operation, and the number and length of the body with its reason."""

    number: int
    tx: Instant
    verb: str
    subject: str
    author: str | None
    body: int
    length: int
    told: Instant


class OccurrenceOf(NamedTuple):
    """A repeated occurrence of an event, with the first and last occurrence up to it."""

    number: int
    occurred_at: Instant
    tx: Instant
    operation: int
    first: Instant
    last: Instant
    event: int
    body: int
    length: int


class ForgottenEntity(NamedTuple):
    """A forgotten entity, and the operation that forgot it."""

    number: int
    operation: int


ENTITIES_NUMBERED = Statement("entities_numbered", EntityOf)
NAMES = Statement("names", NamedEntity)
ENTITY_NUMBER = Statement("entity_number", Number)
VERSIONS_NUMBERED = Statement("versions_numbered", VersionNumbered)
VERSIONS_OF_ENTITIES = Statement("versions_of_entities", VersionNumbered)
LINKS_BESIDE = Statement("links_beside", LinkOfKind)
LINKS_OF_KINDS = Statement("links_of_kinds", LinkOfKind)
LINKS_EVER = Statement("links_ever", LinkOfKind)
LINK_ROWS = Statement("link_rows", LinkRow)
OPERATION = Statement("operation_numbered", OperationOf)
FORGOTTEN = Statement("forgotten", ForgottenEntity)
SHAKY = Statement("shaky", Number)
PERIODS_OF = Statement("periods_of", PeriodOf)
CONFIRMATIONS_OF = Statement("confirmations_of", ConfirmationOf)
HELD_NODES = Statement("held_nodes", PeriodOf)
OCCURRENCES_OF = Statement("occurrences_of", OccurrenceOf)


_ENTITY = ("names", "is_event", "kind", "key", "scope", "born")
_VERSION = ("v_ent", "v_num", "v_pos", "v_len", "v_op")
_PERIOD = ("r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op")
_LINK = ("l_name", "l_kind", "l_src", "l_tgt")
_LINK_PERIOD = ("k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end")
_CLAIM = ("c_strength", "c_inferred", "c_history", "c_by", "c_pos", "c_len", "c_op")
_OCCURRENCE = ("s_at", "s_tx", "s_op", "s_first", "s_last")
_OPERATION = ("o_tx", "o_verb", "o_subject", "o_author", "o_pos", "o_len", "o_told")
"""The columns of each table, in the order of the statements' columns after the row number."""


class IndexOfRows(Index):
    """The index of a ledger at one coordinate. Its links are those believed there."""

    out: Lists[int]
    into: Lists[int]
    born: Any
    names: dict[int, str]  # type: ignore[assignment]
    v_ent: Any
    l_kind: Any
    l_name: Any
    k_link: Any
    rows_of_link: Any
    rows_of: Any
    versions_of: Any
    seen_of: Any
    confirmed: Any

    def __init__(self, point: Point) -> None:
        self._point = point
        self._since: dict[int, Instant] = {}  # when rows of links were first recorded
        self._holding: dict[int, int] = {}  # the rows of nodes that hold here, if all were read
        self.gone = {row.number: row.operation for row in point.rows(FORGOTTEN)}
        me: Any = proxy(
            self
        )  # columns with strong references would form cycles that stay until the garbage collector runs
        columns: dict[str, Any] = {"ids": NumbersByKey(partial(IndexOfRows._number_of, me))}
        for names, read in (
            (_ENTITY, IndexOfRows.read_entities),
            (_VERSION, IndexOfRows.read_versions),
            (_OPERATION, IndexOfRows._read_operations),
            ((*_PERIOD, *_LINK, *_LINK_PERIOD, *_CLAIM, *_OCCURRENCE, "rows_of_link"), None),
        ):  # fmt: skip
            columns |= {
                name: LoadedColumn(Count(OPEN), partial(IndexOfRows._read_one, me, read)) for name in names
            }
        lists: dict[str, Callable[[Any, list[Any]], object]] = {
            "versions_of": IndexOfRows._read_versions_of, "rows_of": IndexOfRows._read_periods, "out": IndexOfRows.read_links,
            "into": IndexOfRows.read_links, "seen_of": IndexOfRows._read_occurrences, "confirmed": IndexOfRows._read_confirmations,
        }  # fmt: skip
        columns |= {
            name: Lists(partial(IndexOfRows._list_of, me, name, read)) for name, read in lists.items()
        }
        columns["successors"] = Lists(
            lambda ent: [link for link in me.into[ent] if me.l_kind[link] == "supersedes"]
        )
        vars(self).update(columns)
        self.read_line(point.database)

    @cached_property
    def count(self) -> int:
        """Return the number of things."""
        [(count,)] = self._point.database.rows(f"SELECT entity % {SPAN} FROM next_number")
        return int(count)

    @property
    def whole(self) -> IndexOfRows:
        """Return an index that also reads outside of scopes."""
        return self if self._point.whole is self._point else self._unscoped

    @cached_property
    def _unscoped(self) -> IndexOfRows:
        """Return an index without scopes, for a point that is limited to scopes."""
        return IndexOfRows(self._point.whole)

    @cached_property
    def undone_by(self) -> dict[Instant, list[int]]:  # type: ignore[override]
        """Return the operations that undid each transaction."""
        found: dict[Instant, list[int]] = {}
        for row in UNDONE.rows(self._point.database, {}):
            found.setdefault(row.tx, []).append(row.operation)
            self.o_tx[row.operation] = row.undone_at
        return found

    @cached_property
    def last_tx(self) -> Instant:  # type: ignore[override]
        """Return the instant of the last transaction."""
        [(last,)] = self._point.database.rows("SELECT coalesce(max(tx), 0) FROM operation")
        return int(last)

    def mark(self) -> Mark:
        """Return the numbers of committed rows: all rows here are committed. Only `versions` is set, since callers use nothing else."""
        return Mark(versions=1 << 62)

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return the row of an entity that holds at (valid, tx), or -1."""
        if ent in self.gone:
            return -1
        held = self._holding.get(ent)
        if held is not None and (valid, tx) == (self._point.valid, self._point.tx):
            return held
        rows: list[int] = self.rows_of[ent]
        for row in rows:
            if self.r_from[row] <= valid < self.r_to[row] and self.r_tx[row] <= tx < self.r_end[row]:
                return row
        return -1

    def setting_at(self, name: str, tx: Instant) -> Any:
        """Return the value of a setting at `tx`; None if it was not set by then."""
        return setting_at(Point(self._point.database, OPEN, tx), name)

    def link_since(self, row: int) -> Instant:
        """Return when a row of a link was recorded. For a row that an undo opened again, return when it was first recorded."""
        return self._since[row]

    # ------------------------------------------------------------------ reading

    def _number_of(self, id: str) -> int | None:
        """Return the number of the entity with an id; None if it is unknown."""
        return next((row.number for row in self._point.rows(ENTITY_NUMBER, id=id)), None)

    def _read_one(self, read: Callable[[Any, list[int]], object] | None, number: int) -> None:
        """Read the row of a number. Without `read` do nothing: such rows are only read together with others."""
        if read is not None:
            read(self, [number])

    def _list_of(self, name: str, read: Callable[[Any, list[Any]], object], thing: Any) -> list[int]:
        """Read and return one list of a thing. `name`: the attribute that holds the lists."""
        read(self, [thing])
        found: list[int] = vars(self)[name][thing]
        return found

    def _fill(self, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        """Write rows into columns. The first value of each row is its number."""
        numbers, *values = zip(*rows, strict=True) if rows else ((),)
        for name, column in zip(names, values, strict=False):
            vars(self)[name].update(zip(numbers, column, strict=True))

    def read_entities(self, numbers: Iterable[int]) -> None:
        """Read the properties of entities with one statement."""
        missing = [ent for ent in dict.fromkeys(numbers) if ent not in self.born]
        if missing:
            found = self._point.rows(ENTITIES_NUMBERED, numbers=as_json(missing))
            self._fill(_ENTITY, found)

    def read_versions(self, numbers: Iterable[int]) -> None:
        """Read versions and their entities."""
        missing = [number for number in numbers if number not in self.v_ent]
        if missing:
            found = self._point.rows(VERSIONS_NUMBERED, numbers=as_json(missing))
            self._fill(_VERSION, found)
            self.read_entities(row.entity for row in found)

    def read_links(self, entities: Iterable[int]) -> None:
        """Read the links of things with one statement."""
        missing = self.out.unread(entities)
        for ent in missing:
            self.out[ent], self.into[ent] = [], []
        links = self._point.rows(LINKS_BESIDE, numbers=as_json(missing)) if missing else []
        self._add_links(links)
        asked = set(missing)
        for link in links:
            if link.source in asked:
                self.out[link.source].append(link.number)
            if link.target in asked:
                self.into[link.target].append(link.number)

    def read_links_of(self, kinds: Iterable[str]) -> list[int]:
        """Read the links of some kinds that hold here. Return them in the order of recording."""
        links = self._point.rows(LINKS_OF_KINDS, kinds=as_json(list(kinds)))
        self._add_links(links)
        return [link.number for link in links]

    def read_links_ever(self, kinds: Iterable[str]) -> list[int]:
        """Read all links of some kinds that were ever made, with their ends. Return them in the order of recording."""
        links = self._point.rows(LINKS_EVER, kinds=as_json(list(kinds)))
        self._add_links(links)
        self.read_entities(chain.from_iterable((link.source, link.target) for link in links))
        return [link.number for link in links]

    def read_things(self, entities: Iterable[int]) -> None:
        """Read things with their periods and versions."""
        missing = self.rows_of.unread(entities)
        self.read_entities(missing)
        self._read_periods(missing)
        self.read_versions(self.r_ver[row] for ent in missing for row in self.rows_of[ent])

    def read_held_nodes(self) -> list[int]:
        """Read what holds here of all nodes. Return the rows in the order in which the nodes were first known."""
        found = self._point.rows(HELD_NODES)
        self._fill(_PERIOD, found)
        self.read_versions([row.version for row in found])
        self._holding.update((row.entity, row.number) for row in found)
        return [row.number for row in found]

    def read_events(self, numbers: Iterable[int]) -> None:
        """Read the events among some things, with all that decides when they happened and whether they are open."""
        numbers = list(numbers)
        self.read_entities(numbers)
        events = [ent for ent in numbers if self.is_event[ent]]
        self._read_times(events)
        self._read_versions_of(self.versions_of.unread(events))
        self.read_links(events)
        links = (link for ent in events for link in self.out[ent] if self.l_kind[link] == "resolved_by")
        self._read_times(self.l_tgt[link] for link in links)
        if self.whole is not self:
            self.whole.read_events(events)

    def read_weighed(self, entities: list[int]) -> None:
        """Read things with their links, confirmations and occurrences."""
        self.read_things(entities)
        self.read_links(entities)
        self._read_times(ent for ent in entities if self.is_event[ent])
        self._read_confirmations(self.confirmed.unread(self.names[ent] for ent in entities))

    def read_ends(self, entities: Iterable[int]) -> set[int]:
        """Read the ends of the links of some things, and return these ends."""
        entities = list(entities)
        self.read_links(entities)
        links = [link for ent in entities for side in (self.out, self.into) for link in side[ent]]
        ends = {end for link in links for end in (self.l_src[link], self.l_tgt[link])}
        self.read_entities(ends)
        return ends

    def _read_times(self, entities: Iterable[int]) -> None:
        """Read when things were believed, and the occurrences of events."""
        entities = list(entities)
        self.read_entities(entities)
        self._read_periods(self.rows_of.unread(entities))
        self._read_occurrences(self.seen_of.unread(entities))

    def _add_links(self, links: Iterable[LinkOfKind]) -> None:
        fresh = {link.number: link for link in links if link.number not in self.l_kind}
        if not fresh:
            return
        self._fill(_LINK, fresh.values())
        self.rows_of_link.update((number, []) for number in fresh)
        rows = self._point.rows(LINK_ROWS, numbers=as_json(list(fresh)))
        self._fill(_LINK_PERIOD, rows)
        self._fill(_CLAIM, [(row.claim, *row[7:]) for row in rows])
        self._since.update((row.number, row.recorded_at) for row in rows)
        for row in rows:
            self.rows_of_link[row.link].append(row.number)

    def _read_versions_of(self, entities: list[int]) -> None:
        found = self._point.rows(VERSIONS_OF_ENTITIES, numbers=as_json(entities)) if entities else []
        self._fill(_VERSION, found)
        self._list("versions_of", entities, ((row.entity, row.number) for row in found))

    def _read_periods(self, entities: list[int]) -> None:
        found = self._point.rows(PERIODS_OF, numbers=as_json(entities)) if entities else []
        self._fill(_PERIOD, found)
        self._list("rows_of", entities, ((row.entity, row.number) for row in found))

    def _read_occurrences(self, events: list[int]) -> None:
        found = self._point.rows(OCCURRENCES_OF, numbers=as_json(events)) if events else []
        self._fill(_OCCURRENCE, found)
        self._fill(
            ("o_tx", "o_pos", "o_len"), [(row.operation, row.tx, row.body, row.length) for row in found]
        )
        self._list("seen_of", events, ((row.event, row.number) for row in found))

    def _read_confirmations(self, ids: list[str]) -> None:
        found = self._point.rows(CONFIRMATIONS_OF, ids=as_json(ids)) if ids else []
        self._list("confirmed", ids, found)

    def _list(self, name: str, things: Iterable[Any], rows: Iterable[tuple[Any, int]]) -> None:
        """Store for each thing the list of its rows."""
        lists = vars(self)[name]
        for thing in things:
            lists[thing] = []
        for thing, row in rows:
            lists[thing].append(row)

    def _read_operations(self, numbers: list[int]) -> None:
        found = [row for number in numbers for row in self._point.rows(OPERATION, number=number)]
        self._fill(_OPERATION, found)
