"""Many processes on one folder, none of which was told to serve it: agents, a notebook, a shell, commands, while whoever holds it is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import LockedError
from graphstore.core.folder import server_file

pytestmark = [pytest.mark.rest, pytest.mark.in_process("it starts servers of its own")]
RUN = [sys.executable, "-m", "graphstore"]
SECONDS = float(os.environ.get("GRAPHSTORE_SHARING_SECONDS", "12"))
KILLS = 5


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "memory.gs"
    with graphstore.open(folder) as store:
        store.add_node("fact", {"text": "first"}, id="first")
    yield folder
    end_of(folder)


def end_of(folder: Path) -> None:
    record = server_file.served(folder)
    if record is not None and record["pid"] != os.getpid():
        with suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGTERM)
        until = time.monotonic() + 20
        while server_file.holder(folder) is not None and time.monotonic() < until:
            time.sleep(0.02)


async def agent(
    folder: Path, number: int, over: threading.Event, kept: list[str], refused: list[str]
) -> None:
    """One `graphstore mcp` by the official client, which remembers until it is time."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    how = StdioServerParameters(
        command=sys.executable, args=["-m", "graphstore", "mcp", str(folder)], env=dict(os.environ)
    )
    async with stdio_client(how) as streams, ClientSession(*streams) as session:
        await session.initialize()
        turn = 0
        while not over.is_set():
            text = f"agent {number} says {turn}"
            turn += 1
            found = await session.call_tool("remember", {"statement": text})
            if found.is_error:
                refused.append(found.content[0].text)
            else:
                kept.append(text)


@contextmanager
def graphstore_served(folder: Path) -> Iterator[Any]:
    """The store through the server that is just starting."""
    until = time.monotonic() + 30
    while server_file.serving(folder, wait=0) is None and time.monotonic() < until:
        time.sleep(0.01)
    with graphstore.open(folder, share=True) as store:
        yield store


OPENED = "import graphstore; store = graphstore.open({folder!r}, share=True); turn = 0"
CELL = """
store.add_node("fact", {"text": f"notebook says {turn}"})
print(f"notebook says {turn}", flush=True)
turn += 1
"""


def notebook(folder: Path, over: threading.Event, kept: list[str]) -> None:
    """A kernel of Jupyter, in which one cell after the other writes."""
    from jupyter_client.manager import start_new_kernel

    manager, kernel = start_new_kernel(startup_timeout=120)

    def run(cell: str) -> None:
        shown: list[Any] = []
        reply = kernel.execute_interactive(cell, timeout=120, output_hook=shown.append)
        assert reply["content"]["status"] == "ok", reply["content"]
        kept.extend(
            "".join(
                one["content"]["text"]
                for one in shown
                if one["msg_type"] == "stream" and one["content"]["name"] == "stdout"
            ).splitlines()
        )

    try:
        with graphstore_served(folder):  # by another: who holds the store is killed
            pass
        run(OPENED.format(folder=str(folder)))
        while not over.is_set():
            run(CELL)
        run("store.close()")
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)


@contextmanager
def shell(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A shell that is asked now and then."""
    with subprocess.Popen(
        [*RUN, "shell", str(folder), "--mode", "json", "--keep-going"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def questions(asked: subprocess.Popen[str], over: threading.Event, count: list[int]) -> None:
    """Ask a shell one question after the other."""
    assert asked.stdin is not None
    while not over.is_set():
        asked.stdin.write("MATCH (n:Node {id: 'first'}) RETURN n.id AS id;\n")
        asked.stdin.flush()
        count.append(1)
        over.wait(0.5)


def commands(folder: Path, over: threading.Event, kept: list[str]) -> None:
    """One short command after the other."""
    turn = 0
    while not over.is_set():
        text = f"command says {turn}"
        turn += 1
        content = json.dumps({"text": text})
        found = subprocess.run(
            [*RUN, "add", str(folder), "fact", content], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        kept.append(text)


def killed(folder: Path, times: int, seconds: float, agents: list[list[str]]) -> int:
    """Kill the holder -9 so many times, whoever it is, each time when every agent and the notebook have been answered since the last. Returns how often."""
    for done in range(times):
        time.sleep(seconds / (times + 1))
        all_answered(agents)
        until, pid = time.monotonic() + 30, None
        while pid is None:
            record = server_file.served(folder)
            pid = record["pid"] if record is not None and record["url"] is not None else None
            time.sleep(0.005)
            if time.monotonic() > until:
                return done
        os.kill(pid, signal.SIGKILL)
    return times


def all_answered(agents: list[list[str]]) -> None:
    """Wait until each of them has had an answer from now on."""
    before, until = [len(one) for one in agents], time.monotonic() + 60
    while (
        any(len(one) == known for one, known in zip(agents, before, strict=True)) and time.monotonic() < until
    ):
        time.sleep(0.02)


def test_all_of_them_write_while_the_holder_is_killed_again_and_again(place: Path) -> None:
    over = threading.Event()
    agents: list[list[str]] = [[] for _ in range(4)]
    by_command: list[str] = []
    by_notebook: list[str] = []
    refused: list[str] = []
    failed: list[BaseException] = []

    def guarded(work: Any, *args: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*args)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    threads = [
        guarded(lambda number: asyncio.run(agent(place, number, over, agents[number], refused)), number)
        for number in range(4)
    ]
    threads.append(guarded(commands, place, over, by_command))
    threads.append(guarded(notebook, place, over, by_notebook))
    with shell(place) as asked:
        count: list[int] = []
        threads.append(guarded(questions, asked, over, count))
        writers = [*agents, by_notebook]
        times = killed(place, KILLS, SECONDS, writers)
        time.sleep(SECONDS / (KILLS + 1))
        all_answered(writers)
        over.set()
        threads[-1].join(60)
        answers, _ = asked.communicate("", timeout=120)
        for thread in threads:
            thread.join(60)
    assert (refused, failed) == ([], [])
    assert times == KILLS
    assert answers.count('"first"') == len(count) > 1, answers
    end_of(place)
    with graphstore.open(place) as store:
        assert store.verify().ok
        there = Counter(node.text for node in store.nodes(kind="fact"))
    acknowledged = [*by_notebook, *by_command, *(text for one in agents for text in one)]
    assert all([*agents, by_command, by_notebook]), (
        list(map(len, agents)),
        len(by_command),
        len(by_notebook),
    )
    assert {text: there[text] for text in acknowledged if there[text] != 1} == {}
    assert max(there.values()) == 1, there.most_common(3)


def test_a_holder_that_shares_lets_others_in_and_one_that_does_not_is_named_with_both_ways_out(
    place: Path,
) -> None:
    def added(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RUN, "add", str(place), "fact", "{}", "--id", name], capture_output=True, text=True, check=False
        )

    with graphstore.open(place, share=True) as store:
        found = added("by_command")
        assert found.returncode == 0, found.stderr
        assert store.node("by_command") is not None
        with graphstore.open(
            server_file.serving(place)[0], token=(place / "token").read_text().strip()
        ) as other:
            other.add_node("fact", {"n": 1}, id="by_url")
        assert store.node("by_url") is not None
        store.add_node("fact", {"n": 2}, id="here")
    assert server_file.served(place) is None
    with graphstore.open(place):
        found = added("refused")
    assert found.returncode == 1
    assert "share=True" in found.stderr and f"graphstore serve {place}" in found.stderr
    assert f"pid {os.getpid()}" in found.stderr
    with graphstore.open(place) as store:
        assert "refused" not in {node.id for node in store.nodes(kind="fact")}
        assert store.verify().ok


def test_a_server_that_nobody_is_connected_to_ends_by_itself_and_comes_again(place: Path) -> None:
    with subprocess.Popen(
        [*RUN, "serve", str(place), "--port", "0", "--idle", "0.5"], stdout=subprocess.DEVNULL
    ) as server:
        until = time.monotonic() + 30
        while server_file.serving(place, wait=0) is None and time.monotonic() < until:
            time.sleep(0.01)
        with graphstore.open(place) as store:
            assert store.url
            time.sleep(1.5)
            assert server.poll() is None  # somebody is connected
            store.add_node("fact", {"n": 1}, id="one")
            store._line._drop()  # as a connection that was silent for long
            assert server.wait(30) == 0
            assert server_file.served(place) is None
            store.add_node("fact", {"n": 2}, id="two")
            assert store.node("one") is not None
    assert server_file.how_started(place) == "in the background"


def test_a_server_that_somebody_starts_takes_the_place_of_one_in_the_background(place: Path) -> None:
    with (
        subprocess.Popen(
            [*RUN, "serve", str(place), "--port", "0", "--idle", "60"], stdout=subprocess.DEVNULL
        ) as behind,
        graphstore_served(place) as store,
    ):
        store.add_node("fact", {"n": 1}, id="one")
        with subprocess.Popen(
            [*RUN, "serve", str(place), "--port", "0"], stdout=subprocess.DEVNULL
        ) as server:
            assert behind.wait(30) == 0
            store.add_node("fact", {"n": 2}, id="two")
            assert server_file.served(place)["pid"] == server.pid
            assert {"one", "two"} <= {node.id for node in store.nodes(kind="fact")}
            server.send_signal(signal.SIGTERM)


def test_a_killed_holder_loses_the_open_transaction_alone_and_says_so(place: Path) -> None:
    with subprocess.Popen([*RUN, "serve", str(place), "--port", "0"], stdout=subprocess.DEVNULL) as server:
        until = time.monotonic() + 30
        while server_file.serving(place, wait=0) is None and time.monotonic() < until:
            time.sleep(0.01)
        with graphstore.open(place, share=True) as store:
            with pytest.raises(graphstore.EngineError, match="do it again") as raised, store.transaction():
                store.add_node("fact", {"n": 1}, id="lost")
                server.kill()
                server.wait()
                store.add_node("fact", {"n": 2}, id="lost_too")
            assert raised.value.outcome == "not kept"
            store.add_node("fact", {"n": 3}, id="kept")
            assert {node.id for node in store.nodes(kind="fact")} == {"first", "kept"}


def test_who_wants_no_sharing_holds_the_store_alone(place: Path) -> None:
    with subprocess.Popen(
        [*RUN, "mcp", str(place), "--no-share"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as alone:
        until = time.monotonic() + 30
        while server_file.holder(place) is None and time.monotonic() < until:
            time.sleep(0.01)
        assert server_file.holder(place) == alone.pid
        with pytest.raises(LockedError, match="mcp"):
            graphstore.open(place)
        alone.communicate(b"", timeout=30)


def test_an_import_that_goes_on_lets_others_write_beside_it(place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    watch = [*RUN, "import", "claude", str(place), str(log), "--follow", "--every", "0.2"]
    with subprocess.Popen(watch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with graphstore_served(place):
            pass
        added = subprocess.run(
            [*RUN, "add", str(place), "fact", '{"text": "beside"}'], capture_output=True, text=True
        )
        line = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1", "cwd": "/work"}
        said = {"timestamp": "2026-01-05T10:00:00Z", "message": {"role": "user", "content": "mend the login"}}
        (log / "s1.jsonl").write_text(json.dumps(line | said) + "\n", encoding="utf-8")
        until, kinds = time.monotonic() + 60, Counter()
        while time.monotonic() < until and not kinds["session"]:
            with graphstore.open(place, share=True) as store:
                kinds = Counter(node.kind for node in store.nodes())
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)

    assert (0, 0) == (added.returncode, code), added.stderr
    assert {"session", "fact"} <= set(kinds) and 2 == kinds["fact"]


def test_what_is_no_store_is_refused_as_ever(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    found = subprocess.run(
        [*RUN, "mcp", str(tmp_path / "notes")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert "no store" in found.stderr
    assert sorted(each.name for each in (tmp_path / "notes").iterdir()) == ["a.txt"]


def test_a_damaged_store_says_what_is_wrong_with_it(place: Path) -> None:
    segment = place / "journal" / "00000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"first", b"worst"))
    (place / "index.bin").unlink(missing_ok=True)
    found = subprocess.run(
        [*RUN, "mcp", str(place)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert found.returncode == 1
    assert "00000001.jsonl line 2" in found.stderr, found.stderr
