"""Full-text search as of any coordinate: the words of all versions, ranked over what stands at the coordinate alone.

A query looks the words up, leaves out every version that does not stand at its coordinate, and only then ranks (BM25): nothing else influences the scores.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from itertools import groupby, islice
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from graphstore.ledger.branch_rows import SPAN
from graphstore.read.standing_rules import Index
from graphstore.search.source import At, Source
from graphstore.search.word_columns import Posting, together
from graphstore.values.searched_text import text_of_event, text_of_node
from graphstore.values.words import Analyzer, Question, Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Scores = NDArray[np.float64]

K1, B = 0.9, 0.4
"""BM25: the saturation of repeated words, and the normalization by length."""
REMEMBERED = 4
"""The number of coordinates whose standing things are cached."""
_BATCH = 4_096
_AHEAD = 64  # things that are announced first; then twice as many each time
_TRIED = 8  # times as many results as wanted are put in order first
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and ideographs
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """The words of a text, in order: runs of letters and digits, whatever their case; of scripts written without spaces, each character.

    >>> words("Straße_7: auth.py, ERR-404")
    ['strasse', '7', 'auth', 'py', 'err', '404']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


Weigh = Callable[[int], float]
Fits = Callable[[int], bool]
Numbered = Callable[["NDArray[Any]"], "NDArray[Any]"]


class Layer(Protocol):
    """The words of some versions."""

    def posting(self, term: str) -> Posting | None:
        """Return where a term is; None where it is nowhere."""

    def beginning(self, term: str) -> Iterable[str]:
        """Return the terms that begin so."""


Layers = list[Layer]


class Found:
    """The result of a search: entities with their scores, best first (`matches`); the words of the question that nothing says, of all that was recorded
    by then (`unknown`); the question as it was read; what each of its terms weighs here (`weights`); and which entities say its phrases and none of the
    words it excludes (`admits`; None: all).
    """

    def __init__(
        self,
        matches: list[tuple[int, float]],
        asked: _Asked,
        admits: Fits | None,
        version_of: NDArray[np.int32],
        candidates: Callable[[], Iterator[int]],
        versions: Fits | None,
        numbered: Numbered,
    ) -> None:
        self.matches, self.admits = matches, admits
        self.question, self.weights, self.unknown = asked.question, asked.weights, asked.unknown()
        self._asked, self._version_of, self._candidates = asked, version_of, candidates
        self._versions = versions or (lambda _: True)
        self._numbered = numbered

    def says(self, ent: int) -> tuple[int, ...]:
        """Which terms of the question, by number, a thing says as it stands here."""
        ver = int(self._version_of[ent % SPAN])
        return tuple(at for at, each in enumerate(self._asked.alive) if each is not None and _says(each, ver))

    def coverages(self, ents: Sequence[int]) -> list[float]:
        """The share of the question's weight that each of these things says, 0 to 1."""
        import numpy as np

        said = np.zeros(len(ents))
        vers = self._version_of[np.asarray(ents, dtype=np.int64) % SPAN]
        for weight, each in zip(self.weights, self._asked.alive, strict=True):
            if each is not None:
                places = np.minimum(each.versions.searchsorted(vers), len(each.versions) - 1)
                said += weight * (each.versions[places] == vers)
        whole = sum(self.weights)
        return list(np.minimum(said / whole, 1.0).tolist()) if whole else [0.0] * len(ents)

    def coverage(self, ent: int) -> float:
        """The share of the question's weight that a thing says, 0 to 1."""
        return self.coverages((ent,))[0]

    def saying(self) -> Iterator[int]:
        """The versions recorded by then, whatever became of them, that say all of the question: each of its words in any form, its phrases, and nothing that
        it excludes."""
        import numpy as np

        wanted = [
            posting.versions if posting is not None else ()
            for term, posting in zip(self.question.terms, self._asked._all, strict=True)
            if term.weight >= 1
        ]
        wanted.sort(key=len)
        vers = np.asarray(wanted[0] if wanted else range(self._asked.known), dtype=np.int64)
        for each in wanted[1:]:
            vers = np.intersect1d(vers, each, assume_unique=True)
        return filter(self._versions, iter(self._numbered(vers).tolist()))

    def count(self) -> int:
        """How many things match, the best and all others."""
        return sum(1 for _ in self._candidates())


class SearchedTexts(NamedTuple):
    """What a text is searched in: the words of versions (`layers`, `lengths`), how many were recorded by then (`known`), which of them may be found
    (`alive`), how `many` these are and the mean of their lengths, and the version of each entity that stands.

    All are by place: on a branch rows have numbers of their own, whose places in its order `number % SPAN` gives. `numbered` gives the numbers of versions.
    """

    layers: Layers
    lengths: NDArray[Any]
    known: int
    alive: Mask
    many: int
    mean: float
    version_of: NDArray[np.int32]
    numbered: Numbered


class Ranker(ABC):
    """Ranks versions by the words of a text. A subclass has the words and what stands."""

    analyzer: Analyzer

    def __init__(self) -> None:
        self._lock = threading.RLock()  # nobody waits for the store's lock while he holds it
        self._scores: Scores | None = None

    @abstractmethod
    def _texts(self, sight: At) -> SearchedTexts:
        """Return what is searched among what stands."""

    @abstractmethod
    def _texts_ever(self, sight: At) -> SearchedTexts:
        """Return what is searched among all that was recorded by the sight's tx and committed."""

    def _fetched(self, index: Index, found: Iterable[tuple[int, float]]) -> Iterable[tuple[int, float]]:
        """Return versions that were found, each read before it is given."""
        return found

    def find(
        self,
        sight: At,
        text: str,
        most: int,
        kinds: frozenset[str] = frozenset(),
        weigh: Weigh | None = None,
        seen: Fits | None = None,
        ahead: Callable[[list[int]], None] | None = None,
    ) -> Found:
        """The `most` best matches among what stands here (of these kinds and types, if any are named, and seen), by score, then id.

        `weigh(entity)`, from 0 to 1, is what the score of a thing is multiplied by before they are ranked. `ahead` is given
        things before they are weighed.
        """
        core, index = sight.core, sight.index
        with self._lock:
            texts = self._texts(sight)
            asked = _Asked(self.analyzer.ask(text), texts)
            versions = self._admitted(core, asked, texts)
            vers, scores = self._scored(asked, texts)
        version_of, numbered = texts.version_of, texts.numbered
        fits = _fitting(index, kinds, seen, versions)

        def candidates() -> Iterator[int]:
            return filter(fits, vers.tolist()) if fits is not None else iter(vers.tolist())

        found = self._fetched(index, _descending(vers, scores, most))
        if fits is not None:
            found = (match for match in found if fits(match[0]))
        if ahead is not None:
            found = _announced(found, index, ahead)
        best = _best(found, index, most) if weigh is None else _best_weighed(found, index, most, weigh)

        def admits(ent: int) -> bool:
            place = version_of[[ent % SPAN]]
            return versions is None or (place[0] >= 0 and versions(int(numbered(place)[0])))

        return Found(
            best, asked, None if versions is None else admits, version_of, candidates, versions, numbered
        )

    def find_known(
        self, sight: At, text: str, kinds: frozenset[str] = frozenset(), without: Mask | None = None
    ) -> Iterator[tuple[int, float]]:
        """The versions recorded by the sight's tx that contain a word of the text, past ones included, each with its score, best first.

        Versions of an open transaction are not included, nor those that are `without` by number.
        """
        index = sight.index
        with self._lock:
            texts = self._texts_ever(sight)
            asked = _Asked(self.analyzer.ask(text), texts)
            vers, scores = self._scored(asked, texts)
            admitted = self._admitted(sight.core, asked, texts)
        if without is not None:
            kept = ~without[vers % SPAN]
            vers, scores = vers[kept], scores[kept]
        fits = _fitting(index, kinds, None, admitted)
        names, v_ent = index.names, index.v_ent
        for _, equal in groupby(_descending(vers, scores, 0), key=itemgetter(1)):
            found = self._fetched(index, equal)
            fitting = [match for match in found if fits is None or fits(match[0])]
            yield from sorted(fitting, key=lambda match: (names[v_ent[match[0]]], -match[0]))

    def _scored(self, asked: _Asked, texts: SearchedTexts) -> tuple[NDArray[Any], Scores]:
        """Return the versions that contain one of the words, by number, each with its score."""
        import numpy as np

        lengths, slope = texts.lengths, K1 * B / (texts.mean or 1)
        there = [
            (weight, posting)
            for weight, posting in zip(asked.weights, asked.alive, strict=True)
            if posting is not None
        ]
        if not there:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        scores, self._scores = self._scores, None  # an interruption loses it
        if scores is None or len(scores) < len(lengths):
            scores = np.zeros(len(lengths) + _BATCH)
        for weight, (versions, times) in sorted(there, key=lambda word: -word[0]):
            scores[versions] += weight * times / (times + K1 * (1 - B) + slope * lengths[versions])
        vers = np.flatnonzero(scores > 0)
        found = scores[vers]
        scores[vers] = 0
        self._scores = scores
        return texts.numbered(vers), found

    def _admitted(self, core: Source, asked: _Asked, texts: SearchedTexts) -> Fits | None:
        """Which versions say the phrases of a question and none of the words it excludes; None: all."""
        question = asked.question
        if not question.phrases and not question.without:
            return None
        without = [posting for posting in map(asked.posting, question.without) if posting is not None]
        barred = {ver for posting in without for ver in texts.numbered(posting.versions).tolist()}
        kept: dict[int, bool] = {}

        def admitted(ver: int) -> bool:
            if ver < 0 or ver in barred:
                return False
            if question.phrases and ver not in kept:
                said = words(next(_texts(core, range(ver, ver + 1))))
                kept[ver] = all(_holds(said, words(phrase)) for phrase in question.phrases)
            return not question.phrases or kept[ver]

        return admitted


class _Asked:
    """A question in the words of a store: where each of its terms is, among the first `known` versions and among those `alive`; what it weighs there."""

    def __init__(self, question: Question, texts: SearchedTexts) -> None:
        self.question, self._layers, self.known = question, texts.layers, texts.known
        alive, count = texts.alive, texts.many
        self._all = [self.posting(term) for term in question.terms]
        self.alive = [None if posting is None else _alive(posting, alive) for posting in self._all]
        many = [0 if posting is None else len(posting.versions) for posting in self.alive]
        self.weights = tuple(
            term.weight * log(1 + (count - having + 0.5) / (having + 0.5)) * (K1 + 1)
            for term, having in zip(question.terms, many, strict=True)
        )

    def posting(self, term: Term) -> Posting | None:
        """Where a term is: in any of its forms, and where it may be a beginning and is nowhere whole, in what begins so."""
        found = self._of(term.forms)
        if not found and term.prefix:
            found = self._of(
                {word for layer in self._layers for form in term.forms for word in layer.beginning(form)}
            )
        return together(found)

    def _of(self, forms: Iterable[str]) -> list[Posting]:
        import numpy as np

        found = []
        for layer in self._layers:
            for posting in filter(None, map(layer.posting, forms)):
                if posting.versions[-1] >= self.known:
                    many = int(np.searchsorted(posting.versions, self.known))
                    posting = Posting(posting.versions[:many], posting.times[:many])
                if len(posting.versions):
                    found.append(posting)
        return found

    def unknown(self) -> list[str]:
        """The words that no version says, of those recorded by then."""
        return [
            term.word
            for term, its in zip(self.question.terms, self._all, strict=True)
            if term.weight >= 1 and its is None
        ]


def _alive(posting: Posting, alive: Mask) -> Posting | None:
    stands = alive[posting.versions]
    return Posting(posting.versions[stands], posting.times[stands]) if stands.any() else None


def _says(posting: Posting, ver: int) -> bool:
    at = int(posting.versions.searchsorted(ver)) if ver >= 0 else len(posting.versions)
    return at < len(posting.versions) and int(posting.versions[at]) == ver


def _holds(said: list[str], phrase: list[str]) -> bool:
    """Whether these words stand one after another in a text."""
    many = len(phrase)
    return any(said[at : at + many] == phrase for at in range(len(said) - many + 1))


def _texts(core: Source, versions: range) -> Iterator[str]:
    """What each of these versions says; of what was forgotten nothing."""
    index = core.index
    v_ent, v_pos, v_len = index.v_ent, index.v_pos, index.v_len
    raw = [bytes(core.raw(v_pos[ver], v_len[ver])) if v_len[ver] else b"{}" for ver in versions]
    for ver, body in zip(versions, orjson.loads(b"[%b]" % b",".join(raw)), strict=True):
        ent = v_ent[ver]
        if ent in index.gone:
            yield ""
        elif index.is_event[ent]:
            yield text_of_event(body)
        else:
            yield text_of_node(body, index.kind[ent], index.key[ent])


def _fitting(
    index: Index,
    kinds: frozenset[str],
    seen: Callable[[int], bool] | None,
    admitted: Callable[[int], bool] | None,
) -> Callable[[int], bool] | None:
    """Which versions may be found; None: all."""
    v_ent, kind = index.v_ent, index.kind
    asked = [
        *([lambda ver: kind[v_ent[ver]] in kinds] if kinds else []),
        *([lambda ver: seen(v_ent[ver])] if seen is not None else []),
        *([admitted] if admitted is not None else []),
    ]
    if len(asked) < 2:
        return asked[0] if asked else None
    return lambda ver: all(fits(ver) for fits in asked)


def _descending(vers: NDArray[Any], scores: Scores, first: int) -> Iterator[tuple[int, float]]:
    """Versions with their scores, the highest first; those that `first` of them are surely among are put in order before the rest."""
    import numpy as np

    parts: list[Any] = [slice(None)]
    if 0 < first * _TRIED < len(vers):
        top = scores >= np.partition(scores, len(scores) - first * _TRIED)[len(scores) - first * _TRIED]
        parts = [top, ~top]
    for part in parts:
        order = np.argsort(-scores[part], kind="stable")
        yield from zip(vers[part][order].tolist(), scores[part][order].tolist(), strict=True)


def _best(scores: Iterable[tuple[int, float]], index: Index, most: int) -> list[tuple[int, float]]:
    """The entities of the best versions, with their scores."""
    v_ent, names = index.v_ent, index.names
    found: list[tuple[int, float]] = []
    for ver, score in scores:
        if len(found) >= most and (not most or score < found[most - 1][1]):
            break
        found.append((v_ent[ver], score))
    found.sort(key=lambda match: (-match[1], names[match[0]]))
    return found[:most]


def _announced(
    scores: Iterable[tuple[int, float]], index: Index, ahead: Callable[[list[int]], None]
) -> Iterator[tuple[int, float]]:
    """Yield the versions and scores; `ahead` is given the entities of some of them before these are."""
    left, many = iter(scores), _AHEAD
    while some := list(islice(left, many)):
        ahead([index.v_ent[ver] for ver, _ in some])
        yield from some
        many *= 2


def _best_weighed(
    scores: Iterable[tuple[int, float]], index: Index, most: int, weigh: Weigh
) -> list[tuple[int, float]]:
    """The same with each score multiplied by the thing's weight. A weight is at most 1, so those that cannot win are not weighed."""
    v_ent, names = index.v_ent, index.names
    best: list[float] = []
    found = []
    for ver, score in scores:
        if len(best) == most and (not most or score < best[0]):
            break
        ent = v_ent[ver]
        weighed = score * weigh(ent)
        found.append((ent, weighed))
        if len(best) < most:
            heappush(best, weighed)
        elif weighed > best[0]:
            heapreplace(best, weighed)
    found.sort(key=lambda match: (-match[1], names[match[0]]))
    return found[:most]
