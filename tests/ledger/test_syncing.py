"""A commit that is acknowledged is on the disk: each is synced before the verb returns."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from shutil import which

import pytest

pytestmark = pytest.mark.in_process("traces the calls of another process")

WRITER = """
import os, sys, graphstore
with graphstore.open(sys.argv[1], durability=sys.argv[2]) as store:
    for number in range(6):
        store.add_node("fact", {"n": number})
        os.write(1, b"done\\n")
"""


QUIET = """
import os, sqlite3, sys, time, graphstore
store = graphstore.open(sys.argv[1], durability="interval")
if sys.argv[3:]:
    store.add_node("fact", {"n": 0})
    time.sleep(0.5)
    reader = sqlite3.connect(sys.argv[1] + "/ledger.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM body").fetchall()
    store.add_node("fact", {"n": 1})
    time.sleep(0.5)
store.add_node("fact", {"n": 2})
os.write(1, b"done\\n")
time.sleep(float(sys.argv[2]))
os.write(1, b"rested\\n")
os._exit(0)
"""


def traced(tmp_path: Path, script: str, *arguments: str) -> list[str]:
    """What a process does: `sync` of the WAL or of the ledger, `done`, and `rested`, in order."""
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fdatasync,fsync,write", sys.executable, "-c", script,
         str(tmp_path / "memory.gs"), *arguments],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    words = {
        '"done': "done",
        '"rested': "rested",
        "ledger.db-wal>": "sync",
        "ledger.db>": "sync of the ledger",
    }
    found = []
    for line in trace.read_text().splitlines():
        word = next((word for part, word in words.items() if part in line), None)
        if word is not None and ("sync(" in line or "write(1" in line):
            assert "sync" not in word or "= 0" in line or "unfinished" in line
            found.append(word)
    return found


@pytest.mark.parametrize("reader", [[], ["reader"]], ids=["alone", "beside a reader of an old snapshot"])
def test_a_quiet_store_is_synced_in_the_interval_after_its_last_commit(
    tmp_path: Path, reader: list[str]
) -> None:
    """SQLite with `synchronous=NORMAL` would sync at the next checkpoint: after 1,000 pages, or never, and a reader keeps it from that."""
    if which("strace") is None:
        pytest.skip("no strace here")
    found = traced(tmp_path, QUIET, "1.5", *reader)

    between = found[found.index("done") : found.index("rested")]
    assert "sync" in between, found


def calls(tmp_path: Path, durability: str) -> list[str]:
    """What a writer does until its last acknowledgement: `sync` of the WAL and `done`, in order."""
    found = [word for word in traced(tmp_path, WRITER, durability) if word in ("sync", "done")]
    return found[: len(found) - found[::-1].index("done")]


def test_each_commit_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    if which("strace") is None:
        pytest.skip("no strace here")
    found = calls(tmp_path, "commit")
    assert 6 == found.count("done")
    for before, after in pairwise(found):
        assert (before, after) != ("done", "done")


def test_in_the_interval_commits_do_not_wait_for_a_sync(tmp_path: Path) -> None:
    if which("strace") is None:
        pytest.skip("no strace here")
    found = calls(tmp_path, "interval")
    assert 6 == found.count("done") > found.count("sync")
