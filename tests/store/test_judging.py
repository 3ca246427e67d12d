"""A judge: what it is asked about, what its verdicts become, and what is refused of it."""

from __future__ import annotations

import pytest

import graphstore
from graphstore import InvalidError, links
from graphstore.store.links import Pair, Verdict

pytestmark = pytest.mark.in_process("gives functions of its own, which cannot be sent")

BECAUSE = "one team, one way to log in"


class Asked:
    """A judge that remembers its pairs, and convicts those that it was told of."""

    def __init__(self, *guilty):
        self.guilty = {frozenset(each) for each in guilty}
        self.asked = []

    def __call__(self, pairs):
        self.asked.append([(pair.newer.id, pair.older.id, pair.about) for pair in pairs])
        return (
            Verdict(True, BECAUSE)
            if frozenset((pair.newer.id, pair.older.id)) in self.guilty
            else Verdict(False)
            for pair in pairs
        )


@pytest.fixture
def logins(store, clock):
    """Two facts on logins that no rule knows to be of the same, one tagged pair that the rules suspect, and one of something else."""
    clock.set("2026-01-01")
    store.add_node("fact", {"says": "people log in with passwords"}, id="passwords")
    clock.set("2026-01-02")
    store.add_node("decision", {"says": "people log in by their phones"}, id="phones")
    store.add_node("fact", {"says": "tokens live 5 minutes"}, id="five", tags=["ttl"])
    clock.set("2026-01-03")
    store.add_node("fact", {"says": "tokens live 9 minutes"}, id="nine", tags=["ttl"])
    store.add_node("fact", {"says": "lunch was late"}, id="lunch")
    store.add_node("fact", {"says": "people log in with passwords"}, id="elsewhere", scope="elsewhere")
    store.record_event("note", "people log in")
    clock.set("2026-01-10")
    return store


def test_a_verdict_becomes_an_inferred_link_with_its_reason(logins):
    before = logins.stats()["transactions"]
    swept = logins.sweep(judge=Asked(("phones", "passwords"), ("nine", "five")))

    assert (2, 2, None, 0) == (swept.judged, len(swept.contradicting), swept.until, swept.asked)
    assert 1 == logins.stats()["transactions"] - before
    link = next(each for each in swept.contradicting if each.source == "phones")
    assert ("phones contradicts passwords (one team, one way to log in)", "inferred", "judge", {}) == (
        str(link), link.confidence, link.created_by, link.metadata,
    )  # fmt: skip
    assert logins.node("phones").valid_from == link.valid_from
    assert {"about": "topic ttl"} == next(each for each in swept.contradicting if each != link).metadata
    assert {"phones", "nine"} == {each.source.id for each in logins.contradictions(candidates=False)}
    assert [] == logins.as_of(valid="2026-01-01T12:00Z").contradictions()


def test_a_judge_is_asked_about_what_is_suspected_and_what_is_alike_in_words(logins):
    judge = Asked()
    logins.sweep(judge=judge)

    assert [{("phones", "passwords", None), ("nine", "five", "topic ttl")}] == list(map(set, judge.asked))
    assert ["topic ttl"] == [each.about for each in logins.contradictions()]  # a no decides nothing


def test_it_is_asked_about_what_is_new_alone(logins, clock):
    judge = Asked()
    logins.sweep(judge=judge)
    logins.sweep(judge=judge)
    clock.move(days=1)
    logins.add_node("fact", {"says": "people log in with keys"}, id="keys")
    before = logins.stats()["transactions"]
    logins.sweep(judge=judge)
    logins.sweep(judge=judge)
    assert 1 == logins.stats()["transactions"] - before
    assert [2, 2] == [len(each) for each in judge.asked]
    assert {"keys"} == {newer for newer, _, _ in judge.asked[1]}
    logins.sweep(judge=judge, since="2026-01-01")
    assert 4 == len(judge.asked[2])


def test_what_is_linked_is_not_judged(logins, clock):
    logins.supersede("passwords", by="phones")
    logins.link("five", "contradicts", "nine")
    judge = Asked()

    assert 0 == logins.sweep(judge=judge).judged
    assert [] == judge.asked


def test_a_thing_has_few_pairs_however_many_are_alike(store):
    for number in range(30):
        store.add_node("fact", {"says": f"people log in at door {number}"}, id=f"n{number:02}")
    store.sweep(judge=Asked())
    store.add_node("fact", {"says": "people log in at every door"}, id="new")
    judge = Asked()
    store.sweep(judge=judge)

    assert 10 == len(judge.asked[0])


def test_extractor_and_judge_write_together(logins):
    def extractor(view, ids):
        return [links.Proposal("five", "uses", "lunch", "so it is", "line 7", 4)]

    before = logins.stats()["transactions"]
    swept = links.sweep(logins, extractor, judge=Asked(("phones", "passwords")))

    assert (["uses"], ["contradicts"]) == (
        [link.kind for link in swept.admitted],
        [link.kind for link in swept.contradicting],
    )
    assert 1 == logins.stats()["transactions"] - before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda pairs: [], "gave 0 verdicts on 2 pairs"),
        (lambda pairs: [Verdict(False)] * 3, "gave 3 verdicts on 2 pairs"),
        (lambda pairs: None, "gave None"),
        (lambda pairs: "no", "gave 'no'"),
        (lambda pairs: Verdict(False), "gave Verdict"),
        (lambda pairs: [Verdict(True, BECAUSE), True], "verdict 2 of the judge is True, no Verdict"),
        (lambda pairs: [{"contradicts": False}] * 2, "verdict 1 of the judge is {"),
        (lambda pairs: [Verdict("yes", BECAUSE)] * 2, "contradicts 'yes'"),
        (lambda pairs: [Verdict(1, BECAUSE)] * 2, "contradicts 1"),
        (lambda pairs: [Verdict(True)] * 2, "reason ''"),
        (lambda pairs: [Verdict(True, " ")] * 2, "reason ' '"),
        (lambda pairs: [Verdict(False, None)] * 2, "reason None"),
    ],
)
def test_nonsense_is_refused_with_nothing_written(logins, given, message):
    before, asked = logins.changes(), []

    def extractor(view, ids):
        asked.append(ids)
        return [links.Proposal("five", "uses", "lunch", "so it is", "line 7", 4)]

    for _ in range(2):
        with pytest.raises(InvalidError, match=message):
            logins.sweep(extractor, judge=given)
    assert before == logins.changes()
    assert asked[0] == asked[1]


def test_a_judge_that_raises_leaves_nothing_and_is_asked_again(logins):
    def broken(pairs):
        yield Verdict(False)
        raise RuntimeError("no answer")

    before = logins.changes()
    with pytest.raises(RuntimeError, match="no answer"):
        logins.sweep(judge=broken)
    assert before == logins.changes()
    assert 2 == logins.sweep(judge=Asked()).judged


def test_a_judge_must_be_a_function(logins):
    with pytest.raises(InvalidError, match="judge 'module:function' cannot be called"):
        logins.sweep(judge="module:function")


def test_what_changed_while_it_was_judged_is_refused_and_judged_again(logins):
    def slow(pairs):
        if len(logins.history("passwords")) == 1 and logins.node("passwords").number == 1:
            logins.revise("passwords", {"says": "people log in with long passwords"})
        return [Verdict(pair.newer.id == "phones", BECAUSE) for pair in pairs]

    swept = logins.sweep(judge=slow)
    assert ((), {"refused by the store": 1}) == (swept.contradicting, swept.counts)
    assert "'passwords' changed while the judge was asked" in swept.refused[0].detail
    assert ["phones"] == [link.source for link in logins.sweep(judge=slow).contradicting]


def test_verdicts_are_kept(disk_store, clock):
    for name, text in (("a", "people log in with passwords"), ("b", "people log in by phone")):
        disk_store.add_node("fact", {"says": text}, id=name)
        clock.move(days=1)
    judge = Asked(("a", "b"))
    disk_store.sweep(judge=judge)
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as again:
        assert 0 == again.sweep(judge=judge).judged
        assert [BECAUSE] == [each.link.reason for each in again.contradictions()]
        assert again.verify().ok
    assert 1 == len(judge.asked)


def test_a_branch_is_judged_by_itself(logins):
    branch = logins.branch("try")
    branch.sweep(judge=Asked(("phones", "passwords")))

    assert ["phones"] == [each.source.id for each in branch.contradictions(candidates=False)]
    assert [] == logins.contradictions(candidates=False)


def test_pairs_are_values(logins):
    pair = Pair(logins.node("phones"), logins.node("passwords"))
    assert (None, "phones") == (pair.about, pair.newer.id)
