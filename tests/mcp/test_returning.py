"""An agent that returns is notified once of answers that no longer hold: in process, and over standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError

pytest.importorskip("mcp")
from mcp import StdioServerParameters, stdio_client

from graphstore.mcp import server
from tests.support.agent import Agent, agent

pytestmark = [pytest.mark.in_process("its tools ask the store in process")]

ROOT = Path(__file__).parents[2]
TUESDAY = datetime(2026, 11, 24, 10, tzinfo=UTC)


class Clock:
    """A clock that is moved by hand, and by a millisecond at each look."""

    def __init__(self) -> None:
        self.now = TUESDAY

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[GraphStore]:
    with graphstore.open(tmp_path / "s.gs", clock=clock, author="owner") as opened:
        opened.add_node("fact", {"says": "the office is in Berlin"}, id="office", valid_from="2026-01-01")
        opened.add_node("fact", {"says": "we meet in Berlin"}, id="meeting", derived_from=["office"])
        yield opened


def texts(one: Agent, tool: str, **arguments: Any) -> list[str]:
    return [each.text for each in one.call(tool, **arguments).content]


def notice(store: GraphStore, name: str = "ben") -> str | None:
    """What an agent is notified of when it connects and asks for the meeting; None: of nothing."""
    with agent(server(store, record_reads=True), name) as one:
        first, *rest = texts(one, "get", id="meeting")
        assert [first] == texts(one, "get", id="meeting") or rest  # never again in the same connection
        return first if rest else None


def read(store: GraphStore, *ids: str, name: str = "ben", **how: Any) -> None:
    with agent(server(store, record_reads=True), name) as one:
        for id in ids:
            one.ask("get", id=id, **how)


def test_an_agent_that_returns_is_notified_once_before_anything_else(store, clock):
    read(store, "office")
    clock.now = TUESDAY + timedelta(days=2)
    store.retract("office", reason="a mix-up")

    told = notice(store)
    assert told is not None
    assert told.startswith(
        "an answer you received on Tuesday (2026-11-24 10:00Z) no longer holds: 'office' (the office is in Berlin) was retracted"
    )
    assert "on 2026-11-26 10:00Z by owner: a mix-up" in told and 'why(id="office") tells more.' in told
    assert notice(store) is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda store: store.retract("office", reason="never so"), "was retracted"),
        (lambda store: store.end("office", reason="closed"), "was ended"),
        (lambda store: store.revise("office", {"says": "the office is in Hamburg"}), "was revised"),
        (
            lambda store: store.add_node("fact", {"says": "Hamburg"}, id="new", supersedes=["office"]),
            "was superseded",
        ),
        (
            lambda store: store.add_node("fact", {"says": "Hamburg"}, id="new", valid_from="2026-01-01", corrects=["office"]),
            "was retracted",
        ),
    ],
)  # fmt: skip
def test_each_invalidation_is_reported_by_its_word_and_what_rests_on_it_as_shaky(store, change, word):
    read(store, "office", "meeting")
    change(store)
    with agent(server(store, record_reads=True), "ben") as one:
        told = texts(one, "schema")[0]
    assert f"'office' (the office is in Berlin) {word}" in told
    assert "'meeting' (we meet in Berlin) is shaky" in told


def test_what_changes_nothing_that_was_read_is_not_reported(store):
    read(store, "office")
    store.confirm("office", reason="checked")
    store.link("office", "related_to", "meeting")
    store.revise("office", {"says": "the office is in Berlin."}, minor=True)
    store.retract("office", valid_from="2026-01-01", valid_to="2026-02-01", reason="only then")
    assert notice(store) is None


def test_only_what_was_read_before_its_invalidation_counts(store):
    store.retract("office", reason="never so")
    read(store, "office")
    assert notice(store) is None


def test_an_answer_about_the_past_holds_when_the_world_moves_on(store):
    read(store, "office", valid="2026-03-01")
    store.add_node("fact", {"says": "Hamburg"}, id="new", valid_from="2026-11-01", supersedes=["office"])
    assert notice(store) is None
    store.retract("office", reason="it never was")
    assert "'office'" in str(notice(store))


def test_an_answer_as_known_earlier_does_not_hide_what_was_invalidated(store, clock):
    read(store, "office")
    known = clock.now
    clock.now += timedelta(days=1)
    store.retract("office", reason="never so")
    clock.now += timedelta(days=1)
    with agent(server(store, record_reads=True), "ben") as one:
        assert "'office'" in texts(one, "get", id="office", tx=known.isoformat())[0]
    clock.now += timedelta(days=1)
    assert notice(store) is None


def test_a_plan_that_was_withdrawn_before_it_began_is_reported(store):
    store.add_node("plan", {"says": "the launch"}, id="launch", valid_from="2027-01-01")
    read(store, "launch")
    store.retract("launch", reason="cancelled")
    assert "'launch'" in str(notice(store))


def test_an_agent_that_invalidated_it_itself_is_not_notified(store):
    read(store, "office")
    with agent(server(store, record_reads=True), "ben") as one:
        one.ask("retract", id="office", reason="never so")
    assert notice(store) is None


def test_who_read_something_again_is_notified_of_the_next_invalidation(store, clock):
    read(store, "office")
    store.revise("office", {"says": "the office is in Hamburg"})
    assert "was revised" in str(notice(store))
    read(store, "office")
    store.revise("office", {"says": "the office is in Rome"})
    assert "in Hamburg) was revised" in str(notice(store))


def test_five_are_listed_and_the_rest_is_counted(store):
    ids = [store.add_node("fact", {"says": f"fact {number}"}).id for number in range(8)]
    read(store, *ids)
    for id in ids:
        store.retract(id, reason="never so")
    lines = str(notice(store)).splitlines()
    assert (6, "3 more things in answers to you no longer hold.") == (len(lines), lines[-1])
    assert notice(store) is None


def test_agents_are_told_apart_by_name_and_nobody_is_recorded_without_the_option(store):
    read(store, "office", name="ana")
    with agent(server(store), "eve") as one:
        one.ask("get", id="office")
    store.retract("office", reason="never so")
    assert ["ana"] == [each.agent for each in store.readers_of("office")]
    assert notice(store, "eve") is None
    assert "'office'" in str(notice(store, "ana"))


def test_the_answer_of_a_write_names_whose_answers_it_invalidates(store):
    read(store, "office", "meeting", name="ana")
    with agent(server(store, record_reads=True), "ben") as one:
        found = one.ask("retract", id="office", reason="never so")
        assert [("ana", ["meeting", "office"])] == [
            (each["agent"], sorted(each["ids"])) for each in found["readers"]
        ]
        assert "ana" in one.told("why", id="office")


def test_the_names_of_the_memory_profile_are_ids(store):
    store.add_node("entity", {"observations": ["x"]}, id="Ada")
    with agent(server(store, profile="memory", record_reads=True), "ana") as one:
        one.ask("open_nodes", names=["Ada"])
    assert ["open_nodes"] == [each.call for each in store.readers_of("Ada")]


def test_reads_of_a_branch_are_those_of_the_branch(store):
    draft = store.branch("draft")
    with agent(server(draft, record_reads=True), "ana") as one:
        one.ask("get", id="office")
    draft.retract("office", reason="never so here")
    assert [] == store.readers_of("office")
    assert ["ana"] == [each.agent for each in draft.readers_of("office")]
    with agent(server(draft, record_reads=True), "ana") as one:
        assert "'office'" in texts(one, "get", id="meeting")[0]


# ---------------------------------------------------------------- over standard input and output


def stdio(*words: object) -> Any:
    rest = ["-m", "graphstore", "mcp", *map(str, words)]
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=rest, cwd=ROOT, env=dict(os.environ))
    )


@pytest.mark.rest
@pytest.mark.parametrize("options", [(), ("--read-only",)])
def test_a_process_records_and_another_one_notifies_once(tmp_path, options):
    path = tmp_path / "s.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "the office is in Berlin"}, id="office")
    with agent(stdio(path, "--record-reads", *options), "ben") as one:
        one.ask("get", id="office")
    with graphstore.open(path, author="ana") as store:
        assert ["get"] == [each.call for each in store.readers_of("office")]
        store.retract("office", reason="it moved")
    with agent(stdio(path, "--record-reads", *options), "ben") as one:
        first, _ = texts(one, "search", query="Berlin")
        assert "no longer holds: 'office'" in first and "by ana: it moved" in first
        assert 1 == len(texts(one, "search", query="Berlin"))
    with agent(stdio(path, "--record-reads", *options), "ben") as one:
        assert 1 == len(texts(one, "search", query="Berlin"))
    assert graphstore.verify(path).ok


def test_a_store_of_another_process_is_recorded_there():
    from graphstore.mcp.returning import Reads

    with pytest.raises(InvalidError, match="Give --record-reads to graphstore serve"):
        Reads(object())
