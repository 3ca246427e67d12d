"""README and guide hold what they say: their Python runs, their answers are the store's, their commands are the command line's."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graphstore.cli import app

ROOT = Path(__file__).parents[1]
EVERYWHERE = ("--json", "--author", "--help")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "docs/guide.md")


def blocks(language: str, page: str = "README.md") -> list[str]:
    """A page's code of one language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run the README in, with the examples beside it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def commands(group: Any, prefix: str = "graphstore") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def reference() -> str:
    """The command line in short: each command with its arguments and options, in the order of --help."""
    lines = []
    for name, command in commands(typer.main.get_command(app)):
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        needed = [f"{one.opts[0]} {_metavar(one)}" for one in options if one.required]
        free = [one.opts[0] for one in options if not one.required and one.opts[0] not in EVERYWHERE]
        lines += _folded(
            " ".join([name, *arguments, *needed, *(["[" + " ".join(free) + "]"] if free else [])])
        )
    return "\n".join(lines) + "\n"


def _argument(argument: Any) -> str:
    return _metavar(argument) if argument.required else f"[{_metavar(argument)}]"


def _metavar(parameter: Any) -> str:
    return (parameter.metavar or parameter.name.upper()).strip("[]{}")


def _folded(line: str, width: int = 112) -> list[str]:
    if len(line) <= width:
        return [line]
    cut = line.rindex(" ", 0, width)
    return [line[:cut], *_folded("    " + line[cut + 1 :], width)]


def test_reference_lists_every_command_with_its_arguments_and_options() -> None:
    assert reference() in blocks("text"), f"the reference in README.md should be:\n{reference()}"


def test_python_examples_run(here: Path) -> None:
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES)
def test_questions_have_the_answers_that_are_printed(here: Path, page: str) -> None:
    text = "\n".join(blocks("pycon", page))
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert result.attempted > 5
    assert result.failed == 0, "".join(said)


def test_shell_examples_run(here: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("graphstore ")]
    assert len(lines) > 5
    for line in lines:
        words = shlex.split(line)
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", PAGES)
def test_files_it_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:graphstore|tests|cypher|docs|examples)/[\w./]*)`", text)
    assert named
    missing = [name for name in named if not (ROOT / name).exists()]
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
