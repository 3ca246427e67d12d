"""Links said once, said again, said for longer, and taken back: from when on they hold, and under which id."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, NotFoundError
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

Told = tuple[str, str | None]


@pytest.fixture
def facts(store: GraphStore) -> GraphStore:
    """Three facts, from January, February and March 2025 on, and a deploy in February."""
    for number, id in enumerate(("first", "second", "third"), 1):
        store.add_node("fact", {"says": id}, id=id, valid_from=f"2025-0{number}-01")
    store.record_event("deploy", "v2 is out", id="deploy", occurred_at="2025-02-10")
    return store


def date(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%m-%d")


def periods(store: GraphStore, source: str, kind: str, target: str) -> list[Told]:
    """The periods over which it is believed that `source kind target`."""
    return [
        (row.valid_from.strftime("%m-%d"), date(row.valid_to))
        for row in store.link_history(source, kind, target)
    ]


def links(store: GraphStore, source: str, kind: str, target: str) -> int:
    return len({row.id for row in store.link_history(source, kind, target)})


# ---------------------------------------------------------------- from when on


@pytest.mark.parametrize(
    ("source", "kind", "target", "begins"),
    [
        ("first", "derived_from", "third", "2025-01-01"),
        ("third", "derived_from", "first", "2025-03-01"),
        ("third", "supports", "second", "2025-02-01"),
        ("first", "supported_by", "second", "2025-01-01"),
        ("third", "caused_by", "second", "2025-03-01"),
        ("third", "caused_by", "deploy", "2025-03-01"),
        ("deploy", "derived_from", "first", "2025-02-10"),
        ("second", "corrects", "third", "2025-02-01"),
        ("third", "uses", "second", "2026-02-01"),
        ("third", "part_of", "second", "2026-02-01"),
    ],
)
def test_a_link_of_which_nothing_is_said_begins_as_its_kind_does(
    facts: GraphStore, clock: Clock, source: str, kind: str, target: str, begins: str
) -> None:
    clock.set("2026-02-01")
    with facts.transaction() as told:
        link = told.link(source, kind, target)

    assert day(begins) == link.valid_from.replace(microsecond=0)


def test_a_kind_of_ones_own_that_rests_or_causes_begins_with_its_ends(facts: GraphStore) -> None:
    facts.define_kind("leads_to_harm", causal=True)
    facts.define_kind("quotes", rests=["retracted"])
    facts.define_kind("mentions")

    assert day("2025-02-01") == facts.link("second", "leads_to_harm", "first").valid_from
    assert day("2025-02-01") == facts.link("second", "quotes", "first").valid_from
    assert facts.link("second", "mentions", "first").valid_from > day("2026-01-31")


def test_an_end_of_which_nothing_is_believed_does_not_count(facts: GraphStore) -> None:
    facts.retract("third", reason="never so")
    assert day("2025-01-01") == facts.link("first", "derived_from", "third").valid_from
    facts.retract("first", reason="never so")
    link = facts.link("first", "supports", "third")
    assert link.tx_from == link.valid_from


def test_what_a_new_node_names_begins_likewise(facts: GraphStore) -> None:
    facts.add_node(
        "fact",
        {"says": "sum"},
        id="sum",
        valid_from="2025-01-15",
        derived_from=["first", "third"],
        corrects="second",
    )

    assert [("01-15", None)] == periods(facts, "sum", "derived_from", "first")
    assert [("01-15", None)] == periods(facts, "sum", "derived_from", "third")
    assert [("01-15", None)] == periods(facts, "sum", "corrects", "second")


def test_a_cascade_in_the_valid_past_is_not_missed(facts: GraphStore) -> None:
    facts.link("third", "derived_from", "first")
    facts.end("first", at="2025-06-01")

    assert "stands" == facts.as_of(valid="2025-05-01").node("third").standing
    assert "shaky" == facts.as_of(valid="2025-07-01").node("third").standing


def test_a_link_that_would_end_before_it_begins_by_itself_says_when_it_does(facts: GraphStore) -> None:
    with pytest.raises(InvalidError, match="derived_from begins by itself at 2025-03-01"):
        facts.link("third", "derived_from", "first", valid_to="2025-02-01")


# ---------------------------------------------------------------- causes


def test_an_event_starts_when_it_occurred_whatever_the_link_says(facts: GraphStore) -> None:
    facts.record_event("outage", "nobody could log in", id="outage", occurred_at="2025-02-05")
    for more in ({}, {"valid_from": "2025-03-01"}):
        with pytest.raises(InvalidError, match="a cause may not start after its effect"):
            facts.link("outage", "caused_by", "deploy", **more)
    assert "outage" == facts.link("deploy", "caused_by", "outage").target


def test_a_node_may_be_the_effect_of_what_came_later_when_that_is_said(facts: GraphStore) -> None:
    with pytest.raises(InvalidError, match="give the valid_from at which the effect began"):
        facts.link("first", "caused_by", "deploy")
    with pytest.raises(InvalidError, match="a cause may not start after its effect"):
        facts.link("first", "caused_by", "deploy", valid_from="2025-02-09")

    link = facts.link("first", "caused_by", "deploy", valid_from="2025-02-11")
    assert [link.target] == [one.id for one in facts.causes("first").nodes]


def test_two_things_do_not_cause_each_other_over_one_time(facts: GraphStore) -> None:
    facts.link("second", "caused_by", "first", valid_from="2025-02-01", valid_to="2025-03-01")
    before = facts.stats()
    with pytest.raises(ConflictError, match="two things cannot cause each other"):
        facts.link("first", "caused_by", "second", valid_from="2025-02-20")
    with pytest.raises(ConflictError, match="two things cannot cause each other"):
        facts.link("second", "causes", "first", valid_from="2025-02-20")
    assert before == facts.stats()
    facts.link("first", "caused_by", "second", valid_from="2025-03-01")
    with pytest.raises(ConflictError, match="two things cannot cause each other"):
        facts.link("second", "caused_by", "first", valid_from="2025-02-01")


def test_what_starts_together_may_lead_round_in_more_than_two_steps(store: GraphStore) -> None:
    for id in "abc":
        store.add_node("fact", {}, id=id, valid_from="2025-01-01")
    for effect, cause in ("ab", "bc", "ca"):
        store.link(effect, "caused_by", cause)

    assert ["b", "c"] == [one.id for one in store.causes("a").nodes]


# ---------------------------------------------------------------- said again


def test_said_again_for_longer_the_rest_is_written_under_the_same_id(facts: GraphStore) -> None:
    first = facts.link("second", "uses", "first", reason="r", valid_from="2025-03-01", valid_to="2025-04-01")
    again = facts.link("second", "uses", "first", reason="r", valid_from="2025-02-01", valid_to="2025-06-01")

    assert first.id == again.id
    assert [("02-01", "03-01"), ("03-01", "04-01"), ("04-01", "06-01")] == periods(
        facts, "second", "uses", "first"
    )
    for at in ("2025-02-15", "2025-03-15", "2025-05-15"):
        assert [first.id] == [link.id for link in facts.as_of(valid=at).links_from("second")]


def test_said_again_it_is_the_same_link_and_nothing_is_written(facts: GraphStore) -> None:
    facts.link("second", "uses", "first", valid_from="2025-03-01", valid_to="2025-06-01")
    before = facts.stats()
    facts.link("second", "uses", "first", valid_from="2025-03-01", valid_to="2025-06-01")
    facts.link("second", "uses", "first", valid_from="2025-04-01", valid_to="2025-05-01")

    assert before == facts.stats()


def test_other_attributes_over_a_part_are_refused_and_said(facts: GraphStore) -> None:
    link = facts.link(
        "second", "uses", "first", reason="r", strength=3, valid_from="2025-03-01", valid_to="2025-06-01"
    )
    before = facts.stats()
    with pytest.raises(ConflictError) as refused:
        facts.link("second", "uses", "first", reason="s", strength=4, valid_from="2025-01-01")
    for words in (
        link.id,
        "from 2025-03-01 to 2025-06-01",
        "reason 'r', not 's'",
        "strength 3, not 4",
        "unlink(",
    ):
        assert words in str(refused.value)
    assert before == facts.stats()


@pytest.mark.parametrize("more", [{"reason": "r"}, {"reason": "another"}])
def test_periods_that_touch_are_one_link_whatever_their_attributes(
    facts: GraphStore, more: dict[str, str]
) -> None:
    facts.link("second", "uses", "first", reason="r", valid_from="2025-03-01", valid_to="2025-04-01")
    facts.link("second", "uses", "first", valid_from="2025-04-01", valid_to="2025-05-01", **more)
    facts.link("second", "uses", "first", valid_from="2025-02-01", valid_to="2025-03-01", **more)

    assert 1 == links(facts, "second", "uses", "first")
    assert [("02-01", "03-01"), ("03-01", "04-01"), ("04-01", "05-01")] == periods(
        facts, "second", "uses", "first"
    )


def test_periods_with_a_gap_are_two_links_and_what_fills_it_joins_the_first(facts: GraphStore) -> None:
    first = facts.link("second", "uses", "first", valid_from="2025-02-01", valid_to="2025-03-01")
    second = facts.link("second", "uses", "first", valid_from="2025-04-01", valid_to="2025-05-01")
    assert first.id != second.id

    filled = facts.link("second", "uses", "first", valid_from="2025-02-15", valid_to="2025-06-01")
    assert first.id == filled.id
    rows = [(date(row.valid_from), row.id) for row in facts.link_history("second", "uses", "first")]
    assert [("02-01", first.id), ("03-01", first.id), ("04-01", second.id), ("05-01", first.id)] == rows


def test_an_id_that_is_asked_for_is_kept_where_periods_touch(facts: GraphStore) -> None:
    facts.link("second", "uses", "first", valid_from="2025-02-01", valid_to="2025-03-01", id="mine")
    same = facts.link("second", "uses", "first", valid_from="2025-03-01", valid_to="2025-04-01", id="mine")
    other = facts.link("second", "uses", "first", valid_from="2025-04-01", valid_to="2025-05-01", id="other")

    assert ("mine", "other") == (same.id, other.id)
    with pytest.raises(ConflictError, match="'mine' is known already"):
        facts.link("second", "uses", "third", id="mine")


def test_a_symmetric_link_goes_on_from_either_end(facts: GraphStore) -> None:
    one = facts.link("second", "related_to", "first", valid_from="2025-02-01", valid_to="2025-03-01")
    two = facts.link("first", "relates_to", "second", valid_from="2025-02-15", valid_to="2025-04-01")

    assert one.id == two.id
    for ends in (("first", "second"), ("second", "first")):
        assert [("02-01", "03-01"), ("03-01", "04-01")] == periods(facts, ends[0], "related_to", ends[1])


def test_what_was_inferred_becomes_explicit_over_the_time_said(facts: GraphStore) -> None:
    facts.link("second", "possibly_uses", "first", valid_from="2025-02-01", valid_to="2025-05-01")
    facts.link("second", "uses", "first", valid_from="2025-03-01", valid_to="2025-06-01")

    rows = facts.link_history("second", "uses", "first")
    assert [("02-01", "inferred"), ("03-01", "explicit")] == [
        (date(row.valid_from), row.confidence) for row in rows
    ]
    assert (1, "06-01") == (links(facts, "second", "uses", "first"), date(rows[-1].valid_to))


def test_data_in_periods_is_loaded_whole(store: GraphStore) -> None:
    nodes = [{"id": "room", "kind": "place"}, {"id": "lamp", "kind": "thing"}]
    told = [{"node_id": id, "content": {}, "valid_from": "2025-01-01"} for id in ("room", "lamp")]
    spans = [
        ("2025-01-01", "2025-03-01"),
        ("2025-02-01", "2025-05-01"),
        ("2025-05-01", None),
        ("2025-02-10", "2025-02-20"),
    ]
    rows = [
        {"source": "lamp", "kind": "located_at", "target": "room", "valid_from": start, "valid_to": stop}
        for start, stop in spans
    ]
    store.bulk_load(nodes=nodes, versions=told, links=rows)

    found = store.link_history("lamp", "located_at", "room")
    assert 1 == len({row.id for row in found})
    assert [("01-01", "03-01"), ("03-01", "05-01"), ("05-01", None)] == periods(
        store, "lamp", "located_at", "room"
    )


def test_what_is_taken_back_of_a_load_leaves_the_period_that_touches(store: GraphStore, clock: Clock) -> None:
    nodes = [{"id": id, "kind": "thing"} for id in ("room", "lamp")]
    told = [
        {"node_id": id, "content": {}, "valid_from": "2025-01-01", "tx_from": "2025-01-01"}
        for id in ("room", "lamp")
    ]
    lamp = {"source": "lamp", "kind": "located_at", "target": "room"}
    store.bulk_load(
        nodes=nodes,
        versions=told,
        links=[
            {
                **lamp,
                "valid_from": "2025-01-01",
                "valid_to": "2025-03-01",
                "tx_from": "2025-01-02",
                "tx_to": "2025-06-01",
            },
            {**lamp, "valid_from": "2025-03-01", "valid_to": None, "tx_from": "2025-01-02", "tx_to": None},
        ],
    )

    assert [("03-01", None)] == periods(store, "lamp", "located_at", "room")


# ---------------------------------------------------------------- superseding again


def test_supersede_again_with_another_date_shows_what_is_there_and_the_way_out(facts: GraphStore) -> None:
    (link,) = facts.supersede("first", by="second", reason="moved", valid_from="2025-03-01")
    before = facts.stats()
    for more in ({"valid_from": "2025-04-01", "reason": "moved"}, {"reason": "other"}, {}):
        with pytest.raises(ConflictError) as refused:
            facts.supersede("first", by="second", **more)
        for words in (link.id, "from 2025-03-01", "unlink("):
            assert words in str(refused.value)
    with pytest.raises(ConflictError, match="to …, not 2025-08-01"):
        facts.link("second", "supersedes", "first", reason="moved", valid_to="2025-08-01")
    assert before == facts.stats()
    assert "from 2025-03-01, not 2025-04-01" in _refusal(facts, valid_from="2025-04-01", reason="moved")


def _refusal(store: GraphStore, **more: str) -> str:
    with pytest.raises(ConflictError) as refused:
        store.supersede("first", by="second", **more)
    return str(refused.value)


@pytest.mark.parametrize("more", [{}, {"valid_from": "2025-03-01"}, {"valid_from": "2024-01-01"}])
def test_supersede_again_alike_is_the_same_link(facts: GraphStore, more: dict[str, str]) -> None:
    (link,) = facts.supersede("second", by="third", reason="moved", **more)
    before = facts.stats()

    assert [link] == facts.supersede("second", by="third", reason="moved", **more)
    assert [link] == facts.supersede("second", by="third", reason="moved")
    assert before == facts.stats()


def test_supersede_again_takes_what_was_described_anew(facts: GraphStore) -> None:
    (link,) = facts.supersede("first", by="second", reason="moved")
    facts.revise("first", {"says": "after all"}, valid_from="2025-03-01", valid_to="2025-04-01")

    assert [link.id] == [one.id for one in facts.supersede("first", by="second", reason="moved")]
    assert "superseded" == facts.as_of(valid="2025-03-15").inspect("first").node.standing
    facts.unlink(link.id)
    assert [("01-01", "03-01"), ("03-01", "04-01"), ("04-01", None)] == [
        (date(row.valid_from), date(row.valid_to)) for row in facts.history("first")
    ]
    assert {"says": "after all"} == facts.as_of(valid="2025-03-15").node("first").content


def test_a_supersession_that_goes_on_is_the_same_link(facts: GraphStore) -> None:
    one = facts.link("second", "supersedes", "first", valid_from="2025-03-01", valid_to="2025-04-01")
    two = facts.link("second", "supersedes", "first", valid_from="2025-04-01", valid_to="2025-05-01")

    assert one.id == two.id
    assert [("01-01", "03-01"), ("05-01", None)] == [
        (date(row.valid_from), date(row.valid_to)) for row in facts.history("first")
    ]
    facts.unlink(one.id, valid_from="2025-04-15")
    assert ["04-15"] == [date(row.valid_from) for row in facts.history("first")][1:]


# ---------------------------------------------------------------- taking back


def test_every_link_of_a_sentence_is_taken_back_over_a_time(facts: GraphStore) -> None:
    for start, stop in (
        ("2025-02-01", "2025-03-01"),
        ("2025-04-01", "2025-05-01"),
        ("2025-06-01", "2025-07-01"),
    ):
        facts.link("second", "uses", "first", valid_from=start, valid_to=stop)
    facts.unlink(
        source="second",
        kind="uses",
        target="first",
        valid_from="2025-02-15",
        valid_to="2025-06-15",
        reason="wrong",
    )

    assert [("02-01", "02-15"), ("06-15", "07-01")] == periods(facts, "second", "uses", "first")
    assert ["wrong"] * 3 == [one.reason for one in facts.changes() if one.verb == "unlink"]
    facts.unlink(source="first", kind="used_by", target="second")
    assert [] == periods(facts, "second", "uses", "first")
    with pytest.raises(NotFoundError, match="nothing is believed of 'second uses first'"):
        facts.unlink(source="second", kind="uses", target="first")


def test_a_supersession_is_taken_back_by_its_sentence(facts: GraphStore) -> None:
    facts.supersede("first", by="second")
    facts.unlink(source="second", kind="supersedes", target="first")

    assert "stands" == facts.node("first").standing


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"source": "second", "kind": "uses"},
        {"link_id": "lnk_0123456789abcdef", "source": "second"},
        {"link_id": "lnk_0123456789abcdef", "source": "second", "kind": "uses", "target": "first"},
    ],
)
def test_a_link_to_take_back_is_named_in_one_way(facts: GraphStore, named: dict[str, str]) -> None:
    with pytest.raises(InvalidError, match="Give one of the two"):
        facts.unlink(**named)  # type: ignore[call-overload]


def test_what_the_store_wrote_beside_a_supersession_goes_with_it(store: GraphStore) -> None:
    store.add_node("fact", {"day": "Friday"}, id="friday", key="deploy_day", valid_from="2025-01-01")
    store.add_node("fact", {"day": "Tuesday"}, id="tuesday", key="other_day", valid_from="2025-02-01")
    store.supersede("friday", by="tuesday")
    store.link("tuesday", "transition", "friday", created_by="store", valid_from="2025-02-01")
    store.link(
        "tuesday", "contradicts", "friday", created_by="store", valid_from="2025-02-01", valid_to="2025-03-01"
    )
    store.link("tuesday", "contradicts", "friday", reason="said so", valid_from="2025-03-01")
    store.unlink(source="tuesday", kind="supersedes", target="friday")

    assert [("contradicts", "03-01")] == [
        (link.kind, date(link.valid_from)) for link in store.links_from("tuesday")
    ]


@pytest.mark.parametrize("door", ["the tables", "opened again"])
def test_further_periods_are_the_same_through(tmp_path, clock: Clock, door: str) -> None:
    with graphstore.open(tmp_path / "s.gs", clock=clock) as store:
        for id in ("a", "b"):
            store.add_node("fact", {}, id=id, valid_from="2025-01-01")
        store.link("a", "uses", "b", valid_from="2025-01-01", valid_to="2025-02-01")
        store.link("a", "uses", "b", valid_from="2025-01-01", valid_to="2025-04-01")
        with store.transaction():
            store.link("a", "uses", "b", valid_from="2025-04-01", valid_to="2025-05-01", reason="r")
            store.link("a", "uses", "b", valid_from="2025-03-01", valid_to="2025-04-01")
        if door == "the tables":
            view = store.as_of(valid="2025-04-15")
            (row,) = view.query(
                "MATCH (:Node)-[l:USES]->(:Node) RETURN l.id AS id, l.reason AS reason"
            ).rows()
            assert (store.link_history("a", "uses", "b")[0].id, "r") == (row["id"], row["reason"])
            assert store.verify().ok
        expected = store.link_history("a", "uses", "b")
    with graphstore.open(tmp_path / "s.gs", clock=clock) as again:
        assert expected == again.link_history("a", "uses", "b")
        assert again.verify().ok


# ---------------------------------------------------------------------- what a search or a message must not miss


def test_a_ladder_of_continuations_is_looked_through_once(store: GraphStore) -> None:
    rungs = [[f"{side}-{at}" for side in ("left", "right")] for at in range(24)]
    store.bulk_load(
        nodes=[{"id": id, "kind": "fact"} for pair in rungs for id in pair],
        versions=[{"node_id": id, "valid_from": "2026-01-01"} for pair in rungs for id in pair],
        links=[
            {"source": new, "kind": "continuation", "target": old}
            for lower, upper in pairwise(rungs)
            for new in upper
            for old in lower
        ],
    )
    with pytest.raises(ConflictError, match="would close a cycle"):
        store.link("left-0", "continuation", "left-23")
    store.add_node("fact", {}, id="aside", valid_from="2026-01-01")
    store.add_node("fact", {}, id="top", valid_from="2026-01-01")
    store.link("top", "continuation", "aside")
    store.link("aside", "continuation", "right-23")


def test_a_link_that_is_there_explicitly_is_not_said_as_inferred(facts: GraphStore) -> None:
    one, two = (node.id for node in facts.nodes()[:2])
    facts.link(one, "related_to", two)
    with pytest.raises(ConflictError, match="confidence 'explicit', not 'inferred'"):
        facts.link(one, "related_to", two, confidence="inferred")


def test_what_was_corrected_does_not_come_back_with_what_superseded_it(store: GraphStore) -> None:
    store.add_node("fact", {}, id="wrong", valid_from="2026-01-01")
    store.add_node("fact", {}, id="next", valid_from="2026-01-15", supersedes="wrong")
    store.add_node("fact", {}, id="right", valid_from="2026-01-01", corrects="wrong")
    store.retract("next", reason="a slip")

    for valid in ("2026-01-10", "2026-01-20"):
        assert "retracted" == store.as_of(valid=valid).inspect("wrong").node.standing


# ---------------------------------------------------------------- several at once


def test_several_links_are_one_transaction(facts: GraphStore) -> None:
    made = facts.link(
        "second",
        "supports",
        "first",
        also=[("third", "first"), ["third", "derived_from", "second"]],
        reason="read",
    )
    assert [
        ("second", "supports", "first"),
        ("third", "supports", "first"),
        ("third", "derived_from", "second"),
    ] == [(link.source, link.kind, link.target) for link in made]
    assert {(made[0].tx_from, "read")} == {(link.tx_from, link.reason) for link in made}
    assert [made[0].id] == [
        link.id for link in facts.link("second", "supports", "first", also=(), reason="read")
    ]


def test_of_several_links_all_are_recorded_or_none(facts: GraphStore) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        facts.link("second", "supports", "first", also=[("third", "first"), ("nowhere", "first")])
    assert [] == facts.links_from("second") + facts.links_from("third")
    with facts.transaction():
        with pytest.raises(InvalidError, match="itself"):
            facts.link("second", "supports", "first", also=[("third", "third")])
        facts.link("third", "supports", "first")
    assert [] == facts.links_from("second") and 1 == len(facts.links_from("third"))


@pytest.mark.parametrize("also", [["third"], [("third",)], [("third", "supports", "first", "x")]])
def test_what_is_no_link_is_refused(facts: GraphStore, also: list[str]) -> None:
    with pytest.raises(InvalidError, match=r"also .*third.* Give "):
        facts.link("second", "supports", "first", also=also)
    with pytest.raises(InvalidError, match="cannot name several links"):
        facts.link("second", "supports", "first", also=[("third", "first")], id="mine")
