"""The tools for agents: what each answers, at which coordinate, and what it says when it is refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, timeline
from tests.conftest import Clock, after

pytest.importorskip("mcp")
from graphstore import mcp as door
from tests.support.agent import Agent, agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")

READS = ["search", "get", "what_superseded", "history", "why", "timeline", "diff", "trace", "schema", "cypher", "events"]  # fmt: skip
WRITES = ["remember", "amend", "record_event", "supersede", "retract", "undo", "link"]
MARCH = "2026-03-01T00:00:00Z"


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


def test_there_are_eighteen_tools_with_flat_arguments(ana):
    tools = ana.tools()

    assert [*READS, *WRITES] == list(tools)
    for tool in tools.values():
        assert "$defs" not in tool.input_schema, tool.name


def test_tools_say_whether_they_write(ana):
    hints = {name: tool.annotations for name, tool in ana.tools().items()}

    assert READS == [name for name, hint in hints.items() if hint.read_only_hint]
    assert ["retract"] == [name for name, hint in hints.items() if hint.destructive_hint]
    assert {False} == {hint.open_world_hint for hint in hints.values()}
    assert all(hint.title for hint in hints.values())


def test_reading_tools_take_a_coordinate_a_budget_and_a_cursor(ana):
    for name in READS:
        given = ana.tools()[name].input_schema["properties"]
        assert {"valid", "tx", "budget_tokens", "cursor"} <= given.keys(), name


def test_instructions_teach_when_to_use_which_tool(ana):
    for name in ana.tools():
        assert name in ana.client.instructions


def test_a_read_only_server_offers_nothing_that_writes(told):
    with agent(door.server(told, read_only=True)) as reader:
        assert READS == list(reader.tools())
        assert "remember" not in reader.client.instructions
        assert "remember writes, and here one only reads." in reader.refused("remember", statement="x")
        assert "no tool 'rember'" in reader.refused("rember", statement="x")


def test_an_unknown_profile_is_refused(store):
    with pytest.raises(InvalidError, match=r"unknown profile 'all'\. Valid: full, memory"):
        door.server(store, profile="all")  # type: ignore[arg-type]


# ---------------------------------------------------------------- reading


def test_every_answer_carries_its_coordinate(ana):
    asked = {
        "search": {"query": "logins"},
        "get": {"id": "tokens"},
        "what_superseded": {"id_or_text": "sessions"},
        "history": {"id": "tokens"},
        "why": {"id": "tokens"},
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
        assert {"valid": "2026-02-25T00:00:00Z", "tx": "2026-02-24T00:00:00Z"} == found["at"], tool


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
    found = ana.ask("what_superseded", id_or_text="sessions")

    (step,) = found["chain"]
    assert ("superseded", "sessions", "tokens") == (step["how"], step["replaced"], step["id"])
    assert ("2026-02-05T00:00:00Z", "2026-02-10T00:00:00Z") == (step["since"], step["recorded_at"])
    assert ("ada", "no restart may log everybody out") == (step["who"], step["reason"])
    assert ["tokens"] == [thing["id"] for thing in found["current"]]
    assert (False, False) == (found["forked"], found["retracted"])
    assert "2026-02-05T00:00:00Z" == found["subject"]["valid_to"]
    assert found["answer"] == (
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
    found = ana.ask("what_superseded", id_or_text="how are logins done")

    assert "subject" not in found
    assert {"sessions", "tokens"} <= {each["id"] for each in found["candidates"]}
    assert found["answer"].startswith("Nothing here says just “how are logins done”. Nearest: ")


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
    assert "was retracted" in found["answer"]
    assert "because: never decided" in found["answer"]


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
    assert found["shaky"] in found["answer"]


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
    assert {"valid": MARCH, "tx": "2026-02-15T00:00:00Z"} == learned["before"]


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
    assert "table [plan] scale the session table (shaky, 2026-01-08 → …)" in ana.told("search", query="table")


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


def test_a_fault_of_the_server_is_named_and_tells_no_more(told, caplog):
    made = door.server(told)

    def broken(id: str) -> None:
        raise ZeroDivisionError("/home/somebody/secret")

    made.add_tool(broken, name="broken")
    with agent(made) as one:
        text = one.refused("broken", id="x")
    assert "broken failed unexpectedly: ZeroDivisionError" in text
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
    assert len(asked) < 16_000, "about 4,000 tokens"
    assert len(asked + given) < 60_000


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


# ---------------------------------------------------------------- slow queries

SLOW = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x"


def test_a_query_is_stopped_after_its_time(told):
    with agent(door.server(told, query_seconds=0.3)) as one:
        assert "the query was stopped after 0.3 s" in one.refused("cypher", query=SLOW)


@pytest.mark.rest
def test_a_slow_query_holds_up_no_other_tool(told):
    with agent(door.server(told, query_seconds=2)) as one:
        one.ask("cypher", query="MATCH (n:Node) RETURN count(*) AS n")
        slow = threading.Thread(target=one.refused, args=("cypher",), kwargs={"query": SLOW})
        slow.start()
        began = time.monotonic()
        for _ in range(5):
            one.ask("what_superseded", id_or_text="sessions")
        one.ask("remember", statement="meanwhile")
        took = time.monotonic() - began
        assert slow.is_alive(), "the query was over before anything was asked beside it"
        slow.join()
    assert took < 2
