"""What a store does on Windows and macOS: real processes, to whose code Linux looks like the other system (`support/other_system.py`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

import graphstore
from graphstore.values.file_access import parts_below
from tests.conftest import Clock
from tests.support.old_release import open_old
from tests.support.other_system import ROOT, TRACE, environment

pytestmark = [
    pytest.mark.in_process("starts processes of its own"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems are what they are"),
    pytest.mark.rest,
]
SYSTEMS = pytest.mark.parametrize("system", ["windows", "macos"])
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process of a system: a function of the worker, or another module. Those that still run at the end are killed."""
    started = []

    def start(system: str, what: str, *words: object, **more: str) -> subprocess.Popen[str]:
        module = ["graphstore"] if what == "graphstore" else ["tests.ledger.other_system_worker", what]
        process = subprocess.Popen(
            [sys.executable, "-m", *module, *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
            cwd=ROOT, env={**environment(system, tmp_path / system), **more},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run(start: Start) -> Callable[..., str]:
    """Run such a process to its end, which must be a good one, and return what it printed."""

    def run(system: str, what: str, *words: object, given: str = "", **more: str) -> str:
        process = start(system, what, *words, **more)
        out, errors = process.communicate(given, timeout=300)
        assert 0 == process.returncode, out + errors
        return out

    return run


def count(path: Path) -> int:
    with graphstore.open(path, read_only=True) as store:
        assert store.verify().ok
        return int(store.stats()["nodes"])


def files_with(path: Path, text: bytes) -> list[str]:
    return [file.name for file in path.rglob("*") if file.is_file() and text in file.read_bytes()]


def test_the_code_sees_the_other_system_alone(run):
    assert "win32" == run("windows", "names", "").strip()
    seen = run("macos", "names", "").split()
    assert "darwin" == seen[0] and "fdatasync" not in seen and "fcntl" in seen


@SYSTEMS
def test_every_module_can_be_imported(system, run):
    assert "" == run(system, "modules", "")


@SYSTEMS
def test_a_store_is_written_read_queried_copied_and_erased_from(system, run, tmp_path):
    run(system, "story", tmp_path / "memory.gs")

    assert [] == files_with(tmp_path / "memory.gs", b"SECRET of mine")
    assert [] == files_with(tmp_path / "memory.gs", b"gone soon")
    left = {file.name for file in tmp_path.iterdir()} - {system}
    assert {"memory.gs", "memory.gs.dump", "memory.gs.restored", "memory.gs.empty"} == left


@SYSTEMS
def test_two_processes_write_at_once(system, start, tmp_path):
    writers = [start(system, "write", tmp_path / "memory.gs", name, 40) for name in ("ana", "ben")]
    for writer in writers:
        out, errors = writer.communicate(timeout=300)
        assert 0 == writer.returncode, out + errors

    assert 80 == count(tmp_path / "memory.gs")


@SYSTEMS
def test_a_killed_writer_stops_nobody(system, start, run, tmp_path):
    killed = start(system, "write", tmp_path / "memory.gs", "ana", 100_000)
    while not (tmp_path / "memory.gs" / "ledger.db-wal").exists():
        assert killed.poll() is None
    killed.kill()
    killed.communicate()
    run(system, "write", tmp_path / "memory.gs", "ben", 5)

    assert count(tmp_path / "memory.gs") >= 5


@SYSTEMS
def test_a_store_of_the_first_release_is_upgraded(system, run, tmp_path):
    path = tmp_path / "memory.gs"
    with open_old(path, clock=Clock("2026-01-01")) as store:
        store.record_event("error", "SECRET of mine", id="secret")
        store.bulk_load(versions=[{"node_id": f"n{n}", "content": {"n": n}} for n in range(300)])
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    told = run(system, "upgrade", path)

    assert "was upgraded" in told and "300" == told.split()[-1]
    assert not (path / "journal").exists() and not list(path.glob("journal-0.1*"))
    assert [] == files_with(path, b"SECRET of mine")


@SYSTEMS
def test_a_store_is_served_and_asked_by_a_client(system, start, run, tmp_path):
    path = tmp_path / "memory.gs"
    graphstore.open(path).close()
    server = start(system, "graphstore", "serve", path, "--port", "0", PYTHONIOENCODING="cp1252")
    url = server.stdout.readline().partition(" on ")[2].partition(" ")[0].strip()
    token = (path / "token").read_text(encoding="utf-8").strip()

    assert "2" == run(system, "ask", url, token).strip()
    second = start(system, "graphstore", "serve", path, "--port", "0")
    assert "served already" in second.communicate(timeout=120)[1]
    if system == "windows":  # where to end a process is to kill it
        server.kill()
    else:
        server.send_signal(signal.SIGTERM)
    server.communicate(timeout=120)
    third = start(system, "graphstore", "serve", path, "--port", "0")
    assert url.rpartition(":")[0] in third.stdout.readline()
    third.send_signal(signal.SIGINT)
    _, errors = third.communicate(timeout=120)
    assert 0 == third.returncode, errors
    assert not (path / "server.json").exists()
    assert 2 == count(path)


def test_windows_refuses_a_folder_of_files_and_takes_files_in_calls(start, tmp_path):
    graphstore.open(tmp_path / "memory.gs").close()
    refused = start(
        "windows", "graphstore", "serve", tmp_path / "memory.gs", "--port", "0", "--files", tmp_path
    )
    _, errors = refused.communicate(timeout=120)

    assert 0 != refused.returncode
    assert "a client sends and gets files in its calls" in errors.replace("\n", " ")
    assert "Traceback" not in errors


@SYSTEMS
def test_erasing_beside_a_process_with_the_tables_open_is_finished(system, start, run, tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.record_event("error", "SECRET of mine", id="secret")
        store.add_node("fact", {"n": 1}, id="stays")
    holder = start(system, "tables", path)
    assert "ready\n" == holder.stdout.readline(), holder.communicate()
    told = run(system, "erase", path, "secret")
    if system == "windows":
        assert told.startswith("kept cannot remove contents from ")
        assert "being used by another process" in told and "Open the store again" in told
    else:
        assert "" == told
    out, errors = holder.communicate("\n", timeout=300)
    assert 0 == holder.returncode, errors
    assert "1" == out.strip()
    assert [] == files_with(path, b"SECRET of mine")


def test_a_file_that_is_open_for_a_moment_is_replaced_on_windows_when_it_is_closed(run, tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    assert "True" == run("windows", "replace", tmp_path / "file").strip()
    assert b"new" == (tmp_path / "file").read_bytes()
    assert {"file", "windows"} == {file.name for file in tmp_path.iterdir()}


@SYSTEMS
def test_reading_is_held_to_a_folder(system, run, tmp_path):
    folder = tmp_path / "files"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_bytes(b"mine")
    (tmp_path / "outside").write_bytes(b"not mine")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "linked").symlink_to(tmp_path)

    assert ["mine", "PermissionError", "PermissionError", "PermissionError"] == run(
        system, "held", folder
    ).split()


@pytest.mark.parametrize("path", ["C:secret", "\\secret", "D:\\files\\a", "..\\secret", "C:\\files2\\a"])
def test_a_path_of_windows_that_leads_out_of_a_folder_is_not_below_it(path):
    folder = PureWindowsPath("C:\\files")

    assert parts_below(folder, PureWindowsPath(path)) is None
    assert (
        ("a", "b") == parts_below(folder, PureWindowsPath("a\\b")) == parts_below(folder, folder / "a" / "b")
    )


@SYSTEMS
def test_the_command_line_prints_on_a_console_without_utf8(system, run, tmp_path):
    path, console = tmp_path / "memory.gs", {"PYTHONIOENCODING": "cp1252", "USER": "", "USERNAME": "ana"}
    run(system, "graphstore", "init", path, **console)
    run(system, "graphstore", "add-node", path, "fact", '{"text": "Žofie → ∅"}', "--id", "n1", **console)
    shown = run(system, "graphstore", "get", path, "n1", **console)
    assert r"ofie \u2192 \u2205" in shown
    assert "ana" in run(system, "graphstore", "changes", path, **console)
    run(system, "graphstore", "query", path, "MATCH (n) RETURN n.id, n.content", **console)
    run(system, "graphstore", "query", path, "MATCH (n) RETURN n.id, n.content", "--json", **console)
    run(system, "graphstore", "export", path, tmp_path / "memory.dump", **console)
    run(system, "graphstore", "restore", tmp_path / "again.gs", tmp_path / "memory.dump", **console)
    run(system, "graphstore", "export", path, tmp_path / "parquet", "--format", "parquet", **console)
    assert "sound" in run(system, "graphstore", "verify", tmp_path / "again.gs", **console)


@SYSTEMS
def test_an_agent_is_served_over_standard_input_and_output(system, start, tmp_path):
    served = start(system, "graphstore", "mcp", tmp_path / "memory.gs", PYTHONIOENCODING="cp1252")

    def ask(method: str, number: int | None, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        served.stdin.write(json.dumps(message | ({} if number is None else {"id": number})) + "\n")
        served.stdin.flush()
        return None if number is None else json.loads(served.stdout.readline())["result"]

    ask(
        "initialize",
        1,
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "raw", "version": "1"},
    )
    ask("notifications/initialized", None)
    remembered = ask("tools/call", 2, name="remember", arguments={"statement": "Žofie → ∅", "id": "n1"})
    assert not remembered.get("isError"), remembered
    found = ask("tools/call", 3, name="search", arguments={"query": "Žofie"})
    assert "Žofie → ∅" in json.dumps(found, ensure_ascii=False)
    _, errors = served.communicate(timeout=120)
    assert 0 == served.returncode, errors
    assert 1 == count(tmp_path / "memory.gs")


def test_macos_writes_through_the_cache_of_the_disk(run, tmp_path):
    run("macos", "story", tmp_path / "memory.gs")

    trace = Path(environment("macos", tmp_path / "macos")[TRACE])
    assert "F_FULLFSYNC" in trace.read_text(encoding="utf-8")
    assert TRACE not in os.environ
