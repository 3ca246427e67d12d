"""Grounds of one thing: what makes it shaky is what the list of everything shaky says of it."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import graphstore
from graphstore import GraphStoreError
from tests.change.oracle import Oracle
from tests.change.programs import SEEDS, THINGS, Hours, draw, grouped, groupings, instants, tell_store

pytestmark = pytest.mark.in_process("holds many stores of its own")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_makes_one_thing_shaky_is_as_in_the_list_of_all(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    program = draw(chance, 24, Oracle(hours), hours)
    for sizes in groupings(chance, len(program), 3):
        clock = Hours()
        with graphstore.open(":memory:", clock=clock) as store:
            for group in grouped(program, sizes):
                clock.move()
                with suppress(GraphStoreError), store.transaction():
                    for step in group:
                        with suppress(GraphStoreError, StopIteration):
                            tell_store(store, step)
            for valid in instants():
                view = store.as_of(valid=valid)
                shaky = {one.node.id: one for one in view.shaky()}
                for id in THINGS:
                    with suppress(graphstore.NotFoundError):
                        found = view.grounds(id)
                        assert shaky.get(id) == found.shaky, (id, valid)
                        assert found.stand == sum(one.stands for one in found.foundations)
