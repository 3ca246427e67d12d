"""Walks, paths and chains: stories first, then random temporal graphs against networkx and against trying everything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import networkx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import Chain, GraphStore, InvalidError, Link, NotFoundError, View
from tests.support.seeds import examples

pytestmark = pytest.mark.served

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LAST = 6


def at(number: int) -> datetime:
    return FIRST + timedelta(days=number)


NOW = at(40)


def ids(chain: Chain) -> list[str]:
    return [thing.id for thing in chain.nodes]


def link_ids(chain: Chain) -> list[str]:
    return [link.id for link in chain.links]


def known(store: GraphStore, *names: str) -> None:
    with store.transaction():
        for name in names:
            store.add_node("fact", {}, id=name, valid_from=FIRST)


@pytest.fixture
def roads(store: GraphStore) -> View:
    """a → d in one hop late, in three hops early; e lies behind."""
    known(store, "a", "b", "c", "d", "e")
    for source, target, since in [("a", "d", 9), ("a", "b", 1), ("b", "c", 2), ("c", "d", 3), ("d", "e", 5)]:
        store.bulk_load(links=[road(source, target, since)])
    return store.as_of()


def road(
    source: str, target: str, since: int, kind: str = "precedes", id: str | None = None
) -> dict[str, Any]:
    return {
        "id": id or f"{source}{target}",
        "source": source,
        "kind": kind,
        "target": target,
        "valid_from": at(since),
    }


# ---------------------------------------------------------------- walks


def test_a_walk_finds_the_nearest_first(roads):
    chain = roads.walk("b", hops=2)

    assert ("b", ["a", "c", "d"]) == (chain.root.id, ids(chain))
    assert ["ab", "bc", "ad", "cd"] == link_ids(chain)
    assert chain.truncated
    assert not roads.walk("b", hops=3).truncated


def test_a_walk_goes_the_way_it_is_told(roads):
    assert ["c", "d", "e"] == ids(roads.walk("b", hops=9, direction="out"))
    assert ["a"] == ids(roads.walk("b", hops=9, direction="in"))


def test_a_walk_from_several_things_begins_with_all_of_them(roads):
    chain = roads.walk(["e", "b", "e"], hops=1, direction="out")

    assert ("e", ["b", "c"]) == (chain.root.id, ids(chain))


def test_an_inverse_name_is_walked_the_other_way_round(roads):
    assert ["a"] == ids(roads.walk("b", "follows", direction="out"))
    assert ["c", "d"] == ids(roads.walk("b", ["follows"], direction="in"))
    assert ids(roads.walk("b", direction="both")) == ids(
        roads.walk("b", ["precedes", "follows"], direction="out")
    )


def test_a_symmetric_kind_is_walked_from_both_ends(store):
    known(store, "a", "b", "c")
    store.link("b", "related_to", "a")
    store.link("b", "related_to", "c")

    assert ["b", "c"] == ids(store.walk("a", "related_to", direction="out"))
    assert ["b", "a"] == ids(store.walk("c", "relates", direction="in"))
    assert ["b", "c"] == ids(store.as_of().path("a", "c"))


def test_what_is_not_walked_by_default_is_walked_when_named(store):
    known(store, "a", "b", "c")
    store.link("a", "same_topic", "b")
    store.supersede("a", by="c")

    assert [] == ids(store.walk("a"))
    assert ["b"] == ids(store.walk("a", "same_topic"))
    assert ["c"] == ids(store.walk("a", "supersedes"))


def test_a_circle_is_walked_once(store):
    known(store, "a", "b", "c")
    for source, target in ("ab", "bc", "ca"):
        store.link(source, "uses", target)
    chain = store.walk("a", hops=50, direction="out")

    assert (["b", "c"], 3, False) == (ids(chain), len(chain.links), chain.truncated)


def test_a_walk_shows_what_held_then(store, clock):
    known(store, "a", "b")
    store.link("a", "uses", "b", valid_from=at(3), valid_to=at(5))

    assert [[], ["b"], []] == [ids(store.as_of(valid=at(day)).walk("a")) for day in (2, 4, 5)]


def test_a_walk_passes_through_what_no_longer_stands(store):
    known(store, "a", "b", "c")
    store.link("a", "uses", "b")
    store.link("b", "uses", "c")
    store.retract("b", reason="never was")

    assert [("b", "retracted"), ("c", "stands")] == [(n.id, n.standing) for n in store.walk("a").nodes]


# ---------------------------------------------------------------- paths


def test_the_fewest_hops_and_the_earliest_arrival_are_two_paths(roads):
    assert ["ad"] == link_ids(roads.path("a", "d"))
    assert ["ab", "bc", "cd"] == link_ids(roads.path("a", "d", by="arrival"))


def test_a_path_never_goes_back_in_time(roads):
    assert ["ab", "bc", "cd", "de"] == link_ids(roads.path("a", "e"))
    assert ["de", "cd"] == link_ids(roads.path("c", "e"))[::-1]
    with pytest.raises(NotFoundError):
        roads.path("e", "c", direction="in")


def test_the_fewest_hops_may_lie_behind_the_slower_half(store):
    """To c it is one hop on day 5 or two by day 1; what leaves c on day 3 can be caught by the longer way only."""
    known(store, "a", "b", "c", "d")
    store.bulk_load(links=[road("a", "c", 5), road("a", "b", 0), road("b", "c", 1), road("c", "d", 3)])

    assert ["ab", "bc", "cd"] == link_ids(store.as_of().path("a", "d"))


def test_the_earliest_arrival_does_not_need_the_earliest_beginning(store):
    """To b it is two hops by day 1 or one on day 2; c is reached on day 3 either way, so with fewer hops by the later one."""
    known(store, "a", "x", "b", "c")
    store.bulk_load(links=[road("a", "x", 0), road("x", "b", 1), road("a", "b", 2), road("b", "c", 3)])

    assert ["ab", "bc"] == link_ids(store.as_of().path("a", "c", by="arrival"))


def test_among_equals_the_path_whose_ids_come_first(store):
    known(store, "a", "b", "c", "d")
    store.bulk_load(
        links=[
            road("a", "b", 1, id="l2"),
            road("a", "c", 1, id="l3"),
            road("b", "d", 1, id="l9"),
            road("c", "d", 1, id="l1"),
        ]
    )
    view = store.as_of()

    assert ["l2", "l9"] == link_ids(view.path("a", "d")) == link_ids(view.path("a", "d", by="arrival"))
    assert [["l2", "l9"], ["l3", "l1"]] == [link_ids(each) for each in view.paths("a", "d")]


def test_the_path_to_itself_has_no_link(roads):
    assert ("a", (), ()) == (
        roads.path("a", "a").root.id,
        roads.path("a", "a").nodes,
        roads.path("a", "a").links,
    )
    assert [roads.path("a", "a")] == roads.paths("a", "a")


def test_no_path_says_what_was_looked_for(roads):
    with pytest.raises(
        NotFoundError,
        match=r"no path from 'e' to 'a' along any links, from source to target, in the order of time, at valid",
    ):
        roads.path("e", "a")
    with pytest.raises(
        NotFoundError, match="along uses and follows links, either way, within 1 hop, in the order"
    ):
        roads.path("e", "a", ["uses", "follows"], direction="both", depth=1)
    with pytest.raises(NotFoundError, match="'nowhere'"):
        roads.path("a", "nowhere")
    assert [] == roads.paths("e", "a")


@pytest.fixture
def outage(store: GraphStore) -> View:
    """outage caused by overload caused by retries caused by a deploy, told in no order; and a report of the outage."""
    known(store, "outage", "overload", "retries", "deploy", "report")
    store.bulk_load(
        links=[
            road("outage", "overload", 7, "caused_by"),
            road("overload", "retries", 9, "caused_by"),
            road("retries", "deploy", 2, "caused_by"),
            road("report", "outage", 9, "related_to"),
        ]
    )
    return store.as_of()


def test_a_path_either_way_finds_what_causes_finds(outage):
    for cause in outage.causes("outage").nodes:
        assert cause.id == outage.path("outage", cause.id, direction="both").nodes[-1].id
        assert "outage" == outage.path(cause.id, "outage", direction="both").nodes[-1].id
    chain = outage.path("outage", "deploy", direction="both")

    assert ["overload", "retries", "deploy"] == ids(chain)
    assert ["outageoverload", "overloadretries", "retriesdeploy"] == link_ids(chain)
    assert [chain] == outage.paths("outage", "deploy", direction="both")
    assert [chain] == outage.paths("outage", "deploy", "causes", "both")
    assert chain == outage.path("outage", "deploy", by="arrival", direction="both")
    assert outage.path("outage", "deploy", direction="both") == outage.path(
        "outage", "deploy", (name for name in ["caused_by"]), direction="both"
    )


def test_only_causes_are_walked_in_any_order(outage):
    with pytest.raises(NotFoundError, match="in the order of time or against it"):
        outage.path("report", "deploy", direction="both")
    with pytest.raises(NotFoundError, match="either way, within 2 hops"):
        outage.path("outage", "deploy", direction="both", depth=2)
    with pytest.raises(NotFoundError):
        outage.path("outage", "deploy")


def test_a_path_either_way_may_go_back_in_time(roads):
    assert ["ad"] == link_ids(roads.path("d", "a", direction="both"))
    assert ["de", "cd", "bc"] == link_ids(roads.path("e", "b", direction="both", by="arrival", depth=3))
    both = roads.paths("e", "a", direction="both")
    assert [["de", "ad"], ["de", "cd", "bc", "ab"]] == [link_ids(each) for each in both]
    assert [["de", "ad"]] == [link_ids(each) for each in roads.paths("e", "a", direction="in")]


def test_a_path_has_at_most_so_many_hops(roads):
    assert ["ad"] == link_ids(roads.path("a", "d", by="arrival", depth=2))
    with pytest.raises(NotFoundError, match="within 3 hops"):
        roads.path("a", "e", depth=3)
    assert [["ad"]] == [link_ids(each) for each in roads.paths("a", "d", depth=2)]


def test_the_last_of_too_many_paths_is_truncated(roads):
    assert [(["ad"], True)] == [(link_ids(each), each.truncated) for each in roads.paths("a", "d", limit=1)]
    assert [False, False] == [each.truncated for each in roads.paths("a", "d", limit=2)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda view: view.walk([]),
        lambda view: view.walk(7),
        lambda view: view.walk("a", hops=0),
        lambda view: view.walk("a", hops=True),
        lambda view: view.walk("a", direction="up"),
        lambda view: view.walk("a", "leads_to"),
        lambda view: view.walk("a", 7),
        lambda view: view.path("a", "d", by="luck"),
        lambda view: view.path("a", "d", depth=0),
        lambda view: view.path("a", "d", direction=None),
        lambda view: view.paths("a", "d", limit=0),
        lambda view: view.paths("a", "d", depth=None),
    ],
)
def test_what_cannot_be_walked_is_refused(roads, wrong):
    with pytest.raises(InvalidError):
        wrong(roads)


def test_many_paths_cost_only_as_much_as_is_asked(store):
    """A crowd of twenty, each linked with each: some 10^12 simple paths, of which a hundred are wanted, and a dead end behind a gate."""
    names = [f"n{number:02d}" for number in range(20)]
    known(store, *names, "gate", "goal")
    store.bulk_load(
        links=[road(one, two, 1, "related_to") for one, two in itertools.combinations(names, 2)]
        + [road("n00", "gate", 1), road("gate", "goal", 1)]
    )

    assert [2] * 18 == [len(each.links) for each in store.paths("n00", "n19")[1:19]]
    assert 100 == len(store.paths("n00", "n19"))
    assert [["n00gate", "gategoal"]] == [link_ids(each) for each in store.paths("n00", "goal", "precedes")]
    assert [["gate", "goal"]] == [ids(each) for each in store.paths("n00", "goal")]


def test_ten_thousand_hops_are_no_deep_water(store):
    count = 10_000
    store.bulk_load(
        nodes=[{"id": f"n{number}", "kind": "fact"} for number in range(count + 1)],
        versions=[
            {"node_id": f"n{number}", "content": {}, "valid_from": FIRST} for number in range(count + 1)
        ],
        links=[road(f"n{number}", f"n{number + 1}", 0) for number in range(count)],
    )
    view = store.as_of()

    assert count == len(view.walk("n0", hops=count).links)
    assert count == len(view.path("n0", f"n{count}").links)
    assert count == len(view.path("n0", f"n{count}", by="arrival").links)
    assert 1 == len(view.paths("n0", "n1000", depth=1000))


# ---------------------------------------------------------------- random temporal graphs

NAMES = [f"n{number}" for number in range(6)]
day = st.integers(0, LAST)
name = st.sampled_from(NAMES)
kind = st.sampled_from(["precedes", "uses", "related_to", "same_topic", "caused_by"])
period = st.tuples(day, st.integers(1, LAST) | st.none())
stated = st.lists(st.tuples(name, kind, name, period), max_size=14, unique_by=lambda each: each[:3])
kinds = st.sampled_from(
    [
        (),
        "precedes",
        "follows",
        ("uses", "related_to"),
        ("used_by",),
        ("same_topic", "follows", "uses"),
        "causes",
    ]
)
direction = st.sampled_from(["out", "in", "both"])
patient = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
INVERSE = {"follows": "precedes", "used_by": "uses", "causes": "caused_by"}
EVEN = {"related_to", "same_topic"}
WALKED = ("precedes", "uses", "related_to", "caused_by")


def built(links: list[Any], taken_back: set[int]) -> GraphStore:
    """A store of the names and these links, some of which were taken back a day later."""
    now = [NOW]
    store = graphstore.open(":memory:", clock=lambda: now[0])
    known(store, *NAMES)
    made = []
    for number, (source, kind, target, (since, days)) in enumerate(links):
        if source == target or (kind in EVEN and (target, kind, source) in made):
            continue
        made.append((source, kind, target))
        until = None if days is None else at(since + days)
        if kind == "caused_by" and (target, kind, source) in made:
            continue  # two things do not cause each other
        link = store.link(source, kind, target, valid_from=at(since), valid_to=until)
        now[0] += timedelta(hours=1)
        if number in taken_back:
            store.unlink(link.id)
            now[0] += timedelta(hours=1)
    return store


def steps(view: View, kinds: Any, direction: str) -> Iterator[tuple[str, str, Link]]:
    """Every hop that may be made in a view, by its picture in networkx: from, to, the link."""
    named = (kinds,) if isinstance(kinds, str) else kinds or WALKED
    for source, target, attributes in view.to_networkx().edges(data=True):
        link = Link(**attributes)
        for word in named:
            if INVERSE.get(word, word) != link.kind:
                continue
            one, two = (target, source) if word in INVERSE else (source, target)
            if direction in ("out", "both") or link.kind in EVEN:
                yield one, two, link
            if direction in ("in", "both") or link.kind in EVEN:
                yield two, one, link


def picture(view: View, kinds: Any, direction: str) -> networkx.MultiDiGraph[str]:
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    graph.add_nodes_from(NAMES)
    for one, two, link in steps(view, kinds, direction):
        graph.add_edge(
            one, two, key=link.id, since=link.valid_from, kind=link.kind, said=(link.source, link.target)
        )
    return graph


FORWARD, BACKWARD, CAUSES, EFFECTS = range(4)
Tried = tuple[int, int, float, list[str]]


def every_path(graph: networkx.MultiDiGraph[str], source: str, target: str, either_way: bool) -> list[Tried]:
    """Every simple path, by trying all: hops, its order, arrival, link ids; in that order. Either way it may go back in time too, or be a chain
    of causes."""
    found: dict[tuple[str, ...], Tried] = {}
    for edges in networkx.all_simple_edge_paths(graph, source, target):
        since = [graph.edges[edge]["since"].timestamp() for edge in edges]
        ids = [key for _, _, key in edges]
        ends = [(one, two) for one, two, _ in edges]
        said = [graph.edges[edge]["said"] for edge in edges]
        causal = all(graph.edges[edge]["kind"] == "caused_by" for edge in edges)
        orders = [
            (FORWARD, since == sorted(since), since[-1]),
            (BACKWARD, either_way and since == sorted(since, reverse=True), -since[-1]),
            (CAUSES, either_way and causal and said == ends, 0),
            (EFFECTS, either_way and causal and said == [(two, one) for one, two in ends], 0),
        ]
        there = [(len(ids), order, arrival, ids) for order, holds, arrival in orders if holds]
        if there:
            found[tuple(ids)] = there[0]
    return sorted(found.values())


views = st.tuples(stated, st.sets(st.integers(0, 13), max_size=3), day, st.integers(0, 20))


def view_of(drawn: Any) -> View:
    links, taken_back, valid, hours = drawn
    store = built(links, taken_back)
    tx = min(NOW + timedelta(hours=hours), store.at.tx)
    return store.as_of(valid=at(valid + 1), tx=tx)


@patient
@given(views, st.lists(name, min_size=1, max_size=2), kinds, direction, st.integers(1, 4))
def test_a_walk_is_the_ego_graph(drawn, roots, kinds, direction, hops):
    view = view_of(drawn)
    graph = picture(view, kinds, direction)
    away: dict[str, int] = {}
    for root in roots:
        for thing, far in networkx.single_source_shortest_path_length(graph, root, cutoff=hops + 1).items():
            away[thing] = min(far, away.get(thing, far))
    chain = view.walk(roots, kinds, hops, direction)
    found = [chain.root.id, *ids(chain)]

    assert {thing for thing, far in away.items() if far <= hops} == set(found)
    assert len(set(found)) == len(found)
    assert sorted(found, key=away.__getitem__) == found
    assert {key for one, _, key in graph.edges(keys=True) if away.get(one, hops) < hops} == set(
        link_ids(chain)
    )
    assert len(set(link_ids(chain))) == len(chain.links)
    assert any(far > hops for far in away.values()) == chain.truncated


@patient
@given(views, name, name, kinds, direction, st.integers(1, 6))
def test_paths_are_all_that_can_be_found_by_trying(drawn, source, target, kinds, direction, depth):
    if source == target:
        return
    view = view_of(drawn)
    everything = [
        each
        for each in every_path(picture(view, kinds, direction), source, target, direction == "both")
        if each[0] <= depth
    ]
    found = view.paths(source, target, kinds, direction, depth=depth, limit=10_000)

    assert [trail for _, _, _, trail in everything] == [link_ids(each) for each in found]
    assert not any(each.truncated for each in found)
    for limit in (1, 2):
        some = view.paths(source, target, kinds, direction, limit, depth)
        assert [link_ids(each) for each in found[:limit]] == [link_ids(each) for each in some]
        assert [limit < len(found)] * bool(some) == [each.truncated for each in some[-1:]]


@patient
@given(views, name, name, kinds, direction, st.none() | st.integers(1, 5))
def test_a_path_is_the_best_that_can_be_found_by_trying(drawn, source, target, kinds, direction, depth):
    if source == target:
        return
    view = view_of(drawn)
    everything = [
        each
        for each in every_path(picture(view, kinds, direction), source, target, direction == "both")
        if each[0] <= (depth or 99)
    ]
    if not everything:
        for by in ("hops", "arrival"):
            with pytest.raises(NotFoundError):
                view.path(source, target, kinds, by, direction, depth)
        return
    fewest = min(everything, key=lambda each: (each[0], each[1], each[3]))
    earliest = min(everything, key=lambda each: (each[1], each[2], each[0], each[3]))

    assert fewest[3] == link_ids(view.path(source, target, kinds, "hops", direction, depth))
    assert earliest[3] == link_ids(view.path(source, target, kinds, "arrival", direction, depth))


@patient
@given(views, name, name, direction)
def test_the_things_of_a_path_are_joined_by_its_links(drawn, source, target, direction):
    view = view_of(drawn)
    for chain in view.paths(source, target, (), direction):
        things = [chain.root.id, *ids(chain)]
        assert (source, target) == (things[0], things[-1])
        for one, two, link in zip(things[:-1], things[1:], chain.links, strict=True):
            assert {one, two} == {link.source, link.target}
            assert direction != "out" or link.kind in EVEN or one == link.source
            assert link in [*view.links_from(one), *view.backlinks_to(one), *view.links_from(two)]


def test_what_an_event_may_be_an_effect_of_goes_by_the_occurrences_known_then(store: GraphStore) -> None:
    store.add_node("fact", {}, id="cause", valid_from="2026-01-06")
    store.record_event("error", "boom", id="effect", occurred_at="2026-01-05")
    with pytest.raises(InvalidError, match="may not start after its effect"):
        store.link("effect", "caused_by", "cause", valid_from="2026-01-07")
    store.record_event("error", "boom", occurred_at="2026-01-08")
    again = store.changes()[-1].tx
    store.link("effect", "caused_by", "cause", valid_from="2026-01-07")

    def causes(view: View) -> list[str]:
        return [link.target for link in view.causes("effect").links]

    known = store.as_of(valid="2026-01-09")
    assert ["cause"] == causes(known)

    store.undo(again, reason="it came once")

    assert [] == causes(store.as_of(valid="2026-01-09"))
    assert ["cause"] == causes(known) == causes(store.as_of(valid="2026-01-09", tx=known.at.tx))
