"""A command that only reads says the same, whether the store's server answers it or it is done where it was started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphstore
from graphstore.cli import at_server
from graphstore.cli.commands import COMMANDS
from tests.support.served import serve_in_process

pytestmark = [pytest.mark.rest, pytest.mark.in_process("it starts a server of its own")]
WHOLE = [sys.executable, "-c", "from graphstore.cli.command_line import main; main()"]
_FRACTION = re.compile(rb"\d\d\.\d+Z")  # when it was asked
QUICK = [sys.executable, "-m", "graphstore"]
ASKED = [
    "search STORE cellar", "search STORE cellar --json", "get STORE old", "get STORE old --json", "get STORE new --valid 2026-01-15",
    "get STORE missing", "links STORE new", "what-superseded STORE old", "why STORE new", "effects STORE old", "walk STORE new",
    "path STORE new old", "topic STORE pumps", "latest-on STORE pump", "shaky STORE", "history STORE old", "diff STORE old 1 2",
    "timeline STORE", "events STORE", "changes STORE", "snapshots STORE", "branches STORE", "stats STORE --json", "review STORE", "memory stats STORE",
    "sessions list STORE", "context STORE --user ana", "get STORE", "get STORE old --nothing", "compare STORE before now", "link-history STORE nope",
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("at") / "memory.gs"
    with graphstore.open(folder, author="ana") as store:
        store.add_node(
            "fact",
            {"text": "the pump is in the cellar [1] ü"},
            id="old",
            valid_from="2026-01-01",
            tags=["pumps"],
        )
        store.revise("old", {"text": "the pump stands in the cellar"}, reason="clearer")
        store.add_node(
            "fact",
            {"text": "the pump is upstairs"},
            id="new",
            valid_from="2026-02-01",
            supersedes=["old"],
            reason="moved",
        )
        store.record_event("error", "it fell", id="fell", occurred_at="2026-01-05", related_to=["old"])
        store.snapshot("before")
        store.branch("draft").add_node("fact", {"text": "only there"}, id="there")
    with serve_in_process(folder):
        yield folder


def said(command: list[str], words: str, place: Path, **more: str) -> tuple[int, bytes, bytes]:
    found = subprocess.run(
        [*command, *words.replace("STORE", str(place)).split()],
        capture_output=True,
        check=False,
        env=os.environ | more,
    )
    return found.returncode, found.stdout, _FRACTION.sub(b"", found.stderr)


@pytest.mark.parametrize("words", ASKED)
def test_both_ways_say_the_same(place: Path, words: str) -> None:
    if words.startswith("stats"):  # of the memory of a process some is told
        assert said(QUICK, words, place)[0] == said(WHOLE, words, place)[0] == 0
        return
    assert said(QUICK, words, place) == said(WHOLE, words, place)


def test_a_query_and_a_branch_of_the_environment(place: Path) -> None:
    def asked(command: list[str], *words: str) -> bytes:
        found = subprocess.run(
            [*command, *words],
            capture_output=True,
            check=True,
            env=os.environ | {"GRAPHSTORE_BRANCH": "draft"},
        )
        return found.stdout

    cypher = "MATCH (n:Node) RETURN n.id AS id ORDER BY id"
    assert b"there" in asked(QUICK, "query", str(place), cypher)
    assert asked(QUICK, "query", str(place), cypher) == asked(WHOLE, "query", str(place), cypher)
    assert asked(QUICK, "get", str(place), "there") == asked(WHOLE, "get", str(place), "there")


def test_every_command_that_reads_is_answered_there_and_none_that_writes_or_names_a_file(place: Path) -> None:
    store = graphstore.open(":memory:")
    for name, command in COMMANDS.items():
        words = [*name.split(), "x"]
        asked = {"words": words, "store": len(name.split())}
        if command.is_write:
            assert at_server.answered(store, asked) is None, name
    for words in (
        ["query", "x", "-"],
        ["context", "x", "--skills", "{}"],
        ["search", "x", "a", "--embedder=m:f"],
        ["query", "x", "@file"],
    ):
        assert at_server.answered(store, {"words": words, "store": 1}) is None
    assert at_server.answered(store, {"words": ["get", "x", "nix"], "store": 1})["code"] == 1
    assert at_server.answered(store, {"words": ["get", "y", "x", "nix"], "store": 2}) is None
    store.close()


def test_nothing_of_the_store_is_imported_for_it(place: Path) -> None:
    code = (
        "import sys; sys.argv = ['graphstore', 'get', sys.argv[1], 'old']\n"
        "from graphstore.cli.quick import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'typer', 'kuzu', 'graphstore.opening', 'ssl', 'numpy'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True, stdout=subprocess.DEVNULL)
