"""Writes for a token with scopes: first on the part of the store that it sees, then on the store itself, with the same instant and ids.

Refusals and answers come from the part, so neither reveals anything outside the scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from graphstore.errors import ConflictError, EngineError, GraphStoreError, InvalidError
from graphstore.ledger.scoped_rows import within
from graphstore.server import resent, write_headers
from graphstore.server.requests import Apart, Refused, Request
from graphstore.values.drawn_ids import given, noted
from graphstore.values.period import OPEN, Instant

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

Work = Callable[["GraphStore"], bytes]
_OF_THINGS = "add_node revise amend supersede end retract link unlink resolve fold join split confirm record_event touch"
EVERYDAY = frozenset(_OF_THINGS.split())
"""Verbs on a few things by their ids."""
CALLS = EVERYDAY | {"timeline.record_message"}
"""The calls by which such a token may write. Each acts on things by their ids, and creates things in a scope."""
PART_CALLS = frozenset({"forget"})
"""Calls that run on the part alone: it decides by what it sees, and has the store do exactly that."""
_SAYS_SCOPE = {"add_node": "scope"}
_ELSEWHERE = (
    "this cannot be done here: a setting of the store, such as whom it trusts, or what is outside your scopes is in its way. "
    "Ask who has a token without scopes."
)
_SAYS_METADATA = ("record_event", "timeline.record_message")


class Main(Protocol):
    """Answers for the whole store."""

    store: GraphStore

    async def turn(self, work: Callable[[], Any], *, alone: bool, within: str | None = None) -> Any:
        """Run `work` on the writer's thread."""

    async def aside(self, work: Callable[[], Any]) -> Any:
        """Run a function on a reader's thread."""

    async def begin(
        self, asked: Mapping[str, Any], apart: Apart, around: Callable[..., Any] | None = None
    ) -> tuple[str, str]:
        """Begin a transaction."""

    async def end(
        self, token: str, *, commit: bool, request: Request | None = None
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Commit or abort a transaction."""


class ScopedWrites:
    """Executes the writes of one set of scopes. `main` answers for the whole store, `part` is what the scopes contain of it."""

    def __init__(self, main: Main, part: GraphStore, scopes: tuple[str, ...]) -> None:
        self.main, self._part, self._scopes = main, part, scopes
        self._born: Callable[[], list[Any]] | None = None  # returns what the transaction has created so far
        self._checked = 0
        self._written: Instant = -OPEN

    def written(self) -> Instant:
        """Return the tx of the last durable write of these scopes. Writes of others do not change it."""
        return self._written if self._written <= self.main.store._written else -OPEN

    def arguments(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with a scope for what it creates, if they have none. Raise Refused (403) for calls on the whole store."""
        if name not in CALLS:
            raise Refused(403, f"{name} is of the whole store. It wants a token without scopes.")
        given = dict(args)
        if name in _SAYS_SCOPE and given.get("scope") is None:
            given["scope"] = self._scopes[0]
        if name in _SAYS_METADATA:
            metadata = given.get("metadata") or {}
            if isinstance(metadata, dict):
                given["metadata"] = {"scope": self._scopes[0], **metadata}
        return given

    async def write(
        self,
        work: Work,
        apart: Apart,
        request: Request | None,
        written: write_headers.WriteNote,
        *,
        author: str | None = None,
        reason: str | None = None,
    ) -> bytes:
        """Run `work` on the part and on the store, alone on the writer's thread. Return its answer on the part. `written`: receives what it did."""
        if apart.transaction is not None:
            return await self.main.turn(  # type: ignore[no-any-return]
                partial(self._both, work), alone=True, within=apart.transaction
            )
        store, id = self.main.store, None if request is None else request.id
        since = store._done_elsewhere()
        if (
            request is not None
            and request.again
            and await self.main.aside(partial(resent.kept_of, store, request.id))
        ):
            raise EngineError(
                "this was done, and the server ended before it could answer. Read what it was about.",
                outcome="kept",
            )

        def alone() -> bytes:
            how = {"author": author or apart.author, "reason": reason}
            with store._asked_by(id, since), self.transaction(written, **how):
                return self._both(work)

        return await self.main.turn(alone, alone=True)  # type: ignore[no-any-return]

    async def write_part(self, work: Work) -> bytes:
        """Run one of `PART_CALLS` on the part, alone on the writer's thread. A refusal by the store reveals nothing of what is outside."""

        def alone() -> bytes:
            try:
                return work(self._part)
            except ConflictError as error:
                raise ConflictError(_ELSEWHERE) from error

        return await self.main.turn(alone, alone=True)  # type: ignore[no-any-return]

    @contextmanager
    def transaction(self, written: write_headers.WriteNote, **how: Any) -> Iterator[None]:
        """Open a transaction of the store, and one of the part that is rolled back. `written`: receives what it did."""
        store = self.main.store
        with write_headers.noting_write(store, written, self._part), store.transaction(**how):
            tx = store.coordinate()[1]
            with self._part._tried(tx, how.get("author"), how.get("reason")) as born:
                self._born, self._checked = born, 0
                try:
                    yield
                finally:
                    self._born = None
        if store.last_tx == tx:
            self._written = tx

    def _both(self, work: Work) -> bytes:
        if self._born is None:
            raise ConflictError("no transaction by that token. Begin one: POST /transaction.")
        with self._part.verb(), noted() as drawn:
            found = work(self._part)
            made = self._born()
            for thing in made[self._checked :]:
                self._refuse(thing, drawn)
            try:
                self._part._hide_rows()  # the rows that were only tried
                with given(drawn):
                    work(self.main.store)
                self.main.store._hide_rows()
            except GraphStoreError as error:
                raise ConflictError(_ELSEWHERE) from error
        self._checked = len(made)
        return found

    def _refuse(self, thing: Any, drawn: list[str]) -> None:
        """Raise InvalidError for a thing outside the scopes, or with a chosen id that something outside may have."""
        if not thing.is_link and not within(thing.scope, self._scopes):
            said = "no scope" if thing.scope is None else f"scope {thing.scope!r}"
            raise InvalidError(
                f"{thing.id!r} would be of {said}. This token writes {self._allowed()} and below."
            )
        if thing.id not in drawn and not any(thing.id.startswith(f"{scope}/") for scope in self._scopes):
            raise InvalidError(
                f"the id {thing.id!r} cannot be chosen with this token. Leave it out, or begin it with {self._scopes[0]}/."
            )

    def _allowed(self) -> str:
        return " or ".join(self._scopes)
