"""Reads at one coordinate: turns rows of a working set, or of a ledger, into values, each once."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from graphstore.core.index.foundations import Resting, ShakyEntity, resting_at, within_reach
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import tombstone
from graphstore.core.index.shaky_spans import NOT_KEPT, look
from graphstore.core.index.working_set import KnownKinds, WorkingSet
from graphstore.core.journal.line import FORGETTING
from graphstore.core.read import snapshots
from graphstore.core.read.rows import Periods, Rows, Side
from graphstore.core.search.asserted import Asserted
from graphstore.core.search.event_fingerprints import Fingerprints
from graphstore.core.search.lookups import Accesses
from graphstore.core.search.message_rows import MessageRows
from graphstore.core.search.row_search import RowSearch
from graphstore.core.search.search import Found
from graphstore.core.search.source import Source
from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.scoped_ledger import ScopedLedger
from graphstore.read import settings
from graphstore.read.points import Point
from graphstore.values import spans
from graphstore.values.inputs import authorized_of
from graphstore.values.models import UPRIGHT, Change, Event, Json, Link, Node, Shaky, Snapshot, Version
from graphstore.values.period import OPEN, Instant, end_moment, exactly, moment
from graphstore.values.text import text_of_body
from graphstore.values.vocabulary import Vocabulary
from graphstore.values.ways import Ways

if TYPE_CHECKING:
    from graphstore.core.tables.graphs import Graphs

_ALIAS = re.compile(r"(.+)-v([1-9][0-9]*)@(.+)\Z", re.DOTALL)
_REF = re.compile(r"(.+)-v([1-9][0-9]*)\Z", re.DOTALL)
_VERSION = re.compile(r"(.+?)(-v[1-9][0-9]*(?:@.+)?)?\Z", re.DOTALL)
_NOTHING: Json = {}
_MEMOS = 32
_BRIEFLY = 0.002  # seconds to wait for a lock without which an answer takes longer


LedgerRows = Ledger | BranchLedger | ScopedLedger


class Shown(Protocol):
    """The rows that an open transaction shows to its own reads, see `ShownRows`."""

    versions: int
    operations: int
    search: RowSearch

    def show(self) -> None:
        """Write what the transaction has done."""

    def hide(self) -> None:
        """Take the rows back."""


@dataclass
class Core(Source):
    """Hold what the readers and the writer of one store share. `lock` guards each change of it, and reads that keep what they found for others."""

    index: Index = field(init=False)  # the working set of a verb, which alone has it
    vocabulary: Vocabulary
    graphs: Graphs
    rows: LedgerRows = field(kw_only=True)  # that answer reads
    refusal: str = field(default="this is not answered by the rows of the ledger.", kw_only=True)
    lock: threading.RLock = field(default_factory=threading.RLock)
    closed: str | None = None  # why reads are refused
    memo: dict[Any, Any] = field(default_factory=dict)  # answers cached until the next write
    row_search: RowSearch = field(default_factory=RowSearch)
    asserted: Asserted = field(default_factory=Asserted)
    accesses: Accesses = field(default_factory=Accesses)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    doors: dict[Instant, str] = field(default_factory=dict)  # through which this process wrote lately, by tx
    vectors: Any = None  # `vector_search.Vectors`, of the store and its branches
    meanings: dict[str, Any] = field(default_factory=dict)  # `vector_search.Meanings` by the embedder's name
    kinds: KnownKinds = field(default_factory=KnownKinds)
    working: WorkingSet | None = None  # of the transaction that is open
    worker: int = 0  # the thread of that transaction
    in_verb: bool = False  # whether one of its verbs is under way
    shown: Shown | None = None  # what it shows to its own reads

    @property
    def answering(self) -> LedgerRows:
        """Return the ledger whose rows answer a read. A transaction of this thread shows its own first."""
        if self.is_worker:
            self.show_rows()
        return self.rows

    @property
    def is_worker(self) -> bool:
        """Return True if this thread has a transaction open that reads from the rows what it needs."""
        return self.working is not None and self.worker == threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        """Return the working set of the verb under way as `index`. Raises InvalidError outside a verb: only rows answer there."""
        if name != "index":
            raise AttributeError(name)
        if self.is_worker and self.in_verb:
            return self.working
        raise InvalidError(self.refusal)

    @contextmanager
    def on_working_set(self) -> Iterator[None]:
        """A block in which the transaction of this thread reads from its working set, where it has one."""
        with self.lock:
            was_in_verb = self.in_verb
            try:
                self.in_verb = self.is_worker
                yield
            finally:
                self.in_verb = was_in_verb

    def show_rows(self) -> None:
        """Write as rows what the transaction of this thread has done."""
        with self.lock:
            if self.working is not None and self.shown is not None:
                self.shown.show()

    def hide_rows(self) -> None:
        """Take back the rows that the transaction of this thread shows."""
        if self.shown is not None and self.is_worker:
            self.shown.hide()

    def setting(self, name: str) -> Any:
        """Return the setting of a name, None when it was never set."""
        if self.is_worker and self.in_verb:
            return self.index.setting(name)
        return settings.setting(Point(self.answering.database, OPEN, OPEN), name)

    def forget_found(self) -> None:
        """Drop what reads keep of rows, which were taken back, or replaced by others of the same numbers."""
        self.row_search, self.fingerprints, self.asserted = RowSearch(), Fingerprints(), Asserted()
        self.accesses.forget_written()
        self.memo.clear()

    def snapshots(self, tx: Instant) -> list[Snapshot]:
        """The snapshots made by `tx`, in order."""
        if self.is_worker and self.in_verb:
            last = min(tx, self.index.last_tx)  # the rows may show those of the transaction too
            before = settings.snapshots(Point(self.rows.database, OPEN, last))
            return before + snapshots.known(self.index, tx)
        return settings.snapshots(Point(self.answering.database, OPEN, tx))

    def refuse_closed(self) -> None:
        """Raise InvalidError when the store is closed."""
        if self.closed:
            raise InvalidError(self.closed)

    def sight(self, valid: Instant, tx: Instant) -> Sight:
        """A sight at (valid, tx)."""
        return Sight(self, valid, tx)


class Sight(Rows):
    """The store at (valid, tx). The standing of a thing is computed once."""

    __slots__ = ("_reasons", "_resting", "_standings", "_things", "_ways")
    core: Core

    def __init__(self, core: Core, valid: Instant, tx: Instant) -> None:
        super().__init__(core, valid, tx)
        self._standings: dict[int, str] = {}
        self._things: dict[int, Node | Event] = {}
        self._resting: Resting | None = None
        self._reasons: dict[int, str | None] = {}
        self._ways: Ways[Link] = Ways()

    # ------------------------------------------------------------------ what an id leads to

    def knows(self, id: str) -> bool:
        """Return True if a node or event of exactly this id is known here."""
        return self.entity(id) >= 0

    def node_of(self, id: str) -> Node:
        """Return the node of an id as it stands here. Raises an error where it does not."""
        ent, number = self.resolve(id)
        if number:
            return self.described(self._must_be(ent, False), number)
        return self.node(self._must_hold(ent, False), self.upright(ent))

    def event_of(self, id: str) -> Event:
        """Return the event of an id that has happened by here, with its links. Raises an error where it has not."""
        ent, _ = self.resolve(id)
        return self.event(self._must_hold(ent, True), self.standing(ent), self.links_of(ent))

    def _must_be(self, ent: int, event: bool) -> int:
        if bool(self.index.is_event[ent]) != event:
            raise LookupError(ent)
        return ent

    def _must_hold(self, ent: int, event: bool) -> int:
        row = self.find(self._must_be(ent, event))
        if row < 0:
            raise LookupError(ent)
        return row

    def resolve(self, id: str) -> tuple[int, int]:
        """The entity that a whole id or a `{id}-v{n}` names among what is known here, and n or 0."""
        index = self.index
        if not isinstance(id, str):
            raise InvalidError(f"id {id!r} is no text. Give a str.")
        ent = self.entity(id)
        if ent >= 0:
            return ent, 0
        ver = self._alias(id)
        if ver >= 0:
            return index.v_ent[ver], index.v_num[ver]
        found = _REF.match(id)
        whole = self.entity(found[1]) if found else -1
        if found and whole >= 0:
            if self.last_row(whole, int(found[2])) >= 0:
                return whole, int(found[2])
            raise NotFoundError(f"no version {found[2]} of {found[1]!r} as known at {exactly(self.tx)}.")
        raise NotFoundError.nearest("node or event", id, partial(self.ids_beside, id))

    def _alias(self, id: str) -> int:
        """The version that `{id}-v{n}@{branch}` names, as known here: a merged version of that branch. -1: none."""
        index = self.index
        found = _ALIAS.match(id)
        ver = index.aliases.get((found[3], int(found[2]), found[1]), -1) if found else -1
        return ver if ver >= 0 and self.last_row(index.v_ent[ver], index.v_num[ver]) >= 0 else -1

    # ------------------------------------------------------------------ searching, by rows alone

    @property
    def _messages(self) -> MessageRows:
        """Return what finds messages and traces."""
        messages: MessageRows = self.core.postings
        return messages

    @property
    def _search(self) -> RowSearch:
        """Return what searches words."""
        search: RowSearch = self.core.search
        return search

    def messages(
        self,
        wanted: Mapping[str, Any],
        since: Instant,
        until: Instant,
        before: tuple[Instant, str] | None,
        among: set[int] | None = None,
    ) -> Iterator[int]:
        """Return the rows of messages that stand here, as `MessageRows.messages` finds them."""
        return self._messages.messages(self, wanted, since, until, before, among)

    def voices(self, field: str) -> Iterator[tuple[str, list[int]]]:
        """Yield the rows of messages that stand here by their sender or thread, as `MessageRows.voices` finds them."""
        return self._messages.voices(self, field)

    def around(self, row: int, most: int) -> list[int]:
        """Return the messages of a thread around one, itself included, as `MessageRows.around` finds them."""
        return [self.index.r_ent[each] for each in self._messages.around(self, row, most)]

    def admitted(self) -> Callable[[int], bool]:
        """Return the function that tells which entities are no messages, or were authorized."""
        index = self.index

        def is_admitted(ent: int) -> bool:
            if not index.is_event[ent] or ent in index.gone:
                return True
            ver = index.versions_of[ent][0]
            body = self.core.body(index.v_pos[ver], index.v_len[ver], holding=b'"authorized":false')
            return body.get("authorized") is not False

        return is_admitted

    def trace(self, trace_id: str) -> list[int]:
        """Return the events of a trace, as `MessageRows.trace` finds them."""
        return self._messages.trace(self, trace_id)

    def traces(self) -> list[str]:
        """The ids of all traces there is something of."""
        return self._messages.traces(self)

    def entity_at(self, place: int) -> int:
        """Return the thing that was recorded as the first (0), second … of all."""
        return place

    def recorded_beside(self, ent: int, distance: int) -> int:
        """Return what was recorded so many things after another one, before it where the distance is negative; -1: nothing."""
        return ent + distance if 0 <= ent + distance < len(self.index.kind) else -1

    def snapshots(self) -> list[Snapshot]:
        """The snapshots known here, whose names may stand for a time."""
        return snapshots.known(self.index, self.tx)

    def fingerprints(self) -> Iterator[tuple[int, str]]:
        """Every event that has a fingerprint, in the order they were recorded."""
        raise NotImplementedError

    def found(
        self,
        text: str,
        most: int,
        kinds: frozenset[str] = frozenset(),
        weigh: Callable[[int], float] | None = None,
        seen: Callable[[int], bool] | None = None,
    ) -> Found:
        """Return the best matches of a text among what stands here, as `Ranker.find` ranks them."""
        ahead = None if weigh is None else self.read_weighed
        return self._search.find(self, text, most, kinds, weigh, seen, ahead)

    def found_ever(
        self, text: str, kinds: frozenset[str], *, fallen: bool = False
    ) -> Iterator[tuple[int, int, float]]:
        """The versions, past ones included, that contain a word of a text: entity, version number and score, best first. `fallen`: without those that stand
        here."""
        index, search = self.index, self._search
        matches = search.find_known(self, text, kinds, search.standing(self).alive if fallen else None)
        return ((index.v_ent[ver], index.v_num[ver], score) for ver, score in matches)

    def follow_lookups(self) -> Accesses:
        """The counts of lookups, as far as they are written."""
        raise NotImplementedError

    @property
    def point(self) -> Point:
        """The point of a ledger whose rows are read here."""
        raise NotImplementedError

    def read_names(self, ents: Iterable[int]) -> None:
        """Make what things are ready to be looked at. A working set reads it when it is asked."""

    def read_things(self, ents: Iterable[int]) -> None:
        """Make things with their periods and versions ready to be looked at. A working set reads them when they are asked for."""

    def read_versions(self, vers: Iterable[int]) -> None:
        """Make versions ready to be looked at. A working set reads them when they are asked for."""

    def read_links(self, ents: Iterable[int]) -> None:
        """Make the links of things ready to be looked at. A working set reads them when they are asked for."""

    def read_events(self, ents: Iterable[int]) -> None:
        """Make events ready to be looked at. A working set reads them when they are asked for."""

    def read_weighed(self, ents: Iterable[int]) -> None:
        """Make all that things are weighed by ready to be looked at. A working set reads it when it is asked."""

    def read_ends(self, ents: Iterable[int]) -> None:
        """Make what the links of things lead to ready to be looked at. A working set reads it when it is asked."""

    def memo(self) -> dict[Any, Any] | None:
        """Answers cached until the next write. None while an open transaction has written something."""
        state, whole = self._memo_state(), self._whole
        if state is None:
            return None
        memo = whole.memo
        if memo.get("state") != state or len(memo) > _MEMOS:
            whole.memo = memo = {"state": state}  # who reads beside a writer keeps the one before
        return memo

    def _memo_state(self) -> Hashable:
        """Return what is another value after each write; None while an open transaction has written something."""
        index = self.index
        return None if index.pending else (index, index.mark())

    @property
    def _whole(self) -> Core:
        """What all readers of the store share."""
        return self.core

    def turns(self, axis: str) -> list[Instant]:
        """As `Rows.turns`, kept until the next write."""
        memo = self.memo()
        if memo is None:
            return self._all_turns(axis)
        key = ("turns", axis, self.tx if not self.sees_all() else self.index.last_tx)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._all_turns(axis)
        return found

    def _all_turns(self, axis: str) -> list[Instant]:
        return super().turns(axis)

    def sees_all(self) -> bool:
        """Whether no transaction has ended that this does not see."""
        return self.index.last_tx <= self.tx

    def tagged_versions(self, name: str) -> Sequence[int]:
        """The versions with a tag, by the name that topics use, that were recorded by now."""
        raise NotImplementedError

    # ------------------------------------------------------------------ how things stand

    def standing(self, ent: int) -> str:
        """The standing of an entity here."""
        found = self._standings.get(ent)
        if found is None:
            found = self.index.standing(ent, self.valid, self.tx)
            if found == "stands":
                found = self.upright(ent)
            self._standings[ent] = found
        return found

    def stands(self, ent: int) -> bool:
        """Return True if an entity stands here, shaky or not."""
        return (self._standings.get(ent) or self.index.standing(ent, self.valid, self.tx)) in UPRIGHT

    def upright(self, ent: int) -> str:
        """The standing of an entity that has not fallen: `stands`, or `shaky` because of what it rests on."""
        index = self.index
        if ent not in index.rests or not within_reach(index, ent, self.tx):
            return "stands"
        kept = index._shaken
        says = NOT_KEPT if kept is None else kept.says(ent, self.valid, self.tx)
        if says == NOT_KEPT and self.core.lock.acquire(timeout=_BRIEFLY):
            try:
                says = look(index, self.core.raw, ent).says(ent, self.valid, self.tx)
            finally:
                self.core.lock.release()
        if says < 0:
            return "shaky" if self.resting.is_shaky(ent) else "stands"
        return "shaky" if says else "stands"

    @property
    def resting(self) -> Resting:
        """What rests on what here."""
        if self._resting is None:
            self._resting = resting_at(self.index, self.valid, self.tx, self.core.raw)
        return self._resting

    # ------------------------------------------------------------------ nodes and events

    def thing(self, ent: int) -> Node | Event:
        """A node or event with any standing; one that does not stand shows its last content known here."""
        found = self._things.get(ent)
        if found is None:
            found = self._things[ent] = self._look(ent)
        return found

    def things(self, ents: Iterable[int]) -> list[Node | Event]:
        """Nodes and events with any standing."""
        return list(map(self.thing, ents))

    def things_of(self, ids: Iterable[str]) -> dict[str, Node | Event]:
        """The nodes and events of some ids that are known here, with any standing, by id."""
        return {id: self.thing(ent) for id in ids if (ent := self.entity(id)) >= 0}

    def events_and_links(self, ents: Iterable[int]) -> list[Event]:
        """Events with any standing, and their links."""
        return list(map(self.event_and_links, ents))

    def events_of(self, ids: Iterable[str]) -> list[Event]:
        """The events of some ids that are known here, with any standing, and their links."""
        return [self.event_and_links(ent) for id in ids if (ent := self.entity(id)) >= 0]

    def standings_of(self, ids: Iterable[str]) -> dict[str, str]:
        """How those things of some ids stand here that are known."""
        return {id: self.standing(ent) for id in ids if (ent := self.entity(id)) >= 0}

    def _face(self, ent: int) -> tuple[str, int]:
        """The standing of an entity here, and the row that shows it; -1: it was added and superseded in one transaction, so it held at no instant, but
        a link names it."""
        index = self.index
        standing, row = index.face(ent, self.valid, self.tx)
        if standing == "stands":
            standing = self._standings.get(ent) or self.upright(ent)
        self._standings[ent] = standing
        if row < 0:
            believed = index.believed(ent, self.tx)
            row = believed[-1] if believed else index.last_written(ent, self.tx)
        return standing, row

    def _look(self, ent: int) -> Node | Event:
        index = self.index
        if index.is_event[ent]:
            return self._event(ent)
        standing, row = self._face(ent)
        if row >= 0:
            return self.node(row, standing)
        born = index.born[ent]
        return self._node_of(index.versions_of[ent][0], standing, (born, born, born, born))

    def shown(self, row: int) -> Node | Event:
        """The thing whose row holds here; an event with its links."""
        ent = self.index.r_ent[row]
        return self.shown_event(row) if self.index.is_event[ent] else self.node(row, self.upright(ent))

    def shown_event(self, row: int) -> Event:
        """The event whose row holds here, with its links."""
        ent = self.index.r_ent[row]
        return self.event(row, self.standing(ent), self.links_of(ent))

    def entity_of(self, row: int) -> int:
        """The entity of a row."""
        return self.index.r_ent[row]

    def first_recorded(self, ent: int) -> Instant:
        """When an entity was recorded first."""
        return self.index.born[ent]

    def confirmations(self, ent: int) -> int:
        """How often an entity was confirmed, as known here."""
        return len(self.index.confirmations(ent, self.tx))

    def shaky(self, found: ShakyEntity) -> Shaky:
        """A shaky thing as a value."""
        self._standings[found.ent] = "shaky"  # known: no need to compute it again
        why = self._reasons.get(found.op)
        if found.op not in self._reasons:
            body = self.core.body(self.index.o_pos[found.op], self.index.o_len[found.op])
            why = self._reasons[found.op] = body.get("reason")
        return Shaky.made(
            {
                "node": self.thing(found.ent),
                "root": self.thing(found.root),
                "links": self._ways.of(found.path, self.link),
                "why": why,
                "recorded_at": moment(found.fell_at),
            }
        )

    def described(self, ent: int, number: int, last: int = -1) -> Node:
        """The node as one of its versions describes it. `last`: the row of that version written last, if the caller has it."""
        index = self.index
        row = self.find(ent)
        if row >= 0 and index.v_num[index.r_ver[row]] == number:
            return self.node(row, self.upright(ent))
        last = last if last >= 0 else self.last_row(ent, number)
        return self.node(last, "superseded" if row >= 0 else self.standing(ent))

    def last_row(self, ent: int, number: int) -> int:
        """The row of a version written last, or -1."""
        index = self.index
        rows = index.rows_of_version(ent, number)
        known = bisect_right(rows, self.tx, key=index.r_tx.__getitem__)
        return rows[known - 1] if known else -1

    def content(self, ent: int, number: int) -> Json:
        """The content of a version by its number. Raises NotFoundError."""
        index, row = self.index, self.last_row(ent, number)
        if row < 0:
            name = index.names[ent]
            raise NotFoundError(
                f"no version {number} of {name!r} as known at {exactly(self.tx)}. versions({name!r}) lists them."
            )
        ver = index.r_ver[row]
        body = self.core.body(index.v_pos[ver], index.v_len[ver]) or index.tombstone(ent)
        content: Json = body["content"]
        return content

    def node(self, row: int, standing: str) -> Node:
        """A row of a node as a value."""
        index = self.index
        ver = index.r_ver[row]
        length = index.v_len[ver]
        body = orjson.loads(self.core.raw(index.v_pos[ver], length)) if length else None
        return self._node_from(body or index.tombstone(index.v_ent[ver]), ver, standing, self.periods(row))

    def _node_of(self, ver: int, standing: str, periods: Periods) -> Node:
        index = self.index
        body = self.core.body(index.v_pos[ver], index.v_len[ver]) or index.tombstone(index.v_ent[ver])
        return self._node_from(body, ver, standing, periods)

    def written(self, row: int, standing: str, body: Json) -> Node:
        """A row of a node that has just been written, with its body at hand."""
        return self._node_from(body, self.index.r_ver[row], standing, self.periods(row))

    def _node_from(self, body: Json, ver: int, standing: str, periods: Periods) -> Node:
        index = self.index
        ent = index.v_ent[ver]
        start, to, tx_from, end = periods
        op = index.v_op[ver]
        get = body.get
        return Node.made(
            {
                "id": index.names[ent],
                "kind": index.kind[ent],
                "key": index.key[ent],
                "scope": index.scope[ent],
                "number": index.v_num[ver],
                "content": body["content"],
                "text": text_of_body(body),
                "tags": tuple(tags) if (tags := get("tags")) else (),
                "trigger": get("trigger", "initial"),
                "source": get("source"),
                "author": index.o_author[op] if op >= 0 else None,
                "recorded_at": moment(index.o_tx[op] if op >= 0 else index.born[ent]),
                "standing": standing,
                "valid_from": moment(start),
                "valid_to": None if to >= OPEN else moment(to),
                "tx_from": moment(tx_from),
                "tx_to": None if end >= OPEN else moment(end),
            }
        )

    def version(self, row: int) -> Version:
        """A row of a node as a line of its history."""
        fields = dict(self.node(row, "stands").__dict__)
        del fields["standing"]
        fields["ref"] = f"{fields['id']}-v{fields['number']}"
        return Version.made(fields)

    def event(self, row: int, standing: str, links: tuple[Link, ...] | None = None) -> Event:
        """A row of an event as a value."""
        return self._event_of(self.index.r_ver[row], standing, self.periods(row)[3], links)

    def event_and_links(self, ent: int, body: Json | None = None) -> Event:
        """An event with any standing, and its links. `body`: its body, if the caller has it."""
        return self._event(ent, self.links_of(ent), body)

    def _event(self, ent: int, links: tuple[Link, ...] | None = None, body: Json | None = None) -> Event:
        index = self.index
        standing, row = self._face(ent)
        if row < 0:
            return self._event_of(index.versions_of[ent][0], standing, index.born[ent], links, body)
        return self._event_of(index.r_ver[row], standing, self.periods(row)[3], links, body)

    def _event_of(
        self,
        ver: int,
        standing: str,
        end: Instant,
        links: tuple[Link, ...] | None = None,
        body: Json | None = None,
    ) -> Event:
        index = self.index
        ent = index.v_ent[ver]
        if body is None:
            body = self.core.body(index.v_pos[ver], index.v_len[ver]) or tombstone(index, self.core.raw, ent)
        first, last, count = self.happened.seen(ent)
        op = index.v_op[ver]
        get = body.get
        metadata = self.happened.latest(ent, body).get("metadata", {})
        return Event.made(
            {
                "id": index.names[ent],
                "type": index.kind[ent],
                "description": body["description"],
                "source": get("source"),
                "origin": body["origin"],
                "agent": get("agent"),
                "occurred_at": moment(first),
                "first_seen": moment(first),
                "last_seen": moment(last),
                "count": count,
                "status": self.happened.status(ent, body),
                "metadata": metadata,
                "links": links,
                "fingerprint": get("fingerprint"),
                "trace_id": get("trace_id"),
                "span_id": get("span_id"),
                "parent_span_id": get("parent_span_id"),
                "ended_at": spans.ended(metadata, body),
                "sender": get("sender"),
                "sender_name": get("sender_name"),
                "thread": get("thread"),
                "classification": get("classification"),
                "authorized": authorized_of(index.kind[ent], body),
                "media_path": get("media_path"),
                "media_hash": get("media_hash"),
                "standing": standing,
                "author": index.o_author[op] if op >= 0 else None,
                "recorded_at": moment(index.born[ent]),
                "tx_from": moment(index.born[ent]),
                "tx_to": end_moment(end),
            }
        )

    # ------------------------------------------------------------------ links

    def links_of(self, ent: int) -> tuple[Link, ...]:
        """The links that hold here on either side of an entity."""
        index = self.index
        if ent not in index.out and ent not in index.into:
            return ()
        rows = self.rows_of_links(index.out, ent) + self.rows_of_links(index.into, ent)
        return tuple(self.link(row) for row in sorted(rows, key=self.link_order))

    def change(self, op: int) -> Change:
        """An operation as a value."""
        index = self.index
        forked, verb = index.forked, index.o_verb[op]
        here = forked is None or (op >= forked.ops and verb not in FORGETTING)
        body = self.core.body(index.o_pos[op], index.o_len[op])
        return Change.made(
            {
                "tx": moment(index.o_tx[op]),
                "verb": verb,
                "subject": index.o_subject[op],
                "author": index.o_author[op],
                "reason": body.get("reason"),
                "branch": index.branch if here else None,
            }
        )

    def operations(self, id: str) -> list[int]:
        """The operations on a thing or a link by the sight's tx, in order: those that name it, and those that wrote or closed a row of it."""
        index = self.index
        link = index.link_ids.get(id, -1)
        if link >= 0:
            name, rows = id, index.rows_of_link[link]
            opened, closed, begins, ends = index.k_op, index.k_close, index.k_tx, index.k_end
        else:
            ent = self.resolve(id)[0]
            name, rows = index.names[ent], index.rows_of[ent]
            opened, closed, begins, ends = index.r_op, index.r_close, index.r_tx, index.r_end
        ops = set(index.naming(name, self.tx))
        ops.update(opened[row] for row in rows if begins[row] <= self.tx)
        ops.update(closed[row] for row in rows if ends[row] <= self.tx)
        return sorted(ops)

    def link(self, row: int, turned: str = "") -> Link:
        """A row of a link as a value; turned round under another name when one is given."""
        index = self.index
        link, claim = index.k_link[row], index.k_claim[row]
        source, target = index.l_src[link], index.l_tgt[link]
        if turned:
            source, target = target, source
        length = index.c_len[claim]
        body = orjson.loads(self.core.raw(index.c_pos[claim], length)) if length else _NOTHING
        end, to, op = index.k_end[row], index.k_to[row], index.c_op[claim]
        names, standings = index.names, self._standings
        return Link.made(
            {
                "id": index.l_name[link],
                "source": names[source],
                "kind": turned or index.l_kind[link],
                "target": names[target],
                "reason": body.get("reason"),
                "strength": index.c_strength[claim] or None,
                "confidence": "inferred" if index.c_inferred[claim] else "explicit",
                "created_by": index.c_by[claim],
                "metadata": body["metadata"] if "metadata" in body else {},
                "source_standing": standings.get(source) or self.standing(source),
                "target_standing": standings.get(target) or self.standing(target),
                "author": index.o_author[op],
                "recorded_at": moment(index.o_tx[op]),
                "valid_from": moment(index.k_from[row]),
                "valid_to": None if to >= OPEN else moment(to),
                "tx_from": moment(index.k_tx[row]),
                "tx_to": None if end > self.tx else moment(end),
            }
        )

    def neighbours(self, ent: int) -> set[int]:
        """What is linked with an entity here, either way."""
        index = self.index
        near = {index.l_tgt[link] for link in index.out.get(ent, ()) if self.held(link) >= 0}
        return near | {index.l_src[link] for link in index.into.get(ent, ()) if self.held(link) >= 0}

    def causal(self, ent: int, side: Side) -> list[int]:
        """The causal link rows on one side of an entity that respect time, in order."""
        index, kinds = self.index, self.core.vocabulary.kinds
        rows = []
        for link in index.perhaps(side, ent, self.valid, self.tx, self.core.vocabulary.causal):
            if kinds[index.l_kind[link]].causal:
                row = self.held(link)
                if row >= 0 and in_time(
                    index, index.l_src[link], index.l_tgt[link], index.k_from[row], self.tx
                ):
                    rows.append(row)
        if len(rows) > 1:
            rows.sort(key=self.link_order)
        return rows


def in_time(index: Index, effect: int, cause: int, since: Instant | None, tx: Instant) -> bool:
    """Whether the cause starts no later than its effect, as believed at `tx`.

    `since`: when the link begins to hold, if that was said: a node may be an effect of what began later than the node, and so may an event by
    then that came again then or later. An event starts when it occurred.
    """
    begun, shown = index.start(cause, tx), index.start(effect, tx)
    if begun is None or shown is None or begun <= shown:
        return True
    if since is None or begun > since:
        return False
    return not index.is_event[effect] or since <= index.last_seen(effect, tx)
