"""Exports files for other tools, with one function for all formats: `interchange.export(view, "graph.graphml", format="graphml")`.

A format shows either the graph at one coordinate, or the whole history up to a tx:

- of a view: `graphml`, `gexf` (periods as spells), `node-link`, `neo4j-csv` (a folder), `neo4j-cypher`
- of a store: `parquet` (a folder), `gexf-timeline` (what is believed, over all valid time), `prov-json`, `prov-xml`, `prov-n`, `prov-o`

None of them is a backup: `GraphStore.export` writes the one file that `graphstore.restore` reads.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

from graphstore.errors import InvalidError
from graphstore.interchange.xml_text import unescaped
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader

__all__ = ["FORMATS", "export", "unescaped"]


class Format(NamedTuple):
    """A format: what writes it, what it counts, whether it is of the whole history."""

    module: str
    function: str
    counted: str
    history: bool = False
    options: dict[str, Any] = {}  # never changed


FORMATS = {
    "parquet": Format("graphstore.interchange.history_tables", "export_parquet", "rows", history=True),
    "graphml": Format("graphstore.interchange.networkx_files", "export_graphml", "nodes and links"),
    "gexf": Format("graphstore.interchange.networkx_files", "export_gexf", "nodes and links"),
    "gexf-timeline": Format(
        "graphstore.interchange.networkx_files", "export_gexf_timeline", "nodes and links", history=True
    ),
    "node-link": Format("graphstore.interchange.networkx_files", "export_node_link", "nodes and links"),
    **{
        f"prov-{syntax}": Format(
            "graphstore.interchange.prov_document", "export_prov", "records", True, {"syntax": syntax}
        )
        for syntax in ("json", "xml", "n", "o")
    },
    "neo4j-csv": Format("graphstore.interchange.neo4j_files", "export_neo4j_csv", "rows"),
    "neo4j-cypher": Format("graphstore.interchange.neo4j_files", "export_neo4j_cypher", "statements"),
}


def export(source: Reader, path: str | os.PathLike[str], *, format: str, tx: TimeLike | None = None) -> int:
    """Write a view, or a store (its view of now, or its history up to `tx`), in one of the `FORMATS`. Gives how many rows, records … it has.

    Nothing is written over: raises ConflictError when `path` is there; InvalidError for an unknown format, a view where the format is of the whole
    history, a `tx` where it is of one view, and a library that is not installed; EngineError when the disk refuses. Then nothing is left.
    """
    if format not in FORMATS:
        raise InvalidError.choice("format", format, FORMATS)
    chosen = FORMATS[format]
    options = dict(chosen.options)
    if chosen.history:
        options["tx"] = tx
    elif tx is not None:
        raise InvalidError(
            f"{format} is of one view. Give store.as_of(valid=…, tx=…) in place of the store and tx=."
        )
    write = getattr(import_module(chosen.module), chosen.function)
    return int(write(source, path, **options))
