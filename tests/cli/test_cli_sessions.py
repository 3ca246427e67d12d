"""The commands about sessions: they say what was told, what was left out and why, and what somebody should look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore.cli.command_line import app
from graphstore.sessions import segment_node, session_node
from tests.cli.test_command_line import answer, refused, run
from tests.support.session_files import claude, header, said, write

ANALYSER = """
from graphstore.sessions.sessions import builtin

class Mine:
    version = "mine-1"
    def __call__(self, work):
        return builtin(work)

analyse = Mine()
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A session of two segments, one that was forked from it, and one of Claude Code."""
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder / "one.jsonl", header("one"), said("a", None, 1), said("b", "a", 30))
    write(
        folder / "two.jsonl",
        header("two", 40, parentSession="one.jsonl"),
        said("a", None, 1),
        said("c", "a", 41),
    )
    write(folder / "three.jsonl", claude("u1", None, 1), claude("u2", "u1", 2, "assistant"))
    return folder


def test_import_says_what_was_told_and_what_was_left_out(tmp_path: Path, files: Path) -> None:
    store = tmp_path / "team.gs"
    result = CliRunner().invoke(app, ["import", "pi", str(store), str(files)])

    assert (0, "3 sessions: 3 new segments, 0 revised, 0 unchanged; 1 left out\n") == (
        result.exit_code,
        result.stdout,
    )
    assert "three.jsonl: it is a session of claude, not of pi" in result.stderr
    assert "0 new segments, 0 revised, 3 unchanged" in run("import", "pi", store, files)
    assert "1 session: 1 new segment, " in run("import", "claude", store, files / "three.jsonl")


def test_import_as_json_tells_each_session(tmp_path: Path, files: Path) -> None:
    done = answer("import", "pi", tmp_path / "team.gs", files / "one.jsonl", "--computer", "desk")

    assert [(str(files / "one.jsonl"), session_node("one"), 2, None)] == [
        (each["file"], each["session"], each["new"], each["error"]) for each in done["sessions"]
    ]
    with graphstore.open(tmp_path / "team.gs") as store:
        assert "desk" == store.node(session_node("one")).content["computer"]


def test_sessions_are_listed(tmp_path: Path, files: Path) -> None:
    store = tmp_path / "team.gs"
    run("import", "pi", store, files / "two.jsonl")

    told = answer("sessions", "list", store)
    assert [("one", True, 0), ("two", False, 1)] == sorted(
        (each["session_id"], each["missing"], each["segments"]) for each in told
    )
    assert session_node("one") in run("sessions", "list", store)
    assert [] == answer("sessions", "list", store, "--project", "/nowhere")


def test_an_analyser_of_ones_own_describes_and_describes_anew(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_analyser.py").write_text(ANALYSER)
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "team.gs"
    run("import", "pi", store, files / "one.jsonl")

    assert "0 new segments, 2 revised" in run("reanalyze", store, "--analyzer", "my_analyser:analyse")
    assert "0 sessions" in run("reanalyze", store, "--analyzer", "my_analyser:analyse")
    (files / "one.jsonl").unlink()
    result = CliRunner().invoke(app, ["reanalyze", str(store)])
    assert "left out: " in result.stderr and "its file is gone" in result.stderr


def test_review_shows_what_an_analyser_was_unsure_of(tmp_path: Path, files: Path) -> None:
    store = tmp_path / "team.gs"
    run("import", "pi", store, files / "one.jsonl")

    unsure = answer("review", store)["unsure"]
    assert {segment_node("one", "a"), segment_node("one", "b")} == {each["id"] for each in unsure}
    assert unsure[0]["reasoning"] in run("review", store)


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "nowhere" in refused("import", "pi", tmp_path / "team.gs", tmp_path / "nowhere", code=2)
