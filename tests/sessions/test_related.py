"""Connections between segments of sessions: what is found, what is written of it, and that a second look changes nothing."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import permutations
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, sessions
from graphstore.errors import InvalidError
from graphstore.sessions import SessionNode, connect
from graphstore.sessions.related import FOUND
from graphstore.sessions.segments.likeness import LikenessLimits, Subject, connections, names_in
from graphstore.values.models import Link
from graphstore.values.vocabulary import KINDS
from tests.conftest import Clock, day, shared_data

pytestmark = pytest.mark.served

DAY = 86_400 * 1_000_000
LIMITS = LikenessLimits(30 * DAY, 0.2, 50)
LEVELS = ("project", "task", "user", "model", "tool", "skill", "subagent")


def work(
    summary: str = "",
    *,
    tags: tuple[str, ...] = (),
    topics: tuple[str, ...] = (),
    concepts: tuple[str, ...] = (),
    frameworks: tuple[str, ...] = (),
    project: str = "/home/ana/shop",
    session: str = "",
    errors: tuple[str, ...] = (),
    lessons: tuple[tuple[str, str, tuple[str, ...]], ...] = (),
) -> dict[str, Any]:
    """The content of a segment, as an analyser writes it."""
    learned: dict[str, list[Any]] = {level: [] for level in LEVELS}
    for level, words, marks in lessons:
        learned[level].append(
            {"level": level, "summary": words, "details": "", "confidence": "high", "tags": list(marks)}
        )
    node = SessionNode.from_content(
        {
            "source": {
                "sessionFile": "/s.jsonl",
                "segment": {"startEntryId": "a", "endEntryId": "b", "entryCount": 2},
                "computer": "desk",
                "sessionId": session or summary or "s",
            },
            "classification": {
                "type": "coding",
                "project": project,
                "isNewProject": False,
                "hadClearGoal": True,
                "frameworks": list(frameworks),
            },
            "content": {
                "summary": summary,
                "outcome": "success",
                "keyDecisions": [],
                "filesTouched": [],
                "toolsUsed": [],
                "errorsSeen": [{"type": "tool", "message": words, "resolved": False} for words in errors],
            },
            "lessons": learned,
            "observations": {
                "modelsUsed": [],
                "promptingWins": [],
                "promptingFailures": [],
                "modelQuirks": [],
                "toolUseErrors": [],
            },
            "metadata": {
                "tokensUsed": 0,
                "cost": 0,
                "durationMinutes": 1,
                "timestamp": "2026-01-01T00:00:00Z",
                "analyzedAt": "2026-01-01T00:00:00Z",
                "analyzerVersion": "test",
            },
            "semantic": {"tags": list(tags), "topics": list(topics), "concepts": list(concepts)},
            "daemonMeta": {"decisions": [], "rlmUsed": False},
        }
    )
    return node.json_object()


def told(store: GraphStore, id: str, on: str, content: dict[str, Any]) -> str:
    return store.add_node("segment", content, id=id, valid_from=on, tags=content["semantic"]["tags"]).id


def between(store: GraphStore, *kinds: str) -> list[tuple[str, str, str]]:
    """The links of the found kinds, as they are stored."""
    found: dict[str, Link] = {}
    for node in store.nodes("segment"):
        for link in store.inspect(node.id).links + store.inspect(node.id).backlinks:
            found.setdefault(link.id, link)
    return sorted(
        (
            *(
                sorted((link.source, link.target))
                if KINDS[link.kind].symmetric
                else (link.source, link.target)
            ),
            link.kind,
        )
        for link in found.values()
        if not kinds or link.kind in kinds
    )


def only(store: GraphStore, id: str, kind: str) -> Link:
    [link] = store.links_from(id, kind)
    return link


# ---- what is found ------------------------------------------------------------------------------


def test_tags_topics_and_words_make_a_semantic_link_with_the_score(store: GraphStore) -> None:
    told(store, "older", "2026-01-02", work("login with tokens", tags=("auth", "jwt"), topics=("security",)))
    told(store, "newer", "2026-01-10", work("the tokens expire", tags=("auth",), topics=("security",)))

    connect(store)

    link = only(store, "newer", "semantic")
    # 0.4 · 1/2 + 0.3 · 1/1 + 0.3 · |tokens| / |login tokens expire|
    assert (link.target, link.metadata) == ("older", {"similarity": 0.6})
    assert (link.confidence, link.created_by) == ("inferred", "daemon")
    assert link.reason == "they share tags auth; topics security; words tokens"
    assert link.valid_from == day("2026-01-10")


@pytest.mark.parametrize(("threshold", "found"), [(0.2, 1), (0.2001, 0)])
def test_a_score_at_the_threshold_is_enough(store: GraphStore, threshold: float, found: int) -> None:
    told(store, "older", "2026-01-02", work(tags=("auth", "jwt"), session="1"))  # 0.4 · 1/2
    told(store, "newer", "2026-01-03", work(tags=("auth",), session="2"))

    assert connect(store, threshold=threshold).links.get("semantic", 0) == found


@pytest.mark.parametrize(("on", "found"), [("2026-01-31", 1), ("2026-02-01", 0)])
def test_what_began_more_than_the_window_before_is_no_candidate(
    store: GraphStore, on: str, found: int
) -> None:
    told(store, "older", "2026-01-01", work(tags=("auth",), session="1"))
    told(store, "newer", on, work(tags=("auth",), session="2"))

    assert connect(store).links.get("semantic", 0) == found


def test_the_best_candidates_are_kept_when_there_are_too_many(store: GraphStore) -> None:
    told(store, "half", "2026-01-03", work(tags=("a", "b"), session="1"))
    told(store, "whole", "2026-01-02", work(tags=("a",), session="2"))
    told(store, "third", "2026-01-04", work(tags=("a", "b", "c", "d"), session="3", project="/other"))

    connect(store, most=1)

    assert between(store, "semantic") == [("half", "third", "semantic"), ("half", "whole", "semantic")]


def test_words_alone_are_enough_when_nearly_all_are_shared(store: GraphStore) -> None:
    told(store, "older", "2026-01-02", work("invoice totals rounding", session="1"))
    told(store, "newer", "2026-01-03", work("rounding of the invoice totals", session="2"))

    connect(store)

    assert only(store, "newer", "semantic").metadata == {"similarity": 0.3}


def test_an_id_in_the_text_is_a_reference_to_what_it_names(store: GraphStore) -> None:
    told(store, "a1b2c3d4e5f6a7b8", "2026-01-10", work("storage"))
    told(store, "naming", "2026-01-02", work("as decided in a1b2c3d4e5f6a7b8-v2, hybrid"))

    connect(store)

    link = only(store, "naming", "reference")
    assert (link.target, link.valid_from) == ("a1b2c3d4e5f6a7b8", day("2026-01-10"))


def test_what_connect_wrote_itself_is_no_reference(store: GraphStore) -> None:
    told(store, "1111111111111111", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "2222222222222222", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)

    assert connect(store).links == {}
    assert between(store, "reference") == []


def test_a_lesson_of_the_same_level_learned_before_is_applied(store: GraphStore) -> None:
    told(
        store,
        "older",
        "2026-01-02",
        work("x", lessons=(("tool", "edit fails on trailing whitespace", ("edit",)),)),
    )
    told(
        store,
        "newer",
        "2026-01-03",
        work("y", lessons=(("tool", "trailing whitespace breaks edit", ("edit",)),)),
    )
    told(
        store,
        "level",
        "2026-01-04",
        work("z", lessons=(("task", "trailing whitespace breaks edit", ("edit",)),)),
    )

    connect(store)

    link = only(store, "newer", "lesson_application")
    # edit trailing whitespace, of edit fails trailing whitespace breaks
    assert (link.target, link.metadata["similarity"]) == ("older", 0.6)
    assert len(link.metadata["lessonId"]) == 16
    assert link.reason == "it applies a tool lesson: edit fails on trailing whitespace"
    assert store.links_from("level", "lesson_application") == []


def test_two_lessons_in_common_are_one_link(store: GraphStore) -> None:
    both = (("tool", "quote every path", ()), ("user", "ask for the scope", ()))
    told(store, "older", "2026-01-02", work("x", lessons=both))
    told(store, "newer", "2026-01-03", work("y", lessons=both))

    assert connect(store).links["lesson_application"] == 1


def test_the_same_error_but_for_its_numbers_is_a_failure_pattern(store: GraphStore) -> None:
    told(store, "older", "2026-01-02", work("x", errors=("timeout after 30012 ms at 0xdeadbeef",)))
    told(store, "newer", "2026-01-03", work("y", errors=("timeout after 30999 ms at 0xcafe0123",)))
    told(store, "other", "2026-01-04", work("z", errors=("timeout after 404 tries",)))

    connect(store)

    link = only(store, "newer", "failure_pattern")
    assert (link.target, list(link.metadata)) == ("older", ["patternId"])
    assert store.links_from("other", "failure_pattern") == []


def test_two_shared_techniques_join_two_projects(store: GraphStore) -> None:
    told(store, "older", "2026-01-02", work("x", concepts=("Caching",), frameworks=("svelte",), project="/a"))
    told(
        store,
        "newer",
        "2026-01-03",
        work("y", concepts=("caching", "auth"), frameworks=("svelte",), project="/b"),
    )
    told(store, "single", "2026-01-04", work("z", concepts=("caching",), project="/c"))
    told(store, "same", "2026-01-05", work("w", concepts=("caching",), frameworks=("svelte",), project="/b"))

    connect(store)

    assert between(store, "technique_shared") == [
        ("newer", "older", "technique_shared"),
        ("older", "same", "technique_shared"),
    ]
    assert only(store, "newer", "technique_shared").reason == "both use caching, svelte"


def test_sessions_of_a_project_are_a_chain_where_nothing_closer_joins_them(store: GraphStore) -> None:
    told(store, "first", "2026-01-02", work("x", session="1"))
    told(store, "first_2", "2026-01-03", work("y", session="1"))
    told(store, "second", "2026-01-04", work("z", session="2"))
    told(store, "third", "2026-01-05", work("w", session="3", tags=("a",)))
    told(store, "fourth", "2026-01-06", work("v", session="4", tags=("a",)))
    told(store, "elsewhere", "2026-01-07", work("u", session="5", project="/b"))

    connect(store)

    assert between(store, "project_related") == [
        ("first_2", "second", "project_related"),
        ("second", "third", "project_related"),
    ]


def test_a_fork_is_a_closer_link(store: GraphStore) -> None:
    told(store, "parent", "2026-01-02", work("x", session="1"))
    told(store, "child", "2026-01-04", work("z", session="2"))
    store.link("parent", "fork", "child", created_by="boundary", valid_from="2026-01-04")

    assert connect(store).links == {}


def test_ids_are_found_as_words_of_a_text() -> None:
    assert names_in(["see 0a1b2c3d4e5f6071-v12, (node_7), at v1.2"]) == {"0a1b2c3d4e5f6071", "node_7"}


# ---- what is written ----------------------------------------------------------------------------


def test_nothing_is_written_into_the_nodes(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work("x", tags=("a",), errors=("boom",), project="/a"))
    told(store, "newer", "2026-01-03", work("y", tags=("a",), errors=("boom",), project="/b"))
    before = [store.node(id) for id in ("older", "newer")]
    clock.move(hours=1)

    done = connect(store)

    assert [store.node(id) for id in ("older", "newer")] == before
    assert str(done) == "2 segments: 2 links made (1 semantic, 1 failure_pattern)."
    assert only(store, "newer", "semantic").reason == "they share tags a"


def test_a_topic_alone_connects_nothing(store: GraphStore) -> None:
    for id, on, tags in (
        ("older", "2026-01-02", ()),
        ("newer", "2026-01-03", ()),
        ("tagged", "2026-01-04", ("a",)),
    ):
        content = work(tags=tags, session=id)
        content["semantic"]["topics"] = ["testing"]
        told(store, id, on, content)

    assert connect(store).links.get("semantic") is None


def test_what_did_nothing_has_no_links(store: GraphStore) -> None:
    for id, on in (("older", "2026-01-02"), ("newer", "2026-01-03")):
        content = work("Warmup", tags=("a",), session=id)
        content["content"]["idle"] = "start-up"
        told(store, id, on, content)

    assert connect(store).links == {}


def test_a_segment_has_ten_links_however_many_are_like_it(store: GraphStore) -> None:
    for number in range(1, 29):
        told(
            store,
            f"n{number:02}",
            f"2026-01-{number:02}",
            work(tags=("a", "b"), session=str(number), project=""),
        )
    connect(store, most=50)
    links = between(store, "semantic")
    ends = Counter(end for source, target, _ in links for end in (source, target))

    assert max(ends.values()) == 10
    told(store, "later", "2026-01-29", work(tags=("a", "b"), session="later", project=""))
    assert connect(store, most=50).taken_back == 0
    assert set(links) <= set(between(store, "semantic"))


def test_what_was_believed_before_stays_as_it_was(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    before = store.as_of()
    clock.move(days=1)

    connect(store)

    assert before.links_from("newer") == []
    assert before.node("newer").number == 1
    assert store.as_of(valid="2026-01-02T12:00:00Z").links_from("older") == []


def test_a_second_connect_is_no_transaction(disk_store: GraphStore) -> None:
    for number in range(6):
        content = work(
            f"step {number}", tags=("a",), errors=("boom",), session=str(number), project=f"/{number % 2}"
        )
        told(disk_store, f"node_{number}", f"2026-01-0{number + 1}", content)
    connect(disk_store)
    before = disk_store.stats()["transactions"]

    again = connect(disk_store)

    assert (again.links, again.revised, disk_store.stats()["transactions"]) == ({}, (), before)
    assert str(again) == "6 segments: nothing new."


def test_the_order_of_telling_makes_no_difference(clock: Clock) -> None:
    rows = [
        ("node_1", "2026-01-02", work("caching of the invoices", tags=("a", "b"), errors=("boom 12345",))),
        ("node_2", "2026-01-02", work("the invoices again, see node_4", tags=("b",), project="/b")),
        ("node_3", "2026-01-09", work("caching", tags=("a", "c"), errors=("boom 54321",))),
        ("node_4", "2026-01-20", work("cleanup", lessons=(("tool", "quote every path", ()),))),
    ]
    graphs = set()
    for order in permutations(rows):
        with graphstore.open(":memory:", clock=clock) as store:
            for row in order:
                told(store, *row)
            connect(store, now="2026-02-01")
            links = [link for row in rows for link in store.inspect(row[0]).links]
            graphs.add(
                repr(
                    (
                        [(row[0], store.node(row[0]).content) for row in rows],
                        sorted(
                            (link.id, link.source, link.kind, link.target, link.reason, link.valid_from)
                            for link in links
                        ),
                    )
                )
            )

    assert len(graphs) == 1
    assert "reference" in graphs.pop()


def test_connecting_after_each_telling_gives_the_same_links(clock: Clock) -> None:
    rng = random.Random(7)
    rows = [
        (
            f"node_{number}",
            f"2026-01-{number + 1:02}",
            work(f"s{number}", tags=tuple(rng.sample("abcdef", 3)), errors=(rng.choice("xyz"),)),
        )
        for number in range(12)
    ]
    found = []
    for order in (rows, rows[::-1], rng.sample(rows, 12)):
        with graphstore.open(":memory:", clock=clock) as store:
            for row in order:
                told(store, *row)
                connect(store)
            found.append(between(store))

    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 20


# ---- when it is so no more ----------------------------------------------------------------------


def test_a_link_that_has_no_ground_any_more_is_taken_back_with_a_reason(
    store: GraphStore, clock: Clock
) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)
    clock.move(days=1)
    store.revise("newer", work(tags=("z",), session="2"), tags=["z"])

    done = connect(store)

    assert (done.taken_back, done.links) == (1, {"project_related": 1})
    assert between(store) == [("newer", "older", "project_related")]
    reasons = [change.reason for change in store.changes() if change.verb == "unlink"]
    assert reasons == ["connect: no ground for it is found any more"]
    assert connect(store).links == {}


def test_a_link_found_otherwise_is_renewed(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)
    clock.move(days=1)
    store.revise("newer", work(tags=("a", "b"), session="2"), tags=["a", "b"])

    done = connect(store)

    assert (done.renewed, done.taken_back, done.links) == (1, 0, {})
    assert only(store, "newer", "semantic").metadata == {"similarity": 0.2}
    assert connect(store).renewed == 0


def test_a_link_somebody_took_back_stays_taken_back(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)
    clock.move(days=1)
    store.unlink(only(store, "newer", "semantic").id, reason="by chance")

    done = connect(store)

    assert (done.left, between(store)) == (1, [])


def test_what_somebody_else_said_is_left_alone(store: GraphStore) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    said = store.link("older", "semantic", "newer", reason="I say so", valid_from="2026-01-03")
    store.link("older", "failure_pattern", "newer", confidence="inferred", created_by="daemon")

    assert connect(store).links == {}
    assert only(store, "newer", "semantic").id == said.id
    assert len(store.links_from("newer", "failure_pattern")) == 1


def test_a_link_that_somebody_confirmed_is_theirs(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)
    store.link("newer", "semantic", "older", reason="indeed", valid_from="2026-01-03")
    clock.move(days=1)
    store.revise("newer", work(tags=("z",), session="2"), tags=["z"])

    assert connect(store).taken_back == 0
    assert only(store, "newer", "semantic").confidence == "explicit"


def test_links_to_what_no_longer_stands_stay(store: GraphStore, clock: Clock) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",), session="1"))
    told(store, "newer", "2026-01-03", work(tags=("a",), session="2"))
    connect(store)
    clock.move(days=1)
    store.retract("older", reason="a test run")

    assert connect(store).taken_back == 0
    assert only(store, "newer", "semantic").target_standing == "retracted"


# ---- what is odd --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"semantic": 3, "content": [], "lessons": {"tool": "x"}, "daemonMeta": None},
        {"semantic": {"tags": [1, None]}, "content": {"errorsSeen": [3, {"type": 1}], "summary": 7}},
    ],
)
def test_a_segment_of_another_shape_is_no_obstacle(store: GraphStore, content: dict[str, Any]) -> None:
    store.add_node("segment", content, id="odd_one", valid_from="2026-01-02")
    told(store, "newer", "2026-01-03", work("see odd_one"))

    connect(store)

    assert between(store) == [("newer", "odd_one", "reference")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0},
        {"threshold": 1.1},
        {"threshold": float("nan")},
        {"most": 0},
        {"most": True},
        {"window_days": 0},
        {"window_days": "30"},
    ],
)
def test_numbers_out_of_range_are_refused(store: GraphStore, wrong: dict[str, Any]) -> None:
    told(store, "older", "2026-01-02", work(tags=("a",)))

    with pytest.raises(InvalidError, match="Give a"):
        connect(store, **wrong)


def test_nothing_to_connect_is_nothing_written(store: GraphStore) -> None:
    assert str(connect(store)) == "0 segments: nothing new."
    assert store.stats()["transactions"] == 0


def subjects(count: int, days: int) -> list[Subject]:
    rng = random.Random(3)
    pick = lambda name, of, most: frozenset(f"{name}{int(of * rng.random() ** 2)}" for _ in range(most))  # noqa: E731
    return [
        Subject(
            id=f"{rng.getrandbits(64):016x}",
            since=number * days * DAY // count,
            session=str(number // 4),
            project=f"/p{number % 20}",
            tags=pick("tag", 400, 6),
            topics=pick("topic", 60, 2),
            words=pick("word", 3000, 15),
        )
        for number in range(count)
    ]


def brute(ordered: list[Subject]) -> set[tuple[str, str, float]]:
    """Every pair held against every other."""

    def part(one: frozenset[str], other: frozenset[str]) -> float:
        return len(one & other) / len(one | other) if one | other else 0.0

    found: set[tuple[str, str, float]] = set()
    ends: Counter[str] = Counter()
    for place, later in enumerate(ordered):
        near = []
        for number, earlier in enumerate(ordered[:place]):
            score = 0.4 * part(later.tags, earlier.tags) + 0.3 * part(later.topics, earlier.topics)
            score = round(score + 0.3 * part(later.words, earlier.words), 6)
            more = later.tags & earlier.tags or later.words & earlier.words
            if more and later.since - earlier.since <= LIMITS.window and score >= LIMITS.threshold:
                near.append((-score, -number, earlier.id))
        for score, _, id in sorted(near)[: LIMITS.most]:
            if max(ends[later.id], ends[id]) < 10:
                ends.update((later.id, id))
                found.add((later.id, id, -score))
    return found


def test_the_way_round_finds_what_looking_at_every_pair_finds() -> None:
    there = subjects(400, 90)

    found = {
        (each.source, each.target, each.metadata["similarity"])
        for each in connections(there, LIMITS)
        if each.kind == "semantic"
    }

    assert found == brute(there)
    assert len(found) > 40


@pytest.mark.rest
def test_five_thousand_segments_take_seconds() -> None:
    there = subjects(5000, 365)
    began = time.process_time()

    connections(there, LIMITS)

    assert time.process_time() - began < 10


# ---- with sessions that are told ----------------------------------------------------------------


def test_telling_the_sessions_again_after_connecting_is_no_transaction(
    store: GraphStore, clock: Clock
) -> None:
    clock.set("2026-06-01")
    sessions.ingest(store, shared_data("pi-v3-tree"))
    connect(store)
    before = store.stats()["transactions"]

    again = sessions.ingest(store, shared_data("pi-v3-tree"))
    connect(store)

    assert (again.new, again.revised, store.stats()["transactions"]) == (0, 0, before)


def test_sessions_told_in_any_order_have_the_same_connections(clock: Clock) -> None:
    clock.set("2026-06-01")
    files = sorted(shared_data("pi-v3-tree").glob("*.jsonl"))
    found = []
    for order in (files, files[::-1], [files[at] for at in (2, 4, 0, 3, 1)]):
        with graphstore.open(":memory:", clock=clock) as store:
            for file in order:
                sessions.ingest(store, file)
                connect(store)
                clock.move(minutes=1)
            found.append(between(store, *FOUND))

    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 4


@pytest.mark.in_process("gives a function of its own, which cannot be sent")
def test_what_is_analysed_again_keeps_its_connections(store: GraphStore, clock: Clock) -> None:
    clock.set("2026-06-01")

    class Newer:
        version = "newer"

        def __call__(self, work: sessions.Work) -> SessionNode | dict[str, Any]:
            return sessions.builtin(work)

    sessions.ingest(store, shared_data("pi-v3-tree"))
    connect(store)
    clock.move(days=1)
    sessions.reanalyze(store, analyze=Newer())

    assert connect(store).links == {}
