"""Make Arrow tables of the rows of a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.tables.arrow_tables import (
    body_columns,
    event_columns,
    instants,
    json_text,
    names_of,
    numbers,
    parsed,
    texts,
)
from graphstore.core.tables.graph_source import columns_of
from graphstore.core.tables.history_source import (
    ChangedEvent,
    ClosedLink,
    ClosedVersion,
    Event,
    Link,
    Node,
    Occurrence,
    Operation,
    Version,
)
from graphstore.values.models import Json

_ENDS = ("valid_from", "valid_to", "tx_from", "tx_to")
_BY = ("opened_by", "closed_by")


def nodes_as_table(nodes: list[Node]) -> pa.Table:
    """Make the rows of Node."""
    columns = columns_of(nodes, Node)
    return pa.table(
        {
            **{name: texts(columns[name]) for name in ("id", "kind", "key", "scope")},
            "tx_from": instants(columns["tx_from"]),
        }
    )


def events_as_table(events: list[Event]) -> pa.Table:
    """Make the rows of Event."""
    columns = columns_of(events, Event)
    bodies = [
        body or {**tombstone(event.word), "authorized": None, **place.get("place", {})}
        for body, place, event in zip(parsed(columns["data"]), parsed(columns["place"]), events, strict=True)
    ]
    return pa.table(
        {
            "id": texts(columns["id"]),
            "type": texts(columns["type"]),
            "occurred_at": instants(columns["occurred_at"]),
            **event_columns(columns["type"], bodies),
            **{name: instants(columns[name]) for name in ("tx_from", "tx_to")},
            **{name: names_of(columns[name]) for name in _BY},
        }
    )


def versions_as_table(versions: list[Version]) -> pa.Table:
    """Make the rows of Version."""
    columns = columns_of(versions, Version)
    node_id, ordinal, words = texts(columns["node_id"]), numbers(columns["ordinal"]), columns["word"]
    return pa.table(
        {
            "row": names_of(columns["number"]),
            "node_id": node_id,
            "ref": pc.binary_join_element_wise(node_id, pc.cast(ordinal, pa.string()), texts(["-v"])[0]),
            "number": ordinal,
            **body_columns([data or b"" for data in columns["data"]], lambda at: tombstone(words[at])),
            **_recorded(columns),
        }
    )


def occurrences_as_table(occurrences: list[Occurrence]) -> pa.Table:
    """Make the rows of Occurrence."""
    columns = columns_of(occurrences, Occurrence)
    return pa.table(
        {
            "row": names_of(columns["number"]),
            "event_id": texts(columns["event_id"]),
            "occurred_at": instants(columns["occurred_at"]),
            "tx_from": instants(columns["tx_from"]),
            "opened_by": names_of(columns["opened_by"]),
        }
    )


def operations_as_table(operations: list[Operation]) -> pa.Table:
    """Make the rows of Op."""
    columns = columns_of(operations, Operation)
    different = list(dict.fromkeys(columns["data"]))  # those of a transaction share its reason
    reasons = dict(zip(different, (body.get("reason") for body in parsed(different)), strict=True))
    return pa.table(
        {
            "id": names_of(columns["number"]),
            "tx": instants(columns["tx"]),
            **{name: texts(columns[name]) for name in ("verb", "subject", "author")},
            "reason": texts([reasons[data] for data in columns["data"]]),
        }
    )


def links_as_table(links: list[Link]) -> pa.Table:
    """Make the rows of a table of links."""
    columns = columns_of(links, Link)
    bodies = parsed(columns["data"])
    return pa.table(
        {
            "source": texts(columns["source"]),
            "target": texts(columns["target"]),
            "row": names_of(columns["number"]),
            "id": texts(columns["id"]),
            "kind": texts(columns["kind"]),
            "reason": texts([body.get("reason") for body in bodies]),
            "strength": numbers(columns["strength"]),
            "confidence": texts(["inferred" if each else "explicit" for each in columns["is_inferred"]]),
            "created_by": texts(columns["created_by"]),
            "metadata": texts([json_text(body.get("metadata")) for body in bodies]),
            **_recorded(columns),
        }
    )


def closings_as_table(closings: Sequence[ClosedVersion | ChangedEvent | ClosedLink], *ends: str) -> pa.Table:
    """Make rows of what was closed. `ends`: which ids are with it."""
    return pa.table(
        {
            **{name: texts([getattr(one, name) for one in closings]) for name in ends},
            "row": names_of([one.number for one in closings]),
            "closed_at": instants([one.tx_to for one in closings]),
            "op": names_of([one.closed_by for one in closings]),
        }
    )


def tombstone(word: str) -> Json:
    """Return what stands in place of the body of something that was forgotten."""
    return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}


def _recorded(columns: dict[str, list[Any]]) -> dict[str, pa.Array]:
    """Make the columns of who recorded something first, of both periods and of the operations that opened and closed it."""
    told, known = numbers(columns["told"]), numbers(columns["tx_from"])
    return {
        "author": texts(columns["author"]),
        "told": told.cast(pa.timestamp("us")),
        "told_by": names_of(columns["told_by"]),
        "remainder": pc.less(told, known),
        **{name: instants(columns[name]) for name in _ENDS},
        **{name: names_of(columns[name]) for name in _BY},
    }
