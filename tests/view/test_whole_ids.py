"""An id is itself; `whole_id` alone makes a beginning whole, and of generated ids alone."""

from __future__ import annotations

import pytest

from graphstore import ConflictError, GraphStore
from graphstore.errors import NotFoundError
from tests.conftest import Clock

pytestmark = pytest.mark.served
ONE, OTHER = "0123456789abcdef", "0123459999999999"


@pytest.fixture
def zones(store: GraphStore, clock: Clock) -> GraphStore:
    """Ids that somebody chose and that begin alike, and two that the store might have made."""
    clock.set("2026-01-01")
    store.add_node("zone", {"says": "a time zone"}, id="US/Hawaiian")
    store.add_node("fact", {"says": "one"}, id=ONE)
    clock.set("2026-02-01")
    return store


def test_an_id_is_never_read_as_a_longer_one(zones: GraphStore) -> None:
    for act in (
        lambda: zones.node("US/Hawaii"),
        lambda: zones.inspect("US/Hawaii"),
        lambda: zones.revise("US/Hawaii", {"says": "another"}),
        lambda: zones.retract("US/Hawaii", reason="x"),
        lambda: zones.add_node("fact", {}, supersedes="US/Hawaii"),
        lambda: zones.link(ONE, "uses", "US/Hawaii"),
        lambda: zones.fold([ONE, "US/Hawaii"], into={"says": "both"}),
        lambda: zones.bulk_load(links=[{"source": ONE, "kind": "uses", "target": "US/Hawaii"}]),
        lambda: zones.node(ONE[:10]),
        lambda: zones.end(ONE[:10]),
        lambda: zones.erase(ONE[:10], reason="x"),
    ):
        with pytest.raises(NotFoundError, match="Nearest: '"):
            act()
    done = zones.record_event("deploy", "x", related_to="US/Hawaii")
    assert ["no node or event 'US/Hawaii'"] == [each.split(": ")[1].split(".")[0] for each in done.warnings]
    assert [] == zones.links_from(done.event.id)
    assert ["US/Hawaiian", ONE] == [node.id for node in zones.nodes()]

    zones.add_node("zone", {"says": "the zone itself"}, id="US/Hawaii")
    assert {"says": "the zone itself"} == zones.node("US/Hawaii").content


def test_a_link_is_named_by_its_whole_id(zones: GraphStore) -> None:
    link = zones.link(ONE, "uses", "US/Hawaiian").id

    with pytest.raises(NotFoundError, match=f"Nearest: '{link}'"):
        zones.unlink(link[:12])
    assert link == zones.whole_id(link[:12])


def test_a_beginning_of_a_generated_id_is_made_whole(zones: GraphStore) -> None:
    event = zones.record_event("deploy", "x").event.id

    assert (ONE, f"{ONE}-v1") == (zones.whole_id(ONE[:6]), zones.whole_id(f"{ONE[:6]}-v1"))
    assert event == zones.whole_id(event[:-1])
    for text in (
        "US/Hawaii",
        "US/Hawaiian",
        ONE,
        f"{ONE}-v1",
        ONE[:5],
        "fedcba",
        "any words",
        "0123456-notes",
    ):
        assert text == zones.whole_id(text)


def test_of_several_none_is_taken(zones: GraphStore) -> None:
    zones.add_node("fact", {}, id=OTHER)

    with pytest.raises(NotFoundError, match=f"'012345' is ambiguous: {ONE}, {OTHER}. Give more of the id"):
        zones.whole_id("012345")
    assert ONE == zones.whole_id("0123456")
    assert ONE == zones.as_of(tx="2026-01-15").whole_id("012345")


def test_what_somebody_chose_hides_no_generated_id_and_is_itself(zones: GraphStore) -> None:
    zones.add_node("fact", {}, id="0123456-chosen")
    assert ONE == zones.whole_id("0123456")

    zones.add_node("fact", {}, id="0123456")
    assert "0123456" == zones.whole_id("0123456")
    with pytest.raises(ConflictError):
        zones.add_node("fact", {}, id="0123456")
