"""The shell without a terminal: what a statement is, what each command answers, every mode by its value, and what is offered to complete."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore import GraphStore
from graphstore.cli import commands
from graphstore.cli.command_line import app
from graphstore.cli.shell.completion import Names, suggestions
from graphstore.cli.shell.output import MOST_ROWS, Mode, Output
from graphstore.cli.shell.parser import cut, inputs, is_complete
from graphstore.cli.shell.schema import GraphVocabulary, ids, of_tables, of_view
from graphstore.cli.shell.shell import COMMANDS, Shell, Stopping
from graphstore.errors import InvalidError, NotFoundError, QueryError
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("the shell reads a store that it opened")
ROOT = Path(__file__).parents[3]
LIMITS = "MATCH (n:Node) WHERE n.kind = 'fact' RETURN n.id AS id, n.limit AS per_minute ORDER BY id;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A decision that was replaced because of an outage, a fact with two versions, a snapshot between them, and a branch."""
    path, clock = tmp_path / "team.gs", Clock("2026-01-10")
    with graphstore.open(path, author="ana", clock=clock) as store:
        store.add_node("decision", {"says": "sessions"}, id="sessions", text="logins are sessions")
        store.add_node("fact", {"limit": 100, "unit": "a minute"}, id="limits")
        clock.set("2026-02-02")
        store.record_event("outage", "nobody could log in", id="outage")
        clock.set("2026-02-10")
        store.add_node(
            "decision", {"says": "tokens"}, id="tokens", text="logins are tokens",
            supersedes=["sessions"], reason="no restart may log everybody out",
        )  # fmt: skip
        store.link("tokens", "caused_by", "outage", reason="it hurt", strength=4)
        store.snapshot("release")
        clock.set("2026-02-15")
        store.revise("limits", {"limit": 300, "by": "ben"}, valid_from="2026-02-15")
        store.branch("idea").add_node("fact", {"limit": 900}, id="wild")
    return path


def ask(folder: Path, *lines: str, code: int = 0, words: tuple[str, ...] = ()) -> str:
    """Standard output of a shell that is given some lines."""
    result = CliRunner().invoke(
        app, ["shell", str(folder), *words], input="\n".join(lines), env={"COLUMNS": "160"}
    )
    assert result.exit_code == code, f"{lines}\n{result.output}\n{result.exception!r}"
    return result.stdout


def refused(folder: Path, *lines: str, code: int = 1, words: tuple[str, ...] = ()) -> str:
    """Standard error of a shell that is given some lines, and ends with `code`."""
    result = CliRunner().invoke(
        app, ["shell", str(folder), *words], input="\n".join(lines), env={"COLUMNS": "160"}
    )
    assert result.exit_code == code, f"{lines}\n{result.output}\n{result.exception!r}"
    return result.stderr


def rows(folder: Path, *lines: str) -> list[dict[str, str]]:
    """The rows of the last answer, as CSV gives them."""
    return list(csv.DictReader(io.StringIO(ask(folder, *lines[:-1], ":mode csv", lines[-1]))))


def document(folder: Path, *lines: str) -> Any:
    """The value of the only answer, as JSON gives it."""
    return json.loads(ask(folder, ":mode json", *lines))


# ---------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("text", "ended", "rest"),
    [
        ("RETURN 1", [], "RETURN 1"),
        ("RETURN 1; RETURN 2;", ["RETURN 1", " RETURN 2"], ""),
        ("RETURN ';'", [], "RETURN ';'"),
        ("RETURN ';'; // ; said", ["RETURN ';'"], " // ; said"),
        ("RETURN 'a\n;", [], "RETURN 'a\n;"),
        ("RETURN /* ; */ 1;", ["RETURN /* ; */ 1"], ""),
        ("RETURN /* ;", [], "RETURN /* ;"),
        ("MATCH (`a;b`) RETURN 1;", ["MATCH (`a;b`) RETURN 1"], ""),
    ],
)
def test_a_statement_ends_outside_strings_names_and_comments(text: str, ended: list[str], rest: str) -> None:
    assert (ended, rest) == cut(text)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("  // nothing", True),
        (":why x", True),
        ("quit", True),
        ("RETURN 1", False),
        ("RETURN 1;", True),
        ("RETURN 1; // done", True),
        ("RETURN ';", False),
        ("RETURN 1; RETURN", False),
    ],
)
def test_enter_sends_what_is_whole(text: str, complete: bool) -> None:
    assert complete == is_complete(text)


def test_lines_are_cut_into_statements_and_commands_as_they_come() -> None:
    lines = [
        ":mode csv\n",
        "MATCH (n:Node)\n",
        ":unlikely\n",
        "RETURN 1; RETURN 2;\n",
        "// end\n",
        "RETURN 3",
    ]

    assert [":mode csv", "MATCH (n:Node)\n:unlikely\nRETURN 1", "RETURN 2", "// end\nRETURN 3"] == list(
        inputs(lines)
    )


def test_a_command_may_stand_behind_a_statement_on_its_line(folder: Path) -> None:
    assert is_complete("RETURN 1 AS x; :get limits")
    assert ["RETURN 1 AS x", ":get limits", "RETURN 2"] == list(
        inputs(["RETURN 1 AS x; :get limits\n", "RETURN 2;\n"])
    )
    assert "1\n" in ask(folder, "RETURN 1 AS x; :mode\tcsv", "RETURN 1 AS x;")


def test_the_last_statement_needs_no_semicolon(folder: Path) -> None:
    assert [{"x": "1"}] == rows(folder, "RETURN 1\nAS x")


# ---------------------------------------------------------------- modes, each by value


def test_table_mode(folder: Path) -> None:
    head, rule, *body = ask(folder, LIMITS).splitlines()

    assert ["id", "per_minute"] == head.split()
    assert {"─"} == set(rule)
    assert [["limits", "300"]] == [line.split() for line in body]


def test_json_mode(folder: Path) -> None:
    assert [{"id": "limits", "per_minute": 300}] == document(folder, LIMITS)


def test_csv_mode(folder: Path) -> None:
    assert "id,per_minute\nlimits,300\n" == ask(folder, ":mode csv", LIMITS)


def test_markdown_mode(folder: Path) -> None:
    assert "| id | per_minute |\n| --- | --- |\n| limits | 300 |\n" == ask(folder, ":mode markdown", LIMITS)


def test_markdown_mode_escapes_what_markdown_would_make_something_of(folder: Path) -> None:
    given = r':param x "a|b *c* _d_ in_word <i>\n[e](f)"'
    told = ask(folder, ":mode markdown", given, "RETURN $x AS x;").splitlines()[-1]

    assert r"| a\|b \*c\* \_d\_ in_word &lt;i><br>\[e\](f) |" == told


def test_a_table_shows_a_column_that_is_empty(folder: Path) -> None:
    assert ["a", "b"] == ask(folder, "RETURN 1 AS a, NULL AS b;").splitlines()[0].split()


def test_the_mode_can_be_given_at_the_start(folder: Path) -> None:
    assert "x\n1\n" == ask(folder, "RETURN 1 AS x", words=("--mode", "csv"))
    assert "unknown mode 'xml'. Valid: table, json, csv, markdown" in " ".join(
        refused(folder, words=("--mode", "xml"), code=2).replace("│", "").split()
    )


# ---------------------------------------------------------------- what is asked of one thing


def test_why_tells_what_led_to_it(folder: Path) -> None:
    assert [("0", "tokens", ""), ("1", "outage", "it hurt")] == [
        (row["depth"], row["id"], row["reason"]) for row in rows(folder, ":why tokens")
    ]
    assert "because: it hurt" in ask(folder, ":why tokens")
    assert "tokens" == document(folder, ":why tokens")["root"]["id"]


def test_superseded_tells_who_and_why(folder: Path) -> None:
    told = [("superseded", "tokens", "ana", "no restart may log everybody out", "2026-02-10T00:00:00Z")]

    assert told == [
        (row["how"], row["id"], row["who"], row["why"], row["since"])
        for row in rows(folder, ":superseded sessions")
    ]
    assert "standing now: tokens-v1" in ask(folder, ":superseded sessions")
    assert ["tokens"] == [one["id"] for one in document(folder, ":superseded sessions")["current"]]


def test_history_tells_every_version(folder: Path) -> None:
    assert [("limits-v1", "2026-02-15T00:00:00Z"), ("limits-v2", "")] == [
        (row["ref"], row["valid_to"]) for row in rows(folder, ":history limits")
    ]


def test_links_tells_both_ways(folder: Path) -> None:
    assert [("tokens", "caused_by", "outage")] == [
        (row["source"], row["kind"], row["target"]) for row in rows(folder, ":links outage")
    ]
    assert ["supersedes", "caused_by"] == [row["kind"] for row in rows(folder, ":links tokens")]


def test_link_history_tells_every_row_of_a_link(folder: Path) -> None:
    assert [("tokens", "caused_by", "outage", "it hurt")] == [
        (row["source"], row["kind"], row["target"], row["reason"])
        for row in rows(folder, ":link-history tokens caused_by outage")
    ]
    assert [] == rows(folder, ":link-history tokens uses outage")


def test_get_tells_all_of_one_thing(folder: Path) -> None:
    told = {row["field"]: row["value"] for row in rows(folder, ":get limits")}

    assert ("fact", "2", '{"by":"ben","limit":300}') == (told["kind"], told["number"], told["content"])
    assert "limits-v1" in ask(folder, ":get limits")
    assert 2 == len(document(folder, ":get limits")["history"])


def test_diff_of_two_versions(folder: Path) -> None:
    assert [("limit", "changed", "100", "300"), ("unit", "removed", "a minute", ""), ("by", "added", "", "ben")] == [
        (row["path"], row["type"], row["old"], row["new"]) for row in rows(folder, ":diff limits 1 2")
    ]  # fmt: skip


def test_diff_of_two_times(folder: Path) -> None:
    assert [
        ("added", "node", "tokens"), ("removed", "node", "sessions"), ("changed", "node", "limits"), ("added", "event", "outage"),
    ] == [(row["change"], row["what"], row["id"]) for row in rows(folder, ":diff 2026-01-20 now") if row["what"] != "link"]  # fmt: skip
    assert ["limits"] == [row["id"] for row in rows(folder, ":diff release 2026-02-16")]
    assert "nothing differs.\n" == ask(folder, ":diff release 2026-02-12")


def test_search_tells_what_a_text_calls_to_mind(folder: Path) -> None:
    assert ["tokens", "outage"] == [row["id"] for row in rows(folder, ":search tokens for logins")]


def test_what_the_command_line_reads_is_a_command_here(folder: Path) -> None:
    stores = {name: one for name, one in commands.COMMANDS.items() if one.on == "store"}
    reads = {name.split()[0] for name, one in stores.items() if not one.is_write}

    assert {f":{name}" for name in reads - {"query", "sql", "export", "project", "lake"}} <= set(COMMANDS)
    assert "because: it hurt" in ask(folder, ":walk outage --kind causes --direction out")
    assert ["outage", "tokens"] == [row["id"] for row in rows(folder, ":path outage tokens --direction in")]
    assert {"limits-v1", "limits-v2"} == {row["ref"] for row in rows(folder, ":history limits --all")}
    assert [] == document(folder, ":sessions list")
    assert 0 == document(folder, ":memory stats")["chunks"]


def test_commands_answer_to_the_names_that_the_command_line_understands(folder: Path) -> None:
    assert (
        document(folder, ":get limits")
        == document(folder, ":show limits")
        == document(folder, ":inspect limits")
    )
    assert document(folder, ":why tokens") == document(folder, ":causes tokens")


def test_what_a_command_does_not_take_is_refused_with_what_it_takes(folder: Path) -> None:
    assert "':path FROM TO' cannot be asked so: " in refused(folder, ":path tokens outage --sideways")
    assert "unknown command 'sessions lst'" in refused(folder, ":sessions lst")


def test_schema_of_the_view(folder: Path) -> None:
    told = document(folder, ":schema")

    assert {"Node": 2, "Event": 1, "Absent": 1} == {
        name: label["count"] for name, label in told["labels"].items()
    }
    assert ({"decision": 1, "fact": 1}, {"outage": 1}) == (told["kinds"], told["types"])
    assert {"CAUSED_BY": 1, "SUPERSEDES": 1} == told["links"]
    assert "INT64" == told["labels"]["Node"]["properties"]["limit"]
    assert ["label"] * 3 == [row["what"] for row in rows(folder, ":schema")][:3]


def test_schema_of_the_tables(folder: Path) -> None:
    told = document(folder, ":tables", ":schema")

    assert "TIMESTAMP" == told["Version"]["columns"]["tx_from"]
    assert {"Event", "Node", "Occurrence", "Op", "Version"} == {
        name for name, table in told.items() if table["type"] == "node"
    }


# ---------------------------------------------------------------- where the shell looks


def test_as_of_takes_a_time_or_a_snapshot_and_now_goes_back(folder: Path) -> None:
    text = "MATCH (n:Node) RETURN n.id AS id ORDER BY id;"

    assert ["limits", "sessions"] == [row["id"] for row in rows(folder, ":asof 2026-01-20", text)]
    assert "100" == rows(folder, ":asof release", LIMITS)[0]["per_minute"]
    assert "300" == rows(folder, ":asof release", ":now", LIMITS)[0]["per_minute"]


def test_snapshots_are_listed(folder: Path) -> None:
    assert [("release", "2026-02-10T00:00:00.000002Z", "ana")] == [
        (row["name"], row["tx"], row["author"]) for row in rows(folder, ":snapshots")
    ]


def test_each_axis_alone(folder: Path) -> None:
    assert "100" == rows(folder, ":valid 2026-02-12", LIMITS)[0]["per_minute"]
    assert "100" == rows(folder, ":tx 2026-02-12", LIMITS)[0]["per_minute"]
    assert "100" == rows(folder, ":tx 2026-02-12 12:00Z", ":valid 2026-03-01", LIMITS)[0]["per_minute"]


def test_the_coordinate_can_be_given_at_the_start(folder: Path) -> None:
    assert "id,per_minute\nlimits,100\n" == ask(folder, ":mode csv", LIMITS, words=("--as-of", "release"))


def test_commands_answer_at_the_coordinate(folder: Path) -> None:
    assert [] == rows(folder, ":asof 2026-02-05", ":superseded sessions")


def test_tables_ask_the_whole_history_and_view_goes_back(folder: Path) -> None:
    text = "MATCH (v:Version) RETURN v.ref AS ref ORDER BY ref, v.tx_from;"
    told = ["limits-v1", "limits-v1", "limits-v2", "sessions-v1", "sessions-v1", "tokens-v1"]

    assert told == [row["ref"] for row in rows(folder, ":tables", text)]
    assert "300" == rows(folder, ":tables", ":view", LIMITS)[0]["per_minute"]


def test_branch_turns_to_a_branch_and_to_the_trunk(folder: Path) -> None:
    assert ["limits", "wild"] == [row["id"] for row in rows(folder, ":branch idea", LIMITS)]
    assert ["limits"] == [row["id"] for row in rows(folder, ":branch idea", ":branch trunk", LIMITS)]
    assert ["idea"] == [row["name"] for row in rows(folder, ":branch")]


def test_the_branch_can_be_given_at_the_start_and_left(folder: Path) -> None:
    words = [
        "--branch",
        "idea",
        "shell",
        str(folder),
        "--mode",
        "csv",
        "-c",
        LIMITS,
        "-c",
        ":branch trunk",
        "-c",
        LIMITS,
    ]

    assert (
        "id,per_minute\nlimits,300\nwild,900\nid,per_minute\nlimits,300\n"
        == CliRunner().invoke(app, words).stdout
    )


def test_the_prompt_tells_the_coordinate_when_it_is_not_now(store: GraphStore, clock: Clock) -> None:
    store.branch("idea")
    clock.move(days=1)
    shell = Shell(store, "team.gs", Output())
    told = [shell.prompt()]
    for line in (
        ":valid 2026-01-20",
        ":tx 2026-02-01",
        ":asof 2026-02-01",
        ":branch idea",
        ":tables",
        ":now",
        ":view",
    ):
        assert shell.run(line)
        told.append(shell.prompt())

    assert [
        "team.gs> ", "team.gs (valid 2026-01-20)> ", "team.gs (valid 2026-01-20, tx 2026-02-01)> ", "team.gs (as of 2026-02-01)> ",
        "team.gs/idea (as of 2026-02-01)> ", "team.gs/idea (tables)> ", "team.gs/idea (tables)> ", "team.gs/idea> ",
    ] == told  # fmt: skip


def test_it_follows_the_writer_unless_it_is_pinned(folder: Path) -> None:
    def count(shell: Shell) -> int:
        return int(shell.query("MATCH (n:Node) RETURN count(*) AS n").result.single()["n"])

    with graphstore.open(folder) as writer, graphstore.open(folder, read_only=True) as reader:
        shell = Shell(reader, "team.gs", Output())
        assert (True, 2) == (shell.run("RETURN 1"), count(shell))
        writer.add_node("note", {"a": 1})
        assert (True, 3) == (shell.run("RETURN 1"), count(shell))
        now = writer.as_of().at.tx.isoformat()
        assert shell.run(f":tx {now}")
        writer.add_node("note", {"a": 2})
        assert (True, 3) == (shell.run("RETURN 1"), count(shell))
        assert (True, 3) == (shell.run(":refresh"), count(shell))
        assert (True, 4) == (shell.run(":now"), count(shell))


# ---------------------------------------------------------------- how it behaves


def test_parameters_are_given_to_the_statements_that_name_them(folder: Path) -> None:
    text = "MATCH (n:Node) WHERE n.kind = $kind AND n.limit > $least RETURN n.id AS id;"

    assert [{"id": "limits"}] == rows(
        folder, ":param kind fact", ":param $least 200", ":param other [1]", text
    )
    assert [] == rows(folder, ":param kind fact", ":param least 300", text)
    assert {"kind": "fact", "least": 200} == document(
        folder, ":param kind fact", ":param least 200", ":param"
    )
    assert "no value. Give one with :param" in refused(folder, text)


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        ("csv", lambda path: list(csv.DictReader(path.open()))),
        ("json", lambda path: json.loads(path.read_text())),
        ("parquet", lambda path: __import__("pyarrow.parquet").parquet.read_table(path).to_pylist()),
        ("md", lambda path: [dict(zip(("x", "y"), path.read_text().splitlines()[2].strip("| ").split(" | "), strict=True))]),
    ],
)  # fmt: skip
def test_export_writes_the_last_answer(
    folder: Path, tmp_path: Path, ending: str, read: Callable[[Path], Any]
) -> None:
    path = tmp_path / f"out.{ending}"
    ask(folder, "RETURN 'a' AS x, '1' AS y;", ":help", f":export {path}")

    assert [{"x": "a", "y": "1"}] == read(path)
    assert "exists. Choose another name" in refused(folder, "RETURN 1;", f":export {path}")


def test_export_of_all_rows_and_of_a_node(folder: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    ask(folder, "UNWIND range(1, 3000) AS x RETURN x;", f":export {tmp_path}/many.parquet",
        "MATCH (n:Node) RETURN n ORDER BY n.id;", f":export {tmp_path}/nodes.parquet")  # fmt: skip

    assert 3000 == pyarrow.parquet.read_table(tmp_path / "many.parquet").num_rows
    nodes = pyarrow.parquet.read_table(tmp_path / "nodes.parquet").to_pylist()
    assert ["limits", "tokens"] == [row["n"]["id"] for row in nodes]


def test_what_cannot_be_exported_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "no answer to export yet" in refused(folder, f":export {tmp_path}/a.csv")
    assert "unknown ending of a file '.xls'" in refused(folder, "RETURN 1;", f":export {tmp_path}/a.xls")
    assert "No such file" in refused(folder, "RETURN 1;", f":export {tmp_path}/no/a.csv")


def test_timing_is_told_beside_the_answers(folder: Path) -> None:
    assert "1 row, " in refused(folder, ":timing on", "RETURN 1;", code=0)
    assert "row," not in refused(folder, "RETURN 1;", code=0)


def test_help_lists_every_command_and_finds_one(folder: Path) -> None:
    assert list(COMMANDS) == [row["command"].split()[0] for row in rows(folder, ":help")]
    assert [":why ID"] == [row["command"] for row in rows(folder, ":help why")]


def test_quit_ends_it(folder: Path) -> None:
    assert "x\n1\n" == ask(folder, ":mode csv", "RETURN 1 AS x;", ":quit", "RETURN 2 AS x;")


# ---------------------------------------------------------------- errors


def test_the_first_error_ends_it_with_exit_code_1(folder: Path) -> None:
    assert "x\n1\n" == ask(folder, ":mode csv", "RETURN 1 AS x;", "MATC;", "RETURN 2 AS x;", code=1)


def test_keep_going_goes_on_after_an_error(folder: Path) -> None:
    lines = (":mode csv", "MATC;", "RETURN 2 AS x;")

    assert "x\n2\n" == ask(folder, *lines, code=1, words=("--keep-going",))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("CREATE (n:Node {id: 'x'});", "a query only reads; the store's verbs write"),
        ("MATCH (n) SET n.kind = 'x';", "The shell only reads. Write with a command, such as graphstore add"),
        (":whi tokens", "unknown command ':whi'. Valid: :asof, "),
        (":whi tokens", "Did you mean ':why'?"),
        (":why", "':why' cannot be done. Write :why ID"),
        (":now 2026-01-01", "Write :now"),
        (":why outtage", "no node or event 'outtage'. Nearest: 'outage'"),
        (":asof relese", "no snapshot 'relese'. Nearest: 'release'"),
        (":asof 2026-02-01T12:00", "has no time zone"),
        (":branch ideas", "Nearest: 'idea'"),
        (":mode xml", "unknown mode 'xml'. Valid: csv, json, markdown, table"),
        (":timing maybe", "unknown timing 'maybe'. Valid: off, on."),
        (":diff limits", "Write :diff ID 1 3"),
        (":diff limits 1 9", "9"),
        (":diff a b c", "Give an id and two version numbers, or two times"),
        (":param 1a 3", "'1a' cannot be the name of a parameter"),
        ("RETURN 'a", "never ends"),
        ("MATCH (n:Node) RETURN n.id AS then;", "mismatched input 'then' (line: 1, offset: 30)"),
        ("MATCH (n:Node) RETURN n.lim;", "no property 'lim'"),
    ],
)
def test_what_is_refused_says_so_in_one_line(folder: Path, line: str, said: str) -> None:
    told = refused(folder, line)

    assert said in told
    assert ("error: ", 1) == (told[:7], told.count("\n"))


def test_a_refused_coordinate_leaves_the_shell_where_it_was(folder: Path) -> None:
    with graphstore.open(folder, read_only=True) as store:
        shell = Shell(store, "team.gs", Output())
        assert [True, False, False] == [
            shell.run(line) for line in (":asof release", ":asof nowhere", ":branch none")
        ]
        assert "team.gs (as of release)> " == shell.prompt()
        with pytest.raises(NotFoundError):
            shell.answer(":get nothing_of_that_name")
        with pytest.raises(QueryError):
            shell.answer("RETURN $x")
        with pytest.raises(InvalidError):
            shell.answer(":nothing")


def test_a_store_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "none.gs" in refused(tmp_path / "none.gs", "RETURN 1;")


# ---------------------------------------------------------------- a process of its own


def test_a_pipe_gets_plain_answers_and_nothing_else(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphstore", "shell", str(folder)],
        input=":mode csv\nRETURN 1 AS x;\n:nothing\nRETURN 2 AS x;\n", capture_output=True, text=True, cwd=ROOT, timeout=60,
        env={**os.environ, "TERM": "xterm-256color", "FORCE_COLOR": ""},
    )  # fmt: skip

    assert ("x\n1\n", 1) == (done.stdout, done.returncode)
    assert "error: unknown command ':nothing'" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


# ---------------------------------------------------------------- on a terminal, what is shown


def test_a_terminal_is_shown_the_beginning_of_a_long_table(
    store: GraphStore, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(store, "team.gs", Output(terminal=True, timing=True))
    shell.run("UNWIND range(1, 120) AS x RETURN x;")
    lines = capsys.readouterr().out.splitlines()

    assert MOST_ROWS + 4 == len(lines)  # and the head, its rule, what is hidden, the time
    assert "… and 70 more rows (:mode and :export give all)" == lines[-2].strip()
    assert lines[-1].startswith("120 rows, ")


def test_a_table_that_is_piped_has_a_line_for_each_row(folder: Path) -> None:
    wide = "é" * 300

    assert f"a{' ' * 62}b\n{'─' * 64}\n{wide}   1\nx y{' ' * 60}2\n" == ask(
        folder, f"UNWIND [['{wide}', '1'], ['x\ny', '2']] AS r RETURN r[1] AS a, r[2] AS b;"
    )


@pytest.mark.rest
def test_a_table_of_very_many_rows_is_not_laid_out(folder: Path) -> None:
    lines = ask(folder, "UNWIND range(1, 200000) AS x RETURN x, 'é' AS y;").splitlines()

    assert ["x        y", "──────────", "1        é", "200000   é"] == [*lines[:3], lines[-1]]


def test_what_is_refused_has_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    Output(terminal=True).error(InvalidError("no."))

    assert "error: no.\n" == capsys.readouterr().err


def test_every_other_mode_gives_all_on_a_terminal(
    store: GraphStore, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(store, "team.gs", Output(terminal=True, mode=Mode.csv))
    shell.run("UNWIND range(1, 120) AS x RETURN x;")

    assert 121 == len(capsys.readouterr().out.splitlines())


def test_a_terminal_is_told_of_a_node_what_it_has(
    store: GraphStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.add_node("note", {"a": "x" * 1000}, id="long")
    Shell(store, "team.gs", Output(terminal=True)).run("MATCH (n:Node) RETURN n;")
    told = capsys.readouterr().out.replace("\n", "")

    assert "null" not in told
    assert "…" in told
    assert len(told) < 1000


# ---------------------------------------------------------------- completion

VOCABULARY = GraphVocabulary(
    {
        "Node": ("id", "kind", "limit", "odd name"),
        "Event": ("id", "type", "occurred_at"),
        "Absent": ("id", "standing"),
    },
    ("CAUSED_BY", "CONTINUATION", "SUPERSEDES"),
    ("reason", "since"),
    {"kind": ("decision", "fact")},
)
NAMES = Names(
    VOCABULARY,
    {
        ":asof": ("a time", ("coordinate",)), ":diff": ("what changed", ("id|coordinate", "coordinate")),
        ":export": ("write", ("file",)), ":mode": ("how", ("mode",)), ":now": ("now", ()), ":why": ("why", ("id",)),
    },
    {":superseded": ("what took its place", ("id",)), ":where": ("where", ())},
    {"mode": ("table", "json"), "coordinate": ("release", "before the move")},
    ("kind", "least"),
    lambda prefix: [("outage", "Event outage"), ("other", "Node fact")],
    lambda prefix: [(f"{prefix}.csv", "")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        (":", [":asof ", ":diff ", ":export ", ":mode ", ":now", ":why "]),
        (":W", [":why "]),
        (":supers", [":superseded "]),
        (":superseded ou", ["outage"]),
        (":mode ", ["table", "json"]),
        (":mode j", ["json"]),
        (":why ou", ["outage"]),
        (":asof before the", ["before the move"]),
        (":diff o", ["outage", "other"]),
        (":diff rel", ["release"]),
        (":diff release b", ["before the move"]),
        (":export out", ["out.csv"]),
        (":now ", []),
        (":nothing x", []),
        ("MATCH (n:", ["Node", "Event", "Absent"]),
        ("MATCH (n:No", ["Node"]),
        ("MATCH (n:Node:Ev", ["Event"]),
        ("MATCH (n)-[:", ["CAUSED_BY", "CONTINUATION", "SUPERSEDES"]),
        ("MATCH (n)-[r:ca", ["CAUSED_BY"]),
        ("MATCH (n)-[r:CAUSED_BY|su", ["SUPERSEDES"]),
        ("MATCH (n:Event) RETURN n.", ["id", "type", "occurred_at"]),
        ("MATCH (n:Event) RETURN n.o", ["occurred_at"]),
        ("MATCH (n:Node) RETURN n.o", ["`odd name`"]),
        ("MATCH (n:Node)-[r:SUPERSEDES]->(m) RETURN r.", ["reason", "since"]),
        ("MATCH (n:Node)-[r:SUPERSEDES]->(m) RETURN m.s", ["standing", "since"]),
        ("MATCH (n:Node {", ["id", "kind", "limit", "`odd name`"]),
        ("MATCH (n:Node {id: $x, ki", ["kind"]),
        ("MATCH ()-[:SUPERSEDES {", ["reason", "since"]),
        ("MATCH (n:Node {kind: '", ["decision", "fact"]),
        ("MATCH (n) WHERE n.kind = 'f", ["fact"]),
        ("MATCH (n) WHERE n.id = \"out", ["outage"]),
        ("MATCH (n {id: 'ot", ["other"]),
        ("MATCH (n) WHERE n.kind = $", ["$kind", "$least"]),
        ("MATCH (n) WHERE n.kind = $k", ["$kind"]),
        ("MAT", ["MATCH"]),
        ("mat", ["match"]),
        ("RETURN 1; mat", ["match"]),
        ("MATCH (node:Node) RETURN no", ["node", "none", "not", "nodes("]),
        ("MATCH (n) RETURN coun", ["count", "count("]),
        ("RETURN 1 AS m", []),
        ("RETURN 1 // MAT", []),
        ("RETURN 'it', mat", ["match"]),
    ],
)  # fmt: skip
def test_completion(before: str, offered: list[str]) -> None:
    assert offered == [one.text for one in suggestions(before, NAMES)]


def test_a_completion_says_what_it_replaces_and_what_it_is() -> None:
    assert [("outage", 2, "Event outage")] == suggestions(":why OU", NAMES)
    assert [("CAUSED_BY", 3, "link")] == suggestions("MATCH ()-[:cau", NAMES)
    assert ["Node", "Event, Absent"] == [
        one.summary for one in suggestions("MATCH (n:Node) RETURN n.id", NAMES)
    ] + [one.summary for one in suggestions("MATCH (n:Event:Absent) RETURN n.id", NAMES)]


def test_names_are_those_of_the_store(folder: Path) -> None:
    with graphstore.open(folder, read_only=True) as store:
        known, tables = of_view(store.as_of()), of_tables(store)
        found = ids(store.as_of(), "s")

    assert ("by", "limit", "says") == known.labels["Node"][-3:]
    assert {"kind": ("decision", "fact"), "type": ("outage",)} == known.values
    assert {"SUPERSEDES", "CAUSED_BY", "FORK"} <= set(known.kinds)
    assert ("id", "kind", "key", "scope", "tx_from") == tables.labels["Node"]
    assert {"HAS_VERSION", "LINK", "SUPERSEDES"} <= set(tables.kinds)
    assert [("sessions", "Absent decision logins are sessions")] == found


# ---------------------------------------------------------------- Ctrl-C


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_is_raised_once_at_a_time() -> None:
    stopping = Stopping()
    with stopping.minded():
        with stopping.raised():
            with pytest.raises(KeyboardInterrupt):
                interrupt()
            interrupt()
        with stopping.raised(), pytest.raises(KeyboardInterrupt):
            interrupt()


def test_ctrl_c_between_two_turns_does_nothing() -> None:
    stopping = Stopping()
    with stopping.minded():
        interrupt()
        with stopping.raised():
            pass
        interrupt()


def test_ctrl_c_waits_for_the_end_of_what_must_not_be_left_half_done() -> None:
    done = []
    stopping = Stopping()
    with stopping.minded(), stopping.raised(), pytest.raises(KeyboardInterrupt), stopping.held():
        interrupt()
        done.append("all of it")

    assert ["all of it"] == done
