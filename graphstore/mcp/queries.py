"""Runs the Cypher of agents in separate processes, which start with the first call."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphstore.store.store import Store

QUERY_SECONDS = 10.0
"""The default time limit of an agent's Cypher text, in seconds."""


class QueriesApart:
    """Context manager: after `begin`, the Cypher of agents runs in separate processes. For a remote store its server does that."""

    def __init__(self, store: Store, seconds: float | None = None) -> None:
        self._store, self._seconds = store, QUERY_SECONDS if seconds is None else seconds
        self._lock, self._has_begun, self._stack = threading.Lock(), False, ExitStack()

    def __enter__(self) -> QueriesApart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._has_begun = True
        self._stack.close()

    def begin(self) -> None:
        """Start a process at the first call. Later calls do nothing. The engine starts slowly, and the first answer does not need it."""
        with self._lock:
            if self._has_begun:
                return
            self._has_begun = True
            if getattr(self._store, "_core", None) is None:
                return
            from graphstore.graph.workers import Allowance

            workers = self._stack.enter_context(self._store._queries_apart(Allowance(seconds=self._seconds)))
            if workers is not None:
                workers.warm()
