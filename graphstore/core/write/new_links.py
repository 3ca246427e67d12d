"""Links of one transaction that are plainly new, added to the index together, column by column. Every other link is said by `linking.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphstore.core.read.sight import Core, in_time
from graphstore.core.write.linking import Claim, Ends, Linking
from graphstore.core.write.transaction import Transaction
from graphstore.values.inputs import printable
from graphstore.values.period import OPEN, Instant


class _New(NamedTuple):
    """A link that is not in the index yet: its ends as entities, its attributes, the place of its body, when it holds."""

    name: str
    source: int
    kind: str
    target: int
    strength: int
    inferred: int
    by: str
    pos: int
    length: int
    start: Instant
    stop: Instant


class NewLinks:
    """The new links that wait. Nothing else may change the index before `bear`."""

    def __init__(self, core: Core, work: Transaction) -> None:
        self.index, self.work = core.index, work
        self._linking = Linking(core, work)
        self._waiting: list[_New] = []
        self._names: set[str] = set()
        self._said: set[tuple[int, str, int]] = set()
        self._led_to: set[int] = set()  # targets of kinds that may close no cycle

    def say(
        self, ends: Ends, since: Instant | None, until: Instant, claim: Claim
    ) -> tuple[str, Instant] | None:
        """Say a link of a kind that does nothing to its ends: its id, and when it begins. None, and nothing is done, where that takes more than adding it."""
        source, kind, target = ends
        start = self._linking.begins(ends) if since is None else since
        if source == target or start >= until or not self._is_new(ends, since):
            return None
        if claim.id is None:
            name = self._linking.new_link_id()
        else:
            name = printable("link id", claim.id)
        if name in self._names or name in self.index.link_ids:
            return None
        body = claim.body()
        place = self.work.body(body) if body else (0, 0)
        self._waiting.append(
            _New(
                name, source, kind.name, target, claim.strength or 0, int(claim.inferred), claim.created_by,
                *place, start, until,
            )
        )  # fmt: skip
        self._names.add(name)
        self._said.add((source, kind.name, target))
        if kind.acyclic:
            self._led_to.add(target)
        return name, start

    def _is_new(self, ends: Ends, since: Instant | None) -> bool:
        """Whether nothing says such a link, or its contrary, and nothing forbids it."""
        index, tx = self.index, self.work.tx
        source, kind, target = ends
        both = kind.symmetric or kind.causal
        if (
            (source, kind.name, target) in self._said
            or (both and (target, kind.name, source) in self._said)
            or (kind.acyclic and source in self._led_to)
        ):
            self.bear()
        if index.saying(source, kind.name, target) or (both and index.saying(target, kind.name, source)):
            return False
        if kind.causal and not in_time(index, source, target, since, tx):
            return False
        if kind.forward:
            first, second = index.start(source, tx), index.start(target, tx)
            if first is not None and second is not None and first > second:
                return False
        return not (kind.acyclic and self._linking.closes_cycle(ends, tx))

    def bear(self) -> None:
        """Add the links that wait. What leads to a link is set when all its columns are there."""
        if not self._waiting:
            return
        index, work, count = self.index, self.work, len(self._waiting)
        names, sources, kinds, targets, strengths, inferred, makers, places, lengths, starts, stops = zip(
            *self._waiting, strict=True
        )
        links, claims, rows, ops = (
            range(len(column), len(column) + count)
            for column in (index.l_name, index.c_link, index.k_link, index.o_tx)
        )
        same, first, none = [work.tx] * count, [1] * count, [-1] * count
        why, why_length = work.why
        texts: tuple[tuple[list[Any], Any], ...] = (
            (index.o_verb, ["link"] * count), (index.o_subject, names), (index.o_author, [work.author] * count),
            (index.c_by, makers), (index.l_kind, kinds),
        )  # fmt: skip
        for texts_of, values in texts:
            texts_of.extend(values)
        for column, numbers in (
            (index.o_pos, [why] * count if why_length else places),
            (index.o_len, [why_length] * count if why_length else lengths), (index.o_tx, same),
            (index.l_src, sources), (index.l_tgt, targets),
            (index.c_op, ops), (index.c_num, first), (index.c_strength, strengths), (index.c_inferred, inferred),
            (index.c_pos, places), (index.c_len, lengths), (index.c_link, links),
            (index.k_claim, claims), (index.k_from, starts), (index.k_to, stops), (index.k_tx, same),
            (index.k_end, [OPEN] * count), (index.k_op, ops), (index.k_close, none), (index.k_link, links),
        ):  # fmt: skip
            column.extend(numbers)
        index.claims_of.extend([claim] for claim in claims)
        index.rows_of_link.extend([row] for row in rows)
        index.l_name.extend(names)
        out, into = index.out, index.into
        for link, source, kind, target in zip(links, sources, kinds, targets, strict=True):
            out.setdefault(source, []).append(link)
            into.setdefault(target, []).append(link)
            index.note_link(link, source, kind, target)
            index.rest(link, work.tx)
            if index._runs:
                index.link_changed(link)
        index.link_ids.update(zip(names, links, strict=True))
        for there in (self._waiting, self._names, self._said, self._led_to):
            there.clear()
