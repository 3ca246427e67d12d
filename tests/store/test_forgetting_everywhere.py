"""Forgetting a person through each door: no byte stays in any file, a token forgets only in its scopes, and agents only where they may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, InvalidError, timeline
from graphstore.ledger import tokens
from tests.cli.test_command_line import answer, run
from tests.support import disk
from tests.support.served import Wire, serve_in_process

pytestmark = [pytest.mark.in_process("looks at the files of stores, and serves them"), pytest.mark.rest]


def test_no_erased_byte_is_in_any_file(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node(
            "person", {"name": "Zdenka", "says": "Zdenka lives in Brno-Lesna"}, id="p1", tags=["zdenka"]
        )
        store.revise("p1", {"name": "Zdenka", "says": "Zdenka lives in Ostrava"}, reason="Zdenka moved")
        timeline.record_message(store, "TEXT", "call me Zdenka", sender="u7", sender_name="Zdenka")
        store.fold(["p1"], into={"says": "Zdenka moved around"})
        store.query("MATCH (n:Node) RETURN n.id")
        store.query_tables("MATCH (n:Node) RETURN n.id")
        store.search("Zdenka") if hasattr(store, "search") else None
        assert disk.files_with(path, "Zdenka")
        found = store.forget("Zdenka")
        done = store.forget("Zdenka", plan=found.plan)
        assert done.applied and [] == disk.files_with(path, "Zdenka") == disk.files_with(path, "Ostrava")
        assert [] == disk.files_with(path, "zdenka") == disk.files_with(path, "Lesna")
        assert {"operations"} >= {group.what for group in done.stays}
        assert store.verify().ok
    assert [] == disk.files_with(path, "denka")


def test_a_more_trusted_author_is_in_the_way(tmp_path):
    with graphstore.open(tmp_path / "memory.gs", author="boss") as store:
        store.set_trust({"boss": 2, "agent": 1})
        store.add_node("fact", {"says": "Zdenka is here"}, id="z")
        found = store.forget("Zdenka")
        with pytest.raises(ConflictError, match="boss"):
            store.forget("Zdenka", plan=found.plan, author="agent:x")
        assert "stands" == store.node("z").standing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "s.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "Zdenka is inside"}, id="inside", scope="team/a")
        store.add_node("fact", {"says": "Zdenka is outside"}, id="outside", scope="team/b")
        store.add_node("fact", {"says": "rests"}, id="rests", scope="team/b", derived_from=["inside"])
    return place


def test_a_token_forgets_only_in_its_scopes_and_learns_nothing(folder):
    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write")
    guest = tokens.add(folder, "guest", scopes=("team/a",), rights="read")
    with serve_in_process(folder) as (_, url):
        status, shown, _ = Wire(url, ana).ask("POST", "/forget", {"who": "Zdenka"})
        assert (
            200 == status and b"outside" not in str(shown).encode() and b"team/b" not in str(shown).encode()
        )
        status, _, _ = Wire(url, guest).ask("POST", "/forget", {"who": "Zdenka"})
        assert 403 == status
        plan: Any = shown["plan"]
        status, done, headers = Wire(url, ana).ask("POST", "/forget", {"who": "Zdenka", "plan": plan})
        assert (200, True) == (status, done["applied"])
        assert "rests" not in str(done) and "graphstore-shaky" not in headers
    with graphstore.open(folder) as store:
        assert ("erased", "stands") == (
            store.inspect("inside").node.standing,
            store.inspect("outside").node.standing,
        )
        (erased,) = [each for each in store.operations("inside") if each.verb == "erase"]
        assert "ana" == erased.author


def test_a_client_forgets_through_a_server(folder):
    token = tokens.add(folder, "owner", rights="write")
    with serve_in_process(folder) as (_, url), graphstore.open(url, token=token) as store:
        found = store.forget("Zdenka")
        assert {"inside", "outside"} == {*found.ids}
        assert store.forget("Zdenka", plan=found.plan).applied
        with pytest.raises(InvalidError, match="who"):
            store.forget("")


def test_the_command_shows_then_erases(folder):
    assert "would erase 2" in run("forget", folder, "Zdenka")
    shown = answer("forget", folder, "Zdenka", "--scope", "team/a")
    assert ["inside"] == shown["erases"][0]["ids"]
    assert "erased 1" in run("forget", folder, "Zdenka", "--scope", "team/a", "--plan", shown["plan"])
    assert "erased 1" in run("forget", folder, "Zdenka", "--yes", "--reason", "asked for")
    assert [] == disk.files_with(folder, "Zdenka")
