"""A body that is read from the journal for the first time is held against its hash: what went bad under an open store is an error with its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError
from graphstore.core.journal import journal as journals

pytestmark = pytest.mark.in_process("damages the files of the store")


def harm(path: Path, word: bytes) -> int:
    """Change a letter of a word in the journal, where it lies; the number of its line."""
    for file in sorted((path / "journal").glob("*.jsonl")):
        data = file.read_bytes()
        at = data.find(word)
        if at >= 0:
            with file.open("r+b") as opened:
                opened.seek(at)
                opened.write(bytes([word[0] ^ 1]))
            return data.count(b"\n", 0, at) + 1
    raise AssertionError(f"{word!r} is nowhere")


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> Path:
    """Where each kind of store is made once."""
    return tmp_path_factory.mktemp("templates")


@pytest.fixture(params=["small", "mapped", "segments"])
def path(request, tmp_path, monkeypatch, templates) -> Path:
    """A store with lines of one body, of a few and of many, with short and long contents."""
    if request.param == "segments":
        monkeypatch.setattr(journals, "SEGMENT_BYTES", 4_000)
    template = templates / request.param
    if not template.exists():
        _filled(template, mapped=request.param == "mapped")
    return Path(shutil.copytree(template, tmp_path / "memory.gs"))


def _filled(path: Path, *, mapped: bool) -> None:
    with graphstore.open(path) as store:
        if mapped:
            store.add_node("fact", {"text": "x" * (3 << 20)}, id="big")
        store.add_node("fact", {"says": "Marzipan"}, id="one", reason="Nougat")
        store.add_node("fact", {"says": "Zwieback " + "x" * 9_000}, id="long")
        with store.transaction():
            for n in range(30):
                store.add_node("fact", {"says": f"Printen-{n:02}"}, id=f"few-{n:02}")
        store.bulk_load(
            versions=[
                {"node_id": f"many-{n:04}", "content": {"says": f"Stollen-{n:04}"}} for n in range(3_000)
            ]
        )


WORDS = {
    "one": b"Marzipan",
    "long": b"Zwieback",
    "few-00": b"Printen-00",
    "few-17": b"Printen-17",
    "many-0000": b"Stollen-0000",
    "many-2345": b"Stollen-2345",
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("read_only", [False, True])
def test_the_first_read_of_a_body_that_went_bad_names_its_place(path, name, read_only):
    with graphstore.open(path, read_only=read_only) as store:
        line = harm(path, WORDS[name])
        with pytest.raises(
            DamageError, match=rf"jsonl line {line}: the content of a body does not match its hash"
        ):
            store.node(name)
        with pytest.raises(DamageError):  # and so does the second
            store.node(name)
        (problem,) = store.verify().problems if read_only else graphstore.verify(path).problems
        assert line == problem.line


def test_tables_are_not_made_of_a_body_that_went_bad(path):
    with graphstore.open(path) as store:
        line = harm(path, b"Marzipan")
        with pytest.raises(DamageError, match=f"line {line}"):
            store.query("MATCH (n:Node {id: 'one'}) RETURN n.says")


def test_what_was_written_last_is_checked_too(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "Dominostein"}, id="last")
        harm(path, b"Dominostein")
        with pytest.raises(DamageError, match="does not match its hash"):
            store.node("last")


def test_a_body_is_checked_where_it_lies_after_another_was_erased(path):
    with graphstore.open(path) as store:
        assert "Printen-17" == store.node("few-17").content["says"]
        store.erase("few-00", reason="asked for")
        assert "Printen-17" == store.node("few-17").content["says"]
        harm(path, b"Stollen-2345")
        with pytest.raises(DamageError):
            store.node("many-2345")
        assert "Marzipan" == store.node("one").content["says"]


def test_a_byte_that_went_bad_beside_a_body_keeps_nobody_from_it(path):
    with graphstore.open(path) as store:
        harm(path, b"Nougat")
        assert "Printen-17" == store.node("few-17").content["says"]
        assert "Stollen-0000" == store.node("many-0000").content["says"]
        with pytest.raises(DamageError):
            store.node("one")


def test_what_was_read_once_is_not_read_again(path, monkeypatch):
    with graphstore.open(path) as store:
        names = [node.id for node in store.nodes() if node.id != "big"]
        read = {name: store.node(name).content for name in names}

        def refuse(*_: object) -> None:
            raise AssertionError("read again")

        monkeypatch.setattr(journals.Journal, "_bytes", refuse)
        assert read == {name: store.node(name).content for name in names}


@pytest.mark.parametrize("saved", [False, True])
def test_blocks_are_known_however_the_store_was_opened(path, saved, monkeypatch):
    """Lines are looked at only where something went bad."""
    if not saved:
        (path / "index.bin").unlink()
    monkeypatch.setattr(journals.Journal, "_check_line", None)
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "Dominostein"}, id="last")
        store.erase("few-00", reason="asked for")
        store.add_node("fact", {"says": "Spekulatius"}, id="very last")
        assert "Spekulatius" == store.node("very last").content["says"]
        assert {"Dominostein", "Marzipan", "Stollen-2345"} <= {
            node.content.get("says") for node in store.nodes()
        }
    with graphstore.open(path) as store:
        assert "Dominostein" == store.node("last").content["says"]
