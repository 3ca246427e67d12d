"""Messages and MemoBrain's graphs from files, and the commands that take them in and ask for topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import InvalidError, topics
from graphstore.imports.memobrain import import_memobrain, import_messages
from tests.cli.test_command_line import answer, refused, run
from tests.conftest import day

pytestmark = pytest.mark.served

NOW = "recorded now: ask for a day with as_of(valid=…); knowledge_at(…) knows nothing of it before"
GRAPH: dict[str, Any] = {
    "nodes": {
        "1": {"node_id": 1, "kind": "task", "thought": "Build WB Repricer", "related_turn_ids": [0, 1], "active": True,
              "created_at": "2026-01-01", "session_id": "Session 1", "version": 1, "supersedes": []},
        "2": {"node_id": 2, "kind": "evidence", "thought": "Using REST API", "related_turn_ids": [2], "active": True,
              "created_at": "2026-01-01", "session_id": "Session 1", "version": 1, "supersedes": None, "superseded_by": 16},
        "15": {"node_id": 15, "kind": "evidence", "thought": "Adding WebSocket for realtime", "related_turn_ids": [3],
               "active": "Flushed", "created_at": "2026-01-15", "session_id": "Session 5", "tags": ["api"], "participant": "Architect"},
        "16": {"node_id": 16, "kind": "evidence", "thought": "REST + WebSocket hybrid", "related_turn_ids": [],
               "active": False, "created_at": "2026-01-15", "session_id": "Session 5"},
        "30": {"node_id": 30, "kind": "evidence", "thought": "#api Switching to GraphQL", "related_turn_ids": [],
               "active": True, "created_at": "2026-01-30", "session_id": "Session 10", "supersedes": []},
        "31": {"node_id": 31, "kind": "evidence", "related_turn_ids": [9], "active": True, "created_at": "2026-01-30",
               "session_id": "Session 10", "supersedes": [2, 16],
               "thought": [{"role": "assistant", "content": "GraphQL replaces REST"}, {"role": "user", "content": "done"}]},
    },
    "edges": [
        {"src": 1, "dst": 2, "rationale": "the task needs an interface"},
        {"src": 15, "dst": 16, "rationale": "", "created_at": "2026-01-15", "created_by": "Architect"},
    ],
}  # fmt: skip


def written(folder: Path, value: Any, name: str = "graph.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def standing(view: Any) -> list[str]:
    return [node.id for node in view.nodes()]


# ---- MemoBrain --------------------------------------------------------------------------------


def test_thoughts_become_nodes_with_what_supersedes_them(store, tmp_path):
    done = import_memobrain(store, written(tmp_path, GRAPH))

    assert f"6 records: 6 added, 0 revised, 0 unchanged, 5 links; {NOW}" == str(done)
    assert ((), ()) == (done.damaged, done.warnings)
    assert ["node_1", "node_15", "node_30", "node_31"] == standing(store)
    assert ["node_1", "node_15", "node_16"] == standing(store.as_of(valid="2026-01-20"))
    assert ["node_1", "node_2"] == standing(store.as_of(valid="2026-01-10"))
    assert [] == standing(store.as_of(valid="2025-12-31"))


def test_a_thought_keeps_what_the_file_says_of_it(store, tmp_path):
    import_memobrain(store, written(tmp_path, GRAPH))
    flushed, listed = store.node("node_15"), store.node("node_31")

    assert {
        "text": "Adding WebSocket for realtime", "role": "Architect", "session": "Session 5",
        "related_turn_ids": [3], "active": "Flushed",
    } == flushed.content  # fmt: skip
    assert ("evidence", ("api",), day("2026-01-15")) == (flushed.kind, flushed.tags, flushed.valid_from)
    assert "GraphQL replaces REST\ndone" == listed.text
    assert ("Switching to GraphQL", ("api",)) == (store.node("node_30").text, store.node("node_30").tags)


def test_edges_become_links(store, tmp_path):
    import_memobrain(store, written(tmp_path, GRAPH))
    first = store.as_of(valid="2026-01-10").links_from("node_1", "related_to")
    second = store.as_of(valid="2026-01-20").links_from("node_15", "related_to")

    assert [("node_2", "the task needs an interface", "extractor")] == [
        (link.target, link.reason, link.created_by) for link in first
    ]
    assert [("node_16", None, "Architect", day("2026-01-15"))] == [
        (link.target, link.reason, link.created_by, link.valid_from) for link in second
    ]


def periods(store: Any, id: str) -> list[tuple[Any, Any]]:
    """Over which valid times the edges of a thought hold, as believed now."""
    there = {}
    for on in range(1, 32):
        for link in store.as_of(valid=f"2026-01-{on:02}").links_from(id, "related_to"):
            there[link.target] = (link.valid_from, link.valid_to)
    return list(there.values())


def test_an_edge_holds_as_long_as_its_ends(store, tmp_path):
    import_memobrain(store, written(tmp_path, GRAPH))

    assert [(day("2026-01-01"), day("2026-01-15"))] == periods(store, "node_1")
    assert [(day("2026-01-15"), day("2026-01-30"))] == periods(store, "node_15")
    assert [] == store.links_from("node_1", "related_to")


def test_an_edge_made_when_one_end_was_over_holds_as_long_as_the_other(store, tmp_path):
    late = {"src": 1, "dst": 2, "created_at": "2026-01-20"}
    over = {"src": 2, "dst": 16}
    import_memobrain(store, written(tmp_path, {**GRAPH, "edges": [late, over]}))

    assert [(day("2026-01-20"), None)] == periods(store, "node_1")
    (second,) = store.as_of(valid="2026-01-20").links_from("node_16", "related_to")
    assert (day("2026-01-15"), day("2026-01-30")) == (second.valid_from, second.valid_to)


def test_an_edge_ends_when_a_file_that_grew_ends_its_end(store, clock, tmp_path):
    import_memobrain(store, written(tmp_path, {**GRAPH, "edges": [{"src": 1, "dst": 30}]}))
    before = store.as_of()
    clock.move(days=1)
    more = {**GRAPH["nodes"], "40": {"node_id": 40, "kind": "evidence", "thought": "gRPC", "created_at": "2026-02-01", "supersedes": [30]}}  # fmt: skip
    done = import_memobrain(store, written(tmp_path, {"nodes": more, "edges": [{"src": 1, "dst": 30}]}))

    (link,) = store.as_of(valid="2026-01-31").links_from("node_1", "related_to")
    assert (day("2026-01-30"), day("2026-02-01")) == (link.valid_from, link.valid_to)
    assert [None] == [link.valid_to for link in before.links_from("node_1", "related_to")]
    assert (1, ()) == (done.links, done.warnings)


def test_a_replay_records_each_thought_at_its_own_time(store, tmp_path):
    done = import_memobrain(store, written(tmp_path, GRAPH), replay=True)

    assert "6 records: 6 added, 0 revised, 0 unchanged, 5 links" == str(done)
    assert [day("2026-01-01"), day("2026-01-15"), day("2026-01-30")] == sorted(
        {change.tx for change in store.changes()}
    )
    assert [
        [],
        ["node_1", "node_2"],
        ["node_1", "node_15", "node_16"],
        ["node_1", "node_15", "node_30", "node_31"],
    ] == [standing(store.knowledge_at(on)) for on in ("2025-12-31", "2026-01-10", "2026-01-20", "2026-01-31")]
    assert "superseded" == store.inspect("node_2").node.standing
    assert "stands" == store.knowledge_at("2026-01-14").inspect("node_2").node.standing
    assert [None] == [
        link.valid_to for link in store.knowledge_at("2026-01-14").links_from("node_1", "related_to")
    ]
    assert [(day("2026-01-01"), day("2026-01-15"))] == periods(store, "node_1")


def test_a_replay_believes_now_what_an_import_does(store, tmp_path):
    path = written(tmp_path, GRAPH)
    import_memobrain(store, path, replay=True)
    with graphstore.open(":memory:", clock=lambda: day("2026-02-01")) as other:
        import_memobrain(other, path)
        for on in ("2026-01-01", "2026-01-15", "2026-01-20", "2026-01-31"):
            one, two = store.as_of(valid=on), other.as_of(valid=on)
            assert standing(one) == standing(two)
            assert [
                sorted((link.source, link.kind, link.target, link.valid_from, link.valid_to) for node in view.nodes() for link in view.links_from(node.id))
                for view in (one, two)
            ].count([]) in (0, 2)  # fmt: skip


def test_a_replay_into_a_store_that_is_not_new_says_what_is_meant(store, clock, tmp_path):
    store.add_node("fact", {}, id="first")
    done = import_memobrain(store, written(tmp_path, GRAPH), replay=True)

    assert str(done).endswith(
        f"not replayed, as the store has recorded or shown something later than the first of them; {NOW}"
    )
    assert ["node_1", "node_2"] == standing(store.as_of(valid="2026-01-10"))
    assert [] == standing(store.knowledge_at("2026-01-10"))


def test_a_replay_of_a_file_that_grew_goes_on_where_the_last_one_ended(store, clock, tmp_path):
    import_memobrain(store, written(tmp_path, GRAPH), replay=True)
    more = {
        **GRAPH["nodes"],
        "30": {**GRAPH["nodes"]["30"], "thought": "Switched to GraphQL"},
        "40": {"node_id": 40, "kind": "evidence", "thought": "gRPC", "created_at": "2026-01-31", "supersedes": [31]},
    }  # fmt: skip
    done = import_memobrain(store, written(tmp_path, {**GRAPH, "nodes": more}), replay=True)

    assert (1, 1, 5, 1, None) == (done.added, done.revised, done.unchanged, done.links, done.hint)
    assert [day("2026-01-31"), day("2026-02-01")] == sorted(
        {change.tx for change in store.changes("2026-01-30")}
    )
    assert "Switching to GraphQL" == store.knowledge_at("2026-01-31").node("node_30").text


def test_what_lies_ahead_and_what_has_no_time_of_its_own_is_replayed_too(store, tmp_path):
    messages = [
        {"role": "user", "content": "hello", "id": "a"},
        {"role": "user", "content": "[2026-01-05] sessions", "id": "b"},
        {"role": "user", "content": "[2026-01-07] written on the 9th", "id": "c", "timestamp": "2026-01-09"},
        {"role": "user", "content": "and then", "id": "d"},
        {"role": "user", "content": "[2026-03-01] we deploy", "id": "e"},
    ]
    import_messages(store, written(tmp_path, messages), replay=True)

    recorded = {change.subject: change.tx for change in store.changes()}
    assert {
        "a": day("2026-01-05"), "b": day("2026-01-05"), "c": day("2026-01-09"), "d": day("2026-01-09"), "e": day("2026-02-01"),
    } == recorded  # fmt: skip
    assert (day("2026-01-07"), day("2026-01-09")) == (store.node("c").valid_from, store.node("d").valid_from)
    assert ["a", "b", "c", "d", "e"] == [node.id for node in store.as_of(valid="2026-03-02").nodes()]


def test_messages_without_any_time_are_recorded_now(store, tmp_path):
    done = import_messages(store, written(tmp_path, [("user", "ok")]), replay=True)

    assert (1, day("2026-02-01")) == (done.added, store.changes()[0].tx)


def test_importing_again_adds_nothing(store, clock, tmp_path):
    path = written(tmp_path, GRAPH)
    import_memobrain(store, path)
    before = store.changes()
    clock.move(days=1)

    assert "6 records: 0 added, 0 revised, 6 unchanged, 0 links" == str(import_memobrain(store, path))
    assert before == store.changes()


def test_a_file_that_grew_adds_what_is_new_and_describes_anew_what_changed(store, clock, tmp_path):
    import_memobrain(store, written(tmp_path, GRAPH))
    clock.move(days=1)
    more = {
        **GRAPH["nodes"],
        "30": {**GRAPH["nodes"]["30"], "thought": "Switched to GraphQL"},
        "40": {
            "node_id": 40,
            "kind": "evidence",
            "thought": "gRPC",
            "created_at": "2026-02-02",
            "supersedes": [31],
        },
    }
    done = import_memobrain(store, written(tmp_path, {"nodes": more}))

    assert (1, 1, 5, 1) == (done.added, done.revised, done.unchanged, done.links)
    assert ["Switching to GraphQL", "Switched to GraphQL"] == [
        each.text for each in store.versions("node_30")
    ]
    assert ["node_40"] == [each.id for each in store.what_superseded("node_31").current]


def test_what_was_said_of_a_thought_since_is_not_unsaid(store, clock, tmp_path):
    path = written(tmp_path, GRAPH)
    import_memobrain(store, path)
    store.revise("node_30", {"text": "GraphQL, by Ana"})
    store.retract("node_15", reason="never")

    assert 6 == import_memobrain(store, path).unchanged
    assert {"text": "GraphQL, by Ana"} == store.node("node_30").content


@pytest.mark.parametrize(
    "wrap",
    [
        lambda graph: {"version": "temporal_v1", "messages": [], "graph": graph},
        lambda graph: {"memory": graph},
    ],
)
def test_a_graph_may_be_saved_with_more_beside_it(store, tmp_path, wrap):
    assert 6 == import_memobrain(store, written(tmp_path, wrap(GRAPH))).added


def test_nodes_may_be_a_list_without_the_later_fields(store, tmp_path):
    nodes = [
        {
            "node_id": 5,
            "kind": "evidence",
            "thought": "Auth via sessions",
            "related_turn_ids": [1],
            "active": True,
        }
    ]
    import_memobrain(store, written(tmp_path, nodes))

    assert day("2026-02-01") == store.node("node_5").valid_from


def test_damaged_nodes_are_left_out_with_place_and_reason(store, tmp_path):
    nodes = {
        "1": {"node_id": 1, "kind": "task", "thought": "fine", "supersedes": [77]},
        "2": {"node_id": 2, "kind": "task"},
        "3": "no node",
        "4": {"node_id": 4, "kind": "task", "thought": "when", "created_at": "2026-01-30T10:00:00"},
        "5": {"node_id": 5, "kind": "task", "thought": "[2026-13-45] when"},
    }
    path = written(tmp_path, {"nodes": nodes, "edges": [{"src": 1, "dst": 2}, {"src": 1}, "edge"]})
    done = import_memobrain(store, path)

    assert (["node_1"], [2, 3, 4, 5]) == (standing(store), sorted(each.line for each in done.damaged))
    reasons = " ".join(each.reason for each in done.damaged)
    assert all(
        words in reasons for words in ("has no thought", "is no node", "has no time zone", "2026-13-45")
    )
    assert ["no node 'node_77'", "no node 'node_2'", "needs src and dst", "needs src and dst"] == [
        next(
            words for words in ("no node 'node_77'", "no node 'node_2'", "needs src and dst") if words in each
        )
        for each in done.warnings
    ]


def test_times_without_a_zone_are_those_of_the_zone_given(store, tmp_path):
    nodes = [{"node_id": 4, "kind": "task", "thought": "when", "created_at": "2026-01-30T10:00:00"}]
    import_memobrain(store, written(tmp_path, nodes), timezone="Europe/Berlin")

    assert "2026-01-30T09:00:00+00:00" == store.node("node_4").valid_from.isoformat()
    with pytest.raises(InvalidError, match="unknown timezone 'Mars'"):
        import_memobrain(store, written(tmp_path, nodes), timezone="Mars")


@pytest.mark.parametrize("text", ["no json", "5", "{}", '{"nodes": 5}'])
def test_what_is_no_graph_is_refused(store, tmp_path, text):
    with pytest.raises(InvalidError, match=r"graph\.json"):
        import_memobrain(store, written(tmp_path, text))
    with pytest.raises(InvalidError, match="there is no file"):
        import_memobrain(store, tmp_path / "nowhere.json")


# ---- messages ---------------------------------------------------------------------------------

MESSAGES = [
    {"role": "assistant", "content": "#auth [2026-01-01] sessions", "id": "node_5"},
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "ok"},
    {"role": "assistant", "content": "#auth [2026-01-30] [SUPERSEDES node_5] JWT"},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(MESSAGES),
        json.dumps({"messages": MESSAGES}),
        "\n".join(map(json.dumps, MESSAGES)) + "\n\n",
        "\ufeff" + json.dumps(MESSAGES),
    ],
)
def test_messages_are_read_in_each_form(store, tmp_path, text):
    done = import_messages(store, written(tmp_path, text), session="Sprint 3")

    assert f"4 records: 4 added, 0 revised, 0 unchanged, 1 link; {NOW}" == str(done)
    assert "JWT (as of Sprint 3); previously sessions (Sprint 3, superseded)" == str(
        topics.latest_on(store, "auth")
    )


def test_importing_messages_again_adds_nothing_and_a_file_may_grow_and_move(store, tmp_path):
    import_messages(store, written(tmp_path, MESSAGES))
    before = store.changes()
    assert 4 == import_messages(store, written(tmp_path, MESSAGES, "moved.json")).unchanged
    assert before == store.changes()

    grown = import_messages(store, written(tmp_path, [*MESSAGES, {"role": "user", "content": "ok"}]))
    assert (1, 4) == (grown.added, grown.unchanged)


def test_the_same_words_in_another_session_are_another_message(store, tmp_path):
    path = written(tmp_path, MESSAGES[1:3])
    import_messages(store, path)

    assert 2 == import_messages(store, path, session="another").added


def test_the_good_messages_of_a_damaged_file_are_kept(store, tmp_path):
    lines = [
        json.dumps(MESSAGES[0]),
        "{broken",
        json.dumps({"role": "user"}),
        "[]",
        json.dumps(("user", "pair")),
    ]
    done = import_messages(store, written(tmp_path, "\n".join(lines)))

    assert (2, [2, 3, 4]) == (done.added, [each.line for each in done.damaged])
    assert done.damaged[0].reason.startswith("no JSON")


def test_a_message_with_an_unknown_supersession_is_kept_with_a_warning(store, tmp_path):
    done = import_messages(store, written(tmp_path, [("user", "[SUPERSEDES node_9] words")]))

    assert 1 == done.added
    assert "supersedes what is not known: no node 'node_9'" in done.warnings[0]


def test_a_document_of_something_else_is_refused(store, tmp_path):
    with pytest.raises(InvalidError, match="holds no messages"):
        import_messages(store, written(tmp_path, "5"))


# ---- commands ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "team.gs"
    graphstore.open(path).close()
    return path


def test_memorize_reads_a_file_or_standard_input_and_topics_are_asked(folder, tmp_path):
    old = [{"id": "s1", "key": "auth", "content": "[2026-01-05] sessions", "sprint": "Sprint 1"}]
    said = run("memorize", folder, written(tmp_path, old))
    assert "memorized s1: sessions\n" == said
    new = json.dumps([{"id": "s2", "key": "auth", "content": "[2026-02-02] [SUPERSEDES s1] JWT tokens"}])
    assert "memorized s2: JWT tokens\ns2 supersedes s1\n" == run(
        "memorize", folder, "-", "--session", "Sprint 3", stdin=new
    )

    words = "JWT tokens (as of Sprint 3); previously sessions (Sprint 1, superseded)\n"
    assert words == run("latest", folder, "auth")
    assert "auth_v1: sessions\nauth_v2: JWT tokens (current)\n" == run("topic", folder, "auth")
    assert "sessions (as of Sprint 1); planned JWT tokens (Sprint 3, from 2026-02-02)\n" == run(
        "latest", folder, "auth", "--valid", "2026-01-10"
    )
    asked = answer("latest", folder, "auth", "--strategy", "versioned_topics", "--limit", 3)
    assert ("key", "s2", "s1") == (asked["found_by"], asked["node"]["id"], asked["previous"][0]["id"])
    assert ["s1"] == [each["id"] for each in answer("topic", folder, "auth")["past"]]
    assert "Nothing is surely about 'auht'. Nearest: 'auth'.\n" == run("latest", folder, "auht")


def test_memorize_takes_all_messages_or_none(folder, tmp_path):
    lines = json.dumps({"role": "user", "content": "fine"}) + "\n{broken"
    assert ":2: no JSON" in refused("memorize", folder, written(tmp_path, lines))
    assert "message 2 supersedes what is not known" in refused(
        "memorize", folder, "-", stdin='[["user", "fine"], ["user", "[SUPERSEDES node_5] words"]]'
    )
    assert 0 == answer("stats", folder)["transactions"]


def test_an_unknown_strategy_is_refused(folder):
    assert "unknown strategy 'newest'" in refused("latest", folder, "auth", "--strategy", "newest")


def one_line(said: str) -> str:
    return " ".join(said.split()) + "\n"


def test_a_file_is_replayed(tmp_path):
    said = run("import", "memobrain", tmp_path / "new.gs", written(tmp_path, GRAPH), "--replay")
    assert "6 records: 6 added, 0 revised, 0 unchanged, 5 links\n" == said
    assert "Using REST API" in run("get", tmp_path / "new.gs", "node_2", "--as-of", "2026-01-10")


def test_files_are_imported(folder, tmp_path):
    said = run("import", "memobrain", folder, written(tmp_path, GRAPH), "--timezone", "UTC")
    assert f"6 records: 6 added, 0 revised, 0 unchanged, 5 links; {NOW}\n" == one_line(said)
    said = run(
        "import", "messages", folder, written(tmp_path, MESSAGES, "chat.json"), "--session", "Sprint 3"
    )
    assert f"4 records: 4 added, 0 revised, 0 unchanged, 1 link; {NOW}\n" == one_line(said)
    assert "sprint" in run("latest", folder, "auth").lower()
