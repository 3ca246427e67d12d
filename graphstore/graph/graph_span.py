"""Describe which part of a store a graph holds: that of one coordinate, or of many."""

from __future__ import annotations

from typing import NamedTuple

from graphstore.graph.arrow_tables import columns_of as columns_of
from graphstore.values.coordinates import Axis
from graphstore.values.period import Instant

LABELS = ("Node", "Absent", "Event")
NODE, ABSENT, EVENT = LABELS


class Span(NamedTuple):
    """Rows that hold at some instant of both spans, each with its end not included; where instants of an axis are said, at one of these. `fields`: the
    properties that are read, None for all."""

    valid: tuple[Instant, Instant]
    tx: tuple[Instant, Instant]
    axis: Axis = "valid"
    instants: tuple[Instant, ...] = ()
    fields: frozenset[str] | None = None

    @classmethod
    def of(cls, valid: Instant, tx: Instant) -> Span:
        """Return the span of one coordinate."""
        return cls((valid, valid + 1), (tx, tx + 1))


class Bounds(NamedTuple):
    """When something holds, and when it was believed."""

    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
