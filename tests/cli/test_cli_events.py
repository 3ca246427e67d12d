"""The commands about events: what happened, what is forgotten, and the log they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphstore
from tests.cli.test_command_line import answer, refused, run

NOW = "2026-01-31T00:00:00Z"
LOG = [
    {"id": "evt_error", "type": "error", "timestamp": "2026-01-28T10:00:00Z", "description": "TypeError in UserProfile",
     "source": "user-profile.js:42", "origin": "system", "status": "resolved", "occurrences": ["2026-01-28T11:00:00Z"],
     "links": [{"target": "evt_fix", "relationship": "resolved_by", "confidence": "explicit"}]},
    {"id": "evt_slow", "type": "regression", "timestamp": "2026-01-29T14:00:00Z", "description": "LCP regressed", "origin": "system",
     "links": [{"target": "evt_gone", "relationship": "possibly_caused_by", "confidence": "inferred"}]},
    {"id": "evt_fix", "type": "fix", "timestamp": "2026-01-28T12:00:00Z", "description": "Fixed null user", "origin": "agent"},
    {"id": "evt_old", "type": "deploy", "timestamp": "2025-06-01T12:00:00Z", "description": "v1", "origin": "system"},
]  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a log of four events and a line that is cut off."""
    history = tmp_path / "project" / ".gasoline" / "history"
    history.mkdir(parents=True)
    lines = [json.dumps(row) for row in LOG]
    (history / "events.jsonl").write_text("\n".join([*lines, '{"id": "evt_cut']))
    return tmp_path / "project"


@pytest.fixture
def folder(project: Path, tmp_path: Path) -> Path:
    """A store with the project's events."""
    run("import", "gasoline", tmp_path / "team.gs", project)
    return tmp_path / "team.gs"


def events(folder: Path) -> list[str]:
    with graphstore.open(folder) as store:
        return sorted(event.id for event in store.events())


# ---- a log in and out -------------------------------------------------------------------------


def test_import_gasoline_counts_what_it_took(project: Path, tmp_path: Path) -> None:
    done = answer("import", "gasoline", tmp_path / "team.gs", project)

    assert (5, 4, 2, 1) == (done["lines"], done["events"], done["links"], len(done["damaged"]))
    assert "4 known already" in run("import", "gasoline", tmp_path / "team.gs", project)


def test_import_gasoline_refuses_what_is_no_log(tmp_path: Path) -> None:
    assert "there is no Gasoline log" in refused("import", "gasoline", tmp_path / "team.gs", tmp_path)


def test_export_as_gasoline_can_be_imported(folder: Path, tmp_path: Path) -> None:
    assert 4 == answer("export", folder, tmp_path / "out.jsonl", "--format", "gasoline")["lines"]
    run("import", "gasoline", tmp_path / "again.gs", tmp_path / "out.jsonl")

    assert events(folder) == events(tmp_path / "again.gs")


def test_export_as_gasoline_is_of_the_coordinate(folder: Path, tmp_path: Path) -> None:
    words = ("--format", "gasoline", "--valid", "2026-01-28T11:30:00Z")
    run("export", folder, tmp_path / "out.jsonl", *words)
    found = {
        row["id"]: row.get("status")
        for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    }

    assert {"evt_old": None, "evt_error": "active"} == found


def test_a_dump_takes_no_coordinate(folder: Path, tmp_path: Path) -> None:
    assert "the whole history" in refused("export", folder, tmp_path / "out", "--valid", NOW, code=2)


# ---- what happened ----------------------------------------------------------------------------


def test_events_tells_what_happened_lately(folder: Path) -> None:
    said = run("events", folder, "--valid", NOW)

    assert "TypeError in UserProfile (2 ×)" in said
    assert "resolved_by evt_fix" in said
    assert "possibly_caused_by evt_gone (inferred, evicted)" in said
    assert "3 events in last 7 days." in said.splitlines()[-1]
    assert "evt_old" not in said


def test_what_a_terminal_would_obey_is_only_shown(folder: Path) -> None:
    run("event", folder, "error", "red \x1b[31m bell \x07 \x9b2J", "--id", "evt_tricky", "--occurred-at", NOW)
    said = run("events", folder, "--valid", NOW) + run("show", folder, "evt_tricky")

    assert not set("\x1b\x07\x9b") & set(said)
    assert 2 == said.count("red ␛[31m bell ␇ �2J")
    assert "red \x1b[31m bell \x07 \x9b2J" == answer("show", folder, "evt_tricky")["node"]["description"]


def test_events_as_json_is_the_report(folder: Path) -> None:
    report = answer("events", folder, "--valid", NOW, "--since", "365d", "--limit", 2)

    assert {"events", "total_events", "time_range", "patterns", "summary"} == set(report)
    assert (["evt_slow", "evt_fix"], 4, "365d") == (
        [event["id"] for event in report["events"]], report["total_events"], report["time_range"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--type", "error"), ["evt_error"]),
        (("--pattern", "null USER"), ["evt_fix"]),
        (("--related-to", "evt_error"), ["evt_fix", "evt_error"]),
        (("--type", "fix", "--related-to", "evt_error"), ["evt_fix"]),
        (("--since", "2026-01-29"), ["evt_slow"]),
        (("--since", "2025-05-01..2025-07-01"), ["evt_old"]),
        (("--type", "nothing"), []),
    ],
)
def test_events_are_filtered(folder: Path, options: tuple[str, ...], found: list[str]) -> None:
    assert found == [event["id"] for event in answer("events", folder, "--valid", NOW, *options)["events"]]


def test_events_of_an_empty_store_says_so(tmp_path: Path) -> None:
    run("init", tmp_path / "new.gs")

    assert "No history recorded yet." == run("events", tmp_path / "new.gs").strip()


def test_events_refuses_a_window_that_is_none(folder: Path) -> None:
    assert "7d" in refused("events", folder, "--since", "lately")


# ---- forgetting -------------------------------------------------------------------------------


def test_evict_forgets_what_is_older(folder: Path) -> None:
    assert ["evt_old"] == answer("evict", folder, "--before", "2026-01-01")["evicted"]
    assert ["evt_error", "evt_fix", "evt_slow"] == events(folder)
    assert "evicted 0." in run("evict", folder, "--before", "2026-01-01")
    assert "evicted" == answer("show", folder, "evt_old")["node"]["standing"]


def test_evict_takes_an_age(folder: Path) -> None:
    assert "evt_error, evt_fix" in run(
        "evict", folder, "--older-than", "1m", "--kind", "error", "--kind", "fix"
    )
    assert ["evt_old", "evt_slow"] == events(folder)


def test_evict_may_leave_nothing(folder: Path) -> None:
    run("evict", folder, "--before", "2026-01-01", "--no-audit")

    assert "no node or event 'evt_old'" in refused("show", folder, "evt_old")


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ((), 2, "everything would be forgotten"),
        (("--older-than", "0d"), 2, "90d"),
        (("--older-than", "soon"), 2, "90d"),
        (("--older-than", "1d", "--before", "2026-01-01"), 2, "Give one of them"),
    ],
)
def test_evict_wants_to_know_what(folder: Path, options: tuple[str, ...], code: int, hint: str) -> None:
    assert hint in refused("evict", folder, *options, code=code)
    assert 4 == len(events(folder))


def test_erase_leaves_the_content_in_no_file(folder: Path) -> None:
    assert "erased evt_error" in run("erase", folder, "evt_error", "--reason", "a name was in it", "--yes")
    assert [] == [
        file for file in folder.rglob("*") if file.is_file() and b"UserProfile" in file.read_bytes()
    ]
    assert "a name was in it" in [change["reason"] for change in answer("changes", folder)]


def test_erase_asks_nobody_without_yes(folder: Path) -> None:
    assert "--yes" in refused("erase", folder, "evt_error", "--reason", "why", code=2)
    assert "evt_error" in events(folder)


def test_erase_wants_the_whole_id(folder: Path) -> None:
    refused("erase", folder, "evt_err", "--reason", "why", "--yes")
    assert "evt_error" in events(folder)


def test_retention_is_shown_and_set(folder: Path) -> None:
    assert "everything is kept." in run("retention", folder)
    assert {"days": 90, "bytes": None} == answer("retention", folder, "--days", 90)
    assert {"days": 90, "bytes": 5_000_000} == answer("retention", folder, "--bytes", 5_000_000)
    assert "events are kept for 90 days and while the journal is within 5,000,000 bytes." in run(
        "retention", folder
    )
    assert {"days": None, "bytes": None} == answer("retention", folder, "--forget-none")
    assert "--forget-none" in refused("retention", folder, "--forget-none", "--days", 3, code=2)
    assert "error:" in refused("retention", folder, "--days", 0)
