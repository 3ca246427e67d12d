"""Agents give times as people say them, and every answer says at which coordinate it was given."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytest.importorskip("mcp")

from graphstore import mcp
from graphstore.mcp.sdk import CLIENT, Client
from graphstore.mcp.tooling import reported
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def one(store: GraphStore, clock: Clock) -> Iterator[Agent]:
    """An agent of a store with a limit since last November, recorded this morning."""
    clock.set("2026-03-18T08:00:00Z")
    store.add_node(
        "fact", {"says": "The rate limit is 100 requests per minute"}, id="limit", valid_from="2025-11-26"
    )
    clock.set("2026-03-18T12:00:00Z")
    with agent(mcp.server(store, tools=["all"])) as opened:
        yield opened


@pytest.mark.parametrize("tool", ["search", "get", "timeline"])
@pytest.mark.parametrize("time", ["today", "2026-03-18", "2026-03", "2026", "this week", "now"])
def test_today_hides_nothing_that_was_recorded_today(
    one: Agent, store: GraphStore, tool: str, time: str
) -> None:
    store.add_node("fact", {"says": "The rate limit is new"}, id="new", valid_from="2026-03-18T09:00:00Z")
    asked = {"search": {"query": "rate limit new"}, "get": {"id": "new"}, "timeline": {"about": "new"}}[tool]

    for coordinate in ({"valid": time}, {"tx": time}, {"valid": time, "tx": time}):
        found = one.ask(tool, **asked, **coordinate)
        assert "The rate limit is new" in str(found)
        assert "2026-03-18T12:00:00" == found["at"]["valid"][:19]


@pytest.mark.parametrize(
    ("time", "used"),
    [
        ("26 November", "2025-11-26 23:59:59Z"), ("3 months ago", "2025-12-18 12:00Z"), ("last Friday", "2026-03-13 23:59:59Z"),
        ("2025-12", "2025-12-31 23:59:59Z"), ("26 November 2025 15:00 Europe/Berlin", "2025-11-26 14:00Z"), ("2026-03-01T00:00:00Z", "2026-03-01 00:00Z"),
    ],
)  # fmt: skip
def test_an_answer_says_the_coordinate_that_it_used(one: Agent, time: str, used: str) -> None:
    told = one.told("get", id="limit", valid=time)

    assert f"(as of {used}, as known at 2026-03-18 12:00Z)" in told
    assert one.told("get", id="limit", valid=used if " " in used else f"{used} 00:00Z") == told


def test_a_question_may_name_its_time(one: Agent) -> None:
    for asked in (
        'rate limit since:"last November"',
        'rate limit since:"6 months ago"',
        "rate limit since:2025",
    ):
        assert ["limit"] == [hit["id"] for hit in one.ask("search", query=asked)["hits"]]
    assert [] == one.ask("search", query='rate limit until:"last October"').get("hits", [])


def test_a_time_in_a_question_that_cannot_be_read_is_reported(one: Agent, store: GraphStore) -> None:
    found = one.ask("search", query="rate limit since:soonish")
    assert ["limit"] == [hit["id"] for hit in found["hits"]]
    assert found["note"].startswith(
        "since 'soonish' is no time, and there is no snapshot 'soonish': since:soonish was left out; "
    )
    assert "since:03/04/2026 was left out" in one.ask("search", query="limit since:03/04/2026")["note"]
    assert "standing:tall was left out" in one.ask("search", query="limit standing:tall")["note"]
    assert "since 'soonish' is no time" in one.refused("timeline", thread="t", about="limit since:soonish")
    for standing in ("shaky", "contested"):
        assert "since 'soonish' is no time" in one.refused(
            "search", query="limit since:soonish", standing=standing
        )


def test_a_write_takes_words_and_refuses_what_may_be_past_or_planned(one: Agent) -> None:
    since = one.ask("remember", statement="we meet at noon", valid_from="since January 2026")["thing"]
    planned = one.ask("remember", statement="we move", valid_from="in 2 days")["thing"]

    assert ("2026-01-01T00:00:00Z", "2026-03-20T12:00") == (since["valid_from"], planned["valid_from"][:16])
    told = one.refused("remember", statement="we met", valid_from="26 November")
    assert "valid_from '26 November' may mean 2025-11-26 or 2026-11-26. Give the one that is meant." in told


# ---------------------------------------------------------------- small faults


@pytest.mark.parametrize(
    "words", ["rate limit of 100 requests", "the limit of the rate", "What is the rate limit?", "limiting requests"]
)  # fmt: skip
def test_words_that_a_search_leaves_out_name_nothing(one: Agent, store: GraphStore, words: str) -> None:
    store.add_node("fact", {"says": "The upload limit is 5 files"}, id="upload")
    store.add_node(
        "fact", {"says": "The rate limit is 300 requests per minute"}, id="raised", supersedes="limit"
    )

    found = one.ask("what_superseded", id_or_text=words)
    assert ["raised"] == [thing["id"] for thing in found["current"]] or "raised" in str(found["candidates"])
    if "100" in words:
        assert "limit" == found["subject"]["id"]


def test_history_shows_the_field_that_an_amendment_changed(one: Agent, store: GraphStore) -> None:
    store.add_node(
        "fact",
        {"says": "Ana leads the team", "team": "red", "since": 2024},
        id="ana",
        valid_from="2026-01-01",
    )
    store.amend("ana", {"team": "blue"}, valid_from="2026-02-01")
    store.revise("ana", {"says": "Ana leads it", "team": "blue", "room": 5}, valid_from="2026-03-01")

    rows = one.ask("history", id="ana")["versions"]
    assert [(1, None), (1, None), (2, "team: red → blue"), (2, "team: red → blue"), (3, "since: 2024 removed; room: 5 added")] == [
        (row["number"], row.get("changed")) for row in sorted(rows, key=lambda row: row["number"])
    ]  # fmt: skip
    assert "ana-v2 Ana leads the team [team: red → blue] (2026-02-01" in one.told("history", id="ana")


def test_a_correction_reports_what_it_closed(one: Agent) -> None:
    done = one.ask(
        "remember", statement="The rate limit is 10 requests", corrects=["limit"], valid_from="2025-11-26"
    )
    assert [("limit", "retracted")] == [(thing["id"], thing["standing"]) for thing in done["closed"]]
    many = one.ask(
        "remember_many", statements=[{"statement": "It is 20 requests", "corrects": [done["thing"]["id"]]}]
    )
    assert [done["thing"]["id"]] == [thing["id"] for thing in many["closed"]]


def test_an_amendment_from_before_the_start_is_refused(one: Agent) -> None:
    told = one.refused("amend", id="limit", fields={"unit": "minute"}, valid_from="2025-01-01")
    assert (
        "'limit' begins 2025-11-26, after valid_from 2025-01-01, and amend changes only what is there."
        in told
    )
    for whole in ({}, {"valid_from": "beginning"}, {"valid_from": "2025-11-26"}):
        one.ask("amend", id="limit", fields={"unit": f"minute {whole}"}, **whole)


@pytest.mark.rest
def test_every_call_reports_progress_to_a_client_that_asked() -> None:
    class Told(Client):
        told: list[tuple[float, str]]

        async def report_progress(self, seconds: float, message: str) -> None:
            self.told.append((seconds, message))

    async def slow() -> str:
        from anyio import to_thread

        await to_thread.run_sync(time.sleep, 2.3)
        return "done"

    async def fails() -> None:
        raise ValueError("as it is")

    async def asked() -> Any:
        CLIENT.set(client := Told())
        client.told = []
        found = await reported(slow)
        with pytest.raises(ValueError, match="as it is"):
            await reported(fails)
        return found, client.told

    found, told = asyncio.run(asked())
    assert "done" == found
    assert [(1.0, "running for 1.0 s"), (2.0, "running for 2.0 s")] == told
