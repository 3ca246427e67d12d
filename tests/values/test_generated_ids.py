"""How the ids look that the store makes, and what is a beginning of one."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from graphstore.values.generated_ids import is_one, may_begin_one, whole


@pytest.mark.in_process("looks at ids that the store makes, whatever the door")
def test_what_the_store_makes_is_one_and_its_beginnings_may_be(store: GraphStore) -> None:
    for at in (None, "1950-06-01"):
        node = store.add_node("fact", {}).id
        event = store.record_event("deploy", "x", occurred_at=at).event.id
        link = store.link(event, "uses", node).id
        for id in (node, event, link):
            assert is_one(id)
            assert not may_begin_one(id)
            assert all(may_begin_one(id[:length]) for length in range(6, len(id)))
            assert not any(may_begin_one(id[:length]) for length in range(6))


@pytest.mark.parametrize(
    "id", ["auth", "US/Hawaii", "0123456789ABCDEF", "evt_one", "lnk-cause", "sessions", "deploy_v1", ""]
)
def test_what_somebody_chose_is_neither(id: str) -> None:
    assert not is_one(id)
    assert not may_begin_one(id)


def test_only_what_may_be_a_beginning_is_asked_for() -> None:
    asked: list[str] = []

    def find(text: str) -> str:
        asked.append(text)
        return f"<{text}>"

    assert ["auth", "<0123456>", "<0123456-v2>", 7] == whole(find, ("auth", "0123456", "0123456-v2", 7))
    assert (None, "0123456789abcdef") == (whole(find, None), whole(find, "0123456789abcdef"))
    assert ["0123456", "0123456-v2"] == asked
