"""The whole history in SQL: what the views of `sql/` say is what the store says, at every coordinate."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import orjson
import pytest

import graphstore
from graphstore import GraphStore, InvalidError, QueryError
from graphstore.interchange.sql import ask

pytestmark = pytest.mark.in_process("asks the tables of a store of its own")
DAYS = ("2026-01-05", "2026-01-15", "2026-01-25", "2026-02-10")


@pytest.fixture
def store(clock) -> Iterator[GraphStore]:
    with graphstore.open(":memory:", clock=clock) as made:
        clock.set("2026-01-10")
        made.add_node("fact", {"owner": "ana", "n": 1}, id="a", text="A is so", valid_from="2026-01-01")
        made.add_node(
            "fact", {"owner": "bob"}, id="b", text="B is so", valid_from="2026-01-01", valid_to="2026-01-20"
        )
        made.record_event("deploy", "v1", id="out", occurred_at="2026-01-07")
        clock.set("2026-01-20")
        made.add_node("fact", {"owner": "cy"}, id="c", text="C is so", valid_from="2026-01-12")
        made.supersede("a", by="c", reason="the team changed", valid_from="2026-01-12")
        made.link("c", "derived_from", "b", reason="as B says")
        clock.set("2026-01-30")
        made.revise("c", {"owner": "cy", "n": 2}, reason="counted")
        made.retract("b", valid_from="2026-01-10", reason="it ended before")
        made.add_node("fact", {"owner": "di"}, id="d", text="D is so")
        made.supersede("c", by="d", reason="again")
        clock.set("2026-03-01")
        yield made


def rows(store, text: str, **params):
    return ask(store, text, params).tuples()


@pytest.mark.parametrize("valid", DAYS)
@pytest.mark.parametrize("tx", DAYS)
def test_the_views_say_what_the_store_says(store, valid, tx):
    view = store.as_of(valid=valid, tx=tx)
    nodes = rows(
        store, "SELECT id, ref, content FROM node_as_of($valid, $tx) ORDER BY id", valid=valid, tx=tx
    )
    assert [(node.id, node.ref, node.content) for node in sorted(view.nodes(), key=lambda node: node.id)] == [
        (id, ref, orjson.loads(content)) for id, ref, content in nodes
    ]
    links = rows(store, "SELECT source, kind, target FROM link_as_of($valid, $tx)", valid=valid, tx=tx)
    there = [link for node in view.nodes() for link in view.links_from(node.id)]
    assert {(link.source, link.kind, link.target) for link in there} <= set(links)
    events = rows(store, "SELECT id FROM event_as_of($valid, $tx)", valid=valid, tx=tx)
    assert {(event.id,) for event in view.events()} == set(events)


def test_a_succession_and_a_difference_of_two_coordinates(store):
    steps = rows(
        store, "SELECT old, new, reason, step FROM succession_as_of('a', '2026-02-10', '2026-02-10')"
    )
    assert [("a", "c", "the team changed", 1), ("c", "d", "again", 2)] == steps

    found = rows(
        store,
        "SELECT id, change FROM node_diff('2026-01-05', '2026-01-15', '2026-02-10', '2026-02-10') ORDER BY id",
    )
    diff = store.as_of(valid="2026-01-05", tx="2026-01-15").compare(
        store.as_of(valid="2026-02-10", tx="2026-02-10")
    )
    assert found == sorted(
        [(one.id, "added") for one in diff.added if isinstance(one, graphstore.Node)]
        + [(one.id, "removed") for one in diff.removed]
        + [(one.id, "changed") for one in diff.changed]
    )


def test_what_was_recorded_later_is_not_there(store):
    assert [(2,)] == ask(store, "SELECT count(*) FROM nodes", tx="2026-01-15").tuples()
    assert [(None,)] == ask(store, "SELECT max(tx_to) FROM versions", tx="2026-01-15").tuples(), (
        "closed later: open then"
    )


def test_fields_are_read_by_duckdb_and_instants_are_aware(store):
    found = ask(
        store, "SELECT content->>'owner', tx_from FROM node_as_of('2026-01-05', now()) ORDER BY 1"
    ).tuples()
    view = store.as_of(valid="2026-01-05")
    assert [("ana", view.node("a").tx_from), ("bob", view.node("b").tx_from)] == found


def test_what_is_refused_says_what_there_is(store):
    with pytest.raises(QueryError, match=r"(?s)nope.*Tables: nodes, versions, .*Views: node_as_of"):
        ask(store, "SELECT * FROM nope")
    with pytest.raises(InvalidError, match="one coordinate"):
        ask(store.as_of(), "SELECT 1")


def test_without_duckdb_it_says_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(QueryError, match=r"pip install 'graphstore\[sql\]'"):
        ask(store, "SELECT 1")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_its_rows_are_written_to_a_file(store, tmp_path, ending):
    from typer.testing import CliRunner

    from graphstore.cli import app

    with graphstore.open(tmp_path / "memory.gs") as kept:
        kept.add_node("fact", {"n": 1}, id="one")
    file = tmp_path / f"rows.{ending}"
    asked = ["sql", str(tmp_path / "memory.gs"), "SELECT id, kind, key FROM nodes", "-o", str(file)]
    done = CliRunner().invoke(app, asked)
    assert done.output == f"1 rows in {file}\n"
    import duckdb

    read = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}[ending]
    assert duckdb.sql(f"SELECT id, kind, key FROM {read}('{file}')").fetchall() == [("one", "fact", None)]
    assert CliRunner().invoke(app, asked).exit_code != 0  # it is there
