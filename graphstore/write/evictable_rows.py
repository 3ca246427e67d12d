"""Finds by the rows of a ledger what may be evicted, and how things were forgotten, on the trunk or on a branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import NotFoundError
from graphstore.ledger.branches import branch_databases
from graphstore.ledger.forgotten_bodies import Number
from graphstore.ledger.statements import Statement
from graphstore.read import settings
from graphstore.read.ids import beside
from graphstore.read.points import Point, as_json
from graphstore.values.period import OPEN, Instant
from graphstore.write.retention import DAY, SUMS, Content, Sums, together

if TYPE_CHECKING:
    from graphstore.ledger.database import Readable


class Old(NamedTuple):
    """Describes what may be evicted."""

    number: int
    id: str
    kind: str
    last: Instant
    forgotten_by: int | None


class Bytes(NamedTuple):
    """Counts what contents take."""

    bytes: int


class Word(NamedTuple):
    """Names how something was forgotten."""

    word: str


class Id(NamedTuple):
    """Holds an id."""

    id: str


class Told(NamedTuple):
    """Holds what an eviction without tombstones told."""

    tx: Instant
    data: bytes
    checksum: int


EVICTABLE = Statement("evictable", Old)
CONTENTS = Statement("contents", Content)
CONTENT_BYTES = Statement("content_bytes", Bytes)
FORGOTTEN_HOW = Statement("forgotten_how", Word)
BRANCH_IDS = Statement("branch_ids", Id)
ENTITY_NUMBER = Statement("entity_number", Number)
EVICTIONS_SINCE = Statement("evictions_since", Told)


class OfRows:
    """Finds by rows what may be evicted of one line; see `retention.Evictable`."""

    def __init__(self, database: Readable) -> None:
        self._point = Point(database, OPEN, OPEN)
        self._found: dict[int, Old] = {}

    def oldest(
        self,
        kinds: frozenset[str] | None,
        before: Instant | None,
        now: Instant,
        *,
        tombstones: bool = False,
    ) -> list[int]:
        """See `Evictable.oldest`."""
        words = ["", "evicted"] if tombstones else [""]
        return [each.number for each in self._read(kinds, before, now, words)]

    @cached_property
    def evicted(self) -> list[int]:
        """See `Evictable.evicted`."""
        found = self._read(None, None, OPEN, ["evicted"])
        return [each.number for each in sorted(found, key=lambda each: each.forgotten_by or 0)]

    def _read(
        self, kinds: frozenset[str] | None, before: Instant | None, now: Instant, words: list[str]
    ) -> list[Old]:
        found = self._point.rows(
            EVICTABLE,
            kinds=None if kinds is None else as_json(sorted(kinds)),
            ended=now if before is None else before,
            before=before,
            words=as_json(words),
            undone=self._point.undone,
        )
        self._found.update((each.number, each) for each in found)
        return found

    def contents(self, kind: str) -> list[Content]:
        """Return the nodes of a kind that are not forgotten, whether they stand or not, in the order in which they were recorded."""
        return self._point.rows(CONTENTS, kind=kind)

    def contents_elsewhere(self, kind: str, setting: str) -> Iterator[tuple[Any, list[Content]]]:
        """Return, as `contents` does for each branch (deleted ones too), the nodes unknown to this line, which is the trunk, with the value of a setting of the branch."""
        for line in branches(self._point.database):
            found = [each for each in line.contents(kind) if self.number(each.name) is None]
            yield settings.setting(line._point, setting), found

    def name(self, ent: int) -> str:
        """See `Evictable.name`."""
        return self._found[ent].id

    def kind(self, ent: int) -> str:
        """See `Evictable.kind`."""
        return self._found[ent].kind

    def last(self, ent: int) -> Instant:
        """See `Evictable.last`."""
        return self._found[ent].last

    def size(self, ent: int) -> int:
        """See `Evictable.size`."""
        return self._point.rows(CONTENT_BYTES, number=ent)[0].bytes

    def number(self, id: str) -> int | None:
        """See `Evictable.number`."""
        return next((each.number for each in self._point.rows(ENTITY_NUMBER, id=id)), None)


def branches(database: Readable) -> list[OfRows]:
    """Return what may be evicted of each branch, deleted ones too."""
    return [OfRows(line) for line in branch_databases(database)]


def words(database: Readable, names: Iterable[str]) -> dict[str, str]:
    """Return how each of these whole ids is forgotten already (`evicted`, `erased` or empty). Raises NotFoundError for one that is known nowhere."""
    point, found = Point(database, OPEN, OPEN), {}
    for name in names:
        rows = point.rows(FORGOTTEN_HOW, id=name)
        if not rows:
            known = (row.id for row in point.rows(BRANCH_IDS))
            raise NotFoundError.nearest("node or event", name, partial(chain, beside(point, name), known))
        found[name] = rows[0].word
    return found


def summed_before(database: Readable, day: Instant) -> tuple[frozenset[Instant], Sums]:
    """Return the transactions of the same day, of UTC, that summed up evicted events, and their sums together."""
    point, found, sums = Point(database, OPEN, OPEN), set(), Sums()
    point.tx = day - day % DAY
    for row in point.rows(EVICTIONS_SINCE):
        told = point.content(row.data, row.checksum, "an eviction").get(SUMS)
        if told is not None:
            found.add(row.tx)
            sums = together(sums, told)
    return frozenset(found), sums
