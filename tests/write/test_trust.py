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


def test_who_has_no_rank_is_below_every_rank(said: GraphStore) -> None:
    with said.transaction(author="eve"):
        said.add_node("fact", {}, id="of-eve")
    with (
        pytest.raises(ConflictError, match=r"\(trust none\).*\(trust -1\)"),
        said.transaction(author="someone"),
    ):
        said.retract("of-eve", reason="a slip")
    with said.transaction(author="someone"):
        said.add_node("fact", {}, id="of-someone")
    with said.transaction(author="eve"):
        said.retract("of-someone", reason="a slip")


CLAIMED: dict[str, Callable[[GraphStore], object]] = {
    "revise": lambda s: s.revise("b", {"says": "c"}, source="ann"),
    "amend": lambda s: s.amend("b", {"says": "c"}, source="ann"),
    "correct": lambda s: s.add_node("fact", {}, id="x", corrects=["b"], source="ann"),
    "supersede": lambda s: s.add_node("fact", {}, id="x", supersedes=["b"], source="ann"),
    "slot": lambda s: s.add_node("fact", {"day": "sunday"}, key="day", source="ann"),
}


@pytest.mark.parametrize("author", ["eve", "nobody", None])
@pytest.mark.parametrize("how", CLAIMED)
def test_a_source_never_raises_a_rank(said: GraphStore, how: str, author: str | None) -> None:
    before = len(list(said.changes()))
    with pytest.raises(ConflictError, match="trust"), said.transaction(author=author):
        CLAIMED[how](said)
    assert before == len(list(said.changes()))


def test_a_source_lowers_a_rank(said: GraphStore) -> None:
    with pytest.raises(ConflictError, match="'ann' with source 'eve'"), said.transaction(author="ann"):
        said.revise("b", {"says": "c"}, source="eve")
    with said.transaction(author="ann"):
        said.add_node("fact", {"says": "a rumour"}, id="rumour", source="eve")
    with said.transaction(author="eve"):
        said.retract("rumour", reason="it was mine")


@pytest.mark.parametrize("author", ["eve", "nobody"])
def test_who_ranks_lower_may_not_forget_it(said: GraphStore, author: str) -> None:
    with said.transaction(author="ann"):
        said.revise("b", {"says": "c"})
    with pytest.raises(ConflictError, match="'ann' said"):
        said.erase("b", reason="asked", author=author)
    assert {"says": "c"} == said.node("b").content
    said.erase("b", reason="asked", author="bob")


def test_what_was_believed_once_is_not_forgotten_either(said: GraphStore) -> None:
    with said.transaction(author="ann"):
        said.retract("b", reason="a slip")
    with pytest.raises(ConflictError, match="'ann' said"):
        said.evict(ids=["b"])
    with pytest.raises(ConflictError, match="'ann' said"):
        said.evict(ids=["b"], keep_audit=False)
    with pytest.raises(ConflictError, match="'ann' said"):
        said.erase("b", reason="asked")


def test_the_ranks_are_of_who_set_them_last(said: GraphStore) -> None:
    with said.transaction(author="ann"):
        said.set_trust({"ann": 2, "bob": 1, "eve": -1})
    for author in ("bob", "eve", "nobody", None):
        with pytest.raises(ConflictError, match="'ann'"), said.transaction(author=author):
            said.set_trust({author or "x": 9})
    with said.transaction(author="ann"):
        said.set_trust({"ann": 2, "bob": 2})
    with said.transaction(author="bob"):
        said.set_trust({"ann": 2, "bob": 2, "eve": 1})


def test_nobody_ranks_himself_higher_by_the_ranks_of_another(said: GraphStore) -> None:
    with pytest.raises(ConflictError, match="may not rank itself 9"), said.transaction(author="eve"):
        said.set_trust({"ann": 1, "bob": 1, "eve": 9})


def test_what_a_higher_rank_did_is_not_undone(said: GraphStore) -> None:
    with said.transaction(author="ann"):
        said.unlink("link-1")
    tx = said.changes()[-1].tx
    with pytest.raises(ConflictError, match="the transaction"):
        said.undo(tx, reason="no", author="eve")
    said.undo(tx, reason="a slip", author="bob")


def test_the_source_of_the_most_trusted_part_is_kept_of_what_was_said_first_too(store: GraphStore) -> None:
    with store.transaction(author="ann"):
        store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01", valid_to="2026-01-10")
    store.set_trust({"ann": 1})
    store.revise("one", {"n": 2}, valid_from="2026-01-10", valid_to="2026-02-10", source="web")
    with store.transaction(author="ann"):
        told = store.revise("one", {"n": 3}, valid_from="2026-01-01", valid_to="2026-02-10")
    assert told.source is None
