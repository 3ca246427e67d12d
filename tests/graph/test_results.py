"""A Result in the hands of others: the types of the query whatever the values, taken by pandas, polars and DuckDB as it is, compared and put into sets."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pyarrow
import pytest

from graphstore import GraphStore
from graphstore.graph.arrow_types import arrow_type
from graphstore.graph.result import Result

pytestmark = pytest.mark.served

ASKED = """RETURN n.valid_to, n.tags, n.total, interval('2 days') AS i, CAST(1.25 AS DECIMAL(5, 2)) AS d, map([1, 2], ['a', 'b']) AS m,
  {`a b`: 1, c: [1.5]} AS s, CAST('2026-01-01' AS DATE) AS day, gen_random_uuid() AS u, blob('\\\\xAA') AS b, sum(n.total) AS total"""


@pytest.fixture
def linked(store: GraphStore) -> GraphStore:
    """Two nodes and a link."""
    store.add_node("fact", {"total": 1}, id="a")
    store.add_node("fact", {"total": 2, "of": {"x": 1}}, id="b")
    store.link("a", "related_to", "b")
    return store


def test_a_page_without_rows_has_the_columns_of_one_with_rows(linked: GraphStore) -> None:
    match = "MATCH (n:Node)-[l:RELATED_TO]->(m:Node) WHERE n.id = $id "
    full, empty = (linked.query(match + ASKED, id=id).to_arrow() for id in ("a", "nobody"))

    assert (len(full), len(empty)) == (1, 0)
    assert full.schema == empty.schema
    assert full.schema.field("d").type == pyarrow.decimal128(5, 2)
    assert full.schema.field("i").type == pyarrow.duration("us")
    assert full.schema.field("m").type == pyarrow.map_(pyarrow.int64(), pyarrow.string())
    [row] = full.to_pylist()
    assert (row["i"], row["d"], row["m"], row["s"]) == (
        timedelta(days=2),
        Decimal("1.25"),
        [(1, "a"), (2, "b")],
        {"a b": 1, "c": [1.5]},
    )


@pytest.mark.parametrize(
    "asked",
    [
        "MATCH (n:Node)-[l:RELATED_TO]->(m:Node) WHERE n.id = $id RETURN n, l, id(n) AS place, {of: n} AS s",
        "MATCH p = (n:Node)-[l:RELATED_TO*1..2]->(m:Node) WHERE n.id = $id RETURN p, nodes(p) AS many, l",
        "MATCH (n) WHERE n.id = $id RETURN n",
        "FOR VALID_TIME ALL MATCH (n:Node) WHERE n.id = $id RETURN n",
    ],
)
def test_nodes_links_and_paths_have_the_columns_of_their_labels(linked: GraphStore, asked: str) -> None:
    full, empty = (linked.query(asked, id=id) for id in ("a", "nobody"))

    assert (len(full), len(empty)) == (1, 0)
    assert full.to_arrow().schema == empty.to_arrow().schema
    [row] = full.to_arrow().to_pylist()
    things = {
        name: value for name, value in full.single().items() if name in ("n", "l") and "_label" in value
    }
    for name, thing in things.items():
        assert {key: value for key, value in row[name].items() if value is not None} == {
            key: value for key, value in thing.items() if value is not None
        }
    tables = [
        linked.query_tables("MATCH (v:Version) WHERE v.node_id = $id RETURN v", id=id).to_arrow().schema
        for id in ("a", "nobody")
    ]
    assert tables[0] == tables[1]
    assert tables[0].field("v").type.field("valid_to").type == pyarrow.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("STRUCT(a b INT64, `c, (d` STRING[])", pyarrow.struct([("a b", pyarrow.int64()), ("c, (d", pyarrow.list_(pyarrow.string()))])),
        ("MAP(STRING, STRUCT(x DECIMAL(18, 3)))", pyarrow.map_(pyarrow.string(), pyarrow.struct([("x", pyarrow.decimal128(18, 3))]))),
        ("TIMESTAMP[][3]", pyarrow.list_(pyarrow.list_(pyarrow.timestamp("us", tz="UTC")))),
        ("NODE", None), ("NODE[]", None), ("UNION(a INT64)", None),
    ],
)  # fmt: skip
def test_types_are_read_from_their_names(name: str, kind: pyarrow.DataType | None) -> None:
    assert arrow_type(name) == kind


def test_others_take_it_as_it_is(linked: GraphStore) -> None:
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    found = linked.query("MATCH (n:Node) RETURN n.id AS id, n.total AS total ORDER BY id")

    assert duckdb.sql("SELECT id, total FROM found ORDER BY id").fetchall() == found.tuples()
    assert polars.DataFrame(found).rows() == found.tuples()
    assert pandas.DataFrame(pyarrow.table(found).to_pandas()).to_dict("records") == found.rows()


def test_equal_rows_are_equal(linked: GraphStore) -> None:
    ask = "MATCH (n:Node) RETURN n.id AS id ORDER BY id"

    assert linked.query(ask) == linked.query(ask)
    assert linked.query(ask) == Result(["id"], [("a",), ("b",)])
    assert linked.query(ask) != linked.query(ask + " DESC")
    assert linked.query(ask) != Result(["other"], [("a",), ("b",)])
    assert linked.query(ask) != ["a", "b"]


def test_values_can_be_put_into_sets(linked: GraphStore) -> None:
    found = (
        linked.query("MATCH (n:Node) RETURN n").tuples() + linked.query("MATCH (n:Node) RETURN n").tuples()
    )
    assert len({node for (node,) in found}) == 2
    assert len({*linked.nodes(), *linked.nodes()}) == 2
    assert len({linked.node("b"), linked.node("a")}) == 2


def test_a_path_that_an_optional_match_did_not_find_is_null(linked: GraphStore) -> None:
    nobody = "OPTIONAL MATCH p = (a:Node {id: 'nobody'})-[r*1..2]->(b:Node) "

    assert {"p": None, "n": None, "r": [], "b": None} == linked.query(
        nobody + "RETURN p, length(p) AS n, rels(p) AS r, b"
    ).single()
    assert {"many": [None]} == linked.query_tables(nobody + "RETURN nodes(p) AS many").single()
