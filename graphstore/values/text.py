"""Short texts of values: one line, truncated, without characters that could disturb the text around it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

LINE = 60
"""Columns of a line of text that is cut."""
_READ = 4  # characters looked at for each column shown: enough for marks that take no column
_JOINERS = "\u200c\u200d"  # they hold letters and emoji together, and turn no text round


def line(text: str, most: int = LINE) -> str:
    """`text` as one line of at most `most` columns, cut with "…". Wide characters take two columns, combining marks none.

    Control characters and those that reorder the text around them are left out; what no XML may hold becomes "�".
    """
    if len(text) <= most and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # as most are
    head = text[: most * _READ]
    shown = "".join(_plain(char) for char in " ".join(head.split()))
    whole = len(head) == len(text)
    used = fits = 0
    for place, char in enumerate(shown):
        used += _columns(char)
        if used < most:
            fits = place + 1  # and the "…" after it
    if whole and used <= most:
        return shown
    return shown[:fits].rstrip(_JOINERS + " ") + "…"


def _plain(char: str) -> str:
    if char in _JOINERS or char.isprintable():
        return char
    return "" if unicodedata.category(char) in ("Cc", "Cf") else "�"


def _columns(char: str) -> int:
    if char in _JOINERS or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def described(content: Mapping[str, Any], text: str | None) -> str:
    """A description as text: its text, else its content."""
    if text:
        return text
    values = list(content.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return said(content)


def said(value: Any) -> str:
    """A value of a content on one line, truncated."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_short(value[key])}" for key in list(value)[:8])
    return _short(value)


def _short(value: Any) -> str:
    return value[:200] if isinstance(value, str) else str(value)[:200]
