"""Write many rows at once: apply the decisions of the verbs row by row, on a working set that prefetches what many rows refer to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import repeat
from typing import Any

import orjson

from graphstore.errors import ConflictError, GraphStoreError, InvalidError
from graphstore.read.working_set import WorkingSet, is_text
from graphstore.store.load_columns import LoadTable, Row, check_columns, listed, object_of, table_of
from graphstore.values.event_fields import ENDED_AT, EVENT_TEXTS
from graphstore.values.gc_pause import no_collecting
from graphstore.values.inputs import description, event_of, ids, text_of
from graphstore.values.keys import slot_name
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, Period, end_moment, instant, moment, period, without_all
from graphstore.values.vocabulary import Sentence
from graphstore.write import verbs
from graphstore.write.act import Act
from graphstore.write.given_arguments import bounds
from graphstore.write.recording import RecordEvent, Recording
from graphstore.write.slots import Filling, Slot
from graphstore.write.transaction import refuse_taken_slot
from graphstore.write.trust import TRUST
from graphstore.write.writer import Progress, Writer

DEFAULT_KIND = "fact"
_BLOCK = 65_536  # rows prefetched at once
# the columns that contain ids of things
_NAMING = {"events": ("id",), "versions": ("node_id",), "links": ("source", "target")}
_LINK_FIELDS = ("id", "reason", "strength", "confidence", "created_by", "history", "metadata")

# row number of a link that will be unlinked -> its id and start
_Opened = dict[int, tuple[str, datetime]]
# the type of the step, the table, the rows; for retractions the period of each row
Step = tuple[int, str, Sequence[int], list[Period]]
_NEXT_NUMBERS = "SELECT entity, version, link_period, occurrence FROM next_number"
_STORED = """
SELECT (SELECT count(*) FROM entity WHERE number >= ?1), (SELECT count(*) FROM entity WHERE number >= ?1 AND is_event = 1),
  (SELECT count(*) FROM version v CROSS JOIN entity e WHERE v.number >= ?2 AND v.ordinal > 0 AND e.number = v.entity AND e.is_event = 0),
  (SELECT count(DISTINCT p.link) FROM link_period p CROSS JOIN operation o WHERE p.number >= ?3 AND o.number = p.opened_by AND o.verb = 'link')
"""
_IDENTITIES = (
    "SELECT e.id, e.kind, e.key, e.scope FROM json_each(?) s CROSS JOIN entity e WHERE e.id = s.value"
)
_RETRACT, _EVENTS, _VERSIONS, _LINKS, _UNLINK = range(5)


def load(
    store: Writer, *, nodes: Any, versions: Any, events: Any, links: Any, progress: Progress | None
) -> dict[str, int]:
    """See `GraphStore.bulk_load`."""
    given = {"nodes": nodes, "versions": versions, "events": events, "links": links}
    tables = {name: table_of(table) for name, table in given.items()}
    for name, table in tables.items():
        check_columns(name, table)
    identities = _identities(store, tables)
    dated = any(
        at is not None for name in ("versions", "events", "links") for at in tables[name].column("tx_from")
    )
    total, count = sum(map(len, tables.values())), 0
    opened: _Opened = {}
    with no_collecting(), store.together():
        counted = _counted(store)
        for at, steps in _steps(tables) if dated else _one_step(tables):
            with store._transact(at, None, None) as work:
                work.starts = {}
                loader = _Loader(Act(store._core, work), tables, identities, opened)
                for step in steps if progress is None else _in_thousands(steps, count):
                    with store._core.on_working_set():
                        loader.do(step)
                    count += len(step[2])
                    if progress and count % 1000 == 0:
                        progress(count, total)
        return _stored(store, counted)


def _in_thousands(steps: Sequence[Step], count: int) -> Iterator[Step]:
    """Yield the same steps, split after each thousandth row. `count`: the number of rows written before."""
    for what, name, numbers, spans in steps:
        at = 0
        while at < len(numbers):
            stop = at + 1000 - count % 1000
            part = numbers[at:stop]
            yield what, name, part, spans[at:stop]
            at, count = stop, count + len(part)


def _counted(store: Writer) -> tuple[int, ...]:
    """Return the next numbers of an entity, a version, a row of a link and an occurrence."""
    return store._core.rows.database.rows(_NEXT_NUMBERS)[0]


def _stored(store: Writer, before: tuple[int, ...]) -> dict[str, int]:
    """Return what a load added: new nodes, their versions, new events and further occurrences of known ones, links."""
    [(born, events, described, linked)] = store._core.rows.database.rows(_STORED, before[:3])
    again = _counted(store)[3] - before[3]
    return {"nodes": born - events, "versions": described, "events": events + again, "links": linked}


def _identities(store: Writer, tables: dict[str, LoadTable]) -> dict[str, Row]:
    """Return the row of each node, by id. Raises InvalidError for a new node without a version, ConflictError for a known node with another kind, key or scope."""
    found: dict[str, Row] = {}
    described = set(tables["versions"].column("node_id"))
    known = _known_nodes(store, tables["nodes"].column("id"))
    for number, row in enumerate(tables["nodes"]):
        name = row["id"]
        if name in found:
            raise ConflictError(
                f"nodes row {number}: {name!r} is there twice. Give each node once, and its versions in versions=."
            )
        found[name] = row
        if name not in known:
            if name not in described:
                raise InvalidError(
                    f"nodes row {number}: nothing describes {name!r}. Give at least one row of versions= with that node_id."
                )
            continue
        kind, key, scope = known[name]
        slot = None if row.get("key") is None else slot_name(row["key"])
        if (row.get("kind") or DEFAULT_KIND, slot, row.get("scope") or "") != (kind, key, scope):
            raise ConflictError(
                f"nodes row {number}: {name!r} is known already as kind {kind!r}, key {key!r}, scope "
                f"{scope!r}. What a node is never changes: give the same, or choose another id."
            )
    return found


def _known_nodes(store: Writer, names: Sequence[str]) -> dict[str, tuple[str, str | None, str]]:
    """Return the kind, the key and the scope of the known nodes among some ids."""
    asked = orjson.dumps([name for name in names if is_text(name)]).decode()
    found = store._core.rows.database.rows(_IDENTITIES, [asked])
    return {name: (kind, key, scope) for name, kind, key, scope in found}


def rows(table: Any) -> list[Row]:
    """Return a table of any type as a list of dicts. Times become instants, NaN and NaT None."""
    return list(table_of(table))


class _Loader:
    """Writes the rows of one transaction, each as its verb would. What they refer to is prefetched for many rows at once."""

    def __init__(
        self, act: Act, tables: dict[str, LoadTable], identities: dict[str, Row], opened: _Opened
    ) -> None:
        assert isinstance(act.index, WorkingSet)
        self.act, self.index, self.work = act, act.index, act.work
        self.tables, self.identities, self.opened = tables, identities, opened
        self.recording = Recording(act)
        self.is_ranked = act.index.setting(TRUST) is not None
        self.number = 0  # the number of the row being written

    def do(self, step: Step) -> None:
        """Write the rows of a step. An error names the row."""
        what, name, numbers, spans = step
        try:
            if what == _RETRACT:
                for self.number, during in zip(numbers, spans, strict=True):
                    self.unversion(during)
                return
            write = {_VERSIONS: self.version, _EVENTS: self.event, _LINKS: self.link, _UNLINK: self.unlink}[
                what
            ]
            for at in range(0, len(numbers), _BLOCK):
                block = numbers[at : at + _BLOCK]
                if what != _UNLINK:
                    self._read_ahead(name, block)
                for self.number in block:
                    write()
        except GraphStoreError as error:
            raise type(error)(f"{name} row {self.number}: {error}") from error

    def row(self, name: str) -> Row:
        """Return the row that is being written."""
        return self.tables[name].row(self.number)

    def _state(self, op: int, start: Instant, stop: Instant | None) -> None:
        """Record with its operation the period given in a row of a version."""
        if self.work.starts is not None:
            self.work.starts[op] = start
        if stop is not None:
            self.work.record(op, {"valid_to": end_moment(stop)})

    def _record(self, first: int, entry: Json) -> None:
        """Record the arguments of a row with its operations, from number `first` on, if it has any."""
        if len(self.index.o_tx) > first:
            self.work.record(first, entry)
            self.work.record_call(first)

    # ------------------------------------------------------------------ prefetching

    def _read_ahead(self, name: str, numbers: Sequence[int]) -> None:
        """Read at once what rows refer to."""
        index, table = self.index, self.tables[name]
        names = {id for column in _NAMING[name] for id in table.values_of(column, numbers) if id is not None}
        index.prepare_ids(names)
        if name == "versions":
            index.prepare_things(ent for id in names if (ent := index.ids.get(id, -1)) >= 0)
        elif name == "links":
            ids = {id for id in table.values_of("id", numbers) if id is not None}
            sources, targets, kinds = (
                table.values_of(each, numbers) for each in ("source", "target", "kind")
            )
            index.prepare_links(ids, self._ends(sources, targets, kinds))

    def _ends(
        self, sources: Sequence[str], targets: Sequence[str], kinds: Sequence[str]
    ) -> set[tuple[int, str, int]]:
        """Return the ends and kinds of links that may state the same as rows of links, or the opposite."""
        ids, said, found = self.index.ids, dict[Any, Sentence | None](), set[tuple[int, str, int]]()
        for source, target, kind in zip(sources, targets, kinds, strict=True):
            if kind not in said:
                said[kind] = None
                with suppress(GraphStoreError):  # writing the row raises the error
                    said[kind] = self.act.core.vocabulary.sentence("1", kind, "2", "explicit")
            sentence, one, other = said[kind], ids.get(source, -1), ids.get(target, -1)
            if sentence is None or min(one, other) < 0:
                continue
            first, second = (other, one) if sentence.source == "2" else (one, other)
            found.add((first, sentence.kind.name, second))
            if sentence.kind.symmetric or sentence.kind.causal:
                found.add((second, sentence.kind.name, first))
        return found

    # ------------------------------------------------------------------ versions

    def version(self) -> None:
        """Write a row of a version."""
        index, work, row = self.index, self.work, self.row("versions")
        name, given = row["node_id"], row.get
        trigger, tags = given("trigger"), given("tags")
        body = description(
            given("text"), None if tags is None else listed(tags), trigger or "initial", given("source")
        )
        body["content"] = object_of(given("content"))
        start, stop = given("valid_from"), given("valid_to")
        during = period(work.tx if start is None else start, OPEN if stop is None else stop)
        ent = index.ids.get(name, -1)
        if ent < 0:
            self._first(name, during, stop, body, given("reason"))
            return
        if trigger is None:
            body["trigger"] = "user_feedback"
        ent = self.act.through(ent)
        name = index.names[ent]
        if index.is_event[ent]:
            raise ConflictError(f"{name!r} is an event already. Choose another id for the node.")
        if self.is_ranked:
            self.act.trust(given("source")).guard(ent, [during])
        op = work.op("revise", name, given("reason"))
        self._state(op, during[0], stop)
        self.act.turn(ent, [during], body["content"], op)
        work.describe(ent, [during], body, op)
        refuse_taken_slot(index, ent, op)

    def _first(self, name: str, during: Period, stop: Instant | None, body: Row, reason: str | None) -> None:
        """Write the first version of a node. With a key, the node fills its slot."""
        index, work = self.index, self.work
        identity = self.identities.get(name, {})
        key = identity.get("key")
        kind = text_of("kind", identity.get("kind") or DEFAULT_KIND)
        slot = None if key is None else slot_name(key)
        scope = text_of("scope", identity.get("scope") or "", empty=True)
        filling = None
        if slot is not None:
            filling = Filling(self.act, Slot(kind, slot, scope), during[0], stop, source=body.get("source"))
            filling.refuse_untrusted()
            during = filling.spans[0]
        name = self.act.free_id(name)
        op = work.op("add_node", name, reason)
        self._state(op, during[0], stop)
        ent = index.add_entity(name, False, kind, slot, scope, work.tx)
        if stop is not None:
            index.note_given_end(ent)
        work.describe(ent, filling.spans if filling is not None else [during], body, op)
        if filling is not None:
            filling.close(ent, None, op)
            filling.link_next(ent, op)

    def unversion(self, during: Period) -> None:
        """Retract what a row of a version stated, over a part of its period."""
        row = self.row("versions")
        reason = text_of("reason", row.get("reason") or "no longer in the source")
        start, stop = map(moment, during)
        first = len(self.index.o_tx)
        verbs.Retract(row["node_id"], start, stop, reason).apply(self.act)
        self._record(first, bounds(*during))

    # ------------------------------------------------------------------ events and links

    def event(self) -> None:
        """Write a row of an event."""
        row = self.row("events")
        metadata = object_of(row.get("metadata"))
        kind, body = event_of(
            row["type"],
            row["description"],
            row.get("origin") or "agent",
            None,
            row.get("authorized"),
            **{name: row[name] for name in (*EVENT_TEXTS, ENDED_AT) if name in row},
        )
        if metadata:  # already checked
            body["metadata"] = {**metadata, **body.get("metadata", {})}
        related = row.get("related_to")
        abouts = () if related is None else tuple(ids("related_to", related))
        id, at = row.get("id"), row.get("occurred_at")
        report = RecordEvent(kind, body, id, at, abouts)
        first = len(self.index.o_tx)
        self.recording.write(report)
        self._record(first, report.entry(self.act, "record_event"))

    def link(self) -> None:
        """Write a row of a link."""
        index, row = self.index, self.row("links")
        fields = {name: value for name in _LINK_FIELDS if (value := row.get(name)) is not None}
        start, stop = row.get("valid_from"), row.get("valid_to")
        if "metadata" in fields:
            fields["metadata"] = object_of(fields["metadata"])
        first = len(index.o_tx)
        new = verbs.AddLink(row["source"], row["kind"], row["target"], **fields)
        number = new.row(self.act, (start, OPEN if stop is None else stop))
        self._record(first, bounds(start, None if stop is None or stop >= OPEN else stop))
        if row.get("tx_to") is not None:
            begun = index.k_from[number] if start is None else start
            self.opened[self.number] = index.l_name[index.k_link[number]], moment(begun)

    def unlink(self) -> None:
        """Unlink what a row of a link stated."""
        stop = self.row("links").get("valid_to")
        link, begun = self.opened.pop(self.number)
        first = len(self.index.o_tx)
        until = None if stop is None else moment(stop)
        verbs.Unlink(link, valid_from=begun, valid_to=until).apply(self.act)
        self._record(first, bounds(instant(begun), stop))


def _steps(tables: dict[str, LoadTable]) -> Iterator[tuple[Instant, list[Step]]]:
    """Yield the steps at each instant, in order: first what is taken back, then events, versions, links."""
    told: dict[Instant, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    unlinked: dict[Instant, list[int]] = defaultdict(list)
    retracted: dict[Instant, list[tuple[int, Period]]] = defaultdict(list)
    for name in ("events", "versions", "links"):
        table = tables[name]
        stops = table.columns.get("tx_to") or repeat(None)
        for number, (at, stop) in enumerate(zip(table.column("tx_from"), stops, strict=False)):
            if at is None:
                raise InvalidError(
                    f"{name} row {number} has no tx_from, though others have. Give it to every row, or to none."
                )
            told[at][name].append(number)
            if stop is None:
                continue
            if stop <= at:
                raise InvalidError(
                    f"{name} row {number}: tx_to is not after tx_from. A belief is held over [tx_from, tx_to)."
                )
            if name == "links":
                unlinked[stop].append(number)
            else:
                retracted[stop].append((number, _during(table.row(number))))
    _leave_said_again(tables["versions"], retracted)
    for at in sorted({*told, *unlinked, *retracted}):
        steps: list[Step] = []
        if numbers := unlinked.get(at):
            steps.append((_UNLINK, "links", numbers, []))
        if parts := retracted.get(at):
            steps.append((_RETRACT, "versions", [number for number, _ in parts], [part for _, part in parts]))
        there = told.get(at, {})
        for what, name in ((_EVENTS, "events"), (_VERSIONS, "versions"), (_LINKS, "links")):
            if name in there:
                steps.append((what, name, there[name], []))
        yield at, steps


def _leave_said_again(table: LoadTable, retracted: dict[Instant, list[tuple[int, Period]]]) -> None:
    """Drop the parts of retractions that are written again at the same instant."""
    wanted = {(table.row(number)["node_id"], at) for at, parts in retracted.items() for number, _ in parts}
    again: dict[tuple[str, Instant], list[Period]] = defaultdict(list)
    if wanted:
        for number, key in enumerate(zip(table.column("node_id"), table.column("tx_from"), strict=True)):
            if key in wanted:
                again[key].append(_during(table.row(number)))
    for at, parts in list(retracted.items()):
        parts[:] = [
            (number, part)
            for number, during in parts
            for part in without_all(during, again.get((table.row(number)["node_id"], at), ()))
        ]
        if not parts:
            del retracted[at]


def _during(row: Row) -> Period:
    start, stop = row.get("valid_from"), row.get("valid_to")
    return row["tx_from"] if start is None else start, OPEN if stop is None else stop


def _one_step(tables: dict[str, LoadTable]) -> Iterator[tuple[None, list[Step]]]:
    every = ((_EVENTS, "events"), (_VERSIONS, "versions"), (_LINKS, "links"))
    yield None, [(what, name, range(len(tables[name])), []) for what, name in every if len(tables[name])]
