"""Choose the content fields that become properties, with their names and a type each. Graphs of views and exported files share this."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

FIELDS = 100
"""The number of content fields that become properties, the most frequent first; the others are in `content` only."""

FieldKind = Literal["text", "truth", "whole", "number", "json"]

_UNUSABLE = re.compile(r"[`\x00-\x1f\x7f]")
_LONGEST_NAME = 200


def chosen(contents: Iterable[Mapping[str, Any]]) -> tuple[list[str], int]:
    """Return the sorted names of the fields that become properties, and the number of the others."""
    seen = Counter(name for content in contents for name in content)
    names = sorted(name for name, _ in seen.most_common(FIELDS))
    return names, len(seen) - len(names)


def property_name(name: str, taken: set[str]) -> str:
    """Return the property name of a content field and add it to `taken`. A name that clashes, ignoring case, or is unusable gets the prefix `c_`."""
    found = _UNUSABLE.sub("_", name)[:_LONGEST_NAME]
    if found != name or not found.strip():
        found = f"c_{found}"
    while found.casefold() in taken:
        found = f"c_{found}"
    taken.add(found.casefold())
    return found


def field_kind(values: Iterable[Any]) -> FieldKind:
    """Return the one type of a field of all nodes: text, truth, 64-bit whole number or number if the values agree, else JSON text. None fits every type."""
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
