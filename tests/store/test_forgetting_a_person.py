"""Forgetting a person: what is shown first, what is erased, what stays and why, and that a changed store shows anew."""

from __future__ import annotations

import pytest

from graphstore import GraphStore, InvalidError, NotFoundError, timeline
from graphstore.values.findings import Forgetting

pytestmark = pytest.mark.served


def grouped(found: tuple[object, ...]) -> dict[str, set[str]]:
    """The ids of groups, by what they are."""
    by: dict[str, set[str]] = {}
    for group in found:
        by.setdefault(group.what, set()).update(group.ids)  # type: ignore[attr-defined]
    return by


@pytest.fixture
def told(store: GraphStore) -> GraphStore:
    """What a team says of, and with, Anna Novák, and of others."""
    add = store.add_node
    add("person", {"name": "Anna Novák", "email": "a.novak@home.cz", "handle": "@annan"}, id="p1")
    add("fact", {"says": "ANNA NOVA\u0301K's phone is 555"}, id="phone")
    add("fact", {"says": "the office key is with Anna Novák"}, id="key")
    add("fact", {"says": "mail goes to a.novak@home.cz"}, id="mail")
    add("fact", {"says": "lunch is at one"}, id="lunch", source="annan")
    add("fact", {"says": "od Anny Novákové"}, id="slavic")
    add("fact", {"says": "deploys are on Friday"}, id="deploys")
    add("fact", {"says": "Annapolis is a town"}, id="town")
    say = timeline.record_message
    say(store, "TEXT", "I am ill today", sender="u7", sender_name="Anna Novák", id="m1")
    say(store, "TEXT", "see you", sender="u7", id="m2")
    say(store, "TEXT", "Anna Novák is ill", sender="bo", id="m3")
    store.fold(["m1", "m3"], into={"says": "in the team Anna Novák is ill"})
    store.link("deploys", "related_to", "town", reason="Anna Novák asked for it")
    return store


def test_what_would_be_erased_is_shown_and_nothing_is_written(told):
    before = told.stats()
    found = told.forget("Anna Novák")

    erases, stays = grouped(found.erases), grouped(found.stays)
    assert {"p1", "phone", "lunch"} == erases["things"]
    assert {"m1", "m2"} == erases["messages"]
    assert 1 == len(erases["summaries"])
    assert {"key", "mail", "slavic"} == stays["things"]
    assert {"m3"} == stays["messages"]
    assert 1 == len(stays["links"])
    assert {"anna novák", "a.novak@home.cz", "@annan", "u7"} == {*found.names}
    assert not found.applied and before == told.stats()
    assert "would erase 6" in str(found) and "somebody else's message" in str(found)
    assert [True] == [
        "phone is 555" in each for group in found.erases for each in group.examples if "phone" in each
    ]


def test_the_plan_is_erased_as_it_was_shown_and_the_rest_is_named(told):
    plan = told.forget("p1")
    done = told.forget("p1", plan=plan.plan, reason="asked for")

    assert done.applied and {*plan.ids} == {*done.ids}
    assert {"erased"} == {told.inspect(id).node.standing for id in done.ids}
    assert "ill" in told.event("m3").description and "lunch" != told.node("town").id
    assert {"key", "mail", "slavic"} <= grouped(done.stays)["things"]
    (erased,) = {each.tx for id in done.ids for each in told.operations(id) if each.verb == "erase"}
    assert done.tx == erased
    again = told.forget("Anna Novák", names=["u7", "annan", "a.novak@home.cz"])
    assert () == again.erases


def test_what_was_joined_with_the_person_goes_with_them(told):
    told.add_node("person", {"nick": "the baker"}, id="baker")
    told.join("baker", into="p1", reason="she bakes")

    assert "baker" in told.forget("Anna Novák").ids


def test_with_mentions_nothing_stays_that_surely_names_them(told):
    plan = told.forget("Anna Novák", mentions=True)
    done = told.forget("Anna Novák", mentions=True, plan=plan.plan)

    assert {"key", "mail", "m3"} <= {*done.ids}
    assert {"slavic"} == grouped(done.stays)["things"]


def test_a_store_that_changed_since_shows_anew(told):
    plan = told.forget("Anna Novák")
    told.add_node("fact", {"says": "Anna Novák's birthday is in May"}, id="birthday")
    refused = told.forget("Anna Novák", plan=plan.plan)

    assert refused.is_changed and not refused.applied
    assert "birthday" in refused.ids and "nothing was erased" in str(refused)
    assert "stands" == told.node("phone").standing
    told.add_node("fact", {"says": "unrelated"}, id="unrelated")
    assert told.forget("Anna Novák", plan=refused.plan).applied


def test_what_was_said_earlier_and_on_branches_is_found_too(told):
    told.add_node("fact", {"says": "Anna Novák leads"}, id="lead")
    told.revise("lead", {"says": "nobody leads"})
    told.branch("plan").add_node("fact", {"says": "Anna Novák would lead"}, id="would")
    told.retract("phone", reason="wrong")
    found = told.forget("anna novák")

    assert {"lead", "would", "phone"} <= {*found.ids}
    assert told.forget("anna novák", plan=found.plan).applied
    assert "erased" == told.on("plan").inspect("would").node.standing


def test_an_address_leads_to_the_person_and_a_shared_one_to_nobody_else(told):
    told.add_node("person", {"name": "Bo Berg", "email": "a.novak@home.cz"}, id="p2")
    found = told.forget("a.novak@home.cz")
    assert {"anna novák", "bo berg"} <= {*found.names}  # it was given: both have it
    found = told.forget("p1")
    assert "p1" in found.ids and "p2" not in found.ids and "bo berg" not in found.names
    assert "p2" in grouped(found.stays)["things"]


def test_messages_lead_from_a_sender_to_the_name(told):
    assert {"m1", "m2", "phone"} <= {*told.forget("u7").ids}


def test_segments_of_sessions_go_and_their_files_are_named(told):
    file = {"sessionFile": "/home/x/s.jsonl"}
    told.add_node("segment", {"content": {"summary": "a fix for Anna Novák"}, "source": file}, id="seg")
    shown = told.forget("Anna Novák")
    done = told.forget("Anna Novák", plan=shown.plan)
    assert {"seg"} == grouped(done.erases)["sessions"]
    assert {"/home/x/s.jsonl"} == grouped(shown.stays)["files"] == grouped(done.stays)["files"]


def test_in_one_scope_the_others_stay(told):
    told.add_node("fact", {"says": "Anna Novák is here"}, id="here", scope="team/a")
    found = told.forget("Anna Novák", scope="team")

    assert ("here",) == found.ids
    assert "in another scope" in {group.why for group in found.stays}


def test_without_audit_no_tombstone_keeps_the_name(told):
    told.add_node("fact", {"says": "x"}, id="person/petr")
    shown = told.forget("Petr")
    assert ("person/petr",) == shown.ids
    assert {"tombstones": {"person/petr"}} == grouped(shown.stays)
    plan = told.forget("Petr", keep_audit=False)
    assert plan.plan != shown.plan
    done = told.forget("Petr", keep_audit=False, plan=plan.plan)
    assert () == done.stays
    with pytest.raises(NotFoundError):
        told.inspect("person/petr")


def test_names_are_needed_and_a_plan_not_inside_a_transaction(told):
    with pytest.raises(InvalidError, match="who"):
        told.forget("")
    plan = told.forget("p1")
    with told.transaction(), pytest.raises(InvalidError, match="transaction"):
        told.forget("p1", plan=plan.plan)
    with pytest.raises(InvalidError, match="branch"):
        told.branch("plan").forget("p1")


def test_nobody_is_found_for_a_name_that_nothing_has(told):
    found: Forgetting = told.forget("Zoltán")

    assert () == found.erases == found.stays
    assert "would erase nothing" in str(found) and "nothing stays" in str(found)
