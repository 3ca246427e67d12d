"""Recall: seeds by text, activation along links, two rankings fused, each hit with the path that found it."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from itertools import pairwise
from random import Random

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import GraphStoreError, InvalidError
from graphstore.memory.recall import Recalled, fuse, mentions, recall, spread
from graphstore.search.row_search import RowSearch
from graphstore.view import ranking
from tests.conftest import Clock
from tests.support.seeds import examples

pytestmark = pytest.mark.served


def names(recalled: Recalled) -> list[str]:
    return [hit.node.id for hit in recalled]


def by_name(recalled: Recalled):
    return {hit.node.id: hit for hit in recalled}


def way(hit) -> list[str]:
    return [str(link) for link in hit.path]


@pytest.fixture
def outage(store):
    """A login outage, what led to it, what was decided, and something that has nothing to do with it."""
    with store.transaction():
        store.add_node("fact", {}, id="outage", text="nobody could login on monday")
        store.add_node("fact", {}, id="restart", text="the server restarted")
        store.add_node("fact", {}, id="upgrade", text="kernel upgrade in the night")
    store.add_node("decision", {}, id="tokens", text="signed cookies instead of sessions")
    store.add_node("fact", {}, id="lunch", text="lunch is at noon")
    store.link("outage", "caused_by", "restart")
    store.link("restart", "caused_by", "upgrade")
    store.link("tokens", "derived_from", "outage")
    return store


# ---------------------------------------------------------------- what was ever said


def test_what_has_fallen_and_what_is_to_come_is_mentioned_too(store, clock):
    store.add_node("fact", {"says": "logins are sessions"}, id="old", valid_from="2026-01-01")
    store.add_node("fact", {"says": "logins are tokens"}, id="new", valid_from="2026-01-20", supersedes="old")
    store.add_node("fact", {"says": "logins are passkeys"}, id="plan", valid_from="2027-01-01")
    store.add_node("fact", {"says": "logins are magic"}, id="wrong")
    store.retract("wrong", reason="nobody said so")

    found = {hit.node.id: hit.node.standing for hit in mentions(store, "logins")}
    assert {"old": "superseded", "new": "stands", "plan": "not_yet", "wrong": "retracted"} == found


def test_a_thing_is_mentioned_as_the_version_that_says_it(store, clock):
    store.add_node("fact", {"says": "tea is hot"}, id="tea")
    clock.move(days=1)
    store.revise("tea", {"says": "tea is cold"})

    assert ["tea-v1"] == [hit.node.ref for hit in mentions(store, "hot")]
    assert ["tea-v2"] == [hit.node.ref for hit in mentions(store, "cold tea")]


def test_mentions_are_of_what_was_told_by_then(store, clock):
    store.add_node("fact", {"says": "tea is hot"}, id="tea")
    then = store.as_of()
    clock.move(days=1)
    store.add_node("fact", {"says": "tea is cold"}, id="cold")

    assert ["tea"] == names(mentions(then, "tea"))
    assert {"cold", "tea"} == set(names(mentions(store, "tea")))


def test_what_was_erased_is_mentioned_nowhere(store, clock):
    store.add_node("fact", {"says": "tea is hot"}, id="tea")
    then = store.as_of()
    clock.move(days=1)
    store.erase("tea", reason="it named somebody")

    assert [] == names(mentions(then, "tea")) == names(mentions(store, "tea"))


def test_mentions_are_bounded_and_of_kinds(store):
    for number in range(5):
        store.add_node("fact" if number else "plan", {"says": f"tea {number}"}, id=f"tea{number}")
    store.record_event("error", "tea is spilt", id="spilt")

    assert 2 == len(mentions(store, "tea", 2))
    assert {"tea0", "spilt"} == set(names(mentions(store, "tea", kinds=["plan", "error"])))
    with pytest.raises(InvalidError, match="k 0 is out of range"):
        mentions(store, "tea", 0)


# ---------------------------------------------------------------- what comes to mind


def test_seeds_and_what_their_links_lead_to(outage):
    recalled = recall(outage, "login")

    assert {"outage", "restart", "tokens", "upgrade"} == set(names(recalled))
    assert "outage" == names(recalled)[0]


def test_each_hit_has_the_path_it_came_by_and_the_seed_it_came_from(outage):
    hits = by_name(recall(outage, "login"))

    assert ("outage", []) == (hits["outage"].seed, way(hits["outage"]))
    assert ["tokens derived_from outage"] == way(hits["tokens"])
    assert ["outage caused_by restart", "restart caused_by upgrade"] == way(hits["upgrade"])
    assert {"outage"} == {hit.seed for hit in hits.values()}


def test_parts_of_a_hit_tell_how_it_was_found(outage):
    hits = by_name(recall(outage, "login"))
    seed, near = hits["outage"], hits["tokens"]

    assert (1, None, 0.0) == (seed.text_rank, seed.spread_rank, seed.spread_score)
    assert (None, 1, 0.0) == (near.text_rank, near.spread_rank, near.text_score)
    assert pytest.approx(0.5 / math.sqrt(2)) == near.spread_score
    assert pytest.approx(0.5 / math.sqrt(3)) == hits["restart"].spread_score
    assert pytest.approx(0.25 / math.sqrt(3) / math.sqrt(2)) == hits["upgrade"].spread_score
    assert pytest.approx(1) == seed.score
    assert pytest.approx(ranking.LINKS) == near.score


def test_found_both_ways_ranks_above_found_one_way(store):
    for id, text in (
        ("alone", "login login login"),
        ("linked", "login and more words"),
        ("other", "login as well here"),
    ):
        store.add_node("fact", {}, id=id, text=text)
    store.link("linked", "related_to", "other")

    assert ["linked", "other", "alone"] == names(recall(store, "login"))


def test_hops_bound_the_way(outage):
    assert {"outage"} == set(names(recall(outage, "login", hops=0)))
    assert {"outage", "restart", "tokens"} == set(names(recall(outage, "login", hops=1)))


def test_direction_and_kinds_of_link_can_be_chosen(outage):
    assert {"outage", "restart", "upgrade"} == set(names(recall(outage, "login", direction="out")))
    assert {"outage", "tokens"} == set(names(recall(outage, "login", direction="in")))
    assert {"outage", "tokens"} == set(names(recall(outage, "login", along="derived_from")))
    assert {"outage", "restart", "upgrade"} == set(names(recall(outage, "login", along=["causes"])))


def test_symmetric_links_lead_either_way_in_every_direction(store):
    for id in "abc":
        store.add_node("fact", {}, id=id, text="unicorn" if id == "b" else "plain")
    store.link("a", "related_to", "b")
    store.link("b", "contrasts_with", "c")

    for direction in ("out", "in", "both"):
        assert {"a", "b", "c"} == set(names(recall(store, "unicorn", direction=direction))), direction


def test_kinds_choose_the_hits_and_not_the_way(outage):
    recalled = recall(outage, "login", kinds="decision")

    assert ["tokens"] == names(recalled)
    assert "outage" == recalled.hits[0].seed


def test_events_are_recalled_too(store):
    store.record_event("error", "login fails", id="event-1", source="auth.py")
    store.record_event("fix", "cookie path", id="event-2", related_to="event-1")

    assert ["event-1", "event-2"] == names(recall(store, "login"))
    assert ["event-2"] == names(recall(store, "login", kinds=["fix"]))


def test_k_hits_come_back_when_k_exist(store):
    for number in range(40):
        store.add_node("fact", {}, id=f"n{number:02}", text="login")

    for k in (1, 10, 40):
        assert k == len(recall(store, "login", k))
    assert 40 == len(recall(store, "login", 100))
    assert ["n00", "n01", "n02"] == names(recall(store, "login", 3))


def test_superseded_things_and_same_topic_are_left_out(store):
    for id, text in (
        ("old", "login by session"),
        ("new", "login by token"),
        ("topic", "elsewhere"),
        ("near", "cookies"),
    ):
        store.add_node("fact", {}, id=id, text=text)
    store.supersede("old", by="new")
    store.link("new", "same_topic", "topic")
    store.link("old", "related_to", "near")
    store.link("new", "derived_from", "old")

    assert ["new"] == names(recall(store, "login"))
    assert {"new", "topic"} == set(names(recall(store, "login", along="same_topic")))


def test_way_never_leads_through_what_does_not_stand(store):
    for id in ("seed", "between", "beyond"):
        store.add_node("fact", {}, id=id, text="unicorn" if id == "seed" else "plain")
    store.link("seed", "uses", "between")
    store.link("between", "uses", "beyond")
    assert {"seed", "between", "beyond"} == set(names(recall(store, "unicorn")))

    store.retract("between", reason="wrong")

    assert ["seed"] == names(recall(store, "unicorn"))


def test_only_the_strongest_links_are_followed_the_later_first(store, clock):
    store.add_node("fact", {}, id="seed", text="unicorn")
    for id, strength in (("weak", 1), ("early", 4), ("unsaid", None), ("late", 4), ("strong", 5)):
        store.add_node("fact", {}, id=id, text="plain")
        clock.move(hours=1)
        store.link("seed", "uses", id, strength=strength)

    followed = [
        set(names(recall(store, "unicorn", fan_out=fan_out))) - {"seed"} for fan_out in (1, 2, 3, 4, 5)
    ]

    assert ["strong", "late", "early", "unsaid", "weak"] == [
        (after - before).pop() for before, after in pairwise([set(), *followed])
    ]


def test_hub_is_damped_by_its_links(store):
    for id in ("seed", "hub", "friend", *(f"x{number}" for number in range(20))):
        store.add_node("fact", {}, id=id, text="unicorn" if id == "seed" else "plain")
    store.link("seed", "part_of", "hub")
    store.link("seed", "related_to", "friend")
    for number in range(20):
        store.link(f"x{number}", "part_of", "hub")

    hits = by_name(recall(store, "unicorn"))

    assert hits["friend"].spread_rank < hits["hub"].spread_rank
    assert pytest.approx(0.5 / math.sqrt(22)) == hits["hub"].spread_score


# ---------------------------------------------------------------- as of


def test_recall_is_of_its_coordinate(outage, clock):
    clock.move(days=1)
    before = outage.as_of()
    clock.move(days=1)
    outage.add_node("fact", {}, id="later", text="login works again", valid_from="2026-03-01")
    outage.retract("outage", reason="it was a test")

    assert [("later", "not_yet")] == [(hit.node.id, hit.standing) for hit in recall(outage, "login")]
    assert {"outage", "restart", "tokens", "upgrade"} == set(names(recall(before, "login")))
    assert ["later"] == names(recall(outage.as_of(valid="2026-04-01"), "login"))
    assert recall(before, "login") == recall(before, "login")


def test_link_counts_while_it_holds(store):
    for id in ("seed", "near"):
        store.add_node(
            "fact", {}, id=id, text="unicorn" if id == "seed" else "plain", valid_from="2026-01-01"
        )
    store.link("seed", "uses", "near", valid_from="2026-01-10", valid_to="2026-01-20")

    counts = [
        len(recall(store.as_of(valid=at), "unicorn")) for at in ("2026-01-09", "2026-01-10", "2026-01-20")
    ]

    assert [1, 2, 1] == counts


def test_block_recalls_its_own_writes(outage):
    with outage.transaction():
        outage.add_node("fact", {}, id="fresh", text="a unicorn")
        outage.link("fresh", "related_to", "lunch")
        assert ["fresh", "lunch"] == names(recall(outage, "unicorn"))

    assert ["fresh", "lunch"] == names(recall(outage, "unicorn"))


def test_erased_thing_is_neither_hit_nor_way(outage, clock):
    clock.move(days=1)
    before = outage.as_of()
    assert "upgrade" in names(recall(before, "login"))

    outage.erase("restart", reason="asked to")

    assert {"outage", "tokens"} == set(names(recall(before, "login")))
    assert {"outage", "tokens"} == set(names(recall(outage, "login")))


def test_follower_recalls(disk_store):
    disk_store.add_node("fact", {}, id="one", text="login")
    with graphstore.open(disk_store.path, read_only=True) as follower:
        assert ["one"] == names(recall(follower, "login"))


def linked(store, clock, chance: Random) -> None:
    """One random act among linked things that all say the same word."""
    clock.move(hours=chance.randint(1, 30))
    things = [*store.nodes(), *store.events()]
    start = clock.now - timedelta(days=chance.randint(-3, 5))
    stop = start + timedelta(days=chance.randint(1, 6)) if chance.random() < 0.3 else None
    during = {"valid_from": start, "valid_to": stop}
    try:
        match chance.randint(0, 9):
            case 0 | 1:
                store.add_node(
                    "fact", {}, text=chance.choice(["unicorn", "plain"]), id=f"n{chance.random()}", **during
                )
            case 2:
                store.record_event("error", "unicorn", id=f"e{chance.random()}", occurred_at=start)
            case 3 | 4 | 5 | 6:
                ends = chance.sample(things, 2)
                kind = chance.choice(["uses", "related_to", "supersedes", "same_topic"])
                store.link(ends[0].id, kind, ends[1].id, strength=chance.choice([None, 1, 5]), **during)
            case 7:
                store.unlink(
                    *chance.choice(store._core.rows.database.rows("SELECT id FROM link ORDER BY number")),
                    **during,
                )
            case 8:
                store.retract(chance.choice(things).id, reason="wrong")
            case _:
                store.revise(chance.choice(things).id, {}, text="unicorn", **during)
    except (GraphStoreError, IndexError, ValueError):
        pass


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_recall_that_has_followed_is_recall_made_anew(seed):
    clock, chance, views = Clock(), Random(seed), []
    with graphstore.open(":memory:", clock=clock) as store:
        for _ in range(40):
            linked(store, clock, chance)
            views.append(store.as_of(valid=clock.now + timedelta(days=chance.randint(-4, 4))))
            for direction in ("both", "out"):
                recall(chance.choice(views), "unicorn", 99, direction=direction, fan_out=2)
                followed = recall(store, "unicorn", 99, direction=direction, fan_out=2)
                grown, store._core.row_search = store._core.row_search, RowSearch()
                assert recall(store, "unicorn", 99, direction=direction, fan_out=2) == followed
                store._core.row_search = grown


# ---------------------------------------------------------------- what it says


def test_note_says_how_it_searched_and_what_it_did_not_find(outage):
    assert "full-text only: there is no embedder" == recall(outage, "login").note
    assert recall(outage, "login pegasus").note.endswith("no word here is 'pegasus'")
    assert ([], True) == (names(recall(outage, "pegasus")), "'pegasus'" in recall(outage, "pegasus").note)
    assert recall(outage, "?!").note.endswith("'?!' holds no word")


def test_recalled_reads_as_a_list(outage):
    lines = str(recall(outage, "login")).splitlines()

    assert "1. outage fact: nobody could login on monday" == lines[0]
    assert (
        "2. tokens decision: signed cookies instead of sessions  [outage ← derived_from tokens]" == lines[1]
    )
    assert (
        "4. upgrade fact: kernel upgrade in the night  [outage caused_by restart caused_by upgrade]"
        == lines[3]
    )
    assert "(full-text only: there is no embedder)" == lines[4]
    assert str(recall(outage, "pegasus")).startswith("Nothing here comes to mind for 'pegasus'.")


def test_recalled_is_iterable_and_plain_data(outage):
    recalled = recall(outage, "login", 2)

    assert (2, recalled.hits) == (len(recalled), tuple(recalled))
    assert "outage" == json.loads(recalled.model_dump_json())["hits"][0]["node"]["id"]
    assert graphstore.recall.recall(outage, "login", 2) == recalled


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0}, {"k": True}, {"k": 2.0}, {"hops": -1}, {"hops": 5}, {"fan_out": 0}, {"hop_weight": 0}, {"hop_weight": 1.5}, {"rrf": 0},
        {"rrf": math.nan}, {"direction": "up"}, {"along": "no_such_kind"}, {"kinds": [3]}, {"text": 7}, {"decay": 0.5}, {"text": "\ud800"},
    ],
)  # fmt: skip
def test_bad_input_is_refused(outage, wrong):
    with pytest.raises(InvalidError):
        recall(outage, **{"text": "login", **wrong})


# ---------------------------------------------------------------- the decisions


@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        ([], {}),
        ([["a"]], {"a": 1 / 61}),
        ([["a", "b"], []], {"a": 1 / 61, "b": 1 / 62}),
        ([["a", "b"], ["b", "c"]], {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62}),
    ],
)
def test_fused_by_reciprocal_rank(rankings, expected):
    assert pytest.approx(expected) == fuse(rankings)


def test_fused_with_another_constant():
    assert {"a": 1 / 2, "b": 1 / 3} == fuse([["a", "b"]], rrf=1)


def plain(graph: dict[str, list[tuple[str, str]]], fan_out: int = 10):
    return (lambda thing: graph.get(thing, [])[:fan_out]), (lambda thing: len(graph.get(thing, [])))


@pytest.mark.parametrize(
    ("graph", "hops", "expected"),
    [
        ({}, 2, {}),
        ({"s": [("l1", "a")], "a": [("l1", "s")]}, 2, {"a": 0.5 / math.sqrt(2)}),
        ({"s": [("l1", "a")], "a": [("l1", "s")]}, 0, {}),
        (
            {"s": [("l1", "a")], "a": [("l1", "s"), ("l2", "b")], "b": [("l2", "a")]},
            2,
            {"a": 0.5 / math.sqrt(3), "b": 0.25 / math.sqrt(6)},
        ),
        # two links between the same two things are two paths
        (
            {"s": [("l1", "a"), ("l2", "a")], "a": [("l1", "s"), ("l2", "s")]},
            1,
            {"a": 2 * 0.5 / math.sqrt(3)},
        ),
    ],
)
def test_activation(graph, hops, expected):
    reached = spread({"s": 1.0}, *plain(graph), hops=hops)

    assert pytest.approx(expected) == {thing: each.activation for thing, each in reached.items()}


def test_seeds_activate_each_other():
    graph = {"s": [("l", "t")], "t": [("l", "s")]}

    reached = spread({"s": 1.0, "t": 0.5}, *plain(graph))

    assert pytest.approx({"t": 0.5 / math.sqrt(2), "s": 0.25 / math.sqrt(2)}) == {
        thing: each.activation for thing, each in reached.items()
    }


def test_path_that_brings_most_is_kept_and_of_equals_the_first():
    graph = {
        "s": [("weak", "a"), ("l2", "b")], "a": [("l3", "x")], "b": [("l4", "x")], "x": [],
        "t": [("direct", "x")],
    }  # fmt: skip

    assert (("direct",), "t") == spread({"s": 1.0, "t": 0.9}, *plain(graph))["x"][2:0:-1]
    assert (("weak", "l3"), "s") == spread({"s": 1.0}, *plain(graph))["x"][2:0:-1]


edges = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=16
)
seeds = st.dictionaries(st.integers(0, 7), st.floats(0.1, 1.0), max_size=3)


@settings(max_examples=examples(60), deadline=None)
@given(edges=edges, seeds=seeds, hops=st.integers(0, 3), fan_out=st.integers(1, 4))
def test_activation_is_the_sum_over_simple_paths(edges, seeds, hops, fan_out):
    graph = {thing: [] for thing in range(8)}
    for number, (one, other) in enumerate(edges):
        graph[one].append((number, other))
        graph[other].append((number, one))
    followed = networkx.MultiDiGraph()
    followed.add_nodes_from(graph)
    for thing, links in graph.items():
        followed.add_edges_from((thing, other, number) for number, other in links[:fan_out])
    expected: dict[int, float] = {}
    best: dict[int, float] = {}
    for seed, energy in seeds.items():
        for target in set(graph) - {seed}:
            for path in networkx.all_simple_edge_paths(followed, seed, target, cutoff=hops) if hops else ():
                weight = energy * math.prod(0.5 / math.sqrt(1 + len(graph[end])) for _, end, _ in path)
                expected[target] = expected.get(target, 0.0) + weight
                best[target] = max(best.get(target, 0.0), weight)

    reached = spread(seeds, *plain(graph, fan_out), hops=hops)

    assert pytest.approx(expected) == {thing: each.activation for thing, each in reached.items()}
    for thing, each in reached.items():
        here, weight = each.seed, seeds[each.seed]
        for number in each.path:
            here = edges[number][1] if edges[number][0] == here else edges[number][0]
            weight *= 0.5 / math.sqrt(1 + len(graph[here]))
        assert (thing, pytest.approx(best[thing])) == (here, weight)


# ---------------------------------------------------------------- filters


@pytest.fixture
def team(store, clock):
    """Refunds, as several people and tools told of them, and what happened."""
    with store.transaction(author="ana"):
        store.add_node(
            "fact",
            {"says": "refunds take a day"},
            id="day",
            tags=["billing"],
            key="refund_time",
            source="wiki/refunds",
        )
    clock.move(days=1)
    with store.transaction(author="bob"):
        store.add_node(
            "rule",
            {"says": "refunds need two eyes"},
            id="eyes",
            scope="shop",
            source="chat",
            valid_from="2026-01-01",
        )
        store.add_node(
            "fact", {"says": "refunds were free"}, id="free", valid_from="2025-01-01", valid_to="2025-06-01"
        )
    store.record_event("error", "refunds failed", id="failed")
    return store


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"tag": "billing"}, {"day"}), ({"key": "Refund time"}, {"day"}), ({"scope": "shop"}, {"eyes"}), ({"author": ["ana", "bob"]}, {"day", "eyes"}),
        ({"source": "wiki/"}, {"day"}), ({"kinds": "error"}, {"failed"}), ({"until": "2026-01-02"}, {"eyes"}), ({"standing": "shaky"}, set()),
        ({"standing": "ended"}, {"free"}), ({"standing": "any", "author": "bob"}, {"eyes", "free"}),
        ({"standing": ["ended", "stands"], "kinds": "fact"}, {"day", "free"}),
    ],
)  # fmt: skip
def test_only_what_fits_the_filters_is_a_hit(team, asked, expected):
    assert expected == set(names(recall(team, "refunds", **asked)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refunds tag:billing", {"day"}), ("refunds scope:shop", {"eyes"}), ("refunds type:error", {"failed"}),
        ("refunds source:chat author:bob", {"eyes"}), ("refunds until:2026-01-02", {"eyes"}), ("refunds standing:ended", {"free"}),
    ],
)  # fmt: skip
def test_a_filter_may_stand_in_the_text(team, text, expected):
    assert expected == set(names(recall(team, text)))


def test_what_was_recorded_when_is_a_filter_too(team):
    first = team.node("day").recorded_at + timedelta(hours=1)

    assert {"day"} == set(names(recall(team, "refunds", recorded_until=first)))
    assert {"eyes", "failed"} == set(names(recall(team, "refunds", recorded_since=first)))
    assert {"eyes", "failed", "free"} == set(names(mentions(team, "refunds", recorded_since=first)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"standing": "gone"}, "standing"),
        ({"since": "no day"}, "since"),
        ({"key": "!"}, "key"),
        ({"tag": [3]}, "tag"),
    ],
)
def test_a_filter_that_is_none_is_refused(team, asked, message):
    for ask in (recall, mentions):
        with pytest.raises(InvalidError, match=message):
            ask(team, "refunds", **asked)


def test_filters_alone_give_what_fits_the_newest_first(store):
    for day, id in enumerate(("a", "b", "c"), 1):
        tags = ("auth",) if id != "b" else ()
        store.add_node("fact", {"says": id}, id=id, tags=tags, valid_from=f"2025-01-{day:02}")
    store.add_node(
        "fact", {"says": "over"}, id="d", tags=("auth",), valid_from="2025-01-01", valid_to="2025-02-01"
    )

    assert ["c", "a"] == [hit.node.id for hit in recall(store, "tag:auth")]
    assert ["c", "b"] == [hit.node.id for hit in recall(store, "", 2, kinds="fact")]
    assert 1 == recall(store, "", 2, kinds="fact").left_out
    assert [] == [hit.node.id for hit in recall(store, "")]


def test_what_no_filter_can_be_read_from_is_none(store):
    store.add_node("fact", {"says": "deploys are green"}, id="a")

    assert ["a"] == [hit.node.id for hit in recall(store, "deploys since:then standing:tall")]


# ---------------------------------------------------------------- in other scopes, and for a user alone


def test_what_stands_in_other_scopes_is_counted_where_nothing_here_answers(store):
    store.add_node("fact", {"says": "lunch is at noon"}, id="ours", scope="team/a")
    for number in range(2):
        store.add_node("fact", {"says": f"logins are tokens {number}"}, id=f"theirs-{number}", scope="team/b")
    store.add_node("fact", {"says": "logins are cookies"}, id="old", scope="team/b")
    store.retract("old", reason="no")
    found = recall(store, "logins", scope="team/a")

    assert ([], {"other scopes": 2}) == (names(found), found.elsewhere)
    assert "2 in other scopes say it (without scope= they are shown)" in found.note
    assert {} == recall(store, "lunch", scope="team/a").elsewhere
    assert {"theirs-0", "theirs-1"} == set(names(recall(store, "logins")))


def test_filters_without_words_find_what_no_longer_stands_each_thing_once(store, clock):
    clock.set("2026-01-01")
    with store.transaction(author="ana"):
        store.add_node("fact", {"says": "one"}, id="one", tags=["t"], valid_from="2026-01-01")
        store.add_node("fact", {"says": "gone"}, id="gone", tags=["t"], valid_from="2025-12-01")
        store.add_node("fact", {"says": "else"}, id="else")
    clock.set("2026-02-01")
    store.add_node("fact", {"says": "two"}, id="two", tags=["t"], supersedes="one")
    store.revise("two", {"says": "two again"})
    store.retract("gone", reason="never so")
    clock.set("2026-03-01")

    found = mentions(store, "", tag="t")
    assert [("two", 2, "stands"), ("one", 1, "superseded"), ("gone", 1, "retracted")] == [
        (hit.node.id, hit.node.number, hit.node.standing) for hit in found
    ]
    assert ["gone"] == [hit.node.id for hit in mentions(store, "standing:retracted tag:t")]
    few = mentions(store, "", 1, tag="t")
    assert (["two"], 2) == ([hit.node.id for hit in few], few.left_out)
    assert ["one", "gone"] == [hit.node.id for hit in mentions(store.as_of(tx="2026-01-15"), "tag:t")]
    assert ["one", "gone"] == [hit.node.id for hit in recall(store, "tag:t", author="ana", standing="any")]


def test_what_has_no_room_among_k_is_said_to_be_there(store):
    with store.transaction():
        for n in range(8):
            store.add_node("fact", {"says": f"the cache of shop {n} is warm"}, tags=["t"])

    for read in (recall, mentions):
        assert (8, False) == (len(read(store, "warm cache")), read(store, "warm cache").truncated)
        assert (8, False) == (len(read(store, "warm cache", 8)), read(store, "warm cache", 8).truncated)
        assert (7, True) == (len(read(store, "warm cache", 7)), read(store, "warm cache", 7).truncated)
        assert (2, True) == (len(read(store, "tag:t", 2)), read(store, "tag:t", 2).truncated)
    assert "there is more than these 3: ask for a higher k" in str(recall(store, "warm cache", 3))
    assert "ask for a higher k" not in str(recall(store, "warm cache"))
