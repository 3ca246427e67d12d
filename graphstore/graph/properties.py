"""The fields of contents as properties: which of them, under what names, each of one type. A view's graph in Cypher and files for other tools share this."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

FIELDS = 100
"""Content fields that become properties, the most frequent first; the others are in `content` only."""

FieldKind = Literal["text", "truth", "whole", "number", "json"]

_UNUSABLE = re.compile(r"[`\x00-\x1f\x7f]")
_LONGEST_NAME = 200


def chosen(contents: Iterable[Mapping[str, Any]]) -> tuple[list[str], int]:
    """Return the names of the fields that become properties, sorted, and how many are left out."""
    seen = Counter(name for content in contents for name in content)
    names = sorted(name for name, _ in seen.most_common(FIELDS))
    return names, len(seen) - len(names)


def property_name(name: str, taken: set[str]) -> str:
    """Return the property of a content field; one that clashes (whatever the case), or cannot be a name, gets `c_` in front. It is added to `taken`."""
    found = _UNUSABLE.sub("_", name)[:_LONGEST_NAME]
    if found != name or not found.strip():
        found = f"c_{found}"
    while found.casefold() in taken:
        found = f"c_{found}"
    taken.add(found.casefold())
    return found


def field_kind(values: Iterable[Any]) -> FieldKind:
    """One type for a field of all nodes: text, truth, 64-bit whole number or number when they agree, else JSON text. None is of every type."""
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if kinds <= {str}:
        return "text"
    if kinds == {bool}:
        return "truth"
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present):
        return "whole"
    if float in kinds and kinds <= {int, float}:
        return "number"
    return "json"
