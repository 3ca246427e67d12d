"""Find by numbers what a coordinate holds: the rows and links that hold there, their bodies, and the values of rows.

The numbers of entities, rows, links and operations are valid for one read. Functions that examine many things and return few use these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, cast

from graphstore.ledger.chain import FORGETTING
from graphstore.read.described import Described, node_from
from graphstore.read.linked import LinkedRow, link_from
from graphstore.read.occurrences import EventsAt
from graphstore.read.operations import OperationRow, change_from
from graphstore.read.standing_rules import Index
from graphstore.read.working_set import WorkingSet
from graphstore.values.findings import Change
from graphstore.values.models import Event, Json, Link, Node, Standing
from graphstore.values.period import OPEN, Instant, Period
from graphstore.values.text import text_of_body
from graphstore.values.vocabulary import Kind
from graphstore.view.core_state import Core

Periods = tuple[Instant, Instant, Instant, Instant]  # valid from, to; tx from, to


class LinkEdge(NamedTuple):
    """A link without its attributes and periods: its number and id, its kind, and the numbers of its ends."""

    link: int
    id: str
    kind: str
    source: int
    target: int


class LinkCertainty(NamedTuple):
    """Stores the certainty of a link: its strength (0: none given), whether it was inferred, and its creator."""

    strength: int
    inferred: bool
    created_by: str


class Row(NamedTuple):
    """A node or event that stands, as returned by `scan`. Instants are microseconds since 1970; an open end is None.

    `kind`: of an event its type. `known_since`: when it was first recorded. `content`, `text` and `tags` are read on request. An event has its whole body as `content`.
    """

    id: str
    kind: str
    key: str | None
    scope: str
    number: int
    is_event: bool
    valid_from: Instant
    valid_to: Instant | None
    tx_from: Instant
    tx_to: Instant | None
    known_since: Instant
    content: Json | None = None
    text: str | None = None
    tags: tuple[str, ...] = ()


Description = tuple[Json | None, str | None, tuple[str, ...]]  # content, text and tags
NOT_READ: Description = (None, None, ())


def description(body: Json, events: bool) -> Description:
    """Return the content, the text and the tags of a node; of an event its whole body as content."""
    if events:
        return body, None, ()
    return body.get("content", {}), text_of_body(body), tuple(body.get("tags", ()))


class NumberedRows:
    """Reads numbers at (valid, tx), and the values of rows: the common part of `Sight` and `WorkingSight`."""

    __slots__ = ("_standings", "_things", "core", "happened", "index", "tx", "valid")

    def __init__(self, core: Core, valid: Instant, tx: Instant) -> None:
        self.core = core
        self.index: Index = core.index
        self.valid, self.tx = valid, tx
        self.happened = EventsAt(core.index, core.raw, valid, tx)
        self._standings: dict[int, str] = {}
        self._things: dict[int, Node | Event] = {}

    # ------------------------------------------------------------------ methods of the subclasses

    def standing(self, ent: int) -> str:
        """Return the standing of an entity here."""
        raise NotImplementedError

    def upright(self, ent: int) -> str:
        """Return the standing of an entity that holds: `stands`, or `shaky` because of what it rests on."""
        raise NotImplementedError

    def thing(self, ent: int) -> Node | Event:
        """Return a node or event with any standing. If it does not stand, it has its last content known here."""
        raise NotImplementedError

    def event(self, row: int, standing: str, links: tuple[Link, ...] | None = None) -> Event:
        """Return a row of an event as a value."""
        raise NotImplementedError

    def event_and_links(self, ent: int) -> Event:
        """Return an event with any standing, and its links."""
        raise NotImplementedError

    def is_superseded(self, ent: int) -> bool:
        """Return True if a link that supersedes an entity holds here."""
        raise NotImplementedError

    def admitted(self) -> Callable[[int], bool]:
        """Return a predicate on entities: True unless the entity is a message that was not authorized."""
        raise NotImplementedError

    # ------------------------------------------------------------------ entities

    def entity(self, id: str) -> int:
        """Return the entity with exactly this id, if known here, or -1."""
        ent = self.index.ids.get(id, -1)
        return ent if ent >= 0 and self.index.born[ent] <= self.tx else -1

    def id(self, ent: int) -> str:
        """Return the id of an entity."""
        return self.index.names[ent]

    def kind(self, ent: int) -> str:
        """Return the kind of a node, the type of an event."""
        return self.index.kind[ent]

    def key(self, ent: int) -> str | None:
        """Return the key of a node."""
        return self.index.key[ent]

    def scope(self, ent: int) -> str:
        """Return the scope of a node."""
        return self.index.scope[ent]

    def scope_of(self, ent: int, kind: str) -> str | None:
        """Return the scope of a node of this kind; None for anything else."""
        index = self.index
        return index.scope[ent] if index.kind[ent] == kind and not index.is_event[ent] else None

    def is_event(self, ent: int) -> bool:
        """Return True if an entity is an event."""
        return bool(self.index.is_event[ent])

    def is_forgotten(self, ent: int) -> bool:
        """Return True if an entity was evicted or erased, at any coordinate."""
        return ent in self.index.gone

    def is_believed(self, ent: int) -> bool:
        """Return True if anything is believed of an entity here, over any valid time."""
        return ent not in self.index.gone and bool(self.index.believed(ent, self.tx))

    def will_hold(self, ent: int) -> bool:
        """Return True if something is believed of an entity now that holds after this tx."""
        index = self.index
        return ent not in index.gone and any(
            index.r_to[row] > self.tx for row in index.believed(ent, OPEN - 1)
        )

    def has_repeats(self, ent: int) -> bool:
        """Return True if more than one occurrence of an event was ever recorded."""
        return ent in self.index.seen_of

    def first_recorded(self, ent: int) -> Instant:
        """Return when an entity was first recorded."""
        return self.index.born[ent]

    def body(self, ent: int, holding: bytes = b"") -> Json:
        """Return the body of an entity's last version. Empty if it was forgotten, or if the body does not contain the bytes `holding`."""
        return self.content_of(self.index.versions_of[ent][-1], holding)

    def bodies(self, ents: Iterable[int]) -> dict[int, Json]:
        """Return the bodies of the last versions of entities, read at once."""
        index, ents = self.index, list(ents)
        last = [index.versions_of[ent][-1] for ent in ents]
        found = self.core.bodies([(index.v_pos[ver], index.v_len[ver]) for ver in last])
        return dict(zip(ents, found, strict=True))

    def body_of(self, row: int, holding: bytes = b"") -> Json:
        """Return the body of a row's version; see `body`."""
        return self.content_of(self.index.r_ver[row], holding)

    def content_of(self, ver: int, holding: bytes = b"") -> Json:
        """Return the body of a version; see `body`."""
        return self.core.body(self.index.v_pos[ver], self.index.v_len[ver], holding)

    def kept_place(self, ent: int) -> Json:
        """Return the place in its trace that is kept of an evicted event."""
        index, op = self.index, self.index.gone.get(ent, -1)
        body = self.core.body(index.o_pos[op], index.o_len[op]) if op >= 0 else {}
        place: Json = body.get("place", {})
        return place

    # ------------------------------------------------------------------ rows

    def find(self, ent: int) -> int:
        """Return the row that holds here, or -1."""
        return self.index.find(ent, self.valid, self.tx)

    def believed_periods(self, id: str, number: int) -> list[Period]:
        """Return the valid periods over which a version of a node is believed here, in order."""
        index = self.index
        rows = index.believed(index.ids[id], self.tx)
        return [
            (index.r_from[row], index.r_to[row]) for row in rows if index.v_num[index.r_ver[row]] == number
        ]

    def periods(self, row: int) -> Periods:
        """Return the period over which a row holds, and over which it was believed as far as known here."""
        index, end = self.index, self.index.r_end[row]
        return index.r_from[row], index.r_to[row], index.r_tx[row], end if end <= self.tx else OPEN

    def since(self, row: int) -> Instant:
        """Return the instant from which a row holds."""
        return self.index.r_from[row]

    def recorded(self, row: int) -> Instant:
        """Return when the statement of a row was first recorded for that time."""
        index, ver = self.index, self.index.r_ver[row]
        op = index.v_op[ver]
        return index.o_told[op] if op >= 0 else index.r_tx[row]

    def entity_of(self, row: int) -> int:
        """Return the entity of a row."""
        return self.index.r_ent[row]

    def last_row(self, ent: int, number: int) -> int:
        """Return the last written row of a version, or -1."""
        index = self.index
        rows = (row for row in reversed(index.rows_of[ent]) if index.v_num[index.r_ver[row]] == number)
        return next((row for row in rows if index.r_tx[row] <= self.tx), -1)

    # ------------------------------------------------------------------ links

    def held(self, link: int) -> int:
        """Return the row of a link that holds here, or -1."""
        return self.index.find_link(link, self.valid, self.tx)

    def links_either(self, ent: int) -> list[int]:
        """Return the link rows that hold here at either end of an entity, each once, by (valid_from, tx_from, id)."""
        return sorted({*self.links_around(ent, "out"), *self.links_around(ent, "into")}, key=self.link_order)

    def edge(self, row: int) -> LinkEdge:
        """Return the link of a row."""
        return self._edge(self.index.k_link[row])

    def _edge(self, link: int) -> LinkEdge:
        index = self.index
        return LinkEdge(link, index.l_name[link], index.l_kind[link], index.l_src[link], index.l_tgt[link])

    def edges(
        self, ent: int, side: Literal["out", "into"], kinds: frozenset[str] | None = None
    ) -> Iterator[LinkEdge]:
        """Yield every link ever made with an entity as its source (`out`) or target (`into`), in the order they were made. `held` finds those that hold."""
        index = self.index
        links = (index.out if side == "out" else index.into).get(ent, ())
        return (self._edge(link) for link in links if kinds is None or index.l_kind[link] in kinds)

    def has_links(self, ent: int, side: Literal["out", "into"] = "out") -> bool:
        """Return True if a link with an entity as its source (`out`) or target (`into`) was ever made."""
        return ent in (self.index.out if side == "out" else self.index.into)

    def believed_link(self, link: int) -> list[int]:
        """Return the rows of a link believed here, by valid_from."""
        return self.index.believed_link(link, self.tx)

    def claim(self, row: int) -> LinkCertainty:
        """Return the certainty of a link's row."""
        index, claim = self.index, self.index.k_claim[row]
        return LinkCertainty(index.c_strength[claim], bool(index.c_inferred[claim]), index.c_by[claim])

    def reason(self, row: int) -> str | None:
        """Return the reason of a link's row."""
        index, claim = self.index, self.index.k_claim[row]
        reason: str | None = self.core.body(index.c_pos[claim], index.c_len[claim]).get("reason")
        return reason

    def links_around(
        self, ent: int, side: Literal["out", "into"], kinds: frozenset[str] | None = None
    ) -> list[int]:
        """Return the link rows that hold here with an entity as their source (`out`) or target (`into`), by (valid_from, tx_from, id)."""
        index = self.index
        links = (index.out if side == "out" else index.into).get(ent, ())
        held = (self.held(link) for link in links if kinds is None or index.l_kind[link] in kinds)
        return sorted((row for row in held if row >= 0), key=self.link_order)

    def link_order(self, row: int) -> tuple[Instant, Instant, str]:
        """Return the sort key of links: when they begin to hold, when they were recorded, id."""
        index = self.index
        since = index.k_tx[row] if not index.undone_by else index.link_since(row)
        return index.k_from[row], since, index.l_name[index.k_link[row]]

    def neighbours(self, ent: int) -> set[int]:
        """Return the entities linked with an entity here, in either direction."""
        index = self.index
        near = {index.l_tgt[link] for link in index.out.get(ent, ()) if self.held(link) >= 0}
        return near | {index.l_src[link] for link in index.into.get(ent, ()) if self.held(link) >= 0}

    # ------------------------------------------------------------------ values

    def node(self, row: int, standing: str) -> Node:
        """Return a row of a node as a value."""
        return node_from(self.row_as_described(row, standing), self.body_of(row))

    def row_as_described(self, row: int, standing: str) -> Described:
        """Return a row of a thing in the form that a statement returns, without its body."""
        return self.described_row(self.index.r_ver[row], standing, self.periods(row))

    def described_row(self, ver: int, standing: str, periods: Periods) -> Described:
        """Return a version of a thing over a period in the form that a statement returns, without its body."""
        index = self.index
        ent, op = index.v_ent[ver], index.v_op[ver]
        start, to, tx_from, end = periods
        author, recorded = (index.o_author[op], index.o_told[op]) if op >= 0 else (None, index.born[ent])
        return Described(
            index.names[ent], index.is_event[ent], index.kind[ent], index.key[ent], index.scope[ent], index.born[ent], index.v_num[ver],
            start, _end(to), tx_from, _end(end), author, recorded, index.word(ent) or None, None, 0, cast(Standing, standing),
        )  # fmt: skip

    def links_of(self, ent: int) -> tuple[Link, ...]:
        """Return the links that hold here on either side of an entity."""
        return tuple(map(self.link, self.links_either(ent)))

    def link(self, row: int) -> Link:
        """Return a row of a link as a value."""
        index = self.index
        link, claim = index.k_link[row], index.k_claim[row]
        source, target = index.l_src[link], index.l_tgt[link]
        body = self.core.body(index.c_pos[claim], index.c_len[claim])
        until, op = index.k_end[row], index.c_op[claim]
        one, other = (
            cast(Standing, self._standings.get(end) or self.standing(end)) for end in (source, target)
        )
        said = LinkedRow(
            index.l_name[link], index.l_kind[link], index.names[source], index.names[target], one, other, index.c_strength[claim] or None,
            index.c_inferred[claim], index.c_history[claim], index.c_by[claim], index.o_author[op], index.o_told[op], index.k_from[row], _end(index.k_to[row]), index.k_tx[row],
            None if until > self.tx else until, None, None,
        )  # fmt: skip
        return link_from(said, body)

    def change(self, op: int) -> Change:
        """Return an operation as a value."""
        index = self.index
        forked, verb = index.forked, index.o_verb[op]
        here = forked is None or (op >= forked.ops and verb not in FORGETTING)
        done = OperationRow(index.o_author[op], index.o_tx[op], None, None, verb, index.o_subject[op])
        body = self.core.body(index.o_pos[op], index.o_len[op])
        return change_from(done, body, index.branch if here else None)


def _end(at: Instant) -> Instant | None:
    """Return the end of a period in the form of statements: None for an open one."""
    return None if at >= OPEN else at


def of_sentence(index: WorkingSet, source: int, kind: Kind, target: int) -> list[int]:
    """Return every link ever made that states `source kind target`, in the order they were made. A symmetric kind matches in both directions."""
    pairs = [(source, target), (target, source)] if kind.symmetric else [(source, target)]
    return [link for one, two in pairs for link in index.saying(one, kind.name, two)]
