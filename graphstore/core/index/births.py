"""Adding many new things to the index at once, column by column; `rollback.py` removes them the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphstore.core.index.columns import Columns
from graphstore.values.period import OPEN, Instant


class Birth(NamedTuple):
    """A new thing without a key: its operation, what it is, when its description holds, and the places of that and of the reason."""

    verb: str
    name: str
    event: bool
    kind: str
    scope: str
    start: Instant
    stop: Instant
    pos: int
    length: int
    why: int
    why_length: int


def bear(index: Columns, tx: Instant, author: str | None, things: Sequence[Birth]) -> None:
    """Add things that are not in the index, each with its operation, its first description and the one period of that."""
    columns = zip(*things, strict=True)
    verbs, names, events, kinds, scopes, starts, stops, places, lengths, whys, why_lengths = columns
    count = len(things)
    ents, vers, rows, ops = (
        range(len(column), len(column) + count)
        for column in (index.names, index.v_ent, index.r_ent, index.o_tx)
    )
    same, first, none = [tx] * count, [1] * count, [-1] * count
    index.is_event.extend(events)
    index.key.extend([None] * count)
    index.o_author.extend([author] * count)
    index.versions_of.extend([ver] for ver in vers)
    index.rows_of.extend([row] for row in rows)
    index.now_of.extend([row] for row in rows)
    for column, texts in (
        (index.names, names), (index.kind, kinds), (index.scope, scopes),
        (index.o_verb, verbs), (index.o_subject, names),
    ):  # fmt: skip
        column.extend(texts)
    for numbers, values in (
        (index.born, same), (index.changed, same),
        (index.v_ent, ents), (index.v_num, first), (index.v_pos, places), (index.v_len, lengths), (index.v_op, ops),
        (index.r_ent, ents), (index.r_ver, vers), (index.r_from, starts), (index.r_to, stops),
        (index.r_tx, same), (index.r_end, [OPEN] * count), (index.r_op, ops), (index.r_close, none),
        (index.o_tx, same), (index.o_pos, whys), (index.o_len, why_lengths),
    ):  # fmt: skip
        numbers.extend(values)
    index.ids.update(zip(names, ents, strict=True))
    for ent, stop in zip(ents, stops, strict=True):
        if stop < OPEN:
            index.falls(ent, tx)
