"""A body that is read from the ledger for the first time is held against its checksum: what went bad under an open store is an error with its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError
from tests.support.disk import edit
from tests.support.ledger_rows import rows

pytestmark = pytest.mark.in_process("damages the ledger of the store")


def harm(path: Path, word: str) -> int:
    """Change a letter of a word in the ledger, in another process; the number of its line."""
    [(body, line)] = rows(
        path,
        "SELECT body.number, max(chain.number) FROM body JOIN chain ON chain.first_body <= body.number "
        f"WHERE instr(data, CAST('{word}' AS BLOB)) GROUP BY body.number ORDER BY body.number LIMIT 1",
    )
    bad = chr(ord(word[0]) ^ 1) + word[1:]
    edit(
        path,
        f"UPDATE body SET data = CAST(replace(CAST(data AS TEXT), '{word}', '{bad}') AS BLOB) WHERE number = {body}",
    )
    return int(line)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("template") / "memory.gs"
    _filled(path)
    return path


@pytest.fixture
def path(tmp_path, template) -> Path:
    """A store with lines of one body, of a few and of many, with short and long contents."""
    return Path(shutil.copytree(template, tmp_path / "memory.gs"))


def _filled(path: Path) -> None:
    with graphstore.open(path) as store:
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
    "one": "Marzipan",
    "long": "Zwieback",
    "few-00": "Printen-00",
    "few-17": "Printen-17",
    "many-0000": "Stollen-0000",
    "many-2345": "Stollen-2345",
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("read_only", [False, True])
def test_the_first_read_of_a_body_that_went_bad_names_its_place(path, name, read_only):
    with graphstore.open(path, read_only=read_only) as store:
        line = harm(path, WORDS[name])
        with pytest.raises(
            DamageError, match=rf"ledger.db line {line}: body \d+: its bytes do not match their checksum"
        ):
            store.node(name)
        with pytest.raises(DamageError):  # and so does the second
            store.node(name)
        found = store.verify().problems if read_only else graphstore.verify(path).problems
        assert {line} == {problem.line for problem in found}


def test_tables_are_not_made_of_a_body_that_went_bad(path):
    with graphstore.open(path) as store:
        line = harm(path, "Marzipan")
        with pytest.raises(DamageError, match=f"line {line}"):
            store.query("MATCH (n:Node {id: 'one'}) RETURN n.says")


def test_what_was_written_last_is_checked_too(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "Dominostein"}, id="last")
        harm(path, "Dominostein")
        with pytest.raises(DamageError, match="do not match their checksum"):
            store.node("last")


def test_a_body_is_checked_where_it_lies_after_another_was_erased(path):
    with graphstore.open(path) as store:
        assert "Printen-17" == store.node("few-17").content["says"]
        store.erase("few-00", reason="asked for")
        assert "Printen-17" == store.node("few-17").content["says"]
        harm(path, "Stollen-2345")
        with pytest.raises(DamageError):
            store.node("many-2345")
        assert "Marzipan" == store.node("one").content["says"]


def test_a_byte_that_went_bad_beside_a_body_keeps_nobody_from_it(path):
    with graphstore.open(path) as store:
        harm(path, "Nougat")
        assert "Printen-17" == store.node("few-17").content["says"]
        assert "Stollen-0000" == store.node("many-0000").content["says"]
        assert "Marzipan" == store.node("one").content["says"]
        with pytest.raises(DamageError):
            store.changes()
