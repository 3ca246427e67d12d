"""The ledger of a store in memory lies in a private temporary folder, which goes with the store."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import graphstore

pytestmark = pytest.mark.in_process("looks at the temporary folder")

_LEFT_OPEN = """
import graphstore, os, sys
store = graphstore.open(":memory:")
store.add_node("fact", {"says": "a"}, id="a")
print(store._place.path)
sys.stdout.flush()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_nobody_else_can_read_it_and_it_is_removed_when_the_store_is_closed(temporary: Path) -> None:
    with graphstore.open(":memory:") as store:
        store.add_node("fact", {"says": "a"}, id="a")
        (folder,) = temporary.iterdir()

        assert (None, {"path": None}) == (store.path, {"path": store.stats()["path"]})
        assert {"ledger.db", "lock"} <= {file.name for file in folder.iterdir()}
        if os.name == "posix":
            assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert [] == list(temporary.iterdir())


def test_it_is_removed_with_a_store_that_nobody_closed(temporary: Path) -> None:
    store = graphstore.open(":memory:")
    store.add_node("fact", {"says": "a"})
    del store
    gc.collect()

    assert [] == list(temporary.iterdir())


def test_it_is_removed_where_a_store_cannot_be_opened(temporary: Path) -> None:
    with pytest.raises(graphstore.InvalidError, match="timeout"):
        graphstore.open(":memory:", timeout=-1)
    gc.collect()

    assert [] == list(temporary.iterdir())


def test_it_is_removed_when_the_process_ends(temporary: Path) -> None:
    found = _run(_LEFT_OPEN, temporary)

    assert str(temporary) == str(Path(found).parent)
    assert [] == list(temporary.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_that_ends_leaves_the_folder_to_its_parent(temporary: Path) -> None:
    forking = """
child = os.fork()
if child == 0:
    sys.exit()  # with what is to be done at the end of a process
os.waitpid(child, 0)
store.add_node("fact", {"says": "b"}, id="b")
print(sorted(node.id for node in store.nodes()), os.path.isdir(store._place.path))
"""
    assert "['a', 'b'] True" == _run(_LEFT_OPEN + forking, temporary).splitlines()[-1]
    assert [] == list(temporary.iterdir())


def test_many_stores_that_nobody_closed_do_not_keep_their_files_open(temporary: Path) -> None:
    gc.disable()
    try:
        for _ in range(200):
            graphstore.open(":memory:").add_node("fact", {"says": "a"})
        assert len(list(temporary.iterdir())) < 150
    finally:
        gc.enable()
        gc.collect()


def _run(program: str, temporary: Path) -> str:
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert "" == done.stderr
    return done.stdout.strip()
