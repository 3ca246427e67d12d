"""A filter that is no text is refused: nothing could equal it, and an empty answer would be taken for a fact."""

from __future__ import annotations

from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.errors import InvalidError

pytestmark = pytest.mark.in_process("bytes are in no request, and `scan` is of a store here")

NO_TEXT = (["fact"], 5, True, b"fact")


@pytest.fixture
def known(store: GraphStore) -> GraphStore:
    store.add_node("fact", {"says": "releases go out on Tuesdays"}, id="tuesdays", tags=["release"])
    store.record_event("error", "the build broke")
    return store


@pytest.mark.parametrize("value", NO_TEXT)
@pytest.mark.parametrize("name", ["kind", "key", "scope", "tag"])
@pytest.mark.parametrize("read", ["nodes", "scan"])
def test_a_filter_of_nodes_that_is_no_text_is_refused(
    known: GraphStore, read: str, name: str, value: Any
) -> None:
    with pytest.raises(InvalidError, match=rf"^{name} .* is no text"):
        getattr(known, read)(**{name: value})


@pytest.mark.parametrize("value", NO_TEXT)
@pytest.mark.parametrize("name", ["type", "pattern"])
def test_a_filter_of_events_that_is_no_text_is_refused(known: GraphStore, name: str, value: Any) -> None:
    with pytest.raises(InvalidError, match=rf"^{name} .* is no text"):
        known.events(**{name: value})


@pytest.mark.parametrize("value", NO_TEXT)
def test_a_kind_of_a_table_over_time_that_is_no_text_is_refused(known: GraphStore, value: Any) -> None:
    with pytest.raises(InvalidError, match=r"^kind .* is no text"):
        known.history_table(value)


def test_a_filter_that_nothing_equals_finds_nothing(known: GraphStore) -> None:
    assert [] == known.nodes("plan") == known.nodes(tag="") == known.events("fix")
    assert ["tuesdays"] == [node.id for node in known.nodes("fact", scope="", tag="release")]
