"""Finds the periods of one line of belief that transactions have closed, from the heads of the chain."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from graphstore.ledger.chain import FORGETTING
from graphstore.ledger.damage import checked_head
from graphstore.ledger.database import RowReader
from graphstore.ledger.statements import Statement
from graphstore.values.period import Instant, instant


class HeadRow(NamedTuple):
    """The head of a line of the chain, as JSON."""

    number: int
    head: bytes
    digest: str


class Closings(NamedTuple):
    """The numbers of closed periods, and of closed periods of links. `forgets`: something was evicted or erased."""

    periods: list[int]
    link_periods: list[int]
    forgets: bool


_FORGOTTEN_THERE = """
SELECT p.number FROM json_each(?) t
CROSS JOIN operation o ON o.tx = t.value AND o.verb IN (SELECT v.value FROM json_each(?) v)
CROSS JOIN entity e ON e.id = o.subject
CROSS JOIN period p ON p.entity = e.number AND p.closed_by = o.number
"""  # a branch also closes what the trunk forgets, which its own heads do not list
_EVER_CLOSED = "SELECT number FROM {} WHERE closed_by IS NOT NULL"
HEADS_AFTER = Statement("heads_after", HeadRow)


def closings(database: RowReader, line: int, last: int) -> Closings:
    """Return what transactions closed on the line of a database, after row `line` of the chain up to row `last`."""
    if database.branch is not None and not line:  # heads of other lines list what was closed before the fork
        of_things, of_links = (
            [number for (number,) in database.rows(_EVER_CLOSED.format(table))]
            for table in ("period", "link_period")
        )
        return Closings(of_things, of_links, forgets=True)
    periods, link_periods, row = list[int](), list[int](), database.line.row
    forgetting: list[Instant] = []
    for found in HEADS_AFTER.rows(database, {"line": line, "last": last}):
        head = checked_head(database, *found)
        branch = head.get("branch")
        if branch is None and any(verb in FORGETTING for verb, *_ in head.get("ops", ())):
            forgetting.append(instant(head["tx"]))
        if branch == database.branch:
            periods += [row("period", place) for place, _ in head.get("closed", ())]
            link_periods += [row("link_period", place) for place, _ in head.get("link_closed", ())]
    if forgetting and database.branch is not None:
        values = (orjson.dumps(forgetting).decode(), orjson.dumps(list(FORGETTING)).decode())
        periods += [number for (number,) in database.rows(_FORGOTTEN_THERE, values)]
    return Closings(periods, link_periods, bool(forgetting))
