"""The oracle keeps by itself what it asks of the store: grouping, undo and merging change no word."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from tests.change.oracle import UPRIGHT, Oracle
from tests.change.programs import DAYS, Hours, draw, grouped, groupings, instants, tell, vanishes

WORLDS = 60


def words(oracle: Oracle) -> dict[tuple[datetime, str], str]:
    return {(v, id): word for v in instants() for id, word in oracle.words(v, oracle.now).items()}


def says(oracle: Oracle) -> dict[tuple[datetime, str], Any]:
    """What each node says, and what each link does, whatever they are numbered."""
    nodes = {
        (v, node["id"]): (node["content"], node["standing"], node["recorded_at"])
        for v in instants()
        for node in oracle.nodes_at(v, oracle.now)
    }
    links = {
        (v, link["source"] + link["kind"] + link["target"]): (
            link["source_standing"],
            link["target_standing"],
        )
        for v in instants()
        for link in oracle._links(v, oracle.now)
    }
    return nodes | links


def test_words_are_the_same_in_every_grouping() -> None:
    compared = shaky = 0
    for seed in range(WORLDS):
        chance, hours = random.Random(seed), Hours()
        one_by_one = Oracle(hours)
        program = draw(chance, 24, one_by_one, hours)
        expected = words(one_by_one)
        shaky += "shaky" in expected.values()
        for sizes in groupings(chance, len(program), 6):
            if vanishes(program, sizes):
                continue
            clock = Hours()
            oracle = Oracle(clock)
            for group in grouped(program, sizes):
                clock.move()
                with oracle.transaction():
                    for step in group:
                        tell(oracle, step)
            assert expected == words(oracle), (seed, sizes, program)
            compared += 1
    assert compared > 3 * WORLDS
    assert shaky > WORLDS / 4


def test_undo_gives_every_answer_back() -> None:
    undone = 0
    for seed in range(WORLDS):
        chance, hours = random.Random(seed), Hours()
        oracle = Oracle(hours)
        draw(chance, chance.randint(3, 14), oracle, hours)
        before, known, tx = says(oracle), set(oracle.words(DAYS[0], oracle.now)), oracle.now
        past = {v: oracle.words(v, tx) for v in DAYS}
        hours.move()
        with oracle.transaction():
            for step in draw_in_block(chance, oracle):
                tell(oracle, step)
        if oracle.last == tx:
            continue
        last = oracle.last
        between = says(oracle)
        hours.move()
        oracle.undo(last)
        after = {key: value for key, value in says(oracle).items() if isinstance(key, tuple)}
        assert before == after, seed
        assert {v: oracle.words(v, tx) for v in DAYS} == past
        for id in set(oracle.words(DAYS[0], oracle.now)) - known:
            assert {oracle.standing(id, v, oracle.now) for v in DAYS} <= {"retracted"}
        undone += 1
        hours.move()
        oracle.undo(oracle.last)  # and back again
        assert between == says(oracle), seed
    assert undone > WORLDS / 2


def draw_in_block(chance: random.Random, oracle: Oracle) -> list[Any]:
    """What a copy of the oracle takes next, for one transaction."""
    copied, hours = oracle.fork(), Hours()
    hours.now = oracle.now
    copied.clock = hours
    return draw(chance, chance.randint(1, 4), copied, hours)


def test_a_merge_says_what_the_branch_said() -> None:
    merged = 0
    for seed in range(WORLDS):
        chance, hours = random.Random(seed), Hours()
        trunk = Oracle(hours)
        draw(chance, 10, trunk, hours)
        hours.move()
        branch, since = trunk.fork(), trunk.now
        draw(chance, 10, branch, hours)
        draw(chance, 6, trunk, hours, with_names="other-")  # meanwhile something else is told on the trunk
        hours.move()
        expected, apart = words(branch), words(trunk)
        trunk.merge(branch, since)
        after = words(trunk)
        for key, word in (apart | expected).items():
            # what came and went on the branch, and no link names, does not come
            assert after.get(key, word) == word and (key in after or word not in UPRIGHT), (seed, key)
        assert set(after) <= set(expected) | set(apart)
        merged += 1
    assert merged == WORLDS
