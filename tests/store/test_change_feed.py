"""The rows and closings that a change feed gives, in parts of which several lie within one transaction, add up to the history of their line."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphstore.graph.history_from_rows import RowHistory
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.ledger import Ledger
from graphstore.store.change_feed import ChangeFeed, Position
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
            for table, label, rows in (("versions", "Version", mark.rows), ("links", "LINK", mark.link_rows)):
                ends = {
                    int(each["row"]): (None, None)
                    if each["tx_to"] == datetime.max
                    else (each["tx_to"].replace(tzinfo=UTC), each["closed_by"])
                    for each in whole.table(label, range(rows)).to_pylist()
                }
                assert ends == taken(feed, table)
                closed += sum(end != (None, None) for end in ends.values())
            assert f"{whole.last_tx(1)} {name}" == feed.identity()
    assert branches
    assert closed > 20
