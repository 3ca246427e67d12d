"""A `MemoryService` of Google's Agent Development Kit, kept in a store: what was said and what is to be remembered are nodes, searched by the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from graphstore.adapters import places
from graphstore.errors import InvalidError
from graphstore.memory.recall import recall
from graphstore.store.store import Store
from graphstore.values.models import Node

__all__ = ["StoreMemoryService"]

KIND = "memory_entry"
_SOURCE = "google-adk:"
_EVENT, _MEMORY = "event/", "memory/"
_NO_SESSION = "-"  # of events that were given without a session; no session has this id


class StoreMemoryService(places.AtCoordinate, BaseMemoryService):
    """The memory of agents, for `Runner(memory_service=…)`.

    What a user of an app said lies in the scope `APP/USER`, below `scope`. An event is valid from its time, a memory from its timestamp. What is deleted has
    ended, and is not added again with its session.

    Args:
      limit: the most memories that a search returns.
    """

    _read_only = "a memory at a coordinate is read only. Ask the service itself."

    def __init__(self, store: Store, *, scope: str = "", limit: int = 10) -> None:
        self._use(store)
        self._scope = scope
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of a session that have content. End those that are no longer in it."""
        scope = places.below(self._scope, session.app_name, session.user_id)
        await asyncio.to_thread(self._add_events, scope, session.id, session.events, whole=True)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember more events, each once by its id. `custom_metadata` is kept with them."""
        scope = places.below(self._scope, app_name, user_id)
        await asyncio.to_thread(self._add_events, scope, session_id, events, dict(custom_metadata or {}))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember entries as one transaction. One with the id of an earlier one is its next version."""
        scope = places.below(self._scope, app_name, user_id)
        await asyncio.to_thread(self._add_memories, scope, memories, dict(custom_metadata or {}))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what a user's memory has on a question, best first. The id of a memory is what `delete_memory` takes."""
        found = await asyncio.to_thread(self._found, places.below(self._scope, app_name, user_id), query)
        return SearchMemoryResponse(memories=found)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        """End one memory, by the id that it was added with or found by. Do nothing for an unknown id."""
        await asyncio.to_thread(self._delete, places.below(self._scope, app_name, user_id), memory_id)

    async def delete_memories(self, *, app_name: str, user_id: str) -> None:
        """End all memories of a user."""
        await asyncio.to_thread(self._delete, places.below(self._scope, app_name, user_id), None)

    def _nodes(self, scope: str, source: str) -> list[Node]:
        return [each for each in self._reader.nodes(KIND, scope=scope) if each.source == source]

    def _add_events(
        self,
        scope: str,
        session: str | None,
        events: Iterable[Event],
        metadata: Mapping[str, object] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        store, source = self._writable, _source(scope, session)
        said = {
            _event_id(scope, session, each): each for each in events if each.content and each.content.parts
        }
        with store.transaction(reason="google-adk"):
            standing = {node.id: node for node in self._nodes(scope, source)}
            for id, event in said.items():
                if id not in standing and not places.is_known(store, id):
                    entry = MemoryEntry(
                        content=event.content, author=event.author, custom_metadata=dict(metadata or {})
                    )
                    self._add(store, id, scope, entry, datetime.fromtimestamp(event.timestamp, UTC), source)
            for id in standing.keys() - said.keys() if whole else ():
                places.remove(store, standing[id], "not in the session any more")

    def _add_memories(
        self, scope: str, memories: Iterable[MemoryEntry], metadata: Mapping[str, object]
    ) -> None:
        store = self._writable
        with store.transaction(reason="google-adk"):
            for entry in memories:
                id = _memory_id(scope, entry.id or uuid4().hex)
                entry = entry.model_copy(update={"custom_metadata": {**metadata, **entry.custom_metadata}})
                if places.is_known(store, id):
                    places.put(store, id, KIND, _content(entry), text=_text(entry), source=_source(scope))
                else:
                    self._add(store, id, scope, entry, _instant(entry.timestamp), _source(scope))

    def _add(
        self, store: Store, id: str, scope: str, entry: MemoryEntry, at: datetime | None, source: str
    ) -> None:
        now = store.at.valid
        since = now if at is None else min(at, now)  # the clock of another machine may be ahead
        store.add_node(
            KIND, _content(entry), id=id, scope=scope, text=_text(entry), valid_from=since, source=source
        )

    def _found(self, scope: str, query: str) -> list[MemoryEntry]:
        if not query.strip():
            return []
        asked = query.replace(":", ": ")  # no filter of ours
        hits = recall(self._reader, asked, self._limit, kinds=KIND, scope=scope, hops=0).hits
        return [_entry(hit.node) for hit in hits if isinstance(hit.node, Node) and hit.node.scope == scope]

    def _delete(self, scope: str, memory: str | None) -> None:
        store = self._writable
        with store.transaction(reason="google-adk"):
            if memory is None:
                gone = [each for each in store.nodes(KIND, scope=scope) if each.id.startswith(_SOURCE)]
            else:
                ids = (_memory_id(scope, memory), f"{_SOURCE}{scope}/{memory}")
                known = (places.found(store, id, KIND) for id in ids)
                gone = [node for node in known if node is not None and node.scope == scope][:1]
            for node in gone:
                places.remove(store, node, "deleted")


def _source(scope: str, session: str | None = "") -> str:
    """Return the source of the nodes of a session; that of memories without one."""
    return f"{_SOURCE}{scope}/" + ("" if session == "" else places.joined((session or _NO_SESSION,)))


def _event_id(scope: str, session: str | None, event: Event) -> str:
    return f"{_SOURCE}{scope}/{_EVENT}{places.joined((session or _NO_SESSION, event.id))}"


def _memory_id(scope: str, id: str) -> str:
    return f"{_SOURCE}{scope}/{_MEMORY}{places.joined((id,))}"


def _content(entry: MemoryEntry) -> dict[str, Any]:
    found: dict[str, Any] = entry.model_dump(mode="json", exclude_none=True, exclude={"id"})
    return found


def _text(entry: MemoryEntry) -> str:
    return " ".join(part.text for part in entry.content.parts or () if part.text)


def _entry(node: Node) -> MemoryEntry:
    """Return the entry of a node, under the id it was added with; that of an event is a path."""
    path = node.id.removeprefix(f"{_SOURCE}{node.scope}/")
    id = places.parted(path.removeprefix(_MEMORY))[0] if path.startswith(_MEMORY) else path
    return MemoryEntry.model_validate({"timestamp": node.valid_from.isoformat(), **node.content, "id": id})


def _instant(timestamp: str | None) -> datetime | None:
    """Return the instant of a timestamp, in UTC where it names no zone. Raise InvalidError for one that is not in ISO 8601."""
    if timestamp is None:
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        raise InvalidError(
            f"timestamp {timestamp!r} is not in ISO 8601. Give it as 2026-03-01T12:00:00Z."
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
