"""README and the pages of docs/ keep their word: typed from top to bottom they run, and the answers they print are the store's."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from graphstore.cli.command_line import app
from graphstore.remote.remote import RemoteStore

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SEMANTICS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "semantics").glob("*.md"))
TYPED = (
    "README.md",
    "docs/guide.md",
    "docs/agents.md",
    "docs/command-line.md",
    "docs/notebooks.md",
    "docs/operations.md",
    "examples/README.md",
)
PAGES = (
    *TYPED,
    "docs/README.md",
    "docs/scale.md",
    "docs/server.md",
    "docs/reliability.md",
    "docs/threat-model.md",
    "docs/commands.md",
    "docs/tools.md",
    "docs/calls.md",
    "docs/formats.md",
    "docs/frameworks.md",
    "CHANGELOG.md",
    *SEMANTICS,
)
INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z"
)  # seconds that are none are not printed


def blocks(language: str, page: str = "README.md") -> list[str]:
    """A page's code of one language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run the README in, with the examples beside it."""
    for name in ("examples", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_readme_is_short() -> None:
    assert len(README.encode()) <= 10_000


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.story if page == "README.md" else pytest.mark.rest)
        for page in TYPED
    ],
)
def test_a_page_typed_from_top_to_bottom_runs_and_prints_what_it_shows(
    here: Path, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^( *)```(sh|python|pycon|text)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    printed = ""
    for indent, language, block in found:
        typed = textwrap.dedent(block) if indent else block
        if language == "sh":
            printed = _typed_in_bash(typed)
            assert re.findall(r"damaged|left out|warning|already|refused", printed) == []
        elif language == "python":
            capsys.readouterr()
            exec(compile(typed, page, "exec"), names)
            printed = capsys.readouterr().out
        elif language == "pycon":
            _typed_in_python(typed, names, page)
        else:
            assert INSTANT.sub("…", typed).split() == INSTANT.sub("…", printed).split()


def _typed_in_bash(block: str) -> str:
    """What a shell prints of some lines, each of which must succeed."""
    shim = Path(
        "bin", "graphstore"
    )  # no function: a server behind `&` is to be the process that the shell knows
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m graphstore "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent.absolute()}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(
        ["bash", "-ec", block], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def _typed_in_python(block: str, names: dict[str, Any], page: str) -> None:
    test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
    wrong: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        test, out=wrong.append, clear_globs=False
    )
    assert result.failed == 0, "".join(wrong)
    names.update(test.globs)


@pytest.fixture
def served(here: Path) -> Iterator[str]:
    """The address of a real server of `team.gs`, filled from the examples."""
    team = ["import", "jsonl", "team.gs", "examples/team.jsonl", "--mapping", "examples/team.toml"]
    assert CliRunner().invoke(app, team).exit_code == 0
    command = [sys.executable, "-m", "graphstore", "serve", "team.gs", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        shown = re.escape("serving team.gs on http://127.0.0.1:7464 (token in team.gs/token)\n")
        assert re.fullmatch(shown.replace("7464", r"\d+"), said)
        assert said.replace(said.split(":")[2].split()[0], "7464") in blocks("console", "docs/server.md")[0]
        yield said.split("http://")[1].split()[0]
        process.terminate()
        assert process.wait(30) == 0


def test_a_folder_is_written_beside_its_server_which_answers_as_shown(here: Path, served: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("python", "docs/server.md")[0], "docs/server.md", "exec"), names)
    assert not isinstance(names["store"], RemoteStore)

    if shutil.which("curl") is None:
        pytest.skip("the calls over HTTP are shown with curl, and there is none here")
    lines = [
        line.removeprefix("$ ")
        for line in blocks("console", "docs/server.md")[1].splitlines()
        if line.startswith("$ ")
    ]
    script = "\n".join(f"{line}\necho" for line in lines).replace("localhost:7464", served)
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    answers = [orjson.loads(line) for line in said.stdout.splitlines() if line]
    lunch, limit, superseded, (added, none), changes = answers
    assert ("lunch", {"says": "lunch is at noon"}) == (lunch["id"], lunch["content"])
    assert "the API allows 300 requests a minute" == limit["text"]
    assert ["login_tokens"] == [node["id"] for node in superseded["current"]]
    assert (16, None) == (len(added), none)
    assert "confirm" == changes[-1]["verb"]

    shown = next(line for line in blocks("console")[1].splitlines() if line.startswith("$ curl"))
    asked = ["bash", "-c", shown.removeprefix("$ ").replace("localhost:7464", served)]
    assert superseded == orjson.loads(
        subprocess.run(asked, capture_output=True, check=True, timeout=60).stdout
    )


def test_the_shell_says_what_is_shown(here: Path) -> None:
    team = ["import", "jsonl", "team.gs", "examples/team.jsonl", "--mapping", "examples/team.toml"]
    assert CliRunner().invoke(app, team).exit_code == 0
    shown = next(
        block for block in blocks("console", "docs/command-line.md") if "graphstore shell" in block
    ).splitlines()
    prompt = re.compile(r"(?:team\.gs.*?>|      \.\.) ")
    typed = [prompt.sub("", line, count=1) for line in shown if prompt.match(line)]
    answers = [line for line in shown if not prompt.match(line) and line[0] != "$" and " ms." not in line]
    result = CliRunner().invoke(app, ["shell", "team.gs"], input="\n".join(typed) + "\n")
    assert result.exit_code == 0, result.output
    assert [] == [
        line for line in answers if line.rstrip() not in map(str.rstrip, result.output.splitlines())
    ]


def test_the_index_of_docs_names_every_page_and_semantics_those_below_it() -> None:
    for index in (ROOT / "docs" / "README.md", ROOT / "docs" / "semantics" / "README.md"):
        text = index.read_text(encoding="utf-8")
        assert [] == [
            page.name for page in index.parent.glob("*.md") if f"({page.name})" not in text and page != index
        ]


@pytest.mark.parametrize("page", PAGES)
def test_files_it_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:graphstore|tests|cypher|docs|examples)/[\w./]*)`", text)
    missing = [name for name in named if not (ROOT / name).exists()]
    linked = re.findall(
        r"\]\((?!https?:)([^)#\s]+)[^)\s]*\)",
        re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE),
    )
    missing += [name for name in linked if not (ROOT / page).parent.joinpath(name).exists()]
    assert missing == []


def test_make_lists_every_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = subprocess.run(
        ["make", "-s", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    assert {target for target in targets if f"make {target} " in said} == targets
    assert all(
        f"make {target}" not in README or target in targets for target in re.findall(r"`make (\w+)`", README)
    )
