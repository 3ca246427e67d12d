"""A memory of Google's ADK on a store finds what the one that ADK ships finds, and keeps what was deleted readable. Run by `make frameworks`."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

pytest.importorskip("google.adk", reason="the package google-adk is not installed")

from google.adk.agents import Agent
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory
from google.genai.types import Content, FunctionCall, Part

from graphstore import InvalidError
from graphstore.adapters.google_adk import StoreMemoryService

pytestmark = pytest.mark.served
ANA, BEN = {"app_name": "travel", "user_id": "ana"}, {"app_name": "travel", "user_id": "ben"}


def content(text):
    return Content(role="user", parts=[Part(text=text)])


def session(id, *texts, at, user="ana"):
    events = [
        Event(id=f"{id}-{text}", author="user", content=content(text), timestamp=at.timestamp())
        for text in texts
    ]
    return Session(id=id, app_name="travel", user_id=user, events=events)


async def found(memory, query, whose=ANA):
    answer = await memory.search_memory(**whose, query=query)
    return [each.content.parts[0].text for each in answer.memories]


def test_it_finds_what_the_memory_that_adk_ships_finds(store, clock):
    ours, theirs = StoreMemoryService(store), InMemoryMemoryService()
    said = [
        session("s1", "the aisle seat was loud", "book Lisbon in May", "a/b: the gate", at=clock.now),
        session("s2", "Lisbon was sunny", "", at=clock.now),
        session("s/3", "Ben loves Lisbon", at=clock.now, user="ben"),
    ]

    async def story():
        for each in [*said, said[0]]:
            for memory in (ours, theirs):
                await memory.add_session_to_memory(each)
        for whose in (ANA, BEN, {**ANA, "app_name": "other"}):
            for query in ("Lisbon", "gate", "seat loud", "nothing", "gate:seat", " "):
                assert sorted(await found(ours, query, whose)) == sorted(await found(theirs, query, whose)), (
                    query
                )
        said[0].events.pop(1)
        more = Event(
            id="more", author="user", content=content("Lisbon again"), timestamp=clock.now.timestamp()
        )
        for memory in (ours, theirs):
            await memory.add_session_to_memory(said[0])
            for _ in range(2):
                await memory.add_events_to_memory(**ANA, events=[more], session_id="s2")
                await memory.add_events_to_memory(**ANA, events=[more])
        assert sorted(await found(ours, "Lisbon")) == sorted(await found(theirs, "Lisbon"))

    asyncio.run(story())


def test_a_memory_is_added_changed_and_deleted_by_its_id_and_the_past_stays(store, clock):
    memory = StoreMemoryService(store, scope="team")
    seat = MemoryEntry(id="seat-v1", content=content("a window seat"), custom_metadata={"n": 1}, author="ana")

    async def story():
        await memory.add_memory(**ANA, memories=[seat], custom_metadata={"app": "x", "n": 9})
        await memory.add_memory(**ANA, memories=[MemoryEntry(content=content("no window open, please"))])
        [first] = (await memory.search_memory(**ANA, query="seat")).memories
        assert (first.id, first.author, first.custom_metadata) == ("seat-v1", "ana", {"app": "x", "n": 1})
        before = clock.now
        clock.move(days=1)
        await memory.add_memory(
            **ANA, memories=[seat.model_copy(update={"content": content("an aisle seat")})]
        )
        assert await found(memory, "seat") == ["an aisle seat"]
        await memory.delete_memory(**BEN, memory_id="seat-v1")
        await memory.delete_memory(**ANA, memory_id="unknown")
        assert await found(memory, "seat") == ["an aisle seat"]
        await memory.delete_memory(**ANA, memory_id="seat-v1")
        assert await found(memory, "seat") == []
        await memory.delete_memories(**ANA)
        assert await found(memory, "window") == []
        clock.move(days=1)
        past = memory.as_of(valid=before)
        assert await found(past, "seat") == ["a window seat"]
        with pytest.raises(InvalidError, match="read only"):
            await past.delete_memories(**ANA)

    asyncio.run(story())
    assert {node.scope for node in store.as_of(tx=clock.now - timedelta(hours=36)).nodes()} == {
        "team/travel/ana"
    }


def test_a_deleted_event_does_not_come_back_with_its_session(store, clock):
    memory = StoreMemoryService(store)
    said = session("s/1", "the code is 1234", "the door is red", at=clock.now - timedelta(days=2))

    async def story():
        await memory.add_session_to_memory(said)
        [secret] = (await memory.search_memory(**ANA, query="code")).memories
        clock.move(days=1)
        await memory.delete_memory(**ANA, memory_id=secret.id)
        await memory.add_session_to_memory(said)
        assert (await found(memory, "code"), await found(memory, "door")) == ([], ["the door is red"])
        assert await found(memory.as_of(valid=clock.now - timedelta(days=4)), "door") == []
        with pytest.raises(InvalidError, match="ISO 8601"):
            await memory.add_memory(**ANA, memories=[MemoryEntry(content=content("x"), timestamp="someday")])

    asyncio.run(story())


class Recalling(BaseLlm):
    """Asks its memory for a seat, and repeats the answer."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            call = FunctionCall(name="load_memory", args={"query": "seat"})
            yield LlmResponse(content=Content(role="model", parts=[Part(function_call=call)]))
        else:
            yield LlmResponse(
                content=Content(role="model", parts=[Part(text=str(last.function_response.response))])
            )


def test_an_agent_recalls_what_was_said_in_another_session(store, clock):
    memory, sessions = StoreMemoryService(store), InMemorySessionService()
    agent = Agent(name="helper", model=Recalling(model="recalling"), tools=[load_memory])

    async def story():
        await memory.add_session_to_memory(session("s1", "she likes a window seat", at=clock.now))
        runner = Runner(app_name="travel", agent=agent, session_service=sessions, memory_service=memory)
        await sessions.create_session(**ANA, session_id="s2")
        said = [
            event.content.parts[0].text
            async for event in runner.run_async(user_id="ana", session_id="s2", new_message=content("which?"))
        ]
        return said[-1]

    assert "she likes a window seat" in asyncio.run(story())
