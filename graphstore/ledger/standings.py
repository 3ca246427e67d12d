"""Writes how entities stand as rows: `absence` and `shaky` of `sql/schema.sql`.

At the end of each transaction the current standings over all valid time are computed, for every entity that it may have changed. Where they differ from the
open rows, these are closed at the transaction's tx and new ones are opened. So the rows are exact at every coordinate.

An entity that stands is shaky if a path of resting links leads from it to an invalidated entity, and no entity on the path was rechecked since. The numbers
of operations give the order. The code calls an invalidation a fall, and a recheck a look. It follows falls from a foundation to its dependants, the latest
fall first, so that it visits most entities once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from graphstore.ledger.branch_rows import TRUNK, LineNumbers
from graphstore.ledger.chain import FORGOTTEN_BY, UNDO, dumps
from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.deep_rows import follow_closed, follow_opened
from graphstore.ledger.spreading import KnownFalls, Spreading, TouchedEntities
from graphstore.ledger.standing_facts import ROW, Facts, Lookup, PeriodRow, fetching, resting_kinds
from graphstore.values.period import OPEN, Instant, instant
from graphstore.values.vocabulary import UPHOLDING

Head = dict[str, Any]
_CLOSED = f"SELECT {ROW} FROM json_each(?1) s CROSS JOIN period p WHERE p.number = s.value"
_CLOSED_LINK = "SELECT link FROM link_period WHERE number = ?"
_REPLACING = ("supersedes", "corrects")
_NO_NUMBERS: Mapping[str, int] = {}
_MOST_KEPT = 200_000  # entities whose falls are remembered after a transaction


class StandingWriter:
    """Collects what the lines of a transaction changed, and writes the standings at its end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._noted: dict[int, _LineChanges] = {}  # by number of the line of belief
        self._known = KnownFalls()  # of the trunk, after the previous transaction
        self._written_at: Instant | None = None
        self._is_again = False  # True if the same transaction has already written standings
        self.made_shaky: list[
            int
        ] = []  # numbers of the entities that the transaction made shaky, at any valid time

    def note(
        self, head: Head, first_operation: int, line: LineNumbers, entities: Mapping[str, int] = _NO_NUMBERS
    ) -> None:
        """Record the changes of a head whose rows were written on a line of belief.

        Args:
            first_operation: the number of its first operation; the others follow.
            entities: known numbers of entities, by id.
        """
        if (noted := self._noted.get(line.number)) is None:
            noted = self._noted[line.number] = _LineChanges(self.connection, line, first_operation)
        noted.note(head, entities)

    def write(self, tx: Instant) -> None:
        """Write the standings changed by all heads since the last call."""
        noted, self._noted = self._noted, {}
        self._is_again, self._written_at = tx == self._written_at, tx
        self.made_shaky = []
        for changes in noted.values():
            line, touched, heads, first = changes.line, changes.touched, changes.heads, changes.first
            if len(self._known.reached) > _MOST_KEPT or any(_takes_back(head) for head in heads):
                self._known = KnownFalls()
            if not (touched.fallen or touched.itself or touched.resting):
                continue
            facts = Facts(fetching(line.reader(self.connection)))
            known = self._known if line is TRUNK else KnownFalls()
            changed = ChangedParts(facts, heads, first, touched.fallen, changes.closed)
            if touched.fallen:
                absences = changed.absences(touched.fallen)
                self._write_rows(line, "absence", facts.absence, absences, tx)
                facts.absence.update(absences)
            if shaky := Spreading(facts, touched, first, changed, known).result():
                self._write_rows(line, "shaky", facts.shaky, shaky, tx)

    def _write_rows(
        self,
        line: LineNumbers,
        table: str,
        there: Lookup,
        wanted: Mapping[int, Iterable[tuple[Any, ...]]],
        tx: Instant,
    ) -> None:
        """Close the open rows of entities that are no longer wanted, and open new ones."""
        there.load(wanted)
        closed, opened = [], []
        for entity, rows in wanted.items():
            if (stored := there[entity]) != rows:
                closed += [(tx, entity, start) for start, *_ in set(stored).difference(rows)]
                opened += [
                    (entity, start, tx, line.number, stop, OPEN, *more)
                    for start, stop, *more in set(rows).difference(stored)
                ]
        if line is not TRUNK:
            closed = [row for row in sorted(closed) if not self._close_inherited(line, table, row)]
        if closed:  # the whole key is given: otherwise SQLite copies its page for each row
            self.connection.executemany(
                f"UPDATE all_{table} SET tx_to = ?1 WHERE entity = ?2 AND valid_from = ?3 AND line = {line.number} AND tx_from = "
                f"(SELECT max(tx_from) FROM all_{table} WHERE entity = ?2 AND valid_from = ?3 AND line = {line.number})",
                sorted(closed),
            )
            if line is TRUNK:
                follow_closed(self.connection, table, closed)
        if closed and self._is_again:  # rows that this transaction itself has opened never existed
            self.connection.executemany(
                f"DELETE FROM all_{table} WHERE entity = ?2 AND valid_from = ?3 AND line = {line.number} AND tx_from = ?1 AND tx_to = ?1",
                closed,
            )
        if opened:
            if table == "shaky":
                self.made_shaky += dict.fromkeys(row[0] for row in opened)
            marks = ", ".join("?" * len(opened[0]))
            self.connection.executemany(f"INSERT INTO all_{table} VALUES ({marks})", sorted(opened))
            if line is TRUNK:
                follow_opened(self.connection, table, opened)

    def _close_inherited(self, line: LineNumbers, table: str, row: tuple[Instant, int, Instant]) -> bool:
        """Close on a branch an open row that it inherited. Return False if the row is the branch's own."""
        tx, entity, start = row
        reader = line.reader(self.connection)
        [(since, by)] = reader.execute(
            f"SELECT tx_from, line FROM {table} WHERE entity = ? AND valid_from = ? AND tx_to = {OPEN}",
            (entity, start),
        ).fetchall()
        if by != line.number:
            self.connection.execute(
                f"INSERT INTO {table}_closed VALUES (?, ?, ?, ?, ?)", (line.number, entity, start, since, tx)
            )
        return bool(by != line.number)


def _takes_back(head: Head) -> bool:
    """Return True if a line changes the meaning of earlier ones, so that known falls are no longer valid."""
    if head.get("kinds"):
        return True
    return any(verb == UNDO or verb in FORGOTTEN_BY for verb, *_ in head.get("ops", ()))


class _LineChanges:
    """Collects the changes of a transaction on one line of belief. Its operations are numbered from `first` on."""

    def __init__(self, connection: sqlite3.Connection, line: LineNumbers, first: int) -> None:
        self._connection, self.line, self.first = line.reader(connection), line, first
        self.heads: list[Head] = []
        self.touched = TouchedEntities()
        self.closed: dict[int, list[PeriodRow]] = {}  # the closed periods, by entity
        self._new: set[str] = set()  # ids of entities added here that have no period yet
        self._entities = _NO_NUMBERS

    def note(self, head: Head, entities: Mapping[str, int]) -> None:
        """Record a head of the transaction. `entities`: known numbers of entities, by id."""
        self._entities = entities
        self.heads.append(_with_numbers(head, self.line))
        self._note(self.heads[-1], self._new, self.closed)

    def _note(self, head: Head, new: set[str], closed: dict[int, list[PeriodRow]]) -> None:
        """Record the entities whose standing a head may change."""
        found = self.touched
        ids = _changed_by_periods(head, new)
        for name in ("told", "said", "turns", "gaps"):
            ids.update(row[0] for row in head.get(name, ()))
        for verb, subject, *_ in head.get("ops", ()):
            if verb == "confirm":
                found.itself.update(self._numbers([subject]))
            elif verb in FORGOTTEN_BY:
                ids.add(subject)
            elif verb == UNDO:
                self._note_undone(instant(subject))
        found.fallen.update(self._numbers(ids))
        numbers = [row for row, _ in head.get("closed", ())]
        for entity, *row in self._connection.execute(_CLOSED, (dumps(numbers).decode(),)) if numbers else ():
            closed.setdefault(entity, []).append(PeriodRow._make(row))
        found.fallen.update(closed)
        made = {row[0] for row in head.get("links", ())}
        made.difference_update(row[0] for row in head.get("linked", ()))
        links = {row[0] for name in ("link_rows", "link_told", "linked") for row in head.get(name, ())}
        self._note_links("id", links - made)
        self._note_links("id", made, is_new=True)
        closings = head.get("link_closed", ())
        self._note_links("number", {link for row, _ in closings for link in self._one(_CLOSED_LINK, row)})
        for kind in head.get("kinds", ()):
            if kind.get("rests"):  # a redefined kind may now let one end rest on the other
                found.itself.update(self._one("SELECT source FROM link WHERE kind = ?", kind["name"]))

    def _numbers(self, ids: Iterable[str]) -> Iterator[int]:
        for id in ids:
            if (number := self._entities.get(id)) is not None:
                yield number
            else:
                yield from self._one("SELECT number FROM entity WHERE id = ?", id)

    def _one(self, statement: str, value: Any) -> list[int]:
        return [number for (number,) in self._connection.execute(statement, (value,))]

    def _note_links(self, column: str, links: Iterable[Any], *, is_new: bool = False) -> None:
        resting: Mapping[str, Any] | None = None
        if links := list(links):
            for number, kind, source, target in self._connection.execute(
                f"SELECT l.number, l.kind, l.source, l.target FROM json_each(?) s CROSS JOIN link l WHERE l.{column} = s.value",
                (orjson.dumps(links).decode(),),
            ).fetchall():
                if kind in _REPLACING:
                    (self.touched.fallen if kind == "supersedes" else self.touched.itself).add(target)
                    self.touched.itself.add(source)
                    continue
                if resting is None:
                    resting = resting_kinds(fetching(self._connection))
                if kind in resting:
                    entity = target if kind in UPHOLDING else source
                    if is_new:
                        self.touched.new_links.add(number)
                        self.touched.resting.add(entity)
                    else:
                        self.touched.itself.add(entity)

    def _note_undone(self, tx: Instant) -> None:
        """Record what an undone transaction changed."""
        for (raw,) in self._connection.execute("SELECT head FROM chain WHERE tx = ?", (tx,)).fetchall():
            head = _with_numbers(orjson.loads(raw), self.line)
            self._note(head, set(), {})
            self.touched.fallen.update(self._numbers(thing[0] for thing in head.get("entities", ())))


def _changed_by_periods(head: Head, new: set[str]) -> set[str]:
    """Return the entities of a head's periods, without new ones with a single open-ended period: these stand from their start on until a link
    changes that."""
    found = set[str]()
    new.update(thing[0] for thing in head.get("entities", ()))
    for id, _, _, stop, _ in head.get("rows", ()):
        if id not in new or stop is not None:
            found.add(id)
        new.discard(id)
    return found


def _with_numbers(head: Head, line: LineNumbers) -> Head:
    """Return a head with the numbers of the rows that it closed instead of their places on the line."""
    if line is TRUNK:
        return head
    numbers = {
        name: [(line.row(table, place), by) for place, by in head[name]]
        for name, table in (("closed", "period"), ("link_closed", "link_period"))
        if name in head
    }
    return {**head, **numbers}
