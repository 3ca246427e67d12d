"""Compute the difference between two contents, with readable paths: `content.summary`, `lessons.model[0]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphstore.values.findings import FieldChange, words
from graphstore.values.models import Version
from graphstore.values.text import said


def diff(old: Any, new: Any, path: str = "") -> list[FieldChange]:
    """Return every leaf that was added, removed or changed, in the order of `old`, then of what is only in `new`.

    1 and 1.0 are equal; True and 1 differ, as in JSON.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return _objects(old, new, path)
    if isinstance(old, list) and isinstance(new, list):
        return _arrays(old, new, path)
    if old == new and isinstance(old, bool) == isinstance(new, bool):
        return []
    return [FieldChange(path=path, type="changed", old=old, new=new)]


def same(old: Any, new: Any) -> bool:
    """Return True if two contents do not differ."""
    return bool(old == new) and not diff(old, new)


def _objects(old: dict[str, Any], new: dict[str, Any], path: str) -> list[FieldChange]:
    changes = []
    for name, value in old.items():
        place = f"{path}.{name}" if path else name
        if name in new:
            changes += diff(value, new[name], place)
        else:
            changes.append(FieldChange(path=place, type="removed", old=value))
    for name, value in new.items():
        if name not in old:
            changes.append(FieldChange(path=f"{path}.{name}" if path else name, type="added", new=value))
    return changes


def _arrays(old: list[Any], new: list[Any], path: str) -> list[FieldChange]:
    shared = min(len(old), len(new))
    changes = [change for i in range(shared) for change in diff(old[i], new[i], f"{path}[{i}]")]
    changes += [FieldChange(path=f"{path}[{i}]", type="removed", old=old[i]) for i in range(shared, len(old))]
    changes += [FieldChange(path=f"{path}[{i}]", type="added", new=new[i]) for i in range(shared, len(new))]
    return changes


def changed_fields(versions: Sequence[Version]) -> list[str]:
    """Return for each row of a history which fields of the content differ from the description that it replaced: `limit: 100 → 300`.

    Empty for the first description; what is also the text of the row is left out.
    """
    found = []
    for one in versions:
        earlier = [each for each in versions if each.number < one.number]
        replaced = [each for each in earlier if each.tx_to == one.tx_from and _meet(each, one)] or earlier
        before = max(replaced, key=lambda each: each.number, default=one)
        changes = (_shown(each, words(one)) for each in diff(before.content, one.content))
        found.append("; ".join(filter(None, changes)))
    return found


def _meet(one: Version, other: Version) -> bool:
    return (other.valid_to is None or one.valid_from < other.valid_to) and (
        one.valid_to is None or other.valid_from < one.valid_to
    )


def _shown(change: FieldChange, text: str) -> str:
    if change.new == text:
        return ""
    if change.type == "changed":
        return f"{change.path}: {said(change.old)} → {said(change.new)}"
    return f"{change.path}: {said(change.old if change.type == 'removed' else change.new)} {change.type}"
