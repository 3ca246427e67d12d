"""The room of the timeline: messages and media as events, in pages, and a trace as the tree of its spans.

A message is an event of type TEXT, AUDIO, IMAGE or SYSTEM, or of any type recorded with a field of a message. It never counts as a further
occurrence: two messages with the same content are two.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from graphstore.errors import InvalidError, NotFoundError
from graphstore.search.search import words
from graphstore.show.scenes import Bar, Scene
from graphstore.store import registry
from graphstore.values import file_access, spans
from graphstore.values.event_fields import ENDED_AT
from graphstore.values.findings import Recorded
from graphstore.values.inputs import at_least_one, text_of
from graphstore.values.models import Event, Value
from graphstore.values.period import OPEN, Instant, TimeLike, exactly, instant, moment, when
from graphstore.values.spans import SpanEvent, Twig
from graphstore.values.text import line
from graphstore.values.time_range import plural
from graphstore.values.words import asked_fields
from graphstore.view.filters import Filters
from graphstore.view.rows import NumberedRows
from graphstore.view.sight import Sight
from graphstore.view.view import Reader
from graphstore.write.writer import Writer

if TYPE_CHECKING:
    from graphstore.store.store import Store

SPAN = "span"
"""The type of an event that is a span from a tracer."""
_OF_THE_RECORD = frozenset({"id", "links", "author", "recorded_at", "tx_from", "tx_to"})
"""The fields in which two records of the same event differ."""
_LINES = 200
_LABEL = 72
_SECOND = 1_000_000
_HEX = frozenset("0123456789abcdef")
_TRACE_ID = 32
_TRACE_BEGUN = re.compile(r"[0-9a-f]{6,31}")


# ---------------------------------------------------------------- messages


@registry.write("timeline", files=("media_path",), here=True)
def record_message(
    store: Store,
    type: str,
    text: str = "",
    *,
    sender: str | None = None,
    sender_name: str | None = None,
    thread: str | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
    parent_span_id: str | None = None,
    classification: str | None = None,
    authorized: bool = True,
    media_path: str | os.PathLike[str] | None = None,
    media_hash: str | None = None,
    occurred_at: TimeLike | None = None,
    id: str | None = None,
    related_to: str | Iterable[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    role: str | None = None,
) -> Recorded:
    """Record a message: TEXT, AUDIO, IMAGE, SYSTEM, or any other type. Without text it needs a medium.

    `role` says who spoke: `user`, `agent`, or another word of the caller's; it is kept as `role` of the metadata.
    `media_hash` is computed (SHA-256) where `media_path` names a file that is there. The same id with the same content is the same message.
    Raises InvalidError for a hash that is not the file's, a file that cannot be read, and as `record_event`; ConflictError for an id that is known with other content.
    """
    path = None if media_path is None else os.fspath(media_path)
    if role is not None:
        metadata = _with_role(metadata, text_of("role", role))
    if not isinstance(text, str) or not (text.strip() or path or media_hash):
        raise InvalidError(
            f"a message of type {type!r} with text {text!r} says nothing. Give text= or media_path=."
        )
    return store.record_event(
        type,
        text,
        id=id,
        occurred_at=occurred_at,
        origin="system" if type == "SYSTEM" else "agent",
        related_to=related_to,
        metadata=metadata,
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent_span_id,
        sender=sender,
        sender_name=sender_name,
        thread=thread,
        classification=classification,
        authorized=authorized,
        media_path=path,
        media_hash=_media_hash(store, id, path, media_hash),
    )


def _with_role(metadata: Mapping[str, Any] | None, role: str) -> dict[str, Any]:
    kept = dict(metadata or {})
    if kept.setdefault("role", role) != role:
        raise InvalidError(f"role {role!r} is not that of the metadata, {kept['role']!r}. Give one of them.")
    return kept


def _media_hash(store: Store, id: str | None, path: str | None, given: str | None) -> str | None:
    """Return the hash to store: that of the file, else the given one, else the one already recorded with this message."""
    stated = None if given is None else text_of("media_hash", given)
    if stated is not None and len(stated) == 64 and _HEX.issuperset(stated.lower()):
        stated = stated.lower()
    if path is None or not file_access.is_file(Path(path)):
        return _known_hash(store, id, path) if stated is None and path is not None else stated
    try:
        with file_access.opened(Path(path)) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidError(
            f"media_path {path!r} cannot be read: {error.strerror}. Make it readable, or give media_hash= and another path."
        ) from None
    if stated not in (None, found):
        raise InvalidError(
            f"media_hash {given!r} is not that of {path!r}: its SHA-256 is {found}. Leave media_hash out, or give the file that was meant."
        )
    return found


def _known_hash(store: Store, id: str | None, path: str) -> str | None:
    """Return the hash of a medium that existed when its message was first recorded."""
    try:
        known = None if id is None else store.inspect(id).node
    except (NotFoundError, InvalidError):  # the id is unknown or invalid: recording reports that
        return None
    same = isinstance(known, Event) and (known.id, known.media_path) == (id, path)
    return known.media_hash if isinstance(known, Event) and same else None


TRANSCRIPT, CLASSIFICATION = "message_transcript", "message_classification"
"""The types of events that add information to an existing message."""
_ABOUT = frozenset({"related_to"})


@registry.write("timeline")
def annotate(
    store: Store,
    id: str,
    *,
    transcript: str | None = None,
    classification: str | None = None,
    occurred_at: TimeLike | None = None,
) -> list[Event]:
    """Add what a message was found to say, or be, after it was recorded. Each is an event of its own, shown with the message; the latest counts.

    Of a message that was not authorized they are not authorized either. Raises NotFoundError for an unknown id, InvalidError for what is no message,
    and where nothing is given.
    """
    given = ((TRANSCRIPT, transcript), (CLASSIFICATION, classification))
    said = [(type, text_of(type.partition("_")[2], text)) for type, text in given if text is not None]
    if not said:
        raise InvalidError("nothing is added. Give transcript= or classification=.")
    message = store.event(id)
    if message.authorized is None or message.type in (TRANSCRIPT, CLASSIFICATION):
        raise InvalidError(f"{id!r} is no message, but an event of type {message.type!r}.")
    about: Any = {"related_to": message.id, "authorized": message.authorized}
    with store.verb():
        return [store.record_event(type, text, occurred_at=occurred_at, **about).event for type, text in said]


@registry.read("timeline")
def added(view: Reader, id: str) -> list[Event]:
    """What was added to a message by the view's coordinate, the latest first."""
    text_of("id", id)
    with view.reading() as sight:
        ent = sight.entity(id)
        return [] if ent < 0 else _added(sight, ent)


def _added(sight: NumberedRows, ent: int) -> list[Event]:
    """Return the events that were added to a message, latest first."""
    found = []
    for link in sight.links_around(ent, "into", _ABOUT):
        other = sight.edge(link).source
        row = sight.find(other)
        if row >= 0 and sight.kind(other) in (TRANSCRIPT, CLASSIFICATION) and sight.is_event(other):
            found.append((sight.since(row), other, row))
    return [sight.event_and_links(sight.entity_of(row)) for *_, row in sorted(found, reverse=True)]


def _added_to(sight: Sight, events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    ents = {event.id: sight.entity(event.id) for event in events}
    sight.read_links(ents.values())
    found = {id: tuple(_added(sight, ent)) for id, ent in ents.items()}
    return {id: some for id, some in found.items() if some}


def transcript_of(sight: NumberedRows, ent: int) -> str | None:
    """Return the latest transcript of a message; None if there is none."""
    return next((each.description for each in _added(sight, ent) if each.type == TRANSCRIPT), None)


def _classified(sight: Sight) -> dict[int, str]:
    """Return the messages that were classified after they were recorded, each with its latest classification."""
    found: dict[int, tuple[Instant, int, str]] = {}
    for ent in sight.entities(True, CLASSIFICATION):
        row = sight.find(ent)
        if row < 0:
            continue
        said = str(sight.body_of(row).get("description") or "")
        for link in sight.links_around(ent, "out", _ABOUT):
            target = sight.edge(link).target
            found[target] = max(found.get(target, (-OPEN, -1, "")), (sight.since(row), ent, said))
    return {target: said for target, (*_, said) in found.items()}


class Page(Value):
    """Some messages, newest first. `cursor` goes on after them; None when there are no more. `added`: what was said of them later, by their ids, the latest first."""

    events: tuple[Event, ...]
    cursor: str | None
    added: dict[str, tuple[Event, ...]] = {}

    def __iter__(self) -> Iterator[Event]:  # type: ignore[override]
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


@registry.read("timeline")
def messages(
    view: Reader,
    *,
    sender: str | None = None,
    trace: str | None = None,
    thread: str | None = None,
    type: str | None = None,
    classification: str | None = None,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    authorized: bool | None = None,
    text: str | None = None,
    recorded_since: TimeLike | None = None,
    limit: int | None = 50,
    cursor: str | None = None,
) -> Page:
    """The messages that have happened by the view's coordinate, newest first, at most `limit` (None: all). Filters are ANDed.

    `text`: only those that say each of its words, in any form, as `recall` finds them: a phrase in quotes, `-word`, and `field:value` too; what was
    not authorized is found only with `authorized=False`. `since` and `until`: it happened in [since, until); `recorded_since`: it was recorded after that tx, whenever it happened. The `cursor` of a page goes on after it, at the coordinate of the first page: what is
    recorded meanwhile is in no later page. A store answers at that coordinate itself, a view must be at it. Raises InvalidError for a filter
    that is none, for `since` after `until`, and for a cursor of another question or view.
    """
    texts = {"sender": sender, "trace": trace, "thread": thread, "type": type}
    texts["classification"] = classification
    wanted = _wanted(texts, True if authorized is None and text is not None else authorized)
    if text is not None and not words(text_of("text", text)):
        raise InvalidError(f"text {text!r} has no word. Give what the messages are to say, or leave it out.")
    begin, end = view.bounds_of(since, until)
    most = None if limit is None else at_least_one("limit", limit, " or None for no limit")
    known = None if recorded_since is None else view.instant_of(recorded_since, "recorded_since", "tx")
    more_filters = [*([] if text is None else [text]), *([] if known is None else [["recorded", known]])]
    filters = _digest([wanted, begin, end, *more_filters])
    here, before = _going_on(view, cursor, filters)
    filtered = None if text is None else Filters.from_question(here, {}, {}, asked_fields(text))
    with here.reading() as sight:
        among = None if filtered is None else filtered.saying(sight, text or "")
        if known is not None:
            fresh = sight.written_after(known)
            among = fresh if among is None else among & fresh
        found = _listed(sight, wanted, begin, end, before, among)
        rows = list(islice(found, None if most is None else min(most, sys.maxsize - 1) + 1))
        shown = rows[:most]
        events = tuple(sight.events_and_links(map(sight.entity_of, shown)))
        more = len(rows) > len(shown)
        last = (sight.since(shown[-1]), events[-1].id) if more else None
        return Page(
            events=events,
            cursor=None if last is None else _cursor(sight.valid, sight.tx, last, filters),
            added=_added_to(sight, events),
        )


def _listed(
    sight: Sight,
    wanted: Mapping[str, Any],
    begin: Instant,
    end: Instant,
    before: tuple[Instant, str] | None,
    among: set[int] | None,
) -> Iterator[int]:
    """Yield the rows of messages with these values, newest first, without rows added to messages. The latest classification counts."""
    kind, ent_of = sight.kind, sight.entity_of
    found = sight.messages(wanted, begin, end, before, among)
    name = wanted.get("classification")
    later = {} if name is None else _classified(sight)
    if later:
        others = {field: value for field, value in wanted.items() if field != "classification"}
        fitting = {ent for ent, said in later.items() if said == name and (among is None or ent in among)}
        found = merge(
            (row for row in found if ent_of(row) not in later),
            sight.messages(others, begin, end, before, fitting) if fitting else (),
            key=lambda row: (sight.since(row), sight.id(ent_of(row))),
            reverse=True,
        )
    return (row for row in found if kind(ent_of(row)) not in (TRANSCRIPT, CLASSIFICATION))


def _wanted(texts: Mapping[str, str | None], authorized: bool | None) -> dict[str, Any]:
    """Return the values that messages must have."""
    wanted: dict[str, Any] = {
        name: text_of(name, value, empty=True) for name, value in texts.items() if value is not None
    }
    if authorized is not None:
        if not isinstance(authorized, bool):
            raise InvalidError(
                f"authorized {authorized!r} is neither true nor false. Give True, False, or None for both."
            )
        wanted["authorized"] = authorized
    return wanted


def _digest(filters: Any) -> str:
    """Return the digest by which a cursor recognizes its filters."""
    return hashlib.blake2b(orjson.dumps(filters, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def _cursor(valid: Instant, tx: Instant, last: tuple[Instant, str], filters: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([valid, tx, *last, filters])).decode().rstrip("=")


def _going_on(view: Reader, cursor: str | None, filters: str) -> tuple[Reader, tuple[Instant, str] | None]:
    """Return the view to read at, and the message to continue after. A store's first page pins its coordinate, so later pages show no later write."""
    if cursor is None:
        return view.fixed(), None
    valid, tx, at, name, question = _decoded(cursor)
    if question != filters:
        raise InvalidError(
            "the cursor belongs to a question with other filters. Ask the same, or begin without a cursor."
        )
    if isinstance(view, Writer):
        return view.as_of(valid=moment(valid), tx=moment(tx)), (at, name)
    if view.coordinate() != (valid, tx):
        raise InvalidError(
            f"the cursor goes on at valid {exactly(valid)}, tx {exactly(tx)}, and this view is elsewhere. Ask that view, or the store itself."
        )
    return view, (at, name)


def _decoded(cursor: str) -> tuple[Instant, Instant, Instant, str, str]:
    try:
        valid, tx, at, name, question = orjson.loads(
            base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        )
        moment(valid), moment(tx)
        if isinstance(at, int) and isinstance(name, str) and isinstance(question, str):
            return valid, tx, at, name, question
    except (ValueError, TypeError, AttributeError, OverflowError):
        pass
    raise InvalidError(f"{cursor!r} is no cursor. Give the cursor of a page, or none to begin.")


class Voice(Value):
    """Somebody who sent messages, or a thread of them: how many, and when the last one happened. `name` and `role` are those of the last one."""

    id: str
    name: str | None
    role: str | None
    messages: int
    last_seen: datetime


@registry.read("timeline")
def senders(view: Reader, limit: int = 100) -> list[Voice]:
    """Who sent messages by the view's coordinate, whoever spoke last first."""
    return _voices(view, "sender", limit)


@registry.read("timeline")
def threads(view: Reader, limit: int = 100) -> list[Voice]:
    """The threads of messages by the view's coordinate, the one that was spoken in last first. `name` and `role` are of who spoke last."""
    return _voices(view, "thread", limit)


def _voices(view: Reader, field: str, limit: int) -> list[Voice]:
    most = at_least_one("limit", limit)
    with view.reading() as sight:
        latest = [
            (name, len(rows), sight.event_and_links(sight.entity_of(rows[0])))
            for name, rows in islice(sight.voices(field), most)
        ]
    return [_voice(name, count, last) for name, count, last in latest]


def _voice(id: str, count: int, last: Event) -> Voice:
    name, role = last.sender_name or last.sender, last.metadata.get("role")
    role = role if isinstance(role, str) else None
    return Voice(id=id, name=name, role=role, messages=count, last_seen=last.last_seen)


# ---------------------------------------------------------------- traces


class Traced(Value):
    """A trace in a list: how many events, from when to when, and what its first event says; `errors`: how many of its events name an error."""

    trace_id: str
    name: str
    events: int
    errors: int
    start: datetime
    end: datetime


@registry.read("timeline")
def traces(view: Reader, limit: int = 50) -> list[Traced]:
    """The traces there is something of by the view's coordinate, those recorded last first."""
    most = at_least_one("limit", limit)
    with view.reading() as sight:
        found: list[Traced] = []
        for name in reversed(sight.traces()):
            if len(found) == most:
                break
            events = sight.events_and_links(sight.trace(name)[:1_000])
            if events:
                found.append(_traced(name, events))
        return found


def _traced(name: str, events: list[Event]) -> Traced:
    first = min(events, key=lambda each: (each.parent_span_id is not None, each.occurred_at))
    reported = [each.ended_at for each in events if each.ended_at is not None]
    return Traced(
        trace_id=name,
        name=line(first.description or first.type, _LABEL),
        events=len(events),
        errors=sum(each.type == "error" or bool(each.metadata.get("error")) for each in events),
        start=min(each.occurred_at for each in events),
        end=max([*reported, *(each.occurred_at for each in events)]),
    )


class Span(Value):
    """A span of a trace: its events, in order. A `missing` one is only named by its children."""

    span_id: str
    parent_span_id: str | None
    name: str
    start: datetime | None
    end: datetime | None
    """When it is known: from metadata `ended_at`, or from a later event of the same span."""
    duration: float | None
    """Seconds from start to end; negative where the reported end is before the start."""
    skew: float
    """Seconds by which it begins before its parent: clocks that differ. 0 where it does not."""
    depth: int
    missing: bool
    children: tuple[str, ...]
    events: tuple[Event, ...]


class Trace(Value):
    """A trace as a tree. `spans` lie in the order they are drawn in, each after its parent; `events` belong to no span and hang at the root.

    `cycles` are the parents that went in a circle, each broken at its first span; `notes` say what else was odd.
    """

    trace_id: str
    roots: tuple[Span, ...]
    spans: tuple[Span, ...]
    events: tuple[Event, ...]
    cycles: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def span(self, span_id: str) -> Span:
        """The span of that id. Raises NotFoundError."""
        for each in self.spans:
            if each.span_id == span_id:
                return each
        raise NotFoundError.nearest("span", span_id, lambda: [each.span_id for each in self.spans])

    @property
    def start(self) -> datetime:
        """The earliest instant of it."""
        return min(self._instants())

    @property
    def end(self) -> datetime:
        """The latest instant known of it."""
        return max(self._instants())

    def _instants(self) -> list[datetime]:
        ends = [at for each in self.spans for at in (each.start, each.end) if at is not None]
        return ends + [event.occurred_at for event in self.events]

    def __str__(self) -> str:
        return "\n".join(_drawn(self))

    def _repr_html_(self) -> str:
        from graphstore.show import pictures

        return pictures.html(_scene(self))


@registry.read("timeline")
def trace(view: Reader, trace_id: str) -> Trace:
    """The spans and events of a trace that have happened by the view's coordinate. Evicted events keep their place, without their words.

    Raises NotFoundError for an unknown one.
    """
    name = text_of("trace_id", trace_id)
    notes: list[str] = []
    with view.reading() as sight:
        ents = sight.trace(name)
        if not ents:
            known = (each for each in sight.traces() if sight.trace(each))
            raise NotFoundError.nearest("trace", name, lambda: known)
        told = zip(ents, sight.events_and_links(ents), strict=True)
        entries = _merged([_entry(sight, ent, event, notes) for ent, event in told], notes)
    tree = spans.tree(entries)
    twigs = {twig.span: twig for twig in tree.walk()}
    shown = tuple(_span(twig, twigs) for twig in tree.walk())
    notes += tree.notes
    for each in shown:
        if each.skew:
            notes.append(
                f"span {each.span_id} begins {_length(each.skew)} before its parent {each.parent_span_id}."
            )
        if each.duration is not None and each.duration < 0:
            notes.append(f"span {each.span_id} ends {_length(-each.duration)} before it begins.")
    return Trace(
        trace_id=name,
        roots=tuple(each for each in shown if each.depth == 0),
        spans=shown,
        events=tuple(leaf.shown for leaf in tree.loose),
        cycles=tuple(tree.cycles),
        notes=tuple(notes),
    )


@registry.read("timeline")
def whole_trace_id(view: Reader, text: str) -> str:
    """The whole id of a trace that a person means: a unique beginning (6 characters or more) of an id of 32 hexadecimal digits is made whole, any other
    text is given back. Raises NotFoundError where several traces begin so."""
    if not _TRACE_BEGUN.fullmatch(text_of("trace_id", text)):
        return text
    with view.reading() as sight:
        if sight.trace(text):
            return text
        begun = [name for name in sight.traces() if name.startswith(text) and len(name) == _TRACE_ID]
        found = [name for name in begun if sight.trace(name)]
    if not found:
        return text
    if len(found) > 1:
        raise NotFoundError(f"trace {text!r} is ambiguous: {', '.join(found[:3])}. Give more of the id.")
    return found[0]


def _entry(sight: Sight, ent: int, event: Event, notes: list[str]) -> SpanEvent:
    metadata: Mapping[str, Any] = event.metadata or sight.kept_place(ent)
    end = None
    if event.span_id is not None and ENDED_AT in metadata:
        try:
            end = instant(metadata[ENDED_AT], ENDED_AT)
        except InvalidError as error:
            notes.append(f"event {event.id}: {error}")
    return SpanEvent(event.id, instant(event.occurred_at), event.span_id, event.parent_span_id, end, event)


def _merged(entries: list[SpanEvent], notes: list[str]) -> list[SpanEvent]:
    """Return the entries without repetitions under other ids. The one recorded first is kept."""
    kept: dict[str | bytes, SpanEvent] = {}
    for entry in entries:
        event = entry.shown
        fields = {name: value for name, value in dict(event).items() if name not in _OF_THE_RECORD}
        is_evicted = event.standing == "evicted"
        key = event.id if is_evicted else orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
        first = kept.setdefault(key, entry)
        if first is not entry:
            notes.append(f"event {event.id} repeats {first.id} and is not shown.")
    return list(kept.values())


def _span(twig: Twig, twigs: Mapping[str, Twig]) -> Span:
    own = tuple(each.shown for each in twig.events)
    start, end = twig.start, twig.end
    return Span(
        span_id=twig.span,
        parent_span_id=twig.parent,
        name=own[0].description or own[0].type if own else "",
        start=None if start is None else moment(start),
        end=None if end is None else moment(end),
        duration=None if start is None or end is None else (end - start) / _SECOND,
        skew=spans.skew(twig, twigs) / _SECOND,
        depth=twig.depth,
        missing=twig.missing,
        children=tuple(child.span for child in twig.children),
        events=own,
    )


# ---------------------------------------------------------------- a trace drawn


def _drawn(trace: Trace) -> Iterator[str]:
    """Yield the lines of the tree, and the notes below it."""
    count = plural(len(trace.spans), "span")
    loose = f" and {len(trace.events):,} of no span" if trace.events else ""
    yield f"trace {trace.trace_id}: {count}{loose}, {when(trace.start)}, {_length((trace.end - trace.start) / timedelta(seconds=1))}"
    lines = list(_rows(trace))
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"… {len(lines) - _LINES:,} more lines"
    yield from (f"note: {note}" for note in trace.notes)


def _rows(trace: Trace) -> Iterator[str]:
    by_id = {each.span_id: each for each in trace.spans}
    last_root = None if trace.events or not trace.roots else trace.roots[-1].span_id
    waiting = [(each, "", each.span_id == last_root) for each in reversed(trace.roots)]
    while waiting:
        each, stem, last = waiting.pop()
        yield f"{stem}{'└─ ' if last else '├─ '}{_label(each)}"
        below = stem + ("   " if last else "│  ")
        for event in each.events[1:]:
            bar = "│" if each.children else " "
            yield f"{below}{bar}  · {_summary(event)}  +{_length(_seconds(each.start, event.occurred_at))}"
        children = [by_id[name] for name in each.children]
        waiting += [(child, below, child is children[-1]) for child in reversed(children)]
    for number, event in enumerate(trace.events, 1):
        yield f"{'└─ ' if number == len(trace.events) else '├─ '}· {_summary(event)}  +{_length(_seconds(trace.start, event.occurred_at))}"


def _label(each: Span) -> str:
    if each.missing:
        return f"(missing span {each.span_id})"
    length = "" if each.duration is None else f"  {_length(each.duration)}"
    early = f"  begins {_length(each.skew)} before its parent" if each.skew else ""
    return f"{_summary(each.events[0])}{length}{early}"


def _summary(event: Event) -> str:
    words = line(event.description, _LABEL)
    if event.type == SPAN:
        return words
    sender = event.sender_name or event.sender
    sender = f" {line(sender, 30)}:" if sender else ""
    return f"{line(event.type, 30)}{sender} {words or line(event.media_path or '', _LABEL)}".rstrip()


def _seconds(start: datetime | None, at: datetime) -> float:
    return 0.0 if start is None else (at - start) / timedelta(seconds=1)


def _length(seconds: float) -> str:
    """Return a length of time in three digits: `35 µs`, `120 ms`, `1.2 s`, `3.5 h`."""
    if abs(seconds) < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if abs(seconds) < 1:
        return f"{seconds * 1e3:.3g} ms"
    if abs(seconds) < 1_000:
        return f"{seconds:.3g} s"
    return f"{seconds / 3_600:,.1f} h" if abs(seconds) < 172_800 else f"{seconds / 86_400:,.1f} days"


def _scene(trace: Trace) -> Scene:
    """Return the spans as bars over time, indented by depth."""
    bars = tuple(
        Bar(each.span_id, each.events[0].type, f"{' ·' * each.depth} {each.name}".strip(), each.start, each.end, each.events[0].recorded_at,
            each.events[0].standing, happened=each.end is None or each.end <= each.start)
        for each in trace.spans
        if each.start is not None
    )  # fmt: skip
    title = next(_drawn(trace))
    return Scene(title, bars, total=len(bars), notes=trace.notes)
