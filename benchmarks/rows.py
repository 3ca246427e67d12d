"""The rows that are not point reads: loads, writes, graph tables, opening and memory. Answers are compared before the stop-watch starts."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import graphstore
from benchmarks import data as history
from benchmarks import fresh, ours, promises, raw_kuzu
from benchmarks.arena import Arena, Limit, Row, loaded
from benchmarks.branches import branches
from benchmarks.event_log import event_log
from benchmarks.lake import lake
from benchmarks.memory import memory
from benchmarks.reaching import reaching
from benchmarks.reads import beside, chains, deep, hops, hubs, node
from benchmarks.recall import decayed, recalled
from benchmarks.searching import searched
from benchmarks.server import BARE_SERVER, first_answer, server
from benchmarks.sessions import sessions
from benchmarks.shared import CUT, DAY, START
from benchmarks.timeline import timeline
from benchmarks.timing import apart, once, process, race, together
from benchmarks.topics import topics
from benchmarks.tpc_bih import tpc_bih

MILLI, MEGA = 1e-3, 1e6
COMMITS = {"ours": 50, "floor": 50, "sqlite": 50, "tiramemsu": 50}
"""Calls a turn, 3 of each of the others."""
BATCH = {"ours": 1_000, "sqlite": 1_000, "duckdb": 100}
VERBS = ("append_event", "add_node", "revise", "supersede")
THREADS, PROCESSES = 16, 4

VIEW_ROWS = 40_000
"""How many nodes and links a run of 100k has. Memory may grow with further rows."""
READ = "import graphstore, sys; graphstore.open(sys.argv[1]).versions(sys.argv[2])[0].content"
PYDANTIC = [sys.executable, "-c", "import pydantic\nclass One(pydantic.BaseModel):\n    id: str\nOne(id='a')"]
ONE_MODEL = "importing pydantic, with one model"

Group = Callable[[Arena], Iterator[Row]]


def load(arena: Arena) -> Iterator[Row]:
    """Yield the bulk load of the run's history, graph tables and close included."""
    rows, large = arena.data.rows, arena.versions > 100_000
    took = {name: median(seconds) for name, seconds in arena.loaded.items()}
    transactions = len(set(arena.data.told["tx_from"].to_pylist()))
    limits = {100_000: (Limit(3.0),), 1_000_000: (Limit(35.0),)}.get(max(arena.versions, 100_000), ())
    work = f"bulk load of {rows:,} rows, told in {transactions:,} transactions, closed"
    yield arena.row(work, took, limits, "raw Kùzu COPY", promise=promises.BULK)
    work, limits = "close after it", () if large else (Limit(1.0),)
    yield arena.row(work, dict(arena.closed), limits, promise=promises.CLOSE)
    if large:
        return
    flat = history.history(arena.data.told.num_rows, corrected=0.0)
    folder = arena.folder / "at_once"
    store, seconds = loaded(ours, folder, ours.prepare_at_once(flat), flat.versions.num_rows)
    seconds += once(partial(ours.close, store))[0]
    shutil.rmtree(folder)
    work = f"bulk load of {rows:,} rows, told in one transaction, closed"
    yield arena.row(
        work, {**took, "ours": seconds}, limits=(Limit(3.0),), floor_is="raw Kùzu COPY", promise=promises.BULK
    )


def walks(arena: Arena) -> Iterator[Row]:
    """Beside SQLite alone, whose recursive query is the rival that people would write."""
    twins = {name: twin for name, twin in arena.twins.items() if name in ("ours", "sqlite")}
    links = history.long_chain(arena.scaled(10_000))
    chain = Arena(arena.size, links, arena.folder / "long_chain", twins)
    chain.load()
    asked = chain.draws("what_superseded", "now", 1, among=chain.data.heads, whole=True)
    steps = chain.data.links.num_rows
    yield chain.timed(f"what_superseded, a chain of {steps:,}", "what_superseded", asked, most=1)
    chain.close()


def whole_view(arena: Arena) -> Iterator[Row]:
    """At a day that was never asked each time: the first of a process is the slowest."""
    step = 700 // arena.turns
    times: dict[str, list[float]] = {}
    wrong: set[str] = set()
    for turn in range(arena.turns):
        day = 300 + turn * step
        right = sorted(row[:2] for row in _raw_rows(arena, START + day * DAY, times))
        for name, twin, store in arena.asking("view_to_arrow"):
            seconds, answer = once(partial(twin.view_to_arrow, store, twin.at(START + day * DAY)))
            times.setdefault(name, []).append(seconds)
            pairs = sorted(zip(answer["id"].to_pylist(), answer["number"].to_pylist(), strict=True))
            right = right or pairs
            if pairs != right:
                wrong.add(
                    f"{name}: view_to_arrow of day {day} has {len(pairs)} rows, not {len(right)} or others"
                )
    row = arena.row(
        "the whole view at T to Arrow", {}, (Limit(1.2, "floor"),), "SQLite's fetchall of the same rows"
    )
    row.promise = promises.ARROW
    yield arena.spread(row, times, wrong)


def _raw_rows(arena: Arena, instant: int, times: dict[str, list[float]]) -> list[tuple[Any, ...]]:
    """Time fetching the rows of a view from SQLite, the floor of a view in Arrow. Return id and number of each."""
    if "sqlite" not in arena.stores:
        return []
    twin = arena.twins["sqlite"]
    seconds, rows = once(partial(twin.view_rows, arena.stores["sqlite"], instant))
    times.setdefault("floor", []).append(seconds)
    return [(row[0], row[2]) for row in rows]


def query(arena: Arena) -> Iterator[Row]:
    when = [START + days * DAY for days in (500, 600, 700, 800, 900)][: arena.rounds]
    answers: dict[str, list[Any]] = {}
    took: dict[str, list[float]] = {name: [] for name, _, _ in arena.asking("ask")}
    askable = list(arena.asking("ask"))
    for instant in when:
        for name, twin, store in askable:
            seconds, answer = once(lambda twin=twin, store=store, at=instant: twin.ask(store, twin.at(at)))
            took[name].append(seconds)
            answers.setdefault(name, []).append([tuple(row) for row in answer])
    assert all(answer == answers["ours"] for answer in answers.values()), answers
    first = {name: median(seconds) for name, seconds in took.items()}
    limits = (Limit(1.2, "kuzu"),)
    yield arena.row(
        "view.query, the first of a view", first, limits, "raw Kùzu, copy of the view", promise=promises.GRAPH
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
    yield arena.row("view.query, later ones of the same view", later, None, "raw Kùzu, plain tables")
    yield from _first_tables(arena)


def _first_tables(arena: Arena) -> Iterator[Row]:
    """Measure the first question to a store without graph tables, which fills them. Raw Kùzu fills its own with the same rows."""
    took: dict[str, list[float]] = {}
    loads = raw_kuzu.prepare(arena.data) if "kuzu" in arena.stores else None
    copy = arena.folder / "without_tables"
    for _ in range(min(arena.rounds, 3)):
        _backup(arena.folder / "ours" / "memory.gs", copy / "memory.gs")
        store = ours.open(copy)
        seconds, count = once(partial(ours.count_in_tables, store))
        took.setdefault("ours", []).append(seconds)
        assert count == ours.count_in_tables(arena.stores["ours"])
        ours.close(store)
        shutil.rmtree(copy)
        if loads is not None:
            raw, seconds = loaded(raw_kuzu, copy, loads, arena.data.versions.num_rows)
            took.setdefault("kuzu", []).append(seconds)
            raw_kuzu.close(raw)
            shutil.rmtree(copy)
    medians = {name: median(seconds) for name, seconds in took.items()}
    work = "query_tables, the first of a store"
    yield arena.row(
        work,
        medians,
        (Limit(1.3, "kuzu"),),
        "raw Kùzu, its own COPY of the same rows",
        promise=promises.GRAPH,
    )


def _backup(folder: Path, to: Path) -> None:
    """Copy the ledger of an open store without the files that are made from it."""
    to.mkdir(parents=True)
    with (
        closing(sqlite3.connect(folder / "ledger.db")) as source,
        closing(sqlite3.connect(to / "ledger.db")) as sink,
    ):
        source.backup(sink)


def writes(arena: Arena) -> Iterator[Row]:
    """Each commit alone, on disk when the call returns (tiramemsu alone does not wait for the disk)."""
    numbers = itertools.count(1_000_000)
    written, oracle = set(arena.data.written), arena.draws.oracle
    others = arena.data.nodes["id"].to_pylist()[len(arena.data.heads) * (history.CHAIN + 1) :]
    standing = (id for id in others if id not in written and oracle.node_as_of(id, None, None))
    ids = list(itertools.islice(standing, 60 if arena.quick else 6_000))
    revised, olds, news = (ids[start::3] for start in range(3))
    verbs: dict[str, Callable[[int, ModuleType], tuple[Any, ...]]] = {
        "append_event": lambda turn, twin: (next(numbers),),
        "add_node": lambda turn, twin: (f"a{turn:06d}", history.description(turn)),
        "revise": lambda turn, twin: (
            revised[turn % len(revised)],
            history.description(turn),
            twin.at(CUT + turn),
        ),
        "supersede": lambda turn, twin: (olds[turn], news[turn], twin.at(CUT)),
    }
    names = {
        "append_event": "append of one event",
        "add_node": "one add",
        "revise": "one revise, one piece",
        "supersede": "one supersede, one piece and a link",
    }
    for verb, arguments in verbs.items():
        stores = list(arena.asking(verb))
        before, size = ours.journal_bytes(arena.stores["ours"]), 0
        for name, twin, store in stores:
            getattr(twin, verb)(store, *arguments(0, twin))
            _check_write(arena, name, verb, *arguments(0, twin))
            if name == "ours":
                size = ours.journal_bytes(store) - before
        turns = {name: itertools.count(1) for name in arena.stores}
        times: dict[str, list[float]] = {}
        rounds = 1 if arena.quick else 40
        for _ in range(rounds):
            for name, twin, store in stores:
                count = min(COMMITS.get(name, 3), (len(olds) - 1) // rounds)
                calls = [arguments(next(turns[name]), twin) for _ in range(count)]
                times.setdefault(name, []).extend(apart(partial(getattr(twin, verb), store), calls))
            times.setdefault("floor", []).extend(
                apart(arena.bare.append, [(b"x" * size,)] * COMMITS["floor"])
            )
        work, limits = (
            f"{names[verb]}, fsynced",
            (Limit(1.3, "sqlite"), Limit(1.2, "floor"), Limit(2.5, "sqlite", tail=True)),
        )
        row = arena.row(work, {}, limits, "write + fdatasync of as many bytes", promise=promises.WRITE)
        yield arena.spread(row, times, set())
        slow = sorted(times["ours"])[len(times["ours"]) * 999 // 1_000]
        yield arena.row(f"{work}, 999 of 1,000", {"ours": slow}, 15 * MILLI, promise=promises.WRITE)
        if verb == "append_event":
            yield arena.row(
                "ledger of 1,500 events", {"ours": size * 1_500.0}, MEGA, unit="B", promise=promises.EVENTS
            )


def batches(arena: Arena) -> Iterator[Row]:
    """A thousand verbs in one transaction, a verb's share of it."""
    took: dict[str, dict[str, list[float]]] = {verb: {} for verb in VERBS}
    sizes: dict[str, int] = {}
    many = 1_000
    for turn, (name, twin, store) in itertools.product(range(arena.rounds), list(arena.asking("supersede"))):
        if turn and name == "duckdb":
            continue
        count = BATCH[name] // (50 if arena.quick else 1)
        old, new = ([f"{letter}{turn}_{number}" for number in range(count)] for letter in "on")
        _many(twin, store, "add_node", [(id, history.description(number)) for number, id in enumerate(new)])
        fresh = [(id, history.description(number)) for number, id in enumerate(old)]
        for verb in VERBS:
            now = twin.at(_now())
            arguments: list[tuple[Any, ...]] = {
                "append_event": [(2_000_000 + turn * 1_000 + number,) for number in range(count)],
                "add_node": fresh,
                "revise": [(id, history.description(number + 1), now) for number, id in enumerate(old)],
                "supersede": [(a, b, now) for a, b in zip(old, new, strict=True)],
            }[verb]
            before = ours.journal_bytes(store) if name == "ours" else 0
            seconds, _ = once(partial(_many, twin, store, verb, arguments))
            took[verb].setdefault(name, []).append(seconds / count)
            if name == "ours":
                sizes[verb] = ours.journal_bytes(store) - before
                many = count
            _check_write(arena, name, verb, *arguments[-1])
    for verb, seconds in took.items():
        floor = [sum(apart(arena.bare.append, [(b"x" * sizes[verb],)])) / many for _ in range(arena.rounds)]
        medians = {name: median(values) for name, values in seconds.items()} | {"floor": median(floor)}
        floor_is = f"write + fdatasync of {sizes[verb]:,} bytes"
        work = f"{verb}, a thousand in one transaction, each"
        yield arena.row(work, medians, (Limit(2.0, "sqlite"),), floor_is, promise=promises.BATCH)


def threads(arena: Arena) -> Iterator[Row]:
    """Durable adds of 16 threads at once, as seconds an add, all together: 83 µs are 12,000 a second. SQLite has a connection for each thread."""
    took = {}
    for name in [name for name in ("ours", "sqlite") if name in arena.stores]:
        took[name] = median(_adds(arena, name, turn) for turn in range(min(arena.rounds, 3)))
    yield arena.row(f"a durable add, {THREADS} threads", took)


def processes(arena: Arena) -> Iterator[Row]:
    """Measure the seconds an add of all processes together. SQLite's twin takes the same file lock as our writers."""
    took = {}
    for name in [name for name in ("ours", "sqlite") if name in arena.stores]:
        twin, each = arena.twins[name], []
        for turn in range(min(arena.rounds, 3)):
            folder = arena.folder / f"processes_{name}_{turn}"
            folder.mkdir()
            twin.close(twin.create(folder))
            seconds = 0.3 if arena.quick else 4.0
            counts = fresh.together(twin, folder, PROCESSES, seconds)
            store = twin.open(folder)
            for number, count in enumerate(counts):
                for last in (0, count - 1):
                    there = twin.node_as_of(store, f"p{number}_{last}", twin.at(None), twin.at(None))
                    assert there, f"{name}: an add that returned is not there"
            twin.close(store)
            shutil.rmtree(folder)
            each.append(seconds / sum(counts))
        took[name] = median(each)
    work = f"a durable add, {PROCESSES} processes"
    yield arena.row(work, took, (Limit(1 / 0.8, "sqlite"),), promise=promises.WRITERS)


def _adds(arena: Arena, name: str, turn: int) -> float:
    twin, store = arena.twins[name], arena.stores[name]
    counts = [0] * THREADS
    until = time.perf_counter() + (0.1 if arena.quick else 1.0)

    def add(mine: int) -> None:
        one = store if name == "ours" else twin.open(arena.folder / name)
        while time.perf_counter() < until:
            twin.add_node(one, f"t{turn}_{mine}_{counts[mine]}", history.description(counts[mine]))
            counts[mine] += 1
        if one is not store:
            twin.close(one)

    start = time.perf_counter()
    adding = [threading.Thread(target=add, args=(mine,)) for mine in range(THREADS)]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    seconds = time.perf_counter() - start
    now = (twin.at(None), twin.at(None))
    there = [
        twin.node_as_of(store, f"t{turn}_{mine}_{count - 1}", *now)
        for mine, count in enumerate(counts)
        if count
    ]
    assert all(there) and there, f"{name}: an add that returned is not there"
    return seconds / sum(counts)


def catch_up(arena: Arena) -> Iterator[Row]:
    took: dict[str, list[float]] = {}
    many = 20 if arena.quick else 1_000
    for turn, name in itertools.product(range(min(arena.rounds, 3)), ("ours", "kuzu")):
        if name not in arena.stores:
            continue
        store, twin = arena.stores[name], arena.twins[name]
        pairs = [(f"x{turn}_{number}", f"y{turn}_{number}") for number in range(many)]
        new = [(id, history.description(1)) for pair in pairs for id in pair]
        if name == "kuzu":
            raw_kuzu.add_many(store, new)
            seconds, _ = once(partial(raw_kuzu.supersede_many, store, pairs, twin.at(_now())))
        else:
            _many(twin, store, "add_node", new)
            before, begins = ours.catch_up(store), twin.at(_now())
            _many(twin, store, "supersede", [(old, new, begins) for old, new in pairs])
            seconds, after = once(partial(ours.catch_up, store))
            assert after == before + many, (before, after)
        took.setdefault(name, []).append(seconds)
    medians = {name: median(seconds) for name, seconds in took.items()}
    work = f"graph tables catch up after {many:,} supersessions"
    yield arena.row(work, medians, None, "raw Kùzu, one SET and three COPYs")


def opening(arena: Arena) -> Iterator[Row]:
    """Measure opening, memory and closing in fresh processes. Closes the arena's stores."""
    coordinate, right = arena.draws("node_as_of", "any coordinate", 1)[0]
    id, small = coordinate[0], arena.versions <= 100_000
    names = [name for name, _, _ in arena.asking("open", "node_as_of")]
    stores = {name: arena.folder / name for name in names}
    arena.close()

    def child(name: str, folder: Path, act: str = "open", **given: Any) -> dict[str, Any]:
        done = fresh.run(act, arena.twins[name], folder, coordinate=coordinate, **given)
        assert act == "crash" or done["answer"] == fresh.as_json(right), done
        return done

    folder, rounds = stores["ours"] / "memory.gs", 2 if arena.quick else 7
    once_read = [sys.executable, "-c", READ, str(folder), id]
    lanes = {"ours": partial(process, once_read), "floor": partial(process, PYDANTIC)}
    limits = (Limit(25 * MILLI, "floor", above=True),)
    yield arena.row(
        "`python -c`: import, open, one read",
        race(lanes, rounds),
        limits,
        ONE_MODEL,
        promise=promises.START_UP,
    )
    opened: dict[str, list[dict[str, Any]]] = {}
    for turn, (name, where) in itertools.product(range(min(arena.rounds, 3)), stores.items()):
        if not turn or name == "ours":
            opened.setdefault(name, []).append(child(name, where, warm=True))
    for work, what, limit in (
        ("the open itself", "opened", 3 * MILLI),
        ("open and one read", "seconds", None),
    ):
        took = {name: median(one[what] for one in many) for name, many in opened.items()}
        yield arena.row(
            f"{work}, closed cleanly before", took, limit, promise=promises.START_UP if limit else ""
        )
    took = {name: float(child(name, where)["memory"]) for name, where in stores.items()}
    yield arena.row("anonymous memory, open and one read", took, 40 * MEGA, unit="B", promise=promises.MEMORY)

    if arena.versions <= 1_000_000:
        at = START + 600 * DAY
        after = [child("ours", folder.parent, search=("queue settled 17", at)) for _ in range(rounds)]
        took = {"ours": float(median(one["memory_searched"] for one in after))}
        yield arena.row(
            "anonymous memory, after a search", took, 65 * MEGA, unit="B", promise=promises.MEMORY
        )
        took = {"ours": median(one["searched"] for one in after)}
        limit = 150 * MILLI if small else 200 * MILLI
        yield arena.row("search, the first of a process", took, limit, promise=promises.SEARCH)
        took = {
            name: float(child(name, stores[name], query_at=at)["memory_queried"])
            for name in ("ours", "sqlite", "duckdb")
            if name in stores
        }
        further = arena.data.nodes.num_rows + arena.data.links.num_rows - VIEW_ROWS
        limit = 260 * MEGA + 1_000 * max(further, 0)
        yield arena.row(
            "anonymous memory, after a view.query", took, limit, unit="B", promise=promises.MEMORY
        )
    closed = [child("ours", folder.parent, add=f"closed{turn}")["closed"] for turn in range(rounds)]
    yield arena.row("close after one write", {"ours": median(closed)}, 20 * MILLI, promise=promises.CLOSE)

    took = {}
    for name in [name for name in ("ours", "sqlite") if name in stores]:
        copy, seconds = arena.folder / f"{name}_crash", []
        for _ in range(1 if arena.quick or not small else 3):
            shutil.copytree(stores[name], copy)
            child(name, copy, "crash")
            seconds.append(child(name, copy, warm=True)["seconds"])
            shutil.rmtree(copy)
        took[name] = median(seconds)
    yield arena.row("open and one read, after kill -9 of a writer", took)


def command_line(arena: Arena) -> Iterator[Row]:
    """Measure how long a person or an agent waits for the first answer. No server runs."""
    script = Path(sys.executable).with_name("graphstore")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "graphstore"]
    rounds = 1 if arena.quick else 7
    folder = arena.folder / "asked"
    with graphstore.open(folder) as store:
        store.add_node("fact", {"says": "the deploy day is friday"}, id="known")
    lanes = {"ours": partial(process, [*command, "--help"]), "floor": partial(process, PYDANTIC)}
    yield arena.row("graphstore --help", race(lanes, rounds), None, ONE_MODEL)
    lanes["ours"] = partial(process, [*command, "get", str(folder), "known"])
    limits = (Limit(50 * MILLI, "floor", above=True),)
    yield arena.row("graphstore get", race(lanes, rounds), limits, ONE_MODEL, promise=promises.FIRST_ANSWER)
    lanes = {
        "ours": partial(first_answer, [*command, "mcp", str(folder)]),
        "floor": partial(first_answer, [sys.executable, "-c", BARE_SERVER]),
    }
    limits = (Limit(80 * MILLI, "floor", above=True),)
    work, floor_is = "graphstore mcp, until it answers", "a bare server of the MCP SDK"
    yield arena.row(work, race(lanes, rounds), limits, floor_is, promise=promises.FIRST_ANSWER)


GROUPS: dict[str, Group] = {
    "node": node,
    "hops": hops,
    "chains": chains,
    "beside": beside,
    "deep": deep,
    "hubs": hubs,
    "walks": walks,
    "arrow": whole_view,
    "query": query,
    "tpc_bih": tpc_bih,
    "load": load,
    "writes": writes,
    "batches": batches,
    "threads": threads,
    "processes": processes,
    "catch_up": catch_up,
    "reaching": reaching,
    "recall": recalled,
    "events": event_log,
    "server": server,
    "cli": command_line,
    "lake": lake,
    "timeline": timeline,
    "topics": topics,
    "sessions": sessions,
    "memory": memory,
    "branches": branches,
    "decay": decayed,
    "search": searched,
    "open": opening,
}
ROOMS = ("lake", "timeline", "topics", "sessions", "memory", "branches", "decay")
"""The groups that run only if they are named. `open` closes the arena's stores, so it is last."""
LARGE = ("node", "hops", "chains", "arrow", "query", "load", "writes", "search", "open")
HUGE = ("node", "hops", "load", "open")
"""The groups of a million versions, and of more: what must stay flat, and what must not grow out of hand."""
ONCE = (
    "deep",
    "hubs",
    "walks",
    "processes",
    "reaching",
    "recall",
    "events",
    "server",
    "cli",
    *ROOMS,
)
"""The groups that have data of their own: of several sizes, with the last."""


def _many(twin: ModuleType, store: Any, verb: str, calls: list[tuple[Any, ...]]) -> None:
    work = partial(getattr(twin, verb), store)
    with twin.transaction(store):
        for arguments in calls:
            work(*arguments)


def _check_write(arena: Arena, name: str, verb: str, *arguments: Any) -> None:
    twin, store = arena.twins[name], arena.stores[name]
    if verb in ("add_node", "revise") and hasattr(twin, "node_as_of"):
        got = twin.plain(twin.node_as_of(store, arguments[0], twin.at(None), twin.at(None)))
        assert got and (got[0], got[2]) == arguments[:2], f"{name}: {verb}{arguments} left {got}"
    elif verb == "supersede":
        steps = twin.plain(twin.what_superseded(store, arguments[0], twin.at(None), twin.at(None)))
        assert steps[0][0] == arguments[1], f"{name}: {verb}{arguments} left {steps}"


def _now() -> int:
    return time.time_ns() // 1_000
