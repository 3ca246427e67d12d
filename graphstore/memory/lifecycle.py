"""Evict expired chunks, the oldest chunks beyond the cap, and events past their retention.

What is due is decided first and can be inspected. The store then evicts it as by any eviction: contents and vectors go, tombstones stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import ClassVar, NamedTuple

from graphstore.ledger.chain import RETENTION
from graphstore.memory.memory import LAYERS, Memory, MemoryStats
from graphstore.store import registry
from graphstore.store.store import GraphStore, Store
from graphstore.values import layers as tables
from graphstore.values.layers import CHUNK, Layer
from graphstore.values.models import Value
from graphstore.values.period import BEGINNING, Instant, TimeLike, moment
from graphstore.values.time_range import plural
from graphstore.write import retention

__all__ = ["Due", "Pruned", "due", "run"]


class Due(Value):
    """What is to go at an instant: by time and by the cap, each the oldest first; `layers`: how many of each layer; `left`: how many chunks stay.

    `events`: those older than the days the store keeps, if it keeps any.
    """

    at: datetime
    expired: tuple[str, ...]
    capped: tuple[str, ...]
    events: tuple[str, ...]
    layers: dict[str, int]
    left: int
    cap: int

    _word: ClassVar[str] = "to go"

    def __str__(self) -> str:
        total = len(self.expired) + len(self.capped)
        old = f" And {plural(len(self.events), 'event')} past the retention." if self.events else ""
        if not total:
            return f"nothing {self._word}: {plural(self.left, 'chunk')}, at most {self.cap:,}.{old}"
        parts = ", ".join(f"{name} {count:,}" for name, count in self.layers.items())
        return (
            f"{total:,} {self._word} ({parts}): {len(self.expired):,} whose time is over, {len(self.capped):,} beyond the cap of "
            f"{self.cap:,}. {self.left:,} stay.{old}"
        )


class Pruned(Due):
    """What went, and what stands of each layer now."""

    stats: MemoryStats

    _word = "gone"


@registry.read("lifecycle")
def due(store: Store, now: TimeLike | None = None) -> Due:
    """What `run` would evict at `now` (default: the store's now), with nothing done.

    A chunk's time counts from when it was first recorded, also on a branch. The cap counts every chunk of the trunk whose content is kept, superseded ones too,
    and takes the oldest that are not permanent; what is of no layer is not counted and never goes.
    """
    memory = Memory(store)
    layers, cap = memory.layers, memory.cap
    at = store._now() if now is None else store.instant_of(now, "now")
    chunks = _chunks(store._contents(CHUNK), layers)
    with store._unchanging():
        expired = [chunk for chunk in chunks if tables.over(chunk.layer, chunk.born, at)]
        rest = [chunk for chunk in chunks if not tables.over(chunk.layer, chunk.born, at)]
        loose = [chunk for chunk in rest if not chunk.layer.permanent]
        capped = loose[: max(0, len(rest) - cap)]
        if isinstance(store, GraphStore):
            expired += [chunk for chunk in _elsewhere(store) if tables.over(chunk.layer, chunk.born, at)]
        expired = sorted({chunk.name: chunk for chunk in expired}.values(), key=lambda chunk: chunk.born)
        counts = Counter(chunk.layer.name for chunk in (*expired, *capped))
        return Due(
            at=moment(at),
            expired=tuple(chunk.name for chunk in expired),
            capped=tuple(chunk.name for chunk in capped),
            events=tuple(_old(store, at)),
            layers=dict(sorted(counts.items())),
            left=len(rest) - len(capped),
            cap=cap,
        )


def _old(store: Store, at: Instant) -> list[str]:
    """Return the events older at an instant than the days the store keeps. A store that is open for long evicts them too."""
    kept = store.setting(RETENTION)
    if not isinstance(store, GraphStore) or not kept or kept["days"] is None or not store._is_settled():
        return []
    return store._too_old(None, max(at - kept["days"] * retention.DAY, BEGINNING), None, True)


class _Chunk(NamedTuple):
    born: Instant
    name: str
    layer: Layer


def _chunks(found: Iterable[retention.KindContent], layers: Mapping[str, Layer]) -> list[_Chunk]:
    """Return the chunks that belong to a layer, in their order."""
    layered = ((each, tables.of_scope(layers, each.scope)) for each in found)
    return [_Chunk(each.born, each.name, layer) for each, layer in layered if layer is not None]


def _elsewhere(store: GraphStore) -> Iterator[_Chunk]:
    """Yield the chunks that only branches have, also deleted ones: no file may keep expired chunks. In an open transaction there are none."""
    for defined, found in store._contents_elsewhere(CHUNK, LAYERS):
        yield from _chunks(found, tables.table(defined))


@registry.write("lifecycle")
def run(store: GraphStore, now: TimeLike | None = None) -> Pruned:
    """What the daily tick does: evict the chunks whose time is over at `now`, then the oldest beyond the cap, then the events older than the store's
    retention, as each opening does. Killed half-way, the next one goes on.

    Raises InvalidError inside a transaction, or for a reader.
    """
    store._writable()
    found = due(store, now)
    if found.expired:
        store.evict(ids=found.expired, reason="its time in memory is over")
    if found.capped:
        store.evict(ids=found.capped, reason=f"memory keeps {found.cap} chunks")
    if found.events:
        store.evict(ids=found.events, reason=f"older than {store.retention['days']} days")
    return Pruned.made({**found.__dict__, "stats": Memory(store).stats()})
