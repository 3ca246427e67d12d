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


def test_a_token_with_scopes_is_told_of_nothing_outside(folder: Path) -> None:
    ana = tokens.add(folder, "ana", scopes=("team/a",), rights="write")
    with serve_in_process(folder) as (_, url):
        assert told(Wire(url, ana).ask("POST", "/end", {"id": "region", "reason": "closed"})) is None
        owner = Wire(url, (folder / "token").read_text().strip())
        assert "shaky" == owner.get("/inspect?id=outside")["node"]["standing"]
