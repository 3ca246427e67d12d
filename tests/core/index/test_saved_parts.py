"""The parts of a saved index behave like the lists and dictionaries they stand for, also where they grow, are changed and are cut."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.core.index.saved_parts import (
    Coded,
    Groups,
    Ids,
    Keyed,
    Lists,
    Texts,
    codes_of,
    groups_of,
    pairs_of,
    texts_of,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.lists(st.integers(0, 1 << 30), max_size=4)
LISTS = st.lists(NUMBERS, max_size=12)
PIECES = st.lists(st.tuples(*[st.integers(-(1 << 62), 1 << 62)] * 3), min_size=1, max_size=3)


def texts(values: list[Any]) -> Texts:
    starts, data = texts_of(values)
    return Texts(memoryview(starts), memoryview(data))


def coded(values: list[Any]) -> Coded:
    codes, table = codes_of(values)
    return Coded(memoryview(codes), table)


def groups(values: list[list[int]]) -> Groups:
    return Groups(*map(memoryview, groups_of(values, len(values))))


KINDS = {
    "texts": (texts, st.none() | TEXT),
    "coded": (coded, st.sampled_from([None, "a", "b", "é"])),
    "groups": (groups, NUMBERS),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_list_of_which_a_part_was_saved_is_a_list(kind: str, data: st.DataObject) -> None:
    make, item = KINDS[kind]
    plain: list[Any] = data.draw(st.lists(item, max_size=8))
    there: Any = make([each[:] if isinstance(each, list) else each for each in plain])
    for step in data.draw(
        st.lists(st.sampled_from(["read", "append", "extend", "cut", "change", "save"]), max_size=12)
    ):
        at = data.draw(st.integers(0, len(plain)))
        if step == "read" and at < len(plain):
            assert plain[at] == there[at] and plain[at - len(plain)] == there[at - len(plain)]
        elif step == "append":
            new = data.draw(item)
            plain.append(new)
            there.append(new[:] if isinstance(new, list) else new)
        elif step == "extend":
            more = data.draw(st.lists(item, max_size=3))
            plain.extend(more)
            there.extend(each[:] if isinstance(each, list) else each for each in more)
        elif step == "cut":
            del plain[at:]
            del there[at:]
        elif step == "change" and kind == "groups" and at < len(plain):
            plain[at] = [*plain[at], 7]
            there[at].append(7)
        elif step == "save":
            there = make(there)
        assert len(plain) == len(there)
    assert plain == list(there) and there == plain and list(there.twin()) == plain
    with pytest.raises(IndexError):
        there[len(plain)]


@given(LISTS, st.data())
def test_a_dictionary_of_lists_is_one(lists: list[list[int]], data: st.DataObject) -> None:
    plain = {key: each for key, each in enumerate(lists) if each}
    there: Any = Lists(*map(memoryview, groups_of({key: each[:] for key, each in plain.items()}, len(lists))))
    for step in data.draw(st.lists(st.sampled_from(["get", "add", "pop", "set", "save"]), max_size=12)):
        key = data.draw(st.integers(0, 14))
        if step == "get":
            assert plain.get(key, ()) == there.get(key, ()) and (key in plain) == (key in there)
        elif step == "add":
            plain.setdefault(key, []).append(5)
            there.setdefault(key, []).append(5)
        elif step == "pop":
            assert plain.pop(key, None) == there.pop(key, None)
        elif step == "set":
            plain[key], there[key] = [1, 2], [1, 2]
        else:
            there = Lists(*map(memoryview, groups_of(there, 15)))
        assert bool(plain) <= bool(there) and len(plain) == len(there)
    assert plain == dict(there.items()) == dict(there.twin().items())
    assert there == plain and sorted(plain) == sorted(there)


@given(st.dictionaries(st.integers(0, 9), PIECES))
def test_a_dictionary_of_lists_of_tuples_is_one(plain: dict[int, list[tuple[int, ...]]]) -> None:
    there = Lists(*map(memoryview, groups_of(plain, 10, 3)), 3)
    assert plain == dict(there.items())
    again = Lists(*map(memoryview, groups_of(there, 10, 3)), 3)
    assert plain == dict(again.items())


@given(st.lists(TEXT, unique=True, max_size=12), st.lists(TEXT, unique=True, max_size=6), st.data())
def test_the_numbers_of_names_are_a_dictionary(
    names: list[str], more: list[str], data: st.DataObject
) -> None:
    plain = {name: at for at, name in enumerate(names)}
    there = Ids(memoryview(pairs_of(names, range(len(names)))), texts(names))
    for _ in range(2):
        for name in data.draw(st.lists(st.sampled_from([*names, *more, "none of them"]), max_size=6)):
            assert plain.get(name, -1) == there.get(name, -1) and (name in plain) == (name in there)
        for name in list(plain)[data.draw(st.integers(0, len(plain))) :][::-1]:
            del plain[name], there[name]
        for name in more:
            if name not in plain:
                plain[name] = there[name] = len(plain)
        assert list(plain.items()) == list(there.items()) and len(plain) == len(there)
        assert list(plain) == list(there) and there == plain and there.twin() == plain
    with pytest.raises(KeyError):
        there["\ud800 is no name"]


def test_names_with_one_hash_are_told_apart() -> None:
    one, other = "plumless", "buckeroo"
    assert pairs_of([one], [0]) == pairs_of([other], [0])
    there = Ids(memoryview(pairs_of([one, other], [0, 1])), texts([one, other]))
    assert (0, 1) == (there[one], there[other])


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=8), st.data())
def test_numbers_by_key_are_a_dictionary(keys: list[tuple[str, str]], data: st.DataObject) -> None:
    plain: dict[tuple[str, str], list[int]] = {}
    for at, key in enumerate(keys):
        plain.setdefault(key, []).append(at)
    there = Keyed(memoryview(pairs_of(keys, range(len(keys)))), keys.__getitem__)
    for key in data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=6)):
        assert plain.get(key) == there.get(key) and (key in plain) == (key in there)
        plain.setdefault(key, []).append(99)
        there.setdefault(key, []).append(99)
    assert plain == dict(there.twin().items()) and there == plain


def test_codes_grow_with_their_table() -> None:
    values = [str(number) for number in range(300)]
    there = coded(values[:3])
    there.extend(values[3:])
    codes, table = codes_of(there)
    assert (array("H", range(300)), values) == (codes, table)
