"""Point reads: at now, at a past day as believed now, at any coordinate; with nothing going on, directly after a write, and beside threads that are busy."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from time import perf_counter
from types import ModuleType
from typing import Any

import orjson

from benchmarks import ours
from benchmarks.arena import Arena, Row
from benchmarks.data import WHEN, hub, one_node
from benchmarks.shared import DAY, START
from benchmarks.timing import apart, at_most, once

MICRO, MILLI = 1e-6, 1e-3
ASKED = 1_500
NAMES = {
    "node_as_of": "node",
    "links_from": "one hop, links_from",
    "backlinks_to": "one hop, backlinks_to",
    "what_superseded": "what_superseded, a chain of 5",
    "causes": "causes, a chain of 3",
}
WITH_KERNEL = {"node_as_of": 5, "links_from": 10, "backlinks_to": 10, "what_superseded": 40, "causes": 25}
WITHOUT = {"node_as_of": 15, "links_from": 35, "backlinks_to": 35, "what_superseded": 80, "causes": 60}
TAIL, BESIDE = 4.0, 5.0
"""99 of 100 reads of a node take at most so many times the median; beside busy threads, so many times the median of a quiet store."""
LIMIT = 10.0
"""Seconds after which one telling of a deep node is given up."""


def budget(verb: str) -> float:
    """In seconds: one with the kernel in C, one without."""
    return (WITH_KERNEL if ours.kernel() else WITHOUT)[verb] * MICRO


def node(arena: Arena) -> Iterator[Row]:
    yield from _reads(arena, "node_as_of")
    asked = arena.draws("node_as_of", "any coordinate", ASKED, standing=False)
    yield arena.timed("no node: one that does not stand, any coordinate", "node_as_of", asked)


def hops(arena: Arena) -> Iterator[Row]:
    for verb in ("links_from", "backlinks_to"):
        yield from _reads(arena, verb)


def chains(arena: Arena) -> Iterator[Row]:
    for verb in ("what_superseded", "causes"):
        yield from _reads(arena, verb)


def _reads(arena: Arena, verb: str) -> Iterator[Row]:
    for when, after in itertools.product(WHEN, (False, True)):
        asked = arena.draws(verb, when, ASKED)
        floor: dict[str, Any] = {}
        if verb == "node_as_of":
            contents = {right[:2]: orjson.dumps(right[2]) for _, right in asked}
            floor = {
                "floor": lambda right, contents=contents: orjson.loads(contents[right[:2]]),
                "floor_is": "a dict, and its content by orjson",
                "tail": TAIL,
            }
        work = f"{NAMES[verb]}, {when}{', after a write each' if after else ''}"
        yield arena.timed(work, verb, asked, budget=budget(verb), after_a_write=after, **floor)


def beside(arena: Arena) -> Iterator[Row]:
    """A node at any coordinate while another thread is busy. SQLite has a connection for each thread."""
    asked = arena.draws("node_as_of", "any coordinate", ASKED)
    quiet: dict[str, float] = {}
    for what in (
        "nothing",
        "a thread that commits",
        "a thread that reads past days",
        "a thread that asks Cypher",
    ):
        times: dict[str, list[float]] = {}
        wrong: set[str] = set()
        for name in [name for name in ("ours", "sqlite") if name in arena.stores]:
            times[name] = _beside(arena, name, what, asked, wrong)
        row = arena.spread(arena.row(f"node, any coordinate, beside {what}", {}, None, ""), times, wrong)
        quiet = quiet or row.took
        if "ours" in row.took and "ours" in quiet:
            row.tail = BESIDE * quiet["ours"]
        yield row


def _beside(arena: Arena, name: str, what: str, asked: list[Any], wrong: set[str]) -> list[float]:
    twin, store = arena.twins[name], arena.stores[name]
    stop, going = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def busy() -> None:
        mine = store if name == "ours" else twin.open(arena.folder / name)
        try:
            act = _busy(arena, name, twin, mine, what)
            while not stop.is_set():
                act()
                going.set()
        except BaseException as error:
            failed.append(error)
            going.set()
        finally:
            if mine is not store:
                twin.close(mine)

    thread = threading.Thread(target=busy)
    if what != "nothing":
        thread.start()
        going.wait()
    times = []
    calls = itertools.cycle(asked)
    until = perf_counter() + (0.1 if arena.quick else 2.0)
    while perf_counter() < until:
        (id, valid, tx), right = next(calls)
        question = (id, twin.at(valid), twin.at(tx))
        start = perf_counter()
        answer = twin.node_as_of(store, *question)
        times.append(perf_counter() - start)
        if twin.plain(answer) != right:
            wrong.add(f"{name}: node_as_of{question} beside {what} is {twin.plain(answer)!r}, not {right!r}")
    stop.set()
    if what != "nothing":
        thread.join()
    if failed:
        raise failed[0]
    return times


def _busy(arena: Arena, name: str, twin: ModuleType, store: Any, what: str) -> Callable[[], object]:
    if what == "a thread that commits":
        return lambda: arena.write(name, store)
    if what == "a thread that reads past days":
        past = itertools.cycle(arena.draws("node_as_of", "a past day", ASKED))

        def read() -> object:
            (id, valid, tx), _ = next(past)
            return twin.node_as_of(store, id, twin.at(valid), twin.at(tx))

        return read
    days = itertools.cycle(range(300, 1_000))
    return lambda: twin.ask(store, twin.at(START + next(days) * DAY))


def deep(arena: Arena) -> Iterator[Row]:
    """One node of 10,000 versions: told in one transaction, in single verbs, in a bulk load; and read."""
    most = 100 if arena.quick else 10_000
    few = max(most // 10, 2)
    twins = {name: arena.twins[name] for name in ("ours", "sqlite") if name in arena.twins}
    for work, told in (("one transaction", _told_at_once), ("single verbs", _told_one_by_one)):
        took, notes = {}, ""
        for name, twin in twins.items():
            took[name], done = told(arena, name, twin, most)
            if done < most:
                notes += f"; {name} given up after {done:,}"
        if work == "one transaction":
            took["floor"], _ = told(arena, "ours", twins["ours"], few)
            limit, floor_is = 12 * MICRO, f"the same of {few:,} versions"
        else:
            line = b"x" * 500
            took["floor"] = sorted(apart(arena.bare.append, [(line,)] * 100))[50]
            limit, floor_is = 1.4 * took["floor"], "write + fdatasync of 500 bytes"
        yield arena.row(f"a version of one node with {most:,}, told in {work}{notes}", took, limit, floor_is)
    load: dict[str, float] = {}
    lone = Arena(arena.size, one_node(most), arena.folder / "deep", twins, arena.quick)
    small = Arena(arena.size, one_node(few), arena.folder / "less_deep", {"ours": ours}, arena.quick)
    try:
        with at_most(4 * LIMIT):
            for name, one in (("ours", lone), ("floor", small)):
                one.load()
                load |= {
                    {"ours": name}.get(who, who): seconds[0] / one.data.versions.num_rows
                    for who, seconds in one.loaded.items()
                }
        work = f"a version of one node with {most:,}, told in a bulk load"
        yield arena.row(work, load, 11 * MICRO, f"the same of {few:,} versions")
        for when in WHEN[:2]:
            asked = lone.draws("node_as_of", when, ASKED, among=["deep"])
            row = lone.timed(f"node with {most:,} versions, {when}", "node_as_of", asked, tail=TAIL)
            row.budget = budget("node_as_of")
            yield row
    except TimeoutError:
        yield arena.row(
            f"a version of one node with {most:,}, told in a bulk load: given up",
            {"ours": 4 * LIMIT / most},
            11 * MICRO,
            "",
        )
    finally:
        lone.close()
        small.close()


def _told_at_once(arena: Arena, name: str, twin: ModuleType, most: int) -> tuple[float, int]:
    """Seconds a version, and how many were told before the time was up."""
    folder = arena.folder / f"deep_{name}_{most}"
    folder.mkdir()
    store, done = twin.create(folder), 0

    def tell() -> None:
        nonlocal done
        with twin.transaction(store):
            for _ in _versions(twin, store, most):
                done += 1

    try:
        with at_most(LIMIT):
            seconds, _ = once(tell)
    except TimeoutError:
        return LIMIT / max(done, 1), done
    twin.close(store)
    return seconds / done, done


def _told_one_by_one(arena: Arena, name: str, twin: ModuleType, most: int) -> tuple[float, int]:
    folder = arena.folder / f"verbs_{name}"
    folder.mkdir()
    store, done = twin.create(folder), 0
    start = perf_counter()
    for _ in _versions(twin, store, most):
        done += 1
        if perf_counter() - start > LIMIT:
            break
    seconds = perf_counter() - start
    twin.close(store)
    return seconds / done, done


def _versions(twin: ModuleType, store: Any, most: int) -> Iterator[None]:
    """Each version holds from a time of its own on, an hour after the one before."""
    twin.add_node(store, "deep", {"n": 0})
    yield
    now = (time.time_ns() // 1_000_000 + 3_600_000) * 1_000
    for number in range(1, most):
        twin.revise(store, "deep", {"n": number}, twin.at(now + number * 3_600_000_000))
        yield


def hubs(arena: Arena) -> Iterator[Row]:
    """One node that 10,000 refer to."""
    many = 100 if arena.quick else 10_000
    twins = {
        name: arena.twins[name] for name in ("ours", "sqlite", "tgms", "tiramemsu") if name in arena.twins
    }
    spokes = Arena(arena.size, hub(many), arena.folder / "hub", twins, arena.quick)
    spokes.load()
    for work, verb, among, limit in (
        (f"backlinks_to a hub of {many:,}", "backlinks_to", ["hub"], None),
        ("node(hub)", "node_as_of", ["hub"], budget("node_as_of")),
        ("links_from one that refers to it", "links_from", ["leaf7"], budget("links_from")),
    ):
        asked = spokes.draws(verb, "a past day", 20, among=among)
        yield spokes.timed(work, verb, asked, budget=limit, most=3 if verb == "backlinks_to" else 100)
    store = spokes.stores["ours"]
    bare = b"x" * 500
    linked = [(f"leaf{number}", "uses", "hub") for number in range(20)]
    took = {"ours": apart(store.link, linked), "floor": apart(spokes.bare.append, [(bare,)] * 20)}
    yield spokes.spread(
        spokes.row("one more link to the hub, fsynced", {}, None, "write + fdatasync of 500 bytes"),
        took,
        set(),
    )
    spokes.close()
