"""What agents ask about sessions, and about what is known for a user: whole answers, through the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphstore import GraphStore, observer, sessions, timeline
from tests.conftest import Clock
from tests.sessions.test_questions import SHOP, SITE, segment
from tests.support.session_files import header, said, write

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def worked(store: GraphStore, clock: Clock) -> GraphStore:
    """Two sessions on a shop in January, one on its site; the cart broke again in February."""
    for id, on, files, content in (
        ("cart", "2026-01-05", ["src/cart.py"], segment("s1", "Build the cart.", cost=0.1, tokens=1000, minutes=30,
            decisions=(("keep the cart in the session", "no account is needed"),), errors=("no such table",),
            lessons=(("tool", "quote every path", ("shell",)), ("user", "ask for the scope", ("team",))))),
        ("prices", "2026-01-06", ["src/prices.py", "src/cart.py"], segment("s1", "Round the prices.", cost=0.2, tokens=500,
            decisions=(("round half up", "the law says so"),))),
        ("site", "2026-01-08", ["web/src/cart.css"], segment("s2", "A page for the shop.", SITE, cost=0.7, tokens=70)),
    ):  # fmt: skip
        content["content"]["filesTouched"] = files
        store.add_node("segment", content, id=id, valid_from=on)
    clock.set("2026-02-02")
    again = segment("s3", "The cart again.", errors=("no such table", "out of memory"))
    again["content"]["filesTouched"] = ["/home/ana/shop/src/cart.py"]
    store.add_node("segment", again, id="again", valid_from="2026-02-01")
    clock.set("2026-02-03")
    return store


@pytest.fixture
def ana(worked: GraphStore) -> Iterator[Agent]:
    with agent(door.server(worked, tools=["all"])) as opened:
        yield opened


def found(ana: Agent, ask: str, field: str, **asked: str) -> list[str]:
    return [each[field] for each in ana.ask("sessions", ask=ask, **asked)["found"]]


# ---------------------------------------------------------------- agents' sessions


def test_work_is_told_of_a_project_or_of_all_since_then(ana):
    told = ana.ask("sessions", ask="work", project="shop")

    assert ["cart", "prices", "again"] == [each["node"] for each in told["found"]]
    assert (
        "/home/ana/shop: 3 pieces of work in 2 sessions, 32 minutes, $0.3000, 1,500 tokens."
        == told["summary"]
    )
    assert ["again"] == found(ana, "work", "node", since="7d")
    assert ["again"] == found(ana, "work", "node", project="shop", since="2026-02")
    assert ["cart", "prices", "site"] == found(ana, "work", "node", until="2026-01-10")
    assert ["cart"] == found(ana, "work", "node", valid="2026-01-05", tx="2026-02-01")
    assert "Known: /home/ana/shop" in ana.refused("sessions", ask="work", project="shopp")


def test_decisions_lessons_and_errors_are_told_by_what_they_are_about(ana):
    assert ["round half up", "keep the cart in the session"] == found(ana, "decisions", "what")
    assert ["round half up"] == found(ana, "decisions", "what", about="law")
    assert ["round half up"] == found(ana, "decisions", "what", project="shop", since="2026-01-06")
    assert ["quote every path"] == found(ana, "lessons", "summary", about="Shell")
    assert {"quote every path", "ask for the scope"} == set(found(ana, "lessons", "summary", project="shop"))
    assert [] == found(ana, "lessons", "summary", project="site")
    assert ["no such table", "out of memory"] == found(ana, "errors", "message")
    assert ["no such table"] == found(ana, "errors", "message", about="table")
    assert [["s1", "s3"]] == found(ana, "errors", "sessions", about="table")


@pytest.mark.parametrize("ask", ["work", "decisions", "lessons", "errors", "costs"])
def test_since_after_until_is_refused(ana, ask):
    said = ana.refused("sessions", ask=ask, since="2026-02", until="2026-01")
    assert "since 2026-02-01 is after until 2026-01-01. Give the earlier time as since." in said


def test_who_touched_a_file_is_told_the_latest_first(ana):
    assert ["again", "prices", "cart"] == found(ana, "files", "node", about="cart.py")
    assert ["s3", "s1", "s1"] == found(ana, "files", "session", about="src/cart.py")
    assert ["prices", "cart"] == found(ana, "files", "node", about="cart.py", until="2026-01")
    assert [] == found(ana, "files", "node", about="art.py")
    assert "which file?" in ana.refused("sessions", ask="files")


def test_costs_are_told_by_what_is_asked_for(ana):
    told = ana.ask("sessions", ask="costs")

    assert [(SITE, 0.7), (SHOP, 0.3)] == [(each["key"], each["cost"]) for each in told["found"]]
    assert "$1.00  1,570 tokens in all, by project" == told["summary"]
    assert ["2026-01-05", "2026-01-06", "2026-01-08", "2026-02-01"] == found(ana, "costs", "key", about="day")
    assert "unknown by 'week'" in ana.refused("sessions", ask="costs", about="week")


def test_a_session_is_told_with_what_it_was_forked_from(store, tmp_path: Path):
    root = tmp_path / "root.jsonl"
    trunk = [said("a", None, 1), said("b", "a", 2, role="assistant")]
    write(root, header("root"), *trunk)
    write(tmp_path / "fork.jsonl", header("fork", 40, parentSession=str(root)), *trunk, said("c", "b", 41))
    sessions.ingest(store, tmp_path)
    with agent(door.server(store, tools=["sessions"])) as ana:
        assert ["root", "fork"] == found(ana, "lineage", "session", about="root")
        assert [("ancestor", "root"), ("asked", "fork")] == [
            (each["relation"], each["session"])
            for each in ana.ask("sessions", ask="lineage", about="fork")["found"]
        ]
        assert "which session?" in ana.refused("sessions", ask="lineage")


def test_pages_of_work_are_the_whole(ana):
    pages = list(ana.pages("sessions", ask="work", budget_tokens=150))

    assert len(pages) > 1
    assert ["cart", "prices", "again", "site"] == [each["node"] for page in pages for each in page["found"]]


# ---------------------------------------------------------------- what is known for a user


def test_what_is_kept_for_a_user_is_in_the_context_of_an_answer(ana):
    kept = ana.ask("keep", text="Ana drinks green tea.", layer="er1", user="ana", tags=["taste"])
    again = ana.ask("keep", text="Ana drinks green tea.", layer="er1", user="ana", tags=["taste"])
    noted = ana.ask("scratchpad", user="ana", text="ask about the invoice", thread="t1")
    more = ana.ask("scratchpad", user="ana", text="and the tea", thread="t1", append=True)
    told = ana.ask("context", user="ana", thread="t1", query="which tea?")

    assert ("new", "confirmed") == (kept["outcome"], again["outcome"])
    assert ("ask about the invoice", "ask about the invoice\nand the tea") == (noted["pad"], more["pad"])
    assert "Ana drinks green tea." in told["context"] and "and the tea" in told["context"]
    assert "and the tea" not in ana.ask("context", user="ana", thread="t2", query="tea")["context"]
    assert "pad" not in ana.ask("scratchpad", user="ana", text=" ", thread="t1")
    assert "and the tea" not in ana.ask("context", user="ana", thread="t1")["context"]
    assert (
        "and the tea"
        in ana.ask("context", user="ana", thread="t1", tx=more["tx"], valid=more["tx"])["context"]
    )


def test_a_slot_of_a_layer_holds_one_value_and_each_layer_is_counted(ana):
    old = ana.ask("keep", text="Ana is in Oslo.", layer="er1", user="ana", key="place")
    new = ana.ask("keep", text="Ana is in Rome.", layer="er1", user="ana", key="place")
    ana.ask("keep", text="Boris is in Oslo.", layer="conversation", user="boris", thread="t1")

    assert [old["thing"]["id"]] == [each["id"] for each in new["closed"]]
    counted = {each["layer"]: each for each in ana.ask("layers")["layers"]}
    assert (1, None, 1, 30) == (
        counted["er1"]["chunks"], counted["er1"].get("days"), counted["conversation"]["chunks"], counted["conversation"]["days"],
    )  # fmt: skip
    assert ["Ana is in Rome."] == [each["statement"] for each in ana.ask("layers", user="ana")["hits"]]
    assert ["Boris is in Oslo."] == [
        each["statement"] for each in ana.ask("layers", query="Oslo", layer="conversation")["hits"]
    ]
    assert "Did you mean 'tool'" in ana.refused("keep", text="x", layer="tol")


def test_messages_wait_to_be_observed_by_a_tick(ana, worked):
    lent = observer.Observer(
        worked, lambda messages: f"- [HIGH] {len(messages)} about an invoice", threshold=2
    )
    lent.lend()
    asked = {"user": "ana", "thread": "t1"}
    first = ana.ask("observe", **asked, message="the invoice is due on Friday", sender="boris")
    second = ana.ask("observe", **asked, message="it is paid", sender="ana")

    assert (1, 2) == (first["waiting"], second["waiting"])
    assert [2] == [done.messages for done in lent.tick()]
    assert "2 about an invoice" in ana.ask("context", user="ana")["context"]
    assert ["ana", "ana"] == [event.author for event in timeline.messages(worked, thread="t1")]


def test_a_conversation_that_ends_is_observed_however_short(ana, worked):
    lent = observer.Observer(worked, lambda messages: "- [LOW] they said good-bye")
    lent.lend()
    ana.ask("observe", user="ana", thread="t1", message="see you on Friday")
    assert [] == lent.tick()
    ana.ask("observe", user="ana", thread="t1", message="good-bye", end=True)

    assert [2] == [done.messages for done in lent.tick()]


def test_without_a_compressor_messages_wait_for_ever(ana, worked):
    for number in range(60):
        waiting = ana.ask("observe", user="ana", message=f"message {number}", end=number == 59)["waiting"]
    assert 60 == waiting
    assert [] == observer.observations(worked, "ana")


def test_outcomes_make_expertise(ana):
    for outcome in ("success", "success", "failure"):
        made = ana.ask("record_outcome", domain="sql", outcome=outcome)
    ana.ask("record_outcome", domain="css", outcome="failure", note="it wrapped")

    assert made["is_new"] and made["tx"]
    assert [("sql", 3), ("css", 1)] == [
        (each["domain"], each["outcomes"]) for each in ana.ask("expertise")["scores"]
    ]
    [sql] = ana.ask("expertise", domain="sql")["scores"]
    assert 0.6 == pytest.approx(sql["score"], abs=0.01)
    assert [] == ana.ask("expertise", valid="2026-02-02", tx="2026-02-02").get("scores", [])
    assert "sql: 0.60" in ana.told("expertise", domain="sql")
