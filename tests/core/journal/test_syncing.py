"""A commit that is acknowledged is on the disk: each is synced before the verb returns."""

from __future__ import annotations

import os
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
