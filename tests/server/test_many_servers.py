"""Several servers over one store in PostgreSQL: any takes writes, and what one was told the others tell."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import InvalidError
from graphstore.cli.serve_commands import _folder_of
from tests.support.served import serve_in_process

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("starts servers of its own")]


@pytest.fixture
def address(servers: Any) -> str:
    return str(servers.url(uuid.uuid4().hex))


def within(seconds: float, true: Any) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_any_of_two_servers_takes_writes_and_both_answer_alike(address, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    with (
        serve_in_process(f"{address}&cache={folders[0]}") as (_, first),
        serve_in_process(f"{address}&cache={folders[1]}") as (_, second),
        graphstore.open(first, token=(folders[0] / "token").read_text().strip()) as one,
        graphstore.open(second, token=(folders[1] / "token").read_text().strip()) as two,
    ):
        stores = [one, two]

        def write(at: int) -> None:
            for number in range(60):
                stores[at].add_node("fact", {"n": number}, id=f"{at}-{number}")

        threads = [threading.Thread(target=write, args=(at,)) for at in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        within(10, lambda: 120 == one.stats()["nodes"] == two.stats()["nodes"])
        assert list(one.changes()) == list(two.changes())
        assert one.verify().ok and two.verify().ok


def test_who_follows_one_server_hears_what_was_written_at_another(address, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    heard: list[str] = []
    with (
        serve_in_process(f"{address}&cache={folders[0]}") as (_, first),
        serve_in_process(f"{address}&cache={folders[1]}") as (_, second),
        graphstore.open(second, token=(folders[1] / "token").read_text().strip()) as two,
    ):
        token = (folders[0] / "token").read_text().strip()
        asked = urllib.request.Request(
            f"{first}/changes", headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        )

        def listen() -> None:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                for line in answer:
                    if line.startswith(b"data:"):
                        heard.append(str(json.loads(line[5:])))
                        if "told" in heard[-1]:
                            return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        time.sleep(0.5)
        two.add_node("fact", {"n": 1}, id="told")

        listening.join(10)
        assert any("told" in one for one in heard)


def test_a_copy_is_not_opened_as_a_store_and_a_store_is_no_copy(address, tmp_path):
    copy, own = tmp_path / "copy", tmp_path / "own.gs"
    with graphstore.open(f"{address}&cache={copy}") as store:
        store.add_node("fact", {"n": 1}, id="one")
    with graphstore.open(own) as store:
        store.add_node("fact", {"n": 1}, id="mine")

    with pytest.raises(InvalidError, match="is a copy of postgresql://"):
        graphstore.open(copy)
    with pytest.raises(InvalidError, match="no copy"):
        graphstore.open(f"{address}&cache={own}")

    with graphstore.open(own, read_only=True) as store:
        assert {"n": 1} == store.node("mine").content


def test_a_server_without_a_folder_of_its_own_is_refused(address):
    with pytest.raises(InvalidError, match="&cache=FOLDER"):
        _folder_of(Path(address))
