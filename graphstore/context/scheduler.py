"""Run the periodic work of a store that is open for long: memory eviction once a day, compression of messages, and re-reading of files and services.

Each tick is timed by the store's clock. Nothing here sleeps or starts a thread: the owner of the store calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from graphstore.context.feeders import SoulFileIndexer, Sync, SyncSource, tick_shared
from graphstore.context.observer import Observer
from graphstore.errors import InvalidError
from graphstore.events import recorder
from graphstore.memory import lifecycle
from graphstore.values.models import Value

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

DAY, MINUTE, INDEXING = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=30)


class TwoHalves(NamedTuple):
    """Work in two halves: `ask` may take long and writes nothing; `write` writes its result."""

    ask: Callable[[], Any]
    write: Callable[[Any], Any]

    def __call__(self) -> Any:
        """Run both halves, one after the other."""
        return self.write(self.ask())


Work = Callable[[], Any] | TwoHalves


@dataclass(slots=True)
class _Tick:
    work: Work
    every: timedelta
    last: datetime | None = None
    ended: datetime | None = None
    """The end of the last run that succeeded."""
    failures: int = 0
    error: str | None = None


class TickState(Value):
    """How a tick is: when it was begun last and is due next, when it went well last, how often in a row it failed, and with what last."""

    name: str
    every: timedelta
    last: datetime | None
    next: datetime | None
    ended: datetime | None
    failures: int
    error: str | None


class Ticking:
    """Holds the ticks of a store by name."""

    def __init__(self, store: GraphStore, ticks: Iterable[tuple[str, Work, timedelta]] = ()) -> None:
        self._store = store
        self._ticks = {name: _Tick(work, every) for name, work, every in ticks}
        _OF_STORES[store] = self

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the ticks."""
        return tuple(self._ticks)

    def do(self, name: str) -> bool:
        """Run a tick if it is due: at once, and then each time `every` has passed since the last start, failed or not. Raises what it raises."""
        if not self.begin(name):
            return False
        self.finish(name, self._ticks[name].work)
        return True

    def begin(self, name: str) -> bool:
        """Start a tick if it is due, and return True then. The caller continues with `ask` and `finish`."""
        tick, now = self._ticks[name], self._store.at.valid
        if tick.last is not None and timedelta(0) <= now - tick.last < tick.every:
            return False
        tick.last = now
        return True

    def ask(self, name: str) -> Work:
        """Run the half of a tick that writes nothing, if it has one. Return the remaining work. Raises what it raises."""
        tick = self._ticks[name]
        if not isinstance(tick.work, TwoHalves):
            return tick.work
        with self._failing(tick):
            return partial(tick.work.write, tick.work.ask())

    def finish(self, name: str, work: Work) -> None:
        """Run the rest of a started tick. Raises what it raises."""
        tick = self._ticks[name]
        with self._failing(tick):
            work()
        tick.failures, tick.error, tick.ended = 0, None, self._store.at.valid

    def now(self, name: str) -> None:
        """Run a tick, due or not. Raises what it raises; InvalidError for an unknown one."""
        if name not in self._ticks:
            raise InvalidError.choice("tick", name, self._ticks)
        tick = self._ticks[name]
        tick.last = self._store.at.valid
        self.finish(name, tick.work)

    @contextmanager
    def _failing(self, tick: _Tick) -> Iterator[None]:
        """Count the failures of the block."""
        try:
            yield
        except Exception as error:
            tick.failures, tick.error = tick.failures + 1, f"{type(error).__name__}: {error}"
            raise

    def end(self) -> None:
        """Write what clients gave to the indexers, before the store is closed."""
        tick_shared(self._store, end=True)

    def states(self) -> list[TickState]:
        """Return the state of each tick."""
        return [
            TickState(
                name=name,
                every=tick.every,
                last=tick.last,
                next=None if tick.last is None else tick.last + tick.every,
                ended=tick.ended,
                failures=tick.failures,
                error=tick.error,
            )
            for name, tick in self._ticks.items()
        ]


_OF_STORES: WeakKeyDictionary[GraphStore, Ticking] = WeakKeyDictionary()


def ticks_of(store: object) -> Ticking | None:
    """Return the ticks of a store that is open in this process, if it has any."""
    return _OF_STORES.get(store) if isinstance(store, Hashable) else None  # type: ignore[call-overload, no-any-return]


def usual(
    store: GraphStore,
    *,
    observer: Observer | None = None,
    sources: Iterable[SyncSource] = (),
    souls: Iterable[Path] = (),
    more: Iterable[tuple[str, Work, timedelta]] = (),
) -> Ticking:
    """Return the ticks of a served store: memory eviction daily, accesses every 15 minutes, services every 5, the observer, events and bootstrap files every
    minute, indexers every 30 seconds; and `more`, each with its name, its work and its interval."""
    watching = observer or Observer(store)
    if watching._compress is not None:
        watching.lend()
    ticks: list[tuple[str, Work, timedelta]] = [
        ("lifecycle", lambda: lifecycle.run(store), DAY),
        ("observer", TwoHalves(watching.ask, watching.write), MINUTE),
        ("indexer", lambda: tick_shared(store), INDEXING),
        ("events", lambda: recorder.look_again(store), MINUTE),
        ("accesses", store.flush_accesses, 15 * MINUTE),
    ]
    for source in sources:
        sync = Sync(store, source)
        ticks.append((f"sync {source.name}", lambda sync=sync: _synced(sync), MINUTE))  # type: ignore[misc]
    for soul in souls:
        indexer = SoulFileIndexer(store)
        ticks.append((f"soul {soul}", lambda indexer=indexer, soul=soul: indexer.index(soul), MINUTE))  # type: ignore[misc]
    return Ticking(store, [*ticks, *more])


def _synced(sync: Sync) -> None:
    done = sync.tick()
    if done is not None and done.error:
        raise RuntimeError(done.error)
