"""The heads of the chain of a store, as they are written."""

from __future__ import annotations

from typing import Any

import orjson

from graphstore import GraphStore

Head = dict[str, Any]


def heads(store: GraphStore) -> list[Head]:
    """The heads of the chain, as they are written."""
    journal = store._core.journal
    lines = b"".join(journal.lines(journal.last_state())).splitlines()
    return [orjson.loads(line)["head"] for line in lines if line.startswith(b'{"body"')]
