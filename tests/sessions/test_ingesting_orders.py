"""Random families of sessions, whose files arrive and grow in a random order: the graph is that of the whole files told at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import sessions, transcripts
from graphstore.sessions.catalog import EVER
from tests.sessions.test_ingesting import graph, transactions
from tests.support.session_files import header, marked, said, write

pytestmark = pytest.mark.in_process("reads files of the test in every order")

Lines = list[dict[str, Any]]


class Family:
    """A root and what was forked from it: at an entry, or with all there was; each writes on after that."""

    def __init__(self, chance: random.Random, prefix: str = "") -> None:
        self.chance, self.clock, self.count, self.prefix = chance, 0.0, 0, prefix
        self.heads = {"root": header(f"{prefix}root")}
        self.entries: dict[str, Lines] = {"root": []}
        self._write("root", chance.randrange(2, 10))
        for name in ("one", "two", "three")[: chance.randrange(1, 4)]:
            self._fork(name, chance.choice(list(self.entries)))

    def files(self) -> dict[str, Lines]:
        return {name: [self.heads[name], *lines] for name, lines in self.entries.items()}

    def _fork(self, name: str, parent: str) -> None:
        chance, lines = self.chance, self.entries[parent]
        by_id = {line["id"]: line for line in lines}
        path, at = [], chance.choice(lines)
        while at is not None:
            path.append(at)
            at = by_id.get(at["parentId"])
        path = list(lines) if chance.random() < 0.3 else path[::-1]
        while path and path[-1]["type"] == "label":
            path.pop()
        if path:
            self.clock += 1
            self.heads[name] = header(f"{self.prefix}{name}", self.clock, parentSession=f"/x/{parent}.jsonl")
            self.entries[name] = path
            self._write(name, chance.randrange(6))
            self._write(parent, chance.randrange(4))

    def _write(self, name: str, count: int) -> None:
        chance, lines = self.chance, self.entries[name]
        for _ in range(count):
            self.clock += chance.choice((0.5, 1, 2, 30))
            self.count += 1
            id, leaf = f"e{self.count}", lines[-1]["id"] if lines else None
            above, what = leaf, chance.random()
            if what < 0.2 and lines:
                above = chance.choice(lines)["id"]
            more: dict[str, Any] = {}
            if what > 0.9:
                more = {"type": "label", "targetId": leaf, "label": "here"}
            elif what > 0.8:
                more = {
                    "type": "compaction",
                    "summary": "so far",
                    "firstKeptEntryId": leaf,
                    "tokensBefore": 5,
                }
            elif what > 0.7 and leaf:
                more = {"type": "branch_summary", "fromId": leaf, "summary": "tried"}
            type = more.pop("type", None)
            line = marked(type, id, above, self.clock, **more) if type else said(id, above, self.clock)
            lines.append(line)


def arrivals(chance: random.Random, files: dict[str, Lines], growing: bool) -> list[tuple[str, int]]:
    """Names and how many lines there are then, each file whole in the end."""
    waiting = []
    for name, lines in files.items():
        cuts = {len(lines)}
        if growing:
            cuts |= {chance.randint(2, len(lines)) for _ in range(chance.randrange(3))}
        waiting.append([(name, cut) for cut in sorted(cuts)])
    order = []
    while waiting := [each for each in waiting if each]:
        order.append(chance.choice(waiting).pop(0))
    return order


def told(store: graphstore.GraphStore, growing: bool) -> dict[str, Any]:
    """The graph; what was taken back in between and came again has other link ids."""
    found = graph(store)
    return {**found, "links": sorted(map(repr, found["links"].values()))} if growing else found


@pytest.mark.parametrize("prefix", ["", "id-of-"], ids=["named", "otherwise"])
@pytest.mark.parametrize("growing", [False, True], ids=["whole", "growing"])
@pytest.mark.parametrize("seed", range(20))
def test_any_order_gives_the_graph_of_the_whole(
    tmp_path: Path, seed: int, growing: bool, prefix: str
) -> None:
    chance = random.Random(seed)
    files = Family(chance, prefix).files()
    with graphstore.open(":memory:") as live, graphstore.open(":memory:") as once:
        for name, count in arrivals(chance, files, growing):
            file = write(tmp_path / f"{name}.jsonl", *files[name][:count])
            assert () == sessions.ingest(live, file, computer="desk").damaged
        before = transactions(live)
        sessions.ingest(live, tmp_path, computer="desk")
        assert before == transactions(live)
        sessions.ingest(once, tmp_path, computer="desk")

        assert told(once, growing) == told(live, growing)


@pytest.mark.parametrize("prefix", ["", "id-of-"], ids=["named", "otherwise"])
@pytest.mark.parametrize("seed", [*range(10), 82, 182])
def test_every_link_comes_from_the_segment_that_has_its_entry(
    store: graphstore.GraphStore, tmp_path: Path, seed: int, prefix: str
) -> None:
    chance = random.Random(seed)
    files = Family(chance, prefix).files()
    paths = [write(tmp_path / f"{name}.jsonl", *lines) for name, lines in files.items()]
    home = {}
    for transcript in map(transcripts.read, paths):
        for segment in transcripts.segments(transcript):
            node = sessions.segment_node(transcript.header.session_id, segment.start_entry_id)
            if not segment.copied:
                home |= {entry.id: node for entry in transcript.entries[segment.start : segment.stop]}
    for path in chance.sample(paths, len(paths)):
        sessions.ingest(store, path, computer="desk")

    view = store.as_of(valid=EVER)
    for node in view.nodes("segment"):
        for link in view.backlinks_to(node.id):
            entry = link.metadata.get("last_shared_entry", link.metadata.get("from_entry"))
            if entry is not None:
                assert home[entry] == link.source, (link.kind, entry)
