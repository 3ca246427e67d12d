"""Every error of the package: a caller catches by meaning, and the message names the remedy.

GraphStoreError
├── NotFoundError (LookupError)    nothing by that id, or nothing there at that coordinate
├── InvalidError (ValueError)      the input itself is wrong
├── ConflictError                  right input, but it contradicts what the store holds
├── QueryError                     a Cypher text that is refused or does not run
└── EngineError                    the machine below failed: disk, engine, folder
    ├── DamageError                the journal is not what was written; names file and line
    ├── LockedError                another process (or this one) is writing here
    └── WriteConflictError         another process wrote first: nothing was kept, it may be done again
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

_COMPARED = 500
_BEGUN = 3  # characters that a name has to share at least
_SHORT = 100  # characters of a name that is compared, or shown whole


class GraphStoreError(Exception):
    """The root of all errors raised on purpose."""


class NotFoundError(GraphStoreError, LookupError):
    """Nothing is known by that id, or nothing holds at that coordinate."""

    _known: Callable[[], Iterable[str]] | None = None
    _later: Callable[[], str | None] | None = None
    _got = ""

    @classmethod
    def nearest(
        cls,
        what: str,
        got: str,
        known: Callable[[], Iterable[str]],
        later: Callable[[], str | None] | None = None,
    ) -> NotFoundError:
        """Make `no {what} 'got'`, with the closest of the known ids. These are looked for when the message is read: many only ask whether a thing is known.
        `later`: returns what to say instead of a thing that was recorded later, or None."""
        shown = repr(got) if len(got) <= _SHORT else f"{got[:_SHORT]!r}… ({len(got):,} characters)"
        error = cls(f"no {what} {shown}.")
        error._known, error._later, error._got = known, later, got
        return error

    def __str__(self) -> str:
        if self._known is not None:
            known, later, self._known = self._known, self._later, None
            told, near = None, list[str]()
            try:
                told = later and later()
                near = [] if told else closest(self._got, known())
            except RuntimeError:  # another thread is writing just now
                pass
            if told:
                self.args = (told,)
            elif near:
                self.args = (f"{self.args[0]} Nearest: {', '.join(map(repr, near))}.",)
        return super().__str__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[type[NotFoundError], tuple[str]]:
        return type(self), (str(self),)


def closest(got: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that are like what was got: those that begin so, then the most alike first. Of short names alone."""
    if len(got) > _SHORT:
        return []
    names = list(known)
    begun = sorted(name for name in names if name.startswith(got))[:3] if len(got) >= _BEGUN else []
    alike = difflib.get_close_matches(got, _alike(got, names), n=3, cutoff=0.6)
    return list(dict.fromkeys([*begun, *alike]))[:3]


def _alike(got: str, names: list[str]) -> list[str]:
    # comparing all ids of a large store takes seconds: those that begin alike, then some others
    near = names
    if len(names) > _COMPARED:
        near = [name for name in names if name[:3] == got[:3]][:_COMPARED] or names[:_COMPARED]
    return [name for name in near if len(name) <= _SHORT]


class InvalidError(GraphStoreError, ValueError):
    """The input is invalid; the message has the value, what is allowed and what to do."""

    @classmethod
    def choice(cls, what: str, got: object, valid: Iterable[str]) -> InvalidError:
        """`unknown {what} 'got'. Valid: …` with a guess at what was meant."""
        options = sorted(valid)
        near = difflib.get_close_matches(str(got), options, n=1)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        return cls(f"unknown {what} {got!r}. Valid: {', '.join(options)}.{guess}")


class ConflictError(GraphStoreError):
    """Right in itself, but it contradicts what the store already holds."""


class QueryError(GraphStoreError):
    """A Cypher text that is refused (it writes, misses a parameter) or that the engine cannot run."""


Outcome = Literal["kept", "not kept", "unknown"]


class EngineError(GraphStoreError):
    """Something below the store failed: the disk, the engine, the folder.

    Of a write, `outcome` is `"kept"` (it is recorded; what failed came after), `"not kept"` (nothing of it is there: it may be done again) or
    `"unknown"`: ask by its `tx`, of a folder once it has been opened again. It was kept when a change of `store.changes()` has that tx. None: nothing
    was written. `passes`: a server gave no answer, and may later.
    """

    passes = False

    def __init__(self, *args: object, outcome: Outcome | None = None, tx: datetime | None = None) -> None:
        super().__init__(*args)
        self.outcome = outcome
        self.tx = tx


class DamageError(EngineError):
    """A file of the store is not what was written. Nothing was changed; the message names file and line."""


class LockedError(EngineError):
    """Another writer holds the store; the message names it."""


class WriteConflictError(EngineError):
    """Another process wrote to the store before this transaction was there: nothing of it was kept, for what it rests on may have changed.

    Writers of a folder take turns, so none of them raises it. Run the transaction again.
    """
