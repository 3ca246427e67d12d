"""What recall costs: by text at any coordinate, by links over a web of its own, and when what is old weighs less. Nothing is beside it: scores are held against
plain BM25 and paths written out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from math import log, sqrt
from statistics import median
from typing import Any

import graphstore
from benchmarks import data as history
from benchmarks import ours
from benchmarks.arena import Arena, Row
from benchmarks.data import SEED
from benchmarks.timing import once, race, together
from graphstore.memory.recall import recall
from graphstore.values.decay import Decay
from graphstore.values.searched_text import text_of_event, text_of_node
from graphstore.values.words import Analyzer

MILLI = 1e-3
EVERY = 100_000
"""More than there are facts, so that no hit is left out."""


def recalled(arena: Arena) -> Iterator[Row]:
    """Measure recall by links, over a graph of its own. The group `search` measures text alone."""
    nodes, links = history.linked(arena.scaled(100_000))
    store = ours.load_web(nodes, links)
    standing = store.as_of()
    ours.recall_now(standing, "nothing")  # the words are noted; no link was looked at yet
    seconds, found = once(partial(ours.recall_now, standing, "seed"))
    yield arena.row(
        f"the first recall over {len(links):,} links, 10 seeds, 2 hops", {"ours": seconds}, None, ""
    )
    hits = {hit.node.id: hit.spread_score for hit in found if hit.spread_rank}
    activated = _activated([node["id"] for node in nodes if node["text"] == "seed"], links)
    assert hits and all(abs(score - activated[id]) < 1e-9 for id, score in hits.items()), hits
    took = race({"ours": lambda: together(partial(ours.recall_now, store), [("seed",)] * 10)}, arena.turns)
    yield arena.row(f"recall over {len(links):,} links, 10 seeds, 2 hops", took, 20 * MILLI, "")
    fresh = []
    for number in range(arena.rounds):
        ours.add_node(store, f"fresh{number}", {})
        fresh.append(once(partial(ours.recall_now, store, "seed"))[0])
    yield arena.row("the same after a write", {"ours": median(fresh)}, 20 * MILLI, "")
    ours.close(store)


def decayed(arena: Arena) -> Iterator[Row]:
    """Beside the same recall without decay, over facts of all ages; and what telling the accesses costs."""
    store, facts = graphstore.open(":memory:"), max(arena.scaled(50_000), 1_000)
    chance, vocabulary = random.Random(SEED), [f"word{number}" for number in range(2_000)]
    now = store.at.valid
    store.bulk_load(
        versions=[
            {
                "node_id": f"n{number}",
                "content": {"says": " ".join(chance.sample(vocabulary, 8)) + (" common" if number % 10 == 0 else "")},
                "valid_from": now - timedelta(days=chance.randrange(2_000)),
            }
            for number in range(facts)
        ]
    )  # fmt: skip
    view = store.as_of()
    recall(view, "common")
    for text, what in (("word5 word17", "two rare words"), ("common", "a word in ten says")):
        assert _weighed(view, text) == [hit.node.id for hit in recall(view, text, hops=0, decay=Decay())]
        lanes = {
            "ours": lambda text=text: once(partial(recall, view, text, decay=Decay()))[0],
            "floor": lambda text=text: once(partial(recall, view, text))[0],
        }
        yield arena.row(
            f"recall with decay, {what}, {facts:,} facts", race(lanes, arena.turns), None, "recall without"
        )
    took = []
    store.flush_accesses()
    for _ in range(arena.rounds):
        store.touch([f"n{number}" for number in range(1_000)])
        seconds, told = once(store.flush_accesses)
        assert told == 1_000
        took.append(seconds)
    yield arena.row("accesses of 1,000 things told", {"ours": median(took)}, None, "")
    store.close()


def _weighed(view: Any, text: str) -> list[str]:
    """The ten best of all matches, each score multiplied by the weight."""
    plain = {hit.node.id: hit.text_score for hit in recall(view, text, EVERY, hops=0)}
    weights = {hit.node.id: hit.weight for hit in recall(view, text, EVERY, hops=0, decay=Decay())}
    return sorted(plain, key=lambda id: (-plain[id] * weights[id], id))[:10]


def ranked(view: Any, text: str) -> list[str]:
    """The ten best of everything that stands in a view, by plain BM25."""
    english = Analyzer()
    bags = {
        thing.id: Counter(english.terms(_said(thing)))
        for thing in [*view.nodes(), *view.events()]
        if thing.standing in ("stands", "shaky")
    }
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    scores: Counter[str] = Counter()
    for term in english.ask(text).terms:
        word = term.forms[0]
        having = [id for id, bag in bags.items() if word in bag]
        weight = log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
        for id in having:
            often = bags[id][word]
            scores[id] += weight * often * 1.9 / (often + 0.9 * (0.6 + 0.4 * bags[id].total() / mean))
    return sorted(scores, key=lambda id: (-scores[id], id))[:10]


def _said(thing: Any) -> str:
    if not hasattr(thing, "number"):
        return text_of_event(dict(thing))
    return text_of_node(dict(thing), thing.kind, thing.key)  # the history gives each version a text


def _activated(seeds: list[str], links: list[dict[str, Any]]) -> Counter[str]:
    """What two hops from equal seeds activate: every path written out."""
    around: dict[str, list[tuple[int, str, str]]] = {}
    for link in links:
        for here, there in ((link["source"], link["target"]), (link["target"], link["source"])):
            around.setdefault(here, []).append((-link["strength"], link["id"], there))
    ways = {id: [there for _, _, there in sorted(steps)[:10]] for id, steps in around.items()}
    weight = {id: 0.5 / sqrt(1 + len(steps)) for id, steps in around.items()}
    activated: Counter[str] = Counter()
    for seed in seeds:
        for near in ways.get(seed, ()):
            activated[near] += weight[near]
            for far in ways[near]:
                if far not in (seed, near):
                    activated[far] += weight[near] * weight[far]
    return activated
