"""The observer: messages queue up, are compressed when there are enough, and what was noticed leads back to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

import graphstore
from graphstore import InvalidError, context, lifecycle, observer, timeline
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


def test_without_a_compressor_the_messages_wait(store, clock, compress):
    watching = Observer(store, threshold=2)
    assert fill(watching, 1, 2, 3) is None
    done = watching.observe("ada", "t1")
    assert ((), 0, None) == (done.observations, done.messages, done.error)
    assert "there is no compressor" in done.warnings[0]
    clock.move(days=9)
    assert ([], []) == (watching.tick(), noticed(store, "ada"))

    assert [3] == [done.messages for done in Observer(store, compress, threshold=2).tick()]


# ---------------------------------------------------------------- when it is enough


def test_a_queue_is_compressed_when_its_first_message_has_waited_for_a_day(store, compress, clock):
    watching = Observer(store, compress, idle=timedelta(days=9))
    fill(watching, 1)
    for _ in range(23):
        clock.move(hours=1)
        fill(watching, 2)
        assert [] == watching.tick()
    clock.move(hours=1)
    assert [24] == [done.messages for done in watching.tick()]
    assert [] == watching.tick()
    fill(watching, 3)
    clock.move(hours=23)
    assert [] == watching.tick()


def test_a_thread_that_is_silent_is_compressed(store, compress, clock):
    watching = Observer(store, compress, idle=timedelta(minutes=30))
    fill(watching, 1)
    clock.move(minutes=20)
    fill(watching, 2)
    clock.move(minutes=20)
    assert [] == watching.tick()
    clock.move(minutes=10)
    assert [2] == [done.messages for done in watching.tick()]


def test_all_threads_of_a_user_are_compressed_when_they_have_enough_together(store, compress):
    watching = Observer(store, compress, threshold=10)
    for number in range(3):
        fill(watching, 1, 2, 3, thread=f"t{number}")
    fill(watching, 1, 2, 3, user="bob")
    assert [] == watching.tick()
    fill(watching, 4, thread="t0")
    assert [("ada", "t0", 4), ("ada", "t1", 3), ("ada", "t2", 3)] == sorted(
        (done.user, done.thread, done.messages) for done in watching.tick()
    )
    assert 3 == len(queued(store, "bob", "t1"))


def test_a_thread_that_ends_is_compressed(store, compress):
    watching = Observer(store, compress)
    fill(watching, 1)
    assert 2 == watching.enqueue("good-bye", user="ada", thread="t1", end=True).messages
    fill(watching, 3)
    fill(watching, 4, user="bob")
    assert [1] == [done.messages for done in watching.close("ada", "t1")]
    with Observer(store, compress) as block:
        fill(block, 5, thread="t5")
    assert ([], []) == (queued(store, "bob", "t1"), queued(store, "ada", "t5"))


def test_a_thread_that_ends_within_a_transaction_is_compressed_by_the_next_tick(store, compress):
    watching = Observer(store, compress)
    with store.transaction():
        assert watching.enqueue("good-bye", user="ada", thread="t1", end=True) is None
    assert [1] == [done.messages for done in watching.tick()]


def test_what_others_queue_is_compressed_by_the_observer_that_is_lent(store, compress):
    lent = Observer(store, compress, threshold=3)
    lent.lend()
    assert fill(Observer(store), 1, 2, 3) is None
    assert [3] == [done.messages for done in lent.tick()]
    Observer(store).enqueue("good-bye", user="ada", thread="t1", end=True, author="ana")
    assert "ana" == store.changes()[-1].author
    assert [1] == [done.messages for done in lent.tick()]


def test_who_asks_for_it_is_the_author_of_what_was_noticed(store, compress):
    watching = Observer(store, compress)
    fill(watching, 1)
    (node,) = watching.observe("ada", "t1", author="ana").observations
    assert ("ana", "ana") == (node.author, store.changes()[-1].author)


# ---------------------------------------------------------------- what stands is known to it


def test_a_compressor_names_what_a_new_observation_replaces(store, clock):
    def compress(messages, observations):
        dated = [node for node in observations if "launch" in node.text]
        mark = f"[SUPERSEDES {dated[0].id}] " if dated else ""
        return f"- [HIGH] {mark}the launch is on {messages[-1].text}"

    watching = Observer(store, compress, threshold=1)
    watching.enqueue("12 March", user="ada", thread="t1")
    clock.move(days=1)
    done = watching.enqueue("13 March", user="ada", thread="t2")

    assert ["the launch is on 13 March"] == noticed(store, "ada")
    assert 1 == len(done.superseded)
    assert ["the launch is on 12 March"] == noticed(store.knowledge_at(clock.now - timedelta(hours=1)), "ada")


@pytest.mark.parametrize(
    "compress",
    [
        lambda messages, *, observations: f"- [LOW] {len(observations)} known",
        lambda *given: f"- [LOW] {len(given[1])} known",
    ],
)
def test_the_observations_that_stand_are_given_to_who_takes_them(store, compress):
    Memory(store).remember("tea at noon", layer="observation", user="ada")
    Memory(store).remember("bob's own", layer="observation", user="bob")
    fill(Observer(store, compress, threshold=1), 1)
    assert "1 known" in noticed(store, "ada")


def test_a_reflection_is_had_so_often_when_something_is_new(store, clock):
    asked = []

    def reflect(known):
        asked.append([node.text for node in known])
        return f"- [HIGH] [SUPERSEDES {', '.join(node.id for node in known)}] all {len(asked)}"

    watching = Observer(
        store,
        lambda messages: "".join(f"- [LOW] {each.text}\n" for each in messages),
        reflect=reflect,
        threshold=1,
    )
    fill(watching, 1)
    assert [] == watching.tick()
    clock.move(minutes=1)
    fill(watching, 2)
    clock.move(minutes=1)
    watching.tick()
    assert ([["message 1", "message 2"]], ["all 1"]) == (asked, noticed(store, "ada"))
    clock.move(days=2)
    watching.tick()
    assert 1 == len(asked)
    fill(watching, 3)
    watching.tick()
    assert (["all 1", "message 3"], ["all 2"]) == (asked[-1], noticed(store, "ada"))
    clock.move(hours=20)
    fill(watching, 4)
    watching.tick()
    assert 2 == len(asked)


def test_a_reflection_that_fails_is_tried_again_with_the_next_tick(store, clock):
    wrong = [1]
    watching = Observer(
        store,
        lambda messages: "- [LOW] a\n- [LOW] b",
        reflect=lambda known: "- [LOW] c" if not wrong else 1 / 0,
        threshold=1,
    )
    fill(watching, 1)
    clock.move(minutes=1)
    assert ["ZeroDivisionError: division by zero"] == [done.error for done in watching.tick()]
    wrong.clear()
    assert [None] == [done.error for done in watching.tick()]


# ---------------------------------------------------------------- groups


def test_what_is_noticed_in_a_group_reaches_who_spoke_there(store, compress):
    watching = Observer(store, compress, threshold=3)
    for who in ("ada", "bob", "helper"):
        role = {"role": "agent"} if who == "helper" else {}
        event = timeline.record_message(store, "TEXT", f"said by {who}", sender=who, thread="g", **role)
        watching.enqueue(event, user="team", thread="g")

    for member in ("team", "ada", "bob"):
        assert ["something was said\n  - in detail"] == noticed(store, member)
        assert "something was said" in context.context(store, member).text
    assert ([], []) == (noticed(store, "carol"), noticed(store, "helper"))


def test_members_of_a_group_are_told_what_was_noticed_of_any_of_them(store, compress):
    observer.set_members(store, "g", ["carol", "ada", "bob"])
    fill(Observer(store, compress, threshold=3), 1, 2, 3, thread="g")
    assert ["ada", "bob", "carol"] == observer.members(store, "g")
    assert 1 == len(noticed(store, "carol")) == len(noticed(store, "bob"))
    observer.set_members(store, "g", ["ada", "bob"])
    assert [] == noticed(store, "carol")
    observer.set_members(store, "g", [])
    assert ([], []) == (noticed(store, "bob"), observer.members(store, "g"))


def test_threads_of_one_name_that_users_have_apart_are_no_group(store, compress):
    watching = Observer(store, compress, threshold=3)
    fill(watching, 1, 2, 3)
    fill(watching, 4, user="bob")
    assert [] == noticed(store, "bob")


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
