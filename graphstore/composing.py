"""The lines of a transaction, from what it left in the index: each list of a head is written by one loop over columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphstore.index_columns import Mark
from graphstore.period import end_moment, moment

if TYPE_CHECKING:
    from graphstore.writing import Transaction

AT_ONCE = 1000  # operations, rows or links in one line of a large transaction
Numbers = Sequence[int]


@dataclass(slots=True)
class Line:
    """One line to be: its head, the bodies it holds, and which columns wait for their places."""

    head: dict[str, Any]
    first_op: int = 0
    bodies: list[bytes] = field(default_factory=list)
    bodied: list[tuple[array[int], int, int]] = field(default_factory=list)  # column, row of it, body number


class Composer:
    """Turns what a transaction left in the index into the heads and bodies of its lines.

    A large transaction is cut into lines of `AT_ONCE` things; a reader takes it as one, at its last line. An operation is named by its
    distance from the first of its line, so it may be in another one.
    """

    def __init__(self, work: Transaction) -> None:
        self.work = work
        self.index, self.mark = work.index, work.mark
        self.line = Line({})
        self.order: dict[int, int] = {}  # pending place -> body number in the line
        self.first_op = self.mark.ops

    def compose(self) -> tuple[list[Line], bool]:
        """The lines, and whether something born here died here: that is left out."""
        index, mark = self.index, self.mark
        lists: dict[str, Numbers] = self._born()
        closed = [index.closings[at] for at in lists.pop("closings", ())]
        unlinked = [index.link_closings[at] for at in lists.pop("link_closings", ())]
        lists["closed"] = [row for row in closed if row < mark.rows]
        lists["link_closed"] = [row for row in unlinked if row < mark.link_rows]
        died = len(lists["closed"]) < len(closed) or len(lists["link_closed"]) < len(unlinked)
        if died:
            lists.update(self._left())
        wanted = [(name, numbers) for name in _LISTS if (numbers := lists.get(name))]
        if sum([len(lists.get(name, ())) for name in ("ops", "rows", "links")]) <= AT_ONCE:
            lines = [self._fill(wanted)]
        else:
            lines = [
                self._fill([(name, numbers[start : start + AT_ONCE])])
                for name, numbers in wanted
                for start in range(0, len(numbers), AT_ONCE)
            ]
        last = lines[-1].head
        if died:
            self.first_op = lines[-1].first_op
            self._gaps(last, set(lists["entities"]))
        if self.work.took:
            self._took(last, set(lists.get("links", ())), set(lists.get("versions", ())))
        lines[0].head.update(self.work.of_the_store())
        self._branches(last)
        return lines, died

    # ------------------------------------------------------------------ what is written

    def _born(self) -> dict[str, Numbers]:
        """What the transaction added to each group of columns, where it added anything."""
        ends = zip(Mark._fields, self.mark, self.index.lengths(), strict=True)
        return {name: range(start, stop) for name, start, stop in ends if start < stop}

    def _left(self) -> dict[str, Numbers]:
        """The same without what died here, and what nothing but that led to."""
        index, mark, born = self.index, self.mark, self._born()
        rows = [row for row in born.get("rows", ()) if index.r_close[row] < 0]
        link_rows = [row for row in born.get("link_rows", ()) if index.k_close[row] < 0]
        claims = _among(born.get("claims", ()), {index.k_claim[row] for row in link_rows})
        links = _among(born.get("links", ()), {index.k_link[row] for row in link_rows})
        named = {end for link in links for end in (index.l_src[link], index.l_tgt[link])}
        entities = _among(born.get("entities", ()), {index.r_ent[row] for row in rows} | named)
        # a thing that a link names keeps its last description, though no row of it is left
        last = {index.versions_of[ent][-1] for ent in entities if not index.now_of[ent]}
        # and what a supersession took can be given back
        last |= {
            ver for link in self.work.took for ver, _, _ in index.taken.get(link, ()) if ver >= mark.versions
        }
        versions = _among(born.get("versions", ()), {index.r_ver[row] for row in rows} | last)
        kept = set(entities)
        seen = [
            row
            for row in born.get("seen", ())
            if index.s_ent[row] < mark.entities or index.s_ent[row] in kept
        ]
        return {
            "entities": entities,
            "versions": versions,
            "rows": rows,
            "seen": seen,
            "links": links,
            "claims": claims,
            "link_rows": link_rows,
        }

    def _fill(self, lists: list[tuple[str, Numbers]]) -> Line:
        self.order = {}
        head: dict[str, Any] = {"tx": moment(self.work.tx)}
        self.line = Line(head, self.first_op)
        if self.index.branch is not None:
            head["branch"] = self.index.branch
        if self.work.author is not None:
            head["author"] = self.work.author
        for name, numbers in lists:
            head[name] = _LISTS[name](self, numbers)
        self.first_op += len(head.get("ops", ()))
        return self.line

    def _gaps(self, head: dict[str, Any], entities: set[int]) -> None:
        """Which operation took which part of a thing: what died here cannot say it any more."""
        index, mark = self.index, self.mark
        gaps = [
            [index.names[ent], moment(start), end_moment(stop), op - self.first_op]
            for ent, (start, stop), op in self.work.takes
            if (ent < mark.entities or ent in entities) and index.o_verb[op] != "revise"
        ]
        if gaps:
            head["gaps"] = gaps

    def _took(self, head: dict[str, Any], links: set[int], versions: set[int]) -> None:
        index, mark = self.index, self.mark
        took = {
            index.l_name[link]: [
                [index.v_num[ver], moment(start), end_moment(stop)]
                for ver, start, stop in index.taken[link]
                if ver < mark.versions or ver in versions
            ]
            for link in self.work.took
            if (link < mark.links or link in links) and link in index.taken
        }
        if took:
            head["took"] = took

    def _branches(self, head: dict[str, Any]) -> None:
        if self.work.branches:
            head["branches"] = self.work.branches
        if self.work.aliases:
            numbers = self.index.v_num
            head["aliases"] = [
                [branch, there, name, numbers[ver]] for branch, there, name, ver in self.work.named_aliases()
            ]

    # ------------------------------------------------------------------ how each list is written

    def _body(self, column: array[int], at: int) -> int:
        """The number of the body whose place stands in `column[at]`."""
        line, pos = self.line, column[at]
        number = self.order.get(pos)
        if number is None:
            number = self.order[pos] = len(line.bodies)
            line.bodies.append(self.work.bodies[-pos - 1])
        line.bodied.append((column, at, number))
        return number

    def _ops(self, ops: Numbers) -> list[Any]:
        index, why = self.index, self.work.why[0]
        written = []
        for op in ops:
            said: list[Any] = [index.o_verb[op], index.o_subject[op]]
            if index.o_len[op]:
                number = self._body(index.o_pos, op)
                if index.o_pos[op] == why:
                    self.line.head["why"] = number
                else:
                    said.append(number)
            written.append(said)
        return written

    def _entities(self, entities: Numbers) -> list[Any]:
        index = self.index
        names, kind, key, scope, is_event = index.names, index.kind, index.key, index.scope, index.is_event
        return [
            [names[ent], kind[ent]] if is_event[ent] else [names[ent], kind[ent], key[ent], scope[ent]]
            for ent in entities
        ]

    def _versions(self, versions: Numbers) -> list[Any]:
        index, body = self.index, self._body
        names, ent, number, place = index.names, index.v_ent, index.v_num, index.v_pos
        return [[names[ent[ver]], number[ver], body(place, ver)] for ver in versions]

    def _closed(self, rows: Numbers) -> list[Any]:
        return [[row, self.index.r_close[row] - self.first_op] for row in rows]

    def _rows(self, rows: Numbers) -> list[Any]:
        index, first = self.index, self.first_op
        names, ent, number, ver = index.names, index.r_ent, index.v_num, index.r_ver
        start, stop, op = index.r_from, index.r_to, index.r_op
        return [
            [names[ent[row]], number[ver[row]], moment(start[row]), end_moment(stop[row]), op[row] - first]
            for row in rows
        ]

    def _seen(self, rows: Numbers) -> list[Any]:
        index, first = self.index, self.first_op
        return [
            [index.names[index.s_ent[row]], moment(index.s_at[row]), index.s_op[row] - first] for row in rows
        ]

    def _links(self, links: Numbers) -> list[Any]:
        index = self.index
        ids, names, kind, source, target = index.l_name, index.names, index.l_kind, index.l_src, index.l_tgt
        return [[ids[link], names[source[link]], kind[link], names[target[link]]] for link in links]

    def _claims(self, claims: Numbers) -> list[Any]:
        index = self.index
        return [
            [
                index.l_name[index.c_link[claim]],
                index.c_num[claim],
                index.c_strength[claim] or None,
                index.c_inferred[claim],
                index.c_by[claim],
                self._body(index.c_pos, claim) if index.c_len[claim] else None,
            ]
            for claim in claims
        ]

    def _link_closed(self, rows: Numbers) -> list[Any]:
        return [[row, self.index.k_close[row] - self.first_op] for row in rows]

    def _link_rows(self, rows: Numbers) -> list[Any]:
        index, first = self.index, self.first_op
        ids, link, number, claim = index.l_name, index.k_link, index.c_num, index.k_claim
        start, stop, op = index.k_from, index.k_to, index.k_op
        return [
            [ids[link[row]], number[claim[row]], moment(start[row]), end_moment(stop[row]), op[row] - first]
            for row in rows
        ]


# each list comes after the ones it names things of; a large transaction ends one before it begins the next
_LISTS: dict[str, Callable[[Composer, Numbers], list[Any]]] = {
    "ops": Composer._ops,
    "entities": Composer._entities,
    "versions": Composer._versions,
    "closed": Composer._closed,
    "rows": Composer._rows,
    "seen": Composer._seen,
    "links": Composer._links,
    "claims": Composer._claims,
    "link_closed": Composer._link_closed,
    "link_rows": Composer._link_rows,
}


def _among(numbers: Numbers, used: set[int]) -> Numbers:
    return [number for number in numbers if number in used]
