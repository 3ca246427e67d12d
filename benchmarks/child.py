"""What only a fresh process can tell: opening, memory, and dying in the middle of writing.

`python -m benchmarks.child TWIN open|crash FOLDER NODE VALID TX [QUERY_AT]` prints one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path

from benchmarks.timing import StopWatch, resident_bytes


def main() -> None:
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
