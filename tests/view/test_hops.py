"""One hop: links read from both ends, under both names, and selected by what they say."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

import graphstore
from graphstore import ConflictError, Coordinate, GraphStore, Link, NotFoundError
from graphstore.errors import InvalidError
from graphstore.view.view import Reader
from tests.conftest import day
from tests.support.seeds import seeds

pytestmark = pytest.mark.served


def sentences(links: list[Link] | tuple[Link, ...]) -> list[tuple[str, str, str]]:
    return [(link.source, link.kind, link.target) for link in links]


@pytest.fixture
def web(store: GraphStore) -> GraphStore:
    """An outage that a change caused, which contradicts a note on the same topic."""
    for id in ("outage", "change", "note-x", "note-y"):
        store.add_node("fact", {"what": id}, id=id, valid_from="2026-01-01")
    store.link("outage", "caused_by", "change", strength=5, valid_from="2026-01-02", id="lnk-cause")
    store.link("note-x", "contradicts", "outage", valid_from="2026-01-03", id="lnk-against")
    store.link("outage", "same_topic", "note-y", strength=1, valid_from="2026-01-04", id="lnk-topic")
    store.link("note-y", "supports", "outage", strength=2, valid_from="2026-01-05", id="lnk-support")
    store.link(
        "outage",
        "possibly_uses",
        "note-x",
        created_by="extractor",
        valid_from="2026-01-06",
        id="lnk-uses",
    )
    return store


def test_a_symmetric_link_begins_with_whichever_end_is_asked(web: GraphStore) -> None:
    assert [("note-x", "contradicts", "outage")] == sentences(web.links_from("note-x"))
    assert ("outage", "contradicts", "note-x") in sentences(web.links_from("outage"))


def test_a_symmetric_link_ends_with_whichever_end_is_asked(web: GraphStore) -> None:
    assert ("note-x", "contradicts", "outage") in sentences(web.backlinks_to("outage"))
    assert ("outage", "contradicts", "note-x") in sentences(web.backlinks_to("note-x"))


def test_a_link_of_one_direction_is_not_turned(web: GraphStore) -> None:
    assert [] == [link for link in web.links_from("change") if link.kind != "same_topic"]
    assert [("outage", "caused_by", "change")] == sentences(web.backlinks_to("change"))


def test_by_its_inverse_name_it_is_read_the_other_way_round(web: GraphStore) -> None:
    assert [("change", "causes", "outage")] == sentences(web.links_from("change", kinds="causes"))
    assert [("change", "causes", "outage")] == sentences(web.backlinks_to("outage", kinds=["causes"]))
    assert [] == web.links_from("outage", kinds="causes")


def test_a_link_keeps_its_id_whichever_way_it_is_read(web: GraphStore) -> None:
    read = [
        *web.links_from("outage", "caused_by"),
        *web.backlinks_to("change", "caused_by"),
        *web.links_from("change", "causes"),
        *web.backlinks_to("outage", "causes"),
    ]

    assert ["lnk-cause"] * 4 == [link.id for link in read]
    assert {"lnk-against"} == {
        link.id for end in ("note-x", "outage") for link in web.links_from(end, "contradicts")
    }


def test_a_turned_link_says_of_each_end_how_it_stands(web: GraphStore) -> None:
    web.retract("note-x", reason="wrong")

    (link,) = web.links_from("outage", "contradicts")
    assert ("stands", "retracted") == (link.source_standing, link.target_standing)
    (link,) = web.links_from("note-x", "contradicts")
    assert ("retracted", "stands") == (link.source_standing, link.target_standing)


def test_both_names_at_once_give_both_ways(web: GraphStore) -> None:
    web.link("change", "caused_by", "note-x", valid_from="2026-01-01", id="lnk-before")

    assert [("change", "caused_by", "note-x"), ("change", "causes", "outage")] == sentences(
        web.links_from("change", kinds=["causes", "caused_by"])
    )


@pytest.mark.parametrize("end", ["outage", "note-y", "note-x"])
def test_links_are_in_the_order_they_begin_whichever_way_they_are_read(web: GraphStore, end: str) -> None:
    for links in (web.links_from(end), web.backlinks_to(end)):
        assert links == sorted(links, key=lambda link: (link.valid_from, link.tx_from, link.id))


def test_a_symmetric_link_shows_by_its_own_periods_from_both_ends(web: GraphStore) -> None:
    web.unlink("lnk-against", valid_from="2026-01-10")

    for end in ("note-x", "outage"):
        assert ["lnk-against"] == [
            link.id for link in web.as_of(valid="2026-01-09").links_from(end, "contradicts")
        ]
        assert [] == web.as_of(valid="2026-01-10").links_from(end, "contradicts")


def test_one_pair_said_from_either_end_is_one_link(web: GraphStore) -> None:
    again = web.link("outage", "contradicts", "note-x", valid_from="2026-01-03")

    assert "lnk-against" == again.id
    assert 1 == len(web.links_from("outage", "contradicts"))


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({"group": "factual"}, ["lnk-cause", "lnk-against", "lnk-uses"]),
        ({"group": "thematic"}, ["lnk-topic"]),
        ({"strength": 3}, ["lnk-cause", "lnk-against", "lnk-uses"]),
        ({"strength": 4}, ["lnk-cause"]),
        ({"strength": 1}, ["lnk-cause", "lnk-against", "lnk-topic", "lnk-uses"]),
        ({"confidence": "inferred"}, ["lnk-uses"]),
        ({"confidence": "explicit"}, ["lnk-cause", "lnk-against", "lnk-topic"]),
        ({"created_by": "extractor"}, ["lnk-uses"]),
        ({"created_by": "nobody"}, []),
        ({"group": "factual", "confidence": "explicit", "strength": 5}, ["lnk-cause"]),
        ({"kinds": "contradicts", "strength": 4}, []),
    ],
)
def test_links_are_selected_by_what_they_say(web: GraphStore, chosen: dict[str, str], ids: list[str]) -> None:
    assert ids == [link.id for link in web.links_from("outage", **chosen)]


def test_backlinks_are_selected_likewise(web: GraphStore) -> None:
    assert ["lnk-support"] == [link.id for link in web.backlinks_to("outage", group="lifecycle")]
    assert [] == web.backlinks_to("outage", group="lifecycle", strength=3)


def test_turned_links_are_selected_by_the_group_of_their_kind(web: GraphStore) -> None:
    assert ["lnk-cause"] == [link.id for link in web.links_from("change", "causes", group="factual")]
    assert [] == web.links_from("change", "causes", group="lifecycle")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group": "factuals"}, "factual"),
        ({"confidence": "sure"}, "explicit"),
        ({"strength": 6}, "strength"),
        ({"kinds": "cause"}, "caused_by"),
        ({"kinds": 5}, "link kind|kinds 5"),
    ],
)
def test_a_wrong_argument_names_the_right_ones(
    web: GraphStore, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidError, match=message):
        web.links_from("outage", **arguments)


def test_inspect_has_symmetric_links_once_and_same_topic_apart(web: GraphStore) -> None:
    found = web.inspect("outage")

    assert ["lnk-cause", "lnk-against", "lnk-uses"] == [link.id for link in found.links]
    assert ["lnk-support"] == [link.id for link in found.backlinks]
    assert [("outage", "same_topic", "note-y")] == sentences(found.same_topic)
    assert [("note-y", "same_topic", "outage")] == sentences(web.inspect("note-y").same_topic)


def test_an_event_is_read_both_ways_too(web: GraphStore) -> None:
    event = web.record_event("note", "a remark", occurred_at="2026-01-07", related_to="outage").event

    (link,) = web.links_from("outage", "related_to")
    assert ("outage", event.id) == (link.source, link.target)


# ---------------------------------------------------------------------- a store's own symmetric kinds


def test_a_symmetric_kind_of_its_own_is_read_both_ways(web: GraphStore) -> None:
    web.define_kind("rhymes_with", symmetric=True)
    web.link("note-x", "rhymes_with", "note-y")

    assert [("note-y", "rhymes_with", "note-x")] == sentences(web.links_from("note-y", "rhymes_with"))


def test_a_group_without_a_kind_yet_is_empty(web: GraphStore) -> None:
    assert [] == web.links_from("outage", group="custom")


def test_an_undone_link_of_a_kind_undone_with_it_is_read_from_neither_end(web: GraphStore) -> None:
    with pytest.raises(RuntimeError), web.transaction():
        web.define_kind("rhymes_with", symmetric=True)
        web.link("note-x", "rhymes_with", "note-y")
        raise RuntimeError
    web.link("note-x", "part_of", "change")

    assert [] == web.links_from("note-y", group="custom")
    assert ["lnk-topic", "lnk-support"] == [link.id for link in web.links_from("note-y")]
    assert web.verify().ok


def test_a_kind_and_its_link_of_one_transaction_in_which_something_died_are_there_once(
    web: GraphStore,
) -> None:
    with web.transaction():
        web.define_kind("rhymes_with", symmetric=True)
        web.link("note-x", "rhymes_with", "note-y")
        web.add_node("fact", {}, id="mistake")
        web.retract("mistake", reason="at once")

    assert 1 == len(web.links_from("note-y", "rhymes_with"))
    assert web.verify().ok


@pytest.mark.parametrize("lost", ["nothing", "index"])
def test_symmetric_links_are_read_both_ways_after_opening_again(
    disk_store: GraphStore, clock: object, lost: str
) -> None:
    disk_store.define_kind("rhymes_with", symmetric=True)
    for id in ("note-x", "note-y"):
        disk_store.add_node("fact", {}, id=id)
    disk_store.link("note-x", "rhymes_with", "note-y")
    disk_store.close()
    for copy in disk_store.path.glob("index*") if lost == "index" else ():
        copy.unlink()

    with graphstore.open(disk_store.path, clock=clock) as again:
        assert [("note-y", "rhymes_with", "note-x")] == sentences(again.links_from("note-y"))


# ---------------------------------------------------------------------- each pair once


def test_a_pair_is_named_by_its_supersession_though_another_link_began_before(store: GraphStore) -> None:
    store.add_node("fact", {"v": 1}, id="old-one", valid_from="2026-01-01")
    store.add_node("fact", {"v": 2}, id="new-one", valid_from="2026-01-05")
    store.link("new-one", "transition", "old-one", created_by="store", valid_from="2026-01-05")
    store.link("new-one", "corrects", "old-one", valid_from="2026-01-05")
    store.supersede("old-one", by="new-one", valid_from="2026-01-10")

    (step,) = store.what_superseded("old-one").chain
    assert ("superseded", "supersedes", day("2026-01-10")) == (step.how, step.link.kind, step.since)
    assert ["supersedes"] == [link.kind for link in store.supersedes("new-one")]


def test_before_it_the_pair_is_named_by_its_transition(store: GraphStore) -> None:
    store.add_node("fact", {"v": 1}, id="old-one", valid_from="2026-01-01")
    store.add_node("fact", {"v": 2}, id="new-one", valid_from="2026-01-05")
    store.link("new-one", "transition", "old-one", created_by="store", valid_from="2026-01-05")
    store.supersede("old-one", by="new-one", valid_from="2026-01-10")
    view = store.as_of(valid="2026-01-07")

    assert ["transition"] == [step.link.kind for step in view.what_superseded("old-one").chain]
    assert ["transition"] == [link.kind for link in view.supersedes("new-one")]


# ---------------------------------------------------------------- many links that are long dead


Span = tuple[datetime, datetime | None]


def outside(whole: Span, hole: Span) -> list[Span]:
    """The pieces of a period outside another; an end that is open is None."""
    pieces = [(whole[0], hole[0]), (hole[1], whole[1])]
    if (hole[1] is not None and hole[1] <= whole[0]) or (whole[1] is not None and whole[1] <= hole[0]):
        return [whole]
    return [(left, right) for left, right in pieces if left is not None and (right is None or left < right)]


class Hub:
    """A thing whose links come and go, whole or in part, beside a plain list of all their rows."""

    OTHERS = [f"other-{number}" for number in range(40)]

    def __init__(self, store: GraphStore, seed: int) -> None:
        self.store, self.chance = store, random.Random(seed)
        self.rows: list[Link] = []
        for id in ("hub", *self.OTHERS):
            store.add_node("fact", {}, id=id, valid_from="2026-01-01")

    def day(self, most: int = 50) -> datetime:
        return day("2026-01-01") + timedelta(days=self.chance.randrange(most))

    def link(self) -> None:
        ends = ["hub", self.chance.choice(self.OTHERS)]
        if self.chance.random() < 0.3:
            ends.reverse()
        kind, start = self.chance.choice(["uses", "related_to", "blocks"]), self.day()
        stop = self.chance.choice([None, start + timedelta(days=self.chance.randrange(1, 9))])
        confidence = self.chance.choice(["explicit", "inferred"])
        with suppress(ConflictError):
            link = self.store.link(
                *[ends[0], kind, ends[1]], valid_from=start, valid_to=stop, confidence=confidence
            )
            alike = [
                row for row in self.rows
                if row.tx_to is None
                and row.kind == kind
                and ([row.source, row.target] == ends or (kind == "related_to" and {row.source, row.target} == {*ends}))
            ]  # fmt: skip
            for begun, ended in self.unsaid(alike, start, stop, confidence):
                for id in {link.id, *(row.id for row in alike)}:
                    self.cut(id, begun, ended)
                now = {
                    "valid_from": begun,
                    "valid_to": ended,
                    "tx_from": self.store.at.tx,
                    "confidence": confidence,
                }
                self.rows.append(link.model_copy(update=now))

    def unsaid(self, alike: list[Link], start: datetime, stop: datetime | None, confidence: str):
        """The parts of a period over which no row says the same."""
        left = [(start, stop)]
        for row in alike:
            if row.confidence == confidence:
                left = [piece for part in left for piece in outside(part, (row.valid_from, row.valid_to))]
        return left

    def unlink(self) -> None:
        believed = sorted({row.id for row in self.rows if row.tx_to is None})
        if believed:
            id, start = self.chance.choice(believed), self.day()
            stop = start + timedelta(days=self.chance.randrange(1, 60))
            with suppress(NotFoundError):
                self.store.unlink(id, valid_from=start, valid_to=stop)
                self.cut(id, start, stop)

    def cut(self, id: str, start: datetime, stop: datetime | None) -> None:
        now = self.store.at.tx
        for row in [row for row in self.rows if row.id == id and row.tx_to is None]:
            held = (row.valid_from, row.valid_to)
            pieces = outside(held, (start, stop))
            if pieces != [held]:
                self.rows.remove(row)
                self.rows.append(row.model_copy(update={"tx_to": now}))
                for left, right in pieces:
                    piece = {"valid_from": left, "valid_to": right, "tx_from": now}
                    self.rows.append(row.model_copy(update=piece))

    def undone(self) -> None:
        """A transaction that fails after it was read in."""
        kept = list(self.rows)
        with suppress(RuntimeError), self.store.transaction():
            for _ in range(20):
                self.link()
            for row in [row for row in self.rows if row.tx_to is None and row.tx_from < self.store.at.tx]:
                self.store.unlink(row.id, valid_from=row.valid_from, valid_to=row.valid_to)
            self.seen(self.store)
            raise RuntimeError
        self.rows = kept

    def seen(self, view: Reader) -> list[str]:
        return sorted({link.id for link in (*view.links_from("hub"), *view.backlinks_to("hub"))})

    def recorded(self, at: Coordinate) -> list[str]:
        return sorted(
            row.id
            for row in self.rows
            if row.valid_from <= at.valid
            and (row.valid_to is None or at.valid < row.valid_to)
            and row.tx_from <= at.tx
            and (row.tx_to is None or at.tx < row.tx_to)
        )


@pytest.mark.parametrize("seed", seeds(1, 2, 50))
def test_a_thing_with_many_links_shows_those_that_hold_at_each_coordinate(store, clock, seed):
    hub = Hub(store, seed)
    coordinates = []
    for turn in range(350):
        clock.move(minutes=1)
        hub.chance.choice([hub.link, hub.link, hub.unlink])()
        if turn % 40 == 39:
            clock.move(minutes=1)
            hub.undone()
        coordinates.append(store.as_of(valid=hub.day(70)).at)
        if turn % 5 == 0:
            for at in [coordinates[-1], *hub.chance.sample(coordinates, min(4, len(coordinates)))]:
                assert hub.recorded(at) == hub.seen(store.as_of(valid=at.valid, tx=at.tx))
    assert 80 < len({row.id for row in hub.rows if row.source == "hub"})


def test_a_link_among_many_that_were_over_is_shown_again_when_it_is_said_for_longer(store):
    for id in ("hub", *Hub.OTHERS, *(f"more-{number}" for number in range(40))):
        store.add_node("fact", {}, id=id, valid_from="2026-01-01")
    for other in store.nodes()[1:]:
        attributes = {"valid_from": "2026-01-01", "valid_to": "2026-01-02", "confidence": "inferred"}
        store.link("hub", "related_to", other.id, **attributes)
    assert [] == store.links_from("hub")

    store.link("hub", "related_to", "other-7", valid_from="2026-01-01")

    assert ["other-7"] == [link.target for link in store.links_from("hub")]
    assert ["hub"] == [link.target for link in store.links_from("other-7")]
