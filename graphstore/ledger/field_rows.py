"""Writes the fields of bodies by which things are found as rows of the ledger: the tags of nodes, and of messages who sent them in which thread and trace."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import orjson

from graphstore.values.inputs import authorized_of
from graphstore.values.keys import topic_name
from graphstore.values.models import Json

FIELD_TABLES = ("all_tag", "all_message")
_TEXTS = ("sender", "thread", "classification")  # columns of a message that its body has under the same name
_TRACE = "trace_id"
_PLACE = "place"  # in the body of the operation that evicted an event: where it was in its trace
_BODIES = """
SELECT v.number, v.entity, CASE WHEN e.is_event THEN e.kind END, b.data
FROM version v
CROSS JOIN entity e ON e.number = v.entity
CROSS JOIN body b ON b.number = v.body
WHERE v.number >= ? AND b.data IS NOT NULL AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity)
"""
_BEGUN = "SELECT valid_from FROM all_period WHERE entity = ?2 AND version = ?1 ORDER BY number LIMIT 1"
_ADD_TAG = "INSERT INTO all_tag VALUES (?, ?)"
_ADD_MESSAGE = f"INSERT INTO all_message VALUES (?1, ?2, ({_BEGUN}), ?3, ?4, ?5, ?6, ?7)"
_SET_BEGUN = "UPDATE all_message SET at = ? WHERE version = ? AND at IS NULL"
_OF_ENTITY = "version IN (SELECT number FROM all_version WHERE entity = ?)"


class FieldRows:
    """Collects the fields of the versions from number `first` on, and writes them. A version without tags that is no message writes nothing."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._tags: list[tuple[str, int]] = []
        self._messages: list[tuple[int | str | None, ...]] = []

    def note(self, version: int, entity: int, type: str | None, body: Json) -> None:
        """Collect the fields of a version. `type`: that of an event; None for a node."""
        if version < self._first:
            return
        if type is None:
            if "tags" in body:
                self._tags += [(tag, version) for tag in dict.fromkeys(map(topic_name, body["tags"]))]
            return
        authorized, trace = authorized_of(type, body), body.get(_TRACE)
        if authorized is not None:
            texts = [body.get(name) for name in _TEXTS]
            self._messages.append((version, entity, authorized, *texts, trace))
        elif trace is not None:
            self._messages.append((version, entity, None, None, None, None, trace))

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what was collected."""
        if self._tags:
            connection.executemany(_ADD_TAG, self._tags)
        if self._messages:
            connection.executemany(_ADD_MESSAGE, self._messages)
        self._tags, self._messages = [], []


def add_fields(connection: sqlite3.Connection, reader: sqlite3.Connection, first: int) -> None:
    """Write the fields of the versions from number `first` on of the line that `reader` reads."""
    fields = FieldRows(first)
    for version, entity, type, data in reader.execute(_BODIES, (first,)):
        fields.note(version, entity, type, orjson.loads(data))
    fields.write(connection)


def set_begun(connection: sqlite3.Connection, periods: list[tuple[int, int]]) -> None:
    """Note when messages happened whose first periods are written after their versions. `periods`: valid_from and version."""
    connection.executemany(_SET_BEGUN, periods)


def drop_fields(connection: sqlite3.Connection, entity: int, place: int | None) -> None:
    """Remove the fields of an entity that is forgotten; the trace of an evicted event stays. `place`: the number of the body that names it, if any."""
    connection.execute(f"DELETE FROM all_tag WHERE {_OF_ENTITY}", (entity,))
    connection.execute(f"DELETE FROM all_message WHERE {_OF_ENTITY}", (entity,))
    trace = None if place is None else _trace_of(connection, place)
    if trace is not None:
        for (version,) in connection.execute(
            "SELECT number FROM all_version WHERE entity = ?", (entity,)
        ).fetchall():
            connection.execute(_ADD_MESSAGE, (version, entity, None, None, None, None, trace))


def _trace_of(connection: sqlite3.Connection, body: int) -> str | None:
    [(data,)] = connection.execute("SELECT data FROM body WHERE number = ?", (body,)).fetchall() or [(None,)]
    trace: str | None = None
    with suppress(orjson.JSONDecodeError):  # `verify` tells of the damage
        trace = orjson.loads(data or b"{}").get(_PLACE, {}).get(_TRACE)
    return trace
