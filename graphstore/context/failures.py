"""The last errors of a store's background work, by name, until it succeeds again: of ticks and of other work."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakKeyDictionary

_OF_STORES: WeakKeyDictionary[Hashable, dict[str, str]] = WeakKeyDictionary()


def note(store: object, name: str, error: str | None) -> None:
    """Record the error of a piece of work while the store is open in this process; None clears it."""
    line = getattr(store, "_trunk", store)
    if not isinstance(line, Hashable):
        return
    if error is not None:
        _OF_STORES.setdefault(line, {})[name] = error
    else:
        _OF_STORES.get(line, {}).pop(name, None)


def last(store: object) -> dict[str, str]:
    """Return the last errors by name."""
    line = getattr(store, "_trunk", store)
    return dict(_OF_STORES.get(line, {})) if isinstance(line, Hashable) else {}
