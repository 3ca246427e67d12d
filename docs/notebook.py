"""The example notebook with its outputs: `make notebook` runs it and writes it back, and a test fails when it is out of date."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "causal_chains.ipynb"


def executed() -> Any:
    """The notebook after a run from top to bottom, without what differs from run to run."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as place:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "IPYTHONDIR": str(Path(place) / "ipython"),
        }
        client = NotebookClient(
            notebook, timeout=120, record_timing=False, resources={"metadata": {"path": place}}
        )
        client.execute(env=environment)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
