"""The example notebook runs from top to bottom, and shows what it says it shows."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "causal_chains.ipynb"

PICTURE = {"text/plain", "text/html", "text/markdown"}
KINDS: dict[str, set[str]] = {
    "store": set(),
    "told": PICTURE,
    "late": set(),
    "causes": PICTURE,
    "then": PICTURE,
    "effects": PICTURE,
    "superseded": PICTURE,
    "inspect": PICTURE,
    "compare": PICTURE,
    "table": PICTURE,
    "networkx": {"text/plain"},
    "end": set(),
}


@pytest.fixture(scope="module")
def executed() -> Any:
    """The notebook after a run in an environment of its own."""
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "notebook.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.executed()


@pytest.fixture(scope="module")
def shown(executed: Any) -> dict[str, dict[str, str]]:
    """What each code cell shows, by its name and by kind."""
    return {cell.id: _data(cell) for cell in executed.cells if cell.cell_type == "code"}


def _data(cell: Any) -> dict[str, str]:
    data: dict[str, str] = {}
    for output in cell.outputs:
        assert output.output_type == "execute_result", f"{cell.id} printed or warned: {output}"
        data.update(output.data)
    return data


def test_it_is_stored_with_the_outputs_of_a_run(executed):
    stored = nbformat.read(NOTEBOOK, as_version=4)

    assert executed == stored, "run `make notebook`"


def test_no_output_names_a_place_of_the_machine_that_ran_it():
    text = NOTEBOOK.read_text(encoding="utf-8")

    assert [] == [place for place in (tempfile.gettempdir(), str(Path.home()), str(ROOT)) if place in text]


def test_each_cell_shows_what_it_should(shown):
    assert {name: set(data) for name, data in shown.items()} == KINDS


@pytest.mark.parametrize("name", ["causes", "then", "effects", "superseded", "inspect"])
def test_chains_are_pictures_and_graphs(shown, name):
    assert "<svg" in shown[name]["text/html"]
    assert "```mermaid" in shown[name]["text/markdown"]


def test_late_knowledge_is_in_the_chain_of_now_and_not_of_then(shown):
    assert "pool_8" in shown["causes"]["text/plain"]
    assert "pool_8" not in shown["then"]["text/plain"]


def test_the_table_has_the_reasons(shown):
    assert "60 requests share 8 connections" in shown["table"]["text/html"]
    assert "60 requests share 8 connections" in shown["table"]["text/plain"]


def test_the_graph_has_the_way_from_the_error_to_the_deploy(shown):
    assert "('no_connection', 'caused_by', 'slow'" in shown["networkx"]["text/plain"].replace("\n", " ")
