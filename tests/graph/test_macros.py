"""The words about time in a text that a caller writes, compared with what the reads of Python say."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow
import pytest

from graphstore import GraphStore, InvalidError, QueryError
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

SPLITS = [
    "plain",
    'a "quoted" one',
    "back\\slash",
    "\\\\",
    "\\n is no new line",
    "line\nline\n",
    "\ttab\\",
    "ü\x1b[0m",
    "",
    '"',
]


@pytest.fixture
def moved(store: GraphStore, clock: Clock) -> GraphStore:
    """Twelve accounts whose owners move, with late corrections and parts taken back."""
    chance = random.Random(7)
    for number in range(12):
        clock.move(hours=1)
        store.add_node(
            "account",
            {"owner": chance.choice(SPLITS), "total": number},
            id=f"a{number}",
            valid_from=day("2025-01-01"),
        )
    for number in range(40):
        clock.move(hours=1)
        begin = day("2025-01-01") + timedelta(days=chance.randrange(300))
        until = chance.choice([None, begin + timedelta(days=chance.randrange(1, 90))])
        which = f"a{chance.randrange(12)}"
        if number % 5 == 4:
            held = store.history(which)[-1].valid_from + timedelta(days=chance.randrange(5))
            store.retract(which, valid_from=held, valid_to=held + timedelta(days=3), reason="never was")
        else:
            store.revise(
                which, {"owner": chance.choice(SPLITS), "total": number * 2}, valid_from=begin, valid_to=until
            )
    return store


def instants(clock: Clock) -> list[tuple[datetime, datetime]]:
    """Coordinates in the whole plane."""
    chance = random.Random(11)
    return [
        (
            day("2025-01-01") + timedelta(days=chance.randrange(330)),
            day("2026-02-01") + timedelta(hours=chance.randrange(1, 60)),
        )
        for _ in range(12)
    ]


def test_as_of_is_what_the_view_there_has(moved: GraphStore, clock: Clock) -> None:
    for valid, tx in instants(clock):
        found = moved.query_tables(
            "MATCH (v:Version) WHERE AS_OF(v) RETURN v.node_id AS id, FIELD(v, 'owner') AS owner, FIELD(v, 'total') AS total",
            valid=valid, tx=min(tx, clock.now),
        )  # fmt: skip
        there = moved.as_of(valid=valid, tx=min(tx, clock.now))
        expected = sorted((node.id, node.content["owner"], node.content["total"]) for node in there.nodes())
        assert sorted(found.tuples()) == expected
        again = there.query("MATCH (n:Node) RETURN n.id, FIELD(n, 'owner'), FIELD(n, 'total')")
        assert sorted(again.tuples()) == expected


def test_without_a_coordinate_words_mean_now(moved: GraphStore) -> None:
    found = moved.query_tables("MATCH (:Node)-[:HAS_VERSION]->(v:Version) WHERE AS_OF(v) RETURN v.node_id")

    assert sorted(row[0] for row in found.tuples()) == sorted(node.id for node in moved.nodes())


def test_periods_that_hold_overlap_and_meet(moved: GraphStore) -> None:
    rows = moved.query_tables(
        "MATCH (v:Version) RETURN v.row AS row, v.valid_from, v.valid_to, v.tx_from, v.tx_to"
    ).tuples()
    end = datetime.max.replace(tzinfo=day("2025-01-01").tzinfo)
    spans = {row: (a, b or end, c, d or end) for row, a, b, c, d in rows}
    found = moved.query_tables(
        "MATCH (v:Version), (w:Version) WHERE v.row < w.row RETURN v.row, w.row, OVERLAPS(v, w), MEET(v, w)"
    )
    assert found.columns[2:] == ["OVERLAPS(v, w)", "MEET(v, w)"]
    for one, other, overlaps, meet in found.tuples():
        a, b = spans[one], spans[other]
        assert overlaps == (max(a[0], b[0]) < min(a[1], b[1]))
        shared = max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3])
        if overlaps and shared[2] < shared[3]:
            assert tuple(each or end for each in meet.values()) == shared
        else:
            assert meet is None
    held = moved.query_tables(
        "MATCH (v:Version) WHERE HOLDS(v, '2025-03-01', timestamp('2025-03-05')) RETURN v.row"
    ).tuples()
    assert {row for (row,) in held} == {
        row for row, each in spans.items() if each[0] < day("2025-03-05") and day("2025-03-01") < each[1]
    }


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (v:Version) WHERE v.valid_to IS NULL RETURN v.row, v.valid_to",
        "MATCH (v:Version) WITH v.row AS row, v.valid_to AS until WHERE until IS NULL RETURN row, until",
        "MATCH (v:Version) WHERE NOT v.valid_to IS NOT NULL RETURN v.row, v.valid_to",
        "MATCH (v:Version) WHERE v.valid_to = OPEN RETURN v.row, v.valid_to",
    ],
)
def test_an_open_end_is_null_where_it_is_shown_as_null(moved: GraphStore, text: str) -> None:
    shown = moved.query_tables("MATCH (v:Version) RETURN v.row, v.valid_to").tuples()

    assert sorted(moved.query_tables(text).tuples()) == sorted(
        (row, end) for row, end in shown if end is None
    )


@pytest.mark.parametrize(
    ("text", "of_end"),
    [
        ("RETURN v.row, coalesce(v.valid_to, timestamp('2031-01-01'))", lambda end: end or day("2031-01-01")),
        ("WITH v.row AS row, v.valid_to AS e RETURN row, coalesce(e, timestamp('2031-01-01'))", lambda end: end or day("2031-01-01")),
        ("RETURN v.row, coalesce(NULL, v.valid_to)", lambda end: end),
        ("RETURN v.row, count(v.valid_to)", lambda end: int(end is not None)),
        ("RETURN v.row, count(DISTINCT v.valid_to)", lambda end: int(end is not None)),
    ],
)  # fmt: skip
def test_coalesce_and_count_take_an_open_end_as_it_is_shown(
    moved: GraphStore, text: str, of_end: Any
) -> None:
    shown = moved.query_tables("MATCH (v:Version) RETURN v.row, v.valid_to").tuples()
    assert {end is None for _, end in shown} == {True, False}

    found = moved.query_tables(f"MATCH (v:Version) {text}")

    assert sorted(found.tuples()) == sorted((row, of_end(end)) for row, end in shown)
    assert found.columns[1] == text.rpartition("row, ")[2]


def test_the_end_of_belief_is_counted_where_it_is_shown(moved: GraphStore) -> None:
    shown = moved.query_tables("MATCH (v:Version) RETURN v.tx_to").tuples()
    found = moved.query_tables("MATCH (v:Version) RETURN count(v.tx_to), count(*) AS c").tuples()

    assert found == [(sum(end is not None for (end,) in shown), len(shown))]


def test_a_field_with_a_slash_is_within_a_map_in_the_tables_and_in_a_view(store: GraphStore) -> None:
    store.add_node("fact", {"a/b": 1, "a": {"b": 2}, "*": 3, "c.d": 4}, id="one")
    for ask, label in ((store.query, "Node"), (store.query_tables, "Version")):
        found = ask(f"MATCH (n:{label}) RETURN FIELD(n, 'a/b'), FIELD(n, '*'), FIELD(n, 'a/c')")
        assert found.tuples() == [(2, 3, None)]
    assert store.query("MATCH (n:Node) RETURN FIELD(n, 'c.d'), FIELD(n, 'a.b')").tuples() == [(4, None)]
    with pytest.raises(QueryError, match=r"FIELD cannot ask for 'c\.d' here: .*history_table"):
        store.query_tables("MATCH (v:Version) RETURN FIELD(v, 'c.d')")


def test_a_field_has_the_type_of_its_values(store: GraphStore) -> None:
    store.add_node("fact", {"n": 1, "x": 2, "yes": True, "mixed": 1, "list": [1]}, id="one")
    store.add_node("fact", {"n": None, "x": 2.5, "mixed": "1"}, id="two")
    ask = "RETURN FIELD(n, 'n') AS n, FIELD(n, 'x') AS x, FIELD(n, 'yes') AS yes, FIELD(n, 'mixed') AS mixed, FIELD(n, 'list') AS list, FIELD(n, 'none') AS nothing ORDER BY mixed"
    expected = [(None, 2.5, None, '"1"', None, None), (1, 2.0, True, "1", "[1]", None)]

    assert store.query_tables(f"MATCH (n:Version) {ask}").tuples() == expected
    assert store.query(f"MATCH (n:Node) {ask}").tuples() == expected


def test_rows_are_joined_by_key(moved: GraphStore) -> None:
    labels: list[dict[str, Any]] = [{"id": f"a{n}", "label": n % 3} for n in range(12)] + [
        {"id": "else", "label": 9}
    ]
    known = {node.id: node.content["total"] for node in moved.nodes()}
    expected = sorted(
        (each["id"], each["label"], known[each["id"]]) for each in labels if each["id"] in known
    )
    text = "UNWIND $rows AS r MATCH (n:Node {id: r.id}) WITH r, n.total AS total WHERE r.label <= 9 RETURN r.id, r.label, total"

    assert sorted(moved.query(text, rows=labels).tuples()) == expected
    assert sorted(moved.query(text, rows=pyarrow.Table.from_pylist(labels)).tuples()) == expected
    assert moved.query(text, rows=labels).columns == ["r.id", "r.label", "total"]
    assert moved.query("UNWIND $rows AS r RETURN r.id AS r", rows=labels[:1]).rows() == [{"r": "a0"}]
    assert moved.query("UNWIND $rows AS r RETURN r, {of: r} AS map", rows=labels[:1]).tuples() == [
        (labels[0], {"of": labels[0]})
    ]


def test_a_column_has_its_new_name_where_the_row_goes_on_too(moved: GraphStore) -> None:
    rows = [{"id": "a1", "label": 7}]
    for items in ("r.id AS id, r", "r, r.id AS id", "DISTINCT r.id AS id, r"):
        found = moved.query(f"UNWIND $rows AS r WITH {items} RETURN id, r.label", rows=rows)
        assert (found.columns, found.tuples()) == (["id", "r.label"], [("a1", 7)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UNWIND $rows AS r RETURN r.id, r.label AS label", (["r.id", "label"], [])),
        ("UNWIND $rows AS r RETURN r", (["r"], [])),
        ("UNWIND $rows AS r MATCH (n:Node {id: r.id}) WITH r, n WHERE r.label + 1 <= 9 RETURN n.id, r.label", (["n.id", "r.label"], [])),
        ("UNWIND $rows AS r RETURN count(*) AS c, sum(r.label) AS s", (["c", "s"], [(0, None)])),
        ("MATCH (n:Node) OPTIONAL MATCH (n)-->(m:Node) UNWIND $rows AS id WITH n, m, id WHERE n.id = id RETURN n.id", (["n.id"], [])),
    ],
)  # fmt: skip
def test_an_empty_list_gives_no_rows(moved: GraphStore, text: str, expected: Any) -> None:
    found = moved.query(text, rows=[])

    assert (found.columns, found.tuples()) == expected


def test_an_empty_list_elsewhere_is_refused(moved: GraphStore) -> None:
    with pytest.raises(InvalidError, match="empty list"):
        moved.query("MATCH (n:Node) WHERE n.id IN $ids RETURN n.id", ids=[])


def test_a_table_without_rows_gives_none(moved: GraphStore) -> None:
    assert moved.query(
        "UNWIND $rows AS r RETURN count(*) AS c", rows=pyarrow.table({"id": pyarrow.array([], "string")})
    ).single() == {"c": 0}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("MATCH (v:Version) RETURN AS_OF(v, 1)", r"AS_OF takes \(x\), not \(v, 1\)"),
        ("MATCH (v:Version) RETURN MEET(v)", "MEET takes"),
        ("MATCH (v:Version) RETURN FIELD(v.content, 'a')", "FIELD takes a variable"),
        ("MATCH (v:Version) RETURN FIELD(v, 'a\\\\b')", "no backslash"),
    ],
)
def test_a_word_with_other_arguments_is_refused(store: GraphStore, text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        store.query_tables(text)


def test_rows_that_cannot_be_read_are_refused(store: GraphStore) -> None:
    with pytest.raises(QueryError, match=r"read them once, with unwind \$rows AS r"):
        store.query("RETURN $rows", rows=[{"id": 1}])
    with pytest.raises(QueryError, match=r"no column 'x'\. They have: id"):
        store.query("UNWIND $rows AS r RETURN r.x", rows=[{"id": 1}])
    with pytest.raises(InvalidError, match="cannot be read as rows"):
        store.query("UNWIND $rows AS r RETURN r.id", rows=[{"id": 1}, {"id": "one"}])
    with pytest.raises(InvalidError, match="too large"):
        store.query("UNWIND $rows AS r RETURN r.id", rows=[{"id": 2**70}])


def test_a_name_that_is_not_there_is_told_with_those_that_are(moved: GraphStore) -> None:
    moved.link("a1", "related_to", "a2")
    for ask, text, says in (
        (moved.query, "MATCH (n:Account) RETURN n", r"Labels: Node, Absent, Event.*kind: 'account'.*Links in use: RELATED_TO"),
        (moved.query, "MATCH (a)-[:RELATED]->(b) RETURN a", "Did you mean 'RELATED_TO'"),
        (moved.query, "MATCH (v:Version) RETURN v", "query --tables"),
        (moved.query_tables, "MATCH (v:Versions) RETURN v", "Labels: .*Version.*Did you mean 'Version'"),
        (moved.query_tables, "MATCH (v:Version) RETURN v.total", r"Version has row, node_id, .*FIELD\(v, 'name'\)"),
        (moved.query_tables, "MATCH (v:Version) RETURN v.valid_form", "Did you mean 'valid_from'"),
    ):  # fmt: skip
        with pytest.raises(QueryError, match=says):
            ask(text)


def test_a_column_of_labels_is_called_as_written_whatever_labels_there_are(moved: GraphStore) -> None:
    moved.link("a1", "related_to", "a2")
    text = (
        "MATCH (a:Node)-[r]->(b:Node) RETURN DISTINCT label(r), labels( a ), count(*) AS n ORDER BY label(r)"
    )
    before = moved.query(text).rows()
    moved.define_kind("lives_with")

    assert [{"label(r)": "RELATED_TO", "labels( a )": "Node", "n": 1}] == before == moved.query(text).rows()
    assert ["label(n)"] == moved.query("MATCH (n:Node) RETURN label(n) LIMIT 1").columns
