"""The commands of what an agent is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore.memory import Memory
from tests.cli.test_command_line import answer, refused, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store, and beside it a folder with the files of an agent."""
    with graphstore.open(tmp_path / "mind.gs") as store:
        Memory(store).remember(
            "deploys go out on Thursdays", layer="er1", source="wiki", valid_from="2026-01-12"
        )
    home = tmp_path / "home"
    home.mkdir()
    (home / "SOUL.md").write_text("## Style\nI answer briefly.\n", encoding="utf-8")
    return tmp_path / "mind.gs"


def test_index_soul_says_what_it_did(folder: Path) -> None:
    home = folder.parent / "home"

    assert "1 new in SOUL.md" in run("index", "soul", folder, home)
    assert 1 == len(answer("index", "soul", folder, home)["unchanged"])
    assert "none of AGENTS.md" in refused("index", "soul", folder, folder.parent / "nowhere")
    (home / "AGENTS.md").write_bytes(b"\xff")
    assert "AGENTS.md was not read" in run("index", "soul", folder, home, code=1)


def test_working_is_read_and_written(folder: Path) -> None:
    assert "nothing" in run("working", folder, "--user", "ada")
    run("working", folder, "--user", "ada", "--set", "likes tea")
    run("working", folder, "--user", "ada", "--thread", "t1", "--append", "hates milk")

    assert "likes tea" == answer("working", folder, "--user", "ada")["text"]
    assert "likes tea\nhates milk" == answer("working", folder, "--user", "ada", "--thread", "t1")["text"]
    assert {"cleared": True} == answer("working", folder, "--user", "ada", "--clear")
    assert answer("working", folder, "--user", "ada") is None
    assert "nothing" in run("working", folder, "--user", "ada", "--valid", "2026-01-01")


def test_working_refuses_what_contradicts_itself(folder: Path) -> None:
    assert "Give one of" in refused("working", folder, "--user", "ada", "--set", "a", "--clear", code=2)
    assert "for reading" in refused(
        "working", folder, "--user", "ada", "--set", "a", "--valid", "2026-01-01", code=2
    )
    assert "blank" in refused("working", folder, "--user", "ada", "--set", " ")


def test_context_is_told_in_sections(folder: Path) -> None:
    run("index", "soul", folder, folder.parent / "home")
    run("working", folder, "--user", "ada", "--set", "likes tea")
    asked = (
        "context",
        folder,
        "--user",
        "ada",
        "--query",
        "when do deploys go out?",
        "--identity",
        "an agent",
    )
    found = answer(*asked, "--skills", '{"deploy": "ships the app"}')

    assert ["identity", "bootstrap", "working", "observations", "skills", "memory", "conversation"] == [
        each["name"] for each in found["sections"]
    ]
    assert "- deploys go out on Thursdays [since 2026-01-12; er1:wiki]" in found["text"]
    assert "- deploy: ships the app" in found["text"]
    assert found["text"].startswith(found["stable_prefix"])
    assert answer(*asked)["text"] == run(*asked)
    short = answer(*asked, "--budget", 55)
    assert short["tokens"] <= 55
    assert ["memory"] == [each["section"] for each in short["left_out"]]
    assert "deploys" not in answer(*asked, "--valid", "2026-01-01")["text"]
