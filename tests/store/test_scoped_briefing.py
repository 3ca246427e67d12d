"""A briefing within scopes tells nothing of what is outside, whatever was done there."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from graphstore.store.scoped_store import ScopedStore
from tests.conftest import Clock
from tests.store.test_scoped_store import MARK, SCOPES, World
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("reads a part of the store")


@pytest.mark.parametrize("seed", seeds(2, 6, 60))
def test_nothing_outside_is_told(disk_store: GraphStore, clock: Clock, seed: int) -> None:
    disk_store.define_kind("wears")
    world = World(disk_store, clock, seed)
    for _ in range(40):
        world.step()
    disk_store.brief("ana", budget_tokens=50_000)
    inside = ScopedStore(disk_store, SCOPES)
    told = [inside.brief("ana", budget_tokens=50_000)]
    for _ in range(40):
        world.step()
    told += [
        inside.brief("ana", budget_tokens=50_000),
        inside.brief("ana", since="2020-01-01", budget_tokens=50_000),
    ]

    assert told[0].last_visit is None
    assert [] == [found.text for found in told if MARK in found.model_dump_json()]
    ids = {line.id for found in told for one in found.sections for line in one.lines}
    assert ids and ids <= {*world.inside}
