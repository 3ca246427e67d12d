"""Make Arrow tables of the rows of a history, with the columns that `cypher/schema.cypher` gives to its tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from graphstore.graph.arrow_tables import (
    body_columns,
    columns_by_name,
    event_columns,
    parsed,
    said_of_links,
    texts,
)
from graphstore.graph.texts import LINK
from graphstore.values.models import Json

Columns = dict[str, list[Any]]
_OF_BODIES = frozenset({"word", "data", "body", "checksum", "place", "place_body", "place_checksum"})


def as_table(label: str, columns: Columns) -> pa.Table:
    """Make the rows of the table of a label, or of links. `columns`: those that its statement gives, with bodies that were checked."""
    own = {name: values for name, values in columns.items() if name not in _OF_BODIES}
    said = _SAID[label](columns) if label in _SAID else {}
    return pa.table({**columns_by_name(own), **said})


def tombstone(word: str) -> Json:
    """Return what stands in place of the body of something that was forgotten."""
    return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}


def _said_of_events(columns: Columns) -> dict[str, pa.Array]:
    places, words = parsed(columns["place"]), columns["word"]
    bodies = [
        body or {**tombstone(word), "authorized": None, **place.get("place", {})}
        for body, place, word in zip(parsed(columns["data"]), places, words, strict=True)
    ]
    return event_columns(columns["type"], bodies)


def _said_of_versions(columns: Columns) -> dict[str, pa.Array]:
    words = columns["word"]
    return body_columns([data or b"" for data in columns["data"]], lambda at: tombstone(words[at]))


def _said_of_operations(columns: Columns) -> dict[str, pa.Array]:
    different = list(dict.fromkeys(columns["data"]))  # those of a transaction share its reason
    reasons = dict(zip(different, (body.get("reason") for body in parsed(different)), strict=True))
    return {"reason": texts([reasons[data] for data in columns["data"]])}


def _said_of_link_rows(columns: Columns) -> dict[str, pa.Array]:
    return said_of_links(parsed(columns["data"]))


_SAID = {
    "Event": _said_of_events,
    "Version": _said_of_versions,
    "Op": _said_of_operations,
    LINK: _said_of_link_rows,
}
"""What makes the columns of a label that are in the bodies of its rows."""
