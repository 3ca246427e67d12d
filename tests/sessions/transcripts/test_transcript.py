"""Session files as entries, boundaries and segments: what was written is found again, entry for entry."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from graphstore import transcripts
from graphstore.cli.command_line import app
from graphstore.errors import EngineError, InvalidError, NotFoundError
from graphstore.sessions.transcripts.transcript import Boundary, Transcript
from tests.conftest import shared_data
from tests.support.session_files import Line, at, claude, header, marked, said, write

Make = Callable[..., Transcript]

REAL = [
    ("pi-v3-tree/2025-12-17T19-39-21-535Z_019b2dd3-003f-718f-8a53-58f7afa72480.jsonl", 472),
    ("pi-v3-tree/2025-12-17T22-39-39-721Z_019b2e78-12c9-718f-8a53-58f9f41ae70e.jsonl", 60),
    ("pi-v3-tree/2025-12-17T23-39-39-721Z_019b2eaf-0149-718f-8a53-58fb9d8648db.jsonl", 68),
    ("pi-v3-tree/2025-12-18T00-09-39-721Z_019b2eca-7889-718f-8a53-58fc62cad99f.jsonl", 291),
    ("pi-v3-tree/2025-12-18T00-59-39-721Z_019b2ef8-3f49-718f-8a53-58ffffa409c7.jsonl", 474),
    ("pi-brain-fixtures/session-forked.jsonl", 4),
    ("pi-brain-fixtures/session-with-branch-summary.jsonl", 7),
    ("pi-brain-fixtures/session-with-compaction.jsonl", 7),
    ("pi-brain-fixtures/session-with-mixed-boundaries.jsonl", 16),
    ("pi-brain-fixtures/session-with-resume.jsonl", 8),
    ("pi-brain-fixtures/simple-session.jsonl", 6),
    ("pi-v1/before-compaction.jsonl", 1002),
    ("pi-v1/large-session.jsonl", 1018),
    ("claude-code/5e41ef2f-689e-4d7d-b917-06ebc40107bc.jsonl", 158),
    ("claude-code/agent-a78d046.jsonl", 30),
    ("claude-code/f968233b-ebe5-4958-aa2d-69a2d8e7413c.jsonl", 87),
]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """A transcript of lines that are written first."""

    def make(*lines: Line, name: str = "session.jsonl", **how: Any) -> Transcript:
        return transcripts.read(write(tmp_path / name, *lines), **how)

    return make


def cuts(t: Transcript) -> list[tuple[str, str, str | None]]:
    return [(cut.type, cut.entry_id, cut.previous_entry_id) for cut in transcripts.boundaries(t)]


def spans(t: Transcript) -> list[tuple[str, str, int]]:
    return [(one.start_entry_id, one.end_entry_id, one.entry_count) for one in transcripts.segments(t)]


# ---- real files -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "entries"), REAL)
def test_real_files_load_whole_and_every_entry_is_in_one_segment(name, entries):
    t = transcripts.read(shared_data(name))

    found = transcripts.segments(t)

    assert ({}, entries) == (t.warning_counts, len(t.entries))
    positions = [at for one in found for at in range(one.start, one.stop)]
    assert list(range(entries)) == positions
    assert sum(entry.is_content for entry in t.entries) == sum(one.entry_count for one in found)
    lines = shared_data(name).read_bytes().splitlines()
    for one in found:
        for entry, body in t.bodies(one):
            assert orjson.loads(lines[entry.line - 1]) == body


@pytest.mark.parametrize(("name", "entries"), REAL)
def test_segments_carry_the_boundaries_at_their_ends(name, entries):
    t = transcripts.read(shared_data(name))

    found = transcripts.segments(t)

    assert transcripts.boundaries(t) == [cut for one in found for cut in one.opened_by]
    assert [one.boundaries for one in found] == [*(one.opened_by for one in found[1:]), ()]


def truth() -> dict[str, Any]:
    return json.loads(shared_data("pi-v3-tree/TRUTH.json").read_text())


def as_truth(cut: Boundary) -> dict[str, Any]:
    """A boundary in the words of TRUTH.json."""
    told: dict[str, Any] = {"type": cut.type, "entryId": cut.entry_id}
    match cut.type:
        case "branch" | "tree_jump":
            told |= {
                "abandonedLeafId": cut.previous_entry_id,
                "branchPointId": cut.metadata["branch_point_id"],
            }
        case "compaction":
            told |= {
                "firstKeptEntryId": cut.metadata["first_kept_entry_id"],
                "tokensBefore": cut.metadata["tokens_before"],
            }
        case "resume":
            told["gapMinutes"] = cut.metadata["gap_minutes"]
    return told


def test_boundaries_of_a_tree_are_those_it_was_made_with():
    folder = shared_data("pi-v3-tree")
    for name, made in truth().items():
        if "boundaries" in made:
            t = transcripts.read(folder / name)
            assert made["boundaries"] == [as_truth(cut) for cut in transcripts.boundaries(t)]
            assert (made["entries"], made["name"], made["leafId"]) == (
                len(t.entries),
                t.name,
                t.entries[-1].id,
            )


@pytest.mark.parametrize("alone", [False, True], ids=["parent at hand", "parent missing"])
def test_forks_share_what_they_were_made_to_share(tmp_path, alone):
    folder = shared_data("pi-v3-tree")
    forks = {name: made for name, made in truth().items() if "parentSession" in made}
    for name, made in forks.items():
        file = folder / name
        if alone:
            file = tmp_path / made["role"] / name
            file.parent.mkdir(exist_ok=True)
            shutil.copy(folder / name, file)
        t = transcripts.read(file)
        own = len(t.entries) - t.copied
        parent = truth()[Path(made["parentSession"]).name]
        whole = parent.get("entries", made.get("sharedEntries"))
        fork = [cut for cut in transcripts.boundaries(t) if cut.type == "fork"]

        assert made.get("sharedEntries", whole) == t.copied, name
        assert made.get("lastSharedEntryId", parent.get("leafId")) == t.last_shared
        assert made.get("newEntries", len(t.entries) - whole) == own
        assert [(t.last_shared, t.copied)] == [
            (cut.previous_entry_id, cut.metadata["shared_entries"]) for cut in fork
        ]
        assert made["parentSession"] == fork[0].metadata["parent_session"] == t.header.parent_session
        assert fork[0].entry_id == next(entry.id for entry in t.entries[t.copied :] if entry.is_content)
        assert [fork[0]] == [cut for cut in transcripts.boundaries(t) if "copied" not in cut.metadata]


def test_a_cross_project_copy_has_the_boundaries_of_its_parent_as_copied_ones():
    folder = shared_data("pi-v3-tree")
    names = truth()
    root = next(made for made in names.values() if "boundaries" in made)
    copy = next(name for name, made in names.items() if "parentSession" in made and "entries" in made)

    t = transcripts.read(folder / copy)

    assert root["boundaries"] == [
        as_truth(cut) for cut in transcripts.boundaries(t) if cut.metadata.get("copied")
    ]
    assert [True] * 8 + [False] == [one.copied for one in transcripts.segments(t)]


def test_fixtures_have_the_boundaries_their_names_say():
    found = {
        name: cuts(transcripts.read(shared_data(f"pi-brain-fixtures/{name}.jsonl")))
        for name in (
            "simple-session", "session-with-resume", "session-with-compaction", "session-with-branch-summary",
            "session-with-mixed-boundaries", "session-forked",
        )
    }  # fmt: skip

    assert found == {
        "simple-session": [],
        "session-with-resume": [("resume", "00000005", "00000004")],
        "session-with-compaction": [("compaction", "00000005", "00000004")],
        "session-with-branch-summary": [("branch", "00000005", "00000002")],
        "session-with-mixed-boundaries": [
            ("compaction", "00000009", "00000008"),
            ("resume", "00000012", "00000011"),
            ("branch", "00000014", "00000011"),
        ],
        "session-forked": [("fork", "00000001", None)],
    }


def test_first_version_is_chained_in_file_order_and_its_index_names_an_entry():
    t = transcripts.read(shared_data("pi-v1/before-compaction.jsonl"))
    compactions = [cut for cut in transcripts.boundaries(t) if cut.type == "compaction"]

    assert [None, *(entry.id for entry in t.entries[:-1])] == [entry.parent_id for entry in t.entries]
    assert 1 == t.header.version
    assert 2 == len(compactions)
    for cut in compactions:
        body = t.body(t.entry(cut.entry_id))
        line = (
            shared_data("pi-v1/before-compaction.jsonl")
            .read_bytes()
            .splitlines()[body["firstKeptEntryIndex"]]
        )
        assert orjson.loads(line) == t.body(t.entry(cut.metadata["first_kept_entry_id"]))
        assert body["tokensBefore"] == cut.metadata["tokens_before"]


def test_sub_agent_names_the_session_it_works_for():
    t = transcripts.read(shared_data("claude-code/agent-a78d046.jsonl"))

    assert ("claude", "agent-a78d046", "ed5cdc07-c483-4510-a9cd-9560315a5e7a") == (
        t.header.format,
        t.header.session_id,
        t.header.parent_session_id,
    )
    assert [("fork", t.entries[0].id, None)] == cuts(t)
    assert all(entry.sidechain for entry in t.entries)


# ---- jumps ------------------------------------------------------------------------------------


def test_renames_and_labels_are_no_jumps(made):
    t = made(
        header(),
        said("a", None),
        marked("session_info", "name1", "a", name="first"),
        marked("label", "label", "name1", targetId="a", label="here"),
        said("b", "label"),
        marked("session_info", "name2", "b", name="second"),
        said("c", "b"),  # beside the rename: its parent's content is the same
    )

    assert [] == cuts(t)
    assert [("a", "c", 3)] == spans(t)
    assert "second" == t.name
    assert ["label", "name1", "a"] == [entry.id for entry in t.ancestors("b")]
    assert "a" == t.content_parent("b").id


@pytest.mark.parametrize("kind", ["message", "custom", "model_change", "never heard of"])
def test_every_content_entry_can_jump(made, kind):
    t = made(header(), said("a", None), said("b", "a"), marked(kind, "c", "a"))

    assert [("tree_jump", "c", "b")] == cuts(t)
    assert "a" == transcripts.boundaries(t)[0].metadata["branch_point_id"]


def test_a_later_entry_without_parent_jumps_to_the_root(made):
    t = made(header(), said("a", None), said("b", "a"), said("c", None))

    assert [("tree_jump", "c", "b")] == cuts(t)
    assert {"branch_point_id": None} == transcripts.boundaries(t)[0].metadata


def test_a_label_before_a_jump_stays_where_it_was_written(made):
    t = made(header(), said("a", None), said("b", "a"), marked("label", "x", "b"), said("c", "a"))

    assert [(0, 3), (3, 4)] == [(one.start, one.stop) for one in transcripts.segments(t)]
    assert [("a", "b", 2), ("c", "c", 1)] == spans(t)


def test_neither_a_branch_summary_nor_the_entry_after_it_jumps(made):
    t = made(
        header(),
        said("a", None),
        said("b", "a"),
        marked("branch_summary", "s", "a", fromId="b", summary="tried"),
        said("c", "a"),
        said("d", "c"),
    )

    assert [("branch", "s", "b")] == cuts(t)
    assert {"branch_point_id": "a", "summary": "tried"} == transcripts.boundaries(t)[0].metadata


@pytest.mark.parametrize(
    ("from_id", "left"),
    [("b", "b"), ("a", "c"), ("root", "c"), (None, "c"), (7, "c"), ("", "c"), ("x", "c"), ("gone", "gone")],
)
def test_the_leaf_a_branch_left(made, from_id, left):
    t = made(
        header(),
        said("a", None),
        said("b", "a"),
        said("c", "b"),
        marked("label", "x", "c"),
        marked("branch_summary", "s", "a", fromId=from_id),
    )

    assert [("branch", "s", left)] == cuts(t)


def test_a_branch_from_the_root_leaves_the_content_before(made):
    t = made(header(), said("a", None), said("b", "a"), marked("branch_summary", "s", None, fromId="root"))

    assert [("branch", "s", "b")] == cuts(t)


# ---- pauses and compactions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "gap"), [(10, 10.0), (9.999, None), (25.1234, 25.12), (-30, None), (1e6, 1e6)]
)
def test_a_pause_is_ten_minutes_or_more(made, minutes, gap):
    t = made(header(), said("a", None, 0), said("b", "a", minutes))

    assert ([] if gap is None else [{"gap_minutes": gap}]) == [
        cut.metadata for cut in transcripts.boundaries(t)
    ]


def test_metadata_neither_fills_nor_makes_a_pause(made):
    t = made(
        header(),
        said("a", None, 0),
        marked("label", "x", "a", 7),
        said("b", "x", 12),
        marked("label", "y", "b", 60),
    )

    assert [("resume", "b", "a")] == cuts(t)


def test_several_boundaries_at_one_entry_make_one_cut(made):
    t = made(
        header(),
        said("a", None, 0),
        said("b", "a", 1),
        marked(
            "compaction", "c", "a", 30, summary="so far", firstKeptEntryId="a", tokensBefore=9, tokensAfter=2
        ),
    )

    assert [("tree_jump", "c", "b"), ("compaction", "c", "b"), ("resume", "c", "b")] == cuts(t)
    assert {
        "summary": "so far",
        "tokens_before": 9,
        "tokens_after": 2,
        "first_kept_entry_id": "a",
    } == transcripts.boundaries(t)[1].metadata
    assert [("a", "b", 2), ("c", "c", 1)] == spans(t)


def test_metadata_at_the_beginning_goes_with_the_first_content(made):
    t = made(
        header(), marked("session_info", "x", None, name="n"), marked("compaction", "c", "x"), said("a", "c")
    )

    assert [("c", "a", 2)] == spans(t)
    assert ["compaction"] == [cut.type for cut in transcripts.segments(t)[0].opened_by]


def test_a_file_of_metadata_is_one_segment_without_content(made):
    t = made(header(), marked("label", "x", None), marked("label", "y", "x"))

    assert [("x", "y", 0)] == spans(t)


def test_an_empty_session_has_no_segments(made):
    assert [] == spans(made(header()))


# ---- forks ------------------------------------------------------------------------------------

PARENT = [header("mother", 0), said("a", None, 1), said("b", "a", 2), said("c", "b", 3)]


def test_the_parent_is_found_beside_the_file(made):
    made(*PARENT, name="mother.jsonl")
    child = [header("child", 60, parentSession="/elsewhere/mother.jsonl"), *PARENT[1:3]]

    t = made(*child, marked("label", "l", "b", 1), said("d", "l", 61), name="child.jsonl")

    assert (2, "b", "mother") == (t.copied, t.last_shared, t.header.parent_session_id)
    assert [("fork", "d", "b")] == cuts(t)
    assert [(0, 2, True), (2, 4, False)] == [
        (one.start, one.stop, one.copied) for one in transcripts.segments(t)
    ]


@pytest.mark.parametrize("named", ["C:\\sessions\\mother.jsonl", "/gone/mother.jsonl", "mother.jsonl"])
def test_the_parent_can_be_given(made, tmp_path, named):
    parent = write(tmp_path / "moved.jsonl", *PARENT)
    t = made(header("child", 0, parentSession=named), *PARENT[1:3], said("d", "b", 61), parent=parent)

    assert (2, "mother") == (t.copied, t.header.parent_session_id)


def test_without_the_parent_what_is_older_than_the_fork_is_copied_less_the_labels_it_wrote_anew(made):
    child = [header("child", 60, parentSession="/gone/2026-01-25T10-00-00-000Z_mother.jsonl"), *PARENT[1:3]]

    t = made(*child, marked("label", "l", "b", 1), said("d", "l", 61))

    assert (2, "b", "mother") == (t.copied, t.last_shared, t.header.parent_session_id)


def test_an_entry_that_does_not_say_when_is_copied_with_those_around_it(made):
    first, second, third = PARENT[1:]
    child = header("child", 60, parentSession="/gone/mother.jsonl")

    t = made(child, first, {**second, "timestamp": None}, third, {**said("d", "c"), "timestamp": None})

    assert (3, "c") == (t.copied, t.last_shared)


def test_the_same_id_at_another_instant_is_another_entry(made, tmp_path):
    parent = write(tmp_path / "mother.jsonl", header("mother"), said("00000001", None, 1))
    t = made(header("child", 60, parentSession="mother.jsonl"), said("00000001", None, 61), parent=parent)

    assert 0 == t.copied


def test_a_fork_goes_on_from_its_point_without_a_jump_or_a_pause_of_its_own(made):
    child = [header("child", 60, parentSession="/gone/mother.jsonl"), *PARENT[1:]]

    t = made(*child, said("d", "a", 61))

    assert [("fork", "d", "c")] == cuts(t)
    assert {
        "parent_session": "/gone/mother.jsonl",
        "parent_session_id": "mother",
        "shared_entries": 3,
        "gap_minutes": 58.0,
        "branch_point_id": "a",
    } == transcripts.boundaries(t)[0].metadata


def test_a_fork_that_nothing_was_said_in_is_all_copied(made):
    t = made(
        header("child", 60, parentSession="/gone/mother.jsonl"), *PARENT[1:], marked("label", "l", "c", 1)
    )

    assert [] == cuts(t)
    assert [("a", "c", 3, True), ("l", "l", 0, False)] == [
        (one.start_entry_id, one.end_entry_id, one.entry_count, one.copied) for one in transcripts.segments(t)
    ]


def test_a_compaction_that_begins_a_fork_is_told_beside_it(made):
    child = [header("child", 60, parentSession="/gone/mother.jsonl"), *PARENT[1:]]

    t = made(*child, marked("compaction", "k", "c", 61, summary="s"))

    assert [("fork", "k", "c"), ("compaction", "k", "c")] == cuts(t)


def test_a_session_that_names_itself_as_its_parent_is_read(made):
    t = made(header("child", 60, parentSession="session.jsonl"), said("a", None, 61))

    assert [("fork", "a", None)] == cuts(t)


def test_forks_without_ids_share_lines_that_are_the_same(made, tmp_path):
    lines: list[Line] = [
        {"type": "message", "timestamp": at(n), "message": {"role": "user", "content": "go on"}}
        for n in (1, 1, 2)
    ]
    parent = write(tmp_path / "mother.jsonl", {**header("mother"), "version": 1}, *lines)
    child = {"type": "session", "id": "child", "timestamp": at(0), "branchedFrom": str(parent)}

    t = made(child, *lines[:2], {**lines[2], "timestamp": at(3)})  # type: ignore[dict-item]

    assert (2, 1) == (t.copied, t.header.version)
    assert 3 == len({entry.id for entry in t.entries})


# ---- Claude Code ------------------------------------------------------------------------------


def test_sidechains_are_chains_of_their_own(made):
    t = made(
        claude("a", None),
        claude("b", "a", type="assistant"),
        claude("s1", None, isSidechain=True),
        claude("t1", "b", isSidechain=True),
        claude("s2", "s1", isSidechain=True),
        claude("t2", "t1", isSidechain=True),
        claude("c", "b"),
        claude("s3", "s2", isSidechain=True),
        claude("d", "c"),
    )

    assert [] == cuts(t)


def test_a_sidechain_can_jump_in_itself(made):
    t = made(
        claude("a", None), claude("s1", None, isSidechain=True), claude("s2", "s1", isSidechain=True),
        claude("s3", "s1", isSidechain=True), claude("b", "a"),
    )  # fmt: skip

    assert [("tree_jump", "s3", "s2")] == cuts(t)


def test_parts_of_one_reply_and_results_of_tools_side_by_side_are_no_jumps(made):
    def part(id: str, parent: str) -> dict[str, Any]:
        return claude(id, parent, type="assistant", message={"id": "msg", "role": "assistant", "content": []})

    def result(id: str, parent: str) -> dict[str, Any]:
        return claude(id, parent, message={"role": "user", "content": [{"type": "tool_result"}]})

    t = made(
        claude("a", None), part("b1", "a"), part("b2", "b1"), result("r1", "b1"), part("b3", "b1"), result("r2", "b2"),
        claude("c", "r2", type="assistant"), claude("d", "b1"),
    )  # fmt: skip

    assert [("tree_jump", "d", "c")] == cuts(t)
    assert ["user", "assistant", "assistant", "toolResult"] == [entry.role for entry in t.entries[:4]]


def test_bookkeeping_is_metadata_and_a_summary_names_the_session_it_is_about(made):
    t = made(
        {"type": "summary", "summary": "of another", "leafUuid": "zzz"},
        claude("a", None, 1),
        {"type": "file-history-snapshot", "messageId": "a", "snapshot": {}, "isSnapshotUpdate": False},
        {"type": "queue-operation", "operation": "enqueue", "timestamp": at(50), "sessionId": "claude-1"},
        claude("p", "a", 51, type="progress"),
        claude("b", "p", 2, type="assistant"),
        {"type": "summary", "summary": "of this", "leafUuid": "b"},
    )

    assert ([], {}) == (cuts(t), t.warning_counts)
    assert ("of this", [("a", "b", 2)]) == (t.name, spans(t))


def test_a_compact_boundary_is_a_compaction(made):
    t = made(
        claude("a", None),
        claude("b", "a", type="assistant"),
        claude("k", None, type="system", subtype="compact_boundary", logicalParentUuid="b", compactMetadata={"preTokens": 155_000}),
        claude("s", "k", isCompactSummary=True, message={"role": "user", "content": "what was"}),
        claude("c", "s", type="assistant"),
    )  # fmt: skip

    assert [("compaction", "k", "b")] == cuts(t)
    assert {"tokens_before": 155_000, "summary": "what was"} == transcripts.boundaries(t)[0].metadata
    assert "b" == t.content_parent("k").id


def test_a_session_of_claude_code_is_known_by_its_entries(made):
    t = made(claude("a", None, 3, cwd="/work"), name="claude-1.jsonl")

    assert ("claude", None, "claude-1", "/work", datetime(2026, 1, 25, 10, 3, tzinfo=UTC)) == (
        t.header.format, t.header.version, t.header.session_id, t.header.cwd, t.header.timestamp,
    )  # fmt: skip


def test_a_raw_sub_agent_is_known_by_its_file_and_its_parent_by_its_entries(made):
    t = made(claude("a", None, isSidechain=True, agentId="77"), name="agent-77.jsonl")

    assert ("agent-77", "claude-1") == (t.header.session_id, t.header.parent_session_id)


# ---- bodies -----------------------------------------------------------------------------------


def test_bodies_are_read_from_the_file(made):
    t = made(header(), said("a", None), said("b", "a"))

    assert said("b", "a") == t.body(t.entry("b"))
    assert [said("a", None), said("b", "a")] == [body for _, body in t.bodies(transcripts.segments(t)[0])]


def test_a_digest_is_the_same_after_the_file_has_grown_or_moved_and_another_for_other_bytes(made):
    lines = [header(), said("a", None, 1), said("b", "a", 30)]
    first = made(*lines)
    digests = [first.digest(one) for one in transcripts.segments(first)]

    grown = made(*lines, said("c", "b", 31), said("d", "c", 60), name="moved.jsonl")
    later = [grown.digest(one) for one in transcripts.segments(grown)]

    assert (2, 3) == (len(digests), len(later))
    assert digests[0] == later[0]
    assert digests[1] != later[1]


def test_a_file_that_grew_still_gives_what_was_read(made):
    t = made(header(), said("a", None))
    with t.path.open("ab") as file:
        file.write(orjson.dumps(said("b", "a")) + b"\n")

    assert said("a", None) == t.body(t.entries[0])


@pytest.mark.parametrize("change", ["rewritten", "cut", "gone"])
def test_a_file_that_changed_is_an_error_and_never_another_answer(made, change):
    t = made(header(), said("a", None), said("b", "a"))
    segment = transcripts.segments(t)[0]
    if change == "rewritten":
        write(t.path, header(), said("x", None), said("y", "x"))
    elif change == "cut":
        write(t.path, header())
    else:
        t.path.unlink()

    for ask in (
        lambda: t.body(t.entries[1]),
        lambda: list(t.bodies(segment)),
        lambda: t.digest(segment),
        lambda: transcripts.statistics(t),
    ):
        with pytest.raises(EngineError, match=r"changed since|cannot be opened"):
            ask()


def test_an_unknown_entry_is_named_with_the_nearest(made):
    t = made(header(), said("entry-1", None))

    with pytest.raises(NotFoundError, match="entry-1"):
        t.entry("entry-2")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for wrong in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(InvalidError, match="there is no session file"):
            transcripts.read(wrong)


def test_progress_counts_bytes(made):
    told: list[tuple[int, int]] = []

    t = made(header(), *(said(str(n), None) for n in range(60_000)), progress=lambda *done: told.append(done))

    assert (t.size, t.size) == told[-1]
    assert len(told) > 2
    assert sorted(told) == told


# ---- statistics -------------------------------------------------------------------------------


def reply(id: str, parent: str | None, minutes: float, **more: Any) -> dict[str, Any]:
    usage = {
        "input": 10,
        "output": 5,
        "cacheRead": 100,
        "cacheWrite": 1,
        "cost": {"input": 0.5, "total": 0.75},
    }
    message = {
        "role": "assistant", "provider": "anthropic", "model": "opus", "usage": usage,
        "content": [{"type": "toolCall", "name": "bash"}, {"type": "toolCall", "name": "read"}], **more,
    }  # fmt: skip
    return {**said(id, parent, minutes), "message": message}


def test_statistics_leave_out_what_was_copied(made):
    copied = [said("a", None, 1), reply("b", "a", 2)]
    failed = {"role": "toolResult", "toolName": "bash", "isError": True, "content": []}
    t = made(
        header("child", 60, parentSession="/gone/mother.jsonl"),
        *copied,
        said("c", "b", 61),
        marked("session_info", "n", "c", 61, name="forked"),
        reply("d", "c", 62),
        {**said("e", "d", 63), "message": failed},
        b"not json",
    )

    found = transcripts.statistics(t)

    assert (4, 3, 2, 1) == (found.entries, found.content_entries, found.copied, found.segments)
    assert {"fork": 1} == found.boundaries
    assert {"message": 3, "session_info": 1} == found.types
    assert {"user": 1, "assistant": 1, "toolResult": 1} == found.messages
    assert ({"bash": 1, "read": 1}, 1) == (found.tools, found.tool_errors)
    assert {"anthropic/opus": 1} == found.models
    assert (10, 5, 100, 1, 116) == tuple(dict(found.tokens).values())
    assert (0.75, 2.0, {"damaged line": 1}) == (found.cost, found.duration_minutes, found.warnings)
    assert "forked" == found.name


@pytest.mark.parametrize("ids", [True, False], ids=["with reply ids", "without"])
def test_what_parts_of_one_reply_repeat_is_counted_once(made, ids):
    def part(id: str, parent: str, reply: str, output: int) -> dict[str, Any]:
        usage = {"input_tokens": len(reply), "cache_read_input_tokens": 50, "output_tokens": output}
        message = {
            "role": "assistant",
            "model": "opus",
            "content": [{"type": "tool_use", "name": "Edit"}],
            "usage": usage,
        }
        return claude(id, parent, type="assistant", message={**message, **({"id": reply} if ids else {})})  # fmt: skip

    t = made(
        claude("a", None), part("b", "a", "one", 1), part("c", "b", "one", 8), part("d", "c", "other", 4)
    )

    found = transcripts.statistics(t)

    assert (8, 12, 100) == (found.tokens.input, found.tokens.output, found.tokens.cache_read)
    assert ({"anthropic/opus": 2}, {"Edit": 3}, None) == (found.models, found.tools, found.cost)


def test_replies_without_ids_that_took_in_the_same_count_when_they_are_apart(made):
    def reply(id: str, parent: str, read: int) -> dict[str, Any]:
        usage = {"input_tokens": read, "output_tokens": 4}
        return claude(id, parent, type="assistant", message={"role": "assistant", "model": "opus", "content": [], "usage": usage})  # fmt: skip

    t = made(claude("a", None), reply("b", "a", 8), reply("c", "b", 9), claude("d", "c"), reply("e", "d", 8))

    assert (25, 12) == ((found := transcripts.statistics(t).tokens).input, found.output)


def test_statistics_of_a_real_session_add_up():
    file = shared_data("pi-v1/large-session.jsonl")
    bodies = [orjson.loads(line) for line in file.read_bytes().splitlines()[1:]]
    usages = [body["message"]["usage"] for body in bodies if "usage" in body.get("message", {})]

    found = transcripts.statistics(transcripts.read(file))

    assert sum(usage["output"] for usage in usages) == found.tokens.output
    assert pytest.approx(sum(usage["cost"]["total"] for usage in usages)) == found.cost
    assert sum(found.types.values()) == found.entries == len(bodies)


# ---- the command ------------------------------------------------------------------------------


def test_command_says_the_statistics_in_words_and_as_json(made):
    child = [header("child", 60, parentSession="/gone/mother.jsonl"), *PARENT[1:]]
    t = made(*child, reply("d", "c", 61), b"{torn")

    words = CliRunner().invoke(app, ["sessions", "stats", str(t.path)])
    document = CliRunner().invoke(app, ["sessions", "stats", str(t.path), "--json"])

    assert (0, 0) == (words.exit_code, document.exit_code)
    assert "3 entries, not counted below" in words.stdout
    assert "cost         $0.75" in words.stdout
    assert "warnings     damaged line 1" in words.stdout
    expected = transcripts.statistics(t)
    told = json.loads(document.stdout)
    assert set(dict(expected)) == set(told)
    assert (1, 3, {"fork": 1}, 0.75) == (told["entries"], told["copied"], told["boundaries"], told["cost"])


def test_command_takes_the_parent(made, tmp_path):
    parent = write(tmp_path / "mother.jsonl", *PARENT)
    t = made(header("child", 0, parentSession="/gone/m.jsonl"), *PARENT[1:], said("d", "c", 61))

    said_json = CliRunner().invoke(app, ["sessions", "stats", str(t.path), "--parent", str(parent), "--json"])

    assert 3 == json.loads(said_json.stdout)["copied"]


def test_timestamps_are_aware(made):
    t = made(header(), said("a", None, 1))

    assert timedelta(0) == t.entries[0].timestamp.utcoffset()


def test_entries_read_like_a_list(tmp_path):
    t = transcripts.read(
        write(tmp_path / "a.jsonl", header(), said("a", None), said("b", "a"), said("c", "b"))
    )

    assert ["a", "b", "c"] == [entry.id for entry in t.entries]
    assert ("c", ["b", "c"], ["a", "b"]) == (
        t.entries[-1].id,
        [entry.id for entry in t.entries[1:]],
        [entry.id for entry in t.entries[:-1]],
    )
    assert t.entry("b") == t.entries[1] == t.entries[-2]
    assert t.entries == list(t.entries) == transcripts.read(t.path).entries
    with pytest.raises(IndexError):
        t.entries[3]


@pytest.mark.rest
def test_a_file_of_tiny_entries_takes_less_memory_than_itself_twice(tmp_path):
    lines = [said(f"{n:08x}", f"{n - 1:08x}" if n else None, n / 1000) for n in range(50_000)]
    file = write(tmp_path / "tiny.jsonl", header(), *lines)
    del lines
    tracemalloc.start()
    t = transcripts.read(file)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (50_000, True) == (len(t.entries), taken < 2 * t.size)
