"""The status of an event follows from the times at which things happened, whatever the order in which they were recorded (I13)."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import Any

import pytest

import graphstore
from graphstore import NotFoundError
from tests.change.oracle import Oracle
from tests.change.programs import DAYS, SEEDS, Hours

pytestmark = pytest.mark.in_process("holds many stores of its own beside the oracle")


def status(store: Any, at: Any) -> str | None:
    try:
        return str(store.as_of(valid=at).event("outage").status)
    except NotFoundError:
        return None


def recorded(told: Any) -> dict[Any, str | None]:
    """The status at every instant after these were recorded in this order: the first occurrence by its id, a fix with what it fixes."""
    hours = Hours()
    with graphstore.open(":memory:", clock=hours) as store:
        for kind, at in told:
            hours.move()
            if kind == "error":
                if store.stats()["events"] and "outage" in [event.id for event in store.events()]:
                    store.record_event("error", "it is down", occurred_at=at)
                else:
                    store.record_event("error", "it is down", id="outage", occurred_at=at)
            else:
                store.record_event("fix", kind, id=kind, occurred_at=at, related_to="outage")
        moments = sorted({*DAYS, *(day + timedelta(hours=6) for day in DAYS)})
        return {at: status(store, at) for at in moments}


@pytest.mark.parametrize("seed", SEEDS)
def test_permutations_of_one_world_have_one_status(seed: int) -> None:
    chance = random.Random(seed)
    errors = [("error", at) for at in chance.sample(DAYS[:7], chance.randint(1, 3))]
    fixes = [(f"fix-{n}", chance.choice(DAYS)) for n in range(chance.randint(1, 2))]
    found = []
    for order in itertools.permutations([*errors, *fixes]):
        if order[0][0] != "error":
            continue  # what a fix is related to has to be known
        if found and chance.random() < 0.6:
            continue
        found.append(recorded(order))
    happened, mended = [at for _, at in errors], [at for _, at in fixes]
    for at, word in found[0].items():
        past = [one for one in happened if one <= at]
        expected = None
        if past:
            expected = "resolved" if any(max(past) <= fix <= at for fix in mended) else "active"
        assert expected == word, at
    assert all(one == found[0] for one in found)


def test_a_fix_that_was_retracted_resolves_nothing() -> None:
    hours = Hours()
    oracle = Oracle(hours)
    with graphstore.open(":memory:", clock=hours) as store:
        for id, type, day, more in (
            ("outage", "error", 0, {}),
            ("restart", "fix", 2, {"related_to": "outage"}),
        ):
            store.record_event(type, id, id=id, occurred_at=DAYS[day], **more)
            oracle.record_event(id, type, id, occurred_at=DAYS[day], **more)
            hours.move()
        assert "resolved" == status(store, DAYS[3]) == oracle.status("outage", DAYS[3], oracle.now)
        store.retract("restart", reason="it was another host")
        oracle.retract("restart")
        assert "active" == status(store, DAYS[3]) == oracle.status("outage", DAYS[3], oracle.now)
