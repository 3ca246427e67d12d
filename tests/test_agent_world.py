"""The world that agents are asked about: the store was told it as the oracle was, and both say the same of it, at many coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agent_world import NOW, World, told_to


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = told_to(":memory:")
    with made.store:
        yield made


def test_the_store_and_the_rows_say_the_same_at_many_coordinates(world: World) -> None:
    valids, txs = world.oracle.instants()
    for v, t in [*zip(valids[::40], txs[::35], strict=False), (valids[-1], txs[-1]), (NOW, NOW)]:
        view = world.store.as_of(valid=v, tx=t)

        expected = {(row["id"], row["number"], row["standing"]) for row in world.oracle.nodes_at(v, t)}
        assert expected == {(node.id, node.number, node.standing) for node in view.nodes()}
        for id in [*world.oracle.nodes][::9]:
            if not world.oracle.known(id, t):
                continue
            found, ours = view.what_superseded(id), world.oracle.what_superseded(id, v, t)
            assert ours["standing"] == found.standing
            assert ours["current"] == sorted(each.id for each in found.current)
            steps = [
                (step.how, step.link.id, step.node.id) for step in found.chain if step.link and step.node
            ]
            assert ours["steps"] == steps
