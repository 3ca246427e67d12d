"""Counts the contents of a store."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.period import Instant, moment


class Counts(NamedTuple):
    """Numbers of rows and transactions of a ledger, and its last transaction (None if there is none)."""

    things: int
    events: int
    versions: int
    periods: int
    links: int
    link_periods: int
    operations: int
    transactions: int
    last_tx: Instant | None


class Size(NamedTuple):
    """The size of all heads and bodies in bytes."""

    bytes: int


class KindName(NamedTuple):
    """The name of a kind of link that the store defined."""

    name: str


class Transactions(NamedTuple):
    """The number of transactions of a branch, and the last one (None if there is none)."""

    transactions: int
    last_tx: Instant | None


COUNTS = Statement("counts", Counts)
COUNTS_INSIDE = Statement("counts_inside", Counts)
JOURNAL_BYTES = Statement("journal_bytes", Size)
BYTES_INSIDE = Statement("bytes_inside", Size)
BRANCH_TRANSACTIONS = Statement("branch_transactions", Transactions)
KINDS = Statement("kinds", KindName)


def counts(point: Point) -> Counts:
    """Return the numbers of committed rows and transactions, at any coordinate."""
    [found] = point.rows(COUNTS if point.whole is point else COUNTS_INSIDE)
    return found


def stats(point: Point) -> dict[str, Any]:
    """Return counts and sizes of what is committed, at any coordinate."""
    found = counts(point)
    # within scopes: the size of contents and of the bodies of links
    [size] = point.rows(JOURNAL_BYTES if point.whole is point else BYTES_INSIDE)
    if point.database.branch is not None:
        [its] = point.rows(BRANCH_TRANSACTIONS)
        last = max(point.database.line.fork, its.last_tx or 0) if its.transactions else None
        found = found._replace(transactions=its.transactions, last_tx=last)
    return {
        "nodes": found.things - found.events,
        "events": found.events,
        "versions": found.versions - found.events,
        "rows": found.periods,
        "links": found.links,
        "link_rows": found.link_periods,
        "operations": found.operations,
        "transactions": found.transactions,
        "journal_bytes": size.bytes,
        "last_tx": None if found.last_tx is None else moment(found.last_tx),
        "custom_kinds": [kind.name for kind in point.rows(KINDS)],
    }
