"""Trust by author: who may take back, end or replace what somebody said, links as well as nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphstore import ConflictError, GraphStore

pytestmark = pytest.mark.served


@pytest.fixture
def said(store: GraphStore) -> GraphStore:
    """Said by `ann` before anybody had a rank; a later value of hers superseded an earlier one."""
    with store.transaction(author="ann"):
        store.add_node("fact", {"day": "monday"}, id="monday", key="day", valid_from="2026-01-01")
        store.add_node("fact", {"says": "b"}, id="b", valid_from="2026-01-01")
        store.link("monday", "related_to", "b", id="link-1")
    with store.transaction(author="ann"):
        store.add_node("fact", {"day": "friday"}, id="friday", key="day", valid_from="2026-01-10")
    store.set_trust({"ann": 1, "bob": 1, "eve": -1})
    return store


TAKEN_BACK: dict[str, Callable[[GraphStore], object]] = {
    "unlink": lambda s: s.unlink("link-1"),
    "unlink a part": lambda s: s.unlink("link-1", valid_from="2026-02-10"),
    "retract": lambda s: s.retract("b", reason="a slip"),
    "amend": lambda s: s.amend("b", {"says": "c"}),
    "revise the first thing said": lambda s: s.revise("monday", {"day": "sunday"}, valid_from="2026-01-01", valid_to="2026-01-05"),
    "retract what supersedes": lambda s: s.retract("friday", reason="a slip"),
}  # fmt: skip


@pytest.mark.parametrize("author", ["eve", "nobody", None])
@pytest.mark.parametrize("how", TAKEN_BACK)
def test_who_ranks_lower_may_not_take_it_back(said: GraphStore, how: str, author: str | None) -> None:
    before = len(list(said.changes()))
    with pytest.raises(ConflictError, match="trust"), said.transaction(author=author):
        TAKEN_BACK[how](said)
    assert before == len(list(said.changes()))
    assert "link-1" in {link.id for link in said.links_from("monday")}


@pytest.mark.parametrize("author", ["ann", "bob:phone"])
@pytest.mark.parametrize("how", TAKEN_BACK)
def test_who_ranks_as_high_may(said: GraphStore, how: str, author: str) -> None:
    before = len(list(said.changes()))
    with said.transaction(author=author):
        TAKEN_BACK[how](said)
    assert before < len(list(said.changes()))


def test_a_link_of_a_more_trusted_author_stays_when_its_node_would_let_it_go(store: GraphStore) -> None:
    with store.transaction(author="eve"):
        store.add_node("fact", {}, id="old", valid_from="2026-01-01")
        store.add_node("fact", {}, id="new", valid_from="2026-01-02")
    with store.transaction(author="ann"):
        store.supersede("old", by="new", valid_from="2026-01-03")
    store.set_trust({"ann": 1})
    with pytest.raises(ConflictError, match="'ann' said"), store.transaction(author="eve"):
        store.retract("new", reason="a slip")
    assert ["new"] == [node.id for node in store.what_superseded("old").current]


def test_no_name_has_no_rank_even_where_somebody_ranks_below_none(said: GraphStore) -> None:
    said.add_node("fact", {}, id="of-nobody")
    with pytest.raises(ConflictError, match=r"\(trust -1\).*\(trust 0\)"), said.transaction(author="eve"):
        said.retract("of-nobody", reason="a slip")
    with said.transaction(author="someone else"):
        said.retract("of-nobody", reason="a slip")


def test_the_source_of_the_most_trusted_part_is_kept_of_what_was_said_first_too(store: GraphStore) -> None:
    with store.transaction(author="ann"):
        store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01", valid_to="2026-01-10")
    store.set_trust({"ann": 1})
    store.revise("one", {"n": 2}, valid_from="2026-01-10", valid_to="2026-02-10", source="web")
    with store.transaction(author="ann"):
        told = store.revise("one", {"n": 3}, valid_from="2026-01-01", valid_to="2026-02-10")
    assert told.source is None
