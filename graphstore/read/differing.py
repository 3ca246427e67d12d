"""Compares two coordinates of one line of belief, or of two lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from graphstore.ledger.chain import dumps
from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, body_of, node_from, shown, standings, thing_rows
from graphstore.read.linked import LINKS_OVER, link_of
from graphstore.read.points import Point, as_json
from graphstore.values import content_diff
from graphstore.values.findings import NodeChange, ViewDiff
from graphstore.values.models import Event, Link, Node
from graphstore.values.period import Instant

Cause = tuple[str | None, str | None]
"""An author and a reason."""

FIELDS = ("id", "kind", "change", "field", "old", "new", "valid_from", "valid_to", "author", "reason")
"""The columns of a difference as a table."""


class Differing(NamedTuple):
    """A node or event that holds at one of two coordinates, or at both with different versions. `author` changed it; `data` is the body with the reason."""

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


class HoldingRow(NamedTuple):
    """A thing with its version, or a link with its period, that holds at a coordinate."""

    number: int
    id: str
    is_event: int
    row: int


class NumberOf(NamedTuple):
    """The number of the thing or link with an id."""

    id: str
    number: int


class ToldRow(NamedTuple):
    """The author of an operation on a thing, and the body with the reason."""

    id: str
    author: str | None
    data: bytes | None
    checksum: int | None


HOLDING = Statement("holding", HoldingRow)
HOLDING_LINKS = Statement("holding_links", HoldingRow)
NUMBERS_OF = Statement("numbers_of", NumberOf)
SAID_BY = Statement("said_by", ToldRow)
TAKEN_BY = Statement("taken_by", ToldRow)
DIFFERING_THINGS = Statement("differing_things", Differing)
DIFFERING_LINKS = Statement("differing_links", Moved)


# ---------------------------------------------------------------------- questions


def compare(point: Point, valid: Instant, tx: Instant) -> ViewDiff:
    """Return what holds only at the other coordinate (added), what holds only at this one (removed), and nodes with other contents (changed)."""
    after = Point(point.database, valid, tx, point.vocabulary)
    return _compared(point, after, *_differing(point, after))


def field_rows(point: Point, valid: Instant, tx: Instant) -> list[tuple[Any, ...]]:
    """Return the differences to another coordinate: one row of FIELDS per field."""
    after = Point(point.database, valid, tx, point.vocabulary)
    rows, links = _differing(point, after)
    causes = {row.id: (row.author, _reason(point, row)) for row in rows if not row.is_event}
    return _rows_of(_compared(point, after, rows, links), causes)


def compare_lines(before: Point, after: Point, are_rows_shared: bool) -> ViewDiff:
    """Compare coordinates of two lines of belief as `compare` does. Things and links are matched by id.

    Args:
        are_rows_shared: rows with the same number are the same row on both lines.
    """
    return _compared(before, after, *_differing_lines(before, after, are_rows_shared))


def field_rows_of_lines(before: Point, after: Point, are_rows_shared: bool) -> list[tuple[Any, ...]]:
    """Compare coordinates of two lines of belief as `field_rows` does."""
    rows, links = _differing_lines(before, after, are_rows_shared)
    gone = [row for row in rows if not row.is_after and not row.is_event]
    told = [
        (before, before.rows(SAID_BY, numbers=as_json([row.before for row in gone]))),
        (after, after.rows(TAKEN_BY, ids=as_json([row.id for row in gone]))),
        (after, after.rows(SAID_BY, numbers=as_json([row.after for row in rows if row.is_after and not row.is_event]))),
    ]  # fmt: skip
    causes: dict[str, Cause] = {row.id: (None, None) for row in rows}
    causes |= {one.id: (one.author, _reason(point, one)) for point, each in told for one in each}
    return _rows_of(_compared(before, after, rows, links), causes)


# ---------------------------------------------------------------------- helpers


def _differing(before: Point, after: Point) -> tuple[list[Differing], list[Moved]]:
    other = {"other_valid": after.valid, "other_tx": after.tx}
    return before.rows(DIFFERING_THINGS, **other), before.rows(DIFFERING_LINKS, **other)


class _Pair(NamedTuple):
    """A thing or link that differs between two lines, with its row on each (None if it does not hold there)."""

    id: str
    is_event: int
    before: int | None
    after: int | None

    @property
    def is_before(self) -> bool:
        return self.before is not None

    @property
    def is_after(self) -> bool:
        return self.after is not None


def _differing_lines(before: Point, after: Point, are_rows_shared: bool) -> tuple[list[_Pair], list[Moved]]:
    links = _apart(before, after, HOLDING_LINKS, links=True)
    moved = [Moved(pair.before, pair.after) for pair in links if not (pair.is_before and pair.is_after)]
    return _apart(before, after, HOLDING, links=False, are_rows_shared=are_rows_shared), moved


def _apart(
    before: Point, after: Point, holding: Statement[HoldingRow], *, links: bool, are_rows_shared: bool = True
) -> list[_Pair]:
    """Return what holds on one of two lines only, or differently on both: in the order of this line, then what only the other one has, in its order."""
    here, there = ({row.id: row for row in point.rows(holding)} for point in (before, after))
    numbers = {row.id: row.number for row in before.rows(NUMBERS_OF, ids=as_json([*there]), links=links)}
    found: list[tuple[bool, int, _Pair]] = []
    for id, row in there.items():
        one, is_new = here.get(id), id not in numbers
        if one is not None and one.is_event == row.is_event:
            del here[id]
            if (are_rows_shared and one.row == row.row) or row.is_event:
                continue
            pair = _Pair(id, row.is_event, one.row, row.row)
        else:
            pair = _Pair(id, row.is_event, None, row.row)
        found.append((is_new, row.number if is_new else numbers[id], pair))
    found += [(False, row.number, _Pair(row.id, row.is_event, row.row, None)) for row in here.values()]
    return [pair for _, _, pair in sorted(found, key=itemgetter(0, 1))]


def _reason(point: Point, row: Differing | ToldRow) -> str | None:
    reason: str | None = point.content(row.data, row.checksum, f"the reason for {row.id!r}").get("reason")
    return reason


def _compared(before: Point, after: Point, rows: Sequence[Differing | _Pair], links: list[Moved]) -> ViewDiff:
    both = [row.id for row in rows if row.is_before and row.is_after]
    pairs = zip(thing_rows(before, both), thing_rows(after, both), strict=True)
    added = tuple(shown(after, [row.id for row in rows if not row.is_before]).values())
    removed = tuple(shown(before, [row.id for row in rows if not row.is_after]).values())
    return ViewDiff(
        added=tuple(each for each in added if isinstance(each, Node)),
        removed=tuple(each for each in removed if isinstance(each, Node)),
        changed=tuple(change for one, other in pairs if (change := _change(before, one, after, other))),
        events_added=tuple(each for each in added if isinstance(each, Event)),
        events_removed=tuple(each for each in removed if isinstance(each, Event)),
        links_added=tuple(_links(after, [row.after for row in links if row.after is not None])),
        links_removed=tuple(_links(before, [row.before for row in links if row.before is not None])),
    )


def _change(before: Point, one: Described, after: Point, other: Described) -> NodeChange | None:
    """Return the change of a node between two versions; None if content, text and tags are equal."""
    was, now = body_of(before, one), body_of(after, other)
    is_same = content_diff.same(was.get("content"), now.get("content"))
    if is_same and all(was.get(name) == now.get(name) for name in ("text", "tags")):
        return None
    old, new = node_from(one, was), node_from(other, now)
    fields = tuple(content_diff.diff(old.content, new.content))
    return NodeChange(id=old.id, before=old, after=new, fields=fields)


def _links(point: Point, periods: list[int]) -> list[Link]:
    rows = point.rows(LINKS_OVER, periods=as_json(periods))
    ends = standings(point, {id for row in rows for id in (row.source, row.target)})
    return [link_of(point, row, ends[row.source], ends[row.target]) for row in rows]


def _rows_of(found: ViewDiff, causes: Mapping[str, Cause]) -> list[tuple[Any, ...]]:
    """Return a difference as rows of FIELDS. `causes`: author and reason of each node's change, by id."""
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
