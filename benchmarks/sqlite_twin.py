"""The same work in SQLite: a schema with the indexes these questions want, WAL, every commit on disk.

The statements are those of DuckDB's twin too: what both understand, with `:name` for what is given. What is believed now has partial indexes.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.shared import OPEN, Clock

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.data import Data

SCHEMA = """
CREATE TABLE node(id TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE version("row" INTEGER PRIMARY KEY, node_id TEXT, number INTEGER, content TEXT, text TEXT,
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
# Most questions are about what is believed now. DuckDB has no partial indexes.
PARTIAL = f"""
CREATE INDEX version_now ON version(node_id, valid_from DESC, valid_to) WHERE tx_to = {OPEN};
CREATE INDEX link_source_now ON link(source, kind, valid_from) WHERE tx_to = {OPEN};
CREATE INDEX link_target_now ON link(target, kind, valid_from) WHERE tx_to = {OPEN};
"""
INSERT = "INSERT INTO version(node_id, number, content, text, valid_from, valid_to, tx_from, tx_to) "
HOLDS = "{0}.valid_from <= :v AND {0}.valid_to > :v AND {0}.tx_from <= :t AND {0}.tx_to > :t"


def _both(statement: str) -> tuple[str, str]:
    """Return two statements: for tx now, which the partial indexes answer, and for any tx."""
    return re.sub(r"(\w+)\.tx_from <= :t AND \w+\.tx_to > :t", rf"\1.tx_to = {OPEN}", statement), statement


NODE = _both(
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
LINKS_FROM = _both(LINK + ENDS + " FROM link l WHERE l.source = :id AND " + HOLDS.format("l"))
BACKLINKS_TO = _both(LINK + ENDS + " FROM link l WHERE l.target = :id AND " + HOLDS.format("l"))
WALK = (
    """
WITH RECURSIVE walk(id, depth, link, reason, since) AS (
    SELECT CAST(:id AS TEXT), 0, CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS BIGINT)
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
SUPERSEDED = _both(
    WALK.format(
        next="source",
        here="target",
        kind="supersedes",
        holds=(
            'x."row" = (SELECT "row" FROM version y WHERE y.node_id = walk.id AND y.tx_from <= :t AND y.tx_to > :t '
            "AND y.valid_from <= :v ORDER BY valid_from DESC LIMIT 1)"
        ),
    )
)
CAUSES = _both(WALK.format(next="target", here="source", kind="caused_by", holds=HOLDS.format("x")))
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
        self.con = sqlite3.connect(path, timeout=60, isolation_level=None, cached_statements=256)
        self.con.execute("PRAGMA journal_mode=WAL")
        self.con.execute("PRAGMA synchronous=FULL")
        self.con.execute("PRAGMA cache_size=-65536")
        self.con.execute("PRAGMA mmap_size=1073741824")
        self.lock = os.open(path.with_name("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self.clock = Clock()
        self.inside = False

    def rows(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self.con.execute(statement, given).fetchall()


def at(instant: int | None) -> int | None:
    """Return an instant as this store takes it; None is now."""
    return instant


def right(verb: str, answer: Any) -> Any:
    """So much of the right answer as is asked of this store."""
    return answer


def create(folder: Path) -> Store:
    store = Store(folder / "store.sqlite")
    store.con.executescript(SCHEMA + PARTIAL)
    return store


def open(folder: Path) -> Store:
    return Store(folder / "store.sqlite")


def close(store: Store) -> None:
    store.con.close()
    os.close(store.lock)


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


def node_as_of(store: Any, id: str, valid: int | None, tx: int | None) -> tuple[str, int, Any] | None:
    found = _read(store, NODE, {"id": id}, valid, tx)
    return (id, found[0][0], orjson.loads(found[0][1])) if found else None


def links_from(store: Any, id: str, valid: int | None, tx: int | None) -> list[tuple[Any, ...]]:
    return _read(store, LINKS_FROM, {"id": id}, valid, tx)


def backlinks_to(store: Any, id: str, valid: int | None, tx: int | None) -> list[tuple[Any, ...]]:
    return _read(store, BACKLINKS_TO, {"id": id}, valid, tx)


def what_superseded(store: Any, id: str, valid: int | None, tx: int | None) -> dict[str, Any]:
    rows = _read(store, SUPERSEDED, {"id": id, "depth": 20_000}, valid, tx)
    return {"steps": [(row[0], row[4], orjson.loads(row[5])) for row in rows]}


def causes(store: Any, id: str, valid: int | None, tx: int | None) -> dict[str, Any]:
    rows = _read(store, CAUSES, {"id": id, "depth": 3}, valid, tx)
    return {"steps": [(row[0], row[4], orjson.loads(row[5])) for row in rows]}


def _read(
    store: Any, statement: tuple[str, str], given: dict[str, Any], valid: int | None, tx: int | None
) -> list[tuple[Any, ...]]:
    given["v"] = time.time_ns() // 1_000 if valid is None else valid
    if tx is None:
        return store.rows(statement[0], given)  # type: ignore[no-any-return]
    given["t"] = tx
    return store.rows(statement[1], given)  # type: ignore[no-any-return]


def view_rows(store: Store, when: int) -> list[tuple[Any, ...]]:
    """Fetch the rows of a view as tuples: the floor of a view in Arrow."""
    return store.con.execute(VIEW, {"v": when, "t": when}).fetchall()


def view_to_arrow(store: Store, when: int) -> pa.Table:
    import pyarrow as pa

    rows = view_rows(store, when)
    names = ("id", "kind", "number", "content", "text", "valid_from", "valid_to", "tx_from", "tx_to")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def ask(store: Any, when: int) -> list[tuple[Any, ...]]:
    return store.rows(QUESTION, {"v": when, "t": when})  # type: ignore[no-any-return]


def append_event(store: Any, number: int) -> None:
    tx = store.clock()
    given = {"id": f"evt_{tx}", "what": f"deploy {number}", "tx": tx, "open": OPEN}
    given["metadata"] = orjson.dumps({"attempt": number}).decode()
    store.rows("INSERT INTO event VALUES (:id, 'deploy', :what, :tx, 'ci', :metadata, :tx, :open)", given)


def add_node(store: Any, id: str, content: dict[str, Any]) -> None:
    tx = store.clock()
    with transaction(store):
        store.rows("INSERT INTO node VALUES (:id, 'fact')", {"id": id})
        given = {"id": id, "content": orjson.dumps(content).decode(), "tx": tx, "open": OPEN}
        store.rows(INSERT + "VALUES (:id, 1, :content, NULL, :tx, :open, :tx, :open)", given)


def add_in_turn(store: Store, id: str, content: dict[str, Any]) -> None:
    """Add under the same file lock as our writers take. SQLite's own lock polls, and writers starve."""
    import fcntl  # not with the module: Windows has none

    fcntl.flock(store.lock, fcntl.LOCK_EX)
    try:
        add_node(store, id, content)
    finally:
        fcntl.flock(store.lock, fcntl.LOCK_UN)


def revise(store: Any, id: str, content: dict[str, Any], begins: int) -> None:
    tx = store.clock()
    given = {"id": id, "content": orjson.dumps(content).decode(), "begins": begins, "tx": tx, "open": OPEN}
    with transaction(store):
        _cut(store, id, begins, tx)
        store.rows(
            INSERT
            + "SELECT :id, max(number) + 1, :content, NULL, CAST(:begins AS BIGINT), CAST(:open AS BIGINT), CAST(:tx AS BIGINT), "
            "CAST(:open AS BIGINT) FROM version WHERE node_id = :id",
            given,
        )


def supersede(store: Any, old: str, new: str, begins: int) -> None:
    tx = store.clock()
    given = {"id": f"lnk_{tx}", "new": new, "old": old, "begins": begins, "tx": tx, "open": OPEN}
    with transaction(store):
        _cut(store, old, begins, tx)
        store.rows(
            "INSERT INTO link VALUES (:id, :new, 'supersedes', :old, 'found wanting', NULL, :begins, :open, :tx, :open)",
            given,
        )


@contextmanager
def transaction(store: Any) -> Iterator[None]:
    if store.inside:
        yield
        return
    store.con.execute(getattr(store, "begin", "BEGIN IMMEDIATE"))
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


def _cut(store: Any, id: str, begins: int, tx: int) -> None:
    rows = store.rows(
        'SELECT "row", valid_from FROM version WHERE node_id = :id AND valid_to > :begins '
        f"AND tx_to = {OPEN}",
        {"id": id, "begins": begins},
    )
    for row, starts in rows:
        store.rows('UPDATE version SET tx_to = :tx WHERE "row" = :row', {"tx": tx, "row": row})
        if starts < begins:
            store.rows(
                INSERT
                + "SELECT node_id, number, content, text, valid_from, CAST(:begins AS BIGINT), CAST(:tx AS BIGINT), "
                'CAST(:open AS BIGINT) FROM version WHERE "row" = :row',
                {"begins": begins, "tx": tx, "open": OPEN, "row": row},
            )
