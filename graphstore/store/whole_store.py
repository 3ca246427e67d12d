"""The whole store, at no coordinate: its tables, the changes of each transaction, counts, verification, a dump."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.core.folder import folder
from graphstore.core.folder import restore as dumps
from graphstore.core.read import snapshots
from graphstore.core.read.sight import Sight
from graphstore.core.tables.guard import LIMITS, Limits
from graphstore.core.write import retention
from graphstore.core.write.retention import Content
from graphstore.core.write.writer import Progress, Writer
from graphstore.errors import DamageError, InvalidError
from graphstore.values import inputs
from graphstore.values.models import Change, Problem, Snapshot, Verification
from graphstore.values.period import OPEN, TimeLike, moment

if TYPE_CHECKING:
    from graphstore.core.tables.engine import Result
    from graphstore.core.tables.workers import Allowance, Workers


class WholeStore(Writer):
    """An open store and the reads that concern all of it."""

    def query_tables(self, cypher: str, *, limits: Limits | None = LIMITS, **params: Any) -> Result:
        """Read-only Cypher over the whole history: the tables of `cypher/schema.cypher`, periods as columns.

        `limits=None`: for a text or an answer of any size; so no parameter of a text can be named $limits. Raises QueryError for a text that
        writes, misses a parameter, is larger or nested deeper than is allowed, or does not run.
        """
        core = self._core
        return core.graphs.query_tables(core.lock, self._usable, cypher, params, limits)

    @contextmanager
    def _queries_apart(self, allowance: Allowance | None = None) -> Iterator[Workers | None]:
        """A block in which Cypher runs in processes of its own, for those who serve others. Inside another one, and where the platform has not what it
        needs, it gives None and changes nothing."""
        from graphstore.core.tables.workers import AVAILABLE, Workers

        if not AVAILABLE or self._core.graphs.workers is not None:
            yield None
            return
        workers = Workers(self._core.graphs.driver, allowance)
        self._queries_in(workers)
        try:
            yield workers
        finally:
            workers.stop()
            self._queries_in(None)
            workers.close()

    def _queries_in(self, workers: Workers | None) -> None:
        with self._core.lock:
            if not self._core.closed:
                for line in self._lines:
                    if "_core" in vars(line):
                        line._core.graphs.serve(workers)

    def snapshot(self, name: str) -> Snapshot:
        """Give the present coordinate a name that `as_of(name)` accepts, for ever.

        Raises ConflictError for a name that is given already, InvalidError for one that reads as a time.
        """
        wanted = snapshots.name_of(name)
        with self._verb() as work:
            snapshots.refuse_taken(work.index, wanted)
            kept = snapshots.as_kept(work.tx, work.tx, work.author)
            self._keep("snapshot", snapshots.KEPT + wanted, kept, wanted)
            return snapshots.find(work.index, wanted, work.tx)

    def snapshots(self) -> list[Snapshot]:
        """The named coordinates, in the order they were named."""
        with self._core.lock:
            return snapshots.known(self._core.index, self._coordinate()[1])

    def touch(self, ids: str | Iterable[str]) -> None:
        """Count a lookup of each thing, as `recall` does with its hits. In memory: see `flush_accesses`.

        Raises NotFoundError for an unknown id; InvalidError on a store that is only read.
        """
        with self._core.lock:
            self._writable()
            sight = self._sight()
            ents = [sight.resolve(name)[0] for name in inputs.ids("ids", ids)]
            self._core.accesses.count(sight.index.names[ent] for ent in ents)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Make the graph tables anew from the journal's index."""
        with self._core.graphs.turn(self._core.lock), self._core.lock:
            self._usable()
            self._core.graphs.rebuild(progress)

    def changes(self, since: TimeLike | None = None) -> list[Change]:
        """What each transaction did, oldest first; with `since`, only what came after that tx: pass the last `Change.tx` to go on."""
        return self._changes(since, None)

    def _changes(self, since: TimeLike | None, most: int | None) -> list[Change]:
        """As `changes`, at most so many plus the rest of their last transaction, so that the lock is held briefly."""
        with self._core.lock:
            self._usable()
            index = self._core.index
            after = -OPEN if since is None else self._time(since, "since", "tx")
            known = self._coordinate()[1]
            change = Sight(self._core, after, after).change
            instants = index.o_tx  # ascending: a binary search finds what follows an instant
            first = bisect_right(instants, after, hi=index.mark().ops)
            last = bisect_right(instants, known, lo=first, hi=index.mark().ops)
            if most is not None and last - first > most:
                last = bisect_right(instants, instants[first + most - 1], lo=first, hi=last)
            return [change(op) for op in range(first, last)]

    def _contents(self, kind: str) -> list[Content]:
        """The nodes of a kind that are not forgotten, whatever became of them: what is committed, in the order they were recorded."""
        with self._core.lock:
            self._usable()
            return retention.contents(self._core.index, kind)

    def _is_settled(self) -> bool:
        """Whether this is the trunk, and no transaction that is open has written anything."""
        return self._core.index.branch is None and not self._core.index.pending

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: nodes, events, versions, rows, links, link_rows, transactions, journal_bytes, last_tx, custom_kinds."""
        with self._core.lock:
            self._usable()
            index = self._core.index
            mark = index.mark()
            events = sum(index.is_event[: mark.entities])
            return {
                "path": None if self.path is None else str(self.path),
                "nodes": mark.entities - events,
                "events": events,
                "versions": mark.versions - events,
                "rows": mark.rows,
                "links": mark.links,
                "link_rows": mark.link_rows,
                "operations": mark.ops,
                "transactions": index.transactions,
                "journal_bytes": self._core.journal.size(),
                "last_tx": moment(index.last_tx) if index.transactions else None,
                "custom_kinds": [kind["name"] for kind in index.kinds],
            }

    def _tables_thrown_away(self) -> int:
        """How often the graph tables in use held something else than was written, and were made anew."""
        return self._core.graphs.thrown_away

    def verify(self) -> Verification:
        """Read the whole journal again, compare the index with it, and every value of the graph tables with both. Changes nothing."""
        with self._writer, self._core.graphs.turn(self._core.lock), self._core.lock:
            self._usable()
            if self._open is not None:
                raise InvalidError("verify() inside transaction(). Leave the block first.")
            problems: list[Problem] = []
            if self._place.journal is not None:
                problems += folder.verify_index(self._place, self._core.index, self._core.journal)
            try:
                problems += self._core.graphs.verify()
            except DamageError as error:  # a body that the tables would be made of
                if not problems:
                    problems.append(Problem(file=str(self._place.journal), line=None, message=str(error)))
            return Verification(
                ok=not problems,
                problems=tuple(problems),
                transactions=self._core.index.transactions,
                checked=("journal", "index", "graph tables"),
            )

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the whole store as one file for `graphstore.restore`. Returns the number of lines. An existing file is refused.

        The file gets its name when all of it is on the disk, and its last line says how many transactions it holds.
        """
        with self._core.lock:
            self._usable()
            if not self.read_only:
                self._core.journal.settle()  # a dump holds nothing that the store may lose
            return dumps.save(self._core.journal, Path(path))
