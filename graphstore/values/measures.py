"""Read the values that a plain sentence contains: quantities with units, dates, times of day, periods of repetition, codes and names.

A value is reduced to a form in which equal values are equal: two hours and 120 minutes, 6 pm and 18:00, daily and once a day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from threading import Lock
from typing import Literal, NamedTuple

from graphstore.values.words import Analyzer

Sort = Literal["word", "name", "code", "quantity", "date", "clock", "period"]
DAY_SECONDS = 86_400

_CACHED = 1 << 15  # words whose roots are cached
_HALF_DAY = 720  # minutes
_MONTH_SECONDS, _MONTHS_DIFFER = 2_400_000, 0.02
_ROUNDED = 0.1  # the part by which a number that is `about` so much may differ
_ABOUT = frozenset({"about", "roughly", "around", "approximately", "nearly", "almost", "circa"})
_NO_MEASURE = frozenset({"half", "about"})
"""Parts of a value that say how exact it is."""
_LONGEST = 60  # tokens of a sentence that is read


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> dict[str, int]:
    """Return a table of groups `factor:word,word` as factors by word."""
    pairs = (group.split(":") for group in text.split())
    return {word: int(factor) for factor, words in pairs for word in words.split(",")}


_UNITS: dict[str, tuple[str, float]] = {
    word: (dimension, float(factor))
    for dimension, groups in {
        "time": "0.001:ms,millisecond,milliseconds 1:s,sec,secs,second,seconds,секунда,секунды,секунд 60:min,mins,minute,minutes,минута,минуты,минут "
        "3600:h,hr,hrs,hour,hours,час,часа,часов 86400:day,days,день,дня,дней,сутки,суток 604800:week,weeks,неделя,недели,недель "
        "2628000:month,months,месяц,месяца,месяцев 7884000:quarter,quarters 31536000:year,years,год,года,лет",
        "bytes": "1:byte,bytes 1e3:kb,kilobyte,kilobytes,kib 1e6:mb,megabyte,megabytes,mib 1e9:gb,gigabyte,gigabytes,gib 1e12:tb,terabyte,terabytes,tib",
        "length": "0.001:mm,millimetres,millimeters 0.01:cm,centimetres,centimeters 1:m,metre,metres,meter,meters 1000:km,kilometre,kilometres,kilometer,kilometers "
        "1609.344:mile,miles 0.3048:ft,foot,feet 0.0254:inch,inches",
        "mass": "0.001:mg 1:g,gram,grams 1000:kg,kilo,kilos,kilogram,kilograms 1e6:t,tonne,tonnes,ton,tons 453.592:lb,lbs",
        "volume": "0.001:ml 1:l,litre,litres,liter,liters",
        "speed": "1:kmh,kph 1.609344:mph",
        "power": "1:w,watt,watts 1e3:kw 1e6:mw",
        "degrees": "1:°,°c,degree,degrees,celsius",
        "percent": "1:%,percent,процент,процента,процентов",
        "$": "1:$,dollar,dollars,usd", "€": "1:€,euro,euros,eur,евро", "£": "1:£,pound,pounds,gbp", "rouble": "1:₽,рубль,рубля,рублей",
    }.items()
    for factor, words in (group.split(":") for group in groups.split())
    for word in words.split(",")
}  # fmt: skip
_MONEY = _set("$ € £ ₽")
_CURRENCIES = frozenset({"$", "€", "£", "rouble"})
_SCALES = {"k": 1e3, "thousand": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "hundred": 1e2, "dozen": 12.0}  # fmt: skip
_NUMBERS = _table(
    "0:zero 1:one,один,одна,одно 2:two,два,две 3:three,три 4:four,четыре 5:five,пять 6:six,шесть 7:seven,семь 8:eight,восемь 9:nine,девять 10:ten,десять "
    "11:eleven 12:twelve 13:thirteen 14:fourteen 15:fifteen 16:sixteen 17:seventeen 18:eighteen 19:nineteen 20:twenty 30:thirty 40:forty 50:fifty 60:sixty "
    "70:seventy 80:eighty 90:ninety"
)
_WEEKDAYS = _table(
    "1:monday,mon,понедельник,понедельникам 2:tuesday,tue,tues,вторник,вторникам 3:wednesday,wed,среда,среду,средам 4:thursday,thu,thurs,четверг,четвергам "
    "5:friday,fri,пятница,пятницу,пятницам 6:saturday,sat,суббота,субботу,субботам 7:sunday,sun,воскресенье,воскресеньям"
)
_MONTHS = _table(
    "1:january,jan,январь,января 2:february,feb,февраль,февраля 3:march,mar,март,марта 4:april,apr,апрель,апреля 5:may,май,мая 6:june,jun,июнь,июня "
    "7:july,jul,июль,июля 8:august,aug,август,августа 9:september,sep,sept,сентябрь,сентября 10:october,oct,октябрь,октября 11:november,nov,ноябрь,ноября "
    "12:december,dec,декабрь,декабря"
)
_SHORT_MONTHS = _set(
    "may mar sun sat wed mon dec jan"
)  # also words: they count as dates when written as names
_REPEATED = {
    "hourly": 3600, "daily": DAY_SECONDS, "nightly": DAY_SECONDS, "weekly": 604800, "fortnightly": 1209600, "biweekly": 1209600,
    "monthly": 2628000, "quarterly": 7884000, "yearly": 31536000, "annually": 31536000, "annual": 31536000,
}  # fmt: skip
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_EACH = _set("a an per each every")
_DURING = _set("within in after for of until about under over than is are takes lasts last take was")
_DATED = _set("in since until from of by before after during")
_ARTICLES = _set("the a an our my your his her its their")
_RELATIVE = _set("today tomorrow yesterday")
_RELATED = _set("week month year quarter weekend night")

_TOKEN = re.compile(
    r"(?P<iso>\d{4}-\d{2}-\d{2})(?!\d)|(?P<monthyear>\d{1,2}/\d{4})(?!\d)"
    r"|(?P<clock>\d{1,2}:\d{2}(?:\s?[aApP]\.?[mM]\b\.?)?|\d{1,2}\s?[aApP]\.?[mM]\b\.?)"
    r"|(?P<code>\d+(?:\.\d+){2,}|(?<!\S)\d{1,3}:\d{1,3}(?![\w:])|(?=[^\W\d_][^\W\d]{0,40}[-/.]{0,1}\d)[^\W_](?:[-_/.]?[^\W_]){1,60}|[^\W_]{1,60}(?:_[^\W_]{1,60}){1,8}|[^\W\d_]{2,40}-[^\W\d_]\b|#[\w-]{1,60})"
    r"|(?P<number>(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?P<ordinal>(?:st|nd|rd|th)\b)?"
    r"|(?P<word>[^\W\d_]+(?:['’.][^\W\d_]+)*)|(?P<mark>[$€£₽%=:]|°C?)"
)
_PHRASES = [
    (needle, re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE), meant)
    for needle, phrase, meant in (
        ("km/h", "km/h", "kmh"),
        (" hour", r"kilomet(?:er|re)s? (?:per|an) hour", "kmh"),
        ("til", r"(?:(?:is|are|stays?|remains?) open|opens?) (?:until|till)", "closes at"),
        ("out of", "out of (?:order|service)", "broken"),
        ("turned down", "turned down", "rejected"),
        (" off", "(?:switched|turned|shut) off", "disabled"),
        ("ed on", "(?:switched|turned) on", "enabled"),
        (" down", "(?:switched|shut) down", "disabled"),
        ("no longer", "no longer", "not"),
        (" stand", "can't stand|cannot stand", "does not like"),
        ("hate", "hates?", "does not like"),
        ("dislike", "dislikes?", "does not like"),
        ("due to", "due to", "caused by"),
        ("because of", "because of", "caused by"),
        ("ing", r"(?:quit|quits|gave up|gives up|stopped) (?=\w+ing\b)", "not "),
        ("in charge of", "(?:is|are) in charge of", "manages"),
        ("responsible for", "(?:is|are) responsible for", "manages"),
        (" up", r"(is|are|was|were) up(?: and running)?(?=\s*(?:[.,;!]|$))", r"\1 running"),
        (" down", r"(is|are|was|were) down(?=\s*(?:[.,;!]|$))", r"\1 broken"),
        ("prefer", r"(prefers?) (\w+) (?:to|over)", r"\1 \2 than"),
    )
]
"""Phrases that are read as one word, each with what every text has in which it can be."""
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z][A-Z]")


class Piece(NamedTuple):
    """A part of a sentence: a word by its root, or a value. `key` is what equal pieces have in common, `value` what values are compared by."""

    sort: Sort
    key: str
    value: tuple[tuple[str, float | str], ...]
    raw: str
    at: int  # the number of its first token
    before: str  # the word before it, articles left out, in lower case
    opens: bool = False  # it is the first word of the sentence


class _Token(NamedTuple):
    group: str
    raw: str
    lower: str


_analyzer, _analyzing = Analyzer(("english", "russian")), Lock()


@lru_cache(_CACHED)
def root(word: str) -> str:
    """Return the root of a word in lower case."""
    with _analyzing:
        found = _analyzer.made_of(word)
    return found[-1] if found else word


def pieces(sentence: str) -> list[Piece]:
    """Return the pieces of a sentence in order. A longer sentence than `_LONGEST` tokens has none."""
    plain = sentence.replace("’", "'").replace("−", "-").replace("ё", "е")
    lower = plain.lower()
    for needle, phrase, meant in _PHRASES:
        if needle in lower:
            plain = phrase.sub(meant, plain)
    tokens = []
    for found in _TOKEN.finditer(plain):
        group = found.lastgroup or "word"
        group = "ordinal" if found["ordinal"] else group
        tokens.append(_Token(group, found[0], found[0].lower().removesuffix("'s").removesuffix("s'")))
    if len(tokens) > _LONGEST:
        return []
    return list(_joined(_read(tokens)))


def _read(tokens: Sequence[_Token]) -> Iterator[Piece]:
    at = 0
    piece: Piece | None
    while at < len(tokens):
        before = tokens[at - 1].lower if at else ""
        for reader in (_clock, _period, _date, _quantity):
            found = reader(tokens, at, before)
            if found is not None:
                piece, used = found
                break
        else:
            piece, used = _word(tokens, at, before), 1
        if piece is not None:
            yield piece
        at += used


_Found = tuple[Piece, int] | None  # a piece, and how many tokens it takes


def _lower(tokens: Sequence[_Token], at: int) -> str:
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def _preceding(tokens: Sequence[_Token], at: int) -> str:
    """Return the word before a token, articles left out, in lower case."""
    at -= 1
    while at > 0 and tokens[at].lower in _ARTICLES:
        at -= 1
    return tokens[at].lower if at >= 0 else ""


def _value_of(
    sort: Sort, tokens: Sequence[_Token], at: int, used: int, **value: float | str
) -> tuple[Piece, int]:
    raw = " ".join(token.raw for token in tokens[at : at + used])
    if sort == "quantity" and _lower(tokens, at - 1) in _ABOUT:
        value["about"] = 1
    key = f"{sort} {' '.join(value)}"
    return Piece(sort, key, tuple(value.items()), raw, at, _preceding(tokens, at)), used


def number(token: _Token) -> float | None:
    """Return the number that a token is, None if it is none."""
    if token.group == "number":
        return float(token.raw.replace(",", ""))
    found = _NUMBERS.get(token.lower)
    return None if found is None else float(found)


def _clock(tokens: Sequence[_Token], at: int, before: str) -> _Found:
    token = tokens[at]
    if token.group == "clock":
        hours, _, minutes = re.sub(r"[^\d:]", "", token.raw).partition(":")
        return _clock_value(tokens, at, 1, int(hours), int(minutes or 0), token.lower)
    if token.lower in ("noon", "midday", "midnight"):
        return _value_of("clock", tokens, at, 1, minute=0 if token.lower == "midnight" else _HALF_DAY)
    if (
        token.lower in ("half", "quarter")
        and _lower(tokens, at + 1) in ("past", "to")
        and at + 2 < len(tokens)
    ):
        hour = number(tokens[at + 2])
        if hour is not None:
            part = 30 if token.lower == "half" else 15
            minute = int(hour) * 60 + (part if _lower(tokens, at + 1) == "past" else -part)
            return _value_of("clock", tokens, at, 3, minute=minute % _HALF_DAY, half=1)
    after = _lower(tokens, at + 1)
    is_range = (after in ("to", "-") or before == "to") and any(each.lower == "hours" for each in tokens[:at])
    is_clock = is_range or before in ("at", "by", "until", "till")
    hour = number(token) if is_clock and token.group != "ordinal" else None
    if hour is None or not 0 < hour <= 24 or hour % 1 or after in _UNITS or after in _SCALES:
        return None
    if (
        not is_range
        and at + 1 < len(tokens)
        and after not in ("on", "in", "and", "to", "every", "each", "sharp", "o'clock")
        and after not in _WEEKDAYS
    ):
        return None
    return _clock_value(tokens, at, 1, int(hour), 0, "")


def _clock_value(
    tokens: Sequence[_Token], at: int, used: int, hours: int, minutes: int, text: str
) -> tuple[Piece, int]:
    part = _lower(tokens, at + used) + text
    if "p" in text or part.startswith(("pm", "p.m")):
        hours = hours % 12 + 12
    elif "a" in text:
        hours %= 12
    elif hours < 12 and ":" not in text:  # three may be 15:00
        return _value_of("clock", tokens, at, used, minute=hours * 60 + minutes, half=1)
    return _value_of("clock", tokens, at, used, minute=hours * 60 + minutes)


def _period(tokens: Sequence[_Token], at: int, before: str) -> _Found:
    """Read how often something is repeated, as the seconds between two times."""
    lower = tokens[at].lower
    if lower in _REPEATED:
        return _value_of("period", tokens, at, 1, seconds=_REPEATED[lower])
    times = float(_TIMES.get(lower, 0))
    used = 1
    if not times and (count := number(tokens[at])) and _lower(tokens, at + 1) in ("times", "time"):
        times, used = count, 2
    start = at + used if times else at
    each = _lower(tokens, start)
    if each not in _EACH or (each in ("a", "an") and not times and before in _DURING):
        return None
    many, place = 1.0, start + 1
    if each in ("every", "each") and place < len(tokens) and (count := number(tokens[place])):
        many, place = count, place + 1
    elif each == "every" and _lower(tokens, place) in ("other", "half"):
        many, place = (2.0 if _lower(tokens, place) == "other" else 0.5), place + 1
        place += _lower(tokens, place) in ("a", "an")
    dimension, factor = _UNITS.get(_lower(tokens, place), ("", 0.0))
    if dimension != "time" or (not times and each == "a" and at == 0):
        return None
    return _value_of("period", tokens, at, place + 1 - at, seconds=many * factor / (times or 1))


def _date(tokens: Sequence[_Token], at: int, before: str) -> _Found:
    token = tokens[at]
    if token.group == "iso":
        year, month, day = map(int, token.raw.split("-"))
        return _value_of("date", tokens, at, 1, year=year, month=month, day=day)
    if token.group == "monthyear":
        month, year = map(int, token.raw.split("/"))
        return _value_of("date", tokens, at, 1, year=year, month=month)
    if token.lower in _RELATIVE:
        return _value_of("date", tokens, at, 1, near=token.lower)
    if token.lower in ("this", "next", "last") and _lower(tokens, at + 1) in _RELATED:
        return _value_of("date", tokens, at, 2, near=f"{token.lower} {tokens[at + 1].lower}")
    singular = token.lower.removesuffix("s") if token.lower not in _WEEKDAYS else token.lower
    if singular in _WEEKDAYS and (singular not in _SHORT_MONTHS or token.raw[0].isupper()):
        return _value_of("date", tokens, at, 1, weekday=_WEEKDAYS[singular])
    return _day_of_month(tokens, at) or _year(tokens, at, before)


def _day_of_month(tokens: Sequence[_Token], at: int) -> _Found:
    """Read `31 March 2026`, `March 31st`, `Q3 2026`, `the 10th`."""
    place, value = at, dict[str, float | str]()
    if tokens[place].group in ("number", "ordinal") and (
        _month(tokens, place + 1) or _month(tokens, place + 2)
    ):
        day = re.sub(r"\D", "", tokens[place].raw)
        if 0 < int(day or 0) <= 31 and (_month(tokens, place + 1) or _lower(tokens, place + 1) == "of"):
            value["day"] = int(day)
            place += 1 if _month(tokens, place + 1) else 2
    if month := _month(tokens, place):
        value["month"] = month
        place += 1
        if "day" not in value and place < len(tokens) and tokens[place].group in ("number", "ordinal"):
            day = re.sub(r"\D", "", tokens[place].raw)
            if 0 < int(day) <= 31 and "." not in tokens[place].raw:
                value["day"] = int(day)
                place += 1
    elif re.fullmatch(r"q[1-4]", tokens[place].lower):
        value["quarter"] = int(tokens[place].lower[1])
        place += 1
    elif tokens[place].group == "ordinal" and _lower(tokens, place - 1) in ("the", "on", "by"):
        return _value_of("date", tokens, at, 1, day=int(re.sub(r"\D", "", tokens[place].raw)))
    if not value:
        return None
    if place < len(tokens) and _is_year(tokens[place]):
        value["year"] = int(tokens[place].raw)
        place += 1
    return _value_of("date", tokens, at, place - at, **value)


def _month(tokens: Sequence[_Token], at: int) -> int:
    if at >= len(tokens):
        return 0
    token = tokens[at]
    if token.lower in _SHORT_MONTHS and not (token.raw[0].isupper() and at):
        return 0
    return _MONTHS.get(token.lower.rstrip("."), 0)


def _year(tokens: Sequence[_Token], at: int, before: str) -> _Found:
    if (
        _is_year(tokens[at])
        and (before in _DATED or at == len(tokens) - 1)
        and _lower(tokens, at + 1) not in _UNITS
    ):
        return _value_of("date", tokens, at, 1, year=int(tokens[at].raw))
    return None


def _is_year(token: _Token) -> bool:
    return token.group == "number" and token.raw.isdigit() and 1900 <= int(token.raw) < 2100


def _quantity(tokens: Sequence[_Token], at: int, before: str) -> _Found:
    """Read a number with its unit. A number without one counts what the next word says, if that is not the end."""
    place, dimension, factor = at, "", 1.0
    if tokens[place].raw in _MONEY and place + 1 < len(tokens):
        dimension, place = _UNITS[tokens[place].raw][0], place + 1
    if tokens[place].lower in ("a", "an", "half") and before in _DURING:
        halves = tokens[place].lower == "half"
        unit = _UNITS.get(_lower(tokens, place + 1 + (halves and _lower(tokens, place + 1) in ("a", "an"))))
        if unit is not None and unit[0] == "time":
            used = 2 + (halves and _lower(tokens, place + 1) in ("a", "an"))
            return _value_of("quantity", tokens, at, used, time=unit[1] / (1 + halves))
    if tokens[place].lower == "free" and before in (
        "is",
        "are",
        "for",
        "ships",
        "ship",
        "costs",
        "nothing",
        "has",
        "offers",
    ):
        return _value_of("quantity", tokens, at, 1, money=0)
    amount = number(tokens[place])
    if amount is None or tokens[place].group == "ordinal":
        return None
    place += 1
    while (scale := _SCALES.get(_lower(tokens, place))) and not (
        dimension == "" and _lower(tokens, place) == "m"
    ):
        amount, place = amount * scale, place + 1
    while (
        place < len(tokens)
        and tokens[place].group == "number"
        and len(tokens[place].raw) > 1
        and not dimension
    ):
        amount, place = (
            amount * 10 ** len(tokens[place].raw) + float(tokens[place].raw.replace(",", "")),
            place + 1,
        )
    unit = _UNITS.get(_lower(tokens, place)) if not dimension else None
    if unit is not None:
        (dimension, factor), place = unit, place + 1
        if dimension == "degrees" and _lower(tokens, place) in ("c", "celsius", "fahrenheit"):
            place += 1
    if dimension in _CURRENCIES:
        return _value_of("quantity", tokens, at, place - at, money=amount * factor, currency=dimension)
    return _value_of("quantity", tokens, at, place - at, **{dimension or "count": amount * factor})


def _word(tokens: Sequence[_Token], at: int, before: str) -> Piece | None:
    token = tokens[at]
    if token.group == "mark":
        return Piece("word", token.raw, (), token.raw, at, before) if token.raw in ":=" else None
    if token.group in ("code", "ordinal"):
        return Piece("code", token.lower, (("code", token.lower),), token.raw, at, before, not at)
    opens, before = not at or before in (":", "="), _preceding(tokens, at)
    is_name = bool(_HUMP.search(token.raw)) or (not opens and token.raw[0].isupper())
    sort: Sort = "name" if is_name else "word"
    named = (("name", token.lower),) if is_name else ()
    return Piece(sort, root(token.lower), named, token.raw, at, before, opens)


def _joined(found: Iterator[Piece]) -> Iterator[Piece]:
    """Yield the pieces with names of several words as one."""
    last: Piece | None = None
    for piece in found:
        is_next = last is not None and last.sort == piece.sort == "name" and piece.at == last.at + 1
        if is_next and last is not None and not last.raw.endswith("'s"):
            name = f"{last.value[0][1]} {piece.value[0][1]}"
            last = last._replace(
                key=name, value=(("name", name),), raw=f"{last.raw} {piece.raw}", at=piece.at
            )
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def equal(one: Piece, other: Piece) -> bool:
    """Return True if two pieces are the same value or the same word. A value that says less equals one that says more: March, March 5."""
    if one.sort == "word" or other.sort == "word" or one.sort != other.sort:
        return one.key == other.key
    if one.sort == "name":
        parts, others = set(one.key.split()), set(other.key.split())
        return parts <= others or others <= parts
    if one.sort == "code":
        return one.key == other.key
    first, second = dict(one.value), dict(other.value)
    common = (first.keys() & second.keys()) - _NO_MEASURE
    return bool(common) and all(_near(first, second, name) for name in common)


def _near(one: dict[str, float | str], other: dict[str, float | str], name: str) -> bool:
    first, second = one[name], other[name]
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    if name == "minute" and ("half" in one or "half" in other):
        return first % _HALF_DAY == second % _HALF_DAY
    largest = max(abs(first), abs(second))
    is_long = name in ("time", "seconds") and largest >= _MONTH_SECONDS  # months differ in length
    part = _ROUNDED if "about" in one or "about" in other else _MONTHS_DIFFER if is_long else 1e-9
    return abs(first - second) <= part * largest


def comparable(one: Piece, other: Piece) -> bool:
    """Return True if two values are of one sort and measure the same, so that they may exclude each other."""
    if {one.sort, other.sort} <= {"name", "code"}:
        return True
    if one.sort != other.sort or one.sort == "word":
        return False
    first, second = dict(one.value), dict(other.value)
    is_bare = one.sort == "quantity" and (
        {"count"} in (first.keys() - _NO_MEASURE, second.keys() - _NO_MEASURE)
    )
    return is_bare or bool((first.keys() & second.keys()) - _NO_MEASURE - {"currency"})
