"""Shortens answers for requests with `fields=`, `brief=` or `part=`: a page that lists things does not need their full contents."""

from __future__ import annotations

from typing import Any

import orjson

from graphstore.errors import InvalidError
from graphstore.server.requests import JSON, Apart

_ALWAYS = frozenset({"cursor"})  # needed to request the next page
_WHOLE = frozenset({"cursor", "id", "source", "target"})  # needed for further requests
LEAST_BRIEF = 100
"""Characters. At this length, instants, words of lists and digests are never cut."""


def shortened(body: bytes, kind: bytes, asked: Apart) -> bytes:
    """Return an answer in plain JSON, shortened. Raise InvalidError for an invalid number, and for an answer that is not JSON.

    `fields`: keep only these in every record that has one of them. `brief`: cut longer texts, with `…` at the end. `part`: keep the first
    items of a list, or the last if negative.
    """
    if kind != JSON:
        raise InvalidError("fields, brief and part are of answers in plain JSON. Accept application/json.")
    names = frozenset(name.strip() for name in (asked.fields or "").split(",") if name.strip()) | _ALWAYS
    most = None
    if asked.brief is not None:
        most = int(asked.brief[:9]) if asked.brief.isdecimal() else 0
        if most < LEAST_BRIEF:
            raise InvalidError(
                f"brief {asked.brief!r} is no number of characters that can be. Give {LEAST_BRIEF} or more."
            )
    if asked.fields is not None and len(names) == 1:
        raise InvalidError(f"fields {asked.fields!r} names none. Give names with commas, or leave it out.")
    wanted = None if asked.fields is None else names
    value = orjson.loads(body)
    if asked.part is not None:
        if not asked.part.removeprefix("-").isdecimal() or not (part := int(asked.part[:10])):
            raise InvalidError(
                f"part {asked.part!r} is no number. Give 10 for the first ten, -10 for the last."
            )
        if isinstance(value, list):
            value = value[:part] if part > 0 else value[part:]
    return orjson.dumps(_less(value, wanted, most))


def _less(value: Any, names: frozenset[str] | None, most: int | None) -> Any:
    if isinstance(value, str):
        return value if most is None or len(value) <= most else value[:most] + "…"
    if isinstance(value, list):
        return [_less(each, names, most) for each in value]
    if isinstance(value, dict):
        if names is not None and not names.isdisjoint(value):
            value = {name: each for name, each in value.items() if name in names}
        return {
            name: each if name in _WHOLE and isinstance(each, str) else _less(each, names, most)
            for name, each in value.items()
        }
    return value
