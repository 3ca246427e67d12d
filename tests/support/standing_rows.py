"""Compares the standings that are rows of a ledger with what the store works out from what rests on what, at every coordinate."""

from __future__ import annotations

from typing import Any

from graphstore import GraphStore
from graphstore.core.index.foundations import Resting
from graphstore.ledger.branch_rows import line_named
from graphstore.values.period import OPEN, instant
from tests.support.index_of_chain import index_of
from tests.support.ledger_rows import connected

MOST = 20_000
"""About so many standings are compared, at coordinates evenly drawn from all at which one may change."""

STANDINGS = """
SELECT e.id, CASE
  WHEN f.word IS NOT NULL THEN f.word
  WHEN a.standing IS NOT NULL THEN a.standing
  WHEN p.number IS NULL THEN 'not_yet'
  WHEN s.entity IS NOT NULL THEN 'shaky'
  ELSE 'stands' END
FROM entity e
LEFT JOIN forgotten f ON f.entity = e.number
LEFT JOIN period p ON p.entity = e.number AND p.valid_from <= :v AND :v < p.valid_to AND p.tx_from <= :t AND :t < p.tx_to
LEFT JOIN absence a ON a.entity = e.number AND a.valid_from <= :v AND :v < a.valid_to AND a.tx_from <= :t AND :t < a.tx_to
LEFT JOIN shaky s ON s.entity = e.number AND s.valid_from <= :v AND :v < s.valid_to AND s.tx_from <= :t AND :t < s.tx_to
WHERE e.tx_from <= :t
"""


def compare(store: GraphStore, branch: str | None = None) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many standings were compared, and those that differ: (id, valid, tx, expected, found). `branch`: None compares the trunk."""
    line = store if branch is None else store.on(branch)
    core, index = line._core, index_of(line)
    edges = {
        edge
        for column in (index.r_from, index.r_to, index.k_from, index.k_to)
        for edge in column
        if edge < OPEN
    }
    valids = sorted({*edges, *(edge - 1 for edge in edges)})
    coordinates = [(valid, tx) for tx in index.t_tx for valid in valids]
    step = max(1, len(coordinates) * len(index.names) // MOST)
    count, differing = 0, []
    with connected(store.path) as connection:
        line = line_named(connection, branch)
        for valid, tx in coordinates[::step]:
            resting = Resting(index, valid, tx, core.raw)
            found = dict(line.reader(connection).execute(STANDINGS, {"v": valid, "t": tx}))
            for entity, id in enumerate(index.names):
                if index.born[entity] <= tx:
                    expected = index.standing(entity, valid, tx)
                    if expected == "stands" and resting.is_shaky(entity):
                        expected = "shaky"
                    count += 1
                    if found.get(id) != expected:
                        differing.append((id, valid, tx, expected, found.get(id)))
    return count, differing


def now(store: GraphStore) -> dict[str, str]:
    """How everything stands now, by the rows."""
    at = store.as_of().at
    with connected(store.path) as connection:
        return dict(connection.execute(STANDINGS, {"v": instant(at.valid), "t": instant(at.tx)}))
