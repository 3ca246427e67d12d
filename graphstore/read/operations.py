"""Reads what was done in a store, or to one thing or link: by whom, when and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphstore.ledger.chain import FORGETTING
from graphstore.ledger.statements import Statement
from graphstore.read.ids import is_link, resolve
from graphstore.read.points import Point, as_json
from graphstore.values.findings import Change
from graphstore.values.models import Json
from graphstore.values.period import Instant, moment


class OperationRow(NamedTuple):
    """The author and tx of an operation, the body with its reason and, if the statement reads them, its verb and subject."""

    author: str | None
    tx: Instant
    data: bytes | None
    checksum: int | None
    verb: str = ""
    subject: str = ""


class DoneBy(NamedTuple):
    """An operation, and the body with its reason."""

    number: int
    verb: str
    author: str | None
    data: bytes | None
    checksum: int | None


OPERATION = Statement("operation", OperationRow)
OPERATIONS = Statement("operations", OperationRow)
CHANGES = Statement("changes", OperationRow)
LAST_CHANGES = Statement("last_changes", OperationRow)
OPERATIONS_DONE = Statement("operations_done", DoneBy)


def operations(point: Point, id: str) -> list[Change]:
    """Return what was done to one thing, or to one link by its whole id, up to `tx`, oldest first.

    This includes operations on other things that closed a part of this one. Raises NotFoundError for an unknown id.
    """
    rows = point.rows(OPERATIONS, id=id) if isinstance(id, str) else []
    if not rows and not (isinstance(id, str) and is_link(point, id)):
        rows = point.rows(OPERATIONS, id=resolve(point, id)[0].id)
    return [_change_of(point, row) for row in rows]


def changes(point: Point, after: Instant, until: Instant, most: int | None) -> list[Change]:
    """Return what was done in (after, until], oldest first: at most `most` operations plus the rest of the last transaction (None: all)."""
    rows = point.rows(CHANGES, after=after, until=min(point.tx, until), most=most)
    return [_change_of(point, row) for row in rows]


def last_changes(point: Point, most: int) -> list[Change]:
    """Return the last `most` operations, newest first."""
    return [_change_of(point, row) for row in point.rows(LAST_CHANGES, most=most)]


def done(point: Point, operation: int) -> tuple[OperationRow, str | None]:
    """Return one operation and its reason."""
    [row] = point.rows(OPERATION, number=operation)
    body = point.content(row.data, row.checksum, f"the reason of operation {operation}")
    return row, body.get("reason")


def done_by(point: Point, numbers: Iterable[int]) -> dict[int, tuple[str, str | None, str | None]]:
    """Return verb, author and reason of some operations, by number."""
    found = {}
    for row in point.rows(OPERATIONS_DONE, numbers=as_json(list(dict.fromkeys(numbers)))):
        body = point.content(row.data, row.checksum, f"the reason of operation {row.number}")
        found[row.number] = row.verb, row.author, body.get("reason")
    return found


def _change_of(point: Point, row: OperationRow) -> Change:
    body = point.content(row.data, row.checksum, f"the reason of {row.verb} {row.subject!r}")
    is_of_trunk = row.tx <= point.database.forked or row.verb in FORGETTING
    return change_from(row, body, None if is_of_trunk else point.database.branch)


def change_from(row: OperationRow, body: Json, branch: str | None) -> Change:
    """Return the value of an operation with this body on a branch (None: on the trunk)."""
    return Change.made(
        {
            "tx": moment(row.tx),
            "verb": row.verb,
            "subject": row.subject,
            "author": row.author,
            "reason": body.get("reason"),
            "branch": branch,
        }
    )
