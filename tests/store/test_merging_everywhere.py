"""Merging another store through each door, killed in the middle, and large."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import graphstore
from graphstore import ConflictError
from graphstore.ledger import tokens
from tests.cli.test_command_line import answer, refused, run
from tests.support.served import serve_in_process

pytestmark = [pytest.mark.in_process("merges folders of this machine, and serves them"), pytest.mark.rest]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name, author in (("ours", "ana"), ("theirs", "bo")):
        with graphstore.open(tmp_path / f"{name}.gs", author=author) as store:
            store.add_node("fact", {"says": name}, id=name)
            store.add_node("fact", {"says": f"both, by {author}"}, id="both", valid_from="2026-01-01")
    return tmp_path / "ours.gs", tmp_path / "theirs.gs"


def test_a_client_merges_its_own_store_into_one_that_is_served(folders):
    ours, theirs = folders
    token = tokens.add(ours, "owner", rights="write")
    with serve_in_process(ours) as (_, url), graphstore.open(url, token=token) as store:
        found = store.merge_store(theirs)
        assert not found.merged and ["both"] == [each.id for each in found.conflicts]
        done = store.merge_store(theirs, decide=lambda conflict: "branch")
        assert done.merged and {"theirs"} == {*done.added} and "theirs" == done.branch
        assert ("bo", "both, by bo") == (store.node("both").author, store.node("both").content["says"])
        with graphstore.open(theirs) as other:
            other.add_node("fact", {}, id="later")
            assert ("later",) == store.merge_store(other).added
            assert ("ours",) == other.merge_store(store, decide="trunk").added
        store.export(theirs.with_name("since.bundle"), since=store.last_write)
        assert theirs.with_name("since.bundle").stat().st_size < 600


def test_the_commands_bundle_and_merge(folders, tmp_path):
    ours, theirs = folders
    assert "2 lines" in run("bundle", theirs, tmp_path / "b.bundle")
    assert "not merged: 1 to decide" in run("merge-store", ours, tmp_path / "b.bundle", code=1)
    done = answer("merge-store", ours, tmp_path / "b.bundle", "--decide", "both=trunk", "--reason", "evening")
    assert done["merged"] and ["theirs"] == done["added"] and "b" == done["branch"]
    assert "0 transactions imported" in run("merge-store", ours, theirs)
    since = answer("changes", theirs)[-1]["tx"]
    run("add-node", theirs, "fact", '{"says": "new"}', "--id", "new")
    run("bundle", theirs, tmp_path / "c.bundle", "--since", since)
    assert "1 added" in run("merge-store", ours, tmp_path / "c.bundle")
    assert "does not exist" in refused("merge-store", ours, tmp_path / "nowhere", code=2)


def test_a_bundle_of_something_else_is_refused_in_words(folders, tmp_path):
    ours, theirs = folders
    with graphstore.open(theirs) as other:
        last = other.as_of().at.tx
        other.add_node("fact", {}, id="new")
        other.export(tmp_path / "late.bundle", since=last)
    with graphstore.open(ours) as store, pytest.raises(ConflictError, match="neither has nor has imported"):
        store.merge_store(tmp_path / "late.bundle")


_MERGE = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    print("begins", flush=True)
    store.merge_store(sys.argv[2], progress=lambda done, total: print(done, flush=True))
    print("done", flush=True)
"""


def test_killed_in_the_middle_it_is_nothing_or_all(tmp_path):
    with graphstore.open(tmp_path / "big.gs") as big, big.together():
        for number in range(1500):
            big.add_node("fact", {"n": number}, id=f"n{number}")
    for kill_after in ("1", "700", "1499", "1500"):
        with graphstore.open(tmp_path / f"{kill_after}.gs") as store:
            store.add_node("fact", {}, id="own")
        place = tmp_path / f"{kill_after}.gs"
        merging = subprocess.Popen(
            [sys.executable, "-c", _MERGE, str(place), str(tmp_path / "big.gs")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert merging.stdout is not None
        for line in merging.stdout:
            if line.strip() == kill_after:
                time.sleep(0.2 if kill_after == "1500" else 0)
                os.kill(merging.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
                break
        merging.wait()
        with graphstore.open(place) as store:
            assert store.stats()["nodes"] in (1, 1501) and len(store.branches()) == (
                store.stats()["nodes"] > 1
            )
            assert not store.verify().problems
            assert store.merge_store(tmp_path / "big.gs").merged
            assert 1501 == store.stats()["nodes"]
