"""A process that follows the store, and notes what it sees at each transaction it has followed to."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import graphstore
from graphstore import GraphStoreError
from lab.notes import Notes, state, whence

TAKEN_BACK = "took back what this reader followed to last"


def follow(path: str, notes: Notes, seconds: float, *, faulty: bool) -> None:
    """Follow until the time is over. What a `faulty` follower is refused is no fault: its own system calls fail."""
    end = time.monotonic() + seconds
    store: Any = None
    surprised = 0
    while time.monotonic() < end:
        try:
            if store is None:
                store = graphstore.open(path, read_only=True)
            store.refresh()
            tx = store.stats()["last_tx"]
            if tx is not None:
                notes.add("saw", tx=tx, state=state(store, tx))
            time.sleep(0.02)
            surprised = 0
        except Exception as error:
            if isinstance(error, graphstore.EngineError) and TAKEN_BACK in str(error) and surprised < 20:
                notes.add("surprised")  # between a refresh and an answer: the next refresh knows
                surprised += 1
                continue
            known = isinstance(error, GraphStoreError)
            trace = "" if known else whence(error)
            notes.add(
                "refused" if faulty and known else "wrong",
                why=f"a follower: {type(error).__name__}: {error}",
                trace=trace,
            )
            if store is not None:
                store.close()
            store = None
            time.sleep(0.1)
    if store is not None:
        store.close()


def main() -> None:
    """Follow a store."""
    said = argparse.ArgumentParser()
    said.add_argument("path")
    said.add_argument("--name", required=True)
    said.add_argument("--seconds", type=float, required=True)
    said.add_argument("--faulty", action="store_true")
    said.add_argument("--notes", type=Path, required=True)
    told = said.parse_args()
    notes = Notes(told.notes / f"follower-{told.name}.jsonl")
    follow(told.path, notes, told.seconds, faulty=told.faulty)


if __name__ == "__main__":
    main()
