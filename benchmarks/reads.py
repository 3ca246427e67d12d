"""Measure point reads of each shape, by coordinate (now, a past day, any) and by access (first touch, repeated, after a write each)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks import data as history
from benchmarks import ours
from benchmarks.arena import Arena, Limit, Row
from benchmarks.data import SHAPES, WHEN
from benchmarks.promises import DEEP, HOPS, NODE
from benchmarks.shared import CUT, DAY, START
from benchmarks.timing import apart

READS = {  # of each verb its name, its promise, and how many times SQLite's read it is to take at most
    "node_as_of": ("node", NODE, 1.6),
    "links_from": ("links_from", HOPS, 1.6),
    "backlinks_to": ("backlinks_to", HOPS, 1.6),
    "what_superseded": ("what_superseded of 5", HOPS, 1.8),
    "causes": ("causes of 3", HOPS, 1.8),
}
TAIL = 2.5
"""99 of 100 reads of a node take at most so many times what 99 of 100 of SQLite's take."""


def node(arena: Arena) -> Iterator[Row]:
    yield from _reads(arena, "node_as_of")
    asked = arena.draws("node_as_of", "any coordinate", arena.asked, standing=False)
    yield arena.timed("no node: one that does not stand, any coordinate", "node_as_of", asked)


def hops(arena: Arena) -> Iterator[Row]:
    for verb in ("links_from", "backlinks_to"):
        yield from _reads(arena, verb)


def chains(arena: Arena) -> Iterator[Row]:
    for verb in ("what_superseded", "causes"):
        yield from _reads(arena, verb)


def _reads(arena: Arena, verb: str) -> Iterator[Row]:
    """Yield a row for each shape, coordinate and access. A run of a million versions or more has its history only."""
    name, promise, most = READS[verb]
    limits = (Limit(most, "sqlite"), *([Limit(TAIL, "sqlite", tail=True)] if verb == "node_as_of" else []))
    for shape in SHAPES if arena.versions < 1_000_000 else ["history"]:
        held = arena.shape(shape)
        asked = {f"{name}, {shape}, {when}": held.draws(verb, when, arena.asked) for when in WHEN}
        yield from held.first_touch(
            verb, {f"{work}, first touch": some for work, some in asked.items()}, limits, promise
        )
        for (work, some), after in itertools.product(asked.items(), (False, True)):
            work = f"{work}, {'after a write each' if after else 'repeated'}"
            yield held.timed(work, verb, some, limits=limits, promise=promise, after_a_write=after)


def beside(arena: Arena) -> Iterator[Row]:
    """A node at any coordinate while another thread is busy. SQLite has a connection for each thread."""
    asked = arena.draws("node_as_of", "any coordinate", arena.asked)
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
        yield arena.spread(arena.row(f"node, any coordinate, beside {what}", {}), times, wrong)


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
        past = itertools.cycle(arena.draws("node_as_of", "a past day", arena.asked))

        def read() -> object:
            (id, valid, tx), _ = next(past)
            return twin.node_as_of(store, id, twin.at(valid), twin.at(tx))

        return read
    days = itertools.cycle(range(300, 1_000))
    return lambda: twin.ask(store, twin.at(START + next(days) * DAY))


def deep(arena: Arena) -> Iterator[Row]:
    """Compare a node with a deep past, and one with many past links, with one that has ten."""
    many = arena.scaled(10_000)
    twins = {name: arena.twins[name] for name in ("ours", "sqlite") if name in arena.twins}
    limits = (Limit(3, "floor"), Limit(5, "floor", tail=True))
    for how in ("appended", "repeated"):
        lone = Arena(arena.size, history.deep(many, how), arena.folder / f"deep_{how}", twins)
        lone.load()
        store = lone.stores["ours"]
        for verb, among, other, what in (
            ("node_as_of", "deep", "shallow", f"node with {many:,} versions, {how}"),
            ("links_from", "many", "few", f"links_from one with {many:,} links, of which three hold"),
        ):
            if verb == "links_from" and how == "repeated":
                continue  # the links are the same
            for when in WHEN:
                asked = lone.draws(verb, when, arena.asked, among=[among])
                small = itertools.cycle(lone.draws(verb, when, arena.asked, among=[other]))
                act = getattr(ours, verb)

                def floor(_: Any, act: Any = act, small: Any = small, store: Any = store) -> None:
                    (id, valid, tx), _right = next(small)
                    act(store, id, ours.at(valid), ours.at(tx))

                yield lone.timed(
                    f"{what}, {when}",
                    verb,
                    asked,
                    limits=limits,
                    promise=DEEP,
                    floor=floor,
                    floor_is="the same read of ten",
                )
        calls = [({"n": number}, ours.at(CUT + number * DAY)) for number in range(20)]
        took = {
            name: apart(partial(ours.revise, store, id), calls)
            for name, id in (("ours", "deep"), ("floor", "shallow"))
        }
        row = lone.row(f"revise of a node with {many:,} versions, {how}", {}, None, "revise of one with ten")
        yield lone.spread(row, took, set())
        lone.close()


def hubs(arena: Arena) -> Iterator[Row]:
    """One node that 10,000 refer to."""
    many = arena.scaled(10_000)
    twins = {
        name: arena.twins[name] for name in ("ours", "sqlite", "tgms", "tiramemsu") if name in arena.twins
    }
    spokes = Arena(arena.size, history.hub(many), arena.folder / "hub", twins)
    spokes.load()
    for work, verb, among in (
        (f"backlinks_to a hub of {many:,}", "backlinks_to", ["hub"]),
        ("node(hub)", "node_as_of", ["hub"]),
        ("links_from one that refers to it", "links_from", ["leaf7"]),
    ):
        asked = spokes.draws(verb, "a past day", 20, among=among)
        yield spokes.timed(work, verb, asked, most=3 if verb == "backlinks_to" else 100)
    linked = [(f"leaf{number}", "uses", "hub") for number in range(20)]
    took = {
        "ours": apart(spokes.stores["ours"].link, linked),
        "floor": apart(spokes.bare.append, [(b"x" * 500,)] * 20),
    }
    row = spokes.row("one more link to the hub, fsynced", {}, None, "write + fdatasync of 500 bytes")
    yield spokes.spread(row, took, set())
    spokes.close()
