"""A filter of links by a caller's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, get_args

from graphstore.errors import InvalidError
from graphstore.values.vocabulary import Group, Vocabulary, strength_of

GROUPS: tuple[str, ...] = get_args(Group)
UNSAID = 3  # the strength of a link that has none


class LinkFilter(NamedTuple):
    """Selects links. `kinds`: stored names, None for all; `turned`: stored names of kinds that were requested by their inverse names."""

    kinds: frozenset[str] | None = None
    turned: frozenset[str] = frozenset()
    group: str | None = None
    strength: int | None = None
    confidence: str | None = None
    created_by: str | None = None

    def admits(self, strength: int | None, is_inferred: bool, created_by: str) -> bool:
        """Return True if a link with these properties is selected. Its kind is not checked."""
        return (
            (self.strength is None or (strength or UNSAID) >= self.strength)
            and (self.confidence is None or (self.confidence == "inferred") == is_inferred)
            and (self.created_by is None or created_by == self.created_by)
        )


ALL = LinkFilter()


def link_filter(
    vocabulary: Vocabulary,
    kinds: Iterable[str] | str,
    group: str | None = None,
    strength: int | None = None,
    confidence: str | None = None,
    created_by: str | None = None,
) -> LinkFilter:
    """Return a filter from a caller's arguments. Raises InvalidError for an unknown kind, group or confidence."""
    narrowed = (group, strength, confidence, created_by) != (None, None, None, None)
    if isinstance(kinds, tuple) and not kinds and not narrowed:
        return ALL
    straight, turned = vocabulary.named(kinds)
    if group is not None and group not in GROUPS:
        raise InvalidError.choice("group of links", group, GROUPS)
    if confidence not in (None, "explicit", "inferred"):
        raise InvalidError.choice("confidence", confidence, ("explicit", "inferred"))
    chosen = straight if straight or turned else None
    return LinkFilter(chosen, turned, group, strength_of(strength), confidence, created_by)
