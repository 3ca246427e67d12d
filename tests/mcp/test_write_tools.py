"""What agents write: under the client's own name, each call one transaction, and each answer says what became of other things by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.mcp import server
from tests.conftest import Clock

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")


@pytest.fixture
def ana(store: GraphStore, clock: Clock) -> Iterator[Agent]:
    clock.set("2026-03-01")
    with agent(door.server(store)) as opened:
        yield opened


# ---------------------------------------------------------------- remember


def test_a_statement_is_kept_under_the_clients_name(ana, store):
    found = ana.ask("remember", statement="releases go out on Tuesdays", id="tue", reason="the team said so")

    node = store.node("tue")
    assert ("new", "fact", {"says": "releases go out on Tuesdays"}, "agent:ana") == (
        found["outcome"], node.kind, node.content, node.source,
    )  # fmt: skip
    (change,) = store.changes()
    assert ("add_node", "ana", "the team said so") == (change.verb, change.author, change.reason)


def test_it_holds_over_the_period_given(ana, store):
    ana.ask("remember", statement="freeze", id="freeze", valid_from="2026-03-20", valid_to="2026-03-27")

    (version,) = store.history("freeze")
    assert ("2026-03-20", "2026-03-27") == (f"{version.valid_from:%F}", f"{version.valid_to:%F}")


def test_more_content_is_kept_beside_the_statement(ana, store):
    ana.ask(
        "remember", statement="Ada leads", id="lead", content={"since": 2024}, tags=["team"], source="wiki"
    )

    node = store.node("lead")
    assert ({"says": "Ada leads", "since": 2024}, "Ada leads", ("team",), "wiki") == (
        node.content, node.text, node.tags, node.source,
    )  # fmt: skip


def test_the_same_statement_again_is_confirmed(ana, store):
    ana.ask("remember", statement="tea is ready", id="tea")
    found = ana.ask("remember", statement="Tea is ready.")

    assert ("confirmed", "tea") == (found["outcome"], found["thing"]["id"])
    assert (1, 1) == (len(store.nodes("fact")), store.inspect("tea").confirmations)


def test_the_same_statement_of_an_earlier_time_is_something_new(ana, store):
    ana.ask("remember", statement="tea is ready", valid_from="2026-02-20")
    found = ana.ask("remember", statement="tea is ready", valid_from="2026-01-01", valid_to="2026-01-02")

    assert "new" == found["outcome"]


def test_a_new_value_of_a_slot_says_what_it_closed(ana):
    ana.ask("remember", statement="deploys on Tuesdays", key="deploy_day", id="tue", valid_from="2026-01-01")
    found = ana.ask("remember", statement="deploys on Fridays", key="deploy_day", id="fri", reason="calls")

    (closed,) = found["closed"]
    assert ("tue", "superseded", found["thing"]["valid_from"]) == (
        closed["id"], closed["standing"], closed["valid_to"],
    )  # fmt: skip
    again = ana.ask("remember", statement="deploys on Fridays", key="deploy_day")
    assert ("confirmed", "fri", []) == (again["outcome"], again["thing"]["id"], again["closed"])


def test_what_it_supersedes_is_closed_by_it(ana):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    found = ana.ask("remember", statement="tokens", id="new", supersedes=["old"], valid_from="2026-02-01")

    assert [("old", "2026-02-01T00:00:00Z")] == [(each["id"], each["valid_to"]) for each in found["closed"]]


def test_what_seems_to_disagree_is_told(ana):
    ana.ask("remember", statement="the cache holds 100 entries", id="hundred", tags=["cache"])
    found = ana.ask("remember", statement="the cache holds 200 entries", tags=["cache"])

    assert ("new", ["hundred"]) == (found["outcome"], [each["id"] for each in found["maybe_contrary"]])
    ana.ask("link", source=found["thing"]["id"], kind="contradicts", target="hundred")
    again = ana.ask("remember", statement="the cache holds 200 entries")
    assert (["hundred"], []) == ([each["id"] for each in again["conflicts"]], again["maybe_contrary"])


def test_a_statement_is_warned_of_without_tags_and_each_warning_has_the_tools_that_decide(ana, store, clock):
    ana.ask("remember", statement="Log files are kept for 90 days", id="ninety")
    clock.move(days=1)
    found = ana.ask("remember", statement="Log files are kept for 30 days", id="thirty")

    (warned,) = found["maybe_contrary"]
    assert ("ninety", "ana", ["30 days", "90 days"], []) == (
        warned["id"],
        warned["who"],
        warned["values"],
        found["similar"],
    )
    assert [
        "supersede(old='ninety', by='thirty', reason='…')",
        "link(source='thirty', kind='corrects', target='ninety', reason='…')",
        "resolve(id='thirty', other='ninety', keep='both', reason='…')",
    ] == warned["calls"]
    ana.ask("resolve", id="thirty", other="ninety", keep="both", reason="two sorts of logs")
    assert [] == ana.ask("remember", statement="Log files are kept for 30 days")["maybe_contrary"]


def test_the_same_again_is_similar_to_what_is_there(ana, clock):
    ana.ask("remember", statement="The film lasts 2 hours", id="film")
    clock.move(days=1)
    again = ana.ask("remember", statement="the film lasts 2 hours")
    other = ana.ask("remember", statement="The film lasts 120 minutes", id="minutes")

    assert ("confirmed", ["film"]) == (again["outcome"], [each["id"] for each in again["similar"]])
    assert ("new", [("minutes", "film", "ana")]) == (
        other["outcome"], [(each["of"], each["id"], each["who"]) for each in other["similar"]],
    )  # fmt: skip


def test_several_statements_are_warned_of_in_one_answer(ana):
    ana.ask("remember", statement="Log files are kept for 90 days", id="ninety")
    found = ana.ask(
        "remember_many",
        statements=[
            {"statement": "Log files are kept for 30 days", "id": "thirty"},
            {"statement": "The cat sleeps", "id": "cat"},
            {"statement": "log files are kept for 90 days!", "id": "again"},
        ],
    )

    assert [("again", "ninety")] == [(each["of"], each["id"]) for each in found["similar"]]
    assert {("thirty", "ninety"), ("thirty", "again"), ("again", "thirty")} == {
        (each["of"], each["id"]) for each in found["maybe_contrary"]
    }


def test_what_it_rests_on_is_linked(ana, store):
    ana.ask("remember", statement="sessions", id="base")
    ana.ask("remember", statement="scale sessions", id="plan", derived_from=["base"])

    assert ["base"] == [link.target for link in store.links_from("plan", "derived_from")]


def test_it_describes_better_what_is_there(ana, store):
    ana.ask("remember", statement="logins are tokens", id="login", valid_from="2026-01-01")
    found = ana.ask("remember", statement="logins are signed tokens", revises="login", reason="better said")

    assert ("revised", 2) == (found["outcome"], store.node("login").number)
    assert "2026-01-01T00:00:00Z" == found["thing"]["valid_from"]


def test_to_describe_better_takes_nothing_of_something_new(ana):
    assert "revises= describes a node anew" in ana.refused("remember", statement="x", revises="y", key="z")


def test_a_source_that_is_trusted_less_closes_nothing(ana, store):
    store.set_trust({"user": 2, "agent": 1})
    store.add_node("fact", {"says": "deploys on Tuesdays"}, key="deploy_day", source="user:bo")
    before = store.stats()["transactions"]

    assert "may not replace" in ana.refused("remember", statement="deploys on Fridays", key="deploy_day")
    assert before == store.stats()["transactions"]


# ---------------------------------------------------------------- the other four


def test_an_event_is_of_the_agent_and_counted_when_it_comes_again(ana, store):
    first = ana.ask("record_event", type="error", description="TypeError in render", occurred_at="2026-02-01")
    again = ana.ask("record_event", type="error", description="TypeError in render")

    assert (True, 1, False, 2) == (first["is_new"], first["count"], again["is_new"], again["count"])
    (event,) = store.events()
    assert ("agent", "ana") == (event.origin, event.agent)


def test_a_fix_resolves_its_error(ana, store):
    error = ana.ask("record_event", type="error", description="boom", occurred_at="2026-02-01")["event"]["id"]
    ana.ask("record_event", type="fix", description="mended", related_to=[error])

    assert "resolved" == store.event(error).status


def test_a_fix_resolves_an_incident_and_has_no_status_of_its_own(ana, store):
    outage = ana.ask("record_event", type="incident", description="down", occurred_at="2026-02-01")
    fix = ana.ask("record_event", type="fix", description="mended", related_to=[outage["event"]["id"]])

    assert ("active", None) == (outage["status"], fix.get("status"))
    assert "resolved" == store.event(outage["event"]["id"]).status
    told = ana.call("events", since="90d").content[0].text
    assert "down (resolved; recorded 2026-03-01 by ana)" in told
    assert "mended (recorded then by ana) — resolves" in told


def test_a_message_has_its_thread_and_sender(ana, store):
    ana.ask(
        "record_event", type="TEXT", description="hello", thread="t", sender="bo", trace_id="tr1", span_id="s"
    )

    (event,) = store.events()
    assert ("t", "bo", "tr1", True) == (event.thread, event.sender, event.trace_id, event.authorized)


def test_a_field_is_amended_where_it_holds_and_nowhere_else(ana, store):
    ana.ask(
        "remember",
        statement="the limit",
        content={"limit": 100},
        id="x",
        valid_from="2026-01-01",
        valid_to="2026-01-20",
    )
    done = ana.ask(
        "amend", id="x", fields={"limit": 300}, valid_from="2026-01-10", reason="measured", if_number=1
    )

    assert "amended" == done["outcome"]
    assert [(100, 1), (300, 2)] == [(row.content["limit"], row.number) for row in store.history("x")]
    assert "confirmed" == ana.ask("amend", id="x", fields={"limit": 300}, valid_from="2026-01-10")["outcome"]


def test_who_expects_another_version_is_shown_what_holds(ana):
    ana.ask("remember", statement="weekly", id="x")
    ana.ask("remember", statement="daily", revises="x", if_number=1)

    assert "version 2 holds now: 'daily'" in ana.refused(
        "remember", statement="monthly", revises="x", if_number=1
    )
    assert "version 2 holds now" in ana.refused("retract", id="x", reason="wrong", if_number=1)
    assert "if_number= is of a node" in ana.refused("remember", statement="monthly", if_number=1)


def test_the_same_description_again_is_confirmed(ana):
    ana.ask("remember", statement="weekly", id="x")

    assert "confirmed" == ana.ask("remember", statement="weekly", revises="x")["outcome"]


def test_to_supersede_says_what_is_shaky_by_it(ana):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    ana.ask("remember", statement="tokens", id="new", valid_from="2026-02-01")
    ana.ask("remember", statement="scale sessions", id="plan", derived_from=["old"], valid_from="2026-01-02")
    found = ana.ask("supersede", old="old", by="new", reason="scale")

    assert ("new", "supersedes", "old", "scale") == tuple(
        found["link"][name] for name in ("source", "kind", "target", "reason")
    )
    assert ("superseded", "2026-02-01T00:00:00Z", ["plan"]) == (
        found["old"]["standing"], found["old"]["valid_to"], [each["id"] for each in found["now_shaky"]],
    )  # fmt: skip


def test_to_retract_wants_a_reason_and_says_what_is_shaky_by_it(ana, store):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    ana.ask("remember", statement="scale sessions", id="plan", derived_from=["old"], valid_from="2026-01-02")
    found = ana.ask("retract", id="old", reason="a misunderstanding")

    assert ("retracted", "retracted", ["plan"]) == (
        found["how"], found["thing"]["standing"], [each["id"] for each in found["now_shaky"]],
    )  # fmt: skip
    assert ("retract", "ana", "a misunderstanding") == (
        store.changes()[-1].verb, store.changes()[-1].author, store.changes()[-1].reason,
    )  # fmt: skip


def test_a_slip_is_undone_by_the_tx_of_its_answer(ana, store):
    ana.ask("remember", statement="deploys on Tuesdays", key="deploy_day", id="tue", valid_from="2026-01-01")
    slip = ana.ask("remember", statement="deploys on Fridays", key="deploy_day", id="fri")
    found = ana.ask("undo", tx=slip["tx"], reason="it was another project")

    assert (slip["tx"], ["add_node fri"], [("fri", "retracted")]) == (
        found["undone"], found["operations"], [(each["id"], each["standing"]) for each in found["things"]],
    )  # fmt: skip
    assert ("stands", None) == (store.node("tue").standing, store.node("tue").valid_to)
    change = store.changes()[-1]
    assert ("undo", "ana", "it was another project") == (change.verb, change.author, change.reason)
    assert ["tue"] == [each["id"] for each in found["holds_again"]]
    assert "took back what was written at" in ana.told("undo", tx=found["tx"], reason="it was this one")
    assert "fri" == store.nodes(key="deploy_day")[0].id


def test_an_undo_says_what_is_firm_or_shaky_by_it(ana):
    ana.ask(
        "remember", statement="we deploy on Tuesdays", key="deploy_day", id="tue", valid_from="2026-01-01"
    )
    ana.ask("remember", statement="Support watches then", id="watch", derived_from=["tue"])
    slip = ana.ask("remember", statement="we deploy on Fridays", key="deploy_day", id="fri")
    assert ["watch"] == [each["id"] for each in slip["now_shaky"]]
    undone = ana.ask("undo", tx=slip["tx"], reason="a slip")
    again = ana.ask("undo", tx=undone["tx"], reason="no slip")

    assert ["tue", "watch"] == [each["id"] for each in undone["holds_again"]]
    assert ["watch"] == [each["id"] for each in again["now_shaky"]]
    assert "holds again: watch" in ana.told("undo", tx=again["tx"], reason="it was one")


def test_an_undone_supersession_says_what_holds_again(ana):
    for name in ("old", "new"):
        ana.ask("remember", statement=f"the {name} pier", id=name, valid_from="2026-01-01")
    done = ana.ask("supersede", old="old", by="new", valid_from="2026-02-01")
    found = ana.ask("undo", tx=done["tx"], reason="another pier")

    assert [("old", "stands")] == [(each["id"], each["standing"]) for each in found["things"]]


def test_an_undone_link_says_how_its_ends_stand(ana):
    for name in ("rope", "knot"):
        ana.ask("remember", statement=f"there is a {name}", id=name)
    done = ana.ask("link", source="knot", kind="part_of", target="rope")
    found = ana.ask("undo", tx=done["tx"], reason="no")

    assert ["knot", "rope"] == [each["id"] for each in found["things"]]


def test_an_undo_of_no_transaction_names_the_nearest(ana):
    done = ana.ask("remember", statement="a plan", id="plan")
    told = ana.refused("undo", tx="2026-01-01", reason="x")

    assert f"Nearest: {done['tx'].replace('T', ' ')} (add_node plan by ana)." in told
    assert "changes()" not in told and told.endswith(
        "Next: call undo(tx=…) with the whole tx that was meant."
    )


def test_what_was_built_on_is_not_undone_and_named(ana, store):
    base = ana.ask("remember", statement="sessions", id="base")
    ana.ask("remember", statement="scale sessions", id="plan", derived_from=["base"])

    assert "'plan'" in ana.refused("undo", tx=base["tx"], reason="never said")
    assert "there is no transaction at 2025-01-01" in ana.refused("undo", tx="2025-01-01", reason="x")
    assert "undo" != store.changes()[-1].verb


def test_what_wrote_nothing_has_no_tx(ana):
    ana.ask("remember", statement="a plan", id="plan")
    ana.ask("remember", statement="a base", id="base")
    link = {"source": "plan", "kind": "uses", "target": "base"}

    assert [True, False] == ["tx" in ana.ask("link", **link) for _ in range(2)]
    assert "(written at tx 2026-" in ana.told("retract", id="plan", reason="never so")


def test_what_was_true_and_ceased_to_be_ends(ana, store):
    ana.ask("remember", statement="freeze", id="freeze", valid_from="2026-01-01")
    found = ana.ask("retract", id="freeze", reason="over", ended_at="2026-02-01")

    assert ("ended", "ended") == (found["how"], found["thing"]["standing"])
    assert "2026-02-01" == f"{store.history('freeze')[0].valid_to:%F}"
    assert "ended_at= says it was true until then" in ana.refused(
        "retract", id="freeze", reason="x", ended_at="2026-01-05", valid_from="2026-01-03"
    )


def test_a_link_is_made_once(ana, store):
    ana.ask("remember", statement="a plan", id="plan")
    ana.ask("remember", statement="a base", id="base")
    arguments = {"source": "plan", "kind": "uses", "target": "base", "reason": "it does", "inferred": True}

    assert [True, False] == [ana.ask("link", **arguments)["is_new"] for _ in range(2)]
    (link,) = store.links_from("plan", "uses")
    assert ("agent:ana", "inferred", "it does") == (link.created_by, link.confidence, link.reason)


def test_a_plan_that_says_the_same_is_not_what_is_remembered_now(ana, store):
    store.add_node("fact", {"says": "the office is in Rome"}, id="plan", valid_from="2099-01-01")
    made = ana.ask("remember", statement="the office is in Rome", kind="fact")

    assert "plan" != made["thing"]["id"]
    assert "stands" == store.node(made["thing"]["id"]).standing


def test_several_pairs_are_linked_by_one_call_or_none_is(ana, store):
    for id in ("venue", "catering", "band", "launch"):
        store.add_node("fact", {"text": id}, id=id)
    told = ana.ask(
        "link",
        source="venue",
        kind="derived_from",
        target="launch",
        also=[["catering", "launch"], ["band", "launch"]],
    )
    assert ["linked"] * 2 == [line.partition(":")[0] for line in told["also"]]
    assert {"venue", "catering", "band"} == {link.source for link in store.backlinks_to("launch")}
    assert 1 == len({link.tx_from for link in store.backlinks_to("launch")})

    assert "no pair" in ana.refused("link", source="venue", kind="supports", target="band", also=[["launch"]])
    assert "no node or event" in ana.refused(
        "link", source="venue", kind="supports", target="band", also=[["nobody", "launch"]]
    )
    assert [] == [link for link in store.links_from("venue") if link.kind == "supports"]


def test_a_link_minted_for_an_agent_names_it(ana, store):
    for name in ("old", "new", "newer", "base"):
        ana.ask("remember", statement=f"the {name} one", id=name)
    ana.ask("supersede", old="old", by="new")
    ana.ask("remember", statement="something else", id="other", supersedes=["new"], derived_from=["base"])
    ana.ask("record_event", type="fix", description="mended", related_to=["base"])

    links = [*store.supersedes("new"), *store.links_from("other"), *store.backlinks_to("base", "related_to")]
    assert ["derived_from", "related_to", "supersedes", "supersedes"] == sorted(link.kind for link in links)
    assert {"agent:ana"} == {link.created_by for link in links}


def test_what_another_agent_links_alike_is_the_same_link(ana, store):
    ana.ask("remember", statement="a plan", id="plan")
    ana.ask("remember", statement="a base", id="base")
    ana.ask("link", source="plan", kind="uses", target="base")
    with agent(door.server(store), "bob") as bob:
        assert not bob.ask("link", source="plan", kind="uses", target="base")["is_new"]
    store.link("plan", "uses", "base")

    assert ["agent:ana"] == [link.created_by for link in store.links_from("plan", "uses")]


def test_each_client_writes_under_its_own_name(store):
    made = door.server(store)
    for name in ("ana", "claude-code", " \n"):
        with agent(made, name) as one:
            one.ask("record_event", type="note", description=f"from {name.strip() or 'nobody'}")
        with agent(made, name, mode="legacy") as one:
            one.ask("record_event", type="note", description=f"again from {name.strip() or 'nobody'}")

    assert ["ana", "ana", "claude-code", "claude-code", "agent", "agent"] == [
        each.author for each in store.changes()
    ]


def test_two_agents_write_at_once_and_nothing_is_lost(store):
    from concurrent.futures import ThreadPoolExecutor

    made = door.server(store)

    def write(name: str) -> None:
        with agent(made, name) as one:
            for number in range(20):
                one.ask("remember", statement=f"{name} says {number}", id=f"{name}-{number}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("ana", "bob")))
    assert (40, {"ana": 20, "bob": 20}) == (
        len(store.nodes("fact")),
        {name: sum(change.author == name for change in store.changes()) for name in ("ana", "bob")},
    )


# ---------------------------------------------------------------- ids of links


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("get", "id"),
        ("history", "id"),
        ("why", "id"),
        ("what_superseded", "id_or_text"),
        ("trace", "id"),
        ("confirm", "id"),
    ],
)
def test_the_id_of_a_link_where_a_thing_is_wanted_says_which_link_it_is(ana, store, tool, name):
    for id in ("lamp", "bulb"):
        store.add_node("thing", {}, id=id)
    link = store.link("lamp", "uses", "bulb")

    arguments = {"reason": "looked at"} if tool == "confirm" else {}
    said = ana.refused(tool, **{name: link.id}, **arguments)
    if tool not in ("trace", "confirm"):
        assert f"{link.id!r}: it is a link, 'lamp' uses 'bulb'" in said
    assert "failed unexpectedly" not in said


# ---------------------------------------------------------------- unlink, resolve, and what else changed


def test_a_link_is_taken_back_and_what_it_superseded_holds_again(ana, store):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    ana.ask("remember", statement="tokens", id="new", supersedes=["old"], valid_from="2026-02-01")
    done = ana.ask("unlink", source="new", kind="supersedes", target="old", reason="both hold")

    assert ("stands", "stands") == (done["source"]["standing"], done["target"]["standing"])
    assert [] == store.links_from("new", "supersedes")
    change = store.changes()[-1]
    assert ("unlink", "ana", "both hold") == (change.verb, change.author, change.reason)


def test_a_link_that_is_not_there_is_refused(ana):
    ana.ask("remember", statement="sessions", id="one")
    ana.ask("remember", statement="tokens", id="two")

    assert "one uses two" in ana.refused("unlink", source="one", kind="uses", target="two", reason="no")


def test_a_contradiction_is_decided_for_one_or_both(ana, store):
    for id, count in (("hundred", 100), ("two", 200), ("three", 300)):
        ana.ask("remember", statement=f"the cache holds {count}", id=id)
    ana.ask("remember", statement="size it so", id="plan", derived_from=["hundred"])
    ana.ask("link", source="two", kind="contradicts", target="hundred")
    ana.ask("link", source="three", kind="contradicts", target="two")
    done = ana.ask("resolve", id="hundred", other="two", keep="two", reason="measured")
    both = ana.ask("resolve", id="two", other="three", keep="both", reason="two caches")

    assert ["retracted", "stands"] == [each["standing"] for each in done["things"]]
    assert ["plan"] == [each["id"] for each in done["now_shaky"]]
    assert ["stands", "stands"] == [each["standing"] for each in both["things"]]
    assert [] == store.contradictions()
    assert "do not contradict each other, or that is decided already" in ana.refused(
        "resolve", id="two", other="three", keep="two", reason="again"
    )


def test_what_rests_by_a_kind_of_the_store_is_told_too(ana, store):
    store.define_kind("budgeted_by", rests=["retracted"])
    ana.ask("remember", statement="the plan for June", id="plan")
    ana.ask("remember", statement="two people for it", id="people")
    ana.ask("link", source="people", kind="budgeted_by", target="plan")
    gone = ana.ask("retract", id="plan", reason="a slip")

    assert ["people"] == [each["id"] for each in gone["now_shaky"]]


def test_what_is_shaky_by_a_new_value_is_told_once(ana):
    ana.ask("remember", statement="deploys on Tuesdays", key="day", id="tue", valid_from="2026-01-01")
    ana.ask("remember", statement="watch on Tuesdays", id="watch", derived_from=["tue"])
    moved = ana.ask("remember", statement="deploys on Fridays", key="day", id="fri")
    other = ana.ask("remember", statement="deploys on Mondays", key="day", id="mon")

    assert (["watch"], []) == ([each["id"] for each in moved["now_shaky"]], other["now_shaky"])


def test_a_fix_says_what_it_resolved(ana):
    ana.ask("record_event", type="error", description="refused", id="outage")
    fix = ana.ask("record_event", type="fix", description="more of them", id="fix", related_to=["outage"])

    assert ["outage"] == [each["id"] for each in fix["resolved"]]


def test_a_retraction_says_what_holds_again(ana):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    ana.ask("remember", statement="tokens", id="new", supersedes=["old"], valid_from="2026-02-01")
    done = ana.ask("retract", id="new", reason="never so")

    assert ["old"] == [each["id"] for each in done["holds_again"]]


# ---------------------------------------------------------------- several at once


def test_several_statements_are_one_transaction(ana, store):
    ana.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
    done = ana.ask(
        "remember_many",
        statements=[
            {
                "statement": "tokens",
                "id": "new",
                "supersedes": "old",
                "valid_from": "2026-02-01",
                "tags": "auth",
            },
            {"statement": "Sessions.", "valid_from": "2026-01-15"},
            {
                "statement": "Ada leads",
                "id": "lead",
                "kind": "decision",
                "content": {"since": 2024},
                "reason": "vote",
            },
        ],
    )

    assert ["new", "old", "lead"] == [each["id"] for each in done["things"]]
    assert (["old"], ["old"]) == (done["confirmed"], [each["id"] for each in done["closed"]])
    assert {done["tx"]} == {
        f"{store.node(id).recorded_at:%Y-%m-%dT%H:%M:%S.%fZ}".replace(".000000", "") for id in ("new", "lead")
    }
    assert ({"says": "Ada leads", "since": 2024}, ("auth",)) == (
        store.node("lead").content,
        store.node("new").tags,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"statement": " "}, "statement 2 is blank"),
        ({"statement": "x", "colour": "red"}, "unknown argument of statement 2 'colour'"),
        ({"statement": "x", "content": "more"}, "content of statement 2 is no JSON object"),
        ({"statement": "x", "supersedes": ["nothing"]}, "nothing"),
    ],
)
def test_of_several_statements_all_are_kept_or_none(ana, store, wrong, said):
    assert said in ana.refused("remember_many", statements=[{"statement": "first", "id": "first"}, wrong])
    assert [] == store.nodes()


# ---------------------------------------------------------------------- who signs


def _of_alice(clock):
    store = graphstore.open(":memory:", clock=clock)
    with store.transaction(author="alice"):
        store.set_trust({"alice": 5, "bob": 5, "crawler": 1})
        store.add_node("fact", {"says": "hers"}, id="hers")
    clock.move(days=1)
    return store


def test_an_agent_has_no_rank_by_the_name_it_claims(clock):
    with _of_alice(clock) as store, agent(server(store), "alice") as claims:
        assert "trust" in claims.refused("retract", id="hers", reason="mine")
        assert "trust" in claims.refused("remember", statement="mine", revises="hers", source="alice")
        claims.ask("remember", statement="seen", id="seen")
        assert ("agent:alice", "agent:alice") == (store.node("seen").author, store.node("seen").source)


def test_an_agent_has_the_rank_of_the_name_that_it_is_given(clock):
    with _of_alice(clock) as store:
        with agent(server(store, author="crawler"), "alice") as crawls:
            assert "crawler" in crawls.refused("retract", id="hers", reason="mine")
        with agent(server(store, author="bob"), "anybody") as signs:
            signs.ask("remember", statement="bob's", revises="hers")
            assert ("bob", "bob") == (store.node("hers").author, store.node("hers").source)


def test_what_changes_a_plan_says_what_was_built_on_it(ana):
    ana.ask("remember", statement="we launch on 10 April", id="april", key="launch", valid_from="2026-04-10")
    ana.ask("remember", statement="the hall is booked", id="hall", derived_from=["april"])

    moved = ana.ask("remember", statement="we launch on 2 May", id="may", key="launch", valid_from="2026-05-02", supersedes=["april"])  # fmt: skip
    assert (["april"], ["hall"]) == tuple([each["id"] for each in moved[name]] for name in ("closed", "now_shaky"))  # fmt: skip
    back = ana.ask("retract", id="may", reason="a slip")
    assert ["april"] == [each["id"] for each in back["holds_again"]]


def test_a_correction_says_what_it_took_back_and_what_holds_without_it(ana):
    ana.ask("remember", statement="the fee is 300", id="300", valid_from="2026-01-01")
    ana.ask("remember", statement="we can pay the fee", id="pay", derived_from=["300"])

    found = ana.ask("remember", statement="the fee is 500", id="500", valid_from="2026-01-01", corrects=["300"])  # fmt: skip
    assert (["300"], ["pay"]) == tuple([each["id"] for each in found[name]] for name in ("closed", "now_shaky"))  # fmt: skip
    assert ["300"] == [each["id"] for each in ana.ask("retract", id="500", reason="misread")["holds_again"]]
    ana.ask("remember", statement="the fee is 400", id="400", valid_from="2026-01-01")
    linked = ana.ask("link", source="400", kind="corrects", target="300", reason="read again")
    assert ["pay"] == [each["id"] for each in linked["now_shaky"]]
