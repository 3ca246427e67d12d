"""Ids that the store chooses: drawn at random, or given again where what was done once is done once more."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

Sentence = tuple[str, str, str]  # source, kind, target


class _Given(NamedTuple):
    """The ids to be given again: in order, and those of links by what they say."""

    names: list[str]
    links: Mapping[Sentence, str] | None


_again: ContextVar[_Given | None] = ContextVar("_again", default=None)
_noted: ContextVar[list[str] | None] = ContextVar("_noted", default=None)


def drawn(make: Callable[[], str], known: Container[str], sentence: Sentence | None = None) -> str:
    """Return an id that nothing has, such as `make` gives. `sentence`: what a link says."""
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
    """Have ids of the same form drawn from these, in their order, as long as there are any. `links`: the ids of links by what they say, if they
    are not among the names."""
    token = _again.set(_Given(list(names), links))
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
