"""The page of the frameworks, typed section by section: each runs where its package is installed."""

from __future__ import annotations

import doctest
import os
import re
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
PACKAGES = {
    "LangGraph": "langgraph.store.base",
    "Anthropic's memory tool": "anthropic.lib.tools",
    "OpenTelemetry": "opentelemetry.sdk.trace",
    "OpenAI Agents": "agents",
    "LlamaIndex": "llama_index.core.graph_stores",
    "Pydantic AI": "pydantic_ai.mcp",
    "Google ADK": "google.adk.memory",
    "Strands Agents": "strands.tools.mcp",
    "CrewAI": "crewai.mcp",
}
STARTING = ("Pydantic AI", "Strands Agents", "CrewAI")
"""Sections that start a process."""
SECTIONS = {
    name: text
    for name, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    if "```pycon" in text
}


def test_every_section_has_its_package():
    assert sorted(PACKAGES) == sorted(SECTIONS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.rest] * (name in STARTING)) for name in SECTIONS],
)
def test_a_section_typed_runs_and_prints_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    pytest.importorskip(PACKAGES[name], reason=f"the package of {name} is not installed")
    [typed] = re.findall(r"^```pycon\n(.*?)^```$", SECTIONS[name], re.DOTALL | re.MULTILINE)
    wrong: list[str] = []
    test = doctest.DocTestParser().get_doctest(typed, {}, name, None, 0)
    assert (
        doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        .run(test, out=wrong.append)
        .failed
        == 0
    ), "".join(wrong)
