"""The rows of a ledger: what `verify()` finds when they are not what the chain says, and how they are made anew."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

import graphstore
from graphstore import Branch, EngineError, GraphStore
from graphstore.events.timeline import record_message
from graphstore.ledger.checking import faults
from graphstore.ledger.database import Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.row_writing import TABLES
from tests.support.ledger_rows import change, rows

PASSING = {
    "all_told", "all_linked", "all_removed", "segment", "posting", "taken_closed", "deep_row", "deep_group"
}  # fmt: skip
"""Tables of what came and went in one transaction and matters later all the same: `test_standings.py` makes such rows. Segments take many versions:
`test_word_rows.py` makes them. Deep rows take many periods: `test_deep_rows.py` makes them."""

pytestmark = pytest.mark.in_process("reads and changes the file of the store")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """The folder of a closed store with rows in each table."""
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        fill(store)
    return path


def fill(store: GraphStore) -> None:
    """Record something for each table of rows."""
    store.define_kind("leans_on", rests=["retracted", "shaky"])
    store.set_retention(days=4000)
    for name in ("cause", "plan", "rumour", "secret"):
        store.add_node("fact", {"says": name}, id=name, key=name)
    store.add_node("fact", {"says": "later"}, id="later", supersedes=["plan"], derived_from=["rumour"])
    store.link("later", "leans_on", "cause", reason="it was said")
    store.add_node("fact", {"says": "tagged"}, tags=["hot"])
    store.add_node("fact", {"says": "for a while"}, valid_from="2020-01-01", valid_to="2021-01-01")
    record_message(store, "TEXT", "the pump stands", sender="ana", thread="t1", trace_id="one")
    failed = {"fingerprint": "pump", "metadata": {"scope": "team"}}
    store.record_event("incident", "the pump failed", id="evt-pump", **failed)
    store.record_event("incident", "the pump failed", **failed)
    store.revise("rumour", {"says": "otherwise"})
    with store.transaction():
        store.revise("cause", {"says": "again"})
        store.revise("cause", {"says": "and again"})
        store.link("secret", "part_of", "cause", valid_from="2020-01-01", valid_to="2021-01-01")
        store.unlink(store.as_of(valid="2020-06-01").links_from("secret")[0].id)
    store.retract("rumour", reason="it was never so")
    store.confirm("later", reason="still so")
    store.undo(store.changes()[-1].tx, reason="it is not")
    merged = store.branch("merged")
    store.add_node("fact", {"says": "meanwhile"})
    merged.revise("cause", {"says": "as merged"})
    store.merge("merged")
    fill_branch(store.branch("draft"))
    store.erase("secret", reason="private")


def fill_branch(branch: Branch) -> None:
    """Record something for each table of what a branch closed of the trunk's rows."""
    branch.confirm("later", reason="still so here")
    branch.revise("plan", {"says": "once more"})
    branch.unlink(branch.as_of().links_from("later")[0].id)
    branch.retract("later", reason="not here")


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows, by table."""
    return {table: sorted(rows(path, f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def test_every_table_of_rows_is_written(closed):
    empty = {table for table, found in contents(closed).items() if not found}
    assert empty <= PASSING
    with graphstore.open(closed) as store:
        assert store.verify().problems == ()


def test_rows_made_anew_are_those_that_were_written_step_by_step(closed):
    before = contents(closed)
    with graphstore.open(closed) as store:
        store.rebuild()
    assert before == contents(closed)


@pytest.mark.parametrize("table", [table for table in TABLES if table not in PASSING | {"analyzer", "fresh"}])
def test_a_row_that_was_changed_lost_or_added_is_found(closed, table):
    chance = random.Random(table)
    before = contents(closed)[table]
    [(name, *_)] = [row[1:] for row in rows(closed, f"PRAGMA table_info({table})")][-1:]
    rowid = next(
        column
        for column in ("number", "period", "entity", "link", "tx", "version", "operation")
        if column in columns(closed, table)
    )
    value = chance.choice([row[columns(closed, table).index(rowid)] for row in before])
    changes = {
        "lost": f"DELETE FROM {table} WHERE {rowid} = {value}",
        "changed": f"UPDATE {table} SET {name} = CASE typeof({name}) WHEN 'text' THEN {name} || 'x' ELSE coalesce({name}, 7) + 1 END WHERE {rowid} = {value}",
    }
    for word, statement in changes.items():
        change(closed, statement)
        with contextlib.closing(Ledger(Database(closed / "ledger.db"))) as ledger:
            found = [why for _, why in faults(ledger.database)]
            assert found and all(f"the table {table} " in why for why in found), word
            ledger.rebuild_rows()
            assert not list(faults(ledger.database)), word
    assert before == contents(closed)[table]


def test_a_ledger_of_schema_3_is_upgraded(closed):
    """Its tables had the names that views have now, and the rows of the trunk alone."""
    before = contents(closed)
    for (view,) in rows(
        closed, "SELECT name FROM sqlite_master WHERE type = 'view' AND sql LIKE '%FROM all_%'"
    ):
        change(closed, f"DROP VIEW {view}")
    for table in TABLES:
        if table.startswith("all_"):
            change(closed, f"ALTER TABLE {table} RENAME TO {table.removeprefix('all_')}")
    change(closed, "PRAGMA user_version=3")

    with graphstore.open(closed) as store:
        assert before == contents(closed)
        assert store.verify().problems == ()


def test_a_ledger_of_schema_7_gets_the_standings_of_this_release(tmp_path):
    """There, what was replaced before it began was not yet until its successor began."""
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("plan", {}, id="june", valid_from="2099-06-01")
        store.add_node("plan", {}, id="again", valid_from="2099-06-01", supersedes=["june"])
    begins = 4_084_041_600_000_000
    change(path, f"UPDATE all_absence SET valid_from = {begins}")
    change(path, "PRAGMA user_version=7")
    with pytest.raises(EngineError, match=r"has schema 7.*without read_only"):
        graphstore.open(path, read_only=True)

    with graphstore.open(path) as store:
        assert "superseded" == store.inspect("june").node.standing
        assert store.verify().problems == ()


def columns(path: Path, table: str) -> list[str]:
    """The names of the columns of a table."""
    return [row[1] for row in rows(path, f"PRAGMA table_info({table})")]


def test_a_store_of_the_last_release_has_the_same_rows_as_one_told_the_same(closed, tmp_path):
    """A dump restored elsewhere has the rows of the original: they follow from the chain alone."""
    with graphstore.open(closed) as store:
        store.export(tmp_path / "dump")
    graphstore.restore(tmp_path / "dump", tmp_path / "again.gs")
    assert contents(closed) == contents(tmp_path / "again.gs")
