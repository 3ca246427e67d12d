"""The ids that the store makes: how they look, and what may be the beginning of one.

An id is itself: only at the interfaces for people is a beginning taken for the whole, and only of these. An id that somebody chose is compared whole.
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
    """Return True if the store may have made this id: of a node, `evt_…` of an event, `lnk_…` of a link."""
    return _WHOLE.fullmatch(id) is not None


def may_begin_one(text: str) -> bool:
    """Return True if a text may be the beginning of such an id, and is no whole one."""
    return len(text) >= SHORTEST_BEGINNING and _BEGUN.fullmatch(text) is not None


def whole(find: Callable[[str], str], given: Any) -> Any:
    """Return an id as a person gave it, or several: whole, where a unique beginning of a generated id was given. The interfaces for people do this before they call,
    since no call takes a beginning for an id. `find` (`View.whole_id`) is asked for what may be a beginning alone."""
    if isinstance(given, str):
        return find(given) if may_begin_one(given.partition("-v")[0]) else given
    return [whole(find, one) for one in given] if isinstance(given, list | tuple) else given
