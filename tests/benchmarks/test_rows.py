"""Every row runs, at a small size: the answers of all stores are right, and ours are timed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import promises
from benchmarks.__main__ import found_twins, measure
from benchmarks.arena import Arena
from benchmarks.data import history
from benchmarks.rows import GROUPS

pytestmark = pytest.mark.in_process("times stores of its own")
NEED_MORE = {"postgres": {promises.POSTGRES}, "lake": set()}
"""Groups that need a server or minutes, with their promises."""
PROMISED = {
    "node": {promises.NODE},
    "hops": {promises.HOPS},
    "chains": {promises.HOPS},
    "deep": {promises.DEEP},
    "arrow": {promises.ARROW},
    "query": {promises.GRAPH},
    "load": {promises.BULK, promises.CLOSE},
    "writes": {promises.WRITE, promises.EVENTS},
    "batches": {promises.BATCH},
    "processes": {promises.WRITERS},
    "reaching": {promises.REACH, promises.RECOMPUTE},
    "events": {promises.EVENTS},
    "cli": {promises.FIRST_ANSWER},
    "search": {promises.SEARCH},
    "open": {promises.START_UP, promises.MEMORY, promises.SEARCH, promises.CLOSE},
}


def test_each_promise_has_rows():
    assert set(promises.ORDER) == set().union(*PROMISED.values(), *NEED_MORE.values())


@pytest.fixture(scope="module")
def arena(tmp_path_factory) -> Iterator[Arena]:
    """Load one history into all stores, once for every group, as `make bench` does. `open` closes them: it is the last group."""
    made = Arena("500", history(500), tmp_path_factory.mktemp("arena") / "arena", found_twins()[0])
    made.load()
    yield made
    made.close()


@pytest.mark.rest
@pytest.mark.parametrize("group", [name for name in GROUPS if name not in NEED_MORE])
def test_each_row_runs(group, arena):
    failed: list[str] = []
    rows = list(measure(arena, [group], failed))

    assert rows and not failed, failed
    assert PROMISED.get(group, set()) == {row.promise for row in rows} - {""}
    for row in rows:
        assert not row.wrong, row.wrong
        assert row.took["ours"] > 0
        assert bool(row.promise) <= bool(row.limits), row
        for limit in row.limits:
            if limit.over in ("", "floor", *arena.twins):
                assert row.measured(limit) is not None, (row, limit)
