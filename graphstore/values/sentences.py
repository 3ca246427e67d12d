"""What a plain sentence says of something: few forms, English and Russian, each chosen because its difference is a disagreement.

A sentence that is in none of these forms says nothing here: words that two sentences share prove nothing. The forms are

- a *frame*: the sentence with a number, a date, a weekday or one of two opposites (enabled, disabled) left out behind its verb;
- a *denial*: the sentence without its "not";
- a *making*: how a thing is done (`auth is done with sessions`), or is done now (`auth was rewritten to tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from graphstore.values import sameness

_LONGEST = 24  # words of a sentence that is read
_SUBJECT = 6  # words that name a thing
_HEAD = re.compile(
    r"(?:\s|\[[^\[\]\n]*\]|#\w[\w./-]*|@\S+|(?:day|день)\s+\d+\s*[:.—–-]|[\"'«“„])*", re.IGNORECASE
)
_END = re.compile(r"[.!;\n]+(?:\s|\Z)")
_BRACKETS = re.compile(r"\([^()]*\)")
_EQUALS = re.compile(r"\s[—–=-]\s|:\s")
_SHORT_NOT = re.compile(r"(is|are|do|does|did|was|were|has|have|had|could|would|should)nt\Z")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROPPED = _set("the a an our its do does did наш наша наше наши")
_NOT = _set("not never no не нет никогда")
_UNREAL = _set(
    "will would should could may might if whether maybe perhaps plan plans planned planning want wants propose proposed todo formerly previously "
    "будет будут планируется планируем планируют хотим хочет если возможно может можно надо нужно следует предлагаю раньше ранее прежде"
)
"""What is said with one of these is a wish, a plan or the past."""

_STATES = _set(
    "= is are equals run runs take takes cost costs expire expires start starts begin begins end ends last lasts has have keep keeps hold holds listen "
    "listens happen happens allow allows go goes ship ships wait waits stay stays live lives need needs serves accepts sends opens closes "
    "это есть равен равна равно равны составляет занимает длится длятся стоит истекает истекают начинается начинаются заканчивается заканчиваются "
    "проходит проходят идет идут слушает хранится хранятся живет живут имеет держит ждет выходит выходят работает работают бывает бывают "
    "назначен назначена назначено назначены допускает принимает открывается закрывается"
)
_NUMBERS = _set("one two three four five six seven eight nine ten twelve")
_DAYS = ("monday tuesday wednesday thursday friday saturday sunday понедельник вторник сред четверг пятниц суббот воскресен").split()  # fmt: skip
_MONTHS = ("january february march april june july august september october november december январ феврал март апрел июн июл август сентябр октябр ноябр декабр").split()  # fmt: skip
_OPPOSITES = [
    pair.split("/")
    for pair in (
        "enabled/disabled allowed/forbidden required/optional open/closed public/private synchronous/asynchronous manual/automatic supported/unsupported "
        "true/false warm/cold включ/выключ разреш/запрещ обязател/необязател открыт/закрыт синхронн/асинхронн ручн/автоматическ"
    ).split()
]
_ENDING = 4  # of a Russian word: more letters behind its beginning make it another word

_MADE = ("implemented realised realized done made built written handled реализован сделан построен написан выполнен устроен основан").split()  # fmt: skip
_MADE_BY = _set("via through using uses использует используют используем используя через посредством")
_REMADE = ("rewritten reworked redone reimplemented refactored rebuilt remade replaced changed переделан переписан переработан перестроен заменен изменен переведен").split()  # fmt: skip
_MOVED = ("switched switching moved moving migrated migrating converted перешл перешел переходим перенесен мигриров переключ перевели").split()  # fmt: skip
_TO = _set("to into onto на")
_WITH = _set("via through with using on in to into onto by через на с со по в помощью посредством help of")
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
"""A subject of one such word is not a name: many things are called that."""


class Making(NamedTuple):
    """How a thing is said to be done. `subject` is empty when the sentence names none; `phrase` is all before the value.

    `renewed`: the sentence itself says that it was done otherwise before. `sure`: by a word that is said of the doing alone.
    """

    subject: tuple[str, ...]
    phrase: tuple[str, ...]
    value: str
    renewed: bool
    sure: bool


class Frame(NamedTuple):
    """A sentence with a part left out, and that part."""

    words: tuple[str, ...]
    value: str


def sentence(text: str) -> list[str]:
    """The words of a text's first sentence, without marks at its head; empty for a question, a wish, a plan or a long text."""
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
    if word in ("cannot", "cant"):
        return ["can", "not"]
    found = _SHORT_NOT.match(word)
    if found:
        return [*_plain(found[1]), "not"]
    return [word]


# ---- frames -----------------------------------------------------------------------------------


def frames(words: list[str]) -> Iterator[Frame]:
    """The frames of a sentence: for each run of numbers and dates behind its verb, for each opposite, and the sentence without its negation."""
    state = next((at for at, word in enumerate(words) if at and word in _STATES), len(words))
    at = 1
    while at < len(words):
        side = _opposite(words[at])
        if side:
            yield Frame((*words[:at], f"<{side[0]}>", *words[at + 1 :]), str(side[1]))
        stop = at
        while at > state and stop < len(words) and _measure(words[stop]):
            stop += 1
        if stop > at:
            yield _measured(words, at, stop)
        at = max(stop, at + 1)
    yield from _denial(words)


def _measured(words: list[str], at: int, stop: int) -> Frame:
    what = sorted({_measure(word) for word in words[at:stop]})
    unit = [_unit(words[stop])] if stop < len(words) else []
    value = " ".join(_day(word) for word in words[at:stop])
    return Frame((*words[:at], f"<{' '.join(what)}>", *unit, *words[stop + 1 :]), value)


def _measure(word: str) -> str:
    if word in _NUMBERS or any(char.isdigit() for char in word):
        return "number"
    if _begins(word, _DAYS):
        return "day"
    return "month" if _begins(word, _MONTHS) else ""


def _day(word: str) -> str:
    return _begins(word, _DAYS) or _begins(word, _MONTHS) or word


def _unit(word: str) -> str:
    return word.rstrip("s") if word.isascii() else word[:4]


def _begins(word: str, beginnings: list[str]) -> str:
    for each in beginnings:
        if word.startswith(each) and len(word) - len(each) <= (1 if word.isascii() else _ENDING):
            return each
    return ""


def _opposite(word: str) -> tuple[int, int] | None:
    for number, pair in enumerate(_OPPOSITES):
        for side, each in enumerate(pair):
            if _begins(word, [each]):
                return number, side
    return None


def _denial(words: list[str]) -> Iterator[Frame]:
    left = [word for word in words if word not in _NOT]
    if len(left) > 1:
        yield Frame(("<not>", *left), "no" if (len(words) - len(left)) % 2 else "yes")


# ---- how a thing is done ----------------------------------------------------------------------


def making(words: list[str]) -> Making | None:
    """How the sentence says that something is done, or None."""
    if not _NOT.isdisjoint(words):
        return None
    for at, word in enumerate(words):
        renewed = bool(_begins(word, _REMADE) or _begins(word, _MOVED))
        if renewed or word in _MADE_BY or _begins(word, _MADE):
            value_at = _value_at(words, at, renewed)
            value = _value(words[value_at:]) if value_at else []
            subject = _subject(words[:at])
            if not value or len(subject) > _SUBJECT:
                return None
            sure = not _begins(word, _MOVED)
            return Making(subject, tuple(words[:value_at]), " ".join(value), renewed, sure)
    return None


def is_named(subject: tuple[str, ...]) -> bool:
    """Whether these words name one thing: more than a pronoun or what many things are called."""
    return len(subject) > 1 or (len(subject) == 1 and subject[0] not in _UNNAMED)


def _subject(words: list[str]) -> tuple[str, ...]:
    while words and words[-1] in _FILLERS:
        words = words[:-1]
    return tuple(words)


def _value_at(words: list[str], at: int, renewed: bool) -> int:
    """Where the value begins; 0: there is none."""
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
    timed = value and (value[0][0].isdigit() or _measure(value[0]) or value[0] in ("sprint", "спринт"))
    return [] if timed else value
