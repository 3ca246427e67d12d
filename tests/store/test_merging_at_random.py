"""Two stores with random histories are merged in turns: the rows of both stay those of their chains, and in the end both are quiet."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from tests.conftest import Clock

pytestmark = [pytest.mark.in_process("merges folders of this machine"), pytest.mark.rest]


def act(store: GraphStore, draw: random.Random, clock: Clock, name: str) -> None:
    """Do one random thing; what the store refuses is not done."""
    clock.move(minutes=1)
    ids = [node.id for node in store.nodes()] or ["none"]
    one, other = draw.choice(ids), draw.choice(ids)
    new = {"id": f"{draw.choice([name, 'x'])}{draw.randrange(8)}", "valid_from": "2026-01-01"}
    more = {"key": f"k{draw.randrange(3)}"} if draw.random() < 0.3 else {"derived_from": one}
    acts = [
        lambda: store.add_node("fact", {"n": draw.randrange(5)}, **new),
        lambda: store.add_node("fact", {"n": draw.randrange(5)}, **new, **more),
        lambda: store.add_node("fact", {"n": draw.randrange(5)}, **new, supersedes=one),
        lambda: store.revise(one, {"n": draw.randrange(99)}, reason="better"),
        lambda: store.retract(one, reason="never"),
        lambda: store.end(one),
        lambda: store.link(one, draw.choice(["related_to", "supports"]), other, reason="so"),
        lambda: store.confirm(one, reason="looked"),
        lambda: store.supersede(one, by=other),
        lambda: store.record_event(
            "error", "it broke", fingerprint=f"f{draw.randrange(2)}", occurred_at=clock.now
        ),
        lambda: store.undo(draw.choice([*store.changes()][-5:]).tx, reason="wrong"),
        lambda: store.erase(one, reason="asked for") if draw.random() < 0.3 else None,
    ]
    with suppress(GraphStoreError, IndexError):
        draw.choice(acts)()


@pytest.mark.parametrize("seed", range(8))
def test_rows_follow_from_chains_and_both_come_to_rest(tmp_path: Path, seed: int) -> None:
    draw, clock = random.Random(seed), Clock()
    with graphstore.open(tmp_path / "a.gs", clock=clock, author="ana") as store:
        for _ in range(6 if seed % 2 else 0):
            act(store, draw, clock, "s")
    if seed % 2:
        shutil.copytree(tmp_path / "a.gs", tmp_path / "b.gs")
    with (
        graphstore.open(tmp_path / "a.gs", clock=clock, author="ana") as a,
        graphstore.open(tmp_path / "b.gs", clock=clock, author="bo") as b,
    ):
        for _ in range(6):
            for store, name in ((a, "a"), (b, "b")):
                for _ in range(draw.randrange(4)):
                    act(store, draw, clock, name)
            clock.move(minutes=1)
            into, other = draw.choice([(a, b), (b, a)])
            erased = {each.subject for each in into.changes() if each.verb == "erase"}
            assert into.merge_store(other, decide=lambda conflict: draw.choice(conflict.choices)).merged
            assert () == into.verify().problems
            assert {"erased"} >= {into.inspect(id).node.standing for id in erased}
        for _ in range(3):
            clock.move(minutes=1)
            last = [into.merge_store(other, decide="trunk").tx for into, other in ((a, b), (b, a))]
        assert [None, None] == last
