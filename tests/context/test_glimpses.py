"""What a person looks at: the two clocks, a thing with what is around it, causes laid out in time. Each answer is bounded."""

from __future__ import annotations

import pytest

from graphstore import InvalidError, NotFoundError
from graphstore.context import glimpses
from tests.conftest import day

pytestmark = pytest.mark.served


@pytest.fixture
def auth(store, clock):
    store.add_node("fact", {"says": "sessions"}, id="sessions", text="sessions", valid_from="2026-01-01")
    clock.move(days=1)
    store.add_node(
        "fact",
        {"says": "tokens"},
        id="tokens",
        text="tokens",
        valid_from="2026-01-20",
        supersedes="sessions",
        reason="no restart",
    )
    store.link("tokens", "caused_by", "sessions", reason="they were lost")
    return store


def test_the_clocks_count_what_begins_and_ends_and_what_was_recorded(auth):
    found = glimpses.clocks(auth, 10)

    assert 10 == len(found.valid.counts) == len(found.tx.counts)
    assert (day("2026-01-01"), 2) == (found.valid.since, found.valid.changes)
    assert found.valid.changes == sum(found.valid.counts)
    assert (3, 3) == (found.tx.changes, sum(found.tx.counts))


def test_the_clock_of_the_world_is_as_it_was_known(auth):
    before = auth.versions("sessions")[0].tx_from

    assert 1 == glimpses.clocks(auth.as_of(tx=before)).valid.changes
    assert 0 == glimpses.clocks(auth.as_of(tx="2020-01-01")).tx.changes


def test_from_change_to_change_on_either_clock(auth):
    assert day("2026-01-20") == glimpses.next_change(auth, "valid", "2026-01-01")
    assert day("2026-01-01") == glimpses.next_change(auth, "valid", "2026-01-20", back=True)
    assert glimpses.next_change(auth, "valid", "2026-01-01", back=True) is None
    first = glimpses.next_change(auth, "tx", "2020-01-01")
    assert first == auth.versions("sessions")[0].tx_from
    with pytest.raises(InvalidError, match="axis"):
        glimpses.next_change(auth, "space", "2026-01-01")


def test_what_was_recorded_last_comes_first(auth):
    assert ["tokens"] == [each.id for each in glimpses.latest(auth, 5)]
    assert ["tokens", "tokens"] == [each.subject for each in glimpses.recent(auth, 2)][-1:] * 2
    assert ["link"] == [each.verb for each in glimpses.recent(auth, 1)]


def test_a_glimpse_says_what_took_its_place_and_counts_the_links_it_leaves_out(auth):
    found = glimpses.glimpse(auth, "sessions", limit=1)

    assert ("superseded", ["tokens"]) == (found.thing.standing, [each.id for each in found.current])
    assert ["superseded"] == [step.how for step in found.steps]
    assert (1, 2) == (len(found.backlinks), found.backlinks_total)
    assert {"tokens": "tokens"} == found.names
    with pytest.raises(NotFoundError):
        glimpses.glimpse(auth, "nothing")
    with pytest.raises(NotFoundError, match="is the link tokens caused_by sessions"):
        glimpses.glimpse(auth, auth.links_from("tokens", "caused_by")[0].id)


def test_a_glimpse_says_why_a_thing_is_shaky(store):
    store.add_node("fact", {}, id="ground")
    store.add_node("fact", {}, id="house")
    store.link("house", "derived_from", "ground")
    store.retract("ground", reason="it was sand")

    shaky = glimpses.glimpse(store, "house").shaky
    assert shaky is not None
    assert ("ground", "it was sand") == (shaky.root.id, shaky.why)


def test_causes_lie_from_left_to_right_in_time_and_no_link_is_within_a_column(auth):
    found = glimpses.causes(auth, "tokens", "walk")
    column = {place.id: place.column for place in found.places}

    assert column["sessions"] < column["tokens"]
    assert all(column[link.source] != column[link.target] for link in found.chain.links)
    assert 0 == found.left_out
    with pytest.raises(InvalidError, match="way"):
        glimpses.causes(auth, "tokens", "dreams")


def test_of_many_causes_the_rest_is_counted(store):
    store.add_node("fact", {}, id="end", valid_from="2026-02-01")
    for number in range(12):
        store.add_node("fact", {}, id=f"c{number}", valid_from=f"2026-01-{number + 1:02}")
        store.link("end", "caused_by", f"c{number}")

    found = glimpses.causes(store, ["end"], limit=5)
    assert (5, 8) == (len(found.places), found.left_out)
    assert len({(place.column, place.row) for place in found.places}) == 5


def test_what_was_recorded_last_is_what_sorting_all_of_it_gives(store, clock):
    for number in range(40):
        clock.move(hours=1)
        store.add_node("fact", {"n": number}, id=f"f{number}", valid_from="2026-01-01")
        if number % 3 == 0:
            store.retract(f"f{number // 2}", valid_from="2026-01-20", reason="no")
        if number % 5 == 0:
            store.amend(f"f{number}", {"m": 1}, valid_from="2026-01-10")

    for valid in ("2026-01-05", "2026-01-15", "2026-01-25"):
        here = store.as_of(valid=valid)
        stand = sorted(here.nodes(), key=lambda node: node.recorded_at, reverse=True)
        for most in (1, 7, 100):
            assert [node.id for node in stand[:most]] == [each.id for each in glimpses.latest(here, most)]


def test_what_was_written_last_is_the_end_of_the_changes(auth):
    for most in (1, 2, 50):
        assert auth.changes()[: -most - 1 : -1] == glimpses.recent(auth, most)


def test_what_was_written_is_named_and_a_link_is_a_sentence(auth):
    link = auth.links_from("tokens", "caused_by")[0].id
    auth.add_node("fact", {"minutes": 40, "ended": True}, id="bare")
    auth.record_event("error", "it broke", id="broken")
    auth.retract("sessions", reason="never so")

    found = glimpses.named(auth, ["sessions", link, "bare", "broken", "nobody"])
    assert {"sessions", link, "bare", "broken"} == set(found)
    assert ("tokens", "caused_by", "tokens caused by sessions") == (
        found[link].id,
        found[link].kind,
        found[link].text,
    )
    assert ("sessions", "fact") == (found["sessions"].text, found["sessions"].kind)
    assert ("ended True, minutes 40", "it broke") == (found["bare"].text, found["broken"].text)
    with pytest.raises(InvalidError, match="500 at most"):
        glimpses.named(auth, [f"n{number}" for number in range(501)])


def test_what_pages_show_by_is_kept_in_the_store(store):
    assert ("agent" in glimpses.settings(store).agents, 80) == (True, glimpses.settings(store).amber)

    glimpses.set_settings(store, agents=["aide"], red=90)
    found = glimpses.set_settings(store, amber=70.5)
    assert (("aide",), 70.5, 90, 50) == (found.agents, found.amber, found.red, found.missing)
    assert found == glimpses.settings(store)
    for wrong in (-1, True, float("nan"), "80"):
        with pytest.raises(InvalidError, match="amber"):
            glimpses.set_settings(store, amber=wrong)
    with pytest.raises(InvalidError):
        glimpses.set_settings(store, agents=[""])
    before = len(store.changes())
    glimpses.set_settings(store, red=90)
    assert before == len(store.changes())


def test_things_and_links_of_an_answer_are_laid_out(auth):
    link = auth.links_from("tokens", "caused_by")[0].id
    auth.add_node("fact", {}, id="apart")

    found = glimpses.graph(auth, ["tokens", "apart", "sessions", "nobody"], [link, "lnk_unknown"])
    assert {"tokens", "apart", "sessions"} == {place.id for place in found.places}
    assert [link] == [each.id for each in found.chain.links] and 0 == found.left_out
    assert [] == list(glimpses.graph(auth, ["tokens", "apart"], [link]).chain.links)
    with pytest.raises(NotFoundError, match="none of the 1 ids"):
        glimpses.graph(auth, ["nobody"])
    with pytest.raises(InvalidError, match="ids is empty"):
        glimpses.graph(auth, [])
