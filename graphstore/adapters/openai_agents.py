"""A `Session` of the OpenAI Agents SDK, kept in a store: each item of the conversation is a node at its position, what is popped has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from agents.memory import SessionABC, SessionSettings

from graphstore.adapters import places
from graphstore.errors import InvalidError
from graphstore.store.store import Store
from graphstore.values.models import Node
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader

__all__ = ["AgentSession"]

KIND = "session_item"
_SOURCE = "openai-agents:"


class AgentSession(SessionABC):
    """The history of one conversation, for `Runner.run(agent, input, session=…)`.

    Its nodes have the session's id as the last part of their scope, below `scope`. Adding is one transaction; another item at the position of one that
    was popped is a version of it.
    """

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
        self._above = scope
        self._scope = "/".join(filter(None, (scope, places.joined((session_id,)))))
        self._store: Store | None = store
        self._reader: Reader = store

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> AgentSession:
        """The conversation at another coordinate, to be read only: what writes raises InvalidError there."""
        past = AgentSession(
            self.session_id, self._writable, scope=self._above, session_settings=self.session_settings
        )
        past._reader, past._store = self._writable.as_of(valid=valid, tx=tx), None
        return past

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

    @property
    def _writable(self) -> Store:
        if self._store is None:
            raise InvalidError("a conversation at a coordinate is read only. Ask the session itself.")
        return self._store

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
