"""Cache what each version asserts: parsing its sentences costs more than everything else that `contradictions` does.

The content of a version never changes, so its assertions are the same at all coordinates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphstore.values import assertions

if TYPE_CHECKING:
    from graphstore.search.source import Source
    from graphstore.values.assertions import Assertion

_MOST = 200_000  # versions in the cache


class ShortAssertion(NamedTuple):
    """A short assertion: the hash of its subject, its value, and whether it may disagree with an earlier one."""

    of: int
    value: str
    renews: bool


class Asserted:
    """Caches the assertions of one store's versions. Threads that read concurrently may compute the same assertions twice."""

    def __init__(self) -> None:
        self._state: Hashable = None
        self._gone = 0
        self._said: dict[int, tuple[ShortAssertion, ...]] = {}

    def said(self, core: Source, rows: Iterable[int]) -> Iterator[tuple[int, tuple[ShortAssertion, ...]]]:
        """Yield each row with the short assertions of its version."""
        index = core.index
        if self._state != core.state or self._gone != len(index.gone):
            self._said = {}  # another state: assertions of forgotten contents must not stay cached
            self._state, self._gone = core.state, len(index.gone)
        known, committed = self._said, index.mark().versions
        for row in rows:
            ver = index.r_ver[row]
            found = known.get(ver)
            if found is None:
                found = tuple(
                    ShortAssertion(hash(each.of), each.value, each.renews) for each in read(core, row)
                )
                if ver < committed and len(known) < _MOST:  # an open transaction may still be undone
                    known[ver] = found
            yield row, found


def read(core: Source, row: int) -> list[Assertion]:
    """Return the full assertions of the version of a row."""
    index = core.index
    ver, ent = index.r_ver[row], index.r_ent[row]
    body = core.body(index.v_pos[ver], index.v_len[ver])
    if not body:
        return []
    return assertions.assertions(
        index.kind[ent], index.key[ent], body["content"], body.get("text"), body.get("tags", ())
    )
