"""Read the periods of a history table from the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from graphstore.core.read.history_rows import About, Asked, Changed, kinds_of_fields
from graphstore.core.read.sight import Sight
from graphstore.core.tables.arrow_tables import (
    claim_columns,
    end_columns,
    numbers,
    read_bodies,
    texts,
    told_columns,
)
from graphstore.core.tables.properties import FieldKind
from graphstore.values.period import OPEN, Instant


class IndexSpans:
    """Gives the periods that are committed in the index of a sight."""

    def __init__(self, sight: Sight) -> None:
        self._sight, self._index, self._core = sight, sight.index, sight.core

    def nodes(
        self, asked: Asked, kind: str | None
    ) -> tuple[dict[str, pa.Array], list[str | None], dict[str, Any]]:
        """Return the columns of the periods of nodes, their contents as JSON, and the bounds of the periods."""
        import numpy as np

        index, core = self._index, self._core
        chosen, periods = self._chosen(
            asked, (index.r_from, index.r_to, index.r_tx, index.r_end), index.mark().rows
        )
        ents = _array(index.r_ent)[chosen]
        wanted = np.array(
            [not index.is_event[ent] and kind in (None, index.kind[ent]) for ent in ents.tolist()], bool
        )
        chosen = chosen[wanted]
        periods = {name: column[wanted] for name, column in periods.items()}
        found = core.graphs.node_tables(core.epoch.world, core.raw).of(numbers(chosen.tolist()))
        told = [index.v_op[ver] for ver in _array(index.r_ver)[chosen].tolist()]
        names = ("id", "kind", "key", "scope", "number", "text", "tags", "source")
        columns = {
            **{name: found[name] for name in names},
            **told_columns(index, told, periods["tx_from"].tolist()),
            **self._operations(told),
        }
        return columns, found["content"].to_pylist(), periods

    def links(self, asked: Asked, kind: str | None) -> tuple[dict[str, pa.Array], dict[str, Any]]:
        """Return the columns of the periods of links, and the bounds of the periods."""
        import numpy as np

        index = self._index
        chosen, periods = self._chosen(
            asked, (index.k_from, index.k_to, index.k_tx, index.k_end), index.mark().link_rows
        )
        owners = _array(index.k_link)[chosen].tolist()
        wanted = np.array([kind in (None, index.l_kind[link]) for link in owners], bool)
        rows = chosen[wanted]
        periods = {name: column[wanted] for name, column in periods.items()}
        of, claims = _array(index.k_link)[rows].tolist(), _array(index.k_claim)[rows].tolist()
        bodies = read_bodies(self._core.raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims])
        told = [index.c_op[claim] for claim in claims]
        said = claim_columns(index, bodies, of, claims)
        columns = {
            "id": said.pop("id"),
            **end_columns(index, of),
            **said,
            **told_columns(index, told, periods["tx_from"].tolist()),
            "operation": self._operations(told)["operation"],
        }
        return columns, periods

    def field_kinds(self, kind: str | None) -> dict[str, FieldKind]:
        """Return the types of all fields that nodes (of a kind) ever had."""
        import numpy as np

        index, core = self._index, self._core
        rows = _array(index.r_ver)[: index.mark().rows]
        known = _array(index.r_tx)[: index.mark().rows] <= self._sight.tx
        kept = core.graphs.node_tables(core.epoch.world, core.raw).field_kinds
        which = kind, int(np.count_nonzero(known))
        if which in kept:
            return dict(kept[which])
        versions = np.unique(rows[known]).tolist()
        versions = [
            ver
            for ver in versions
            if not index.is_event[index.v_ent[ver]] and kind in (None, index.kind[index.v_ent[ver]])
        ]
        for other in [each for each in kept if each[1] != which[1]]:
            del kept[other]
        places = [(index.v_pos[ver], index.v_len[ver]) for ver in versions]
        kept[which] = kinds_of_fields(read_bodies(core.raw, places))
        return dict(kept[which])

    def changed(self, thing: str, since: Instant, until: Instant) -> Changed:
        """Return all periods of nodes and events, or of links."""
        index = self._index
        mark = index.mark()
        if thing == "node":
            columns = (index.r_ent, index.r_ver, index.r_from, index.r_to, index.r_tx, index.r_end, index.r_op, index.r_close)  # fmt: skip
            committed = mark.rows
        else:
            columns = (index.k_link, index.k_claim, index.k_from, index.k_to, index.k_tx, index.k_end, index.k_op, index.k_close)  # fmt: skip
            committed = mark.link_rows
        return Changed(*(_array(column)[:committed] for column in columns))

    def done(self, operations: Sequence[int]) -> dict[int, tuple[str | None, str | None, str | None]]:
        """Return the verb, the author and the reason of some operations; of -1 nothing."""
        index = self._index
        distinct = list(dict.fromkeys(operations))
        said = self._operations(distinct)
        authors = [index.o_author[op] if op >= 0 else None for op in distinct]
        reasons = said["reason"].to_pylist()
        return dict(
            zip(distinct, zip(said["operation"].to_pylist(), authors, reasons, strict=True), strict=True)
        )

    def about(self, rows: Sequence[tuple[str, int]]) -> list[About]:
        """Return what rows are of, each with whether it is of a `node` or a `link`."""
        index = self._index
        versions = {
            index.r_ver[row]
            for thing, row in rows
            if thing == "node" and not index.is_event[index.r_ent[row]]
        }
        distinct = sorted(versions)
        bodies = read_bodies(self._core.raw, [(index.v_pos[ver], index.v_len[ver]) for ver in distinct])
        contents = {
            ver: orjson.dumps(body.get("content") or {}, option=orjson.OPT_SORT_KEYS).decode()
            for ver, body in zip(distinct, bodies, strict=True)
        }
        return [self._about(thing, row, contents) for thing, row in rows]

    def _about(self, thing: str, row: int, contents: dict[int, str]) -> About:
        index = self._index
        if thing == "link":
            link = index.k_link[row]
            ends = {"source": index.names[index.l_src[link]], "target": index.names[index.l_tgt[link]]}
            return About(thing, index.l_name[link], index.l_kind[link], None, orjson.dumps(ends).decode())
        ent, ver = index.r_ent[row], index.r_ver[row]
        if index.is_event[ent]:
            return About("event", index.names[ent], index.kind[ent], None, None)
        return About(thing, index.names[ent], index.kind[ent], index.v_num[ver], contents[ver])

    def _chosen(self, asked: Asked, columns: Sequence[Any], committed: int) -> tuple[Any, dict[str, Any]]:
        """Return the numbers of the rows that are asked for, and the bounds of their periods."""
        import numpy as np

        tx = self._sight.tx
        begin, end, known, gone = (_array(column)[:committed] for column in columns)
        gone = np.where(gone > tx, OPEN, gone)  # closed by what is not committed yet
        seen = np.flatnonzero(known <= tx)
        chosen, periods = asked.rows(begin[seen], end[seen], known[seen], gone[seen])
        return seen[chosen], periods

    def _operations(self, ops: Sequence[int]) -> dict[str, pa.Array]:
        """Return what was done when rows were said first, and why."""
        index = self._index
        distinct = sorted({op for op in ops if op >= 0})
        bodies = read_bodies(self._core.raw, [(index.o_pos[op], index.o_len[op]) for op in distinct])
        reasons = {op: body.get("reason") for op, body in zip(distinct, bodies, strict=True)}
        return {
            "operation": texts([index.o_verb[op] if op >= 0 else None for op in ops]),
            "reason": texts([reasons.get(op) for op in ops]),
        }


def _array(column: Any) -> Any:
    return numbers(column[:]).to_numpy(
        zero_copy_only=False
    )  # a copy: an array that is looked into cannot grow
