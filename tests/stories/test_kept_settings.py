"""What the store keeps of how it is to behave: the last of a name counts, on whatever way the index came to be as it is."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphstore import GraphStore
from graphstore.memory import Memory
from graphstore.values.layers import Layer
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("writes settings underneath the public verbs")


def test_the_last_value_of_a_name_counts(store: GraphStore) -> None:
    store.set_trust({"user": 1})
    store.snapshot("one")
    store.set_trust({"user": 2})

    assert {"user": 2} == store._core.setting("trust")


def test_a_verb_and_a_block_that_fail_leave_the_value_before(store: GraphStore) -> None:
    store.set_trust({"user": 1})
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.set_trust({"user": 2})
        store.snapshot("two")
        assert {"user": 2} == store._core.setting("trust")
        _ = 1 / 0
    assert {"user": 1} == store._core.setting("trust")

    with store.transaction():
        store.set_trust({"user": 3})
        with pytest.raises(ZeroDivisionError), store.verb():
            store.keep_setting("set_trust", "trust", {"user": 4})
            _ = 1 / 0
        assert {"user": 3} == store._core.setting("trust")
    assert {"user": 3} == store._core.setting("trust")


def test_a_branch_keeps_what_was_kept_where_it_began(store: GraphStore, clock: Clock) -> None:
    Memory(store, cap=10)
    clock.move(days=1)
    fork = clock.now
    clock.move(days=1)
    Memory(store, cap=20)
    branch = store.branch("x", tx=fork)
    assert (10, 20) == (Memory(branch).cap, Memory(store).cap)

    Memory(branch, layers=[Layer("notes", "notes:")])
    assert ("notes" in Memory(branch).layers, "notes" in Memory(store).layers) == (True, False)


def test_a_thread_that_looks_while_blocks_fail_finds_one_value_or_the_other(store: GraphStore) -> None:
    memory, seen = Memory(store), set[int]()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(memory.cap)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for _ in range(200):
            with pytest.raises(ZeroDivisionError), store.transaction():
                Memory(store, cap=3)
                _ = 1 / 0
        done.set()
        looking.result()
    assert seen <= {50_000, 3}
    assert 50_000 == memory.cap


def test_layers_that_threads_define_at_once_are_all_kept(store: GraphStore) -> None:
    memory, names = Memory(store), [f"n{number}" for number in range(60)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: memory.define_layer(Layer(name, f"{name}:")), names))

    assert set(names) <= memory.layers.keys()
