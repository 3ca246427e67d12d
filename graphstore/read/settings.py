"""The settings of a store, and the snapshots among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from graphstore.ledger.database import Database
from graphstore.ledger.statements import Statement
from graphstore.read.happened import SETTING
from graphstore.read.points import Point
from graphstore.values.models import Snapshot
from graphstore.values.period import OPEN, Instant, instant
from graphstore.values.snapshot_settings import KEPT, snapshot_of


class Named(NamedTuple):
    """The value of a setting, as JSON, and its name."""

    name: str
    value: str


SETTINGS = Statement("settings", Named)


def setting(database: Database, name: str, tx: Instant = OPEN) -> Any:
    """Return the value that a setting of the store had as known at `tx`; None when it was not set by then."""
    rows = Point(database, OPEN, tx).rows(SETTING, name=name)
    return orjson.loads(rows[0].value) if rows else None


def snapshots(database: Database, tx: Instant) -> list[Snapshot]:
    """Return the snapshots made by `tx`, in order."""
    rows = SETTINGS.rows(database, {"first": KEPT, "last": KEPT[:-1] + ";"})  # ";" comes after ":"
    made = [snapshot_of(row.name.removeprefix(KEPT), orjson.loads(row.value)) for row in rows]
    return [snapshot for snapshot in made if instant(snapshot.tx) <= tx]
