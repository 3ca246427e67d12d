"""A folder of release 0.1 becomes a ledger when it is opened for writing: the same lines, the same answers, and never half of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import graphstore
from graphstore import DamageError, EngineError, GraphStore, InvalidError, LockedError
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger
from tests.conftest import Clock, shared_data
from tests.support.old_release import open_old, tree_of_old

pytestmark = pytest.mark.in_process("opens stores of its own")

OLD = "journal-0.1"
SECRET = "the SECRET of mine"


def copied(name: str, target: Path) -> Path:
    """A folder of release 0.1 from the real data, to be changed."""
    for file in sorted((shared_data("store-0.1") / name / "journal").iterdir()):
        (target / "journal").mkdir(parents=True, exist_ok=True)
        (target / "journal" / file.name).write_bytes(file.read_bytes())
    return target


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store of release 0.1 with its saved copies, a branch, a transaction of many lines and something that reads a secret."""
    path = tmp_path / "memory.gs"
    with open_old(path, clock=Clock("2026-01-01")) as store:
        store.record_event("error", SECRET, id="secret")
        store.add_node("fact", {"n": 1}, id="stays", reason="seen")
        store.branch("idea").add_node("fact", {"n": 2}, id="new")
        store.bulk_load(versions=[{"node_id": f"n{n}", "content": {"n": n}} for n in range(300)])
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    assert {"graph.json", "journal"} <= names(path)
    return path


def names(path: Path) -> set[str]:
    return {file.name for file in path.iterdir()}


def is_old(path: Path) -> bool:
    return (path / "journal" / "00000001.jsonl").exists() and not (path / NAME).exists()


def is_new(path: Path) -> bool:
    return (path / NAME).exists() and not {"journal", "upgrading"} & names(path)


def old_lines(journal: Path) -> list[bytes]:
    return [line for file in sorted(journal.glob("*.jsonl")) for line in file.read_bytes().splitlines()[1:]]


def new_lines(path: Path) -> list[bytes]:
    ledger = Ledger(Database(path / NAME, read_only=True))
    try:
        return [line.line().rstrip(b"\n") for line in ledger.verbatim()]
    finally:
        ledger.close()


# ------------------------------------------------------------------ what is the same afterwards


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def answer(store: GraphStore, asked: dict[str, Any]) -> Any:
    """What a store answers to a question of the recorded ones."""
    view = store.as_of(**asked["at"])
    if asked["verb"] == "nodes":
        return sorted(f"{node.id}|{node.standing}|{node.text}" for node in view.nodes())
    if asked["verb"] == "shaky":
        return sorted(each.node.id for each in view.shaky())
    try:
        return plain(getattr(view, asked["verb"])(asked["id"]))
    except graphstore.GraphStoreError as error:
        return {"refused": type(error).__name__}


def without_defaults(value: Any) -> Any:
    """A value without the fields that release 0.1 did not have, where they have their default."""
    if isinstance(value, dict):
        return {
            name: without_defaults(each)
            for name, each in value.items()
            if not (name in ("history", "planned") and each is False) and name != "grounds"
        }
    return [without_defaults(each) for each in value] if isinstance(value, list) else value


STANDINGS = {("not_yet", "superseded"): "replaced before it began", ("stands", "shaky"): "shaky"}
"""What release 0.1 said of a thing, what is said now, and by which rule."""


def step_of(step: dict[str, Any]) -> tuple[str, ...]:
    """What became of a thing, by which link, and what took its place."""
    return step["how"], *(step[name]["id"] if step[name] else "" for name in ("link", "node"))


def differences(old: Any, new: Any) -> Iterator[str]:
    """By which rules an answer is another one than release 0.1 gave. Where no rule says so: the two, which no test expects."""
    if isinstance(old, dict) and isinstance(new, dict) and {"chain", "current"} <= old.keys() == new.keys():
        if old["chain"] != new["chain"]:
            steps = [[step_of(each) for each in side["chain"]] for side in (old, new)]
            is_longer = set(steps[0]) <= set(steps[1])
            yield "whole time line" if is_longer else f"{old} -> {new}"
        old, new = ({name: each[name] for name in each if name != "chain"} for each in (old, new))
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name, each in old.items():
            if name == "standing" or name.endswith("_standing"):
                if each != new[name]:
                    yield STANDINGS.get((each, new[name]), f"{each} -> {new[name]}")
            else:
                yield from differences(each, new[name])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from differences(one, other)
    elif old != new:
        yield "shaky" if str(old).replace("|stands|", "|shaky|") == new else f"{old} -> {new}"


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "line", "asked", "expected"),
    [
        ("random", None, 1_257, {"whole time line": 36, "replaced before it began": 22, "shaky": 6}),
        ("random", "open-branch", 253, {"whole time line": 8, "replaced before it began": 1}),
        ("team", None, 789, {"whole time line": 8}),
    ],
)
def test_the_answers_of_release_0_1_come_back_but_for_the_rules_that_differ(
    tmp_path, name, line, asked, expected
):
    path = copied(name, tmp_path / "memory.gs")
    recorded = json.loads(
        (shared_data("store-0.1") / f"{name}{'-branch' if line else ''}-answers.json").read_text()
    )
    found = Counter[str]()
    with graphstore.open(path) as trunk:
        store = trunk.on(line) if line else trunk
        for each in recorded:
            now = without_defaults(json.loads(json.dumps(answer(store, each))))
            found.update(set(differences(without_defaults(each["answer"]), now)))
        assert trunk.verify().ok
    assert (asked, expected) == (len(recorded), found)
    with graphstore.open(path, read_only=True) as again:
        assert [] == again.notices
        assert again.verify().ok


@pytest.mark.parametrize("name", ["random", "team"])
def test_the_lines_are_the_same_byte_for_byte(tmp_path, name):
    path = copied(name, tmp_path / "memory.gs")
    before = old_lines(path / "journal")

    graphstore.open(path).close()

    assert before == new_lines(path) == old_lines(path / OLD)


def test_what_happens_is_told_once(made):
    before = old_lines(made / "journal")
    (made / "accesses.json").write_bytes(b'{"stays":2}')

    with graphstore.open(made) as store:
        told = " ".join(store.notices)
        assert "release 0.1" in told and str(made / OLD) in told and f"{len(before)} lines" in told
        assert {"n": 1} == store.node("stays").content
        assert {"n": 2} == store.on("idea").node("new").content
        assert 1 == store.query_tables("MATCH (n:Node {id: 'n7'}) RETURN count(*) AS n").single()["n"]
        assert store.verify().ok
        store.add_node("fact", {"n": 3}, id="later")

    assert is_new(made) and before == old_lines(made / OLD)
    with graphstore.open(made) as store:
        assert [] == store.notices
        assert {"n": 3} == store.node("later").content
        assert store.verify().ok


def test_an_empty_store_is_upgraded_too(tmp_path):
    path = tmp_path / "memory.gs"
    with open_old(path):
        pass

    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="first")

    assert is_new(path)


def test_release_0_1_finds_no_store_in_an_upgraded_folder(made):
    graphstore.open(made).close()

    assert not (made / "journal").exists()


# ------------------------------------------------------------------ what is left alone


def test_a_reader_is_told_how_to_upgrade_and_changes_nothing(made):
    before = {file: file.read_bytes() for file in made.rglob("*") if file.is_file()}

    with pytest.raises(EngineError, match=r"release 0\.1.*Open it once for writing"):
        graphstore.open(made, read_only=True)

    assert before == {file: file.read_bytes() for file in made.rglob("*") if file.is_file()}
    assert graphstore.verify(made).ok  # it can be checked before
    assert is_old(made)


def test_a_torn_tail_is_left_behind_and_told(made):
    (segment,) = (made / "journal").glob("*.jsonl")
    whole = old_lines(made / "journal")
    with segment.open("ab") as file:
        file.write(b'{"body":[{"cut')

    with graphstore.open(made) as store:
        assert any("14 bytes of a commit that was never acknowledged" in notice for notice in store.notices)
        assert store.verify().ok

    assert whole == new_lines(made)
    assert (made / OLD / segment.name).read_bytes().endswith(b'{"body":[{"cut')


def test_damage_is_refused_with_its_line_and_nothing_is_changed(made):
    (segment,) = (made / "journal").glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"n":1', b'"n":7')
    segment.write_bytes(b"".join(lines))

    with pytest.raises(DamageError, match=r"00000001.jsonl line 3"):
        graphstore.open(made)

    assert is_old(made) and "upgrading" not in names(made)


@pytest.mark.parametrize("known_by", ["index.bin", "graph.json"])
def test_a_journal_that_lost_transactions_which_a_copy_knows_is_refused(made, known_by):
    if (
        known_by == "index.bin"
    ):  # release 0.1 saved its index: a line, the length of a header, the header, and columns
        note = json.loads((made / "graph.json").read_bytes())
        (made / "graph.json").unlink()
        header = json.dumps({name: note[name] for name in ("transactions", "last_tx")}).encode()
        (made / known_by).write_bytes(
            b"graphstore index 14\n" + len(header).to_bytes(8, "little") + header + bytes(100)
        )
    (segment,) = (made / "journal").glob("*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-1]))

    with pytest.raises(DamageError, match=f"missing: {known_by}"):
        graphstore.open(made)

    assert is_old(made) and known_by in names(made)


def test_both_a_ledger_and_a_journal_are_refused(made):
    shutil.copytree(made / "journal", made.with_name("kept"))
    graphstore.open(made).close()
    shutil.copytree(made.with_name("kept"), made / "journal")

    with pytest.raises(InvalidError, match="move it elsewhere"):
        graphstore.open(made)


def test_what_release_0_1_left_half_replaced_is_finished_first(made):
    before = old_lines(made / "journal")
    (made / "journal").rename(made / "journal.new")
    shutil.copytree(made / "journal.new", made / "journal.old")

    with graphstore.open(made) as store:
        assert store.verify().ok

    assert is_new(made) and before == new_lines(made)
    assert not {"journal.new", "journal.old"} & names(made)


# ------------------------------------------------------------------ forgetting


@pytest.mark.parametrize("how", ["erase", "purge"])
def test_forgetting_removes_the_old_files_too(made, how):
    with graphstore.open(made) as store:
        assert (made / OLD).is_dir()
        store.notices.clear()
        if how == "erase":
            store.erase("secret", reason="asked for")
        else:
            store.evict(ids=["secret"], keep_audit=False)
        assert any(str(made / OLD) in notice for notice in store.notices)
    assert not (made / OLD).exists()
    search = ["grep", "-rl", SECRET, str(made)]  # another process: these files are open here
    assert "" == subprocess.run(search, capture_output=True, text=True).stdout


# ------------------------------------------------------------------ processes

HOLDER = """
import fcntl, os, socket, sys
with open(f"{sys.argv[1]}/lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print(f"pid {os.getpid()} on {socket.gethostname()}", file=lock, flush=True)
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_living_process_of_release_0_1_is_named(made):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and "held\n" == holder.stdout.readline()
        with pytest.raises(LockedError, match=rf"pid {holder.pid} .*release 0\.1.*Close it there"):
            graphstore.open(made)
        assert is_old(made)
        holder.communicate("\n")

    graphstore.open(made).close()
    assert is_new(made)


OPENS = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    store.add_node("fact", {"n": 1}, id=sys.argv[2])
    print("upgraded" if any("release 0.1" in notice for notice in store.notices) else "found", flush=True)
"""


@pytest.mark.rest
def test_of_processes_that_come_at_once_one_upgrades_and_all_write(made):
    before = len(old_lines(made / "journal"))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, str(made), f"of-{n}"], stdout=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    said = [worker.communicate()[0] for worker in workers]

    assert ["found\n"] * 3 + ["upgraded\n"] == sorted(said)
    assert before + 4 == len(new_lines(made))


KILLED = """
import os, signal, sys
left = int(sys.argv[2])
def hook(event, args):
    global left
    if event in EVENTS and any(sys.argv[1] in str(each) for each in args):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "sqlite3.connect", "os.truncate")
import graphstore
from graphstore.ledger.upgrade import upgrade_folder
from pathlib import Path
sys.addaudithook(hook)
upgrade_folder(Path(sys.argv[1]), 1.0)
"""


MEANWHILE = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    store.add_node("fact", {"n": 4}, id="meanwhile")
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of release 0.1."""
    return tree_of_old(tmp_path_factory.mktemp("release"))


@pytest.mark.rest
def test_killed_before_each_step_it_starts_again_or_is_finished(made, tmp_path, release):
    """A process is killed before its first, second, … access to a file of the folder, until one comes to its end."""
    before = old_lines(made / "journal")
    seen = set()
    for number in count(1):
        path = tmp_path / f"{number}" / "memory.gs"
        shutil.copytree(made, path)
        ended = subprocess.run([sys.executable, "-c", KILLED, str(path), str(number)])
        left = frozenset(names(path) & {"journal", "upgrading", NAME, OLD})
        seen.add(left)
        if "journal" in left:  # it is a store of release 0.1 still
            assert NAME not in left
            subprocess.run(
                [sys.executable, "-c", MEANWHILE, str(path)],
                env={**os.environ, "PYTHONPATH": str(release)},
                check=True,
            )
        with graphstore.open(path) as store:
            assert store.verify().ok
            assert ("journal" in left) == any(node.id == "meanwhile" for node in store.nodes())
        assert is_new(path) and before == new_lines(path)[: len(before)]
        assert before == old_lines(path / OLD)[: len(before)]
        shutil.rmtree(path)
        if ended.returncode == 0:
            break
    assert number > 20
    assert {
        frozenset({"journal", "upgrading"}),
        frozenset({"upgrading", OLD}),
        frozenset({NAME, OLD}),
    } <= seen
