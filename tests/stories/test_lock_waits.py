"""`open(timeout=)` waits for the lock of a folder: of another process, and of another thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

import graphstore
from graphstore import InvalidError, LockedError

HOLDS = "import graphstore, sys, time; store = graphstore.open(sys.argv[1]); print('held', flush=True); time.sleep(float(sys.argv[2])); store.close()"


@pytest.fixture
def folder(tmp_path):
    graphstore.open(tmp_path / "m.gs").close()
    return tmp_path / "m.gs"


def held(folder, seconds):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert "held\n" == process.stdout.readline()
    return process


def test_a_folder_that_another_process_closes_in_time_is_opened(folder):
    with held(folder, 1):
        with pytest.raises(LockedError):
            graphstore.open(folder)
        begun = time.monotonic()
        with graphstore.open(folder, timeout=30) as store:
            assert 0 < time.monotonic() - begun < 29
            store.add_node("fact", {"says": "mine now"})


def test_one_that_is_held_for_longer_is_refused_when_the_time_is_over(folder):
    with held(folder, 30) as process:
        begun = time.monotonic()
        with pytest.raises(LockedError, match="another writer"):
            graphstore.open(folder, timeout=0.3)
        assert 0.3 <= time.monotonic() - begun < 20
        process.kill()


def test_a_store_of_this_process_is_waited_for_too(folder):
    store = graphstore.open(folder)
    closing = threading.Timer(0.3, store.close)
    closing.start()
    with graphstore.open(folder, timeout=30):
        pass
    closing.join()
    with graphstore.open(folder), pytest.raises(LockedError, match="in this process already"):
        graphstore.open(folder, timeout=0.1)


def test_a_free_folder_is_opened_at_once_and_readers_never_wait(folder):
    begun = time.monotonic()
    with graphstore.open(folder, timeout=30), graphstore.open(folder, timeout=30, read_only=True):
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("wrong", [-1, True, "5", float("nan"), float("inf")])
def test_what_is_no_time_is_refused_and_nothing_is_held(folder, wrong):
    with pytest.raises(InvalidError, match="is no time"):
        graphstore.open(folder, timeout=wrong)
    graphstore.open(folder).close()
