"""Compare two plain sentences: whether they say the same, or state another value for the same subject.

Equal words and values of the two are paired. What is left over decides: exactly one pair of values that exclude each other (two numbers of one unit, two
dates, two names in one place, a yes and a no, two opposites) is a disagreement if the rest agrees. Two differences are two subjects: `port 80 in staging`,
`port 81 in production`. Words alone prove little, so the result is marked as unsure unless nothing else differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
from typing import Literal, NamedTuple

from graphstore.values import sameness
from graphstore.values.measures import Piece, comparable, equal, pieces, root

Verdict = Literal["same", "near", "contrary"]

CLOSE_MEANING = 0.75
"""Cosine of the vectors of two sentences from which on they may differ in more words and still be about the same."""
_CLAUSES = 4  # clauses of a statement that are compared
_READ, _LONGEST = 2_000, 400  # characters of a statement and of a clause that are read
_PHRASE = 2  # words of a value
_PREFIX = 4  # letters: a word this long equals a longer one that begins with it (repo, repository)
_OTHERWISE = 3  # words in which two clauses about the same may differ besides, on both sides together
_MEASURED = frozenset({"quantity", "date", "clock", "period"})
_REPLACING = frozenset({"instead", "rather", "place", "replaced", "from"})
_REPLACED = re.compile(
    r"\b(?:instead of|rather than|in place of|replaced|(?:switched|moved|migrated|changed) (?:away )?from) (?:the |an? )?([\w-]+)"
)
_SPLIT = re.compile(r"[.!;?\n]+(?=\s|\Z)|,?\s+but\s+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _roots(text: str) -> frozenset[str]:
    return frozenset(map(root, text.split()))


_NEGATIONS = sameness.NEGATIONS - {"false", "null"} | _set("non hardly neither nobody none without нельзя")
_NEGATIVE = _set(
    "opposes opposed oppose against disabled disable disables shut voluntary manually off inactive deactivated forbidden forbids prohibited prohibits banned disallowed rejected rejects refused refuses denied denies declined "
    "unable excluded exclude excludes unavailable impossible unsupported broken failed fails fail lacks lack missing absent optional closed closes private vacant "
    "unoccupied empty unsafe dangerous invalid false cancelled canceled lost stopped dead drop dropped asynchronous manual unlocked "
    "выключен выключена выключено выключены отключен отключена отключено отключены запрещен запрещена запрещено запрещены закрыт закрыта закрыто закрыты "
    "необязателен необязательна необязательно необязательны"
)
"""Words that deny what their opposites in `_POSITIVE` say."""
_POSITIVE = _set(
    "enabled enable enables on active activated allowed allows allow permitted permits approved approves accepted accepts accept granted able included include includes "
    "available possible supported supports support works working repaired fixed has required requires mandatory compulsory obligatory automatically agreed agrees open opens public occupied full "
    "safe valid true kept keep passed started running alive applies apply pass passes synchronous automatic locked yes still already "
    "включен включена включено включены разрешен разрешена разрешено разрешены открыт открыта открыто открыты обязателен обязательна обязательно обязательны"
)
_Sides = dict[str, set[tuple[int, int]]]
_NOWHERE: frozenset[tuple[int, int]] = frozenset()


def _sides(text: str) -> _Sides:
    """Return the places (group, side) of each word of groups `word,as much/other`. A word may be in several groups."""
    places: _Sides = {}
    for group, sides in enumerate(text.split()):
        for side, words in enumerate(sides.split("/")):
            for word in words.split(","):
                places.setdefault(word, set()).add((group, side))
    return places


_OPPOSITES = _sides(
    "before/after above,over/below,under,beneath dark/light,bright first/last,final up,upper/down,lower minimum,min,least/maximum,max,most early,earlier/late,later "
    "new/old left/right hot,warm/cold,cool high,higher/low,lower more/fewer,less fast,faster,quick,quickly/slow,slower,slowly "
    "online/offline internal/external inside,indoors/outside,outdoors increase,increases,increased,increasing,rise,rises,rose,risen,rising,gains,grew,grow,grows,growing,grown/"
    "decrease,decreases,decreased,decreasing,fall,falls,fell,fallen,falling,shrink,shrinks,shrank,shrinking start,starts,begins,begin/end,ends,stop,stops push/pull "
    "buy,buys,bought/sell,sells,sold always/rarely,seldom often,usually,frequently/rarely,seldom local,locally/remote,remotely odd/even cheap,cheaper/expensive,dearer "
    "better,best/worse,worst win,wins,won/lose,loses,lost memory/disk ascending/descending male/female free/paid black/white dry/wet raw/cooked public/private "
    "hire,hires,hired/fire,fires,fired,dismissed,laid good,well/bad,badly deep,deeper/shallow,shallower wide,wider,broad/narrow,narrower tall,taller/short,shorter "
    "long,longer/short,shorter older,elder,oldest/younger,youngest,newer young/old thick,thicker/thin,thinner heavy,heavier/light,lighter big,bigger,large,larger/small,smaller,tiny "
    "hard,harder/soft,softer hard,difficult,harder/easy,easier simple,simpler/complex,complicated strong,stronger/weak,weaker rich,richer/poor,poorer loud,noisy/quiet,silent "
    "clean/dirty full,full-time/part,part-time inward,inwards/outward,outwards home/away parallel,concurrently/sequential,sequentially,serially written/oral,verbal "
    "success/failure give,gives,gave/receive,receives,received lend,lends,lent/borrow,borrows,borrowed import,imports,imported/export,exports,exported "
    "add,adds,added/remove,removes,removed create,creates,created/delete,deletes,deleted profit,profitable/loss,unprofitable permanent,permanently/temporary,temporarily "
    "single/double sweet/sour smooth/rough sharp/blunt tight/loose fresh/stale,frozen,canned busy/idle shared/separate,dedicated centralized,central/decentralized,distributed "
    "mutable/immutable static/dynamic horizontal,horizontally/vertical,vertically clockwise/counterclockwise,anticlockwise forward,forwards/backward,backwards "
    "encrypted/plaintext,plain same/different,another together/separately,apart near/far upstairs/downstairs front/back,rear strict/lenient formal/informal,casual "
    "happy,satisfied,pleased/unhappy,dissatisfied,sad healthy,fit/sick,ill,injured asleep/awake guilty/innocent ahead/behind winner/loser renew,renewed,renews/terminate,terminated,terminates "
    "keep,keeps/discard,discards,delete,deletes,throw,throws join,joins,joined/leave,leaves,left,quit,quits"
)
"""Words that exclude each other, as (group, side). Unlike those of `_NEGATIVE` they say nothing without the opposite."""
_KINDS = _sides(
    "red/green/blue/yellow/orange/purple,violet/pink/brown/grey,gray/black/white/beige "
    "wood,wooden/oak/pine/birch/bamboo/steel/iron/copper/brass/bronze/aluminium,aluminum/plastic/glass/concrete/brick/stone/marble/leather/cotton/wool/silk/linen/polyester/nylon"
    "/paper/cardboard/ceramic/rubber/gold/silver "
    "diesel/petrol,gasoline/electric,electricity/hybrid/hydrogen/gas/oil/coal/solar/nuclear "
    "car/bus/train,rail/plane,air/tram/bike,bicycle/ferry,boat,ship,sea/taxi/metro,subway/truck,road/motorcycle/foot married/single/divorced/widowed/engaged "
    "vegetarian/vegan/omnivore spring/summer/autumn/winter morning/afternoon/evening/night north,northern/south,southern/east,eastern/west,western small/medium/large "
    "round/square/oval/rectangular/triangular email,mail/post/phone/fax/sms/courier/chat cash/card/cheque/transfer breakfast/lunch/dinner coffee/tea/wine/beer/water/juice/milk "
    "beef/pork/chicken/lamb/fish/tofu butter/margarine buyer,customer,client,purchaser/seller,supplier,vendor tenant,renter/landlord,owner employer/employee "
    "kitchen/bathroom/bedroom/basement,cellar/attic/garage/garden/hall first/second/third/fourth/fifth/sixth/seventh/eighth/ninth/tenth "
    "linux/windows/macos,mac/android/ios json/xml/yaml/csv/pdf/html/markdown/toml/parquet/protobuf python/java/rust/ruby/javascript/typescript/php/kotlin/golang "
    "postgres,postgresql/mysql/sqlite/mongodb/redis/oracle aws/azure/gcp english/german/french/spanish/italian/russian/chinese/japanese/dutch/polish/portuguese "
    "window/aisle tabs/spaces staging/production/development sunny/rainy/cloudy/foggy/snowy beginner/intermediate/advanced draft/published/archived "
    "teacher/doctor/nurse/lawyer/dentist/plumber/carpenter/pilot/chef/accountant/engineer/student/retired daily/weekly "
    "mother/father/sister/brother/aunt/uncle/daughter/son solid/liquid/gaseous integer/string/boolean/float/uuid"
)
"""Words for values of one kind, of which a thing has one at a time."""
_UNPAIRED = _set(
    "before after above over below under beneath first last final up upper down lower minimum min least maximum max most more fewer less high low higher lower start starts "
    "begin begins end ends stop stops always often usually frequently early late old new"
)
_ALL = _set("all every everyone everybody anyone anybody any each whoever все любой каждый")
_LIGHT = _roots(
    "a an the this that these those it its we us our i my me you your he his him she her they their them there here of to in on at by for from with about as into onto than "
    "then so too very just also and or if be am is are was were been being do does did done doing have has had having can could will would shall should may might must "
    "need needs let lets get gets got go goes take takes took make makes made come comes keep keeps put set sets give gives run runs use uses used using hold holds "
    "happen happens occur occurs last lasts cost costs charge charges stay stays remain remains live lives lived store stored stores locate located host hosted hosts place places base "
    "based sit sits lie lies reside resides know known call called name named say says tell told want wants ask asks prefer like send sends sent allow allows serve serves "
    "amount equal equals mean means become becomes change changed limit limited per now currently today actually really usually normally generally always exactly approximately "
    "about roughly around nearly officially please remember note current total overall value number count time period default setting only own every all each any everyone "
    "everybody anyone anybody what who which when where whose one ones way thing things exist exists available possible longer yet ever still already far back both size length "
    "rate hour hours version switched turned whole entire complete e.g etc up out either instead within who because until till since during while "
    "это есть и в на с по за для из о не наш наша наше наши мы он она они"
)
_COPULAS = _set("is are was were be been = : это remains became becomes")
_COPULA_ROOTS = frozenset(map(root, _COPULAS))
_HAVING = _COPULA_ROOTS | _roots("has have had")
_STATES = _COPULAS | _set(
    "has have had do does did can could will would shall should may might must need needs dont doesnt didnt cannot isnt arent wasnt werent wont cant "
    "run runs use uses take takes cost costs expire expires start starts begin begins end ends last lasts keep keeps hold holds happen happens allow allows go goes live lives lives "
    "own owns lead leads manage manages support supports require requires accept accepts return returns close closes open opens work works belong belongs report reports "
    "prefer prefers like likes want wants speak speaks drink drinks eat eats store stores send sends serve serves contain contains include includes exclude excludes get gets "
    "charge charges pay pays ship ships offer offers cover covers run ran go went come comes meet meets arrive arrives leave leaves join joined make makes seat seats carry carries"
)
_ORDERS = _set("use keep store send put write run make set take call start")
"""Verbs with which an instruction begins."""
_UNIQUE = _roots(
    "own lead head chair run manage maintain direct command found invent discover write author win host review teach coach captain approve pay"
)
"""Verbs that one person does at a time: another subject is another value."""
_ADDITIVE = _roots(
    "has had use like love know speak support visit depend read meet integrate require include contain have buy bring offer provide need want enjoy own attend accept play cover list "
    "know mention study hire call deploy add fix see watch try ask sell wrote write make eat drink"
)
"""Verbs of which a subject may have several objects, so another object is no other value."""
_CHOOSING = _roots("return prefer choose pick select default emit weigh wear equal favour favor elect drive")
"""Verbs of which a subject has one object at a time."""
_ATTRIBUTES = _roots(
    "default favourite favorite preferred main primary name title topic subject theme colour color language format type kind status state reason cause source address owner "
    "author material method brand model make capital password goal purpose role job profession hobby instrument nickname codename birthplace nationality currency unit "
    "priority category deadline venue location destination winner leader head strategy approach policy protocol shape order"
)
"""Words for what a thing has one of."""
_DIMENSIONS = _set("high tall long wide deep thick broad old away far heavy")
_MUTUAL = _roots("meet marry equal match touch border join like know love see talk play work share differ")
"""Verbs that say of one thing what they say of the other."""
_DETERMINERS = _set("the our my your his her their its this наш наша")
_INDEFINITE = _set("a an one another some")
_ADMITTING = _set("open available closed")
"""What may be so on several days."""
_DENYING = _set("un in im ir dis non")
_MAYBE = _set("might maybe perhaps planned plan plans propose proposed")
_OURS, _THEIRS = _set("our ours we us my mine i"), _set("their theirs they your yours you his her hers")
_PREPOSITIONS = _set("in on at to from by as of into onto per next near")
_BESIDE = _set("near next to on")
"""Prepositions that several things may follow."""
_THRESHOLDS = _set("above over below under from than")
_PRONOUNS = _set("we i you they")
_FORMERLY = _set("formerly previously once former used раньше прежде")


class Clause(NamedTuple):
    """A clause: its pieces that carry meaning, the place of its verb among all, and what turns its meaning round."""

    content: tuple[Piece, ...]
    verb: int  # the number of the token
    verb_word: str
    after_verb: str  # the word after it
    denied: bool
    than: int  # the number of the token `than`, after which the thing stands that is compared with; -1 without it
    is_record: bool  # it says without a subject what was done: `fixed bug 5`
    words: frozenset[str]
    replaced: frozenset[str]  # what it says is so no more: `uses oil instead of butter`
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
    return compare_clauses(clauses(one), clauses(other), meaning)


def compare_clauses(
    one: Sequence[Clause], other: Sequence[Clause], meaning: float | None = None
) -> Comparison | None:
    """Return how two statements relate by their clauses, as `compare` does. One clause of several may contradict; to say the same, each has to have one."""
    found = [
        compared
        for first, second in product(one, other)
        if (compared := _compared(_aligned(first, second), meaning)) is not None
    ]
    contrary = next((each for each in found if each.verdict == "contrary"), None)
    if contrary is not None:
        return contrary
    return found[0] if found and max(len(one), len(other)) == 1 else None


def without_measures(statement: str) -> str:
    """Return the words by which to search for statements about the same: without numbers and dates, which others need not have."""
    kept = [
        piece.raw for clause in clauses(statement) for piece in clause.content if piece.sort not in _MEASURED
    ]
    return " ".join(kept) or statement


def clauses(statement: str) -> tuple[Clause, ...]:
    """Return the first clauses of a statement, without questions."""
    statement, parts, start = statement[:_READ], [], 0
    for split in _SPLIT.finditer(statement):
        parts.append(statement[start : split.start()] + ("?" if "?" in split[0] else ""))
        start = split.end()
    parts.append(statement[start:])
    asserted = (
        part.strip() for part in parts if part.strip() and not part.endswith("?") and len(part) <= _LONGEST
    )
    return tuple(each for part in list(asserted)[:_CLAUSES] if (each := _clause(part)).content or each.words)


def _clause(text: str) -> Clause:
    found = _with_first_name(pieces(text))
    verb = _verb_of(found)
    at = found[verb].at if 0 <= verb < len(found) else -1
    content, denied = [], False
    for place, piece in enumerate(found):
        lower = piece.raw.lower().replace("'", "")
        is_qualifier = place < verb and (place + 1 < verb or found[place - 1].raw.lower() in _DETERMINERS)
        if piece.sort != "word" or (piece.key not in _LIGHT and lower in _OPPOSITES):
            content.append(piece)
        elif lower in _NEGATIONS or (lower in _NEGATIVE and not is_qualifier):
            denied = not denied
        elif (lower not in _POSITIVE or is_qualifier) and piece.key not in _LIGHT and lower not in (":", "="):
            content.append(piece)
    words = frozenset(piece.raw.lower() for piece in found)
    verb_word = found[verb].raw.lower() if at >= 0 else ""
    after = found[verb + 1].raw.lower() if at >= 0 and verb + 1 < len(found) else ""
    is_record = bool(found) and found[0].sort == "word" and _is_past(found[0]) and at != found[0].at + 1
    than = next((piece.at for piece in found if piece.raw.lower() == "than"), -1)
    replaced = frozenset(_REPLACED.findall(text.lower()) if words & _REPLACING else ())
    return Clause(tuple(content), at, verb_word, after, denied, than, is_record, words, replaced, text)


def _with_first_name(found: Sequence[Piece]) -> Sequence[Piece]:
    """Return pieces with a capitalized first word as part of the name after it: `Ada Byron founded it`."""
    if (
        len(found) < 2
        or found[1].sort != "name"
        or found[0].sort != "word"
        or found[0].key in _LIGHT | _DETERMINERS
    ):
        return found
    first, name = found[0], found[1]
    is_name = (
        first.raw[:1].isupper()
        and len(name.raw.split()) == name.at - first.at
        and not first.raw.endswith("'s")
    )
    if not is_name:
        return found
    key = f"{first.raw.lower()} {name.key}"
    whole = name._replace(
        key=key, value=(("name", key),), raw=f"{first.raw} {name.raw}", before="", opens=True
    )
    return [whole, *found[2:]]


def _is_past(piece: Piece) -> bool:
    lower = piece.raw.lower()
    return lower.endswith("ed") and piece.key != lower


def _verb_of(found: Sequence[Piece]) -> int:
    """Return the place of the main verb, -1 if none is recognized."""
    for place, piece in enumerate(found):
        lower, last = piece.raw.lower().replace("'", ""), found[place - 1].raw.lower()
        if (
            place
            and piece.sort == "word"
            and lower in _STATES
            and (last not in _DETERMINERS or lower in _COPULAS)
        ):
            return place
    if found and found[0].raw.lower() in _ORDERS:
        return 0
    for place, piece in enumerate(found):
        lower, last = piece.raw.lower(), found[place - 1].raw.lower()
        if place and last in _PRONOUNS:
            return place
        is_form = piece.sort == "word" and (
            lower.endswith("ed") or (lower.endswith("s") and not lower.endswith("ss"))
        )
        if (
            place
            and is_form
            and not last.endswith("s")
            and last not in _DETERMINERS
            and (piece.key not in _LIGHT or piece.key in _ADDITIVE)
        ):
            return place
    for place, piece in enumerate(found):
        if (
            place
            and piece.sort == "word"
            and piece.key in _ADDITIVE | _UNIQUE
            and found[place - 1].raw.lower() not in _DETERMINERS
        ):
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
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    return (len(short) >= _PREFIX and long.startswith(short)) or any(
        _places(sides, one) & _places(sides, other) for sides in (_OPPOSITES, _KINDS)
    )


def _compared(aligned: _Alignment, meaning: float | None) -> Comparison | None:
    one, other = aligned.one, aligned.other
    if not aligned.shared and root(one.verb_word) != root(other.verb_word):
        return None
    if any((one.words & words) != (other.words & words) for words in (_FORMERLY, _MAYBE)):
        return None
    if (
        one.is_record
        or other.is_record
        or (one.words & _OURS and other.words & _THEIRS)
        or (one.words & _THEIRS and other.words & _OURS)
    ):
        return _agreeing(aligned, aligned.left, aligned.right)
    pairs, left, right = _exclusive(aligned)
    left, right = (
        _without_classifiers(rest, [pair[n] for pair in pairs]) for n, rest in enumerate((left, right))
    )
    conflicts = [
        Conflict("opposite" if _are_opposite(first, second) else first.sort, first.raw, second.raw)
        for first, second in pairs
    ]
    conflicts += _opposed(one, other)
    if _is_swapped(aligned):  # better than, worse than: the same the other way round
        conflicts = [each for each in conflicts if each.sort != "opposite"] or [
            Conflict("order", one.text, other.text)
        ] * (not conflicts)
    lengths = one.words & _DIMENSIONS, other.words & _DIMENSIONS
    if all(lengths) and not lengths[0] & lengths[1]:
        return None  # 2 metres high, 40 metres long
    if not conflicts:
        word = _other_words(aligned, left, right, meaning)
        if word is None:
            return _agreeing(aligned, left, right)
        conflicts, left, right = [word], (), ()
    if len(conflicts) > 1 or not _about_the_same(aligned, conflicts[0], left, right, meaning):
        return None
    if (
        pairs
        and conflicts[0].sort != "order"
        and (not _holds_one(aligned, *pairs[0]) or _count_others(*pairs[0], left, right))
    ):
        return None
    about = " ".join(first.raw for first, _ in aligned.shared)
    sure = not left and not right
    return Comparison("contrary", about, (conflicts[0].one, conflicts[0].other), sure)


_Pair = tuple[Piece, Piece]


def _without_classifiers(rest: Iterable[Piece], values: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return what is left without the words beside a value that only say what it is: `the Postgres database`, `IP 10.0.4.1`."""
    return tuple(
        piece
        for piece in rest
        if not any(
            (piece.at == value.at + 1 and value.sort in ("code", "name"))
            or (piece.at == value.at - 1 and value.sort == "code")
            for value in values
        )
    )


def _exclusive(aligned: _Alignment) -> tuple[list[_Pair], tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the pairs of left values that exclude each other, and what else is left of both. A capital at the beginning may be of a name."""
    left, right = list(aligned.left), list(aligned.right)
    pairs: list[_Pair] = []
    for excludes in (_are_opposite, _are_values, _are_of_one_kind, _are_names, _may_be_names):
        for first in tuple(left):
            second = next((each for each in right if excludes(first, each)), None)
            if second is not None:
                pairs.append((first, second))
                left.remove(first)
                right.remove(second)
    return pairs, tuple(filter(_counts, left)), tuple(filter(_counts, right))


def _counts(piece: Piece) -> bool:
    """Return True if a piece that only one clause has may narrow its subject: not `before`, `over`, `most` without their opposite."""
    return piece.raw.lower() not in _UNPAIRED


def _places(sides: _Sides, piece: Piece) -> Set[tuple[int, int]]:
    lower = piece.raw.lower()
    return sides.get(lower) or sides.get(lower.removesuffix("s")) or _NOWHERE


def _apart(sides: _Sides, one: Piece, other: Piece) -> bool:
    """Return True if two words are on different sides of one group."""
    first, second = _places(sides, one), _places(sides, other)
    return any(group == there and side != apart for group, side in first for there, apart in second)


def _are_of_two_kinds(one: Piece, other: Piece) -> bool:
    first, second = ({group for group, _ in _places(_KINDS, piece)} for piece in (one, other))
    return bool(first and second) and not first & second


def _are_of_one_kind(one: Piece, other: Piece) -> bool:
    return one.sort == other.sort == "word" and _apart(_KINDS, one, other)


def _are_opposite(one: Piece, other: Piece) -> bool:
    if one.sort == other.sort == "word" and _denies(one.raw.lower(), other.raw.lower()):
        return True
    return one.sort == other.sort == "word" and _apart(_OPPOSITES, one, other)


def _denies(one: str, other: str) -> bool:
    """Return True if one word is the other with a prefix that denies it: unpaid, paid."""
    short, long = sorted((one, other), key=len)
    return long.endswith(short) and long.removesuffix(short) in _DENYING


def _are_values(one: Piece, other: Piece) -> bool:
    return one.sort == other.sort and comparable(one, other)


def _are_names(one: Piece, other: Piece) -> bool:
    return comparable(one, other) and _place(one) == _place(other)


def _count_others(one: Piece, other: Piece, left: Sequence[Piece], right: Sequence[Piece]) -> bool:
    """Return True if two numbers count different things: `3 docks`, `2 forklifts`; or one counts and the other measures: `two doses`, `4 degrees`."""
    counted = [
        "count" in dict(number.value) and any(piece.at in (number.at - 1, number.at + 1) for piece in rest)
        for number, rest in ((one, left), (other, right))
    ]
    are_counts = all("count" in dict(number.value) for number in (one, other))
    return all(counted) if are_counts else any(counted)


def _may_be_names(one: Piece, other: Piece) -> bool:
    sorts = {
        "name" if piece.sort == "word" and piece.opens and piece.raw[:1].isupper() else piece.sort
        for piece in (one, other)
    }
    return sorts == {"name"}


def _opposed(one: Clause, other: Clause) -> Iterator[Conflict]:
    if one.denied != other.denied:
        yield Conflict("denial", one.text, other.text)
    if any(
        clause.replaced & (opposite.words - opposite.replaced) and not opposite.replaced & clause.words
        for clause, opposite in ((one, other), (other, one))
    ):
        yield Conflict("replaced", one.text, other.text)
    if ("only" in one.words) != ("only" in other.words):
        limited, open = (one, other) if "only" in one.words else (other, one)
        if open.words & _ALL and not limited.words & _ALL:
            yield Conflict("quantifier", one.text, other.text)


def _is_swapped(aligned: _Alignment) -> bool:
    """Return True if two clauses say the same of the same things the other way round: `iron is harder than tin`, `Ivan reports to Carla`."""
    one, other = aligned.one, aligned.other
    middle = (one.than, other.than)
    if min(middle) < 0:
        verbs = {root(one.verb_word), root(other.verb_word)}
        if len(verbs) > 1 or verbs & (_COPULA_ROOTS | _MUTUAL) or aligned.left or aligned.right:
            return False
        if any(("by" in each.words) or ("and" in each.words) for each in (one, other)):
            return False
        middle = (one.verb, other.verb)
    turned = {
        first.at < middle[0]
        for first, second in aligned.shared
        if (first.at < middle[0]) != (second.at < middle[1])
    }
    return len(turned) == 2


# ---- deciding ---------------------------------------------------------------------------------


def _about_the_same(
    aligned: _Alignment,
    conflict: Conflict,
    left: Sequence[Piece],
    right: Sequence[Piece],
    meaning: float | None,
) -> bool:
    """Return True if two clauses with one difference speak of one subject: what is left besides is little, and no qualifier."""
    one, other = aligned.one, aligned.other
    is_same_verb = (
        one.verb_word not in _COPULAS and bool(one.verb_word) and root(one.verb_word) == root(other.verb_word)
    )
    shared = len(aligned.shared) + (is_same_verb and root(one.verb_word) in _LIGHT)
    if not shared:
        return False
    if _narrow(left, right, aligned, conflict):
        return False
    affirmed = other if one.denied else one
    if (
        conflict.sort == "denial"
        and bool(left) != bool(right)
        and (right if one.denied else left)
        and not affirmed.words & _POSITIVE
        and (one.words | other.words).isdisjoint(_NEGATIONS)
    ):
        return False  # is broken, is in the cellar
    is_near = meaning is not None and meaning >= CLOSE_MEANING
    many = len(left) + len(right)
    if not left or not right:
        return is_near or many <= shared + (shared > 1)
    is_same_place = left[0].before == right[0].before and left[0].before not in _COPULAS
    if (
        conflict.sort == "denial"
        and is_same_verb
        and not any(map(_in_subject, (one, other), (left[0], right[0])))
    ):
        return False  # covers travel, does not cover equipment
    are_plain = all(piece.sort not in ("name", "code") for piece in (*left, *right))
    most = 2 * shared if is_near or conflict.sort in _MEASURED else shared
    return are_plain and many <= min(most, _OTHERWISE + is_near * _OTHERWISE) and not is_same_place


def _narrow(left: Sequence[Piece], right: Sequence[Piece], aligned: _Alignment, conflict: Conflict) -> bool:
    """Return True if a piece that is left narrows the subject of its clause. What is said of all is contradicted by an exception."""
    sides = ((left, aligned.one, aligned.other), (right, aligned.other, aligned.one))
    return any(
        _narrows(piece, clause, aligned)
        for pieces, clause, opposite in sides
        if not (conflict.sort == "denial" and opposite.words & _ALL)
        for piece in pieces
    )


def _narrows(piece: Piece, side: Clause, aligned: _Alignment) -> bool:
    """Return True if a piece stands before a noun of the subject that both have (`return flight`), or after its owner (`Bea's sister`)."""
    if side.verb < 0 or piece.at >= side.verb or piece.sort not in ("word", "name"):
        return False
    heads = [(one, other) if side is aligned.one else (other, one) for one, other in aligned.shared]
    return any(
        (piece.at + 1 == head.at < side.verb and head.sort == "word")
        or (head.at == piece.at - 1 and head.raw.endswith("'s") and not match.raw.endswith("'s"))
        for head, match in heads
    )


def _holds_one(aligned: _Alignment, one: Piece, other: Piece) -> bool:
    """Return True if the subject holds one value at a time where the two differ. A value in the subject names it, and differs with it."""
    first, second = aligned.one, aligned.other
    before = (_in_subject(first, one), _in_subject(second, other))
    if _are_opposite(one, other):
        return not all(before)
    if one.sort in ("name", "word") or other.sort == "name":
        return _names_differ(aligned, (one, other), before)
    verbs = {root(first.verb_word), root(second.verb_word)}
    if one.sort == "date":
        is_state = first.verb_word in _COPULAS and any(piece.at > first.verb for piece, _ in aligned.shared)
        is_listed = "weekday" in dict(one.value) and (is_state or _ADMITTING & first.words & second.words)
        return not all(before) and not verbs <= _ADDITIVE and not is_listed
    if all(before) and one.before in _THRESHOLDS:  # orders above 50 euros
        return False
    if one.sort == "code" or _is_label(one) or _is_label(other):
        return not any(before)
    return True


def _in_subject(clause: Clause, piece: Piece) -> bool:
    return clause.verb >= 0 and piece.at < clause.verb


def _is_label(piece: Piece) -> bool:
    """Return True if a number names what is before it, as in `room 4`."""
    is_count = piece.sort == "quantity" and piece.value[0][0] == "count"
    return (
        is_count and bool(piece.before) and root(piece.before) not in _LIGHT and piece.before not in _STATES
    )


def _names_differ(aligned: _Alignment, values: _Pair, before: tuple[bool, bool]) -> bool:
    """Return True if two names in two clauses stand for one thing there: who has a role, where something is."""
    one, other = aligned.one, aligned.other
    verbs = {root(one.verb_word), root(other.verb_word)}
    if all(before):
        is_role = all(each.verb_word in _COPULAS and each.after_verb in _DETERMINERS for each in (one, other))
        return is_role or verbs <= _UNIQUE
    if max(one.verb, other.verb) < 0:
        prepositions = {value.before for value in values} <= _PREPOSITIONS | {"with", ":"}
        return prepositions and _are_of_one_kind(*values)  # without a verb nothing says what the names are
    if any(before):
        subject = one if before[0] else other
        is_turned = (
            len(verbs) > 1 or bool(verbs & _COPULA_ROOTS) or ("by" in one.words) != ("by" in other.words)
        )
        return is_turned and subject.after_verb not in _INDEFINITE
    if verbs & _ADDITIVE and not any(second.at > other.verb for _, second in aligned.shared):
        return False
    if len(verbs) > 1 and not any(verb in _LIGHT or verb == "" for verb in verbs):
        return False  # moved to, works in
    if values[0].before == values[1].before == "with" and not verbs & _COPULA_ROOTS:
        return False
    are_kinds = verbs <= _HAVING and _are_of_one_kind(*values)
    return are_kinds or not (one.after_verb in _INDEFINITE and other.after_verb in _INDEFINITE)


def _other_words(
    aligned: _Alignment, left: Sequence[Piece], right: Sequence[Piece], meaning: float | None
) -> Conflict | None:
    """Return the words in which two clauses that are else alike differ, after the verb and at the same place."""
    is_near = meaning is not None and meaning >= CLOSE_MEANING
    most = _PHRASE + is_near
    if not 0 < len(left) <= most or not 0 < len(right) <= most:
        return None
    are_phrases = all(rest[-1].at - rest[0].at < most for rest in (left, right))
    one, other, first, second = aligned.one, aligned.other, left[0], right[0]
    verbs = {root(one.verb_word), root(other.verb_word)}
    in_subject = min(one.verb, other.verb) < 0 or any(map(_in_subject, (one, other), (first, second)))
    may_have_several = verbs <= _ADDITIVE if is_near else bool(verbs & _ADDITIVE)
    are_of_sorts = {first.sort, second.sort} & _MEASURED or _are_of_two_kinds(first, second)
    if in_subject or not are_phrases or may_have_several or are_of_sorts:
        return None
    are_single = len(left) == len(right) == 1 and len(verbs) == 1 and first.sort == second.sort
    has_one = verbs <= _CHOOSING or (
        verbs <= _COPULA_ROOTS and not _ATTRIBUTES.isdisjoint(map(root, one.words & other.words))
    )
    is_slot = _is_slot(aligned, first, second, verbs, are_single)
    least = 1 if is_near or (are_single and (has_one or (is_slot and first.before not in _BESIDE))) else 2
    is_choice = verbs <= _LIGHT and not {one.verb_word, other.verb_word} & _COPULAS
    is_place = _place(first) == _place(second) and (
        is_slot if first.before in _PREPOSITIONS | {"with"} else has_one or is_choice
    )
    if len(aligned.shared) < least or not (is_near or is_place):
        return None
    return Conflict("word", *(" ".join(piece.raw for piece in rest) for rest in (left, right)))


def _is_slot(aligned: _Alignment, first: Piece, second: Piece, verbs: set[str], are_single: bool) -> bool:
    """Return True if two words after a preposition are values: `made of oak`, not `allergic to nuts`, nor `in the hall` beside `in detail`."""
    is_definite, is_too = (
        f" the {piece.raw}" in clause.text
        for piece, clause in ((first, aligned.one), (second, aligned.other))
    )
    is_of_quality = any(each.at == first.at - 2 and not _is_past(each) for each, _ in aligned.shared)
    if is_definite != is_too or (first.before == "with" and not (verbs <= _COPULA_ROOTS and are_single)):
        return False
    return not (first.before == "to" and verbs <= _COPULA_ROOTS and is_of_quality)


def _place(piece: Piece) -> str:
    return (
        "the"
        if piece.before in _DETERMINERS | _INDEFINITE
        else "is"
        if piece.before in _COPULAS
        else piece.before
    )


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
