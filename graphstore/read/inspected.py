"""Collects everything about one thing at a coordinate."""

from __future__ import annotations

from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.described import (
    HISTORY,
    described,
    event_with_links,
    node_of,
    resolved_row,
    thing_row,
    version_of,
    with_joined,
)
from graphstore.read.ids import resolve
from graphstore.read.link_story import inspected
from graphstore.read.linked import LinkedRow, link_of, link_period_rows, link_rows_around
from graphstore.read.points import Point
from graphstore.values.findings import Inspection, LinkInspection
from graphstore.values.models import UPRIGHT, Event, Link, Node
from graphstore.values.period import Instant

_SAME_TOPIC = "same_topic"


class ConfirmedBy(NamedTuple):
    """The author and tx of a confirmation."""

    author: str | None
    tx: Instant


CONFIRMATIONS = Statement("confirmations", ConfirmedBy)


def inspect(point: Point, id: str) -> Inspection | LinkInspection:
    """Return one thing with any standing, its links in both directions, and its believed history; for a link, its ends and believed periods.

    Raises NotFoundError for an unknown id.
    """
    row, number = thing_row(point, id), 0
    if row is None:
        periods = link_period_rows(point, id)
        if periods:
            return inspected(point, periods)
        row, number = resolved_row(point, id)
    elif row.standing not in UPRIGHT and (known_as := resolve(point, row.id)[0].id) != row.id:
        return inspect(point, known_as)  # it was joined into that
    links = link_rows_around(point, [row.id])
    begun = _sentences(point, row.id, links)
    node: Node | Event
    if row.is_event:
        node = event_with_links(point, row, links)
    else:
        node = described(point, row.id, number) if number else node_of(point, row)
    history = () if row.is_event else with_joined(point, HISTORY, point.rows(HISTORY, id=row.id), row.id)
    confirmed = point.rows(CONFIRMATIONS, id=row.id, undone=point.undone)
    return Inspection.made(
        {
            "node": node,
            "links": tuple(link for link in begun if link.kind != _SAME_TOPIC),
            "backlinks": tuple(
                link_of(point, link)
                for link in links
                if link.target == row.id and link.kind not in point.vocabulary.symmetric
            ),
            "history": tuple(version_of(point, period) for period in history),
            "same_topic": tuple(link for link in begun if link.kind == _SAME_TOPIC),
            "confirmations": len(confirmed),
            "grounds": None,
        }
    )


def _sentences(point: Point, id: str, links: list[LinkedRow]) -> list[Link]:
    """Return the links that have a thing as their source; symmetric ones from either end."""
    found = []
    for link in links:
        if link.source == id:
            found.append(link_of(point, link))
        elif link.kind in point.vocabulary.symmetric:
            found.append(link_of(point, _turned(link)))
    return found


def _turned(link: LinkedRow) -> LinkedRow:
    return link._replace(
        source=link.target,
        target=link.source,
        source_standing=link.target_standing,
        target_standing=link.source_standing,
    )
