"""The shell at a terminal: a real process on a real pseudo-terminal, driven by keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit")

import graphstore
from graphstore.cli.shell import terminal as shell_terminal
from graphstore.cli.shell.output import Output
from graphstore.cli.shell.shell import Shell
from graphstore.cli.shell.terminal import files, highlighted, history, history_file

ROOT = Path(__file__).parents[3]
HEAVY = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y WITH x * y AS z WHERE z % 7 = 3 RETURN count(*);"
ENTER, TAB, UP, CTRL_C, CTRL_D = "\r", "\t", "\x1b[A", "\x03", "\x04"
LET_GO = "<the line is sent>"
"""Stands where the line editor gives the terminal back: from there on Ctrl-C is a signal."""
_STYLED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Terminal:
    """A shell on a pseudo-terminal: `keys` types, `until` waits for what is shown after that."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.chdir(ROOT)
            more = {"TERM": "xterm", "XDG_STATE_HOME": str(state), "PROMPT_TOOLKIT_NO_CPR": "1"}
            words = [sys.executable, "-m", "graphstore", "shell", str(folder)]
            os.execve(sys.executable, words, {**os.environ, **more})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.shown = ""
        self.until("team.gs>")

    def keys(self, *typed: str) -> None:
        """Type, after what was shown before is forgotten."""
        self.shown = ""
        for each in typed:
            os.write(self.fd, each.encode())

    def until(self, text: str, timeout: float = 60) -> str:
        """All that is shown until `text` is."""
        end = time.monotonic() + timeout
        while text not in self.shown:
            more = self.read(within=max(end - time.monotonic(), 0))
            assert more, f"{text!r} was not shown in {timeout} s, but:\n{self.shown}"
        return self.shown

    def read(self, within: float) -> bool:
        """Read what is shown next, if something is within so many seconds."""
        if not select.select([self.fd], [], [], within)[0]:
            return False
        more = os.read(self.fd, 1 << 16).decode(errors="replace").replace("\x1b[?2004l", LET_GO)
        self.shown += _STYLED.sub("", more)
        self.shown = re.sub(r" +\r\n", "\r\n", self.shown)
        return True

    def ask(self, line: str, answer: str) -> str:
        """Type a line, and wait for its answer and the next prompt."""
        self.keys(line, ENTER)
        self.until(answer)
        self.shown = self.shown[self.shown.index(answer) :]
        return self.until("team.gs")

    def left(self) -> int:
        """The exit code of the shell that has been left."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.process = 0
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 1 << 16)
                except OSError:  # the other side is closed
                    time.sleep(0.01)
        raise AssertionError("the shell does not end")

    def end(self) -> None:
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.fd)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, `team.gs`, in which a decision was superseded after a snapshot."""
    place = tmp_path_factory.mktemp("shell")
    with graphstore.open(place / "team.gs", author="ana") as store:
        store.add_node("decision", {"says": "sessions"}, id="sessions", text="logins are sessions")
        store.snapshot("release")
        store.add_node("decision", {"says": "tokens"}, id="tokens", supersedes=["sessions"], reason="scale")
    return place


@pytest.fixture(scope="module")
def shared(place: Path) -> Iterator[Terminal]:
    terminal = Terminal(place / "team.gs", place / "state")
    yield terminal
    terminal.end()


@pytest.fixture
def terminal(shared: Terminal) -> Terminal:
    """The shell, looking at the present, with nothing half written."""
    shared.keys(CTRL_C)
    shared.until("team.gs")
    shared.ask(":now", "as known at")
    shared.ask(":mode table", "shown as table")
    return shared


def test_a_statement_goes_on_over_lines_until_its_semicolon(terminal: Terminal) -> None:
    terminal.keys("MATCH (n:Node)", ENTER)
    terminal.until("..")
    terminal.keys("RETURN n.id AS standing_now", ENTER)
    terminal.until("..")

    assert "tokens" in terminal.ask(";", "standing_now\r\n")


def test_tab_completes_commands_ids_and_labels(terminal: Terminal) -> None:
    terminal.keys(":supers", TAB)
    terminal.until("eded")
    terminal.keys("sess", TAB)
    terminal.until("ions")
    assert "because: scale" in terminal.ask("", "superseded by tokens")

    terminal.keys(":asof rel", TAB)
    terminal.until("ease")
    terminal.keys(ENTER)
    terminal.until("(as of release)>")
    terminal.ask(":now", "as known at")

    terminal.keys("MATCH (n:Abs", TAB)
    terminal.until("ent")
    assert "sessions" in terminal.ask(") RETURN n.id AS gone;", "gone\r\n")


@pytest.mark.rest  # it waits for an interrupted query, which busy cores delay
def test_ctrl_c_stops_the_query_and_not_the_shell(terminal: Terminal) -> None:
    start = time.monotonic()
    terminal.keys(HEAVY, ENTER)
    terminal.until(LET_GO)
    while "stopped." not in terminal.shown:
        os.write(terminal.fd, CTRL_C.encode())  # held down, as people do
        terminal.read(within=0.2)
        assert time.monotonic() - start < 50, terminal.shown  # all of it takes a minute
    terminal.until("team.gs>")

    assert "42" in terminal.ask("RETURN 42 AS answer;", "answer\r\n")


def test_ctrl_c_clears_what_is_half_written(terminal: Terminal) -> None:
    terminal.keys("MATCH (n:Node)", ENTER)
    terminal.until("..")
    terminal.keys(CTRL_C)
    terminal.until("team.gs>")

    assert "7" in terminal.ask("RETURN 7 AS seven;", "seven\r\n")


def test_an_error_is_one_line_and_the_shell_goes_on(terminal: Terminal) -> None:
    assert "only reads" in terminal.ask("CREATE (n:Node);", "error: 'CREATE' is refused")
    assert "8" in terminal.ask("RETURN 8 AS eight;", "eight\r\n")


def test_each_answer_is_timed_and_the_prompt_tells_the_coordinate(terminal: Terminal) -> None:
    terminal.ask(":asof release", "team.gs (as of release)>")
    told = terminal.ask("MATCH (n:Node) RETURN n.id AS known;", "known\r\n")

    assert re.search(r"sessions\s+1 row, [\d.]+ ms", told)


def test_a_mode_holds_until_another_is_asked_for(terminal: Terminal) -> None:
    terminal.ask(":mode json", "shown as json")

    assert '"x": 9' in terminal.ask("RETURN 9 AS x;", "[\r\n")


def test_it_sees_what_a_writer_writes_meanwhile(terminal: Terminal, place: Path) -> None:
    with graphstore.open(place / "team.gs") as writer:
        writer.add_node("note", {"a": 1}, id="told_just_now")
        terminal.ask("MATCH (n:Node {kind: 'note'}) RETURN n.id AS fresh;", "told_just_now")


def test_history_is_kept_for_the_owner_alone_and_ctrl_d_leaves(place: Path) -> None:
    first = Terminal(place / "team.gs", place / "other")
    first.ask("RETURN 'kept' AS word;", "word\r\n")
    first.keys(CTRL_D)
    code = first.left()
    first.end()
    second = Terminal(place / "team.gs", place / "other")
    second.keys(UP)
    second.until("RETURN 'kept' AS word;")
    again = second.ask("", "word\r\n")
    second.keys(":quit", ENTER)
    codes = (code, second.left())
    second.end()

    kept = place / "other" / "graphstore" / "shell_history"
    assert (0, 0) == codes
    assert "kept" in again
    assert (0o600, 0o700) == (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode))
    assert 1 == kept.read_text().count("RETURN 'kept' AS word;")


# ---------------------------------------------------------------- its parts


def test_the_history_lies_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert tmp_path / "graphstore" / "shell_history" == history_file()
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert Path.home() / ".local" / "state" / "graphstore" / "shell_history" == history_file()


def test_a_history_others_could_read_is_closed_to_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "graphstore").mkdir()
    history_file().touch(0o644)
    history(print)

    assert 0o600 == stat.S_IMODE(history_file().stat().st_mode)


def test_where_no_history_can_be_kept_that_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    told: list[str] = []

    assert isinstance(history(told.append), shell_terminal.InMemoryHistory)
    assert [f"note: what you type is not kept: {history_file()}: Not a directory."] == told


@pytest.mark.parametrize(
    ("text", "styled"),
    [
        (":why x", [(":why", "command")]),
        ("MATCH (n:Node)", [("MATCH", "keyword"), ("Node", "label")]),
        ("match ()-[:A|B]", [("match", "keyword"), ("A", "label"), ("B", "label")]),
        ("RETURN 'a' + $b, 1.5 // c", [("RETURN", "keyword"), ("'a'", "string"), ("$b", "param"), ("1.5", "number"), ("// c", "comment")]),
        ("n.end", []),
    ],
)  # fmt: skip
def test_highlighting(text: str, styled: list[tuple[str, str]]) -> None:
    assert styled == [(each[1], each[0].removeprefix("class:")) for each in highlighted(text)[0] if each[0]]


def test_highlighting_keeps_every_character_of_every_line() -> None:
    text = "MATCH (n)\nRETURN 'a\nb', /* c\nd */ 'open\n;\n"

    assert text.split("\n") == ["".join(each[1] for each in line) for line in highlighted(text)]


def test_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out.csv").touch()
    (tmp_path / ".hidden").touch()

    assert [f"{tmp_path}/out/", f"{tmp_path}/out.csv"] == [text for text, _ in files(f"{tmp_path}/")]
    assert [f"{tmp_path}/out.csv"] == [text for text, _ in files(f"{tmp_path}/out.")]
    assert [f"{tmp_path}/.hidden"] == [text for text, _ in files(f"{tmp_path}/.h")]
    assert [] == files(f"{tmp_path}/none/")


def test_without_prompt_toolkit_it_says_what_to_install() -> None:
    probe = "import sys; sys.modules['prompt_toolkit'] = None; import graphstore.cli.shell.terminal"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT, timeout=60)

    assert "Install it with: pip install 'graphstore[shell]'" in done.stderr


def test_where_no_home_is_known_the_history_is_in_memory_and_files_are_none(monkeypatch):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    told: list[str] = []
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(Path, "home", nowhere)

    history(told.append)

    assert ["note: what you type is not kept: Could not determine home directory."] == told
    assert [] == files("~nobody-of-that-name/x")


def test_ctrl_c_while_a_stop_is_told_does_not_end_the_shell(place, monkeypatch):
    told = []

    class Pressed(Output):
        """Where Ctrl-C comes whenever something is told."""

        def remark(self, text: str) -> None:
            told.append(text)
            os.kill(os.getpid(), signal.SIGINT)

    class Typed:
        """A line editor in which `:now` is typed."""

        def prompt(self, **_: object) -> str:
            return ":now"

    monkeypatch.setattr(graphstore.cli.shell.shell, "PATIENCE", 0.0)
    with graphstore.open(place / "team.gs", read_only=True) as store:
        shell = Shell(store, "team.gs", Pressed(terminal=True))
        ready = threading.Thread(target=lambda: None)
        ready.start()
        with shell.stopping.minded():
            going_on = shell_terminal._turn(Typed(), shell, ready)

    assert (True, "stopped.", 2) == (going_on, told[-1], len(told))


def test_a_request_to_end_leaves_with_nothing_wrong(place: Path) -> None:
    terminal = Terminal(place / "team.gs", place / "state")
    try:
        os.kill(terminal.process, signal.SIGTERM)
        assert 0 == terminal.left()
    finally:
        terminal.end()
