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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphstore import painter

if TYPE_CHECKING:
    from graphstore.consolidation import consolidate
    from graphstore.engine import Result
    from graphstore.errors import (
        ConflictError,
        DamageError,
        EngineError,
        GraphStoreError,
        InvalidError,
        LockedError,
        NotFoundError,
        QueryError,
    )
    from graphstore.models import (
        BranchInfo,
        Chain,
        Change,
        Contradiction,
        Coordinate,
        Event,
        FieldChange,
        Inspection,
        Link,
        Merge,
        MergeConflict,
        Node,
        NodeChange,
        Problem,
        Recorded,
        Snapshot,
        Step,
        Supersession,
        Verification,
        Version,
        ViewDiff,
    )
    from graphstore.opening import open, restore, verify
    from graphstore.store import Branch, GraphStore
    from graphstore.view import View

__version__ = "0.1.0"

_HOME = {
    "graphstore.opening": ("open", "restore", "verify"),
    "graphstore.consolidation": ("consolidate",),
    "graphstore.engine": ("Result",),
    "graphstore.errors": (
        "ConflictError", "DamageError", "EngineError", "GraphStoreError", "InvalidError", "LockedError", "NotFoundError", "QueryError",
    ),
    "graphstore.models": (
        "BranchInfo", "Chain", "Change", "Contradiction", "Coordinate", "Event", "FieldChange", "Inspection", "Link", "Merge", "MergeConflict",
        "Node", "NodeChange", "Problem", "Recorded", "Snapshot", "Step", "Supersession", "Verification", "Version", "ViewDiff",
    ),
    "graphstore.store": ("Branch", "GraphStore"),
    "graphstore.view": ("View",),
}  # fmt: skip
_ROOMS = {
    "analysing": "graphstore.analysing",
    "consolidation": "graphstore.consolidation",
    "context": "graphstore.context",
    "decay": "graphstore.decay",
    "embedders": "graphstore.embedders",
    "events": "graphstore.events",
    "indexers": "graphstore.indexers",
    "interchange": "graphstore.interchange",
    "lifecycle": "graphstore.lifecycle",
    "links": "graphstore.links",
    "memory": "graphstore.memory",
    "observer": "graphstore.observer",
    "recall": "graphstore.recall",
    "sessions": "graphstore.sessions",
    "timeline": "graphstore.timeline",
    "topics": "graphstore.topics",
    "transcripts": "graphstore.transcripts",
    "working": "graphstore.working",
}  # modules whose functions take a view or a store
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Branch", "BranchInfo", "Chain", "Change", "ConflictError", "Contradiction", "Coordinate", "DamageError", "EngineError", "Event", "FieldChange",
    "GraphStore", "GraphStoreError", "Inspection", "InvalidError", "Link", "LockedError", "Merge", "MergeConflict", "Node", "NodeChange",
    "NotFoundError", "Problem", "QueryError", "Recorded", "Result", "Snapshot", "Step", "Supersession", "Verification", "Version", "View", "ViewDiff",
    "consolidate", "open", "restore", "verify",
]  # fmt: skip


painter.use(lambda: import_module("graphstore.pictures"))


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
