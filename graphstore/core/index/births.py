"""Adding many rows to the index at once, column by column: new things, and further versions of known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphstore.core.index.working_set import WorkingSet
from graphstore.values.period import OPEN, Instant

Said = tuple[str, str, int, int, int, int, Instant, Instant, int, int]
"""An operation that describes a thing without a key: verb, id, the place of the reason, the entity, the number of the version, its period, its place."""


class Birth(NamedTuple):
    """What a new thing is."""

    name: str
    event: bool
    kind: str
    scope: str


class Run:
    """Operations of one transaction that each describe one thing, and are added to the index together: numbered already, as if they were in it."""

    def __init__(self, index: WorkingSet) -> None:
        self.index = index
        self.said: list[Said] = []
        self.born: list[Birth] = []
        self.fresh: dict[str, int] = {}  # the new things: name -> entity
        self.closed: dict[int, int] = {}  # place in `said` -> the row it takes the place of
        self.turned: list[tuple[int, Instant, Instant, int]] = []  # entity, period, place in `said`
        self.begin()

    def begin(self) -> None:
        """Number from the present end of the index on. To be called before the first operation of a run."""
        index = self.index
        self.first_ent, self.first_row = len(index.names), len(index.r_ent)
        self.first_ver = len(index.v_ent)

    def bear(self, born: Birth) -> int:
        """Number a new thing, which the next operation describes."""
        ent = self.fresh[born.name] = self.first_ent + len(self.born)
        self.born.append(born)
        return ent

    def add(self, tx: Instant, author: str | None) -> None:
        """Add all of it to the index. What leads to a row is set when all its columns are there."""
        self.add_columns(tx, author, *zip(*self.said, strict=True))

    def add_columns(
        self,
        tx: Instant,
        author: str | None,
        verbs: Sequence[str],
        subjects: Sequence[str],
        whys: Sequence[int],
        why_lengths: Sequence[int],
        ents: Any,
        numbers: Any,
        starts: Any,
        stops: Any,
        places: Sequence[int],
        lengths: Sequence[int],
    ) -> None:
        """Add operations by column, with the new things and all else that was noted of this run; columns of numpy are taken as they are."""
        index, count = self.index, len(verbs)
        vers, ops = (range(len(column), len(column) + count) for column in (index.v_ent, index.o_tx))
        index.o_verb.extend(verbs)
        index.o_subject.extend(subjects)
        index.o_author.extend([author] * count)
        self._add_born(tx)
        for column, values in (
            (index.o_pos, whys), (index.o_len, why_lengths), (index.o_tx, tx),
            (index.v_num, numbers), (index.v_pos, places), (index.v_len, lengths), (index.v_op, ops),
            (index.v_ent, ents),
            (index.r_ver, vers), (index.r_from, starts), (index.r_to, stops), (index.r_tx, tx),
            (index.r_end, OPEN), (index.r_op, ops), (index.r_close, -1), (index.r_ent, ents),
        ):  # fmt: skip
            grow(column, values, count)
        index.note_added(
            tx,
            list(zip(_plain(ents), _plain(starts), _plain(stops), vers, ops, strict=True)),
            self.first_row,
            self.closed,
        )
        for ent, start, stop, at in self.turned:
            index.add_turn(ent, (tx, start, stop, ops[at]))
        index.ids.update(self.fresh)
        for there in (self.said, self.born, self.turned):
            there.clear()
        self.fresh.clear()
        self.closed.clear()

    def _add_born(self, tx: Instant) -> None:
        if self.born:
            names, events, kinds, scopes = zip(*self.born, strict=True)
            grow_things(self.index, names, events, kinds, [None] * len(names), scopes, tx)


def grow_things(
    index: WorkingSet,
    names: Sequence[str],
    events: Iterable[bool],
    kinds: Iterable[str],
    keys: Iterable[str | None],
    scopes: Iterable[str],
    tx: Instant,
) -> None:
    """Add new things; neither `ids` nor `slots` lead to them yet."""
    index.is_event.extend(events)
    grow(index.born, tx, len(names))
    grow(index.changed, tx, len(names))
    index.kind.extend(kinds)
    index.key.extend(keys)
    index.scope.extend(scopes)
    index.names.extend(names)


def grow(column: Any, values: Any, count: int) -> None:
    """Add values to a column of numbers: a sequence, a column of numpy, or one number so many times."""
    column.extend([values] * count if isinstance(values, int) else _plain(values))


def _plain(column: Any) -> Sequence[int]:
    return column.tolist() if hasattr(column, "astype") else column  # type: ignore[no-any-return]
