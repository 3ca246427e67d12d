"""Many instants of an axis: each answer is what the view at each of them says."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from graphstore import GraphStore, GraphStoreError, InvalidError, QueryError
from graphstore.graph import loading
from graphstore.store.over_time import instants_of
from graphstore.values.period import instant, moment
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

YEAR = ("2024-12-31", "2025-10-01", "1 month")


@pytest.fixture
def orders(store: GraphStore, clock: Clock) -> GraphStore:
    """Orders that open over the year, and are corrected and taken back later."""
    chance = random.Random(13)
    for number in range(10):
        clock.move(hours=1)
        begin = day("2025-01-15") + timedelta(days=chance.randrange(200))
        store.add_node(
            "order", {"state": chance.choice("ab"), "total": number}, id=f"o{number}", valid_from=begin
        )
    for number in range(20):
        clock.move(hours=1)
        begin = day("2025-01-15") + timedelta(days=chance.randrange(200))
        which = f"o{chance.randrange(10)}"
        if number % 5 == 4:
            held = store.history(which)[0].valid_from
            store.retract(which, valid_from=held, valid_to=held + timedelta(days=30), reason="too early")
        else:
            store.revise(
                which,
                {"state": chance.choice("ab"), "total": number},
                valid_from=begin,
                valid_to=begin + timedelta(days=60),
            )
    store.link("o1", "related_to", "o2", valid_from="2025-03-05")
    return store


@pytest.mark.parametrize(
    "spans",
    [{"valid": YEAR}, {"tx": ("2026-02-01", "2026-02-02T08:00:00Z", "3 hours"), "valid": "2025-06-01"}],
)
def test_each_instant_is_answered_as_its_view_does(orders: GraphStore, spans: dict[str, Any]) -> None:
    over = orders.over(**spans)
    views = list(over.views())
    assert len(over.at) == len(views) > 5
    text = "MATCH (n:Node) WHERE n.total >= $least RETURN n.id AS id, n.total AS total, n.state AS state ORDER BY id"
    expected = [
        (at, node.id, node.content["total"], node.content["state"])
        for at, view in zip(over.at, views, strict=True)
        for node in sorted(view.nodes(kind="order"), key=lambda each: each.id)
        if node.content["total"] >= 3
    ]
    assert over.query(text, least=3).tuples() == expected
    assert over.query(text, least=3).columns == ["at", "id", "total", "state"]

    summed = over.query("MATCH (n:Node) RETURN count(*) AS orders, sum(n.total) AS total").tuples()
    totals = [[node.content["total"] for node in view.nodes()] for view in views]
    assert summed == [
        (at, len(each), sum(each) if each else None) for at, each in zip(over.at, totals, strict=True)
    ]
    assert over.count("order").tuples() == [(at, len(each)) for at, each in zip(over.at, totals, strict=True)]
    assert over.total("max(total)", "order").tuples() == [
        (at, max(each)) for at, each in zip(over.at, totals, strict=True) if each
    ]
    stood = [
        (at, node.id, node.content["total"])
        for at, view in zip(over.at, views, strict=True)
        for node in sorted(view.nodes(), key=lambda each: each.id)
    ]
    assert [(row["at"], row["id"], row["total"]) for row in over.nodes("order")] == stood


def test_counts_of_each_value(orders: GraphStore) -> None:
    over = orders.over(valid=YEAR)
    expected = {
        (at, state): count
        for at, view in zip(over.at, over.views(), strict=True)
        for state in "ab"
        if (count := sum(node.content["state"] == state for node in view.nodes()))
    }

    assert {(at, state): count for at, state, count in over.count("order", by="state").tuples()} == expected


def test_what_changed_from_one_instant_to_the_next(orders: GraphStore) -> None:
    over = orders.over(valid=YEAR)
    views = list(over.views())
    expected = [
        (at, *row)
        for at, before, after in zip(over.at[1:], views, views[1:], strict=False)
        for row in before.changes_to(after).tuples()
    ]

    assert over.compare().tuples() == expected


def test_a_property_that_nothing_ever_has_is_refused(orders: GraphStore) -> None:
    for field in ("nothing", "totl"):
        with pytest.raises(InvalidError, match=f"ever had the field '{field}'"):
            orders.over(valid=YEAR).nodes("order", fields=["total", field])
    with pytest.raises(QueryError, match="no property 'nothing'"):
        orders.over(valid=YEAR).query("MATCH (n:Node) RETURN n.nothing")


@pytest.mark.parametrize(
    ("begin", "end", "step", "expected"),
    [
        ("2024-01-31", "2024-05-01", "1 month", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        (
            "2023-11-30",
            "2024-12-01",
            "quarter",
            ["2023-11-30", "2024-02-29", "2024-05-30", "2024-08-30", "2024-11-30"],
        ),
        ("2024-02-29", "2026-01-01", "1 year", ["2024-02-29", "2025-02-28"]),
        ("2024-01-01", "2024-01-22", "1 week", ["2024-01-01", "2024-01-08", "2024-01-15"]),
        ("2024-01-01", "2024-01-03", timedelta(days=1), ["2024-01-01", "2024-01-02"]),
        ("9999-11-15", "9999-12-31", "month", ["9999-11-15", "9999-12-15"]),
    ],
)
def test_steps_of_the_calendar(begin: str, end: str, step: Any, expected: list[str]) -> None:
    found = instants_of(instant(begin), instant(end), step)

    assert [moment(each).date().isoformat() for each in found] == expected


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ({}, "one of valid and tx as"),
        ({"valid": YEAR, "tx": YEAR}, "one of valid and tx as"),
        ({"valid": YEAR[:2]}, "has 2 values"),
        ({"valid": ("2025-01-01", "2026-01-01", "soon")}, "the step 'soon' is none"),
        ({"valid": ("2025-01-01", "2026-01-01", "0 days")}, "is none"),
        ({"valid": ("2025-01-01", "2026-01-01", "1 second")}, "Give a longer step"),
        ({"valid": ("2026-01-01", "2025-01-01", "1 day")}, "Give the earlier one first"),
        ({"valid": YEAR, "tx": "2100-01-01"}, "has not come yet"),
        ({"tx": ("2026-01-01", "2100-01-01", "1 year")}, "has not come yet"),
    ],
)
def test_what_is_no_span_of_instants_is_refused(orders: GraphStore, spans: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        orders.over(**spans)


def test_a_column_of_the_text_may_be_called_at(orders: GraphStore) -> None:
    over, text = orders.over(valid=YEAR), "MATCH (n:Node) RETURN n.id AS {} ORDER BY {}"
    found = over.query(text.format("at", "at"))

    assert found.columns == ["at", "at_2"]
    assert found.tuples() == over.query(text.format("id", "id")).tuples()


# ---------------------------------------------------------------- one graph of all instants

ONE_GRAPH = [
    "MATCH (n:Node {kind: 'order'}) RETURN n.id AS id, n.total AS total, n.valid_from AS since, n.author AS who ORDER BY id",
    "MATCH (n:Node) WHERE n.total > $least OR n.state = 'a' RETURN n.state AS state, count(*) AS c, sum(n.total) AS s ORDER BY state",
    "MATCH (n:Node) WHERE n.valid_to IS NULL RETURN count(n) AS c",
    "MATCH (:Node) RETURN count(*) AS c",
    "MATCH (a:Node)-[r:RELATED_TO]->(b:Node) RETURN a.id AS x, r.valid_from AS since, b.id AS y, b.total AS t ORDER BY x, y",
    "MATCH (a:Node)-[:RELATED_TO]->(b:Node)-[:RELATED_TO|CAUSED_BY]-(c:Node) RETURN a.id AS x, b.id AS y, c.id AS z ORDER BY x, y, z",
    "MATCH (a:Node {kind: 'order'}) OPTIONAL MATCH (a:Node)-[r:RELATED_TO]->(b:Node) WHERE b.total > $least RETURN a.id AS x, count(b) AS c ORDER BY x",
    "MATCH (a:Node) WITH a, a.total AS t WHERE t > $least MATCH (a:Node)-[:RELATED_TO]-(b:Node) RETURN count(*) AS c, max(b.total) AS m",
    "MATCH (a:Node), (b:Node) WHERE a.state = b.state AND a.id < b.id AND a.id STARTS WITH 'o' WITH a.state AS state, count(*) AS c RETURN state, c ORDER BY state",
    "MATCH (n:Node) RETURN n.note AS note, count(*) AS c ORDER BY note",
]
MANY_GRAPHS = [
    "MATCH (n:Node) RETURN n.id AS id, n.mixed AS mixed ORDER BY id",
    "MATCH (n:Node) RETURN n.id AS id, n.standing AS standing ORDER BY id",
    "MATCH (n:Absent) RETURN n.id AS id, n.standing AS standing ORDER BY id",
    "MATCH (a:Node)-[:RELATED_TO*1..3]->(b:Node) RETURN a.id AS x, b.id AS y ORDER BY x, y",
    "MATCH (a)-[:RELATED_TO]->(b) RETURN a.id AS x, b.id AS y ORDER BY x, y",
    "MATCH (a:Node)-[r]->(b:Node) RETURN a.id AS x, b.id AS y, label(r) AS kind ORDER BY x, y, kind",
    "MATCH (a:Node) WHERE EXISTS { MATCH (a:Node)-[:RELATED_TO]->(b:Node) } RETURN a.id AS x ORDER BY x",
    "MATCH (a:Node)-[:RELATED_TO]->(b:Node) RETURN b.id AS y, sum(a.total) AS s ORDER BY y",
    "MATCH (n:Node) WHERE NOT (n:Node)-[:RELATED_TO]->(:Node) RETURN n.id AS id ORDER BY id",
    "MATCH (n:Node) WHERE AS_OF(n) RETURN count(*) AS c",
    "MATCH p = (a:Node)-[:RELATED_TO]->(b:Node) RETURN length(p) AS l, count(*) AS c",
]


def _random_history(store: GraphStore, clock: Clock, seed: int) -> None:
    """Nodes and links with corrections, portions that are taken back, periods that end and begin again, and fields that come late or change their type."""
    chance = random.Random(seed)
    start = day("2025-01-01")

    def said() -> dict[str, Any]:
        content = {"state": chance.choice("ab"), "total": chance.randrange(9)}
        if chance.random() < 0.2:
            content["mixed"] = chance.choice([1, "one", 2.5, None])
        if chance.random() < 0.15:
            content["note"] = chance.choice(["x", "y"])
        return content

    for number in range(12):
        clock.move(hours=1)
        kind = chance.choice(["order", "order", "task"])
        begin = start + timedelta(days=chance.randrange(120))
        store.add_node(kind, said(), id=f"o{number}", valid_from=begin)
    for number in range(60):
        clock.move(hours=1)
        which, other = (f"o{each}" for each in chance.sample(range(12), 2))
        begin = start + timedelta(days=chance.randrange(270))
        end = begin + timedelta(days=chance.randrange(5, 90))
        deed = chance.random()
        try:
            if deed < 0.35:
                store.revise(which, said(), valid_from=begin, valid_to=end)
            elif deed < 0.5:
                store.retract(which, valid_from=begin, valid_to=end, reason="not so")
            elif deed < 0.6:
                store.end(which, at=end)
            elif deed < 0.65:
                store.add_node(
                    "order", said(), id=f"n{number}", valid_from=begin, corrects=which, reason="wrong"
                )
            elif deed < 0.9:
                kind = chance.choice(["related_to", "related_to", "caused_by"])
                store.link(which, kind, other, valid_from=begin, valid_to=end)
            else:
                links = store.links_from(which)
                if links:
                    store.unlink(links[0].id, reason="no more", valid_from=begin)
        except GraphStoreError:
            pass  # what does not hold there cannot be changed there


def _params(text: str) -> dict[str, Any]:
    return {"least": 3} if "$least" in text else {}


@pytest.mark.parametrize(
    ("axis", "seed"),
    [
        ("valid", 0),
        *(pytest.param(*one, marks=pytest.mark.rest) for one in (("tx", 0), ("valid", 1), ("tx", 1))),
    ],
)
def test_random_histories_are_answered_as_each_view_does(
    store: GraphStore, clock: Clock, axis: str, seed: int
) -> None:
    _random_history(store, clock, seed)
    begin, end = store.changes()[0].tx, store.changes()[-1].tx
    over = (
        store.over(valid=YEAR)
        if axis == "valid"
        else store.over(tx=(begin, end, "7 hours"), valid="2025-04-15")
    )
    answers = {}
    for text in [*ONE_GRAPH, *MANY_GRAPHS]:
        try:
            answers[text] = over.query(text, **_params(text))
        except QueryError as error:
            assert "no property" in str(error) or "AS_OF" in text, text
    compared = 0
    for at, view in zip(
        over.at, over.views(), strict=True
    ):  # all texts of a view together: its graph is made once
        for text, found in answers.items():
            try:
                expected = view.query(text, **_params(text))
            except QueryError as error:
                assert "no property" in str(error)
                continue
            rows = [row[1:] for row in found.tuples() if row[0] == at]
            kept = 1 if "mixed" in text else None  # values of several types become text, for one column
            assert [row[:kept] for row in rows] == [row[:kept] for row in expected.tuples()], (text, at)
            assert found.columns == ["at", *expected.columns]
            compared += len(rows)
    assert compared > 300


@pytest.mark.in_process("looks at how a text is asked")
def test_one_graph_answers_what_it_can(orders: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    build = loading.build

    def built_for_one(source, span, *args, **more):
        built.extend([1] * (span is None))
        return build(source, span, *args, **more)

    monkeypatch.setattr(loading, "build", built_for_one)
    _random_fields(orders)
    for text in [*ONE_GRAPH, *MANY_GRAPHS]:
        built.clear()
        orders.over(valid=YEAR).query(text, **({"least": 3} if "$least" in text else {}))

        assert bool(built) == (text in MANY_GRAPHS), text


def _random_fields(store: GraphStore) -> None:
    for number, value in enumerate([1, "one"]):
        store.add_node("task", {"mixed": value, "note": "x"}, id=f"m{number}", valid_from="2024-01-01")


# ---------------------------------------------------------------- FOR VALID_TIME


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_text_over_periods_has_the_rows_of_the_history(store: GraphStore, clock: Clock, seed: int) -> None:
    _random_history(store, clock, seed)
    tx = store.changes()[40].tx
    view = store.as_of(tx=tx)
    fields = "n.id AS id, n.valid_from AS valid_from, n.valid_to AS valid_to, n.total AS total"
    for begin, end in ((None, None), ("2025-03-01", "2025-05-01")):
        said = "ALL" if begin is None else "FROM $begin TO '2025-05-01'"
        given = {} if begin is None else {"begin": begin}
        found = view.query(
            f"FOR VALID_TIME {said} MATCH (n:Node) RETURN {fields} ORDER BY id, valid_from", **given
        )
        expected = store.history_table(None, ["total"], tx=tx, valid=(begin, end))
        names = ("id", "valid_from", "valid_to", "total")
        assert [tuple(row[name] for name in names) for row in found] == [
            tuple(row[name] for name in names) for row in expected
        ]
        hop = view.query(
            f"FOR VALID_TIME {said} MATCH (a:Node)-[r:RELATED_TO]->(b:Node) RETURN DISTINCT r.id AS id, r.valid_from AS f ORDER BY id, f",
            **given,
        )
        spanned = {row["id"] for row in store.links_table("related_to", tx=tx, valid=(begin, end))}
        assert {row["id"] for row in hop} <= spanned
        assert begin is not None or len(hop) > 2
    for at in ("2025-02-15", "2025-06-15"):
        text = "MATCH (a:Node)-[r:RELATED_TO]->(b:Node) WHERE {}RETURN a.id AS x, b.id AS y, a.total + b.total AS t ORDER BY x, y"
        there = store.as_of(valid=at, tx=tx).query(text.format("true "))
        assert view.query(f"FOR VALID_TIME AS OF '{at}' {text.format('true ')}") == there
        held = "HOLDS(a, $t, $u) AND HOLDS(b, $t, $u) AND HOLDS(r, $t, $u) "
        instants = {"t": day(at), "u": day(at) + timedelta(microseconds=1)}
        assert view.query(f"for valid_time all {text.format(held)}", **instants).tuples() == there.tuples()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("FROM '2025-01-01' MATCH (n:Node) RETURN n.id", "FOR VALID_TIME is followed by"),
        ("AS OF 2025 MATCH (n:Node) RETURN n.id", "FOR VALID_TIME is followed by"),
        ("ALL", "FOR VALID_TIME is followed by"),
        ("AS OF $when MATCH (n:Node) RETURN n.id", r"no value for \$when"),
        ("FROM '2025-02-01' TO '2025-01-01' MATCH (n:Node) RETURN n.id", "Give the earlier time first"),
        ("ALL MATCH (n:Absent) RETURN n.id", "Labels: Node"),
    ],
)
def test_other_words_about_valid_time_are_refused(orders: GraphStore, said: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        orders.query(f"FOR VALID_TIME {said}")


def test_over_periods_a_link_is_used_once_whichever_rows_it_joins(store: GraphStore) -> None:
    store.add_node("place", {"n": 0}, id="home", valid_from="2025-01-01")
    for name in ("ana", "bob"):
        store.add_node("person", {"n": 1}, id=name, valid_from="2025-01-01")
        store.revise(name, {"n": 2}, valid_from="2025-03-01", valid_to="2025-06-01")
        store.link(name, "related_to", "home", valid_from="2025-01-01")
    lives = "FOR VALID_TIME ALL MATCH (a:Node {id: 'ana'})-[:RELATED_TO]->(:Node)<-[:RELATED_TO]-(b:Node) RETURN b.id AS b, count(*) AS c"
    ways = "FOR VALID_TIME ALL MATCH (a:Node {id: 'ana'})-[:RELATED_TO*2..2]-(b:Node) RETURN b.id AS b, count(*) AS c"

    assert store.query(lives).tuples() == [("bob", 9)]  # three rows of each
    assert store.query(ways).tuples() == [("bob", 9)]
    assert store.query(lives.replace("ALL", "AS OF '2025-04-01'")).tuples() == [("bob", 1)]
