"""Memory: chunks in layers, idempotent, recalled at every coordinate, counted by layer."""

from __future__ import annotations

from datetime import timedelta

import pytest

import graphstore
from graphstore import ConflictError, InvalidError
from graphstore.memory import Memory
from graphstore.values.decay import Decay
from graphstore.values.layers import BUILT_IN, Layer
from tests.conftest import day

pytestmark = pytest.mark.served


@pytest.fixture
def memory(store):
    return Memory(store)


def texts(recalled):
    return [hit.node.text for hit in recalled]


# ---------------------------------------------------------------- layers


def test_there_are_six_layers():
    assert ["soul", "conversation", "tool", "group", "er1", "observation"] == list(BUILT_IN)
    assert [f"{name}:" for name in BUILT_IN] == [layer.prefix for layer in BUILT_IN.values()]
    assert {"conversation": 30, "tool": 14, "group": 60} == {
        name: layer.ttl.days for name, layer in BUILT_IN.items() if layer.ttl
    }
    assert {"soul", "er1", "observation"} == {name for name, layer in BUILT_IN.items() if layer.permanent}


def test_a_layer_of_ones_own_is_kept_in_the_store(tmp_path):
    notes = Layer("notes", "notes:", timedelta(hours=36))
    with graphstore.open(tmp_path / "m.gs") as store:
        Memory(store, layers=[notes]).remember("buy bread", layer="notes", source="pad")
    with graphstore.open(tmp_path / "m.gs") as store:
        memory = Memory(store, layers=[notes])

        assert notes == memory.layers["notes"]
        assert ["notes"] == [hit.layer for hit in memory.recall("bread")]
        assert 2 == store.stats()["transactions"]


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (Layer("soul", "ghost:"), "'soul' is there already"),
        (Layer("ghost", "soul:"), "that of layer 'soul'"),
        (Layer("soul", "soul:", timedelta(days=1)), "'soul' is there already"),
    ],
)
def test_a_clash_of_layers_is_an_error(memory, layer, words):
    with pytest.raises(ConflictError, match=words):
        memory.define_layer(layer)
    assert list(BUILT_IN) == list(memory.layers)


@pytest.mark.parametrize(
    "layer",
    [
        Layer("", "x:"),
        Layer("x", "x"),
        Layer("x", "x:y:"),
        Layer("X", "x:"),
        Layer("x", "x:", timedelta(0)),
        Layer("x", "x:", timedelta(days=1), True),
        "x",
    ],
)
def test_a_layer_that_cannot_be_is_an_error(memory, layer):
    with pytest.raises(InvalidError):
        memory.define_layer(layer)


def test_a_time_longer_than_any_is_refused_in_words(memory):
    with pytest.raises(InvalidError, match=r"of 365,000 days at most, or None for no end\."):
        memory.define_layer(Layer("long", "long:", timedelta.max))


# ---------------------------------------------------------------- remembering


def test_a_chunk_is_a_node(store, memory):
    node = memory.remember(
        "I answer briefly.", layer="soul", source="SOUL.md", tags=["style"], metadata={"line": 3}
    )

    assert ("chunk", "soul:SOUL.md", ("style",)) == (node.kind, node.source, node.tags)
    assert {"metadata": {"line": 3}} == node.content
    assert node == store.node(node.id)


def test_the_same_text_from_the_same_source_is_the_same_chunk(store, memory, clock):
    first = memory.remember("I answer briefly.", layer="soul", source="SOUL.md")
    clock.move(days=1)

    assert first.id == memory.remember("I answer briefly.", layer="soul", source="soul:SOUL.md").id
    assert first.id != memory.remember("I answer briefly.", layer="soul", source="USER.md").id
    assert first.id != memory.remember("I answer briefly.", layer="soul", source="SOUL.md", user="ada").id
    assert 3 == store.stats()["nodes"]
    assert 3 == store.stats()["transactions"]


def test_what_ceased_to_hold_and_is_said_again_is_a_new_chunk(store, memory, clock):
    first = memory.remember("A", layer="soul", source="f")
    clock.move(days=1)
    other = memory.remember("B", layer="soul", source="f")
    store.supersede(first.id, by=other.id)
    clock.move(days=1)
    store.end(other.id)
    again = memory.remember("A", layer="soul", source="f")

    assert again.id not in (first.id, other.id)
    assert again.id == memory.remember("A", layer="soul", source="f").id
    assert "superseded" == store.inspect(first.id).node.standing


def test_a_key_is_a_slot_of_the_layer_and_the_user(store, memory, clock):
    old = memory.remember("tea is best", layer="soul", user="ada", key="drink")
    bob = memory.remember("water is best", layer="soul", user="bob", key="drink")
    clock.move(days=1)
    new = memory.remember("coffee is best", layer="soul", user="ada", key="drink")
    same = memory.remember("Coffee is best!", layer="soul", user="ada", key="drink", source="elsewhere")

    assert [new.id] == [node.id for node in store.what_superseded(old.id).current]
    assert new.id == same.id
    assert 1 == store.inspect(new.id).confirmations
    assert "stands" == store.node(bob.id).standing
    assert [new.id] == [hit.node.id for hit in memory.recall("best drink", user="ada")]


def test_many_are_one_transaction_and_all_or_none(store, memory):
    nodes = memory.remember_many({"text": f"text {n}", "layer": "tool"} for n in range(5))

    assert 5 == len({node.id for node in nodes})
    assert 1 == store.stats()["transactions"]
    with pytest.raises(InvalidError, match="chunk 1: unknown layer 'tools'"):
        memory.remember_many([{"text": "a", "layer": "tool"}, {"text": "b", "layer": "tools"}])
    with pytest.raises(InvalidError, match="chunk 0: unknown field of a chunk 'words'"):
        memory.remember_many([{"words": "a", "layer": "tool"}])
    assert 5 == store.stats()["nodes"]
    assert [] == memory.remember_many([])


def test_remembering_joins_an_open_transaction(store, memory):
    with store.transaction():
        memory.remember("one", layer="tool")
        memory.remember_many([{"text": "two", "layer": "tool"}])
        assert ["one"] == texts(memory.recall("one"))

    assert 1 == store.stats()["transactions"]


@pytest.mark.parametrize(
    "wrong", [{"text": " "}, {"text": None}, {"layer": "souls"}, {"user": 3}, {"metadata": [1]}]
)
def test_wrong_chunks_are_refused(store, memory, wrong):
    with pytest.raises(InvalidError):
        memory.remember(**{"text": "a", "layer": "soul", **wrong})
    assert 0 == store.stats()["nodes"]


# ---------------------------------------------------------------- recalling


@pytest.fixture
def told(memory):
    memory.remember("login uses sessions", layer="soul", source="SOUL.md")
    memory.remember("ada asked about login", layer="conversation", user="ada", thread="t1")
    memory.remember("ada came back to the login", layer="conversation", user="ada", thread="t2")
    memory.remember("bob broke the login", layer="conversation", user="bob", thread="t1")
    memory.remember("login log: 200 OK", layer="tool")
    memory._store.add_node("fact", {}, id="fact", text="login is no chunk")
    return memory


def test_hits_are_chunks_and_say_how_they_were_found(told):
    recalled = told.recall("login")
    first = recalled.hits[0]

    assert 5 == len(recalled)
    assert {"soul", "conversation", "tool"} == {hit.layer for hit in recalled}
    assert ("stands", None) == (first.standing, first.valid_to)
    assert (0.0, None) == (first.vector_score, first.vector_rank)
    assert 1 == first.text_rank
    assert "full-text only: there is no embedder" == recalled.note


def test_layers_users_and_threads_choose(told):
    assert {"login uses sessions", "login log: 200 OK"} == set(
        texts(told.recall("login", layers=["soul", "tool"]))
    )
    assert 4 == len(told.recall("login", user="ada"))
    assert {"bob broke the login"} == set(texts(told.recall("login", user="bob", layers="conversation")))
    assert {"login uses sessions", "login log: 200 OK", "ada asked about login"} == set(
        texts(told.recall("login", user="ada", thread="t1"))
    )
    with pytest.raises(InvalidError, match="unknown layer 'souls'"):
        told.recall("login", layers="souls")


def test_what_is_left_out_is_no_way_either(store, memory):
    mine = memory.remember("mine about cookies", layer="conversation", user="ada")
    his = memory.remember("his about login", layer="conversation", user="bob")
    far = memory.remember("far away", layer="conversation", user="ada")
    store.link(mine.id, "related_to", his.id)
    store.link(his.id, "related_to", far.id)

    assert {mine.id, his.id, far.id} == {hit.node.id for hit in memory.recall("cookies")}
    assert {mine.id} == {hit.node.id for hit in memory.recall("cookies", user="ada")}
    assert [] == list(memory.recall("login", user="ada"))


def test_links_through_what_is_no_chunk_lead_to_chunks(store, memory):
    near = memory.remember("about cookies", layer="soul")
    store.add_node("fact", {}, id="fact", text="login")
    store.link(near.id, "derived_from", "fact")

    (hit,) = memory.recall("login")
    assert (near.id, "fact", 1) == (hit.node.id, hit.seed, len(hit.path))


def test_a_superseded_chunk_is_recalled_where_it_stood(store, memory, clock):
    clock.set("2026-01-01")
    old = memory.remember("the deploy day is friday", layer="soul", key="deploy day")
    clock.set("2026-01-30")
    new = memory.remember("the deploy day is tuesday", layer="soul", key="deploy day")
    clock.set("2026-02-10")

    assert [new.id] == [hit.node.id for hit in memory.recall("deploy day")]
    then = memory.recall("deploy day", valid="2026-01-10")
    assert [(old.id, day("2026-01-30"))] == [(hit.node.id, hit.valid_to) for hit in then]
    assert [old.id] == [
        hit.node.id for hit in memory.recall("deploy day", valid="2026-02-05", tx="2026-01-10")
    ]


# ---------------------------------------------------------------- counting


@pytest.mark.in_memory("its now goes on without a transaction")
def test_stats_tell_each_layer(told, clock):
    clock.move(days=13, hours=1)
    stats = {layer.layer: layer for layer in told.stats().layers}

    assert (3, 1) == (stats["conversation"].chunks, stats["tool"].chunks)
    assert (0, 1, 0) == (stats["conversation"].expiring, stats["tool"].expiring, stats["soul"].expiring)
    assert len("login log: 200 OK") == stats["tool"].bytes
    assert day("2026-02-01") == stats["soul"].oldest
    assert (0, None) == (stats["group"].chunks, stats["group"].oldest)
    assert (5, 50_000) == (told.stats().chunks, told.stats().cap)


def test_stats_of_a_view_tell_what_stood(store, memory, clock):
    node = memory.remember("gone soon", layer="soul")
    before = store.as_of()
    clock.move(days=1)
    store.retract(node.id, reason="wrong")

    assert (1, 0) == (memory.stats(before).chunks, memory.stats().chunks)


def test_the_cap_is_kept_in_the_store(store):
    assert 7 == Memory(store, cap=7).cap == Memory(store).cap
    with pytest.raises(InvalidError, match="cap 0"):
        Memory(store, cap=0)


# ---------------------------------------------------------------- filters


def test_memory_is_filtered_as_recall_is(store, clock):
    memory = Memory(store)
    memory.remember("the car is red", layer="tool", user="ana", source="file:a.md", tags=["cars"])
    clock.move(days=2)
    chunk = memory.remember("the car is blue", layer="tool", user="ana", source="mail:7")
    memory.remember("the car is green", layer="tool", user="bob", source="mail:8")

    def said(**filters):
        return [
            hit.node.text or hit.node.content.get("text")
            for hit in memory.recall("car", user="ana", **filters)
        ]

    assert ["the car is red"] == said(tag="cars")
    assert ["the car is blue"] == said(since=day("2026-01-03"), source=chunk.source)
    assert {"the car is red", "the car is blue"} == set(said(standing="any"))
    assert {"the car is red", "the car is blue"} == set(said(decay=Decay(half_life=1)))


def test_no_filter_shows_what_is_of_another_user(store):
    memory = Memory(store)
    memory.remember("the car is red", layer="tool", user="ana")
    memory.remember("the car is green", layer="tool", user="bob")

    for question in (
        "car",
        "car standing:any",
        "standing:any",
        "car standing:ended",
        "kind:chunk",
        "kind:chunk standing:any",
    ):
        found = memory.recall(question, user="ana")
        assert "green" not in str(found), question
        assert "green" not in str(memory.recall(question, user="nobody")), question
