"""Recall by meaning: exact over what stands anywhere, and a table of vectors that is never more than a copy."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import InvalidError
from graphstore.memory import Memory
from graphstore.search import model_vectors
from graphstore.search.model_vectors import hash_of
from graphstore.values.vocabulary import KINDS
from graphstore.view import vector_search
from graphstore.view.ranking import LINKS, MEANING
from tests.conftest import Clock, day
from tests.search.test_search import bm25
from tests.support import ledger_rows
from tests.support.disk import hex_in_files, no_room
from tests.support.embedding import AXES, Broken, Concepts, signs

pytestmark = pytest.mark.in_process("its embedders are objects of the test")

WORKER = Path(__file__).parents[1] / "support/reembed_worker.py"


def texts(recalled) -> list[str]:
    return [hit.node.text for hit in recalled]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def rows(path: Path, model: str | None = None) -> list[tuple[Any, ...]]:
    """The vectors that the ledger has: the id of a thing, the hash of its text, and the vector."""
    found = ledger_rows.rows(path, "SELECT model, id, text, data FROM vector ORDER BY number")
    return [(id, text, data[:-3]) for name, id, text, data in found if model in (None, name)]  # a checksum


TOLD = ("the car is red", "a cat sleeps", "bread for sale", "login needs a password")


def write_store(path: Path, embed=None, clock: Clock | None = None, more: int = 0) -> None:
    with graphstore.open(path, clock=clock) as store:
        memory = Memory(store, embed)
        for text in TOLD:
            memory.remember(text, layer="soul", source="SOUL.md")
        memory.remember_many(
            {"text": f"automobile number {number}", "layer": "tool", "source": "log"}
            for number in range(more)
        )


# ---------------------------------------------------------------- by meaning


def test_what_shares_no_word_is_recalled_by_its_meaning(store):
    memory = Memory(store, Concepts())
    for text in TOLD:
        memory.remember(text, layer="soul")

    recalled = memory.recall("automobile", 1)

    assert ["the car is red"] == texts(recalled)
    assert (0.0, None, 1.0, 1) == (
        recalled.hits[0].text_score, recalled.hits[0].text_rank, recalled.hits[0].vector_score, recalled.hits[0].vector_rank,
    )  # fmt: skip
    assert recalled.note == "full-text and vectors of 'concepts'; no word here is 'automobile'"


def test_found_both_ways_ranks_above_found_one_way(store):
    memory = Memory(store, Concepts())
    for text in ("a puppy barks", "the cat", "a barks b"):
        memory.remember(text, layer="soul")

    assert "a puppy barks" == texts(memory.recall("dog barks", 2))[0]


def test_what_is_near_in_meaning_leads_on_by_its_links(store):
    memory = Memory(store, Concepts())
    car = memory.remember("the car is red", layer="soul")
    far = memory.remember("painted in 1970", layer="soul")
    memory.remember("a cat sleeps", layer="soul")
    store.link(far.id, "derived_from", car.id)

    hits = {hit.node.id: hit for hit in memory.recall("automobile", 3)}

    assert (car.id, 1) == (hits[far.id].seed if hits[far.id].path else car.id, hits[far.id].spread_rank)
    assert hits[far.id].score > min(hit.score for hit in hits.values())


def test_stale_meaning_never_wins_and_k_come_back_when_k_exist(store, clock):
    memory = Memory(store, Concepts())
    old = [memory.remember(f"car {number}", layer="tool") for number in range(30)]
    kept = [memory.remember(f"bread {number}", layer="tool") for number in range(3)]
    clock.move(days=1)
    for node in old:
        store.retract(node.id, reason="sold")

    assert {node.id for node in kept} == {hit.node.id for hit in memory.recall("automobile cake", 3)}
    assert 30 == len(
        [
            hit
            for hit in memory.recall("automobile", 30, valid="2026-02-01T12:00Z", tx="2026-02-01T12:00Z")
            if hit.vector_score == 1
        ]
    )


def test_layers_users_and_threads_choose_before_ranking(store):
    memory = Memory(store, Concepts())
    for user in ("ada", "bob"):
        for number in range(20):
            memory.remember(f"{user} car {number}", layer="conversation", user=user, thread=f"t{number % 2}")
    memory.remember("bread", layer="soul")

    assert ["bread"] == texts(memory.recall("automobile cake", 5, layers="soul"))
    found = memory.recall("automobile cake", 11, user="bob", thread="t1", hops=0)
    assert {"bread", *(f"bob car {number}" for number in range(1, 20, 2))} == set(texts(found))


def test_a_version_described_anew_is_found_by_what_it_says_now(store, clock):
    embed = Concepts()
    memory = Memory(store, embed)
    node = memory.remember("a cat sleeps", layer="soul")
    clock.move(days=1)
    store.revise(node.id, {}, text="a truck sleeps")

    (now,) = memory.recall("automobile")
    (then,) = memory.recall("puppy", tx="2026-02-01", valid="2026-02-01")

    assert (1.0, 2) == (now.vector_score, now.node.number)
    assert (1.0, 1) == (then.vector_score, then.node.number)
    assert 1 == embed.asked.count("a cat sleeps") == embed.asked.count("a truck sleeps")


def test_one_text_is_embedded_once_whoever_says_it(store):
    embed = Concepts()
    memory = Memory(store, embed)
    for user in ("ada", "bob", "ada"):
        memory.remember("a red car", layer="conversation", user=user)
    memory.remember_many({"text": "a red car", "layer": layer} for layer in ("soul", "tool"))

    assert ["a red car"] == embed.asked
    assert 4 == len([hit for hit in memory.recall("truck") if hit.vector_score == 1.0])


def test_what_is_told_in_an_open_transaction_has_a_vector_when_it_ends(store):
    embed = Concepts()
    memory = Memory(store, embed)
    with store.transaction():
        memory.remember("a red car", layer="soul")
        assert memory.recall("red").note.startswith("full-text and vectors")

    assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
    assert 1 == embed.asked.count("a red car")


def test_a_transaction_that_fails_leaves_no_vector(path):
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        memory.remember("bread", layer="soul")
        with pytest.raises(RuntimeError), store.transaction():
            memory.remember("a red car", layer="soul")
            raise RuntimeError
        assert ["bread"] == texts(memory.recall("truck cake"))
    assert 1 == len(rows(path))


# ---------------------------------------------------------------- an embedder that is away, or none


def test_memory_goes_on_by_words_when_the_embedder_fails(store):
    memory = Memory(store, Broken())
    memory.remember("a red car", layer="soul")

    recalled = memory.recall("red")

    assert ["a red car"] == texts(recalled)
    assert (
        "full-text only: the embedder 'concepts' failed (ConnectionError: the service is away)"
        == recalled.note
    )
    assert [
        "the embedder 'concepts' failed (ConnectionError: the service is away): there is no vector yet."
    ] == store.notices
    assert [1.0] == [hit.vector_score for hit in Memory(store, Concepts()).recall("truck")]


@pytest.mark.parametrize(
    "given_back",
    [
        None,
        [],
        [1.0],
        [[1.0], [2.0]],
        [[]],
        [["a"]],
        [[float("nan")]],
        np.zeros((1, 2, 2)),
        [[1.0], [1.0, 2.0]],
    ],
    ids=repr,
)
def test_what_is_no_embedder_is_refused_and_nothing_is_written(store, given_back):
    memory = Memory(store, lambda texts: given_back)

    with pytest.raises(InvalidError, match="embedder"):
        memory.remember("a", layer="soul")
    assert 0 == store.stats()["nodes"]
    with pytest.raises(InvalidError, match="cannot be called"):
        Memory(store, "wordllama")


def test_an_embedder_has_to_keep_to_its_dimension(store):
    memory = Memory(store, lambda texts: [[1.0] * len(texts[0])] * len(texts))
    memory.remember("abc", layer="soul")

    with pytest.raises(InvalidError, match="of 4 numbers, and of 3"):
        memory.remember("abcd", layer="soul")


# ---------------------------------------------------------------- the table


def test_vectors_are_read_and_not_made_again(path):
    write_store(path, Concepts())
    embed = Concepts()
    with graphstore.open(path) as store:
        assert ["the car is red"] == texts(Memory(store, embed).recall("automobile", 1))
        assert store.notices == []

    assert ["automobile"] == embed.asked
    assert len(TOLD) == len(rows(path))


def test_rows_that_are_gone_are_made_anew(path):
    write_store(path, Concepts())
    before = rows(path)
    ledger_rows.change(path, "DELETE FROM vector")
    with graphstore.open(path) as store:
        assert ["the car is red"] == texts(Memory(store, Concepts()).recall("automobile", 1))

    assert sorted(before) == sorted(rows(path))


@pytest.mark.parametrize("place", [1, 2, 4 * len(AXES), 4 * len(AXES) + 3])
def test_a_flipped_byte_of_a_row_is_told_and_made_good(path, place):
    write_store(path, Concepts())
    before = rows(path)
    flipped = f"substr(data, {place}, 1)"
    [(byte, number)] = ledger_rows.rows(path, f"SELECT {flipped}, number FROM vector ORDER BY number LIMIT 1")
    other = f"substr(data, 1, {place} - 1) || x'{byte[0] ^ 1:02x}' || substr(data, {place} + 1)"
    ledger_rows.change(path, f"UPDATE vector SET data = CAST({other} AS BLOB) WHERE number = {number}")
    with graphstore.open(path) as store:
        assert ["damaged vectors: 1. "] == [one.message[:20] for one in store.verify().problems]
        assert ["the car is red"] == texts(Memory(store, Concepts()).recall("automobile", 1))
        assert ["damaged vectors of 'concepts': 1. "] == [notice[:34] for notice in store.notices]
        assert store.verify().ok

    assert sorted(before) == sorted(rows(path))


def test_rows_without_a_checksum_are_read(path):
    write_store(path, Concepts())
    ledger_rows.change(path, "UPDATE vector SET data = substr(data, 1, length(data) - 3)")
    embed = Concepts()
    with graphstore.open(path) as store:
        assert ["the car is red"] == texts(Memory(store, embed).recall("automobile", 1))
        assert store.verify().ok

    assert ["automobile"] == embed.asked


def test_a_disk_that_refuses_costs_the_rows_alone(path):
    with graphstore.open(path) as store:
        Memory(store).remember("a red car", layer="soul")
        memory = Memory(store, Concepts())
        with no_room():
            assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
        assert ["They are in memory only."] == [notice[-24:] for notice in store.notices]
        assert [] == rows(path)
        assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
        assert 1 == len(rows(path))


# ---------------------------------------------------------------- another model


class Other(Concepts):
    """The same, by another name, and with one number more."""

    model = "other"
    dimension = len(AXES) + 1

    def __call__(self, texts):
        return np.hstack([super().__call__(texts), np.zeros((len(texts), 1))])


def test_another_model_serves_by_text_until_all_is_embedded(path):
    write_store(path, Concepts(), more=30)
    embed, steps = Other(), []
    with graphstore.open(path) as store:
        memory = Memory(store, embed)
        note = memory.recall("automobile").note
        assert (
            "full-text and vectors of 'other'; 34 of 34 have no vector of it yet: found by words alone"
            == note
        )
        assert ["automobile"] == embed.asked
        assert 34 == memory.reembed(lambda done, total: steps.append((done, total)))
        assert "full-text and vectors of 'other'" == memory.recall("car").note
        assert ["a cat sleeps"] == texts(memory.recall("puppy", 1, hops=0))
    assert [(8, 34), (16, 34), (24, 34), (32, 34), (34, 34)] == steps
    assert 34 == len(rows(path)) == len(rows(path, "other"))


def test_a_model_that_changed_its_dimension_is_another(path):
    write_store(path, Concepts())

    class Grown(Other):
        model = "concepts"

    with graphstore.open(path) as store:
        assert ["a cat sleeps"] == texts(Memory(store, Grown()).recall("puppy", 1))
        assert 1 == len(store.notices)
    assert {4 * Other.dimension} == {len(data) for *_, data in rows(path)}


def test_a_dimension_that_was_never_declared_may_change_too(path):
    def flat(texts):
        return [[1.0, 0.0]] * len(texts)

    def flatter(texts):
        return [[0.0, 0.0, 1.0]] * len(texts)

    flat.model = flatter.model = "flat"
    write_store(path, flat)
    with graphstore.open(path) as store:
        memory = Memory(store, flatter)
        assert [1.0] * 4 == [hit.vector_score for hit in memory.recall("anything")]
        assert ["made anew"] == [notice[-10:-1] for notice in store.notices]
    assert [3 * 4] * 4 == [len(data) for *_, data in rows(path)]


def test_a_dimension_nobody_declared_is_found_out(path):
    write_store(path, signs)
    with graphstore.open(path) as store:
        assert "a cat sleeps" == texts(Memory(store, signs).recall("A cat, sleeps!", 1))[0]
    assert [16 * 4] * 4 == [len(data) for *_, data in rows(path, "tests.support.embedding:signs")]


@pytest.mark.rest
def test_reembedding_that_was_killed_goes_on(path):
    write_store(path, more=80)
    done = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, str(WORKER), str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2):
            line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert int(line) >= 16
        done += int(line)
    embed = Concepts()
    with graphstore.open(path) as store:
        left = Memory(store, embed).reembed()
        assert [] == store.notices

    assert left == len(embed.asked) <= 84 - done
    assert 84 == len(rows(path))


def test_reembed_wants_an_embedder_and_a_writer(path):
    write_store(path)
    with graphstore.open(path) as store, pytest.raises(InvalidError, match="no embedder"):
        Memory(store).reembed()
    with graphstore.open(path, read_only=True) as store, pytest.raises(InvalidError, match="read only"):
        Memory(store, Concepts()).reembed()


# ---------------------------------------------------------------- forgetting


def forget(store, how: str, name: str) -> None:
    if how == "erase":
        store.erase(name, reason="asked for")
    else:
        store.evict(ids=[name], keep_audit=how == "evict")


@pytest.mark.parametrize("how", ["erase", "evict", "purge"])
def test_the_vector_goes_with_what_is_forgotten(path, how):
    write_store(path, Concepts(), more=20)
    write_store(path, Other())
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        (car,) = (hit.node for hit in memory.recall("red", 1))
        key, secret = (car.id, hash_of(car.text)), hash_of(car.text).hex()
        kept = vectors(path)
        assert key in kept and hex_in_files(path, secret)
        forget(store, how, car.id)
        assert not any(car.id == id for id, *_ in rows(path))
        assert not hex_in_files(path, secret)
        assert "the car is red" not in texts(memory.recall("red automobile", 30))
        assert 23 == len(memory.recall("puppy truck cake signin", 40, hops=0))
        del kept[key]
        assert kept == vectors(path)
        memory.remember("a truck", layer="soul")
    assert vectors(path).keys() >= kept.keys()


def vectors(path: Path) -> dict[tuple[str, bytes], bytes]:
    return {(id, text): data for id, text, data in rows(path, "concepts")}


def test_a_store_in_memory_forgets_too(store):
    embed = Concepts()
    memory = Memory(store, embed)
    for text in TOLD:
        memory.remember(text, layer="soul")
    (car,) = memory.recall("red", 1).hits
    store.erase(car.node.id, reason="asked for")

    assert set(TOLD[1:]) == set(texts(memory.recall("automobile puppy cake signin")))
    assert len(TOLD) + 2 == len(embed.asked)


# ---------------------------------------------------------------- others who read


def test_a_follower_reads_what_the_writer_embeds(path):
    with graphstore.open(path) as store:
        memory, embed = Memory(store, Concepts()), Concepts()
        memory.remember("a red car", layer="soul")
        with graphstore.open(path, read_only=True) as reader:
            following = Memory(reader, embed)
            assert ["a red car"] == texts(following.recall("truck cake"))
            memory.remember("bread", layer="soul")
            assert {"a red car", "bread"} == set(texts(following.recall("truck cake")))
            (car,) = memory.recall("red", 1).hits
            store.erase(car.node.id, reason="asked for")
            assert ["bread"] == texts(following.recall("truck cake"))
            assert [] == reader.notices
        assert {"truck cake"} == set(embed.asked)


def test_a_follower_writes_nothing(path):
    write_store(path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with graphstore.open(path, read_only=True) as reader:
        assert ["the car is red"] == texts(Memory(reader, Concepts()).recall("automobile", 1))

    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_two_memories_of_a_store_share_its_rows(path):
    with graphstore.open(path) as store:
        one, other = Concepts(), Concepts()
        Memory(store, one).remember("a red car", layer="soul")
        second = Memory(store, other)
        second.remember("bread", layer="soul")
        assert 2 == len(Memory(store, one).recall("truck cake"))
    assert (["a red car", "truck cake"], ["bread"]) == (one.asked, other.asked)
    assert 2 == len(rows(path))


# ---------------------------------------------------------------- against a plain scan

WALKED = {name for name, kind in KINDS.items() if kind.walked}
POOL = ("login", "signin", "cat", "dog", "bread", "cake")
steps = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "tell",
                "tell",
                "tell",
                "keyed",
                "supersede",
                "end",
                "retract",
                "revise",
                "evict",
                "late",
                "link",
            )
        ),
        st.lists(st.sampled_from(POOL), min_size=1, max_size=3).map(" ".join),
        st.sampled_from(("soul", "tool", "conversation")),
        st.sampled_from((None, "ada", "bob")),
        st.integers(0, 30),
    ),
    min_size=3,
    max_size=25,
)


def act(store, memory: Memory, clock: Clock, step) -> None:
    what, text, layer, user, number = step
    clock.move(days=1)
    nodes = [node.id for node in store.nodes("chunk")]
    if what == "tell" or not nodes:
        memory.remember(text, layer=layer, user=user)
    elif what == "late":
        memory.remember(text, layer=layer, user=user, valid_from="2025-12-01")
    elif what == "keyed":
        memory.remember(text, layer=layer, user=user, key="slot")
    else:
        name = nodes[number % len(nodes)]
        if what == "supersede":
            new = memory.remember(f"{text} instead", layer=layer, user=user)
            if new.id != name and not any(
                step.node and step.node.id == name for step in store.what_superseded(new.id).chain
            ):
                store.supersede(name, by=new.id)
        elif what == "link":
            other = memory.remember(f"{text} beside", layer=layer, user=user).id
            if other != name:
                store.link(name, "derived_from", other)
        elif what == "end":
            store.end(name)
        elif what == "retract":
            store.retract(name, reason="wrong")
        elif what == "revise":
            store.revise(name, {}, text=text)
        elif what == "evict":
            store.evict(ids=[name])


def shares(scores: dict[str, float], worth: float = 1.0) -> dict[str, float]:
    best = max(scores.values(), default=1.0)
    return {id: worth * score / best for id, score in scores.items() if score > 0}


def total(*rankings: dict[str, float]) -> dict[str, float]:
    return {id: sum(each.get(id, 0.0) for each in rankings) for ranking in rankings for id in ranking}


def asked_for(view, prefixes, user):
    return {
        node.id: node
        for node in view.nodes("chunk")
        if (prefixes is None or node.scope.partition(":")[0] in prefixes)
        and (user is None or node.scope.partition(":")[2] in ("", user))
    }


def scanned(view, text: str, k: int, prefixes, user, embed) -> dict[str, float]:
    """What each thing is worth that recall may find without links: every chunk that stands is looked at."""
    chunks = asked_for(view, prefixes, user)
    by_words = {id: score for id, score in bm25(view, text) if id in chunks}
    meant: dict[str, float] = {}
    if embed:
        asked = embed([text])[0]
        near = {id: float(np.dot(asked, embed([node.text])[0])) / 16 for id, node in chunks.items()}
        meant = dict(sorted(near.items(), key=lambda one: (-one[1], one[0]))[:k])
    return total(shares(by_words), shares(meant, MEANING))


@settings(max_examples=20, deadline=None)
@given(
    steps=steps,
    query=st.lists(st.sampled_from(POOL), min_size=1, max_size=2).map(" ".join),
    k=st.integers(1, 12),
)
def test_recall_at_any_coordinate_equals_a_scan_of_the_view(steps, query, k):
    clock = Clock("2026-01-01")
    with graphstore.open(":memory:", clock=clock) as store:
        memory, plain = Memory(store, signs), Memory(store)
        for number, step in enumerate(steps):
            act(store, memory if number % 3 else plain, clock, step)
        clock.move(days=1)
        memory.reembed()
        for back in (0, 2, 7, 15):
            at = {"valid": clock.now.replace(hour=1), "tx": clock.now}
            at = {name: when - (clock.now - day("2026-01-01")) * back / 20 for name, when in at.items()}
            view = store.as_of(**at)
            for layers, user in (
                (None, None),
                (["tool", "soul"], None),
                (None, "ada"),
                ("conversation", "bob"),
            ):
                names = None if layers is None else set([layers] if isinstance(layers, str) else layers)
                for room, embed in ((plain, None), (memory, signs)):
                    found = room.recall(query, k, layers=layers, user=user, hops=0, **at)
                    worth = scanned(view, query, k, names, user, embed)
                    assert sorted(worth.values(), reverse=True)[:k] == pytest.approx(
                        [hit.score for hit in found]
                    )
                    assert [worth[hit.node.id] for hit in found] == pytest.approx(
                        [hit.score for hit in found]
                    )
                    assert all(view.node(hit.node.id) == hit.node for hit in found)
                    near = room.recall(query, 50, layers=layers, user=user, **at)
                    assert {hit.node.id for hit in near} <= asked_for(view, names, user).keys()


def walked(view, seeds: dict[str, float], seen: set[str], hops: int = 2) -> dict[str, float]:
    """What every path of at most so many links brings, each looked at by itself: only over chunks that stand and are seen."""
    links = [link for id in seen for link in view.links_from(id) if {link.source, link.target} <= seen]
    links = [link for link in {link.id: link for link in links}.values() if link.kind in WALKED]
    around = {
        id: [
            link.target if link.source == id else link.source
            for link in links
            if id in (link.source, link.target)
        ]
        for id in seen
    }
    brought: dict[str, float] = {}
    paths = [((seed,), share) for seed, share in seeds.items()]
    for _ in range(hops):
        paths = [
            ((*path, to), share * 0.5 / sqrt(1 + len(around[to])))
            for path, share in paths
            for to in around[path[-1]]
            if to not in path
        ]
        for path, share in paths:
            brought[path[-1]] = brought.get(path[-1], 0.0) + share
    return brought


@settings(max_examples=20, deadline=None)
@given(
    steps=steps,
    query=st.lists(st.sampled_from(POOL), min_size=1, max_size=2).map(" ".join),
    k=st.integers(1, 6),
)
def test_what_links_lead_to_equals_a_walk_of_every_path(steps, query, k):
    clock = Clock("2026-01-01")
    with graphstore.open(":memory:", clock=clock) as store:
        memory = Memory(store, signs)
        for step in steps:
            act(store, memory, clock, step)
        clock.move(days=1)
        for at in (clock.now, clock.now - timedelta(days=len(steps) // 2)):
            view = store.as_of(valid=at, tx=at)
            for user in (None, "ada"):
                seen = {
                    node.id
                    for node in view.nodes("chunk")
                    if user is None or node.scope.partition(":")[2] in ("", user)
                }
                found = memory.recall(query, k, user=user, valid=at, tx=at)
                by_words = {id: score for id, score in bm25(view, query) if id in seen}
                meant = {
                    id: float(np.dot(signs([query])[0], signs([view.node(id).text])[0])) / 16 for id in seen
                }
                meant = dict(sorted(meant.items(), key=lambda one: (-one[1], one[0]))[:k])
                seeds = dict(list(shares(by_words).items())[:k])
                for id, share in shares(meant).items():
                    seeds[id] = max(share, seeds.get(id, 0.0))
                brought = walked(view, seeds, seen)
                assert {hit.node.id for hit in found} <= seen
                for hit in found:
                    assert brought.get(hit.node.id, 0.0) == pytest.approx(hit.spread_score)
                worth = total(shares(by_words), shares(meant, MEANING), shares(brought, LINKS))
                assert sorted(worth.values(), reverse=True)[:k] == pytest.approx([hit.score for hit in found])
                assert [worth[hit.node.id] for hit in found] == pytest.approx([hit.score for hit in found])


def test_threads_remember_and_recall_at_once(path):
    with graphstore.open(path) as store:
        memory = Memory(store, signs)

        def talk(who: int) -> None:
            for number in range(15):
                memory.remember(f"{who} says {number}", layer="conversation", user=f"u{who}")
                hit = memory.recall(f"{who} says {number}", 1, user=f"u{who}").hits[0]
                assert (f"{who} says {number}", 1.0) == (hit.node.text, hit.vector_score)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(talk, range(4)))
        assert 0 == memory.reembed()
        assert [] == store.notices
    assert 60 == len({(id, text) for id, text, _ in rows(path)})


def test_batches_are_as_large_as_the_embedder_likes(store):
    sizes = []

    def embed(texts):
        sizes.append(len(texts))
        return signs(texts)

    Memory(store, embed).remember_many({"text": f"n {number}", "layer": "tool"} for number in range(150))

    assert [vector_search.BATCH, vector_search.BATCH, 150 - 2 * vector_search.BATCH] == sizes


# ---------------------------------------------------------------- written beside transactions, and by many


def test_a_transaction_goes_on_when_vectors_are_made_in_it(path):
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        memory.remember("bread", layer="soul")
        with store.transaction():
            first = memory.remember("a red car", layer="soul")
            memory.recall("truck")
            store.revise(first.id, {}, text="a blue car")
            assert 1 == len(rows(path))
        with pytest.raises(RuntimeError), store.transaction():
            memory.remember("a cat", layer="soul")
            memory.recall("puppy")
            raise RuntimeError
        assert {"bread", "a blue car"} == {node.text for node in store.nodes("chunk")}
        assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
        assert {"bread", "a blue car"} == {
            text for text in ("bread", "a blue car", "a cat") if has(path, text)
        }
        assert store.verify().ok


def has(path: Path, text: str) -> bool:
    return any(kept == hash_of(text) for _, kept, _ in rows(path))


def test_nobody_waits_long_for_another_writer_and_the_rows_are_written_later(path, monkeypatch):
    monkeypatch.setattr(model_vectors, "_PATIENCE", 0.1)
    with graphstore.open(path) as store, graphstore.open(path) as other:
        Memory(store).remember("a red car", layer="soul")
        memory, begun, end = Memory(store, Concepts()), threading.Event(), threading.Event()

        def write() -> None:
            with other.transaction():
                begun.set()
                assert end.wait(20)
                other.add_node("fact", {})

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            assert begun.wait(20)
            assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
            assert ["They are in memory only."] == [notice[-24:] for notice in store.notices]
            assert [] == rows(path)
            end.set()
            writing.result()
        assert [1.0] == [hit.vector_score for hit in memory.recall("truck")]
        assert has(path, "a red car")
        assert 1 == len(store.notices)


def test_writers_read_what_the_others_embed(path):
    with graphstore.open(path) as store, graphstore.open(path) as other:
        one, two = Concepts(), Concepts()
        memory, second = Memory(store, one), Memory(other, two)
        memory.remember("a red car", layer="soul")
        assert ["a red car"] == texts(second.recall("truck"))
        second.remember("bread", layer="soul")
        assert {"a red car", "bread"} == set(texts(memory.recall("truck cake")))
        store.erase(memory.recall("red", 1).hits[0].node.id, reason="asked for")
        assert ["bread"] == texts(second.recall("truck cake"))
        assert ({"a red car", "truck cake", "red"}, {"truck", "bread", "truck cake"}) == (
            set(one.asked),
            set(two.asked),
        )
    assert 1 == len(rows(path))


@pytest.mark.parametrize("how", ["erase", "evict", "purge"])
def test_a_vector_that_another_process_is_about_to_write_does_not_outlive_what_is_forgotten(
    path, how, monkeypatch
):
    with graphstore.open(path) as store, graphstore.open(path) as other:
        Memory(store).remember("bread", layer="soul")
        car = Memory(store).remember("a red car", layer="soul")
        write = model_vectors.ModelVectors.write

        def forgotten_first(kept: model_vectors.ModelVectors) -> None:
            monkeypatch.setattr(model_vectors.ModelVectors, "write", write)
            forget(other, how, car.id)
            write(kept)

        monkeypatch.setattr(model_vectors.ModelVectors, "write", forgotten_first)
        memory = Memory(store, Concepts())
        memory.reembed()
        assert not has(path, "a red car")
        assert ["bread"] == texts(memory.recall("truck cake"))
    assert ["bread"] == [text for text in ("bread", "a red car") if has(path, text)]
    assert not hex_in_files(path, hash_of("a red car").hex())


def test_files_of_vectors_of_earlier_versions_are_removed(path):
    write_store(path)
    for name in ("vectors-00.bin", "vectors-00.new"):
        (path / name).write_bytes(b"SECRET")
    graphstore.open(path, read_only=True).close()
    assert ["vectors-00.bin", "vectors-00.new"] == sorted(file.name for file in path.glob("vectors-*"))

    with graphstore.open(path) as store:
        assert [] == list(path.glob("vectors-*"))
        (path / "vectors-01.bin").write_bytes(b"SECRET")
        store.erase(store.nodes("chunk")[0].id, reason="asked for")
        assert [] == list(path.glob("vectors-*"))
