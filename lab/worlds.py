"""Compares a store with the oracle of the rules under change on random worlds: `python -m lab worlds --answers 5000000`.

A world is a random program of plans, slots, links, corrections, confirmations and retractions. The store and the oracle take the same steps at the same instants;
then each must say alike how each thing stands, at each valid instant at which anything can change and at each transaction.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import graphstore
from graphstore import NotFoundError
from tests.change.oracle import Oracle
from tests.change.programs import DAYS, THINGS, TOLD, Hours, draw, instants, tell, tell_store

_SHOWN = 5
BEGINNINGS = (TOLD, DAYS[0] - timedelta(days=20), DAYS[2])
"""When a world begins to be told: after all of its times, before them, so that all is planned, or among them."""
Difference = tuple[datetime, datetime, str, str | None, str | None]


def differences(seed: int, steps: int, counts: Counter[str]) -> Iterator[Difference]:
    """Yield where the store and the oracle differ on the world of a seed: tx, valid time, thing, and the standing that each says."""
    hours, clock = Hours(), Hours()
    hours.now = clock.now = BEGINNINGS[seed % len(BEGINNINGS)]
    program = draw(random.Random(seed), steps, Oracle(hours), hours)
    oracle = Oracle(clock)
    with graphstore.open(":memory:", clock=clock) as store:
        told = []
        for step in program:
            clock.move()
            tell(oracle, step)
            tell_store(store, step)
            told.append(store.changes()[-1].tx)
        for tx in dict.fromkeys(told):
            for valid in instants():
                expected, view = oracle.words(valid, tx), store.as_of(valid=valid, tx=tx)
                for id in THINGS:
                    found = standing(view, id)
                    counts["answers"] += 1
                    counts[f"are {found}"] += 1
                    if found != expected.get(id):
                        yield tx, valid, id, expected.get(id), found
    counts["worlds"] += 1


def standing(view: graphstore.View, id: str) -> str | None:
    """Return how a thing stands, None where it is not known."""
    try:
        return view.inspect(id).node.standing
    except NotFoundError:
        return None


def main(arguments: list[str]) -> int:
    """Compare until there are enough answers. Returns 1 when any differ."""
    said = argparse.ArgumentParser(prog="python -m lab worlds", description=__doc__)
    said.add_argument("--answers", type=int, default=100_000)
    said.add_argument("--first", type=int, default=0, help="the first seed")
    said.add_argument("--steps", type=int, default=24, help="of a world")
    told = said.parse_args(arguments)
    counts: Counter[str] = Counter()
    seed, differing = told.first, 0
    while counts["answers"] < told.answers:
        found = list(differences(seed, told.steps, counts))
        differing += len(found)
        for tx, valid, id, expected, got in found[:_SHOWN]:
            print(
                f"FOUND by --first {seed}: {id} at valid {valid}, tx {tx}: {expected} by the rules, {got} by the store",
                flush=True,
            )
        seed += 1
    print(f"{differing} answers differ. " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return int(bool(differing))
