"""One hop: the links at one end of a thing, read as triples that begin (or end) with it.

A link is stored once, in one direction. A symmetric one is read from both ends; any other is read in reverse only when requested by its
inverse name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, get_args

from graphstore.core.read import kernel
from graphstore.core.read.rows import Side
from graphstore.core.read.sight import Core, Sight
from graphstore.errors import InvalidError
from graphstore.values.models import Link
from graphstore.values.period import Instant
from graphstore.values.vocabulary import Group, Vocabulary, strength_of

GROUPS: tuple[str, ...] = get_args(Group)
UNSAID = 3  # the strength of a link that has none


class LinkFilter(NamedTuple):
    """Which links are wanted. `kinds` None: all, under their stored names; `turned`: stored kinds requested by their inverse names."""

    kinds: frozenset[str] | None = None
    turned: frozenset[str] = frozenset()
    group: str | None = None
    strength: int | None = None
    confidence: str | None = None
    created_by: str | None = None


SAME_TOPIC = "same_topic"
ALL = LinkFilter()
TOPIC = LinkFilter(frozenset({SAME_TOPIC}))


def link_filter(
    vocabulary: Vocabulary,
    kinds: Iterable[str] | str,
    group: str | None = None,
    strength: int | None = None,
    confidence: str | None = None,
    created_by: str | None = None,
) -> LinkFilter:
    """A filter from a caller's arguments. Raises InvalidError for an unknown kind, group or confidence."""
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


def links_at(
    core: Core, coordinate: tuple[Instant, Instant], id: str, wanted: LinkFilter, *, begins: bool
) -> list[Link]:
    """The links at one end of the thing with an id, at (valid, tx): otherwise as `links`. Raises NotFoundError for an unknown id."""
    by_kernel = kernel.links_from if begins else kernel.backlinks_to
    if by_kernel is not None and wanted is ALL and (found := by_kernel(core, id, *coordinate)) is not None:
        return found
    sight = Sight(core, *coordinate)
    return links(sight, sight.resolve(id)[0], wanted, begins=begins)


def links(sight: Sight, ent: int, wanted: LinkFilter, *, begins: bool) -> list[Link]:
    """The links that hold here and, as sentences, begin with an entity (or end with it), by (valid_from, tx_from, id)."""
    index = sight.index
    near, far = (index.out, index.into) if begins else (index.into, index.out)
    ends = (
        index.l_tgt if begins else index.l_src
    )  # the far end of a symmetric link that is stored the other way round
    found = [(row, "") for row in sight.rows_of_links(near, ent, wanted.kinds)]
    even = ent in index.even
    if even:
        for link in index.perhaps(index.even, ent, sight.valid, sight.tx):
            kind = index.l_kind[link]
            if ends[link] == ent and (wanted.kinds is None or kind in wanted.kinds):
                found += [(row, kind) for row in (sight.held(link),) if row >= 0]
    if wanted.turned:
        kinds = sight.core.vocabulary.kinds
        rows = sight.rows_of_links(far, ent, wanted.turned)
        found += [(row, kinds[index.l_kind[index.k_link[row]]].inverse) for row in rows]
    if wanted.group is not None or wanted[3:] != ALL[3:]:
        found = [(row, turned) for row, turned in found if _admits(sight, row, wanted)]
    if len(found) > 1 and (even or wanted.turned):
        found.sort(key=lambda each: sight.link_order(each[0]))
    return [sight.link(row, turned) for row, turned in found]


def stored(sight: Sight, side: Side, ent: int) -> list[Link]:
    """The links on one side of an entity as they are stored, symmetric ones and `same_topic` left out."""
    index = sight.index
    return [
        sight.link(row)
        for row in sight.rows_of_links(side, ent)
        if index.l_kind[index.k_link[row]] not in index.symmetric
    ]


def _admits(sight: Sight, row: int, wanted: LinkFilter) -> bool:
    index = sight.index
    claim = index.k_claim[row]
    kind = sight.core.vocabulary.kinds[index.l_kind[index.k_link[row]]]
    inferred = index.c_inferred[claim]
    return (
        (wanted.group is None or kind.group == wanted.group)
        and (wanted.strength is None or (index.c_strength[claim] or UNSAID) >= wanted.strength)
        and (wanted.confidence is None or (wanted.confidence == "inferred") == bool(inferred))
        and (wanted.created_by is None or index.c_by[claim] == wanted.created_by)
    )
