"""A process that writes to a store in PostgreSQL and prints what was acknowledged: `python -m tests.support.cluster_writer URL NAME COUNT`.

What was not kept it does again; where the outcome is unknown it opens the store again and looks.
"""

from __future__ import annotations

import sys
import time

import graphstore


def main(url: str, name: str, count: int) -> None:
    store = graphstore.open(url)
    print("open", flush=True)
    for number in range(count):
        id = f"{name}-{number}"
        while True:
            try:
                store.add_node("fact", {"n": number}, id=id)
                break
            except graphstore.EngineError as error:
                print(f"again {id} {error.outcome}", flush=True)
                if error.outcome == "unknown" or "open" in str(error):
                    store.close()
                    store = graphstore.open(url)
                store.refresh()
                if _there(store, id):
                    break
                time.sleep(0.01)
        print(f"ok {id}", flush=True)
    store.close()


def _there(store: graphstore.GraphStore, id: str) -> bool:
    try:
        store.node(id)
    except graphstore.NotFoundError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
