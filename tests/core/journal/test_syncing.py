"""A commit that is acknowledged is on the disk: each is synced before the verb returns."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

import graphstore

pytestmark = pytest.mark.in_process("counts the calls of this process")


def test_each_commit_is_synced_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.gs"
    sizes: list[int] = []
    sync = os.fdatasync

    def counted(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        sync(descriptor)

    with graphstore.open(path) as store:
        store.add_node("fact", {})
        monkeypatch.setattr(os, "fdatasync", counted)
        for number in range(3):
            before = len(sizes)
            store.add_node("fact", {"n": number})
            assert before < len(sizes)
            assert (path / "journal" / "00000001.jsonl").stat().st_size == sizes[-1]


class LastFirst:
    """A lock that the last of those who wait gets first, as a lock may that promises no order."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[object] = []
        self._taken = False

    def __enter__(self) -> None:
        me = object()
        with self._changed:
            self._waiting.append(me)
            assert self._changed.wait_for(lambda: not self._taken and self._waiting[-1] is me, 60)
            self._waiting.pop()
            self._taken = True

    def __exit__(self, *exc: object) -> None:
        with self._changed:
            self._taken = False
            self._changed.notify_all()


def test_who_was_served_by_a_sync_does_not_wait_for_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, let = threading.Semaphore(0), threading.Semaphore(0)
    sync = os.fdatasync

    def held(descriptor: int) -> None:
        begun.release()
        assert let.acquire(timeout=60)
        sync(descriptor)

    with graphstore.open(tmp_path / "memory.gs") as store:
        journal = store._core.journal
        wait, waiting = journal.sync, []

        def counted(ticket: int) -> bool:
            waiting.append(ticket)
            return wait(ticket)

        monkeypatch.setattr(journal, "sync", counted)
        monkeypatch.setattr(journal, "_syncing", LastFirst())
        monkeypatch.setattr(os, "fdatasync", held)

        def add(count: int) -> list[threading.Thread]:
            wanted = len(waiting) + count
            threads = [threading.Thread(target=store.add_node, args=("fact", {})) for _ in range(count)]
            for thread in threads:
                thread.start()
            until = time.monotonic() + 10
            while len(waiting) < wanted and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(0.2)
            return threads

        threads = add(1)
        assert begun.acquire(timeout=10)
        second = add(4)
        let.release()
        assert begun.acquire(timeout=10)
        third = add(4)
        let.release()
        assert begun.acquire(timeout=10)
        for thread in second:
            thread.join(3)
        late = [thread.is_alive() for thread in second + third]
        let.release()
        for thread in threads + second + third:
            thread.join(60)
        monkeypatch.undo()
        assert [False] * 4 + [True] * 4 == late
        assert 9 == len(store.nodes())
