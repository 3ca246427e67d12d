"""The same work in DuckDB: the schema of the SQLite twin, loads from Arrow, every commit on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from benchmarks.data import OPEN, Clock, Data

SCHEMA = """
CREATE TABLE node(id VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL);
CREATE SEQUENCE version_row;
CREATE TABLE version("row" BIGINT PRIMARY KEY, node_id VARCHAR, number BIGINT, content VARCHAR, text VARCHAR,
                     valid_from BIGINT, valid_to BIGINT, tx_from BIGINT, tx_to BIGINT);
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
HOLDS = "{0}.valid_from <= $v AND {0}.valid_to > $v AND {0}.tx_from <= $t AND {0}.tx_to > $t"
NODE = "SELECT number, content FROM version x WHERE node_id = $id AND " + HOLDS.format("x")
LINK = "SELECT l.id, l.source, l.kind, l.target, l.reason, l.strength, l.valid_from, l.valid_to, l.tx_from, l.tx_to"
LINKS_FROM = LINK + " FROM link l WHERE l.source = $id AND " + HOLDS.format("l")
BACKLINKS_TO = LINK + " FROM link l WHERE l.target = $id AND " + HOLDS.format("l")
WALK = (
    """
WITH RECURSIVE walk(id, depth) AS (
    SELECT $id::VARCHAR, 0
    UNION ALL
    SELECT l.{next}, walk.depth + 1 FROM walk JOIN link l ON l.{here} = walk.id AND l.kind = '{kind}'
    WHERE walk.depth < $depth AND """
    + HOLDS.format("l")
    + """)
SELECT walk.id, x.number, x.content FROM walk JOIN version x ON x.node_id = walk.id AND {holds}
WHERE walk.depth > 0 {last} ORDER BY walk.depth"""
)
SUPERSEDED = WALK.format(
    next="source",
    here="target",
    kind="supersedes",
    holds="x.valid_from <= $v AND x.tx_from <= $t AND x.tx_to > $t",
    last="QUALIFY row_number() OVER (PARTITION BY walk.id ORDER BY x.valid_from DESC) = 1",
)
CAUSES = WALK.format(next="target", here="source", kind="caused_by", holds=HOLDS.format("x"), last="")
VIEW = (
    "SELECT n.id, n.kind, x.number, x.content, x.text, x.valid_from, x.valid_to, x.tx_from, x.tx_to "
    "FROM version x JOIN node n ON n.id = x.node_id WHERE " + HOLDS.format("x")
)
QUESTION = (
    "SELECT m.kind, count(*) FROM link l JOIN version x ON x.node_id = l.source AND "
    + HOLDS.format("x")
    + " JOIN version y ON y.node_id = l.target AND "
    + HOLDS.format("y")
    + " JOIN node m ON m.id = l.target "
    "WHERE l.kind = 'caused_by' AND x.content ->> '$.state' = 'open' AND "
    + HOLDS.format("l")
    + " GROUP BY 1 ORDER BY 1"
)


class Store:
    def __init__(self, path: Path) -> None:
        self.con = duckdb.connect(str(path))
        self.clock = Clock()
        self.inside = False
        self.next_row = 0

    def row(self) -> int:
        if not self.next_row:
            self.next_row = self.con.execute('SELECT coalesce(max("row"), 0) FROM version').fetchone()[0]
        self.next_row += 1
        return self.next_row


def at(instant: int) -> int:
    return instant


def create(folder: Path) -> Store:
    store = Store(folder / "store.duckdb")
    store.con.execute(SCHEMA)
    return store


def open(folder: Path) -> Store:
    return Store(folder / "store.duckdb")


def close(store: Store) -> None:
    store.con.close()


def prepare(data: Data) -> dict[str, pa.Table]:
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
    return store.con.execute("SELECT count(*) FROM version").fetchone()[0]


def node_as_of(store: Store, id: str, valid: int, tx: int) -> tuple[str, int, Any]:
    number, content = store.con.execute(NODE, {"id": id, "v": valid, "t": tx}).fetchone()
    return id, number, orjson.loads(content)


def links_from(store: Store, id: str, valid: int, tx: int) -> list[tuple[Any, ...]]:
    return store.con.execute(LINKS_FROM, {"id": id, "v": valid, "t": tx}).fetchall()


def backlinks_to(store: Store, id: str, valid: int, tx: int) -> list[tuple[Any, ...]]:
    return store.con.execute(BACKLINKS_TO, {"id": id, "v": valid, "t": tx}).fetchall()


def what_superseded(store: Store, id: str, valid: int, tx: int) -> dict[str, Any]:
    rows = store.con.execute(SUPERSEDED, {"id": id, "v": valid, "t": tx, "depth": 30}).fetchall()
    return {"steps": [(row[0], row[1], orjson.loads(row[2])) for row in rows]}


def causes(store: Store, id: str, valid: int, tx: int) -> dict[str, Any]:
    rows = store.con.execute(CAUSES, {"id": id, "v": valid, "t": tx, "depth": 3}).fetchall()
    return {"steps": [(row[0], row[1], orjson.loads(row[2])) for row in rows]}


def view_to_arrow(store: Store, when: int) -> pa.Table:
    return store.con.sql(VIEW, params={"v": when, "t": when}).to_arrow_table()


def ask(store: Store, when: int) -> list[tuple[str, int]]:
    return store.con.execute(QUESTION, {"v": when, "t": when}).fetchall()


def append_event(store: Store, number: int) -> None:
    tx = store.clock()
    store.con.execute(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            f"evt_{tx}",
            "deploy",
            f"deploy {number}",
            tx,
            "ci",
            orjson.dumps({"attempt": number}).decode(),
            tx,
            OPEN,
        ),
    )


def add_node(store: Store, id: str, content: dict[str, Any]) -> None:
    tx = store.clock()
    with transaction(store):
        store.con.execute("INSERT INTO node VALUES (?, 'fact')", (id,))
        store.con.execute(
            "INSERT INTO version VALUES (?, ?, 1, ?, NULL, ?, ?, ?, ?)",
            (store.row(), id, orjson.dumps(content).decode(), tx, OPEN, tx, OPEN),
        )


def revise(store: Store, id: str, content: dict[str, Any], begins: int) -> None:
    tx = store.clock()
    with transaction(store):
        _cut(store, id, begins, tx)
        store.con.execute(
            "INSERT INTO version SELECT $row, $id, max(number) + 1, $content, NULL, $begins, $open, $tx, $open "
            "FROM version WHERE node_id = $id",
            {
                "row": store.row(),
                "id": id,
                "content": orjson.dumps(content).decode(),
                "begins": begins,
                "open": OPEN,
                "tx": tx,
            },
        )


def supersede(store: Store, old: str, new: str, begins: int) -> None:
    tx = store.clock()
    with transaction(store):
        _cut(store, old, begins, tx)
        store.con.execute(
            "INSERT INTO link VALUES (?, ?, 'supersedes', ?, 'found wanting', NULL, ?, ?, ?, ?)",
            (f"lnk_{tx}", new, old, begins, OPEN, tx, OPEN),
        )


@contextmanager
def transaction(store: Store) -> Iterator[None]:
    if store.inside:
        yield
        return
    store.con.execute("BEGIN")
    store.inside = True
    try:
        yield
    except BaseException:
        store.con.execute("ROLLBACK")
        raise
    else:
        store.con.execute("COMMIT")
    finally:
        store.inside = False


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(row[:4] for row in value)
    return value["steps"] if isinstance(value, dict) else value


def _cut(store: Store, id: str, begins: int, tx: int) -> None:
    rows = store.con.execute(
        'SELECT "row", valid_from FROM version WHERE node_id = ? AND valid_to > ? AND tx_to = ?',
        (id, begins, OPEN),
    ).fetchall()
    for row, starts in rows:
        store.con.execute('UPDATE version SET tx_to = ? WHERE "row" = ?', (tx, row))
        if starts < begins:
            store.con.execute(
                "INSERT INTO version SELECT $new, node_id, number, content, text, valid_from, $begins, $tx, $open "
                'FROM version WHERE "row" = $row',
                {"new": store.row(), "begins": begins, "tx": tx, "open": OPEN, "row": row},
            )
