"""Links with the same ends, and the rows of a version, are found in parts of long lists: the same as by looking at each."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from graphstore.core.index.index import Index
from tests.conftest import Clock, after

pytestmark = pytest.mark.in_process("looks into the index")

IDS = ("a", "b", "c")


@pytest.mark.parametrize("seed", range(15))
def test_parts_hold_what_looking_at_each_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphstore.core.index.index._FEW", 2)
    monkeypatch.setattr("graphstore.core.index.hulls.BRANCHING", 2)
    chance, clock = random.Random(seed), Clock("2026-02-01")
    with graphstore.open(":memory:", clock=clock) as store:
        for id in IDS:
            store.add_node("fact", {"n": 0}, id=id, valid_from=after(0))
        for _ in range(150):
            clock.move(days=1)
            with suppress(GraphStoreError, ZeroDivisionError):
                turn(store, chance)
            compared(store._core.index, chance)


def turn(store: GraphStore, chance: random.Random) -> None:
    """One write, or several that are rolled back."""
    source, target = chance.sample(IDS, 2)
    kind = chance.choice(("uses", "uses", "supports", "relates_to"))
    since = chance.randrange(60)
    over = {"valid_from": after(since), "valid_to": after(since + chance.randrange(1, 5))}
    act = chance.randrange(8)
    if act < 4:
        store.link(source, kind, target, **over, reason=chance.choice((None, "why")))  # type: ignore[arg-type]
    elif act == 4:
        store.revise(source, {"n": since}, **over)  # type: ignore[arg-type]
    elif act == 5 and (links := store.links_from(source)):
        store.unlink(chance.choice(links).id, **over)  # type: ignore[arg-type]
    elif act == 6:
        store.undo(store.changes()[-1], reason="no")
    else:
        with store.transaction():
            store.link(source, kind, target, **over)  # type: ignore[arg-type]
            store.revise(target, {"n": -since}, **over)  # type: ignore[arg-type]
            compared(store._core.index, chance)
            if chance.random() < 0.7:
                raise ZeroDivisionError


def compared(index: Index, chance: random.Random) -> None:
    """Asserts that every part is right, and that what is near a period is among what may be."""
    tx = chance.choice([index.last_tx, *index.o_tx[-1:], *chance.sample(list(index.t_tx), 1)])
    edges = [*index.k_from, *index.k_to, 0]
    near = (since := chance.choice(edges), since + chance.randrange(1, 10**12))
    for source in range(len(index.names)):
        for number in {index.v_num[ver] for ver in index.versions_of[source]}:
            rows = [row for row in index.rows_of[source] if index.v_num[index.r_ver[row]] == number]
            assert rows == index.rows_of_version(source, number)
        for target in range(len(index.names)):
            for kind in ("uses", "supports", "relates_to"):
                every = [
                    link
                    for link, said in enumerate(index.l_kind)
                    if (index.l_src[link], said, index.l_tgt[link]) == (source, kind, target)
                ]
                assert every == index.saying(source, kind, target)
                there = {
                    link
                    for link in every
                    for row in index.believed_link(link, tx)
                    if index.k_from[row] <= near[1] and near[0] <= index.k_to[row]
                }
                found = index.saying(source, kind, target, near, tx)
                assert there <= set(found) <= set(every)
                assert found == sorted(found)
