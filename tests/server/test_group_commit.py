"""Many who write, one who does: groups that share a sync, what stays alone, transactions a client holds open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Queue
from typing import Any, Literal

import pytest

from graphstore import EngineError, GraphStore
from graphstore.errors import ConflictError, NotFoundError
from graphstore.server import group_commit
from graphstore.server.group_commit import Patience, Serving, WriteTurn
from tests.support.disk import no_room

pytestmark = pytest.mark.in_process("looks at the queue of writes")

QUICK = Patience(idle=0.05, gone=0.05, whole=0.3)


class Asker:
    """Asks a `Serving`, and waits for what it answers."""

    def __init__(self, store: GraphStore, patience: Patience | None = None) -> None:
        self.groups: Queue[Sequence[WriteTurn]] = Queue()
        self.serving = Serving(store, self._told, patience=patience)

    def _told(self, turns: Sequence[WriteTurn]) -> None:
        self.groups.put(turns)
        for turn in turns:
            turn.done.set()

    def turn(self, work: Callable[[], Any], *, alone: bool = False) -> WriteTurn:
        turn = WriteTurn(work, alone=alone, done=threading.Event())
        self.serving.ask(turn)
        return turn

    def within(self, token: str, work: Callable[[], Any]) -> WriteTurn:
        turn = WriteTurn(work, done=threading.Event())
        self.serving.ask_within(token, turn)
        return turn

    def begin(self, store: GraphStore) -> str:
        turn = self.serving.begin(store.transaction, lambda token: token, done=threading.Event())
        return value(turn)

    def end(self, token: str, how: Literal["commit", "abort"]) -> WriteTurn:
        turn = WriteTurn(ends=how, done=threading.Event())
        self.serving.ask_within(token, turn)
        return turn


def value(turn: WriteTurn) -> Any:
    assert turn.done.wait(10)
    if turn.error is not None:
        raise turn.error
    return turn.value


@pytest.fixture
def asker(disk_store: GraphStore) -> Iterator[Asker]:
    made = Asker(disk_store)
    yield made
    assert made.serving.stop(10)


@pytest.fixture
def hasty(disk_store: GraphStore) -> Iterator[Asker]:
    made = Asker(disk_store, QUICK)
    yield made
    assert made.serving.stop(10)


def adding(store: GraphStore, id: str) -> Callable[[], str]:
    return lambda: store.add_node("fact", {"n": id}, id=id).id


def held_up(asker: Asker) -> threading.Event:
    """The writer is busy until the event is set, so that what is asked meanwhile queues."""
    go = threading.Event()
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        go.wait(10)

    asker.turn(wait, alone=True)
    assert begun.wait(10)
    return go


def test_what_has_queued_shares_a_sync(disk_store, asker, monkeypatch):
    committed = []
    monkeypatch.setattr(group_commit, "_LONGEST", 10.0)  # a busy machine does not cut the group in two
    end_group = disk_store._core.journal.end_group
    monkeypatch.setattr(disk_store._core.journal, "end_group", lambda: (committed.append(1), end_group()))
    go = held_up(asker)
    turns = [asker.turn(adding(disk_store, f"n{number}")) for number in range(20)]
    go.set()

    assert [f"n{number}" for number in range(20)] == [value(turn) for turn in turns]
    assert 1 == len(committed)
    assert 20 == disk_store.stats()["transactions"]
    assert 20 == asker.serving.groups.turns


def test_one_that_raises_fails_alone(disk_store, asker):
    go = held_up(asker)
    first, wrong, last = (
        asker.turn(work)
        for work in (adding(disk_store, "a1"), lambda: disk_store.end("nothing"), adding(disk_store, "a2"))
    )
    go.set()

    assert ("a1", "a2") == (value(first), value(last))
    with pytest.raises(NotFoundError, match="nothing"):
        value(wrong)


def test_a_sync_that_fails_fails_all_of_its_group_and_the_next_goes_on(disk_store, asker):
    value(asker.turn(adding(disk_store, "kept")))
    go = held_up(asker)
    turns = [asker.turn(adding(disk_store, f"n{number}")) for number in range(3)]
    with no_room():
        go.set()
        for turn in turns:
            with pytest.raises(EngineError, match="Nothing of this transaction was kept") as refused:
                value(turn)
            assert "not kept" == refused.value.outcome
    assert "n0" == value(asker.turn(adding(disk_store, "n0")))
    assert ["kept", "n0"] == [node.id for node in disk_store.nodes()]
    assert disk_store.verify().ok


def test_what_is_alone_stands_between_two_groups(disk_store, asker):
    go = held_up(asker)
    turns = [
        asker.turn(adding(disk_store, "n1")),
        asker.turn(adding(disk_store, "n2")),
        asker.turn(lambda: disk_store.evict(ids=["n1"]), alone=True),
        asker.turn(adding(disk_store, "n3")),
    ]
    go.set()

    assert ["n1", "n2", ["n1"], "n3"] == [value(turn) for turn in turns]
    sizes = [len(asker.groups.get(timeout=10)) for _ in range(4)]
    assert [1, 2, 1, 1] == sizes


def test_a_turn_given_up_is_never_done(disk_store, asker):
    go = held_up(asker)
    turn = asker.turn(adding(disk_store, "n1"))
    assert turn.claim()
    go.set()
    value(asker.turn(adding(disk_store, "n2")))

    assert ["n2"] == [node.id for node in disk_store.nodes()]
    assert not turn.done.is_set()


def test_a_transaction_shows_when_it_is_committed_and_others_wait(disk_store, asker):
    token = asker.begin(disk_store)
    value(asker.within(token, adding(disk_store, "n1")))
    other = asker.turn(adding(disk_store, "n2"))

    assert ["n1"] == value(asker.within(token, lambda: [node.id for node in disk_store.nodes()]))
    assert [] == disk_store.nodes()
    assert not other.done.wait(0.05)
    value(asker.end(token, "commit"))
    assert "n2" == value(other)
    assert ["n1", "n2"] == [node.id for node in disk_store.nodes()]
    with pytest.raises(ConflictError, match="over: it was committed"):
        asker.within(token, adding(disk_store, "n3"))


def test_an_aborted_transaction_leaves_nothing(disk_store, asker):
    token = asker.begin(disk_store)
    value(asker.within(token, adding(disk_store, "n1")))
    value(asker.end(token, "abort"))

    assert [] == disk_store.nodes()
    with pytest.raises(ConflictError, match="it was aborted"):
        asker.end(token, "commit")


def test_a_verb_that_raises_leaves_the_transaction_open(disk_store, asker):
    token = asker.begin(disk_store)
    with pytest.raises(NotFoundError):
        value(asker.within(token, lambda: disk_store.end("nothing")))
    value(asker.within(token, adding(disk_store, "n1")))
    value(asker.end(token, "commit"))

    assert ["n1"] == [node.id for node in disk_store.nodes()]


@pytest.mark.parametrize("gone", [False, True])
def test_a_transaction_of_which_nothing_more_comes_is_aborted(disk_store, hasty, gone):
    token = hasty.begin(disk_store)
    value(hasty.within(token, adding(disk_store, "n1")))
    if gone:
        hasty.serving.gone(token)
    value(hasty.turn(adding(disk_store, "n2")))

    assert ["n2"] == [node.id for node in disk_store.nodes()]
    why = "its client has gone" if gone else "nothing came for 0.05 s"
    with pytest.raises(ConflictError, match=why):
        hasty.within(token, adding(disk_store, "n3"))


def test_a_transaction_that_goes_on_for_too_long_is_aborted(disk_store):
    busy = Asker(disk_store, Patience(idle=20, whole=0.3))
    token = busy.begin(disk_store)
    with pytest.raises(ConflictError, match=r"took longer than 0\.3 s"):
        while True:
            value(busy.within(token, disk_store.stats))

    assert [] == disk_store.nodes()
    assert busy.serving.stop(10)


def test_a_transaction_that_cannot_begin_says_why(disk_store, asker):
    turn = asker.serving.begin(
        lambda: disk_store.transaction(at="2000-01-01", author=" "),
        lambda token: token,
        done=threading.Event(),
    )

    with pytest.raises(ValueError, match="author is blank"):
        value(turn)
    assert "n1" == value(asker.turn(adding(disk_store, "n1")))


def test_stopping_does_what_has_queued_and_aborts_what_is_open(disk_store):
    asker = Asker(disk_store)
    token = asker.begin(disk_store)
    value(asker.within(token, adding(disk_store, "n1")))
    turn = asker.turn(adding(disk_store, "n2"))

    assert asker.serving.stop(10)
    assert "n2" == value(turn)
    assert ["n2"] == [node.id for node in disk_store.nodes()]
