"""Recognize ids that the store generates, and possible beginnings of them.

Only interfaces for people accept a beginning instead of an id, and only of a generated one. An id that a user chose must be given in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

SHORTEST_BEGINNING = 6
"""Fewer characters are never taken for the beginning of an id."""
_WHOLE = re.compile(r"[0-9a-f]{16}|evt_-?[0-9]+_[0-9a-f]{8}|lnk_[0-9a-f]{16}")
_BEGUN = re.compile(r"[0-9a-f]{6,15}|evt_-?[0-9]+(?:_[0-9a-f]{0,7})?|lnk_[0-9a-f]{2,15}")


def is_one(id: str) -> bool:
    """Return True if the store may have generated this id: of a node, `evt_…` of an event, `lnk_…` of a link."""
    return _WHOLE.fullmatch(id) is not None


def may_begin_one(text: str) -> bool:
    """Return True if a text may be the beginning of such an id, but not all of it."""
    return len(text) >= SHORTEST_BEGINNING and _BEGUN.fullmatch(text) is not None


def whole(find: Callable[[str], str], given: Any) -> Any:
    """Return an id as given by a person, or several, with unique beginnings of generated ids completed. Interfaces for people call this before a call, since
    no call accepts a beginning. `find` (`View.whole_id`) is only called for a possible beginning."""
    if isinstance(given, str):
        return find(given) if may_begin_one(given.partition("-v")[0]) else given
    return [whole(find, one) for one in given] if isinstance(given, list | tuple) else given
