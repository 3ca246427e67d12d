"""Makes OpenTelemetry spans of reads and writes of a memory, by the conventions for generative AI (`gen_ai.memory.*`), with coordinates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, TracerProvider

from graphstore.store import registry
from graphstore.store.registry import Elsewhere
from graphstore.values.models import Value
from graphstore.values.period import instant, iso
from graphstore.view.view import Reader, View

__all__ = ["OPERATIONS", "instrument", "to_file", "uninstrument"]

OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "search_memory": (
        "node", "event", "nodes", "events", "inspect", "walk", "causes", "effects", "what_superseded", "versions", "query", "query_tables", "shaky", "contradictions", "joinable",
        "history", "memory.recall", "recall.recall", "recall.mentions", "topics.latest_on", "topics.topic", "context.context",
        "events.history_report", "timeline.messages",
    ),
    "create_memory": ("add_node", "record_event", "link", "bulk_load", "timeline.record_message"),
    "upsert_memory": ("memory.remember", "memory.remember_many", "working.record_outcome"),
    "update_memory": ("revise", "amend", "supersede", "confirm", "touch", "resolve", "fold", "join", "split", "undo"),
    "delete_memory": ("retract", "end", "unlink", "erase", "evict"),
}  # fmt: skip
"""By operation of the conventions: the calls that perform it."""
_OPERATION = {name: operation for operation, names in OPERATIONS.items() for name in names}
_BY_ID = ("id", "node_id", "old")
_QUERY = ("query", "text", "question", "cypher")
_MOST = 100  # the most records whose content is in a span
_inside: ContextVar[bool] = ContextVar("inside", default=False)
_patched: list[tuple[type, str, Any]] = []
_turn = threading.Lock()


def instrument(provider: TracerProvider | None = None, *, content: bool = False) -> None:
    """Start to make spans in this process. `provider`: the tracer's (default: OpenTelemetry's, read when a span begins).

    `content`: include queries, results and written records in the spans.
    """
    import_module("graphstore.remote.remote")  # this loads all classes of stores
    tracer = trace.get_tracer("graphstore", tracer_provider=provider)
    spans = _Spans(tracer, content=content)
    with _turn:
        _take_back()
        for cls in _classes(Reader):
            for name in _OPERATION.keys() & vars(cls).keys():
                _patched.append((cls, name, vars(cls)[name]))
                setattr(cls, name, spans.around(name, vars(cls)[name]))
        registry.watch = spans.watch


def uninstrument() -> None:
    """Stop making spans."""
    with _turn:
        _take_back()


def to_file(path: str | Path) -> TracerProvider:
    """Return a provider that appends each span to a file as a line of OTLP/JSON, which `otlp.import_otlp` and the Collector read."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    made = Provider(resource=Resource.create({"service.name": "graphstore"}))
    made.add_span_processor(SimpleSpanProcessor(_file(Path(path))))
    return made


def _take_back() -> None:
    registry.watch = None
    while _patched:
        owner, name, before = _patched.pop()
        setattr(owner, name, before)


def _classes(base: type) -> Iterator[type]:
    yield base
    below: list[type] = base.__subclasses__()
    for cls in below:
        yield from _classes(cls)


class _Spans:
    """Makes the spans of calls."""

    def __init__(self, tracer: Tracer, *, content: bool) -> None:
        self._tracer, self._content = tracer, content

    def around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method with a span around each call from outside."""

        @wraps(method)
        def called(reader: Any, *args: Any, **kwargs: Any) -> Any:
            if _inside.get():
                return method(reader, *args, **kwargs)
            return self._called(name, reader, args, kwargs, lambda: method(reader, *args, **kwargs))

        return called

    def watch(
        self,
        name: str,
        reader: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        call: Callable[[], Any],
    ) -> Any:
        """Run a function of a room within a span."""
        if _inside.get() or name not in _OPERATION:
            return call()
        return self._called(name, reader, args[1:], kwargs, call)

    def _called(
        self,
        name: str,
        reader: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        call: Callable[[], Any],
    ) -> Any:
        operation = _OPERATION[name]
        kind = SpanKind.CLIENT if isinstance(reader, Elsewhere) else SpanKind.INTERNAL
        given = {"gen_ai.operation.name": operation, "graphstore.call": name, **_place(reader)}
        with self._tracer.start_as_current_span(
            operation, kind=kind, attributes=given, record_exception=False, set_status_on_exception=False
        ) as span:
            if not span.is_recording():
                return call()
            span.set_attributes(self._asked(operation, reader, args, kwargs))
            with _outermost():
                try:
                    found = call()
                except Exception as error:
                    span.set_attribute("error.type", type(error).__name__)
                    span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                    raise
            span.set_attributes(self._answered(operation, found))
            return found

    def _asked(
        self, operation: str, reader: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if isinstance(reader, View) and not isinstance(reader, Elsewhere):
            found["graphstore.valid"], found["graphstore.tx"] = iso(reader._valid), iso(reader._tx)
        first = next(
            (kwargs[name] for name in (*_BY_ID, *_QUERY) if name in kwargs), args[0] if args else None
        )
        if operation in ("update_memory", "delete_memory") and isinstance(first, str):
            found["gen_ai.memory.record.id"] = first
        elif self._content and isinstance(first, str) and not any(name in kwargs for name in _BY_ID):
            found["gen_ai.memory.query.text"] = first
        return found

    def _answered(self, operation: str, found: Any) -> dict[str, Any]:
        every = _records(found)
        attributes: dict[str, Any] = {} if found is None else {"gen_ai.memory.record.count": len(every)}
        ids = [id for each in every[:2] if isinstance(id := getattr(each, "id", None), str)]
        if len(every) == 1 and ids:
            attributes["gen_ai.memory.record.id"] = ids[0]
        if operation != "search_memory" and every and hasattr(every[0], "tx_from"):
            attributes["graphstore.tx"] = iso(instant(every[0].tx_from))
        if self._content:
            records = [_record(each) for each in every[:_MOST] if isinstance(each, Value)]
            if records:
                attributes["gen_ai.memory.records"] = orjson.dumps(records, default=str).decode()
        return attributes


@contextmanager
def _outermost() -> Iterator[None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def _place(reader: Any) -> dict[str, Any]:
    """Return the attributes that identify the memory."""
    connection = getattr(reader, "_line", None) if isinstance(reader, Elsewhere) else None
    if connection is not None:
        _, host, port, _ = connection._place
        return {"gen_ai.memory.store.id": connection.url, "server.address": host, "server.port": port}
    here = isinstance(reader, View) and not isinstance(reader, Elsewhere)
    path = reader._folder if here else getattr(reader, "path", None)
    return {} if path is None else {"gen_ai.memory.store.id": str(path)}


def _records(found: Any) -> Sequence[Any]:
    """Return the records of an answer."""
    if found is None:
        return ()
    for name in ("hits", "nodes", "current", "messages", "events"):
        inner = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
        if isinstance(inner, Sequence) and not isinstance(inner, str):
            return inner
    if isinstance(found, Sequence) and not isinstance(found, str):
        return found
    return (found,)


def _record(each: Value) -> dict[str, Any]:
    said = getattr(each, "content", None)
    if said is None:
        said = each.model_dump(mode="json")
    return {"id": getattr(each, "id", None), "content": said}


def _file(path: Path) -> Any:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from graphstore.imports.otlp_json import to_json

    class File(SpanExporter):  # type: ignore[misc]
        """Appends spans to a file."""

        def export(self, spans: Sequence[Any]) -> SpanExportResult:
            line = orjson.dumps(to_json(encode_spans(spans)), option=orjson.OPT_APPEND_NEWLINE)
            try:
                with open(path, "ab") as sink:
                    sink.write(line)
            except OSError:
                return SpanExportResult.FAILURE
            return SpanExportResult.SUCCESS

    return File()
