"""Serves one agent over standard input and output."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import anyio

from graphstore.mcp.protocol import Server, server
from graphstore.mcp.queries import QueriesApart
from graphstore.store.store import Store

__all__ = ["over_stdio"]

_SIGNAL_SECONDS = 0.2  # on Windows, a join without a timeout is not interrupted by Ctrl-C


def over_stdio(store: Store, **how: Any) -> None:
    """Serve one client over standard input and output until it closes its end. Nothing else may write to standard output.

    `how`: as for `graphstore.mcp.server`.
    """
    log_plainly()
    with QueriesApart(store, how.get("query_seconds")) as apart:
        _run(server(store, before_first_call=apart.begin, **how))


def _run(serving: Server) -> None:
    outcome: list[BaseException] = []

    def serve() -> None:
        try:
            anyio.run(serving.run_stdio_async)
        except BaseException as error:
            outcome.append(error)

    # in another thread: a read of standard input cannot be interrupted, so here Ctrl-C would wait for the next line
    thread = threading.Thread(target=serve, name="graphstore-mcp", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_SIGNAL_SECONDS)
    finally:
        serving.stop_queries()
    if outcome:
        raise outcome[0]


def log_plainly() -> None:
    """Write warnings to standard error, one line each."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr)
