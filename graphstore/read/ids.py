"""What an id names in a ledger: a node, an event, one version of a node, or a link."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.statements import Id, Statement
from graphstore.read.points import Point
from graphstore.values import generated_ids
from graphstore.values.inputs import text_of
from graphstore.values.period import Instant, exactly, when

LARGEST = 2**63 - 1  # that a statement takes
_REF = re.compile(r"(.+)-v([1-9][0-9]*)\Z", re.DOTALL)
_ALIAS = re.compile(r"(.+)-v([1-9][0-9]*)@(.+)\Z", re.DOTALL)  # of a version that was merged from a branch
_VERSION = re.compile(r"(.+?)(-v[1-9][0-9]*(?:@.+)?)?", re.DOTALL)
_NAMED = 3  # ids that an error names
_FEW, _SHORT = 64, 64 << 10  # rows, and bytes, that are read in microseconds


class KnownEntity(NamedTuple):
    """A node or event that is known, whether it has a version of the number asked for, and the number of its own row. `ordinal`: the version that a ref of
    a merged one means."""

    id: str
    is_event: int
    has_version: int
    thing: int
    ordinal: int = 0


class FirstRecorded(NamedTuple):
    """When a thing was first recorded."""

    tx: Instant


class Extent(NamedTuple):
    """How much there is to be read of a thing: whether it has many rows of one sort, else the bytes of its bodies."""

    has_many: int
    size: int


ENTITY = Statement("entity", KnownEntity)
EXTENT = Statement("extent", Extent)
RECORDED_LATER = Statement("recorded_later", FirstRecorded)
MERGED_VERSION = Statement("merged_version", KnownEntity)
IDS_BESIDE = Statement("ids_beside", Id)
IDS_BEGINNING = Statement("ids_beginning", Id)
LINK = Statement("link", Id)


def knows(point: Point, id: str) -> bool:
    """Return True if a node or event has exactly this id and was recorded by `tx`, whatever became of it."""
    return isinstance(id, str) and known(point, id) is not None


def is_brief(point: Point, id: object) -> bool:
    """Return True if a thing has so few rows, links and bytes that a read of it takes microseconds. Text that is no id of a thing is not."""
    found = point.rows(EXTENT, id=id, most=_FEW - 1) if isinstance(id, str) else []
    return bool(found) and not found[0].has_many and found[0].size <= _SHORT


def whole_id(point: Point, text: str) -> str:
    """Return the generated id that begins so, of what is known at `tx`; a `-v{n}` behind it stays. Any other text is returned as it is.

    Raises NotFoundError where several ids begin so, InvalidError for what is not text.
    """
    given = _VERSION.fullmatch(text_of("id", text))
    if given is None or not generated_ids.may_begin_one(given[1]):
        return text
    if known(point, text) or known(point, given[1]) or is_link(point, text):
        return text
    found = _generated(point, given[1])
    if len(found) > 1:
        more = " …" if len(found) > _NAMED else ""
        raise NotFoundError(
            f"{given[1]!r} is ambiguous: {', '.join(found[:_NAMED])}{more}. Give more of the id."
        )
    return found[0] + (given[2] or "") if found else text


def things(point: Point, ids: list[str]) -> list[str]:
    """Return the id of the node or event that each of some ids or refs names, as `resolve` finds it."""
    return [resolve(point, id)[0].id for id in ids]


def is_link(point: Point, id: str) -> bool:
    """Return True if a link has exactly this id, whenever it was made."""
    return bool(point.rows(LINK, id=id))


def known(point: Point, id: str, number: int = 0) -> KnownEntity | None:
    """Return the node or event of exactly this id, if it is known here. `number`: of the version to look for."""
    return next(iter(point.rows(ENTITY, id=id, number=number)), None)


def resolve(point: Point, id: str) -> tuple[KnownEntity, int]:
    """Return the node or event that an id, a `{id}-v{n}` or the `{id}-v{n}@{branch}` of a merged version names among what is known here, and the
    number of the version or 0.

    Raises NotFoundError, InvalidError for what is not text.
    """
    if not isinstance(id, str):
        raise InvalidError(f"id {id!r} is no text. Give a str.")
    entity = known(point, id)
    if entity is not None:
        return entity, 0
    if alias := _ALIAS.match(id):
        number = min(int(alias[2]), LARGEST)
        for merged in point.rows(MERGED_VERSION, id=alias[1], branch=alias[3], number=number):
            return merged, merged.ordinal
    ref = _REF.match(id)
    entity = known(point, ref[1], min(int(ref[2]), LARGEST)) if ref else None
    if ref is None or entity is None:
        raise NotFoundError.nearest(
            "node or event",
            id,
            partial(beside, point, id),
            partial(_recorded_later, point, ref[1] if ref else id),
        )
    if not entity.has_version:
        raise NotFoundError(f"no version {ref[2]} of {ref[1]!r} as known at {exactly(point.tx)}.")
    return entity, int(ref[2])


def _recorded_later(point: Point, id: str) -> str | None:
    """Return what to say of an id that was first recorded after the tx of a point; None where it was not."""
    for row in point.rows(RECORDED_LATER, id=id):
        return (
            f"{id!r} was not known at {when(point.tx)}: it was recorded later, at {when(row.tx)}. What is known now of that time: "
            f'as_of(valid="{exactly(point.valid)}").'
        )
    return None


def _generated(point: Point, beginning: str) -> list[str]:
    """Return the first generated ids that begin so, in order: one more than an error names."""
    found: list[str] = []
    after = ""
    while len(found) <= _NAMED:
        rows = point.rows(IDS_BEGINNING, beginning=beginning, after=after)
        if not rows:
            break
        found += [row.id for row in rows if generated_ids.is_one(row.id)]
        after = rows[-1].id
    return found


def beside(point: Point, id: str) -> list[str]:
    """Return the ids that a misspelt one may mean."""
    return [row.id for row in point.rows(IDS_BESIDE, id=id)]
