"""A session of the OpenAI Agents SDK on a store answers as the SDK's own in SQLite does, and keeps what was popped."""

from __future__ import annotations

import asyncio
import random

import pytest

agents = pytest.importorskip("agents", reason="the package openai-agents is not installed")

from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: E402

from graphstore import InvalidError  # noqa: E402
from graphstore.adapters.openai_agents import AgentSession  # noqa: E402

pytestmark = pytest.mark.served


def said(text):
    return {"role": "user", "content": text}


def test_it_answers_as_the_session_in_sqlite_that_the_sdk_ships(store):
    chance = random.Random(5)
    ours, theirs = AgentSession("a/b", store), agents.SQLiteSession("a/b")
    beside = AgentSession("a", store)

    async def story():
        await beside.add_items([said("beside")])
        for turn in range(80):
            match chance.randrange(5):
                case 0 | 1:
                    items = [said(f"{turn}-{n}") for n in range(chance.randrange(4))]
                    answers = [await each.add_items(items) for each in (ours, theirs)]
                case 2:
                    answers = [await each.pop_item() for each in (ours, theirs)]
                case 3:
                    limit = chance.choice([None, -1, 0, 1, 3, 99])
                    answers = [await each.get_items(limit) for each in (ours, theirs)]
                case _ if turn % 20 == 0:
                    answers = [await each.clear_session() for each in (ours, theirs)]
                case _:
                    answers = [await each.get_items() for each in (ours, theirs)]
            assert answers[0] == answers[1], turn
        assert await beside.get_items() == [said("beside")]

    asyncio.run(story())


def test_the_settings_limit_what_is_read_and_the_past_stays_readable(store, clock):
    session = AgentSession("s", store, scope="team", session_settings=agents.SessionSettings(limit=2))

    async def story():
        await session.add_items([said("1"), said("2"), said("3")])
        before = clock.now
        clock.move(days=1)
        assert await session.pop_item() == said("3")
        await session.add_items([said("4")])
        past = session.as_of(valid=before)
        with pytest.raises(InvalidError, match="read only"):
            await past.clear_session()
        return await session.get_items(), await past.get_items(3)

    now, then = asyncio.run(story())

    assert now == [said("2"), said("4")]
    assert then == [said("1"), said("2"), said("3")]
    assert {node.scope for node in store.nodes("session_item")} == {"team/s"}


class Parrot(agents.Model):
    """Says how many items it was given."""

    async def get_response(self, system_instructions, input, *_, **__):
        text = ResponseOutputText(annotations=[], text=f"{len(input)} items", type="output_text")
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return agents.ModelResponse(output=[message], usage=agents.Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


def test_a_runner_goes_on_with_what_was_said(store):
    agent = agents.Agent(name="parrot", model=Parrot())
    quiet = agents.RunConfig(tracing_disabled=True)

    async def story():
        session = AgentSession("s", store)
        await agents.Runner.run(agent, "hello", session=session, run_config=quiet)
        return await agents.Runner.run(agent, "and now", session=AgentSession("s", store), run_config=quiet)

    assert asyncio.run(story()).final_output == "3 items"
    assert len(store.nodes("session_item")) == 4
