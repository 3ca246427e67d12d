"""Read the fingerprints of the events of a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.occurrences import fingerprint_of
from graphstore.read.points import Point


class Reported(NamedTuple):
    """Describes an event, and what it says."""

    number: int
    id: str
    data: bytes
    checksum: int


FINGERPRINTS = Statement("fingerprints", Reported)


def fingerprints(point: Point) -> Iterator[tuple[int, str]]:
    """Yield the number and the fingerprint of each event that has one, in the order in which the events were recorded."""
    for row in point.rows(FINGERPRINTS):
        fingerprint = fingerprint_of(point.content(row.data, row.checksum, f"event {row.id!r}"))
        if fingerprint is not None:
            yield row.number, fingerprint
