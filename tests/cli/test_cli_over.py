"""`over` of the command line: the numbers that Python's `over` and the tool of agents have, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from tests.cli.test_command_line import answer, refused, run
from tests.conftest import Clock

YEAR = ("--since", "2026-01-01", "--until", "2026-03", "--step", "1 month")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seats of two teams over a quarter; one of them is corrected later."""
    path = tmp_path_factory.mktemp("over") / "seats.gs"
    clock = Clock("2026-03-10")
    with graphstore.open(path, author="ana", clock=clock) as store:
        store.add_node(
            "team", {"seats": 4, "site": "north"}, id="red", valid_from="2026-01-01", valid_to="2026-03-01"
        )
        store.add_node("team", {"seats": 6, "site": "south"}, id="blue", valid_from="2026-02-01")
        clock.set("2026-03-20")
        store.amend("blue", {"seats": 7}, valid_from="2026-03-01")
        store.add_node("desk", {"seats": 1}, id="desk", valid_from="2026-01-01")
    return path


def numbers(folder: Path, *words: str) -> list[tuple[object, ...]]:
    found: list[dict[str, object]] = answer("over", folder, *words, *YEAR)  # type: ignore[assignment]
    return [(str(row["at"])[:7], *list(row.values())[1:]) for row in found]


def test_counts_and_sums_at_each_step(folder: Path) -> None:
    assert [("2026-01", 1), ("2026-02", 2), ("2026-03", 1)] == numbers(folder, "count", "--kind", "team")
    seats = ("--kind", "team", "--field", "seats")
    assert [("2026-01", 4), ("2026-02", 10), ("2026-03", 7)] == numbers(folder, "sum", *seats)
    assert [("2026-01", 4), ("2026-02", 10), ("2026-03", 6)] == numbers(
        folder, "sum", *seats, "--tx", "2026-03-15"
    )
    assert [
        ("2026-01", "north", 4),
        ("2026-02", "north", 4),
        ("2026-02", "south", 6),
        ("2026-03", "south", 7),
    ] == numbers(folder, "max", *seats, "--by", "site")


def test_how_belief_grew(folder: Path) -> None:
    words = "sum --kind team --field seats --axis tx --valid 2026-03-05 --since 2026-03-05 --until 2026-03-26".split()
    found = answer("over", folder, *words, "--step", "7 days")

    assert [("2026-03-12", 6), ("2026-03-19", 6)] == [
        (row["at"][:10], row["sum(seats)"]) for row in found if row["at"] < "2026-03-20"
    ]
    later = answer("over", folder, "changes", "--axis", "tx", "--since", "2026-03-19", "--step", "2 days")
    assert {("blue", "changed"), ("desk", "added")} == {(row["id"], row["change"]) for row in later}


def test_first_last_and_changes(folder: Path) -> None:
    def ends(what: str) -> dict[str, object]:
        rows = answer("over", folder, what, "--kind", "team", "--field", "seats", *YEAR)
        return {row["id"]: row["value"] for row in rows}

    assert ({"red": 4, "blue": 6}, {"red": 4, "blue": 7}) == (ends("first"), ends("last"))
    changed = answer("over", folder, "changes", "--field", "seats", *YEAR)
    assert [("blue", "6", "7")] == [
        (row["id"], row["old"], row["new"]) for row in changed if row["change"] == "changed"
    ]


@pytest.mark.parametrize("what", ["first", "last", "changes"])
def test_a_field_that_no_content_has_ever_had_is_refused(folder: Path, what: str) -> None:
    said = " ".join(refused("over", folder, what, "--field", "seat", *YEAR).split())
    assert "no content of a node has ever had the field 'seat'. Nearest: 'seats'." in said
    assert [] == answer("over", folder, "changes", "--field", "text", *YEAR)


def test_the_table_and_the_file(folder: Path, tmp_path: Path) -> None:
    assert "count(*)" in run("over", folder, "count", *YEAR)
    assert "3 rows in" in run("over", folder, "count", *YEAR, "-o", tmp_path / "counts.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "counts.parquet")
    assert ([2, 3, 2], "timestamp[us, tz=UTC]") == (table["count(*)"].to_pylist(), str(table["at"].type))


def test_what_is_refused(folder: Path) -> None:
    assert "Give field" in refused("over", folder, "sum", *YEAR)
    assert "it takes no by" in refused("over", folder, "last", "--by", "site", *YEAR)
    assert "the step 'soon' is none" in refused("over", folder, "count", "--step", "soon")
    assert "count" in refused("over", folder, "median", *YEAR, code=2)
    assert "'tax'" in refused("over", folder, "sum", "--field", "tax", *YEAR)
