"""The questions about sessions: their answers on a small story and on real files, at coordinates, and the same in Cypher."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, sessions
from graphstore.errors import InvalidError, NotFoundError
from graphstore.graph import texts
from graphstore.sessions.segments.nodes import UNPRICED
from tests.conftest import Clock, day, shared_data
from tests.sessions.test_related import work

pytestmark = pytest.mark.served

SHOP, SITE = "/home/ana/shop", "/home/ana/site"
ALWAYS = {"since": datetime(1990, 1, 1, tzinfo=UTC), "until": datetime(2100, 1, 1, tzinfo=UTC)}


def decided(*taken: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"what": what, "why": why, "alternativesConsidered": ["wait"]} for what, why in taken]


def segment(session: str, summary: str, project: str = SHOP, **more: Any) -> dict[str, Any]:
    content = work(
        summary,
        session=session,
        project=project,
        errors=more.get("errors", ()),
        lessons=more.get("lessons", ()),
    )
    content["content"]["keyDecisions"] = decided(*more.get("decisions", ()))
    content["metadata"] |= {
        "cost": more.get("cost", 0),
        "tokensUsed": more.get("tokens", 0),
        "durationMinutes": more.get("minutes", 1),
    }
    content["observations"]["modelsUsed"] = more.get("models", [])
    return content


def used(model: str, tokens: int, cost: float, **cache: int) -> dict[str, Any]:
    return {
        "provider": "acme",
        "model": model,
        "tokensInput": tokens - 10,
        "tokensOutput": 10,
        "cost": cost,
        **cache,
    }


@pytest.fixture
def story(store: GraphStore, clock: Clock) -> GraphStore:
    """Two sessions on a shop, one on its site; the last segment was told on the second of February."""
    for id, on, content in (
        ("cart", "2026-01-05", segment("s1", "Build the cart.", cost=0.1, tokens=1000, minutes=30, models=[used("big", 1000, 0.1, cacheRead=7)],
            decisions=(("keep the cart in the session", "no account is needed"),),
            errors=("timeout after 30012 ms", "no such table"),
            lessons=(("tool", "quote every path", ("shell", "Paths")), ("user", "ask for the scope", ())))),
        ("prices", "2026-01-06", segment("s1", "Round the \"prices\".\n\\n\t.", cost=0.2, tokens=500, models=[used("big", 300, 0.15), used("small", 200, 0.05)],
            decisions=(("round half up", "the law says so"), ("keep the cart in the session", "it proved quick")))),
        ("site", "2026-01-08", segment("s2", "A page for the shop.", SITE, cost=0.7, tokens=70, models=[used("small", 70, 0.7)],
            errors=("timeout after 30999 ms",), lessons=(("tool", "quote every path", ("shell",)),))),
    ):  # fmt: skip
        store.add_node("segment", content, id=id, valid_from=on)
    clock.set("2026-02-02")
    again = segment("s3", "The cart again.", errors=("no such table",))
    again["lessons"]["task"] = [
        {"level": "task", "summary": "log both ends", "details": "", "confidence": "low", "tags": ["shell"], "actionable": "log"}
    ]  # fmt: skip
    store.add_node("segment", again, id="again", valid_from="2026-02-01")
    clock.set("2026-02-03")
    return store


# ---- what was done ------------------------------------------------------------------------------


def test_work_on_a_project_is_told_from_the_oldest_on(story: GraphStore) -> None:
    found = sessions.work_on(story, SHOP)

    assert [(each.node, each.session) for each in found.work] == [
        ("cart", "s1"),
        ("prices", "s1"),
        ("again", "s3"),
    ]
    assert (found.sessions, found.cost, found.tokens, found.minutes) == (2, 0.3, 1500, 32)
    assert str(found) == (
        "/home/ana/shop: 3 pieces of work in 2 sessions, 32 minutes, $0.3000, 1,500 tokens.\n"
        "2026-01-05  coding success: Build the cart.  [cart]\n"
        '2026-01-06  coding success: Round the "prices". \\n .  [prices]\n'
        "2026-02-01  coding success: The cart again.  [again]"
    )


def test_a_stretch_of_time_begins_with_its_start_and_ends_before_its_end(story: GraphStore) -> None:
    found = sessions.work_on(story, SHOP, since="2026-01-06", until="2026-01")

    assert [each.node for each in found] == ["prices"]
    assert (
        str(sessions.work_on(story, SHOP, until="2026-01-01"))
        == "/home/ana/shop until 2026-01-02 00:00Z: nothing."
    )


def test_a_project_is_named_by_the_end_of_its_path(story: GraphStore) -> None:
    assert sessions.work_on(story, "site").project == SITE
    assert sessions.work_on(story, "ana/shop").project == SHOP
    story.add_node("segment", segment("s4", "x", "/home/bob/shop"), valid_from="2026-01-01")
    with pytest.raises(InvalidError, match="may be any of /home/ana/shop, /home/bob/shop"):
        sessions.work_on(story, "shop")


def test_an_unknown_project_is_an_error_that_names_the_nearest(story: GraphStore) -> None:
    with pytest.raises(
        NotFoundError, match=r"no work on project 'shopp' is known here. Known: /home/ana/shop\."
    ):
        sessions.work_on(story, "shopp")
    with pytest.raises(NotFoundError, match="no project at all"):
        sessions.work_on(story.as_of(valid="2020-01-01"), SHOP)


def test_what_was_learned_later_is_not_in_an_earlier_answer(story: GraphStore) -> None:
    found = sessions.work_on(story.as_of(valid="2026-02-03", tx="2026-02-01T12:00:00Z"), SHOP)

    assert [each.node for each in found] == ["cart", "prices"]
    assert len(sessions.work_on(story.as_of(valid="2026-01-05"), SHOP)) == 1


# ---- what was decided ---------------------------------------------------------------------------


def test_decisions_stand_once_with_the_latest_reason(story: GraphStore) -> None:
    found = sessions.decisions(story, "shop")

    assert [(each.what, each.why, each.node, each.times) for each in found] == [
        ("keep the cart in the session", "it proved quick", "prices", 2),
        ("round half up", "the law says so", "prices", 1),
    ]
    assert (found.decisions[0].first_at, found.decisions[0].last_at) == (day("2026-01-05"), day("2026-01-06"))
    assert str(found).splitlines()[1] == "2026-01-06  round half up because the law says so  [prices]"


def test_what_a_superseded_or_retracted_segment_decided_does_not_stand(story: GraphStore) -> None:
    story.supersede("prices", by="again", reason="another tax")
    assert [each.node for each in sessions.decisions(story)] == ["cart"]
    story.retract("cart", reason="a test run")

    assert str(sessions.decisions(story)) == "No decision is known here."
    assert len(sessions.decisions(story.as_of(valid="2026-01-07", tx="2026-02-02"))) == 2


# ---- what was learned ---------------------------------------------------------------------------


def test_lessons_are_ranked_by_confidence_then_the_latest(story: GraphStore) -> None:
    found = sessions.lessons(story, "SHELL")

    assert [(each.level, each.summary, each.project, each.confidence) for each in found] == [
        ("tool", "quote every path", SITE, "high"),
        ("tool", "quote every path", SHOP, "high"),
        ("task", "log both ends", SHOP, "low"),
    ]
    assert str(found).splitlines()[2] == "low    task: log both ends → log  [again]"


def test_lessons_of_a_level_a_project_or_any(story: GraphStore) -> None:
    assert [each.node for each in sessions.lessons(story, ["paths", "other"])] == ["cart"]
    assert [each.summary for each in sessions.lessons(story, level="user")] == ["ask for the scope"]
    assert [each.node for each in sessions.lessons(story, project="site")] == ["site"]
    assert len(sessions.lessons(story)) == 4
    assert str(sessions.lessons(story, ["css", "html"])) == "No lesson is known here for css, html."
    with pytest.raises(InvalidError, match=r"unknown level 'tools'.*Did you mean 'tool'"):
        sessions.lessons(story, level="tools")


# ---- what failed again --------------------------------------------------------------------------


def test_errors_recur_when_they_came_in_several_sessions(story: GraphStore) -> None:
    found = sessions.recurring_errors(story)

    assert [(each.message, each.sessions, each.nodes) for each in found] == [
        ("no such table", ("s1", "s3"), ("cart", "again")),
        ("timeout after 30999 ms", ("s1", "s2"), ("cart", "site")),
    ]
    assert str(found).splitlines()[1] == (
        "2 sessions, 2026-01-05 to 2026-01-08, not resolved the last time: tool: timeout after 30999 ms"
    )
    assert len(sessions.recurring_errors(story, at_least=3)) == 0
    assert [each.message for each in sessions.recurring_errors(story.as_of(valid="2026-01-30"))] == [
        "timeout after 30999 ms"
    ]


def test_an_error_has_the_name_that_links_of_failures_have(story: GraphStore) -> None:
    sessions.connect(story)

    links = [link for id in ("cart", "site", "again") for link in story.links_from(id, "failure_pattern")]
    assert {link.metadata["patternId"] for link in links} == {
        each.pattern for each in sessions.recurring_errors(story)
    }


# ---- what it cost -------------------------------------------------------------------------------


def test_costs_by_whatever(story: GraphStore) -> None:
    assert [(row.key, row.cost, row.tokens, row.pieces) for row in sessions.costs(story)] == [
        (SITE, 0.7, 70, 1),
        (SHOP, 0.3, 1500, 3),
    ]
    assert [(row.key, row.cost, row.tokens, row.cache_read) for row in sessions.costs(story, "model")] == [
        ("acme/small", 0.75, 270, 0),
        ("acme/big", 0.25, 1300, 7),
    ]
    assert [row.key for row in sessions.costs(story, by="session")] == ["s2", "s1", "s3"]
    assert [row.key for row in sessions.costs(story, by="day")] == [
        "2026-01-05", "2026-01-06", "2026-01-08", "2026-02-01",
    ]  # fmt: skip
    assert str(sessions.costs(story)).splitlines()[-1] == "     $1.00  1,570 tokens in all, by project"
    with pytest.raises(InvalidError, match="unknown by 'week'"):
        sessions.costs(story, "week")


def test_nothing_known_is_an_answer(store: GraphStore) -> None:
    assert str(sessions.recurring_errors(store)) == "No error is known here that came in 2 sessions or more."
    assert str(sessions.lessons(store)) == "No lesson is known here."
    assert str(sessions.costs(store)) == "     $0.00  0 tokens in all, by project"


# ---- what was forked from what ------------------------------------------------------------------


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    """The five sessions that were forked from each other."""
    store = graphstore.open(":memory:")
    sessions.ingest(store, shared_data("pi-v3-tree"))
    return store


ROOT, CHILD, GRANDCHILD = (
    "019b2dd3-003f-718f-8a53-58f7afa72480",
    "019b2e78-12c9-718f-8a53-58f9f41ae70e",
    "019b2eaf-0149-718f-8a53-58fb9d8648db",
)
CLONE, MOVED = "019b2eca-7889-718f-8a53-58fc62cad99f", "019b2ef8-3f49-718f-8a53-58ffffa409c7"


def test_lineage_goes_up_to_the_first_and_down_to_the_last(family: GraphStore) -> None:
    top, low = sessions.lineage(family, ROOT), sessions.lineage(family, GRANDCHILD)

    assert [each.session for each in low.ancestors] == [CHILD, ROOT]
    assert low.descendants == ()
    assert top.ancestors == ()
    for each in (low.subject, *low.ancestors, *top.descendants):
        assert each.file is not None and each.file.endswith(f"{each.session}.jsonl")
    assert [(each.session, each.generations, each.parent) for each in top.descendants] == [
        (CHILD, 1, ROOT), (CLONE, 1, ROOT), (MOVED, 1, ROOT), (GRANDCHILD, 2, CHILD),
    ]  # fmt: skip
    assert str(sessions.lineage(family, CHILD)).splitlines()[1].endswith("←")
    assert [line.split()[0] for line in str(top).splitlines()] == [ROOT, CHILD, GRANDCHILD, CLONE, MOVED]


def test_a_session_is_named_by_any_of_its_ids(family: GraphStore) -> None:
    wanted = sessions.lineage(family, CHILD)
    node = sessions.session_node(CHILD)
    [segment_id] = family.node(node).content["nodes"]

    for name in (node, segment_id, f"{segment_id}-v1"):
        assert sessions.lineage(family, name) == wanted
    with pytest.raises(NotFoundError):
        sessions.lineage(family, CHILD[:13])


def test_a_session_forked_on_another_project_is_a_relative(family: GraphStore) -> None:
    found = sessions.lineage(family, MOVED)

    assert found.subject.project != found.ancestors[0].project
    assert found.subject.shared_entries and found.subject.forked_at


def test_a_missing_parent_is_marked(tmp_path: Path, store: GraphStore, clock: Clock) -> None:
    clock.set("2026-03-01")
    [file] = shared_data("pi-v3-tree").glob(f"*{GRANDCHILD}.jsonl")
    shutil.copy(file, tmp_path)
    sessions.ingest(store, tmp_path)

    [parent] = sessions.lineage(store, GRANDCHILD).ancestors

    assert (parent.session, parent.missing, parent.started_at) == (CHILD, True, None)
    assert parent.file is not None and "/" not in parent.file and CHILD in parent.file
    assert str(parent) == f"{CHILD} (missing: its file was not read)"


def test_what_is_no_session_is_refused(store: GraphStore) -> None:
    store.add_node("fact", {"x": 1}, id="a_fact")

    with pytest.raises(InvalidError, match="no session and no segment"):
        sessions.lineage(store, "a_fact")
    with pytest.raises(NotFoundError):
        sessions.lineage(store, "nothing_like_it")


def test_a_lineage_goes_round_in_no_circle(store: GraphStore) -> None:
    for id, on in (("one", "2026-01-01"), ("two", "2026-01-02"), ("three", "2026-01-03")):
        store.add_node(
            "segment", segment(id[0], "x"), id=id, valid_from=on
        )  # one and two: o and t; three: t again
    store.link("one", "fork", "two", created_by="boundary")
    store.add_node("segment", segment("o", "x"), id="four", valid_from="2026-01-04")
    store.link("three", "fork", "four", created_by="boundary")

    found = sessions.lineage(store, "one")

    assert [each.session for each in found.ancestors] == ["t"]
    assert found.descendants == ()


def test_what_no_cost_is_said_of_is_unknown_and_not_free(store: GraphStore) -> None:
    no_cost = {"timestamp": "2026-01-01T00:00:00Z", "decision": UNPRICED, "reasoning": "tokens only"}
    for id, project, cost, unpriced in (("a", "/x", 0.5, False), ("b", "/x", 0, True), ("c", "/y", 0, True)):
        content = segment(id, "Weave.", project, cost=cost, tokens=10)
        content["daemonMeta"] = {"decisions": [no_cost] if unpriced else []}
        store.add_node("segment", content, id=id, valid_from="2026-01-01")

    found = sessions.costs(store)

    assert [("/x", 0.5, 1, 2), ("/y", 0, 1, 1)] == [
        (row.key, row.cost, row.unpriced, row.pieces) for row in found
    ]
    assert [
        "  $0.5000+  20 tokens  /x",
        "   unknown  10 tokens  /y",
        "  $0.5000+  30 tokens in all, by project; no cost is known of 2 pieces of work",
    ] == str(found).splitlines()
    assert ", 10 tokens." in (said := str(sessions.work_on(store, "/y"))) and "$" not in said
    assert "$0.5000+, 20 tokens." in str(sessions.work_on(store, "/x"))


def test_where_no_price_is_known_tokens_alone_are_told(store: GraphStore) -> None:
    for id, project, tokens in (("a", "/x", 5), ("b", "/x", 0), ("c", "/y", 7)):
        content = segment(id, "Weave.", project, cost=0, tokens=tokens)
        unpriced = {"timestamp": "2026-01-01T00:00:00Z", "decision": UNPRICED, "reasoning": "tokens only"}
        content["daemonMeta"] = {"decisions": [unpriced] if tokens else []}
        store.add_node("segment", content, id=id, valid_from="2026-01-01")

    assert str(sessions.costs(store)).splitlines() == [
        "7 tokens  /y",
        "5 tokens  /x",
        "12 tokens in all, by project",
    ]


# ---- the same in Cypher -------------------------------------------------------------------------


@pytest.fixture(params=["story", "real"])
def told(request: pytest.FixtureRequest) -> GraphStore:
    """The story, and real sessions."""
    if request.param == "story":
        found: GraphStore = request.getfixturevalue("story")
        return found
    store: GraphStore = request.getfixturevalue("store")
    request.getfixturevalue("clock").set("2026-06-01")
    for folder in ("pi-v3-tree", "pi-brain-fixtures", "claude-code", "pi-v1"):
        sessions.ingest(store, shared_data(folder))
    return store


def rows(store: GraphStore, name: str, **params: Any) -> list[dict[str, Any]]:
    return store.query(texts.text(name), **params).rows()


def test_work_is_the_same_in_cypher(told: GraphStore) -> None:
    projects = {row.key for row in sessions.costs(told)}
    assert projects
    for project in projects:
        found = rows(told, "sessions_work", project=project, **ALWAYS)
        assert found == [
            {
                name: getattr(each, name)
                for name in ("node", "session", "started_at", "type", "outcome", "summary")
            }
            for each in sessions.work_on(told, project)
        ]


def test_decisions_are_the_same_in_cypher(told: GraphStore) -> None:
    found = rows(told, "sessions_decisions")

    assert found == [
        {name: getattr(each, name) for name in ("project", "what", "first_at", "last_at", "times")}
        for each in sessions.decisions(told)
    ]


def test_lessons_are_the_same_in_cypher(story: GraphStore) -> None:
    found = rows(story, "sessions_lessons", tags=["shell", "paths"])

    assert [(row["node"], row["level"], row["summary"], row["confidence"]) for row in found] == [
        (each.node, each.level, each.summary, each.confidence)
        for each in sessions.lessons(story, ["shell", "paths"])
    ]


@pytest.mark.parametrize("at_least", [1, 2])
def test_recurring_errors_are_the_same_in_cypher(told: GraphStore, at_least: int) -> None:
    found = rows(told, "sessions_recurring_errors", at_least=at_least)

    assert sorted((row["type"], row["sessions"], row["first_at"], row["last_at"]) for row in found) == sorted(
        (each.type, len(each.sessions), each.first_at, each.last_at)
        for each in sessions.recurring_errors(told, at_least)
    )


def test_forks_are_the_same_in_cypher(told: GraphStore) -> None:
    found = {(row["parent"], row["child"], row["missing"]) for row in rows(told, "sessions_forks")}

    lineages = [sessions.lineage(told, node.id) for node in told.nodes("session")]
    assert found == {
        (each.ancestors[0].session, each.subject.session, each.ancestors[0].missing)
        for each in lineages
        if each.ancestors
    }


@pytest.mark.parametrize("by", ["project", "model", "session", "day"])
def test_costs_are_the_same_in_cypher(told: GraphStore, by: str) -> None:
    found = rows(told, f"sessions_costs_by_{by}")

    assert {(row["key"], round(row["cost"], 6), row["tokens"], row["pieces"]) for row in found} == {
        (row.key, row.cost, row.tokens, row.pieces) for row in sessions.costs(told, by)
    }


@pytest.mark.parametrize(
    "message",
    [
        "GET https://x.io/a?b=1 failed", "id 123e4567-e89b-12d3-a456-426614174000 at 2026-01-02T03:04:05Z", "0xDEADBEEF and 0x1",
        "commit deadbeef1 and deadbeef and 1234567 and abc1def22 and facade0", "404 is not 5000", "a\n  b\tc\rd", "line \"quoted\" \\ back \\n",
        "2026-01-02 10:11:12,123 x", "abcdefabcdef1abc 12345678 a1b2c3d4", "ü 1234 é",
    ],
)  # fmt: skip
def test_an_error_reads_the_same_in_cypher(store: GraphStore, message: str) -> None:
    """What Python takes for one pattern, Cypher does."""
    store.add_node("segment", segment("s1", "x", errors=(message,)), valid_from="2026-01-01")
    [row] = rows(store, "sessions_recurring_errors", at_least=1)
    store.add_node("segment", segment("s2", "y", errors=(row["pattern"],)), valid_from="2026-01-01")

    assert len(rows(store, "sessions_recurring_errors", at_least=2)) == 1
    assert len(sessions.recurring_errors(store, 2)) == 1
