"""What agents did, from their session files: told to the store, kept up, asked.

>>> from graphstore import sessions
>>> sessions.ingest(store, "~/.pi/agent/sessions")
"""

from __future__ import annotations

from graphstore.analysing import Analyser, Work, builtin
from graphstore.following import Following, follow
from graphstore.ingesting import Ingested, SessionIngested, ingest, reanalyze
from graphstore.session_links import segment_node, session_node
from graphstore.session_nodes import SessionNode

__all__ = [
    "Analyser",
    "Following",
    "Ingested",
    "SessionIngested",
    "SessionNode",
    "Work",
    "builtin",
    "follow",
    "ingest",
    "reanalyze",
    "segment_node",
    "session_node",
]
