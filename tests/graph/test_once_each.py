"""No relationship is used twice in one MATCH, compared with every way of binding a small graph's links one by one."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from graphstore import GraphStore
from graphstore.errors import QueryError
from graphstore.graph.once_each import once_each
from graphstore.graph.statement import parse

pytestmark = pytest.mark.served

KINDS = ("related_to", "derived_from")


def graph(store: GraphStore, seed: int) -> list[tuple[str, str, str]]:
    """The links of a random graph of six nodes."""
    chance = random.Random(seed)
    for number in range(6):
        store.add_node("fact", {"n": number}, id=f"n{number}")
    found = []
    for source, target in itertools.permutations(range(6), 2):
        if source < target and chance.random() < 0.5:
            kind = chance.choice(KINDS)
            store.link(f"n{source}", kind, f"n{target}")
            found.append((f"n{source}", kind, f"n{target}"))
    return found


# the hops of a pattern: from, to, whether it points, the kind or None
SHAPES: dict[str, tuple[str, list[tuple[str, str, bool, str | None]]]] = {
    "two to one": ("(a)-[:RELATED_TO]->(c)<-[:RELATED_TO]-(b)", [("a", "c", True, "related_to"), ("b", "c", True, "related_to")]),
    "one to two": ("(a)<-[:DERIVED_FROM]-(c)-[:DERIVED_FROM]->(b)", [("c", "a", True, "derived_from"), ("c", "b", True, "derived_from")]),
    "one after the other": ("(a)-[:RELATED_TO]->(c)-[:RELATED_TO]->(b)", [("a", "c", True, "related_to"), ("c", "b", True, "related_to")]),
    "either way": ("(a)-[x:RELATED_TO]-(c)-[:RELATED_TO]-(b)", [("a", "c", False, "related_to"), ("c", "b", False, "related_to")]),
    "any kind": ("(a)-[]-(c)--(b)", [("a", "c", False, None), ("c", "b", False, None)]),
    "two patterns": ("(a)-[:RELATED_TO]->(c), (d)-[:RELATED_TO]->(b)", [("a", "c", True, "related_to"), ("d", "b", True, "related_to")]),
    "kinds that differ": ("(a)-[:RELATED_TO]->(c)<-[:DERIVED_FROM]-(b)", [("a", "c", True, "related_to"), ("b", "c", True, "derived_from")]),
    "kinds that overlap": (
        "(a)-[:RELATED_TO|DERIVED_FROM]->(c)<-[:RELATED_TO]-(b)", [("a", "c", True, None), ("b", "c", True, "related_to")],
    ),
    "three": (
        "(a)-[:RELATED_TO]->(c)<-[:RELATED_TO]-(d)-[:RELATED_TO]->(b)",
        [("a", "c", True, "related_to"), ("d", "c", True, "related_to"), ("d", "b", True, "related_to")],
    ),
}  # fmt: skip


def by_hand(
    links: list[tuple[str, str, str]], hops: list[tuple[str, str, bool, str | None]]
) -> Counter[tuple[str, str]]:
    """The ends (a, b) of each way to bind the hops to links, none of which is used twice."""
    found: Counter[tuple[str, str]] = Counter()
    for chosen in itertools.permutations(links, len(hops)):
        for turned in itertools.product((False, True), repeat=len(hops)):
            bound: dict[str, str] = {}
            for (begin, end, points, kind), (source, of, target), turn in zip(
                hops, chosen, turned, strict=True
            ):
                if (turn and points) or (kind is not None and of != kind):
                    break
                for name, value in ((begin, target if turn else source), (end, source if turn else target)):
                    if bound.setdefault(name, value) != value:
                        break
                else:
                    continue
                break
            else:
                found[bound["a"], bound["b"]] += 1
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("condition", ["", "WHERE a.id <> 'n9' OR b.id STARTS WITH 'n'", "WHERE a.n >= 0"])
@pytest.mark.parametrize("seed", range(3))
def test_the_rows_are_those_of_links_that_are_each_another_one(store, shape, condition, seed):
    pattern, hops = SHAPES[shape]
    links = graph(store, seed)
    rows = store.as_of().query(f"MATCH {pattern} {condition} RETURN a.id AS a, b.id AS b")

    assert Counter((row["a"], row["b"]) for row in rows) == by_hand(links, hops)


def test_who_lives_where_somebody_lives_is_not_himself(store):
    store.add_node("place", {"n": 0}, id="home")
    for name in ("ana", "bob"):
        store.add_node("person", {"n": 1}, id=name)
        store.link(name, "related_to", "home")
    text = "MATCH (a)-[:RELATED_TO]->(h)<-[:RELATED_TO]-(b) WHERE a.id = 'ana' RETURN b.id AS b"

    assert [row["b"] for row in store.as_of().query(text)] == ["bob"]
    assert [row["b"] for row in store.query_tables(text)] == ["bob"]
    both = "MATCH (a)-[:RELATED_TO]->(h) MATCH (h)<-[:RELATED_TO]-(b) WHERE a.id = 'ana' RETURN b.id AS who ORDER BY who"
    assert [row["who"] for row in store.as_of().query(both)] == ["ana", "bob"]  # two MATCHes are two looks


def test_a_way_of_any_length_passes_no_link_twice(store):
    links = graph(store, 0)
    rows = store.as_of().query("MATCH (a)-[:RELATED_TO*1..2]-(b) RETURN a.id AS a, b.id AS b")
    one = [("a", "b", False, "related_to")]
    two = [("a", "c", False, "related_to"), ("c", "b", False, "related_to")]

    assert Counter((row["a"], row["b"]) for row in rows) == by_hand(links, one) + by_hand(links, two)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MATCH (a)-[:RELATED_TO*1..3]->(b)-[:RELATED_TO]->(c) RETURN a", "variable length"),
        ("MATCH (a)-[*1..2]-(b), (c)-[:RELATED_TO]->(d) RETURN a", "variable length"),
        ("MATCH (a)-[:RELATED_TO]->(c)<-[:RELATED_TO]-(b) RETURN *", "Name them"),
    ],
)
def test_what_cannot_be_said_is_refused(store, text, words):
    graph(store, 0)
    with pytest.raises(QueryError, match=words):
        store.as_of().query(text)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a)-[r:X]->(b) RETURN r",
        "MATCH (a)-[:X]->(b)-[:X]->(c) RETURN a",
        "MATCH (a)-[:X]->(b)<-[:Y]-(c) RETURN a",
        "MATCH (a)-[:X]->(b) MATCH (b)<-[:X]-(c) RETURN a",
        "MATCH (a)-[:X* SHORTEST 1..3]->(b) RETURN a",
        "MATCH p = (a)-[:X* TRAIL 1..3]->(b) RETURN p",
        "RETURN 1 - 2 AS x",
        "MATCH (a) WHERE a.x - a.y < -1 RETURN a",
        "MATCH (a {x: '-[:X]-'})-[:X]->(b) RETURN a",
        "UNWIND [1, 2] AS x RETURN x",
    ],
)
def test_a_text_in_which_nothing_can_be_twice_stays_as_it_is(text):
    assert once_each(parse(text)).text == parse(text).text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "MATCH (a)-[x:X]->(c)<-[:X]-(b) RETURN a",
            "MATCH (a)-[x:X]->(c)<-[_rel0:X]-(b) WHERE id(x) <> id(_rel0) RETURN a",
        ),
        (
            "MATCH (a)--(c)--(b) WHERE a.x STARTS WITH 'y' OR b.z = 1 WITH a RETURN a",
            "MATCH (a)-[_rel0]-(c)-[_rel1]-(b) WHERE id(_rel0) <> id(_rel1) AND ( a.x STARTS WITH 'y' OR b.z = 1) WITH a RETURN a",
        ),
        (
            "MATCH (n) WHERE EXISTS { MATCH (n)-[:X]->(c)<-[:X]-(b) WHERE b.x = 1 } RETURN n",
            "MATCH (n) WHERE EXISTS { MATCH (n)-[_rel0:X]->(c)<-[_rel1:X]-(b) WHERE id(_rel0) <> id(_rel1) AND ( b.x = 1) } RETURN n",
        ),
        ("MATCH (a)-[:X*1..3]->(b) RETURN a", "MATCH (a)-[:X* TRAIL 1..3]->(b) RETURN a"),
    ],
)
def test_what_is_added(text, made):
    assert once_each(parse(text)).text == made
