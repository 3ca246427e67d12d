"""The same work in Kùzu alone, by the least statements it takes: no journal, no index, no checks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import kuzu
import orjson
import pyarrow as pa

from benchmarks.data import EPOCH, LINK_KINDS, Clock, Data

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
# One CASE around the four tests: as plain ANDs the planner guesses each at a tenth and scans.
HOLDS = "{0}.valid_from <= $v AND {0}.valid_to > $v AND {0}.tx_from <= $t AND {0}.tx_to > $t"
CASE = "CASE WHEN " + HOLDS + " THEN true ELSE false END"
ANY = "|".join(kind.upper() for kind in LINK_KINDS)
NODE = (
    "MATCH (n:Node {id: $id})-[:HAS_VERSION]->(x:Version) WHERE "
    + CASE.format("x")
    + " RETURN x.number, x.content"
)
LINKS_FROM = (
    "MATCH (a:Node {id: $id})-[r:"
    + ANY
    + "]->(b:Node) WHERE "
    + CASE.format("r")
    + " RETURN r.id, a.id, lower(label(r)), b.id"
)
BACKLINKS_TO = (
    "MATCH (a:Node)-[r:"
    + ANY
    + "]->(b:Node {id: $id}) WHERE "
    + CASE.format("r")
    + " RETURN r.id, a.id, lower(label(r)), b.id"
)
SUPERSEDED = (
    "MATCH (a:Node {id: $id})<-[r:SUPERSEDES* 1..30 (r, _ | WHERE " + HOLDS.format("r") + ")]-(b:Node) "
    "RETURN b.id, length(r) ORDER BY length(r)"
)
CAUSES = (
    "MATCH (a:Node {id: $id})-[r:CAUSED_BY* 1..3 (r, _ | WHERE " + HOLDS.format("r") + ")]->(b:Node) "
    "RETURN b.id, length(r) ORDER BY length(r)"
)
VIEW = (
    "MATCH (x:Version) WHERE "
    + HOLDS.format("x")
    + " RETURN x.node_id AS id, x.number AS number, x.content AS content, x.text AS text, x.valid_from AS valid_from, "
    "x.valid_to AS valid_to, x.tx_from AS tx_from, x.tx_to AS tx_to, x.tags AS tags, x.trigger AS trigger, x.source AS source"
)
QUESTION = "MATCH (a:Node)-[:CAUSED_BY]->(b:Node) WHERE a.state = 'open' RETURN b.kind AS kind, count(*) AS n ORDER BY kind"
ADD = (
    "CREATE (n:Node {id: $id, kind: 'fact'})-[:HAS_VERSION]->(x:Version {row: $row, node_id: $id, number: 1, content: $content, "
    "valid_from: $now, valid_to: $open, tx_from: $now, tx_to: $open})"
)
EVENT = (
    "CREATE (e:Event {id: $id, type: 'deploy', description: $description, occurred_at: $now, source: 'ci', metadata: $metadata, "
    "tx_from: $now, tx_to: $open})"
)
STANDING = (
    "MATCH (n:Node {id: $id})-[:HAS_VERSION]->(x:Version) WHERE CASE WHEN x.valid_to > $begins AND x.tx_to = $open THEN true "
    "ELSE false END RETURN x.row, x.number, x.content, x.valid_from"
)
CLOSE = "MATCH (x:Version {row: $row}) SET x.tx_to = $now"
PIECE = (
    "MATCH (n:Node {id: $id}) CREATE (n)-[:HAS_VERSION]->(x:Version {row: $row, node_id: $id, number: $number, "
    "content: $content, valid_from: $since, valid_to: $until, tx_from: $now, tx_to: $open})"
)
SUPERSEDE = (
    "MATCH (a:Node {id: $new}), (b:Node {id: $old}) CREATE (a)-[:SUPERSEDES {id: $link, reason: 'found wanting', "
    "valid_from: $begins, valid_to: $open, tx_from: $now, tx_to: $open}]->(b)"
)


class Store:
    def __init__(self, path: str) -> None:
        self.db = kuzu.Database(path, buffer_pool_size=1 << 30, max_db_size=1 << 36, auto_checkpoint=False)
        self.con = kuzu.Connection(self.db)
        self.con.execute("CALL force_checkpoint_on_close=false")
        self.prepared: dict[str, Any] = {}
        self.clock = Clock()
        self.inside = False

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


def node_as_of(store: Store, id: str, valid: datetime, tx: datetime) -> tuple[str, int, Any]:
    number, content = store.run(NODE, id=id, v=valid, t=tx).get_next()
    return id, number, orjson.loads(content)


def links_from(store: Store, id: str, valid: datetime, tx: datetime) -> list[tuple[Any, ...]]:
    return store.run(LINKS_FROM, id=id, v=valid, t=tx).get_all()


def backlinks_to(store: Store, id: str, valid: datetime, tx: datetime) -> list[tuple[Any, ...]]:
    return store.run(BACKLINKS_TO, id=id, v=valid, t=tx).get_all()


def what_superseded(store: Store, id: str, valid: datetime, tx: datetime) -> dict[str, Any]:
    # A filter inside a recursion takes no parameter when prepared ahead.
    return {"steps": store.con.execute(SUPERSEDED, {"id": id, "v": valid, "t": tx}).get_all()}


def causes(store: Store, id: str, valid: datetime, tx: datetime) -> dict[str, Any]:
    return {"steps": store.con.execute(CAUSES, {"id": id, "v": valid, "t": tx}).get_all()}


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


def append_event(store: Store, number: int) -> None:
    now = store.now()
    store.run(
        EVENT,
        id=f"evt_{store.clock.last}",
        description=f"deploy {number}",
        now=now,
        metadata=orjson.dumps({"attempt": number}).decode(),
        open=END,
    )


def add_node(store: Store, id: str, content: dict[str, Any]) -> None:
    now = store.now()
    store.run(
        ADD, id=id, row=f"r{store.clock.last}", content=orjson.dumps(content).decode(), now=now, open=END
    )


def revise(store: Store, id: str, content: dict[str, Any], begins: datetime) -> None:
    standing = store.run(STANDING, id=id, begins=begins, open=END).get_all()
    now = store.now()
    with transaction(store):
        number = _cut(store, id, standing, begins, now) + 1
        store.run(
            PIECE,
            id=id,
            row=f"r{store.clock()}",
            number=number,
            content=orjson.dumps(content).decode(),
            since=begins,
            until=END,
            now=now,
            open=END,
        )


def supersede(store: Store, old: str, new: str, begins: datetime) -> None:
    standing = store.run(STANDING, id=old, begins=begins, open=END).get_all()
    now = store.now()
    with transaction(store):
        _cut(store, old, standing, begins, now)
        store.run(
            SUPERSEDE, new=new, old=old, link=f"lnk_{store.clock.last}", begins=begins, now=now, open=END
        )


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


@contextmanager
def transaction(store: Store) -> Iterator[None]:
    if store.inside:
        yield
        return
    store.con.execute("BEGIN TRANSACTION")
    store.inside = True
    try:
        yield
        store.con.execute("COMMIT")
    finally:
        store.inside = False


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(tuple(row[:4]) for row in value)
    return [row[0] for row in value["steps"]] if isinstance(value, dict) else value


def _cut(store: Store, id: str, standing: list[list[Any]], begins: datetime, now: datetime) -> int:
    number = 0
    for row, number, content, starts in standing:
        store.run(CLOSE, row=row, now=now)
        if starts < begins:
            store.run(
                PIECE,
                id=id,
                row=f"r{store.clock()}",
                number=number,
                content=content,
                since=starts,
                until=begins,
                now=now,
                open=END,
            )
    return number


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
