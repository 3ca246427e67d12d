"""Notices what is said in conversations: messages queue up by user and thread, and are compressed into observations when there are enough, when
they have waited for long, or when their thread is silent or ends. Without a compressor they wait: no message becomes an observation as it is.

A queue is a node, a batch, that is `derived_from` the messages in it, which are events, and what was noticed is `derived_from` the batch. So what is queued
outlives any process, each observation leads back to its messages and rests on them, and nothing is deleted: a better observation supersedes.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self
from weakref import WeakKeyDictionary

from graphstore.context import failures
from graphstore.context.observations import PRIORITIES, Observation, parse
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.events import timeline
from graphstore.events.correlation import microseconds
from graphstore.memory.memory import Memory
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.store.upsert import NodePlace, entity, keep, kept_in
from graphstore.values.findings import Recorded
from graphstore.values.inputs import at_least_one, ids, optional_text, text_of
from graphstore.values.layers import BUILT_IN, CHUNK
from graphstore.values.models import Event, Node, Value
from graphstore.values.period import Instant, TimeLike, instant, moment, when
from graphstore.view.rows import LinkEdge, NumberedRows
from graphstore.view.sight import Sight
from graphstore.view.view import Reader

__all__ = [
    "Compress", "Message", "Observed", "Observer", "Reflect", "members", "messages", "observations", "queue", "set_members",
]  # fmt: skip

THRESHOLD = 50
AGE = timedelta(hours=24)
"""So long the first message of a queue waits at most."""
IDLE = timedelta(hours=1)
"""After so long without a message a thread is compressed."""
REFLECT_EVERY = timedelta(days=1)
AT_ONCE = 8  # queues that one tick compresses
MEMBERS = "thread_members"  # the setting: who takes part in group threads
BATCH = "message_batch"
_OF = "derived_from"
_JOINED = frozenset({_OF})
_LAYER = BUILT_IN["observation"]
_AGENTS = ("agent", "assistant", "system", "tool")  # roles of who is no member of a group
_UNSAID = len(PRIORITIES)  # an observation of no priority comes after those that have one


class Message(Value):
    """One message of a conversation."""

    id: str
    text: str
    sender: str | None
    occurred_at: datetime

    def __str__(self) -> str:
        return f"[{when(self.occurred_at)}] {self.sender or 'somebody'}: {self.text}"


class Compress(Protocol):
    """Says in fewer words what is worth knowing of some messages, as observations are written: a date, and under it what was noticed.

    One that takes a second argument, or one named `observations`, is given what was noticed of the user before and stands, and may name what a new
    observation replaces: `- [HIGH] [SUPERSEDES id] …`.
    """

    def __call__(self, messages: Sequence[Message], /) -> str:
        """The observations, as text."""


class Reflect(Protocol):
    """Says better what several observations say; what it condenses it names: `- [HIGH] [SUPERSEDES id, id] …`."""

    def __call__(self, observations: Sequence[Node], /) -> str:
        """The observations, as text."""


class Observed(Value):
    """What was noticed: the observations, what they superseded, from how many messages; what was taken as text or could not be done; and what failed."""

    user: str
    thread: str | None
    observations: tuple[Node, ...]
    superseded: tuple[str, ...]
    messages: int
    warnings: tuple[str, ...]
    error: str | None


# ---- reading ----------------------------------------------------------------------------------


@registry.read("observer")
def queue(view: Reader, user: str, thread: str | None = None) -> list[Message]:
    """The messages that wait to be compressed at the view's coordinate, by when they were sent."""
    text_of("user", user), optional_text("thread", thread)
    with view.reading() as sight:
        return _open(sight, user, thread)[1]


@registry.read("observer")
def messages(view: Reader, user: str, thread: str | None = None, limit: int = 20) -> list[Message]:
    """The latest messages of a user's thread, compressed ones too, the oldest of them first: those the observer got, and those on the timeline.

    Of the timeline: what is authorized and was sent in the thread, except what is recorded for another user; without a thread what the user sent in any.
    """
    text_of("user", user), optional_text("thread", thread)
    at_least_one("limit", limit)
    here = view.fixed()
    messages = {message.id: message for message in _on_timeline(here, user, thread, limit)}
    messages |= {message.id: message for message in _observed(here, user, thread, limit)}
    found = sorted(messages.values(), key=lambda message: (message.occurred_at, message.id))
    return found[-limit:]


def _on_timeline(view: Reader, user: str, thread: str | None, limit: int) -> list[Message]:
    where: dict[str, Any] = {"thread": thread} if thread else {"sender": user}
    found: list[Message] = []
    cursor: str | None = None
    while len(found) < limit:
        page = timeline.messages(view, **where, authorized=True, limit=max(limit, 50), cursor=cursor)
        found += [
            message_of(event, None, _transcript(page.added.get(event.id, ())))
            for event in page
            if event.standing != "superseded" and event.metadata.get("user") in (None, user)
        ]
        cursor = page.cursor
        if cursor is None:
            break
    return found[:limit]


def _transcript(added: Iterable[Event]) -> str | None:
    return next((each.description for each in added if each.type == timeline.TRANSCRIPT), None)


def _observed(view: Reader, user: str, thread: str | None, limit: int) -> list[Message]:
    """The latest messages that the observer got."""
    with view.reading() as sight:
        found: list[Message] = []
        number = _Batch.latest(sight, user, thread).number
        while number > 0 and len(found) < limit:
            ent = entity(sight, _place(user, thread, number))
            found = (_messages(sight, ent) if ent >= 0 else []) + found
            number -= 1
        return found


@registry.read("observer")
def observations(view: Reader, user: str | None = None, thread: str | None = None) -> list[Node]:
    """What was noticed and stands at the view's coordinate: by date, then by how much it matters. With a `thread` only what was noticed there.

    `user`: of that user, of none, and of the threads that the user takes part in: who sent a message of those it was noticed in, and the `members` of its
    thread. None: of everybody.
    """
    groups = view.setting(MEMBERS) or {}
    mine = (_LAYER.prefix, _LAYER.prefix + (user or ""))

    def wanted(sight: Sight, ent: int) -> bool:
        scope = sight.scope(ent)
        return user is None or scope in mine or _takes_part(sight, ent, user, groups)

    with view.reading() as sight:
        chunks = [
            sight.entity(row.id) for row in sight.scan(kind=CHUNK) if row.scope.startswith(_LAYER.prefix)
        ]
        found = [sight.node(sight.find(ent), sight.upright(ent)) for ent in chunks if wanted(sight, ent)]
    if thread is not None:
        found = [node for node in found if node.content.get("thread") == thread]
    return sorted(found, key=_order)


def _takes_part(sight: Sight, ent: int, user: str, groups: dict[str, list[str]]) -> bool:
    """Whether what somebody else is the owner of was noticed in a thread that a user takes part in."""
    row = sight.find(ent)
    if row < 0:
        return False
    body = sight.body_of(row) if groups else sight.body_of(row, holding=b'"members":')
    content = body.get("content", {})
    if user in (content.get("metadata") or {}).get("members", ()):
        return True
    there = groups.get(content.get("thread", ""), ())
    return user in there and content.get("user") in there


@registry.read("observer")
def members(view: Reader, thread: str) -> list[str]:
    """Who takes part in a group thread, as `set_members` said; nobody where it did not."""
    groups: dict[str, list[str]] = view.setting(MEMBERS) or {}
    return list(groups.get(text_of("thread", thread), ()))


@registry.write("observer")
def set_members(store: Store, thread: str, members: Iterable[str]) -> None:
    """Say who takes part in a group thread: what is noticed there of one of them reaches all of them. Kept in the store; nobody: it is no group.

    Threads that users have apart under the same name are none, unless this says so.
    """
    wanted = sorted({text_of("member", each) for each in ids("members", members)})
    with store.verb(is_narrow=True):
        groups = dict(store.setting(MEMBERS) or {})
        before = groups.pop(text_of("thread", thread), [])
        if wanted != before:
            store.keep_setting("set_members", MEMBERS, groups | ({thread: wanted} if wanted else {}))


def _order(node: Node) -> tuple[Any, ...]:
    return node.valid_from.date(), _rank(node), node.valid_from, node.recorded_at, node.id


def _rank(node: Node) -> int:
    priority = node.content.get("metadata", {}).get("priority")
    return PRIORITIES.index(priority) if priority in PRIORITIES else _UNSAID


def _place(user: str, thread: str | None, number: int) -> NodePlace:
    return NodePlace(BATCH, (user, thread or "", str(number)))


class _Batch(NamedTuple):
    """A batch of a thread: its number from 1 (0: there is none yet), and its entity or -1."""

    number: int
    ent: int

    @classmethod
    def latest(cls, sight: NumberedRows, user: str, thread: str | None) -> _Batch:
        """The last batch known here: numbers have no gap, so it is found by doubling and halving."""

        def known(number: int) -> bool:
            return sight.entity(_place(user, thread, number).id()) >= 0

        low, high = 0, 1
        while known(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if known(middle) else (low, middle)
        return cls(low, entity(sight, _place(user, thread, low)) if low else -1)

    def closed(self, sight: NumberedRows) -> bool:
        """Whether it was compressed by then, or no longer stands."""
        row = sight.find(self.ent)
        return row < 0 or "observed" in sight.node(row, "stands").content


def _open(sight: NumberedRows, user: str, thread: str | None) -> tuple[_Batch, list[Message]]:
    """The last batch of a thread, and the messages that wait in it."""
    batch = _Batch.latest(sight, user, thread)
    return batch, [] if batch.ent < 0 or batch.closed(sight) else _messages(sight, batch.ent)


def _waiting(sight: NumberedRows, user: str, thread: str | None) -> tuple[list[Message], Instant, bool]:
    """The messages that wait in the last batch of a thread, since when there is one, and whether the thread has ended."""
    batch, waiting = _open(sight, user, thread)
    if not waiting:
        return [], 0, False
    content = sight.node(sight.find(batch.ent), "stands").content
    return waiting, sight.first_recorded(batch.ent), bool(content.get("ended"))


def _messages(sight: NumberedRows, batch: int) -> list[Message]:
    """The messages of a batch that stand and were authorized, by when they were sent, then as they were recorded."""
    found = []
    admitted = sight.admitted()
    for row in sight.links_around(batch, "out", _JOINED):
        ent = sight.edge(row).target
        version = sight.find(ent) if sight.is_event(ent) else -1
        if version >= 0 and not sight.is_superseded(ent) and admitted(ent):
            event = sight.event(version, "stands")
            sender, transcript = sight.link(row).metadata.get("sender"), timeline.transcript_of(sight, ent)
            found.append((event.occurred_at, ent, message_of(event, sender, transcript)))
    return [message for *_, message in sorted(found, key=lambda each: each[:2])]


def message_of(event: Event, sender: str | None = None, transcript: str | None = None) -> Message:
    """A message of the timeline, sent by the user it names, unless the observer recorded another."""
    who = sender or event.sender_name or event.sender or event.metadata.get("sender") or event.agent
    who = who or ("system" if event.type == "SYSTEM" else None)
    return Message(id=event.id, text=_words(event, transcript), sender=who, occurred_at=event.occurred_at)


def _words(event: Event, transcript: str | None = None) -> str:
    """What a message says, and the transcript that was added; of a medium that was sent without words, which it is."""
    medium = f"[{event.type} {event.media_path or event.media_hash}]"
    says = event.description or (medium if event.media_path or event.media_hash else "")
    return " ".join(filter(None, (says, transcript)))


# ---- noticing ---------------------------------------------------------------------------------


_SETTINGS = {"threshold": "int"}


@dataclass(slots=True)
class _State:
    """What the observers of one store know, for as long as it is open here."""

    threshold: int = THRESHOLD
    lent: Observer | None = None
    failed: set[tuple[str, str | None]] = field(default_factory=set)  # threads whose compression failed last


_STATES: WeakKeyDictionary[Store, _State] = WeakKeyDictionary()


def threshold_of(store: Store) -> int:
    """How many messages of a thread the observer of this store that worked last waits for; 50 where none has worked here."""
    return _STATES.get(store, _State()).threshold


class _Ready(NamedTuple):
    """What a compressor or a reflection said, not yet written. `batch`: -1 for a reflection."""

    user: str
    thread: str | None
    batch: _Batch | None
    waiting: Sequence[Message] = ()
    found: Sequence[Observation] = ()
    warnings: Sequence[str] = ()
    error: str | None = None


class Observer:
    """Queues the messages of conversations, and has them compressed when `threshold` of one thread wait.

    A `tick` compresses more: queues whose first message has waited for `age`, threads without a message for `idle`, and all threads of a user that have
    `threshold` together. `enqueue(…, end=True)` and `close` end threads: what waits is compressed, however little. Without `compress` all of it waits, unless
    another observer was lent to the store. Neither `compress` nor `reflect` is called with a lock held or a transaction open;
    when one fails, nothing is lost: the messages wait, and each further `threshold` of them, or a `tick`, is another try. With `reflect` a tick
    has the observations of a user reflected on, `reflect_every` so often, when there are new ones.
    """

    def __init__(
        self,
        store: Store,
        compress: Compress | None = None,
        *,
        reflect: Reflect | None = None,
        threshold: int | None = None,
        age: timedelta = AGE,
        idle: timedelta = IDLE,
        reflect_every: timedelta = REFLECT_EVERY,
    ) -> None:
        for name, given in (("compress", compress), ("reflect", reflect)):
            if given is not None and not callable(given):
                raise InvalidError(f"{name} {given!r} cannot be called. Give a function that gives text.")
        self._store, self._compress, self._reflect = store, compress, reflect
        self._settings = {"threshold": threshold}
        if compress or reflect:
            instead = "Leave them out: the server compresses, when it was started so."
            registry.only_here(store, "compress= and reflect=", instead)
        if (age, idle, reflect_every) != (AGE, IDLE, REFLECT_EVERY):
            instead = "Leave them out: the server's observer has its own."
            registry.only_here(store, "age=, idle= and reflect_every=", instead)
        state = self._state
        self._threshold = state.threshold if threshold is None else at_least_one("threshold", threshold)
        self._age, self._idle = microseconds(age, "age"), microseconds(idle, "idle")
        self._reflect_every = microseconds(reflect_every, "reflect_every")
        if not isinstance(store, registry.Elsewhere):
            state.threshold = self._threshold

    @property
    def _state(self) -> _State:
        if isinstance(self._store, registry.Elsewhere):
            return _State()
        return _STATES.setdefault(self._store, _State())

    def lend(self) -> None:
        """Let the ticks of this observer compress what any other observer of the store queues, for as long as the store is open, as a server does."""
        registry.only_here(
            self._store, "lend()", "Start the server with a compressor: graphstore serve --compress."
        )
        self._state.lent = self

    @property
    def _waits(self) -> bool:
        """Whether messages are compressed by another observer's ticks, or by nobody."""
        return self._compress is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @registry.method("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def enqueue(
        self,
        message: str | Event | Recorded,
        *,
        user: str,
        thread: str | None = None,
        sender: str | None = None,
        occurred_at: TimeLike | None = None,
        end: bool = False,
        author: str | None = None,
    ) -> Observed | None:
        """Queue a message: an event that is recorded already, or a text to be recorded as one. A message that was queued before is not again, and one
        that was not authorized never is.

        `end`: the thread ends with it, and what waits there is compressed. `author`: who writes. Gives what was noticed when that made it enough, else None.
        """
        text_of("user", user), optional_text("thread", thread), optional_text("sender", sender)
        within = self._in_transaction()
        with self._writing(author):
            event = self._recorded(message, user, thread, sender, occurred_at)
            waiting = 0 if event.authorized is False else self._join(event, user, thread, sender)
            if end and (self._waits or within):
                self._mark_ended(user, thread)
        failed = (user, thread) in self._state.failed and waiting % self._threshold
        enough = end or (waiting >= self._threshold and not failed)
        return (
            self.observe(user, thread, author)
            if enough and not (self._waits or self._in_transaction())
            else None
        )

    def _writing(self, author: str | None) -> Any:
        """A block that is one transaction, or part of the open one; of an author where one is named."""
        if author is None or self._in_transaction():
            return self._store.verb()
        return self._store.transaction(author=text_of("author", author))

    def _mark_ended(self, user: str, thread: str | None) -> bool:
        """Have the next tick compress what waits in a thread, however little. False: nothing waits."""
        with self._store.verb() as work, self._store.reading(is_narrow=True) as sight:
            batch = _Batch.latest(sight, user, thread)
            if batch.ent < 0 or batch.closed(sight):
                return False
            content = sight.node(sight.find(batch.ent), "stands").content
            if not content.get("ended"):
                self._store.revise(
                    sight.id(batch.ent), {**content, "ended": True}, valid_from=moment(work.tx), trigger="ended", minor=True
                )  # fmt: skip
            return True

    def _join(self, event: Event, user: str, thread: str | None, sender: str | None) -> int:
        """Put a message into the batch of its thread. Gives how many are in it now; 0 for a message that is in one already."""
        with self._store.verb(), self._store.reading(is_narrow=True) as sight:
            if _queued(sight, sight.entity(event.id)):
                return 0
            batch = self._batch(sight, user, thread)
            ent = sight.entity(batch)
            # from when it was sent, so that the queue of the past is as it was
            since = max(event.occurred_at, self._store.history(batch)[0].valid_from)
            metadata = {"sender": sender} if sender else None
            self._store.link(batch, _OF, event.id, created_by="observer", metadata=metadata, valid_from=since)
            return len(_members(sight, ent))

    def _in_transaction(self) -> bool:
        return self._store._open is not None and self._store._owner == threading.get_ident()

    def _recorded(
        self,
        message: str | Event | Recorded,
        user: str,
        thread: str | None,
        sender: str | None,
        at: TimeLike | None,
    ) -> Event:
        if isinstance(message, Recorded):
            return message.event
        if isinstance(message, Event):
            return message
        return timeline.record_message(
            self._store,
            "TEXT",
            text_of("message", message),
            sender=sender,
            thread=thread,
            occurred_at=at,
            metadata={"user": user},
        ).event

    def _batch(self, sight: NumberedRows, user: str, thread: str | None) -> str:
        """The batch that messages of the thread join: the last one while it is open, else a new one."""
        latest = _Batch.latest(sight, user, thread)
        if latest.ent >= 0 and not latest.closed(sight):
            return sight.id(latest.ent)
        content = {"user": user} | ({"thread": thread} if thread else {}) | {"number": latest.number + 1}
        name = _place(user, thread, latest.number + 1).id()
        return self._store.add_node(BATCH, content, id=name, scope=user).id

    @registry.method("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def observe(self, user: str, thread: str | None = None, author: str | None = None) -> Observed:
        """Compress what waits in a thread now, however little. What the compressor raises is reported in `error`, and all of it waits still.

        Without a compressor nothing is compressed, and a warning says so; where another observer is lent to the store, its next tick does it.
        `author`: who writes.
        """
        self._refuse_in_transaction("observe()")
        text_of("user", user), optional_text("thread", thread)
        if self._waits:
            with self._writing(author):
                waits = (
                    self._mark_ended(user, thread)
                    if self._state.lent
                    else bool(queue(self._store, user, thread))
                )
            there = (
                "the next tick compresses them."
                if self._state.lent
                else "there is no compressor. Give one: Observer(store, compress)."
            )
            return _nothing(user, thread, warnings=(f"the messages wait: {there}",) if waits else ())
        ready = self._compressed(user, thread)
        return _nothing(user, thread) if ready is None else self._written(ready, author)

    @registry.method("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def close(
        self, user: str | None = None, thread: str | None = None, author: str | None = None
    ) -> list[Observed]:
        """End a thread of a user (None: all threads that have messages waiting, of all users): compress what waits, however little."""
        self._refuse_in_transaction("close()")
        optional_text("user", user), optional_text("thread", thread)
        threads = self._queues() if user is None else [(user, thread)]
        return [self.observe(*each, author) for each in threads]

    def _compressed(self, user: str, thread: str | None) -> _Ready | None:
        """What the compressor says of the messages that wait; None: none waits. Writes nothing."""
        assert self._compress is not None
        with self._store.reading() as sight:
            batch, waiting = _open(sight, user, thread)
        if not waiting:
            return None
        known = observations(self._store, user)
        compress = partial(_asked, self._compress, tuple(waiting), tuple(known))
        return _heard(_Ready(user, thread, batch, waiting), compress)

    def _written(self, ready: _Ready, author: str | None = None) -> Observed:
        """Write what was said, unless somebody else compressed the messages meanwhile."""
        user, thread, batch, waiting = ready.user, ready.thread, ready.batch, ready.waiting
        what = "reflection" if batch is None else "observer"
        failures.note(self._store, f"{what} {user}{f'/{thread}' if thread else ''}", ready.error)
        if ready.error is not None:
            self._state.failed.add((user, thread))
            return _nothing(user, thread, ready.error)
        self._state.failed.discard((user, thread))
        if batch is None:
            return self._reflected(ready, author)
        with self._writing(author), self._store.verb() as work, self._store.reading(is_narrow=True) as sight:
            if batch != _Batch.latest(sight, user, thread) or batch.closed(sight):
                return _nothing(user, thread)  # compressed meanwhile, by somebody else
            name = sight.id(batch.ent)
            seen = {message.id for message in waiting}
            late = set(_members(sight, batch.ent))
            left = [
                edge
                for edge in sight.edges(batch.ent, "out", _JOINED)
                if sight.believed_link(edge.link) and sight.id(edge.target) not in seen
            ]
            senders = {sender for sender in _senders(sight, batch.ent) if sender != user}
            content = sight.node(sight.find(batch.ent), "stands").content
            self._store.revise(
                name,
                {**content, "observed": len(waiting)},
                valid_from=moment(work.tx),
                trigger="observed",
                minor=True,
            )
            for edge in left:
                if edge.target in late:
                    self._move(sight, edge, user, thread)
                elif not sight.is_believed(edge.target) or sight.is_superseded(edge.target):
                    self._store.unlink(edge.id, reason="withdrawn before the batch was compressed")
            last = max(message.occurred_at for message in waiting)
            return _Writing(self._store, ready, name, last, sorted(senders)).write()

    def _refuse_in_transaction(self, what: str) -> None:
        if self._in_transaction():
            raise InvalidError(f"{what} inside transaction(). Leave the block first.")

    def _move(self, sight: NumberedRows, edge: LinkEdge, user: str, thread: str | None) -> None:
        """Let a message that came while the others were compressed, or is still to come, wait in the next batch."""
        sender = sight.link(sight.believed_link(edge.link)[0]).metadata.get("sender")
        self._store.unlink(edge.id, reason="came while the batch was compressed")
        self._join(sight.event_and_links(edge.target), user, thread, sender)

    @registry.method("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def tick(self) -> list[Observed]:
        """Compress the queues that are long or old enough, those that an earlier process left too, and reflect where it is time. A few at a time."""
        return self.write(self.ask())

    def ask(self) -> list[_Ready]:
        """The first half of a tick: ask the compressor and the reflection. It may take its time, and writes nothing."""
        registry.only_here(self._store, "ask()", "Call tick().")
        self._refuse_in_transaction("tick()")
        due = [] if self._compress is None else list(self._due())[:AT_ONCE]
        ready = [self._compressed(*each) for each in due]
        return [each for each in ready if each is not None] + [
            self._thought(user) for user in self._unreflected()
        ]

    def write(self, ready: Iterable[_Ready]) -> list[Observed]:
        """The second half of a tick: write what was said."""
        return [self._written(each) for each in ready]

    def _queues(self) -> list[tuple[str, str | None]]:
        """The threads whose last batch is open."""
        rows = (row.content or {} for row in self._store.scan(BATCH, content=True))
        open_ones = (content for content in rows if "observed" not in content)
        return list(dict.fromkeys((content["user"], content.get("thread")) for content in open_ones))

    def _due(self) -> Iterator[tuple[str, str | None]]:
        """The threads to compress now: whose queue is long or old enough, or that are silent or ended, then those of users that have enough over threads."""
        now, left = self._store._now(), list[tuple[str, str | None, int]]()
        for user, thread in self._queues():
            with self._store.reading() as sight:
                waiting, since, ended = _waiting(sight, user, thread)
            if not waiting:
                continue
            spoken = max(since, *(instant(message.occurred_at) for message in waiting))
            if (
                len(waiting) >= self._threshold
                or ended
                or now - since >= self._age
                or now - spoken >= self._idle
            ):
                yield user, thread
            else:
                left.append((user, thread, len(waiting)))
        many = Counter[str]()
        for user, _, count in left:
            many[user] += count
        yield from ((user, thread) for user, thread, _ in left if many[user] >= self._threshold)

    # ------------------------------------------------------------------ reflecting

    def reflect(self, user: str, thread: str | None = None, author: str | None = None) -> Observed:
        """Rewrite the observations: what the new ones name, they supersede. Raises InvalidError without a `reflect`."""
        registry.only_here(self._store, "reflect()", "Run the observer where the store is.")
        self._refuse_in_transaction("reflect()")
        if self._reflect is None:
            raise InvalidError(
                "this observer cannot reflect. Give it a function: Observer(store, reflect=…)."
            )
        return self._written(self._thought(user, thread), author)

    def _thought(self, user: str, thread: str | None = None) -> _Ready:
        """What the reflection says of the observations that stand. Writes nothing."""
        assert self._reflect is not None
        known, ready = observations(self._store, user, thread), _Ready(user, thread, None)
        return _heard(ready, partial(self._reflect, tuple(known))) if known else ready

    def _reflected(self, ready: _Ready, author: str | None) -> Observed:
        """Write what a reflection said, and when it was."""
        with self._writing(author), self._store.verb() as work:
            done = _Writing(self._store, ready, None, moment(work.tx), []).write()
            if ready.thread is None:
                known = len(observations(self._store, ready.user))
                keep(
                    self._store,
                    _reflection(ready.user),
                    {"reflected": known, "at": work.tx},
                    scope=ready.user,
                    minor=True,
                )
            return done

    def _unreflected(self) -> list[str]:
        """Whose observations are to be reflected on: two at least, of which one is new since the last time, which was `reflect_every` ago."""
        if self._reflect is None:
            return []
        found = dict[str, list[Node]]()
        for node in observations(self._store):
            found.setdefault(node.content.get("user") or "", []).append(node)
        now, due = self._store._now(), []
        for user, nodes in found.items():
            last = kept_in(self._store, _reflection(user)) if user else None
            at = -self._reflect_every if last is None else last.content["at"]
            if (
                user
                and len(nodes) > 1
                and now - at >= self._reflect_every
                and any(instant(node.recorded_at) > at for node in nodes)
            ):
                due.append(user)
        return due[:AT_ONCE]


def _heard(ready: _Ready, ask: Callable[[], object]) -> _Ready:
    """Return what was asked about, with what was said or why nothing was."""
    try:
        found, warnings = _read(ask())
    except Exception as error:
        return ready._replace(error=f"{type(error).__name__}: {error}")
    return ready._replace(found=found, warnings=warnings)


def _reflection(user: str) -> NodePlace:
    return NodePlace("cursor", ("reflection", user))


def _asked(compress: Callable[..., str], messages: tuple[Message, ...], known: tuple[Node, ...]) -> object:
    """What a compressor says; one that takes the observations that stand gets them."""
    try:
        parameters = list(inspect.signature(compress).parameters.values())
    except (TypeError, ValueError):  # a callable that does not say
        parameters = []
    places = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if places > 1 or any(each.kind == each.VAR_POSITIONAL for each in parameters):
        return compress(messages, known)
    if any(each.kind == each.KEYWORD_ONLY and each.name == "observations" for each in parameters):
        return compress(messages, observations=known)
    return compress(messages)


class _Writing:
    """Observations of one thread, written in the transaction that is open."""

    def __init__(
        self, store: Store, ready: _Ready, batch: str | None, at: datetime, members: list[str]
    ) -> None:
        self.store, self.ready, self.user, self.thread = store, ready, ready.user, ready.thread
        self.batch, self.at, self.warnings, self.members = batch, at, list(ready.warnings), members

    def write(self) -> Observed:
        found = self.ready.found
        nodes = Memory(self.store).remember_many(map(self._chunk, found))
        if self.batch is not None:
            for node in {node.id: node for node in nodes}.values():
                self.store.link(node.id, _OF, self.batch, created_by="observer")
        superseded = [
            old
            for node, observation in zip(nodes, found, strict=True)
            for name in observation.supersedes
            for old in self._supersede(name, node)
        ]
        return Observed(
            user=self.user, thread=self.thread, observations=tuple({node.id: node for node in nodes}.values()), superseded=tuple(superseded), messages=len(self.ready.waiting),
            warnings=tuple(self.warnings), error=None,
        )  # fmt: skip

    def _chunk(self, observation: Observation) -> dict[str, Any]:
        metadata: dict[str, Any] = {"priority": observation.priority} if observation.priority else {}
        if observation.details:
            metadata["details"] = [detail.strip() for detail in observation.details]
        if self.members:
            metadata["members"] = self.members
        return {
            "text": observation.whole,
            "layer": _LAYER.name,
            "source": self.batch or "reflection",
            "user": self.user,
            "thread": self.thread,
            "valid_from": self.at if observation.date is None else moment(observation.date),
            "tags": observation.tags,
            "metadata": metadata,
        }

    def _supersede(self, name: str, node: Node) -> list[str]:
        """Supersede the observation of that id, if it is one of the same user; what cannot be is a warning."""
        try:
            old = self.store.node(name)
            if old.kind != CHUNK or old.scope not in (_LAYER.prefix, _LAYER.prefix + self.user):
                raise InvalidError(f"{name!r} is no observation of {self.user!r}.")
            self.store.supersede(old.id, by=node.id, reason="said better")
        except (NotFoundError, InvalidError, ConflictError) as error:
            self.warnings.append(f"{name!r} is not superseded by {node.id!r}: {error}")
            return []
        return [old.id]


def _members(sight: NumberedRows, batch: int) -> list[int]:
    """The messages of a batch that are believed, authorized and not superseded, those to come included."""
    admitted = sight.admitted()
    return [
        edge.target
        for edge in sight.edges(batch, "out", _JOINED)
        if sight.believed_link(edge.link)
        and sight.is_believed(edge.target)
        and not sight.is_superseded(edge.target)
        and admitted(edge.target)
    ]


def _senders(sight: NumberedRows, batch: int) -> Iterator[str]:
    """Who sent the messages of a batch, by their ids; agents and the system are nobody."""
    for ent in _members(sight, batch):
        event = sight.event_and_links(ent)
        links = (edge for edge in sight.edges(ent, "into", _JOINED) if edge.source == batch)
        given = [
            sight.link(row).metadata.get("sender")
            for edge in links
            for row in sight.believed_link(edge.link)[:1]
        ]
        spoke = event.sender or next(filter(None, given), None)
        if spoke and event.type != "SYSTEM" and event.metadata.get("role") not in _AGENTS:
            yield spoke


def _queued(sight: NumberedRows, event: int) -> bool:
    """Whether a message is in a batch, of whatever thread."""
    return any(
        sight.kind(edge.source) == BATCH and sight.believed_link(edge.link)
        for edge in sight.edges(event, "into", _JOINED)
    )


def _read(text: object) -> tuple[Sequence[Observation], list[str]]:
    if not isinstance(text, str):
        raise InvalidError(f"{text!r} is no text. Give the observations as text.")
    parsed = parse(text_of("the observations", text, empty=True))
    return parsed.observations, [str(warning) for warning in parsed.warnings]


def _nothing(
    user: str, thread: str | None, error: str | None = None, warnings: tuple[str, ...] = ()
) -> Observed:
    return Observed(
        user=user, thread=thread, observations=(), superseded=(), messages=0, warnings=warnings, error=error
    )
