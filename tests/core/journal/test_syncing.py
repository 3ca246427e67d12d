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


def calls(tmp_path: Path, durability: str) -> list[str]:
    """What a writer does until its last acknowledgement: `sync` of the WAL and `done`, in order."""
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fdatasync,fsync,write", sys.executable, "-c", WRITER,
         str(tmp_path / "memory.gs"), durability],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    found = []
    for line in trace.read_text().splitlines():
        if '"done' in line:
            found.append("done")
        elif "sync(" in line and "ledger.db-wal" in line:
            assert "= 0" in line or "unfinished" in line
            found.append("sync")
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
