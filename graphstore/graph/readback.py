"""Read the graph tables back and compare them with the history: all rows, the newest ones, or a random sample.

The engine has lost and changed values without an error. Nothing here trusts what was passed to the write: each value is computed again from the history and
compared with the engine's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.graph.history_from_rows import TABLES, RowHistory
from graphstore.graph.texts import LINK, text
from graphstore.graph.workers import AnyEngine
from graphstore.read.columns import Mark
from graphstore.values.period import OPEN, Instant, moment

CHUNK = 65_536
"""Rows compared at once, which bounds the memory."""
MOST = 10_000
"""Rows of a table that are read back after one update; if there are more, the last ones."""
_SAMPLE = 4
_EVER = "timestamp('0001-01-01 00:00:00')"
_AFTER_ALL = "\U0010ffff" * 2  # no id sorts after it
_ENDS = ["row", "tx_to", "closed_by"]
_OF_ENDS = frozenset({"source", "target", "source_label", "target_label"})
"""Columns of links that their table does not have."""
_COUNTED = ("Node", "Event", "Version", "Occurrence", "Op")

ByTable = Callable[[pa.Table], dict[tuple[str, str, str], pa.Table]]


class Readback:
    """Compares what an engine holds with what it should hold. Each method yields a sentence for each difference, and nothing if all is well."""

    def __init__(self, history: RowHistory, engine: AnyEngine, by_table: ByTable) -> None:
        self._history, self._engine, self._by_table = history, engine, by_table
        self._expected: Counter[str] = Counter()  # the number of rows of each table

    def all(self, done: Mark, names: list[str]) -> Iterator[str]:
        """Compare every value of every row up to a mark. `names`: the existing link tables."""
        found = list(self._ranges(Mark(), done, names, _EVER))
        for label in _COUNTED:
            yield from self._count(label, text("count_things", LABEL=label))
        for name in names:
            yield from self._count(name, text("count_link_rows", KIND=name))
        yield from found

    def written(self, lo: Mark, hi: Mark, names: list[str]) -> Iterator[str]:
        """Compare every value that was written or closed between two marks."""
        since = _literal(self._history.last_tx(lo.ops + 1))
        yield from self._ranges(lo, hi, names, since, MOST)
        changed = self._history.changed(lo, hi)
        versions = self._history.table("Version", changed["Version"]).select(_ENDS)
        found = self._read("read_closed_versions", versions, {}, since=since)
        yield from _differences("Version", found, versions, "row")
        for event in changed["Event"][-_SAMPLE:]:
            yield from self._one("Event", event, names)
        for name, links in self._of_tables(self._history.table(LINK, changed[LINK])).items():
            ends = links.select(_ENDS)
            found = self._read("read_closed_links", ends, {"KIND": name}, since=since)
            yield from _differences(name, found, ends, "row")

    def some(self, done: Mark, names: list[str], chance: Random) -> Iterator[str]:
        """Compare a few random rows by their keys, which takes no longer in large tables."""
        for label in ("Node", "Event", "Op", "Version", LINK) * _SAMPLE:
            if rows := getattr(done, TABLES[label].counted):
                yield from self._one(label, chance.randrange(rows), names)

    def _one(self, label: str, place: int, names: list[str]) -> Iterator[str]:
        """Compare the row of a table at a place, if there is one."""
        rows, key = self._history.table(label, [place]), TABLES[label].key
        if label != LINK and len(rows):
            name = "read_row" if TABLES[label].owner else "read_thing"
            found = self._read(name, rows, _holes(label), key=rows[key][0].as_py())
            yield from _differences(label, found, _held(label, rows), key)
        for (name, source, _), links in self._by_table(rows).items() if label == LINK else ():
            if name in names:
                at = {"key": str(place), "source": links["source"][0].as_py()}
                found = self._read("read_link", links, {"KIND": name, "SOURCE": source}, **at)
                yield from _differences(name, found, links, key)

    # ------------------------------------------------------------------ whole ranges

    def _ranges(
        self, lo: Mark, hi: Mark, names: list[str], since: str, most: int | None = None
    ) -> Iterator[str]:
        """Compare the rows between two marks; with `most`, only the last `most` of each table."""
        for label in ("Node", "Event", "Op", "Version", "Occurrence", LINK):
            start, stop = (getattr(mark, TABLES[label].counted) for mark in (lo, hi))
            by_id = label in ("Node", "Event")
            for places, first, after in (
                self._by_id(label, start, stop, most) if by_id else _in_order(start, stop, most)
            ):
                expected, given = self._history.table(label, places), {"lo": first, "hi": after}
                if label != LINK:
                    statement = "read_things" if by_id else "read_ops" if label == "Op" else "read_rows"
                    found = self._read(statement, expected, _holes(label), since=since, **given)
                    yield from self._compared(label, found, _held(label, expected), TABLES[label].key)
                    continue
                links = self._of_tables(expected)
                for name in sorted(links) if most else names:
                    rows = links.get(name, next(iter(links.values()), expected)[:0])
                    found = self._read("read_links", rows, {"KIND": name}, since=since, **given)
                    if name in links or len(found):
                        yield from self._compared(name, found, rows, "row")

    def _of_tables(self, links: pa.Table) -> dict[str, pa.Table]:
        """Group links by their table."""
        found: dict[str, list[pa.Table]] = {}
        for (name, *_), rows in self._by_table(links).items():
            found.setdefault(name, []).append(rows)
        return {name: pa.concat_tables(parts) for name, parts in found.items()}

    def _compared(self, name: str, found: pa.Table, expected: pa.Table, key: str) -> Iterator[str]:
        self._expected[name] += len(expected)
        return _differences(name, found, expected, key)

    def _count(self, name: str, cypher: str) -> Iterator[str]:
        """Compare the number of rows: surplus rows are in no range."""
        ((found,),) = self._engine.run(cypher)
        if found != self._expected[name]:
            yield f"table {name} has {found} rows, the ledger {self._expected[name]}."

    def _by_id(
        self, label: str, start: int, stop: int, most: int | None
    ) -> Iterator[tuple[Sequence[int], str, str]]:
        """Yield the places of nodes or events by id in parts, with the first id of each and of the next; with `most`, only the last ones."""
        things = sorted(
            (thing.id, thing.number)
            for thing in self._history.things(start, stop)
            if bool(thing.is_event) == (label == "Event")
        )
        first = ""
        if most is not None and len(things) > most:
            things = things[-most:]
            first = things[0][0]
        for lo in range(0, len(things), CHUNK):
            part = things[lo : lo + CHUNK]
            after = things[lo + CHUNK][0] if lo + CHUNK < len(things) else _AFTER_ALL
            yield [place for _, place in part], first, after
            first = after

    def _read(
        self, name: str, rows: pa.Table, holes: dict[str, str], /, *, since: str = _EVER, **params: Any
    ) -> pa.Table:
        """Return the result of a text, with the columns of `rows`."""
        names = set(rows.column_names) - (_OF_ENDS if "target" in rows.column_names else set())
        columns = ", ".join(f"x.{each} AS {each}" for each in sorted(names))
        # with a literal instant the engine skips older data; with a parameter it does not
        cypher = text(name, **holes).replace("__COLUMNS__", columns).replace("$since", since)
        return self._engine.arrow(cypher, **params)


def _holes(label: str) -> dict[str, str]:
    owner, _, _ = TABLES[label].owner.partition(".")
    return {"LABEL": label} | ({"OWNER": owner, "HAS": f"HAS_{label.upper()}"} if owner else {})


def _literal(at: Instant) -> str:
    return f"timestamp('{moment(at).replace(tzinfo=None).isoformat(sep=' ')}')"


def _held(label: str, table: pa.Table) -> pa.Table:
    """Add the id of the owner that each row should have."""
    owner = TABLES[label].owner
    return table.append_column("holder", table[owner.partition(".")[2]]) if owner else table


def _in_order(start: int, stop: int, most: int | None) -> Iterator[tuple[Sequence[int], int, int]]:
    for lo in range(start if most is None else max(start, stop - most), stop, CHUNK):
        hi = min(stop, lo + CHUNK)
        yield range(lo, hi), lo, hi


def _differences(name: str, found: pa.Table, expected: pa.Table, key: str) -> Iterator[str]:
    """Yield sentences about rows and values that differ between a table and the expected one."""
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
