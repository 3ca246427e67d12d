"""Read light rows of everything that stands at a coordinate from the rows of a ledger."""

from __future__ import annotations

from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.inputs import optional_text
from graphstore.values.keys import slot_name, topic_name
from graphstore.values.period import Instant
from graphstore.view.rows import NOT_READ, Row, description


class Scanned(NamedTuple):
    """A node or event that holds, with its content if that is read."""

    entity: int
    id: str
    kind: str
    key: str | None
    scope: str
    ordinal: int
    valid_from: Instant
    valid_to: Instant | None
    tx_from: Instant
    known_since: Instant
    data: bytes | None
    checksum: int


SCAN = Statement("scan", Scanned)


def scan(
    point: Point,
    kind: str | None = None,
    *,
    key: str | None = None,
    scope: str | None = None,
    tag: str | None = None,
    events: bool = False,
    content: bool = False,
) -> list[Row]:
    """Return the nodes, or the events, that stand here, in the order in which they were first known. All filters must match.

    Raises InvalidError for a filter of another type.
    """
    for name, value in (("kind", kind), ("scope", scope), ("tag", tag)):
        optional_text(name, value)
    found: list[Row] = []
    slot, reads = None if key is None else slot_name(key), content or tag is not None
    topic = None if tag is None or events else topic_name(tag)  # the table of tags has only those of nodes
    for row in point.rows(
        SCAN, events=bool(events), kind=kind, key=slot, scope=scope, topic=topic, reads=reads
    ):
        said = NOT_READ
        if reads:
            body = point.content(row.data, row.checksum, f"{row.id!r}, version {row.ordinal}")
            if tag is not None and tag not in body.get("tags", ()):
                continue
            said = description(body, events) if content else NOT_READ
        found.append(Row(
            row.id, row.kind, row.key, row.scope, row.ordinal, events,
            row.valid_from, row.valid_to, row.tx_from, None, row.known_since, *said,
        ))  # fmt: skip
    return found
