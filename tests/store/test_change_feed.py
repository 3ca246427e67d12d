"""The rows and closings that a change feed gives, in parts of which several lie within one transaction, add up to the history of their line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphstore.core.tables.history_from_rows import RowHistory
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.ledger import Ledger
from graphstore.store.change_feed import ChangeFeed, Position
from graphstore.values.period import OPEN, moment
from tests.ledger.test_branch_rows import Branching

pytestmark = pytest.mark.in_process("asks the ledger of the store")


def taken(feed: ChangeFeed, name: str) -> dict[int, tuple[Any, Any]]:
    """The rows of a table with their ends."""
    found: dict[int, tuple[Any, Any]] = {}
    at, goal = Position(), feed.goal()[name]
    for part, after in feed.parts(name, at, goal, 3):
        for row in part.to_pylist():
            assert "tx_to" not in row or found[row["row"]] == (None, None)
            found[row["row"]] = row.get("tx_to"), row.get("closed_by")
        at = after
    assert at[:2] == goal[:2]
    return found


@pytest.mark.parametrize("seed", [0, 5])
def test_rows_and_closings_add_up_to_the_history_of_their_line(seed: int, tmp_path: Path) -> None:
    history = Branching(tmp_path / "memory.gs", seed)
    closed = 0
    with closing(history.trunk) as store:
        history.go_on(50)
        branches = [info.name for info in store.branches()]
        for line, name in [(store, "trunk"), *((store.on(name), name) for name in branches)]:
            feed, rows = ChangeFeed(line), line._core.rows
            assert isinstance(rows, (Ledger, BranchLedger))
            whole = RowHistory(rows)
            mark = whole.reached().mark
            periods = {"versions": whole.versions(0, mark.rows), "links": whole.links(0, mark.link_rows)}
            for table, expected in periods.items():
                ends = {
                    each.number: (None, None)
                    if each.tx_to == OPEN
                    else (moment(each.tx_to), None if each.closed_by is None else str(each.closed_by))
                    for each in expected
                }
                assert ends == taken(feed, table)
                closed += sum(end != (None, None) for end in ends.values())
            assert f"{whole.operations(0, 1)[0].tx} {name}" == feed.identity()
    assert branches
    assert closed > 20
