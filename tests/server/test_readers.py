"""Whose answers contained what was invalidated later, at a real server: tokens, scopes, agents that return."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore.ledger import tokens
from tests.support.served import Wire, serve_in_process

pytestmark = pytest.mark.rest


def until(found: Callable[[], Any]) -> Any:
    """What is found, as soon as anything is: a batch is written within a second."""
    for _ in range(100):
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("nothing was recorded")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "s.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "the office is in Berlin"}, id="office")
        store.add_node("fact", {"says": "the team meets in Berlin"}, id="meeting", derived_from=["office"])
        store.add_node("fact", {"says": "a budget"}, id="team/a/budget", scope="team/a")
        store.add_node("fact", {"says": "a plan"}, id="team/b/plan", scope="team/b")
    return place


def test_every_token_is_recorded_where_the_server_does_so(folder: Path) -> None:
    ben = tokens.add(folder, "ben")
    with serve_in_process(folder, "--record-reads") as (_, url):
        owner = Wire(url, (folder / "token").read_text().strip())
        assert "office" == Wire(url, ben).get("/node?id=office")["id"]
        owner.post("/query", {"cypher": "MATCH (n:Node) WHERE n.id = 'meeting' RETURN n.id AS found"})
        found = until(lambda: owner.get("/readers_of?id=office&id=meeting"))
        until(lambda: len(owner.get("/readers_of?id=office&id=meeting")) == 2)
        found = owner.get("/readers_of?id=office&id=meeting")
        assert [("meeting", "write token", "query"), ("office", "ben", "node")] == [
            (each["id"], each["agent"], each["call"]) for each in found
        ]
        owner.post("/retract", {"id": "office", "reason": "it moved"})
        tx = owner.get("/changes")[-1]["tx"]
        assert ["meeting", "office"] == sorted(each["id"] for each in owner.post("/readers_of", {"tx": tx}))
    with graphstore.open(folder) as store:
        assert ["ben"] == [each.agent for each in store.readers_of("office")]


def test_only_tokens_that_were_made_so_are_recorded(folder: Path) -> None:
    ben, eve = tokens.add(folder, "ben", record_reads=True), tokens.add(folder, "eve")
    with serve_in_process(folder) as (process, url):
        Wire(url, eve).get("/node?id=office")
        Wire(url, ben).get("/node?id=office")
        process.terminate()
        process.wait(30)
    with graphstore.open(folder) as store:
        assert ["ben"] == [each.agent for each in store.readers_of("office")]
        assert [] == store.readers_of("meeting")


def test_a_token_with_scopes_sees_readings_of_its_scopes_by_its_scopes(folder: Path) -> None:
    a = tokens.add(folder, "ana", scopes=("team/a",), rights="write", record_reads=True)
    ben = tokens.add(folder, "ben", record_reads=True)
    with serve_in_process(folder) as (_, url):
        owner, ana = Wire(url, (folder / "token").read_text().strip()), Wire(url, a)
        for one in (ana, Wire(url, ben)):
            assert "team/a/budget" == one.get("/node?id=team/a/budget")["id"]
        until(lambda: len(owner.get("/readers_of?id=team/a/budget")) == 2)
        assert ["ana"] == [each["agent"] for each in ana.get("/readers_of?id=team/a/budget")]
        assert 404 == ana.ask("GET", "/readers_of?id=team/b/plan")[0]


def test_a_write_names_in_a_header_whose_answers_no_longer_hold(folder: Path) -> None:
    ben = tokens.add(folder, "ben", record_reads=True)
    with serve_in_process(folder) as (_, url):
        owner = Wire(url, (folder / "token").read_text().strip())
        _, _, headers = owner.ask("POST", "/confirm", {"id": "office", "reason": "checked"})
        assert "graphstore-readers" not in headers
        for id in ("office", "meeting"):
            Wire(url, ben).get(f"/node?id={id}")
        until(lambda: len(owner.get("/readers_of?id=office&id=meeting")) == 2)
        _, _, headers = owner.ask("POST", "/revise", {"id": "office", "content": {"says": "in Rome"}})
        assert {"ben": ["meeting", "office"]} == {
            agent: sorted(ids) for agent, ids in orjson.loads(headers["graphstore-readers"]).items()
        }
        _, _, headers = owner.ask("POST", "/confirm", {"id": "office", "reason": "checked"})
        assert "graphstore-readers" not in headers
        with graphstore.open(url, token=(folder / "token").read_text().strip()) as remote:
            assert {"ben"} == {each.agent for each in remote.readers_of("office")}


def test_agents_behind_a_server_are_known_by_their_tokens(folder: Path) -> None:
    httpx2 = pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client

    from tests.support.agent import Agent, agent

    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write", record_reads=True)
    ben = tokens.add(folder, "ben", rights="write", record_reads=True)

    def connected(url: str, token: str) -> AbstractContextManager[Agent]:
        shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        return agent(streamable_http_client(f"{url}/mcp", http_client=shown), "somebody")

    def contents(one: Agent, id: str) -> list[str]:
        return [each.text for each in one.call("get", id=id).content]

    with serve_in_process(folder) as (_, url):
        owner = Wire(url, (folder / "token").read_text().strip())
        with connected(url, ana) as one:
            one.ask("get", id="team/a/budget")
            assert ["ana"] == [each["agent"] for each in one.ask("why", id="team/a/budget")["readers"]]
        with connected(url, ben) as one:
            one.ask("get", id="team/a/budget")
            one.ask("get", id="office")
        owner.post("/retract", {"id": "office", "reason": "never so"})
        with connected(url, ben) as one:
            found = one.ask("retract", id="team/a/budget", reason="cut")
            assert {"ana", "ben"} == {each["agent"] for each in found["readers"]}
        with connected(url, ana) as one:
            first, _ = contents(one, "team/a/budget")
            assert "'team/a/budget'" in first and "office" not in first
        with connected(url, ana) as one:
            assert 1 == len(contents(one, "team/a/budget"))
        assert [] == [each for each in owner.get("/readers_of?id=office") if each["agent"] == "somebody"]
