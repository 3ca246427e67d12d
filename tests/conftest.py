"""What tests share: a clock that moves when told, stores on it, and the real data where it is there."""

from __future__ import annotations

import gc
import os
import signal
import uuid
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import graphstore
from graphstore import GraphStore, events
from tests.support import doors, durations
from tests.support.seeds import examples
from tests.support.wire import Wire

if TYPE_CHECKING:
    from tests.support.postgres import Pair, Server

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a job in the background: what tests start is to hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["COLUMNS"] = "120"  # what commands print is folded alike at every terminal
settings.register_profile(  # a busy machine makes no test fail
    "unhurried", settings.default, deadline=None, max_examples=examples(100)
)
settings.load_profile("unhurried")
pytest.register_assert_rewrite("tests.support.agent_tasks")  # so that a task that fails says what it got

IN_A_FOLDER = os.environ.get("GRAPHSTORE_HOME") == "folder"
IN_POSTGRES = os.environ.get("GRAPHSTORE_HOME") == "postgres"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-durations", action="store_true", help=f"measure the tests, and write {durations.FILE.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Stopwatch())


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Through a server those tests run that are given a store; some cannot hold: see `doors.py`. Nor can some where others may write the store: take the
    mark off when they hold."""
    durations.mark_slow(items)
    if doors.THROUGH_A_SERVER:
        items[:] = [item for item in items if {"store", "disk_store"} & {*getattr(item, "fixturenames", ())}]
        doors.mark(items)
    for item in items if IN_A_FOLDER or IN_POSTGRES else ():
        for mark in item.iter_markers():
            if mark.name == "in_memory":
                item.add_marker(pytest.mark.xfail(reason=mark.args[0], strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: garbage is looked for afterwards, which halves the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # and at once unfrozen: all of it counts as old
        gc.unfreeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What outlived a look for garbage here is left alone by the five that pytest has at its end."""
    gc.collect()
    gc.freeze()


def shared_data(name: str) -> Path:
    """A file or folder of the real data, by its path below `shared/data`. Skips the test where there is none."""
    found = SHARED / name
    if not found.exists():
        pytest.skip(f"real data {name} is not there (looked in {SHARED})")
    return found


def day(text: str) -> datetime:
    """Midnight UTC of an ISO date."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BOOM = "TypeError: Cannot read property 'name' of undefined at UserProfile.render"
START = day("2026-02-01")


def after(seconds: float) -> datetime:
    """An instant so many seconds after the start of the `clock`."""
    return START + timedelta(seconds=seconds)


class Clock:
    """Stands still until it is moved, so that a test knows every instant the store writes."""

    def __init__(self, now: str | datetime = "2026-02-01") -> None:
        self.now = day(now) if isinstance(now, str) else now

    def __call__(self) -> datetime:
        return self.now

    def set(self, now: str | datetime) -> datetime:
        """Move to a date (midnight UTC) or an instant, backwards too."""
        self.now = day(now) if isinstance(now, str) else now
        return self.now

    def move(self, **by: float) -> datetime:
        """Move by `days=`, `hours=`, `minutes=`, `seconds=` …, as `timedelta` takes them."""
        self.now += timedelta(**by)
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The clock of the `store` and `disk_store` of the same test."""
    return Clock()


def home(request: pytest.FixtureRequest) -> str | None:
    """A new folder, or a new store in PostgreSQL, where the tests run there."""
    if IN_POSTGRES:
        return str(request.getfixturevalue("postgres").url(uuid.uuid4().hex))
    return str(request.getfixturevalue("tmp_path") / "home.gs") if IN_A_FOLDER else None


@pytest.fixture
def store(clock: Clock, request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    """An empty store in memory; in a folder when GRAPHSTORE_HOME=folder, or in PostgreSQL when it is postgres. There all rows are compared with the chain at the end."""
    doors.check(request)
    with graphstore.open(home(request) or ":memory:", clock=clock) as opened, doors.reached(opened) as given:
        yield given
        if (IN_A_FOLDER or IN_POSTGRES) and not opened._trunk._core.closed:
            assert () == opened._trunk.verify().problems


@pytest.fixture
def disk_store(tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[GraphStore]:
    """An empty store in a folder, `disk_store.path`."""
    doors.check(request)
    with (
        graphstore.open(tmp_path / "memory.gs", clock=clock) as opened,
        doors.reached(opened) as given,
    ):
        yield given


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of its own. Skips the test where Debian's packages of it are not there."""
    pytest.importorskip("psycopg")
    from tests.support import postgres

    if not postgres.THERE:
        pytest.skip("needs PostgreSQL's programs: the package postgresql-15")
    with postgres.alone() as made:
        yield made


@pytest.fixture(scope="session")
def servers() -> Iterator[Pair]:
    """A PostgreSQL server and the standby that it waits for. Skips the test where Debian's packages of it are not there."""
    pytest.importorskip("psycopg")
    from tests.support import postgres

    if not postgres.THERE:
        pytest.skip("needs PostgreSQL's programs: the package postgresql-15")
    with postgres.pair(in_memory=True) as made:
        yield made


@pytest.fixture
def recorder(store: GraphStore, clock: Clock) -> events.Recorder:
    """Records into `store`, on a day when every instant of the test has passed."""
    clock.move(days=1)
    return events.Recorder(store)


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    """A connection to the server at the test's `url`."""
    made = Wire(url)
    yield made
    made.close()
