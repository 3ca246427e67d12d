"""What a briefing says, of whom, since when, in how many tokens, and what it never says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError
from graphstore.values.text import estimate
from tests.conftest import Clock, day

pytestmark = pytest.mark.served


def section(found: Any, name: str) -> list[str]:
    """The ids of a section, in order."""
    return [line.id for one in found.sections if one.name == name for line in one.lines]


def text_of(found: Any, name: str) -> str:
    return "\n".join(line.text for one in found.sections if one.name == name for line in one.lines)


def test_an_empty_store_says_how_to_begin(store: GraphStore) -> None:
    found = store.brief("ana")

    assert "To begin:" in found.text
    assert () == found.sections
    assert "add-node" in str(found)


def test_decisions_and_facts_come_by_weight(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "the logo is blue"}, id="logo")
    store.add_node("fact", {"says": "logins are tokens"}, id="tokens")
    store.add_node("decision", {"says": "we deploy on Thursdays"}, id="thursday")
    store.add_node("fact", {"says": "trivial", "importance": 0.0}, id="trivial")
    for number in range(3):
        store.add_node("fact", {"says": f"session {number}"}, id=f"on{number}", derived_from=["tokens"])
    clock.move(days=1)
    store.confirm("tokens", reason="asked the team")

    found = store.brief()

    assert ["tokens", "thursday"] == section(found, "standing")[:2]
    assert "trivial" == section(found, "standing")[-1]
    assert "confirmed 1 times, 3 rest on it" in text_of(found, "standing")


def test_what_is_new_outweighs_what_nobody_affirmed_for_a_year(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "an old fact"}, id="old")
    clock.move(days=400)
    store.add_node("fact", {"says": "a new fact"}, id="new")

    assert ["new", "old"] == section(store.brief(), "standing")


def test_the_changes_are_those_since_the_last_visit(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "the office is in Berlin"}, id="office", scope="hq")
    first = store.brief("ana")
    assert first.last_visit is None
    assert "no earlier visit of ana is recorded" in first.text
    assert ["office"] == section(first, "changed")

    clock.move(hours=1)
    store.add_node("fact", {"says": "the printer is broken"}, id="printer")
    second = store.brief("ana")
    assert ["printer"] == section(second, "changed")
    assert "since your last visit" in second.text

    third = store.brief("ana")
    assert [] == section(third, "changed")
    assert "Changed since your last visit (2026-02-01 01:00Z): nothing." in third.text
    assert ["printer", "office"] == section(store.brief("ben"), "changed")
    assert ["printer", "office"] == section(store.brief(), "changed")
    assert ["printer", "office"] == section(store.brief("ana", since="2026-01-01"), "changed")


def test_what_ended_was_replaced_or_taken_back_is_a_change_with_its_reason(
    store: GraphStore, clock: Clock
) -> None:
    for id in ("ended", "taken", "old"):
        store.add_node("fact", {"says": f"it is {id}"}, id=id)
    store.brief("ana")
    clock.move(hours=1)
    store.end("ended", reason="it is over")
    store.retract("taken", reason="a mix-up")
    store.add_node("fact", {"says": "it is new"}, id="new", supersedes=["old"], reason="it moved")

    said = text_of(store.brief("ana"), "changed")

    assert "it is ended (ended" in said and "it is over" in said
    assert "it is taken (retracted" in said and "a mix-up" in said
    assert "it is old (superseded" in said
    assert "it is new (added" in said


def test_an_agent_is_told_which_of_its_answers_no_longer_hold_once(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "the office is in Berlin"}, id="office")
    assert ["office"] == section(store.brief("ana"), "standing")
    clock.move(days=1)
    store.retract("office", reason="a mix-up")
    clock.move(days=1)

    found = store.brief("ana")

    assert ["office"] == section(found, "outdated")
    assert "since then retracted" in text_of(found, "outdated") and "a mix-up" in text_of(found, "outdated")
    assert [] == section(store.brief("ana"), "outdated")
    assert [] == section(store.brief("ben"), "outdated")


def test_open_items_are_tasks_questions_and_events_that_nobody_resolved(store: GraphStore) -> None:
    store.add_node("task", {"says": "write the guide"}, id="todo")
    store.add_node("task", {"says": "write the guide", "status": "Done"}, id="finished")
    store.add_node("question", {"says": "which region?"}, id="asked")
    store.add_node("question", {"says": "which cloud?"}, id="answered")
    store.add_node("decision", {"says": "one cloud"}, id="cloud")
    store.link("answered", "resolved_by", "cloud")
    store.record_event("error", "disk full", id="full")
    store.record_event("error", "out of memory", id="memory")
    store.record_event("fix", "more memory", id="more", related_to=["memory"])
    store.record_event("commit", "a change", id="change")

    assert {"todo", "asked", "full"} == set(section(store.brief(), "open"))


def test_contradictions_shaky_things_and_plans_have_their_sections(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "logins are tokens"}, id="a")
    store.add_node("fact", {"says": "logins are cookies"}, id="b")
    store.link("b", "contradicts", "a")
    store.add_node("fact", {"service": "api", "port": 80}, id="c")
    store.add_node("fact", {"service": "api", "port": 8080}, id="d")
    store.add_node("fact", {"says": "the base"}, id="base")
    store.add_node("fact", {"says": "rests on it"}, id="top", derived_from=["base"])
    store.retract("base", reason="measured wrongly")
    store.add_node("fact", {"says": "the office moves"}, id="move", valid_from=clock.now + timedelta(days=5))
    store.add_node("fact", {"says": "far ahead"}, id="far", valid_from=clock.now + timedelta(days=300))
    store.add_node("task", {"says": "renew the certificate", "due": "2026-01-28"}, id="renew")

    found = store.brief()

    assert ["b", "d"] == section(found, "contradictions")
    assert "contradicts a: logins are tokens" in text_of(found, "contradictions")
    assert "may contradict about port of api c" in text_of(found, "contradictions")
    assert ["top"] == section(found, "shaky")
    assert "base, on which it rests, is retracted because: measured wrongly" in text_of(found, "shaky")
    assert "measured wrongly" in text_of(found, "shaky")
    assert ["renew", "move"] == section(found, "plans")
    assert "was due 2026-01-28, 4 days ago" in text_of(found, "plans")
    assert "in 5 days" in text_of(found, "plans")
    assert "renew" not in section(found, "open")


def test_what_agents_decided_and_left_unfinished_in_sessions_is_told(store: GraphStore) -> None:
    piece = {
        "classification": {"project": "/home/ana/api"},
        "content": {
            "title": "add a cache", "summary": "added a cache", "outcome": "partial",
            "keyDecisions": [{"what": "use Redis", "why": "it is there", "alternativesConsidered": []}],
        },
        "lessons": {"project": [{"summary": "flush the cache first", "confidence": "high"}]},
    }  # fmt: skip
    store.add_node("segment", piece, id="seg")
    store.add_node("segment", piece, id="again")
    store.add_node("segment", {"content": "of another shape", "lessons": 7}, id="odd")

    found = store.brief(project="api")

    assert "use Redis" in text_of(found, "standing") and "flush the cache first" in text_of(found, "standing")
    assert 1 == found.text.count("use Redis"), "the same words are one decision"
    assert "- again [decision] use Redis because: it is there" in found.text
    assert "- seg [segment] add a cache (partial" in text_of(found, "open")
    assert "use Redis" not in store.brief(project="shop").text


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"user": "ana"}, {"of-ana", "of-nobody", "api", "shop", "here", "there"}),
        ({"project": "/code"}, {"of-ana", "of-ben", "of-nobody", "shop", "here", "there"}),
        ({"project": "/home/x/api"}, {"of-ana", "of-ben", "of-nobody", "api", "here", "there"}),
        ({"path": "src"}, {"of-ana", "of-ben", "of-nobody", "api", "shop", "here"}),
        ({"path": "src/a.py", "user": "ben", "project": "shop"}, {"of-ben", "of-nobody", "shop", "here"}),
    ],
)
def test_what_names_another_user_project_or_path_is_left_out(
    store: GraphStore, asked: Any, kept: set[str]
) -> None:
    for id, content in {
        "of-ana": {"user": "ana"}, "of-ben": {"metadata": {"user": "ben"}}, "of-nobody": {}, "api": {"project": "api"},
        "shop": {"project": "/code/shop"}, "here": {"files": ["src/a.py"]}, "there": {"path": "docs/a.md"},
    }.items():  # fmt: skip
        store.add_node("fact", {"says": f"it is {id}", **content}, id=id)

    found = store.brief(**asked)

    assert kept == set(section(found, "standing")) == set(section(found, "changed"))


def test_a_scope_leaves_out_everything_else(store: GraphStore) -> None:
    secrets = {"": "MARKEDROOT", "team/b": "MARKEDB", "team/ab": "MARKEDAB", "team": "MARKEDTEAM"}
    for place, (scope, word) in enumerate(secrets.items()):
        for kind in ("fact", "decision", "task"):
            store.add_node(
                kind, {"says": f"{word} {kind}", "due": "2026-02-03"}, id=f"{word}{kind}", scope=scope
            )
        store.add_node("fact", {"service": word, "port": place}, id=f"{word}1", scope=scope)
        store.add_node("fact", {"service": word, "port": place + 9}, id=f"{word}2", scope=scope)
        store.add_node(
            "fact", {"says": f"{word} top"}, id=f"{word}top", scope=scope, derived_from=[f"{word}fact"]
        )
        store.record_event("error", f"{word} error", id=f"{word}error", metadata={"scope": scope})
        store.add_node(
            "fact", {"says": f"{word} plan"}, id=f"{word}plan", scope=scope, valid_from="2026-02-04"
        )
        store.add_node("fact", {"says": f"{word} gone"}, id=f"{word}gone", scope=scope)
    for scope, id in (("team/a", "mine"), ("team/a/x", "below")):
        store.add_node("decision", {"says": f"it is {id}"}, id=id, scope=scope)
    store.link("mine", "contradicts", "MARKEDBdecision")
    store.brief("ana", budget_tokens=20_000)
    for word in secrets.values():
        store.retract(f"{word}gone", reason=f"{word} reason")
        store.retract(f"{word}fact", reason=f"{word} reason")

    found = store.brief("ana", scope="team/a", budget_tokens=20_000, since="2026-01-01")

    assert "MARKED" not in found.text
    assert {"mine", "below"} == set(section(found, "standing"))
    assert "MARKEDB reason" in store.brief("ben", budget_tokens=20_000).text


@pytest.mark.parametrize("budget", [100, 101, 150, 300, 700, 2_000, 9_000])
def test_the_budget_holds_and_what_is_left_out_is_counted(store: GraphStore, budget: int) -> None:
    with store.transaction():
        for number in range(60):
            store.add_node("fact", {"says": f"Факт номер {number} {'ж' * (number * 7)}"}, id=f"fact{number}")
            store.add_node("task", {"says": f"task {number}"}, id=f"task{number}")
            store.record_event("error", f"error {number}", id=f"error{number}", fingerprint=str(number))

    found = store.brief("ana", budget_tokens=budget, user="u" * 300, project="p" * 300)

    assert estimate(found.text) == found.tokens <= budget
    assert all(line.id in line.text for one in found.sections for line in one.lines)
    assert found.left_out == sum(one.left_out for one in found.sections) > 0
    assert "Left out for want of room:" in found.text
    assert [one.name for one in found.sections] == ["standing", "changed", "outdated", "open", "contradictions", "shaky", "plans"]  # fmt: skip


def test_a_briefing_can_be_asked_at_another_coordinate_and_is_then_no_visit(
    store: GraphStore, clock: Clock
) -> None:
    store.add_node("decision", {"says": "we use Redis"}, id="redis")
    then = clock.now
    clock.move(days=30)
    store.retract("redis", reason="we never did")

    found = store.brief("ana", tx=then + timedelta(days=1))

    assert ["redis"] == section(found, "standing")
    assert store.brief("ana").last_visit is None
    assert [] == section(store.brief(), "standing")
    assert ["redis"] == section(store.brief(valid=day("2026-02-10"), tx=then + timedelta(days=1)), "standing")


def test_what_was_undone_or_loaded_is_a_change(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"says": "it holds"}, id="kept")
    store.brief("ana")
    clock.move(hours=1)
    store.retract("kept", reason="a slip")
    store.bulk_load(
        nodes=[{"id": "loaded", "kind": "fact"}],
        versions=[{"node_id": "loaded", "content": {"says": "loaded"}}],
    )
    clock.move(hours=1)
    store.undo(next(each.tx for each in store.changes() if each.verb == "retract"), reason="it was right")

    found = store.brief("ana")

    assert ["kept", "loaded"] == section(found, "changed")
    assert "it holds (undone" in text_of(found, "changed") and "it was right" in text_of(found, "changed")


def test_a_frame_that_is_too_long_for_the_budget_is_shortened(store: GraphStore) -> None:
    with store.transaction():
        for number in range(30):
            store.add_node("fact", {"says": f"fact {number}"}, id=f"fact{number}")
    marks = "я\u0301\u0302" * 200

    found = store.brief(marks, budget_tokens=100, user=marks, project=marks, path=marks)

    assert estimate(found.text) <= 100
    assert "Left out for want of room" in found.text


def test_a_briefing_within_a_transaction_has_what_the_block_wrote(store: GraphStore) -> None:
    with store.transaction():
        store.add_node("decision", {"says": "in the block"}, id="inside")
        assert ["inside"] == section(store.brief("ana"), "standing")


def test_withheld_messages_and_records_of_the_store_itself_are_not_told(store: GraphStore) -> None:
    graphstore.timeline.record_message(store, "TEXT", "MARKED withheld", authorized=False, sender="eve")
    store.record_event("error", "MARKED too", id="e", metadata={"user": "ben"})
    store.add_node("cursor", {"says": "MARKED cursor"}, id="cursor")

    assert "MARKED" not in store.brief(user="ana").text


def test_a_budget_that_holds_nothing_and_a_time_that_is_none_are_refused(store: GraphStore) -> None:
    with pytest.raises(InvalidError, match=r"budget_tokens 99 is too small\. Give 100 or more\."):
        store.brief(budget_tokens=99)
    with pytest.raises(InvalidError, match="budget_tokens"):
        store.brief(budget_tokens=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="since"):
        store.brief(since="not a time")
    with pytest.raises(InvalidError, match="user"):
        store.brief(user=7)  # type: ignore[arg-type]


def test_a_branch_has_its_own_briefing_and_visits(store: GraphStore) -> None:
    store.add_node("fact", {"says": "of the trunk"}, id="trunk")
    store.brief("ana")
    with store.branch("side") as side:
        side.add_node("decision", {"says": "of the branch"}, id="branch")
        found = side.brief("ana")

        assert {"branch", "trunk"} == set(section(found, "standing"))
        assert found.last_visit is None
        assert side.brief("ana").last_visit is not None
    assert "of the branch" not in store.brief().text
