"""A coordinate as numbers: which rows and links hold there, their bodies, and light rows of all that stands.

The numbers of entities, rows, links and operations are valid for one read. Functions that examine many things and return few
use these; `Sight` turns them into values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from heapq import heappush, heappushpop
from itertools import chain
from typing import Any, Literal, NamedTuple

from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Happened, kept_place
from graphstore.core.search.source import Source
from graphstore.values.keys import slot_name
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, Period
from graphstore.values.text import text_of_body
from graphstore.values.vocabulary import Kind

Periods = tuple[Instant, Instant, Instant, Instant]  # valid from, to; tx from, to
Side = dict[int, list[int]]  # entity -> links


class Edge(NamedTuple):
    """A link without its attributes and periods: its number and id, and the numbers of its ends."""

    link: int
    id: str
    kind: str
    source: int
    target: int


class Claim(NamedTuple):
    """The certainty of a link: its strength (0: none given), whether it was inferred, and who created it."""

    strength: int
    inferred: bool
    created_by: str


class Row(NamedTuple):
    """A node or event that stands, as `scan` gives it. Instants are microseconds since 1970; an end that is open is None.

    `kind` of an event is its type. `known_since`: when it was first recorded. `content`, `text` and `tags` are read on request: a node's,
    and of an event its whole body as `content`.
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
    """The content, the text and the tags of a node; of an event its whole body."""
    if events:
        return body, None, ()
    return body.get("content", {}), text_of_body(body), tuple(body.get("tags", ()))


class Rows:
    """The numbers at (valid, tx)."""

    __slots__ = ("core", "happened", "index", "tx", "valid")

    def __init__(self, core: Source, valid: Instant, tx: Instant) -> None:
        self.core = core
        self.index = core.index
        self.valid, self.tx = valid, tx
        self.happened = Happened(core.index, core.raw, valid, tx)

    # ------------------------------------------------------------------ entities

    def entities(
        self, events: bool, kind: str | None = None, key: str | None = None, scope: str | None = None
    ) -> Iterator[int]:
        """Every node (or every event) known here, of a kind (or type), with a key and of a scope if such are named, in the order they were first known."""
        index = self.index
        known = index.known_by(self.tx)
        if key is None and kind is None and scope is None:
            return _places(index.is_event, events, known)
        if key is None:
            return iter(index._members.things(index, events, kind, scope, known))
        slot = slot_name(key)
        scopes = index._members.scopes(index) if scope is None else (scope,)
        there = chain.from_iterable(index.slots.get((slot, each), ()) for each in scopes)
        found = sorted(ent for ent in there if ent < known and not events)
        return iter(found if kind is None else [ent for ent in found if index.kind[ent] == kind])

    def node_rows(self) -> list[int]:
        """The rows of all nodes that hold here, in the order in which the nodes were first known."""
        return [row for ent in self.entities(False) if (row := self.find(ent)) >= 0]

    def of_kinds(self, kinds: Iterable[str], events: bool) -> list[int]:
        """Every node (or every event) of some kinds (or types) known here, in the order they were first known."""
        return sorted(chain.from_iterable(self.entities(events, kind) for kind in dict.fromkeys(kinds)))

    def happening(
        self, since: Instant = -OPEN, until: Instant = OPEN, types: Collection[str] | None = None
    ) -> list[int]:
        """The events known here, of some types if such are named, that may have happened in [since, until) by here: all that did, and few others; in the
        order they were first known."""
        index, known, by = self.index, bisect_right(self.index.born, self.tx), min(until, self.valid + 1)
        if types is None:
            most = index.is_event.count(True, 0, known)
        else:
            most = index._members.events_of(index, {*types}, known)
        within = index._members.within(index, types, since, by, most)
        if within is not None:
            return sorted(ent for ent in within if ent < known)
        return list(self.entities(True)) if types is None else self.of_kinds(types, True)

    def entity(self, id: str) -> int:
        """The entity with exactly this id, if known here, or -1."""
        ent = self.index.ids.get(id, -1)
        return ent if ent >= 0 and self.index.born[ent] <= self.tx else -1

    def ids(self) -> Iterator[str]:
        """Every id known here, in the order they were first known."""
        known = zip(self.index.names, self.index.born, strict=False)  # the last name may have no instant yet
        return (name for name, born in known if born <= self.tx)

    def ids_beside(self, id: str) -> list[str]:
        """The ids known here that a misspelt one may mean, as `Index.ids_beside` finds them."""
        return [each for each in self.index.ids_beside(id) if self.entity(each) >= 0]

    # ------------------------------------------------------------------ what an entity is

    def id(self, ent: int) -> str:
        """The id of an entity."""
        return self.index.names[ent]

    def kind(self, ent: int) -> str:
        """The kind of a node, the type of an event."""
        return self.index.kind[ent]

    def key(self, ent: int) -> str | None:
        """The key of a node."""
        return self.index.key[ent]

    def scope(self, ent: int) -> str:
        """The scope of a node."""
        return self.index.scope[ent]

    def scope_of(self, ent: int, kind: str) -> str | None:
        """The scope of a node of this kind, None for whatever is none."""
        index = self.index
        return index.scope[ent] if index.kind[ent] == kind and not index.is_event[ent] else None

    def is_event(self, ent: int) -> bool:
        """Whether an entity is an event."""
        return bool(self.index.is_event[ent])

    def is_forgotten(self, ent: int) -> bool:
        """Whether an entity was evicted or erased, at whatever coordinate."""
        return ent in self.index.gone

    def is_believed(self, ent: int) -> bool:
        """Whether anything is believed of an entity here, over whatever valid time."""
        return ent not in self.index.gone and bool(self.index.believed(ent, self.tx))

    def will_hold(self, ent: int) -> bool:
        """Whether something is believed of an entity now that holds after the sight's tx."""
        index = self.index
        return ent not in index.gone and any(index.r_to[row] > self.tx for row in index.now_of[ent])

    def has_repeats(self, ent: int) -> bool:
        """Whether more than one occurrence of an event was ever recorded."""
        return ent in self.index.seen_of

    def in_slot(self, kind: str | None, key: str, scope: str) -> Iterable[int]:
        """Every node with a key in a scope, of one kind or (None) of any, in the order they were first known."""
        there = self.index.slots.get((slot_name(key), scope), ())
        return there if kind is None else [ent for ent in there if self.index.kind[ent] == kind]

    def is_superseded(self, ent: int) -> bool:
        """Whether a link that supersedes an entity holds here."""
        return self.index.superseded(ent, self.valid, self.tx)

    def body(self, ent: int, holding: bytes = b"") -> Json:
        """The body of an entity's last version. Empty when it was forgotten, or when the body does not contain those bytes."""
        index = self.index
        ver = index.versions_of[ent][-1]
        return self.core.body(index.v_pos[ver], index.v_len[ver], holding)

    def body_of(self, row: int, holding: bytes = b"") -> Json:
        """The body of a row's version; otherwise as `body`."""
        index = self.index
        ver = index.r_ver[row]
        return self.core.body(index.v_pos[ver], index.v_len[ver], holding)

    def since(self, row: int) -> Instant:
        """From when on a row holds."""
        return self.index.r_from[row]

    def recorded(self, row: int) -> Instant:
        """When what a row says was recorded first over that time."""
        index, ver = self.index, self.index.r_ver[row]
        op = index.v_op[ver]
        return index.o_tx[op] if op >= 0 else index.r_tx[row]

    def shown_by(self, ent: int) -> tuple[str, int]:
        """The standing of an entity by its rows alone, and the row that shows it: the one that holds, or its last one; -1: none."""
        index = self.index
        standing, row = index.face(ent, self.valid, self.tx)
        if standing in (
            "superseded",
            "ended",
        ):  # with its end; the row that showed it here is believed no more
            believed = index.believed(ent, self.tx)
            row = next((each for each in reversed(believed) if index.r_from[each] <= self.valid), row)
        return standing, row

    def kept_place(self, ent: int) -> Json:
        """The place in its trace that an evicted event left behind."""
        return kept_place(self.index, self.core.raw, ent)

    def scan(
        self,
        *,
        kind: str | None = None,
        key: str | None = None,
        scope: str | None = None,
        tag: str | None = None,
        events: bool = False,
        content: bool = False,
    ) -> Iterator[Row]:
        """The nodes, or the events, that stand here, as light rows in the order they were first known; all filters must hold."""
        index, valid, tx = self.index, self.valid, self.tx
        find, kinds, keys, scopes, born = index.find, index.kind, index.key, index.scope, index.born
        reads = content or tag is not None
        for ent in self.entities(events, kind, key, scope):
            row = find(ent, valid, tx)
            if row < 0:
                continue
            found = NOT_READ
            if reads:
                body = self.body_of(row)
                if tag is not None and tag not in body.get("tags", ()):
                    continue
                found = description(body, events) if content else NOT_READ
            start, to, tx_from, end = self.periods(row)
            yield Row(
                index.names[ent], kinds[ent], keys[ent], scopes[ent], index.v_num[index.r_ver[row]], events,
                start, None if to >= OPEN else to, tx_from, None if end >= OPEN else end, born[ent], *found,
            )  # fmt: skip

    def latest(self, most: int) -> tuple[list[int], int]:
        """What was recorded last of what stands here, the last first; and how many stand."""
        index = self.index
        rows = [
            row
            for ent, born in enumerate(index.born)
            if born <= self.tx and (row := index.find(ent, self.valid, self.tx)) >= 0
        ]
        return [index.r_ent[row] for row in sorted(rows, key=self.recorded)[-most:][::-1]], len(rows)

    def written_after(self, tx: Instant) -> set[int]:
        """What has a row that was written after a transaction, and by now."""
        index = self.index
        first, last = bisect_right(index.r_tx, tx), bisect_right(index.r_tx, self.tx)
        return set(index.r_ent[first:last])

    def newest(self, most: int) -> list[int]:
        """What was recorded last of what stands here, the last first. It looks no farther than it has to: nothing is recorded later than it changed."""
        import numpy as np

        index = self.index
        rows = self.covering()  # first: later rows are none of them
        ents = np.unique(np.array(index.r_ent[:])[rows])
        changed = _copied(index.changed)[ents]
        found: list[tuple[Instant, int]] = []
        for at in np.argsort(changed, kind="stable")[::-1].tolist():
            if len(found) == most and changed[at] < found[0][0]:
                break
            ent = int(ents[at])
            if ent < len(index.born) and index.born[ent] <= self.tx and (row := self.find(ent)) >= 0:
                keep = heappush if len(found) < most else heappushpop
                keep(found, (self.recorded(row), ent))
        return [ent for _, ent in sorted(found, reverse=True)]

    def covering(self) -> Any:
        """The rows, as an array, that were believed at the tx and whose period holds the instant. What was undone or forgotten has none that `find` gives."""
        index, valid, tx = self.index, self.valid, self.tx
        columns = [_copied(each) for each in (index.r_from, index.r_to, index.r_tx, index.r_end)]
        size = min(map(len, columns))
        begins, ends, since, until = (each[:size] for each in columns)
        return ((begins <= valid) & (valid < ends) & (since <= tx) & (tx < until)).nonzero()[0]

    def held_versions(self, versions: Iterable[int]) -> list[int]:
        """The rows that hold here of some versions, in the order in which they were recorded."""
        import numpy as np

        rows = self.covering()
        among = np.isin(np.array(self.index.r_ver[:])[rows], np.fromiter(versions, dtype=np.int64))
        return [row for row in rows[among].tolist() if self.find(self.index.r_ent[row]) == row]

    def versions_ever(self) -> Iterable[int]:
        """Every version that was believed by the sight's tx over whatever time, and is committed, in the order in which they were first believed."""
        index = self.index
        return dict.fromkeys(index.r_ver[: min(bisect_right(index.r_tx, self.tx), index.mark().rows)])

    def turns(self, axis: str) -> list[Instant]:
        """The instants, in order, at which something believed here begins or ends (`valid`), or at which something was recorded by now (`tx`)."""
        import numpy as np

        index, tx = self.index, self.tx
        if axis == "tx":
            recorded = _copied(index.o_tx)
            found = recorded[recorded <= tx]
        else:
            parts = []
            for begins, ends, since, until in (
                (index.r_from, index.r_to, index.r_tx, index.r_end),
                (index.k_from, index.k_to, index.k_tx, index.k_end),
            ):
                known, closed = _copied(since), _copied(until)
                size = min(len(known), len(closed))
                believed = (known[:size] <= tx) & (closed[:size] > tx)
                parts += [_copied(each)[:size][believed] for each in (begins, ends)]
            found = np.concatenate(parts)
            found = found[(found > -OPEN) & (found < OPEN)]
        return np.unique(found).tolist()  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ rows

    def find(self, ent: int) -> int:
        """The row that holds here, or -1."""
        return self.index.find(ent, self.valid, self.tx)

    def periods(self, row: int) -> Periods:
        """When a row holds and when it was believed, as far as known here."""
        index, end = self.index, self.index.r_end[row]
        return index.r_from[row], index.r_to[row], index.r_tx[row], end if end <= self.tx else OPEN

    # ------------------------------------------------------------------ links

    def held(self, link: int) -> int:
        """The row of a link that holds here, or -1."""
        return self.index.find_link(link, self.valid, self.tx)

    def held_of(self, kinds: Collection[str]) -> list[int]:
        """The rows of all links of some kinds that hold here, in the order in which the links were made."""
        links = self.index._members.links(self.index, kinds)
        return [row for link in links if self.index.l_kind[link] in kinds and (row := self.held(link)) >= 0]

    def links_either(self, ent: int) -> list[int]:
        """The link rows that hold here at either end of an entity, each once, by (valid_from, tx_from, id)."""
        index = self.index
        if ent not in index.out and ent not in index.into:
            return []
        rows = {*self.rows_of_links(index.out, ent), *self.rows_of_links(index.into, ent)}
        return sorted(rows, key=self.link_order)

    def edge(self, row: int) -> Edge:
        """The link of a row."""
        return self._edge(self.index.k_link[row])

    def _edge(self, link: int) -> Edge:
        index = self.index
        return Edge(link, index.l_name[link], index.l_kind[link], index.l_src[link], index.l_tgt[link])

    def edges(
        self, ent: int, side: Literal["out", "into"], kinds: frozenset[str] | None = None
    ) -> Iterator[Edge]:
        """Every link ever made with an entity as its source (`out`) or target (`into`), in the order they were made; `held` finds those that hold."""
        index = self.index
        links = (index.out if side == "out" else index.into).get(ent, ())
        return (self._edge(link) for link in links if kinds is None or index.l_kind[link] in kinds)

    def edges_of(self, kinds: Collection[str]) -> Iterator[Edge]:
        """Every link of these kinds ever made, in the order they were made."""
        names, sources, targets = self.index.l_name, self.index.l_src, self.index.l_tgt
        links, of_kind = self.index._members.links(self.index, kinds), self.index.l_kind
        return (Edge(link, names[link], of_kind[link], sources[link], targets[link]) for link in links)

    def has_links(self, ent: int, side: Literal["out", "into"] = "out") -> bool:
        """Whether a link with an entity as its source, or target, was ever made."""
        return ent in (self.index.out if side == "out" else self.index.into)

    def knows_link(self, id: str) -> bool:
        """Whether a link of exactly this id was ever made."""
        return id in self.index.link_ids

    def links_made(self) -> int:
        """How many links were ever made, including an open transaction."""
        return len(self.index.l_name)

    def was_made(self, link: int) -> bool:
        """Whether a link was made by the sight's tx."""
        return any(self.index.k_tx[row] <= self.tx for row in self.index.rows_of_link[link])

    def believed_link(self, link: int) -> list[int]:
        """The rows of a link believed here, by valid_from."""
        return self.index.believed_link(link, self.tx)

    def claim(self, row: int) -> Claim:
        """The certainty of a link's row."""
        index, claim = self.index, self.index.k_claim[row]
        return Claim(index.c_strength[claim], bool(index.c_inferred[claim]), index.c_by[claim])

    def reason(self, row: int) -> str | None:
        """The reason of a link's row."""
        index, claim = self.index, self.index.k_claim[row]
        reason: str | None = self.core.body(index.c_pos[claim], index.c_len[claim]).get("reason")
        return reason

    def closed_by(self, id: str) -> int:
        """The last operation that closed a row of a thing or a link with exactly this id, for `change`; -1: none did."""
        index = self.index
        link = index.link_ids.get(id, -1)
        if link >= 0:
            return max((index.k_close[row] for row in index.rows_of_link[link]), default=-1)
        return max((index.r_close[row] for row in index.rows_of[index.ids[id]]), default=-1)

    def made_by(self, link: int) -> tuple[int, str]:
        """The operation that made a link, for `change`, and its verb."""
        index = self.index
        op = index.k_op[index.rows_of_link[link][0]]
        return op, index.o_verb[op]

    def links_around(
        self, ent: int, side: Literal["out", "into"], kinds: frozenset[str] | None = None
    ) -> list[int]:
        """The link rows that hold here with an entity as their source (`out`) or target (`into`), by (valid_from, tx_from, id)."""
        return self.rows_of_links(self.index.out if side == "out" else self.index.into, ent, kinds)

    def rows_of_links(self, side: Side, ent: int, kinds: frozenset[str] | None = None) -> list[int]:
        """The link rows that hold here on one side of an entity, by (valid_from, tx_from, id)."""
        if ent not in side:
            return []
        index, valid, tx = self.index, self.valid, self.tx
        find, of_kind = index.find_link, index.l_kind
        rows = [
            row
            for link in index.perhaps(side, ent, valid, tx, kinds)
            if (kinds is None or of_kind[link] in kinds) and (row := find(link, valid, tx)) >= 0
        ]
        if len(rows) > 1:
            rows.sort(key=self.link_order)
        return rows

    def link_order(self, row: int) -> tuple[Instant, Instant, str]:
        """The order of links: when they begin to hold, when they were recorded, id."""
        index = self.index
        since = index.k_tx[row] if not index.undone_by else index.link_since(row)
        return index.k_from[row], since, index.l_name[index.k_link[row]]


def of_sentence(
    index: Index, source: int, kind: Kind, target: int, near: Period | None = None, tx: Instant = OPEN
) -> list[int]:
    """Every link ever made that says `source kind target`, of a symmetric kind either way round; in the order they were made. `near`: of many those
    alone that may be believed at `tx` over a time that overlaps or touches that period."""
    pairs = [(source, target), (target, source)] if kind.symmetric else [(source, target)]
    return [link for one, two in pairs for link in index.saying(one, kind.name, two, near, tx)]


def _places(flags: bytearray, flag: bool, stop: int) -> Iterator[int]:
    """Where a flag is set, or is not, among the first so many: others are passed over at once."""
    at = flags.find(flag, 0, stop)
    while at >= 0:
        yield at
        at = flags.find(flag, at + 1, stop)


def _copied(column: Any) -> Any:
    """A column as it is now: it may grow meanwhile, which an array that lends its memory may not."""
    import numpy as np

    return np.frombuffer(column.tobytes(), dtype=np.int64)
