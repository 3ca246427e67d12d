"""Every type the engine has, through every door: the value in Python, and one JSON over HTTP, from an agent's tool and on the command line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import graphstore
from graphstore import GraphStore, QueryError
from graphstore.cli import printing
from graphstore.graph.result import Entity
from graphstore.remote import remote
from tests.support.served import TOKENS, Wire, serve_in_thread

pytest.importorskip("mcp")
from graphstore.mcp.desk import Desk
from graphstore.mcp.graph_tools import GraphTools

pytestmark = [pytest.mark.in_process("opens its own store, behind every door"), pytest.mark.driver]

DRIVER: Any = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
BIG = 170141183460469231731687303715884105727
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

TYPES: list[tuple[str, Any, Any]] = [
    ("null", None, None),
    ("cast(null AS INT64)", None, None),
    ("true", True, True),
    ("'ü'", "ü", "ü"),
    ("cast(-128 AS INT8)", -128, -128),
    ("cast(-32768 AS INT16)", -32768, -32768),
    ("cast(-2147483648 AS INT32)", -(2**31), -(2**31)),
    ("9223372036854775807", 2**63 - 1, 2**63 - 1),
    ("cast(255 AS UINT8)", 255, 255),
    ("cast(65535 AS UINT16)", 65535, 65535),
    ("cast(4294967295 AS UINT32)", 2**32 - 1, 2**32 - 1),
    ("cast('18446744073709551615' AS UINT64)", 2**64 - 1, 2**64 - 1),
    (f"cast('{BIG}' AS INT128)", BIG, str(BIG)),
    (f"cast('{-BIG - 1}' AS INT128)", -BIG - 1, str(-BIG - 1)),
    ("cast(7 AS INT128)", 7, 7),
    ("cast(1 AS SERIAL)", 1, 1),
    ("0.1", 0.1, 0.1),
    ("cast(0.5 AS FLOAT)", 0.5, 0.5),
    ("cast('nan' AS DOUBLE)", math.nan, "NaN"),
    ("cast('inf' AS DOUBLE)", math.inf, "Infinity"),
    ("cast('-inf' AS FLOAT)", -math.inf, "-Infinity"),
    ("cast('1.25' AS DECIMAL(10, 2))", Decimal("1.25"), "1.25"),
    ("cast('99999999999999999999' AS DECIMAL(38, 0))", 10**20 - 1, str(10**20 - 1)),
    ("interval('3 days 4 hours')", timedelta(days=3, hours=4), 273600.0),
    ("blob('\\\\xAA\\\\x00')", b"\xaa\x00", "qgA="),
    ("uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')", UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
     "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("date('2026-01-01')", date(2026, 1, 1), "2026-01-01"),
    ("date('12000-01-01')", "12000-01-01", "12000-01-01"),
    ("date('0001-01-01') - 400", "-0001-11-28", "-0001-11-28"),
    ("timestamp('2026-01-01 00:00:00.5')", NEW_YEAR + timedelta(seconds=0.5), "2026-01-01T00:00:00.500000Z"),
    ("timestamp('12000-01-01 10:00:00')", "12000-01-01T10:00:00Z", "12000-01-01T10:00:00Z"),
    ("cast('294000-01-01' AS TIMESTAMP)", "294000-01-01T00:00:00Z", "294000-01-01T00:00:00Z"),
    ("cast('2026-01-01' AS TIMESTAMP_MS)", NEW_YEAR, "2026-01-01T00:00:00Z"),
    ("cast('12000-01-01' AS TIMESTAMP_MS)", "12000-01-01T00:00:00Z", "12000-01-01T00:00:00Z"),
    ("cast('2026-01-01' AS TIMESTAMP_SEC)", NEW_YEAR, "2026-01-01T00:00:00Z"),
    ("cast('12000-01-01' AS TIMESTAMP_SEC)", "12000-01-01T00:00:00Z", "12000-01-01T00:00:00Z"),
    ("cast('2026-01-01T02:00:00+02:00' AS TIMESTAMP_TZ)", NEW_YEAR, "2026-01-01T00:00:00Z"),
    ("cast('12000-01-01' AS TIMESTAMP_TZ)", "12000-01-01T00:00:00Z", "12000-01-01T00:00:00Z"),
    ("[1, null, 2]", [1, None, 2], [1, None, 2]),
    ("cast([1, 2] AS INT64[2])", [1, 2], [1, 2]),
    ("[]", [], []),
    ("[[1], [], null]", [[1], [], None], [[1], [], None]),
    ("[date('12000-01-01'), null]", ["12000-01-01", None], ["12000-01-01", None]),
    ("[[timestamp('12000-01-01 00:00:00')], null]", [["12000-01-01T00:00:00Z"], None],
     [["12000-01-01T00:00:00Z"], None]),
    ("{a: 1, b: 'x', c: null}", {"a": 1, "b": "x", "c": None}, {"a": 1, "b": "x", "c": None}),
    ("{d: date('12000-01-01'), e: [{f: date('2026-01-01')}]}",
     {"d": "12000-01-01", "e": [{"f": date(2026, 1, 1)}]}, {"d": "12000-01-01", "e": [{"f": "2026-01-01"}]}),
    ("map([1, 2], ['a', 'b'])", {1: "a", 2: "b"}, {"1": "a", "2": "b"}),
    ("map(['k'], [date('12000-01-01')])", {"k": "12000-01-01"}, {"k": "12000-01-01"}),
    ("map([date('12000-01-01')], [1])", {"12000-01-01": 1}, {"12000-01-01": 1}),
    ("map([[1, 2]], [3])", {(1, 2): 3}, {"[1,2]": 3}),
    ("union_value(a := 1)", 1, 1),
    ("union_value(d := date('12000-01-01'))", "12000-01-01", "12000-01-01"),
    ("sum(n.number)", 1, 1),
    ("{n: n.id, at: n.valid_from}", {"n": "old", "at": NEW_YEAR}, {"n": "old", "at": "2026-01-01T00:00:00Z"}),
]  # fmt: skip
FAR = "timestamp('9999-12-31 23:59:59.999999') + interval('1 day')"
TYPES.append((FAR, "10000-01-01T23:59:59.999999Z", "10000-01-01T23:59:59.999999Z"))
IDS = [text for text, _, _ in TYPES]


@pytest.fixture(scope="module")
def kept() -> Iterator[GraphStore]:
    with graphstore.open(":memory:", driver=DRIVER) as store:
        store.add_node("fact", {"many": 3}, id="old", valid_from="2026-01-01")
        store.add_node("fact", {"many": 4}, id="new", valid_from="2026-01-02", supersedes="old")
        yield store


@pytest.fixture(scope="module")
def url(kept: GraphStore) -> Iterator[str]:
    with serve_in_thread(kept, tokens=TOKENS) as found:
        yield found


def asked(text: str) -> str:
    return f"MATCH (n:Absent {{id: 'old'}}) RETURN {text} AS x"


def same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(actual, float) and math.isnan(actual)
    return type(expected) is type(actual) and expected == actual


@pytest.mark.parametrize(("text", "value", "shown"), TYPES, ids=IDS)
def test_a_type_is_the_same_through_every_door(
    kept: GraphStore, url: str, text: str, value: Any, shown: Any
) -> None:
    found = kept.query(asked(text))

    assert same(value, found.single()["x"]), found.single()["x"]
    assert same(value, remote.connect(url, TOKENS.write).query(asked(text)).single()["x"])
    assert [{"x": shown}] == Wire(url, TOKENS.read).post("/query", {"cypher": asked(text)})["rows"]
    assert [[shown]] == GraphTools(Desk(kept)).cypher(query=asked(text)).model_dump(mode="json")["rows"]
    assert [{"x": shown}] == json.loads(printing.json_text(found.legible()))


@pytest.mark.parametrize("many", [1, 1500])
def test_far_instants_are_text_however_many_rows_there_are(kept: GraphStore, url: str, many: int) -> None:
    cypher = f"UNWIND range(1, {many}) AS k RETURN k, {FAR} AS far"

    for store in (kept, remote.connect(url, TOKENS.write)):
        rows = store.query(cypher).rows()
        assert (many, {"k": 1, "far": "10000-01-01T23:59:59.999999Z"}) == (
            len(rows),
            min(rows, key=lambda row: row["k"]),
        )
        assert many == store.query(cypher).to_arrow().num_rows


def test_nodes_links_and_paths_are_the_same_beside_a_far_instant(kept: GraphStore, url: str) -> None:
    cypher = "MATCH p = (n:Node)-[r:SUPERSEDES]->(o:Absent) RETURN n, r, p, [n] AS many, id(n) AS place"
    beside = f"{cypher}, {FAR} AS far"
    plain, mixed, sent = (
        kept.query(cypher).single(),
        kept.query(beside).single(),
        remote.connect(url, TOKENS.write).query(beside).single(),
    )

    assert plain == {name: value for name, value in mixed.items() if name != "far"}
    assert mixed == sent
    assert isinstance(mixed["n"], Entity)
    assert (plain["n"].at, plain["r"].source) == (mixed["n"].at, mixed["r"].source)
    assert 2 == len(sent["p"]["_nodes"])


@pytest.mark.parametrize(
    "text", ["cast('12000-01-01' AS TIMESTAMP_NS)", "cast('12000-01-01', 'TIMESTAMP_NS')"]
)
def test_a_type_that_wraps_around_is_refused(kept: GraphStore, text: str) -> None:
    with pytest.raises(QueryError, match="wraps around"):
        kept.query(asked(text))


def test_a_span_longer_than_pythons_is_an_error(kept: GraphStore) -> None:
    with pytest.raises(QueryError):
        kept.query("RETURN interval('3000000 years') AS x")
