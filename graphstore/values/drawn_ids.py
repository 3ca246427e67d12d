"""Ids that the store chooses: drawn at random, or given again where what was done once is done once more."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_again: ContextVar[list[str] | None] = ContextVar("_again", default=None)
_noted: ContextVar[list[str] | None] = ContextVar("_noted", default=None)


def drawn(make: Callable[[], str], known: Container[str]) -> str:
    """Return an id that nothing has, such as `make` gives."""
    given = _again.get()
    if given is not None:
        name = make()
        for at, each in enumerate(given):
            if _shape(each) == _shape(name) and each not in known:
                return given.pop(at)
        return name
    while (name := make()) in known:
        pass
    notes = _noted.get()
    if notes is not None:
        notes.append(name)
    return name


@contextmanager
def given(names: Iterable[str]) -> Iterator[None]:
    """Have ids of the same form drawn from these, in their order, as long as there are any."""
    token = _again.set(list(names))
    try:
        yield
    finally:
        _again.reset(token)


@contextmanager
def noted() -> Iterator[list[str]]:
    """The ids that are drawn in the block, in their order."""
    names: list[str] = []
    token = _noted.set(names)
    try:
        yield names
    finally:
        _noted.reset(token)


def _shape(name: str) -> tuple[str, int]:
    return name.rpartition("_")[0].partition("_")[0], len(name)
