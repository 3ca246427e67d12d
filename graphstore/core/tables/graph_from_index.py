"""The graph of a view read from the index: of a store in memory or in PostgreSQL, a branch, a copy of a part, and a store whose index is loaded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from graphstore.core.index.foundations import Resting, within_reach
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Happened, Raw, tombstone
from graphstore.core.index.shaky_spans import NO, NOT_KEPT
from graphstore.core.tables.arrow_tables import NodeTables, numbers, read_bodies
from graphstore.core.tables.graph_source import (
    ABSENT,
    EVENT,
    NODE,
    Bounds,
    Group,
    LinkPeriod,
    LinkShown,
    NodePeriod,
    Occurred,
    Span,
    Thing,
    with_latest,
)
from graphstore.values.models import Json
from graphstore.values.period import Instant

_MANY = 0.1  # of all that rests on something: from then on what fell is followed to all that it shakes


class IndexSource:
    """What the index has of a span. `raw` reads bodies, `tables` keeps what nodes say."""

    def __init__(self, index: Index, raw: Raw, tables: NodeTables, span: Span) -> None:
        self._index, self._raw, self._tables = index, raw, tables
        self._valid, self._tx = span.valid[0], span.tx[0]
        self._resting = Resting(index, self._valid, self._tx, raw)
        rows = _held((index.r_from, index.r_to, index.r_tx, index.r_end), span)
        self._rows = [row for row in rows if index.r_ent[row] not in index.gone]
        self._link_rows = _held((index.k_from, index.k_to, index.k_tx, index.k_end), span)
        self._known = bisect_left(index.born, span.tx[1])  # others may come meanwhile, with a later tx
        content = sum(index.v_len[index.r_ver[row]] for row in self._rows)
        self.size = self._known, len(self._link_rows), content

    def nodes(self) -> dict[str, pa.Array]:
        """Return the columns of the nodes that stand, in each of their periods, but for how they do."""
        return self._tables.of(numbers(self._rows_of(events=False)))

    def periods(self) -> list[NodePeriod]:
        """Return these periods, in the same order."""
        index = self._index
        return [
            NodePeriod(
                row,
                index.r_ent[row],
                Bounds(index.r_from[row], index.r_to[row], index.r_tx[row], index.r_end[row]),
            )
            for row in self._rows_of(events=False)
        ]

    def link_periods(self) -> list[LinkPeriod]:
        """Return the periods of links."""
        index, found = self._index, []
        for row in self._link_rows:
            link = index.k_link[row]
            bounds = Bounds(index.k_from[row], index.k_to[row], index.k_tx[row], index.k_end[row])
            found.append(LinkPeriod(row, index.l_kind[link], index.l_src[link], index.l_tgt[link], bounds))
        return found

    def standings(self) -> list[str]:
        """Return how these nodes stand."""
        return self._uprights([self._index.r_ent[row] for row in self._rows_of(events=False)])

    def events(self) -> list[tuple[Thing, Occurred]]:
        """Return what has happened and is believed."""
        index, happened = self._index, self._happened()
        rows = self._rows_of(events=True)
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
        index, happened = self._index, self._happened()
        held = {index.r_ent[row] for row in self._rows}
        ents = [ent for ent in range(self._known) if ent not in held]
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
        """Return the numbers of the periods of links."""
        index = self._index
        held = map(index.r_ent.__getitem__, self._rows)
        labels = {ent: EVENT if index.is_event[ent] else NODE for ent in held}
        groups: dict[tuple[str, str, str], list[int]] = {}
        for row in self._link_rows:
            link = index.k_link[row]
            ends = labels.get(index.l_src[link], ABSENT), labels.get(index.l_tgt[link], ABSENT)
            groups.setdefault((index.l_kind[link], *ends), []).append(row)
        return {Group(*group): rows for group, rows in groups.items()}

    def links(self, periods: Sequence[int]) -> Iterator[LinkShown]:
        """Return links by the numbers of their periods."""
        index, names = self._index, self._index.names
        claims = [index.k_claim[row] for row in periods]
        bodies = read_bodies(self._raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims])
        for row, claim, body in zip(periods, claims, bodies, strict=True):
            link, op = index.k_link[row], index.c_op[claim]
            yield LinkShown(
                index.l_name[link], index.l_kind[link], names[index.l_src[link]], names[index.l_tgt[link]],
                index.c_strength[claim] or None, index.c_inferred[claim], index.c_by[claim],
                index.o_author[op] if op >= 0 else None, index.o_tx[op] if op >= 0 else index.k_tx[row],
                index.k_from[row], index.k_to[row], index.k_tx[row], body,
            )  # fmt: skip

    def kinds(self) -> list[str]:
        """Return the kinds of all links."""
        return self._index.l_kind

    # ------------------------------------------------------------------ things

    def _rows_of(self, *, events: bool) -> list[int]:
        index = self._index
        return [row for row in self._rows if bool(index.is_event[index.r_ent[row]]) is events]

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
            if index.is_event[ent] and ent in index.successors and index.superseded(ent, valid, tx)
            else "shaky"
            if (answer := says.get(ent, NO)) > 0 or (answer < 0 and ent in shaky)
            else "stands"
            for ent in ents
        ]


def _held(columns: tuple[Any, Any, Any, Any], span: Span) -> list[int]:
    """Return the rows of a span, in order. `columns`: the two ends of both periods."""
    import numpy as np

    whole = [numbers(column[:]).to_numpy() for column in columns]
    size = min(map(len, whole))  # what is not in all of them is not committed
    begin, end, known, taken = (column[:size] for column in whole)
    held = (begin < span.valid[1]) & (end > span.valid[0]) & (known < span.tx[1]) & (taken > span.tx[0])
    if span.instants:
        at = np.array(span.instants, np.int64)
        since, until = (begin, end) if span.axis == "valid" else (known, taken)
        held &= np.searchsorted(at, since) < np.searchsorted(at, until)
    found: list[int] = np.flatnonzero(held).tolist()
    return found


def _last_row(index: Index, ent: int, valid: Instant, tx: Instant) -> int:
    """Return the row that shows an absent thing: the last one for that instant, or the last of all; -1 for none."""
    row = index.last_cover(ent, valid, tx)
    if row < 0:
        believed = index.believed(ent, tx)
        row = believed[-1] if believed else index.last_written(ent, tx)
    return row
