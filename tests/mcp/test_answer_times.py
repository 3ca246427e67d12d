"""How much longer an answer takes by way of an agent's tool than from the store itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

import graphstore
from graphstore.memory import recall

mcp = pytest.importorskip("mcp")
from tests.support.agent import Agent  # noqa: E402

pytestmark = [pytest.mark.rest, pytest.mark.in_process("starts a process, and measures time")]
TRIES = 100
MOST = 0.010
"""Seconds that a tool over stdio may add to a warm answer, on a machine that has a processor for each that wants one."""

ASKED: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "get": ({"id": "fact-500"}, lambda store: store.inspect("fact-500")),
    "what_superseded": ({"id_or_text": "slot-0"}, lambda store: store.what_superseded("slot-0")),
    "history": ({"id": "slot-0"}, lambda store: store.versions("slot-0")),
    "why": ({"id": "plan"}, lambda store: (store.inspect("plan"), store.causes("plan"))),
    "trace": ({"id": "fact-0", "direction": "up"}, lambda store: store.causes("fact-0")),
    "search": (
        {"query": "pool of billing", "limit": 5},
        lambda store: recall.recall(store, "pool of billing", 5),
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("times") / "memory.gs"
    with graphstore.open(path) as store, store.transaction(author="ana"):
        for n in range(1_000):
            store.add_node("fact", {"says": f"Service {n % 9} has fact {n}."}, id=f"fact-{n}")
        for n in range(5):
            store.add_node("value", {"says": f"The pool of billing is {n}."}, id=f"slot-{n}", key="pool",
                           valid_from=f"2026-01-0{n + 1}")  # fmt: skip
        store.add_node("plan", {"says": "Larger pools."}, id="plan")
        store.link("plan", "derived_from", "slot-4")
    return path


def least(work: Callable[..., Any], *given: Any, **named: Any) -> float:
    """The seconds of a warm call: of many the tenth part that was soonest, since other processes hold some up."""
    took = []
    for _ in range(TRIES):
        begin = perf_counter()
        work(*given, **named)
        took.append(perf_counter() - begin)
    return sorted(took)[TRIES // 10]


def test_a_warm_answer_over_stdio_adds_at_most_ten_milliseconds(place):
    env = {**os.environ, "PYTHONPATH": str(Path(graphstore.__file__).parents[1])}
    started = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "graphstore", "mcp", str(place)], env=env
    )
    client = mcp.Client(started)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        agent = Agent(portal, client)
        by_tool = {tool: least(agent.ask, tool, **asked) for tool, (asked, _) in ASKED.items()}
    with graphstore.open(place, read_only=True) as store:
        itself = {tool: least(work, store) for tool, (_, work) in ASKED.items()}
    waiting = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    added = {tool: round(by_tool[tool] - itself[tool], 4) for tool in ASKED}

    assert max(added.values()) <= MOST * waiting, (added, itself, waiting)
