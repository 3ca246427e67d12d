"""Reads nodes and events at a coordinate: their contents there, all their versions, and which of them stand or have happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.statements import Statement
from graphstore.read.happened import HappenedTimes, Seen
from graphstore.read.ids import LARGEST, joined_here, known, resolve, through
from graphstore.read.linked import LinkedRow, link_of, link_periods, link_rows_around, links_around
from graphstore.read.points import Point, as_json
from graphstore.read.settings import snapshots
from graphstore.values import content_diff, coordinates, findings, spans
from graphstore.values.inputs import at_least_one, authorized_of, json_object, optional_text
from graphstore.values.keys import slot_name, topic_name
from graphstore.values.models import UPRIGHT, Event, Json, Link, Node, Standing, Status, Version
from graphstore.values.period import OPEN, Instant, Period, TimeLike, exactly, moment
from graphstore.values.text import text_of_body

if TYPE_CHECKING:
    from graphstore.values.findings import Chain, FieldChange


class Described(NamedTuple):
    """A node or event with one of its versions over one period, and its standing if the statement reads it."""

    id: str
    is_event: int
    kind: str
    key: str | None
    scope: str
    known_since: Instant
    number: int
    valid_from: Instant
    valid_to: Instant | None
    tx_from: Instant
    tx_to: Instant | None
    author: str | None
    recorded_at: Instant
    forgotten: str | None
    data: bytes | None
    checksum: int
    standing: Standing = "stands"


class StandingOf(NamedTuple):
    """The standing of a thing."""

    number: int
    standing: str


class Successor(NamedTuple):
    """The id of an entity that supersedes a thing, and 1 if the supersession starts later."""

    id: str
    begins_later: int


NODE = Statement("node", Described)
NODES = Statement("nodes", Described)
HISTORY = Statement("history", Described)
VERSIONS = Statement("versions", Described)
DESCRIBED = Statement("described", Described)
THINGS = Statement("things", Described)
STANDINGS_OF = Statement("standings_of", StandingOf)
SUCCESSORS = Statement("successors", Successor)
EVENTS = Statement("events", Described)
LINKS_HELD = Statement("links_held", LinkedRow)
_BELIEVED = UPRIGHT | {"superseded"}  # standings of an event that has happened


# ---------------------------------------------------------------------- questions


def node(point: Point, id: str) -> Node:
    """Return the node that stands at a coordinate. Raises NotFoundError if it does not stand there, InvalidError for an event."""
    for row in point.rows(NODE, id=id) if isinstance(id, str) else ():
        if not row.is_event:
            return node_of(point, row)
    entity, number = resolve(point, id)
    if entity.is_event:
        raise InvalidError(f"{entity.id!r} is an event. Read it with event({entity.id!r}).")
    if number:
        return described(point, entity.id, number)
    if entity.id != id:  # composed otherwise, or joined into another node
        return node(point, entity.id)
    [found] = point.rows(STANDINGS_OF, numbers=as_json([entity.thing]))
    raise NotFoundError(_absence(point, "node", entity.id, found.standing))


def event(point: Point, id: str) -> Event:
    """Return the event with its links, if it has happened by a coordinate and is believed there.

    Raises NotFoundError otherwise, InvalidError for a node.
    """
    row = thing_row(point, id) or resolved_row(point, id)[0]
    if not row.is_event:
        raise InvalidError(f"{row.id!r} is a node. Read it with node({row.id!r}).")
    if row.standing not in _BELIEVED:
        raise NotFoundError(_absence(point, "event", row.id, row.standing))
    return event_with_links(point, row, link_rows_around(point, [row.id]))


def history(point: Point, id: str) -> list[Version] | list[Link]:
    """Return all periods of a node or link believed at `tx`, over all valid time, by valid_from. Then come those of the nodes joined into it, as they were believed when
    they were joined.
    """
    rows = _periods(point, HISTORY, id)
    if rows is None:
        believed = [link for link in link_periods(point, id) if link.tx_to is None]
        return sorted(believed, key=lambda link: link.valid_from)
    return [version_of(point, row) for row in with_joined(point, HISTORY, rows, id)]


def versions(point: Point, id: str) -> list[Version] | list[Link]:
    """Return all periods of a node or link ever believed up to `tx`, by (tx_from, valid_from). Then come those of the nodes joined into it."""
    entity = known(point, id) if isinstance(id, str) else None
    if entity is not None and entity.was_joined:
        id = through(point, entity).id
    rows = _periods(point, VERSIONS, id)
    if rows is None:
        return link_periods(point, id)
    return [version_of(point, row) for row in with_joined(point, VERSIONS, rows, id)]


def diff(point: Point, id: str, old: int, new: int) -> list[FieldChange]:
    """Return the differences in content from version `old` to version `new`, as paths.

    Raises NotFoundError for an unknown number or forgotten contents, InvalidError for a value that is not a version number.
    """
    for name, number in (("old", old), ("new", new)):
        at_least_one(name, number)
    entity, _ = resolve(point, id)
    if entity.is_event:
        raise _no_versions(entity.id)
    first, second = (_version(point, entity.id, number) for number in (old, new))
    if first.forgotten:
        raise NotFoundError(f"the contents of {entity.id!r} were {first.forgotten}: they cannot be compared.")
    one, two = (body_of(point, row)["content"] for row in (first, second))
    return content_diff.diff(one, two)


def nodes(
    point: Point,
    kind: str | None = None,
    *,
    key: str | None = None,
    scope: str | None = None,
    tag: str | None = None,
    content: Mapping[str, Any] | None = None,
) -> list[Node]:
    """Return the nodes that stand at a coordinate and match all filters, in the order in which they were first known.

    `content`: fields of the content with their values.
    """
    for name, value in (("kind", kind), ("scope", scope), ("tag", tag)):
        optional_text(name, value)
    said = {} if content is None else json_object("content", content)
    slot = None if key is None else slot_name(key)
    topic = None if tag is None else topic_name(tag)
    rows = point.rows(NODES, kind=kind, key=slot, scope=scope, tag=tag, topic=topic)
    if said:
        rows = [row for row in rows if _says(point, row, said)]
    return [node_of(point, row) for row in rows]


def events(
    point: Point,
    type: str | None = None,
    *,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    related_to: str | None = None,
    pattern: str | None = None,
) -> list[Event]:
    """Return the events that have happened by a coordinate and match all filters, newest `occurred_at` first.

    `since`, `until`: an occurrence of the event is in [since, until). `related_to`: an id that a link connects with the event. `pattern`: a part of the
    description, ignoring case. Raises InvalidError if `since` is after `until`, NotFoundError for an unknown `related_to`.
    """
    for name, value in (("type", type), ("pattern", pattern)):
        optional_text(name, value)
    begin, end = _bounds(point, since, until)
    is_bounded = since is not None or until is not None
    rows = point.rows(
        EVENTS,
        type=type,
        related_to=None if related_to is None else resolve(point, related_to)[0].id,
        since=begin if is_bounded else None,
        until=end,
        undone=point.undone,
    )
    if pattern is not None:
        rows = [row for row in rows if pattern.lower() in _description(point, row).lower()]
    ids = [row.id for row in rows]
    happened, links = HappenedTimes(point, ids), links_around(point, ids)
    return [event_of(happened, row, tuple(links[row.id])) for row in rows]


def whole_view(point: Point) -> tuple[list[Node | Event], list[Link]]:
    """Return the nodes and events that stand, then other ends of links in the order of these; and the links that hold, in the order of recording."""
    found: list[Node | Event] = [*nodes(point), *events(point)]
    rows = point.rows(LINKS_HELD)
    known = {thing.id for thing in found}
    ends = dict.fromkeys(end for row in rows for end in (row.source, row.target) if end not in known)
    found += things(point, ends).values()
    standing = {thing.id: thing.standing for thing in found}
    return found, [link_of(point, row, standing[row.source], standing[row.target]) for row in rows]


# ---------------------------------------------------------------------- helpers


def _bounds(point: Point, since: TimeLike | None, until: TimeLike | None) -> Period:
    now = min(point.valid, OPEN)
    return coordinates.between(
        since,
        until,
        lambda value, what, meaning: coordinates.resolve(
            value, what, now, lambda: snapshots(point), meaning=meaning
        ),
    )


def _description(point: Point, row: Described) -> str:
    description: str = point.content(row.data, row.checksum, f"event {row.id!r}")["description"]
    return description


def _periods(point: Point, statement: Statement[Described], id: str) -> list[Described] | None:
    """Return the periods of a node; None if the id is that of a link. Raises InvalidError for an event."""
    rows = point.rows(statement, id=id) if isinstance(id, str) else []
    if not rows and isinstance(id, str) and known(point, id) is None and link_periods(point, id):
        return None
    if not rows:
        entity, _ = resolve(point, id)
        id, is_event = entity.id, entity.is_event
        rows = [] if is_event else point.rows(statement, id=id)
    else:
        is_event = rows[0].is_event
    if is_event:
        raise _no_versions(id)
    return rows


def with_joined(
    point: Point, statement: Statement[Described], rows: list[Described], id: str
) -> list[Described]:
    """Return the periods of a node, then those of the nodes joined into it, up to when they were joined. Their ids and their `tx_to` tell them apart."""
    found = list(rows)
    for one in joined_here(point, rows[0].id if rows else resolve(point, id)[0].id):
        before = Point(point.database, point.valid, one.joined_at - 1, point.vocabulary)
        found += [row._replace(tx_to=row.tx_to or one.joined_at) for row in before.rows(statement, id=one.id)]
    return found


def _no_versions(id: str) -> InvalidError:
    return InvalidError(f"{id!r} is an event; events have no versions. Read it with event(…).")


def _version(point: Point, id: str, number: int) -> Described:
    """Return the row of one version of a node. Raises NotFoundError for an unknown number."""
    rows = point.rows(DESCRIBED, id=id, numbers=as_json([number])) if number <= LARGEST else []
    if not rows:
        raise NotFoundError(
            f"no version {number} of {id!r} as known at {exactly(point.tx)}. versions({id!r}) lists them."
        )
    return rows[0]


def _absence(point: Point, what: str, id: str, standing: str) -> str:
    """Return a message about a thing that does not stand, with its standing and its successors."""
    message = (
        f"{what} {id!r} does not stand at valid {exactly(point.valid)} as known at {exactly(point.tx)}: "
        f"{standing.replace('_', ' ')}"
    )
    found = point.rows(SUCCESSORS, id=id)
    successors = [each.id for each in found if not each.begins_later]
    if not successors and standing == "superseded":  # before the supersession starts
        successors = [each.id for each in found]
    if successors:
        message += f", superseded by {', '.join(map(repr, successors))}"
    return f"{message}. inspect({id!r}) shows its last content."


# ---------------------------------------------------------------------- values


def things(point: Point, ids: Iterable[str]) -> dict[str, Node | Event]:
    """Return nodes and events by id, with any standing. Events come without links."""
    return _values(point, thing_rows(point, ids), {})


def chain_of(point: Point, ids: list[str], walked: Iterable[LinkedRow], truncated: bool) -> Chain | None:
    """Return the answer of a walk from the first id to the others along links; None if the first id is unknown."""
    found = things(point, ids)
    if ids[0] not in found:
        return None
    links = [link_of(point, row, found[row.source].standing, found[row.target].standing) for row in walked]
    nodes = tuple([found[id] for id in ids[1:]])
    return findings.Chain.made(
        {"root": found[ids[0]], "nodes": nodes, "links": tuple(links), "truncated": truncated}
    )


def shown(point: Point, ids: Iterable[str]) -> dict[str, Node | Event]:
    """Return nodes and events by id, with any standing. Events come with their links."""
    rows = thing_rows(point, ids)
    events = [row.id for row in rows if row.is_event]
    return _values(point, rows, links_around(point, events) if events else {})


def _values(point: Point, rows: list[Described], links: Mapping[str, list[Link]]) -> dict[str, Node | Event]:
    """Return values of nodes and events by id. `links`: the links of the events that are returned with links."""
    events = [row.id for row in rows if row.is_event]
    happened = HappenedTimes(point, events) if events else None
    found: dict[str, Node | Event] = {}
    for row in rows:
        if happened is None or not row.is_event:
            found[row.id] = node_of(point, row)
        else:
            found[row.id] = event_of(happened, row, tuple(links[row.id]) if row.id in links else None)
    return found


def standings(point: Point, ids: Iterable[str]) -> dict[str, Standing]:
    """Return the standing of nodes and events by id."""
    return {row.id: row.standing for row in thing_rows(point, ids)}


def thing_row(point: Point, id: str) -> Described | None:
    """Return the row of the node or event with exactly this id, with any standing; None if it is not known here."""
    return next(iter(thing_rows(point, [id])), None) if isinstance(id, str) else None


def resolved_row(point: Point, id: str) -> tuple[Described, int]:
    """Return the row of the node or event that an id or `{id}-v{n}` names, and n, or 0 for a plain id. Raises as `resolve` does."""
    entity, number = resolve(point, id)
    [row] = thing_rows(point, [entity.id])
    return row, number


def thing_rows(point: Point, ids: Iterable[str]) -> list[Described]:
    """Return the rows of the nodes and events that are known here, with any standing, in the order of the ids."""
    return point.rows(THINGS, ids=as_json(list(ids)), undone=point.undone)


def described(point: Point, id: str, number: int) -> Node:
    """Return the node as one of its versions describes it."""
    return described_versions(point, id, (number,))[number]


def described_versions(point: Point, id: str, numbers: Iterable[int]) -> dict[int, Node]:
    """Return the node as some of its versions describe it, by the numbers of the versions."""
    rows = point.rows(DESCRIBED, id=id, numbers=as_json(list(numbers)))
    return {row.number: node_of(point, row) for row in rows}


def node_of(point: Point, row: Described) -> Node:
    """Return the value of a node."""
    return node_from(row, body_of(point, row))


def node_from(row: Described, body: Json) -> Node:
    """Return the value of a node whose version has this body."""
    return Node.made(_fields(row, body, row.standing))


def event_with_links(point: Point, row: Described, links: Iterable[LinkedRow]) -> Event:
    """Return the value of an event with the links at both of its ends."""
    return event_of(HappenedTimes(point, [row.id]), row, tuple(link_of(point, link) for link in links))


def event_of(happened: HappenedTimes, row: Described, links: tuple[Link, ...] | None = None) -> Event:
    """Return the value of an event."""
    body = happened.point.content(row.data, row.checksum, f"event {row.id!r}")
    if not body:
        body = tombstone(row.forgotten or "", happened.place(row.id))
    metadata = (body if row.forgotten else happened.latest(row.id, body)).get("metadata", {})
    status = happened.status(row.id, row.kind, body, row.forgotten is not None)
    return event_from(
        row, {**body, "metadata": metadata}, happened.seen(happened.history_of(row.id).own), status, links
    )


def tombstone(word: str, place: Json) -> Json:
    """Return the body of a forgotten event. `word`: evicted or erased. `place`: its place in its trace."""
    return {"description": f"[{word}]", "origin": word, "authorized": None, **place}


def event_from(
    row: Described, body: Json, seen: Seen, status: Status | None, links: tuple[Link, ...] | None
) -> Event:
    """Return the value of an event from its body, which has its latest metadata. `seen`: its first and last instant, and how often it occurred."""
    first, last, count = seen
    get = body.get
    return Event.made(
        {
            "id": row.id,
            "type": row.kind,
            "description": body["description"],
            "source": get("source"),
            "origin": body["origin"],
            "agent": get("agent"),
            "occurred_at": moment(first),
            "first_seen": moment(first),
            "last_seen": moment(last),
            "count": count,
            "status": status,
            "metadata": body["metadata"],
            "links": links,
            "fingerprint": get("fingerprint"),
            "trace_id": get("trace_id"),
            "span_id": get("span_id"),
            "parent_span_id": get("parent_span_id"),
            "ended_at": spans.ended(body["metadata"], body),
            "sender": get("sender"),
            "sender_name": get("sender_name"),
            "thread": get("thread"),
            "classification": get("classification"),
            "authorized": authorized_of(row.kind, body),
            "media_path": get("media_path"),
            "media_hash": get("media_hash"),
            "standing": row.standing,
            "author": row.author,
            "recorded_at": moment(row.known_since),
            "tx_from": moment(row.known_since),
            "tx_to": None if row.tx_to is None else moment(row.tx_to),
        }
    )


def version_of(point: Point, row: Described) -> Version:
    """Return the value of a period of a node."""
    return Version.made({**_fields(row, body_of(point, row)), "ref": f"{row.id}-v{row.number}"})


def body_of(point: Point, row: Described) -> Json:
    """Return the body of a version of a node; empty if it was forgotten."""
    return point.content(row.data, row.checksum, f"node {row.id!r}, version {row.number}")


def _says(point: Point, row: Described, said: Json) -> bool:
    """Return True if a content has all these fields with these values."""
    content = body_of(point, row)["content"].items()
    return all(each in content for each in said.items())


def _fields(row: Described, body: Json, standing: Standing | None = None) -> Json:
    """Return the fields of a node (with its standing) or of a version, in the order in which answers print them."""
    body = body or {"content": {}, "trigger": row.forgotten or ""}
    return {
        "id": row.id,
        "kind": row.kind,
        "key": row.key,
        "scope": row.scope,
        "number": row.number,
        "content": body["content"],
        "text": text_of_body(body),
        "tags": tuple(body.get("tags", ())),
        "trigger": body.get("trigger", "initial"),
        "source": body.get("source"),
        "author": row.author,
        "recorded_at": moment(row.recorded_at),
        **({} if standing is None else {"standing": standing}),
        "valid_from": moment(row.valid_from),
        "valid_to": None if row.valid_to is None else moment(row.valid_to),
        "tx_from": moment(row.tx_from),
        "tx_to": None if row.tx_to is None else moment(row.tx_to),
    }
