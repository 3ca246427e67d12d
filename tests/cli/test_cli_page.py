"""The page by one command, which opens it at the server of the store, or serves it itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import graphstore
from graphstore.cli import made_up_team
from tests.support.served import serve_in_process

pytestmark = [pytest.mark.in_process("starts servers"), pytest.mark.rest]


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphstore", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60
    )


def rights(address: str) -> str:
    url, _, token = address.strip().partition("/#token=")
    request = urllib.request.Request(f"{url}/rights", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["rights"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with graphstore.open(tmp_path / "m.gs") as store:
        store.add_node("fact", {}, id="n1")
    return tmp_path / "m.gs"


def test_it_joins_the_server_that_is_there(place: Path) -> None:
    with serve_in_process(place) as (_, url):
        printed = run("page", place, "--print").stdout
        assert printed.startswith(f"{url}/#token=")
        assert "write" == rights(printed)
        assert "read" == rights(run("page", place, "--print", "--read-only").stdout)
        browser = place.parent / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > {place.parent / "opened"}\n')
        browser.chmod(0o755)
        said = run("page", place, BROWSER=str(browser))
        assert f"opened {url}/ in the browser\n" == said.stdout
        assert printed == (place.parent / "opened").read_text()


def test_it_serves_the_store_itself_where_no_server_does(place: Path) -> None:
    words = [sys.executable, "-m", "graphstore", "page", str(place), "--print"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        printed = process.stdout.readline()
        assert "write" == rights(printed)
        assert process.pid == json.loads((place / "server.json").read_text())["pid"]
        assert printed == run("page", place, "--print").stdout
        process.terminate()
        rest, errors = process.communicate(timeout=30)
    assert (0, "") == (process.returncode, rest)
    assert errors.startswith(f"serving {place} on {printed.partition('/#')[0]} "), errors
    assert not (place / "server.json").exists()


def test_what_is_no_store_has_no_page(tmp_path: Path) -> None:
    said = run("page", tmp_path / "nothing.gs")
    assert (1, "") == (said.returncode, said.stdout)
    assert "no store" in said.stderr


def test_the_made_up_team_is_written_once(tmp_path: Path) -> None:
    said = run("demo", "--team", "--folder", tmp_path)
    place = tmp_path / "team.gs"
    assert [
        f"Wrote two weeks of a made-up team into {place}.",
        f"Look at it: graphstore page {place}",
    ] == said.stdout.splitlines()
    with graphstore.open(tmp_path / "team.gs", read_only=True) as store:
        assert (1, 1) == (len(store.shaky()), len(store.contradictions()))
        assert store.verify().ok
    assert 1 == run("demo", "--team", "--folder", tmp_path).returncode


def test_the_media_of_the_made_up_team_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with graphstore.open(made_up_team.make(Path("here")), read_only=True) as store:
        media = [each.media_path for each in store.events() if each.media_path is not None]
    monkeypatch.chdir("/")
    assert len(media) > 10 and all(Path(each).is_file() for each in media)
