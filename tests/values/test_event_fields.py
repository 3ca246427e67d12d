"""The table of an event's fields agrees with the places that spell them out: signatures, the model, the schema of the engine."""

from __future__ import annotations

import inspect

from graphstore import GraphStore
from graphstore.events.timeline import record_message
from graphstore.graph.texts import text
from graphstore.values.event_fields import BODY, EVENT_FIELDS, EVENT_TEXTS, MESSAGE_TEXTS, SPAN_IDS
from graphstore.values.models import Event


def test_fields_are_the_parameters_of_record_event() -> None:
    parameters = inspect.signature(GraphStore.record_event).parameters

    assert {field.name for field in BODY} < set(EVENT_FIELDS)
    assert set(EVENT_FIELDS) == {name for name, one in parameters.items() if one.kind != one.VAR_KEYWORD} - {
        "self"
    }


def test_fields_are_of_the_model_in_its_order() -> None:
    names = [field.name for field in BODY]

    assert set(names) <= Event.model_fields.keys()
    assert [name for name in Event.model_fields if name in EVENT_TEXTS] == list(EVENT_TEXTS)


def test_fields_of_a_message_are_parameters_of_record_message() -> None:
    assert {*MESSAGE_TEXTS, *SPAN_IDS, "authorized"} <= inspect.signature(record_message).parameters.keys()


def test_columns_of_the_engine_are_the_fields_in_order() -> None:
    table = text("schema").partition("CREATE NODE TABLE Event(")[2].partition(");")[0]
    columns = [line.split()[0] for line in table.splitlines() if line.strip()]
    names = [field.name for field in BODY]

    assert names == [column for column in columns if column in names]
