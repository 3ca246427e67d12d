"""A process that forgets is killed at any moment, or the disk refuses: the next opening finishes, and nothing else is lost."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStore, NotFoundError
from tests.conftest import Clock
from tests.ledger.test_forgetting import HOWS, files_with
from tests.support.disk import no_room

pytestmark = pytest.mark.rest

WORKER = Path(__file__).parents[1] / "support/forgetting_worker.py"
COUNT = 60


def secret(name: str) -> str:
    return f"SECRET of {name}."


def filled(path: Path, count: int = COUNT) -> list[str]:
    """Events with links among them; each says something that nothing else says."""
    clock = Clock("2026-01-01")
    names = [f"event-{number}" for number in range(count)]
    with graphstore.open(path, clock=clock) as store:
        for number, name in enumerate(names):
            store.record_event("deploy", secret(name), id=name, occurred_at=clock.move(minutes=1))
            if number % 5 == 4:
                store.link(name, "related_to", names[number - 1], reason="one after the other")
        store.query_tables("MATCH (e:Event) RETURN count(*)")
    return names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    filled(path)
    return path


def is_forgotten(store: GraphStore, name: str) -> bool:
    try:
        found = store.inspect(name).node
        # an id that is gone may be a unique beginning of one that is not
        return found.id != name or found.standing in ("evicted", "erased")
    except NotFoundError:
        return True


def holds(path: Path, done: set[str], under_way: set[str], how: str) -> set[str]:
    """Open it again. What was acknowledged is forgotten and in no file, the rest is whole. Gives what is forgotten."""
    with graphstore.open(path) as store:
        forgotten = {name for name in (f"event-{n}" for n in range(COUNT)) if is_forgotten(store, name)}
        assert done <= forgotten <= done | under_way
        for name in forgotten:
            assert [] == files_with(path, secret(name))
            assert how != "purge" or [] == files_with(path, f'"{name}"')
        for event in store.events():
            assert secret(event.id) == event.description
        assert COUNT - len(forgotten) == len(store.events())
        assert () == store.verify().problems
        assert [] == [each.name for each in path.rglob("*.new")] + [each.name for each in path.glob("*.old")]
        store.record_event("deploy", "goes on", id=f"more-{len(done)}-{time.time_ns()}")
        store.retract(store.events()[0].id, reason="only a trial")
    assert graphstore.verify(path).ok
    return forgotten


def run(path: Path, how: str, first: int, *at: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, str(WORKER), str(path), how, str(first), *at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert b"ready\n" == process.stdout.readline()
    return process


def heard(process: subprocess.Popen[bytes]) -> tuple[set[str], set[str], bool]:
    """What was acknowledged, what was under way, and whether it came to its end."""
    assert process.stdout is not None and process.stdin is not None
    lines = process.stdout.read().decode().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    process.stdin.close()
    done = {line[5:] for line in lines if line.startswith("done ")}
    begun = {line[6:] for line in lines if line.startswith("begin ")}
    return done, begun - done, "closed" in lines


@pytest.mark.parametrize("how", HOWS)
def test_killed_at_random_moments_the_next_opening_finishes(path, how):
    chance, done = random.Random(how), set()
    for _ in range(2):
        process = run(path, how, 0)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        time.sleep(chance.uniform(0.005, 0.15))
        process.send_signal(signal.SIGKILL)
        said, under_way, _ = heard(process)
        done = holds(path, done | said, under_way, how)


@pytest.mark.parametrize("how", HOWS)
def test_killed_while_it_forgets_what_only_branches_say(path, how):
    aside = [f"aside-{number}" for number in range(20)]
    with graphstore.open(path) as store:
        for number, name in enumerate(aside):
            there = {branch.name for branch in store.branches()}
            branch = (store.on if f"branch {number % 3}" in there else store.branch)(f"branch {number % 3}")
            branch.record_event("deploy", secret(name), id=name)
    chance, done = random.Random(how), set()
    for _ in range(2):
        process = run(path, how, COUNT)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        time.sleep(chance.uniform(0.005, 0.15))
        process.send_signal(signal.SIGKILL)
        said, under_way, _ = heard(process)
        done |= said
        with graphstore.open(path) as store:
            known = {event.id for branch in store.branches() for event in store.on(branch.name).events()}
            kept = known & set(aside)
            forgotten = set(aside) - kept
            assert done & set(aside) <= forgotten <= done | under_way
            assert [] == [name for name in forgotten if files_with(path, secret(name))]
            assert all(files_with(path, secret(name)) for name in kept)
            done |= forgotten
            assert () == store.verify().problems


@pytest.mark.parametrize("how", ("erase", "purge"))
@pytest.mark.parametrize("function", ("unlink", "fsync", "truncate"))
def test_ended_at_any_call_the_next_opening_finishes(path, tmp_path, how, function):
    for number in range(1, 30):
        copy = tmp_path / f"copy-{number}.gs"
        shutil.copytree(path, copy)
        process = run(copy, how, 3, function, str(number))
        process.stdin.write(b"go\n")
        process.stdin.flush()
        done, under_way, finished = heard(process)

        holds(copy, done, under_way, how)
        shutil.rmtree(copy)
        if finished:
            break
    else:
        pytest.fail(f"{function} is called more often than that")


# ---------------------------------------------------------------- the disk refuses


def refusing(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("how", ("erase", "evict"))
def test_where_the_disk_is_full_reads_say_forgotten_and_the_next_opening_finishes(path, how, monkeypatch):
    with graphstore.open(path) as store:
        with monkeypatch.context() as full:
            full.setattr(Path, "unlink", refusing)
            with pytest.raises(EngineError, match="Open the store again"):
                store.evict(ids=["event-1"]) if how == "evict" else store.erase("event-1", reason="asked for")
        assert {"evicted", "erased"} > {store.inspect("event-1").node.standing}
        assert f"[{how}".rstrip("e") in store.inspect("event-1").node.description
        assert files_with(path, secret("event-1"))
        assert not store.verify().ok
        store.record_event("deploy", "goes on", id="event-more")
    with graphstore.open(path) as store:
        assert [] == files_with(path, secret("event-1"))
        assert "goes on" == store.event("event-more").description
        assert () == store.verify().problems


def test_the_next_forgetting_finishes_one_that_the_disk_refused(path, monkeypatch):
    with graphstore.open(path) as store:
        with monkeypatch.context() as full:
            full.setattr(Path, "unlink", refusing)
            with pytest.raises(EngineError):
                store.erase("event-1", reason="asked for")
        store.erase("event-50", reason="asked for")

        assert [] == files_with(path, secret("event-1")) + files_with(path, secret("event-50"))
        assert secret("event-2") == store.event("event-2").description
        assert () == store.verify().problems


def test_without_audit_a_refusing_disk_leaves_everything_as_it_was(path):
    with graphstore.open(path) as store:
        before = store.events(), store.changes()
        with no_room(), pytest.raises(EngineError) as refused:
            store.evict(ids=["event-1"], keep_audit=False)
        assert "not kept" == refused.value.outcome

        assert before == (store.events(), store.changes())
        assert () == store.verify().problems
        assert ["event-1"] == store.evict(ids=["event-1"], keep_audit=False)
        assert [] == files_with(path, secret("event-1"))
        assert () == store.verify().problems


@pytest.mark.parametrize("how", HOWS)
def test_interrupted_anywhere_the_store_goes_on_from_what_the_disk_has(path, how, monkeypatch):
    """Control-C at a call of the system, before and after it is done."""
    names = iter([f"event-{number}" for number in range(COUNT)])
    with graphstore.open(path) as store:
        for owner, function in (
            (Path, "replace"),
            (Path, "rename"),
            (os, "fsync"),
            (os, "truncate"),
            (Path, "unlink"),
        ):
            for late in (False, True):
                name = next(names)
                with monkeypatch.context() as interrupted, pytest.raises((KeyboardInterrupt, StopIteration)):
                    interrupted.setattr(owner, function, interrupting(getattr(owner, function), late))
                    store.query_tables("MATCH (e:Event) RETURN count(*)")
                    if how == "erase":
                        store.erase(name, reason="asked for")
                    else:
                        store.evict(ids=[name], keep_audit=how == "evict")
                    raise StopIteration  # it makes no such call
                if is_forgotten(store, name):
                    assert [] == files_with(path, secret(name))
                for event in store.events():
                    assert secret(event.id) == event.description
                assert () == store.verify().problems


def interrupting(function, late):
    count = 0

    def call(*args, **kwargs):
        nonlocal count
        count += 1
        if count > 1:
            return function(*args, **kwargs)
        if late:
            function(*args, **kwargs)
        raise KeyboardInterrupt

    return call


# ---------------------------------------------------------------- who reads meanwhile


@pytest.mark.parametrize("how", HOWS)
def test_a_follower_shows_what_the_writer_shows(path, how):
    with graphstore.open(path) as store, graphstore.open(path, read_only=True) as reader:
        view = reader.as_of()
        for name in ("event-1", "event-30"):
            if how == "erase":
                store.erase(name, reason="asked for")
            else:
                store.evict(ids=[name], keep_audit=how == "evict")
            for each in (reader, view, reader.as_of()):
                assert is_forgotten(each, name)
                assert [] == each.query("MATCH (e:Event {id: $id}) RETURN e.id AS id", id=name).rows()
            assert store.changes() == reader.changes()
            assert [event.id for event in store.events()] == [event.id for event in reader.events()]
            assert [event.description for event in store.events()] == [
                event.description for event in reader.events()
            ]
            assert reader.verify().ok
            with graphstore.open(path, read_only=True) as late:
                assert store.changes() == late.changes()
                assert late.verify().ok
        store.record_event("deploy", "after it", id="event-after")
        assert "after it" == reader.event("event-after").description


def test_a_follower_opened_in_the_middle_shows_it_as_forgotten(path, monkeypatch):
    with graphstore.open(path) as store:
        with monkeypatch.context() as full:
            full.setattr(Path, "unlink", refusing)
            with pytest.raises(EngineError):
                store.erase("event-1", reason="asked for")
        with graphstore.open(path, read_only=True) as reader:
            assert files_with(path, secret("event-1"))
            assert "[erased]" == reader.inspect("event-1").node.description
            assert secret("event-2") == reader.event("event-2").description
            store.erase("event-2", reason="asked for")
            reader.refresh()
            assert "[erased]" == reader.inspect("event-1").node.description
            assert [] == files_with(path, secret("event-1"))
            assert secret("event-3") == reader.event("event-3").description


FOLLOWER = """
import sys, graphstore
while True:
    with graphstore.open(sys.argv[1], read_only=True) as store:
        for _ in range(20):
            store.refresh()
            for event in store.events():
                assert event.id.startswith("more") or event.description == f"SECRET of {event.id}.", event
            seen = {event.id for event in store.events()}
        print(len(seen), flush=True)
        if "more-last" in seen:
            break
"""


@pytest.mark.parametrize("how", HOWS)
def test_another_process_follows_all_the_while(path, how):
    with graphstore.open(path) as store:
        reader = subprocess.Popen(
            [sys.executable, "-c", FOLLOWER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert reader.stdout.readline()
        for number in range(30):
            name = f"event-{number}"
            if how == "erase":
                store.erase(name, reason="asked for")
            else:
                store.evict(ids=[name], keep_audit=how == "evict")
            store.record_event("deploy", "more", id=f"more-{number}")
        store.record_event("deploy", "more", id="more-last")
        said, failed = reader.communicate(timeout=60)
    assert ("", "61") == (failed.decode(), said.decode().split()[-1])


@pytest.mark.parametrize("how", HOWS)
def test_threads_read_and_write_while_another_forgets(path, how):
    failures: list[BaseException] = []
    over = threading.Event()
    with graphstore.open(path) as store:

        def again_and_again(work) -> threading.Thread:
            def run() -> None:
                while not over.is_set():
                    try:
                        work()
                    except NotFoundError:
                        pass
                    except BaseException as error:
                        failures.append(error)
                        return

            thread = threading.Thread(target=run)
            thread.start()
            return thread

        def read() -> None:
            for event in store.events():
                assert event.id.startswith("evt") or secret(event.id) == event.description, event
            found = store.inspect("event-20").node
            assert found.description == (secret("event-20") if found.standing == "stands" else "[evicted]")

        def ask() -> None:
            for row in store.query(
                "MATCH (e:Event) WHERE e.type = 'deploy' RETURN e.id AS id, e.description AS d"
            ):
                assert row["id"].startswith("evt") or secret(row["id"]) == row["d"], row

        def write() -> None:
            id = store.record_event("deploy", "written meanwhile").event.id
            assert "written meanwhile" == store.event(id).description

        threads = [again_and_again(work) for work in (read, read, ask, write, write)]
        for number in range(21):
            store.evict(
                ids=[f"event-{number}"], keep_audit=how != "purge"
            ) if how != "erase" or number == 20 else store.erase(f"event-{number}", reason="asked for")
        over.set()
        for thread in threads:
            thread.join()
        assert [] == failures
        assert COUNT - 21 == len([event for event in store.events() if event.id.startswith("event")])
        assert () == store.verify().problems
        written = [event.id for event in store.events()]
    with graphstore.open(path) as store:
        assert written == [event.id for event in store.events()]
