"""Every read of the store, each at one coordinate: from the resident index, with contents from the journal.

`Reader` holds the reads; a `View` is a reader whose coordinate never changes, a `GraphStore` one whose coordinate is now.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from graphstore import diff as differences
from graphstore.errors import InvalidError, NotFoundError
from graphstore.index import Index
from graphstore.journal import Journal
from graphstore.links import Vocabulary
from graphstore.models import (
    Chain,
    Contradiction,
    Coordinate,
    Event,
    FieldChange,
    Inspection,
    Json,
    Link,
    Node,
    NodeChange,
    Step,
    Supersession,
    Version,
    ViewDiff,
)
from graphstore.period import EPOCH, OPEN, Instant, TimeLike, end_moment, instant, iso, moment

if TYPE_CHECKING:
    import networkx
    import pyarrow

    from graphstore.engine import Result
    from graphstore.graphs import Graphs

_REF = re.compile(r"(.+)-v([1-9][0-9]*)\Z", re.DOTALL)
SHORTEST_PREFIX = 6
_Periods = tuple[Instant, Instant, Instant, Instant]  # valid from, to; tx from, to


@dataclass
class Core:
    """What the readers and the writer of one store share. `lock` guards every look at the index."""

    index: Index
    journal: Journal
    vocabulary: Vocabulary
    graphs: Graphs
    lock: threading.RLock = field(default_factory=threading.RLock)
    pending: list[bytes] = field(
        default_factory=list
    )  # bodies of the open transaction: place -1 is the first
    closed: str | None = None  # why nothing can be read any more

    def body(self, pos: int, length: int) -> Json:
        """A body by its place; one that has no place is empty."""
        if length == 0:
            return {}
        if pos < 0:
            return orjson.loads(self.pending[-pos - 1])  # type: ignore[no-any-return]
        return self.journal.body(pos, length)


class Reader:
    """The reads of DESIGN: at the coordinate that `_coordinate` gives."""

    _core: Core

    def _coordinate(self) -> tuple[Instant, Instant]:
        raise NotImplementedError

    @property
    def at(self) -> Coordinate:
        """The coordinate of these answers."""
        valid, tx = self._coordinate()
        return Coordinate(valid=moment(min(valid, OPEN)), tx=moment(tx))

    # ------------------------------------------------------------------ one thing

    def node(self, id: str) -> Node:
        """The node as it stands at the coordinate.

        Raises NotFoundError when it does not stand there: the message names its standing and its successor.
        """
        core = self._core
        with core.lock:
            valid, tx = self._coordinate()
            index = core.index
            ent, number = self._resolve(id, tx)
            if index.is_event[ent]:
                raise InvalidError(
                    f"{index.names[ent]!r} is an event. Read it with event({index.names[ent]!r})."
                )
            if number:
                return self._described(ent, number, valid, tx)
            row = index.find(ent, valid, tx)
            if row < 0:
                raise NotFoundError(self._absent(ent, valid, tx))
            return self._node(row, "stands", tx)

    def event(self, id: str) -> Event:
        """The event, when it has happened by the coordinate and is believed there. Raises NotFoundError otherwise."""
        with self._core.lock:
            valid, tx = self._coordinate()
            index = self._core.index
            ent, _ = self._resolve(id, tx)
            if not index.is_event[ent]:
                raise InvalidError(
                    f"{index.names[ent]!r} is a node. Read it with node({index.names[ent]!r})."
                )
            row = index.find(ent, valid, tx)
            if row < 0:
                raise NotFoundError(self._absent(ent, valid, tx))
            return self._event(row, index.standing(ent, valid, tx), tx)

    def history(self, id: str) -> list[Version]:
        """Every row of the node believed at the view's tx, over all valid time, by valid_from."""
        with self._core.lock:
            _, tx = self._coordinate()
            ent = self._resolve_node(id, tx)
            return [self._version(row, tx) for row in self._core.index.believed(ent, tx)]

    def versions(self, id: str) -> list[Version]:
        """Every row of the node ever believed up to the view's tx, by (tx_from, valid_from): what was said, and when it was unsaid."""
        with self._core.lock:
            _, tx = self._coordinate()
            index = self._core.index
            ent = self._resolve_node(id, tx)
            rows = [row for row in index.rows_of[ent] if index.r_tx[row] <= tx]
            rows.sort(key=lambda row: (index.r_tx[row], index.r_from[row]))
            return [self._version(row, tx) for row in rows]

    def diff(self, id: str, old: int, new: int) -> list[FieldChange]:
        """What changed in the content from version `old` to version `new`, as paths. Raises NotFoundError for an unknown number."""
        with self._core.lock:
            _, tx = self._coordinate()
            ent = self._resolve_node(id, tx)
            first, second = (self._content(ent, number, tx) for number in (old, new))
        return differences.diff(first, second)

    def inspect(self, id: str) -> Inspection:
        """One thing with any standing, its links both ways, and its believed history."""
        with self._core.lock:
            valid, tx = self._coordinate()
            ent, number = self._resolve(id, tx)
            event = self._core.index.is_event[ent]
            thing = (
                self._described(ent, number, valid, tx)
                if number and not event
                else self._thing(ent, valid, tx)
            )
            return Inspection(
                node=thing,
                links=tuple(self._links(self._core.index.out, ent, None, valid, tx)),
                backlinks=tuple(self._links(self._core.index.into, ent, None, valid, tx)),
                history=()
                if event
                else tuple(self._version(row, tx) for row in self._core.index.believed(ent, tx)),
            )

    # ------------------------------------------------------------------ many things

    def nodes(
        self,
        kind: str | None = None,
        *,
        key: str | None = None,
        scope: str | None = None,
        tag: str | None = None,
    ) -> list[Node]:
        """The nodes that stand at the coordinate, in the order they were first known."""
        key = None if key is None else slot_name(key)
        with self._core.lock:
            valid, tx = self._coordinate()
            index = self._core.index
            found = []
            for ent in self._entities(tx, False):
                if kind is not None and index.kind[ent] != kind:
                    continue
                if (key is not None and index.key[ent] != key) or (
                    scope is not None and index.scope[ent] != scope
                ):
                    continue
                row = index.find(ent, valid, tx)
                if row >= 0:
                    node = self._node(row, "stands", tx)
                    if tag is None or tag in node.tags:
                        found.append(node)
            return found

    def events(
        self,
        type: str | None = None,
        *,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        related_to: str | None = None,
        pattern: str | None = None,
    ) -> list[Event]:
        """The events that have happened by the coordinate, newest first; filters are ANDed.

        `since` and `until` bound `occurred_at` as [since, until). `related_to`: linked with that id either way. `pattern`: part of the
        description, whatever the case.
        """
        begin = None if since is None else instant(since, "since")
        end = None if until is None else instant(until, "until")
        with self._core.lock:
            valid, tx = self._coordinate()
            index = self._core.index
            near = (
                None if related_to is None else self._neighbours(self._resolve(related_to, tx)[0], valid, tx)
            )
            found = []
            for ent in self._entities(tx, True) if near is None else sorted(near):
                row = index.find(ent, valid, tx) if index.is_event[ent] and index.born[ent] <= tx else -1
                if row < 0 or (type is not None and index.kind[ent] != type):
                    continue
                at = index.r_from[row]
                if (begin is not None and at < begin) or (end is not None and at >= end):
                    continue
                event = self._event(row, index.standing(ent, valid, tx), tx)
                if pattern is None or pattern.lower() in event.description.lower():
                    found.append((at, event))
        found.sort(key=lambda pair: (-pair[0], pair[1].id))
        return [event for _, event in found]

    def compare(self, other: Reader) -> ViewDiff:
        """What `other` has that this has not (added), the other way round (removed), and nodes described by another version (changed)."""
        if not isinstance(other, Reader) or other._core is not self._core:
            raise InvalidError("compare wants another view of the same store.")
        with self._core.lock:
            here, there = self._coordinate(), other._coordinate()
            index = self._core.index
            added: list[Node | Event] = []
            removed: list[Node | Event] = []
            changed: list[NodeChange] = []
            for ent in range(len(index.names)):
                before = index.find(ent, *here) if index.born[ent] <= here[1] else -1
                after = index.find(ent, *there) if index.born[ent] <= there[1] else -1
                if before < 0 <= after:
                    added.append(self._shown(after, *there))
                elif after < 0 <= before:
                    removed.append(self._shown(before, *here))
                elif before >= 0 and index.r_ver[before] != index.r_ver[after]:
                    changed.append(self._change(before, here[1], after, there[1]))
            links = [(self._held(link, *here), self._held(link, *there)) for link in range(len(index.l_name))]
            fresh = [self._link(row, *there) for was, row in links if was < 0 <= row]
            gone = [self._link(row, *here) for row, now in links if now < 0 <= row]
        return ViewDiff(
            added=tuple(n for n in added if isinstance(n, Node)),
            removed=tuple(n for n in removed if isinstance(n, Node)),
            changed=tuple(changed),
            events_added=tuple(e for e in added if isinstance(e, Event)),
            events_removed=tuple(e for e in removed if isinstance(e, Event)),
            links_added=tuple(fresh),
            links_removed=tuple(gone),
        )

    # ------------------------------------------------------------------ links

    def links_from(self, id: str, kinds: Iterable[str] | str = ()) -> list[Link]:
        """The links that hold at the coordinate with this as their source, by (valid_from, tx_from, id)."""
        with self._core.lock:
            valid, tx = self._coordinate()
            return self._links(self._core.index.out, self._resolve(id, tx)[0], self._kinds(kinds), valid, tx)

    def backlinks_to(self, id: str, kinds: Iterable[str] | str = ()) -> list[Link]:
        """The links that hold at the coordinate with this as their target, by (valid_from, tx_from, id)."""
        with self._core.lock:
            valid, tx = self._coordinate()
            return self._links(self._core.index.into, self._resolve(id, tx)[0], self._kinds(kinds), valid, tx)

    def supersedes(self, id: str) -> list[Link]:
        """What this supersedes: its links of that kind."""
        return self.links_from(id, ("supersedes",))

    def what_superseded(self, id: str) -> Supersession:
        """What became of a thing: each step away from it with who, why, since when and when recorded; and what stands now.

        `id` may be `{id}-v{n}`: then newer versions of the same node are steps as well.
        """
        with self._core.lock:
            valid, tx = self._coordinate()
            return _Succession(self, valid, tx).of(*self._resolve(id, tx))

    def causes(self, id: str, depth: int = 5) -> Chain:
        """What led to this, nearest first, at most `depth` links away."""
        return self._chain(id, depth, self._core.index.out, self._core.index.l_tgt)

    def effects(self, id: str, depth: int = 5) -> Chain:
        """What this led to, nearest first, at most `depth` links away."""
        return self._chain(id, depth, self._core.index.into, self._core.index.l_src)

    def contradictions(self, settled: bool = False) -> list[Contradiction]:
        """Pairs that contradict each other and both stand; `settled=True` adds pairs of which one no longer stands."""
        with self._core.lock:
            valid, tx = self._coordinate()
            index = self._core.index
            found = []
            for link in range(len(index.l_name)):
                row = self._held(link, valid, tx) if index.l_kind[link] == "contradicts" else -1
                if row < 0:
                    continue
                said = self._link(row, valid, tx)
                open_still = said.source_standing == said.target_standing == "stands"
                if open_still or settled:
                    source, target = (
                        self._thing(e, valid, tx) for e in (index.l_src[link], index.l_tgt[link])
                    )
                    found.append(
                        Contradiction(link=said, source=source, target=target, settled=not open_still)
                    )
        return sorted(found, key=_by_start_of_contradiction)

    # ------------------------------------------------------------------ the graph

    def query(self, cypher: str, **params: Any) -> Result:
        """Any reading Cypher over exactly this view's graph: no temporal predicate has to be written.

        Raises QueryError for a text that writes, misses a parameter, or does not run.
        """
        with self._core.lock:
            valid, tx = self._coordinate()
            engine = self._core.graphs.view(valid, tx)
        return engine.query(cypher, params)

    def to_arrow(self) -> pyarrow.Table:
        """The nodes that stand here as one Arrow table: id, kind, key, scope, number, content (JSON text), text, tags, …"""
        with self._core.lock:
            valid, tx = self._coordinate()
            return self._core.graphs.nodes_arrow(valid, tx)

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """What stands here as a networkx MultiDiGraph: node attributes are the fields of Node or Event, edge keys are link ids."""
        import networkx

        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        with self._core.lock:
            valid, tx = self._coordinate()
            index = self._core.index
            things: list[Node | Event] = [*self.nodes(), *self.events()]
            for thing in things:
                graph.add_node(thing.id, **thing.model_dump())
            for number in range(len(index.l_name)):
                row = self._held(number, valid, tx)
                if row < 0:
                    continue
                link = self._link(row, valid, tx)
                for ent in (index.l_src[number], index.l_tgt[number]):
                    if index.names[ent] not in graph:
                        graph.add_node(index.names[ent], **self._thing(ent, valid, tx).model_dump())
                graph.add_edge(link.source, link.target, key=link.id, **link.model_dump())
        return graph

    # ------------------------------------------------------------------ ids

    def _resolve(self, id: str, tx: Instant) -> tuple[int, int]:
        """The entity an id, a unique prefix or a `{id}-v{n}` names among what is known at `tx`, and n or 0."""
        index = self._core.index
        ent = index.ids.get(id, -1) if isinstance(id, str) else -2
        if ent >= 0 and index.born[ent] <= tx:
            return ent, 0
        if ent == -2:
            raise InvalidError(f"{id!r} is no id. Give the id as text.")
        found = _REF.match(id)
        if found:
            whole = index.ids.get(found[1], -1)
            if whole < 0 or index.born[whole] > tx:
                whole = self._by_prefix(found[1], tx)
            if whole >= 0:
                number = int(found[2])
                if self._last_row(whole, number, tx) < 0:
                    raise NotFoundError(
                        f"no version {number} of {index.names[whole]!r} as known at {iso(tx)}."
                    )
                return whole, number
        ent = self._by_prefix(id, tx)
        if ent < 0:
            known = [name for name, born in zip(index.names, index.born, strict=True) if born <= tx]
            raise NotFoundError.nearest("node or event", id, known)
        return ent, 0

    def _by_prefix(self, prefix: str, tx: Instant) -> int:
        if len(prefix) < SHORTEST_PREFIX:
            return -1
        index = self._core.index
        found = []
        for ent in index.starting_with(prefix):
            if index.born[ent] <= tx:
                found.append(index.names[ent])
            if len(found) > 3:
                break
        if len(found) > 1:
            raise NotFoundError(
                f"{prefix!r} is ambiguous: {', '.join(found[:3])}{' …' if len(found) > 3 else ''}. Give more of the id."
            )
        return index.ids[found[0]] if found else -1

    def _resolve_node(self, id: str, tx: Instant) -> int:
        ent, _ = self._resolve(id, tx)
        if self._core.index.is_event[ent]:
            raise InvalidError(
                f"{self._core.index.names[ent]!r} is an event; events have no versions. Read it with event(…)."
            )
        return ent

    def _kinds(self, kinds: Iterable[str] | str) -> frozenset[str] | None:
        names = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        return frozenset(self._core.vocabulary.canonical(name) for name in names) or None

    def _entities(self, tx: Instant, events: bool) -> Iterator[int]:
        index = self._core.index
        return (e for e, born in enumerate(index.born) if born <= tx and bool(index.is_event[e]) is events)

    # ------------------------------------------------------------------ values

    def _absent(self, ent: int, valid: Instant, tx: Instant) -> str:
        index = self._core.index
        standing = index.standing(ent, valid, tx)
        what = "event" if index.is_event[ent] else "node"
        message = f"{what} {index.names[ent]!r} does not stand at valid {iso(valid)} as known at {iso(tx)}: {standing.replace('_', ' ')}"
        successors = [
            index.names[index.l_src[link]]
            for link in index.successors.get(ent, ())
            if index.find_link(link, valid, tx) >= 0
        ]
        if successors:
            message += f", superseded by {', '.join(map(repr, successors))}"
        return f"{message}. inspect({index.names[ent]!r}) shows its last content."

    def _last_row(self, ent: int, number: int, tx: Instant) -> int:
        index = self._core.index
        return next(
            (
                r
                for r in reversed(index.rows_of[ent])
                if index.r_tx[r] <= tx and index.v_num[index.r_ver[r]] == number
            ),
            -1,
        )

    def _content(self, ent: int, number: int, tx: Instant) -> Json:
        row = self._last_row(ent, number, tx)
        if row < 0:
            name = self._core.index.names[ent]
            raise NotFoundError(
                f"no version {number} of {name!r} as known at {iso(tx)}. versions({name!r}) lists them."
            )
        ver = self._core.index.r_ver[row]
        content: Json = self._core.body(self._core.index.v_pos[ver], self._core.index.v_len[ver]).get(
            "content", {}
        )
        return content

    def _described(self, ent: int, number: int, valid: Instant, tx: Instant) -> Node:
        """The node as one of its versions describes it."""
        index = self._core.index
        row = index.find(ent, valid, tx)
        if row >= 0 and index.v_num[index.r_ver[row]] == number:
            return self._node(row, "stands", tx)
        standing = "superseded" if row >= 0 else index.standing(ent, valid, tx)
        return self._node(self._last_row(ent, number, tx), standing, tx)

    def _thing(self, ent: int, valid: Instant, tx: Instant) -> Node | Event:
        """A node or event with any standing; one that does not stand shows its last content known at tx."""
        index = self._core.index
        row = index.find(ent, valid, tx)
        if row >= 0:
            return self._shown(row, valid, tx)
        standing = index.standing(ent, valid, tx)
        row = index.last_cover(ent, valid, tx)
        if row < 0:
            believed = index.believed(ent, tx)
            row = (
                believed[-1]
                if believed
                else max((r for r in index.rows_of[ent] if index.r_tx[r] <= tx), default=-1)
            )
        if row < 0:
            return self._rowless(ent, standing)
        return self._event(row, standing, tx) if index.is_event[ent] else self._node(row, standing, tx)

    def _rowless(self, ent: int, standing: str) -> Node | Event:
        """A thing that was born and superseded in one transaction: it held at no instant, but a link names it."""
        index = self._core.index
        ver, born = index.versions_of[ent][-1], index.born[ent]
        period = (born, born, born, born)
        if index.is_event[ent]:
            return self._event_of(ver, standing, period)
        return self._node_of(ver, standing, period)

    def _shown(self, row: int, valid: Instant, tx: Instant) -> Node | Event:
        ent = self._core.index.r_ent[row]
        if self._core.index.is_event[ent]:
            return self._event(row, self._core.index.standing(ent, valid, tx), tx)
        return self._node(row, "stands", tx)

    def _node(self, row: int, standing: str, tx: Instant) -> Node:
        index = self._core.index
        end = index.r_end[row]
        period = (index.r_from[row], index.r_to[row], index.r_tx[row], end if end <= tx else OPEN)
        return self._node_of(index.r_ver[row], standing, period)

    def _node_of(self, ver: int, standing: str, period: _Periods) -> Node:
        index = self._core.index
        ent = index.v_ent[ver]
        body = self._core.body(index.v_pos[ver], index.v_len[ver])
        start, to, told, end = period
        return Node.made(
            {
                "id": index.names[ent],
                "kind": index.kind[ent],
                "key": index.key[ent],
                "scope": index.scope[ent],
                "number": index.v_num[ver],
                "content": body["content"],
                "text": body.get("text"),
                "tags": tuple(body.get("tags", ())),
                "trigger": body.get("trigger", "initial"),
                "source": body.get("source"),
                "standing": standing,
                "valid_from": EPOCH + timedelta(microseconds=start),
                "valid_to": None if to >= OPEN else EPOCH + timedelta(microseconds=to),
                "tx_from": EPOCH + timedelta(microseconds=told),
                "tx_to": None if end >= OPEN else EPOCH + timedelta(microseconds=end),
            }
        )

    def _version(self, row: int, tx: Instant) -> Version:
        fields = dict(self._node(row, "stands", tx).__dict__)
        del fields["standing"]
        fields["ref"] = f"{fields['id']}-v{fields['number']}"
        return Version.made(fields)

    def _event(self, row: int, standing: str, tx: Instant) -> Event:
        index = self._core.index
        end = index.r_end[row]
        period = (index.r_from[row], index.r_to[row], index.r_tx[row], end if end <= tx else OPEN)
        return self._event_of(index.r_ver[row], standing, period)

    def _event_of(self, ver: int, standing: str, period: _Periods) -> Event:
        index = self._core.index
        ent = index.v_ent[ver]
        body = self._core.body(index.v_pos[ver], index.v_len[ver])
        start, _, told, end = period
        return Event.made(
            {
                "id": index.names[ent],
                "type": index.kind[ent],
                "description": body.get("description", ""),
                "occurred_at": moment(start),
                "source": body.get("source"),
                "origin": body.get("origin", "agent"),
                "agent": body.get("agent"),
                "fingerprint": body.get("fingerprint"),
                "metadata": body.get("metadata", {}),
                "trace_id": body.get("trace_id"),
                "span_id": body.get("span_id"),
                "parent_span_id": body.get("parent_span_id"),
                "standing": standing,
                "tx_from": moment(told),
                "tx_to": end_moment(end),
            }
        )

    def _change(self, before: int, before_tx: Instant, after: int, after_tx: Instant) -> NodeChange:
        old, new = self._node(before, "stands", before_tx), self._node(after, "stands", after_tx)
        return NodeChange(
            id=old.id, before=old, after=new, fields=tuple(differences.diff(old.content, new.content))
        )

    # ------------------------------------------------------------------ links

    def _held(self, link: int, valid: Instant, tx: Instant) -> int:
        return self._core.index.find_link(link, valid, tx)

    def _links(
        self, side: dict[int, list[int]], ent: int, kinds: frozenset[str] | None, valid: Instant, tx: Instant
    ) -> list[Link]:
        index = self._core.index
        rows = []
        for link in side.get(ent, ()):
            if kinds is None or index.l_kind[link] in kinds:
                row = index.find_link(link, valid, tx)
                if row >= 0:
                    rows.append(row)
        if len(rows) > 1:
            rows.sort(key=self._link_order)
        return [self._link(row, valid, tx) for row in rows]

    def _link_order(self, row: int) -> tuple[Instant, Instant, str]:
        index = self._core.index
        return index.k_from[row], index.k_tx[row], index.l_name[index.k_link[row]]

    def _link(self, row: int, valid: Instant, tx: Instant) -> Link:
        index = self._core.index
        link, claim = index.k_link[row], index.k_claim[row]
        source, target = index.l_src[link], index.l_tgt[link]
        body = self._core.body(index.c_pos[claim], index.c_len[claim])
        end, to = index.k_end[row], index.k_to[row]
        return Link.made(
            {
                "id": index.l_name[link],
                "source": index.names[source],
                "kind": index.l_kind[link],
                "target": index.names[target],
                "reason": body.get("reason"),
                "strength": index.c_strength[claim] or None,
                "confidence": "inferred" if index.c_inferred[claim] else "explicit",
                "created_by": index.c_by[claim],
                "metadata": body.get("metadata", {}),
                "source_standing": index.standing(source, valid, tx),
                "target_standing": index.standing(target, valid, tx),
                "valid_from": EPOCH + timedelta(microseconds=index.k_from[row]),
                "valid_to": None if to >= OPEN else EPOCH + timedelta(microseconds=to),
                "tx_from": EPOCH + timedelta(microseconds=index.k_tx[row]),
                "tx_to": None if end > tx else EPOCH + timedelta(microseconds=end),
            }
        )

    def _neighbours(self, ent: int, valid: Instant, tx: Instant) -> set[int]:
        index = self._core.index
        near = {index.l_tgt[link] for link in index.out.get(ent, ()) if self._held(link, valid, tx) >= 0}
        return near | {
            index.l_src[link] for link in index.into.get(ent, ()) if self._held(link, valid, tx) >= 0
        }

    def _chain(self, id: str, depth: int, side: dict[int, list[int]], far: Any) -> Chain:
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise InvalidError(f"depth {depth!r} is out of range. Give a whole number of at least 1.")
        with self._core.lock:
            valid, tx = self._coordinate()
            root, _ = self._resolve(id, tx)
            seen, frontier, reached, walked = {root}, [root], [], []
            while frontier:
                following = [step for ent in frontier for step in self._causal(ent, side, far, valid, tx)]
                if depth == 0:
                    break
                depth -= 1
                frontier = []
                for row, ent in following:
                    walked.append(row)
                    if ent not in seen:
                        seen.add(ent)
                        frontier.append(ent)
                reached += frontier
            truncated = any(ent not in seen for ent in frontier and [ent for _, ent in following])
            links = dict.fromkeys(walked)
            return Chain(
                root=self._thing(root, valid, tx),
                nodes=tuple(self._thing(ent, valid, tx) for ent in reached),
                links=tuple(self._link(row, valid, tx) for row in links),
                truncated=truncated,
            )

    def _causal(
        self, ent: int, side: dict[int, list[int]], far: Any, valid: Instant, tx: Instant
    ) -> list[tuple[int, int]]:
        """The causal links of one thing that respect time: (row, other end), in order."""
        index, kinds = self._core.index, self._core.vocabulary.kinds
        rows = []
        for link in side.get(ent, ()):
            if kinds[index.l_kind[link]].causal:
                row = index.find_link(link, valid, tx)
                if row >= 0 and in_time(index, index.l_src[link], index.l_tgt[link], index.k_from[row], tx):
                    rows.append(row)
        if len(rows) > 1:
            rows.sort(key=self._link_order)
        return [(row, far[index.k_link[row]]) for row in rows]


class View(Reader):
    """The graph at one coordinate. It never changes; make as many as you like."""

    __slots__ = ("_core", "_tx", "_valid")

    def __init__(self, core: Core, valid: Instant, tx: Instant) -> None:
        self._core = core
        self._valid = valid
        self._tx = tx

    def _coordinate(self) -> tuple[Instant, Instant]:
        if self._core.closed:
            raise InvalidError(self._core.closed)
        return self._valid, self._tx

    def __repr__(self) -> str:
        return f"<View valid {iso(self._valid)}, as known at {iso(self._tx)}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, View)
            and self._core is other._core
            and self._coordinate() == other._coordinate()
        )

    def __hash__(self) -> int:
        return hash((id(self._core), self._valid, self._tx))


class _Succession:
    """The walk behind `what_superseded`: breadth first, from a thing to what took its place."""

    def __init__(self, reader: Reader, valid: Instant, tx: Instant) -> None:
        self.reader = reader
        self.index = reader._core.index
        self.valid, self.tx = valid, tx
        self.steps: list[Step] = []
        self.current: list[Node | Event] = []

    def of(self, subject: int, number: int) -> Supersession:
        reader, valid, tx = self.reader, self.valid, self.tx
        event = self.index.is_event[subject]
        thing = (
            reader._described(subject, number, valid, tx)
            if number and not event
            else reader._thing(subject, valid, tx)
        )
        if number and not event:
            self._revisions(subject, number)
        seen, level = {subject}, [subject]
        while level:
            following: list[tuple[Instant, Instant, str, int, int]] = []
            for ent in level:
                following += self._after(ent)
            level = []
            for *_, row, ent in sorted(following):
                if ent not in seen:
                    seen.add(ent)
                    level.append(ent)
                    self._step(row, ent)
        return Supersession(
            subject=thing, chain=tuple(self.steps), current=tuple(self.current), standing=thing.standing
        )

    def _after(self, ent: int) -> list[tuple[Instant, Instant, str, int, int]]:
        """The links that lead away from one thing. Where none does, the thing itself is an end: it stands, or it is over."""
        index = self.index
        found = []
        replaced = False
        for link in index.into.get(ent, ()):
            kind = index.l_kind[link]
            if kind not in ("supersedes", "transition", "corrects"):
                continue
            row = index.find_link(link, self.valid, self.tx)
            if row >= 0:
                replaced = replaced or kind != "corrects"
                found.append((*self.reader._link_order(row), row, index.l_src[link]))
        standing = index.standing(ent, self.valid, self.tx)
        if standing == "stands" and not replaced:
            self.current.append(self.reader._thing(ent, self.valid, self.tx))
        elif standing in ("retracted", "ended") and not replaced:
            self._over(ent, standing)
        return found

    def _step(self, row: int, ent: int) -> None:
        index = self.index
        link = self.reader._link(row, self.valid, self.tx)
        self.steps.append(
            Step(
                how="corrected" if link.kind == "corrects" else "superseded",
                link=link,
                node=self.reader._thing(ent, self.valid, self.tx),
                who=index.o_author[index.k_op[row]] or link.created_by,
                why=link.reason,
                since=link.valid_from,
                recorded_at=link.tx_from,
            )
        )

    def _over(self, ent: int, standing: str) -> None:
        index = self.index
        closed = [r for r in index.rows_of[ent] if index.r_end[r] <= self.tx]
        cover = index.last_cover(ent, self.valid, self.tx)
        believed = index.believed(ent, self.tx)
        if not index.rows_of[ent]:
            return
        if not closed:  # it was given an end when it was written
            row, op = (cover if cover >= 0 else believed[-1]), -1
        else:
            row = (
                cover
                if cover >= 0 and index.r_close[cover] >= 0 and index.r_end[cover] <= self.tx
                else max(closed, key=lambda r: index.r_close[r])
            )
            op = index.r_close[row]
        since = max((index.r_to[r] for r in believed if index.r_to[r] <= self.valid), default=None)
        written = index.r_op[row] if op < 0 else op
        self.steps.append(
            Step(
                how="retracted" if standing == "retracted" else "ended",
                link=None,
                node=None,
                who=index.o_author[written],
                why=self.reader._core.body(index.o_pos[written], index.o_len[written]).get("reason"),
                since=(moment(since) if since is not None else None)
                if standing == "ended"
                else moment(index.r_from[row]),
                recorded_at=moment(index.o_tx[written]),
            )
        )

    def _revisions(self, subject: int, number: int) -> None:
        """Steps for the versions that took valid time from version `number`, in the order they were believed."""
        index = self.index
        lost = [
            row for row in index.rows_of[subject]
            if index.v_num[index.r_ver[row]] == number and index.r_end[row] <= self.tx
        ]  # fmt: skip
        for row in index.rows_of[subject]:
            later = index.v_num[index.r_ver[row]]
            if (
                later <= number
                or index.r_tx[row] > self.tx
                or any(s.node and s.node.number == later for s in self.steps if isinstance(s.node, Node))
            ):
                continue
            if not any(
                index.r_from[row] < index.r_to[old] and index.r_from[old] < index.r_to[row] for old in lost
            ):
                continue
            op = index.r_op[row]
            self.steps.append(
                Step(
                    how="revised",
                    link=None,
                    node=self.reader._described(subject, later, self.valid, self.tx),
                    who=index.o_author[op],
                    why=self.reader._core.body(index.o_pos[op], index.o_len[op]).get("reason"),
                    since=moment(index.r_from[row]),
                    recorded_at=moment(index.r_tx[row]),
                )
            )


def in_time(index: Index, effect: int, cause: int, since: Instant, tx: Instant) -> bool:
    """Whether the cause starts no later than its effect, as believed at `tx`; `since` is when the link begins to hold."""
    begun = index.start(cause, tx)
    shown = index.start(effect, tx)
    return begun is None or shown is None or begun <= max(shown, since)


def slot_name(key: str) -> str:
    """The normal form of a key: lower case, runs of other characters become `_`."""
    if not isinstance(key, str):
        raise InvalidError(f"key {key!r} is no text.")
    name = re.sub(r"\W+", "_", key.strip().lower()).strip("_")
    if not name:
        raise InvalidError(f"key {key!r} holds no letter or digit.")
    return name


def _by_start_of_contradiction(found: Contradiction) -> tuple[datetime, datetime, str]:
    return found.link.valid_from, found.link.tx_from, found.link.id
