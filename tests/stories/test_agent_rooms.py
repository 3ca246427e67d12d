"""Agents' sessions and users' memory, and several agents at once: asked in memory, over a real process' stdin and stdout, and over HTTP."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

import graphstore
from graphstore.mcp import server
from tests.stories.test_agent_tasks import ENV, SECONDS, portal
from tests.support.agent_questions import QUESTIONS as FIRST
from tests.support.agent_rooms import ASKED, QUESTIONS, TASKS, Answer, Task, told_to

__all__ = ["portal"]

ALL = [*ASKED, *TASKS]
SETS = ["--tools", "all"]


class Caller:
    """An agent of a name at a server of the protocol; others may come beside it."""

    def __init__(self, portal: BlockingPortal, where: Any, name: str = "scribe") -> None:
        self._portal, self._where, self.name = portal, where, name
        self._client = Client(where, client_info=Implementation(name=name, version="1"))

    @contextmanager
    def here(self) -> Iterator[Caller]:
        with self._portal.wrap_async_context_manager(self._client):
            yield self

    def other(self, name: str) -> Any:
        return Caller(self._portal, self._where, name).here()

    def ask(self, tool: str, **arguments: Any) -> Answer:
        done = self._call(tool, arguments)
        assert not done.is_error, done.content[0].text
        assert done.content[0].text.strip()
        answer: Answer = done.structured_content
        return answer

    def refused(self, tool: str, **arguments: Any) -> str:
        done = self._call(tool, arguments)
        assert done.is_error, done.structured_content
        return str(done.content[0].text)

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self._portal.call(
            partial(self._client.call_tool, tool, arguments, read_timeout_seconds=SECONDS)
        )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rooms")
    told_to(folder)
    return folder / "memory.gs"


@pytest.fixture(scope="module")
def beside(portal: BlockingPortal, told: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    copy = shutil.copytree(told, tmp_path_factory.mktemp("beside") / "memory.gs")
    with graphstore.open(copy) as store, Caller(portal, server(store, tools=["all"])).here() as caller:
        yield caller


@pytest.fixture(scope="module")
def over_stdio(
    portal: BlockingPortal, told: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Caller]:
    copy = shutil.copytree(told, tmp_path_factory.mktemp("stdio") / "memory.gs")
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "graphstore", "mcp", str(copy), *SETS], env=ENV
    )
    with Caller(portal, started).here() as caller:
        yield caller


@pytest.fixture(scope="module")
def over_http(
    portal: BlockingPortal, told: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Caller]:
    copy = shutil.copytree(told, tmp_path_factory.mktemp("http") / "memory.gs")
    command = [sys.executable, "-m", "graphstore", "mcp", str(copy), *SETS, "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, env=ENV, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            with Caller(portal, process.stderr.readline().split()[-1]).here() as caller:
                yield caller
        finally:
            process.terminate()


def name(task: Task) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in task.question.lower()).split())


def test_there_are_enough_of_them() -> None:
    assert len(QUESTIONS) + len(FIRST) >= 60
    assert len(TASKS) >= 40
    assert len({name(task) for task in ALL}) == len(ALL)


@pytest.mark.parametrize("task", ALL, ids=name)
def test_task(beside: Caller, task: Task) -> None:
    task.play(beside)


@pytest.mark.by_hand
@pytest.mark.parametrize("task", ALL, ids=name)
def test_task_over_stdio(over_stdio: Caller, task: Task) -> None:
    task.play(over_stdio)


@pytest.mark.by_hand
@pytest.mark.parametrize("task", ALL, ids=name)
def test_task_over_http(over_http: Caller, task: Task) -> None:
    task.play(over_http)
