"""Consolidation: what could be summed up in one, what has been, and how it is undone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError
from graphstore.topics.consolidation import brief, consolidate, consolidations, fold
from tests.conftest import day
from tests.support.seeds import examples

pytestmark = pytest.mark.served


def ids(groups) -> list[tuple[str, ...]]:
    return [group.ids for group in groups]


@pytest.fixture
def auth(store, clock):
    """The slot of authentication, filled three times, and what has nothing to do with it."""
    for date, text in (
        ("2026-01-01", "sessions"),
        ("2026-01-15", "basic auth"),
        ("2026-01-30", "JWT tokens"),
    ):
        clock.set(date)
        store.add_node("fact", {"auth": text}, id=text.split()[0], key="auth", valid_from=date)
    store.add_node("fact", {"lunch": "at noon"}, id="lunch")
    clock.set("2026-02-10")
    return store


# ---------------------------------------------------------------- what is proposed


def test_superseded_values_of_a_slot_are_one_group_and_what_stands_is_not_in_it(auth):
    (group,) = consolidate(auth)

    assert ("sessions", "basic") == group.ids
    assert ("fact", "", "2 facts that no longer hold") == (group.kind, group.scope, group.reason)
    assert {
        "summary": "2 facts, 2026-01-01 → 2026-01-30: sessions; basic auth",
        "count": 2,
        "from": "2026-01-01T00:00:00+00:00",
        "to": "2026-01-30T00:00:00+00:00",
    } == group.content
    assert "2 facts that no longer hold: sessions, basic" == str(group)


def test_nothing_is_written_by_a_proposal(auth):
    before = auth.changes()
    consolidate(auth)
    assert before == auth.changes()


def test_a_chain_of_supersessions_is_one_group(store):
    for id in ("rest", "hybrid", "graphql"):
        store.add_node("evidence", {"api": id}, id=id)
    store.supersede("rest", by="hybrid")
    store.supersede("hybrid", by="graphql")

    assert [("rest", "hybrid")] == ids(consolidate(store))


def test_what_ended_is_grouped_with_what_says_alike(store, clock):
    for number, text in enumerate(
        ("the nightly build is red", "the nightly build is slow", "lunch was late")
    ):
        store.add_node("note", {"says": text}, id=f"n{number}")
    clock.move(days=1)
    for number in range(3):
        store.end(f"n{number}")
    clock.move(days=1)

    assert [("n0", "n1")] == ids(consolidate(store))
    assert [] == ids(consolidate(store, similar=0.9))


def test_duplicates_that_stand_are_a_group(store):
    store.add_node("fact", {"says": "Deploys go out on Tuesdays."}, id="a")
    store.add_node("fact", {"says": "deploys go out on tuesdays"}, id="b")

    (group,) = consolidate(store)
    assert (("a", "b"), "2 facts that are alike") == (group.ids, group.reason)


def test_what_contradicts_each_other_is_never_in_one_group(store):
    store.add_node("fact", {"says": "deploys go out on tuesdays"}, id="a", tags=["deploys"])
    store.add_node("fact", {"says": "deploys go out on thursdays"}, id="b", tags=["deploys"])
    store.add_node("fact", {"says": "the limit is 100 a minute"}, id="c", tags=["limits"])
    store.add_node("fact", {"says": "the limit is 300 a minute"}, id="d", tags=["limits"])

    assert [] == consolidate(store)


def test_what_was_decided_to_stand_side_by_side_is_a_group(store):
    store.add_node("fact", {"says": "deploys go out on tuesdays"}, id="a", tags=["deploys"])
    store.add_node("fact", {"says": "deploys go out on thursdays"}, id="b", tags=["deploys"])
    store.resolve(store.contradiction("a", "b"), keep="both", reason="two deploys a week")

    assert [("a", "b")] == ids(consolidate(store))


def test_duplicates_that_a_link_says_contradict_are_no_group(store):
    store.add_node("fact", {"says": "one and the same"}, id="a")
    store.add_node("fact", {"says": "one and the same"}, id="b")
    store.link("a", "contradicts", "b")

    assert [] == consolidate(store)


def test_kinds_and_scopes_are_kept_apart(store):
    for number, (kind, scope) in enumerate((("fact", ""), ("fact", "x"), ("note", ""), ("fact", ""))):
        store.add_node(kind, {"says": "the same words"}, id=f"n{number}", scope=scope)

    assert [("n0", "n3")] == ids(consolidate(store))
    assert [] == consolidate(store, kind="note")


@pytest.mark.parametrize("topic", ["auth", "#auth", "Auth"])
def test_topic_is_a_tag_or_a_key_with_or_without_a_version(store, clock, topic):
    store.add_node("fact", {"says": "sessions"}, id="tagged", tags=["auth"])
    store.add_node("fact", {"says": "who may do what"}, id="keyed", key="auth_v1")
    store.add_node("fact", {"says": "lunch at noon"}, id="lunch", tags=["food"])
    clock.move(days=1)
    for id in ("tagged", "keyed", "lunch"):
        store.end(id)

    (group,) = consolidate(store, topic=topic)
    assert {"tagged", "keyed"} == set(group.ids)
    assert "2 facts about 'auth' that no longer hold" == group.reason.replace("Auth", "auth")


def test_old_statements_on_a_topic_are_a_group_though_they_stand(store):
    for number, text in enumerate(("sessions are short", "cookies want a path", "nobody likes captchas")):
        store.add_node(
            "note", {"says": text}, id=f"n{number}", tags=["auth"], valid_from=f"2026-01-0{number + 1}"
        )

    assert [] == consolidate(store, topic="auth")
    (group,) = consolidate(store, topic="auth", before="2026-01-03")
    assert (("n0", "n1"), "2 notes about 'auth' that are from before 2026-01-03") == (group.ids, group.reason)


def test_old_statements_that_contradict_are_parted(store):
    for number, text in enumerate(
        ("the limit is 100 a minute", "the limit is 300 a minute", "cookies want a path")
    ):
        store.add_node(
            "note", {"says": text}, id=f"n{number}", tags=["auth"], valid_from=f"2026-01-0{number + 1}"
        )

    assert [("n0", "n2")] == ids(consolidate(store, topic="auth", before="2026-02-01"))


def test_retracted_and_forgotten_things_are_in_no_group(auth):
    auth.retract("sessions", reason="never so")
    assert [] == consolidate(auth)


def test_proposal_is_of_its_coordinate(auth):
    assert [] == consolidate(auth.as_of(valid="2026-01-20"))
    assert [("sessions", "basic")] == ids(consolidate(auth.as_of(valid="2026-01-30")))


def test_at_least_so_many_make_a_group(auth):
    assert [] == consolidate(auth, at_least=3)


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_another_summary_can_be_plugged_in(auth):
    (group,) = consolidate(auth, summarise=lambda nodes: {"was": [node.id for node in nodes]})

    assert {"was": ["sessions", "basic"]} == group.content


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_summary_is_drafted_with_no_lock_held_and_the_earliest_first(auth):
    seen = []

    def draft(nodes):
        assert not auth._core.lock._is_owned()
        seen.extend(node.id for node in nodes)
        return brief(nodes)

    consolidate(auth, summarise=draft)
    assert ["sessions", "basic"] == seen


@pytest.mark.parametrize(
    "wrong",
    [{"similar": 0.1}, {"similar": 1.5}, {"similar": True}, {"similar": "0.5"}, {"at_least": 1}, {"at_least": 2.0},
     pytest.param({"summarise": "brief"}, marks=pytest.mark.in_process("a function goes by its name there")),
     {"kind": ""}, {"topic": " "}, {"topic": 7}, {"before": "soon"}, {"summarise": lambda nodes: "text"}],
)  # fmt: skip
def test_bad_input_is_refused(auth, wrong):
    with pytest.raises(InvalidError):
        consolidate(auth, **wrong)


def test_brief_tells_each_statement_once_and_counts_the_rest(store):
    nodes = [store.add_node("fact", {"n": f"word{number % 12}"}, id=f"n{number:02}") for number in range(14)]

    drafted = brief(nodes)

    assert (14, None) == (drafted["count"], drafted["to"])
    assert drafted["summary"].startswith("14 facts, 2026-02-01 → …: word0; word1; ")
    assert drafted["summary"].endswith("; word7; and 4 more")


# ---------------------------------------------------------------- folding


def test_folded_members_are_kept_and_readable_and_the_summary_is_derived_from_them(auth):
    groups = consolidate(auth)
    (summary,) = fold(auth, groups)

    assert ("summary", groups[0].content, "stands") == (summary.kind, summary.content, summary.standing)
    assert {"sessions", "basic"} == {link.target for link in auth.links_from(summary.id, "derived_from")}
    assert "superseded" == auth.inspect("sessions").node.standing
    assert {"auth": "sessions"} == auth.as_of(valid="2026-01-10").node("sessions").content
    assert [] == auth.shaky()


def test_folded_group_is_listed_and_not_proposed_again(auth, clock):
    (summary,) = fold(auth, consolidate(auth))

    assert [] == consolidate(auth)
    (found,) = consolidations(auth)
    assert (summary.id, ["sessions", "basic"]) == (found.summary.id, [each.id for each in found.members])
    assert (None, "2 facts that no longer hold", clock.now) == (found.who, found.why, found.recorded_at)
    assert f"{summary.id} sums up sessions, basic" == str(found)


def test_one_retract_of_the_summary_undoes_it(auth, clock):
    before = auth.as_of()
    (summary,) = fold(auth, consolidate(auth))
    clock.move(days=1)
    folded = auth.as_of()
    clock.move(days=1)
    auth.retract(summary.id, reason="too short")

    assert [] == consolidations(auth)
    assert [("sessions", "basic")] == ids(consolidate(auth))
    assert ([], 1) == (consolidations(before), len(consolidations(folded)))


def test_later_statements_are_a_group_of_their_own(auth, clock):
    fold(auth, consolidate(auth))
    for date, text in (("2026-03-01", "OAuth"), ("2026-03-15", "passkeys")):
        clock.set(date)
        auth.add_node("fact", {"auth": text}, id=text, key="auth")
    clock.set("2026-04-01")

    assert [("JWT", "OAuth")] == ids(consolidate(auth))
    fold(auth, consolidate(auth))
    assert 2 == len(consolidations(auth))
    assert ["summary"] * 2 == [each.summary.kind for each in consolidations(auth)]


def test_folding_by_hand_is_listed_too_and_says_who_and_why(store):
    store.add_node("note", {}, id="day-1")
    store.add_node("plan", {}, id="plan", derived_from="day-1")
    store.add_node("note", {}, id="week")
    with store.transaction(author="ana"):
        store.fold(["day-1"], into="week", reason="end of the week")
        store.fold(["day-1"], into="week", reason="end of the week")

    (found,) = consolidations(store)
    assert ("week", "ana", "end of the week") == (found.summary.id, found.who, found.why)
    assert ["fold"] == [change.verb for change in store.changes() if change.subject == "week"][1:]


def test_folding_said_again_writes_nothing(store):
    store.add_node("note", {}, id="day-1")
    store.add_node("note", {}, id="week")
    store.fold("day-1", into="week")
    before = store.changes()

    assert "week" == store.fold("day-1", into="week").id
    assert before == store.changes()


def test_summary_is_in_the_scope_of_its_members(store):
    for number in range(2):
        store.add_node("fact", {"says": "the same words"}, id=f"n{number}", scope="team")

    (summary,) = fold(store, consolidate(store))
    assert "team" == summary.scope


def test_fold_of_what_was_forgotten_meanwhile_writes_nothing(auth):
    groups = consolidate(auth)
    auth.evict(ids=["sessions"], keep_audit=False)
    before = auth.changes()

    with pytest.raises((NotFoundError, ConflictError)):
        fold(auth, groups)
    assert before == auth.changes()


@pytest.mark.parametrize("gone", ["sessions", "summary"])
def test_member_or_summary_that_leaves_no_trace_takes_its_links_along(auth, gone):
    (summary,) = fold(auth, consolidate(auth))
    auth.evict(ids=[summary.id if gone == "summary" else gone], keep_audit=False)

    assert auth.verify().ok
    left = {"sessions": [["basic"]], "summary": []}[gone]
    assert left == [[each.id for each in found.members] for found in consolidations(auth)]


def test_summary_of_what_is_erased_is_shaky(auth, clock):
    (summary,) = fold(auth, consolidate(auth))
    clock.move(days=1)
    auth.erase("sessions", reason="asked to")

    assert "shaky" == auth.node(summary.id).standing
    assert {"erased", "superseded"} == {each.standing for each in consolidations(auth)[0].members}


def test_summaries_are_summed_up_when_asked_for(store):
    for number in range(2):
        store.add_node("summary", {"says": "the same words"}, id=f"s{number}")

    assert [] == consolidate(store)
    assert [("s0", "s1")] == ids(consolidate(store, kind="summary"))


def test_consolidations_of_a_branch_say_who_folded_what_and_why(store):
    names = [store.add_node("fact", {"says": says}).id for says in ("one", "two")]
    store.fold(names[:1], into={"summary": "on the trunk"}, reason="before the fork")
    branch = store.branch("trial")
    branch.fold(names[1:], into={"summary": "on the branch"}, reason="after it")

    assert ["after it", "before the fork"] == [each.why for each in consolidations(branch)]


def test_consolidations_are_there_after_reopening(disk_store, clock):
    for number in range(2):
        disk_store.add_node("fact", {"says": "the same words"}, id=f"n{number}")
    fold(disk_store, consolidate(disk_store))
    disk_store.close()

    with graphstore.open(disk_store.path, clock=clock) as again:
        assert ["n0", "n1"] == [each.id for each in consolidations(again)[0].members]
        assert again.verify().ok


# ---------------------------------------------------------------- whatever the store holds

statement_specs = st.lists(
    st.tuples(
        st.sampled_from(["fact", "note"]),
        st.sampled_from(["a b c d", "a b c e", "a b c d", "x is z 1", "x is z 2", "q"]),
        st.sampled_from(["stands", "ends", "superseded"]),
    ),
    max_size=14,
)


@settings(max_examples=examples(60), deadline=None)
@given(statements=statement_specs, similar=st.sampled_from([0.2, 0.5, 0.6, 1.0]))
def test_groups_are_of_one_kind_apart_and_without_contradictions_whatever_the_store_holds(
    statements, similar
):
    with graphstore.open(":memory:") as store:
        for number, (kind, text, fate) in enumerate(statements):
            store.add_node(kind, {"says": text}, id=f"n{number:02}", valid_from=day("2026-01-01"), tags=["t"])
            if fate == "ends":
                store.end(f"n{number:02}", at="2026-02-01")
            elif fate == "superseded":
                store.add_node(
                    kind, {"says": f"instead of {number}"}, id=f"m{number:02}", supersedes=f"n{number:02}"
                )
        open_pairs = {frozenset((each.source.id, each.target.id)) for each in store.contradictions()}
        for groups in (
            consolidate(store, similar=similar),
            consolidate(store, topic="t", before=day("2026-01-02")),
        ):
            members = [node.id for group in groups for node in group.members]
            assert len(members) == len(set(members))
            for group in groups:
                assert {group.kind} == {node.kind for node in group.members}
                assert 1 == len({node.standing == "stands" for node in group.members})
                assert not any(pair <= set(group.ids) for pair in open_pairs)
            fold(store, groups)
        assert [] == consolidate(store, topic="t", before=day("2026-01-02"))


def test_it_is_one_of_the_first_things_at_hand(auth):
    assert consolidate(auth) == graphstore.consolidate(auth)
