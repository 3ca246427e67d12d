"""Values as text: what is rendered by a class's name is rendered for a class that exists, and every interface prints the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.graph.result import Result
from graphstore.graph.result_files import csv_text, save
from graphstore.show import paragraphs, tables
from graphstore.show.tables import Grid

PACKAGE = Path(graphstore.__file__).parent


@pytest.fixture(scope="module")
def classes() -> set[str]:
    parsed = (ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py"))
    return {each.name for tree in parsed for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}


def test_every_class_that_is_rendered_by_its_name_exists(classes: set[str]) -> None:
    named = {*tables._COLUMNS, *tables._RECORDS, *paragraphs._WRITTEN}

    assert set() == named - classes


@pytest.mark.served
def test_a_long_chain_says_what_it_leaves_out(store: GraphStore) -> None:
    store.add_node("fact", {"says": "root"}, id="root")
    for number in range(5):
        store.add_node("fact", {"says": f"thing {number}"}, id=f"thing{number}", derived_from=["root"])

    blocks = list(paragraphs.paragraphs(store.walk("root"), most=2))
    lines = ["".join(text for text, _ in each.parts) for each in blocks if not isinstance(each, Grid)]

    assert lines[0].startswith("root  ")
    assert 2 == len([each for each in lines if each.startswith("└─ thing")])
    assert "  … and 3 more things" == lines[-1]


def test_rows_of_a_query_are_a_table() -> None:
    (grid,) = paragraphs.paragraphs([{"a": 1, "b": None}, {"a": 2, "b": "x"}])

    assert Grid(["a", "b"], [[1, None], [2, "x"]]) == grid


def test_csv_is_the_same_printed_and_in_a_file(tmp_path: Path) -> None:
    found = Result(("a", "b", "c"), [(True, None, [1, {"x": False}]), ("ü", 1.5, "")])

    save(found, tmp_path / "found.csv")

    assert csv_text(found) == (tmp_path / "found.csv").read_text(encoding="utf-8")
    assert csv_text(found).splitlines() == ["a,b,c", 'true,,"[1,{""x"":false}]"', "ü,1.5,"]


def test_rows_that_cannot_be_parquet_are_refused_in_one_sentence(tmp_path: Path) -> None:
    mixed = Result(("a",), [({},)])

    with pytest.raises(graphstore.InvalidError, match=r"cannot be Parquet .* write \.jsonl"):
        save(mixed, tmp_path / "mixed.parquet")
    assert [] == list(tmp_path.iterdir())


def test_columns_are_aligned_behind_wide_characters() -> None:
    rows = [("名前", "a"), ("x", "b"), ("é", "c")]

    lines = list(tables.aligned(rows, tables.column_widths(rows), "  "))

    assert ["名前  a", "x     b", "é     c"] == lines
    assert ["名前  a", "x  b", "é  c"] == list(tables.aligned(rows, tables.column_widths(rows, 1), "  "))
