"""Full-text search of a ledger: the words and the standing versions are read from its rows.

A process keeps in memory the lengths of the versions, the versions named by periods, the words not yet sealed, and what stands at a few coordinates: a few
bytes for each version. They are brought up to date by the heads of the chain.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.ledger.branch_rows import SPAN, TRUNK
from graphstore.ledger.closings import closings
from graphstore.ledger.statements import Statement
from graphstore.ledger.word_rows import terms_of
from graphstore.read.index_of_rows import FORGOTTEN, IndexOfRows, Number
from graphstore.read.points import Point, as_json
from graphstore.read.settings import setting
from graphstore.read.standing_rules import Index
from graphstore.search.search import (
    Fits,
    Matches,
    Numbered,
    QuestionTerms,
    SearchedTexts,
    Weigh,
    WordLayers,
    admitted,
    announced,
    best,
    descending,
    fitting,
    scored,
)
from graphstore.search.source import SourceAt
from graphstore.search.standing import Standing
from graphstore.search.word_columns import FreshWords, Posting
from graphstore.values import libraries
from graphstore.values.period import OPEN, Instant
from graphstore.values.searched_text import text_of_event, text_of_node
from graphstore.values.vocabulary import JOINED, JOINS
from graphstore.values.words import ENGLISH, Analyzer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphstore.search.search import Mask

_REMEMBERED = 4  # coordinates for which the standing versions are kept
_HEADS = 256  # lines of the chain that are read one by one; beyond this everything is read again
_FETCHED = 128  # versions that are read at once
_AFTER = b"\xff"  # sorts after all UTF-8
_INSIDE = "SELECT number FROM version WHERE number >= ?"
_NAMED = "SELECT version FROM period WHERE tx_from <= ?"
_JOINS = "SELECT DISTINCT l.number FROM link_period p CROSS JOIN link l ON l.number = p.link AND l.kind = ?2 WHERE p.number >= ?1"


class SearchedEnds(NamedTuple):
    """Counts the searchable rows of a ledger, and holds how far it goes."""

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


class HeldVersions(NamedTuple):
    """Holds what stands at a coordinate: entities and versions as JSON arrays, the nearest ends of periods before and after, and the plans."""

    entities: str
    versions: str
    begun: Instant | None
    ended: Instant | None
    begins: Instant | None
    ends: Instant | None
    plans: str


class SupersededEvent(NamedTuple):
    """Holds the period in which an event is superseded."""

    entity: int
    valid_from: Instant
    valid_to: Instant


class Believed(NamedTuple):
    """Holds the period of a version."""

    entity: int
    version: int
    valid_from: Instant
    valid_to: Instant


class JoinedVersion(NamedTuple):
    """Holds a version of a node that was joined into another one, and the number of that one."""

    version: int
    entity: int


class VersionNumbers(NamedTuple):
    """Holds numbers of versions, as a JSON array."""

    numbers: str


class TextOf(NamedTuple):
    """Holds the parts of a version from which its text is made."""

    number: int
    is_event: int
    kind: str
    key: str | None
    data: bytes | None
    checksum: int


class SegmentLengths(NamedTuple):
    """Holds the numbers of terms of the versions of a segment, from version `first` on."""

    first: int
    lengths: bytes


class FreshTerms(NamedTuple):
    """Holds the terms of a version."""

    version: int
    terms: bytes


class Sealed(NamedTuple):
    """Holds the versions of a segment that contain a term, and how often each does."""

    versions: bytes
    times: bytes


class TermOf(NamedTuple):
    """Holds a term."""

    term: bytes


ENDS = Statement("words_state", SearchedEnds)
STANDING_VERSIONS = Statement("standing_versions", HeldVersions)
SUPERSEDED_EVENTS = Statement("superseded_events", SupersededEvent)
SUPERSEDED_AMONG = Statement("superseded_among", SupersededEvent)
BELIEVED_PERIODS = Statement("believed_periods", Believed)
MOVED_SINCE = Statement("moved_since", Number)
FORGOTTEN_VERSIONS = Statement("forgotten_versions", Number)
JOINED_VERSIONS = Statement("joined_versions", JoinedVersion)
VERSIONS_BELIEVED = Statement("versions_believed", VersionNumbers)
BODIES_BY = Statement("bodies_by", Number)
SEGMENT_LENGTHS = Statement("segment_lengths", SegmentLengths)
FRESH_WORDS = Statement("fresh_words", FreshTerms)
VERSION_TEXTS = Statement("version_texts", TextOf)
POSTINGS = Statement("postings", Sealed)
TERMS_BEGINNING = Statement("terms_beginning", TermOf)


class SealedWords:
    """Reads the sealed words: those of the first `stop` versions of a ledger."""

    def __init__(self, point: Point, stop: int) -> None:
        self._point, self._stop = point, stop

    def posting(self, term: str) -> Posting | None:
        """Return the versions that contain a term; None if there are none."""
        import numpy as np

        found = self._point.rows(POSTINGS, term=term.encode("utf-8", "surrogatepass")) if self._stop else []
        if not found:
            return None
        versions = [np.frombuffer(row.versions, dtype="<u4") for row in found]
        times = [
            np.frombuffer(row.times, dtype="u1" if len(row.times) == len(numbers) else "<u4")
            for row, numbers in zip(found, versions, strict=True)
        ]
        whole, often = np.concatenate(versions), np.concatenate(times)
        many = int(whole.searchsorted(self._stop))  # a branch sees only the first ones of the trunk
        return Posting(whole[:many], often[:many]) if many else None

    def beginning(self, term: str) -> Iterator[str]:
        """Yield the terms that begin with `term`."""
        first = term.encode("utf-8", "surrogatepass")
        for row in self._point.rows(TERMS_BEGINNING, least=first, stop=first + _AFTER):
            yield row.term.decode("utf-8", "surrogatepass")


@dataclass
class _Kept:
    """Holds what a process keeps of one ledger, in the state of `ends`."""

    ends: SearchedEnds
    sealed: NDArray[Any]  # the lengths of the sealed versions
    fresh: FreshWords
    named: NDArray[
        Any
    ]  # the versions that the periods name, in order, for as many periods as were needed for the past
    analyzer: Analyzer | None  # computes the words of texts here; None: they are read from the tables
    inside: NDArray[Any] | None = None  # for each version whether it is within the scopes
    joins: list[int] = field(
        default_factory=list
    )  # the numbers of the links by which nodes were joined into others
    standings: list[tuple[Instant, Standing]] = field(
        default_factory=list
    )  # each with the valid time of its last use


class RowSearch:
    """Ranks the versions of one branch of a ledger by the words of a text. The numpy arrays are indexed by the places of rows in the order of the branch."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # never held while waiting for the store's lock
        self.analyzer = Analyzer()
        self._kept: _Kept | None = None

    def find(
        self,
        sight: SourceAt,
        text: str,
        most: int,
        *,
        kinds: frozenset[str] = frozenset(),
        weigh: Weigh | None = None,
        seen: Fits | None = None,
        ahead: Callable[[list[int]], None] | None = None,
    ) -> Matches:
        """Return the `most` best matches among what stands here, is of these kinds and types (if given) and is seen, by score, then id.

        `weigh(entity)`, from 0 to 1, multiplies the score of a thing before ranking. `ahead` is called with things before they are weighed.
        """
        index = sight.index
        with self._lock:
            texts = self._texts(sight)
            joined = self._joined(_point(sight), texts)
            if joined:
                of_entity: dict[int, list[int]] = {}
                for ver, ent in joined.items():
                    of_entity.setdefault(ent, []).append(ver % SPAN)
                texts = texts._replace(alive=texts.alive.copy(), joined=of_entity)
                texts.alive[_places([*joined])] = True
            asked = QuestionTerms(self.analyzer.ask(text), texts)
            versions = admitted(sight.core, asked, texts)
        fits = fitting(index, kinds, seen, versions)
        matches = descending(*scored(asked, texts), most)
        found: Iterable[tuple[int, float]] = _fetched(
            index, _once(matches, joined, texts) if joined else matches
        )
        if fits is not None:
            found = (match for match in found if fits(match[0]))
        if ahead is not None:
            found = announced(found, index, ahead)
        return Matches(best(found, index, most, weigh), asked, texts, versions)

    def find_known(
        self, sight: SourceAt, text: str, kinds: frozenset[str] = frozenset(), among: Mask | None = None
    ) -> Iterator[tuple[int, float]]:
        """Yield the versions recorded by the sight's tx that contain a word of the text, past ones included, with their scores, best first.

        Versions of an open transaction are not included. `among`: a mask over version numbers; None for all.
        """
        index = sight.index
        with self._lock:
            texts = self._texts_ever(sight)
            asked = QuestionTerms(self.analyzer.ask(text), texts)
            versions = admitted(sight.core, asked, texts)
        vers, scores = scored(asked, texts)
        if among is not None:
            kept = among[vers % SPAN]
            vers, scores = vers[kept], scores[kept]
        fits = fitting(index, kinds, None, versions)
        names, v_ent = index.names, index.v_ent
        for _, equal in groupby(descending(vers, scores, 0), key=itemgetter(1)):
            found = [match for match in _fetched(index, equal) if fits is None or fits(match[0])]
            yield from sorted(found, key=lambda match: (names[v_ent[match[0]]], -match[0]))

    def standing(self, sight: SourceAt) -> Standing:
        """Return the standing versions at a coordinate."""
        with self._lock:
            point = _point(sight)
            return self._standing(point, self._follow(point))

    def _texts(self, sight: SourceAt) -> SearchedTexts:
        """Return the searchable texts among what stands."""
        point = _point(sight)
        kept = self._follow(point)
        standing, lengths = self._standing(point, kept), _lengths(kept)
        known, mean, numbered = known_versions(point), standing.mean(lengths), _numbered(point)
        layers, alive, version_of = _layers(point, kept), standing.alive, standing.version_of
        return SearchedTexts(
            layers, lengths, known, alive, standing.count(), mean, version_of, numbered, kept.inside
        )

    def _texts_ever(self, sight: SourceAt) -> SearchedTexts:
        """Return the searchable texts among all that was committed by the sight's tx."""
        import numpy as np

        point = _point(sight)
        kept = self._follow(point)
        known = np.zeros(kept.ends.versions, dtype=bool)
        if point.whole is not point:  # within scopes, numbers of periods are missing
            known[[ver for (ver,) in point.database.rows(_NAMED, (point.tx,))]] = True
        elif len(kept.named) < kept.ends.periods:
            [row] = point.rows(VERSIONS_BELIEVED, first=point.database.line.row("period", len(kept.named)))
            kept.named = np.concatenate([kept.named, _places(orjson.loads(row.numbers)).astype(np.uint32)])
        known[kept.named[: known_periods(point, point.tx)]] = True
        known[_places([row.number for row in point.rows(FORGOTTEN_VERSIONS)])] = False
        source: Any = sight.core
        known[source.versions :] = False
        lengths, count = _lengths(kept), int(np.count_nonzero(known))
        mean = int(lengths[known].sum()) / max(count, 1)
        layers, numbered, nothing = _layers(point, kept), _numbered(point), np.zeros(0, dtype=np.int32)
        return SearchedTexts(
            layers, lengths, len(lengths), known, count, mean, nothing, numbered, kept.inside
        )

    def _joined(self, point: Point, texts: SearchedTexts) -> dict[int, int]:
        """Return the versions of nodes that were joined into others, each with the place of what it means now, if that stands here."""
        kept = self._kept
        if kept is None or not kept.joins:
            return {}
        rows = point.rows(JOINED_VERSIONS, links=as_json(kept.joins))
        return {row.version: row.entity % SPAN for row in rows if texts.version_of[row.entity % SPAN] >= 0}

    # ------------------------------------------------------------------ following

    def _follow(self, point: Point) -> _Kept:
        """Bring the kept state up to date. A thread that reads an earlier state than another one keeps nothing."""
        libraries.load("numpy")
        ends = ends_of(point)
        kept = self._kept
        if kept is not None and kept.ends == ends:
            return kept
        languages = tuple(orjson.loads(ends.languages) or ENGLISH) if ends.languages else ENGLISH
        if languages != self.analyzer.languages:
            self.analyzer = Analyzer(languages)
        if kept is not None and kept.ends.line > ends.line and kept.ends.rewritten == ends.rewritten:
            return _read(point, ends, self.analyzer)
        self._kept = None  # an interruption discards everything, not a part
        moved = None if kept is None else _moved_on(point, kept, ends)
        self._kept = kept = _read(point, ends, self.analyzer) if moved is None else moved
        return kept

    def _standing(self, point: Point, kept: _Kept) -> Standing:
        ops = _known("operation", "tx", point, kept.ends, point.tx)
        remembered = kept.standings
        for at, (_, standing) in enumerate(remembered):
            if standing.ops == ops and standing.since <= point.valid < standing.until:
                del remembered[at]
                remembered.insert(0, (point.valid, standing))
                return standing
        standing = Standing(ops)
        _look_at_all(standing, point, kept.ends)
        remembered.insert(0, (point.valid, standing))
        del remembered[_REMEMBERED:]
        return standing


def _point(sight: SourceAt) -> Point:
    core: Any = sight.core
    point: Point = core.point
    return point


def ends_of(point: Point) -> SearchedEnds:
    """Return the counts of what can be searched on the branch of a point."""
    [ends] = point.rows(ENDS)
    return ends._replace(sealed=min(ends.sealed, point.database.line.trunk_stop("version")))


def _places(numbers: list[int]) -> NDArray[Any]:
    """Return the places of rows in the order of their branch."""
    import numpy as np

    return np.array(numbers, dtype=np.int64) % SPAN


def _numbered(point: Point) -> Numbered:
    """Return a function from places of versions to their numbers on a branch."""
    import numpy as np

    pieces = point.database.line.pieces("version")
    if point.database.line is TRUNK:
        return lambda places: places
    first = np.array([piece.start for piece in pieces])
    lines, first = first - first % SPAN, first % SPAN
    return lambda places: places + lines[first.searchsorted(places, side="right") - 1]


def _layers(point: Point, kept: _Kept) -> WordLayers:
    return [SealedWords(point, len(kept.sealed)), kept.fresh]


def _fetched(index: Index, found: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Yield the given versions after reading them, many at once."""
    assert isinstance(index, IndexOfRows)
    waiting = iter(found)
    while some := list(islice(waiting, _FETCHED)):
        index.read_versions([ver for ver, _ in some])
        yield from some


def _read(point: Point, ends: SearchedEnds, analyzer: Analyzer) -> _Kept:
    import numpy as np

    nothing = np.zeros(0, dtype=np.uint32)
    # Words are computed here if a branch has other languages, or if another release of the stemmer wrote those of the tables.
    made_here = None if ends.identity in (None, analyzer.identity) else analyzer
    kept = _Kept(ends, nothing, FreshWords(0), nothing, made_here)
    kept.joins = _joins(point, 0)
    _read_on(point, kept)
    return kept


def _joins(point: Point, first: int) -> list[int]:
    """Return the links by which nodes were joined into others, among those of which a period was recorded from number `first` on."""
    if not setting(point, JOINS):
        return []
    return [link for (link,) in point.database.rows(_JOINS, (first, JOINED))]


def _read_on(point: Point, kept: _Kept) -> None:
    """Read the words that were written since."""
    import numpy as np

    ends, known = kept.ends, len(kept.sealed)
    sealed = ends.sealed if kept.analyzer is None else 0
    if known < sealed:
        parts = [kept.sealed]
        for row in point.rows(SEGMENT_LENGTHS, first=known):
            parts.append(np.frombuffer(row.lengths, dtype="<u4")[max(0, known - row.first) :])
        kept.sealed = np.concatenate(parts)[:sealed]
    fresh = kept.fresh
    if fresh.first != sealed:
        fresh = kept.fresh = FreshWords(sealed)
    known = fresh.first + len(fresh.lengths)
    if known < ends.versions:
        for terms in _terms(point.whole, point.database.line.row("version", known), kept.analyzer):
            fresh.add(terms)
    if point.whole is not point:
        known_inside = np.zeros(0, dtype=bool) if kept.inside is None else kept.inside
        kept.inside = np.zeros(ends.versions, dtype=bool)
        kept.inside[: len(known_inside)] = known_inside
        kept.inside[[ver for (ver,) in point.database.rows(_INSIDE, (len(known_inside),))]] = True


def _once(
    matches: Iterable[tuple[int, float]], joined: dict[int, int], texts: SearchedTexts
) -> Iterator[tuple[int, float]]:
    """Yield each version once, with its best score, and instead of those of joined nodes the versions of what these mean now."""
    seen = set[int]()
    for found, score in matches:
        ent = joined.get(found, -1)
        ver = found if ent < 0 else int(texts.numbered(texts.version_of[[ent]])[0])
        if ver not in seen:
            seen.add(ver)
            yield ver, score


def _terms(point: Point, first: int, analyzer: Analyzer | None) -> Iterator[list[str]]:
    """Yield the terms of each unsealed version of a branch, from a number on. `analyzer` computes them from texts; None: they are read."""
    if analyzer is not None:
        for row in point.rows(VERSION_TEXTS, first=first):
            body = point.content(row.data, row.checksum, f"version {row.number}")
            yield analyzer.terms(
                text_of_event(body) if row.is_event else text_of_node(body, row.kind, row.key) if body else ""
            )
        return
    for piece in point.database.line.pieces("version"):
        if piece.stop > first:
            for one in point.rows(FRESH_WORDS, first=max(first, piece.start), stop=piece.stop):
                yield [term.decode("utf-8", "surrogatepass") for term in terms_of(one.terms)]


def _moved_on(point: Point, kept: _Kept, ends: SearchedEnds) -> _Kept | None:
    """Return the kept state brought up to date; None if everything must be read again."""
    was, line = kept.ends, point.database.line
    if (was.rewritten, was.identity, was.languages) != (ends.rewritten, ends.identity, ends.languages):
        return None
    if was._replace(line=ends.line, last_tx=ends.last_tx) == ends:  # only other branches were written
        kept.ends = ends
        return kept
    if not 0 <= ends.line - was.line <= _HEADS:
        return None
    closed = closings(point.database, was.line, ends.line)
    if closed.forgets:
        return None
    found = _Kept(ends, kept.sealed, kept.fresh, kept.named, kept.analyzer, kept.inside)
    found.joins = kept.joins + _joins(point, line.row("link_period", was.link_periods))
    _read_on(point, found)
    moved = point.rows(
        MOVED_SINCE,
        periods=line.row("period", was.periods),
        link_periods=line.row("link_period", was.link_periods),
        closed=as_json(closed.periods),
        link_closed=as_json(closed.link_periods),
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


def _look_at_all(standing: Standing, point: Point, ends: SearchedEnds) -> None:
    """Determine what stands at a coordinate."""
    [row] = point.rows(STANDING_VERSIONS)
    for begun in (row.begun, row.ended):
        standing.since = max(standing.since, -OPEN if begun is None else begun)
    for ends_at in (row.begins, row.ends):
        standing.until = min(standing.until, OPEN + 1 if ends_at is None else ends_at)
    standing.grow_to(ends.versions, ends.entities)
    entities, versions = (_places(orjson.loads(each)) for each in (row.entities, row.versions))
    standing.version_of[entities] = versions
    standing.planned = {int(ver) % SPAN: ent % SPAN for ver, ent in orjson.loads(row.plans).items()}
    away = [found.number for found in point.rows(FORGOTTEN)]
    away += _superseded(standing, point, point.rows(SUPERSEDED_EVENTS))
    standing.version_of[_places(away)] = -1
    standing.alive[standing.version_of[standing.version_of >= 0]] = True


def _look_again(standing: Standing, now: Point, ends: SearchedEnds, entities: list[int]) -> None:
    """Determine again which versions of some entities stand."""
    valid, held = now.valid, dict[int, int]()
    standing.grow_to(ends.versions, ends.entities)
    for ent in _places(entities).tolist():
        if (ver := int(standing.version_of[ent])) >= 0:
            standing.alive[ver] = False
            standing.version_of[ent] = -1
    if standing.planned:
        moved = set(_places(entities).tolist())
        standing.planned = {ver: ent for ver, ent in standing.planned.items() if ent not in moved}
    numbers = as_json(entities)
    for row in now.rows(BELIEVED_PERIODS, numbers=numbers):
        standing.narrow(row.valid_from, row.valid_to, valid)
        if row.valid_from <= valid < row.valid_to:
            held[row.entity] = row.version
        elif row.valid_from > max(valid, now.tx):
            standing.planned[row.version % SPAN] = row.entity % SPAN
    gone = {found.number for found in now.rows(FORGOTTEN)} if held else set()
    gone.update(_superseded(standing, now, now.rows(SUPERSEDED_AMONG, numbers=numbers)))
    for ent, ver in held.items():
        if ent not in gone:
            standing.version_of[ent % SPAN] = ver % SPAN
            standing.alive[ver % SPAN] = True


def _superseded(standing: Standing, point: Point, rows: list[SupersededEvent]) -> list[int]:
    """Return the events that are superseded at a coordinate, and note when that changes."""
    found = []
    for row in rows:
        standing.narrow(row.valid_from, row.valid_to, point.valid)
        if row.valid_from <= point.valid < row.valid_to:
            found.append(row.entity)
    return found


# ---------------------------------------------------------------------- what was known


def known_versions(point: Point) -> int:
    """Return the number of versions recorded by the tx of a point. It uses that bodies are numbered in the order of versions."""
    ends = ends_of(point)
    if point.tx >= ends.last_tx:
        return ends.versions
    rows = point.rows(BODIES_BY)
    return _first("version", "body", point, ends.versions, rows[0].number) if rows else 0


def known_periods(point: Point, tx: Instant) -> int:
    """Return the number of periods recorded by an instant."""
    return _known("period", "tx_from", point, ends_of(point), tx)


def _known(table: str, column: str, point: Point, ends: SearchedEnds, tx: Instant) -> int:
    """Return the number of rows of a table recorded by an instant. `column`: holds the instant of each row."""
    count: int = getattr(ends, f"{table}s")
    return count if tx >= ends.last_tx else _first(table, column, point, count, tx + 1)


def _first(table: str, column: str, point: Point, count: int, least: int) -> int:
    """Return the place of the first of `count` rows whose `column` is at least `least`."""
    point = point.whole  # within scopes numbers are missing
    line, statement = point.database.line, f"SELECT {column} FROM {table} WHERE number = ?"

    def value(place: int) -> int:
        [(found,)] = point.database.rows(statement, (line.row(table, place),))
        return int(found)

    return bisect_left(range(count), least, key=value)
