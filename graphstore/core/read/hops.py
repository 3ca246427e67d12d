"""One hop: the links at one end of a thing, read as triples that begin (or end) with it.

A link is stored once, in one direction. A symmetric one is read from both ends; any other is read in reverse only when requested by its
inverse name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphstore.core.read.rows import Rows
from graphstore.core.read.working_sight import WorkingSight
from graphstore.values.link_filter import ALL, LinkFilter, link_filter
from graphstore.values.models import Link


def links_from(sight: WorkingSight, id: str, kinds: Iterable[str] | str = (), **filters: Any) -> list[Link]:
    """Return the links with this thing as their source, see `Reader.links_from`. Raises NotFoundError for an unknown id."""
    return _links(sight, id, link_filter(sight.core.vocabulary, kinds, **filters), begins=True)


def backlinks_to(sight: WorkingSight, id: str, kinds: Iterable[str] | str = (), **filters: Any) -> list[Link]:
    """Return the links with this thing as their target, see `Reader.backlinks_to`. Raises NotFoundError for an unknown id."""
    return _links(sight, id, link_filter(sight.core.vocabulary, kinds, **filters), begins=False)


def _links(sight: WorkingSight, id: str, wanted: LinkFilter, *, begins: bool) -> list[Link]:
    """The links that hold here and, as sentences, begin with an entity (or end with it), by (valid_from, tx_from, id)."""
    index, ent = sight.index, sight.resolve(id)[0]
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


def _admits(sight: Rows, row: int, wanted: LinkFilter) -> bool:
    index = sight.index
    claim = index.k_claim[row]
    kind = sight.core.vocabulary.kinds[index.l_kind[index.k_link[row]]]
    said = index.c_strength[claim], bool(index.c_inferred[claim]), index.c_by[claim]
    return (wanted.group is None or kind.group == wanted.group) and wanted.admits(*said)
