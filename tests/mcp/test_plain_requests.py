"""What people ask of an agent in plain words, as the calls it makes of them: they are understood, and the answer is the one that was expected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def ana(store: GraphStore, clock: Clock) -> Iterator[Agent]:
    clock.set("2026-03-11")
    with agent(door.server(store)) as opened:
        yield opened


def test_several_statements_may_be_texts(ana):
    found = ana.ask(
        "remember_many", statements=["Ana owns billing", {"statement": "Ben owns search", "id": "ben"}]
    )

    assert ["Ana owns billing", "Ben owns search"] == [each["statement"] for each in found["things"]]
    assert 1 == len(ana.ask("remember_many", statements="Cy owns login")["things"])


def test_a_correction_without_a_beginning_holds_since_what_was_never_so_began(ana):
    ana.ask("remember", statement="the exam is on the 12th", id="old", key="exam", valid_from="2026-03-01")
    ana.ask("remember", statement="the exam is on the 14th", id="new", key="exam", corrects=["old"])

    for valid in ("2026-03-01", "2026-03-05", "2026-03-11"):
        assert ["new"] == [each["id"] for each in ana.ask("search", query="exam", valid=valid)["hits"]]


@pytest.mark.parametrize("end", ["2024-01-01T00:00:00Z", "2027-01-01T00:00:00Z"])
def test_a_correction_of_what_has_an_end_ends_with_it(ana, end):
    ana.ask("remember", statement="Bo lives in Rome", id="old", valid_from="2020", valid_to=end)
    found = ana.ask("remember", statement="Bo lives in Oslo", corrects=["old"])["thing"]

    assert ("2020-01-01T00:00:00Z", end) == (found["valid_from"], found["valid_to"])


def test_a_correction_in_a_slot_goes_on_if_the_plan_after_it_is_cancelled(ana):
    ana.ask("remember", statement="Bo lives in Rome", id="old", key="home", valid_from="beginning")
    ana.ask("remember", statement="Bo lives in Bonn", id="plan", key="home", valid_from="2027")
    found = ana.ask("remember", statement="Bo lives in Oslo", id="new", key="home", corrects=["old"])["thing"]
    assert "2027-01-01T00:00:00Z" == found["valid_to"]

    ana.ask("retract", id="plan", reason="he stays")
    assert "valid_to" not in ana.ask("get", id="new")["thing"]
    assert "retracted" == ana.ask("get", id="old", valid="2020")["thing"]["standing"]


def test_a_correction_begins_where_it_says(ana):
    ana.ask("remember", statement="the exam is on the 12th", id="old", valid_from="2026-03-01")
    found = ana.ask(
        "remember", statement="the exam is on the 14th", corrects=["old"], valid_from="2026-03-05"
    )

    assert found["thing"]["valid_from"] == "2026-03-05T00:00:00Z"
    assert "stands" == ana.ask("get", id="old", valid="2026-03-02")["thing"]["standing"]


def test_a_kind_of_link_may_be_written_in_words(ana):
    for id in ("lea", "tom"):
        ana.ask("remember", statement=f"{id} works here", id=id)
    assert "mentors" == ana.ask("define_kind", name="mentors", inverse="Mentored by")["kind"]

    assert "mentors" == ana.ask("link", source="tom", kind="mentored by", target="lea")["link"]["kind"]
    assert "part_of" == ana.ask("link", source="tom", kind="Part-of", target="lea")["link"]["kind"]
    assert 'define_kind(name="is married to")' in ana.refused(
        "link", source="lea", kind="is married to", target="tom"
    )


def test_a_timeline_of_words_has_the_events_that_say_them(ana):
    ana.ask("record_event", type="deploy", description="shop 9 deployed")
    ana.ask("record_event", type="error", description="shop answers 502")

    found = ana.ask("timeline", about="shop")
    assert ("events about shop", {"deploy", "error"}) == (
        found["of"],
        {each["kind"] for each in found["entries"]},
    )


def test_a_line_says_whose_it_is_and_of_which_scope(ana):
    ana.ask("remember", statement="the door code is 4711", scope="home")
    ana.ask("remember", statement="the door code is 0815", user="nora")

    hits = ana.ask("search", query="door code")["hits"]
    assert {("home", None), (None, "nora")} == {(each.get("scope"), each.get("user")) for each in hits}


def test_a_join_names_what_is_no_longer_said(ana):
    ana.ask("remember", statement="Katharina leads design", id="katharina", kind="person")
    ana.ask("remember", statement="Kathi is allergic to nuts", id="kathi", kind="person")

    found = ana.ask("join", id="kathi", into="katharina", reason="one person")
    assert "Kathi is allergic to nuts" == found["unsaid"]
    assert "unsaid" not in ana.ask("join", id="kathi", into="katharina", reason="one person")
    assert "unsaid" not in ana.ask("join", id="kathi", reason="two people")


def test_the_answer_of_a_cancelled_plan_names_what_goes_on(ana):
    ana.ask(
        "remember", statement="we store goods in Hamburg", id="hamburg", key="warehouse", valid_from="2020"
    )
    ana.ask("remember", statement="we store goods in Bremen", id="bremen", key="warehouse", valid_from="2027")

    found = ana.ask("retract", id="bremen", reason="the move is cancelled")
    assert ["hamburg"] == [each["id"] for each in found["holds_again"]]
    assert "valid_to" not in found["holds_again"][0]


@pytest.mark.parametrize("tool", ["forget", "forget_person"])
def test_who_erases_is_said_where_agents_may_not(ana, tool):
    assert "graphstore forget STORE WHO" in ana.refused(tool, who="Otto Maier")


def test_a_list_has_no_more_than_is_asked_for_and_counts_all(ana):
    ana.ask("remember_many", statements=["Ana owns billing", "Ben owns search", "Cy owns login"])

    found = ana.ask("list", limit=2)
    assert (2, 3, 0) == (len(found["things"]), found["total"], found["left_out"])
