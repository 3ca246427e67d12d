"""The room of what is noticed in conversations: messages queue up by user and thread, and are compressed into observations when there are enough.

A queue is a node, a batch, that is `derived_from` the messages in it, which are events, and what was noticed is `derived_from` the batch. So what is queued
outlives any process, each observation leads back to its messages and rests on them, and nothing is deleted: a better observation supersedes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from graphstore.context.observations import PRIORITIES, Observation, parse
from graphstore.core.read.sight import Sight
from graphstore.core.read.view import Reader
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.events import timeline
from graphstore.memory.memory import Memory
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.store.upsert import Place, entity
from graphstore.values.inputs import at_least_one, optional_text, text_of
from graphstore.values.layers import BUILT_IN, CHUNK
from graphstore.values.models import Event, Node, Recorded, Value
from graphstore.values.period import TimeLike, instant, moment, when

__all__ = ["Compress", "Message", "Observed", "Observer", "Reflect", "messages", "observations", "queue"]

THRESHOLD = 50
BATCH = "message_batch"
_OF = "derived_from"
_JOINED = frozenset({_OF})
_LAYER = BUILT_IN["observation"]
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
    """Says in fewer words what is worth knowing of some messages, as observations are written: a date, and under it what was noticed."""

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
    with view.reading():
        messages = {message.id: message for message in _on_timeline(view, user, thread, limit)}
        messages |= {message.id: message for message in _observed(view, user, thread, limit)}
    found = sorted(messages.values(), key=lambda message: (message.occurred_at, message.id))
    return found[-limit:]


def _on_timeline(view: Reader, user: str, thread: str | None, limit: int) -> list[Message]:
    where: dict[str, Any] = {"thread": thread} if thread else {"sender": user}
    here = view.as_of() if isinstance(view, Store) else view
    found: list[Message] = []
    cursor: str | None = None
    while len(found) < limit:
        page = timeline.messages(here, **where, authorized=True, limit=max(limit, 50), cursor=cursor)
        found += [
            message_of(event)
            for event in page
            if event.standing != "superseded" and event.metadata.get("user") in (None, user)
        ]
        cursor = page.cursor
        if cursor is None:
            break
    return found[:limit]


def _observed(view: Reader, user: str, thread: str | None, limit: int) -> list[Message]:
    """The latest messages that the observer got."""
    found: list[Message] = []
    with view.reading() as sight:
        number = _Batch.latest(sight, user, thread).number
        while number > 0 and len(found) < limit:
            ent = entity(sight, _place(user, thread, number))
            found = (_messages(sight, ent) if ent >= 0 else []) + found
            number -= 1
    return found


@registry.read("observer")
def observations(view: Reader, user: str | None = None, thread: str | None = None) -> list[Node]:
    """What was noticed and stands at the view's coordinate: by date, then by how much it matters. With a `thread` only what was noticed there.

    `user`: of that user, and of none; None: of everybody.
    """

    def wanted(scope: str) -> bool:
        return scope.startswith(_LAYER.prefix) and (
            user is None or scope in (_LAYER.prefix, _LAYER.prefix + user)
        )

    with view.reading() as sight:
        found = [
            sight.node(row, sight.upright(ent))
            for ent in sight.entities(False, CHUNK)
            if wanted(sight.scope(ent)) and (row := sight.find(ent)) >= 0
        ]
    if thread is not None:
        found = [node for node in found if node.content.get("thread") == thread]
    return sorted(found, key=_order)


def _order(node: Node) -> tuple[Any, ...]:
    return node.valid_from.date(), _rank(node), node.valid_from, node.recorded_at, node.id


def _rank(node: Node) -> int:
    priority = node.content.get("metadata", {}).get("priority")
    return PRIORITIES.index(priority) if priority in PRIORITIES else _UNSAID


def _place(user: str, thread: str | None, number: int) -> Place:
    return Place(BATCH, (user, thread or "", str(number)))


class _Batch(NamedTuple):
    """A batch of a thread: its number from 1 (0: there is none yet), and its entity or -1."""

    number: int
    ent: int

    @classmethod
    def latest(cls, sight: Sight, user: str, thread: str | None) -> _Batch:
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

    def closed(self, sight: Sight) -> bool:
        """Whether it was compressed by then, or no longer stands."""
        row = sight.find(self.ent)
        return row < 0 or "observed" in sight.node(row, "stands").content


def _open(sight: Sight, user: str, thread: str | None) -> tuple[_Batch, list[Message]]:
    """The last batch of a thread, and the messages that wait in it."""
    batch = _Batch.latest(sight, user, thread)
    return batch, [] if batch.ent < 0 or batch.closed(sight) else _messages(sight, batch.ent)


def _messages(sight: Sight, batch: int) -> list[Message]:
    """The messages of a batch that stand, by when they were sent, then as they were recorded."""
    found = []
    for row in sight.links_around(batch, "out", _JOINED):
        ent = sight.edge(row).target
        version = sight.find(ent) if sight.is_event(ent) else -1
        if version >= 0 and not sight.is_superseded(ent):
            event = sight.event(version, "stands")
            found.append((event.occurred_at, ent, message_of(event, sight.link(row).metadata.get("sender"))))
    return [message for *_, message in sorted(found, key=lambda each: each[:2])]


def message_of(event: Event, sender: str | None = None) -> Message:
    """A message of the timeline, sent by the user it names, unless the observer recorded another."""
    who = sender or event.sender_name or event.sender or event.metadata.get("sender") or event.agent
    who = who or ("system" if event.type == "SYSTEM" else None)
    return Message(id=event.id, text=_words(event), sender=who, occurred_at=event.occurred_at)


def _words(event: Event) -> str:
    """What a message says; of a medium that was sent without words, which it is."""
    medium = f"[{event.type} {event.media_path or event.media_hash}]"
    return event.description or (medium if event.media_path or event.media_hash else "")


# ---- noticing ---------------------------------------------------------------------------------


_SETTINGS = {"threshold": "int"}


class Observer:
    """Queues the messages of conversations, and has them compressed when `threshold` of one thread wait.

    Without `compress` each message becomes an observation as it is. Neither it nor `reflect` is called with a lock held or a transaction open;
    when one fails, nothing is lost: the messages wait, and each further `threshold` of them, or a `tick`, is another try.
    """

    def __init__(
        self,
        store: Store,
        compress: Compress | None = None,
        *,
        reflect: Reflect | None = None,
        threshold: int = THRESHOLD,
    ) -> None:

        for name, given in (("compress", compress), ("reflect", reflect)):
            if given is not None and not callable(given):
                raise InvalidError(f"{name} {given!r} cannot be called. Give a function that gives text.")
        self._store, self._compress, self._reflect = store, compress, reflect
        self._threshold = at_least_one("threshold", threshold)
        self._settings = {"threshold": threshold}
        if isinstance(store, registry.Elsewhere) and (compress or reflect):
            registry.refuse(
                store, "compress= and reflect=", "Leave them out: messages are kept as they are there."
            )
        self._failed: set[tuple[str, str | None]] = set()  # threads whose compression failed last

    @registry.of("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def enqueue(
        self,
        message: str | Event | Recorded,
        *,
        user: str,
        thread: str | None = None,
        sender: str | None = None,
        occurred_at: TimeLike | None = None,
    ) -> Observed | None:
        """Queue a message: an event that is recorded already, or a text to be recorded as one. A message that was queued before is not again.

        Gives what was noticed when that made it enough, else None.
        """
        text_of("user", user), optional_text("thread", thread), optional_text("sender", sender)
        with self._store._verb():
            event = self._recorded(message, user, thread, sender, occurred_at)
            waiting = self._join(event, user, thread, sender)
        failed = (user, thread) in self._failed and waiting % self._threshold
        if waiting < self._threshold or failed or self._in_transaction():
            return None
        return self.observe(user, thread)

    def _join(self, event: Event, user: str, thread: str | None, sender: str | None) -> int:
        """Put a message into the batch of its thread. Gives how many are in it now; 0 for a message that is in one already."""
        with self._store._verb(), self._store.reading() as sight:
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

    def _batch(self, sight: Sight, user: str, thread: str | None) -> str:
        """The batch that messages of the thread join: the last one while it is open, else a new one."""
        latest = _Batch.latest(sight, user, thread)
        if latest.ent >= 0 and not latest.closed(sight):
            return sight.id(latest.ent)
        content = {"user": user} | ({"thread": thread} if thread else {}) | {"number": latest.number + 1}
        name = _place(user, thread, latest.number + 1).id()
        return self._store.add_node(BATCH, content, id=name, scope=user).id

    @registry.of("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def observe(self, user: str, thread: str | None = None) -> Observed:
        """Compress what waits in a thread now, however little. What the compressor raises is reported in `error`, and all of it waits still."""
        self._refuse_in_transaction("observe()")
        text_of("user", user), optional_text("thread", thread)
        with self._store.reading() as sight:
            batch, waiting = _open(sight, user, thread)
        if not waiting:
            return _nothing(user, thread)
        try:
            found, warnings = self._compressed(waiting)
        except Exception as error:
            self._failed.add((user, thread))
            return _nothing(user, thread, f"{type(error).__name__}: {error}")
        self._failed.discard((user, thread))
        with self._store._verb() as work, self._store.reading() as sight:
            if batch != _Batch.latest(sight, user, thread) or batch.closed(sight):
                return _nothing(user, thread)  # compressed meanwhile, by somebody else
            name = sight.id(batch.ent)
            seen = {message.id for message in waiting}
            late = [ent for ent in _members(sight, batch.ent) if sight.id(ent) not in seen]
            content = sight.node(sight.find(batch.ent), "stands").content
            self._store.revise(
                name,
                {**content, "observed": len(waiting)},
                valid_from=moment(work.tx),
                trigger="observed",
                minor=True,
            )
            for ent in late:
                self._move(sight, ent, batch.ent, user, thread)
            last = max(message.occurred_at for message in waiting)
            writing = _Writing(self._store, user, thread, name, last, warnings)
            return writing.write(found, len(waiting))

    def _refuse_in_transaction(self, what: str) -> None:
        if self._in_transaction():
            raise InvalidError(f"{what} inside transaction(). Leave the block first.")

    def _compressed(self, waiting: list[Message]) -> tuple[Sequence[Observation], list[str]]:
        if self._compress is None:
            kept = [
                Observation(
                    f"{message.sender}: {message.text}" if message.sender else message.text,
                    date=instant(message.occurred_at),
                )
                for message in waiting
            ]
            return kept, []
        return _read(self._compress(tuple(waiting)))

    def _move(self, sight: Sight, ent: int, batch: int, user: str, thread: str | None) -> None:
        """What came while the others were compressed, or is still to come, waits in the next batch."""
        for edge in list(sight.edges(ent, "into", _JOINED)):
            if edge.source == batch:
                sender = sight.link(sight.believed_link(edge.link)[0]).metadata.get("sender")
                self._store.unlink(edge.id, reason="came while the batch was compressed")
                self._join(sight.event_and_links(ent), user, thread, sender)

    @registry.of("observer", "write", lambda store, **settings: Observer(store, **settings), _SETTINGS)
    def tick(self) -> list[Observed]:
        """Compress every queue that is long enough, those that an earlier process left too."""
        contents = [row.content or {} for row in self._store.scan(BATCH, content=True)]
        threads = dict.fromkeys(
            (content["user"], content.get("thread")) for content in contents if "observed" not in content
        )
        return [
            self.observe(user, thread)
            for user, thread in threads
            if len(queue(self._store, user, thread)) >= self._threshold
        ]

    def reflect(self, user: str, thread: str | None = None) -> Observed:
        """Rewrite the observations: what the new ones name, they supersede. Raises InvalidError without a `reflect`."""
        registry.only_here(self._store, "reflect()", "Run the observer where the store is.")
        self._refuse_in_transaction("reflect()")
        if self._reflect is None:
            raise InvalidError(
                "this observer cannot reflect. Give it a function: Observer(store, reflect=…)."
            )
        known = observations(self._store, user, thread)
        if not known:
            return _nothing(user, thread)
        try:
            found, warnings = _read(self._reflect(tuple(known)))
        except Exception as error:
            return _nothing(user, thread, f"{type(error).__name__}: {error}")
        with self._store._verb() as work:
            writing = _Writing(self._store, user, thread, None, moment(work.tx), warnings)
            return writing.write(found, 0)


class _Writing:
    """Observations of one thread, written in the transaction that is open."""

    def __init__(
        self,
        store: Store,
        user: str,
        thread: str | None,
        batch: str | None,
        at: datetime,
        warnings: list[str],
    ) -> None:
        self.store, self.user, self.thread = store, user, thread
        self.batch, self.at, self.warnings = batch, at, warnings

    def write(self, found: Iterable[Observation], messages: int) -> Observed:
        found = list(found)
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
            user=self.user, thread=self.thread, observations=tuple({node.id: node for node in nodes}.values()), superseded=tuple(superseded), messages=messages,
            warnings=tuple(self.warnings), error=None,
        )  # fmt: skip

    def _chunk(self, observation: Observation) -> dict[str, Any]:
        metadata: dict[str, Any] = {"priority": observation.priority} if observation.priority else {}
        if observation.details:
            metadata["details"] = [detail.strip() for detail in observation.details]
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


def _members(sight: Sight, batch: int) -> list[int]:
    """The messages of a batch that are believed and not superseded, those to come included."""
    return [
        edge.target
        for edge in sight.edges(batch, "out", _JOINED)
        if sight.believed_link(edge.link)
        and sight.is_believed(edge.target)
        and not sight.is_superseded(edge.target)
    ]


def _queued(sight: Sight, event: int) -> bool:
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


def _nothing(user: str, thread: str | None, error: str | None = None) -> Observed:
    return Observed(
        user=user, thread=thread, observations=(), superseded=(), messages=0, warnings=(), error=error
    )
