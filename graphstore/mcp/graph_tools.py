"""The tools by which an agent asks about many things: over time, between two coordinates, along links, in Cypher, and what keeps happening."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from graphstore.errors import InvalidError, NotFoundError
from graphstore.events import report as log
from graphstore.events import timeline as messages
from graphstore.graph import engine, guard, macros
from graphstore.graph.result import Result, legible
from graphstore.graph.texts import text as query_text
from graphstore.mcp import answers
from graphstore.mcp.answers import at, cut, like, link_line, reached, thing, things
from graphstore.mcp.desk import AnswerPart, LaterParts, Rare, ToolQuestion, digest, parts
from graphstore.mcp.schemas import RARE
from graphstore.mcp.tooling import Tools, reading
from graphstore.memory import recall
from graphstore.store import over_time
from graphstore.store.counterfactual import arguments
from graphstore.topics import topics
from graphstore.values import content_diff as differences
from graphstore.values.findings import words
from graphstore.values.models import UPRIGHT, Event, Json, Node, Standing, Version
from graphstore.values.period import instant, iso
from graphstore.values.text import line
from graphstore.view.view import View

_CELL = 2_000  # characters of a text in a row
_SAMPLE = 50
_ABOUT = 200
_SAYING = 300  # things that say the words of a topic, the best first, among which its events are


class GraphTools(Tools):
    """The tools about many things."""

    @reading("about")
    def timeline(
        self,
        question: ToolQuestion,
        *,
        about: Annotated[str | None, Field(description="id, key, tag or words")] = None,
        thread: str | None = None,
        sender: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> answers.TimelineAnswer:
        """What was said and happened over time, newest first: of a thing or topic, a thread, a sender, or all."""
        view = question.view
        begin, end = view.bounds_of(since, until)
        found: Iterable[answers.EntryLine | Event]
        if thread or sender:
            named = (("thread", thread), ("sender", sender), ("words", about))
            of = " and ".join(f"{name} {value}" for name, value in named if value)
            page = messages.messages(
                view, thread=thread, sender=sender, text=about, since=since, until=until, limit=None
            )
            found = [*page, *(event for added in page.added.values() for event in added)]
        elif about is not None:
            of, found = _about(view, about)
        else:
            of, found = "all events", view.events(since=since, until=until)
        timed = [
            (entry.occurred_at if isinstance(entry, Event) else entry.at, entry.id, entry) for entry in found
        ]
        kept = [each for each in timed if begin <= instant(each[0]) < end]
        kept.sort(key=itemgetter(0, 1), reverse=True)
        return question.page(
            answers.TimelineAnswer, LaterParts([("entries", _entry, entry) for _, _, entry in kept]), of=of
        )

    @reading("id")
    def diff(
        self,
        question: ToolQuestion,
        *,
        id: str | None = None,
        old: int | None = None,
        new: int | None = None,
        before_valid: str | None = None,
        before_tx: str | None = None,
        without: Rare = None,
    ) -> answers.DiffAnswer:
        """Changes: in a thing from version old to new, in all from before_valid, before_tx; or without="author=ben" (id, tx, source)."""
        if without is not None:
            return self._without(question, without, id)
        if before_valid is not None or before_tx is not None:
            before = self._before(question, before_valid, before_tx)
            return _between(question, before, question.view) if id is None else _of_one(question, before, id)
        if id is None:
            raise InvalidError(
                "diff of what? Give id= for two versions of a node, or before_valid= or before_tx= for two coordinates."
            )
        return _versions(question, id, old, new)

    def _without(self, question: ToolQuestion, text: str, id: str | None) -> answers.DiffAnswer:
        """How what is believed would differ. Raises InvalidError where it is asked at another coordinate than now."""
        if id is not None:
            raise InvalidError("without= is of all that is believed. Leave id out.")
        made = self.desk.store.without(**arguments(text))
        here = question.view.at
        other = made.as_of(valid=here.valid, tx=min(here.tx, made.at.tx))
        needed = tuple(f"{each.verb} {each.subject}: {each.reason}" for each in made.left_out)
        return _between(question, question.view, other, needed_them=needed)

    def _before(self, question: ToolQuestion, valid: str | None, tx: str | None) -> View:
        here = question.view.at
        return self.desk.view(valid or here.valid.isoformat(), tx or here.tx.isoformat())

    @reading("id")
    def trace(
        self,
        question: ToolQuestion,
        *,
        id: str,
        direction: Literal["up", "down"] = "down",
        depth: Annotated[int, Field(ge=1, le=20, json_schema_extra=RARE)] = 5,
    ) -> answers.TraceAnswer:
        """Follow causes and foundations, up: what led to it; down: what rests on it. Of a trace id: its spans."""
        view = question.view
        try:
            chain = view.walk(
                id, view.vocabulary.from_dependants, depth, "out" if direction == "up" else "in"
            )
        except NotFoundError as unknown:
            return _spans(question, id, self.desk.refusal(view, id)(unknown))
        found: list[answers.ReachedLine] = reached(view, chain, upward=direction == "up")
        return question.page(
            answers.TraceAnswer,
            parts("reached", found),
            kind="chain",
            direction=direction,
            root=thing(view, chain.root),
            truncated=chain.truncated,
        )

    @reading(rare=("valid", "tx", "cursor"), slow=True)
    def schema(self, question: ToolQuestion) -> answers.SchemaAnswer:
        """Which kinds, fields, links and snapshots there are. Before cypher."""
        view, store = question.view, self.desk.store
        kinds = list(_kinds(view))
        counts = {
            what: sum(each.count for each in kinds if each.what == what) for what in ("node", "event", "link")
        }
        columns = [name.removeprefix("n.") for name in view.query(query_text("agents_columns")).columns]
        return question.page(
            answers.SchemaAnswer,
            parts("kinds", kinds),
            graph=_GRAPH.format(columns=", ".join(columns)),
            counts=counts,
            snapshots=tuple(map(str, store.snapshots())),
            branches=tuple(branch.name for branch in store.branches()),
            branch=getattr(store, "name", None),
        )

    @reading(slow=True)
    def cypher(
        self,
        question: ToolQuestion,
        *,
        query: str,
        params: dict[str, Any] | None = None,
        history: Annotated[bool, Field(json_schema_extra=RARE)] = False,
    ) -> answers.RowsAnswer:
        """Ask one coordinate. Node stands, Absent does not, Event happened; links in capitals: MATCH (a:Node {author: $who})-[:SUPERSEDES]->(b) RETURN b.text. history=true: (:Version)"""
        given = dict(params or {})
        guard.refuse_limits(given)
        with engine.time_limit(self.desk.query_seconds):
            if history:
                at = question.view.at
                given = {axis: getattr(at, axis) for axis in macros.reads(query)} | given
                result = self.desk.store.query_tables(query, **given)
            else:
                result = question.view.query(query, **given)
        return self._rows(question, result, "order by" in " ".join(query.lower().split()))

    def _rows(self, question: ToolQuestion, result: Result, in_order: bool) -> answers.RowsAnswer:
        """A page of the rows of a result."""
        shown = _CellTexts()
        rows = [tuple(shown.cell(legible(value)) for value in row) for row in result.tuples()]
        if not in_order:
            rows.sort(
                key=lambda row: orjson.dumps(row, default=str)
            )  # else each page might see another order
        return question.page(
            answers.RowsAnswer,
            parts("rows", rows),
            order=digest(rows),
            columns=tuple(result.columns),
            cut_cells=shown.cut,
            warnings=tuple(result.warnings),
        )

    @reading(slow=True)
    def over(
        self,
        question: ToolQuestion,
        *,
        what: over_time.What,
        kind: str | None = None,
        field: str | None = None,
        since: str = "30d",
        until: str = "now",
        step: Annotated[str, Field(description="1 day, 1 month")] = "1 day",
        axis: Literal["valid", "tx"] = "valid",
        by: Annotated[str | None, Field(description="a field to group by", json_schema_extra=RARE)] = None,
    ) -> answers.RowsAnswer:
        """Numbers, values or changes at each step from since to until."""
        view = question.view
        found = over_time.answered(
            self.desk.store, view, what, kind, field, since=since, until=until, step=step, axis=axis, by=by
        )
        return self._rows(question, found, True)

    @reading("related_to")
    def events(
        self,
        question: ToolQuestion,
        *,
        type: Annotated[str | None, Field(description="e.g. error,deploy")] = None,
        since: Annotated[str, Field(description="or FROM..TO [7d]")] = "7d",
        related_to: str | None = None,
        pattern: Annotated[str | None, Field(description="in its description")] = None,
        limit: Annotated[int | None, Field(ge=1, json_schema_extra=RARE)] = None,
        timezone: Annotated[str, Field(json_schema_extra=RARE)] = "UTC",
        status: Annotated[str | None, Field(description="active (broken now), resolved, superseded")] = None,
        origin: Rare = None,
        agent: Rare = None,
    ) -> answers.EventsAnswer:
        """What happened lately, its status, what keeps coming back (by origin, agent)."""

        def report(skip: int) -> Json:
            return log.history_report(
                question.view,
                _each(type),
                since,
                related_to,
                pattern,
                limit,
                timezone=timezone,
                skip=skip or None,
                status=_each(status),
                origin=origin,
                agent=_each(agent),
            )

        first = report(0)
        listed = _Reported(question.view, first, lambda skip: report(skip)["events"], limit)
        head = {name: first[name] for name in ("total_events", "time_range")}
        return question.page(
            answers.EventsAnswer, listed, summary=first["summary"].partition(" Shown: ")[0], **head
        )


def _each(text: str | None) -> list[str] | None:
    """The parts of a text that names several, with commas between them."""
    return None if text is None else [part.strip() for part in text.split(",")]


class _Reported(LaterParts):
    """The patterns of a report and all its events: what had no room in it is read when a page comes to it."""

    def __init__(self, view: View, first: Json, rest: Callable[[int], list[Json]], limit: int | None) -> None:
        self._view, self._patterns, self._rest = view, first["patterns"], rest
        total: int = first["total_events"]
        self._total = total if limit is None else min(total, limit)
        self._begin, self._events = 0, first["events"]

    def __len__(self) -> int:
        return len(self._patterns) + self._total

    def __getitem__(self, number: Any) -> Any:
        if number < len(self._patterns):
            return AnswerPart("patterns", self._patterns[number])
        event = number - len(self._patterns)
        if not self._begin <= event < self._begin + len(self._events):
            self._begin, self._events = event, self._rest(event)
        entry = self._events[event - self._begin]
        found = self._view.event(entry["id"])
        who = {} if found.author is None else {"author": found.author}
        return AnswerPart("events", {**entry, "recorded_at": iso(instant(found.recorded_at)), **who})


# ---------------------------------------------------------------- timelines


def _about(view: View, about: str) -> tuple[str, list[answers.EntryLine]]:
    """The timeline of a node, an event, or a topic."""
    try:
        found = view.inspect(about)
    except NotFoundError:
        return _topic(view, about)
    node = found.node
    if isinstance(node, Event):
        return node.id, [_happened(node), *map(_happened, view.events(related_to=node.id))]
    by = tuple(link.source for link in found.backlinks if link.kind in ("supersedes", "corrects"))
    return node.id, [*_versions_of(view, node, found.history, by), *_events_of(view, [node.id])]


def _events_of(view: View, ids: Iterable[str], words: str | None = None) -> list[answers.EntryLine]:
    """The events linked with things and those that say all the words, with what these were caused and resolved by."""
    found = {event.id: event for id in ids for event in view.events(related_to=id)}
    if words is not None:
        said = (hit.node for hit in recall.mentions(view, words, _SAYING).hits if hit.coverage == 1)
        found |= {event.id: event for event in said if isinstance(event, Event)}
    for id in list(found):
        for link in view.links_from(id, kinds=("resolved_by", "caused_by")):
            with suppress(NotFoundError):
                found.setdefault(link.target, view.event(link.target))
    return [_happened(event) for event in found.values()]


def _topic(view: View, about: str) -> tuple[str, list[answers.EntryLine]]:
    topic = topics.topic(view, about)
    if topic.found_by is None and (happened := _events_of(view, (), about.strip())):
        return f"events about {line(about, _ABOUT)}", happened
    if topic.found_by is None:
        raise NotFoundError(f"no node, event or topic {about!r}. {_instead(view, about) or topic}")
    by_words = topic.found_by not in ("key", "tag")
    statements = [_stated(view, each) for each in (*topic.past, *topic.current, *topic.planned)]
    of = f"statements about {line(about, _ABOUT)}" if by_words else f"topic {about}"
    stated = {each.id for each in statements}
    events = _events_of(view, stated, about.strip())
    return of, [*statements, *(each for each in events if each.id not in stated)]


def _stated(view: View, said: topics.Mention) -> answers.EntryLine:
    """A statement of a topic, with what its version says of who recorded it and when."""
    node = view.inspect(said.id).node
    if isinstance(node, Event):
        entry = _happened(node)
    else:
        version = next((each for each in view.history(node.id) if each.valid_from == said.valid_from), node)
        entry = _version(version, said.id, said.standing, said.valid_to, said.replaced_by)
    return entry.model_copy(update={"at": said.valid_from, "standing": said.standing, **cut(said.says)})


def _instead(view: View, about: str) -> str:
    """A hint that messages have this name, where they do."""
    if messages.messages(view, thread=about, limit=1).events:
        return "There is a thread of that name."
    return "There is a sender of that name." if messages.messages(view, sender=about, limit=1).events else ""


def _entry(found: answers.EntryLine | Event) -> answers.EntryLine:
    return _happened(found) if isinstance(found, Event) else found


def _happened(event: Event) -> answers.EntryLine:
    return answers.EntryLine(
        at=event.occurred_at,
        what="event" if event.authorized is None else "message",
        id=event.id,
        kind=event.type,
        who=event.sender_name or event.sender or event.agent or event.author,
        standing=event.standing,
        recorded_at=event.recorded_at,
        **cut(words(event) or event.media_path or ""),
    )


def _versions_of(
    view: View, node: Node, believed: Iterable[Version], by: tuple[str, ...]
) -> list[answers.EntryLine]:
    """The versions believed of a node, each as it stands at the coordinate; of a node of which nothing is believed, what it said. `by`: what took
    its place."""
    rows = list(believed)
    if not rows:
        return [_version(node, node.ref, node.standing, node.valid_to, by)]
    ends, last = node.standing not in (*UPRIGHT, "not_yet"), len(rows) - 1
    entries = []
    for number, row in enumerate(rows):
        standing: Standing = "superseded"  # by what is believed later
        if row.valid_from > view.at.valid:
            standing = "not_yet"
        elif row.valid_to is None or row.valid_to > view.at.valid:
            standing = node.standing
        elif number == last or rows[number + 1].valid_from > view.at.valid:
            standing = node.standing if ends else "ended"
        elif rows[number + 1].valid_from > row.valid_to:
            standing = "ended"
        gone = standing == node.standing and standing not in UPRIGHT
        entries.append(_version(row, row.ref, standing, row.valid_to, by if gone else ()))
    return entries


def _version(
    said: Version | Node, ref: str, standing: Standing, until: Any, by: tuple[str, ...]
) -> answers.EntryLine:
    return answers.EntryLine(
        at=said.valid_from,
        what="version",
        id=ref,
        kind=said.kind,
        who=said.author or said.source,
        standing=standing,
        until=until,
        recorded_at=said.recorded_at,
        replaced_by=by or None,
        **cut(words(said)),
    )


# ---------------------------------------------------------------- differences


def _versions(question: ToolQuestion, id: str, old: int | None, new: int | None) -> answers.DiffAnswer:
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
    changes = [like(answers.FieldLine, change, id=id) for change in view.diff(id, old, new)]
    return question.page(answers.DiffAnswer, parts("changes", changes), id=id, old=old, new=new)


def _of_one(question: ToolQuestion, before: View, id: str) -> answers.DiffAnswer:
    """What differs in one thing between two coordinates; where it was not known yet, everything is added."""
    now = question.view.inspect(id).node
    try:
        then = before.inspect(id).node
    except NotFoundError:
        return question.page(
            answers.DiffAnswer, parts("added", [thing(question.view, now)]), id=now.id, before=at(before)
        )
    listed = parts("changes", [answers.FieldLine(id=now.id, path=path, type="changed", old=was, new=is_)
                               for path, was, is_ in (("standing", then.standing, now.standing),) if was != is_])  # fmt: skip
    if isinstance(now, Node) and isinstance(then, Node):
        changes = differences.diff(then.content, now.content)
        listed += parts("changes", [like(answers.FieldLine, change, id=now.id) for change in changes])
        return question.page(
            answers.DiffAnswer, listed, id=now.id, old=then.number, new=now.number, before=at(before)
        )
    return question.page(answers.DiffAnswer, listed, id=now.id, before=at(before))


def _between(question: ToolQuestion, before: View, after: View, **more: Any) -> answers.DiffAnswer:
    found = before.compare(after)
    now, then = partial(thing, after), partial(thing, before)
    listed: list[tuple[str, Callable[[Any], Any], Any]] = []
    listed += [("added", now, each) for each in (*found.added, *found.events_added)]
    listed += [("removed", then, each) for each in (*found.removed, *found.events_removed)]
    for each in found.changed:
        listed.append(("changed", now, each.after))
        line_of = partial(like, answers.FieldLine, id=each.id)
        listed += [("changes", line_of, change) for change in each.fields]
    listed += [("links_added", link_line, link) for link in found.links_added]
    listed += [("links_removed", link_line, link) for link in found.links_removed]
    return question.page(answers.DiffAnswer, LaterParts(listed), before=at(before), **more)


# ---------------------------------------------------------------- traces


def _spans(question: ToolQuestion, id: str, unknown: NotFoundError) -> answers.TraceAnswer:
    try:
        found = messages.trace(question.view, messages.whole_trace_id(question.view, id))
    except NotFoundError:
        raise unknown from None
    spans = [
        like(
            answers.SpanLine,
            each,
            span=each.span_id,
            parent=each.parent_span_id,
            seconds=each.duration,
            missing=each.missing or None,
            events=tuple(event.id for event in each.events),
        )
        for each in found.spans
    ]
    listed = [*parts("spans", spans), *parts("events", things(question.view, found.events))]
    return question.page(answers.TraceAnswer, listed, kind="trace", notes=found.notes)


# ---------------------------------------------------------------- the graph


_GRAPH = (
    "Node({columns}) is what stands at the coordinate; standing is stands or shaky, content all of it as JSON text. "
    "Absent is what is known there and does not stand: the same columns without those of the content. "
    "Event(id, type, occurred_at, description, status, count, source, agent, author, …) is what happened. Each kind of link is a relationship "
    "in capitals with id, reason, strength, confidence, created_by, author, valid_from, valid_to, tx_from. An open end is 9999-12-31."
)


def _kinds(view: View) -> Iterable[answers.KindLine]:
    for row in view.query(query_text("agents_nodes")):
        kind = row["kind"]
        contents = view.query(query_text("agents_contents"), kind=kind, many=_SAMPLE)
        names = dict.fromkeys(name for each in contents for name in orjson.loads(each["content"] or "{}"))
        yield answers.KindLine(what="node", kind=kind, count=row["many"], fields=tuple(names))
    for row in view.query(query_text("agents_events")):
        yield answers.KindLine(what="event", kind=row["kind"], count=row["many"])
    kinds = view.vocabulary.kinds
    for row in view.query(query_text("agents_links")):
        known = kinds.get(row["kind"].lower())
        meaning = None if known is None or known.symmetric else f"read from its target: {known.inverse}"
        yield answers.KindLine(what="link", kind=row["kind"], count=row["many"], meaning=meaning)


class _CellTexts:
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
