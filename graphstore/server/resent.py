"""Requests that are sent again to the next server, after theirs has ended without an answer: what was kept of one is not done twice.

Its answer is made once more: on a copy of the store as it was before, with the same ids and instants.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import graphstore
from graphstore.core.journal.asked import Asked, copy_until, transactions_of
from graphstore.core.journal.line import TOUCH
from graphstore.errors import EngineError
from graphstore.server.beside import copy_folder
from graphstore.values.period import Instant, instant, moment

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

T = TypeVar("T")


def kept_of(store: GraphStore, request: str) -> list[Asked]:
    """The transactions that the store has of a request, of other servers over it too. Raises EngineError, `unknown`, where these cannot be asked."""
    try:
        if store._place.shared:
            store.refresh()
    except EngineError as error:
        error.outcome = "unknown"
        raise
    return [] if store.path is None else transactions_of(Path(store.path) / "journal", request)


def answered_again(store: GraphStore, request: str, work: Callable[[GraphStore], T]) -> T:
    """What some work gave that made these transactions, which nobody heard. Raises EngineError, with the outcome, where it cannot be told, or was broken off."""
    assert store.path is not None
    kept = kept_of(store, request)
    store._written = max(store._written, *(instant(one.head["tx"]) for one in kept))
    instants = [instant(one.head["tx"]) for one in kept]
    journal, last = Path(store.path) / "journal", moment(instants[-1])
    folder = copy_folder()
    try:
        copy_until(journal, kept[0], folder / "store" / "journal")
        with graphstore.open(folder / "store", author=store._author) as copy:
            copy._given = instants
            copy._clock = partial(_now, copy, instants)
            with copy._naming(name for one in kept for name in _named(one.head)), copy._asked_by(request):
                value = work(copy)
        again = transactions_of(folder / "store" / "journal", request)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if [_said(one.head) for one in again[: len(kept)]] != [_said(one.head) for one in kept]:
        raise EngineError(
            f"this was done, and the server ended before it could answer; the answer cannot be made again. changes() has what was written at {last.isoformat()}.",
            outcome="kept",
            tx=last,
        )
    if len(again) > len(kept):
        raise EngineError(
            f"the server ended in the middle of this: {len(kept)} of its {len(again)} transactions were kept. changes() has the last at {last.isoformat()}.",
            outcome="unknown",
            tx=last,
        )
    return value


def _now(copy: GraphStore, instants: Sequence[Instant]) -> datetime:
    """The time on a copy: that of the transaction which is open or was the last, and just before it for who reads first."""
    at = next((at for at in instants if at > copy._last_tx), None)
    if at is None:
        return moment(instants[-1])
    return moment(at if copy._open is not None else at - 1)


def _named(head: dict[str, Any]) -> Iterator[str]:
    for name, *_ in [*head.get("entities", ()), *head.get("links", ())]:
        yield name


def _said(head: dict[str, Any]) -> tuple[Any, ...]:
    """What a transaction did, apart from where it stands in its journal."""
    ops = [tuple(op[:2]) for op in head.get("ops", ()) if op[0] != TOUCH]
    return head["tx"], list(_named(head)), ops
