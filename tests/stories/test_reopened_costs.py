"""What reads and verbs cost on a store that lies in files and was opened: no more with more beside them, those that are refused among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, NotFoundError
from tests.conftest import Clock, after
from tests.stories.test_costs import FEW, FLAT, FLAT_READS, LINEAR, MANY, crowd
from tests.stories.test_write_costs import FLAT_VERBS
from tests.support.steps import steps

pytestmark = pytest.mark.in_process("counts the steps inside this process")

Stores = dict[int, GraphStore]


@pytest.fixture(scope="module")
def reopened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    stores = {}
    for size in (FEW, MANY):
        path = tmp_path_factory.mktemp("reopened") / f"{size}.gs"
        crowd(size, path).close()
        clock = Clock()
        clock.move(days=3)
        stores[size] = graphstore.open(path, clock=clock)
    yield stores
    for store in stores.values():
        store.close()


def growth(stores: Stores, call: Callable[[GraphStore], object], *, first: bool = False) -> float:
    """How many times the steps of a call grow from the small store to the large one. `first`: it has not been called in this process."""
    counted = []
    for size in (FEW, MANY):
        if not first:
            call(stores[size])
        counted.append(steps(lambda store=stores[size]: call(store)))  # type: ignore[misc]
    return counted[1] / counted[0]


def named(case: tuple[object, str, object]) -> str:
    return case[1]


READS = [case for case in FLAT_READS if case[0] is crowd]
VERBS = [
    case
    for case in FLAT_VERBS
    if case[0] is crowd and case[1] not in ("set_retention", "evict_old")  # the store is one for all tests
]


@pytest.mark.parametrize("read", READS, ids=named)
def test_a_read_costs_the_same_however_much_there_is_beside_its_answer(reopened: Stores, read) -> None:
    assert growth(reopened, lambda store: read[2](store, store.as_of())) < FLAT


@pytest.mark.parametrize("verb", VERBS, ids=named)
def test_a_verb_costs_the_same_however_much_there_is_beside_it(reopened: Stores, verb) -> None:
    count = iter(range(99))
    assert growth(reopened, lambda store: verb[2](store, f"new_{next(count)}_{VERBS.index(verb)}")) < FLAT


def _failed(store: GraphStore) -> None:
    with store.transaction():
        store.add_node("fact", {}, id="never")
        store.link("never", "uses", "c3")
        store.revise("c5", {"n": "never"}, valid_from=after(7))
        store.link("never", "uses", "nowhere")


REFUSED: list[tuple[type[Exception], str, Callable[[GraphStore], object]]] = [
    (InvalidError, "revise with no object", lambda store: store.revise("c5", "no object")),  # type: ignore[arg-type]
    (NotFoundError, "revise what is not known", lambda store: store.revise("nothing", {})),
    (NotFoundError, "link to what is not known", lambda store: store.link("c5", "uses", "nowhere")),
    (ConflictError, "add what is there", lambda store: store.add_node("fact", {}, id="c5")),
    (NotFoundError, "a transaction", _failed),
]


@pytest.mark.parametrize("refused", REFUSED, ids=named)
def test_what_is_refused_costs_the_same_however_much_there_is(reopened: Stores, refused) -> None:
    kind, _, call = refused

    def refuse(store: GraphStore) -> None:
        with pytest.raises(kind) as error:
            call(store)
        assert str(error.value)

    assert growth(reopened, refuse) < FLAT


@pytest.mark.parametrize("read", ["operations", "whole_id"])
def test_what_is_made_at_the_first_call_grows_with_the_store_and_no_faster(tmp_path: Path, read: str) -> None:
    stores = {}
    for size in (FEW, MANY):
        crowd(size, tmp_path / f"{size}.gs").close()
        stores[size] = graphstore.open(tmp_path / f"{size}.gs")
        stores[size].inspect("c7")
    assert growth(stores, lambda store: getattr(store, read)("c5"), first=True) < LINEAR * MANY / FEW
    for store in stores.values():
        store.close()
