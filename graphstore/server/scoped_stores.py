"""The stores that tokens with scopes see: for each set of scopes a view of the store that is served, with a door of its own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphstore.server.scoped_writes import ScopedWrites
from graphstore.store.scoped_store import ScopedStore
from graphstore.store.store import GraphStore

if TYPE_CHECKING:
    from graphstore.server.dispatch import Calling

Door = TypeVar("Door", bound=Any)


class ScopedStores(Generic[Door]):
    """The doors to those stores, by their scopes; `made` gives the door to one, `main` what answers for the whole store."""

    def __init__(
        self,
        store: GraphStore,
        main: Callable[[], Calling],
        made: Callable[[GraphStore, tuple[str, ...]], Door],
    ) -> None:
        self._store, self._main, self._made = store, main, made
        self._open: dict[tuple[str, ...], Door] = {}
        self._turns: defaultdict[tuple[str, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._stack = AsyncExitStack()

    def doors(self) -> list[Door]:
        """Those that are open."""
        return list(self._open.values())

    async def door(self, scopes: tuple[str, ...]) -> Door:
        """Return the application for what these scopes hold."""
        scopes = tuple(sorted(set(scopes)))
        async with self._turns[scopes]:
            if scopes not in self._open:
                store = await asyncio.to_thread(ScopedStore, self._store, scopes)
                self._stack.callback(store.close)
                self._open[scopes] = await self._begun(self._made(store, scopes), store, scopes)
            return self._open[scopes]

    async def _begun(self, door: Door, store: ScopedStore, scopes: tuple[str, ...]) -> Door:
        await self._stack.enter_async_context(door.open())
        door.calling.scoped = ScopedWrites(self._main(), store, scopes)
        self._main().followers.append(door.calling.news)
        if door.agents is not None:
            self._stack.callback(asyncio.ensure_future(door.agents.run()).cancel)
        return door

    async def close(self) -> None:
        """Close them."""
        self._open.clear()
        await self._stack.aclose()
