"""A node written as README teaches is found by its text wherever it is read, and journaled as it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, recall
from tests.conftest import Clock
from tests.support.ledger_rows import rows

pytestmark = pytest.mark.served


@pytest.fixture
def told(store: GraphStore, clock: Clock) -> GraphStore:
    """One that says something and gives no text, one of which both are given, one that states nothing, one that was replaced."""
    clock.set("2026-01-01")
    store.add_node("fact", {"says": "logins are tokens", "ttl": 30}, id="says")
    store.add_node("fact", {"title": "the plan"}, id="given", text="another text")
    store.add_node("fact", {"port": 80}, id="mute")
    store.add_node("fact", {"name": "old", "says": " "}, id="gone")
    clock.set("2026-02-01")
    store.add_node("fact", {"statement": "new"}, id="now", supersedes="gone")
    return store


TEXTS = {"says": "logins are tokens", "given": "another text", "mute": None, "now": "new"}


def test_models_tables_and_views_agree_on_the_text(told: GraphStore) -> None:
    assert {node.id: node.text for node in told.nodes()} == TEXTS
    assert {row["n.id"]: row["n.text"] for row in told.query("MATCH (n:Node) RETURN n.id, n.text")} == TEXTS
    assert dict(zip(*told.to_arrow().select(["id", "text"]).to_pydict().values(), strict=True)) == TEXTS
    assert [{"n.text": "old"}] == told.query("MATCH (n:Absent) RETURN n.text").rows()
    assert {id: attributes["text"] for id, attributes in told.to_networkx().nodes(data=True)} == TEXTS | {
        "gone": "old"
    }
    versions = told.query_tables("MATCH (v:Version) RETURN v.node_id AS id, v.text AS text")
    assert {row["id"]: row["text"] for row in versions} == TEXTS | {"gone": "old"}
    for id in (*TEXTS, "gone"):
        assert [(TEXTS | {"gone": "old"})[id]] == list({row.text for row in told.versions(id)})
        assert told.inspect(id).node.text == told.history(id)[-1].text


def test_what_was_said_is_found_by_its_text(told: GraphStore) -> None:
    asked = "MATCH (n:Node) WHERE n.text CONTAINS 'tokens' RETURN n.id AS id"
    assert [{"id": "says"}] == told.query(asked).rows()
    with told.transaction():
        told.add_node("fact", {"says": "more tokens"}, id="open")
        assert [{"id": "open"}, {"id": "says"}] == told.query(f"{asked} ORDER BY id").rows()
    assert {"says", "open"} == {hit.node.id for hit in recall.recall(told, "tokens", 5)}


def test_a_text_that_was_not_given_follows_the_content(told: GraphStore) -> None:
    told.revise("says", {"says": "logins are keys"}, text=None)
    assert "logins are keys" == told.node("says").text
    assert ["logins are tokens", "logins are keys"] == [version.text for version in told.versions("says")]


def test_the_same_without_the_text_is_the_same_value_of_a_slot(told: GraphStore) -> None:
    first = told.add_node("fact", {"says": "on Monday"}, key="day")
    assert first.id == told.add_node("fact", {"says": "on Monday"}, key="day").id


def test_what_is_erased_says_nothing(told: GraphStore) -> None:
    told.erase("says", reason="private")

    assert None is told.inspect("says").node.text
    assert {"mute": None, "says": None} == {
        row["id"]: row["text"]
        for row in told.query_tables(
            "MATCH (v:Version) WHERE v.text IS NULL RETURN v.node_id AS id, v.text AS text"
        )
    }


def test_the_journal_keeps_what_was_given(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "m.gs") as store:
        store.add_node("fact", {"says": "only the content"})
        assert "only the content" == store.nodes()[0].text
    assert not [data for (data,) in rows(tmp_path / "m.gs", "SELECT data FROM body") if b'"text"' in data]
