"""Calls of a memory are spans by the conventions for generative AI, at every door, and can be read back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="the SDK of OpenTelemetry is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import graphstore
from graphstore import NotFoundError, memory
from graphstore.events import report
from graphstore.imports import otlp
from graphstore.memory import recall
from graphstore.remote import memory_spans as spans
from graphstore.topics import topics
from graphstore.values.period import instant, iso

pytestmark = pytest.mark.in_process("looks at the spans of this process")


class Seen:
    """The spans that were made."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def taken(self) -> list:
        found = list(self._kept.get_finished_spans())
        self._kept.clear()
        return found


@pytest.fixture
def seen() -> Iterator[Seen]:
    made = Seen()
    spans.instrument(made.provider)
    yield made
    spans.uninstrument()


def test_a_call_is_one_span_with_its_operation_and_what_it_was_about(seen, store):
    store.add_node("fact", {"says": "lunch is at noon"}, id="lunch")
    store.revise("lunch", {"says": "lunch is at one"})
    store.as_of().node("lunch")
    store.as_of().nodes(kind="fact")
    store.retract("lunch", reason="no lunch")
    found = seen.taken()

    assert [(span.name, span.attributes["graphstore.call"]) for span in found] == [
        ("create_memory", "add_node"),
        ("update_memory", "revise"),
        ("search_memory", "node"),
        ("search_memory", "nodes"),
        ("delete_memory", "retract"),
    ]
    assert {span.kind for span in found} == {SpanKind.INTERNAL}
    assert {span.attributes["gen_ai.operation.name"] for span in found} == {span.name for span in found}
    assert [span.attributes["gen_ai.memory.record.id"] for span in found] == ["lunch"] * 5
    assert [span.attributes["gen_ai.memory.record.count"] for span in found[:4]] == [1] * 4
    assert "gen_ai.memory.records" not in found[0].attributes
    assert "gen_ai.memory.query.text" not in found[3].attributes


def test_it_has_the_coordinate_of_a_read_and_the_tx_of_a_write(seen, store):
    node = store.add_node("fact", {"n": 1}, id="one")
    store.as_of(valid="2026-03-01", tx=node.tx_from).nodes()
    write, read = seen.taken()

    assert write.attributes["graphstore.tx"] == iso(instant(node.tx_from))
    assert read.attributes["graphstore.valid"] == "2026-03-01T23:59:59.999999Z"
    assert read.attributes["graphstore.tx"] == write.attributes["graphstore.tx"]


def test_an_error_is_told_by_its_class_and_goes_on(seen, store):
    with pytest.raises(NotFoundError):
        store.revise("nobody", {"n": 1})
    (span,) = seen.taken()

    assert span.attributes["error.type"] == "NotFoundError"
    assert span.status.status_code == StatusCode.ERROR
    assert span.events == ()


def test_rooms_and_methods_of_their_objects_are_seen_as_well(seen, store):
    memory.Memory(store).remember("the deploy is on friday", layer="group")
    recall.recall(store, "deploy")
    found = seen.taken()

    assert [(span.name, span.attributes["graphstore.call"]) for span in found] == [
        ("upsert_memory", "memory.remember"),
        ("search_memory", "recall.recall"),
    ]


def test_content_is_kept_for_who_asks_for_it(store):
    made = Seen()
    spans.instrument(made.provider, content=True)
    try:
        store.add_node("fact", {"says": "lunch is at noon"}, id="lunch")
        recall.recall(store, "lunch")
    finally:
        spans.uninstrument()
    write, read = made.taken()

    assert json.loads(write.attributes["gen_ai.memory.records"]) == [
        {"id": "lunch", "content": {"says": "lunch is at noon"}}
    ]
    assert read.attributes["gen_ai.memory.query.text"] == "lunch"


def test_without_it_nothing_is_there(store):
    made = Seen()
    before = type(store).add_node
    spans.instrument(made.provider)
    spans.instrument(made.provider)  # twice is once
    spans.uninstrument()
    store.add_node("fact", {"n": 1})

    assert made.taken() == []
    assert type(store).add_node is before


def test_the_processes_of_the_command_line_write_them_into_a_file_that_is_read_back(tmp_path):
    place, written = tmp_path / "memory.gs", tmp_path / "spans.jsonl"
    environment = {**os.environ, "GRAPHSTORE_SPANS": str(written)}
    with graphstore.open(place) as store:
        store.add_node("fact", {"n": 1}, id="first")
    for words in (["add", str(place), "fact", '{"n": 2}', "--id", "second"], ["get", str(place), "second"]):
        subprocess.run([sys.executable, "-m", "graphstore", *words], env=environment, check=True)

    with graphstore.open(":memory:") as store:
        told = otlp.import_otlp(store, written)
        found = [event.metadata["otlp"]["span"] for event in store.events(type="span")]
        assert told.spans == len(found) >= 2
        named = {each["name"] for each in found}
        assert {"create_memory", "search_memory"} <= named


@pytest.mark.rest
def test_a_server_and_an_agent_make_them(tmp_path, monkeypatch):
    from tests.mcp.test_transport import stdio
    from tests.support.agent import agent
    from tests.support.served import serve_in_process

    place, written = tmp_path / "memory.gs", tmp_path / "spans.jsonl"
    with graphstore.open(place) as store:
        store.add_node("fact", {"n": 1}, id="first")
    monkeypatch.setenv("GRAPHSTORE_SPANS", str(written))
    with agent(stdio(place)) as one:
        one.ask("remember", statement="the deploy is on friday")
    with serve_in_process(place, "--no-ticks") as (process, url):
        with graphstore.open(url, token=(place / "token").read_text().strip()) as there:
            there.node("first")
            recall.recall(there, "deploy")
        process.terminate()
        assert 0 == process.wait(20)

    with graphstore.open(":memory:") as store:
        otlp.import_otlp(store, written)
        calls = [
            attribute["value"]["stringValue"]
            for event in store.events(type="span")
            for attribute in event.metadata["otlp"]["span"]["attributes"]
            if attribute["key"] == "graphstore.call"
        ]
        assert {"node", "recall.recall"} <= set(calls)
        assert {"add_node", "memory.remember", "topics.memorize"} & set(calls), calls


def test_a_read_names_the_store_that_its_view_is_of(seen, tmp_path):
    with graphstore.open(tmp_path / "memory.gs") as kept, graphstore.open(":memory:") as passing:
        kept.as_of().nodes()
        kept.nodes()
        passing.as_of().nodes()
    found = [span.attributes.get("gen_ai.memory.store.id") for span in seen.taken()]

    assert found == [str(tmp_path / "memory.gs")] * 2 + [None]


def test_the_log_and_all_that_was_ever_said_are_searches_too(seen, store):
    for n in range(2):
        store.record_event("deploy", f"release {n} is out", occurred_at=store.at.tx)
    seen.taken()
    report.history_report(store, since="1d")
    recall.mentions(store, "release")
    topics.topic(store, "release")
    found = [
        (span.attributes["graphstore.call"], span.attributes["gen_ai.memory.record.count"])
        for span in seen.taken()
    ]

    assert [("events.history_report", 2), ("recall.mentions", 2)] == found[:2]
    assert "topics.topic" == found[2][0]
