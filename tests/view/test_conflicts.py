"""What cannot both be right: recorded by links, found among nodes about the same, and decided by somebody."""

from __future__ import annotations

import random
import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError
from graphstore.values.sameness import jaccard
from graphstore.values.similar_pairs import alike

pytestmark = pytest.mark.served


def pairs(found):
    """The pairs, the newer (or the source) first."""
    return [(each.source.id, each.target.id) for each in found]


@pytest.fixture
def days(store, clock):
    """Two facts on the day of deploys that cannot both be right, the second recorded and true a day later."""
    clock.set("2026-01-01")
    store.add_node("fact", {}, id="friday", text="deploys run on Friday", tags=["deploys"])
    clock.set("2026-01-02")
    store.add_node("fact", {}, id="tuesday", text="deploys run on Tuesday", tags=["deploys"])
    clock.set("2026-02-01")
    return store


@pytest.fixture
def disputed(days):
    """The same two, and a link that says so."""
    days.link("friday", "contradicts", "tuesday", reason="one pipeline", strength=4, metadata={"by": "ops"})
    return days


# ---------------------------------------------------------------- which sets overlap


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=24),
    st.sampled_from([None, 0, 1, 2, 4, 100]),
)
def test_pairs_found_are_those_of_looking_at_each_two(sets, rare):
    expected = [
        (one, two) for one, two in combinations(range(len(sets)), 2) if jaccard(sets[one], sets[two]) >= 0.2
    ]
    assert expected == list(alike(sets, rare))


def test_pairs_are_found_among_sets_of_very_different_sizes():
    vocabulary = [str(n) for n in range(200)]
    dice = random.Random(5)
    sets = [frozenset(dice.sample(vocabulary, dice.choice((1, 3, 10, 40, 120)))) for _ in range(150)]

    expected = [
        (one, two) for one, two in combinations(range(150), 2) if jaccard(sets[one], sets[two]) >= 0.2
    ]
    assert [expected, expected] == [list(alike(sets, rare)) for rare in (None, 30)]


def test_words_that_all_share_do_not_make_ten_thousand_slow():
    dice = random.Random(7)
    common = "the service of a is in on to and with".split()
    rare = [f"word{n}" for n in range(8000)]
    sets = [frozenset(dice.sample(common, 2) + dice.sample(rare, 8)) for _ in range(10_000)]

    began = time.process_time()
    found = list(alike(sets))
    assert (
        3 > time.process_time() - began
    )  # a fraction of it on a machine at rest; looking at each two takes half a minute
    assert all(jaccard(sets[one], sets[two]) >= 0.2 for one, two in found)


def test_a_few_pairs_of_very_many_are_there_at_once():
    sets = [frozenset(("port", "of", "the", "service", "is", str(n))) for n in range(5000)]

    began = time.process_time()
    assert [(0, 1), (0, 2), (0, 3)] == [pair for pair, _ in zip(alike(sets), range(3), strict=False)]
    assert 1 > time.process_time() - began


# ---------------------------------------------------------------- candidates


def test_nodes_that_speak_of_the_same_and_differ_are_candidates(days):
    (found,) = days.contradictions()

    assert ("tuesday", "friday") == (found.source.id, found.target.id)
    assert (None, False, None, "topic deploys", 3 / 5) == (
        found.link,
        found.settled,
        found.decision,
        found.about,
        found.overlap,
    )
    assert [] == days.contradictions(candidates=False)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("fact", "Deploys run, on Friday!", []),  # the same
        ("fact", "the cat sleeps", []),
        ("rule", "deploys run on Tuesday", []),
        ("fact", "deploys run 2 hours", []),  # another question
        ("fact", "deploys run on Friday at 18:00", []),  # the same, more exactly
        ("fact", "deploys run on Fridays or so", []),
        ("fact", "do deploys run on Tuesday?", []),
        ("fact", "deploys should run on Tuesday", []),
        ("fact", "backups run on Tuesday", []),
        ("fact", "deploys never run on Friday", [("other", "friday")]),
        ("fact", "Deploys run on Tuesdays.", [("other", "friday")]),
    ],
)
def test_a_candidate_of_a_tag_is_of_the_same_kind_and_says_another_value(store, clock, kind, text, expected):
    store.add_node("fact", {}, id="friday", text="deploys run on Friday", tags=["deploys"])
    clock.move(days=1)
    store.add_node(kind, {}, id="other", text=text, tags=["deploys"])

    assert expected == pairs(store.contradictions())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("deploys run on Friday", "deploys run on Tuesday"),
        ("the cache is warm", "the cache is not warm"),
        ("the limit of billing is 100 a minute", "the limit of billing is 300 a minute"),
        ("порт сервиса оплаты — 80", "порт сервиса оплаты — 81"),
    ],
)
def test_words_alone_make_no_listed_candidate_but_two_can_be_compared(store, clock, one, other):
    store.add_node("fact", {}, id="one", text=one)
    clock.move(days=1)
    store.add_node("fact", {}, id="other", text=other)
    store.add_node("fact", {}, id="cat", text="the cat sleeps")
    assert [] == store.contradictions()
    assert [("other", "one")] == pairs([store.contradiction("one", "other")])
    with pytest.raises(NotFoundError, match="no contradicts link"):
        store.contradiction("one", "cat")

    clock.move(days=1)
    for name, text in (("one", one), ("other", other)):
        store.revise(name, {}, text=text, tags=["Ops!"])
    assert [("other", "one")] == pairs(store.contradictions())


def test_tags_that_say_what_a_statement_is_are_no_topic(store, clock):
    store.add_node("fact", {}, text="deploys run on Friday", tags=["decision", "done"])
    clock.move(days=1)
    store.add_node("fact", {}, text="deploys run on Tuesday", tags=["decision", "done"])

    assert [] == store.contradictions()


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("day", ["", "День 30: "])
def test_day_one_and_day_thirty_of_the_documents_are_found(store, clock, tagged, day):
    for name, date, text in (
        ("sessions", "2026-01-01", "Аутентификация реализована через сессии"),
        ("tokens", "2026-01-30", f"{day}Аутентификация переделана на JWT токены"),
    ):
        clock.set(date)
        store.add_node("evidence", {"thought": text}, id=name, tags=["auth"] if tagged else ())

    (found,) = store.contradictions()
    assert ("tokens", "sessions") == (found.source.id, found.target.id)
    assert ("topic auth" if tagged else "how аутентификация is done") == found.about
    assert [] == store.as_of(valid="2026-01-29").contradictions()


def test_a_change_contradicts_what_was_before_it_alone(store, clock):
    for name, text in (
        ("now", "Auth was refactored from sessions to JWT"),
        ("later", "Auth is implemented with passkeys"),  # says of no change
        ("billing", "Billing was rewritten in Rust"),
        ("it", "It was rewritten in Rust"),
        ("wanted", "Auth should be rewritten to OAuth2"),
    ):
        store.add_node("fact", {"says": text}, id=name)
        clock.move(days=1)
    assert [] == store.contradictions()

    store.add_node("fact", {"says": "Auth via sessions"}, id="before", valid_from="2025-01-01")
    assert [("now", "before")] == pairs(store.contradictions())


def test_two_values_of_one_field_of_one_subject_are_a_candidate(store, clock):
    for name, content in (
        ("a", {"name": "api server", "port": 80, "host": "one"}),
        ("b", {"name": "API server", "port": 81, "host": "one"}),
        ("c", {"name": "api server", "port": 82, "host": "two"}),
        ("d", {"name": "web server", "port": 83, "host": "one"}),
        ("e", {"name": "api server", "port": 80.0, "host": "one", "note": "as ever"}),
    ):
        store.add_node("fact", content, id=name)
        clock.move(days=1)

    assert [("e", "b"), ("b", "a")] == pairs(store.contradictions())
    assert {"port of api server"} == {each.about for each in store.contradictions()}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"subject": "ana", "likes": "tea"}, {"subject": "ana", "likes": "coffee"}),  # of which one has many
        ({"subject": "ana", "says": "tea is fine"}, {"subject": "ana", "says": "coffee is fine"}),
        ({"subject": "ana", "city": "Ulm"}, {"subject": "ana", "city": "unknown"}),
        ({"subject": "auth", "method": "JWT"}, {"subject": "auth", "method": "JWT tokens"}),
        ({"subject": "auth", "env": "test", "port": 1}, {"subject": "auth", "env": "live", "port": 2}),
        ({"subject": "auth", "at": "2026-01-01", "ms": 1}, {"subject": "auth", "at": "2026-01-02", "ms": 2}),
        ({"port": 1}, {"port": 2}),
    ],
)
def test_what_may_both_be_true_of_a_subject_is_none(store, clock, one, other):
    store.add_node("fact", one)
    clock.move(days=1)
    store.add_node("fact", other)

    assert [] == store.contradictions()


def test_a_triple_names_its_field(store, clock):
    for name, value in (("a", "Friday"), ("b", "Tuesday")):
        store.add_node("fact", {"subject": "deploys", "predicate": "day", "value": value}, id=name)
        clock.move(days=1)

    assert ["day of deploys"] == [each.about for each in store.contradictions()]


def test_a_tag_may_be_the_subject_of_a_field(store, clock):
    for name, content in (
        ("a", {"method": "sessions", "ttl": 5}),
        ("b", {"method": "tokens", "ttl": 5}),
        ("c", {"method": "passkeys", "ttl": 9}),  # differs in more than one
    ):
        store.add_node("fact", content, id=name, tags=["auth"])
        clock.move(days=1)

    assert [("b", "a")] == pairs(store.contradictions())


def test_versions_of_one_key_are_one_slot_over_time_whatever_their_words_and_kinds(store, clock):
    for name, key, kind, says in (
        ("sessions", "auth_v1", "fact", "sessions"),
        ("tokens", "Auth v2", "decision", "JWT"),
        ("same", "auth_v3", "fact", "JWT tokens"),
        ("other", "login_v1", "fact", "passwords"),
    ):
        store.add_node(kind, {"says": says}, id=name, key=key)
        clock.move(days=1)
    store.add_node("fact", {"says": "OAuth2"}, id="planned", key="auth_v4", valid_from="2027-01-01")
    store.add_node("fact", {"says": "keys"}, id="elsewhere", key="auth_v5", scope="elsewhere")

    assert [("same", "sessions"), ("tokens", "sessions")] == pairs(store.contradictions())
    assert {"slot auth"} == {each.about for each in store.contradictions()}
    store.supersede("sessions", by="tokens")
    assert [] == store.contradictions()


def test_each_is_held_against_the_newest_few_before_it(store, clock):
    for number in range(20):
        store.add_node(
            "fact", {"subject": "the sea", "level": number // 2}, id=f"n{number:02}", valid_from="2026-01-01"
        )
        clock.move(seconds=1)

    found = pairs(store.contradictions())
    assert [f"n{number:02}" for number in range(17, 7, -1)] == [
        older for newer, older in found if newer == "n19"
    ]
    assert not any(int(newer[1:]) // 2 == int(older[1:]) // 2 for newer, older in found)
    assert ("n19", "n00") not in found
    assert store.contradiction("n00", "n19").about == "level of the sea"


def test_candidates_of_many_alike_cost_what_is_looked_at():
    with graphstore.open(":memory:") as store:
        with store.transaction():
            for number in range(3000):
                store.add_node("fact", {"says": f"the port of the service is {number}"}, tags=["ports"])
        began = time.process_time()
        found = store.contradictions(limit=5)
        assert 5 == len(found)
        assert 3 > time.process_time() - began


def test_what_was_said_in_an_open_transaction_is_not_remembered(days):
    with pytest.raises(RuntimeError, match="after all"), days.transaction():
        days.add_node("fact", {}, id="monday", text="deploys run on Monday", tags=["deploys"])
        assert [("monday", "tuesday"), ("monday", "friday"), ("tuesday", "friday")] == pairs(
            days.contradictions()
        )
        raise RuntimeError("after all")
    days.add_node("fact", {}, id="cat", text="the cat sleeps", tags=["deploys"])

    assert [("tuesday", "friday")] == pairs(days.contradictions())


def test_what_was_erased_contradicts_nothing(days):
    assert [("tuesday", "friday")] == pairs(days.contradictions())
    before = days.as_of()
    days.erase("friday", reason="private")
    days.add_node("fact", {}, id="monday", text="deploys run on Monday", tags=["deploys"])

    assert [("monday", "tuesday")] == pairs(days.contradictions())
    assert [] == before.contradictions()


def test_a_branch_has_candidates_of_its_own(days):
    branch = days.branch("try")
    branch.add_node("fact", {}, id="monday", text="deploys run on Monday", tags=["deploys"])
    days.add_node("fact", {}, id="sunday", text="deploys run on Sunday", tags=["deploys"])

    assert "monday" == branch.contradictions()[0].source.id
    assert "sunday" == days.contradictions()[0].source.id
    assert 3 == len(branch.contradictions()) == len(days.contradictions())


def test_those_of_one_thing_are_asked_for_by_its_id(days):
    days.add_node("fact", {}, id="monday", text="deploys run on Monday", tags=["deploys"])
    days.add_node("fact", {"name": "api", "port": 80}, id="old-port")
    days.add_node("fact", {"name": "api", "port": 81}, id="new-port")
    days.link("old-port", "contradicts", "friday")

    assert [("old-port", "friday"), ("monday", "friday"), ("tuesday", "friday")] == pairs(
        days.contradictions(of="friday")
    )
    assert [("new-port", "old-port")] == pairs(days.contradictions(of="new-port"))
    assert [("monday", "tuesday")] == pairs(days.contradictions(of="monday", limit=1))
    assert [("old-port", "friday")] == pairs(days.contradictions(of="friday", candidates=False))
    with pytest.raises(NotFoundError, match="nobody"):
        days.contradictions(of="nobody")


def test_one_scope_never_contradicts_another(store):
    for scope, text in (("here", "deploys run on Friday"), ("there", "deploys run on Tuesday")):
        store.add_node("fact", {}, text=text, scope=scope, tags=["deploys"])
        store.add_node("fact", {"name": "api", "host": scope}, scope=scope)
        store.add_node("fact", {"says": scope}, scope=scope, key="auth")

    assert [] == store.contradictions()


@pytest.mark.parametrize("kind", ["supersedes", "corrects", "derived_from", "supports"])
def test_what_a_lifecycle_link_joins_is_no_candidate(days, kind):
    days.link("friday", kind, "tuesday")
    assert [] == days.contradictions()


def test_another_link_between_the_two_leaves_them_candidates(days):
    days.link("friday", "related_to", "tuesday")
    assert [("tuesday", "friday")] == pairs(days.contradictions())


def test_a_pair_with_a_contradicts_link_is_there_once(disputed):
    (found,) = disputed.contradictions()

    assert ("friday", "tuesday", "one pipeline", None) == (
        found.source.id,
        found.target.id,
        found.link.reason,
        found.overlap,
    )


def test_who_disagreed_with_whom_is_read_at_any_coordinate(days, clock):
    days.end("friday", at="2026-01-20")
    assert [] == days.contradictions()
    assert [("tuesday", "friday")] == pairs(days.as_of(valid="2026-01-10").contradictions())
    assert [] == days.as_of(valid="2026-01-01").contradictions()
    assert [("tuesday", "friday")] == pairs(days.knowledge_at("2026-01-31").contradictions())
    clock.set("2026-02-02")
    days.revise("tuesday", {}, text="the cat sleeps")
    assert [] == days.as_of(valid="2026-01-10").contradictions()
    assert [("tuesday", "friday")] == pairs(
        days.as_of(valid="2026-01-10", tx="2026-02-01T12:00Z").contradictions()
    )


def test_explicit_ones_come_first_and_the_newer_before_the_older(days, clock):
    days.add_node("fact", {}, id="monday", text="deploys run on Monday", tags=["deploys"])
    for name in ("north", "south"):
        days.add_node("claim", {}, id=name, text=name)
    days.link("north", "contradicts", "south")
    clock.move(days=1)
    days.link("north", "contradicts", "friday")

    wanted = [
        ("north", "friday"),
        ("north", "south"),
        ("monday", "tuesday"),
        ("monday", "friday"),
        ("tuesday", "friday"),
    ]
    assert wanted == pairs(days.contradictions())
    assert wanted[:3] == pairs(days.contradictions(limit=3))
    assert wanted[:2] == pairs(days.contradictions(candidates=False))
    with pytest.raises(InvalidError, match="limit 0"):
        days.contradictions(limit=0)


def test_kinds_are_mixed_by_age(store, clock):
    for number, kind in enumerate(("rule", "fact", "rule", "fact", "rule")):
        store.add_node(kind, {}, id=f"node-{number}", text=f"deploys run on day {number}", tags=["deploys"])
        clock.move(days=1)

    assert [("node-4", "node-2"), ("node-4", "node-0"), ("node-3", "node-1"), ("node-2", "node-0")] == pairs(
        store.contradictions()
    )


# ---------------------------------------------------------------- deciding


def test_keeping_one_retracts_the_other_and_links_the_correction(disputed, clock):
    before = disputed.as_of()
    (found,) = disputed.contradictions()
    clock.set("2026-02-02")
    done = disputed.resolve(found, keep="tuesday", reason="asked the team")

    assert (True, "tuesday", found.link.id) == (done.settled, done.decision, done.link.id)
    assert ("retracted", "stands") == (done.source.standing, done.target.standing)
    assert {"by": "ops", "decision": "tuesday"} == done.link.metadata
    assert ("one pipeline", 4, "user") == (done.link.reason, done.link.strength, done.link.created_by)
    assert [("corrected", "asked the team")] == [
        (step.how, step.why) for step in disputed.what_superseded("friday").chain
    ]
    assert ["tuesday"] == [thing.id for thing in disputed.what_superseded("friday").current]
    assert [] == disputed.contradictions()
    assert [done] == disputed.contradictions(settled=True)
    assert [found] == before.contradictions()


def test_it_is_one_transaction_with_its_reason(days):
    before = days.stats()["transactions"]
    (found,) = days.contradictions()
    done = days.resolve(found, keep="friday", reason="measured")

    assert 1 == days.stats()["transactions"] - before
    changes = [(change.verb, change.subject, change.reason) for change in days.changes() if change.reason]
    assert {("resolve", done.link.id, "measured"), ("retract", "tuesday", "measured")} <= set(changes)
    assert "tuesday" not in [node.id for node in days.nodes()]


def test_keeping_both_lets_them_stand_side_by_side(days):
    (found,) = days.contradictions()
    done = days.resolve(found, keep="both", reason="two pipelines")

    assert (True, "both", {"decision": "both"}) == (done.settled, done.decision, done.link.metadata)
    assert ["friday", "tuesday"] == [node.id for node in days.nodes()]
    assert [] == days.contradictions()
    assert [("tuesday", "friday")] == pairs(days.contradictions(settled=True))


def test_a_decision_on_a_candidate_holds_for_all_the_time_both_held(days):
    (found,) = days.contradictions()
    days.resolve(found, keep="both", reason="two pipelines")

    assert [] == days.as_of(valid="2026-01-02").contradictions()
    assert [("tuesday", "friday")] == pairs(days.as_of(valid="2026-01-02", tx="2026-01-31").contradictions())


def test_a_decision_on_a_candidate_leaves_what_was_said_at_another_time(days):
    days.link(
        "tuesday",
        "contradicts",
        "friday",
        valid_from="2026-01-05",
        valid_to="2026-01-08",
        reason="for a while",
    )
    days.link("tuesday", "contradicts", "friday", valid_from="2026-03-01", reason="later again")
    (found,) = days.contradictions()
    done = days.resolve(found, keep="both", reason="two pipelines")

    assert ("2026-01-08", "2026-03-01") == (str(done.link.valid_from.date()), str(done.link.valid_to.date()))
    assert ["for a while"] == [each.link.reason for each in days.as_of(valid="2026-01-06").contradictions()]


def test_described_anew_after_a_decision_they_stay_decided(days, clock):
    days.resolve(*days.contradictions(), keep="both", reason="two pipelines")
    clock.move(days=1)
    days.revise("tuesday", {}, text="deploys run on Monday")

    assert [] == days.contradictions()


def test_events_can_be_decided_between_too(store):
    for name in ("up", "down"):
        store.record_event("note", name, id=f"event-{name}")
    store.link("event-up", "contradicts", "event-down")
    done = store.resolve(*store.contradictions(), keep="event-up", reason="seen")

    assert ("stands", "retracted") == (done.source.standing, done.target.standing)


def test_a_correction_settles_it_by_itself(disputed):
    disputed.link("tuesday", "corrects", "friday", reason="asked", valid_from="2026-01-01")

    assert [] == disputed.contradictions()
    assert "retracted" == disputed.inspect("friday").node.standing


def test_only_one_of_the_two_can_be_kept(days):
    (found,) = days.contradictions()
    for keep in ("neither", "monday", "friday-v1", ""):
        with pytest.raises(InvalidError, match="'tuesday', 'friday' or 'both'"):
            days.resolve(found, keep=keep, reason="so")
    with pytest.raises(InvalidError, match="reason"):
        days.resolve(found, keep="both", reason=" ")
    with pytest.raises(InvalidError, match="no contradiction"):
        days.resolve("friday", keep="both", reason="so")
    assert [found] == days.contradictions()


def test_what_is_decided_is_not_decided_again(disputed):
    (found,) = disputed.contradictions()
    disputed.resolve(found, keep="both", reason="two pipelines")
    for again in (found, *disputed.contradictions(settled=True)):
        with pytest.raises(ConflictError, match="decided already: 'both'"):
            disputed.resolve(again, keep="friday", reason="after all")


def test_a_contradiction_of_what_no_longer_stands_is_over(days):
    (found,) = days.contradictions()
    days.retract("friday", reason="wrong")
    with pytest.raises(ConflictError, match="'friday' is retracted"):
        days.resolve(found, keep="tuesday", reason="so")


def test_a_contradiction_that_was_taken_back_is_over(disputed):
    (found,) = disputed.contradictions()
    disputed.unlink(found.link.id)
    with pytest.raises(ConflictError, match="no longer says so"):
        disputed.resolve(found, keep="tuesday", reason="so")


def test_a_candidate_described_anew_since_has_to_be_read_again(days):
    (found,) = days.contradictions()
    days.revise("friday", {}, text="deploys run on Thursday")
    with pytest.raises(ConflictError, match="friday-v2"):
        days.resolve(found, keep="tuesday", reason="so")
    days.resolve(*days.contradictions(), keep="tuesday", reason="so")


def test_a_contradiction_of_another_store_is_refused(days, clock):
    (found,) = days.contradictions()
    with graphstore.open(":memory:", clock=clock) as other, pytest.raises(NotFoundError):
        other.resolve(found, keep="both", reason="so")


def test_a_decision_is_kept_on_disk(disk_store, clock):
    for text in ("deploys run on Friday", "deploys run on Tuesday"):
        disk_store.add_node("fact", {}, text=text, tags=["deploys"])
    done = disk_store.resolve(*disk_store.contradictions(), keep="both", reason="two pipelines")
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as again:
        assert [done] == again.contradictions(settled=True)
        assert again.verify().ok
