"""Reads the links at one end of a thing, at a coordinate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.ids import resolve
from graphstore.read.points import Point, as_json
from graphstore.values.link_filter import LinkFilter, link_filter
from graphstore.values.models import Json, Link, Standing
from graphstore.values.period import Instant, moment
from graphstore.values.vocabulary import JOINED


class LinkedRow(NamedTuple):
    """A link over one period. For a causal link, `respects_time` is 1 if its cause starts no later than its effect."""

    id: str
    kind: str
    source: str
    target: str
    source_standing: Standing | None
    target_standing: Standing | None
    strength: int | None
    is_inferred: int
    is_history: int
    created_by: str
    author: str | None
    recorded_at: Instant
    valid_from: Instant
    valid_to: Instant | None
    tx_from: Instant
    tx_to: Instant | None
    data: bytes | None
    checksum: int | None
    respects_time: int = 1


LINKS_FROM = Statement("links_from", LinkedRow)
BACKLINKS_TO = Statement("backlinks_to", LinkedRow)
LINK_PERIODS = Statement("link_periods", LinkedRow)
LINK_HISTORY = Statement("link_history", LinkedRow)
LINKS_AROUND = Statement("links_around", LinkedRow)
LINKS_OVER = Statement("links_over", LinkedRow)


def links_from(
    point: Point,
    id: str,
    kinds: Iterable[str] | str = (),
    *,
    group: str | None = None,
    strength: int | None = None,
    confidence: str | None = None,
    created_by: str | None = None,
) -> list[Link]:
    """Return the links that hold at a coordinate with this thing as source, by (valid_from, tx_from, id); symmetric ones from either end.

    An inverse name among `kinds` (`causes`) returns those links reversed, under that name. `strength`: the minimum; a link without one counts as 3. Raises
    NotFoundError for an unknown id, InvalidError for an unknown kind, group or confidence.
    """
    wanted = link_filter(point.vocabulary, kinds, group, strength, confidence, created_by)
    return _links(LINKS_FROM, point, id, wanted)


def backlinks_to(
    point: Point,
    id: str,
    kinds: Iterable[str] | str = (),
    *,
    group: str | None = None,
    strength: int | None = None,
    confidence: str | None = None,
    created_by: str | None = None,
) -> list[Link]:
    """Return the links that hold at a coordinate with this thing as target, otherwise as `links_from` does."""
    wanted = link_filter(point.vocabulary, kinds, group, strength, confidence, created_by)
    return _links(BACKLINKS_TO, point, id, wanted)


def link_history(point: Point, source: str, kind: str, target: str) -> list[Link]:
    """Return all periods believed at `tx` of all links `source kind target`, by (valid_from, tx_from, id), as they are stored.

    `kind` may be an inverse name; a symmetric kind is found from either end. Raises NotFoundError for an unknown end, InvalidError for an unknown kind.
    """
    said = point.vocabulary.sentence(source, kind, target, "explicit")
    first, last = resolve(point, said.source)[0].id, resolve(point, said.target)[0].id
    pairs = {first: last, last: first} if said.kind.symmetric else {first: last}
    rows = point.rows(LINK_HISTORY, kinds=as_json([said.kind.name]), pairs=as_json(pairs))
    return [link_of(point, row) for row in rows]


def supersedes(point: Point, id: str) -> list[Link]:
    """Return links to what this supersedes: one for each thing, its `supersedes` link or else its `transition`."""
    links = links_from(point, id, ("supersedes", "transition"))
    replaced = {link.target for link in links if link.kind == "supersedes"}
    return [link for link in links if link.kind == "supersedes" or link.target not in replaced]


def _links(statement: Statement[LinkedRow], point: Point, id: str, wanted: LinkFilter) -> list[Link]:
    vocabulary = point.vocabulary
    straight, turned = wanted.kinds, wanted.turned
    if wanted.group is not None:
        of_group = frozenset(name for name, kind in vocabulary.kinds.items() if kind.group == wanted.group)
        straight = of_group if straight is None else straight & of_group
        turned &= of_group
    symmetric = vocabulary.symmetric if straight is None else vocabulary.symmetric & straight
    shown = {name: name for name in symmetric} | {name: vocabulary.kinds[name].inverse for name in turned}
    filters = {"kinds": None if straight is None else as_json(list(straight)), "turned": as_json(shown)}
    rows = point.rows(statement, id=id, **filters) if isinstance(id, str) else []
    if not rows or (straight is None and any(row.kind == JOINED and row.target == id for row in rows)):
        known_as = resolve(point, id)[0].id
        rows = rows if known_as == id else point.rows(statement, id=known_as, **filters)
    return [
        link_of(point, row)
        for row in rows
        if wanted.admits(row.strength, bool(row.is_inferred), row.created_by)
    ]


def links_around(point: Point, ids: list[str]) -> dict[str, list[Link]]:
    """Return the links that hold at either end of some things, by the id of the thing. Each list is ordered by (valid_from, tx_from, id)."""
    found: dict[str, list[Link]] = {id: [] for id in ids}
    for row in link_rows_around(point, ids):
        link = link_of(point, row)
        for id in (link.source, link.target):
            if id in found:
                found[id].append(link)
    return found


def link_periods(point: Point, id: str) -> list[Link]:
    """Return all periods of a link recorded up to the tx, by (tx_from, valid_from); [] if the id is not a link's."""
    return [link_of(point, row) for row in link_period_rows(point, id)]


def link_period_rows(point: Point, id: str) -> list[LinkedRow]:
    """Return the rows of the periods that `link_periods` returns."""
    return point.rows(LINK_PERIODS, id=id) if isinstance(id, str) else []


def link_rows_around(point: Point, ids: list[str]) -> list[LinkedRow]:
    """Return the links that hold at either end of some things, each once and as stored, by (valid_from, tx_from, id)."""
    return point.rows(LINKS_AROUND, ids=as_json(ids))


def link_of(
    point: Point,
    row: LinkedRow,
    source_standing: Standing | None = None,
    target_standing: Standing | None = None,
) -> Link:
    """Return the value of a link. Standings of its ends that are not given are taken from the row."""
    body = point.content(row.data, row.checksum, f"link {row.id!r}")
    return link_from(row, body, source_standing, target_standing)


def link_from(
    row: LinkedRow,
    body: Json,
    source_standing: Standing | None = None,
    target_standing: Standing | None = None,
) -> Link:
    """Return the value of a link with this body."""
    return Link.made(
        {
            "id": row.id,
            "source": row.source,
            "kind": row.kind,
            "target": row.target,
            "reason": body.get("reason"),
            "strength": row.strength,
            "confidence": "inferred" if row.is_inferred else "explicit",
            "created_by": row.created_by,
            "history": bool(row.is_history),
            "metadata": body.get("metadata", {}),
            "source_standing": source_standing or row.source_standing,
            "target_standing": target_standing or row.target_standing,
            "author": row.author,
            "recorded_at": moment(row.recorded_at),
            "valid_from": moment(row.valid_from),
            "valid_to": None if row.valid_to is None else moment(row.valid_to),
            "tx_from": moment(row.tx_from),
            "tx_to": None if row.tx_to is None else moment(row.tx_to),
        }
    )
