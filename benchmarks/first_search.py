"""`python -m benchmarks.first_search search|recall FOLDER TEXT INSTANT`: what only a fresh process can tell of a search, as a line of JSON. Nothing here loads
numpy before."""

from __future__ import annotations

import json
import sys
from time import perf_counter

import graphstore
from benchmarks.timing import resident_bytes


def main() -> None:
    act, folder, text, instant = sys.argv[1:]
    store = graphstore.open(folder)
    view = store.as_of(valid=instant, tx=instant)
    recall = graphstore.recall.recall
    before, start = resident_bytes(), perf_counter()
    if act == "recall":
        found = [hit.node.id for hit in recall(view, text, hops=0)]
    else:
        with view.reading() as sight:
            found = [sight.id(ent) for ent, _ in sight.found(text, 10).matches]
    seconds = perf_counter() - start
    print(json.dumps({"seconds": seconds, "found": found, "more": resident_bytes() - before}))


if __name__ == "__main__":
    main()
