"""What each version asserts, remembered beside the index: reading a sentence costs more than all else that `contradictions` does.

The content of a version never changes, so what it says is worked out once for all coordinates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphstore.values import assertions

if TYPE_CHECKING:
    from graphstore.search.source import Source
    from graphstore.values.assertions import Assertion

_MOST = 200_000  # versions that are remembered


class ShortAssertion(NamedTuple):
    """An assertion in short: a number for what it is of, its value, and whether it may disagree with an earlier one."""

    of: int
    value: str
    renews: bool


class Asserted:
    """The assertions of one store's versions. Threads that read them at once may each work one out, alike."""

    def __init__(self) -> None:
        self._state: Hashable = None
        self._gone = 0
        self._said: dict[int, tuple[ShortAssertion, ...]] = {}

    def said(self, core: Source, rows: Iterable[int]) -> Iterator[tuple[int, tuple[ShortAssertion, ...]]]:
        """Each row, and what its version says, in short."""
        index = core.index
        if self._state != core.state or self._gone != len(index.gone):
            self._said = {}  # another one: what was forgotten is not to be remembered, nor by whom is about to
            self._state, self._gone = core.state, len(index.gone)
        known, committed = self._said, index.mark().versions
        for row in rows:
            ver = index.r_ver[row]
            found = known.get(ver)
            if found is None:
                found = tuple(
                    ShortAssertion(hash(each.of), each.value, each.renews) for each in read(core, row)
                )
                if ver < committed and len(known) < _MOST:  # an open transaction may yet be undone
                    known[ver] = found
            yield row, found


def read(core: Source, row: int) -> list[Assertion]:
    """Return what the version of a row says, in full."""
    index = core.index
    ver, ent = index.r_ver[row], index.r_ent[row]
    body = core.body(index.v_pos[ver], index.v_len[ver])
    if not body:
        return []
    return assertions.assertions(
        index.kind[ent], index.key[ent], body["content"], body.get("text"), body.get("tags", ())
    )
