"""What a thing is worth beside its words: the turns around it, who said it, when it was, and what it is called."""

from __future__ import annotations

from unittest import mock

import pytest

from benchmarks.retrieval import __main__ as retrieval
from benchmarks.retrieval.memories import memory
from graphstore.events.timeline import record_message
from graphstore.memory.memory import Memory
from graphstore.memory.recall import recall
from graphstore.view import ranking

pytestmark = pytest.mark.in_process("switches rankings off")


def names(store, text: str, **more) -> list[str]:
    return [hit.node.id for hit in recall(store, text, **more)]


def said(store, *turns: tuple[str, str], thread: str = "t", day: str = "2026-01-02") -> None:
    for number, (sender, text) in enumerate(turns):
        record_message(
            store, "TEXT", text, sender=sender, thread=thread, occurred_at=day, id=f"{thread}{number}"
        )


TALK = (
    ("Ana", "What have you been up to?"),
    ("Ben", "I joined a pottery class!"),
    ("Ana", "Nice! Where is it?"),
    ("Ben", "At the hall in Alder Street, on Saturdays."),
    ("Ana", "I see."),
    ("Ben", "And you?"),
)


@pytest.mark.parametrize("thread", ["t", None])
def test_turns_around_a_match_are_found_too(store, thread):
    for number, (sender, text) in enumerate(TALK):
        record_message(
            store, "TEXT", text, sender=sender, thread=thread, occurred_at="2026-01-02", id=f"t{number}"
        )

    found = recall(store, "pottery")

    assert ["t1", "t0", "t2", "t3"] == [hit.node.id for hit in found]
    assert {"t1"} == {hit.seed for hit in found}


def test_turns_of_another_thread_are_not_beside(store):
    said(store, ("Ana", "pottery"), thread="a")
    said(store, ("Ana", "hello"), ("Ben", "hi"), thread="b")

    assert ["a0"] == names(store, "pottery")


def test_facts_told_one_after_another_are_not_beside(store):
    with store.transaction():
        store.add_node("fact", {}, id="a", text="pottery")
        store.add_node("fact", {}, id="b", text="tea")

    assert ["a"] == names(store, "pottery")


def test_who_is_asked_about_is_who_said_it(store):
    said(store, ("Ana", "I bought a bike"), thread="a")
    said(store, ("Ben", "I bought a bike"), thread="b")
    said(store, ("Cleo", "Ben bought what?"), thread="c")

    assert ["b0", "a0"] == [id for id in names(store, "what bike did Ben buy") if id != "c0"]


def test_what_was_when_the_question_says_comes_first(store):
    store.add_node("fact", {}, id="a", text="the index was rebuilt", valid_from="2025-01-10")
    store.add_node("fact", {}, id="b", text="the index was rebuilt", valid_from="2025-03-10")

    assert ["b", "a"] == names(store, "what was rebuilt in March")
    assert ["a", "b"] == names(store, "what was rebuilt in January 2025")


def test_ids_keys_and_codes_come_before_words(store):
    store.add_node("fact", {}, id="word", text="ticket-12 ticket-12 is about tea")
    store.add_node("fact", {}, id="ticket-12", text="coffee")
    store.add_node("fact", {}, id="x", key="Deploy Day", text="friday")
    store.add_node("fact", {}, id="ticket-123", text="milk")

    assert ["ticket-12", "word"] == names(store, "ticket-12")
    assert ["x"] == names(store, "deploy_day")
    assert "ticket-123" == names(store, "icket-123")[0]


def test_what_rooms_keep_twice_is_found_when_its_kind_is_named(store):
    store.add_node("fact", {}, id="a", text="tea is hot")
    store.add_node("segment", {"source": {"segment": {"entryCount": 1}}}, id="b", text="tea tea tea")

    assert ["a"] == names(store, "tea")
    assert ["b"] == names(store, "tea", kinds="segment") == names(store, "tea kind:segment")

    store.add_node("segment", {}, id="own", text="tea of one's own")
    store.add_node("summary", {}, id="of a user", text="tea, all in all")
    summary = store.fold(["a"], into={"says": "tea in short"})
    assert {"a", "own", "of a user"} == set(names(store, "tea"))
    assert {"of a user", summary.id} == set(names(store, "tea", kinds="summary"))


def test_a_phrase_and_an_excluded_word_hold_for_what_links_reach(store):
    store.add_node("fact", {}, id="a", text="login by tokens")
    store.add_node("fact", {}, id="b", text="legacy sessions")
    store.link("a", "related_to", "b")

    assert ["a", "b"] == names(store, "login")
    assert ["a"] == names(store, "login -legacy")


def test_no_ranking_that_is_added_lowers_recall():
    texts = memory(noise=300, chat=300)
    asked = [each for each in texts.asked if each.answers]
    store = retrieval.stored(texts)
    steps = [retrieval.PLAIN]
    for name in ("BESIDE", "SPEAKER", "DATED", "NAMED"):
        steps.append({**steps[-1], name: getattr(ranking, name)})

    found = [retrieval.measured(retrieval.plain(store, **step), asked)["all"][2] for step in steps]

    assert sorted(found) == found
    with mock.patch.object(ranking, "LINKS", 0.0):
        assert retrieval.measured(retrieval.ours(store), asked)["all"][2] <= found[-1]


def test_turns_of_one_instant_are_beside_as_they_were_recorded(store):
    ids = ["k", "c", "x", "a", "z", "b"]
    for id, (sender, text) in zip(ids, TALK, strict=True):
        record_message(store, "TEXT", text, sender=sender, thread="t", occurred_at="2026-01-02", id=id)

    assert {"k", "c", "x", "a"} == set(names(store, "pottery"))


def test_chunks_of_a_thread_are_turns(store):
    memory_of = Memory(store)
    for text in ("I joined a pottery class!", "Where is it?"):
        memory_of.remember(text, layer="conversation", thread="t")
    memory_of.remember("Another thing.", layer="conversation", thread="u")

    assert ["I joined a pottery class!", "Where is it?"] == [
        hit.node.text for hit in memory_of.recall("pottery")
    ]


def test_what_is_told_later_changes_no_past_answer(store, clock):
    said(store, *TALK)
    store.add_node("fact", {}, id="my-ticket-123", text="milk")
    past = store.as_of()
    before = [
        (hit.node.id, hit.score)
        for text in ("pottery", "ticket-123", "ben class")
        for hit in recall(past, text)
    ]

    clock.move(days=1)
    for number in range(9):
        record_message(
            store,
            "TEXT",
            "pottery again",
            sender="Ben",
            thread="t",
            occurred_at="2026-01-02",
            id=f"sa{number}",
        )
    store.add_node("fact", {}, id="ticket-1234", key="ticket-123", text="tea")
    store.add_node("fact", {}, id="ticket-123", text="tea")

    after = [
        (hit.node.id, hit.score)
        for text in ("pottery", "ticket-123", "ben class")
        for hit in recall(past, text)
    ]
    assert before == after
    assert before[:1] != [(hit.node.id, hit.score) for hit in recall(store, "ticket-123")][:1]
