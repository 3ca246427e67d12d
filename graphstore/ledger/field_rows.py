"""Writes searchable fields of bodies as rows of the ledger: tags of nodes, scopes of events, and sender, thread and trace of messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import orjson

from graphstore.values.inputs import authorized_of
from graphstore.values.keys import topic_name
from graphstore.values.models import Json

FIELD_TABLES = ("all_tag", "all_message")
SCOPE_TABLE = "all_event_scope"
_TRACE = "trace_id"
_PLACE = "place"  # in the body of the operation that evicted an event: its place in its trace
_SAID_BEFORE = """
SELECT p.number, p.entity, e.kind, b.data
FROM json_each(?) j
CROSS JOIN all_period p ON p.number = j.value
CROSS JOIN all_entity e ON e.number = p.entity AND e.is_event
CROSS JOIN all_version v ON v.number = p.version
CROSS JOIN body b ON b.number = v.body AND b.data IS NOT NULL
"""
_ADD_TAG = "INSERT INTO all_tag VALUES (?, ?)"
_ADD_MESSAGE = (
    "INSERT INTO all_message SELECT number, entity, valid_from, ?3, ?4, ?5, ?6, ?7 FROM all_period WHERE"
)
_ADD_OF_VERSION = f"{_ADD_MESSAGE} entity = ?2 AND version = ?1"
_ADD_OF_PERIOD = f"{_ADD_MESSAGE} number = ?1 AND entity = ?2"
_ADD_PLACE = f"{_ADD_MESSAGE} entity = ?2 AND ?1 IS NULL"
_ADD_SCOPE = "INSERT INTO all_event_scope VALUES (?, ?) ON CONFLICT DO NOTHING"
_DROP_SCOPE = "DELETE FROM all_event_scope WHERE entity = ?"
_DROP_TAGS = "DELETE FROM all_tag WHERE version IN (SELECT number FROM all_version WHERE entity = ?)"
_DROP_MESSAGES = "DELETE FROM all_message WHERE period IN (SELECT number FROM all_period WHERE entity = ?)"

Message = tuple[bool | None, str | None, str | None, str | None, str | None]
"""The columns of a message: authorized, sender, thread, classification and trace."""


def add_fields(
    connection: sqlite3.Connection, described: Iterable[tuple[int, int, str | None, Json]]
) -> None:
    """Write the fields of versions. A version without tags that is not a message writes nothing.

    Args:
        described: for each version its number, its entity, the type of an event (None for a node), and its body.
    """
    tags: list[tuple[str, int]] = []
    messages: list[tuple[int, int, *Message]] = []
    scopes: list[tuple[int, str]] = []
    for version, entity, type, body in described:
        if type is None:
            if "tags" in body:
                tags += [(tag, version) for tag in dict.fromkeys(map(topic_name, body["tags"]))]
            continue
        if (scope := _scope_of(body)) is not None:
            scopes.append((entity, scope))
        if (message := _message_of(type, body)) is not None:
            messages.append((version, entity, *message))
    rows: list[Any]
    for statement, rows in ((_ADD_TAG, tags), (_ADD_OF_VERSION, messages), (_ADD_SCOPE, scopes)):
        if rows:
            connection.executemany(statement, rows)


def add_periods(connection: sqlite3.Connection, periods: list[int]) -> None:
    """Write the messages of periods whose versions were recorded earlier."""
    for period, entity, type, data in connection.execute(
        _SAID_BEFORE, (orjson.dumps(periods).decode(),)
    ).fetchall():
        message = _message_of(type, orjson.loads(data))
        if message is not None:
            connection.execute(_ADD_OF_PERIOD, (period, entity, *message))


def drop_fields(connection: sqlite3.Connection, entity: int, place: int | None) -> None:
    """Remove the fields of a forgotten entity, except the trace of an evicted event. `place`: the number of the body that names the trace, if any."""
    connection.execute(_DROP_TAGS, (entity,))
    connection.execute(_DROP_MESSAGES, (entity,))
    connection.execute(_DROP_SCOPE, (entity,))
    trace = None if place is None else _trace_of(connection, place)
    if trace is not None:
        connection.execute(_ADD_PLACE, (None, entity, None, None, None, None, trace))


def _message_of(type: str, body: Json) -> Message | None:
    """Return the columns of an event; None if it is not a message and has no trace."""
    authorized, trace = authorized_of(type, body), body.get(_TRACE)
    if authorized is None:
        return None if trace is None else (None, None, None, None, trace)
    return authorized, body.get("sender"), body.get("thread"), body.get("classification"), trace


def _scope_of(body: Json) -> str | None:
    """Return the scope in the metadata of an event; None if there is none."""
    metadata = body.get("metadata")
    scope = metadata.get("scope") if isinstance(metadata, dict) else None
    return scope if isinstance(scope, str) else None


def _trace_of(connection: sqlite3.Connection, body: int) -> str | None:
    [(data,)] = connection.execute("SELECT data FROM body WHERE number = ?", (body,)).fetchall() or [(None,)]
    trace: str | None = None
    with suppress(orjson.JSONDecodeError):  # `verify` reports the damage
        trace = orjson.loads(data or b"{}").get(_PLACE, {}).get(_TRACE)
    return trace
