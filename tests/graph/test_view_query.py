"""What Cypher sees of a view is the view: the same things, the same links, nothing of another time."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

import graphstore
from graphstore import GraphStore, View
from graphstore.errors import QueryError
from graphstore.graph import texts
from graphstore.graph.graphs import KEPT_VIEWS
from graphstore.graph.result import Result
from graphstore.graph.view_graph import named_labels, named_tables
from graphstore.values.models import Event, Node
from graphstore.values.vocabulary import KINDS
from tests.conftest import Clock, day
from tests.graph.test_projection import known, open_store, wander

pytestmark = [pytest.mark.served, pytest.mark.driver]

BASE = [
    "id",
    "kind",
    "key",
    "scope",
    "number",
    "text",
    "tags",
    "trigger",
    "source",
    "standing",
    "author",
    "valid_from",
    "valid_to",
    "tx_from",
]
EVENT = [
    "id",
    "type",
    "occurred_at",
    "first_seen",
    "last_seen",
    "count",
    "status",
    "description",
    "source",
    "origin",
    "agent",
    "fingerprint",
    "trace_id",
    "span_id",
    "parent_span_id",
    "standing",
    "tx_from",
]
LINK = ["id", "kind", "reason", "strength", "confidence", "created_by", "valid_from", "valid_to", "tx_from"]


@pytest.fixture
def store(clock: Clock) -> Iterator[GraphStore]:
    """An empty store in memory, on the driver that is tested: GRAPHSTORE_DRIVER."""
    with open_store(":memory:", clock=clock) as opened:
        yield opened


def ids(view: View, cypher: str, **params: Any) -> list[str]:
    return [row["id"] for row in view.query(cypher, **params)]


# ------------------------------------------------------------------ the same as the other reads


@pytest.mark.parametrize("seed", range(3))
def test_a_query_sees_what_the_view_shows(store: GraphStore, clock: Clock, seed: int) -> None:
    moments = []
    for part in range(3):
        wander(store, clock, 25, seed=10 * seed + part)
        moments.append(clock.now)
    chance = random.Random(seed)
    for tx in moments:
        for valid in (tx, tx + timedelta(days=chance.randint(-40, 30))):
            same(store, store.as_of(valid=valid, tx=tx))


def same(store: GraphStore, view: View) -> None:
    """Everything `view` shows is in its graph, and nothing else."""
    nodes = {row["n"]["id"]: row["n"] for row in view.query("MATCH (n:Node) RETURN n")}
    assert nodes.keys() == {node.id for node in view.nodes()}
    for node in view.nodes():
        fields = node.model_dump()
        assert {name: nodes[node.id][name] for name in BASE} == {name: plain(fields[name]) for name in BASE}
        assert orjson.loads(nodes[node.id]["content"]) == node.content
        assert all(
            nodes[node.id][name] == value for name, value in node.content.items() if isinstance(value, str)
        )

    events = {row["e"]["id"]: row["e"] for row in view.query("MATCH (e:Event) RETURN e")}
    assert events.keys() == {event.id for event in view.events()}
    for event in view.events():
        fields = event.model_dump()
        assert {name: events[event.id][name] for name in EVENT} == {name: fields[name] for name in EVENT}
        assert orjson.loads(events[event.id]["metadata"]) == event.metadata

    born = [id for id, _ in known(store)]
    links, absent = {}, {}
    for id in born:
        try:
            seen = view.inspect(id)
        except graphstore.NotFoundError:
            continue
        links |= {link.id: link for link in view.links_from(id)}
        if id not in nodes and id not in events:
            absent[id] = seen.node
    found = {
        row["r"]["id"]: row
        for row in view.query(
            "MATCH (a)-[r]->(b) RETURN a.id AS source, b.id AS target, label(r) AS label, r"
        )
    }
    assert found.keys() == links.keys()
    for id, link in links.items():
        fields = link.model_dump()
        assert {name: found[id]["r"][name] for name in LINK} == {name: fields[name] for name in LINK}
        assert orjson.loads(found[id]["r"]["metadata"]) == link.metadata
        assert found[id]["label"] == link.kind.upper()
        ends = (found[id]["source"], found[id]["target"])
        if KINDS[link.kind].symmetric:  # read from either end
            assert set(ends) == {link.source, link.target}
        else:
            assert ends == (link.source, link.target)

    gone = {row["n"]["id"]: row["n"] for row in view.query("MATCH (n:Absent) RETURN n")}
    assert {id: thing.standing for id, thing in absent.items()} == {
        id: row["standing"] for id, row in gone.items()
    }
    for id, thing in absent.items():
        if isinstance(thing, Node):
            assert {name: gone[id][name] for name in BASE} == {
                name: plain(thing.model_dump()[name]) for name in BASE
            }
        else:
            assert isinstance(thing, Event)
            assert (gone[id]["kind"], gone[id]["text"]) == (thing.type, thing.description)


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# ------------------------------------------------------------------ a story


@pytest.fixture
def story(store: GraphStore, clock: Clock) -> Iterator[tuple[GraphStore, dict[str, str]]]:
    """Sessions were replaced by tokens on 10 February, recorded on the 12th; an outage was caused by the sessions."""
    clock.set("2026-02-01")
    sessions = store.add_node("decision", {"choice": "sessions", "cost": 3}, valid_from="2026-01-05")
    clock.set("2026-02-03")
    outage = store.record_event("error", "logins failed", occurred_at="2026-02-02").event
    store.link(outage.id, "caused_by", sessions.id, reason="the table was full")
    clock.set("2026-02-12")
    tokens = store.add_node(
        "decision",
        {"choice": "tokens", "cost": 2.5},
        valid_from="2026-02-10",
        supersedes=[sessions.id],
        reason="scale",
    )
    keys = store.add_node(
        "decision", {"choice": "keys", "cost": 4}, valid_from="2026-02-11", supersedes=[tokens.id]
    )
    yield store, {"sessions": sessions.id, "outage": outage.id, "tokens": tokens.id, "keys": keys.id}


def test_a_stale_node_is_absent_and_says_how(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story

    assert [names["keys"]] == ids(store.as_of(), "MATCH (n:Node) RETURN n.id AS id")
    rows = store.query(
        "MATCH (n:Absent) RETURN n.id AS id, n.standing AS standing, n.content AS content ORDER BY n.content"
    )
    assert [(row["id"], row["standing"]) for row in rows] == [
        (names["sessions"], "superseded"),
        (names["tokens"], "superseded"),
    ]
    assert orjson.loads(rows.rows()[0]["content"]) == {"choice": "sessions", "cost": 3}


def test_before_it_was_recorded_the_old_one_stands(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story
    view = store.as_of(valid="2026-02-11", tx="2026-02-11")

    assert [names["sessions"]] == ids(view, "MATCH (n:Node) RETURN n.id AS id")
    assert ids(view, "MATCH (n:Absent) RETURN n.id AS id") == []
    assert [row["valid_to"] for row in view.query("MATCH (n:Node) RETURN n.valid_to AS valid_to")] == [None]


def test_recursive_patterns_walk_the_view(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story
    chain = "MATCH (a {id: $id})-[:SUPERSEDES* TRAIL 1..5]->(b) RETURN b.id AS id"

    assert {names["tokens"], names["sessions"]} == set(ids(store.as_of(), chain, id=names["keys"]))
    assert ids(store.as_of(valid="2026-01-10"), chain, id=names["keys"]) == []


def test_recursive_patterns_can_be_held_to_what_stands(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story
    around = "MATCH (a:Event {id: $id})-[* TRAIL 1..4 (r, n | WHERE n.standing = 'stands')]-(b) RETURN DISTINCT b.id AS id"

    # the way from the outage leads over the sessions, which no longer stand
    assert [names["sessions"]] == [
        id for id in ids(store.as_of(), around, id=names["outage"]) if id != names["outage"]
    ]
    assert {names["sessions"], names["tokens"], names["keys"]} == {
        id
        for id in ids(store.as_of(), around.replace("n.standing = 'stands'", "true"), id=names["outage"])
        if id != names["outage"]
    }


def test_every_kind_can_be_asked_for_though_no_link_has_it(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, _ = story
    store.define_kind("sails_with")

    for kind in store._core.vocabulary.kinds:
        assert isinstance(
            len(
                store.query(f"MATCH (a:Node)-[r:{kind.upper()}]->(b) RETURN r.id, r.reason, r.strength, b.id")
            ),
            int,
        )
        assert len(store.query(f"MATCH (a:Event)-[r:{kind.upper()}* 1..2]->(b:Absent) RETURN b.id")) >= 0
    assert len(store.query("MATCH (a)-[r]-(b) RETURN r")) == 6


def test_an_empty_store_can_be_asked(store: GraphStore) -> None:
    assert store.query("MATCH (n:Node)-[r:SUPERSEDES]->(m) RETURN n").rows() == []
    assert store.query("MATCH (n) RETURN count(*) AS n").single() == {"n": 0}


def test_instants_are_aware_and_open_ends_are_none(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story

    row = store.query(
        "MATCH (n:Absent {id: $id}) RETURN n.valid_from AS since, n.valid_to AS until", id=names["tokens"]
    ).single()

    assert row == {"since": day("2026-02-10"), "until": day("2026-02-11")} or row["until"] is None
    assert [
        row["since"]
        for row in store.query(
            "MATCH (n:Node) WHERE n.valid_from >= $since RETURN n.valid_from AS since",
            since=day("2026-02-11"),
        )
    ]


@pytest.mark.parametrize(
    ("cypher", "asked"),
    [
        ("MATCH (n:Node) RETURN n", set()),
        ("MATCH (n) WHERE n.rank - 1 > -2 RETURN n.rank-n.cost, [1][1]", set()),
        ("MATCH (a)-[:Supersedes]->(b) RETURN a", {"SUPERSEDES"}),
        ("MATCH (a)<-[r:`caused_by`|:USES|PART_OF* TRAIL 1..3 (r, n | WHERE n.x = '-[]-')]-(b) RETURN a", {"CAUSED_BY", "USES", "PART_OF"}),
        ("MATCH (a)-[:USES]->(b) /* -- */ MATCH (b) - [ s : BLOCKS { id : $id } ] - (c) RETURN a", {"USES", "BLOCKS"}),
        ("MATCH (a)-[:USES]->(b) WHERE EXISTS { MATCH (b)-[:BLOCKS]->() } RETURN a", {"USES", "BLOCKS"}),
        ("MATCH (a)-[r]->(b) RETURN r", None),
        ("MATCH (a)-[* 1..2]->(b) RETURN a", None),
        ("MATCH (a)-[r* 1..2]->(b) RETURN a", None),
        ("MATCH (a)-[]->(b) RETURN a", None),
        ("MATCH (a)-[{id: $id}]-(b) RETURN a", None),
        ("MATCH (a)-[r {id: $id}]-(b) RETURN a", None),
        ("MATCH (a)-->(b) RETURN a", None),
        ("MATCH (a)<--(b) RETURN a", None),
        ("MATCH (a)--(b) RETURN a", None),
        ("MATCH (a)-(b) RETURN a", None),
        ("MATCH (a)-[:USES]->(b)--(c) RETURN a", None),
        ("MATCH (a)\N{EM DASH}[r]\N{EM DASH}(b) RETURN a", None),
        ("CALL show_tables() RETURN *", None),
    ],
)  # fmt: skip
def test_a_text_lays_the_links_it_can_read(cypher: str, asked: set[str] | None) -> None:
    assert named_tables(cypher) == asked


@pytest.mark.parametrize(
    ("cypher", "labels"),
    [
        ("RETURN 1 AS n", set()),
        ("MATCH (a:Node)-[:USES]->(b:Node) RETURN a.id, count(*) AS n", {"NODE"}),
        ("MATCH (a:node {id: 'x'})<-[r:USES]-(:`Event`) WHERE (a.number + 1) > 1 RETURN count(a), r", {"NODE", "EVENT"}),
        ("MATCH (a:Node|Absent)-->(b:Node:Event) RETURN collect(b)", {"NODE", "ABSENT", "EVENT"}),
        ("MATCH (a:Absent) WHERE EXISTS { MATCH (a)-[]->(:Node) } RETURN a", None),
        ("MATCH (a:Node) WHERE NOT (a)-[:USES]->(:Node) RETURN a", None),
        ("MATCH (a:Node) MATCH (a)-[:USES]->(b:Node) RETURN a", None),
        ("MATCH (a)-[:USES]->(b:Node) RETURN a", None),
        ("MATCH (a:Node)-[:USES]->() RETURN a", None),
        ("MATCH (a:Node)-[:USES]->({id: 'x'}) RETURN a", None),
        ("MATCH (a:Node)-[:USES*1..3]->(b:Node) RETURN a", None),
        ("MATCH (a:Node)-[* SHORTEST 1..3]->(b:Node) RETURN a", None),
        ("MATCH (a:Node)-[:USES]->{1,3}(b:Node) RETURN a", None),
        ("MATCH (a:!Node) RETURN a", None),
        ("MATCH (a:Node&Event) RETURN a", None),
        ("MATCH (a:Other) RETURN a", None),
        ("MATCH (a:$label) RETURN a", None),
        ("MATCH (a:Node)\u2014[:USES]->(b:Node) RETURN a", None),
        ("CALL table_info('Node') RETURN *", None),
    ],
)  # fmt: skip
def test_a_text_reads_the_labels_it_says(cypher: str, labels: set[str] | None) -> None:
    assert named_labels(cypher) == labels


def test_what_is_loaded_when_it_is_named_is_what_is_loaded_at_once(
    story: tuple[GraphStore, dict[str, str]],
) -> None:
    store, names = story
    store.link(names["keys"], "uses", names["tokens"])
    asked = [
        "MATCH (a:Node)-[r]->(b:Node) RETURN a.id AS x, label(r) AS k, b.id AS y ORDER BY x, k, y",
        "MATCH (a:Node)-[r]->(b:Absent) RETURN a.id AS x, label(r) AS k, b.id AS y ORDER BY x, k, y",
        "MATCH (a:Event)-[r]-(b:Node:Absent) RETURN a.id AS x, label(r) AS k, b.id AS y ORDER BY x, k, y",
        "MATCH (a:Event) RETURN a.* ORDER BY a.id",
        "MATCH (a:Absent) RETURN a.* ORDER BY a.id",
        "MATCH (a:Node) RETURN a.* ORDER BY a.id",
        "MATCH (a)-[r]->(b) RETURN a.id AS x, label(r) AS k, b.id AS y ORDER BY x, k, y",
        "MATCH (a:Node)-[:SUPERSEDES|USES]->(b:Node:Absent)<-[r]-(c:Event) RETURN count(*) AS n",
        "MATCH (n) RETURN label(n) AS l, count(*) AS n ORDER BY l",
    ]
    view = store.as_of()

    def answers(order: list[str]) -> dict[str, str]:
        store._core.graphs.close()
        return {cypher: repr(view.query(cypher).rows()) for cypher in order}

    whole = {
        cypher: answers(["MATCH (n) RETURN count(*) AS n", "MATCH ()-[r]->() RETURN count(*) AS n", cypher])[
            cypher
        ]
        for cypher in asked
    }
    assert any("[]" != answer for answer in whole.values())
    chance = random.Random(3)
    for _ in range(12):
        assert whole == answers(chance.sample(asked, len(asked)))


def test_a_graph_that_was_not_loaded_whole_is_built_again(
    story: tuple[GraphStore, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    view, asked = story[0].as_of(), "MATCH (e:Event) RETURN count(*) AS n"
    there = view.query(asked).single()["n"]
    story[0]._core.graphs.close()
    view.query("MATCH (n:Node) RETURN count(*) AS n")
    with monkeypatch.context() as patched:
        patched.setattr(
            "graphstore.graph.engine.Engine.copy",
            lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            view.query(asked)
    assert there == view.query(asked).single()["n"] > 0


def test_links_are_there_however_they_are_asked_for(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, names = story
    store.link(names["keys"], "uses", names["tokens"])
    view = store.as_of()

    counts = [
        ("MATCH (a)-[r:USES]->(b) RETURN count(*) AS n", 1),
        ("MATCH (a:Event)-[r:caused_by]->(b) RETURN count(*) AS n", 1),
        ("MATCH (a)-[r:USES|SUPERSEDES]-(b) RETURN count(*) AS n", 6),
        ("MATCH (a)-->(b) RETURN count(*) AS n", 4),
        ("MATCH ()-[r]->() RETURN count(*) AS n", 4),
        ("MATCH (a)-[:USES]->(b)<-[:SUPERSEDES]-(a) RETURN count(*) AS n", 1),
    ]
    for chosen in (counts, counts[::-1], counts[2:], counts[1:]):
        store._core.graphs.close()
        assert [(cypher, view.query(cypher).single()["n"]) for cypher, _ in chosen] == chosen


# ------------------------------------------------------------------ content as columns


def columns(store: GraphStore) -> dict[str, str]:
    return {row["name"]: row["type"] for row in store.query("CALL table_info('Node') RETURN name, type")}


def test_fields_of_the_content_are_typed_columns(store: GraphStore) -> None:
    store.add_node(
        "fact",
        {
            "ok": True,
            "rank": 1,
            "score": 1,
            "name": "a",
            "mixed": 1,
            "list": [1, 2],
            "map": {"a": 1},
            "nothing": None,
        },
    )
    store.add_node("fact", {"ok": False, "rank": 2, "score": 1.5, "name": None, "mixed": "1", "list": []})
    store.add_node("fact", {"huge": 2**63, "yes": True, "count": 2})
    store.add_node("fact", {"huge": 1, "yes": 1, "count": None})

    assert columns(store).items() >= {
        "ok": "BOOL", "rank": "INT64", "score": "DOUBLE", "name": "STRING", "mixed": "STRING", "list": "STRING", "map": "STRING",
        "nothing": "STRING", "huge": "STRING", "yes": "STRING", "count": "INT64",
    }.items()  # fmt: skip
    rows = store.query(
        "MATCH (n:Node) WHERE n.rank IS NOT NULL RETURN n.ok AS ok, n.score AS score, n.mixed AS mixed, n.list AS list ORDER BY n.rank"
    ).rows()
    assert rows == [
        {"ok": True, "score": 1.0, "mixed": "1", "list": "[1,2]"},
        {"ok": False, "score": 1.5, "mixed": '"1"', "list": "[]"},
    ]


def test_a_field_that_clashes_gets_a_prefix(store: GraphStore) -> None:
    content = {
        "id": "mine", "Kind": "k", "standing": "firm", "c_id": "second", "name": 1, "Name": 2, "NAME": 3,
        "_id": 4, "": 5, " ": 6, "a`b": 7, "a\nb": 8, "occurred_at": "then",
    }  # fmt: skip
    store.add_node("fact", content)

    fields = {
        name: kind
        for name, kind in columns(store).items()
        if name not in [*BASE, "told", "remainder", "content"]
    }

    assert sorted(fields) == sorted(
        [
            "c_c_id",
            "c_id",
            "c_Kind",
            "c_standing",
            "NAME",
            "c_Name",
            "c_c_name",
            "c__id",
            "c_",
            "c_ ",
            "c_a_b",
            "c_c_a_b",
            "c_occurred_at",
        ]
    )
    assert store.query("MATCH (n:Node) RETURN n.c__id AS a, n.NAME AS b, n.standing AS c").single() == {
        "a": 4,
        "b": 3,
        "c": "stands",
    }


def test_any_other_name_is_a_column_in_backticks(store: GraphStore) -> None:
    names = [
        "deploy day",
        "it's",
        'a "quote"',
        "naïve",
        "日本",
        "match",
        "ORDER",
        "1st",
        "a.b",
        "x;y",
        "$p",
        "/* c */",
        "// c",
        "\U0001f600",
        "x" * 300,
    ]
    store.add_node("fact", {name: at for at, name in enumerate(names)})

    for at, name in enumerate(names[:-1]):
        assert store.query(f"MATCH (n:Node) RETURN n.`{name}` AS value").single() == {"value": at}
    assert store.query(f"MATCH (n:Node) RETURN n.c_{'x' * 200} AS value").single() == {
        "value": len(names) - 1
    }


def test_fields_named_like_an_events_columns_can_be_asked_over_all_labels(store: GraphStore) -> None:
    store.add_node("fact", {"type": 3, "agent": ["a"], "metadata": {"x": 1}, "Description": 1.5})
    store.record_event("error", "it failed")

    rows = store.query(
        "MATCH (n) RETURN n.type AS type, n.agent AS agent, n.metadata AS metadata ORDER BY type"
    ).rows()

    assert rows == [
        {"type": "3", "agent": '["a"]', "metadata": '{"x":1}'},
        {"type": "error", "agent": None, "metadata": "{}"},
    ]


def test_a_field_no_node_has_is_refused_with_those_there_are(store: GraphStore) -> None:
    store.add_node("fact", {"name": "a", "deploy day": "friday"})

    with pytest.raises(QueryError, match=r"no property 'nmae'.*content.*`deploy day`, name"):
        store.query("MATCH (n:Node) WHERE n.nmae = 'a' RETURN n.id")


def test_many_different_fields_keep_the_frequent_ones(store: GraphStore) -> None:
    with store.transaction():
        for at in range(150):
            store.add_node("fact", {"common": at, f"rare_{at}": at})

    assert columns(store)["common"] == "INT64"
    assert len(columns(store)) < 150
    with pytest.raises(QueryError, match="51 rarer content fields are in content only"):
        store.query("MATCH (n:Node) RETURN n.nothing")
    assert store.query(
        "MATCH (n:Node) WHERE n.content CONTAINS 'rare_149' RETURN n.common AS common"
    ).single() == {"common": 149}


def test_words_that_look_like_cypher_stay_words(store: GraphStore, clock: Clock) -> None:
    evil = [
        "'}) DETACH DELETE n //",
        '"; COMMIT; MATCH (n) DELETE n; //',
        "`)-[]->(",
        "$id",
        "\\",
        "\\'",
        "\u0000",
        "\u202e\u2028\ufeff",
        "\U0001f600é日",
    ]
    for text in evil:
        a = store.add_node("fact", {"name": text, text: text}, text=text, source=text, tags=[text])
        b = store.record_event("error", text or "x", metadata={text: text}).event
        store.link(
            b.id, "caused_by", a.id, reason=text, metadata={text: text}
        ) if b.occurred_at >= a.valid_from else None

    rows = store.query(
        "MATCH (n:Node) RETURN n.name AS name, n.text AS text, n.source AS source, n.tags[1] AS tag"
    ).rows()
    assert sorted(map(tuple, map(dict.values, rows))) == sorted((text,) * 4 for text in evil)
    assert sorted(ids_of(store, "MATCH (e:Event) RETURN e.description AS id")) == sorted(evil)
    assert sorted(ids_of(store, "MATCH ()-[r:CAUSED_BY]->() RETURN r.reason AS id")) == sorted(evil)
    for text in evil:
        assert len(store.query("MATCH (n:Node) WHERE n.name = $name RETURN n", name=text)) == 1


def ids_of(store: GraphStore, cypher: str) -> list[str]:
    return [row["id"] for row in store.query(cypher)]


# ------------------------------------------------------------------ edges of time


def test_a_view_inside_a_transaction_sees_what_it_wrote(store: GraphStore) -> None:
    store.add_node("fact", {"name": "before"})

    with store.transaction():
        store.add_node("fact", {"name": "pending"})
        assert sorted(ids_of(store, "MATCH (n:Node) RETURN n.name AS id")) == ["before", "pending"]


def test_a_view_stays_where_it_is(store: GraphStore, clock: Clock) -> None:
    a = store.add_node("fact", {"name": "a"})
    view = store.as_of()
    assert ids(view, "MATCH (n:Node) RETURN n.id AS id") == [a.id]
    clock.move(days=1)

    store.retract(a.id, reason="wrong")
    store.add_node("fact", {"name": "b", "extra": 1})

    assert ids(view, "MATCH (n:Node) RETURN n.id AS id") == [a.id]
    with pytest.raises(QueryError):
        view.query("MATCH (n:Node) RETURN n.extra")
    assert ids_of(store, "MATCH (n:Node) RETURN n.name AS id") == ["b"]


def test_a_thing_told_and_taken_back_at_once_is_absent(store: GraphStore) -> None:
    with store.transaction():
        a = store.add_node("fact", {"name": "a"})
        b = store.add_node("fact", {"name": "b"})
        store.link(b.id, "related_to", a.id)
        store.retract(a.id, reason="slip")

    assert store.query(
        "MATCH (b:Node)-[:RELATED_TO]->(a:Absent) RETURN a.id AS id, a.standing AS standing, a.content AS content"
    ).rows() == [{"id": a.id, "standing": "retracted", "content": '{"name":"a"}'}]


def test_what_does_not_stand_has_the_fields_of_its_content(store):
    store.add_node("fact", {"owner": "ana", "n": 3, "odd": [1]}, id="a")
    store.add_node("fact", {"owner": "bob", "n": 4}, id="b")
    store.add_node("fact", {"owner": 7, "n": "text", "gone": True}, id="c")
    store.add_node("fact", {"owner": "cy"}, id="erased")
    store.record_event("error", "boom", id="e")
    store.supersede("a", by="b")
    store.retract("c", reason="it was wrong")
    store.retract("e", reason="it was wrong")
    store.erase("erased", reason="private")

    found = store.query("MATCH (n:Absent) RETURN n.id, n.owner, n.n, n.odd, n.gone ORDER BY n.id")
    assert [
        ("a", "ana", 3, "[1]", None),
        ("c", "7", None, None, True),
        ("e", None, None, None, None),
        ("erased", None, None, None, None),
    ] == found.tuples()
    old = store.query(
        "MATCH (b:Node)-[:SUPERSEDES]->(a:Absent) WHERE a.owner <> b.owner RETURN a.owner, b.owner"
    )
    assert [("ana", "bob")] == old.tuples()
    assert [("a", "ana"), ("b", "bob")] == store.query(
        "MATCH (n) WHERE n.n IS NOT NULL RETURN n.id, n.owner ORDER BY n.id"
    ).tuples()
    with pytest.raises(QueryError, match=r"Absent has these and gone, odd\."):
        store.query("MATCH (n:Absent) RETURN n.nope")


def test_instants_at_the_edges_of_the_calendar(store: GraphStore) -> None:
    store.add_node("fact", {"name": "old"}, valid_from="0001-01-01", valid_to="0002-01-01")
    view = store.as_of(valid="0001-06-01")

    assert view.query("MATCH (n:Node) RETURN n.valid_from AS since").single() == {
        "since": datetime.fromisoformat("0001-01-01T00:00:00+00:00")
    }


# ---- every column stays -------------------------------------------------------------------------


def test_no_column_of_a_result_vanishes(story: tuple[GraphStore, dict[str, str]]) -> None:
    store, _ = story
    asked = "MATCH (n:Node) RETURN n.id, n.key AS empty, NULL AS nothing LIMIT 2"

    for found in (store.query(asked), store.query_tables(asked)):
        assert ["n.id", "empty", "nothing"] == found.columns == found.to_arrow().column_names
        assert ["n.id", "empty", "nothing"] == list(found.to_pandas().columns) == found.to_polars().columns
        assert ["n.id", "empty", "nothing"] == repr(found).split("\n")[0].split()
        assert all(["n.id", "empty", "nothing"] == list(row) for row in found)


def test_columns_of_one_name_are_told_apart() -> None:
    found = Result(["x", "x", "x_2", "y", "x"], [(1, 2, 3, 4, 5)])

    assert {"x": 1, "x_3": 2, "x_2": 3, "y": 4, "x_4": 5} == found.single()
    assert found.columns == found.to_arrow().column_names


def test_a_relationship_table_is_made_when_a_text_names_it(store: GraphStore) -> None:
    for id in ("a", "b"):
        store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    store.link("a", "supports", "b")
    view = store.as_of()

    def made() -> list[str]:
        graph = next(iter(store._core.graphs._views.values()))
        return sorted(
            name for name, kind in graph.engine.run(texts.text("tables_there_are")) if kind == "REL"
        )

    assert [{"n": 2}] == view.query("MATCH (n:Node) RETURN count(*) AS n").rows()
    assert [] == made()
    assert [{"n": 0}] == view.query("MATCH (:Node)-[:CAUSED_BY]->() RETURN count(*) AS n").rows()
    assert ["CAUSED_BY"] == made()
    assert [{"kind": "SUPPORTS"}] == view.query("MATCH ()-[r]->() RETURN label(r) AS kind").rows()
    assert len(store.vocabulary.kinds) == len(made())


def test_an_event_and_a_link_have_their_authors(store: GraphStore) -> None:
    with store.transaction(author="ana"):
        store.record_event("error", "it is down", id="down")
    with store.transaction(author="boris"):
        store.record_event("error", "it is down")  # again: she recorded it first
        store.add_node("fact", {"says": "carts are lost"}, id="lost")
        store.link("lost", "caused_by", "down")
    asked = "MATCH (n)-[r:CAUSED_BY]->(e:Event) RETURN n.author AS n, r.author AS r, e.author AS e"

    assert [{"n": "boris", "r": "boris", "e": "ana"}] == store.query(asked).rows()
    for text, has in (
        ("MATCH (e:Event) RETURN e.nobody", "Event has id, type, occurred_at"),
        ("MATCH ()-[r:CAUSED_BY]->() RETURN r.nobody", "A link has id, kind, reason"),
        ("MATCH (n:Node) RETURN n.nobody", "Node has id, kind, key"),
    ):
        with pytest.raises(QueryError, match=f"no property 'nobody' .*{has}"):
            store.query(text)


def test_a_graph_goes_with_its_last_reader(store: GraphStore, clock: Clock) -> None:
    for number in range(1, 10):
        store.add_node("fact", {"n": number}, id=f"n{number}", valid_from=f"2026-01-{number:02}")
    clock.move(days=1)
    graphs = []
    gc.disable()  # it goes by itself: none waits for a collection, which may be long in coming
    try:
        for number in range(1, 10):
            view = store.as_of(valid=f"2026-01-{number:02}T12:00:00Z")
            assert number == view.query("MATCH (n:Node) RETURN count(n) AS nodes").single()["nodes"]
            graphs.append(weakref.ref(next(reversed(store._core.graphs._views.values()))))
        assert KEPT_VIEWS == sum(graph() is not None for graph in graphs)
    finally:
        gc.enable()
