"""Many rows at once: one line of the journal for a thousand rows, the same checks as the verbs, and the same result."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson

from graphstore.core.index.births import Birth, bear
from graphstore.core.index.columns import Mark
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.write import verbs
from graphstore.core.write.act import Act
from graphstore.core.write.recording import Recording, Report, may_repeat
from graphstore.core.write.slots import Filling, Slot
from graphstore.core.write.transaction import refuse_taken_slot
from graphstore.core.write.trust import TRUST
from graphstore.core.write.writer import Progress, Writer
from graphstore.errors import ConflictError, GraphStoreError, InvalidError
from graphstore.values.event_fields import EVENT_FIELDS, EVENT_TEXTS
from graphstore.values.inputs import (
    description,
    event_fields,
    event_of,
    ids,
    json_object,
    json_read,
    text_of,
)
from graphstore.values.keys import slot_name
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, Period, instant, moment, period, without_all

_COLUMNS = {
    "nodes": frozenset("id kind key scope".split()),
    "versions": frozenset(
        "node_id content text tags trigger source reason valid_from valid_to tx_from tx_to".split()
    ),
    "events": frozenset({*EVENT_FIELDS, "tx_from"}),
    "links": frozenset(
        "id source kind target reason strength confidence created_by metadata "
        "valid_from valid_to tx_from tx_to".split()
    ),
}
_REQUIRED = {
    "nodes": ("id",),
    "versions": ("node_id",),
    "events": ("type", "description"),
    "links": ("source", "kind", "target"),
}
DEFAULT_KIND = "fact"
_NONE = type(None)
_KEPT = 100_000  # so many bodies are kept from one transaction for the next
_LONG_NUMBER = re.compile("[0-9]{18}")  # what `json_read` has to look at twice

_LINK_FIELDS = ("id", "reason", "strength", "confidence", "created_by", "metadata")

_TIMES = frozenset({"valid_from", "valid_to", "tx_from", "tx_to", "occurred_at"})

Row = dict[str, Any]
_Opened = dict[
    int, tuple[str, datetime]
]  # row number of a link that will be taken back -> its id, and when it begins
Step = tuple[int, str, int, Row]  # order within an instant, what it is, row number, row
_RETRACT, _EVENTS, _VERSIONS, _LINKS, _UNLINK = range(5)


def load(
    store: Writer, *, nodes: Any, versions: Any, events: Any, links: Any, progress: Progress | None
) -> dict[str, int]:
    """See `GraphStore.bulk_load`."""
    tables = {"nodes": rows(nodes), "versions": rows(versions), "events": rows(events), "links": rows(links)}
    for name, table in tables.items():
        _check_columns(name, table)
    identities = _identities(store, tables)
    dated = any(
        row.get("tx_from") is not None for name in ("versions", "events", "links") for row in tables[name]
    )
    total, count = sum(map(len, tables.values())), 0
    opened: _Opened = {}
    bodies: dict[int, Json] = {}
    with no_collecting(), store._together():
        before = store._core.index.mark()
        for at, steps in _steps(tables) if dated else _one_step(tables):
            with store._transact(None if at is None else instant(at), None, None) as work, store._core.lock:
                loader = _Loader(Act(store._core, work), identities, opened, bodies)
                for what, name, number, row in steps:
                    try:
                        _ACTS[what](loader, row)
                    except GraphStoreError as error:
                        raise type(error)(f"{name} row {number}: {error}") from error
                    count += 1
                    if progress and count % 1000 == 0:
                        loader.bear()
                        progress(count, total)
                loader.bear()
                told = work.index.lengths()
            if len(bodies) > _KEPT or store._core.index.lengths() != told:  # then versions got other numbers
                bodies.clear()
        return _stored(store._core.index, before)


def _stored(index: Index, before: Mark) -> dict[str, int]:
    """What a load left in the store: new nodes, their versions, new events and further occurrences of known ones, links written."""
    after = index.mark()
    born = index.is_event[before.entities : after.entities]
    events = sum(map(bool, born))
    described = sum(
        not index.is_event[index.v_ent[ver]] and index.v_num[ver] > 0
        for ver in range(before.versions, after.versions)
    )
    linked = {
        index.k_link[row]
        for row in range(before.link_rows, after.link_rows)
        if index.o_verb[index.k_op[row]] == "link"
    }
    return {
        "nodes": len(born) - events,
        "versions": described,
        "events": events + after.seen - before.seen,
        "links": len(linked),
    }


def _identities(store: Writer, tables: dict[str, list[Row]]) -> dict[str, Row]:
    """What each node is, by id. A node must have a version, and rows of a known node must agree with the store."""
    index = store._core.index
    found: dict[str, Row] = {}
    described = {row["node_id"] for row in tables["versions"]}
    for number, row in enumerate(tables["nodes"]):
        name = row["id"]
        if name in found:
            raise ConflictError(
                f"nodes row {number}: {name!r} is there twice. Give each node once, and its versions in versions=."
            )
        found[name] = row
        ent = index.ids.get(name, -1) if isinstance(name, str) else -1
        if ent < 0:
            if name not in described:
                raise InvalidError(
                    f"nodes row {number}: nothing describes {name!r}. Give at least one row of versions= with that node_id."
                )
            continue
        slot = None if row.get("key") is None else slot_name(row["key"])
        if (row.get("kind") or DEFAULT_KIND, slot, row.get("scope") or "") != (
            index.kind[ent],
            index.key[ent],
            index.scope[ent],
        ):
            raise ConflictError(
                f"nodes row {number}: {name!r} is known already as kind {index.kind[ent]!r}, key {index.key[ent]!r}, scope "
                f"{index.scope[ent]!r}. What a node is never changes: give the same, or choose another id."
            )
    return found


def rows(table: Any) -> list[Row]:
    """A table of any kind as a list of dicts: Arrow, pandas, polars, or an iterable of mappings. Times become instants, NaN and NaT None."""
    if table is None:
        return []
    if hasattr(table, "to_arrow") and not hasattr(table, "to_pylist"):  # polars
        table = table.to_arrow()
    if hasattr(table, "to_pylist"):
        return _from_arrow(table)
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas
        found = [
            {name: _no_nan(value) for name, value in record.items()}
            for record in table.to_dict(orient="records")
        ]
    elif isinstance(table, Iterable) and not isinstance(table, (str, bytes, Mapping)):
        found = [_row(number, row) for number, row in enumerate(table)]
    else:
        raise InvalidError(
            f"{type(table).__name__} is no table. Give an Arrow table, a DataFrame, or an iterable of dicts."
        )
    for number, row in enumerate(found):
        for name in _TIMES & row.keys():
            if row[name] is not None:
                try:
                    row[name] = instant(row[name], name)
                except InvalidError as error:
                    raise InvalidError(f"row {number}: {error}") from None
    return found


def _row(number: int, row: Any) -> Row:
    if not isinstance(row, Mapping):
        raise InvalidError(f"row {number} is {row!r}, no row. Give a dict of column names and values.")
    return dict(row)


def _from_arrow(table: Any) -> list[Row]:
    import pyarrow

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if name in _TIMES and pyarrow.types.is_timestamp(kind):
            if kind.tz is None:
                raise InvalidError(f"column {name!r} has no time zone. Cast it to timestamp('us', tz='UTC').")
            columns.append(
                column.cast(pyarrow.timestamp("us", kind.tz), safe=False).cast(pyarrow.int64()).to_pylist()
            )
        elif name in _TIMES:
            columns.append([None if value is None else instant(value, name) for value in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    names = table.column_names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _no_nan(value: Any) -> Any:
    """A cell of a DataFrame as Python has it: no NaN or NaT, no numpy; a whole number that a gap in its column made a float is whole."""
    if hasattr(value, "to_pydatetime"):
        return None if value != value else value.to_pydatetime()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    return value


def _check_columns(name: str, table: list[Row]) -> None:
    if not _columns_right(name, table):
        _refuse_wrong(name, table)


def _identifiers(name: str) -> tuple[str, ...]:
    return (*_REQUIRED[name], "id") if name == "events" else _REQUIRED[name]


def _columns_right(name: str, table: list[Row]) -> bool:
    """Whether `_refuse_wrong` has nothing to refuse, checked on whole columns."""
    there = set().union(*set(map(tuple, table)))
    if not there <= _COLUMNS[name]:
        return False
    if "tx_to" in there and None in [row.get("tx_from") for row in table if row.get("tx_to") is not None]:
        return False
    for column in _identifiers(name):
        given = {type(row.get(column)) for row in table}
        if not given <= {str} and (column in _REQUIRED[name] or not given <= {str, _NONE}):
            return False
    return True


def _refuse_wrong(name: str, table: list[Row]) -> None:
    allowed, required = _COLUMNS[name], _REQUIRED[name]
    for number, row in enumerate(table):
        wrong = next((column for column in row if column not in allowed), None)
        if wrong is not None:
            raise InvalidError(f"{name} row {number}: {InvalidError.choice('column', wrong, allowed)}")
        for column in required:
            if row.get(column) is None:
                fields = f" {event_fields()}" if name == "events" else ""
                raise InvalidError(
                    f"{name} row {number} has no {column!r}. Needed: {', '.join(required)}.{fields}"
                )
        for column in _identifiers(name):
            if type(row.get(column)) is not str and row.get(column) is not None:
                raise InvalidError(f"{name} row {number}: {column} {row[column]!r} is no text. Give a str.")
        if name in ("versions", "links") and row.get("tx_to") is not None and row.get("tx_from") is None:
            raise InvalidError(
                f"{name} row {number} has tx_to and no tx_from. A belief is held over [tx_from, tx_to): give both."
            )


class _Loader:
    """The rows of one transaction, each written as by its verb. New things are collected, and added column by column before anything else."""

    def __init__(
        self, act: Act, identities: dict[str, Row], opened: _Opened, bodies: dict[int, Json]
    ) -> None:
        self.act, self.index, self.work = act, act.index, act.work
        self.identities = identities  # what is known of a node before its first version
        self.opened = opened  # links that will be taken back
        self.recording = Recording(act)
        self.births: dict[str, Birth] = {}
        self.ranked = act.index.setting(TRUST) is not None
        self.bodies = bodies  # of versions written here, and by the transactions before
        self._first_bodies: list[Json] = []  # of the collected things

    def body(self, ver: int) -> Json:
        """The body of a version."""
        return self.bodies.get(ver) or self.act.body(ver)

    def bear(self) -> None:
        """Add the collected new things."""
        if self.births:
            self.bodies.update(enumerate(self._first_bodies, len(self.index.v_ent)))
            bear(self.index, self.work.tx, self.work.author, list(self.births.values()))
            self.births.clear()
            self._first_bodies.clear()

    def _is_new(self, name: str) -> bool:
        return name not in self.index.ids and name not in self.births

    def _wait(
        self, verb: str, name: str, kind: str, scope: str, during: Period, body: Json, reason: str | None
    ) -> None:
        why = self.work.reason(reason)
        self._first_bodies.append(body)
        self.births[name] = Birth(
            verb, name, verb == "record_event", kind, scope, *during, *self.work.body(body), *why
        )

    def version(self, row: Row) -> None:
        index, work, name, given = self.index, self.work, row["node_id"], row.get
        trigger, tags = given("trigger"), given("tags")
        body = description(
            given("text"), None if tags is None else _listed(tags), trigger or "initial", given("source")
        )
        body["content"] = _object(given("content"))
        start, stop = given("valid_from"), given("valid_to")
        during = period(work.tx if start is None else start, OPEN if stop is None else stop)
        if self.births and name in self.births:
            self.bear()
        ent = index.ids.get(name, -1)
        if ent < 0:
            self._new(name, during, stop, body, given("reason"))
            return
        if self.births:
            self.bear()
        if index.is_event[ent]:
            raise ConflictError(f"{name!r} is an event already. Choose another id for the node.")
        if trigger is None:
            body["trigger"] = "user_feedback"
        if self.ranked:
            self.act.trust(row.get("source")).guard(ent, [during])
        op = work.op("revise", name, given("reason"))
        self.act.turn(ent, [during], body["content"], op, self.body)
        work.describe(ent, [during], body, op)
        self.bodies[index.versions_of[ent][-1]] = body
        if index.key[ent] is not None:
            refuse_taken_slot(index, ent, op)

    def _new(self, name: str, during: Period, stop: Instant | None, body: Row, reason: str | None) -> None:
        """The first version of a node; one with a key fills its slot."""
        index, work = self.index, self.work
        identity = self.identities.get(name, {})
        key = identity.get("key")
        kind = text_of("kind", identity.get("kind") or DEFAULT_KIND)
        slot = "" if key is None else slot_name(key)
        scope = text_of("scope", identity.get("scope") or "", empty=True)
        if key is None:
            self._wait("add_node", self.act.free_id(name), kind, scope, during, body, reason)
            return
        self.bear()
        filling = Filling(self.act, Slot(kind, slot, scope), during[0], stop, source=body.get("source"))
        filling.refuse_untrusted()
        op = work.op("add_node", self.act.free_id(name), reason)
        ent = index.add_entity(name, False, kind, slot, scope, work.tx)
        work.describe(ent, [filling.during], body, op)
        filling.close(ent, None, op)
        filling.follow(ent, op)

    def unversion(self, row: Row) -> None:
        self.bear()
        reason = row.get("reason") or "no longer in the source"
        during = {"valid_from": _given(row, "valid_from"), "valid_to": _given(row, "valid_to")}
        verbs.retract(self.act, row["node_id"], **during, reason=text_of("reason", reason))

    def event(self, row: Row) -> None:
        metadata = _object(row.get("metadata"))
        kind, body = event_of(
            row["type"],
            row["description"],
            row.get("origin") or "agent",
            None,
            row.get("authorized"),
            **{name: row[name] for name in EVENT_TEXTS if name in row},
        )
        if metadata:  # checked already
            body["metadata"] = metadata
        related = row.get("related_to")
        abouts = () if related is None else tuple(ids("related_to", related))
        id, at = row.get("id"), row.get("occurred_at")
        report = Report(kind, body, id, at, abouts)
        if abouts or may_repeat(report) or (id is not None and not self._is_new(id)):
            self.bear()
            self.recording.write(report)
            return
        at = self.work.tx if at is None else at
        if id is not None:
            name = self.act.free_id(id)
        else:
            while (name := self.recording.new_id(at)) in self.births:
                pass
        self._wait("record_event", name, kind, "", period(at, OPEN), body, None)

    def link(self, row: Row) -> None:
        if self.births:
            self.bear()
        fields = {name: value for name in _LINK_FIELDS if (value := row.get(name)) is not None}
        start, stop = row.get("valid_from"), row.get("valid_to")
        if "metadata" in fields:
            fields["metadata"] = _object(fields["metadata"])
        fields["exactly_over"] = start, OPEN if stop is None else stop
        number = verbs.link_row(self.act, row["source"], row["kind"], row["target"], **fields)
        if row.get("tx_to") is not None:
            begun = self.index.k_from[number] if start is None else start
            self.opened[row["row"]] = self.index.l_name[self.index.k_link[number]], moment(begun)

    def unlink(self, row: Row) -> None:
        self.bear()
        link, begun = self.opened.pop(row["row"])
        verbs.unlink(self.act, link, begun, _given(row, "valid_to"), None)


_ACTS = {
    _RETRACT: _Loader.unversion,
    _EVENTS: _Loader.event,
    _VERSIONS: _Loader.version,
    _LINKS: _Loader.link,
    _UNLINK: _Loader.unlink,
}


def _steps(tables: dict[str, list[Row]]) -> Iterator[tuple[Any, list[Step]]]:
    """The steps at each instant, in order: first retractions, then events, versions, links."""
    steps: dict[Instant, list[Step]] = defaultdict(list)
    taken_back: dict[Instant, list[Step]] = defaultdict(list)
    begun: dict[tuple[str, Instant], list[Period]] = defaultdict(
        list
    )  # the versions of a node that are written again at an instant
    for row in tables["versions"]:
        if row.get("tx_from") is not None:
            begun[row["node_id"], row["tx_from"]].append(_period(row))
    for what, undo, name in (
        (_EVENTS, None, "events"),
        (_VERSIONS, _RETRACT, "versions"),
        (_LINKS, _UNLINK, "links"),
    ):
        for number, row in enumerate(tables[name]):
            at = row.get("tx_from")
            if at is None:
                raise InvalidError(
                    f"{name} row {number} has no tx_from, though others have. Give it to every row, or to none."
                )
            steps[at].append((what, name, number, {**row, "row": number} if what == _LINKS else row))
            stop = row.get("tx_to") if undo is not None else None
            if stop is None:
                continue
            if stop <= at:
                raise InvalidError(
                    f"{name} row {number}: tx_to is not after tx_from. A belief is held over [tx_from, tx_to)."
                )
            if undo == _UNLINK:
                taken_back[stop].append((_UNLINK, name, number, {**row, "row": number}))
            else:  # what is not written again there is retracted
                for start, end in without_all(_period(row), begun.get((row["node_id"], stop), ())):
                    taken_back[stop].append(
                        (_RETRACT, name, number, {**row, "valid_from": start, "valid_to": end})
                    )
    for at in sorted({*steps, *taken_back}):
        yield moment(at), [*sorted(taken_back.get(at, ()), key=lambda step: -step[0]), *steps.get(at, ())]


def _period(row: Row) -> Period:
    start, stop = row.get("valid_from"), row.get("valid_to")
    return row["tx_from"] if start is None else start, OPEN if stop is None else stop


def _one_step(tables: dict[str, list[Row]]) -> Iterator[tuple[None, list[Step]]]:
    yield (
        None,
        [
            (what, name, number, row)
            for what, name in ((_EVENTS, "events"), (_VERSIONS, "versions"), (_LINKS, "links"))
            for number, row in enumerate(tables[name])
        ],
    )


def _given(row: Row, name: str) -> Any:
    at = row.get(name)
    return None if at is None else moment(at)


def _listed(tags: Any) -> Any:
    return tags if isinstance(tags, str) or not isinstance(tags, Iterable) else list(tags)


def _object(value: Any) -> Any:
    if type(value) is str:
        with suppress(ValueError, RecursionError):
            found = orjson.loads(value)
            if type(found) is dict and _LONG_NUMBER.search(value) is None:
                return found
    if isinstance(value, (str, bytes)):
        value, text = json_read(repr(value[:60]), value, kept=True), value
        if not isinstance(value, dict):
            raise InvalidError(f"{text[:60]!r} is no JSON object. Give a dict, or the text of a JSON object.")
        return value
    return {} if value is None else json_object("content", value)
