"""Sessions of Strands Agents on a store are those that Strands keeps in files, and their past stays readable. Run by `make frameworks`."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("strands", reason="the package strands-agents is not installed")

from strands import Agent
from strands.models import Model
from strands.session import FileSessionManager, RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from graphstore import InvalidError
from graphstore.adapters.strands import StoreSessions

pytestmark = pytest.mark.served


def message(number: int, text: str, **more: Any) -> SessionMessage:
    said = {
        "role": "user",
        "content": [{"text": text}, {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}}],
    }
    return SessionMessage(
        message=said, message_id=number, created_at="2026-03-01", updated_at="2026-03-01", **more
    )


def outcome(act: Any, *given: Any, **named: Any) -> Any:
    """The answer of a method, or the class of its error."""
    try:
        return act(*given, **named)
    except SessionException as error:
        return type(error)


def test_it_answers_as_the_files_that_strands_ships(store, tmp_path):
    ours, theirs = StoreSessions(store), FileSessionManager("other", storage_dir=str(tmp_path))
    at = {"created_at": "2026-03-01", "updated_at": "2026-03-01"}
    session = Session("s-v1", SessionType.AGENT, **at)
    ana = SessionAgent("ana-v2", {"n": 1}, {"window": 3}, {"interrupt_state": {}}, **at)
    ben = SessionAgent("ben", {}, {}, {}, **at)

    def same(name: str, *given: Any, **named: Any) -> Any:
        answers = [outcome(getattr(each, name), *given, **named) for each in (ours, theirs)]
        assert answers[0] == answers[1], name
        return answers[0]

    same("read_session", "s-v1")
    same("create_session", session)
    assert same("create_session", session) is SessionException
    assert same("read_session", "s-v1").session_type == SessionType.AGENT
    assert same("list_messages", "s-v1", "ana-v2") is SessionException
    assert same("update_agent", "s-v1", ana) is SessionException
    for agent in (ana, ben):
        same("create_agent", "s-v1", agent)
    for number in (0, 2, 1, 10, 9):
        same("create_message", "s-v1", "ana-v2", message(number, f"turn {number}"))
    same("create_message", "s-v1", "ben", message(0, "ben's own"))
    same(
        "update_message",
        "s-v1",
        "ana-v2",
        message(2, "turn 2", redact_message={"role": "user", "content": [{"text": "…"}]}),
    )
    assert same("update_message", "s-v1", "ana-v2", message(7, "none")) is SessionException
    same("update_agent", "s-v1", SessionAgent("ana-v2", {"n": 2}, {}, {}, **at))
    for asked in ({}, {"limit": 2}, {"offset": 1}, {"limit": 2, "offset": 3}, {"limit": 0}):
        same("list_messages", "s-v1", "ana-v2", **asked)
    assert [each.message_id for each in same("list_messages", "s-v1", "ana-v2")] == [0, 1, 2, 9, 10]
    assert (
        same("read_message", "s-v1", "ana-v2", 0).message["content"][1]["image"]["source"]["bytes"]
        == b"\x00\xff"
    )
    for name, given in (
        ("read_agent", ("s-v1", "ana-v2")),
        ("read_agent", ("s-v1", "eve")),
        ("read_message", ("s-v1", "ben", 3)),
    ):
        same(name, *given)
    assert {node.scope for node in store.nodes()} == {"s%2Dv1"}


def test_a_team_of_agents_keeps_its_state(store):
    class Team:
        id = "team"

        def serialize_state(self) -> dict[str, Any]:
            return {"id": "team", "turn": 1}

    sessions = StoreSessions(store, scope="ours")
    assert outcome(sessions.update_multi_agent, "s", {"id": "team"}) is SessionException
    sessions.create_multi_agent("s", Team())
    sessions.update_multi_agent("s", {"id": "team", "turn": 2})
    assert sessions.read_multi_agent("s", "team") == {"id": "team", "turn": 2}
    assert sessions.read_multi_agent("s", "other") is None


class Counting(Model):
    """Says how many messages it was given."""

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"{len(messages)} messages"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def test_an_agent_goes_on_with_what_was_said_and_the_past_stays_readable(store, clock):
    def agent() -> Agent:
        manager = RepositorySessionManager("s1", session_repository=StoreSessions(store))
        return Agent(model=Counting(), agent_id="ana", session_manager=manager, callback_handler=None)

    assert "1 messages" in str(agent()("hello"))
    before = store.at.tx
    clock.move(days=1)
    assert "3 messages" in str(agent()("and now"))

    past = StoreSessions(store).as_of(valid=before)
    assert (len(past.list_messages("s1", "ana")), len(StoreSessions(store).list_messages("s1", "ana"))) == (
        2,
        4,
    )
    with pytest.raises(InvalidError, match="read only"):
        past.create_message("s1", "ana", message(9, "no"))
