"""What reading session files costs: a megabyte parsed into entries and cut into segments, beside parsing its lines and nothing more.

The cuts are known by construction and compared before anything is timed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import orjson

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import once, race
from graphstore import sessions as rooms
from graphstore import transcripts

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MEGABYTES = 24
INGESTED = 2.4
BUDGET = 1 / 20
"""Seconds a megabyte."""
_WORDS = "the parser reads a line and gives an entry whose parent is the leaf of its chain so that nothing is lost".split()


def written(path: Path, megabytes: float, words: int) -> tuple[int, dict[str, int]]:
    """A session of so many megabytes with about so many words a message; gives its entries and its boundaries by type."""
    chance = random.Random(7)
    told = {"tree_jump": 0, "compaction": 0, "resume": 0, "branch": 0}
    number, leaf, earlier, at = 0, None, None, START
    with path.open("wb") as file:
        size = file.write(
            _line({"type": "session", "version": 3, "id": "bench", "timestamp": _iso(at), "cwd": "/work"})
        )
        while size < megabytes * 1e6:
            at += timedelta(seconds=chance.randrange(1, 60))
            entry: dict[str, Any] = {"type": "message", "id": f"{number:08x}", "parentId": leaf}
            match number % 100:
                case 20:
                    entry |= {"type": "label", "targetId": leaf, "label": "here"}
                case 40:
                    entry["parentId"] = earlier
                    told["tree_jump"] += 1
                case 60:
                    entry |= {
                        "type": "compaction",
                        "summary": "so far",
                        "tokensBefore": 90_000,
                        "firstKeptEntryId": leaf,
                    }
                    told["compaction"] += 1
                case 80:
                    at += timedelta(minutes=30)
                    told["resume"] += 1
                case 95:
                    entry |= {
                        "type": "branch_summary",
                        "fromId": leaf,
                        "summary": "tried",
                        "parentId": earlier,
                    }
                    told["branch"] += 1
                case 10:
                    earlier = leaf
            if entry["type"] == "message":
                entry["message"] = _message(chance, number, words)
            size += file.write(_line({**entry, "timestamp": _iso(at)}))
            leaf, number = entry["id"], number + 1
    return number, {kind: count for kind, count in told.items() if count}


def _message(chance: random.Random, number: int, words: int) -> dict[str, Any]:
    text = " ".join(chance.choices(_WORDS, k=words)).replace(" nothing", "\n\tnothing")
    content = [{"type": "text", "text": text}]
    if number % 2:
        return {
            "role": "toolResult",
            "toolCallId": f"toolu_{number}",
            "toolName": "bash",
            "content": content,
            "isError": False,
        }
    usage = {"input": 3, "output": 120, "cacheRead": 60_000, "cacheWrite": 900, "cost": {"total": 0.0123}}
    call = {
        "type": "toolCall",
        "id": f"toolu_{number + 1}",
        "name": "bash",
        "arguments": {"command": "make test"},
    }
    return {
        "role": "assistant",
        "provider": "anthropic",
        "model": "opus",
        "content": [*content, call],
        "usage": usage,
    }


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(path: Path) -> int:
    """The least: every line read and parsed."""
    with path.open("rb") as file:
        return sum(1 for line in file if orjson.loads(line))


def cut(path: Path) -> transcripts.Transcript:
    found = transcripts.read(path)
    transcripts.segments(found)
    return found


def sessions(arena: Arena) -> Iterator[Row]:
    megabytes = MEGABYTES / 24 if arena.quick else MEGABYTES
    for words, work in ((350, "entries of 2 kB"), (20, "entries of 300 bytes")):
        path = arena.folder / f"session_{words}.jsonl"
        count, told = written(path, megabytes, words)
        statistics = transcripts.statistics(cut(path))
        assert (count, told, {}) == (statistics.entries, statistics.boundaries, statistics.warnings)
        assert count + 1 == parse(path)
        lanes = {"ours": partial(_each, cut, path), "floor": partial(_each, parse, path)}
        yield _row(arena, path, f"a MB of a session cut into segments, {work}", lanes)
        if words > 100:
            read = cut(path)
            lanes["ours"] = lambda read=read, path=path: _each(lambda _: transcripts.statistics(read), path)
            yield _row(arena, path, f"a MB of a session counted (statistics), {work}", lanes)
        path.unlink()
    yield from _ingested(arena)


def _ingested(arena: Arena) -> Iterator[Row]:
    """Told to a store on disk: read, analysed without a model, written with its links; and told again."""
    path = arena.folder / "session_ingested.jsonl"
    _, told = written(path, INGESTED / 4 if arena.quick else INGESTED, 350)
    cuts = sum(told.values()) + 1
    first, again = [], []
    for turn in range(arena.rounds):
        with graphstore.open(arena.folder / f"sessions_{turn}") as store:
            seconds, done = once(partial(rooms.ingest, store, path))
            first.append(seconds)
            assert (cuts, ()) == (done.new, done.damaged), (cuts, done)
            count = store.stats()["transactions"]
            again.append(once(partial(rooms.ingest, store, path))[0])
            assert count == store.stats()["transactions"]
    floor = median(once(partial(parse, path))[0] for _ in range(arena.rounds))
    for work, took in (
        (f"a session of {cuts} segments ingested", first),
        ("the same again, unchanged", again),
    ):
        row = arena.row(work, {"ours": median(took), "floor": floor}, 1.0, "orjson on its lines")
        row.size = f"{path.stat().st_size / 1e6:.1f} MB"
        yield row
    path.unlink()


def _each(work: Callable[[Path], Any], path: Path) -> float:
    """Seconds a megabyte."""
    return once(partial(work, path))[0] / (path.stat().st_size / 1e6)


def _row(arena: Arena, path: Path, work: str, lanes: dict[str, Callable[[], float]]) -> Row:
    row = arena.row(work, race(lanes, arena.rounds), BUDGET, "orjson on its lines")
    row.size = f"{path.stat().st_size / 1e6:.0f} MB"
    return row
