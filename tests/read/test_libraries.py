"""Compiled code is loaded whole, however early Ctrl-C comes; and nothing is loaded that nobody asked for."""

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
import graphstore.memory.recall

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
            print(ASK)
        except KeyboardInterrupt:
            print("stopped")
"""
QUERY = 'store.as_of().query("MATCH (n:Node) RETURN count(n) AS nodes").rows()[0]["nodes"]'
SEARCH = 'len(graphstore.memory.recall.recall(store, "tea").hits)'


@pytest.mark.parametrize(
    ("module", "ask"), [("numpy._core", QUERY), ("kuzu._kuzu", QUERY), ("numpy.linalg", SEARCH)]
)
def test_a_first_question_that_is_stopped_while_libraries_load_can_be_asked_again(
    tmp_path: Path, module: str, ask: str
):
    with graphstore.open(tmp_path / "team.gs") as store:
        store.add_node("fact", {"says": "it is tea"})

    done = subprocess.run(
        [sys.executable, "-c", STOPPED.replace("ASK", ask), str(tmp_path / "team.gs"), module],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ("stopped\n1\n", "") == (done.stdout, done.stderr)


LEFT = """
import _imp, sys
import graphstore

with graphstore.open(sys.argv[1], read_only=True) as store:
    _imp.acquire_lock()  # what a Ctrl-C on that step of an import leaves
    print(store.as_of().query("MATCH (n:Node) RETURN count(n) AS nodes").rows())
"""


def test_a_lock_of_imports_that_ctrl_c_left_is_given_back(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "team.gs") as store:
        store.add_node("fact", {"says": "so"})

    done = subprocess.run(
        [sys.executable, "-c", LEFT, str(tmp_path / "team.gs")], capture_output=True, text=True, timeout=60
    )

    assert ("[{'nodes': 1}]\n", "") == (done.stdout, done.stderr)


ASKED = """
import sys
import graphstore

assert not {"kuzu", "numpy", "pandas", "polars", "pyarrow"} & sys.modules.keys(), "graphstore alone"
with graphstore.open(sys.argv[1]) as store:
    for id, n in (("a", 1), ("b", 2.5), ("c", "mixed"), ("d", None)):
        store.add_node("fact", {"says": "só", "n": n, "flag": n == 1}, id=id, tags=["t"] if n else (), valid_from="2026-01-01")
    store.link("a", "caused_by", "b", reason="why")
    store.record_event("deploy", "shipped", related_to="a")
    store.end("d", at="2026-01-02")
    view = store.as_of()
    assert 1 == len(view.query("MATCH (a:Node)-[r:CAUSED_BY]->(b) RETURN a, r.reason, b.told, b.says").rows())
    assert 1_500 == len(view.query("UNWIND range(1, 1500) AS x MATCH (n:Node {id: 'a'}) RETURN x, n.valid_to").rows())
    assert 4 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    assert 3 == view.to_arrow().num_rows
    assert not {"pandas", "polars"} & sys.modules.keys(), "queries"
    import pandas
    assert 3 == len(view.query("MATCH (n:Node) RETURN n.id").to_pandas())
    assert 3 == len(view.to_arrow().to_pandas())
"""


def test_neither_pandas_nor_polars_is_loaded_by_a_query(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(tmp_path / "team.gs")], capture_output=True, text=True, timeout=120
    )

    assert ("", "") == (done.stdout, done.stderr)
