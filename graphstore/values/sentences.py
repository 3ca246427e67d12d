"""Recognize what a plain sentence asserts, in a few forms of English and Russian. In each form a different value is a disagreement.

A sentence in none of these forms asserts nothing here: shared words prove nothing. The forms are

- a *frame*: the sentence without a number, a date, a weekday or one of two opposites (enabled, disabled) after its verb;
- a *denial*: the sentence without its "not"; a *place*: where a thing is stored or hosted;
- a *making*: how a thing is done (`auth is done with sessions`), or is done now (`auth was rewritten to tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from graphstore.values import sameness

_KEPT = 1 << 14  # words in the cache
_LONGEST = 24  # words of the longest sentence that is examined
_SUBJECT = 6  # words of the longest subject
_HEAD = re.compile(
    r"(?:\s|\[[^\[\]\n]*\]|#\w[\w./-]*|@\S+|(?:day|день)\s+\d+\s*[:.—–-]|[\"'«“„])*", re.IGNORECASE
)
_END = re.compile(r"[.!;\n]+(?:\s|\Z)")
_BRACKETS = re.compile(r"\([^()]*\)")
_EQUALS = re.compile(r"\s[—–=-]\s|:\s")
_SHORT_NOT = re.compile(r"(is|are|do|does|did|was|were|has|have|had|could|would|should)nt\Z")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _beginnings(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DROPPED = _set("the a an our its do does did наш наша наше наши")
_NOT = _set("not never no не нет никогда")
_UNREAL = _set(
    "will would should could may might if whether maybe perhaps plan plans planned planning want wants propose proposed todo formerly previously "
    "будет будут планируется планируем планируют хотим хочет если возможно может можно надо нужно следует предлагаю раньше ранее прежде"
)
"""A sentence with one of these words is a wish, a plan or about the past."""

_STATES = _set(
    "= is are equals run runs take takes cost costs expire expires start starts begin begins end ends last lasts has have keep keeps hold holds listen "
    "listens happen happens allow allows go goes ship ships wait waits stay stays live lives need needs serves accepts sends opens closes "
    "это есть равен равна равно равны составляет занимает длится длятся стоит истекает истекают начинается начинаются заканчивается заканчиваются "
    "проходит проходят идет идут слушает хранится хранятся живет живут имеет держит ждет выходит выходят работает работают бывает бывают "
    "назначен назначена назначено назначены допускает принимает открывается закрывается"
)
_PRESENT = ("ется", "ются", "ится", "ятся")  # endings of Russian verbs for what happens regularly
_NUMBER = re.compile(r"v?\d")
_NUMBERS = {
    word: str(number)
    for number, forms in enumerate(
        "one/один/одна/одно two/два/две three/три four/четыре five/пять six/шесть seven/семь eight/восемь nine/девять ten/десять eleven twelve".split(), 1
    )
    for word in forms.split("/")
}  # fmt: skip
_DAYS = _beginnings("monday tuesday wednesday thursday friday saturday sunday понедельник вторник сред четверг пятниц суббот воскресен")  # fmt: skip
_MONTHS = _beginnings("january february march april june july august september october november december январ феврал март апрел июн июл август сентябр октябр ноябр декабр")  # fmt: skip
_UNITS = {
    "second": 1, "секунд": 1, "minute": 60, "минут": 60, "hour": 3600, "час": 3600, "day": 86400, "день": 86400, "дня": 86400, "дней": 86400, "сут": 86400,
    "week": 604800, "недел": 604800, "month": 2592000, "месяц": 2592000, "year": 31536000, "год": 31536000, "лет": 31536000,
}  # fmt: skip
_OPPOSITES = [
    [tuple(side.split("|")) for side in pair.split("/")]
    for pair in (
        "enabled/disabled allowed/forbidden required/optional open/closed public/private synchronous/asynchronous manual/automatic supported/unsupported "
        "true/false warm/cold включ/выключ|отключ разреш/запрещ обязател/необязател открыт/закрыт синхронн/асинхронн ручн/автоматическ"
    ).split()
]
_ENDING = 4  # letters that may follow the stem of a Russian word; with more it is another word

_MADE = _beginnings("implemented realised realized done made built written handled реализован сделан построен написан выполнен устроен основан")  # fmt: skip
_MADE_BY = _set("via through using uses использует используют используем используя через посредством")
_REMADE = _beginnings("rewritten reworked redone reimplemented refactored rebuilt remade replaced changed переделан переписан переработан перестроен заменен изменен переведен")  # fmt: skip
_MOVED = _beginnings("switched switching moved moving migrated migrating converted перешл перешел переходим перенесен мигриров переключ перевели")  # fmt: skip
_PLACED = _beginnings("stored hosted located хранится хранятся хранит хранят размещен расположен находится находятся")  # fmt: skip
_LIVES = _set("lives live sits живет живут лежит лежат")
_IN = _set("in on at в на")
_TO = _set("to into onto на")
_FROM = _set("from over out off с из")
_WITH = _set("via through with using on in to into onto через на с со по в помощью посредством help of")
_FILLERS = _set(
    "is are was were be been being has have had gets got get now already just recently completely fully "
    "был была было были теперь уже сейчас недавно заново полностью"
)
_STOPS = _set(
    "in since because for so after before by when as instead rather during and but "
    "в с со потому так чтобы для после до когда вместо во время и но командой"
)
_UNNAMED = _set(
    "it we they this that i he she there everything project service app application system module component script code tool page site report job test "
    "tests task feature он она оно они мы это все проект сервис приложение система модуль компонент скрипт код страница сайт отчет задача тест тесты"
)
"""A subject of one such word is not a name, since many things are called that."""


_MAKES = re.compile("|".join([*_MADE, *_REMADE, *_MOVED, *_MADE_BY]))


class Making(NamedTuple):
    """Says how a thing is done. `subject` is () if the sentence names none; `phrase` is everything before the value.

    `ways`: what the thing is written in, how it is done, or both if unclear. `renewed`: the sentence says that it was done differently before. `sure`: the
    verb is used only of how things are done. `told`: by a verb, not by `via` or `uses`, of which there may be several.
    """

    subject: tuple[str, ...]
    ways: tuple[str, ...]
    phrase: tuple[str, ...]
    value: str
    renewed: bool
    sure: bool
    told: bool


class Frame(NamedTuple):
    """A sentence without one part, and that part."""

    words: tuple[str, ...]
    value: str


def sentence(text: str) -> list[str]:
    """Return the words of a text's first sentence, without marks at its head; [] for a question, a wish, a plan or a long text."""
    start = _HEAD.match(text)
    body = text[start.end() :] if start else text
    first = _END.split(body, maxsplit=1)[0]
    if "?" in first or len(first) > 300:
        return []
    plain = _EQUALS.sub(" = ", _BRACKETS.sub(" ", f"{first} "))
    words: list[str] = []
    for word in sameness.words(plain):
        words += _plain(word.replace("ё", "е"))
    return words if len(words) <= _LONGEST and _UNREAL.isdisjoint(words) else []


def _plain(word: str) -> list[str]:
    if word in _DROPPED:
        return []
    if word in ("во", "со"):
        return [word[0]]
    if word in _NUMBERS:
        return [_NUMBERS[word]]
    if word in ("cannot", "cant"):
        return ["can", "not"]
    found = _SHORT_NOT.match(word)
    if found:
        return [*_plain(found[1]), "not"]
    return [word]


# ---- frames -----------------------------------------------------------------------------------


def frames(words: list[str]) -> Iterator[Frame]:
    """Yield the frames of a sentence: for each run of numbers and dates after its verb, for each opposite, for its negation and for its place."""
    state = next(
        (at for at, word in enumerate(words) if at and (word in _STATES or word.endswith(_PRESENT))),
        len(words),
    )
    at = 1
    while at < len(words):
        side = _opposite(words[at])
        if side:
            yield Frame((*words[:at], f"<{side[0]}>", *words[at + 1 :]), str(side[1]))
        stop = at
        while (
            at > state
            and stop < len(words)
            and (_measure(words[stop]) or (stop > at and _seconds(words[stop])))
        ):
            stop += 1
        if stop > at:
            yield _measured(words, at, stop)
        at = max(stop, at + 1)
    yield from _denial(words)
    yield from _place(words)


def _measured(words: list[str], at: int, stop: int) -> Frame:
    what = sorted({_measure(word) or "number" for word in words[at:stop]})
    unit = [_unit(words[stop])] if stop < len(words) else []
    value = _duration(words[at:stop]) or " ".join(
        _begins(word, _DAYS) or _begins(word, _MONTHS) or word for word in words[at:stop]
    )
    return Frame((*words[:at], f"<{' '.join(what)}>", *unit, *words[stop + 1 :]), value)


def _measure(word: str) -> str:
    if _NUMBER.match(word):
        return "number"
    if _begins(word, _DAYS):
        return "day"
    return "month" if _begins(word, _MONTHS) else ""


def _seconds(word: str) -> int:
    """Return the seconds of a unit of time; 0 for any other word."""
    return _UNITS.get(_begins(word, tuple(_UNITS)), 0)


def _duration(words: list[str]) -> str:
    """Return a number of units of time in seconds, so that one hour equals sixty minutes; "" for anything else."""
    if len(words) != 2 or not words[0].isdigit() or not words[0].isascii():
        return ""
    each = _seconds(words[1])
    return f"{int(words[0]) * each} seconds" if each else ""


def _unit(word: str) -> str:
    return word.rstrip("s") if word.isascii() else word[:4]


@lru_cache(_KEPT)
def _begins(word: str, beginnings: tuple[str, ...]) -> str:
    for each in beginnings:
        if word.startswith(each) and len(word) - len(each) <= (1 if word.isascii() else _ENDING):
            return each
    return ""


@lru_cache(_KEPT)
def _opposite(word: str) -> tuple[int, int] | None:
    if word[0].isdigit():
        return None
    for number, pair in enumerate(_OPPOSITES):
        for side, each in enumerate(pair):
            if _begins(word, each):
                return number, side
    return None


def _denial(words: list[str]) -> Iterator[Frame]:
    left = [word for word in words if word not in _NOT]
    if len(left) > 1:
        yield Frame(("<not>", *left), "yes" if left == words else "no")


def _place(words: list[str]) -> Iterator[Frame]:
    """Yield the frame of a sentence that says where a thing is kept."""
    at = next((at for at, word in enumerate(words) if at and (word in _LIVES or _begins(word, _PLACED))), 0)
    if at and words[at + 1 : at + 2] and words[at + 1] in _IN and len(words) > at + 2:
        yield Frame((*words[: at + 2], "<place>"), " ".join(words[at + 2 :]))


# ---- how a thing is done ----------------------------------------------------------------------


def makes(text: str) -> bool:
    """Return True if a text may say how something is done, as it has one of the words for it."""
    return _MAKES.search(text.lower().replace("ё", "е")) is not None


def making(words: list[str]) -> Making | None:
    """Return how the sentence says that something is done, or None."""
    if not _NOT.isdisjoint(words):
        return None
    for at, word in enumerate(words):
        if word[0].isdigit():
            continue
        renewed = bool(_begins(word, _REMADE) or _begins(word, _MOVED))
        if renewed or word in _MADE_BY or _begins(word, _MADE):
            value_at = _value_at(words, at, renewed)
            value = _value(words[value_at:]) if value_at else []
            subject = _subject(words[:at])
            if renewed and not is_named(subject):
                subject = _object(words[at + 1 : value_at - 1]) or subject
            if not value or len(subject) > _SUBJECT:
                return None
            sure = not _begins(word, _MOVED)
            ways = _ways(word, words[value_at - 1])
            return Making(
                subject, ways, tuple(words[:value_at]), " ".join(value), renewed, sure, word not in _MADE_BY
            )
    return None


def _ways(verb: str, joint: str) -> tuple[str, ...]:
    if verb in ("written", "rewritten") and joint == "in":
        return ("written",)
    if _begins(verb, ("написан",)):
        return ("written",)
    return ("written", "done") if _begins(verb, ("переписан",)) else ("done",)


def is_named(subject: tuple[str, ...]) -> bool:
    """Return True if these words name one thing: more than a pronoun or a word for many things."""
    return len(subject) > 1 or (len(subject) == 1 and subject[0] not in _UNNAMED)


def _subject(words: list[str]) -> tuple[str, ...]:
    while words and words[-1] in _FILLERS:
        words = words[:-1]
    return tuple(words)


def _object(words: list[str]) -> tuple[str, ...]:
    """Return the thing that was changed: `auth` in `we switched auth from sessions to JWT`."""
    return tuple(words[: next((at for at, word in enumerate(words) if word in _FROM), len(words))])


def _value_at(words: list[str], at: int, renewed: bool) -> int:
    """Return the index where the value begins; 0 if there is none."""
    if words[at] in _MADE_BY:
        return at + 1
    if renewed:
        to = next((place for place in range(at + 1, len(words)) if words[place] in _TO), 0)
        if to:
            return to + 1
    place = at + 1
    while place < len(words) and words[place] in _FILLERS:
        place += 1
    begin = place
    while place < len(words) and words[place] in _WITH:
        place += 1
    return place if place > begin else 0


def _value(words: list[str]) -> list[str]:
    stop = next((at for at, word in enumerate(words) if word in _STOPS), len(words))
    value = words[:stop]
    timed = value and (_measure(value[0]) or value[0] in ("sprint", "спринт"))
    return [] if timed else value
