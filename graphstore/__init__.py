"""graphstore: a bitemporal property-graph knowledge store on embedded Kùzu.

>>> import graphstore
>>> store = graphstore.open(":memory:")
>>> old = store.add_node("fact", {"auth": "sessions"}, valid_from="2026-01-01")
>>> new = store.add_node("fact", {"auth": "JWT"}, valid_from="2026-01-30", supersedes=[old.id], reason="scale")
>>> store.what_superseded(old.id).current[0].content
{'auth': 'JWT'}
>>> store.as_of(valid="2026-01-10").node(old.id).content
{'auth': 'sessions'}
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphstore.faces import Aliases, LateModules
from graphstore.values import painter

if TYPE_CHECKING:
    from graphstore.context import feeders as indexers  # noqa: F401
    from graphstore.context import observer as observer
    from graphstore.context import working as working
    from graphstore.errors import (
        ConflictError,
        DamageError,
        EngineError,
        GraphStoreError,
        InvalidError,
        LockedError,
        NotFoundError,
        QueryError,
        WriteConflictError,
    )
    from graphstore.events import timeline as timeline
    from graphstore.graph.engine import Result
    from graphstore.ledger.copying import copy
    from graphstore.memory import embedders as embedders
    from graphstore.memory import lifecycle as lifecycle
    from graphstore.memory import recall as recall
    from graphstore.opening import compact, open, restore, verify
    from graphstore.sessions.segments import analysing as analysing
    from graphstore.sessions.transcripts import transcript as transcripts  # noqa: F401
    from graphstore.store import links as links
    from graphstore.store.store import Branch, GraphStore
    from graphstore.topics import consolidation as consolidation
    from graphstore.topics.consolidation import consolidate
    from graphstore.values import decay as decay
    from graphstore.values.coordinates import OPEN
    from graphstore.values.findings import (
        BranchInfo,
        Chain,
        Change,
        Contradiction,
        EarlierStatement,
        FieldChange,
        Inspection,
        JoinCandidate,
        LinkInspection,
        LinkSupersession,
        Merge,
        MergeConflict,
        NodeChange,
        Problem,
        Recorded,
        Step,
        Supersession,
        Verification,
        ViewDiff,
        WarnedNode,
        WriteWarnings,
    )
    from graphstore.values.models import Coordinate, Event, Link, LinkId, Node, Snapshot, Version
    from graphstore.view.view import View

__version__ = "0.1.0"

_HOME = {
    "graphstore.opening": ("compact", "open", "restore", "verify"),
    "graphstore.ledger.copying": ("copy",),
    "graphstore.topics.consolidation": ("consolidate",),
    "graphstore.graph.engine": ("Result",),
    "graphstore.errors": (
        "ConflictError", "DamageError", "EngineError", "GraphStoreError", "InvalidError", "LockedError", "NotFoundError", "QueryError",
        "WriteConflictError",
    ),
    "graphstore.values.findings": (
        "BranchInfo", "Chain", "Change", "Contradiction", "EarlierStatement", "FieldChange", "Inspection", "JoinCandidate", "LinkInspection", "LinkSupersession", "Merge", "MergeConflict",
        "NodeChange", "Problem", "Recorded", "Step", "Supersession", "Verification", "ViewDiff", "WarnedNode",
        "WriteWarnings",
    ),
    "graphstore.values.models": ("Coordinate", "Event", "Link", "LinkId", "Node", "Snapshot", "Version"),
    "graphstore.store.store": ("Branch", "GraphStore"),
    "graphstore.values.coordinates": ("OPEN",),
    "graphstore.view.view": ("View",),
}  # fmt: skip
_ROOMS = {
    "analysing": "graphstore.sessions.segments.analysing",
    "consolidation": "graphstore.topics.consolidation",
    "context": "graphstore.context",
    "decay": "graphstore.values.decay",
    "embedders": "graphstore.memory.embedders",
    "events": "graphstore.events",
    "indexers": "graphstore.context.feeders",
    "interchange": "graphstore.interchange",
    "lifecycle": "graphstore.memory.lifecycle",
    "links": "graphstore.store.links",
    "memory": "graphstore.memory",
    "observer": "graphstore.context.observer",
    "recall": "graphstore.memory.recall",
    "sessions": "graphstore.sessions",
    "timeline": "graphstore.events.timeline",
    "topics": "graphstore.topics",
    "transcripts": "graphstore.sessions.transcripts.transcript",
    "working": "graphstore.context.working",
}  # modules whose functions take a view or a store
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "OPEN", "Branch", "BranchInfo", "Chain", "Change", "ConflictError", "Contradiction", "Coordinate", "DamageError", "EarlierStatement", "EngineError", "Event", "FieldChange",
    "GraphStore", "GraphStoreError", "Inspection", "InvalidError", "JoinCandidate", "Link", "LinkId", "LinkInspection", "LinkSupersession", "LockedError", "Merge", "MergeConflict", "Node", "NodeChange",
    "NotFoundError", "Problem", "QueryError", "Recorded", "Result", "Snapshot", "Step", "Supersession", "Verification", "Version", "View", "ViewDiff", "WarnedNode",
    "WriteConflictError", "WriteWarnings", "compact", "consolidate", "copy", "open", "restore", "verify",
]  # fmt: skip


painter.use(lambda: import_module("graphstore.show.pictures"))

_LATE = (
    "context", "events", "graph", "ledger", "mcp", "memory", "read",
    "search", "store", "topics", "values", "view", "write",
)  # fmt: skip
"""The folders whose modules run when they are first asked for a name."""
sys.meta_path.insert(0, LateModules(*(f"{__name__}.{folder}" for folder in _LATE)))
# `import graphstore.decay` finds what `from graphstore import decay` does.
sys.meta_path.append(Aliases(__name__, _ROOMS))


def __getattr__(name: str) -> Any:
    # Names are fetched on first use: `graphstore --help` must not wait for pydantic.
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'graphstore' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
