"""A way that shares its rest."""

from __future__ import annotations

import pickle

import pytest

from graphstore.values.shared_path import SharedPath


def test_it_is_a_sequence_of_its_things() -> None:
    rest = SharedPath(["b", "c"])
    way = SharedPath(["a"], rest)

    assert ["a", "b", "c"] == list(way)
    assert (3, "a", "c", ("b", "c")) == (len(way), way[0], way[-1], way[1:])
    assert "b" in way and "z" not in way
    assert (0, []) == (len(SharedPath()), list(SharedPath()))
    with pytest.raises(IndexError):
        SharedPath()[0]


def test_it_equals_what_has_the_same_things() -> None:
    way = SharedPath([1, 2])

    assert way == (1, 2) and way == [1, 2] and way == SharedPath([1], SharedPath([2]))
    assert way != (1, 3) and way != (1,) and way != "12"
    assert hash(way) == hash((1, 2))
    assert "(1, 2)" == repr(way)


def test_a_long_one_is_no_recursion() -> None:
    way: SharedPath[int] | None = None
    for number in range(50_000):
        way = SharedPath([number], way)
    assert way is not None

    assert (50_000, 49_999) == (len(way), way[0])
    assert way == pickle.loads(pickle.dumps(way))
