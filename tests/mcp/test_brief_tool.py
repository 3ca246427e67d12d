"""A briefing over the protocol: the tool, the prompt, the resource, and whose visit it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.ledger import tokens
from graphstore.remote.remote import connect
from tests.conftest import Clock
from tests.support.served import serve_in_process

pytest.importorskip("mcp")
from graphstore.mcp import Defaults, server
from tests.support.agent import agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def told(tmp_path: Path, clock: Clock) -> Iterator[GraphStore]:
    with graphstore.open(tmp_path / "s.gs", clock=clock, author="owner") as store:
        store.add_node("decision", {"says": "we deploy on Thursdays"}, id="thursday")
        store.add_node("task", {"says": "write the guide", "user": "ben"}, id="guide")
        yield store


def test_the_tool_answers_in_text_and_with_the_ids(told: GraphStore) -> None:
    with agent(server(told), "codex") as one:
        answer = one.ask("brief", user="ana")
        assert ["thursday"] == answer["ids"]
        assert "last_visit" not in answer
        assert one.told("brief").startswith("# Briefing for codex, as of ")
        assert "budget_tokens" in one.refused("brief", budget_tokens=20)


def test_a_briefing_is_of_the_scope_that_the_connection_has_by_default(told: GraphStore) -> None:
    told.add_node("decision", {"says": "we use Python"}, id="python", scope="alpha")
    told.add_node("decision", {"says": "we use Rust"}, id="rust", scope="beta")

    with agent(server(told, defaults=Defaults(scope="alpha")), "codex") as one:
        assert ["python"] == one.ask("brief")["ids"]
        assert ["rust"] == one.ask("brief", scope="beta")["ids"]


def test_the_next_visit_of_the_client_is_told_what_changed(told: GraphStore, clock: Clock) -> None:
    with agent(server(told), "codex") as one:
        one.ask("brief")
    clock.move(days=1)
    told.retract("thursday", reason="we never did")

    with agent(server(told), "codex") as one:
        text = one.told("brief")
        assert "since your last visit" in text
        assert "## No longer holds in answers you received\n- thursday [decision]" in text
    with agent(server(told), "another") as one:
        assert "no earlier visit of another is recorded" in one.told("brief")


def test_what_was_told_is_not_noticed_again_where_reads_are_recorded(told: GraphStore, clock: Clock) -> None:
    with agent(server(told, record_reads=True), "codex") as one:
        one.ask("get", id="thursday")
    clock.move(days=1)
    told.retract("thursday", reason="we never did")

    with agent(server(told, record_reads=True), "codex") as one:
        [text] = [each.text for each in one.call("brief").content]
        assert "thursday" in text.partition("## No longer holds")[2]
        assert 1 == len(one.call("get", id="guide").content)


def test_a_server_that_only_reads_records_no_visit(told: GraphStore) -> None:
    with graphstore.open(told.path, read_only=True) as reader, agent(server(reader), "codex") as one:
        one.ask("brief")
        assert "last_visit" not in one.ask("brief")


def test_the_prompt_and_the_resource_have_the_briefing(told: GraphStore) -> None:
    with agent(server(told), "codex") as one:
        found = one.do(one.client.get_prompt, "brief", {"user": "ana"})
        assert "thursday [decision]" in found.messages[0].content.text
        assert "guide" not in found.messages[0].content.text
        [content] = one.do(one.client.read_resource, "graphstore://brief").contents
        assert {"thursday", "guide"} == set(json.loads(content.text)["ids"])


@pytest.mark.rest
def test_a_token_is_briefed_of_its_scopes_under_its_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "s.gs"
    with graphstore.open(folder) as store:
        store.add_node("decision", {"says": "MARKED decision"}, id="other", scope="team/b")
        store.add_node("decision", {"says": "ours"}, id="team/a/ours", scope="team/a")
        store.brief("ana")  # the name of the token, claimed by somebody else
    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write")
    with serve_in_process(folder) as (_, url), connect(url, ana) as there:
        first = there.brief("ana", budget_tokens=10_000)
        assert first.last_visit is None
        assert ["team/a/ours"] == [
            line.id for one in first.sections for line in one.lines if one.name == "standing"
        ]
        assert "MARKED" not in first.model_dump_json()
