"""The main program of a process for Cypher, started by `workers.py`. A text that ends this process, or never ends, harms nothing else.

It reads requests from a channel and answers them one at a time. It ends with its parent, even during a query.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

    from graphstore.graph.engine import Engine

_SLACK = 1 << 30  # address space that is reserved but not used: thread stacks, arenas


class _Sparing(PathFinder):
    """Hides libraries that Arrow and the engine would import needlessly: they cost half of the time and memory of a start."""

    names = frozenset({"pandas", "polars", "networkx", "torch"})

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Return None for these libraries."""
        return None if fullname in cls.names else super().find_spec(fullname, path, target)


def send(channel: Connection, message: Any, table: bytes | pyarrow.Buffer | None = None) -> None:
    """Send one message, and after it the bytes of an Arrow stream, or none."""
    channel.send_bytes(pickle.dumps(message, protocol=5))
    channel.send_bytes(b"" if table is None else table)


def receive(channel: Connection) -> tuple[bytes, bytes]:
    """Return one message and the bytes after it, both unparsed. Raises EOFError if the other end is closed."""
    return channel.recv_bytes(), channel.recv_bytes()


def stream(table: pyarrow.Table) -> pyarrow.Buffer:
    """Return an Arrow table as the bytes of a stream."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_of(data: bytes) -> pyarrow.Table:
    """Return the Arrow table of a stream."""
    import pyarrow

    with pyarrow.ipc.open_stream(data) as reader:
        return reader.read_all()


class _Serving:
    """Answers requests with one engine at a time."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def interrupt(self) -> None:
        """Stop the running query, if there is one."""
        if self._engine is not None:
            self._engine.interrupt()

    def answer(self, verb: str, args: tuple[Any, ...], options: dict[str, Any], table: bytes) -> Any:
        """Return the message and the Arrow bytes of an answer."""
        if verb == "open":
            self._open(*args, **options)
            return None, None
        assert self._engine is not None
        if verb == "query":
            return self._query(*args, **options)
        if verb == "arrow":
            return None, stream(self._engine.arrow(*args, **options))
        if table:
            options["rows"] = table_of(table)
        return getattr(self._engine, verb)(*args, **options), None

    def _open(self, path: Any, options: dict[str, Any]) -> None:
        from graphstore.graph.engine import Engine

        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        self._engine = Engine(path, **options)
        _ = self._engine.faults  # its self-test opens another database, so it runs before memory is limited

    def _query(self, cypher: str, params: Any, limits: Any, most: Any) -> Any:
        from graphstore.errors import QueryError

        assert self._engine is not None
        memory, size = most
        with _address_space(memory):
            found = self._engine.query(cypher, params, limits=limits)
        if found._tuples is None:
            table = stream(found.to_arrow())
            message: Any = (found.columns, None, None, found.warnings)
            got = len(table)
        else:
            table = None
            message = (found.columns, found._tuples, found._types, found.warnings)
            got = 0 if size is None or not found._tuples else len(pickle.dumps(message, protocol=5))
        if size is not None and got > size:
            raise QueryError(
                f"the answer has {got:,} bytes; at most {size:,} are allowed. Return fewer columns, or add a LIMIT."
            )
        return message, table


@contextmanager
def _address_space(memory: int | None) -> Iterator[None]:
    """Limit the memory allocated in the block, beyond the engine's pool, which has its own limit. Only Linux supports it."""
    if sys.platform != "linux":
        yield
        return
    try:
        import resource

        with open("/proc/self/statm", "rb") as source:
            now = int(source.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # /proc is not mounted
        memory = None
    if memory is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + memory + _SLACK, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _end_with_parent(lifeline: int) -> None:
    """End this process when the other end of a pipe is closed: on Linux by a signal, even while the engine runs; elsewhere by a thread."""
    if lifeline < 0:
        return
    if sys.platform != "linux":
        threading.Thread(target=_end_after, args=(lifeline,), daemon=True).start()
        return
    import fcntl

    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _end_after(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(0)


def main(lifeline: int, channel: int, driver: str) -> None:
    """Answer requests until the channel is closed."""
    if sys.platform == "win32":
        raise NotImplementedError("Windows runs Cypher in the process of the store.")
    _end_with_parent(lifeline)
    requests = Connection(channel)
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.meta_path[:] = [_Sparing if each is PathFinder else each for each in sys.meta_path]
    from graphstore.graph import engine

    with suppress(Exception):
        import pyarrow.compute  # noqa: F401

        engine.load_driver(driver)
    serving = _Serving()
    signal.signal(signal.SIGINT, lambda *_: serving.interrupt())
    send(requests, ("ok", "ready"))
    # the engine runs in another thread: this one handles the signal that stops it
    threading.Thread(target=_serve, args=(serving, requests)).start()
    while True:
        signal.pause()


def _serve(serving: _Serving, requests: Connection) -> None:
    from graphstore.errors import GraphStoreError

    try:
        while True:
            request, behind = receive(requests)
            table: Any = None
            try:
                verb, args, options = pickle.loads(request)
                value, table = serving.answer(verb, args, options, behind)
                answer: Any = ("ok", value)
            except MemoryError:
                answer = (
                    "QueryError",
                    "the query needs more memory than it may use. Narrow it, or add a LIMIT.",
                )
            except GraphStoreError as error:
                answer = (type(error).__name__, str(error))
            except Exception as error:
                answer = ("EngineError", f"{type(error).__name__}: {error}")
            send(requests, answer, table)
    finally:
        os._exit(0)
