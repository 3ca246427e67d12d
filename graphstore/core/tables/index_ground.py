"""The graph of a view read from the index: of a store in memory or in PostgreSQL, a branch, a copy of a part, and a store whose index is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from graphstore.core.index.foundations import Resting, within_reach
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Happened, Raw, tombstone
from graphstore.core.index.shaky_spans import NO, NOT_KEPT
from graphstore.core.tables.arrow_tables import NodeTables, holding, numbers, read_bodies
from graphstore.core.tables.ground import (
    ABSENT,
    EVENT,
    LABELS,
    NODE,
    Group,
    LinkShown,
    Occurred,
    Thing,
    with_latest,
)
from graphstore.values.models import Json
from graphstore.values.period import Instant

_MANY = 0.1  # of all that rests on something: from then on what fell is followed to all that it shakes
_NODE, _ABSENT, _EVENT = map(LABELS.index, (NODE, ABSENT, EVENT))


class IndexGround:
    """What the index has at (valid, tx). `raw` reads bodies, `tables` keeps what nodes say."""

    def __init__(self, index: Index, raw: Raw, tables: NodeTables, valid: Instant, tx: Instant) -> None:
        self._index, self._raw, self._tables = index, raw, tables
        self._valid, self._tx = valid, tx
        self._resting = Resting(index, valid, tx, raw)
        rows: list[int] = holding(index.r_from, index.r_to, index.r_tx, index.r_end, valid, tx).to_pylist()
        if index.gone:
            rows = [row for row in rows if index.r_ent[row] not in index.gone]
        self._rows = rows
        self._link_rows: list[int] = holding(
            index.k_from, index.k_to, index.k_tx, index.k_end, valid, tx
        ).to_pylist()
        labels = self._labels = bytearray(b"\xff") * len(index.names)
        for row in rows:
            ent = index.r_ent[row]
            labels[ent] = _EVENT if index.is_event[ent] else _NODE
        known = zip(labels, index.born, strict=False)  # others may come meanwhile, with a later tx
        self._absent = [ent for ent, (label, born) in enumerate(known) if label == 0xFF and born <= tx]
        for ent in self._absent:
            labels[ent] = _ABSENT
        content = sum(index.v_len[index.r_ver[row]] for row in rows)
        self.size = len(rows) + len(self._absent), len(self._link_rows), content

    def nodes(self) -> dict[str, pa.Array]:
        """Return the columns of the nodes that stand, but for how they do."""
        return self._tables.of(numbers(self._rows_of(_NODE)))

    def standings(self) -> list[str]:
        """Return how these nodes stand."""
        return self._uprights([self._index.r_ent[row] for row in self._rows_of(_NODE)])

    def events(self) -> list[tuple[Thing, Occurred]]:
        """Return what has happened and is believed."""
        index, happened = self._index, self._happened()
        rows = self._rows_of(_EVENT)
        ents = [index.r_ent[row] for row in rows]
        found = []
        for ent, row, body, standing in zip(
            ents, rows, self._bodies(ents, rows), self._uprights(ents), strict=True
        ):
            occurred = Occurred(*happened.seen(ent), happened.status(ent, body), index.born[ent])
            found.append((self._thing(ent, row, standing, self._latest(happened, ent, body)), occurred))
        return found

    def absent(self) -> list[Thing]:
        """Return what is known and does not hold, with its last content."""
        index, happened, ents = self._index, self._happened(), self._absent
        rows = [_last_row(index, ent, self._valid, self._tx) for ent in ents]
        return [
            self._thing(
                ent,
                row,
                index.standing(ent, self._valid, self._tx),
                self._latest(happened, ent, body) if index.is_event[ent] else body,
            )
            for ent, row, body in zip(ents, rows, self._bodies(ents, rows), strict=True)
        ]

    def groups(self) -> dict[Group, list[int]]:
        """Return the numbers of the links that hold."""
        index, labels = self._index, self._labels
        groups: dict[tuple[str, int, int], list[int]] = {}
        for row in self._link_rows:
            link = index.k_link[row]
            group = (index.l_kind[link], labels[index.l_src[link]], labels[index.l_tgt[link]])
            groups.setdefault(group, []).append(row)
        return {Group(kind, LABELS[one], LABELS[other]): rows for (kind, one, other), rows in groups.items()}

    def links(self, numbers: Sequence[int]) -> Iterator[LinkShown]:
        """Return links by their numbers."""
        return links_of_rows(self._index, self._raw, numbers)

    def kinds(self) -> list[str]:
        """Return the kinds of all links."""
        return self._index.l_kind

    # ------------------------------------------------------------------ things

    def _rows_of(self, label: int) -> list[int]:
        index, labels = self._index, self._labels
        return [row for row in self._rows if labels[index.r_ent[row]] == label]

    def _happened(self) -> Happened:
        return Happened(self._index, self._raw, self._valid, self._tx)

    def _latest(self, happened: Happened, ent: int, body: Json) -> Json:
        return with_latest(body, happened.latest(ent, body))

    def _version(self, ent: int, row: int) -> int:
        return self._index.r_ver[row] if row >= 0 else self._index.versions_of[ent][0]

    def _bodies(self, ents: list[int], rows: list[int]) -> list[Json]:
        index = self._index
        versions = map(self._version, ents, rows)
        bodies = read_bodies(self._raw, [(index.v_pos[ver], index.v_len[ver]) for ver in versions])
        for at, ent in enumerate(ents if index.gone else ()):
            bodies[at] = bodies[at] or tombstone(index, self._raw, ent)
        return bodies

    def _thing(self, ent: int, row: int, standing: str, body: Json) -> Thing:
        """Return a thing by the row that shows it. Row -1: it held at no instant."""
        index, ver = self._index, self._version(ent, row)
        op, born = index.v_op[ver], index.born[ent]
        recorded = index.r_tx[row] if row >= 0 else born
        return Thing(
            index.names[ent], index.kind[ent], index.key[ent], index.scope[ent], index.v_num[ver], standing,
            index.o_author[op] if op >= 0 else None, index.o_tx[op] if op >= 0 else recorded,
            index.r_from[row] if row >= 0 else born, index.r_to[row] if row >= 0 else born, recorded,
            bool(index.is_event[ent]), body,
        )  # fmt: skip

    def _uprights(self, ents: list[int]) -> list[str]:
        """Return how some of the things that hold stand: superseded can only be an event."""
        index, valid, tx = self._index, self._valid, self._tx
        resting, kept = self._resting, index._shaken
        within = [ent for ent in ents if ent in index.rests and within_reach(index, ent, tx)]
        says = {ent: NOT_KEPT if kept is None else kept.says(ent, valid, tx) for ent in within}
        unknown = [ent for ent in within if says[ent] < 0]
        if len(unknown) > _MANY * len(index.rests):
            resting.take({index.r_ent[row]: row for row in self._rows}, self._link_rows)
            shaky = resting.shaken()
        else:
            shaky = {ent for ent in unknown if resting.is_shaky(ent)}
        return [
            "superseded"
            if index.is_event[ent]
            and (ent in index.successors or index._outside is not None)
            and index.superseded(ent, valid, tx)
            else "shaky"
            if (answer := says.get(ent, NO)) > 0 or (answer < 0 and ent in shaky)
            else "stands"
            for ent in ents
        ]


def links_of_rows(index: Index, raw: Raw, rows: Sequence[int]) -> Iterator[LinkShown]:
    """Return the links of some rows."""
    claims = [index.k_claim[row] for row in rows]
    bodies = read_bodies(raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims])
    names = index.names
    for row, claim, body in zip(rows, claims, bodies, strict=True):
        link, op = index.k_link[row], index.c_op[claim]
        yield LinkShown(
            index.l_name[link], index.l_kind[link], names[index.l_src[link]], names[index.l_tgt[link]],
            index.c_strength[claim] or None, index.c_inferred[claim], index.c_by[claim],
            index.o_author[op] if op >= 0 else None, index.o_tx[op] if op >= 0 else index.k_tx[row],
            index.k_from[row], index.k_to[row], index.k_tx[row], body,
        )  # fmt: skip


def _last_row(index: Index, ent: int, valid: Instant, tx: Instant) -> int:
    """Return the row that shows an absent thing: the last one for that instant, or the last of all; -1 for none."""
    row = index.last_cover(ent, valid, tx)
    if row < 0:
        believed = index.believed(ent, tx)
        row = believed[-1] if believed else index.last_written(ent, tx)
    return row
