"""What agents did, from their session files: told to the store, kept up, asked.

>>> from graphstore import sessions
>>> sessions.ingest(store, "~/.pi/agent/sessions")
>>> sessions.connect(store)
>>> print(sessions.work_on(store, "my-project"))
"""

from __future__ import annotations

from graphstore.analysing import Analyser, Work, builtin
from graphstore.asking import costs, decisions, lessons, recurring_errors, work_on
from graphstore.connecting import Connected, connect
from graphstore.doubts import Doubt, doubts
from graphstore.following import Following, follow
from graphstore.ingesting import Ingested, SessionIngested, ingest, reanalyze
from graphstore.lineages import lineage
from graphstore.session_catalog import SessionInfo, listed
from graphstore.session_links import segment_node, session_node
from graphstore.session_nodes import SessionNode

__all__ = [
    "Analyser",
    "Connected",
    "Doubt",
    "Following",
    "Ingested",
    "SessionInfo",
    "SessionIngested",
    "SessionNode",
    "Work",
    "builtin",
    "connect",
    "costs",
    "decisions",
    "doubts",
    "follow",
    "ingest",
    "lessons",
    "lineage",
    "listed",
    "reanalyze",
    "recurring_errors",
    "segment_node",
    "session_node",
    "work_on",
]
