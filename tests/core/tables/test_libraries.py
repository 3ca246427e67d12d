"""What the engine loads is loaded whole, however early Ctrl-C comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import graphstore

pytestmark = pytest.mark.rest

pytest.importorskip("pandas")

STOPPED = """
import os, signal, sys, threading, time
import graphstore

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # the signal is seen here where this is the main thread

with graphstore.open(sys.argv[1], read_only=True) as store:
    sys.meta_path.insert(0, Impatient())
    for _ in range(2):
        try:
            print(store.as_of().query("MATCH (n:Node) RETURN count(n) AS nodes").rows())
        except KeyboardInterrupt:
            print("stopped")
"""


@pytest.mark.parametrize("module", ["numpy._core", "pandas._libs.tslibs", "kuzu._kuzu"])
def test_a_first_query_that_is_stopped_while_libraries_load_can_be_asked_again(tmp_path: Path, module: str):
    with graphstore.open(tmp_path / "team.gs") as store:
        store.add_node("fact", {"says": "so"})

    done = subprocess.run(
        [sys.executable, "-c", STOPPED, str(tmp_path / "team.gs"), module],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ("stopped\n[{'nodes': 1}]\n", "") == (done.stdout, done.stderr)
