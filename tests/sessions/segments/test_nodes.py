"""The node of a session as a model: what it takes, what it refuses, what a store keeps of it, how corrections are carried over."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from graphstore import GraphStore, InvalidError
from graphstore.sessions.segments.nodes import LEVELS, SEGMENT, SessionNode, carry_corrections, loaded, stored
from tests.conftest import SHARED
from tests.support.session_example import NODE, node

pytestmark = pytest.mark.served


def kept(store: GraphStore, given: dict) -> str:
    """The node told to a store; its id."""
    checked = SessionNode.from_content(given)
    began = checked.metadata.timestamp
    return store.add_node(
        SEGMENT, stored(given), id=given["id"], valid_from=began, text=checked.text, tags=checked.tags
    ).id


# ---------------------------------------------------------------- what it takes


def test_every_field_comes_out_as_it_went_in():
    assert json.dumps(NODE) == json.dumps(SessionNode.from_content(NODE).json_object())


def test_the_published_example_comes_out_as_it_went_in():
    texts = [path.read_text(encoding="utf-8") for path in sorted((SHARED.parent / "spec").glob("*.txt"))]
    found = [text.partition("Complete example of an analyzed node:")[2] for text in texts]
    example = next((text.partition("```json")[2].partition("```")[0] for text in found if text), "")
    if not example:
        pytest.skip("the published example is not there")

    assert json.dumps(json.loads(example)) == json.dumps(
        SessionNode.from_content(json.loads(example)).json_object()
    )


def test_what_was_not_said_is_not_written():
    given = node()
    del given["classification"]["language"]
    del given["semantic"]["concepts"]

    assert given == SessionNode.from_content(given).json_object()


def test_unknown_fields_are_kept_at_every_level():
    given = node(
        mood="good",
        source__host={"os": "linux"},
        source__segment__lines=[1, 2],
        classification__team=None,
        content__effort=3,
        metadata__energy=1.5,
        semantic__vector=[0.1],
        daemonMeta__queue="fast",
    )
    given["lessons"]["team"] = [{"anything": "goes"}]
    given["lessons"]["model"][0]["seen"] = 2
    given["content"]["keyDecisions"][0]["by"] = "ada"
    given["observations"]["modelsUsed"][0]["region"] = "eu"

    assert given == SessionNode.from_content(given).json_object()


def test_attributes_are_in_snake_case():
    found = SessionNode.from_content(NODE)

    assert "e9" == found.source.segment.end_entry_id
    assert True is found.observations.tool_use_errors[0].was_retried
    assert list(LEVELS) == [lesson.level for lesson in found.lessons.all()]


def test_it_can_be_made_in_snake_case():
    made = {name: value for name, value in node().items() if name not in ("daemonMeta",)}
    made["daemon_meta"] = {"decisions": [], "rlm_used": True}

    assert {"decisions": [], "rlmUsed": True} == SessionNode.from_content(made).json_object()["daemonMeta"]


def test_an_analysis_needs_no_id():
    given = {name: value for name, value in NODE.items() if name not in ("id", "version", "previousVersions")}

    assert given == SessionNode.from_content(given).json_object()


def test_a_node_is_searched_by_its_summary_decisions_and_lessons():
    lines = SessionNode.from_content(NODE).text.splitlines()

    assert ["Wove the pattern store.", "Keep cards in files", "about the project"] == lines[:3]
    assert 2 + 7 == len(lines)


# ---------------------------------------------------------------- what it refuses


REFUSED = [
    (
        {"content__outcome": "great"},
        "content.outcome: unknown value 'great'. Valid: abandoned, failed, partial, success.",
    ),
    (
        {"classification__type": "codng"},
        "classification.type: unknown value 'codng'. Valid: brainstorm, coding, configuration, data, debugging, documentation, handoff, "
        "other, planning, qa, refactoring, research, sysadmin. Did you mean 'coding'?",
    ),
    ({"version": 0}, "version 0: input should be greater than or equal to 1."),
    ({"version": "1"}, "version '1': input should be a valid integer."),
    ({"metadata__cost": "free"}, "metadata.cost 'free': input should be a valid number."),
    ({"metadata__cost": True}, "metadata.cost True: input should be a valid number."),
    ({"metadata__cost": -0.5}, "metadata.cost -0.5: input should be greater than or equal to 0."),
    ({"metadata__tokensUsed": 1.5}, "metadata.tokensUsed 1.5: input should be a valid integer."),
    (
        {"metadata__timestamp": "2026-01-24T10:00:00"},
        "metadata.timestamp: time '2026-01-24T10:00:00' has no time zone. Write '2026-01-24T10:00:00Z' for UTC.",
    ),
    (
        {"metadata__analyzedAt": "soon"},
        "metadata.analyzedAt: time 'soon' is no ISO 8601 time. Give '2026-01-30' or '2026-01-30T12:00:00Z'.",
    ),
    (
        {"content__filesTouched": ["a.py", 7]},
        "content.filesTouched[1] 7: input should be a valid string.",
    ),
    ({"source": None}, "source None: input should be a valid dictionary or instance of NodeSource."),
]


@pytest.mark.parametrize(("places", "message"), REFUSED, ids=[next(iter(places)) for places, _ in REFUSED])
def test_what_cannot_be_is_refused_with_its_place(places, message):
    with pytest.raises(InvalidError) as refused:
        SessionNode.from_content(node(**places))

    assert message == str(refused.value)


def test_what_is_missing_is_named_the_first_three():
    with pytest.raises(InvalidError) as refused:
        SessionNode.from_content(node(metadata={}))

    assert (
        "metadata.tokensUsed is missing. metadata.cost is missing. metadata.durationMinutes is missing. And 3 more."
        == str(refused.value)
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_lesson_stands_in_the_list_of_its_level(level):
    other = LEVELS[LEVELS.index(level) - 1]
    given = node()
    given["lessons"][level][0]["level"] = other

    with pytest.raises(InvalidError) as refused:
        SessionNode.from_content(given)

    assert (
        f"lessons.{level}[0].level {other!r} stands in the list of {level!r}. Move it, or change its level."
        == str(refused.value)
    )


@pytest.mark.parametrize("given", [None, [], "node", 7])
def test_what_is_no_object_is_refused(given):
    with pytest.raises(InvalidError, match="is no node"):
        SessionNode.from_content(given)


# ---------------------------------------------------------------- in the store


def test_the_store_keeps_all_but_what_it_knows_itself():
    content = stored(NODE)

    assert NODE.keys() - {"id", "version", "previousVersions"} == content.keys()
    assert 1 == content["metadata"]["schemaVersion"]


def test_when_it_was_analysed_is_when_the_store_was_told():
    given = node()
    given["daemonMeta"]["decisions"].append(
        {"timestamp": given["metadata"]["analyzedAt"], "decision": "d", "reasoning": "r"}
    )

    content = stored(given, analyzed_at="2026-02-01")

    assert "2026-02-01T00:00:00Z" == content["metadata"]["analyzedAt"]
    assert ["2026-01-24T10:50:00.000Z", "2026-02-01T00:00:00Z"] == [
        decision["timestamp"] for decision in content["daemonMeta"]["decisions"]
    ]


def test_a_node_is_loaded_with_the_versions_before_it(store):
    id = kept(store, NODE)
    store.revise(id, stored(node(content__summary="Better.")), trigger="prompt_update")

    found = loaded(store.node(id))

    assert (id, 2, [f"{id}-v1"]) == (found.id, found.version, found.previous_versions)
    assert "Better." == found.content.summary
    assert loaded(store.versions(id)[0]).json_object() == node(
        metadata={**NODE["metadata"], "schemaVersion": 1}
    )


def test_another_kind_of_node_is_not_loaded(store):
    with pytest.raises(InvalidError, match=r"source is missing\. classification is missing"):
        loaded(store.add_node("fact", {"a": 1}))


def test_a_diff_of_stored_nodes_has_the_paths_of_their_fields(store):
    given = node(lessons={level: [] for level in LEVELS})
    id = kept(store, given)
    second = deepcopy(given)
    second["content"]["summary"] = "Better."
    store.revise(id, stored(second))
    third = deepcopy(second)
    third["lessons"]["model"] = NODE["lessons"]["model"]
    third["content"]["keyDecisions"][0]["why"] = "they last"
    store.revise(id, stored(third))

    changes = [(change.path, change.type) for change in store.as_of().diff(id, 1, 3)]

    assert {
        ("content.summary", "changed"),
        ("content.keyDecisions[0].why", "changed"),
        ("lessons.model[0]", "added"),
    } == set(changes)


def test_a_reference_to_a_version_is_taken_wherever_an_id_is(store, clock):
    id = kept(store, NODE)
    clock.move(days=1)
    store.revise(id, stored(node(content__summary="Better.")))
    other = kept(store, node(id="fedcba9876543210"))
    link = store.link(f"{id}-v1", "continuation", f"{other}-v1")
    view = store.as_of()
    first = f"{id}-v1"

    assert (1, "Wove the pattern store.") == (
        view.node(first).number,
        view.node(first).content["content"]["summary"],
    )
    assert 1 == view.inspect(first).node.number
    assert [link.id] == [each.id for each in view.links_from(first)]
    assert [link.id] == [each.id for each in view.backlinks_to(f"{other}-v1")]
    assert ["revised"] == [step.how for step in view.what_superseded(first).chain]
    assert ["content.summary"] == [change.path for change in view.diff(first, 1, 2)]
    assert [1, 2] == sorted({row.number for row in view.versions(first)})
    assert [2] == [row.number for row in view.history(first)]
    assert {id, other} == {each.id for each in view.walk(first).nodes} | {id}


# ---------------------------------------------------------------- corrections


def corrected(**places):
    return carry_corrections(NODE, node(**places), node(content__summary="Fresh.", content__outcome="failed"))


def test_what_the_user_changed_is_kept_over_a_fresh_analysis():
    carried = corrected(content__outcome="abandoned")

    assert ("Fresh.", "abandoned") == (carried["content"]["summary"], carried["content"]["outcome"])


def test_what_the_user_left_is_that_of_the_fresh_analysis():
    assert node(content__summary="Fresh.", content__outcome="failed") == corrected()


def test_lists_are_kept_as_wholes():
    mine = NODE["lessons"]["model"] * 2
    fresh = node()
    fresh["lessons"]["model"][0]["summary"] = "another"

    assert mine == carry_corrections(NODE, node(lessons__model=mine), fresh)["lessons"]["model"]


def test_a_field_the_user_added_is_kept_and_one_taken_out_stays_out():
    mine = node(content__mood="good")
    del mine["classification"]["language"]

    carried = carry_corrections(NODE, mine, deepcopy(NODE))

    assert "good" == carried["content"]["mood"]
    assert "language" not in carried["classification"]


def test_a_part_that_the_fresh_analysis_lacks_is_kept_where_it_was_changed():
    fresh = {name: value for name, value in node().items() if name != "semantic"}

    carried = carry_corrections(NODE, node(semantic__tags=["mine"]), fresh)

    assert ["mine"] == carried["semantic"]["tags"]


def test_true_for_one_is_a_change():
    assert True is carry_corrections({"a": 1}, {"a": True}, {"a": 1})["a"]


def test_carrying_changes_none_of_the_three():
    analysed, mine, fresh = node(), node(content__outcome="failed"), node(content__summary="Fresh.")
    before = deepcopy((analysed, mine, fresh))

    carry_corrections(analysed, mine, fresh)

    assert before == (analysed, mine, fresh)


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("xyz"), values, max_size=3)


@drawn(objects, objects)
def test_nothing_corrected_carries_nothing(analysed, fresh):
    assert json.dumps(fresh) == json.dumps(carry_corrections(analysed, analysed, fresh))


@drawn(objects, objects)
def test_carried_over_the_same_analysis_a_correction_is_itself(analysed, mine):
    carried = carry_corrections(analysed, mine, analysed)

    assert json.dumps(mine, sort_keys=True) == json.dumps(carried, sort_keys=True)


@drawn(objects, objects, objects)
def test_what_was_carried_is_carried_again_to_the_same(analysed, mine, fresh):
    once = carry_corrections(analysed, mine, fresh)

    assert json.dumps(once, sort_keys=True) == json.dumps(
        carry_corrections(analysed, mine, once), sort_keys=True
    )
