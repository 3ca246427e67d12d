"""Reads from the rows of a ledger how entities stand, what invalidated them, and what rests on them.

A *fall* is an invalidation of an entity; a *look* is a recheck of one. The numbers of operations tell which came first.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from heapq import heappop, heappush
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

import orjson

from graphstore.ledger.chain import DESCRIBING, FORGOTTEN_BY, RETRACTING, UNDO
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.period import (
    ALWAYS,
    BEGINNING,
    OPEN,
    Instant,
    Period,
    coalesce,
    instant,
    overlap,
    without_all,
)
from graphstore.values.vocabulary import NEVER_SO, OF_EVENTS, RESTS, UPHOLDING

NOW: Instant = OPEN - 1
Part = TypeVar("Part", bound=tuple[Any, ...])


def _listed(names: Iterable[str]) -> str:
    """Return a parenthesised SQL list of quoted names."""
    quoted = (name.replace("'", "''") for name in sorted(names))
    return "(" + ", ".join(f"'{name}'" for name in quoted) + ")"


# Each statement takes a JSON array of numbers as ?1. Its first column is one of these numbers.
_EACH = "FROM json_each(?1) s CROSS JOIN"
_ENTITY = f"SELECT e.number, e.id, e.is_event, e.tx_from {_EACH} entity e WHERE e.number = s.value"
ROW = "p.entity, p.number, p.version, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by"
_ROWS = f"SELECT {ROW} {_EACH} period p WHERE p.entity = s.value ORDER BY p.number"
_OPERATION = f"SELECT o.number, o.tx, o.verb, o.subject {_EACH} operation o WHERE o.number = s.value"
_UNDONE = f"SELECT u.tx, u.operation {_EACH} undone u WHERE u.tx = s.value"
_SUPERSESSIONS = (
    "SELECT l.target, l.number, p.valid_from, p.valid_to, p.tx_from, p.tx_to "
    f"{_EACH} link l CROSS JOIN link_period p WHERE l.target = s.value AND l.kind = 'supersedes' AND p.link = l.number"
)
_RECORDED = (
    f"SELECT p.link, p.valid_from, p.valid_to, c.operation {_EACH} link_period p CROSS JOIN claim c "
    "WHERE p.link = s.value AND c.number = p.claim UNION ALL "
    f"SELECT n.link, n.valid_from, n.valid_to, n.operation {_EACH} linked n WHERE n.link = s.value"
)
_FORGOTTEN = f"SELECT f.entity, f.word, f.operation {_EACH} forgotten f WHERE f.entity = s.value"
_REMOVED = (
    "SELECT r.entity, r.valid_from, r.valid_to, r.operation "
    f"{_EACH} removed r WHERE r.entity = s.value ORDER BY r.number"
)
_COVERING = "SELECT p.entity, p.number, p.valid_from, p.valid_to, p.version, p.tx_from, p.tx_to, p.opened_by, p.closed_by FROM {0[period]}"
_CHANGED_OVER = (
    "SELECT p.entity, p.number, p.valid_from, p.valid_to, p.operation, p.is_certain FROM {0[changed]}"
)
_OF_ONE_SPAN = {
    table: f"{table} p WHERE p.entity = ?1 AND p.valid_from < ?3 AND p.valid_to > ?2 AND p.number < ?4 ORDER BY p.number DESC LIMIT ?5"
    for table in ("period", "changed")
}
_OF_SPANS = {
    table: f"json_each(?1) s CROSS JOIN {table} p WHERE p.number IN (SELECT q.number FROM {table} q WHERE q.entity = s.value ->> 0 "
    "AND q.valid_from < s.value ->> 2 AND q.valid_to > s.value ->> 1 AND q.number < s.value ->> 3 ORDER BY q.number DESC LIMIT ?2)"
    for table in ("period", "changed")
}
_CHANGED_AT = (
    "SELECT number, operation, is_certain FROM changed WHERE entity = ?1 AND valid_from <= ?2 AND valid_to > ?2 AND number < ?3 "
    "ORDER BY number DESC LIMIT ?4"
)
_ANY = "SELECT EXISTS (SELECT 1 FROM undone), EXISTS (SELECT 1 FROM covered)"
_COVERED = "SELECT operation, after, upto FROM covered ORDER BY operation, after"
_FIRST_RECORDED = (
    "SELECT s.value, (SELECT min(operation) FROM version WHERE entity = s.value) FROM json_each(?1) s"
)
_BELIEVED_SINCE = (
    "SELECT s.value, EXISTS (SELECT 1 FROM period WHERE entity = s.value AND opened_by < ?2), "
    "(SELECT min(valid_from) FROM period WHERE entity = s.value AND closed_by IS NULL), "
    "(SELECT valid_from FROM period WHERE entity = s.value AND closed_by IS NULL AND opened_by < ?2 ORDER BY valid_from LIMIT 1) "
    "FROM json_each(?1) s"
)
_BELIEVED_LINK = "EXISTS (SELECT 1 FROM link_period p WHERE p.link = l.number AND p.closed_by IS NULL)"
_SUPERSESSIONS_NOW = f"{_SUPERSESSIONS} AND p.closed_by IS NULL"
_SUPERSEDED_OVER = (
    "SELECT p.valid_from, p.valid_to FROM link l CROSS JOIN link_period p WHERE l.target = ?1 AND l.kind = 'supersedes' "
    "AND p.link = l.number AND p.closed_by IS NULL AND p.valid_from < ?3 AND p.valid_to > ?2"
)
_EVER_SUPERSEDED = (
    "SELECT s.value FROM json_each(?1) s "
    "WHERE EXISTS (SELECT 1 FROM link WHERE target = s.value AND kind = 'supersedes')"
)
_REPLACERS = (
    f"SELECT l.target, l.source, l.kind {_EACH} link l "
    f"WHERE l.target = s.value AND l.kind IN ('supersedes', 'corrects') AND {_BELIEVED_LINK}"
)
_REPLACED = (
    f"SELECT l.source, l.target {_EACH} link l "
    f"WHERE l.source = s.value AND l.kind IN ('supersedes', 'corrects') AND {_BELIEVED_LINK}"
)
_BELIEVED = (
    "SELECT e.number, p.valid_from, p.valid_to, EXISTS (SELECT 1 FROM changed c WHERE c.entity = e.number) - 1 "
    f"{_EACH} entity e CROSS JOIN period p WHERE e.number = s.value AND p.entity = e.number AND p.closed_by IS NULL "
    "ORDER BY p.valid_from"
)
_BELIEVED_AT = (
    "SELECT e.number, p.valid_from, p.valid_to, EXISTS (SELECT 1 FROM changed c WHERE c.entity = e.number) - 1 "
    f"{_EACH} entity e CROSS JOIN period p WHERE e.number = s.value AND p.number IN ("
    "(SELECT q.number FROM period q WHERE q.entity = s.value AND q.closed_by IS NULL ORDER BY q.valid_from LIMIT 1), "
    "(SELECT q.number FROM period q WHERE q.entity = s.value AND q.closed_by IS NULL AND q.valid_from <= {valid} "
    "ORDER BY q.valid_from DESC LIMIT 1)) ORDER BY p.valid_from"
)
_CONFIRMED = (
    "SELECT e.number, (SELECT o.number FROM operation o WHERE o.subject = e.id AND o.verb = 'confirm' "
    f"AND o.tx >= e.tx_from AND o.number < ?2 ORDER BY o.number DESC LIMIT 1) {_EACH} entity e WHERE e.number = s.value"
)
_ABSENCE = (
    "SELECT a.entity, a.valid_from, a.valid_to, a.standing "
    f"{_EACH} absence a WHERE a.entity = s.value AND a.tx_to = {OPEN} ORDER BY a.valid_from"
)
_SHAKY = (
    f"SELECT a.entity, a.valid_from, a.valid_to {_EACH} shaky a "
    f"WHERE a.entity = s.value AND a.tx_to = {OPEN} ORDER BY a.valid_from"
)
_LINKED = (
    "SELECT s.value FROM json_each(?1) s WHERE EXISTS (SELECT 1 FROM link WHERE source = s.value AND kind IN (:resting)) "
    "OR EXISTS (SELECT 1 FROM link WHERE target = s.value AND kind IN (:resting))"
)
_MAY_HAVE_FALLEN = (
    "SELECT s.value FROM json_each(?1) s WHERE "
    f"EXISTS (SELECT 1 FROM period WHERE entity = s.value AND (valid_to < {OPEN} OR closed_by IS NOT NULL)) "
    "OR EXISTS (SELECT 1 FROM changed WHERE entity = s.value) OR EXISTS (SELECT 1 FROM removed WHERE entity = s.value) "
    "OR EXISTS (SELECT 1 FROM link WHERE target = s.value AND kind = 'supersedes') "
    "OR NOT EXISTS (SELECT 1 FROM period WHERE entity = s.value)"
)
# Conditions of links by which one end rests on the other; `e` is the end that rests. By most kinds (:kinds) the source rests on the target, by the upholding
# kinds the target on the source.
_IS_RESTING = (
    f"AND e.number = l.source AND l.kind IN (:kinds) AND (e.is_event = 0 OR l.kind IN {_listed(OF_EVENTS)})"
)
_IS_UPHELD = (
    f"AND e.number = l.target AND e.is_event = 0 AND l.kind IN {_listed(UPHOLDING)} AND NOT EXISTS "
    f"(SELECT 1 FROM entity u WHERE u.number = l.source AND u.is_event = 1 AND u.kind = '{CONFIRMATION}')"
)


def _resting(resting: tuple[str, str], upheld: tuple[str, str]) -> str:
    """Return the statement that finds the links by which one end rests on the other. Each argument: the column that is given, and the one that is found."""
    parts = [
        f"SELECT l.{asked}, l.{other}, p.valid_from, p.valid_to, l.number, l.kind, c.is_history {_EACH} link l CROSS JOIN entity e "
        f"CROSS JOIN link_period p CROSS JOIN claim c WHERE l.{asked} = s.value {condition} AND p.link = l.number AND p.closed_by IS NULL "
        "AND c.number = p.claim"
        for (asked, other), condition in ((resting, _IS_RESTING), (upheld, _IS_UPHELD))
    ]
    return " UNION ALL ".join(parts)


def _ahead(resting: tuple[str, str], upheld: tuple[str, str]) -> str:
    """Return the statement that follows such links from given entities. It finds these and the nearest entities reached, ?2 at most in total."""
    parts = [
        f"SELECT l.{other} FROM ahead a CROSS JOIN link l CROSS JOIN entity e WHERE l.{asked} = a.number {condition}"
        for (asked, other), condition in ((resting, _IS_RESTING), (upheld, _IS_UPHELD))
    ]
    recursion = " UNION ".join(["SELECT s.value FROM json_each(?1) s", *parts])
    return f"WITH RECURSIVE ahead(number) AS ({recursion} LIMIT ?2) SELECT number FROM ahead"


_DOWN, _UP = ("target", "source"), ("source", "target")
_DEPENDANTS, _DEPENDANTS_AHEAD = _resting(_DOWN, _UP), _ahead(_DOWN, _UP)
_GROUNDS, _GROUNDS_AHEAD = _resting(_UP, _DOWN), _ahead(_UP, _DOWN)
_RESTING_KINDS = 'SELECT kind FROM defined WHERE instr(kind, \'"rests":["\') > 0 ORDER BY number'
_NO_ROWS: list[Any] = []  # shared by all numbers without rows: each list more makes garbage collection slower
_NARROW = 16  # entities or rows; below this a statement costs more than the rows that it returns


Absence = tuple[Instant, Instant, str]
Fetch = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with the values of its parameters and returns its rows."""


class Fall(NamedTuple):
    """Holds one invalidation of an entity: the operation that caused it, and its word (superseded, revised, retracted …)."""

    operation: int
    word: str


class FallenPart(NamedTuple):
    """Holds the falls of an entity over a part of valid time, newest first."""

    start: Instant
    stop: Instant
    falls: list[Fall]


class Covered(NamedTuple):
    """Holds a range of falls covered by a look that a merge brought: those by operations after `after`, up to `upto`, over a part of valid time."""

    start: Instant
    stop: Instant
    after: int
    upto: int


class PeriodRow(NamedTuple):
    """A row of `period`."""

    number: int
    version: int
    start: Instant
    stop: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None


class SupersessionRow(NamedTuple):
    """A row of `link_period` of a link that supersedes an entity."""

    link: int
    start: Instant
    stop: Instant
    tx_from: Instant
    tx_to: Instant


class Ground(NamedTuple):
    """Holds a link believed now by which one entity rests on another over a period. `other` is the entity at the other end from the one asked about.

    `never_so` is 1 if only the falls in `NEVER_SO` count for this link: one entity was made from an earlier state of the other, or replaces it.
    """

    other: int
    start: Instant
    stop: Instant
    link: int
    kind: str
    never_so: int


class EntityRow(NamedTuple):
    """A row of `entity`."""

    id: str
    is_event: int
    tx_from: Instant


class Lookup(dict[int, list[Any]]):
    """Caches the rows of a statement by number, such as an entity's. `load` reads those of many numbers at once; each number is read once."""

    __slots__ = ("_fetch", "_make", "_statement")

    def __init__(self, fetch: Fetch, statement: str, make: Callable[[Any], Any]) -> None:
        self._fetch, self._statement, self._make = fetch, statement, make

    def __missing__(self, number: int) -> list[Any]:
        make = self._make
        found = self._fetch(_of_one(self._statement), (number,))
        self[number] = rows = [make(row[1:]) for row in found]
        return rows

    def load(self, numbers: Iterable[int]) -> list[int]:
        """Read the rows of numbers that are not cached yet. Return these numbers."""
        missing = [number for number in set(numbers) if number not in self]
        if len(missing) > 1:
            self.update(dict.fromkeys(missing, _NO_ROWS))
            make = self._make
            for row in self._fetch(self._statement, (_array(missing),)):
                if found := self[row[0]]:
                    found.append(make(row[1:]))
                else:
                    self[row[0]] = [make(row[1:])]
        elif missing:
            self.__missing__(missing[0])
        return missing


class LookupOfRows:
    """Creates a `Lookup` of a statement's rows as an attribute of `Facts`, on first access. The rows are tuples of the class `row`.

    `of_links`: replace (:kinds) in the statement by the kinds of link that the store uses.
    """

    def __init__(self, statement: str, row: type[Any] = tuple, *, of_links: bool = False) -> None:
        self._statement, self._make, self._of_links = statement, partial(tuple.__new__, row), of_links

    def __set_name__(self, owner: type[Facts], name: str) -> None:
        self._name = name

    def __get__(self, facts: Facts, owner: type[Facts]) -> Lookup:
        """Return a new lookup, and store it in the instance under the same name: later accesses do not come here."""
        statement = facts.of_kinds(self._statement) if self._of_links else self._statement
        found = Lookup(facts.fetch_rows, statement, self._make)
        facts.__dict__[self._name] = found
        return found


def _array(numbers: Collection[int]) -> str:
    return orjson.dumps(list(numbers)).decode()


@cache
def _of_one(statement: str) -> str:
    """Return the statement rewritten for one number instead of an array, which saves 10 µs."""
    return statement.replace("json_each(?1) s", "(SELECT ?1 AS value) s")


@cache
def _of_kinds(statement: str, kinds: tuple[str, ...]) -> str:
    replacing = statement.replace("(:kinds)", _listed(kind for kind in kinds if kind not in UPHOLDING))
    return replacing.replace("(:resting)", _listed({*kinds, *UPHOLDING}))


def joined(absences: Iterable[Absence]) -> list[Absence]:
    """Return absences, which are sorted, with adjacent equal ones merged."""
    found: list[Absence] = []
    for start, stop, word in absences:
        if found and found[-1][1:] == (start, word):
            start = found.pop()[0]
        found.append((start, stop, word))
    return found


def fetching(connection: sqlite3.Connection) -> Fetch:
    """Return a function that runs statements on a connection."""
    return lambda statement, values=(): connection.execute(statement, values).fetchall()


def resting_kinds(fetch: Fetch) -> Mapping[str, frozenset[str]]:
    """Return the kinds of link by which one end rests on the other, including those that this store defined. Each has the words of the falls that pass it."""
    kinds = [orjson.loads(text) for (text,) in fetch(_RESTING_KINDS)]
    return {**RESTS, **{kind["name"]: frozenset(kind["rests"]) for kind in kinds}} if kinds else RESTS


class Facts:
    """Reads what the rows state now about entities and links, each row once. Call `load_…` first to read the rows of many entities with one statement."""

    rows = LookupOfRows(_ROWS, PeriodRow)
    """The periods of each entity, in the order of writing."""
    absence = LookupOfRows(_ABSENCE)
    """The standing of each entity where it does not stand, from rows that are still open."""
    shaky = LookupOfRows(_SHAKY)
    """The valid time over which each entity is shaky, from rows that are still open."""
    grounds = LookupOfRows(_GROUNDS, Ground, of_links=True)
    """What each entity rests on, by links believed now."""
    _dependants = LookupOfRows(_DEPENDANTS, Ground, of_links=True)
    believed = LookupOfRows(_BELIEVED)
    """The periods of each entity believed now, by valid_from. The third column is 0 if the entity's content was ever changed, else -1."""
    entities = LookupOfRows(_ENTITY, EntityRow)
    _operations = LookupOfRows(_OPERATION)
    _undone = LookupOfRows(_UNDONE)
    _supersessions = LookupOfRows(_SUPERSESSIONS_NOW, SupersessionRow)
    _all_supersessions = LookupOfRows(_SUPERSESSIONS, SupersessionRow)
    ever_superseded = LookupOfRows(_EVER_SUPERSEDED)
    """Empty for an entity that was never the target of a supersession."""
    _recorded = LookupOfRows(_RECORDED)
    _forgotten = LookupOfRows(_FORGOTTEN)
    _removed = LookupOfRows(_REMOVED)
    _replacers = LookupOfRows(_REPLACERS)
    replaced = LookupOfRows(_REPLACED)
    """What each entity supersedes or corrects by links believed now, over any time."""
    _first_recorded = LookupOfRows(_FIRST_RECORDED)
    may_have_fallen = LookupOfRows(_MAY_HAVE_FALLEN)
    """Empty for an entity that can have no fall that counts."""

    def __init__(self, fetch: Fetch) -> None:
        self.fetch_rows = fetch
        [(self._any_undone, any_covered)] = self.fetch(_ANY)
        self.resting: Mapping[str, frozenset[str]] = resting_kinds(fetch)
        self._steps: dict[str, int] = {}  # how many entities each statement reads ahead next time
        self._spans: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._upright: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._changed: dict[int, list[tuple[Instant, Instant, int, bool]]] = {}
        self._whole: dict[tuple[int, Instant], list[Fall]] = {}
        # by looks that a merge brought: the ranges of operations (after, up to) whose falls each one covers
        self._coverage = self._read_coverage() if any_covered else {}
        self.covered: dict[int, list[Covered]] = {}
        """For each entity, the ranges of falls that looks of merges cover in addition to the falls before its last look."""

    def _read_coverage(self) -> dict[int, list[Period]]:
        found: dict[int, list[Period]] = {}
        for operation, after, upto in self.fetch(_COVERED):
            found.setdefault(operation, []).append((after, upto))
        return found

    def _forget_parts(self) -> None:
        """Discard the rows that were read for some periods only."""
        for name in ("rows", "_removed"):
            self.__dict__.pop(name, None)
        self._changed.clear()
        self._whole.clear()

    def of_kinds(self, statement: str) -> str:
        """Return a statement with the kinds of link inserted: for (:kinds) those by which a source rests on its target, for (:resting) all resting kinds."""
        return _of_kinds(statement, tuple(self.resting))

    def fetch(self, statement: str, *values: object) -> list[Any]:
        """Fetch the rows of a statement."""
        return self.fetch_rows(statement, values)

    def _each(self, statement: str, numbers: Collection[int], *values: int) -> list[Any]:
        """Run a statement for numbers and return its rows."""
        if len(numbers) == 1:
            return self.fetch(_of_one(statement), *numbers, *values)
        return self.fetch(statement, _array(numbers), *values)

    # ------------------------------------------------------------------ rows

    def entity(self, number: int) -> EntityRow:
        """Return the row of an entity."""
        [found] = self.entities[number]
        return cast("EntityRow", found)

    def operation(self, number: int) -> tuple[Instant, str, str]:
        """Return the tx, verb and subject of an operation."""
        [found] = self._operations[number]
        return cast("tuple[Instant, str, str]", found)

    def verb(self, operation: int) -> str:
        """Return the verb of an operation."""
        return self.operation(operation)[1]

    def counts(self, operation: int) -> bool:
        """Return True if the transaction of an operation was not undone, or its undo was itself undone."""
        return not self._any_undone or not self._undos(self.operation(operation)[0])

    def _undos(self, tx: Instant) -> list[int]:
        """Return the operations that undid a transaction and were not undone themselves."""
        return [undo for (undo,) in self._undone[tx] if self.counts(undo)]

    def supersessions(self, entity: int) -> list[SupersessionRow]:
        """Return the periods over which links supersede an entity. For a forgotten entity this includes periods that are not believed any more."""
        lookup = self._all_supersessions if self._forgotten[entity] else self._supersessions
        return lookup[entity]

    def replacers(self, entity: int) -> set[int]:
        """Return the entities that supersede or correct an entity by links believed now, over any time."""
        return {source for source, _ in self._replacers[entity]}

    def _correctors(self, entity: int) -> set[int]:
        return {source for source, kind in self._replacers[entity] if kind == "corrects"}

    def is_exempt(self, entity: int, fall: Fall, root: int) -> bool:
        """Return True if an entity replaces `root` and its fall does not shake it: one outside `NEVER_SO`, or the entity's own correction."""
        if entity not in self.replacers(root):
            return False
        return fall.word not in NEVER_SO or (fall.word == "corrected" and entity in self._correctors(root))

    def forgotten(self, entity: int) -> tuple[str, int] | None:
        """Return the word and the operation of the last eviction or erasure of an entity; None if it was never forgotten."""
        rows = self._forgotten[entity]
        return rows[0] if rows else None

    def removed(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return what was taken from an entity and shows in no period, as (start, stop, operation), in the order of operations."""
        return [row for row in self._removed[entity] if self.counts(row[2])]

    # ------------------------------------------------------------------ reading many at once

    def linked(self, entities: Collection[int]) -> set[int]:
        """Return the entities that ever had a link by which one end rests on the other."""
        return {entity for (entity,) in self._each(self.of_kinds(_LINKED), entities)}

    def load_whole(self, entities: Collection[int]) -> None:
        """Read the whole past of several entities. A single one is read when it is needed."""
        if len(entities) < 2:
            return
        for lookup in (self.rows, self._removed, self._forgotten, self.believed, self._supersessions):
            lookup.load(entities)
        rows = [row for entity in entities for row in self.rows[entity]]
        self.load_operations({by for row in rows for by in (row.opened_by, row.closed_by)})

    def load_operations(self, numbers: Iterable[int | None]) -> None:
        self._operations.load(number for number in numbers if number is not None)

    def load_fallen(self, entities: Collection[int]) -> None:
        """Read for entities what is believed now, whether they were forgotten, and what replaces them."""
        for lookup in (self.entities, self._forgotten, self.believed, self._supersessions, self._replacers):
            lookup.load(entities)

    def load_below(self, entities: Collection[int]) -> None:
        """Read what rests on entities, and how those dependants stand. For a few entities, also read further levels of dependants ahead."""
        missing = self._with_ahead(entities, self._dependants, _DEPENDANTS_AHEAD)
        self.load_dependants(missing)
        self.load_spans(missing)
        self.shaky.load(missing)

    def load_above(self, entities: Collection[int]) -> None:
        """Read what entities rest on, and whether that may have a fall. For a few entities, also read further levels of foundations ahead."""
        missing = self._with_ahead(entities, self.grounds, _GROUNDS_AHEAD)
        self.grounds.load(missing)
        bases = {ground.other for entity in (*missing, *entities) for ground in self.grounds[entity]}
        self.may_have_fallen.load(bases)
        self.shaky.load(bases)

    def load_recorded(self, grounds: Iterable[Ground]) -> None:
        """Read which operations recorded the links of some grounds."""
        self._recorded.load(ground.link for ground in grounds)

    def _with_ahead(self, entities: Collection[int], known: Lookup, statement: str) -> list[int]:
        """Return the entities that `known` lacks. If these are few, add entities ahead along links: twice as many each time, while most are new."""
        missing = [entity for entity in entities if entity not in known]
        if not missing:
            return missing
        most, self._steps[statement] = self._steps.get(statement, 0), _NARROW
        if len(missing) >= _NARROW or not most:
            return missing
        ahead = self._each(self.of_kinds(statement), missing, len(missing) + most)
        new = [entity for (entity,) in ahead if entity not in known]
        if 2 * len(new) > len(ahead):
            self._steps[statement] = 2 * most
        return new

    # ------------------------------------------------------------------ foundations and dependants

    def dependants(self, base: int) -> list[Ground]:
        """Return the dependants of an entity by links believed now."""
        if base not in self._dependants:
            self.load_dependants((base,))
        return self._dependants[base]

    def load_dependants(self, bases: Iterable[int]) -> None:
        """Read the dependants of entities."""
        missing = [base for base in self._dependants.load(bases) if self._dependants[base]]
        self._replacers.load(missing)
        for base in missing:
            self._dependants[base] = self.with_replacers(base, self._dependants[base])

    def with_replacers(self, base: int, dependants: list[Ground]) -> list[Ground]:
        """Return dependants of an entity, with `never_so` set for those that replace it."""
        replacers = self.replacers(base)
        if not replacers:
            return dependants
        return [one._replace(never_so=1) if one.other in replacers else one for one in dependants]

    def believed_since(
        self, entities: Collection[int], operation: int
    ) -> dict[int, tuple[int, Instant | None, Instant | None]]:
        """Return for each entity: 1 if a period was opened before `operation`, its first valid_from believed now, and that of such an early period."""
        return {entity: tuple(found) for entity, *found in self._each(_BELIEVED_SINCE, entities, operation)}

    def was_ever_unmade(self, entity: int) -> bool:
        """Return True if the transaction that made an entity was ever undone, even if that undo does not count any more."""
        return bool(self._undone[self.entity(entity).tx_from])

    def ever_removed(self, entity: int) -> bool:
        """Return True if a part of an entity was ever opened and removed within one transaction."""
        return bool(self.fetch("SELECT EXISTS (SELECT 1 FROM removed WHERE entity = ?)", entity)[0][0])

    def has_dependants_before(self, entity: int, operation: int) -> bool:
        """Return True if anything rested on an entity before an operation."""
        grounds = self.dependants(entity)
        self.load_recorded(grounds)
        return any(by < operation for ground in grounds for _, _, by in self._recorded[ground.link])

    # ------------------------------------------------------------------ standing of an entity

    def supersessions_at(self, entity: int, valid: Instant, upto: Instant = NOW) -> list[SupersessionRow]:
        """Return the supersessions of an entity that hold at an instant, as believed at `upto`."""
        return [
            row
            for row in self.supersessions(entity)
            if row.start <= valid < row.stop and row.tx_from <= upto < row.tx_to
        ]

    def superseded_over(self, entity: int, period: Period) -> list[Period]:
        """Return the periods over which an entity is superseded and that overlap `period`."""
        return self.fetch(_SUPERSEDED_OVER, entity, *period) if self.ever_superseded[entity] else []

    def standing(self, entity: int, valid: Instant) -> str:
        """Return the standing of an entity at an instant: stands, not_yet, retracted, superseded or ended. The entity must not be forgotten."""
        believed = self.believed[entity]
        is_event = self.entity(entity).is_event
        if self._stands_at(entity, valid):
            return "superseded" if is_event and self.supersessions_at(entity, valid) else "stands"
        if is_event:
            return "not_yet" if believed else "retracted"
        return self._absence(entity, valid, believed)

    def _absence(self, entity: int, valid: Instant, believed: list[tuple[Instant, Instant, int]]) -> str:
        if believed and valid < believed[0][0]:
            return "not_yet"
        last = -1 if believed else self.last_removal(entity)
        if self.is_retraction(last) or self.is_retraction(self.removal_at(entity, valid)):
            return "retracted"
        if self.supersessions_at(entity, valid):
            return "superseded"
        if believed:
            return "ended"
        if self._supersessions_after(entity, valid):
            return "superseded"  # a plan that was replaced before it started
        return "ended" if last >= 0 else "retracted"

    def _supersessions_after(self, entity: int, valid: Instant) -> list[SupersessionRow]:
        """Return the supersessions of an entity, believed now, that start after an instant."""
        return [row for row in self.supersessions(entity) if row.tx_to == OPEN and valid < row.start]

    def is_retraction(self, operation: int) -> bool:
        """Return True if an operation states that what it removed never was so."""
        return operation >= 0 and self.verb(operation) in RETRACTING

    def removes(self, operation: int | None, entity: int, upto: Instant = NOW) -> bool:
        """Return True if an operation that closed a period of an entity removed a part of it, and still counts."""
        if operation is None:
            return False
        tx, verb, subject = self.operation(operation)
        if tx > upto or verb in DESCRIBING:
            return False
        if verb == UNDO and instant(subject) != self.entity(entity).tx_from:
            return False
        return self.counts(operation)

    def removal_at(self, entity: int, valid: Instant) -> int:
        """Return the last operation that removed an instant of an entity, or -1 if none did."""
        found = -1
        if self._any_undone:
            found = max(self._undos(self.entity(entity).tx_from), default=-1)
            for row in reversed(self.rows[entity]):
                if row.start <= valid < row.stop and self.removes(row.closed_by, entity):
                    found = max(found, row.closed_by or 0)
                    break
        else:
            covers = (row for row in reversed(self.rows[entity]) if row.start <= valid < row.stop)
            cover = next(covers, None)  # the period written last over the instant, believed or not
            if cover is not None and self.removes(cover.closed_by, entity):
                found = cover.closed_by or 0
        gaps = (by for start, stop, by in self.removed(entity) if start <= valid < stop)
        return max(found, max(gaps, default=-1))

    def last_removal(self, entity: int, upto: Instant = NOW) -> int:
        """Return the last operation that removed a part of an entity, or -1 if none did."""
        gaps = [by for _, _, by in self.removed(entity) if self.operation(by)[0] <= upto]
        closing = [
            row.closed_by
            for row in self.rows[entity]
            if row.closed_by is not None and self.removes(row.closed_by, entity, upto)
        ]
        return max((*gaps, *closing), default=-1)

    def removals(self, entity: int) -> list[tuple[int, Period]]:
        """Return what was removed from an entity, as pairs of operation and period."""
        gaps = self.removed(entity)
        found = [(by, (start, stop)) for start, stop, by in gaps]
        listed = {by for _, _, by in gaps}
        pieces: dict[tuple[int, int], list[Period]] = {}
        for row in self.rows[entity]:
            pieces.setdefault((row.opened_by, row.version), []).append((row.start, row.stop))
        for row in self.rows[entity]:
            by = row.closed_by
            if by is not None and by not in listed and self.removes(by, entity):
                kept = pieces.get((by, row.version), ())
                found += [(by, part) for part in without_all((row.start, row.stop), kept)]
        return found

    def edges(self, entity: int) -> list[Instant]:
        """Return the sorted instants at which the standing of an entity may change, with both ends of time."""
        found = {BEGINNING, OPEN}
        for row in (*self.rows[entity], *self.supersessions(entity)):
            found.update((row.start, row.stop))
        for start, stop, *_ in (
            *self.believed[entity],
            *self.removed(entity),
            *self._changed.get(entity, ()),
        ):
            found.update((start, stop))
        return sorted(found)

    def absences(self, entity: int) -> list[Absence]:
        """Return the parts of valid time in which an entity does not stand, each as superseded, ended or retracted. Parts before its start are left out."""
        parts = [(start, stop, self.standing(entity, start)) for start, stop in pairwise(self.edges(entity))]
        return joined(part for part in parts if part[2] not in ("stands", "not_yet"))

    # ------------------------------------------------------------------ falls of an entity

    def falls(self, asked: Mapping[int, tuple[list[Period], list[Ground]]]) -> dict[int, list[FallenPart]]:
        """Return for each entity its falls over the requested periods, as far as they count for the given links."""
        self._forget_parts()
        self._load_over(asked)
        return {entity: self._falls_within(entity, periods) for entity, (periods, _) in asked.items()}

    def _falls_within(self, entity: int, periods: list[Period]) -> list[FallenPart]:
        edges = self.edges(entity)
        return [part for period in periods for part in self._falls_over(entity, period, edges)]

    def _load_over(self, wanted: Mapping[int, tuple[list[Period], list[Ground]]]) -> None:
        """Read what decides the falls of nodes over periods: the last believed periods where they do not stand, and their last changes of content elsewhere."""
        absent: dict[int, list[Period]] = {}
        present: dict[int, list[Period]] = {}
        for entity, (periods, grounds) in wanted.items():
            if not self.believed[entity] or self._forgotten[entity] or self.entity(entity).is_event:
                continue
            standing = coalesce(part[:2] for part in self.believed[entity])
            absent[entity] = [part for period in periods for part in without_all(period, standing)]
            if any("revised" in self.resting[ground.kind] for ground in grounds):
                present[entity] = [
                    both for period in periods for one in standing if (both := overlap(period, one))
                ]
        covering = self._last_over(
            _COVERING,
            {entity: parts for entity, parts in absent.items() if entity not in self.rows},
            lambda entity, row: not self._any_undone or self.removes(row[-1], entity),
        )
        for entity, rows in covering.items():
            self.rows[entity] = [
                PeriodRow(number, version, start, stop, *more) for number, start, stop, version, *more in rows
            ]
        gone = [entity for entity, parts in absent.items() if parts]
        self._first_recorded.load(gone)
        self._removed.load(gone)
        self._removed.update((entity, _NO_ROWS) for entity, parts in absent.items() if not parts)
        changed = self._last_over(
            _CHANGED_OVER,
            present,
            lambda _, row: row[4] and self.counts(row[3]),
            lambda entity: self._recorded_before(wanted[entity][1]),
        )
        for entity, rows in changed.items():
            self._changed[entity] = [row[1:] for row in rows if self.counts(row[3])]

    def _last_over(
        self,
        statement: str,
        asked: Mapping[int, list[Period]],
        counts: Callable[[int, Any], object],
        first: Callable[[int], int] | None = None,
    ) -> dict[int, list[Any]]:
        """Read the newest rows of entities in steps, until rows that count cover all requested time. Return each entity's rows, oldest first.

        Args:
            statement: takes (entity, start, stop, number before) and a limit. Its rows begin with number, start and stop.
            asked: the periods of each entity.
            counts: returns True if a row counts.
            first: returns the operation before which rows of an entity do not matter, compared with the fourth column; None: all rows matter.
        """
        found: dict[int, list[Any]] = {entity: [] for entity in asked}
        left = {entity: coalesce(periods) for entity, periods in asked.items() if periods}
        before, most = dict.fromkeys(left, OPEN), _NARROW
        while left:
            spans = [(entity, parts[0][0], parts[-1][1], before[entity]) for entity, parts in left.items()]
            rows_of: dict[int, list[Any]] = {}
            for entity, *row in self._over_spans(statement, spans, most):
                rows_of.setdefault(entity, []).append(row)
            for entity, *_ in spans:
                rows = sorted(rows_of.get(entity, ()), reverse=True)
                found[entity] += rows
                holes = coalesce((row[1], row[2]) for row in rows if counts(entity, row))
                parts = left[entity] = without_periods(left[entity], holes)
                if not parts or len(rows) < most or (first is not None and rows[-1][3] < first(entity)):
                    del left[entity]
                else:
                    before[entity] = rows[-1][0]
            most *= 4
        return {entity: rows[::-1] for entity, rows in found.items()}

    def _over_spans(self, statement: str, spans: Sequence[tuple[int, ...]], most: int) -> list[Any]:
        """Return the last rows of each span (entity, start, stop, number before), at most `most` a span."""
        if len(spans) == 1:
            return self.fetch(statement.format(_OF_ONE_SPAN), *spans[0], most)
        return self.fetch(statement.format(_OF_SPANS), orjson.dumps(spans).decode(), most)

    def _recorded_before(self, grounds: Iterable[Ground]) -> int:
        """Return the first operation that recorded any of the links; -1 if there are none."""
        self.load_recorded(grounds)
        return min((by for ground in grounds for _, _, by in self._recorded[ground.link]), default=-1)

    def _falls_over(self, entity: int, period: Period, edges: list[Instant]) -> Iterator[FallenPart]:
        gone = self.forgotten(entity)
        forgot = -1 if gone is None else self._forgot(entity, gone[1])
        last: FallenPart | None = None
        for start, stop in pairwise(
            [period[0], *(edge for edge in edges if period[0] < edge < period[1]), period[1]]
        ):
            if forgot >= 0:
                falls = self._became_of_forgotten(entity, start, forgot)
            else:
                falls = self._became(entity, start, NOW if gone is None else self._before_forgotten(entity))
            if last is not None and last.falls == falls:
                last = FallenPart(last.start, stop, falls)
                continue
            if last is not None and last.falls:
                yield last
            last = FallenPart(start, stop, falls)
        if last is not None and last.falls:
            yield last

    def _stands_at(self, entity: int, valid: Instant) -> bool:
        believed = self.believed[entity]
        at = bisect_right(believed, valid, key=itemgetter(0)) - 1
        return at >= 0 and valid < believed[at][1]

    def _forgot(self, entity: int, last: int) -> int:
        """Return the operation whose forgetting counts as a fall, or -1. The eviction of an event does not: it was too old to keep, but is still true."""
        closing = {row.closed_by for row in self.rows[entity] if row.closed_by is not None}
        forgetting = sorted({by for by in closing if self.verb(by) in FORGOTTEN_BY} | {last}, reverse=True)
        is_event = self.entity(entity).is_event
        return next((by for by in forgetting if FORGOTTEN_BY[self.verb(by)] == "erased" or not is_event), -1)

    def _before_forgotten(self, entity: int) -> Instant:
        """Return the last tx before an entity was first forgotten."""
        closing = {row.closed_by for row in self.rows[entity] if row.closed_by is not None}
        return min(
            (self.operation(by)[0] - 1 for by in closing if self.verb(by) in FORGOTTEN_BY), default=NOW
        )

    def _became(self, entity: int, valid: Instant, upto: Instant) -> list[Fall]:
        if self.entity(entity).is_event:
            return self._became_of_event(entity, valid, upto)
        if self._stands_at(entity, valid):
            return self._revisions(entity, valid)
        return self._became_absent(entity, valid, upto, bool(self.believed[entity]))

    def _became_absent(self, entity: int, valid: Instant, upto: Instant, is_believed: bool) -> list[Fall]:
        """Return the falls of a node at an instant where it does not stand. The operation that removed the last of its time counts at every instant."""
        whole = [] if is_believed else self._whole_fall(entity, upto)
        here = self.removal_at(entity, valid)
        if self.is_retraction(here):
            found = [self._retraction(here)]
        else:
            found = self._other_fall(entity, here, valid, upto, is_whole=bool(whole))
        return sorted({*whole, *found}, reverse=True)

    def _whole_fall(self, entity: int, upto: Instant) -> list[Fall]:
        """Return the fall of a node of which no period is left; an empty list if it was never removed."""
        if (found := self._whole.get((entity, upto))) is None:
            last = self.last_removal(entity, upto)
            found = self._whole[entity, upto] = [] if last < 0 else [self._fall_by(entity, last, upto)]
        return found

    def _fall_by(self, entity: int, removal: int, upto: Instant) -> Fall:
        """Return the fall of a node by the operation that removed the last of its time."""
        if self.is_retraction(removal):
            return self._retraction(removal)
        is_superseded = any(row.tx_from <= upto < row.tx_to for row in self.supersessions(entity))
        return Fall(removal, "superseded" if is_superseded else "ended")

    def _became_of_forgotten(self, entity: int, valid: Instant, forgot: int) -> list[Fall]:
        """Return the falls of an erased entity or an evicted node. An eviction counts only where the node was believed until then."""
        fall = Fall(forgot, FORGOTTEN_BY[self.verb(forgot)])
        if fall.word in NEVER_SO:
            return [fall]
        rows = [
            row
            for row in self.rows[entity]
            if row.closed_by is not None and self.verb(row.closed_by) in FORGOTTEN_BY
        ]
        if any(row.start <= valid < row.stop for row in rows):
            return [fall]
        return self._became_absent(entity, valid, self._before_forgotten(entity), bool(rows))

    def _became_of_event(self, entity: int, valid: Instant, upto: Instant) -> list[Fall]:
        believed = [row for row in self.rows[entity] if row.tx_from <= upto < row.tx_to]
        if any(row.start <= valid < row.stop for row in believed):
            by = self._superseded_by(entity, valid, upto) or self._superseded_wholly(entity, believed, upto)
            return [Fall(min(by), "superseded")] if by else []
        if believed:
            by = self._superseded_wholly(entity, believed, upto)
            return [Fall(min(by), "superseded")] if by else []
        last = self.last_removal(entity, upto)
        return [self._retraction(last)] if last >= 0 else []

    def _superseded_wholly(self, event: int, believed: list[PeriodRow], upto: Instant) -> list[int]:
        """Return the operations that recorded supersessions covering the whole of an event. `believed`: the event's periods."""
        begun = min(row.start for row in believed)
        return [
            self.recorded_first(row.link)
            for row in self.supersessions(event)
            if row.start <= begun and row.stop == OPEN and row.tx_from <= upto < row.tx_to
        ]

    def _other_fall(
        self, entity: int, here: int, valid: Instant, upto: Instant, *, is_whole: bool
    ) -> list[Fall]:
        """Return the fall of a node at an instant that was not retracted. `here`: the operation that removed the instant; `is_whole`: no period is left."""
        by = self._superseded_by(entity, valid, upto)
        if by:
            return [Fall(max(min(by), here), "superseded")]
        if here >= 0:
            return [Fall(here, "ended")]
        if is_whole or self.standing(entity, valid) == "not_yet":
            return []
        [(first,)] = self._first_recorded[entity]
        return [] if first is None else [Fall(first, "ended")]

    def _retraction(self, operation: int) -> Fall:
        if self.verb(operation) != "correct":
            return Fall(operation, "retracted")
        return Fall(self._description_before(operation), "corrected")

    def _description_before(self, correction: int) -> int:
        """Return the operation whose verb made a correction: where new content extended it, that description, which is a look at the corrector."""
        tx, before = self.operation(correction)[0], correction - 1
        while found := self._operations[before]:
            at, verb, _ = found[0]
            if at != tx or verb not in ("correct", "revise", "amend"):
                break
            if verb != "correct":
                return before
            before -= 1
        return correction

    def _revisions(self, entity: int, valid: Instant) -> list[Fall]:
        """Return the last change of content of an entity that stands, if any. Earlier changes never count where this one does not."""
        for start, stop, by, certain in reversed(self._changed.get(entity, ())):
            if start <= valid < stop and (certain or self._differs(entity, by, valid)):
                return [Fall(by, "revised")]
        return []

    def _differs(self, entity: int, operation: int, valid: Instant) -> bool:
        """Return True if a revision changed the content. Revisions by older releases do not record this, so the contents are compared."""
        said = self.fetch(
            "SELECT DISTINCT v.operation, v.body FROM period p CROSS JOIN version v WHERE p.entity = ?1 AND p.valid_from <= ?2 AND p.valid_to > ?2 "
            "AND v.number = p.version ORDER BY v.operation",
            entity,
            valid,
        )
        new = next((body for by, body in said if by == operation), None)
        earlier = [body for by, body in said if by < operation]
        return new is not None and bool(earlier) and self._content(new) != self._content(earlier[-1])

    def _content(self, body: int) -> Any:
        data = self.fetch("SELECT data FROM body WHERE number = ?", body)[0][0]
        return None if data is None else orjson.loads(data)["content"]

    def _superseded_by(self, entity: int, valid: Instant, upto: Instant) -> list[int]:
        """Return the operations that recorded the supersessions of an entity that hold at an instant."""
        return [self.recorded_first(row.link) for row in self.supersessions_at(entity, valid, upto)]

    def recorded_first(self, link: int, valid: Instant | None = None) -> int:
        """Return the first operation that recorded a link at an instant (None: at any time); -1 if none counts."""
        return min(
            (
                by
                for start, stop, by in self._recorded[link]
                if (valid is None or start <= valid < stop) and self.counts(by)
            ),
            default=-1,
        )

    # ------------------------------------------------------------------ falls that count for a link

    def counted(self, part: FallenPart, base: int, ground: Ground) -> Iterator[tuple[Instant, Instant, Fall]]:
        """Yield the falls of a foundation that count for a link to it over a part of valid time, as (start, stop, fall).

        These are the latest fall and, if that is not in `NEVER_SO`, also the latest one in `NEVER_SO`. A correction is followed by the fall before it,
        since it does not count for its own corrector further down. `ground.other` is the entity that rests.
        """
        start, stop = max(part.start, ground.start), min(part.stop, ground.stop)
        if start >= stop:
            return
        counted = self.resting[ground.kind]
        if ground.never_so:
            counted &= NEVER_SO
        for fall in part.falls:
            if fall.word not in counted or self.is_exempt(ground.other, fall, base):
                continue
            if fall.word == "revised":
                for begun, ended in self._recorded_alike(ground.link, (start, stop)):
                    if fall.operation > self.recorded_first(ground.link, begun):
                        yield begun, ended, fall
                return
            yield start, stop, fall
            if fall.word in NEVER_SO and fall.word != "corrected":
                return
            counted &= NEVER_SO

    def _recorded_alike(self, link: int, part: Period) -> Iterator[Period]:
        """Return the pieces of a period within which the first recording of a link is the same."""
        edges = {edge for start, stop, _ in self._recorded[link] for edge in (start, stop)}
        return pairwise(sorted({*part, *(edge for edge in edges if part[0] < edge < part[1])}))

    # ------------------------------------------------------------------ where falls may reach an entity

    def spans(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return the parts of `upright`, merged where possible, with -1 for the last look: looks are ignored."""
        if entity not in self._spans:
            self.load_spans((entity,))
        return self._spans[entity]

    def load_spans(self, entities: Iterable[int]) -> None:
        """Read where falls may reach entities, ignoring looks."""
        missing = [entity for entity in entities if entity not in self._spans]
        if not missing:
            return
        self.believed.load(missing)
        self.entities.load(missing)
        believed, entities = self.believed, self.entities
        others = []
        for entity in missing:
            parts = believed[entity]
            if entities[entity][0][1]:
                self._spans[entity] = self._upright_of_event(entity)
            elif not parts or (parts[0][2] < 0 and _is_plain(parts)):
                self._spans[entity] = parts
            else:
                others.append(entity)
        self.absence.load(entity for entity in others if not _is_plain(believed[entity]))
        for entity in others:
            whole, retracted = (believed[entity][0][0], OPEN), self._retracted(entity)
            spans = without_all(whole, self._unbelieved(entity, retracted)) if retracted else [whole]
            self._spans[entity] = [(*part, -1) for part in spans]

    def _retracted(self, entity: int) -> list[Period]:
        return [part[:2] for part in self.absence[entity] if part[2] == "retracted"]

    def _unbelieved(self, entity: int, periods: Iterable[Period]) -> list[Period]:
        """Return the parts of periods in which an entity is not believed."""
        believed = coalesce(part[:2] for part in self.believed[entity])
        return without_periods(periods, believed)

    def upright(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return the valid time in which falls may reach an entity, in sorted parts, each with its last look (an operation, or -1). It is the
        time in which it stands or has ended: its last state still counts there."""
        if entity not in self._upright:
            self.load_upright((entity,))
        return self._upright[entity]

    def load_upright(self, entities: Iterable[int]) -> None:
        """Read where falls may reach entities, and their last looks."""
        missing = [entity for entity in entities if entity not in self._upright]
        if not missing:
            return
        self.load_spans(missing)
        changed = {entity for entity in missing if any(part[2] == 0 for part in self.believed[entity][:1])}
        changes = self._changes_of(changed) if changed else {}
        for entity in missing:
            self._upright[entity] = (
                self._upright_of_node(entity, changes[entity]) if entity in changes else self._spans[entity]
            )
        for entity, by in self._each(_CONFIRMED, missing, OPEN):
            while by is not None and (by in self._coverage or not self.counts(by)):
                if by in self._coverage and self.counts(by):
                    self._cover(entity, ALWAYS, by)
                [(_, by)] = self._each(_CONFIRMED, (entity,), by)
            looked = max([by if by is not None else -1, *self._prefixes(entity)])
            if looked >= 0:
                self._upright[entity] = [
                    (start, stop, max(other, looked)) for start, stop, other in self._upright[entity]
                ]

    def is_covered(self, entity: int, fall: Fall, valid: Instant, *, with_merged: bool = True) -> bool:
        """Return True if a fall does not reach an entity at an instant: it does not stand there, or was rechecked later.

        `with_merged`: also count the looks that came with merges.
        """
        operation = fall.operation
        if not any(
            start <= valid < stop and looked < operation for start, stop, looked in self.upright(entity)
        ):
            return True
        covered = self.covered.get(entity, ()) if with_merged else ()
        return any(one.start <= valid < one.stop and one.after < operation <= one.upto for one in covered)

    def _changes_of(self, entities: Collection[int]) -> dict[int, list[tuple[Instant, Instant, int, bool]]]:
        """Return the last changes of content of entities over the time in which they are believed."""
        periods = {entity: self._changeable(entity) for entity in entities}
        found = self._last_over(_CHANGED_OVER, periods, lambda _, row: row[4] and self.counts(row[3]))
        return {
            entity: [row[1:] for row in rows if self.counts(row[3])] for entity, rows in found.items() if rows
        }

    def _changeable(self, entity: int) -> list[Period]:
        """Return the periods over which the last changes of content of an entity count."""
        return [part[:2] for part in self.believed[entity]]

    def _upright_of_node(
        self, entity: int, changes: Sequence[tuple[Instant, Instant, int, bool]]
    ) -> list[tuple[Instant, Instant, int]]:
        """Return the value of `upright` for a node. A change of content is a look at the changed part. Where the node has
        ended, its last state counts. `changes`: its last changes of content, oldest first."""
        believed = self.believed[entity]
        retracted = self._retracted(entity)
        following = [*(start for start, *_ in believed[1:]), OPEN]
        edges = sorted({edge for start, stop, *_ in changes for edge in (start, stop)})
        pieces = [
            [since, *edges[bisect_right(edges, since) : bisect_left(edges, until)], until]
            for since, until, _ in believed
        ]
        changed = self._changed_last(entity, (start for piece in pieces for start in piece[:-1]), changes)
        found: list[tuple[Instant, Instant, int]] = []
        for piece, begins in zip(pieces, following, strict=True):
            looked, until = -1, piece[-1]
            for start, stop in pairwise(piece):
                looked = self._looked_by(entity, (start, begins if stop == until else stop), next(changed))
                found.append((start, stop, looked))
            if until < begins:
                found += [(*part, looked) for part in without_periods([(until, begins)], retracted)]
        return _joined(found)

    def _changed_last(
        self,
        entity: int,
        instants: Iterable[Instant],
        changes: Sequence[tuple[Instant, Instant, int, bool]],
    ) -> Iterator[int]:
        """Yield for each of some sorted instants the last operation that changed an entity's content there, or -1."""
        waiting = sorted(((start, -at) for at, (start, *_) in enumerate(changes)), reverse=True)
        begun: list[int] = []  # a heap: the latest change comes first
        for valid in instants:
            while waiting and waiting[-1][0] <= valid:
                heappush(begun, waiting.pop()[1])
            found, passed = -1, list[int]()
            while begun and found < 0:
                _, stop, by, certain = changes[-begun[0]]
                if stop > valid and (certain or self._differs(entity, by, valid)):
                    found = by
                elif stop > valid:
                    passed.append(heappop(begun))
                else:
                    heappop(begun)
            yield found
            for at in passed:
                heappush(begun, at)

    def _looked_by(self, entity: int, part: Period, by: int) -> int:
        """Return the operation up to which a change of content covers all falls. Ranges of later falls that it covers are noted."""
        if by not in self._coverage:
            return by
        self._cover(entity, part, by)
        return max((upto for after, upto in self._coverage[by] if after < 0), default=-1)

    def _cover(self, entity: int, part: Period, by: int) -> None:
        """Note the ranges of falls that a look of a merge covers over a part of an entity's time."""
        self.covered.setdefault(entity, []).extend(Covered(*part, *span) for span in self._coverage[by])

    def _prefixes(self, entity: int) -> Iterator[int]:
        """Yield the operations up to which confirmations of merges cover all falls."""
        for start, stop, after, upto in self.covered.get(entity, ()):
            if (start, stop) == ALWAYS and after < 0:
                yield upto

    def _upright_of_event(self, event: int) -> list[tuple[Instant, Instant, int]]:
        if not self.believed[event]:
            return self._before_evicted(event)
        return self.believed[event]

    def _before_evicted(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return where an evicted event stood before. It is no less true, so what rests on it still rests on its foundations."""
        gone = self.forgotten(entity)
        if gone is None or self._forgot(entity, gone[1]) >= 0:
            return []
        upto = self._before_forgotten(entity)
        believed = [row for row in self.rows[entity] if row.tx_from <= upto < row.tx_to]
        return [
            (start, stop, -1)
            for start, stop in pairwise(self.edges(entity))
            if any(row.start <= start < row.stop for row in believed)
        ]


class FactsAt(Facts):
    """Reads what counts at one instant of valid time. From a long past it reads only the rows that decide there, so answers hold at this instant only."""

    def __init__(self, fetch: Fetch, valid: Instant) -> None:
        super().__init__(fetch)
        self.valid = valid
        self.__dict__["believed"] = Lookup(fetch, _BELIEVED_AT.format(valid=valid), tuple)
        """The first period of an entity believed now, and the last one that starts by the instant. Otherwise as in `Facts`."""

    def holds(self, ground: Ground) -> bool:
        """Return True if the link of a ground holds at the instant."""
        return ground.start <= self.valid < ground.stop

    def last_revisions(self, entity: int) -> list[Fall] | None:
        """Return the changes of content by the last transaction that changed a node here, in order; None for an event or where the node does not stand.

        These shake everything that earlier changes shake.
        """
        if self.entity(entity).is_event or not self._stands_at(entity, self.valid):
            return None
        found: list[Fall] = []
        for by, certain in self._changes_here(entity):
            if self.counts(by) and (certain or self._differs(entity, by, self.valid)):
                if found and self.operation(by)[0] != self.operation(found[0].operation)[0]:
                    break
                found.append(Fall(by, "revised"))
        return found[::-1]

    def _changes_here(self, entity: int) -> Iterator[tuple[int, int]]:
        """Yield the changes of an entity's content at the instant, newest first, as (operation, 1 if the content certainly differs)."""
        before, most = OPEN, _NARROW
        while rows := self.fetch(_CHANGED_AT, entity, self.valid, before, most):
            yield from (row[1:] for row in rows)
            before, most = rows[-1][0], most * 4

    def _falls_within(self, entity: int, periods: list[Period]) -> list[FallenPart]:
        return list(self._falls_over(entity, (self.valid, self.valid + 1), []))

    def _changeable(self, entity: int) -> list[Period]:
        """Return the instant; for an entity that has ended, the last instant before it at which the entity was believed."""
        begun = (until for since, until, _ in reversed(self.believed[entity]) if since <= self.valid)
        at = min(self.valid, next(begun, OPEN) - 1)
        return [(at, at + 1)]

    def _upright_of_node(
        self, entity: int, changes: Sequence[tuple[Instant, Instant, int, bool]]
    ) -> list[tuple[Instant, Instant, int]]:
        valid, here = self.valid, (self.valid, self.valid + 1)
        is_retracted = any(start <= valid < stop for start, stop in self._retracted(entity))
        if valid < self.believed[entity][0][0] or (is_retracted and not self._stands_at(entity, valid)):
            return []
        [(at, _)] = self._changeable(entity)
        [changed] = self._changed_last(entity, (at,), changes)
        return [(*here, self._looked_by(entity, here, changed))]


def _is_plain(believed: Sequence[tuple[Instant, Instant, int]]) -> bool:
    """Return True if there are no periods, or one without an end."""
    return not believed or (len(believed) == 1 and believed[0][1] == OPEN)


def _joined(parts: Iterable[tuple[Instant, Instant, int]]) -> list[tuple[Instant, Instant, int]]:
    """Return sorted parts with adjacent ones merged if their last look is equal."""
    found: list[tuple[Instant, Instant, int]] = []
    for start, stop, looked in parts:
        if found and found[-1][1:] == (start, looked):
            start = found.pop()[0]
        found.append((start, stop, looked))
    return found


def without_periods(periods: Iterable[Period], holes: list[Period]) -> list[Period]:
    """Return the parts of periods outside of holes, which must be sorted and disjoint."""
    return [
        part for period in periods for part in without_all(period, overlapping(holes, period[0], period[1]))
    ]


def overlapping(parts: list[Part], start: Instant, stop: Instant) -> list[Part]:
    """Return the parts that overlap a period. The parts must be sorted and disjoint."""
    first = bisect_right(parts, start, key=lambda part: part[1])
    return parts[first : bisect_left(parts, stop, key=lambda part: part[0])]
