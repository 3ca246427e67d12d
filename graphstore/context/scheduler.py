"""What a store that is open for long does by itself: memory lets go once a day, messages are compressed, files and services are read again.

Each tick has its time by the store's clock. Nothing here sleeps or starts a thread: the owner of the store calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.context.feeders import SoulFileIndexer, Sync, SyncSource
from graphstore.context.observer import Observer
from graphstore.memory import lifecycle

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@dataclass(slots=True)
class _Tick:
    work: Callable[[], Any]
    every: timedelta
    last: datetime | None = None


class Ticking:
    """The ticks of a store, each by its name."""

    def __init__(
        self, store: GraphStore, ticks: Iterable[tuple[str, Callable[[], Any], timedelta]] = ()
    ) -> None:
        self._store = store
        self._ticks = {name: _Tick(work, every) for name, work, every in ticks}

    @property
    def names(self) -> tuple[str, ...]:
        """What there is to do."""
        return tuple(self._ticks)

    def do(self, name: str) -> bool:
        """Do a tick when it is due: at once, and then every so often after it was begun last, failed or not. Raises what it raises."""
        tick, now = self._ticks[name], self._store.at.valid
        if tick.last is not None and timedelta(0) <= now - tick.last < tick.every:
            return False
        tick.last = now
        tick.work()
        return True


def usual(
    store: GraphStore,
    *,
    observer: Observer | None = None,
    sources: Iterable[SyncSource] = (),
    souls: Iterable[Path] = (),
) -> Ticking:
    """What a served store does: `lifecycle` once a day, the observer's queues every minute, services every ten, the files an agent lives by every minute."""
    watching = observer or Observer(store)
    ticks: list[tuple[str, Callable[[], Any], timedelta]] = [
        ("lifecycle", lambda: lifecycle.run(store), DAY),
        ("observer", watching.tick, MINUTE),
        ("accesses", store.flush_accesses, 15 * MINUTE),
    ]
    for source in sources:
        sync = Sync(store, source)
        ticks.append((f"sync {source.name}", lambda sync=sync: _synced(sync), MINUTE))  # type: ignore[misc]
    for soul in souls:
        indexer = SoulFileIndexer(store)
        ticks.append((f"soul {soul}", lambda indexer=indexer, soul=soul: indexer.index(soul), MINUTE))  # type: ignore[misc]
    return Ticking(store, ticks)


def _synced(sync: Sync) -> None:
    done = sync.tick()
    if done is not None and done.error:
        raise RuntimeError(done.error)
