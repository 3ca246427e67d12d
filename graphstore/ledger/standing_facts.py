"""Reads from the rows of a ledger how entities stand, what became of them, and what rests on them.

An invalidation is called a fall, and a recheck a look. The numbers of operations state which came first.
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

from graphstore.ledger.chain import DESCRIBING, FORGETTING, RETRACTING, UNDO
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
    """Return names as a list of SQL."""
    quoted = (name.replace("'", "''") for name in sorted(names))
    return "(" + ", ".join(f"'{name}'" for name in quoted) + ")"


# Each statement takes a JSON array of numbers, and its first column is one of them.
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
# Of a link by which one end rests on the other; `e` is the end that rests. By the kinds that replace (:kinds) the source rests on the target, by others
# the target on the source.
_IS_RESTING = (
    f"AND e.number = l.source AND l.kind IN (:kinds) AND (e.is_event = 0 OR l.kind IN {_listed(OF_EVENTS)})"
)
_IS_UPHELD = (
    f"AND e.number = l.target AND e.is_event = 0 AND l.kind IN {_listed(UPHOLDING)} AND NOT EXISTS "
    f"(SELECT 1 FROM entity u WHERE u.number = l.source AND u.is_event = 1 AND u.kind = '{CONFIRMATION}')"
)


def _resting(resting: tuple[str, str], upheld: tuple[str, str]) -> str:
    """Return the statement of the links by which one end rests on the other. Each argument: the end that is asked for, and the other one."""
    parts = [
        f"SELECT l.{asked}, l.{other}, p.valid_from, p.valid_to, l.number, l.kind, c.is_history {_EACH} link l CROSS JOIN entity e "
        f"CROSS JOIN link_period p CROSS JOIN claim c WHERE l.{asked} = s.value {condition} AND p.link = l.number AND p.closed_by IS NULL "
        "AND c.number = p.claim"
        for (asked, other), condition in ((resting, _IS_RESTING), (upheld, _IS_UPHELD))
    ]
    return " UNION ALL ".join(parts)


def _ahead(resting: tuple[str, str], upheld: tuple[str, str]) -> str:
    """Return the statement of what such links lead to from entities, those included: the nearest, at most ?2."""
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
_NO_ROWS: list[Any] = []  # one for all, since garbage collection costs more the more lists there are
_NARROW = 16  # entities or rows: below that a statement costs more than its rows


Absence = tuple[Instant, Instant, str]
Fetch = Callable[..., list[tuple[Any, ...]]]
"""Fetches the rows of a statement, with the values of its parameters."""


class Fall(NamedTuple):
    """States what invalidated an entity: the operation, and the word for it (superseded, revised, retracted …)."""

    operation: int
    word: str


class FallenPart(NamedTuple):
    """Gives the falls of an entity over a part of valid time, the latest first."""

    start: Instant
    stop: Instant
    falls: list[Fall]


class Covered(NamedTuple):
    """States that a look that came with a merge covers the falls by operations after one, up to another, over a part of valid time."""

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
    """A row of `link_period`, of a link that supersedes an entity."""

    link: int
    start: Instant
    stop: Instant
    tx_from: Instant
    tx_to: Instant


class Ground(NamedTuple):
    """States that one entity rests on another over a period, by a link believed now of a kind. `other`: the other one of the two.

    `never_so`: only falls that say that it never was so count: the one was made from the other as that was, or replaces it.
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
    """Finds the rows of numbers, such as entities. One statement finds those of many numbers, and those of each number are looked for once."""

    __slots__ = ("_fetch", "_make", "_statement")

    def __init__(self, fetch: Fetch, statement: str, make: Callable[[Any], Any]) -> None:
        self._fetch, self._statement, self._make = fetch, statement, make

    def __missing__(self, number: int) -> list[Any]:
        make = self._make
        found = self._fetch(_of_one(self._statement), (number,))
        self[number] = rows = [make(row[1:]) for row in found]
        return rows

    def load(self, numbers: Iterable[int]) -> list[int]:
        """Find the rows of all these numbers. Return those that were not known yet."""
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
    """Makes an attribute of `Facts` when it is asked for first: a `Lookup` of a statement's rows, as tuples of a class.

    `of_links`: the statement has (:kinds) in place of the kinds of link that count.
    """

    def __init__(self, statement: str, row: type[Any] = tuple, *, of_links: bool = False) -> None:
        self._statement, self._make, self._of_links = statement, partial(tuple.__new__, row), of_links

    def __set_name__(self, owner: type[Facts], name: str) -> None:
        self._name = name

    def __get__(self, facts: Facts, owner: type[Facts]) -> Lookup:
        """Return the new lookup. Later it is found in the object itself."""
        statement = facts.of_kinds(self._statement) if self._of_links else self._statement
        found = Lookup(facts.fetch_rows, statement, self._make)
        facts.__dict__[self._name] = found
        return found


def _array(numbers: Collection[int]) -> str:
    return orjson.dumps(list(numbers)).decode()


@cache
def _of_one(statement: str) -> str:
    """Return a statement that takes one number, and no array: that costs 10 µs less."""
    return statement.replace("json_each(?1) s", "(SELECT ?1 AS value) s")


@cache
def _of_kinds(statement: str, kinds: tuple[str, ...]) -> str:
    replacing = statement.replace("(:kinds)", _listed(kind for kind in kinds if kind not in UPHOLDING))
    return replacing.replace("(:resting)", _listed({*kinds, *UPHOLDING}))


def joined(absences: Iterable[Absence]) -> list[Absence]:
    """Return absences, which are in order, as few as possible."""
    found: list[Absence] = []
    for start, stop, word in absences:
        if found and found[-1][1:] == (start, word):
            start = found.pop()[0]
        found.append((start, stop, word))
    return found


def fetching(connection: sqlite3.Connection) -> Fetch:
    """Return what fetches rows by a connection."""
    return lambda statement, values=(): connection.execute(statement, values).fetchall()


def resting_kinds(fetch: Fetch) -> Mapping[str, frozenset[str]]:
    """Return the kinds by which one end rests on the other, those of this store too."""
    kinds = [orjson.loads(text) for (text,) in fetch(_RESTING_KINDS)]
    return {**RESTS, **{kind["name"]: frozenset(kind["rests"]) for kind in kinds}} if kinds else RESTS


class Facts:
    """Reads what the rows say now of entities and links, each once. Before many entities are asked for one by one, `load_…` reads the rows of all of them."""

    rows = LookupOfRows(_ROWS, PeriodRow)
    """The periods of an entity, in the order in which they were written."""
    absence = LookupOfRows(_ABSENCE)
    """How the open rows say that an entity stands where it does not."""
    shaky = LookupOfRows(_SHAKY)
    """Over which valid time the open rows say that an entity is shaky."""
    grounds = LookupOfRows(_GROUNDS, Ground, of_links=True)
    """What an entity rests on by links believed now."""
    _dependants = LookupOfRows(_DEPENDANTS, Ground, of_links=True)
    believed = LookupOfRows(_BELIEVED)
    """The periods of an entity believed now, by valid_from; each with 0 where the content of the entity was ever changed, else -1."""
    entities = LookupOfRows(_ENTITY, EntityRow)
    _operations = LookupOfRows(_OPERATION)
    _undone = LookupOfRows(_UNDONE)
    _supersessions = LookupOfRows(_SUPERSESSIONS_NOW, SupersessionRow)
    _all_supersessions = LookupOfRows(_SUPERSESSIONS, SupersessionRow)
    ever_superseded = LookupOfRows(_EVER_SUPERSEDED)
    """Empty for an entity that no link ever superseded."""
    _recorded = LookupOfRows(_RECORDED)
    _forgotten = LookupOfRows(_FORGOTTEN)
    _removed = LookupOfRows(_REMOVED)
    _replacers = LookupOfRows(_REPLACERS)
    replaced = LookupOfRows(_REPLACED)
    """What an entity supersedes or corrects by links believed now, over whatever time."""
    _first_recorded = LookupOfRows(_FIRST_RECORDED)
    may_have_fallen = LookupOfRows(_MAY_HAVE_FALLEN)
    """Empty for an entity of which nothing ever became that may count."""

    def __init__(self, fetch: Fetch) -> None:
        self.fetch_rows = fetch
        [(self._any_undone, any_covered)] = self.fetch(_ANY)
        self.resting: Mapping[str, frozenset[str]] = resting_kinds(fetch)
        self._steps: dict[str, int] = {}  # how many entities each statement reads ahead next time
        self._spans: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._upright: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._changed: dict[int, list[tuple[Instant, Instant, int, bool]]] = {}
        self._whole: dict[tuple[int, Instant], list[Fall]] = {}
        # by looks that came with merges: the coverage of each such look, as ranges of operations (after, up to)
        self._coverage = self._read_coverage() if any_covered else {}
        self.covered: dict[int, list[Covered]] = {}
        """Over which parts of an entity's time looks that came with merges cover falls beside the earlier ones."""

    def _read_coverage(self) -> dict[int, list[Period]]:
        found: dict[int, list[Period]] = {}
        for operation, after, upto in self.fetch(_COVERED):
            found.setdefault(operation, []).append((after, upto))
        return found

    def _forget_parts(self) -> None:
        """Forget what was read of some periods only."""
        for name in ("rows", "_removed"):
            self.__dict__.pop(name, None)
        self._changed.clear()
        self._whole.clear()

    def of_kinds(self, statement: str) -> str:
        """Return a statement with the kinds by which a source rests on its target, or with all by which one end rests on the other."""
        return _of_kinds(statement, tuple(self.resting))

    def fetch(self, statement: str, *values: object) -> list[Any]:
        """Fetch the rows of a statement."""
        return self.fetch_rows(statement, values)

    def _each(self, statement: str, numbers: Collection[int], *values: int) -> list[Any]:
        """Return the rows that a statement finds of numbers."""
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
        """Return True if the transaction of an operation is not taken back."""
        return not self._any_undone or not self._undos(self.operation(operation)[0])

    def _undos(self, tx: Instant) -> list[int]:
        """Return the operations that took a transaction back, as far as they count."""
        return [undo for (undo,) in self._undone[tx] if self.counts(undo)]

    def supersessions(self, entity: int) -> list[SupersessionRow]:
        """Return the periods over which links supersede an entity; of one that was forgotten, also those that are not believed any more."""
        lookup = self._all_supersessions if self._forgotten[entity] else self._supersessions
        return lookup[entity]

    def replacers(self, entity: int) -> set[int]:
        """Return what supersedes or corrects an entity by a link believed now, over whatever time."""
        return {source for source, _ in self._replacers[entity]}

    def _correctors(self, entity: int) -> set[int]:
        return {source for source, kind in self._replacers[entity] if kind == "corrects"}

    def is_exempt(self, entity: int, fall: Fall, root: int) -> bool:
        """Return True if an entity is not shaken by the fall of what it replaces: only what never was so counts of that, but for its own correction."""
        if entity not in self.replacers(root):
            return False
        return fall.word not in NEVER_SO or (fall.word == "corrected" and entity in self._correctors(root))

    def forgotten(self, entity: int) -> tuple[str, int] | None:
        """Return the word and the operation by which an entity was evicted or erased last."""
        rows = self._forgotten[entity]
        return rows[0] if rows else None

    def removed(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return what was taken of an entity and is in no period: start, stop, operation; in the order of the operations."""
        return [row for row in self._removed[entity] if self.counts(row[2])]

    # ------------------------------------------------------------------ many at once

    def linked(self, entities: Collection[int]) -> set[int]:
        """Return those of some entities from or to which a link was ever made by which one end rests on the other."""
        return {entity for (entity,) in self._each(self.of_kinds(_LINKED), entities)}

    def load_whole(self, entities: Collection[int]) -> None:
        """Read the whole past of entities. Of one alone, that is read when it is asked for."""
        if len(entities) < 2:
            return
        for lookup in (self.rows, self._removed, self._forgotten, self.believed, self._supersessions):
            lookup.load(entities)
        rows = [row for entity in entities for row in self.rows[entity]]
        self.load_operations({by for row in rows for by in (row.opened_by, row.closed_by)})

    def load_operations(self, numbers: Iterable[int | None]) -> None:
        """Read operations."""
        self._operations.load(number for number in numbers if number is not None)

    def load_fallen(self, entities: Collection[int]) -> None:
        """Read what is believed now of entities, whether they were forgotten, and what replaces them."""
        for lookup in (self.entities, self._forgotten, self.believed, self._supersessions, self._replacers):
            lookup.load(entities)

    def load_below(self, entities: Collection[int]) -> None:
        """Read what rests on entities, and how those stand; of a few entities, also what rests on that, and so on."""
        missing = self._with_ahead(entities, self._dependants, _DEPENDANTS_AHEAD)
        self.load_dependants(missing)
        self.load_spans(missing)
        self.shaky.load(missing)

    def load_above(self, entities: Collection[int]) -> None:
        """Read what entities rest on, and what may have become of that; of a few entities, also what that rests on, and so on."""
        missing = self._with_ahead(entities, self.grounds, _GROUNDS_AHEAD)
        self.grounds.load(missing)
        bases = {ground.other for entity in (*missing, *entities) for ground in self.grounds[entity]}
        self.may_have_fallen.load(bases)
        self.shaky.load(bases)

    def load_recorded(self, grounds: Iterable[Ground]) -> None:
        """Read when the links were recorded by which entities rest on others."""
        self._recorded.load(ground.link for ground in grounds)

    def _with_ahead(self, entities: Collection[int], known: Lookup, statement: str) -> list[int]:
        """Return the entities that are not known yet. If they are few, add what links lead to from there: twice as many each time, as long as most of it is new."""
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

    # ------------------------------------------------------------------ what rests on what

    def dependants(self, base: int) -> list[Ground]:
        """Return what rests on an entity by links believed now."""
        if base not in self._dependants:
            self.load_dependants((base,))
        return self._dependants[base]

    def load_dependants(self, bases: Iterable[int]) -> None:
        """Read what rests on entities."""
        missing = [base for base in self._dependants.load(bases) if self._dependants[base]]
        self._replacers.load(missing)
        for base in missing:
            self._dependants[base] = self.with_replacers(base, self._dependants[base])

    def with_replacers(self, base: int, dependants: list[Ground]) -> list[Ground]:
        """Return dependants of an entity. For those that replace it, only that it never was so counts."""
        replacers = self.replacers(base)
        if not replacers:
            return dependants
        return [one._replace(never_so=1) if one.other in replacers else one for one in dependants]

    def believed_since(
        self, entities: Collection[int], operation: int
    ) -> dict[int, tuple[int, Instant | None, Instant | None]]:
        """Return of each entity whether a period was opened before an operation, from when on it is believed, and from when on by such a period."""
        return {entity: tuple(found) for entity, *found in self._each(_BELIEVED_SINCE, entities, operation)}

    def was_ever_unmade(self, entity: int) -> bool:
        """Return True if the transaction that made an entity was ever taken back."""
        return bool(self._undone[self.entity(entity).tx_from])

    def ever_removed(self, entity: int) -> bool:
        """Return True if anything of an entity came and went in one transaction."""
        return bool(self.fetch("SELECT EXISTS (SELECT 1 FROM removed WHERE entity = ?)", entity)[0][0])

    def has_dependants_before(self, entity: int, operation: int) -> bool:
        """Return True if anything rested on an entity before an operation."""
        grounds = self.dependants(entity)
        self.load_recorded(grounds)
        return any(by < operation for ground in grounds for _, _, by in self._recorded[ground.link])

    # ------------------------------------------------------------------ how an entity stands

    def supersessions_at(self, entity: int, valid: Instant, upto: Instant = NOW) -> list[SupersessionRow]:
        """Return the supersessions of an entity that hold at an instant."""
        return [
            row
            for row in self.supersessions(entity)
            if row.start <= valid < row.stop and row.tx_from <= upto < row.tx_to
        ]

    def superseded_over(self, entity: int, period: Period) -> list[Period]:
        """Return the periods over which an entity is superseded, as far as they overlap another."""
        return self.fetch(_SUPERSEDED_OVER, entity, *period) if self.ever_superseded[entity] else []

    def standing(self, entity: int, valid: Instant) -> str:
        """Return how an entity that was not forgotten stands at an instant: stands, not_yet, retracted, superseded or ended."""
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
            return "superseded"  # a plan that was replaced before it began
        return "ended" if last >= 0 else "retracted"

    def _supersessions_after(self, entity: int, valid: Instant) -> list[SupersessionRow]:
        """Return the supersessions of an entity, believed now, that begin after an instant."""
        return [row for row in self.supersessions(entity) if row.tx_to == OPEN and valid < row.start]

    def is_retraction(self, operation: int) -> bool:
        """Return True if an operation said that what it removed never was so."""
        return operation >= 0 and self.verb(operation) in RETRACTING

    def removes(self, operation: int | None, entity: int, upto: Instant = NOW) -> bool:
        """Return True if an operation that closed a period of an entity took something of it away."""
        if operation is None:
            return False
        tx, verb, subject = self.operation(operation)
        if tx > upto or verb in DESCRIBING:
            return False
        if verb == UNDO and instant(subject) != self.entity(entity).tx_from:
            return False
        return self.counts(operation)

    def removal_at(self, entity: int, valid: Instant) -> int:
        """Return the operation that removed an instant of an entity last; -1: none did."""
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
        """Return the last operation that took something of an entity away; -1: none did."""
        gaps = [by for _, _, by in self.removed(entity) if self.operation(by)[0] <= upto]
        closing = [
            row.closed_by
            for row in self.rows[entity]
            if row.closed_by is not None and self.removes(row.closed_by, entity, upto)
        ]
        return max((*gaps, *closing), default=-1)

    def removals(self, entity: int) -> list[tuple[int, Period]]:
        """Return what was taken of an entity: each operation with a period that it removed."""
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
        """Return the instants at which the standing of an entity may change, and the ends of time."""
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
        """Return how an entity stands where it does not: superseded, ended or retracted, over which parts of valid time."""
        parts = [(start, stop, self.standing(entity, start)) for start, stop in pairwise(self.edges(entity))]
        return joined(part for part in parts if part[2] not in ("stands", "not_yet"))

    # ------------------------------------------------------------------ what became of an entity

    def falls(self, asked: Mapping[int, tuple[list[Period], list[Ground]]]) -> dict[int, list[FallenPart]]:
        """Return what became of entities, over which parts of periods, as far as it counts for links to them."""
        self._forget_parts()
        self._load_over(asked)
        return {entity: self._falls_within(entity, periods) for entity, (periods, _) in asked.items()}

    def _falls_within(self, entity: int, periods: list[Period]) -> list[FallenPart]:
        edges = self.edges(entity)
        return [part for period in periods for part in self._falls_over(entity, period, edges)]

    def _load_over(self, wanted: Mapping[int, tuple[list[Period], list[Ground]]]) -> None:
        """Read what may say what became of nodes over periods: what was believed last of the time in which they do not stand, and the last changes of their
        content."""
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
        """Read the rows of entities that overlap periods, the newest first, until each instant is in one that counts. Return them, the oldest first.

        Args:
            statement: finds rows by entity, start, stop, number before, and how many. Its first columns are the number and the period of a row.
            asked: the periods of each entity.
            first: tells before which operation no row of an entity matters; the fourth column is the operation. None where all may.
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
        """Return the last rows of each entity in a span: (entity, start, stop, number before), at most so many of each."""
        if len(spans) == 1:
            return self.fetch(statement.format(_OF_ONE_SPAN), *spans[0], most)
        return self.fetch(statement.format(_OF_SPANS), orjson.dumps(spans).decode(), most)

    def _recorded_before(self, grounds: Iterable[Ground]) -> int:
        """Return the first operation that recorded any of some links."""
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
        """The operation by which an entity was forgotten and so has fallen; -1: none. The eviction of an event is no fall: it was too old to keep, and no less true."""
        closing = {row.closed_by for row in self.rows[entity] if row.closed_by is not None}
        forgetting = sorted({by for by in closing if self.verb(by) in FORGETTING} | {last}, reverse=True)
        is_event = self.entity(entity).is_event
        return next((by for by in forgetting if self.verb(by) == "erase" or not is_event), -1)

    def _before_forgotten(self, entity: int) -> Instant:
        """Return the last tx before an entity was forgotten first."""
        closing = {row.closed_by for row in self.rows[entity] if row.closed_by is not None}
        return min((self.operation(by)[0] - 1 for by in closing if self.verb(by) in FORGETTING), default=NOW)

    def _became(self, entity: int, valid: Instant, upto: Instant) -> list[Fall]:
        if self.entity(entity).is_event:
            return self._became_of_event(entity, valid, upto)
        if self._stands_at(entity, valid):
            return self._revisions(entity, valid)
        return self._became_absent(entity, valid, upto, bool(self.believed[entity]))

    def _became_absent(self, entity: int, valid: Instant, upto: Instant, is_believed: bool) -> list[Fall]:
        """Return the falls of a node at an instant at which it does not stand. What took the last of its time counts at every instant."""
        whole = [] if is_believed else self._whole_fall(entity, upto)
        here = self.removal_at(entity, valid)
        if self.is_retraction(here):
            found = [self._retraction(here)]
        else:
            found = self._other_fall(entity, here, valid, upto, is_whole=bool(whole))
        return sorted({*whole, *found}, reverse=True)

    def _whole_fall(self, entity: int, upto: Instant) -> list[Fall]:
        """Return the fall of a node of which nothing is left: it has no validity any more."""
        if (found := self._whole.get((entity, upto))) is None:
            last = self.last_removal(entity, upto)
            found = self._whole[entity, upto] = [] if last < 0 else [self._fall_by(entity, last, upto)]
        return found

    def _fall_by(self, entity: int, removal: int, upto: Instant) -> Fall:
        """Return the fall of a node by the operation that took the last of its time."""
        if self.is_retraction(removal):
            return self._retraction(removal)
        is_superseded = any(row.tx_from <= upto < row.tx_to for row in self.supersessions(entity))
        return Fall(removal, "superseded" if is_superseded else "ended")

    def _became_of_forgotten(self, entity: int, valid: Instant, forgot: int) -> list[Fall]:
        """Return the falls of what was erased, or of a node that was evicted: that counts where it was believed until then."""
        fall = Fall(forgot, FORGETTING[self.verb(forgot)])
        if fall.word in NEVER_SO:
            return [fall]
        rows = [
            row
            for row in self.rows[entity]
            if row.closed_by is not None and self.verb(row.closed_by) in FORGETTING
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
        """Return the operations that recorded the supersessions of an event that leave nothing of it. `believed`: its periods."""
        begun = min(row.start for row in believed)
        return [
            self.recorded_first(row.link)
            for row in self.supersessions(event)
            if row.start <= begun and row.stop == OPEN and row.tx_from <= upto < row.tx_to
        ]

    def _other_fall(
        self, entity: int, here: int, valid: Instant, upto: Instant, *, is_whole: bool
    ) -> list[Fall]:
        """Return the fall of a node that was not retracted here; `here`: the operation that removed this instant; `is_whole`: nothing is left of it."""
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
        return Fall(operation, "corrected" if self.verb(operation) == "correct" else "retracted")

    def _revisions(self, entity: int, valid: Instant) -> list[Fall]:
        """Return the last change of the content of an entity that stands, if there is one: where that does not count, no earlier one does."""
        for start, stop, by, certain in reversed(self._changed.get(entity, ())):
            if start <= valid < stop and (certain or self._differs(entity, by, valid)):
                return [Fall(by, "revised")]
        return []

    def _differs(self, entity: int, operation: int, valid: Instant) -> bool:
        """Return True if a revision recorded by an older release, which does not say so, changed the content."""
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
        """Return the first operation that recorded a link, over an instant or over any time."""
        return min(
            (
                by
                for start, stop, by in self._recorded[link]
                if (valid is None or start <= valid < stop) and self.counts(by)
            ),
            default=-1,
        )

    # ------------------------------------------------------------------ what counts for a link

    def counted(self, part: FallenPart, base: int, ground: Ground) -> Iterator[tuple[Instant, Instant, Fall]]:
        """Yield the falls of a foundation over a part of valid time that count for a link to it: start, stop, fall; the latest, and if it is not
        among those that say that it never was so, also the latest of these.

        `ground`: the link, with what rests on the foundation as `other`.
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
            if fall.word in NEVER_SO:
                return
            counted &= NEVER_SO

    def _recorded_alike(self, link: int, part: Period) -> Iterator[Period]:
        """Return the pieces of a period over each of which one operation recorded a link first."""
        edges = {edge for start, stop, _ in self._recorded[link] for edge in (start, stop)}
        return pairwise(sorted({*part, *(edge for edge in edges if part[0] < edge < part[1])}))

    # ------------------------------------------------------------------ where an entity stands

    def spans(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return the parts of `upright` as few as possible, each with -1: for falls that nobody has looked at since."""
        if entity not in self._spans:
            self.load_spans((entity,))
        return self._spans[entity]

    def load_spans(self, entities: Iterable[int]) -> None:
        """Read where falls may reach entities, but not who looked at these."""
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
        """Return the parts of periods over which an entity is not believed."""
        believed = coalesce(part[:2] for part in self.believed[entity])
        return without_periods(periods, believed)

    def upright(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return over which parts of valid time falls may reach an entity: where it stands, and where it has ended, since what is behind it counts
        there still. Each with the operation that looked at it last (-1: none), in order."""
        if entity not in self._upright:
            self.load_upright((entity,))
        return self._upright[entity]

    def load_upright(self, entities: Iterable[int]) -> None:
        """Read where falls may reach entities, and who looked at these."""
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
        """Return True if a fall does not reach an entity at an instant: that does not stand there, or was looked at since.

        `with_merged`: looks that came with a merge count too.
        """
        operation = fall.operation
        if not any(
            start <= valid < stop and looked < operation for start, stop, looked in self.upright(entity)
        ):
            return True
        covered = self.covered.get(entity, ()) if with_merged else ()
        return any(one.start <= valid < one.stop and one.after < operation <= one.upto for one in covered)

    def _changes_of(self, entities: Collection[int]) -> dict[int, list[tuple[Instant, Instant, int, bool]]]:
        """Return the last changes of the contents of entities over the time over which they are believed."""
        periods = {entity: self._changeable(entity) for entity in entities}
        found = self._last_over(_CHANGED_OVER, periods, lambda _, row: row[4] and self.counts(row[3]))
        return {
            entity: [row[1:] for row in rows if self.counts(row[3])] for entity, rows in found.items() if rows
        }

    def _changeable(self, entity: int) -> list[Period]:
        """Return the periods over which the last changes of the content of an entity count."""
        return [part[:2] for part in self.believed[entity]]

    def _upright_of_node(
        self, entity: int, changes: Sequence[tuple[Instant, Instant, int, bool]]
    ) -> list[tuple[Instant, Instant, int]]:
        """See `upright`. `changes`: the last changes of the content, the oldest first. A change is a look at what it changed; where a node has
        ended, what it was last counts."""
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
        """Yield for instants, which are in order, the last operation that changed the content of an entity there; -1: none did."""
        waiting = sorted(((start, -at) for at, (start, *_) in enumerate(changes)), reverse=True)
        begun: list[int] = []  # the last change is the first
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
        """Return up to which operation a change of the content covers falls; what it covers of later ones is noted."""
        if by not in self._coverage:
            return by
        self._cover(entity, part, by)
        return max((upto for after, upto in self._coverage[by] if after < 0), default=-1)

    def _cover(self, entity: int, part: Period, by: int) -> None:
        """Note which falls a look that came with a merge covers over a part of an entity's time."""
        self.covered.setdefault(entity, []).extend(Covered(*part, *span) for span in self._coverage[by])

    def _prefixes(self, entity: int) -> Iterator[int]:
        """Yield up to which operations confirmations that came with merges cover all falls."""
        for start, stop, after, upto in self.covered.get(entity, ()):
            if (start, stop) == ALWAYS and after < 0:
                yield upto

    def _upright_of_event(self, event: int) -> list[tuple[Instant, Instant, int]]:
        if not self.believed[event]:
            return self._before_evicted(event)
        return self.believed[event]

    def _before_evicted(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Return where an event that was evicted stood before: it is no less true, so what rests on it still rests on its foundations."""
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
    """Reads what counts at one instant of valid time: of a long past only the rows that decide there. Every answer holds at this instant alone."""

    def __init__(self, fetch: Fetch, valid: Instant) -> None:
        super().__init__(fetch)
        self.valid = valid
        self.__dict__["believed"] = Lookup(fetch, _BELIEVED_AT.format(valid=valid), tuple)
        """The first period of an entity that is believed now, and the last that begins by the instant; otherwise as in `Facts`."""

    def holds(self, ground: Ground) -> bool:
        """Return True if one entity rests on another at the instant."""
        return ground.start <= self.valid < ground.stop

    def last_revisions(self, entity: int) -> list[Fall] | None:
        """Return the changes of the content of a node by the last transaction that changed it, in order; None for an event, and where the node does not stand.

        What an earlier change shakes is shaken by these too.
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
        """Yield the changes of the content of an entity, the newest first: the operation, and whether it is certain that the content differs."""
        before, most = OPEN, _NARROW
        while rows := self.fetch(_CHANGED_AT, entity, self.valid, before, most):
            yield from (row[1:] for row in rows)
            before, most = rows[-1][0], most * 4

    def _falls_within(self, entity: int, periods: list[Period]) -> list[FallenPart]:
        return list(self._falls_over(entity, (self.valid, self.valid + 1), []))

    def _changeable(self, entity: int) -> list[Period]:
        """Return the instant, or the last one before it at which an entity that has ended was believed."""
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
    """Return True if periods are none, or one without an end."""
    return not believed or (len(believed) == 1 and believed[0][1] == OPEN)


def _joined(parts: Iterable[tuple[Instant, Instant, int]]) -> list[tuple[Instant, Instant, int]]:
    """Return parts, which are in order, as few as possible."""
    found: list[tuple[Instant, Instant, int]] = []
    for start, stop, looked in parts:
        if found and found[-1][1:] == (start, looked):
            start = found.pop()[0]
        found.append((start, stop, looked))
    return found


def without_periods(periods: Iterable[Period], holes: list[Period]) -> list[Period]:
    """Return the parts of periods outside holes, which are in order and do not overlap each other."""
    return [
        part for period in periods for part in without_all(period, overlapping(holes, period[0], period[1]))
    ]


def overlapping(parts: list[Part], start: Instant, stop: Instant) -> list[Part]:
    """Return those of parts, which are in order and do not overlap each other, that overlap a period."""
    first = bisect_right(parts, start, key=lambda part: part[1])
    return parts[first : bisect_left(parts, stop, key=lambda part: part[0])]
