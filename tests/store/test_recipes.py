"""The questions that come with the package, asked by name: each has an answer in Python, on the command line, in the shell, over HTTP and on the page."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore import GraphStore, InvalidError
from graphstore.cli.command_line import app
from graphstore.store.recipes import recipes
from tests.sessions.test_questions import SHOP, segment, used

pytestmark = pytest.mark.in_process("asks the same folder by the command line")

GIVEN: dict[str, dict[str, Any]] = {
    "why": {"id": "redis"},
    "sessions_work": {"project": SHOP},
    "sessions_lessons": {"tags": ["shell"]},
    "agents_contents": {"kind": "fact"},
}


def told(store: GraphStore) -> None:
    """A little of everything that a recipe asks about."""
    store.add_node("fact", {"n": 1}, id="redis", valid_from="2026-01-01")
    store.revise("redis", {"n": 2}, valid_from="2026-01-02", reason="counted again")
    store.add_node("fact", {"n": 3}, id="tokens", valid_from="2026-01-03")
    store.supersede("redis", by="tokens", reason="faster", valid_from="2026-01-03")
    store.add_node("fact", {"n": 4}, id="other", valid_from="2026-01-03")
    store.link("other", "contradicts", "tokens", reason="they differ")
    store.add_node("fact", {"n": 5}, id="gone", valid_from="2026-01-03")
    store.retract("gone", reason="it never was")
    for _ in range(2):
        store.record_event("error", "the oven is down")
    whole: dict[str, Any] = {
        "cost": 0.1,
        "tokens": 1_000,
        "models": [used("big", 1_000, 0.1)],
        "decisions": (("keep the cart", "it works"),),
        "errors": ("timeout after 30012 ms",),
        "lessons": (("tool", "quote every path", ("shell",)),),
    }
    for session in ("s1", "s2"):
        store.add_node(
            "segment", segment(session, "Build the cart.", **whole), id=session, valid_from="2026-01-05"
        )
    store.link("s1", "fork", "s2", valid_from="2026-01-06")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes") / "memory.gs"
    with graphstore.open(folder) as store:
        told(store)
    return folder


@pytest.fixture(scope="module")
def asked(place: Path) -> Iterator[GraphStore]:
    with graphstore.open(place, read_only=True) as store:
        yield store


def plain(rows: Any) -> list[list[str]]:
    """What the rows say, as texts."""
    return [[str(value) for value in row] for row in rows]


@pytest.mark.parametrize("name", sorted(recipes()))
def test_a_recipe_has_the_same_answer_at_each_door(asked, place, name):
    given = GIVEN.get(name, {})
    found = asked.recipe(name, **given)
    assert found.tuples(), f"{name} has no answer"

    words = [word for each, value in given.items() for word in ("--param", f"{each}={value if isinstance(value, str) else json.dumps(value)}")]  # fmt: skip
    done = CliRunner().invoke(app, ["query", str(place), "--recipe", name, *words, "--format", "json"])
    assert done.exit_code == 0, done.output
    by_command = json.loads(done.stdout)
    assert [list(row) for row in by_command] == [list(found.columns)] * len(found.tuples())

    line = " ".join([f":recipe {name}", *(word for word in words if word != "--param")])
    shell = CliRunner().invoke(
        app, ["shell", str(place), "--mode", "json"], input=line.replace('"', '\\"') + "\n"
    )
    assert shell.exit_code == 0, shell.output
    assert json.loads(shell.stdout) == by_command


def test_times_bound_it_and_a_coordinate_does(asked):
    assert [row["old"] for row in asked.recipe("superseded_between", since="2026-01-02")] == ["redis"]
    assert asked.recipe("superseded_between", since="2026-02-01").tuples() == []
    assert asked.recipe("superseded_between", until="2026-01-02").tuples() == []
    assert [row["kind"] for row in asked.recipe("links_by_kind", valid="2026-01-05")] == ["supersedes"]
    assert asked.recipe("agents_nodes", valid="2025-01-01").tuples() == []


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("superseded", {}, "unknown recipe 'superseded'.*superseded_between"),
        ("why", {}, "why asks for id. Give id="),
        ("why", {"node": "redis"}, "unknown parameter of why 'node'.*id"),
        ("taken_back", {"since": "soon"}, "soon"),
    ],
)
def test_what_it_has_not_is_refused_with_what_it_has(asked, name, given, words):
    with pytest.raises(InvalidError, match=words):
        asked.recipe(name, **given)


def test_either_a_text_or_a_recipe_is_asked(place):
    for words in ([], ["RETURN 1", "--recipe", "why"]):
        done = CliRunner().invoke(app, ["query", str(place), *words])
        assert done.exit_code == 2
        assert "either what to ask in Cypher, or --recipe NAME" in " ".join(done.output.split())


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[GraphStore, str]]:
    from tests.support.served import serve_in_thread

    with graphstore.open(":memory:") as store:
        told(store)
        with serve_in_thread(store) as url:
            yield store, url


@pytest.mark.parametrize("name", sorted(recipes()))
def test_a_recipe_has_the_same_answer_through_a_server(served, name):
    from tests.support.served import TOKENS

    store, url = served
    given = GIVEN.get(name, {})
    found = store.recipe(name, **given)
    with graphstore.open(url, token=TOKENS.read) as far:
        assert far.recipe(name, **given) == found
    body = json.dumps({"name": name, "params": given}).encode()
    call = urllib.request.Request(
        f"{url}/recipe", body, {"Authorization": f"Bearer {TOKENS.read}", "Content-Type": "application/json"}
    )
    with urllib.request.urlopen(call) as answer:
        said = json.load(answer)
    assert (found.columns, len(found)) == (said["columns"], len(said["rows"]))
    assert json.loads(json.dumps(found.legible())) == said["rows"]


def test_the_name_of_a_recipe_is_completed(asked):
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from graphstore.cli.shell.output import Output
    from graphstore.cli.shell.shell import Shell
    from graphstore.cli.shell.terminal import _Completing

    offered = _Completing(Shell(asked, "memory.gs", Output())).get_completions(
        Document(":recipe super"), CompleteEvent()
    )
    assert ["superseded_between"] == [one.text for one in offered]


@pytest.mark.rest
def test_the_page_asks_each_recipe(served):
    from tests.support.browser import chromium
    from tests.support.served import TOKENS

    store, url = served
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{url}/#token={TOKENS.read}")
        page.wait_for_selector(".view")
        for name in sorted(recipes()):
            given = GIVEN.get(name, {})
            state = {
                f"p-{each}": value if isinstance(value, str) else json.dumps(value)
                for each, value in given.items()
            }
            state |= {"p-since": "2025-12-01"} if "since" in recipes()[name].parameters else {}
            page.goto(f"{url}/?{urllib.parse.urlencode({'tab': 'ask', 'recipe': name, **state})}")
            page.click("form.ask button[type=submit]")
            page.wait_for_selector(".refused, .view.ask table tbody tr")
            assert 0 == page.locator(".refused").count(), (name, page.inner_text(".refused"))
            assert len(store.recipe(name, **given)) == page.locator(".view.ask table tbody tr").count(), name
