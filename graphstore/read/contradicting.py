"""Contradictions at a coordinate: what `contradicts` links say, and whether two things seem to disagree."""

from __future__ import annotations

from graphstore.errors import NotFoundError
from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, body_of, things
from graphstore.read.ids import resolve
from graphstore.read.linked import LINK_HISTORY, Linked, link_of
from graphstore.read.points import NotInRows, Point, as_json
from graphstore.values import sameness
from graphstore.values.assertions import (
    DECISION,
    RECORDS,
    Assertion,
    about,
    assertions,
    disagreement,
)
from graphstore.values.inputs import whole_number
from graphstore.values.models import UPRIGHT, Contradiction, Json, Node
from graphstore.values.period import exactly

CONTRADICTIONS = Statement("contradictions", Linked)
NEWEST = Statement("newest", Described)


def contradictions(
    point: Point,
    settled: bool = False,
    candidates: bool = True,
    limit: int | None = None,
    of: str | None = None,
) -> list[Contradiction]:
    """Return what cannot both be right and both stands: the pairs that `contradicts` links join, the newer first.

    Raises NotInRows where there may be candidates too: they are found by reading all contents. `settled`: with pairs that are decided or of which
    one no longer stands. `limit`: at most so many. `of`: those of this id alone. Raises NotFoundError for an unknown `of`.
    """
    subject = None if of is None else resolve(point, of)[0].id
    most = whole_number("limit", limit)
    recorded = _recorded(point, point.rows(CONTRADICTIONS, of=subject))
    found = [each for each in recorded if settled or not each.settled][:most]
    if candidates and len(found) != most and (subject is None or _is_stated(point, subject)):
        raise NotInRows
    return found


def contradiction(point: Point, one: str, other: str) -> Contradiction:
    """Return the contradiction between two things, decided or not. Raises NotFoundError when no link records one and they are no candidates."""
    ends = resolve(point, one)[0].id, resolve(point, other)[0].id
    rows = _between(point, *ends)
    recorded = [row for row in rows if row.kind == "contradicts"]
    if recorded:
        return _recorded(point, recorded[-1:])[0]
    found = None if rows or ends[0] == ends[1] else _candidate(point, *ends)
    if found is not None:
        return found
    first, second = map(repr, ends)
    raise NotFoundError(
        f"{first} and {second} do not contradict each other at {exactly(point.valid)}: no contradicts link joins them, and they are no candidates. "
        f"To record that they do: link({first}, 'contradicts', {second})."
    )


def _recorded(point: Point, rows: list[Linked]) -> list[Contradiction]:
    """Make the values of contradictions that links record."""
    found = things(point, dict.fromkeys(end for row in rows for end in (row.source, row.target)))
    made = []
    for row in rows:
        source, target = found[row.source], found[row.target]
        link = link_of(point, row, source.standing, target.standing)
        decision = link.metadata.get(DECISION)
        is_open = decision is None and {source.standing, target.standing} <= UPRIGHT
        made.append(
            Contradiction(
                link=link,
                source=source,
                target=target,
                settled=not is_open,
                decision=None if decision is None else str(decision),
            )
        )
    return made


def _is_stated(point: Point, id: str) -> bool:
    """Return True if a thing stands here and states something: a node that is no record of what was done."""
    thing = things(point, [id])[id]
    return isinstance(thing, Node) and thing.kind not in RECORDS and thing.standing in UPRIGHT


# ---------------------------------------------------------------------- two things


def _between(point: Point, one: str, other: str) -> list[Linked]:
    """Return the lifecycle and `contradicts` links that hold here between two things, in order."""
    kinds = [name for name, kind in point.vocabulary.kinds.items() if kind.group == "lifecycle"]
    rows = point.rows(
        LINK_HISTORY,
        kinds=as_json([*kinds, "contradicts"]),
        pairs=as_json({one: other, other: one}),
    )
    valid = point.valid
    return [row for row in rows if row.valid_from <= valid and (row.valid_to is None or valid < row.valid_to)]


def _candidate(point: Point, one: str, other: str) -> Contradiction | None:
    """Return the candidate that two nodes make; None if they do not seem to disagree."""
    rows = [row for row in point.rows(NEWEST, ids=as_json([one, other])) if row.kind not in RECORDS]
    if len(rows) < 2 or rows[0].scope != rows[1].scope:
        return None
    bodies = [body_of(point, row) for row in rows]
    newer, older = (_assertions(row, body) for row, body in zip(rows, bodies, strict=True))
    says = disagreement(newer, older)
    if says is None:
        return None
    found = things(point, [row.id for row in rows])
    return Contradiction.made(
        {
            "link": None,
            "source": found[rows[0].id],
            "target": found[rows[1].id],
            "settled": False,
            "about": about(says.of),
            "overlap": sameness.overlap(
                *(sameness.statement(body["content"], body.get("text")) for body in bodies)
            ),
            "decision": None,
        }
    )


def _assertions(row: Described, body: Json) -> list[Assertion]:
    return assertions(row.kind, row.key, body["content"], body.get("text"), body.get("tags", ()))
