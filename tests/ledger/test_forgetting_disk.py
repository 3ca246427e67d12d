"""One call of the system fails at any step of forgetting: the answer says what happened, and the store goes on whole or refuses further writes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

import graphstore
from graphstore import EngineError, GraphStore
from tests.ledger.test_forgetting import HOWS, files_with
from tests.ledger.test_forgetting_killed import COUNT, filled, is_forgotten, secret

pytestmark = [pytest.mark.in_process("the disk fails beneath it"), pytest.mark.rest]

CALLS = ("fsync", "unlink", "open", "truncate")
"""Functions of `os` that forgetting calls; SQLite calls the system itself."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    filled(path)
    return path


def forget(store: GraphStore, how: str, name: str) -> None:
    if how == "erase":
        store.erase(name, reason="asked for")
    else:
        store.evict(ids=[name], keep_audit=how == "evict")


class Failing:
    """The calls of one function of `os`, of which those from number `first` on fail, so many."""

    def __init__(self, patched: pytest.MonkeyPatch, function: str, first: int, many: int = 1) -> None:
        self.count, real = 0, getattr(os, function)

        def call(*args, **kwargs):
            self.count += 1
            if first <= self.count < first + many:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*args, **kwargs)

        patched.setattr(os, function, call)


def after(path: Path, store: GraphStore, how: str, error: EngineError | None) -> str:
    """Writes more, closes, opens again: everything acknowledged is there once, and what was said of the forgetting is so."""
    kept = []
    for number in range(5):
        try:
            kept.append(store.record_event("deploy", "goes on", id=f"more-{number}").event.id)
        except EngineError as refused:
            assert "open it again" in str(refused), refused
            assert error is not None and not kept
    shown = [event.id for event in store.events()] if kept else None
    store.close()
    with graphstore.open(path) as again:
        there = [event.id for event in again.events()]
        assert shown in (None, there)
        assert kept == sorted(name for name in there if name.startswith("more-"))
        done = is_forgotten(again, "event-1")
        assert done == ("event-1" not in there)
        for name in (f"event-{number}" for number in range(COUNT) if number != 1):
            assert secret(name) == again.event(name).description
        if error is None or error.outcome == "kept":
            assert done
        elif error.outcome == "unknown" and error.tx is not None:
            assert done == (error.tx in {change.tx for change in again.changes()})
        else:
            assert not done
        if done:
            assert [] == files_with(path, secret("event-1"))
            assert how != "purge" or [] == files_with(path, '"event-1"')
        assert () == again.verify().problems
        again.record_event("deploy", "goes on", id="last")
    assert graphstore.verify(path).ok
    return "fine" if error is None else str(error.outcome)


@pytest.mark.parametrize("many", [1, 1000])
@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("how", HOWS)
def test_a_call_that_fails_at_any_step_ends_in_a_true_answer(path, tmp_path, how, function, many):
    from shutil import copytree

    outcomes = set()
    for number in range(1, 60):
        copy = tmp_path / f"{number}.gs"
        copytree(path, copy)
        store = graphstore.open(copy)
        error = None
        with pytest.MonkeyPatch.context() as patched:
            calls = Failing(patched, function, number, many)
            try:
                forget(store, how, "event-1")
            except EngineError as caught:
                error = caught
        outcomes.add(after(copy, store, how, error))
        if calls.count < number:
            break
    else:
        pytest.fail(f"{function} is called more often than that")
    assert "fine" in outcomes


WORKER = """
import sys, graphstore
from graphstore import EngineError
path, how = sys.argv[1:]
store = graphstore.open(path)
try:
    if how == "erase":
        store.erase("event-1", reason="asked for")
    else:
        store.evict(ids=["event-1"], keep_audit=how == "evict")
    print("outcome fine -", flush=True)
except EngineError as error:
    print("outcome", error.outcome.replace(" ", "_"), error.tx.isoformat() if error.tx else "-", flush=True)
for number in range(5):
    try:
        store.record_event("deploy", "goes on", id=f"more-{number}")
        print("more", f"more-{number}", flush=True)
    except EngineError as error:
        assert "open it again" in str(error) or error.outcome == "not kept"
store.close()
"""


@pytest.mark.parametrize("call", ["fsync", "fdatasync", "pwrite64", "ftruncate", "unlink"])
@pytest.mark.parametrize("how", HOWS)
def test_where_the_system_itself_fails_the_answer_is_true(path, tmp_path, how, call):
    from shutil import copytree

    if which("strace") is None:
        pytest.skip("no strace here")
    for number in (1, 8):
        copy = tmp_path / f"{number}.gs"
        copytree(path, copy)
        run = subprocess.run(
            ["strace", "-f", "-qq", "-o", os.devnull, "-P", str(copy),
             *(part for name in ("ledger.db", "ledger.db-wal") for part in ("-P", str(copy / name))),
             "-e", f"trace={call}", "-e", f"inject={call}:error=EIO:when={number}",
             sys.executable, "-c", WORKER, str(copy), how],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        if "outcome" not in run.stdout:  # it could not even be opened, and said so
            assert "EngineError" in run.stderr, run.stderr
            continue
        assert 0 == run.returncode, run.stderr
        said = [line.split() for line in run.stdout.splitlines()]
        kept = [name for word, name, *_ in said if word == "more"]
        outcome, tx = said[0][1:]
        with graphstore.open(copy) as again:
            there = [event.id for event in again.events()]
            assert kept == sorted(name for name in there if name.startswith("more-"))
            done = "event-1" not in there
            if outcome in ("fine", "kept"):
                assert done
            elif outcome == "unknown":
                assert done == (tx in {change.tx.isoformat() for change in again.changes()})
            else:
                assert not done
            assert not done or [] == files_with(copy, secret("event-1"))
            assert () == again.verify().problems
