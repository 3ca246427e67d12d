"""Tables and JSON lines in the store, by a mapping; what is damaged is reported and the rest is kept."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, NotFoundError
from graphstore.imports import Damage, import_csv, import_jsonl, import_rows
from tests.conftest import day

pytestmark = pytest.mark.served

RELEASES = """\
product,cycle,released,ends,latest,successor,note
python,3.11,2022-10-24,2027-10-31,3.11.9,,
python,3.12,2023-10-02,,3.12.3,,"quoted, and
over two lines"
node,18,2022-04-19,2025-04-30,18.20,node/20 node/22,end of life
node,20,2023-04-18,,20.13,,
node,22,2024-04-24,,22.1,,
"""
MAPPING = {
    "id": "{product}/{cycle}",
    "kind": "release",
    "scope": "releases",
    "text": "{product} {cycle}",
    "tags": ["release", "{product}"],
    "content": {"latest": "latest", "note": "note"},
    "valid_from": "released",
    "valid_to": "ends",
    "source": "releases.csv",
    "links": [{"kind": "precedes", "target": "{successor}", "separator": " ", "reason": "note"}],
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "releases.csv", RELEASES)


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def reasons(report) -> list[tuple[int, str]]:
    return [(damage.line, damage.reason) for damage in report.damaged]


# ---- a table at the present -------------------------------------------------------------------


def test_rows_become_nodes_with_their_period_text_and_tags(store, table):
    report = import_csv(store, table, MAPPING)
    node = store.node("python/3.11")

    assert (5, 5, 5, 2, ()) == (report.rows, report.nodes, report.versions, report.links, report.damaged)
    assert ("release", "releases", "python 3.11", ("release", "python")) == (
        node.kind,
        node.scope,
        node.text,
        node.tags,
    )
    assert (day("2022-10-24"), day("2027-10-31")) == (node.valid_from, node.valid_to)
    assert ({"latest": "3.11.9"}, "releases.csv") == (node.content, node.source)
    assert "quoted, and\nover two lines" == store.node("python/3.12").content["note"]
    assert "5 rows: 5 nodes, 5 versions, 2 links" == str(report)


def test_a_link_column_may_name_several_later_rows(store, table):
    import_csv(store, table, MAPPING)
    links = store.as_of(valid="2025-01-01").links_from("node/18")

    assert [("precedes", "node/20"), ("precedes", "node/22")] == sorted(
        (link.kind, link.target) for link in links
    )
    assert {("end of life", day("2022-04-19"), day("2025-04-30"))} == {
        (link.reason, link.valid_from, link.valid_to) for link in links
    }


def test_one_import_without_transaction_times_is_one_transaction(store, table):
    import_csv(store, table, MAPPING)

    assert 1 == store.stats()["transactions"]


def test_rows_with_one_id_are_versions_of_one_node(store):
    rows = [
        {"who": "auth", "how": "session", "since": "2024-01-01", "until": "2025-01-01"},
        {"who": "auth", "how": "token", "since": "2025-01-01", "until": ""},
    ]
    mapping = {
        "id": "who",
        "kind": "decision",
        "content": ["how"],
        "valid_from": "since",
        "valid_to": "until",
    }
    report = import_rows(store, rows, mapping)

    assert (1, 2) == (report.nodes, report.versions)
    assert ["session", "token"] == [
        store.as_of(valid=at).node("auth").content["how"] for at in ("2024-06-01", "2025-06-01")
    ]


def test_a_superseding_link_ends_the_old_where_the_new_begins(store):
    rows = [
        {"id": "one", "since": "2024-01-01", "by": "two"},
        {"id": "two", "since": "2025-01-01", "by": ""},
    ]
    mapping = {
        "id": "id",
        "kind": "decision",
        "valid_from": "since",
        "links": [{"kind": "superseded_by", "target": "by"}],
    }
    import_rows(store, rows, mapping)

    assert day("2025-01-01") == store.history("one")[0].valid_to
    assert ["two"] == [node.id for node in store.what_superseded("one").current]


# ---- a history --------------------------------------------------------------------------------

HISTORY = [
    {
        "id": "plan",
        "says": "monday",
        "from": "2024-01-01",
        "seen": "2024-01-10",
        "gone": "2024-02-10",
        "with": "team",
    },
    {"id": "team", "says": "us", "from": "2024-01-01", "seen": "2024-01-20", "gone": "", "with": ""},
    {
        "id": "plan",
        "says": "friday",
        "from": "2024-01-15",
        "seen": "2024-02-10",
        "gone": "2024-03-10",
        "with": "team",
    },
]
HISTORY_MAPPING = {
    "id": "id", "kind": "fact", "content": ["says"], "valid_from": "from", "tx_from": "seen", "tx_to": "gone",
    "links": [{"kind": "uses", "target": "with"}],
}  # fmt: skip


def test_each_instant_of_a_history_is_a_transaction(store):
    import_rows(store, HISTORY, HISTORY_MAPPING)

    assert [day(f"2024-{at}") for at in ("01-10", "01-20", "02-10", "03-10")] == sorted(
        {c.tx for c in store.changes()}
    )


def test_a_row_is_believed_from_its_tx_from_to_its_tx_to(store):
    report = import_rows(store, HISTORY, HISTORY_MAPPING)

    assert ((2, 3, 1), ()) == ((report.nodes, report.versions, report.links), report.damaged)
    assert "monday" == store.as_of(valid="2024-01-20", tx="2024-02-09").node("plan").content["says"]
    assert "friday" == store.as_of(valid="2024-01-20", tx="2024-02-10").node("plan").content["says"]
    with pytest.raises(NotFoundError):  # the new plan says nothing of the time before it
        store.as_of(valid="2024-01-10", tx="2024-02-10").node("plan")
    with pytest.raises(NotFoundError, match="retracted"):
        store.as_of(valid="2024-01-20", tx="2024-03-10").node("plan")


def test_a_row_that_says_the_same_stays_where_the_one_before_it_goes(store):
    rows = [
        {"id": "plan", "says": "monday", "from": "2024-01-01", "seen": "2024-01-10", "gone": "2024-03-10"},
        {"id": "plan", "says": "monday", "from": "2024-02-01", "seen": "2024-02-10"},
    ]
    mapping = {name: HISTORY_MAPPING[name] for name in HISTORY_MAPPING if name != "links"}
    import_rows(store, rows, mapping)

    assert ["2024-02-01"] == [f"{row.valid_from:%F}" for row in store.history("plan")]


def test_a_link_waits_for_its_target_and_stays_while_a_row_states_it(store):
    import_rows(store, HISTORY, HISTORY_MAPPING)
    links = {
        tx: [link.target for link in store.as_of(valid="2024-06-01", tx=tx).links_from("plan")]
        for tx in ("2024-01-19", "2024-01-20", "2024-02-10", "2024-03-10")
    }

    assert {"2024-01-19": [], "2024-01-20": ["team"], "2024-02-10": ["team"], "2024-03-10": []} == links
    assert 1 == store.stats()["links"]


def test_a_history_in_any_order_is_replayed_in_order(store):
    import_rows(store, HISTORY[::-1], HISTORY_MAPPING)

    assert "monday" == store.as_of(valid="2024-01-20", tx="2024-02-09").node("plan").content["says"]


def test_rows_of_the_same_instant_that_replace_each_other_leave_the_last(store):
    twice = [
        {**HISTORY[1], "says": said, "gone": gone} for said, gone in (("first", "2024-05-01"), ("last", ""))
    ]
    import_rows(store, twice, HISTORY_MAPPING)

    assert "last" == store.node("team").content["says"]


def test_a_history_older_than_the_store_is_damage(store):
    store.add_node("fact", {}, id="here already")
    report = import_rows(store, HISTORY, HISTORY_MAPPING)

    assert 0 == report.versions
    assert {1, 2, 3} == {damage.line for damage in report.damaged}
    assert all("runs backwards" in damage.reason for damage in report.damaged)


# ---- into a store that knows something --------------------------------------------------------


def test_a_known_node_gets_another_version(store, table):
    import_csv(store, table, MAPPING)
    report = import_rows(
        store,
        [{"id": "python/3.12", "latest": "3.12.4"}],
        {"id": "id", "kind": "release", "content": ["latest"]},
    )

    assert (0, 1) == (report.nodes, report.versions)
    assert ("3.12.4", 2) == ((node := store.node("python/3.12")).content["latest"], node.number)


def test_an_id_that_begins_another_is_an_id_of_its_own(store):
    import_rows(store, [{"id": "longer-id-2"}], {"id": "id", "kind": "fact"})
    report = import_rows(
        store,
        [{"id": "longer-id", "to": "longer-i"}],
        {"id": "id", "kind": "fact", "links": [{"kind": "uses", "target": "to"}]},
    )

    assert 1 == report.nodes
    assert [(1, "link uses: there is no 'longer-i'")] == reasons(report)


# ---- damage -----------------------------------------------------------------------------------


def test_damaged_rows_are_reported_with_line_and_reason_and_the_rest_is_kept(store, tmp_path):
    path = written(
        tmp_path / "mess.csv",
        b"\xef\xbb\xbfid,since,until,to\n"  # a byte order mark
        b"good,2024-01-01,,\n"
        b",2024-01-01,,\n"
        b"naive,2024-01-01T12:00:00,,\n"
        b"garbled,20l2-09-26,,\n"
        b"inverted,2024-02-01,2024-01-01,\n"
        b"empty,2024-02-01,2024-02-01,\n"
        b"\n"
        b"short,2024-01-01\n"
        b"caf\xe9,2024-01-01,,\n"
        b'"two\nlines",2024-01-01,,nowhere\n'
        b"linked,2024-01-01,,nowhere\n"
        b"itself,2024-01-01,,itself\n"
        b"fine,2024-01-01,,good\n",
    )
    mapping = {
        "id": "id", "kind": "fact", "valid_from": "since", "valid_to": "until", "links": [{"kind": "uses", "target": "to"}]
    }  # fmt: skip
    report = import_csv(store, path, mapping)
    found = dict(reasons(report))

    assert [3, 4, 5, 6, 7, 9, 10, 11, 13, 14] == list(found)
    assert "no id" == found[3]
    assert "has no time zone" in found[4]
    assert "'20l2-09-26' is no ISO 8601 time" in found[5]
    assert found[6].startswith("inverted period")
    assert found[7].startswith("empty period")
    assert "2 cells where the header has 4" == found[9]
    assert "not UTF-8" == found[10]
    assert "control characters" in found[11]
    assert "link uses: there is no 'nowhere'" == found[13]
    assert "linked to itself" in found[14]
    assert str(path) == report.damaged[0].file
    assert {"good", "linked", "itself", "fine"} == {node.id for node in store.nodes()}
    assert ["good"] == [link.target for link in store.links_from("fine")]
    assert (12, 4, 1) == (report.rows, report.nodes, report.links)


def test_a_circle_of_supersessions_is_refused_where_it_closes(store):
    rows = [
        {"id": one, "by": two, "since": f"202{at}-01-01"} for at, (one, two) in enumerate(("ab", "bc", "ca"))
    ]
    mapping = {
        "id": "id",
        "kind": "fact",
        "valid_from": "since",
        "links": [{"kind": "superseded_by", "target": "by"}],
    }
    report = import_rows(store, rows, mapping)

    assert [3] == [damage.line for damage in report.damaged]
    assert "cycle" in report.damaged[0].reason
    assert 2 == report.links


def test_a_row_of_another_kind_is_damage(store):
    report = import_rows(
        store, [{"id": "a", "kind": "fact"}, {"id": "a", "kind": "plan"}], {"id": "id", "kind": "kind"}
    )

    assert [(2, "'a' is a 'fact', not a 'plan'")] == reasons(report)
    assert "rows:2: 'a' is a 'fact', not a 'plan'" == str(
        Damage(file="rows", line=2, reason=report.damaged[0].reason)
    )


def test_json_lines_keep_their_types_and_report_what_is_no_object(store, tmp_path):
    path = written(
        tmp_path / "facts.jsonl",
        json.dumps({"id": "a", "n": 1, "deep": {"who": "ada"}, "tags": ["x"], "none": None}) + "\n"
        "\n"
        "{broken\n"
        "[1, 2]\n"
        '{"id": "b", "n": NaN}\n'
        '{"id": "c", "n": 123456789012345678901234567890}\n'
        '{"id": "d", "n": true}\n',
    )
    report = import_jsonl(
        store, path, {"id": "id", "kind": "fact", "text": "by {deep.who}", "content": ["n", "deep", "tags"]}
    )

    assert [3, 4, 5, 6] == [damage.line for damage in report.damaged]
    assert "no JSON object but list" == report.damaged[1].reason
    assert {"n": 1, "deep": {"who": "ada"}, "tags": ["x"]} == store.node("a").content
    assert ("by ada", None) == (store.node("a").text, store.node("d").text)
    assert True is store.node("d").content["n"]


def test_types_of_csv_cells(store):
    mapping = {"id": "id", "kind": "fact", "types": {"n": "int", "ok": "bool", "f": "float", "j": "json"}}
    rows = [
        {"id": "a", "n": "7", "ok": "Yes", "f": "0.5", "j": '{"x": [1]}'},
        {"id": "b", "n": "seven", "ok": "", "f": "", "j": ""},
        {"id": "c", "n": "", "ok": "", "f": "nan", "j": ""},
    ]
    report = import_rows(store, rows, mapping)

    assert {"id": "a", "n": 7, "ok": True, "f": 0.5, "j": {"x": [1]}} == store.node("a").content
    assert [2, 3] == [damage.line for damage in report.damaged]
    assert "n is no int" in report.damaged[0].reason


def test_naive_times_are_read_in_the_zone_of_the_mapping(store):
    mapping = {"id": "id", "kind": "fact", "valid_from": "at", "timezone": "Europe/Berlin"}
    import_rows(
        store, [{"id": "a", "at": "2024-07-01 12:00"}, {"id": "b", "at": "2024-07-01T12:00Z"}], mapping
    )

    assert day("2024-07-01") + timedelta(hours=10) == store.node("a").valid_from
    assert day("2024-07-01") + timedelta(hours=12) == store.node("b").valid_from


def test_cells_keep_quotes_cypher_and_odd_unicode(store):
    odd = 'it\'s "quoted" }) DETACH DELETE n // 🜚 \u202e ünï'
    import_rows(store, [{"id": odd, "say": odd}], {"id": "id", "kind": "fact", "content": ["say"]})

    assert odd == store.node(odd).content["say"]


# ---- the mapping ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "prodct"}, "unknown column in the mapping's id 'prodct'.*Did you mean 'product'"),
        ({"text": "{nope}"}, "column in the mapping's text 'nope'"),
        ({"content": ["nope"]}, "column in the mapping's content 'nope'"),
        ({"content": 5}, "neither '\\*', a list nor a table"),
        ({"valid_from": "relesed"}, "valid_from 'relesed' is no ISO 8601 time"),
        ({"timezone": "Mars/North"}, "unknown timezone 'Mars/North'"),
        ({"types": {"latest": "number"}}, "unknown type in the mapping's types 'number'"),
        ({"colour": "red"}, "unknown setting in the mapping 'colour'"),
        ({"links": [{"kind": "uses"}]}, "needs kind and target"),
        (
            {"links": [{"kind": "uses", "target": "{product}/{cycle}", "separator": ","}]},
            "must name one column",
        ),
        ({"kind": None}, "kind None is no text"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused_before_anything_is_written(store, table, change, message):
    with pytest.raises(InvalidError, match=message):
        import_csv(store, table, {**MAPPING, **change})
    assert 0 == store.stats()["transactions"]


def test_a_mapping_without_id_says_what_to_give(store, table):
    with pytest.raises(InvalidError, match="the mapping has no id"):
        import_csv(store, table, {"kind": "fact"})


def test_mapping_files_in_toml_and_json(clock, table, tmp_path):
    toml = written(
        tmp_path / "mapping.toml",
        """
        id = "{product}/{cycle}"
        kind = "release"
        content = ["latest"]
        valid_from = "released"
        [[links]]
        kind = "precedes"
        target = "successor"
        separator = " "
        """,
    )
    as_json = written(
        tmp_path / "mapping.json",
        json.dumps(
            {"id": "{product}/{cycle}", "kind": "release", "content": ["latest"], "valid_from": "released"}
        ),
    )
    for mapping, links in ((toml, 2), (as_json, 0)):
        with graphstore.open(":memory:", clock=clock) as store:
            assert (5, links) == ((report := import_csv(store, table, mapping)).nodes, report.links)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.toml", "id = ", "no TOML"),
        ("m.json", "{", "no JSON"),
        ("m.json", "[]", "no table of settings"),
        ("none.toml", None, "cannot be read|there is no file"),
    ],
)
def test_a_mapping_file_that_cannot_be_read_is_named(store, table, tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        written(path, text)
    with pytest.raises(InvalidError, match=message):
        import_csv(store, table, path)


def test_files_that_are_no_tables(store, tmp_path):
    with pytest.raises(InvalidError, match="there is no file"):
        import_csv(store, tmp_path / "none.csv", MAPPING)
    with pytest.raises(InvalidError, match="two columns of one name: a"):
        import_csv(store, written(tmp_path / "twice.csv", "a,b,a\n1,2,3\n"), {"id": "a", "kind": "fact"})
    with pytest.raises(InvalidError, match="unknown format 'xml'"):
        import_rows(store, tmp_path / "none.xml", MAPPING, format="xml")  # type: ignore[arg-type]
    assert 0 == import_csv(store, written(tmp_path / "empty.csv", ""), MAPPING).rows
    assert 0 == import_csv(store, written(tmp_path / "header.csv", "product,cycle\n"), MAPPING).rows


@pytest.mark.in_process("progress is told at the end")
def test_progress_is_told(store: GraphStore):
    told: list[tuple[int, int]] = []
    rows = [{"id": f"node-{number}", "seen": f"2024-01-01T00:00:{number % 60:02}Z"} for number in range(600)]
    import_rows(
        store,
        rows,
        {"id": "id", "kind": "fact", "tx_from": "seen"},
        progress=lambda done, total: told.append((done, total)),
    )

    assert (512, 600) in told
