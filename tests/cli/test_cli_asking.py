"""The commands that ask about sessions: each is the function of its name, at a coordinate, in words and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_command_line import ROOT, answer, refused, run

SESSIONS = ROOT / "examples" / "sessions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the two sessions of the examples."""
    store = tmp_path_factory.mktemp("agents") / "agents.gs"
    run("import", "pi", store, SESSIONS)
    return store


def test_connect_says_what_it_made_and_then_that_there_is_nothing_new(tmp_path: Path) -> None:
    store = tmp_path / "agents.gs"
    run("import", "pi", store, SESSIONS)

    done = answer("connect", store, "--threshold", 0.3, "--window-days", 7, "--most", 5)

    assert done["links"] == {"semantic": 1, "failure_pattern": 1, "project_related": 1}
    assert [] == done["revised"]
    assert run("connect", store, "--threshold", 0.3) == "3 segments: nothing new.\n"
    assert "1 taken back" in run("connect", store, "--threshold", 1)
    assert "threshold 2.0 is out of range" in refused("connect", store, "--threshold", 2)


def test_work(folder: Path) -> None:
    assert run("sessions", "work", folder, "shop").startswith(
        "/home/ana/shop: 3 pieces of work in 2 sessions"
    )
    assert len(answer("sessions", "work", folder, "shop", "--until", "2026-03-04")["work"]) == 2
    assert "2 pieces of work" in run("sessions", "work", folder, "ana/shop", "--valid", "2026-03-04")
    assert "Known: /home/ana/shop" in refused("sessions", "work", folder, "shopp")


def test_decisions(folder: Path) -> None:
    [found] = answer("sessions", "decisions", folder, "--project", "shop")["decisions"]

    assert (found["what"], found["why"]) == ("Retry twice", "the bank recovers within seconds")
    assert "Retry twice because" in run("sessions", "decisions", folder)


def test_lessons(folder: Path) -> None:
    assert (
        run("sessions", "lessons", folder, "python", "bank") == "No lesson is known here for python, bank.\n"
    )
    assert answer("sessions", "lessons", folder)["lessons"] == []
    assert "unknown level 'tol'" in refused("sessions", "lessons", folder, "--level", "tol")


def test_errors(folder: Path) -> None:
    [found] = answer("sessions", "errors", folder)["errors"]

    assert found["sessions"] == ["checkout", "refund"]
    assert "2 sessions, 2026-03-02 09:00Z to 2026-03-05 14:00Z" in run("sessions", "errors", folder)
    assert answer("sessions", "errors", folder, "--at-least", 3)["errors"] == []


def test_lineage(folder: Path) -> None:
    found = answer("sessions", "lineage", folder, "refund")

    assert [each["session"] for each in found["ancestors"]] == ["checkout"]
    assert found["subject"]["shared_entries"] == 8
    assert run("sessions", "lineage", folder, "checkout").splitlines() == [
        "checkout (started 2026-03-02 09:00Z, /home/ana/shop)  ←",
        "  refund (started 2026-03-05 14:00Z, /home/ana/shop)",
    ]
    assert "nothing_here" in refused("sessions", "lineage", folder, "nothing_here")


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("project", ["/home/ana/shop"]),
        ("model", ["acme/big-1"]),
        ("session", ["checkout", "refund"]),
        ("day", ["2026-03-02", "2026-03-05"]),
    ],
)
def test_costs(folder: Path, by: str, keys: list[str]) -> None:
    found = answer("sessions", "costs", folder, "--by", by)

    assert [row["key"] for row in found["rows"]] == keys
    assert found["cost"] == 0.12  # what the fork copied is counted once
    assert run("sessions", "costs", folder, "--by", by).splitlines()[-1].endswith(f"in all, by {by}")
