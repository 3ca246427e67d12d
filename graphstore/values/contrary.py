"""Compare two plain sentences: whether they say the same, or state another value for the same subject.

Equal words and values of the two are paired. What is left over decides: exactly one pair of values that exclude each other (two numbers of one unit, two
dates, two names in one place, a yes and a no, two opposites) is a disagreement if the rest agrees. Two differences are two subjects: `port 80 in staging`,
`port 81 in production`. Words alone prove little, so the result is marked as unsure unless nothing else differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

from graphstore.values.measures import Piece, comparable, equal, pieces, root

Verdict = Literal["same", "near", "contrary"]

CLOSE_MEANING = 0.8
"""Cosine of the vectors of two sentences from which on they may differ in more words and still be about the same."""
_CLAUSES = 4  # clauses of a statement that are compared
_CACHED = 1 << 12  # statements whose clauses are cached
_PREFIX = 4  # letters: a word this long equals a longer one that begins with it (repo, repository)
_COVERED = 0.6  # the part of the shorter clause that both must have in common
_SPLIT = re.compile(r"[.!;?\n]+(?=\s|\Z)|,?\s+but\s+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _roots(text: str) -> frozenset[str]:
    return frozenset(map(root, text.split()))


_NEGATIONS = _set(
    "no not never none nobody nothing neither nor nowhere cannot without hardly dont doesnt didnt isnt arent wasnt werent wont cant couldnt shouldnt "
    "wouldnt hasnt havent hadnt mustnt neednt не нет ни никогда никто ничего без нельзя"
)
_NEGATIVE = _set(
    "disabled disable disables off inactive deactivated forbidden forbids prohibited prohibits banned disallowed rejected rejects refused refuses denied denies declined "
    "unable excluded exclude excludes unavailable impossible unsupported broken failed fails fail lacks lack missing absent optional closed closes private vacant "
    "unoccupied empty unsafe dangerous invalid false cancelled canceled lost stopped dead fell decreased dropped drops loses asynchronous manual unlocked "
    "выключен выключена выключено выключены отключен отключена отключено отключены запрещен запрещена запрещено запрещены закрыт закрыта закрыто закрыты "
    "необязателен необязательна необязательно необязательны"
)
"""Words that deny what their opposites in `_POSITIVE` say."""
_POSITIVE = _set(
    "enabled enable enables on active activated allowed allows allow permitted permits approved approves accepted accepts accept granted able included include includes "
    "available possible supported supports support works working repaired fixed has required requires mandatory compulsory obligatory open opens public occupied full "
    "safe valid true kept keep passed started running alive rose increased grew applies apply gains synchronous automatic locked yes still already "
    "включен включена включено включены разрешен разрешена разрешено разрешены открыт открыта открыто открыты обязателен обязательна обязательно обязательны"
)
_OPPOSITES = {
    word: (group, sign)
    for group, pair in enumerate(
        "before/after above,over/below,under,beneath dark/light first/last,final up,upper/down,lower minimum,min,least/maximum,max,most early,earlier/late,later "
        "new/old left/right north,northern/south,southern east,eastern/west,western hot,warm/cold,cool high,higher/low,lower more/fewer,less fast,quick/slow "
        "online/offline internal/external inside/outside increase/decrease start,starts,begins,begin/end,ends,stop,stops push/pull buy,buys/sell,sells "
        "always/rarely,seldom often,usually,frequently/rarely,seldom local/remote odd/even cheap/expensive better/worse win,won/lost,lose memory/disk "
        "ascending/descending summer/winter morning/evening male/female staging/production free/paid black/white dry/wet raw/cooked".split()
    )
    for sign, side in enumerate(pair.split("/"))
    for word in side.split(",")
}
"""Words that exclude each other, as (group, side). Unlike those of `_NEGATIVE` they say nothing without the opposite."""
_ALL = _set("all every everyone everybody anyone anybody any each whoever все любой каждый")
_LIGHT = _roots(
    "a an the this that these those it its we us our i my me you your he his him she her they their them there here of to in on at by for from with about as into onto than "
    "then so too very just also and or if be am is are was were been being do does did done doing have has had having can could will would shall should may might must "
    "need needs let lets get gets got go goes take takes took make makes made come comes keep keeps put set sets give gives run runs use uses used using hold holds "
    "happen happens occur occurs last lasts cost costs charge charges stay stays remain remains live lives lived store stored stores locate located host hosted hosts place places base "
    "based sit sits lie lies reside resides know known call called name named say says tell told want wants ask asks prefer like send sends sent allow allows serve serves "
    "amount equal equals mean means become becomes change changed limit limited per now currently today actually really usually normally generally always exactly approximately "
    "about roughly around nearly officially please remember note current total overall value number count time period default setting only own new every all each any everyone "
    "everybody anyone anybody what who which when where whose one ones way thing things exist exists available possible longer yet ever still already far back both size length "
    "rate hour hours who's version database server team repo e.g etc up out who because until till since during while "
    "это есть и в на с по за для из о не наш наша наше наши мы он она они"
)
_COPULAS = _set("is are was were be been = : это remains became becomes")
_STATES = _COPULAS | _set(
    "has have had do does did can could will would shall should may might must need needs dont doesnt didnt cannot isnt arent wasnt werent wont cant "
    "run runs use uses take takes cost costs expire expires start starts begin begins end ends last lasts keep keeps hold holds happen happens allow allows go goes live lives lives "
    "own owns lead leads manage manages support supports require requires accept accepts return returns close closes open opens work works belong belongs report reports "
    "prefer prefers like likes want wants speak speaks drink drinks eat eats store stores send sends serve serves contain contains include includes exclude excludes get gets "
    "meet meets arrive arrives leave leaves join joined make makes seat seats carry carries"
)
_UNIQUE = _roots("own lead head chair run manage maintain direct command found invent discover write author win host review teach coach captain approve")
"""Verbs that one person does at a time: another subject is another value."""
_ADDITIVE = _roots(
    "use like love know speak support visit depend read meet integrate require include contain have buy bring offer provide need want enjoy own attend accept play cover list "
    "know mention study hire call deploy add fix see watch try ask sell wrote write make eat drink"
)
"""Verbs of which a subject may have several objects, so another object is no other value."""
_DETERMINERS = _set("the our my your his her their its this наш наша")
_INDEFINITE = _set("a an one another some")
_FORMERLY = _set("formerly previously once former used раньше прежде")


class Clause(NamedTuple):
    """A clause: its pieces that carry meaning, the place of its verb among all, and what turns its meaning round."""

    content: tuple[Piece, ...]
    verb: int  # the number of the token
    verb_word: str
    after_verb: str  # the word after it
    denied: bool
    sides: dict[int, tuple[int, str]]  # the side taken in each group of opposites, with the word
    words: frozenset[str]
    text: str


class Conflict(NamedTuple):
    """Two values that exclude each other, as written."""

    sort: str
    one: str
    other: str


class Comparison(NamedTuple):
    """How two statements relate: the verdict, what both are about, their values as written, and whether nothing else differs."""

    verdict: Verdict
    about: str = ""
    values: tuple[str, str] = ("", "")
    sure: bool = False


class _Alignment(NamedTuple):
    """Two clauses with the pieces that both have, and what is left of each."""

    one: Clause
    other: Clause
    shared: tuple[tuple[Piece, Piece], ...]
    left: tuple[Piece, ...]
    right: tuple[Piece, ...]


def compare(one: str, other: str, meaning: float | None = None) -> Comparison | None:
    """Return how two statements relate, None if they say different things. `meaning`: the cosine of their vectors, if there is an embedder."""
    found = [
        compared
        for first, second in product(clauses(one), clauses(other))
        if (compared := _compared(_aligned(first, second), meaning)) is not None
    ]
    contrary = next((each for each in found if each.verdict == "contrary"), None)
    if contrary is not None:
        return contrary
    many = max(len(clauses(one)), len(clauses(other)))
    return found[0] if found and many == 1 else None


@lru_cache(_CACHED)
def clauses(statement: str) -> tuple[Clause, ...]:
    """Return the first clauses of a statement, without questions."""
    parts, start = [], 0
    for split in _SPLIT.finditer(statement):
        parts.append(statement[start : split.start()] + ("?" if "?" in split[0] else ""))
        start = split.end()
    parts.append(statement[start:])
    asserted = (part.strip() for part in parts if part.strip() and not part.endswith("?"))
    return tuple(each for part in list(asserted)[:_CLAUSES] if (each := _clause(part)).content or each.words)


def _clause(text: str) -> Clause:
    found = pieces(text)
    verb = _verb_of(found)
    at = found[verb].at if 0 <= verb < len(found) else -1
    content, sides, denied = [], dict[int, tuple[int, str]](), False
    for place, piece in enumerate(found):
        lower = piece.raw.lower().replace("'", "")
        is_qualifier = place < verb and place + 1 < verb and found[place + 1].sort == "word"
        if lower in _NEGATIONS:
            denied = not denied
        elif is_qualifier and (lower in _NEGATIVE or lower in _OPPOSITES):
            content.append(piece)
        elif lower in _NEGATIVE:
            denied = not denied
        elif lower in _OPPOSITES:
            group, sign = _OPPOSITES[lower]
            sides[group] = (sign, piece.raw)
        elif lower not in _POSITIVE and not (piece.sort == "word" and piece.key in _LIGHT):
            content.append(piece)
    words = frozenset(piece.raw.lower() for piece in found)
    verb_word = found[verb].raw.lower() if at >= 0 else ""
    after = found[verb + 1].raw.lower() if at >= 0 and verb + 1 < len(found) else ""
    return Clause(tuple(content), at, verb_word, after, denied, sides, words, text)


def _verb_of(found: Sequence[Piece]) -> int:
    """Return the place of the main verb, -1 if none is recognized."""
    for place, piece in enumerate(found):
        if place and piece.raw.lower().replace("'", "") in _STATES:
            return place
    for place, piece in enumerate(found):
        lower, last = piece.raw.lower(), found[place - 1].raw.lower()
        is_form = piece.sort == "word" and (lower.endswith("ed") or (lower.endswith("s") and not lower.endswith("ss")))
        if place and is_form and not last.endswith("s") and last not in _DETERMINERS and piece.key not in _LIGHT:
            return place
    return -1


# ---- aligning ---------------------------------------------------------------------------------


def _aligned(one: Clause, other: Clause) -> _Alignment:
    """Pair the equal pieces of two clauses, each once."""
    shared, left, right = [], [], list(other.content)
    for piece in one.content:
        match = next((each for each in right if _matches(piece, each)), None)
        if match is None:
            left.append(piece)
        else:
            right.remove(match)
            shared.append((piece, match))
    return _Alignment(one, other, tuple(shared), tuple(left), tuple(right))


def _matches(one: Piece, other: Piece) -> bool:
    if "code" in (one.sort, other.sort) or not {one.sort, other.sort} <= {"word", "name"}:
        return equal(one, other)
    if one.sort == other.sort == "name":
        return equal(one, other)
    first, second = (root(piece.raw.lower().removesuffix("'s")) for piece in (one, other))
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= _PREFIX and long.startswith(short))


def _compared(aligned: _Alignment, meaning: float | None) -> Comparison | None:
    one, other = aligned.one, aligned.other
    if (one.words & _FORMERLY) != (other.words & _FORMERLY):
        return None
    pairs, left, right = _exclusive(aligned)
    conflicts = [Conflict(first.sort, first.raw, second.raw) for first, second in pairs]
    conflicts += _opposed(one, other)
    if not conflicts:
        word = _other_word(aligned, left, right, meaning)
        if word is None:
            return _agreeing(aligned, left, right)
        conflicts, left, right = [word], (), ()
    if len(conflicts) > 1 or not _about_the_same(aligned, len(pairs), left, right, meaning):
        return None
    if pairs and not _holds_one(aligned, *pairs[0]):
        return None
    about = " ".join(first.raw for first, _ in aligned.shared)
    sure = not left and not right
    return Comparison("contrary", about, (conflicts[0].one, conflicts[0].other), sure)


_Pair = tuple[Piece, Piece]


def _exclusive(aligned: _Alignment) -> tuple[list[_Pair], tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the pairs of left values that exclude each other, and what else is left of both. A capital at the beginning may be of a name."""
    left, right = list(aligned.left), list(aligned.right)
    pairs: list[_Pair] = []
    for first in aligned.left:
        for second in right:
            if comparable(first, second) or _may_be_names(first, second):
                pairs.append((first, second))
                left.remove(first)
                right.remove(second)
                break
    return pairs, tuple(left), tuple(right)


def _may_be_names(one: Piece, other: Piece) -> bool:
    sorts = {"name" if piece.sort == "word" and piece.opens and piece.raw[:1].isupper() else piece.sort for piece in (one, other)}
    return sorts == {"name"}


def _opposed(one: Clause, other: Clause) -> Iterator[Conflict]:
    if one.denied != other.denied:
        yield Conflict("denial", one.text, other.text)
    for group, (side, word) in one.sides.items():
        if group in other.sides and other.sides[group][0] != side:
            yield Conflict("opposite", word, other.sides[group][1])
    if ("only" in one.words) != ("only" in other.words):
        limited, open = (one, other) if "only" in one.words else (other, one)
        if open.words & _ALL and not limited.words & _ALL:
            yield Conflict("quantifier", one.text, other.text)


# ---- deciding ---------------------------------------------------------------------------------


def _about_the_same(
    aligned: _Alignment, pairs: int, left: Sequence[Piece], right: Sequence[Piece], meaning: float | None
) -> bool:
    """Return True if two clauses with one difference speak of one subject: what is left besides is on one side alone, and no qualifier."""
    shared = len(aligned.shared)
    shorter = min(len(aligned.one.content), len(aligned.other.content)) - pairs
    is_near = meaning is not None and meaning >= CLOSE_MEANING
    if not shared or shared < _COVERED * shorter:
        return False
    if left and right:
        return is_near or (shared >= 3 and len(left) == len(right) == 1)
    extra, side = (left, aligned.one) if left else (right, aligned.other)
    if len(extra) > shared + 1 and not is_near:
        return False
    return is_near or not any(_narrows(piece, side, aligned) for piece in extra)


def _narrows(piece: Piece, side: Clause, aligned: _Alignment) -> bool:
    """Return True if a piece stands before a noun of the subject that both have: `return flight` is another flight."""
    if side.verb < 0 or piece.at >= side.verb or piece.sort not in ("word", "name"):
        return False
    heads = [first if side is aligned.one else second for first, second in aligned.shared]
    return any(head.at == piece.at + 1 and head.sort == "word" for head in heads)


def _holds_one(aligned: _Alignment, one: Piece, other: Piece) -> bool:
    """Return True if the subject holds one value at a time where the two differ. A value in the subject names it, and differs with it."""
    first, second = aligned.one, aligned.other
    before = (_in_subject(first, one), _in_subject(second, other))
    if one.sort in ("name", "word") or other.sort == "name":
        return _names_differ(aligned, before)
    verbs = {root(first.verb_word), root(second.verb_word)}
    if one.sort == "date":
        return not all(before) and not verbs <= _ADDITIVE
    if one.sort == "code" or _is_label(one) or _is_label(other):
        return not any(before)
    return True


def _in_subject(clause: Clause, piece: Piece) -> bool:
    return clause.verb >= 0 and piece.at < clause.verb


def _is_label(piece: Piece) -> bool:
    """Return True if a number names what is before it, as in `room 4`."""
    is_count = piece.sort == "quantity" and piece.value[0][0] == "count"
    return is_count and bool(piece.before) and root(piece.before) not in _LIGHT and piece.before not in _STATES


def _names_differ(aligned: _Alignment, before: tuple[bool, bool]) -> bool:
    one, other = aligned.one, aligned.other
    verbs = {root(one.verb_word), root(other.verb_word)}
    if all(before):
        is_role = all(each.verb_word in _COPULAS and each.after_verb in _DETERMINERS for each in (one, other))
        return is_role or verbs <= _UNIQUE
    if any(before):
        subject = one if before[0] else other
        return subject.after_verb not in _INDEFINITE
    if verbs & _ADDITIVE and not any(second.at > other.verb for _, second in aligned.shared):
        return False
    return not (one.after_verb in _INDEFINITE and other.after_verb in _INDEFINITE)


def _other_word(
    aligned: _Alignment, left: Sequence[Piece], right: Sequence[Piece], meaning: float | None
) -> Conflict | None:
    """Return the two plain words in which clauses that are else alike differ, after the verb and at the same place."""
    if len(left) != 1 or len(right) != 1 or {left[0].sort, right[0].sort} != {"word"}:
        return None
    one, other = left[0], right[0]
    before = (_in_subject(aligned.one, one), _in_subject(aligned.other, other))
    is_same_place = one.before == other.before
    needed = 2 if meaning is not None and meaning >= CLOSE_MEANING else 3
    verbs = {root(clause.verb_word) for clause in (aligned.one, aligned.other)}
    if any(before) or not is_same_place or len(aligned.shared) < needed or verbs <= _ADDITIVE:
        return None
    return Conflict("word", one.raw, other.raw)


def _agreeing(aligned: _Alignment, left: Sequence[Piece], right: Sequence[Piece]) -> Comparison | None:
    """Return that two clauses without a difference say the same, or nearly; None if too much is left over."""
    if not aligned.shared or not _keeps_order(aligned):
        return None
    rest = (*left, *right)
    about = " ".join(first.raw for first, _ in aligned.shared)
    if not rest:
        return Comparison("same", about, sure=True)
    if len(rest) == 1 and rest[0].sort == "word" and len(aligned.shared) >= 3:
        return Comparison("near", about)
    return None


def _keeps_order(aligned: _Alignment) -> bool:
    """Return True if names that both clauses have come in one order, or only turned round by `is` or `by`."""
    places = [second.at for first, second in aligned.shared if first.sort == "name" or second.sort == "name"]
    if places == sorted(places):
        return True
    one, other = aligned.one, aligned.other
    return {one.verb_word, other.verb_word} <= _COPULAS or ("by" in one.words) != ("by" in other.words)


def best(statement: str, others: Iterable[str]) -> Iterator[tuple[int, Comparison]]:
    """Yield the number of each statement that relates to this one, and how."""
    for number, other in enumerate(others):
        found = compare(statement, other)
        if found is not None:
            yield number, found
