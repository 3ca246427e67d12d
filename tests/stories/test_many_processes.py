"""Several processes open one folder and write it: agents, commands, a notebook and a shell, while writers among them are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphstore
from tests.support.served import serve_in_process

pytest.importorskip("mcp")
from tests.mcp.test_transport import stdio
from tests.support.agent import agent

pytestmark = [pytest.mark.rest, pytest.mark.in_process("it starts processes of its own")]
RUN = [sys.executable, "-m", "graphstore"]
SECONDS = float(os.environ.get("GRAPHSTORE_SHARING_SECONDS", "6"))
KILLS = 5
IN_HALVES = """
import sys
import graphstore

with graphstore.open(sys.argv[1], author=sys.argv[2]) as store:
    turn = 0
    while True:
        with store.transaction():
            for half in ("first", "second"):
                store.add_node("fact", {"text": f"{sys.argv[2]} writes {turn}, {half} half"})
        print(f"{sys.argv[2]} writes {turn}", flush=True)
        turn += 1
"""
OPEN_STORE = "import graphstore; store = graphstore.open({folder!r}); turn = 0"
WRITE_IN_CELL = """
store.add_node("fact", {"text": f"notebook writes {turn}"})
print(f"notebook writes {turn}", flush=True)
turn += 1
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "memory.gs"
    with graphstore.open(folder) as store:
        store.add_node("fact", {"text": "first"}, id="first")
    return folder


def write_as_agent(folder: Path, name: str, over: threading.Event, written: list[str]) -> None:
    """Remember one statement after the other through `graphstore mcp`."""
    with agent(stdio(folder), name) as one:
        while not over.is_set():
            text = f"{name} writes {len(written)}"
            one.ask("remember", statement=text)
            written.append(text)


def write_by_commands(folder: Path, over: threading.Event, written: list[str]) -> None:
    """Write each fact by a command of its own."""
    while not over.is_set():
        text = f"command writes {len(written)}"
        done = subprocess.run(
            [*RUN, "add", str(folder), "fact", json.dumps({"text": text})],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (0, "") == (done.returncode, done.stderr)
        written.append(text)


def write_in_notebook(folder: Path, over: threading.Event, written: list[str]) -> None:
    """Write each fact in a cell of a Jupyter kernel."""
    from jupyter_client.manager import start_new_kernel

    manager, kernel = start_new_kernel(startup_timeout=120)

    def run(cell: str) -> None:
        messages: list[Any] = []
        reply = kernel.execute_interactive(cell, timeout=120, output_hook=messages.append)
        assert "ok" == reply["content"]["status"], reply["content"]
        printed = "".join(
            message["content"]["text"]
            for message in messages
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout"
        )
        written.extend(printed.splitlines())

    try:
        run(OPEN_STORE.format(folder=str(folder)))
        while not over.is_set():
            run(WRITE_IN_CELL)
        run("store.close()")
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)


def ask_shell(folder: Path, over: threading.Event) -> None:
    """Ask one shell the same question again and again. Each time it has an answer."""
    words = [*RUN, "shell", str(folder), "--mode", "json", "--keep-going"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        asked = 0
        while not over.is_set():
            shell.stdin.write("MATCH (n:Node {id: 'first'}) RETURN n.id AS id;\n")
            shell.stdin.flush()
            asked += 1
            over.wait(0.5)
        answers, _ = shell.communicate("", timeout=120)
    assert answers.count('"first"') == asked > 1, answers


def write_until_killed(folder: Path, name: str, seconds: float) -> list[str]:
    """Write transactions of two facts in a process that is killed after that time. Returns the facts that it acknowledged."""
    words = [sys.executable, "-c", IN_HALVES, str(folder), name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        acknowledged = [process.stdout.readline()]
        threading.Timer(seconds, process.kill).start()
        acknowledged += process.stdout.readlines()
    assert -signal.SIGKILL == process.returncode
    whole = [line.strip() for line in acknowledged if line.endswith("\n")]
    return [f"{line}, {half} half" for line in whole for half in ("first", "second")]


def test_all_of_them_write_while_one_writer_after_the_other_is_killed(place: Path) -> None:
    over = threading.Event()
    written: dict[str, list[str]] = {name: [] for name in ("ana", "ben", "command", "notebook")}
    with ThreadPoolExecutor() as pool:
        working = [
            pool.submit(write_as_agent, place, "ana", over, written["ana"]),
            pool.submit(write_as_agent, place, "ben", over, written["ben"]),
            pool.submit(write_by_commands, place, over, written["command"]),
            pool.submit(write_in_notebook, place, over, written["notebook"]),
            pool.submit(ask_shell, place, over),
        ]
        try:
            wait_until(lambda: all(written.values()) or any(each.done() for each in working))
            killed = [write_until_killed(place, f"killed {turn}", SECONDS / KILLS) for turn in range(KILLS)]
            before = {name: len(facts) for name, facts in written.items()}
            wait_until(lambda: all(len(written[name]) > count for name, count in before.items()))
        finally:
            over.set()
        for each in working:
            each.result(120)

    with graphstore.open(place) as store:
        assert store.verify().ok
        found = Counter(node.text for node in store.nodes(kind="fact"))
    acknowledged = [fact for facts in (*written.values(), *killed) for fact in facts]
    assert {} == {fact: found[fact] for fact in acknowledged if found[fact] != 1}
    assert {1} == set(found.values())
    halves = Counter(text.rpartition(", ")[0] for text in found if text.endswith(" half"))
    assert {2} == set(halves.values())


def wait_until(holds: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


@contextmanager
def followed_log(place: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An import that goes on with what is written into a folder."""
    words = [*RUN, "import", "claude", str(place), str(log), "--follow", "--every", "0.2"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(30)


def test_a_notebook_and_a_command_write_while_an_import_follows_a_folder(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    line = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1", "cwd": "/work"}
    message = {"timestamp": "2026-01-05T10:00:00Z", "message": {"role": "user", "content": "mend the login"}}
    with graphstore.open(place) as store, followed_log(place, log):
        done = subprocess.run(
            [*RUN, "add", str(place), "fact", "{}", "--id", "by-command"], capture_output=True, text=True
        )
        store.add_node("fact", {}, id="by-notebook")
        (log / "s1.jsonl").write_text(json.dumps(line | message) + "\n", encoding="utf-8")
        wait_until(lambda: bool(store.nodes(kind="session")))

        assert (0, "") == (done.returncode, done.stderr)
        assert {"first", "by-command", "by-notebook"} == {node.id for node in store.nodes(kind="fact")}


def test_commands_write_the_folder_of_a_server_and_its_clients_read_that_at_once(place: Path) -> None:
    with serve_in_process(place) as (process, url):
        token = (place / "token").read_text().strip()
        with graphstore.open(url, token=token) as client, graphstore.open(place) as store:
            store.add_node("fact", {}, id="by-folder")
            client.add_node("fact", {}, id="by-address")

            assert [] == [
                name for name in ("by-folder", "by-address") if client.node(name) != store.node(name)
            ]
        process.kill()
    with graphstore.open(place) as store:  # it starts no server in its place
        assert {"first", "by-folder", "by-address"} == {node.id for node in store.nodes()}
    assert process.wait(10) == -signal.SIGKILL


def test_no_server_is_started_by_an_agent_or_a_command(place: Path) -> None:
    with agent(stdio(place)) as one:
        one.ask("remember", statement="the deploy is on friday")
        subprocess.run([*RUN, "add", str(place), "fact", "{}"], check=True, capture_output=True)

    assert [] == [name for name in ("server.json", "server.log", "token") if (place / name).exists()]


@pytest.mark.parametrize("more", [{"share": True}, {"at_least": 1}, {"at_least": "2026-01-01"}])
def test_options_of_release_0_1_have_no_effect_and_say_so(place: Path, more: dict[str, Any]) -> None:
    with (
        pytest.warns(DeprecationWarning, match=f"^{next(iter(more))}= of graphstore.open has no effect"),
        graphstore.open(place, **more) as store,
    ):
        assert "first" == store.node("first").id
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graphstore.open(place, share=False, at_least=None).close()


def test_an_agent_that_was_set_up_for_release_0_1_still_starts(place: Path) -> None:
    with agent(stdio(place, "--no-share")) as one:
        assert "first" == one.ask("get", id="first")["thing"]["id"]
    assert "--no-share" not in subprocess.run([*RUN, "mcp", "--help"], capture_output=True, text=True).stdout


def test_an_agent_makes_a_new_store(tmp_path: Path) -> None:
    place = tmp_path / "below" / "new.gs"
    with agent(stdio(place)) as one:
        one.ask("remember", statement="it is new")
    with graphstore.open(place) as store:
        assert ["it is new"] == [node.text for node in store.nodes()]


def test_a_long_call_and_many_at_once_are_answered(place: Path) -> None:
    calls = [("small", "first")] * 100 + [("large", "x" * 3_000_000)]
    with agent(stdio(place)) as one, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda each: one.call("get", id=each[1]).is_error, calls))
    assert [False] * 100 + [True] == answers


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    found = subprocess.run(
        [*RUN, "mcp", str(tmp_path / "notes")], capture_output=True, text=True, check=False
    )

    assert 1 == found.returncode
    assert "no store" in found.stderr
    assert ["a.txt"] == sorted(each.name for each in (tmp_path / "notes").iterdir())


def test_a_server_without_clients_ends_by_itself(place: Path) -> None:
    with serve_in_process(place, "--idle", "0.5") as (process, url):
        token = (place / "token").read_text().strip()
        with graphstore.open(url, token=token) as client:
            time.sleep(1.5)
            assert process.poll() is None
            client.add_node("fact", {}, id="one")
        assert 0 == process.wait(30)
    assert not (place / "server.json").exists()


def test_a_transaction_of_a_server_that_is_killed_is_lost_as_a_whole(place: Path) -> None:
    with serve_in_process(place) as (process, url):
        client = graphstore.open(url, token=(place / "token").read_text().strip())
        with pytest.raises(graphstore.EngineError, match=re.escape(url)), client.transaction():
            client.add_node("fact", {}, id="lost")
            process.kill()
            process.wait(10)
            client.add_node("fact", {}, id="lost-too")
    with graphstore.open(place) as store:
        assert ["first"] == [node.id for node in store.nodes()]
