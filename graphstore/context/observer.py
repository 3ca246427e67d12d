"""Turn conversations into observations. Messages queue by user and thread. A queue is compressed when it is long enough, has waited long enough, or its thread
is silent or ends. Without a compressor messages wait: none becomes an observation uncompressed.

A queue is a node of kind `message_batch`, `derived_from` its messages, which are events; an observation is `derived_from` the batch. A queue therefore
outlives the process, and each observation leads back to its messages and rests on them. Nothing is deleted: a better observation supersedes.
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
"""The longest time that the first message of a queue waits."""
IDLE = timedelta(hours=1)
"""A thread that has no new message for this long is compressed."""
REFLECT_EVERY = timedelta(days=1)
AT_ONCE = 8  # queues that one tick compresses
MEMBERS = "thread_members"  # setting: the members of group threads
BATCH = "message_batch"
_OF = "derived_from"
_JOINED = frozenset({_OF})
_LAYER = BUILT_IN["observation"]
_AGENTS = ("agent", "assistant", "system", "tool")  # roles of senders that are not members of a group
_UNSAID = len(PRIORITIES)  # rank of an observation without a priority: after all others


class Message(Value):
    """One message of a conversation."""

    id: str
    text: str
    sender: str | None
    occurred_at: datetime

    def __str__(self) -> str:
        return f"[{when(self.occurred_at)}] {self.sender or 'somebody'}: {self.text}"


class Compress(Protocol):
    """Condenses messages into observations, in the format of `observations.parse`: a date, and below it what is worth keeping.

    If it takes a second argument, or one named `observations`, it receives the standing observations of the user. It may name those that a new one
    replaces: `- [HIGH] [SUPERSEDES id] …`.
    """

    def __call__(self, messages: Sequence[Message], /) -> str:
        """Return the observations as text."""


class Reflect(Protocol):
    """Rewrites several observations as better ones; an observation names those it replaces: `- [HIGH] [SUPERSEDES id, id] …`."""

    def __call__(self, observations: Sequence[Node], /) -> str:
        """Return the observations as text."""


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
    """Return the latest messages that were queued for the observer."""
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
    """Return True if another user's observation comes from a thread in which this user takes part."""
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
    """Identifies a batch of a thread: its number from 1 (0: there is none yet), and its entity or -1."""

    number: int
    ent: int

    @classmethod
    def latest(cls, sight: NumberedRows, user: str, thread: str | None) -> _Batch:
        """Return the last batch known here. Numbers have no gaps, so it is found by doubling and halving."""

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
        """Return True if the batch was compressed by then, or no longer stands."""
        row = sight.find(self.ent)
        return row < 0 or "observed" in sight.node(row, "stands").content


def _open(sight: NumberedRows, user: str, thread: str | None) -> tuple[_Batch, list[Message]]:
    """Return the last batch of a thread, and the messages that wait in it."""
    batch = _Batch.latest(sight, user, thread)
    return batch, [] if batch.ent < 0 or batch.closed(sight) else _messages(sight, batch.ent)


def _waiting(sight: NumberedRows, user: str, thread: str | None) -> tuple[list[Message], Instant, bool]:
    """Return the messages that wait in the last batch of a thread, when that batch was first recorded, and whether the thread has ended."""
    batch, waiting = _open(sight, user, thread)
    if not waiting:
        return [], 0, False
    content = sight.node(sight.find(batch.ent), "stands").content
    return waiting, sight.first_recorded(batch.ent), bool(content.get("ended"))


def _messages(sight: NumberedRows, batch: int) -> list[Message]:
    """Return the messages of a batch that stand and are authorized, by the time they were sent, then by the time they were recorded."""
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
    """Return the message of an event. Its sender is `sender`, or else the user whom the event names."""
    who = sender or event.sender_name or event.sender or event.metadata.get("sender") or event.agent
    who = who or ("system" if event.type == "SYSTEM" else None)
    return Message(id=event.id, text=_words(event, transcript), sender=who, occurred_at=event.occurred_at)


def _words(event: Event, transcript: str | None = None) -> str:
    """Return the text of a message and its transcript. A medium without text is shown by its type and its path or hash."""
    medium = f"[{event.type} {event.media_path or event.media_hash}]"
    says = event.description or (medium if event.media_path or event.media_hash else "")
    return " ".join(filter(None, (says, transcript)))


# ---- noticing ---------------------------------------------------------------------------------


_SETTINGS = {"threshold": "int"}


@dataclass(slots=True)
class _State:
    """Holds what the observers of one store share while it is open in this process."""

    threshold: int = THRESHOLD
    lent: Observer | None = None
    failed: set[tuple[str, str | None]] = field(default_factory=set)  # threads whose last compression failed


_STATES: WeakKeyDictionary[Store, _State] = WeakKeyDictionary()


def threshold_of(store: Store) -> int:
    """Return the threshold, in messages, of the observer that last worked on this store in this process; 50 if none has."""
    return _STATES.get(store, _State()).threshold


class _Ready(NamedTuple):
    """Holds what a compressor or a reflection returned and is not yet written. `batch` is None for a reflection."""

    user: str
    thread: str | None
    batch: _Batch | None
    waiting: Sequence[Message] = ()
    found: Sequence[Observation] = ()
    warnings: Sequence[str] = ()
    error: str | None = None


class Observer:
    """Queues the messages of conversations, and has a thread compressed when `threshold` of its messages wait.

    A `tick` also compresses queues whose first message has waited for `age`, threads without a message for `idle`, and all threads of a user that together
    have `threshold` messages. `enqueue(…, end=True)` and `close` end threads: their messages are compressed, however few. Without `compress` all messages
    wait, unless another observer was lent to the store. Neither `compress` nor `reflect` is called with a lock held or a transaction open. If one fails,
    nothing is lost: the messages wait, and each further `threshold` of them, or a `tick`, retries. With `reflect`, a tick rewrites a user's observations
    every `reflect_every` if there are new ones.
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
        """Let this observer's ticks compress what any other observer of the store queues, as a server does, while the store is open."""
        registry.only_here(
            self._store, "lend()", "Start the server with a compressor: graphstore serve --compress."
        )
        self._state.lent = self

    @property
    def _waits(self) -> bool:
        """Return True if this observer does not compress: its messages wait for another observer's ticks."""
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
        """Return a block that is one transaction, or part of the open one. `author` is the author of a new one."""
        if author is None or self._in_transaction():
            return self._store.verb()
        return self._store.transaction(author=text_of("author", author))

    def _mark_ended(self, user: str, thread: str | None) -> bool:
        """Mark a thread as ended, so that the next tick compresses its messages, however few. Return False if none wait."""
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
        """Put a message into the batch of its thread. Return the batch's new size; 0 if the message was queued before."""
        with self._store.verb(), self._store.reading(is_narrow=True) as sight:
            if _queued(sight, sight.entity(event.id)):
                return 0
            batch = self._batch(sight, user, thread)
            ent = sight.entity(batch)
            # valid from when it was sent, so that a view of the past shows the queue of that time
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
        """Return the batch that new messages of a thread join: the last one while it is open, else a new one."""
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
        """Return the compressor's result for the messages that wait; None if none wait. Writes nothing."""
        assert self._compress is not None
        with self._store.reading() as sight:
            batch, waiting = _open(sight, user, thread)
        if not waiting:
            return None
        known = observations(self._store, user)
        compress = partial(_asked, self._compress, tuple(waiting), tuple(known))
        return _heard(_Ready(user, thread, batch, waiting), compress)

    def _written(self, ready: _Ready, author: str | None = None) -> Observed:
        """Write a result, unless its messages were compressed by another thread or process meanwhile."""
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
                return _nothing(user, thread)  # compressed meanwhile, elsewhere
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
        """Move a message that arrived during the compression, or is still to come, to the next batch."""
        sender = sight.link(sight.believed_link(edge.link)[0]).metadata.get("sender")
        self._store.unlink(edge.id, reason="came while the batch was compressed")
        self._join(sight.event_and_links(edge.target), user, thread, sender)

    @registry.method("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def tick(self) -> list[Observed]:
        """Compress the queues that are long or old enough, those that an earlier process left too, and reflect where it is time. A few at a time."""
        return self.write(self.ask())

    def ask(self) -> list[_Ready]:
        """Do the first half of a tick: call the compressor and the reflection. It may take long and writes nothing."""
        registry.only_here(self._store, "ask()", "Call tick().")
        self._refuse_in_transaction("tick()")
        due = [] if self._compress is None else list(self._due())[:AT_ONCE]
        ready = [self._compressed(*each) for each in due]
        return [each for each in ready if each is not None] + [
            self._thought(user) for user in self._unreflected()
        ]

    def write(self, ready: Iterable[_Ready]) -> list[Observed]:
        """Do the second half of a tick: write the results."""
        return [self._written(each) for each in ready]

    def _queues(self) -> list[tuple[str, str | None]]:
        """Return the threads whose last batch is open."""
        rows = (row.content or {} for row in self._store.scan(BATCH, content=True))
        open_ones = (content for content in rows if "observed" not in content)
        return list(dict.fromkeys((content["user"], content.get("thread")) for content in open_ones))

    def _due(self) -> Iterator[tuple[str, str | None]]:
        """Yield the threads to compress now: long or old queues, silent or ended threads, then those of users with enough messages in all."""
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
        """Rewrite the observations; the new ones supersede those they name. Raises InvalidError without a `reflect`."""
        registry.only_here(self._store, "reflect()", "Run the observer where the store is.")
        self._refuse_in_transaction("reflect()")
        if self._reflect is None:
            raise InvalidError(
                "this observer cannot reflect. Give it a function: Observer(store, reflect=…)."
            )
        return self._written(self._thought(user, thread), author)

    def _thought(self, user: str, thread: str | None = None) -> _Ready:
        """Return the reflection's result for the standing observations. Writes nothing."""
        assert self._reflect is not None
        known, ready = observations(self._store, user, thread), _Ready(user, thread, None)
        return _heard(ready, partial(self._reflect, tuple(known))) if known else ready

    def _reflected(self, ready: _Ready, author: str | None) -> Observed:
        """Write the result of a reflection and its time."""
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
        """Return the users whose observations are due for reflection: at least two, one of them new since the last time, which was `reflect_every` ago."""
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
    """Return the request with the parsed answer, or with the error if the call failed."""
    try:
        found, warnings = _read(ask())
    except Exception as error:
        return ready._replace(error=f"{type(error).__name__}: {error}")
    return ready._replace(found=found, warnings=warnings)


def _reflection(user: str) -> NodePlace:
    return NodePlace("cursor", ("reflection", user))


def _asked(compress: Callable[..., str], messages: tuple[Message, ...], known: tuple[Node, ...]) -> object:
    """Call a compressor. One that takes the standing observations receives them."""
    try:
        parameters = list(inspect.signature(compress).parameters.values())
    except (TypeError, ValueError):  # a callable without a signature
        parameters = []
    places = sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if places > 1 or any(each.kind == each.VAR_POSITIONAL for each in parameters):
        return compress(messages, known)
    if any(each.kind == each.KEYWORD_ONLY and each.name == "observations" for each in parameters):
        return compress(messages, observations=known)
    return compress(messages)


class _Writing:
    """Writes the observations of one thread in the open transaction."""

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
        """Supersede the observation with that id if it belongs to the same user; else add a warning."""
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
    """Return the messages of a batch that are believed, authorized and not superseded, those of the future included."""
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
    """Yield the ids of those who sent the messages of a batch, without agents and the system."""
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
    """Return True if a message is in a batch of any thread."""
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
