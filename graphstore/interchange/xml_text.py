"""Escapes text for XML: a forbidden character is written `_xHHHH_`, as in spreadsheets, so that it can be read back."""

from __future__ import annotations

import re

# characters that XML 1.0 forbids; the carriage return, which its readers replace by a newline; "_" where it would read as an escape
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4})")
# also a dot that could begin a row number, or end a name
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]|_(?=x[0-9A-Fa-f]{4})|\.(?=[0-9]*\Z)")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def escaped(text: str) -> str:
    """The text with `_xHHHH_` (four hex digits of UTF-16) for each character that XML cannot hold. Nearly every text is itself."""
    return _FORBIDDEN.sub(_units, text)


def name_of(text: str) -> str:
    """The text as the part of an XML name after its first letter: ASCII letters, digits, `_`, `-`, `.`; the others as `_xHHHH_`."""
    return _NO_NAME.sub(_units, text)


def unescaped(text: str) -> str:
    """The text that `escaped` or `name_of` was given."""
    found = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return found if found.isascii() else found.encode("utf-16", "surrogatepass").decode("utf-16")


def _units(match: re.Match[str]) -> str:
    raw = match[0].encode("utf-16-be")
    return "".join(f"_x{raw[at : at + 2].hex().upper()}_" for at in range(0, len(raw), 2))
