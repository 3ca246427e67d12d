"""The rows of the table: what is timed, its budget and its floor. Answers are compared before the stop-watch starts."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import log, sqrt
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks import data as history
from benchmarks import duckdb_twin, ours, raw_kuzu, sqlite_twin
from benchmarks.arena import Arena, Budget, Row, loaded
from benchmarks.branches import branches
from benchmarks.coordinates import decayed, long_histories
from benchmarks.data import CUT, DAY, LATEST
from benchmarks.event_log import event_log
from benchmarks.memory import memory
from benchmarks.resting import resting
from benchmarks.server import server
from benchmarks.sessions import sessions
from benchmarks.timeline import timeline
from benchmarks.timing import apart, once, process, race, together
from benchmarks.topics import topics
from graphstore.core.search.search import words, words_of_event, words_of_node

MICRO, MILLI, MEGA = 1e-6, 1e-3, 1e6
TWINS: dict[str, ModuleType] = {"ours": ours, "kuzu": raw_kuzu, "sqlite": sqlite_twin, "duckdb": duckdb_twin}
ASKED = 1_500
COMMITS = {"ours": 20, "floor": 20, "sqlite": 20, "kuzu": 10, "duckdb": 5}
BATCH = {"ours": 1_000, "kuzu": 200, "sqlite": 1_000, "duckdb": 100}


Group = Callable[[Arena], Iterator[Row]]


def load(arena: Arena) -> Iterator[Row]:
    rows, large = arena.data.rows, arena.data.rows > 1_000_000
    took = {name: median(seconds) for name, seconds in arena.loaded.items()}
    budget = None if large else 2.5
    yield arena.row(
        f"bulk load of {rows:,} rows, told in {max(rows // 137, 100):,} transactions",
        took,
        budget,
        "raw Kùzu COPY",
    )
    if large:
        return
    flat = history.history(arena.data.told.num_rows, corrected=0.0)
    loads = ours.prepare_at_once(flat)
    store, seconds = loaded(ours, arena.folder / "at_once", loads, flat.versions.num_rows)
    ours.close(store)
    shutil.rmtree(arena.folder / "at_once")
    yield arena.row(
        f"bulk load of {rows:,} rows, told in one transaction",
        {**took, "ours": seconds},
        budget,
        "raw Kùzu COPY",
    )


def node(arena: Arena) -> Iterator[Row]:
    asked = history.questions(arena.data, ASKED)
    coordinates = [coordinate for coordinate, _ in asked]
    arena.agree("node_as_of", coordinates[:200], [right for _, right in asked[:200]])
    took = race(arena.lanes("node_as_of", coordinates), arena.turns)
    yield arena.row("node as of (v, t) with content", took, 12 * MICRO, "raw Kùzu")


def depth(arena: Arena) -> Iterator[Row]:
    data, ids = history.deep()
    deep = Arena(arena.size, data, arena.folder / "deep", arena.twins, arena.quick)
    deep.load()
    for steps, nodes in ids.items():
        asked = history.questions(data, ASKED, set(nodes))
        coordinates = [coordinate for coordinate, _ in asked]
        deep.agree("node_as_of", coordinates[:50], [right for _, right in asked[:50]])
        took = race(deep.lanes("node_as_of", coordinates), arena.turns)
        yield deep.row(f"the same at history depth {steps:,}", took, 12 * MICRO, "raw Kùzu")
    deep.close()
    yield from long_histories(arena)


def hops(arena: Arena) -> Iterator[Row]:
    coordinates = [coordinate for coordinate, _ in history.questions(arena.data, ASKED)]
    for verb in ("links_from", "backlinks_to"):
        arena.agree(verb, coordinates[:100])
        took = race(arena.lanes(verb, coordinates), arena.turns)
        yield arena.row(f"one hop, {verb} as of (v, t)", took, 10 * MICRO, "raw Kùzu")


def chains(arena: Arena) -> Iterator[Row]:
    heads = [(id, LATEST, LATEST) for id in itertools.islice(itertools.cycle(arena.data.heads), ASKED)]
    arena.agree("what_superseded", heads[:10])
    assert len(arena.answer("ours", "what_superseded", *heads[0])) == history.CHAIN
    took = race(arena.lanes("what_superseded", heads), arena.turns)
    yield arena.row("what_superseded, a chain of 5", took, 40 * MICRO, "raw Kùzu, ids alone")
    before_any_was_superseded = history.START + 999 * DAY
    effects = [
        (id, before_any_was_superseded, LATEST)
        for id in itertools.islice(itertools.cycle(arena.data.effects), ASKED)
    ]
    arena.agree("causes", effects[:50])
    assert len(arena.answer("ours", "causes", *effects[0])) == 3
    took = race(arena.lanes("causes", effects), arena.turns)
    yield arena.row("causes, a chain of 3 hops", took, 30 * MICRO, "raw Kùzu, ids alone")


def walks(arena: Arena) -> Iterator[Row]:
    """Beside SQLite alone, whose recursive query is the rival that people would write."""
    twins = {name: twin for name, twin in arena.twins.items() if name in ("ours", "sqlite")}
    around = replace(arena, twins=twins)
    around.stores = {name: store for name, store in arena.stores.items() if name in twins}
    when = history.START + 999 * DAY
    roots = [(id, when, LATEST) for id in itertools.islice(itertools.cycle(arena.data.effects), ASKED)]
    around.agree("walk", roots[:50])
    took = race(around.lanes("walk", roots), arena.turns)
    yield around.row("walk, 3 hops out", took, None, "")

    chain = Arena(arena.size, history.long_chain(), arena.folder / "chain", twins, arena.quick)
    chain.load()
    head = (chain.data.heads[0], LATEST, LATEST)
    chain.agree("what_superseded", [head])
    assert len(chain.answer("ours", "what_superseded", *head)) == chain.data.links.num_rows
    lanes = {
        name: lambda store=store, twin=chain.twins[name]: once(
            lambda: twin.what_superseded(store, head[0], twin.at(head[1]), twin.at(head[2]))
        )[0]
        for name, store in chain.stores.items()
    }
    took = race(lanes, arena.turns)
    yield chain.row("what_superseded, a chain of 10,000", took, 50 * MILLI, "")
    chain.close()


def whole_view(arena: Arena) -> Iterator[Row]:
    when = [history.START + days * DAY for days in (300, 500, 700, 900, 1_000)]
    calls: dict[str, Callable[[int], Any]] = {}
    for name, store in arena.stores.items():
        twin = arena.twins[name]
        calls[name] = lambda instant, twin=twin, store=store: twin.view_to_arrow(store, twin.at(instant))
    seen = {name: sorted(_pairs(call(when[2]))) for name, call in calls.items()}
    assert all(pairs == seen["ours"] for pairs in seen.values()), {
        name: len(pairs) for name, pairs in seen.items()
    }
    turns = {name: itertools.cycle(when) for name in calls}
    lanes = {name: lambda name=name: once(lambda: calls[name](next(turns[name])))[0] for name in calls}
    took = race(lanes, len(when))
    yield arena.row("the whole view at T to Arrow", took, _times(1.3), "raw Kùzu scan")


def query(arena: Arena) -> Iterator[Row]:
    when = [history.START + days * DAY for days in (500, 600, 700, 800, 900)][: arena.rounds]
    answers: dict[str, list[Any]] = {}
    took: dict[str, list[float]] = {name: [] for name in arena.stores}
    for instant in when:
        for name, store in arena.stores.items():
            twin = arena.twins[name]
            seconds, answer = once(lambda twin=twin, store=store, at=instant: twin.ask(store, twin.at(at)))
            took[name].append(seconds)
            answers.setdefault(name, []).append([tuple(row) for row in answer])
    assert all(answer == answers["ours"] for answer in answers.values()), answers
    first = {name: median(seconds) for name, seconds in took.items()}
    small = arena.data.nodes.num_rows <= 10_000
    yield arena.row(
        "view.query, the first of a view", first, 200 * MILLI if small else None, "raw Kùzu, copy of the view"
    )

    view = arena.stores["ours"].knowledge_at(ours.at(when[0]))
    lanes = {"ours": partial(together, ours.answer, [(view,)] * 20)}
    ours.answer(view)
    if "kuzu" in arena.stores:
        copy = raw_kuzu.copy_of_view(arena.stores["kuzu"], raw_kuzu.at(when[0]))
        assert ours.answer(view) == raw_kuzu.answer(copy)
        lanes["kuzu"] = partial(together, raw_kuzu.answer, [(copy,)] * 20)
    later = race(lanes, arena.rounds)
    later |= {name: first[name] for name in ("sqlite", "duckdb") if name in first}
    yield arena.row("view.query, later ones of the same view", later, _times(1.0), "raw Kùzu, plain tables")


def writes(arena: Arena) -> Iterator[Row]:
    """Each commit alone, on disk when the call returns."""
    numbers = itertools.count(1_000_000)
    ids = arena.data.nodes["id"].to_pylist()[len(arena.data.heads) * (history.CHAIN + 1) :]
    revised, olds, news = (ids[start::3] for start in range(3))
    verbs: dict[str, Callable[[int, ModuleType], tuple[Any, ...]]] = {
        "append_event": lambda turn, twin: (next(numbers),),
        "add_node": lambda turn, twin: (f"a{turn:06d}", history.description(turn)),
        "revise": lambda turn, twin: (revised[turn], history.description(turn), twin.at(CUT)),
        "supersede": lambda turn, twin: (olds[turn], news[turn], twin.at(CUT)),
    }
    names = {
        "append_event": "append of one event",
        "add_node": "one add",
        "revise": "one revise, one piece",
        "supersede": "one supersede, one piece and a link",
    }
    for verb, arguments in verbs.items():
        before = ours.journal_bytes(arena.stores["ours"])
        for name, store in arena.stores.items():
            twin = arena.twins[name]
            for turn in range(4):
                getattr(twin, verb)(store, *arguments(turn, twin))
            _check_write(arena, name, verb, *arguments(0, twin))
            if name == "ours":
                size = (ours.journal_bytes(store) - before) // 4
        turns = {name: itertools.count(4) for name in arena.stores}
        rounds = 4 if arena.quick else 8
        took: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, store in arena.stores.items():
                twin = arena.twins[name]
                calls = [arguments(next(turns[name]), twin) for _ in range(COMMITS[name])]
                took.setdefault(name, []).extend(apart(partial(getattr(twin, verb), store), calls))
            took.setdefault("floor", []).extend(apart(arena.bare.append, [(b"x" * size,)] * COMMITS["floor"]))
        medians = {name: median(seconds) for name, seconds in took.items()}
        yield arena.row(f"{names[verb]}, fsynced", medians, _times(2.0), f"write + fdatasync of {size} bytes")
        if verb == "append_event":
            grown = {"ours": size * 1_500.0}
            yield arena.row("journal of 1,500 events", grown, MEGA, "", unit="B")


def batches(arena: Arena) -> Iterator[Row]:
    """A thousand verbs in one transaction, a verb's share of it."""
    took: dict[str, dict[str, list[float]]] = {
        verb: {} for verb in ("append_event", "add_node", "revise", "supersede")
    }
    sizes: dict[str, int] = {}
    for turn, (name, store) in itertools.product(range(arena.rounds), arena.stores.items()):
        if turn and name in ("kuzu", "duckdb"):
            continue
        twin, count = arena.twins[name], BATCH[name]
        old, new = ([f"{letter}{turn}_{number}" for number in range(count)] for letter in "on")
        _many(twin, store, "add_node", [(id, history.description(number)) for number, id in enumerate(new)])
        calls: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
            "append_event": lambda turn=turn, count=count: [
                (2_000_000 + turn * 1_000 + number,) for number in range(count)
            ],
            "add_node": lambda old=old: [(id, history.description(number)) for number, id in enumerate(old)],
            "revise": lambda old=old, twin=twin: [
                (id, history.description(number + 1), twin.at(_now())) for number, id in enumerate(old)
            ],
            "supersede": lambda old=old, new=new, twin=twin: [
                (a, b, twin.at(_now())) for a, b in zip(old, new, strict=True)
            ],
        }
        for verb, make in calls.items():
            if name == "kuzu" and verb in ("revise", "supersede"):
                continue  # it must not read relationships where it has just written some
            arguments = make()
            before = ours.journal_bytes(store) if name == "ours" else 0
            seconds, _ = once(partial(_many, twin, store, verb, arguments))
            took[verb].setdefault(name, []).append(seconds / count)
            if name == "ours":
                sizes[verb] = ours.journal_bytes(store) - before
            _check_write(arena, name, verb, *arguments[-1])
    for verb, seconds in took.items():
        floor = [sum(apart(arena.bare.append, [(b"x" * sizes[verb],)])) / 1_000 for _ in range(arena.rounds)]
        medians = {name: median(values) for name, values in seconds.items()} | {"floor": median(floor)}
        yield arena.row(
            f"{verb}, a thousand in one transaction, each",
            medians,
            15 * MICRO,
            f"write + fdatasync of {sizes[verb]:,} bytes",
        )


def catch_up(arena: Arena) -> Iterator[Row]:
    took: dict[str, list[float]] = {}
    for turn, name in itertools.product(range(3), ("ours", "kuzu")):
        if name not in arena.stores:
            continue
        store, twin = arena.stores[name], arena.twins[name]
        pairs = [(f"x{turn}_{number}", f"y{turn}_{number}") for number in range(1_000)]
        _many(twin, store, "add_node", [(id, history.description(1)) for pair in pairs for id in pair])
        begins = twin.at(_now())
        if name == "kuzu":
            seconds, _ = once(partial(raw_kuzu.supersede_many, store, pairs, begins))
        else:
            before = ours.catch_up(store)
            _many(twin, store, "supersede", [(old, new, begins) for old, new in pairs])
            seconds, after = once(partial(ours.catch_up, store))
            assert after == before + 1_000, (before, after)
        took.setdefault(name, []).append(seconds)
    medians = {name: median(seconds) for name, seconds in took.items()}
    yield arena.row(
        "graph tables catch up after 1,000 supersessions",
        medians,
        200 * MILLI,
        "raw Kùzu, one SET and three COPYs",
    )


def recalled(arena: Arena) -> Iterator[Row]:
    """By text alone at any coordinate, and by links over a web of its own."""
    store, chance = arena.stores["ours"], random.Random(history.SEED)
    now = (ours.at(LATEST), ours.at(LATEST))
    text = "queue settled 17"
    seconds, _ = once(partial(ours.recall, store, text, *now))
    yield arena.row("the first recall, which notes every word", {"ours": seconds}, 5.0, "")
    by_text = [hit.node.id for hit in ours.recall(store, text, *now, hops=0)]
    assert by_text == _ranked(store.as_of(valid=now[0], tx=now[1]), text), by_text
    calls = [(f"{chance.choice(history.WORDS)} {chance.randrange(100)}", *now) for _ in range(20)]
    took = race({"ours": lambda: together(partial(ours.recall, store), calls)}, arena.turns)
    yield arena.row("recall, a common word and a number", took, 10 * MILLI, "")
    when = [ours.at(history.START + days * DAY) for days in range(500, 500 + arena.rounds)]
    seconds = median(once(partial(ours.recall, store, text, at, at))[0] for at in when)
    yield arena.row("recall at a coordinate never seen", {"ours": seconds}, 100 * MILLI, "")

    nodes, links = history.web()
    store = ours.load_web(nodes, links)
    standing = store.as_of()
    ours.recall_now(standing, "nothing")  # the words are noted; no link was looked at yet
    seconds, found = once(partial(ours.recall_now, standing, "seed"))
    yield arena.row(
        f"the first recall over {len(links):,} links, 10 seeds, 2 hops", {"ours": seconds}, None, ""
    )
    hits = {hit.node.id: hit.spread_score for hit in found if hit.spread_rank}
    activated = _activated([node["id"] for node in nodes if node["text"] == "seed"], links)
    assert hits and all(abs(score - activated[id]) < 1e-9 for id, score in hits.items()), hits
    took = race({"ours": lambda: together(partial(ours.recall_now, store), [("seed",)] * 10)}, arena.turns)
    yield arena.row(f"recall over {len(links):,} links, 10 seeds, 2 hops", took, 20 * MILLI, "")
    fresh = []
    for number in range(arena.rounds):
        ours.add_node(store, f"fresh{number}", {})
        fresh.append(once(partial(ours.recall_now, store, "seed"))[0])
    yield arena.row("the same after a write", {"ours": median(fresh)}, 20 * MILLI, "")
    ours.close(store)


def opening(arena: Arena) -> Iterator[Row]:
    """In a fresh process each, the first point read included. Closes the arena's stores."""
    (coordinate, right), large = history.questions(arena.data, 1)[0], arena.data.rows > 1_000_000
    stores = {name: arena.folder / name for name in arena.stores}
    arena.close()
    told: dict[str, list[dict[str, Any]]] = {}
    for turn, (name, folder) in itertools.product(range(3), stores.items()):
        if not turn or name == "ours":
            told.setdefault(name, []).append(_child(arena, name, "open", folder, coordinate, right))
    took = {name: median(one["seconds"] for one in many) for name, many in told.items()}
    yield arena.row(
        "open, closed cleanly before, and one read", took, 1.5 if large else 150 * MILLI, "raw Kùzu"
    )

    crashed: dict[str, list[float]] = {}
    for name, folder in stores.items():
        copy = arena.folder / f"{name}_crashed"
        for _ in range(3 if name == "ours" and not large else 1):
            shutil.copytree(folder, copy)
            _child(arena, name, "crash", copy, coordinate, right)
            crashed.setdefault(name, []).append(
                _child(arena, name, "open", copy, coordinate, right)["seconds"]
            )
            shutil.rmtree(copy)
    took = {name: median(seconds) for name, seconds in crashed.items()}
    yield arena.row("open after kill -9 of a writer", took, 15.0 if large else 2.0, "raw Kùzu")

    copy = arena.folder / "ours_bare"
    seconds = []
    for _ in range(1 if large else 3):
        shutil.copytree(stores["ours"], copy)
        ours.forget_saved_index(copy)
        seconds.append(_child(arena, "ours", "open", copy, coordinate, right)["seconds"])
        shutil.rmtree(copy)
    took = {"ours": median(seconds)}
    yield arena.row("open from the journal alone", took, 15.0 if large else 2.0, "")

    took = {name: float(median(one["resident"] for one in many)) for name, many in told.items()}
    limit = 1_500 * MEGA if large else 300 * MEGA
    yield arena.row("memory, open and one read", took, limit, "raw Kùzu", unit="B")
    took = {}
    for name in stores:
        after = _child(arena, name, "open", stores[name], coordinate, right, history.START + 600 * DAY)
        took[name] = float(after["resident_after_query"])
    yield arena.row("memory, after a view.query", took, limit, "raw Kùzu", unit="B")


def help_text(arena: Arena) -> Iterator[Row]:
    script = Path(sys.executable).with_name("graphstore")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "graphstore"]
    lanes = {
        "ours": lambda: process([*command, "--help"]),
        "floor": lambda: process([sys.executable, "-c", "import typer"]),
    }
    yield arena.row("graphstore --help", race(lanes, 7), 150 * MILLI, "python -c 'import typer'")


GROUPS: dict[str, Group] = {
    "node": node,
    "depth": depth,
    "hops": hops,
    "chains": chains,
    "walks": walks,
    "arrow": whole_view,
    "query": query,
    "load": load,
    "events": event_log,
    "timeline": timeline,
    "resting": resting,
    "topics": topics,
    "sessions": sessions,
    "memory": memory,
    "branches": branches,
    "writes": writes,
    "batches": batches,
    "catch_up": catch_up,
    "recall": recalled,
    "decay": decayed,
    "open": opening,
    "server": server,
    "help": help_text,
}
LARGE = ("node", "depth", "hops", "chains", "load", "open")
"""The groups of a million versions: what must stay flat, and what must not grow out of hand."""


def _many(twin: ModuleType, store: Any, verb: str, calls: list[tuple[Any, ...]]) -> None:
    work = partial(getattr(twin, verb), store)
    with twin.transaction(store):
        for arguments in calls:
            work(*arguments)


def _check_write(arena: Arena, name: str, verb: str, *arguments: Any) -> None:
    now = _now()
    if verb in ("add_node", "revise"):
        got = arena.answer(name, "node_as_of", arguments[0], now, now)
        assert (got[0], got[2]) == arguments[:2], f"{name}: {verb}{arguments} left {got}"
    elif verb == "supersede":
        steps = arena.answer(name, "what_superseded", arguments[0], now, now)
        got = steps[0] if name == "kuzu" else steps[0][0]
        assert got == arguments[1], f"{name}: {verb}{arguments} left {steps}"


def _child(
    arena: Arena,
    name: str,
    act: str,
    folder: Path,
    coordinate: history.Coordinate,
    right: Any,
    query_at: int | None = None,
) -> dict[str, Any]:
    module = arena.twins[name].__name__.rpartition(".")[2]
    more = [] if query_at is None else [str(query_at)]
    command = [
        sys.executable,
        "-m",
        "benchmarks.child",
        module,
        act,
        str(folder),
        *map(str, coordinate),
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if act == "crash":
        assert done.returncode == -9, done.stderr
        return {}
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert tuple(told["answer"]) == right, told
    return told


def _ranked(view: Any, text: str) -> list[str]:
    """The ten best of everything that stands in a view, by plain BM25."""
    bags = {
        thing.id: Counter(words_of_node(dict(thing), thing.kind, thing.key))
        if hasattr(thing, "number")
        else Counter(words_of_event(dict(thing), thing.type))
        for thing in [*view.nodes(), *view.events()]
        if thing.standing in ("stands", "shaky")
    }
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    scores: Counter[str] = Counter()
    for word in words(text):
        having = [id for id, bag in bags.items() if word in bag]
        weight = log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
        for id in having:
            often = bags[id][word]
            scores[id] += weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * bags[id].total() / mean))
    return sorted(scores, key=lambda id: (-scores[id], id))[:10]


def _activated(seeds: list[str], links: list[dict[str, Any]]) -> Counter[str]:
    """What two hops from equal seeds activate: every path written out."""
    around: dict[str, list[tuple[int, str, str]]] = {}
    for link in links:
        for here, there in ((link["source"], link["target"]), (link["target"], link["source"])):
            around.setdefault(here, []).append((-link["strength"], link["id"], there))
    ways = {id: [there for _, _, there in sorted(steps)[:10]] for id, steps in around.items()}
    weight = {id: 0.5 / sqrt(1 + len(steps)) for id, steps in around.items()}
    activated: Counter[str] = Counter()
    for seed in seeds:
        for near in ways.get(seed, ()):
            activated[near] += weight[near]
            for far in ways[near]:
                if far not in (seed, near):
                    activated[far] += weight[near] * weight[far]
    return activated


def _pairs(table: Any) -> zip[tuple[str, int]]:
    return zip(table["id"].to_pylist(), table["number"].to_pylist(), strict=True)


def _now() -> int:
    return time.time_ns() // 1_000


def _times(factor: float) -> Budget:
    return lambda took: took["floor"] * factor if "floor" in took else took.get("kuzu", float("nan")) * factor
