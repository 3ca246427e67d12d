"""Every row runs, on a history of 200 versions: the answers of all stores are right, and ours are timed."""

from __future__ import annotations

import pytest

from benchmarks import reads, recall, resting
from benchmarks.__main__ import found_twins, measure
from benchmarks.arena import Arena
from benchmarks.data import history
from benchmarks.rows import GROUPS, ROOMS

pytestmark = [pytest.mark.rest, pytest.mark.in_process("times stores of its own")]


@pytest.mark.parametrize("group", [name for name in GROUPS if name not in ROOMS])
def test_each_row_runs(group, tmp_path, monkeypatch):
    monkeypatch.setattr(resting, "DEPENDANTS", 1_000)
    monkeypatch.setattr(recall, "FACTS", 1_000)
    monkeypatch.setattr(reads, "LIMIT", 60.0)
    twins, _ = found_twins()
    arena = Arena("200", history(200), tmp_path / "arena", twins, True)

    failed: list[str] = []
    rows = list(measure(arena, [group], failed))

    assert rows and not failed, failed
    for row in rows:
        assert not row.wrong, row.wrong
        assert row.took["ours"] > 0
