"""Records what the answers of a server contained, for tokens that were made so or for all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from graphstore.ledger.readings import READER, Agent, AnswerToRecord
from graphstore.values.period import instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphstore.ledger.tokens import Grant
    from graphstore.remote.calls import Call
    from graphstore.server.requests import Apart, Response
    from graphstore.store.store import GraphStore

__all__ = ["READER", "ReadRecord"]

_log = logging.getLogger("graphstore")
_TABLES = frozenset({"query", "query_tables", "recipe", "changes_to", "to_arrow", "to_networkx"})
_OF_NO_THING = frozenset({"readers_of", "stats", "verify", "changes"})
"""Calls whose answers state nothing that a thing says."""


class ReadRecord:
    """Decides whose answers are recorded, and hands them over.

    Args:
        every: whether the answers to every token are recorded; else to those that were made so.
        days: how long a reading is kept; None for the default.
    """

    def __init__(self, store: GraphStore, *, every: bool = False, days: float | None = None) -> None:
        self._store, self._every, self._days = store, every, days
        if days is not None:
            store._record_reads(days)

    def within(self, store: GraphStore) -> ReadRecord:
        """Return the same for a part of the store."""
        return ReadRecord(store, every=self._every, days=self._days)

    def reader(self, grant: Grant | None, rights: str) -> Agent | None:
        """Return who is answered, by the name of the token or its rights; None where that is not recorded."""
        if grant is not None:
            is_recorded = bool(grant.name) and (
                self._every or grant.record_reads
            )  # others are lent to agents
            return Agent(grant.name, True, grant.scopes) if is_recorded else None
        return Agent(f"{rights} token") if self._every and rights in ("read", "write") else None

    def add(
        self, reader: Agent | None, call: Call, args: Mapping[str, Any], asked: Apart, found: Response
    ) -> None:
        """Hand over the answer to a call, if it is recorded. Never fails."""
        if reader is None or found.status != 200 or call.name in _OF_NO_THING:
            return
        try:
            recorder = self._store._record_reads(self._days)
            headers = dict(found.headers)
            valid, tx = (instant(headers[name].decode()) for name in (b"graphstore-valid", b"graphstore-tx"))
            about = args.get("id")
            recorder.add(
                AnswerToRecord(
                    reader,
                    call.name,
                    recorder.now(),
                    valid,
                    tx,
                    found.body,
                    branch=asked.branch or "",
                    ids=(about,) if isinstance(about, str) else (),
                    is_past=(asked.tx, asked.as_of) != (None, None),
                    is_table=call.name in _TABLES or call.name.startswith("tables."),
                )
            )
        except Exception as error:  # an answer that was given stays given
            _log.warning("what was answered was not recorded: %r", error)
