"""Copies the rows of long pasts into `deep_row` of `sql/schema.sql`, where a read finds the few that it needs. Such pasts are called deep.

It has rows of the trunk only. A past that is deep stays deep.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import dumps
from graphstore.values.period import OPEN, Instant

DEEP_TABLES = ("deep_row", "deep_group")
MOST = 64  # rows of one sort that a read may scan; more make a past deep
_BELIEVED = 63, 1  # step and node of an open row
_OWN, _FROM, _TO = 1, 2, 4  # bits of entity.deep


class _DeepRow(NamedTuple):
    """A row of an entity, with the columns of `deep_row`."""

    owner: int
    sort: str
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    row: int


_SORTS = {"absence": "absence", "shaky": "flag"}
"""The sorts of rows of these tables in `deep_row`. Their alphabetical order is that of priority: the first row decides how an entity stands."""
_PERIOD = "p.entity, 'period', p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.number"
_STANDING = "a.entity, '{1}', a.valid_from, a.valid_to, a.tx_from, a.tx_to, a.tx_from"
_LINK = "l.{0}, '{0} ' || l.kind, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.number"
_ALL_OWN = f"SELECT {_PERIOD} FROM all_period p WHERE p.entity = ?1 AND +p.number < {SPAN}" + "".join(
    f" UNION ALL SELECT {_STANDING.format(table, sort)} FROM all_{table} a WHERE a.entity = ?1 AND +a.line = 0"
    for table, sort in _SORTS.items()
)
_ALL_LINKS = f"SELECT {_LINK} FROM all_link l CROSS JOIN all_link_period p ON p.link = l.number AND +p.number < {SPAN} WHERE l.{{0}} = ?1"
_ALL = {_OWN: _ALL_OWN, _FROM: _ALL_LINKS.format("source"), _TO: _ALL_LINKS.format("target")}
"""Finds all rows of an entity that become deep together, by their bit."""
_PERIODS = f"""
SELECT e.deep & {_OWN}, {_PERIOD}
FROM json_each(?) n CROSS JOIN all_period p ON p.number = n.value CROSS JOIN all_entity e ON e.number = p.entity
WHERE e.deep & {_OWN} OR (SELECT 1 FROM all_period WHERE entity = e.number LIMIT 1 OFFSET {MOST})
"""
_LINKS = f"""
SELECT e.deep & {{1}}, {_LINK}
FROM json_each(?) n CROSS JOIN all_link_period p ON p.number = n.value CROSS JOIN all_link l ON l.number = p.link
CROSS JOIN all_entity e ON e.number = l.{{0}}
WHERE e.deep & {{1}} OR (SELECT 1 FROM all_link o CROSS JOIN all_link_period q ON q.link = o.number WHERE o.{{0}} = e.number LIMIT 1 OFFSET {MOST})
"""
_LINKS_OF = {_FROM: _LINKS.format("source", _FROM), _TO: _LINKS.format("target", _TO)}
_OPENED = f"""
SELECT e.deep & {_OWN}, {_STANDING}
FROM json_each(?1) n CROSS JOIN all_{{0}} a ON a.entity = n.value ->> 0 AND a.valid_from = n.value ->> 1 AND a.tx_from = n.value ->> 2 AND a.line = 0
CROSS JOIN all_entity e ON e.number = a.entity
WHERE e.deep & {_OWN} OR (SELECT 1 FROM all_{{0}} WHERE entity = e.number LIMIT 1 OFFSET {MOST})
"""
_CLOSED = f"""
SELECT 1, {_STANDING}
FROM json_each(?1) n CROSS JOIN all_entity e ON e.number = n.value ->> 1 AND e.deep & {_OWN}
CROSS JOIN all_{{0}} a ON a.entity = e.number AND a.valid_from = n.value ->> 2 AND a.line = 0
  AND a.tx_from = (SELECT max(tx_from) FROM all_{{0}} WHERE entity = e.number AND valid_from = n.value ->> 2 AND line = 0)
"""
_DELETE = "DELETE FROM deep_row WHERE owner = ? AND sort = ? AND step = ? AND length = ? AND node = ? AND valid_from = ? AND row = ?"
_INSERT = "INSERT INTO deep_row VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_GROUP = "INSERT INTO deep_group VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


def follow_periods(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Update the copies of the trunk's periods that were opened or closed."""
    if numbers:
        _follow(connection, _OWN, connection.execute(_PERIODS, (dumps(numbers).decode(),)).fetchall())


def follow_links(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Update the copies of the trunk's periods of links that were opened or closed."""
    if numbers:
        asked = (dumps(numbers).decode(),)
        for bit, statement in _LINKS_OF.items():
            _follow(connection, bit, connection.execute(statement, asked).fetchall())


def follow_opened(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
    """Copy rows of `absence` or `shaky` that were opened. Each has its entity, valid_from and tx_from first."""
    asked = (dumps([row[:3] for row in rows]).decode(),)
    _follow(connection, _OWN, connection.execute(_OPENED.format(table, _SORTS[table]), asked).fetchall())


def follow_closed(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
    """Update the copies of rows of `absence` or `shaky` that were closed. Each has the tx, its entity and valid_from; the last such row counts."""
    asked = (dumps(list(rows)).decode(),)
    _follow(connection, _OWN, connection.execute(_CLOSED.format(table, _SORTS[table]), asked).fetchall())


def _follow(connection: sqlite3.Connection, bit: int, changed: Iterable[Sequence[object]]) -> None:
    """Write copies of changed rows. The first value of each is 1 if its entity is already deep; if not, all rows of the entity are copied."""
    new: set[int] = set()
    rows: list[_DeepRow] = []
    for is_deep, *values in changed:
        row = _DeepRow._make(values)
        if is_deep:
            rows.append(row)
        else:
            new.add(row.owner)
    for owner in sorted(new):
        connection.execute("UPDATE all_entity SET deep = deep | ? WHERE number = ?", (bit, owner))
        rows += map(_DeepRow._make, connection.execute(_ALL[bit], (owner,)).fetchall())
    if not rows:
        return
    closed = [_key(row, _BELIEVED) for row in rows if row.tx_to != OPEN and row.owner not in new]
    connection.executemany(_DELETE, closed)
    held = [row for row in rows if row.tx_from < row.tx_to]
    keys = [_key(row, _BELIEVED if row.tx_to == OPEN else _node(row.tx_from, row.tx_to)) for row in held]
    connection.executemany(
        _INSERT, [(*key, row.valid_to, row.tx_from, row.tx_to) for key, row in zip(keys, held, strict=True)]
    )
    connection.executemany(_INSERT_GROUP, {key[:4]: None for key in keys})


def _key(row: _DeepRow, node: tuple[int, int]) -> tuple[int, str, int, int, int, Instant, int]:
    """Return the key of a row in `deep_row`."""
    is_link = row.sort > "period"
    length = 1 << (row.valid_to - row.valid_from).bit_length() if is_link else 0
    return row.owner, row.sort, node[0], length, node[1], row.valid_from, row.row


def _node(tx_from: Instant, tx_to: Instant) -> tuple[int, int]:
    """Return step and place of the highest node of the interval tree that divides [tx_from, tx_to)."""
    first, last = 2 * tx_from, 2 * tx_to - 1
    step = (first ^ last).bit_length() - 1
    return step, last >> step
