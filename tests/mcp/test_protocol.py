"""The tools for agents: what each answers, at which coordinate, and what it says when it is refused."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, timeline
from tests.conftest import Clock, after

pytest.importorskip("mcp")
from mcp.shared import exceptions
from mcp.types import INVALID_PARAMS, PromptReference, ResourceTemplateReference

from graphstore import mcp as door
from graphstore.mcp.desk import Desk
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")

READS = ["search", "list", "review", "get", "what_superseded", "history", "why", "brief", "timeline", "diff", "trace", "schema", "cypher", "events"]  # fmt: skip
WRITES = [
    "remember",
    "remember_many",
    "amend",
    "record_event",
    "supersede",
    "retract",
    "undo",
    "link",
    "unlink",
    "join",
    "define_kind",
    "resolve",
]
MARCH = "2026-03-01T00:00:00Z"


MCPError: Any = getattr(exceptions, "MCPError", None) or getattr(exceptions, "McpError", None)


@pytest.fixture
def told(store: GraphStore, clock: Clock) -> GraphStore:
    """Logins were sessions, then tokens; a plan still rests on sessions; an outage led to the change."""
    clock.set("2026-01-10")
    store.add_node(
        "decision", {"says": "logins are sessions"}, id="sessions", valid_from="2026-01-05", reason="simple"
    )
    store.add_node(
        "plan",
        {"says": "scale the session table"},
        id="table",
        valid_from="2026-01-08",
        derived_from="sessions",
    )
    clock.set("2026-02-02")
    store.record_event("error", "nobody could log in", id="outage", occurred_at="2026-02-01", agent="pager")
    clock.set("2026-02-10")
    with store.transaction(author="ada"):
        store.add_node(
            "decision",
            {"says": "logins are tokens"},
            id="tokens",
            valid_from="2026-02-05",
            supersedes="sessions",
            reason="no restart may log everybody out",
        )
        store.link("tokens", "caused_by", "outage", valid_from="2026-02-05", reason="it lost all sessions")
    clock.set("2026-02-20")
    with store.transaction(author="bob"):
        store.revise("tokens", {"says": "logins are signed tokens"}, reason="better said")
    clock.set("2026-03-01")
    return store


@pytest.fixture
def ana(told: GraphStore) -> Iterator[Agent]:
    with agent(door.server(told)) as opened:
        yield opened


# ---------------------------------------------------------------- what is offered


def test_there_are_twenty_six_tools_with_flat_arguments(ana):
    tools = ana.tools()

    assert [*READS, *WRITES] == list(tools)
    for tool in tools.values():
        assert "$defs" not in tool.input_schema, tool.name


def test_tools_say_whether_they_write(ana):
    hints = {name: tool.annotations for name, tool in ana.tools().items()}

    assert READS == [name for name, hint in hints.items() if hint.read_only_hint]
    assert ["retract", "unlink", "resolve"] == [name for name, hint in hints.items() if hint.destructive_hint]


def test_reading_tools_take_a_coordinate_a_budget_and_a_cursor(ana):
    for name in READS:
        given = ana.tools()[name].input_schema["properties"]
        assert (name in ("schema", "review")) is not ({"valid", "tx"} <= given.keys()), name
        assert "no argument 'budget'. Arguments: " in (told := ana.refused(name, budget=1))
        paged = set() if name == "brief" else {"cursor"}
        assert {"valid", "tx", "budget_tokens"} | paged <= set(re.findall(r"\w+", told)), name


def test_the_first_tool_says_what_a_time_and_a_cursor_are(told):
    for sets in ("all", "graph", "events"):
        with agent(door.server(told, tools=[sets])) as some:
            descriptions = [tool.description for tool in some.tools().values()]
        assert [0] == [at for at, said in enumerate(descriptions) if "2026-03-01, 2026-03, 7d" in said]


def test_the_door_of_what_an_agent_writes_is_known_in_its_process(told, ana):
    told.add_node("fact", {"says": "by hand"})
    ana.call("remember", statement="by an agent")
    assert ["python", "mcp"] == list(told._doors().values())[-2:]


def test_instructions_teach_when_to_use_which_tool(ana):
    for name in ana.tools():
        assert name in ana.client.instructions


def test_a_read_only_server_offers_nothing_that_writes(told):
    with agent(door.server(told, read_only=True)) as reader:
        assert READS == list(reader.tools())
        assert "remember" not in reader.client.instructions
        assert "remember writes, and here one only reads." in reader.refused("remember", statement="x")
        assert "no tool 'rember'" in reader.refused("rember", statement="x")


def test_tools_come_in_sets(told):
    with agent(door.server(told, tools=["events", "graph"])) as some:
        assert [
            "timeline",
            "diff",
            "trace",
            "schema",
            "cypher",
            "over",
            "events",
            "record_event",
            "link",
            "unlink",
            "define_kind",
        ] == list(some.tools())
        assert "no tool 'remember'" in some.refused("remember", statement="x")
    with pytest.raises(
        InvalidError,
        match=r"unknown set of tools 'notes'\. Valid: all, events, graph, memory, sessions, usual\.",
    ):
        door.server(told, tools=["notes"])


def test_erasing_is_offered_to_nobody_who_was_not_allowed_it(told):
    with agent(door.server(told)) as usual:
        assert not {"forget", "forget_person"} & {*usual.tools()}
        assert "no tool 'forget'" in usual.refused("forget", id="table", reason="a secret")
    with agent(door.server(told, allow_erase=True)) as allowed:
        done = allowed.ask("forget", id="table", reason="a secret")

        assert ("table", "erased") == (done["thing"]["id"], done["thing"]["standing"])
        assert "scale the session table" not in allowed.told("history", id="table")
        last = allowed.ask("why", id="table")["said"][-1]
        assert ("erase", "ana", "a secret") == (last["verb"], last["who"], last["reason"])


def test_a_person_is_forgotten_by_the_plan_that_was_shown(told):
    told.add_node("fact", {"says": "Zdenka sits at the window"}, id="seat")
    with agent(door.server(told, allow_erase=True)) as allowed:
        shown = allowed.ask("forget_person", who="Zdenka")["found"]
        assert ["seat"] == shown["erases"][0]["ids"] and "tx" not in shown
        done = allowed.ask("forget_person", who="Zdenka", plan=shown["plan"])

        assert done["found"]["applied"] and done["tx"]
        assert "Zdenka" not in allowed.told("history", id="seat")


def test_an_unknown_profile_is_refused(store):
    with pytest.raises(InvalidError, match=r"unknown profile 'all'\. Valid: full, memory"):
        door.server(store, profile="all")  # type: ignore[arg-type]


# ---------------------------------------------------------------- reading


def test_every_answer_carries_its_coordinate(ana):
    asked = {
        "search": {"query": "logins"},
        "list": {},
        "review": {},
        "get": {"id": "tokens"},
        "what_superseded": {"id_or_text": "sessions"},
        "history": {"id": "tokens"},
        "why": {"id": "tokens"},
        "brief": {},
        "timeline": {},
        "diff": {"id": "tokens"},
        "trace": {"id": "tokens"},
        "schema": {},
        "cypher": {"query": "RETURN 1 AS one"},
        "events": {},
    }
    assert READS == list(asked)
    for tool, arguments in asked.items():
        found = ana.ask(tool, **arguments, valid="2026-02-25", tx="2026-02-24")
        assert {
            "valid": "2026-02-25T23:59:59.999999Z",
            "tx": "2026-02-24T23:59:59.999999Z",
        } == found["at"], tool


def test_the_whole_history_is_asked_with_its_coordinate(ana):
    rows = "MATCH (v:Version) WHERE AS_OF(v) RETURN v.node_id ORDER BY v.node_id"
    seen = [
        [row[0] for row in ana.ask("cypher", query=rows, history=True, valid=valid)["rows"]]
        for valid in ("2026-01-20", "2026-02-25")
    ]

    assert "sessions" in seen[0] and "tokens" not in seen[0]
    assert "tokens" in seen[1] and "sessions" not in seen[1]
    assert ana.ask("cypher", query="MATCH (v:Version) RETURN count(*)", history=True)["rows"][0][0] >= 2
    assert "Version" in ana.refused("cypher", query=rows)


def test_how_things_were_at_each_step_of_time(told):
    with agent(door.server(told, tools=["graph"])) as ana:
        _asked_over_time(told, ana)


def _asked_over_time(told, ana):
    spans = {"since": "2026-01-01", "until": "2026-03-01", "step": "10 days"}
    over = told.over(valid=("2026-01-01", "2026-03-01", "10 days"))
    counts = [[at.isoformat().replace("+00:00", "Z"), count] for at, count in over.count("decision").tuples()]
    found = ana.ask("over", what="count", kind="decision", **spans)

    assert found["columns"] == ["at", "count(*)"]
    assert found["rows"] == counts
    assert len({count for _, count in counts}) > 1
    first, last = (ana.ask("over", what=what, kind="decision", **spans)["rows"] for what in ("first", "last"))
    assert {row[0] for row in first} == {row[0] for row in last} == {"sessions", "tokens"}
    changed = ana.ask("over", what="changes", kind="decision", **spans)
    assert {(row[1], row[3]) for row in changed["rows"]} == {
        ("sessions", "added"),
        ("sessions", "removed"),
        ("tokens", "added"),
    }
    assert "Give field" in ana.refused("over", what="sum", **spans)
    assert "the step 'soon' is none" in ana.refused("over", what="count", since="30d", step="soon")


def test_search_finds_what_stands_and_with_any_standing_what_was(ana):
    assert ["tokens"] == [hit["id"] for hit in ana.ask("search", query="logins", kind="decision")["hits"]]
    found = {hit["id"]: hit["standing"] for hit in ana.ask("search", query="logins", standing="any")["hits"]}
    assert {"sessions": "superseded", "tokens": "stands"} == found
    assert ["sessions"] == [
        hit["id"] for hit in ana.ask("search", query="logins", kind="decision", valid="2026-01-20")["hits"]
    ]


def test_a_search_is_filtered_by_its_words(ana):
    assert ["tokens"] == [
        hit["id"] for hit in ana.ask("search", query="logins author:bob since:2026-02-01")["hits"]
    ]
    assert [] == ana.ask("search", query="logins author:nobody")["hits"]


NONE_FITS = ("author:nobody", "tag:nothing", "kind:nothing", "since:2099-01-01", "until:1999-01-01")


def test_what_is_shaky_is_filtered_by_words_of_the_query(ana):
    found = ana.ask("search", query="", standing="shaky")["hits"]
    kinds = " ".join({f"kind:{hit['kind']}" for hit in found})

    assert found
    assert found == ana.ask("search", query=kinds, standing="shaky")["hits"]
    for query in NONE_FITS:
        assert [] == ana.ask("search", query=query, standing="shaky")["hits"], query


def test_search_weighs_what_is_old_less_when_asked(ana):
    plain = ana.ask("search", query="session table")["hits"]
    fading = ana.ask("search", query="session table", decay=1)["hits"]

    assert {hit["id"] for hit in plain} == {hit["id"] for hit in fading}
    assert max(hit["score"] for hit in fading) <= max(hit["score"] for hit in plain)
    assert "Leave it out, or standing" in ana.refused("search", query="x", decay=1, standing="any")


def test_search_tells_what_is_shaky_and_why(ana):
    found = ana.ask("search", query="", standing="shaky")["hits"]

    assert ["table"] == [hit["id"] for hit in found]
    assert "sessions was superseded" in found[0]["note"]


def test_search_tells_what_contradicts_each_other(ana):
    ana.ask("remember", statement="the cache is warm", id="warm", tags=["cache"])
    ana.ask("remember", statement="the cache is not warm", id="cold", tags=["cache"])

    (found,) = ana.ask("search", query="", standing="contested")["hits"]
    assert {"cold", "warm"} == {found["id"], found["other"]}
    assert [found] == ana.ask("search", query=f"kind:{found['kind']}", standing="contested")["hits"]
    for query in NONE_FITS:
        assert [] == ana.ask("search", query=query, standing="contested")["hits"], query


def test_search_with_any_standing_says_which_version_said_so(ana):
    (found, *_) = ana.ask("search", query="tokens", standing="any", kind="decision")["hits"]

    assert ("tokens", "stands", "logins are signed tokens") == (
        found["id"],
        found["standing"],
        found["statement"],
    )
    assert "tokens-v1 said: logins are tokens" == found["note"]


def test_search_follows_links_and_says_by_which_way(ana):
    (_, found) = ana.ask("search", query="logins")["hits"]

    assert ("outage", "tokens caused_by outage") == (found["id"], found["via"])


def test_get_tells_the_whole_thing_with_both_ends_of_its_links(ana):
    found = ana.ask("get", id="tokens")

    assert {"says": "logins are signed tokens"} == found["content"]
    assert {
        ("supersedes", "sessions", "logins are sessions"),
        ("caused_by", "outage", "nobody could log in"),
    } == {(link["kind"], link["target"], link["other"]) for link in found["links"]}
    assert ["tokens-v2"] == [version["ref"] for version in found["history"]]


def test_get_of_an_event_tells_its_fields(ana):
    content = ana.ask("get", id="outage")["content"]

    assert ("error", "nobody could log in", "pager", 1) == (
        content["type"], content["description"], content["agent"], content["count"],
    )  # fmt: skip


def test_what_superseded_answers_in_one_call(ana):
    found, told = (how("what_superseded", id_or_text="sessions") for how in (ana.ask, ana.told))

    (step,) = found["chain"]
    assert ("superseded", "sessions", "tokens") == (step["how"], step["replaced"], step["id"])
    assert ("2026-02-05T00:00:00Z", "2026-02-10T00:00:00Z") == (step["since"], step["recorded_at"])
    assert ("ada", "no restart may log everybody out") == (step["who"], step["reason"])
    assert ["tokens"] == [thing["id"] for thing in found["current"]]
    assert (False, False) == (found["forked"], found["retracted"])
    assert "2026-02-05T00:00:00Z" == found["subject"]["valid_to"]
    assert "sessions is superseded. What stands: tokens." == found["answer"], "the steps are in the chain"
    assert told.splitlines()[0] == (
        "“logins are sessions” (sessions) was superseded by “logins are signed tokens” (tokens) on 2026-02-05 "
        "(recorded 2026-02-10 by ada), because: no restart may log everybody out. What stands is “logins are signed tokens” (tokens)."
    )


def test_what_superseded_takes_the_words_of_what_has_fallen(ana):
    assert "sessions" == ana.ask("what_superseded", id_or_text="Logins are sessions!")["subject"]["id"]


def test_what_superseded_takes_the_words_of_an_earlier_version(ana):
    found = ana.ask("what_superseded", id_or_text="logins are tokens")

    assert [("revised", "bob", "better said")] == [
        (step["how"], step["who"], step["reason"]) for step in found["chain"]
    ]


def test_what_superseded_names_candidates_when_a_text_fits_several(ana):
    ana.ask("remember", statement="the web door is blue", id="web")
    ana.ask("remember", statement="the back door is red", id="back")

    found = ana.ask("what_superseded", id_or_text="door")
    assert "subject" not in found
    assert {"web", "back"} == {thing["id"] for thing in found["candidates"]}
    assert "fits several" in found["answer"]


def test_a_text_that_fits_a_whole_succession_means_its_beginning(ana):
    assert "sessions" == ana.ask("what_superseded", id_or_text="logins are")["subject"]["id"]


def test_words_of_which_nothing_says_all_have_candidates_and_no_subject(ana):
    found = ana.ask("what_superseded", id_or_text="how are logins audited")

    assert "subject" not in found
    assert {"sessions", "tokens"} <= {each["id"] for each in found["candidates"]}
    assert found["answer"].startswith("Nothing here says just “how are logins audited”. Nearest: ")


def test_words_are_found_in_other_forms(ana):
    assert "sessions" == ana.ask("what_superseded", id_or_text="login session")["subject"]["id"]


def test_what_superseded_as_we_knew_it_then(ana):
    found = ana.ask("what_superseded", id_or_text="sessions", valid="2026-02-07", tx="2026-02-08")

    assert [] == found["chain"]
    assert ["sessions"] == [thing["id"] for thing in found["current"]]
    assert "nothing superseded it" in found["answer"]


def test_what_superseded_tells_a_fork_and_a_retraction(ana):
    ana.ask("remember", statement="logins are passkeys", id="passkeys", supersedes=["sessions"])
    forked = ana.ask("what_superseded", id_or_text="sessions")
    assert (True, {"tokens", "passkeys"}) == (forked["forked"], {thing["id"] for thing in forked["current"]})

    ana.ask("retract", id="passkeys", reason="never decided")
    found = ana.ask("what_superseded", id_or_text="passkeys")
    assert (True, []) == (found["retracted"], found["current"])
    assert "passkeys is retracted. What stands: nothing." == found["answer"]
    told = ana.told("what_superseded", id_or_text="passkeys")
    assert 1 == told.count("was retracted") == told.count("because: never decided")


def test_history_tells_who_knew_what_and_when(ana):
    first, second = ana.ask("history", id="tokens")["versions"]

    assert ("logins are tokens", "ada", "2026-02-10T00:00:00Z") == (
        first["statement"], first["who"], first["recorded_at"],
    )  # fmt: skip
    assert ("2026-02-20T00:00:00Z", "bob", "better said") == (
        first["believed_until"], first["unsaid_by"], first["unsaid_because"],
    )  # fmt: skip
    assert ("logins are signed tokens", "bob", "better said") == (
        second["statement"], second["who"], second["reason"],
    )  # fmt: skip


def test_why_tells_who_said_so_what_led_to_it_and_what_it_replaced(ana):
    found = ana.ask("why", id="tokens")

    assert [("add_node", "ada"), ("revise", "bob")] == [(done["verb"], done["who"]) for done in found["said"]]
    assert [("outage", "caused_by", "it lost all sessions")] == [
        (cause["id"], cause["by"], cause["reason"]) for cause in found["causes"]
    ]
    assert ["sessions"] == [link["target"] for link in found["replaces"]]


def test_why_tells_that_what_a_thing_rests_on_has_fallen(ana):
    found = ana.ask("why", id="table")

    assert [("sessions", "superseded")] == [
        (link["target"], link["target_standing"]) for link in found["rests_on"]
    ]
    assert found["shaky"].startswith("table is shaky: sessions was superseded, recorded ")
    assert found["shaky"] in ana.told("why", id="table").splitlines()[0]


def test_timeline_of_a_node_has_its_versions_and_its_events(ana):
    entries = ana.ask("timeline", about="tokens")["entries"]

    assert [("version", "tokens-v2"), ("event", "outage")] == [(each["what"], each["id"]) for each in entries]


def test_timeline_of_a_topic_has_what_was_and_what_is_planned(ana):
    ana.ask("remember", statement="deploys on Tuesdays", key="deploy_day", id="tue", valid_from="2026-01-01")
    ana.ask("remember", statement="deploys on Fridays", key="deploy_day", id="fri", valid_from="2026-04-01")

    entries = ana.ask("timeline", about="deploy_day")["entries"]
    assert [("fri", "not_yet"), ("tue", "stands")] == [(each["id"], each["standing"]) for each in entries]


def test_timeline_of_a_thread_has_its_messages_newest_first(ana, told):
    for second, text in enumerate(("where is the log", "in /var/log")):
        timeline.record_message(told, "TEXT", text, thread="t1", sender="bo", occurred_at=after(second))
    timeline.record_message(told, "TEXT", "elsewhere", thread="t2", occurred_at=after(5))

    entries = ana.ask("timeline", thread="t1")["entries"]
    assert [("in /var/log", "bo", "message"), ("where is the log", "bo", "message")] == [
        (each["statement"], each["who"], each["what"]) for each in entries
    ]
    assert ["in /var/log"] == [
        each["statement"]
        for each in ana.ask("timeline", sender="bo", since="2026-02-01T00:00:01Z")["entries"]
    ]


def test_diff_of_versions_and_of_coordinates(ana):
    (change,) = ana.ask("diff", id="tokens")["changes"]
    assert ("says", "logins are tokens", "logins are signed tokens") == (
        change["path"],
        change["old"],
        change["new"],
    )

    found = ana.ask("diff", before_valid="2026-01-20")
    assert (["tokens", "outage"], ["sessions"]) == (
        [thing["id"] for thing in found["added"]], [thing["id"] for thing in found["removed"]],
    )  # fmt: skip
    learned = ana.ask("diff", before_tx="2026-02-15")
    assert ["tokens"] == [thing["id"] for thing in learned["changed"]]
    assert {"valid": MARCH, "tx": "2026-02-15T23:59:59.999999Z"} == learned["before"]


def test_diff_of_one_thing_between_coordinates(ana):
    found = ana.ask("diff", id="sessions", before_valid="2026-01-20")

    assert [("standing", "stands", "superseded")] == [
        (each["path"], each["old"], each["new"]) for each in found["changes"]
    ]


def test_trace_down_tells_what_rests_on_a_thing_and_up_what_led_to_it(ana):
    assert [("table", "derived_from", 1)] == [
        (each["id"], each["by"], each["hops"]) for each in ana.ask("trace", id="sessions")["reached"]
    ]
    up = ana.ask("trace", id="tokens", direction="up")
    assert [("outage", "caused_by", "tokens")] == [
        (each["id"], each["by"], each["of"]) for each in up["reached"]
    ]


def test_trace_of_a_trace_id_tells_its_spans(ana):
    spans = {"type": "TOOL", "trace_id": "4bf92f35"}
    ana.ask("record_event", description="ask", span_id="a1", occurred_at="2026-02-01", **spans)
    ana.ask(
        "record_event",
        description="find",
        span_id="b2",
        parent_span_id="a1",
        occurred_at="2026-02-02",
        **spans,
    )

    found = ana.ask("trace", id="4bf92f35")
    assert ("trace", [("a1", 0), ("b2", 1)]) == (
        found["kind"], [(span["span"], span["depth"]) for span in found["spans"]],
    )  # fmt: skip


def test_schema_tells_the_kinds_and_what_cypher_sees(ana, told):
    told.snapshot("release")
    found = ana.ask("schema")

    kinds = {(line["what"], line["kind"]): line["count"] for line in found["kinds"]}
    assert 1 == kinds["node", "decision"] == kinds["event", "error"] == kinds["link", "SUPERSEDES"]
    assert "says" in found["graph"]
    assert found["snapshots"][0].startswith("release:")


def test_cypher_sees_the_graph_of_the_coordinate(ana):
    ask = {"query": "MATCH (n:Node {kind: $kind}) RETURN n.id, n.valid_from", "params": {"kind": "decision"}}

    assert [["tokens", "2026-02-05T00:00:00Z"]] == ana.ask("cypher", **ask)["rows"]
    assert [["sessions", "2026-01-05T00:00:00Z"]] == ana.ask("cypher", **ask, valid="2026-01-20")["rows"]


def test_events_are_asked_for_by_several_types_by_status_origin_and_agent(told):
    told.record_event("error", "it broke", id="broken", agent="bot")
    told.record_event("deploy", "v9", id="out", origin="system")
    with agent(door.server(told)) as one:

        def found(**asked):
            return {each["id"] for each in one.ask("events", **asked)["events"]}

        assert {"broken", "out"} <= found(type="error, deploy")
        assert "out" not in found(type="error")
        assert {"broken"} == found(agent="bot,ann") == found(agent="bot", status="active,resolved")
        assert {"out"} == found(origin="system", type="deploy") - found(origin="agent", type="deploy")


def test_events_has_the_shape_of_the_history_report(ana):
    ana.ask(
        "record_event", type="fix", description="restarted", related_to=["outage"], occurred_at="2026-02-02"
    )
    found = ana.ask("events", since="60d")

    assert (2, "2 events in last 60 days. 1 error (resolved), 1 fix.") == (
        found["total_events"],
        found["summary"],
    )
    assert ["restarted", "nobody could log in"] == [event["description"] for event in found["events"]]


def test_a_snapshot_is_a_coordinate_by_name(ana, told, clock):
    told.snapshot("before passkeys")
    clock.move(days=1)
    ana.ask("remember", statement="logins are passkeys", id="passkeys", supersedes=["tokens"])

    found = ana.ask("what_superseded", id_or_text="tokens", valid="before passkeys", tx="before passkeys")
    assert ["tokens"] == [thing["id"] for thing in found["current"]]


def test_a_server_of_a_branch_reads_and_writes_on_it(told):
    idea = told.branch("idea")
    with agent(door.server(idea)) as there:
        there.ask("remember", statement="logins are passkeys", id="passkeys")

        assert ("idea", ["idea"]) == (there.ask("schema")["branch"], there.ask("schema")["branches"])

    assert ["passkeys"] == [node.id for node in idea.nodes("fact")]
    assert [] == told.nodes("fact")


def test_a_server_of_a_follower_sees_what_the_writer_told_meanwhile(disk_store):
    idea = disk_store.branch("idea")
    with graphstore.open(disk_store.path, read_only=True) as follower:
        for told, followed in ((disk_store, follower), (idea, follower.on("idea"))):
            with agent(door.server(followed)) as reader:
                assert READS == list(reader.tools())
                told.add_node("fact", {"says": "just told"}, id="new")
                assert "new" == reader.ask("get", id="new")["thing"]["id"]
                assert ["new"] == [hit["id"] for hit in reader.ask("search", query="told")["hits"]]


def test_words_are_told_beside_the_structure(ana):
    assert "table [plan] scale the session table (shaky, 2026-01-08 → …; recorded 2026-01-10)" in ana.told(
        "search", query="table"
    )


# ---------------------------------------------------------------- resources and the prompt


def test_resources_are_the_schema_and_each_node(ana):
    schema = ana.do(ana.client.read_resource, "graphstore://schema").contents[0]
    node = ana.do(ana.client.read_resource, "graphstore://node/tokens").contents[0]

    assert {"decision", "plan", "error"} <= {line["kind"] for line in json.loads(schema.text)["kinds"]}
    assert {"says": "logins are signed tokens"} == json.loads(node.text)["content"]
    with pytest.raises(Exception, match="Nearest: 'tokens'"):
        ana.do(ana.client.read_resource, "graphstore://node/tokes")


def test_the_audit_names_what_is_shaky_and_what_changed(ana):
    text = ana.do(ana.client.get_prompt, "audit", {"since": "2026-02-15"}).messages[0].content.text

    assert "table (scale the session table) is shaky" in text or "table is shaky" in text
    assert "- changed tokens [decision] logins are signed tokens" in text
    assert "2. Contradictions" in text


def test_a_prompt_that_cannot_be_made_says_what_to_give(ana, caplog):
    for name, given, said in (
        ("audit", {"since": "soonish"}, "'soonish' is no time"),
        ("audit", {"sinc": "7d"}, "Did you mean 'since'?"),
        ("adit", {}, "no prompt 'adit'. Prompts: audit, brief."),
    ):
        with pytest.raises(MCPError) as refused:
            ana.do(ana.client.get_prompt, name, given)
        assert (INVALID_PARAMS, True) == (refused.value.code, said in refused.value.message), (
            refused.value.message
        )
    assert "Traceback" not in caplog.text


def test_ids_and_names_of_snapshots_are_completed(ana, told):
    told.snapshot("release-1")

    def completed(ref, name, begins):
        return ana.do(ana.client.complete, ref, {"name": name, "value": begins}).completion.values

    node = ResourceTemplateReference(uri="graphstore://node/{id}")
    assert ["table", "tokens"] == completed(node, "id", "t")
    assert ["outage"] == completed(node, "id", "ou")
    assert [] == completed(node, "id", "x' OR")
    audit = PromptReference(name="audit")
    assert ["release-1"] == completed(audit, "since", "re")
    assert ["30d", "7d", "release-1", "yesterday"] == completed(audit, "since", "")
    assert [] == completed(PromptReference(name="other"), "since", "")


# ---------------------------------------------------------------- refusals


REFUSED = {
    "an unknown id": (
        "get", {"id": "tokes"},
        "no node or event 'tokes'. Nearest: 'tokens'. Next: call get(id=\"tokens\") if that was meant, else search(query=\"tokes\").",
    ),
    "a text that fits nothing": (
        "what_superseded", {"id_or_text": "purple elephants"},
        "no node or event 'purple elephants'. Next: call search(query=\"purple elephants\").",
    ),
    "a tx that has not come": ("search", {"query": "a", "tx": "2030-01-01"}, "has not come yet"),
    "a time without a zone": ("search", {"query": "a", "valid": "2026-01-01T10:00"}, "Write '2026-01-01T10:00Z' for UTC."),
    "an unknown snapshot": ("search", {"query": "a", "tx": "relase"}, "Next: call schema() for the names of snapshots"),
    "Cypher that writes": ("cypher", {"query": "CREATE (n:Node {id: 'x'})"}, "Next: call schema()"),
    "Cypher that does not run": ("cypher", {"query": "MATCH (n:Nod) RETURN n"}, "Table Nod does not exist."),
    "an unknown kind of link": ("link", {"source": "tokens", "kind": "cause", "target": "table"}, "Did you mean 'causes'?"),
    "an unknown tool": ("supersed", {"old": "a"}, "Did you mean 'supersede'?"),
    "an unknown argument": ("search", {"query": "a", "valid_at": "2026-01-01"}, "search has no argument 'valid_at'."),
    "a missing argument": ("retract", {"id": "tokens"}, "reason: field required"),
    "an argument of another type": ("search", {"query": "a", "limit": "many"}, "limit: got 'many'"),
    "a version of an event": ("diff", {"id": "outage"}, "is an event; events have no versions. Read it with get(id=…)."),
    "nothing to compare": ("diff", {}, "diff of what? Give id="),
    "an id that is taken": ("remember", {"statement": "x", "id": "tokens"}, "Use remember(statement=…, revises='tokens')"),
    "nothing left to retract": ("retract", {"id": "sessions-", "reason": "x"}, "Nearest: 'sessions'"),
    "a cursor that is none": ("get", {"id": "tokens", "cursor": "xyz"}, "'xyz' is no cursor"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_to_do_next(ana, told, case):
    tool, arguments, said = REFUSED[case]
    before = told.stats()["transactions"]

    text = ana.refused(tool, **arguments)
    assert said in text
    assert "Traceback" not in text
    assert told.stats()["transactions"] == before


def test_every_refusal_by_the_store_ends_with_a_call(ana):
    for tool, arguments, _ in REFUSED.values():
        if tool != "supersed":
            assert "Next: call" in ana.refused(tool, **arguments), tool


def test_a_fault_of_the_server_is_named_and_tells_no_more(told, caplog, monkeypatch):
    def broken(*given: object) -> None:
        raise ZeroDivisionError("/home/somebody/secret")

    monkeypatch.setattr(Desk, "asking", broken)
    with agent(door.server(told)) as one:
        text = one.refused("get", id="tokens")
    assert "get failed unexpectedly: ZeroDivisionError" in text
    assert "secret" not in text
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What is the deploy day?", "deploy"),
        ("what is the thing about Redis", "redis"),
        ("when do we deploy", "deploy"),
        ("the", "api"),
    ],
)
def test_a_question_is_searched_for_by_what_it_is_about(store, question, first):
    store.add_node("fact", {"says": "We deploy on Tuesdays."}, id="deploy")
    store.add_node("fact", {"says": "Sessions are kept in Redis."}, id="redis")
    store.add_node("fact", {"says": "The API is what the team is proud of."}, id="api")
    store.add_node("fact", {"says": "What is the matter with the build is that it is slow."}, id="build")
    with agent(door.server(store)) as one:
        assert first == one.ask("search", query=question)["hits"][0]["id"]


def test_of_much_that_may_contradict_the_newest_is_looked_through(told, monkeypatch):
    from graphstore.mcp import read_tools

    monkeypatch.setattr(read_tools, "_LOOKED_THROUGH", 3)
    with told.transaction():
        for number in range(9):
            says = {"says": f"the green house has {number} rooms"}
            told.add_node("note", says, id=f"house-{number}", tags=["house"])
    with agent(door.server(told)) as one:
        two = one.ask("search", query="", standing="contested", limit=2)
        some = one.ask("search", query="house", standing="contested")

    assert (2, "what contradicts something else that stands; there is more than these 2") == (
        len(two["hits"]),
        two["note"],
    )
    assert (3, "what contradicts something else that stands, of the first 3 there are") == (
        len(some["hits"]),
        some["note"],
    )


# ---------------------------------------------------------------- shapes


def test_what_a_client_lists_is_flat_and_short(told):
    with agent(door.server(told)) as one:
        tools = one.tools().values()
    asked = json.dumps([tool.input_schema for tool in tools])
    given = json.dumps([tool.output_schema for tool in tools])

    assert [] == [word for word in ("$ref", "anyOf", "null", '"title"') if word in asked]
    assert [] == [word for word in ("anyOf", "null", '"title"') if word in given]
    assert [] == [word for word in ("$ref", "$defs", "format") if word in given]
    assert len(asked) < 7_000, "about 1,700 tokens"
    assert len(asked + given) < 22_000


@pytest.mark.parametrize(
    ("sets", "asked", "whole"),
    [
        ("usual", 11_400, 26_000),
        ("memory", 10_200, 22_000),
        ("graph", 3_300, 7_500),
        ("events", 1_800, 3_000),
        ("sessions", 900, 1_100),
        ("all", 15_600, 33_000),
    ],
)
def test_the_list_of_tools_keeps_to_its_characters(told, sets, asked, whole):
    """Of the whole list as compact JSON: without the shapes of answers, and with them."""
    with agent(door.server(told, tools=[sets])) as one:
        tools = [
            tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in one.tools().values()
        ]

    def characters(listed):
        return len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False))

    short = [{name: value for name, value in tool.items() if name != "outputSchema"} for tool in tools]
    assert characters(short) <= asked
    assert characters(tools) <= whole


def test_null_is_left_out_and_one_text_is_a_list_of_one(told):
    with agent(door.server(told)) as one:
        made = one.ask("remember", statement="tokens", tags="auth", supersedes="sessions", key=None, id="one")

        assert (["auth"], ["sessions"]) == (made["thing"]["tags"], [each["id"] for each in made["closed"]])


def test_a_text_that_looks_like_json_is_a_text(told):
    with agent(door.server(told)) as one:
        made = one.ask("remember", statement='{"a": 1}', reason="null", source='["x"]', id="odd")

        assert ('{"a": 1}', '["x"]') == (
            made["thing"]["statement"],
            one.ask("history", id="odd")["versions"][0]["source"],
        )
        assert "null" == one.ask("why", id="odd")["said"][0]["reason"]
        listed = one.ask("remember", statement="two", tags='["a", "b"]', content='{"more": 1}')
        assert ["a", "b"] == listed["thing"]["tags"]


@pytest.mark.parametrize(
    ("tool", "asked", "told_so"),
    [
        ("remember", {"statement": " \n"}, "statement is blank"),
        ("cypher", {"query": "MATCH (n:Fact) RETURN n"}, "(n:Node {kind: 'fact'})"),
    ],
)
def test_a_refusal_says_what_was_meant(told, tool, asked, told_so):
    with agent(door.server(told)) as one:
        assert told_so in one.refused(tool, **asked)


@pytest.mark.parametrize(
    ("tool", "asked", "name"),
    [
        ("link", {"source": "sessions", "kind": "uses", "target": "tokens", "strength": True}, "strength"),
        ("diff", {"id": "sessions", "old": True, "new": 1}, "old"),
        ("search", {"query": "logins", "limit": True}, "limit"),
        ("search", {"query": "logins", "decay": True}, "decay"),
        ("trace", {"id": "sessions", "depth": True}, "depth"),
    ],
)
def test_true_is_no_number_of_a_tool(told, tool, asked, name):
    before = told.changes()
    with agent(door.server(told, tools=["all"])) as one:
        assert f"{name} True is no number. Give a number." in one.refused(tool, **asked)
    assert before == told.changes()


TIMES = ("yesterday", "7d", "2026-02", "before-bob")
READING = [
    ("search", {"query": "logins"}, ("valid", "tx", "since", "until")),
    ("list", {}, ("valid", "tx")),
    ("review", {}, ("valid", "tx")),
    ("get", {"id": "sessions"}, ("valid", "tx")),
    ("what_superseded", {"id_or_text": "sessions"}, ("valid", "tx")),
    ("history", {"id": "sessions"}, ("valid", "tx")),
    ("why", {"id": "sessions"}, ("valid", "tx")),
    ("brief", {}, ("valid", "tx", "since")),
    ("timeline", {}, ("valid", "tx", "since", "until")),
    ("diff", {"id": "sessions", "before_tx": "2026-01-15"}, ("valid", "tx", "before_valid", "before_tx")),
    ("trace", {"id": "sessions"}, ("valid", "tx")),
    ("schema", {}, ("valid", "tx")),
    ("cypher", {"query": "MATCH (n:Node) RETURN n.id"}, ("valid", "tx")),
    ("over", {"what": "count"}, ("valid", "tx", "since", "until")),
    ("events", {}, ("valid", "tx", "since")),
    ("sessions", {"ask": "work"}, ("valid", "tx", "since", "until")),
    ("context", {"user": "ada"}, ("valid", "tx")),
    ("layers", {}, ("valid", "tx")),
    ("expertise", {}, ("valid", "tx")),
]


def test_a_time_may_be_said_in_every_way_wherever_a_time_is(told, clock):
    clock.set("2026-02-20")
    told.snapshot("before-bob")
    clock.set("2026-03-01")
    with agent(door.server(told, tools=["all"])) as one:
        assert {name for name, _, _ in READING} == {
            name for name, tool in one.tools().items() if tool.annotations.read_only_hint
        }
        for tool, asked, names in READING:
            for name in names:
                for time in (*TIMES, "2026-02..yesterday") if (tool, name) == ("events", "since") else TIMES:
                    one.ask(tool, **{**asked, name: time})
        for number, time in enumerate(TIMES):
            one.ask(
                "remember", statement=f"number {number}", id=f"n{number}", valid_from=time, valid_to="open"
            )
            one.ask(
                "remember", statement=f"until {number}", id=f"u{number}", valid_from="2026-01", valid_to=time
            )
            one.ask(
                "remember_many",
                statements=[{"statement": f"one of {number}", "id": f"m{number}", "valid_from": time}],
            )
            one.ask("remember", statement=f"better {number}", revises=f"m{number}", valid_from=time)
            one.ask("amend", id=f"n{number}", fields={"more": 1}, valid_from=time)
            one.ask("record_event", type="note", description=f"number {number}", occurred_at=time)
            one.ask("link", source=f"n{number}", kind="uses", target="table", valid_from=time)
            one.ask("unlink", source=f"n{number}", kind="uses", target="table", valid_from=time, reason="no")
            one.ask("supersede", old=f"m{number}", by=f"n{number}", valid_from=time)
            one.ask("retract", id=f"u{number}", valid_to=time, reason="no")
            one.ask("retract", id=f"n{number}", ended_at="now", reason="over")
            one.ask("keep", text=f"number {number}", valid_from=time)
            one.ask("record_outcome", domain="sql", outcome="success", occurred_at=time)
            one.ask("observe", user="ada", message=f"number {number}", occurred_at=time)


# ---------------------------------------------------------------- slow queries

SLOW = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x"


def test_a_query_is_stopped_after_its_time(told):
    with agent(door.server(told, query_seconds=0.3)) as one:
        assert "the query was stopped after 0.3 s" in one.refused("cypher", query=SLOW)


@pytest.mark.rest
def test_a_slow_query_holds_up_no_other_tool(told):
    with agent(door.server(told, query_seconds=4)) as one:
        one.ask("cypher", query="MATCH (n:Node) RETURN count(*) AS n")
        slow = threading.Thread(target=one.refused, args=("cypher",), kwargs={"query": SLOW})
        slow.start()
        for _ in range(5):
            one.ask("what_superseded", id_or_text="sessions")
        one.ask("remember", statement="meanwhile")
        assert slow.is_alive(), "the others were answered after the query, not beside it"
        slow.join()


# ---------------------------------------------------------------- answers that do not mislead


@pytest.fixture
def billing(store: GraphStore, clock: Clock) -> Iterator[Agent]:
    """A slot with a slip that was undone, an upgrade, and the outage, deploy and fix of its topic; a plan and a trial."""
    clock.set("2026-01-10")
    with store.transaction(author="ana"):
        store.add_node(
            "fact", {"says": "Postgres 14"}, id="pg14", key="billing_db", tags=["billing"], reason="audit"
        )
    clock.set("2026-02-01")
    slip = store.add_node(
        "fact", {"says": "MySQL"}, id="slip", tags=["billing"], supersedes="pg14", reason="slip"
    )
    clock.set("2026-02-02")
    store.undo(slip.recorded_at, reason="a slip of mine", author="bob")
    clock.set("2026-02-10")
    store.add_node(
        "fact", {"says": "Postgres 16"}, id="pg16", key="billing_db", tags=["billing"], reason="upgrade"
    )
    clock.set("2026-02-11")
    store.record_event("deploy", "release 2.3", id="release", related_to="pg16")
    store.record_event("error", "connections refused", id="outage", related_to="pg16")
    store.record_event("error", "logins fail", id="other")
    store.link("outage", "caused_by", "release"), store.link("other", "caused_by", "release")
    store.record_event("fix", "more connections", id="fix", related_to="outage")
    store.add_node("plan", {"says": "Aurora"}, id="aurora", valid_from="2027-01-01")
    store.add_node("trial", {"says": "a trial"}, id="trial", valid_from="2026-01-01", valid_to="2026-01-20")
    clock.set("2026-03-01")
    with agent(door.server(store)) as opened:
        yield opened


def test_the_timeline_of_a_topic_has_its_outage_deploy_and_fix_and_marks_what_fell(billing):
    entries = billing.ask("timeline", about="billing")["entries"]

    assert {
        ("fix", "stands"), ("outage", "stands"), ("release", "stands"), ("pg16", "stands"),
        ("slip", "retracted"), ("pg14", "superseded"),
    } == {(each["id"], each["standing"]) for each in entries}  # fmt: skip
    assert "pg14 [fact] ana: Postgres 14 (superseded) → pg16" in billing.told("timeline", about="billing")


@pytest.mark.parametrize(
    ("id", "shown"),
    [
        ("pg14", ("pg14-v1", "superseded", ["pg16"])),
        ("slip", ("slip-v1", "retracted", None)),
        ("aurora", ("aurora-v1", "not_yet", None)),
        ("trial", ("trial-v1", "ended", None)),
    ],
)
def test_the_timeline_of_a_thing_says_how_each_version_stands(billing, id, shown):
    (entry,) = billing.ask("timeline", about=id)["entries"]

    assert shown == (entry["id"], entry["standing"], entry.get("replaced_by"))


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("trial", "has ended: it held 2026-01-01 → 2026-01-20."),
        ("aurora", "is not yet so: it begins 2027-01-01."),
        ("pg14", "is superseded: it held 2026-01-10 → 2026-02-10."),
        (
            "slip",
            "is retracted. Recorded 2026-02-01, because: slip. What was written 2026-02-01 undone 2026-02-02 by bob",
        ),
    ],
)
def test_why_says_what_has_ended_and_what_is_not_yet(billing, id, said):
    assert said in billing.told("why", id=id)


def test_what_was_undone_is_no_step(billing):
    found = billing.ask("what_superseded", id_or_text="pg14")

    assert ["pg16"] == [step["id"] for step in found["chain"]]


@pytest.mark.parametrize("tool", ["what_superseded", "why"])
def test_a_text_says_a_reason_once(billing, tool):
    asked = {"id_or_text" if tool == "what_superseded" else "id": "pg14"}

    assert 1 == billing.told(tool, **asked).count("upgrade")


def test_every_line_of_a_thing_says_who_and_why(billing):
    lines = billing.ask("get", id="pg14")["history"]

    assert [("ana", "audit", "2026-01-10T00:00:00Z")] == [
        (e["who"], e["reason"], e["recorded_at"]) for e in lines
    ]
    assert "believed until 2026-02-02 by bob (a slip of mine)" in billing.told("history", id="pg14")


# ---------------------------------------------------------------- filters of search


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"kind": "decision", "author": "bob"}, ["tokens"]),
        ({"author": "ada", "query": "tokens"}, []),
        ({"author": "ada", "standing": "any", "query": "tokens"}, ["tokens"]),
        ({"since": "2026-02-05", "kind": "decision"}, ["tokens"]),
        ({"until": "2026-01-09"}, ["table"]),
        ({"since": "30d", "until": "2026-02-02"}, ["outage"]),
        ({"standing": "shaky", "kind": "plan"}, ["table"]),
        ({"standing": "shaky", "kind": "decision"}, []),
        ({"standing": "shaky", "until": "2026-01-01"}, []),
    ],
)
def test_search_filters_without_words(ana, asked, ids):
    assert ids == [each["id"] for each in ana.ask("search", **asked)["hits"]]


def test_search_by_tag_and_scope(store, clock):
    clock.set("2026-03-01")
    store.add_node("fact", {"says": "one"}, id="one", tags=["billing"])
    store.add_node("fact", {"says": "two"}, id="two", scope="shop")
    with agent(door.server(store)) as ana:
        assert ["one"] == [each["id"] for each in ana.ask("search", tag="billing")["hits"]]
        assert ["two"] == [each["id"] for each in ana.ask("search", scope="shop")["hits"]]
        assert "Give some words in query, or a filter" in ana.refused("search", query=" ")
