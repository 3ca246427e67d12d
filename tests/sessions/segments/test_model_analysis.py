"""An analyser that asks a language model: against a real service on this machine, whose answers are said here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphstore import GraphStore, sessions
from graphstore.chat_client import ChatClient
from graphstore.cli.command_line import app
from graphstore.sessions.segments.model_analysis import PROMPT, ModelAnalyser
from tests.conftest import Clock
from tests.sessions.test_worked import Writer
from tests.support.chat_service import chat_service

pytestmark = pytest.mark.in_process("gives a function of its own, which cannot be sent")

SAID: dict[str, Any] = {
    "title": "Woven in blue",
    "summary": "A cloth was asked for and woven.",
    "outcome": "success",
    "keyDecisions": [{"what": "Blue", "why": "the sea is", "alternativesConsidered": ["red"]}],
    "lessons": [
        {"level": "tool", "summary": "Oil the loom", "details": "", "confidence": "high", "tags": ["loom"]}
    ],
    "tags": ["cloth"],
    "topics": ["weaving"],
}


@pytest.fixture
def folder(tmp_path: Path, clock: Clock) -> Path:
    clock.set("2026-03-01")
    Writer(tmp_path, "s" * 8).user("Weave it").calls("Edit", file_path="/w/shop/a.py").says(
        "It is woven."
    ).write()
    Writer(tmp_path, "t" * 8, on="2026-01-06T10:00").user("Warmup").says("Ready.").write()
    return tmp_path


def test_a_model_judges_and_facts_stay_facts(store: GraphStore, folder: Path) -> None:
    with chat_service(lambda asked: json.dumps(SAID)) as service:
        analyse = ModelAnalyser(ChatClient(service.url, "weaver"))
        assert sessions.ingest(store, folder, analyze=analyse).damaged == ()

        [work] = sessions.work_on(store)
        node = store.node(work.node)
        assert (work.title, work.files, work.outcome) == ("Woven in blue", ("a.py",), "success")
        assert [each.summary for each in sessions.lessons(store)] == ["Oil the loom"]
        assert [each.what for each in sessions.decisions(store)] == ["Blue"]
        assert (node.tags, node.content["metadata"]["analyzerVersion"]) == (("cloth",), analyse.version)
        assert node.content["daemonMeta"]["rlmUsed"] is False
        assert node.content["daemonMeta"]["analysisLog"] == "weaver: 15 tokens"
        [asked] = service.asked  # what only warmed up is no question
        assert (asked["messages"][0]["content"], "Weave it" in asked["messages"][1]["content"]) == (
            PROMPT,
            True,
        )
        assert sessions.ingest(store, folder, analyze=analyse).revised == 0
        assert len(service.asked) == 1


def test_an_answer_that_is_no_node_is_asked_again_with_what_was_wrong(
    store: GraphStore, folder: Path
) -> None:
    answers = iter(
        [
            "I think it went well.",
            json.dumps({**SAID, "outcome": "fine"}),
            f"```json\n{json.dumps(SAID)}\n```",
        ]
    )
    with chat_service(lambda asked: next(answers)) as service:
        done = sessions.ingest(store, folder, analyze=ModelAnalyser(ChatClient(service.url, "weaver")))

        assert (done.damaged, sessions.work_on(store).work[0].title) == ((), "Woven in blue")
        asked = [each["messages"][1]["content"] for each in service.asked]
    assert "it is no JSON" in asked[1]
    assert "content.outcome: unknown value 'fine'" in asked[2]


def test_a_service_that_is_busy_is_asked_again_and_one_that_talks_is_given_up(
    store: GraphStore, folder: Path
) -> None:
    with chat_service(lambda asked: "no") as service:
        service.statuses = [429, 503]
        done = sessions.ingest(
            store, folder, analyze=ModelAnalyser(ChatClient(service.url, "weaver"), tries=2)
        )

    [damaged] = done.damaged
    assert "gave no description in 2 tries" in damaged
    assert len(service.asked) == 4
    assert len(sessions.work_on(store)) == 0


def test_a_budget_bounds_what_is_taken_and_the_rest_is_left_for_later(
    store: GraphStore, folder: Path
) -> None:
    Writer(folder, "u" * 8, on="2026-01-07T10:00").user("Sew it").says("It is sewn.").write()
    with chat_service(lambda asked: json.dumps(SAID)) as service:
        client = ChatClient(service.url, "weaver")
        room = (len(PROMPT) + 80) // 4
        [damaged] = sessions.ingest(store, folder, analyze=ModelAnalyser(client, budget=room)).damaged
        assert "the budget of" in damaged
        assert len(sessions.work_on(store)) == 1
        assert sessions.ingest(store, folder, analyze=ModelAnalyser(client)).damaged == ()
        assert len(sessions.work_on(store)) == 2


def test_another_prompt_or_model_is_another_version() -> None:
    def version(model: str, **more: Any) -> str:
        return ModelAnalyser(ChatClient("http://127.0.0.1:1/v1", model), **more).version

    assert len({version("a"), version("b"), version("a", prompt="Say it briefly.")}) == 3
    assert version("a") == version("a", budget=5)


def test_the_command_line_names_a_service(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.gs"
    with chat_service(lambda asked: json.dumps(SAID)) as service:
        words = ["--analyzer-url", service.url, "--analyzer-model", "weaver"]
        done = CliRunner().invoke(
            app, ["import", "claude", str(store), str(folder), *words], env={"GRAPHSTORE_LLM_KEY": "k1"}
        )
        lacking = CliRunner().invoke(app, ["import", "claude", str(store), str(folder), *words[:2]])

    assert (done.exit_code, service.keys) == (0, ["Bearer k1"])
    assert "Woven in blue" in CliRunner().invoke(app, ["sessions", "work", str(store)]).output
    assert (lacking.exit_code, "needs both" in lacking.output) == (2, True)
