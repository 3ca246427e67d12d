"""The difference of two coordinates of one ledger, and its forms, which a difference of two lines of belief has too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graphstore.core.journal.line import dumps
from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, body_of, node_of, shown, standings, thing_rows
from graphstore.read.linked import LINKS_OVER, link_of
from graphstore.read.points import Point, as_json
from graphstore.values import content_diff
from graphstore.values.models import Event, Json, Link, Node, NodeChange, ViewDiff
from graphstore.values.period import Instant

Cause = tuple[str | None, str | None]
"""An author and a reason."""

FIELDS = ("id", "kind", "change", "field", "old", "new", "valid_from", "valid_to", "author", "reason")
"""The columns of a difference as a table."""


class Differing(NamedTuple):
    """A node or event that holds at one of two coordinates, or at both by different versions; who did so, and `data` that holds why."""

    id: str
    is_event: int
    is_before: int
    is_after: int
    author: str | None
    data: bytes | None
    checksum: int | None


class Moved(NamedTuple):
    """A link that holds at one of two coordinates: the number of its period."""

    before: int | None
    after: int | None


DIFFERING_THINGS = Statement("differing_things", Differing)
DIFFERING_LINKS = Statement("differing_links", Moved)


# ---------------------------------------------------------------------- questions


def compare(point: Point, valid: Instant, tx: Instant) -> ViewDiff:
    """Return what holds at another coordinate and not at this one (added), the other way round (removed), and nodes described otherwise (changed)."""
    after = Point(point.database, valid, tx, point.vocabulary)
    return _compared(point, after, _differing(point, after))


def field_rows(point: Point, valid: Instant, tx: Instant) -> list[tuple[Any, ...]]:
    """Return what differs at another coordinate: one row of FIELDS for each field."""
    after = Point(point.database, valid, tx, point.vocabulary)
    rows = _differing(point, after)
    causes = {row.id: (row.author, _reason(point, row)) for row in rows if not row.is_event}
    return rows_of(_compared(point, after, rows), causes)


# ---------------------------------------------------------------------- helpers


def _differing(before: Point, after: Point) -> list[Differing]:
    return before.rows(DIFFERING_THINGS, other_valid=after.valid, other_tx=after.tx)


def _reason(point: Point, row: Differing) -> str | None:
    reason: str | None = point.content(row.data, row.checksum, f"the reason for {row.id!r}").get("reason")
    return reason


def _compared(before: Point, after: Point, rows: list[Differing]) -> ViewDiff:
    both = [row.id for row in rows if row.is_before and row.is_after]
    pairs = zip(thing_rows(before, both), thing_rows(after, both), strict=True)
    links = before.rows(DIFFERING_LINKS, other_valid=after.valid, other_tx=after.tx)
    return view_diff(
        added=shown(after, [row.id for row in rows if not row.is_before]).values(),
        removed=shown(before, [row.id for row in rows if not row.is_after]).values(),
        changed=[change for one, other in pairs if (change := _change(before, one, after, other))],
        links_added=_links(after, [row.after for row in links if row.after is not None]),
        links_removed=_links(before, [row.before for row in links if row.before is not None]),
    )


def _change(before: Point, one: Described, after: Point, other: Described) -> NodeChange | None:
    """Return the change of a node from one version to another; None where both have the same content, text and tags."""
    if is_same_description(body_of(before, one), body_of(after, other)):
        return None
    return change_of(node_of(before, one), node_of(after, other))


def _links(point: Point, periods: list[int]) -> list[Link]:
    rows = point.rows(LINKS_OVER, periods=as_json(periods))
    ends = standings(point, {id for row in rows for id in (row.source, row.target)})
    return [link_of(point, row, ends[row.source], ends[row.target]) for row in rows]


# ---------------------------------------------------------------------- values


def is_same_description(one: Json, other: Json) -> bool:
    """Return True if two bodies of versions have the same content, text and tags."""
    return all(one.get(name) == other.get(name) for name in ("text", "tags")) and content_diff.same(
        one.get("content"), other.get("content")
    )


def change_of(old: Node, new: Node) -> NodeChange:
    """Make the value of a change of a node."""
    return NodeChange(
        id=old.id, before=old, after=new, fields=tuple(content_diff.diff(old.content, new.content))
    )


def view_diff(
    *,
    added: Iterable[Node | Event],
    removed: Iterable[Node | Event],
    changed: Iterable[NodeChange],
    links_added: Iterable[Link],
    links_removed: Iterable[Link],
) -> ViewDiff:
    """Make the value of a difference: nodes apart from events."""
    added, removed = tuple(added), tuple(removed)
    return ViewDiff(
        added=tuple(each for each in added if isinstance(each, Node)),
        removed=tuple(each for each in removed if isinstance(each, Node)),
        changed=tuple(changed),
        events_added=tuple(each for each in added if isinstance(each, Event)),
        events_removed=tuple(each for each in removed if isinstance(each, Event)),
        links_added=tuple(links_added),
        links_removed=tuple(links_removed),
    )


def rows_of(found: ViewDiff, causes: Mapping[str, Cause]) -> list[tuple[Any, ...]]:
    """Return a difference as rows of FIELDS. `causes`: who changed each node and why, by id."""
    rows: list[tuple[Any, ...]] = []

    def add(change: str, node: Node, *values: str | None) -> None:
        rows.append((node.id, node.kind, change, *values, node.valid_from, node.valid_to, *causes[node.id]))

    for each in found.changed:
        for field in each.fields:
            add("changed", each.after, field.path, _json(field.old), _json(field.new))
        if not each.fields:
            add("changed", each.after, "", each.before.text, each.after.text)
    for node in found.added:
        for name, value in node.content.items():
            add("added", node, name, None, _json(value))
    for node in found.removed:
        for name, value in node.content.items():
            add("removed", node, name, _json(value), None)
    return rows


def _json(value: Any) -> str | None:
    return None if value is None else dumps(value).decode()
