"""Trust: decide which author may close, replace or withdraw a record. The store keeps a map from source class (or author) to rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphstore.errors import ConflictError
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.period import OPEN, Instant, Period

if TYPE_CHECKING:
    from graphstore.ledger.database import RowReader
    from graphstore.read.working_set import WorkingSet
    from graphstore.values.models import Json
    from graphstore.view.sight import Core

TRUST = "trust"
SET_TRUST = "set_trust"
UNRANKED = float("-inf")  # the rank of a name that the map does not contain: below all others


def rank(ranks: Mapping[str, int], source: str | None, author: str | None = None) -> float:
    """Return the rank of an author; a source can only lower it. Without an author the rank of the source counts alone.

    The class of a name, the part before the first colon, determines its rank.
    """
    names = [name for name in (author, source) if name is not None]
    return min((ranks.get(name.partition(":")[0], UNRANKED) for name in names), default=UNRANKED)


class Author(NamedTuple):
    """Holds the author of an operation, None if it has none."""

    author: str | None


class RecordedBody(NamedTuple):
    """Holds the author and the stored body of a version."""

    author: str | None
    data: bytes | None
    checksum: int


LAST_AUTHOR = Statement("last_author", Author)
RECORDED_OF = Statement("recorded_of", RecordedBody)


def last_to_rank(database: RowReader) -> str | None:
    """Return the author of the last committed ranks of a line of belief; None if there is none or the writer gave no name."""
    rows = Point(database, OPEN, OPEN).rows(LAST_AUTHOR, verb=SET_TRUST)
    return rows[0].author if rows else None


class Trust:
    """Holds the ranks of one store and its writer: an author, and the source given."""

    def __init__(self, core: Core, author: str | None, source: str | None = None) -> None:
        self.core = core
        self.ranks: dict[str, int] = core.setting(TRUST) or {}
        self.author, self.source = author, source

    @property
    def index(self) -> WorkingSet:
        """Return the working set that the running verb reads."""
        index: WorkingSet = self.core.index
        return index

    def outranked(self, source: str | None, author: str | None) -> bool:
        """Return True if the writer ranks lower than the author and source of a record.

        Without an author, the rank of the writer's source counts only against records without an author.
        """
        if author is not None and self.author is None:
            mine = UNRANKED
        else:
            mine = rank(self.ranks, self.source, self.author)
        return rank(self.ranks, source, author) > mine

    def guard(self, ent: int, periods: Iterable[Period] | None = None) -> None:
        """Raise ConflictError if an author or source that ranks higher than the writer recorded what is believed of an entity. `periods`: None for all of it."""
        if not self.ranks:
            return
        index, now = self.index, self.index.now_of[ent]
        for row in now if periods is None else [row for period in periods for row in index.over(now, period)]:
            ver = index.r_ver[row]
            author = index.o_author[index.v_op[ver]] if index.v_op[ver] >= 0 else None
            self.admit(index.names[ent], self._body(ver).get("source"), author)

    def guard_links(self, rows: Iterable[int]) -> None:
        """Raise ConflictError if an author who ranks higher than the writer recorded one of these link rows."""
        index = self.index
        for row in rows if self.ranks else ():
            author = index.o_author[index.c_op[index.k_claim[row]]]
            self.admit(index.l_name[index.k_link[row]], None, author)

    def guard_forgetting(self, database: RowReader, names: Iterable[str]) -> None:
        """Raise ConflictError if a higher-ranked author recorded any version of one of these things. Versions that are not believed and all lines of belief count."""
        point = Point(database, OPEN, OPEN)
        for name in names if self.ranks else ():
            for row in point.rows(RECORDED_OF, id=name):
                body = point.content(row.data, row.checksum, name) if row.data is not None else {}
                self.admit(name, body.get("source"), row.author)

    def guard_map(self, wanted: Mapping[str, int], tx: Instant) -> None:
        """Raise ConflictError if the author of the ranks outranks the writer. Raise it too if another author set them and the writer would raise its own rank below the
        highest.

        Args:
            tx: the instant of the transaction that sets them.
        """
        if not self.ranks:
            return
        last = self._last_to_rank(tx)
        self.admit("the ranks of set_trust", None, last)
        if self.author is None or self.author == last:
            return
        mine, raised = rank(self.ranks, None, self.author), rank(wanted, None, self.author)
        if mine < raised and mine < max(self.ranks.values()):
            raise ConflictError(
                f"author {self.author!r} (trust {_words(mine)}) may not rank itself {_words(raised)}: {last!r} set the ranks last. "
                "Let that author do it, or one who ranks higher."
            )

    def _last_to_rank(self, tx: Instant) -> str | None:
        """Return the author of the ranks: from this transaction if it set them, else from an earlier one."""
        index = self.index
        for op in reversed(index.ops_at(tx)):
            if index.o_verb[op] == SET_TRUST:
                return index.o_author[op]
        return last_to_rank(self.core.rows.database)

    def admit(self, what: str, source: str | None, author: str | None) -> None:
        """Raise ConflictError if the writer may not close or withdraw `what`. `source`, `author`: the names under which it was recorded."""
        if not self.outranked(source, author):
            return
        me = f"author {self.author!r}" if self.author is not None else "who signs nothing"
        mine = rank(self.ranks, self.source, self.author)
        if self.source is not None:
            me = f"{me} with source {self.source!r}" if self.author is not None else f"source {self.source!r}"
        if self.author is None and author is not None:
            mine = UNRANKED
        they = " from ".join(repr(name) for name in (author, source) if name is not None)
        raise ConflictError(
            f"{me} (trust {_words(mine)}) may not replace or take back {what!r}, which {they} said "
            f"(trust {_words(rank(self.ranks, source, author))}). "
            "A source= never raises the rank of an author. Use another scope, or record it beside and link it with contradicts."
        )

    def _body(self, ver: int) -> Json:
        return self.core.body(self.index.v_pos[ver], self.index.v_len[ver], holding=b'"source":')


def _words(rank: float) -> str:
    return "none" if rank == UNRANKED else str(int(rank))
