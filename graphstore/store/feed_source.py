"""Define what a change feed reads of a ledger."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from graphstore.graph.arrow_tables import event_columns, instants, names_of, numbers, texts
from graphstore.values.models import Json
from graphstore.values.period import Instant


class End(NamedTuple):
    """Describes a link: the label and id of its source, its kind, the label and id of its target."""

    source_label: str
    source: str
    kind: str
    target_label: str
    target: str


class Closed(NamedTuple):
    """Describes a period that was closed, when, and by which operation (None: not known)."""

    number: int
    tx_to: Instant
    closed_by: int | None


class EventPeriod(NamedTuple):
    """Describes a period of an event, and the body of the event."""

    number: int
    id: str
    type: str
    occurred_at: Instant
    tx_from: Instant
    opened_by: int
    body: Json


NODE, EVENT = "Node", "Event"


def event_periods_as_table(periods: list[EventPeriod]) -> pa.Table:
    """Make the rows of periods of events. An event whose first occurrence was recorded late, or that was taken back and given back, has several."""
    types = [each.type for each in periods]
    return pa.table(
        {
            "row": numbers([each.number for each in periods]),
            "id": texts([each.id for each in periods]),
            "type": texts(types),
            "occurred_at": instants([each.occurred_at for each in periods]),
            **event_columns(types, [each.body for each in periods]),
            "tx_from": instants([each.tx_from for each in periods]),
            "opened_by": names_of([each.opened_by for each in periods]),
        }
    )
