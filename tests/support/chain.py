"""The heads of the chain of a store, as they are written."""

from __future__ import annotations

from typing import Any

import orjson

from graphstore import GraphStore

Head = dict[str, Any]


def heads(store: GraphStore) -> list[Head]:
    """The heads of the chain, as they are written."""
    return [orjson.loads(line.head) for line in store._core.journal.verbatim()]
