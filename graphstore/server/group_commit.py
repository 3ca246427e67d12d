"""Runs all writes of many clients on one thread, in turn, and makes them durable in groups.

A write queues, the thread takes all queued writes, runs each as a transaction of its own (one line of the journal), syncs once, and answers all.
A write that raises fails alone; a failed sync fails the whole group.
A client that holds a transaction open has the thread for itself. All others wait, so such a transaction always ends after a limit.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from graphstore.errors import ConflictError, EngineError, GraphStoreError
from graphstore.values.period import moment

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

__all__ = ["Groups", "Patience", "Serving", "WriteTurn"]

_log = logging.getLogger("graphstore")
_MOST = 256  # turns in a group
_GATHER = 0.0001  # seconds to wait for clients of the last group: half the syncs, a fifth less work per write
_LONGEST = 0.05  # seconds after which a group is made durable
_REMEMBERED = 1_000  # ended transactions whose reason is remembered


class WriteTurn:
    """One piece of work for the writer. The writer's thread calls `work`; then `value` or `error` is the answer. `ends`: end an open transaction
    instead."""

    __slots__ = ("_claim", "alone", "answered", "done", "ends", "error", "request", "tx", "value", "work")  # fmt: skip

    def __init__(
        self,
        work: Callable[[], Any] = lambda: None,
        *,
        alone: bool = False,
        done: Any = None,
        ends: Literal["commit", "abort"] | None = None,
        request: str | None = None,
    ) -> None:
        self.work, self.alone, self.ends = work, alone, ends
        self.request = request  # the id of the request that commits a transaction
        self.done = done
        """The caller's future or event, set when the turn is done."""
        self.value: Any = None
        self.error: BaseException | None = None
        self.tx: datetime | None = None  # of its last write
        self.answered = False
        self._claim = threading.Lock()

    def claim(self) -> bool:
        """Return True for the first caller, which then runs the turn or cancels it."""
        return self._claim.acquire(blocking=False)


@dataclass(slots=True)
class Groups:
    """Counts the work of the writer: the turns that shared a sync, by group size, and the seconds."""

    sizes: list[int] = field(default_factory=lambda: [0] * 10)  # at most 1, 2, 4, … 256, more
    count: int = 0
    turns: int = 0
    seconds: float = 0.0
    failed: int = 0

    def took(self, turns: int, seconds: float) -> None:
        self.sizes[min((turns - 1).bit_length(), len(self.sizes) - 1)] += 1
        self.count += 1
        self.turns += turns
        self.seconds += seconds


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of a transaction over the network, in seconds: without a call, after its client has disconnected, and in all."""

    idle: float = 10.0
    gone: float = 3.0
    whole: float = 300.0


class _HeldTransaction:
    """A transaction that a client holds open."""

    def __init__(self, patience: Patience) -> None:
        self.token = secrets.token_urlsafe(18)
        self.turns: SimpleQueue[WriteTurn | None] = SimpleQueue()  # None: its client has disconnected
        self.patience = patience


class _Aborted(Exception):
    """Exits the block of a transaction, so that nothing of it is kept."""


class Serving:
    """Runs the thread that writes to a store. `answered` is called on that thread with finished turns, those of a group together."""

    def __init__(
        self,
        store: GraphStore,
        answered: Callable[[Sequence[WriteTurn]], None],
        *,
        patience: Patience | None = None,
    ) -> None:
        self._store, self._answered = store, answered
        self._patience = patience or Patience()
        self._queue: SimpleQueue[WriteTurn | None] = SimpleQueue()
        self._held: _HeldTransaction | None = None
        self._over: dict[str, str] = {}
        self._gate = threading.Lock()  # no turn may join a transaction that is ending
        self._stopping = False
        self._last = 0  # size of the last group: that many clients are about to ask again
        self.groups = Groups()
        self._thread = threading.Thread(target=self._work, name="graphstore writer", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ from any thread

    @property
    def waiting(self) -> int:
        """Return the number of turns in the queue."""
        return self._queue.qsize()

    @property
    def in_transaction(self) -> bool:
        """Return True while a client holds a transaction open."""
        return self._held is not None

    def knows(self, token: str) -> bool:
        """Return True if a transaction with that token was begun here."""
        held = self._held
        return token in self._over or (held is not None and held.token == token)

    def ask(self, turn: WriteTurn) -> None:
        """Queue a turn."""
        self._queue.put(turn)

    def ask_within(self, token: str, turn: WriteTurn) -> None:
        """Queue a turn of an open transaction, or its end. Raise ConflictError with the reason if the transaction is over, or was never begun."""
        with self._gate:
            self._of(token).turns.put(turn)

    def begin(self, opening: Callable[[], Any], answer: Callable[[str], Any], *, done: Any) -> WriteTurn:
        """Queue the start of a transaction. `opening` returns its context manager, whose value answers the commit; `answer` maps its token to the
        client's answer. The returned turn is answered when the transaction is open.
        """
        held = _HeldTransaction(self._patience)
        turn = WriteTurn(lambda: self._hold(held, opening, answer, turn), alone=True, done=done)
        self._queue.put(turn)
        return turn

    def gone(self, token: str) -> None:
        """Note that the client of a transaction may have disconnected. It has `gone` seconds to come back."""
        held = self._held
        if held is not None and held.token == token:
            held.turns.put(None)

    def hold_no_more(self) -> None:
        """Abort the open transaction after its queued turns, and begin no other. The server stops, and others wait for that transaction."""
        self._stopping = True
        held = self._held
        if held is not None:
            held.turns.put(None)

    def stop(self, wait: float | None = None) -> bool:
        """Run the queued turns, abort the open transaction, and stop. Return True if the thread ended within `wait` seconds."""
        self.hold_no_more()
        self._queue.put(None)
        self._thread.join(wait)
        return not self._thread.is_alive()

    def _of(self, token: str) -> _HeldTransaction:
        held = self._held
        if held is not None and held.token == token:
            return held
        why = self._over.get(token)
        if token.startswith("read-"):
            raise ConflictError("that transaction only reads. Begin one without read_only to write.")
        if why is None:
            raise ConflictError("no transaction by that token. Begin one: POST /transaction.")
        raise ConflictError(f"the transaction is over: {why}")

    # ------------------------------------------------------------------ in the writer's thread

    def _work(self) -> None:
        queue = self._queue
        ahead: deque[WriteTurn] = deque()
        while True:
            if not ahead:
                turn = queue.get()
                if turn is None:
                    return
                ahead.append(turn)
                if self._last > 1 + queue.qsize():
                    time.sleep(_GATHER)
            while len(ahead) < _MOST:
                try:
                    turn = queue.get_nowait()
                except Empty:
                    break
                if turn is None:
                    queue.put(None)  # stop after the turns ahead
                    break
                ahead.append(turn)
            try:
                if ahead[0].alone:
                    self._alone(ahead.popleft())
                else:
                    self._together(ahead)
            except Exception:
                _log.exception("the writer failed beside its work")

    def _together(self, ahead: deque[WriteTurn]) -> None:
        """Run the turns ahead that may share a sync, until this has taken long enough."""
        start = time.monotonic()
        turns: list[WriteTurn] = []
        try:
            self._group(ahead, turns, start)
        except Exception as error:
            self.groups.failed += 1
            if not turns and ahead:  # the group could not even begin
                turns.append(ahead.popleft())
            for turn in turns:
                if turn.error is None:
                    turn.value, turn.error = None, _again(error, turn.tx)
        if turns:
            self.groups.took(len(turns), time.monotonic() - start)
            self._last = len(turns)
            self._resolve(turns)

    def _group(self, ahead: deque[WriteTurn], turns: list[WriteTurn], start: float) -> None:
        """Run the turns ahead, and add them to `turns`, which share the sync."""
        with self._store.together():
            while ahead and not ahead[0].alone and time.monotonic() - start < _LONGEST:
                turn = ahead.popleft()
                if turn.claim():
                    turns.append(turn)
                    self._do(turn)

    def _do(self, turn: WriteTurn) -> None:
        _do(turn)
        turn.tx = moment(self._store.last_tx)

    def _alone(self, turn: WriteTurn) -> None:
        if turn.claim():
            _do(turn)
            if not turn.answered:
                self._resolve((turn,))

    def _resolve(self, turns: Sequence[WriteTurn]) -> None:
        for turn in turns:
            turn.answered = True
        self._answered(turns)

    def _hold(
        self,
        held: _HeldTransaction,
        opening: Callable[[], Any],
        answer: Callable[[str], Any],
        first: WriteTurn,
    ) -> None:
        """Run the whole transaction of a client."""
        why = "it was committed."
        last: WriteTurn | None = None
        begun = False
        try:
            with ExitStack() as ending, opening() as opened:
                if self._stopping:
                    raise _Aborted("the server is stopping.")
                first.value = answer(held.token)
                self._held = held
                self._resolve((first,))
                begun = True
                last = self._calls(held)
                if last.ends != "commit":
                    raise _Aborted("it was aborted.")
                ending.enter_context(self._store._asked_by(last.request))
                last.value = opened
        except _Aborted as aborted:
            why = str(aborted)
        except Exception as error:
            why = f"it could not be committed: {error}"
            if not begun:
                raise
            if last is not None:
                last.error = error
        finally:
            with self._gate:
                self._held = None
            if begun:
                self._end(held, why, last)
        if not begun:
            raise EngineError(f"no transaction was begun: {why}")

    def _end(self, held: _HeldTransaction, why: str, last: WriteTurn | None) -> None:
        self._over[held.token] = why
        while len(self._over) > _REMEMBERED:
            del self._over[next(iter(self._over))]
        late: list[WriteTurn] = [] if last is None else [last]
        while True:
            try:
                turn = held.turns.get_nowait()
            except Empty:
                break
            if turn is not None and turn.claim():
                turn.error = ConflictError(f"the transaction is over: {why}")
                late.append(turn)
        if late:
            self._resolve(late)

    def _calls(self, held: _HeldTransaction) -> WriteTurn:
        """Run the client's calls within its transaction until the client ends it. Raise _Aborted if it takes too long."""
        patience = held.patience
        end = time.monotonic() + patience.whole
        idle, why = patience.idle, f"nothing came for {patience.idle:g} s, so it was aborted."
        while True:
            left = end - time.monotonic()
            try:
                turn = held.turns.get(timeout=max(0.0, min(idle, left)))
            except Empty:
                if left <= idle:
                    why = f"it took longer than {patience.whole:g} s, so it was aborted."
                raise _Aborted(f"{why} Nothing of it was kept.") from None
            if turn is None:
                if self._stopping:
                    raise _Aborted("the server was stopped. Nothing of it was kept.")
                idle, why = patience.gone, "its client has gone, so it was aborted."
                continue
            idle, why = patience.idle, f"nothing came for {patience.idle:g} s, so it was aborted."
            if not turn.claim():
                continue
            if turn.ends is not None:
                return turn
            _do(turn)
            self._resolve((turn,))


def _do(turn: WriteTurn) -> None:
    try:
        turn.value = turn.work()
    except Exception as error:
        turn.error = error


def _again(error: Exception, tx: datetime | None) -> Exception:
    """Return a copy of an error for one turn of a group, with the turn's tx. A shared traceback would grow with each raise."""
    if isinstance(error, EngineError):
        return type(error)(*error.args, outcome=error.outcome, tx=tx if error.tx else None)
    return type(error)(str(error)) if isinstance(error, GraphStoreError) else error
