"""Full-text search by the rows of a ledger: who has followed all that was written finds what a store just opened finds, at every coordinate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.errors import EngineError
from graphstore.events.timeline import added, annotate, messages, record_message
from graphstore.ledger import word_rows
from graphstore.ledger.database import SCHEMA
from graphstore.memory.embedders import lend
from graphstore.memory.recall import mentions, recall
from graphstore.values.decay import Decay
from tests.ledger.test_questions import (
    ALONE,
    BRANCHES,
    DAYS,
    EVENTS,
    FORGETTING,
    NODES,
    VERBS,
    BranchingHistory,
    outcome,
)
from tests.support.embedding import signs
from tests.support.ledger_rows import change, rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("reads and changes the file of the store")

WORDS = (
    "red", "green", "blue", "harbour", "harbours", "running", "ran", "Zürich", "東京都", "ERR-404", "v1.2.3", "auth.py", "two-factor", "Ana",
    "getUserName", "deploy", "2024",
)  # fmt: skip
WRITTEN = (*VERBS, *("message",) * 6, "bulk", "bulk")
DECAYS = (None, Decay(), Decay(half_life=2, per_access=2, per_link=1, shaken=0.1, floor=0.01))
ASKED = (
    "red", "blue harbour", "ran to the harbours", "zurich", "東京", "err-404", "v1.2", "auth", "harb", '"red blue"', "red -blue", "Ana", "nothing says this",
    "red kind:fact", "red tag:hot", "blue scope:here", "since:2026-01-03 red", "alpha", "slot", "slo", "event-a", "what did Ana say", "", "harbour standing:any",
    "red author:ana", "green 2024 two-factor deploy", "harbour in January 2026", "\ud800 red",
)  # fmt: skip


class Talking(BranchingHistory):
    """A history in which texts differ, messages are sent, and things are loaded in bulk."""

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.choice([1, 3, 8]))) * self.chance.choice(
            [1] * 20 + [300]
        )

    def content(self) -> dict[str, Any]:
        stated = {"importance": self.chance.random(), "confidence": self.chance.choice([0.3, 1, "high"])}
        return {
            "says": self.text(),
            "size": self.chance.choice([1, 2]),
            **(stated if self.chance.random() < 0.3 else {}),
        }

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.try_some(
                (
                    *WRITTEN,
                    *ALONE,
                    "branch",
                    "write_on_branch",
                    "merge",
                    "delete_branch",
                    "block",
                    "look_up",
                    "annotate",
                )
            )
            self.now += (DAYS[1] - DAYS[0]) / 5

    def block(self) -> None:
        with self.store.transaction(author=self.chance.choice([None, "ana"])):
            for _ in range(self.chance.randint(2, 5)):
                self.try_some(WRITTEN[:-2])

    def look_up(self) -> None:
        self.store.touch([self.known(NODES), self.known(EVENTS)])
        self.store.flush_accesses()

    def annotate(self) -> None:
        there = messages(self.store, limit=None).events
        if not there:
            return
        message = self.chance.choice(there)
        said = {self.chance.choice(["transcript", "classification"]): self.text()}
        annotate(self.store, message.id, occurred_at=self.chance.choice([None, *DAYS]), **said)

    def message(self) -> None:
        record_message(
            self.store,
            "message",
            self.text(),
            sender=self.chance.choice(["ana", "ben"]),
            sender_name=self.chance.choice([None, "Ana"]),
            thread=self.chance.choice([None, "t1", 't "2"']),
            authorized=self.chance.random() < 0.8,
            occurred_at=self.chance.choice(DAYS),
        )

    def bulk(self) -> None:
        first = len(self.store.changes())
        ids = [f"bulk-{first}-{number}" for number in range(self.chance.randint(1, 9))]
        self.store.bulk_load(
            nodes=[{"id": id, "kind": "note"} for id in ids],
            versions=[{"node_id": id, "content": self.content(), **self.some_period()} for id in ids],
        )

    def write_on_branch(self) -> None:
        branch = self.store.on(self.chance.choice(BRANCHES))
        with branch.transaction():
            branch.add_node("fact", self.content())
            branch.revise(self.known(NODES), self.content())
            branch.record_event("error", self.text(), id=self.new(EVENTS))

    def forget_without_a_trace(self) -> None:
        self.store.evict(ids=[self.known(NODES)], reason="none", keep_audit=False)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Segments of 4 versions, merged to 16."""
    monkeypatch.setattr(word_rows, "SEALED", 4)
    monkeypatch.setattr(word_rows, "MERGED", 16)
    yield


def by_rows(path: Path) -> graphstore.GraphStore:
    """A store just opened."""
    return graphstore.open(path, read_only=True)


def compare(store: Any, other: Any, history: Talking) -> int:
    """Assert that both find the same at a coordinate. Returns how much was found."""
    found = 0
    where = history.coordinate()
    one, two = store.as_of(**where), other.as_of(**where)
    for text in history.chance.sample(ASKED, 6):
        asked = {"k": history.chance.choice([1, 3, 10]), "decay": history.chance.choice(DECAYS)}
        for ask, more in ((recall, asked), (mentions, {"k": 4})):
            expected, got = outcome(ask, one, text, **more), outcome(ask, two, text, **more)
            assert expected == got, (ask.__name__, text, more, where)
            if not isinstance(expected, tuple):
                assert expected.model_dump_json() == got.model_dump_json()
                found += len(expected)
    for message in messages(one, limit=20):
        assert outcome(added, one, message.id) == outcome(added, two, message.id), (message.id, where)
    return found


@pytest.mark.parametrize("seed", seeds(1, 5, 200))
def test_a_search_that_has_followed_finds_what_one_made_anew_finds(seed, tmp_path, small_segments):
    history, found = Talking(tmp_path / "memory.gs", seed), 0
    with closing(history.store) as store, closing(by_rows(history.path)) as kept:
        if seed % 2:
            lend(store, signs)
            lend(kept, signs)
        for round in range(8):
            history.go_on(8)
            if round > 3:
                history.try_some((*FORGETTING, *FORGETTING, "forget_without_a_trace"))
            if round == 5:
                store.set_languages(["english", "german"])
            for _ in range(3):
                found += compare(store, kept, history)
            with closing(by_rows(history.path)) as opened:
                if seed % 2:
                    lend(opened, signs)
                found += compare(store, opened, history)
        assert found > 100
        assert store.verify().problems == ()
        before = {table: rows(history.path, f"SELECT * FROM {table}") for table in word_rows.WORD_TABLES}
        assert before["segment"] and before["posting"]
        store.rebuild()
        assert before == {table: rows(history.path, f"SELECT * FROM {table}") for table in before}


def test_an_older_ledger_is_upgraded_when_it_is_opened_for_writing(tmp_path):
    history = Talking(tmp_path / "memory.gs", 0)
    history.go_on(30)
    history.store.erase(history.known(NODES), reason="not ours")
    history.store.close()
    before = {table: rows(history.path, f"SELECT * FROM {table}") for table in word_rows.WORD_TABLES}
    for statement in (*(f"DROP TABLE {table}" for table in before), f"PRAGMA user_version={SCHEMA - 1}"):
        change(history.path, statement)

    with pytest.raises(EngineError, match=rf"has schema {SCHEMA - 1}.*Open the store once without read_only"):
        graphstore.open(history.path, read_only=True)
    with graphstore.open(history.path) as store:
        assert before == {table: rows(history.path, f"SELECT * FROM {table}") for table in before}
        assert [(SCHEMA,)] == rows(history.path, "PRAGMA user_version")
        assert store.verify().problems == ()


@pytest.mark.parametrize("forget", ["erase", "evict", "forget_without_a_trace"])
def test_no_word_of_what_is_forgotten_is_left_in_a_file(forget, tmp_path, small_segments):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        for number in range(9):  # two segments, and one that is not sealed
            store.add_node("fact", {"says": f"secretword{number}, harbour"}, id=f"fact-{number}")
        side = store.branch("side")
        for number in (1, 8, 2):
            side.revise(f"fact-{number}", {"says": f"secretword{number} on the branch"})
        for number in (1, 8):
            if forget == "erase":
                store.erase(f"fact-{number}", reason="private")
            else:
                store.evict(ids=[f"fact-{number}"], reason="private", keep_audit=forget == "evict")
        assert 7 == len(recall(store, "harbour", 20))
        with closing(by_rows(path)) as other:
            assert ["fact-2"] == [hit.node.id for hit in recall(other.on("side"), "branch", 20)]
        assert store.verify().problems == ()
    found = b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
    assert [0, 2, 3, 4, 5, 6, 7] == [number for number in range(9) if b"secretword%d" % number in found]


def test_a_search_follows_what_another_process_writes(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store, closing(by_rows(path)) as other:
        assert 0 == len(recall(other, "harbour"))
        for number in range(3):
            store.add_node("fact", {"says": f"harbour {number}"}, id=f"fact-{number}")
            pinned = other.as_of()
            assert number + 1 == len(recall(other, "harbour"))
            store.retract("fact-0", reason="not so") if number == 2 else None
            assert number + 1 == len(recall(pinned, "harbour"))
        assert {"fact-1", "fact-2"} == {hit.node.id for hit in recall(other, "harbour")}


def test_words_that_another_stemmer_made_are_made_again_of_the_texts(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "harbours"}, id="fact")
    change(path, "UPDATE analyzer SET identity = 'another'")
    with closing(by_rows(path)) as store:
        assert ["fact"] == [hit.node.id for hit in recall(store, "harbour")]
    with graphstore.open(path) as store:
        assert store.verify().problems == ()
        store.add_node("fact", {"says": "a harbour"}, id="second")
    with closing(by_rows(path)) as store:
        assert {"fact", "second"} == {hit.node.id for hit in recall(store, "harbour")}
