"""Where the time of one row goes: `python -m benchmarks.profiling node|links_from|…|load [--size 100k]` prints cProfile's heaviest lines.

The profiler taxes calls, not C code, so short calls look heavier than they are: read the order, not the figures.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import data as history
from benchmarks import ours
from benchmarks.__main__ import count_of
from benchmarks.data import DAY, LATEST, START, Data

CALLS = 3_000


def works(store: Any, data: Data) -> dict[str, Callable[[], Any]]:
    """What can be profiled, by name."""
    asked = [(id, ours.at(valid), ours.at(tx)) for (id, valid, tx), _ in history.questions(data, CALLS)]
    heads = [
        (id, ours.at(LATEST), ours.at(LATEST)) for id in itertools.islice(itertools.cycle(data.heads), CALLS)
    ]
    effects = [(id, ours.at(START + 999 * DAY), ours.at(LATEST)) for id in data.effects[:CALLS]]
    fresh = [(f"p{number}", history.description(number)) for number in range(CALLS)]
    when = ours.at(START + 700 * DAY)
    view = store.knowledge_at(when)
    begins = ours.at(LATEST + DAY)

    def many(verb: str, calls: list[tuple[Any, ...]]) -> None:
        with ours.transaction(store):
            for arguments in calls:
                getattr(ours, verb)(store, *arguments)

    def each(verb: str, calls: list[tuple[Any, ...]]) -> None:
        for arguments in calls:
            getattr(ours, verb)(store, *arguments)

    ids = data.nodes["id"].to_pylist()[len(data.heads) * 6 :]
    half = len(ids) // 2
    return {
        "node": partial(each, "node_as_of", asked),
        "links_from": partial(each, "links_from", asked),
        "backlinks_to": partial(each, "backlinks_to", asked),
        "what_superseded": partial(each, "what_superseded", heads),
        "causes": partial(each, "causes", effects),
        "to_arrow": partial(ours.view_to_arrow, store, when),
        "first_query": partial(ours.ask, store, when),
        "later_query": lambda: [ours.answer(view) for _ in range(50)],
        "events": partial(each, "append_event", [(number,) for number in range(CALLS)]),
        "many_events": partial(many, "append_event", [(number,) for number in range(CALLS)]),
        "many_adds": partial(many, "add_node", fresh),
        "many_revisions": partial(
            many, "revise", [(id, history.description(1), begins) for id in ids[:CALLS]]
        ),
        "many_supersessions": partial(
            many,
            "supersede",
            [(old, new, begins) for old, new in zip(ids[:half], ids[half:], strict=False)][:1_000],
        ),
        "catch_up": partial(ours.catch_up, store),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiling", description=__doc__)
    parser.add_argument(
        "name", nargs="+", help="what to profile: load, open, or one of node, links_from, causes, …"
    )
    parser.add_argument("--size", default="100k")
    parser.add_argument("--lines", type=int, default=25)
    parser.add_argument("--by", default="tottime", choices=("tottime", "cumtime"))
    options = parser.parse_args()
    work = Path(__file__).parents[1] / ".benchmarks"
    work.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=work))
    data = history.history(count_of(options.size))
    loads = ours.prepare(data)
    try:
        store = ours.create(folder)
        _profile("load", partial(ours.bulk_load, store, loads), options)
        named = works(store, data)
        for name in options.name:
            if name in named:
                if name == "later_query":
                    named[name]()
                _profile(name, named[name], options)
        ours.close(store)
        reopened: list[Any] = []
        _profile("open", lambda: reopened.append(ours.open(folder)), options)
        ours.close(reopened[0])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _profile(name: str, work: Callable[[], Any], options: argparse.Namespace) -> None:
    if name not in options.name:
        work()
        return
    profile = cProfile.Profile()
    profile.runcall(work)
    print(f"\n===== {name}")
    pstats.Stats(profile).sort_stats(options.by).print_stats(options.lines)


if __name__ == "__main__":
    main()
