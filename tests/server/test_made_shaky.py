"""What a write made shaky, in the header of its answer: at a real server, with tokens, branches and many dependants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore.ledger import tokens
from tests.support.served import Wire, serve_in_process

pytestmark = pytest.mark.rest


def told(answer: tuple[int, Any, Any]) -> Any:
    status, _, headers = answer
    assert 200 == status
    return orjson.loads(headers["graphstore-shaky"]) if "graphstore-shaky" in headers else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "s.gs"
    with graphstore.open(place) as store, store.transaction():
        store.add_node("plan", {"says": "launch in June"}, id="launch", valid_from="2099-06-01")
        store.add_node("fact", {"says": "the hall is booked"}, id="booking", derived_from=["launch"])
        store.add_node("fact", {"says": "the caterer comes"}, id="caterer", derived_from=["booking"])
        store.add_node("fact", {"says": "a region"}, id="region", scope="team/a")
        store.add_node("fact", {"says": "outside"}, id="outside", derived_from=["region"])
        for number in range(30):
            store.add_node("fact", {"n": number}, id=f"spoke-{number:02}", derived_from=["region"])
    return place


def test_a_write_names_what_it_made_shaky_and_how_many_there_are(folder: Path) -> None:
    with serve_in_process(folder) as (_, url):
        owner = Wire(url, (folder / "token").read_text().strip())
        assert told(owner.ask("POST", "/confirm", {"id": "launch", "reason": "asked"})) is None
        answer = owner.ask("POST", "/retract", {"id": "launch", "reason": "cancelled"})
        assert {"count": 2, "ids": ["booking", "caterer"]} == told(answer)
        assert told(owner.ask("POST", "/confirm", {"id": "booking", "reason": "looked"})) is None
        many = told(owner.ask("POST", "/end", {"id": "region", "reason": "closed"}))
        assert (31, 20) == (many["count"], len(many["ids"]))


def test_a_batch_and_a_transaction_name_it_with_what_commits_them(folder: Path) -> None:
    with serve_in_process(folder) as (_, url):
        owner = Wire(url, (folder / "token").read_text().strip())
        calls = [
            ["confirm", {"id": "launch", "reason": "asked"}],
            ["retract", {"id": "launch", "reason": "cancelled"}],
        ]
        assert {"count": 2, "ids": ["booking", "caterer"]} == told(
            owner.ask("POST", "/batch", {"calls": calls})
        )
        within = owner.ask("POST", "/transaction", {})[1]["transaction"]
        assert (
            told(owner.ask("POST", f"/end?transaction={within}", {"id": "region", "reason": "closed"}))
            is None
        )
        assert 31 == told(owner.ask("POST", f"/transaction/{within}/commit", {}))["count"]
        within = owner.ask("POST", "/transaction", {})[1]["transaction"]
        owner.ask("POST", f"/retract?transaction={within}", {"id": "booking", "reason": "wrong"})
        assert told(owner.ask("POST", f"/transaction/{within}/abort", {})) is None


def test_a_token_with_scopes_is_told_of_what_it_sees(folder: Path) -> None:
    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write")
    with graphstore.open(folder) as store:
        store.add_node(
            "fact", {"says": "inside"}, id="team/a/inside", scope="team/a", derived_from=["region"]
        )
    with serve_in_process(folder) as (_, url):
        wire, owner = Wire(url, ana), Wire(url, (folder / "token").read_text().strip())
        inside = {"count": 1, "ids": ["team/a/inside"]}
        assert inside == told(wire.ask("POST", "/end", {"id": "region", "reason": "closed"}))
        _undo_last(owner)
        within = wire.ask("POST", "/transaction", {})[1]["transaction"]
        assert told(wire.ask("POST", f"/end?transaction={within}", {"id": "region"})) is None
        assert inside == told(wire.ask("POST", f"/transaction/{within}/commit", {}))
        _undo_last(owner)
        assert inside == told(wire.ask("POST", "/batch", {"calls": [["end", {"id": "region"}]]}))


def _undo_last(owner: Wire) -> None:
    last = owner.ask("POST", "/changes", {})[1][-1]["tx"]
    assert 200 == owner.ask("POST", "/undo", {"tx": last, "reason": "not yet"})[0]


def test_a_token_with_scopes_is_told_of_nothing_outside(folder: Path) -> None:
    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write")
    with serve_in_process(folder) as (_, url):
        assert told(Wire(url, ana).ask("POST", "/end", {"id": "region", "reason": "closed"})) is None
        owner = Wire(url, (folder / "token").read_text().strip())
        assert "shaky" == owner.get("/inspect?id=outside")["node"]["standing"]
