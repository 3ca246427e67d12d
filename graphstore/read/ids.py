"""Resolves ids in a ledger: to a node, an event, one version of a node, or a link."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.statements import Id, Statement
from graphstore.read.points import Point
from graphstore.values import generated_ids
from graphstore.values.inputs import spellings, text_of
from graphstore.values.period import Instant, exactly, when

LARGEST = 2**63 - 1  # the largest number that a statement accepts
_REF = re.compile(r"(.+)-v([1-9][0-9]*)\Z", re.DOTALL)
_ALIAS = re.compile(r"(.+)-v([1-9][0-9]*)@(.+)\Z", re.DOTALL)  # of a version that was merged from a branch
_VERSION = re.compile(r"(.+?)(-v[1-9][0-9]*(?:@.+)?)?", re.DOTALL)
_NAMED = 3  # ids that an error lists
_FEW, _SHORT = 64, 64 << 10  # rows and bytes that are read within microseconds


class KnownEntity(NamedTuple):
    """A known node or event: 1 if it has the requested version, the number of its row, and in `ordinal` the version that the ref of a merged one
    means. `was_joined`: 1 if it was ever joined into another node."""

    id: str
    is_event: int
    has_version: int
    thing: int
    ordinal: int = 0
    was_joined: int = 0


class JoinedHere(NamedTuple):
    """A node that was joined into another one, and the tx from which it is believed to be."""

    id: str
    joined_at: Instant


class FirstRecorded(NamedTuple):
    """The tx at which a thing was first recorded."""

    tx: Instant


class Extent(NamedTuple):
    """The amount to read for a thing: 1 if it has many rows of one sort, else the bytes of its bodies."""

    has_many: int
    size: int


ENTITY = Statement("entity", KnownEntity)
JOINED = Statement("joined", KnownEntity)
JOINED_HERE = Statement("joined_here", JoinedHere)
EXTENT = Statement("extent", Extent)
RECORDED_LATER = Statement("recorded_later", FirstRecorded)
MERGED_VERSION = Statement("merged_version", KnownEntity)
IDS_BESIDE = Statement("ids_beside", Id)
IDS_BEGINNING = Statement("ids_beginning", Id)
LINK = Statement("link", Id)


def knows(point: Point, id: str) -> bool:
    """Return True if a node or event has exactly this id and was recorded by `tx`, even if it no longer stands."""
    return isinstance(id, str) and known(point, id) is not None


def is_brief(point: Point, id: object) -> bool:
    """Return True if a thing has so few rows, links and bytes that it is read within microseconds; False for an unknown id."""
    found = point.rows(EXTENT, id=id, most=_FEW - 1) if isinstance(id, str) else []
    return bool(found) and not found[0].has_many and found[0].size <= _SHORT


def whole_id(point: Point, text: str) -> str:
    """Return the known generated id that starts with a text, and keep a `-v{n}` after it. Return any other text unchanged.

    Raises NotFoundError if several ids start with it, InvalidError if it is not a string.
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
    """Return the ids of the nodes or events that some ids or refs name, as `resolve` finds them."""
    return [resolve(point, id)[0].id for id in ids]


def is_link(point: Point, id: str) -> bool:
    """Return True if a link has exactly this id, whenever it was made."""
    return bool(point.rows(LINK, id=id))


def known(point: Point, id: str, number: int = 0) -> KnownEntity | None:
    """Return the node or event with exactly this id, however its characters are composed, if it is known here. `number`: the version to look for."""
    for name in spellings(id):
        for found in point.rows(ENTITY, id=name, number=number):
            return found
    return None


def resolve(point: Point, id: str) -> tuple[KnownEntity, int]:
    """Return the known node or event that an id, `{id}-v{n}`, or `{id}-v{n}@{branch}` of a merged version names, and the number of the
    version, or 0. A joined node is what it was joined into; its versions stay its own.

    Raises NotFoundError, InvalidError if the id is not a string.
    """
    if not isinstance(id, str):
        raise InvalidError(f"id {id!r} is no text. Give a str.")
    entity = known(point, id)
    if entity is not None:
        return through(point, entity), 0
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


def through(point: Point, entity: KnownEntity) -> KnownEntity:
    """Return what a thing was joined into, as is believed here; the thing itself if it was not."""
    joined = point.rows(JOINED, id=entity.id) if entity.was_joined else []
    return joined[-1] if joined else entity


def joined_here(point: Point, id: str) -> list[JoinedHere]:
    """Return what was joined into a node, directly or not, in the order in which it was joined."""
    return point.rows(JOINED_HERE, id=id)


def one_thing(point: Point, id: str) -> list[str]:
    """Return a known id with all ids that are joined with it, itself first."""
    entity = known(point, id)
    if entity is None:
        return [id]
    whole = through(point, entity).id
    return list(dict.fromkeys([entity.id, whole, *(one.id for one in joined_here(point, whole))]))


def _recorded_later(point: Point, id: str) -> str | None:
    """Return a hint if an id was first recorded after the tx of a point; else None."""
    for row in point.rows(RECORDED_LATER, id=id):
        return (
            f"{id!r} was not known at {when(point.tx)}: it was recorded later, at {when(row.tx)}. What is known now of that time: "
            f'as_of(valid="{exactly(point.valid)}").'
        )
    return None


def _generated(point: Point, beginning: str) -> list[str]:
    """Return the first generated ids with this start, in order: one more than an error lists."""
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
