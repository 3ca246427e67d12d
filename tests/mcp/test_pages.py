"""Answers of any length: each page fits its budget, the pages of one answer are of one view, and together they are the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from graphstore import GraphStore, timeline
from graphstore.context import estimate
from tests.conftest import Clock, after

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")

MUCH = 100_000
LITTLE = 400


@pytest.fixture
def full(store: GraphStore, clock: Clock) -> GraphStore:
    """A hub with many links and versions, a long succession, a thread, and a fork of many."""
    clock.set("2026-03-01")
    with store.transaction():
        store.add_node("hub", {"says": "the hub"}, id="hub", valid_from="2026-01-01")
        for n in range(40):
            store.add_node("fact", {"says": f"spoke number {n}"}, id=f"spoke{n:02}", valid_from="2026-01-02")
            store.link(f"spoke{n:02}", "derived_from", "hub", valid_from="2026-01-02")
        for n in range(30):
            old = f"rule{n - 1:02}" if n else ()
            store.add_node(
                "rule", {"says": f"rule says {n}"}, id=f"rule{n:02}", valid_from=after(n), supersedes=old
            )
        for n in range(30):
            timeline.record_message(store, "TEXT", f"message {n}", thread="t", occurred_at=after(n))
    for n in range(12):
        clock.move(days=1)
        store.revise("hub", {"says": f"the hub, said for the {n}th time"}, reason=f"better {n}")
    clock.move(days=1)
    return store


@pytest.fixture
def ana(full: GraphStore) -> Iterator[Agent]:
    with agent(door.server(full, tools=["all"])) as opened:
        yield opened


ASKED: dict[str, dict[str, Any]] = {
    "search": {"query": "spoke number", "limit": 60},
    "get": {"id": "hub"},
    "what_superseded": {"id_or_text": "rule00"},
    "history": {"id": "hub"},
    "why": {"id": "hub"},
    "timeline": {"thread": "t"},
    "diff": {"before_valid": "2025-01-01"},
    "trace": {"id": "hub"},
    "schema": {},
    "cypher": {"query": "MATCH (n:Node) RETURN n.id, n.says"},
    "over": {"what": "count", "since": "2025-01-01", "until": "2025-06-01"},
    "events": {"since": "365d", "type": "TEXT"},
}
_FRAME = ("at", "left_out", "more")


def lists(page: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: value for name, value in page.items() if isinstance(value, list)}


@pytest.mark.parametrize("tool", ASKED)
def test_all_pages_together_are_the_whole(ana, tool):
    whole = ana.ask(tool, **ASKED[tool], budget_tokens=MUCH)
    assert (0, False) == (whole["left_out"], "more" in whole)
    at = {"valid": whole["at"]["valid"], "tx": whole["at"]["tx"]}

    pages = list(ana.pages(tool, **ASKED[tool], **at, budget_tokens=LITTLE))
    together: dict[str, list[Any]] = {}
    for page in pages:
        assert at == page["at"]
        for name, found in lists(page).items():
            if name not in ("columns", "snapshots", "branches", "warnings", "notes"):
                together.setdefault(name, []).extend(found)
    assert {name: found for name, found in lists(whole).items() if name in together} == together
    if tool != "schema":
        assert len(pages) > 1


@pytest.mark.parametrize("tool", ASKED)
def test_a_page_fits_its_budget_or_has_one_part(ana, tool):
    for page in ana.pages(tool, **ASKED[tool], budget_tokens=LITTLE):
        parts = sum(len(found) for name, found in lists(page).items() if name != "columns")
        assert estimate(orjson.dumps(page).decode()) <= LITTLE or parts <= 1 or tool == "schema"


@pytest.mark.parametrize("tool", ASKED)
def test_who_reads_the_words_alone_misses_no_id(ana, tool):
    result = ana.call(tool, **ASKED[tool], budget_tokens=MUCH)

    said = orjson.dumps(lists(result.structured_content)).decode()
    ids = [f"spoke{n:02}" for n in range(40)] + [f"rule{n:02}" for n in range(30)] + ["hub"]
    words = result.content[0].text
    assert [] == [id for id in ids if f'"{id}"' in said and id not in words]


def test_left_out_counts_what_is_still_to_come(ana):
    page = ana.ask("history", id="hub", budget_tokens=LITTLE)

    assert 13 == len(page["versions"]) + page["left_out"]


def test_what_is_written_meanwhile_is_on_no_later_page(ana, full, clock):
    first = ana.ask("history", id="hub", budget_tokens=LITTLE)
    clock.move(days=1)
    full.revise("hub", {"says": "told meanwhile"})

    versions = [*first["versions"]]
    page = first
    while "more" in page:
        page = ana.ask("history", id="hub", budget_tokens=LITTLE, cursor=page["more"])
        versions += page["versions"]
    assert 13 == len(versions)


def test_a_cursor_goes_on_without_its_coordinate_and_with_another_budget(ana):
    first = ana.ask("history", id="hub", valid="2026-03-12", tx="2026-03-12", budget_tokens=LITTLE)
    second = ana.ask("history", id="hub", cursor=first["more"], budget_tokens=MUCH)

    assert first["at"] == second["at"]
    assert "more" not in second


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("history", {"id": "rule00"}, "the cursor belongs to another question. Call history with the arguments of the page before"),
        ("get", {"id": "hub"}, "the cursor belongs to another question"),
        ("history", {"id": "hub", "valid": "2026-03-02"}, "the cursor goes on at the coordinate of its first page"),
    ],
)  # fmt: skip
def test_a_cursor_of_another_question_is_refused(ana, tool, arguments, said):
    cursor = ana.ask("history", id="hub", budget_tokens=LITTLE)["more"]

    assert said in ana.refused(tool, **arguments, cursor=cursor)


def test_rows_that_come_in_another_order_are_no_next_page(ana, full):
    query = "MATCH (n:Node) RETURN n.id ORDER BY n.kind"
    first = ana.ask("cypher", query=query, budget_tokens=150)
    full.erase("spoke00", reason="it named somebody")

    assert "add ORDER BY" in ana.refused("cypher", query=query, cursor=first["more"], budget_tokens=150)


def test_a_content_too_long_for_a_page_comes_in_pieces(ana, full):
    long = {"says": "x" * 9_000, "more": ["ä"] * 50}
    full.add_node("fact", long, id="long")

    pages = list(ana.pages("get", id="long", budget_tokens=1_000))
    assert long == orjson.loads("".join(piece for page in pages for piece in page["content_pieces"]))
    assert all("content" not in page for page in pages)


def test_a_long_statement_is_marked_as_cut(ana, full):
    full.add_node("fact", {"says": "giraffe " * 500}, id="long")

    (hit,) = ana.ask("search", query="giraffe")["hits"]
    assert hit["cut"] is True
    assert hit["statement"].endswith("…")


def test_a_long_text_in_a_row_is_counted(ana, full):
    full.add_node("fact", {"says": "y" * 5_000}, id="long")

    found = ana.ask("cypher", query="MATCH (n:Node {id: 'long'}) RETURN n.says")
    assert (1, 2_001) == (found["cut_cells"], len(found["rows"][0][0]))


@pytest.mark.parametrize("budget", [0, 99, 100_001])
def test_a_budget_out_of_range_is_refused(ana, budget):
    assert "budget_tokens: got" in ana.refused("get", id="hub", budget_tokens=budget)


def test_events_come_to_the_last_of_them_though_one_report_has_no_room_for_all(store, clock):
    clock.set("2026-03-01")
    words = "w" * 4_000
    with store.transaction():
        for n in range(150):
            store.record_event("tick", f"{n} {words}", id=f"tick{n:03}", occurred_at=after(n / 24))
    clock.set("2026-03-20")
    with agent(door.server(store)) as ana:
        pages = list(ana.pages("events", since="365d", type="tick", budget_tokens=90_000))

    assert [f"tick{n:03}" for n in reversed(range(150))] == [
        e["id"] for page in pages for e in page["events"]
    ]
    assert {150} == {page["total_events"] for page in pages}


def test_a_limit_or_a_depth_that_cut_something_off_says_so(store):
    with store.transaction():
        for n in range(8):
            store.add_node("fact", {"says": f"the cache of shop {n} is warm"}, id=f"shop{n}")
            if n:
                store.link(f"shop{n}", "caused_by", f"shop{n - 1}")
    with agent(door.server(store)) as ana:
        few = ana.ask("search", query="warm cache", limit=3)
        every = ana.ask("search", query="warm cache", limit=8)
        cut, whole = (ana.ask("why", id="shop7", depth=depth) for depth in (6, 7))
        told = [ana.told("why", id="shop7", depth=6), ana.told("trace", id="shop7", direction="up", depth=6)]

    assert few["note"].endswith("; there is more than these 3: give a higher limit")
    assert "limit" not in every["note"]
    assert (True, False) == (cut["truncated"], whole["truncated"])
    assert all("the depth cut it off" in text for text in told)
