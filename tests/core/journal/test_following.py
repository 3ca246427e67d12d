"""A reader beside a writer: a growing ledger is never called damaged, and nothing is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError, EngineError, InvalidError
from tests.support.disk import edit
from tests.support.ledger_rows import change, rows

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


def test_a_reader_that_cannot_go_on_says_so_in_every_answer_until_it_can(tmp_path):
    path = tmp_path / "memory.gs"
    store = graphstore.open(path)
    add(store, range(3))
    store.branch("idea")
    reader = graphstore.open(path, read_only=True)
    view, idea = reader.as_of(), reader.on("idea")
    assert (1, 3) == (len(reader.branches()), len(idea.nodes()))
    add(store, range(3, 5))
    store.close()
    [(last, head)] = rows(path, "SELECT number, head FROM chain ORDER BY number DESC LIMIT 1")
    edit(path, f"UPDATE chain SET head = CAST('{{}}' AS BLOB) WHERE number = {last}")

    with pytest.raises(DamageError, match=r"ledger.db line \d+"):
        reader.refresh()
    for ask in (reader.nodes, view.nodes, idea.nodes, reader.as_of, reader.changes, lambda: view.node("n1")):
        with pytest.raises(EngineError, match=r"cannot follow.*ledger.db line \d+"):
            ask()

    edit(path, f"UPDATE chain SET head = X'{head.hex()}' WHERE number = {last}")
    reader.refresh()
    assert (5, 3, 3) == (len(reader.nodes()), len(view.nodes()), len(idea.nodes()))
    reader.close()
    with pytest.raises(InvalidError, match="closed"):
        view.nodes()


def test_no_message_advises_to_cut_a_file(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(3))
    change(path, "UPDATE chain SET head = CAST('{}' AS BLOB) WHERE number = 2")

    with pytest.raises(DamageError) as refused, graphstore.open(path) as store:
        store._core.read_index()
    assert str(refused.value).endswith("nothing was changed. Restore a dump or a backup.")


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
