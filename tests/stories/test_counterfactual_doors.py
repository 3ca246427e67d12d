"""Every door answers what would be believed had something never been recorded: HTTP, a store elsewhere, the command line, and agents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

import graphstore
from graphstore import InvalidError
from graphstore.cli.command_line import app
from graphstore.ledger import tokens
from graphstore.mcp import server
from tests.conftest import Clock
from tests.support.agent import agent
from tests.support.served import TOKENS, serve_in_thread
from tests.support.wire import WRITE, Wire

pytestmark = pytest.mark.in_process("has a server of its own")


@pytest.fixture
def folder(tmp_path: Path, clock: Clock) -> Path:
    """A store in which a crawler and Ben wrote."""
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node(
            "fact", {"price": 10}, id="price", key="price", source="contract", valid_from="2026-01-01"
        )
        clock.move(days=1)
        with store.transaction(author="bot"):
            store.add_node("fact", {"price": 12}, id="scraped", key="price", source="crawler:shop")
        clock.move(days=1)
        with store.transaction(author="ben"):
            store.add_node("fact", {"says": "they raised it"}, id="raise", derived_from=["scraped"])
    return tmp_path / "memory.gs"


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    """Where the store is served."""
    with (
        graphstore.open(folder) as store,
        serve_in_thread(store, tokens=replace(TOKENS, folder=folder)) as found,
    ):
        yield found


def test_a_store_elsewhere(url: str) -> None:
    with graphstore.open(url, token=WRITE) as store:
        view = store.without(source="crawler")

        assert ["price"] == [node.id for node in view.nodes(key="price")]
        assert ["raise"] == [each.subject for each in view.left_out]
        assert {"scraped", "raise"} == {node.id for node in store.as_of().compare(view).removed}
        assert {"scraped", "raise"} == {node.id for node in view.compare(store.as_of()).added}
        assert [] == view.as_of(valid="2025-12-01").nodes()
        with pytest.raises(InvalidError, match="Give source="):
            store.without()


def test_over_http(url: str) -> None:
    wire = Wire(url)
    status, found, _ = wire.ask("GET", "/nodes?key=price&without=source%3Dcrawler")
    assert (200, ["price"]) == (status, [each["id"] for each in found])
    status, told, _ = wire.ask("POST", "/without", {"author": "ben"})
    assert (200, 1, ["raise"]) == (
        status,
        told["omitted"],
        [each["id"] for each in told["difference"]["removed"]],
    )
    assert 422 == wire.ask("GET", "/nodes?without=nonsense")[0]


def test_a_token_with_scopes_sees_what_its_scopes_hold(url: str, folder: Path) -> None:
    with graphstore.open(url, token=WRITE) as store, store.transaction(author="ben"):
        store.add_node("fact", {"says": "a"}, id="team/a/one", scope="team/a", source="crawler")
        store.add_node("fact", {"says": "b"}, id="team/a/two", scope="team/a", derived_from=["team/a/one"])
    shown = tokens.add(folder, "team", scopes=("team/a",), rights="read")
    with graphstore.open(url, token=shown) as store:
        view = store.without(source="crawler")
        assert ["team/a/two"] == [each.subject for each in view.left_out] and [] == view.nodes()
        assert {"team/a/one", "team/a/two"} == {
            node.id for node in store.without(author="ben").counterfact.difference.removed
        }
    status, told, _ = Wire(url, shown).ask("POST", "/without", {"author": "bot"})
    assert (200, 0, []) == (status, told["omitted"], told["difference"]["removed"])


def test_in_the_shell(folder: Path) -> None:
    def shell(*lines: str) -> tuple[str, str]:
        found = CliRunner().invoke(
            app, ["shell", str(folder), "--keep-going", "--mode", "csv"], input="\n".join(lines)
        )
        return found.stdout, found.stderr

    ids = "MATCH (n:Node) RETURN n.id AS id ORDER BY id;"
    assert "id\nprice\n" == shell(":without source=crawler", ids)[0]
    assert "1 operations omitted, 1 that need them left out" in shell(":without source=crawler")[1]
    assert "id\nraise\nscraped\n" == shell(":without source=crawler", ":now", ids)[0]
    assert "raise" in shell(":without source=crawler", ":without")[0]
    assert "raise" in shell(":without --source crawler")[0]
    for line in (":changes", ":tables", ":recipe whole_history"):
        assert "shows what was recorded" in shell(":without author=ben", line)[1]
    for line, words in (
        (":without", "without what?"),
        (":without ben", "Give source="),
        (":without id=nothing", "no operation of"),
    ):
        assert words in shell(line)[1]


def test_on_the_command_line(folder: Path) -> None:
    found = CliRunner().invoke(app, ["without", str(folder), "--source", "crawler", "--json"])
    assert 0 == found.exit_code, found.output
    told = orjson.loads(found.output)
    assert ["raise"] == [each["subject"] for each in told["left_out"]]
    text = CliRunner().invoke(app, ["without", str(folder), "--author", "ben"]).output
    assert "1 operations omitted" in text and "raise" in text


def test_an_agent(folder: Path) -> None:
    with graphstore.open(folder) as store, agent(server(store), "claude") as client:
        found = client.ask("diff", without="source=crawler")
        assert {"scraped", "raise"} == {each["id"] for each in found["removed"]}
        assert "raise" in found["needed_them"][0]
