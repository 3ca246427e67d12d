"""Reads by the kernel and by the Python way, which is the truth."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from graphstore.core.read import kernel
from graphstore.core.read.sight import Sight
from graphstore.core.read.view import View
from graphstore.values.models import Link, Node

NAMES = ("node", "links_from", "backlinks_to", "node_of", "link_of")
IS_BUILT = kernel.node is not None


@contextmanager
def replaced(**by: Any) -> Iterator[None]:
    """Each function of the kernel replaced by the one of its name, or by none."""
    before = {name: getattr(kernel, name) for name in NAMES}
    for name in NAMES:
        setattr(kernel, name, by.get(name))
    try:
        yield
    finally:
        for name in NAMES:
            setattr(kernel, name, before[name])


@contextmanager
def compared() -> Iterator[Counter[str]]:
    """Each answer of the kernel is compared with that of the Python way; gives how many there were of each function."""
    if not IS_BUILT:
        yield Counter()
        return
    answered: Counter[str] = Counter()
    by = {name: getattr(kernel, name) for name in NAMES}

    def checked(name: str, python: Any) -> Any:
        def ask(*args: Any) -> Any:
            found = by[name](*args)
            if found is not None:
                answered[name] += 1
                with replaced():
                    same(found, python(*args))
            return found

        return ask

    with replaced(
        node=checked("node", lambda core, id, valid, tx: View(core, valid, tx).node(id)),
        links_from=checked("links_from", lambda core, id, *at: View(core, *at).links_from(id)),
        backlinks_to=checked("backlinks_to", lambda core, id, *at: View(core, *at).backlinks_to(id)),
        node_of=checked("node_of", lambda sight, row, standing: _afresh(sight).node(row, standing)),
        link_of=checked("link_of", lambda sight, row: _afresh(sight).link(row)),
    ):
        yield answered


def _afresh(sight: Sight) -> Sight:
    return Sight(sight.core, sight.valid, sight.tx)


def same(found: Any, expected: Any) -> None:
    """That two values cannot be told apart."""
    assert type(found) is type(expected)
    if isinstance(found, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            same(*pair)
        return
    assert isinstance(found, (Node, Link))
    assert found == expected and repr(found) == repr(expected)
    assert list(found.__dict__.items()) == list(expected.__dict__.items())
    assert [type(value) for value in found.__dict__.values()] == [
        type(value) for value in expected.__dict__.values()
    ]
    assert (
        found.model_dump_json() == expected.model_dump_json()
        and found.model_fields_set == expected.model_fields_set
    )
    assert pickle.loads(pickle.dumps(found)) == expected == found.model_copy()
    with pytest.raises(ValueError, match="frozen"):
        found.id = "another"  # type: ignore[misc, assignment]
