"""The example notebook runs from top to bottom, and shows what it says it shows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[1]
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
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What each code cell shows, by its name and by kind."""
    place = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        environment.setenv("IPYTHONDIR", str(place / "ipython"))
        environment.setenv("TMPDIR", str(place))
        client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(place)}})
        client.execute()
    return {cell.id: _data(cell) for cell in notebook.cells if cell.cell_type == "code"}


def _data(cell: Any) -> dict[str, str]:
    data: dict[str, str] = {}
    for output in cell.outputs:
        assert output.output_type == "execute_result", f"{cell.id} printed or warned: {output}"
        data.update(output.data)
    return data


def test_it_is_stored_without_outputs():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]

    assert [] == [cell.id for cell in cells if cell.outputs or cell.execution_count]


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
