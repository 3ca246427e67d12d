"""What memory costs: fifty thousand chunks remembered, and recalled by words and by meaning; SQLite's full-text search and bare numpy are the floors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import once, race, together
from graphstore import context, indexers, observer, working
from graphstore.memory import Memory

CHUNKS, WORDS, DIMENSION, K = 50_000, 40, 256, 10
CALLS = 8
OBSERVED, NOTICED = 50, 500
ROOM = 17_000
MILLI = 1e-3


class Language:
    """Texts whose words are as common as words are (the n-th is said an n-th as often as the first), each with a vector of its own."""

    model, dimension, batch = "benchmark", DIMENSION, 1_000

    def __init__(self, chunks: int) -> None:
        chance = Random(7)
        pool = [f"w{number}" for number in range(20_000)]
        often = [1 / (number + 1) for number in range(len(pool))]
        self.texts = [" ".join(chance.choices(pool, often, k=WORDS)) for _ in range(chunks)]
        # as somebody asks: some words of what was said, the most common ones among them
        self.asked = [" ".join(chance.sample(chance.choice(self.texts).split(), 6)) for _ in range(200)]

    def __call__(self, texts: list[str]) -> Any:
        seeds = [Random(text).getrandbits(32) for text in texts]
        return np.stack([np.random.default_rng(seed).standard_normal(DIMENSION) for seed in seeds])


def memory(arena: Arena) -> Iterator[Row]:
    chunks = max(arena.scaled(CHUNKS), 1_000)
    said = Language(chunks)
    store = graphstore.open(arena.folder / "memory")
    plain, meant = Memory(store), Memory(store, said)

    def row(work: str, took: dict[str, float], budget: float | None, floor_is: str) -> Row:
        made = arena.row(work, took, budget, floor_is)
        made.size = f"{chunks // 1_000}k"
        return made

    told = [
        {"text": text, "layer": "conversation", "source": f"s{number % 100}"}
        for number, text in enumerate(said.texts)
    ]
    took = [
        once(lambda lo=lo: plain.remember_many(told[lo : lo + 1_000]))[0] / 1_000  # type: ignore[misc]
        for lo in range(0, chunks, 1_000)
    ]
    assert chunks == plain.stats().chunks
    yield row("remember, a thousand in one transaction, each", {"ours": median(took)}, MILLI, "")
    yield row("recall by words, the first", {"ours": once(lambda: plain.recall("w5"))[0]}, None, "")
    yield row("the vectors that are missing, each without embedding", _embedding(meant, said), None, "")

    full_text = _Fts5(said.texts)
    asked = cycle([(text,) for text in said.asked])
    for text in said.asked[:20]:
        best = full_text.best(text, 1)[0]
        assert best in {hit.node.text for hit in plain.recall(text, K)}, text
    lanes = {
        "ours": lambda: together(lambda text: plain.recall(text, K), list(islice(asked, CALLS))),
        "floor": lambda: together(lambda text: full_text.best(text, K), list(islice(asked, CALLS))),
    }
    yield row("recall by words", race(lanes, arena.turns), 20 * MILLI, "SQLite FTS5, BM25, the same words")

    matrix = said(said.texts).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for text in said.texts[:20]:
        assert text in {hit.node.text for hit in meant.recall(text, K) if hit.vector_rank == 1}
    lanes = {
        "ours": lambda: together(lambda text: meant.recall(text, K), list(islice(asked, CALLS))),
        "floor": lambda: together(lambda text: _nearest(matrix, said([text])[0]), list(islice(asked, CALLS))),
    }
    yield row("recall by words and meaning", race(lanes, arena.turns), 50 * MILLI, "numpy, the vectors alone")
    lanes = {
        "ours": lambda: together(lambda text: meant.recall(text, K, user="ada"), list(islice(asked, CALLS)))
    }
    yield row("the same of one user", race(lanes, arena.turns), 50 * MILLI, "")
    _agent(store, arena.folder / "agent", said)
    lanes = {
        "ours": lambda: together(lambda text: _told(store, text, None), list(islice(asked, CALLS))),
        "floor": lambda: together(lambda text: plain.recall(text, K, user="ada"), list(islice(asked, CALLS))),
    }
    yield row(
        "context, by words", race(lanes, arena.turns), 100 * MILLI, "recall by words of that user alone"
    )
    lanes = {
        "ours": lambda: together(lambda text: _told(store, text, meant), list(islice(asked, CALLS))),
        "floor": lambda: together(lambda text: meant.recall(text, K, user="ada"), list(islice(asked, CALLS))),
    }
    yield row(
        "context, by words and meaning", race(lanes, arena.turns), 100 * MILLI, "recall of that user alone"
    )
    store.close()


def _agent(store: graphstore.GraphStore, folder: Path, said: Language) -> None:
    """Something for each section that an agent of one user is told: files, a scratchpad, five hundred observations, a conversation."""
    folder.mkdir()
    for name in indexers.FILES:
        parts = (f"## Part {number}\n{text}\n" for number, text in enumerate(said.texts[:10]))
        (folder / name).write_text("\n".join(parts), encoding="utf-8")
    indexers.SoulFileIndexer(store).index(folder)
    working.set(store, "ada", "t1", "\n".join(said.texts[:5]))
    said_of = [
        "\n".join(f"- [LOW] {' '.join(text.split()[:15])}" for text in said.texts[lo : lo + 20])
        for lo in range(0, NOTICED, 20)
    ]
    noticed = "\n".join(f"## 2026-01-{day:02}\n{lines}" for day, lines in enumerate(said_of, 1))
    watching = observer.Observer(store, lambda messages: noticed, threshold=OBSERVED)
    for text in said.texts[: OBSERVED + 30]:
        watching.enqueue(text, user="ada", thread="t1", sender="ada")
    assert NOTICED == len(observer.observations(store, "ada"))


def _told(store: graphstore.GraphStore, text: str, memory: Memory | None) -> context.Context:
    found = context.context(store, "ada", "t1", text, ROOM, identity="an agent", memory=memory)
    assert found.tokens <= ROOM
    assert found.left_out, "there was room for all: nothing was chosen"
    return found


def _embedding(meant: Memory, said: Language) -> dict[str, float]:
    alone = once(lambda: said(said.texts))[0]
    return {"ours": max(0.0, once(meant.reembed)[0] - alone) / len(said.texts)}


def _nearest(matrix: Any, asked: Any) -> Any:
    scores = matrix @ asked.astype(np.float32)
    best = np.argpartition(-scores, K)[:K]
    return best[np.argsort(-scores[best])]


class _Fts5:
    """The same texts in SQLite's full-text index, in memory."""

    def __init__(self, texts: list[str]) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.execute("create virtual table chunk using fts5(text)")
        self._base.executemany("insert into chunk values (?)", [(text,) for text in texts])

    def best(self, text: str, most: int) -> list[str]:
        wanted = " OR ".join(dict.fromkeys(text.split()))
        found = self._base.execute(
            "select text from chunk where chunk match ? order by bm25(chunk) limit ?", (wanted, most)
        )
        return [each for (each,) in found]
