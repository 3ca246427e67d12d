"""Scope, user and kind of calls: arguments, defaults of the connection, defaults in the address; kinds of link in an agent's words; lists, joins, reviews."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytest.importorskip("mcp")
from graphstore import mcp as door
from graphstore.mcp import desk
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def ana(store: GraphStore) -> Iterator[Agent]:
    defaults = door.Defaults(scope="team", user="ann", kind="decision", any_kind=True)
    with agent(door.server(store, tools=["all"], defaults=defaults)) as opened:
        yield opened


@pytest.fixture
def plain(store: GraphStore) -> Iterator[Agent]:
    with agent(door.server(store, tools=["all"])) as opened:
        yield opened


def test_a_connection_gives_what_a_call_leaves_out(ana, store):
    made = ana.ask("remember", statement="we ship on Fridays", id="ship")
    other = ana.ask(
        "remember", statement="we ship on Mondays", id="monday", scope="other", kind="fact", user="ben"
    )
    ana.ask(
        "remember_many",
        statements=[
            {"statement": "tea at four", "id": "tea"},
            {"statement": "cake", "id": "cake", "scope": ""},
        ],
    )

    assert ("decision", "fact") == (made["thing"]["kind"], other["thing"]["kind"])
    found = {
        id: (node.scope, node.kind, node.content["user"])
        for id in ("ship", "monday", "tea", "cake")
        for node in [store.node(id)]
    }
    assert {
        "ship": ("team", "decision", "ann"),
        "monday": ("other", "fact", "ben"),
        "tea": ("team", "decision", "ann"),
        "cake": ("", "decision", "ann"),
    } == found


def test_reads_are_limited_by_the_same_defaults(ana, store):
    for id, scope, user in (("one", "team", "ann"), ("two", "team", "ben"), ("three", "other", "ann")):
        store.add_node("decision", {"says": f"tea {id}", "user": user}, id=id, scope=scope)
    store.add_node("decision", {"says": "tea of all"}, id="all", scope="team")
    store.add_node("fact", {"says": "tea fact", "user": "ann"}, id="fact", scope="team")

    assert {"one", "all"} == {hit["id"] for hit in ana.ask("search", query="tea")["hits"]}
    assert {"one", "all"} == {each["id"] for each in ana.ask("list")["things"]}
    assert {"two", "all"} == {each["id"] for each in ana.ask("list", user="ben")["things"]}
    assert {"three"} == {each["id"] for each in ana.ask("list", scope="other")["things"]}
    assert {"fact"} == {each["id"] for each in ana.ask("list", kind="fact")["things"]}


def test_what_has_a_default_is_not_required(ana, plain):
    assert "user" in plain.tools()["context"].input_schema["required"]
    assert "user" not in ana.tools()["context"].input_schema.get("required", ())
    assert "at" in ana.ask("context")
    assert "user" in plain.refused("context")
    ana.ask("scratchpad", text="call Ben")
    assert "call Ben" in ana.ask("context")["context"]


def test_events_are_of_the_scope_and_user(ana, store):
    made = ana.ask("record_event", type="error", description="it broke")
    assert {"scope": "team", "user": "ann"} == store.event(made["event"]["id"]).metadata
    assert [made["event"]["id"]] == [each["id"] for each in ana.ask("list", kind="error")["things"]]


def test_the_address_of_a_server_gives_defaults():
    given = desk.Defaults(scope="team", kind="fact")

    assert desk.Defaults("a/b", "ann", "fact") == desk.Defaults.from_url(b"scope=a%2Fb&user=ann&x=1", given)
    assert given == desk.Defaults.from_url(b"", given)


def test_relations_in_own_words_become_kinds_where_the_connection_allows(ana, plain, store):
    for id in ("pump", "tank"):
        store.add_node("part", {"says": id}, id=id)
    assert "unknown link kind" in plain.refused("link", source="pump", kind="feeds into", target="tank")
    made = ana.ask("link", source="pump", kind="feeds into", target="tank")
    again = ana.ask("link", source="pump", kind="Feeds Into", target="tank")
    known = ana.ask("link", source="tank", kind="caused_by", target="pump")

    assert ("feeds_into", "caused_by") == (made["link"]["kind"], known["link"]["kind"])
    assert not again["is_new"]
    assert "custom" == store.vocabulary.kinds["feeds_into"].group


def test_a_kind_of_link_is_defined(plain, store):
    plain.ask("define_kind", name="rests_upon", inverse="carries", rests=["retracted"])

    assert frozenset({"retracted"}) == store.vocabulary.kinds["rests_upon"].rests


def test_a_list_needs_no_query_and_its_pages_stay_valid(plain, store, clock: Clock):
    for number in range(60):
        store.add_node(
            "fact",
            {"says": f"fact number {number}"},
            id=f"f{number:02}",
            valid_from=f"2025-01-01T00:{number:02}Z",
        )
    first = plain.ask("list", budget_tokens=1_000)
    store.add_node("fact", {"says": "written meanwhile"}, id="late")
    store.retract("f00", reason="meanwhile")
    rest = []
    page = first
    while "more" in page:
        page = plain.ask("list", budget_tokens=1_000, cursor=page["more"])
        rest += page["things"]
    ids = [each["id"] for each in (*first["things"], *rest)]

    assert [f"f{number:02}" for number in reversed(range(60))] == ids
    assert 60 == first["total"] == len(first["things"]) + first["left_out"]


def test_two_ids_are_joined_and_split(plain, store):
    for id, name in (("bob", "Bob"), ("robert", "bob")):
        store.add_node("person", {"name": name}, id=id)
    [item] = plain.ask("review")["items"]
    assert ("join", ["robert", "bob"]) == (item["what"], item["ids"])
    assert "join(id='robert', into='bob', reason=…)" in item["call"]

    told = plain.told("join", id="robert", into="bob", reason="one passport")
    assert "robert means bob now" in told
    assert "bob" == plain.ask("get", id="robert")["thing"]["id"]
    found = plain.ask("what_superseded", id_or_text="robert")
    assert "joined" == found["chain"][0]["how"]
    assert [] == plain.ask("review")["items"]
    assert "a thing of its own" in plain.told("join", id="robert", reason="two people")
    assert "robert" == plain.ask("get", id="robert")["thing"]["id"]


def test_the_arguments_of_all_tools_keep_to_their_characters(plain):
    schemas = [tool.input_schema for tool in plain.tools().values()]

    assert len(json.dumps(schemas, separators=(",", ":"), ensure_ascii=False)) <= 9_000
