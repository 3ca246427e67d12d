"""ARCHITECTURE.md keeps its word: the folders and files it names are those of the package, in the order of the floors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_floors import FLOORS, HOUSE, PACKAGE, floor_of, imports

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
QUOTED = re.compile(r"`([^`\n]+)`")


def tables(heading: str) -> list[list[str]]:
    """The cells of each row of the tables below a heading, without their heads."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    heads = {at for at, line in enumerate(lines) if line.startswith("|---")}
    body = [line for at, line in enumerate(lines) if at not in heads and at + 1 not in heads]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


TREE = {row[0].strip("`"): row[1:] for row in tables("The tree")}


def test_it_is_two_pages() -> None:
    assert len(PAGE.encode()) <= 10_000


def test_every_folder_has_a_row_and_the_rows_stand_in_the_order_of_the_floors() -> None:
    floors = [row.removesuffix("/").removesuffix(".py") for row in TREE]
    assert [floor for floor in floors if floor != "cli/shell"] == FLOORS
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")} - {"."}
    assert folders == {row.removesuffix("/") for row in TREE if row.endswith("/")}


@pytest.mark.parametrize("row", TREE)
def test_a_row_of_the_tree_names_files_of_its_folder_and_nothing_that_it_imports(row: str) -> None:
    what, hidden = TREE[row]
    for name in QUOTED.findall(what):
        if name.endswith(".py"):
            assert list((PACKAGE / row).glob(name)), name
    inside = [module for module in HOUSE if module.replace(".", "/").startswith(row.removesuffix(".py"))]
    assert inside
    found = {f"{floor_of(each)}/" for module in inside for each in imports(HOUSE[module]) if each}
    for unknown in QUOTED.findall(hidden) if "all but" not in hidden else ():
        assert (PACKAGE / unknown).exists(), unknown
        assert not [floor for floor in found if floor.startswith(unknown)], unknown


def test_every_file_that_is_named_is_there() -> None:
    outside = PAGE.partition("\n## The tree\n")[0] + PAGE.partition("\n## The way of …\n")[2]
    named = [name for name in QUOTED.findall(outside) if name.endswith(".py")]
    assert [] == [
        name for name in named if not (PACKAGE / name).exists() and not (ROOT / "tests" / name).exists()
    ]
    assert all((ROOT / name).exists() for name in QUOTED.findall(PAGE) if name.startswith("tests/"))


def test_a_lock_and_a_thread_is_where_it_is_looked_for() -> None:
    for name, place, *_ in tables("Locks and threads"):
        text = "".join((PACKAGE / each).read_text(encoding="utf-8") for each in QUOTED.findall(place))
        for word in QUOTED.findall(name):
            assert all(part in text for part in re.findall(r"[\w-]+", word)), word


def test_each_invariant_has_a_test() -> None:
    rows = tables("What always holds")
    numbers = [[int(one) for one in re.findall(r"\d+", row[0])] for row in rows]
    every = [number for first, *last in numbers for number in range(first, (last or [first])[-1] + 1)]
    assert every == list(range(1, 15))
    for row in rows:
        assert QUOTED.findall(row[2])
        assert all((ROOT / "tests" / name).is_file() for name in QUOTED.findall(row[2]))


def test_the_words_are_few() -> None:
    assert len(tables("Words")) <= 25


def test_a_supersession_is_six_files_from_the_method_to_the_disk_in_both_pages() -> None:
    [way] = re.findall(r"^- \*\*a write\*\*(.*?)\n- ", PAGE, re.DOTALL | re.MULTILINE)
    files = [name for name in QUOTED.findall(way) if name.endswith(".py")]
    assert len(files) <= 6
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## In the code\n")[2]
    assert files == [name for name in QUOTED.findall(readme) if name in files]
    needed = (
        "def supersede(",
        "class Supersede(",
        "def supersede(",
        "def stop_believing(",
        "def _commit(",
        "def append(",
    )
    for name, definition in zip(files, needed, strict=True):
        assert definition in (PACKAGE / name).read_text(encoding="utf-8")
