"""A folder that somebody else prepared: behind no name of it is any file touched, and nothing waits for a pipe."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStoreError, InvalidError
from graphstore.ledger import server_file
from graphstore.ledger import tokens as access_tokens
from graphstore.memory import Memory
from tests.support.embedding import Concepts

pytestmark = pytest.mark.in_process("prepares the files beneath it")

PRECIOUS = b"what took years to write\n" * 400
LEDGER = ("ledger.db", "ledger.db-wal", "ledger.db-shm")
NAMES = (
    "lock", *LEDGER, "ledger.db.part", "graph.lock", "accesses.json", "graph.kuzu", "graph.kuzu.wal", "graph.kuzu.shadow", "graph.json",
    "graph.json.new", "vectors-0.bin", "vectors-0.new", "server.json", "server.json.new", "token", "token-read", "token-metrics", "upgrading", "journal-0.1",
    "journal.new", "journal.old",
)  # fmt: skip
MATTERS = {"lock", "graph.lock", *LEDGER}  # without these no store is opened


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every file that a store may have."""
    path = tmp_path_factory.mktemp("template") / "memory.gs"
    with graphstore.open(path) as store:
        memory = Memory(store, Concepts())
        for text in ("the car is red", "a cat sleeps"):
            memory.remember(text, layer="soul", source="SOUL.md")
        memory.recall("truck", 1)
        for number in range(300):
            store.add_node("fact", {"n": number}, id=f"fact-{number}")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    access_tokens.kept(path)
    server_file.announce(path, "http://127.0.0.1:1")
    assert {"graph.kuzu", "graph.json", "token", "server.json"} <= {each.name for each in path.iterdir()}
    return path


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An alarm that ends what waits for ever."""

    def waited(*_: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def to_a_file(name: Path, aside: Path) -> None:
    name.symlink_to(aside / "precious.txt")


def to_a_folder(name: Path, aside: Path) -> None:
    name.symlink_to(aside / "precious", target_is_directory=True)


def to_nothing(name: Path, aside: Path) -> None:
    name.symlink_to(aside / "not-there")


def a_second_name(name: Path, aside: Path) -> None:
    os.link(aside / "precious.txt", name)


def a_pipe(name: Path, aside: Path) -> None:
    os.mkfifo(name)


def a_folder(name: Path, aside: Path) -> None:
    name.mkdir()
    (name / "inside.txt").write_bytes(PRECIOUS)


KINDS = (to_a_file, to_a_folder, to_nothing, a_second_name, a_pipe, a_folder)


def every_use(path: Path) -> list[GraphStoreError]:
    """Whatever writes or reads a file of a store, one after the other. Gives what was refused."""
    refused: list[GraphStoreError] = []

    def tried(work: Callable[[], object]) -> None:
        try:
            work()
        except GraphStoreError as error:
            refused.append(error)

    def write() -> None:
        with graphstore.open(path) as store:
            tried(lambda: store.add_node("fact", {"n": -1}))
            tried(lambda: store.query_tables("MATCH (n:Node) RETURN count(*)"))
            tried(lambda: Memory(store, Concepts()).remember("a dog barks", layer="soul", source="SOUL.md"))
            tried(lambda: Memory(store, Concepts()).recall("truck", 1))
            tried(lambda: store.erase("fact-1", reason="asked for"))
            tried(lambda: store.evict(ids=["fact-2"], keep_audit=False))
            tried(lambda: store.add_node("fact", {"n": -2}))
            tried(lambda: store.query_tables("MATCH (n:Node) RETURN count(*)"))

    def read() -> None:
        with graphstore.open(path, read_only=True) as store:
            tried(store.nodes)
            tried(lambda: store.query_tables("MATCH (n:Node) RETURN count(*)"))
            tried(lambda: Memory(store, Concepts()).recall("truck", 1))
            tried(store.refresh)

    tried(read)
    tried(write)
    tried(read)
    tried(lambda: graphstore.verify(path))
    tried(lambda: access_tokens.kept(path))
    tried(lambda: access_tokens.shown(path))
    tried(lambda: server_file.announce(path, "http://127.0.0.1:1"))
    tried(lambda: server_file.serving(path, 0.0))
    tried(lambda: server_file.left(path))
    tried(lambda: server_file.withdraw(path))
    return refused


def listed(aside: Path) -> dict[str, bytes | None]:
    return {
        str(each.relative_to(aside)): None if each.is_dir() else each.read_bytes()
        for each in aside.rglob("*")
    }


def prepared(
    template: Path, tmp_path: Path, kind: Callable[[Path, Path], None], *names: str
) -> tuple[Path, Path]:
    """A copy of the store in which each of the names is something else."""
    path, aside = tmp_path / "memory.gs", tmp_path / "aside"
    shutil.copytree(template, path)
    (aside / "precious").mkdir(parents=True)
    for file in ("precious.txt", "precious/00000001.jsonl", "precious/old.new", "precious/of-mine.bin"):
        (aside / file).write_bytes(PRECIOUS)
    for name in names:
        there = path / name
        if there.is_dir():
            shutil.rmtree(there)
        else:
            there.unlink(missing_ok=True)
        kind(there, aside)
    return path, aside


def trial(template: Path, tmp_path: Path, kind: Callable[[Path, Path], None], *names: str) -> None:
    """Use a store in which each of the names is something else, all of which matter or none."""
    path, aside = prepared(template, tmp_path, kind, *names)
    before = listed(aside)
    with at_most(60):
        refused = every_use(path)
    assert before == listed(aside)
    matters = MATTERS.issuperset(names)
    if matters:
        told = " ".join(map(str, refused))
        assert any(str(path / name) in told for name in names) or "no store" in told or "other things" in told
    else:  # refused is what has to be told of one of the names
        may_be = [name for name in names if kind is a_folder or name.startswith("token")]
        assert [] == [told for told in map(str, refused) if not any(name in told for name in may_be)]
    if kind is a_folder:  # an old journal goes with all that is in it
        kept = [path / name / "inside.txt" for name in names if name not in ("upgrading", "journal-0.1")]
        assert [PRECIOUS] * len(kept) == [file.read_bytes() for file in kept]
    if not matters and kind is not a_folder:
        with graphstore.open(path) as store:
            assert "erased" == store.inspect("fact-1").node.standing
            assert store.verify().ok


@pytest.mark.parametrize("name", ["lock", *LEDGER, "graph.kuzu", "graph.json.new", "VECTORS", "journal-0.1"])
def test_behind_a_link_nothing_is_touched(template, tmp_path, name):
    trial(template, tmp_path, to_a_file, name)


@pytest.mark.parametrize("name", ["lock", *LEDGER, "graph.json", "VECTORS"])
def test_nothing_waits_for_a_pipe(template, tmp_path, name):
    trial(template, tmp_path, a_pipe, name)


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", sorted(MATTERS))
def test_every_name_that_matters_may_be_anything(template, tmp_path, name, kind):
    trial(template, tmp_path, kind, name)


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_other_names_may_be_anything(template, tmp_path, kind):
    trial(template, tmp_path, kind, *(name for name in NAMES if name not in MATTERS))


def test_a_journal_behind_a_link_is_refused_by_name(template, tmp_path):
    path, _ = prepared(template, tmp_path, to_a_folder, "journal")
    for read_only in (False, True):
        with pytest.raises(InvalidError, match="symbolic link") as caught:
            graphstore.open(path, read_only=read_only)
        assert str(path / "journal") in str(caught.value)


def test_a_ledger_with_a_second_name_is_refused_by_name(template, tmp_path):
    """What is written under one of the names is not in the WAL of the other."""
    path, aside = tmp_path / "memory.gs", tmp_path / "aside.db"
    shutil.copytree(template, path)
    os.link(path / "ledger.db", aside)
    for read_only in (False, True):
        with pytest.raises(EngineError, match="hard link") as caught:
            graphstore.open(path, read_only=read_only)
        assert str(path / "ledger.db") in str(caught.value)
    aside.unlink()
    with graphstore.open(path) as store:
        assert store.verify().ok


def test_a_lock_with_a_second_name_is_refused_by_name(template, tmp_path):
    path, _ = prepared(template, tmp_path, a_second_name, "lock")
    with pytest.raises(EngineError, match="hard link") as caught:
        graphstore.open(path)
    assert str(path / "lock") in str(caught.value)
    (path / "lock").unlink()
    with graphstore.open(path) as store:
        assert store.verify().ok


def test_in_a_folder_that_everybody_may_write_the_tables_are_in_memory(template, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(template, path)
    path.chmod(0o777)
    with graphstore.open(path) as store:
        assert any("kept in memory" in notice for notice in store.notices)
        (path / "graph.kuzu").unlink()
        assert 302 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    assert not (path / "graph.kuzu").exists()
