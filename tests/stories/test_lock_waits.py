"""`open(timeout=)` says how long a write waits for those of other processes. Opening never waits."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from graphstore import InvalidError, LockedError

IN_TRANSACTION = """
import sys, time, graphstore
with graphstore.open(sys.argv[1]) as store, store.transaction():
    store.add_node("fact", {}, id="theirs")
    print("begun", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def folder(tmp_path):
    graphstore.open(tmp_path / "m.gs").close()
    return tmp_path / "m.gs"


@contextmanager
def writing(folder: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of a transaction, which lasts so long."""
    words = [sys.executable, "-c", IN_TRANSACTION, str(folder), str(seconds), "a-secret"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert "begun\n" == process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_a_write_waits_for_the_transaction_of_another_process(folder):
    with writing(folder, 1), graphstore.open(folder, timeout=60) as store:
        store.add_node("fact", {}, id="mine")
        assert {"theirs", "mine"} == {node.id for node in store.nodes()}


def test_a_write_is_refused_when_the_time_is_over_and_names_the_other_process(folder):
    with writing(folder, 120) as process, graphstore.open(folder, timeout=0.3) as store:
        begun = time.monotonic()
        with pytest.raises(LockedError) as refused:
            store.add_node("fact", {}, id="mine")
        assert 0.3 <= time.monotonic() - begun < 60
        assert "not kept" == refused.value.outcome
        process.kill()
        process.wait(10)
        store.add_node("fact", {}, id="mine")
        assert ["mine"] == [node.id for node in store.nodes()]
    assert f"pid {process.pid} on " in str(refused.value)
    assert "a-secret" not in str(refused.value) and "import" not in str(refused.value)


def test_opening_and_reading_wait_for_nobody(folder):
    begun = time.monotonic()
    with writing(folder, 120):
        with graphstore.open(folder) as store, graphstore.open(folder, read_only=True) as reader:
            assert [] == store.nodes() == reader.nodes()
        assert time.monotonic() - begun < 60


@pytest.mark.parametrize("wrong", [-1, True, "5", float("nan"), float("inf")])
def test_a_timeout_that_is_not_a_time_is_refused(folder, wrong):
    with pytest.raises(InvalidError, match="is no time"):
        graphstore.open(folder, timeout=wrong)
    graphstore.open(folder).close()
