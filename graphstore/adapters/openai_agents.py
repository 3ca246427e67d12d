"""A `Session` of the OpenAI Agents SDK, kept in a store: each item of the conversation is a node at its position, what is popped has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from agents.memory import SessionABC, SessionSettings

from graphstore.adapters import places
from graphstore.store.store import Store
from graphstore.values.models import Node

__all__ = ["AgentSession"]

KIND = "session_item"
_SOURCE = "openai-agents:"


class AgentSession(places.AtCoordinate, SessionABC):
    """The history of one conversation, for `Runner.run(agent, input, session=…)`.

    Its nodes have the session's id as the last part of their scope, below `scope`. Adding is one transaction; another item at the position of one that
    was popped is a version of it.
    """

    _read_only = "a conversation at a coordinate is read only. Ask the session itself."

    def __init__(
        self,
        session_id: str,
        store: Store,
        *,
        scope: str = "",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings().resolve(session_settings)
        self._scope = places.below(scope, session_id)
        self._use(store)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in their order; with a `limit` (or that of the session's settings) the last so many, with a negative one all."""
        most = self.session_settings.limit if limit is None else limit
        items = [node.content for node in await asyncio.to_thread(self._items)]
        return items if most is None or most < 0 else items[max(0, len(items) - most) :]

    async def add_items(self, items: Iterable[Any]) -> None:
        """Say these behind what was said, all or none."""
        await asyncio.to_thread(self._add, list(items))

    async def pop_item(self) -> Any:
        """End the last item and give it; None where there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """End all items."""
        await asyncio.to_thread(self._clear)

    def _items(self) -> list[Node]:
        found = [node for node in self._reader.nodes(KIND, scope=self._scope) if node.id.startswith(_SOURCE)]
        return sorted(found, key=lambda node: int(node.id.rpartition("/")[2]))

    def _add(self, items: list[Any]) -> None:
        store = self._writable
        if items:
            with store.transaction():
                for number, item in enumerate(items, len(self._items())):
                    id = f"{_SOURCE}{self._scope}/{number}"
                    places.put(store, id, KIND, item, scope=self._scope, source=_SOURCE + self.session_id)

    def _pop(self) -> Any:
        store = self._writable
        with store.transaction():
            items = self._items()
            if not items:
                return None
            places.remove(store, items[-1], "popped")
            return items[-1].content

    def _clear(self) -> None:
        store = self._writable
        with store.transaction():
            for node in self._items():
                places.remove(store, node, "cleared")
