"""Compare statements by their words: whether two mean the same, and how many words they share.

A statement with the meaning of a known one is not written again, so numbers, signs and negations must agree however similar the rest is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

SAME = 0.85
"""From this overlap on, two statements with the same numbers and negations mean the same."""

_JOINS = ".,:'%-"  # these may belong to a number or a word; all other punctuation separates
# A run of letters and digits. A point, comma or colon between digits and an apostrophe between letters do not end it.
_TOKEN = re.compile(
    r"(?:(?<!\S)-(?=\d))?[^\s.,:'%-]+(?:(?<=\d)[.,:](?=\d)[^\s.,:'%-]+|'[^\s.,:'%-]+)*(?:(?<=\d)%)?"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DIGIT = re.compile(r"\d")

_SHORTENED = "ai are ca could did do does had has have is might must need ought sha should was were wo would"
NEGATIONS = frozenset(
    "no not never none nobody nothing nowhere neither nor without cannot false null "
    "nicht nie niemals nichts kein keine keinen keinem keiner ohne ne pas jamais sans aucun aucune sin nunca "
    "не нет ни никогда ничего никто без 不 没 沒 無 无 未 非".split()
) | {f"{verb}nt" for verb in _SHORTENED.split()}


def statement(content: Mapping[str, Any], text: str | None) -> str:
    """Return a description as text: its text, or else the values of its content, a line each, in the order of their names."""
    if text is not None and text.strip():
        return text
    return "\n".join(_values(content))


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from _values(value[name])
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _values(each)
    elif value is None or isinstance(value, bool):
        yield "null" if value is None else str(value).lower()
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))  # 1.0 and 1 are one value
    else:
        yield str(value)


def words(statement: str) -> list[str]:
    """Return the words, numbers and signs of a statement in order, in lower case without punctuation."""
    plain = statement.lower()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", statement).casefold())
    plain = plain.translate(_SEPARATED)
    if "," in plain:
        plain = _THOUSANDS.sub("", plain)
    found = _TOKEN.findall(plain)
    return [word.replace("'", "") for word in found] if "'" in plain else found


def tokens(statement: str) -> frozenset[str]:
    """Return the distinct words of a statement."""
    return frozenset(words(statement))


def overlap(a: str, b: str) -> float:
    """Return the share of words that two statements have in common (Jaccard), from 0 to 1; 0 if neither has any."""
    return jaccard(tokens(a), tokens(b))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of all tokens that both sets have, from 0 to 1."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def same(a: str, b: str) -> bool:
    """Return True if two statements mean the same: the same words in the same order, or nearly all words with the same numbers, signs and negations."""
    first, second = words(a), words(b)
    if not first or not second:
        return a.strip() == b.strip()  # only punctuation
    if first == second:
        return True
    one, two = frozenset(first), frozenset(second)
    return (
        jaccard(one, two) >= SAME
        and _exact(first) == _exact(second)
        and _kept(first, two) == _kept(second, one)
    )


def alike(value: Any, other: Any) -> bool:
    """Return True if two contents mean the same, field by field: equal names and numbers, and texts that are the `same`."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(alike(value[name], other[name]) for name in value)
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(value, str) and isinstance(other, str):
        return same(value, other)
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _kept(words: list[str], shared: frozenset[str]) -> list[str]:
    """Return the words that the other statement has too, in order, since the order has meaning."""
    return [word for word in words if word in shared]


def _exact(words: list[str]) -> list[str]:
    """Return the words that must agree, in order: numbers, names with a number in them, signs and negations."""
    return [word for word in words if is_exact(word)]


def is_exact(word: str) -> bool:
    """Return True if a word changes the meaning: a number, a name with a number in it, a sign or a negation."""
    return word in NEGATIONS or _DIGIT.search(word) is not None or _sign(word)


def _sign(word: str) -> bool:
    return not word[0].isalnum() and unicodedata.category(word[0])[0] == "S"


class _Separated(dict[int, str]):
    """Maps a character's code to how it is read: as part of a word, a word of its own, or a gap. Filled on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        group = unicodedata.category(char)
        if char == "\u2212":
            read = "-"
        elif char in "\u2018\u2019\u02bc":
            read = "'"
        elif _unspaced(code) or group[0] == "S":
            read = f" {char} "
        else:
            read = char if group[0] in "LMN" or char in _JOINS else " "
        self[code] = read
        return read


def _unspaced(code: int) -> bool:
    """Return True if a character belongs to a script without spaces between words: Han and kana."""
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF


_SEPARATED = _Separated()
