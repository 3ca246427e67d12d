"""Upsert: put a node under an id derived from its place. It is added if new, revised if changed, and otherwise not touched.

Reading a file, a service or a scratchpad repeatedly writes only what changed, and the store keeps every earlier state.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphstore.read.standing_rules import Index
from graphstore.values.inputs import version_body
from graphstore.values.models import Json, Node
from graphstore.values.period import OPEN, Instant, moment
from graphstore.view.rows import NumberedRows
from graphstore.view.working_sight import WorkingSight

if TYPE_CHECKING:
    from graphstore.store.store import Store
    from graphstore.view.view import Reader

How = Literal["new", "revised", "unchanged"]
_FIELDS = ("content", "text", "tags", "source")


class NodePlace(NamedTuple):
    """The place of a node: its kind, and the words from which its id is derived."""

    kind: str
    words: tuple[str, ...]

    def id(self, again: int = 0) -> str:
        """Return an id of 16 hex characters. `again`: how often the node was forgotten before."""
        parts = (self.kind, str(again), *self.words)
        return blake2b("\x1f".join(parts).encode(), digest_size=8).hexdigest()


class Kept(NamedTuple):
    """The node as it is now, and what was done."""

    node: Node
    how: How


def entity(sight: NumberedRows, place: NodePlace) -> int:
    """Return the entity in a place; -1 if there never was one, or it was forgotten."""
    return _named(sight.index, place)[1]


def kept_in(view: Reader, *places: NodePlace) -> Node | None:
    """Return the node in the first of these places where something stands in a view, None if nothing does."""
    with view.reading() as sight:
        for place in places:
            ent = entity(sight, place)
            row = -1 if ent < 0 else sight.find(ent)
            if row >= 0:
                return sight.node(row, sight.upright(ent))
    return None


def _named(index: Index, place: NodePlace) -> tuple[str, int]:
    """Return the current id of a place, and its entity or -1. A forgotten node stays forgotten: its successor gets another id."""
    again = 0
    while (ent := index.ids.get(name := place.id(again), -1)) in index.gone:
        again += 1
    return name, ent


def keep(
    store: Store,
    place: NodePlace,
    content: Json,
    *,
    text: str | None = None,
    scope: str = "",
    key: str | None = None,
    tags: Iterable[str] = (),
    source: str | None = None,
    since: Instant | None = None,
    trigger: str = "initial",
    minor: bool = False,
) -> Kept:
    """Record this in a place from `since` on (default: now). The previous content holds until then. `minor`: nothing that rests on it becomes shaky.

    Raises ConflictError if something else uses the id, and what `add_node` and `revise` raise.
    """
    wanted = version_body(content, text, tags, "initial", source)
    with store.verb(is_narrow=True) as work:
        index = store._core.index
        at = work.tx if since is None else since
        name, ent = _named(index, place)
        if ent < 0:
            node = store.add_node(
                place.kind, content, id=name, key=key, text=text, tags=tags, valid_from=moment(at), scope=scope, source=source,
            )  # fmt: skip
            return Kept(node, "new")
        if _states(store, ent, at, wanted):
            return Kept(work.answer(Node, partial(_as_kept, store, ent, at, work.tx), id=name), "unchanged")
        before = len(index.o_tx)
        node = store.revise(
            name,
            content,
            text=text,
            tags=tags,
            valid_from=moment(at),
            source=source,
            trigger=trigger,
            minor=minor,
        )
        return Kept(node, "revised" if len(index.o_tx) > before else "unchanged")


def _as_kept(store: Store, ent: int, at: Instant, tx: Instant) -> Node:
    found = WorkingSight(store._core, at, tx).thing(ent)
    assert isinstance(found, Node)
    return found


def _states(store: Store, ent: int, at: Instant, wanted: Json) -> bool:
    """Return True if only the wanted description is believed of it from `at` on."""
    index = store._core.index
    rows = index.over(index.now_of[ent], (at, OPEN))
    if not rows or index.r_from[rows[0]] > at:
        return False
    versions = {index.r_ver[row] for row in rows}
    bodies = (store._core.body(index.v_pos[ver], index.v_len[ver]) for ver in versions)
    return all({name: body[name] for name in _FIELDS if name in body} == wanted for body in bodies)


def clear(store: Store, place: NodePlace, *, reason: str) -> str | None:
    """End the node in a place. Returns its id, None if nothing was believed from now on."""
    with store.verb(is_narrow=True):
        name, ent = _named(store._core.index, place)
        return name if ent >= 0 and let_go(store, name, reason=reason) else None


def let_go(store: Store, id: str, *, reason: str) -> bool:
    """End a node now, and retract what was to begin later. Returns False if nothing is believed of it from now on."""
    with store.verb(is_narrow=True) as work:
        index = store._core.index
        ent = index.ids[id]
        if ent in index.gone or not index.over(index.now_of[ent], (work.tx, OPEN)):
            return False
        start = index.start(ent, work.tx)
        if start is not None and start < work.tx:
            store.end(id, reason=reason)
        else:
            store.retract(id, reason=reason)
        return True
