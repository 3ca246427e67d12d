"""Ids that the store chooses: drawn at random, or reused when an operation is replayed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

Sentence = tuple[str, str, str]  # source, kind, target


class _Given(NamedTuple):
    """Holds the ids to be reused: in order, and those of links by their sentence."""

    names: list[str]
    links: Mapping[Sentence, str] | None


_again: ContextVar[_Given | None] = ContextVar("_again", default=None)
_noted: ContextVar[list[str] | None] = ContextVar("_noted", default=None)


def drawn(make: Callable[[], str], known: Container[str], sentence: Sentence | None = None) -> str:
    """Return an unused id, such as `make` returns. `sentence`: source, kind and target of a link."""
    given = _again.get()
    if given is not None:
        name = make()
        if sentence is not None and given.links is not None:
            wanted = given.links.get(sentence, name)
            return name if wanted in known else wanted
        for at, each in enumerate(given.names):
            if _shape(each) == _shape(name) and each not in known:
                return given.names.pop(at)
        return name
    while (name := make()) in known:
        pass
    notes = _noted.get()
    if notes is not None:
        notes.append(name)
    return name


@contextmanager
def given(names: Iterable[str], links: Mapping[Sentence, str] | None = None) -> Iterator[None]:
    """Reuse these ids, in order, for ids of the same form drawn in the block, as long as there are any. `links`: ids of links by their sentence, if they are
    not among the names."""
    token = _again.set(_Given(list(names), links))
    try:
        yield
    finally:
        _again.reset(token)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Return a block that collects the ids drawn in it, in order."""
    names: list[str] = []
    token = _noted.set(names)
    try:
        yield names
    finally:
        _noted.reset(token)


def _shape(name: str) -> tuple[str, int]:
    return name.rpartition("_")[0].partition("_")[0], len(name)
