"""A verb decides the same and records the same whether the index is loaded or it reads what it needs from the rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from graphstore.values import random_bits
from tests.conftest import START, Clock
from tests.support.ledger_rows import heads

STEPS = 60
KINDS = (
    "derived_from",
    "supports",
    "supersedes",
    "corrects",
    "contradicts",
    "related_to",
    "caused_by",
    "continuation",
)


def drawn(seed: str) -> list[str]:
    chance = random.Random(seed)
    return [f"{chance.getrandbits(64):016x}" for _ in range(200)]


def day(chance: random.Random) -> str | None:
    return None if chance.random() < 0.5 else (START - timedelta(days=chance.randrange(40))).isoformat()


def period(chance: random.Random) -> dict[str, Any]:
    start, stop = day(chance), day(chance)
    return {name: at for name, at in (("valid_from", start), ("valid_to", stop)) if at is not None}


def step(chance: random.Random, ids: list[str], links: list[str]) -> Callable[[GraphStore], Any]:
    """One verb with arguments, most of which are sensible."""
    one, two = chance.choice([*ids, "nothing"]), chance.choice(ids)
    content = {"n": chance.randrange(4)}
    number = chance.choice((None, None, None, 1, 2))
    source = chance.choice((None, None, "user:ana", "agent:bot"))
    link = chance.choice([*links, "lnk_none"])
    kind = chance.choice(KINDS)
    during = period(chance)
    return chance.choice(
        (
            lambda s: s.add_node(
                "fact", content, derived_from=[two] if chance.random() < 0.5 else (), **during
            ),
            lambda s: s.add_node(
                "fact", content, id=f"n-{chance.randrange(30)}", supersedes=one, reason="new"
            ),
            lambda s: s.add_node(kind, content, corrects=two, source=source),
            lambda s: s.add_node("fact", content, key=f"k{chance.randrange(3)}", **during),
            lambda s: s.add_node("note", content, key=f"k{chance.randrange(3)}", tags=["x"], text="said"),
            lambda s: s.revise(one, content, if_number=number, minor=chance.random() < 0.2, **during),
            lambda s: s.revise(one, content, source=source, reason="looked"),
            lambda s: s.amend(one, {"m": chance.randrange(3)}, **during),
            lambda s: s.end(one, at=day(chance), if_number=number),
            lambda s: s.retract(one, reason="no", **during),
            lambda s: s.confirm(one, reason="yes", if_number=number),
            lambda s: s.supersede(one, by=two, valid_from=day(chance)),
            lambda s: s.link(one, kind, two, **during),
            lambda s: s.link(
                one, kind, two, strength=chance.choice((None, 3)), reason="because", metadata={"a": 1}
            ),
            lambda s: s.unlink(link, **during),
            lambda s: s.unlink(source=one, kind=kind, target=two),
            lambda s: s.record_event("deploy", "shipped", id=f"e-{chance.randrange(9)}", related_to=[two]),
            lambda s: s.link(one, "related_to", f"{two}-v1"),
        )
    )


def play(folder: Path, seed: int, is_loaded: bool) -> tuple[list[str], list[Any]]:
    """Tell a store a random history. Return what each verb answered, and the chain."""
    chance, clock = random.Random(seed), Clock()
    answers = []
    path = folder / f"{'loaded' if is_loaded else 'rows'}.gs"
    store = graphstore.open(path, clock=clock)
    if chance.random() < 0.3:
        store.set_trust({"user": 2, "agent": 1})
    ids, links = ["n-1", "n-2"], ["lnk_one"]
    for at in range(STEPS):
        clock.move(seconds=chance.choice((0, 1, 3600)))
        if chance.random() < 0.2:
            store.close()
            store = graphstore.open(path, clock=clock, author=chance.choice((None, "agent:bot")))
        if is_loaded:
            store._core.read_index()
        random_bits._drawn[:] = drawn(f"{seed} {at}")
        tell = step(random.Random(f"{seed} {at}"), ids, links)
        try:
            found = tell(store)
        except GraphStoreError as error:
            answers.append(f"{type(error).__name__}: {error}")
            continue
        answers.append(repr(found.model_dump() if hasattr(found, "model_dump") else found))
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, graphstore.Link):
                links.append(each.id)
            elif each is not None:
                ids.append(getattr(each, "id", None) or each.event.id)
    problems = store.verify().problems
    store.close()
    random_bits._drawn.clear()
    assert problems == ()
    return answers, heads(path)


@pytest.mark.parametrize("seed", range(12))
def test_a_verb_on_the_rows_records_what_it_records_on_the_index(seed, tmp_path):
    by_rows, chain = play(tmp_path, seed, is_loaded=False)
    by_index, other = play(tmp_path, seed, is_loaded=True)
    for at, (one, two) in enumerate(zip(by_rows, by_index, strict=True)):
        assert one == two, at
    assert chain == other
