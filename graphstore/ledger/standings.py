"""Writes how entities stand as rows: `absence` and `shaky` of `sql/schema.sql`.

At the end of each transaction the standings are worked out for now, over all valid time, of whatever the transaction may have changed. Where they
differ from the rows that are open, those are closed at the transaction's tx and others are opened. So the rows are exact at every coordinate.

An entity that stands is shaky where a path of links, each of which says that one end rests on the other, leads to an entity that was invalidated, and no entity on
the path was rechecked since. The numbers of operations say what came first. The code calls an invalidation a fall, and a recheck a look. It follows falls from the
foundation to its dependants, the latest fall first, so that it visits most entities once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from graphstore.core.journal.line import FORGETTING, UNDO
from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.spreading import Known, Spreading, Touched
from graphstore.ledger.standing_facts import Facts, Lookup
from graphstore.values.period import OPEN, Instant, instant
from graphstore.values.vocabulary import UPHOLDING

Head = dict[str, Any]
_REPLACING = ("supersedes", "corrects")
_MOST_KEPT = 200_000  # entities of which something is known after a transaction


class StandingWriter:
    """Collects what the lines of a transaction changed, and writes the standings when it is whole."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._touched = Touched(set(), set(), set(), set())
        self._first_operation: int | None = None
        self._heads: list[Head] = []
        self._facts: Facts | None = None
        self._known: Known = {}

    def note(self, head: Head, first_operation: int) -> None:
        """Note a line whose rows were written, and whose operations are numbered from there."""
        if head.get("branch") is None:
            self._touched.add(_Noting(self.connection, head).touched())
            self._heads.append(head)
            if self._first_operation is None:
                self._first_operation = first_operation

    def write(self, tx: Instant) -> None:
        """Write the standings that the transaction noted since the last time changed."""
        touched, self._touched = self._touched, Touched(set(), set(), set(), set())
        heads, self._heads = self._heads, []
        first, self._first_operation = self._first_operation or 0, None
        if any(_takes_back(head) for head in heads):
            self._facts = None
        if not touched.fallen and not touched.itself:
            return
        facts = self._facts_after(touched)
        changed = ChangedParts(facts, heads, first, touched.fallen)
        if touched.fallen:
            self._write_rows("absence", facts.absence, changed.absences(touched.fallen), tx)
        if shaky := Spreading(facts, touched, first, changed, self._known).result():
            self._write_rows("shaky", facts.shaky, shaky, tx)

    def _facts_after(self, touched: Touched) -> Facts:
        """Return what is known after a transaction: what earlier ones read and found, but for what this one changed."""
        if self._facts is None or len(self._known) + self._facts.size() > _MOST_KEPT:
            self._facts = Facts(self.connection)
            self._known.clear()
        else:
            self._facts.forget(touched.fallen | touched.itself | touched.ends, touched.links)
        return self._facts

    def _write_rows(
        self, table: str, there: Lookup, wanted: Mapping[int, Iterable[tuple[Any, ...]]], tx: Instant
    ) -> None:
        """Close the open rows of entities that are not wanted any more, and open those that are new."""
        there.load(wanted)
        closed, opened = [], []
        for entity, rows in wanted.items():
            if (stored := there[entity]) != rows:
                there[entity] = list(rows)
                closed += [(tx, entity, start) for start, *_ in set(stored).difference(rows)]
                opened += [
                    (entity, start, tx, stop, OPEN, *more)
                    for start, stop, *more in set(rows).difference(stored)
                ]
        if closed:  # the row has its whole key, else SQLite keeps a copy of its page for each row
            self.connection.executemany(
                f"UPDATE {table} SET tx_to = ?1 WHERE entity = ?2 AND valid_from = ?3 AND tx_from = "
                f"(SELECT max(tx_from) FROM {table} WHERE entity = ?2 AND valid_from = ?3)",
                sorted(closed),
            )
        if opened:
            marks = ", ".join("?" * len(opened[0]))
            self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", sorted(opened))


def _takes_back(head: Head) -> bool:
    """Whether a line changes what earlier ones mean: what was found before does not hold any more."""
    if head.get("kinds"):
        return True
    return any(verb == UNDO or verb in FORGETTING for verb, *_ in head.get("ops", ()))


class _Noting:
    """Finds what one line changed."""

    def __init__(self, connection: sqlite3.Connection, head: Head) -> None:
        self._connection, self._head = connection, head
        self._found = Touched(set(), set(), set(), set())

    def touched(self) -> Touched:
        """The entities that may stand otherwise by this line."""
        head, found = self._head, self._found
        plain = self._plain_entities()
        ids = {row[0] for row in head.get("rows", ())} - plain
        for name in ("told", "said", "turns", "gaps"):
            ids.update(row[0] for row in head.get(name, ()))
        for verb, subject, *_ in head.get("ops", ()):
            if verb == "confirm":
                found.itself.update(self._numbers([subject]))
            elif verb in FORGETTING:
                ids.add(subject)
            elif verb == UNDO:
                self._note_undone(instant(subject))
        found.fallen.update(self._numbers(ids))
        found.fallen.update(
            self._of_rows("SELECT entity FROM period WHERE number = ?", head.get("closed", ()))
        )
        links = {row[0] for name in ("link_rows", "link_told", "linked") for row in head.get(name, ())}
        self._note_links("id", links)
        closed = self._of_rows("SELECT link FROM link_period WHERE number = ?", head.get("link_closed", ()))
        self._note_links("number", closed)
        self._note_kinds(head.get("kinds", ()))
        return found

    def _plain_entities(self) -> set[str]:
        """The new entities of one open-ended period: until something is linked to them, they stand from its beginning on."""
        new = {thing[0] for thing in self._head.get("entities", ())}
        rows = self._head.get("rows", ())
        if not new:
            return new
        once: set[str] = set()
        for id, _, _, stop, _ in rows:
            if id in once or stop is not None:
                new.discard(id)
            once.add(id)
        return new

    def _numbers(self, ids: Iterable[str]) -> Iterator[int]:
        for id in ids:
            yield from self._one("SELECT number FROM entity WHERE id = ?", id)

    def _of_rows(self, statement: str, closed: Iterable[Any]) -> set[int]:
        return {number for row, _ in closed for number in self._one(statement, row)}

    def _one(self, statement: str, value: Any) -> list[int]:
        return [number for (number,) in self._connection.execute(statement, (value,))]

    def _note_links(self, column: str, links: Iterable[Any]) -> None:
        resting: Mapping[str, Any] | None = None
        for link in links:
            for number, kind, source, target in self._connection.execute(
                f"SELECT number, kind, source, target FROM link WHERE {column} = ?", (link,)
            ).fetchall():
                self._found.links.add(number)
                self._found.ends.update((source, target))
                if kind in _REPLACING:
                    (self._found.fallen if kind == "supersedes" else self._found.itself).add(target)
                    self._found.itself.add(source)
                    continue
                if resting is None:
                    resting = Facts(self._connection).resting
                if kind in resting:
                    self._found.itself.add(target if kind in UPHOLDING else source)

    def _note_kinds(self, kinds: Iterable[Head]) -> None:
        """Note what a kind that is defined anew lets rest on something."""
        for kind in kinds:
            if kind.get("rests"):
                self._found.itself.update(self._one("SELECT source FROM link WHERE kind = ?", kind["name"]))

    def _note_undone(self, tx: Instant) -> None:
        """Note what the transaction changed that is taken back."""
        for (raw,) in self._connection.execute("SELECT head FROM chain WHERE tx = ?", (tx,)).fetchall():
            head = orjson.loads(raw)
            if head.get("branch") is None:
                self._found.add(_Noting(self._connection, head).touched())
                self._found.fallen.update(self._numbers(thing[0] for thing in head.get("entities", ())))
