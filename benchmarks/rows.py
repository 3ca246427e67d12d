"""The rows that are not point reads: loads, writes, graph tables, opening and memory. Answers are compared before the stop-watch starts."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import graphstore
from benchmarks import data as history
from benchmarks import ours, raw_kuzu
from benchmarks.arena import Arena, Budget, Row, loaded
from benchmarks.branches import branches
from benchmarks.event_log import event_log
from benchmarks.lake import lake
from benchmarks.memory import memory
from benchmarks.postgres import postgres
from benchmarks.reads import beside, chains, deep, hops, hubs, node
from benchmarks.recall import decayed, recalled
from benchmarks.resting import resting
from benchmarks.searching import searched
from benchmarks.server import agent_starts, served, server
from benchmarks.sessions import sessions
from benchmarks.shared import CUT, DAY, START
from benchmarks.timeline import timeline
from benchmarks.timing import apart, once, process, race, together
from benchmarks.topics import topics
from benchmarks.tpc_bih import tpc_bih

MICRO, MILLI, MEGA = 1e-6, 1e-3, 1e6
COMMITS = {"ours": 20, "floor": 20, "sqlite": 20, "tiramemsu": 20}
"""Calls a turn, 3 of each of the others."""
BATCH = {"ours": 1_000, "sqlite": 1_000, "duckdb": 100}
ROWS = {"append_event": 1.3, "add_node": 1.3, "revise": 1.4, "supersede": 1.6}
"""What a durable write is to take at most: so many times a bare write and fdatasync of as many bytes."""
THREADS = 16

Group = Callable[[Arena], Iterator[Row]]


def load(arena: Arena) -> Iterator[Row]:
    rows, large = arena.data.rows, arena.data.rows > 1_000_000
    took = {name: median(seconds) for name, seconds in arena.loaded.items()}
    transactions = len(set(arena.data.told["tx_from"].to_pylist()))
    limit = None if large else 1.5 * rows / 137_500
    work = f"bulk load of {rows:,} rows, told in {transactions:,} transactions"
    yield arena.row(work, took, limit, "raw Kùzu COPY")
    if large:
        return
    flat = history.history(arena.data.told.num_rows, corrected=0.0)
    folder = arena.folder / "at_once"
    store, seconds = loaded(ours, folder, ours.prepare_at_once(flat), flat.versions.num_rows)
    ours.close(store)
    shutil.rmtree(folder)
    work = f"bulk load of {rows:,} rows, told in one transaction"
    yield arena.row(work, {**took, "ours": seconds}, limit, "raw Kùzu COPY")


def walks(arena: Arena) -> Iterator[Row]:
    """Beside SQLite alone, whose recursive query is the rival that people would write."""
    twins = {name: twin for name, twin in arena.twins.items() if name in ("ours", "sqlite")}
    chain = Arena(
        arena.size,
        history.long_chain(100 if arena.quick else 10_000),
        arena.folder / "chain",
        twins,
        arena.quick,
    )
    chain.load()
    asked = chain.draws("what_superseded", "now", 1, among=chain.data.heads, whole=True)
    steps = chain.data.links.num_rows
    yield chain.timed(
        f"what_superseded, a chain of {steps:,}", "what_superseded", asked, budget=50 * MILLI, most=1
    )
    chain.close()


def whole_view(arena: Arena) -> Iterator[Row]:
    """At a day that was never asked each time: the first of a process is the slowest."""
    step = 700 // arena.turns
    times: dict[str, list[float]] = {}
    wrong: set[str] = set()
    for turn in range(arena.turns):
        instant, right = START + (300 + turn * step) * DAY, None
        for name, twin, store in arena.asking("view_to_arrow"):
            seconds, answer = once(partial(twin.view_to_arrow, store, twin.at(instant)))
            times.setdefault(name, []).append(seconds)
            pairs = _pairs(answer)
            right = right or pairs
            if pairs != right:
                wrong.add(
                    f"{name}: view_to_arrow of day {300 + turn * step} has {len(pairs)} rows, not {len(right)} or others"
                )
    row = arena.row(
        "the whole view at T to Arrow",
        {},
        15 * MILLI if arena.data.rows < 1_000_000 else None,
        "raw Kùzu scan",
    )
    row = arena.spread(row, times, wrong)
    row.took |= {"floor": row.took["kuzu"]} if "kuzu" in row.took else {}
    yield row


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
    limit = 150 * MILLI if arena.data.nodes.num_rows <= 10_000 else 1.5
    yield arena.row("view.query, the first of a view", first, limit, "raw Kùzu, copy of the view")

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
    """Each commit alone, on disk when the call returns (tiramemsu alone does not wait for the disk)."""
    numbers = itertools.count(1_000_000)
    written, oracle = set(arena.data.written), arena.draws.oracle
    others = arena.data.nodes["id"].to_pylist()[len(arena.data.heads) * (history.CHAIN + 1) :]
    standing = (id for id in others if id not in written and oracle.node_as_of(id, None, None))
    ids = list(itertools.islice(standing, 600))
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
        for _ in range(1 if arena.quick else 8):
            for name, twin, store in stores:
                count = min(COMMITS.get(name, 3), len(olds) // 10 or 1)
                calls = [arguments(next(turns[name]), twin) for _ in range(count)]
                times.setdefault(name, []).extend(apart(partial(getattr(twin, verb), store), calls))
            times.setdefault("floor", []).extend(
                apart(arena.bare.append, [(b"x" * size,)] * COMMITS["floor"])
            )
        row = arena.row(f"{names[verb]}, fsynced", {}, None, f"write + fdatasync of {size} bytes")
        row = arena.spread(row, times, set())
        row.budget = ROWS[verb] * row.took["floor"]
        yield row
        if verb == "append_event":
            yield arena.row("journal of 1,500 events", {"ours": size * 1_500.0}, MEGA, "", unit="B")


def batches(arena: Arena) -> Iterator[Row]:
    """A thousand verbs in one transaction, a verb's share of it."""
    took: dict[str, dict[str, list[float]]] = {verb: {} for verb in ROWS}
    sizes: dict[str, int] = {}
    many = 1_000
    for turn, (name, twin, store) in itertools.product(range(arena.rounds), list(arena.asking("supersede"))):
        if turn and name == "duckdb":
            continue
        count = BATCH[name] // (50 if arena.quick else 1)
        old, new = ([f"{letter}{turn}_{number}" for number in range(count)] for letter in "on")
        _many(twin, store, "add_node", [(id, history.description(number)) for number, id in enumerate(new)])
        fresh = [(id, history.description(number)) for number, id in enumerate(old)]
        for verb in ROWS:
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
        yield arena.row(f"{verb}, a thousand in one transaction, each", medians, 12 * MICRO, floor_is)


def threads(arena: Arena) -> Iterator[Row]:
    """Durable adds of 16 threads at once, as seconds an add, all together: 83 µs are 12,000 a second. SQLite has a connection for each thread."""
    took = {}
    for name in [name for name in ("ours", "sqlite") if name in arena.stores]:
        took[name] = median(_adds(arena, name, turn) for turn in range(min(arena.rounds, 3)))
    yield arena.row(f"a durable add, {THREADS} threads", took, 1 / 12_000, "")


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
    yield arena.row(work, medians, 100 * MILLI, "raw Kùzu, one SET and three COPYs")


def opening(arena: Arena) -> Iterator[Row]:
    """In a fresh process each, the first point read included. Closes the arena's stores."""
    coordinate, right = arena.draws("node_as_of", "any coordinate", 1)[0]
    versions = arena.data.versions.num_rows
    clean, journal, memory_open, memory_after = (
        (25 * MILLI, 0.7, 120 * MEGA, 260 * MEGA)
        if versions <= 100_000
        else (200 * MILLI, 8.0, 450 * MEGA, None)
        if versions <= 1_000_000
        else (1.0, None, None, None)
    )
    names = [name for name, _, _ in arena.asking("open", "node_as_of")]
    stores = {name: arena.folder / name for name in names}
    arena.close()
    told: dict[str, list[dict[str, Any]]] = {}
    for turn, (name, folder) in itertools.product(range(min(arena.rounds, 3)), stores.items()):
        if not turn or name == "ours":
            told.setdefault(name, []).append(_child(arena, name, "open", folder, coordinate, right))
    took = {name: median(one["seconds"] for one in many) for name, many in told.items()}
    yield arena.row("open, closed cleanly before, and one read", took, clean, "")

    if versions <= 1_000_000 and "ours" in stores:
        asked: dict[str, list[float]] = {"ours": [], "kuzu": []}
        answers = set()
        for who in ["ours", "kuzu"] * min(arena.rounds, 3):
            found = _in_a_process("tables", who, str(stores["ours"]))
            asked[who].append(found["seconds"])
            answers.add(found["answer"])
        assert len(answers) == 1, answers
        took = {"ours": median(asked["ours"]), "floor": median(asked["kuzu"])}
        limit = 50 * MILLI if versions <= 100_000 else None
        work = "query_tables, the first of a process"
        yield arena.row(work, took, limit, "raw Kùzu: import, open the same file, count")

    for work, spoil, limit in (
        ("open after kill -9 of a writer", "crash", 0.3 if versions <= 100_000 else None),
        ("open from the journal alone", "forget", journal),
    ):
        took = {}
        for name in ("ours", "sqlite") if spoil == "crash" else ("ours",):
            if name not in stores or (versions > 2_000_000 and spoil == "forget"):
                continue
            copy = arena.folder / f"{name}_{spoil}"
            seconds = []
            for _ in range(1 if arena.quick or versions > 100_000 else 3):
                shutil.copytree(stores[name], copy)
                if spoil == "crash":
                    _child(arena, name, "crash", copy, coordinate, right)
                else:
                    ours.forget_saved_index(copy)
                seconds.append(_child(arena, name, "open", copy, coordinate, right)["seconds"])
                shutil.rmtree(copy)
            took[name] = median(seconds)
        if took:
            yield arena.row(work, took, limit, "")

    took = {name: float(median(one["resident"] for one in many)) for name, many in told.items()}
    yield arena.row("memory, open and one read", took, memory_open, "", unit="B")
    if versions <= 1_000_000:
        took = {}
        for name in ("ours", "sqlite", "duckdb"):
            if name in stores:
                at = START + 600 * DAY
                after = _child(arena, name, "open", stores[name], coordinate, right, at)
                took[name] = float(after["resident_after_query"])
        yield arena.row("memory, after a view.query", took, memory_after, "", unit="B")


def command_line(arena: Arena) -> Iterator[Row]:
    script = Path(sys.executable).with_name("graphstore")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "graphstore"]
    lanes = {
        "ours": lambda: process([*command, "--help"]),
        "floor": lambda: process([sys.executable, "-c", "import typer"]),
    }
    rounds = 1 if arena.quick else 7
    yield arena.row("graphstore --help", race(lanes, rounds), 150 * MILLI, "python -c 'import typer'")
    folder = arena.folder / "asked"
    with graphstore.open(folder) as store:
        store.add_node("fact", {"says": "the deploy day is friday"}, id="known")
    with served(folder):
        took = race({"ours": lambda: process([*command, "get", str(folder), "known"])}, rounds)
    yield arena.row("graphstore get, through a running server", took, 250 * MILLI, "")
    starts: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        for how, seconds in agent_starts(command, folder):
            starts[how].append(seconds)
    for how, budget in (("cold", 1_000), ("warm", 600)):
        took = {"ours": median(starts[how])}
        yield arena.row(f"graphstore mcp, until it answers, {how}", took, budget * MILLI, "")


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
    "catch_up": catch_up,
    "resting": resting,
    "recall": recalled,
    "events": event_log,
    "server": server,
    "cli": command_line,
    "postgres": postgres,
    "lake": lake,
    "timeline": timeline,
    "topics": topics,
    "sessions": sessions,
    "memory": memory,
    "branches": branches,
    "decay": decayed,
    "open": opening,
    "search": searched,
}
ROOMS = ("postgres", "lake", "timeline", "topics", "sessions", "memory", "branches", "decay", "search")
"""The groups about one room each, and what needs a server: run when they are named. `search` closes the arena's stores, as `open` does: it comes last."""
LARGE = ("node", "hops", "chains", "arrow", "query", "load", "writes", "open")
HUGE = ("node", "hops", "load", "open")
"""The groups of a million versions, and of more: what must stay flat, and what must not grow out of hand."""
ONCE = ("deep", "hubs", "walks", "resting", "recall", "events", "server", "cli", *ROOMS[:-1])
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
    told = _in_a_process(module, act, str(folder), *map(str, coordinate), *more)
    assert act == "crash" or tuple(told["answer"]) == right, told
    return told


def _in_a_process(*words: str) -> dict[str, Any]:
    """What `benchmarks.child` prints; nothing when it was to crash."""
    command = [sys.executable, "-m", "benchmarks.child", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    crashes = words[1] == "crash"
    assert done.returncode == (-9 if crashes else 0), done.stderr
    found: dict[str, Any] = {} if crashes else json.loads(done.stdout.splitlines()[-1])
    return found


def _pairs(table: Any) -> list[tuple[str, int]]:
    return sorted(zip(table["id"].to_pylist(), table["number"].to_pylist(), strict=True))


def _now() -> int:
    return time.time_ns() // 1_000


def _times(factor: float) -> Budget:
    return lambda took: took["floor"] * factor if "floor" in took else took.get("kuzu", float("nan")) * factor
