"""All that a store believes as one dynamic GEXF 1.3, whose timeline is valid time: slide it, and the graph changes as the world did."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from graphstore.interchange.flat_graph import written
from graphstore.interchange.history_tables import History
from graphstore.interchange.networkx_files import LABEL, period_of, spells, write_gexf
from graphstore.interchange.xml_text import escaped
from graphstore.ledger.files import new_file
from graphstore.values.period import OPEN, TimeLike, coalesce, instant, iso
from graphstore.values.text import described, line
from graphstore.view.view import Reader

if TYPE_CHECKING:
    import networkx

__all__ = ["export_gexf_timeline"]

_DESCRIBED = ("number", "content", "text", "tags", "trigger", "source")
_OF_A_ROW = (
    "id",
    "valid_from",
    "valid_to",
    "tx_from",
    "tx_to",
    "opened_by",
    "closed_by",
    "told",
    "told_by",
    "remainder",
)
Row = dict[str, Any]


def export_gexf_timeline(store: Reader, path: str | os.PathLike[str], *, tx: TimeLike | None = None) -> int:
    """Write what a store believed at `tx` (default: now), over all valid time, as GEXF. Gives the number of nodes and edges.

    Every node, event and link of which anything is believed has its periods as spells; the description of a node (`content`, `text`, `tags` …) changes from
    period to period, as dynamic attributes. What a link names and nothing is believed of is there by its id alone. Raises ConflictError when `path` is
    there, InvalidError for a view.
    """
    import networkx

    with new_file(Path(path)) as sink:
        history = History(store, tx)
        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(
            name=f"as known at {iso(instant(history.tx))}"
        )
        _add_nodes(graph, history)
        _add_events(graph, history)
        _add_links(graph, history)
        write_gexf(graph, sink)
    return len(graph) + int(graph.number_of_edges())


def _add_nodes(graph: networkx.MultiDiGraph[str], history: History) -> None:
    versions: dict[str, list[Row]] = defaultdict(list)
    for row in history.believed("versions"):
        versions[row["node_id"]].append(row)
    for part in history.parts("nodes"):
        for node in part.to_pylist():
            rows = sorted(versions.get(node["id"], ()), key=period_of)
            if rows:
                last = rows[-1]
                graph.add_node(
                    escaped(node["id"]),
                    label=escaped(
                        line(described(orjson.loads(last["content"]), last["text"]), LABEL) or node["id"]
                    ),
                    spells=spells(coalesce(map(period_of, rows))),
                    **_attributes({"kind": node["kind"], "slot": node["key"], "scope": node["scope"]}),
                    **_changing(rows),
                )


def _changing(rows: list[Row]) -> dict[str, list[tuple[Any, str, str | None]]]:
    """The description of a node, each value with its period."""
    found = defaultdict(list)
    for row in rows:
        ((start, end),) = spells([period_of(row)])
        for name, value in _attributes({name: row[name] for name in _DESCRIBED}).items():
            found[name].append((value, start, end))
    return found


def _add_events(graph: networkx.MultiDiGraph[str], history: History) -> None:
    first: dict[str, Any] = {}
    for part in history.parts("occurrences"):
        for row in part.to_pylist():
            first[row["event_id"]] = min(row["occurred_at"], first.get(row["event_id"], row["occurred_at"]))
    for row in history.believed("events"):
        began = min(row["occurred_at"], first.get(row["id"], row["occurred_at"]))
        graph.add_node(
            escaped(row["id"]),
            label=escaped(line(row["description"], LABEL) or row["id"]),
            spells=spells([(instant(began), OPEN)]),
            **_attributes({name: value for name, value in row.items() if name not in _OF_A_ROW}),
        )


def _add_links(graph: networkx.MultiDiGraph[str], history: History) -> None:
    links: dict[str, list[Row]] = defaultdict(list)
    for row in history.believed("links"):
        links[row["id"]].append(row)
    for id, rows in links.items():
        fields = {
            name: value for name, value in rows[0].items() if name not in (*_OF_A_ROW, "source", "target")
        }
        for end in (rows[0]["source"], rows[0]["target"]):
            if escaped(end) not in graph:
                graph.add_node(escaped(end), label=escaped(end))
        graph.add_edge(
            escaped(rows[0]["source"]),
            escaped(rows[0]["target"]),
            key=escaped(id),
            id=escaped(id),
            spells=spells(coalesce(map(period_of, rows))),
            **_attributes(fields),
        )


def _attributes(fields: Row) -> Row:
    found = {name: written(value) for name, value in fields.items() if value is not None}
    return {name: escaped(value) if isinstance(value, str) else value for name, value in found.items()}
