"""Events that come again: one event, its occurrences, and what its links and time make of it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest

import graphstore
from graphstore import GraphStore, InvalidError, NotFoundError
from graphstore.read.occurrences import EventsAt
from graphstore.read.working_set import KnownKinds, WorkingSet
from graphstore.values.period import instant, moment
from tests.conftest import day
from tests.support.ledger_rows import heads

pytestmark = pytest.mark.in_process("looks into the index")

ERROR = ("error", "TypeError at 0x7ffe21: request 123456 failed")
SAME = ("error", "TypeError at 0x00bf19: request 987654321 failed")
OTHER = ("error", "TypeError at 0x7ffe21: request 404 failed")


def at(hour: int) -> datetime:
    """An hour of the day the tests play on."""
    return day("2026-01-10") + timedelta(hours=hour)


def seen(event: graphstore.Event) -> tuple[datetime, datetime, int]:
    return event.first_seen, event.last_seen, event.count


def rows_of(store: GraphStore) -> WorkingSet:
    """What the store has committed."""
    return WorkingSet(store._core.rows.database, KnownKinds(), lambda: None)


def happened(store: GraphStore, valid: datetime | None = None) -> tuple[EventsAt, int]:
    """What the store knows at `valid` (default: now) of the one event it has, or of the first."""
    index = rows_of(store)
    return EventsAt(index, store._core.raw, instant(valid or day("2026-02-01")), index.last_tx), 0


def episodes(store: GraphStore, valid: datetime | None = None) -> list[tuple[datetime, datetime | None]]:
    known, ent = happened(store, valid)
    return [(moment(start), None if stop is None else moment(stop)) for start, stop in known.episodes(ent)]


def occurrences(store: GraphStore, id: str) -> list[datetime]:
    index = rows_of(store)
    known = EventsAt(index, store._core.raw, instant(day("2026-02-01")), index.last_tx)
    return [moment(one) for one in known.instants(index.ids[id])]


# ---------------------------------------------------------------- what is one event


def test_the_same_error_again_is_an_occurrence(store):
    first = store.record_event(*ERROR, occurred_at=at(1))
    again = store.record_event(*SAME, occurred_at=at(3))

    assert (True, False) == (first.is_new, again.is_new)
    assert first.event.id == again.event.id
    assert (at(1), at(3), 2) == seen(again.event) == seen(store.event(first.event.id))
    assert 1 == len(store.events())


@pytest.mark.parametrize("type", ["error", "regression", "resolution"])
def test_types_that_repeat_are_known_by_their_fingerprint(store, type):
    store.record_event(type, "it happened")
    store.record_event(type, "it happened")

    assert [2] == [event.count for event in store.events()]
    assert 16 == len(store.events()[0].fingerprint)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ERROR, OTHER),
        (("error", "status 404"), ("error", "status 500")),
        (("error", "broken"), ("regression", "broken")),
        (("note", "it happened"), ("note", "it happened")),
    ],
    ids=["number", "status", "type", "note"],
)
def test_what_differs_or_does_not_repeat_stays_apart(store, first, second):
    store.record_event(*first)
    store.record_event(*second)

    assert [1, 1] == [event.count for event in store.events()]


def test_another_source_is_another_event(store):
    store.record_event(*ERROR, source="a.js:1")
    store.record_event(*ERROR, source="b.js:1")

    assert [1, 1] == [event.count for event in store.events()]


def test_other_types_have_a_fingerprint_when_the_caller_gives_one(store):
    store.record_event("alert", "disk 81 % full", fingerprint="disk")
    store.record_event("alert", "disk 92 % full", fingerprint="disk")

    assert [("disk 81 % full", 2)] == [(event.description, event.count) for event in store.events()]


@pytest.mark.parametrize("type", ["deploy", "fix"])
def test_deploys_and_fixes_are_each_their_own(store, type):
    store.record_event(type, "v2", fingerprint="the same")
    store.record_event(type, "v2", fingerprint="the same")

    assert [1, 1] == [event.count for event in store.events()]


def test_a_fingerprint_of_another_type_is_another_event(store):
    store.record_event("deploy", "v2", fingerprint="x")
    store.record_event("alert", "v2", fingerprint="x")
    store.record_event("warning", "v2", fingerprint="x")

    assert ["alert", "deploy", "warning"] == sorted(event.type for event in store.events())


def test_a_fingerprint_in_the_metadata_is_only_metadata(store):
    store.record_event("alert", "one", metadata={"fingerprint": "x"})

    assert store.record_event("alert", "two", fingerprint="x").is_new


def test_a_fingerprint_is_any_text(store):
    for given in ('"', "\\", 'a","metadata":"', "é\n", ""):
        assert [True, False] == [store.record_event("alert", "x", fingerprint=given).is_new for _ in range(2)]


def test_an_id_asks_for_an_event_of_its_own(store):
    store.record_event(*ERROR, id="the-first")
    store.record_event(*ERROR, id="the-second")

    assert [1, 1] == [event.count for event in store.events()]
    assert "the-second" == store.record_event(*ERROR).event.id, "of several the one recorded last"


def test_the_same_id_with_the_same_content_is_no_occurrence(store):
    store.record_event(*ERROR, id="the-error", occurred_at=at(1))
    again = store.record_event(*ERROR, id="the-error", occurred_at=at(1))

    assert (False, 1) == (again.is_new, again.event.count)


def test_an_event_keeps_what_it_was_reported_as_first_and_shows_the_metadata_of_the_latest(store):
    store.record_event("alert", "d", fingerprint="x", source="a", agent="one", metadata={"n": 1})
    again = store.record_event(
        "alert", "e", fingerprint="x", source="b", agent="two", metadata={"n": 2}
    ).event

    assert ("d", "a", "one", {"n": 2}) == (again.description, again.source, again.agent, again.metadata)


def test_a_retracted_event_does_not_come_again(store):
    first = store.record_event(*ERROR).event
    store.retract(first.id, reason="a false alarm")
    second = store.record_event(*ERROR)

    assert second.is_new
    assert [(second.event.id, 1)] == [(event.id, event.count) for event in store.events()]


def test_a_superseded_event_does_not_come_again(store, clock):
    first = store.record_event(*ERROR, occurred_at=at(1)).event
    newer = store.record_event("baseline_shift", "slower now", occurred_at=at(2)).event
    store.supersede(first.id, by=newer.id)

    assert store.record_event(*ERROR).is_new
    assert "superseded" == store.event(first.id).status


def test_after_the_newest_is_retracted_the_one_before_comes_again(store):
    store.record_event(*ERROR, id="older")
    store.record_event(*ERROR, id="newer")
    store.retract("newer", reason="said twice")

    assert "older" == store.record_event(*ERROR).event.id


def test_fifty_threads_record_one_error(disk_store):
    threads = [threading.Thread(target=disk_store.record_event, args=ERROR) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [50] == [event.count for event in disk_store.events()]
    assert disk_store.verify().ok


# ---------------------------------------------------------------- at a coordinate


def test_an_occurrence_is_known_from_its_transaction_on(store, clock):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    before = store.as_of()
    clock.move(days=1)
    store.record_event(*ERROR, occurred_at=at(3))

    assert (at(1), at(1), 1) == seen(before.event(id))
    assert (at(1), at(3), 2) == seen(store.event(id))


def test_an_occurrence_holds_from_its_instant_on(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    store.record_event(*ERROR, occurred_at=at(5))
    store.record_event(*ERROR, occurred_at=at(3))

    found = [seen(store.as_of(valid=at(hour)).event(id)) for hour in (1, 2, 3, 4, 5)]
    assert [(at(1), at(1), 1)] * 2 + [(at(1), at(3), 2)] * 2 + [(at(1), at(5), 3)] == found


def test_an_earlier_occurrence_makes_the_event_stand_from_then_on(store, clock):
    id = store.record_event(*ERROR, occurred_at=at(5)).event.id
    before = store.as_of(valid=at(3))
    clock.move(days=1)
    store.record_event(*ERROR, occurred_at=at(2))
    event = store.event(id)

    assert (at(2), at(5), 2) == seen(event)
    assert event.occurred_at == event.first_seen
    assert (at(2), at(2), 1) == seen(store.as_of(valid=at(3)).event(id))
    with pytest.raises(NotFoundError, match="not yet"):
        before.event(id)
    with pytest.raises(NotFoundError, match="not yet"):
        store.as_of(valid=at(1)).event(id)


def test_the_event_keeps_when_it_was_first_told(store, clock):
    first = store.record_event(*ERROR, occurred_at=at(5)).event
    clock.move(days=1)
    again = store.record_event(*ERROR, occurred_at=at(2)).event

    assert (first.tx_from, None) == (again.tx_from, again.tx_to)


@pytest.mark.parametrize("hours", [(5, 3, 1), (1, 3, 5), (3, 5, 1), (3, 1, 5), (3, 3, 1)])
def test_occurrences_told_in_one_transaction_are_all_there(disk_store, clock, hours):
    with disk_store.transaction():
        for hour in hours:
            id = disk_store.record_event(*ERROR, occurred_at=at(hour)).event.id
        inside = seen(disk_store.event(id))
    expected = (at(min(hours)), at(max(hours)), 3)

    assert [expected, expected] == [inside, seen(disk_store.event(id))]
    assert sorted(map(at, hours)) == occurrences(disk_store, id)
    assert disk_store.verify().ok


def test_a_transaction_that_adds_to_a_known_event(disk_store):
    id = disk_store.record_event(*ERROR, occurred_at=at(6)).event.id
    with disk_store.transaction():
        for hour in (5, 3, 7, 1):
            disk_store.record_event(*ERROR, occurred_at=at(hour))

    assert [at(hour) for hour in (1, 3, 5, 6, 7)] == occurrences(disk_store, id)
    assert disk_store.verify().ok


def test_an_event_that_dies_in_its_transaction_leaves_no_occurrence(disk_store):
    with disk_store.transaction():
        disk_store.record_event("note", "stays")
        for hour in (5, 3):
            id = disk_store.record_event(*ERROR, occurred_at=at(hour)).event.id
        disk_store.retract(id, reason="not so")

    assert ["stays"] == [event.description for event in disk_store.events()]
    assert [] == disk_store._core.rows.database.rows("SELECT number FROM occurrence")
    assert disk_store.verify().ok


def test_occurrences_of_an_event_retracted_in_the_same_transaction_are_kept(disk_store):
    id = disk_store.record_event(*ERROR, occurred_at=at(5)).event.id
    with disk_store.transaction():
        disk_store.record_event(*ERROR, occurred_at=at(3))
        disk_store.record_event(*ERROR, occurred_at=at(7))
        disk_store.retract(id, reason="not so")
    shown = disk_store.inspect(id).node

    assert ("retracted", (at(3), at(7), 3)) == (shown.standing, seen(shown))
    assert disk_store.verify().ok


def test_a_failed_block_takes_its_occurrences_back(store):
    id = store.record_event(*ERROR, occurred_at=at(5)).event.id
    with pytest.raises(RuntimeError), store.transaction():
        store.record_event(*ERROR, occurred_at=at(3))
        store.record_event(*OTHER)
        raise RuntimeError

    assert (at(5), at(5), 1) == seen(store.event(id))
    assert store.record_event(*OTHER).is_new
    assert not store.record_event(*SAME).is_new


def test_a_large_transaction_of_repeats(disk_store):
    with disk_store.transaction(reason="an import"):
        for number in range(1_200):
            id = disk_store.record_event(
                *ERROR, occurred_at=at(0) + timedelta(seconds=number % 1_000)
            ).event.id
    disk_store.close()
    with graphstore.open(disk_store.path, clock=disk_store._clock) as opened:
        assert (at(0), at(0) + timedelta(seconds=999), 1_200) == seen(opened.event(id))


def test_after_opening_again_a_repeat_is_still_one(disk_store, clock):
    disk_store.add_node("fact", {}, id="a-fact")
    id = disk_store.record_event(*ERROR, occurred_at=at(5)).event.id
    disk_store.record_event(*ERROR, occurred_at=at(3))
    disk_store.record_event("alert", "x", fingerprint="given")
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as opened:
        again = opened.record_event(*SAME, occurred_at=at(7))

        assert (id, False, (at(3), at(7), 3)) == (again.event.id, again.is_new, seen(again.event))
        assert not opened.record_event("alert", "y", fingerprint="given").is_new
        assert opened.verify().ok


def test_a_dump_restored_counts_the_same(store, tmp_path):
    id = store.record_event(*ERROR, occurred_at=at(5)).event.id
    store.record_event(*ERROR, occurred_at=at(3))
    store.export(tmp_path / "dump")
    with graphstore.restore(tmp_path / "dump", tmp_path / "copy.gs") as copy:
        assert store.event(id) == copy.event(id)


def test_heads_hold_no_fingerprint(disk_store):
    event = disk_store.record_event(*ERROR).event
    disk_store.record_event(*ERROR)
    assert [] == [head for head in heads(disk_store.path) if event.fingerprint in str(head)]


def test_events_between_are_those_with_an_occurrence_there(store):
    store.record_event(*ERROR, occurred_at=at(1))
    store.record_event(*ERROR, occurred_at=at(9))
    store.record_event(*OTHER, occurred_at=at(5))

    def between(since: int, until: int) -> list[str]:
        return [event.description for event in store.events(since=at(since), until=at(until))]

    assert [OTHER[1], ERROR[1]] == between(1, 10)
    assert [[ERROR[1]], [OTHER[1]], [ERROR[1]]] == [between(0, 5), between(5, 9), between(9, 10)]
    assert [] == between(2, 5)


def test_an_event_seen_more_often_is_neither_added_nor_removed(store, clock):
    store.record_event(*ERROR, occurred_at=at(5))
    before = store.as_of(valid=at(9))
    clock.move(days=1)
    store.record_event(*ERROR, occurred_at=at(2))
    store.record_event(*ERROR, occurred_at=at(7))

    assert not before.compare(store.as_of(valid=at(9)))
    assert 1 == len(store.as_of(valid=at(1)).compare(store.as_of(valid=at(9))).events_added)


# ---------------------------------------------------------------- status


def test_an_error_is_active_until_something_resolves_it(store):
    error = store.record_event(*ERROR, occurred_at=at(1)).event
    store.record_event("fix", "null check", related_to=error.id, occurred_at=at(4))

    assert "active" == error.status
    assert ["active", "resolved"] == [store.as_of(valid=at(h)).event(error.id).status for h in (3, 4)]


def test_a_repeat_after_a_resolution_is_active_again(store, clock):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    store.record_event("fix", "null check", related_to=id, occurred_at=at(4))
    before = store.as_of()
    clock.move(days=1)
    again = store.record_event(*ERROR, occurred_at=at(6)).event

    assert ("active", 2) == (again.status, again.count)
    assert "resolved" == before.event(id).status
    assert "resolved" == store.as_of(valid=at(5)).event(id).status
    assert [(at(1), at(4)), (at(6), None)] == episodes(store)
    assert [(at(1), at(4))] == episodes(store, at(5))


def test_a_resolution_that_comes_again_resolves_again(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    for hour in (2, 5, 8):
        store.record_event(*ERROR, occurred_at=at(hour))
        store.record_event("resolution", "quiet", related_to=id, occurred_at=at(hour + 1))

    assert "resolved" == store.event(id).status
    assert [(at(1), at(3)), (at(5), at(6)), (at(8), at(9))] == episodes(store)
    known, ent = happened(store)
    assert [at(3), at(6), at(9)] == [moment(one) for one in known.resolutions(ent)]
    assert "active" == store.as_of(valid=at(8)).event(id).status
    assert 1 == len(store.links_from(id)), "the same link is made once"


def test_a_resolution_at_the_last_occurrence_resolves(store):
    id = store.record_event(*ERROR, occurred_at=at(3)).event.id
    store.record_event("fix", "x", related_to=id, occurred_at=at(3))

    assert "resolved" == store.event(id).status
    assert [(at(3), at(3))] == episodes(store)


def test_unlinking_what_resolved_it_makes_it_active(store, clock):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    store.record_event("fix", "null check", related_to=id, occurred_at=at(4))
    resolved = store.as_of()
    clock.move(days=1)
    store.unlink(store.links_from(id)[0].id)

    assert ("resolved", "active") == (resolved.event(id).status, store.event(id).status)


def test_a_node_can_resolve_an_error(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    store.add_node("decision", {}, id="rewrite")
    store.link(id, "possibly_resolved_by", "rewrite", valid_from=at(4))

    assert ("active", "resolved") == (store.as_of(valid=at(3)).event(id).status, store.event(id).status)


def test_superseded_goes_before_resolved(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    fix = store.record_event("fix", "null check", related_to=id, occurred_at=at(4)).event
    store.supersede(id, by=fix.id)

    assert ("active", "superseded") == (store.as_of(valid=at(3)).event(id).status, store.event(id).status)


@pytest.mark.parametrize("type", ["incident", "outage", "bug", "alert", "baseline_shift", "a word of my own"])
def test_whatever_can_be_open_is_resolved_by_a_fix_that_names_it(store, type):
    id = store.record_event(type, "it hurts", occurred_at=at(1)).event.id
    store.record_event("fix", "null check", related_to=id, occurred_at=at(4))

    assert ["active", "resolved"] == [store.as_of(valid=at(h)).event(id).status for h in (3, 4)]


@pytest.mark.parametrize("type", ["deploy", "fix", "resolution", "confirmation", "message", "TEXT", "SYSTEM"])
def test_what_cannot_be_open_has_no_status(store, type):
    recorded = store.record_event(type, "it is done", occurred_at=at(1)).event
    fix = store.record_event("fix", "null check", related_to=recorded.id, occurred_at=at(4)).event

    assert [None, None] == [recorded.status, store.event(recorded.id).status]
    assert ["related_to"] == [link.kind for link in fix.links]
    store.supersede(recorded.id, by=fix.id)
    assert ("superseded", None) == (store.event(recorded.id).standing, store.event(recorded.id).status)


def test_a_message_of_any_type_has_no_status(store):
    said = store.record_event("chat", "it hurts", sender="ana", occurred_at=at(1)).event
    plain = store.record_event("chat", "it hurts", occurred_at=at(1), metadata={"authorized": True}).event

    assert (None, "active") == (store.event(said.id).status, store.event(plain.id).status)
    assert {said.id: None, plain.id: "active"} == {event.id: event.status for event in store.events()}
    rows = store.query("MATCH (e:Event) RETURN e.status AS status ORDER BY e.authorized").rows()
    assert {None, "active"} == {row["status"] for row in rows}


def test_what_was_taken_back_has_no_status(store, clock):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    before = store.as_of()
    clock.move(days=1)
    store.retract(id, reason="a drill")

    assert ("retracted", None) == (store.inspect(id).node.standing, store.inspect(id).node.status)
    assert "active" == before.event(id).status


def test_a_type_defined_as_a_point_cannot_be_open_from_then_on(store, clock):
    beat = store.record_event("heartbeat", "alive", occurred_at=at(1)).event
    before = store.as_of()
    clock.move(days=1)
    store.define_point("heartbeat")
    known = len(store.changes())
    store.define_point("heartbeat")
    store.define_point("deploy")
    store.record_event("fix", "null check", related_to=beat.id)

    assert (known + 1, "active") == (len(store.changes()), beat.status)
    assert ("active", None) == (before.event(beat.id).status, store.event(beat.id).status)
    assert ["related_to"] == [link.kind for link in store.event(beat.id).links]
    assert ("define_point", "heartbeat") == (store.changes()[1].verb, store.changes()[1].subject)


def test_undoing_it_makes_them_open_again_and_changes_no_past_view(store, clock):
    beat = store.record_event("heartbeat", "alive", occurred_at=at(1)).event
    clock.move(days=1)
    store.define_point("heartbeat")
    point = store.as_of()
    clock.move(days=1)
    store.undo(point.at.tx, reason="too early")

    assert (None, "active") == (point.event(beat.id).status, store.event(beat.id).status)


def test_it_is_so_in_the_transaction_that_defines_it(store):
    with store.transaction():
        store.define_point("heartbeat")
        assert store.record_event("heartbeat", "alive").event.status is None


def test_a_point_is_kept_in_the_store(tmp_path, clock):
    with graphstore.open(tmp_path / "s.gs", clock=clock) as store:
        store.define_point("heartbeat")
        id = store.record_event("heartbeat", "alive").event.id
    with graphstore.open(tmp_path / "s.gs", clock=clock) as store:
        assert store.event(id).status is None


@pytest.mark.parametrize("type", ["error", "regression", "", None])
def test_what_is_no_point_is_refused(store, type):
    with pytest.raises(graphstore.InvalidError):
        store.define_point(type)
    assert not store.changes()


def test_an_event_still_to_come_is_shown_as_it_begins(store):
    recorded = store.record_event(*ERROR, occurred_at="2026-03-01").event

    assert (day("2026-03-01"), day("2026-03-01"), 1) == seen(recorded)
    assert ("not_yet", "active") == (recorded.standing, recorded.status)


# ---------------------------------------------------------------- links


def test_an_events_links_are_those_at_either_end(store):
    cause = store.record_event("deploy", "v2", occurred_at=at(1)).event
    error = store.record_event(*ERROR, occurred_at=at(2)).event
    caused = store.link(error.id, "caused_by", cause.id, valid_from=at(2))
    fix = store.record_event("fix", "null check", related_to=error.id, occurred_at=at(4)).event
    resolved = store.links_from(error.id, "resolved_by")[0]

    assert (caused, resolved) == store.event(error.id).links
    assert (caused,) == store.as_of(valid=at(3)).event(error.id).links
    assert [(resolved,), (caused, resolved), (caused,)] == [event.links for event in store.events()]
    assert (resolved,) == fix.links
    assert (caused, resolved) == store.inspect(error.id).node.links


def test_the_end_of_something_else_shows_no_links(store):
    cause = store.record_event("deploy", "v2", occurred_at=at(1)).event
    error = store.record_event(*ERROR, occurred_at=at(2)).event
    store.link(error.id, "caused_by", cause.id)

    assert [None] == [event.links for event in store.causes(error.id).nodes]


@pytest.mark.parametrize("broken", ["error", "regression", "incident", "my own"])
@pytest.mark.parametrize("mending", ["fix", "resolution"])
@pytest.mark.parametrize("error_first", [True, False])
def test_resolved_by_runs_from_what_broke_whichever_was_recorded_first(store, broken, mending, error_first):
    order = (broken, mending) if error_first else (mending, broken)
    store.record_event(order[0], "one", id=order[0], occurred_at=at(1))
    store.record_event(order[1], "two", id=order[1], occurred_at=at(2), related_to=order[0])

    assert [(broken, "resolved_by", mending, at(2 if error_first else 1), "store")] == [
        (link.source, link.kind, link.target, link.valid_from, link.created_by)
        for link in store.links_from(broken)
    ]
    assert ("resolved" if error_first else "active") == store.event(broken).status


@pytest.mark.parametrize(
    "pair", [("fix", "resolution"), ("fix", "deploy"), ("incident", "deploy"), ("incident", "bug")]
)
def test_all_else_is_related(store, pair):
    other = store.record_event(pair[1], "two", occurred_at=at(2)).event
    event = store.record_event(pair[0], "one", occurred_at=at(1), related_to=other.id).event

    assert [(event.id, "related_to", other.id, at(1))] == [
        (link.source, link.kind, link.target, link.valid_from) for link in event.links
    ]


def test_a_link_minted_for_an_agent_names_it(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    for hour, agent in ((2, "claude"), (3, "codex"), (4, None)):
        again = store.record_event("resolution", "quiet", related_to=id, occurred_at=at(hour), agent=agent)
        assert () == again.warnings

    assert ["agent:claude"] == [link.created_by for link in store.links_from(id, "resolved_by")]


def test_a_link_the_store_minted_stays_its_own(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    store.record_event("resolution", "quiet", related_to=id, occurred_at=at(2))
    again = store.record_event("resolution", "quiet", related_to=id, occurred_at=at(3), agent="claude")

    assert ((), ["store"]) == (again.warnings, [link.created_by for link in store.links_from(id)])


def test_a_fix_is_related_to_a_node(store):
    store.add_node("fact", {}, id="node", valid_from=at(0))

    (link,) = store.record_event("fix", "null check", related_to="node", occurred_at=at(1)).event.links
    assert ("related_to", "node") == (link.kind, link.target)


def test_a_repeat_brings_its_links_valid_from_then_on(store):
    deploy = store.record_event("deploy", "v2", occurred_at=at(2)).event
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    again = store.record_event(*ERROR, occurred_at=at(3), related_to=[deploy.id, "nothing-such"])

    assert [(id, "related_to", deploy.id, at(3))] == [
        (link.source, link.kind, link.target, link.valid_from) for link in again.event.links
    ]
    assert ["nothing-such" in warning for warning in again.warnings] == [True]


def test_a_link_that_cannot_be_is_a_warning_and_the_occurrence_is_kept(store):
    id = store.record_event(*ERROR, occurred_at=at(1)).event.id
    deploy = store.record_event("deploy", "v2", occurred_at=at(1)).event
    store.link(id, "related_to", deploy.id, reason="I saw it", valid_from=at(1))
    again = store.record_event(*ERROR, related_to=[id, deploy.id])

    assert (2, 2) == (len(again.warnings), again.event.count)


# ---------------------------------------------------------------- loading, and what is refused


def test_loaded_rows_come_again_too(store):
    store.record_event(*ERROR, occurred_at=at(1))
    rows = [
        {"type": "error", "description": SAME[1], "occurred_at": at(hour), "id": id}
        for hour, id in ((5, None), (3, None), (7, "own"), (8, None))
    ]
    store.bulk_load(events=rows)

    assert [("own", (at(7), at(8), 2)), (True, (at(1), at(5), 3))] == [
        (event.id if event.id == "own" else event.id.startswith("evt_"), seen(event))
        for event in store.events()
    ]


def test_rows_loaded_with_their_transactions_come_again(store):
    told = [day("2026-01-20"), day("2026-01-21")]
    store.bulk_load(
        events=[
            {"type": "error", "description": "broken", "occurred_at": at(1), "tx_from": tx} for tx in told
        ]
    )

    assert [1, 2] == [store.as_of(tx=tx).events()[0].count for tx in told]


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.record_event("error", None),
        lambda store: store.record_event("error", "  "),
        lambda store: store.record_event(None, "broken"),
        lambda store: store.record_event("error", "broken", origin="nobody"),
        lambda store: store.record_event("error", "broken", metadata=["no object"]),
        lambda store: store.bulk_load(events=[{"type": "error"}]),
        lambda store: store.bulk_load(events=[{"type": "error", "description": ""}]),
    ],
)
def test_a_refused_event_names_the_fields_there_are(store, act):
    fields = (
        "type, description, id, occurred_at, source, origin, agent, related_to, metadata, fingerprint, "
        "trace_id, span_id, parent_span_id, ended_at, authorized, sender, sender_name, thread, classification, media_path, media_hash"
    )
    with pytest.raises(InvalidError, match=fields):
        act(store)

    assert [] == store.events()


def test_every_repeat_is_an_operation_of_its_own(store):
    id = store.record_event(*ERROR).event.id
    with store.transaction(author="probe"):
        store.record_event(*ERROR)

    assert [("record_event", id, None), ("record_event", id, "probe")] == [
        (change.verb, change.subject, change.author) for change in store.changes()
    ]


# ---------------------------------------------------------------- in Cypher


def told(store: GraphStore) -> list[tuple[datetime, datetime, datetime | None, list[datetime]]]:
    """Each event of the tables: as first told, since when it is known, until when it is believed, and when it came again."""
    rows = store.query_tables(
        "MATCH (e:Event) OPTIONAL MATCH (e)-[:HAS_OCCURRENCE]->(o:Occurrence) "
        "RETURN e.occurred_at AS at, e.tx_from AS tx_from, e.tx_to AS tx_to, collect(o.occurred_at) AS again"
    ).rows()
    return [(row["at"], row["tx_from"], row["tx_to"], sorted(row["again"] or ())) for row in rows]


def test_the_tables_have_an_events_occurrences(disk_store, clock):
    first = disk_store.record_event(*ERROR, occurred_at=at(5)).event
    disk_store.query_tables("MATCH (e:Event) RETURN e.id")  # the rest is followed
    clock.move(days=1)
    for hour in (2, 7, 1):
        disk_store.record_event(*ERROR, occurred_at=at(hour))
    grown = told(disk_store)

    assert [(at(5), first.tx_from, None, [at(1), at(2), at(7)])] == grown
    assert disk_store.verify().ok
    disk_store.rebuild()
    assert grown == told(disk_store)


def test_the_tables_end_a_retracted_event_that_came_earlier(disk_store):
    first = disk_store.record_event(*ERROR, occurred_at=at(5)).event
    disk_store.query_tables("MATCH (e:Event) RETURN e.id")
    disk_store.record_event(*ERROR, occurred_at=at(2))
    disk_store.retract(first.id, reason="a false alarm")
    gone = disk_store.changes()[-1].tx

    assert [(at(5), first.tx_from, gone, [at(2)])] == told(disk_store)
    assert disk_store.verify().ok


def test_the_tables_know_nothing_of_a_block_still_open(disk_store):
    first = disk_store.record_event(*ERROR, occurred_at=at(5)).event
    with disk_store.transaction():
        disk_store.record_event(*ERROR, occurred_at=at(2))
        inside = told(disk_store)

    assert [(at(5), first.tx_from, None, [])] == inside
    assert [(at(5), first.tx_from, None, [at(2)])] == told(disk_store)
    assert disk_store.verify().ok


def test_a_views_graph_counts_at_its_coordinate(store):
    id = store.record_event(*ERROR, occurred_at=at(3)).event.id
    store.record_event(*ERROR, occurred_at=at(1))
    store.record_event("fix", "null check", related_to=id, occurred_at=at(4))
    store.record_event(*ERROR, occurred_at=at(6))

    for hour in range(8):
        view = store.as_of(valid=at(hour))
        rows = view.query(
            "MATCH (e:Event) RETURN e.id AS id, e.occurred_at AS occurred_at, e.first_seen AS first_seen, "
            "e.last_seen AS last_seen, e.count AS count, e.status AS status"
        ).rows()
        expected = [
            {
                name: getattr(event, name)
                for name in ("id", "occurred_at", "first_seen", "last_seen", "count", "status")
            }
            for event in view.events()
        ]
        assert sorted(expected, key=str) == sorted(rows, key=str)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"type": "fix"}, "description"),
        ({"description": "it broke"}, "type"),
        ({}, "type"),
        ({"type": "fix", "description": "null check", "relatd_to": "evt_1"}, "'relatd_to'"),
    ],
)
def test_missing_and_unknown_fields_are_an_error_that_lists_the_valid_ones(store, fields, named):
    with pytest.raises(InvalidError) as refused:
        store.record_event(**fields)
    assert named in str(refused.value)
    assert "type, description, id, occurred_at, source, origin, agent, related_to" in str(refused.value)
    assert [] == store.changes()
