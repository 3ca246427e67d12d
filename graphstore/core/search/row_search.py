"""Full-text search of a ledger whose index is not loaded: the words and what stands are read from its rows.

A process keeps the lengths of the versions, the versions named by periods, the words that are not sealed yet, and what stands at a few coordinates: a few
bytes for each version. They follow what is written by the heads of the chain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.core.index import libraries
from graphstore.core.index.index import Index
from graphstore.core.index.index_of_rows import FORGOTTEN, IndexOfRows, Number
from graphstore.core.journal.line import FORGETTING
from graphstore.core.search.search import REMEMBERED, Layers, Ranker, SearchedTexts
from graphstore.core.search.source import At
from graphstore.core.search.standing import Standing
from graphstore.core.search.word_columns import FreshWords, Posting
from graphstore.ledger.statements import Statement
from graphstore.ledger.word_rows import terms_of
from graphstore.read.points import NotInRows, Point, as_json
from graphstore.values.period import OPEN, Instant
from graphstore.values.words import ENGLISH, Analyzer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEADS = 256  # lines of the chain that are followed; more are not read one by one
_FETCHED = 128  # versions that are read at once
_AFTER = b"\xff"  # after all of UTF-8


class Ends(NamedTuple):
    """What there is of a ledger to be searched, and how far it goes."""

    line: int
    last_tx: Instant
    rewritten: int
    identity: str | None
    languages: str | None
    entities: int
    versions: int
    periods: int
    link_periods: int
    operations: int
    sealed: int


class Head(NamedTuple):
    """The head of a line of the chain, as JSON."""

    head: bytes


class Holding(NamedTuple):
    """What holds at a coordinate: entities and their versions as JSON arrays, and when a period begins or ends before and after."""

    entities: str
    versions: str
    begun: Instant | None
    ended: Instant | None
    begins: Instant | None
    ends: Instant | None


class Superseded(NamedTuple):
    """When an event was superseded."""

    entity: int
    valid_from: Instant
    valid_to: Instant


class Believed(NamedTuple):
    """When a version holds."""

    entity: int
    version: int
    valid_from: Instant
    valid_to: Instant


class Numbers(NamedTuple):
    """Numbers of versions, as a JSON array."""

    numbers: str


class Lengths(NamedTuple):
    """How many terms the versions of a segment have."""

    first: int
    lengths: bytes


class Fresh(NamedTuple):
    """The terms of a version."""

    version: int
    terms: bytes


class Sealed(NamedTuple):
    """The versions of a segment that have a term, and how often."""

    versions: bytes
    times: bytes


class TermOf(NamedTuple):
    """A term."""

    term: bytes


ENDS = Statement("words_state", Ends)
HEADS_AFTER = Statement("heads_after", Head)
STANDING_VERSIONS = Statement("standing_versions", Holding)
SUPERSEDED_EVENTS = Statement("superseded_events", Superseded)
SUPERSEDED_AMONG = Statement("superseded_among", Superseded)
BELIEVED_PERIODS = Statement("believed_periods", Believed)
MOVED_SINCE = Statement("moved_since", Number)
FORGOTTEN_VERSIONS = Statement("forgotten_versions", Number)
VERSIONS_BELIEVED = Statement("versions_believed", Numbers)
BODIES_BY = Statement("bodies_by", Number)
OPERATIONS_BY = Statement("operations_by", Number)
SEGMENT_LENGTHS = Statement("segment_lengths", Lengths)
FRESH_WORDS = Statement("fresh_words", Fresh)
POSTINGS = Statement("postings", Sealed)
TERMS_BEGINNING = Statement("terms_beginning", TermOf)


class SealedWords:
    """The words of the sealed versions of a ledger."""

    def __init__(self, point: Point) -> None:
        self._point = point

    def posting(self, term: str) -> Posting | None:
        """Where a term is."""
        import numpy as np

        found = self._point.rows(POSTINGS, term=term.encode("utf-8", "surrogatepass"))
        if not found:
            return None
        versions = [np.frombuffer(row.versions, dtype="<u4") for row in found]
        times = [
            np.frombuffer(row.times, dtype="u1" if len(row.times) == len(numbers) else "<u4")
            for row, numbers in zip(found, versions, strict=True)
        ]
        return Posting(np.concatenate(versions), np.concatenate(times))

    def beginning(self, term: str) -> Iterator[str]:
        """The terms that begin so."""
        first = term.encode("utf-8", "surrogatepass")
        for row in self._point.rows(TERMS_BEGINNING, least=first, stop=first + _AFTER):
            yield row.term.decode("utf-8", "surrogatepass")


@dataclass
class _Kept:
    """What a process keeps of one ledger, as far as `ends` says."""

    ends: Ends
    sealed: NDArray[Any]  # the lengths of the sealed versions
    fresh: FreshWords
    named: NDArray[
        Any
    ]  # the versions that the periods name, in order: of so many periods as a question about the past took
    standings: list[tuple[Instant, Standing]] = field(
        default_factory=list
    )  # each with the time it was last asked at


class RowSearch(Ranker):
    """The words of the versions of one ledger, by its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self._kept: _Kept | None = None

    def standing(self, sight: At) -> Standing:
        """What stands at a coordinate, without links of other questions."""
        with self._lock:
            point = _point(sight)
            standing = self._standing(point, self._follow(point))
        return standing.without_links()

    def _texts(self, sight: At) -> SearchedTexts:
        point = _point(sight)
        kept = self._follow(point)
        standing, lengths = self._standing(point, kept), _lengths(kept)
        known = known_versions(point)
        layers: Layers = [SealedWords(point), kept.fresh]
        mean = standing.mean(lengths)
        return SearchedTexts(
            layers, lengths, known, standing.alive, standing.count(), mean, standing.version_of
        )

    def _texts_ever(self, sight: At) -> SearchedTexts:
        import numpy as np

        point = _point(sight)
        kept = self._follow(point)
        if len(kept.named) < kept.ends.periods:
            [row] = point.rows(VERSIONS_BELIEVED, first=len(kept.named))
            more = np.array(orjson.loads(row.numbers), dtype=np.uint32)
            kept.named = np.concatenate([kept.named, more])
        known = np.zeros(kept.ends.versions, dtype=bool)
        known[kept.named[: known_periods(point, point.tx)]] = True
        known[[row.number for row in point.rows(FORGOTTEN_VERSIONS)]] = False
        source: Any = sight.core
        known[source.versions :] = False
        lengths, count = _lengths(kept), int(np.count_nonzero(known))
        mean = int(lengths[known].sum()) / max(count, 1)
        layers: Layers = [SealedWords(point), kept.fresh]
        return SearchedTexts(layers, lengths, len(lengths), known, count, mean, np.zeros(0, dtype=np.int32))

    def _fetched(self, index: Index, found: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        assert isinstance(index, IndexOfRows)
        waiting = iter(found)
        while some := list(islice(waiting, _FETCHED)):
            index.read_versions([ver for ver, _ in some])
            yield from some

    # ------------------------------------------------------------------ following

    def _follow(self, point: Point) -> _Kept:
        """Read what was written since. A thread that reads an earlier state than another one keeps nothing of its own."""
        if point.database.branch is not None:  # the tables have the words of the trunk alone
            raise NotInRows
        libraries.load("numpy")
        [ends] = point.rows(ENDS)
        kept = self._kept
        if kept is not None and kept.ends == ends:
            return kept
        languages = tuple(orjson.loads(ends.languages) or ENGLISH) if ends.languages else ENGLISH
        if languages != self.analyzer.languages:
            self.analyzer = Analyzer(languages)
        if ends.identity not in (None, self.analyzer.identity):
            raise NotInRows  # another release of the stemmer wrote them
        if kept is not None and kept.ends.line > ends.line and kept.ends.rewritten == ends.rewritten:
            return _read(point, ends)
        self._kept = None  # an interruption loses the whole, not a part
        moved = None if kept is None else _moved_on(point, kept, ends)
        self._kept = kept = _read(point, ends) if moved is None else moved
        return kept

    def _standing(self, point: Point, kept: _Kept) -> Standing:
        ops = kept.ends.operations if point.tx >= kept.ends.last_tx else _known_operations(point)
        remembered = kept.standings
        for at, (_, standing) in enumerate(remembered):
            if standing.ops == ops and standing.since <= point.valid < standing.until:
                del remembered[at]
                remembered.insert(0, (point.valid, standing))
                return standing
        standing = Standing(ops, None)
        _look_at_all(standing, point, kept.ends)
        remembered.insert(0, (point.valid, standing))
        del remembered[REMEMBERED:]
        return standing


def _point(sight: At) -> Point:
    core: Any = sight.core
    point: Point = core.point
    return point


def _read(point: Point, ends: Ends) -> _Kept:
    import numpy as np

    nothing = np.zeros(0, dtype=np.uint32)
    kept = _Kept(ends, nothing, FreshWords(0), nothing)
    _read_on(point, kept)
    return kept


def _read_on(point: Point, kept: _Kept) -> None:
    """Read the words that were written since."""
    import numpy as np

    ends, known = kept.ends, len(kept.sealed)
    if known < ends.sealed:
        parts = [kept.sealed]
        for row in point.rows(SEGMENT_LENGTHS, first=known):
            parts.append(np.frombuffer(row.lengths, dtype="<u4")[max(0, known - row.first) :])
        kept.sealed = np.concatenate(parts)
    fresh = kept.fresh
    if fresh.first != ends.sealed:
        fresh = kept.fresh = FreshWords(ends.sealed)
    if fresh.first + len(fresh.lengths) < ends.versions:
        for one in point.rows(FRESH_WORDS, first=fresh.first + len(fresh.lengths)):
            fresh.add([term.decode("utf-8", "surrogatepass") for term in terms_of(one.terms)])


def _moved_on(point: Point, kept: _Kept, ends: Ends) -> _Kept | None:
    """Return what is kept as of a later state; None where everything is to be read again."""
    was = kept.ends
    if (was.rewritten, was.identity) != (ends.rewritten, ends.identity) or ends.line < was.line:
        return None
    if ends.line - was.line > _HEADS:
        return None
    heads = [orjson.loads(row.head) for row in point.rows(HEADS_AFTER, line=was.line, last=ends.line)]
    closed, link_closed = list[int](), list[int]()
    for head in heads:
        if head.get("branch") is not None:
            continue
        if any(verb in FORGETTING for verb, *_ in head.get("ops", ())):
            return None
        closed += [number for number, _ in head.get("closed", ())]
        link_closed += [number for number, _ in head.get("link_closed", ())]
    found = _Kept(ends, kept.sealed, kept.fresh, kept.named)
    _read_on(point, found)
    moved = point.rows(
        MOVED_SINCE,
        periods=was.periods,
        link_periods=was.link_periods,
        closed=as_json(closed),
        link_closed=as_json(link_closed),
    )
    for asked, standing in kept.standings:
        if standing.ops == was.operations:
            valid = point.valid if standing.since <= point.valid < standing.until else asked
            standing = standing.copy()
            standing.ops = ends.operations
            now = Point(point.database, valid, ends.last_tx)
            _look_again(standing, now, ends, [row.number for row in moved])
            asked = valid
        standing.grow_to(ends.versions, ends.entities)
        found.standings.append((asked, standing))
    return found


def _lengths(kept: _Kept) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([kept.sealed, np.array(kept.fresh.lengths, dtype=np.uint32)])


# ---------------------------------------------------------------------- what stands


def _look_at_all(standing: Standing, point: Point, ends: Ends) -> None:
    """Find what stands at a coordinate."""
    import numpy as np

    [row] = point.rows(STANDING_VERSIONS)
    for begun in (row.begun, row.ended):
        standing.since = max(standing.since, -OPEN if begun is None else begun)
    for ends_at in (row.begins, row.ends):
        standing.until = min(standing.until, OPEN + 1 if ends_at is None else ends_at)
    standing.grow_to(ends.versions, ends.entities)
    entities, versions = (
        np.array(orjson.loads(each), dtype=np.int64) for each in (row.entities, row.versions)
    )
    standing.version_of[entities] = versions
    away = [found.number for found in point.rows(FORGOTTEN)]
    away += _superseded(standing, point, point.rows(SUPERSEDED_EVENTS))
    standing.version_of[away] = -1
    standing.alive[standing.version_of[standing.version_of >= 0]] = True


def _look_again(standing: Standing, now: Point, ends: Ends, entities: list[int]) -> None:
    """Find which versions of some entities stand."""
    valid, held = now.valid, dict[int, int]()
    standing.grow_to(ends.versions, ends.entities)
    for ent in entities:
        if (ver := int(standing.version_of[ent])) >= 0:
            standing.alive[ver] = False
            standing.version_of[ent] = -1
    numbers = as_json(entities)
    for row in now.rows(BELIEVED_PERIODS, numbers=numbers):
        standing.narrow(row.valid_from, row.valid_to, valid)
        if row.valid_from <= valid < row.valid_to:
            held[row.entity] = row.version
    gone = {found.number for found in now.rows(FORGOTTEN)} if held else set()
    gone.update(_superseded(standing, now, now.rows(SUPERSEDED_AMONG, numbers=numbers)))
    for ent, ver in held.items():
        if ent not in gone:
            standing.version_of[ent] = ver
            standing.alive[ver] = True


def _superseded(standing: Standing, point: Point, rows: list[Superseded]) -> list[int]:
    """Return the events that are superseded at a coordinate, and note when that changes."""
    found = []
    for row in rows:
        standing.narrow(row.valid_from, row.valid_to, point.valid)
        if row.valid_from <= point.valid < row.valid_to:
            found.append(row.entity)
    return found


# ---------------------------------------------------------------------- what was known


def _known_operations(point: Point) -> int:
    rows = point.rows(OPERATIONS_BY)
    return rows[0].number + 1 if rows else 0


def known_versions(point: Point) -> int:
    """Return how many versions were recorded by the tx of a point: bodies are numbered in the order of versions."""
    [ends] = point.rows(ENDS)
    if point.tx >= ends.last_tx:
        return ends.versions
    rows = point.rows(BODIES_BY)
    return (
        _first("SELECT body FROM version WHERE number = ?", point, ends.versions, rows[0].number)
        if rows
        else 0
    )


def known_periods(point: Point, tx: Instant) -> int:
    """Return how many periods were recorded by an instant."""
    [ends] = point.rows(ENDS)
    if tx >= ends.last_tx:
        return ends.periods
    return _first("SELECT tx_from FROM period WHERE number = ?", point, ends.periods, tx + 1)


def _first(statement: str, point: Point, count: int, least: int) -> int:
    """Return the first of so many numbers of which a statement gives at least a value."""

    def value(number: int) -> int:
        [(found,)] = point.database.rows(statement, (number,))
        return int(found)

    return bisect_left(range(count), least, key=value)
