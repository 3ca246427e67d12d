"""The tools by which an agent asks about many things: over time, between two coordinates, along links, in Cypher, and what keeps happening."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from graphstore.core.read.view import View
from graphstore.core.tables.engine import time_limit
from graphstore.core.tables.guard import refuse_limits
from graphstore.core.tables.result import legible
from graphstore.core.tables.texts import text as query_text
from graphstore.errors import InvalidError, NotFoundError
from graphstore.events import report as log
from graphstore.events import timeline as messages
from graphstore.mcp.answers import (
    Difference,
    Entry,
    FieldLine,
    KindLine,
    Reached,
    Report,
    Rows,
    Schema,
    SpanLine,
    Timeline,
    Traced,
    at,
    cut,
    field_line,
    link_line,
    reached,
    thing,
    things,
)
from graphstore.mcp.desk import (
    BUDGET,
    Budget,
    Cursor,
    Desk,
    Later,
    Question,
    Tx,
    Valid,
    digest,
    parts,
    whole_ids,
)
from graphstore.mcp.read_tools import RESTS
from graphstore.topics import topics
from graphstore.values import content_diff as differences
from graphstore.values.models import Event, Node, Version, words
from graphstore.values.period import moment
from graphstore.values.text import line

_CELL = 2_000  # characters of a text in a row
_SAMPLE = 50
_ABOUT = 200
Since = Annotated[str | None, Field(description="A window such as 1h, 7d, 2w back from `valid`, or a date.")]  # fmt: skip


class Graph:
    """The tools about many things."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # ------------------------------------------------------------------ timeline

    @whole_ids("about")
    def timeline(
        self,
        about: Annotated[
            str | None, Field(description="An id, or a topic: a key, a tag, or any words.")
        ] = None,
        thread: Annotated[str | None, Field(description="The messages of this thread.")] = None,
        sender: Annotated[str | None, Field(description="The messages of this sender.")] = None,
        since: Since = None,
        until: Annotated[str | None, Field(description="Only what began before: a date.")] = None,
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Timeline:
        """What happened or was recorded over time, newest first. `about` a node: its versions and the events linked with it; a topic:
        every statement about it, past, current and planned. With `thread` or `sender`: messages, those that say the words of `about`. With none: all events."""
        asked = {"about": about, "thread": thread, "sender": sender, "since": since, "until": until}
        question = self._desk.question("timeline", asked, valid, tx, budget_tokens, cursor)
        view = question.view
        begin = None if since is None else moment(view._time(since, "since"))
        end = None if until is None else moment(view._time(until, "until"))
        found: Iterable[Entry | Event]
        if thread or sender:
            named = (("thread", thread), ("sender", sender), ("words", about))
            of = " and ".join(f"{name} {value}" for name, value in named if value)
            found = messages.messages(
                view, thread=thread, sender=sender, text=about, since=begin, until=end, limit=None
            )
        elif about is not None:
            of, found = _about(view, about)
        else:
            of, found = "all events", view.events(since=begin, until=end)
        timed = [
            (entry.occurred_at if isinstance(entry, Event) else entry.at, entry.id, entry) for entry in found
        ]
        kept = [each for each in timed if (not begin or each[0] >= begin) and (not end or each[0] < end)]
        kept.sort(key=itemgetter(0, 1), reverse=True)
        return question.page(Timeline, Later([("entries", _entry, entry) for _, _, entry in kept]), of=of)

    # ------------------------------------------------------------------ diff

    @whole_ids("id")
    def diff(
        self,
        id: Annotated[str | None, Field(description="Of this node alone. Left out: of everything.")] = None,
        old: Annotated[int | None, Field(description="The number of a version of the node.")] = None,
        new: Annotated[int | None, Field(description="The number of another version.")] = None,
        before_valid: Annotated[
            str | None,
            Field(description="The earlier coordinate: as it was in the world then. Left out: as `valid`."),
        ] = None,
        before_tx: Annotated[
            str | None,
            Field(description="The earlier coordinate: as the store knew it then. Left out: as `tx`."),
        ] = None,
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Difference:
        """What changed. With `id` and two version numbers (or none: the last two): field by field. With before_valid or before_tx: what
        was added, removed and changed between that coordinate and (valid, tx); when only before_tx differs: what we learned since."""
        asked = {"id": id, "old": old, "new": new, "before": [before_valid, before_tx]}
        question = self._desk.question("diff", asked, valid, tx, budget_tokens, cursor)
        if before_valid is not None or before_tx is not None:
            before = self._before(question, before_valid, before_tx)
            return _between(question, before) if id is None else _of_one(question, before, id)
        if id is None:
            raise InvalidError(
                "diff of what? Give id= for two versions of a node, or before_valid= or before_tx= for two coordinates."
            )
        return _versions(question, id, old, new)

    def _before(self, question: Question, valid: str | None, tx: str | None) -> View:
        here = question.view.at
        return self._desk.view(valid or here.valid.isoformat(), tx or here.tx.isoformat())

    # ------------------------------------------------------------------ trace

    @whole_ids("id")
    def trace(
        self,
        id: Annotated[str, Field(description="The id of a node or an event, or a trace id.")],
        direction: Annotated[
            Literal["up", "down"],
            Field(
                description="up: what led to it and what it rests on. down: what it led to and what rests on it."
            ),
        ] = "down",
        depth: Annotated[int, Field(ge=1, le=20, description="How many links to follow.")] = 5,
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Traced:
        """Follow causes and foundations from a thing: down for what rests on it, up for what led to it, nearest first. Of a trace id: its
        spans as a tree."""
        asked = {"id": id, "direction": direction, "depth": depth}
        question = self._desk.question("trace", asked, valid, tx, budget_tokens, cursor)
        view = question.view
        try:
            chain = view.walk(id, RESTS, depth, "out" if direction == "up" else "in")
        except NotFoundError as unknown:
            return _spans(question, id, self._desk.refusal(view, id)(unknown))
        found: list[Reached] = reached(view, chain, upward=direction == "up")
        return question.page(
            Traced,
            parts("reached", found),
            kind="chain",
            direction=direction,
            root=thing(view, chain.root),
            truncated=chain.truncated,
        )

    # ------------------------------------------------------------------ schema

    def schema(
        self,
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Schema:
        """What there is: kinds of nodes, events and links with their counts and fields, what Cypher sees, the names of snapshots and
        branches. Call it before `cypher`."""
        question = self._desk.question("schema", {}, valid, tx, budget_tokens, cursor)
        view, store = question.view, self._desk.store
        kinds = list(_kinds(view))
        counts = {
            what: sum(each.count for each in kinds if each.what == what) for what in ("node", "event", "link")
        }
        columns = [name.removeprefix("n.") for name in view.query(query_text("agents_columns")).columns]
        return question.page(
            Schema,
            parts("kinds", kinds),
            graph=_GRAPH.format(columns=", ".join(columns)),
            counts=counts,
            snapshots=tuple(map(str, store.snapshots())),
            branches=tuple(branch.name for branch in store.branches()),
            branch=getattr(store, "name", None),
        )

    # ------------------------------------------------------------------ cypher

    def cypher(
        self,
        query: Annotated[
            str,
            Field(description="A text that reads."),
        ],
        params: Annotated[dict[str, Any] | None, Field(description="Values of the $parameters.")] = None,
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Rows:
        """Ask the graph of one coordinate in Cypher; nothing can be written. Label Node is what stands there, Absent what is known and no
        longer stands, Event what happened; each kind of link is a relationship in capitals:
        MATCH (new:Node)-[:SUPERSEDES]->(old:Absent {kind: $kind}) RETURN new.id, old.id ORDER BY new.id.
        No condition on time is needed: valid and tx choose the graph."""
        asked = {"query": query, "params": params}
        question = self._desk.question("cypher", asked, valid, tx, budget_tokens, cursor)
        refuse_limits(params or {})
        with time_limit(self._desk.query_seconds):
            result = question.view.query(query, **(params or {}))
        shown = _Cells()
        rows = [tuple(shown.cell(legible(value)) for value in row) for row in result.tuples()]
        if "order by" not in " ".join(query.lower().split()):
            rows.sort(
                key=lambda row: orjson.dumps(row, default=str)
            )  # else each page might see another order
        return question.page(
            Rows,
            parts("rows", rows),
            order=digest(rows),
            columns=tuple(result.columns),
            cut_cells=shown.cut,
            warnings=tuple(result.warnings),
        )

    # ------------------------------------------------------------------ events

    @whole_ids("related_to")
    def events(
        self,
        type: Annotated[
            str | None, Field(description="Only events of this type, such as error, fix or deploy.")
        ] = None,
        since: Annotated[
            str, Field(description="1h, 7d, 2w back from `valid`, a date, an instant, or FROM..TO.")
        ] = "7d",
        related_to: Annotated[
            str | None, Field(description="Only what is linked with this id, and it itself.")
        ] = None,
        pattern: Annotated[
            str | None, Field(description="Part of the description, whatever the case.")
        ] = None,
        limit: Annotated[int | None, Field(ge=1, description="At most so many, the newest.")] = None,
        timezone: Annotated[
            str, Field(description="For patterns of the time of day, such as Europe/Berlin.")
        ] = "UTC",
        valid: Valid = None,
        tx: Tx = None,
        budget_tokens: Budget = BUDGET,
        cursor: Cursor = None,
    ) -> Report:
        """What happened lately, newest first, each with links and, where it can be open, a status (active, resolved, superseded); and what
        keeps coming back: recurring errors, trouble after deploys, hours of the day."""
        asked = {"type": type, "since": since, "related_to": related_to, "pattern": pattern, "limit": limit, "timezone": timezone}  # fmt: skip
        question = self._desk.question("events", asked, valid, tx, budget_tokens, cursor)
        report = log.history_report(question.view, type, since, related_to, pattern, limit, timezone=timezone)
        listed = [*parts("patterns", report["patterns"]), *parts("events", report["events"])]
        kept = ("summary", "total_events", "time_range")
        return question.page(Report, listed, **{name: report[name] for name in kept})


# ---------------------------------------------------------------- timelines


def _about(view: View, about: str) -> tuple[str, list[Entry]]:
    """The timeline of a node, an event, or a topic."""
    try:
        found = view.inspect(about)
    except NotFoundError:
        return _topic(view, about)
    node = found.node
    entries = [_happened(node)] if isinstance(node, Event) else _versions_of(view, node.id, found.history)
    entries += map(_happened, view.events(related_to=node.id))
    return node.id, entries


def _topic(view: View, about: str) -> tuple[str, list[Entry]]:
    topic = topics.topic(view, about)
    if topic.found_by is None:
        raise NotFoundError(f"no node, event or topic {about!r}. {_instead(view, about) or topic}")
    by_words = topic.found_by not in ("key", "tag")
    return f"statements about {line(about, _ABOUT)}" if by_words else f"topic {about}", [
        Entry(
            at=each.valid_from,
            what="version",
            id=each.id,
            kind=_kind(view, each.id) if by_words else each.name,
            standing=each.standing,
            until=each.valid_to,
            replaced_by=each.replaced_by or None,
            **cut(each.says),
        )
        for each in (*topic.past, *topic.current, *topic.planned)
    ]


def _kind(view: View, id: str) -> str:
    node = view.inspect(id).node
    return node.kind if isinstance(node, Node) else node.type


def _instead(view: View, about: str) -> str:
    """A hint that messages have this name, where they do."""
    if messages.messages(view, thread=about, limit=1).events:
        return "There is a thread of that name."
    return "There is a sender of that name." if messages.messages(view, sender=about, limit=1).events else ""


def _entry(found: Entry | Event) -> Entry:
    return _happened(found) if isinstance(found, Event) else found


def _happened(event: Event) -> Entry:
    return Entry(
        at=event.occurred_at,
        what="event" if event.authorized is None else "message",
        id=event.id,
        kind=event.type,
        who=event.sender_name or event.sender or event.agent,
        standing=event.standing,
        recorded_at=event.recorded_at,
        **cut(words(event) or event.media_path or ""),
    )


def _versions_of(view: View, id: str, believed: Iterable[Version]) -> list[Entry]:
    """The versions believed of a node, each with its author."""
    return [_version(version, version.author) for version in believed]


def _version(version: Version, who: str | None) -> Entry:
    return Entry(
        at=version.valid_from,
        what="version",
        id=version.ref,
        kind=version.kind,
        who=who or version.source,
        standing=None,
        until=version.valid_to,
        recorded_at=version.recorded_at,
        **cut(words(version)),
    )


# ---------------------------------------------------------------- differences


def _versions(question: Question, id: str, old: int | None, new: int | None) -> Difference:
    view = question.view
    numbers = sorted({version.number for version in view.versions(id)})
    if new is None:
        new = numbers[-1]
    if old is None:
        earlier = [number for number in numbers if number < new]
        if not earlier:
            raise InvalidError(
                f"{id!r} has no version before {new}: there is nothing to compare it with. Versions: {numbers}."
            )
        old = earlier[-1]
    changes = [field_line(id, change) for change in view.diff(id, old, new)]
    return question.page(Difference, parts("changes", changes), id=id, old=old, new=new)


def _of_one(question: Question, before: View, id: str) -> Difference:
    """What differs in one thing between two coordinates; where it was not known yet, everything is added."""
    now = question.view.inspect(id).node
    try:
        then = before.inspect(id).node
    except NotFoundError:
        return question.page(
            Difference, parts("added", [thing(question.view, now)]), id=now.id, before=at(before)
        )
    listed = parts("changes", [FieldLine(id=now.id, path=path, type="changed", old=was, new=is_)
                               for path, was, is_ in (("standing", then.standing, now.standing),) if was != is_])  # fmt: skip
    if isinstance(now, Node) and isinstance(then, Node):
        changes = differences.diff(then.content, now.content)
        listed += parts("changes", [field_line(now.id, change) for change in changes])
        return question.page(
            Difference, listed, id=now.id, old=then.number, new=now.number, before=at(before)
        )
    return question.page(Difference, listed, id=now.id, before=at(before))


def _between(question: Question, before: View) -> Difference:
    found = before.compare(question.view)
    now, then = partial(thing, question.view), partial(thing, before)
    listed: list[tuple[str, Callable[[Any], Any], Any]] = []
    listed += [("added", now, each) for each in (*found.added, *found.events_added)]
    listed += [("removed", then, each) for each in (*found.removed, *found.events_removed)]
    for each in found.changed:
        listed.append(("changed", now, each.after))
        listed += [("changes", partial(field_line, each.id), change) for change in each.fields]
    listed += [("links_added", link_line, link) for link in found.links_added]
    listed += [("links_removed", link_line, link) for link in found.links_removed]
    return question.page(Difference, Later(listed), before=at(before))


# ---------------------------------------------------------------- traces


def _spans(question: Question, id: str, unknown: NotFoundError) -> Traced:
    try:
        found = messages.trace(question.view, messages.whole_trace_id(question.view, id))
    except NotFoundError:
        raise unknown from None
    spans = [
        SpanLine(
            span=each.span_id,
            parent=each.parent_span_id,
            depth=each.depth,
            name=each.name,
            start=each.start,
            seconds=each.duration,
            missing=each.missing or None,
            events=tuple(event.id for event in each.events),
        )
        for each in found.spans
    ]
    listed = [*parts("spans", spans), *parts("events", things(question.view, found.events))]
    return question.page(Traced, listed, kind="trace", notes=found.notes)


# ---------------------------------------------------------------- the graph


_GRAPH = (
    "Node({columns}) is what stands at the coordinate; standing is stands or shaky, content all of it as JSON text. "
    "Absent is what is known there and does not stand: the same columns without those of the content. "
    "Event(id, type, occurred_at, description, status, count, source, agent, …) is what happened. Each kind of link is a relationship "
    "in capitals with id, reason, strength, confidence, created_by, valid_from, valid_to, tx_from. An open end is 9999-12-31."
)


def _kinds(view: View) -> Iterable[KindLine]:
    for row in view.query(query_text("agents_nodes")):
        kind = row["kind"]
        contents = view.query(query_text("agents_contents"), kind=kind, many=_SAMPLE)
        names = dict.fromkeys(name for each in contents for name in orjson.loads(each["content"] or "{}"))
        yield KindLine(what="node", kind=kind, count=row["many"], fields=tuple(names))
    for row in view.query(query_text("agents_events")):
        yield KindLine(what="event", kind=row["kind"], count=row["many"])
    kinds = view.vocabulary.kinds
    for row in view.query(query_text("agents_links")):
        known = kinds.get(row["kind"].lower())
        meaning = None if known is None or known.symmetric else f"read from its target: {known.inverse}"
        yield KindLine(what="link", kind=row["kind"], count=row["many"], meaning=meaning)


class _Cells:
    """Values of rows as JSON has them; `cut` counts the texts that were too long."""

    def __init__(self) -> None:
        self.cut = 0

    def cell(self, value: Any) -> Any:
        """One value."""
        if isinstance(value, str):
            if len(value) > _CELL:
                self.cut += 1
                return value[:_CELL] + "…"
            return value
        if isinstance(value, dict):
            return {name: self.cell(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.cell(each) for each in value]
        return value
