"""An index whose columns are read from the rows of a ledger, each number when it is first asked for: for questions that look at few things.

Numbers are those of the whole index. What it does not have raises NotInRows: then the index is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple, NoReturn

import orjson

from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index
from graphstore.core.index.part_of_index import CONFIRMATIONS_OF, PERIODS_OF, Number
from graphstore.core.journal.positions import BLOCK
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.statements import Statement
from graphstore.read.happened import SETTING
from graphstore.read.points import UNDONE, NotInRows, Point, as_json
from graphstore.values.period import OPEN, Instant

__all__ = ["FORGOTTEN", "IndexOfRows", "Number"]


class EntityOf(NamedTuple):
    """What a thing is."""

    number: int
    id: str
    is_event: int
    kind: str
    key: str | None
    scope: str
    tx_from: Instant


class Named(NamedTuple):
    """The id and the key of a thing."""

    number: int
    id: str
    key: str | None


class VersionNumbered(NamedTuple):
    """What a version is of, and where its content is."""

    number: int
    entity: int
    ordinal: int
    body: int
    length: int
    operation: int


class LinkBeside(NamedTuple):
    """A link, and that end of it by which it was asked for."""

    number: int
    id: str
    kind: str
    source: int
    target: int
    near: int
    is_source: int


class LinkOfKind(NamedTuple):
    """A link."""

    number: int
    id: str
    kind: str
    source: int
    target: int


class LinkRow(NamedTuple):
    """A period of a link with its claim."""

    number: int
    link: int
    claim: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    strength: int
    is_inferred: int
    created_by: str
    body: int
    length: int
    operation: int


class Done(NamedTuple):
    """An operation, and where its reason is."""

    number: int
    tx: Instant
    verb: str
    subject: str
    author: str | None
    body: int
    length: int


class HeldNode(NamedTuple):
    """A period of a node that holds, and the version that it has."""

    entity: int
    id: str
    kind: str
    key: str | None
    scope: str
    born: Instant
    period: int
    version: int
    ordinal: int
    body: int
    length: int
    operation: int
    opened_by: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant


class Recorded(NamedTuple):
    """When a period of a link was recorded."""

    number: int
    tx: Instant


class OccurrenceOf(NamedTuple):
    """A time at which an event happened again."""

    event: int
    number: int
    occurred_at: Instant
    tx: Instant
    operation: int
    body: int
    length: int


class Forgotten(NamedTuple):
    """An entity that was forgotten, by which operation."""

    number: int
    operation: int


ENTITIES_NUMBERED = Statement("entities_numbered", EntityOf)
NAMES = Statement("names", Named)
ENTITY_NUMBER = Statement("entity_number", Number)
VERSIONS_NUMBERED = Statement("versions_numbered", VersionNumbered)
VERSIONS_OF_ENTITIES = Statement("versions_of_entities", VersionNumbered)
LINKS_BESIDE = Statement("links_beside", LinkBeside)
LINKS_OF_KINDS = Statement("links_of_kinds", LinkOfKind)
LINKS_EVER = Statement("links_ever", LinkOfKind)
LINK_ROWS = Statement("link_rows", LinkRow)
OPERATION = Statement("operation_numbered", Done)
FORGOTTEN = Statement("forgotten", Forgotten)
HELD_NODES = Statement("held_nodes", HeldNode)
LINKS_MADE = Statement("links_made", Number)
LINK_SINCE = Statement("link_since", Recorded)
OCCURRENCES_OF = Statement("occurrences_of", OccurrenceOf)


class _Column(dict[Any, Any]):
    """A column, of which numbers are read when they are asked for; one without `read` has those that were read with others. As a whole it is not there."""

    def __init__(self, read: Callable[[Any], object] | None = None) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, number: Any) -> Any:
        if self._read is not None:
            self._read(number)
        if not dict.__contains__(self, number):
            raise NotInRows
        return self[number]

    def __len__(self) -> int:
        raise NotInRows

    def __iter__(self) -> Iterator[Any]:
        raise NotInRows

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what lists and arrays have."""
        raise NotInRows


class _OfEntities(_Column):
    """A column of entities, which can also be read as a whole: in the order of their places, which are not their numbers on a branch."""

    def __init__(
        self, read: Callable[[int], object], count: Callable[[], int], every: Callable[[], Iterator[Any]]
    ) -> None:
        super().__init__(read)
        self._count, self._every = count, every

    def __len__(self) -> int:
        return self._count()

    def __iter__(self) -> Iterator[Any]:
        return self._every()


class _Lists(_Column):
    """A list of numbers for each thing, which may be empty: its links at one end, its occurrences."""

    def get(self, thing: Any, default: Any = None) -> Any:
        """Return the list of a thing, else the default."""
        return self[thing] or default

    def __contains__(self, thing: object) -> bool:
        return bool(self[thing])

    def is_read(self, thing: Any) -> bool:
        """Return True if the list of a thing was read."""
        return dict.__contains__(self, thing)


def _read_so_far(column: Any) -> list[int]:
    """Return the numbers that were read of a column."""
    return list(dict.keys(column))


class _Ids:
    """The entities by their ids."""

    def __init__(self, point: Point) -> None:
        self._point = point

    def get(self, id: str, default: int) -> int:
        """Return the number of the entity of an id, else the default."""
        found = self._point.rows(ENTITY_NUMBER, id=id)
        return found[0].number if found else default

    def __getitem__(self, id: str) -> int:
        """Return the number of the entity of an id that is known."""
        [row] = self._point.rows(ENTITY_NUMBER, id=id)
        return row.number


class IndexOfRows(Index):
    """The index of a ledger at one coordinate: links are those believed there."""

    out: _Lists
    into: _Lists

    def __init__(self, point: Point) -> None:
        self._point = point
        self._since: dict[int, Instant] = {}  # when rows of links were recorded first
        self._made: dict[int, bool] = {}  # whether links were made by here
        self._holding: dict[int, int] = {}  # rows of nodes that hold here, where all were read
        self._known = -1  # how many entities there are; -1: not counted
        self.gone = {row.number: row.operation for row in point.rows(FORGOTTEN)}
        columns: dict[str, Any] = {"ids": _Ids(point)}
        for name, every in (("names", 1), ("kind", None), ("key", 2)):
            columns[name] = _OfEntities(self._read_entity, self._count, partial(self._every, every))
        for name in ("scope", "is_event", "born"):
            columns[name] = _Column(self._read_entity)
        for name in ("v_ent", "v_num", "v_pos", "v_len", "v_op"):
            columns[name] = _Column(self._read_version)
        columns["versions_of"] = _Column(self._read_version_list)
        columns["rows_of"] = _Column(self._read_periods)
        columns |= {name: _Column() for name in ("r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op")}
        self.out, self.into = _Lists(self._read_link), _Lists(self._read_link)
        columns["successors"] = _Lists(self._read_successors)
        columns |= {
            "seen_of": _Lists(self._read_occurrence_list),
            "confirmed": _Lists(self._read_confirmations),
        }
        columns |= {name: _Column() for name in ("s_at", "s_tx", "s_op", "s_first", "s_last")}
        columns |= {name: _Column() for name in ("l_name", "l_kind", "l_src", "l_tgt", "rows_of_link")}
        columns |= {name: _Column() for name in ("k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end")}
        columns |= {
            name: _Column() for name in ("c_strength", "c_inferred", "c_by", "c_pos", "c_len", "c_op")
        }
        for name in ("o_tx", "o_verb", "o_subject", "o_author", "o_pos", "o_len"):
            columns[name] = _Column(self._read_operation)
        if point.database.branch is None:
            columns |= {"branch": None, "forked": None}
        vars(self).update(columns)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what rows were not read for."""
        raise NotInRows

    @cached_property
    def whole(self) -> IndexOfRows:
        """Return what also reads outside of scopes."""
        return self if self._point.whole is self._point else IndexOfRows(self._point.whole)

    @cached_property
    def undone_by(self) -> dict[Instant, list[int]]:  # type: ignore[override]
        """The operations that took a transaction back."""
        found: dict[Instant, list[int]] = {}
        for row in UNDONE.rows(self._point.database, {}):
            found.setdefault(row.tx, []).append(row.operation)
            self.o_tx[row.operation] = row.undone_at
        return found

    @cached_property
    def last_tx(self) -> Instant:  # type: ignore[override]
        """The instant of the last transaction."""
        [(last,)] = self._point.database.rows("SELECT coalesce(max(tx), 0) FROM operation")
        return int(last)

    def mark(self) -> Mark:
        """How long the columns are that anybody asks for: all is committed."""
        return Mark(versions=1 << 62)

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """The row of an entity that holds at (valid, tx), or -1."""
        if ent in self.gone:
            return -1
        held = self._holding.get(ent)
        if held is not None and (valid, tx) == (self._point.valid, self._point.tx):
            return held
        for row in self.rows_of[ent]:
            if self.r_from[row] <= valid < self.r_to[row] and self.r_tx[row] <= tx < self.r_end[row]:
                return row
        return -1

    def _last_over(self, ent: int, rows: list[int], valid: Instant, tx: Instant) -> int:
        there = (row for row in reversed(rows) if self.r_from[row] <= valid < self.r_to[row])
        return next((row for row in there if self.r_tx[row] <= tx), -1)

    def believed(self, ent: int, tx: Instant) -> list[int]:
        """The rows of an entity believed at `tx`, by valid_from."""
        rows = [row for row in self.rows_of[ent] if self.r_tx[row] <= tx < self.r_end[row]]
        return sorted(rows, key=self.r_from.__getitem__)

    def superseded(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if a supersession of the entity holds at (valid, tx)."""
        links = (link for link in self.into[ent] if self.l_kind[link] == "supersedes")
        return any(self.find_link(link, valid, tx) >= 0 for link in links)

    def setting_at(self, name: str, tx: Instant) -> Any:
        """Return the setting of a name as it was at `tx`, None when it was not set by then."""
        rows = Point(self._point.database, OPEN, tx).rows(SETTING, name=name)
        return orjson.loads(rows[0].value) if rows else None

    def rows_of_version(self, ent: int, number: int) -> list[int]:
        """The rows of a version of an entity, in the order they were written."""
        return [row for row in self.rows_of[ent] if self.v_num[self.r_ver[row]] == number]

    def perhaps(
        self,
        side: dict[int, list[int]],
        ent: int,
        valid: Instant,
        tx: Instant,
        kinds: Collection[str] | None = None,
    ) -> list[int]:
        """The links on one side of an entity: no others were read than those believed here."""
        return side.get(ent, [])

    def was_made(self, link: int) -> bool:
        """Return True if a link that was read was made by here."""
        if link not in self._made:
            fresh = [each for each in _read_so_far(self.l_name) if each not in self._made]
            made = {row.number for row in self._point.rows(LINKS_MADE, numbers=as_json(fresh))}
            self._made.update((each, each in made) for each in fresh)
        return self._made[link]

    def of_kinds(self, side: dict[int, list[int]], ent: int, kinds: Collection[str]) -> list[int]:
        """The links on one side of an entity, of all kinds, in order."""
        return side.get(ent, [])

    def link_since(self, row: int) -> Instant:
        """When a row of a link was recorded; one that an undo opened again, when it was recorded first."""
        if row not in self._since:
            fresh = [each for each in _read_so_far(self.k_link) if each not in self._since]
            found = self._point.rows(LINK_SINCE, numbers=as_json(fresh))
            self._since.update({each.number: each.tx for each in found})
        return self._since[row]

    # ------------------------------------------------------------------ reading

    def read_versions(self, numbers: Iterable[int]) -> None:
        """Read versions, and the things they are of, at once."""
        missing = [number for number in numbers if number not in self.v_ent]
        if missing:
            self._add_versions(self._point.rows(VERSIONS_NUMBERED, numbers=as_json(missing)))
            born: Any = self.born
            self._read_entities({ent for ent in map(self.v_ent.__getitem__, missing) if ent not in born})

    def read_links(self, entities: Iterable[int]) -> None:
        """Read the links of things at once."""
        missing = [ent for ent in dict.fromkeys(entities) if not self.out.is_read(ent)]
        for ent in missing:
            self.out[ent], self.into[ent] = [], []
        links = self._point.rows(LINKS_BESIDE, numbers=as_json(missing)) if missing else []
        for link in links:
            (self.out if link.is_source else self.into)[link.near].append(link.number)
        self._add_links(links)

    def read_links_of(self, kinds: Iterable[str]) -> list[int]:
        """Read the links of some kinds that hold here, at once. Returns them in the order in which they were made."""
        links = self._point.rows(LINKS_OF_KINDS, kinds=as_json(list(kinds)))
        self._add_links(links)
        return [link.number for link in links]

    def read_links_ever(self, kinds: Iterable[str]) -> list[int]:
        """Read all links of some kinds that were ever made, with their ends, at once. Returns them in the order in which they were made."""
        links = self._point.rows(LINKS_EVER, kinds=as_json(list(kinds)))
        self._add_links(links)
        self.read_entities({end for link in links for end in (link.source, link.target)})
        return [link.number for link in links]

    def read_things(self, entities: Iterable[int]) -> None:
        """Read things with their periods and versions at once."""
        periods: Any = self.rows_of
        missing = [ent for ent in entities if ent not in periods]
        self._read_entities(missing)
        self._read_all_periods(missing)
        self.read_versions(self.r_ver[row] for ent in missing for row in self.rows_of[ent])

    def read_held_nodes(self) -> list[int]:
        """Read what holds here of all nodes, at once. Returns the rows, in the order in which the nodes were first known."""
        found = self._point.rows(HELD_NODES)
        for row in found:
            ent, number, version = row.entity, row.period, row.version
            self.names[ent], self.kind[ent], self.key[ent] = row.id, row.kind, row.key
            self.scope[ent], self.is_event[ent], self.born[ent] = row.scope, 0, row.born
            self.r_ent[number], self.r_ver[number], self.r_op[number] = ent, version, row.opened_by
            self.r_from[number], self.r_to[number] = row.valid_from, row.valid_to
            self.r_tx[number], self.r_end[number] = row.tx_from, row.tx_to
            self.v_ent[version], self.v_num[version], self.v_op[version] = ent, row.ordinal, row.operation
            self.v_pos[version], self.v_len[version] = row.body << BLOCK, row.length
            self._holding[ent] = number
        return [row.period for row in found]

    def read_events(self, numbers: Iterable[int]) -> None:
        """Read those of some things that are events, with all that decides when they happened and whether they are open, at once."""
        numbers = list(numbers)
        self.read_entities(numbers)
        events = [ent for ent in numbers if self.is_event[ent]]
        self._read_times(events)
        versions: Any = self.versions_of
        self._read_versions_of([ent for ent in events if ent not in versions])
        self.read_links(events)
        links = (link for ent in events for link in self.out[ent] if self.l_kind[link] == "resolved_by")
        self._read_times(list(dict.fromkeys(self.l_tgt[link] for link in links)))
        if self.whole is not self:
            self.whole.read_events(events)

    def read_weighed(self, entities: list[int]) -> None:
        """Read things with their links, and when they were confirmed or happened again, at once."""
        self.read_things(entities)
        self.read_links(entities)
        self._read_times([ent for ent in entities if self.is_event[ent]])
        confirmed: Any = self.confirmed
        missing = [ent for ent in entities if not confirmed.is_read(self.names[ent])]
        for ent in missing:
            confirmed[self.names[ent]] = []
        for row in self._point.rows(CONFIRMATIONS_OF, numbers=as_json(missing)) if missing else ():
            confirmed[row.id].append(row.operation)

    def read_ends(self, entities: Iterable[int]) -> set[int]:
        """Read what the links of some things lead to, at once. Returns these."""
        entities = list(entities)
        self.read_links(entities)
        links = [link for ent in entities for side in (self.out, self.into) for link in side[ent]]
        ends = {end for link in links for end in (self.l_src[link], self.l_tgt[link])}
        self.read_entities(ends)
        return ends

    def _read_times(self, entities: list[int]) -> None:
        """Read when things were believed, and when events happened again."""
        periods: Any = self.rows_of
        seen: Any = self.seen_of
        self.read_entities(entities)
        self._read_all_periods([ent for ent in entities if ent not in periods])
        self._read_occurrences([ent for ent in entities if not seen.is_read(ent)])

    def _add_links(self, links: Iterable[LinkBeside | LinkOfKind]) -> None:
        known: Any = self.l_kind
        fresh = {link.number: link for link in links if link.number not in known}
        for number, link in fresh.items():
            self.l_name[number], self.l_kind[number] = link.id, link.kind
            self.l_src[number], self.l_tgt[number] = link.source, link.target
            self.rows_of_link[number] = []
        for row in self._point.rows(LINK_ROWS, numbers=as_json(list(fresh))) if fresh else ():
            self._add_link_row(row)

    def _add_link_row(self, row: LinkRow) -> None:
        number, claim = row.number, row.claim
        self.rows_of_link[row.link].append(number)
        self.k_link[number], self.k_claim[number] = row.link, claim
        self.k_from[number], self.k_to[number] = row.valid_from, row.valid_to
        self.k_tx[number], self.k_end[number] = row.tx_from, row.tx_to
        self.c_strength[claim], self.c_inferred[claim], self.c_by[claim] = (
            row.strength,
            row.is_inferred,
            row.created_by,
        )
        self.c_pos[claim], self.c_len[claim], self.c_op[claim] = row.body << BLOCK, row.length, row.operation

    def _read_link(self, ent: int) -> None:
        self.read_links([ent])

    def _read_successors(self, ent: int) -> None:
        self.successors[ent] = [link for link in self.into[ent] if self.l_kind[link] == "supersedes"]

    def _read_entity(self, number: int) -> None:
        self._read_entities([number])

    def read_entities(self, numbers: Iterable[int]) -> None:
        """Read what some things are, at once."""
        names: Any = self.names
        missing = [ent for ent in dict.fromkeys(numbers) if ent not in names]
        if missing:
            self._read_entities(missing)

    def _read_entities(self, numbers: Iterable[int]) -> None:
        for row in self._point.rows(ENTITIES_NUMBERED, numbers=as_json(list(numbers))):
            number = row.number
            self.names[number], self.kind[number], self.key[number] = row.id, row.kind, row.key
            self.scope[number], self.is_event[number], self.born[number] = (
                row.scope,
                row.is_event,
                row.tx_from,
            )

    def _read_version(self, number: int) -> None:
        self._add_versions(self._point.rows(VERSIONS_NUMBERED, numbers=as_json([number])))

    def _read_version_list(self, ent: int) -> None:
        self._read_versions_of([ent])

    def _read_versions_of(self, entities: list[int]) -> None:
        for ent in entities:
            self.versions_of[ent] = []
        found = self._point.rows(VERSIONS_OF_ENTITIES, numbers=as_json(entities)) if entities else []
        self._add_versions(found)
        for version in found:
            self.versions_of[version.entity].append(version.number)

    def _add_versions(self, found: list[VersionNumbered]) -> None:
        for version in found:
            number = version.number
            self.v_ent[number], self.v_num[number], self.v_op[number] = (
                version.entity,
                version.ordinal,
                version.operation,
            )
            self.v_pos[number], self.v_len[number] = version.body << BLOCK, version.length

    def _read_periods(self, ent: int) -> None:
        self._read_all_periods([ent])

    def _read_all_periods(self, entities: list[int]) -> None:
        for ent in entities:
            self.rows_of[ent] = []
        for row in self._point.rows(PERIODS_OF, numbers=as_json(entities)):
            number = row.number
            self.rows_of[row.entity].append(number)
            self.r_ent[number], self.r_ver[number], self.r_op[number] = row.entity, row.version, row.opened_by
            self.r_from[number], self.r_to[number] = row.valid_from, row.valid_to
            self.r_tx[number], self.r_end[number] = row.tx_from, row.tx_to

    def _read_occurrence_list(self, ent: int) -> None:
        self._read_occurrences([ent])

    def _read_occurrences(self, events: list[int]) -> None:
        for ent in events:
            self.seen_of[ent] = []
        found = self._point.rows(OCCURRENCES_OF, numbers=as_json(events)) if events else []
        bounds: dict[int, tuple[Instant, Instant]] = {}
        for ent, number, at, tx, operation, body, length in found:
            first, last = bounds.get(ent, (at, at))
            bounds[ent] = self.s_first[number], self.s_last[number] = min(first, at), max(last, at)
            self.s_at[number], self.s_tx[number], self.s_op[number] = at, tx, operation
            self.o_tx[operation], self.o_pos[operation], self.o_len[operation] = tx, body << BLOCK, length
            self.seen_of[ent].append(number)

    def _read_confirmations(self, id: str) -> None:
        found = self._point.rows(CONFIRMATIONS_OF, numbers=as_json([self.ids.get(id, -1)]))
        self.confirmed[id] = [row.operation for row in found]

    def _read_operation(self, number: int) -> None:
        for row in self._point.rows(OPERATION, number=number):
            self.o_tx[number], self.o_verb[number] = row.tx, row.verb
            self.o_subject[number], self.o_author[number] = row.subject, row.author
            self.o_pos[number], self.o_len[number] = row.body << BLOCK, row.length

    def _count(self) -> int:
        if self._known < 0:
            [(self._known,)] = self._point.database.rows(f"SELECT entity % {SPAN} FROM next_number")
        return self._known

    def _every(self, at: int | None) -> Iterator[Any]:
        if at is None:
            raise NotInRows
        return (row[at] for row in self._point.rows(NAMES))
