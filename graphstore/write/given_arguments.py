"""What the chain records of the arguments that a caller gave to a verb, so that the verb can be done again without another operation.

A head has them under `args`: the number of an operation within its line -> an object with what the effects of the operation do not show.

- `valid_from`, `valid_to`, `at`: the bounds given. An open end that was given is null; a bound that was not given is absent.
- `supersedes`, `corrects`, `derived_from`, `related_to`, `members`: the ids given, of what was known then.
- `source`, `kind`, `target` of `unlink`: the sentence whose links were unlinked.
- `if_number`, `minor`: as given.
- `id` (of events and of values of a slot), `source`, `tags`: true where they were given. Their values are in the effects.
- `verb`: the verb that was called, where the operation has another name: a value that is said again is a `confirm`.
- `links`: the links of which no row shows that the operation said them. Each is a list: the id, the source, the kind, the target, the strength, 1 if it is
  inferred plus 2 if it states history, and who made it.
- `by` of `supersede`: what superseded, where a link said so already. Rows of earlier versions have it where `links` would show it.
- `ops`: how many operations the call consists of, where it is more than one. This one is the first.

An operation without an entry was called with nothing of this. In a line of a bulk load the entry `*` names the verb `bulk_load`: each operation is a row,
which states its whole period. Its `valid_from` is there only where its effects begin at another instant; a `valid_to` that is absent was not given.

Texts and contents are in bodies alone, so that erasing removes them. Where no body of a version, an event or a link has them, that of the operation has them
under `args`: the `patch` of `amend`; of a value that is confirmed what differs from the version that stands, null for what that has and the caller did not give.
So it has under `described` the body of a version that came and went within one transaction, of a thing that stayed. What a thing said that came and went
itself is not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from graphstore.errors import InvalidError, NotFoundError
from graphstore.values.inputs import ids
from graphstore.values.period import Instant, end_moment, moment
from graphstore.write.transaction import VerbCall

if TYPE_CHECKING:
    from graphstore.values.models import Json
    from graphstore.write.act import Act

T = TypeVar("T")
Noted = Callable[["Act", Any, str], "Json"]
"""Gives the entry of an argument: the verb's context, the verb, and the name of the argument."""


class Verb(Generic[T]):
    """A verb with the arguments that a caller gave. Each verb is a frozen dataclass, which checks them once, when it is applied."""

    __slots__ = ()
    name: ClassVar[str]
    """The name of the verb in `GraphStore` and in the chain."""
    recorded: ClassVar[dict[str, Noted]]
    """The arguments that are recorded, with what gives the entry of each."""

    def apply(self, act: Act) -> T:
        """Decide what changes, and change it in the working set of the transaction."""
        raise NotImplementedError

    def perform(self, act: Act) -> T:
        """Apply the verb. Its first operation records what its effects do not show of the arguments."""
        work = act.work
        before, call = work.call, VerbCall(partial(self.entry, act))
        work.call = call
        try:
            answer = self.apply(act)
            if call.first >= 0:
                work.record_call(call.first)
        finally:
            work.call = before
        return answer

    def entry(self, act: Act, opened: str) -> Json:
        """Return what is recorded of the arguments with an operation `opened`, the first of the verb."""
        entry: Json = {} if opened == self.name else {"verb": self.name}
        for name, noted in self.recorded.items():
            if getattr(self, name) is not None:
                entry |= noted(act, self, name)
        return entry


def known_ids(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of ids that were given, without those of which nothing is known."""
    known = []
    for id in ids(name, getattr(verb, name)):
        with suppress(NotFoundError, InvalidError):  # an event is recorded without a link to what is unknown
            known.append(act.index.names[act.known(id)])
    return {name: known} if known else {}


def instant_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of an instant, as the verb has read it."""
    assert act.work.call is not None
    return {name: end_moment(act.work.call.times[name])}


def value_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of a value that is recorded as it was given."""
    value = getattr(verb, name)
    return {name: value} if value else {}


def is_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of an argument whose value is in the effects."""
    return {name: True}


PERIOD: dict[str, Noted] = {"valid_from": instant_given, "valid_to": instant_given}


def bounds(start: Instant | None, stop: Instant | None) -> Json:
    """Return the entry of a period of which one bound or both were given."""
    entry: Json = {} if start is None else {"valid_from": moment(start)}
    return entry if stop is None else {**entry, "valid_to": end_moment(stop)}
