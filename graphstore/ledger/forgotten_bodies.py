"""Finds remaining contents of forgotten things in the ledger, on the trunk and on each branch."""

from __future__ import annotations

import sqlite3

import orjson

from graphstore.ledger.branch_rows import TRUNK, all_branches
from graphstore.ledger.readings import remove_forgotten_readings
from graphstore.ledger.statements import Number, Statement
from graphstore.values.period import Instant

FORGOTTEN_SINCE = Statement("forgotten_since", Number)
FORGOTTEN_BODIES = Statement("forgotten_bodies", Number)
_REMOVE_VECTORS = """
DELETE FROM vector WHERE id IN (SELECT subject FROM all_operation WHERE tx >= ? AND verb IN ('evict', 'erase'))
"""
_REMOVE_UNKNOWN = (
    "DELETE FROM vector WHERE id NOT IN (SELECT id FROM all_entity)",
    "DELETE FROM lookup WHERE id NOT IN (SELECT id FROM all_entity)",
    "DELETE FROM read_thing WHERE id NOT IN (SELECT id FROM all_entity)",
)


def bodies_left(connection: sqlite3.Connection, since: Instant) -> list[int]:
    """Return the numbers of remaining bodies of things that were forgotten at an instant or later."""
    found: set[int] = set()
    for line in (TRUNK, *all_branches(connection)):
        reader = line.reader(connection)
        entities = [entity for (entity,) in reader.execute(FORGOTTEN_SINCE.text, {"tx": since}).fetchall()]
        if entities:
            bodies = reader.execute(FORGOTTEN_BODIES.text, {"numbers": orjson.dumps(entities).decode()})
            found.update(body for (body,) in bodies.fetchall())
    return sorted(found)


def remove_vectors(connection: sqlite3.Connection, since: Instant) -> bool:
    """Remove the vectors and readings of things that were forgotten at an instant or later. Return True if there were vectors."""
    remove_forgotten_readings(connection, since)
    return connection.execute(_REMOVE_VECTORS, (since,)).rowcount > 0


def remove_unknown(connection: sqlite3.Connection) -> None:
    """Remove vectors, lookups and readings of things that are no longer in the chain."""
    for statement in _REMOVE_UNKNOWN:
        connection.execute(statement)
