"""The read kernel answers what the Python way answers, or leaves it to that; it keeps nothing and breaks on nothing."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from graphstore.core.read import kernel
from tests.change.oracle import Oracle
from tests.change.programs import THINGS, Hours, draw, instants, tell_store
from tests.conftest import Clock, after
from tests.support import both_ways

pytestmark = pytest.mark.in_process("compares two ways to read one index")
built = pytest.mark.skipif(
    not both_ways.IS_BUILT, reason="there is no kernel here: python hatch_build.py builds it"
)

ROOT = Path(__file__).parents[3]
READS = (
    "node",
    "links_from",
    "backlinks_to",
    "inspect",
    "history",
    "what_superseded",
    "causes",
    "supersedes",
)


def read_all(store: GraphStore, ids: list[str], most: int = 5) -> Counter[str]:
    """Every read of every id at many coordinates, compared; how often the kernel answered."""
    with both_ways.compared() as answered:
        told = sorted({change.tx for change in store.changes()})
        for tx in (None, *told[:: max(1, len(told) // most)]):
            for valid in (None, *instants()):
                view = store.as_of(valid=valid, tx=tx)
                view.nodes()
                for id in ids:
                    for read in READS:
                        try:
                            getattr(view, read)(id)
                        except GraphStoreError:
                            continue
    return answered


@built
@pytest.mark.parametrize("seed", range(6))
def test_random_histories_read_the_same_both_ways(seed: int, tmp_path: Path) -> None:
    chance, hours = random.Random(seed), Hours()
    program = draw(chance, 24, Oracle(hours), hours)
    hours = Hours()
    with graphstore.open(":memory:" if seed % 2 else tmp_path / "memory.gs", clock=hours) as store:
        for step in program:
            hours.move()
            tell_store(store, step)
        answered = read_all(store, THINGS)
    assert all(answered[name] > 20 for name in both_ways.NAMES), answered
    if store.path:  # from a saved index, of which only what is touched is made
        with graphstore.open(tmp_path / "memory.gs", clock=hours) as store:
            assert read_all(store, THINGS) == answered


@pytest.fixture
def world(clock: Clock) -> GraphStore:
    """What is unusual, in memory."""
    store = graphstore.open(":memory:", clock=clock, author="ann")
    tell_world(store, clock)
    return store


def tell_world(store: GraphStore, clock: Clock) -> None:
    """What is unusual: keys, scopes, tags, sources, texts that are none, long ids, symmetric links, what was forgotten, undone or merged, deep histories."""
    store.add_node(
        "fact",
        {"says": " \t", "title": "\u3000", "name": "ünï 🦉"},
        id="blank",
        valid_from="0001-01-01",
        scope="a/b",
    )
    store.add_node(
        "fact", {"summary": 5, "text": ""}, id="no text", tags=("x", "y"), source="desk", trigger="import"
    )
    store.add_node("fact", {"deep": {"er": [1, None, 2.5]}}, id="given", text="given text", key="deploy day")
    store.add_node(
        "fact",
        {},
        id="\u00e9" * 300,
        valid_from="1969-12-31T23:59:59.999999Z",
        valid_to="9999-12-31T23:59:59.999998Z",
    )
    for id in ("old", "new", "base", "gone", "erased", "hub"):
        store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    clock.move(minutes=1)
    store.supersede("old", by="new", reason="it moved on", valid_from="2026-01-15")
    store.link("new", "derived_from", "base", strength=4, valid_from="2026-01-02", metadata={"page": 7})
    store.link("hub", "relates_to", "old", valid_from="2026-01-03")
    event = store.record_event("error", "it broke", id="broken").event
    store.link(event.id, "caused_by", "hub", confidence="inferred", reason="seen beside it")
    for number in range(60):
        clock.move(minutes=1)
        store.revise("hub", {"says": f"hub {number}"}, valid_from=after(30 * number))
        store.link("hub", "part_of", store.add_node("fact", {}, id=f"part {number}").id)
    clock.move(minutes=1)
    store.retract("base", reason="it was wrong")
    store.confirm("blank", reason="still so")


IDS = [
    "blank",
    "no text",
    "given",
    "\u00e9" * 300,
    "old",
    "new",
    "base",
    "gone",
    "erased",
    "hub",
    "broken",
    "part 3",
    "unknown",
    "hub-v3",
    "",
    "\ud800",
]


@built
def test_what_is_unusual_reads_the_same_both_ways(world: GraphStore, clock: Clock) -> None:
    with world:
        answered = read_all(world, IDS)
        assert all(answered[name] > 20 for name in both_ways.NAMES), answered
        world.erase("erased", reason="asked to")
        change = world.revise("given", {"says": "another"}).tx_from
        read_all(world, IDS[:9], most=2)
        world.undo(change, reason="not so")
        read_all(world, IDS[:9], most=2)
        with both_ways.compared(), world.transaction():
            world.add_node("fact", {"says": "pending"}, id="pending")
            world.link("pending", "derived_from", "new")
            assert world.node("pending").content == {"says": "pending"}
            assert [link.target for link in world.links_from("pending")] == ["new"]


@built
def test_it_answers_after_an_undo_in_the_same_order(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        for id in ("a", "b", "c"):
            store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
        first = store.link("a", "uses", "b", valid_from="2026-01-02")
        clock.move(minutes=1)
        second = store.link("a", "uses", "c", valid_from="2026-01-02")
        clock.move(minutes=1)
        store.unlink(first.id)
        store.undo(store.changes()[-1], reason="it is so")
        clock.move(minutes=1)
        revised = store.revise("a", {"says": "a slip"})
        store.undo(revised.tx_from, reason="a slip")
        with both_ways.compared() as answered:
            assert [first.id, second.id] == [link.id for link in store.links_from("a")]
            assert store.as_of(tx=revised.tx_from).node("a").content == {"says": "a slip"}
            assert (
                store.node("a").content == store.as_of(tx=second.tx_from).node("a").content == {"says": "a"}
            )
        assert answered["links_from"] == 1 and answered["node"] == 3


@built
def test_a_branch_reads_the_same_both_ways(world: GraphStore, clock: Clock) -> None:
    with world:
        branch = world.branch("try")
        clock.move(minutes=1)
        branch.revise("given", {"says": "on the branch"})
        world.revise("given", {"says": "on the trunk"})
        with both_ways.compared():
            assert branch.node("given").content != world.node("given").content
            world.merge("try", decide="branch")
            assert world.node("given").content == {"says": "on the branch"}
            assert branch.node("blank") == world.node("blank")


@built
def test_what_lies_in_the_file_of_a_saved_index_reads_the_same_both_ways(
    tmp_path: Path, clock: Clock
) -> None:
    with graphstore.open(tmp_path / "memory.gs", clock=clock, author="ann") as store:
        tell_world(store, clock)
        told = store.changes()[-1].tx
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        assert all(count > 20 for count in read_all(store, IDS).values())
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        clock.move(minutes=1)
        with pytest.raises(graphstore.NotFoundError), store.transaction():
            store.revise("given", {"says": "never"})
            store.link("given", "uses", "unknown")
        store.link("blank", "uses", "gone", valid_from="2026-01-05")
        store.revise("given", {"says": "another"})
        earlier = store.branch("earlier", tx=store.changes()[20].tx)
        read_all(store, IDS, most=2)
        earlier.add_node("fact", {"says": "on the branch"}, id="elsewhere")
        read_all(earlier, [*IDS, "elsewhere"], most=2)
        assert store.as_of(tx=told).node("given").content == {"deep": {"er": [1, None, 2.5]}}


@built
def test_a_closed_store_is_refused_alike(world: GraphStore) -> None:
    view = world.as_of()
    world.close()
    with pytest.raises(graphstore.InvalidError, match="closed"):
        view.node("new")


class _Id(str):
    __slots__ = ()


@built
def test_what_it_was_not_made_for_is_left_to_python(world: GraphStore) -> None:
    view = world.as_of()
    core, (valid, tx) = view._core, view._coordinate()
    sight = core.sight(valid, tx)
    ask: Any = kernel
    odd = (
        None,
        5,
        b"new",
        _Id("new"),
        "\ud800",
        "new\0",
        1.5,
        [],
        core,
        10**30,
        -1,
        -(1 << 63),
        1 << 62,
        "",
        "out",
    )
    with world:
        for one in odd:
            assert ask.node(core, one, valid, tx) is None
            assert (
                ask.links_from(core, one, valid, tx) is None
                and ask.backlinks_to(core, one, valid, tx) is None
            )
            if one is not core:
                assert ask.node(one, "new", valid, tx) is None
                assert ask.node_of(one, 0, "stands") is None and ask.link_of(one, 0) is None
            assert one == 1 << 62 or ask.node(core, "new", 1.5, one) is None
            if type(one) is not int or one < 0 or one > 1000:
                assert ask.node_of(sight, one, "stands") is None and ask.link_of(sight, one) is None
        for function in (ask.node, ask.links_from, ask.backlinks_to, ask.node_of, ask.link_of):
            assert function() is None and function(core) is None and function(*range(9)) is None


def _reads(world: GraphStore) -> Callable[[], None]:
    view = world.as_of()
    core, (valid, tx) = view._core, view._coordinate()
    sight = core.sight(valid, tx)
    ask: Any = kernel

    def read() -> None:
        for id in IDS:
            ask.node(core, id, valid, tx)
            ask.links_from(core, id, valid, tx)
            ask.backlinks_to(core, id, valid, tx)
        for row in (0, 3, 5, 10**9):
            ask.node_of(sight, row, "stands")
            ask.link_of(sight, row)

    return read


@built
def test_it_keeps_nothing_of_what_it_read(world: GraphStore) -> None:
    with world:
        read, index = _reads(world), world._core.index
        watched = [
            *vars(index).values(),
            *index.names,
            *index.kind[:1],
            None,
            (),
            world._core,
            world._core.journal,
            graphstore.Node,
            graphstore.Link,
        ]
        for _ in range(50):
            read()
        gc.collect()
        counts = [sys.getrefcount(one) for one in watched]
        objects = len(gc.get_objects())
        tracemalloc.start()
        for _ in range(10):
            read()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            read()
        gc.collect()
        assert (
            tracemalloc.get_traced_memory()[0] - before < 60_000
        )  # of thirty thousand reads: free lists, spans kept ahead
        tracemalloc.stop()
        assert len(gc.get_objects()) - objects < 150  # one each time would be 300; other tests leave some
        off = [(one, sys.getrefcount(one) - count) for one, count in zip(watched, counts, strict=True)]
        assert not [each for each in off if abs(each[1]) > 50]


@built
def test_a_read_calls_as_little_python_whatever_the_size(clock: Clock) -> None:
    def calls(size: int) -> list[int]:
        with graphstore.open(":memory:", clock=clock) as store:
            for number in range(size):
                store.add_node("fact", {"says": "one of many"}, id=f"n{number}")
            store.link("n0", "part_of", "n1", reason="it is")
            view, count = store.as_of(), [0, 0]
            for place, read in enumerate((view.node, view.links_from)):
                read("n0")

                def counted(frame: Any, event: str, _: Any, place: int = place) -> None:
                    count[place] += event == "call"

                sys.setprofile(counted)
                read("n0")
                sys.setprofile(None)
            return count

    few = calls(2)
    assert few == calls(200)
    assert max(few) <= 6


@built
def test_readers_beside_a_writer_get_whole_answers(world: GraphStore) -> None:
    stop, wrong = threading.Event(), list[str]()

    def read() -> None:
        while not stop.is_set():
            view = world.as_of()
            node, links = view.node("given"), view.links_from("given")
            if node != view.node("given") or node.text != f"given {node.content['n']}" or len(links) > 40:
                wrong.append(repr(node))

    with world:
        world.revise("given", {"n": -1}, text="given -1")
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(40):
            world.revise("given", {"n": number}, text=f"given {number}")
            world.link("given", "part_of", f"part {number}")
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


# ---------------------------------------------------------------------- building


def test_it_compiles_without_a_warning(tmp_path: Path) -> None:
    assert _compiled(tmp_path, "-Wall", "-Wextra", "-Werror", "-Wshadow", "-std=c11").exists()


def test_it_is_small() -> None:
    lines = (ROOT / "graphstore" / "core" / "read" / "_kernel.c").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 500


@pytest.mark.rest
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """These tests again, with the kernel under the sanitizers of addresses and of undefined behaviour."""
    found = _compiled(tmp_path, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    library = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("there is no libasan here")
    more = {
        "LD_PRELOAD": str(Path(library).resolve()),
        "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
        "PYTHONMALLOC": "malloc",
        "KERNEL": str(found),
    }
    _run(
        [
            "-m",
            "tests.support.other_kernel",
            str(Path(__file__)),
            "-m",
            "not rest",
            "-k",
            "same or left or writer",
        ],
        more,
    )


@pytest.mark.rest
def test_without_it_all_reads_answer_as_with_it() -> None:
    said = _run(
        ["-c", "from graphstore.core.read import kernel; print(kernel.node)"], {"GRAPHSTORE_PURE": "1"}
    )
    assert said.strip() == "None"
    tests = ["tests/stories/test_api.py", "tests/core/read"]
    _run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not rest", *tests], {"GRAPHSTORE_PURE": "1"})


def _compiled(folder: Path, *flags: str) -> Path:
    import hatch_build

    target = folder / hatch_build.BUILT.name
    if not both_ways.IS_BUILT and not hatch_build.compile_into(target):
        pytest.skip("there is no compiler here")
    assert hatch_build.compile_into(target, *flags)
    return target


def _run(arguments: list[str], more: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
