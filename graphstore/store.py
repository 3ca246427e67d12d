"""The only writer: verbs that decide on the resident index and commit one line of the journal each.

The way of a write: check → decide on periods → one line, synced → the index keeps it → the graph tables follow when asked.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphstore import bulk, folder
from graphstore.errors import ConflictError, EngineError, InvalidError, NotFoundError
from graphstore.graphs import Graphs
from graphstore.inputs import event_of, ids, json_object, optional_text, part, span, text_of, version_body
from graphstore.journal import Journal, Ticket
from graphstore.linking import CONTROL, Claim, Ends, Linking
from graphstore.links import Vocabulary, new_kind, strength_of
from graphstore.models import Change, Event, Json, Link, Node, Problem, Recorded, Verification
from graphstore.period import OPEN, Instant, Period, TimeLike, coalesce, instant, iso, moment, period
from graphstore.sight import Core, Sight, slot_name
from graphstore.view import Reader, View
from graphstore.writing import Transaction, refuse_taken_slot

if TYPE_CHECKING:
    from graphstore.engine import Result

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]
_FIXES = frozenset({"fix", "resolution"})


class GraphStore(Reader):
    """An open store. Its reads are those of the view of now; its verbs are the only way to write. Use `graphstore.open`."""

    def __init__(
        self, place: folder.Folder, *, clock: Clock | None, driver: str, durability: str, author: str | None
    ) -> None:
        self._place = place
        self._clock = clock
        self._author = author
        self._handed: Instant = -OPEN
        self._open: Transaction | None = None
        self._owner = 0
        self._deferring = False  # transactions are made durable together, later
        self._waiting: dict[Ticket, Instant] = {}  # committed, and not durable yet
        self._writer = threading.RLock()
        self.notices: list[str] = []
        journal = Journal(place.journal, writer=not place.read_only, durability=durability)
        try:
            index = place.load(journal, self.notices.append)
            vocabulary = Vocabulary(index.kinds)
            graphs = Graphs(
                place.tables, index, journal, vocabulary, driver=driver, notify=self.notices.append
            )
        except BaseException:
            journal.close()
            raise
        self._core = Core(index, journal, vocabulary, graphs)
        _opened.add(self)

    # ------------------------------------------------------------------ opening and closing

    @property
    def path(self) -> Path | None:
        """The folder of the store; None for one in memory."""
        return self._place.path

    @property
    def read_only(self) -> bool:
        """Whether this store only follows another process's journal."""
        return self._place.read_only

    def close(self) -> None:
        """Save the index, bring the graph tables to a clean state if they were used, and let go of the folder."""
        with self._writer, self._core.lock:
            if self._core.closed:
                return
            if self._open is not None:
                raise InvalidError("close() inside transaction(). Leave the block first.")
            self._core.closed = "the store is closed. Open it again with graphstore.open(…)."
            try:
                self._core.graphs.close()
                self._place.save(self._core.index, self._core.journal)
            finally:
                self._core.journal.close()
                self._place.release()

    def __enter__(self) -> GraphStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.path or ":memory:"
        state = "closed" if self._core.closed else "read only" if self.read_only else "open"
        index = self._core.index
        return f"<GraphStore {str(where)!r} {state}: {len(index.names)} things, {len(index.l_name)} links, {index.transactions} transactions>"

    # ------------------------------------------------------------------ coordinates

    def _now(self) -> Instant:
        if self._clock is None:
            clock = time.time_ns() // 1000
        else:
            clock = instant(self._clock(), "the clock's time")
        return max(clock, self._core.index.last_tx)

    def _coordinate(self) -> tuple[Instant, Instant]:
        self._usable()
        work = self._open
        if work is not None and self._owner == threading.get_ident():
            return work.tx, work.tx
        now = self._now()
        if work is not None:
            now = min(now, work.tx - 1)  # nobody else sees a transaction before it is committed
        for (_, end), tx in tuple(self._waiting.items()):
            if end > self._core.journal.durable:
                now = min(now, tx - 1)  # nor before it is durable
        if self.read_only:
            return (
                now,
                self._core.index.last_tx,
            )  # what the writer does now is not known here before refresh()
        return now, now

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> View:
        """The view of what held at `valid` as the store knew it at `tx`; each defaults to now.

        Raises InvalidError for a tx that has not come yet. A valid time ahead of now is the planned future.
        """
        with self._core.lock:
            self._usable()
            now_valid, now_tx = self._coordinate()
            at = now_tx if tx is None else instant(tx, "tx")
            if self.read_only and at > now_tx:
                raise InvalidError(
                    f"tx {iso(at)} is not known here yet: this reader has followed the journal to {iso(now_tx)}. "
                    "Leave tx out for what it knows, or call refresh() and ask for what it knows then."
                )
            if at > now_tx:
                raise InvalidError(
                    f"tx {iso(at)} has not come yet: it is {iso(now_tx)}. What will be known then cannot be said now."
                )
            self._handed = max(self._handed, at)
            return View(self._core, now_valid if valid is None else instant(valid, "valid"), at)

    def knowledge_at(self, t: TimeLike) -> View:
        """What the store believed at `t` about `t`."""
        return self.as_of(valid=t, tx=t)

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def transaction(
        self, *, at: TimeLike | None = None, author: str | None = None, reason: str | None = None
    ) -> Iterator[GraphStore]:
        """Many verbs, one instant, all or nothing. `at` replays an older source: later than the last tx, not ahead of the clock.

        Raises InvalidError for an `at` that runs backwards. Other threads wait; nothing of it shows to them before the end.
        """
        if self._open is not None and self._owner == threading.get_ident():
            raise InvalidError(
                "transaction() inside transaction(). One block is one transaction: use the outer one."
            )
        wanted = None if at is None else instant(at, "at")
        with self._transact(wanted, author, reason):
            yield self

    @contextlib.contextmanager
    def _transact(self, at: Instant | None, author: str | None, reason: str | None) -> Iterator[Transaction]:
        with self._writer:
            self._writable()
            author = self._author if author is None else text_of("author", author)
            reason = None if reason is None else text_of("reason", reason, empty=True)
            core = self._core
            work: Transaction | None = None
            try:
                with core.lock:
                    self._owner = threading.get_ident()
                    self._open = work = Transaction(
                        core.index, core.pending, self._next_tx(at), author, reason
                    )
                yield work
                self._commit(work)
            except BaseException as error:
                if isinstance(error, Exception) and not (work and work.spoiled):
                    with core.lock:
                        if work and self._open is not None:
                            work.abandon()
                            core.vocabulary.reset(core.index.kinds)
                    raise
                self._relay()  # interrupted anywhere, perhaps between two columns: only the journal says what is true
                raise
            finally:
                self._open = None
            ticket = core.journal.ticket()
        if not self._deferring:
            # the next writer may go on meanwhile: one sync serves all that wait for it
            try:
                self._make_durable(ticket)
            finally:
                self._waiting.pop(ticket, None)

    def _commit(self, work: Transaction) -> None:
        core = self._core
        if work.spoiled:
            raise EngineError(
                "the transaction was interrupted in the middle of a verb. Nothing of it was kept: do it again."
            )
        if work.empty:
            with core.lock:
                work.abandon()
            return
        lines, dropped = work.lines()
        placed = core.journal.append([(line.head, line.bodies) for line in lines])
        with core.lock:
            if dropped:
                work.relay(lines, placed)
            else:
                work.settle(lines, placed)
            if not self._deferring:
                self._waiting[core.journal.ticket()] = work.tx
            self._open = None

    def _next_tx(self, at: Instant | None) -> Instant:
        last = max(self._core.index.last_tx, self._handed)
        if at is None:
            return max(self._now(), last + 1)
        clock = time.time_ns() // 1000 if self._clock is None else instant(self._clock(), "the clock's time")
        if self._core.index.transactions and at <= self._core.index.last_tx:
            raise InvalidError(
                f"at {iso(at)} runs backwards: the last transaction was at {iso(self._core.index.last_tx)}. Give a later instant."
            )
        if at <= self._handed:
            raise InvalidError(
                f"at {iso(at)} runs backwards: a view as of tx {iso(self._handed)} has been handed out and must not change. Give a later instant."
            )
        if at > clock:
            raise InvalidError(
                f"at {iso(at)} lies ahead of the clock, {iso(clock)}. A transaction cannot have happened yet."
            )
        return at

    def _verb(self) -> _Verb:
        """One verb: a part of the open transaction, or a transaction of its own. One that raises leaves nothing of itself."""
        return _Verb(self)

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Transactions that become durable all at once at the end. When that fails nothing of them is kept."""
        with self._writer:
            self._deferring = True
            try:
                yield
            finally:
                self._deferring = False
                self._make_durable(self._core.journal.ticket())

    def _make_durable(self, ticket: Ticket) -> None:
        journal = self._core.journal
        try:
            journal.sync(ticket)
        except EngineError:
            with self._writer:
                if journal.failed:
                    journal.cut_back()
                    self._relay()
            raise

    def _relay(self) -> None:
        """Lay the index anew from the journal."""
        core = self._core
        core.closed = "the store was interrupted while it mended itself. Close it and open it again."
        with core.lock:
            self._open = None
            core.pending.clear()
            with core.journal.quiet():
                core.index, _ = self._place.replay(core.journal)
            if not self.read_only:
                core.journal.make_ready()
            core.vocabulary.reset(core.index.kinds)
            core.graphs.follow(core.index)
        core.closed = None

    def _usable(self) -> None:
        if self._core.closed:
            raise InvalidError(self._core.closed)

    def _writable(self) -> None:
        self._usable()
        if self.read_only:
            raise InvalidError("the store is open read only. Open it with read_only=False to write.")

    # ------------------------------------------------------------------ verbs: nodes

    def add_node(
        self,
        kind: str,
        content: Mapping[str, Any],
        *,
        id: str | None = None,
        key: str | None = None,
        text: str | None = None,
        tags: Iterable[str] = (),
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        scope: str = "",
        supersedes: str | Iterable[str] = (),
        corrects: str | Iterable[str] = (),
        reason: str | None = None,
        source: str | None = None,
        trigger: str = "initial",
    ) -> Node:
        """Know something new, from `valid_from` (default: now) on. What it supersedes ends where it begins.

        Raises ConflictError when the id is known or the slot (`key`) is held; InvalidError for bad input.
        """
        text_of("kind", kind)
        slot = None if key is None else slot_name(key)
        body = version_body(content, text, tags, trigger, source)
        text_of("scope", scope, empty=True)
        with self._verb() as work:
            during = span(valid_from, valid_to, work.tx)
            name = self._new_id() if id is None else self._free_id(id)
            op = work.op("add_node", name, reason)
            ent = self._core.index.add_entity(name, False, kind, slot, scope, work.tx)
            row = work.describe(ent, [during], body, op)
            linking = Linking(self._core, work)
            for old in ids("supersedes", supersedes):
                linking.supersede(ent, self._known(old, work), Claim(reason=reason), op)
            for wrong in ids("corrects", corrects):
                ends = Ends(ent, linking.kind("corrects"), self._known(wrong, work))
                linking.join(ends, (during[0], OPEN), Claim(reason=reason), op)
            refuse_taken_slot(self._core.index, ent)
            return self._written(ent, row, body, work.tx)

    def revise(
        self,
        id: str,
        content: Mapping[str, Any],
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
        trigger: str = "user_feedback",
        source: str | None = None,
        text: str | None = None,
        tags: Iterable[str] | None = None,
    ) -> Node:
        """Describe a node better: over all the valid time it has, or over the period given, gaps included.

        `tags=None` keeps the tags of the version described anew; `text` belongs to the description and is not kept. Raises NotFoundError for an
        unknown id, ConflictError when the node has no validity and no period is given.
        """
        with self._verb() as work:
            index = self._core.index
            ent = self._known(id, work, node=True)
            spans = self._revised(ent, valid_from, valid_to, work)
            kept = self._tags(ent) if tags is None else tags
            body = version_body(content, text, kept, trigger, source)
            op = work.op("revise", index.names[ent], reason)
            row = work.describe(ent, spans, body, op)
            refuse_taken_slot(index, ent)
            return self._written(ent, row, body, work.tx)

    def _revised(
        self, ent: int, valid_from: TimeLike | None, valid_to: TimeLike | None, work: Transaction
    ) -> list[Period]:
        index = self._core.index
        name, now = index.names[ent], index.now_of[ent]
        if valid_from is None and valid_to is None:
            if not now:
                raise ConflictError(
                    f"{name!r} has no validity left to describe anew. Give valid_from= (and valid_to=) to say when it holds."
                )
            return work.validity(ent)
        if valid_from is not None:
            start = instant(valid_from, "valid_from")
        elif now:
            start = index.r_from[now[0]]
        else:
            raise ConflictError(
                f"{name!r} has no validity that valid_to could end. Give valid_from= as well."
            )
        if valid_to is not None:
            return [period(start, instant(valid_to, "valid_to"))]
        end = index.r_to[now[-1]] if now else OPEN
        return [period(start, end if end > start else OPEN)]

    def _tags(self, ent: int) -> list[str]:
        index = self._core.index
        rows = index.now_of[ent] or index.rows_of[ent]
        if not rows:
            return []
        ver = index.r_ver[rows[-1]]
        body = self._core.body(index.v_pos[ver], index.v_len[ver], holding=b'"tags":')
        return body.get("tags", [])  # type: ignore[no-any-return]

    def end(self, id: str, *, at: TimeLike | None = None, reason: str | None = None) -> None:
        """It was true until `at` (default: now) and no longer. Raises NotFoundError when nothing is believed from there on."""
        with self._verb() as work:
            index = self._core.index
            ent = self._known(id, work, node=True)
            name, start = index.names[ent], index.start(ent, work.tx)
            cut = work.tx if at is None else instant(at, "at")
            if start is None or index.r_to[index.now_of[ent][-1]] <= cut:
                raise NotFoundError(
                    f"nothing is believed of {name!r} from {iso(cut)} on: there is nothing to end."
                )
            if cut <= start:
                raise InvalidError(
                    f"{name!r} cannot end at {iso(cut)}: it begins at {iso(start)}. To take it back altogether use retract({name!r}, reason=…)."
                )
            work.take(ent, (cut, OPEN), work.op("end", name, reason))

    def retract(
        self, id: str, *, valid_from: TimeLike | None = None, valid_to: TimeLike | None = None, reason: str
    ) -> None:
        """Stop believing `id` held over the period (default: all of it). Earlier beliefs stay readable by `as_of(tx=…)`.

        Raises NotFoundError when nothing is believed of it there; InvalidError for a part of an event.
        """
        text_of("reason", reason)
        with self._verb() as work:
            index = self._core.index
            ent = self._known(id, work)
            name = index.names[ent]
            if index.is_event[ent] and (valid_from is not None or valid_to is not None):
                raise InvalidError(
                    f"{name!r} is an event: it is retracted whole. Leave valid_from and valid_to out."
                )
            during = part(valid_from, valid_to)
            gone = work.take(ent, during, work.op("retract", name, reason))
            if not gone:
                raise NotFoundError(
                    f"nothing is believed of {name!r} over that time: there is nothing to retract."
                )

    # ------------------------------------------------------------------ verbs: links

    def supersede(
        self, old: str, *more: str, by: str, reason: str | None = None, valid_from: TimeLike | None = None
    ) -> list[Link]:
        """The world moved on: each old was true until `by` began (or until `valid_from`). One link for each, `by supersedes old`.

        Raises NotFoundError for an unknown id; ConflictError for a cycle, or when nothing is believed of `by`.
        """
        with self._verb() as work:
            new = self._known(by, work)
            since = None if valid_from is None else instant(valid_from, "valid_from")
            linking, claim = Linking(self._core, work), Claim(reason=optional_text("reason", reason))
            rows = [
                linking.supersede(new, self._known(name, work), claim, since=since) for name in (old, *more)
            ]
            sight = Sight(self._core, work.tx, work.tx)
            return [sight.link(row) for row in rows]

    def link(
        self,
        source: str,
        kind: str,
        target: str,
        *,
        reason: str | None = None,
        strength: int | None = None,
        confidence: str = "explicit",
        created_by: str = "user",
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Link:
        """Say `source kind target`, from `valid_from` (default: now) on. The same link again is the same link.

        Raises NotFoundError for an unknown end; InvalidError for an unknown kind, a self-link, a cause after its effect; ConflictError for
        a cycle, or a link that is there with other attributes.
        """
        with self._verb() as work:
            row = self._link_row(
                work,
                source,
                kind,
                target,
                reason=reason,
                strength=strength,
                confidence=confidence,
                created_by=created_by,
                valid_from=valid_from,
                valid_to=valid_to,
                metadata=metadata,
                id=id,
            )
            return Sight(self._core, work.tx, work.tx).link(row)

    def _link_row(
        self,
        work: Transaction,
        source: str,
        kind: str,
        target: str,
        *,
        reason: str | None = None,
        strength: int | None = None,
        confidence: str = "explicit",
        created_by: str = "user",
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> int:
        said = self._core.vocabulary.sentence(source, kind, target, confidence)
        claim = Claim(
            None if reason is None else text_of("reason", reason, empty=True),
            strength_of(strength),
            text_of("created_by", created_by),
            json_object("metadata", metadata) if metadata else {},
            said.confidence == "inferred",
            None if id is None else text_of("link id", id),
        )
        if claim.inferred and said.kind.name == "supersedes":
            raise InvalidError(
                "a supersession is always explicit. Leave confidence out, or say what is suspected with another kind."
            )
        ends = Ends(self._known(said.source, work), said.kind, self._known(said.target, work))
        linking = Linking(self._core, work)
        if said.kind.name == "supersedes":
            since = None if valid_from is None else instant(valid_from, "valid_from")
            until = OPEN if valid_to is None else instant(valid_to, "valid_to")
            return linking.supersede(ends.source, ends.target, claim, verb="link", since=since, until=until)
        return linking.join(ends, span(valid_from, valid_to, work.tx), claim)

    def unlink(
        self,
        link_id: str,
        *,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        reason: str | None = None,
    ) -> None:
        """Stop believing a link held over the period (default: all of it). A supersession gives back the validity it took there.

        Raises NotFoundError for an unknown link, or when nothing is believed of it there.
        """
        with self._verb() as work:
            index = self._core.index
            link = self._known_link(link_id)
            op = work.op("unlink", index.l_name[link], reason)
            gone = work.take_link(link, part(valid_from, valid_to), op)
            if not gone:
                raise NotFoundError(
                    f"nothing is believed of link {index.l_name[link]!r} over that time: there is nothing to unlink."
                )
            if index.l_kind[link] == "supersedes":
                work.give_back(link, coalesce(gone), op)
                refuse_taken_slot(index, index.l_tgt[link])

    def define_kind(
        self,
        name: str,
        *,
        inverse: str | None = None,
        symmetric: bool = False,
        causal: bool = False,
        acyclic: bool = False,
    ) -> None:
        """Add a link kind to the store's vocabulary. Its inverse name defaults to `{name}_of`. Raises InvalidError for a taken name."""
        with self._verb() as work:
            vocabulary = self._core.vocabulary
            kind = new_kind(
                name,
                inverse=inverse,
                symmetric=symmetric,
                causal=causal,
                acyclic=acyclic,
                vocabulary=vocabulary,
            )
            work.op("define_kind", name)
            self._core.index.kinds.append(
                {
                    "name": name,
                    "inverse": kind.inverse,
                    "symmetric": symmetric,
                    "causal": causal,
                    "acyclic": acyclic,
                }
            )
            vocabulary.add(kind)

    def promote_kind(self, name: str) -> None:
        """Give a link kind a relationship table of its own in the graph tables. They are rebuilt on next use."""
        with self._verb() as work:
            plain = self._core.vocabulary.canonical(name)
            index = self._core.index
            if self._core.vocabulary.kinds[plain].table or plain in index.promoted:
                raise ConflictError(f"link kind {plain!r} has its own table already.")
            work.op("promote_kind", plain)
            index.promoted.append(plain)

    # ------------------------------------------------------------------ verbs: events

    def record_event(
        self,
        type: str,
        description: str,
        *,
        id: str | None = None,
        occurred_at: TimeLike | None = None,
        source: str | None = None,
        origin: str = "agent",
        agent: str | None = None,
        related_to: str | Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        fingerprint: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        parent_span_id: str | None = None,
    ) -> Recorded:
        """Record something that happened at `occurred_at` (default: now). An unknown `related_to` is left out with a warning.

        The same id with the same content is the same event (`is_new` is false); with other content it is a ConflictError.
        """
        type, body = event_of(
            type,
            description,
            origin,
            metadata,
            source=source,
            agent=agent,
            fingerprint=fingerprint,
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent_span_id,
        )
        with self._verb() as work:
            at = None if occurred_at is None else instant(occurred_at, "occurred_at")
            known = None if id is None else self._same_event(id, type, body, at)
            if known is not None:
                return Recorded(event=known, is_new=False)
            row, warnings = self._event_row(work, type, body, id, at, ids("related_to", related_to or ()))
            index = self._core.index
            standing = "stands" if index.r_from[row] <= work.tx else "not_yet"
            return Recorded(
                event=Sight(self._core, work.tx, work.tx).event(row, standing), is_new=True, warnings=warnings
            )

    def _event_row(
        self, work: Transaction, type: str, body: Json, id: str | None, at: Instant | None, related: list[str]
    ) -> tuple[int, tuple[str, ...]]:
        when = work.tx if at is None else at
        name = self._new_event_id(when) if id is None else self._free_id(id)
        op = work.op("record_event", name)
        ent = self._core.index.add_entity(name, True, type, None, "", work.tx)
        row = work.describe(ent, [period(when, OPEN)], body, op)
        return row, tuple(filter(None, (self._relate(work, ent, other, when, op) for other in related)))

    def _same_event(self, id: str, type: str, body: Json, at: Instant | None) -> Event | None:
        index = self._core.index
        ent = index.ids.get(id, -1)
        if ent < 0:
            return None
        if not index.is_event[ent]:
            raise ConflictError(f"{id!r} is a node already. Choose another id for the event.")
        rows = index.rows_of[ent]
        ver = index.versions_of[ent][0]
        was = {
            name: value
            for name, value in self._core.body(index.v_pos[ver], index.v_len[ver]).items()
            if name != "salt"
        }
        same_time = at is None or index.r_from[rows[0]] == at
        if index.kind[ent] != type or was != body or not same_time:
            raise ConflictError(
                f"event {id!r} is known with other content. An event is never revised: record a new one and link it."
            )
        tx = index.last_tx if self._open is None else self._open.tx
        sight = Sight(self._core, tx, tx)
        return sight.event(rows[-1], sight.standing(ent))

    def _relate(self, work: Transaction, event: int, other: str, at: Instant, op: int) -> str | None:
        index = self._core.index
        try:
            target = self._known(other, work)
        except (NotFoundError, InvalidError) as error:
            return f"recorded without the link to {other!r}: {error}"
        fixed = (
            index.is_event[target]
            and index.kind[target] in ("error", "regression")
            and index.kind[event] in _FIXES
        )
        linking = Linking(self._core, work)
        kind = linking.kind("resolved_by" if fixed else "related_to")
        ends = Ends(target, kind, event) if fixed else Ends(event, kind, target)
        linking.join(ends, (at, OPEN), Claim(created_by="store"), op)
        return None

    def bulk_load(
        self,
        *,
        nodes: Any = None,
        versions: Any = None,
        events: Any = None,
        links: Any = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Load many rows: Arrow tables, DataFrames or iterables of dicts, with the same checks as the verbs.

        Without a `tx_from` column it is one transaction; with one, ascending transactions, one for each instant. Gives the counts loaded.
        Raises what the verbs raise, with the row's number; nothing is then kept of the transaction it is in.
        """
        return bulk.load(self, nodes=nodes, versions=versions, events=events, links=links, progress=progress)

    # ------------------------------------------------------------------ reading what no view has

    def query_tables(self, cypher: str, **params: Any) -> Result:
        """Read-only Cypher over the whole history: the tables of `cypher/schema.cypher`, periods as columns.

        Raises QueryError for a text that writes, misses a parameter, or does not run.
        """
        with self._core.lock:
            self._usable()
            engine = self._core.graphs.tables()
            return engine.query(cypher, params)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Make the graph tables anew from the journal's index."""
        with self._core.lock:
            self._usable()
            self._core.graphs.rebuild(progress)

    def changes(self, since: TimeLike | None = None) -> list[Change]:
        """What each transaction did, oldest first; with `since`, only what came after that tx: pass the last `Change.tx` to go on."""
        with self._core.lock:
            self._usable()
            index = self._core.index
            after = -OPEN if since is None else instant(since, "since")
            return [
                Change(
                    tx=moment(index.o_tx[op]),
                    verb=index.o_verb[op],
                    subject=index.o_subject[op],
                    author=index.o_author[op],
                    reason=self._core.body(index.o_pos[op], index.o_len[op]).get("reason"),
                )
                for op in range(index.mark().ops)
                if index.o_tx[op] > after
            ]

    def refresh(self) -> int:
        """Follow the writer's journal to its end. Gives the number of transactions that are new. A View stays where it is."""
        with self._writer, self._core.lock:
            self._usable()
            if not self.read_only:
                return 0
            core = self._core
            before = core.index.transactions
            if not core.journal.unchanged():
                self._relay()
                return core.index.transactions - before
            for lines in core.journal.read():
                for line in lines:
                    core.index.apply(line.head, line.places)
            core.vocabulary.reset(core.index.kinds)
            return core.index.transactions - before

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: nodes, events, versions, rows, links, link_rows, transactions, journal_bytes, last_tx, custom_kinds."""
        with self._core.lock:
            self._usable()
            index = self._core.index
            mark = index.mark()
            events = sum(index.is_event[: mark.entities])
            return {
                "path": None if self.path is None else str(self.path),
                "nodes": mark.entities - events,
                "events": events,
                "versions": mark.versions - events,
                "rows": mark.rows,
                "links": mark.links,
                "link_rows": mark.link_rows,
                "operations": mark.ops,
                "transactions": index.transactions,
                "journal_bytes": self._core.journal.size(),
                "last_tx": moment(index.last_tx) if index.transactions else None,
                "custom_kinds": [kind["name"] for kind in index.kinds],
            }

    def verify(self) -> Verification:
        """Read the whole journal again, compare the index with it and the graph tables with the index. Changes nothing."""
        with self._writer, self._core.lock:
            self._usable()
            problems: list[Problem] = []
            if self._place.journal is not None:
                problems += folder.verify_index(self._place, self._core.index)
            problems += self._core.graphs.verify()
            return Verification(
                ok=not problems,
                problems=tuple(problems),
                transactions=self._core.index.transactions,
                checked=("journal", "index", "graph tables"),
            )

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the whole store as one file that `graphstore.restore` takes. Gives the number of lines. An existing file is refused."""
        target = Path(path)
        with self._core.lock:
            self._usable()
            if target.exists():
                raise ConflictError(f"{target} exists. Choose another name, or remove it first.")
            try:
                with open(target, "xb") as sink:
                    lines = self._core.journal.export(sink)
                    sink.flush()
                    os.fsync(sink.fileno())
            except OSError as error:
                target.unlink(missing_ok=True)
                raise EngineError(f"cannot write {target}: {error.strerror}.") from error
        return lines

    # ------------------------------------------------------------------ ids

    def _new_id(self) -> str:
        ids = self._core.index.ids
        while (name := os.urandom(8).hex()) in ids:
            pass
        return name

    def _new_event_id(self, at: Instant) -> str:
        ids = self._core.index.ids
        while (name := f"evt_{at // 1000}_{os.urandom(4).hex()}") in ids:
            pass
        return name

    def _free_id(self, id: str) -> str:
        name = text_of("id", id)
        if CONTROL.search(name):
            raise InvalidError(f"id {name!r} holds control characters. Use printable text.")
        if name in self._core.index.ids:
            raise ConflictError(
                f"{name!r} is known already. Use revise({name!r}, …) to describe it anew, or choose another id."
            )
        return name

    def _known(self, id: str, work: Transaction, node: bool = False) -> int:
        ent = self._core.index.ids.get(id, -1) if isinstance(id, str) else -1
        if ent < 0:
            ent, _ = Sight(self._core, work.tx, work.tx).resolve(id)
        if node and self._core.index.is_event[ent]:
            name = self._core.index.names[ent]
            raise InvalidError(
                f"{name!r} is an event: it is never revised or ended. Record a new event and link it, or retract it whole."
            )
        return ent

    def _known_link(self, id: str) -> int:
        index = self._core.index
        if not isinstance(id, str):
            raise InvalidError(f"{id!r} is no link id. Give the id as text.")
        if id in index.link_ids:
            return index.link_ids[id]
        found = [name for name in index.link_ids if name.startswith(id)] if len(id) >= 6 else []
        if len(found) > 1:
            raise NotFoundError(f"{id!r} is ambiguous: {', '.join(found[:3])}. Give more of the id.")
        if not found:
            raise NotFoundError.nearest("link", id, index.link_ids)
        return index.link_ids[found[0]]

    def _written(self, ent: int, row: int, body: Json, tx: Instant) -> Node:
        """The node as a verb leaves it: the row that holds now if the verb wrote that, else the one it wrote last."""
        index = self._core.index
        sight = Sight(self._core, tx, tx)
        now = index.find(ent, tx, tx)
        if now >= 0 and index.r_ver[now] == index.r_ver[row]:
            return sight.written(now, "stands", body)
        return sight.written(row, sight.standing(ent), body)


class _Verb:
    """The block of one verb. A class and not a generator: it is entered for each of a thousand verbs in a transaction."""

    __slots__ = ("_alone", "_point", "_store", "_work")

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __enter__(self) -> Transaction:
        store = self._store
        work = store._open
        self._alone: contextlib.AbstractContextManager[Transaction] | None = None
        if work is None or store._owner != threading.get_ident():
            self._alone = store._transact(None, None, None)
            work = self._alone.__enter__()
            store._core.lock.acquire()
            return work
        store._core.lock.acquire()
        self._work, self._point = work, work.point()
        return work

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store = self._store
        if self._alone is not None:
            store._core.lock.release()
            self._alone.__exit__(kind, error, trace)
            return
        try:
            if error is not None and not isinstance(error, Exception):
                self._work.spoiled = (
                    True  # interrupted anywhere, perhaps between two columns: nothing of it can be trusted
                )
            elif error is not None:
                self._work.back(self._point)
                store._core.vocabulary.reset(store._core.index.kinds)
        finally:
            store._core.lock.release()


_opened: weakref.WeakSet[GraphStore] = weakref.WeakSet()


def _after_fork() -> None:
    # In the child nothing may be written or read: the files, the lock and the engine are the parent's.
    for store in _opened:
        if not store._core.closed:
            store._core.closed = "this store was opened before a fork. Open it anew in the child: graphstore.open(…, read_only=True)."
            store._core.lock = threading.RLock()
            store._writer = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
