"""Exports the graph of a view as one file of GraphML, GEXF or node-link JSON, written by networkx: for networkx itself, Gephi, yEd, D3.

All that a store believes is one dynamic GEXF with valid time as its timeline: moving along it shows how the world changed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from graphstore.interchange.flat_graph import FlatGraph, FlatThing, flat_graph, written
from graphstore.interchange.history_tables import StoreHistory
from graphstore.interchange.xml_text import escaped
from graphstore.ledger.files import new_file
from graphstore.values.period import OPEN, Period, TimeLike, coalesce, instant, iso
from graphstore.values.text import described, line
from graphstore.view.view import Reader

if TYPE_CHECKING:
    import networkx

__all__ = ["export_gexf", "export_gexf_timeline", "export_graphml", "export_node_link"]

# names that readers of these formats reserve
_OWN = ("label", "type", "weight", "start", "end", "spells", "slices", "viz", "pid", "parents", "slot")
_LABEL = 80
"""The length of a node's label, in characters."""


def export_graphml(view: Reader, path: str | os.PathLike[str]) -> int:
    """Write the graph of a view as GraphML. Gives the number of nodes and edges.

    Each property has one type: boolean, long, double or string; instants are ISO 8601, `content`, `metadata` and `tags` JSON text, periods
    the properties `valid_from`, `valid_to`, `tx_from`. What XML cannot hold is `_xHHHH_` (`escapes.unescaped` reads it). Raises ConflictError when `path` is there.
    """
    import networkx

    with new_file(Path(path)) as sink:
        graph = _drawn(flat_graph(view, _OWN))
        for _, _, key, attributes in graph.edges(keys=True, data=True):
            attributes["link_id"] = key  # igraph would give edges the ids of nodes
        networkx.write_graphml_xml(graph, sink)
    return len(graph) + int(graph.number_of_edges())


def export_gexf(view: Reader, path: str | os.PathLike[str]) -> int:
    """Write the graph of a view as GEXF 1.3, dynamic: valid time is its timeline. Gives the number of nodes and edges.

    The spells of a node are all periods over which it is believed, those of a link its own, an event begins when it happened. Properties are
    as in `export_graphml`, `key` is `slot`. Raises ConflictError when `path` is there.
    """
    with new_file(Path(path)) as sink:
        view = view.fixed()
        flat = flat_graph(view, _OWN)
        graph = _drawn(flat)
        for thing in flat.things:
            attributes = graph.nodes[escaped(thing.id)]
            if "key" in attributes:
                attributes["slot"] = attributes.pop("key")  # networkx would treat it as a key of edges
            attributes["spells"] = _spells(_held_over(view, thing))
        for tie in flat.ties:
            key = escaped(tie.properties["id"])
            attributes = graph.edges[escaped(tie.source.id), escaped(tie.target.id), key]
            attributes |= {"id": key, "spells": _spells([_period_of(tie.properties)])}
        _write_gexf(graph, sink)
    return len(graph) + int(graph.number_of_edges())


def export_node_link(view: Reader, path: str | os.PathLike[str]) -> int:
    """Write the graph of a view as the JSON of `networkx.node_link_data`. Gives the number of nodes and edges.

    It is `view.to_networkx()`, contents nested as they are, instants as ISO 8601; `graph` is the coordinate. Raises ConflictError when `path` is there.
    """
    import networkx

    with new_file(Path(path)) as sink:
        view = view.fixed()
        graph = view.to_networkx()
        graph.graph.update(view.at.model_dump())
        data = networkx.node_link_data(graph, edges="edges")
        sink.write(orjson.dumps(data, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE))
    return len(graph) + int(graph.number_of_edges())


def _write_gexf(graph: networkx.MultiDiGraph[str], sink: BinaryIO) -> None:
    """Write a graph as GEXF 1.3. Replace networkx's names of the graph and schema, which the schema refuses; the name becomes the description."""
    from xml.etree.ElementTree import SubElement

    from networkx.readwrite.gexf import GEXFWriter

    writer = GEXFWriter(graph)
    writer.xml.attrib = {"xmlns": "http://gexf.net/1.3", "version": "1.3"}
    SubElement(writer.xml.find("meta"), "description").text = writer.graph_element.attrib.pop("name")
    writer.write(sink)


def _drawn(flat: FlatGraph) -> networkx.MultiDiGraph[str]:
    """Return the flat graph in networkx, with XML-safe texts and a label for each node."""
    import networkx

    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=str(flat.at))
    for thing in flat.things:
        graph.add_node(escaped(thing.id), label=_label(thing.id, thing.properties), **_held(thing.properties))
    for tie in flat.ties:
        ends = escaped(tie.source.id), escaped(tie.target.id)
        graph.add_edge(*ends, key=escaped(tie.properties["id"]), **_held(tie.properties))
    return graph


def _held(properties: dict[str, Any]) -> dict[str, Any]:
    named = {escaped(name): value for name, value in properties.items() if name != "id"}
    return _attributes(named)


def _label(id: str, properties: Mapping[str, Any]) -> str:
    """Return the label of a node or an event in a picture."""
    words = properties.get("description")
    if words is None and "content" in properties:
        words = described(orjson.loads(properties["content"]), properties.get("text"))
    return escaped(line(words or "", _LABEL) or id)


def _held_over(view: Reader, thing: FlatThing) -> list[Period]:
    """Return the periods of valid time over which a thing is believed."""
    if "occurred_at" in thing.properties:
        return [(instant(thing.properties["occurred_at"]), OPEN)]
    return coalesce(_period_of(version.model_dump()) for version in view.history(thing.id))


def _period_of(row: Mapping[str, Any]) -> Period:
    """Return the valid time of a row with `valid_from` and, unless it is open, `valid_to`."""
    end = row.get("valid_to")
    return instant(row["valid_from"]), OPEN if end is None else instant(end)


def _spells(periods: list[Period]) -> list[tuple[str, str | None]]:
    """Return periods in the form of GEXF."""
    return [(iso(start), None if end >= OPEN else iso(end)) for start, end in periods]


# ---- all that is believed, over valid time -------------------------------------------------------

_DESCRIBED = ("number", "content", "text", "tags", "trigger", "source")
_OF_A_ROW = "id valid_from valid_to tx_from tx_to opened_by closed_by told told_by remainder".split()
Row = dict[str, Any]


def export_gexf_timeline(store: Reader, path: str | os.PathLike[str], *, tx: TimeLike | None = None) -> int:
    """Write what a store believed at `tx` (default: now), over all valid time, as GEXF. Gives the number of nodes and edges.

    Every node, event and link of which anything is believed has its periods as spells; the description of a node (`content`, `text`, `tags` …) changes from
    period to period, as dynamic attributes. What a link names and nothing is believed of is there by its id alone. Raises ConflictError when `path` is
    there, InvalidError for a view.
    """
    import networkx

    with new_file(Path(path)) as sink:
        history = StoreHistory(store, tx)
        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(
            name=f"as known at {iso(instant(history.tx))}"
        )
        _add_nodes(graph, history)
        _add_events(graph, history)
        _add_links(graph, history)
        _write_gexf(graph, sink)
    return len(graph) + int(graph.number_of_edges())


def _add_nodes(graph: networkx.MultiDiGraph[str], history: StoreHistory) -> None:
    versions: dict[str, list[Row]] = defaultdict(list)
    for row in history.believed("versions"):
        versions[row["node_id"]].append(row)
    for part in history.parts("nodes"):
        for node in part.to_pylist():
            rows = sorted(versions.get(node["id"], ()), key=_period_of)
            if rows:
                graph.add_node(
                    escaped(node["id"]),
                    label=_label(node["id"], rows[-1]),
                    spells=_spells(coalesce(map(_period_of, rows))),
                    **_attributes({"kind": node["kind"], "slot": node["key"], "scope": node["scope"]}),
                    **_changing(rows),
                )


def _changing(rows: list[Row]) -> dict[str, list[tuple[Any, str, str | None]]]:
    """Return the description of a node, each value with its period."""
    found = defaultdict(list)
    for row in rows:
        ((start, end),) = _spells([_period_of(row)])
        for name, value in _attributes({name: row[name] for name in _DESCRIBED}).items():
            found[name].append((value, start, end))
    return found


def _add_events(graph: networkx.MultiDiGraph[str], history: StoreHistory) -> None:
    first: dict[str, Any] = {}
    for part in history.parts("occurrences"):
        for row in part.to_pylist():
            first[row["event_id"]] = min(row["occurred_at"], first.get(row["event_id"], row["occurred_at"]))
    for row in history.believed("events"):
        began = min(row["occurred_at"], first.get(row["id"], row["occurred_at"]))
        graph.add_node(
            escaped(row["id"]),
            label=_label(row["id"], row),
            spells=_spells([(instant(began), OPEN)]),
            **_attributes({name: value for name, value in row.items() if name not in _OF_A_ROW}),
        )


def _add_links(graph: networkx.MultiDiGraph[str], history: StoreHistory) -> None:
    links: dict[str, list[Row]] = defaultdict(list)
    for row in history.believed("links"):
        links[row["id"]].append(row)
    for id, rows in links.items():
        fields = {name: value for name, value in rows[0].items() if name not in _OF_A_ROW}
        ends = escaped(fields.pop("source")), escaped(fields.pop("target"))
        for end in ends:
            if end not in graph:
                graph.add_node(end, label=end)
        graph.add_edge(
            *ends,
            key=escaped(id),
            id=escaped(id),
            spells=_spells(coalesce(map(_period_of, rows))),
            **_attributes(fields),
        )


def _attributes(fields: Row) -> Row:
    found = {name: written(value) for name, value in fields.items() if value is not None}
    return {name: escaped(value) if isinstance(value, str) else value for name, value in found.items()}
