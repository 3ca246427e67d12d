"""Compares the standings that are rows of a ledger with the ways by which `shaky()` explains them, at many coordinates."""

from __future__ import annotations

from typing import Any

from graphstore import GraphStore
from graphstore.ledger.branch_rows import line_named
from graphstore.values.period import OPEN, instant, moment
from tests.support.ledger_rows import connected

MOST = 40
"""At about so many coordinates standings are compared, evenly drawn from all at which one may change."""

EDGES = """
SELECT valid_from FROM period UNION SELECT valid_from - 1 FROM period UNION SELECT valid_to FROM period WHERE valid_to < :open
UNION SELECT valid_from FROM link_period UNION SELECT valid_to FROM link_period WHERE valid_to < :open
"""

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
    with connected(store.path) as connection:
        reader = line_named(connection, branch).reader(connection)
        valids = [at for (at,) in reader.execute(EDGES, {"open": OPEN})]
        txs = [tx for (tx,) in reader.execute("SELECT DISTINCT tx FROM operation ORDER BY tx")]
        coordinates = [(valid, tx) for tx in txs for valid in valids]
        told = {
            (valid, tx): dict(reader.execute(STANDINGS, {"v": valid, "t": tx}))
            for valid, tx in coordinates[:: 1 + len(coordinates) // MOST]
        }
    differing = []
    for (valid, tx), found in told.items():
        shaky = {each.node.id for each in line.as_of(valid=moment(valid), tx=moment(tx)).shaky()}
        expected = {id: "shaky" if id in shaky else standing for id, standing in found.items()}
        differing += [
            (id, valid, tx, expected[id], standing)
            for id, standing in found.items()
            if expected[id] != standing or (standing == "shaky" and id not in shaky)
        ]
    return sum(map(len, told.values())), differing


def now(store: GraphStore) -> dict[str, str]:
    """How everything stands now, by the rows."""
    at = store.as_of().at
    with connected(store.path) as connection:
        return dict(connection.execute(STANDINGS, {"v": instant(at.valid), "t": instant(at.tx)}))
