"""Full-text search as of any coordinate: one index of the words of all versions, ranked over what stands at the coordinate alone.

The body of a version never changes, so its words are indexed once for all coordinates. A query looks the words up, leaves out every version that does not
stand at its coordinate, and only then ranks (BM25): nothing else influences the scores. All of it is a copy in memory, made on first use.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heappush, heapreplace, nlargest
from itertools import chain, compress, islice
from math import log
from typing import NamedTuple

import orjson

from graphstore.core.index.columns import Mark
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.search.source import At, Source
from graphstore.core.search.words import ENGLISH, Analyzer, Question, Term
from graphstore.values.layers import CHUNK
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant

K1, B = 0.9, 0.4
"""BM25: the saturation of repeated words, and the normalization by length."""
LANGUAGES = "languages"
"""The setting: the languages whose words are stemmed."""
REMEMBERED = 4
"""The number of coordinates whose standing things are cached."""
_BATCH = 4_096
_TRIED = 8  # times as many results as wanted are checked for those that fit
_SURELY = 1 + 1e-9  # more than the rounding difference of sums in another order
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


def text_of_node(body: Json, kind: str, key: str | None) -> str:
    """What a version of a node says: its key, its text where that was given, the texts and numbers in its content, its tags. Whose a chunk is, is not what it says."""
    content = body.get("content", {})
    if kind == CHUNK:
        content = {name: value for name, value in content.items() if name not in ("user", "thread")}
    return "\n".join((key or "", body.get("text") or "", *body.get("tags", ()), *_leaves(content)))


def text_of_event(body: Json) -> str:
    """What an event says: its description, and its source."""
    return "\n".join((body.get("description") or "", body.get("source") or ""))


def _leaves(content: Json) -> Iterator[str]:
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)


Weigh = Callable[[int], float]


class Found(NamedTuple):
    """The result of a search: entities with their scores, best first, the words found nowhere, the question as it was read, what each of its terms
    weighs here, and which entities say its phrases and none of the words it excludes (None: all)."""

    matches: list[tuple[int, float]]
    unknown: list[str]
    question: Question
    weights: tuple[float, ...]
    admits: Callable[[int], bool] | None
    standing: Standing
    postings: list[list[_Posting]]

    def says(self, ent: int) -> tuple[int, ...]:
        """Which terms of the question, by number, a thing says as it stands here."""
        ver = self.standing.version_of.get(ent, -1)
        return tuple(
            at for at, each in enumerate(self.postings) if any(_has(posting, ver) for posting in each)
        )


def _has(posting: _Posting, ver: int) -> bool:
    at = bisect_left(posting.versions, ver)
    return at < len(posting.versions) and posting.versions[at] == ver


class Search:
    """The words of every version of one store. Each read follows the index first; the caller holds the store's lock."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self.analyzer = Analyzer()
        self._begin()

    def _begin(self) -> None:
        self._word_index = _WordIndex(0)
        self._dropped: set[int] = set()  # forgotten entities whose words are gone
        self._remembered: list[Standing] = []

    def find(
        self,
        sight: At,
        text: str,
        most: int,
        kinds: frozenset[str] = frozenset(),
        weigh: Weigh | None = None,
        seen: Callable[[int], bool] | None = None,
    ) -> Found:
        """The `most` best matches among what stands here (of these kinds and types, if any are named, and seen), by score, then id.

        `weigh(entity)`, from 0 to 1, is what the score of a thing is multiplied by before they are ranked.
        """
        core, index = sight.core, sight.index
        standing = self.standing(sight)
        layers, lengths = [self._word_index], self._word_index.lengths
        if standing.pending:
            layers.append(self._words_of(core, range(len(lengths), len(index.v_ent))))
            lengths = lengths + layers[1].lengths
        question = self.analyzer.ask(text)
        postings = [_postings(term, layers) for term in question.terms]
        terms, unknown = _candidates(question.terms, postings, standing)
        weights = tuple(word.weight for word in terms)
        terms = sorted(filter(_is_said, terms), key=lambda word: -word.weight)
        slope = K1 * B / (standing.mean(lengths) or 1)
        versions = self._admitted(core, question, layers)
        fits = _fitting(index, kinds, seen, versions)
        version_of = standing.version_of
        admits = None if versions is None else lambda ent: versions(version_of.get(ent, -1))
        if weigh is None:
            scores = _scores(terms, standing.alive, slope, lengths, most, fits)
            best = _best(scores, index, most)
            return Found(best, unknown, question, weights, admits, standing, postings)
        scores = _scores(terms, standing.alive, slope, lengths, len(index.v_ent) + 1, fits)
        best = _best_weighed(scores, index, most, weigh)
        return Found(best, unknown, question, weights, admits, standing, postings)

    def find_known(
        self, sight: At, text: str, kinds: frozenset[str] = frozenset()
    ) -> list[tuple[int, float]]:
        """The versions recorded by the sight's tx that contain a word of the text, past ones included, each with its score, best first.

        Versions of an open transaction are not included.
        """
        index = sight.index
        self._follow(sight.core)
        known_rows = min(bisect_right(index.r_tx, sight.tx), index.mark().rows)
        known = Standing(known_rows, None)
        known.version_of = {
            ver: ver for ver in index.r_ver[:known_rows] if index.v_ent[ver] not in index.gone
        }
        known.grow(len(index.v_ent))
        for ver in known.version_of:
            known.alive[ver] = 1
        question, layers = self.analyzer.ask(text), [self._word_index]
        terms, _ = _candidates(question.terms, [_postings(term, layers) for term in question.terms], known)
        terms = sorted(filter(_is_said, terms), key=lambda word: -word.weight)
        lengths = self._word_index.lengths
        slope = K1 * B / (known.mean(lengths) or 1)
        fits = _fitting(index, kinds, None, self._admitted(sight.core, question, layers))
        scores = _scores(terms, known.alive, slope, lengths, len(lengths) + 1, fits)
        return sorted(
            scores.items(), key=lambda match: (-match[1], index.names[index.v_ent[match[0]]], -match[0])
        )

    def standing(self, sight: At) -> Standing:
        """What stands at a coordinate."""
        index, valid, tx = sight.index, sight.valid, sight.tx
        self._follow(sight.core)
        mark, ops = index.mark(), bisect_right(index.o_tx, tx)
        if ops <= mark.ops:
            return self._committed(index, ops, valid, tx)
        standing = self._committed(index, mark.ops, valid, min(tx, index.last_tx)).copy()
        standing.follow(index, index.lengths(), valid, tx)
        standing.pending = True
        return standing

    def _committed(self, index: Index, ops: int, valid: Instant, tx: Instant) -> Standing:
        remembered, mark = self._remembered, index.mark()
        forgetting = len(index.gone) != len(self._dropped)  # open, and may still be rolled back
        for at, standing in enumerate(remembered):
            newer = standing.mark is not None and ops == mark.ops and not forgetting
            if standing.since <= valid < standing.until and (newer or standing.ops == ops):
                del remembered[at]  # an interruption loses the whole, not a part
                if standing.ops != ops:
                    standing.follow(index, mark, valid, tx)
                    standing.ops = ops
                standing.grow(len(index.v_ent))
                remembered.insert(0, standing)
                return standing
        standing = Standing(ops, mark if ops == mark.ops else None)
        standing.look_at_all(index, valid, tx)
        if not forgetting:
            remembered.insert(0, standing)
            del remembered[REMEMBERED:]
        return standing

    def _follow(self, core: Source) -> None:
        """Index what was committed since, and drop what was forgotten."""
        index = core.index
        languages = tuple(index.setting(LANGUAGES) or ENGLISH)
        if self._index is not index or languages != self.analyzer.languages:
            self._begin()
            self._index = index
            if languages != self.analyzer.languages:
                self.analyzer = Analyzer(languages)
        self.drop(index)
        done, goal = len(self._word_index.lengths), index.mark().versions
        if done < goal:
            try:
                self._word_index.extend(self._words_of(core, range(done, goal)))
            except BaseException:
                self._index = None  # interrupted between two words: begin again
                raise

    def drop(self, index: Index) -> None:
        """Drop every word of what was forgotten."""
        if self._index is not index or len(index.gone) == len(self._dropped):
            return
        ops = index.mark().ops  # an open transaction may still be rolled back
        gone = {ent for ent, op in index.gone.items() if op < ops}
        if gone != self._dropped:
            self._word_index.drop({ver for ent in gone - self._dropped for ver in index.versions_of[ent]})
            self._dropped = gone
            self._remembered.clear()

    def _words_of(self, core: Source, versions: range) -> _WordIndex:
        found, terms = _WordIndex(versions.start), self.analyzer.terms
        with no_collecting():
            for lo in range(versions.start, versions.stop, _BATCH):
                for text in _texts(core, range(lo, min(lo + _BATCH, versions.stop))):
                    found.add(terms(text))
        return found

    def _admitted(
        self, core: Source, question: Question, layers: list[_WordIndex]
    ) -> Callable[[int], bool] | None:
        """Which versions say the phrases of a question and none of the words it excludes; None: all."""
        if not question.phrases and not question.without:
            return None
        barred = {
            ver
            for term in question.without
            for posting in _postings(term, layers)
            for ver in posting.versions
        }
        kept: dict[int, bool] = {}

        def admitted(ver: int) -> bool:
            if ver < 0 or ver in barred:
                return False
            if question.phrases and ver not in kept:
                said = words(next(_texts(core, range(ver, ver + 1))))
                kept[ver] = all(_holds(said, words(phrase)) for phrase in question.phrases)
            return not question.phrases or kept[ver]

        return admitted


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


class _Posting(NamedTuple):
    """The postings of a word: the versions that contain it, ascending, and how often each does."""

    versions: array[int]
    times: array[int]


class _WordIndex:
    """An inverted index: which versions contain a word, and the length of each version. `first`: the number of the first."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.by: dict[str, _Posting] = {}
        self.lengths = array("I")

    def add(self, tokens: list[str]) -> None:
        """The words of the next version."""
        by, ver = self.by, self.first + len(self.lengths)
        for word, times in Counter(tokens).items():
            if word in by:
                posting = by[word]
                posting.versions.append(ver)
                posting.times.append(times)
            else:
                by[word] = _Posting(array("I", (ver,)), array("I", (times,)))
        self.lengths.append(len(tokens))

    def extend(self, more: _WordIndex) -> None:
        """Append the index of the versions that follow."""
        if not self.by:
            self.by = more.by
        else:
            for word, posting in more.by.items():
                if word in self.by:
                    self.by[word].versions.extend(posting.versions)
                    self.by[word].times.extend(posting.times)
                else:
                    self.by[word] = posting
        self.lengths.extend(more.lengths)

    def drop(self, versions: set[int]) -> None:
        """Drop these versions, and the words that no other contains."""
        kept = {}
        for word, posting in self.by.items():
            left = posting
            if not versions.isdisjoint(posting.versions):
                stays = [ver not in versions for ver in posting.versions]
                left = _Posting(
                    array("I", compress(posting.versions, stays)), array("I", compress(posting.times, stays))
                )
            if left.versions:
                kept[word] = left
        self.by = kept
        for ver in versions:
            if ver < len(self.lengths):
                self.lengths[ver] = 0


class Held(NamedTuple):
    """Rows that hold at an instant, and the time [since, until) around it in which the same ones do."""

    rows: list[int]
    since: Instant
    until: Instant


def holding(rows: list[int], start: array[int], stop: array[int], valid: Instant) -> Held:
    """Those of the rows that hold at `valid`; `start` and `stop` are the columns of their periods."""
    starts, stops = list(map(start.__getitem__, rows)), list(map(stop.__getitem__, rows))
    past, future = valid.__ge__, valid.__lt__  # as methods: filter() then asks them without a line of Python
    return Held(
        [row for row, begins, ends in zip(rows, starts, stops, strict=True) if begins <= valid < ends],
        max(chain(filter(past, starts), filter(past, stops)), default=-OPEN),
        min(chain(filter(future, starts), filter(future, stops)), default=OPEN + 1),
    )


class Standing:
    """The version of each thing that stands at (valid, tx), and the valid time [since, until) around it in which this is so."""

    __slots__ = ("_words", "alive", "links", "mark", "ops", "pending", "since", "until", "version_of")

    def __init__(self, ops: int, mark: Mark | None) -> None:
        self.ops = ops  # operations known
        self.mark = mark  # of the index, if it was current
        self.pending = False  # of an open transaction
        self.since, self.until = -OPEN, OPEN + 1
        self.version_of: dict[int, int] = {}  # by entity
        self.alive = bytearray()  # by version: 1 for one that stands
        self._words = -1  # of all that stands; -1: not counted
        # by caller, then by entity: its links to what stands
        self.links: dict[Hashable, dict[int, Held]] = {}

    def mean(self, lengths: array[int]) -> float:
        """The mean number of words of the things that stand."""
        if self._words < 0:
            self._words = sum(map(lengths.__getitem__, self.version_of.values()))
        return self._words / max(len(self.version_of), 1)

    def copy(self) -> Standing:
        """One that can follow an open transaction, and be thrown away."""
        twin = Standing(self.ops, self.mark)
        twin.since, twin.until = self.since, self.until
        twin.version_of, twin.alive = self.version_of.copy(), self.alive[:]
        return twin

    def follow(self, index: Index, mark: Mark, valid: Instant, tx: Instant) -> None:
        """Update what was changed since, up to `mark`."""
        was = self.mark
        assert was is not None
        touched = {index.r_ent[row] for row in range(was.rows, mark.rows)}
        touched.update(index.r_ent[row] for row in index.closings[was.closings : mark.closings])
        links = {index.k_link[row] for row in range(was.link_rows, mark.link_rows)}
        links.update(index.k_link[row] for row in index.link_closings[was.link_closings : mark.link_closings])
        touched.update(index.l_tgt[link] for link in links if index.l_kind[link] == "supersedes")
        self._look_anew(index, touched, links)
        self._words = -1
        for ent in touched:
            ver = self.version_of.pop(ent, -1)
            if ver >= 0:
                self.alive[ver] = 0
        self.mark = mark
        self.look(index, touched, valid, tx)

    def _look_anew(self, index: Index, touched: set[int], moved: set[int]) -> None:
        """Drop the cached links at the ends of changed links, and around things whose standing may have changed."""
        if self.links:
            l_src, l_tgt = index.l_src, index.l_tgt
            ends = {end for link in moved for end in (l_src[link], l_tgt[link])}
            ends.update(l_tgt[link] for ent in touched for link in index.out.get(ent, ()))
            ends.update(l_src[link] for ent in touched for link in index.into.get(ent, ()))
            for kept in self.links.values():
                for ent in ends:
                    kept.pop(ent, None)

    def grow(self, versions: int) -> None:
        """Extend to so many versions, with the same standing."""
        self.alive.extend(bytes(max(0, versions - len(self.alive))))

    def look_at_all(self, index: Index, valid: Instant, tx: Instant) -> None:
        """Compute what stands from the columns: for all at once that is faster than one by one."""
        known_rows = bisect_right(index.r_tx, tx)
        believed = [row for row, end in enumerate(index.r_end[:known_rows]) if end > tx]
        held = holding(believed, index.r_from, index.r_to, valid)
        self.since, self.until = max(self.since, held.since), min(self.until, held.until)
        self._stand(index, held.rows, valid, tx)

    def look(self, index: Index, ents: Iterable[int], valid: Instant, tx: Instant) -> None:
        """Compute which of these stand."""
        rows = [row for ent in ents for row in index.believed(ent, tx)]
        for row in rows:
            self._narrow(index.r_from[row], index.r_to[row], valid)
        self._stand(index, [row for row in rows if index.r_from[row] <= valid < index.r_to[row]], valid, tx)

    def _stand(self, index: Index, rows: Iterable[int], valid: Instant, tx: Instant) -> None:
        """These rows hold. A superseded event does not stand, nor does what was forgotten."""
        self.grow(len(index.v_ent))
        version_of, alive, gone, successors = self.version_of, self.alive, index.gone, index.successors
        r_ent, r_ver = index.r_ent, index.r_ver
        for row in rows:
            ent = r_ent[row]
            if ent in gone or (
                ent in successors and index.is_event[ent] and self._replaced(index, ent, valid, tx)
            ):
                continue
            version_of[ent] = ver = r_ver[row]
            alive[ver] = 1

    def _replaced(self, index: Index, ent: int, valid: Instant, tx: Instant) -> bool:
        for link in index.successors[ent]:
            for row in index.believed_link(link, tx):
                self._narrow(index.k_from[row], index.k_to[row], valid)
        return index.superseded(ent, valid, tx)

    def _narrow(self, start: Instant, stop: Instant, valid: Instant) -> None:
        """Something changes at these two instants, at one side of `valid` each or both."""
        for bound in (start, stop):
            if bound > valid:
                self.until = min(self.until, bound)
            else:
                self.since = max(self.since, bound)


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


class _Word(NamedTuple):
    """A word of the query: its greatest possible score, and its postings."""

    weight: float
    postings: list[_Posting]

    def by_all(self, alive: bytearray) -> Iterator[tuple[int, int]]:
        """The standing versions that contain it, each with how often."""
        for versions, times in self.postings:
            yield from compress(zip(versions, times, strict=True), map(alive.__getitem__, versions))

    def by_some(self, known: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Those of these versions that contain it, each with how often."""
        for versions, times in self.postings:
            end = len(versions)
            for ver in known:
                at = bisect_left(versions, ver)
                if at < end and versions[at] == ver:
                    yield ver, times[at]


def _candidates(
    terms: Iterable[Term], postings: list[list[_Posting]], standing: Standing
) -> tuple[list[_Word], list[str]]:
    """Each term of a question with what it weighs here, and the words found nowhere."""
    count, alive = len(standing.version_of), standing.alive.__getitem__
    found, unknown = [], []
    for term, its in zip(terms, postings, strict=True):
        many = sum(sum(map(alive, posting.versions)) for posting in its)
        weight = term.weight * log(1 + (count - many + 0.5) / (many + 0.5)) * (K1 + 1)
        found.append(_Word(weight, its if many else []))
        if not many and term.weight >= 1:
            unknown.append(term.word)
    return found, unknown


def _is_said(word: _Word) -> bool:
    return bool(word.postings)


def _postings(term: Term, layers: list[_WordIndex]) -> list[_Posting]:
    """Where a term of a question is: in any of its forms, and where it may be a beginning and is nowhere whole, in what begins so."""
    forms: Iterable[str] = term.forms
    if term.prefix and not any(form in layer.by for form in forms for layer in layers):
        begun = term.forms
        forms = dict.fromkeys(word for layer in layers for word in layer.by if word.startswith(begun))
    found = []
    for layer in layers:
        postings = [layer.by[form] for form in forms if form in layer.by]
        found += postings if len(postings) < 2 else [_together(postings)]
    return found


def _together(postings: list[_Posting]) -> _Posting:
    """The postings of several forms of one word: each version once, with the form it says most often."""
    most: dict[int, int] = {}
    for versions, times in postings:
        for ver, often in zip(versions, times, strict=True):
            most[ver] = max(often, most.get(ver, 0))
    order = sorted(most)
    return _Posting(array("I", order), array("I", map(most.__getitem__, order)))


def _scores(
    terms: list[_Word],
    alive: bytearray,
    slope: float,
    lengths: array[int],
    most: int,
    fits: Callable[[int], bool] | None,
) -> dict[int, float]:
    """The score of each version that stands, fits and contains one of the words: of all that may be among the `most` best.

    Common words are in nearly every version and add little: once `most` versions score more than the remaining words can add, no other version is read.
    """
    scores: dict[int, float] = {}
    left, closed = sum(word.weight for word in terms), False
    for word in terms:
        weight = word.weight
        left -= weight
        for ver, often in word.by_some(list(scores)) if closed else word.by_all(alive):
            score = weight * often / (often + K1 * (1 - B) + slope * lengths[ver])
            scores[ver] = scores.get(ver, 0.0) + score
        if not closed and left > 0:
            least = _least(scores, most, fits)
            if least > left * _SURELY:
                scores = {ver: score for ver, score in scores.items() if (score + left) * _SURELY >= least}
                closed = True
    return scores if fits is None else {ver: score for ver, score in scores.items() if fits(ver)}


def _least(scores: dict[int, float], most: int, fits: Callable[[int], bool] | None) -> float:
    """A score that `most` of those that fit reach; 0 when the best include fewer."""
    if len(scores) < most:
        return 0.0
    if fits is None:
        return nlargest(most, scores.values())[-1]
    best = nlargest(_TRIED * most, scores, key=scores.__getitem__)
    fitting = list(islice(filter(fits, best), most))
    return scores[fitting[-1]] if len(fitting) == most else 0.0


def _best(scores: dict[int, float], index: Index, most: int) -> list[tuple[int, float]]:
    """The entities of the best versions, with their scores."""
    if len(scores) > most > 0:
        least = nlargest(most, scores.values())[-1]
        scores = {ver: score for ver, score in scores.items() if score >= least}
    v_ent, names = index.v_ent, index.names
    found = [(v_ent[ver], score) for ver, score in scores.items()]
    found.sort(key=lambda match: (-match[1], names[match[0]]))
    return found[:most]


def _best_weighed(scores: dict[int, float], index: Index, most: int, weigh: Weigh) -> list[tuple[int, float]]:
    """The same with each score multiplied by the thing's weight. A weight is at most 1, so those that cannot win are not weighed."""
    v_ent, names = index.v_ent, index.names
    best: list[float] = []
    found = []
    for ver, score in sorted(scores.items(), key=lambda match: -match[1]):
        if len(best) == most and score < best[0]:
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
