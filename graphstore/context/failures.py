"""What failed last of what a store does beside its answers, by name, until it goes well again: ticks, and what is done outside of them."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakKeyDictionary

_OF_STORES: WeakKeyDictionary[Hashable, dict[str, str]] = WeakKeyDictionary()


def note(store: object, name: str, error: str | None) -> None:
    """Keep what failed, for as long as the store is open in this process; None: it went well."""
    line = getattr(store, "_trunk", store)
    if not isinstance(line, Hashable):
        return
    if error is not None:
        _OF_STORES.setdefault(line, {})[name] = error
    else:
        _OF_STORES.get(line, {}).pop(name, None)


def last(store: object) -> dict[str, str]:
    """What failed last, by name."""
    line = getattr(store, "_trunk", store)
    return dict(_OF_STORES.get(line, {})) if isinstance(line, Hashable) else {}
