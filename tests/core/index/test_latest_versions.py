"""What was said last, kept from write to write, is what laying all that was ever said gives."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from graphstore import GraphStore
from graphstore.core.index.latest_versions import LatestVersions, Said
from tests.conftest import Clock, after

pytestmark = pytest.mark.in_process("looks into the index")


class _Failed(Exception):
    pass


def _joined(pieces: list[Said]) -> list[Said]:
    found: list[Said] = []
    for start, stop, ver in pieces:
        if found and found[-1][1:] == (start, ver):
            found[-1] = (found[-1][0], stop, ver)
        else:
            found.append((start, stop, ver))
    return found


def _span(rng: random.Random) -> dict[str, str]:
    start = rng.randrange(60)
    stop = start + rng.choice([1, 3, 10, 1_000])
    return {"valid_from": after(start)} | ({} if stop > 500 else {"valid_to": after(stop)})


def _act(store: GraphStore, rng: random.Random, number: int) -> None:
    id = rng.choice(["one", "one", "one", "two"])
    acts: list[Callable[[], object]] = [
        lambda: store.revise(id, {"n": number}, **_span(rng)),
        lambda: store.amend(id, {"n": number}, **_span(rng)),
        lambda: store.retract(id, reason="wrong", **_span(rng)),
        lambda: store.revise(id, {"n": number}),
    ]
    rng.choice(acts)()


def _turn(store: GraphStore, clock: Clock, rng: random.Random, number: int, instants: list[str]) -> None:
    clock.move(seconds=1)
    what = rng.random()
    if what < 0.35 and instants:
        store.undo(rng.choice(instants[-4:]), reason="a slip")
    elif what < 0.5:
        with pytest.raises(_Failed), store.transaction():
            _act(store, rng, number)
            _act(store, rng, -number)
            raise _Failed
    elif what < 0.65:
        with store.transaction():
            _act(store, rng, number)
            _act(store, rng, -number)
    else:
        _act(store, rng, number)


def test_what_is_lifted_shows_what_lay_beneath() -> None:
    said = LatestVersions(reversible=True)
    said.write(0, 100, 1)
    said.write(10, 50, 2)
    said.write(20, 30, 3)
    said.hide(2)

    assert said.pieces == [(0, 10, 1), (10, 20, 1), (20, 30, 3), (30, 50, 1), (50, 100, 1)]

    said.hide(3)

    assert _joined(said.pieces) == [(0, 100, 1)]
