"""The profile of nine tools: the names, arguments and answers of the reference memory server, on a store that loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")

ADA = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Ada", "to": "Acme", "relationType": "works_at"}


@pytest.fixture
def ana(store: GraphStore, clock: Clock) -> Iterator[Agent]:
    clock.set("2026-03-01")
    with agent(door.server(store, profile="memory")) as opened:
        yield opened
        clock.move(days=1)


@pytest.fixture
def known(ana: Agent, clock: Clock) -> Agent:
    """Ada works at Acme, since 1 March; it is the 5th."""
    ana.ask("create_entities", entities=[ADA, ACME])
    ana.ask("create_relations", relations=[WORKS])
    clock.set("2026-03-05")
    return ana


def test_the_nine_names_are_offered_and_only_three_to_a_reader(ana, store):
    nine = ["create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations", "delete_relations",
            "read_graph", "search_nodes", "open_nodes"]  # fmt: skip

    assert nine == list(ana.tools())
    with agent(door.server(store, profile="memory", read_only=True)) as reader:
        assert nine[6:] == list(reader.tools())


def test_arguments_are_those_of_the_reference_server(ana):
    assert {
        "create_entities": ["entities"],
        "create_relations": ["relations"],
        "add_observations": ["observations"],
        "delete_entities": ["entityNames"],
        "delete_observations": ["deletions"],
        "delete_relations": ["relations"],
        "read_graph": [],
        "search_nodes": ["query"],
        "open_nodes": ["names"],
    } == {name: list(tool.input_schema["properties"]) for name, tool in ana.tools().items()}


def test_what_is_created_is_read(known):
    assert {"entities": [ADA, ACME], "relations": [WORKS]} == known.ask("read_graph")


def test_an_entity_that_is_there_is_left_as_it_is(known):
    other = {**ADA, "observations": ["something else"]}

    assert {"entities": [], "skipped": ["Ada"]} == known.ask("create_entities", entities=[other])
    assert {"entities": [ADA], "relations": [WORKS]} == known.ask("open_nodes", names=["Ada"])


def test_a_relation_that_is_there_is_not_made_again(known):
    other = {**WORKS, "relationType": "founded"}

    assert {"relations": [other]} == known.ask("create_relations", relations=[WORKS, other, other])


@pytest.mark.parametrize(
    "kind", ["worksAt", "supersedes", "caused_by", "is part of", "42", "used_by", "контакт", "related_to"]
)
def test_a_relation_of_any_type_decides_nothing_of_what_stands(known, kind):
    said = {**WORKS, "relationType": kind}

    assert {"relations": [said]} == known.ask("create_relations", relations=[said])
    assert said in known.ask("read_graph")["relations"]
    assert ["Ada", "Acme"] == [each["name"] for each in known.ask("read_graph")["entities"]]


def test_types_that_differ_only_in_how_they_are_written_stay_two(known):
    said = [{**WORKS, "relationType": kind} for kind in ("Works At", "ведет", "пишет", "worksAt")]

    assert {"relations": said} == known.ask("create_relations", relations=said)
    assert {"relations": []} == known.ask("create_relations", relations=said)
    assert 5 == len(known.ask("read_graph")["relations"])


def test_observations_are_added_once(known):
    added = known.ask(
        "add_observations", observations=[{"entityName": "Ada", "contents": ["likes tea", "plays chess"]}]
    )

    assert {"results": [{"entityName": "Ada", "addedObservations": ["plays chess"]}]} == added
    assert ["likes tea", "plays chess"] == known.ask("open_nodes", names=["Ada"])["entities"][0][
        "observations"
    ]


@pytest.mark.parametrize("id", ["plan", "boom", "over"])
def test_what_is_no_entity_is_never_made_one(known, store, id):
    store.add_node("fact", {"says": "we ship on Monday"}, id="plan")
    store.add_node("fact", {"says": "we shipped on Friday"}, id="over")
    store.end("over", reason="done")
    store.record_event("error", "boom", id="boom")
    before = store.stats()["transactions"]

    assert f"'{id}' is the id of something here that is no entity" in known.refused(
        "create_entities", entities=[{**ADA, "name": "Eve"}, {**ADA, "name": id}]
    )
    assert before == store.stats()["transactions"]


def test_the_whole_graph_is_a_resource(known):
    [found] = known.do(known.client.read_resource, "memory://knowledge-graph").contents

    assert ("application/json", known.ask("read_graph")) == (found.mime_type, json.loads(found.text))


def test_arguments_refer_to_nothing(ana):
    shapes = json.dumps([tool.input_schema for tool in ana.tools().values()])

    assert [] == [word for word in ("$ref", "$defs", "anyOf") if word in shapes]
    assert ["from", "to", "relationType"] == list(
        ana.tools()["create_relations"].input_schema["properties"]["relations"]["items"]["properties"]
    )


def test_what_is_missing_is_an_error_or_told(known, store):
    before = store.stats()["transactions"]
    assert "Entity with name Bob not found" in known.refused(
        "add_observations", observations=[{"entityName": "Ada", "contents": ["x"]}, {"entityName": "Bob", "contents": ["y"]}]
    )  # fmt: skip
    assert "Entity with name Bob not found" in known.refused(
        "create_relations", relations=[{**WORKS, "to": "Bob"}]
    )
    assert before == store.stats()["transactions"]
    assert "Deleted 0 of 1 entities. Not found: Bob" == known.told("delete_entities", entityNames=["Bob"])
    gone = {"entityName": "Bob", "observations": ["x"]}
    assert "Deleted 0 of 1 observations. Entities not found: Bob" == known.told("delete_observations", deletions=[gone])  # fmt: skip
    other = {**WORKS, "relationType": "left"}
    assert "Deleted 0 of 1 relations. The rest matched nothing." == known.told("delete_relations", relations=[other])  # fmt: skip


def test_a_search_matches_names_types_and_observations(known):
    assert ["Ada"] == [each["name"] for each in known.ask("search_nodes", query="TEA")["entities"]]
    assert ["Acme"] == [each["name"] for each in known.ask("search_nodes", query="compan")["entities"]]
    assert [WORKS] == known.ask("search_nodes", query="acme")["relations"]
    assert {"entities": [], "relations": []} == known.ask("search_nodes", query="nothing of this")


def test_what_is_deleted_is_gone_and_its_past_stays(known, store):
    assert "Entities deleted successfully" == known.told("delete_entities", entityNames=["Acme"])

    assert {"entities": [ADA], "relations": []} == known.ask("read_graph")
    then = store.as_of(valid="2026-03-02")
    assert ("stands", ["Acme"]) == (
        then.inspect("Acme").node.standing, [link.target for link in then.links_from("Ada")],
    )  # fmt: skip
    assert {"deleted by an agent"} == {each.reason for each in store.operations("Acme")[1:]}


def test_observations_and_relations_are_deleted_from_now_on(known, store):
    gone = {"entityName": "Ada", "observations": ["likes tea"]}
    assert "Observations deleted successfully" == known.told("delete_observations", deletions=[gone])
    assert "Relations deleted successfully" == known.told("delete_relations", relations=[WORKS])

    assert {"entities": [{**ADA, "observations": []}, ACME], "relations": []} == known.ask("read_graph")
    then = store.as_of(valid="2026-03-02")
    assert (["likes tea"], 1) == (then.node("Ada").content["observations"], len(then.links_from("Ada")))


def test_a_deleted_entity_may_come_back_as_another_type(known, store, clock):
    known.ask("delete_entities", entityNames=["Acme"])
    clock.move(days=1)
    back = {"name": "Acme", "entityType": "band", "observations": ["plays again"]}

    assert {"entities": [back]} == known.ask("create_entities", entities=[back])
    assert back in known.ask("read_graph")["entities"]
    assert "ended" == store.as_of(valid="2026-03-05T12:00:00Z").inspect("Acme").node.standing


def test_a_name_is_never_taken_for_the_beginning_of_another(ana):
    ana.ask("create_entities", entities=[{**ADA, "name": "Adalbert von"}])

    assert [] == ana.ask("open_nodes", names=["Adalbert"])["entities"]
    assert [{**ADA, "name": "Adalbert"}] == ana.ask("create_entities", entities=[{**ADA, "name": "Adalbert"}])["entities"]  # fmt: skip


def test_other_nodes_of_the_store_are_no_entities(ana, store):
    store.add_node("fact", {"says": "tea is ready"}, id="tea")

    assert {"entities": [], "relations": []} == ana.ask("read_graph")


def test_it_is_written_under_the_clients_name(known, store):
    assert {"ana"} == {change.author for change in store.changes()}
