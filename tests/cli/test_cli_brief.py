"""`graphstore brief` prints what an agent should know, and records the visit of the agent that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from tests.cli.test_command_line import answer, refused, run

pytestmark = pytest.mark.in_process("commands open the store")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "team.gs"
    with graphstore.open(folder, author="ana") as store:
        store.add_node("decision", {"says": "we deploy on Thursdays"}, id="thursday")
        store.add_node("fact", {"says": "[the shop] is in Berlin", "project": "shop"}, id="shop")
    return folder


def test_it_prints_the_text_or_all_of_it_as_json(place: Path) -> None:
    text = run("brief", place, "--project", "/code/api", "--budget", 300)
    found = answer("brief", place)

    assert text.startswith("# Briefing, as of ") and "- thursday [decision] we deploy on Thursdays" in text
    assert "shop" not in text.partition(")")[2]
    assert "[the shop] is in Berlin" in found["text"]
    assert ["thursday", "shop"] == [line["id"] for line in found["sections"][0]["lines"]]


def test_a_named_agent_has_visits(place: Path) -> None:
    assert "no agent is named" in run("brief", place)
    assert "no earlier visit of ben is recorded" in run("brief", place, "--agent", "ben")
    assert answer("brief", place, "--agent", "ben")["last_visit"] is not None


def test_it_is_asked_at_a_coordinate(place: Path) -> None:
    assert "thursday" not in run("brief", place, "--as-of", "2020-01-01")
    assert "too small" in refused("brief", place, "--budget", 7)
    assert "is no time" in refused("brief", place, "--since", "soonish")
