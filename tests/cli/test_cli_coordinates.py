"""The command line at coordinates that have a name, and what it sums up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore.cli.command_line import app
from tests.cli.test_command_line import answer, refused, run
from tests.conftest import Clock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A limit that was 100 when the release was named, and is known to have been 300 then since."""
    path, clock = tmp_path / "team.gs", Clock("2026-01-10")
    with graphstore.open(path, clock=clock, author="ana") as store:
        store.add_node("fact", {"limit": 100}, id="limit", valid_from="2026-01-01")
        clock.set("2026-02-10")
        store.snapshot("release")
        clock.set("2026-02-20")
        store.revise("limit", {"limit": 300}, valid_from="2026-02-05")
    return path


def limit(found: dict) -> int:
    return found["node"]["content"]["limit"]


def test_snapshot_is_made_and_listed(folder: Path) -> None:
    made = answer("snapshot", folder, "second", "--author", "ben")

    assert ("second", "ben") == (made["name"], made["author"])
    assert ["release", "second"] == [one["name"] for one in answer("snapshots", folder)]
    assert ["release", "2026-02-10", "2026-02-10", "ana"] in [
        line.split() for line in run("snapshots", folder).splitlines()
    ]
    assert "never moved" in refused("snapshot", folder, "release")
    assert "looks like a time" in refused("snapshot", folder, "2026-02-10")


def test_no_snapshot_is_said_so(tmp_path: Path) -> None:
    run("init", tmp_path / "new.gs")

    assert "no coordinate has a name" in run("snapshots", tmp_path / "new.gs")


def test_every_command_with_a_coordinate_takes_a_name_for_both_axes(folder: Path) -> None:
    assert 300 == limit(answer("show", folder, "limit"))
    assert 100 == limit(answer("show", folder, "limit", "--as-of", "release"))
    assert 1 == len(answer("history", folder, "limit", "--as-of", "release"))
    text = "MATCH (n:Node) RETURN n.number AS number"
    assert [{"number": 1}] == answer("query", folder, text, "--as-of", "release")


def test_commands_of_a_group_take_a_name_for_both_axes(folder: Path) -> None:
    assert [] == answer("sessions", "list", folder, "--as-of", "release")
    assert "both axes" in refused("memory", "stats", folder, "--as-of", "release", "--tx", "release", code=2)


def test_as_of_takes_a_time_too(folder: Path) -> None:
    assert 100 == limit(answer("show", folder, "limit", "--as-of", "2026-02-15"))


def test_a_command_with_a_coordinate_says_on_standard_error_which_one_it_used(folder: Path) -> None:
    for given, used in (
        ("2026-02-15", "2026-02-15 23:59:59.999999Z"),
        ("2026-02-15T00:00:00Z", "2026-02-15 00:00Z"),
    ):
        said = CliRunner().invoke(app, ["show", str(folder), "limit", "--as-of", given, "--json"])
        assert "limit" == json.loads(said.stdout)["node"]["id"]
        assert said.stderr.startswith(f"valid {used}, as known at 2026-02-1")
    assert "" == CliRunner().invoke(app, ["show", str(folder), "limit"]).stderr


def test_history_shows_the_fields_that_changed(folder: Path) -> None:
    run("amend", folder, "limit", '{"unit": "minute"}')

    said = " ".join(run("history", folder, "limit", "--all").split())
    assert "changed" in said
    assert "limit: 100 → 300" in said and "unit: minute added" in said


def test_either_axis_takes_a_name(folder: Path) -> None:
    assert 300 == limit(answer("show", folder, "limit", "--valid", "release"))
    assert 100 == limit(answer("show", folder, "limit", "--tx", "release"))
    assert 100 == limit(answer("show", folder, "limit", "--tx", "release", "--valid", "2026-03-01"))


def test_unknown_name_and_both_ways_at_once_are_refused(folder: Path) -> None:
    assert "no snapshot 'relaese'. Nearest: 'release'" in refused(
        "show", folder, "limit", "--as-of", "relaese"
    )
    assert "no snapshot 'soon'" in refused("show", folder, "limit", "--valid", "soon")
    assert "both axes" in refused("show", folder, "limit", "--as-of", "release", "--tx", "2026-02-10", code=2)
    assert "reads no $tx" in refused("query", folder, "RETURN 1", "--tables", "--as-of", "release", code=2)


def test_consolidate_proposes_and_writes_only_when_told_to(folder: Path) -> None:
    assert "nothing to sum up" in run("consolidate", folder)
    assert "nothing to sum up" in run("consolidate", folder, "--apply")
    for number in range(2):
        run("add", folder, "note", '{"says": "the same words"}', "--id", f"n{number}", "--tag", "t")
    before = len(answer("changes", folder))

    assert "2 notes that are alike: n0, n1" in run("consolidate", folder)
    assert [["n0", "n1"]] == [
        [node["id"] for node in group["members"]] for group in answer("consolidate", folder)
    ]
    assert [] == answer("consolidate", folder, "--kind", "fact")
    assert [] == answer("consolidate", folder, "--at-least", "3")
    assert before == len(answer("changes", folder))

    assert "folded into" in run("consolidate", folder, "--topic", "t", "--apply")
    assert "nothing to sum up" in run("consolidate", folder)
    assert "out of range" in refused("consolidate", folder, "--similar", "7")


def test_revise_gives_a_text_and_tags_as_add_does(folder: Path) -> None:
    run(
        "revise", folder, "limit", '{"limit": 400}', "--text", "400 a minute", "--tag", "api", "--tag", "rate"
    )

    node = answer("show", folder, "limit")["node"]
    assert ("400 a minute", ["api", "rate"], {"limit": 400}) == (node["text"], node["tags"], node["content"])
