"""Reads all that stands at a coordinate, with the links between it."""

from __future__ import annotations

from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read import described, event_list
from graphstore.read.linked import Linked, link_of
from graphstore.read.points import Point
from graphstore.values.models import Event, Link, Node

LINKS_HELD = Statement("links_held", Linked)


class WholeView(NamedTuple):
    """Holds the nodes and events that stand, other things that links join, in the order of these, and the links that hold, in the order in which they were made."""

    things: list[Node | Event]
    absent: list[Node | Event]
    links: list[Link]


def whole(point: Point) -> WholeView:
    """Return all that stands here, and the links that hold."""
    things: list[Node | Event] = [*described.nodes(point), *event_list.events(point)]
    rows = point.rows(LINKS_HELD)
    standings = {thing.id: thing.standing for thing in things}
    ends = dict.fromkeys(end for row in rows for end in (row.source, row.target) if end not in standings)
    absent = described.things(point, ends)
    standings |= {id: thing.standing for id, thing in absent.items()}
    links = [link_of(point, row, standings[row.source], standings[row.target]) for row in rows]
    return WholeView(things, list(absent.values()), links)
