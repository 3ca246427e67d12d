"""The rows of branches, after random histories: they are those of the index that is built of the chain, and so are the standings at each coordinate."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStoreError
from graphstore.core.index.occurrences import kept_place
from graphstore.events.timeline import record_message
from graphstore.ledger.branch_rows import SPAN, Line, line_named
from graphstore.ledger.closings import closings
from graphstore.values.inputs import authorized_of
from graphstore.values.keys import topic_name
from tests.ledger.test_questions import DAYS, FORGETTING, VERBS, Leaning
from tests.support import standing_rows
from tests.support.index_of_chain import index_of
from tests.support.ledger_rows import connected
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")

TABLES = {
    "entity": "number, id, is_event, kind, key, scope, tx_from",
    "version": "number, entity, ordinal, coalesce(operation, -1)",
    "period": "number, entity, version, valid_from, valid_to, tx_from, tx_to, opened_by, coalesce(closed_by, -1)",
    "link": "number, id, kind, source, target",
    "claim": "number, link, ordinal, coalesce(operation, -1)",
    "link_period": "number, link, claim, valid_from, valid_to, tx_from, tx_to, opened_by, coalesce(closed_by, -1)",
    "operation": "number, tx, verb, subject, author",
    "occurrence": "number, event, occurred_at, tx, operation",
    "taken": "link, version, valid_from, valid_to",
    "removed": "entity, valid_from, valid_to, operation",
    "linked": "link, valid_from, valid_to, operation",
    "told": "entity, valid_from, valid_to, version",
    "forgotten": "entity, operation",
    "undone": "tx, operation",
}


class Branching(Leaning):
    """A history of a trunk and of branches that began from it, or from one another."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        self.trunk = self.store
        self.made = 0

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            names = [branch.name for branch in self.trunk.branches()]
            name = self.chance.choice([None, None, *names])
            if len(names) < 4 and self.chance.random() < 0.1:
                self.fork(name)
            self.store = self.trunk if name is None else self.trunk.on(name)
            if self.chance.random() < 0.3:
                self.try_some((*VERBS, "undo"))
            else:
                super().go_on(1)
            self.store = self.trunk
            if self.chance.random() < 0.06:
                self.try_some((*FORGETTING, "merge"))

    def fork(self, parent: str | None) -> None:
        """Begin a branch now, or from an earlier transaction."""
        self.made += 1
        line = self.trunk if parent is None else self.trunk.on(parent)
        at = self.chance.choice([None, self.chance.choice(line.changes()).tx])
        with suppress(GraphStoreError):
            line.branch(f"branch-{self.made}", tx=at)

    def merge(self) -> None:
        for branch in self.trunk.branches()[:1]:
            self.trunk.merge(branch.name, decide="branch", reason="it is so")


class Talking(Branching):
    """A history in which messages are recorded on all lines."""

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            super().go_on(1)
            self.store = self.chance.choice([self.trunk, *map(self.trunk.on, self.names())])
            self.try_some(("message",))
            self.store = self.trunk

    def names(self) -> list[str]:
        return [branch.name for branch in self.trunk.branches()]

    def message(self) -> None:
        texts = {name: self.chance.choice([None, "a", "b"]) for name in ("sender", "thread", "trace_id")}
        record_message(self.store, "TEXT", "red", occurred_at=self.chance.choice(DAYS), **texts)


def fields_of_rows(connection: sqlite3.Connection, line: Line) -> dict[str, list[tuple[Any, ...]]]:
    """The tags of a line's versions, and the fields of its messages by period, each number as its place on the line."""
    reader = line.reader(connection)
    messages = reader.execute(
        "SELECT period, at, authorized, sender, thread, classification, trace FROM message"
    )
    return {
        "tags": sorted(
            (tag, version % SPAN) for tag, version in reader.execute("SELECT tag, version FROM tag")
        ),
        "messages": sorted((period % SPAN, *fields) for period, *fields in messages),
    }


def fields_of_index(line: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The same of an index, by the bodies."""
    core, index, tags, messages = line._core, index_of(line), [], []
    for version, ent in enumerate(index.v_ent):
        body = {} if ent in index.gone else core.body(index.v_pos[version], index.v_len[version])
        if not index.is_event[ent]:
            tags += [(tag, version) for tag in {topic_name(tag) for tag in body.get("tags", ())}]
    for row, ent in enumerate(index.r_ent):
        if not index.is_event[ent]:
            continue
        version = index.r_ver[row]
        fields = {"trace": kept_place(index, core.raw, ent).get("trace_id")}
        if ent not in index.gone:
            body = core.body(index.v_pos[version], index.v_len[version])
            fields["trace"], authorized = body.get("trace_id"), authorized_of(index.kind[ent], body)
            if authorized is not None:
                fields |= {name: body.get(name) for name in ("sender", "thread", "classification")}
                fields["authorized"] = authorized
        found = [fields.get(name) for name in ("authorized", "sender", "thread", "classification", "trace")]
        if any(value is not None for value in found):
            messages.append((row, index.r_from[row], *found))
    return {"tags": sorted(tags), "messages": sorted(messages)}


def of_rows(connection: sqlite3.Connection, line: Line) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a line by table, each number of a row as its place on the line."""
    found = {}
    for table, columns in TABLES.items():
        names = [name.strip() for name in columns.replace("coalesce(", "").replace(", -1)", "").split(",")]
        rows = line.reader(connection).execute(f"SELECT {columns} FROM {table}").fetchall()
        found[table] = sorted(
            tuple(value if name in ("id", "tx") or name.startswith(("valid", "tx_", "occurred")) or not isinstance(value, int) or value < 0 else value % SPAN
                  for name, value in zip(names, row, strict=True))
            for row in rows
        )  # fmt: skip
    return found


def of_index(index: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The same of an index."""
    numbered = enumerate
    found = {
        "entity": zip(index.names, index.is_event, index.kind, index.key, index.scope, index.born, strict=True),
        "version": zip(index.v_ent, index.v_num, index.v_op, strict=True),
        "period": zip(index.r_ent, index.r_ver, index.r_from, index.r_to, index.r_tx, index.r_end, index.r_op, index.r_close, strict=True),
        "link": zip(index.l_name, index.l_kind, index.l_src, index.l_tgt, strict=True),
        "claim": zip(index.c_link, index.c_num, index.c_op, strict=True),
        "link_period": zip(index.k_link, index.k_claim, index.k_from, index.k_to, index.k_tx, index.k_end, index.k_op, index.k_close, strict=True),
        "operation": zip(index.o_tx, index.o_verb, index.o_subject, index.o_author, strict=True),
        "occurrence": zip(index.s_ent, index.s_at, index.s_tx, index.s_op, strict=True),
    }  # fmt: skip
    rows = {table: sorted((number, *row) for number, row in numbered(each)) for table, each in found.items()}
    rows["taken"] = sorted((link, *piece) for link, pieces in index.taken.items() for piece in pieces)
    for table, there in (("removed", index.gaps), ("linked", index.link_ghosts), ("told", index.ghosts)):
        rows[table] = sorted((one, *gap[1:]) for one, gaps in there.items() for gap in gaps)
    rows["forgotten"] = sorted(index.gone.items())
    rows["undone"] = sorted((tx, op) for tx, ops in index.undone_by.items() for op in ops)
    return rows


@pytest.mark.parametrize("seed", seeds(2, 12, 200))
def test_the_rows_of_a_line_are_those_of_its_index(seed: int, tmp_path: Path) -> None:
    history = Branching(tmp_path / "memory.gs", seed)
    compared = 0
    with closing(history.trunk) as store:
        for _ in range(6):
            history.go_on(12)
            for name in (None, *(branch.name for branch in store.branches())):
                index = index_of(store if name is None else store.on(name))
                with connected(store.path) as connection:
                    line = line_named(connection, name)
                    expected, found = of_index(index), of_rows(connection, line)
                    for table in TABLES:
                        assert expected[table] == found[table], (name, table)
                count, differing = standing_rows.compare(store, name)
                assert not differing, name
                compared += count if name else 0
        assert compared > 500
        assert store.verify().problems == ()


@pytest.mark.parametrize("seed", seeds(1, 4, 100))
def test_the_fields_of_a_line_are_those_of_its_bodies(seed: int, tmp_path: Path) -> None:
    history, compared = Talking(tmp_path / "memory.gs", seed), 0
    with closing(history.trunk) as store:
        for _ in range(5):
            history.go_on(12)
            for name in (None, *history.names()):
                with connected(store.path) as connection:
                    found = fields_of_rows(connection, line_named(connection, name))
                    assert fields_of_index(store if name is None else store.on(name)) == found, name
                    compared += len(found["tags"]) + len(found["messages"])
        assert compared > 100
        assert store.verify().problems == ()


def test_what_the_trunk_forgets_is_among_what_a_branch_closed(tmp_path):
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"n": 1}, id="of-trunk")
        branch = store.branch("side")
        branch.revise("of-trunk", {"n": 2})
        database = branch._core.rows.database
        [(before,)] = database.rows("SELECT max(number) FROM chain")
        store.erase("of-trunk", reason="private")
        [(after,)] = database.rows("SELECT max(number) FROM chain")

        closed = closings(database, before, after)

        expected = database.rows(
            "SELECT number FROM period WHERE tx_to = (SELECT max(tx) FROM operation WHERE verb = 'erase')"
        )
        assert closed.periods == [number for (number,) in expected] != []
        assert closed.forgets
