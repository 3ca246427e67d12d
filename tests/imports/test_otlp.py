"""Traces of OpenTelemetry in and out: real spans of the SDK come out byte for byte as they went in."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, timeline
from tests.conftest import Clock, after, day

pytest.importorskip("opentelemetry.proto")

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from graphstore.imports.otlp import export_otlp, import_otlp, traces_data
from graphstore.imports.otlp_json import from_json, to_json

pytestmark = pytest.mark.served

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"


@pytest.fixture
def real() -> ExportTraceServiceRequest:
    """A request with two services' spans, as the SDK makes them and its exporter encodes them."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode

    exporter = InMemorySpanExporter()

    def tracer(service: str, scope: str) -> Any:
        provider = TracerProvider(
            resource=Resource.create(
                {"service.name": service, "host.cores": 4}, schema_url="https://example.org/1"
            ),
            span_limits=SpanLimits(max_events=2, max_attributes=7),
        )
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return provider.get_tracer(scope, "1.2", "https://example.org/2", {"lang": "py"})

    shop, bank = tracer("shop", "web"), tracer("bank", "ledger")
    attributes: dict[str, Any] = {
        "text": "ä\n", "yes": True, "whole": -(2**63), "real": 0.1, "texts": ["a", "b"], "wholes": [1, 2], "dropped": 1, "reals": [1.5],
    }  # fmt: skip
    with shop.start_as_current_span("GET /cart", kind=SpanKind.SERVER, attributes=attributes) as outer:
        with bank.start_as_current_span(
            "pay", kind=SpanKind.CLIENT, links=[Link(outer.get_span_context(), {"w": 1.0})]
        ) as inner:
            for number in range(3):
                inner.add_event(f"try {number}", {"n": number})
            inner.record_exception(ValueError("no money"))
            inner.set_status(Status(StatusCode.ERROR, "no money"))
        outer.set_status(Status(StatusCode.OK))
    with shop.start_as_current_span("another trace"):
        pass
    return encode_spans(exporter.get_finished_spans())


def document(**span: Any) -> dict[str, Any]:
    """An OTLP/JSON document of one span."""
    fields = {"traceId": TRACE, "spanId": SPAN, "name": "work", "startTimeUnixNano": "1769904000000000001"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**fields, **span}]}]}]}


def taken(store: GraphStore, found: Any) -> Any:
    return import_otlp(store, json.dumps(found).encode())


# ---- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["protobuf", "json", "json lines"])
@pytest.mark.parametrize("ending", ["json", "pb"])
def test_real_spans_come_out_as_they_went_in(
    real: ExportTraceServiceRequest, tmp_path: Path, form: str, ending: str
) -> None:
    data = real.SerializeToString()
    if form != "protobuf":
        lines = (
            [to_json(real)]
            if form == "json"
            else [{"resourceSpans": [one]} for one in to_json(real)["resourceSpans"]]
        )
        data = b"\n".join(json.dumps(one).encode() for one in lines)
    with graphstore.open(tmp_path / "s.gs") as store:
        done = import_otlp(store, data)
        assert (3, 2, 0, (), ()) == (done.spans, done.traces, done.known, done.damaged, done.unknown)
        assert 3 == export_otlp(store, tmp_path / f"out.{ending}")

    out = (tmp_path / f"out.{ending}").read_bytes()
    found = TracesData()
    if ending == "pb":
        found.ParseFromString(out)
    else:
        from_json(json.loads(out), found, "out", pytest.fail)
    assert real.SerializeToString(deterministic=True) == found.SerializeToString(deterministic=True)


def test_ids_in_json_are_hex_and_long_numbers_are_text(real: ExportTraceServiceRequest) -> None:
    span = real.resource_spans[0].scope_spans[0].spans[0]
    written = to_json(span)

    assert (span.trace_id.hex(), span.span_id.hex()) == (written["traceId"], written["spanId"])
    assert str(span.start_time_unix_nano) == written["startTimeUnixNano"]
    assert int is type(written["kind"])


def test_what_is_not_an_id_is_written_as_protobuf_writes_it(real: ExportTraceServiceRequest) -> None:
    ours = to_json(real)
    theirs = json.loads(json_format.MessageToJson(real, use_integers_for_enums=True, indent=None))

    def without_ids(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: without_ids(value) for name, value in found.items() if not name.endswith("Id")}
        return [without_ids(each) for each in found] if isinstance(found, list) else found

    assert without_ids(theirs) == without_ids(ours)


# A NaN is one NaN: JSON has no other.
_NUMBERS = st.one_of(st.floats(allow_nan=False), st.just(math.nan))
_VALUES: Any = st.recursive(
    st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=5).map(lambda value: AnyValue(string_value=value)),
        st.booleans().map(lambda value: AnyValue(bool_value=value)),
        st.integers(-(2**63), 2**63 - 1).map(lambda value: AnyValue(int_value=value)),
        _NUMBERS.map(lambda value: AnyValue(double_value=value)),
        st.binary(max_size=5).map(lambda value: AnyValue(bytes_value=value)),
        st.just(AnyValue()),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: AnyValue(array_value={"values": values})),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(
            lambda values: AnyValue(kvlist_value={"values": [{"key": key, "value": value} for key, value in values.items()]})
        ),
    ),
    max_leaves=6,
)  # fmt: skip


@given(
    values=st.lists(_VALUES, max_size=3),
    name=st.text(max_size=4),
    numbers=st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)),
    parent=st.sampled_from([b"", b"\0" * 8, b"\1" * 8]),
    empty=st.booleans(),
)
@settings(deadline=None)
def test_any_span_comes_out_as_it_went_in(
    values: list[Any], name: str, numbers: tuple[int, int, int], parent: bytes, empty: bool
) -> None:
    traces = TracesData()
    resource = traces.resource_spans.add(schema_url="u" if empty else "")
    if empty:
        resource.resource.SetInParent()
    scope = resource.scope_spans.add()
    attributes = [{"key": str(number), "value": value} for number, value in enumerate(values)]
    scope.spans.add(
        trace_id=b"\x10" * 16, span_id=b"\x20" * 8, parent_span_id=parent, name=name, start_time_unix_nano=numbers[0],
        end_time_unix_nano=numbers[1], dropped_links_count=numbers[2], flags=numbers[2], attributes=attributes,
        events=[{"name": name, "attributes": attributes}],
    )  # fmt: skip
    for data in (traces.SerializeToString(), json.dumps(to_json(traces)).encode()):
        with graphstore.open(":memory:", clock=Clock("2600-01-01")) as store:
            assert 1 == import_otlp(store, data).spans
            found = traces_data(store)
        assert traces.SerializeToString(deterministic=True) == found.SerializeToString(deterministic=True)


# ---- what the store makes of them -------------------------------------------------------------


def test_a_span_is_an_event_and_the_trace_a_tree(
    real: ExportTraceServiceRequest, store: GraphStore, clock: Clock
) -> None:
    clock.set("2100-01-01")
    import_otlp(store, real.SerializeToString())
    pay = real.resource_spans[0].scope_spans[0].spans[0]
    (event,) = store.events(pattern="pay")
    found = timeline.trace(store, pay.trace_id.hex())

    assert ("span", "pay", "bank", "system") == (event.type, event.description, event.source, event.origin)
    assert (pay.span_id.hex(), pay.parent_span_id.hex()) == (event.span_id, event.parent_span_id)
    assert pay.start_time_unix_nano // 1000 == round(event.occurred_at.timestamp() * 1e6)
    assert [("GET /cart", 0), ("pay", 1)] == [(each.name, each.depth) for each in found.spans]
    spent = (pay.end_time_unix_nano // 1000 - pay.start_time_unix_nano // 1000) / 1e6
    assert math.isclose(spent, found.spans[1].duration or 0)
    assert event.authorized is None


def test_the_same_file_again_changes_nothing(
    real: ExportTraceServiceRequest, store: GraphStore, clock: Clock
) -> None:
    clock.set("2100-01-01")
    import_otlp(store, real.SerializeToString())
    before = store.stats()["transactions"]
    again = import_otlp(store, json.dumps(to_json(real)).encode())

    assert (0, 3) == (again.spans, again.known)
    assert before == store.stats()["transactions"]


def test_a_span_told_otherwise_is_kept_beside_the_first(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    taken(store, document())
    other = taken(store, document(name="work, seen by the server"))

    assert (1, 0) == (other.spans, other.known)
    assert "reported with other content" in other.warnings[0]
    assert 1 == taken(store, document(name="work, seen by the server")).known
    assert 2 == len(timeline.trace(store, TRACE).span(SPAN).events)
    assert 2 == len(traces_data(store).resource_spans[0].scope_spans[0].spans)


def test_a_span_that_was_evicted_does_not_come_back(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    taken(store, document(endTimeUnixNano="1769904002000000000"))
    store.evict(ids=[store.events()[0].id])
    again = taken(store, document(endTimeUnixNano="1769904002000000000"))

    assert (0, 1) == (again.spans, again.known)
    (span,) = traces_data(store).resource_spans[0].scope_spans[0].spans
    assert (TRACE, SPAN, "[evicted]") == (span.trace_id.hex(), span.span_id.hex(), span.name)
    assert (1769904000000000000, 1769904002000000000) == (span.start_time_unix_nano, span.end_time_unix_nano)


def test_messages_go_out_as_events_of_spans(store: GraphStore, clock: Clock) -> None:
    clock.move(days=1)
    for at, text in ((0, "hello"), (2, "bye")):
        timeline.record_message(
            store,
            "TEXT",
            text,
            sender="ana",
            trace_id="chat-1",
            span_id="turn-1",
            occurred_at=after(at),
            id=f"m{at}",
        )
    store.record_event("deploy", "v2", trace_id="chat-1", occurred_at=after(1), source="ci")
    first = traces_data(store)

    (chat,), (deploy,) = (resource.scope_spans[0].spans for resource in first.resource_spans)
    assert ("TEXT", 16, 8, b"") == (chat.name, len(chat.trace_id), len(chat.span_id), chat.parent_span_id)
    assert 2_000_000_000 == chat.end_time_unix_nano - chat.start_time_unix_nano
    assert {"graphstore.trace_id": "chat-1", "graphstore.span_id": "turn-1"} == {
        each.key: each.value.string_value for each in chat.attributes
    }
    assert ["hello", "bye"] == [
        next(each.value.string_value for each in event.attributes if each.key == "description")
        for event in chat.events
    ]
    assert ("deploy", chat.trace_id) == (deploy.name, deploy.trace_id)
    assert first == traces_data(store)


def test_a_message_in_a_span_that_came_in_goes_out_with_it(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    taken(store, document())
    timeline.record_message(store, "TEXT", "by the way", trace_id=TRACE, span_id=SPAN)
    (span,) = traces_data(store).resource_spans[0].scope_spans[0].spans

    assert ("work", ["TEXT"]) == (span.name, [event.name for event in span.events])


def test_a_view_gives_out_its_own_spans(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    before = store.as_of()
    clock.move(days=1)
    taken(store, document())

    assert ([], 1) == (list(traces_data(before).resource_spans), len(traces_data(store).resource_spans))


# ---- what is wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ({"traceId": "00" * 16}, "spans[0].traceId is '00000000000000000000000000000000': it takes 16 bytes"),
        ({"spanId": "ee"}, "spanId is 'ee': it takes 8 bytes"),
        ({"spanId": "7uGbfsPBsXQ="}, "no hex: ids are hex in OTLP/JSON, not base64"),
        ({"parentSpanId": "abcd"}, "parentSpanId is 'abcd'"),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano is 'soon'"),
        ({"startTimeUnixNano": -1}, "startTimeUnixNano is -1"),
        ({"kind": "SPAN_KIND_NONE"}, "unknown value 'SPAN_KIND_NONE'"),
        ({"attributes": {}}, "attributes is {}, no list"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": "§"}}]}, "no base64"),
        ({"attributes": [{"key": "k", "value": "plain"}]}, "attributes[0].value is 'plain', no object"),
        ({"name": 3}, "name is 3"),
    ],
)
def test_a_damaged_span_is_reported_with_its_place_and_the_rest_is_kept(
    store: GraphStore, clock: Clock, span: dict[str, Any], reason: str
) -> None:
    clock.set("2100-01-01")
    found = document(**span)
    found["resourceSpans"].append(document(spanId="0102030405060708")["resourceSpans"][0])
    done = taken(store, found)

    assert (1, 1) == (done.spans, len(done.damaged))
    assert "resourceSpans[0].scopeSpans[0].spans[0]" in done.damaged[0].reason
    assert reason in done.damaged[0].reason


def test_unknown_fields_are_reported_and_left_out(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    found: Any = {**document(colour="red"), "more": 1}
    found["resourceSpans"][0]["scopeSpans"][0]["extra"] = None
    done = taken(store, found)

    span = "resourceSpans[0].scopeSpans[0].spans[0].colour"
    assert (1, {"more", span, "resourceSpans[0].scopeSpans[0].extra"}) == (done.spans, {*done.unknown})


def framed(*messages: bytes) -> bytes:
    """Messages as the Collector's file exporter writes protobuf: four bytes of length, the highest first, and the message."""
    return b"".join(len(one).to_bytes(4, "big") + one for one in messages)


def zstd(data: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("packed", [lambda data: data, zstd], ids=["plain", "zstd"])
@pytest.mark.parametrize("form", ["protobuf", "json"])
def test_messages_behind_their_lengths_are_read(
    store: GraphStore, clock: Clock, real: ExportTraceServiceRequest, form: str, packed: Any
) -> None:
    clock.set("2100-01-01")
    each = [TracesData(resource_spans=[one]) for one in real.resource_spans]
    bodies = [
        one.SerializeToString() if form == "protobuf" else json.dumps(to_json(one)).encode() for one in each
    ]
    done = import_otlp(store, framed(*(packed(body) for body in bodies)))

    assert 1 < len(each) and (3, (), ()) == (done.spans, done.damaged, done.unknown)
    assert real.SerializeToString(deterministic=True) == traces_data(store).SerializeToString(
        deterministic=True
    )


def test_a_file_packed_whole_is_read(store: GraphStore, real: ExportTraceServiceRequest) -> None:
    assert 3 == import_otlp(store, zstd(real.SerializeToString())).spans


def test_a_message_that_is_cut_off_or_damaged_is_reported_and_the_rest_is_kept(
    store: GraphStore, real: ExportTraceServiceRequest
) -> None:
    one = real.SerializeToString()
    data = framed(b"\xff\xff\xff", zstd(b"x" * 100)[:-5], one, one)
    done = import_otlp(store, data[:-7])

    assert (3, [1, 2, 4]) == (done.spans, [each.line for each in done.damaged])
    assert "7 bytes too early" in done.damaged[2].reason and "zstd" in done.damaged[1].reason


@pytest.mark.parametrize("data", [b"\0\0\0\x05abc", b"\0\0", framed(b"\xff\xff\xff")])
def test_no_whole_message_at_all_is_refused(store: GraphStore, data: bytes) -> None:
    with pytest.raises(InvalidError, match="holds no OTLP traces"):
        import_otlp(store, data)
    assert 0 == store.stats()["transactions"]


def test_unknown_fields_of_bytes_are_reported(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    traces = TracesData()
    from_json(document(), traces, "t", pytest.fail)
    field_2000 = bytes([0x80, 0x7D, 0x05])  # a number in a field that nobody has defined
    done = import_otlp(store, traces.SerializeToString() + field_2000)

    assert (1, ("traces: field 2000",)) == (done.spans, done.unknown)


def test_a_damaged_line_is_left_out_by_its_number(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    lines = [
        json.dumps(document()).encode(),
        b'{"resourceSpans": [',
        json.dumps(document(spanId="01" * 8)).encode(),
    ]
    done = import_otlp(store, b"\n".join(lines))

    assert (2, [2]) == (done.spans, [each.line for each in done.damaged])


@pytest.mark.parametrize("data", [b"no traces", b"[1]", b"\xff\xff\xff"])
def test_what_holds_no_traces_is_refused(store: GraphStore, data: bytes) -> None:
    with pytest.raises(InvalidError, match="holds no OTLP traces"):
        import_otlp(store, data)
    assert 0 == store.stats()["transactions"]


def test_enum_names_and_numbers_for_long_ones_are_understood(store: GraphStore, clock: Clock) -> None:
    clock.set("2100-01-01")
    taken(
        store, document(kind="SPAN_KIND_SERVER", startTimeUnixNano=1769904000000000001, traceId=TRACE.upper())
    )
    (span,) = traces_data(store).resource_spans[0].scope_spans[0].spans

    assert (2, 1769904000000000001, TRACE) == (span.kind, span.start_time_unix_nano, span.trace_id.hex())
    assert day("2026-02-01") == store.events()[0].occurred_at


def test_an_export_takes_no_file_that_is_there(store: GraphStore, tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("mine")

    with pytest.raises(ConflictError, match="exists"):
        export_otlp(store, tmp_path / "there.json")
    assert "mine" == (tmp_path / "there.json").read_text()


def test_the_command_line_takes_traces_in_and_gives_them_out(
    real: ExportTraceServiceRequest, tmp_path: Path
) -> None:
    from tests.cli.test_command_line import answer, run

    (tmp_path / "in.json").write_text(json.dumps(to_json(real)))
    assert "3 new spans of 2 traces" in run("import", "otlp", tmp_path / "s.gs", tmp_path / "in.json")
    done = answer("export", tmp_path / "s.gs", tmp_path / "out.json", "--format", "otlp")
    assert 3 == done["spans"]
    assert json.loads((tmp_path / "in.json").read_text()) == json.loads((tmp_path / "out.json").read_text())
    trace_id = real.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()
    assert "└─ pay" in run("trace", tmp_path / "s.gs", trace_id[:12])
