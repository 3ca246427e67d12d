"""A failed opening leaves nothing open, locked or running, says which file and what to do, and may be tried again."""

from __future__ import annotations

import builtins
import errno
import io
import os
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError, EngineError

pytestmark = pytest.mark.in_process("fails system calls under it")

CALLS = {
    os: "open read pread write pwrite fsync fdatasync ftruncate stat lstat fstat listdir scandir mkdir rename replace unlink".split(),
    io: ["open"],
    builtins: ["open"],
}


class Failing:
    """The n-th system call below a folder, or of a descriptor, fails."""

    def __init__(self, path: Path, number: int, patched: pytest.MonkeyPatch) -> None:
        self.path, self.at, self.count = str(path), 0, 0
        self.number, self.thread = number, threading.get_ident()
        for module, names in CALLS.items():
            for name in names:
                patched.setattr(module, name, self.instead_of(getattr(module, name), name))

    def instead_of(self, real, name):
        def call(*args, **options):
            first = args[0] if args else None
            ours = name != "open" if isinstance(first, int) else str(first).startswith(self.path)
            if ours and name != "fstat" and threading.get_ident() == self.thread:
                self.at += 1
                if self.at == self.count:
                    raise OSError(
                        self.number,
                        os.strerror(self.number),
                        None if isinstance(first, int) else os.fspath(first),
                    )
            return real(*args, **options)

        return call


def descriptors() -> list[str]:
    """What this process has open."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(fd.readlink()))
        except OSError:
            continue
    return sorted(found)


def running() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())


def more(now: list[str], before: list[str]) -> list[str]:
    """What there is now and was not before; what another test left here may end at any time."""
    return sorted((Counter(now) - Counter(before)).elements())


@pytest.fixture
def made(tmp_path) -> Path:
    """A store of two transactions."""
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store, store.transaction():
        for number in range(300):
            store.add_node("fact", {"n": number}, id=f"n{number}")
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 300}, id="n300")
    return path


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE], ids=["EIO", "ENOSPC", "EMFILE"])
@pytest.mark.parametrize("durability", ["commit", "interval", "reader"])
def test_an_opening_that_fails_at_any_step_lets_go_and_may_be_tried_again(
    made, monkeypatch, number, durability
):
    options = {"read_only": True} if durability == "reader" else {"durability": durability}
    before, threads = descriptors(), running()
    refused = step = 0
    with monkeypatch.context() as patched:
        failing = Failing(made, number, patched)
        while True:
            step += 1
            failing.at, failing.count = 0, step
            try:
                store = graphstore.open(made, **options)
            except EngineError as error:
                refused += 1
                assert str(made) in str(error) and ". " in str(error), error
            else:  # nothing of the truth was needed there
                reached = failing.at
                failing.count = 0
                assert (300, "n300") == (store.node("n300").content["n"], store.node("n300").id)
                store.close()
                if reached < step:
                    break
            failing.count = 0
            assert not more(descriptors(), before), step
            assert not more(running(), threads), step
            with graphstore.open(made) as again:
                assert 301 == len(again.nodes())
    assert refused > 3


@pytest.mark.parametrize("harm", ["line", "header", "tables"])
def test_an_opening_of_harmed_files_lets_go(made, harm):
    with graphstore.open(made) as store:
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    ledger = made / "ledger.db"  # no connection of this process is open
    whole, before = ledger.read_bytes(), descriptors()
    if harm == "tables":
        (made / "graph.kuzu").unlink()
        (made / "graph.kuzu").mkdir()
    else:
        ledger.write_bytes(whole.replace(b'"tx":"2', b'"tx":"3') if harm == "line" else b"x" + whole[1:])

    if harm in ("line", "header"):
        for options in ({}, {"read_only": True}, {"durability": "interval"}):
            if harm == "line":  # an opening does not read it
                graphstore.open(made, **options).close()
                assert not graphstore.verify(made).ok
            else:
                with pytest.raises(DamageError, match="line"):
                    graphstore.open(made, **options)
            assert not more(descriptors(), before)
        ledger.write_bytes(whole)
    with graphstore.open(made) as store:
        assert 301 == len(store.nodes())
    assert not more(descriptors(), before)


LIMITED = textwrap.dedent(
    """
    import os, resource, sys
    import graphstore
    from graphstore import EngineError
    path = sys.argv[1]
    graphstore.open(path).close()  # all modules are loaded
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    def limit(count):
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    used = sorted(map(int, os.listdir("/proc/self/fd")))
    refused = 0
    for read_only in (False, True):
        for more in range(40):
            limit(used[-1] + more)
            try:
                store = graphstore.open(path, read_only=read_only)
                assert store.node("n300").content == {"n": 300}
                store.close()
                if more > 20:
                    break
            except EngineError as error:
                refused += 1
                assert path in str(error) and "ulimit" in str(error), error
            finally:
                limit(hard)
            assert sorted(map(int, os.listdir("/proc/self/fd"))) == used, (more, used)
            with graphstore.open(path) as store:
                assert len(store.nodes()) == 301
    assert refused > 1, refused
    print("done")
    """
)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_a_process_with_no_descriptor_left_opens_once_it_has_some(made):
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(made)], capture_output=True, text=True, check=False
    )
    assert 0 == run.returncode, run.stdout + run.stderr
    assert "done\n" == run.stdout
