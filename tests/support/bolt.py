"""A Bolt server on loopback: ArcadeDB, which has a JRE of its own, in a process. `python bolt.py FOLDER BOLT_PORT HTTP_PORT` is that process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.postgres import free_port

USER, PASSWORD = "root", "made-for-tests"
THERE = all(find_spec(name) for name in ("arcadedb_embedded", "neo4j"))


class BoltServer:
    """Where it listens, and databases of it."""

    def __init__(self, folder: Path) -> None:
        import neo4j

        self.port = free_port()
        self._names = count()
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder / "data"), str(self.port), str(free_port())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=folder,  # it writes logs there
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
        self.uri = f"bolt://127.0.0.1:{self.port}"
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "ready\n":
                break
        assert self._process.poll() is None, (folder / "log").read_text()
        self.driver = neo4j.GraphDatabase.driver(self.uri, auth=(USER, PASSWORD))

    def database(self) -> str:
        """The name of an empty database."""
        assert self._process.stdin is not None and self._process.stdout is not None
        name = f"graph{next(self._names)}"
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        while self._process.stdout.readline() != f"made {name}\n":
            assert self._process.poll() is None
        return name

    def ask(self, database: str, query: str, **params: Any) -> list[dict[str, Any]]:
        """The answer of the server, its instants as Python's, in UTC, and the last of them as None."""
        with self.driver.session(database=database) as session:
            return [{name: plain(value) for name, value in row.items()} for row in session.run(query, params)]

    def stop(self) -> None:
        """End it."""
        self.driver.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


def plain(value: Any) -> Any:
    """A value of the driver as the store gives it."""
    from datetime import UTC

    from graphstore.values.period import OPEN, moment

    if isinstance(value, list):
        return [plain(each) for each in value]
    if hasattr(value, "to_native"):
        native = value.to_native()
        if hasattr(native, "tzinfo"):
            native = native.replace(tzinfo=UTC) if native.tzinfo is None else native.astimezone(UTC)
        return None if native == moment(OPEN) else native
    return value


@contextmanager
def bolt_server(folder: Path) -> Iterator[BoltServer]:
    """The server, until the end of the block."""
    made = BoltServer(folder)
    try:
        yield made
    finally:
        made.stop()


def main(folder: str, bolt: str, http: str) -> None:
    from arcadedb_embedded import ArcadeDBServer

    server = ArcadeDBServer(
        folder,
        PASSWORD,
        config={
            "http_port": int(http), "bolt_port": int(bolt), "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        },
        jvm_kwargs={"heap_size": "384m"},
    )  # fmt: skip
    server.start()
    print("ready", flush=True)
    for name in sys.stdin:
        server.create_database(name.strip())
        print(f"made {name.strip()}", flush=True)
    time.sleep(0.2)
    os._exit(0)  # its own end takes long, and its data are of no use


if __name__ == "__main__":
    main(*sys.argv[1:])
