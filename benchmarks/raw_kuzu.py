"""The floors of what the graph engine does, by the least statements it takes: no journal, no index, no checks."""

from __future__ import annotations

import warnings
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from benchmarks.data import LINK_KINDS, Data
from benchmarks.shared import EPOCH, Clock

NAIVE = EPOCH.replace(tzinfo=None)
END = datetime.max
PERIODS = "valid_from TIMESTAMP, valid_to TIMESTAMP, tx_from TIMESTAMP, tx_to TIMESTAMP"
SCHEMA = (
    "CREATE NODE TABLE Node(id STRING PRIMARY KEY, kind STRING)",
    f"CREATE NODE TABLE Version(row STRING PRIMARY KEY, node_id STRING, number INT64, content STRING, text STRING, {PERIODS}, "
    "tags STRING[], trigger STRING, source STRING)",
    "CREATE REL TABLE HAS_VERSION(FROM Node TO Version)",
    "CREATE NODE TABLE Event(id STRING PRIMARY KEY, type STRING, description STRING, occurred_at TIMESTAMP, source STRING, "
    "metadata STRING, tx_from TIMESTAMP, tx_to TIMESTAMP)",
    *(
        f"CREATE REL TABLE {kind.upper()}(FROM Node TO Node, id STRING, reason STRING, strength INT64, {PERIODS})"
        for kind in LINK_KINDS
    ),
)
HOLDS = "{0}.valid_from <= $v AND {0}.valid_to > $v AND {0}.tx_from <= $t AND {0}.tx_to > $t"
VIEW = (
    "MATCH (x:Version) WHERE "
    + HOLDS.format("x")
    + " RETURN x.node_id AS id, x.number AS number, x.content AS content, x.text AS text, x.valid_from AS valid_from, "
    "x.valid_to AS valid_to, x.tx_from AS tx_from, x.tx_to AS tx_to, x.tags AS tags, x.trigger AS trigger, x.source AS source"
)
QUESTION = "MATCH (a:Node)-[:CAUSED_BY]->(b:Node) WHERE a.state = 'open' RETURN b.kind AS kind, count(*) AS n ORDER BY kind"


class Store:
    def __init__(self, path: str) -> None:
        import kuzu  # not with the module: the other driver cannot be loaded beside it

        self.db = kuzu.Database(path, buffer_pool_size=1 << 30, max_db_size=1 << 36, auto_checkpoint=False)
        self.con = kuzu.Connection(self.db)
        self.con.execute("CALL force_checkpoint_on_close=false")
        self.prepared: dict[str, Any] = {}
        self.clock = Clock()

    def run(self, cypher: str, **parameters: Any) -> Any:
        if cypher not in self.prepared:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self.prepared[cypher] = self.con.prepare(cypher)
        return self.con.execute(self.prepared[cypher], parameters)

    def now(self) -> datetime:
        return at(self.clock())


def at(instant: int) -> datetime:
    return NAIVE + timedelta(microseconds=instant)


def create(folder: Path) -> Store:
    store = Store(str(folder / "store.kuzu"))
    for statement in SCHEMA:
        store.con.execute(statement)
    return store


def open(folder: Path) -> Store:
    return Store(str(folder / "store.kuzu"))


def close(store: Store) -> None:
    store.con.close()
    store.db.close()


def prepare(data: Data) -> dict[str, pa.Table]:
    versions = _naive(data.versions)
    rows = data.versions["row"].cast(pa.string())
    versions = versions.set_column(0, "row", rows)
    ends = pa.array([END] * data.events.num_rows, pa.timestamp("us"))
    loads = {
        "Node": data.nodes,
        "Version": pa.table(
            {**{name: versions[name] for name in versions.column_names}, **_provenance(len(rows))}
        ),
        "HAS_VERSION": pa.table({"from": versions["node_id"], "to": rows}),
        "Event": _naive(data.events).append_column("tx_to", ends),
    }
    links = _naive(data.links)
    for kind in LINK_KINDS:
        table = links.filter(pa.compute.equal(links["kind"], kind))
        names = [
            "source",
            "target",
            *(n for n in table.column_names if n not in ("source", "target", "kind")),
        ]
        loads[kind.upper()] = table.select(names)
    return loads


def bulk_load(store: Store, loads: dict[str, pa.Table]) -> int:
    for name, table in loads.items():
        if table.num_rows:
            store.con.execute(f"COPY {name} FROM $given", {"given": table})
    return store.con.execute("MATCH (v:Version) RETURN count(v)").get_next()[0]


def view_to_arrow(store: Store, when: datetime) -> pa.Table:
    return store.run(VIEW, v=when, t=when).get_as_arrow(100_000)


def copy_of_view(store: Store, when: datetime) -> Store:
    """The view's graph as plain tables in memory: what the first question of a view cannot do without."""
    nodes = store.run(
        "MATCH (n:Node)-[:HAS_VERSION]->(x:Version) WHERE "
        + HOLDS.format("x")
        + " RETURN n.id AS id, n.kind AS kind, "
        "x.number AS number, x.content AS content, x.valid_from AS valid_from, x.valid_to AS valid_to",
        v=when,
        t=when,
    ).get_as_arrow(100_000)
    contents = [orjson.loads(text) for text in nodes["content"].to_pylist()]
    for name in ("state", "score", "summary", "n"):
        nodes = nodes.append_column(name, pa.array([content[name] for content in contents]))
    standing = pa.array(nodes["id"])
    copy = Store(":memory:")
    copy.con.execute(
        "CREATE NODE TABLE Node(id STRING PRIMARY KEY, kind STRING, number INT64, content STRING, valid_from TIMESTAMP, "
        "valid_to TIMESTAMP, state STRING, score INT64, summary STRING, n INT64)"
    )
    copy.con.execute("COPY Node FROM $given", {"given": nodes})
    for kind in LINK_KINDS:
        links = store.run(
            f"MATCH (a:Node)-[r:{kind.upper()}]->(b:Node) WHERE "
            + HOLDS.format("r")
            + " RETURN a.id AS source, b.id AS target, "
            "r.id AS id, r.reason AS reason, r.strength AS strength, r.valid_from AS valid_from, r.valid_to AS valid_to",
            v=when,
            t=when,
        ).get_as_arrow(100_000)
        both = pa.compute.and_(
            pa.compute.is_in(links["source"], value_set=standing),
            pa.compute.is_in(links["target"], value_set=standing),
        )
        copy.con.execute(
            f"CREATE REL TABLE {kind.upper()}(FROM Node TO Node, id STRING, reason STRING, strength INT64, valid_from TIMESTAMP, "
            "valid_to TIMESTAMP)"
        )
        if (kept := links.filter(both)).num_rows:
            copy.con.execute(f"COPY {kind.upper()} FROM $given", {"given": kept})
    return copy


def answer(copy: Store) -> list[tuple[str, int]]:
    return [tuple(row) for row in copy.run(QUESTION).get_all()]


def ask(store: Store, when: datetime) -> list[tuple[str, int]]:
    copy = copy_of_view(store, when)
    rows = answer(copy)
    close(copy)
    return rows


def add_many(store: Store, nodes: list[tuple[str, dict[str, Any]]]) -> None:
    now, count = store.now(), len(nodes)
    ids, rows = pa.array([id for id, _ in nodes]), pa.array([f"a{store.clock()}" for _ in nodes])
    contents = pa.array([orjson.dumps(content).decode() for _, content in nodes])
    begins, ends = (pa.array([value] * count, pa.timestamp("us")) for value in (now, END))
    versions = {"row": rows, "node_id": ids, "number": pa.array([1] * count), "content": contents}
    versions |= {"text": pa.nulls(count, pa.string()), "valid_from": begins, "valid_to": ends}
    versions |= {"tx_from": begins, "tx_to": ends, **_provenance(count)}
    for name, table in (
        ("Node", pa.table({"id": ids, "kind": ["fact"] * count})),
        ("Version", pa.table(versions)),
        ("HAS_VERSION", pa.table({"from": ids, "to": rows})),
    ):
        store.con.execute(f"COPY {name} FROM $given", {"given": table})


def supersede_many(store: Store, pairs: list[tuple[str, str]], begins: datetime) -> int:
    """What catching up with that many supersessions cannot do without: one SET, three COPYs."""
    now, first = store.now(), store.clock.last
    olds = pa.table({"id": [old for old, _ in pairs]})
    standing = store.con.execute(
        "LOAD FROM $olds MATCH (n:Node {id: id})-[:HAS_VERSION]->(x:Version) WHERE x.tx_to = $open "
        "RETURN x.row AS row, x.node_id AS id, x.number AS number, x.content AS content, x.valid_from AS since",
        {"olds": olds, "open": END},
    ).get_as_arrow(100_000)
    count = standing.num_rows
    store.con.execute(
        "LOAD FROM $rows MATCH (x:Version {row: row}) SET x.tx_to = $now",
        {"rows": standing.select(["row"]), "now": now},
    )

    def column(value: datetime) -> pa.Array:
        return pa.array([value] * count, pa.timestamp("us"))

    rows = pa.array([f"p{first}_{number}" for number in range(count)])
    pieces = pa.table(
        {
            "row": rows,
            "node_id": standing["id"],
            "number": standing["number"],
            "content": standing["content"],
            "text": pa.nulls(count, pa.string()),
            "valid_from": standing["since"],
            "valid_to": column(begins),
            "tx_from": column(now),
            "tx_to": column(END),
            **_provenance(count),
        }
    )
    store.con.execute("COPY Version FROM $given", {"given": pieces})
    store.con.execute(
        "COPY HAS_VERSION FROM $given", {"given": pa.table({"from": standing["id"], "to": rows})}
    )
    links = pa.table(
        {
            "source": [new for _, new in pairs],
            "target": [old for old, _ in pairs],
            "id": [f"s{first}_{number}" for number in range(count)],
            "reason": ["found wanting"] * count,
            "strength": pa.nulls(count, pa.int64()),
            "valid_from": column(begins),
            "valid_to": column(END),
            "tx_from": column(now),
            "tx_to": column(END),
        }
    )
    store.con.execute("COPY SUPERSEDES FROM $given", {"given": links})
    return store.con.execute("MATCH (:Node)-[s:SUPERSEDES]->(:Node) RETURN count(s)").get_next()[0]


def _provenance(count: int) -> dict[str, pa.Array]:
    return {
        "tags": pa.array([[]] * count, pa.list_(pa.string())),
        "trigger": pa.array(["initial"] * count),
        "source": pa.nulls(count, pa.string()),
    }


def _naive(table: pa.Table) -> pa.Table:
    columns = {}
    for name in table.column_names:
        instant = name in ("valid_from", "valid_to", "tx_from", "tx_to", "occurred_at")
        columns[name] = table[name].cast(pa.timestamp("us")) if instant else table[name]
    return pa.table(columns)
