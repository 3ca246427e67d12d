"""Creates errors about damaged rows of the chain or bodies. They name the row and, if its head shows it, the thing."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from graphstore.errors import DamageError
from graphstore.ledger.chain import digest_of
from graphstore.ledger.database import RowReader

MISSING, CHANGED = "it is missing", "its bytes do not match their checksum"

_LINE_OF = "SELECT number, first_body, head FROM chain WHERE first_body <= ? ORDER BY number DESC LIMIT 1"
_SAME = "SELECT number FROM body WHERE checksum = ? AND data = ? ORDER BY number LIMIT 1"
_INCOMPLETE = """
SELECT first_body, bodies FROM chain c
WHERE (SELECT count(*) FROM body b WHERE b.number >= c.first_body AND b.number < c.first_body + c.bodies) < bodies
ORDER BY number
"""
_THERE = "SELECT number FROM body WHERE number >= ? AND number < ?"


def damage(database: RowReader, number: int, why: str) -> DamageError:
    """Return the error for a row of the chain."""
    return DamageError(
        f"{database.file} line {number}: {why}. The ledger is damaged there; nothing was changed. Restore a dump or a backup."
    )


def checked_head(database: RowReader, number: int, raw: bytes, stated: str) -> dict[str, Any]:
    """Return the head of a row of the chain. `stated`: the digest stored in the row. Raises DamageError if it does not match."""
    if digest_of(raw) != stated:
        raise damage(database, number, "its digest does not match")
    head: dict[str, Any] = orjson.loads(raw)
    return head


def damaged_body(database: RowReader, body: int, why: str) -> DamageError:
    """Return the error for a damaged body."""
    rows = database.rows(_LINE_OF, (body,))
    number, first, raw = rows[0] if rows else (1, 1, b"")
    names = _names(raw, body - first)
    return damage(database, number, f"body {body}: {why}{', ' if names else ''}{' '.join(names)}")


def damaged_content(database: RowReader, data: bytes | None, checksum: int | None, what: str) -> DamageError:
    """Return the error for a damaged content that a statement has returned. It searches the whole ledger for the body.

    Args:
        data: its bytes; None if the body is missing.
        checksum: the checksum stored with it.
        what: the name of the thing, as in "node 'x', version 1". Of several missing bodies, the error names the one whose head names this thing.
    """
    if data is not None:
        for (body,) in database.rows(_SAME, (checksum, data)):
            return damaged_body(database, body, CHANGED)
    missing = [
        body
        for first, count in database.rows(_INCOMPLETE)
        for body in sorted(
            {*range(first, first + count)}
            - {number for (number,) in database.rows(_THERE, (first, first + count))}
        )
    ]
    if not missing:
        why = "is missing" if data is None else "does not match its checksum"
        return DamageError(
            f"{database.file}: the content of {what} {why}. The ledger is damaged there; nothing was changed. Restore a dump or a backup."
        )

    def likeness(body: int) -> int:
        [(_, first, raw)] = database.rows(_LINE_OF, (body,))
        return sum(name in what for name in _names(raw, body - first))

    return damaged_body(database, max(missing, key=likeness), MISSING)


def _names(raw: bytes, body: int) -> list[str]:
    """Return words for the thing that a head names for one of its bodies, with its id last; [] if the head is damaged or names none."""
    with contextlib.suppress(orjson.JSONDecodeError, AttributeError, TypeError, IndexError):
        head = orjson.loads(raw)
        for id, version, at in head.get("versions", ()):
            if at == body:
                return [f"version {version}", "of", repr(id)]
        for verb, id, *more in head["ops"]:
            if more and more[0] == body:
                return [f"what was noted when {verb} wrote", repr(id)]
    return []
