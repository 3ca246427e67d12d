"""Evicting and erasing: the contents are in no file afterwards, the tombstone stays, and nothing else changes."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import (
    ConflictError,
    EngineError,
    GraphStore,
    GraphStoreError,
    InvalidError,
    NotFoundError,
    View,
)
from tests.conftest import Clock, day
from tests.support import disk

pytestmark = pytest.mark.in_process("looks at the files of the store while it is open")

SECRET = "SECRET"  # in everything that was said of what is forgotten
PLACE = "whereabouts"  # in what stays of an evicted event: its place in its trace
OPEN_WORDS = "plainly"  # in everything that was said of the rest


def files_with(path: Path, word: str = SECRET) -> list[str]:
    """The files of a store that hold a word, in any part of them."""
    return disk.files_with(path, word)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def told(store: GraphStore, clock: Clock) -> None:
    """A node and an event to be forgotten, in every way in which something can be said of them, and their neighbours."""
    with store.transaction(reason=f"{SECRET} why of all"):
        store.add_node(
            "person",
            {"name": f"{SECRET} content", "born": 1980},
            id="node-x",
            key="maria",
            scope="home",
            text=f"{SECRET} text",
            tags=[f"{SECRET}-tag"],
            source=f"{SECRET} source",
            trigger=f"{SECRET} trigger",
            valid_from="2026-01-01",
        )
        store.record_event(
            "error",
            f"{SECRET} description",
            id="event-x",
            source=f"{SECRET} source",
            origin="agent",
            agent=f"{SECRET} agent",
            fingerprint=f"{SECRET} fingerprint",
            metadata={"of": f"{SECRET} metadata"},
            trace_id=f"{PLACE} trace",
            span_id=f"{PLACE} span",
            parent_span_id=f"{PLACE} parent",
            occurred_at="2026-01-02",
        )
    clock.move(days=1)
    store.add_node("person", {"name": f"{OPEN_WORDS} peter"}, id="node-a", reason=f"{OPEN_WORDS} told")
    store.record_event("deploy", f"{OPEN_WORDS} v1", id="event-a", occurred_at="2026-01-01")
    clock.move(days=1)
    store.revise(
        "node-x", {"name": f"{SECRET} revised"}, reason=f"{SECRET} revision", valid_from="2026-01-10"
    )
    caused = {"reason": f"{SECRET} between", "metadata": {"m": f"{SECRET} m"}}
    store.link("node-x", "caused_by", "event-x", valid_from="2026-01-10", **caused)
    clock.move(days=1)
    store.end("node-x", at="2026-03-01", reason=f"{SECRET} ended")
    store.retract("node-x", valid_from="2026-01-20", valid_to="2026-01-22", reason=f"{SECRET} retracted")
    with store.transaction(reason=f"{OPEN_WORDS} why of both"):
        store.revise("node-x", {"name": f"{SECRET} again"}, valid_from="2026-01-12", valid_to="2026-01-14")
        store.revise("node-a", {"name": f"{OPEN_WORDS} paul"})
    clock.move(days=1)


def linked_outside(store: GraphStore, word: str) -> None:
    """Links that have one end among what is forgotten."""
    store.link(
        "node-a", "relates", "node-x", reason=f"{word} outer", metadata={"m": f"{word} m"}, id="lnk-outer"
    )
    store.add_node("person", {"name": f"{OPEN_WORDS} old"}, id="node-old", valid_from="2026-01-01")
    store.supersede("node-old", by="node-x", reason=f"{word} took its place")
    link = store.link("event-a", "related_to", "node-x", reason=f"{word} related", id="lnk-gone")
    store.unlink(link.id, reason=f"{word} unrelated")


def forget_both(store: GraphStore, how: str) -> None:
    if how == "erase":
        store.erase("node-x", reason=f"{OPEN_WORDS} asked for")
        store.erase("event-x", reason=f"{OPEN_WORDS} asked for")
    else:
        store.evict(ids=["node-x", "event-x"], keep_audit=how == "evict")


HOWS = ("erase", "evict", "purge")


def holds_together(store: GraphStore, tmp_path: Path) -> None:
    """The digest chain holds, and a dump gives the same store and the same dump."""
    assert () == store.verify().problems
    dump, again = tmp_path / "first.dump", tmp_path / "second.dump"
    store.export(dump)
    with graphstore.restore(dump, tmp_path / "restored.gs") as restored:
        assert () == restored.verify().problems
        restored.export(again)
        assert store.changes() == restored.changes()
        assert [] == files_with(tmp_path / "restored.gs")
    assert dump.read_bytes() == again.read_bytes()
    assert SECRET.encode() not in dump.read_bytes()


# ---------------------------------------------------------------- in no file


@pytest.mark.parametrize("how", HOWS)
def test_what_was_said_is_in_no_file(path, tmp_path, clock, how):
    with graphstore.open(path, clock=clock) as store:
        told(store, clock)
        linked_outside(store, OPEN_WORDS if how == "evict" else SECRET)
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    with graphstore.open(path, clock=clock) as store:  # tables of before, a WAL of now
        store.add_node("fact", {"n": 1}, id="fact-1")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        store.query("MATCH (n:Node) RETURN count(*)")
        assert any("graph.kuzu" in name for name in files_with(path))

        forget_both(store, how)

        assert [] == files_with(path)
        assert (how == "evict") == bool(files_with(path, PLACE))
        assert files_with(path, OPEN_WORDS)
        holds_together(store, tmp_path)
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        assert [] == files_with(path)
    assert [] == files_with(path)
    with graphstore.open(path, clock=clock) as store:
        assert () == store.verify().problems
    assert graphstore.verify(path).ok


@pytest.mark.parametrize("how", HOWS)
def test_nothing_of_a_large_transaction_stays(path, clock, how):
    """It is many lines, and what two of them share is in both."""
    with graphstore.open(path, clock=clock) as store:
        for number in range(1100):
            store.add_node("old", {}, id=f"old-{number}", valid_from="2026-01-01") if number == 0 else None
        with store.transaction(reason=f"{SECRET} all of it"):
            for number in range(1100):
                store.add_node(
                    "new", {"n": f"{SECRET} {number}"}, id=f"new-{number}", valid_from="2026-01-02"
                )
        with store.transaction():
            for number in range(1100):
                store.link(f"new-{number}", "relates", "old-0", reason=f"{SECRET} link {number}")
            store.supersede("old-0", by="new-0", reason=f"{SECRET} supersession")
        clock.move(days=1)
        names = [f"new-{number}" for number in range(1100)]
        if how == "erase":
            store.evict(ids=[*names[1:], "old-0"])
            store.erase("new-0", reason="asked for")
        else:
            store.evict(ids=[*names, "old-0"], keep_audit=how == "evict")

        assert [] == files_with(path)
        assert () == store.verify().problems


def test_the_reason_of_a_supersession_goes_with_the_erased_successor(path, clock):
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {}, id="fact-old", valid_from="2026-01-01")
        store.add_node("fact", {}, id="fact-new", valid_from="2026-01-02")
        store.supersede("fact-old", by="fact-new", reason=SECRET)
        store.erase("fact-new", reason="asked for")

        assert [] == files_with(path)
        assert [None] == [change.reason for change in store.changes() if change.verb == "supersede"]


def test_the_reason_of_a_transaction_that_nothing_uses_goes(path, clock):
    with graphstore.open(path, clock=clock) as store:
        with store.transaction(reason=f"{SECRET} of the whole"):
            store.add_node("fact", {}, id="fact-1", reason=f"{SECRET} of its own")
        store.erase("fact-1", reason="asked for")

        assert [] == files_with(path)


def test_the_reason_of_a_transaction_stays_while_something_else_is_in_it(path, clock):
    with graphstore.open(path, clock=clock) as store:
        with store.transaction(reason="of both"):
            store.add_node("fact", {}, id="fact-1")
            store.add_node("fact", {}, id="fact-2")
        store.erase("fact-1", reason="asked for")
        assert ["of both"] * 2 == [change.reason for change in store.changes()][:2]

        store.erase("fact-2", reason="asked for")
        assert [None, None] == [change.reason for change in store.changes()][:2]
        assert [] == files_with(path, "of both")


# ---------------------------------------------------------------- what is read afterwards


@pytest.mark.parametrize(("how", "word"), (("erase", "erased"), ("evict", "evicted")))
def test_it_stands_at_no_coordinate_and_its_tombstone_is_shown(path, clock, how, word):
    with graphstore.open(path, clock=clock) as store:
        told(store, clock)
        linked_outside(store, OPEN_WORDS)
        earlier = store.as_of(valid="2026-01-05", tx=store.changes()[0].tx)
        before = [(v.ref, v.valid_from, v.valid_to, v.tx_from) for v in store.versions("node-x")]
        assert "stands" == earlier.inspect("node-x").node.standing
        forget_both(store, how)

        for view in (earlier, store.as_of(), store, store.as_of(valid="2026-01-05")):
            with pytest.raises(NotFoundError, match=word):
                view.node("node-x")
            with pytest.raises(NotFoundError, match=word):
                view.event("event-x")
            node, event = view.inspect("node-x").node, view.inspect("event-x").node
            assert (word, {}, word, None, (), None) == (
                node.standing, node.content, node.trigger, node.text, node.tags, node.source,
            )  # fmt: skip
            assert ("person", "maria", "home") == (node.kind, node.key, node.scope)
            assert (word, f"[{word}]", word, None, {}, None, None) == (
                event.standing, event.description, event.origin, event.agent, event.metadata, event.fingerprint, event.source,
            )  # fmt: skip
            assert (f"{PLACE} trace" if how == "evict" else None) == event.trace_id
            assert "node-x" not in [each.id for each in view.nodes()]
            assert "event-x" not in [each.id for each in view.events()]
            absent = view.query(
                "MATCH (a:Absent {id: 'node-x'}) RETURN a.standing AS s, a.content AS c"
            ).single()
            assert {"s": word, "c": "{}"} == absent
            assert [] == view.query("MATCH (n:Node {id: 'node-x'}) RETURN n.id AS id").rows()
        after = [(v.ref, v.valid_from, v.valid_to, v.tx_from) for v in store.versions("node-x")]
        assert before == after
        assert {word} == {link.target_standing for link in store.links_from("node-a")}
        assert {word} == {link.source_standing for link in store.backlinks_to("node-old")}
        assert [] == store.history("node-x")
        rows = store.query_tables(
            "MATCH (n:Node {id: 'node-x'})-[:HAS_VERSION]->(v:Version) RETURN DISTINCT v.content AS c, v.trigger AS t"
        ).rows()
        assert [{"c": "{}", "t": word}] == rows
        assert [] == [
            r
            for r in store.query_tables("MATCH (o:Op) RETURN o.reason AS r").rows()
            if SECRET in (r["r"] or "")
        ]
        assert () == store.verify().problems


def test_evicting_one_end_leaves_the_link_its_reason_and_erasing_takes_it(path, clock):
    with graphstore.open(path, clock=clock) as store:
        told(store, clock)
        linked_outside(store, "outside")
        store.evict(ids=["node-x"])
        assert "outside outer" == store.links_from("node-a")[0].reason
        assert f"{SECRET} between" == store.links_from("node-x", "caused_by")[0].reason

        store.erase("node-x", reason="asked for")
        link = store.links_from("node-a")[0]
        assert ("related_to", None, {}, "erased") == (
            link.kind,
            link.reason,
            link.metadata,
            link.target_standing,
        )
        assert [] == files_with(path, "outside")


def test_the_slot_is_free_again(store, clock):
    store.add_node("person", {"n": 1}, id="node-x", key="maria")
    clock.move(days=1)
    store.erase("node-x", reason="asked for")

    assert "maria" == store.add_node("person", {"n": 2}, id="node-y", key="maria").key


def test_nothing_new_can_be_said_of_it_and_it_can_be_linked(store, clock):
    store.add_node("fact", {}, id="fact-x")
    store.add_node("fact", {}, id="fact-a")
    clock.move(days=1)
    store.evict(ids=["fact-x"])

    for verb in (
        lambda: store.revise("fact-x", {}),
        lambda: store.revise("fact-x", {}, valid_from="2026-01-01"),
        lambda: store.end("fact-x"),
        lambda: store.retract("fact-x", reason="wrong"),
        lambda: store.supersede("fact-x", by="fact-a"),
        lambda: store.supersede("fact-a", by="fact-x"),
        lambda: store.add_node("fact", {}, supersedes="fact-x"),
        lambda: store.add_node("fact", {}, id="fact-x"),
    ):
        with pytest.raises(ConflictError):
            verb()
    assert "evicted" == store.link("fact-a", "relates", "fact-x").target_standing


def test_what_is_said_of_a_link_after_the_forgetting_stays(path, clock):
    with graphstore.open(path, clock=clock) as store:
        for name in ("fact-x", "fact-a"):
            store.add_node("fact", {}, id=name)
        clock.move(days=1)
        store.erase("fact-x", reason="asked for")
        clock.move(days=1)
        store.link("fact-a", "related_to", "fact-x", reason="from an import", metadata={"file": "old.jsonl"})
        with store.transaction(reason="tidied"):
            store.link("fact-a", "enables", "fact-x")
        assert store.verify().ok

    with graphstore.open(path, clock=clock) as store:
        assert ["from an import", None] == [link.reason for link in store.links_from("fact-a")]
        assert "tidied" == store.changes()[-1].reason
        assert store.verify().ok


@pytest.mark.parametrize("how", ["erase", "evict", "evict without audit"])
@pytest.mark.parametrize("said", [True, False])
def test_the_reason_of_a_decision_between_two_goes_with_them(path, clock, how, said):
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"subject": "the gate", "open_day": "Monday"}, id="fact-a")
        store.add_node("fact", {"subject": "the gate", "open_day": "Friday"}, id="fact-x")
        clock.move(days=1)
        if said:
            store.link("fact-x", "contradicts", "fact-a")
        store.resolve(store.contradictions()[0], keep="fact-a", reason=SECRET)
        clock.move(days=1)
        if how == "erase":
            store.erase("fact-x", reason="asked for")
        else:
            store.evict(ids=["fact-a", "fact-x"], keep_audit=how == "evict")
        assert store.verify().ok

    assert [] == files_with(path)


def test_erasing_what_was_evicted_makes_it_erased_and_again_changes_nothing(store, clock):
    store.add_node("fact", {}, id="fact-x")
    clock.move(days=1)
    store.evict(ids=["fact-x"])
    assert [] == store.evict(ids=["fact-x"])
    store.erase("fact-x", reason="asked for")
    before = store.changes()
    store.erase("fact-x", reason="asked for")
    assert [] == store.evict(ids=["fact-x"])
    assert [] == store.evict(ids=["fact-x"], keep_audit=False)

    assert before == store.changes()
    assert "erased" == store.inspect("fact-x").node.standing
    assert "asked for" == store.changes()[-1].reason


def test_contents_that_were_erased_are_not_said_to_be_the_same(store, clock):
    store.add_node("fact", {"n": 1}, id="fact-x")
    clock.move(days=1)
    store.revise("fact-x", {"n": 2})
    before = store.as_of()
    assert ["n"] == [change.path for change in store.diff("fact-x", 1, 2)]
    store.erase("fact-x", reason="asked for")

    for view in (store, before):
        with pytest.raises(
            NotFoundError, match="the contents of 'fact-x' were erased: they cannot be compared"
        ):
            view.diff("fact-x", 1, 2)


def test_erase_wants_the_whole_id_and_a_reason(store):
    store.add_node("fact", {}, id="fact-12345")
    with pytest.raises(NotFoundError, match="fact-12345"):
        store.erase("fact-1", reason="asked for")
    with pytest.raises(InvalidError):
        store.erase("fact-12345", reason="")


@pytest.mark.parametrize(
    "verb",
    (
        lambda store: store.evict(before="2026-01-01"),
        lambda store: store.evict(before="2026-01-01", keep_audit=False),
        lambda store: store.erase("fact-1", reason="asked for"),
    ),
)
def test_inside_a_transaction_it_is_refused(store, verb):
    store.add_node("fact", {}, id="fact-1")
    with store.transaction(), pytest.raises(InvalidError, match="inside transaction"):
        verb(store)


# ---------------------------------------------------------------- the choice


def test_before_takes_events_whose_last_occurrence_is_before(store, clock):
    for number in range(1, 5):
        store.record_event("deploy", f"v{number}", id=f"event-{number}", occurred_at=f"2026-01-0{number}")
    store.record_event("error", "again", id="event-again", occurred_at="2026-01-01", fingerprint="f")
    assert not store.record_event("error", "again", occurred_at="2026-01-03", fingerprint="f").is_new
    store.add_node("fact", {}, valid_from="2026-01-01", valid_to="2026-01-02")

    assert ["event-1", "event-2"] == store.evict(before="2026-01-03")
    assert ["event-3"] == store.evict(before="2026-01-04", kinds="deploy")


def test_nodes_of_a_kind_go_once_nothing_is_told_or_held_after(store, clock):
    store.add_node("fact", {}, id="over", valid_from="2026-01-01", valid_to="2026-02-10")
    store.add_node("fact", {}, id="stands", valid_from="2026-01-01")
    store.add_node("other", {}, id="other", valid_from="2026-01-01", valid_to="2026-01-02")
    clock.set("2026-02-05")
    store.add_node("fact", {}, id="told-late", valid_from="2026-01-01", valid_to="2026-01-02")
    store.add_node("fact", {}, id="planned", valid_from="2026-03-01", valid_to="2026-04-01")
    clock.set("2026-03-15")

    assert [] == store.evict(before="2026-02-04", kinds="fact")
    assert [] == store.evict(before="2026-02-05", kinds="fact")
    assert ["over", "told-late"] == store.evict(before="2026-02-10", kinds="fact")
    assert [] == store.evict(larger_than=1, kinds="fact")  # neither what stands nor what is planned
    assert "stands" == store.inspect("stands").node.standing


@pytest.mark.parametrize("keep_audit", (True, False))
def test_larger_than_takes_the_oldest_until_the_journal_is_smaller(path, clock, keep_audit):
    with graphstore.open(path, clock=clock) as store:
        for number in range(200):
            store.record_event(
                "deploy", f"v{number} " + "x" * 300, id=f"event-{number}", occurred_at=clock.move(minutes=1)
            )
        size = store.stats()["journal_bytes"]

        gone = store.evict(larger_than=size // 10 * 8, keep_audit=keep_audit)

        assert [f"event-{number}" for number in range(len(gone))] == gone
        assert size // 10 * 7 < store.stats()["journal_bytes"] < size // 10 * 8
        assert [] == store.evict(larger_than=size, keep_audit=keep_audit)


def test_one_of_the_limits_is_wanted(store):
    with pytest.raises(InvalidError, match="before="):
        store.evict()
    with pytest.raises(InvalidError, match="before="):
        store.evict(kinds="deploy")
    for size in (0, -1, 1.5, "many", True):
        with pytest.raises(InvalidError, match="larger_than"):
            store.evict(larger_than=size)


# ---------------------------------------------------------------- without a tombstone


def test_without_audit_the_id_is_unknown_and_so_is_its_tombstone(path, clock):
    with graphstore.open(path, clock=clock) as store:
        for number in range(1, 4):
            store.record_event("deploy", f"v{number}", id=f"event-{number}", occurred_at=f"2026-01-0{number}")
        assert ["event-1"] == store.evict(before="2026-01-02")
        assert ["event-1", "event-2"] == store.evict(before="2026-01-03", keep_audit=False)

        for name in ("event-1", "event-2"):
            assert [] == files_with(path, name)
            with pytest.raises(NotFoundError):
                store.inspect(name)
        assert ["event-3"] == [event.id for event in store.events()]
        assert ["record_event", "evict"] == [change.verb for change in store.changes()]
        assert "2 removed without a trace" == store.changes()[-1].reason
        assert "event-1" == store.record_event("deploy", "anew", id="event-1").event.id


def test_a_node_whose_id_is_that_of_a_link_stays(path, clock):
    with graphstore.open(path, clock=clock) as store:
        for name in ("a", "b", "same"):
            store.add_node("fact", {"n": name}, id=name)
        store.add_node("fact", {}, id="relates")
        store.define_kind("blocks_badly")
        store.link("a", "relates", "b", id="same", reason="of the link")
        store.unlink("same", reason="no more")
        store.add_node("fact", {}, id="blocks_badly", reason="of the node")

        store.evict(ids=["a", "blocks_badly"], keep_audit=False)
        assert {"n": "same"} == store.node("same").content
        assert "define_kind" in [change.verb for change in store.changes()]
        assert "blocks_badly" in store.stats()["custom_kinds"]
        store.link("b", "relates", "relates", id="b", reason="of the other link")
        store.erase("b", reason="asked for")
        assert () == store.verify().problems


def test_erasing_a_node_leaves_the_reason_of_a_link_that_has_its_id(store, clock):
    for name in ("a", "b", "same"):
        store.add_node("fact", {"n": name}, id=name)
    store.link("a", "relates", "b", id="same", reason="of the link")
    store.unlink("same", reason="no more")
    store.erase("same", reason="asked for")

    assert ["of the link", "no more"] == [c.reason for c in store.changes() if c.verb in ("link", "unlink")]


def test_a_failed_eviction_after_one_without_trace_leaves_the_store_as_it_was(path, clock):
    with graphstore.open(path, clock=clock) as store:
        for name in ("fact-1", "fact-2", "fact-3"):
            store.add_node("fact", {"n": name}, id=name)
        store.evict(ids=["fact-1"], keep_audit=False)
        store.evict(ids=["fact-2"])
        with disk.no_room(), pytest.raises(EngineError, match="Nothing of this transaction was kept"):
            store.erase("fact-3", reason="asked for")

        assert {"n": "fact-3"} == store.node("fact-3").content
        assert "evicted" == store.inspect("fact-2").node.standing
        assert () == store.verify().problems


# ---------------------------------------------------------------- nothing else changes


THINGS = [f"n{number}" for number in range(5)] + [f"e{number}" for number in range(4)]
MARCH = day("2026-03-01")
_days = st.integers(0, 20)
_spans = st.tuples(_days, st.integers(1, 9))
_steps = st.one_of(
    st.tuples(st.just("revise"), st.integers(0, 4), _spans),
    st.tuples(st.just("revise all"), st.integers(0, 4), st.just(None)),
    st.tuples(st.just("retract"), st.integers(0, 8), _spans | st.none()),
    st.tuples(st.just("end"), st.integers(0, 4), _days),
    st.tuples(st.just("supersede"), st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.just("link"), st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.just("unlink"), st.integers(0, 30), st.none() | _spans),
    st.tuples(st.just("again"), st.integers(0, 3), _days),
    st.tuples(st.just("short-lived"), st.integers(0, 8), st.integers(0, 8)),
)
_histories = st.lists(st.lists(_steps, min_size=1, max_size=4), min_size=1, max_size=8)
_forgettings = st.lists(
    st.tuples(st.sampled_from(HOWS), st.sets(st.sampled_from(THINGS), min_size=1, max_size=3)),
    min_size=1,
    max_size=3,
)


def lived(store: GraphStore, clock: Clock, history: list[list[Any]]) -> list[tuple[str, str]]:
    """A random history of a few nodes and events; what the store refuses is no part of it. Gives what was superseded by what."""
    links: list[str] = []
    pairs: list[tuple[str, str]] = []

    def at(number: int) -> datetime:
        return MARCH + timedelta(days=number)

    def step(what: str, one: int, other: Any) -> None:
        word = f"said-{len(links)}-{one}"
        match what:
            case "revise":
                store.revise(
                    f"n{one}", {"w": word}, valid_from=at(other[0]), valid_to=at(sum(other)), reason=word
                )
            case "revise all":
                store.revise(f"n{one}", {"w": word})
            case "retract" if other is None:
                store.retract(THINGS[one], reason=word)
            case "retract":
                store.retract(THINGS[one], valid_from=at(other[0]), valid_to=at(sum(other)), reason=word)
            case "end":
                store.end(f"n{one}", at=at(other), reason=word)
            case "supersede":
                links.append(store.supersede(THINGS[one], by=THINGS[other], reason=word)[0].id)
                pairs.append((THINGS[one], THINGS[other]))
            case "link":
                links.append(store.link(THINGS[one], "relates", THINGS[other], reason=word).id)
            case "unlink" if other is None:
                store.unlink(links[one], reason=word)
            case "unlink":
                store.unlink(links[one], valid_from=at(other[0]), valid_to=at(sum(other)))
            case "again":
                store.record_event("error", f"failure e{one}", occurred_at=at(other))
            case "short-lived":
                name = store.add_node("fact", {"w": word}, supersedes=[THINGS[one]], reason=word).id
                links.append(store.link(name, "relates", THINGS[other], reason=word).id)
                store.retract(name, reason=word)

    for number, name in enumerate(THINGS):
        clock.move(hours=1)
        if name.startswith("n"):
            store.add_node(
                "fact", {"w": f"first of {name}"}, id=name, valid_from=at(number), reason=f"of {name}"
            )
        else:
            said = {"said": f"first of {name}"}
            store.record_event("error", f"failure {name}", id=name, occurred_at=at(number), metadata=said)
    for block in history:
        clock.move(hours=1)
        with store.transaction(reason=None if len(block) % 2 else f"block of {len(block)}"):
            for what, one, other in block:
                with suppress(GraphStoreError, IndexError):
                    step(what, one, other)
    clock.move(hours=1)
    return pairs


def reads(store: GraphStore, gone: set[str], tangled: set[str], txs: list[datetime]) -> dict[Any, Any]:
    """All that is said of the other things, at many coordinates; of what became of those that are tangled with them nothing."""
    found: dict[Any, Any] = {}
    for tx in txs:
        for number in (-1, 3, 8, 40):
            view = store.as_of(valid=MARCH + timedelta(days=number), tx=tx)
            for name in sorted(set(THINGS) - gone):
                found[tx, number, name] = told_of(view, name, gone, tangled)
    found["changes"] = [
        change
        for change in store.changes()
        if change.subject in set(THINGS) - gone and change.verb != "supersede"
    ]
    return found


def told_of(view: View, name: str, gone: set[str], tangled: set[str]) -> Any:
    """All that is said of a thing and of nothing forgotten."""
    try:
        found = view.inspect(name)
    except NotFoundError:
        return None
    links = [
        link.model_dump(exclude={"source_standing", "target_standing"})
        for link in (*found.links, *found.backlinks)
        if {link.source, link.target} <= set(THINGS) - gone
    ]
    node = found.node.model_dump(exclude={"standing", "links", "status"})
    versions = None if name.startswith("e") else view.versions(name)
    after = None
    if name not in tangled:
        became = view.what_superseded(name)
        after = (became.standing, [(step.how, step.why, step.since) for step in became.chain])
    return node, links, found.history, versions, after


def tangled_with(gone: set[str], pairs: list[tuple[str, str]]) -> set[str]:
    """Whatever was superseded, in any number of steps, by one of these."""
    found = set(gone)
    while more := {old for old, new in pairs if new in found} - found:
        found |= more
    return found


@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(_histories, _forgettings)
def test_whatever_is_forgotten_nothing_else_changes(tmp_path_factory, history, forgettings):
    path, clock = tmp_path_factory.mktemp("any") / "memory.gs", Clock("2026-05-01")
    gone = set().union(*(names for _, names in forgettings))
    with graphstore.open(path, clock=clock) as store:
        tangled = tangled_with(gone, lived(store, clock, history))
        txs = sorted({change.tx for change in store.changes()})
        txs = [txs[at * (len(txs) - 1) // 3] for at in range(4)]
        views = reads(store, gone, tangled, txs)
        for how, names in forgettings:
            known = [name for name in sorted(names) if is_known(store, name)]
            clock.move(hours=1)
            for name in known if how == "erase" else ():
                store.erase(name, reason="asked for")
            if how != "erase" and known:
                store.evict(ids=known, keep_audit=how == "evict")
        assert views == reads(store, gone, tangled, txs)
    with graphstore.open(path, clock=clock) as store:
        assert views == reads(store, gone, tangled, txs)
    with graphstore.open(path, clock=clock) as store:
        assert views == reads(store, gone, tangled, txs)
        store.export(path.with_name("dump"))
    with graphstore.restore(path.with_name("dump"), path.with_name("again.gs"), clock=clock) as store:
        assert views == reads(store, gone, tangled, txs)
        assert () == store.verify().problems
    for name in gone:
        assert [] == files_with(path, f"first of {name}")
        assert [] == files_with(path, f'"of {name}"')


def is_known(store: GraphStore, name: str) -> bool:
    try:
        return store.inspect(name).node.id == name
    except NotFoundError:
        return False
