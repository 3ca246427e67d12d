"""Resolve ids and times for one verb in a transaction, and build the nodes and links that the verb returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.working_set import WorkingSet
from graphstore.values.content_diff import same
from graphstore.values.coordinates import resolve
from graphstore.values.drawn_ids import drawn
from graphstore.values.inputs import at_least_one, new_name, text_of
from graphstore.values.models import Json, Link, Node
from graphstore.values.period import Instant, Period, TimeLike, coalesce, exactly, overlap
from graphstore.values.random_bits import random_64
from graphstore.values.text import described, line
from graphstore.values.vocabulary import JOINS
from graphstore.view.sight import Core
from graphstore.view.working_sight import WorkingSight
from graphstore.write.bounds import Bounds
from graphstore.write.linking import joined_into
from graphstore.write.transaction import Transaction
from graphstore.write.trust import Trust

_SECOND = 1_000_000


def new_id(index: WorkingSet) -> str:
    """Return a random id that no thing has yet."""
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
        """Return the working set of the transaction. It changes when the transaction stops reading the stored rows."""
        return self.work.index

    def sight(self) -> WorkingSight:
        """Return a view of the store that includes the changes of this verb."""
        return WorkingSight(self.core, self.work.tx, self.work.tx)

    def time(self, value: TimeLike, what: str) -> Instant:
        """Return the instant that a caller gave. "now" is the transaction's instant."""
        at = resolve(value, what, self.work.tx, partial(self.core.snapshots, self.work.tx))
        if self.work.call is not None:
            self.work.call.times[what] = at
        return at

    def transaction(self, value: TimeLike) -> Instant:
        """Return the instant of the transaction that a caller means. A time in whole seconds means the only transaction within its second; several raise ConflictError."""
        index = self.index
        at = resolve(
            value,
            "tx",
            self.work.tx,
            partial(self.core.snapshots, self.work.tx),
            axis="tx",
            meaning="from",
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
        """Return the trust rules of the store for this writer: `source` if given, else the transaction's author."""
        return Trust(self.core, self.work.author, source)

    def free_id(self, id: str) -> str:
        """Return the id that a caller wants for a new thing. Raises ConflictError if the id is in use."""
        name = new_name("id", text_of("id", id))
        if name in self.index.ids:
            raise ConflictError(
                f"{name!r} is known already. Use revise({name!r}, …) to describe it anew, or choose another id."
            )
        return name

    def known(self, id: str, node: bool = False, *, is_exact: bool = False) -> int:
        """Return the entity with a full id, or with a reference `{id}-v{n}`; of a joined one, what it was joined into, unless `is_exact`.

        With `node`, an event raises InvalidError.
        """
        ent: int = self.index.ids.get(id, -1) if isinstance(id, str) else -1
        if ent < 0:
            ent, _ = self.sight().resolve(id)
        if not is_exact:
            ent = self.through(ent)
        if node and self.index.is_event[ent]:
            name = self.index.names[ent]
            raise InvalidError(
                f"{name!r} is an event: it is never revised or ended. Record a new event and link it, or retract it whole."
            )
        return ent

    def through(self, ent: int) -> int:
        """Return what a thing was joined into; the thing itself if it was not."""
        return joined_into(self.index, ent, self.work.tx) if self.index.setting(JOINS) else ent

    def expect(self, ent: int, number: int | None) -> None:
        """Raise ConflictError unless version `number` of a node holds now. If no version holds, its last version is compared. None accepts any version."""
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
        """Return the link with a full id. Raises NotFoundError if there is none."""
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
        """Record over which periods an operation changes the content last stated there. Call it before the operation describes an entity over `spans`.

        `body` reads the body of a version, if the caller has cached some.
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
        """Return the node that a verb has changed: by the row that holds now if the verb wrote its version, else by `row`."""
        index = self.index
        now = index.find(ent, self.work.tx, self.work.tx)
        return self.shown(ent, now if now >= 0 and index.r_ver[now] == index.r_ver[row] else row, body)

    def shown(self, ent: int, row: int, body: Json | None = None) -> Node:
        """Return a node as one of its rows describes it. `body`: the body of that row, if the caller has it."""

        def make() -> Node:
            sight = self.sight()
            standing = sight.standing(ent)
            return sight.node(row, standing) if body is None else sight.written(row, standing, body)

        index = self.index
        return self.work.answer(Node, make, id=index.names[ent], number=index.v_num[index.r_ver[row]])

    def linked(self, rows: list[int]) -> list[Link]:
        """Return links, by their rows, as the verb leaves them."""
        sight: list[WorkingSight] = []

        def make(row: int) -> Link:
            if not sight or sight[0].index is not self.index:  # the working set was replaced
                sight[:] = [self.sight()]
            return sight[0].link(row)

        names, links = self.index.l_name, self.index.k_link
        return [self.work.answer(Link, partial(make, row), id=names[links[row]]) for row in rows]
