"""A reader beside a writer: a growing ledger is never called damaged, and nothing is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from tests.support.ledger_rows import change

pytestmark = pytest.mark.in_process("readers of the files")

WRITER = """
import sys, graphstore
store = graphstore.open(sys.argv[1])
print("open", flush=True)
for number in range(int(sys.argv[2])):
    store.add_node("fact", {"n": number}, id=f"n{number}")
    print(number, flush=True)
"""


@contextmanager
def writing(path: Path, many: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that adds so many nodes, and prints the number of each that is acknowledged."""
    command = [sys.executable, "-c", WRITER, str(path), str(many)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "open\n" == process.stdout.readline()
        yield process
        process.kill()


def add(store: graphstore.GraphStore, numbers: range) -> None:
    for number in numbers:
        store.add_node("fact", {"n": number, "says": "x" * 300}, id=f"n{number}")


def test_no_message_advises_to_cut_a_file(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(3))
    change(path, "UPDATE chain SET head = CAST('{}' AS BLOB) WHERE number = 2")

    [problem, *_] = graphstore.verify(path).problems
    assert problem.message.endswith("nothing was changed. Restore a dump or a backup.")


@pytest.mark.rest
def test_readers_beside_a_busy_writer_miss_nothing(tmp_path):
    path = tmp_path / "memory.gs"
    graphstore.open(path).close()
    many, seen = 1_500, 0
    with writing(path, many) as process, graphstore.open(path, read_only=True) as follower:
        assert process.stdout is not None
        for line in process.stdout:
            told = int(line)
            follower.refresh()
            assert follower.node(f"n{told}").content == {"n": told}
            seen += 1
            if told % 50 == 0:
                with graphstore.open(path, read_only=True) as fresh:
                    assert fresh.node(f"n{told}").content == {"n": told}
                checked = graphstore.verify(path)
                assert checked.ok, checked.problems
        assert many == seen == len(follower.nodes())
