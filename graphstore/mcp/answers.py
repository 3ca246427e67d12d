"""The answers of the tools for agents: flat values in few tokens, each with the coordinate it was read at, and each as text.

An empty field is left out of the structured answer: no `valid_to` is an open end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeVar

import orjson
from pydantic import Field

from graphstore.mcp.schemas import RARE
from graphstore.values.content_diff import changed_fields
from graphstore.values.findings import Chain, Change, Contradiction, EarlierStatement, Forgetting, words
from graphstore.values.models import Event, How, Json, Link, Node, Standing, Value, Version, in_words
from graphstore.values.period import clocked, during, exactly, when
from graphstore.values.text import because, line
from graphstore.view.view import View
from graphstore.view.write_warnings import deciding

V = TypeVar("V", bound=Value)

STATEMENT = 400
"""Columns of a statement in a list; `get` returns all of it."""


class AnswerTime(Value):
    """The coordinate of an answer: as of `valid` in the world, as the store knew it at `tx`."""

    valid: datetime
    tx: datetime

    def __str__(self) -> str:
        valid, tx = (clocked(each.replace(microsecond=0)) for each in (self.valid, self.tx))
        return f"as of {valid}, as known at {tx}"


class Answer(Value):
    """What every answer has: its coordinate, and how many parts were left out of this page. `more` is the cursor that goes on after it."""

    at: AnswerTime
    left_out: int = 0
    more: str | None = None

    _listed: ClassVar[Mapping[str, str]] = {}
    """The fields that are lines of the text, each with what its lines begin with."""

    def text(self) -> str:
        """The answer in words."""
        return "\n".join([*self._lines(), *self._tail()])

    def _headline(self) -> Iterable[str]:
        return ()

    def _lines(self) -> Iterable[str]:
        yield from self._headline()
        for name, begins in self._listed.items():
            value = getattr(self, name, None)
            values = value if isinstance(value, tuple) else filter(None, [value])
            yield from (f"{begins}{each}" for each in values)

    def _tail(self) -> Iterable[str]:
        if self.more:
            yield f"({self.left_out} more: call again with cursor={self.more!r})"
        yield f"({self.at})"


_CUT_OFF = "(the depth cut it off: there is more with a higher depth)"


class ThingLine(Value):
    """A node or an event in a line: `who` recorded what it says, and when. `kind` is an event's type; an event's `valid_from` is when it happened.
    `cut`: the statement is longer than shown."""

    id: str
    what: Literal["node", "event"]
    kind: str
    statement: str
    standing: Standing
    valid_from: datetime
    valid_to: datetime | None = None
    recorded_at: datetime
    who: str | None = None
    key: str | None = None
    tags: tuple[str, ...] | None = None
    scope: str | None = None
    user: str | None = None
    cut: bool | None = None

    def __str__(self) -> str:
        how = "" if self.standing == "stands" else f" {in_words(self.standing)},"
        whose = "".join(f"{what} {of}; " for what, of in (("scope", self.scope), ("user", self.user)) if of)
        at = when(self.valid_from) if self.what == "event" else during(self.valid_from, self.valid_to)
        recorded = _recorded(self.recorded_at, self.who, self.valid_from)
        return f"{self.id} [{self.kind}] {self.statement} ({whose}{how.strip()}{' ' if how else ''}{at}; {recorded})"


def _recorded(at: datetime, who: str | None, begin: datetime) -> str:
    """When something was recorded, and by whom; `begin`: since when it holds, which is shown beside it."""
    return f"recorded {'then' if at == begin else when(at)}{f' by {who}' if who else ''}"


class HitLine(ThingLine):
    """Something found. `coverage`: the share of the question that it says, `strength` whether that is enough to answer it. `via`: the links that lead to it
    from what the words found. `note`: why it is shaky, or how it disagrees; `other` is the id of what
    has fallen below it, or of what it disagrees with."""

    score: float | None = None
    coverage: float | None = None
    strength: str | None = None
    via: str | None = None
    other: str | None = None
    note: str | None = None

    def __str__(self) -> str:
        return super().__str__() + "".join(f" — {each}" for each in (self.via, self.note) if each)


class LinkLine(Value):
    """A link, `source kind target`, with what its other end says and how each end stands."""

    id: str
    source: str
    kind: str
    target: str
    other: str | None = None
    source_standing: Standing
    target_standing: Standing
    reason: str | None = None
    strength: int | None = None
    confidence: str
    created_by: str
    valid_from: datetime
    valid_to: datetime | None = None
    recorded_at: datetime

    def __str__(self) -> str:
        other = f" ({self.other})" if self.other else ""
        inferred = ", inferred" if self.confidence == "inferred" else ""
        recorded = _recorded(self.recorded_at, self.created_by, self.valid_from)
        held = f"{self.id}: {during(self.valid_from, self.valid_to)}; {recorded}{inferred}"
        return f"{self.source} {self.kind} {self.target}{other} ({held}){because(self.reason)}"


class VersionLine(Value):
    """A version over one period: its statement, when it holds, when the store recorded it and until when it believed it.

    `who` first recorded the version, and for what `reason`, whatever was left of its period later; `unsaid_by` changed it since; `changed`: the fields of the content that differ from what it replaced.
    """

    ref: str
    number: int
    statement: str
    valid_from: datetime
    valid_to: datetime | None = None
    recorded_at: datetime
    believed_until: datetime | None = None
    who: str | None = None
    reason: str | None = None
    source: str | None = None
    trigger: str
    unsaid_by: str | None = None
    unsaid_because: str | None = None
    changed: str | None = None
    cut: bool | None = None

    def __str__(self) -> str:
        by = f" by {self.who}" if self.who else ""
        until = f", believed until {when(self.believed_until)}" if self.believed_until else ""
        unsaid = " ".join(
            filter(
                None,
                (
                    self.unsaid_by and f"by {self.unsaid_by}",
                    self.unsaid_because and f"({self.unsaid_because})",
                ),
            )
        )
        gone = f" {unsaid}" if self.believed_until and unsaid else ""
        changed = f" [{self.changed}]" if self.changed else ""
        return f"{self.ref} {self.statement}{changed} ({during(self.valid_from, self.valid_to)}; recorded {when(self.recorded_at)}{by}{until}{gone}){because(self.reason)}"


class StepLine(Value):
    """One step of a succession: `id` took the place of `replaced`, since when in the world, when that was recorded, by whom and why.

    A thing that ended or was retracted with nothing in its place is a step without an id. `planned`: it begins later.
    """

    how: How
    planned: bool = False
    replaced: str | None = None
    id: str | None = None
    kind: str | None = None
    statement: str | None = None
    standing: Standing | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    since: datetime | None = None
    recorded_at: datetime
    who: str | None = None
    reason: str | None = None
    link: str | None = None

    def __str__(self) -> str:
        by = f" by {self.id} ({self.statement})" if self.id else ""
        since = f" {'from' if self.planned else 'since'} {when(self.since)}" if self.since else ""
        who = f" by {self.who}" if self.who else ""
        of = f"{'planned: ' if self.planned else ''}{self.replaced} " if self.replaced else ""
        return f"{of}{self.how}{by}{since} (recorded {when(self.recorded_at)}{who}){because(self.reason)}"


class OperationLine(Value):
    """An operation: what was done to what, by whom, when it was recorded, and why."""

    verb: str
    subject: str
    who: str | None = None
    recorded_at: datetime
    reason: str | None = None

    def __str__(self) -> str:
        who = f" by {self.who}" if self.who else ""
        return f"{when(self.recorded_at)} {self.verb} {self.subject}{who}{because(self.reason)}"


class ReachedLine(ThingLine):
    """A thing that a chain of links reaches: so many `hops` away, by the link `by` of the thing `of` nearer to the beginning."""

    hops: int
    by: str | None = None
    of: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return f"{'  ' * (self.hops - 1)}{self.by}: {super().__str__()}{because(self.reason)}"


class SearchAnswer(Answer):
    """What a search found, best first. `note` says how it was searched."""

    hits: tuple[HitLine, ...] = ()
    note: str

    def _lines(self) -> Iterable[str]:
        yield from map(str, self.hits) if self.hits else ("Nothing found.",)
        yield f"({self.note})"


class ListAnswer(Answer):
    """What stands, newest first. `total`: how many there are over all pages."""

    things: tuple[ThingLine, ...] = ()
    total: int

    def _lines(self) -> Iterable[str]:
        yield from map(str, self.things) if self.things else ("Nothing stands here.",)


class ReviewLine(Value):
    """Something to look at, and the calls that settle it."""

    what: str
    ids: tuple[str, ...]
    text: str
    call: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text} → {self.call}"


class ReviewAnswer(Answer):
    """What somebody should look at, each with the call that settles it."""

    items: tuple[ReviewLine, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield from map(str, self.items) if self.items else ("There is nothing to look at.",)


class GetAnswer(Answer):
    """One thing in full. `links` begin at it, `backlinks` end at it; `history` is what is believed of it over all valid time; `occurrences`
    are of an event that came again, newest first.

    A content too long for one page comes as `content_pieces` of its JSON text, to be put together over the pages.
    """

    thing: ThingLine
    version: int | None = None
    source: str | None = None
    confirmations: int = 0
    content: Json | None = None
    content_pieces: tuple[str, ...] = ()
    links: tuple[LinkLine, ...] = ()
    backlinks: tuple[LinkLine, ...] = ()
    history: tuple[VersionLine, ...] = ()
    occurrences: tuple[Json, ...] = ()

    _listed = {"links": "link: ", "backlinks": "backlink: ", "history": "version: "}

    def _lines(self) -> Iterable[str]:
        version = f", version {self.version}" if self.version else ""
        confirmed = f", confirmed {self.confirmations} times" if self.confirmations else ""
        source = f", from {self.source}" if self.source else ""
        yield f"{self.thing}{version}{source}{confirmed}"
        if self.content is not None:
            yield _compact(self.content)
        yield from self.content_pieces
        yield from super()._lines()
        yield from (f"occurrence: {_compact(each)}" for each in self.occurrences)


class SupersededAnswer(Answer):
    """What became of a thing, in a sentence (`answer`); `chain` the steps away from the subject in order; `current` what stands now at their
    ends, several when it `forked`. As text it is a paragraph to quote.

    Without a subject the text fits several: ask again with an id of `candidates`. With one, `candidates` are what the text might have meant instead.
    """

    answer: str
    paragraph: str = Field("", exclude=True, json_schema_extra=RARE)
    subject: ThingLine | None = None
    standing: Standing | None = None
    retracted: bool = False
    forked: bool = False
    chain: tuple[StepLine, ...] = ()
    current: tuple[ThingLine, ...] = ()
    candidates: tuple[ThingLine, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield self.paragraph
        yield from (f"stands: {each}" for each in self.current if f"({each.id})" not in self.paragraph)
        yield from (
            f"step: {each}"
            for each in self.chain
            if not _told(self.paragraph, each.id or each.replaced, each)
        )
        other = "may also be meant" if self.subject else "may be meant"
        yield from (f"{other}: {each}" for each in self.candidates)


class HistoryAnswer(Answer):
    """Every version of a node that was ever believed, in the order of recording."""

    id: str
    kind: str
    standing: Standing
    versions: tuple[VersionLine, ...] = ()

    _listed = {"versions": ""}

    def _headline(self) -> Iterable[str]:
        yield f"{self.id} [{self.kind}] {in_words(self.standing)}"


class BriefAnswer(Answer):
    """What to know before working: `brief` is the text, `ids` the things in it; changes are listed from `since` on. `left_out` counts what had no room."""

    brief: str
    since: datetime
    last_visit: datetime | None = None
    ids: tuple[str, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield self.brief


class ReaderLine(Value):
    """An agent whose answers contained some things: the last of these answers was given at `at`."""

    agent: str
    ids: tuple[str, ...]
    at: datetime

    def __str__(self) -> str:
        return f"{self.agent} (last {when(self.at)}): {', '.join(self.ids)}"


class WhyAnswer(Answer):
    """Why a thing is as it is, in a sentence how it stands (`answer`): `said`, who did what to it, when and why; `causes`, what led to it; `rests_on`, what it is built on and which of that
    has fallen; `replaces`, what it took the place of, and why; `shaky`, what fell below it; `readers`, whose answers contained it, as far as that is recorded. `truncated`: the depth cut `causes` off."""

    answer: str
    paragraph: str = Field("", exclude=True, json_schema_extra=RARE)
    subject: ThingLine
    shaky: str | None = None
    said: tuple[OperationLine, ...] = ()
    causes: tuple[ReachedLine, ...] = ()
    rests_on: tuple[LinkLine, ...] = ()
    replaces: tuple[LinkLine, ...] = ()
    readers: tuple[ReaderLine, ...] = Field((), json_schema_extra=RARE)
    truncated: bool = False

    def _lines(self) -> Iterable[str]:
        yield self.paragraph
        said = [
            each for each in self.said if f"{when(each.recorded_at)}{_by_whom(each)}" not in self.paragraph
        ]
        named = (
            ("said", said),
            ("causes", self.causes),
            ("rests on", self.rests_on),
            ("replaces", self.replaces),
        )
        for name, found in named:
            if found:
                yield f"{name}:"
                yield from (f"  {each}" for each in found)
            if name == "causes" and self.truncated:
                yield f"  {_CUT_OFF}"
        yield from (f"was in answers to {each}" for each in self.readers)


def _by_whom(done: OperationLine) -> str:
    who = f" by {done.who}" if done.who else ""
    return who + (f", because: {done.reason.rstrip('.')}" if done.reason else "")


def _told(answer: str, id: str | None, step: StepLine) -> bool:
    """Whether a paragraph has a step already: what it is of, when it was recorded, and why."""
    why = (step.reason or "").rstrip(".")
    return f"({id})" in answer and f"(recorded {when(step.recorded_at)}" in answer and why in answer


class EntryLine(Value):
    """Something on a timeline: a message, an event, or a version of a node, at its instant in the world."""

    at: datetime
    what: Literal["message", "event", "version"]
    id: str
    kind: str
    statement: str
    who: str | None = None
    standing: Standing | None = None
    until: datetime | None = None
    recorded_at: datetime | None = None
    replaced_by: tuple[str, ...] | None = None
    cut: bool | None = None

    def __str__(self) -> str:
        who = f"{self.who}: " if self.who else ""
        how = f" ({in_words(self.standing)})" if self.standing and self.standing != "stands" else ""
        by = f" → {', '.join(self.replaced_by)}" if self.replaced_by else ""
        recorded = (
            f" (recorded {when(self.recorded_at)})"
            if self.recorded_at and self.recorded_at != self.at
            else ""
        )
        return f"{when(self.at)} {self.id} [{self.kind}] {who}{self.statement}{how}{by}{recorded}"


class TimelineAnswer(Answer):
    """What happened and what was stated, newest first. `of` names the timeline."""

    of: str
    entries: tuple[EntryLine, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield f"{self.of}:"
        yield from map(str, self.entries) if self.entries else ("nothing",)


class FieldLine(Value):
    """One difference of a content: at `path`, from `old` to `new`."""

    id: str
    path: str
    type: str
    old: Any = None
    new: Any = None

    def __str__(self) -> str:
        return f"{self.id} {self.path}: {self.type} {self.old!r} → {self.new!r}"


class DiffAnswer(Answer):
    """What differs: between two versions of one thing (`changes`), or between the coordinates `before` and `at`."""

    before: AnswerTime | None = None
    id: str | None = None
    old: int | None = None
    new: int | None = None
    changes: tuple[FieldLine, ...] = ()
    added: tuple[ThingLine, ...] = ()
    removed: tuple[ThingLine, ...] = ()
    changed: tuple[ThingLine, ...] = ()
    links_added: tuple[LinkLine, ...] = ()
    links_removed: tuple[LinkLine, ...] = ()
    needed_them: tuple[str, ...] = Field((), json_schema_extra=RARE)

    _listed = {
        "before": "from ",
        "needed_them": "left out too: ",
        "added": "added: ",
        "removed": "removed: ",
        "changed": "changed: ",
        "changes": "changes: ",
        "links_added": "links added: ",
        "links_removed": "links removed: ",
    }


class SpanLine(Value):
    """A span of a trace: `depth` levels below a root. Seconds where its end is known."""

    span: str
    parent: str | None = None
    depth: int
    name: str
    start: datetime | None = None
    seconds: float | None = None
    missing: bool | None = None
    events: tuple[str, ...] = ()

    def __str__(self) -> str:
        length = "" if self.seconds is None else f" {self.seconds:.3g} s"
        return f"{'  ' * self.depth}{self.name or self.span}{length}"


class TraceAnswer(Answer):
    """The spans of a trace as a tree in order (`spans`), or a chain of links from a thing (`root`, `reached`). `truncated`: the depth cut something off."""

    kind: Literal["trace", "chain"]
    direction: Literal["up", "down"] | None = None
    root: ThingLine | None = None
    reached: tuple[ReachedLine, ...] = ()
    truncated: bool = False
    spans: tuple[SpanLine, ...] = ()
    events: tuple[ThingLine, ...] = ()
    notes: tuple[str, ...] = ()

    _listed = {"spans": "", "events": "", "notes": ""}

    def _headline(self) -> Iterable[str]:
        if self.root is not None:
            yield str(self.root)
            yield from (
                map(str, self.reached)
                if self.reached
                else ("nothing rests on it" if self.direction == "down" else "nothing led to it",)
            )
        if self.truncated:
            yield _CUT_OFF


class KindLine(Value):
    """A kind of node, event or link: how many there are, and (of nodes) the fields of their contents."""

    what: Literal["node", "event", "link"]
    kind: str
    count: int
    fields: tuple[str, ...] | None = None
    meaning: str | None = None

    def __str__(self) -> str:
        fields = f": {', '.join(self.fields)}" if self.fields else ""
        return f"{self.what} {self.kind} ({self.count}){fields}{f' — {self.meaning}' if self.meaning else ''}"


class SchemaAnswer(Answer):
    """What there is here: kinds with their counts, the graph as Cypher sees it, and the names of snapshots and branches."""

    graph: str
    counts: dict[str, int]
    kinds: tuple[KindLine, ...] = ()
    snapshots: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    branch: str | None = None

    _listed = {"graph": "", "kinds": "", "snapshots": "snapshot ", "branches": "branch "}


class RowsAnswer(Answer):
    """The rows of a query, each a list in the order of `columns`. `cut_cells`: texts longer than shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = ()
    cut_cells: int = 0
    warnings: tuple[str, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield " | ".join(self.columns)
        for row in self.rows:
            yield " | ".join(cell if isinstance(cell, str) else _compact(cell) for cell in row)
        yield from self.warnings
        if self.cut_cells:
            yield f"({self.cut_cells} texts are longer than shown: ask for substring(…), or get(id=…))"


class EventsAnswer(Answer):
    """What happened, newest first, and the patterns in it. `total_events` counts all that match."""

    summary: str
    total_events: int
    time_range: str
    patterns: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()

    def _lines(self) -> Iterable[str]:
        yield self.summary
        yield from (f"pattern: {each['description']}" for each in self.patterns)
        for event in self.events:
            links = "; ".join(f"{link['relationship']} {link['target']}" for link in event["links"])
            times = f"{event['count']} times, last {event['last_seen']}" if "count" in event else None
            state = ", ".join(filter(None, (event["status"], times)))
            recorded = _recorded(
                datetime.fromisoformat(event["recorded_at"]),
                event.get("author"),
                datetime.fromisoformat(event["timestamp"]),
            )
            tail = f" ({'; '.join(filter(None, (state, recorded)))})" + (f" — {links}" if links else "")
            yield f"{event['timestamp']} {event['id']} [{event['type']}] {line(event['description'], STATEMENT)}{tail}"


class WriteAnswer(Answer):
    """What the answers of tools that write have: `tx`, the transaction, by which `undo` takes it back; none where nothing was written."""

    tx: datetime | None = None
    readers: tuple[ReaderLine, ...] = Field((), json_schema_extra=RARE)

    _listed = {
        "also": "",
        "resolved": "  resolved by it: ",
        "old": "  old: ",
        "things": "  now: ",
        "source": "  now: ",
        "target": "  now: ",
        "holds_again": "  holds again: ",
        "now_shaky": "  rests on it and is shaky now: ",
        "warnings": "",
    }

    def _tail(self) -> Iterable[str]:
        yield from (f"  no longer holds in what was answered to {each}" for each in self.readers)
        if self.tx is not None:
            yield f"(written at tx {exactly(self.tx)})"
        yield from super()._tail()


class EarlierLine(EarlierStatement):
    """A statement that stands and says what was just written (`of`), or something that may contradict it; `calls` are the tools that decide."""

    def __str__(self) -> str:
        unsure = " (unsure)" if self.unsure else ""
        calls = f" — decide: {'; '.join(self.calls)}" if self.calls else ""
        return f"{super().__str__()}{unsure}{calls}"


class RememberAnswer(WriteAnswer):
    """What `remember` or `amend` did: `new`, `revised`, `amended`, or `confirmed` (it was known already; nothing was added). `closed` is what it took the place of,
    `conflicts` what a link says it contradicts, `similar` what says the same already, `maybe_contrary` what seems to state another value for the same."""

    outcome: Literal["new", "confirmed", "revised", "amended"]
    thing: ThingLine
    closed: tuple[ThingLine, ...] = ()
    conflicts: tuple[ThingLine, ...] = Field((), json_schema_extra=RARE)
    similar: tuple[EarlierLine, ...] = Field((), json_schema_extra=RARE)
    maybe_contrary: tuple[EarlierLine, ...] = ()
    now_shaky: tuple[ThingLine, ...] = ()

    _listed = {
        "closed": "  took the place of ",
        "conflicts": "  contradicts ",
        "similar": "  already recorded: ",
        "maybe_contrary": "  seems to contradict ",
        "now_shaky": "  rests on what changed and is shaky now: ",
    }

    def _headline(self) -> Iterable[str]:
        yield f"{self.outcome}: {self.thing}"


class RememberManyAnswer(WriteAnswer):
    """What `remember_many` did: the things in the order given, and the ids of those that were `confirmed`; the rest as of `remember`."""

    things: tuple[ThingLine, ...]
    confirmed: tuple[str, ...] = ()
    closed: tuple[ThingLine, ...] = ()
    conflicts: tuple[ThingLine, ...] = Field((), json_schema_extra=RARE)
    similar: tuple[EarlierLine, ...] = Field((), json_schema_extra=RARE)
    maybe_contrary: tuple[EarlierLine, ...] = ()
    now_shaky: tuple[ThingLine, ...] = ()

    _listed = RememberAnswer._listed

    def _headline(self) -> Iterable[str]:
        for each in self.things:
            yield f"{'confirmed' if each.id in self.confirmed else 'new'}: {each}"


class RecordEventAnswer(WriteAnswer):
    """What `record_event` did. Not `is_new`: it happened before, and is counted as another occurrence of that event."""

    event: ThingLine
    is_new: bool
    count: int
    status: str | None = None
    resolved: tuple[ThingLine, ...] = ()
    warnings: tuple[str, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield f"{'recorded' if self.is_new else f'happened again ({self.count} times now)'}: {self.event}"


class SupersedeAnswer(WriteAnswer):
    """What `supersede` did: the link that says so, and how the two stand now."""

    link: LinkLine
    old: ThingLine
    by: ThingLine
    now_shaky: tuple[ThingLine, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield str(self.link)


class RetractAnswer(WriteAnswer):
    """What `retract` did, and what rests on it and is shaky now: look at each, then revise, retract or confirm it."""

    how: Literal["retracted", "ended"]
    thing: ThingLine
    now_shaky: tuple[ThingLine, ...] = ()
    holds_again: tuple[ThingLine, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield f"{self.how}: {self.thing}"


class UndoAnswer(WriteAnswer):
    """What `undo` did: `undone` is the transaction it took back, `operations` what that was, `things` how each stands now; `holds_again` what that had
    closed or shaken. Undo its own `tx` to have it again."""

    undone: datetime
    operations: tuple[str, ...] = ()
    things: tuple[ThingLine, ...] = ()
    holds_again: tuple[ThingLine, ...] = ()
    now_shaky: tuple[ThingLine, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield f"took back what was written at {exactly(self.undone)}: {'; '.join(self.operations)}"


class LinkAnswer(WriteAnswer):
    """What `link` did; `also`: with the other pairs. Not `is_new`: the link was there already."""

    link: LinkLine
    is_new: bool
    also: tuple[str, ...] | None = None
    now_shaky: tuple[ThingLine, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield linked(self.link, self.is_new)


def linked(link: LinkLine, is_new: bool) -> str:
    """Return a line about a link that was asked for."""
    return f"{'linked' if is_new else 'linked before'}: {link}"


class UnlinkAnswer(WriteAnswer):
    """What `unlink` did: how the two ends of the link stand now."""

    kind: str
    source: ThingLine
    target: ThingLine

    def _headline(self) -> Iterable[str]:
        yield f"no longer: {self.source.id} {self.kind} {self.target.id}"


class JoinAnswer(WriteAnswer):
    """What `join` did: `id` means `into` from now on; without `into` it is a thing of its own again. `unsaid`: what `id` said, where `into` says something else,
    which alone counts now."""

    id: str
    into: str | None = None
    things: tuple[ThingLine, ...]
    unsaid: str | None = None

    def _headline(self) -> Iterable[str]:
        yield (
            f"{self.id} is a thing of its own again"
            if self.into is None
            else f"{self.id} means {self.into} now"
        )
        if self.unsaid is not None:
            yield f"Only what {self.into} says counts now. If this is so too, remember it of {self.into}: {self.unsaid}"


class DefineKindAnswer(WriteAnswer):
    """The kind of link that is known now."""

    kind: str

    def _headline(self) -> Iterable[str]:
        yield f"{self.kind} is a kind of link"


class ResolveAnswer(WriteAnswer):
    """What `resolve` did: how the two stand now, `both` where both were kept, and what rests on the one that fell and is shaky now."""

    kept: str
    things: tuple[ThingLine, ...]
    now_shaky: tuple[ThingLine, ...] = ()

    def _headline(self) -> Iterable[str]:
        yield f"kept: {self.kept}"


class ForgetAnswer(WriteAnswer):
    """What `forget` did: nothing but this line is left of it."""

    thing: ThingLine

    def _headline(self) -> Iterable[str]:
        yield f"erased: {self.thing}"


class ForgetPersonAnswer(WriteAnswer):
    """What `forget_person` found of a person: what is erased, or would be, and what stays and why."""

    found: Forgetting

    def _headline(self) -> Iterable[str]:
        yield str(self.found)


def _compact(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()


# ---------------------------------------------------------------- from the store's values


def like(kind: type[V], value: object, /, **more: Any) -> V:
    """Return a record of a kind with the fields of another that have the same names, and more."""
    names = [name for name in kind.model_fields if name not in more and hasattr(value, name)]
    return kind(**{name: getattr(value, name) for name in names}, **more)


def at(view: View) -> AnswerTime:
    """The coordinate of a view."""
    return like(AnswerTime, view.at)


def cut(text: str, most: int = STATEMENT) -> dict[str, Any]:
    """A statement as it is shown in a list, and whether it is longer."""
    shown = line(text, most)
    return {
        "statement": shown,
        "cut": True if shown.endswith("…") and not text.rstrip().endswith("…") else None,
    }


def fields(view: View, node: Node | Event) -> dict[str, Any]:
    """The fields of a `ThingLine`."""
    common = {
        "id": node.id,
        "standing": node.standing,
        "recorded_at": node.recorded_at,
        "who": node.author,
        **cut(words(node)),
    }
    if isinstance(node, Event):
        return {**common, "what": "event", "kind": node.type, "valid_from": node.occurred_at}
    return {
        **common,
        "what": "node",
        "kind": node.kind,
        "valid_from": node.valid_from,
        "valid_to": _end(view, node),
        "key": node.key,
        "tags": node.tags or None,
        "scope": node.scope or None,
        "user": whose if isinstance(whose := node.content.get("user"), str) else None,
    }


def _end(view: View, node: Node) -> datetime | None:
    """Until when it holds. What has fallen shows the period it once was believed to have; when it ended is in what is believed since."""
    if node.tx_to is None:
        return node.valid_to
    believed = [version.valid_to for version in view.history(node.id) if version.number == node.number]
    return believed[-1] if believed else node.valid_to


def thing(view: View, node: Node | Event) -> ThingLine:
    """A node or event in a line."""
    return ThingLine(**fields(view, node))


def things(view: View, nodes: Iterable[Node | Event]) -> list[ThingLine]:
    """Several of them."""
    return [thing(view, node) for node in nodes]


def earlier_lines(found: Iterable[EarlierStatement], *, is_contrary: bool) -> tuple[EarlierLine, ...]:
    """Warnings about a write, with the tools that decide."""
    return tuple(
        like(
            EarlierLine,
            each,
            statement=line(each.statement, STATEMENT),
            calls=deciding(each.of, each.id, is_contrary=is_contrary, as_tools=True),
        )
        for each in found
    )


def link_line(link: Link, other: Node | Event | None = None) -> LinkLine:
    """A link, with what the thing at its other end says."""
    return like(LinkLine, link, other=None if other is None else line(words(other), STATEMENT))


def version_lines(versions: Iterable[Version], done: Sequence[Change]) -> list[VersionLine]:
    """The rows of a node ever believed, with why each was said, and who took it back. `done`: what was done to the node."""
    rows = list(versions)
    return [_version_line(*each, done) for each in zip(rows, changed_fields(rows), strict=True)]


def _version_line(version: Version, changed: str, done: Sequence[Change]) -> VersionLine:
    begun = _by(done, version.recorded_at, version.id)
    unsaid = None if version.tx_to is None else _by(done, version.tx_to, version.id)
    return like(
        VersionLine,
        version,
        believed_until=version.tx_to,
        who=version.author,
        reason=begun.reason if begun else None,
        unsaid_by=unsaid.author if unsaid else None,
        unsaid_because=unsaid.reason if unsaid else None,
        changed=line(changed, STATEMENT) or None,
        **cut(words(version)),
    )


def _by(done: Iterable[Change], tx: datetime, id: str) -> Change | None:
    """The operation of an instant: that on the thing itself where there is one."""
    there = [each for each in done if each.tx == tx]
    return next((each for each in there if each.subject == id), there[0] if there else None)


def done_line(change: Change) -> OperationLine:
    """An operation."""
    return like(OperationLine, change, who=change.author, recorded_at=change.tx)


def reached(view: View, chain: Chain, upward: bool) -> list[ReachedLine]:
    """The things of a chain in the order they were reached, each with the link that reached it first."""
    hops, by = {chain.root.id: 0}, {}
    waiting = list(chain.links)
    while waiting:
        left = []
        for link in waiting:
            near, far = (link.source, link.target) if upward else (link.target, link.source)
            if link.kind == "supports":  # its target rests on its source
                near, far = far, near
            if near in hops:
                if far not in hops:
                    hops[far], by[far] = hops[near] + 1, (link, near)
            else:
                left.append(link)
        if len(left) == len(waiting):
            break
        waiting = left
    return [
        ReachedLine(
            **fields(view, node),
            hops=hops[node.id],
            by=by[node.id][0].kind,
            of=by[node.id][1],
            reason=by[node.id][0].reason,
        )
        for node in chain.nodes
        if node.id in by
    ]


def disagreement(found: Contradiction, id: str) -> Node | Event:
    """Of the two that contradict each other, the other one."""
    return found.target if found.source.id == id else found.source
