"""Records what the answers of a server contained, for all tokens or for those made so."""

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
"""Calls whose answers contain no statement of a node or event."""


class ReadRecord:
    """Decides whose answers are recorded, and passes them to the recorder.

    Args:
      every: record the answers to every token; otherwise only to tokens made with `--record-reads`.
      days: how long a reading is kept, in days; None for the default.
    """

    def __init__(self, store: GraphStore, *, every: bool = False, days: float | None = None) -> None:
        self._store, self._every, self._days = store, every, days
        if days is not None:
            store._record_reads(days)

    def within(self, store: GraphStore) -> ReadRecord:
        """Return a ReadRecord with these settings for a part of the store."""
        return ReadRecord(store, every=self._every, days=self._days)

    def reader(self, grant: Grant | None, rights: str) -> Agent | None:
        """Return the agent that is answered, by the name of its token or its rights; None if the answer is not recorded."""
        if grant is not None:
            is_recorded = bool(grant.name) and (
                self._every or grant.record_reads
            )  # grants without a name are lent to agents
            return Agent(grant.name, True, grant.scopes) if is_recorded else None
        return Agent(f"{rights} token") if self._every and rights in ("read", "write") else None

    def add(
        self, reader: Agent | None, call: Call, args: Mapping[str, Any], asked: Apart, found: Response
    ) -> None:
        """Pass the answer to the recorder, if it is to be recorded. Never raise."""
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
        except Exception as error:  # the answer was already given
            _log.warning("what was answered was not recorded: %r", error)
