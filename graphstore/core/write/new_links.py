"""Links of one transaction that are plainly new, added to the index together, column by column. Every other link is said by `linking.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphstore.core.index.births import grow
from graphstore.core.read.sight import Core, in_time
from graphstore.core.write.given_arguments import bounds
from graphstore.core.write.linking import Ends, Linking
from graphstore.core.write.transaction import Transaction
from graphstore.values.period import OPEN, Instant
from graphstore.values.vocabulary import Kind


class Attributes(NamedTuple):
    """What rows of links with the same name of a kind, confidence and maker have alike: the kind, which does nothing to its ends; whether its ends are
    to be exchanged."""

    kind: Kind
    name: str
    both: bool  # whether it says the same, or the contrary, the other way round
    turned: bool
    inferred: bool
    by: str


class NewLinks:
    """The new links that wait. Nothing else may change the index before `bear`."""

    def __init__(self, core: Core, work: Transaction) -> None:
        self.index, self.work = core.index, work
        self._linking = Linking(core, work)
        # id, source, kind, target, strength, inferred, by, place and length of the body, when it holds, and from when it was said to
        self._waiting: list[
            tuple[str, int, str, int, int, int, str, int, int, Instant, Instant, Instant | None]
        ] = []
        self._names: set[str] = set()
        self._said: set[tuple[int, str, int]] = set()
        self._led_to: set[int] = set()  # targets of kinds that may close no cycle

    def say(
        self,
        source: int,
        attributes: Attributes,
        target: int,
        since: Instant | None,
        until: Instant,
        strength: int,
        body: bytes,
        id: str | None,
    ) -> tuple[str, Instant] | None:
        """Say a link between two entities: its id, and when it begins. None, and nothing is done, where that takes more than adding it.

        `body` is what the journal is to have of it, empty for nothing; `id` is printable.
        """
        kind, name, both, turned, inferred, by = attributes
        if turned:
            source, target = target, source
        if source == target or not self._is_new(source, kind, name, both, target, since):
            return None
        start = self._linking.begins(Ends(source, kind, target)) if since is None else since
        if start >= until:
            return None
        if id is None:
            id = self._linking.new_link_id()
        if id in self._names or id in self.index.link_ids:
            return None
        place = 0
        if body:
            bodies = self.work.bodies
            bodies.append(body)
            place = -len(bodies)
        self._waiting.append(
            (id, source, name, target, strength, inferred, by, place, len(body), start, until, since)
        )
        self._names.add(id)
        self._said.add((source, name, target))
        if kind.acyclic:
            self._led_to.add(target)
        return id, start

    def _is_new(
        self, source: int, kind: Kind, name: str, both: bool, target: int, since: Instant | None
    ) -> bool:
        """Whether nothing says such a link, or its contrary, and nothing forbids it."""
        index, tx, said = self.index, self.work.tx, self._said
        if (
            (source, name, target) in said
            or (both and (target, name, source) in said)
            or (kind.acyclic and source in self._led_to)
        ):
            self.bear()
        if index.saying(source, name, target) or (both and index.saying(target, name, source)):
            return False
        if kind.causal and not in_time(index, source, target, since, tx):
            return False
        if kind.forward:
            first, second = index.start(source, tx), index.start(target, tx)
            if first is not None and second is not None and first > second:
                return False
        return not (kind.acyclic and self._linking.closes_cycle(Ends(source, kind, target), tx))

    def bear(self) -> None:
        """Add the links that wait. What leads to a link is set when all its columns are there."""
        if not self._waiting:
            return
        index, work, count = self.index, self.work, len(self._waiting)
        names, sources, kinds, targets, strengths, inferred, makers, places, lengths, starts, stops, given = (
            zip(*self._waiting, strict=True)
        )
        links, claims, rows, ops = (
            range(len(column), len(column) + count)
            for column in (index.l_name, index.c_link, index.k_link, index.o_tx)
        )
        for op, since, stop in zip(ops, given, stops, strict=True):
            if since is not None or stop < OPEN:
                work.record(op, bounds(since, stop if stop < OPEN else None))
        why, why_length = work.why
        texts: tuple[tuple[list[Any], Any], ...] = (
            (index.o_verb, ["link"] * count), (index.o_subject, names), (index.o_author, [work.author] * count),
            (index.c_by, makers), (index.l_kind, kinds),
        )  # fmt: skip
        for texts_of, values in texts:
            texts_of.extend(values)
        for column, numbers in (
            (index.o_pos, why if why_length else places), (index.o_len, why_length or lengths), (index.o_tx, work.tx),
            (index.l_src, sources), (index.l_tgt, targets),
            (index.c_op, ops), (index.c_num, 1), (index.c_strength, strengths), (index.c_inferred, [int(one) for one in inferred]),
            (index.c_pos, places), (index.c_len, lengths), (index.c_link, links),
            (index.k_claim, claims), (index.k_from, starts), (index.k_to, stops), (index.k_tx, work.tx),
            (index.k_end, OPEN), (index.k_op, ops), (index.k_close, -1), (index.k_link, links),
        ):  # fmt: skip
            grow(column, numbers, count)
        index.claims_of.extend([claim] for claim in claims)
        index.rows_of_link.extend([row] for row in rows)
        index.l_name.extend(names)
        index.note_links(links)
        index.link_ids.update(zip(names, links, strict=True))
        for there in (self._waiting, self._names, self._said, self._led_to):
            there.clear()
