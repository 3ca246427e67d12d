"""One verb in a transaction: which things its ids name, which ids are free, and the node it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.working_set import WorkingSet
from graphstore.values.content_diff import same
from graphstore.values.coordinates import resolve
from graphstore.values.drawn_ids import drawn
from graphstore.values.inputs import at_least_one, printable, text_of
from graphstore.values.models import Json, Link, Node
from graphstore.values.period import Instant, Period, TimeLike, coalesce, exactly, overlap
from graphstore.values.random_bits import random_64
from graphstore.values.text import described, line
from graphstore.view.sight import Core
from graphstore.view.working_sight import WorkingSight
from graphstore.write.bounds import Bounds
from graphstore.write.transaction import Transaction
from graphstore.write.trust import Trust

_SECOND = 1_000_000


def new_id(index: WorkingSet) -> str:
    """Return an id that nothing has."""
    return drawn(random_64, index.ids)


class Act:
    """The context of one verb: the store's core and the transaction."""

    def __init__(self, core: Core, work: Transaction) -> None:
        self.core, self.work = core, work

    @cached_property
    def linking(self) -> Bounds:
        """Return the links of the transaction."""
        return Bounds(self.core, self.work)

    @property
    def index(self) -> WorkingSet:
        """Return what the transaction reads from: another index once it has left the rows."""
        return self.work.index

    def sight(self) -> WorkingSight:
        """Return the store as the verb leaves it."""
        return WorkingSight(self.core, self.work.tx, self.work.tx)

    def time(self, value: TimeLike, what: str) -> Instant:
        """Return the instant a caller gave; "now" is the transaction's instant."""
        at = resolve(value, what, self.work.tx, partial(self.core.snapshots, self.work.tx))
        if self.work.call is not None:
            self.work.call.times[what] = at
        return at

    def transaction(self, value: TimeLike) -> Instant:
        """Return the instant of the transaction a caller means: exactly that, or the only one within the second that a time without a fraction names."""
        index = self.index
        at = resolve(
            value,
            "tx",
            self.work.tx,
            partial(self.core.snapshots, self.work.tx),
            axis="tx",
            present=self.work.tx,
        )
        within = [] if at % _SECOND else index.instants_between(at, at + _SECOND)
        if within[:1] == [at]:
            return at
        if len(within) > 1:
            raise ConflictError(
                f"{len(within)} transactions lie in the second of {exactly(at)}: {', '.join(map(exactly, within[:4]))}. Give one exactly."
            )
        return within[0] if within else at

    def trust(self, source: str | None = None) -> Trust:
        """Return the trust of the store, the writer being `source`, else the transaction's author."""
        return Trust(self.core, self.work.author, source)

    def free_id(self, id: str) -> str:
        """Return an id that a caller wants for something new. Raises ConflictError when it is taken."""
        name = printable("id", text_of("id", id))
        if name in self.index.ids:
            raise ConflictError(
                f"{name!r} is known already. Use revise({name!r}, …) to describe it anew, or choose another id."
            )
        return name

    def known(self, id: str, node: bool = False) -> int:
        """Return the entity that a whole id, or a `{id}-v{n}`, names. With `node`, an event raises InvalidError."""
        ent: int = self.index.ids.get(id, -1) if isinstance(id, str) else -1
        if ent < 0:
            ent, _ = self.sight().resolve(id)
        if node and self.index.is_event[ent]:
            name = self.index.names[ent]
            raise InvalidError(
                f"{name!r} is an event: it is never revised or ended. Record a new event and link it, or retract it whole."
            )
        return ent

    def expect(self, ent: int, number: int | None) -> None:
        """Raise ConflictError when another version of a node holds now than the caller expects, None for any; where none holds, its last one counts."""
        if number is None:
            return
        at_least_one("if_number", number)
        index, name, sight = self.index, self.index.names[ent], self.sight()
        if index.is_event[ent]:
            raise InvalidError(f"{name!r} is an event, which has no versions. Leave if_number out.")
        row = sight.find(ent)
        if row >= 0:
            ver = index.r_ver[row]
        else:
            shown = (index.r_ver[one] for one in index.rows_of[ent] if index.r_tx[one] < index.r_end[one])
            ver = max(shown, key=index.v_num.__getitem__, default=-1)
        if ver < 0:
            raise ConflictError(f"{name!r} was expected at version {number} (if_number), and has none.")
        there = index.v_num[ver]
        if there != number:
            op, body = index.v_op[ver], self.core.body(index.v_pos[ver], index.v_len[ver])
            who = f" by {index.o_author[op]}" if index.o_author[op] else ""
            holds = "holds now" if row >= 0 else "is its last, and nothing holds now"
            text = line(described(body.get("content", {}), body.get("text")))
            raise ConflictError(
                f"{name!r} was expected at version {number} (if_number), and version {there} {holds}: {text!r}, "
                f"recorded {exactly(index.o_tx[op])}{who}. Read it again; if_number={there} writes over it."
            )

    def known_link(self, id: str) -> int:
        """Return the link a whole id names."""
        index = self.index
        if not isinstance(id, str):
            raise InvalidError(f"link_id {id!r} is no text. Give a str.")
        if id not in index.link_ids:
            raise NotFoundError.nearest("link", id, lambda: index.ids_beside(id, "link"))
        return index.link_ids[id]

    def body(self, ver: int) -> Json:
        """Return the body of a version."""
        return self.core.body(self.index.v_pos[ver], self.index.v_len[ver])

    def turn(
        self,
        ent: int,
        spans: Iterable[Period],
        content: Json,
        op: int,
        body: Callable[[int], Json] | None = None,
    ) -> None:
        """Record where an operation, about to describe an entity over `spans`, says another content than what was said there last.

        `body` gives the body of a version, if the caller has read some.
        """
        read = body or self.body
        found: list[Period] = []
        for span in spans:
            for start, stop, ver in self.index.said_over(ent, span):
                part = overlap((start, stop), span)
                if part is None:
                    break
                if not same(read(ver).get("content"), content):
                    found.append(part)
        for part in coalesce(found) if len(found) > 1 else found:
            self.work.turn(ent, part, op)

    def written(self, ent: int, row: int, body: Json) -> Node:
        """Return the node as a verb leaves it: the row that holds now if the verb wrote that, else the one it wrote last."""
        index = self.index
        now = index.find(ent, self.work.tx, self.work.tx)
        return self.shown(ent, now if now >= 0 and index.r_ver[now] == index.r_ver[row] else row, body)

    def shown(self, ent: int, row: int, body: Json | None = None) -> Node:
        """Return a node as one of its rows describes it. `body`: that of the row, if the caller has it."""

        def make() -> Node:
            sight = self.sight()
            standing = sight.standing(ent)
            return sight.node(row, standing) if body is None else sight.written(row, standing, body)

        index = self.index
        return self.work.answer(Node, make, id=index.names[ent], number=index.v_num[index.r_ver[row]])

    def linked(self, rows: list[int]) -> list[Link]:
        """Links as a verb leaves them, by their rows."""
        sight: list[WorkingSight] = []

        def make(row: int) -> Link:
            if not sight or sight[0].index is not self.index:  # the transaction has left the rows meanwhile
                sight[:] = [self.sight()]
            return sight[0].link(row)

        names, links = self.index.l_name, self.index.k_link
        return [self.work.answer(Link, partial(make, row), id=names[links[row]]) for row in rows]
