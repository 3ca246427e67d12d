"""Writes the rows of the ledger, which arrange the chain for reading (`sql/schema.sql`). Most rows follow from the heads alone. Fields and words
(`WordRows`) are read from the bodies.

A head lists what a transaction opened and closed, and by which operation. Rows are numbered from 0 in the order of the heads, so a head names the rows that
it closes by number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from orjson import loads

from graphstore.ledger.branch_rows import (
    NUMBERED,
    SPAN,
    TRUNK,
    LineNumbers,
    add_branch,
    all_branches,
    line_named,
)
from graphstore.ledger.chain import DESCRIBING, FORGETTING, FORGOTTEN_THERE, UNDO, dumps
from graphstore.ledger.deep_rows import DEEP_TABLES, MOST, follow_links, follow_periods
from graphstore.ledger.field_rows import FIELD_TABLES, SCOPE_TABLE, add_fields, add_periods, drop_fields
from graphstore.ledger.standings import StandingWriter
from graphstore.ledger.word_rows import WORD_TABLES, Text, WordRows
from graphstore.values.period import OPEN, Instant, instant, iso, recorded

Head = dict[str, Any]

_BRANCH_TABLES = ("line", "closed", "link_closed", "taken_closed", "absence_closed", "shaky_closed")
_NAMED = (*NUMBERED, "given_end", "forgotten", "undone", "covered", "alias", "absence", "shaky")
OF_BODIES = frozenset((*FIELD_TABLES, SCOPE_TABLE, *WORD_TABLES))
TABLES = (
    *(f"all_{name}" for name in _NAMED),
    *_BRANCH_TABLES,
    *DEEP_TABLES,
    *FIELD_TABLES,
    SCOPE_TABLE,
    *WORD_TABLES,
)
"""The tables of rows. All can be rebuilt from the chain; those of `OF_BODIES` need the bodies too."""
_VERSION = "SELECT number FROM version WHERE entity = ? AND ordinal = ? ORDER BY number DESC LIMIT 1"
_LAST_OCCURRENCE = (
    "SELECT first, last, ordinal FROM occurrence WHERE event = ? ORDER BY tx DESC, number DESC LIMIT 1"
)
_TARGET = "SELECT target FROM link WHERE number = ?"
_CLAIM = "SELECT number FROM claim WHERE link = ? AND ordinal = ? ORDER BY number DESC LIMIT 1"

_OPERATION = "SELECT tx, verb, subject, author, body FROM operation WHERE number = ?"
_BELIEVED = "SELECT p.number FROM entity e CROSS JOIN period p ON p.entity = e.number WHERE e.id = ? AND p.closed_by IS NULL ORDER BY p.number"
_FORGOTTEN_SINCE = "SELECT tx, number FROM operation WHERE tx > ? AND verb IN (SELECT value FROM json_each(?)) AND subject <> '' ORDER BY tx, number"
_ENTITIES = "SELECT e.id, e.number FROM json_each(?) s CROSS JOIN entity e WHERE e.id = s.value"
_NEXT = f"SELECT {', '.join(NUMBERED)} FROM next_number"
_THINGS = """
SELECT e.number, e.is_event, e.kind, e.key, EXISTS (SELECT 1 FROM all_forgotten f WHERE f.entity = e.number)
FROM json_each(?) s CROSS JOIN all_entity e WHERE e.number = s.value
"""
_ADD_ALIAS = "INSERT INTO all_alias VALUES (?, ?, ?, ?, ?) ON CONFLICT (line, branch, entity, ordinal) DO UPDATE SET version = excluded.version"
_BODIES = "SELECT number, data FROM body WHERE number >= ? AND number < ?"
_NAMING = {"versions": (0,), "rows": (0,), "turns": (0,), "gaps": (0,), "links": (1, 3)}
"""Lists of a head, and the places in their entries that are ids of entities."""
Note = tuple[Head, int, LineNumbers, Mapping[str, int]]
Thing = Sequence[Any]
"""For a thing: 1 if it is an event, its kind, its key, and 1 if it is forgotten."""


class KnownNumbers(NamedTuple):
    """Holds row numbers of what heads name by id or ordinal, and facts about the described things, so that these need not be read."""

    entities: dict[str, int]  # by id
    things: dict[int, Thing]
    versions: dict[tuple[int, int], int]  # by entity and ordinal
    links: dict[str, int]  # by id
    claims: dict[tuple[int, int], int]  # by link and ordinal
    targets: dict[int, int]  # of new links


def clear(connection: sqlite3.Connection) -> None:
    """Delete all rows."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")


def close_rows(
    connection: sqlite3.Connection, line: LineNumbers, table: str, rows: Sequence[tuple[int, Instant, int]]
) -> None:
    """Close rows of `period` or `link_period` on a line. Each of `rows` has its number, the tx, and the closing operation."""
    if own := [row for row in rows if line.is_own(row[0])]:
        connection.executemany(f"UPDATE all_{table} SET tx_to = ?2, closed_by = ?3 WHERE number = ?1", own)
    if inherited := [(line.number, *row) for row in rows if not line.is_own(row[0])]:
        closed = "closed" if table == "period" else "link_closed"
        connection.executemany(f"INSERT INTO {closed} VALUES (?, ?, ?, ?)", inherited)


def close_taken(
    connection: sqlite3.Connection, line: LineNumbers, tx: Instant, condition: str, *values: object
) -> None:
    """Close the rows of `taken` that match a condition on a line: from `tx` on they do not count."""
    rows = line.reader(connection).execute(f"SELECT number FROM taken WHERE {condition}", values).fetchall()
    for (number,) in rows:
        if line.is_own(number):
            connection.execute("UPDATE all_taken SET tx_to = ? WHERE number = ?", (tx, number))
        else:
            connection.execute("INSERT INTO taken_closed VALUES (?, ?, ?)", (line.number, number, tx))


def _forgetting(
    connection: sqlite3.Connection, operation: int, words: WordRows | None, branch: LineNumbers
) -> RowWriter:
    """Return a writer that forgets on a branch what an operation on the trunk forgot."""
    [(tx, verb, id, author, body)] = connection.execute(_OPERATION, (operation,)).fetchall()
    believed = branch.reader(connection).execute(_BELIEVED, (id,)).fetchall()
    head = {
        "tx": iso(tx),
        "ops": [(verb, id, body, author)],
        "closed": [(number % SPAN, 0) for (number,) in believed],
    }
    return RowWriter(connection, head, 0, words, line=branch)


class RowWriter:
    """Writes the rows of one line of the chain. `first_body` is the number of that line's first body."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        head: Head,
        first_body: int,
        words: WordRows | None,
        *,
        line: LineNumbers | None = None,
        before: RowWriter | None = None,
        bodies: Sequence[bytes] | None = None,
        known: KnownNumbers | None = None,
    ) -> None:
        """Prepare to write the rows of `head`.

        Args:
            before: the writer of the previous line of the chain, if nothing was written since.
            bodies: the bodies of the line; None to read them.
            known: known row numbers; None if there are none.
        """
        self._connection = connection
        self._words = words
        self._head = head
        self._first_body = first_body
        self._tx: Instant = instant(head["tx"])
        self.line = line or line_named(connection, head.get("branch"))
        self._reader = self.line.reader(connection)
        if before is not None and before.line is not self.line:
            before = None
        self._next: dict[str, int]  # next number of each table
        if before is None:
            self._next = dict(zip(NUMBERED, self._reader.execute(_NEXT).fetchone(), strict=True))
        else:
            self._next = before._next
        self.first_operation, self._first_entity = self._next["operation"], self._next["entity"]
        if known is None:
            goes_on = before is not None and before._head.get("more")
            known = before._known if before is not None and goes_on else KnownNumbers({}, {}, {}, {}, {}, {})
        self._known: KnownNumbers = known
        self._bodies = bodies
        # the versions that this line records, each with its entity and the place of its body
        self._described: list[tuple[int, int, int]] = []
        self._changed: dict[str, list[int]] = {"period": [], "link_period": []}  # rows opened or closed
        self._first_version: int | None = None  # of the versions that this line adds
        self._first_claim: int | None = None

    def write(self) -> list[Note]:
        """Write the rows. Return the arguments for `StandingWriter.note`: one for this line, and one for each branch that forgets the same things."""
        head = self._head
        for verb, name, *fork in head.get("branches", ()) if self.line is TRUNK else ():
            if verb == "branch":
                self._connection.execute("DELETE FROM all_alias WHERE line = 0 AND branch = ?", (name,))
                self._add_branch(name, instant(fork[0]), fork[1] if len(fork) > 1 else None)
        self._operations(head.get("ops", ()))
        self._add_covered(head.get("covers", {}))
        if "entities" in head:
            self._add_entities(head["entities"])
        self._read_entities()
        if "versions" in head:
            self._add_versions(head["versions"])
        self._add_aliases(head.get("aliases", ()))
        self._close("period", head.get("closed", ()))
        if "rows" in head:
            self._open_periods(head["rows"])
        self._add_unseen(head)
        self._add_settings(head.get("settings", ()))
        if "kinds" in head:
            self._add_kinds(head["kinds"])
        if "links" in head:
            self._add_links(head["links"])
        if "claims" in head:
            self._add_claims(head["claims"])
        self._close("link_period", head.get("link_closed", ()))
        if "link_rows" in head:
            self._open_link_periods(head["link_rows"])
        self._add_unseen_of_links(head)
        if self.line is TRUNK:
            follow_periods(self._connection, self._changed["period"])
            follow_links(self._connection, self._changed["link_period"])
        if self._words is not None:
            self._add_from_bodies(self._words)
        notes: list[Note] = [(head, self.first_operation, self.line, self._known.entities)]
        for number, (verb, subject, *_) in enumerate(head.get("ops", ()), self.first_operation):
            if verb in FORGETTING and subject and self.line is TRUNK:
                for branch in all_branches(self._connection):
                    notes += _forgetting(self._connection, number, self._words, branch).write()
        return notes

    def _add_branch(self, name: str, fork: Instant, parent: str | None) -> None:
        """Add a branch. It also forgets what the trunk has forgotten since the fork."""
        add_branch(self._connection, name, fork, parent)
        since = self._connection.execute(
            _FORGOTTEN_SINCE, (fork, dumps(list(FORGETTING)).decode())
        ).fetchall()
        for tx, operations in groupby(since, key=itemgetter(0)):
            standings = StandingWriter(self._connection)
            for _, operation in operations:
                branch = line_named(self._connection, name)
                for note in _forgetting(self._connection, operation, self._words, branch).write():
                    standings.note(*note)
            standings.write(tx)

    def _add_from_bodies(self, words: WordRows) -> None:
        """Write the words and fields of the versions that this line describes."""
        if self._described:
            things, bodies = self._described_things(), self._read_bodies()
            texts, fields = [], []
            for version, entity, at in self._described:
                is_event, kind, key, is_forgotten = things[entity]
                body = None if is_forgotten else loads(bodies[at] or b"null") or {}
                texts.append(Text(version, is_event, kind, key, body))
                if body is not None:
                    fields.append((version, entity, kind if is_event else None, body))
            words.add(self._connection, texts)
            add_fields(self._connection, fields)
        elif "settings" in self._head and self.line is TRUNK:
            words.refresh(self._connection)
        if not self._head.get("more"):
            words.seal(self._connection)

    def _described_things(self) -> Mapping[int, Thing]:
        """Return the things that this line describes, by number."""
        missing = {entity for _, entity, _ in self._described if entity not in self._known.things}
        if missing:
            for number, *thing in self._connection.execute(_THINGS, (dumps([*missing]).decode(),)):
                self._known.things[number] = thing
        return self._known.things

    def _read_bodies(self) -> Sequence[bytes | None]:
        """Return the bodies of the line; None for a removed one."""
        if self._bodies is not None:
            return self._bodies
        count = max(at for _, _, at in self._described) + 1
        found = dict(self._connection.execute(_BODIES, (self._first_body, self._first_body + count)))
        return [found.get(number) for number in range(self._first_body, self._first_body + count)]

    # ------------------------------------------------------------------ numbers

    def _numbered(self, table: str, rows: Iterable[Any]) -> Iterable[tuple[int, Any]]:
        """Return new rows of a table, each with its number."""
        return enumerate(rows, self._next[table])

    def _body(self, at: int | None) -> int | None:
        return None if at is None else self._first_body + at

    def _operation(self, at: int) -> int:
        return self.first_operation + at

    def _read_entities(self) -> None:
        """Read the numbers of the entities that the head names, unless there is only one."""
        named = {
            row[at] for name, places in _NAMING.items() for row in self._head.get(name, ()) for at in places
        }
        if len(missing := named.difference(self._known.entities)) > 1:
            self._known.entities.update(self._reader.execute(_ENTITIES, (dumps([*missing]).decode(),)))

    def _entity(self, id: str) -> int:
        return self._found(self._known.entities, id, "SELECT number FROM entity WHERE id = ?", (id,))

    def _link(self, id: str) -> int:
        return self._found(self._known.links, id, "SELECT number FROM link WHERE id = ?", (id,))

    def _version(self, entity: int, ordinal: int) -> int:
        return self._found(self._known.versions, (entity, ordinal), _VERSION, (entity, ordinal))

    def _claim(self, link: int, ordinal: int) -> int:
        return self._found(self._known.claims, (link, ordinal), _CLAIM, (link, ordinal))

    def _found(self, known: dict[Any, int], key: Any, statement: str, values: Sequence[Any]) -> int:
        number = known.get(key)
        if number is None:
            number = known[key] = int(self._reader.execute(statement, values).fetchone()[0])
        return number

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO all_{table} VALUES ({marks})", rows)
            if table in self._next:
                self._next[table] = rows[-1][0] + 1

    # ------------------------------------------------------------------ things

    def _operations(self, operations: Sequence[Sequence[Any]]) -> None:
        author, why = self._head.get("author"), self._head.get("why")
        elsewhere = {at: instant(tx) for at, tx in self._head.get("recorded", {}).items()}
        rows = []
        for number, (verb, subject, *more) in enumerate(operations, self.first_operation):
            body = more[0] if more else why
            by = more[1] if len(more) > 1 else author
            recorded_at = (
                elsewhere.get(str(number - self.first_operation), elsewhere.get("*")) if elsewhere else None
            )
            rows.append((number, self._tx, verb, subject, by, self._body(body), recorded_at))
        self._insert("operation", rows)
        args = self._head.get("args", {})
        self._insert("given_end", [
            (self._operation(int(at)),) for at, entry in args.items()
            if at != "*" and "valid_to" in entry and operations[int(at)][0] == "add_node"
        ])  # fmt: skip
        forgotten: list[int] = []
        for number, _, verb, subject, _, body, _ in rows:
            if verb == UNDO:
                self._connection.execute("INSERT INTO all_undone VALUES (?, ?)", (instant(subject), number))
            elif verb in FORGETTING and subject:
                forgotten += self._forget(subject, FORGETTING[verb], number, body)
            elif verb in FORGOTTEN_THERE:
                forgotten += self._forget_there(subject, FORGOTTEN_THERE[verb], number)
        if self._words is not None and forgotten:
            self._words.drop(self._connection, forgotten)

    def _add_covered(self, covers: Mapping[str, Iterable[Sequence[int]]]) -> None:
        """Record which falls are covered by rechecks that a merge brought. Each range has the operations `after` and `upto`, by place."""
        rows = [
            (
                self._operation(int(at)),
                -1 if after < 0 else self.line.row("operation", after),
                self.line.row("operation", upto),
            )
            for at, ranges in covers.items()
            for after, upto in ranges
        ]
        self._insert("covered", rows)

    def _forget(self, id: str, word: str, operation: int, body: int | None) -> list[int]:
        """Record that an operation with this body forgot an entity. Return a list with its number; an empty one if this line does not have it."""
        found = self._reader.execute("SELECT number FROM entity WHERE id = ?", (id,)).fetchall()
        for (entity,) in found:
            self._connection.execute(
                "DELETE FROM all_forgotten WHERE entity = ? AND operation / ? = ?",
                (entity, SPAN, self.line.number),
            )
            self._insert("forgotten", [(entity, operation, word)])
            drop_fields(self._connection, entity, body)
        return [entity for (entity,) in found]

    def _forget_there(self, id: str, word: str, operation: int) -> list[int]:
        """Record that another store forgot an entity. Return a list with its number if it is this line's alone; what the parent has of it stays."""
        found = self._reader.execute("SELECT number FROM entity WHERE id = ?", (id,)).fetchall()
        self._insert("forgotten", [(entity, operation, word) for (entity,) in found])
        own = [entity for (entity,) in found if self.line.is_own(entity)]
        for entity in own:
            drop_fields(self._connection, entity, None)
        return own

    def _add_entities(self, things: Iterable[Sequence[Any]]) -> None:
        rows = []
        for number, (id, kind, *slot) in self._numbered("entity", things):
            key, scope = slot or (None, "")  # an event has only an id and a type
            rows.append((number, id, not slot, kind, key, scope, self._tx, 0))
            self._known.entities[id], self._known.things[number] = number, (not slot, kind, key, False)
        self._insert("entity", rows)

    def _add_versions(self, versions: Iterable[Sequence[Any]]) -> None:
        rows, by = [], self._recorded_by("rows")
        for number, (id, ordinal, body) in self._numbered("version", versions):
            entity = self._entity(id)
            rows.append((number, entity, ordinal, self._body(body), by.get((id, ordinal))))
            self._known.versions[entity, ordinal] = number
            self._described.append((number, entity, body))
        self._insert("version", rows)
        self._first_version = rows[0][0] if rows else None

    def _add_aliases(self, aliases: Iterable[Sequence[Any]]) -> None:
        rows = []
        for branch, there, id, here in aliases:
            entity = self._entity(id)
            rows.append((self.line.number, branch, entity, there, self._version(entity, here)))
        if rows:
            self._connection.executemany(_ADD_ALIAS, rows)

    def _close(self, table: str, closed: Iterable[Sequence[int]]) -> None:
        rows = [(self.line.row(table, place), self._tx, self._operation(by)) for place, by in closed]
        if rows:
            close_rows(self._connection, self.line, table, rows)
            self._changed[table] += [number for number, *_ in rows]

    def _open_periods(self, periods: Iterable[Sequence[Any]]) -> None:
        rows, earlier, described = [], [], []
        for number, (id, ordinal, start, stop, by) in self._numbered("period", periods):
            entity = self._entity(id)
            version = self._version(entity, ordinal)
            rows.append((number, entity, version, *self._period(start, stop), *self._opened(by)))
            if self._first_version is None or version < self._first_version:
                if self._known.things.get(entity, (True,))[0]:  # an event, or nothing is known of it
                    earlier.append(number)
                described.append((self._operation(by), version))
        self._insert("period", rows)
        is_many = len(rows) > MOST  # otherwise only existing entities can have become deep
        self._changed["period"] += [row[0] for row in rows if is_many or row[1] < self._first_entity]
        if earlier and self._words is not None:
            add_periods(self._connection, earlier)
        if "turns" not in self._head:
            self._note_descriptions(rows)
        self._set_operation("version", described)

    def _note_descriptions(self, rows: list[tuple[Any, ...]]) -> None:
        """Record new descriptions of a head by an older release, which does not state which of them changed the content."""
        verbs = [operation[0] for operation in self._head.get("ops", ())]
        seen = set()
        for _, entity, version, start, stop, _, _, by, _ in rows:
            is_first = version not in seen and (
                (self._first_version is not None and version >= self._first_version)
                or not self._is_recorded(version)
            )
            seen.add(version)
            if is_first and verbs[by - self.first_operation] in DESCRIBING:
                self._insert("changed", [(self._next["changed"], entity, start, stop, by, 0)])

    def _is_recorded(self, version: int) -> bool:
        found = self._reader.execute("SELECT operation FROM version WHERE number = ?", (version,))
        return found.fetchone()[0] is not None

    def _recorded_by(self, name: str) -> dict[tuple[str, int], int]:
        """Return the operation that first recorded each version or claim of which the head opens periods."""
        found: dict[tuple[str, int], int] = {}
        for id, ordinal, _, _, by in self._head.get(name, ()):
            found.setdefault((id, ordinal), self._operation(by))
        return found

    def _set_operation(self, table: str, rows: Iterable[tuple[int, int]]) -> None:
        """Set the operation that first recorded versions or claims, where it is missing."""
        if own := [row for row in rows if self.line.is_own(row[1])]:
            self._connection.executemany(
                f"UPDATE all_{table} SET operation = ? WHERE number = ? AND operation IS NULL", own
            )

    def _period(self, start: str, stop: str | None) -> tuple[Instant, Instant]:
        return recorded(start), OPEN if stop is None else recorded(stop)

    def _opened(self, by: int) -> tuple[Instant, Instant, int, None]:
        return self._tx, OPEN, self._operation(by), None

    def _add_unseen(self, head: Head) -> None:
        """Add what no period shows: occurrences, first descriptions, and what was opened and removed within this transaction."""
        if "seen" in head:
            totals: dict[int, tuple[Instant, Instant, int]] = {}
            rows = []
            for number, (id, told, by) in self._numbered("occurrence", head["seen"]):
                event, at = self._entity(id), recorded(told)
                earliest, latest, count = totals.get(event) or self._occurred(event)
                totals[event] = total = min(earliest, at), max(latest, at), count + 1
                rows.append((number, event, at, self._tx, self._operation(by), *total))
            self._insert("occurrence", rows)
        for id, ordinal, by in head.get("told", ()):
            self._connection.execute(
                "UPDATE all_version SET operation = ? WHERE number = ?",
                (self._operation(by), self._version(self._entity(id), ordinal)),
            )
        for id, ordinal, body, start, stop, by in head.get("said", ()):
            entity = self._entity(id)
            version = self._version(entity, ordinal) if body is None else self._unstored(entity, body, by)
            self._insert("told", [(self._next["told"], entity, *self._period(start, stop), version)])
        for table, name, certain in (("changed", "turns", (1,)), ("removed", "gaps", ())):
            rows = [
                (number, self._entity(id), *self._period(start, stop), self._operation(by), *certain)
                for number, (id, start, stop, by) in self._numbered(table, head.get(name, ()))
            ]
            self._insert(table, rows)

    def _occurred(self, event: int) -> tuple[Instant, Instant, int]:
        """Return the earliest and latest occurrence of an event so far, and their number."""
        found = self._reader.execute(_LAST_OCCURRENCE, (event,)).fetchone()
        return found or (OPEN, -OPEN, 0)

    def _unstored(self, entity: int, body: int, by: int) -> int:
        """Add a version that was recorded but not believed after its transaction. Return its number."""
        number = self._next["version"]
        self._insert("version", [(number, entity, 0, self._body(body), self._operation(by))])
        self._described.append((number, entity, body))
        self._first_version = number if self._first_version is None else self._first_version
        return number

    def _add_settings(self, settings: Iterable[dict[str, Any]]) -> None:
        pairs = [pair for setting in settings for pair in sorted(setting.items())]
        rows = [
            (number, self._tx, name, dumps(value).decode())
            for number, (name, value) in self._numbered("setting", pairs)
        ]
        self._insert("setting", rows)

    def _add_kinds(self, kinds: Iterable[dict[str, Any]]) -> None:
        rows = [(number, self._tx, dumps(kind).decode()) for number, kind in self._numbered("defined", kinds)]
        self._insert("defined", rows)

    # ------------------------------------------------------------------ links

    def _add_links(self, links: Iterable[Sequence[Any]]) -> None:
        rows = []
        for number, (id, source, kind, target) in self._numbered("link", links):
            entity = self._entity(target)
            rows.append((number, id, kind, self._entity(source), entity))
            self._known.links[id], self._known.targets[number] = number, entity
        self._insert("link", rows)

    def _add_claims(self, claims: Iterable[Sequence[Any]]) -> None:
        rows, recorded_by = [], self._recorded_by("link_rows")
        for number, (id, ordinal, strength, flags, by, body) in self._numbered("claim", claims):
            link, operation = self._link(id), recorded_by.get((id, ordinal))
            rows.append(
                (
                    number,
                    link,
                    ordinal,
                    strength or None,
                    flags & 1,
                    by,
                    self._body(body),
                    operation,
                    flags >> 1,
                )
            )
            self._known.claims[link, ordinal] = number
        self._first_claim = rows[0][0] if rows else None
        self._insert("claim", rows)

    def _open_link_periods(self, periods: Iterable[Sequence[Any]]) -> None:
        rows, described = [], []
        for number, (id, ordinal, start, stop, by) in self._numbered("link_period", periods):
            link = self._link(id)
            claim = self._claim(link, ordinal)
            rows.append((number, link, claim, *self._period(start, stop), *self._opened(by)))
            if self._first_claim is None or claim < self._first_claim:
                described.append((self._operation(by), claim))
        self._insert("link_period", rows)
        self._changed["link_period"] += [row[0] for row in rows]
        self._set_operation("claim", described)

    def _add_unseen_of_links(self, head: Head) -> None:
        """Add what no period of a link shows: who first recorded it, what came and went, and what supersessions removed."""
        for id, ordinal, by in head.get("link_told", ()):
            self._connection.execute(
                "UPDATE all_claim SET operation = ? WHERE number = ?",
                (self._operation(by), self._claim(self._link(id), ordinal)),
            )
        rows = [
            (number, self._link(id), *self._period(start, stop), self._operation(by))
            for number, (id, start, stop, by) in self._numbered("linked", head.get("linked", ()))
        ]
        self._insert("linked", rows)
        taken: list[tuple[Any, ...]] = []
        for id, pieces in sorted(head.get("took", {}).items()):  # in their order in the chain
            link = self._link(id)
            target = self._known.targets.get(link)
            if target is None:  # not a new link
                [(target,)] = self._reader.execute(_TARGET, (link,)).fetchall()
                close_taken(self._connection, self.line, self._tx, "entity = ? AND link = ?", target, link)
            taken += [(target, link, *self._piece(target, piece)) for piece in pieces]
        for id, pieces in head.get("not_kept", {}).items():
            entity, condition = (
                self._entity(id),
                "entity = ? AND version = ? AND valid_from = ? AND valid_to = ?",
            )
            for piece in pieces:
                found = self._piece(entity, piece)
                close_taken(self._connection, self.line, self._tx, condition, entity, *found)
        for id, pieces in sorted(head.get("kept", {}).items()):
            entity = self._entity(id)
            taken += [(entity, None, *self._piece(entity, piece)) for piece in pieces]
        first = self._next["taken"]
        self._insert("taken", [(number, *row, self._tx, OPEN) for number, row in enumerate(taken, first)])

    def _piece(self, entity: int, piece: Sequence[Any]) -> tuple[int, Instant, Instant]:
        """Return the version and period of a part that was taken from an entity; version -1 if it has none."""
        ordinal, start, stop = piece
        return (self._version(entity, ordinal) if ordinal else -1, *self._period(start, stop))
