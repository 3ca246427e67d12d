"""Reads how far the copies in a store's folder had followed its ledger, or its journal of release 0.1, and removes them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson

from graphstore.ledger.files import open_plain, own_bytes, patiently, remove_cut, sync_folder
from graphstore.values.period import Instant, iso

NOTE = "graph.json"
OLD_VECTORS = "vectors-*"  # left by earlier versions and never read: vectors are computed again from texts
_SAVED = ("index.bin", "words.bin")  # copies of the index, left by earlier versions


class Reach(NamedTuple):
    """Tells how far a copy has followed its ledger or journal; `transactions` is None if their number was not recorded."""

    file: Path
    changed: int
    transactions: int | None
    last_tx: Instant


def known_reach(place: Path) -> Reach | None:
    """Return how far the graph tables had followed when they were last closed properly; None if that was not recorded."""
    file = place / NOTE
    try:
        note, changed = orjson.loads(own_bytes(file)), file.stat().st_mtime_ns
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(note, dict) or type(note.get("last_tx")) is not int:
        return None
    count = note.get("transactions")
    return Reach(file, changed, count if type(count) is int else None, note["last_tx"])


def saved_reach(place: Path) -> Reach | None:
    """Return how far release 0.1 had read the journal when it saved its index; None if it did not."""
    file = place / _SAVED[0]
    try:
        with open(open_plain(file, os.O_RDONLY), "rb") as saved:
            if not saved.readline(100).startswith(b"graphstore index "):
                return None
            header = orjson.loads(saved.read(int.from_bytes(saved.read(8), "little")))
        return Reach(file, file.stat().st_mtime_ns, int(header["transactions"]), int(header["last_tx"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def shortage(truth: Path, known: Reach | None, there: int, reached: Instant) -> str | None:
    """Return a message if the ledger or journal `truth` has lost transactions that a copy knows; None if it has them all.

    Args:
        there: its number of transactions.
        reached: the tx of the last one.
    """
    if known is None:
        return None
    file, changed, transactions, last_tx = known
    left = transactions - there if transactions is not None else int(last_tx > reached)
    try:
        if (
            left <= 0 or file.stat().st_mtime_ns != changed
        ):  # the copy was replaced meanwhile, and the ledger with it
            return None
    except OSError:
        return None
    count = f"{left}" if transactions is not None else "at least 1"
    return (
        f"{truth}: {count} {'transaction' if left == 1 else 'transactions'} missing: {file.name} was made when it reached to "
        f"{iso(last_tx)}, and now it ends at {iso(reached) if there else 'its beginning'} with {there}. Nothing was changed. "
        f"Bring back {truth.name}, or restore a dump or a backup into a new folder. To go on without what is missing, for good, remove {NOTE} first."
    )


def remove_copies(place: Path) -> None:
    """Remove copies that have contents, or positions that will change. Raises OSError."""
    remove_cut([*place.glob("graph.kuzu*"), *place.glob(OLD_VECTORS)])
    files = [place / name for name in _SAVED]
    for name in (*place.glob(f"{NOTE}*"), *files, *(file.with_suffix(".new") for file in files)):
        patiently(partial(name.unlink, missing_ok=True))
    sync_folder(place)
