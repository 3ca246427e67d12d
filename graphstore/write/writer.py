"""Begin and end transactions: the store's now, the one instant of each transaction, and when it is durable.

A transaction holds the writer's lock and has one instant. Other threads do not see its working set. Its commit writes one line (or several), durable and visible.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from graphstore.errors import EngineError, GraphStoreError, InvalidError
from graphstore.graph.graphs import Graphs
from graphstore.ledger import chain
from graphstore.ledger.chain import RETENTION
from graphstore.ledger.folder import Folder
from graphstore.ledger.ledger import DoneElsewhere, Ledger
from graphstore.read import counted, working_set
from graphstore.read.points import Point
from graphstore.search import model_vectors
from graphstore.values import coordinates
from graphstore.values.doors import DOOR, SIGNER
from graphstore.values.gc_pause import no_collecting
from graphstore.values.inputs import text_of
from graphstore.values.period import BEGINNING, OPEN, Instant, TimeLike, exactly, instant, moment
from graphstore.values.vocabulary import Vocabulary
from graphstore.view import snapshots
from graphstore.view.core_state import Core
from graphstore.view.view import Reader, View
from graphstore.write import retention, shown_rows
from graphstore.write import transaction as transactions
from graphstore.write.trust import TRUST

if TYPE_CHECKING:
    from graphstore.ledger.readings import ReadingsRecorder
    from graphstore.write.transaction import Born, Transaction

T = TypeVar("T")
Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
_BEHIND, _AHEAD = 3_600_000_000, 7 * 86_400_000_000  # tolerated microseconds from last transaction to clock
_request: ContextVar[_Request | None] = ContextVar("_request", default=None)
_DOORS = 500  # number of transactions whose door is remembered


@dataclass(slots=True)
class _Request:
    """Holds a request for transactions: its id, how long the chain was when no other process had done it (None: unknown), and whether this process has done it."""

    id: str
    since: int | None
    is_done: bool = False


class _TakenBack(Exception):
    """Leaves the block of a transaction that was only tried."""


class Writer(Reader):
    """An open store without its verbs: its ledger, its clock, and how a transaction begins and ends."""

    _open: Transaction | None = None
    _owner = 0  # the thread of the open transaction
    _too_big: int = 0  # no eviction below this size in bytes: it would not free enough
    _trying: Instant | None = None  # the instant of a transaction that is only tried and then taken back
    _given: Sequence[Instant] = ()  # instants of transactions that are done once more
    _recorder: ReadingsRecorder | None = None  # of the trunk: records the answers of an interface
    _seen_scopes: tuple[str, ...] = ()  # the scopes to which this opening is limited; empty: no limit
    _written: Instant = -OPEN  # the last tx that a write of this process made durable
    # of the trunk: the thread of the open group, and the group's first instant. Only that thread sees the group before it ends
    _group_thread, _group_first = 0, OPEN

    def __init__(
        self, place: Folder, *, clock: Clock | None, driver: str, durability: str, author: str | None
    ) -> None:
        self._place = place
        self._clock = clock
        self._author = author
        # By thread, the latest tx requested for a view: no transaction may get an instant up to that. Branches share it. A reader records the tx and then looks for an
        # open transaction that is not later. A writer opens the transaction and then looks here. So at least one of them sees the other.
        self._asked: dict[int, Instant] = {}
        self._writer = threading.RLock()
        self._named = "the trunk"
        self._lines: list[Writer] = [self]  # the trunk, then the branches in use
        # the branches in use, by name and creation instant
        self._in_use: dict[tuple[str, Instant], Any] = {}
        # the line on which the last transaction was begun: none is open on another
        self._begun: list[Writer] = []
        self.notices = place.notices
        journal = place.open_ledger(durability)
        try:
            place.prepare(journal)
            vocabulary = Vocabulary()
            graphs = Graphs(
                place.tables, journal, vocabulary, driver=driver, notify=self.notices.append,
                ledger=journal,
            )  # fmt: skip
            vectors = model_vectors.Vectors(
                place.shown,
                None if place.is_in_memory else journal,
                None if place.read_only else self._tell_once,
            )
            self._core = Core(journal, vocabulary, graphs, rows=journal, vectors=vectors)
            self._last_committed_tx()
            self._core.accesses.again(place.kept_accesses(journal))
            self._compare_clock()
        except BaseException:
            with contextlib.suppress(EngineError):  # the first error says why opening failed
                journal.close()
            raise
        _opened.add(self)

    # ------------------------------------------------------------------ opening and closing

    @property
    def path(self) -> Path | None:
        """The folder of the store; None for one in memory."""
        return self._place.shown

    @property
    def read_only(self) -> bool:
        """Whether this store only follows another process's journal."""
        return self._place.read_only

    def close(self) -> None:
        """Close the graph tables cleanly if they were used, and release the folder."""
        with self._writer:
            core = self._core
            if core.closed:
                return
            self._refuse_open("close()")
            for line in self._lines:
                line._write_accesses()
            whole = not core.journal.broken
            core.closed = "the store is closed. Open it again with graphstore.open(…)."
            try:
                if self._recorder is not None:
                    self._recorder.close()
                core.vectors.close()
                if not whole:  # the tables may contain what is not on the disk
                    core.graphs.drop_built()
                for line in reversed(self._lines):
                    line._let_go(core.closed)
                if whole:
                    self._place.finish(core.journal)
            finally:
                try:
                    core.journal.close()
                finally:
                    self._place.release()

    def _last_committed_tx(self) -> Instant:
        """Return the last committed tx. Adds the kinds of link that other processes have defined meanwhile."""
        core = self._core
        last, kinds = core.rows.last_tx_and_new_kinds()
        if kinds is not None:
            core.vocabulary.extend(kinds)
        return last

    @property
    def _ledger(self) -> Ledger:
        """Return the ledger of the store; of a branch, that of its trunk."""
        return self._core.journal

    def _tell_once(self, notice: str) -> None:
        if notice not in self.notices[-8:]:
            self.notices.append(notice)

    def _let_go(self, why: str) -> None:
        """Close this line of belief: later reads raise with the message `why`."""
        self._core.closed = why
        self._core.graphs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        core = self._core
        state = "closed" if core.closed else "read only" if self.read_only else "open"
        opened = f"GraphStore {str(self._place.named)!r} {state}"
        if core.closed:
            return f"<{opened}>"
        found = counted.counts(Point(core.rows.database, OPEN, OPEN))
        return f"<{opened}: {found.things} things, {found.links} links, {found.transactions} transactions>"

    # ------------------------------------------------------------------ coordinates

    def _now(self) -> Instant:
        return max(self._told_time(), self.last_tx)

    def _told_time(self) -> Instant:
        return time.time_ns() // 1000 if self._clock is None else instant(self._clock(), "the clock's time")

    def _compare_clock(self) -> None:
        """Add a notice if the clock is far from the last transaction: either the clock is wrong now or it was wrong then."""
        last = self.last_tx
        if not last:
            return
        ahead = self._told_time() - last
        if ahead < -_BEHIND:
            self.notices.append(
                f"the clock is {_span(-ahead)} behind the last transaction, of {exactly(last)}: it is wrong now, or was then. Now is that "
                "transaction here, and what is written follows it by microseconds. undo(since=TX) takes back what a wrong clock wrote."
            )
        elif not self.read_only and min(ahead, self._told_time() - self._core.journal.changed()) > _AHEAD:
            self.notices.append(
                f"the clock is {_span(ahead)} ahead of the last transaction, of {exactly(last)}. If nothing was written for so long, it is right; "
                "else set it right before you write: no later transaction can have an earlier instant."
            )

    @property
    def _first_tx(self) -> Instant | None:
        """Return the instant of the first transaction that the rows still contain; None if there is none."""
        found = self._core.rows.database.rows("SELECT tx FROM operation ORDER BY number LIMIT 1")
        return found[0][0] if found else None

    @property
    def last_tx(self) -> Instant:
        """The instant of the last transaction, on the trunk or on any branch."""
        return self._last_committed_tx()

    @property
    def _asks_first(self) -> bool:
        return not self._place.shared

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return now, and the latest tx that a view can have. Other threads see a transaction once it and its group are committed."""
        self._usable()
        work = self._open
        if work is not None and self._owner == threading.get_ident():
            return work.tx, work.tx
        last = self.last_tx
        now = max(self._told_time(), last)
        if self._place.shared:  # another process, with another clock, may write any later instant
            return now, last
        work, trunk = self._open, self._lines[0]
        # read after the clock and before the group: so a transaction moving from one to the other is seen
        known = now if work is None else min(now, work.tx - 1)
        if trunk._group_thread == threading.get_ident():
            return now, now
        return now, min(known, trunk._group_first - 1)

    def fixed(self) -> View:
        """Return the view of now."""
        return self.as_of()

    def as_of(
        self, snapshot: TimeLike | None = None, *, valid: TimeLike | None = None, tx: TimeLike | None = None
    ) -> View:
        """The view of what held at `valid` as the store knew it at `tx`; each defaults to now. Or that of a snapshot, by its name; any other time in its place
        is a valid time. A day, a month or a year means its last microsecond, or now if it is not over.

        Raises InvalidError for a tx that has not come yet, NotFoundError for an unknown name. A valid time ahead of now is the planned future.
        """
        now, known = self.coordinate()
        here, at = now, known
        names = partial(self._core.snapshots, known)
        if snapshot is not None:
            if valid is not None or tx is not None:
                raise InvalidError("a snapshot is a whole coordinate. Leave valid and tx out, or the name.")
            found = snapshots.find(names(), snapshot)
            valid, tx = (snapshot, None) if found is None else (found.valid, found.tx)
            snapshot = None
        if valid is not None:
            here = coordinates.resolve(valid, "valid", now, names)
        if tx is not None:
            at = coordinates.resolve(tx, "tx", now, names, axis="tx", present=known)
        if at > max(now, known):
            self._refuse_ahead(at, now, known)
        thread = threading.get_ident()
        self._asked[thread] = max(at, self._asked.get(thread, at))
        at = min(at, known)  # another process or thread may be committing an instant after `known`
        work = self._open  # before the group, as in `coordinate`
        has_begun = (work is not None and work.tx <= at) or self._lines[0]._group_first <= at
        if has_begun and at > self.coordinate()[1]:
            return self.as_of(snapshot, valid=valid, tx=tx)
        return View(self._core, here, at)

    def _refuse_ahead(self, at: Instant, now: Instant, known: Instant) -> NoReturn:
        if self.read_only:
            raise InvalidError(
                f"tx {exactly(at)} is not known here yet: this reader has followed the journal to {exactly(known)}. "
                "Leave tx out for what it knows, or call refresh() and ask for what it knows then."
            )
        raise InvalidError(
            f"tx {exactly(at)} has not come yet: it is {exactly(now)}. What will be known then cannot be said now."
        )

    def knowledge_at(self, t: TimeLike) -> View:
        """What the store believed at `t` about `t`."""
        return self.as_of(valid=t, tx=t)

    def _known_by(self, tx: TimeLike) -> Instant:
        return instant(self.as_of(tx=tx).at.tx)

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def transaction(
        self, *, at: TimeLike | None = None, author: str | None = None, reason: str | None = None
    ) -> Iterator[Writer]:
        """Many verbs, one instant, all or nothing. `at` replays an older source: later than the last tx, not ahead of the clock.

        Raises InvalidError for an `at` that runs backwards. Other threads wait; nothing of it shows to them before the end.
        """
        wanted = None if at is None else self.instant_of(at, "at", "tx")
        with self._transact(wanted, author, reason):
            yield self

    def in_transaction(
        self, work: Callable[[Self], T], *, author: str | None = None, reason: str | None = None
    ) -> T:
        """Call `work` with this store in one transaction, and return its result. Raises what `work` raises; nothing is kept then."""
        with self.transaction(author=author, reason=reason):
            return work(self)

    @property
    def last_write(self) -> datetime | None:
        """Return the tx that the last acknowledged write of this opening had; None before the first."""
        written = self._lines[0]._written
        return None if written < BEGINNING else moment(written)

    @contextlib.contextmanager
    def _transact(
        self,
        at: Instant | None,
        author: str | None,
        reason: str | None,
        *,
        early: bool = False,
    ) -> Iterator[Transaction]:
        """Open a transaction; see `transaction`. `early`: see `verb`."""
        with self._writer:
            if self._open is not None:
                raise InvalidError(
                    "a transaction is open in this thread already: one block is one transaction. End it first."
                )
            self._refuse_open(f"a verb of {self._named}")
            self._writable()
            author = self._signed(author)
            reason = None if reason is None else text_of("reason", reason, empty=True)
            core = self._core
            work: Transaction | None = None
            asked = _request.get()
            core.journal.take_turn()
            try:
                if asked is not None:
                    self._refuse_done(asked)
                work = self._new_work(at, author, reason, early)
                is_limited = self._ledger.is_limited
                yield work
                self._commit(work)
            except BaseException as error:
                if work is not None:
                    if isinstance(error, Exception):  # complete answers still held: nothing is written
                        with contextlib.suppress(EngineError):
                            work.complete()
                    core.vocabulary.reset(core.kinds.kinds)
                elif isinstance(error, EngineError):
                    error.outcome = error.outcome or "not kept"
                raise
            finally:
                self._open = core.working = core.shown = None
                core.journal.leave_turn()
            is_grouping = self._lines[0]._group_thread != 0
            last = self.last_tx if work.empty else work.tx
        if asked is not None:
            asked.is_done = True
        if not is_grouping:
            self._acknowledge(max(last, BEGINNING))
            if is_limited or work.index.settings:
                self._keep_small()

    def _signed(self, author: str | None) -> str | None:
        """Return the author of a write: the named author, else that of this opening. A token with a name signs if no author is named, and always in a store that ranks
        authors."""
        signer = SIGNER.get()
        if signer is None:
            return self._author if author is None else text_of("author", author)
        asked = signer.asked if author is None else text_of("author", author)
        return signer.name if asked is None or self._core.setting(TRUST) else asked

    def _new_work(
        self, at: Instant | None, author: str | None, reason: str | None, early: bool
    ) -> Transaction:
        """Begin a transaction. The caller has the writer's lock and the turn to write."""
        core = self._core
        self._owner = core.worker = threading.get_ident()
        core.working = working_set.WorkingSet(core.rows.database, core.kinds, core.show_rows)
        last = core.working.last_tx
        if core.rows is not core.journal or core.journal.kinds_known != core.kinds.count:
            last = self._last_committed_tx()  # on a branch, perhaps deleted, or after a kind was defined
        given = self._trying or next((again for again in self._given if again > last), None)
        tx = given or self._chosen_tx(at, last, early)
        self._begun[:] = [self]
        self._open = work = transactions.Transaction(core.working, core.pending, tx, author, reason)
        while not given and self._latest_asked >= work.tx:  # a view was requested meanwhile
            work.tx = self._chosen_tx(at, last, early)
        core.shown = shown_rows.ShownRows(self._ledger, work, core.working.line)
        work.on_working_set = core.on_working_set
        return work

    def _commit(self, work: Transaction) -> None:
        """Write a transaction, then complete the answers of its verbs: the rows have their standings by now."""
        core, ledger = self._core, self._ledger
        if work.spoiled:
            raise EngineError(
                "the transaction was interrupted in the middle of a verb. Nothing of it was kept: do it again.",
                outcome="not kept",
            )
        counts: dict[str, int] = {}
        working = core.working
        assert working is not None
        core.in_verb = True
        try:
            ledger.hide()
            if not work.empty:
                counts = _touch(core, work) if core.accesses.due(work.tx) else {}
                lines = work.lines()
                if (request := _request.get()) is not None:
                    lines[0].head["request"] = request.id
                ledger.append([(line.head, line.bodies) for line in lines], working.known_numbers())
                working.note_written()
            try:
                work.complete()
            except BaseException:
                if not work.empty:
                    ledger.rewind()
                raise
        except BaseException:
            core.accesses.back(counts)
            raise
        finally:
            core.in_verb = False
        if work.empty:
            return
        if (trunk := self._lines[0])._group_thread:
            trunk._group_first = min(trunk._group_first, work.tx)
        try:
            ledger.commit()
        except EngineError:
            core.accesses.back(counts)
            self._read_again()
            raise
        self._note_door(work)

    def _note_door(self, work: Transaction) -> None:
        doors = self._lines[0]._core.doors
        doors[work.tx] = DOOR.get()
        if len(doors) > _DOORS:
            del doors[next(iter(doors))]

    def _write_accesses(self) -> None:
        """Keep the counted accesses for the next commit, before the store closes. If the disk refuses, only they are lost."""
        if not self.read_only and self._core.accesses.waiting:
            try:
                self._keep_accesses()
            except (GraphStoreError, OSError) as error:
                self.notices.append(f"how often things were looked up was not written: {error}")

    def _keep_accesses(self) -> None:
        self._ledger.keep_lookups(self._core.accesses.waiting)

    def flush_accesses(self) -> int:
        """Write how often things were looked up since the last such write, as one operation. Returns the number of those things.

        Otherwise this is written with a commit, every quarter of an hour at most, and with the first one after an opening. Raises InvalidError inside a transaction.
        """
        core = self._core
        with self._alone("flush_accesses()"):
            if not core.accesses.waiting:
                return 0
            counts: dict[str, int] = {}
            try:
                with self._transact(None, None, None) as work, core.on_working_set():
                    counts = _touch(core, work)
            except EngineError:
                core.accesses.back(counts)
                raise
            return len(counts)

    @property
    def _latest_asked(self) -> Instant:
        """Return the latest tx requested for a view."""
        return max(tuple(self._asked.values()), default=-OPEN)

    def _chosen_tx(self, at: Instant | None, last: Instant, early: bool) -> Instant:
        return self._soonest_tx(last) if early else self._next_tx(at, last)

    def _next_tx(self, at: Instant | None, last: Instant) -> Instant:
        """Return the instant of a transaction after the `last` one: `at`, if given. Raises InvalidError if `at` is not possible."""
        asked, clock = self._latest_asked, self._told_time()
        if at is None:
            return max(clock, last + 1, asked + 1)
        if at <= last and self._any_written():
            raise InvalidError(
                f"at {exactly(at)} runs backwards: the last transaction was at {exactly(last)}. Give a later instant."
            )
        if at <= asked:
            raise InvalidError(
                f"at {exactly(at)} runs backwards: a view as of tx {exactly(asked)} has been handed out and must not change. Give a later instant."
            )
        if at > clock:
            raise InvalidError(
                f"at {exactly(at)} lies ahead of the clock, {exactly(clock)}. A transaction cannot have happened yet."
            )
        return at

    def _any_written(self) -> bool:
        """Return True if there is any transaction, on the trunk or on any branch."""
        return self._ledger.last()[0] > 0

    def _soonest_tx(self, last: Instant) -> Instant:
        """Return the first instant after the `last` transaction and every requested view, even if it is long ago."""
        last = last if self._any_written() else BEGINNING
        return max(last, self._latest_asked, BEGINNING) + 1

    @contextlib.contextmanager
    def verb(self, *, early: bool = False, is_narrow: bool = False) -> Iterator[Transaction]:
        """Run one verb: as a part of the open transaction, or as a transaction of its own. If it raises, it is rolled back.

        `early`: it states nothing about the world. Its own transaction gets the earliest possible instant, so that a source can still be replayed (`at`).
        `is_narrow`: it reads what it needs from the working set. Else it consists of other verbs, and reads as its caller does.
        """
        core, work = self._core, self._open
        if work is None or self._owner != threading.get_ident():
            with self._transact(None, None, None, early=early) as work:
                yield from self._deciding(work, is_narrow)
            return
        work.complete()
        point = work.point()
        try:
            yield from self._deciding(work, is_narrow)
        except Exception:
            core.hide_rows()
            work.back(point)
            core.vocabulary.reset(work.index.kinds)
            raise
        except BaseException:
            # interrupted anywhere, perhaps between two columns: the working set is unreliable
            work.spoiled = True
            raise

    def _deciding(self, work: Transaction, is_narrow: bool) -> Iterator[Transaction]:
        """Yield a transaction to one of its verbs, and restore the state of the caller afterwards."""
        core = self._core
        before = core.in_verb, work.is_deciding, work.call
        core.in_verb, work.is_deciding, work.call = is_narrow, work.is_deciding or is_narrow, None
        try:
            yield work
        finally:
            core.in_verb, work.is_deciding, work.call = before

    def keep_setting(self, verb: str, name: str, value: object, subject: str = "") -> None:
        """Store a JSON value in the store's settings, as one operation. The last value of a name counts."""
        with self.verb(is_narrow=True) as work:
            work.op(verb, subject)
            work.index.add_settings([{name: value}])

    def keep_settings(self, verb: str, values: dict[str, object]) -> None:
        """Store many settings at once. A transaction that is not empty stores them without an operation of their own."""
        with self.verb(is_narrow=True) as work:
            if work.empty:
                work.op(verb, "")
            work.index.add_settings([values])

    def _holds_more(self) -> bool:
        """Return True if a transaction is open and not empty."""
        return self._open is not None and not self._open.empty

    @contextlib.contextmanager
    def together(self, *, or_none: bool = False) -> Iterator[None]:
        """Make the transactions of the block durable and visible to other threads together, at its end. If that fails, none is kept.

        A group inside another, or inside a transaction, is part of it. `or_none`: if the block raises, none is kept either.
        """
        with self._writer:
            trunk = self._lines[0]
            if trunk._group_thread or self._open is not None:
                yield
                return
            self._ledger.take_turn()
            trunk._group_thread = threading.get_ident()
            self._core.journal.begin_group()
            try:
                with no_collecting():  # objects made by a large group survive, so collecting them is useless
                    yield
            except BaseException:
                if or_none:
                    self._drop_group()
                    raise
                self._acknowledge(self._close_group())
                self._keep_small()
                raise
            tx = self._close_group()
        self._acknowledge(tx)
        self._keep_small()

    def _doors(self) -> dict[Instant, str]:
        """Return the door through which this process wrote each of its last transactions, by tx."""
        return dict(self._lines[0]._core.doors)

    @staticmethod
    @contextlib.contextmanager
    def _asked_by(request: str | None, since: int | None = None) -> Iterator[None]:
        """Write the id of a request into the transactions of the block. Another process can then tell what was done for it.

        `since`: the result of `_done_elsewhere` when no other process had done it. If one has since, a transaction of the block raises DoneElsewhere.
        """
        token = _request.set(None if request is None else _Request(request, since))
        try:
            yield
        finally:
            _request.reset(token)

    def _refuse_done(self, asked: _Request) -> None:
        """Raise DoneElsewhere if another process has meanwhile done what a request asks for."""
        if asked.since is None or asked.is_done:
            return
        if self._ledger.done_elsewhere(asked.id, asked.since):
            raise DoneElsewhere(
                "another server has done this meanwhile. changes() has what it wrote.", outcome="kept"
            )

    def _done_elsewhere(self) -> int:
        """Return how long the chain is, for `since` of `_asked_by`."""
        return self._core.journal.last()[0]

    @contextlib.contextmanager
    def _tried(
        self, tx: Instant, author: str | None, reason: str | None
    ) -> Iterator[Callable[[], list[Born]]]:
        """Run verbs at an instant after all known ones, and take everything back at the end. Nothing is written, and a read-only store may do it too.

        Yields a function that returns the things and links added so far.
        """
        with self._writer:
            self._trying = tx
            try:
                with self._transact(None, author, reason) as work:
                    yield partial(work.born, self._core.raw)
                    raise _TakenBack
            except _TakenBack:
                pass
            finally:
                self._trying = None

    def _hide_rows(self) -> None:
        """Remove the rows that the open transaction shows to its own reads."""
        self._core.hide_rows()

    def _close_group(self) -> Instant:
        """Commit the group. Returns the instant of its last transaction. Raises EngineError if it was not kept, or may not have been."""
        core = self._core
        try:
            try:
                last = self.last_tx
            finally:
                core.journal.end_group()
        except EngineError:
            self._read_again()
            raise
        finally:
            core.journal.leave_turn()
            trunk = self._lines[0]
            trunk._group_thread, trunk._group_first = 0, OPEN
        return last

    def _drop_group(self) -> None:
        """Take back all transactions of the group."""
        try:
            self._core.journal.drop_group()
        finally:
            self._core.journal.leave_turn()
            trunk = self._lines[0]
            trunk._group_thread, trunk._group_first = 0, OPEN
            self._read_again()

    def _read_again(self) -> None:
        """Forget what a transaction that was not kept has defined, on every line of belief."""
        with contextlib.suppress(GraphStoreError):  # each later call raises that it cannot go on
            for each in [line._core for line in self._lines]:
                each.kinds.read_again(each.rows.database)
                each.vocabulary.reset(each.kinds.kinds)
                each.forget_found()
                each.graphs.drop_built()

    def _acknowledge(self, tx: Instant) -> None:
        """Note the tx of a write that the caller may rely on."""
        trunk = self._lines[0]
        trunk._written = max(trunk._written, tx)

    @contextlib.contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """Hold the writer's lock, with no transaction open."""
        with self._writer:
            self._writable()
            self._refuse_open(what)
            yield

    @contextlib.contextmanager
    def _by_itself(self, what: str) -> Iterator[None]:
        """Hold the writer's lock and the turn to write, with no transaction open."""
        with self._alone(what):
            self._ledger.take_turn()
            try:
                yield
            finally:
                self._ledger.leave_turn()

    def _refuse_open(self, what: str) -> None:
        """Raise InvalidError if a transaction is open. The caller holds the writer's lock, so it is a transaction of this thread."""
        for line in self._begun:
            if line._open is not None:
                where = "" if line is self else f" of {line._named}"
                raise InvalidError(f"{what} inside transaction(){where}. Leave the block first.")

    def _forget(self, verb: str, names: list[str], reason: str | None, author: str | None = None) -> None:
        """Forget things: write the line first, then the files. No reader sees an intermediate state."""
        core = self._core
        # skip the check of the journal's size: an eviction is running
        before, self._too_big = self._too_big, OPEN
        try:
            with self._transact(None, author, reason) as work, core.on_working_set():
                retention.forget(work, verb, names, core.raw)
        finally:
            self._too_big = before
        self._lines[0]._group_first = OPEN  # everything is committed
        core.graphs.drop_built()
        try:
            self._place.remove_forgotten(self._ledger)
        except EngineError as error:
            error.outcome = error.outcome or "kept"
            raise
        except BaseException:  # interrupted anywhere
            self._place.remove_forgotten(self._ledger)
            raise

    def _evictable(self) -> retention.Evictable:
        """Return the finder of what may be evicted on the trunk."""
        return retention.Evictable(self._ledger.database)

    def _purge(self, names: set[str], reason: str | None, sums: retention.Sums | None = None) -> None:
        """Rewrite the chain without these things. `sums`: the counts to keep of them, in one record a day."""
        core = self._core
        tx, ledger = self._next_tx(None, self.last_tx), self._ledger
        try:
            ledger.settle()
        except EngineError as error:
            error.outcome = "not kept"
            raise
        core.graphs.drop_built()
        count, folded = len(names), frozenset[Instant]()
        if sums is not None:
            folded, earlier = retention.summed_before(ledger.database, tx)
            sums = retention.together(earlier, sums)
            count = sum(sum(types.values()) for types in sums.values())
        last = retention.without_trace(tx, count, self._author, reason, sums)
        self._lines[0]._group_first = OPEN  # everything is committed
        try:
            self._place.compact(ledger, names, [last], folded)
        except EngineError:
            with contextlib.suppress(GraphStoreError):  # each later call raises that it cannot go on
                self._begin_again()
            raise
        except BaseException:
            self._begin_again()
            raise
        try:
            self._begin_again()
        except EngineError as error:
            error.outcome = "kept"
            raise

    def _begin_again(self) -> None:
        """Go on with a chain that was rewritten, or may have been."""
        core = self._core
        self._ledger.reopen()
        core.forget_found()
        core.graphs.drop_built()

    def _keep_small(self) -> None:
        """Evict the oldest events once the journal exceeds the size limit of the store."""
        core = self._core
        kept = core.setting(RETENTION)
        if kept is None or kept["bytes"] is None or self._too_big >= OPEN:
            return
        size = core.journal.size()
        if size <= max(kept["bytes"], self._too_big):
            return
        with self._writer:
            if (
                core.closed
                or self._lines[0]._group_thread
                or any(line._open is not None for line in self._begun)
            ):
                return
            why = f"the journal passed {kept['bytes']} bytes"
            try:
                with self._asked_by(None), self._by_itself("eviction"):
                    size = core.journal.size()
                    found, summed = self._evictable().outgrown(size, kept["bytes"], self._now())
                    names = [each.id for each in found]
                    if found and summed:
                        self._purge(set(names), why, retention.sums_of(found))
                    elif found:
                        self._forget("evict", names, why)
            except EngineError as error:  # committed transactions stay
                self.notices.append(str(error))
            finally:  # if the rest cannot be evicted, try again only after the journal has grown
                size = core.journal.size()
                self._too_big = 0 if size <= kept["bytes"] else int(size * 1.25)

    def _usable(self) -> None:
        self._core.refuse_closed()

    def _writable(self) -> None:
        self._usable()
        if self.read_only and self._trying is None:
            raise InvalidError("the store is open read only. Open it with read_only=False to write.")

    def refresh(self) -> int:
        """Learn the kinds of link that other processes have defined. Returns 0: each read sees what was committed before it. A View does not move."""
        self._usable()
        self._last_committed_tx()
        return 0

    def _lags(self, tx: Instant) -> bool:
        """Return True if this process may still learn of a tx that it does not know yet."""
        return self.last_tx < tx and (self.read_only or self._place.shared)


def _span(microseconds: int) -> str:
    days, hours = divmod(microseconds // 3_600_000_000, 24)
    return f"{days} days" if days > 1 else f"{days * 24 + hours} hours"


def _touch(core: Core, work: Transaction) -> dict[str, int]:
    """Write how often things were looked up since the last such write. Returns the counts."""
    counts = core.accesses.take_waiting(work.index, work.tx)
    if counts:
        work.index.add_op(work.tx, chain.TOUCH, "", work.author, *work.body({chain.COUNTS: counts}))
    return counts


_opened: weakref.WeakSet[Writer] = weakref.WeakSet()


def _after_fork() -> None:
    # In the child nothing may be written or read: the files, the lock and the engine belong to the parent.
    for store in _opened:
        if not store._core.closed:
            store._core.closed = "this store was opened before a fork. Open it anew in the child: graphstore.open(…, read_only=True)."
            store._core.lock = threading.RLock()
            store._writer = threading.RLock()
            for line in store._lines[1:]:
                line._writer = store._writer
                line._core.closed, line._core.lock = store._core.closed, store._core.lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
