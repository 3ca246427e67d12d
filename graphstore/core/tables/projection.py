"""The graph tables follow the journal: what the index holds, laid out for Cypher in `graph.kuzu`.

They are a copy and never more than that. A small file beside them, `graph.json`, records how far they have come and
what the file looked like when it was closed well; whenever the two do not agree (deleted, left dirty by a crash,
damaged, of another engine or another journal) the tables are made anew from the index. Nothing is deleted or rolled
back in them, and what is written is written one statement at a time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

from graphstore.core.index import libraries
from graphstore.core.index.columns import Mark
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.journal.seam import Seam
from graphstore.core.tables.engine import Engine
from graphstore.core.tables.table_file import NOTE, GraphFile, Unusable
from graphstore.core.tables.texts import schema, text
from graphstore.core.tables.workers import AnyEngine, ProcessEngine, Workers
from graphstore.errors import DamageError, EngineError, LockedError, QueryError
from graphstore.ledger.slow_log import SLOW, warn
from graphstore.values.models import Json, Problem
from graphstore.values.period import OPEN
from graphstore.values.vocabulary import KINDS

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 5
CHUNK = 2 * 131_072
"""Rows written at once: whole groups of the engine, which makes a COPY twice as fast."""
CLOSINGS = 16_384
"""Closings in one statement."""
VECTOR = 2_048
CHECKPOINT_AFTER = 2_000
"""Vectors that closings may hold in memory until a checkpoint, some 64 KB each."""
POOL = 256 << 20
"""The engine's memory for tables on disk."""
READ_BACK_SHARE = 0.1
"""Of the time that writing takes, what reading it back may take."""
READ_BACK_EVERY = 60.0
"""Seconds of use after which everything written is read back, and some rows of any age."""
_SCANNED, _COMPARED = 0.7e-6, 8e-6
"""Seconds that reading back takes for each row there is, and for each that is compared."""
_chance = Random()
GENERIC = "LINK"
"""The table of the kinds of link that have none of their own."""
TAKEN = frozenset(
    {"NODE", "EVENT", "ABSENT", "VERSION", "HAS_VERSION", "OCCURRENCE", "HAS_OCCURRENCE", "OP", GENERIC}
)

Progress = Callable[[int, int], None]
Notify = Callable[[str], None]


class Pen:
    """Writes in a thread of its own, one thing after the other, while the next columns are made.

    The engine works without holding the interpreter, so the two go side by side.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="graphstore-tables")
        self._waiting: deque[tuple[Future[None], int]] = deque()  # with how many rows each has

    def write(self, act: Callable[..., None], *args: Any) -> None:
        """Do `act` after the writes before it; at most `CHUNK` rows wait. Raises what one of those raised."""
        rows = sum(getattr(arg, "num_rows", 0) for arg in args)  # of tables
        while self._waiting and (
            self._waiting[0][0].done() or rows + sum(size for _, size in self._waiting) > CHUNK
        ):
            self._waiting.popleft()[0].result()
        self._waiting.append((self._thread.submit(act, *args), rows))

    def wait(self) -> None:
        """Until everything is written. Raises what went wrong."""
        while self._waiting:
            self._waiting.popleft()[0].result()

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
    """The graph tables of one store, opened when first needed. `folder` None keeps them in memory."""

    def __init__(
        self,
        folder: Path | None,
        index: Index,
        journal: Seam,
        *,
        driver: str = "kuzu",
        notify: Notify,
        workers: Workers | None = None,
    ) -> None:
        self._workers = workers
        self._file = GraphFile(folder) if folder else None
        self._index = index
        self._journal = journal
        self._driver = driver
        self._notify = notify
        self._engine: AnyEngine | None = None
        self._done = Mark()
        self._tables: set[str] = set()  # link tables there are
        self._shared: set[str] = set()  # kinds that have rows in LINK
        self._clean = False  # the file on disk is as `graph.json` says
        self._held = 0  # vectors that closings hold since the last checkpoint
        self._read = Mark()  # what was written up to here has been read back
        self._allowed = 0.0  # seconds that reading back may take
        self._due = monotonic() + READ_BACK_EVERY
        self.thrown_away = 0  # how often they held something else than was written

    # ------------------------------------------------------------------ the four verbs of the store

    def engine(self, progress: Progress | None = None) -> AnyEngine:
        """The engine, caught up with what is committed."""
        asked = monotonic()
        if self._engine is not None and self._engine.gone:
            self._open_again(progress)
        if self._engine is None:
            self._open(progress)
        if self._index.mark() != self._done:
            begun = monotonic()
            self._catch_up(progress)
            self._allowed += READ_BACK_SHARE * (monotonic() - begun)
        self._read_back(progress)
        took = monotonic() - asked
        if took > SLOW:
            warn(
                "the graph tables of %s took %.1f seconds to follow", self._path or "a store in memory", took
            )
        assert self._engine is not None
        return self._engine

    def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild the tables from the index. Raises EngineError when they cannot be written; their files are removed then."""
        libraries.load(*libraries.ARROW, self._driver)
        self._let_go()
        self._remove()
        self._done, self._tables, self._shared, self._held = Mark(), set(), set(), 0
        self._read = Mark()
        self._mark_dirty()
        try:
            self._engine = self._made()
            for statement in schema(self._driver):
                self._engine.run(statement)
            self._tables = {GENERIC, *(link_table(kind.name) for kind in KINDS.values() if kind.table)}
            self._follow(progress)
            self._engine.checkpoint()
        except EngineError as error:
            self._let_go()
            self._remove()  # their space is freed for the journal
            if isinstance(error, DamageError):
                raise
            raise EngineError(
                f"the graph tables cannot be made{self._file.room() if self._file else ''}: {_first_line(error)}."
            ) from error

    def close(self) -> None:
        """Leave the tables caught up and the file whole, if they were opened; else leave them as they are."""
        if self._engine is None:
            return
        try:
            if self._file is not None:
                engine = self.engine()
                if self._read != self._done:
                    self._due = 0.0  # what was written is read back before it is noted as well closed
                    engine = self.engine()
                if not self._clean:
                    engine.checkpoint()
                self._let_go()
                if not self._clean:
                    self._mark_clean()
        except (EngineError, QueryError, OSError) as error:
            self._notify(f"graph tables left as they are, to be made anew when needed: {_first_line(error)}.")
        finally:
            self._let_go()

    def verify(self) -> list[Problem]:
        """Every row of every table held against the index. Tables that are not there yet have no problems."""
        from graphstore.core.tables.readback import Readback

        if self._engine is None and self._path is not None and not os.path.lexists(self._path):
            return []
        engine = self.engine()
        found = list(Readback(self, engine, self._index).all(self._done, sorted(self._tables)))
        name = str(self._path or "graph tables")
        return [Problem(file=name, line=None, message=message) for message in found]

    # ------------------------------------------------------------------ open, dirty, clean

    def _open(self, progress: Progress | None) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix="graphstore-tables") as beside:
            looks = beside.submit(self._file.looks) if self._file else None
            libraries.load(self._driver)  # meanwhile the file is read
        fault = self._fault(looks)
        if fault is None:
            try:
                self._engine = self._made()
                return
            except LockedError:
                raise
            except (EngineError, QueryError) as error:
                fault = f"the engine could not open them ({_first_line(error)})"
        self.rebuild(progress)
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

    def _open_again(self, progress: Progress | None) -> None:
        """After a query ended their process: what was written is in the file and its log, which no query writes. Else they are made anew."""
        self._engine = None
        if self._file is not None:
            try:
                self._engine = self._made()
                self._probe(self._engine)
                return
            except (EngineError, QueryError):
                self._let_go()
        self.rebuild(progress)

    def _probe(self, engine: AnyEngine) -> None:
        nodes = sum(
            int(count)
            for label in ("Node", "Event")
            for (count,) in engine.run(text("count_things", driver=self._driver, LABEL=label))
        )
        if nodes != self._done.entities:
            raise EngineError(f"they hold {nodes} things, not {self._done.entities}")

    def _fault(self, looks: Future[dict[str, int]] | None) -> str | None:
        """Why the tables on disk cannot be used; None when they can, empty when there are none to use."""
        try:
            if self._file is None or looks is None or self._file.absent:
                return ""
            note = self._file.note(self._version(), SCHEMA)
            done, tables, shared = _mark(note), set(map(str, note["tables"])), set(map(str, note["shared"]))
            if not self._belongs(done, note):
                return "they do not belong to this journal"
            if fault := self._file.fault(note, looks):
                return fault
        except Unusable as error:
            return str(error)
        except OSError as error:
            return f"they cannot be read ({error.strerror})"
        except (KeyError, TypeError, ValueError, AttributeError):
            return f"{NOTE} is damaged"
        self._done, self._tables, self._shared, self._clean = done, tables, shared, True
        self._read = done
        return None

    def _belongs(self, done: Mark, state: dict[str, Any]) -> bool:
        index, goal = self._index, self._index.mark()
        if any(at > to for at, to in zip(done, goal, strict=True)):
            return False
        if state.get("last_tx") != (index.o_tx[done.ops - 1] if done.ops else 0):
            return False
        if state.get("digest") == self._journal.digest:
            return done == goal
        return self._journal.ends_at(state.get("end"), str(state.get("digest")))

    def _pool(self) -> int:
        return POOL if self._file else memory_pool(self._index)

    def _version(self) -> str:
        return f"{self._driver} {version(self._driver)}"

    def _mark_dirty(self) -> None:
        if self._file is not None:
            self._file.mark_dirty()
        self._clean = False

    def _mark_clean(self) -> None:
        assert self._file is not None
        done = self._done
        self._journal.settle()  # the note never knows more than what is on the disk
        self._file.mark_clean(
            {
                "engine": self._version(),
                "schema": SCHEMA,
                "mark": done._asdict(),
                "transactions": self._index.transactions,
                "last_tx": self._index.o_tx[done.ops - 1] if done.ops else 0,
                "digest": self._journal.digest,
                "end": list(self._journal.end),
                "tables": sorted(self._tables),
                "shared": sorted(self._shared),
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
        """Close at once: the index they follow is no longer valid. An unfinished update is rebuilt."""
        if isinstance(self._engine, ProcessEngine):
            self._engine.kill("the graph tables are made anew. Ask again.")
        self._let_go()

    def _let_go(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    # ------------------------------------------------------------------ read back

    def _read_back(self, progress: Progress | None) -> None:
        """Compare what was written last, and now and then some of the rest, with the index and the journal.

        What was written waits until reading it back takes at most `READ_BACK_SHARE` of the time its writing took, together with what was
        written before; and `READ_BACK_EVERY` seconds of use at most. On a difference the tables are made anew, and it is told.
        """
        begun = monotonic()
        due = begun >= self._due
        if due or self._read != self._done:
            libraries.load(*libraries.ARROW)
        found: list[str] = []
        if self._read != self._done and (due or self._cost() <= self._allowed):
            found = self._differing(self._read)
            self._read = self._done
            self._allowed = max(0.0, self._allowed - (monotonic() - begun))
        if due and not found:
            found = self._differing(None)
        if due:
            self._due = monotonic() + READ_BACK_EVERY
        if found:
            self._throw_away(found, progress)

    def _cost(self) -> float:
        """About how many seconds it takes to read back what was written last."""
        from graphstore.core.tables.readback import MOST

        there = sum(self._done)
        fresh = sum(min(hi - lo, MOST) for lo, hi in zip(self._read, self._done, strict=True))
        return 0.02 + _SCANNED * there + _COMPARED * fresh

    def _throw_away(self, found: list[str], progress: Progress | None) -> None:
        self.thrown_away += 1
        self.rebuild(progress)
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
        """What was written since a mark and reads back otherwise; with None, of some rows of any age."""
        from graphstore.core.tables.readback import Readback

        assert self._engine is not None
        reading, names = Readback(self, self._engine, self._index), sorted(self._tables)
        try:
            if since is None:
                return list(reading.some(self._done, names, _chance))
            return list(reading.written(since, self._done, names)) if since.ops < self._done.ops else []
        except DamageError:
            raise
        except (EngineError, QueryError) as error:
            if self._engine.gone:
                raise
            return [f"they cannot be read back: {_first_line(error)}."]

    # ------------------------------------------------------------------ following the index

    def _catch_up(self, progress: Progress | None) -> None:
        assert self._engine is not None
        libraries.load(*libraries.ARROW)
        own = self._shared & set(self._index.promoted)
        if own or any(at > to for at, to in zip(self._done, self._index.mark(), strict=True)):
            self.rebuild(progress)
            return
        if self._clean:
            self._mark_dirty()
        try:
            self._follow(progress)
        except DamageError:
            raise
        except (EngineError, QueryError) as error:
            self.rebuild(progress)
            self._notify(
                f"graph tables rebuilt: the engine failed while they caught up ({_first_line(error)})."
            )

    def _follow(self, progress: Progress | None) -> None:
        done, goal = self._done, self._index.mark()
        steps = [
            *((self._add_things, lo, hi) for lo, hi in _chunks(done.entities, goal.entities)),
            *((self._add_occurrences, lo, hi) for lo, hi in _chunks(done.seen, goal.seen)),
            # links, which take long to write, while the columns of versions are made; last what is written in no time
            *((self._add_links, lo, hi) for lo, hi in _chunks(done.link_rows, goal.link_rows)),
            *((self._add_versions, lo, hi) for lo, hi in _chunks(done.rows, goal.rows)),
            *((self._add_ops, lo, hi) for lo, hi in _chunks(done.ops, goal.ops)),
            *((self._reopen_events, lo, hi) for lo, hi in _chunks(done.rows, goal.rows)),
            *((self._close_rows, lo, hi) for lo, hi in _chunks(done.closings, goal.closings, CLOSINGS)),
            *(
                (self._close_links, lo, hi)
                for lo, hi in _chunks(done.link_closings, goal.link_closings, CLOSINGS)
            ),
        ]
        total, at = sum(hi - lo for _, lo, hi in steps), 0
        try:
            with Pen() as pen:
                for step, lo, hi in steps:
                    step(pen, lo, hi)
                    at += hi - lo
                    if progress:
                        progress(at, total)
        except BaseException:
            self._let_go()  # half of it may be written: they are marked dirty, the next need makes them anew
            raise
        self._done = goal

    def _write(self, table: str, rows: pa.Table, pair: tuple[str, str] | None = None) -> None:
        """Add rows. Into empty tables always by COPY: the file is a sixth of the size."""
        assert self._engine is not None
        if any(self._done):
            self._engine.copy(table, rows, pair=pair)
        else:
            fill(self._engine, table, rows, pair)

    def _add_things(self, pen: Pen, lo: int, hi: int) -> None:
        from graphstore.core.tables.arrow_tables import node_table

        flags = self._index.is_event[lo:hi]
        nodes = [ent for ent, event in enumerate(flags, lo) if not event]
        events = [ent for ent, event in enumerate(flags, lo) if event]
        if nodes:
            pen.write(self._write, "Node", node_table(self._index, nodes))
        if events:
            pen.write(self._write, "Event", self.event_table(events))

    def event_table(self, events: list[int]) -> pa.Table:
        """The rows of Event for these things."""
        from graphstore.core.tables.arrow_tables import event_table

        return event_table(self._index, self._journal.raw, events, self._pending)

    def _add_occurrences(self, pen: Pen, lo: int, hi: int) -> None:
        import pyarrow as pa

        from graphstore.core.tables.arrow_tables import occurrence_table

        table = occurrence_table(self._index, lo, hi)
        pen.write(self._write, "Occurrence", table)
        pen.write(
            self._write,
            "HAS_OCCURRENCE",
            pa.table({"source": table["event_id"], "target": table["row"]}),
            ("Event", "Occurrence"),
        )

    def _add_ops(self, pen: Pen, lo: int, hi: int) -> None:
        pen.write(self._write, "Op", self.op_table(lo, hi))

    def op_table(self, lo: int, hi: int) -> pa.Table:
        """The rows [lo, hi) of Op."""
        import numpy as np
        import pyarrow as pa

        from graphstore.core.tables.arrow_tables import instants, names_of, numbers, read_bodies, texts

        index, every = self._index, range(lo, hi)
        lengths = np.asarray(index.o_len[lo:hi])
        places = np.where(lengths, index.o_pos[lo:hi], 0)
        _, firsts, which = np.unique(places, return_index=True, return_inverse=True)
        bodies = read_bodies(
            self._journal.raw, list(zip(places[firsts].tolist(), lengths[firsts].tolist(), strict=True))
        )
        return pa.table(
            {
                "id": names_of(every),
                "tx": instants(index.o_tx[lo:hi]),
                "verb": texts(map(index.o_verb.__getitem__, every)),
                "subject": texts(map(index.o_subject.__getitem__, every)),
                "author": texts(map(index.o_author.__getitem__, every)),
                "reason": texts([body.get("reason") for body in bodies]).take(numbers(which)),
            }
        )

    def _add_versions(self, pen: Pen, lo: int, hi: int) -> None:
        import pyarrow as pa

        table = self.version_table(lo, hi)
        if not len(table):
            return
        pen.write(self._write, "Version", table)
        pen.write(
            self._write,
            "HAS_VERSION",
            pa.table({"source": table["node_id"], "target": table["row"]}),
            ("Node", "Version"),
        )

    def version_table(self, lo: int, hi: int) -> pa.Table:
        """Those of the rows [lo, hi) that are rows of Version."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from graphstore.core.tables.arrow_tables import (
            instants,
            names_of,
            numbers,
            picked,
            single,
            texts,
            told_columns,
            version_columns,
        )

        index = self._index
        ends, closes = index.r_end[lo:hi], index.r_close[lo:hi]
        for row in self._pending:
            if lo <= row < hi:
                ends[row - lo], closes[row - lo] = OPEN, -1
        ents, versions = np.asarray(index.r_ent[lo:hi]), np.asarray(index.r_ver[lo:hi])
        keep = np.flatnonzero(picked(index.is_event, ents) == 0)
        ents, versions, chosen = ents[keep], versions[keep], numbers(keep)
        node_id = texts(map(index.names.__getitem__, ents.tolist()))
        number = numbers(picked(index.v_num, versions))
        recorded = np.asarray(index.r_tx[lo:hi])[keep]

        columns = {
            "row": pc.cast(pc.add(chosen, single(lo)), pa.string()),
            "node_id": node_id,
            "ref": pc.binary_join_element_wise(node_id, pc.cast(number, pa.string()), texts(["-v"])[0]),
            "number": number,
            **version_columns(index, self._journal.raw, versions),
            **told_columns(index, picked(index.v_op, versions), recorded),
            "valid_from": instants(index.r_from[lo:hi]).take(chosen),
            "valid_to": instants(index.r_to[lo:hi]).take(chosen),
            "tx_from": instants(index.r_tx[lo:hi]).take(chosen),
            "tx_to": instants(ends).take(chosen),
            "opened_by": names_of(index.r_op[lo:hi]).take(chosen),
            "closed_by": names_of(closes).take(chosen),
        }
        return pa.table(columns)

    def _add_links(self, pen: Pen, lo: int, hi: int) -> None:
        for kind in {self._index.l_kind[link] for link in self._index.k_link[lo:hi]}:
            self._table(kind)
        for table, ends, part in self.link_tables(lo, hi):
            pen.write(self._write, table, part, ends)

    def link_tables(self, lo: int, hi: int) -> Iterator[tuple[str, tuple[str, str], pa.Table]]:
        """The rows [lo, hi) of links, by table and the labels of their ends."""
        import pyarrow as pa

        from graphstore.core.tables.arrow_tables import numbers

        index = self._index
        groups: dict[tuple[str, bool, bool], list[int]] = {}
        for at, link in enumerate(index.k_link[lo:hi]):
            pair = (
                index.l_kind[link],
                bool(index.is_event[index.l_src[link]]),
                bool(index.is_event[index.l_tgt[link]]),
            )
            groups.setdefault(pair, []).append(at)
        whole = pa.table(self.link_columns(lo, hi))
        by_table: dict[tuple[str, bool, bool], list[int]] = {}
        for (kind, source, target), rows in groups.items():
            by_table.setdefault((self.table_of(kind), source, target), []).extend(rows)
        for (table, source, target), rows in by_table.items():
            part = whole if len(rows) == len(whole) else whole.take(numbers(rows))
            yield table, (_label(source), _label(target)), part

    def link_columns(self, lo: int, hi: int) -> dict[str, pa.Array]:
        """The rows [lo, hi) of links as columns."""
        from graphstore.core.tables.arrow_tables import (
            claim_columns,
            end_columns,
            instants,
            names_of,
            read_bodies,
            told_columns,
        )

        index = self._index
        ends, closes = index.k_end[lo:hi], index.k_close[lo:hi]
        for row in index.link_closings[index.mark().link_closings :]:
            if lo <= row < hi:
                ends[row - lo], closes[row - lo] = OPEN, -1
        links, claims = index.k_link[lo:hi], index.k_claim[lo:hi]
        bodies = read_bodies(
            self._journal.raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims]
        )
        return {
            **end_columns(index, links),
            "row": names_of(range(lo, hi)),
            **claim_columns(index, bodies, links, claims),
            **told_columns(index, [index.c_op[claim] for claim in claims], index.k_tx[lo:hi]),
            "valid_from": instants(index.k_from[lo:hi]),
            "valid_to": instants(index.k_to[lo:hi]),
            "tx_from": instants(index.k_tx[lo:hi]),
            "tx_to": instants(ends),
            "opened_by": names_of(index.k_op[lo:hi]),
            "closed_by": names_of(closes),
        }

    def table_of(self, kind: str) -> str:
        """The name of the table of a kind of link."""
        own = kind in self._index.promoted or (kind in KINDS and KINDS[kind].table)
        return link_table(kind) if own else GENERIC

    def _table(self, kind: str) -> str:
        """The table of a kind of link, made when it is not there yet."""
        name = self.table_of(kind)
        if name == GENERIC:
            self._shared.add(kind)
        if name not in self._tables:
            assert self._engine is not None
            self._engine.script(text("link_table", driver=self._driver, KIND=name))
            self._tables.add(name)
        return name

    # ------------------------------------------------------------------ closing

    @property
    def _pending(self) -> set[int]:
        """Rows closed by a transaction that is not committed: they are still open."""
        return set(self._index.closings[self._index.mark().closings :])

    def _reopen_events(self, pen: Pen, lo: int, hi: int) -> None:
        """Events whose retraction was undone: what was written closed is open again."""
        import numpy as np

        from graphstore.core.tables.arrow_tables import last_row, picked

        index, pending = self._index, self._pending
        ents = np.asarray(index.r_ent[lo:hi])
        rows = (np.flatnonzero(picked(index.is_event, ents) * (ents < self._done.entities)) + lo).tolist()
        again = [
            row
            for row in rows
            if row == last_row(index, index.r_ent[row]) and (index.r_close[row] < 0 or row in pending)
        ]
        self._set_ends(pen, again)

    def _close_rows(self, pen: Pen, lo: int, hi: int) -> None:
        from graphstore.core.tables.arrow_tables import last_row, names_of

        index = self._index
        # a row that was closed when it was first written is written closed
        versions, events = [], []
        for row in index.closings[lo:hi]:
            ent = index.r_ent[row]
            if not index.is_event[ent]:
                if row < self._done.rows:
                    versions.append(row)
            elif ent < self._done.entities and row == last_row(index, ent):
                events.append(row)  # an earlier row made way for one that begins earlier: the event goes on
        if versions:
            pen.write(
                self._close,
                len(index.r_ent),
                text("close_versions", driver=self._driver),
                {"row": names_of(versions), **self._closings(versions)},
            )
        self._set_ends(pen, events)

    def _set_ends(self, pen: Pen, events: list[int]) -> None:
        """Set the ends of events to those of these rows."""
        from graphstore.core.tables.arrow_tables import texts

        index = self._index
        if events:
            names = texts(index.names[index.r_ent[row]] for row in events)
            pen.write(
                self._close,
                len(index.names),
                text("close_events", driver=self._driver),
                {"id": names, **self._closings(events)},
            )

    def _closings(self, rows: list[int]) -> dict[str, pa.Array]:
        from graphstore.core.tables.arrow_tables import instants, names_of

        index, pending = self._index, self._pending
        return {
            "closed_at": instants([OPEN if row in pending else index.r_end[row] for row in rows]),
            "op": names_of([-1 if row in pending else index.r_close[row] for row in rows]),
        }

    def _close_links(self, pen: Pen, lo: int, hi: int) -> None:
        from graphstore.core.tables.arrow_tables import end_columns, instants, names_of

        index = self._index
        groups: dict[tuple[str, bool, bool], list[int]] = {}
        for row in index.link_closings[lo:hi]:
            if row < self._done.link_rows:
                link = index.k_link[row]
                source, target = index.is_event[index.l_src[link]], index.is_event[index.l_tgt[link]]
                groups.setdefault((self._table(index.l_kind[link]), bool(source), bool(target)), []).append(
                    row
                )
        for (table, from_event, to_event), rows in groups.items():
            statement = text(
                "close_links",
                driver=self._driver,
                KIND=table,
                SOURCE=_label(from_event),
                TARGET=_label(to_event),
            )
            pen.write(
                self._close,
                len(index.k_link),
                statement,
                {
                    **end_columns(index, [index.k_link[row] for row in rows]),
                    "row": names_of(rows),
                    "closed_at": instants([index.k_end[row] for row in rows]),
                    "op": names_of([index.k_close[row] for row in rows]),
                },
            )

    def _close(self, of: int, statement: str, columns: dict[str, pa.Array]) -> None:
        """Set the ends of some of a table's `of` rows."""
        import pyarrow as pa

        assert self._engine is not None
        rows = pa.table(columns)
        self._engine.load(statement, rows)
        self._held += min(len(rows), of // VECTOR + 1)
        if self._held >= CHECKPOINT_AFTER:
            self._engine.checkpoint()
            self._held = 0


# --------------------------------------------------------------------------------------------- tables, filled


def fill(engine: AnyEngine, table: str, rows: pa.Table, pair: tuple[str, str] | None = None) -> None:
    """Add rows by COPY: columns in the order of the schema, for links after `source` and `target`."""
    if pair:
        engine.load(
            text("copy_links", driver=engine.driver, TABLE=table, SOURCE=pair[0], TARGET=pair[1]), rows
        )
    else:
        engine.load(text("copy_nodes", driver=engine.driver, TABLE=table), rows)


def link_table(kind: str) -> str:
    """The name in Cypher of a kind's own table."""
    name = kind.upper()
    return f"{name}_LINK" if name in TAKEN else name


def memory_pool(index: Index) -> int:
    """The limit of memory of an engine that keeps a copy of the whole index; only what is used is taken."""
    return POOL + (len(index.r_ent) + len(index.k_link)) * 4096 + 4 * (sum(index.v_len) + sum(index.c_len))


# ---------------------------------------------------------------------------------------------- small things


def _chunks(lo: int, hi: int, size: int = CHUNK) -> Iterator[tuple[int, int]]:
    while lo < hi:
        stop = min(hi, (lo // size + 1) * size)
        yield lo, stop
        lo = stop


def _label(event: bool) -> str:
    return "Event" if event else "Node"


def _mark(state: Json) -> Mark:
    return Mark(**{name: int(count) for name, count in state["mark"].items()})


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
