"""Finds related pieces of work by shared topics, names, lessons and errors.

It needs neither a store nor a model. It compares sets of words through an index from word to pieces, so most pairs are never compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from graphstore.sessions.segments.lexicon import STOP_WORDS
from graphstore.values.models import Json
from graphstore.values.period import Instant
from graphstore.values.sameness import tokens

TAGS, TOPICS, WORDS = 0.4, 0.3, 0.3
"""The weights of the three Jaccard indices in the score of two pieces of work."""
LESSON_LEAST = 0.3
"""The smallest Jaccard index at which two lessons of one level count as the same lesson."""
TECHNIQUES_LEAST = 2
"""The smallest number of concepts and frameworks that two projects must share."""
AT_A_NODE = 10
"""The largest number of links found at one piece of work, not counting the link to the previous session of its project."""
SHORTEST_ID = 6
"""The shortest name, in characters, that can be the id of a node."""

_NAMED = 3  # the largest number of shared items named in a reason
_NAME = re.compile(r"[\w-]+")
_REF = re.compile(r"-v\d+\Z")
_NEARLY = 1e-9  # rounding error of sums of thirds and fifths, for comparison with a threshold


@dataclass(frozen=True, slots=True)
class LessonWords:
    """Holds the words of a lesson: those of its summary and its tags."""

    id: str
    level: str
    words: frozenset[str]
    summary: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Holds the properties of one piece of work that are compared. `errors` maps a pattern to the error text."""

    id: str
    since: Instant
    session: str = ""
    project: str = ""
    tags: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    techniques: frozenset[str] = frozenset()
    lessons: tuple[LessonWords, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


class FoundConnection(NamedTuple):
    """A link to create: `source kind target`, its reason and its metadata. A symmetric link leads from the later piece to the earlier one."""

    source: str
    kind: str
    target: str
    reason: str
    metadata: Json


class LikenessLimits(NamedTuple):
    """Limits of a search: the window in microseconds, the least score, and the number of links of one kind per piece."""

    window: Instant
    threshold: float
    most: int


def plain(words: Iterable[str]) -> frozenset[str]:
    """Return words in the form used for comparison: stripped and case-folded."""
    return frozenset(word.strip().casefold() for word in words) - {""}


def telling(text: str) -> frozenset[str]:
    """Return the words of a text without stop words."""
    return tokens(text) - STOP_WORDS


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """Return all words in the texts that may be the id of a node. `{id}-v3` names the node `{id}`."""
    return frozenset(
        _REF.sub("", name)
        for text in texts
        for name in _NAME.findall(text)
        if len(name) >= SHORTEST_ID
    )  # fmt: skip


def connections(
    subjects: Iterable[Subject],
    limits: LikenessLimits,
    joined: Callable[[str, str], bool] = lambda one, other: False,
) -> list[FoundConnection]:
    """Return every connection among the subjects, independent of their order. `joined` returns True if two already have a closer link.
    In order of time, each takes its best connections to earlier ones until either end is full. A later one never displaces an existing link."""
    ordered = sorted(subjects, key=lambda subject: (subject.since, subject.id))
    place_of = {subject.id: place for place, subject in enumerate(ordered)}
    offered: defaultdict[int, list[FoundConnection]] = defaultdict(list)
    for finder in (_references, _lessons, _failures, _semantic, _techniques):
        for each in finder(ordered, limits):
            offered[max(place_of[each.source], place_of[each.target])].append(each)
    found = list(_with_room(offered))
    close = {(each.source, each.target) for each in found}
    for each in _projects(ordered, limits):
        one, other = each.source, each.target
        if (one, other) not in close and (other, one) not in close and not joined(one, other):
            found.append(each)
    return found


def _with_room(offered: Mapping[int, Sequence[FoundConnection]]) -> Iterator[FoundConnection]:
    """Yield the offered connections until one of their ends has `AT_A_NODE` links."""
    taken: Counter[str] = Counter()
    for place in sorted(offered):
        for each in offered[place]:
            if max(taken[each.source], taken[each.target]) < AT_A_NODE:
                taken.update((each.source, each.target))
                yield each


class _Places:
    """Maps each term to the places of the subjects that have it, earliest first."""

    def __init__(self) -> None:
        self._having: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, place: int, terms: Iterable[str]) -> None:
        for term in terms:
            self._having[term].append(place)

    def counts(self, terms: Iterable[str], first: int) -> Counter[int]:
        """Return how many of the terms each subject at place `first` or later has."""
        shared: Counter[int] = Counter()
        for term in terms:
            having = self._having.get(term)
            if having:
                shared.update(having[bisect_left(having, first) :])
        return shared


def _firsts(ordered: Sequence[Subject], window: Instant) -> Iterator[tuple[int, Subject, int]]:
    """Yield each subject with its place and the place of the earliest subject in the window before it."""
    first = 0
    for place, subject in enumerate(ordered):
        while ordered[first].since < subject.since - window:
            first += 1
        yield place, subject, first


def _nearest(found: Mapping[int, float], most: int) -> list[int]:
    """Return the places with the highest scores; among equal scores the latest first."""
    return nsmallest(most, found, key=lambda place: (-found[place], -place))


def _references(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    known = {subject.id for subject in ordered}
    for subject in ordered:
        for name in sorted((subject.names & known) - {subject.id}):
            yield FoundConnection(subject.id, "reference", name, f"its text names {name}", {})


def _semantic(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    tags, topics, words = _Places(), _Places(), _Places()
    tags_of, topics_of = [len(each.tags) for each in ordered], [len(each.topics) for each in ordered]
    words_of = [len(each.words) for each in ordered]
    alone = (limits.threshold - _NEARLY) / WORDS  # the score from words alone that reaches the threshold
    for place, subject, first in _firsts(ordered, limits.window):
        size = len(subject.tags)
        # The sums are written out here: calls for the many pairs would dominate the run time.
        scores = {
            other: TAGS * shared / (size + tags_of[other] - shared)
            for other, shared in tags.counts(subject.tags, first).items()
        }
        size = len(subject.topics)
        for other, shared in topics.counts(subject.topics, first).items():
            scores[other] = scores.get(other, 0.0) + TOPICS * shared / (size + topics_of[other] - shared)
        size = len(subject.words)
        by_word = words.counts(subject.words, first)
        if alone <= 1:
            least = alone * size
            for other in [other for other, shared in by_word.items() if shared >= least]:
                scores.setdefault(other, 0.0)
        found = {}
        for other, score in scores.items():
            shared = by_word.get(other, 0)
            if shared:
                score += WORDS * shared / (size + words_of[other] - shared)
            elif subject.tags.isdisjoint(ordered[other].tags):
                continue  # a shared topic alone is not enough
            if score >= limits.threshold - _NEARLY:
                found[other] = round(score, 6)
        for other in _nearest(found, limits.most):
            yield _alike(found[other], subject, ordered[other])
        tags.add(place, subject.tags)
        topics.add(place, subject.topics)
        words.add(place, subject.words)


def _part(shared: int, one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard index of two sets from the number of shared members."""
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def _alike(score: float, later: Subject, earlier: Subject) -> FoundConnection:
    shared = [
        f"{what} {_some(one & other)}"
        for what, one, other in (
            ("tags", later.tags, earlier.tags),
            ("topics", later.topics, earlier.topics),
            ("words", later.words, earlier.words),
        )
        if one & other
    ]
    reason = f"they share {'; '.join(shared)}"
    return FoundConnection(later.id, "semantic", earlier.id, reason, {"similarity": score})


def _lessons(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    by_level: defaultdict[str, _Places] = defaultdict(_Places)
    lessons: list[tuple[int, LessonWords]] = []  # each lesson with the place of its piece of work
    begins: list[int] = []  # the index in `lessons` of the first lesson of each piece
    for place, subject, first in _firsts(ordered, limits.window):
        since = begins[first] if first < place else len(lessons)
        best: dict[int, tuple[float, str, LessonWords]] = {}
        for lesson in subject.lessons:
            for number, shared in by_level[lesson.level].counts(lesson.words, since).items():
                where, other = lessons[number]
                score = round(_part(shared, lesson.words, other.words), 6)
                if score >= LESSON_LEAST:
                    candidate = (-score, other.id, other)
                    best[where] = min(best.get(where, candidate), candidate, key=lambda each: each[:2])
        for where in _nearest({where: -below for where, (below, *_) in best.items()}, limits.most):
            below, id, lesson = best[where]
            reason = f"it applies a {lesson.level} lesson: {lesson.summary}"
            metadata = {"similarity": -below, "lessonId": id}
            yield FoundConnection(subject.id, "lesson_application", ordered[where].id, reason, metadata)
        begins.append(len(lessons))
        for lesson in subject.lessons:
            by_level[lesson.level].add(len(lessons), lesson.words)
            lessons.append((place, lesson))


def _failures(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    meeting = _Places()
    for place, subject, first in _firsts(ordered, limits.window):
        for other in _nearest(meeting.counts(subject.errors, first), limits.most):
            yield _failed(subject, ordered[other])
        meeting.add(place, subject.errors)


def _failed(later: Subject, earlier: Subject) -> FoundConnection:
    same = sorted(later.errors.keys() & earlier.errors.keys())
    metadata: Json = {"patternId": same[0]}
    if same[1:]:
        metadata["otherPatternIds"] = same[1:]
    errors = "; ".join(later.errors[pattern] for pattern in same[:_NAMED])
    return FoundConnection(later.id, "failure_pattern", earlier.id, f"the same failure: {errors}", metadata)


def _techniques(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    using = _Places()
    for place, subject, first in _firsts(ordered, limits.window):
        found = {}
        for other, shared in using.counts(subject.techniques, first).items():
            earlier = ordered[other]
            if shared >= TECHNIQUES_LEAST and "" != subject.project != earlier.project != "":
                found[other] = _part(shared, subject.techniques, earlier.techniques)
        for other in _nearest(found, limits.most):
            reason = f"both use {_some(subject.techniques & ordered[other].techniques)}"
            metadata = {"similarity": round(found[other], 6)}
            yield FoundConnection(subject.id, "technique_shared", ordered[other].id, reason, metadata)
        using.add(place, subject.techniques)


def _projects(ordered: Sequence[Subject], limits: LikenessLimits) -> Iterator[FoundConnection]:
    """Yield a link from the first piece of each session to the latest earlier piece of another session on its project: a chain per project."""
    last: dict[
        str, list[Subject]
    ] = {}  # of a project the latest piece of work, and the latest of another session than that
    begun: set[tuple[str, str]] = set()
    for subject in ordered:
        if not subject.project:
            continue
        before = last.get(subject.project, [])
        others = [each for each in before if each.session != subject.session]
        if (subject.project, subject.session) not in begun:
            begun.add((subject.project, subject.session))
            if others and subject.since - others[0].since <= limits.window:
                reason = f"another session on {subject.project}"
                yield FoundConnection(subject.id, "project_related", others[0].id, reason, {})
        last[subject.project] = [subject, *others[:1]]


def _some(shared: Iterable[str]) -> str:
    """Return up to three shared items as text, and the number of the others."""
    names = sorted(shared)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
