"""Lets the rows of a ledger answer the reads of a view. Within a verb its working set does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from operator import attrgetter
from typing import Any, TypeVar, cast

from graphstore.core.read.sight import Core, LedgerRows
from graphstore.read.points import NotInRows, Point

Read = TypeVar("Read", bound=Callable[..., Any])


def rows_first(answer: Callable[..., Any]) -> Callable[[Read], Read]:
    """Let `answer` do a read outside of verbs. It takes a `Point` and what the read takes. Within a verb the working set answers."""
    return partial(_decorated, answer, attrgetter("answering"))


def working_set_first(answer: Callable[..., Any]) -> Callable[[Read], Read]:
    """Let `answer` do a read as in `rows_first`. A transaction answers it from its working set if that has what the read takes, and writes no rows then."""

    def decorated(read: Read) -> Read:
        by_rows = rows_first(answer)(read)

        @wraps(read)
        def reading(self: Any, *args: Any, **named: Any) -> Any:
            core = self._core
            if core.working is not None and core.is_worker and not core.in_verb:
                args = tuple(map(_again, args))
                with suppress(Exception), core.on_working_set():  # the rows tell the error
                    return read(self, *args, **named)
            return by_rows(self, *args, **named)

        return cast(Read, reading)

    return decorated


def committed_rows_first(answer: Callable[..., Any]) -> Callable[[Read], Read]:
    """Let `answer` do a read as in `rows_first`, which finds nothing of a transaction that is open."""
    return partial(_decorated, answer, attrgetter("answering_committed"))


def _decorated(
    answer: Callable[..., Any], answering: Callable[[Core], LedgerRows | None], read: Read
) -> Read:
    @wraps(read)
    def reading(self: Any, *args: Any, **named: Any) -> Any:
        core = self._core
        ledger = answering(core)
        if ledger is None:
            return read(self, *args, **named)
        args = tuple(map(_again, args))
        named = {name: _again(value) for name, value in named.items()}
        try:
            # before the snapshot: this follows other writers where another thread has just loaded the index
            valid, tx = self._coordinate()
            with ledger.snapshot() as database:
                return answer(Point(database, valid, tx, core.vocabulary), *args, **named)
        except NotInRows:
            return read(self, *args, **named)

    return cast(Read, reading)


def _again(value: Any) -> Any:
    """Return an argument that can be read twice."""
    return tuple(value) if hasattr(value, "__next__") else value
