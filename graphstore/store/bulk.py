"""Many rows at once: one line of the journal for a thousand rows, the same checks as the verbs, and the same result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import repeat
from typing import Any

import orjson

from graphstore.core.index import libraries
from graphstore.core.index.births import Birth, Run
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.working_set import WorkingSet, is_text
from graphstore.core.write import verbs
from graphstore.core.write.act import Act
from graphstore.core.write.given_arguments import bounds, known_ids
from graphstore.core.write.new_links import Attributes, NewLinks
from graphstore.core.write.recording import Recording, Report, may_repeat
from graphstore.core.write.slots import Filling, Slot
from graphstore.core.write.transaction import refuse_taken_slot
from graphstore.core.write.trust import TRUST
from graphstore.core.write.writer import Progress, Writer
from graphstore.errors import ConflictError, GraphStoreError, InvalidError
from graphstore.store.load_columns import Row, Table, check_columns, linked, listed, object_of, table_of, told
from graphstore.store.version_numbers import NEW, Tail, numbered
from graphstore.values.content_diff import same
from graphstore.values.event_fields import ENDED_AT, EVENT_TEXTS
from graphstore.values.inputs import description, event_of, ids, text_of
from graphstore.values.keys import slot_name
from graphstore.values.models import Json
from graphstore.values.period import (
    BEGINNING,
    OPEN,
    Instant,
    Period,
    end_moment,
    instant,
    moment,
    period,
    without_all,
)
from graphstore.values.vocabulary import refuse_creator

DEFAULT_KIND = "fact"
_KEPT = 100_000  # so many contents are kept from one transaction for the next
_BLOCK = 65_536  # so many rows are laid out at once, and read from their table
_CHUNK = 4_096
_FEW = 3  # versions that are sooner written one by one
_MANY = 2_000  # versions in a load from which on their numbers are found by column, and so many rows that are sooner numbered so
_WORTH = 1_024

_LINK_FIELDS = ("id", "reason", "strength", "confidence", "created_by", "metadata")

_Opened = dict[
    int, tuple[str, datetime]
]  # row number of a link that will be taken back -> its id, and when it begins
_Tails = dict[int, Tail]
"""What was said last of a node. The beginning is `_NEVER` where more was said than that row."""
_NEVER = BEGINNING - 1
Step = tuple[
    int, str, Sequence[int], list[Period]
]  # what it is, the table, the rows; of retractions the period of each
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
    memory = _Memory(tables, identities)
    if len(tables["versions"]) >= _MANY:
        libraries.load("numpy")
    with no_collecting(), store._together():
        counted = _counted(store)
        for at, steps in _steps(tables) if dated else _one_step(tables):
            with store._transact(at, None, None) as work, store._core.on_working_set():
                work.starts = {}
                loader = _Loader(Act(store._core, work), memory)
                for step in steps if progress is None else _in_thousands(steps, count):
                    loader.do(step)
                    count += len(step[2])
                    if progress and count % 1000 == 0:
                        loader.bear()
                        store._call_outside(progress, count, total)
                loader.end()
        return _stored(store, counted)


def _in_thousands(steps: Sequence[Step], count: int) -> Iterator[Step]:
    """The same steps, parted after each thousandth row; `count` rows were written before."""
    for what, name, numbers, spans in steps:
        at = 0
        while at < len(numbers):
            stop = at + 1000 - count % 1000
            part = numbers[at:stop]
            yield what, name, part, spans[at:stop]
            at, count = stop, count + len(part)


def _counted(store: Writer) -> tuple[int, ...]:
    """The numbers that the next entity, version, row of a link and occurrence get."""
    return store._core.rows.database.rows(_NEXT_NUMBERS)[0]


def _stored(store: Writer, before: tuple[int, ...]) -> dict[str, int]:
    """What a load left in the store: new nodes, their versions, new events and further occurrences of known ones, links written."""
    [(born, events, described, linked)] = store._core.rows.database.rows(_STORED, before[:3])
    again = _counted(store)[3] - before[3]
    return {"nodes": born - events, "versions": described, "events": events + again, "links": linked}


def _identities(store: Writer, tables: dict[str, Table]) -> dict[str, Row]:
    """What each node is, by id. A node must have a version, and rows of a known node must agree with the store."""
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
    """The kind, the key and the scope of those of some ids that the store knows."""
    asked = orjson.dumps([name for name in names if is_text(name)]).decode()
    found = store._core.rows.database.rows(_IDENTITIES, [asked])
    return {name: (kind, key, scope) for name, kind, key, scope in found}


def rows(table: Any) -> list[Row]:
    """A table of any kind as a list of dicts. Times become instants, NaN and NaT None."""
    return list(table_of(table))


class _Memory:
    """What a load knows from one of its transactions to the next."""

    def __init__(self, tables: dict[str, Table], identities: dict[str, Row]) -> None:
        self.tables = tables
        self.identities = identities  # what is known of a node before its first version
        self.opened: _Opened = {}  # links that will be taken back
        self.tails: _Tails = {}  # of nodes without a key
        self.contents: dict[int, Json] = {}  # of versions
        self.left = (0, 0)  # how many versions and rows there were after the last transaction
        # name of a kind, confidence, maker of links -> see `_alike`
        self.kinds: dict[Any, Attributes | None] = {}

    def forget(self) -> None:
        """Forget what is known by the numbers of rows and versions."""
        self.tails.clear()
        self.contents.clear()


class _Loader:
    """The rows of one transaction, each written as by its verb. Descriptions of new things, and those that go on from what was said of a thing, are
    collected in a run, and added column by column before anything else."""

    def __init__(self, act: Act, memory: _Memory) -> None:
        self.act, self.index, self.work = act, act.index, act.work
        self.memory, self.tails = memory, memory.tails
        if len(memory.contents) > _KEPT or memory.left != _lengths(self.index):
            memory.forget()  # versions got other numbers
        self.recording = Recording(act)
        self.run, self.fresh_links = Run(act.index), NewLinks(act.core, act.work)
        self.ranked = act.index.setting(TRUST) is not None
        self.tailed = not (self.ranked or act.index.undone_by)
        self.sole: dict[int, int] = {}  # of nodes of which one row is all that was said
        self.number = 0  # of the row that is being written

    def do(self, step: Step) -> None:
        """Write the rows of a step. An error names the row."""
        what, name, numbers, spans = step
        try:
            if what == _RETRACT:
                for self.number, during in zip(numbers, spans, strict=True):
                    self.unversion(during)
            elif what in (_VERSIONS, _LINKS):
                many = self.versions if what == _VERSIONS else self.links
                for at in range(0, len(numbers), _BLOCK):
                    many(numbers[at : at + _BLOCK])
            else:
                if what == _EVENTS:
                    self._prepare("events", ("id",), numbers)
                write = self.event if what == _EVENTS else self.unlink
                for self.number in numbers:
                    write()
        except GraphStoreError as error:
            raise type(error)(f"{name} row {self.number}: {error}") from error

    def row(self, name: str) -> Row:
        """The row that is being written."""
        return self.memory.tables[name].row(self.number)

    def _state(self, first: int, starts: Sequence[Instant], stops: Sequence[Instant | None]) -> None:
        """Record the periods that rows of versions give, with their operations, from number `first` on."""
        for op, start, stop in zip(range(first, first + len(starts)), starts, stops, strict=False):
            if self.work.starts is not None:
                self.work.starts[op] = start
            if stop is not None:
                self.work.record(op, {"valid_to": end_moment(stop)})

    def _record(self, first: int, entry: Json) -> None:
        """Record what a row gives with its operations, from number `first` on, where it has any."""
        if len(self.index.o_tx) > first:
            self.work.record(first, entry)
            self.work.record_call(first)

    def body(self, ver: int) -> Json:
        """What is known of the body of a version, its content at least."""
        content = self.memory.contents.get(ver)
        return self.act.body(ver) if content is None else {"content": content}

    def bear(self) -> None:
        """Add the run to the index."""
        if self.run.said:
            self.run.add(self.work.tx, self.work.author)

    def end(self) -> None:
        """Add the run to the index, and leave in the memory what holds after the transaction."""
        self.bear()
        self.memory.left = _lengths(self.index)
        if isinstance(self.index, WorkingSet):
            for ent in self.index.changed_things():
                if ent in self.tails and not self.index.wrote_last(ent, self.tails[ent][0]):
                    del self.tails[ent]

    def _is_new(self, name: str) -> bool:
        return name not in self.index.ids and name not in self.run.fresh

    def _prepare(self, name: str, columns: Sequence[str], numbers: Sequence[int]) -> None:
        """Read at once what rows name, where the transaction reads from the rows of a ledger."""
        index, table = self.index, self.memory.tables[name]
        if not isinstance(index, WorkingSet):
            return
        names = {id for column in columns for id in table.of(column, numbers) or () if id is not None}
        index.prepare_ids(names)
        if name != "versions" or not self.tailed:
            return
        ents = [ent for id in names if (ent := index.ids.get(id, -1)) >= 0]
        index.prepare_rows(self.tails[ent][0] for ent in ents if ent in self.tails)
        self.sole.update(index.sole_rows(ent for ent in ents if ent not in self.tails))

    # ------------------------------------------------------------------ versions

    def versions(self, numbers: Sequence[int]) -> None:
        """Write rows of versions, in order: by column as far as they only go on from what was said, and those that do more row by row."""
        self._prepare("versions", ("node_id",), numbers)
        at, end = 0, len(numbers)
        by_column = self.tailed and len(self.memory.tables["versions"]) >= _MANY
        window, singly = end, _WORTH
        while at < end:
            if by_column and end - at >= _WORTH:
                part = numbers[at : at + window]
                done = self._by_column(part)
                at += done
                if done == len(part):
                    window *= 2
                    continue
                window, singly = max(2 * done, _WORTH), _WORTH if done > _WORTH else 2 * singly
            upto = min(at + singly, end) if by_column else end
            self._row_by_row(numbers[at:upto])
            at = upto

    def _row_by_row(self, numbers: Sequence[int]) -> None:
        if len(numbers) < _FEW:
            for self.number in numbers:
                self.version()
            return
        table = self.memory.tables["versions"]
        none = [None] * len(numbers)
        names, starts, stops, reasons = (
            table.of(name, numbers) or none for name in ("node_id", "valid_from", "valid_to", "reason")
        )
        said = told(table, numbers)
        salts, bodies, contents = self.work.salts(len(numbers)), self.work.bodies, self.memory.contents
        run, known, now, unsaid = self.run, self.index.ids, self.work.tx, self.work.why
        for self.number, name, start, stop, reason, content, written, salt, rest, first, later in zip(
            numbers, names, starts, stops, reasons, said.contents, said.written, salts, said.rests, said.first,
            said.later, strict=True,
        ):  # fmt: skip
            start, end = now if start is None else start, OPEN if stop is None else stop
            if not run.said:
                run.begin()
            ent = known.get(name, -1) if name not in run.fresh else run.fresh[name]
            if content is None or start >= end:
                self.version()
                continue
            if ent < 0:
                ent, number, verb = self._new(name), 1, "add_node"
            else:
                number, verb = self._next(ent, start, end, content), "revise"
            if ent < 0 or number == 0:
                self.version()
                continue
            why, why_length = unsaid if reason is None else self.work.reason(reason)
            bodies.append(
                b'{"content":%b,"salt":"%b"%b%b}'
                % (written, salt, rest, first if verb == "add_node" else later)
            )
            at = len(run.said)
            self._state(len(self.index.o_tx) + at, (start,), (stop,))
            run.said.append(
                (verb, name, why, why_length, ent, number, start, end, -len(bodies), len(bodies[-1]))
            )
            contents[run.first_ver + at] = content
            if self.tailed:
                self.tails[ent] = run.first_row + at, start, end, number

    def _by_column(self, numbers: Sequence[int]) -> int:
        """Write the first of some rows of versions, as many as only go on from what was said of nodes without a key. Returns how many those are."""
        self.bear()
        table, index, work, run = self.memory.tables["versions"], self.index, self.work, self.run
        run.begin()
        none: list[Any] = [None] * len(numbers)
        names, starts, stops, reasons = (
            table.of(name, numbers) or none for name in ("node_id", "valid_from", "valid_to", "reason")
        )
        ents, born = self._entities(names)
        if reasons is not none:
            del ents[next((at for at, reason in enumerate(reasons) if not _is_plain(reason)), len(ents)) :]
        contents, bodies = self._said(numbers[: len(ents)], {at for at, _ in born})
        del ents[len(bodies) :]
        if not ents:
            return 0
        given_stops = stops
        starts = [work.tx if start is None else start for start in starts[: len(ents)]]
        stops = [OPEN if stop is None else stop for stop in stops[: len(ents)]]
        found = numbered(ents, starts, stops, self._tail, run.first_row, work.mark.rows)
        if found is None:
            return 0
        count, first = len(found.numbers), run.first_row
        self._state(len(index.o_tx), starts[:count], given_stops)
        del bodies[count:]
        verbs = ["revise"] * count
        for at, birth in born:
            if at < count:
                run.bear(birth)
                verbs[at] = "add_node"
        for at, row in found.closed.items():
            fresh = row >= first
            before = contents[row - first] if fresh else self.body(index.r_ver[row]).get("content")
            if not same(before, contents[at]):
                run.turned.append(
                    (ents[at], starts[at], stops[row - first] if fresh else index.r_to[row], at)
                )
        run.closed = found.closed
        whys = [work.why if reason is None else work.reason(reason) for reason in reasons[:count]]
        place = -len(work.bodies) - 1
        work.bodies += bodies
        self.memory.contents.update(zip(range(run.first_ver, run.first_ver + count), contents, strict=False))
        self.tails.update(found.tails)
        run.add_columns(
            work.tx,
            work.author,
            verbs,
            names[:count],
            [why for why, _ in whys],
            [length for _, length in whys],
            found.ents,
            found.numbers,
            found.starts,
            found.stops,
            range(place, place - count, -1),
            list(map(len, bodies)),
        )
        return count

    def _said(self, numbers: Sequence[int], first: set[int]) -> tuple[list[Any], list[bytes]]:
        """The contents and the bodies of rows of versions, up to the first of which something is wrong; `first`: the places of first versions."""
        table = self.memory.tables["versions"]
        contents: list[Any] = []
        bodies: list[bytes] = []
        for at in range(0, len(numbers), _CHUNK):
            chunk = numbers[at : at + _CHUNK]
            said = told(table, chunk)
            ends = [
                begun if place in first else later
                for place, begun, later in zip(
                    range(at, at + len(chunk)), said.first, said.later, strict=True
                )
            ]
            salted = zip(said.written, self.work.salts(len(chunk)), said.rests, ends, strict=True)
            contents += said.contents
            bodies += [b'{"content":%b,"salt":"%b"%b%b}' % parts for parts in salted]
            if None in said.contents:
                stop = contents.index(None, at)
                return contents[:stop], bodies[:stop]
        return contents, bodies

    def _entities(self, names: Sequence[str]) -> tuple[list[int], list[tuple[int, Birth]]]:
        """The nodes that rows describe, up to the first that is to be made by itself, and each new one with its first row."""
        known = self.index.ids
        ents = [known.get(name, -1) for name in names]
        born: list[tuple[int, Birth]] = []
        fresh: dict[str, int] = {}
        at = -1
        with suppress(ValueError):
            while True:
                at = ents.index(-1, at + 1)
                ent = fresh.get(names[at])
                if ent is None:
                    birth = self._birth(names[at])
                    if birth is None:
                        break
                    ent = fresh[birth.name] = self.run.first_ent + len(born)
                    born.append((at, birth))
                ents[at] = ent
        return (ents[:at] if -1 in ents else ents), born

    def _birth(self, name: str) -> Birth | None:
        """What a new node is; None where it has a key, or something is wrong with it."""
        identity = self.memory.identities.get(name, {})
        if identity.get("key") is not None:
            return None
        try:
            kind = text_of("kind", identity.get("kind") or DEFAULT_KIND)
            scope = text_of("scope", identity.get("scope") or "", empty=True)
            return Birth(self.act.free_id(name), False, kind, scope)
        except GraphStoreError:
            return None

    def _tail(self, ent: int) -> Tail | None:
        """What a further version of a node goes on from; None where it does more."""
        if ent >= self.run.first_ent:
            return NEW
        tail = self.tails.get(ent) or self._first_tail(ent)
        return tail if tail and self._is_last(ent, tail[0]) else None

    def _is_last(self, ent: int, row: int) -> bool:
        """Whether a row that was said last of a node is still that, and believed last."""
        if isinstance(self.index, WorkingSet):
            return self.index.wrote_last(ent, row)
        now = self.index.now_of[ent]
        return bool(now) and now[-1] == row == self.index.rows_of[ent][-1]

    def _new(self, name: str) -> int:
        """The number of a new node; -1 when it has a key, or something is wrong with it."""
        birth = self._birth(name)
        return -1 if birth is None else self.run.bear(birth)

    def _next(self, ent: int, start: Instant, end: Instant, content: Json) -> int:
        """The number of a version that takes nothing of what was said of a node, or the place of its last row; 0 where it does more."""
        index, run = self.index, self.run
        tail = self.tails.get(ent) or self._first_tail(ent)
        if tail is None:
            return 0
        row, begun, until, number = tail
        if row < run.first_row and not self._is_last(ent, row):
            return 0
        if start >= until:
            return number + 1
        if start != begun or end < until:
            return 0
        run.closed[len(run.said)] = row
        ver = index.r_ver[row] if row < run.first_row else run.first_ver + row - run.first_row
        if not same(self.body(ver).get("content"), content):
            run.turned.append((ent, begun, until, len(run.said)))
        return number + (row < self.work.mark.rows)  # what is not stored leaves its number

    def _first_tail(self, ent: int) -> tuple[int, Instant, Instant, int] | None:
        """What `tails` has of a node without a key of which one version was said, and nothing else that a further one depends on."""
        index = self.index
        if isinstance(index, WorkingSet):
            if not self.tailed or ent not in self.sole:
                return None
            row = self.sole[ent]
            return row, index.r_from[row], index.r_to[row], index.v_num[index.r_ver[row]]
        if (
            not self.tailed
            or ent >= self.run.first_ent
            or len(index.rows_of[ent]) != 1
            or len(index.versions_of[ent]) > 1
            or not index.now_of[ent]
            or index.key[ent] is not None
            or index.is_event[ent]
            or ent in index.ghosts
            or ent in index.gone
        ):
            return None
        row = index.now_of[ent][0]
        return row, index.r_from[row], index.r_to[row], index.v_num[index.r_ver[row]]

    def version(self) -> None:
        """Write a row of a version by itself."""
        index, work, row = self.index, self.work, self.row("versions")
        name, given = row["node_id"], row.get
        trigger, tags = given("trigger"), given("tags")
        body = description(
            given("text"), None if tags is None else listed(tags), trigger or "initial", given("source")
        )
        body["content"] = object_of(given("content"))
        start, stop = given("valid_from"), given("valid_to")
        during = period(work.tx if start is None else start, OPEN if stop is None else stop)
        self.bear()
        ent = index.ids.get(name, -1)
        if ent < 0:
            self._first(name, during, stop, body, given("reason"))
            return
        if trigger is None:
            body["trigger"] = "user_feedback"
        if index.is_event[ent]:
            raise ConflictError(f"{name!r} is an event already. Choose another id for the node.")
        if self.ranked:
            self.act.trust(row.get("source")).guard(ent, [during])
        op = work.op("revise", name, given("reason"))
        self._state(op, during[:1], (stop,))
        self.act.turn(ent, [during], body["content"], op, self.body)
        last = work.describe(ent, [during], body, op)
        ver = index.r_ver[last]
        self.memory.contents[ver] = body["content"]
        if index.key[ent] is not None:
            refuse_taken_slot(index, ent, op)
        elif self.tailed and isinstance(index, WorkingSet):
            if during[1] == OPEN:  # nothing was said of later times
                self.tails[ent] = last, during[0], OPEN, index.v_num[ver]
            else:
                self.tails.pop(ent, None)
        elif self.tailed:
            until = index.said(ent)[-1][1]
            self.tails[ent] = last, during[0] if until == during[1] else _NEVER, until, index.v_num[ver]

    def _first(self, name: str, during: Period, stop: Instant | None, body: Row, reason: str | None) -> None:
        """The first version of a node; one with a key fills its slot."""
        index, work = self.index, self.work
        identity = self.memory.identities.get(name, {})
        key = identity.get("key")
        kind = text_of("kind", identity.get("kind") or DEFAULT_KIND)
        slot = None if key is None else slot_name(key)
        scope = text_of("scope", identity.get("scope") or "", empty=True)
        filling = None
        if slot is not None:
            filling = Filling(self.act, Slot(kind, slot, scope), during[0], stop, source=body.get("source"))
            filling.refuse_untrusted()
            during = filling.during
        op = work.op("add_node", self.act.free_id(name), reason)
        self._state(op, during[:1], (stop,))
        ent = index.add_entity(name, False, kind, slot, scope, work.tx)
        work.describe(ent, [during], body, op)
        if filling is not None:
            filling.close(ent, None, op)
            filling.follow(ent, op)

    def unversion(self, during: Period) -> None:
        """Take back what a row of a version said, over a part of its period."""
        self.bear()
        row = self.row("versions")
        reason = text_of("reason", row.get("reason") or "no longer in the source")
        start, stop = map(moment, during)
        first = len(self.index.o_tx)
        verbs.retract(self.act, row["node_id"], start, stop, reason)
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
        if metadata:  # checked already
            body["metadata"] = {**metadata, **body.get("metadata", {})}
        related = row.get("related_to")
        abouts = () if related is None else tuple(ids("related_to", related))
        id, at = row.get("id"), row.get("occurred_at")
        report = Report(kind, body, id, at, abouts)
        if abouts or may_repeat(report) or (id is not None and not self._is_new(id)):
            self.bear()
            first = len(self.index.o_tx)
            self.recording.write(report)
            entry: Json = {} if id is None else {"id": True}
            self._record(first, entry | known_ids(self.act, {"related_to": abouts}, "related_to"))
            return
        at = self.work.tx if at is None else at
        run, work = self.run, self.work
        if not run.said:
            run.begin()
        if id is not None:
            name = self.act.free_id(id)
            work.record(len(self.index.o_tx) + len(run.said), {"id": True})
        else:
            while (name := self.recording.new_id(at)) in run.fresh:
                pass
        during = period(at, OPEN)
        ent = run.bear(Birth(name, True, kind, ""))
        self.index.note_print(ent, body)
        run.said.append(("record_event", name, *work.why, ent, 1, *during, *work.body(body)))

    def links(self, numbers: Sequence[int]) -> None:
        """Write rows of links, in order: those that are plainly new together."""
        self.bear()
        self._prepare("links", ("source", "target"), numbers)
        table, known, fresh = self.memory.tables["links"], self.index.ids, self.fresh_links
        none: list[Any] = [None] * len(numbers)
        columns = (
            table.of(name, numbers) or none
            for name in ("source", "target", "valid_from", "valid_to", "tx_to")
        )
        alikes = list(self._alike(table, numbers))
        strengths, bodies, names = linked(table, numbers, self.work.salts)
        if isinstance(self.index, WorkingSet):
            self._prepare_links(self.index, numbers, alikes, names)
        for self.number, source, target, start, stop, ended, alike, strength, body, id in zip(
            numbers, *columns, alikes, strengths, bodies, names, strict=True
        ):
            one, other = known.get(source, -1), known.get(target, -1)
            new = None
            if alike is not None and one >= 0 and other >= 0 and body is not None and strength >= 0:
                new = fresh.say(one, alike, other, start, OPEN if stop is None else stop, strength, body, id)
            if new is None:
                fresh.bear()
                new = self.link()
            if ended is not None:
                name, begun = new
                self.memory.opened[self.number] = name, moment(begun if start is None else start)
        fresh.bear()

    def _prepare_links(
        self,
        index: WorkingSet,
        numbers: Sequence[int],
        alikes: list[Attributes | None],
        names: Sequence[str | None],
    ) -> None:
        """Read at once which links say already what rows of links say."""
        table, ids = self.memory.tables["links"], index.ids
        pairs = zip(table.of("source", numbers) or (), table.of("target", numbers) or (), alikes, strict=True)
        ends = set()
        for one, other, alike in pairs:
            source, target = ids.get(one, -1), ids.get(other, -1)
            if alike is not None and source >= 0 and target >= 0:
                ends.add((target, alike.name, source) if alike.turned else (source, alike.name, target))
                if alike.both:
                    ends.add((source, alike.name, target) if alike.turned else (target, alike.name, source))
        index.prepare_links((name for name in names if name is not None), ends)

    def _alike(self, table: Table, numbers: Sequence[int]) -> Iterator[Attributes | None]:
        """Of each row what its kind, its confidence and its maker say; None where that is wrong, or the kind does something to its ends."""
        none: list[Any] = [None] * len(numbers)
        kinds, confidences, makers = (
            table.of(name, numbers) or none for name in ("kind", "confidence", "created_by")
        )
        known = self.memory.kinds
        for spoken in zip(kinds, confidences, makers, strict=True):
            try:
                if spoken not in known:
                    known[spoken] = self._attributes(*spoken)
                yield known[spoken]
            except (GraphStoreError, TypeError):  # the row by itself says what is wrong
                yield None

    def _attributes(self, name: Any, confidence: Any, maker: Any) -> Attributes | None:
        vocabulary, maker = self.act.core.vocabulary, "user" if maker is None else maker
        said = vocabulary.sentence("1", name, "2", "explicit" if confidence is None else confidence)
        kind = said.kind
        refuse_creator(kind, text_of("created_by", maker))
        if kind.name in ("supersedes", "corrects"):
            return None
        both = kind.symmetric or kind.causal
        return Attributes(kind, kind.name, both, said.source == "2", said.confidence == "inferred", maker)

    def link(self) -> tuple[str, Instant]:
        """Write a row of a link by itself. Returns its id, and when it begins."""
        index, row = self.index, self.row("links")
        fields = {name: value for name in _LINK_FIELDS if (value := row.get(name)) is not None}
        start, stop = row.get("valid_from"), row.get("valid_to")
        if "metadata" in fields:
            fields["metadata"] = object_of(fields["metadata"])
        fields["exactly_over"] = start, OPEN if stop is None else stop
        first = len(index.o_tx)
        number = verbs.link_row(self.act, row["source"], row["kind"], row["target"], **fields)
        self._record(first, bounds(start, None if stop is None or stop >= OPEN else stop))
        return index.l_name[index.k_link[number]], index.k_from[number]

    def unlink(self) -> None:
        """Take back what a row of a link said."""
        self.bear()
        stop = self.row("links").get("valid_to")
        link, begun = self.memory.opened.pop(self.number)
        first = len(self.index.o_tx)
        verbs.unlink(self.act, link, begun, None if stop is None else moment(stop), None)
        self._record(first, bounds(instant(begun), stop))


def _lengths(index: WorkingSet) -> tuple[int, int]:
    return len(index.v_ent), len(index.r_ent)


def _is_plain(reason: Any) -> bool:
    return reason is None or (type(reason) is str and reason.isascii())


def _steps(tables: dict[str, Table]) -> Iterator[tuple[Instant, list[Step]]]:
    """The steps at each instant, in order: first what is taken back, then events, versions, links."""
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


def _leave_said_again(table: Table, retracted: dict[Instant, list[tuple[int, Period]]]) -> None:
    """Leave of what is to be retracted at an instant what is not written again there."""
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


def _one_step(tables: dict[str, Table]) -> Iterator[tuple[None, list[Step]]]:
    every = ((_EVENTS, "events"), (_VERSIONS, "versions"), (_LINKS, "links"))
    yield None, [(what, name, range(len(tables[name])), []) for what, name in every if len(tables[name])]
