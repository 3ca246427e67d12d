"""What a write is warned of: what stands already and says the same, or another value for the same subject."""

from __future__ import annotations

import time

import pytest

import graphstore
from graphstore import InvalidError, NotFoundError
from graphstore.memory.memory import Memory
from graphstore.topics import memorize

pytestmark = pytest.mark.served


def add(store, says, id=None, kind="fact", **more):
    return store.add_node(kind, {"says": says}, id=id, warn=True, **more)


def contrary(warned):
    return [each.id for each in warned.maybe_contrary]


def similar(warned):
    return [each.id for each in warned.similar]


@pytest.fixture
def kept(store, clock):
    """A store in which the logs are kept for 90 days since January."""
    clock.set("2026-01-01")
    with store.transaction(author="ana"):
        store.add_node("fact", {"says": "Log files are kept for 90 days"}, id="ninety")
    clock.set("2026-02-01")
    return store


# ---------------------------------------------------------------- what is warned of


def test_another_value_is_warned_of_without_a_tag(kept):
    node = add(kept, "Log files are kept for 30 days", id="thirty")

    (found,) = node.maybe_contrary
    assert ("thirty", "thirty", "ninety", "ana") == (node.id, found.of, found.id, found.who)
    assert (("30 days", "90 days"), "Log files") == (found.values, found.about)
    assert () == node.similar
    assert "stands" == kept.node("thirty").standing  # it is written in any case


def test_the_same_again_says_who_recorded_it_and_when(kept):
    (found,) = add(kept, "log files are kept for 90 days.").similar

    assert ("ninety", "ana", "2026-01-01") == (found.id, found.who, f"{found.recorded_at:%F}")
    assert not found.unsure


def test_a_statement_that_is_confirmed_is_similar_to_itself(store, clock):
    store.add_node("fact", {"says": "deploys on Friday"}, key="day", id="fri")
    clock.move(days=1)
    node = add(store, "deploys on Friday", key="day")

    assert ("fri", ["fri"], ()) == (node.id, similar(node), node.similar[0].calls)


def test_without_warn_the_node_alone_is_returned(kept):
    node = kept.add_node("fact", {"says": "Log files are kept for 30 days"})

    assert type(node) is graphstore.Node
    with pytest.raises(InvalidError, match="warn"):
        kept.add_node("fact", {}, warn="yes")


def test_fields_and_tags_are_compared_too(store, clock):
    store.add_node("fact", {"subject": "api", "port": 80}, id="eighty")
    clock.move(days=1)
    node = store.add_node("fact", {"subject": "api", "port": 81}, warn=True)

    (found,) = node.maybe_contrary
    assert ("eighty", "port of api", False) == (found.id, found.about, found.unsure)


def test_units_and_negations_are_understood(store):
    for says in ("The film lasts 2 hours", "The museum is open on Sundays"):
        store.add_node("fact", {"says": says}, id=says.split()[1])

    assert (["film"], []) == (similar(node := add(store, "The film lasts 120 minutes")), contrary(node))
    assert ["museum"] == contrary(add(store, "The museum is closed on Sundays"))
    assert [] == contrary(add(store, "The film is open on Tuesdays"))


# ---------------------------------------------------------------- what is not


@pytest.mark.parametrize("verb", ["supersedes", "corrects", "derived_from"])
def test_what_it_replaces_corrects_or_rests_on_is_not_warned_of(kept, verb):
    assert [] == contrary(add(kept, "Log files are kept for 30 days", **{verb: ["ninety"]}))


def test_what_no_longer_stands_is_not_warned_of(kept, clock):
    add(kept, "Log files are kept for 30 days", id="thirty", supersedes=["ninety"])
    clock.move(days=1)
    assert ["thirty"] == contrary(add(kept, "Log files are kept for 7 days", id="seven"))

    kept.retract("seven", reason="a slip")
    clock.move(days=1)
    assert ["thirty"] == contrary(add(kept, "Log files are kept for 5 days"))


def test_periods_that_do_not_overlap_are_no_contradiction(kept):
    past = {"valid_from": "2020-01-01", "valid_to": "2021-01-01"}
    assert [] == contrary(add(kept, "Log files are kept for 30 days", id="then", **past))
    assert ["then"] == contrary(add(kept, "Log files are kept for 20 days", id="too", **past))
    assert ["ninety"] == contrary(add(kept, "Log files are kept for 10 days", valid_from="2019-01-01"))[:1]


def test_other_scopes_and_what_is_wanted_are_not_compared(kept):
    assert [] == contrary(add(kept, "Log files are kept for 30 days", scope="team/a"))
    assert [] == contrary(add(kept, "Log files are kept for 30 days", kind="proposal"))


def test_what_was_decided_is_not_warned_of_again(kept, clock):
    add(kept, "Log files are kept for 30 days", id="thirty")
    clock.move(days=1)
    kept.resolve(kept.contradiction("thirty", "ninety"), keep="both", reason="two sorts of logs")

    (found,) = kept.warnings_of("thirty")
    assert ((), ()) == (found.similar, found.maybe_contrary)


# ---------------------------------------------------------------- what decides


def test_each_warning_has_the_calls_that_decide(kept, clock):
    node = add(kept, "Log files are kept for 30 days", id="thirty")

    replace, correct, both = node.maybe_contrary[0].calls
    assert "supersede(old='ninety', by='thirty', reason='…')" == replace
    for call in (both, correct):
        clock.move(days=1)
        branch = kept.branch(f"by {call[:4]}")
        eval(f"branch.{call.replace('contradiction(', 'branch.contradiction(')}", {"branch": branch})
        assert () == branch.warnings_of("thirty")[0].maybe_contrary
    kept.supersede(old="ninety", by="thirty", reason="less space")
    assert () == kept.warnings_of("thirty")[0].maybe_contrary


def test_a_duplicate_may_be_taken_back_by_its_call(kept, clock):
    node = add(kept, "log files are kept for 90 days!", id="again")
    clock.move(days=1)
    eval(f"store.{node.similar[0].calls[0]}", {"store": kept})

    assert ["ninety"] == [node.id for node in kept.nodes()]


def test_two_that_only_seem_to_disagree_can_be_asked_for_and_are_no_listed_candidates(kept):
    add(kept, "Log files are kept for 30 days", id="thirty")

    found = kept.contradiction("ninety", "thirty")
    assert ("thirty", "ninety", None) == (found.source.id, found.target.id, found.link)
    assert [] == kept.contradictions()
    kept.add_node("fact", {"says": "The cat sleeps"}, id="cat")
    with pytest.raises(NotFoundError, match="no contradicts link"):
        kept.contradiction("ninety", "cat")


# ---------------------------------------------------------------- many, and other ways to write


def test_in_a_transaction_what_it_wrote_before_counts(kept):
    with kept.transaction():
        one = add(kept, "The bus leaves at 8:10", id="ten")
        other = add(kept, "The bus leaves at 8:25", id="twenty")
    assert ([], ["ten"]) == (contrary(one), contrary(other))


def test_several_things_are_asked_about_at_once(kept):
    for id, says in (
        ("a", "Log files are kept for 30 days"),
        ("b", "The cat sleeps"),
        ("c", "the cat sleeps"),
    ):
        kept.add_node("fact", {"says": says}, id=id)

    found = kept.warnings_of(["a", "b", "c"])
    assert ["a", "b", "c"] == [each.id for each in found]
    assert [["ninety"], [], []] == [contrary(each) for each in found]
    assert [[], ["c"], ["b"]] == [similar(each) for each in found]
    assert [] == kept.warnings_of([])
    with pytest.raises(NotFoundError, match="nobody"):
        kept.warnings_of("nobody")


def test_memorize_returns_what_its_messages_repeat_or_contradict(kept):
    done = memorize(
        kept, [("user", "Log files are kept for 30 days"), ("user", "log files are kept for 90 days")]
    )

    first, second = (node.id for node in done.nodes)
    assert {(first, "ninety"), (first, second), (second, first)} == {
        (each.of, each.id) for each in done.maybe_contrary
    }
    assert [(second, "ninety")] == [(each.of, each.id) for each in done.similar]


def test_chunks_of_memory_are_compared_within_their_layer_and_user(store):
    memory = Memory(store)
    memory.remember("Anna prefers tea in the morning", layer="er1", user="anna")
    said = memory.remember("Anna prefers coffee in the morning", layer="er1", user="anna", warn=True)
    other = memory.remember("Anna prefers water in the morning", layer="er1", user="ben", warn=True)

    assert (1, 0) == (len(said.maybe_contrary), len(other.maybe_contrary))


def _near(texts):
    """An embedder to which all texts that name a cat mean nearly the same."""
    return [[1.0, len(text) / 1000] if "cat" in text else [0.0, 1.0] for text in texts]


def _failing(texts):
    raise OSError("no network")


@pytest.mark.parametrize(
    ("embedder", "expected"), [(None, []), (_near, ["milk"]), (_failing, []), (lambda texts: [["x"]], [])]
)
def test_an_embedder_finds_more_and_one_that_fails_is_no_obstacle(embedder, expected):
    with graphstore.open(":memory:", embedder=embedder) as store:
        store.add_node("fact", {"says": "The cat eats 3 meals"}, id="milk")
        store.add_node("fact", {"says": "Invoices are sent by mail"}, id="mail")
        node = add(
            store, "The cat of the lighthouse keeper near the harbour with white paws eats 5 meals", id="cat"
        )

        assert (expected, "stands") == (contrary(node), store.node("cat").standing)
        if expected:
            assert "milk" == store.contradiction("milk", "cat").target.id


@pytest.mark.rest
def test_a_warned_write_of_a_large_store_costs_little_more():
    with graphstore.open(":memory:") as store:
        says = (f"The limit of service {n % 977} in region {n} is {n} requests" for n in range(20_000))
        versions = [{"node_id": f"n{n}", "content": {"says": each}} for n, each in enumerate(says)]
        store.bulk_load(
            nodes=[{"id": each["node_id"], "kind": "fact"} for each in versions], versions=versions
        )
        store.add_node("fact", {"says": "The limit of the gateway is 5 requests"}, id="five", warn=True)
        spent = {}
        for warn in (False, True):
            began = time.process_time()
            for n in range(20):
                node = store.add_node(
                    "fact", {"says": f"The limit of the gateway is {n + 6} requests"}, warn=warn
                )
            spent[warn] = (time.process_time() - began) / 20
    assert 10 == len(contrary(node))
    assert 0.1 > spent[True] - spent[False]
