"""The same questions to tgms 0.8 (PyPI), through its store and its native adapter. It syncs each commit seven times.

Its points are ids with kinds: links come without their own ids, chains are walked by ids alone. Of its Cypher-like operators none is a point read.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import tgms
from tgms.storage.base import make_op

from benchmarks.shared import CAUSES, OPEN, steps

if TYPE_CHECKING:
    from benchmarks.data import Data

LIMITS = "syncs a commit seven times; no Cypher, no text search, no supersede link; links and chains as ids"
SOURCE = {"source": "ingest", "provenance_ref": None}


def at(instant: int | None) -> int | None:
    return instant


def right(verb: str, answer: Any) -> Any:
    """Links without their own ids, steps of a chain as ids."""
    if verb in ("links_from", "backlinks_to"):
        return sorted(link[1:] for link in answer)
    return [step[0] for step in answer] if verb in ("what_superseded", "causes") else answer


def create(folder: Path) -> tgms.Store:
    return tgms.open(folder / "store.tgms")


open = create


def close(store: tgms.Store) -> None:
    store.close()


def prepare(data: Data) -> Any:
    return list(steps(data)), data.versions.num_rows


def bulk_load(store: tgms.Store, loads: Any) -> int:
    """One batch a transaction, at its own instant."""
    told, versions = loads
    clock = store.clock._now_fn
    numbers: dict[str, int] = {}
    for tx, rows, links, taken_back, unlinked in told:
        store.clock._now_fn = lambda tx=tx: tx
        store._write(
            [_version(row, numbers) for row in rows]
            + [_edge(row) for row in links]
            + [_retract({"kind": "node", "uid": row["node_id"]}, row["valid_from"]) for row in taken_back]
            + [_retract(_reference(row), row["valid_from"]) for row in unlinked]
        )
    store.clock._now_fn = clock
    assert sum(numbers.values()) == versions
    return int(versions)


def node_as_of(store: tgms.Store, id: str, valid: int | None, tx: int | None) -> Any:
    v = _now() if valid is None else valid
    for version in store.adapter.believed_node_versions(id, _tx(tx)):
        if version.vt_s <= v < version.vt_e:
            return id, version.props["n"], orjson.loads(version.props["content"])
    return None


def links_from(store: tgms.Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _edges(store, id, valid, tx, "src_id")


def backlinks_to(store: tgms.Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _edges(store, id, valid, tx, "dst_id")


def what_superseded(store: tgms.Store, id: str, valid: int | None, tx: int | None) -> list[str]:
    return _chain(store, id, valid, tx, "supersedes", "dst_id", 100)


def causes(store: tgms.Store, id: str, valid: int | None, tx: int | None) -> list[str]:
    return _chain(store, id, valid, tx, "caused_by", "src_id", CAUSES)


def add_node(store: tgms.Store, id: str, content: dict[str, Any]) -> None:
    store.assert_node(id, "fact", {"n": 1, "content": orjson.dumps(content).decode()}, _now(), OPEN)


def revise(store: tgms.Store, id: str, content: dict[str, Any], begins: int) -> None:
    store.assert_node(id, "fact", {"n": 0, "content": orjson.dumps(content).decode()}, begins, OPEN)


def plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def _version(row: dict[str, Any], numbers: dict[str, int]) -> Any:
    number = numbers[row["node_id"]] = numbers.get(row["node_id"], 0) + 1
    props = {"n": number, "content": row["content"]}
    period = {"vt_s": row["valid_from"], "vt_e": row["valid_to"]}
    return make_op("assert_node", uid=row["node_id"], label="fact", props=props, **period, **SOURCE)


def _edge(row: dict[str, Any]) -> Any:
    ends = {"src": row["source"], "dst": row["target"], "rel_type": row["kind"], "disc": row["id"]}
    period = {"vt_s": row["valid_from"], "vt_e": row["valid_to"]}
    return make_op("assert_edge", **ends, props={"reason": row["reason"]}, **period, **SOURCE)


def _reference(row: dict[str, Any]) -> dict[str, Any]:
    ends = {"src": row["source"], "dst": row["target"], "rel_type": row["kind"], "disc": row["id"]}
    return {"kind": "edge", **ends}


def _retract(reference: dict[str, Any], since: int) -> Any:
    return make_op("retract", ref=reference, t=since, **SOURCE)


def _edges(store: tgms.Store, id: str, valid: int | None, tx: int | None, here: str) -> list[Any]:
    adapter, v = store.adapter, _now() if valid is None else valid
    (place,) = adapter.dense_ids([id]).tolist()
    found = adapter.edges_columnar(
        as_of_tt=_tx(tx),
        vt_min=v,
        vt_max=v + 1,
        touching_ids=[place],
        columns=("src_id", "dst_id", "rel_type"),
    )
    mine = found[here] == place
    sources, targets = (adapter.uids_for(found[end][mine]) for end in ("src_id", "dst_id"))
    return list(zip(sources, found["rel_type"][mine].tolist(), targets, strict=True))


def _chain(
    store: tgms.Store, id: str, valid: int | None, tx: int | None, kind: str, here: str, depth: int
) -> list[str]:
    steps_, there = [], 2 if here == "src_id" else 0
    for _ in range(depth):
        following = [edge[there] for edge in _edges(store, id, valid, tx, here) if edge[1] == kind]
        if not following:
            break
        id = following[0]
        steps_.append(id)
    return steps_


def _tx(tx: int | None) -> int:
    return tgms.OPEN_END if tx is None else tx


def _now() -> int:
    return time.time_ns() // 1_000
