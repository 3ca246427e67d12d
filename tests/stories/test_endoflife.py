"""Release cycles of 500 products as their dates were believed over the years, held against a straight scan of the table.

Each row is what was believed of one cycle from `sys_from` to `sys_to`. Two readings of the same table: of the dates as
mere content, which holds at all times; and of a cycle as something that lives from its release to its end of life.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.imports import RowsReport, import_rows
from tests.conftest import Clock, day, shared_data

pytestmark = pytest.mark.rest

FIELDS = ["release_date", "support_until", "eol_date", "lts"]
BELIEVED = {
    "id": "{product}/{cycle}",
    "kind": "cycle",
    "scope": "endoflife",
    "content": FIELDS,
    "tx_from": "sys_from",
    "tx_to": "sys_to",
}
TIMES = [
    ("2019-06-01", "2020-06-01"),
    ("2023-04-01", "2023-04-08"),
    ("2024-12-20", "2025-01-10"),
    ("2025-05-04T09:00:00Z", "2025-05-04T10:00:00Z"),  # one commit in between touched 875 cycles
    ("2019-05-01", "2026-11-01"),
    ("2026-11-01", "2023-01-01"),  # and backwards
]

Row = dict[str, str]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with shared_data("endoflife/eol_versions.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


Loaded = tuple[GraphStore, RowsReport, float]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("eol") / "eol.gs"
    with graphstore.open(folder, clock=Clock("2026-11-21")) as store:
        start, start_cpu = time.perf_counter(), time.process_time()
        report = import_rows(
            store, shared_data("endoflife/eol_versions.csv"), {**BELIEVED, "valid_from": "1970-01-01"}
        )
        seconds, busy = time.perf_counter() - start, time.process_time() - start_cpu
        print(f"\nloaded {report} in {seconds:.2f} s, {busy:.2f} s of them busy")
        yield store, report, busy


@pytest.fixture(scope="module")
def living(rows: list[Row]) -> Iterator[tuple[GraphStore, RowsReport]]:
    with graphstore.open(":memory:", clock=Clock("2026-11-21")) as store:
        mapping = {**BELIEVED, "valid_from": "release_date"}
        yield store, import_rows(store, shared_data("endoflife/eol_versions.csv"), mapping)


def at(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def is_empty(row: Row) -> bool:
    return bool(row["sys_to"]) and at(row["sys_from"]) >= at(row["sys_to"])


def believed(rows: list[Row], tx: datetime) -> dict[str, Row]:
    """The row of each cycle that was believed at one instant."""
    found: dict[str, Row] = {}
    for row in rows:
        if at(row["sys_from"]) <= tx and (not row["sys_to"] or tx < at(row["sys_to"])):
            id = f"{row['product']}/{row['cycle']}"
            assert id not in found, "the table believes two things at once"
            found[id] = row
    return found


def changed(before: dict[str, Row], after: dict[str, Row]) -> tuple[set[str], set[str], set[str]]:
    """Ids added, removed, and described otherwise."""
    both = before.keys() & after.keys()
    return (
        after.keys() - before.keys(),
        before.keys() - after.keys(),
        {id for id in both if content(before[id]) != content(after[id])},
    )


def content(row: Row) -> Row:
    return {name: row[name] for name in FIELDS if row[name]}


def test_every_row_is_loaded_in_under_ten_seconds(loaded, rows):
    store, report, busy = loaded
    whole = [row for row in rows if not is_empty(row)]

    assert 19_251 == len(rows) == report.rows
    assert 11_441 == len({(row["product"], row["cycle"]) for row in rows})
    assert len({(row["product"], row["cycle"]) for row in whole}) == report.nodes
    assert [number for number, row in enumerate(rows, start=2) if is_empty(row)] == [
        one.line for one in report.damaged
    ]
    assert len(whole) == report.versions == store.stats()["versions"]
    assert busy < 10  # the time of this process: other work on the machine is not ours


def midnight(date):
    """The first instant of a day, since a date alone means its last one; an instant as it is."""
    return date if "T" in date else f"{date}T00:00:00Z"


@pytest.mark.parametrize(("before", "after"), TIMES)
def test_compare_of_two_transaction_times_lists_exactly_the_rows_that_changed(loaded, rows, before, after):
    store, *_ = loaded
    first, second = believed(rows, at(before)), believed(rows, at(after))
    added, removed, other = changed(first, second)
    found = store.as_of(valid="2026-11-01", tx=midnight(before)).compare(
        store.as_of(valid="2026-11-01", tx=midnight(after))
    )

    assert added == {node.id for node in found.added}
    assert removed == {node.id for node in found.removed}
    assert other == {change.id for change in found.changed}
    assert all(content(first[change.id]) == change.before.content for change in found.changed)
    assert all(content(second[change.id]) == change.after.content for change in found.changed)
    assert added | removed | other or before == "2019-06-01"


def test_a_cycle_is_read_at_every_instant_its_row_was_believed(loaded, rows):
    store, *_ = loaded
    for row in [row for row in rows if not is_empty(row)][::50]:
        view = store.as_of(valid="2020-01-01", tx=row["sys_from"])

        assert content(row) == view.node(f"{row['product']}/{row['cycle']}").content


def test_rows_whose_release_is_no_date_are_reported_and_the_rest_is_kept(living, rows):
    _, report = living
    wrong = [
        number
        for number, row in enumerate(rows, start=2)
        if is_empty(row) or (row["release_date"] and not is_date(row))
    ]

    assert wrong == [one.line for one in report.damaged]
    assert any("'20l2-09-26'" in one.reason for one in report.damaged)


@pytest.mark.parametrize("valid", ["2012-01-01", "2022-06-01", "2026-11-01"])
@pytest.mark.parametrize(("before", "after"), TIMES)
def test_compare_sees_only_cycles_released_by_its_valid_time(living, rows, valid, before, after):
    store, _ = living
    whole = [row for row in rows if not row["release_date"] or is_date(row)]
    first, second = (
        {id: row for id, row in believed(whole, at(tx)).items() if released(row) <= day(valid)}
        for tx in (before, after)
    )
    added, removed, other = changed(first, second)
    found = store.as_of(valid=valid, tx=midnight(before)).compare(
        store.as_of(valid=valid, tx=midnight(after))
    )

    assert added == {node.id for node in found.added}
    assert removed == {node.id for node in found.removed}
    assert other == {change.id for change in found.changed}


def is_date(row: Row) -> bool:
    try:
        datetime.fromisoformat(row["release_date"])
    except ValueError:
        return False
    return True


def released(row: Row) -> datetime:
    """A cycle without a release date holds from when it was recorded, as a verb told nothing would say."""
    return at(row["release_date"]) if row["release_date"] else at(row["sys_from"])
