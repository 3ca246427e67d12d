"""The invariants, each as one property over small random histories in dense cells of a day."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, NotFoundError
from tests.support.seeds import examples

DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LAST = 8
AFTER = FIRST + (LAST + 2) * DAY

cell = st.integers(0, LAST)
span = st.tuples(cell, cell).filter(lambda pair: pair[0] < pair[1])
ends = st.tuples(cell, cell | st.none()).filter(lambda pair: pair[1] is None or pair[0] < pair[1])
# what is said of one node, over a period: a colour, or that it should not have been said
sayings = st.lists(st.tuples(st.sampled_from(["red", "green", None]), ends), max_size=7)
patient = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


class Clock:
    def __init__(self) -> None:
        self.now = AFTER

    def __call__(self) -> datetime:
        return self.now


def at(number: int | None) -> datetime | None:
    return None if number is None else FIRST + number * DAY


def moved(store: GraphStore, clock: Clock) -> datetime:
    """An hour later; what was the instant before."""
    before = clock.now
    clock.now += timedelta(hours=1)
    return before


def opened(path: Any = ":memory:") -> tuple[GraphStore, Clock]:
    clock = Clock()
    return graphstore.open(path, clock=clock), clock


def say(store: GraphStore, id: str, colour: str | None, period: tuple[int, int | None]) -> bool:
    """Say it; False when there was nothing to take back."""
    start, stop = at(period[0]), at(period[1])
    try:
        if colour is None:
            store.retract(id, valid_from=start, valid_to=stop, reason="wrong")
        elif stop is None:
            # said to the end of time, not to the end of the present validity
            store.revise(id, {"colour": colour}, valid_from=start, valid_to="9999-12-31T23:59:59.999999Z")
        else:
            store.revise(id, {"colour": colour}, valid_from=start, valid_to=stop)
    except NotFoundError:
        return False
    return True


def colours(store: GraphStore, id: str, tx: datetime | None = None) -> list[str | None]:
    """What it is at each cell, the last one standing for all later ones."""
    found: list[str | None] = []
    for number in range(LAST + 2):
        try:
            found.append(store.as_of(valid=at(number), tx=tx).node(id).content["colour"])
        except NotFoundError:
            found.append(None)
    return found


def painted(cells: list[str | None], colour: str | None, period: tuple[int, int | None]) -> list[str | None]:
    stop = len(cells) if period[1] is None else period[1]
    return [colour if period[0] <= number < stop else old for number, old in enumerate(cells)]


def surely(refusal: type[Exception], verb: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with pytest.raises(refusal):
        verb(*args, **kwargs)


# ---------------------------------------------------------------------- I1, I2, I4: one node in dense cells


@patient
@given(ends, sayings)
def test_i4_each_cell_says_what_was_said_of_it_last(first, said):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
        )
        cells = painted([None] * (LAST + 2), "blue", first)
        for colour, period in said:
            moved(store, clock)
            say(store, "node-1", colour, period)
            cells = painted(cells, colour, period)

            assert cells == colours(store, "node-1")


@patient
@given(ends, sayings)
def test_i1_past_beliefs_never_change(first, said):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
        )
        known = {clock.now: colours(store, "node-1")}
        for colour, period in said:
            moved(store, clock)
            say(store, "node-1", colour, period)
            known[clock.now] = colours(store, "node-1")
        for tx, cells in known.items():
            assert cells == colours(store, "node-1", tx)


@patient
@given(ends, sayings)
def test_i2_believed_rows_never_overlap_and_none_is_empty(first, said):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
        )
        for colour, period in said:
            moved(store, clock)
            say(store, "node-1", colour, period)
        for tx in {version.tx_from for version in store.versions("node-1")}:
            rows = store.as_of(tx=tx).history("node-1")
            assert all(row.valid_to is None or row.valid_from < row.valid_to for row in rows)
            for left, right in itertools.pairwise(rows):
                assert left.valid_to is not None
                assert left.valid_to <= right.valid_from
        assert all(v.tx_to is None or v.tx_from < v.tx_to for v in store.versions("node-1"))


@patient
@given(ends, sayings)
def test_i4_pieces_keep_number_and_content(first, said):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
        )
        for colour, period in said:
            moved(store, clock)
            say(store, "node-1", colour, period)
        described: dict[int, Any] = {}
        for version in store.versions("node-1"):
            assert version.ref == f"node-1-v{version.number}"
            about = (version.content, version.text, version.tags, version.trigger, version.source)
            assert about == described.setdefault(version.number, about)
        assert sorted(described) == list(range(1, len(described) + 1))


@patient
@given(ends, sayings)
def test_said_in_one_block_or_one_by_one_the_cells_are_the_same(first, said):
    (alone, clock), (together, _) = opened(), opened()
    with alone, together:
        for store in (alone, together):
            store.add_node(
                "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
            )
        before = together.stats()["transactions"]
        for colour, period in said:
            moved(alone, clock)
            say(alone, "node-1", colour, period)
        with together.transaction():
            for colour, period in said:
                say(together, "node-1", colour, period)

        assert colours(alone, "node-1") == colours(together, "node-1")
        assert together.stats()["transactions"] <= before + 1
        assert len({version.tx_from for version in together.versions("node-1")} - {AFTER}) <= 1


@patient
@given(ends, sayings)
def test_block_left_by_an_exception_leaves_nothing(first, said):
    store, _ = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="node-1", valid_from=at(first[0]), valid_to=at(first[1])
        )
        before = store.versions("node-1"), store.stats(), store.changes()
        with pytest.raises(ZeroDivisionError), store.transaction():
            store.add_node("fact", {}, id="node-2")
            store.link("node-2", "related_to", "node-1")
            for colour, period in said:
                say(store, "node-1", colour, period)
            _ = 1 / 0

        assert before == (store.versions("node-1"), store.stats(), store.changes())
        surely(NotFoundError, store.inspect, "node-2")


# ---------------------------------------------------------------------- superseding and giving back


@patient
@given(ends, st.lists(st.tuples(cell, ends), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_unlinking_every_successor_in_any_order_gives_all_back(first, successors, random):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="old-node", valid_from=at(first[0]), valid_to=at(first[1])
        )
        before = colours(store, "old-node")
        links = []
        for number, (start, _) in enumerate(successors):
            moved(store, clock)
            store.add_node("fact", {"colour": "red"}, id=f"new-node-{number}", valid_from=at(start))
            links += store.supersede("old-node", by=f"new-node-{number}")
        random.shuffle(links)
        for link in links:
            moved(store, clock)
            store.unlink(link.id, reason="no")

        assert before == colours(store, "old-node")


@patient
@given(ends, cell, span)
def test_unlinking_a_part_gives_back_that_part(first, start, part):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="old-node", valid_from=at(first[0]), valid_to=at(first[1])
        )
        before = colours(store, "old-node")
        store.add_node("fact", {"colour": "red"}, id="new-node", valid_from=at(start))
        link = store.supersede("old-node", by="new-node")[0]
        taken = colours(store, "old-node")
        moved(store, clock)
        try:
            store.unlink(link.id, valid_from=at(part[0]), valid_to=at(part[1]), reason="not then")
        except NotFoundError:
            assert at(part[1]) <= link.valid_from
        expected = [
            was if part[0] <= number < part[1] else is_
            for number, (was, is_) in enumerate(zip(before, taken, strict=True))
        ]

        assert expected == colours(store, "old-node")


@patient
@given(ends, cell, cell)
def test_second_successor_takes_nothing_twice(first, one, two):
    store, clock = opened()
    with store:
        store.add_node(
            "fact", {"colour": "blue"}, id="old-node", valid_from=at(first[0]), valid_to=at(first[1])
        )
        for name, start in (("new-one", one), ("new-two", two)):
            store.add_node("fact", {"colour": name}, id=name, valid_from=at(start), supersedes=["old-node"])
            moved(store, clock)
        cut = max(min(one, two), first[0])
        expected = painted(painted([None] * (LAST + 2), "blue", first), None, (cut, None))

        assert expected == colours(store, "old-node")
        assert len(store.as_of(valid=at(LAST + 1)).backlinks_to("old-node", kinds=["supersedes"])) == 2


# ---------------------------------------------------------------------- I3: instants


@patient
@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=1, max_size=8))
def test_i3_instants_rise_whatever_the_clock_and_restarts_do(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("rising") / "memory.gs"
    store, clock = opened(path)
    said = []
    for number, (hours, restart) in enumerate(steps):
        clock.now += timedelta(hours=hours)
        if restart:
            store.close()
            store = graphstore.open(path, clock=clock)
        said.append(store.add_node("fact", {}, id=f"node-{number}").tx_from)
        store.as_of()
    store.close()

    assert all(left < right for left, right in itertools.pairwise(said))


def test_i3_next_instant_is_later_than_every_view_handed_out():
    store, _clock = opened()
    with store:
        view = store.as_of()
        added = store.add_node("fact", {}, id="node-1")

        assert view.at.tx < added.tx_from
        surely(NotFoundError, view.node, "node-1")


def test_block_instant_given_by_the_caller_must_lie_between_the_last_and_the_clock():
    store, clock = opened()
    with store:
        with store.transaction(at=FIRST):
            store.add_node("fact", {}, id="node-1")
        assert store.inspect("node-1").node.tx_from == FIRST
        for wrong in (FIRST, FIRST - DAY, clock.now + DAY):
            with pytest.raises(GRAPH_REFUSALS), store.transaction(at=wrong):
                store.add_node("fact", {}, id="node-2")
        surely(NotFoundError, store.inspect, "node-2")


GRAPH_REFUSALS = (InvalidError, ConflictError)


def test_blocks_do_not_nest():
    store, _ = opened()
    with store, store.transaction(), pytest.raises(GRAPH_REFUSALS), store.transaction():
        pass


# ---------------------------------------------------------------------- what came and went in one transaction


def test_row_born_and_closed_in_one_block_is_never_stored():
    store, clock = opened()
    with store:
        store.add_node("fact", {"colour": "blue"}, id="node-1", valid_from=FIRST)
        moved(store, clock)
        with store.transaction():
            store.revise("node-1", {"colour": "red"})
            store.revise("node-1", {"colour": "green"})

        assert [(v.number, v.content["colour"]) for v in store.versions("node-1")] == [
            (1, "blue"),
            (2, "green"),
        ]
        assert store.node("node-1-v2").content["colour"] == "green"


def test_node_born_and_retracted_in_one_block_was_never_known():
    store, clock = opened()
    with store:
        with store.transaction():
            store.add_node("fact", {}, id="node-1")
            store.retract("node-1", reason="wrong")
        surely(NotFoundError, store.inspect, "node-1")
        moved(store, clock)
        store.add_node("fact", {}, id="node-1")

        assert store.node("node-1").number == 1


def test_revised_then_retracted_in_one_block_is_retracted():
    store, clock = opened()
    with store:
        store.add_node("fact", {}, id="node-1", valid_from=FIRST)
        moved(store, clock)
        with store.transaction():
            store.revise("node-1", {"colour": "red"}, valid_from=at(2), valid_to=at(6))
            store.retract("node-1", valid_from=at(3), valid_to=at(4), reason="wrong")

        assert store.as_of(valid=at(3)).inspect("node-1").node.standing == "retracted"


def test_node_superseded_in_the_block_that_made_it_is_known_as_superseded():
    store, _clock = opened()
    with store:
        with store.transaction():
            store.add_node("fact", {"colour": "blue"}, id="old-node")
            store.add_node("fact", {"colour": "red"}, id="new-node", supersedes=["old-node"])
        found = store.inspect("old-node").node

        assert (found.standing, found.content) == ("superseded", {"colour": "blue"})
        assert [thing.id for thing in store.what_superseded("old-node").current] == ["new-node"]
        assert store.history("old-node") == []


def test_refused_verb_leaves_nothing_and_the_block_goes_on():
    store, clock = opened()
    with store:
        store.add_node("fact", {"colour": "blue"}, id="old-node", valid_from=FIRST)
        store.add_node("fact", {"colour": "blue"}, id="third-node", valid_from=FIRST)
        moved(store, clock)
        with store.transaction():
            surely(
                NotFoundError,
                store.add_node,
                "fact",
                {},
                id="new-node",
                supersedes=["old-node", "no-such-node"],
            )
            surely(NotFoundError, store.supersede, "old-node", "no-such-node", by="third-node")
            store.add_node("fact", {"colour": "green"}, id="other-node")

        surely(NotFoundError, store.inspect, "new-node")
        assert store.node("old-node").content["colour"] == "blue"
        assert store.node("other-node").content["colour"] == "green"
        assert store.backlinks_to("old-node") == []


def test_beginnings_are_right_after_a_block_that_failed():
    store, _clock = opened()
    one, other, third = "aaaaaa0000000001", "bbbbbb0000000001", "cccccc0000000001"
    with store:
        store.add_node("fact", {}, id=one)
        with pytest.raises(ZeroDivisionError), store.transaction():
            store.add_node("fact", {}, id=other)
            assert store.whole_id("bbbbbb") == other
            _ = 1 / 0
        store.add_node("fact", {}, id=third)

        assert store.whole_id("cccccc") == third
        assert store.whole_id("bbbbbb") == "bbbbbb"


# ---------------------------------------------------------------------- superseding: the corners


def test_superseded_only_for_a_time_is_ended_after_it():
    store, _clock = opened()
    with store:
        store.add_node("fact", {}, id="old-node", valid_from=at(0), valid_to=at(4))
        store.add_node("fact", {}, id="new-node", valid_from=at(0))
        store.link("new-node", "supersedes", "old-node", valid_to=at(4))

        standings = [store.as_of(valid=at(n)).inspect("old-node").node.standing for n in (2, 5)]
        assert standings == ["superseded", "ended"]
        assert store.as_of(valid=at(0) - DAY).inspect("old-node").node.standing == "superseded"


def test_retracted_part_stays_retracted_when_the_rest_is_superseded():
    store, clock = opened()
    with store:
        store.add_node("fact", {}, id="old-node", valid_from=at(0))
        store.add_node("fact", {}, id="new-node", valid_from=at(0))
        store.retract("old-node", valid_from=at(3), valid_to=at(5), reason="wrong")
        moved(store, clock)
        store.supersede("old-node", by="new-node")

        standings = [store.as_of(valid=at(n)).inspect("old-node").node.standing for n in (2, 4, 6)]
        assert standings == ["superseded", "retracted", "superseded"]


def test_what_was_described_and_taken_in_one_block_comes_back():
    store, clock = opened()
    with store:
        store.add_node("fact", {"colour": "blue"}, id="old-node", valid_from=at(0))
        store.add_node("fact", {}, id="new-node", valid_from=at(0))
        moved(store, clock)
        with store.transaction():
            store.revise("old-node", {"colour": "red"})
            link = store.supersede("old-node", by="new-node")[0]
        moved(store, clock)
        store.unlink(link.id)

        assert store.node("old-node").content == {"colour": "red"}


def test_block_that_takes_itself_back_leaves_every_answer_as_it_was():
    store, clock = opened()
    with store:
        store.add_node("fact", {"colour": "blue"}, id="old-node", valid_from=at(0))
        store.add_node("fact", {}, id="new-node", valid_from=at(3))
        before = colours(store, "old-node")
        moved(store, clock)
        with store.transaction():
            store.unlink(store.supersede("old-node", by="new-node")[0].id)

        assert before == colours(store, "old-node")
        assert store.backlinks_to("old-node") == []


def test_view_of_a_follower_stays_where_it_is(tmp_path):
    store, clock = opened(tmp_path / "memory.gs")
    store.add_node("fact", {}, id="node-1", valid_from=FIRST)
    with store, graphstore.open(tmp_path / "memory.gs", clock=clock, read_only=True) as follower:
        clock.now += DAY
        store.add_node("fact", {}, id="node-2", valid_from=FIRST)
        views = [follower.as_of()]
        with contextlib.suppress(InvalidError):  # it may say that it does not know yet
            views.append(follower.as_of(tx=clock.now))
        before = [view.nodes() for view in views]
        follower.refresh()

        assert before == [view.nodes() for view in views]
        assert [node.id for node in follower.nodes()] == ["node-1", "node-2"]
