"""A crew of CrewAI remembers by the tools of a store. Run by `make frameworks`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("crewai", reason="the package crewai is not installed")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.mcp import MCPServerStdio

import graphstore

pytestmark = [pytest.mark.rest, pytest.mark.in_process("the agent starts a server of its own")]


class Remembering(BaseLLM):
    """Calls one tool, and answers with what it said."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, **_: Any) -> Any:
        answers = [each["content"] for each in messages if each.get("role") == "tool"]
        if answers:
            return f"Thought: done\nFinal Answer: {answers[-1]}"
        called = {"name": "graphstore_mcp_crew_gs_remember", "arguments": '{"statement": "lunch is at noon"}'}
        return [{"id": "1", "type": "function", "function": called}] if tools else "Final Answer: no tools"


def test_a_crew_remembers_by_the_tools_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    memory = MCPServerStdio(command="graphstore", args=["mcp", "crew.gs"])
    clerk = Agent(
        role="clerk", goal="remember", backstory="a clerk", llm=Remembering(model="x"), mcps=[memory]
    )
    task = Task(description="Remember when lunch is.", expected_output="what was remembered", agent=clerk)

    answer = Crew(agents=[clerk], tasks=[task]).kickoff()

    assert "lunch is at noon" in answer.raw
    with graphstore.open("crew.gs", read_only=True) as store:
        assert [node.text for node in store.nodes()] == ["lunch is at noon"]
