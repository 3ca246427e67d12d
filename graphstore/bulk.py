"""Many rows at once: one line of the journal for a thousand rows, the same checks as the verbs, and the same result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.period import OPEN, Instant, instant, moment

if TYPE_CHECKING:
    from graphstore.store import GraphStore, Progress

_COLUMNS = {
    "nodes": frozenset({"id", "kind", "key", "scope"}),
    "versions": frozenset(
        {
            "node_id",
            "content",
            "text",
            "tags",
            "trigger",
            "source",
            "reason",
            "valid_from",
            "valid_to",
            "tx_from",
            "tx_to",
        }
    ),
    "events": frozenset(
        {
            "id",
            "type",
            "description",
            "occurred_at",
            "source",
            "origin",
            "agent",
            "related_to",
            "metadata",
            "fingerprint",
            "trace_id",
            "span_id",
            "parent_span_id",
            "tx_from",
        }
    ),
    "links": frozenset(
        {
            "id",
            "source",
            "kind",
            "target",
            "reason",
            "strength",
            "confidence",
            "created_by",
            "metadata",
            "valid_from",
            "valid_to",
            "tx_from",
            "tx_to",
        }
    ),
}
_REQUIRED = {
    "nodes": ("id",),
    "versions": ("node_id",),
    "events": ("type", "description"),
    "links": ("source", "kind", "target"),
}
DEFAULT_KIND = "fact"

Row = dict[str, Any]
Step = tuple[int, str, int, Row]  # order within an instant, what it is, row number, row
_RETRACT, _NODES, _EVENTS, _VERSIONS, _LINKS, _UNLINK = range(6)


def load(
    store: GraphStore, *, nodes: Any, versions: Any, events: Any, links: Any, progress: Progress | None
) -> dict[str, int]:
    """See `GraphStore.bulk_load`."""
    tables = {"nodes": rows(nodes), "versions": rows(versions), "events": rows(events), "links": rows(links)}
    for name, table in tables.items():
        _check_columns(name, table)
    loader = _Loader(store, {row["id"]: row for row in tables["nodes"]})
    dated = any(
        row.get("tx_from") is not None for name in ("versions", "events", "links") for row in tables[name]
    )
    total = sum(map(len, tables.values()))
    if not dated:
        with store.transaction():
            loader.all_at_once(tables, lambda done: progress and progress(done, total))
    else:
        loader.by_instant(tables, lambda done: progress and progress(done, total))
    return {name: len(table) for name, table in tables.items()}


def rows(table: Any) -> list[Row]:
    """A table of any kind as a list of dicts: Arrow, pandas, polars, or an iterable of mappings; NaN and NaT become None."""
    if table is None:
        return []
    if hasattr(table, "to_pylist"):  # Arrow
        return table.to_pylist()  # type: ignore[no-any-return]
    if hasattr(table, "to_dicts"):  # polars
        return table.to_dicts()  # type: ignore[no-any-return]
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas
        records = table.to_dict(orient="records")
        return [{name: _no_nan(value) for name, value in record.items()} for record in records]
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes, Mapping)):
        raise InvalidError(
            f"{type(table).__name__} is no table. Give an Arrow table, a DataFrame, or an iterable of dicts."
        )
    return [dict(row) for row in table]


def _no_nan(value: Any) -> Any:
    if hasattr(value, "to_pydatetime"):
        value = None if value != value else value.to_pydatetime()
    elif hasattr(value, "item") and not isinstance(value, (list, dict, str)):
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def _check_columns(name: str, table: list[Row]) -> None:
    allowed, required = _COLUMNS[name], _REQUIRED[name]
    for number, row in enumerate(table):
        if not row.keys() <= allowed:
            wrong = next(column for column in row if column not in allowed)
            raise InvalidError(f"{name} row {number}: {InvalidError.choice('column', wrong, allowed)}")
        missing = [column for column in required if row.get(column) is None]
        if missing:
            raise InvalidError(f"{name} row {number} has no {missing[0]!r}. Needed: {', '.join(required)}.")


class _Loader:
    def __init__(self, store: GraphStore, identities: dict[str, Row]) -> None:
        self.store = store
        self.identities = identities  # what is known of a node before its first version
        self.opened: dict[tuple[str, str, str], list[str]] = defaultdict(list)

    def all_at_once(self, tables: dict[str, list[Row]], done: Any) -> None:
        count = 0
        for what, name in ((_EVENTS, "events"), (_VERSIONS, "versions"), (_LINKS, "links")):
            for number, row in enumerate(tables[name]):
                self._do(what, name, number, row)
                count += 1
                if count % 1000 == 0:
                    done(count)

    def by_instant(self, tables: dict[str, list[Row]], done: Any) -> None:
        count = 0
        for at, steps in _steps(tables):
            with self.store.transaction(at=moment(at)):
                for what, name, number, row in steps:
                    self._do(what, name, number, row)
                    count += 1
            done(count)

    def _do(self, what: int, name: str, number: int, row: Row) -> None:
        try:
            _ACTS[what](self, row)
        except GraphStoreError as error:
            raise type(error)(f"{name} row {number}: {error}") from error

    def version(self, row: Row) -> None:
        store, id = self.store, row["node_id"]
        content = _object(row.get("content"))
        fields = {
            name: row[name]
            for name in ("text", "source", "reason", "valid_from")
            if row.get(name) is not None
        }
        if row.get("tags") is not None:
            fields["tags"] = list(row["tags"])
        if id in store._core.index.ids:
            fields["valid_to"] = row["valid_to"] if row.get("valid_to") is not None else moment(OPEN)
            if "valid_from" not in fields:
                fields["valid_from"] = moment(store._coordinate()[1])
            store.revise(id, content, trigger=row.get("trigger") or "user_feedback", **fields)
            return
        identity = self.identities.get(id, {})
        store.add_node(
            identity.get("kind") or DEFAULT_KIND, content, id=id, key=identity.get("key"), scope=identity.get("scope") or "",
            valid_to=row.get("valid_to"), trigger=row.get("trigger") or "initial", **fields,
        )  # fmt: skip

    def unversion(self, row: Row) -> None:
        store = self.store
        reason = row.get("reason") or "no longer in the source"
        store.retract(
            row["node_id"], valid_from=row.get("valid_from"), valid_to=row.get("valid_to"), reason=reason
        )

    def event(self, row: Row) -> None:
        fields = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("tx_from", "type", "description")
        }
        if "metadata" in fields:
            fields["metadata"] = _object(fields["metadata"])
        self.store.record_event(row["type"], row["description"], **fields)

    def link(self, row: Row) -> None:
        fields = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("tx_from", "tx_to", "source", "kind", "target")
        }
        if "metadata" in fields:
            fields["metadata"] = _object(fields["metadata"])
        made = self.store.link(row["source"], row["kind"], row["target"], **fields)
        if row.get("tx_to") is not None:
            self.opened[row["source"], row["kind"], row["target"]].append(made.id)

    def unlink(self, row: Row) -> None:
        name = self.opened[row["source"], row["kind"], row["target"]].pop(0)
        self.store.unlink(name, valid_from=row.get("valid_from"), valid_to=row.get("valid_to"))


_ACTS = {
    _RETRACT: _Loader.unversion,
    _EVENTS: _Loader.event,
    _VERSIONS: _Loader.version,
    _LINKS: _Loader.link,
    _UNLINK: _Loader.unlink,
}


def _steps(tables: dict[str, list[Row]]) -> Iterator[tuple[Instant, list[Step]]]:
    """What to do at each instant, in order: take back first, then events, versions, links."""
    todo: dict[Instant, list[Step]] = defaultdict(list)
    begun: dict[str, set[Instant]] = defaultdict(set)
    for row in tables["versions"]:
        if row.get("tx_from") is not None:
            begun[row["node_id"]].add(instant(row["tx_from"], "tx_from"))
    for what, undo, name in (
        (_EVENTS, None, "events"),
        (_VERSIONS, _RETRACT, "versions"),
        (_LINKS, _UNLINK, "links"),
    ):
        for number, row in enumerate(tables[name]):
            if row.get("tx_from") is None:
                raise InvalidError(
                    f"{name} row {number} has no tx_from, though others have. Give it to every row, or to none."
                )
            at = instant(row["tx_from"], "tx_from")
            todo[at].append((what, name, number, row))
            if undo is not None and row.get("tx_to") is not None:
                stop = instant(row["tx_to"], "tx_to")
                if stop <= at:
                    raise InvalidError(
                        f"{name} row {number}: tx_to is not after tx_from. A belief is held over [tx_from, tx_to)."
                    )
                if undo == _UNLINK or stop not in begun[row["node_id"]]:
                    todo[stop].append((undo, name, number, row))
    for at in sorted(todo):
        yield at, sorted(todo[at], key=lambda step: (step[0] != _UNLINK, step[0]))


def _object(value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise InvalidError(f"{value[:60]!r} is not JSON: {error}. Give a dict, or JSON text.") from None
    return {} if value is None else value
