"""Reads the rows of one line of belief, the trunk or a branch, with the statements of the trunk.

The tables `all_…` have the rows of all lines. A branch sees its own rows and those that its ancestors had at its fork, except rows that it has closed. The
views that a statement names are replaced by common table expressions with the branch's rows.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import orjson

from graphstore.values.period import OPEN, Instant

SPAN = 1 << 40  # size of the range of numbers of each line
NUMBERED = {
    "operation": "tx, verb, subject, author, body, recorded",
    "entity": "id, is_event, kind, key, scope, tx_from, 0 AS deep",  # `deep` is a property of the trunk only
    "version": "entity, ordinal, body, operation",
    "period": "entity, version, valid_from, valid_to, tx_from",
    "link": "id, kind, source, target",
    "claim": "link, ordinal, strength, is_inferred, created_by, body, operation, is_history",
    "link_period": "link, claim, valid_from, valid_to, tx_from",
    "taken": "entity, link, version, valid_from, valid_to",
    "occurrence": "event, occurred_at, tx, operation, first, last, ordinal",
    "removed": "entity, valid_from, valid_to, operation",
    "changed": "entity, valid_from, valid_to, operation, is_certain",
    "told": "entity, valid_from, valid_to, version",
    "linked": "link, valid_from, valid_to, operation",
    "defined": "tx, kind",
    "setting": "tx, name, value",
}
"""The tables whose rows are numbered on each line, with the columns that are equal on all lines."""
_FIELDS = {
    "tag": ("tag, version", "version"),
    "message": ("period, entity, at, authorized, sender, thread, classification, trace", "period"),
}
"""The tables of fields, with their columns and the numbered table that they refer to. A line sees the fields of the rows that it sees."""
_KEYED = {
    "absence": "entity, valid_from, tx_from, valid_to, standing, line",
    "shaky": "entity, valid_from, tx_from, valid_to, line",
}
_NAMED = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_BEGINNING = re.compile(r"\A(?:--[^\n]*\n|\s)*(WITH(?:\s+RECURSIVE)?\s)?")
_LINES = "SELECT number, name, parent, fork, marks FROM line"
ALL_LINES = f"{_LINES} ORDER BY number"
"""Finds all branches in the order of creation, for `lines_of`."""
_WITH_ANCESTORS = """
WITH RECURSIVE above (number, name, parent, fork, marks) AS (
  {found} UNION ALL SELECT l.number, l.name, l.parent, l.fork, l.marks FROM above CROSS JOIN line l ON l.number = above.parent
)
SELECT number, name, parent, fork, marks FROM above ORDER BY number
"""
NAMED_LAST = _WITH_ANCESTORS.format(
    found=f"SELECT * FROM ({_LINES} WHERE name = ? ORDER BY number DESC LIMIT 1)"
)
"""Finds the newest branch of a name and its ancestors, in the order of creation."""

MADE_THEN = _WITH_ANCESTORS.format(
    found=f"""SELECT * FROM ({_LINES} WHERE name = :name ORDER BY number LIMIT 1 OFFSET (
    SELECT count(*) - 1 FROM operation WHERE subject = :name AND verb = 'branch' AND tx <= :made
  ))"""
)
"""Finds the branch of a name that was created at an instant, and its ancestors, in the order of creation."""
_BY_FORK = {  # the number of rows of each table at an instant, as 1 + the highest number of these
    "operation": "operation WHERE tx <= :fork",
    "entity": "entity WHERE tx_from <= :fork",
    "version": "version WHERE operation < :operation",
    "period": "period WHERE tx_from <= :fork",
    "claim": "claim WHERE operation < :operation",
    "link_period": "link_period WHERE tx_from <= :fork",
    "taken": "taken_ever WHERE tx_from <= :fork",
    "occurrence": "occurrence WHERE tx <= :fork",
    "removed": "removed WHERE operation < :operation",
    "changed": "changed WHERE operation < :operation",
    "told": "told WHERE version < :version",
    "linked": "linked WHERE operation < :operation",
    "defined": "defined WHERE tx <= :fork",
    "setting": "setting WHERE tx <= :fork",
}


class Ancestor(NamedTuple):
    """Holds what a branch sees of another line: a range of numbers for each table, as of an instant."""

    number: int
    upto: Instant
    ranges: Mapping[str, tuple[int, int]]  # the first number and the one after the last


class LineNumbers:
    """Describes which row numbers belong to the trunk, or to one branch. `marks` are the numbers of rows inherited from the parent."""

    def __init__(
        self,
        number: int = 0,
        parent: LineNumbers | None = None,
        fork: Instant = OPEN,
        marks: Mapping[str, int] | None = None,
        name: str | None = None,
    ) -> None:
        self.number, self.parent, self.fork, self.name = number, parent, fork, name
        self.marks = marks or dict.fromkeys(NUMBERED, 0)
        self.ancestors: list[Ancestor] = [] if parent is None else parent.until(fork, self.marks)
        self._statements: dict[str, str] = {}

    def until(self, fork: Instant, marks: Mapping[str, int]) -> list[Ancestor]:
        """Return what a branch sees that forks from this line at an instant with these numbers of rows: of this line, then of its ancestors."""
        low = self.number * SPAN
        own = {
            table: (low + self.marks[table], low + max(mark, self.marks[table]))
            for table, mark in marks.items()
        }
        return [Ancestor(self.number, fork, own)] + [
            Ancestor(
                other.number,
                min(other.upto, fork),
                {
                    table: (first, max(first, min(stop, other.number * SPAN + marks[table])))
                    for table, (first, stop) in other.ranges.items()
                },
            )
            for other in self.ancestors
        ]

    def row(self, table: str, place: int) -> int:
        """Return the number of a row from its place, by which the heads of this line name it."""
        line: LineNumbers = self
        while line.parent is not None and place < line.marks[table]:
            line = line.parent
        return line.number * SPAN + place

    def numbers(self, table: str, stop: int) -> list[range]:
        """Return the numbers of a table's rows that this line sees, in order, as ranges. Its own rows end before `stop`."""
        inherited = [range(*other.ranges[table]) for other in reversed(self.ancestors)]
        return [*inherited, range(self.number * SPAN + self.marks[table], stop)]

    @property
    def lineage(self) -> tuple[str, ...]:
        """Return the name of this branch and those of its ancestors, its own first."""
        return () if self.name is None else (self.name, *(self.parent or TRUNK).lineage)

    @property
    def of_trunk(self) -> Mapping[str, int]:
        """Return the numbers of rows that a branch sees of the trunk, by table."""
        return self.marks if self.parent is None or self.parent is TRUNK else self.parent.of_trunk

    def pieces(self, table: str) -> list[range]:
        """Return the numbers of a table's rows that this line sees, in the order of their places: the trunk first, its own last, without empty ranges."""
        return [piece for piece in self.numbers(table, (self.number + 1) * SPAN) if piece]

    def trunk_stop(self, table: str) -> int:
        """Return the upper bound of the trunk's row numbers that this line sees."""
        return self.ancestors[-1].ranges[table][1] if self.ancestors else SPAN

    @property
    def forked(self) -> Instant:
        """Return the instant of the fork from the trunk. All rows of this line up to it are the trunk's."""
        return self.fork if self.parent is None or self.parent is TRUNK else self.parent.forked

    def is_own(self, number: int) -> bool:
        """Return True if this line wrote the row."""
        return number // SPAN == self.number

    def reader(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return a connection whose statements read the rows of this line."""
        return (
            connection
            if self.parent is None
            else cast("sqlite3.Connection", LineConnection(connection, self))
        )

    def statement(self, text: str) -> str:
        """Return a statement of the trunk, changed to read the rows of this line."""
        if self.parent is None:
            return text
        found = self._statements.get(text)
        if found is None:
            found = self._statements[text] = with_views(text, self._views)
        return found

    # ------------------------------------------------------------------ the views of a branch

    @cached_property
    def _views(self) -> dict[str, str]:
        found = {
            table: f"SELECT number, {columns} FROM main.all_{table} a WHERE {self._visible(table)}"
            for table, columns in NUMBERED.items()
        }
        for table, closed in (("period", "closed"), ("link_period", "link_closed")):
            ended = self._closed(closed, "period = a.number", "a.number", table)
            columns = f"number, {NUMBERED[table]}, {ended('tx', 'tx_to', str(OPEN))} AS tx_to, opened_by, {ended('operation', 'closed_by', 'NULL')} AS closed_by"
            found[table] = f"SELECT {columns} FROM main.all_{table} a WHERE {self._visible(table)}"
        found["done"] = found["operation"]
        ended = self._closed("taken_closed", "taken = a.number", "a.number", "taken")
        until = ended("tx", "tx_to", str(OPEN))
        found["taken_ever"] = (
            f"SELECT number, entity, version, valid_from, valid_to, tx_from, {until} AS tx_to FROM main.all_taken a WHERE {self._visible('taken')}"
        )
        found["taken"] += f" AND {until} = {OPEN}"
        found["given_end"] = (
            f"SELECT operation FROM main.all_given_end a WHERE {self._visible('operation', 'operation')}"
        )
        found["undone"] = (
            f"SELECT tx, operation FROM main.all_undone a WHERE {self._visible('operation', 'operation')}"
        )
        found["covered"] = (
            f"SELECT operation, after, upto FROM main.all_covered a WHERE {self._visible('operation', 'operation')}"
        )
        for table, (columns, of) in _FIELDS.items():
            found[table] = f"SELECT {columns} FROM main.all_{table} a WHERE {self._visible(of, of)}"
        lines = ", ".join(
            str(number) for number in (self.number, *(other.number for other in self.ancestors))
        )
        found["alias"] = (
            f"SELECT branch, entity, ordinal, version FROM main.all_alias a WHERE line IN ({lines}) AND {self._visible('version', 'version')}"
        )
        visible = self._visible("operation", "operation")
        later = self._visible("operation", "operation", "b")
        found["forgotten"] = (
            f"SELECT entity, operation, word FROM main.all_forgotten a WHERE ({visible}) AND NOT EXISTS "
            f"(SELECT 1 FROM main.all_forgotten b WHERE b.entity = a.entity AND b.operation > a.operation AND ({later}))"
        )
        for table, columns in _KEYED.items():
            same = "entity = a.entity AND c.valid_from = a.valid_from AND c.tx_from = a.tx_from"
            ended = self._closed(f"{table}_closed", same, "a.line", None)
            visible = " OR ".join(
                [f"+a.line = {self.number}"]
                + [f"+a.line = {other.number} AND +a.tx_from <= {other.upto}" for other in self.ancestors]
            )
            found[table] = (
                f"SELECT {columns}, {ended('tx', 'tx_to', str(OPEN))} AS tx_to FROM main.all_{table} a WHERE {visible}"
            )
        found["next_number"] = "SELECT " + ", ".join(
            f"({self.next_number(table)}) AS {table}" for table in NUMBERED
        )
        found["next_number"] += " FROM main.property WHERE name = 'rewritten'"
        return found

    def next_number(self, table: str) -> str:
        """Return a query for the number of the next row of a table."""
        low = self.number * SPAN
        return f"SELECT coalesce(max(number) + 1, {low + self.marks[table]}) FROM main.all_{table} WHERE number >= {low} AND number < {low + SPAN}"

    def _visible(self, table: str, column: str = "number", alias: str = "a") -> str:
        low, column = self.number * SPAN, f"+{alias}.{column}"
        parts = [f"{column} BETWEEN {low} AND {low + SPAN - 1}"]
        for other in self.ancestors:
            first, stop = other.ranges[table]
            if first < stop:
                parts.append(f"{column} BETWEEN {first} AND {stop - 1}")
        return "(" + " OR ".join(parts) + ")"

    def _closed(self, closed: str, same: str, by: str, table: str | None) -> Any:
        """Return a function that builds the SQL expression for when, or by which operation, this line closed a row."""
        scale = SPAN if table else 1
        noted = [f"c.line = {self.number}"] + [
            f"c.line = {other.number} AND c.tx <= {other.upto}" for other in self.ancestors if other.number
        ]

        def expression(column: str, own: str, otherwise: str) -> str:
            cases = [f"WHEN {by} >= {self.number * scale} THEN a.{own}"]
            cases += [
                f"WHEN {by} >= {other.number * scale} AND a.tx_to <= {other.upto} THEN a.{own}"
                for other in self.ancestors
            ]
            beside = ", ".join(
                f"(SELECT c.{column} FROM main.{closed} c WHERE {one} AND c.{same})" for one in noted
            )
            return f"CASE {' '.join(cases)} ELSE coalesce({beside}, {otherwise}) END"

        return expression


def with_views(text: str, views: Mapping[str, str]) -> str:
    """Return a statement in which the names of views are replaced by queries."""
    begun = _BEGINNING.match(text)
    assert begun is not None
    named = dict.fromkeys(
        name for name in _NAMED.findall(text[begun.end() - len(begun[1] or "") :]) if name in views
    )
    if not named:
        return text
    queries = ", ".join(f"{name} AS NOT MATERIALIZED ({views[name]})" for name in named)
    rest = text[begun.end() :]
    return f"{begun[1]}{queries}, {rest}" if begun[1] else f"WITH {queries} {rest}"


TRUNK = LineNumbers()


class LineConnection:
    """A connection whose statements read the rows of one line."""

    def __init__(self, connection: sqlite3.Connection, line: LineNumbers) -> None:
        self._connection, self._line = connection, line

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        """Run a statement on the rows of the line."""
        return self._connection.execute(self._line.statement(statement), values)


def line_named(connection: sqlite3.Connection, name: str | None) -> LineNumbers:
    """Return the newest branch of a name; the trunk for None."""
    return TRUNK if name is None else lines_of(connection.execute(NAMED_LAST, (name,)).fetchall())[-1]


def all_branches(connection: sqlite3.Connection) -> list[LineNumbers]:
    """Return all branches, including deleted ones."""
    return lines_of(connection.execute(ALL_LINES).fetchall())


def lines_of(rows: Iterable[tuple[Any, ...]]) -> list[LineNumbers]:
    """Return branches from rows of the table `line`, each after its parent."""
    found = {0: TRUNK}
    for number, name, parent, fork, marks in rows:
        found[number] = _line(number, found[parent], fork, marks, name)
    return list(found.values())[1:]


@lru_cache(maxsize=32)
def _line(number: int, parent: LineNumbers, fork: Instant, marks: str, name: str) -> LineNumbers:
    """Return a branch. The cache keeps the statements that the branch has built."""
    return LineNumbers(number, parent, fork, orjson.loads(marks), name)


def add_branch(connection: sqlite3.Connection, name: str, fork: Instant, parent: str | None) -> None:
    """Add a branch with what its parent (None: the trunk) knew at an instant."""
    above = line_named(connection, parent)
    marks = orjson.dumps(_marks(connection, above, fork), option=orjson.OPT_SORT_KEYS).decode()
    connection.execute(
        "INSERT INTO line SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ? FROM line",
        (name, above.number, fork, marks),
    )


def _marks(connection: sqlite3.Connection, line: LineNumbers, fork: Instant) -> dict[str, int]:
    """Return the number of rows of each table that a line had at an instant."""
    reader = line.reader(connection)
    names = ", ".join(NUMBERED)
    [counts] = reader.execute(f"SELECT {names} FROM next_number").fetchall()
    marks: dict[str, int] = dict(zip(NUMBERED, counts, strict=True))
    if reader.execute("SELECT EXISTS (SELECT 1 FROM operation WHERE tx > ?)", (fork,)).fetchone()[0]:
        values: dict[str, int] = {"fork": fork}
        for table, rows in _BY_FORK.items():
            values[table] = _after(reader, f"SELECT max(number) FROM {rows}", values)
        values["link"] = _after(reader, "SELECT max(link) FROM link_period WHERE tx_from <= :fork", values)
        marks = {table: values[table] for table in NUMBERED}
    return {table: number % SPAN for table, number in marks.items()}


def _after(reader: sqlite3.Connection, statement: str, values: Mapping[str, int]) -> int:
    last = reader.execute(statement, values).fetchone()[0]
    return 0 if last is None else int(last) + 1
