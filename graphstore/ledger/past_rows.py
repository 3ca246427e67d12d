"""Reads the rows of a line of belief as of an instant, with the statements for the current rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphstore.ledger.branch_rows import with_views
from graphstore.ledger.chain import FORGOTTEN_BY
from graphstore.ledger.database import RowReader
from graphstore.values.period import OPEN, Instant

_KNOWN = "EXISTS (SELECT 1 FROM operation o WHERE o.number = a.operation AND o.tx <= {tx})"
_CLOSED = f"CASE WHEN tx_to <= {{tx}} THEN tx_to ELSE {OPEN} END AS tx_to, opened_by, CASE WHEN tx_to <= {{tx}} THEN closed_by END AS closed_by"
_FORGETTING = ", ".join(f"'{verb}'" for verb in FORGOTTEN_BY)
_EARLIER = (
    "FROM period p CROSS JOIN operation o "
    f"WHERE p.entity = a.entity AND p.tx_to <= {{tx}} AND o.number = p.closed_by AND o.verb IN ({_FORGETTING})"
)
_VIEWS = {
    "operation": "SELECT * FROM operation WHERE tx <= {tx}",
    "period": f"SELECT number, entity, version, valid_from, valid_to, tx_from, {_CLOSED} FROM period WHERE tx_from <= {{tx}}",
    "link_period": f"SELECT number, link, claim, valid_from, valid_to, tx_from, {_CLOSED} FROM link_period WHERE tx_from <= {{tx}}",
    "linked": f"SELECT * FROM linked a WHERE {_KNOWN}",
    "removed": f"SELECT * FROM removed a WHERE {_KNOWN}",
    "changed": f"SELECT * FROM changed a WHERE {_KNOWN}",
    "covered": f"SELECT * FROM covered a WHERE {_KNOWN}",
    "absence": f"SELECT entity, valid_from, tx_from, valid_to, CASE WHEN tx_to <= {{tx}} THEN tx_to ELSE {OPEN} END AS tx_to, standing "
    "FROM absence WHERE tx_from <= {tx}",
    "undone": f"SELECT * FROM undone a WHERE {_KNOWN}",
    # a row has the last operation that forgot a thing; earlier ones have closed periods of it
    "forgotten": f"SELECT entity, CASE WHEN {_KNOWN} THEN operation ELSE (SELECT max(o.number) {_EARLIER}) END AS operation, word FROM forgotten a "
    f"WHERE {_KNOWN} OR EXISTS (SELECT 1 {_EARLIER})",
}
_NAMED = re.compile(r"\b(FROM|JOIN)(\s+)(\w+)")


def past_rows(database: RowReader, tx: Instant) -> Callable[..., list[tuple[Any, ...]]]:
    """Return a function that fetches the rows of a statement as they were known at an instant."""
    views = {f"past_{name}": view.format(tx=tx) for name, view in _VIEWS.items()}
    made: dict[str, str] = {}

    def fetch(statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        if statement not in made:
            made[statement] = with_views(_NAMED.sub(_renamed, statement), views)
        return database.rows(made[statement], values)

    return fetch


def _renamed(found: re.Match[str]) -> str:
    word, space, name = found.groups()
    return f"{word}{space}{'past_' if name in _VIEWS else ''}{name}"
