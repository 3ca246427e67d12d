"""A message that was not authorized is in the log, and nowhere else: not recalled, not searched, not observed, not told to an agent, whichever way it came."""

from __future__ import annotations

import json

import pytest

import graphstore
from graphstore import context, observer, recall, timeline
from graphstore.context.observer import Observer
from graphstore.imports import gasoline
from graphstore.memory import Memory
from graphstore.memory.embedders import lend
from tests.support.embedding import Concepts

pytestmark = pytest.mark.in_process("its embedder and its compressor are functions of the test")

SECRET = "the vault opens with the word marmalade"


def recorded(store, folder):
    timeline.record_message(store, "TEXT", SECRET, sender="eve", thread="t1", authorized=False, id="secret")


def recorded_as_an_event(store, folder):
    store.record_event("TEXT", SECRET, sender="eve", thread="t1", authorized=False, id="secret")


def of_a_type_of_its_own(store, folder):
    store.record_event("whisper", SECRET, sender="eve", thread="t1", authorized=False, id="secret")


def loaded_in_bulk(store, folder):
    row = {
        "id": "secret", "type": "TEXT", "description": SECRET, "sender": "eve", "thread": "t1",
        "authorized": False, "occurred_at": "2026-01-31",
    }  # fmt: skip
    store.bulk_load(events=[row])


def imported(store, folder, authorized=False):
    row = {
        "id": "secret", "type": "TEXT", "description": SECRET, "sender": "eve", "thread": "t1",
        "authorized": authorized, "timestamp": "2026-01-31T00:00:00Z",
    }  # fmt: skip
    file = folder / "log.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    gasoline.import_gasoline(store, file)


def imported_from_a_table_that_has_numbers(store, folder):
    imported(store, folder, 0)


def enqueued_as_an_event(store, folder):
    recorded(store, folder)
    assert Observer(store, threshold=1).enqueue(store.event("secret"), user="ada", thread="t1") is None


def merged_from_a_branch(store, folder):
    store.branch("draft")
    recorded(store.on("draft"), folder)
    store.merge("draft")


WAYS = [
    recorded,
    recorded_as_an_event,
    of_a_type_of_its_own,
    loaded_in_bulk,
    imported,
    imported_from_a_table_that_has_numbers,
    enqueued_as_an_event,
    merged_from_a_branch,
]


def found(view, text, **how):
    return [hit.node.id for hit in recall.recall(view, text, **how)]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_is_nowhere_but_in_the_log(store, tmp_path, clock, way):
    timeline.record_message(
        store, "TEXT", "what is the word of the vault?", sender="ada", thread="t1", id="asked"
    )
    way(store, tmp_path)
    clock.move(minutes=1)
    told = []
    watching = Observer(
        store, lambda messages: told.extend(each.text for each in messages) or "- [LOW] x", threshold=9
    )
    watching.enqueue(store.event("asked"), user="ada", thread="t1")
    watching.enqueue(store.event("secret"), user="ada", thread="t1")
    watching.observe("ada", "t1")

    assert False is store.event("secret").authorized
    assert "secret" in [event.id for event in timeline.messages(store, authorized=False)]
    for text in (
        "marmalade vault",
        '"opens with"',
        "secret",
        "type:TEXT",
        "eve",
        "what is the word of the vault?",
    ):
        for how in ({}, {"standing": "any"}, {"kinds": "TEXT"}, {"standing": "any", "kinds": "whisper"}):
            assert "secret" not in found(store, text, **how), (text, how)
        assert "secret" not in [hit.node.id for hit in recall.mentions(store, text)]
    assert [] == list(timeline.messages(store, text="marmalade"))
    assert ["secret"] == [event.id for event in timeline.messages(store, text="marmalade", authorized=False)]
    assert "secret" in [event.id for event in timeline.messages(store)]
    assert ["what is the word of the vault?"] == told
    assert "marmalade" not in context.context(store, "ada", "t1", "marmalade vault").text
    assert (
        "marmalade" not in context.context(store, "ada", "t1", "", conversation=timeline.messages(store)).text
    )
    assert "marmalade" not in context.context(store, "eve", None, "vault").text
    assert "secret" not in [message.id for message in observer.messages(store, "ada", "t1")]


def test_no_embedder_gets_it_and_it_is_near_to_nothing(store):
    lend(store, embed := Concepts())
    timeline.record_message(
        store, "TEXT", "my password is bread", sender="eve", authorized=False, id="secret"
    )
    timeline.record_message(store, "TEXT", "the login page", sender="ada", id="said")

    assert ["said"] == found(store, "signin")
    assert not any("bread" in text for text in embed.asked)


def test_no_way_leads_through_it(store):
    timeline.record_message(store, "TEXT", "the vault", sender="eve", authorized=False, id="secret")
    store.add_node("fact", {"says": "bananas are yellow"}, id="beyond")
    store.link("beyond", "derived_from", "secret")

    assert [] == found(store, "vault")


def test_it_is_withheld_in_the_transaction_that_records_it(store):
    with store.transaction():
        recorded(store, None)
        assert [] == found(store, "marmalade")


def test_one_that_was_queued_before_is_not_compressed(store, clock):
    """A queue that already holds one, as a store written before has it."""
    given = []
    watching = Observer(
        store, lambda messages: given.append([each.text for each in messages]) or "- [LOW] x", threshold=9
    )
    watching.enqueue("hello", user="ada", thread="t1")
    recorded(store, None)
    (batch,) = store.nodes("message_batch")
    store.link(batch.id, "derived_from", "secret", created_by="observer")
    clock.move(minutes=1)
    watching.observe("ada", "t1")

    assert [["hello"]] == given


def test_it_stays_withheld_when_the_store_is_opened_again(tmp_path):
    with graphstore.open(tmp_path / "m.gs") as store:
        recorded(store, None)
        store.add_node("fact", {"says": "marmalade is sweet"}, id="sweet")
    with graphstore.open(tmp_path / "m.gs") as store:
        assert ["sweet"] == found(store, "marmalade")
        assert () == Memory(store).recall("marmalade", hops=0).hits


def test_what_was_asked_inside_a_transaction_is_asked_again_once_that_was_rolled_back(store):
    store.add_node("fact", {"says": "the vault has a door"}, id="door")
    with pytest.raises(ZeroDivisionError), store.transaction():
        recorded(store, None)
        assert [hit.node.id for hit in recall.recall(store, "marmalade vault")] == ["door"]
        1 / 0  # noqa: B018
    timeline.record_message(
        store, "TEXT", SECRET, sender="eve", thread="t1", id="open"
    )  # under the same number

    assert {hit.node.id for hit in recall.recall(store, "marmalade vault")} == {"door", "open"}
