"""Session files told while they are written: closed segments at once, the last when the session is idle; whatever is killed, nothing twice."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, sessions
from graphstore.sessions import segment_node, session_node
from tests.conftest import Clock, shared_data
from tests.sessions.test_ingesting import append, graph, transactions
from tests.support.served import TOKENS, serve_in_process, serve_in_thread
from tests.support.session_files import START, header, said, write

pytestmark = pytest.mark.in_process("follows files in the process of the store")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def file(tmp_path: Path, clock: Clock) -> Path:
    """A session that has just begun."""
    clock.set(START + timedelta(minutes=2))
    (tmp_path / "live").mkdir()
    return write(tmp_path / "live" / "one.jsonl", header("one"), said("a", None, 1))


def starts(done: sessions.Ingested) -> tuple[int, int]:
    return done.new, done.revised


def test_a_closed_segment_is_told_at_once_and_the_last_when_the_session_is_idle(
    store: GraphStore, clock: Clock, file: Path
) -> None:
    following = sessions.Following(store, file)
    assert (0, 0) == starts(following.ingest_new())
    clock.set(START + timedelta(minutes=31))
    append(file, said("b", "a", 30))

    assert (1, 0) == starts(following.ingest_new())
    assert [segment_node("one", "a")] == store.node(session_node("one")).content["nodes"]
    clock.move(minutes=9, seconds=59)
    assert (0, 0) == starts(following.ingest_new())
    clock.move(seconds=1)
    assert (1, 0) == starts(following.ingest_new())
    assert [segment_node("one", each) for each in "ab"] == store.node(session_node("one")).content["nodes"]


def test_of_a_growing_session_every_warning_so_far_is_counted(
    store: GraphStore, clock: Clock, tmp_path: Path
) -> None:
    damaged = [b"{"] * 1_500
    lines = (header("one"), said("a", None, 1), *damaged, said("b", "a", 2), said("c", "b", 30), b"{")
    file = write(tmp_path / "one.jsonl", *lines)
    clock.set(START + timedelta(minutes=31))
    sessions.Following(store, file).ingest_new()

    assert {"damaged line": 1_500} == store.node(session_node("one")).content["warnings"]


def test_a_new_warning_is_told_also_when_nothing_else_is_new(
    store: GraphStore, clock: Clock, file: Path
) -> None:
    following = sessions.Following(store, file)
    clock.move(minutes=10)
    following.ingest_new()
    with open(file, "ab") as sink:
        sink.write(b"no object\n")

    [told] = following.ingest_new().sessions
    assert (told.new, told.revised, told.warnings) == (0, 0, ("damaged line",))
    assert () == following.ingest_new().sessions


def test_looking_when_nothing_happened_writes_nothing(store: GraphStore, clock: Clock, file: Path) -> None:
    following = sessions.Following(store, file.parent)
    clock.move(minutes=20)
    following.ingest_new()
    count = transactions(store)

    for _ in range(3):
        clock.move(minutes=20)
        assert () == following.ingest_new().sessions
    assert count == transactions(store)


def test_a_session_that_goes_on_after_it_was_idle_grows(store: GraphStore, clock: Clock, file: Path) -> None:
    following = sessions.Following(store, file)
    clock.move(minutes=10)
    assert (1, 0) == starts(following.ingest_new())
    append(file, said("b", "a", 8))  # written within the pause, seen later

    assert (0, 0) == starts(following.ingest_new())
    clock.move(minutes=10)
    assert (0, 1) == starts(following.ingest_new())
    assert "session_grown" == store.node(segment_node("one", "a")).trigger


def test_a_torn_line_is_read_again_when_it_is_whole(store: GraphStore, clock: Clock, file: Path) -> None:
    clock.set("2027-01-01")
    line = json.dumps(said("b", "a", 3)).encode() + b"\n"
    with open(file, "ab") as sink:
        sink.write(line[:30])
    following = sessions.Following(store, file)
    assert () == following.ingest_new().sessions
    with open(file, "ab") as sink:
        sink.write(line[30:])

    assert () == following.ingest_new().sessions
    clock.move(minutes=10)
    assert (1, 0) == starts(following.ingest_new())
    assert (2, {}) == tuple(store.node(session_node("one")).content[name] for name in ("entries", "warnings"))


def test_files_that_appear_are_followed(store: GraphStore, clock: Clock, file: Path) -> None:
    following = sessions.Following(store, file.parent)
    following.ingest_new()
    write(file.with_name("two.jsonl"), header("two"), said("x", None, 1), said("y", "x", 40))
    clock.set(START + timedelta(minutes=41))

    following.ingest_new()

    assert [segment_node("two", "x")] == store.node(session_node("two")).content["nodes"]


def test_a_file_that_vanishes_is_no_harm(store: GraphStore, clock: Clock, file: Path) -> None:
    following = sessions.Following(store, file)
    following.ingest_new()
    file.unlink()
    clock.move(minutes=20)

    assert () == following.ingest_new().sessions


def test_what_fails_is_reported_once_and_tried_again(store: GraphStore, clock: Clock, file: Path) -> None:
    class Moody:
        version, well = "moody", False

        def __call__(self, work: sessions.Work) -> Any:
            if not self.well:
                raise RuntimeError("not now")
            return sessions.builtin(work)

    analyser = Moody()
    following = sessions.Following(store, file, analyze=analyser)
    append(file, said("b", "a", 30))
    clock.set(START + timedelta(minutes=31))
    assert 1 == len(following.ingest_new().damaged)
    append(file, said("c", "b", 31))
    assert () == following.ingest_new().damaged
    analyser.well = True
    clock.move(minutes=10)

    assert (2, 0) == starts(following.ingest_new())


def test_following_ends_where_ingesting_does(tmp_path: Path, clock: Clock) -> None:
    """Every session of the fixtures written line by line, looked at after each, with the clock where the line says it is."""
    files = sorted(shared_data("pi-brain-fixtures").glob("*.jsonl"))
    with (
        graphstore.open(":memory:", clock=clock) as live,
        graphstore.open(":memory:", clock=clock) as once,
    ):
        following = sessions.Following(live, tmp_path)
        for file in files:
            for line in file.read_bytes().splitlines(keepends=True):
                with open(tmp_path / file.name, "ab") as sink:
                    sink.write(line)
                clock.set(max(clock.now, START))
                following.ingest_new()
        clock.move(minutes=10)
        following.ingest_new()
        sessions.ingest(once, tmp_path)

        assert graph(once) == graph(live)


def test_a_place_that_is_not_there_is_refused(store: GraphStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="nothing at"):
        sessions.Following(store, tmp_path / "nowhere")
    with pytest.raises(InvalidError, match="above zero"):
        sessions.Following(store, tmp_path, idle=timedelta(0))


# ---- processes that are killed -------------------------------------------------------------------

WRITER = """
import sys, time
lines = open(sys.argv[1], "rb").read().splitlines(keepends=True)
for number, line in enumerate(lines):
    with open(sys.argv[2], "ab", buffering=0) as sink:
        cut = len(line) // 2 if number % 7 == 0 else len(line)
        sink.write(line[:cut])
        time.sleep(0.001)
        sink.write(line[cut:])
    time.sleep(0.004)
"""

SLOW = """
import os, time
from graphstore.sessions.sessions import builtin

class Slow:
    version = "slow-1"
    def __call__(self, work):
        open(os.environ["MARK"], "a").write(work.segment.start_entry_id + "\\n")
        time.sleep(float(os.environ["PAUSE"]))
        return builtin(work)

analyse = Slow()
"""


def command(*words: object, **more: str) -> subprocess.Popen[bytes]:
    """The command line as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "graphstore", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        cwd=more.get("HERE", ROOT),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def until(holds: Callable[[], bool], process: subprocess.Popen[Any], seconds: float = 60) -> None:
    """Wait for something that a process does."""
    end = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


def segments(path: Path) -> list[str]:
    """What a store that another process may be writing has of segments, with no lock taken."""
    if not (path / "ledger.db").exists():
        return []
    with graphstore.open(path, read_only=True) as store:
        return [node.id for node in store.as_of(valid="9999-12-31").nodes("segment")]


def told_at_once(path: Path, store: Path) -> dict[str, Any]:
    with graphstore.open(store) as once:
        sessions.ingest(once, path)
        return graph(once)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """What is still running at the end is ended."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        if process.poll() is None:
            kill(process)


@pytest.mark.rest
def test_a_follower_killed_while_a_session_is_written_tells_nothing_twice(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    source = sorted(shared_data("pi-v3-tree").glob("*.jsonl"))[0]
    live, path = tmp_path / "live", tmp_path / "team.gs"
    live.mkdir()
    (live / source.name).touch()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(source), str(live / source.name)])
    processes.append(writer)
    for wanted in itertools.count(1):
        follower = command("import", "pi", path, live, "--follow", "--every", "0.05")
        processes.append(follower)
        until(lambda least=wanted: len(segments(path)) >= min(least, 7), follower)  # type: ignore[misc]
        kill(follower)
        if writer.poll() is not None:
            break
    before = segments(path)
    assert len(before) == len(set(before))

    with graphstore.open(path) as store:
        sessions.ingest(store, live)
        count = transactions(store)
        sessions.ingest(store, live)
        assert count == transactions(store)
        assert store.verify().ok
        found = graph(store)
    assert told_at_once(live, tmp_path / "once.gs") == found


@pytest.mark.rest
@pytest.mark.parametrize("after", range(1, 12, 2))
def test_an_import_killed_anywhere_loses_nothing(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], after: int
) -> None:
    """Killed while it analyses one of the twelve segments: between two sessions, and in the middle of one."""
    files, path, mark = shared_data("pi-v3-tree"), tmp_path / "team.gs", tmp_path / "mark"
    (tmp_path / "slow_analyser.py").write_text(SLOW)
    words = ("import", "pi", path, files, "--analyzer", "slow_analyser:analyse")
    process = command(*words, MARK=str(mark), PAUSE="0.05", HERE=str(tmp_path))
    processes.append(process)
    until(lambda: mark.exists() and len(mark.read_text().splitlines()) >= after, process)
    kill(process)
    told = segments(path)
    # the first session has eight segments, each of the others one
    assert len(told) in ((0,) if after <= 8 else (after - 1, after))

    again = command(*words, MARK=str(mark), PAUSE="0", HERE=str(tmp_path))
    processes.append(again)
    assert 0 == again.wait(60)
    with graphstore.open(path) as store:
        found = graph(store)
        assert (5, 5) == (len(store.nodes("session")), store.stats()["transactions"])
    with graphstore.open(tmp_path / "once.gs") as once:
        sessions.ingest(once, files)
        for id, (kind, content, *more) in graph(once)["nodes"].items():
            if "analyzerVersion" in content.get("metadata", content):
                content.get("metadata", content)["analyzerVersion"] = "slow-1"
            assert [kind, content, *more] == list(found["nodes"][id])
        assert graph(once)["links"] == found["links"]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_end_from_outside_leaves_everything_committed(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], sign: signal.Signals
) -> None:
    live, path = tmp_path / "live", tmp_path / "team.gs"
    live.mkdir()
    write(live / "one.jsonl", header("one"), said("a", None, 1), said("b", "a", 40))
    process = command("import", "pi", path, live, "--follow", "--every", "0.05")
    processes.append(process)
    until(lambda: len(segments(path)) == 2, process)

    process.send_signal(sign)

    told = process.communicate(timeout=30)[1]
    assert (sign == signal.SIGINT) == (b"what was committed is kept" in told), told
    # interrupted while it runs a text, such as that of a dataclass, Python ends by the signal itself: shells say 130 of both
    assert process.returncode in ((130, -signal.SIGINT) if sign == signal.SIGINT else (0,))
    assert 2 == len(segments(path))


@pytest.mark.rest
def test_a_server_ingests_sessions_while_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    live = write(tmp_path / "live" / "one.jsonl", header("one"), said("a", None, 1))
    graphstore.open(tmp_path / "team.gs").close()
    with serve_in_process(tmp_path / "team.gs", "--follow", str(tmp_path / "live")) as (server, url):
        token = (tmp_path / "team.gs" / "token").read_text().strip()
        with graphstore.open(url, token=token) as client:
            until(lambda: {"one"} == {one.session_id for one in sessions.listed(client, every=True)}, server)
            client.add_node("note", {"by": "another writer"}, id="beside")
            write(tmp_path / "live" / "two.jsonl", header("two"), said("b", None, 1))
            append(live, said("c", "a", 30))
            until(lambda: 2 == len(sessions.listed(client, every=True)), server)
            assert client.node("beside")


def test_a_look_ends_in_its_time_and_the_next_goes_on(
    store: GraphStore, clock: Clock, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / f"{name}.jsonl", header(name), said(f"{name}-a", None, 1))
    clock.set(START + timedelta(days=1))
    following = sessions.Following(store, tmp_path)

    assert [1, 1, 1, 0] == [starts(following.ingest_new(0))[0] for _ in range(4)]


def test_files_that_are_quiet_are_sent_to_a_store_that_others_write(tmp_path: Path) -> None:
    def quiet(file: Path, seconds: float) -> None:
        os.utime(file, (time.time() - seconds, time.time() - seconds))

    (tmp_path / "live").mkdir()
    live = write(tmp_path / "live" / "one.jsonl", header("one"), said("a", None, 1))
    (tmp_path / "live" / "two.jsonl").write_text("no session\n")
    with (
        graphstore.open(":memory:") as store,
        serve_in_thread(store) as url,
        graphstore.open(url, token=TOKENS.write) as client,
    ):
        following = sessions.Following(client, tmp_path / "live")
        assert (0, 0) == starts(following.ingest_new())
        quiet(live, 60)
        quiet(tmp_path / "live" / "two.jsonl", 60)

        done = following.ingest_new()

        assert (1, 0) == starts(done)
        assert ["two.jsonl"] == [Path(one.file).name for one in done.sessions if one.error]
        store.add_node("note", {"by": "another writer"}, id="beside")
        append(live, said("b", "a", 2))
        assert () == following.ingest_new().sessions
        quiet(live, 45)
        assert (0, 1) == starts(following.ingest_new())
        assert () == following.ingest_new().sessions
        assert [segment_node("one", "a")] == [one.id for one in client.nodes("segment")]
