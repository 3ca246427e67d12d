"""A store that is set to an embedder: all it says is found by its meaning, at every coordinate, and what has no vector yet is counted."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from graphstore.timeline import record_message

import graphstore
from graphstore import InvalidError, embedders
from graphstore.memory import Memory
from graphstore.memory.recall import Recalled, recall
from graphstore.search.model_vectors import hash_of
from graphstore.view import vector_search
from tests.conftest import Clock
from tests.support.disk import hex_in_files
from tests.support.embedding import AXES, Broken, Concepts
from tests.support.ledger_rows import rows

pytestmark = pytest.mark.in_process("its embedders are objects of the test")


def names(recalled: Recalled) -> list[str]:
    return [hit.node.id for hit in recalled]


def meant(recalled: Recalled) -> set[str]:
    return {hit.node.id for hit in recalled if hit.vector_score == 1}


def ended(store) -> None:
    """Wait for the thread that makes vectors."""
    for thread in threading.enumerate():
        if thread.name == "graphstore-vectors":
            thread.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


@pytest.fixture
def ready(monkeypatch):
    """Embedders by the names of packages, as `named` makes them."""
    made: dict[str, Concepts] = {}

    class Wider(Concepts):
        model, dimension = "wider", len(AXES) + 1

        def __call__(self, texts):
            return np.hstack([super().__call__(texts), np.zeros((len(texts), 1))])

    def named(name: str) -> Concepts:
        if name not in ("wordllama", "fastembed"):
            raise InvalidError.choice("embedder", name, embedders.NAMES)
        return made.setdefault(name, Concepts() if name == "wordllama" else Wider())

    monkeypatch.setattr(embedders, "named", named)
    embedders.ready.cache_clear()
    yield made
    embedders.ready.cache_clear()


# ---------------------------------------------------------------- everything that says something


def test_facts_events_messages_and_chunks_are_found_by_what_they_mean(store):
    embedders.lend(store, Concepts())
    store.add_node("fact", {"says": "the car is red"}, id="fact")
    store.record_event("deploy", "a truck was shipped", id="event")
    record_message(store, "TEXT", "my automobile is blue", id="message")
    chunk = Memory(store).remember("every vehicle: one car", layer="soul")
    store.add_node("fact", {"says": "bread is baked"}, id="other")

    found = recall(store, "automobile", 10, hops=0)

    assert {"fact", "event", "message", chunk.id} == meant(found)
    assert "full-text and vectors of 'concepts'" == found.note
    assert {"event"} == {hit.node.id for hit in recall(store, "automobile", 1, kinds="deploy", hops=0)}
    assert [chunk.id] == [hit.node.id for hit in Memory(store).recall("truck", 1)]


def test_every_version_is_found_where_it_stands_by_what_it_said(store, clock):
    embed = Concepts()
    embedders.lend(store, embed)
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    then = store.as_of()
    clock.move(days=1)
    store.revise("pet", {"says": "a truck sleeps"})

    assert (set(), {"pet"}) == (meant(recall(store, "puppy")), meant(recall(store, "automobile")))
    assert ({"pet"}, set()) == (meant(recall(then, "puppy")), meant(recall(then, "automobile")))
    assert 1 == embed.asked.count("a cat sleeps") == embed.asked.count("a truck sleeps")


def test_a_branch_is_asked_with_the_embedder_of_its_trunk(store):
    embedders.lend(store, Concepts())
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    branch = store.branch("what-if")
    branch.add_node("fact", {"says": "a dog barks"}, id="guard")

    assert {"pet", "guard"} == meant(recall(branch, "puppy"))
    assert {"pet"} == meant(recall(store, "puppy"))


def test_equal_texts_are_equally_near_and_come_in_the_order_of_their_ids(store):
    rng = np.random.default_rng(7)
    kept: dict[str, np.ndarray] = {}
    embedders.lend(store, lambda texts: [kept.setdefault(text, rng.standard_normal(33)) for text in texts])
    with store.transaction():
        for number in range(200):
            store.add_node("fact", {"says": f"text {number % 3}"}, id=f"n{number:03}")
    Memory(store).reembed()

    found = recall(store, "text 1", 60, hops=0, kinds="fact")

    near = sorted((hit for hit in found if hit.vector_rank), key=lambda hit: hit.vector_rank)
    assert [f"n{number:03}" for number in range(1, 180, 3)] == [hit.node.id for hit in near]
    assert 1 == len({hit.vector_score for hit in near})


def test_no_write_waits_for_an_embedder(store):
    embed = Concepts()
    embedders.lend(store, embed)
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    Memory(store).remember("a dog barks", layer="soul")

    assert [] == embed.asked
    assert embedders.Embedding(embedder="concepts", texts=2, missing=2) == embedders.embedding(store)
    recall(store, "puppy")
    assert 0 == embedders.embedding(store).missing


def test_the_embedder_is_asked_while_others_write(store):
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    written = threading.Event()

    class Patient(Concepts):
        def __call__(self, texts):
            writer = threading.Thread(
                target=lambda: (store.add_node("fact", {"says": f"bread {len(self.asked)}"}), written.set())
            )
            writer.start()
            assert written.wait(20)
            return super().__call__(texts)

    embedders.lend(store, Patient())

    assert "pet" in meant(recall(store, "puppy"))


# ---------------------------------------------------------------- what is missing


def many(store, count: int) -> None:
    with store.transaction():
        for number in range(count):
            store.add_node("fact", {"says": f"the car of {number}"}, id=f"n{number}")


def test_what_has_no_vector_yet_is_counted_and_made_beside(store):
    many(store, 30)
    start = threading.Event()

    class Slow(Concepts):
        def __call__(self, texts):
            if len(texts) > 1:
                assert start.wait(20)
            return super().__call__(texts)

    embedders.lend(store, Slow())
    found = recall(store, "automobile", 5)
    assert (
        "full-text and vectors of 'concepts'; 30 of 30 have no vector of it yet: found by words alone; no word here is 'automobile'"
        == found.note
    )
    start.set()
    ended(store)

    found = recall(store, "automobile", 5)
    assert ("full-text and vectors of 'concepts'; no word here is 'automobile'", 5) == (
        found.note,
        len(meant(found)),
    )
    assert embedders.Embedding(embedder="concepts", texts=30, missing=0) == embedders.embedding(store)


def test_a_store_that_is_closed_ends_what_is_made_beside(path):
    with graphstore.open(path) as store:
        many(store, 30)
        embedders.lend(store, Concepts())
        recall(store, "automobile")
    ended(store)
    with graphstore.open(path, embedder=Concepts()) as store:
        missing = embedders.embedding(store).missing
        recall(store, "automobile")
        ended(store)
        assert 0 == embedders.embedding(store).missing <= missing
        assert [] == store.notices


def test_words_find_on_when_the_embedder_fails(store):
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    embedders.lend(store, Broken())

    found = recall(store, "cat")

    assert (["pet"], "full-text only: the embedder 'concepts' failed (ConnectionError: the service is away)") == (
        names(found), found.note,
    )  # fmt: skip


def test_what_is_followed_in_parts_is_followed_whole(store, monkeypatch):
    monkeypatch.setattr(vector_search, "_PARSED", 7)
    many(store, 30)
    embedders.lend(store, Concepts())

    assert 30 == embedders.embedding(store).missing
    assert 30 == Memory(store).reembed()
    store.erase("n3", reason="asked for")
    assert (29, 0) == (embedders.embedding(store).texts, embedders.embedding(store).missing)
    assert 29 == len(meant(recall(store, "automobile", 40)))


@pytest.mark.parametrize("how", ["erase", "evict"])
def test_what_is_forgotten_leaves_no_vector(path, how):
    with graphstore.open(path, embedder=Concepts()) as store:
        store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
        store.record_event("deploy", "a car was shipped", id="event")
        assert {"event"} == meant(recall(store, "truck"))
        for name, text in (("pet", "a cat sleeps"), ("event", "a car was shipped")):
            assert [(name,)] == rows(path, f"SELECT id FROM vector WHERE text = x'{hash_of(text).hex()}'")
            if how == "erase":
                store.erase(name, reason="asked for")
            else:
                store.evict(ids=[name])
            assert not hex_in_files(path, hash_of(text).hex())
        assert set() == meant(recall(store, "truck")) == meant(recall(store, "dog"))
        assert 0 == embedders.embedding(store).texts


# ---------------------------------------------------------------- the setting


def test_the_embedder_is_kept_in_the_store(path, ready):
    with graphstore.open(path, embedder="wordllama") as store:
        store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
        assert {"pet"} == meant(recall(store, "puppy"))
        transactions = store.stats()["transactions"]
        embedders.set_embedder(store, "wordllama")
        assert transactions == store.stats()["transactions"]
    with graphstore.open(path) as store:
        assert {"pet"} == meant(recall(store, "puppy"))
        assert 1 == ready["wordllama"].asked.count("a cat sleeps")
    with graphstore.open(path, read_only=True) as store:
        assert {"pet"} == meant(recall(store, "puppy"))
        assert "wordllama" == embedders.embedding(store).embedder


def test_it_is_replaced_when_the_new_one_has_all(path, ready):
    with graphstore.open(path, embedder="wordllama") as store:
        many(store, 30)
        recall(store, "automobile")
        ended(store)
        start = threading.Event()

        embedders.set_embedder(store, "fastembed")
        wider = ready["fastembed"]
        ask = wider.__class__.__call__

        class Held(wider.__class__):
            def __call__(self, texts):
                if len(texts) > 1:
                    assert start.wait(20)
                return ask(self, texts)

        wider.__class__ = Held
        found = recall(store, "automobile", 5)
        assert ("full-text and vectors of 'concepts'; no word here is 'automobile'", 5) == (
            found.note, len(meant(found)),
        )  # fmt: skip
        assert {("concepts",)} == set(rows(path, "SELECT model FROM vector"))
        start.set()
        ended(store)
        found = recall(store, "automobile", 5)
        assert ("full-text and vectors of 'wider'; no word here is 'automobile'", 5) == (
            found.note, len(meant(found)),
        )  # fmt: skip
        assert [("wider",)] * 30 == rows(path, "SELECT model FROM vector")


def test_it_is_taken_off(store, ready):
    embedders.set_embedder(store, "wordllama")
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    embedders.set_embedder(store, None)

    assert "full-text only: there is no embedder; no word here is 'puppy'" == recall(store, "puppy").note
    assert "no embedder: texts are found by their words" == str(embedders.embedding(store))
    with pytest.raises(InvalidError, match="no embedder"):
        Memory(store).reembed()


def test_one_that_is_unknown_is_refused_and_one_that_is_not_here_is_told(store, ready):
    store.add_node("fact", {"says": "a cat sleeps"}, id="pet")
    with pytest.raises(InvalidError, match="unknown embedder 'word2vec'"):
        embedders.set_embedder(store, "word2vec")
    store.keep_setting("set_embedder", "embedder", ["openai"])

    assert recall(store, "cat").note.startswith("full-text only: unknown embedder 'openai'")


def test_reembed_makes_all_of_the_stores_vectors_at_once(path, ready):
    with graphstore.open(path, embedder="wordllama", clock=Clock("2026-01-01")) as store:
        many(store, 30)
        assert (30, 0) == (Memory(store).reembed(), Memory(store).reembed())
        assert "wordllama: 0 of 30 texts have no vector yet" == str(embedders.embedding(store))


def test_the_one_in_a_wheel_serves_a_store(store):
    pytest.importorskip("wordllama")
    embedders.set_embedder(store, "wordllama")
    store.add_node("fact", {"says": "The automobile is crimson."}, id="car")
    store.add_node("fact", {"says": "She baked bread on Sunday."}, id="bread")

    assert ["car"] == names(recall(store, "a red vehicle", 1, hops=0))
