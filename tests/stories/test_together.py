"""Two agents, a notebook, a shell and commands open one folder, which a server serves to a client: all have one memory."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import graphstore

pytest.importorskip("mcp")
from graphstore import GraphStore
from tests.mcp.test_transport import ROOT, stdio
from tests.support.agent import Agent, agent
from tests.support.served import serve_in_process

pytestmark = pytest.mark.rest


class Everyone(NamedTuple):
    """Who is at one file at once."""

    path: Path
    ana: Agent
    bob: Agent
    notebook: GraphStore


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    path = tmp_path_factory.mktemp("together") / "team.gs"
    with (
        serve_in_process(path),
        agent(stdio(path), "ana") as ana,
        agent(stdio(path), "bob") as bob,
        graphstore.open(path) as notebook,
    ):
        ana.ask(
            "remember",
            statement="We deploy on Tuesdays.",
            id="deploy-tue",
            key="deploy_day",
            valid_from="2026-01-01",
        )
        yield Everyone(path, ana, bob, notebook)  # fmt: skip
    assert graphstore.verify(path).ok


def command(*words: object, typed: str = "") -> str:
    """What a command of its own process says."""
    done = subprocess.run(
        [sys.executable, "-m", "graphstore", *map(str, words)], input=typed, capture_output=True, text=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_what_one_says_all_others_know_at_once(everyone):
    path, ana, bob, notebook = everyone
    bob.ask("remember", statement="We deploy on Fridays.", id="deploy-fri", key="deploy_day", valid_from="2026-02-01", reason="new team")  # fmt: skip

    found = ana.ask("what_superseded", id_or_text="deploy-tue")
    assert [("deploy-fri", "bob", "new team")] == [
        (step["id"], step["who"], step["reason"]) for step in found["chain"]
    ]
    assert found["chain"][0]["link"] == notebook.what_superseded("deploy-tue").chain[0].link.id
    assert "superseded by deploy-fri" in command("superseded", path, "deploy-tue")
    typed = "MATCH (new:Node)-[:SUPERSEDES]->(old:Absent)\nRETURN new.id, old.id;\n:superseded deploy-tue\n"
    told = command("shell", path, "--mode", "csv", typed=typed)
    assert "deploy-fri,deploy-tue" in told
    assert "new team" in told


def test_what_a_notebook_and_a_command_write_is_known_to_agents(everyone):
    path, ana, bob, notebook = everyone
    with notebook.transaction(author="notebook"):
        notebook.add_node("fact", {"says": "the build takes nine minutes"}, id="build")
    command("link", path, "build", "related_to", "deploy-tue", "--reason", "slow days")
    command("revise", path, "build", '{"says": "the build takes seven minutes"}', "--reason", "a cache")

    assert "the build takes seven minutes" == ana.ask("get", id="build")["thing"]["statement"]
    assert "slow days" == bob.ask("get", id="build")["links"][0]["reason"]
    assert ["notebook", None] == [each.get("who") for each in bob.ask("why", id="build")["said"]][:2]


def test_all_writing_at_once_nothing_is_lost(everyone):
    path, ana, bob, notebook = everyone

    def tells(who: Agent, name: str) -> None:
        for number in range(15):
            who.ask("record_event", type="note", description=f"{name} {number}", id=f"{name}-{number}")

    def notes() -> None:
        for number in range(15):
            notebook.record_event("note", f"notebook {number}", id=f"notebook-{number}", agent="notebook")

    with ThreadPoolExecutor() as pool:
        done = [
            pool.submit(tells, ana, "ana"),
            pool.submit(tells, bob, "bob"),
            pool.submit(notes),
            pool.submit(command, "event", path, "note", "by a command", "--id", "command-0"),
        ]
        for each in done:
            each.result(60)

    assert {"ana": 15, "bob": 15, "notebook": 15, "command": 1} == Counter(
        event.id.partition("-")[0] for event in notebook.events()
    )
    assert {("ana", "ana"), ("bob", "bob")} == {
        (id.partition("-")[0], ana.ask("why", id=id)["said"][0]["who"]) for id in ("ana-3", "bob-3")
    }
