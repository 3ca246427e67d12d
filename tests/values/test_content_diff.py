"""The difference of two contents: readable paths, and enough to make the second out of the first."""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphstore.values.content_diff import diff
from graphstore.values.findings import FieldChange

# Names without the signs a path is made of, so that the path can be read back.
names = st.text("abcxyz_", min_size=1, max_size=4)
leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
contents = st.dictionaries(names, values, max_size=4)
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def steps(path: str) -> list[str | int]:
    """`lessons.model[0]` as lessons, model, 0."""
    return [
        int(digits) if digits else name for name, digits in re.findall(r"([^.\[\]]+)(?!\])|\[(\d+)\]", path)
    ]


def applied(changes: list[FieldChange], content: Any) -> Any:
    """`content` with every change made."""
    content = copy.deepcopy(content)
    for change in [c for c in changes if c.type != "removed"] + [
        c for c in changes[::-1] if c.type == "removed"
    ]:
        *way, last = steps(change.path)
        place = content
        for step in way:
            place = place[step]
        if change.type == "removed":
            del place[last]
        elif isinstance(place, list) and last == len(place):
            place.append(change.new)
        else:
            place[last] = change.new
    return content


def exactly(value: Any) -> Any:
    """The value with numbers and booleans told apart, as JSON does."""
    if isinstance(value, dict):
        return {name: exactly(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [exactly(inner) for inner in value]
    return (isinstance(value, bool), value)


def change(path: str, type: str, old: Any = None, new: Any = None) -> FieldChange:
    return FieldChange(path=path, type=type, old=old, new=new)


def test_path_reads_as_a_person_would_write_it():
    old = {"content": {"summary": "draft"}, "lessons": {"model": ["slow"]}}
    new = {"content": {"summary": "final"}, "lessons": {"model": ["fast", "cheap"]}}

    assert diff(old, new) == [
        change("content.summary", "changed", "draft", "final"),
        change("lessons.model[0]", "changed", "slow", "fast"),
        change("lessons.model[1]", "added", new="cheap"),
    ]


def test_order_is_that_of_the_old_then_what_is_only_new():
    assert [c.path for c in diff({"b": 1, "a": 1, "z": 1}, {"z": 2, "c": 1, "a": 2})] == ["b", "a", "z", "c"]


def test_absent_and_null_are_different():
    assert [change("a", "removed", None)] == diff({"a": None}, {})
    assert [change("a", "added", None)] == diff({}, {"a": None})


def test_shorter_list_loses_its_tail():
    assert [change("a[1]", "removed", 2), change("a[2]", "removed", 3)] == diff({"a": [1, 2, 3]}, {"a": [1]})


def test_other_shape_is_one_change():
    assert [change("a", "changed", {"b": 1}, [1])] == diff({"a": {"b": 1}}, {"a": [1]})
    assert [change("a", "changed", {}, None)] == diff({"a": {}}, {"a": None})


def test_true_is_not_one_but_one_is_one_point_zero():
    assert [change("a", "changed", True, 1)] == diff({"a": True}, {"a": 1})
    assert [change("a", "changed", 0, False)] == diff({"a": 0}, {"a": False})
    assert diff({"a": 1}, {"a": 1.0}) == []


def test_true_inside_a_list_is_not_one():
    assert [change("a[0]", "changed", 1, True)] == diff({"a": [1]}, {"a": [True]})


@patient
@given(contents)
def test_nothing_changed_between_a_content_and_itself(content):
    assert diff(content, copy.deepcopy(content)) == []


@patient
@given(contents, contents)
def test_applying_the_diff_makes_the_second_content(old, new):
    assert exactly(new) == exactly(applied(diff(old, new), old))


@patient
@given(contents, contents)
def test_way_back_is_the_same_diff_mirrored(old, new):
    mirror = {"added": "removed", "removed": "added", "changed": "changed"}
    there = {(c.path, c.type, repr(exactly(c.old)), repr(exactly(c.new))) for c in diff(old, new)}
    back = {(c.path, mirror[c.type], repr(exactly(c.new)), repr(exactly(c.old))) for c in diff(new, old)}

    assert there == back


@patient
@given(contents, contents)
def test_every_change_names_values_that_are_really_there(old, new):
    def at(content: Any, path: str) -> Any:
        for step in steps(path):
            content = content[step]
        return content

    for found in diff(old, new):
        if found.type != "added":
            assert found.old == at(old, found.path)
        if found.type != "removed":
            assert found.new == at(new, found.path)
