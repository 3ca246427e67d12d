"""The tests that LangGraph and the OpenAI Agents SDK publish of their own stores, run on ours in their place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

import graphstore

pytestmark = [pytest.mark.rest, pytest.mark.in_process("runs tests of others in a process of its own")]
TOOLS = ("pytest-asyncio==1.5.0", "pytest-mock==3.17.0")
OF_SQLITE = "corrupt or close or reaps or worker_threads or lock or rolls_back or rollback or cancellation"
"""Tests of what lies in SQLite: its rows, locks and connections."""

LANGGRAPH = """
import graphstore
import langgraph.store.memory
from graphstore.adapters.langgraph import LangGraphStore


class InPlace(LangGraphStore):
    def __init__(self, *, index=None):
        super().__init__(graphstore.open(":memory:"), index=index)


langgraph.store.memory.InMemoryStore = InPlace
"""
AGENTS = """
import agents
import graphstore
from graphstore.adapters.openai_agents import AgentSession

STORES = {}


class InPlace(AgentSession):
    def __init__(self, session_id, db_path=None, **more):
        if db_path not in STORES:
            STORES[db_path] = graphstore.open(":memory:")
        super().__init__(session_id, STORES[db_path], **more)

    def close(self):
        pass


agents.SQLiteSession = InPlace
"""


def published(package: str, folder: Path) -> Path:
    """The tests of the release of a package that is installed, apart from its code."""
    wanted = f"{package}=={version(package)}"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for asked in (
        ["download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), wanted],
        ["install", "--no-deps", "--target", str(folder / "tools"), *TOOLS],
    ):
        subprocess.run([*pip, *asked], check=True, capture_output=True, timeout=300)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        inner = [each for each in packed.getmembers() if "/tests/" in each.name]
        packed.extractall(folder, members=inner, filter="data")
    [tests] = folder.glob("*/tests")
    return tests


def passed(tests: Path, tools: Path, in_place: str, *asked: str) -> int:
    """How many tests pass with ours in the place of theirs. Fails where one of them does."""
    (tests.parent / "in_place.py").write_text(in_place)
    paths = (Path(graphstore.__file__).parents[1], tools, tests.parent)
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "in_place",
        "-p",
        "pytest_asyncio",
        "-p",
        "pytest_mock",
    ]
    how = ["-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures"]
    done = subprocess.run(
        [*run, *how, *asked],
        cwd=tests.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
    [count] = re.findall(r"(\d+) passed", done.stdout)
    return int(count)


def test_langgraph_s_own_of_its_store(tmp_path):
    pytest.importorskip("langgraph.store.memory", reason="the package langgraph-checkpoint is not installed")
    tests = published("langgraph-checkpoint", tmp_path)

    assert passed(tests, tmp_path / "tools", LANGGRAPH, "tests/test_store.py") > 100


def test_the_agents_sdk_s_own_of_its_session(tmp_path):
    pytest.importorskip("agents", reason="the package openai-agents is not installed")
    tests = published("openai-agents", tmp_path)
    asked = ["tests/memory/test_session.py", "tests/memory/test_session_limit.py", "-k", f"not ({OF_SQLITE})"]

    assert passed(tests, tmp_path / "tools", AGENTS, *asked) > 30
