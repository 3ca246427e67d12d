"""A store from a folder to PostgreSQL and back: the same lines, gone on with after an interruption, refused where something else is."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, DamageError, InvalidError, NotFoundError
from graphstore.core.folder import copying

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("copies folders")]


@pytest.fixture
def url(servers: Any) -> str:
    return str(servers.url(uuid.uuid4().hex))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store with a branch, a large transaction and something erased."""
    path = tmp_path / "made.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "a secret of mine"}, id="gone")
        store.add_node("fact", {"n": 1}, id="stays", reason="seen")
        store.branch("idea").add_node("fact", {"n": 2}, id="new")
        with store.transaction():
            for number in range(3_000):
                store.add_node("fact", {"n": number}, id=f"n{number}")
        store.erase("gone", reason="asked for")
    return path


def lines(path: Path) -> list[bytes]:
    """The lines of a store, without the headers of segments."""
    return [
        line
        for segment in sorted((path / "journal").glob("*.jsonl"))
        for line in segment.read_bytes().splitlines()[1:]
    ]


def test_a_folder_is_the_same_after_it_went_to_a_server_to_another_store_and_back(
    made, url, servers, tmp_path
):
    there = graphstore.copy(made, url)
    other = str(servers.url(uuid.uuid4().hex))
    graphstore.copy(url, other)
    back = graphstore.copy(other, tmp_path / "back.gs")

    assert lines(made) == lines(tmp_path / "back.gs")
    assert there.digest == back.digest and there.lines == there.total == len(lines(made))
    with graphstore.open(url) as one, graphstore.open(tmp_path / "back.gs") as two:
        assert list(one.changes()) == list(two.changes())
        assert one.verify().ok and two.verify().ok
        assert {"n": 2} == two.on("idea").node("new").content


def test_a_copy_is_gone_on_with_in_both_directions(made, url, tmp_path):
    back = tmp_path / "back.gs"
    first = graphstore.copy(made, url)
    graphstore.copy(url, back)
    with graphstore.open(made) as store:
        store.add_node("fact", {"n": 1}, id="later")

    assert (1, first.total + 1) == graphstore.copy(made, url)[:2]
    segment = back / "journal" / "00000001.jsonl"
    with segment.open("ab") as file:
        file.write(b'{"body":[{"cut')  # as a kill leaves it

    assert (1, first.total + 1) == graphstore.copy(url, back)[:2]
    assert 0 == graphstore.copy(url, back).lines == graphstore.copy(made, url).lines
    assert lines(made) == lines(back)


def test_what_is_erased_between_two_copies_is_erased_at_the_target(made, url, servers):
    with graphstore.open(made) as store:
        store.add_node("fact", {"says": "another secret of mine"}, id="told")
    graphstore.copy(made, url)
    with graphstore.open(made) as store:
        store.erase("told", reason="asked for")
    graphstore.copy(made, url)

    graphstore.open(url).close()

    name = url.rpartition("=")[2]
    rows = servers.primary.sql(f"select bytes from graphstore.body where store = '{name}'")
    assert not any(b"secret of mine" in bytes(row[0]) for row in rows)


def test_what_is_sent_in_many_batches_arrives_whole(made, url, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 1_000)

    assert len(lines(made)) == graphstore.copy(made, url).lines


def test_other_lines_at_the_target_are_refused_and_left_alone(made, url, tmp_path):
    with graphstore.open(url) as store:
        store.add_node("fact", {"n": 9}, id="mine")
    with graphstore.open(tmp_path / "mine.gs") as store:
        store.add_node("fact", {"n": 9}, id="mine")
    before = lines(tmp_path / "mine.gs")

    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(made, url)
    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(url, tmp_path / "mine.gs")

    assert before == lines(tmp_path / "mine.gs")
    with graphstore.open(url) as store:
        assert {"n": 9} == store.node("mine").content


def test_a_changed_row_is_damage(made, url, servers, tmp_path):
    graphstore.copy(made, url)
    name = url.rpartition("=")[2]
    servers.primary.sql(
        f"update graphstore.body set bytes = '{{\"n\":7}}' where store = '{name}' and seq = 2 and n = 0"
    )

    with pytest.raises(DamageError, match="does not match its hash"):
        graphstore.copy(url, tmp_path / "back.gs")
    with pytest.raises(DamageError, match="line 2"):
        graphstore.open(url)


def test_what_cannot_be_copied_is_refused(made, url, tmp_path):
    with pytest.raises(InvalidError, match="neither"):
        graphstore.copy(made, tmp_path / "other.gs")
    with pytest.raises(NotFoundError):
        graphstore.copy(tmp_path / "nothing.gs", url)
    with pytest.raises(NotFoundError):
        graphstore.copy(url + "x", url)
    with pytest.raises(NotFoundError):  # nothing was made for them
        graphstore.open(url, create=False)
    with pytest.raises(NotFoundError):
        graphstore.copy(url + "x", tmp_path / "back.gs")
    assert not (tmp_path / "back.gs").exists()
