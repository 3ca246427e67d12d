"""What was said last of a thing, seen at a glance where its rows show all of it, is what laying it out tells."""

from __future__ import annotations

import contextlib
import random

import pytest

from graphstore import ConflictError, GraphStore, NotFoundError
from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index

pytestmark = pytest.mark.in_process("looks into the index")

Span = tuple[int, int]


def day(number: int) -> str:
    return f"2025-01-{number:02}"


def laid_out(index: Index, ent: int, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Span]]:
    with monkeypatch.context() as patch:
        patch.setattr(Index, "_shows_all_said", lambda *_: False)
        return {ver: parts for ver, parts in index.said_last(ent, Mark(versions=1, rows=1)).items() if parts}


@pytest.mark.parametrize("seed", range(40))
def test_what_a_glance_tells_is_what_was_said_last(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, index = random.Random(seed), store._core.index
    store.add_node("fact", {"n": 0}, id="a", valid_from=day(10), valid_to=day(20))
    with store.transaction():
        for number in range(1, 7):
            start = chance.choice([1, 10, 20])
            stop = chance.choice([start + 3, start + 10])
            with contextlib.suppress(NotFoundError, ConflictError):
                if chance.random() < 0.2:
                    store.retract("a", valid_from=day(start), valid_to=day(stop), reason="a slip")
                else:
                    store.revise("a", {"n": number}, valid_from=day(start), valid_to=day(stop))
            found = {
                ver: parts for ver, parts in index.said_last(0, Mark(versions=1, rows=1)).items() if parts
            }
            assert laid_out(index, 0, monkeypatch) == found


def test_a_row_that_the_next_one_replaces_whole_is_seen_at_a_glance(store: GraphStore) -> None:
    index = store._core.index
    store.add_node("fact", {"n": 0}, id="a", valid_from=day(1))
    with store.transaction():
        store.revise("a", {"n": 1}, valid_from=day(1))
        assert index._shows_all_said(0, index.rows_of[0])
        store.retract("a", reason="a slip")
        assert not index._shows_all_said(0, index.rows_of[0])
