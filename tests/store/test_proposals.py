"""Links that an extractor proposes: what is decided about them, and the sweep that asks and writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import graphstore
from graphstore import InvalidError, links
from graphstore.cli.command_line import app
from graphstore.store.proposals import Proposal, propose
from graphstore.values.vocabulary import CREATORS, JOINED, KINDS, creator_of
from tests.conftest import day

pytestmark = pytest.mark.served

GOOD = Proposal("node-a", "caused_by", "node-b", reason="the log says so", basis="line 7", strength=4)
NAMES = ("node-a", "node-b", "node-c", "node-d", "node-e")


@pytest.fixture
def facts(store):
    """Five facts that have nothing to do with each other, and begin together."""
    with store.transaction():
        for name in NAMES:
            store.add_node("fact", {}, id=name, text=name.replace("-", "_"))
    return store


def whys(decision):
    return [refusal.why for refusal in decision.refused]


# ---------------------------------------------------------------- deciding


def test_a_good_proposal_is_admitted_and_nothing_is_written(facts):
    before = facts.stats()["transactions"]

    assert ((GOOD,), (), {}) == (
        propose(facts, [GOOD]).admitted,
        propose(facts, [GOOD]).refused,
        propose(facts, [GOOD]).counts,
    )
    assert before == facts.stats()["transactions"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"target": "nobody"}, "unknown id"),
        ({"target": None}, "unknown id"),
        ({"target": "node-a"}, "self"),
        ({"kind": "supersedes"}, "kind not allowed"),
        ({"kind": "transition"}, "kind not allowed"),
        ({"kind": "corrects"}, "kind not allowed"),
        ({"kind": "continuation"}, "kind not allowed"),
        ({"kind": "no_such_kind"}, "kind not allowed"),
        ({"kind": 5}, "kind not allowed"),
        ({"reason": "  "}, "blank reason"),
        ({"reason": None}, "blank reason"),
        ({"basis": ""}, "blank basis"),
        ({"strength": 2}, "too weak"),
        ({"strength": 2.5}, "too weak"),
        ({"strength": 2.99, "kind": "related_to"}, "too weak"),
        ({"strength": -5}, "strength out of range"),
        ({"strength": 0.9}, "strength out of range"),
        ({"strength": 5.1}, "strength out of range"),
        ({"strength": float("inf")}, "strength out of range"),
        ({"strength": float("nan")}, "strength is no number"),
        ({"strength": True}, "strength is no number"),
        ({"strength": "1"}, "strength is no number"),
        ({"strength": "high"}, "strength is no number"),
        ({"strength": [4]}, "strength is no number"),
        ({"confidence": 1.01}, "confidence out of range"),
        ({"confidence": -0.5}, "confidence out of range"),
        ({"confidence": float("inf")}, "confidence out of range"),
        ({"confidence": float("nan")}, "confidence is no number"),
        ({"confidence": True}, "confidence is no number"),
        ({"confidence": "1"}, "confidence is no number"),
        ({"confidence": None}, "confidence is no number"),
    ],
)
def test_what_is_refused_says_why(facts, change, why):
    bad = replace(GOOD, **change)
    decision = propose(facts, [bad])

    assert ((), [why], {why: 1}) == (decision.admitted, whys(decision), decision.counts)
    assert bad is decision.refused[0].proposal


def test_of_several_faults_the_first_in_order_is_told(facts):
    bad = Proposal("node-a", "supersedes", "node-a", reason="", basis="", strength=True, confidence=2)
    steps = [
        {"source": "nobody"},
        {},
        {"target": "node-b"},
        {"kind": "uses"},
        {"reason": "so"},
        {"basis": "so"},
        {"strength": 7},
        {"strength": 2},
        {"confidence": 0.5},
        {"strength": 3},
    ]
    seen = []
    bad = replace(bad, **steps[0])
    for step in ({}, {"source": "node-a"}, *steps[2:]):
        bad = replace(bad, **step)
        seen += whys(propose(facts, [bad])) or ["admitted"]

    assert [
        "unknown id",
        "self",
        "kind not allowed",
        "blank reason",
        "blank basis",
        "strength is no number",
        "strength out of range",
        "confidence out of range",
        "too weak",
        "admitted",
    ] == seen


@pytest.mark.parametrize(
    ("strength", "expected"),
    [(None, None), (3, 3), (3.4, 3), (3.5, 4), (4.5, 5), (5, 5)],
)
def test_strength_is_rounded_and_a_missing_one_counts_as_three(facts, strength, expected):
    (admitted,) = propose(facts, [replace(GOOD, strength=strength)]).admitted
    assert expected == admitted.strength


def test_a_confidence_is_kept_with_the_link_which_is_inferred(facts):
    (admitted,) = propose(facts, [replace(GOOD, confidence=0.8, metadata={"model": "m1"})]).admitted

    assert ("inferred", {"model": "m1", "confidence": 0.8}) == (admitted.confidence, admitted.metadata)


@pytest.mark.parametrize("kind", sorted(name for name, kind in KINDS.items() if kind.group == "factual"))
def test_every_factual_kind_below_three_is_refused(facts, kind):
    assert ["too weak"] == whys(propose(facts, [replace(GOOD, kind=kind, strength=2.9)]))
    assert [] == whys(propose(facts, [replace(GOOD, kind=kind, strength=3)]))


@given(st.one_of(st.none(), st.floats(), st.integers(), st.booleans(), st.text()))
def test_a_rounded_strength_can_be_written(strength):
    assert links.rounded(strength) in (None, 1, 2, 3, 4, 5)


def test_a_kind_is_read_by_any_of_its_names_and_an_id_is_whole(facts):
    (admitted,) = propose(facts, [replace(GOOD, kind="Causes", confidence="explicit")]).admitted
    assert ("node-b", "caused_by", "node-a", "inferred") == (
        admitted.source,
        admitted.kind,
        admitted.target,
        admitted.confidence,
    )
    facts.add_node("fact", {}, id="a-very-long-name")
    assert ["unknown id"] == whys(propose(facts, [replace(GOOD, target="a-very")]))


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {JOINED}))
@pytest.mark.parametrize("creator", [*CREATORS, "agent:claude", "Ana"])
def test_who_may_create_a_kind_binds_a_link_by_who_created_it(facts, kind, creator):
    allowed = creator_of(creator) in KINDS[kind].creators
    if allowed:
        assert creator == facts.link("node-a", kind, "node-b", created_by=creator).created_by
        return
    before = facts.changes()
    with pytest.raises(InvalidError, match=f"{creator!r} may not create a link of kind {kind!r}. Allowed: "):
        facts.link("node-a", kind, "node-b", created_by=creator)
    assert before == facts.changes()


@pytest.mark.parametrize(
    ("source", "author", "maker"),
    [
        (None, None, "user"),
        ("user:ana", None, "user"),
        ("agent:claude", None, "agent:claude"),
        ("agent:claude", "agent:codex", "agent:claude"),
        ("wiki", "agent:codex", "agent:codex"),
        (None, "ana", "user"),
    ],
)
def test_the_links_that_a_statement_of_an_agent_names_bear_the_agent(facts, source, author, maker):
    with facts.transaction(author=author):
        facts.add_node("fact", {}, id="new", supersedes="node-a", derived_from="node-b", source=source)
    with facts.transaction(author=author):
        facts.supersede("node-c", by="new")

    assert [maker] * 2 == [
        facts.links_from("new", kind)[0].created_by for kind in ("supersedes", "derived_from")
    ]
    by_author = author if author and author.startswith("agent:") else "user"
    assert by_author == facts.backlinks_to("node-c", "supersedes")[0].created_by


def test_a_supersession_is_created_by_who_may(facts):
    assert "agent:7" == facts.supersede("node-a", by="node-b", created_by="agent:7")[0].created_by
    with pytest.raises(InvalidError, match="'extractor' may not create"):
        facts.supersede("node-c", by="node-d", created_by="extractor")


def test_anybody_may_create_a_kind_of_the_stores_own(facts):
    facts.define_kind("mentions")
    for creator, target in zip(("daemon", "boundary", "store"), NAMES[1:], strict=False):
        assert creator == facts.link("node-a", "mentions", target, created_by=creator).created_by


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_only_kinds_that_an_extractor_may_create_are_admitted(facts, kind):
    assert ("extractor" in KINDS[kind].creators) == bool(propose(facts, [replace(GOOD, kind=kind)]).admitted)


def test_a_kind_of_the_stores_own_is_allowed_however_weak(facts):
    facts.define_kind("mentions")
    assert 1 == propose(facts, [replace(GOOD, kind="mentions", strength=1)]).admitted[0].strength


@pytest.mark.parametrize("said", [("node-a", "caused_by", "node-b"), ("node-b", "uses", "node-a")])
def test_a_pair_that_is_linked_already_is_left_alone(facts, said):
    facts.link(*said)
    assert ["already linked"] == whys(propose(facts, [GOOD]))


def test_a_link_that_is_over_does_not_count(facts, clock):
    link = facts.link("node-a", "uses", "node-b")
    clock.move(days=1)
    facts.unlink(link.id)

    assert (GOOD,) == propose(facts, [GOOD]).admitted


def test_a_pair_keeps_its_first_proposal_that_is_good(facts):
    weak, other = replace(GOOD, strength=1), Proposal("node-b", "uses", "node-a", "so", "so")
    decision = propose(facts, [weak, GOOD, other])

    assert ((GOOD,), ["too weak", "pair proposed before"]) == (decision.admitted, whys(decision))


def test_a_thing_has_two_links_of_the_same_topic_at_most_and_these_are_weak(facts):
    facts.link("node-c", "same_topic", "node-a", strength=2)
    topics = [Proposal("node-a", "same_topic", name, "both on caches", "tags", strength) for name, strength in (("node-b", 5), ("node-d", 1), ("node-e", None))]  # fmt: skip
    decision = propose(facts, topics)

    assert [("node-b", 2)] == [(one.target, one.strength) for one in decision.admitted]
    assert {"too many of the same topic": 2} == decision.counts
    assert [2] == [one.strength for one in propose(facts, [replace(topics[2], source="node-d")]).admitted]


def test_proposals_are_decided_at_the_coordinate_of_the_view(facts, clock):
    early = facts.as_of(tx="2026-01-31")
    assert ["unknown id"] == whys(propose(early, [GOOD]))


def test_what_is_no_proposal_is_an_error(facts):
    with pytest.raises(InvalidError, match="no proposal"):
        propose(facts, [{"source": "node-a"}])


# ---------------------------------------------------------------- sweeping


class Rules:
    """An extractor that proposes what it was given, and remembers what it was asked."""

    def __init__(self, *proposals):
        self.proposals = proposals
        self.asked = []

    def __call__(self, view, ids):
        self.asked.append(ids)
        return iter(self.proposals)


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_a_sweep_writes_what_is_admitted_as_inferred_links_of_the_extractor(facts, clock):
    clock.set("2026-02-02")
    before = facts.stats()["transactions"]
    swept = links.sweep(facts, Rules(replace(GOOD, metadata={"model": "m1"}), replace(GOOD, target="nobody")))

    (link,) = swept.admitted
    assert ("node-a caused_by node-b (the log says so)", 4, "inferred", "extractor") == (
        str(link),
        link.strength,
        link.confidence,
        link.created_by,
    )
    assert {"basis": "line 7", "model": "m1"} == link.metadata
    assert [link] == facts.links_from("node-a")
    assert (5, {"unknown id": 1}, None) == (swept.asked, swept.counts, swept.since)
    assert 1 == facts.stats()["transactions"] - before


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_the_extractor_is_asked_about_what_was_told_since_the_last_sweep(facts, clock):
    rules = Rules()
    facts.retract("node-e", reason="wrong")
    facts.sweep(rules)
    facts.sweep(rules)
    clock.move(days=1)
    facts.revise("node-b", {}, text="better")
    facts.record_event("error", "it broke", id="event-1")
    facts.link("node-c", "uses", "node-d")
    swept = facts.sweep(rules)

    assert [["node-a", "node-b", "node-c", "node-d"], ["node-b", "event-1"]] == rules.asked
    assert (2, ()) == (swept.asked, swept.admitted)


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_since_asks_again(facts, clock):
    rules = Rules()
    facts.sweep(rules)
    facts.sweep(rules, since="2026-01-01")

    assert [list(NAMES), list(NAMES)] == rules.asked


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_an_extractor_that_raises_leaves_nothing_and_is_asked_again(facts):
    def broken(view, ids):
        yield GOOD
        raise RuntimeError("no answer")

    before = facts.stats()
    with pytest.raises(RuntimeError, match="no answer"):
        facts.sweep(broken)
    assert before == facts.stats()
    assert [GOOD.target] == [link.target for link in facts.sweep(Rules(GOOD)).admitted]


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_what_the_store_will_not_have_is_refused_with_its_words(facts):
    facts.add_node("fact", {}, id="node-f", valid_from="2027-01-01")
    late = replace(GOOD, target="node-f")
    swept = facts.sweep(Rules(late, replace(GOOD, target="node-c")))

    assert ["node-c"] == [link.target for link in swept.admitted]
    assert [(late, "refused by the store")] == [(refusal.proposal, refusal.why) for refusal in swept.refused]
    assert "a cause may not start after its effect" in swept.refused[0].detail


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_a_sweep_is_remembered_across_openings(disk_store, clock):
    disk_store.add_node("fact", {}, id="node-a")
    rules = Rules()
    until = disk_store.sweep(rules).until
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as again:
        again.add_node("fact", {}, id="node-b")
        assert until == again.sweep(rules).since
        assert again.verify().ok
    assert [["node-a"], ["node-b"]] == rules.asked


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_what_is_told_while_the_extractor_thinks_is_asked_about_next_time(facts):
    asked = []

    def slow(view, ids):
        asked.append(ids)
        if len(asked) == 1:
            facts.add_node("fact", {}, id="meanwhile")
        return []

    facts.sweep(slow)
    facts.sweep(slow)
    assert [list(NAMES), ["meanwhile"]] == asked


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_without_an_extractor_only_the_upkeep_is_done(store, clock):
    store.record_event("error", "it broke", id="event-1", occurred_at="2025-12-01")
    store.add_node("fact", {}, text="deploys run on Friday", tags=["deploys"])
    store.add_node("fact", {}, text="deploys run on Tuesday", tags=["deploys"])
    store.set_retention(days=30)
    rules = Rules()
    swept = store.sweep()

    assert (("event-1",), 1, None, 0) == (swept.evicted, swept.contradictions, swept.until, swept.asked)
    store.sweep(rules)
    assert 2 == len(rules.asked[0])


@pytest.mark.in_process("no extractor is sent, whatever it is")
def test_an_extractor_must_be_a_function(facts):
    with pytest.raises(InvalidError, match="cannot be called"):
        facts.sweep("module:function")


# ---------------------------------------------------------------- command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A store with two facts on the day of deploys, in the working folder, with a module of rules beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rules.py").write_text(
        "from graphstore.store.links import Proposal\n\ndef pairs(view, ids):\n"
        "    yield Proposal(ids[0], 'uses', ids[1], 'both are on deploys', 'the word')\n"
        "    yield Proposal(ids[0], 'uses', 'nobody', 'so', 'so')\n"
    )
    with graphstore.open(tmp_path / "team.gs") as store:
        for day, since in (("Friday", "2026-01-01"), ("Tuesday", "2026-01-02")):
            store.add_node(
                "fact", {}, id=day.lower(), text=f"deploys run on {day}", tags=["deploys"], valid_from=since
            )
    return tmp_path


def run(*words, code=0):
    done = CliRunner().invoke(app, list(words))
    assert code == done.exit_code, done.output
    return done.output


def test_review_tells_what_contradicts_and_resolve_decides(folder):
    assert "topic deploys" in run("review", "team.gs")
    assert "friday is kept" in run(
        "resolve", "team.gs", "tuesday", "friday", "--keep", "friday", "--reason", "asked"
    )
    assert "tuesday" not in run("review", "team.gs")
    assert "asked" in run("review", "team.gs", "--settled")
    assert '"decision": "friday"' in run("review", "team.gs", "--settled", "--json")
    assert "retracted" in run(
        "resolve", "team.gs", "tuesday", "friday", "--keep", "both", "--reason", "so", code=1
    )


def test_only_what_contradicts_can_be_resolved(folder):
    with graphstore.open("team.gs") as store:
        store.add_node("fact", {}, id="cat", text="the cat sleeps")
    assert "do not contradict each other" in run(
        "resolve", "team.gs", "cat", "friday", "--keep", "cat", "--reason", "so", code=1
    )


def test_sweep_asks_the_function_named(folder):
    told = run("sweep", "team.gs", "--extractor", "my_rules:pairs")
    assert "1 links written, 1 proposals refused" in told
    assert "both are on deploys" in told
    assert '"asked": 0' in run("sweep", "team.gs", "--extractor", "my_rules:pairs", "--json")
    assert "no extractor was asked" in run("sweep", "team.gs")


@pytest.mark.parametrize(
    "name", ["no_such_module:f", "my_rules:no_such", "my_rules", ":", "my_rules:Proposal.kind.x"]
)
def test_a_function_that_is_not_there_is_wrong_usage(folder, name):
    assert "module:function" in run("sweep", "team.gs", "--extractor", name, code=2)


def test_a_named_contradiction_is_read_at_its_coordinate(store, clock):
    for name, text in (("friday", "deploys run on Friday"), ("tuesday", "deploys run on Tuesday")):
        store.add_node("fact", {}, id=name, text=text, tags=["deploys"])
        clock.move(days=1)
    (found,) = store.contradictions()

    assert found == store.contradiction("friday", "tuesday") == store.contradiction("tuesday", "friday")
    link = store.link("friday", "contradicts", "tuesday")
    assert link == store.contradiction("tuesday", "friday").link
    with pytest.raises(graphstore.NotFoundError, match="no contradicts link"):
        store.as_of(valid=day("2026-02-01")).contradiction("friday", "tuesday")
