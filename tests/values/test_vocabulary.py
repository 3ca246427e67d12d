"""The vocabulary of link kinds: every name leads to one kind, read as a sentence from either end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.errors import InvalidError
from graphstore.values.vocabulary import ALIASES, KINDS, Vocabulary, new_kind, strength_of

# The kinds the five sources name, each with the way it reads from the other end.
PAIRS = [
    ("supersedes", "superseded_by"),
    ("transition", "transitioned_to"),
    ("corrects", "corrected_by"),
    ("derived_from", "source_of"),
    ("caused_by", "causes"),
    ("resolved_by", "resolves"),
    ("part_of", "has_part"),
    ("precedes", "follows"),
    ("enables", "enabled_by"),
    ("blocks", "blocked_by"),
    ("located_at", "location_of"),
    ("uses", "used_by"),
    ("works_on", "worked_on_by"),
    ("continuation", "continues"),
    ("fork", "forked_from"),
    ("resume", "resumes"),
    ("reference", "referenced_by"),
]
SYMMETRIC = [
    "contradicts", "related_to", "co_constrains", "contrasts_with", "same_topic", "semantic", "failure_pattern",
    "project_related", "technique_shared",
]  # fmt: skip


@pytest.fixture
def words() -> Vocabulary:
    return Vocabulary()


def said(words: Vocabulary, kind: str, confidence: str = "explicit") -> tuple[str, str, str, str]:
    found = words.sentence("a", kind, "b", confidence)
    return found.source, found.kind.name, found.target, found.confidence


@pytest.mark.parametrize("kind", KINDS)
def test_canonical_name_is_stored_as_said(words, kind):
    assert ("a", kind, "b", "explicit") == said(words, kind)


@pytest.mark.parametrize(("kind", "inverse"), PAIRS)
def test_inverse_name_turns_the_sentence_round(words, kind, inverse):
    assert ("b", kind, "a", "explicit") == said(words, inverse)
    assert kind == words.canonical(inverse)


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_symmetric_kind_has_one_name_for_both_ends(words, kind):
    assert KINDS[kind].symmetric
    assert kind == KINDS[kind].inverse
    assert ("a", kind, "b", "explicit") == said(words, kind)


@pytest.mark.parametrize("kind", ["enables", "blocks", "part_of", "uses", "caused_by", "supersedes"])
def test_directed_kind_is_not_symmetric(kind):
    assert not KINDS[kind].symmetric


@pytest.mark.parametrize("name", ["relates", "relates_to", "related_to", "RELATED_TO", " related_to "])
def test_names_of_relation_are_one_kind(words, name):
    assert words.canonical(name) == "related_to"


@pytest.mark.parametrize("kind", KINDS)
def test_possibly_means_inferred(words, kind):
    assert ("a", kind, "b", "inferred") == said(words, f"possibly_{kind}")


def test_possibly_and_inverse_go_together(words):
    assert said(words, "possibly_causes") == ("b", "caused_by", "a", "inferred")


def test_possibly_fixed_by_is_resolved_by(words):
    assert said(words, "possibly_fixed_by") == ("a", "resolved_by", "b", "inferred")
    assert said(words, "fixed_by") == ("a", "resolved_by", "b", "explicit")


def test_inferred_stays_inferred_however_it_is_said(words):
    assert said(words, "caused_by", "inferred") == ("a", "caused_by", "b", "inferred")
    assert said(words, "possibly_caused_by", "inferred") == ("a", "caused_by", "b", "inferred")


def test_upper_case_of_cypher_is_understood(words):
    assert said(words, "CAUSES") == ("b", "caused_by", "a", "explicit")


@pytest.mark.parametrize(
    "wrong", ["cause", "", "possibly_", "possibly_possibly_causes", "supersede", None, 7, "caused by"]
)
def test_unknown_kind_is_refused_with_the_choice(words, wrong):
    with pytest.raises(InvalidError, match=r"unknown link kind.*Valid: .*caused_by"):
        words.sentence("a", wrong, "b", "explicit")


def test_near_miss_is_guessed(words):
    with pytest.raises(InvalidError, match="Did you mean 'caused_by'"):
        words.canonical("cause_by")


@pytest.mark.parametrize("wrong", ["sure", "", None, "EXPLICIT"])
def test_unknown_confidence_is_refused(words, wrong):
    with pytest.raises(InvalidError, match="confidence"):
        words.sentence("a", "uses", "b", wrong)


def test_no_name_leads_to_two_kinds():
    inverses = [kind.inverse for kind in KINDS.values() if not kind.symmetric]
    names = [*KINDS, *inverses, *ALIASES]

    assert len(names) == len(set(names))


def test_supersedes_corrects_continuation_and_joins_are_the_acyclic_kinds():
    assert {"supersedes", "corrects", "continuation", "joined_from"} == {
        kind.name for kind in KINDS.values() if kind.acyclic
    }


def test_structural_kinds_run_from_earlier_to_later():
    structural = {kind.name for kind in KINDS.values() if kind.group == "structural"}

    assert structural == {"continuation", "fork", "branch", "tree_jump", "resume", "compaction"}
    assert structural == {kind.name for kind in KINDS.values() if kind.forward}


def test_about_a_dozen_kinds_have_a_table():
    assert 10 <= sum(kind.table for kind in KINDS.values()) <= 14


def test_factual_proposals_under_three_are_dropped():
    assert {3} == {kind.floor for kind in KINDS.values() if kind.group == "factual"}


def test_same_topic_is_weak_and_not_walked():
    assert (KINDS["same_topic"].cap, KINDS["same_topic"].walked) == (2, False)


def test_lifecycle_kinds_are_never_the_extractors():
    assert not any("extractor" in kind.creators for kind in KINDS.values() if kind.group == "lifecycle")


# ---------------------------------------------------------------------- custom kinds


def defined(words: Vocabulary, name: str, **more: object) -> Vocabulary:
    options = {"inverse": None, "symmetric": False, "causal": False, "acyclic": False, "rests": ()} | more
    words.add(new_kind(name, vocabulary=words, **options))
    return words


def test_custom_kind_is_said_from_both_ends(words):
    defined(words, "reviews", inverse="reviewed_by")

    assert said(words, "reviews") == ("a", "reviews", "b", "explicit")
    assert said(words, "possibly_reviewed_by") == ("b", "reviews", "a", "inferred")


def test_custom_kind_without_an_inverse_gets_one(words):
    defined(words, "mentor")

    assert said(words, "mentor_of") == ("b", "mentor", "a", "explicit")


def test_custom_symmetric_kind_reads_the_same_from_both_ends(words):
    defined(words, "married_to", symmetric=True)

    assert said(words, "married_to") == ("a", "married_to", "b", "explicit")


def test_custom_kind_said_again_is_the_same_and_never_another(words):
    defined(words, "reviews", inverse="reviewed_by")
    defined(words, "reviews", inverse="reviewed_by")

    with pytest.raises(InvalidError, match="reviews"):
        defined(words, "reviews", inverse="reviewed_by", acyclic=True)
    with pytest.raises(InvalidError, match="reviews"):
        defined(words, "reviews", inverse="looked_at_by")


def test_custom_kinds_do_not_leak_into_another_vocabulary(words):
    defined(words, "reviews")

    with pytest.raises(InvalidError):
        Vocabulary().canonical("reviews")


@pytest.mark.parametrize(
    "name",
    ["caused_by", "relates", "fixed_by", "possibly_new", "link", "causes", "superseded_by", "continues"],
)
def test_built_in_name_cannot_be_defined_again(words, name):
    with pytest.raises(InvalidError):
        defined(words, name)


@pytest.mark.parametrize("inverse", ["causes", "caused_by", "relates_to", "fixed_by", "related_to"])
def test_built_in_name_cannot_become_an_inverse(words, inverse):
    with pytest.raises(InvalidError):
        defined(words, "brand_new", inverse=inverse)


@pytest.mark.parametrize(
    "name", ["", "Upper", "two words", "9lives", "ümlaut", "a" * 201, "drop`table", "a\n", None, "x-y"]
)
def test_what_is_no_name_is_refused(words, name):
    with pytest.raises(InvalidError):
        defined(words, name)


def test_inverse_of_another_custom_kind_cannot_be_taken(words):
    defined(words, "reviews", inverse="reviewed_by")

    with pytest.raises(InvalidError, match="reviews"):
        defined(words, "checks", inverse="reviewed_by")
    with pytest.raises(InvalidError, match="reviews"):
        defined(words, "reviewed_by")


@given(st.sampled_from([*KINDS, *ALIASES, *(kind.inverse for kind in KINDS.values())]), st.booleans())
def test_saying_it_from_the_other_end_is_the_same_sentence(name, possibly):
    words = Vocabulary()
    one = words.sentence("a", ("possibly_" if possibly else "") + name, "b", "explicit")
    other = words.sentence(one.target, one.kind.inverse, one.source, one.confidence)

    if one.kind.symmetric:
        assert {one.source, one.target} == {other.source, other.target}
    else:
        assert one == other


# ---------------------------------------------------------------------- strength


@pytest.mark.parametrize("good", [None, 1, 2, 3, 4, 5])
def test_strength_is_one_to_five_or_unsaid(good):
    assert good == strength_of(good)


@pytest.mark.parametrize("wrong", [0, 6, -1, 2.5, 3.0, True, "3", float("nan")])
def test_strength_out_of_range_is_refused(wrong):
    with pytest.raises(InvalidError, match=r"1 .weak. to 5 .strong"):
        strength_of(wrong)
