"""The command line on a store that a server has: each command prints by its address what it prints for a folder."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore.cli.command_line import UNLISTED, app
from graphstore.cli.common import place_of, shown
from tests.cli.test_command_line import COMMANDS, refused, run
from tests.conftest import Clock
from tests.support.served import serve_in_process
from tests.support.world import fill

READS: list[tuple[str, ...]] = [
    ("show", "jwt"), ("show", "boom"), ("show", "boom", "--as-of", "release"), ("links", "jwt"), ("link-history", "jwt", "supersedes", "sessions"), ("history", "jwt"), ("history", "jwt", "--all"),
    ("superseded", "sessions"), ("causes", "boom"), ("effects", "deploy"), ("walk", "jwt", "boom"), ("path", "jwt", "sessions", "--kind", "supersedes"),
    ("link-history", "coffee", "contradicts", "tea"), ("history", "drinks"), ("show", "drinks"), ("superseded", "drinks"),
    ("diff", "jwt", "1", "2"), ("query", "MATCH (n:Node) RETURN n.id, n.valid_from ORDER BY n.id"),
    ("query", "MATCH (v:Version) RETURN v.ref ORDER BY v.ref", "--tables", "--format", "csv"), ("changes",), ("changes", "--format", "cloudevents"),
    ("events", "--since", "2026-01-01..2026-03-01"), ("timeline",), ("trace", "0af7651916cd43dd8448eb211c80319c"), ("review",), ("shaky",), ("grounds", "jwt"), ("readers-of", "jwt"), ("without", "--author", "nobody-here"), ("without", "--id", "jwt"),
    ("recall", "auth tokens"), ("recall", "tea", "--layer", "conversation"), ("topic", "auth"), ("latest", "auth"), ("snapshots",), ("branches",), ("compare", "plan"),
    ("working", "--user", "ana"), ("context", "--user", "ana", "--query", "tea"), ("retention",), ("trust",), ("languages",), ("embedder",), ("verify",), ("stats",),
    ("over", "count", "--since", "2026-01-01", "--until", "2026-03-01", "--step", "1 week", "--kind", "fact"), ("over", "changes", "--since", "2026-01-01", "--until", "2026-03-01", "--axis", "tx"),
    ("brief",), ("forget", "ben"),
    ("lifecycle", "--dry-run"), ("consolidate", "--topic", "auth"), ("sql", "SELECT id, text FROM node_as_of('2026-02-01', '2030-01-01') ORDER BY id"),
]  # fmt: skip
GROUPED: list[tuple[str, ...]] = [
    ("sessions", "list"), ("sessions", "decisions"), ("sessions", "lessons"), ("sessions", "errors"), ("sessions", "costs"), ("memory", "stats", "--as-of", "release"),
]  # fmt: skip
WRITES: list[tuple[str, ...]] = [
    ("add", "fact", '{"a": 1}', "--id", "new", "--text", "said anew"), ("revise", "new", '{"a": 2}', "--reason", "better"),
    ("amend", "new", '{"b": 1}', "--if-number", "2", "--valid-to", "open"), ("revise", "new", '{"a": 2, "b": 1, "c": 0}', "--minor", "--if-number", "3"),
    ("add", "fact", '{"a": 3}', "--id", "newer"), ("supersede", "new", "--by", "newer", "--reason", "moved on"), ("confirm", "newer", "--reason", "looked"),
    ("link", "newer", "uses", "tea", "--strength", "4"), ("event", "fix", "mended", "--id", "fixed", "--related-to", "boom"),
    ("message", "TEXT", "hello", "--id", "msg", "--sender", "ben", "--occurred-at", "2026-02-02"), ("end", "newer", "--reason", "over"),
    ("join", "green", "--into", "black", "--reason", "one drink"), ("split", "green", "--reason", "two drinks"),
    ("retract", "tea", "--reason", "it was not so"), ("fold", "jwt", "sessions", "--into", '{"summary": "auth"}'), ("snapshot", "later"),
    ("remember", "Ben likes coffee", "--layer", "conversation", "--user", "ben"), ("working", "--user", "ben", "--set", "asks about coffee"),
    ("branch", "other"), ("merge", "plan", "--reason", "decided"), ("delete-branch", "other"), ("sweep",), ("lifecycle",), ("connect",), ("reanalyze",),
    ("trust", "adr=3"), ("retention", "--days", "10000"), ("evict", "--before", "2025-01-01"), ("erase", "msg", "--reason", "private", "--yes"),
    ("resolve", "green", "black", "--keep", "green", "--reason", "asked her"), ("consolidate", "--topic", "auth", "--apply"),
]  # fmt: skip
LOCAL = {
    "demo": "makes a store of its own", "init": "makes a store", "restore": "makes a store", "copy": "makes a store", "lake": "reads every row in its own process", "project": "reads every row in its own process", "serve": "is the server", "page": "in a test of its own",
    "hook": "works on the files of other programs", "bundle": "works on the files", "merge-store": "in a test of its own",
    "unlink": "in a test of its own", "undo": "in a test of its own", "compact": "works on the files", "rebuild": "works on the files", "reembed": "in a test of its own", "import": "in a test of its own", "export": "in a test of its own",
    "index": "in a test of its own", "memorize": "in a test of its own", "mcp": "is a server", "token": "is about the server", "shell": "in its own tests",
}  # fmt: skip


class Place(NamedTuple):
    """A store as a command is given it, and its folder."""

    word: str
    folder: Path

    def __str__(self) -> str:
        return self.word


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same store twice: the first by the address of a process that serves it, the second by its folder."""
    folder = tmp_path_factory.mktemp("cli")
    clock = Clock()
    with graphstore.open(folder / "solo.gs", clock=clock) as store:
        fill(store, clock)
        store.add_node("note", {"drink": "green tea"}, id="green", text="Ana drinks green tea in the evening")
        store.add_node("note", {"drink": "black tea"}, id="black", text="Ana drinks black tea in the evening")
        store.link("green", "contradicts", "black", reason="one of two")
        store.define_kind("budgeted_by", rests=["retracted"])
    shutil.copytree(folder / "solo.gs", folder / "held.gs")
    with (
        serve_in_process(folder / "held.gs", "--no-ticks") as (_, url),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("GRAPHSTORE_TOKEN", (folder / "held.gs" / "token").read_text().strip())
        yield Place(url, folder / "held.gs"), Place(str(folder / "solo.gs"), folder / "solo.gs")


def said(path, words, code=0):
    """What a command says of a store, without what is of the moment: its place, instants of today, ids that were drawn."""
    group = 2 if words[0] in ("sessions", "memory", "import", "index") else 1
    text = run(*words[:group], path, *words[group:], code=code)
    for name in (path.folder.as_uri(), str(path.folder), str(path)):
        text = text.replace(name, "STORE")
    text = re.sub(r"20(?!26-0[1-6])\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?", "TODAY", text)
    drawn: dict[str, str] = {}
    return re.sub(
        r"\b(lnk_)?[0-9a-f]{16}\b|\d+ bytes|\b\d{5,}\b",
        lambda found: drawn.setdefault(found[0], f"#{len(drawn)}"),
        text,
    )


@pytest.mark.parametrize("words", [*READS, *GROUPED], ids=lambda words: "-".join(words)[:40])
def test_a_reading_command_says_the_same(both, words):
    assert said(both[1], words) == said(both[0], words)


@pytest.mark.parametrize(
    "words", [words for words in READS if "--format" not in words], ids=lambda words: "-".join(words)[:40]
)
def test_and_as_json(both, words):
    assert said(both[1], (*words, "--json")) == said(both[0], (*words, "--json"))


def test_the_writing_commands_say_the_same_one_after_the_other(both):
    for words in WRITES:
        assert said(both[1], words) == said(both[0], words), words

    assert said(both[1], ("query", "MATCH (n:Node) RETURN n.id ORDER BY n.kind, n.text")) == said(
        both[0], ("query", "MATCH (n:Node) RETURN n.id ORDER BY n.kind, n.text")
    )


def test_a_branch_pulls_alike(both):
    for path in both:
        run("branch", path, "aside")
    one, other = (run("--branch", "aside", "pull", path) for path in both)

    assert one == other


def test_every_command_was_asked():
    asked = {UNLISTED.get(words[0], words[0]) for words in [*READS, *GROUPED, *WRITES]} | {"pull"}

    assert [] == sorted(set(COMMANDS) - asked - set(LOCAL))


def test_a_link_is_taken_back(both):
    ids = []
    for path in both:
        made = json.loads(run("link", path, "jwt", "uses", "sessions", "--json"))
        ids.append(made["id"])
        run("unlink", path, made["id"], "--reason", "wrong")
        assert made["id"] not in run("links", path, "jwt", "--json")
    assert ids[0] != ids[1]


def test_what_rests_by_a_kind_of_the_store_is_named_as_shaky(both):
    for path in both:
        run("add", path, "plan", '{"says": "June"}', "--id", "june")
        run("add", path, "fact", '{"says": "two people"}', "--id", "people")
        run("link", path, "people", "budgeted_by", "june")
        assert "What rests on it is shaky now: people." in run("retract", path, "june", "--reason", "a slip")


def test_a_transaction_is_taken_back(both):
    for path in both:
        run("add", path, "fact", '{"says": "a slip"}', "--id", "slip")
        tx = json.loads(run("changes", path, "--json"))[-1]["tx"]
        said = run("undo", path, tx, "--reason", "another project", "--author", "ana")
        last = json.loads(run("changes", path, "--json"))[-1]
        assert ("undo", tx, "ana", "another project") == (
            last["verb"],
            last["subject"],
            last["author"],
            last["reason"],
        )
        assert said.startswith("took back the transaction of 20")
        assert json.loads(run("show", path, "slip", "--json"))["node"]["standing"] == "retracted"
        assert "is taken back already" in refused("undo", path, tx, "--reason", "again")
        run("undo", path, last["tx"], "--reason", "it was this one")
        assert json.loads(run("show", path, "slip", "--json"))["node"]["standing"] == "stands"
        assert "holds now" in refused("retract", path, "slip", "--reason", "x", "--if-number", "7")


def test_files_are_read_and_written_through_the_server(both, tmp_path):
    (tmp_path / "rows.csv").write_text("id,name\nr1,one\nr2,two\n")
    (tmp_path / "map.toml").write_text('id = "id"\nkind = "row"\ntext = "name"\n')
    (tmp_path / "soul").mkdir()
    (tmp_path / "soul" / "SOUL.md").write_text("# Voice\nShort.\n")
    (tmp_path / "messages.json").write_text('[{"id": "x1", "content": "Using MQTT", "date": "2026-02-03"}]')
    (tmp_path / "more.json").write_text('[{"id": "x2", "content": "Using AMQP", "date": "2026-02-04"}]')
    told = []
    for path in both:
        told.append([
            run("import", "csv", path, tmp_path / "rows.csv", "--mapping", tmp_path / "map.toml"),
            run("index", "soul", path, tmp_path / "soul"),
            run("import", "messages", path, tmp_path / "messages.json"),
            run("memorize", path, tmp_path / "more.json"),
            run("export", path, tmp_path / f"{path.folder.stem}.dump"),
            run("export", path, tmp_path / f"{path.folder.stem}.jsonl", "--format", "gasoline"),
        ])  # fmt: skip

    assert told[1][:4] == told[0][:4]
    assert (tmp_path / "held.dump").exists()
    assert (
        "checked" in run("restore", tmp_path / "back.gs", tmp_path / "held.dump")
        or (tmp_path / "back.gs").exists()
    )


def test_what_cannot_be_sent_is_refused_with_what_to_do(both):
    assert "the server embeds" in refused(
        "remember", both[0], "x", "--layer", "tool", "--embedder", "tests.support.world:fill"
    )


def test_the_address_of_a_server_is_no_folder_to_make(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump").write_bytes(b"")
    for words in (["serve"], ["restore", "dump"]):
        command, *more = words
        result = CliRunner().invoke(app, [command, "http://127.0.0.1:1", *more])
        assert result.exit_code == 1
        assert "is the address of a server, and this needs the folder of a store" in result.stderr
    assert ["dump"] == [path.name for path in tmp_path.iterdir()]


def test_the_address_of_a_server_is_told_as_it_was_typed():
    assert "http://127.0.0.1:7464" == place_of(Path("http://127.0.0.1:7464"))
    assert "https://a.example" == place_of(Path("https://a.example"))
    assert "team.gs" == place_of(Path("team.gs"))


def test_the_address_of_a_store_in_postgresql_is_shown_without_what_lets_in():
    typed = Path("postgresql://user:s3cret@host/db?store=team&password=s3cret")

    assert "postgresql://host/db?store=team" == shown(typed)
    assert "POSTGRES://host/db" == place_of(Path("POSTGRES://host/db"))


# ---------------------------------------------------------------- a lock that is about to go


def test_commands_that_write_at_once_wait_for_each_other(tmp_path):
    place = tmp_path / "memory.gs"
    graphstore.open(place).close()
    command = [sys.executable, "-m", "graphstore", "add", str(place), "fact", '{"a": 1}', "--id"]
    running = [subprocess.Popen([*command, f"n{number}"], stdout=subprocess.DEVNULL) for number in range(4)]

    assert [0] * 4 == [one.wait(60) for one in running]
    with graphstore.open(place) as store:
        assert {f"n{number}" for number in range(4)} == {node.id for node in store.nodes()}
