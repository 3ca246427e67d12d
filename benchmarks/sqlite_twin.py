"""The same work in SQLite: a schema with the indexes these questions want, WAL, every commit on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from benchmarks.data import OPEN, Clock, Data

SCHEMA = """
CREATE TABLE node(id TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE version(row INTEGER PRIMARY KEY, node_id TEXT, number INTEGER, content TEXT, text TEXT,
                     valid_from INTEGER, valid_to INTEGER, tx_from INTEGER, tx_to INTEGER);
CREATE TABLE link(id TEXT PRIMARY KEY, source TEXT, kind TEXT, target TEXT, reason TEXT, strength INTEGER,
                  valid_from INTEGER, valid_to INTEGER, tx_from INTEGER, tx_to INTEGER);
CREATE TABLE event(id TEXT PRIMARY KEY, type TEXT, description TEXT, occurred_at INTEGER, source TEXT, metadata TEXT,
                   tx_from INTEGER, tx_to INTEGER);
CREATE INDEX version_node ON version(node_id, valid_from DESC, valid_to, tx_from, tx_to);
CREATE INDEX link_source ON link(source, kind);
CREATE INDEX link_target ON link(target, kind);
CREATE INDEX event_time ON event(occurred_at);
"""
HOLDS = "{0}.valid_from <= :v AND {0}.valid_to > :v AND {0}.tx_from <= :t AND {0}.tx_to > :t"
NODE = (
    "SELECT number, content FROM version x WHERE node_id = :id AND "
    + HOLDS.format("x")
    + " ORDER BY valid_from DESC LIMIT 1"
)
# Both ends are marked with how they stand, as a link of ours is: a lookup of each end's row.
ENDS = ", ".join(
    f"EXISTS (SELECT 1 FROM version x WHERE x.node_id = l.{end} AND " + HOLDS.format("x") + ")"
    for end in ("source", "target")
)
LINK = "SELECT l.id, l.source, l.kind, l.target, l.reason, l.strength, l.valid_from, l.valid_to, l.tx_from, l.tx_to, "
LINKS_FROM = LINK + ENDS + " FROM link l WHERE l.source = :id AND " + HOLDS.format("l")
BACKLINKS_TO = LINK + ENDS + " FROM link l WHERE l.target = :id AND " + HOLDS.format("l")
WALK = (
    """
WITH RECURSIVE walk(id, depth, link, reason, since) AS (
    SELECT :id, 0, NULL, NULL, NULL
    UNION ALL
    SELECT l.{next}, walk.depth + 1, l.id, l.reason, l.valid_from FROM walk JOIN link l ON l.{here} = walk.id AND l.kind = '{kind}'
    WHERE walk.depth < :depth AND """
    + HOLDS.format("l")
    + """)
SELECT walk.id, walk.link, walk.reason, walk.since, x.number, x.content FROM walk
JOIN version x ON x.node_id = walk.id AND """
    + "{holds}"
    + """ WHERE walk.depth > 0 ORDER BY walk.depth"""
)
SUPERSEDED = WALK.format(
    next="source",
    here="target",
    kind="supersedes",
    holds=(
        "x.row = (SELECT row FROM version y WHERE y.node_id = walk.id AND y.tx_from <= :t AND y.tx_to > :t "
        "AND y.valid_from <= :v ORDER BY valid_from DESC LIMIT 1)"
    ),
)
CAUSES = WALK.format(next="target", here="source", kind="caused_by", holds=HOLDS.format("x"))
AROUND = (
    """
WITH RECURSIVE walk(id, depth) AS (
    SELECT :id, 0
    UNION
    SELECT l.target, walk.depth + 1 FROM walk JOIN link l ON l.source = walk.id AND l.kind <> 'supersedes'
    WHERE walk.depth < 3 AND """
    + HOLDS.format("l")
    + """)
SELECT DISTINCT walk.id, x.number, x.content FROM walk JOIN version x ON x.node_id = walk.id AND """
    + HOLDS.format("x")
    + " WHERE walk.id <> :id"
)
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
        self.con = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        self.con.execute("PRAGMA journal_mode=WAL")
        self.con.execute("PRAGMA synchronous=FULL")
        self.con.execute("PRAGMA cache_size=-65536")
        self.con.execute("PRAGMA mmap_size=1073741824")
        self.clock = Clock()


def at(instant: int) -> int:
    return instant


def create(folder: Path) -> Store:
    store = Store(folder / "store.sqlite")
    store.con.executescript(SCHEMA)
    return store


def open(folder: Path) -> Store:
    return Store(folder / "store.sqlite")


def close(store: Store) -> None:
    store.con.close()


def prepare(data: Data) -> dict[str, list[tuple[Any, ...]]]:
    tables = {"node": data.nodes, "version": data.versions, "link": data.links, "event": data.events}
    loads = {
        name: list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        for name, table in tables.items()
    }
    loads["event"] = [(*row, OPEN) for row in loads["event"]]
    return loads


def bulk_load(store: Store, loads: dict[str, list[tuple[Any, ...]]]) -> int:
    with transaction(store):
        for name, rows in loads.items():
            marks = ", ".join("?" * len(rows[0]))
            store.con.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    # No ANALYZE: with statistics the planner builds a Bloom filter over all links for each walk, 1.6 ms instead of 0.03.
    return store.con.execute("SELECT count(*) FROM version").fetchone()[0]


def node_as_of(store: Store, id: str, valid: int, tx: int) -> tuple[str, int, Any]:
    number, content = store.con.execute(NODE, {"id": id, "v": valid, "t": tx}).fetchone()
    return id, number, orjson.loads(content)


def links_from(store: Store, id: str, valid: int, tx: int) -> list[tuple[Any, ...]]:
    return store.con.execute(LINKS_FROM, {"id": id, "v": valid, "t": tx}).fetchall()


def backlinks_to(store: Store, id: str, valid: int, tx: int) -> list[tuple[Any, ...]]:
    return store.con.execute(BACKLINKS_TO, {"id": id, "v": valid, "t": tx}).fetchall()


def what_superseded(store: Store, id: str, valid: int, tx: int) -> dict[str, Any]:
    rows = store.con.execute(SUPERSEDED, {"id": id, "v": valid, "t": tx, "depth": 20_000}).fetchall()
    return {"steps": [(row[0], row[4], orjson.loads(row[5])) for row in rows]}


def causes(store: Store, id: str, valid: int, tx: int) -> dict[str, Any]:
    rows = store.con.execute(CAUSES, {"id": id, "v": valid, "t": tx, "depth": 3}).fetchall()
    return {"steps": [(row[0], row[4], orjson.loads(row[5])) for row in rows]}


def walk(store: Store, id: str, valid: int, tx: int) -> tuple[Any, ...]:
    rows = store.con.execute(AROUND, {"id": id, "v": valid, "t": tx}).fetchall()
    return tuple((row[0], row[1], orjson.loads(row[2])) for row in rows)


def view_to_arrow(store: Store, when: int) -> pa.Table:
    rows = store.con.execute(VIEW, {"v": when, "t": when}).fetchall()
    names = ("id", "kind", "number", "content", "text", "valid_from", "valid_to", "tx_from", "tx_to")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


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
            "INSERT INTO version VALUES (NULL, ?, 1, ?, NULL, ?, ?, ?, ?)",
            (id, orjson.dumps(content).decode(), tx, OPEN, tx, OPEN),
        )


def revise(store: Store, id: str, content: dict[str, Any], begins: int) -> None:
    tx = store.clock()
    with transaction(store):
        _cut(store, id, begins, tx)
        store.con.execute(
            "INSERT INTO version SELECT NULL, ?1, max(number) + 1, ?2, NULL, ?3, ?4, ?5, ?4 FROM version WHERE node_id = ?1",
            (id, orjson.dumps(content).decode(), begins, OPEN, tx),
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
    if store.con.in_transaction:
        yield
        return
    store.con.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        store.con.execute("ROLLBACK")
        raise
    store.con.execute("COMMIT")


def plain(value: Any) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return sorted(value)
    if isinstance(value, list):
        return sorted(row[:4] for row in value)
    return value["steps"] if isinstance(value, dict) else value


def _cut(store: Store, id: str, begins: int, tx: int) -> None:
    rows = store.con.execute(
        "SELECT row, valid_from FROM version WHERE node_id = ? AND valid_to > ? AND tx_to = ?",
        (id, begins, OPEN),
    ).fetchall()
    for row, starts in rows:
        store.con.execute("UPDATE version SET tx_to = ? WHERE row = ?", (tx, row))
        if starts < begins:
            store.con.execute(
                "INSERT INTO version SELECT NULL, node_id, number, content, text, valid_from, ?, ?, ? FROM version WHERE row = ?",
                (begins, tx, OPEN, row),
            )
