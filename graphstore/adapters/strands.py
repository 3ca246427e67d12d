"""A `SessionRepository` of Strands Agents, kept in a store: sessions, agents and messages are nodes, a changed state is a version."""

from __future__ import annotations

from typing import Any

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from graphstore.adapters import places
from graphstore.store.store import Store
from graphstore.values.models import Node

__all__ = ["StoreSessions"]

SESSION, AGENT, MESSAGE, TEAM = "agent_session", "agent_state", "agent_message", "agent_team"
_SOURCE = "strands:"


class StoreSessions(places.AtCoordinate, SessionRepository):
    """The sessions of agents, for `RepositorySessionManager(id, session_repository=…)`.

    The nodes of a session have its id as the last part of their scope, below `scope`. Raises SessionException for what is there already, or is missing.
    """

    _read_only = "sessions at a coordinate are read only. Ask the repository itself."

    def __init__(self, store: Store, *, scope: str = "") -> None:
        self._use(store)
        self._scope = scope

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Record a new session."""
        if self.read_session(session.session_id) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        self._put(
            SESSION, session.session_id, (), {**session.to_dict(), "session_type": session.session_type.value}
        )
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """Return a session; None if there is none."""
        found = self._found(SESSION, session_id)
        return None if found is None else Session.from_dict(found)

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Record the state of an agent."""
        self._put(AGENT, session_id, (session_agent.agent_id,), session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """Return the state of an agent; None if there is none."""
        found = self._found(AGENT, session_id, agent_id)
        return None if found is None else SessionAgent.from_dict(found)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Record another state of an agent."""
        self._update(AGENT, session_id, (session_agent.agent_id,), session_agent)

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Record a message of an agent."""
        self._put(MESSAGE, session_id, (agent_id, str(session_message.message_id)), session_message.to_dict())

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        """Return a message by its number; None if there is none."""
        found = self._found(MESSAGE, session_id, agent_id, str(message_id))
        return None if found is None else SessionMessage.from_dict(found)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Record another text of a message, such as a redacted one."""
        self._update(MESSAGE, session_id, (agent_id, str(session_message.message_id)), session_message)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """Return the messages of an agent in their order."""
        if self._found(AGENT, session_id, agent_id) is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        beginning = self._id(MESSAGE, session_id, agent_id, "")
        nodes = self._reader.nodes(MESSAGE, scope=places.below(self._scope, session_id))
        messages = [
            SessionMessage.from_dict(_content(each)) for each in nodes if each.id.startswith(beginning)
        ]
        messages.sort(key=lambda each: each.message_id)
        return messages[offset : None if limit is None else offset + limit]

    def create_multi_agent(self, session_id: str, multi_agent: Any, **kwargs: Any) -> None:
        """Record the state of a team of agents."""
        self._put(TEAM, session_id, (multi_agent.id,), multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """Return the state of a team; None if there is none."""
        return self._found(TEAM, session_id, multi_agent_id)

    def update_multi_agent(self, session_id: str, multi_agent_state: dict[str, Any], **kwargs: Any) -> None:
        """Record another state of a team."""
        id = str(multi_agent_state.get("id"))
        if self._found(TEAM, session_id, id) is None:
            raise SessionException(f"MultiAgent state {id} in session {session_id} does not exist")
        self._put(TEAM, session_id, (id,), multi_agent_state)

    def _id(self, kind: str, session: str, *path: str) -> str:
        return f"{_SOURCE}{places.below(self._scope, session)}/{places.joined((kind, *path))}"

    def _found(self, kind: str, session: str, *path: str) -> dict[str, Any] | None:
        node = places.found(self._reader, self._id(kind, session, *path), kind)
        return None if node is None else _content(node)

    def _update(
        self, kind: str, session: str, path: tuple[str, ...], state: SessionAgent | SessionMessage
    ) -> None:
        before = self._found(kind, session, *path)
        if before is None:
            raise SessionException(f"{kind} {'/'.join(path)} in session {session} does not exist")
        state.created_at = before["created_at"]
        self._put(kind, session, path, state.to_dict())

    def _put(self, kind: str, session: str, path: tuple[str, ...], content: dict[str, Any]) -> None:
        id, scope = self._id(kind, session, *path), places.below(self._scope, session)
        places.put(self._writable, id, kind, content, scope=scope, source=_SOURCE + session)


def _content(node: Node) -> dict[str, Any]:
    return dict(node.content)
