"""What is not known is refused with what was perhaps meant, at the same cost in any store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphstore
from graphstore import NotFoundError
from tests.conftest import Clock
from tests.support.steps import growth

pytestmark = pytest.mark.in_process("counts the steps inside this process")


def test_what_is_not_known_is_said_at_the_same_cost_in_a_large_store(clock: Clock) -> None:
    def refusal(size: int) -> Callable[[], str]:
        store = graphstore.open(":memory:", clock=clock)
        store.bulk_load(versions=[{"node_id": f"server-{n:05}", "content": {}} for n in range(size)])
        store.add_node("fact", {}, id="deploy-day")
        link = store.link("server-00007", "uses", "deploy-day").id

        def refuse() -> str:
            with pytest.raises(NotFoundError) as no_node:
                store.node("server-0007")
            with pytest.raises(NotFoundError) as no_link:
                store.unlink(f"{link}x")
            assert link in str(no_link.value)
            return str(no_node.value)

        assert "Nearest: 'server-00070'" in refuse()
        store.add_node("fact", {}, id="deploy-night")
        with pytest.raises(NotFoundError, match="Nearest: 'deploy-night'"):
            store.node("deploy-nigth")
        with pytest.raises(NotFoundError) as before:
            store.as_of(tx=store.node("deploy-day").tx_from).node("deploy-nigth")
        assert "night'." not in str(before.value).removeprefix("no node or event 'deploy-nigth'")
        return refuse

    assert growth(refusal, 1_000, 4_000) < 1.3
