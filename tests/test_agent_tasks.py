"""Do agents get right answers? Scripted tasks against the tools: in memory, over a real process' stdin and stdout, and over HTTP."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_tasks import READ, WRITTEN, Answer, Task
from agent_world import NOW, World, told_to
from anyio.from_thread import BlockingPortal, start_blocking_portal
from conftest import Clock
from graphstore.mcp import server
from mcp import Client
from mcp_types import Implementation

import graphstore

SECONDS = 60


class Caller:
    """An agent that does what its task says: it calls tools, and goes through pages."""

    def __init__(self, portal: BlockingPortal, client: Client, world: World, clock: Clock, name: str) -> None:
        self.world, self.clock, self.name = world, clock, name
        self._portal, self._client = portal, client

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self._portal.call(
            partial(self._client.call_tool, tool, arguments, read_timeout_seconds=SECONDS)
        )

    def ask(self, tool: str, **arguments: Any) -> Answer:
        done = self.call(tool, arguments)
        assert not done.is_error, done.content[0].text
        assert done.content[0].text.strip()
        answer: Answer = done.structured_content
        return answer

    def refused(self, tool: str, **arguments: Any) -> str:
        done = self.call(tool, arguments)
        assert done.is_error, done.structured_content
        assert "Traceback" not in done.content[0].text
        return str(done.content[0].text)

    def pages(self, tool: str, **arguments: Any) -> Answer:
        page = self.ask(tool, **arguments)
        whole, pages = dict(page), 1
        while page.get("more"):
            left = page["left_out"]
            page = self.ask(tool, **arguments, cursor=page["more"])
            assert page["at"] == whole["at"], "all pages are of one view"
            assert page["left_out"] < left, "each page goes on"
            for name, value in page.items():
                if isinstance(value, list):
                    whole[name] = [*whole[name], *value]
            pages += 1
        return {**whole, "pages": pages}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The world in a folder, closed: `world.path` is to be copied, or read."""
    made = told_to(tmp_path_factory.mktemp("world") / "memory.gs")
    made.store.close()
    return made


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """A thread with an event loop in which clients live."""
    with start_blocking_portal() as opened:
        yield opened


@contextmanager
def in_memory(portal: BlockingPortal, world: World, path: Path) -> Iterator[Caller]:
    """A client beside the server, on a store whose clock is moved by hand."""
    clock, name = Clock(NOW), "scribe"
    clock.move(hours=1)
    with graphstore.open(path, clock=clock) as store:
        client = Client(server(store), client_info=Implementation(name=name, version="1"))
        with portal.wrap_async_context_manager(client):
            yield Caller(portal, client, world, clock, name)


@pytest.fixture(scope="module")
def reader(portal: BlockingPortal, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    copy = shutil.copytree(world.path, tmp_path_factory.mktemp("read") / "memory.gs")
    with in_memory(portal, world, copy) as caller:
        yield caller


@pytest.fixture
def writer(portal: BlockingPortal, world: World, tmp_path: Path) -> Iterator[Caller]:
    with in_memory(portal, world, shutil.copytree(world.path, tmp_path / "memory.gs")) as caller:
        yield caller


def test_there_are_enough_tasks() -> None:
    assert len(READ) + len(WRITTEN) >= 50


@pytest.mark.parametrize("task", READ, ids=lambda task: task.name)
def test_task(reader: Caller, task: Task) -> None:
    task.play(reader)


@pytest.mark.parametrize("task", WRITTEN, ids=lambda task: task.name)
def test_task_that_writes(writer: Caller, task: Task) -> None:
    task.play(writer)
