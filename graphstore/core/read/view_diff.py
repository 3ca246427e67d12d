"""The difference of two coordinates, on one line of belief or on two that forked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from graphstore.core.read.sight import Core, Sight
from graphstore.read import differing
from graphstore.read.differing import Cause
from graphstore.read.points import Point
from graphstore.values.models import Event, Json, Link, Node, NodeChange, ViewDiff
from graphstore.values.period import Instant

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
                    differing.change_of(
                        here.node(before, here.upright(one)), there.node(after, there.upright(other))
                    )
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
        return differing.view_diff(
            added=added, removed=removed, changed=changed, links_added=fresh, links_removed=gone
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
        return differing.is_same_description(
            description(self.here.core, was), description(self.there.core, now)
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


def field_changes(here: Sight, there: Sight) -> Result:
    """The difference as rows, one for each field that is otherwise."""
    found = compare(here, there)
    causes = {
        node.id: _said(there, there.index.ids[node.id], node.number)
        for node in (*(each.after for each in found.changed), *found.added)
    }
    for node in found.removed:
        taken = _taken_by(there, there.index.ids.get(node.id, -1))
        causes[node.id] = taken or _said(here, here.index.ids[node.id], node.number)
    return _table(differing.rows_of(found, causes))


def field_changes_by_rows(point: Point, valid: Instant, tx: Instant) -> Result:
    """Return the difference to another coordinate of one line of belief as `field_changes` does, by the rows of the ledger."""
    return _table(differing.field_rows(point, valid, tx))


def field_changes_of_lines(before: Point, after: Point) -> Result:
    """Return the difference of two lines of belief as `field_changes` does, by the rows of the ledger."""
    return _table(differing.field_rows_of_lines(before, after))


def _table(rows: list[tuple[Any, ...]]) -> Result:
    from graphstore.core.tables.result import Result

    types = ["STRING"] * 6 + ["TIMESTAMP"] * 2 + ["STRING"] * 2
    return Result(differing.FIELDS, rows, types=types)


def _said(sight: Sight, ent: int, number: int) -> Cause:
    """Who said a description first, and why."""
    index = sight.index
    ver = next(index.r_ver[row] for row in index.rows_of[ent] if index.v_num[index.r_ver[row]] == number)
    return _by(sight, index.v_op[ver])


def _taken_by(sight: Sight, ent: int) -> Cause | None:
    """Who took away what was believed of a thing at the valid time, and why; None where nothing ever was."""
    index = sight.index
    closed = [
        (index.r_end[row], row)
        for row in (index.rows_of[ent] if ent >= 0 else ())
        if index.r_from[row] <= sight.valid < index.r_to[row] and index.r_end[row] <= sight.tx
    ]
    return _by(sight, index.r_close[max(closed)[1]]) if closed else None


def _by(sight: Sight, op: int) -> Cause:
    if op < 0:
        return None, None
    change = sight.change(op)
    return change.author, change.reason
