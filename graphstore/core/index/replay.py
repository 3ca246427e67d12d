"""Applying a line of the journal to an index, column by column: what a line lists is laid out as columns first, then what leads to its rows."""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from graphstore.core.index.births import grow, grow_things
from graphstore.core.index.columns import Columns, Mark
from graphstore.core.journal.line import DESCRIBING, FORGETTING, RETRACTING, UNDO
from graphstore.values.period import OPEN, Instant, all_recorded, instant, recorded

Head = dict[str, Any]
Places = list[Any]

_OF_LINKS = frozenset({"links", "claims", "link_rows", "link_closed", "link_told", "linked", "took", "kinds"})
_NOTED = frozenset({"confirm", UNDO, *FORGETTING})  # verbs of operations that are noted by their subject


class Followed(Columns):
    """The columns, and how they follow the journal."""

    def __init__(self) -> None:
        super().__init__()
        self._committed: Mark | None = None  # the lengths before the open transaction
        self._applying: Mark | None = None  # and before the one whose lines are being applied
        self._turn = 0  # rises when either is set: until then the columns are as long as what is committed

    def apply(self, head: dict[str, Any], places: list[Any], lies: tuple[int, int] = (0, 0)) -> None:
        """Apply one line of the journal. Of a line of another branch only its place is recorded."""
        if self._applying is None:
            self._applying = self.lengths()
            self._turn += 1
        _apply(self, head, places, lies)
        if not head.get("more"):
            self._applying = None

    def note_branches(self, changes: list[list[Any]], tx: Instant) -> None:
        """Record that branches were made, merged or deleted. A new one replaces the version aliases of an older one with its name."""
        self.branch_records.note(changes, tx)
        made = {name for verb, name, *_ in changes if verb == "branch"}
        for alias in [alias for alias in self.aliases if alias[0] in made] if made else ():
            del self.aliases[alias]

    def add_branch_line(self, branch: str, tx: Instant, at: tuple[int, int], *, whole: bool = True) -> None:
        """Record that a line was written on a branch, at the place `at`."""
        self.branch_records.add_line(branch, tx, at, whole=whole)
        self.last_tx = tx
        self.transactions += whole

    def seal(self, tx: Instant) -> None:
        """Count a transaction whose last line was applied."""
        self.last_tx = tx
        self.transactions += 1
        self.t_tx.append(tx)
        self.t_ver.append(len(self.v_ent))
        there = len(self.kinds), len(self.promoted), len(self.settings)
        if any(there) and (not self.noted or self.noted[-1][1:] != there):
            self.noted.append((tx, *there))

    def retake(self, link: int, before: list[tuple[int, Instant, Instant]] | None, tx: Instant) -> None:
        """Replace what a supersession took."""
        if self.k_tx[self.rows_of_link[link][0]] < tx:
            self.retaken.append((tx, link, before or []))

    def version(self, ent: int, number: int) -> int:
        """The version of that number, or -1."""
        versions = self.versions_of[ent]
        # in an open transaction a removed version may have the same number as a later one
        if (
            self._committed is None
            and 0 < number <= len(versions)
            and self.v_num[versions[number - 1]] == number
        ):
            return versions[number - 1]
        return next((ver for ver in reversed(versions) if self.v_num[ver] == number), -1)


def _apply(index: Followed, head: Head, places: Places, lies: tuple[int, int]) -> None:
    """Apply one line, whose bodies and which itself are at these places."""
    tx = instant(head["tx"])
    if head.get("branch") != index.branch:
        if index.branch is None and "branches" in head:
            index.note_branches(head["branches"], tx)
        index.add_branch_line(head["branch"], tx, lies, whole=not head.get("more"))
        return
    if "branches" in head and index.branch is None:
        index.note_branches(head["branches"], tx)
    first_op, first_ver, first_row, ids = len(index.o_tx), len(index.v_ent), len(index.r_ent), index.ids
    _operations(index, head, places, tx)
    _things(index, head, tx)
    _versions(index, head, places)
    for row, op in head.get("closed", ()):
        index.close_row(row, tx, first_op + op)
    _rows(index, head, tx, first_op)
    for name, at, op in head.get("seen", ()):
        index.add_seen(ids[name], recorded(at), tx, first_op + op)
    _changes(index, head, places, tx, first_op)
    index.add_settings(head.get("settings", ()))
    for branch, there, name, number in head.get("aliases", ()):
        index.aliases[branch, there, name] = index.version(ids[name], number)
    if not _OF_LINKS.isdisjoint(head):
        _links(index, head, places, tx, first_op)
        _link_rows(index, head, tx, first_op)
        _link_changes(index, head, tx, first_op)
    if index._said:
        if head.get("more") or (index._applying is not None and index._applying.ops < first_op):
            index._said.clear()
        else:
            index.write_latest(range(first_row, len(index.r_ent)), first_ver)
    if not head.get("more"):
        index.seal(tx)


def _stop(value: str | datetime | None) -> Instant:
    return OPEN if value is None else recorded(value)


def _operations(index: Followed, head: Head, places: Places, tx: Instant) -> None:
    ops = head.get("ops")
    if not ops:
        return
    author, why, first = head.get("author"), head.get("why"), len(index.o_tx)
    bodies = [op[2] if len(op) > 2 else why for op in ops]
    there = [(0, 0) if body is None else places[body] for body in bodies]
    grow(index.o_tx, tx, len(ops))
    verbs = [op[0] for op in ops]
    index.o_verb.extend(verbs)
    index.o_subject.extend([op[1] for op in ops])
    index.o_author.extend([op[3] if len(op) > 3 else author for op in ops])
    index.o_pos.extend([pos for pos, _ in there])
    index.o_len.extend([length for _, length in there])
    if _NOTED.isdisjoint(verbs):
        return
    for number, (verb, subject, *_) in enumerate(ops, first):
        if verb in _NOTED:
            index.note_op(number, verb, subject)
        if verb in FORGETTING and subject:
            index.forget(index.ids.get(subject, -1), number)


def _things(index: Followed, head: Head, tx: Instant) -> None:
    things = head.get("entities")
    if not things:
        return
    events = [len(thing) == 2 for thing in things]  # an event has its name and its type alone
    if any(events):
        things = [[*thing, None, ""][:4] for thing in things]
    names, kinds, keys, scopes = zip(*things, strict=True)
    first = len(index.names)
    grow_things(index, names, events, kinds, keys, scopes, tx)
    if keys.count(None) < len(keys):
        for ent, slot in enumerate(zip(keys, scopes, strict=True), first):
            if slot[0] is not None:
                index.slots.setdefault(slot, []).append(ent)
    index.ids.update(zip(names, range(first, first + len(names)), strict=True))


def _versions(index: Followed, head: Head, places: Places) -> None:
    versions = head.get("versions")
    if not versions:
        return
    names, numbers, bodies = zip(*versions, strict=True)
    ents = _ents(index, names)
    there = [places[body] for body in bodies]
    first = len(index.v_ent)
    grow(index.v_op, -1, len(ents))
    index.v_num.extend(numbers)
    index.v_pos.extend([pos for pos, _ in there])
    index.v_len.extend([length for _, length in there])
    index.v_ent.extend(ents)
    for ver, versions in enumerate(_of(index.versions_of, ents), first):
        versions.append(ver)


def _ents(index: Followed, names: tuple[str, ...]) -> Sequence[int]:
    """The things of these names: a range, where they were added one after the other in this order. That is seen in a part of the time of looking each up."""
    known, first = index.names, index.ids[names[0]]
    if isinstance(known, list) and tuple(known[first : first + len(names)]) == names:
        return range(first, first + len(names))
    return list(map(index.ids.__getitem__, names))


def _of(lists: Any, ents: Sequence[int]) -> Iterable[list[int]]:
    """The list of each of some things."""
    if isinstance(ents, range) and isinstance(lists, list):
        return lists[ents.start : ents.stop]
    return map(lists.__getitem__, ents)


def _rows(index: Followed, head: Head, tx: Instant, first_op: int) -> None:
    rows = head.get("rows")
    if not rows:
        return
    names, numbers, begun, ended, by = zip(*rows, strict=True)
    ents, v_num = _ents(index, names), index.v_num
    vers = [
        there[-1] if there and v_num[there[-1]] == number else index.version(ent, number)
        for ent, number, there in zip(ents, numbers, _of(index.versions_of, ents), strict=True)
    ]
    starts, stops = all_recorded(begun), all_recorded(ended)
    ops = [first_op + op for op in by]
    v_op, unread = index.v_op, "turns" not in head
    for at, ver in enumerate(vers):
        if v_op[ver] < 0:
            v_op[ver] = op = ops[at]
            if unread and index.o_verb[op] in DESCRIBING:
                index.unread.add(op)
                index.add_turn(ents[at], (tx, starts[at], stops[at], op))
    first, count = len(index.r_ent), len(ents)
    for column, values in (
        (index.r_ver, vers), (index.r_from, starts), (index.r_to, stops), (index.r_tx, tx),
        (index.r_end, OPEN), (index.r_op, ops), (index.r_close, -1), (index.r_ent, ents),
    ):  # fmt: skip
        grow(column, values, count)
    index._held.clear()
    r_from, fell, kept = index.r_from, index.fell, index._shaken is not None
    if isinstance(ents, range):
        index.changed[ents.start : ents.stop] = array("q", (tx,)) * count
    else:
        for ent in ents:
            index.changed[ent] = tx
    if min(stops) < OPEN:
        for ent, stop in zip(ents, stops, strict=True):
            if stop < OPEN and (kept or fell.get(ent, OPEN) > tx):
                index.falls(ent, tx)
    lists = zip(_of(index.rows_of, ents), _of(index.now_of, ents), starts, strict=True)
    for row, (rows, now, start) in enumerate(lists, first):
        rows.append(row)
        if now and r_from[now[-1]] > start:
            insort(now, row, key=r_from.__getitem__)
        else:
            now.append(row)


def _changes(index: Followed, head: Head, places: Places, tx: Instant, first_op: int) -> None:
    """What the rows do not show by themselves: who said a version first, what came and went, what changed its content."""
    ids = index.ids
    if index._said:
        for name, *_ in (*head.get("told", ()), *head.get("said", ())):
            index._said.pop(ids[name], None)
    for name, number, op in head.get("told", ()):
        index.v_op[index.version(ids[name], number)] = first_op + op
    for name, number, body, start, stop, op in head.get("said", ()):
        if body is None:
            ver = index.version(ids[name], number)
        else:
            pos, length = places[body]
            ver = index.add_version(ids[name], 0, pos, length, first_op + op)
        index.ghosts.setdefault(ids[name], []).append((tx, recorded(start), _stop(stop), ver))
    for name, start, stop, op in head.get("turns", ()):
        index.add_turn(ids[name], (tx, recorded(start), _stop(stop), first_op + op))
    for name, start, stop, op in head.get("gaps", ()):
        index.gaps.setdefault(ids[name], []).append((tx, recorded(start), _stop(stop), first_op + op))
        index.falls(ids[name], tx, refuted=index.o_verb[first_op + op] in RETRACTING)


def _links(index: Followed, head: Head, places: Places, tx: Instant, first_op: int) -> None:
    """Kinds of link, links, and what is said of them."""
    ids = index.ids
    for kind in head.get("kinds", ()):
        if "promoted" in kind:
            index.promoted.append(kind["promoted"])
        else:
            index.kinds.append(kind)
    if links := head.get("links"):
        names, begins, kinds, ends = zip(*links, strict=True)
        sources, targets = list(map(ids.__getitem__, begins)), list(map(ids.__getitem__, ends))
        made = range(len(index.l_name), len(index.l_name) + len(names))
        index.l_kind.extend(kinds)
        index.l_src.extend(sources)
        index.l_tgt.extend(targets)
        index.rows_of_link.extend([] for _ in names)
        index.claims_of.extend([] for _ in names)
        index.l_name.extend(names)
        out, into = index.out, index.into
        for link, source, kind, target in zip(made, sources, kinds, targets, strict=True):
            out.setdefault(source, []).append(link)
            into.setdefault(target, []).append(link)
            index.note_link(link, source, kind, target)
        index.link_ids.update(zip(names, made, strict=True))
    if claims := head.get("claims"):
        names, numbers, strengths, inferred, makers, bodies = zip(*claims, strict=True)
        of, claims_of = list(map(index.link_ids.__getitem__, names)), index.claims_of
        there = [(0, 0) if body is None else places[body] for body in bodies]
        first = len(index.c_link)
        grow(index.c_op, -1, len(of))
        index.c_num.extend(numbers)
        index.c_strength.extend([strength or 0 for strength in strengths])
        index.c_inferred.extend(inferred)
        index.c_by.extend(makers)
        index.c_pos.extend([pos for pos, _ in there])
        index.c_len.extend([length for _, length in there])
        index.c_link.extend(of)
        for claim, link in enumerate(of, first):
            claims_of[link].append(claim)


def _link_rows(index: Followed, head: Head, tx: Instant, first_op: int) -> None:
    for row, op in head.get("link_closed", ()):
        index.close_link_row(row, tx, first_op + op)
    rows = head.get("link_rows")
    if not rows:
        return
    names, numbers, begun, ended, by = zip(*rows, strict=True)
    links = list(map(index.link_ids.__getitem__, names))
    claims = [_claim(index, link, number) for link, number in zip(links, numbers, strict=True)]
    ops = [first_op + op for op in by]
    c_op = index.c_op
    for claim, op in zip(claims, ops, strict=True):
        if c_op[claim] < 0:
            c_op[claim] = op
    first, count, rows_of_link = len(index.k_link), len(links), index.rows_of_link
    for column, values in (
        (index.k_claim, claims), (index.k_from, all_recorded(begun)), (index.k_to, all_recorded(ended)),
        (index.k_tx, tx), (index.k_end, OPEN), (index.k_op, ops), (index.k_close, -1),
        (index.k_link, links),
    ):  # fmt: skip
        grow(column, values, count)
    for row, link in enumerate(links, first):
        index.rest(link, tx)
        rows_of_link[link].append(row)
        if index._runs:
            index.link_changed(link)


def _link_changes(index: Followed, head: Head, tx: Instant, first_op: int) -> None:
    """What the rows of links do not show by themselves: who said a claim first, what came and went, what a supersession took."""
    link_ids = index.link_ids
    for name, number, op in head.get("link_told", ()):
        index.c_op[_claim(index, link_ids[name], number)] = first_op + op
    for name, start, stop, op in head.get("linked", ()):
        ghost = (tx, recorded(start), _stop(stop), first_op + op)
        index.link_ghosts.setdefault(link_ids[name], []).append(ghost)
    for name, pieces in head.get("took", {}).items():
        link = link_ids[name]
        old = index.l_tgt[link]
        index.retake(link, index.taken.get(link), tx)
        index.taken[link] = [
            (index.version(old, number), recorded(start), _stop(stop)) for number, start, stop in pieces
        ]


def _claim(index: Followed, link: int, number: int) -> int:
    claims, c_num = index.claims_of[link], index.c_num
    if claims and c_num[claims[-1]] == number:
        return claims[-1]
    return next(claim for claim in reversed(claims) if c_num[claim] == number)
