"""A model behind an address compresses what waits: asked over HTTP of a real server, in process and by `graphstore serve`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from datetime import timedelta

import pytest

import graphstore
from graphstore import observer
from graphstore.chat_client import ChatClient
from graphstore.context.compressor import ChatCompressor
from graphstore.context.observer import Observer
from tests.support.chat_service import chat_service
from tests.support.served import Wire, serve_in_process

pytestmark = pytest.mark.in_process("its service is a server of the test")


def notices(asked):
    """What a model does that does as it is told: of each launch date an item, which replaces the one known."""
    words = asked["messages"][-1]["content"]
    known, _, new = words.partition("New messages:")
    if "New messages" not in words:
        first, *_ = re.findall(r"^(\w{16}) ", words, re.MULTILINE)
        return f"- [HIGH] [SUPERSEDES {first}] thought over"
    old = re.findall(r"^(\w{16}) .*launch", known, re.MULTILINE)
    dates = re.findall(r"launch is on (\d+ March)", new)
    if not dates:
        return "NONE"
    mark = f"[SUPERSEDES {', '.join(old)}] " if old else ""
    return f"Sure! Here they are:\n\n## 2026-02-01\n- [HIGH] {mark}the launch is on {dates[-1]}\n\nAnything else?"


@pytest.fixture
def service():
    with chat_service(notices) as running:
        yield running


@pytest.fixture
def watching(store, service):
    compressor = ChatCompressor(ChatClient(service.url, "small", tries=1))
    return Observer(store, compressor, reflect=compressor.reflect, threshold=2)


def noticed(store):
    return [node.text for node in observer.observations(store, "ada")]


def say(watching, *texts):
    done = None
    for text in texts:
        done = watching.enqueue(text, user="ada", thread="t1", sender="ada")
    return done


def test_a_model_notices_and_replaces_what_it_noticed(store, watching, clock):
    say(watching, "hello", "the launch is on 12 March")
    assert ["the launch is on 12 March"] == noticed(store)
    clock.move(days=1)
    done = say(watching, "listen", "no, the launch is on 13 March")

    assert (["the launch is on 13 March"], 1, ()) == (noticed(store), len(done.superseded), done.warnings)


def test_nothing_worth_it_closes_the_queue_and_notices_nothing(store, watching):
    assert (2, ()) == ((done := say(watching, "hello", "how are you?")).messages, done.observations)
    assert [] == observer.queue(store, "ada", "t1")


@pytest.mark.parametrize("said", ["I cannot help with that.", "", "- you said hello"])
def test_an_answer_without_an_observation_is_an_error_and_the_messages_wait(store, service, watching, said):
    service.answer = lambda asked: said
    assert "gave no observation" in say(watching, "hello", "there").error
    assert (2, []) == (len(observer.queue(store, "ada", "t1")), noticed(store))


def test_a_service_that_is_down_is_tried_again_by_the_next_tick(store, service, watching):
    service.statuses = [500]
    assert "answered 500" in say(watching, "hello", "the launch is on 1 March").error
    assert [None] == [done.error for done in watching.tick()]
    assert ["the launch is on 1 March"] == noticed(store)


def test_very_many_messages_are_asked_about_in_pieces(store, service, watching):
    wide = Observer(store, watching._compress, threshold=100)
    done = say(wide, *(f"the launch is on {number} March{' or so' * 100}" for number in range(1, 101)))

    assert (100, 100) == (
        done.messages,
        sum(asked["messages"][-1]["content"].count("] ada:") for asked in service.asked),
    )
    assert len(service.asked) > 2
    assert all(len(asked["messages"][-1]["content"]) < 25_000 for asked in service.asked)


def test_a_reflection_is_asked_of_the_model_too(store, service, watching, clock):
    say(watching, "a", "the launch is on 1 March")
    service.answer = lambda asked: "- [LOW] tea at noon"
    say(watching, "b", "tea at noon")
    service.answer = notices
    clock.move(minutes=1)
    watching.tick()
    assert "thought over" in noticed(store)
    assert 2 == len(noticed(store))


# ---------------------------------------------------------------- a server


def test_a_server_has_a_service_compress_what_waits(tmp_path, service, monkeypatch):
    folder = tmp_path / "m.gs"
    graphstore.open(folder).close()
    monkeypatch.setenv("GRAPHSTORE_LLM_KEY", "k1")
    options = ("--compress-url", service.url, "--compress-model", "small")
    with graphstore.open(folder) as store:
        Observer(store).enqueue("the launch is on 12 March", user="ada", end=True)
    with serve_in_process(folder, *options) as (_, url):
        wire = Wire(url, (folder / "token").read_text().strip())
        until = time.monotonic() + 30
        while (
            not (found := wire.post("/observer/observations", {"user": "ada"})) and time.monotonic() < until
        ):
            time.sleep(0.05)

    assert ["the launch is on 12 March"] == [node["text"] for node in found]
    assert ({"Bearer k1"}, {"small"}) == (set(service.keys), {asked["model"] for asked in service.asked})


def test_a_server_has_a_function_compress_what_waits(tmp_path, monkeypatch):
    folder = tmp_path / "m.gs"
    (tmp_path / "mine.py").write_text(
        "def compress(messages, observations):\n    return f'- [LOW] {len(messages)} said, {len(observations)} known'\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with graphstore.open(folder) as store:
        Observer(store).enqueue("hello", user="ada", end=True)
    with serve_in_process(folder, "--compress", "mine:compress") as (_, url):
        wire = Wire(url, (folder / "token").read_text().strip())
        until = time.monotonic() + 30
        while (
            not (found := wire.post("/observer/observations", {"user": "ada"})) and time.monotonic() < until
        ):
            time.sleep(0.05)

    assert ["1 said, 0 known"] == [node["text"] for node in found]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--compress-url", "http://127.0.0.1:1/v1"), "Give --compress-url and --compress-model"),
        (("--compress-model", "small"), "Give --compress-url and --compress-model"),
        (("--compress", "os:getcwd", "--compress-model", "small"), "Give one of them"),
        (("--compress", "no.such:thing"), "names no function"),
        (("--compress-url", "nonsense", "--compress-model", "small"), "is no address of a service"),
    ],
)
def test_a_compressor_that_cannot_be_is_refused(tmp_path, options, why):
    command = [sys.executable, "-m", "graphstore", "serve", str(tmp_path / "m.gs"), "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert 0 != done.returncode
    assert why in re.sub(r"[\s│]+", " ", done.stderr)


def test_what_waited_for_long_is_compressed_after_a_restart(tmp_path, service, clock):
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        Observer(store).enqueue("the launch is on 12 March", user="ada")
    clock.move(days=2)
    with graphstore.open(tmp_path / "m.gs", clock=clock) as store:
        done = Observer(
            store, ChatCompressor(ChatClient(service.url, "small")), idle=timedelta(days=9)
        ).tick()
        assert [1] == [each.messages for each in done]
