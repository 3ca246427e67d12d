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

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from graphstore.errors import InvalidError, NotFoundError
from graphstore.values.inputs import ids
from graphstore.values.period import Instant, end_moment, moment
from graphstore.write import act as acts

if TYPE_CHECKING:
    from graphstore.values.models import Json
    from graphstore.view.sight import Core
    from graphstore.write.act import Act
    from graphstore.write.transaction import Transaction

P = ParamSpec("P")
T = TypeVar("T")
Given = Mapping[str, Any]

called: ContextVar[tuple[str, Given] | None] = ContextVar("called", default=None)
"""The verb that a caller called in this thread, and the arguments given, until the verb begins."""


def known_ids(act: Act, given: Given, name: str) -> Json:
    """Return the entry of ids that were given, without those of which nothing is known."""
    known = []
    for id in ids(name, given[name]):
        with suppress(NotFoundError, InvalidError):  # an event is recorded without a link to what is unknown
            known.append(act.index.names[act.known(id)])
    return {name: known} if known else {}


def _instant(act: Act, given: Given, name: str) -> Json:
    assert act.work.call is not None
    return {name: end_moment(act.work.call.times[name])}


def _value(act: Act, given: Given, name: str) -> Json:
    return {name: given[name]} if given[name] else {}


def _whether(act: Act, given: Given, name: str) -> Json:
    return {name: True}


def _whether_in_slot(act: Act, given: Given, name: str) -> Json:
    return {name: True} if given.get("key") is not None else {}


def _sentence(act: Act, given: Given, name: str) -> Json:
    said = act.core.vocabulary.sentence(given["source"], given["kind"], given["target"], "explicit")
    names = act.index.names
    return {
        "source": names[act.known(said.source)],
        "kind": said.kind.name,
        "target": names[act.known(said.target)],
    }


def _by_known(act: Act, given: Given, name: str) -> Json:
    index, by = act.index, act.known(given["by"])
    said = index.saying(by, "supersedes", act.known(given["old"]))
    return {"by": index.names[by]} if any(index.believed_link(link, act.work.tx) for link in said) else {}


Noted = Callable[["Act", Given, str], "Json"]
"""Gives the entry of an argument: the verb's context, all that was given, and the name of the argument."""

_PERIOD: dict[str, Noted] = {"valid_from": _instant, "valid_to": _instant}
_NAMED: dict[str, Noted] = {"supersedes": known_ids, "corrects": known_ids, "derived_from": known_ids}

RECORDED: dict[str, dict[str, Noted]] = {
    "add_node": {**_PERIOD, **_NAMED, "id": _whether_in_slot},
    "revise": {**_PERIOD, "tags": _whether, "source": _whether, "minor": _value, "if_number": _value},
    "amend": {**_PERIOD, "source": _whether, "if_number": _value},
    "end": {"at": _instant, "if_number": _value},
    "retract": {**_PERIOD, "if_number": _value},
    "fold": {"members": known_ids},
    "confirm": {"source": _whether, "if_number": _value},
    "supersede": {"valid_from": _instant, "if_number": _value, "by": _by_known},
    "link": _PERIOD,
    "unlink": {**_PERIOD, "source": _sentence},
    "record_event": {"id": _whether, "related_to": known_ids},
}
"""The arguments that are recorded, by verb."""


def bounds(start: Instant | None, stop: Instant | None) -> Json:
    """Return the entry of a period of which one bound or both were given."""
    entry: Json = {} if start is None else {"valid_from": moment(start)}
    return entry if stop is None else {**entry, "valid_to": end_moment(stop)}


def entry_of(core: Core, work: Transaction, called_verb: str, given: Given, verb: str) -> Json:
    """Return what an operation `verb`, the first of a call, records of the arguments given to the verb that was called."""
    act, recorded = acts.Act(core, work), RECORDED[called_verb]
    entry: Json = {} if verb == called_verb else {"verb": called_verb}
    for name, value in given.items():
        if name in recorded and value is not None:
            entry |= recorded[name](act, given, name)
    return entry


def records_arguments(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb of a store that records the arguments given with its first operation. Iterators among them are read once."""
    names = [
        each.name
        for each in signature(verb).parameters.values()
        if each.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]

    @wraps(verb)
    def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
        read: Any = [_readable(each) for each in args]
        named: Any = {name: _readable(each) for name, each in kwargs.items()}
        token = called.set((verb.__name__, dict(zip(names, read, strict=False)) | named))
        try:
            return verb(*read, **named)
        finally:
            called.reset(token)

    return recorded


def _readable(value: Any) -> Any:
    return list(value) if hasattr(value, "__next__") else value
