"""The same work in DuckDB: the schema and the statements of the SQLite twin, loads from Arrow, answers to Arrow, every commit on disk."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.shared import OPEN, Clock
from benchmarks.sqlite_twin import (
    VIEW,
    add_node,
    append_event,
    ask,
    at,
    backlinks_to,
    causes,
    links_from,
    node_as_of,
    plain,
    revise,
    right,
    supersede,
    transaction,
    what_superseded,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.data import Data

SCHEMA = """
CREATE TABLE node(id VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL);
CREATE SEQUENCE version_row START 1000000000;
CREATE TABLE version("row" BIGINT PRIMARY KEY DEFAULT nextval('version_row'), node_id VARCHAR, number BIGINT, content VARCHAR,
                     text VARCHAR, valid_from BIGINT, valid_to BIGINT, tx_from BIGINT, tx_to BIGINT);
CREATE TABLE link(id VARCHAR PRIMARY KEY, source VARCHAR, kind VARCHAR, target VARCHAR, reason VARCHAR, strength BIGINT,
                  valid_from BIGINT, valid_to BIGINT, tx_from BIGINT, tx_to BIGINT);
CREATE TABLE event(id VARCHAR PRIMARY KEY, type VARCHAR, description VARCHAR, occurred_at BIGINT, source VARCHAR,
                   metadata VARCHAR, tx_from BIGINT, tx_to BIGINT);
"""
# Made after the load, which is faster, and before any question.
INDEXES = """
CREATE INDEX version_node ON version(node_id);
CREATE INDEX link_source ON link(source);
CREATE INDEX link_target ON link(target);
"""


class Store:
    begin = "BEGIN"

    def __init__(self, path: Path) -> None:
        self.con = duckdb.connect(str(path))
        self.clock = Clock()
        self.inside = False

    def rows(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self.con.execute(_dollars(statement), given).fetchall()


def create(folder: Path) -> Store:
    store = Store(folder / "store.duckdb")
    store.con.execute(SCHEMA)
    return store


def open(folder: Path) -> Store:
    return Store(folder / "store.duckdb")


def close(store: Store) -> None:
    store.con.close()


def prepare(data: Data) -> dict[str, pa.Table]:
    import pyarrow as pa

    ends = pa.array([OPEN] * data.events.num_rows, pa.int64())
    return {
        "node": data.nodes,
        "version": data.versions,
        "link": data.links,
        "event": data.events.append_column("tx_to", ends),
    }


def bulk_load(store: Store, loads: dict[str, pa.Table]) -> int:
    with transaction(store):
        for name, table in loads.items():
            store.con.register("loaded", table)
            store.con.execute(f"INSERT INTO {name} SELECT * FROM loaded")
            store.con.unregister("loaded")
    store.con.execute(INDEXES)
    return store.rows("SELECT count(*) FROM version", {})[0][0]  # type: ignore[no-any-return]


def view_to_arrow(store: Store, when: int) -> pa.Table:
    return store.con.sql(_dollars(VIEW), params={"v": when, "t": when}).to_arrow_table()


@cache
def _dollars(statement: str) -> str:
    """Names as DuckDB marks them: `$name` for `:name`."""
    return re.sub(r":(\w+)", r"$\1", statement)


__all__ = [
    "add_node",
    "append_event",
    "ask",
    "at",
    "backlinks_to",
    "causes",
    "links_from",
    "node_as_of",
    "plain",
    "revise",
    "right",
    "supersede",
    "what_superseded",
]
