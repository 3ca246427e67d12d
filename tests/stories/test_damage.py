"""Damage: copies are made anew with a word, the ledger is refused with file and line, and nothing is overwritten."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import graphstore
from graphstore import DamageError, EngineError, GraphStoreError
from graphstore.ledger.chain import GENESIS, encoded, hashed
from graphstore.ledger.database import Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.old_journal import OldJournal, header
from tests.conftest import Clock
from tests.support.disk import edit, no_room
from tests.support.ledger_rows import change, recorded, rows
from tests.support.old_release import open_old

pytestmark = pytest.mark.in_process("damages the files of the store")

LIMITS = pytest.mark.skipif(sys.platform == "win32", reason="no file size limit to set")
NAMES = ["fact-a", "fact-b", "fact-c", "fact-d", "fact-e", "fact-f"]


def fill(store: graphstore.GraphStore) -> None:
    """Six facts, one transaction for each, after one of every other verb."""
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


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store that was closed in peace."""
    path = tmp_path_factory.mktemp("whole") / "memory.gs"
    with graphstore.open(path, clock=Clock("2026-01-01"), author="maria") as store:
        fill(store)
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")
    return path


@pytest.fixture
def old_journal(tmp_path) -> Path:
    """The folder of such a journal as release 0.1 kept it."""
    with open_old(tmp_path / "old.gs", clock=Clock("2026-01-01"), author="maria") as store:
        fill(store)
    return tmp_path / "old.gs" / "journal"


@pytest.fixture
def broken(whole, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    path = tmp_path / "memory.gs"
    shutil.copytree(whole, path)
    return path


def journal(folder: Path) -> Path:
    """The file of a journal of release 0.1."""
    (file,) = folder.glob("*.jsonl")
    return file


def copies(path: Path) -> list[Path]:
    """The files of a store that are neither the ledger nor a lock: what can be made anew."""
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and not file.name.startswith("ledger.db") and "lock" not in file.name
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


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_copy_is_made_anew(broken, harm):
    for file in copies(broken):
        if "kuzu" in str(file.relative_to(broken)):
            harm(file)
    before = recorded(broken)

    with graphstore.open(broken) as store:
        assert before == recorded(broken)
        holds_all(store)
    with graphstore.open(broken) as store:
        assert "fact-new" == store.node("fact-new").id


def test_making_a_copy_anew_is_told(broken):
    for file in copies(broken):
        if "kuzu" in str(file.relative_to(broken)):
            harm_by_noise(file)

    with graphstore.open(broken) as store:
        store.query_tables("MATCH (n:Node) RETURN count(*) AS n")
        assert any("kuzu" in notice or "rebuilt" in notice for notice in store.notices), store.notices


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


@pytest.mark.parametrize("lines", [1, 2, 4])
def test_a_ledger_shorter_than_its_graph_tables_know_is_refused(broken, lines):
    """The ledger was cut, or an old backup of it was put back: what was acknowledged is missing, and nothing opens as if it had never been."""
    cut(broken, lines)
    before = files(broken)

    missing = rf"ledger.db: {lines} transactions? missing: graph.json .* restore a dump or a backup .* remove graph.json"
    for read_only in (False, True):
        with pytest.raises(DamageError, match=missing):
            graphstore.open(broken, read_only=read_only)
    (problem,) = graphstore.verify(broken).problems
    assert re.search(missing, problem.message)
    assert before == files(broken)

    (broken / "graph.json").unlink()  # the way out that the message names
    with graphstore.open(broken) as store:
        assert set(NAMES[:-lines]) == {node.id for node in store.nodes(kind="fact")}
        assert store.verify().ok


def test_the_note_of_an_earlier_version_tells_that_something_is_missing(broken):
    cut(broken, 2)
    note = orjson.loads((broken / "graph.json").read_bytes())
    del note["transactions"]
    (broken / "graph.json").write_bytes(orjson.dumps(note))

    with pytest.raises(DamageError, match=r"ledger\.db: at least 1 transaction missing"):
        graphstore.open(broken)


def test_nothing_is_missing_where_a_transaction_was_evicted_without_a_trace(tmp_path):
    """The ledger has fewer transactions then, and no copy knows of more."""
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
    """Cut by one line and written on to the same length: only the digests tell the copies that they belong to another ledger."""
    shutil.copytree(broken, tmp_path / "other")
    cut(broken, 1)
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


# ---------------------------------------------------------------- a torn tail of the journal of release 0.1


def cut(path: Path, lines: int) -> None:
    """Take away the last transactions of a ledger, each of which is one line here."""
    change(
        path,
        f"DELETE FROM chain WHERE number > (SELECT max(number) FROM chain) - {lines}",
        "DELETE FROM body WHERE number >= (SELECT max(first_body + bodies) FROM chain)",
    )
    with contextlib.closing(Ledger(Database(path / "ledger.db"))) as ledger:
        ledger.rebuild_rows()


def test_a_tail_cut_at_every_byte_is_read_up_to_the_last_whole_line(old_journal):
    good = journal(old_journal).read_bytes()
    *before, second, last = good.splitlines(keepends=True)
    start = len(good) - len(second) - len(last)
    for stop in range(start, len(good) + 1):
        journal(old_journal).write_bytes(good[:stop])
        torn = stop - good.rfind(b"\n", 0, stop) - 1
        reader = OldJournal(old_journal)
        assert len(before) - 1 + good.count(b"\n", start, stop) == len(list(reader.read()))
        assert torn == (reader.torn.size if reader.torn else 0)


def test_a_transaction_of_many_lines_without_its_seal_is_a_torn_tail(tmp_path):
    """Cut at every byte of its lines: all of it is there, or nothing."""
    folder = tmp_path / "journal"
    folder.mkdir()
    file = folder / "00000001.jsonl"
    parts, digest = [header(1)], GENESIS
    heads = [{"tx": "2026-01-01T00:00:00Z", "ops": [["x", "before"]]}]
    heads += [{"tx": "2026-01-02T00:00:00Z", "ops": [["x", str(n)]], "more": True} for n in range(2)]
    heads += [{"tx": "2026-01-02T00:00:00Z", "ops": [["x", "2"]]}]
    for head in heads:
        bodies = [b'{"a":1}']
        line = encoded({**head, "body": hashed(bodies), "prev": digest}, bodies)
        digest = line.digest
        parts.append(line.line())
    start = len(parts[0]) + len(parts[1])
    file.write_bytes(b"".join(parts))
    good = file.read_bytes()
    for stop in range(start, len(good) + 1):
        file.write_bytes(good[:stop])
        reader = OldJournal(folder)
        lines = [len(transaction) for transaction in reader.read()]
        assert ([1, 3] if stop == len(good) else [1]) == lines
        assert (start < stop < len(good)) == (reader.torn is not None)


# ---------------------------------------------------------------- damage in the truth


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.rest)])
def test_no_byte_of_an_old_journal_can_change_unseen(old_journal, every):
    """Every byte of every line, the last newline apart: without it the line is torn."""
    good = journal(old_journal).read_bytes()
    for at in range(0, len(good) - 1, every):
        for by in (0x01, 0x80) if at % 7 == 0 else (0x01,):
            journal(old_journal).write_bytes(good[:at] + bytes([good[at] ^ by]) + good[at + 1 :])
            line = good.count(b"\n", 0, at) + 1
            reader = OldJournal(old_journal)
            # Line 1 is the header: a higher schema there is told as such.
            with pytest.raises(DamageError if line > 1 else EngineError) as refused:
                list(reader.read())
            assert journal(old_journal).name in str(refused.value)
            assert line == 1 or f"line {line}" in str(refused.value) or good[at] == 0x0A, (
                at,
                str(refused.value),
            )


def replaced(column: str, old: str, new: str) -> str:
    """The SQL of a blob with one word in the place of another."""
    return f"CAST(replace(CAST({column} AS TEXT), '{old}', '{new}') AS BLOB)"


def line_of(path: Path, word: str) -> int:
    """The first row of the chain whose head has a word."""
    [(number,)] = rows(path, f"SELECT min(number) FROM chain WHERE instr(head, CAST('{word}' AS BLOB))")
    return int(number)


# What may have been done to the chain, and the row in which it shows: a later row does not fit it, or it does not fit itself.
HARMS_OF_THE_CHAIN = {
    "a word of a head": (4, [f"UPDATE chain SET head = {replaced('head', 'plan', 'plum')} WHERE number = 4"]),
    "a digest": (
        5,
        ["UPDATE chain SET digest = replace(digest, substr(digest, 1, 1), 'x') WHERE number = 5"],
    ),
    "no head": (6, ["UPDATE chain SET head = x'' WHERE number = 6"]),
    "a head that is no JSON": (6, ["UPDATE chain SET head = x'7b' WHERE number = 6"]),
    "left out": (4, ["DELETE FROM chain WHERE number = 4"]),
    "left out, and the numbers closed up": (
        4,
        ["DELETE FROM chain WHERE number = 4", "UPDATE chain SET number = number - 1 WHERE number > 4"],
    ),
    "moved": (
        4,
        [
            "UPDATE chain SET number = -4 WHERE number = 4",
            "UPDATE chain SET number = 4 WHERE number = 5",
            "UPDATE chain SET number = 5 WHERE number = -4",
        ],
    ),
    "doubled": (
        5,
        [
            "UPDATE chain SET number = -number WHERE number > 4",
            "UPDATE chain SET number = 1 - number WHERE number < 0",
            "INSERT INTO chain SELECT 5, tx, part + 1, more, first_body, bodies, digest, head FROM chain WHERE number = 4",
        ],
    ),
    "the first": (2, ["DELETE FROM chain WHERE number = 1"]),
    "one more": (
        12,
        ["INSERT INTO chain SELECT 12, tx + 1, 0, 0, 99, 0, digest, x'7b7d' FROM chain WHERE number = 11"],
    ),
}


@pytest.mark.parametrize(("line", "harm"), HARMS_OF_THE_CHAIN.values(), ids=HARMS_OF_THE_CHAIN.keys())
def test_a_damaged_chain_is_refused_and_nothing_is_overwritten(broken, line, harm):
    assert 11 == rows(broken, "SELECT max(number) FROM chain")[0][0]
    without_copies(broken)
    change(broken, *harm)
    before = files(broken)

    with pytest.raises(DamageError, match=rf"ledger.db line {line}\b"), graphstore.open(broken) as store:
        store.add_node("fact", {}, id="fact-new")  # an opening reads no chain
    found = graphstore.verify(broken)
    assert not found.ok
    assert [line] == [problem.line for problem in found.problems if problem.line is not None][:1]
    assert str(broken / "ledger.db") == found.problems[0].file
    assert before == files(broken)


@pytest.mark.parametrize(("line", "harm"), HARMS_OF_THE_CHAIN.values(), ids=HARMS_OF_THE_CHAIN.keys())
def test_a_damaged_chain_is_found_by_verify(broken, line, harm):
    """Opening a store reads no chain: that is checked by `verify`."""
    change(broken, *harm)
    before = files(broken)

    found = graphstore.verify(broken)
    assert not found.ok
    assert line in [problem.line for problem in found.problems]
    assert before == files(broken)
    try:
        store = graphstore.open(broken)
    except DamageError as error:
        assert re.search(rf"ledger.db line {line}\b", str(error))
    else:
        with store:
            assert not store.verify().ok


@pytest.mark.parametrize(
    "column",
    [
        "tx = tx + 1000",
        "part = part + 1",
        "more = 1 - more",
        "first_body = first_body + 1",
        "bodies = bodies + 1",
    ],
)
@pytest.mark.parametrize("line", [2, 4, 11])
def test_columns_that_say_otherwise_than_their_head_are_found(broken, line, column):
    change(broken, f"UPDATE chain SET {column} WHERE number = {line}")

    found = graphstore.verify(broken)
    assert line in [problem.line for problem in found.problems], found.problems


@pytest.mark.parametrize("with_copies", [True, False])
@pytest.mark.parametrize(
    "harm",
    [
        f"UPDATE body SET data = {replaced('data', 'fact-c', 'fact-q')}",
        "UPDATE body SET checksum = checksum + 1 WHERE instr(data, CAST('fact-c' AS BLOB))",
        "DELETE FROM body WHERE instr(data, CAST('fact-c' AS BLOB))",
        "UPDATE body SET data = x'' WHERE instr(data, CAST('fact-c' AS BLOB))",
    ],
)
def test_a_changed_content_is_damage_when_it_is_read(broken, harm, with_copies):
    if not with_copies:
        without_copies(broken)
    line = line_of(broken, "fact-c")
    change(broken, harm)

    found = graphstore.verify(broken)
    assert not found.ok
    assert line in [problem.line for problem in found.problems], found.problems
    with graphstore.open(broken) as store:
        for _ in range(2):
            with pytest.raises(DamageError, match=rf"ledger.db line {line}: body \d+"):
                store.node("fact-c")
        assert {"name": "fact-d"} == store.node("fact-d").content
        assert line in [problem.line for problem in store.verify().problems]
        store.add_node("fact", {}, id="fact-new")


def test_a_content_that_vanished_was_not_erased(broken):
    """An erased body has no bytes either, and the chain says of which thing it was."""
    change(broken, "UPDATE body SET data = NULL, checksum = 0 WHERE instr(data, CAST('fact-c' AS BLOB))")

    found = graphstore.verify(broken)
    assert any("'fact-c' version 1 is missing" in problem.message for problem in found.problems)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("all_forgotten WHERE", "all_forgktten WHERE"),
        ("branch, entity, ordinal, version FROM", "entity, branch, ordinal, version FROM"),
    ],
)
def test_a_changed_definition_of_a_view_is_found_and_made_anew(broken, was, becomes):
    data = (broken / "ledger.db").read_bytes()
    assert was.encode() in data
    (broken / "ledger.db").write_bytes(data.replace(was.encode(), becomes.encode()))

    found = graphstore.verify(broken)
    assert not found.ok
    assert any("the definition of " in one.message for one in found.problems), found.problems
    with graphstore.open(broken) as store:
        store.rebuild()
        assert {"name": "fact-c"} == store.node("fact-c").content
    assert graphstore.verify(broken).ok


@pytest.mark.parametrize("every", [pytest.param(1_999, id="some"), pytest.param(251, marks=pytest.mark.rest)])
def test_no_byte_of_the_file_can_change_what_is_told_unseen(broken, every):
    """SQLite has pages without checksums, and bytes that mean nothing: what a flip changes is refused or found."""
    without_copies(broken)
    good, before = (broken / "ledger.db").read_bytes(), recorded(broken)
    for at in range(0, len(good), every):
        flip(broken / "ledger.db", at, 0x04)
        try:
            found = graphstore.verify(broken)
        except GraphStoreError as error:
            assert "ledger.db" in str(error)
        else:
            if found.ok:
                assert before == recorded(broken), at
                with graphstore.open(broken, read_only=True) as store:
                    assert {"name": "fact-c"} == store.node("fact-c").content
        (broken / "ledger.db").write_bytes(good)
        for left in broken.glob("ledger.db-*"):
            left.unlink()
    assert graphstore.verify(broken).ok


@pytest.mark.parametrize(
    "harm", [harm_by_truncating, harm_by_one_byte_in_front, harm_by_rubbish, harm_by_emptying]
)
def test_a_damaged_file_is_refused_and_not_overwritten(broken, harm):
    without_copies(broken)
    harm(broken / "ledger.db")
    before = files(broken)

    for read_only in (True, False):
        with pytest.raises(GraphStoreError, match=r"ledger\.db"):
            graphstore.open(broken, read_only=read_only)
    assert before == files(broken)
    with contextlib.suppress(GraphStoreError):
        assert not graphstore.verify(broken).ok
    assert before == files(broken)


def test_an_open_store_notices_on_verify_what_happened_to_its_ledger(broken):
    line = line_of(broken, "fact-a")
    with graphstore.open(broken) as store:
        edit(broken, f"UPDATE chain SET head = {replaced('head', 'fact-a', 'fact-q')} WHERE number = {line}")
        found = store.verify()

        assert not found.ok
        assert line in [problem.line for problem in found.problems]


def test_contents_that_are_gone_under_an_open_store_are_an_error_of_what_needs_them(broken):
    with graphstore.open(broken) as store:
        seen = store.as_of()
        assert {"name": "fact-f"} == seen.node("fact-f").content
        edit(
            broken,
            "DELETE FROM body WHERE instr(data, CAST('fact-b' AS BLOB)) OR instr(data, CAST('fact-c' AS BLOB))",
        )

        for ask in (
            lambda: seen.node("fact-b"),
            lambda: store.node("fact-c"),
            lambda: list(store.nodes()),
        ):
            with pytest.raises(DamageError, match=r"ledger.db line \d+: body \d+: it is missing"):
                ask()
        assert {"name": "fact-a"} == store.node("fact-a").content
        assert not store.verify().ok


def test_transactions_that_are_gone_under_an_open_store_are_damage(broken):
    """Nothing removes rows from the chain without a note of it: what an open store has read cannot be taken back."""
    with graphstore.open(broken) as store:
        edit(broken, "DELETE FROM chain WHERE number > 9")
        with pytest.raises(DamageError, match=r"ledger.db"):
            store.add_node("fact", {}, id="fact-new")
        assert not store.verify().ok


def test_a_missing_ledger_is_not_an_empty_store(broken):
    """Copies without a ledger are no store: opening must not begin a new history over them."""
    (broken / "ledger.db").unlink()
    before = files(broken)

    with pytest.raises(GraphStoreError, match=re.escape(str(broken))):
        graphstore.open(broken)
    assert before == files(broken)


def test_verify_on_the_command_line_says_the_same(broken):
    run = [sys.executable, "-m", "graphstore", "verify", str(broken)]
    assert 0 == subprocess.run(run, capture_output=True, check=False).returncode
    line = line_of(broken, "fact-c")
    change(broken, f"UPDATE chain SET head = {replaced('head', 'fact-c', 'fact-q')} WHERE number = {line}")

    told = subprocess.run(run, capture_output=True, check=False, text=True)
    assert 1 == told.returncode
    assert "ledger.db" in told.stdout + told.stderr
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
    """It begins as a journal of files does, and has no last line."""
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


@contextlib.contextmanager
def room_for(extra: int, path: Path) -> Iterator[None]:
    """A block in which no file can become larger than the WAL of the store now is, and so much more."""
    import resource

    size = (path / "ledger.db-wal").stat().st_size + extra
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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


@LIMITS
@pytest.mark.parametrize("verb", EVERY_VERB.values(), ids=EVERY_VERB.keys())
@pytest.mark.parametrize("room", [0, 2_000, 5_000])  # none, for half a page, for one page
def test_a_verb_the_disk_refuses_leaves_the_store_as_it_was(store, clock, room, verb):
    clock.set("2026-03-01")
    store.link("fact-b", "related_to", "fact-a")
    clock.set("2026-03-05")
    before, written = state(store), recorded(store.path)

    with room_for(room, store.path), pytest.raises(EngineError, match=r"memory\.gs") as refused:
        verb(store)
    assert "not kept" == refused.value.outcome
    assert before == state(store)
    assert written == recorded(store.path)

    verb(store)
    assert {"n": 9} == store.add_node("fact", {"n": 9}, id="fact-after").content
    after, path = state(store), store.path
    store.close()
    with graphstore.open(path, clock=clock) as again:
        assert after == state(again)
        assert again.verify().ok


@LIMITS
def test_a_verb_refused_inside_a_block_fails_the_whole_block(store):
    before = state(store)
    with room_for(0, store.path), pytest.raises(EngineError), store.transaction():
        store.add_node("fact", {}, id="fact-x")
        store.revise("fact-a", {"n": 5})
    assert before == state(store)

    with store.transaction():
        store.add_node("fact", {}, id="fact-x")
    assert 3 == len(store.nodes())


NO_ROOM = textwrap.dedent(
    """
    import os, resource, sys
    import graphstore
    from tests.support.ledger_rows import recorded

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    store = graphstore.open(sys.argv[1])
    store.add_node("fact", {"n": 1}, id="fact-a")
    store.query_tables("MATCH (n:Node) RETURN n.id")
    before = recorded(store.path)
    kept = store.versions("fact-a")

    limit(os.stat(store.path / "ledger.db-wal").st_size + 100)  # part of a page fits
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
            assert error.outcome == "not kept", error
        assert before == recorded(store.path)
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


@LIMITS
def test_a_ledger_with_no_room_left_goes_on_when_there_is_some(tmp_path):
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
    # Fill the disk until the ledger has a little room and the tables have none.
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


@LIMITS
def test_a_store_that_cannot_be_made_leaves_nothing_in_the_way(tmp_path):
    with no_room(), pytest.raises(EngineError):
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
