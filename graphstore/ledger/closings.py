"""Finds which periods of one line transactions have closed, by the heads of the chain."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from graphstore.core.journal.line import FORGETTING
from graphstore.ledger.database import Readable
from graphstore.ledger.statements import Statement


class Head(NamedTuple):
    """The head of a line of the chain, as JSON."""

    head: bytes


class Closings(NamedTuple):
    """Gives the numbers of the periods that were closed, and of those of links. `forgets`: whether anything was evicted or erased."""

    periods: list[int]
    link_periods: list[int]
    forgets: bool


HEADS_AFTER = Statement("heads_after", Head)


def closings(database: Readable, line: int, last: int) -> Closings:
    """Return what the transactions from one row of the chain (not included) to another one closed on the line of a database."""
    periods, link_periods, forgets, row = list[int](), list[int](), False, database.line.row
    for (raw,) in HEADS_AFTER.rows(database, {"line": line, "last": last}):
        head = orjson.loads(raw)
        branch = head.get("branch")
        forgets = forgets or (branch is None and any(verb in FORGETTING for verb, *_ in head.get("ops", ())))
        if branch == database.branch:
            periods += [row("period", place) for place, _ in head.get("closed", ())]
            link_periods += [row("link_period", place) for place, _ in head.get("link_closed", ())]
    return Closings(periods, link_periods, forgets)
