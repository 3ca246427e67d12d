"""A writer waits for no reader of the same process, however much that one reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore

pytestmark = pytest.mark.in_process("reads and writes in two threads")

NODES = 6_000
WHOLE_READS: dict[str, Callable[[GraphStore, Path], object]] = {
    "export": lambda store, folder: [store.export(folder / f"dump-{number}") for number in range(8)],
    "verify": lambda store, _: store.verify().ok,
    "query_tables": lambda store, _: store.query_tables("MATCH (v:Version) RETURN count(v) AS n").rows(),
}


@pytest.fixture
def store(tmp_path: Path):
    with graphstore.open(tmp_path / "store") as opened:
        opened.bulk_load(
            versions=[
                {"node_id": f"n{number}", "content": {"n": number, "says": "word " * 20}}
                for number in range(NODES)
            ]
        )
        yield opened


@pytest.mark.parametrize("read", WHOLE_READS)
def test_writes_go_on_while_the_whole_store_is_read(store: GraphStore, tmp_path: Path, read: str) -> None:
    answers: list[object] = []
    reader = threading.Thread(target=lambda: answers.append(WHOLE_READS[read](store, tmp_path)))
    written = 0

    reader.start()
    while reader.is_alive():
        store.add_node("fact", {"n": written})
        written += 1
    reader.join()

    assert answers and answers[0]
    assert written > 4  # the first begins before the reader, and one that waits for it is the last
    assert store.verify().ok
