"""Imports and exports traces of OpenTelemetry: OTLP as JSON or as protobuf bytes.

A span is one event of type `span`, at its start. Its fields are kept in the metadata as OTLP/JSON, so that it is exported unchanged. Other events
of the timeline are exported as spans of their own, or as events of the span they belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.errors import ConflictError, InvalidError
from graphstore.events import timeline
from graphstore.events.timeline import SPAN
from graphstore.imports.records import Progress
from graphstore.ledger.files import new_file
from graphstore.store import registry
from graphstore.store.import_report import Importing, ImportReport
from graphstore.values.event_fields import ENDED_AT, MESSAGE_TEXTS
from graphstore.values.models import Event, Json
from graphstore.values.period import instant, iso, moment
from graphstore.view.view import Reader

try:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

    from graphstore.imports.otlp_json import from_json, to_json, unknown_fields
except ImportError:
    raise InvalidError("OTLP needs opentelemetry-proto. Install it: pip install 'graphstore[otel]'") from None

if TYPE_CHECKING:
    from graphstore.store.store import Store

__all__ = ["OtlpReport", "export_otlp", "import_otlp", "traces_data"]

OTLP = "otlp"
"""The metadata field of an event that holds its span."""
NAMELESS = "(a span without a name)"
BINARY = frozenset({".pb", ".binpb", ".bin"})
"""The file suffixes for protobuf bytes."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_SCOPE = "graphstore"
_TEXTS = ("source", "agent", *MESSAGE_TEXTS)
_MOST_UNKNOWN = 100


class OtlpReport(ImportReport):
    """What an import of spans wrote and what it left out. `unknown`: fields that this version of OTLP has no name for."""

    spans: int
    known: int
    traces: int
    unknown: tuple[str, ...] = ()

    _written, _unchanged = ("spans",), "known"
    _counted = {"known": "known already", "damaged": "damaged", "unknown": "unknown fields left out"}

    def _headline(self) -> str:
        return f"{self.spans} new spans of {self.traces} traces"


class _Group(NamedTuple):
    """Holds what the spans of one group share, as OTLP/JSON; None if absent."""

    resource: Json | None
    resource_schema: str
    scope: Json | None
    scope_schema: str


def _group_of(resource: ResourceSpans, scope: ScopeSpans) -> _Group:
    return _Group(
        to_json(resource.resource) if resource.HasField("resource") else None,
        resource.schema_url,
        to_json(scope.scope) if scope.HasField("scope") else None,
        scope.schema_url,
    )


# ---- import -----------------------------------------------------------------------------------


@registry.write("otlp", files=("source",))
def import_otlp(store: Store, source: str | Path | bytes, *, progress: Progress | None = None) -> OtlpReport:
    """Write the spans of a file, or of bytes, in one transaction. The same spans again change nothing.

    A file holds one OTLP/JSON object, one a line, or protobuf bytes; or messages each behind its length, as the Collector's file exporter writes
    protobuf. All of it, or each message, may be packed by zstd. A span with ids that are none, or a damaged line, is left out and reported.
    Raises InvalidError for what holds no traces at all.
    """
    name = "bytes" if isinstance(source, bytes) else Path(source).name
    data = source if isinstance(source, bytes) else _read(Path(source))
    reading = _Reading(store, name)
    with store.transaction(reason=f"imported from {name}"):
        for number, (place, line, group, span) in enumerate(reading.spans(data), 1):
            try:
                _import_span(reading, group, span, place)
            except InvalidError as error:
                reading.leave(line, str(error))
            if progress and number % 256 == 0:
                progress(number, number)
    unknown = tuple(dict.fromkeys(reading.unknown))
    return reading.report(traces=len(reading.traces), unknown=unknown[:_MOST_UNKNOWN])


class _Reading(Importing[OtlpReport]):
    """Reads the spans of one file, and records its faults."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(store, name, OtlpReport)
        self.unknown: list[str] = []
        self.traces: set[str] = set()

    def spans(self, data: bytes) -> Iterator[tuple[str, int, _Group, Span]]:
        """Yield each span with its place, its line (or the number of its message) and its group."""
        if not data.startswith(b"\0"):
            # neither JSON nor a message begins with a zero byte, but a length below 16 MiB does
            yield from self._message(_unpacked(data, self.file), 1)
            return
        good, failed = 0, None
        for number, message in self._messages(data):
            try:
                yield from self._message(_unpacked(message, self.file), number)
                good += 1
            except InvalidError as error:
                failed = failed or error
                self.leave(number, f"message {number}: {error}")
        if not good:
            raise failed or InvalidError(
                f"{self.file} holds no OTLP traces: its first message is cut off. Give the whole file."
            )

    def _messages(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the messages of a file of the Collector's file exporter. Each follows its length in four bytes, most significant first."""
        at = number = 0
        while at < len(data):
            number += 1
            start = at + 4
            at = start + int.from_bytes(data[at:start], "big")
            if (lacking := max(at, start) - len(data)) > 0:
                self.leave(number, f"message {number} is cut off: the file ends {lacking} bytes too early")
                return
            yield number, data[start:at]

    def _message(self, data: bytes, number: int) -> Iterator[tuple[str, int, _Group, Span]]:
        if data.lstrip()[:1] in (b"{", b""):
            documents, damaged = _documents(data)
            if documents or not data.strip():
                for line, reason in damaged:
                    self.leave(number - 1 + line, reason)
                for line, found in documents:
                    for place, group, span in self._of_json(found, number - 1 + line):
                        yield place, number - 1 + line, group, span
                return
        traces = TracesData()
        try:
            traces.ParseFromString(data)
        except DecodeError as error:
            raise InvalidError(
                f"{self.file} holds no OTLP traces ({error}). Give OTLP/JSON, one object or one a line, or the bytes of a TracesData."
            ) from None
        self.unknown += unknown_fields(traces, "traces")
        for i, resource in enumerate(traces.resource_spans):
            for j, scope in enumerate(resource.scope_spans):
                group = _group_of(resource, scope)
                for k, span in enumerate(scope.spans):
                    yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", number, group, span

    def _of_json(self, found: Json, line: int) -> Iterator[tuple[str, _Group, Span]]:
        self.unknown += [name for name in found if name != "resourceSpans"]
        for place, one in self._listed(found, "resourceSpans", "", line):
            resource = ResourceSpans()
            self._filled({**one, "scopeSpans": None}, resource, place, line)
            for inner, two in self._listed(one, "scopeSpans", f"{place}.", line):
                scope = ScopeSpans()
                self._filled({**two, "spans": None}, scope, inner, line)
                group = _group_of(resource, scope)
                for where, three in self._listed(two, "spans", f"{inner}.", line):
                    span = Span()
                    if self._filled(three, span, where, line):
                        yield where, group, span

    def _listed(self, found: Json, name: str, where: str, line: int) -> Iterator[tuple[str, Json]]:
        """Yield the objects in a list of an object, each with its place."""
        several = found.get(name)
        if several is not None and not isinstance(several, list):
            self.leave(line, f"{where}{name} is no list")
            return
        for number, each in enumerate(several or ()):
            place = f"{where}{name}[{number}]"
            if isinstance(each, dict):
                yield place, each
            else:
                self.leave(line, f"{place} is no object")

    def _filled(self, found: Json, message: Any, place: str, line: int) -> bool:
        try:
            from_json(found, message, place, self.unknown.append)
        except (InvalidError, RecursionError) as error:
            self.leave(line, str(error))
            return False
        return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidError(
            f"there is no file {str(path)!r} that can be read: {getattr(error, 'strerror', None) or error}. Give an OTLP file."
        ) from None


def _unpacked(data: bytes, name: str) -> bytes:
    """Return the bytes, decompressed if they are zstd."""
    if not data.startswith(_ZSTD):
        return data
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
            return bytes(stream.read())
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidError(
            f"{name} is packed by zstd and cannot be unpacked: {error}. Give the whole file."
        ) from None


def _documents(data: bytes) -> tuple[list[tuple[int, Json]], list[tuple[int, str]]]:
    """Return the objects in a text with their lines, and the damaged lines. The text is one object, or one per line."""
    try:
        return [(1, _object(data))], []
    except ValueError:
        pass
    found, damaged = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                found.append((number, _object(line)))
            except ValueError as error:
                damaged.append((number, f"no JSON object: {error}"))
    return found, damaged


def _object(data: bytes) -> Json:
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"{type(found).__name__}")
    return found


def _import_span(reading: _Reading, group: _Group, span: Span, place: str) -> None:
    """Record a span. Raise InvalidError for an invalid id."""
    trace_id, span_id = _id(span.trace_id, 16, "traceId", place), _id(span.span_id, 8, "spanId", place)
    parent = span.parent_span_id
    parent_id = _id(parent, 8, "parentSpanId", place) if any(parent) else None
    own = to_json(span)
    for name in ("traceId", "spanId", *(("parentSpanId",) if parent_id else ())):
        own.pop(name)
    shared = {
        "resource": group.resource,
        "resourceSchemaUrl": group.resource_schema or None,
        "scope": group.scope,
        "scopeSchemaUrl": group.scope_schema or None,
    }
    metadata: Json = {
        OTLP: {"span": own, **{name: value for name, value in shared.items() if value is not None}}
    }
    if span.end_time_unix_nano:
        metadata[ENDED_AT] = iso(span.end_time_unix_nano // 1000)
    fields = {
        "occurred_at": moment(span.start_time_unix_nano // 1000),
        "origin": "system",
        "source": _service(group.resource),
        "metadata": metadata,
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": parent_id,
    }
    reading.traces.add(trace_id)
    name = span.name if span.name.strip() else NAMELESS
    is_new = _record_span(reading, f"{SPAN}_{trace_id}_{span_id}", name, fields)
    reading.counts["spans" if is_new else "known"] += 1


def _record_span(reading: _Reading, id: str, name: str, fields: Mapping[str, Any]) -> bool:
    """Record a span. Return False if it is known; a forgotten one stays forgotten."""
    store = reading.store
    with store.reading(is_narrow=True) as sight:
        ent = sight.entity(id)
        forgotten = ent >= 0 and sight.is_forgotten(ent)
    if forgotten:
        return False
    try:
        recorded = store.record_event(SPAN, name, id=id, **fields)
    except ConflictError:
        key = orjson.dumps([name, fields["metadata"], fields["parent_span_id"]], option=orjson.OPT_SORT_KEYS)
        other = f"{id}_{blake2b(key, digest_size=4).hexdigest()}"
        recorded = store.record_event(SPAN, name, id=other, **fields)
        if recorded.is_new:
            reading.warnings.append(
                f"span {fields['span_id']} of trace {fields['trace_id']} was reported with other content: kept as {other}."
            )
    return recorded.is_new


def _id(raw: bytes, length: int, name: str, place: str) -> str:
    if len(raw) != length or not any(raw):
        raise InvalidError(f"{place}.{name} is {raw.hex()!r}: it takes {length} bytes that are not all zero")
    return raw.hex()


def _service(resource: Json | None) -> str | None:
    """Return the name of the service in a resource."""
    for attribute in (resource or {}).get("attributes", ()):
        if attribute.get("key") == "service.name":
            name = attribute.get("value", {}).get("stringValue")
            return name if isinstance(name, str) else None
    return None


# ---- export -----------------------------------------------------------------------------------


@registry.read("otlp", files=("path",))
def export_otlp(view: Reader, path: str | Path) -> int:
    """Write every trace of a view as OTLP/JSON, or as protobuf bytes where the file's name ends in .pb, .binpb or .bin. Gives the number of spans.

    Raises ConflictError when the file is there already.
    """
    target = Path(path)
    found = traces_data(view)
    with new_file(target) as sink:
        if target.suffix in BINARY:
            sink.write(found.SerializeToString(deterministic=True))
        else:
            sink.write(orjson.dumps(to_json(found), option=orjson.OPT_APPEND_NEWLINE))
    return sum(len(scope.spans) for resource in found.resource_spans for scope in resource.scope_spans)


@registry.read("otlp")
def traces_data(view: Reader) -> TracesData:
    """Every trace of which a view has an event. Imported spans are exported unchanged, in their order; equal resources and scopes are one."""
    pinned = view.fixed()
    export = _TraceExport()
    with pinned.reading() as sight:
        ents = {ent for name in sight.traces() for ent in sight.trace(name)}
        ordered = sight.events_and_links(sorted(ents))
    rest = [event for event in ordered if not export.imported(event)]
    for trace_id in dict.fromkeys(event.trace_id for event in rest if event.trace_id is not None):
        export.grown(timeline.trace(pinned, trace_id))
    return export.data()


class _TraceExport:
    """Groups spans by resource and scope."""

    def __init__(self) -> None:
        self.resources: dict[bytes, tuple[_Group, dict[bytes, tuple[_Group, list[Span]]]]] = {}
        self.spans: dict[tuple[str, str], Span] = {}  # imported spans, by trace and span id

    def data(self) -> TracesData:
        traces = TracesData()
        for group, scopes in self.resources.values():
            resource = traces.resource_spans.add(schema_url=group.resource_schema)
            if group.resource is not None:
                _fill(resource.resource, group.resource)
            for inner, spans in scopes.values():
                scope = resource.scope_spans.add(schema_url=inner.scope_schema)
                if inner.scope is not None:
                    _fill(scope.scope, inner.scope)
                scope.spans.extend(spans)
        return traces

    def add(self, group: _Group, span: Span) -> None:
        outer = orjson.dumps(group[:2], option=orjson.OPT_SORT_KEYS)
        inner = orjson.dumps(group[2:], option=orjson.OPT_SORT_KEYS)
        _, scopes = self.resources.setdefault(outer, (group, {}))
        scopes.setdefault(inner, (group, []))[1].append(span)

    def imported(self, event: Event) -> bool:
        """Export an imported span unchanged. Return False for any other event."""
        kept = event.metadata.get(OTLP) if event.type == SPAN else None
        if not isinstance(kept, dict) or event.trace_id is None or event.span_id is None:
            return False
        span = Span()
        try:
            _fill(span, kept["span"])
            span.trace_id, span.span_id = bytes.fromhex(event.trace_id), bytes.fromhex(event.span_id)
            if event.parent_span_id is not None:
                span.parent_span_id = bytes.fromhex(event.parent_span_id)
            schemas = kept.get("resourceSchemaUrl", ""), kept.get("scopeSchemaUrl", "")
            group = _Group(kept.get("resource"), schemas[0], kept.get("scope"), schemas[1])
            _fill(Resource(), group.resource or {})
            _fill(InstrumentationScope(), group.scope or {})
        except (InvalidError, KeyError, ValueError):
            return False  # metadata of another origin under that name
        self.add(group, span)
        self.spans.setdefault((event.trace_id, event.span_id), span)
        return True

    def grown(self, trace: timeline.Trace) -> None:
        """Export events that were not imported: each span of the tree, and each event without a span as a span of its own."""
        for each in trace.spans:
            others = [event for event in each.events if OTLP not in event.metadata]
            came = self.spans.get((trace.trace_id, each.span_id))
            if came is not None:
                came.events.extend(_point(event) for event in others)
            elif others:
                self._own(trace.trace_id, each.span_id, each.parent_span_id, each.events, each)
        for event in trace.events:
            self._own(trace.trace_id, f"event {event.id}", None, (event,), None)

    def _own(
        self,
        trace_id: str,
        span_id: str,
        parent: str | None,
        events: tuple[Event, ...],
        tree_span: timeline.Span | None,
    ) -> None:
        first = events[0]
        start = _nano(first)
        end = start if tree_span is None or tree_span.end is None else instant(tree_span.end) * 1000
        span = Span(
            trace_id=_hex(trace_id, 16),
            span_id=_hex(span_id, 8),
            parent_span_id=b"" if parent is None else _hex(parent, 8),
            name=first.description if first.type == SPAN else first.type,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=max(start, 0),
            end_time_unix_nano=max(end, 0),
        )
        if span.trace_id.hex() != trace_id:
            span.attributes.append(_attribute("graphstore.trace_id", trace_id))
        if tree_span is not None and span.span_id.hex() != span_id:
            span.attributes.append(_attribute("graphstore.span_id", span_id))
        span.events.extend(_point(event) for event in events)
        resource = Resource(attributes=[_attribute("service.name", first.source or _SCOPE)])
        self.add(_Group(to_json(resource), "", {"name": _SCOPE}, ""), span)


def _fill(message: Any, found: Json) -> None:
    from_json(found, message, "metadata", lambda place: None)


def _point(event: Event) -> Span.Event:
    """Return an event of the timeline as an event of a span."""
    fields: dict[str, Any] = {"graphstore.event_id": event.id, "description": event.description}
    fields |= {name: value for name in _TEXTS if (value := getattr(event, name)) is not None}
    if event.authorized is not None:
        fields["authorized"] = event.authorized
    if event.metadata:
        fields["metadata"] = orjson.dumps(event.metadata, option=orjson.OPT_SORT_KEYS).decode()
    attributes = [_attribute(name, value) for name, value in fields.items()]
    return Span.Event(time_unix_nano=max(_nano(event), 0), name=event.type, attributes=attributes)


def _attribute(key: str, value: str | bool) -> KeyValue:
    found = KeyValue(key=key)
    if isinstance(value, bool):
        found.value.bool_value = value
    else:
        found.value.string_value = value
    return found


def _nano(event: Event) -> int:
    return instant(event.occurred_at) * 1000


def _hex(id: str, length: int) -> bytes:
    """Return an id as OTLP bytes: decoded if it is hex of this length, else derived from the id."""
    try:
        raw = bytes.fromhex(id) if id == id.lower() and len(id) == 2 * length else b""
    except ValueError:
        raw = b""
    return raw if len(raw) == length and any(raw) else blake2b(id.encode(), digest_size=length).digest()
