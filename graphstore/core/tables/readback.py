"""The graph tables read back and held against the history: all of them, the rows written last, or a few at random.

The engine has been seen to lose and to change values in ways that no error tells. So nothing here trusts what it was given to write: each value
is made again from the history, as it was when it was written, and compared with what the engine answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.columns import Mark
from graphstore.core.tables.history_arrow import (
    closings_as_table,
    events_as_table,
    links_as_table,
    nodes_as_table,
    occurrences_as_table,
    operations_as_table,
    versions_as_table,
)
from graphstore.core.tables.history_from_rows import RowHistory
from graphstore.core.tables.history_source import ClosedLink, ClosedVersion, Link, Thing
from graphstore.core.tables.texts import text
from graphstore.core.tables.workers import AnyEngine
from graphstore.values.period import OPEN, Instant, moment

CHUNK = 65_536
"""Rows compared at once, which bounds the memory."""
MOST = 10_000
"""Rows of a table read back after one update; of a longer one the last."""
_SAMPLE = 4
_EVER = "timestamp('0001-01-01 00:00:00')"
_AFTER_ALL = "\U0010ffff" * 2  # no id comes after it


ByTable = Callable[[Any], dict[tuple[str, str, str], list[Any]]]


class Readback:
    """What an engine holds, compared with what it should hold. Each answer is a list of sentences, one for each difference; empty is well."""

    def __init__(self, history: RowHistory, engine: AnyEngine, by_table: ByTable) -> None:
        self._history, self._engine, self._by_table = history, engine, by_table
        self._expected: Counter[str] = Counter()  # how many rows of each table

    def all(self, done: Mark, names: list[str]) -> Iterator[str]:
        """Every value of every row up to a mark. `names`: the link tables there are."""
        found = list(self._ranges(Mark(), done, names, _EVER))
        for label in ("Node", "Event", "Version", "Occurrence", "Op"):
            yield from self._count(label, text("count_things", driver=self._engine.driver, LABEL=label))
        for name in names:
            yield from self._count(name, text("count_link_rows", driver=self._engine.driver, KIND=name))
        yield from found

    def written(self, lo: Mark, hi: Mark, names: list[str]) -> Iterator[str]:
        """Every value of what was written between two marks, and what was closed."""
        since = _literal(self._history.operations(lo.ops, lo.ops + 1)[0].tx)
        yield from self._ranges(lo, hi, names, since, MOST)
        yield from self._closings(lo, hi, since)

    def some(self, done: Mark, names: list[str], chance: Random) -> Iterator[str]:
        """A few rows at random, by their keys: as quick in large tables as in small ones."""
        history = self._history
        for _ in range(_SAMPLE):
            if done.entities:
                number = chance.randrange(done.entities)
                yield from self._thing(history.things(number, number + 1)[0])
            if done.ops:
                op = chance.randrange(done.ops)
                expected = operations_as_table(history.operations(op, op + 1))
                yield from _differences("Op", self._read("read_op", key=str(op)), expected, "id")
            if done.rows:
                row = chance.randrange(done.rows)
                if versions := history.versions(row, row + 1):
                    expected = _held(versions_as_table(versions), "node_id")
                    found = self._read("read_version", key=str(row))
                    yield from _differences("Version", found, expected, "row")
            if done.link_rows:
                row = chance.randrange(done.link_rows)
                for (name, source, _), links in self._by_table(history.links(row, row + 1)).items():
                    if name in names:
                        holes = {"KIND": name, "SOURCE": source}
                        found = self._read("read_link", holes, key=str(row), source=links[0].source)
                        yield from _differences(name, found, links_as_table(links), "row")

    # ------------------------------------------------------------------ whole ranges

    def _ranges(
        self, lo: Mark, hi: Mark, names: list[str], since: str, most: int | None = None
    ) -> Iterator[str]:
        """The rows between two marks; at most so many of each table, the last ones."""
        history = self._history
        things = history.things(lo.entities, hi.entities)
        for numbers, first, after in _by_id([thing for thing in things if not thing.is_event], most):
            found = self._read("read_nodes", since=since, lo=first, hi=after)
            yield from self._compared("Node", found, nodes_as_table(history.nodes(numbers)), "id")
        for numbers, first, after in _by_id([thing for thing in things if thing.is_event], most):
            found = self._read("read_events", since=since, lo=first, hi=after)
            yield from self._compared("Event", found, events_as_table(history.events(numbers)), "id")
        for start, stop in _chunks(lo.ops, hi.ops, most):
            found = self._read("read_ops", since=since, lo=start, hi=stop)
            yield from self._compared("Op", found, operations_as_table(history.operations(start, stop)), "id")
        for start, stop in _chunks(lo.rows, hi.rows, most):
            found = self._read("read_versions", since=since, lo=start, hi=stop)
            expected = _held(versions_as_table(history.versions(start, stop)), "node_id")
            yield from self._compared("Version", found, expected, "row")
        for start, stop in _chunks(lo.seen, hi.seen, most):
            found = self._read("read_occurrences", since=since, lo=start, hi=stop)
            expected = _held(occurrences_as_table(history.occurrences(start, stop)), "event_id")
            yield from self._compared("Occurrence", found, expected, "row")
        for start, stop in _chunks(lo.link_rows, hi.link_rows, most):
            links = self._of_tables(history.links(start, stop))
            for name in sorted(links) if most else names:
                found = self._read("read_links", {"KIND": name}, since=since, lo=start, hi=stop)
                if name in links or len(found):
                    yield from self._compared(name, found, links_as_table(links.get(name, [])), "row")

    def _of_tables(self, links: Sequence[Link | ClosedLink]) -> dict[str, list[Any]]:
        """Return links by their table."""
        found: dict[str, list[Any]] = {}
        for (name, *_), rows in self._by_table(links).items():
            found.setdefault(name, []).extend(rows)
        return found

    def _compared(self, name: str, found: pa.Table, expected: pa.Table, key: str) -> Iterator[str]:
        self._expected[name] += len(expected)
        return _differences(name, found, expected, key)

    def _count(self, name: str, cypher: str) -> Iterator[str]:
        """Rows that are too many lie in no range."""
        ((found,),) = self._engine.run(cypher)
        if found != self._expected[name]:
            yield f"table {name} has {found} rows, the ledger {self._expected[name]}."

    def _closings(self, lo: Mark, hi: Mark, since: str) -> Iterator[str]:
        history = self._history
        expected = _closed(history.closed_versions(lo, hi))
        yield from _differences("Version", self._read("read_closed_versions", since=since), expected, "row")
        for event in history.changed_events(lo, hi)[-_SAMPLE:]:
            yield from self._thing(Thing(event.number, event.id, True))
        for name, links in self._of_tables(history.closed_links(lo, hi)).items():
            found = self._read("read_closed_links", {"KIND": name}, since=since)
            yield from _differences(name, found, _closed(links), "row")

    def _thing(self, thing: Thing) -> Iterator[str]:
        if thing.is_event:
            found, expected = self._read("read_event", key=thing.id), self._history.events([thing.number])
            yield from _differences("Event", found, events_as_table(expected), "id")
        else:
            found = self._read("read_node", key=thing.id)
            yield from _differences("Node", found, nodes_as_table(self._history.nodes([thing.number])), "id")

    def _read(
        self, name: str, holes: dict[str, str] | None = None, /, *, since: str = _EVER, **params: Any
    ) -> pa.Table:
        # an instant in the text lets the engine skip what it holds of earlier ones; as a parameter it does not
        cypher = text(name, driver=self._engine.driver, **(holes or {})).replace("$since", since)
        return self._engine.arrow(cypher, **params)


def _literal(at: Instant) -> str:
    return f"timestamp('{moment(at).replace(tzinfo=None).isoformat(sep=' ')}')"


def _held(table: pa.Table, owner: str) -> pa.Table:
    """With the id of the thing that should hold each row."""
    return table.append_column("holder", table[owner])


def _closed(rows: Sequence[ClosedVersion | ClosedLink]) -> pa.Table:
    return closings_as_table(rows).rename_columns(["row", "tx_to", "closed_by"])


def _chunks(lo: int, hi: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    for start in range(lo if most is None else max(lo, hi - most), hi, CHUNK):
        yield start, min(hi, start + CHUNK)


def _by_id(things: list[Thing], most: int | None) -> Iterator[tuple[list[int], str, str]]:
    """Things in the order of their ids, in parts: each with its first id and the first one after it. At most so many, the last by their ids."""
    ordered = sorted(things, key=lambda thing: thing.id)
    first = ""
    if most is not None and len(ordered) > most:
        ordered = ordered[-most:]
        first = ordered[0].id
    for start, stop in _chunks(0, len(ordered)):
        after = ordered[stop].id if stop < len(ordered) else _AFTER_ALL
        yield [thing.number for thing in ordered[start:stop]], first, after
        first = after


def _differences(name: str, found: pa.Table, expected: pa.Table, key: str) -> Iterator[str]:
    """Sentences about what a table has that it should not, or the other way round."""
    found, expected = found.sort_by(key), expected.sort_by(key)
    if not found[key].equals(expected[key].cast(found[key].type)):
        yield from _unlike(name, key, found[key].to_pylist(), expected[key].to_pylist())
        return
    for column in expected.column_names:
        there = _plain(expected[column])
        here = _plain(found[column]).cast(there.type)
        if here.equals(there):
            continue
        at = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if not a.equals(b))
        yield (
            f"table {name}, {key} {found[key][at].as_py()!r}: {column} is {_short(here[at])}, "
            f"the ledger says {_short(there[at])}."
        )


def _unlike(name: str, key: str, found: list[Any], expected: list[Any]) -> Iterator[str]:
    there, here = Counter(found), Counter(expected)
    for what, keys in (("lacks", here - there), ("should not have", there - here)):
        if keys:
            yield f"table {name} {what} {keys.total()} rows, the first with {key} {min(keys, key=str)!r}."


def _short(value: Any) -> str:
    words = repr(value.as_py())
    return words if len(words) <= 80 else f"{words[:77]}…"


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # an open end is read as null
    if pa.types.is_timestamp(column.type):
        return pc.fill_null(column.cast(pa.timestamp("us")), pa.scalar(OPEN, pa.timestamp("us")))
    return column
