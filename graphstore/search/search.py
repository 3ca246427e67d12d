"""Full-text search as of any coordinate: the words of all versions, ranked only among what stands at the coordinate.

A query looks up the words, leaves out every version that does not stand at its coordinate, and then ranks by BM25. Nothing else influences the scores.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappush, heapreplace
from itertools import islice
from math import log
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphstore.ledger.branch_rows import SPAN
from graphstore.read.standing_rules import Index
from graphstore.search.source import Source
from graphstore.search.word_columns import Posting, together
from graphstore.values.searched_text import text_of_event, text_of_node
from graphstore.values.words import ParsedQuestion, Term

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Scores = NDArray[np.float64]

K1, B = 0.9, 0.4
"""BM25: the saturation of repeated words, and the normalization by length."""
_AHEAD = 64  # things that are announced first; each further time twice as many
_TRIED = 8  # this many times the wanted results are sorted first
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and ideographs
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """Return the words of a text in order: runs of letters and digits, case-folded; in scripts written without spaces, single characters.

    >>> words("Straße_7: auth.py, ERR-404")
    ['strasse', '7', 'auth', 'py', 'err', '404']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


Weigh = Callable[[int], float]
Fits = Callable[[int], bool]
Numbered = Callable[["NDArray[Any]"], "NDArray[Any]"]


class WordLayer(Protocol):
    """The words of some versions."""

    def posting(self, term: str) -> Posting | None:
        """Return the versions that contain a term; None if there are none."""

    def beginning(self, term: str) -> Iterable[str]:
        """Return the terms that begin with `term`."""


WordLayers = list[WordLayer]


class SearchedTexts(NamedTuple):
    """Holds the versions that a search covers: their words (`layers`) and `lengths`, the number recorded by then (`known`), the mask of those that may be
    found (`alive`), their number (`many`) and mean length, and the version of each standing entity. `inside`: the mask of versions within the scopes; None
    for all.

    All are indexed by place. On a branch rows have other numbers, whose place is `number % SPAN`; `numbered` converts places of versions to numbers.
    """

    layers: WordLayers
    lengths: NDArray[Any]
    known: int
    alive: Mask
    many: int
    mean: float
    version_of: NDArray[np.int32]
    numbered: Numbered
    inside: Mask | None
    joined: Mapping[int, Sequence[int]] = MappingProxyType({})
    """The versions of what was joined into an entity, by its place."""


class Matches:
    """The result of a search: entities with their scores, best first (`matches`); the words of the question that nothing recorded by then contains
    (`unknown`); the parsed question and the weights of its terms here; and the test of whether an entity has its phrases and none of its excluded words
    (`admits`; None: all do).
    """

    def __init__(
        self,
        matches: list[tuple[int, float]],
        asked: QuestionTerms,
        texts: SearchedTexts,
        versions: Fits | None,
    ) -> None:
        self.matches, self.admits = matches, None if versions is None else self._admits
        self.question, self.weights, self.unknown = asked.question, asked.weights, asked.unknown()
        self._asked, self._texts, self._versions = asked, texts, versions or (lambda _: True)

    def _admits(self, ent: int) -> bool:
        place = self._texts.version_of[[ent % SPAN]]
        return place[0] >= 0 and self._versions(int(self._texts.numbered(place)[0]))

    def terms_said_by(self, ent: int) -> tuple[int, ...]:
        """Return the numbers of the question's terms that a thing contains as it stands here."""
        vers = [int(self._texts.version_of[ent % SPAN]), *self._texts.joined.get(ent % SPAN, ())]
        return tuple(
            at
            for at, each in enumerate(self._asked.alive)
            if each is not None and any(_says(each, ver) for ver in vers)
        )

    def coverages(self, ents: Sequence[int]) -> list[float]:
        """Return the share of the question's weight that each of these things contains, 0 to 1."""
        import numpy as np

        said = np.zeros(len(ents))
        vers = self._texts.version_of[np.asarray(ents, dtype=np.int64) % SPAN]
        joined = {at: also for at, ent in enumerate(ents) if (also := self._texts.joined.get(ent % SPAN))}
        for weight, each in zip(self.weights, self._asked.alive, strict=True):
            if each is not None:
                places = np.minimum(each.versions.searchsorted(vers), len(each.versions) - 1)
                says = each.versions[places] == vers
                for at, also in joined.items():
                    says[at] = says[at] or any(_says(each, ver) for ver in also)
                said += weight * says
        whole = sum(self.weights)
        return list(np.minimum(said / whole, 1.0).tolist()) if whole else [0.0] * len(ents)

    def saying(self) -> Iterator[int]:
        """Yield the versions recorded by then, also those that no longer stand, that match the whole question: each word in any form, its phrases, and no
        excluded word."""
        import numpy as np

        wanted = [
            posting.versions if posting is not None else ()
            for term, posting in zip(self.question.terms, self._asked.all, strict=True)
            if term.weight >= 1
        ]
        wanted.sort(key=len)
        vers = np.asarray(wanted[0] if wanted else range(self._texts.known), dtype=np.int64)
        for each in wanted[1:]:
            vers = np.intersect1d(vers, each, assume_unique=True)
        return filter(self._versions, iter(self._texts.numbered(vers).tolist()))


class QuestionTerms:
    """A question applied to a store: the postings of its terms among the first `known` versions and among those `alive`, and their weights."""

    def __init__(self, question: ParsedQuestion, texts: SearchedTexts) -> None:
        self.question, self._texts = question, texts
        alive, count = texts.alive, texts.many
        self.all = [self.posting(term) for term in question.terms]
        standing = [None if posting is None else _among(posting, alive) for posting in self.all]
        many = [0 if posting is None else len(posting.versions) for posting in standing]
        self.alive = [posting if having else None for posting, having in zip(standing, many, strict=True)]
        self.weights = tuple(
            term.weight * log(1 + (count - having + 0.5) / (having + 0.5)) * (K1 + 1)
            for term, having in zip(question.terms, many, strict=True)
        )

    def posting(self, term: Term) -> Posting | None:
        """Return the versions that contain a term in any form. A term that may be a prefix and occurs nowhere as a word matches the words that begin with it."""
        found = self._of(term.forms)
        if not found and term.prefix:
            found = self._of(
                {
                    word
                    for layer in self._texts.layers
                    for form in term.forms
                    for word in layer.beginning(form)
                }
            )
        return together(found)

    def _of(self, forms: Iterable[str]) -> list[Posting]:
        found, inside = [], self._texts.inside
        for layer in self._texts.layers:
            for posting in filter(None, map(layer.posting, forms)):
                many = int(posting.versions.searchsorted(self._texts.known))
                whole = Posting(posting.versions[:many], posting.times[:many])
                found.append(whole if inside is None else _among(whole, inside))
        return [posting for posting in found if len(posting.versions)]

    def unknown(self) -> list[str]:
        """Return the words that no version recorded by then contains."""
        return [
            term.word
            for term, its in zip(self.question.terms, self.all, strict=True)
            if term.weight >= 1 and its is None
        ]


def scored(asked: QuestionTerms, texts: SearchedTexts) -> tuple[NDArray[Any], Scores]:
    """Return the numbers of the versions that contain one of the words, and their scores."""
    import numpy as np

    lengths, slope = texts.lengths, K1 * B / (texts.mean or 1)
    there = [
        (weight, posting)
        for weight, posting in zip(asked.weights, asked.alive, strict=True)
        if posting is not None
    ]
    scores = np.zeros(len(lengths))
    for weight, (versions, times) in sorted(there, key=lambda word: -word[0]):
        scores[versions] += weight * times / (times + K1 * (1 - B) + slope * lengths[versions])
    vers = np.flatnonzero(scores > 0)
    return texts.numbered(vers), scores[vers]


def admitted(core: Source, asked: QuestionTerms, texts: SearchedTexts) -> Fits | None:
    """Return the test of whether a version has the phrases of a question and none of its excluded words; None if all pass."""
    question = asked.question
    if not question.phrases and not question.without:
        return None
    without = [posting for posting in map(asked.posting, question.without) if posting is not None]
    barred = {ver for posting in without for ver in texts.numbered(posting.versions).tolist()}
    kept: dict[int, bool] = {}

    def is_admitted(ver: int) -> bool:
        if ver < 0 or ver in barred:
            return False
        if question.phrases and ver not in kept:
            said = words(_text_of(core, ver))
            kept[ver] = all(_holds(said, words(phrase)) for phrase in question.phrases)
        return not question.phrases or kept[ver]

    return is_admitted


def _among(posting: Posting, mask: Mask) -> Posting:
    stays = mask[posting.versions]
    return Posting(posting.versions[stays], posting.times[stays])


def _says(posting: Posting, ver: int) -> bool:
    at = int(posting.versions.searchsorted(ver)) if ver >= 0 else len(posting.versions)
    return at < len(posting.versions) and int(posting.versions[at]) == ver


def _holds(said: list[str], phrase: list[str]) -> bool:
    """Return True if these words follow one another in a text."""
    many = len(phrase)
    return any(said[at : at + many] == phrase for at in range(len(said) - many + 1))


def _text_of(core: Source, ver: int) -> str:
    """Return the text of a version; "" if it was forgotten."""
    index = core.index
    ent, body = index.v_ent[ver], core.body(index.v_pos[ver], index.v_len[ver])
    if ent in index.gone:
        return ""
    return text_of_event(body) if index.is_event[ent] else text_of_node(body, index.kind[ent], index.key[ent])


def fitting(
    index: Index,
    kinds: frozenset[str],
    seen: Callable[[int], bool] | None,
    admitted: Callable[[int], bool] | None,
) -> Callable[[int], bool] | None:
    """Return the test of which versions may be found; None if all may."""
    if not kinds and seen is None and admitted is None:
        return None
    v_ent, kind = index.v_ent, index.kind
    return lambda ver: (
        (not kinds or kind[v_ent[ver]] in kinds)
        and (seen is None or seen(v_ent[ver]))
        and (admitted is None or admitted(ver))
    )


def descending(vers: NDArray[Any], scores: Scores, first: int) -> Iterator[tuple[int, float]]:
    """Yield versions with their scores, highest first. If only `first` are wanted, a part that surely contains them is sorted before the rest."""
    import numpy as np

    parts: list[Any] = [slice(None)]
    if 0 < first * _TRIED < len(vers):
        top = scores >= np.partition(scores, len(scores) - first * _TRIED)[len(scores) - first * _TRIED]
        parts = [top, ~top]
    for part in parts:
        order = np.argsort(-scores[part], kind="stable")
        yield from zip(vers[part][order].tolist(), scores[part][order].tolist(), strict=True)


def announced(
    scores: Iterable[tuple[int, float]], index: Index, ahead: Callable[[list[int]], None]
) -> Iterator[tuple[int, float]]:
    """Yield the versions and scores in parts; `ahead` gets the entities of a part before it is yielded."""
    left, many = iter(scores), _AHEAD
    while some := list(islice(left, many)):
        ahead([index.v_ent[ver] for ver, _ in some])
        yield from some
        many *= 2


def best(
    scores: Iterable[tuple[int, float]], index: Index, most: int, weigh: Weigh | None
) -> list[tuple[int, float]]:
    """Return the entities of the best versions, with scores multiplied by the things' weights. A weight is at most 1, so versions that cannot win are not
    weighed."""
    v_ent, names = index.v_ent, index.names
    best: list[float] = []
    found = []
    for ver, score in scores:
        if len(best) == most and (not most or score < best[0]):
            break
        ent = v_ent[ver]
        weighed = score if weigh is None else score * weigh(ent)
        found.append((ent, weighed))
        if len(best) < most:
            heappush(best, weighed)
        elif weighed > best[0]:
            heapreplace(best, weighed)
    found.sort(key=lambda match: (-match[1], names[match[0]]))
    return found[:most]
