"""Processes that run Cypher for a server. Each holds one engine with limits on time, memory and answer size, and is killed and replaced when a query exceeds
one. The store's own process never runs a client's text."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphstore import errors
from graphstore.errors import EngineError, GraphStoreError, QueryError
from graphstore.graph.engine import Engine, seconds_limit, stopping_event
from graphstore.graph.limits import LIMITS, QueryLimits
from graphstore.graph.result import Result
from graphstore.graph.worker import receive, send, stream, table_of

if TYPE_CHECKING:
    import pyarrow

_LOOK = 0.05  # seconds between checks of a query's memory and of whether it is to be stopped
_GRACE = 1.0  # seconds beyond its limit in which a query may end by itself
_START = 60.0  # seconds in which a process must start, on a busy machine
AVAILABLE = sys.platform != "win32"
"""True if the platform supports these processes; else Cypher runs in the process of the store."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits a client's query: seconds of time, bytes of memory beyond the graph, bytes of its answer; also the number of processes, and the bytes that their
    graphs and tables may keep for later queries."""

    seconds: float = 30.0
    memory: int = 1 << 30
    answer: int = 64 << 20
    processes: int = 3
    cache: int = 1 << 30


class EngineGone(EngineError):
    """Raised when the process, or the graph in it, no longer exists. The next query gets a new one."""


class _Answers(pickle.Unpickler):
    """Unpickles a process's answers: only classes of values are allowed."""

    _KNOWN = frozenset(
        {
            ("graphstore.graph.result", "Entity"),
            ("decimal", "Decimal"),
            ("uuid", "UUID"),
            ("uuid", "SafeUUID"),
            ("datetime", "date"),
            ("datetime", "datetime"),
            ("datetime", "timedelta"),
            ("datetime", "timezone"),
            ("builtins", "bytearray"),
            ("copyreg", "__newobj__"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of values. Raises UnpicklingError for any other."""
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is no value")
        return super().find_class(module, name)


def _end(process: subprocess.Popen[bytes], lifeline: int, pid: int) -> None:
    """Kill a process and wait for its end. In a fork of the parent do nothing."""
    if os.getpid() != pid:
        return
    with suppress(OSError):
        os.close(lifeline)
    process.kill()
    process.wait()


class Worker:
    """One process. `claimed` is held while a query runs in it, or a graph is built in it."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self.claimed = threading.Lock()
        self.used = 0.0
        self.holds: ProcessEngine | None = None
        self._pipe = threading.RLock()
        self._why = ""
        self._empty = 0
        ours, theirs = os.pipe()
        self._channel: Any
        self._channel, end = Pipe()
        environment = {name: value for name, value in os.environ.items() if name != "GRAPHSTORE_TOKEN"}
        environment |= {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
        start = (
            "import json,sys;sys.path[:]=json.loads(sys.argv[1]);"
            "from graphstore.graph.worker import main;main(int(sys.argv[2]),int(sys.argv[3]),sys.argv[4])"
        )
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    start,
                    json.dumps(sys.path),
                    str(ours),
                    str(end.fileno()),
                    driver,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(ours, end.fileno()),
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            os.close(theirs)
            raise EngineError(f"a process for Cypher cannot be started: {error.strerror}.") from error
        finally:
            os.close(ours)
            end.close()
        self._finish = weakref.finalize(self, _end, self._process, theirs, os.getpid())
        self._ready = False

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return True if the process accepts requests."""
        return bool(self._finish.alive)

    def await_start(self) -> None:
        """Wait until the process has loaded the engine. Raises EngineError if it cannot."""
        with self._pipe:
            if not self._ready:
                try:
                    self._answer(time.monotonic() + _START, None, None, "it took too long")
                except QueryError as error:
                    raise EngineError(f"a process for Cypher did not start: {error}") from None
                self._empty = self.memory()
                self._ready = True

    def kill(self, why: str) -> None:
        """Kill the process, even while it works."""
        self._why = self._why or why
        self._finish()

    def close(self) -> None:
        """Close the database, if no request is running, and end the process."""
        if self._pipe.acquire(timeout=_GRACE):
            try:
                with suppress(GraphStoreError):
                    self.ask("close", seconds=_GRACE * 10)
            finally:
                self._pipe.release()
        self.kill("the graph was closed.")

    def memory(self) -> int:
        """Return the bytes that the process has in memory; 0 if unknown."""
        return resident(self.pid)

    def kept(self) -> int:
        """Return the bytes that the process has in memory beyond those it had when it was empty."""
        return max(0, self.memory() - self._empty) if self._ready and self.alive else 0

    def ask(
        self,
        verb: str,
        *args: Any,
        table: pyarrow.Table | None = None,
        seconds: float | None = None,
        memory: int | None = None,
        **options: Any,
    ) -> tuple[Any, bytes]:
        """Send a request; return the answer and the Arrow bytes behind it. The process is killed when it exceeds a limit, or when the client has gone.

        Raises what the engine raises; QueryError if the process was killed; EngineGone if it no longer exists.
        """
        self.await_start()
        with self._pipe:
            if not self.alive:
                raise EngineGone(self._why or "the process for Cypher has ended.")
            start = self.memory() if memory is not None else 0
            try:
                send(self._channel, (verb, args, options), None if table is None else stream(table))
            except (OSError, ValueError):
                self.kill("the process for Cypher has ended.")
                raise EngineGone(self._why) from None
            until = None if seconds is None else time.monotonic() + seconds
            late = f"the query was stopped after {seconds or 0:g} s. Narrow it, or give it more time."
            return self._answer(until, None if memory is None else start + memory, memory, late)

    def _answer(
        self, until: float | None, most: int | None, memory: int | None, late: str
    ) -> tuple[Any, bytes]:
        stopping, end = stopping_event(), None
        try:
            while not self._channel.poll(_LOOK):
                now = time.monotonic()
                if most is not None and self.memory() > most:
                    raise self._killed(
                        f"the query was stopped: it took more than {(memory or 0) >> 20:,} MB of memory. Narrow it, or make smaller lists."
                    )
                if end is None and stopping is not None and stopping.is_set():
                    late = "the query was stopped: nobody waits for its answer any more."
                    until = now
                if end is None and until is not None and now >= until:
                    end = now + _GRACE
                if end is not None:
                    if now >= end:
                        raise self._killed(late)
                    os.kill(self.pid, signal.SIGINT)  # an interrupt can be lost
            found = receive(self._channel)
        except GraphStoreError:
            raise
        except (EOFError, OSError, ValueError):
            raise self._died() from None
        except BaseException:  # Ctrl-C: the next request would read this answer as its own
            self.kill("the query was interrupted.")
            raise
        try:
            kind, value = _Answers(io.BytesIO(found[0])).load()
        except Exception:
            raise self._killed(
                "the query was stopped: it broke the engine. Nothing is lost; write it differently."
            ) from None
        if kind == "ok":
            return value, found[1]
        if end is not None and kind == "QueryError":
            raise QueryError(late)
        raise getattr(errors, kind, EngineError)(value)

    def _killed(self, why: str) -> GraphStoreError:
        self.kill(why)
        return QueryError(why)

    def _died(self) -> GraphStoreError:
        known = self._why
        self.kill("the process for Cypher has ended.")
        if known:
            return QueryError(known)
        code = self._process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return QueryError(
            f"the query ended the engine's process ({how}). The store is not concerned. Write it differently."
        )


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident(pid: int) -> int:
    """Return the bytes that a process has in memory; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as source:
            return int(source.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


class ProcessEngine:
    """An `Engine` in its own process, with the same methods. It is gone once the process was killed or holds another engine."""

    def __init__(
        self,
        path: Path | None,
        worker: Worker,
        allowance: Allowance,
        *,
        buffer_pool: int = 256 << 20,
        threads: int = 0,
    ) -> None:
        self.path, self.driver, self.allowance = path, worker.driver, allowance
        self._worker = worker
        worker.holds = self
        worker.ask("open", path, {"driver": worker.driver, "buffer_pool": buffer_pool, "threads": threads})

    @property
    def worker(self) -> Worker:
        """Return its process. Raises EngineGone if that holds another engine, or none."""
        if self.gone:
            raise EngineGone("the graph has made way for another.")
        return self._worker

    @property
    def gone(self) -> bool:
        """Return True if the engine no longer exists and must be rebuilt."""
        return self._worker.holds is not self or not self._worker.alive

    def claim(self) -> Worker | None:
        """Claim its process and return it; None if it is busy or gone."""
        if not self._worker.claimed.acquire(blocking=False):
            return None
        if self.gone:
            self._worker.claimed.release()
            return None
        return self._worker

    def run(self, cypher: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run as `Engine.run` does."""
        return cast("list[tuple[Any, ...]]", self.worker.ask("run", cypher, **params)[0])

    def arrow(self, cypher: str, /, **params: Any) -> pyarrow.Table:
        """Run as `Engine.arrow` does."""
        return table_of(self.worker.ask("arrow", cypher, **params)[1])

    def load(self, cypher: str, /, rows: pyarrow.Table) -> None:
        """Load as `Engine.load` does."""
        if rows.num_rows:
            self.worker.ask("load", cypher, table=rows)

    def copy(
        self,
        table: str,
        /,
        rows: pyarrow.Table,
        *,
        pair: tuple[str, str] | None = None,
        is_empty: bool = False,
    ) -> None:
        """Add rows as `Engine.copy` does."""
        if rows.num_rows:
            self.worker.ask("copy", table, table=rows, pair=pair, is_empty=is_empty)

    def checkpoint(self) -> None:
        """Write the log into the file as `Engine.checkpoint` does."""
        self.worker.ask("checkpoint")

    def query(
        self,
        cypher: str,
        params: Mapping[str, Any] | None = None,
        *,
        limits: QueryLimits | None = LIMITS,
    ) -> Result:
        """Run as `Engine.query` does, within the allowance. With `limits=None` only an enclosing time limit applies."""
        timeout = seconds_limit()
        if timeout is None and limits is not None:
            timeout = self.allowance.seconds
        memory = None if limits is None else self.allowance.memory
        most = (memory, None if limits is None else self.allowance.answer)
        (columns, rows, types, warnings), table = self.worker.ask(
            "query", cypher, dict(params or {}), limits, most, seconds=timeout, memory=memory
        )
        if rows is None:
            return Result.of_arrow(table_of(table), warnings)
        return Result(columns, rows, types=types, warnings=warnings)

    def kill(self, why: str) -> None:
        """Kill its process, even while it works."""
        if not self.gone:
            self._worker.kill(why)

    def close(self) -> None:
        """Close the database, if possible, and end the process."""
        if not self.gone:
            self._worker.close()


AnyEngine = Engine | ProcessEngine
"""An engine in this process or in its own."""


class Workers:
    """Manages the processes of one store and its branches: as many as are in use, up to a limit, and one idle in advance."""

    def __init__(self, driver: str, allowance: Allowance | None = None) -> None:
        self.driver, self.allowance = driver, allowance or Allowance()
        self._all: list[Worker] = []
        self._own: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._change = threading.Condition()
        self._stopped = False

    def warm(self) -> None:
        """Start an idle process in the background, unless there is one."""
        with self._change:
            if self._stopped or any(each.alive and each.holds is None for each in self._all):
                return
            self._all = [each for each in self._all if each.alive]
            if len(self._all) < self.allowance.processes:
                self._all.append(Worker(self.driver))

    def claim_for_new(self) -> Worker | None:
        """Claim a process for a new engine: an empty one, a new one, or the one with the least recently used graph. Return None if all are busy."""
        with self._change:
            self._refuse_stopped()
            self._all = [each for each in self._all if each.alive]
            for each in sorted(self._all, key=lambda one: (one.holds is not None, one.used)):
                full = each.holds is not None and len(self._all) < self.allowance.processes
                if not full and each.claimed.acquire(blocking=False):
                    each.holds = None
                    return each
            if len(self._all) >= self.allowance.processes:
                return None
            made = Worker(self.driver)
            made.claimed.acquire()
            self._all.append(made)
            return made

    def patience(self) -> float:
        """Return the seconds that a query waits for a free process: as many as it may run."""
        return seconds_limit() or self.allowance.seconds

    def refuse_late(self, until: float) -> None:
        """Raise QueryError if the time has passed or the server stops."""
        if self._stopped or time.monotonic() > until:
            raise QueryError(
                "other queries ran all the time, and this one did not come to its turn. Try again later."
            )

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise QueryError("the server stops: no query is run any more.")

    def own(self) -> Worker:
        """Return a new process for the tables of the whole history; no other graph replaces these."""
        with self._change:
            self._refuse_stopped()
            made = Worker(self.driver)
            self._own.add(made)
            return made

    def give_back(self, worker: Worker) -> None:
        """End a claim. A killed process is replaced."""
        worker.used = time.monotonic()
        worker.claimed.release()
        self._keep_to_cache()
        with self._change:
            self._change.notify_all()
        if not worker.alive and not self._stopped:
            with suppress(EngineError):
                self.warm()

    def _keep_to_cache(self) -> None:
        """Kill the processes of the least recently used graphs until the rest fits into the cache. The last used one stays, even if it is too large."""
        with self._change:
            over = self.kept() - self.allowance.cache
            if over <= 0:
                return
            full = [each for each in self._all if each.alive and each.holds is not None]
            for each in sorted(full, key=lambda one: one.used)[:-1]:
                if over > 0 and each.claimed.acquire(blocking=False):
                    over -= each.kept()
                    each.kill("the graph has made way for another.")
                    each.claimed.release()

    def kept(self) -> int:
        """Return the bytes that graphs and tables take in all processes."""
        return sum(each.kept() for each in [*self._all, *self._own])

    def memory(self) -> int:
        """Return the bytes that all processes have in memory."""
        return sum(map(resident, self.pids))

    def wait(self, seconds: float) -> None:
        """Wait until a claim ends, at most `seconds`."""
        with self._change:
            self._change.wait(seconds)

    def stop(self) -> None:
        """Stop running queries and accept no more. Owners close idle graphs and tables themselves."""
        with self._change:
            self._stopped = True
            workers = [*self._all, *self._own]
            self._change.notify_all()
        for each in workers:
            if each.claimed.locked():
                each.kill("the query was stopped: the server stops.")

    def close(self) -> None:
        """End all processes of graphs."""
        self.stop()
        for each in self._all:
            each.kill("the store is closed.")

    @property
    def pids(self) -> list[int]:
        """Return the ids of the live processes."""
        return [each.pid for each in [*self._all, *self._own] if each.alive]
