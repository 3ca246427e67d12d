"""A reader beside a writer that begins new segments all the time: a growing journal is never called damaged, and nothing is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError, EngineError, InvalidError
from graphstore.core.journal import journal as journals
from graphstore.core.journal.positions import Position

pytestmark = pytest.mark.in_process("readers of the files")

WRITER = """
import sys, graphstore
from graphstore.core.journal import journal
journal.SEGMENT_BYTES = 3_000
store = graphstore.open(sys.argv[1])
print("open", flush=True)
for number in range(int(sys.argv[2])):
    store.add_node("fact", {"n": number}, id=f"n{number}")
    print(number, flush=True)
"""


@contextmanager
def writing(path: Path, many: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that adds so many nodes, a few to a segment, and prints the number of each that is acknowledged."""
    command = [sys.executable, "-c", WRITER, str(path), str(many)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "open\n" == process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few lines."""
    monkeypatch.setattr(journals, "SEGMENT_BYTES", 3_000)


def add(store: graphstore.GraphStore, numbers: range) -> None:
    for number in numbers:
        store.add_node("fact", {"n": number, "says": "x" * 300}, id=f"n{number}")


@pytest.mark.parametrize("how", ["refresh", "open", "verify"])
def test_what_is_appended_between_the_end_of_a_segment_and_the_next_one_is_read(
    tmp_path, small, monkeypatch, how
):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(2))
        reader = graphstore.open(path, read_only=True)
        load, left = journals.Journal._load, [range(2, 40)]

        def beside(journal, segment, offset):
            data = load(journal, segment, offset)
            if left and not journal._writer:
                # the writer goes on to other segments once the reader has seen the end of this one
                add(store, left.pop())
            return data

        monkeypatch.setattr(journals.Journal, "_load", beside)
        if how == "refresh":
            reader.refresh()
        elif how == "open":
            graphstore.open(path, read_only=True).close()
        else:
            assert graphstore.verify(path).ok
        assert not left
        reader.refresh()

        assert [f"n{number}" for number in range(40)] == sorted(
            (node.id for node in reader.nodes()), key=lambda id: int(id[1:])
        )
        assert store.verify().ok
        reader.close()


def test_a_segment_that_was_taken_back_and_begun_again_is_seen(tmp_path, small):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(2))
        journal = store._core.journal
        before = journal.state
        while journal.end.segment == before[0].segment:
            before = journal.state
            add(store, range(10 + journal.end.offset, 11 + journal.end.offset))
        with graphstore.open(path, read_only=True) as reader:
            known = len(reader.nodes())
            number = journal.end.segment
            name = journal._name(number)
            kept = name.read_bytes()
            name.unlink()  # as when the write that began it was taken back
            name.write_bytes(kept)
            journal._let_go(number)
            add(store, range(100, 103))
            assert 3 == reader.refresh()
            assert known + 3 == len(reader.nodes())


def test_a_line_that_is_taken_back_while_a_reader_looks_is_gone_for_it_too(tmp_path, monkeypatch):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(3))
    file = path / "journal/00000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    unchanged = journals.Journal.unchanged

    def then_cut(self):
        found = unchanged(self)
        os.truncate(file, sum(map(len, lines[:-1])))
        return found

    with graphstore.open(path, read_only=True) as reader:
        assert {"n0", "n1", "n2"} == {node.id for node in reader.nodes()}
        monkeypatch.setattr(journals.Journal, "unchanged", then_cut)
        reader.refresh()
        assert {"n0", "n1"} == {node.id for node in reader.nodes()}


def test_a_segment_that_was_taken_back_before_it_was_opened_holds_nobody_up(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(2))
        with graphstore.open(path, read_only=True) as reader:
            journal = reader._core.journal
            end, *more = journal._state
            journal._state = (Position(end.segment + 1, 0), *more)  # it saw the next one, which is gone again
            add(store, range(2, 4))  # the writer went on in this one
            assert 2 == reader.refresh()
            assert 4 == len(reader.nodes())


def test_a_reader_that_cannot_go_on_says_so_in_every_answer_until_it_can(tmp_path):
    path = tmp_path / "memory.gs"
    store = graphstore.open(path)
    add(store, range(3))
    store.branch("idea")
    reader = graphstore.open(path, read_only=True)
    view, idea = reader.as_of(), reader.on("idea")
    assert 3 == len(idea.nodes())
    add(store, range(3, 5))
    store.close()
    segment = path / "journal" / "00000001.jsonl"
    whole = segment.read_bytes()
    segment.write_bytes(whole.replace(b'"n":4', b'"n":5'))

    with pytest.raises(DamageError, match=r"00000001.jsonl line \d+"):
        reader.refresh()
    for ask in (reader.nodes, view.nodes, idea.nodes, reader.as_of, reader.changes, lambda: view.node("n1")):
        with pytest.raises(EngineError, match=r"cannot follow.*00000001.jsonl line \d+"):
            ask()

    with segment.open("r+b") as file:  # the same file: it is mended in its place
        file.write(whole)
    reader.refresh()
    assert (5, 3, 3) == (len(reader.nodes()), len(view.nodes()), len(idea.nodes()))
    reader.close()
    with pytest.raises(InvalidError, match="closed"):
        view.nodes()


def test_no_message_advises_to_cut_a_file(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(3))
    segment = path / "journal" / "00000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"n":1', b'"n":7'))

    with pytest.raises(DamageError) as refused:
        graphstore.open(path)
    assert str(refused.value).endswith("nothing was changed. Restore a dump or a backup.")


@pytest.mark.rest
def test_readers_beside_a_writer_of_many_segments_miss_nothing(tmp_path):
    path = tmp_path / "memory.gs"
    graphstore.open(path).close()
    many, seen = 1_500, 0
    with writing(path, many) as process, graphstore.open(path, read_only=True) as follower:
        assert process.stdout is not None
        for line in process.stdout:
            told = int(line)
            follower.refresh()
            assert follower.node(f"n{told}").content == {"n": told}
            seen += 1
            if told % 50 == 0:
                with graphstore.open(path, read_only=True) as fresh:
                    assert fresh.node(f"n{told}").content == {"n": told}
                checked = graphstore.verify(path)
                assert checked.ok, checked.problems
        assert many == seen == len(follower.nodes())
    assert len(list((path / "journal").iterdir())) > 50


def test_the_size_of_a_journal_whose_files_are_being_replaced_is_no_error(tmp_path, small):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        add(store, range(30))
        with graphstore.open(path, read_only=True) as reader:
            whole = reader.stats()["journal_bytes"]
            name = store._core.journal._name(0)
            name.rename(path / "aside")
            assert 0 < reader.stats()["journal_bytes"] < whole
            (path / "aside").rename(name)
