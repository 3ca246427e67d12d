"""Normalize keys, and the names by which things are compared: slots of keys, and topics of keys, tags and texts."""

from __future__ import annotations

import re

from graphstore.errors import InvalidError

_VERSION = re.compile(r"(?P<topic>.+)_v(?P<number>[0-9]+)\Z")
_GAP = re.compile(r"\W+")


def topic_name(text: str) -> str:
    """Return the normal form by which keys, tags and topics are compared: that of a key. A text without letters and digits stays itself."""
    plain = text.strip().lower()
    if plain.isascii() and plain.isidentifier() and plain[0] != "_" != plain[-1]:
        return plain  # as most are
    return _GAP.sub("_", plain).strip("_") or plain


def slot_name(key: str) -> str:
    """Return the normal form of a key: lower case, with `_` for runs of other characters."""
    if not isinstance(key, str):
        raise InvalidError(f"key {key!r} is no text.")
    name = re.sub(r"\W+", "_", key.strip().lower()).strip("_")
    if not name:
        raise InvalidError(f"key {key!r} holds no letter or digit.")
    return name


def version_of(key: str | None) -> tuple[str | None, int | None]:
    """Return the topic of a key and its version number, if it has one.

    >>> version_of("auth_v2"), version_of("auth")
    (('auth', 2), ('auth', None))
    """
    found = None if key is None else _VERSION.match(key)
    return (found["topic"], int(found["number"])) if found else (key, None)
