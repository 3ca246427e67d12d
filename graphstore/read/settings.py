"""Reads the settings of a store, and the snapshots among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.models import Snapshot
from graphstore.values.period import OPEN, Instant, instant, iso, moment

KEPT = "snapshot:"
"""The prefix of the names of settings that hold snapshots."""


class Setting(NamedTuple):
    """The value of a setting, as JSON."""

    value: str


class NamedSetting(NamedTuple):
    """The name of a setting, and its value as JSON."""

    name: str
    value: str


SETTING = Statement("setting", Setting)
SETTINGS = Statement("settings", NamedSetting)


def setting_at(point: Point, name: str) -> Any:
    """Return the value of a setting at `tx`; None if it was not set by then."""
    rows = point.rows(SETTING, name=name)
    return orjson.loads(rows[0].value) if rows else None


def setting(point: Point, name: str) -> Any:
    """Return the current value of a setting; None if it was never set."""
    return setting_at(Point(point.database, OPEN, OPEN), name)


def snapshots(point: Point) -> list[Snapshot]:
    """Return the snapshots made by `tx`, in order."""
    rows = point.rows(SETTINGS, first=KEPT, last=KEPT[:-1] + ";")  # `;` is the next character after `:`
    made = [snapshot_of(row.name.removeprefix(KEPT), orjson.loads(row.value)) for row in rows]
    return [snapshot for snapshot in made if instant(snapshot.tx) <= point.tx]


def setting_of(valid: Instant, tx: Instant, author: str | None) -> dict[str, str | None]:
    """Return the value of a setting that holds a snapshot."""
    return {"valid": iso(valid), "tx": iso(tx), "author": author}


def snapshot_of(name: str, kept: dict[str, Any]) -> Snapshot:
    """Return the snapshot with this name, from the value of its setting."""
    valid, tx = (moment(instant(kept[axis])) for axis in ("valid", "tx"))
    return Snapshot.made({"name": name, "valid": valid, "tx": tx, "author": kept["author"]})
