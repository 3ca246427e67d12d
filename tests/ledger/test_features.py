"""A head names the features that its reader must understand. Whoever meets an unknown one refuses the store, by whichever way it comes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStore
from graphstore.ledger.chain import REQUIRES
from tests.conftest import shared_data
from tests.support.chain import heads

pytestmark = pytest.mark.in_process("opens stores of its own")

ROOT = Path(__file__).parents[2]
REFUSED = r"requires wings, which this graphstore does not know\. Install a newer graphstore"


def fill(store: GraphStore) -> None:
    store.add_node("fact", {"n": 1}, id="one")
    store.add_node("fact", {"n": 2}, id="two")
    store.branch("idea").add_node("fact", {"n": 3})
    with store.transaction():
        for number in range(1_200):
            store.add_node("fact", {"n": number})
    store.evict(ids=["two"], keep_audit=False)


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a later release, whose heads require wings."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(ROOT / "graphstore", folder / "graphstore", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sql", "cypher"):
        shutil.copytree(ROOT / name, folder / name)
    file = folder / "graphstore" / "ledger" / "chain.py"
    text = file.read_text(encoding="utf-8")
    assert 1 == text.count("REQUIRES: tuple[str, ...] = ()")
    file.write_text(text.replace("= ()", '= ("wings",)', 1), encoding="utf-8")
    return folder


def run(later: Path, script: str, *arguments: object) -> None:
    """Run a script with the later release."""
    paths = os.pathsep.join(map(str, (later, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        cwd=later, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stdout + done.stderr


WRITE = """
    import sys, graphstore
    with graphstore.open(sys.argv[1]) as store:
        store.add_node("fact", {"n": 3}, id="later")
"""
WRITE_ON_A_BRANCH = """
    import sys, graphstore
    with graphstore.open(sys.argv[1]) as store:
        store.on("idea").add_node("fact", {"n": 3}, id="later")
"""


def test_new_heads_require_what_is_to_be_understood(tmp_path):
    with graphstore.open(tmp_path / "memory.gs") as store:
        fill(store)
        written = heads(store)
    with graphstore.open(":memory:") as store:
        fill(store)
        written += heads(store)

    assert () == REQUIRES
    assert len(written) > 8
    assert [[]] * len(written) == [head["requires"] for head in written]


def test_heads_of_release_0_1_require_nothing(tmp_path):
    shutil.copytree(shared_data("store-0.1") / "team" / "journal", tmp_path / "memory.gs" / "journal")
    with graphstore.open(tmp_path / "memory.gs") as store:
        before = heads(store)
        store.add_node("fact", {"n": 1})
        after = heads(store)

    assert before == after[:-1] != []
    assert [] == after[-1]["requires"]
    assert all("requires" not in head and "args" not in head for head in before)


@pytest.mark.rest
@pytest.mark.parametrize("script", [WRITE, WRITE_ON_A_BRANCH])
@pytest.mark.parametrize("read_only", [True, False])
def test_opening_refuses_an_unknown_feature(tmp_path, later, script, read_only):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        fill(store)
    run(later, script, path)

    with pytest.raises(EngineError, match=REFUSED):
        graphstore.open(path, read_only=read_only)
    assert any("requires wings" in problem.message for problem in graphstore.verify(path).problems)

    run(later, WRITE.replace("later", "again"), path)  # nothing was changed


@pytest.mark.rest
@pytest.mark.parametrize("read_only", [True, False])
def test_following_refuses_an_unknown_feature(tmp_path, later, read_only):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        fill(store)
    with graphstore.open(path, read_only=read_only) as store:
        assert {"n": 1} == store.node("one").content
        run(later, WRITE, path)

        for _ in range(2):
            with pytest.raises(EngineError, match=REFUSED):
                store.node("one")
        if not read_only:
            with pytest.raises(EngineError, match=REFUSED):
                store.add_node("fact", {"n": 4})

    run(later, WRITE.replace("later", "again"), path)


@pytest.mark.rest
def test_a_writer_that_has_read_nothing_since_refuses_it(tmp_path, later):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        fill(store)
        run(later, WRITE, path)
        with pytest.raises(EngineError, match=REFUSED):
            store.add_node("fact", {"n": 4}, id="mine")

    with pytest.raises(EngineError, match=REFUSED):
        graphstore.open(path)


@pytest.mark.rest
def test_a_dump_with_an_unknown_feature_is_not_restored(tmp_path, later):
    run(
        later,
        """
        import sys, graphstore
        with graphstore.open(":memory:") as store:
            store.add_node("fact", {"n": 1})
            store.export(sys.argv[1])
        """,
        tmp_path / "dump",
    )

    with pytest.raises(EngineError, match=REFUSED):
        graphstore.restore(tmp_path / "dump", tmp_path / "new.gs")
    assert not (tmp_path / "new.gs").exists()


@pytest.mark.rest
def test_a_journal_with_an_unknown_feature_is_not_upgraded(tmp_path, later):
    path = tmp_path / "memory.gs"
    run(
        later,
        """
        import sys
        from pathlib import Path
        from tests.support.old_release import open_old
        with open_old(Path(sys.argv[1])) as store:
            store.add_node("fact", {"n": 1})
        """,
        path,
    )
    before = (path / "journal" / "00000001.jsonl").read_bytes()

    with pytest.raises(EngineError, match=REFUSED):
        graphstore.open(path)
    assert before == (path / "journal" / "00000001.jsonl").read_bytes()
    assert not (path / "ledger.db").exists()
