"""Find the statements ever recorded on a topic: rows of nodes with the name as key or tag, or found by a search, and the statements they replaced.

Names have their own lookup table, rows are compared as numbers, and only requested bodies are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from graphstore.values.keys import slot_name, version_of
from graphstore.values.models import UPRIGHT, Json, Node
from graphstore.values.period import Instant
from graphstore.view.coverage import COVERS
from graphstore.view.sight import Sight

FoundBy = Literal["key", "tag", "text"]
_REPLACING = frozenset({"supersedes", "transition"})
_SEEDS = 10
_NEAREST = 3
_RELEVANT = 0.5  # share of the best score: results below it belong to another topic


class TopicRow(NamedTuple):
    """A statement on a topic: its entity, its row (-1: it never held), when it begins to hold, and when it was recorded."""

    since: Instant
    recorded: Instant
    ent: int
    row: int


class JoinedStatements(NamedTuple):
    """A link between two statements."""

    source: str
    kind: str
    target: str


class TopicRows:
    """Holds what is known of a topic at one coordinate, as numbers of the index: the rows that stand, are past and are planned."""

    def __init__(self, sight: Sight, query: str, name: str, kind: str | None, scope: str | None) -> None:
        self.sight, self._index = sight, sight.index
        self.query, self._kind, self._scope = query, kind, scope
        self.by: FoundBy | None = None
        self.near: list[int] = []  # partial matches, if nothing covers enough
        self.current: list[TopicRow] = []
        self.past: list[TopicRow] = []
        self.planned: list[TopicRow] = []
        self._next: dict[
            TopicRow, TopicRow
        ] = {}  # a standing version of the topic -> the one that began after it
        core = sight.core
        if self._place(core.naming.keyed(name)):
            self.by = "key"
        elif self._place_tagged(core.naming.tagged(name)):
            self.by = "tag"
        elif self._place(self._sought()):
            self.by = "text"
        self._follow()

    def _place_tagged(self, versions: Sequence[int]) -> bool:
        v_ent = self._index.v_ent
        return bool(versions) and self._place(
            list(dict.fromkeys(v_ent[ver] for ver in versions)), frozenset(versions)
        )

    def _sought(self) -> list[int]:
        """Return the nodes found by a search that score at least half the best and cover half of the query, or whose key or tag is named. Without any, set the best as
        `near`."""
        sight, kinds = self.sight, frozenset() if self._kind is None else frozenset({self._kind})
        index = self._index
        found = sight.core.search.find(sight, self.query, index.count, kinds=kinds)
        nodes = [(ent, score) for ent, score in found.matches if not index.is_event[ent]][:_SEEDS]
        named = self._named(term.word for term in found.question.terms)
        covering = [
            ent
            for ent, score in nodes
            if score >= _RELEVANT * nodes[0][1] and (found.coverages((ent,))[0] >= COVERS or ent in named)
        ]
        if not covering:
            self.near = [ent for ent, _ in nodes[:_NEAREST]]
        return covering

    def _named(self, words: Iterable[str]) -> set[int]:
        """Return the nodes whose key or tag is one of these words."""
        core, v_ent = self.sight.core, self._index.v_ent
        names = {slot_name(word) for word in words}
        tagged = (v_ent[ver] for name in names for ver in core.naming.tagged(name))
        return {ent for name in names for ent in core.naming.keyed(name)}.union(tagged)

    def _place(self, ents: Sequence[int], versions: frozenset[int] | None = None) -> bool:
        """Add each node to what stands, is past or is planned. `versions`: only these descriptions. Returns False if none is known."""
        index, tx = self._index, self.sight.tx
        known = False
        for ent in ents:
            if (
                index.born[ent] <= tx
                and (self._kind is None or index.kind[ent] == self._kind)
                and (self._scope is None or index.scope[ent] == self._scope)
                and self._place_rows(ent, versions)
            ):
                known = True
        return known

    def _place_rows(self, ent: int, versions: frozenset[int] | None) -> bool:
        index, sight = self._index, self.sight
        valid, r_ver, r_from = sight.valid, index.r_ver, index.r_from
        now = index.find(ent, valid, sight.tx)
        rows = index.believed(ent, sight.tx)
        if not rows:
            rows = self._last(ent)
            if not rows:  # added and superseded in one transaction: it never held
                if versions is None or not versions.isdisjoint(index.versions_of[ent]):
                    self.past.append(TopicRow(index.born[ent], index.born[ent], ent, -1))
                    return True
                return False
        forgotten, shown = ent in index.gone, set[tuple[int, bool]]()
        if now >= 0 and (versions is None or r_ver[now] in versions):
            self.current.append(TopicRow(r_from[now], sight.recorded(now), ent, now))
            shown = {(r_ver[now], False), (r_ver[now], True)}
        for row in rows:
            later = not forgotten and r_from[row] > valid and index.r_end[row] > sight.tx
            ver = r_ver[row]
            if row != now and (ver, later) not in shown and (versions is None or ver in versions):
                shown.add((ver, later))
                entry = TopicRow(r_from[row], sight.recorded(row), ent, row)
                (self.planned if later else self.past).append(entry)
        return bool(shown)

    def _last(self, ent: int) -> list[int]:
        """Return the last written row of a node of which nothing is believed."""
        index, tx = self._index, self.sight.tx
        return [max(rows)] if (rows := [row for row in index.rows_of[ent] if index.r_tx[row] <= tx]) else []

    def _follow(self) -> None:
        """Add what the standing statements replaced, and what will replace them, even under another name."""
        index, sight = self._index, self.sight
        waiting = [each.ent for part in (self.current, self.past) for each in part]
        seen = {*waiting, *(each.ent for each in self.planned)}
        for ent in waiting:
            for link in index.out.get(ent, ()):
                old = index.l_tgt[link]
                if old not in seen and index.l_kind[link] in _REPLACING and sight.held(link) >= 0:
                    seen.add(old)
                    if not index.is_event[old] and sight.find(old) < 0:
                        self._place_rows(old, None)
                        waiting.append(old)
        for each in tuple(self.current):
            for link in index.successors.get(each.ent, ()):
                new = index.l_src[link]
                if (
                    new not in seen
                    and index.believed_link(link, sight.tx)
                    and sight.standing(new) == "not_yet"
                ):
                    seen.add(new)
                    if not index.is_event[new]:
                        self._place_rows(new, None)

    def pass_versions(self) -> None:
        """Make a standing version past if a higher one in its scope began as late or later. Versions are keys with a number (`auth_v1`, `auth_v2`)."""
        versions: dict[tuple[str | None, str], list[tuple[int, TopicRow]]] = {}
        for each in self.current:
            base, number = version_of(self.key(each))
            if number is not None:
                versions.setdefault((base, self.scope(each)), []).append((number, each))
        for several in versions.values():
            for number, each in several:
                later = [
                    (one.since, other, one)
                    for other, one in several
                    if other > number and one.since >= each.since
                ]
                if later:
                    self._next[each] = min(later)[2]
        if self._next:
            self.current = [each for each in self.current if each not in self._next]
            self.past += self._next

    # ------------------------------------------------------------------ results

    def by_age(self, entries: list[TopicRow]) -> list[TopicRow]:
        """Return the entries sorted by when they begin to hold, when they were recorded, and id."""
        names = self._index.names
        return sorted(entries, key=lambda each: (each.since, each.recorded, names[each.ent]))

    def id(self, each: TopicRow) -> str:
        """Return the id of the node that makes a statement."""
        return self._index.names[each.ent]

    def scope(self, each: TopicRow) -> str:
        """Return the scope of that node."""
        return self._index.scope[each.ent]

    def kind(self, each: TopicRow) -> str:
        """Return the kind of that node."""
        return self._index.kind[each.ent]

    def key(self, each: TopicRow) -> str | None:
        """Return the key of that node."""
        return self._index.key[each.ent]

    def node(self, each: TopicRow) -> Node:
        """Return the node as the statement describes it."""
        return self.sight.node(each.row, self.sight.upright(each.ent))

    def body(self, each: TopicRow) -> Json:
        """Return the body of the statement; of a forgotten one its tombstone."""
        index = self._index
        ver = index.r_ver[each.row] if each.row >= 0 else index.versions_of[each.ent][0]
        return self.sight.core.body(index.v_pos[ver], index.v_len[ver]) or index.tombstone(each.ent)

    def until(self, each: TopicRow) -> Instant:
        """Return when a statement ceases to hold."""
        if each in self._next:
            return self._next[each].since
        return self._index.r_to[each.row] if each.row >= 0 else each.since

    def standing(self, each: TopicRow) -> str:
        """Return the standing of a statement, which may differ from its node's. Superseded are earlier versions of the node, statements replaced before they began, and
        versions passed by a later one. A later version is `not_yet`."""
        index, sight = self._index, self.sight
        if each in self._next:
            return "superseded"
        if each.ent in index.gone:
            return index.word(each.ent)
        if each.row >= 0 and each.since > sight.valid and index.r_end[each.row] > sight.tx:
            return "not_yet"
        standing = sight.standing(each.ent)
        fallen = standing in UPRIGHT and each.row != sight.find(each.ent)
        return "superseded" if fallen or standing == "not_yet" else standing

    def replaced_by(self, each: TopicRow) -> tuple[str, ...]:
        """Return the ids of what replaced it: the successors named by links, or the next version."""
        index, sight = self._index, self.sight
        if each in self._next:
            return (self.id(self._next[each]),)
        links = index.successors.get(each.ent, ())
        names = [index.names[index.l_src[link]] for link in links if sight.held(link) >= 0]
        if names:
            return tuple(names)
        rows = index.believed(each.ent, sight.tx)
        if not rows and self.standing(each) == "superseded":  # before it began
            return tuple(
                index.names[index.l_src[link]] for link in links if index.believed_link(link, sight.tx)
            )
        if len(rows) > 1 and each.row in rows[:-1]:
            after = rows[rows.index(each.row) + 1]
            if index.r_from[after] <= sight.valid:
                return (f"{index.names[each.ent]}-v{index.v_num[index.r_ver[after]]}",)
        return ()

    def joined(self) -> list[JoinedStatements]:
        """Return the links that hold between the statements that stand."""
        index = self._index
        ents = {each.ent for each in self.current}
        return [
            JoinedStatements(index.names[ent], index.l_kind[link], index.names[index.l_tgt[link]])
            for ent in ents
            for link in index.out.get(ent, ())
            if index.l_tgt[link] in ents and self.sight.held(link) >= 0
        ]

    def names(self) -> Iterator[str]:
        """Return every key and tag of the nodes known here."""
        core = self.sight.core
        names: Iterator[str] = core.naming.known()
        return names
