"""Delta tables in a bucket: the same as in a folder, on a real server that speaks S3. What is wrong with the address is said soon."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, EngineError, GraphStore
from graphstore.interchange import lake, sql
from graphstore.store import change_feed
from tests.cli.test_command_line import answer, refused
from tests.conftest import Clock
from tests.interchange.test_lake import DAYS, rows, same
from tests.support import s3
from tests.support.cutting_proxy import CuttingProxy
from tests.support.postgres import free_port
from tests.support.world import fill_further

pytestmark = [pytest.mark.rest, pytest.mark.in_process("reads the rows of a store of its own")]
SETTINGS = {
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "secret",
}


def command(*words: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "graphstore", *map(str, words)], text=True, **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[s3.S3Server]:
    if not s3.THERE:
        pytest.skip("needs moto's server: make .venv/s3")
    with s3.s3_server(tmp_path_factory.mktemp("s3")) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def unanswered(tmp_path_factory) -> Iterator[list[tuple[subprocess.Popen[str], Path]]]:
    """Commands that wait while the other tests run, and what they say: at one port nobody listens, at the other nobody answers who connects."""
    place = tmp_path_factory.mktemp("unanswered")
    with graphstore.open(place / "store.gs") as store:
        store.add_node("fact", {"n": 1})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        running = []
        for port in (free_port(), silent.getsockname()[1]):
            said = place / str(port)
            environment = {**os.environ, **SETTINGS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
            with said.open("wb") as err:
                words = ("lake", "follow", place / "store.gs", "s3://bucket/team")
                running.append((command(*words, env=environment, stderr=err), said))
        yield running
        for process, _ in running:
            process.kill()


@pytest.fixture(autouse=True)
def settings(monkeypatch) -> None:
    """Those of an object store that nobody needs a right for, but where it is."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(server, monkeypatch) -> str:
    """The name of an empty one, which the settings lead to."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    return str(server.bucket())


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "store.gs"
    clock = Clock()
    with graphstore.open(path, clock=clock) as store:
        fill_further(store, clock)
    return path


@pytest.fixture
def store(folder) -> Iterator[GraphStore]:
    with graphstore.open(folder, clock=Clock("2026-06-01")) as opened:
        yield opened


def test_a_follower_killed_between_any_writes_loses_nothing_and_doubles_nothing(
    server, bucket, folder, store, tmp_path
):
    uri = f"s3://{bucket}/team"
    assert answer("export", folder, uri, "--format", "delta")["rows_and_closings"] > 0

    words = ("lake", "follow", folder, uri, "--every", "0.01", "--json")
    number = 0
    for writes in (1, 3, 8, 15):  # files and commits of several transactions
        before = server.written(bucket)
        follower = command(*words, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while server.written(bucket) < before + writes:
            assert follower.poll() is None and time.monotonic() < until
            store.add_node("fact", {"n": number}, id=f"told-{number}")
            store.revise(f"told-{number}", {"n": -number})
            number += 1
            time.sleep(0.05)
        follower.kill()
        assert -signal.SIGKILL == follower.wait(20)

    follower = command(*words, stdout=subprocess.PIPE)
    try:
        store.add_node("fact", {"last": True}, id="last")
        assert follower.stdout is not None
        while json.loads(follower.stdout.readline())["tx"] != str(store.stats()["last_tx"]):
            pass
    finally:
        follower.terminate()
        assert 0 == follower.wait(20)
    asked = "SELECT count(*), count(DISTINCT id) FROM nodes WHERE id LIKE 'told-%'"
    assert [(number, number)] == rows(uri, asked)
    # looked at in a copy: in the bucket each of the questions is a hundred requests
    for name, content in server.objects(bucket).items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)
    same(store, tmp_path / "copy" / "team", DAYS[3:])
    assert 0 == answer("export", folder, uri, "--format", "delta")["rows_and_closings"]


def test_a_follower_goes_on_when_the_object_store_comes_back(
    server, bucket, folder, store, tmp_path, monkeypatch
):
    """Away between looks and in the middle of a commit; and a commit is kept whose answer is lost, so that it is sent again."""
    proxy = CuttingProxy(server.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    soon = [
        f"--storage={each}"
        for each in ("timeout=5s", "connect_timeout=1s", "retry_timeout=1s", "max_retries=2")
    ]
    uri, said = f"s3://{bucket}/team", tmp_path / "said"
    with said.open("wb") as err:
        follower = command(
            "lake",
            "follow",
            folder,
            uri,
            "--every",
            "0.05",
            "--json",
            *soon,
            stdout=subprocess.PIPE,
            stderr=err,
        )
    assert follower.stdout is not None

    def followed() -> None:
        assert follower.stdout is not None
        for line in follower.stdout:
            if json.loads(line)["tx"] == str(store.stats()["last_tx"]):
                return
        raise AssertionError(said.read_text())

    try:
        followed()
        proxy.cut(f"PUT /{bucket}/team/versions/_delta_log/".encode(), "after")
        store.add_node("fact", {"n": 1}, id="told-1")
        followed()
        assert 1 == proxy.cuts and "" == said.read_text(), "the commit was found there"
        for number, when in ((2, "middle"), (3, "before"), (4, "after")):
            proxy.close_after_cut = True
            proxy.cut(f"PUT /{bucket}/team/versions/".encode(), when)
            store.add_node("fact", {"n": number}, id=f"told-{number}")
            until = time.monotonic() + 60
            while said.read_text().count("It is tried again.") < number - 1:
                assert follower.poll() is None and time.monotonic() < until, said.read_text()
                time.sleep(0.05)
            proxy.close()
            proxy = CuttingProxy(server.port, proxy.port)
            followed()
        assert 3 == said.read_text().count("It goes on, after")
    finally:
        follower.terminate()
        assert 0 == follower.wait(20), said.read_text()
        proxy.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    asked = "SELECT count(*), count(DISTINCT id) FROM nodes WHERE id LIKE 'told-%'"
    assert [(4, 4)] == rows(uri, asked)
    assert [(4, 4)] == rows(
        uri, "SELECT count(*), count(DISTINCT node_id) FROM versions WHERE node_id LIKE 'told-%'"
    )
    assert 0 == answer("export", folder, uri, "--format", "delta")["rows_and_closings"]


def test_a_follower_whose_bucket_is_gone_ends(server, bucket, folder, store, tmp_path):
    uri = f"s3://{bucket}/team"
    follower = command(
        "lake", "follow", folder, uri, "--every", "0.05", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert follower.stdout is not None
    follower.stdout.readline()
    server.remove(bucket)

    store.add_node("fact", {"n": 1}, id="one")

    _, said = follower.communicate(timeout=60)
    assert 1 == follower.returncode and "tried again" not in said, said
    assert "bucket" in said.lower() or "not found" in said.lower(), said


def test_of_many_that_append_the_same_at_once_one_does(server, bucket, store):
    """Until two were so close that the object store refused one: its writes are conditional."""
    uri = f"s3://{bucket}/team"
    lake.export_delta(store, uri)
    refused_there = f'"PUT /{bucket}/team/nodes/_delta_log/'
    for number in range(20):
        feeds = [change_feed.ChangeFeed(store) for _ in range(4)]
        lakes = [lake.Lake(uri) for _ in feeds]
        for each, feed in zip(lakes, feeds, strict=True):
            assert (0, 0) == each.write_new(feed)[:2]
        store.add_node("fact", {"n": number}, id=f"at-once-{number}")
        with ThreadPoolExecutor(len(lakes)) as pool:
            done = [pool.submit(each.write_new, feed) for each, feed in zip(lakes, feeds, strict=True)]
        refusals = [each.exception() for each in done if each.exception() is not None]
        assert all(isinstance(each, ConflictError) for each in refusals), refusals
        lake.export_delta(store, uri)
        asked = "SELECT count(*), count(DISTINCT id) FROM nodes WHERE id LIKE 'at-once-%'"
        assert [(number + 1, number + 1)] == rows(uri, asked)
        if re.search(f'{refused_there}\\S+ HTTP/1.1" 412', server.log()):
            break
    else:
        pytest.fail("no write was ever refused")


def test_what_is_erased_is_in_no_object(server, bucket, store):
    store.add_node("fact", {"secret": "kiwi-7731"}, id="gone", reason="because kiwi-7731")
    lake.export_delta(store, f"s3://{bucket}/team")
    before = server.objects(bucket)
    store.erase("gone", reason="asked for")
    lake.export_delta(store, f"s3://{bucket}/team")
    after = server.objects(bucket)

    asked = "SELECT * FROM versions WHERE node_id = 'gone'"
    assert rows(f"s3://{bucket}/team", asked) == sql.ask(store, asked).tuples()
    gone = {name for name in before if name.endswith(".parquet")} - after.keys()
    assert {"versions", "operations"} == {name.split("/")[1] for name in gone}
    assert [] == [name for name, content in after.items() if b"kiwi" in content]


def test_a_bucket_that_is_not_there_is_named(server, bucket, folder):
    said = refused("export", folder, "s3://nobody-has/team", "--format", "delta")
    assert "s3://nobody-has/team/nodes cannot be written or read" in said
    assert "There is no such bucket: make it first, or name another." in said
    assert "There is no such bucket" in refused("lake", "follow", folder, "s3://nobody-has/team")


def test_http_is_to_be_allowed(folder, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    assert "AWS_ALLOW_HTTP=true" in refused("export", folder, "s3://bucket/team", "--format", "delta")


def test_settings_are_of_the_object_store_alone(folder, tmp_path):
    words = ("export", folder, tmp_path / "dump", "--storage", "AWS_REGION=eu-west-1")
    assert "only --format delta" in refused(*words, code=2)


def test_an_endpoint_where_nobody_answers_is_said_soon(unanswered):
    for process, said in unanswered:
        assert 1 == process.wait(100)  # the library's own settings: three minutes
        text = said.read_text(encoding="utf-8")
        assert "No answer came: is AWS_ENDPOINT_URL right, and the object store up?" in text
        assert "retry_timeout ↳ 15s" in text


def test_how_long_it_is_tried_can_be_set(folder, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_TIMEOUT", "100ms")
        with graphstore.open(folder, read_only=True) as store, pytest.raises(EngineError) as caught:
            lake.export_delta(store, "s3://bucket/team", options={"max_retries": "1"})
    assert "after 1 retries, max_retries ↳ 1, retry_timeout ↳ 15s" in str(caught.value)
