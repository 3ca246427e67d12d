"""A write that another process came before is decided again, on what the store holds by then: bounded, after a pause of random length.

Only what can be called again as a whole is: a verb, or work of the store's own. The block of a transaction is the caller's code, and is not.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from graphstore.errors import WriteConflictError
from graphstore.write.given_arguments import RECORDED, called

P = ParamSpec("P")
T = TypeVar("T")
TRIES = 8  # so often a write is decided
_PAUSE, _LONGEST = 0.005, 0.5  # seconds before the second time, which doubles


class _Kept(threading.local):
    """How many transactions of this thread became durable."""

    count = 0


kept = _Kept()


def decided_again(work: Callable[[], T], tries: int = TRIES) -> T:
    """Return what some work gives; where another process wrote first, it is called again, unless something of it was kept already.

    Raises WriteConflictError when that happens each time.
    """
    before, pause = kept.count, _PAUSE
    for left in reversed(range(tries)):
        try:
            return work()
        except WriteConflictError:
            if not left or kept.count != before:
                raise
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(2 * pause, _LONGEST)
    raise AssertionError("unreachable")


def decides(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb that is one transaction, or a part of one: it is decided again where another process wrote first, and records the arguments given."""

    recorded = verb.__name__ in RECORDED
    names = [
        each.name
        for each in signature(verb).parameters.values()
        if each.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]

    @wraps(verb)
    def decided(*args: P.args, **kwargs: P.kwargs) -> T:
        read: Any = [_readable(each) for each in args]
        named: Any = {name: _readable(each) for name, each in kwargs.items()}
        given = (verb.__name__, dict(zip(names, read, strict=False)) | named) if recorded else None

        def work() -> T:
            token = called.set(given)
            try:
                return verb(*read, **named)
            finally:
                called.reset(token)

        store: Any = args[0]
        return decided_again(work) if store._place.shared else work()

    return decided


def again(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """As `decided_again`, of a function with arguments that are read each time."""
    args = tuple(_readable(each) for each in args)
    kwargs = {name: _readable(each) for name, each in kwargs.items()}
    return decided_again(lambda: function(*args, **kwargs))


def _readable(value: Any) -> Any:
    return list(value) if hasattr(value, "__next__") else value
