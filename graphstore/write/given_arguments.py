"""Define what the chain records of the arguments that a caller gave to a verb. With it the verb can be repeated without reading any other operation.

The head of a line has them under `args`. It maps the number of an operation within the line to an object, with what the effects of the operation do not show.

- `valid_from`, `valid_to`, `at`: the bounds given. An open end that was given is null; a bound that was not given is absent.
- `supersedes`, `corrects`, `derived_from`, `related_to`, `members`: the ids given that were known at the time.
- `source`, `kind`, `target` of `unlink`: the sentence whose links were unlinked.
- `if_number`, `minor`: as given.
- `id` (of events and of values of a slot), `source`, `tags`: true if they were given. Their values are in the effects.
- `verb`: the verb that was called, if the operation has another name: a value that is stated again is a `confirm`.
- `links`: the links of the operation that no row shows. Each is a list: the id, the source, the kind, the target, the strength, flags, the maker. The flags are 1 for
  inferred plus 2 for history.
- `by` of `supersede`: the successor, if a link stated this already. Rows of earlier versions have it where `links` would show it.
- `ops`: the number of operations of the call, if there are several. This one is the first.

An operation without an entry was called with none of these. In a line of a bulk load the entry `*` names the verb `bulk_load`. Each of its operations is one row, which
states its whole period. Such an operation has `valid_from` only if its effects begin at another instant; without `valid_to`, none was given.

Texts and contents are stored only in bodies, so that erasing removes them. If no body of a version, an event or a link has them, the body of the operation has them under
`args`. This applies to the `patch` of `amend`. A confirmed value has there what differs from its version, with null for what the caller did not give.
The body of a version that was added and removed within one transaction is there under `described`, if its thing stayed. Of a thing that was added and removed itself,
nothing is stored.
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
"""Returns the entry of an argument, given the verb's context, the verb, and the name of the argument."""


class Verb(Generic[T]):
    """Holds a verb with the arguments that a caller gave. Each verb is a frozen dataclass. It checks the arguments once, when it is applied."""

    __slots__ = ()
    name: ClassVar[str]
    """The name of the verb in `GraphStore` and in the chain."""
    recorded: ClassVar[dict[str, Noted]]
    """The arguments that are recorded, each with the function that makes its entry."""

    def apply(self, act: Act) -> T:
        """Decide what changes, and change it in the working set of the transaction."""
        raise NotImplementedError

    def perform(self, act: Act) -> T:
        """Apply the verb. Its first operation records the arguments that its effects do not show."""
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
        """Return what the first operation of the verb records of the arguments. `opened`: the name of that operation."""
        entry: Json = {} if opened == self.name else {"verb": self.name}
        for name, noted in self.recorded.items():
            if getattr(self, name) is not None:
                entry |= noted(act, self, name)
        return entry


def known_ids(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of ids that were given, without unknown ids."""
    known = []
    for id in ids(name, getattr(verb, name)):
        with suppress(NotFoundError, InvalidError):  # an event is recorded without links to unknown things
            known.append(act.index.names[act.known(id)])
    return {name: known} if known else {}


def instant_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of an instant, as the verb has read it."""
    assert act.work.call is not None
    return {name: end_moment(act.work.call.times[name])}


def value_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of a value that is recorded as given."""
    value = getattr(verb, name)
    return {name: value} if value else {}


def is_given(act: Act, verb: Any, name: str) -> Json:
    """Return the entry of an argument whose value the effects show."""
    return {name: True}


PERIOD: dict[str, Noted] = {"valid_from": instant_given, "valid_to": instant_given}


def bounds(start: Instant | None, stop: Instant | None) -> Json:
    """Return the entry of a period of which at least one bound was given."""
    entry: Json = {} if start is None else {"valid_from": moment(start)}
    return entry if stop is None else {**entry, "valid_to": end_moment(stop)}
