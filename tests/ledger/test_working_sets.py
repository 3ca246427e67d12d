"""A working set that is read outside of a transaction has what the index of its line has, of the trunk and of branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphstore.core.index.working_set import KnownKinds, WorkingSet
from graphstore.ledger.branch_ledger import BranchDatabase
from graphstore.ledger.branch_rows import SPAN, line_named
from graphstore.ledger.database import Database
from graphstore.values.period import OPEN, instant
from tests.ledger.test_branch_rows import Branching
from tests.ledger.test_questions import DAYS
from tests.support.index_of_chain import index_of
from tests.support.ledger_rows import connected
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")

OF_ENTITIES = ("names", "is_event", "kind", "key", "scope", "born", "versions_of", "rows_of", "now_of")
OF_ROWS = ("r_ent", "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close")
OF_LINKS = ("l_name", "l_kind", "l_src", "l_tgt", "rows_of_link", "claims_of")
OF_CLAIMS = ("c_link", "c_num", "c_strength", "c_inferred", "c_by", "c_op")
OF_LINK_ROWS = ("k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end", "k_op", "k_close")
OF_OPS = ("o_tx", "o_verb", "o_subject", "o_author")
COLUMNS = {
    "entity": ("names", OF_ENTITIES),
    "version": ("v_ent", ("v_ent", "v_num", "v_op")),
    "period": ("r_ent", OF_ROWS),
    "link": ("l_name", OF_LINKS),
    "claim": ("c_link", OF_CLAIMS),
    "link_period": ("k_link", OF_LINK_ROWS),
    "operation": ("o_tx", OF_OPS),
    "occurrence": ("s_ent", ("s_ent", "s_at", "s_tx", "s_op", "s_first", "s_last")),
}
INSTANTS = ("born", "r_from", "r_to", "r_tx", "r_end", "k_from", "k_to", "k_tx", "k_end", "o_tx", "s_at", "s_tx", "s_first", "s_last")  # fmt: skip


def place(value: Any) -> Any:
    """Return numbers as their places on the line."""
    if isinstance(value, (list, tuple, range)):
        return [place(each) for each in value]
    if isinstance(value, dict):
        return {place(key): place(each) for key, each in value.items()}
    return value % SPAN if isinstance(value, int) and SPAN <= value < SPAN << 8 else value


def columns(index: Any, numbers: dict[str, list[int]]) -> Iterator[tuple[Any, ...]]:
    """Give each value of each column, of the rows with these numbers."""
    for table, (_, names) in COLUMNS.items():
        for name in names:
            values = [getattr(index, name)[number] for number in numbers[table]]
            yield name, values if name in INSTANTS else [place(value) for value in values]


def leading(index: Any, numbers: dict[str, list[int]]) -> Iterator[tuple[Any, ...]]:
    """Give what leads to rows, and what is found at coordinates."""
    for ent in numbers["entity"]:
        name = index.names[ent]
        yield name, place(index.ids[name]), ent in index.gone, place(index.confirmed.get(name) or [])
        for side in (index.out, index.into, index.successors, index.corrected, index.even):
            yield name, place(side.get(ent, []))
        yield name, place(index.gaps.get(ent, [])), place(index.ghosts.get(ent, []))
        yield name, place(list(index.seen_of.get(ent, ())))
        for day in map(instant, DAYS):
            for tx in (OPEN - 1, *(index.o_tx[op] for op in numbers["operation"][::7])):
                if index.born[ent] <= tx:
                    yield name, day, tx, place(index.find(ent, day, tx)), index.standing(ent, day, tx)
        said = index.said_over(ent, (instant(DAYS[0]), OPEN)) if not index.is_event[ent] else ()
        yield name, [(max(start, instant(DAYS[0])), stop, place(ver)) for start, stop, ver in said]
    for link in numbers["link"]:
        yield place(index.link_ids[index.l_name[link]]), place(index.link_ghosts.get(link, []))
        yield sorted(map(tuple, place(index.taken.get(link, []))))


def done(index: Any, numbers: dict[str, list[int]]) -> Iterator[tuple[Any, ...]]:
    """Give what each transaction did."""
    instants = list(dict.fromkeys(index.o_tx[op] for op in numbers["operation"]))
    yield instants == index.instants_between(0, OPEN), index.instants_between(instants[-1], OPEN)
    for tx in instants:
        rows, link_rows = index.rows_at(tx), index.link_rows_at(tx)
        new = [link for row in link_rows if index.rows_of_link[link := index.k_link[row]][0] == row]
        ops = index.ops_at(tx)
        yield (
            tx,
            place(ops),
            place(rows),
            place(link_rows),
            place(index.ops_beside(tx)),
            index.settings_at(tx),
        )
        forgets = {"evict", "erase"} & {index.o_verb[op] for op in ops}
        if not forgets:
            yield tx, place(index.closed_at(tx)), place(index.taken_at(tx, new)), index.known_by(tx) % SPAN
        yield tx, place([row for part in index.link_rows_after(tx) for row in part])


@pytest.mark.parametrize("seed", seeds(2, 8, 200))
def test_a_working_set_has_what_the_index_has(seed: int, tmp_path: Path) -> None:
    history = Branching(tmp_path / "memory.gs", seed)
    with (
        closing(history.trunk) as store,
        closing(Database(store.path / "ledger.db", read_only=True)) as database,
    ):
        for _ in range(4):
            history.go_on(12)
            for name in (None, *(branch.name for branch in store.branches())):
                index = index_of(store if name is None else store.on(name))
                with connected(store.path) as connection:
                    line = line_named(connection, name)
                rows: Any = database if name is None else BranchDatabase(database, name, line)
                places = {
                    table: [*range(len(getattr(index, column)))] for table, (column, _) in COLUMNS.items()
                }
                numbers = {table: [line.row(table, at) for at in of] for table, of in places.items()}
                for parts in (columns, leading, done):
                    found = WorkingSet(rows, KnownKinds(), lambda: None)
                    for one, two in zip(parts(index, places), parts(found, numbers), strict=True):
                        assert one == two, name
                assert (index.kinds, index.promoted) == (found.kinds, found.promoted)
                assert (index.branch, index.lineage) == (found.branch, found.lineage)
                if name is not None:
                    assert index.forked.ops == found.forked.ops
                    assert index.forked.versions == found.forked.versions
