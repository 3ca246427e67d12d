"""What every journal does, in a folder and in PostgreSQL: the index and what is above it rely on no more."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import GENESIS, dumps
from graphstore.core.journal.positions import Place
from graphstore.core.journal.seam import Seam

pytestmark = pytest.mark.in_process("journals without a store")

Opened = Callable[[], Seam]  # the same journal, read from its beginning by another


@pytest.fixture(params=["folder", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.rest])])
def journals(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Seam, Opened]]:
    """An empty journal, and what opens it again."""
    home = {"folder": in_folder, "postgres": in_postgres}[request.param]
    opened: list[Journal] = []
    yield from home(tmp_path, opened, request)
    for one in opened:
        one.close()


def in_folder(path: Path, opened: list[Journal], _: pytest.FixtureRequest) -> Iterator[tuple[Seam, Opened]]:
    def another(*, writer: bool = False) -> Seam:
        opened.append(Journal(path / "journal", writer=writer))
        return opened[-1]

    journal = another(writer=True)
    assert [] == list(journal.read())
    yield journal, another


def in_postgres(
    path: Path, opened: list[Journal], request: pytest.FixtureRequest
) -> Iterator[tuple[Seam, Opened]]:
    from graphstore.core.journal.cluster import Cluster, address
    from graphstore.core.journal.cluster_journal import ClusterJournal

    url = request.getfixturevalue("servers").url(uuid.uuid4().hex)

    def another(*, writer: bool = False) -> Seam:
        cluster = Cluster(address(url), read_only=not writer)
        if writer:
            cluster.prepare(create=True)
        opened.append(ClusterJournal(path / f"copy{len(opened)}", cluster, writer=writer))
        return opened[-1]

    journal = another(writer=True)
    assert [] == list(journal.read())
    yield journal, another


def told(journal: Seam, *texts: str, tx: str = "2026-01-01T00:00:00Z") -> list[list[tuple[int, int]]]:
    """Append a transaction with one line, and one body a text."""
    journal.take_turn()
    try:
        head: dict[str, Any] = {"tx": tx, "ops": []}
        return journal.append([(head, [dumps({"says": text}) for text in texts])])
    finally:
        journal.leave_turn()


def says(journal: Seam) -> list[list[bytes]]:
    """All bodies, read from where the journal stands."""
    return [
        [journal.raw(*place) if place[1] else b"" for place in line.places]
        for lines in journal.read()
        for line in lines
    ]


def test_what_is_appended_and_durable_is_read_by_another(journals):
    journal, another = journals
    told(journal, "one", "two")
    told(journal, "three")

    assert journal.sync(journal.ticket())
    last = journal.digest
    other = another()
    assert [[b'{"says":"one"}', b'{"says":"two"}'], [b'{"says":"three"}']] == says(other)
    assert last == other.digest != GENESIS


def test_the_places_that_append_gives_have_the_bodies(journals):
    journal, _ = journals

    ((one, two),) = told(journal, "one", "two")

    assert (b'{"says":"one"}', b'{"says":"two"}') == (journal.raw(*one), journal.raw(*two))


def test_each_line_names_the_digest_of_the_one_before(journals):
    journal, another = journals
    digests = [GENESIS]
    for text in "abc":
        told(journal, text)
        digests.append(journal.digest)
    assert journal.sync(journal.ticket())

    assert digests[:-1] == [line.head["prev"] for lines in another().read() for line in lines]


def test_a_transaction_of_many_lines_is_read_as_one(journals):
    journal, another = journals
    heads: list[dict[str, Any]] = [{"tx": "2026-01-01T00:00:00Z", "ops": []} for _ in range(3)]
    journal.take_turn()
    journal.append([(head, [b"{}"]) for head in heads])
    journal.leave_turn()
    assert journal.sync(journal.ticket())

    assert [3] == [len(lines) for lines in another().read()]


def test_what_was_never_acknowledged_can_be_taken_back(journals):
    journal, another = journals
    told(journal, "kept")
    assert journal.sync(journal.ticket())
    before = journal.state
    told(journal, "taken back")
    journal.rewind(before)
    told(journal, "after")
    assert journal.sync(journal.ticket())

    assert [[b'{"says":"kept"}'], [b'{"says":"after"}']] == says(another())


def test_a_line_is_read_again_at_its_place(journals):
    journal, another = journals
    told(journal, "one")
    told(journal, "two")
    assert journal.sync(journal.ticket())
    other = another()
    lines = [line for lines in other.read() for line in lines]

    for line in lines:
        assert [line] == list(other.again(line.at))


def test_what_is_removed_is_in_no_copy_and_the_chain_holds(journals):
    journal, another = journals
    ((gone, stays),) = told(journal, "secret", "stays")
    told(journal, "after")
    assert journal.sync(journal.ticket())
    last = journal.digest

    moves = journal.blank(0, [Place(*gone)])

    if stays[0] > 2:  # in memory a place is a number, which stays
        assert b'{"says":"stays"}' == journal.raw(moves.to(stays[0]), stays[1])
    other = another()
    assert [[b"", b'{"says":"stays"}'], [b'{"says":"after"}']] == says(other)
    assert last == other.digest
    told(journal, "goes on")
    assert journal.sync(journal.ticket())
    assert [b'{"says":"goes on"}'] == says(another())[-1]
