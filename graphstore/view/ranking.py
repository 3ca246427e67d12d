"""Score answers: weighted shares of the best by words, by meaning and by links, and gains from neighbouring turns, speakers and dates.

The constants were chosen on one half of the questions of `benchmarks/retrieval` and are reported on the other half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import NamedTuple

from graphstore.search.search import Matches
from graphstore.values.keys import slot_name
from graphstore.values.text import text_of_body
from graphstore.values.worded_times import spans_in
from graphstore.values.words import ParsedQuestion, fold, is_name
from graphstore.view.sight import Sight

MEANING, LINKS = 0.3, 0.35
"""The weights of the best by meaning and by links, relative to the best by words, which has 1."""
BESIDE = (0.8, 0.4)
"""The weight of a word in the next turn, and in the turn after that, relative to a word in the turn itself."""
SPEAKER, DATED = 0.15, 0.25
"""The gain if a question names the speaker of a thing, or its time."""
NAMED = (4.0, 3.0, 2.0)
"""The gains if a question names a thing: by its full id or key, by their beginning, by a part inside them."""
POOL = 100
"""The smallest number of text matches that are scored."""
LENDERS = 40
"""The number of best matches that lend to the turns around them."""
_KEPT_AGAIN = frozenset({"message_batch", "segment", "summary"})
TURNS = frozenset(
    {"message", "turn", "utterance", "dialog", "dialogue", "chat", "text", "audio", "image", "system"}
)
"""Kinds and types of contributions to a conversation, in lower case."""
_SPEAKERS = frozenset({"speaker", "sender", "sender_name", "thread"})
_SPOKEN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)?: ")  # such as `Ana: …`
_ONCE = 0.5  # share of a word's weight if it occurs once in a text of average length
_MOST_NAMES = 16  # names of a question that are searched for
_LEAST = 4  # characters of a name that is searched for inside others


class Worth(NamedTuple):
    """Stores what was found besides the rankings: the gains of things, and for things without matching words the source of their gain."""

    gains: dict[int, float]
    beside: dict[int, int]


def says_again(sight: Sight, ent: int) -> bool:
    """Return True if a thing repeats others: a message batch, a segment of a session, or a summary with sources. These are recalled only if their kind is named."""
    index, kind = sight.index, sight.index.kind[ent]
    if kind not in _KEPT_AGAIN or index.is_event[ent]:
        return False
    if kind == "summary":
        return any(index.l_kind[link] == "derived_from" for link in index.out.get(ent, ()))
    if kind == "segment":
        source = sight.body_of(index.rows_of[ent][-1]).get("content", {}).get("source")
        return isinstance(source, dict) and "segment" in source
    return True


def shares(scores: Mapping[int, float]) -> dict[int, float]:
    """Return each score as a share of the best. Scores of 0 or less are left out."""
    best = max(scores.values(), default=0.0)
    return {thing: score / best for thing, score in scores.items() if score > 0}


def woven(rankings: Iterable[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Return the sum of each thing's shares, weighted by the rankings."""
    found: dict[int, float] = {}
    for worth, each in rankings:
        for thing, share in each.items():
            found[thing] = found.get(thing, 0.0) + worth * share
    return found


def worth(sight: Sight, found: Matches, fits: Callable[[int], bool]) -> Worth:
    """Return what things gain besides the rankings. `fits`: True for things that may be found at all."""
    gains: dict[int, float] = {}
    beside: dict[int, int] = {}
    matched = dict(found.matches)
    names = _add_speakers(sight, found, gains) if SPEAKER and matched else frozenset()
    if matched and BESIDE:
        _add_beside(sight, found, fits, names, gains, beside)
    _add_dates(sight, found.question, [*matched, *beside], gains)
    for ent, gain in _named(sight, found).items():
        if fits(ent):
            gains[ent] = gains.get(ent, 0.0) + gain
            beside.setdefault(ent, ent)
    return Worth(gains, beside)


def _add_beside(
    sight: Sight,
    found: Matches,
    fits: Callable[[int], bool],
    names: frozenset[int],
    gains: dict[int, float],
    beside: dict[int, int],
) -> None:
    """Add gains from neighbouring turns: each word of the question that a turn lacks counts once, from the nearest turn that has it.
    `names`: terms for speakers, which do not count.
    """
    matched, best = dict(found.matches), found.matches[0][1] or 1.0
    conversation = _Conversation(sight)
    lent: dict[int, dict[int, float]] = {}
    nearest: dict[int, int] = {}
    for ent in [ent for ent, _ in found.matches[:LENDERS] if conversation.thread(ent) is not None]:
        said = [term for term in found.terms_said_by(ent) if term not in names]
        for other, distance in conversation.beside(ent):
            its, share = lent.setdefault(other, {}), BESIDE[distance - 1]
            for term in said:
                its[term] = max(share, its.get(term, 0.0))
            nearest.setdefault(other, ent)
    for ent, terms in lent.items():
        own = found.terms_said_by(ent)
        gain = sum(found.weights[term] * share for term, share in terms.items() if term not in own)
        if gain and fits(ent):
            gains[ent] = gains.get(ent, 0.0) + gain * _ONCE / best
            if ent not in matched:
                beside[ent] = nearest[ent]


def _add_dates(sight: Sight, question: ParsedQuestion, ents: Sequence[int], gains: dict[int, float]) -> None:
    spans = spans_in(question.text, sight.valid)
    if spans:
        for ent in ents:
            since = sight.since(sight.find(ent))
            if any(start <= since < stop for start, stop in spans):
                gains[ent] = gains.get(ent, 0.0) + DATED


def _add_speakers(sight: Sight, found: Matches, gains: dict[int, float]) -> frozenset[int]:
    """Return the terms that name speakers. If a question names a speaker, messages by that speaker gain. Messages that only contain the name lose what they got for it."""
    names = {
        ent: frozenset(fold(f"{body.get('sender') or ''} {body.get('sender_name') or ''}").split())
        for ent, _ in found.matches
        if sight.is_event(ent) and (body := sight.body_of(sight.find(ent), holding=b'"sender'))
    }
    speakers = frozenset[str]().union(*names.values())
    asked = {
        at: name for at, term in enumerate(found.question.terms) if (name := fold(term.word)) in speakers
    }
    best = found.matches[0][1] or 1.0
    for ent, its in names.items() if asked else ():
        gain = SPEAKER if not its.isdisjoint(asked.values()) else 0.0
        gain -= sum(found.weights[term] for term in found.terms_said_by(ent) if term in asked) * _ONCE / best
        gains[ent] = gains.get(ent, 0.0) + gain
    return frozenset(asked)


def _named(sight: Sight, found: Matches) -> dict[int, float]:
    """Return the things whose id or key a question names in full. If no text contains the name, match the beginning of ids and keys, else the inside."""
    asked = found.question.text.strip()
    gains: dict[int, float] = {}
    stands = partial(_stands, sight)
    for name in islice(dict.fromkeys((asked, *found.question.names)), _MOST_NAMES):
        if not name or " " in name:
            continue
        ents, level = list(filter(stands, _whole(sight, name))), 0
        if not ents and is_name(name) and len(name) >= _LEAST and not _is_said(found, name):
            ents, level = _partly(sight, name.lower(), stands)
        gains.update(dict.fromkeys(ents, NAMED[level]))
    return gains


def _is_said(found: Matches, name: str) -> bool:
    at = next((at for at, term in enumerate(found.question.terms) if term.word == name), -1)
    return any(at in found.terms_said_by(ent) for ent, _ in found.matches)


def _whole(sight: Sight, name: str) -> list[int]:
    ent = sight.index.ids.get(name, -1)
    found = [ent] if ent >= 0 and sight.index.born[ent] <= sight.tx else []
    key = slot_name(name) if any(map(str.isalnum, name)) else ""
    keyed = sight.core.naming.keyed(key) if key else []
    return found + [each for each in keyed if sight.index.key[each] == key]


def _partly(sight: Sight, name: str, stands: Callable[[int], bool]) -> tuple[list[int], int]:
    rows = sight.names()
    inside = [row for row in rows if name in row.id.lower()]
    inside += [row for row in rows if row.key is not None and name in row.key]
    inside = [row for row in inside if stands(row.number)]
    begun = [
        row.number for row in inside if row.id.lower().startswith(name) or (row.key or "").startswith(name)
    ]
    return (begun, 1) if begun else ([row.number for row in inside], 2)


def _stands(sight: Sight, ent: int) -> bool:
    return sight.find(ent) >= 0 and sight.stands(ent)


class _Conversation:
    """Finds the turns before and after a turn: in its thread by when they happened, elsewhere by when they were recorded."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self.thread = cache(self._thread)

    def beside(self, ent: int) -> Iterator[tuple[int, int]]:
        """Yield the turns before and after a turn, each with its distance."""
        sight, most = self._sight, len(BESIDE)
        near = sight.around(sight.find(ent), most) if sight.is_event(ent) else []
        if ent in near:
            at = near.index(ent)
            yield from ((other, abs(at - place)) for place, other in enumerate(near) if other != ent)
            return
        for step in (-1, 1):
            for distance in range(1, most + 1):
                other = sight.recorded_beside(ent, step * distance)
                if other < 0 or not self._alike(ent, other):
                    break
                yield other, distance

    def _alike(self, ent: int, other: int) -> bool:
        index = self._sight.index
        return (
            index.kind[ent] == index.kind[other]
            and index.scope[ent] == index.scope[other]
            and _stands(self._sight, other)
            and self.thread(ent) == self.thread(other) is not None
        )

    def _thread(self, ent: int) -> str | None:
        """Return the thread of a turn, empty if it names none; None for a thing that is not a turn."""
        sight = self._sight
        row = sight.find(ent)
        body = sight.body_of(row) if row >= 0 else {}
        event = sight.is_event(ent)
        said = body if event else body.get("content", {})
        text = body.get("description") if event else text_of_body(body)
        is_one = (
            sight.kind(ent).lower() in TURNS
            or not _SPEAKERS.isdisjoint(said)
            or (text is not None and _SPOKEN.match(text) is not None)
        )
        return str(said.get("thread", "")) if is_one else None
