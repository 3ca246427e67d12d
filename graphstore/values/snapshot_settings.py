"""The settings that hold snapshots."""

from __future__ import annotations

from typing import Any

from graphstore.values.models import Snapshot
from graphstore.values.period import Instant, instant, iso, moment

KEPT = "snapshot:"
"""The prefix of the settings that hold snapshots."""


def as_kept(valid: Instant, tx: Instant, author: str | None) -> dict[str, str | None]:
    """Return the setting of a snapshot."""
    return {"valid": iso(valid), "tx": iso(tx), "author": author}


def snapshot_of(name: str, kept: dict[str, Any]) -> Snapshot:
    """Return the snapshot of that name that a setting holds."""
    return Snapshot.made(
        {
            "name": name,
            "valid": moment(instant(kept["valid"])),
            "tx": moment(instant(kept["tx"])),
            "author": kept["author"],
        }
    )
