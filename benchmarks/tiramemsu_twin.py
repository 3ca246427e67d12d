"""The same questions to tiramemsu 0.7 (PyPI), a triple store on SQLite. It does not sync a commit: its writes are not durable ones.

A version is a statement with its content as a text; a correction takes the statement back and makes another. Valid times are whole milliseconds. A link
is a statement too, without an id of ours; chains are property paths, which answer ids.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from tiramemsu import Database, Iri

from benchmarks.shared import CAUSES, MILLI, OPEN, steps

if TYPE_CHECKING:
    from benchmarks.data import Data

LIMITS = "syncs no commit; does not split periods, no erasure, no export; links and chains as ids"
SAYS = Iri("urn:says")
KIND = "urn:kind:"


class Store:
    def __init__(self, path: Path) -> None:
        self.db = Database(str(path))
        self.instants = path.with_suffix(".json")  # of its numbered transactions, as they were told
        self.told = orjson.loads(self.instants.read_bytes()) if self.instants.exists() else []


def at(instant: int | None) -> int | None:
    return instant


def right(verb: str, answer: Any) -> Any:
    """Links without their own ids, steps of a chain as ids."""
    if verb in ("links_from", "backlinks_to"):
        return sorted(link[1:] for link in answer)
    return [step[0] for step in answer] if verb in ("what_superseded", "causes") else answer


def create(folder: Path) -> Store:
    return Store(folder / "store.tiramemsu")


open = create


def close(store: Store) -> None:
    del store.db


def prepare(data: Data) -> Any:
    return list(steps(data)), data.versions.num_rows


def bulk_load(store: Store, loads: Any) -> int:
    """One transaction of it for each that was told."""
    told, versions = loads
    numbers: dict[str, int] = {}
    last: dict[str, dict[int, int]] = {}  # of each node: where a believed version begins, its statement
    of_link: dict[str, int] = {}
    with store.db.bulk_import() as load:
        for tx, rows, links, taken_back, unlinked in told:
            with load.chunk() as change:
                for row in rows:
                    begins = last.setdefault(row["node_id"], {})
                    number = numbers[row["node_id"]] = numbers.get(row["node_id"], 0) + 1
                    if row["valid_from"] in begins:
                        change.retract(begins[row["valid_from"]])
                    text = f"[{number},{row['content']}]"
                    change.create(_iri(row["node_id"]), SAYS, text, **_period(row))
                for row in links:
                    change.create(
                        _iri(row["source"]), Iri(KIND + row["kind"]), _iri(row["target"]), **_period(row)
                    )
                for node in {row["node_id"] for row in taken_back}:
                    for statement in last[node].values():
                        change.retract(statement)
                for row in unlinked:
                    change.retract(of_link[row["id"]])
            made = iter(change.report.asserted)
            for row in rows:
                last[row["node_id"]][row["valid_from"]] = next(made)
            for row in links:
                of_link[row["id"]] = next(made)
            store.told.append(tx)
    store.instants.write_bytes(orjson.dumps(store.told))
    assert sum(numbers.values()) == versions
    return int(versions)


def node_as_of(store: Store, id: str, valid: int | None, tx: int | None) -> Any:
    for statement in _view(store, valid, tx).triples(s=_iri(id), p=SAYS):
        number, content = orjson.loads(statement.o)
        return id, number, content
    return None


def links_from(store: Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _links(_view(store, valid, tx).triples(s=_iri(id)))


def backlinks_to(store: Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _links(_view(store, valid, tx).triples(o=_iri(id)))


def what_superseded(store: Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _path(store, id, valid, tx, f"^<{KIND}supersedes>+", 100)


def causes(store: Store, id: str, valid: int | None, tx: int | None) -> Any:
    return _path(store, id, valid, tx, f"<{KIND}caused_by>+", CAUSES)


def add_node(store: Store, id: str, content: dict[str, Any]) -> None:
    with store.db.transact() as change:
        change.create(_iri(id), SAYS, f"[1,{orjson.dumps(content).decode()}]", valid_from=_now())


def plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def _period(row: dict[str, Any]) -> dict[str, int | None]:
    ends = row["valid_to"]
    return {"valid_from": row["valid_from"] // MILLI, "valid_to": None if ends == OPEN else ends // MILLI}


def _view(store: Store, valid: int | None, tx: int | None) -> Any:
    view = store.db.now() if tx is None else store.db.as_of(tx=bisect_right(store.told, tx))
    return view.valid_at(_now() if valid is None else valid // MILLI)


def _links(statements: Any) -> list[tuple[str, str, str]]:
    return [
        (one.s.value[6:], one.p.value[len(KIND) :], one.o.value[6:])
        for one in statements
        if one.p.value.startswith(KIND)
    ]


def _path(store: Store, id: str, valid: int | None, tx: int | None, path: str, most: int) -> list[str]:
    found = _view(store, valid, tx).path(_iri(id), path, max_hops=most)
    return [row.end.value[6:] for row in sorted(found, key=lambda row: row.hops)]


@lru_cache(maxsize=1 << 17)
def _iri(id: str) -> Iri:
    return Iri(f"urn:n:{id}")


def _now() -> int:
    return time.time_ns() // 1_000_000
