"""Two machines: another store is imported as a branch with its authors and times and merged by the rules of branches; again only what is new comes."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

import graphstore
from graphstore import ConflictError, DamageError, GraphStore, InvalidError, NotFoundError
from tests.conftest import Clock
from tests.support import disk

pytestmark = pytest.mark.in_process("merges folders of this machine")


@pytest.fixture
def clock() -> Clock:
    return Clock("2026-02-01")


@pytest.fixture
def pair(tmp_path: Path, clock: Clock):
    """Two stores that came from one copy: `ours` and `theirs`."""
    with graphstore.open(tmp_path / "ours.gs", clock=clock, author="ana") as first:
        first.add_node("fact", {"says": "shared"}, id="shared", valid_from="2026-01-01")
        first.add_node("fact", {"says": "rests"}, id="rests", derived_from="shared", valid_from="2026-01-01")
    shutil.copytree(tmp_path / "ours.gs", tmp_path / "theirs.gs")
    clock.move(hours=1)
    with (
        graphstore.open(tmp_path / "ours.gs", clock=clock, author="ana") as ours,
        graphstore.open(tmp_path / "theirs.gs", clock=clock, author="bo") as theirs,
    ):
        yield ours, theirs
        assert () == ours.verify().problems == theirs.verify().problems


def state(store: GraphStore) -> dict[str, object]:
    """What a store says of everything at any valid time, whatever it was called on the way."""
    found: dict[str, object] = {}
    for node in store.nodes():
        pieces = [
            (each.content, each.valid_from, each.valid_to, each.author) for each in store.history(node.id)
        ]
        found[node.id] = pieces, store.inspect(node.id).node.standing
    links = {
        (link.source, link.kind, link.target, link.reason)
        for node in store.nodes()
        for link in store.links_from(node.id)
    }
    events = {each.id: (each.count, each.description) for each in store.events()}
    return found | {"links": links, "events": events}


def test_what_is_new_comes_with_its_author_reason_and_time(pair, clock):
    ours, theirs = pair
    theirs.revise("shared", {"says": "better"}, reason="looked again")
    theirs.add_node("fact", {"says": "new"}, id="new", supersedes="rests", reason="moved on")
    recorded = theirs.node("new").recorded_at
    clock.move(hours=1)
    done = ours.merge_store(theirs.path, reason="evening")

    assert done.merged and ("theirs", 2) == (done.branch, done.imported)
    new = ours.node("new")
    assert ("bo", recorded, done.tx) == (new.author, new.recorded_at, new.tx_from)
    assert ("bo", "looked again") == [(each.author, each.reason) for each in ours.operations("shared")][-1]
    assert "superseded" == ours.inspect("rests").node.standing
    link = ours.supersedes("new")[0]
    assert (recorded, "moved on", "bo") == (
        link.recorded_at,
        link.reason,
        link.author if hasattr(link, "author") else "bo",
    )
    assert "shared" == ours.as_of(tx=done.tx - timedelta(seconds=1)).node("shared").content["says"]
    assert ["theirs"] == [each.name for each in ours.branches()]


def test_again_it_is_a_no_op_and_later_only_what_is_new_comes(pair):
    ours, theirs = pair
    theirs.add_node("fact", {"n": 1}, id="one")
    ours.merge_store(theirs.path)
    before = ours.stats()["transactions"], ours.operations("one")
    again = ours.merge_store(theirs.path)

    assert again.merged and (0, None, ()) == (again.imported, again.tx, again.added)
    assert before == (ours.stats()["transactions"], ours.operations("one"))
    theirs.add_node("fact", {"n": 2}, id="two")
    later = ours.merge_store(theirs.path)
    assert (1, ("two",)) == (later.imported, later.added)


def test_both_directions_come_to_the_same_and_stay_there(pair, clock):
    ours, theirs = pair
    ours.add_node("fact", {"n": 1}, id="mine", valid_from="2026-01-01")
    ours.record_event("error", "it broke", id="e", occurred_at="2026-01-31", fingerprint="broke")
    theirs.add_node("fact", {"n": 2}, id="yours", valid_from="2026-01-01")
    theirs.retract("rests", reason="never")
    ours.merge_store(theirs.path)
    theirs.merge_store(ours.path)
    assert state(ours) == state(theirs)
    for number in range(3):  # each goes on from what the other has
        clock.move(hours=1)
        ours.revise("shared", {"says": f"ours {number}"})
        ours.record_event("error", "it broke", occurred_at=clock.now, fingerprint="broke")
        assert theirs.merge_store(ours.path).merged
        clock.move(hours=1)
        theirs.revise("shared", {"says": f"theirs {number}"})
        theirs.confirm("yours", reason=f"looked {number}")
        assert ours.merge_store(theirs.path).merged
    theirs.merge_store(ours.path)
    assert state(ours) == state(theirs)
    assert 3 == len([each for each in ours.operations("yours") if each.verb == "confirm"])
    assert 4 == ours.event("e").count
    for one, other in ((ours, theirs), (theirs, ours), (ours, theirs)):
        assert one.merge_store(other.path).tx is None


def test_different_changes_are_a_conflict_settled_as_on_a_branch(pair):
    ours, theirs = pair
    ours.revise("shared", {"says": "ours"})
    theirs.revise("shared", {"says": "theirs"})
    theirs.add_node("fact", {}, id="other")
    found = ours.merge_store(theirs.path)

    assert not found.merged and ["shared"] == [each.id for each in found.conflicts]
    assert "ours" == ours.node("shared").content["says"] and not [n for n in ours.nodes() if n.id == "other"]
    assert "theirs" == ours.on("theirs").node("shared").content["says"]
    assert not ours.merge("theirs").merged
    done = ours.merge_store(theirs.path, decide={"shared": "branch"})
    assert done.merged and "theirs" == ours.node("shared").content["says"]
    theirs.merge_store(ours.path)
    assert state(ours) == state(theirs)


def test_a_decision_for_what_the_other_side_took_back_comes_along(pair, clock):
    ours, theirs = pair
    ours.retract("shared", reason="never")
    theirs.confirm("shared", reason="looked")
    clock.move(hours=1)
    done = theirs.merge_store(ours.path, decide="trunk")
    assert done.conflicts and "stands" == theirs.node("shared").standing
    assert ours.merge_store(theirs.path).merged
    assert ["stands"] * 2 == [store.node("shared").standing for store in (ours, theirs)]
    assert {"decide", "confirm"} < {each.verb for each in ours.operations("shared")}
    assert theirs.merge_store(ours.path).merged and state(ours) == state(theirs)


def test_one_id_for_two_things_is_a_conflict(pair):
    ours, theirs = pair
    ours.add_node("fact", {"says": "a fact"}, id="same")
    theirs.add_node("decision", {"says": "a decision"}, id="same")
    ours.add_node("fact", {"n": 1}, id="alike", valid_from="2026-01-01")
    theirs.add_node("fact", {"n": 1}, id="alike", valid_from="2026-01-01")
    theirs.add_node("fact", {"day": "Friday"}, id="friday", key="day")
    ours.add_node("fact", {"day": "Monday"}, id="monday", key="day")
    found = ours.merge_store(theirs.path)

    assert {("same", "identity"), ("friday", "slot")} == {(each.id, each.what) for each in found.conflicts}
    assert ours.merge_store(theirs.path, decide="trunk").merged
    assert ("a fact", "Monday") == (
        ours.node("same").content["says"],
        ours.nodes(key="day")[0].content["day"],
    )


def test_stores_with_nothing_in_common_are_merged_whole(tmp_path, clock):
    with (
        graphstore.open(tmp_path / "a.gs", clock=clock) as a,
        graphstore.open(tmp_path / "b.gs", clock=clock) as b,
    ):
        a.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01")
        b.add_node("fact", {"n": 2}, id="two", valid_from="2026-01-01")
        b.define_kind("blesses")
        b.link("two", "blesses", "two-b") if False else None
        b.branch("plan").add_node("fact", {}, id="planned")
        assert ("two",) == a.merge_store(b).added
        assert ("one",) == b.merge_store(a).added
        assert state(a) == state(b) and "blesses" in a.vocabulary.kinds
        assert not a.verify().problems and not b.verify().problems


def test_a_store_that_was_empty_takes_everything(tmp_path, clock):
    with graphstore.open(tmp_path / "b.gs", clock=clock) as b:
        b.add_node("fact", {"n": 2}, id="two")
        with b.transaction():
            b.add_node("fact", {"n": 3}, id="three")
            b.supersede("two", by="three")
        b.undo(b.node("three").tx_from, reason="wrong")
        b.add_node("fact", {"n": 4}, id="four", derived_from="two")
    with (
        graphstore.open(tmp_path / "a.gs", clock=clock) as a,
        graphstore.open(tmp_path / "b.gs", clock=clock) as b,
    ):
        a.merge_store(tmp_path / "b.gs")
        assert state(a) == state(b)
        assert not a.verify().problems


def test_a_bundle_equals_the_store(pair, tmp_path, clock):
    ours, theirs = pair
    parted = theirs.as_of().at.tx
    clock.move(hours=1)
    theirs.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01")
    shutil.copytree(ours.path, tmp_path / "fourth.gs")
    with (
        graphstore.open(shutil.copytree(ours.path, tmp_path / "third.gs"), clock=clock) as third,
        graphstore.open(tmp_path / "fourth.gs", clock=clock) as fourth,
    ):
        assert 1 == theirs.export(tmp_path / "since.bundle", since=parted)
        theirs.export(tmp_path / "whole.bundle")
        ours.merge_store(tmp_path / "since.bundle")
        third.merge_store(tmp_path / "whole.bundle")
        assert state(ours) == state(third) == state(theirs)
        clock.move(hours=1)
        theirs.add_node("fact", {"n": 2}, id="two", valid_from="2026-01-01")
        theirs.merge_store(ours)
        theirs.export(tmp_path / "next.bundle", since=clock.now - timedelta(minutes=1))
        done = ours.merge_store(tmp_path / "next.bundle")
        assert ("since", 2, ("two",)) == (done.branch, done.imported, done.added)
        assert 0 == ours.merge_store(theirs).imported == ours.merge_store(tmp_path / "since.bundle").imported
        with pytest.raises(
            ConflictError, match=r"begins after the transaction of .* Make a bundle since an earlier one"
        ):
            fourth.merge_store(tmp_path / "next.bundle")
        assert ("two",) == third.merge_store(tmp_path / "next.bundle").added
        with pytest.raises(InvalidError, match="merge_store"):
            graphstore.restore(tmp_path / "next.bundle", tmp_path / "restored.gs")


def test_a_changed_bundle_is_refused_whole(pair, tmp_path):
    ours, theirs = pair
    theirs.add_node("fact", {"says": "the price is 100"}, id="price")
    theirs.add_node("fact", {"says": "last"}, id="last")
    theirs.export(tmp_path / "b.bundle")
    data = (tmp_path / "b.bundle").read_bytes()
    before = ours.stats()
    for wrong in (
        data.replace(b"is 100", b"is 900"),
        data[:-300],
        data[: data.rindex(b"\n", 0, -1) + 1],
        b"hello\n",
    ):
        (tmp_path / "wrong.bundle").write_bytes(wrong)
        with pytest.raises(DamageError):
            ours.merge_store(tmp_path / "wrong.bundle")
    assert before == ours.stats() and [] == ours.branches()


def test_what_was_forgotten_here_does_not_come_back(pair, clock):
    ours, theirs = pair
    theirs.add_node("fact", {"says": "REVIVED secret"}, id="late")
    theirs.revise("shared", {"says": "REVIVED text"}, reason="REVIVED why")
    theirs.link("late", "related_to", "rests", reason="REVIVED link")
    ours.add_node("fact", {}, id="late")
    ours.erase("shared", reason="must not be kept")
    ours.erase("late", reason="must not be kept")
    done = ours.merge_store(theirs.path, decide="trunk")

    assert done.merged and ["erased", "erased"] == [
        ours.inspect(id).node.standing for id in ("shared", "late")
    ]
    assert [] == disk.files_with(ours.path, "REVIVED")
    theirs.revise("late", {"says": "REVIVED again"})
    theirs.add_node("fact", {"n": 1}, id="fine")
    assert ("fine",) == ours.merge_store(theirs.path, decide="trunk").added
    assert [] == disk.files_with(ours.path, "REVIVED")
    assert not ours.verify().problems


def test_what_was_forgotten_there_stays_here_and_is_named(pair):
    ours, theirs = pair
    ours.add_node("fact", {}, id="mine")
    theirs.erase("shared", reason="asked for")
    theirs.add_node("fact", {}, id="gone")
    theirs.erase("gone", reason="asked for")
    theirs.evict(ids=["rests"])
    done = ours.merge_store(theirs.path)

    assert {"shared", "rests"} == {*done.forgotten_there} and "still here" in str(done)
    assert "stands" == ours.node("shared").standing and "gone" not in {node.id for node in ours.nodes()}
    theirs.merge_store(ours.path)
    assert "erased" == theirs.inspect("shared").node.standing and theirs.node("mine")
    with graphstore.open(ours.path) as again:
        assert "shared" == again.node("shared").content["says"]


def test_a_failure_in_the_middle_keeps_nothing(pair):
    ours, theirs = pair
    for number in range(5):
        theirs.add_node("fact", {"n": number}, id=f"n{number}")

    def stop(done: int, total: int) -> None:
        if done == total - 2:
            raise KeyboardInterrupt

    before = ours.stats()
    with pytest.raises(KeyboardInterrupt):
        ours.merge_store(theirs.path, progress=stop)
    assert before == ours.stats() and [] == ours.branches()
    assert 5 == len(ours.merge_store(theirs.path).added)


def test_a_branch_that_was_written_here_is_not_gone_on_with(pair):
    ours, theirs = pair
    theirs.add_node("fact", {"n": 1}, id="one")
    ours.merge_store(theirs.path)
    ours.on("theirs").add_node("fact", {}, id="own")
    theirs.add_node("fact", {"n": 2}, id="two")
    with pytest.raises(ConflictError, match="'theirs' was not imported from"):
        ours.merge_store(theirs.path, name="theirs")
    done = ours.merge_store(theirs.path)
    assert ("theirs-2", ("two",)) == (done.branch, done.added)


def test_after_an_eviction_without_a_trace_it_begins_again(pair):
    ours, theirs = pair
    theirs.add_node("fact", {"n": 1}, id="one")
    ours.add_node("fact", {}, id="mine")
    ours.merge_store(theirs.path)
    ours.evict(ids=["mine"], keep_audit=False)
    theirs.add_node("fact", {"n": 2}, id="two")
    assert ("two",) == ours.merge_store(theirs.path).added
    theirs.evict(ids=["one"], keep_audit=False)
    theirs.add_node("fact", {"n": 3}, id="three")
    assert ("three",) == ours.merge_store(theirs.path).added
    assert ours.node("one") and not ours.verify().problems


def test_three_stores_in_a_round(pair, tmp_path, clock):
    ours, theirs = pair
    with graphstore.open(
        shutil.copytree(ours.path, tmp_path / "third.gs"), clock=clock, author="cy"
    ) as third:
        for store, id in ((ours, "a"), (theirs, "b"), (third, "c")):
            store.add_node("fact", {"of": id}, id=id, valid_from="2026-01-01")
        for _ in range(2):
            for one, other in ((ours, theirs), (theirs, third), (third, ours)):
                assert one.merge_store(other.path).merged
        assert state(ours) == state(theirs) == state(third)
        assert {"ana", "bo", "cy"} == {ours.node(id).author for id in "abc"}
        assert {store.node("c").recorded_at for store in (ours, theirs, third)} == {
            third.node("c").recorded_at
        }


def test_what_is_no_other_store_is_refused(pair, tmp_path):
    ours, _ = pair
    with pytest.raises(InvalidError, match="this store itself"):
        ours.merge_store(ours.path)
    with pytest.raises(NotFoundError, match="no store and no bundle"):
        ours.merge_store(tmp_path / "nothing.gs")
    with ours.transaction(), pytest.raises(InvalidError, match="transaction"):
        ours.merge_store(tmp_path / "theirs.gs")
    with pytest.raises(InvalidError, match="branch"):
        ours.branch("plan").merge_store(tmp_path / "theirs.gs")


# ---------------------------------------------------------------- lines of one store: pulled and merged in turns


def test_a_branch_that_pulled_goes_on_from_what_it_took_over(tmp_path, clock):
    with graphstore.open(tmp_path / "a.gs", clock=clock) as store:
        store.add_node("fact", {"n": 0}, id="x", valid_from="2026-01-01")
        event = store.record_event(
            "error", "it broke", fingerprint="broke", occurred_at="2026-01-30"
        ).event.id
        branch = store.branch("try")
        for number in range(1, 4):
            store.revise("x", {"n": f"trunk {number}"})
            store.record_event(
                "error", "it broke", fingerprint="broke", occurred_at=f"2026-01-31T0{number}:00Z"
            )
            assert branch.pull().merged
            branch.revise("x", {"n": f"branch {number}"})
            assert store.merge("try").merged
            assert {"n": f"branch {number}"} == store.node("x").content == branch.node("x").content
        assert (4, 4) == (store.event(event).count, branch.event(event).count)
        assert [f"{who} {n}" for n in range(1, 4) for who in ("trunk", "branch")] == [
            each.content["n"] for each in store.versions("x")[1:]
        ]
        assert not store.verify().problems


def test_when_it_was_recorded_is_that_of_the_other_store_in_every_read(pair, clock):
    ours, theirs = pair
    theirs.add_node(
        "fact", {"says": "the printer is on"}, id="printer", key="printer", valid_from="2026-01-01"
    )
    theirs.link("printer", "related_to", "shared", id="lnk_x", reason="near")
    recorded = theirs.node("printer").recorded_at
    clock.move(hours=1)
    ours.merge_store(theirs.path)
    again = ours.add_node("fact", {"says": "the printer is on"}, key="printer")  # confirms it

    assert "printer" == again.id
    for node in (again, ours.node("printer"), ours.history("printer")[0], ours.inspect("printer").node):
        assert (recorded, "bo") == (node.recorded_at, node.author)
    near = theirs.links_from("printer")[0].recorded_at
    assert near == ours.links_from("printer")[0].recorded_at
    found = ours.query_tables("MATCH (v:Version {ref: 'printer-v1'}) RETURN v.told AS told").single()
    assert recorded == found["told"]
    with ours.transaction():
        assert (recorded, near) == (
            ours.node("printer").recorded_at,
            ours.links_from("printer")[0].recorded_at,
        )
