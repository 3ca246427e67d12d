"""What answers contained, recorded beside the chain: batches, retention, forgetting, and what happens while others write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, NotFoundError
from graphstore.ledger import readings
from graphstore.ledger.database import SCHEMA, Database
from graphstore.ledger.readings import Agent, AnswerToRecord, ReadingsRecorder

DAY = 86_400_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphStore]:
    with graphstore.open(tmp_path / "s.gs") as opened:
        for id in ("a", "b", "c"):
            opened.add_node("fact", {"says": id}, id=id)
        yield opened


def answered(store: GraphStore, *ids: str, agent: str = "ben", at: int | None = None, **more: Any) -> None:
    """Record an answer with these ids."""
    valid, tx = store.coordinate()
    body = {"things": [{"id": id} for id in ids]}
    now = store._now() if at is None else at
    recorder = store._record_reads()
    recorder.add(AnswerToRecord(Agent(agent), "get", now, valid, tx, more.pop("body", body), **more))
    recorder.flush()


def recorded(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path / "ledger.db")) as connection:
        return connection.execute("SELECT id FROM read_thing ORDER BY id, reading").fetchall()


def test_readings_are_listed_newest_first_with_their_coordinate(store: GraphStore) -> None:
    answered(store, "a", "b")
    answered(store, "a", agent="ana")
    found = store.readers_of("a")
    assert ["ana", "ben"] == [each.agent for each in found]
    assert found[0].at > found[1].at and found[0].tx == store.as_of().at.tx
    assert ["a", "a", "b"] == sorted(each.id for each in store.readers_of(["a", "b"]))
    assert [] == store.readers_of("c")
    assert "ana received 'a' at" in str(found[0])
    with pytest.raises(NotFoundError):
        store.readers_of("nothing")
    with pytest.raises(InvalidError, match="Give one of them"):
        store.readers_of()


def test_with_a_tx_only_earlier_answers_and_what_it_invalidated_are_listed(store: GraphStore) -> None:
    answered(store, "a", "b")
    store.retract("a", reason="never so")
    tx = store.last_write
    answered(store, "a", agent="late")
    assert [("a", "ben")] == [(each.id, each.agent) for each in store.readers_of(tx=tx)]
    assert ["ben"] == [each.agent for each in store.readers_of("a", tx=tx)]
    assert ["late", "ben"] == [each.agent for each in store.readers_of("a")]


def test_a_write_concerns_readers_of_what_rests_on_what_it_took_by_each_kind(store: GraphStore) -> None:
    store.add_node("fact", {"says": "the ground"}, id="ground")
    store.add_node("fact", {"says": "derived"}, id="derived", derived_from=["ground"])
    store.add_node("fact", {"says": "supported"}, id="supported")
    store.add_node("fact", {"says": "caused"}, id="caused")
    store.add_node("fact", {"says": "budgeted"}, id="budgeted")
    store.define_kind("budgeted_by", rests=["retracted", "shaky"])
    store.link("ground", "supports", "supported")
    store.link("caused", "caused_by", "ground")
    store.link("budgeted", "budgeted_by", "derived")
    answered(store, "derived", "supported", "caused", "budgeted")
    store.retract("ground", reason="never so")
    assert ["budgeted", "caused", "derived", "supported"] == sorted(
        each.id for each in store.readers_of(tx=store.last_write)
    )


def test_what_was_over_and_was_never_so_is_invalidated_too(store: GraphStore) -> None:
    store.add_node("fact", {"says": "an outage"}, id="outage", valid_from="2020-01-01", valid_to="2020-01-02")
    store.add_node("fact", {"says": "a plan"}, id="plan", valid_from="2999-01-01")
    answered(store, "outage", "plan")
    for id in ("outage", "plan"):
        store.retract(id, reason="never so")
        assert [id] == [each.id for each in store.readers_of(tx=store.last_write)]


def test_only_ids_of_known_things_are_kept(store: GraphStore) -> None:
    link = store.link("a", "related_to", "b")
    answered(store, "a", "nothing", link.id)
    assert [("a",)] == recorded(store.path)
    answered(store, "nothing")
    assert 1 == store._ledger.database.rows("SELECT count(*) FROM reading")[0][0]


@pytest.mark.parametrize("body", [b'[["a", 1], {"x": "b"}]', [["a"], {"b": {"c": "b"}}]])
def test_any_text_of_a_table_may_be_an_id(store: GraphStore, body: Any) -> None:
    answered(store, body=body, is_table=True)
    assert [("a",), ("b",)] == recorded(store.path)


def test_a_table_of_arrow_is_read(store: GraphStore) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"found": ["a", "c", "?"]})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    answered(store, body=sink.getvalue().to_pybytes(), is_table=True)
    assert [("a",), ("c",)] == recorded(store.path)


def test_an_answer_that_cannot_be_read_is_left_out_and_counted(store: GraphStore) -> None:
    answered(store, body={"id": "\ud800"})
    answered(store, "a")
    assert [("a",)] == recorded(store.path)
    assert 1 == store._record_reads().lost
    answered(store, body=b"\x00 no JSON, no table", ids=("b",))
    assert [("a",), ("b",)] == recorded(store.path)


def test_an_answer_that_cannot_be_read_takes_no_other_with_it(store: GraphStore) -> None:
    recorder = ReadingsRecorder(store._ledger.database.again, store._now)
    valid, tx = store.coordinate()
    with recorder._writing:  # both are written at once
        for body in ({"id": "\ud800"}, {"id": "a"}):
            recorder.add(AnswerToRecord(Agent("ben"), "get", store._now(), valid, tx, body))
    recorder.close()
    assert (1, [("a",)]) == (recorder.lost, recorded(store.path))


def test_readings_are_kept_for_some_days(store: GraphStore) -> None:
    now = store._now()
    answered(store, "a", at=now - 91 * DAY)
    answered(store, "b", at=now - 89 * DAY)
    store._record_reads()._clean_after = 0.0
    answered(store, "c")
    assert [("b",), ("c",)] == recorded(store.path)


def test_what_is_erased_or_evicted_leaves_the_readings(store: GraphStore) -> None:
    answered(store, "a", "b", "c")
    answered(store, "a")
    store.erase("a", reason="secret")
    assert [("b",), ("c",)] == recorded(store.path)
    store.evict(ids=["b"], reason="old", keep_audit=False)
    assert [("c",)] == recorded(store.path)
    answered(store, "a")  # an answer that was given before, and is written after
    assert [("c",)] == recorded(store.path)
    store.evict(ids=["c"], reason="old")
    assert [] == recorded(store.path)
    assert [(0,)] == store._ledger.database.rows(
        "SELECT count(*) FROM reading WHERE number IN (SELECT reading FROM read_thing)"
    )
    assert store.verify().ok


def test_they_are_no_part_of_the_chain(store: GraphStore, tmp_path: Path) -> None:
    answered(store, "a")
    before = store._ledger.last()
    assert store.verify().ok
    store.rebuild()
    assert (before, [("a",)]) == (store._ledger.last(), recorded(store.path))
    store.export(tmp_path / "dump.jsonl")
    graphstore.restore(tmp_path / "dump.jsonl", tmp_path / "restored.gs")
    assert [] == recorded(tmp_path / "restored.gs")


def test_a_batch_waits_while_another_process_writes(store: GraphStore) -> None:
    other = Database(store.path / "ledger.db")
    try:
        with other.transaction():
            recorder = ReadingsRecorder(store._ledger.database.again, store._now)
            valid, tx = store.coordinate()
            recorder.add(AnswerToRecord(Agent("ben"), "get", store._now(), valid, tx, {"id": "a"}))
            recorder.flush(timeout=0.05)
            assert [] == recorded(store.path)
        recorder.flush()
        assert [("a",)] == recorded(store.path)
    finally:
        recorder.close()
        other.close()


def test_what_could_never_be_written_is_counted_as_lost(store: GraphStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(readings, "_WAITING", 2)
    recorder = ReadingsRecorder(partial(Database, store.path / "nothing.db"), store._now)
    valid, tx = store.coordinate()
    for _ in range(3):
        recorder.add(AnswerToRecord(Agent("ben"), "get", store._now(), valid, tx, {"id": "a"}))
    assert 1 == recorder.lost
    recorder.close()
    assert 3 == recorder.lost
    recorder.add(AnswerToRecord(Agent("ben"), "get", store._now(), valid, tx, {"id": "a"}))
    assert 4 == recorder.lost


def test_a_store_that_is_only_read_records_too(store: GraphStore) -> None:
    with graphstore.open(store.path, read_only=True) as reader:
        answered(reader, "a")
        assert ["ben"] == [each.agent for each in reader.readers_of("a")]
    assert ["ben"] == [each.agent for each in store.readers_of("a")]


def test_a_token_with_scopes_sees_what_tokens_within_its_scopes_read() -> None:
    row = readings.ReadingRow("a", "ben", 0, 0, 0, 0, "get", '["team/a","team/b/c"]')
    assert readings.is_within(row, ())
    assert readings.is_within(row, ("team/a", "team/b"))
    assert not readings.is_within(row, ("team/a",))
    assert not readings.is_within(row, ("team/a", "team/b/c/d"))
    assert not readings.is_within(row._replace(scopes=""), ("team/a",))
    assert not readings.is_within(row._replace(scopes='["team/ab"]'), ("team/a",))


def test_a_ledger_of_the_schema_before_gets_the_tables_when_it_is_opened(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "s.gs") as store:
        store.add_node("fact", {"says": "a"}, id="a")
        last = store._ledger.last()
    with closing(sqlite3.connect(tmp_path / "s.gs" / "ledger.db")) as connection:
        for table in ("reading", "read_thing"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 7")
        connection.commit()
    with graphstore.open(tmp_path / "s.gs") as store:
        answered(store, "a")
        assert ["ben"] == [each.agent for each in store.readers_of("a")]
        assert (last, True) == (store._ledger.last(), store.verify().ok)
        assert [(SCHEMA,)] == store._ledger.database.rows("PRAGMA user_version")
