"""`python -m benchmarks.retrieval [--half chosen|reported|all] [--wrong]`: recall@5 and @10 by part, and how many questions that nothing answers are refused."""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import bm25s
import Stemmer

import graphstore
from benchmarks.retrieval.memories import Asked, Memory, memory
from graphstore.events import timeline
from graphstore.memory import embedders
from graphstore.memory.recall import recall
from graphstore.view import ranking

STRONG, LEAST = 0.5, 0.25
"""A hit that says less of a question than the first is weak, less than the second is none."""
LANGUAGES = ("english", "german", "russian")
Way = Callable[[str], Sequence[str]]
PLAIN = {"BESIDE": (), "SPEAKER": 0.0, "DATED": 0.0, "NAMED": (0.0, 0.0, 0.0)}
"""Ranking by words alone."""


def stored(texts: Memory) -> Any:
    """A store with every text: a turn as a message of its session, another as a fact."""
    store = graphstore.open(":memory:")
    store.set_languages(LANGUAGES)
    with store.transaction():
        for said in texts.said:
            if said.speaker:
                timeline.record_message(
                    store,
                    "TEXT",
                    said.text,
                    sender=said.speaker,
                    thread=said.session,
                    occurred_at=said.when,
                    id=said.id,
                )
            else:
                store.add_node("fact", {"says": said.text}, id=said.id, valid_from=said.when)
    return store


def ours(store: Any, **more: Any) -> Way:
    return lambda text: [hit.node.id for hit in recall(store, text, 10, **more)]


def meaning(store: Any) -> Way:
    """Ours with the vectors of an embedder as well."""

    def found(text: str) -> list[str]:
        embedders.set_embedder(store, "wordllama")  # from the first question on
        return ours(store)(text)

    return found


def plain(store: Any, **switched: Any) -> Way:
    """Ours with some of its constants as they are said."""

    def found(text: str) -> list[str]:
        with mock.patch.multiple(ranking, **switched):
            return ours(store)(text)

    return found


def fts5(texts: Memory) -> Way:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE said USING fts5(id UNINDEXED, text, tokenize='porter unicode61')")
    base.executemany("INSERT INTO said VALUES (?, ?)", ((each.id, _line(each)) for each in texts.said))

    def found(text: str) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        rows = base.execute("SELECT id FROM said WHERE said MATCH ? ORDER BY rank LIMIT 10", (asked,))
        return [id for (id,) in rows]

    return found


def stemmed(texts: Memory) -> Way:
    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    tokens = bm25s.tokenize(
        [_line(each) for each in texts.said], stopwords="en", stemmer=stemmer, show_progress=False
    )
    index.index(tokens, show_progress=False)

    def found(text: str) -> list[str]:
        asked = bm25s.tokenize([text], stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False)
        if not asked[0]:
            return []
        places, scores = index.retrieve(asked, k=10, show_progress=False)
        return [texts.said[at].id for at, score in zip(places[0], scores[0], strict=True) if score > 0]

    return found


def _line(said: Any) -> str:
    return f"{said.speaker}: {said.text}" if said.speaker else str(said.text)


def measured(way: Way, asked: list[Asked], wrong: bool = False) -> dict[str, tuple[int, int, int]]:
    """By part: how many questions, and of how many all answers are among the first five, the first ten."""
    by: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for each in asked:
        if each.answers:
            hits = list(way(each.text))
            for part in (each.part, "all"):
                by[part][0] += 1
                by[part][1] += each.answers <= set(hits[:5])
                by[part][2] += each.answers <= set(hits[:10])
            if wrong and not each.answers <= set(hits):
                print("  missed:", each.part, each.text, "|", *each.answers)
    return {part: (many[0], many[1], many[2]) for part, many in by.items()}


def surely(store: Any, asked: list[Asked]) -> tuple[float, float]:
    """The shares of questions that nothing answers of which no hit says half, and of the others of which one says a quarter, by the weight of the words."""
    said: dict[bool, list[float]] = {True: [], False: []}
    for each in asked:
        with store.reading() as sight:
            found = sight.found(each.text, 10)
            whole = sum(found.weights) or 1.0
            shares = [
                sum(found.weights[term] for term in found.terms_said_by(ent)) / whole
                for ent, _ in found.matches
            ]
        said[bool(each.answers)].append(max(shares, default=0.0))
    refused, kept = said[False], said[True]
    return sum(share < STRONG for share in refused) / len(refused), sum(
        share >= LEAST for share in kept
    ) / len(kept)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval")
    parser.add_argument("--half", choices=("chosen", "reported", "all"), default="reported")
    parser.add_argument("--wrong", action="store_true", help="show what the last way misses")
    given = parser.parse_args()
    texts = memory()
    asked = [each for each in texts.asked if given.half == "all" or each.chosen == (given.half == "chosen")]
    store = stored(texts)
    ways = {
        "FTS5 porter": fts5(texts),
        "bm25s, stemmed": stemmed(texts),
        "ours, words": plain(store, **PLAIN),
        "ours, + turns beside": plain(store, **{**PLAIN, "BESIDE": ranking.BESIDE}),
        "ours, + speakers": plain(store, **{**PLAIN, "BESIDE": ranking.BESIDE, "SPEAKER": ranking.SPEAKER}),
        "ours": ours(store),
        "ours, + meaning": meaning(store),
    }
    print(f"{len(texts.said):,} texts, {len(asked)} questions ({given.half}); recall@5 / recall@10, percent")
    for name, way in ways.items():
        found = measured(way, asked, given.wrong and name == "ours")
        cells = [
            f"{part} {100 * five / many:.0f}/{100 * ten / many:.0f}"
            for part, (many, five, ten) in found.items()
        ]
        print(f"{name:22}", "  ".join(sorted(cells)))

    refused, kept = surely(store, asked)
    print(
        f"that nothing answers: {100 * refused:.0f} % refused or weak; that something answers: {100 * kept:.0f} % kept"
    )


if __name__ == "__main__":
    main()
