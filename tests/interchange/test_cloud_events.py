"""Transactions as CloudEvents: read back by the package that others read them with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphstore import GraphStore
from tests.cli.test_command_line import refused, run
from tests.conftest import Clock

pytest.importorskip("cloudevents")

from cloudevents.core.formats.json import JSONFormat

from graphstore.interchange.cloud_events import cloud_events, structured

pytestmark = pytest.mark.served


@pytest.fixture
def told(disk_store: GraphStore, clock: Clock) -> GraphStore:
    """Three transactions: a node, two of them at once, and what an event says."""
    disk_store.add_node("fact", {"n": 1}, id="fact-1", reason="because")
    clock.move(seconds=1)
    with disk_store.transaction(author="ana", reason="both"):
        disk_store.revise("fact-1", {"n": 2})
        disk_store.add_node("fact", {"n": 3}, id="fact-2")
    clock.move(seconds=1)
    disk_store.record_event("deploy", "v1", id="deploy-1")
    return disk_store


def read(line: bytes | str) -> Any:
    return JSONFormat().read(None, line)


def test_each_transaction_is_one_event_with_its_operations(told: GraphStore) -> None:
    first, both, last = (read(structured(event)) for event in cloud_events(told))
    changes = told.changes()

    assert ["1.0"] * 3 == [event.get_specversion() for event in (first, both, last)]
    assert {"graphstore.transaction.v1"} == {event.get_type() for event in (first, both, last)}
    assert ["2026-02-01T00:00:00Z", "2026-02-01T00:00:01Z", "2026-02-01T00:00:02Z"] == [
        event.get_id() for event in (first, both, last)
    ]
    assert [changes[0].tx, changes[1].tx, changes[3].tx] == [
        event.get_time() for event in (first, both, last)
    ]
    assert ["fact-1", None, "deploy-1"] == [event.get_subject() for event in (first, both, last)]
    assert [{**json.loads(changes[0].model_dump_json())}] == first.get_data()["changes"]
    assert [("revise", "fact-1", "ana", "both"), ("add_node", "fact-2", "ana", "both")] == [
        (each["verb"], each["subject"], each["author"], each["reason"]) for each in both.get_data()["changes"]
    ]


def test_the_source_is_the_store(told: GraphStore) -> None:
    assert told.path is not None
    assert {told.path.absolute().as_uri()} == {event.get_source() for event in cloud_events(told)}
    assert {"urn:desk"} == {event.get_source() for event in cloud_events(told, source="urn:desk")}


@pytest.mark.in_memory("is of a store in memory")
def test_a_store_in_memory_has_a_source_too(store: GraphStore) -> None:
    store.add_node("fact", {})
    (event,) = cloud_events(store)

    assert "urn:graphstore:memory" == event.get_source()


def test_the_time_of_the_last_event_goes_on_after_it(told: GraphStore) -> None:
    first, *rest = cloud_events(told)

    assert [event.get_id() for event in rest] == [
        event.get_id() for event in cloud_events(told, first.get_time())
    ]


def test_changes_prints_an_event_a_line(told: GraphStore) -> None:
    path = told.path
    told.close()
    lines = run("changes", path, "--format", "cloudevents").splitlines()

    assert 3 == len(lines)
    assert "deploy-1" == read(lines[-1]).get_subject()
    assert [json.loads(line) for line in lines] == json.loads(
        run("changes", path, "--format", "cloudevents", "--json")
    )
    assert (
        lines[1:]
        == run("changes", path, "--format", "cloudevents", "--since", read(lines[0]).get_id()).splitlines()
    )


def test_a_store_without_changes_prints_nothing(tmp_path: Path) -> None:
    run("init", tmp_path / "s.gs")

    assert "" == run("changes", tmp_path / "s.gs", "--format", "cloudevents")
    assert [] == json.loads(run("changes", tmp_path / "s.gs", "--format", "cloudevents", "--json"))
    assert "carrier pigeon" in refused("changes", tmp_path / "s.gs", "--format", "carrier pigeon", code=2)
