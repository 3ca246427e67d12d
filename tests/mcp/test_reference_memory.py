"""What the reference memory server's published tests expect, asked of the profile of that name: each case is what is done, and what is there then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from graphstore import GraphStore

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


def person(name: str, *said: str) -> dict[str, Any]:
    return {"name": name, "entityType": "person", "observations": list(said)}


def between(source: str, kind: str, target: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


ALICE, BOB, CHARLIE = person("Alice"), person("Bob"), person("Charlie")
ACME = {"name": "Acme Corp", "entityType": "company", "observations": ["tech company"]}
AT_WORK = [person("Alice", "works at Acme Corp", "likes programming"), person("Bob", "works at TechCo"), ACME]
THEIR_WORK = [between("Alice", "works_at", "Acme Corp"), between("Bob", "competitor", "Acme Corp")]
CHAIN = [between("Alice", "knows", "Bob"), between("Bob", "knows", "Charlie")]
ENTITIES, RELATIONS = "create_entities", "create_relations"

CASES: dict[str, tuple[list[tuple[str, dict[str, Any]]], Any, list[str], list[dict[str, str]]]] = {
    "entities are created": ([(ENTITIES, {"entities": [ALICE, BOB]})], {"entities": [ALICE, BOB]}, ["Alice", "Bob"], []),
    "an entity twice": ([(ENTITIES, {"entities": [ALICE]})] * 2, {"entities": [], "skipped": ["Alice"]}, ["Alice"], []),
    "an entity twice at once": (
        [(ENTITIES, {"entities": [ALICE, person("Alice", "second"), BOB]})], {"entities": [ALICE, BOB], "skipped": ["Alice"]}, ["Alice", "Bob"], [],
    ),
    "no entities": ([(ENTITIES, {"entities": []})], {"entities": []}, [], []),
    "a relation is created": (
        [(ENTITIES, {"entities": [ALICE, BOB]}), (RELATIONS, {"relations": CHAIN[:1]})], {"relations": CHAIN[:1]}, ["Alice", "Bob"], CHAIN[:1],
    ),
    "a relation twice": (
        [(ENTITIES, {"entities": [ALICE, BOB]}), *[(RELATIONS, {"relations": CHAIN[:1]})] * 2], {"relations": []}, ["Alice", "Bob"], CHAIN[:1],
    ),
    "no relations": ([(RELATIONS, {"relations": []})], {"relations": []}, [], []),
    "a relation from what is not there": (
        [(ENTITIES, {"entities": [ALICE]}), (RELATIONS, {"relations": [between("Ghost", "knows", "Alice")]})],
        "Entity with name Ghost not found", ["Alice"], [],
    ),
    "a relation to what is not there": (
        [(ENTITIES, {"entities": [ALICE]}), (RELATIONS, {"relations": [between("Alice", "knows", "Ghost")]})],
        "Entity with name Ghost not found", ["Alice"], [],
    ),
    "a relation to itself": (
        [(ENTITIES, {"entities": [ALICE]}), (RELATIONS, {"relations": [between("Alice", "self", "Alice")]})],
        {"relations": [between("Alice", "self", "Alice")]}, ["Alice"], [between("Alice", "self", "Alice")],
    ),
    "observations are added, and none twice": (
        [
            (ENTITIES, {"entities": [person("Alice", "likes coffee")]}),
            ("add_observations", {"observations": [{"entityName": "Alice", "contents": ["likes coffee", "has a dog"]}]}),
        ],
        {"results": [{"entityName": "Alice", "addedObservations": ["has a dog"]}]}, ["Alice"], [],
    ),
    "observations of what is not there": (
        [("add_observations", {"observations": [{"entityName": "NonExistent", "contents": ["x"]}]})],
        "Entity with name NonExistent not found", [], [],
    ),
    "an entity is deleted with its relations": (
        [(ENTITIES, {"entities": [ALICE, BOB, CHARLIE]}), (RELATIONS, {"relations": CHAIN}), ("delete_entities", {"entityNames": ["Bob"]})],
        None, ["Alice", "Charlie"], [],
    ),
    "what is not there is deleted": ([("delete_entities", {"entityNames": ["NonExistent"]})], None, [], []),
    "an observation of what is not there is deleted": (
        [("delete_observations", {"deletions": [{"entityName": "NonExistent", "observations": ["x"]}]})], None, [], [],
    ),
    "one relation of two is deleted": (
        [
            (ENTITIES, {"entities": [ALICE, BOB]}),
            (RELATIONS, {"relations": [CHAIN[0], between("Alice", "works_with", "Bob")]}),
            ("delete_relations", {"relations": CHAIN[:1]}),
        ],
        None, ["Alice", "Bob"], [between("Alice", "works_with", "Bob")],
    ),
}  # fmt: skip


@pytest.fixture
def ana(store: GraphStore) -> Iterator[Agent]:
    with agent(door.server(store, profile="memory")) as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_writing(ana, name):
    steps, expected, entities, relations = CASES[name]
    for tool, arguments in steps[:-1]:
        ana.ask(tool, **arguments)
    tool, arguments = steps[-1]

    if isinstance(expected, str):
        assert expected in ana.refused(tool, **arguments)
    elif expected is None:
        ana.told(tool, **arguments)
    else:
        assert ana.ask(tool, **arguments) == expected
    found = ana.ask("read_graph")
    assert [each["name"] for each in found["entities"]] == entities
    assert sorted(found["relations"], key=repr) == sorted(relations, key=repr), "in any order"


@pytest.mark.parametrize(
    ("query", "entities", "relations"),
    [
        ("Alice", ["Alice"], THEIR_WORK[:1]),
        ("ALICE", ["Alice"], THEIR_WORK[:1]),
        ("company", ["Acme Corp"], THEIR_WORK),
        ("programming", ["Alice"], THEIR_WORK[:1]),
        ("Acme", ["Alice", "Acme Corp"], THEIR_WORK),
        ("orks at T", ["Bob"], THEIR_WORK[1:]),
        ("NonExistent", [], []),
        ("", ["Alice", "Bob", "Acme Corp"], THEIR_WORK),
    ],
)
def test_a_search_finds_by_any_part_of_a_text(ana, query, entities, relations):
    ana.ask(ENTITIES, entities=AT_WORK)
    ana.ask(RELATIONS, relations=THEIR_WORK)
    found = ana.ask("search_nodes", query=query)

    assert [each["name"] for each in found["entities"]] == entities
    assert sorted(found["relations"], key=repr) == sorted(relations, key=repr), "in any order"


@pytest.mark.parametrize(
    ("names", "entities", "relations"),
    [
        (["Alice", "Bob"], ["Alice", "Bob"], CHAIN),
        (["Bob"], ["Bob"], CHAIN),
        (["Alice"], ["Alice"], CHAIN[:1]),
        (["Charlie"], ["Charlie"], CHAIN[1:]),
        (["NonExistent"], [], []),
        ([], [], []),
    ],
)
def test_nodes_are_opened_with_all_relations_at_them(ana, names, entities, relations):
    ana.ask(ENTITIES, entities=[ALICE, BOB, CHARLIE])
    ana.ask(RELATIONS, relations=CHAIN)
    found = ana.ask("open_nodes", names=names)

    assert [each["name"] for each in found["entities"]] == entities
    assert sorted(map(str, found["relations"])) == sorted(map(str, relations))  # in any order


@pytest.mark.parametrize(
    "name", ["Алиса", "名前", 'with "quotes"', "back\\slash", "🦆", "x" * 500, " around ", "1.5"]
)
def test_names_and_texts_of_any_kind_are_kept_as_they_are(ana, name):
    kept = {"name": name, "entityType": "thing of any kind", "observations": [name, "it's", ""]}

    assert ana.ask(ENTITIES, entities=[kept]) == {"entities": [kept]}
    assert ana.ask("open_nodes", names=[name])["entities"] == [kept]
    assert ana.ask("read_graph")["entities"] == [kept]


def test_what_was_skipped_is_said_beside_what_was_created(ana):
    ana.ask(ENTITIES, entities=[ALICE])
    first, second = ana.call(ENTITIES, entities=[person("Alice", "allergic to nuts"), BOB]).content

    assert [BOB] == json.loads(first.text), "the text of it is what is new, as JSON, and nothing else"
    assert "Skipped" in second.text and "Alice" in second.text and "add_observations" in second.text
