"""Text for people: without characters that a terminal or a page would obey, and truncated to a line. Programs get the data unchanged."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

LINE = 60
"""Columns of a truncated line of text."""
_READ = 4  # characters examined for each column shown: enough for marks that take no column
_JOINERS = "\u200c\u200d"  # they join letters and emoji
# next to ASCII or to one another, they only hide something
_LOOSE = re.compile(rf"(?<![^\x00-\x7f{_JOINERS}])[{_JOINERS}]|[{_JOINERS}](?![^\x00-\x7f{_JOINERS}])")
# Fillers and variation selectors that take no place on a screen, though they are letters and marks.
_UNSEEN = frozenset({0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xE0100, 0xE01F0)})


class _Shown(dict[int, str]):
    """Maps a character's code to what is shown for it."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = _shown(code)
        return shown


def _shown(code: int) -> str:
    char = chr(code)
    if code in _UNSEEN:
        return ""
    if char in "\n\t" or char in _JOINERS or char.isprintable():
        return char
    if code < 0x20:
        return chr(0x2400 + code)  # its picture: ␛
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    match unicodedata.category(char):
        case "Cf":
            return ""
        case "Zs":
            return " "
        case "Zl" | "Zp":
            return "\n"
        case _:
            return "\N{REPLACEMENT CHARACTER}"


_SHOWN = _Shown()


def clean(text: str) -> str:
    """Return the text without characters that a terminal obeys, that are hidden, or that reorder their surroundings; newlines and tabs stay.

    A control character becomes its picture (␛). Direction marks, characters without width and tags are removed. A code that is not a character becomes "�".
    """
    if text.isascii() and text.isprintable():
        return text  # as most are
    return _LOOSE.sub("", text.replace("\r\n", "\n").translate(_SHOWN))


class _Escaped(dict[int, str]):
    """Maps a character's code to its form in JSON."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = escaped = char if char == "\n" or clean(char) == char else json.dumps(char)[1:-1]
        return escaped


_ESCAPED = _Escaped()


def clean_json(text: str) -> str:
    """Return a JSON document in which what `clean` would change is escaped, as `\\u202e`: the data stays the same."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPED)


def estimate(text: str) -> int:
    """About how many tokens a text has, with no tokenizer: one for four bytes of UTF-8, rounded up.

    >>> estimate("twelve bytes")
    3
    """
    return (len(text.encode()) + 3) // 4


def line(text: str, most: int = LINE) -> str:
    """Return `text` as one line of at most `most` columns, cut with "…", and `clean`. Wide characters take two columns, combining marks none."""
    if len(text) <= most and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # as most are
    head = text[: most * _READ]
    shown = clean(" ".join(head.split()))
    whole = len(head) == len(text)
    used = fits = 0
    for place, char in enumerate(shown):
        used += _columns(char)
        if used < most:
            fits = place + 1  # and the "…" after it
    if whole and used <= most:
        return shown
    return shown[:fits].rstrip(_JOINERS + " ") + "…"


def width(text: str) -> int:
    """Return the number of terminal columns of a line of text."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if char in _JOINERS or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


STATEMENT = ("says", "text", "statement", "title", "name", "summary", "description")
"""The fields of a content that can be its statement, by priority."""


def own_statement(content: Mapping[str, Any]) -> str | None:
    """Return the content's own statement: the first text among these fields. It is the text of a description without one."""
    for name in STATEMENT:
        if name in content:
            value = content[name]
            if isinstance(value, str) and value and not value.isspace():
                return value
    return None


def text_of_body(body: Mapping[str, Any]) -> str | None:
    """Return the text of a description in the journal: the given one, else the content's own statement."""
    text: str | None = body.get("text")
    return own_statement(body.get("content") or {}) if text is None else text


def given_text(content: Mapping[str, Any], text: str | None) -> str | None:
    """Return the text of a description besides its content: None if it only repeats the content's own statement."""
    return None if text is None or text == own_statement(content) else text


def described(content: Mapping[str, Any], text: str | None) -> str:
    """Return a description as text: its text, else its content's own statement, else its content."""
    text = text or own_statement(content)
    if text:
        return text
    values = list(content.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return said(content)


def because(reason: str | None) -> str:
    """Return the end of a line that gives a reason; "" without a reason."""
    return f" because: {reason}" if reason else ""


def said(value: Any) -> str:
    """Return a value of a content on one line, truncated."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_short(value[key])}" for key in list(value)[:8])
    return _short(value)


def _short(value: Any) -> str:
    return value[:200] if isinstance(value, str) else str(value)[:200]
