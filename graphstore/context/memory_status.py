"""Report the state of a store's memory in one answer: layers, embeddings, waiting messages, syncs, what is due and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from graphstore.context import failures, scheduler
from graphstore.context.observer import BATCH, Message, threshold_of
from graphstore.context.observer import queue as waiting_in
from graphstore.context.scheduler import TickState
from graphstore.errors import InvalidError
from graphstore.memory import embedders, lifecycle
from graphstore.memory.embedders import Embedding
from graphstore.memory.memory import LAYERS, LayerStats, Memory
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values import layers as tables
from graphstore.values.inputs import at_least_one
from graphstore.values.layers import CHUNK
from graphstore.values.models import Node, Value
from graphstore.values.period import moment
from graphstore.view.view import Reader

__all__ = ["Chunks", "MemoryStatus", "QueueStatus", "SyncStatus", "chunks", "do_now", "status"]

_QUEUES = 100


class QueueStatus(Value):
    """A thread whose messages are observed: how many wait of how many that make it enough, how many were compressed, and when that was done last."""

    user: str
    thread: str | None
    waiting: int
    threshold: int
    observed: int
    compressed_at: datetime | None


class SyncStatus(Value):
    """A service that a layer is kept in step with: how far it is, and when something of it was written last."""

    name: str
    scope: str
    cursor: Any
    written_at: datetime


class MemoryStatus(Value):
    """All of it. `due`: how many chunks of each layer are to go now. `ticks`: what this process does by itself; none where nothing does."""

    layers: tuple[LayerStats, ...]
    due: dict[str, int]
    chunks: int
    cap: int
    embedding: Embedding
    queues: tuple[QueueStatus, ...]
    syncs: tuple[SyncStatus, ...]
    ticks: tuple[TickState, ...]
    observations: int
    errors: tuple[str, ...]
    """The last errors that no success followed, each with its name."""


@registry.read("memory")
def status(store: Store) -> MemoryStatus:
    """How the memory of the store is now: layers, embedder, queues, services, ticks and what failed last. The hundred threads observed last are listed."""
    memory = Memory(store).stats()
    going = scheduler.ticks_of(store._trunk)
    ticks = () if going is None else tuple(going.states())
    return MemoryStatus(
        layers=memory.layers,
        due=lifecycle.due(store).layers,
        chunks=memory.chunks,
        cap=memory.cap,
        embedding=embedders.embedding(store),
        queues=tuple(_queues(store)),
        syncs=tuple(_syncs(store)),
        ticks=ticks,
        observations=sum(each.chunks for each in memory.layers if each.layer == "observation"),
        errors=tuple(f"{name}: {error}" for name, error in _errors(store, ticks).items()),
    )


def _errors(store: Store, ticks: Iterable[TickState]) -> dict[str, str]:
    """Return the last errors that no success followed, of ticks and of other work."""
    return failures.last(store) | {each.name: each.error for each in ticks if each.error is not None}


def _queues(store: Store) -> Iterable[QueueStatus]:
    observed: Counter[tuple[str, str | None]] = Counter()
    last: dict[tuple[str, str | None], datetime] = {}
    rows = [row for row in store.scan(BATCH, content=True) if "user" in (row.content or {})]
    for row in sorted(rows, key=lambda each: each.tx_from):
        content = row.content or {}
        place = (content["user"], content.get("thread"))
        observed[place] += content.get("observed", 0)
        last.pop(place, None)
        last[place] = moment(row.tx_from)
    done = {place for place, number in observed.items() if number}
    for user, thread in list(last)[: -_QUEUES - 1 : -1]:
        waits: list[Message] = waiting_in(store, user, thread)
        yield QueueStatus(
            user=user,
            thread=thread,
            waiting=len(waits),
            threshold=threshold_of(store),
            observed=observed[user, thread],
            compressed_at=last[user, thread] if (user, thread) in done else None,
        )


def _syncs(store: Store) -> Iterable[SyncStatus]:
    for node in store.nodes("cursor"):
        if "source" in node.content:
            yield SyncStatus(
                name=str(node.content["source"]),
                scope=node.scope,
                cursor=node.content.get("cursor"),
                written_at=node.recorded_at,
            )


@registry.write("memory")
def do_now(store: Store, name: str) -> None:
    """Do a tick of the server now, such as `sync NAME` or `observer`, whether it is due or not. Raises InvalidError for one there is not."""
    going = scheduler.ticks_of(store._trunk)
    if going is None:
        raise InvalidError(f"there is no tick {name!r}: nothing is done by itself here. Serve the store.")
    going.now(name)


class Chunks(Value):
    """Some chunks of a layer, those recorded last first, of `total`. `skip` of the next page; None when there are no more."""

    chunks: tuple[Node, ...]
    total: int
    skip: int | None


@registry.read("memory")
def chunks(view: Reader, layer: str, *, limit: int = 50, skip: int = 0) -> Chunks:
    """The chunks of a layer that stand at the coordinate, a page of them, those recorded last first. Raises InvalidError for an unknown layer."""
    most = at_least_one("limit", limit)
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise InvalidError(f"skip {skip!r} is out of range. Give 0 or more.")
    known = tables.table(view.setting(LAYERS))
    if layer not in known:
        raise InvalidError.choice("layer", layer, known)
    rows = [
        row
        for row in view.scan(CHUNK)
        if (found := tables.of_scope(known, row.scope)) is not None and found.name == layer
    ]
    rows.sort(key=lambda each: (each.tx_from, each.id), reverse=True)
    page = rows[skip : skip + most]
    further = skip + most if len(rows) > skip + most else None
    valid, tx = view.coordinate()
    here = view.pinned(valid, tx)
    return Chunks(chunks=tuple(here.node(row.id) for row in page), total=len(rows), skip=further)
