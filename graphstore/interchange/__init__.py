"""Writes files for other tools: GraphML, GEXF, PROV, Neo4j, Parquet, CloudEvents. It never writes into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.interchange.formats import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.interchange.formats")
