"""A server as those who run it see it: where its options come from, what it says of itself, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from graphstore.server.run import _reached
from tests.support.served import Wire

pytestmark = [pytest.mark.in_process("processes of their own"), pytest.mark.rest]


def asked(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphstore", *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def process(
    *words: object, url: bool = True, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "graphstore", *map(str, words)]
    made = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert made.stdout is not None
        yield made, made.stdout.readline().partition(" on ")[2].partition(" ")[0].strip() if url else ""
    finally:
        if made.poll() is None:
            made.kill()
        made.wait(20)


def ended(made: subprocess.Popen[str]) -> list[str]:
    """The lines on standard error of a process that is asked to end, and does so well."""
    made.send_signal(signal.SIGTERM)
    _, said = made.communicate(timeout=30)
    assert 0 == made.returncode, said
    return said.splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"n": 1}, id="n1")
    return tmp_path / "memory.gs"


def test_the_command_line_comes_before_the_environment_before_the_file(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "graphstore.toml"
    file.write_text(
        '[serve]\nport = 1\ncache = 2\nallow-origin = ["https://a.example", "https://b.example"]\nlog_level = "info"\n'
    )
    told = asked(
        "serve",
        place,
        "--port",
        0,
        "--print-config",
        "--config",
        file,
        GRAPHSTORE_CACHE="3",
        GRAPHSTORE_PORT="9",
    )

    assert 0 == told.returncode, told.stderr
    lines = told.stdout.splitlines()
    assert "[serve]" == lines[0]
    for line in (
        "port = 0  # command line", "cache = 3  # environment", f'log_level = "info"  # {file}', 'host = "127.0.0.1"  # default',
        f'allow_origin = ["https://a.example", "https://b.example"]  # {file}',
    ):  # fmt: skip
        assert line in lines
    written = tmp_path / "again.toml"
    written.write_text(told.stdout)
    again = asked("serve", place, "--print-config", "--config", written)
    assert [line.partition("  #")[0] for line in lines] == [
        line.partition("  #")[0] for line in again.stdout.splitlines()
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve]\nprot = 1", "no option of serve. Valid: allow_host"),
        ("port = 1", "is to have one table, [serve], not 'port'"),
        ("[serve", "cannot be read"),
        ('[serve]\nport = "many"', "port"),
        ("[serve]\nport = [1]", "gives port [1]. Give one value."),
        ("[serve.host]\na = 1", "gives host {'a': 1}. Give one value."),
    ],
)
def test_a_file_that_is_wrong_is_refused(place: Path, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    told = asked("serve", place, "--config", file)

    assert 2 == told.returncode
    assert words in " ".join(told.stderr.split())


def test_one_value_is_enough_where_there_may_be_several(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "graphstore.toml"
    file.write_text('[serve]\nallow-host = "a.example"\nallow_origin = ["https://c.example"]\n')
    told = asked(
        "serve",
        place,
        "--print-config",
        GRAPHSTORE_CONFIG=str(file),
        GRAPHSTORE_ALLOW_ORIGIN="https://a.example https://b.example",
    ).stdout.splitlines()

    assert f'allow_host = ["a.example"]  # {file}' in told
    assert 'allow_origin = ["https://a.example", "https://b.example"]  # environment' in told


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_server_says_what_it_does_and_never_what_was_shown_to_it(place: Path, form: str) -> None:
    with process("serve", place, "--port", 0, "--log-level", "info", "--log-format", form) as (made, url):
        token = (place / "token").read_text().strip()
        assert "n1" == Wire(url, token).get("/node?id=n1")["id"]
        held = Wire(url, token).post("/transaction", {"read_only": True})["transaction"]
        Wire(url, token).post(f"/transaction/{held}/commit")
        assert 401 == Wire(url, "secret-guess").ask("GET", "/node%0Aat?id=n1")[0]
        status, _, headers = Wire(url, None).ask("GET", "/")
        assert (200, "text/html; charset=utf-8") == (status, headers["content-type"])
        lines = ended(made)
    assert not any(
        "secret-guess" in line or token in line or held in line or "id=n1" in line for line in lines
    )
    if form == "text":
        assert any(' warning login refused path="/node\\nat" client="127.0.0.1:' in line for line in lines), (
            lines
        )
        assert all(line.startswith("20") for line in lines)
        return
    told = [json.loads(line) for line in lines]
    assert ["start", "request", "request", "request", "login refused", "request", "request", "stop"] == [
        one["what"] for one in told
    ]
    assert ("GET", "/node", 200, "write") == tuple(
        told[1][name] for name in ("method", "path", "status", "rights")
    )
    assert ("warning", "/node\nat") == (told[4]["level"], told[4]["path"])
    assert [url, url] == [told[0]["url"], told[-1]["url"]]


def test_who_takes_over_from_one_that_was_killed_says_so(place: Path) -> None:
    with process("serve", place, "--port", 0) as (made, _):
        made.kill()
        made.wait(20)
    with process("serve", place, "--port", 0, "--log-format", "json") as (made, url):
        token = (place / "token").read_text().strip()
        assert "n1" == Wire(url, token).get("/node?id=n1")["id"]
        (line,) = map(json.loads, ended(made))
    assert ("takeover", "warning") == (line["what"], line["level"])


@pytest.mark.parametrize("words", [("mcp",), ("shell",), ("mcp", "--http", "127.0.0.1:0")])
def test_every_door_ends_well_when_it_is_asked_to(place: Path, words: tuple[str, ...]) -> None:
    with process(words[0], place, *words[1:], url=False) as (made, _):
        if words == ("mcp",):
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
            made.stdin.write(json.dumps(hello) + "\n")
            made.stdin.flush()
            assert made.stdout.readline()
        elif words == ("shell",):
            made.stdin.write(":get n1\n")
            made.stdin.flush()
            assert made.stdout.readline()
        else:
            assert made.stderr.readline().startswith("agents are served")
        assert "Traceback" not in "\n".join(ended(made))
    started = time.monotonic()
    with graphstore.open(place) as store:
        assert "n1" == store.node("n1").id
    assert time.monotonic() - started < 20


def test_the_process_is_measured_too(place: Path) -> None:
    with process("serve", place, "--port", 0) as (made, url):
        text = Wire(url, (place / "token-read").read_text().strip()).get("/metrics").decode()
        ended(made)
    for name in ("cpu_seconds_total", "start_time_seconds", "resident_memory_bytes", "open_fds", "max_fds"):
        (line,) = (line for line in text.splitlines() if line.startswith(f"process_{name} "))
        assert float(line.split()[1]) > 0


@pytest.mark.parametrize(("host", "where"), [("localhost", "localhost"), ("127.0.0.2", "127.0.0.2")])
def test_a_server_says_where_it_listens(place: Path, host: str, where: str) -> None:
    with process("serve", place, "--port", 0, "--host", host, "--allow-host", "store.example") as (made, url):
        port = url.rpartition(":")[2]
        assert f"listening on {where}:{port}: this machine alone, asked for as " in made.stdout.readline()
        ended(made)


def test_where_all_addresses_are_listened_on_is_said() -> None:
    assert (
        "listening on [::]:80: every address of this machine, asked for as localhost, a.example"
        == _reached("::", 80, ["a.example"])
    )
    assert (
        "listening on 10.0.0.5:80: the network of that address, asked for as localhost, 10.0.0.5"
        == _reached("10.0.0.5", 80, [])
    )


def test_what_the_server_beneath_says_has_the_same_form(place: Path) -> None:
    with process("serve", place, "--port", 0, "--log-format", "json") as (made, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as stranger:
            stranger.sendall(b"no request\r\n\r\n")
            assert b"400" in stranger.recv(1000)
        (line,) = map(json.loads, ended(made))
    assert ("warning", "Invalid HTTP request received.") == (line["level"], line["what"])
