"""Messages, traces, tags and topics by the rows of a ledger: they are what the index finds, at every coordinate, after whatever was written."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.events.timeline import (
    annotate,
    messages,
    record_message,
)
from graphstore.ledger.field_rows import FIELD_TABLES
from graphstore.write import transaction
from tests.ledger.test_questions import ALONE, BRANCHES, DAYS, EVENTS, NODES, VERBS, BranchingHistory
from tests.support.ledger_rows import change, rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("reads the file of the store, and looks whether it has its index")

SENDERS, THREADS = ("ana", "ben"), ("t1", 't "2"')
TRACES = ("t1", "abcdef0123456789abcdef0123456789", "abcdef1123456789abcdef0123456789")
TAGS = ("hot", "Hot", "two factor", "two-factor", 'say "so"', "東京")
KEYS = ("slot", "slot_v1", "slot_v2", "slot_v12", "slot_vx", "other")
TOPICS = (*TAGS, *KEYS, "slot_v", "slo", "two_factor", "red", "blue red", "nothing")
TYPES = ("TEXT", "AUDIO", "chat")
SAID = ("message",) * 8 + ("tagged", "keyed", "re_tagged", "traced", "annotate", "fold")
WRITTEN = (*VERBS, *SAID)


class Talk(BranchingHistory):
    """A history with many messages, traces, tags and versions of keys, some of which are on branches."""

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.now += timedelta(hours=5)
            if self.chance.random() < 0.3:
                with self.store.transaction():
                    for _ in range(self.chance.randint(2, 6)):
                        self.try_some(WRITTEN)
            else:
                self.try_some((*WRITTEN, *ALONE, "branch", "talk_on_branch", "merge", "delete_branch"))

    def message(self, store: Any = None) -> None:
        choose = self.chance.choice
        record_message(
            store or self.store,
            choose(TYPES),
            choose(("red", "green", "blue red")),
            id=choose((None, None, f"m-{self.chance.randrange(20)}")),
            sender=choose((None, *SENDERS)),
            sender_name=choose((None, "Ana")),
            thread=choose((None, *THREADS)),
            trace_id=choose((None, None, *TRACES)),
            classification=choose((None, None, "ask")),
            authorized=self.chance.random() < 0.8,
            occurred_at=choose(DAYS) + timedelta(minutes=choose((0, 0, 1))),
        )

    def traced(self) -> None:
        trace_id, at = self.chance.choice(TRACES), self.chance.choice(DAYS)
        self.store.record_event("span", "done", trace_id=trace_id, occurred_at=at)

    def annotate(self) -> None:
        there = messages(self.store, limit=None).events
        if there:
            annotate(
                self.store, self.chance.choice(there).id, classification=self.chance.choice(["ask", "x"])
            )

    def some_tags(self) -> list[str]:
        return self.chance.sample(TAGS, self.chance.randint(0, 3))

    def tagged(self, store: Any = None) -> None:
        (store or self.store).add_node("note", self.content(), tags=self.some_tags(), **self.some_period())

    def re_tagged(self) -> None:
        self.store.revise(self.known(NODES), self.content(), tags=self.some_tags(), **self.some_period())

    def keyed(self) -> None:
        self.store.add_node("fact", self.content(), key=self.chance.choice(KEYS), tags=self.some_tags())

    def talk_on_branch(self) -> None:
        branch = self.store.on(self.chance.choice(BRANCHES))
        self.message(branch)
        self.tagged(branch)
        branch.revise(self.known(NODES), self.content(), tags=self.some_tags())

    def fold(self) -> None:
        nodes = [node.id for node in self.store.nodes()]
        self.store.fold(
            self.chance.sample(nodes, min(2, len(nodes))), into={"summary": "in short"}, reason="so"
        )

    def forget(self) -> None:
        """Forget a thing, which may be a message, in one of three ways."""
        events = [event.id for event in self.store.events()]
        id = self.chance.choice([*events, self.known(NODES), self.known(EVENTS)])
        way = self.chance.choice(("evict", "evict", "erase", "without a trace"))
        if way == "erase":
            self.store.erase(id, reason="not ours")
        else:
            self.store.evict(ids=[id], reason="too large", keep_audit=way == "evict")


def tables(path: Path) -> list[Any]:
    return [sorted(rows(path, f"SELECT * FROM {table}"), key=repr) for table in FIELD_TABLES]


@pytest.mark.parametrize("seed", seeds(2, 8, 200))
def test_the_rows_of_fields_are_those_of_the_chain(seed, tmp_path, monkeypatch):
    if seed % 2:  # versions and their periods are in different lines
        monkeypatch.setattr(transaction, "AT_ONCE", 2)
    history = Talk(tmp_path / "memory.gs", seed)
    with closing(history.store) as store:
        for round in range(8):
            history.go_on(10)
            if round > 3:
                history.try_some(("forget",))
                history.try_some(("forget",))
        assert store.verify().problems == ()
        before = tables(history.path)
        assert all(before)
        store.rebuild()
        assert before == tables(history.path)


@pytest.mark.parametrize("forget", ["erase", "evict", "forget_without_a_trace"])
def test_no_field_of_what_is_forgotten_is_left_in_a_file(forget, tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store, store.branch("side") as side:
        store.add_node("fact", {"n": 1}, id="fact", tags=["secret-tag"])
        side.add_node("fact", {"n": 1}, id="fact", tags=["secret-side"])
        texts = {name: f"secret-{name}" for name in ("sender", "thread", "classification")}
        record_message(store, "TEXT", "secret-text", id="said", trace_id="its-trace", **texts)
        for id in ("fact", "said"):
            if forget == "erase":
                store.erase(id, reason="private")
            else:
                store.evict(ids=[id], reason="private", keep_audit=forget == "evict")
        assert store.verify().problems == ()
        assert [("its-trace",)] * (forget == "evict") == rows(path, "SELECT trace FROM all_message")
        assert [] == rows(path, "SELECT * FROM all_tag")
    found = b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
    assert b"secret" not in found
    assert (b"its-trace" in found) == (forget == "evict")


def test_a_node_without_tags_writes_no_field(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"tags": ["hot"]}, id="fact")
        store.record_event("deploy", "release 7")
    assert [[], []] == tables(path)


def test_a_ledger_of_schema_4_is_upgraded(tmp_path):
    """It had no fields, and marks of threads among the terms."""
    history = Talk(tmp_path / "memory.gs", 0)
    history.go_on(40)
    history.forget()
    history.store.close()
    before = tables(history.path), rows(history.path, "SELECT * FROM fresh")
    for table in FIELD_TABLES:
        change(history.path, f"DROP VIEW {table.removeprefix('all_')}", f"DROP TABLE {table}")
    change(history.path, "UPDATE fresh SET terms = CAST(x'00' || terms AS BLOB)", "PRAGMA user_version=4")

    with graphstore.open(history.path) as store:
        assert before == (tables(history.path), rows(history.path, "SELECT * FROM fresh"))
        assert store.verify().problems == ()
