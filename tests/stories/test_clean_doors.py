"""Hostile text in every field of a store: no person and no agent is shown what would be obeyed or hidden, and programs get it exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore import GraphStore, mcp
from graphstore.cli.command_line import app
from graphstore.cli.printing import clean as used_by_the_command_line
from graphstore.values.text import clean, clean_json, line
from tests.support.agent import agent

DIRECTING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HIDDEN = "\u00ad\u034f\u115f\u180e\u200b\u200c\u200d\u2060\u2063\u3164\ufeff\U000e0041\U000e007f\U000e0100"
OBEYED = "\x85\x9b31m\u2028\u2029"  # an id may hold these
CONTROLS = "\x00\x07\x1b[31m\x1b]0;title\x07\x7f"
NAME = f"x{DIRECTING}{HIDDEN}{OBEYED}y"
TEXT = f"see{CONTROLS}{NAME} [red]it[/red] 👩‍💻"
FORBIDDEN = {*DIRECTING, *HIDDEN, *OBEYED, *CONTROLS} - {*"31m[]0;title", "\u200d"} | {
    *map(chr, range(0xD800, 0xE000))
}


def shown(text: str) -> str:
    """What a person is shown, checked."""
    found = {hex(ord(char)) for char in FORBIDDEN & {*text}}
    assert not found, found
    assert "x\u200d" not in text and "\u200dy" not in text
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "team.gs"
    with graphstore.open(path, author=TEXT) as store:
        fill(store)
    return path


def fill(store: GraphStore) -> None:
    event = store.record_event(
        "error", TEXT, id=f"event {NAME}", source=TEXT, agent=TEXT, metadata={TEXT: TEXT}, sender=TEXT, sender_name=TEXT, thread=TEXT
    ).event  # fmt: skip
    node = store.add_node(
        f"kind {NAME}", {TEXT: TEXT}, id=f"id {NAME}", text=TEXT, tags=[TEXT], source=TEXT, trigger=TEXT, reason=TEXT, key=f"key {NAME}"
    )  # fmt: skip
    old = store.add_node("fact", {"says": TEXT}, id=f"old {NAME}", tags=[TEXT])
    store.supersede(old.id, by=node.id, reason=TEXT)
    store.link(node.id, "caused_by", event.id, reason=TEXT, metadata={TEXT: TEXT}, id=f"link {NAME}")
    store.revise(node.id, {TEXT: "anew"}, reason=TEXT, text=f"anew {TEXT}")
    store.snapshot(f"named {NAME}")
    store.branch(f"line {NAME}")


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[GraphStore]:
    with graphstore.open(folder, read_only=True) as opened:
        yield opened


ID, OLD, EVENT = f"id {NAME}", f"old {NAME}", f"event {NAME}"
PRINTED = [
    ("get", ID), ("get", EVENT), ("history", ID, "--all"), ("links-from", ID), ("what-superseded", OLD), ("causes", ID), ("changes",),
    ("events", "--since", "7d"), ("timeline",), ("recall", "see"), ("snapshots",), ("branches",), ("diff", ID, "1", "2"),
    ("query", "MATCH (n:Node) RETURN n.id, n.kind, n.text"), ("get", f"no {NAME}"), ("get", ID, "--tx", f"no {NAME}"), ("walk", ID, EVENT),
]  # fmt: skip


@pytest.mark.parametrize("words", PRINTED, ids=lambda words: words[0])
def test_the_command_line_prints_nothing_that_is_obeyed_or_hidden(
    folder: Path, words: tuple[str, ...]
) -> None:
    result = CliRunner().invoke(app, [words[0], str(folder), *words[1:]], env={"COLUMNS": "160"})

    assert result.exit_code in (0, 1), (result.output, result.exception)
    assert shown(result.stdout + result.stderr).strip()


def test_the_shell_prints_nothing_that_is_obeyed_or_hidden(folder: Path) -> None:
    lines = [
        ":snapshots",
        ":changes",
        ":mode markdown",
        "MATCH (n) RETURN n.id, n.text;",
        ":snapshots",
        f":tx no {NAME.splitlines()[0]}",
    ]
    result = CliRunner().invoke(
        app, ["shell", str(folder), "--keep-going"], input="\n".join(lines), env={"COLUMNS": "160"}
    )

    assert "see␀␇␛[31m" in shown(result.stdout + result.stderr)


def test_programs_get_the_data_exactly(folder: Path, store: GraphStore) -> None:
    result = CliRunner().invoke(app, ["get", str(folder), ID, "--json"])

    assert {TEXT: "anew"} == json.loads(result.stdout)["node"]["content"]
    assert f"anew {TEXT}" == store.node(ID).text


PICTURES: dict[str, Callable[[GraphStore], object]] = {
    "superseded": lambda store: store.what_superseded(OLD),
    "causes": lambda store: store.causes(ID),
    "compare": lambda store: store.as_of(valid="2020-01-01").compare(store),
    "rows": lambda store: store.query("MATCH (n) RETURN n.id, n.text"),
    "inspection": lambda store: store.inspect(ID),
    "view": lambda store: store.as_of(),
}


@pytest.mark.parametrize("case", PICTURES)
def test_a_notebook_is_shown_nothing_that_is_obeyed_or_hidden(store: GraphStore, case: str) -> None:
    value = PICTURES[case](store)

    assert shown(value._repr_html_()) and shown(value._repr_markdown_())  # type: ignore[attr-defined]


ASKED = [
    ("get", {"id": ID}), ("get", {"id": EVENT}), ("search", {"query": "see"}), ("history", {"id": ID}), ("what_superseded", {"id_or_text": OLD}),
    ("why", {"id": ID}), ("timeline", {}), ("events", {"since": "7d"}), ("diff", {"id": ID}), ("cypher", {"query": "MATCH (n:Node) RETURN n.id, n.text"}),
    ("links", {"id": ID}), ("schema", {}), ("get", {"id": f"no {NAME}"}), ("get", {"id": ID, "tx": f"no {NAME}"}), (f"no {NAME}", {}), ("get", {f"no {NAME}": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments"), ASKED)
def test_an_agent_reads_nothing_that_is_obeyed_or_hidden(
    store: GraphStore, tool: str, arguments: dict[str, str]
) -> None:
    with agent(mcp.server(store)) as asker:
        assert shown(asker.call(tool, **arguments).content[0].text)


def test_json_that_an_agent_reads_is_escaped_and_exact() -> None:
    with graphstore.open(":memory:") as store, agent(mcp.server(store, profile="memory")) as asker:
        entity = {"name": "ana", "entityType": "person", "observations": [TEXT]}
        asker.ask("create_entities", entities=[entity])

        assert [entity] == json.loads(shown(asker.call("read_graph").content[0].text))["entities"]


@pytest.mark.parametrize(
    ("text", "clear"),
    [
        ("plain", "plain"), ("two\r\nlines\tand\u2028more", "two\nlines\tand\nmore"), ("\x1b[31m\x07\r\x7f\x85", "␛[31m␇␍␡�"),
        (f"a{DIRECTING}b", "ab"), (f"a{HIDDEN}b", "ab"), ("\ud800\ufffe", "��"), ("a\u00a0b", "a b"),
        ("👩‍💻🏳️‍🌈 می‌خواهم", "👩‍💻🏳️‍🌈 می‌خواهم"), ("a\u200db \u200c\u200d 日\u200d\u200d本", "ab  日本"),
    ],
)  # fmt: skip
def test_text_is_cleaned(text: str, clear: str) -> None:
    assert clear == clean(text) == clean(clean(text))
    assert used_by_the_command_line is clean


def test_a_line_is_clean_and_json_keeps_the_data() -> None:
    assert "x �31m y" == shown(line(NAME, 200))
    document = json.dumps({TEXT: NAME}, ensure_ascii=False)
    assert {TEXT: NAME} == json.loads(shown(clean_json(document)))
