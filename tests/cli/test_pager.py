"""Long and wide answers at a real terminal: by $PAGER, unless --no-pager was given; nothing is left out of them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

import graphstore
from tests.cli.test_command_line import run

LONG = "UNWIND range(1, 200) AS n RETURN n AS number"
SHOUT = f"{sys.executable} -c \"import sys; print('paged', len(sys.stdin.read().splitlines()))\""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pager") / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "we ship on Fridays"}, id="friday")
    return path


def at_terminal(*words: object, pager: str = SHOUT, columns: int = 80) -> str:
    """What a terminal of 24 lines is shown, without styles."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = os.fork()
    if process == 0:
        os.close(ours)
        os.login_tty(theirs)
        command = [sys.executable, "-m", "graphstore", *map(str, words)]
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm", "PAGER": pager})
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # it has ended
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


def test_a_long_answer_is_paged_and_a_short_one_is_not(folder: Path) -> None:
    assert re.fullmatch(r"paged 20\d\n", at_terminal("query", folder, LONG))
    assert "paged" not in at_terminal("query", folder, "RETURN 1 AS one")


def test_a_wide_answer_is_paged_whole(folder: Path) -> None:
    wide = ", ".join(f"{number} AS column_{number}" for number in range(30))

    assert "paged" in at_terminal("query", folder, f"RETURN {wide}")
    shown = at_terminal("query", folder, f"RETURN {wide}", pager="cat")
    assert [] == [number for number in range(30) if f"column_{number}" not in shown]


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager-anywhere", "'"])
def test_without_a_pager_it_is_printed(folder: Path, pager: str) -> None:
    assert "\n200" in at_terminal("query", folder, LONG, pager=pager)


def test_no_pager_is_said_before_the_command(folder: Path) -> None:
    assert "\n200" in at_terminal("--no-pager", "query", folder, LONG)
    assert "we ship on Fridays" in run("--no-pager", "get", folder, "friday")


def test_a_pager_that_is_left_early_is_no_error(folder: Path) -> None:
    leaves = f'{sys.executable} -c "print(7)"'
    many = "UNWIND range(1, 60000) AS n RETURN n AS number, 'some words' AS words"

    assert at_terminal("query", folder, many, pager=leaves) == "7\n"


def test_no_pager_where_no_terminal_is(folder: Path) -> None:
    assert "\n200" in run("query", folder, LONG)


def test_a_node_says_what_it_is_before_its_json_and_null_is_null(folder: Path) -> None:
    shown = run("query", folder, "MATCH (n) RETURN n, n.text AS text, CAST(NULL AS INT64) AS nothing")

    head, _, row = shown.splitlines()
    assert ["n", "text", "nothing"] == head.split()
    assert row.startswith('we ship on Fridays  {"_label":"Node","id":"friday"')
    assert row.endswith("we ship on Fridays   null")
