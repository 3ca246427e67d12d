"""Answer as if some operations had never been recorded: repeat the rest of the chain in a store in memory.

The chain up to the first omitted operation is copied. Each later call is repeated with the arguments that were given, at the instant of its transaction. Calls that cannot
be done without the omitted operations are left out too, and listed. The original store is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from datetime import datetime
from typing import NamedTuple

from graphstore.errors import EngineError, GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.chain import FORGETTING, OF_BRANCHES, TOUCH, UNDO, Verbatim
from graphstore.ledger.database import Database
from graphstore.ledger.folder import Folder
from graphstore.ledger.ledger import Ledger
from graphstore.store.calls_again import Again, Line, Skipped
from graphstore.values.findings import Counterfact, LeftOutOperation
from graphstore.values.inputs import text_of
from graphstore.values.period import Instant, TimeLike, exactly, moment
from graphstore.view.view import View
from graphstore.write.recorded_calls import ChainReader, RecordedCall, RecordedOperation, RecordedTransaction

_SECOND = 1_000_000


class Omitted(NamedTuple):
    """Selects the operations to omit: those that match all given fields."""

    source: str | None = None
    author: str | None = None
    id: str | None = None
    tx: Instant | None = None

    def fits(self, call: RecordedCall, tx: Instant) -> bool:
        """Return True if a call is omitted. Forgetting is never omitted."""
        if call.first.verb in FORGETTING or (self.tx is not None and self.tx != tx):
            return False
        if self.author is not None and not _is_of(call.first.author, self.author):
            return False
        if self.source is not None and not any(_is_of(each, self.source) for each in _sources(call.first)):
            return False
        return self.id is None or any(op.subject == self.id for op in call.ops)


def _is_of(name: str | None, wanted: str) -> bool:
    """Return True if a name is the wanted one or has it as its class, the part before its first colon."""
    return name is not None and (name == wanted or name.partition(":")[0] == wanted)


def _sources(op: RecordedOperation) -> Iterator[str | None]:
    """Yield the sources of a call: those of its descriptions, and the makers of its links."""
    if op.verb not in ("revise", "amend") or op.args.get("source"):
        for version in op.versions.values():
            yield (version.body or {}).get("source")
    yield op.held.get("source")
    yield op.own.get("source")
    if op.verb in ("link", "supersede"):
        for link in op.links:
            yield link.created_by


class Counterfactual(View):
    """A view of what would be believed without some operations.

    `left_out`: the operations that could not be done without the omitted ones. `omitted`: the number of omitted operations. `by_effects`: True if some were repeated by
    their effects, since release 0.1 recorded no arguments. A bound that was not given then counts as given.
    """

    __slots__ = ("_of", "_of_core", "_store", "by_effects", "left_out", "omitted")

    def __init__(
        self, store: Line, line: Line, of: Line, coordinate: tuple[Instant, Instant], done: _Doing
    ) -> None:
        super().__init__(line._core, *coordinate)
        self._of_core = of._core
        self._store = store  # keeps the store alive as long as the view
        self._of = done.of._ledger
        self.left_out: tuple[LeftOutOperation, ...] = tuple(done.left_out)
        self.omitted: int = done.omitted
        self.by_effects: bool = done.by_effects

    @property
    def _asked_of(self) -> object:
        return self._of

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> Counterfactual:
        """Return this view at another coordinate; each axis defaults to the present one."""
        made = copy(self)
        if valid is not None:
            made._valid = self._store.instant_of(valid, "valid")
        if tx is not None:
            made._tx = min(self._store.instant_of(tx, "tx", "tx"), self._tx)
        return made

    @property
    def counterfact(self) -> Counterfact:
        """Return what was omitted and left out, and how the beliefs differ."""
        now = View(self._of_core, self._valid, self._tx)
        return Counterfact(
            at=self.at,
            omitted=self.omitted,
            by_effects=self.by_effects,
            left_out=self.left_out,
            difference=now.compare(self),
        )

    def __copy__(self) -> Counterfactual:
        made = object.__new__(Counterfactual)
        for name in ("_core", "_valid", "_tx", *Counterfactual.__slots__):
            setattr(made, name, getattr(self, name))
        return made

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, without {self.omitted} operations and {len(self.left_out)} that need them>"


class _ClockOfCalls:
    """The clock of the store in memory: the instant of the transaction that is being repeated."""

    def __init__(self) -> None:
        self.now: Instant = 0

    def __call__(self) -> datetime:
        return moment(self.now)


class _Doing:
    """Repeats the calls of a chain, without some of them."""

    def __init__(
        self, store: Line, omitted: Omitted, chain: Iterable[Verbatim], new_store: Line, is_part: bool
    ) -> None:
        self.of, self.wanted = store, omitted
        self._chain, self._new_store, self._is_part = chain, new_store, is_part
        self.left_out: list[LeftOutOperation] = []
        self.omitted, self.by_effects = 0, False
        self._clock = _ClockOfCalls()

    def done(self, now: Instant) -> Line:
        """Return the store in memory. `now`: the instant at which its clock stops."""
        reader = ChainReader()
        transactions = list(reader.transactions(self._chain))
        first = self._first(transactions)
        if self._is_part:
            _refuse_outside(transactions[first:])
        place = Folder.in_memory()
        place.hold()
        self._copy(place, (line for each in transactions[:first] for line in each.lines))
        made = self._new_store(
            place, clock=self._clock, driver=self.of._core.graphs.driver, durability="none", author=None
        )
        again = Again(made, self.of, reader)
        for each in transactions[first:]:
            self._transaction(made, again, each)
        self._clock.now = max(now, self._clock.now)
        made._given = ()
        return made

    def _copy(self, place: Folder, lines: Iterable[Verbatim]) -> None:
        ledger = Ledger(Database(place.file, durability="none"))
        try:
            with ledger.database.transaction():
                ledger.append_verbatim(lines)
        finally:
            ledger.close()

    def _first(self, transactions: list[RecordedTransaction]) -> int:
        """Return the first transaction to repeat: the first with an omitted call, or an earlier one whose content was forgotten later."""
        count = len(transactions)
        first = next((at for at, each in enumerate(transactions) if self._any(each)), count)
        if any(each.is_forgetting for each in transactions[first:]):
            first = next((at for at in range(first) if transactions[at].lacks_bodies), first)
        return first

    def _any(self, recorded: RecordedTransaction) -> bool:
        return any(self.wanted.fits(call, recorded.tx) for call in recorded.calls)

    def _transaction(self, made: Line, again: Again, recorded: RecordedTransaction) -> None:
        kept = []
        for call in recorded.calls:
            if self.wanted.fits(call, recorded.tx):
                self.omitted += len(call.ops)
            elif call.first.verb != TOUCH:
                kept.append(call)
        self.by_effects = self.by_effects or (bool(kept) and not recorded.has_arguments)
        self._clock.now = recorded.tx
        made._given = [recorded.tx]
        if not kept:
            return
        try:
            line = made if recorded.branch is None else made.on(recorded.branch)
        except GraphStoreError as error:
            self._leave_out(recorded, kept, str(error))
            return
        again.begin(line, recorded)
        if recorded.is_bulk or kept[0].first.verb in OF_BRANCHES | {UNDO, *FORGETTING}:
            self._alone(again, recorded, kept)
            return
        try:
            with line.transaction(author=recorded.author, reason=recorded.reason):
                for call in kept:
                    self._try(recorded, call, again.call)
        except GraphStoreError as error:
            self._leave_out(recorded, kept, str(error))

    def _alone(self, again: Again, recorded: RecordedTransaction, kept: list[RecordedCall]) -> None:
        """Repeat calls that form a transaction of their own."""
        try:
            again.alone(kept)
        except (GraphStoreError, Skipped) as error:
            self._leave_out(recorded, kept, str(error))

    def _try(
        self, recorded: RecordedTransaction, call: RecordedCall, do: Callable[[RecordedCall], None]
    ) -> None:
        try:
            do(call)
        except EngineError:
            raise
        except (GraphStoreError, Skipped) as error:
            self._leave_out(recorded, [call], str(error))

    def _leave_out(self, recorded: RecordedTransaction, calls: list[RecordedCall], why: str) -> None:
        at = moment(recorded.tx)
        self.left_out += [
            LeftOutOperation(tx=at, verb=op.verb, subject=op.subject, branch=recorded.branch, reason=why)
            for op in (call.first for call in calls)
        ]


def _refuse_outside(transactions: Iterable[RecordedTransaction]) -> None:
    """Raise InvalidError if an operation outside of a token's scopes changed something inside. Only its effects are visible, so it cannot be repeated."""
    for each in transactions:
        if any(not op.subject for call in each.calls for op in call.ops):
            raise InvalidError(
                f"at {exactly(each.tx)} something outside of your scopes changed something inside. That cannot be done again from what you "
                "see, so the answer would not be exact. Ask with a token without scopes."
            )


def without(
    store: Line, omitted: Omitted, chain: Iterable[Verbatim], new_store: Line, *, is_part: bool
) -> Counterfactual:
    """See `Store.without`. `new_store`: the class of a whole store; `is_part`: the chain is that of some scopes."""
    id, tx = omitted.id, omitted.tx
    for name, value in zip(("source", "author", "id"), omitted, strict=False):
        if value is not None:
            text_of(name, value)
    if omitted == Omitted():
        raise InvalidError(
            "without() of nothing. Give source=, author=, id= or tx=: what had never been recorded."
        )
    trunk = store._trunk
    valid, known = store.coordinate()
    doing = _Doing(trunk, omitted, chain, new_store, is_part)
    made = doing.done(max(valid, known))
    if not doing.omitted and (id is not None or tx is not None):
        made.close()
        what = f"of {id!r}" if id is not None else f"at tx {exactly(tx or 0)}"
        raise NotFoundError(
            f"no operation {what} was recorded by these. changes() lists them, operations(id) those of one thing."
        )
    with ExitStack() as stack:
        stack.callback(made.close)
        line = made if store is trunk else made.on(store.name)
        stack.pop_all()
    return Counterfactual(made, line, store, (valid, known), doing)


ARGUMENTS = ("source", "author", "id", "tx")
"""The arguments that select the omitted operations."""


def arguments(text: str) -> dict[str, str]:
    """Parse a text such as `author=ben` or `source=crawler,author=ben`. Raises InvalidError for one that names nothing."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not value or name.strip() not in ARGUMENTS or name.strip() in found:
            raise InvalidError(
                f"without {text!r} is none. Give source=, author=, id= or tx=, such as author=ben."
            )
        found[name.strip()] = value
    return found
