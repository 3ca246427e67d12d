"""Answers requests that are sent again after their server ended without an answer. What was committed is not done twice.

The answer is computed again on a copy of the store as it was before, with the same ids and instants.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import graphstore
from graphstore.errors import EngineError, LockedError
from graphstore.ledger.chain import TOUCH, dumps
from graphstore.ledger.creating import create_ledger
from graphstore.ledger.damage import checked_head
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.processes import lives
from graphstore.values.drawn_ids import given
from graphstore.values.period import Instant, instant, moment

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

T = TypeVar("T")
_REACH = 100_000  # lines searched from the end: a request is sent again within minutes
_COPY = "graphstore-copy-"
_OF_REQUEST = "SELECT number, head, digest FROM chain WHERE number > (SELECT max(number) FROM chain) - ? AND instr(head, ?) ORDER BY number"


class RequestedTransaction(NamedTuple):
    """A transaction of a request: the number of its first line, and the head of that line."""

    number: int
    head: dict[str, Any]


def is_held_elsewhere(store: GraphStore) -> bool:
    """Return True if another process holds the write lock, and so may have a transaction open."""
    with closing(store._ledger.database.again(timeout=store._place.timeout)) as database:
        try:
            with database.transaction():
                return False
        except LockedError:
            return True


def kept_of(store: GraphStore, request: str) -> list[RequestedTransaction]:
    """Return the committed transactions of a request, from any server, oldest first. Only the last lines of the journal are searched."""
    with closing(store._ledger.database.again(read_only=True)) as database:
        rows = database.rows(_OF_REQUEST, (_REACH, b'"request":' + dumps(request)))
        heads = [(row[0], checked_head(database, *row)) for row in rows]
    return [RequestedTransaction(number, head) for number, head in heads if head.get("request") == request]


def _copy_before(store: GraphStore, first: RequestedTransaction, folder: Path) -> None:
    """Create a store from the lines that `store` had before a transaction."""
    folder.mkdir()
    create_ledger(folder / NAME)
    with (
        closing(store._place.read_ledger()) as source,
        closing(Ledger(Database(folder / NAME))) as target,
        target.database.transaction(),
    ):
        target.append_verbatim(source.verbatim(first.number - 1))


def copy_folder() -> Path:
    """Return a new folder for a copy of a store, readable only by this user. Remove the folders of processes that have ended."""
    for left in Path(tempfile.gettempdir()).glob(f"{_COPY}*"):
        pid = left.name.removeprefix(_COPY).partition("-")[0]
        if pid.isdigit() and not lives(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_COPY}{os.getpid()}-"))


def answered_again(store: GraphStore, request: str, work: Callable[[GraphStore], T]) -> T:
    """Return the answer to a request whose transactions were committed but not answered. Raise EngineError with the outcome if that fails."""
    kept = kept_of(store, request)
    store._written = max(store._written, *(instant(one.head["tx"]) for one in kept))
    instants = [instant(one.head["tx"]) for one in kept]
    last = moment(instants[-1])
    folder = copy_folder()
    try:
        _copy_before(store, kept[0], folder / "store")
        with graphstore.open(folder / "store", author=store._author) as copy:
            copy._given = instants
            copy._clock = partial(_now, copy, instants)
            with given(name for one in kept for name in _named(one.head)), copy._asked_by(request):
                value = work(copy)
            again = kept_of(copy, request)
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
    """Return the time on a copy: that of the open or last transaction, and just before the next one for reads."""
    at = next((at for at in instants if at > copy.last_tx), None)
    if at is None:
        return moment(instants[-1])
    return moment(at if copy._open is not None else at - 1)


def _named(head: dict[str, Any]) -> Iterator[str]:
    for name, *_ in [*head.get("entities", ()), *head.get("links", ())]:
        yield name


def _said(head: dict[str, Any]) -> tuple[Any, ...]:
    """Return the effects of a transaction, apart from its position in the ledger."""
    ops = [tuple(op[:2]) for op in head.get("ops", ()) if op[0] != TOUCH]
    return head["tx"], list(_named(head)), ops
