"""Session files as they are found: torn, glued, forged, upgraded. What can be read is kept, the rest is told; nothing hangs."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphstore import transcripts
from graphstore.sessions.transcripts.transcript import Transcript
from tests.support.session_files import START, Line, at, claude, header, marked, said, write

Make = Callable[..., Transcript]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """A transcript of lines that are written first."""

    def make(*lines: Line, end: bytes = b"\n") -> Transcript:
        return transcripts.read(write(tmp_path / "session.jsonl", *lines, end=end))

    return make


def ids(t: Transcript) -> list[str]:
    return [entry.id for entry in t.entries]


def check(t: Transcript) -> None:
    """What holds of every file: segments partition the entries, bodies are where they should be, walks end."""
    found = transcripts.segments(t)
    assert list(range(len(t.entries))) == [n for one in found for n in range(one.start, one.stop)]
    assert transcripts.boundaries(t) == [cut for one in found for cut in one.opened_by]
    assert len(set(ids(t))) == len(t.entries)
    for one in found:
        content = [entry for entry in t.entries[one.start : one.stop] if entry.is_content]
        named = content or t.entries[one.start : one.stop]
        assert (named[0].id, named[-1].id, len(content)) == (
            one.start_entry_id,
            one.end_entry_id,
            one.entry_count,
        )
        assert len([entry for entry, body in t.bodies(one) if isinstance(body, dict)]) == one.stop - one.start
        assert 32 == len(t.digest(one))
    for entry in t.entries:
        above = [each.position for each in t.ancestors(entry.id)]
        assert len(above) == len(set(above))
        nearest = next((each for each in t.ancestors(entry.id) if each.is_content), None)
        assert nearest == t.content_parent(entry.id)
    assert sum(t.warning_counts.values()) >= len(t.warnings)
    transcripts.statistics(t)


# ---- lines ------------------------------------------------------------------------------------

A, B, C = said("a", None), said("b", "a"), said("c", "b")
RAW = orjson.dumps(B)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"not json", "damaged line"),
        (b'{"type":"message","id":', "damaged line"),
        (b"\x00\x00\x00\x00", "damaged line"),
        (b'{"type":"message"}}', "several"),
        (b"[1, 2]", "no object"),
        (b"7", "no object"),
        (b"null", "no object"),
        (b'"text"', "no object"),
        (b"[" * 5000, "damaged line"),
        (b'{"a":' * 5000, "damaged line"),
        (b"9" * 5000 + b"x", "damaged line"),
        (b"\xff\xfe{\x00", "damaged line"),
    ],
)
def test_a_line_that_is_no_entry_is_told_with_its_place_and_the_rest_is_kept(made, bad, reason):
    t = made(header(), A, bad, B)

    if reason == "several":  # what stands before the stray brace is an entry, if a poor one
        assert ("a", "b", 1) == (t.entries[0].id, t.entries[-1].id, t.warning_counts["damaged line"])
    else:
        assert ["a", "b"] == ids(t)
        assert [(3, reason)] == [(one.line, one.reason) for one in t.warnings]
    check(t)


def test_glued_objects_are_both_read(made):
    t = made(header(), A, RAW + b" " + orjson.dumps(C) + b"\r\t " + orjson.dumps(said("d", "c")))

    assert (["a", "b", "c", "d"], [3, 3, 3]) == (ids(t), [entry.line for entry in t.entries[1:]])
    assert {"several objects on one line": 1} == t.warning_counts
    assert [B, C] == [t.body(entry) for entry in t.entries[1:3]]
    check(t)


def test_an_entry_glued_to_a_torn_one_is_read(made):
    t = made(header(), A, RAW[: len(RAW) // 2] + orjson.dumps(C))

    assert ["a", "c"] == ids(t)
    assert C == t.body(t.entries[1])
    assert {"damaged line": 1, "orphan": 1} == t.warning_counts
    check(t)


def test_what_a_torn_entry_holds_is_no_entry(made):
    body = orjson.dumps(
        {"type": "message", "id": "b", "message": {"content": [{"type": "text", "text": "x"}, 1]}}
    )

    t = made(header(), A, body[:-6], said("c", "a"))

    assert ["a", "c"] == ids(t)


def test_a_torn_last_line_is_told_as_such(made):
    t = made(header(), A, b"", RAW[:-9], end=b"")
    whole = b"\n".join(orjson.dumps(line) for line in (header(), A, B))

    t.path.write_bytes(whole[:-9])
    torn = transcripts.read(t.path)
    t.path.write_bytes(whole)
    without_newline = transcripts.read(t.path)

    assert (["a"], {"torn last line": 1}) == (ids(torn), torn.warning_counts)
    assert (["a", "b"], {}) == (ids(without_newline), without_newline.warning_counts)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"  \n", b"\n\t"])
def test_byte_order_mark_and_line_ends_are_no_part_of_entries(made, end):
    t = made(b"\xef\xbb\xbf" + orjson.dumps(header()), A, B, end=end)

    assert (["a", "b"], {}, "sess") == (ids(t), t.warning_counts, t.header.session_id)
    raw = t.path.read_bytes()
    assert [A, B] == [orjson.loads(raw[one.offset : one.offset + one.length]) for one in t.entries]
    check(t)


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b" \r\n\r\n"])
def test_an_empty_file_is_an_empty_session(tmp_path, data):
    path = tmp_path / "2026-01-25T10-00-00-000Z_abc.jsonl"
    path.write_bytes(data)

    t = transcripts.read(path)

    assert ([], {"no header": 1}, "abc") == (t.entries, t.warning_counts, t.header.session_id)
    check(t)


def test_a_long_line_is_read(made):
    long = said("b", "a", message={"role": "user", "content": "x" * 1_500_000})

    t = made(header(), A, long, C)

    assert ["a", "b", "c"] == ids(t)
    assert long == t.body(t.entries[1])


def test_bytes_that_are_no_text_read_as_replacement_characters(made):
    t = made(header(), RAW.replace(b"this is", b"\xff\xfe is").replace(b'"a"', b"null"))

    assert "\ufffd\ufffd is b" == t.body(t.entries[0])["message"]["content"][0]["text"]
    assert {"mended line": 1} == t.warning_counts
    check(t)


def test_half_a_surrogate_pair_and_numbers_that_are_none_are_mended(made):
    t = made(
        header(), A, RAW.replace(b"this is", b"\\ud83d").replace(b'"user"', b'"user","n":NaN,"i":-Infinity')
    )

    message = t.body(t.entries[1])["message"]
    assert ("\ufffd b", None, None) == (message["content"][0]["text"], message["n"], message["i"])
    check(t)


def test_many_warnings_are_counted_and_the_first_kept(made):
    t = made(header(), A, *[b"bad"] * 5000)

    assert (1000, {"damaged line": 5000}) == (len(t.warnings), t.warning_counts)
    assert str(t.warnings[0]).startswith("line 3: damaged line (3 bytes left out")


# ---- headers ----------------------------------------------------------------------------------


def test_without_a_header_the_name_of_the_file_says_the_session(tmp_path):
    t = transcripts.read(write(tmp_path / "2026-01-25T10-00-00-000Z_abc-1.jsonl", A, B))

    assert ("pi", None, "abc-1", {"no header": 1}) == (
        t.header.format, t.header.version, t.header.session_id, t.warning_counts,
    )  # fmt: skip
    check(t)


def test_lines_without_header_and_ids_are_a_chain(made):
    bare = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")} for line in (A, B, C)
    ]

    t = made(*bare)

    assert ({"no header": 1}, [None, *ids(t)[:2]]) == (
        t.warning_counts,
        [entry.parent_id for entry in t.entries],
    )
    check(t)
    assert ids(t) == ids(made(header(version=1), *bare))


def test_a_header_may_come_late_or_twice(made):
    t = made(A, header("one"), B, header("two"), C)

    assert (["a", "b", "c"], "one") == (ids(t), t.header.session_id)
    assert {"header not first": 1, "second header": 1} == t.warning_counts


@pytest.mark.parametrize("wrong", [7, None, [], {}, True, 1.5, ""])
def test_fields_of_a_header_of_the_wrong_kind_are_left_out(made, wrong):
    t = made(dict.fromkeys(header(), wrong) | {"type": "session", "parentSession": wrong}, A)

    assert ("session", None, None) == (t.header.session_id, t.header.cwd, t.header.parent_session)
    check(t)


@pytest.mark.parametrize(
    ("version", "read"), [(2, 2), (3, 3), (4, None), ("3", None), (True, None), (None, 1)]
)
def test_versions_that_are_not_known_are_told(made, version, read):
    t = made(header(version=version), A)

    assert (read, version not in (2, 3, None)) == (t.header.version, "unknown version" in t.warning_counts)


def test_first_kept_index_counts_the_header_and_only_what_could_be_read(made):
    def indexed(number: Any) -> dict[str, Any]:
        return marked("compaction", f"k{number}", "b", firstKeptEntryIndex=number)

    numbers = [0, 1, 2, 3, 99, -1, "1", True]
    t = made(header(), A, b"bad", B, *map(indexed, numbers))

    kept = [
        cut.metadata.get("first_kept_entry_id")
        for cut in transcripts.boundaries(t)
        if cut.type == "compaction"
    ]
    assert [None, "a", "b", "k0", None, None, None, None] == kept


# ---- ids and parents --------------------------------------------------------------------------


def test_of_entries_with_one_id_the_first_has_it_and_all_are_kept(made):
    t = made(header(), A, said("a", "a", 2), B)

    assert (3, "a", "b", {"duplicate id": 1}) == (
        len(t.entries), t.entries[0].id, t.entries[2].id, t.warning_counts,
    )  # fmt: skip
    assert "a" == t.content_parent("b").id
    check(t)


def test_made_ids_stay_when_the_file_grows(made):
    lines: list[Line] = [header(), A, A, A, {**B, "id": 5}, {"type": "message"}]
    before = ids(made(*lines))

    after = ids(made(*lines, {"type": "message"}, C))

    assert before == after[: len(before)]
    assert 7 == len(set(after))


@pytest.mark.parametrize("wrong", [7, [], {}, True, 1.5, "", None])
def test_an_id_of_the_wrong_kind_is_made_and_told(made, wrong):
    t = made(header(), A, {**B, "id": wrong}, said("c", "a"))

    assert (3, {"entry without id": 1}) == (len(t.entries), t.warning_counts)
    check(t)


@pytest.mark.parametrize("wrong", [7, [], {}, True, 1.5, ""])
def test_a_parent_of_the_wrong_kind_is_none_and_told(made, wrong):
    t = made(header(), A, {**B, "parentId": wrong})

    assert (None, {"parent id that is none": 1}) == (t.entries[1].parent_id, t.warning_counts)
    check(t)


def test_an_entry_that_says_no_parent_goes_on_from_the_one_before(made):
    t = made(header(), A, {key: value for key, value in B.items() if key != "parentId"}, C)

    assert ("a", [], {"entry without parent id": 1}) == (
        t.entries[1].parent_id, transcripts.boundaries(t), t.warning_counts,
    )  # fmt: skip


def test_an_orphan_starts_a_chain_and_is_told(made):
    t = made(header(), A, B, said("o", "dropped-label"), said("p", "o"))

    assert [("tree_jump", "o", {"branch_point_id": None, "orphan": "dropped-label"})] == [
        (cut.type, cut.entry_id, cut.metadata) for cut in transcripts.boundaries(t)
    ]
    assert ([], {"orphan": 1}) == (list(t.ancestors("o")), t.warning_counts)
    check(t)


def test_a_parent_may_come_later(made):
    t = made(header(), A, said("b", "c"), said("c", "a"))

    assert (["c", "a"], {}) == ([entry.id for entry in t.ancestors("b")], t.warning_counts)
    check(t)


@pytest.mark.parametrize(
    "lines",
    [
        [said("a", "a")],
        [said("a", "b"), said("b", "a")],
        [said("a", "c"), said("b", "a"), said("c", "b"), said("d", "c")],
        [marked("label", "x", "y"), marked("label", "y", "x"), said("a", "y")],
        [said("a", "x"), marked("label", "x", "y"), marked("session_info", "y", "x")],
        [marked("label", "x", "x"), said("a", "x"), said("b", "x")],
        [said("t", "a"), said("a", "b"), said("b", "a"), said("c", "d"), marked("label", "d", "c")],
    ],
)
def test_circles_are_opened_at_their_first_entry_and_told(made, lines):
    t = made(header(), *lines)

    assert "circle of parents" in t.warning_counts
    assert len(lines) == len(t.entries)
    check(t)


# ---- fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "read", "told"),
    [
        ("2026-01-25T10:01:00.000Z", START.replace(minute=1), {}),
        ("2026-01-25T11:01:00+01:00", START.replace(minute=1), {}),
        ("2026-01-25T10:01:00", START.replace(minute=1), {"timestamp without zone": 1}),
        (1_769_335_260_000, START.replace(minute=1), {}),
        (1_769_335_260, START.replace(minute=1), {}),
        (1_769_335_260_000.5, START.replace(minute=1, microsecond=500), {}),
        (2**62, None, {"timestamp that is none": 1}),
        (True, None, {"timestamp that is none": 1}),
        ("soon", None, {"timestamp that is none": 1}),
        ("0001-01-01T00:00:00+09:00", None, {"timestamp that is none": 1}),
        ({}, None, {"timestamp that is none": 1}),
        (None, None, {"no timestamp": 1}),
    ],
)
def test_timestamps_in_every_shape(made, given, read, told):
    t = made(header(), A, {**B, "timestamp": given}, C)

    assert (read, told) == (t.entries[1].timestamp, t.warning_counts)
    check(t)


def test_a_message_says_when_its_entry_does_not(made):
    message = {"role": "user", "timestamp": 1_769_335_260_000}

    t = made(header(), {**A, "timestamp": None, "message": message})

    assert (START.replace(minute=1), {}) == (t.entries[0].timestamp, t.warning_counts)


def test_a_pause_is_seen_past_an_entry_that_does_not_say_when(made):
    t = made(header(), said("a", None, 0), {**B, "timestamp": None}, said("c", "b", 60))

    assert [("resume", "c", "b", {"gap_minutes": 60.0})] == [
        (cut.type, cut.entry_id, cut.previous_entry_id, cut.metadata) for cut in transcripts.boundaries(t)
    ]


@pytest.mark.parametrize("wrong", [7, [], {}, True, 1.5, "", None])
def test_a_type_of_the_wrong_kind_is_unknown_and_told(made, wrong):
    t = made(header(), A, {**B, "type": wrong})

    assert ("unknown", True, {"entry without type": 1}) == (
        t.entries[1].type, t.entries[1].is_content, t.warning_counts,
    )  # fmt: skip


WRONG = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
NAMES = st.sampled_from([None, *"abcdefgh"])
TYPES = st.sampled_from(
    ["message", "label", "session_info", "compaction", "branch_summary", "custom", "user", "assistant", "system", "summary", "session", "odd"]
)  # fmt: skip
FIELDS = [
    "id", "uuid", "parentId", "parentUuid", "timestamp", "message", "type", "fromId", "summary", "firstKeptEntryId",
    "firstKeptEntryIndex", "tokensBefore", "name", "isSidechain", "isCompactSummary", "subtype", "logicalParentUuid",
    "compactMetadata", "sessionId", "agentId", "cwd", "leafUuid", "customTitle", "parentSession", "version", "_type", "costUSD",
]  # fmt: skip


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """An entry of either format, some of its fields not what they should be."""
    key = draw(st.sampled_from([("id", "parentId"), ("uuid", "parentUuid")]))
    line: dict[str, Any] = {
        "type": draw(TYPES), key[0]: draw(NAMES), key[1]: draw(NAMES), "isSidechain": draw(st.booleans()),
        "timestamp": at(draw(st.sampled_from([0, 5, 10, 30, -40]))), "fromId": draw(NAMES),
        "message": {"role": draw(st.sampled_from(["user", "assistant"])), "id": draw(NAMES), "usage": {"input": 1}},
    }  # fmt: skip
    line |= draw(st.dictionaries(st.sampled_from(FIELDS), WRONG, max_size=2))
    return json.dumps(line).encode()


@st.composite
def files(draw: st.DrawFn) -> bytes:
    first = draw(
        st.sampled_from(
            [b"", orjson.dumps(header(parentSession="/gone/x.jsonl", minutes=8)), b"\xef\xbb\xbf"]
        )
    )
    whole = objects()
    torn = st.builds(lambda raw, cut: raw[: int(len(raw) * cut)], whole, st.floats(0, 1))
    line = st.one_of(
        whole, whole, whole, torn, st.binary(max_size=12), st.sampled_from([b"[]", b"NaN", b"{}"])
    )
    glue = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"", b" ", b"\n\n"])
    parts = draw(st.lists(st.tuples(line, glue), max_size=14))
    return first + b"\n" + b"".join(part + end for part, end in parts)


@settings(max_examples=200)
@given(data=files())
def test_any_mix_of_lines_ends_and_is_cut_into_segments(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "session.jsonl"
    path.write_bytes(data)

    check(transcripts.read(path))


@settings(max_examples=60)
@given(data=files(), more=objects())
def test_a_grown_file_keeps_its_ids_and_where_its_segments_begin(tmp_path_factory, data, more):
    path = tmp_path_factory.mktemp("fuzz") / "session.jsonl"
    path.write_bytes(data + b"\n")
    before = transcripts.read(path)
    path.write_bytes(data + b"\n" + more + b"\n")

    after = transcripts.read(path)

    assert ids(before) == ids(after)[: len(before.entries)] or before.header.format != after.header.format


# ---- what it costs ----------------------------------------------------------------------------


def chain(path: Path, count: int, kind: str = "message", padding: int = 0) -> Path:
    """A long chain; every thousandth entry goes back to the first one."""
    with path.open("wb") as file:
        file.write(orjson.dumps(header()) + b"\n")
        for number in range(count):
            parent = None if not number else f"{0 if number % 1000 == 0 else number - 1:08x}"
            entry = said(f"{number:08x}", parent, number / 60, text="x" * padding)
            file.write(orjson.dumps({**entry, "type": kind if number % 1000 else "message"}) + b"\n")
    return path


def seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.mark.parametrize("kind", ["message", "label"])
def test_twice_the_entries_take_about_twice_as_long(tmp_path, kind):
    def whole(path: Path) -> None:
        t = transcripts.read(path)
        transcripts.segments(t)

    small, large = chain(tmp_path / "s", 8_000, kind), chain(tmp_path / "l", 32_000, kind)
    whole(small)

    took = min(seconds(lambda: whole(small)) for _ in range(3))

    assert seconds(lambda: whole(large)) < took * 4 * 3


def test_labels_upon_labels_are_looked_through_once(made):
    labels = [marked("label", f"l{n}", f"l{n - 1}" if n else "a") for n in range(20_000)]
    leaves = [said(f"m{n}", f"l{19_999 - n}") for n in range(5_000)]

    t = made(header(), A, *labels, *leaves)
    took = seconds(lambda: transcripts.boundaries(t))

    assert 4_999 == len(transcripts.boundaries(t))
    assert took < 2


def test_memory_holds_the_entries_and_not_what_they_say(tmp_path):
    path = chain(tmp_path / "session.jsonl", 4_000, padding=2_000)
    gc.collect()
    tracemalloc.start()
    t = transcripts.read(path)
    transcripts.segments(t)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert path.stat().st_size > 8_000_000
    assert kept < 600 * len(t.entries)
    assert peak < kept + 4_000_000


def test_claude_code_without_a_uuid_in_the_chain_is_kept(made):
    t = made(claude("a", None), {**claude("b", "a"), "uuid": None}, {"type": "user", "sessionId": "claude-1"})

    assert (3, 2) == (len(t.entries), t.warning_counts["entry without id"])
    assert datetime(2026, 1, 25, 10, 1, tzinfo=UTC) == t.header.timestamp
    check(t)
