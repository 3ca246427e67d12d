"""Defines the interface that reads what a change feed gives, from the index or from the rows of a ledger."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import pyarrow as pa

from graphstore.core.index.columns import Mark
from graphstore.core.tables.arrow_tables import event_columns, instants, names_of, numbers, texts
from graphstore.core.tables.history_source import Event, HistorySource
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


class FeedSource(Protocol):
    """Reads what is committed. Periods, closings and operations are counted from 0, [first, stop)."""

    @property
    def history(self) -> HistorySource:
        """Return what reads the rows of the tables."""

    def identity(self) -> str | None:
        """Return the first transaction and the line; None while nothing is recorded."""

    def reached(self, tx: Instant | None) -> tuple[Mark, Instant]:
        """Return how much there is, or was at a tx, and the tx of its last transaction (0: there is none)."""

    def has(self, tx: Instant) -> bool:
        """Return True if a transaction has this tx."""

    def event_periods(self, first: int, stop: int) -> pa.Table:
        """Return the rows of those periods that are of events."""

    def closed(self, name: str, first: int, stop: int) -> list[Closed]:
        """Return those closings of periods, or of periods of links, that are of a table."""

    def events(self, ids: list[str]) -> list[Event]:
        """Return the rows of those of some things that are events."""

    def owners(self, periods: list[int]) -> list[str]:
        """Return the id of the thing of each period."""

    def ends(self, periods: list[int]) -> list[End]:
        """Return what the link of each period of a link joins."""

    def forgotten(self, first: int, stop: int) -> dict[str, list[str]]:
        """Return what operations forgot, as `ChangeFeed.forgotten` does."""

    def without_reason(self, operations: list[str]) -> list[str]:
        """Return those of some operations that have no reason."""

    def periods(self, name: str, ids: list[str], stop: int) -> list[int]:
        """Return the numbers of the periods of some things, or links."""


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
