"""Topics: messages are memorized; what stands, what stood before, what is planned; who decides between several."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError, topics
from graphstore.values.keys import version_of
from tests.conftest import Clock, day

pytestmark = pytest.mark.served


def names(mentions):
    return [each.id for each in mentions]


def standing(view):
    return [node.id for node in view.nodes()]


@pytest.fixture
def repricer(store, clock):
    """A project's evolution in three sessions, recorded when they took place."""
    for date, session, messages in (
        ("2026-01-01", 1, [{"id": "node_1", "kind": "task", "content": "Build WB Repricer"}, {"id": "node_2", "content": "Using REST API"}]),
        ("2026-01-15", 5, [
            {"id": "node_15", "content": "Adding WebSocket for realtime"},
            {"id": "node_16", "content": "[SUPERSEDES node_2] REST + WebSocket hybrid"},
        ]),
        ("2026-01-30", 10, [
            {"id": "node_30", "content": "Switching to GraphQL"},
            {"id": "node_31", "content": "[SUPERSEDES node_2, node_16] GraphQL replaces REST"},
        ]),
    ):  # fmt: skip
        clock.set(date)
        topics.memorize(store, messages, session=str(session))
    clock.set("2026-02-01")
    return store


@pytest.fixture
def stories(store, clock):
    """An epic: sessions in the first sprint, tokens in the third."""
    clock.set("2026-01-05")
    first = {"id": "story_1_1", "kind": "story", "key": "auth", "content": "sessions", "sprint": "Sprint 1"}
    topics.memorize(store, [first])
    clock.set("2026-02-02")
    topics.memorize(
        store,
        [{"id": "story_1_5", "kind": "story", "content": "[SUPERSEDES story_1_1] JWT tokens", "key": "auth", "sprint": "Sprint 3"}],
    )  # fmt: skip
    clock.set("2026-03-01")
    return store


@pytest.fixture
def versions(store):
    """Three versions of one topic over valid time, the last one planned."""
    for number, (says, since) in enumerate(
        [("Sessions", "2026-01-01"), ("JWT", "2026-01-20"), ("OAuth2", "2026-06-01")], 1
    ):
        before = [f"n{number - 1}"] if number > 1 else ()
        store.add_node(
            "decision",
            {"says": says},
            id=f"n{number}",
            key=f"auth_v{number}",
            valid_from=since,
            supersedes=before,
        )
    return store


# ---------------------------------------------------------------- memorizing


def test_messages_become_nodes_with_what_is_written_in_them(store):
    done = topics.memorize(
        store,
        [
            {"role": "assistant", "content": "[2026-01-30] Researching auth..."},
            {"role": "Agent_Architect@2026-01-29", "content": "JWT architecture..."},
            {"role": "assistant", "content": "#auth #decision @2026-01-28 Using JWT tokens"},
            ("user", "plain words"),
        ],
        session="Sprint 3",
    )

    assert [
        ("Researching auth...", "assistant", (), day("2026-01-30")),
        ("JWT architecture...", "Agent_Architect", (), day("2026-01-29")),
        ("Using JWT tokens", "assistant", ("auth", "decision"), day("2026-01-28")),
        ("plain words", "user", (), day("2026-02-01")),
    ] == [(node.text, node.content["role"], node.tags, node.valid_from) for node in done.nodes]
    assert {("evidence", "Sprint 3", day("2026-02-01"))} == {
        (node.kind, node.content["session"], node.tx_from) for node in done.nodes
    }


def test_a_call_is_one_transaction(store):
    topics.memorize(store, [("user", "one"), ("user", "two")])

    assert 1 == store.stats()["transactions"]


def test_it_may_be_a_part_of_a_transaction(store):
    with store.transaction(reason="import"):
        topics.memorize(store, [("user", "one")])
        topics.memorize(store, [("user", "two")])
        assert 2 == len(store.nodes())

    assert 1 == store.stats()["transactions"]


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        ({"role": "user", "content": "[SUPERSEDES node_51] gone"}, NotFoundError, "message 2 supersedes what is not known: no node 'node_51'. Nearest: 'node_5'"),
        ({"role": "user", "content": "[2026-13-45] when"}, InvalidError, "message 2: the date in"),
        ({"role": "user"}, InvalidError, "message 2: a message with no content"),
        ({"role": "user", "content": "again", "id": "node_5"}, ConflictError, "'node_5' is known already"),
    ],
)  # fmt: skip
def test_a_message_that_cannot_be_kept_leaves_nothing_of_the_call(store, message, error, words):
    topics.memorize(store, [{"role": "user", "content": "sessions", "id": "node_5"}])
    before = store.changes()

    with pytest.raises(error, match=words):
        topics.memorize(store, [("user", "fine"), message])
    assert before == store.changes()


def test_only_a_whole_id_supersedes(store):
    topics.memorize(store, [{"content": "words", "id": "node_12"}])

    with pytest.raises(NotFoundError, match=r"'node_1'.*Nearest: 'node_12'"):
        topics.memorize(store, [("user", "[SUPERSEDES node_1] other words")])
    assert ["node_12"] == standing(store)


def test_a_message_may_supersede_one_that_comes_later_in_the_list(store):
    done = topics.memorize(
        store,
        [
            {"id": "new", "content": "[2026-01-20] [SUPERSEDES old] JWT"},
            {"id": "old", "content": "[2026-01-01] sessions"},
        ],
    )

    assert [("new", "supersedes", "old")] == [(link.source, link.kind, link.target) for link in done.links]
    assert day("2026-01-20") == store.history("old")[0].valid_to


@pytest.mark.parametrize("messages", ["words", b"words", {"role": "user", "content": "words"}, 5])
def test_one_message_alone_is_no_list(store, messages):
    with pytest.raises(InvalidError, match="is no list"):
        topics.memorize(store, messages)


def test_no_messages_are_no_transaction(store):
    assert () == topics.memorize(store, []).nodes
    assert 0 == store.stats()["transactions"]


def test_remarks_name_the_message(store):
    (remark,) = topics.memorize(store, [("user", "a"), ("user", "b [SUPERSEDES node_5]")]).remarks
    assert remark.startswith("message 2: '[SUPERSEDES node_5]' does not stand at the head")


# ---------------------------------------------------------------- the evolution of a project


def test_what_stands_after_the_evolution(repricer):
    assert ["node_1", "node_15", "node_30", "node_31"] == standing(repricer)


@pytest.mark.parametrize(
    ("date", "known"),
    [
        ("2025-12-31", []),
        ("2026-01-01", ["node_1", "node_2"]),
        ("2026-01-14", ["node_1", "node_2"]),
        ("2026-01-15", ["node_1", "node_15", "node_16"]),
        ("2026-01-29", ["node_1", "node_15", "node_16"]),
        ("2026-01-30", ["node_1", "node_15", "node_30", "node_31"]),
    ],
)
def test_knowledge_at_each_date_of_the_evolution(repricer, date, known):
    assert known == standing(repricer.knowledge_at(date))


def test_what_is_obsolete_says_what_superseded_it(repricer):
    assert ["node_31"] == names(repricer.what_superseded("node_16").current)
    assert ["node_31"] == names(repricer.what_superseded("node_2").current)
    assert ["node_16"] == names(repricer.knowledge_at("2026-01-20").what_superseded("node_2").current)


def test_the_latest_of_the_evolution_by_its_words(repricer):
    latest = topics.latest_on(repricer, "GraphQL REST")

    assert ("text", "node_31", "Session 10") == (latest.found_by, latest.node.id, latest.label)
    assert ["node_16", "node_2"] == names(latest.previous)


# ---------------------------------------------------------------- how is auth implemented


def test_the_answer_says_what_stands_as_of_when_and_what_it_was(stories):
    assert "JWT tokens (as of Sprint 3); previously sessions (Sprint 1, superseded)" == str(
        topics.latest_on(stories, "auth")
    )


def test_a_question_is_answered_by_its_words(stories):
    latest = topics.latest_on(stories, "How is auth implemented?")

    assert "text" == latest.found_by
    assert "JWT tokens (as of Sprint 3); previously sessions (Sprint 1, superseded)" == str(latest)


def test_the_same_question_at_an_earlier_date(stories):
    assert "sessions (as of Sprint 1)" == str(topics.latest_on(stories.knowledge_at("2026-01-10"), "auth"))
    then = stories.as_of(valid="2026-01-10")
    assert "sessions (as of Sprint 1); planned JWT tokens (Sprint 3, from 2026-02-02)" == str(
        topics.latest_on(then, "auth")
    )


def test_the_fields_of_an_answer(stories):
    latest = topics.latest_on(stories, "Auth")
    (before,) = latest.previous

    assert ("key", "story_1_5", "Sprint 3", day("2026-02-02")) == (
        latest.found_by, latest.node.id, latest.label, latest.as_of,
    )  # fmt: skip
    assert ("story_1_1", "Sprint 1", "superseded", ("story_1_5",), day("2026-02-02")) == (
        before.id, before.label, before.standing, before.replaced_by, before.valid_to,
    )  # fmt: skip
    assert ((), (), 0, ()) == (latest.also, latest.planned, latest.more, latest.nearest)
    assert "nothing else stands" == latest.decision.why


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ({"sprint": 3, "session": "s5"}, "Sprint 3"),
        ({"session": "5"}, "Session 5"),
        ({"session": "sprint_1"}, "sprint_1"),
        ({"label": "Epic 1", "sprint": 3}, "Epic 1"),
        ({"session": " ", "sprint": None}, None),
        ({"sprint": True, "label": {}}, None),
    ],
)
def test_a_node_keeps_its_label(content, label):
    assert label == topics.label_of(content)


# ---------------------------------------------------------------- versions of a topic


def test_a_timeline_names_its_versions(versions):
    assert "auth_v1: Sessions\nauth_v2: JWT (current)\nauth_v3: OAuth2 (planned)" == str(
        topics.topic(versions, "auth")
    )


def test_a_timeline_moves_with_the_coordinate(versions):
    later = topics.topic(versions.as_of(valid="2026-07-01"), "auth")
    earlier = topics.topic(versions.as_of(valid="2026-01-10"), "auth")

    assert "auth_v1: Sessions\nauth_v2: JWT\nauth_v3: OAuth2 (current)" == str(later)
    assert "auth_v1: Sessions (current)\nauth_v2: JWT (planned)\nauth_v3: OAuth2 (planned)" == str(earlier)
    assert [("n2",), ("n3",)] == [each.replaced_by for each in later.past]


def test_a_version_asked_for_by_name_is_that_one(versions):
    assert "n2" == topics.latest_on(versions, "auth_v2").node.id
    first = topics.latest_on(versions, "auth_v1")
    assert (None, ["n1"]) == (first.node, names(first.previous))
    assert "nothing stands on 'auth_v1'; previously Sessions (2026-01-01, superseded)" == str(first)


@pytest.fixture
def bare(store):
    """Three versions under keys with a number, none of which says that it supersedes another."""
    for number, (says, since) in enumerate(
        [("Sessions", "2026-01-01"), ("JWT", "2026-01-20"), ("OAuth2", "2026-06-01")], 1
    ):
        store.add_node("decision", {"says": says}, id=f"n{number}", key=f"auth_v{number}", valid_from=since)
    return store


def test_keys_with_a_number_are_versions_of_one_topic_over_valid_time(bare):
    assert ["n1", "n2"] == standing(bare)
    assert "auth_v1: Sessions\nauth_v2: JWT (current)\nauth_v3: OAuth2 (planned)" == str(
        topics.topic(bare, "auth")
    )
    (before,) = topics.topic(bare, "auth").past
    assert ("superseded", ("n2",), day("2026-01-20")) == (
        before.standing,
        before.replaced_by,
        before.valid_to,
    )
    assert (
        "JWT (as of 2026-01-20); previously Sessions (2026-01-01, superseded); planned OAuth2 (from 2026-06-01)"
        == str(topics.latest_on(bare, "auth"))
    )
    assert (
        "n1"
        == topics.latest_on(bare, "auth_v1").node.id
        == topics.latest_on(bare.as_of(valid="2026-01-10"), "auth").node.id
    )


def test_a_version_comes_back_when_the_next_one_is_taken_back(bare):
    bare.retract("n2", reason="never")

    assert "auth_v1: Sessions (current)\nauth_v2: JWT (retracted)\nauth_v3: OAuth2 (planned)" == str(
        topics.topic(bare, "auth")
    )


def test_a_version_of_another_scope_passes_none(bare):
    bare.add_node(
        "decision", {"says": "basic"}, id="app", key="auth_v9", scope="app", valid_from="2026-02-01"
    )

    assert ["app", "n2"] == sorted(names(topics.topic(bare, "auth").current))
    assert ["n2"] == names(topics.topic(bare, "auth", scope="").current)


def test_what_only_its_number_puts_later_is_decided_by_a_strategy(store):
    store.add_node("fact", {"says": "second"}, id="2", key="auth_v2", valid_from="2026-01-01")
    store.add_node("fact", {"says": "first"}, id="1", key="auth_v1", valid_from="2026-01-20")

    assert {"1", "2"} == set(names(topics.topic(store, "auth").current))
    assert "1" == topics.latest_on(store, "auth").node.id
    assert "2" == topics.latest_on(store, "auth", strategy="versioned_topics").node.id


def test_settling_writes_down_what_versions_mean(bare):
    assert [("n2", "n1")] == [
        (link.source, link.target) for link in topics.settle(bare, "auth", reason="r").links
    ]
    assert ["n2"] == standing(bare)


def test_a_timeline_is_in_the_order_of_validity(store):
    for says, since, until in (
        ("always", "2026-01-01", None),
        ("trial", "2026-01-20", "2026-02-01"),
        ("late", "2026-06-01", None),
        ("late too", "2026-05-01", None),
    ):
        store.add_node("fact", {"says": says}, tags=["auth"], valid_from=since, valid_to=until)
    found = topics.topic(store, "auth")

    assert [
        "auth_v1: always (current)", "auth_v2: trial (ended)", "auth_v3: late too (planned)", "auth_v4: late (planned)",
    ] == str(found).splitlines()  # fmt: skip


def test_what_is_planned_is_not_current(versions):
    latest = topics.latest_on(versions, "auth")

    assert ("n2", ["n3"]) == (latest.node.id, names(latest.planned))
    assert (
        "JWT (as of 2026-01-20); previously Sessions (2026-01-01, superseded); planned OAuth2 (from 2026-06-01)"
        == str(latest)
    )


def test_values_of_a_slot_are_counted_as_versions(store):
    for says, since in (("Tuesday", "2026-01-05"), ("Thursday", "2026-01-19"), ("Friday", "2026-06-01")):
        store.add_node("rule", {"says": says}, key="deploy day", valid_from=since)

    assert (
        "deploy_day_v1: Tuesday\ndeploy_day_v2: Thursday (current)\ndeploy_day_v3: Friday (planned)"
        == str(topics.topic(store, "Deploy Day"))
    )


def test_descriptions_of_one_node_are_versions_too(store):
    store.add_node("fact", {"says": "Sessions"}, id="a", key="auth", valid_from="2026-01-01")
    store.revise("a", {"says": "JWT"}, valid_from="2026-01-20")
    store.revise("a", {"says": "OAuth2"}, valid_from="2026-06-01")
    found = topics.topic(store, "auth")

    assert "auth_v1: Sessions\nauth_v2: JWT (current)\nauth_v3: OAuth2 (planned)" == str(found)
    assert ("a-v2",) == found.past[0].replaced_by
    assert ["superseded", "stands", "not_yet"] == [
        each.standing for each in (*found.past, *found.current, *found.planned)
    ]


def test_what_was_replaced_before_it_began_is_past_and_superseded(store):
    for says in ("OAuth2", "passkeys"):
        store.add_node("plan", {"says": says}, key="auth", valid_from="2026-06-01")

    assert "auth_v1: OAuth2\nauth_v2: passkeys (planned)" == str(topics.topic(store, "auth"))


def test_what_holds_again_later_is_planned(store):
    store.add_node("fact", {"says": "a"}, id="a", key="auth", valid_from="2026-01-01")
    store.retract("a", valid_from="2026-01-20", valid_to="2026-06-01", reason="a pause")

    assert "auth_v1: a (retracted)\nauth_v2: a (planned)" == str(topics.topic(store, "auth"))


def test_what_was_taken_back_says_so(store):
    store.add_node("fact", {"says": "Sessions"}, id="a", key="auth", valid_from="2026-01-01")
    store.retract("a", reason="never so")

    assert "auth_v1: Sessions (retracted)" == str(topics.topic(store, "auth"))
    assert "nothing stands on 'auth'; previously Sessions (2026-01-01, retracted)" == str(
        topics.latest_on(store, "auth")
    )


def test_what_was_erased_is_named_and_says_nothing(store, clock):
    store.add_node(
        "fact",
        {"says": "Sessions of a customer"},
        id="a",
        key="auth",
        tags=["customer"],
        valid_from="2026-01-01",
    )
    before = store.as_of()
    planned = store.as_of(valid="2025-12-01")
    assert "tag" == topics.latest_on(store, "customer").found_by
    clock.move(days=1)
    store.erase("a", reason="a customer")

    for view in (store, before, planned):
        assert "nothing stands on 'auth'; previously [erased] (2026-01-01, erased)" == str(
            topics.latest_on(view, "auth")
        )
        assert "auth_v1: [erased] (erased)" == str(topics.topic(view, "auth"))
        assert "Nothing is surely about 'customers'." == str(topics.latest_on(view, "customers"))


# ---------------------------------------------------------------- finding a topic


def test_a_key_comes_before_a_tag_and_a_tag_before_words(store):
    store.add_node("fact", {"says": "by words of auth"}, id="words")
    assert ("text", "words") == _found(store, "auth")
    store.add_node("fact", {"says": "by tag"}, id="tag", tags=["Auth"])
    assert ("tag", "tag") == _found(store, "auth")
    store.add_node("fact", {"says": "by key"}, id="key", key="auth")
    assert ("key", "key") == _found(store, "auth")


def _found(view, topic):
    latest = topics.latest_on(view, topic)
    return latest.found_by, latest.node.id


def test_what_is_told_inside_a_transaction_is_found_there_and_nowhere_else(store):
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.add_node("fact", {"says": "a"}, id="a", key="auth")
        store.add_node("fact", {"says": "b"}, id="b", tags=["login"])
        assert [("key", "a"), ("tag", "b")] == [_found(store, "auth"), _found(store, "login")]
        _ = 1 / 0

    assert [None, None] == [topics.latest_on(store, name).found_by for name in ("auth", "login")]
    store.add_node("fact", {"says": "c"}, id="c", key="auth", tags=["login"])
    assert [("key", "c"), ("tag", "c")] == [_found(store, "auth"), _found(store, "login")]


def test_an_earlier_view_knows_no_later_names(store, clock):
    store.add_node("fact", {"says": "a"}, key="auth")
    before = store.as_of()
    clock.move(days=1)
    store.add_node("fact", {"says": "b"}, id="b", tags=["login"])
    store.add_node("fact", {"says": "c"}, key="logins")

    assert "Nothing is surely about 'logi'." == str(topics.latest_on(before, "logi"))
    assert {"login", "logins"} == set(topics.latest_on(store, "logi").nearest)
    assert None is topics.latest_on(before, "login").found_by


def test_an_unknown_topic_is_an_answer(stories):
    latest = topics.latest_on(stories, "auht")

    assert (None, None, None, ("auth",)) == (latest.found_by, latest.node, latest.decision, latest.nearest)
    assert (
        "Nothing is surely about 'auht'. Nearest: 'auth'."
        == str(latest)
        == str(topics.topic(stories, "auht"))
    )


def test_a_blank_topic_is_refused(store):
    for ask in (topics.latest_on, topics.topic):
        with pytest.raises(InvalidError, match="topic is blank"):
            ask(store, "  ")


def test_a_topic_may_be_narrowed_by_kind_and_scope(store):
    store.add_node("rule", {"says": "rule"}, id="rule", key="auth", scope="web")
    store.add_node("fact", {"says": "fact"}, id="fact", key="auth", scope="app")

    assert "rule" == topics.latest_on(store, "auth", kind="rule").node.id
    assert "fact" == topics.latest_on(store, "auth", scope="app").node.id
    assert None is topics.latest_on(store, "auth", kind="rule", scope="app").found_by


def test_a_tag_taken_away_no_longer_finds_it(store):
    store.add_node("fact", {"says": "a"}, id="a", tags=["auth"], valid_from="2026-01-01")
    store.revise("a", {"says": "b"}, tags=[], valid_from="2026-01-20")
    latest = topics.latest_on(store, "auth")

    assert (None, ["a"]) == (latest.node, names(latest.previous))


def test_what_a_tagged_node_superseded_needs_no_tag(store):
    store.add_node("fact", {"says": "sessions"}, id="a", valid_from="2026-01-01")
    store.add_node("fact", {"says": "JWT"}, id="b", tags=["auth"], valid_from="2026-01-20", supersedes="a")

    assert ["a"] == names(topics.latest_on(store, "auth").previous)
    assert "auth_v1: sessions\nauth_v2: JWT (current)" == str(topics.topic(store, "auth"))


def test_what_came_before_what_came_before_is_told_too(store):
    store.add_node("fact", {"says": "passwords"}, id="p", valid_from="2025-01-01")
    store.add_node("fact", {"says": "sessions"}, id="s", key="auth", valid_from="2026-01-01", supersedes="p")
    store.add_node("fact", {"says": "JWT"}, id="j", key="auth", valid_from="2026-01-20")

    assert ["s", "p"] == names(topics.latest_on(store, "auth").previous)


def test_events_that_say_the_words_do_not_crowd_out_what_is_known(store):
    for number in range(12):
        store.record_event("deploy", f"auth auth auth {number}", occurred_at="2026-01-01")
    store.add_node(
        "fact", {}, id="n", text="a long text which says in passing how auth is done here by us all"
    )

    assert ("text", "n") == _found(store, "auth")


def test_what_is_to_supersede_it_is_planned_until_that_is_taken_back(store):
    store.add_node("fact", {"says": "JWT"}, id="a", tags=["auth"], valid_from="2026-01-01")
    store.add_node("fact", {"says": "OAuth2"}, id="b", valid_from="2026-06-01", supersedes="a")
    assert ["b"] == names(topics.latest_on(store, "auth").planned)

    store.unlink(store.as_of(valid="2026-07-01").supersedes("b")[0].id)
    assert () == topics.latest_on(store, "auth").planned


def test_ten_thousand_bodies_are_not_read_for_each_question(store):
    store.bulk_load(
        nodes=[{"id": f"n{number}", "kind": "fact"} for number in range(10_000)],
        versions=[{"node_id": f"n{number}", "content": {"says": "a"}, "tags": [f"tag{number}"]} for number in range(10_000)],
    )  # fmt: skip
    assert "n7" == topics.latest_on(store, "tag7").node.id

    began = time.process_time()
    assert [f"n{number}" for number in range(500)] == [
        topics.latest_on(store, f"tag{number}").node.id for number in range(500)
    ]
    assert 2 > time.process_time() - began  # a fraction of it; reading every body takes half a minute


def test_names_are_found_after_opening_again(tmp_path):
    with graphstore.open(tmp_path / "m.gs", clock=Clock()) as opened:
        opened.add_node("fact", {"says": "a"}, id="a", key="auth_v2")
        opened.add_node("fact", {"says": "b"}, id="b", tags=["login"])
    with graphstore.open(tmp_path / "m.gs", read_only=True) as reader:
        assert [("key", "a"), ("tag", "b")] == [_found(reader, "auth"), _found(reader, "login")]


def test_a_follower_finds_what_came_since(disk_store):
    disk_store.add_node("fact", {"says": "a"}, id="a", key="auth")
    with graphstore.open(disk_store.path, read_only=True) as reader:
        assert ("key", "a") == _found(reader, "auth")
        disk_store.add_node("fact", {"says": "b"}, id="b", tags=["login"])
        assert ("tag", "b") == _found(reader, "login")


# ---------------------------------------------------------------- when several stand


@pytest.fixture
def tagged(store):
    """Two that stand under one tag; the second was recorded later, for an earlier time."""
    with store.transaction():
        store.add_node("evidence", {}, id="jwt", text="Using JWT", tags=["auth"], valid_from="2026-01-20")
    store.add_node("decision", {}, id="old", text="Using sessions", tags=["auth"], valid_from="2026-01-01")
    return store


def test_the_latest_wins_and_the_others_are_listed(tagged):
    latest = topics.latest_on(tagged, "auth")

    assert ("jwt", ["old"]) == (latest.node.id, names(latest.also))
    assert "Using JWT (as of 2026-01-20); also Using sessions (as of 2026-01-01)" == str(latest)


def test_of_two_messages_of_one_call_and_date_the_later_wins(store):
    for _ in range(5):
        done = topics.memorize(store, [("user", f"[2026-01-30] #auth words {number}") for number in range(4)])
        assert done.nodes[-1].id == topics.latest_on(store, "auth").node.id
        for node in done.nodes:
            store.retract(node.id, reason="again")


def test_nothing_is_chosen_where_the_strategy_cannot_decide(tagged):
    latest = topics.latest_on(tagged, "auth", strategy="explicit_override")

    assert (None, ("jwt", "old")) == (latest.node, tuple(sorted(latest.decision.undecided)))
    assert ["jwt", "old"] == names(latest.also)
    assert "undecided between Using JWT (as of 2026-01-20), Using sessions (as of 2026-01-01)" == str(latest)


def test_the_caller_chooses_a_strategy_for_each_topic(tagged):
    choice = {"auth": "explicit_override", "*": "latest_wins"}
    assert None is topics.latest_on(tagged, "auth", strategy=choice).node
    assert "jwt" == topics.latest_on(tagged, "auth", strategy={"api": "explicit_override"}).node.id
    with pytest.raises(InvalidError, match="unknown strategy 'newest'"):
        topics.latest_on(tagged, "unknown", strategy="newest")


def test_lists_are_cut_and_what_is_left_out_is_counted(store):
    with store.transaction():
        for number in range(30):
            store.add_node(
                "fact", {"says": f"{number}"}, tags=["auth"], valid_from=f"2025-01-{number + 1:02}"
            )
    latest = topics.latest_on(store, "auth")

    assert ("29", 20, 9) == (latest.node.content["says"], len(latest.also), latest.more)
    assert (29, 0) == (
        len(topics.latest_on(store, "auth", limit=None).also),
        topics.latest_on(store, "auth", limit=None).more,
    )
    assert str(latest).endswith("; 9 more")
    with pytest.raises(InvalidError, match="limit 0 is out of range"):
        topics.latest_on(store, "auth", limit=0)


# ---------------------------------------------------------------- settling


def test_settling_writes_the_decision_down(tagged, clock):
    before = tagged.as_of()
    clock.move(days=1)
    settled = topics.settle(tagged, "auth", reason="the review said so")
    (link,) = settled.links

    assert ("jwt", "supersedes", "old", "the review said so") == (
        link.source,
        link.kind,
        link.target,
        link.reason,
    )
    assert {
        "topic": "auth",
        "strategy": "latest_wins",
        "why": "it holds since the latest instant",
    } == link.metadata
    assert ["jwt"] == standing(tagged)
    assert {"jwt", "old"} == set(standing(before))
    assert "Using JWT (as of 2026-01-20); previously Using sessions (2026-01-01, superseded)" == str(
        topics.latest_on(tagged, "auth")
    )


def test_what_is_undecided_stays_and_settling_again_writes_nothing(tagged):
    before = tagged.changes()
    settled = topics.settle(tagged, "auth", strategy="versioned_topics", reason="?")
    assert (None, (), before) == (settled.decision.won, settled.links, tagged.changes())

    topics.settle(tagged, "auth", reason="r")
    before = tagged.changes()
    assert () == topics.settle(tagged, "auth", reason="r").links
    assert before == tagged.changes()


def test_only_what_bears_the_name_is_settled(store):
    store.add_node("fact", {"says": "auth a"}, scope="web", key="login")
    store.add_node("fact", {"says": "auth b"}, scope="app", key="login")

    with pytest.raises(InvalidError, match="what a search finds is not settled"):
        topics.settle(store, "auth", reason="r")
    with pytest.raises(NotFoundError, match=r"Nothing is surely about 'logn'\. Nearest: 'login'"):
        topics.settle(store, "logn", reason="r")
    with pytest.raises(InvalidError, match=r"several scopes: \['app', 'web'\]"):
        topics.settle(store, "login", reason="r")
    with pytest.raises(InvalidError, match="reason is blank"):
        topics.settle(store, "login", reason=" ")


def test_a_strategy_may_let_the_earlier_one_win(store):
    store.add_node("fact", {"says": "second"}, id="2", key="auth_v2", valid_from="2026-01-01")
    store.add_node("fact", {"says": "first"}, id="1", key="auth_v1", valid_from="2026-01-20")
    settled = topics.settle(store, "auth", strategy={"auth": "versioned_topics"}, reason="numbers count")

    assert ["versioned_topics"] == [link.metadata["strategy"] for link in settled.links]
    assert ["2"] == standing(store) == standing(store.as_of(valid="2026-01-25"))


# ---------------------------------------------------------------- who disagreed with whom


def test_who_disagreed_with_whom_as_of_a_date(store, clock):
    clock.set("2026-01-01")
    topics.memorize(store, [{"id": "a", "content": "#auth auth is done with sessions", "role": "ana"}])
    clock.set("2026-01-10")
    topics.memorize(store, [{"id": "b", "content": "#auth auth is done with tokens", "role": "ben"}])
    clock.set("2026-01-20")
    topics.settle(store, "auth", reason="ben is right")

    def disagreed(date):
        return [
            (each.source.content["role"], each.target.content["role"])
            for each in store.knowledge_at(date).contradictions()
        ]

    assert [[], [("ben", "ana")], []] == [
        disagreed(date) for date in ("2026-01-05", "2026-01-15", "2026-01-20")
    ]


def test_nothing_is_resolved_by_asking(tagged):
    before = tagged.changes()
    topics.latest_on(tagged, "auth"), topics.topic(tagged, "auth")

    assert before == tagged.changes()
    assert ["jwt", "old"] == sorted(standing(tagged))


# ---------------------------------------------------------------- against reading everything


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "revise", "end", "retract", "supersede", "erase", "undo"]),
        st.integers(0, 9),
        st.sampled_from(["2026-01-01", "2026-01-10", "2026-01-20", "2026-03-01"]),
        st.sampled_from([None, "auth", "auth_v1", "auth_v2"]),
        st.lists(st.sampled_from(["login", "Auth", "api v1"]), max_size=2, unique=True),
    ),
    max_size=14,
)


def _write(store, number, what, which, date, key, tags):
    ids = sorted(id for (id,) in store._core.rows.database.rows("SELECT id FROM entity"))
    one, other = (ids[which % len(ids)], ids[which // 2 % len(ids)]) if ids else ("", "")
    try:
        if what == "add":
            store.add_node(
                "fact", {"says": f"{number}"}, id=f"n{number}", key=key, tags=tags, valid_from=date
            )
        elif what == "revise":
            store.revise(one, {"says": f"{number}"}, tags=tags, valid_from=date)
        elif what == "end":
            store.end(one, at=date)
        elif what == "retract":
            store.retract(one, reason="r")
        elif what == "supersede":
            store.supersede(one, by=other)
        elif what == "erase":
            store.erase(one, reason="r")
        else:
            with store.transaction():
                store.add_node(
                    "fact", {"says": "undone"}, id=f"n{number}", key=key, tags=tags, valid_from=date
                )
                topics.topic(store, "auth"), topics.topic(store, "login")
                raise InvalidError("undone")
    except graphstore.GraphStoreError:
        pass


@settings(deadline=None)
@given(WRITES)
def test_what_is_current_is_what_reading_everything_finds(writes):
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        views = []
        for number, write in enumerate(writes):
            _write(store, number, *write)
            clock.move(hours=1)
            topics.topic(store, "auth")  # what is kept follows from wherever it is
            views += [store.as_of(), store.as_of(valid=write[2])]
        for view in views:
            for name, keys, tag in NAMES:
                _agrees(view, name, keys, tag)


NAMES = (
    ("auth", {"auth", "auth_v1", "auth_v2"}, "Auth"),
    ("auth_v1", {"auth_v1"}, None),
    ("login", set(), "login"),
    ("api v1", set(), "api v1"),
)


def _not_passed(nodes):
    """The ids of those that no higher version of their topic and scope passed."""
    versions = [(node, *version_of(node.key)) for node in nodes]
    return {
        node.id
        for node, base, number in versions
        if number is None
        or not any(
            (base, node.scope) == (topic, other.scope)
            and higher is not None
            and higher > number
            and other.valid_from >= node.valid_from
            for other, topic, higher in versions
        )
    }


def _agrees(view, name, keys, tag):
    nodes, found = view.nodes(), topics.topic(view, name)
    by_key = {node.id for node in nodes if node.key in keys}
    by_tag = {node.id for node in nodes if tag in node.tags}
    if found.found_by in (None, "text"):  # nothing that bears the name was ever known
        assert set() == by_key | by_tag
        return
    latest = topics.latest_on(view, name, limit=None)
    expected = _not_passed(
        [node for node in nodes if node.id in (by_key if found.found_by == "key" else by_tag)]
    )
    assert expected == set(names(found.current))
    assert expected == {*names(latest.also), *([latest.node.id] if latest.node else [])}
    assert "not_yet" not in {each.standing for each in latest.previous}
    assert all(each.valid_from > view.at.valid for each in latest.planned)
