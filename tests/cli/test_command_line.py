"""The command line: each command does what its method does, answers in words or as one JSON document, and says why not."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

import graphstore
from graphstore.cli.command_line import UNLISTED, app
from graphstore.cli.commands import GROUPS
from tests.conftest import Clock
from tests.support.ledger_rows import change

ROOT = Path(__file__).parents[2]

COMMANDS = [
    "demo", "init", "token", "add-node", "revise", "amend", "supersede", "end", "retract", "undo", "link", "unlink", "record-event", "get", "links", "history",
    "what-superseded", "why", "effects", "walk", "path", "diff", "query", "sql", "over", "changes", "import", "export", "restore", "copy", "lake", "project", "verify", "compact", "rebuild", "stats",
    "events", "record-message", "timeline", "trace", "evict", "erase", "forget", "retention", "review", "resolve", "sweep", "confirm", "grounds", "shaky", "readers-of", "search", "fold", "join", "split", "trust", "languages",
    "memorize", "topic", "latest-on", "snapshot", "snapshots", "consolidate",
    "sessions", "reanalyze",
    "connect",
    "remember", "lifecycle", "embedder", "reembed", "memory", "working", "context", "index",
    "branch", "branches", "compare", "without", "merge", "merge-store", "bundle", "pull", "delete-branch", "link-history",
    "serve", "page", "mcp", "shell", "hook", "brief",
]  # fmt: skip


def run(*words: object, code: int = 0, stdin: str | None = None) -> str:
    """Standard output of a command that ends with `code`."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin, env={"COLUMNS": "160"})
    assert result.exit_code == code, f"{words}\n{result.output}\n{result.exception!r}"
    return result.stdout


def refused(*words: object, code: int = 1, stdin: str | None = None) -> str:
    """Standard error of a command that is refused."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin, env={"COLUMNS": "160"})
    assert result.exit_code == code, f"{words}\n{result.output}\n{result.exception!r}"
    assert result.stdout == ""
    return result.stderr


def answer(*words: object, code: int = 0) -> Any:
    """What a command says with --json: exactly one document."""
    return json.loads(run(*words, "--json", code=code))


def process(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    environment = {**os.environ, "COLUMNS": "160", "GRAPHSTORE_AUTHOR": "ana"}
    return subprocess.run(
        [sys.executable, "-m", "graphstore", *map(str, words)],
        capture_output=True, text=True, cwd=ROOT, env=environment, timeout=60, **options,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a decision that was replaced because of an incident, and a fact with two versions."""
    path = tmp_path / "team.gs"
    with graphstore.open(path, author="ana") as store:
        store.add_node(
            "decision",
            {"says": "sessions"},
            id="sessions",
            text="logins are sessions",
            valid_from="2026-01-05",
        )
        store.record_event("outage", "nobody could log in", id="outage", occurred_at="2026-02-02")
        store.add_node(
            "decision", {"says": "tokens"}, id="tokens", text="logins are tokens", valid_from="2026-02-10",
            supersedes=["sessions"], reason="no restart may log everybody out",
        )  # fmt: skip
        store.link("tokens", "caused_by", "outage", reason="it hurt", strength=4)
        store.add_node("fact", {"limit": 100, "unit": "a minute"}, id="limits", valid_from="2026-01-10")
        store.revise(
            "limits", {"limit": 300, "by": "ben"}, valid_from="2026-02-15", reason="the gateway was changed"
        )
    return path


# ---- help -------------------------------------------------------------------------------------


def test_every_command_is_there() -> None:
    assert set(typer.main.get_command(app).commands) == set(COMMANDS)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "command",
    [
        [],
        *([one] for one in COMMANDS),
        ["import", "git"],
        ["import", "jsonl"],
        ["import", "csv"],
        ["import", "gasoline"],
        ["import", "otlp"],
        ["import", "messages"],
        ["import", "memobrain"],
        *(
            ["sessions", one]
            for one in (
                "list",
                "work-on",
                "decisions",
                "lessons",
                "recurring-errors",
                "lineage",
                "costs",
                "stats",
            )
        ),
        ["import", "pi-brain"],
        ["import", "pi"],
        ["import", "claude"],
    ],
)
def test_every_command_has_help(command: list[str]) -> None:
    said = run(*command, "--help")
    assert "Usage:" in said
    assert len(said.splitlines()) > 5


@pytest.mark.parametrize("command", [name.split() for name in UNLISTED], ids=" ".join)
def test_names_of_methods_and_former_names_are_understood_and_not_listed(command: list[str]) -> None:
    listed = UNLISTED[" ".join(command)].split()

    said = [line.split()[0] for line in run(*command[:-1], "--help").splitlines() if line.startswith("  ")]
    assert command[-1] not in said or command == listed
    assert run(*command, "--help").splitlines()[1:] == run(*listed, "--help").splitlines()[1:]


def test_every_former_name_is_understood() -> None:
    former = "add event message show superseded causes recall latest".split()
    assert {*former, "sessions work", "sessions errors"} <= set(UNLISTED)


def test_the_tools_of_agents_have_the_names_of_commands() -> None:
    page = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    tools = {name.replace("_", "-") for name in re.findall(r"^([a-z_]+) ", page, re.MULTILINE)}

    assert {"search", "get", "why", "what-superseded", "record-event"} <= tools
    others = {"remember-many"}  # a shell asks each by itself
    others |= {"keep", "layers", "scratchpad"}  # remember, memory stats and working
    others |= {"observe", "expertise", "record-outcome"}  # of agents alone
    others |= {"list", "define-kind"}  # search without words, and Python
    assert others == tools - set(COMMANDS) - set(UNLISTED)


def listed(said: str) -> dict[str, list[str]]:
    """The commands that help lists, by group."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in said.splitlines():
        if heading := re.match(r"([a-z][a-z ]*):$", line):
            names = found.setdefault(heading[1], [])
        elif command := re.match(r"  ([a-z][a-z-]+)  ", line):
            names.append(command[1])
    return found


def test_help_lists_the_fifteen_commands_to_begin_with_by_group() -> None:
    groups = listed(run("--help"))

    assert list(groups) == ["stores", "read", "write", "interfaces"]
    assert sum(map(len, groups.values())) == 15
    assert all(set(names) <= set(listed(run("help", "all"))[group]) for group, names in groups.items())


@pytest.mark.parametrize("words", (["--help"], ["help", "all"], ["help", "stores"], ["help", "memory"]))
def test_no_line_of_help_is_cut_in_80_columns(words: list[str]) -> None:
    said = CliRunner().invoke(app, words, env={"COLUMNS": "80"}).stdout

    assert max(map(len, said.splitlines())) <= 80
    assert [] == [line for line in said.splitlines()[1:] if line.endswith(("...", "…"))]


def test_help_all_lists_every_command_by_group() -> None:
    groups = listed(run("help", "all"))

    assert list(groups) == list(GROUPS)
    assert sorted(COMMANDS) == sorted(name for names in groups.values() for name in names)


def test_help_lists_a_group_whole_even_where_a_command_has_its_name() -> None:
    everything = listed(run("help", "all"))
    for group in GROUPS:
        said = listed(run("help", group))
        if group in COMMANDS:
            assert {*said[f"more for {group}"], group} == set(everything[group])
        else:
            assert said == {group: everything[group]}


@pytest.mark.parametrize(
    "words",
    ([], ["add"], ["what-superseded"], ["serve"], ["sessions"], ["import", "git"], ["sessions", "work"]),
)
def test_help_on_a_command_is_what_its_own_help_says(words: list[str]) -> None:
    asked, own = process("help", *words), process(*words, "--help")

    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == own.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    (
        (["help", "serch"], "unknown group or command 'serch'. Valid: add-node, all, "),
        (["help", "storse"], "Did you mean 'stores'?"),
        (["help", "read", "everything"], "unknown group or command 'read everything'."),
        (["help", "import", "gti"], "unknown command 'gti'. Valid: claude, csv, "),
        (["serch"], "Did you mean 'search'?"),
        (["import", "gti"], "Did you mean 'git'?"),
    ),
)
def test_an_unknown_command_or_group_names_the_valid_ones_and_the_nearest(
    words: list[str], said: str
) -> None:
    refused = process(*words)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr


def test_help_imports_nothing_heavy() -> None:
    probe = (
        "import sys\n"
        "from graphstore.cli.command_line import app\n"
        "sys.argv = ['graphstore', *{words!r}]\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "heavy = {{'kuzu', 'ladybug', 'pydantic', 'rich', 'pyarrow', 'orjson', 'networkx', 'graphstore.store.store'}}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    for words in (["--help"], ["help", "all"], ["help", "add"], ["import", "git", "--help"], ["query", "-h"]):
        done = subprocess.run(
            [sys.executable, "-c", probe.format(words=words)], capture_output=True, text=True, cwd=ROOT
        )
        assert "HEAVY []" in done.stdout, done.stdout + done.stderr


def test_help_makes_no_command_but_the_one_it_is_asked_about() -> None:
    group: Any = typer.main.get_command(app)
    for words in (["--help"], ["add", "--help"]):
        group.main(words, standalone_mode=False)

    assert ["add-node"] == [name for name, command in group.commands.items() if "_loaded" in vars(command)]


def test_help_answers_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    spans = {}
    for command in ("add", "query"):
        start = time.perf_counter()
        assert process(command, "--help").returncode == 0
        spans[command] = time.perf_counter() - start
    with capsys.disabled():
        print(
            f"\n--help: {', '.join(f'{name} {span * 1000:.0f} ms' for name, span in spans.items())} (aim: under 150)"
        )
    assert (
        max(spans.values()) < 5
    )  # a machine may be busy; an import of the engine would show in the test above


def test_version_is_told() -> None:
    assert run("--version").startswith("graphstore 0.")


# ---- writing ----------------------------------------------------------------------------------


def test_init_makes_a_store_and_leaves_one_alone(tmp_path: Path) -> None:
    assert "is a store" in run("init", tmp_path / "new.gs")
    run("add", tmp_path / "new.gs", "fact", '{"a": 1}', "--id", "first0")
    assert answer("init", tmp_path / "new.gs")["nodes"] == 1


def test_add_takes_every_option(folder: Path) -> None:
    node = answer(
        "add", folder, "fact", '{"limit": 250}', "--id", "limit2", "--key", "API limit", "--text", "250 a minute",
        "--tag", "api", "--tag", "gateway", "--valid-from", "2026-03-01", "--valid-to", "2026-04-01", "--scope", "eu",
        "--supersedes", "limits", "--corrects", "sessions", "--reason", "told so", "--source", "log", "--trigger", "import",
        "--author", "dora",
    )  # fmt: skip
    assert node["id"] == "limit2"
    assert (node["key"], node["scope"], node["tags"]) == ("api_limit", "eu", ["api", "gateway"])
    assert (node["valid_from"], node["valid_to"]) == ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z")
    assert (node["source"], node["trigger"], node["content"]) == ("log", "import", {"limit": 250})
    links = answer("links", folder, "limit2", "--direction", "out", "--valid", "2026-03-15")
    assert sorted((link["kind"], link["target"], link["reason"]) for link in links) == [
        ("corrects", "sessions", "told so"),
        ("supersedes", "limits", "told so"),
    ]
    assert answer("changes", folder)[-1]["author"] == "dora"


def test_two_ids_are_joined_and_split(folder: Path) -> None:
    run("add", folder, "person", '{"name": "Bob"}', "--id", "bob")
    run("add", folder, "person", '{"name": "BOB"}', "--id", "robert")

    assert [("robert", "bob")] == [
        (each["node"]["id"], each["into"]["id"]) for each in answer("review", folder)["joins"]
    ]
    assert "join('robert', into='bob', reason=…)" in run("review", folder)
    assert "joined robert into bob." in run("join", folder, "robert", "--into", "bob", "--reason", "one")
    assert "joined into bob" in run("what-superseded", folder, "robert")
    assert answer("get", folder, "robert")["node"]["id"] == "bob"
    assert "split off robert-v1" in run("split", folder, "robert", "--reason", "two people")
    assert answer("get", folder, "robert")["node"]["id"] == "robert"


def test_add_reads_content_from_a_file_and_from_standard_input(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "content.json").write_text('{"from": "file"}')
    run("add", folder, "fact", f"@{tmp_path / 'content.json'}", "--id", "byfile")
    assert "added bystdin-v1" in run("add", folder, "fact", "-", "--id", "bystdin", stdin='{"from": "stdin"}')
    assert answer("show", folder, "byfile")["node"]["content"] == {"from": "file"}
    assert answer("show", folder, "bystdin")["node"]["content"] == {"from": "stdin"}


def test_a_value_said_again_is_confirmed_not_added(folder: Path) -> None:
    run("add", folder, "rule", '{"says": "deploys on Tuesdays"}', "--key", "day", "--id", "tuesdays")

    assert run("add", folder, "rule", '{"says": "Deploys on tuesdays."}', "--key", "day").startswith(
        "confirmed tuesdays-v1"
    )


def test_revise_describes_anew(folder: Path) -> None:
    assert "revised limits-v3" in run(
        "revise", folder, "limits", '{"limit": 250}', "--reason", "300 was a slip"
    )
    node = answer(
        "revise", folder, "limits", '{"limit": 240}', "--valid-from", "2026-03-01", "--valid-to", "2026-03-02"
    )
    assert (node["number"], node["content"]) == (4, {"limit": 240})


def test_supersede_ends_the_old_where_the_new_begins(folder: Path) -> None:
    run("add", folder, "fact", "{}", "--id", "limit2", "--valid-from", "2026-03-01")
    [link] = answer("supersede", folder, "limits", "--by", "limit2", "--reason", "new gateway")
    assert (link["source"], link["kind"], link["target"], link["reason"]) == (
        "limit2",
        "supersedes",
        "limits",
        "new gateway",
    )
    assert answer("show", folder, "limits")["node"]["standing"] == "superseded"


def test_supersede_in_words(folder: Path) -> None:
    run("add", folder, "fact", "{}", "--id", "limit2", "--valid-from", "2026-03-01")
    assert "supersedes" in run("supersede", folder, "limits", "--by", "limit2")


@pytest.mark.parametrize("json_too", [False, True])
def test_end(folder: Path, json_too: bool) -> None:
    words = ("end", folder, "limits", "--at", "2026-02-20", "--reason", "no limit any more")
    if json_too:
        assert answer(*words)["standing"] == "ended"
    else:
        assert "is ended now" in run(*words)


@pytest.mark.parametrize("json_too", [False, True])
def test_retract(folder: Path, json_too: bool) -> None:
    words = ("retract", folder, "limits", "--reason", "never was one")
    if json_too:
        assert answer(*words)["standing"] == "retracted"
    else:
        assert "is retracted now" in run(*words)


def test_link_and_unlink(folder: Path) -> None:
    link = answer(
        "link", folder, "limits", "related_to", "tokens", "--reason", "same gateway", "--strength", 2, "--confidence",
        "inferred", "--created-by", "agent", "--valid-from", "2026-02-20", "--metadata", '{"seen": 3}',
    )  # fmt: skip
    assert (link["kind"], link["strength"], link["confidence"], link["created_by"]) == (
        "related_to",
        2,
        "inferred",
        "agent",
    )
    assert link["metadata"] == {"seen": 3}
    assert answer("unlink", folder, link["id"], "--reason", "not so") == {"unlinked": link["id"]}
    assert answer("links", folder, "limits") == []
    several = json.loads(
        run("link", folder, "limits", "uses", "tokens", "tokens", "supports", "limits", "--json")
    )
    assert [("limits", "uses", "tokens"), ("tokens", "supports", "limits")] == [
        (one["source"], one["kind"], one["target"]) for one in several
    ]
    assert "Give each as A KIND B" in refused(
        "link", folder, "limits", "uses", "tokens", "tokens", "supports", code=2
    )
    said = run("link", folder, "limits", "contradicts", "tokens")
    assert "limits contradicts tokens" in said
    assert "unlinked" in run("unlink", folder, said.split()[0])


def test_event(folder: Path) -> None:
    recorded = answer(
        "event", folder, "deploy", "tokens went live", "--id", "deploy1", "--occurred-at", "2026-02-10T08:00:00Z",
        "--source", "ci", "--origin", "agent", "--agent", "bot", "--related-to", "tokens", "--metadata", '{"n": 1}',
        "--trace-id", "t1", "--span-id", "s1", "--parent-span-id", "p1",
    )  # fmt: skip
    event = recorded["event"]
    assert recorded["is_new"] is True
    assert (event["id"], event["occurred_at"], event["trace_id"]) == ("deploy1", "2026-02-10T08:00:00Z", "t1")
    assert "deploy1" in {
        end for link in answer("links", folder, "tokens") for end in (link["source"], link["target"])
    }
    assert "recorded evt_" in run("event", folder, "note", "all is well")


def test_author_is_taken_from_the_environment(folder: Path) -> None:
    assert process("add", folder, "fact", "{}").returncode == 0
    assert answer("changes", folder)[-1]["author"] == "ana"


# ---- reading ----------------------------------------------------------------------------------


def test_show(folder: Path) -> None:
    said = run("show", folder, "tokens")
    assert "stands" in said
    assert "caused_by" in said
    shown = answer("show", folder, "tokens")
    assert shown["node"]["text"] == "logins are tokens"
    assert {link["kind"] for link in shown["links"]} == {"caused_by", "supersedes"}
    assert "happened  2026-02-02" in run("show", folder, "outage")


def test_show_at_a_coordinate(folder: Path) -> None:
    assert answer("show", folder, "sessions", "--valid", "2026-01-20")["node"]["standing"] == "stands"
    assert answer("show", folder, "sessions")["node"]["standing"] == "superseded"
    before = answer("changes", folder)[0]["tx"]
    assert (
        answer("show", folder, "sessions", "--valid", "2026-02-11", "--tx", before)["node"]["standing"]
        == "stands"
    )
    assert "tokens" in refused("show", folder, "tokens", "--tx", before)


def test_links_both_ways_and_by_kind(folder: Path) -> None:
    assert len(answer("links", folder, "tokens")) == 2
    assert [link["kind"] for link in answer("links", folder, "tokens", "--kind", "caused_by")] == [
        "caused_by"
    ]
    assert [link["source"] for link in answer("links", folder, "outage", "--direction", "back")] == ["tokens"]
    assert answer("links", folder, "outage", "--direction", "out") == []
    assert "it hurt" in run("links", folder, "tokens")
    assert "nothing." in run("links", folder, "limits")


def test_history(folder: Path) -> None:
    assert [version["ref"] for version in answer("history", folder, "limits")] == ["limits-v1", "limits-v2"]
    run("revise", folder, "limits", '{"limit": 1}')
    assert [version["number"] for version in answer("history", folder, "limits")] == [3]
    assert {version["number"] for version in answer("history", folder, "limits", "--all")} == {1, 2, 3}
    assert "limits-v3" in run("history", folder, "limits")


def test_superseded_says_which_of_its_successors_ended(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "ends.gs") as store:
        store.add_node("fact", {}, id="first", valid_from="2026-01-01")
        store.add_node("fact", {}, id="second", valid_from="2026-01-10", supersedes=["first"])
        store.end("second", at="2026-01-20", reason="over")
        shown = store.what_superseded("first")._repr_html_()

    assert "  second ended" in run("superseded", tmp_path / "ends.gs", "first")
    assert "  ended" in run("superseded", tmp_path / "ends.gs", "second")
    assert "<td>ended</td><td>second</td>" in re.sub(r"<td[^>]*>", "<td>", shown)


def test_superseded(folder: Path) -> None:
    found = answer("superseded", folder, "sessions")
    assert found["chain"][0]["why"] == "no restart may log everybody out"
    assert found["chain"][0]["who"] == "ana"
    assert [node["id"] for node in found["current"]] == ["tokens"]
    said = run("superseded", folder, "sessions")
    assert "superseded by tokens" in said
    assert "because: no restart may log everybody out" in said
    assert "revised as limits-v2" in run("superseded", folder, "limits-v1")
    assert "nothing superseded it" in run("superseded", folder, "tokens")
    [planned] = answer("superseded", folder, "sessions", "--valid", "2026-01-20")["chain"]
    assert (planned["node"]["id"], planned["planned"]) == ("tokens", True)
    assert "planned: superseded by tokens" in run("superseded", folder, "sessions", "--valid", "2026-01-20")


def test_walk(folder: Path) -> None:
    around = answer("walk", folder, "outage")
    assert around["root"]["id"] == "outage"
    assert "tokens" in [thing["id"] for thing in around["nodes"]]
    assert [] == answer("walk", folder, "outage", "--direction", "out")["nodes"]
    assert ["tokens"] == [
        thing["id"]
        for thing in answer("walk", folder, "outage", "--kind", "causes", "--direction", "out")["nodes"]
    ]
    said = run("walk", folder, "outage", "limits", "--hops", 1)
    assert "because: it hurt" in said
    assert "limits" in said
    assert "hops" in refused("walk", folder, "outage", "--hops", 0)


def test_path(folder: Path) -> None:
    assert ["outage"] == [thing["id"] for thing in answer("path", folder, "tokens", "outage")["nodes"]]
    assert ["tokens"] == [
        thing["id"]
        for thing in answer("path", folder, "outage", "tokens", "--direction", "in", "--by", "arrival")[
            "nodes"
        ]
    ]
    assert [["outage"]] == [
        [thing["id"] for thing in chain["nodes"]]
        for chain in answer("path", folder, "tokens", "outage", "--all")
    ]
    assert "nobody could log in" in run("path", folder, "tokens", "outage", "--all")
    assert "no path from 'outage' to 'tokens'" in refused("path", folder, "outage", "tokens")
    assert "nothing" in run("path", folder, "outage", "tokens", "--all")


def test_causes_and_effects(folder: Path) -> None:
    assert [thing["id"] for thing in answer("causes", folder, "tokens")["nodes"]] == ["outage"]
    assert [thing["id"] for thing in answer("effects", folder, "outage", "--depth", 1)["nodes"]] == ["tokens"]
    assert "because: it hurt" in run("effects", folder, "outage")
    assert "nobody could log in" in run("causes", folder, "tokens")
    assert "nothing." in run("effects", folder, "limits")
    assert "depth" in refused("causes", folder, "tokens", "--depth", 0)


def test_recall(folder: Path) -> None:
    hits = answer("recall", folder, "tokens")["hits"]

    assert [hit["node"]["id"] for hit in hits] == ["tokens", "outage"]
    assert [link["reason"] for link in hits[1]["path"]] == ["it hurt"]
    assert "2. outage outage: nobody could log in  [tokens caused_by outage]" in run(
        "recall", folder, "tokens"
    )
    assert [hit["node"]["id"] for hit in answer("recall", folder, "tokens", "--hops", 0)["hits"]] == [
        "tokens"
    ]
    assert [hit["node"]["id"] for hit in answer("recall", folder, "tokens", "--kind", "outage")["hits"]] == [
        "outage"
    ]
    assert len(answer("recall", folder, "logins log", "-k", 1)["hits"]) == 1
    then = answer("recall", folder, "logins", "--valid", "2026-01-20")["hits"]
    assert [hit["node"]["id"] for hit in then] == ["sessions"]
    past = answer("search", folder, "logins", "--standing", "superseded", "--until", "2026-01-20")["hits"]
    assert [hit["node"]["id"] for hit in past] == ["sessions"]
    assert answer("search", folder, "tokens", "--tag", "nobody", "--decay", 30)["hits"] == []
    assert {hit["weight"] < 1 for hit in answer("search", folder, "tokens", "--decay", 30)["hits"]} == {True}
    assert "standing 'gone'" in refused("search", folder, "tokens", "--standing", "gone")
    assert "no word here is 'unicorn'" in run("recall", folder, "unicorn")
    assert "hops" in refused("recall", folder, "tokens", "--hops", 9)


def test_diff(folder: Path) -> None:
    assert {(change["type"], change["path"]) for change in answer("diff", folder, "limits", 1, 2)} == {
        ("changed", "limit"),
        ("removed", "unit"),
        ("added", "by"),
    }
    assert "300" in run("diff", folder, "limits", 1, 2)
    assert "nothing." in run("diff", folder, "limits", 1, 1)
    assert "error:" in refused("diff", folder, "limits", 1, 9)


def test_changes_can_be_resumed(folder: Path) -> None:
    changes = answer("changes", folder)
    assert [change["verb"] for change in changes][:2] == ["add_node", "record_event"] or len(changes) >= 6
    assert answer("changes", folder, "--since", changes[-1]["tx"]) == []
    assert "ana" in run("changes", folder)


def test_changes_of_one_second_are_told_apart(tmp_path: Path, clock: Clock) -> None:
    with graphstore.open(tmp_path / "slips.gs", clock=clock) as store:
        clock.set(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        for id in ("one", "two", "three"):
            store.add_node("fact", {}, id=id)
            clock.move(seconds=0.5)
    told = run("changes", tmp_path / "slips.gs")

    assert (
        "2026-01-02 03:04:05Z " in told
        and "2026-01-02 03:04:05.5Z" in told
        and "2026-01-02 03:04:06Z" in told
    )
    run("undo", tmp_path / "slips.gs", "2026-01-02 03:04:05.5Z", "--reason", "a slip")
    assert ["one", "three"] == sorted(
        node["n.id"] for node in answer("query", tmp_path / "slips.gs", "MATCH (n:Node) RETURN n.id")
    )


def test_query_sees_the_graph_of_the_coordinate(folder: Path) -> None:
    standing = "MATCH (n:Node) WHERE n.kind = 'decision' RETURN n.id AS id"
    assert answer("query", folder, standing) == [{"id": "tokens"}]
    assert answer("query", folder, standing, "--valid", "2026-01-20") == [{"id": "sessions"}]
    assert "tokens" in run("query", folder, standing)


def test_query_over_the_whole_history(folder: Path) -> None:
    rows = answer(
        "query",
        folder,
        "MATCH (v:Version {node_id: $id}) RETURN count(*) AS rows",
        "--tables",
        "--param",
        "id=limits",
    )
    assert rows[0]["rows"] == 3
    standing = (
        "MATCH (v:Version) WHERE AS_OF(v) AND v.node_id IN ['tokens', 'sessions'] RETURN v.node_id AS id"
    )
    assert answer("query", folder, standing, "--tables") == [{"id": "tokens"}]
    assert answer("query", folder, standing, "--tables", "--valid", "2026-01-20") == [{"id": "sessions"}]
    assert "reads no $valid" in refused(
        "query", folder, "RETURN 1", "--tables", "--valid", "2026-01-01", code=2
    )


def test_query_writes_its_rows_to_a_file(folder: Path, tmp_path: Path) -> None:
    cypher = (
        "MATCH (n:Node) RETURN n.id AS id, n.tags AS tags, n.key AS key, n.valid_from AS since ORDER BY id"
    )
    rows = answer("query", folder, cypher)
    for ending in ("parquet", "csv", "jsonl"):
        assert f"{len(rows)} rows in" in run("query", folder, cypher, "-o", tmp_path / f"rows.{ending}")
    read = pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [{**row, "since": row["since"].isoformat().replace("+00:00", "Z")} for row in read] == rows
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows
    with open(tmp_path / "rows.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [(row["id"], json.loads(row["tags"]), row["key"] or None, row["since"]) for row in found] == [
        tuple(row.values()) for row in rows
    ]
    assert "exists" in refused("query", folder, cypher, "-o", tmp_path / "rows.csv")
    assert "Valid: .csv, .jsonl, .parquet" in refused("query", folder, cypher, "-o", tmp_path / "rows.xlsx")


def test_null_is_shown_and_no_column_vanishes(folder: Path) -> None:
    assert ["x", "y", "1", "null"] == run("query", folder, "RETURN 1 AS x, NULL AS y").replace(
        "─", ""
    ).split()
    assert ["x", "no", "rows."] == run(
        "query", folder, "MATCH (n:Node {id: 'none'}) RETURN n.id AS x"
    ).replace("─", "").split()


def test_query_formats(folder: Path) -> None:
    cypher = "MATCH (n:Node) RETURN n.id AS id, n.tags AS tags, n.valid_from AS since ORDER BY id"
    rows = list(csv.DictReader(io.StringIO(run("query", folder, cypher, "--format", "csv"))))
    assert [(row["id"], row["tags"], row["since"]) for row in rows] == [
        ("limits", "[]", "2026-02-15T00:00:00Z"),
        ("tokens", "[]", "2026-02-10T00:00:00Z"),
    ]
    assert json.loads(run("query", folder, cypher, "--format", "json")) == answer("query", folder, cypher)
    assert (
        run("query", folder, "MATCH (n:Node) WHERE n.id = 'no' RETURN n.id AS id", "--format", "csv")
        == "id\n"
    )
    assert "id" in run("query", folder, "-", stdin="MATCH (n:Node) RETURN n.id AS id")
    empty = "MATCH (n:Node) RETURN n.id AS id, n.key AS nothing, n.text AS text"
    assert ["id", "nothing", "text"] == run("query", folder, empty).splitlines()[0].split()


def test_query_parameters_are_json_or_text(folder: Path) -> None:
    rows = answer(
        "query", folder, "RETURN $n + 1 AS n, $t AS t", "--param", "n=41", "--param", "t=it's ] text"
    )
    assert rows == [{"n": 42, "t": "it's ] text"}]
    assert "name=value" in refused("query", folder, "RETURN 1", "--param", "naked", code=2)
    assert "error:" in refused("query", folder, "MATCH (n:Node {id: $id}) RETURN n.id")


def test_query_only_reads(folder: Path) -> None:
    assert "error:" in refused("query", folder, "MATCH (n) DETACH DELETE n")
    assert "error:" in refused("query", folder, "CREATE (n:Node {id: 'x'})", "--tables")


def test_text_is_never_markup(folder: Path) -> None:
    run("add", folder, "fact", '{"a": "[bold]x[/bold] :smile:"}', "--id", "marked", "--text", "[red]y[/red]")
    said = run("show", folder, "marked")
    assert "[bold]x[/bold] :smile:" in said
    assert "[red]y[/red]" in said


# ---- in and out -------------------------------------------------------------------------------


def test_export_restore_verify_stats(folder: Path, tmp_path: Path) -> None:
    assert answer("export", folder, tmp_path / "dump")["exported"] == str(tmp_path / "dump")
    assert "restored" in run("restore", tmp_path / "again.gs", tmp_path / "dump")
    assert answer("changes", folder) == answer("changes", tmp_path / "again.gs")
    assert "sound" in run("verify", tmp_path / "again.gs")
    assert answer("verify", tmp_path / "again.gs")["ok"] is True
    assert answer("stats", folder)["nodes"] == 3
    assert ["nodes", "3"] == [line.split() for line in run("stats", folder).splitlines() if line][1]
    assert "exported" in run("export", folder, tmp_path / "second")
    assert answer("restore", tmp_path / "third.gs", tmp_path / "second")["nodes"] == 3


def damage(folder: Path) -> None:
    """Change the contents of a closed store."""
    change(folder, "UPDATE body SET data = CAST(replace(CAST(data AS TEXT), 'nobody', 'somebody') AS BLOB)")


def test_verify_finds_damage(folder: Path) -> None:
    damage(folder)
    result = CliRunner().invoke(app, ["verify", str(folder)])
    assert result.exit_code == 1
    assert "does not match its hash" in " ".join(result.output.split())
    found = answer("verify", folder, code=1)
    assert found["ok"] is False
    assert found["problems"][0]["file"].endswith("ledger.db")
    assert "error:" in refused("show", folder, "outage")


def test_import_jsonl(tmp_path: Path) -> None:
    words = (
        "import",
        "jsonl",
        tmp_path / "team.gs",
        ROOT / "examples/team.jsonl",
        "--mapping",
        ROOT / "examples/team.toml",
    )
    assert "10 rows" in run(*words)
    assert [
        node["id"] for node in answer("superseded", tmp_path / "team.gs", "login_sessions")["current"]
    ] == ["login_tokens"]


def test_import_csv_reports_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,name,since\na00000,one,2026-01-01\nb00000,two,no date\n")
    (tmp_path / "map.toml").write_text('id = "id"\nkind = "thing"\ncontent = "*"\nvalid_from = "since"\n')
    result = CliRunner().invoke(
        app,
        [
            "import",
            "csv",
            str(tmp_path / "s.gs"),
            str(tmp_path / "rows.csv"),
            "--mapping",
            str(tmp_path / "map.toml"),
            "--json",
        ],
    )
    assert result.exit_code == 0, result.output
    assert "rows.csv:3" in result.stderr
    assert json.loads(result.stdout)["nodes"] == 1


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits over two files, the last one a rename."""
    porcelain = pytest.importorskip("dulwich.porcelain")
    path = tmp_path / "project"
    path.mkdir()
    repo = porcelain.init(str(path))
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)

    def commit(message: str, **files: str) -> None:
        nonlocal start
        for name, text in files.items():
            (path / f"{name}.txt").write_text(text)
        porcelain.add(repo, [str(path / f"{name}.txt") for name in files])
        at = int(start.timestamp())
        porcelain.commit(
            repo, message=message.encode(), author=b"Ana <ana@example.org>", committer=b"Ana <ana@example.org>",
            commit_timestamp=at, author_timestamp=at, commit_timezone=0, author_timezone=0,
        )  # fmt: skip
        start += timedelta(days=3)

    commit("first words", readme="one\n", notes="a\nb\n")
    commit("more words", readme="one\ntwo\n")
    commit("better words", readme="one\ntwo\nthree\n", notes="a\n")
    return path


def test_import_git(repository: Path, tmp_path: Path) -> None:
    done = answer("import", "git", tmp_path / "history.gs", repository)
    assert (done["commits"], done["files"], done["versions"]) == (3, 2, 5)
    assert "0 commits" in run("import", "git", tmp_path / "history.gs", repository)
    assert "git repository" in refused("import", "git", tmp_path / "history.gs", tmp_path / "nowhere")


# ---- the demo ---------------------------------------------------------------------------------


def test_demo_of_a_repository(repository: Path, tmp_path: Path) -> None:
    tour = answer("demo", repository, "--folder", tmp_path / "demo")
    looked, superseded, caused, known, asked = (one["value"] for one in tour["answers"])
    assert looked["id"] == "file:readme.txt"
    assert superseded["chain"][0]["why"] == "more words"
    assert {thing["kind"] for thing in caused["nodes"]} == {"file"}
    assert known["things known now"] == 2
    assert asked[0]["file"] == "readme.txt"
    assert tour["open_next"].startswith("readme.txt")
    again = run("demo", repository, "--folder", tmp_path / "demo")
    assert "nothing new" in again
    assert "because: " in again


def test_demo_without_history_tells_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    porcelain = pytest.importorskip("dulwich.porcelain")
    porcelain.init(str(tmp_path)).close()
    monkeypatch.chdir(tmp_path)
    said = run("demo")
    assert "What a small team knew" in said
    assert "because: no restart may log everybody out again" in said
    assert "100 requests" in said
    assert max(map(len, said.splitlines())) <= 160


def test_demo_without_dulwich_names_the_extra(repository: Path) -> None:
    bare = "import sys; sys.modules['dulwich'] = None; from graphstore.cli.command_line import main; main()"
    command = [sys.executable, "-c", bare, "demo", "--json"]
    tour = json.loads(subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout)
    assert "graphstore[git]" in tour["title"]
    assert Path(tour["open_next"].partition(",")[0]).is_file()


# ---- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("show", "nowhere.gs", "abcdef"),
        ("add", "nowhere.gs", "fact", "{}"),
        ("stats", "nowhere.gs"),
        ("query", "nowhere.gs", "RETURN 1"),
    ],
)
def test_a_store_is_not_made_by_mistake(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(*words).startswith("error: ")
    assert list(tmp_path.iterdir()) == []


REFUSED: list[tuple[Callable[[Path], tuple[object, ...]], str]] = [
    (lambda store: ("show", store, "tokenz"), "tokens"),
    (lambda store: ("link", store, "tokens", "cause", "outage"), "Did you mean"),
    (
        lambda store: ("link", store, "tokens", "related_to", "limits", "--strength", 9),
        "1 (weak) to 5 (strong)",
    ),
    (lambda store: ("revise", store, "limits", "{}", "--valid-from", "2026-05-05T10:00:00"), "time zone"),
    (lambda store: ("end", store, "limits", "--at", "soon"), "ISO 8601"),
    (lambda store: ("add", store, "fact", "{}", "--id", "tokens"), "tokens"),
    (lambda store: ("show", store, "tokens", "--tx", "2999-01-01"), "error:"),
]


@pytest.mark.parametrize(("words", "hint"), REFUSED)
def test_what_the_store_refuses_is_one_line_on_stderr(
    words: Callable[[Path], tuple[object, ...]], hint: str, folder: Path
) -> None:
    before = answer("changes", folder)
    said = refused(*words(folder))
    assert said.startswith("error: ")
    assert hint in said
    assert answer("changes", folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("add",),
        ("add", "x.gs", "fact"),
        ("add", "x.gs", "fact", "not json"),
        ("add", "x.gs", "fact", "[1]"),
        ("diff", "x.gs", "abc", "one", "two"),
        ("retract", "x.gs", "abc"),
        ("links", "x.gs", "abc", "--direction", "sideways"),
        ("query", "x.gs", "RETURN 1", "--format", "xml"),
        ("import", "csv", "x.gs", "rows.csv"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Usage:" in refused(*words, code=2)
    assert list(tmp_path.iterdir()) == []


def test_exit_codes_and_streams_of_the_process(folder: Path) -> None:
    good, bad, wrong = process("stats", folder, "--json"), process("show", folder, "nobody"), process("show")
    assert (good.returncode, bad.returncode, wrong.returncode) == (0, 1, 2)
    assert json.loads(good.stdout)["nodes"] == 3
    assert good.stderr == ""
    assert bad.stdout == ""
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr + wrong.stderr


def test_a_reader_that_leaves_early_gets_no_traceback(folder: Path) -> None:
    for _ in range(3):
        run("add", folder, "fact", json.dumps({"text": "x" * 100_000}))
    with subprocess.Popen(
        [sys.executable, "-m", "graphstore", "query", str(folder), "MATCH (n:Node) RETURN n.content", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        said = running.stderr.read()
    assert "Traceback" not in said


def test_reading_works_beside_a_writer(folder: Path) -> None:
    with graphstore.open(folder) as store:
        store.add_node("fact", {"beside": True}, id="beside")
        assert json.loads(process("show", folder, "beside", "--json").stdout)["node"]["id"] == "beside"
        assert json.loads(
            process("query", folder, "MATCH (n:Node {id: 'beside'}) RETURN n.id AS id", "--json").stdout
        ) == [{"id": "beside"}]
        added = json.loads(process("add", folder, "fact", "{}", "--json").stdout)["id"]
        assert {} == store.node(added).content


# ---- branches ---------------------------------------------------------------------------------


def test_a_branch_is_made_written_to_compared_and_merged(folder: Path) -> None:
    assert "branch trial begins" in run("branch", folder, "trial", "--reason", "what if")
    run("--branch", "trial", "revise", folder, "limits", '{"limit": 500}', "--reason", "more")

    assert {"limit": 500} == answer("--branch", "trial", "show", folder, "limits")["node"]["content"]
    assert {"limit": 300, "by": "ben"} == answer("show", folder, "limits")["node"]["content"]
    assert ["limits"] == [each["id"] for each in answer("compare", folder, "trial")["changed"]]
    assert ["trial"] == [each["name"] for each in answer("branches", folder)]
    assert "trial" in run("branches", folder)
    assert "merged: 0 added, 1 changed" in run("merge", folder, "trial")
    assert {"limit": 500} == answer("show", folder, "limits")["node"]["content"]
    assert "deleted branch trial" in run("delete-branch", folder, "trial")
    assert "no branch 'trial'" in refused("--branch", "trial", "show", folder, "limits")


def test_a_branch_takes_over_what_the_trunk_has(folder: Path) -> None:
    run("branch", folder, "trial")
    run("add", folder, "fact", '{"n": 1}', "--id", "later")

    assert "merged: 1 added" in run("--branch", "trial", "pull", folder)
    assert "later" in run("--branch", "trial", "get", folder, "later")
    assert "--branch NAME" in refused("pull", folder, code=2)


def test_a_merge_with_conflicts_tells_them_and_writes_nothing(folder: Path) -> None:
    run("branch", folder, "trial")
    run("--branch", "trial", "revise", folder, "limits", '{"limit": 500}')
    run("revise", folder, "limits", '{"limit": 400}')

    said = run("merge", folder, "trial", code=1)
    assert "not merged: 2 to decide." in said
    assert "node limits from 2026-01-10" in said
    assert "is no decision" in refused("merge", folder, "trial", "--decide", "limits=mine", code=2)
    assert {"limit": 400} == answer("show", folder, "limits")["node"]["content"]
    assert answer("merge", folder, "trial", "--decide", "limits=branch")["merged"]
    assert {"limit": 500} == answer("show", folder, "limits")["node"]["content"]


def test_what_concerns_the_whole_store_is_refused_on_a_branch(folder: Path) -> None:
    run("branch", folder, "trial")
    assert "on the store itself" in refused(
        "--branch", "trial", "erase", folder, "limits", "--reason", "x", "--yes"
    )


def test_a_link_is_asked_for_and_taken_back_by_its_id_or_by_what_it_says(folder: Path) -> None:
    ends = ("limits", "uses", "sessions")
    for start, stop in (
        ("2026-01-01", "2026-01-05"),
        ("2026-01-05", "2026-02-01"),
        ("2026-03-01", "2026-04-01"),
    ):
        made = answer("link", folder, *ends, "--valid-from", start, "--valid-to", stop)
    rows = answer("link-history", folder, *ends)

    assert ["2026-01-01", "2026-01-05", "2026-03-01"] == [row["valid_from"][:10] for row in rows]
    assert [made["id"]] == [row["id"] for row in answer("history", folder, made["id"])]
    assert f"{made['id']} (limits uses sessions) was ended" in run(
        "what-superseded", folder, made["id"], "--valid", "2026-05-01"
    )
    assert f"{made['id']} (limits uses sessions) does not hold." in run(
        "get", folder, made["id"], "--valid", "2026-05-01"
    )
    run(
        "unlink",
        folder,
        "--source",
        ends[0],
        "--kind",
        ends[1],
        "--target",
        ends[2],
        "--valid-from",
        "2026-01-03",
    )
    assert ["2026-01-03"] == [row["valid_to"][:10] for row in answer("link-history", folder, *ends)]
    assert "Give one of the two" in refused("unlink", folder)
    assert "unlinked since 2026-03-01" in run("what-superseded", folder, made["id"], "--valid", "2026-03-15")
