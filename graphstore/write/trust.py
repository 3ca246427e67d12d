"""Trust: who may close, replace or take back what somebody said. A map from source class (or author) to rank, kept in the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphstore.errors import ConflictError
from graphstore.values.period import Period

if TYPE_CHECKING:
    from graphstore.read.working_set import WorkingSet
    from graphstore.values.models import Json
    from graphstore.view.sight import Core

TRUST = "trust"


def rank(ranks: dict[str, int], source: str | None, author: str | None = None) -> int:
    """Return the rank of a source, else of an author: that of the class, the part before the first colon; 0 for one that has none."""
    name = author if source is None else source
    return ranks.get((name or "").partition(":")[0], 0)


class Trust:
    """The trust of one store, and one writer: by `source`, else by author."""

    def __init__(self, core: Core, author: str | None, source: str | None = None) -> None:
        self.core = core
        self.index: WorkingSet = core.index
        self.ranks: dict[str, int] = core.index.setting(TRUST) or {}
        self.author, self.source = author, source

    @property
    def mine(self) -> int:
        """Return the rank of the writer."""
        return rank(self.ranks, self.source, self.author)

    def of_row(self, row: int) -> tuple[int, str | None]:
        """Return the rank of who said a row, and the name of its source or author."""
        index = self.index
        ver = index.r_ver[row]
        source = self._body(ver).get("source")
        author = index.o_author[index.v_op[ver]] if index.v_op[ver] >= 0 else None
        return rank(self.ranks, source, author), author if source is None else source

    def guard(self, ent: int, periods: Iterable[Period] | None = None) -> None:
        """Raise ConflictError when what is believed of an entity, over periods or at all, was said by one who ranks higher than the writer."""
        if not self.ranks:
            return
        index, now = self.index, self.index.now_of[ent]
        for row in now if periods is None else [row for period in periods for row in index.over(now, period)]:
            theirs, name = self.of_row(row)
            if theirs > self.mine:
                self._refuse(index.names[ent], theirs, name)

    def guard_links(self, rows: Iterable[int]) -> None:
        """Raise ConflictError when one of these rows of links was recorded by an author who ranks higher than the writer."""
        index = self.index
        for row in rows if self.ranks else ():
            author = index.o_author[index.c_op[index.k_claim[row]]]
            theirs = rank(self.ranks, None, author)
            if theirs > self.mine:
                self._refuse(index.l_name[index.k_link[row]], theirs, author)

    def _refuse(self, what: str, theirs: int, name: str | None) -> None:
        who = f"source {self.source!r}" if self.source is not None else f"author {self.author!r}"
        raise ConflictError(
            f"{who} (trust {self.mine}) may not replace or take back {what!r}, which {name!r} said (trust {theirs}). "
            "Give a source= that ranks as high, use another scope, or say it beside and link it with contradicts."
        )

    def _body(self, ver: int) -> Json:
        return self.core.body(self.index.v_pos[ver], self.index.v_len[ver], holding=b'"source":')
