"""Conversations are indexed through a server: what clients say waits there, is written by its ticks, and when it ends."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

import graphstore
from graphstore.context.feeders import AutoIndexer
from graphstore.context.scheduler import usual
from graphstore.errors import InvalidError
from graphstore.memory import Memory
from graphstore.server import run
from tests.support.served import TOKENS, Wire, serve_in_process, serve_in_thread

pytestmark = pytest.mark.in_process("it reaches servers of its own")

ASKED, ANSWERED = "where is the harbour office?", "the harbour office is on pier 4"


@pytest.fixture
def both(disk_store):
    """A store and the same store through its server, which ticks."""
    ticking = usual(disk_store)

    def started(calling):
        return run.together([run.tick(calling, ticking, 0.01)])

    with (
        serve_in_thread(disk_store, started=started) as url,
        graphstore.open(url, token=TOKENS.write) as there,
    ):
        yield disk_store, there


def texts(store):
    return [node.text for node in store.nodes("chunk")]


def until(wanted, seconds=20.0):
    end = time.monotonic() + seconds
    while not wanted() and time.monotonic() < end:
        time.sleep(0.01)
    return wanted()


def test_it_pairs_and_counts_through_a_server(both):
    store, there = both
    indexer = AutoIndexer(Memory(there))
    indexer.question(ASKED, user="ada", thread="t1")
    indexer.answer(ANSWERED, user="ada", thread="t1")
    indexer.question("hello", user="ada")
    assert (2, 0) == (indexer.waiting, indexer.indexed)
    assert [] == texts(store)
    assert 1 == indexer.close()
    assert [f"Q: {ASKED}\nA: {ANSWERED}"] == texts(store)
    assert {"greeting": 1} == indexer.skipped


def test_its_settings_count_there(both):
    store, there = both
    indexer = AutoIndexer(Memory(there), batch=2, least=5)
    indexer.tool("ci", "red one"), indexer.tool("ci", "red two")

    assert ["red one", "red two"] == texts(store)
    with pytest.raises(InvalidError, match="the server has the time"):
        AutoIndexer(Memory(there), clock=lambda: None)


def test_a_client_that_closes_ends_nobody_elses_question(both):
    store, there = both
    one, other = AutoIndexer(Memory(there)), AutoIndexer(Memory(there))
    one.question(ASKED, user="ada", thread="t1")
    other.add("and where is the crane?", "on pier 9, as ever", user="bob")
    other.close()
    one.answer(ANSWERED, user="ada", thread="t1")
    one.close()
    assert f"Q: {ASKED}\nA: {ANSWERED}" in texts(store)


def test_the_server_writes_what_has_waited_long_enough(both, clock):
    store, there = both
    AutoIndexer(Memory(there)).add(ASKED, ANSWERED, user="ada")
    clock.move(seconds=31)

    assert until(lambda: texts(store)) == [f"Q: {ASKED}\nA: {ANSWERED}"]


def test_calls_by_name_share_one_indexer(both, clock):
    store, _ = both
    with serve_in_thread(store) as url:
        wire = Wire(url)
        wire.post("/indexer/question", {"text": ASKED, "user": "ada"})
        wire.post("/indexer/answer", {"text": ANSWERED, "user": "ada"})
        assert 1 == wire.post("/indexer/counts", {})["waiting"]
        assert 1 == wire.post("/indexer/flush", {})
    assert [f"Q: {ASKED}\nA: {ANSWERED}"] == texts(store)


def test_a_server_that_ends_writes_what_waits(tmp_path):
    folder = tmp_path / "m.gs"
    graphstore.open(folder).close()
    with serve_in_process(folder) as (process, url):
        wire = Wire(url, (folder / "token").read_text().strip())
        wire.post("/indexer/question", {"text": ASKED, "user": "ada"})
        wire.close()
        process.terminate()
        assert 0 == process.wait(30)
    with graphstore.open(folder) as store:
        assert [f"Q: {ASKED}"] == texts(store)


def test_an_indexer_of_the_process_ticks_by_its_host_alone(disk_store, clock):
    indexer = AutoIndexer(Memory(disk_store), interval=timedelta(seconds=5))
    indexer.add(ASKED, ANSWERED)
    clock.move(seconds=6)
    usual(disk_store).do("indexer")
    assert [] == texts(disk_store)
    assert 1 == indexer.tick()
