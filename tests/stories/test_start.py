"""What a process imports before its first answer: each module costs a short command time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphstore

PYDANTIC = {
    "annotated_types",
    "orjson",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
TYPER = {"annotated_doc", "rich", "shellingham", "typer"}
READ_MODULES, GET_MODULES = 66, 95
"""Modules of ours that may run: if a read needs one more, ask first whether another one can wait."""

BEFORE = "import sys\nbefore = set(sys.modules)\n"
LISTED = """
import json
import sys
from types import ModuleType

import graphstore
from pydantic import BaseModel

def classes(of):
    return [one for each in of.__subclasses__() for one in (each, *classes(each))]

of_ours = [name for name, module in sys.modules.items() if name.startswith("graphstore") and type(module) is ModuleType]
files = {name: str(getattr(module, "__file__", "")) for name, module in list(sys.modules.items())}
others = {name.partition(".")[0] for name, file in files.items() if "site-packages" in file} - before
built = [one.__name__ for one in classes(BaseModel) if one.__pydantic_complete__ and one.model_fields]
print(json.dumps({"ours": of_ours, "others": sorted(others), "built": built}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("start") / "team.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "tea at four"}, id="tea")
    return place


def imported(code: str, *arguments: object) -> dict[str, Any]:
    """What is imported after the code ran, in a process of its own."""
    command = [sys.executable, "-c", BEFORE + code + LISTED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_read_of_one_thing_runs_few_modules_and_builds_no_model(folder):
    read = "import graphstore, sys\ngraphstore.open(sys.argv[1]).versions('tea')[0].content\n"
    found = imported(read, folder)

    assert set(found["others"]) <= PYDANTIC
    assert [] == found["built"]
    assert len(found["ours"]) <= READ_MODULES, sorted(found["ours"])


def test_a_command_that_reads_one_thing_imports_no_engine_and_no_other_command(folder):
    get = "import sys\nfrom graphstore.cli.command_line import app\napp(['get', *sys.argv[1:]], standalone_mode=False)\n"
    found = imported(get, folder, "tea")

    assert set(found["others"]) <= PYDANTIC | TYPER
    assert [] == found["built"]
    assert len(found["ours"]) <= GET_MODULES, sorted(found["ours"])


def test_the_server_of_agents_makes_no_tool_and_no_http_before_one_is_asked_for(folder):
    pytest.importorskip("mcp")
    served = "import graphstore, sys\nfrom graphstore.mcp.stdio import server\nserver(graphstore.open(sys.argv[1]))\n"
    found = imported(served, folder)

    assert {"kuzu", "numpy", "pyarrow", "networkx", "pandas"}.isdisjoint(found["others"])
    assert not any(name.endswith("_tools") for name in found["ours"])
    late = {"graphstore.mcp.answers", "graphstore.mcp.transport", "graphstore.graph.workers"}
    assert late.isdisjoint(found["ours"])
