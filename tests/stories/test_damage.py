"""Damaged files: copies are made anew with a word, the journal is refused with file and line, and nothing is overwritten."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import orjson
import pytest

import graphstore
from graphstore import DamageError, EngineError, GraphStoreError
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import header
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("damages the files of the store")

NAMES = ["fact-a", "fact-b", "fact-c", "fact-d", "fact-e", "fact-f"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store that was closed in peace: six facts, one line of the journal for each, then one of every other verb."""
    path = tmp_path_factory.mktemp("whole") / "memory.gs"
    with graphstore.open(path, clock=Clock("2026-01-01"), author="maria") as store:
        store.record_event("deploy", "v1", id="deploy-1", metadata={"sha": 'a"b\\c\n'})
        store.add_node("plan", {"ü": "☃", "n": 1.5}, id="plan-1")
        store.revise("plan-1", {"ü": "☂"}, reason="rain", valid_to="2026-03-01")
        with store.transaction():
            store.add_node("plan", {}, id="plan-2", supersedes=["plan-1"])
            store.link("plan-2", "related_to", "deploy-1")
        store.bulk_load(
            nodes=[{"id": "bulk-1", "kind": "x"}], versions=[{"node_id": "bulk-1", "content": {"a": 1}}]
        )
        for name in NAMES:
            store.add_node("fact", {"name": name}, id=name)
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")
    return path


@pytest.fixture
def broken(whole, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    path = tmp_path / "memory.gs"
    shutil.copytree(whole, path)
    return path


def journal(path: Path) -> Path:
    (file,) = (path / "journal").glob("*.jsonl")
    return file


def copies(path: Path) -> list[Path]:
    """The files of a store that are no journal and no lock: what can be made anew."""
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.parent.name != "journal" and "lock" not in file.name
    ]


def without_copies(path: Path) -> None:
    for file in copies(path):
        file.unlink()


def files(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and "lock" not in file.name
    }


def flip(file: Path, at: int, by: int = 0x01) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ by]))


def holds_all(store: graphstore.GraphStore) -> None:
    """The index and the tables both have everything, and the store goes on."""
    assert set(NAMES) <= {node.id for node in store.nodes()}
    assert {"name": "fact-c"} == store.node("fact-c").content
    counted = store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    assert store.stats()["nodes"] == counted == 3 + len(NAMES)
    assert store.verify().ok
    store.add_node("fact", {}, id="fact-new")
    assert [{"id": "fact-new"}] == store.query("MATCH (n:Node {id: 'fact-new'}) RETURN n.id AS id").rows()


# ---------------------------------------------------------------- the copies


def test_the_copies_are_there_to_be_damaged(whole):
    names = [str(file.relative_to(whole)) for file in copies(whole)]

    assert any("kuzu" in name for name in names), names
    assert any("index" in name for name in names), names


def harm_by_deleting(file: Path) -> None:
    file.unlink()


def harm_by_emptying(file: Path) -> None:
    file.write_bytes(b"")


def harm_by_truncating(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def harm_by_noise(file: Path) -> None:
    size = file.stat().st_size
    for at in range(0, size, max(1, size // 200)):
        flip(file, at, 0xFF)


def harm_by_one_byte_in_front(file: Path) -> None:
    flip(file, min(3, file.stat().st_size - 1), 0x40)


def harm_by_rubbish(file: Path) -> None:
    file.write_bytes(b"\xff\x00 not what was here" * 500)


HARMS = [
    harm_by_deleting,
    harm_by_emptying,
    harm_by_truncating,
    harm_by_noise,
    harm_by_one_byte_in_front,
    harm_by_rubbish,
]


@pytest.mark.parametrize("which", ["kuzu", "index"])
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_copy_is_made_anew(broken, which, harm):
    for file in copies(broken):
        if which in str(file.relative_to(broken)):
            harm(file)
    before = journal(broken).read_bytes()

    with graphstore.open(broken) as store:
        assert before == journal(broken).read_bytes()
        holds_all(store)
    with graphstore.open(broken) as store:
        assert "fact-new" == store.node("fact-new").id


@pytest.mark.parametrize("which", ["kuzu", "index"])
def test_making_a_copy_anew_is_told(broken, which):
    for file in copies(broken):
        if which in str(file.relative_to(broken)):
            harm_by_noise(file)

    with graphstore.open(broken) as store:
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")
        assert any(which in notice or "rebuilt" in notice for notice in store.notices), store.notices


def test_every_byte_of_the_saved_index_may_be_wrong(broken):
    """The saved index is a copy of the truth: whatever is in it, the answers are those of the journal."""
    (saved,) = [file for file in copies(broken) if "index" in file.name]
    good = saved.read_bytes()
    with graphstore.open(broken, read_only=True) as store:
        want = [store.versions(name) for name in (*NAMES, "plan-1", "plan-2")]
    for at in range(0, len(good), max(1, len(good) // 150)):
        saved.write_bytes(good)
        flip(saved, at, 0x10)
        with graphstore.open(broken, read_only=True) as store:
            assert want == [store.versions(name) for name in (*NAMES, "plan-1", "plan-2")], at


def test_copies_from_an_older_day_of_the_store_are_brought_up_to_date(broken, tmp_path):
    shutil.copytree(broken, tmp_path / "older")
    with graphstore.open(broken) as store:
        store.revise("fact-c", {"name": "new"})
        store.add_node("fact", {}, id="fact-z")
    without_copies(broken)
    for file in copies(tmp_path / "older"):
        shutil.copy(file, broken / file.relative_to(tmp_path / "older"))

    with graphstore.open(broken) as store:
        assert {"name": "new"} == store.node("fact-c").content
        rows = store.query_tables(
            "MATCH (v:Version) WHERE v.node_id = 'fact-c' RETURN v.number AS n ORDER BY n"
        ).rows()
        assert [{"n": 1}, {"n": 2}] == rows
        assert store.verify().ok


@pytest.mark.parametrize("known_by", ["index.bin", "graph.json"])
@pytest.mark.parametrize("lines", [1, 2, 4])
def test_a_journal_shorter_than_a_copy_knows_is_refused(broken, lines, known_by):
    """The journal was cut, or an old backup of it was put back: what was acknowledged is missing, and nothing opens as if it had never been."""
    cut(journal(broken), lines)
    for file in copies(broken):
        if file.name in ("index.bin", "graph.json") and file.name != known_by:
            file.unlink()
    before = files(broken)

    missing = rf"journal: {lines} transactions? missing: {known_by} .* restore a dump or a backup .* remove index.bin and graph.json"
    for read_only in (False, True):
        with pytest.raises(DamageError, match=missing):
            graphstore.open(broken, read_only=read_only)
    (problem,) = graphstore.verify(broken).problems
    assert re.search(missing, problem.message)
    assert before == files(broken)

    (broken / known_by).unlink()  # the way out that the message names
    with graphstore.open(broken) as store:
        assert set(NAMES[:-lines]) == {node.id for node in store.nodes(kind="fact")}
        assert store.verify().ok


def test_a_journal_without_its_last_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("graphstore.core.journal.journal.SEGMENT_BYTES", 2000)
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        for name in NAMES:
            store.add_node("fact", {"name": name * 100}, id=name)
    last = max((path / "journal").glob("*.jsonl"))
    count = last.read_bytes().count(b"\n") - 1
    last.unlink()

    with pytest.raises(DamageError, match=f"journal: {count} transactions? missing"):
        graphstore.open(path)


def test_the_note_of_an_earlier_version_tells_that_something_is_missing(broken):
    cut(journal(broken), 2)
    (broken / "index.bin").unlink()
    note = orjson.loads((broken / "graph.json").read_bytes())
    del note["transactions"]
    (broken / "graph.json").write_bytes(orjson.dumps(note))

    with pytest.raises(DamageError, match="journal: at least 1 transaction missing"):
        graphstore.open(broken)


def test_nothing_is_missing_where_a_transaction_was_evicted_without_a_trace(tmp_path):
    """The journal has fewer transactions then, and no copy knows of more."""
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        for name in NAMES:
            store.record_event("deploy", name, id=name, occurred_at="2020-01-01")
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")
    with graphstore.open(path) as store:
        store.evict(before="2021-01-01", keep_audit=False)
    for _ in range(2):
        with graphstore.open(path) as store:
            assert store.verify().ok


def test_copies_of_another_future_are_not_believed(broken, tmp_path):
    """Cut by one line and written on to the same length: only the digests tell the copies that they belong to another journal."""
    shutil.copytree(broken, tmp_path / "other")
    cut(journal(broken), 1)
    without_copies(broken)
    with graphstore.open(broken, clock=Clock("2026-01-01"), author="maria") as store:
        store.add_node("fact", {"name": "fact-g"}, id="fact-g")
    without_copies(broken)
    for file in copies(tmp_path / "other"):
        shutil.copy(file, broken / file.relative_to(tmp_path / "other"))

    with graphstore.open(broken) as store:
        assert {*NAMES[:-1], "fact-g"} == {node.id for node in store.nodes(kind="fact")}
        rows = store.query_tables("MATCH (n:Node) WHERE n.kind = 'fact' RETURN n.id AS id").rows()
        assert {*NAMES[:-1], "fact-g"} == {row["id"] for row in rows}


# ---------------------------------------------------------------- a torn tail


def cut(file: Path, lines: int) -> None:
    kept = file.read_bytes().splitlines(keepends=True)[:-lines]
    file.write_bytes(b"".join(kept))


def test_a_tail_cut_at_every_byte_is_read_up_to_the_last_whole_line(broken):
    good = journal(broken).read_bytes()
    *before, second, last = good.splitlines(keepends=True)
    start = len(good) - len(second) - len(last)
    for stop in range(start, len(good) + 1):
        journal(broken).write_bytes(good[:stop])
        torn = stop - good.rfind(b"\n", 0, stop) - 1
        reader = Journal(broken / "journal", writer=False)
        assert len(before) - 1 + good.count(b"\n", start, stop) == len(list(reader.read()))
        assert torn == (reader.torn.size if reader.torn else 0)
        reader.close()


def test_a_tail_cut_anywhere_gives_the_acknowledged_prefix(broken, tmp_path):
    good = journal(broken).read_bytes()
    *_, second, last = good.splitlines(keepends=True)
    start = len(good) - len(second) - len(last)
    edges = [
        start,
        start + 1,
        start + len(second) - 1,
        start + len(second),
        start + len(second) + 1,
        len(good) - 1,
        len(good),
    ]
    for stop in [*edges, *range(start + 2, len(good), 23)]:
        bare = tmp_path / f"cut-{stop}"
        (bare / "journal").mkdir(parents=True)
        (bare / "journal" / journal(broken).name).write_bytes(good[:stop])
        whole_lines = good[:stop].count(b"\n") - good[:start].count(b"\n")
        torn = stop - good.rfind(b"\n", 0, stop) - 1

        with graphstore.open(bare) as store:
            known = {node.id for node in store.nodes(kind="fact")}
            assert set(NAMES[: len(NAMES) - 2 + whole_lines]) == known, stop
            assert bool(torn) == any("acknowledged" in notice for notice in store.notices), store.notices
        asides = [file for file in (bare / "journal").iterdir() if file.suffix != ".jsonl"]
        assert [good[stop - torn : stop]] * bool(torn) == [file.read_bytes() for file in asides]
        assert all(str(asides[0]) in notice for notice in store.notices if "acknowledged" in notice)
        assert good[: stop - torn] == journal(bare).read_bytes()


@pytest.mark.parametrize("zeros", [1, 7, 4096])
@pytest.mark.parametrize("kept", [0, 25])
def test_zero_padding_is_a_torn_tail(broken, zeros, kept):
    good = journal(broken).read_bytes()
    before, last = good[: good.rfind(b"\n", 0, -1) + 1], good.splitlines(keepends=True)[-1]
    journal(broken).write_bytes(before + last[:kept] + b"\0" * zeros)
    without_copies(broken)  # they know of no transaction that was torn

    with graphstore.open(broken) as store:
        assert set(NAMES[:-1]) == {node.id for node in store.nodes(kind="fact")}
        assert store.notices
        store.add_node("fact", {}, id="fact-new")
    with graphstore.open(broken) as store:
        assert {*NAMES[:-1], "fact-new"} == {node.id for node in store.nodes(kind="fact")}
        assert store.verify().ok


def test_a_reader_does_not_touch_a_torn_tail(broken):
    """It may be a commit that another process is writing this very moment."""
    with journal(broken).open("ab") as file:
        file.write(b'{"body":[')
    before = files(broken / "journal")

    with graphstore.open(broken, read_only=True) as store:
        assert set(NAMES) == {node.id for node in store.nodes(kind="fact")}
    assert before == files(broken / "journal")


def test_a_transaction_of_many_lines_without_its_seal_is_a_torn_tail(tmp_path):
    """Cut at every byte of its lines: all of it is there, or nothing."""
    folder = tmp_path / "journal"
    writer = Journal(folder, writer=True)
    list(writer.read())
    writer.append([({"tx": "2026-01-01T00:00:00Z", "ops": [["x", "before"]]}, [b'{"a":1}'])])
    start = writer.end.offset
    writer.append([({"tx": "2026-01-02T00:00:00Z", "ops": [["x", str(n)]]}, [b'{"a":1}']) for n in range(3)])
    writer.close()
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for stop in range(start, len(good) + 1):
        file.write_bytes(good[:stop])
        reader = Journal(folder, writer=False)
        lines = [len(transaction) for transaction in reader.read()]
        assert ([1, 3] if stop == len(good) else [1]) == lines
        assert (start < stop < len(good)) == (reader.torn is not None)
        reader.close()


def test_a_load_cut_short_leaves_nothing_of_it(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        start = journal(path).stat().st_size
        store.bulk_load(versions=[{"node_id": f"bulk-{n:05}", "content": {"n": n}} for n in range(6000)])
    good = journal(path).read_bytes()
    ends = [match.end() for match in re.finditer(b"\n", good) if match.end() > start]
    for stop in {*ends[:-1][:2], ends[-1] - 1, (start + ends[0]) // 2}:
        journal(path).write_bytes(good[:stop])
        without_copies(path)
        with graphstore.open(path) as store:
            assert ["before"] == [node.id for node in store.nodes()]
            assert store.notices
        assert good[:start] == journal(path).read_bytes()


def test_a_store_whose_first_write_was_torn_opens_empty(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="fact-a")
    good = journal(path).read_bytes()
    for stop in (0, 1, good.index(b"\n"), good.index(b"\n") + 5):
        journal(path).write_bytes(good[:stop])
        without_copies(path)
        with graphstore.open(path) as store:
            assert [] == store.nodes()
            store.add_node("fact", {}, id="fact-b")
        with graphstore.open(path) as store:
            assert ["fact-b"] == [node.id for node in store.nodes()]
            assert store.verify().ok


# ---------------------------------------------------------------- damage in the journal


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.rest)])
def test_no_byte_of_the_journal_can_change_unseen(broken, every):
    """Every byte of every line, the last newline apart: without it the line is torn."""
    good = journal(broken).read_bytes()
    for at in range(0, len(good) - 1, every):
        for by in (0x01, 0x80) if at % 7 == 0 else (0x01,):
            journal(broken).write_bytes(good[:at] + bytes([good[at] ^ by]) + good[at + 1 :])
            line = good.count(b"\n", 0, at) + 1
            reader = Journal(broken / "journal", writer=False)
            try:
                # Line 1 is the header: a higher schema there is told as such.
                with pytest.raises(DamageError if line > 1 else EngineError) as refused:
                    list(reader.read())
            finally:
                reader.close()
            assert journal(broken).name in str(refused.value)
            assert line == 1 or f"line {line}" in str(refused.value) or good[at] == 0x0A, (
                at,
                str(refused.value),
            )


@pytest.mark.parametrize("with_copies", [True, False])
def test_a_damaged_journal_is_refused_and_nothing_is_overwritten(broken, with_copies):
    if not with_copies:
        for file in copies(broken):
            file.unlink()
    good = journal(broken).read_bytes()
    first = good.index(b"\n") + 1
    for at in [
        *range(first, first + 40, 13),
        *range(first, len(good) - 1, 211),
        *range(len(good) - 40, len(good) - 1, 11),
    ]:
        if good[at] == 0x0A:
            continue
        journal(broken).write_bytes(good[:at] + bytes([good[at] ^ 0x01]) + good[at + 1 :])
        line = good.count(b"\n", 0, at) + 1
        before = files(broken)

        with pytest.raises(DamageError, match=rf"{journal(broken).name} line {line}\b"):
            graphstore.open(broken)
        with pytest.raises(DamageError, match=rf"{journal(broken).name} line {line}\b"):
            graphstore.open(broken, read_only=True)
        found = graphstore.verify(broken)
        assert not found.ok
        assert [line] == [problem.line for problem in found.problems if problem.line is not None][:1]
        assert journal(broken).name in found.problems[0].file
        assert before == files(broken), at

    journal(broken).write_bytes(good)
    assert graphstore.verify(broken).ok
    with graphstore.open(broken) as store:
        holds_all(store)


def test_a_line_left_out_or_doubled_or_moved_is_damage(broken):
    lines = journal(broken).read_bytes().splitlines(keepends=True)
    for wrong in (
        [*lines[:3], *lines[4:]],
        [*lines[:3], lines[3], *lines[3:]],
        [*lines[:3], lines[4], lines[3], *lines[5:]],
        lines[1:],
        [*lines[:3], b"\n", *lines[3:]],
        [*lines, b"{}\n"],
        [*lines, b"\0" * 20 + b"\n"],
    ):
        journal(broken).write_bytes(b"".join(wrong))
        before = files(broken)
        with pytest.raises(DamageError, match="line"):
            graphstore.open(broken)
        assert not graphstore.verify(broken).ok
        assert before == files(broken)


def test_an_open_store_notices_on_verify_what_happened_to_its_journal(broken):
    with graphstore.open(broken) as store:
        good = journal(broken).read_bytes()
        at = good.index(b"fact-a")
        journal(broken).write_bytes(good.replace(b"fact-a", b"fact-q", 1))
        found = store.verify()

        assert not found.ok
        assert [good.count(b"\n", 0, at) + 1] == [problem.line for problem in found.problems][:1]


def test_a_journal_cut_off_under_an_open_store_is_an_error_of_what_needs_the_rest(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 0}, id="n0")
        with store.transaction():
            for number in range(1, 3000):
                store.add_node("fact", {"n": number, "pad": "x" * 700}, id=f"n{number}")
    with graphstore.open(path) as store:
        seen = store.as_of()
        assert {"n": 2999, "pad": "x" * 700} == seen.node("n2999").content
        os.truncate(journal(path), 500_000)

        for ask in (
            lambda: seen.node("n1500"),
            lambda: store.node("n2400"),
            lambda: store.add_node("fact", {"n": 0}, id="one-more"),
            lambda: list(store.nodes()),
        ):
            with pytest.raises(
                DamageError,
                match=r"00000001.jsonl (ends after 500000 of .*cut it off|line \d+: it has no end)",
            ):
                ask()
        assert 0 == store.node("n0").content["n"]
        assert 500_000 == journal(path).stat().st_size
        assert not store.verify().ok


def test_a_missing_segment_is_not_an_empty_store(broken):
    """Copies without a journal are no store: opening must not begin a new history over them."""
    shutil.rmtree(broken / "journal")
    before = files(broken)

    with pytest.raises(GraphStoreError, match=re.escape(str(broken))):
        graphstore.open(broken)
    assert before == files(broken)


@pytest.fixture
def segments(tmp_path, monkeypatch) -> Path:
    """A store whose journal has several files."""
    monkeypatch.setattr("graphstore.core.journal.journal.SEGMENT_BYTES", 1500)
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=Clock("2026-01-01")) as store:
        for number in range(20):
            store.add_node("fact", {"n": number}, id=f"fact-{number:02}")
    assert len(list((path / "journal").iterdir())) > 3
    return path


@pytest.mark.parametrize("with_copies", [True, False])
def test_a_journal_of_several_files_is_read_as_one(segments, with_copies):
    if not with_copies:
        for file in copies(segments):
            file.unlink()
    with graphstore.open(segments) as store:
        assert 20 == len(store.nodes())
        assert [{"n": n} for n in range(20)] == [node.content for node in store.nodes()]
        store.add_node("fact", {}, id="fact-new")
        assert store.verify().ok
        store.export(segments.parent / "dump")
    with graphstore.restore(segments.parent / "dump", segments.parent / "again.gs") as again:
        assert 21 == len(again.nodes())
        again.export(segments.parent / "dump-2")
    assert (segments.parent / "dump").read_bytes() == (segments.parent / "dump-2").read_bytes()


@pytest.mark.parametrize("with_copies", [True, False])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("harm", [harm_by_deleting, harm_by_emptying, harm_by_truncating, harm_by_rubbish])
def test_harm_to_a_file_before_the_last_is_damage(segments, which, harm, with_copies):
    """Only the last file of a journal can be torn."""
    if not with_copies:
        for file in copies(segments):
            file.unlink()
    harm(sorted((segments / "journal").iterdir())[which])
    before = files(segments)

    with pytest.raises(GraphStoreError):
        graphstore.open(segments)
    assert before == files(segments)
    with pytest.raises(GraphStoreError):
        graphstore.open(segments, read_only=True)
    assert before == files(segments)


def test_verify_on_the_command_line_says_the_same(broken):
    good = journal(broken).read_bytes()
    run = [sys.executable, "-m", "graphstore", "verify", str(broken)]
    assert 0 == subprocess.run(run, capture_output=True, check=False).returncode
    journal(broken).write_bytes(good.replace(b"fact-c", b"fact-q", 1))
    line = good.count(b"\n", 0, good.index(b"fact-c")) + 1

    told = subprocess.run(run, capture_output=True, check=False, text=True)
    assert 1 == told.returncode
    assert journal(broken).name in told.stdout + told.stderr
    assert str(line) in told.stdout + told.stderr


@pytest.fixture
def dump(whole, tmp_path) -> Path:
    with graphstore.open(whole, read_only=True) as store:
        store.export(tmp_path / "dump")
    return tmp_path / "dump"


def test_a_damaged_dump_is_not_restored(dump, tmp_path):
    good = dump.read_bytes()
    for wrong in (
        good.replace(b"fact-c", b"fact-q", 1),
        good[:-1],
        good[:-30],
        good[1:],
        b"",
        good.replace(b"\n", b"", 2),
        good + good.splitlines(keepends=True)[-1],
        good.replace(b'"transactions":11', b'"transactions":12', 1),
    ):
        dump.write_bytes(wrong)
        with pytest.raises(DamageError, match="Nothing was restored"):
            graphstore.restore(dump, tmp_path / "again.gs")
        assert [dump] == list(tmp_path.iterdir())
    dump.write_bytes(good)
    with graphstore.restore(dump, tmp_path / "again.gs") as store:
        holds_all(store)
        assert [] == store.notices


def test_a_dump_cut_after_any_line_says_how_many_transactions_are_missing(dump, tmp_path):
    lines = dump.read_bytes().splitlines(keepends=True)
    total = orjson.loads(lines[0])["transactions"]
    assert len(lines) - 2 == total  # each is one line here
    for kept in range(1, len(lines)):
        dump.write_bytes(b"".join(lines[:kept]))
        left = total - (kept - 1)
        told = rf"{left} transactions? missing" if left else f"All {total} transactions were read"
        with pytest.raises(DamageError, match=told):
            graphstore.restore(dump, tmp_path / "again.gs")
        assert [dump] == list(tmp_path.iterdir())


def test_a_dump_of_an_earlier_version_is_restored_with_a_remark(dump, tmp_path):
    """It begins as a journal does, and has no last line."""
    _, *lines, _ = dump.read_bytes().splitlines(keepends=True)
    dump.write_bytes(header(1) + b"".join(lines))

    with graphstore.restore(dump, tmp_path / "again.gs") as store:
        holds_all(store)
        (notice,) = store.notices
    assert "whether all are there cannot be checked" in notice
    run = [sys.executable, "-m", "graphstore", "restore", str(tmp_path / "cli.gs"), str(dump)]
    assert "cannot be checked" in subprocess.run(run, capture_output=True, check=True, text=True).stderr


def test_a_dump_of_a_later_version_is_refused(dump, tmp_path):
    dump.write_bytes(dump.read_bytes().replace(b'"schema":2', b'"schema":3', 1))
    with pytest.raises(EngineError, match="Install a newer graphstore"):
        graphstore.restore(dump, tmp_path / "again.gs")


def test_a_dump_is_never_restored_over_a_store(dump, broken):
    before = files(broken)

    with pytest.raises(graphstore.GraphStoreError, match=re.escape(str(broken))):
        graphstore.restore(dump, broken)
    assert before == files(broken)


# ---------------------------------------------------------------- the disk refuses


@pytest.fixture
def clock():
    return Clock("2026-01-01")


@pytest.fixture
def store(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        store.add_node("fact", {"n": 1}, id="fact-b")
        yield store


def refuse(*_, **__):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def in_a_block(store: graphstore.GraphStore) -> None:
    with store.transaction():
        store.add_node("fact", {}, id="fact-y")
        store.revise("fact-a", {"n": 3})


EVERY_VERB = {
    "add": lambda s: s.add_node("fact", {}, id="fact-x"),
    "add superseding": lambda s: s.add_node("fact", {}, id="fact-x", supersedes=["fact-a"]),
    "revise": lambda s: s.revise("fact-a", {"n": 2}),
    "revise a part": lambda s: s.revise("fact-a", {"n": 2}, valid_from="2026-01-01", valid_to="2026-01-05"),
    "supersede": lambda s: s.supersede("fact-a", by="fact-b"),
    "end": lambda s: s.end("fact-a", at="2026-06-01"),
    "retract": lambda s: s.retract("fact-a", reason="x"),
    "link": lambda s: s.link("fact-a", "uses", "fact-b"),
    "unlink": lambda s: s.unlink(s.links_from("fact-b")[0].id),
    "event": lambda s: s.record_event("note", "x", related_to="fact-a"),
    "define": lambda s: s.define_kind("reviews"),
    "load": lambda s: s.bulk_load(versions=[{"node_id": "bulk-1", "content": {}}]),
    "load history": lambda s: s.bulk_load(
        versions=[{"node_id": "bulk-1", "content": {}, "tx_from": "2026-03-02"}]
    ),
    "block": in_a_block,
}


def state(store: graphstore.GraphStore) -> dict:
    return {
        "nodes": store.nodes(),
        "events": store.events(),
        "versions": [store.versions(name) for name in ("fact-a", "fact-b")],
        "links": [store.links_from(name) for name in ("fact-a", "fact-b")],
        "changes": store.changes(),
        "stats": {
            name: store.stats()[name]
            for name in ("nodes", "versions", "rows", "links", "transactions", "last_tx")
        },
    }


@pytest.mark.parametrize("verb", EVERY_VERB.values(), ids=EVERY_VERB.keys())
@pytest.mark.parametrize("call", ["fdatasync", "pwrite", "short pwrite"])
def test_a_verb_the_disk_refuses_leaves_the_store_as_it_was(store, monkeypatch, clock, call, verb):
    clock.set("2026-03-01")
    store.link("fact-b", "related_to", "fact-a")
    clock.set("2026-03-05")
    before, written = state(store), journal(store.path).read_bytes()
    real = os.pwrite

    def short(fd, data, offset):
        """Some bytes fit, then the disk is full."""
        return real(fd, bytes(data)[: len(data) // 2], offset) if len(data) > 20 else full()

    with monkeypatch.context() as patched:
        patched.setattr(
            os, call.split()[-1], {"fdatasync": refuse, "pwrite": full, "short pwrite": short}[call]
        )
        with pytest.raises(EngineError, match="journal"):
            verb(store)
    assert before == state(store)
    assert written == journal(store.path).read_bytes()

    verb(store)
    assert {"n": 9} == store.add_node("fact", {"n": 9}, id="fact-after").content
    after, path = state(store), store.path
    store.close()
    with graphstore.open(path, clock=clock) as again:
        assert after == state(again)
        assert again.verify().ok


def test_a_verb_refused_inside_a_block_fails_the_whole_block(store, monkeypatch):
    before = state(store)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", refuse)
        with pytest.raises(EngineError), store.transaction():
            store.add_node("fact", {}, id="fact-x")
            store.revise("fact-a", {"n": 5})
    assert before == state(store)

    with store.transaction():
        store.add_node("fact", {}, id="fact-x")
    assert 3 == len(store.nodes())


NO_ROOM = textwrap.dedent(
    """
    import resource, sys
    import graphstore

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    store = graphstore.open(sys.argv[1])
    store.add_node("fact", {"n": 1}, id="fact-a")
    store.query_tables("MATCH (n:Node) RETURN n.id")
    (file,) = (store.path / "journal").glob("*.jsonl")
    before = file.read_bytes()
    kept = store.versions("fact-a")

    limit(len(before) + 100)  # part of the line fits
    refused = 0
    for verb in (
        lambda: store.add_node("fact", {"pad": "x" * 5000}, id="fact-b"),
        lambda: store.revise("fact-a", {"pad": "y" * 5000}),
        lambda: store.bulk_load(versions=[{"node_id": f"bulk-{n}", "content": {"n": n}} for n in range(500)]),
    ):
        try:
            verb()
        except graphstore.EngineError as error:
            refused += 1
            assert "space" in str(error), error
        assert before == file.read_bytes()
        assert kept == store.versions("fact-a")
    assert refused == 3
    assert ["fact-a"] == [node.id for node in store.nodes()]

    limit(resource.RLIM_INFINITY)
    store.add_node("fact", {"pad": "x" * 5000}, id="fact-b")
    assert 2 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    assert store.verify().ok
    store.close()
    print("done")
    """
)


@pytest.mark.skipif(sys.platform == "win32", reason="no file size limit to set")
def test_a_journal_with_no_room_left_goes_on_when_there_is_some(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(tmp_path / "memory.gs")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "done" == run.stdout.splitlines()[-1]
    with graphstore.open(tmp_path / "memory.gs") as store:
        assert ["fact-a", "fact-b"] == [node.id for node in store.nodes()]
        assert store.verify().ok


FULL_DISK = textwrap.dedent(
    """
    import os, sys
    import graphstore

    path, filler, ending = sys.argv[1:]
    store = graphstore.open(path)
    with store.transaction():
        for n in range(2000):
            store.add_node("fact", {"n": n, "pad": str(n) * 100}, id=f"fact-{n:06}")
    # Fill the disk until the journal has a little room and the tables have none.
    with open(filler, "wb") as file:
        free = os.statvfs(path).f_bavail * os.statvfs(path).f_frsize
        file.write(bytes(max(0, free - (256 << 10))))
    try:
        count = store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    except graphstore.EngineError as error:
        print("refused:", error)
    else:
        assert count == 2000, count
    assert {"n": 7, "pad": "7" * 100} == store.node("fact-000007").content
    store.add_node("fact", {"n": -1}, id="fact-small")
    if ending == "close-while-full":
        store.close()
        os.unlink(filler)
        store = graphstore.open(path)
    else:
        os.unlink(filler)
    assert 2001 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    assert store.verify().ok
    store.close()
    print("done")
    """
)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may make a small disk")
@pytest.mark.parametrize("ending", ["free-then-close", "close-while-full"])
def test_a_full_disk_refuses_cypher_and_harms_nothing(tmp_path, ending):
    """The engine ends the whole process when it cannot write: the store has to look before it lets it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(disk)], capture_output=True, check=False
    ).returncode:
        pytest.skip("a small disk cannot be made here")
    try:
        run = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(disk / "memory.gs"), str(disk / "filler"), ending],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert "done" == run.stdout.splitlines()[-1]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_store_that_cannot_be_made_leaves_nothing_in_the_way(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(EngineError):
            graphstore.open(tmp_path / "memory.gs")
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {}, id="fact-a")
    with graphstore.open(tmp_path / "memory.gs") as store:
        assert store.verify().ok


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_one_may_not_write_is_an_engine_error(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(EngineError):
        graphstore.open(tmp_path / "closed" / "memory.gs")
