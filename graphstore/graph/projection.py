"""Keep the graph tables in `graph.kuzu` up to date with the journal: the whole history of a store, for Cypher.

The tables are only a copy. The file `graph.json` records how far they have followed and the state of `graph.kuzu` when it was closed properly. If the two
disagree (deleted, left dirty by a crash, damaged, of another engine or journal), the tables are rebuilt. Nothing in them is deleted or rolled back, and one
statement writes at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

from graphstore.errors import DamageError, EngineError, LockedError, QueryError
from graphstore.graph.engine import Engine, first_line
from graphstore.graph.history_from_rows import TABLES, HistoryMark, RowHistory
from graphstore.graph.table_file import NOTE, GraphFile, Unusable
from graphstore.graph.texts import LINK, schema, text
from graphstore.graph.workers import AnyEngine, ProcessEngine, Workers
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.slow_log import SLOW, warn
from graphstore.read.columns import Mark
from graphstore.values import libraries
from graphstore.values.findings import Problem
from graphstore.values.gc_pause import no_collecting
from graphstore.values.models import Json
from graphstore.values.vocabulary import KINDS

if TYPE_CHECKING:
    import pyarrow as pa

    from graphstore.graph.readback import Readback

SCHEMA = 8
CHUNK = 2 * 131_072
"""The rows written at once: whole node groups of the engine, which makes a COPY twice as fast."""
CLOSINGS = 16_384
"""The rows closed by one statement."""
VECTOR = 2_048
CHECKPOINT_AFTER = 2_000
"""The vectors that closings may hold in memory before a checkpoint, some 64 KB each."""
POOL = 256 << 20
"""The engine's memory for tables on disk, in bytes."""
READ_BACK_EVERY = 60.0
"""After this many seconds of use everything newly written is read back and compared, with a sample of older rows."""
_chance = Random()
TAKEN = frozenset(
    {"NODE", "EVENT", "ABSENT", "VERSION", "HAS_VERSION", "OCCURRENCE", "HAS_OCCURRENCE", "OP", LINK}
)

Progress = Callable[[int, int], None]
Notify = Callable[[str], None]


class Pen:
    """Writes in a thread of its own, one call at a time, while the next columns are prepared: the engine releases the GIL while it works."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="graphstore-tables")
        self._writing: Future[None] | None = None

    def write(self, act: Callable[..., None], *args: Any) -> None:
        """Run `act` in the thread after the previous write has ended. Raises what that one raised."""
        self.wait()
        self._writing = self._thread.submit(act, *args)

    def wait(self) -> None:
        """Wait until everything is written. Raises what the last write raised."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def __enter__(self) -> Pen:
        self._quiet = no_collecting()
        self._quiet.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._quiet.__exit__(None, None, None)
        try:
            if kind is None:
                self.wait()
        finally:
            self._thread.shutdown(cancel_futures=True)


class Projection:
    """The graph tables of one store, opened when first needed. With `folder` None they are in memory."""

    def __init__(
        self,
        folder: Path | None,
        history: RowHistory,
        journal: Ledger,
        *,
        driver: str = "kuzu",
        notify: Notify,
        workers: Workers | None = None,
    ) -> None:
        self._workers = workers
        self._file = GraphFile(folder) if folder else None
        self._history = history
        self._journal = journal
        self._driver = driver
        self._notify = notify
        self._engine: AnyEngine | None = None
        self._reached: HistoryMark | None = None  # how far the tables have followed; None: nothing is written
        self._tables: set[str] = set()  # the link tables that exist
        self._promoted: list[str] = []  # kinds of link that got tables of their own
        self._clean = False  # the file on disk is in the state that `graph.json` records
        self._held = 0  # vectors that closings hold since the last checkpoint
        self._read = Mark()  # everything written up to here has been read back
        self._due = monotonic() + READ_BACK_EVERY
        self.thrown_away = 0  # how often the tables differed from what was written

    @property
    def _done(self) -> Mark:
        return Mark() if self._reached is None else self._reached.mark

    # ------------------------------------------------------------------ the four verbs of the store

    def engine(self) -> AnyEngine:
        """Return the engine, with tables that contain everything committed."""
        asked = monotonic()
        with self._history.reading():
            if self._engine is None or self._engine.gone:
                self._open()
            now = self._history.reached()
            if now != self._reached:
                self._catch_up(now)
            if monotonic() >= self._due:
                self._read_back()
        took = monotonic() - asked
        if took > SLOW:
            warn(
                "the graph tables of %s took %.1f seconds to follow", self._path or "a store in memory", took
            )
        assert self._engine is not None
        return self._engine

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild the tables. Raises EngineError if they cannot be written, and then removes their files."""
        libraries.load(*libraries.ARROW, self._driver)
        self._let_go()
        self._remove()
        self._reached, self._tables, self._held = None, set(), 0
        self._read = Mark()
        self._mark_dirty()
        try:
            self._engine = self._made()
            for statement in schema():
                self._engine.run(statement)
            self._tables = {LINK, *(link_table(kind.name) for kind in KINDS.values() if kind.table)}
            with self._history.reading():
                self._follow(self._history.reached(), progress)
            self._engine.checkpoint()
        except EngineError as error:
            self._let_go()
            self._remove()  # free their space for the journal
            if isinstance(error, DamageError):
                raise
            raise EngineError(
                f"the graph tables cannot be made{self._file.free_space() if self._file else ''}: {first_line(error)}."
            ) from error

    def close(self) -> None:
        """Bring opened tables up to date and close their file properly; leave unopened ones as they are."""
        if self._engine is None:
            return
        try:
            if self._file is not None:
                engine = self.engine()
                if self._read != self._done:
                    self._due = 0.0  # read all back before the note says that the file was closed properly
                    engine = self.engine()
                if not self._clean:
                    engine.checkpoint()
                self._let_go()
                if not self._clean:
                    self._mark_clean()
        except (EngineError, QueryError, OSError) as error:
            self._notify(f"graph tables left as they are, to be made anew when needed: {first_line(error)}.")
        finally:
            self._let_go()

    def verify(self) -> list[Problem]:
        """Compare every row of every table with the history. Tables that do not exist yet have no problems."""
        if self._engine is None and self._path is not None and not os.path.lexists(self._path):
            return []
        with self._history.reading():
            self.engine()
            found = list(self._readback().all(self._done, sorted(self._tables)))
        name = str(self._path or "graph tables")
        return [Problem(file=name, line=None, message=message) for message in found]

    # ------------------------------------------------------------------ open, dirty, clean

    def _open(self) -> None:
        """Open the tables, or rebuild them. If a query killed their process, the file and its log still hold what was written: queries write neither."""
        if self._engine is None:
            with ThreadPoolExecutor(1, thread_name_prefix="graphstore-tables") as beside:
                looks = beside.submit(self._file.looks) if self._file else None
                libraries.load(self._driver)  # while the file is read
            fault = self._fault(looks)
        else:
            self._engine, fault = None, None if self._file else ""
        if fault is None:
            try:
                self._engine = self._made()
                return
            except LockedError:
                raise
            except (EngineError, QueryError) as error:
                fault = f"the engine could not open them ({first_line(error)})"
        self.rebuild()
        if fault:
            self._notify(f"graph tables rebuilt: {fault}.")

    def _made(self) -> AnyEngine:
        if self._workers is None:
            return Engine(self._path, driver=self._driver, buffer_pool=self._pool())
        worker = self._workers.own()
        try:
            return ProcessEngine(self._path, worker, self._workers.allowance, buffer_pool=self._pool())
        except BaseException:
            worker.kill("the graph tables could not be opened.")
            raise

    def _fault(self, looks: Future[dict[str, int]] | None) -> str | None:
        """Return why the tables on disk cannot be used; None if they can, "" if there are none."""
        try:
            if self._file is None or looks is None or self._file.absent:
                return ""
            note = self._file.note(self._version(), SCHEMA, looks)
            done, tables, promoted = _reached(note), set(map(str, note["tables"])), [*note["promoted"]]
            if not self._belongs(done):
                return "they do not belong to this journal"
        except Unusable as error:
            return str(error)
        except OSError as error:
            return f"they cannot be read ({error.strerror})"
        except (KeyError, TypeError, ValueError, AttributeError):
            return f"{NOTE} is damaged"
        self._reached, self._tables, self._promoted, self._clean = done, tables, promoted, True
        self._read = done.mark
        return None

    def _belongs(self, done: HistoryMark) -> bool:
        now, ops = self._history.reached(), done.mark.ops
        if any(at > to for at, to in zip(done.mark, now.mark, strict=True)):
            return False
        if done.last_tx != self._history.last_tx(ops):
            return False
        if done.digest == now.digest:
            return done.mark == now.mark
        return self._journal.ends_at(done.end, done.digest)

    def _pool(self) -> int:
        if self._file:
            return POOL
        mark = self._history.reached().mark
        # the limit for an engine that holds everything in memory; it takes only what it uses
        return POOL + (mark.rows + mark.link_rows) * 4096 + 4 * self._journal.size()

    def _version(self) -> str:
        return f"{self._driver} {version(self._driver)}"

    def _mark_dirty(self) -> None:
        if self._file is not None:
            self._file.mark_dirty()
        self._clean = False

    def _mark_clean(self) -> None:
        assert self._file is not None and self._reached is not None
        self._journal.settle()  # the note must never be ahead of the synced journal
        self._file.mark_clean(
            {
                "engine": self._version(),
                "schema": SCHEMA,
                **self._reached._asdict(),
                "end": [*self._reached.end],
                "transactions": self._history.transactions(self._reached),
                "mark": self._done._asdict(),
                "tables": sorted(self._tables),
                "promoted": self._promoted,
            }
        )
        self._clean = True

    def _remove(self) -> None:
        if self._file is not None:
            self._file.remove()

    @property
    def _path(self) -> Path | None:
        return self._file.path if self._file else None

    def abandon(self) -> None:
        """Close at once, because the index behind the tables is no longer valid. An unfinished update is rebuilt later."""
        if isinstance(self._engine, ProcessEngine):
            self._engine.kill("the graph tables are made anew. Ask again.")
        self._let_go()

    def _let_go(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    # ------------------------------------------------------------------ read back

    def _read_back(self) -> None:
        """Compare what was written since the last time, and a sample of the rest, with the history. On a difference rebuild the tables and notify."""
        found = self._differing(self._read) or self._differing(None)
        self._read = self._done
        self._due = monotonic() + READ_BACK_EVERY
        if found:
            self._throw_away(found)

    def _throw_away(self, found: list[str]) -> None:
        self.thrown_away += 1
        self.rebuild()
        self._notify(
            f"graph tables thrown away and made anew: they held something else than was written ({found[0]})"
        )
        again = self._differing(Mark())
        self._read = self._done
        if again:
            self._let_go()
            self._remove()
            raise EngineError(
                f"the graph tables hold something else than was written, also when they are made anew ({again[0]}). The journal is not "
                f"concerned. Open the store with another driver than {self._driver!r}, and report this."
            )

    def _differing(self, since: Mark | None) -> list[str]:
        """Return the differences between the history and the rows written since a mark; with None, and a sample of rows of any age."""
        assert self._engine is not None
        libraries.load(*libraries.ARROW)
        reading, names = self._readback(), sorted(self._tables)
        try:
            if since is None:
                return list(reading.some(self._done, names, _chance))
            return list(reading.written(since, self._done, names)) if since.ops < self._done.ops else []
        except DamageError:
            raise
        except (EngineError, QueryError) as error:
            if self._engine.gone:
                raise
            return [f"they cannot be read back: {first_line(error)}."]

    def _readback(self) -> Readback:
        from graphstore.graph.readback import Readback

        assert self._engine is not None
        return Readback(self._history, self._engine, self.by_table)

    # ------------------------------------------------------------------ following the history

    def _catch_up(self, now: HistoryMark) -> None:
        assert self._engine is not None
        libraries.load(*libraries.ARROW)
        goes_on = self._reached is None or self._history.goes_on(self._reached, now)
        if self._promoted != self._history.promoted() or not goes_on:
            self.rebuild()
            return
        if self._clean:
            self._mark_dirty()
        try:
            self._follow(now)
        except DamageError:
            raise
        except (EngineError, QueryError) as error:
            self.rebuild()
            self._notify(
                f"graph tables rebuilt: the engine failed while they caught up ({first_line(error)})."
            )

    def _follow(self, now: HistoryMark, progress: Progress | None = None) -> None:
        done, goal = self._done, now.mark
        self._promoted = self._history.promoted()
        steps: list[tuple[Callable[[Pen, str, Sequence[int]], None], str, Sequence[int]]] = []
        for label, table in TABLES.items():
            first, stop = getattr(done, table.counted), getattr(goal, table.counted)
            steps += [(self._add, label, places) for places in _chunks(range(first, stop), CHUNK)]
        for label, changed in self._history.changed(done, goal).items():
            # a row that was closed before it was first written is written closed
            there = [place for place in changed if place < getattr(done, TABLES[label].counted)]
            steps += [(self._close, label, places) for places in _chunks(there, CLOSINGS)]
        total, at = sum(len(places) for *_, places in steps), 0
        try:
            with Pen() as pen:
                for step, label, places in steps:
                    step(pen, label, places)
                    at += len(places)
                    if progress:
                        progress(at, total)
        except BaseException:
            self._let_go()  # perhaps half written: the tables are dirty, and rebuilt when next needed
            raise
        self._reached = now

    def _add(self, pen: Pen, label: str, places: Sequence[int]) -> None:
        """Add the rows of a table at these places; for parts of an owner also the relationships from their owners."""
        import pyarrow as pa

        rows = self._history.table(label, places)
        if label == LINK:
            for kind in rows["kind"].unique().to_pylist():
                self._make_table(kind)
            for (table, *ends), links in self.by_table(rows).items():
                pen.write(self._write, table, links, tuple(ends))
            return
        pen.write(self._write, label, rows)
        if owner := TABLES[label].owner:
            owning, _, name = owner.partition(".")
            held = pa.table({"source": rows[name], "target": rows["row"]})
            pen.write(self._write, f"HAS_{label.upper()}", held, (owning, label))

    def _write(self, table: str, rows: pa.Table, pair: tuple[str, str] | None = None) -> None:
        """Add rows. Empty tables are always filled by COPY, which makes the file a sixth of the size."""
        assert self._engine is not None
        self._engine.copy(table, rows, pair=pair, is_empty=not any(self._done))

    def _close(self, pen: Pen, label: str, places: Sequence[int]) -> None:
        """Set the ends of rows. If the retraction of an event was undone, a row that was written closed becomes open again."""
        table, rows = TABLES[label], self._history.table(label, places)
        rows = rows.append_column("closed_at", rows["tx_to"]).append_column("op", rows["closed_by"])
        count = getattr(self._done, table.counted)
        if label != LINK:
            statement = text(f"close_{label.lower()}s")
            pen.write(self._set_ends, count, statement, rows.select([table.key, "closed_at", "op"]))
            return
        for (name, source, target), links in self.by_table(rows).items():
            holes = {"KIND": name, "SOURCE": source, "TARGET": target}
            statement = text("close_links", **holes)
            pen.write(
                self._set_ends, count, statement, links.select(["source", "target", "row", "closed_at", "op"])
            )

    def _set_ends(self, count: int, statement: str, rows: pa.Table) -> None:
        """Set the ends of some rows of a table that has `count` rows."""
        assert self._engine is not None
        self._engine.load(statement, rows)
        self._held += min(len(rows), count // VECTOR + 1)
        if self._held >= CHECKPOINT_AFTER:
            self._engine.checkpoint()
            self._held = 0

    def by_table(self, links: pa.Table) -> dict[tuple[str, str, str], pa.Table]:
        """Group links by their table and the labels of their ends."""
        from graphstore.graph.arrow_tables import numbers

        groups: dict[tuple[str, str, str], list[int]] = {}
        labels = (links[name].to_pylist() for name in ("kind", "source_label", "target_label"))
        for at, (kind, source, target) in enumerate(zip(*labels, strict=True)):
            groups.setdefault((self._table_of(kind), source, target), []).append(at)
        links = links.drop_columns(["source_label", "target_label"])
        return {
            key: links if len(rows) == len(links) else links.take(numbers(rows))
            for key, rows in groups.items()
        }

    def _table_of(self, kind: str) -> str:
        """Return the name of the table of a kind of link."""
        own = kind in self._promoted or (kind in KINDS and KINDS[kind].table)
        return link_table(kind) if own else LINK

    def _make_table(self, kind: str) -> None:
        """Create the table of a kind of link if it does not exist."""
        name = self._table_of(kind)
        if name not in self._tables:
            assert self._engine is not None
            self._engine.run(text("link_table", KIND=name))
            self._tables.add(name)


def link_table(kind: str) -> str:
    """Return the Cypher name of a kind's own table."""
    name = kind.upper()
    return f"{name}_LINK" if name in TAKEN else name


def _chunks(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for at in range(0, len(places), size):
        yield places[at : at + size]


def _reached(note: Json) -> HistoryMark:
    mark = Mark(**{name: int(count) for name, count in note["mark"].items()})
    return HistoryMark(mark, note["end"], str(note["digest"]), note["last_tx"], str(note["forgetting"]))
