"""What an id names in a ledger: a node, an event, or one version of a node."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.statements import Statement
from graphstore.read.points import NotInRows, Point
from graphstore.values.period import exactly

_ALIAS = re.compile(r".+-v[1-9][0-9]*@.+\Z", re.DOTALL)  # a version of a branch that was merged
_REF = re.compile(r"(.+)-v([1-9][0-9]{0,17})\Z", re.DOTALL)


class Entity(NamedTuple):
    """A node or event that is known, and whether it has a version of the number asked for."""

    id: str
    is_event: int
    has_version: int


class Id(NamedTuple):
    """An id."""

    id: str


ENTITY = Statement("entity", Entity)
IDS_BESIDE = Statement("ids_beside", Id)


def known(point: Point, id: str, number: int = 0) -> Entity | None:
    """Return the node or event of exactly this id, if it is known here. `number`: of the version to look for."""
    return next(iter(point.rows(ENTITY, id=id, number=number)), None)


def resolve(point: Point, id: str) -> tuple[Entity, int]:
    """Return the node or event that an id or a `{id}-v{n}` names among what is known here, and n or 0.

    Raises NotFoundError, InvalidError for what is not text, and NotInRows for what may name a version of a branch.
    """
    if not isinstance(id, str):
        raise InvalidError(f"id {id!r} is no text. Give a str.")
    entity = known(point, id)
    if entity is not None:
        return entity, 0
    if _ALIAS.match(id):
        raise NotInRows
    ref = _REF.match(id)
    entity = known(point, ref[1], int(ref[2])) if ref else None
    if ref is None or entity is None:
        raise NotFoundError.nearest("node or event", id, partial(_beside, point, id))
    if not entity.has_version:
        raise NotFoundError(f"no version {ref[2]} of {ref[1]!r} as known at {exactly(point.tx)}.")
    return entity, int(ref[2])


def _beside(point: Point, id: str) -> list[str]:
    return [row.id for row in point.rows(IDS_BESIDE, id=id)]
