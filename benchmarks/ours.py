"""The store itself, through its public API. The twins have the same functions, as many as each can answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import graphstore
from benchmarks.shared import EPOCH, OPEN

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.data import Data
    from graphstore.memory.recall import Recalled

QUESTION = "MATCH (a:Node)-[:CAUSED_BY]->(b:Node) WHERE a.state = 'open' RETURN b.kind AS kind, count(*) AS n ORDER BY kind"
Loads = dict[str, "pa.Table"]
Time = datetime | None


def at(instant: int | None) -> datetime | None:
    """As the store takes it; None is now."""
    return None if instant is None else EPOCH + timedelta(microseconds=instant)


def right(verb: str, answer: Any) -> Any:
    """So much of the right answer as is asked of this store."""
    return answer


def create(folder: Path) -> graphstore.GraphStore:
    return graphstore.open(folder / "memory.gs")


open = create


def close(store: graphstore.GraphStore) -> None:
    store.close()


def prepare(data: Data) -> Loads:
    return {
        "nodes": data.nodes,
        "versions": _aware(data.told),
        "links": _aware(data.links),
        "events": _aware(data.events),
    }


def prepare_at_once(data: Data) -> Loads:
    loads = prepare(data)
    return {
        name: table.drop_columns([c for c in ("tx_from", "tx_to") if c in table.column_names])
        for name, table in loads.items()
    }


def bulk_load(store: graphstore.GraphStore, loads: Loads) -> int:
    """Until the graph tables have it all too, if there are at most some millions."""
    store.bulk_load(**loads)
    if loads["versions"].num_rows > 2_000_000:
        return loads["versions"].num_rows
    return count_in_tables(store)


def count_in_tables(store: graphstore.GraphStore) -> int:
    return store.query_tables("MATCH (v:Version) RETURN count(v) AS n").single()["n"]


def node_as_of(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> graphstore.Node | None:
    try:
        return _view(store, valid, tx).node(id)
    except graphstore.NotFoundError:
        return None


def links_from(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> list[graphstore.Link]:
    return _view(store, valid, tx).links_from(id)


def backlinks_to(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> list[graphstore.Link]:
    return _view(store, valid, tx).backlinks_to(id)


def what_superseded(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> Any:
    return _view(store, valid, tx).what_superseded(id)


def causes(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> Any:
    return _view(store, valid, tx).causes(id, depth=3)


def walk(store: graphstore.GraphStore, id: str, valid: Time, tx: Time) -> Any:
    chain = _view(store, valid, tx).walk(id, hops=3, direction="out")
    return chain.nodes


def record(folder: Path, data: Data) -> Data:
    """Record the data by single verbs, each at its tx. Return the data with the link ids that the store generated."""
    import pyarrow as pa

    instant = EPOCH
    with graphstore.open(folder / "memory.gs", clock=lambda: instant) as store:
        for tx, verb, *given in data.verbs:
            instant = at(tx)
            VERBS[verb](store, *given)
    with graphstore.open(folder / "memory.gs") as store:
        ids = {
            (link.source, link.kind, link.target): link.id
            for id in data.nodes["id"].to_pylist()
            for link in store.links_from(id)
        }
    named = [data.links[name].to_pylist() for name in ("source", "kind", "target")]
    known = pa.array([ids[link] for link in zip(*named, strict=True)])
    return replace(data, links=data.links.set_column(0, "id", known))


def _add(store: graphstore.GraphStore, id: str, content: str, begins: int, foundations: list[str]) -> None:
    store.add_node("fact", orjson.loads(content), id=id, valid_from=at(begins), derived_from=foundations)


VERBS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "supersede": lambda store, old, new, begins: store.supersede(old, by=new, valid_from=at(begins)),
    "cause": lambda store, source, target, begins: store.link(
        source, "caused_by", target, valid_from=at(begins)
    ),
}


def load_web(nodes: list[dict[str, Any]], links: list[dict[str, Any]]) -> graphstore.GraphStore:
    store = graphstore.open(":memory:")
    store.bulk_load(
        nodes=[{"id": node["id"], "kind": "fact"} for node in nodes],
        versions=[{"node_id": node["id"], "content": {}, "text": node["text"]} for node in nodes],
        links=links,
    )
    return store


def search(store: graphstore.GraphStore, text: str, when: Time = None) -> list[str]:
    """Return the ids of the ten best by words alone."""
    view: Any = store if when is None else store.as_of(valid=when, tx=when)
    with view.reading() as sight:
        return [sight.id(ent) for ent, _ in sight.found(text, 10).matches]


def recall(store: graphstore.GraphStore, text: str, valid: datetime, tx: datetime, hops: int = 2) -> Recalled:
    return graphstore.recall.recall(store.as_of(valid=valid, tx=tx), text, hops=hops)


def recall_now(store: graphstore.GraphStore, text: str) -> Recalled:
    return graphstore.recall.recall(store, text)


def view_to_arrow(store: graphstore.GraphStore, when: datetime) -> pa.Table:
    table = store.knowledge_at(when).to_arrow()
    return table["nodes"] if isinstance(table, dict) else table


def ask(store: graphstore.GraphStore, when: datetime) -> list[tuple[str, int]]:
    return answer(store.knowledge_at(when))


def answer(view: Any) -> list[tuple[str, int]]:
    return [(row["kind"], row["n"]) for row in view.query(QUESTION).rows()]


def append_event(store: graphstore.GraphStore, number: int) -> Any:
    return store.record_event("deploy", f"deploy {number}", source="ci", metadata={"attempt": number})


def add_node(store: graphstore.GraphStore, id: str, content: dict[str, Any]) -> Any:
    return store.add_node("fact", content, id=id)


def revise(store: graphstore.GraphStore, id: str, content: dict[str, Any], begins: datetime) -> Any:
    return store.revise(id, content, valid_from=begins)


def supersede(store: graphstore.GraphStore, old: str, new: str, begins: datetime) -> Any:
    return store.supersede(old, by=new, reason="found wanting", valid_from=begins)


def transaction(store: graphstore.GraphStore) -> Any:
    return store.transaction()


def catch_up(store: graphstore.GraphStore) -> int:
    return store.query_tables("MATCH (:Node)-[s:SUPERSEDES]->(:Node) RETURN count(s) AS n").single()["n"]


def journal_bytes(store: graphstore.GraphStore) -> int:
    return store.stats()["journal_bytes"]


def plain(value: Any) -> Any:
    """The answer in the words that all stores share."""
    if isinstance(value, graphstore.Node):
        return value.id, value.number, value.content
    if isinstance(value, tuple):
        return sorted(plain(node) for node in value)
    if isinstance(value, list):
        return sorted((link.id, link.source, link.kind, link.target) for link in value)
    if isinstance(value, graphstore.Supersession):
        return [plain(step.node) for step in value.chain]
    if isinstance(value, graphstore.Chain):
        return [plain(node) for node in value.nodes]
    return value


def _view(store: graphstore.GraphStore, valid: Time, tx: Time) -> Any:
    """The store has the methods of its view of now."""
    return store if valid is None and tx is None else store.as_of(valid=valid, tx=tx)


def _aware(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name in table.column_names:
        column = table[name]
        if name in ("valid_from", "valid_to", "tx_from", "tx_to", "occurred_at"):
            column = pc.if_else(pc.equal(column, OPEN), None, column).cast(pa.timestamp("us", tz="UTC"))
        columns[name] = column
    return pa.table(columns)
