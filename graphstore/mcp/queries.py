"""Runs agents' Cypher in processes of its own."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphstore.store.store import Store

QUERY_SECONDS = 10.0
"""How long a Cypher text of an agent may run, by default."""


class QueriesApart:
    """A block in which agents' Cypher runs in processes of its own, once it has begun. That of a store which a server holds does so there."""

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
        """Have a process ready, from the first call on: the engine takes a while to start, and the first answer does not need it."""
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
