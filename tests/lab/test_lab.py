"""The fault lab sees what it is there to see: a round of each kind runs, and each harm done on purpose is found by the outside checker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphstore
from lab import faults
from lab.checker import Check
from lab.rounds import Round, kill

pytestmark = [pytest.mark.rest, pytest.mark.in_process("kills what it starts")]


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Round:
    """A round after its end, in which nothing was found."""
    round = Round("kill", "kill-5-0", tmp_path_factory.mktemp("round"))
    round.run(kill)
    return round


@pytest.fixture
def again(played, tmp_path) -> Path:
    """A copy of its folder, to be harmed."""
    shutil.copytree(played.folder, tmp_path / "copy")
    return tmp_path / "copy"


def found(folder: Path) -> list[str]:
    check = Check(folder / "store/memory.gs", folder / "notes")
    check.run()
    return check.problems


def test_a_round_kills_and_finds_all_as_it_was_acknowledged(played):
    assert [] == played.problems
    assert played.counts["kills"] >= 4
    assert played.counts["acknowledged"] > 50


def acknowledged(folder: Path, verb: str) -> str:
    """The last thing that was added by a verb, and not taken back since."""
    check = Check(folder / "store/memory.gs", folder / "notes")
    taken = {
        line.facts[word]
        for line in check.asked
        for word in ("target", "replaced", "gone")
        if word in line.facts
    }
    ids = [
        one.facts["nodes"][0]
        for one in check.asked
        if one.facts["verb"] == verb and one.word == "acknowledged"
    ]
    return [id for id in ids if id not in taken][-1]


def test_a_lost_transaction_is_found(again):
    id = acknowledged(again, "add")
    with graphstore.open(again / "store/memory.gs") as store:
        store.evict(ids=[id], keep_audit=False)

    assert any("acknowledged, and there 0 times" in one for one in found(again))


def test_a_write_done_twice_is_found(again):
    id = acknowledged(again, "pair")
    with graphstore.open(again / "store/memory.gs") as store:
        store.revise(id, {"by": "again"}, reason=id.removesuffix("-a"))

    assert any("acknowledged, and there 2 times" in one for one in found(again))


def test_bytes_that_were_to_be_erased_are_found(again):
    check = Check(again / "store/memory.gs", again / "notes")
    gone = next(
        one.facts["gone"] for one in check.asked if "gone" in one.facts and one.word == "acknowledged"
    )
    token = next(one.facts["token"] for one in check.asked if one.facts.get("nodes") == [gone])
    (again / "store/memory.gs/left.bin").write_text(token)

    assert any("are still in" in one for one in found(again))


@pytest.fixture
def watched(tmp_path) -> Iterator[tuple[Path, Path]]:
    """A folder whose system calls are watched, and where each fault is told."""
    folder = tmp_path / "watched"
    folder.mkdir()
    yield folder, tmp_path / "report"


@pytest.mark.parametrize("call", faults.CALLS)
def test_each_call_can_be_made_to_fail(watched, call):
    folder, report = watched
    script = """
import errno, mmap, os, sys
from pathlib import Path
folder = Path(sys.argv[1])
def calls():
    (folder / "new").mkdir()
    fd = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"12345678", 0)
    os.pread(fd, 8, 0)
    os.fsync(fd); os.fdatasync(fd)
    mmap.mmap(fd, 8)
    os.ftruncate(fd, 4)
    os.rename(folder / "a", folder / "b")
    os.unlink(folder / "b")
try:
    calls()
except OSError as error:
    print(error.errno)
"""
    env = faults.preload(folder, report, faults=f"{call}:1:1:5")
    done = subprocess.run(
        [sys.executable, "-c", script, folder], env=env, capture_output=True, text=True, check=True
    )

    assert "5" == done.stdout.strip(), done.stderr
    assert {call: 1} == faults.injected(report)
