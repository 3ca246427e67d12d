"""Reads from the rows of a ledger which branches there are, and how far each was merged and has pulled."""

from __future__ import annotations

from graphstore.ledger.branch_ledger import BranchDatabase
from graphstore.ledger.branch_records import BranchRecord, BranchRecords
from graphstore.ledger.branch_rows import ALL_LINES, SPAN, lines_of
from graphstore.ledger.database import Readable

_LINES = "SELECT number, name, parent, fork FROM line ORDER BY number"
_CHANGES = """
SELECT o.tx, o.verb, o.subject FROM (SELECT DISTINCT name FROM line) l CROSS JOIN operation o ON o.subject = l.name
WHERE o.verb IN ('branch', 'merge', 'delete_branch') ORDER BY o.number
"""
# what the trunk forgot is noted on each branch too, and is no transaction there
_OWN = f"o.number >= l.number * {SPAN} AND o.number < (l.number + 1) * {SPAN}"
_RECORDED = f"{_OWN} AND o.verb NOT IN ('evict', 'erase')"
_LAST = f"""
SELECT l.number, (SELECT o.tx FROM all_operation o WHERE {_RECORDED} ORDER BY o.number DESC LIMIT 1),
       (SELECT o.tx FROM all_operation o WHERE o.subject = l.name AND {_OWN} AND o.verb = 'pull' ORDER BY o.number DESC LIMIT 1)
FROM line l
"""
_TRANSACTIONS = (
    f"SELECT l.number, (SELECT count(DISTINCT o.tx) FROM all_operation o WHERE {_RECORDED}) FROM line l"
)


def branch_records(database: Readable, *, count: bool = False) -> BranchRecords:
    """Return all branches, deleted ones too.

    Args:
        count: whether the transactions of each are counted. This looks at all operations of each branch.
    """
    found, numbered = BranchRecords(), dict[int, BranchRecord]()
    lines = iter(database.rows(_LINES))
    for tx, verb, name in database.rows(_CHANGES):
        if verb != "branch":
            found.note([[verb, name]], tx)
            continue
        number, name, parent, fork = next(lines)  # they are numbered in the order in which they were made
        numbered[number] = record = BranchRecord(name, fork, tx, parent=numbered.get(parent))
        found.add(record)
    for number, last, pulled in database.rows(_LAST):
        numbered[number].last, numbered[number].pulled = last, pulled
    for number, transactions in database.rows(_TRANSACTIONS) if count else ():
        numbered[number].transactions = transactions
    return found


def branch_databases(database: Readable) -> list[BranchDatabase]:
    """Return what reads the rows of each branch, deleted ones too, in the order in which they were made."""
    return [BranchDatabase(database, line.name or "", line) for line in lines_of(database.rows(ALL_LINES))]
