"""LangGraph's store on ours: it answers as LangGraph's own in memory does, and knows the past besides."""

from __future__ import annotations

import asyncio
import random

import pytest

base = pytest.importorskip("langgraph.store.base", reason="the package langgraph-checkpoint is not installed")

from langgraph.store.memory import InMemoryStore  # noqa: E402

from graphstore import InvalidError  # noqa: E402
from graphstore.adapters.langgraph import LangGraphStore  # noqa: E402

pytestmark = pytest.mark.served

ALICE = ("users", "alice")


def keys(items):
    return [item.key for item in items]


def test_it_answers_as_the_store_in_memory_that_langgraph_ships(store):
    """Random operations on both, among names that are easily mixed up."""
    chance = random.Random(7)
    ours, theirs = LangGraphStore(store), InMemoryStore()
    namespaces = [("a",), ("a", "b"), ("a/b",), ("a%2Fb", "c"), ("ab",), ("a", "b", "ü x")]
    names = ["k", "K", "k/1", "k-v2", "k%2Dv2", "-v1", "ü", "k\n"]
    filters = [None, {"n": 3}, {"n": {"$gte": 2, "$lt": 4}}, {"n": {"$ne": 1}}, {"deep": {"x": [1, 2]}}]
    for _ in range(150):
        namespace, name = chance.choice(namespaces), chance.choice(names)
        if chance.random() < 0.3:
            ours.delete(namespace, name)
            theirs.delete(namespace, name)
        else:
            value = {
                "n": chance.randrange(5),
                "says": f"about {name}",
                "deep": {"x": [1, chance.randrange(3)]},
            }
            ours.put(namespace, name, value)
            theirs.put(namespace, name, value)
        prefix, wanted = namespace[: chance.randrange(3)], chance.choice(filters)
        for read in (
            lambda kept, at=(namespace, name): (found := kept.get(*at)) and found.value,
            lambda kept, at=prefix, wanted=wanted: {
                (item.namespace, item.key): item.value for item in kept.search(at, filter=wanted, limit=99)
            },
        ):
            assert read(ours) == read(theirs)
    for asked in (
        {},
        {"prefix": ("a",)},
        {"prefix": ("a", "*")},
        {"suffix": ("b",)},
        {"max_depth": 1},
        {"limit": 2, "offset": 1},
    ):
        standing = {item.namespace for item in theirs.search((), limit=999)}
        assert ours.list_namespaces(**asked) == [
            found for found in theirs.list_namespaces(**asked) if asked or found in standing
        ]


def test_the_async_twin_says_the_same(store):
    memory = LangGraphStore(store)

    async def story():
        await memory.aput(ALICE, "food", {"likes": "pizza"})
        await memory.aput(ALICE, "drink", {"likes": "tea"})
        await memory.adelete(ALICE, "drink")
        found = (
            await memory.aget(ALICE, "food"),
            await memory.asearch(("users",)),
            await memory.aget(ALICE, "x"),
        )
        return *found, await memory.alist_namespaces()

    food, all_, none, namespaces = asyncio.run(story())

    assert food.value == {"likes": "pizza"} and keys(all_) == ["food"]
    assert none is None and namespaces == [ALICE]


def test_each_put_is_a_version_and_the_past_stays_readable(store, clock):
    memory = LangGraphStore(store)
    memory.put(ALICE, "food", {"likes": "pizza"})
    before = clock.now
    clock.move(days=1)
    memory.put(ALICE, "food", {"likes": "sushi"})
    created, updated = memory.get(ALICE, "food").created_at, memory.get(ALICE, "food").updated_at
    clock.move(days=1)
    memory.delete(ALICE, "food")

    past = memory.as_of(valid=before)
    assert memory.get(ALICE, "food") is None
    assert past.get(ALICE, "food").value == {"likes": "pizza"}
    assert past.search(("users",))[0].value == {"likes": "pizza"}
    assert (updated - created).days == 1
    assert memory.as_of(tx=before).list_namespaces() == [ALICE]
    with pytest.raises(InvalidError, match="read only"):
        past.put(ALICE, "food", {})


def test_a_batch_is_one_transaction_and_its_last_put_of_an_item_counts(store):
    memory = LangGraphStore(store)

    answers = memory.batch(
        [
            base.PutOp(ALICE, "a", {"n": 1}),
            base.GetOp(ALICE, "a"),
            base.PutOp(ALICE, "a", {"n": 2}),
            base.PutOp(ALICE, "b", {"n": 3}),
        ]
    )

    assert answers == [None] * 4
    assert memory.get(ALICE, "a").value == {"n": 2}
    assert len({change.tx for change in store.changes()}) == 1


def test_a_time_to_live_ends_an_item_and_reading_lengthens_it_only_when_asked(store, clock):
    memory = LangGraphStore(store)
    memory.put(ALICE, "code", {"n": 1}, ttl=10)
    clock.move(minutes=9)
    assert memory.get(ALICE, "code") is not None
    memory.get(ALICE, "code", refresh_ttl=True)
    clock.move(minutes=9)
    assert keys(memory.search(ALICE)) == ["code"]
    clock.move(minutes=2)
    assert memory.get(ALICE, "code") is None and memory.search(ALICE) == []

    memory.put(ALICE, "code", {"n": 1})
    clock.move(days=9)
    assert memory.get(ALICE, "code").value == {"n": 1}


def test_search_by_words_keeps_to_the_namespace_the_filter_and_the_page(store):
    memory = LangGraphStore(store)
    for n in range(6):
        memory.put(ALICE, f"n{n}", {"says": f"the billing service is late {n}", "even": n % 2 == 0})
    memory.put(("users", "alicia"), "x", {"says": "the billing service is quick"})
    memory.put(ALICE, "hidden", {"says": "the billing service, unseen"}, index=False)
    store.add_node("fact", {"says": "the billing service is a fact"})

    found = memory.search(ALICE, query="billing service", filter={"even": True}, limit=9)

    assert sorted(keys(found)) == ["n0", "n2", "n4"]
    assert all(item.score > 0 for item in found)
    first, rest = (memory.search(ALICE, query="billing", limit=4, offset=at) for at in (0, 4))
    assert sorted(keys(first) + keys(rest)) == [f"n{n}" for n in range(6)]
    assert memory.search(ALICE, query="tag:billing kind:fact nothing-of-this") == []


def test_what_is_no_operation_is_refused(store):
    with pytest.raises(InvalidError, match="no operation"):
        LangGraphStore(store).batch(["get"])
    with pytest.raises(InvalidError, match="unknown operator '\\$like'"):
        memory = LangGraphStore(store)
        memory.put(ALICE, "a", {"n": 1})
        memory.search(ALICE, filter={"n": {"$like": 1}})


def counted(texts):
    """Vectors of how often each of three letters is in a text."""
    return [[float(text.count(letter)) for letter in "abc"] for text in texts]


def test_an_index_ranks_all_of_a_namespace_by_the_nearest_text_of_each(store):
    asked: list[list[str]] = []

    def embed(texts):
        asked.append(list(texts))
        return counted(texts)

    memory = LangGraphStore(store, index={"dims": 3, "embed": embed, "fields": ["title", "notes[*].text"]})
    memory.put(ALICE, "a", {"title": "aaa", "notes": [{"text": "bbb"}, {"text": "c"}], "body": "abc"})
    memory.put(ALICE, "b", {"title": "aab"})
    memory.put(ALICE, "none", {"title": "aaa"}, index=False)
    memory.put(ALICE, "own", {"title": "ccc", "body": "bb"}, index=["body"])

    assert keys(memory.search(ALICE, query="b")) == ["own", "a", "b", "none"] or keys(
        memory.search(ALICE, query="b")
    ) == ["a", "own", "b", "none"]
    assert [item.score is None for item in memory.search(ALICE, query="b")] == [False] * 3 + [True]
    assert keys(memory.search(ALICE, query="a", limit=2, offset=1)) == ["b", "own"]
    texts = [text for each in asked for text in each if text not in ("a", "b")]
    assert sorted(texts) == ["aaa", "aab", "bb", "bbb", "c"], "each text once, none of another path"


def test_an_index_of_an_asynchronous_function_and_of_other_dimensions(store):
    async def embed(texts):
        return counted(texts)

    memory = LangGraphStore(store, index={"dims": 3, "embed": embed})
    memory.put(ALICE, "k", {"says": "abc"})
    assert asyncio.run(memory.asearch(ALICE, query="a"))[0].key == "k"
    with pytest.raises(InvalidError, match="dims=2"):
        LangGraphStore(store, index={"dims": 2, "embed": counted}).search(ALICE, query="a")
