"""The seam to the engine: every rule that keeps it right has a test here, against the real engine.

`GRAPHSTORE_DRIVER=ladybug` runs the same tests on the other driver; the two cannot be loaded in one process.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from graphstore.errors import EngineError, InvalidError, LockedError, NotFoundError, QueryError
from graphstore.graph import engine as seam
from graphstore.graph.engine import (
    Engine,
    Entity,
    Result,
    bind,
    stopped_by,
    time_limit,
)
from graphstore.graph.guard import guard
from graphstore.graph.limits import QueryLimits
from graphstore.graph.statement import parse, split

pytestmark = pytest.mark.driver

DRIVER = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
OTHER = {"kuzu": "ladybug", "ladybug": "kuzu"}[DRIVER]
JANUARY, MARCH = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)
HEAVY = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y WITH x * y AS z WHERE z % 7 = 3 RETURN count(*)"

kuzu_only = pytest.mark.skipif(DRIVER != "kuzu", reason="what kuzu 0.11.3 does")
ladybug_only = pytest.mark.skipif(DRIVER != "ladybug", reason="GRAPHSTORE_DRIVER=ladybug is not set")


def instants(*values: datetime) -> pa.Array:
    return pa.array(values, pa.timestamp("us", tz="UTC"))


def fill(engine: Engine) -> None:
    """Ann and Bob know each other: Ann from January on, Bob from January to March."""
    tables = """
        CREATE NODE TABLE Person(id STRING PRIMARY KEY, age INT64, tags STRING[], since TIMESTAMP, until TIMESTAMP);
        CREATE NODE TABLE Town(name STRING PRIMARY KEY); // a comment; with a semicolon
        CREATE REL TABLE KNOWS(FROM Person TO Person, id STRING, since TIMESTAMP);
        CREATE REL TABLE LIVES(FROM Person TO Town);
    """
    for statement in split(tables):
        engine.run(statement)
    ages = pa.array([41, None], pa.int64())
    tags = pa.array([["a", "b"], []], pa.list_(pa.string()))
    since, until = instants(JANUARY, JANUARY), instants(FOREVER, MARCH)
    engine.copy(
        "Person", pa.table({"id": ["ann", "bob"], "age": ages, "tags": tags, "since": since, "until": until})
    )
    engine.copy("Town", pa.table({"name": ["Bern"]}))
    ends = {"source": ["ann", "bob"], "target": ["bob", "ann"]}
    engine.copy("KNOWS", pa.table({**ends, "id": ["k1", "k2"], "since": since}), pair=("Person", "Person"))
    engine.copy("LIVES", pa.table({"source": ["ann"], "target": ["Bern"]}), pair=("Person", "Town"))


@pytest.fixture(scope="module")
def people() -> Iterator[Engine]:
    """Read, never written by the tests that share it."""
    with Engine(None, driver=DRIVER) as engine:
        fill(engine)
        yield engine


@pytest.fixture
def own() -> Iterator[Engine]:
    """An engine a test may write to and break."""
    with Engine(None, driver=DRIVER) as engine:
        fill(engine)
        yield engine


# --------------------------------------------------------------------------------------------------- the read-only guard

REFUSED = [
    ("CREATE (:Person {id: 'x'})", "CREATE"),
    ("create (:Person {id: 'x'})", "create"),
    ("MATCH (n:Person) SET n.age = 1", "SET"),
    ("MATCH (n:Person) WHERE n.id='a'SET n.age=1", "SET"),
    ("MATCH (n:Person) WHERE n.age=1SET n.age=2", "SET"),
    ("MATCH (n:Person) WHERE n.age=1e5SET n.age=2", "SET"),
    ("MATCH (n:Person) WHERE n.as SET n.age = 2", "SET"),
    ("MATCH (n:Person) WHERE n.`age`SET n.age=2", "SET"),
    ("MATCH (n:Person) /* quiet */ SET/**/n.age = 1", "SET"),
    ("MATCH (n:Person) // quiet\nDELETE n", "DELETE"),
    ("MATCH (n:Person) DETACH DELETE n", "DETACH"),
    ("MATCH (n:Person) WITH n MERGE (m:Person {id: 'x'}) RETURN m", "MERGE"),
    ("MATCH (n:Person) REMOVE n.age", "REMOVE"),
    ("MERGE (n:Person {id: 'x'})", "MERGE"),
    ("DROP TABLE Person", "DROP"),
    ("ALTER TABLE Person ADD x INT64", "ALTER"),
    ("CREATE NODE TABLE X(id STRING PRIMARY KEY)", "CREATE"),
    ("CREATE MACRO f(x) AS x + 1", "CREATE"),
    ("COPY Person FROM 'people.csv'", "COPY"),
    ("COPY (MATCH (n:Person) RETURN n.id) TO 'out.csv'", "COPY"),
    ("LOAD FROM 'people.csv' RETURN *", "LOAD"),
    ("MATCH (n:Person) LOAD FROM rows RETURN *", "LOAD"),
    ("LOAD EXTENSION json", "LOAD"),
    ("INSTALL json", "INSTALL"),
    ("UNINSTALL json", "UNINSTALL"),
    ("UPDATE json", "UPDATE"),
    ("FORCE INSTALL json", "FORCE"),
    ("ATTACH 'other.kuzu' AS other (dbtype kuzu)", "ATTACH"),
    ("DETACH other", "DETACH"),
    ("USE other", "USE"),
    ("EXPORT DATABASE 'out'", "EXPORT"),
    ("IMPORT DATABASE 'out'", "IMPORT"),
    ("BEGIN TRANSACTION", "BEGIN"),
    ("COMMIT", "COMMIT"),
    ("ROLLBACK", "ROLLBACK"),
    ("CHECKPOINT", "CHECKPOINT"),
    ("COMMENT ON TABLE Person IS 'x'", "COMMENT"),
    ("CALL threads=1", "CALL threads"),
    ("CALL current_setting('threads') RETURN *", "CALL current_setting"),
    ("CALL storage_info('Person') RETURN *", "CALL storage_info"),
    ("CALL bm_info() RETURN *", "CALL bm_info"),
    ("MATCH (n) CALL current_setting('spill_to_disk') RETURN *", "CALL current_setting"),
    ("CALL json_scan('people.json') RETURN *", "CALL json_scan"),
    ("LOAD FROM 'https://example.org/x.csv' RETURN *", "LOAD"),
    ("RETURN cast('12000-01-01' AS TIMESTAMP_NS)", "wraps around"),
    ("RETURN cast('12000-01-01', 'timestamp_ns')", "wraps around"),
    ("CALL auto_checkpoint = true", "CALL auto_checkpoint"),
    ("CALL create_fts_index('Person', 'i', ['id'])", "CALL create_fts_index"),
    ("CALL create_vector_index('Person', 'i', 'id')", "CALL create_vector_index"),
    ("CALL drop_fts_index('Person', 'i')", "CALL drop_fts_index"),
    ("CALL project_graph('g', ['Person'], ['KNOWS'])", "CALL project_graph"),
    ("CALL read_csv_serial('people.csv') RETURN *", "CALL read_csv_serial"),
    ("CALL { CREATE (:Person {id: 'x'}) } RETURN 1", "CALL"),
    ("MATCH (n:Person) CALL clear_warnings() RETURN n", "CALL clear_warnings"),
    ("RETURN nextval('s')", "nextval"),
    ("EXPLAIN CREATE (:Person {id: 'x'})", "CREATE"),
    ("PROFILE MATCH (n:Person) SET n.age = 1", "SET"),
    ("COMMIT; CREATE (:Person {id: 'x'})", "several statements"),
    ("RETURN 1; CREATE (:Person {id: 'x'})", "several statements"),
    ("RETURN 1;;RETURN 2", "several statements"),
    (";RETURN 1", "several statements"),
    ("RETURN 'it\\'s'; DROP TABLE Person", "several statements"),
    ("RETURN 'a\\\\'; DROP TABLE Person //'", "several statements"),
    ("RETURN '//'; DROP TABLE Person", "several statements"),
    ("RETURN `//`; DROP TABLE Person", "several statements"),
    ("RETURN 1 /* /* */; DROP TABLE Person", "several statements"),
    ('RETURN "\'"; DROP TABLE Person //"', "several statements"),
    ("RETURN 'a", "never ends"),
    ("RETURN `a", "never ends"),
    ("RETURN 1 /* a", "never ends"),
    (r"RETURN regexp_matches('a1', '\d')", r"Write '\\d'"),
    ("RETURN $", "no parameter name"),
    ("RETURN $`a b`", "no parameter name"),
    ("", "empty"),
    ("  // nothing\n ;", "empty"),
    ("person", "person"),
    ("(MATCH (n) RETURN n)", "("),
]

ALLOWED = [
    "MATCH (n:Person) RETURN n.id",
    "  match (n:Person) return n.id ; ",
    "OPTIONAL MATCH (n:Person) RETURN n.id",
    "UNWIND [1, 2] AS x RETURN x",
    "WITH 1 AS x RETURN x",
    "RETURN 'CREATE (n) SET n.x = 1; DROP TABLE Person'",
    'RETURN "it\'s // no comment"',
    "RETURN 'a\\'b; DROP TABLE c'",
    "RETURN 1 // CREATE (n); DROP TABLE Person",
    "RETURN /* CREATE; */ 1",
    "RETURN 1 AS `create`",
    "RETURN 1 AS `set; drop`",
    "RETURN {set: 1, delete: 2} AS s",
    "MATCH (n:Person) RETURN n.id UNION ALL MATCH (n:Person) RETURN n.id",
    "CALL show_tables() RETURN *",
    "CALL SHOW_TABLES() RETURN name",
    "CALL table_info('Person') RETURN *",
    "EXPLAIN MATCH (n:Person) RETURN n",
    "PROFILE MATCH (n:Person) RETURN n.id",
    "MATCH (n:Person) WHERE EXISTS { MATCH (n)-[:KNOWS]->(m) } RETURN n.id",
    "MATCH (a:Person)-[r:KNOWS* 1..3]->(b:Person) RETURN a.id, length(r)",
    "RETURN 5.5e2 AS x",
]


def test_a_text_that_was_read_before_is_held_against_the_limits_given_now() -> None:
    text = "MATCH (n) RETURN [n.id, [1, 2]]"
    parse(text)

    assert parse(text) == parse(text, None)
    with pytest.raises(QueryError, match="brackets within each other"):
        parse(text, QueryLimits(depth=1))


@pytest.mark.parametrize(("cypher", "named"), REFUSED, ids=[text for text, _ in REFUSED])
def test_texts_that_could_change_something_are_refused(people: Engine, cypher: str, named: str) -> None:
    with pytest.raises(QueryError) as refused:
        guard(parse(cypher))

    assert named in str(refused.value)
    with pytest.raises(QueryError):
        people.query(cypher)


@pytest.mark.parametrize("cypher", ALLOWED)
def test_texts_that_read_are_run(people: Engine, cypher: str) -> None:
    guard(parse(cypher))

    assert len(people.query(cypher)) >= 1


@pytest.mark.parametrize(
    "cypher", ["MATCH (n:Set) RETURN n.set", "MATCH (n)-[:A|DELETE]->(m) RETURN m.`create`"]
)
def test_keywords_are_names_after_a_colon_or_a_point(cypher: str) -> None:
    guard(parse(cypher))


def test_engine_refuses_writes_too_when_the_guard_is_passed_by(
    people: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seam, "guard", lambda statement: None)

    with pytest.raises(QueryError, match="read-only transaction"):
        people.query("CREATE (:Town {name: 'Basel'})")

    assert people.run("MATCH (t:Town) RETURN t.name") == [("Bern",)]


@pytest.mark.parametrize(
    ("cypher", "given"),
    [
        ("MATCH (p:Person) WHERE p.id IN $some RETURN p.id", {"some": None}),
        ("MATCH (p:Person) WHERE $some IS NULL OR p.id IN ($some) RETURN p.id", {"some": None}),
        ("MATCH (p:Person) WHERE NOT p.id IN null RETURN p.id", {}),
        ("MATCH (p:Person) WHERE list_contains($some, p.id) RETURN p.id", {"some": None}),
        ("WITH NULL AS ids MATCH (p:Person) WHERE p.id IN ids RETURN p.id", {}),
        ("WITH $some AS p RETURN label(p)", {"some": None}),
        ("RETURN nodes(NULL)", {}),
        ("RETURN keys( ( NULL ) )", {}),
        ("RETURN map([1], $some)", {"some": None}),
    ],
)
def test_a_null_that_would_end_the_process_is_refused(people: Engine, cypher: str, given: dict) -> None:
    with pytest.raises(QueryError, match="a NULL without a type there ends the engine"):
        people.query(cypher, given)


@pytest.mark.parametrize(
    ("cypher", "given", "found"),
    [
        ("RETURN 1 IN CAST(NULL AS INT64[]) AS x", {}, None),
        ("RETURN list_sum(CAST($some AS INT64[])) AS x", {"some": None}, None),
        ("RETURN 1 IN ([1] + $some) AS x", {"some": None}, None),
        ("RETURN $some IS NULL AS x", {"some": None}, True),
        ("WITH {label: NULL} AS m RETURN m.label AS x", {}, None),
    ],
)
def test_a_null_elsewhere_is_null(people: Engine, cypher: str, given: dict, found: object) -> None:
    assert {"x": found} == people.query(cypher, given).single()


def test_a_query_that_is_no_text_is_refused() -> None:
    with pytest.raises(QueryError, match="not int"):
        parse(1)  # type: ignore[arg-type]


def test_comments_never_reach_the_engine() -> None:
    statement = parse("RETURN 'a // b' /* c */ AS x // d ; e\n;")

    assert statement.text == "RETURN 'a // b'   AS x"


def test_a_script_is_split_at_semicolons_outside_strings() -> None:
    assert split("RETURN ';'; // a;b\n RETURN 2;\n") == ["RETURN ';'", "RETURN 2"]


@kuzu_only
@pytest.mark.parametrize(
    "returned",
    [
        "n.id AS i, count(DISTINCT n.age) AS d, sum(n.age) AS s",
        "n.id AS i, count(DISTINCT n.age) AS d, collect(n.age) AS s",
        "count(DISTINCT n.age) + sum(n.age) AS s, n.id AS i",
    ],
)
def test_aggregates_that_would_come_back_empty_are_refused(people: Engine, returned: str) -> None:
    with pytest.raises(QueryError, match="DISTINCT"):
        people.query(f"MATCH (n:Person) RETURN {returned}")
    with pytest.raises(QueryError, match="DISTINCT"):
        people.query(f"MATCH (n:Person) WITH {returned} RETURN i, s ORDER BY i")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("n.age > 0 AS g, sum(n.age) AS s, count(DISTINCT n.age) AS d", [(True, 41, 1)]),
        ("count(DISTINCT n.age) AS d, sum(n.age) AS s", [(1, 41)]),
        ("DISTINCT n.age AS a", [(41,)]),
    ],
)
def test_other_orders_of_aggregates_are_right(
    people: Engine, returned: str, expected: list[tuple[object, ...]]
) -> None:
    assert expected == people.query(f"MATCH (n:Person) WHERE n.age > 0 RETURN {returned}").tuples()


# -------------------------------------------------------------------------------------------------------------- parameters


def test_an_unbound_parameter_raises_instead_of_switching_its_filter_off(people: Engine) -> None:
    with pytest.raises(QueryError, match=r"\$id is in the query but was given no value"):
        people.query("MATCH (n:Person) WHERE n.id = $id RETURN n.id")
    with pytest.raises(QueryError, match=r"\$id"):
        people.run("MATCH (n:Person) WHERE n.id = $id RETURN n.id")


def test_an_unknown_parameter_raises(people: Engine) -> None:
    with pytest.raises(QueryError, match=r"\$idd was given but is not in the query; it has \$id"):
        people.query("MATCH (n:Person) WHERE n.id = $id RETURN n.id", {"id": "ann", "idd": "ann"})
    with pytest.raises(QueryError, match="it has none"):
        people.run("RETURN 1", id="ann")


def test_a_parameter_inside_a_string_or_comment_is_none(people: Engine) -> None:
    assert people.query("RETURN '$id' AS x // $id").single()["x"] == "$id"


@pytest.mark.parametrize(
    "text", ["' OR 1=1 //", "x'; DROP TABLE Person; //", "`", "\\", "💥\u0000é", "$id", "ann\n"]
)
def test_text_is_a_value_and_never_cypher(people: Engine, text: str) -> None:
    assert people.query("MATCH (n:Person) WHERE n.id = $id RETURN n.id", {"id": text}).rows() == []
    assert text == people.query("RETURN $x AS x", {"x": text}).single()["x"]


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        (None, None),
        (True, True),
        (-(2**63), -(2**63)),
        (1.5, 1.5),
        ("é", "é"),
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        (["a"], ["a"]),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1)),
        ([JANUARY], [datetime(2026, 1, 1)]),
        (date(2026, 1, 1), datetime(2026, 1, 1)),
    ],
)
def test_values_that_are_bound(given: object, bound: object) -> None:
    found = seam.bind("x", given)

    assert bound == found
    assert type(bound) is type(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (datetime(2026, 1, 1), "no time zone"),
        ([datetime(2026, 1, 1)], "no time zone"),
        ([], "empty list"),
        ([1, "a"], "mixes int, str"),
        ([True, 1], "mixes bool, int"),
        (["a", None], "NoneType"),
        ([[1]], "list"),
        ({"a": 1}, "dict"),
        (b"a", "bytes"),
        (Decimal(1), "Decimal"),
        ({1}, "set"),
        (2**63, "64 bits"),
        ("\ud800", "no valid text"),
        (pa.scalar(1), "Int64Scalar"),
    ],
)
def test_values_that_are_refused(given: object, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        bind("x", given)


def test_numpy_scalars_are_refused() -> None:
    numpy = pytest.importorskip("numpy")

    with pytest.raises(InvalidError, match="numpy"):
        bind("x", numpy.int64(1))


def test_small_whole_numbers_do_not_overflow_eight_bits(people: Engine) -> None:
    found = people.query(
        "RETURN $a * $a AS product, list_sum($l) AS total", {"a": 100, "l": [100, 100, 100]}
    ).single()

    assert found == {"product": 10_000, "total": 300}
    assert (
        len(people.query("MATCH (n:Person) RETURN n.id ORDER BY n.id SKIP $s LIMIT $k", {"s": 1, "k": 1}))
        == 1
    )


def test_none_is_null(people: Engine) -> None:
    assert people.query("MATCH (n:Person) WHERE n.age = $age RETURN n", {"age": None}).rows() == []


# ----------------------------------------------------------------------------------------------------------- values read


def test_instants_are_aware_and_the_open_end_is_none(people: Engine) -> None:
    rows = people.query("MATCH (n:Person) RETURN n.since AS since, n.until AS until ORDER BY n.id").tuples()

    assert rows == [(JANUARY, None), (JANUARY, MARCH)]
    assert rows == people.run("MATCH (n:Person) RETURN n.since AS since, n.until AS until ORDER BY n.id")


def test_nodes_and_relationships_are_dicts_without_internal_ids(people: Engine) -> None:
    row = people.query("MATCH (a:Person {id: 'bob'})-[k]->(b) RETURN a, k, b").single()

    assert row["a"] == {
        "_label": "Person",
        "id": "bob",
        "age": None,
        "tags": [],
        "since": JANUARY,
        "until": MARCH,
    }
    assert row["k"] == {"_label": "KNOWS", "id": "k2", "since": JANUARY}
    assert isinstance(row["a"], Entity)
    assert json.loads(json.dumps(row["b"], default=str))["id"] == "ann"


def test_a_match_of_several_labels_gives_each_its_own_columns(people: Engine) -> None:
    found = [row["b"] for row in people.query("MATCH (:Person {id: 'ann'})-[]->(b) RETURN b")]

    assert [node for node in found if node["_label"] == "Town"] == [{"_label": "Town", "name": "Bern"}]


def test_recursive_relationships_are_dicts_of_nodes_and_rels(people: Engine) -> None:
    row = people.query("MATCH (:Person {id: 'ann'})-[k:KNOWS* 2..2]->(b) RETURN k").single()

    assert [rel["id"] for rel in row["k"]["_rels"]] == ["k1", "k2"]
    assert [node["id"] for node in row["k"]["_nodes"]] == ["bob"]


def test_sums_are_whole_numbers(people: Engine) -> None:
    total = people.query("MATCH (n:Person) RETURN sum(n.age) AS total").single()["total"]

    assert (41, int) == (total, type(total))


def test_instants_inside_lists_and_structs_are_read_too(people: Engine) -> None:
    row = people.query(
        "MATCH (n:Person {id: 'ann'}) RETURN [n.since, n.until] AS l, {a: n.until} AS s"
    ).single()

    assert row == {"l": [JANUARY, None], "s": {"a": None}}


# ------------------------------------------------------------------------------------------------------------------ results


def test_result_is_an_iterable_of_dicts(people: Engine) -> None:
    result = people.query("MATCH (n:Person) RETURN n.id AS id, n.age AS age ORDER BY id")

    assert result.columns == ["id", "age"]
    assert [{"id": "ann", "age": 41}, {"id": "bob", "age": None}] == list(result) == result.rows()
    assert len(result) == 2


def test_single_wants_exactly_one_row(people: Engine) -> None:
    assert people.query("MATCH (n:Person {id: 'ann'}) RETURN n.id").single() == {"n.id": "ann"}
    with pytest.raises(NotFoundError, match="no row"):
        people.query("MATCH (n:Person {id: 'eve'}) RETURN n.id").single()
    with pytest.raises(QueryError, match="2 rows"):
        people.query("MATCH (n:Person) RETURN n.id").single()


def test_result_outlives_the_engine() -> None:
    with Engine(None, driver=DRIVER) as engine:
        fill(engine)
        result = engine.query("MATCH (n:Person) RETURN n ORDER BY n.id")

    assert [row["n"]["id"] for row in result] == ["ann", "bob"]


def test_result_turns_into_arrow_pandas_and_polars(people: Engine) -> None:
    result = people.query(
        "MATCH (n:Person) RETURN n.id AS id, n.age AS age, n.tags AS tags, n.until AS until ORDER BY id"
    )

    arrow = result.to_arrow()
    assert [
        pa.string(),
        pa.int64(),
        pa.list_(pa.string()),
        pa.timestamp("us", tz="UTC"),
    ] == arrow.schema.types
    assert result.rows() == arrow.to_pylist()
    pytest.importorskip("pandas")
    assert list(result.to_pandas()["id"]) == ["ann", "bob"]
    pytest.importorskip("polars")
    assert result.rows() == result.to_polars().to_dicts()


def test_an_empty_result_keeps_its_columns_and_types(people: Engine) -> None:
    text = "MATCH (n:Person) WHERE n.age > $least RETURN n.id AS id, n.age AS age, n.since AS since, n AS n"
    empty = people.query(text, {"least": 100})

    assert empty.rows() == []
    types = empty.to_arrow().schema.types
    assert [pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")] == types[:3]
    assert people.query(text, {"least": 0}).to_arrow().schema.types == types
    assert repr(empty).splitlines()[0] == "id  age  since  n"
    assert len(empty.to_networkx()) == 0


def test_big_results_come_through_arrow_and_read_the_same(people: Engine) -> None:
    result = people.query(
        "MATCH (n:Person {id: 'bob'}) UNWIND range(1, 5000) AS i RETURN i, n.id AS id, n.until AS until, n.tags AS t"
    )

    assert len(result) == 5000
    assert result.rows()[-1] == {"i": 5000, "id": "bob", "until": MARCH, "t": []}
    assert result.to_arrow().num_rows == 5000


def test_nodes_and_relationships_turn_into_a_networkx_graph(people: Engine) -> None:
    graph = people.query("MATCH (a:Person)-[k]->(b) RETURN a, k, b").to_networkx()

    assert {"ann", "bob"} < set(graph.nodes)
    assert graph.nodes["ann"]["age"] == 41
    assert graph.edges["ann", "bob", "k1"]["_label"] == "KNOWS"
    assert graph.number_of_edges() == 3


def test_a_path_turns_into_a_networkx_graph(people: Engine) -> None:
    graph = people.query("MATCH p = (:Person {id: 'ann'})-[:KNOWS* 2..2]->(b) RETURN p").to_networkx()

    assert sorted(graph.edges()) == [("ann", "bob"), ("bob", "ann")]


def test_a_result_shows_itself_as_a_table() -> None:
    result = Result(
        ["id", "until", "deep"],
        [("ann", None, {"a": [1, True]}), ("bo\nb", MARCH, {"_label": "T", "x": 1.5})],
    )

    assert repr(result) == (
        "id    until       deep\n"
        "────  ──────────  ──────────────\n"
        "ann   null        {a: [1, true]}\n"
        "bo b  2026-03-01  T {x: 1.5}"
    )


def test_a_long_result_shows_twenty_rows_and_counts_the_rest() -> None:
    lines = repr(Result(["n"], [(n,) for n in range(1520)])).splitlines()

    assert lines[-1] == "… 1,500 more"
    assert len(lines) == 23


def test_a_long_value_is_cut_where_it_is_shown_only() -> None:
    result = Result(["text"], [("x" * 100,)])

    assert "x" * 59 + "…" in repr(result)
    assert result.single()["text"] == "x" * 100


def test_html_is_escaped() -> None:
    html = Result(["<b>"], [("<script>alert(1)</script>",)], warnings=["a < b"])._repr_html_()

    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<th>&lt;b&gt;</th>" in html
    assert "a &lt; b" in html


# ------------------------------------------------------------------------------------------------- the rules of the engine


def test_errors_of_a_users_text_are_query_errors_and_the_engine_goes_on(people: Engine) -> None:
    for cypher in (
        "MATCH (n:Nowhere) RETURN n",
        "RETURN 1 +",
        "RETURN CAST('a' AS INT64)",
        "MATCH (n:Person) RETURN m",
    ):
        with pytest.raises(QueryError):
            people.query(cypher)

    assert people.query("MATCH (n:Person) RETURN count(*) AS n").single()["n"] == 2


def test_a_failed_write_breaks_the_engine_until_it_is_opened_anew(own: Engine) -> None:
    with pytest.raises(EngineError, match="duplicated primary key"):
        own.run("CREATE (:Town {name: 'Bern'})")

    for again in (lambda: own.run("RETURN 1"), lambda: own.query("RETURN 1"), own.checkpoint):
        with pytest.raises(EngineError, match="open it anew"):
            again()


def test_a_write_that_was_never_begun_breaks_nothing(own: Engine) -> None:
    with pytest.raises(EngineError):
        own.run("CREATE (:Nowhere {name: 'Bern'})")

    assert own.run("MATCH (t:Town) RETURN count(*)") == [(1,)]


def test_a_failed_copy_breaks_the_engine(own: Engine) -> None:
    with pytest.raises(EngineError):
        own.copy("Town", pa.table({"name": ["Basel", "Bern"]}))

    with pytest.raises(EngineError, match="open it anew"):
        own.run("MATCH (t:Town) RETURN t.name")


def test_one_statement_per_call(own: Engine) -> None:
    with pytest.raises(QueryError, match="several statements"):
        own.run("CREATE (:Town {name: 'Basel'}); CREATE (:Town {name: 'Chur'})")

    assert own.run("MATCH (t:Town) RETURN count(*)") == [(1,)]


def test_copy_wants_every_column_by_name_in_any_order(own: Engine) -> None:
    rows = pa.table(
        {"until": instants(FOREVER), "id": ["eve"], "since": instants(MARCH), "tags": [["x"]], "age": [30]}
    )
    own.copy("Person", rows)

    assert own.run("MATCH (n:Person {id: 'eve'}) RETURN n.id, n.age, n.tags, n.since, n.until") == [
        ("eve", 30, ["x"], MARCH, None)
    ]
    for wrong in (rows.drop(["age"]), rows.append_column("more", pa.array([1]))):
        with pytest.raises(EngineError, match="wants the columns"):
            own.copy("Person", wrong)


@pytest.mark.parametrize("threshold", [1, 10**9], ids=["copy", "create"])
def test_both_ways_of_loading_give_the_same_rows(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    monkeypatch.setattr(seam, "COPY_FROM", threshold)
    with Engine(None, driver=DRIVER) as engine:
        fill(engine)

        expected = [("ann", 41, ["a", "b"], JANUARY, None), ("bob", None, [], JANUARY, MARCH)]
        assert expected == engine.run(
            "MATCH (n:Person) RETURN n.id, n.age, n.tags, n.since, n.until ORDER BY n.id"
        )
        links = engine.run("MATCH (a:Person)-[k:KNOWS]->(b:Person) RETURN a.id, k.id, b.id ORDER BY k.id")
        assert links == [("ann", "k1", "bob"), ("bob", "k2", "ann")]
        assert engine.run("MATCH (a:Person)-[:LIVES]->(t:Town) RETURN a.id, t.name") == [("ann", "Bern")]


def test_arrow_of_any_make_is_loaded_right(own: Engine) -> None:
    zone = pa.timestamp("ms", tz="Europe/Zurich")
    rows = pa.table(
        {
            "id": pa.chunked_array([["c1"], ["c2", "c3"]], pa.large_string()),
            "age": pa.nulls(3),
            "tags": pa.nulls(3),
            "since": pa.array([JANUARY, None, MARCH]).cast(zone),
            "until": pa.nulls(3),
        }
    ).slice(1)
    own.copy("Person", rows)

    found = own.run("MATCH (n:Person) WHERE n.id STARTS WITH 'c' RETURN n.id, n.age, n.since ORDER BY n.id")
    assert found == [("c2", None, None), ("c3", None, MARCH)]


def test_no_rows_are_no_statement(own: Engine) -> None:
    own.copy("Town", pa.table({"name": pa.array([], pa.string())}))
    own.load("LOAD FROM $rows CREATE (:Town {name: name})", pa.table({"name": pa.array([], pa.string())}))

    assert own.run("MATCH (t:Town) RETURN count(*)") == [(1,)]


def test_load_has_rows_and_no_other_parameter(own: Engine) -> None:
    with pytest.raises(EngineError, match=r"\$rows"):
        own.load("LOAD FROM $rows CREATE (:Town {name: $name})", pa.table({"x": [1]}))


def test_arrow_gives_aware_instants_and_null_for_an_open_end(people: Engine) -> None:
    table = people.arrow("MATCH (n:Person) RETURN n.until AS until ORDER BY n.id")

    assert table.to_pylist() == [{"until": None}, {"until": MARCH}]


def test_the_second_open_of_one_path_in_a_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with Engine(path, driver=DRIVER):
        with pytest.raises(LockedError, match="open in this process"):
            Engine(path, driver=DRIVER)
        link = tmp_path / "link.db"
        link.symlink_to(path)
        with pytest.raises(LockedError):
            Engine(link, driver=DRIVER)

    Engine(path, driver=DRIVER).close()


def test_an_engine_that_was_let_go_frees_its_path(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "graph.db", driver=DRIVER)
    del engine
    gc.collect()

    Engine(tmp_path / "graph.db", driver=DRIVER).close()


def test_the_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    code = f"""
from pathlib import Path
from graphstore.graph.engine import Engine
from graphstore.errors import LockedError
try:
    Engine(Path({str(path)!r}), driver={DRIVER!r})
except LockedError as error:
    print("locked")
"""
    with Engine(path, driver=DRIVER) as engine:
        engine.run("CREATE NODE TABLE T(id STRING PRIMARY KEY)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.stderr) == ("locked", "")


def test_what_was_written_is_there_after_reopening_with_and_without_a_checkpoint(tmp_path: Path) -> None:
    for checkpoint in (False, True):
        path = tmp_path / f"graph{checkpoint}.db"
        with Engine(path, driver=DRIVER) as engine:
            fill(engine)
            if checkpoint:
                engine.checkpoint()

        with Engine(path, driver=DRIVER) as engine:
            assert engine.run("MATCH (a)-[k:KNOWS {id: 'k1'}]->(b) RETURN a.id, b.id") == [("ann", "bob")]


def test_closing_leaves_the_log_and_makes_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with Engine(path, driver=DRIVER) as engine:
        fill(engine)

    assert (tmp_path / "graph.db.wal").stat().st_size > 0


def test_a_file_that_is_no_database_is_an_engine_error(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    path.write_bytes(b"not a database at all" * 1000)

    with pytest.raises(EngineError, match=r"graph\.db cannot be opened"):
        Engine(path, driver=DRIVER)
    path.unlink()
    Engine(path, driver=DRIVER).close()


def test_a_closed_engine_says_so_and_closes_twice(own: Engine) -> None:
    own.close()
    own.close()

    with pytest.raises(EngineError, match="closed"):
        own.run("RETURN 1")
    with pytest.raises(EngineError, match="closed"):
        own.query("RETURN 1")


def test_many_engines_in_memory_at_once() -> None:
    engines = [Engine(None, driver=DRIVER, buffer_pool=32 << 20) for _ in range(24)]
    for engine in engines:
        assert engine.run("RETURN 1") == [(1,)]
        engine.close()


def test_a_query_sees_what_was_written_before_it(own: Engine) -> None:
    assert own.query("MATCH (t:Town) RETURN count(*) AS n").single()["n"] == 1
    own.copy("Town", pa.table({"name": ["Basel"]}))
    own.run("CREATE NODE TABLE River(name STRING PRIMARY KEY)")

    assert own.query("MATCH (t:Town) RETURN count(*) AS n").single()["n"] == 2
    assert own.query("MATCH (r:River) RETURN count(*) AS n").single()["n"] == 0


def test_queries_in_a_time_limit_are_stopped_and_those_after_it_are_not(people: Engine) -> None:
    with time_limit(0.2), pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
        people.query(HEAVY)
    with time_limit(60):
        assert 1 == people.query("RETURN 1 AS one").single()["one"]
    assert 1 == people.query("RETURN 1 AS one").single()["one"]


class Forgetful(dict[str, dict[str, str]]):
    """What another thread forgets at once, since it makes a table."""

    def __setitem__(self, name: str, columns: dict[str, str]) -> None:
        pass


def test_columns_are_read_also_while_another_thread_makes_a_table(own: Engine) -> None:
    own._columns = Forgetful()

    own.copy("Town", pa.table({"name": ["Basel"]}))

    assert own.query("MATCH (t:Town) RETURN count(*) AS n").single()["n"] == 2


def test_a_query_is_stopped_by_who_no_longer_waits_for_it(people: Engine) -> None:
    stopping = threading.Event()
    threading.Timer(0.2, stopping.set).start()
    with stopped_by(stopping), pytest.raises(QueryError, match="nobody waits for its answer"):
        people.query(HEAVY)

    assert 1 == people.query("RETURN 1 AS one").single()["one"]


HUGE = [
    ("RETURN size(range(1, 30000000)) AS n", {}),
    ("RETURN size(Range ( -1, $many , 2 )) AS n", {"many": 10**9}),
    ("UNWIND range(10000000, 1, -1) AS n RETURN count(n)", {}),
    ("RETURN size(repeat('x', 1000000000)) AS n", {}),
    ("RETURN size(range(size(range(1, 2)), 3)) + size(range(0, 2000000)) AS n", {}),
]


@pytest.mark.parametrize(("cypher", "params"), HUGE)
def test_what_cannot_be_stopped_is_refused_in_a_time_limit(people: Engine, cypher: str, params: dict) -> None:
    with time_limit(5), pytest.raises(QueryError, match="would make too much at once"):
        people.query(cypher, params)


def test_what_can_be_stopped_is_answered_in_a_time_limit(people: Engine) -> None:
    with time_limit(30):
        assert 3 == people.query("RETURN size(range(1, 1000000, 400000)) AS n").single()["n"]
        assert 1 == people.query("RETURN size(range(5, $last)) AS n", {"last": 5}).single()["n"]
        assert "range(1, 9999999999)" == people.query("RETURN 'range(1, 9999999999)' AS n").single()["n"]


def test_a_query_is_stopped_by_ctrl_c(people: Engine) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            people.query(HEAVY)
    finally:
        signal.signal(signal.SIGINT, before)

    assert people.query("RETURN 1 AS x").single()["x"] == 1


def test_a_query_is_stopped_by_a_ctrl_c_that_another_thread_received(people: Engine) -> None:
    """The system hands a signal to any thread that does not block it, one of the engine's own among them."""

    def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    try:
        threading.Timer(0.3, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            people.query(HEAVY)
    finally:
        signal.signal(signal.SIGINT, before)

    assert time.monotonic() - start < 10  # all of it takes a minute
    assert people.query("RETURN 1 AS x").single()["x"] == 1


def test_threads_take_turns(people: Engine) -> None:
    found: list[int] = []

    def ask() -> None:
        for _ in range(20):
            found.append(people.query("MATCH (n:Person) RETURN count(*) AS n").single()["n"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [2] * 80


# ------------------------------------------------------------------------------------------------------------------ drivers


def test_an_unknown_driver_is_refused() -> None:
    with pytest.raises(InvalidError, match="kuzu, ladybug"):
        Engine(None, driver="neo4j")


def test_two_drivers_in_one_process_are_refused(people: Engine) -> None:
    with pytest.raises(EngineError, match=f"{DRIVER!r} is loaded in this process"):
        Engine(None, driver=OTHER)


def test_a_driver_that_is_not_installed_says_how_to_get_it() -> None:
    code = f"""
import sys
sys.modules[{DRIVER!r}] = None
from graphstore.graph.engine import Engine
from graphstore.errors import EngineError
try:
    Engine(None, driver={DRIVER!r})
except EngineError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "pip install" in done.stdout, done.stderr


def test_the_drivers_are_loaded_only_when_an_engine_is_opened() -> None:
    code = "import sys, graphstore.graph.engine; print(sorted({'kuzu', 'ladybug', 'pyarrow', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr


@kuzu_only
def test_kuzu_can_be_vouched_for(people: Engine) -> None:
    assert people.faults == ()
    assert people.query("RETURN 1").warnings == []
    assert seam._self_test("kuzu") == ()


@ladybug_only
def test_ladybug_warns_that_a_users_cypher_cannot_be_vouched_for(people: Engine) -> None:
    assert people.faults
    assert "wrong rows" in people.query("RETURN 1").warnings[0]
    assert "warning: " in repr(people.query("RETURN 1"))


@ladybug_only
def test_ladybug_caches_no_plans(people: Engine) -> None:
    assert people._connection is not people._connect()
    setting = people.run("CALL current_setting('enable_cached_prepared_statement') RETURN *")
    assert str(setting[0][0]).lower() == "none"


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_threads_as_asked_for_work_on_a_statement(threads: int) -> None:
    with Engine(None, driver=DRIVER, threads=threads) as engine:
        assert [(str(threads),)] == engine.run("CALL current_setting('threads') RETURN *")


@kuzu_only
@pytest.mark.parametrize("on_disk", [False, True])
def test_equal_and_differing_texts_are_kept_without_compression(tmp_path: Path, on_disk: bool) -> None:
    ids, texts = [f"n{at:05}" for at in range(30_000)], [f"text {at % 7} " * (at % 5) for at in range(30_000)]
    with Engine(tmp_path / "texts" if on_disk else None, driver=DRIVER) as engine:
        engine.run("CREATE NODE TABLE Thing(id STRING PRIMARY KEY, says STRING, nothing STRING)")
        engine.copy("Thing", pa.table({"id": ids, "says": texts, "nothing": pa.nulls(30_000, pa.string())}))

        found = engine.run("MATCH (n:Thing) RETURN n.id, n.says, n.nothing ORDER BY n.id")

    assert [(*pair, None) for pair in zip(ids, texts, strict=True)] == found
