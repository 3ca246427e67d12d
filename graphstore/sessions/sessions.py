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
from graphstore.sessions.pricing import prices, set_prices
from graphstore.sessions.questions import costs, decisions, lessons, recurring_errors
from graphstore.sessions.related import Connected, connect
from graphstore.sessions.review import Doubt, ReviewItem, correct, doubts, review
from graphstore.sessions.segments.analysing import Analyser, Work, builtin
from graphstore.sessions.segments.model_analysis import ModelAnalyser
from graphstore.sessions.segments.nodes import SessionNode
from graphstore.sessions.watch import Following, follow
from graphstore.sessions.worked import files, find_by_entry, search, work_on

__all__ = [
    "Analyser",
    "Connected",
    "Doubt",
    "Following",
    "Ingested",
    "ModelAnalyser",
    "ReviewItem",
    "SessionInfo",
    "SessionIngested",
    "SessionNode",
    "Work",
    "builtin",
    "connect",
    "correct",
    "costs",
    "decisions",
    "doubts",
    "files",
    "find_by_entry",
    "follow",
    "ingest",
    "lessons",
    "lineage",
    "listed",
    "prices",
    "reanalyze",
    "recurring_errors",
    "review",
    "search",
    "segment_node",
    "session_node",
    "set_prices",
    "work_on",
]
