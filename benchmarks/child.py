"""What only a fresh process can tell: opening, memory, and dying in the middle of writing.

`python -m benchmarks.child TWIN open|crash FOLDER NODE VALID TX [QUERY_AT]` prints one line of JSON; so does `python -m benchmarks.child tables ours|kuzu FOLDER`,
the first question of a process over the tables of the whole history.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path

from benchmarks.timing import StopWatch, resident_bytes

VERSIONS = "MATCH (v:Version) RETURN count(*) AS n"


def tables(who: str, folder: Path) -> None:
    """How long the first question takes once the store is open; for raw Kùzu, with the import and the opening of the same file, which ours does then."""
    if who == "kuzu":
        watch = StopWatch()
        import kuzu

        con = kuzu.Connection(kuzu.Database(str(folder / "memory.gs" / "graph.kuzu"), read_only=True))
        answer = con.execute(VERSIONS).get_next()[0]
        print(json.dumps({"seconds": watch.seconds(), "answer": answer}), flush=True)
        return
    twin = importlib.import_module("benchmarks.ours")
    store = twin.open(folder)
    watch = StopWatch()
    answer = store.query_tables(VERSIONS).single()["n"]
    print(json.dumps({"seconds": watch.seconds(), "answer": answer}), flush=True)
    twin.close(store)


def main() -> None:
    if sys.argv[1] == "tables":
        tables(sys.argv[2], Path(sys.argv[3]))
        return
    name, act, folder, node, valid, tx, *query_at = sys.argv[1:]
    twin = importlib.import_module(f"benchmarks.{name}")
    watch = StopWatch()
    store = twin.open(Path(folder))
    answer = twin.plain(twin.node_as_of(store, node, twin.at(int(valid)), twin.at(int(tx))))
    told = {"seconds": watch.seconds(), "answer": answer, "resident": resident_bytes()}
    if act == "crash":
        for number in range(200):
            twin.append_event(store, number)
        os.kill(os.getpid(), signal.SIGKILL)
    if query_at:
        twin.ask(store, twin.at(int(query_at[0])))
        told["resident_after_query"] = resident_bytes()
    print(json.dumps(told), flush=True)
    twin.close(store)


if __name__ == "__main__":
    main()
