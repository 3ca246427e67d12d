"""The graph tables read back and held against the index and the journal: all of them, the rows written last, or a few at random.

The engine has been seen to lose and to change values in ways that no error tells. So nothing here trusts what it was given to write: each value
is made again from the index and the journal, as it was when it was written, and compared with what the engine answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index
from graphstore.core.tables.arrow_tables import instants, names_of, node_table, occurrence_table
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


class Tables(Protocol):
    """What the tables should hold."""

    def op_table(self, lo: int, hi: int) -> pa.Table: ...
    def version_table(self, lo: int, hi: int) -> pa.Table: ...
    def event_table(self, events: list[int]) -> pa.Table: ...
    def link_tables(self, lo: int, hi: int) -> Iterator[tuple[str, tuple[str, str], pa.Table]]: ...
    def table_of(self, kind: str) -> str: ...


class Readback:
    """What an engine holds, compared with what it should hold. Each answer is a list of sentences, one for each difference; empty is well."""

    def __init__(self, tables: Tables, engine: AnyEngine, index: Index) -> None:
        self._tables, self._engine, self._index = tables, engine, index

    def all(self, done: Mark, names: list[str]) -> Iterator[str]:
        """Every value of every row up to a mark. `names`: the link tables there are."""
        yield from self._counts(done, names)
        yield from self._ranges(Mark(), done, names, _EVER)

    def written(self, lo: Mark, hi: Mark, names: list[str]) -> Iterator[str]:
        """Every value of what was written between two marks, and what was closed."""
        since = _literal(self._index.o_tx[lo.ops])
        yield from self._ranges(lo, hi, names, since, MOST)
        yield from self._closings(lo, hi, names, since)

    def some(self, done: Mark, names: list[str], chance: Random) -> Iterator[str]:
        """A few rows at random, by their keys: as quick in large tables as in small ones."""
        index = self._index
        for _ in range(_SAMPLE):
            if done.entities:
                yield from self._thing(chance.randrange(done.entities))
            if done.ops:
                op = chance.randrange(done.ops)
                yield from _differences(
                    "Op", self._read("read_op", key=str(op)), self._tables.op_table(op, op + 1), "id"
                )
            if done.rows:
                row = chance.randrange(done.rows)
                if not index.is_event[index.r_ent[row]]:
                    expected = _held(self._tables.version_table(row, row + 1), "node_id")
                    yield from _differences(
                        "Version", self._read("read_version", key=str(row)), expected, "row"
                    )
            if done.link_rows:
                row = chance.randrange(done.link_rows)
                for name, (source, _), part in self._tables.link_tables(row, row + 1):
                    if name in names:
                        holes = {"KIND": name, "SOURCE": source}
                        found = self._read("read_link", holes, key=str(row), source=part["source"][0].as_py())
                        yield from _differences(name, found, part, "row")

    # ------------------------------------------------------------------ whole ranges

    def _ranges(
        self, lo: Mark, hi: Mark, names: list[str], since: str, most: int | None = None
    ) -> Iterator[str]:
        """The rows between two marks; at most so many of each table, the last ones."""
        index, tables = self._index, self._tables
        events = [ent for ent in range(lo.entities, hi.entities) if index.is_event[ent]]
        nodes = [ent for ent in range(lo.entities, hi.entities) if not index.is_event[ent]]
        for part, first, after in _by_id(index, nodes, most):
            found = self._read("read_nodes", since=since, lo=first, hi=after)
            yield from _differences("Node", found, node_table(index, part), "id")
        for part, first, after in _by_id(index, events, most):
            found = self._read("read_events", since=since, lo=first, hi=after)
            yield from _differences("Event", found, tables.event_table(part), "id")
        for start, stop in _chunks(lo.ops, hi.ops, most):
            found = self._read("read_ops", since=since, lo=start, hi=stop)
            yield from _differences("Op", found, tables.op_table(start, stop), "id")
        for start, stop in _chunks(lo.rows, hi.rows, most):
            found = self._read("read_versions", since=since, lo=start, hi=stop)
            yield from _differences(
                "Version", found, _held(tables.version_table(start, stop), "node_id"), "row"
            )
        for start, stop in _chunks(lo.seen, hi.seen, most):
            found = self._read("read_occurrences", since=since, lo=start, hi=stop)
            yield from _differences(
                "Occurrence", found, _held(occurrence_table(index, start, stop), "event_id"), "row"
            )
        for start, stop in _chunks(lo.link_rows, hi.link_rows, most):
            expected: dict[str, list[pa.Table]] = {}
            for name, _, part in tables.link_tables(start, stop):
                expected.setdefault(name, []).append(part)
            for name in sorted(expected) if most else names:
                found = self._read("read_links", {"KIND": name}, since=since, lo=start, hi=stop)
                if name in expected or len(found):
                    there = pa.concat_tables(expected.get(name) or [found.slice(0, 0)])
                    yield from _differences(name, found, there, "row")

    def _counts(self, done: Mark, names: list[str]) -> Iterator[str]:
        """Rows that are too many lie in no range."""
        index = self._index
        events = sum(index.is_event[: done.entities])
        kinds = Counter(index.l_kind[link] for link in index.k_link[: done.link_rows])
        expected = {
            "Node": done.entities - events,
            "Event": events,
            "Version": sum(not index.is_event[ent] for ent in index.r_ent[: done.rows]),
            "Occurrence": done.seen,
            "Op": done.ops,
        }
        for label, count in expected.items():
            yield from self._count(
                label, text("count_things", driver=self._engine.driver, LABEL=label), count
            )
        for name in names:
            count = sum(many for kind, many in kinds.items() if self._tables.table_of(kind) == name)
            yield from self._count(
                name, text("count_link_rows", driver=self._engine.driver, KIND=name), count
            )

    def _count(self, name: str, cypher: str, count: int) -> Iterator[str]:
        ((found,),) = self._engine.run(cypher)
        if found != count:
            yield f"table {name} has {found} rows, the index {count}."

    def _closings(self, lo: Mark, hi: Mark, names: list[str], since: str) -> Iterator[str]:
        index = self._index
        rows = sorted(set(index.closings[lo.closings : hi.closings]))
        versions = [row for row in rows if not index.is_event[index.r_ent[row]]]
        expected = _closed(versions, index.r_end, index.r_close)
        yield from _differences("Version", self._read("read_closed_versions", since=since), expected, "row")
        for ent in {index.r_ent[row] for row in rows[-_SAMPLE:] if index.is_event[index.r_ent[row]]}:
            yield from self._thing(ent)
        by_table: dict[str, list[int]] = {name: [] for name in names}
        for row in sorted(set(index.link_closings[lo.link_closings : hi.link_closings])):
            by_table.setdefault(self._tables.table_of(index.l_kind[index.k_link[row]]), []).append(row)
        for name, links in by_table.items():
            if links:
                expected = _closed(links, index.k_end, index.k_close)
                found = self._read("read_closed_links", {"KIND": name}, since=since)
                yield from _differences(name, found, expected, "row")

    def _thing(self, ent: int) -> Iterator[str]:
        index = self._index
        if index.is_event[ent]:
            found = self._read("read_event", key=index.names[ent])
            yield from _differences("Event", found, self._tables.event_table([ent]), "id")
        else:
            found = self._read("read_node", key=index.names[ent])
            yield from _differences("Node", found, node_table(index, [ent]), "id")

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


def _closed(rows: list[int], ends: Any, closes: Any) -> pa.Table:
    return pa.table(
        {
            "row": names_of(rows),
            "tx_to": instants([ends[row] for row in rows]),
            "closed_by": names_of([closes[row] for row in rows]),
        }
    )


def _chunks(lo: int, hi: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    for start in range(lo if most is None else max(lo, hi - most), hi, CHUNK):
        yield start, min(hi, start + CHUNK)


def _by_id(index: Index, ents: list[int], most: int | None) -> Iterator[tuple[list[int], str, str]]:
    """Things in the order of their ids, in parts: each with its first id and the first one after it. At most so many, the last by their ids."""
    ordered = sorted(ents, key=index.names.__getitem__)
    first = ""
    if most is not None and len(ordered) > most:
        ordered = ordered[-most:]
        first = index.names[ordered[0]]
    for start, stop in _chunks(0, len(ordered)):
        after = index.names[ordered[stop]] if stop < len(ordered) else _AFTER_ALL
        yield ordered[start:stop], first, after
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
            f"the index and the journal say {_short(there[at])}."
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
