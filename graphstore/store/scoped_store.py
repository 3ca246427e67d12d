"""Show the part of an open store in some scopes as a read-only store: the same statements over the same ledger, without what is outside."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from graphstore.errors import InvalidError, NotFoundError
from graphstore.graph.graphs import Graphs
from graphstore.ledger import scoped_dump
from graphstore.ledger.chain import Verbatim
from graphstore.ledger.folder import Folder
from graphstore.ledger.scoped_ledger import ScopedDatabase, ScopedLedger
from graphstore.search.model_vectors import Vectors
from graphstore.store.store import GraphStore
from graphstore.values.findings import BranchInfo, Problem, Verification
from graphstore.values.period import Instant, TimeLike
from graphstore.values.vocabulary import Vocabulary
from graphstore.view.sight import Core
from graphstore.write import retention

_CONTENTS = """
SELECT v.number, b.data, b.checksum FROM version v LEFT JOIN body b ON b.number = v.body
WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity)
"""

_OUTSIDE = "this is not answered within scopes. It wants a token without scopes."


class ScopedStore(GraphStore):
    """A store with the part of another one in some scopes. It uses that store's ledger, clock and lock. Nothing written in it is kept."""

    def __init__(self, whole: GraphStore, scopes: tuple[str, ...]) -> None:
        journal = whole._ledger
        self._of, self._scopes = whole, scopes
        self._seen_scopes, self._recorder = scopes, whole._record_reads()
        self._place = Folder(whole._place.path, read_only=True)
        self._place.shown, self._place.named = None, whole._place.named
        self._clock, self._author = whole._clock, None
        self._asked, self._writer = {}, threading.RLock()
        self._named = "the trunk"
        self._lines, self._in_use, self._begun, self.notices = [self], {}, [], []
        vocabulary, trunk = Vocabulary(), whole._core
        graphs = Graphs(
            None, journal, vocabulary, driver=trunk.graphs.driver, notify=self.notices.append
        )  # fmt: skip
        self._core = Core(
            journal, vocabulary, graphs,
            rows=ScopedLedger(journal, scopes), refusal=_OUTSIDE,
            lock=trunk.lock, vectors=Vectors(None, None),
        )  # fmt: skip
        self._last_committed_tx()

    @property
    def _asks_first(self) -> bool:
        return True

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return now, and the latest tx that a view within the scopes can have."""
        self._usable()
        work, others = self._open, self._of._open
        if work is not None and self._owner == threading.get_ident():
            return work.tx, work.tx
        now, known = self._of.coordinate()
        if self._of._place.shared:  # its last tx would reveal when something outside was written
            known = now if others is None else min(now, others.tx - 1)
        last = self.last_tx
        return max(self._told_time(), last), max(known, last)

    @property
    def _first_tx(self) -> Instant | None:
        found = self._database.rows("SELECT tx FROM done ORDER BY number LIMIT 1")
        return found[0][0] if found else None

    @property
    def _database(self) -> ScopedDatabase:
        rows = self._core.rows
        assert isinstance(rows, ScopedLedger)
        return rows.database

    def _is_brief(self, id: object, *, now: bool = False) -> bool:
        return False

    def _usable(self) -> None:
        self._of._usable()
        super()._usable()

    def _chain(self) -> Iterator[Verbatim]:
        return scoped_dump.lines(self._of._place.read_ledger(), self._scopes)

    def close(self) -> None:
        """Let go of the graphs. The whole store stays open."""
        self._let_go("the store is closed.")

    def branches(self) -> list[BranchInfo]:
        """Return an empty list: no scope holds a branch."""
        return []

    @property
    def _eraser(self) -> GraphStore:
        return self._of

    def _evictable(self) -> retention.Evictable:
        return retention.Evictable(self._database)

    def _evictable_elsewhere(self) -> list[retention.Evictable]:
        return []

    def _contents_elsewhere(self, kind: str, setting: str) -> list[tuple[Any, list[retention.KindContent]]]:
        return []

    def _made_as(self, name: str) -> NoReturn:
        raise NotFoundError.nearest("branch", name, list)

    def query_tables(self, cypher: str, **more: Any) -> NoReturn:
        """Refused: the tables are of the whole store."""
        raise InvalidError("query_tables is of the whole store. It wants a token without scopes.")

    def verify(self) -> Verification:
        """Compare each content inside with its checksum. Changes nothing."""
        self._usable()
        database = self._database
        with database.whole.snapshot():
            wrong = [number for number, data, checksum in database.rows(_CONTENTS) if data is None or crc32(data) != checksum]  # fmt: skip
            [(transactions,)] = database.rows("SELECT count(DISTINCT tx) FROM done")
        problems = [Problem(file="ledger", line=None, message=f"{len(wrong)} contents do not match their checksums.")] if wrong else []  # fmt: skip
        return Verification(
            ok=not wrong, problems=tuple(problems), transactions=transactions, checked=("contents",)
        )

    def export(self, path: str | os.PathLike[str], *, since: TimeLike | None = None) -> int:
        """Write what the scopes hold as one file for `graphstore.restore`, as if nothing else had ever been recorded. Returns the number of lines."""
        self._usable()
        if since is not None:
            raise InvalidError(f"a bundle has the chain of the whole store: {_OUTSIDE}")
        return scoped_dump.save(self._of._place.read_ledger(), self._scopes, Path(path))
