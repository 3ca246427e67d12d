"""Finds related segments without a model, and links them. The links are marked as inferred.

`connect` takes the segments that stand, finds connections (`likeness.py`), compares them with the existing links, and writes the difference in at most
one transaction. The result depends only on the segments, not on the order of their ingestion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.errors import ConflictError, InvalidError
from graphstore.sessions.segments.likeness import (
    FoundConnection,
    LessonWords,
    LikenessLimits,
    Subject,
    connections,
    names_in,
    plain,
    telling,
)
from graphstore.sessions.segments_read import WorkPiece, pieces
from graphstore.store import registry
from graphstore.values.inputs import at_least_one
from graphstore.values.models import Value
from graphstore.values.period import Instant, TimeLike, moment
from graphstore.values.time_range import plural
from graphstore.values.vocabulary import KINDS
from graphstore.view.sight import Sight

if TYPE_CHECKING:
    from graphstore.store.store import Store

FOUND: tuple[str, ...] = (
    "semantic", "reference", "lesson_application", "failure_pattern", "technique_shared", "project_related",
)  # fmt: skip
"""The kinds of link that `connect` makes."""
GROUNDLESS = "connect: no ground for it is found any more"
RENEWED = "connect: it is found otherwise now"

_OWN = "con_"  # prefix of the ids of links that `connect` makes, and may retract
_CLOSER = tuple(kind.name for kind in KINDS.values() if kind.group in ("structural", "semantic"))
_READ = ("content", "lessons", "observations")  # the parts of a content with text about the work
_DAY = 86_400 * 1_000_000

_Key = tuple[str, str, str]  # kind, source, target; the two ends of a symmetric kind are sorted


class Connected(Value):
    """What `connect` did: the links made, by kind; those that were renewed, because they are found with another reason or likeness, and those taken
    back, because nothing speaks for them any more. No node is revised. `left`: links found that somebody had taken back, and that stay so.
    """

    segments: int
    links: dict[str, int]
    renewed: int
    taken_back: int
    left: int
    revised: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not (self.links or self.renewed or self.taken_back):
            return f"{plural(self.segments, 'segment')}: nothing new."
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.links.items())
        words = [f"{plural(sum(self.links.values()), 'link')} made{f' ({kinds})' if kinds else ''}"]
        words += [f"{self.renewed:,} renewed"] if self.renewed else []
        words += [f"{self.taken_back:,} taken back"] if self.taken_back else []
        words += [f"{self.left:,} left as somebody took them back"] if self.left else []
        return f"{plural(self.segments, 'segment')}: {', '.join(words)}."


@registry.write("sessions")
def connect(
    store: Store,
    *,
    now: TimeLike | None = None,
    window_days: float = 30,
    threshold: float = 0.2,
    most: int = 10,
) -> Connected:
    """Link the segments that have to do with each other, in one transaction; in none when nothing is new. Segments in which nothing was done get no link.

    Held against each other is each segment and those that began up to `window_days` before it. `semantic`: at least `threshold` of
    0.4 · Jaccard(tags) + 0.3 · Jaccard(topics) + 0.3 · Jaccard(words of the summary), and more than topics are shared. `most`: so many links of a kind from
    a segment to earlier ones; ten at a segment in all, beside that to the session before it. `now`: accepted, and has no effect. Raises InvalidError for a number out of range.
    """
    limits = LikenessLimits(_window(window_days), _share("threshold", threshold), at_least_one("most", most))
    if now is not None:
        store.instant_of(now, "now")
    with store.transaction(reason="connect"):
        work = _Connecting(store)
        work.links(limits)
        return work.done()


class _Connecting:
    """One run of `connect`, inside its transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pieces = [piece for piece in pieces(store) if not piece.is_idle]
        self._known = _known(store, self._pieces)
        self._made: Counter[str] = Counter()
        self._renewed = self._taken_back = self._left = 0
        self._refused: frozenset[str] | None = None

    def links(self, limits: LikenessLimits) -> None:
        """Create the links that were found. Retract links of earlier runs that are no longer found."""
        found = connections(map(subject, self._pieces), limits, self._known.joined)
        wanted = {_key(each.kind, each.source, each.target): each for each in found}
        for key, id in self._known.own.items():
            if key not in wanted:
                self._store.unlink(id, reason=GROUNDLESS)
                self._taken_back += 1
        since = {piece.id: piece.since for piece in self._pieces}
        for key, connection in wanted.items():
            if key not in self._known.others:
                self._hold(key, connection, max(since[connection.source], since[connection.target]))

    def _hold(self, key: _Key, connection: FoundConnection, since: Instant) -> None:
        """Create one link, unless it exists or another caller retracted it."""
        own = self._known.own.get(key)
        if own is None:
            if self._known.past.get(key) in self._unwanted() or not self._make(connection, since):
                self._left += 1
                return
            self._made[connection.kind] += 1
        elif own not in takewhile(self._is_known, _ids(connection)):
            self._store.unlink(own, reason=RENEWED)
            if self._make(connection, since):
                self._renewed += 1
            else:
                self._taken_back += 1

    def _make(self, connection: FoundConnection, since: Instant) -> bool:
        """Create the link. Return False if the store refuses it, because of a conflict with a link of another time."""
        source, kind, target, reason, metadata = connection
        id = next(id for id in _ids(connection) if not self._is_known(id))
        about: Any = {"reason": reason, "metadata": metadata, "valid_from": moment(since)}
        try:
            self._store.link(source, kind, target, id=id, confidence="inferred", created_by="daemon", **about)
        except ConflictError:
            return False
        return True

    def _is_known(self, id: str) -> bool:
        with self._store.reading() as sight:
            return sight.knows_link(id)

    def _unwanted(self) -> frozenset[str]:
        """Return the links of `connect` that another caller retracted."""
        if self._refused is None:
            changes = self._store.changes() if self._known.past else ()
            unlinked = (change for change in changes if change.verb == "unlink")
            others = (change for change in unlinked if change.reason not in (GROUNDLESS, RENEWED))
            self._refused = frozenset(one.subject for one in others if one.subject.startswith(_OWN))
        return self._refused

    def done(self) -> Connected:
        """Return the report of this run."""
        return Connected(
            segments=len(self._pieces),
            links={kind: self._made[kind] for kind in FOUND if self._made[kind]},
            renewed=self._renewed,
            taken_back=self._taken_back,
            left=self._left,
        )


def subject(piece: WorkPiece) -> Subject:
    """Return the properties of a piece of work that are compared. None of them is written by `connect`."""
    content = piece.content
    return Subject(
        id=piece.id,
        since=piece.since,
        session=piece.session,
        project=piece.project,
        tags=plain(piece.texts("semantic", "tags")),
        topics=plain(piece.texts("semantic", "topics")),
        words=telling(piece.summary),
        techniques=plain(piece.texts("semantic", "concepts") + piece.texts("classification", "frameworks")),
        lessons=tuple(
            LessonWords(each.id, each.level, telling(each.summary) | plain(each.tags), each.summary)
            for each in piece.lessons()
        ),
        errors={each.pattern: f"{each.type}: {each.message}" for each in piece.errors()},
        names=names_in(_texts([content.get(name) for name in _READ])),
    )


class _KnownLinks(NamedTuple):
    """Holds the links between segments. `own`: links of `connect`. `others`: keys of all other links. `pairs`: segments that other links join closely.
    `past`: links of `connect` that are no longer believed, with their latest id."""

    own: dict[_Key, str]
    others: frozenset[_Key]
    pairs: frozenset[frozenset[str]]
    past: dict[_Key, str]

    def joined(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self.pairs


def _known(store: Store, there: list[WorkPiece]) -> _KnownLinks:
    ids = {piece.id for piece in there}
    with store.reading() as sight:
        own: dict[_Key, str] = {}
        past: dict[_Key, str] = {}
        others: set[_Key] = set()
        pairs: set[frozenset[str]] = set()
        for edge in sight.edges_of(_CLOSER):
            source, target = sight.id(edge.source), sight.id(edge.target)
            if source not in ids or target not in ids:
                continue
            key, row = _key(edge.kind, source, target), sight.held(edge.link)
            if row >= 0 and not (edge.id.startswith(_OWN) and _found(sight, row)):
                others.add(key)
                if edge.kind != "project_related":
                    pairs.add(frozenset((source, target)))
            elif edge.id.startswith(_OWN):
                (own if row >= 0 else past)[key] = edge.id
        return _KnownLinks(own, frozenset(others), frozenset(pairs), past)


def _found(sight: Sight, row: int) -> bool:
    """Return True if `connect` made this link and no other caller has stated it since."""
    claim = sight.claim(row)
    return claim.inferred and claim.created_by == "daemon"


def _key(kind: str, source: str, target: str) -> _Key:
    if KINDS[kind].symmetric and target < source:
        source, target = target, source
    return kind, source, target


def _ids(connection: FoundConnection) -> Iterator[str]:
    """Yield the possible ids of a link, derived from its content: first the original, then one for each time it is written again after a retraction."""
    key = _key(connection.kind, connection.source, connection.target)
    raw = orjson.dumps([*key, connection.reason, connection.metadata], option=orjson.OPT_SORT_KEYS)
    for number in count():
        yield _OWN + blake2b(b"%d %b" % (number, raw), digest_size=8).hexdigest()


def _texts(value: Any) -> Iterator[str]:
    """Yield every string inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _window(days: float) -> Instant:
    if isinstance(days, bool) or not isinstance(days, (int, float)) or not 0 < days <= 3_650_000:
        raise InvalidError(f"window_days {days!r} is out of range. Give a number of days above 0.")
    return int(days * _DAY)


def _share(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise InvalidError(f"{what} {value!r} is out of range. Give a number above 0 and at most 1.")
    return value
