"""Compare two coordinates as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphstore.read import differing
from graphstore.read.points import Point
from graphstore.values.models import Json
from graphstore.values.period import Instant
from graphstore.view.sight import Core

if TYPE_CHECKING:
    from graphstore.graph.result import Result


def description(core: Core, ver: int) -> Json:
    """Return the body of a version, without the salt."""
    body = core.body(core.index.v_pos[ver], core.index.v_len[ver])
    body.pop("salt", None)
    return body


def field_changes(point: Point, valid: Instant, tx: Instant) -> Result:
    """Return the difference to another coordinate of one line of belief, one row for each field that is otherwise."""
    return _table(differing.field_rows(point, valid, tx))


def field_changes_of_lines(before: Point, after: Point) -> Result:
    """Return the difference of coordinates of two lines of belief as `field_changes` does."""
    return _table(differing.field_rows_of_lines(before, after))


def _table(rows: list[tuple[Any, ...]]) -> Result:
    from graphstore.graph.result import Result

    types = ["STRING"] * 6 + ["TIMESTAMP"] * 2 + ["STRING"] * 2
    return Result(differing.FIELDS, rows, types=types)
