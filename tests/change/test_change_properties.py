"""The rules of change, tried on random worlds: grouping, undo and merging change no word (I13, I14).

Each world is a program of `programs.py`: verbs that the oracle takes, with every time said.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, GraphStore, NotFoundError
from tests.change.oracle import RESTING, UPRIGHT, Oracle, Refused, Undecided
from tests.change.programs import (
    DAYS,
    SEEDS,
    THINGS,
    Hours,
    Step,
    draw,
    grouped,
    groupings,
    instants,
    tell,
    tell_store,
    vanishes,
)

pytestmark = pytest.mark.in_process("holds many stores of its own beside the oracle")

Words = dict[tuple[datetime, str], str]


def words(view_of: Any, ids: Iterable[str]) -> Words:
    """How each id that is known stands, at each instant that matters."""
    found = {}
    for v in instants():
        view = view_of.as_of(valid=v)
        for id in ids:
            try:
                found[v, id] = str(view.inspect(id).node.standing)
            except NotFoundError:
                continue
    return found


def expected_words(oracle: Oracle) -> Words:
    return {(v, id): word for v in instants() for id, word in oracle.words(v, oracle.now).items()}


def told_in_groups(program: list[Step], sizes: list[int]) -> tuple[GraphStore, Hours]:
    hours = Hours()
    store = graphstore.open(":memory:", clock=hours)
    for group in grouped(program, sizes):
        hours.move()
        with store.transaction():
            for step in group:
                tell_store(store, step)
    return store, hours


@pytest.mark.parametrize("seed", SEEDS)
def test_ten_groupings_of_one_world_have_one_set_of_standings(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    oracle = Oracle(hours)
    program = draw(chance, 24, oracle, hours)
    expected = expected_words(oracle)
    for sizes in groupings(chance, len(program), 10):
        if vanishes(program, sizes):
            continue
        store, _ = told_in_groups(program, sizes)
        with store:
            assert expected == words(store, THINGS), sizes


# ---------------------------------------------------------------------- undo

SYSTEM_TIME = {"tx_from", "tx_to"}
READS = (
    "node",
    "event",
    "history",
    "links_from",
    "backlinks_to",
    "what_superseded",
    "supersedes",
    "causes",
    "effects",
)


def answers(store: GraphStore, ids: Iterable[str], tx: datetime | None = None) -> dict[tuple[Any, ...], Any]:
    """Every read at every instant that matters, without the columns that say when the store was told."""
    found: dict[tuple[Any, ...], Any] = {}
    for v in instants():
        view = store.as_of(valid=v, tx=tx)
        found[v, "nodes"] = timeless(view.nodes())
        found[v, "events"] = timeless(view.events())
        found[v, "shaky"] = timeless(sorted(view.shaky(), key=lambda found: found.node.id))
        for id in ids:
            for read in READS:
                try:
                    found[v, read, id] = timeless(getattr(view, read)(id))
                except graphstore.GraphStoreError as error:
                    found[v, read, id] = type(error).__name__
            found[v, "inspect", id] = timeless(view.inspect(id))
    return found


def timeless(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in SYSTEM_TIME}
    if isinstance(value, (list, tuple)):
        return [timeless(one) for one in value]
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_undo_of_the_last_transaction_gives_every_read_its_answer_back(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    oracle = Oracle(hours)
    program = draw(chance, chance.randint(3, 12), oracle, hours)
    store, hours = told_in_groups(program, [1] * len(program))
    with store:
        known = [id for id in THINGS if id in oracle.nodes or id in oracle.events]
        before, told = answers(store, known), store.as_of().at.tx
        past = answers(store, known, told)
        copied = oracle.fork()
        copied.clock = hours
        slip = draw(chance, chance.randint(1, 4), copied, Hours())
        hours.move()
        with store.transaction():
            for step in slip:
                tell_store(store, step)
        changes = store.changes()
        if not changes or changes[-1].tx <= told:
            return  # nothing was written
        done = changes[-1].tx
        between = answers(store, known)
        hours.move()
        store.undo(done, reason="a slip")

        assert before == answers(store, known)
        assert past == answers(store, known, told)
        new = [id for id in THINGS if id not in known]
        assert set(words(store, new).values()) <= {"retracted"}
        assert "undo" == store.changes()[-1].verb
        hours.move()
        store.undo(store.changes()[-1].tx, reason="it was none")
        assert between == answers(store, known)
        assert store.verify().ok, store.verify().problems


def test_what_was_built_on_a_transaction_hinders_its_undo() -> None:
    hours = Hours()
    with graphstore.open(":memory:", clock=hours) as store:
        store.add_node("fact", {"says": "we deploy on Mondays"}, id="mondays", valid_from=DAYS[0])
        told = store.changes()[-1].tx
        hours.move()
        store.add_node(
            "fact", {"says": "Mondays are slow"}, id="slow", derived_from="mondays", valid_from=DAYS[0]
        )
        before = store.stats()

        with pytest.raises(ConflictError, match="slow"):
            store.undo(told, reason="a slip")
        assert before == store.stats()
        hours.move()
        store.undo(store.changes()[-1].tx, reason="first that")
        hours.move()
        store.undo(told, reason="then this")
        assert [] == store.nodes()


# ---------------------------------------------------------------------- merging


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_merge_without_conflict_every_word_is_what_the_branch_said(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    trunk = Oracle(hours)
    base = draw(chance, 10, trunk, hours)
    branch = trunk.fork()
    there = draw(chance, 12, branch, hours)
    here = draw(chance, 6, trunk, hours, with_names="other-")
    store, clock = told_in_groups(base, [1] * len(base))
    with store:
        line = store.branch("plan")
        for target, steps in ((line, there), (store, here)):
            for step in steps:
                clock.move()
                tell_store(target, step)
        others = [f"other-{id}" for id in THINGS]
        said = words(line, THINGS) | words(store, others)
        clock.move()
        done = store.merge("plan")

        assert () == done.conflicts
        found = words(store, [*THINGS, *others])
        for key, word in said.items():
            # what came and went on the branch, and no link names, does not come
            assert found.get(key, word) == word and (key in found or word not in UPRIGHT), key
        assert set(found) <= set(said)
        assert store.verify().ok, store.verify().problems


@pytest.mark.parametrize("seed", SEEDS)
def test_a_recheck_that_comes_with_a_merge_covers_what_its_branch_contained(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    trunk = Oracle(hours)
    base = draw(chance, 14, trunk, hours)
    for _ in range(12):  # where both sides do something to one thing, another rule decides
        mine, branch, since = trunk.fork(), trunk.fork(), trunk.last
        there = draw(chance, chance.randint(0, 2), branch, hours)
        here = draw(chance, chance.randint(0, 2), mine, hours)
        resting = [one for one in trunk._now_links() if one["kind"] in RESTING]
        rests, on = chance.choice([(one["source"], one["target"]) for one in resting] or [THINGS[:2]])
        last = (there, branch, Step("confirm", (rests,), {})), (here, mine, Step("retract", (on,), {}))
        hours.move()
        try:
            for steps, oracle, step in last:
                tell(oracle, step)
                steps.append(step)
            mine.merge(branch, since)
        except (Refused, Undecided):
            continue
        break
    else:
        return
    store, clock = told_in_groups(base, [1] * len(base))
    with store:
        line = store.branch("plan")
        sides = [(line, step) for step in there] + [(store, step) for step in here]
        if chance.random() < 0.5:
            sides = sides[len(there) :] + sides[: len(there)]
        for target, step in sides:
            clock.move()
            tell_store(target, step)
        clock.move()
        assert () == store.merge("plan").conflicts
        assert expected_words(mine) == words(store, THINGS)
        assert store.verify().ok, store.verify().problems


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_asks_where_both_sides_changed_what_holds_or_why_it_does_not(seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    trunk = Oracle(hours)
    base = draw(chance, 10, trunk, hours)
    branch, since = trunk.fork(), trunk.last
    there = draw(chance, 4, branch, hours)
    here = draw(chance, 4, trunk, hours)
    store, clock = told_in_groups(base, [1] * len(base))
    shared = [id for id in THINGS if any(id == step.args[0] for step in base if step.verb == "add")]
    with store:
        line = store.branch("plan")
        for target, steps in ((line, there), (store, here)):
            for step in steps:
                clock.move()
                tell_store(target, step)
        told = {
            side: {(v, id): says(view, v, id) for v in instants() for id in shared}
            for side, view in (("trunk", store), ("branch", line))
        }
        clock.move()
        done = store.merge("plan")
        asked = disputes(done.conflicts, shared, "node")
        assert {(v, id) for v in instants() for id in shared if trunk.disputed(branch, id, v, since)} == asked
        if not done.merged:
            decide = chance.choice(["trunk", "branch"])
            done = store.merge("plan", decide=lambda found: decide if decide in found.choices else "trunk")
            moved: set[str | None] = {found.id for found in done.conflicts if found.what != "node"}
            moved |= {found.other for found in done.conflicts if found.what == "slot"}
            for v, id in asked:
                if id not in moved:
                    assert told[decide][v, id] == says(store, v, id), (v, id, decide)
        assert store.verify().ok, store.verify().problems


def disputes(conflicts: Iterable[Any], ids: Iterable[str], what: str) -> set[tuple[datetime, str]]:
    """At which instants that matter which ids are in conflict."""
    known = set(ids)
    return {
        (v, found.id)
        for found in conflicts
        if found.what == what and found.id in known
        for v in instants()
        if found.valid_from <= v and (found.valid_to is None or v < found.valid_to)
    }


def says(view_of: Any, v: datetime, id: str) -> Any:
    """What holds of a node, None where nothing does."""
    try:
        return view_of.as_of(valid=v).node(id).content
    except NotFoundError:
        return None


def test_a_retraction_arrives_with_its_reason() -> None:
    hours = Hours()
    with graphstore.open(":memory:", clock=hours) as store:
        store.add_node("fact", {"says": "the cache is warm"}, id="warm", valid_from=DAYS[0])
        hours.move()
        line = store.branch("plan")
        hours.move()
        line.retract("warm", reason="measured: it is cold")
        hours.move()
        store.merge("plan")

        assert "retracted" == store.inspect("warm").node.standing
        (step,) = store.what_superseded("warm").chain
        assert ("retracted", "measured: it is cold") == (step.how, step.why)
        assert "retract" in [one.verb for one in store.operations("warm")]
