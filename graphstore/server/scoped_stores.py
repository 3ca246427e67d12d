"""The stores that tokens with scopes see: for each set of scopes a copy in a folder of its own, which follows the store before each answer."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphstore.core.folder.folder import Folder
from graphstore.core.folder.scoped_copy import ScopedCopy
from graphstore.errors import DamageError
from graphstore.server.beside import copy_folder
from graphstore.server.requests import Refused
from graphstore.server.scoped_writes import ScopedWrites
from graphstore.store.store import GraphStore
from graphstore.values.period import BEGINNING, Instant

if TYPE_CHECKING:
    from graphstore.server.dispatch import Calling

Door = TypeVar("Door", bound=Any)
_MOST = 64  # sets of scopes
IDLE = 600.0
"""Seconds that a copy is kept while nobody asks it."""
_FOLLOW = 0.25  # seconds between two looks for a stream


class ScopedStores(Generic[Door]):
    """The doors to those copies, by their scopes; `made` gives the door to one, `main` what answers for the whole store."""

    def __init__(
        self,
        store: GraphStore,
        main: Callable[[], Calling],
        made: Callable[[GraphStore, tuple[str, ...]], Door],
    ) -> None:
        self._store, self._main, self._made = store, main, made
        self._open: dict[tuple[str, ...], _Open[Door]] = {}
        self._turns: defaultdict[tuple[str, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._watching: asyncio.Task[None] | None = None

    def doors(self) -> list[Door]:
        """Those that are open."""
        return [each.door for each in self._open.values()]

    async def door(self, scopes: tuple[str, ...]) -> Door:
        """The door to what these scopes hold now. Raises Refused when too many sets of scopes are open."""
        scopes = _set(scopes)
        async with self._turns[scopes]:
            found = self._open.get(scopes)
            if found is None or not await asyncio.to_thread(found.follow):
                if found is not None:
                    del self._open[scopes]
                    await found.close()
                if len(self._open) >= _MOST:
                    raise Refused(503, f"{_MOST} sets of scopes are open. Make tokens of fewer.")
                fresh = await asyncio.to_thread(_copied, self._store, scopes)
                found = _Open(self._store, *fresh, self._made(fresh[1], scopes))
                await asyncio.to_thread(found.follow)
                await found.begin(self._main(), scopes)
                self._open[scopes] = found
            found.asked = monotonic()
            if self._watching is None:
                self._watching = asyncio.ensure_future(self._watch())
            return found.door

    @contextmanager
    def asking(self, scopes: tuple[str, ...]) -> Iterator[None]:
        """Within, a copy is asked: it is kept."""
        found = self._open.get(_set(scopes))
        if found is None:  # just made anew for another request
            yield
            return
        found.asking += 1
        try:
            yield
        finally:
            found.asking -= 1
            found.asked = monotonic()

    async def _watch(self) -> None:
        """Move the copies on that somebody follows the changes of, make those anew that have what was erased, and remove those that nobody asks."""
        while True:
            await asyncio.sleep(_FOLLOW)
            for scopes, each in list(self._open.items()):
                with suppress(Exception):  # the next request tells
                    async with self._turns[scopes]:
                        if each.is_idle() and self._open.get(scopes) is each:
                            del self._open[scopes]
                            await each.close()
                            continue
                        is_right = await asyncio.to_thread(each.is_of_its_store)
                    if each.door.streaming or not is_right:
                        (await self.door(scopes)).calling.news()

    async def close(self) -> None:
        """Close them, and remove the copies."""
        if self._watching is not None:
            self._watching.cancel()
        while self._open:
            await self._open.popitem()[1].close()


class _Open(Generic[Door]):
    def __init__(
        self, store: GraphStore, copy: ScopedCopy, copied: GraphStore, folder: Path, door: Door
    ) -> None:
        self._store, self._copy, self._copied, self._folder, self.door = store, copy, copied, folder, door
        self._stack = AsyncExitStack()
        self._running: asyncio.Task[None] | None = None
        self._following = threading.Lock()
        self._told: Instant = BEGINNING  # the tx up to which the copy tells that it knows the store
        self.asking, self.asked = 0, monotonic()

    def is_idle(self) -> bool:
        """Whether nobody has asked it for long."""
        return not self.asking and monotonic() - self.asked > IDLE

    async def begin(self, main: Calling, scopes: tuple[str, ...]) -> None:
        await self._stack.enter_async_context(self.door.open())
        self.door.calling.scoped = ScopedWrites(main, self._copied, self.follow, scopes)
        if self.door.agents is not None:
            self._running = asyncio.ensure_future(self.door.agents.run())

    def is_of_its_store(self) -> bool:
        """Whether it has nothing that its store has no more."""
        try:
            return self._copy.is_of_its_store()
        except (OSError, DamageError):
            return False

    def follow(self, upto: Instant | None = None) -> bool:
        """Whether the copy has all that its store has now, or had at a tx; else it must be made anew."""
        with self._following:
            try:
                if not self._copy.is_of_its_store():
                    return False
                now, known = (upto, upto) if upto is not None else self._store._coordinate()
                if self._copy.follow(known):
                    self._copied.refresh()
                if self._store._place.shared:  # its last tx would tell when something outside was written
                    known = now if known == self._store._last_tx else max(self._told, known)
                self._told = known
                self._copied._part_of(self._store, known, self._copy.crossing)
            except DamageError:
                return False
            return True

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        await self._stack.aclose()
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        self._copied.close()
        self._copy.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _set(scopes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(scopes)))


def _copied(store: GraphStore, scopes: tuple[str, ...]) -> tuple[ScopedCopy, GraphStore, Path]:
    folder = copy_folder()
    try:
        copy = ScopedCopy(store._place.fresh_journal(), folder / "store", scopes)
        copy.follow(store._coordinate()[1])
        place = Folder(folder / "store", read_only=True)
        opened = GraphStore(place, clock=store._clock, driver="kuzu", durability="commit", author=None)
        return copy, opened, folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
