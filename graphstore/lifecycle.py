"""The room of what memory lets go of: chunks whose time is over, and the oldest where there are more than the cap allows.

What is due is decided first and can be looked at; then the store evicts it, as it would anything: contents and vectors go, tombstones stay.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from graphstore import layers as tables
from graphstore.layers import CHUNK
from graphstore.memory import Memory, MemoryStats
from graphstore.models import Value
from graphstore.period import TimeLike, instant, moment
from graphstore.store import GraphStore

__all__ = ["Due", "Pruned", "due", "run"]


class Due(Value):
    """What is to go at an instant: by time and by the cap, each the oldest first; `layers`: how many of each layer; `left`: how many chunks stay."""

    at: datetime
    expired: tuple[str, ...]
    capped: tuple[str, ...]
    layers: dict[str, int]
    left: int
    cap: int

    def __str__(self) -> str:
        return _told(self, "to go")


class Pruned(Due):
    """What went, and what stands of each layer now."""

    stats: MemoryStats

    def __str__(self) -> str:
        return _told(self, "gone")


def due(store: GraphStore, now: TimeLike | None = None) -> Due:
    """What `run` would evict at `now` (default: the store's now), with nothing done.

    A chunk's time counts from when it was first told. The cap counts every chunk whose content is kept, superseded ones too, and takes the oldest that
    are not permanent; what is of no layer is not counted and never goes.
    """
    memory = Memory(store)
    layers, cap = memory.layers, memory.cap
    with store._core.lock:
        store._usable()
        index = store._core.index
        at = store._now() if now is None else instant(now, "now")
        expired: list[int] = []
        rest: list[int] = []
        layer_of = {}
        for ent, kind in enumerate(index.kind[: index.mark().entities]):
            if kind != CHUNK or index.is_event[ent] or ent in index.gone:
                continue
            layer = tables.of_scope(layers, index.scope[ent])
            if layer is None:
                continue
            layer_of[ent] = layer
            (expired if tables.over(layer, index.born[ent], at) else rest).append(ent)
        loose = [ent for ent in rest if not layer_of[ent].permanent]
        loose.sort(key=lambda ent: (index.born[ent], ent))
        capped = loose[: max(0, len(rest) - cap)]
        expired.sort(key=lambda ent: (index.born[ent], ent))
        counts = Counter(layer_of[ent].name for ent in (*expired, *capped))
        return Due(
            at=moment(at),
            expired=tuple(index.names[ent] for ent in expired),
            capped=tuple(index.names[ent] for ent in capped),
            layers=dict(sorted(counts.items())),
            left=len(rest) - len(capped),
            cap=cap,
        )


def run(store: GraphStore, now: TimeLike | None = None) -> Pruned:
    """What the daily tick does: evict the chunks whose time is over at `now`, then the oldest beyond the cap. Killed half-way, the next one goes on.

    Raises InvalidError inside a transaction, or for a reader.
    """
    store._writable()
    found = due(store, now)
    if found.expired:
        store.evict(ids=found.expired, reason="its time in memory is over")
    if found.capped:
        store.evict(ids=found.capped, reason=f"memory keeps {found.cap} chunks")
    return Pruned.made({**found.__dict__, "stats": Memory(store).stats()})


def _told(found: Due, word: str) -> str:
    total = len(found.expired) + len(found.capped)
    if not total:
        return f"nothing {word}: {found.left:,} chunks, at most {found.cap:,}."
    parts = ", ".join(f"{name} {count:,}" for name, count in found.layers.items())
    return (
        f"{total:,} {word} ({parts}): {len(found.expired):,} whose time is over, {len(found.capped):,} beyond the cap of "
        f"{found.cap:,}. {found.left:,} stay."
    )
