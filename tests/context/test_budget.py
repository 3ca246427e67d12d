"""Two weeks of chat in 4,000 tokens: what is asked, what is HIGH and what was retrieved are told, each section within its share."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import InvalidError, context, timeline
from graphstore.context import budget
from graphstore.context.feeders import AutoIndexer, SoulFileIndexer
from graphstore.memory import Memory

pytestmark = pytest.mark.in_process("it fills the store by the functions of this process")

QUESTION = "which port does the billing gateway listen on?"
ANSWER = "the billing gateway listens on port 7443 behind the proxy"
SUBJECTS = ("parser", "invoice", "login", "cache", "report", "search", "mailer")


def says(store, sender, text):
    timeline.record_message(store, "TEXT", text, sender=sender, thread="t1")


@pytest.fixture
def weeks(store, clock, tmp_path):
    """Fourteen days: forty exchanges a day, indexed in pairs, and nine observations a day."""
    (tmp_path / "AGENTS.md").write_text(
        "".join(f"## Rule {n}\nKeep rule {n}: {'do it with care ' * 9}\n" for n in range(20)),
        encoding="utf-8",
    )
    SoulFileIndexer(store).index(tmp_path)
    indexer = AutoIndexer(Memory(store), batch=50)
    for day in range(14):
        clock.move(days=1)
        for number in range(40):
            subject = SUBJECTS[(day + number) % len(SUBJECTS)]
            asked = f"on day {day} please look at item {number} of the {subject}, it seems slow again"
            answered = f"item {number} of the {subject} was slow because its queue number {day * 40 + number} was full"
            if (day, number) == (2, 7):
                asked, answered = "where is billing reachable?", ANSWER
            says(store, "ada", asked), says(store, "agent", answered)
            indexer.add(asked, answered, user="ada", thread="t1")
            clock.move(minutes=9)
        for number, priority in enumerate(("HIGH", "HIGH", *["MEDIUM"] * 3, *["LOW"] * 4)):
            Memory(store).remember(
                f"{priority.lower()} point {number} of day {day}: the {SUBJECTS[number % 7]} was looked at by the team",
                layer="observation", user="ada", valid_from=clock.now, metadata={"priority": priority},
            )  # fmt: skip
    indexer.close()
    says(store, "ada", "so what else is there?"), says(store, "agent", "nothing else is open")
    clock.move(minutes=1)
    says(store, "ada", QUESTION)
    clock.move(minutes=1)
    return store


def of(found, name):
    return next(each.text for each in found.sections if each.name == name)


def told(weeks, **more):
    return context.context(weeks, "ada", "t1", QUESTION, 4_000, **more)


def test_two_weeks_of_chat_keep_what_an_agent_cannot_do_without(weeks):
    found = told(weeks)

    assert found.tokens <= 4_000
    assert found.tokens > 3_000
    for text in (QUESTION, "so what else is there?", "nothing else is open"):
        assert text in of(found, "conversation")
    assert ANSWER in of(found, "memory")
    assert 28 == found.text.count("[HIGH]")
    assert "Today is Wednesday, 2026-02-18" in found.text
    assert ["working", "skills"] == [each.name for each in found.sections if not each.text]


def test_old_observations_of_low_priority_go_first(weeks, clock):
    whole = context.context(weeks, "ada", "t1", QUESTION)
    found = context.context(weeks, "ada", "t1", QUESTION, whole.tokens - 100)
    (out,) = found.left_out
    nodes = [weeks.node(id) for id in out.ids]

    assert "observations" == out.section
    assert {"LOW"} == {node.content["metadata"]["priority"] for node in nodes}
    assert all(clock.now - node.valid_from > timedelta(days=7) for node in nodes)


def test_a_section_has_its_floor_and_its_ceiling(weeks):
    for section, share in (("bootstrap", 0.1), ("memory", 0.1), ("conversation", 0.05)):
        budget.set_share(weeks, section, floor=share / 2, ceiling=share)
    found = told(weeks)
    for section, share in (("bootstrap", 0.1), ("memory", 0.1), ("conversation", 0.05)):
        assert share * 4_000 / 2 < context.estimate(of(found, section)) <= share * 4_000
    assert QUESTION in found.text


def test_a_floor_is_kept_while_others_have_more(weeks):
    for section, floor in (("observations", 0.0), ("memory", 0.4), ("conversation", 0.3)):
        budget.set_share(weeks, section, floor=floor)
    asked = "which item of the login was slow, because which queue was full?"
    whole = context.context(weeks, "ada", "t1", asked, k=60, recent=80)
    found = context.context(weeks, "ada", "t1", asked, 4_000, k=60, recent=80)

    for section, floor in (("memory", 0.4), ("conversation", 0.3)):
        assert context.estimate(of(whole, section)) > floor * 4_000
        assert context.estimate(of(found, section)) >= floor * 4_000
    assert QUESTION in found.text
    assert 3_900 < found.tokens <= 4_000


def test_what_the_conversation_says_is_not_recalled_again(store, clock):
    indexer = AutoIndexer(Memory(store))
    for asked, answered in (
        ("where is the harbour office?", "the harbour office is on pier 4"),
        ("and the harbour crane?", "the harbour crane is on pier 9"),
    ):
        says(store, "ada", asked), says(store, "agent", answered)
        indexer.add(asked, answered, user="ada", thread="t1")
        clock.move(minutes=1)
    indexer.close()
    both = context.context(store, "ada", "t1", "harbour")
    short = context.context(store, "ada", "t1", "harbour", recent=2)

    assert "" == of(both, "memory")
    assert "pier 4" in of(short, "memory")
    assert 1 == short.text.count("pier 9")


def test_what_there_was_no_room_for_above_may_be_recalled(store, clock):
    for number in range(200):
        Memory(store).remember(
            f"low point {number}: somebody walked by",
            layer="observation",
            user="ada",
            valid_from="2026-01-01",
            metadata={"priority": "LOW"},
        )
    Memory(store).remember(
        "the zeppelin lands at noon",
        layer="observation",
        user="ada",
        valid_from="2025-12-01",
        metadata={"priority": "LOW"},
    )
    found = context.context(store, "ada", None, "zeppelin", 300)

    assert 1 == found.text.count("zeppelin")
    assert "zeppelin" in of(found, "memory")


def test_a_very_long_last_message_is_cut_in_its_middle(store):
    pasted = "look at this: " + "line of a log; " * 4_000 + "why does it fail?"
    says(store, "ada", pasted)
    found = context.context(store, "ada", "t1", "", 1_000)

    assert found.tokens <= 1_000
    assert "look at this" in found.text and "why does it fail?" in found.text
    assert "… (cut) …" in found.text


def test_messages_of_one_speaker_are_one_turn():
    assert {5: budget.QUESTION, 3: budget.EXCHANGE, 2: budget.EXCHANGE} == budget.said_last(
        ["a", "b", "a", "b", "a", "a"]
    )
    assert {1: budget.QUESTION, 0: budget.EXCHANGE} == budget.said_last([None, None])
    assert {} == budget.said_last([])


@pytest.mark.parametrize(
    "wrong",
    [
        ("nowhere", 0.1, None),
        ("memory", 1.5, None),
        ("memory", 0.6, 0.5),
        ("memory", True, None),
        ("memory", 0.5, None),
    ],
)
def test_a_share_that_cannot_be_is_refused_and_changes_nothing(store, wrong):
    before = budget.shares(store)
    with pytest.raises(InvalidError):
        budget.set_share(store, *wrong)
    assert before == budget.shares(store)


def test_shares_are_kept_in_the_store(disk_store, clock):
    import graphstore

    budget.set_share(disk_store, "memory", floor=0.05, ceiling=0.9)
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as again:
        assert budget.Share(floor=0.05, ceiling=0.9) == budget.shares(again)["memory"]
