"""What agents did, from their session files: ingested, kept up to date, queried.

>>> from graphstore import sessions
>>> sessions.ingest(store, "~/.pi/agent/sessions")
>>> sessions.connect(store)
>>> print(sessions.work_on(store, "my-project"))
"""

from __future__ import annotations

from graphstore.sessions.catalog import SessionInfo, listed
from graphstore.sessions.ingesting import Ingested, SessionIngested, ingest, reanalyze
from graphstore.sessions.joints import segment_node, session_node
from graphstore.sessions.lineages import lineage
from graphstore.sessions.questions import costs, decisions, lessons, recurring_errors, work_on
from graphstore.sessions.related import Connected, connect
from graphstore.sessions.review import Doubt, doubts
from graphstore.sessions.segments.analysing import Analyser, Work, builtin
from graphstore.sessions.segments.nodes import SessionNode
from graphstore.sessions.watch import Following, follow

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
