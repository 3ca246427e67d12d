"""The difference of two coordinates, on one line of belief or on two that forked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from graphstore.core.journal.line import dumps
from graphstore.core.read.sight import Core, Sight
from graphstore.values import content_diff as differences
from graphstore.values.models import Event, Json, Link, Node, NodeChange, ViewDiff

if TYPE_CHECKING:
    from graphstore.core.tables.result import Result

Pair = tuple[int, int]  # the number of one thing, or link, here and there; -1 where it is not known


def compare(here: Sight, there: Sight) -> ViewDiff:
    """What is there and not here (added), here and not there (removed), and nodes described otherwise (changed)."""
    comparing = _Comparing(here, there) if here.index is there.index else _Apart(here, there)
    return comparing.found()


def description(core: Core, ver: int) -> Json:
    """The body of a version, without the salt."""
    body = core.body(core.index.v_pos[ver], core.index.v_len[ver])
    body.pop("salt", None)
    return body


class _Comparing:
    """Two coordinates of one line of belief."""

    def __init__(self, here: Sight, there: Sight) -> None:
        self.here, self.there = here, there

    def found(self) -> ViewDiff:
        here, there = self.here, self.there
        added: list[Node | Event] = []
        removed: list[Node | Event] = []
        changed: list[NodeChange] = []
        for one, other in self.things():
            before = here.find(one) if one >= 0 and here.index.born[one] <= here.tx else -1
            after = there.find(other) if other >= 0 and there.index.born[other] <= there.tx else -1
            if before < 0 <= after:
                added.append(there.shown(after))
            elif after < 0 <= before:
                removed.append(here.shown(before))
            elif before >= 0 and not self.same(before, after):
                changed.append(
                    _change(here.node(before, here.upright(one)), there.node(after, there.upright(other)))
                )
        fresh: list[Link] = []
        gone: list[Link] = []
        for one, other in self.links():
            was = here.held(one) if one >= 0 else -1
            now = there.held(other) if other >= 0 else -1
            if was < 0 <= now:
                fresh.append(there.link(now))
            elif now < 0 <= was:
                gone.append(here.link(was))
        return ViewDiff(
            added=tuple(each for each in added if isinstance(each, Node)),
            removed=tuple(each for each in removed if isinstance(each, Node)),
            changed=tuple(changed),
            events_added=tuple(each for each in added if isinstance(each, Event)),
            events_removed=tuple(each for each in removed if isinstance(each, Event)),
            links_added=tuple(fresh),
            links_removed=tuple(gone),
        )

    def things(self) -> Iterator[Pair]:
        """Each thing that is known on either side."""
        return ((ent, ent) for ent in range(len(self.here.index.born)))

    def links(self) -> Iterator[Pair]:
        """Each link that is known on either side."""
        return ((link, link) for link in range(len(self.here.index.l_name)))

    def same(self, before: int, after: int) -> bool:
        """Whether two rows of a thing say the same: content, text and tags, whatever their numbers."""
        index = self.here.index
        was, now = index.r_ver[before], index.r_ver[after]
        return was == now or bool(index.is_event[index.r_ent[before]]) or self.alike(was, now)

    def alike(self, was: int, now: int) -> bool:
        """Whether a version here and one there say the same."""
        one, other = description(self.here.core, was), description(self.there.core, now)
        return all(one.get(name) == other.get(name) for name in ("text", "tags")) and differences.same(
            one.get("content"), other.get("content")
        )


class _Apart(_Comparing):
    """Two lines of belief: things are matched by id."""

    def things(self) -> Iterator[Pair]:
        one, other = self.here.index, self.there.index
        for name, ent in one.ids.items():
            there = other.ids.get(name, -1)
            if there >= 0 and one.is_event[ent] != other.is_event[there]:
                yield -1, there
                there = -1
            yield ent, there
        yield from ((-1, ent) for name, ent in other.ids.items() if name not in one.ids)

    def links(self) -> Iterator[Pair]:
        one, other = self.here.index.link_ids, self.there.index.link_ids
        yield from ((link, other.get(name, -1)) for name, link in one.items())
        yield from ((-1, link) for name, link in other.items() if name not in one)

    def same(self, before: int, after: int) -> bool:
        one, other = self.here.index, self.there.index
        if one.is_event[one.r_ent[before]]:
            return True
        was, now = one.r_ver[before], other.r_ver[after]
        common = min(index.forked.versions for index in (one, other) if index.forked is not None)
        if was == now and was < common:
            return True
        return self.alike(was, now)


def _change(old: Node, new: Node) -> NodeChange:
    return NodeChange(
        id=old.id, before=old, after=new, fields=tuple(differences.diff(old.content, new.content))
    )


def field_changes(here: Sight, there: Sight) -> Result:
    """The difference as rows, one for each field that is otherwise."""
    from graphstore.core.tables.result import Result

    found = compare(here, there)
    rows: list[tuple[Any, ...]] = []

    def add(change: str, node: Node, said: tuple[str | None, str | None], *values: str | None) -> None:
        rows.append((node.id, node.kind, change, *values, node.valid_from, node.valid_to, *said))

    for each in found.changed:
        said = _said(there, there.index.ids[each.id], each.after.number)
        for field in each.fields:
            add("changed", each.after, said, field.path, _json(field.old), _json(field.new))
        if not each.fields:
            add("changed", each.after, said, "", each.before.text, each.after.text)
    for node in found.added:
        said = _said(there, there.index.ids[node.id], node.number)
        for name, value in node.content.items():
            add("added", node, said, name, None, _json(value))
    for node in found.removed:
        taken = _taken_by(there, there.index.ids.get(node.id, -1))
        said = taken or _said(here, here.index.ids[node.id], node.number)
        for name, value in node.content.items():
            add("removed", node, said, name, _json(value), None)
    columns = ("id", "kind", "change", "field", "old", "new", "valid_from", "valid_to", "author", "reason")
    types = ["STRING"] * 6 + ["TIMESTAMP"] * 2 + ["STRING"] * 2
    return Result(columns, rows, types=types)


def _said(sight: Sight, ent: int, number: int) -> tuple[str | None, str | None]:
    """Who said a description first, and why."""
    index = sight.index
    ver = next(index.r_ver[row] for row in index.rows_of[ent] if index.v_num[index.r_ver[row]] == number)
    return _by(sight, index.v_op[ver])


def _taken_by(sight: Sight, ent: int) -> tuple[str | None, str | None] | None:
    """Who took away what was believed of a thing at the valid time, and why; None where nothing ever was."""
    index = sight.index
    closed = [
        (index.r_end[row], row)
        for row in (index.rows_of[ent] if ent >= 0 else ())
        if index.r_from[row] <= sight.valid < index.r_to[row] and index.r_end[row] <= sight.tx
    ]
    return _by(sight, index.r_close[max(closed)[1]]) if closed else None


def _by(sight: Sight, op: int) -> tuple[str | None, str | None]:
    if op < 0:
        return None, None
    change = sight.change(op)
    return change.author, change.reason


def _json(value: Any) -> str | None:
    return None if value is None else dumps(value).decode()
