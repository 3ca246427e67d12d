"""The room of topics: memorizes messages, and shows what stands on a topic now, what stood before, and what is planned.

A topic is a key, or a tag, or else any words of a full-text search; the answer states which. Names are resolved through the index, and only
the statements that are shown are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import InvalidError, NotFoundError, closest
from graphstore.store import registry
from graphstore.topics.conventions import EVIDENCE, Note, note_of
from graphstore.topics.strategies import (
    DEFAULT,
    Choice,
    Decision,
    decide,
    explicit_override,
    latest_wins,
    strategy_for,
    versioned_topics,
)
from graphstore.values.findings import EarlierStatement
from graphstore.values.inputs import brief, optional_text, text_of, whole_number
from graphstore.values.keys import topic_name, version_of
from graphstore.values.models import UPRIGHT, Json, Link, Node, Standing, Value
from graphstore.values.period import BEGINNING, OPEN, end_moment, moment, when
from graphstore.values.text import described, line
from graphstore.view import write_warnings
from graphstore.view.topic_rows import FoundBy, TopicRow, TopicRows
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

__all__ = [
    "Decision", "Latest", "Memorized", "Mention", "Settled", "Timeline", "explicit_override", "latest_on", "latest_wins", "memorize", "settle",
    "topic", "versioned_topics",
]  # fmt: skip

LISTED = 20
"""The default number of entries in each list of an answer. The rest are counted."""
_LABELS = ("label", "sprint", "session")
_SHOWN = 120
_FORGOTTEN = ("evicted", "erased")


# ---- answers ----------------------------------------------------------------------------------


class Mention(Value):
    """One statement of a topic: its name there, its text, and how it stands at the coordinate."""

    name: str
    id: str
    says: str
    label: str | None
    """The label it keeps: `Sprint 3`. None where it has none; then the date is shown."""
    standing: Standing
    valid_from: datetime
    valid_to: datetime | None
    replaced_by: tuple[str, ...]

    @property
    def as_of(self) -> str:
        """Its label, or else the date it holds from."""
        return self.label or when(self.valid_from)

    def __str__(self) -> str:
        how = "" if self.standing in UPRIGHT else f", {self.standing.replace('_', ' ')}"
        return f"{self.says} ({self.as_of}{how})"


class Latest(Value):
    """What stands on a topic. `node` is None when nothing does, or when the strategy cannot decide between those in `also`.

    `limit` truncates each list; `more` counts what was left out.
    """

    topic: str
    found_by: FoundBy | None
    node: Node | None
    label: str | None
    as_of: datetime | None
    """Since when it holds."""
    decision: Decision | None
    also: tuple[Mention, ...]
    """What else stands, newest first."""
    previous: tuple[Mention, ...]
    """What fell, newest first."""
    planned: tuple[Mention, ...]
    """What is to hold later, the next first."""
    more: int
    nearest: tuple[str, ...]
    """Names like an unknown topic; where there are none, keys and ids of what says a part of it."""

    def __str__(self) -> str:
        if self.found_by is None:
            return _unknown(self.topic, self.nearest)
        parts = [self._first()]
        if self.also and self.node is not None:
            parts.append(f"also {', '.join(map(_current, self.also))}")
        if self.previous:
            parts.append(f"previously {', '.join(map(str, self.previous))}")
        if self.planned:
            parts.append(f"planned {', '.join(map(_planned, self.planned))}")
        return "; ".join([*parts, f"{self.more} more"] if self.more else parts)

    def _first(self) -> str:
        if self.node is not None:
            text = line(described(self.node.content, self.node.text), _SHOWN)
            return f"{text} (as of {self.label or when(self.node.valid_from)})"
        if self.also:
            return f"undecided between {', '.join(map(_current, self.also))}"
        return f"nothing stands on {self.topic!r}"


class Timeline(Value):
    """A topic over valid time: each list in that order, every statement with what replaced it. As text, a line for each version, in that order too."""

    topic: str
    found_by: FoundBy | None
    past: tuple[Mention, ...]
    current: tuple[Mention, ...]
    planned: tuple[Mention, ...]
    nearest: tuple[str, ...]

    def __str__(self) -> str:
        if self.found_by is None:
            return _unknown(self.topic, self.nearest)
        words = {
            "superseded": "",
            "stands": " (current)",
            "shaky": " (current, shaky)",
            "not_yet": " (planned)",
        }
        ordered = sorted((*self.past, *self.current, *self.planned), key=attrgetter("valid_from"))
        return "\n".join(
            f"{each.name}: {each.says}{words.get(each.standing, f' ({each.standing})')}" for each in ordered
        )


class Memorized(Value):
    """What `memorize` wrote: a node for each message, the supersessions they stated, and remarks on what gave way or was taken as text. `similar` is what
    says the same as a message already, `maybe_contrary` what may contradict one."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    remarks: tuple[str, ...]
    similar: tuple[EarlierStatement, ...] = ()
    maybe_contrary: tuple[EarlierStatement, ...] = ()


class Settled(Value):
    """What `settle` decided, and the supersessions that record it; none when there was nothing to decide, or it could not be."""

    decision: Decision | None
    links: tuple[Link, ...]


def _unknown(topic: str, nearest: Sequence[str]) -> str:
    hint = f" Nearest: {', '.join(map(repr, nearest))}." if nearest else ""
    return f"Nothing is surely about {topic!r}.{hint}"


def _current(each: Mention) -> str:
    return f"{each.says} (as of {each.as_of})"


def _planned(each: Mention) -> str:
    label = f"{each.label}, " if each.label else ""
    return f"{each.says} ({label}from {when(each.valid_from)})"


# ---- memorizing -------------------------------------------------------------------------------


@registry.write("topics")
def memorize(
    store: Store, messages: Iterable[Any], *, session: str | None = None, kind: str = EVIDENCE
) -> Memorized:
    """Record messages: a node for each, with the dates, tags, role and supersessions written in it. One transaction, all or nothing.

    A message is a dict with `role` and `content` (text, or a list of parts), or a pair (role, text); it may have an `id`, `kind`, `key`, `tags`,
    `session`, `timestamp`, `supersedes`. A date is the instant it holds from: that beside the tags, else the prefix, the role, the timestamp, else now.
    Raises InvalidError for what is no message or date, NotFoundError for an unknown id after SUPERSEDES; both name the message, and nothing is written.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise InvalidError(
            f"messages {messages!r} is no list. Give a list of dicts with role and content, or of pairs (role, text)."
        )
    optional_text("session", session)
    notes = []
    for number, message in enumerate(messages, 1):
        try:
            notes.append(note_of(message, session, text_of("kind", kind)))
        except InvalidError as error:
            raise InvalidError(f"message {number}: {error}") from None
    with store.verb() as work:
        _refuse_unknown(store, notes)
        names = [note_down(store, note) for note in _named(store, notes)]
        links = [
            link for name, note in zip(names, notes, strict=True) for link in replace_named(store, name, note)
        ]
        with store.reading(is_narrow=True) as sight:
            things = [sight.thing(sight.entity(name)) for name in names]
    nodes = [thing for thing in things if isinstance(thing, Node)]
    remarks = [
        f"message {number}: {remark}" for number, note in enumerate(notes, 1) for remark in note.remarks
    ]
    warned = write_warnings.warned(store, nodes, moment(work.tx))
    return Memorized(
        nodes=tuple(nodes), links=tuple(links), remarks=tuple(remarks),
        similar=tuple(each for node in warned for each in node.similar),
        maybe_contrary=tuple(each for node in warned for each in node.maybe_contrary),
    )  # fmt: skip


def _refuse_unknown(store: Store, notes: Sequence[Note]) -> None:
    """Raise NotFoundError for an unknown id. Only a whole id supersedes: `node_1` must not match `node_12`."""
    coming = {note.id for note in notes if note.id is not None}
    for number, note in enumerate(notes, 1):
        for old in note.supersedes:
            if old not in coming and not store.knows(old):
                with store.reading(is_narrow=True) as sight:
                    known = partial(chain, sight.ids_beside(old), coming)
                    refused = str(NotFoundError.nearest("node", old, known))
                raise NotFoundError(
                    f"message {number} supersedes what is not known: {refused} Nothing was written."
                )


def _named(store: Store, notes: Sequence[Note]) -> list[Note]:
    """Give an ascending id to each note without one: of two messages with one date in one call, the later is the latest."""
    bare = [note.id is None and note.key is None for note in notes]
    drawn = iter(sorted(store._new_id() for _ in range(sum(bare))))
    return [replace(note, id=next(drawn)) if each else note for each, note in zip(bare, notes, strict=True)]


@registry.write("topics")
def note_down(store: Store, note: Note) -> str:
    """Add the node of a note and return its id; for a note with a key that of a node with the same statement, if there is one."""
    _check(note)
    at = None if note.at is None else moment(note.at)
    return store.add_node(
        note.kind, note.content, id=note.id, key=note.key, text=note.text, tags=note.tags, valid_from=at
    ).id


@registry.write("topics")
def replace_named(store: Store, name: str, note: Note) -> list[Link]:
    """Write the supersessions that a note states. All notes of a call are nodes by now, so one may name a later one."""
    _check(note)
    old = [each for each in note.supersedes if each != name]
    return store.supersede(*old, by=name) if old else []


def _check(note: Note) -> None:
    """Raise InvalidError for a value that is not a Note, or a date out of range."""
    if not isinstance(note, Note):
        raise InvalidError(f"note {brief(note)} is no Note. Give one that messages were read as.")
    if note.at is not None and not BEGINNING <= note.at <= OPEN:
        raise InvalidError(f"the instant {note.at} of a note is beyond the years 1 to 9999.")


# ---- reading ----------------------------------------------------------------------------------


@registry.read("topics")
def latest_on(
    view: Reader,
    topic: str,
    *,
    strategy: Choice | Mapping[str, Choice] = DEFAULT,
    kind: str | None = None,
    scope: str | None = None,
    limit: int | None = LISTED,
) -> Latest:
    """What stands on a topic at the coordinate, since when, what it was before and what is planned. For an unknown topic the answer names the nearest ones.

    `topic`: a key (`auth_v2` selects that version alone), a tag, or any words. When several stand, `strategy` decides which is `node`: a name, a
    function of (statements, links), or a mapping from topic, kind or `*` to one. `kind` and `scope` leave out all others.
    Raises InvalidError for a blank topic or an unknown strategy.
    """
    most = whole_number("limit", limit)
    plain = topic_name(text_of("topic", topic))
    if strategy != DEFAULT:
        strategy_for(strategy, plain)
    with view.reading() as sight:
        found = _TopicAnswer(sight, topic, plain, kind, scope)
        found.pass_versions()
        decision = found.decide(strategy)
        won = found.winner(decision)
        node = None if won is None else found.node(won)
        others = [each for each in found.current if each is not won] if len(found.current) > 1 else []
        also = found.mentions(found.by_age(others)[::-1], most) if others else ()
        previous = found.mentions(found.by_age(found.past)[::-1], most) if found.past else ()
        planned = found.mentions(found.by_age(found.planned), most) if found.planned else ()
        shown = len(also) + len(previous) + len(planned)
        return Latest.made(
            {
                "topic": topic,
                "found_by": found.by,
                "node": node,
                "label": None if node is None else label_of(node.content),
                "as_of": None if node is None else node.valid_from,
                "decision": decision,
                "also": also,
                "previous": previous,
                "planned": planned,
                "more": len(others) + len(found.past) + len(found.planned) - shown,
                "nearest": () if found.by else found.nearest(),
            }
        )


@registry.read("topics")
def topic(view: Reader, topic: str, *, kind: str | None = None, scope: str | None = None) -> Timeline:
    """All statements of a topic, as believed at the coordinate: past, current and planned, in the order of valid time.

    Versions are named by their key (`auth_v2`) or, where that has no number, counted. A version under a key with a number holds until a higher one
    of its scope begins, whether or not that supersedes it. Raises InvalidError for a blank topic.
    """
    plain = topic_name(text_of("topic", topic))
    with view.reading() as sight:
        found = _TopicAnswer(sight, topic, plain, kind, scope)
        found.pass_versions()
        names = found.numbered(plain)
        past, current, planned = (
            tuple(found.mention(each, names[each]) for each in found.by_age(part))
            for part in (found.past, found.current, found.planned)
        )
        return Timeline(
            topic=topic,
            found_by=found.by,
            past=past,
            current=current,
            planned=planned,
            nearest=() if found.by else found.nearest(),
        )


@registry.write("topics")
def settle(
    store: Store,
    topic: str,
    *,
    strategy: Choice | Mapping[str, Choice] = DEFAULT,
    reason: str,
    kind: str | None = None,
    scope: str | None = None,
) -> Settled:
    """Let a strategy decide between those that stand on a topic, and write it down: what won supersedes what lost, with the reason, as one transaction.

    What a strategy leaves undecided stays as it is. Only what bears the key or tag is settled: what a search finds may be of another topic.
    Raises NotFoundError for an unknown topic, InvalidError for one that only a search finds, or whose statements are of several scopes.
    """
    text_of("reason", reason)
    plain = topic_name(text_of("topic", topic))
    with store.verb():
        with store.reading() as sight:
            found = _TopicAnswer(sight, topic, plain, kind, scope)
            if found.by is None:
                raise NotFoundError(_unknown(topic, found.nearest()))
            if found.by == "text":
                raise InvalidError(
                    f"{topic!r} is no key and no tag; what a search finds is not settled. Give a key or a tag."
                )
            scopes = sorted({found.scope(each) for each in found.current})
            if len(scopes) > 1:
                raise InvalidError(
                    f"{topic!r} stands in several scopes: {scopes}. Give scope= to settle one."
                )
            decision = found.decide(strategy)
        links = [] if decision is None else _record_decision(store, topic, decision, reason)
    return Settled(decision=decision, links=tuple(links))


def _record_decision(store: Store, topic: str, decision: Decision, reason: str) -> list[Link]:
    won = decision.won
    if won is None:
        return []
    how = {"topic": topic, "strategy": decision.strategy, "why": decision.why}
    return [store.link(won, "supersedes", old, reason=reason, metadata=how) for old in decision.lost]


def label_of(content: Json) -> str | None:
    """Return the label in a content: its `label`, `sprint` or `session`. A bare number gets the word: `Sprint 3`."""
    for name in _LABELS:
        value = content.get(name)
        if value is None:
            continue
        if isinstance(value, str) and value.strip():
            return f"{name.title()} {value}" if value.isdecimal() and name != "label" else line(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value) if name == "label" else f"{name.title()} {value}"
    return None


# ---- finding ----------------------------------------------------------------------------------


class _TopicStatement(NamedTuple):
    id: str
    kind: str
    key: str | None
    valid_from: datetime
    recorded_at: datetime


class _TopicAnswer(TopicRows):
    """Answers about a topic at one coordinate. It reads only the bodies that are shown."""

    # ------------------------------------------------------------------ deciding

    def decide(self, strategy: Choice | Mapping[str, Choice]) -> Decision | None:
        """Return which of the standing statements counts. The strategy decides between several."""
        if not self.current:
            return None
        if len(self.current) == 1:
            [only], name = self.current, DEFAULT
            if strategy != DEFAULT:
                name = strategy_for(strategy, topic_name(self.query), {self.kind(only)})[0]
            why = "nothing else stands"
            return Decision.made(
                {"strategy": name, "won": self.id(only), "lost": (), "undecided": (), "why": why}
            )
        statements = []
        for each in self.current:
            times = moment(each.since), moment(each.recorded)
            statements.append(_TopicStatement(self.id(each), self.kind(each), self.key(each), *times))
        return decide(strategy, topic_name(self.query), statements, self.joined())

    def winner(self, decision: Decision | None) -> TopicRow | None:
        """Return the statement that won."""
        if decision is None or decision.won is None:
            return None
        if len(self.current) == 1:
            return self.current[0]
        return next(each for each in self.current if self.id(each) == decision.won)

    # ------------------------------------------------------------------ showing

    def mentions(self, entries: Sequence[TopicRow], most: int | None) -> tuple[Mention, ...]:
        return tuple([self.mention(each, self._called(each)) for each in entries[:most]])

    def _called(self, each: TopicRow) -> str:
        return self.key(each) or self.id(each)

    def mention(self, each: TopicRow, name: str) -> Mention:
        standing, body = self.standing(each), self.body(each)
        content: Json = body["content"]
        text = described(content, body.get("text"))
        return Mention.made(
            {
                "name": name,
                "id": self.id(each),
                "says": f"[{standing}]" if standing in _FORGOTTEN else line(text, _SHOWN),
                "label": label_of(content),
                "standing": standing,
                "valid_from": moment(each.since),
                "valid_to": end_moment(self.until(each)),
                "replaced_by": self.replaced_by(each),
            }
        )

    def numbered(self, name: str) -> dict[TopicRow, str]:
        """Return the name of each statement on the timeline: its key if that has a number, else the next free number."""
        entries = self.by_age([*self.past, *self.current, *self.planned])
        base = version_of(name)[0] or name
        own = {each: key for each in entries if version_of(key := self._called(each))[0] == base}
        own = {each: key for each, key in own.items() if version_of(key)[1] is not None}
        taken, names, number = set(own.values()), dict(own), 0
        for each in entries:
            if each not in own:
                number += 1
                while f"{base}_v{number}" in taken:
                    number += 1
                names[each] = f"{base}_v{number}"
        return names

    def nearest(self) -> tuple[str, ...]:
        """Return known keys and tags similar to the requested one; if there are none, statements that match a part of it."""
        names = tuple(closest(topic_name(self.query), self.names()))
        return names or tuple(self._index.key[ent] or self._index.names[ent] for ent in self.near)
