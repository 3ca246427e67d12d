"""The observer: messages queue up, are compressed when there are enough, and what was noticed leads back to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import graphstore
from graphstore import InvalidError, lifecycle, observer, timeline
from graphstore.context.observer import Observer
from graphstore.memory import Memory
from tests.conftest import day

pytestmark = pytest.mark.in_process("its compressors are functions of the test")


class Compressor:
    """Notices one thing of each batch; remembers what it was given."""

    def __init__(self, text="## 2026-01-30\n- [HIGH] something was said\n  - in detail\n"):
        self.text = text
        self.given = []

    def __call__(self, messages):
        self.given.append([message.text for message in messages])
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


@pytest.fixture
def compress():
    return Compressor()


@pytest.fixture
def watching(store, compress):
    return Observer(store, compress, threshold=3)


def noticed(view, *whose):
    return [node.text for node in observer.observations(view, *whose)]


def queued(view, *whose):
    return [message.text for message in observer.queue(view, *whose)]


def fill(watching, *numbers, user="ada", thread="t1"):
    done = None
    for number in numbers:
        done = watching.enqueue(f"message {number}", user=user, thread=thread, sender=user)
    return done


def test_messages_wait_until_there_are_enough(store, watching, compress):
    assert fill(watching, 1, 2) is None
    assert (["message 1", "message 2"], []) == (queued(store, "ada", "t1"), compress.given)

    done = fill(watching, 3)
    assert [["message 1", "message 2", "message 3"]] == compress.given
    assert (3, None, ()) == (done.messages, done.error, done.warnings)
    assert [] == queued(store, "ada", "t1")


def test_fifty_are_enough(store):
    watching = Observer(store, compress := Compressor())
    fill(watching, *range(49))
    assert [] == compress.given
    assert 50 == fill(watching, 49).messages


def test_an_observation_is_a_chunk_with_both_its_times(store, watching, clock):
    clock.move(days=3)
    fill(watching, 1, 2, 3)

    (node,) = observer.observations(store, "ada")
    assert ("chunk", "observation:ada", "something was said\n  - in detail") == (
        node.kind,
        node.scope,
        node.text,
    )
    assert day("2026-01-30") == node.valid_from
    assert clock.now <= node.tx_from < clock.now + timedelta(seconds=1)
    assert {"priority": "HIGH", "details": ["- in detail"]} == node.content["metadata"]
    assert ["observation"] == [hit.layer for hit in Memory(store).recall("something", user="ada")]


def test_an_observation_leads_back_to_what_was_said(store, watching):
    fill(watching, 1, 2, 3)
    (node,) = observer.observations(store, "ada")
    (link,) = store.links_from(node.id, "derived_from")
    said = [store.event(each.target).description for each in store.links_from(link.target, "derived_from")]

    assert ["message 1", "message 2", "message 3"] == said


def test_threads_and_users_are_apart(store, watching, compress):
    fill(watching, 1, 2)
    fill(watching, 3, 4, thread="t2")
    fill(watching, 5, 6, thread=None)
    fill(watching, 7, 8, user="bob")

    assert [] == compress.given
    assert [["message 3", "message 4"], ["message 5", "message 6"], ["message 7", "message 8"]] == [
        queued(store, "ada", "t2"), queued(store, "ada"), queued(store, "bob", "t1"),
    ]  # fmt: skip


def test_what_is_queued_survives_a_restart(tmp_path, clock, compress):
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        fill(Observer(store, compress, threshold=3), 1, 2)
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        assert ["message 1", "message 2"] == queued(store, "ada", "t1")
        fill(Observer(store, compress, threshold=3), 3)
        assert ["something was said\n  - in detail"] == noticed(store, "ada")
    assert [["message 1", "message 2", "message 3"]] == compress.given


def test_the_queue_is_there_as_it_was(store, watching, clock):
    fill(watching, 1, 2)
    before = clock.now + timedelta(seconds=1)
    clock.move(days=1)
    fill(watching, 3)

    assert ["message 1", "message 2"] == queued(store.as_of(valid=before), "ada", "t1")
    assert ["message 1", "message 2"] == queued(store.knowledge_at(before), "ada", "t1")
    assert [] == queued(store, "ada", "t1")


def test_a_text_is_a_message_of_the_timeline(store, watching, clock):
    watching.enqueue("hello", user="ada", thread="t1", sender="agent")
    (event,) = timeline.messages(store, thread="t1")

    assert ("TEXT", "hello", "agent", True, {"user": "ada"}) == (
        event.type, event.description, event.sender, event.authorized, event.metadata,
    )  # fmt: skip
    assert ["agent"] == [message.sender for message in observer.queue(store, "ada", "t1")]


def test_a_message_of_the_timeline_is_queued_with_its_sender(store, watching):
    watching.enqueue(timeline.record_message(store, "TEXT", "hello", sender="u7"), user="ada")
    watching.enqueue(timeline.record_message(store, "TEXT", "hi", sender="u8", sender_name="Bob"), user="ada")
    watching.enqueue(
        timeline.record_message(store, "IMAGE", media_path="/a/cat.png", sender="u7"), user="ada"
    )
    assert [("u7", "hello"), ("Bob", "hi"), ("u7", "[IMAGE /a/cat.png]")] == [
        (message.sender, message.text) for message in observer.messages(store, "ada")
    ]


def test_a_message_said_otherwise_since_is_neither_compressed_nor_told(store, compress):
    watching = Observer(store, compress, threshold=3)
    for number, text in enumerate(("we meet at nine", "we meet at ten")):
        timeline.record_message(store, "TEXT", text, sender="ada", thread="t1", id=f"m{number}")
        watching.enqueue(store.event(f"m{number}"), user="ada", thread="t1")
    store.supersede("m0", by="m1")
    assert ["we meet at ten"] == [message.text for message in observer.messages(store, "ada", "t1")]
    watching.observe("ada", "t1")
    assert [["we meet at ten"]] == compress.given
    assert [] == queued(store, "ada", "t1")


def test_an_event_that_is_there_already_is_queued_once(store, watching):
    recorded = store.record_event("TEXT", "hello from the timeline", id="e1", agent="ada")
    watching.enqueue(recorded, user="ada", thread="t1")
    watching.enqueue(store.event("e1"), user="ada", thread="t1")
    (message,) = observer.queue(store, "ada", "t1")

    assert ("e1", "hello from the timeline", "ada") == (message.id, message.text, message.sender)
    assert 1 == store.stats()["events"]
    watching.observe("ada", "t1")
    assert watching.enqueue(recorded, user="ada", thread="t1") is None
    assert [] == queued(store, "ada", "t1")


def test_without_a_compressor_the_messages_are_kept(store, clock):
    watching = Observer(store, threshold=2)
    said = clock.now
    fill(watching, 1, 2)

    assert ["ada: message 1", "ada: message 2"] == noticed(store, "ada")
    first, *_ = observer.observations(store, "ada")
    assert said <= first.valid_from < said + timedelta(seconds=1)


def test_a_compressor_that_fails_loses_nothing(store, watching, compress):
    compress.text = RuntimeError("no model")
    done = fill(watching, 1, 2, 3)
    assert ("RuntimeError: no model", 0, ()) == (done.error, done.messages, done.observations)
    assert ["message 1", "message 2", "message 3"] == queued(store, "ada", "t1")
    assert fill(watching, 4, 5) is None
    assert "RuntimeError: no model" == fill(watching, 6).error

    compress.text = "- [LOW] at last"
    (done,) = watching.tick()
    assert (6, ["at last"]) == (done.messages, noticed(store, "ada"))
    assert [] == watching.tick()


def test_what_an_earlier_process_left_is_compressed_by_a_tick(store, compress):
    broken = Observer(store, Compressor(RuntimeError("no model")), threshold=2)
    fill(broken, 1, 2)
    fill(broken, 3, thread="t2")

    assert [("ada", "t1", 2)] == [
        (done.user, done.thread, done.messages) for done in Observer(store, compress, threshold=2).tick()
    ]


def test_what_gives_no_text_is_an_error_and_nothing_is_lost(store, watching, compress):
    compress.text = None
    assert "is no text" in fill(watching, 1, 2, 3).error
    assert 3 == len(queued(store, "ada", "t1"))


def test_text_that_cannot_be_kept_is_an_error_and_nothing_is_lost(store, watching, compress):
    compress.text = "- [LOW] a\ud800b"
    assert "lone surrogate" in fill(watching, 1, 2, 3).error
    assert 3 == len(queued(store, "ada", "t1"))


def test_what_is_noticed_twice_is_one_observation(watching, compress):
    compress.text = "- [LOW] tea\n- [HIGH] tea"
    assert ["tea"] == [node.text for node in fill(watching, 1, 2, 3).observations]


def test_what_comes_while_others_are_compressed_waits(store):
    def compress(messages):
        watching.enqueue("late", user="ada", thread="t1", sender="bob")
        return "- [LOW] noticed"

    watching = Observer(store, compress, threshold=5)
    fill(watching, 1, 2)
    assert 2 == watching.observe("ada", "t1").messages
    (late,) = observer.queue(store, "ada", "t1")
    assert ("late", "bob") == (late.text, late.sender)
    assert ["message 1", "message 2", "late"] == [
        message.text for message in observer.messages(store, "ada", "t1")
    ]


def test_what_somebody_else_compressed_meanwhile_is_not_noticed_twice(store):
    others = []

    def compress(messages):
        others.append(Observer(store, lambda messages: "- [LOW] by another").observe("ada", "t1"))
        watching.enqueue("late", user="ada", thread="t1")
        return "- [LOW] too late"

    watching = Observer(store, compress, threshold=5)
    fill(watching, 1, 2)
    assert 0 == watching.observe("ada", "t1").messages
    assert ([2], ["by another"], ["late"]) == (
        [done.messages for done in others],
        noticed(store, "ada"),
        queued(store, "ada", "t1"),
    )


def test_a_message_yet_to_be_said_is_compressed_when_it_was(store, watching, clock):
    fill(watching, 1)
    watching.enqueue("tomorrow", user="ada", thread="t1", occurred_at=clock.now + timedelta(days=1))
    assert 1 == watching.observe("ada", "t1").messages
    assert [] == queued(store, "ada", "t1")
    clock.move(days=1)
    assert ["tomorrow"] == queued(store, "ada", "t1")


def test_a_retracted_message_is_not_compressed(store, watching, compress):
    fill(watching, 1, 2)
    store.retract(observer.queue(store, "ada", "t1")[0].id, reason="wrong window")
    watching.observe("ada", "t1")

    assert [["message 2"]] == compress.given


def test_lines_written_otherwise_are_kept_and_told(store, watching, compress):
    compress.text = "## 2026-01-30\nnothing neat"
    done = fill(watching, 1, 2, 3)

    assert ["nothing neat"] == noticed(store, "ada")
    assert ("line 2: ",) == tuple(warning[:8] for warning in done.warnings)


def test_observations_are_in_the_order_of_date_and_priority(store, watching, compress):
    compress.text = (
        "## 2026-01-30\n- [LOW] b\n- [HIGH] a\n- unsaid\n## 2026-01-29\n- [MEDIUM] before\n- [HIGH] first"
    )
    fill(watching, 1, 2, 3)

    assert ["first", "before", "a", "b", "unsaid"] == noticed(store, "ada")
    assert ["first", "before"] == noticed(store.as_of(valid="2026-01-29"), "ada")
    assert [] == noticed(store, "ada", "t2")
    assert [] == noticed(store, "bob")
    assert 5 == len(noticed(store))


def test_a_reflection_supersedes_what_it_names(store, compress, clock):
    watching = Observer(
        store,
        compress,
        reflect=lambda known: f"- [HIGH] [SUPERSEDES {known[0].id}, nobody] said in short",
        threshold=3,
    )
    compress.text = "## 2026-01-30\n- [HIGH] said at length\n- [LOW] lunch is at noon"
    fill(watching, 1, 2, 3)
    (old, other) = observer.observations(store, "ada")
    before = clock.now + timedelta(seconds=1)
    clock.move(days=1)
    done = watching.reflect("ada")

    assert (old.id,) == done.superseded
    assert "'nobody' is not superseded" in done.warnings[0]
    assert ["lunch is at noon", "said in short"] == noticed(store, "ada")
    assert ["said at length", "lunch is at noon"] == noticed(store.knowledge_at(before), "ada")
    assert [node.id for node in done.observations] == [
        node.id for node in store.what_superseded(old.id).current
    ]
    assert [] == store.shaky()
    assert other.id in [node.id for node in observer.observations(store, "ada")]


def test_a_reflection_supersedes_nobody_elses(store, compress):
    fact = store.add_node("fact", {"says": "x"})
    theirs = Memory(store).remember("bob's own", layer="observation", user="bob")
    watching = Observer(
        store,
        compress,
        reflect=lambda known: f"- [HIGH] [SUPERSEDES {fact.id}, {theirs.id}] all mine",
        threshold=1,
    )
    fill(watching, 1)
    done = watching.reflect("ada")

    assert ((), 2) == (done.superseded, len(done.warnings))
    assert "is no observation of 'ada'" in done.warnings[0]
    assert ["stands", "stands"] == [store.node(id).standing for id in (fact.id, theirs.id)]


def test_a_reflection_that_fails_changes_nothing(store, compress):
    watching = Observer(store, compress, reflect=lambda known: 1 / 0, threshold=1)
    fill(watching, 1)

    assert "ZeroDivisionError: division by zero" == watching.reflect("ada").error
    assert 1 == len(noticed(store, "ada"))
    assert watching.reflect("bob").error is None
    with pytest.raises(InvalidError, match="cannot reflect"):
        Observer(store).reflect("ada")


def test_nothing_is_asked_within_a_transaction(store, watching, compress):
    with store.transaction():
        assert fill(watching, 1, 2, 3) is None
        with pytest.raises(InvalidError, match="inside transaction"):
            watching.observe("ada", "t1")
    assert [] == compress.given
    assert 4 == fill(watching, 4).messages


def test_the_latest_messages_of_a_thread(store, watching):
    fill(watching, *range(8))

    assert [f"message {number}" for number in range(3, 8)] == [
        message.text for message in observer.messages(store, "ada", "t1", 5)
    ]
    assert 8 == len(observer.messages(store, "ada", "t1"))
    assert [] == observer.messages(store, "ada", "t9")


def test_many_batches_are_one_after_the_other(store, compress):
    watching = Observer(store, compress, threshold=1)
    fill(watching, *range(21))

    assert [node.content["number"] for node in store.nodes("message_batch")] == list(range(1, 22))
    assert [] == queued(store, "ada", "t1")
    assert 21 == len(compress.given)


@pytest.mark.parametrize("how", ["erase", "retract", "supersede"])
def test_what_became_of_a_message_shakes_what_was_noticed_of_it_and_no_other_message(
    store, watching, clock, how
):
    fill(watching, 1, 2, 3)
    one, *others = observer.messages(store, "ada", "t1")
    clock.move(days=1)
    if how == "supersede":
        store.supersede(one.id, by=timeline.record_message(store, "TEXT", "message one").event.id)
    else:
        getattr(store, how)(one.id, reason="asked for")

    assert ["shaky"] == [node.standing for node in observer.observations(store, "ada")]
    assert ["stands", "stands"] == [store.event(other.id).standing for other in others]


def test_a_message_taken_back_before_it_was_compressed_shakes_nothing(store, watching, clock):
    fill(watching, 1, 2)
    store.retract(observer.messages(store, "ada", "t1")[0].id, reason="a slip")
    clock.move(days=1)
    fill(watching, 3, 4)

    assert ["stands"] == [node.standing for node in observer.observations(store, "ada")]
    assert [] == store.shaky()


def test_a_batch_taken_back_shakes_what_was_noticed_and_no_message(store, watching):
    fill(watching, 1, 2, 3)
    (batch,) = store.nodes("message_batch")
    store.retract(batch.id, reason="it was a test")

    assert ["shaky"] == [node.standing for node in observer.observations(store, "ada")]
    assert {"stands"} == {event.standing for event in store.events()}


def test_an_observation_outlives_the_message_it_was_derived_from(store, watching, clock):
    said = timeline.record_message(store, "TEXT", "on call in March", sender="ada").event
    seen = Memory(store).remember("Ada is on call in March", layer="observation", user="ada")
    store.link(seen.id, "derived_from", said.id)
    clock.move(days=31)
    store.evict(ids=[said.id])

    assert ("stands", []) == (store.node(seen.id).standing, store.shaky())
    store.erase(said.id, reason="asked for")
    assert "shaky" == store.node(seen.id).standing


def test_what_was_derived_from_a_chunk_past_its_time_is_shaky_until_it_is_confirmed(store, clock):
    chunk = Memory(store).remember("on call in March", layer="conversation", user="ada")
    seen = Memory(store).remember("Ada is on call in March", layer="observation", user="ada")
    store.link(seen.id, "derived_from", chunk.id)
    clock.move(days=31)
    assert 1 == len(lifecycle.run(store).expired)

    assert "shaky" == store.node(seen.id).standing
    store.confirm(seen.id, reason="she says so")
    assert "stands" == store.node(seen.id).standing


def test_an_evicted_message_shakes_nothing(store, watching):
    fill(watching, 1, 2, 3)
    store.evict(ids=[message.id for message in observer.messages(store, "ada", "t1")])

    assert [] == store.shaky()
    assert 1 == len(noticed(store, "ada"))


@pytest.mark.parametrize(
    "wrong", [{"message": " "}, {"message": 3}, {"user": ""}, {"thread": 3}, {"sender": 3}]
)
def test_wrong_messages_are_refused(store, watching, wrong):
    with pytest.raises(InvalidError):
        watching.enqueue(**{"message": "a", "user": "ada", **wrong})
    assert 0 == store.stats()["events"]
    with pytest.raises(InvalidError):
        Observer(store, "no function")
    with pytest.raises(InvalidError):
        Observer(store, threshold=0)
