"""Makes the headers of the answer to a write: what the write made shaky, and which clients had received what it invalidated."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphstore.ledger import readings
from graphstore.store import readers
from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.store.store import Store

_log = logging.getLogger("graphstore")
_AGENTS, _IDS, _SHAKY = 20, 10, 20  # the most of each that the headers name


class WriteNote:
    """Holds what a write did: its tx if recorded readings may be affected, else 0, and the header that names what it made shaky."""

    def __init__(self) -> None:
        self.tx: Instant = 0
        self.headers: tuple[tuple[bytes, bytes], ...] = ()


@contextmanager
def noting_write(store: Store, written: WriteNote, part: Store | None = None) -> Iterator[WriteNote]:
    """Record what the block writes, unless it is part of a transaction. `part`: what a token with scopes sees; only that is recorded."""
    before = store.last_tx
    part = store if part is None and store._seen_scopes else part
    yield written
    if (tx := store.last_tx) == before:
        return
    if readings.is_recorded(store._ledger.database):
        written.tx = tx
    if ids := [id for id in store._ledger.made_shaky() if part is None or part.knows(id)]:
        told = json.dumps({"count": len(ids), "ids": ids[:_SHAKY]}).encode("ascii")
        written.headers = ((b"graphstore-shaky", told),)


def readers_header(store: Store, tx: Instant) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header that names agents whose earlier answers contained what a write invalidated; an empty tuple if there are none. Never raise."""
    try:
        found: dict[str, list[str]] = {}
        for each in readers.readers_of_write(store, tx):
            found.setdefault(each.agent, []).append(each.id)
    except Exception as error:  # the write stays committed
        _log.warning("whose answers no longer hold could not be listed: %r", error)
        return ()
    if not found:
        return ()
    some = {agent: list(dict.fromkeys(ids))[:_IDS] for agent, ids in list(found.items())[:_AGENTS]}
    return ((b"graphstore-readers", json.dumps(some).encode("ascii")),)
