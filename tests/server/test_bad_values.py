"""What the store refuses is refused at every door: the same class of error, and the same word in its message.

The doors: Python, Python through a server, HTTP, a tool of an agent, the command line; and for the parameters of a query the shell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import hypothesis
import pyarrow
import pytest
from hypothesis import strategies as st
from typer.testing import CliRunner

import graphstore
from graphstore import GraphStore, InvalidError
from graphstore.cli.command_line import app
from graphstore.remote import calls as contract
from graphstore.remote import remote
from graphstore.values.inputs import json_read
from tests.support.served import TOKENS, Wire, serve_in_thread

mcp = pytest.importorskip("mcp")
from graphstore import mcp as door  # noqa: E402
from graphstore.mcp.messages import message_of  # noqa: E402
from tests.support.agent import Agent, agent  # noqa: E402

pytestmark = pytest.mark.in_process("has a server of its own")


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("beyond 64 bits", {"content": {"n": 1 << 64}}, "64-bit"),
    ("below 64 bits", {"content": {"n": -(1 << 63) - 1}}, "64-bit"),
    ("beyond 64 bits, further within", {"content": {"a": [{"n": 10**30}]}}, "64-bit"),
    ("NaN", {"content": {"n": math.nan}}, "not JSON"),
    ("infinity", {"content": {"n": math.inf}}, "not JSON"),
    ("minus infinity", {"content": {"n": [-math.inf]}}, "not JSON"),
    ("a lone surrogate in the content", {"content": {"n": "\ud800"}}, "surrogate"),
    ("a lone surrogate as a name", {"content": {"\udfff": 1}}, "surrogate"),
    ("a lone surrogate in the id", {"id": "x\ud800"}, "surrogate"),
    ("too deep", {"content": nested(300)}, "not JSON"),
    ("much too deep", {"content": nested(900)}, "not JSON"),
    ("NUL in the id", {"id": "x\0"}, "control characters"),
    ("an empty id", {"id": ""}, "id is blank"),
    ("a blank id", {"id": " "}, "id is blank"),
    ("no time zone", {"valid_from": "2026-01-01T00:00:00"}, "no time zone"),
    ("a year that is none", {"valid_from": "0000-01-01"}, "'0000-01-01'"),
    ("a year beyond 9999", {"valid_from": "12000-01-01"}, "'12000-01-01'"),
    ("an inverted period", {"valid_from": "2026-02-01", "valid_to": "2026-01-01"}, "inverted period"),
    ("an empty period", {"valid_from": "2026-02-01", "valid_to": "2026-02-01"}, "empty period"),
]
WRONG_TYPES: list[tuple[str, dict[str, Any], str]] = [
    ("content that is a list", {"content": [1]}, "no JSON object"),
    ("content that is null", {"content": None}, "no JSON object"),
    ("an id that is a number", {"id": 7}, "no text"),
    ("tags that are text", {"tags": "x"}, "no list"),
    ("tags that are numbers", {"tags": [7]}, "text"),
    ("a time that is a number", {"valid_from": 7}, "valid_from 7"),
]
IDS = [name for name, *_ in VALUES + WRONG_TYPES]


@pytest.fixture
def served(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store) as url:
        yield url


@pytest.fixture
def there(served: str) -> Iterator[GraphStore]:
    opened = remote.connect(served, TOKENS.write)
    yield opened
    opened.close()


@pytest.fixture
def ana(store: GraphStore) -> Iterator[Agent]:
    with agent(door.server(store)) as opened:
        yield opened


def added(store: GraphStore, given: dict[str, Any]) -> None:
    store.add_node(**{"kind": "fact", "content": {"n": 1}, **given})


@pytest.mark.parametrize(("name", "given", "word"), VALUES + WRONG_TYPES, ids=IDS)
def test_python_refuses_it_and_a_server_does_so_with_the_same_word(
    disk_store, there, served, name, given, word
):
    for opened in (disk_store, there):
        with pytest.raises(InvalidError) as raised:
            added(opened, given)
        assert word in str(raised.value)
    body = json.dumps({"kind": "fact", "content": {"n": 1}, **given}).encode()
    for path, sent in (("/add_node", body), ("/batch", b'{"calls": [["add_node", ' + body + b"]]}")):
        status, told, _ = Wire(served).ask("POST", path, sent)
        assert (422, "InvalidError") == (status, told["error"])
        assert word in told["message"]
    assert not disk_store.nodes()
    assert not disk_store.changes()


@pytest.mark.parametrize(("name", "given", "word"), VALUES, ids=IDS[: len(VALUES)])
def test_a_tool_of_an_agent_refuses_it_with_the_same_word(ana, store, name, given, word):
    if "surrogate" in name or "deep" in name or name in ("NaN", "infinity", "minus infinity"):
        pytest.skip("the client of the protocol cannot say it")
    told = ana.refused("remember", statement="releases go out on Tuesdays", **given)

    assert word in told
    assert not store.nodes()


@pytest.mark.parametrize(("name", "given", "word"), VALUES, ids=IDS[: len(VALUES)])
def test_the_command_line_refuses_it_with_the_same_word(tmp_path, name, given, word):
    if name in ("NUL in the id", "a lone surrogate in the id"):
        pytest.skip("an argument of a process cannot hold it")
    place = tmp_path / "memory.gs"
    with graphstore.open(place):
        pass
    content = json.dumps(given.get("content", {"n": 1}))
    options = [
        part
        for key in ("id", "valid_from", "valid_to")
        if key in given
        for part in (f"--{key.replace('_', '-')}", given[key])
    ]
    result = CliRunner().invoke(
        app, ["add-node", str(place), "fact", content, *options], env={"COLUMNS": "400"}
    )

    assert result.exit_code in (1, 2), result.output
    assert word in " ".join(result.output.replace("│", " ").split())
    with graphstore.open(place) as store:
        assert not store.nodes()


@pytest.mark.parametrize("strength", [0, 6, -1, 2.5, True, "3", "strong", [3], {}])
def test_a_strength_is_refused_with_the_same_words_by_a_server(disk_store, there, served, strength):
    disk_store.add_node("fact", {}, id="a")
    disk_store.add_node("fact", {}, id="b")
    words = (
        f"strength {strength!r} is out of range. Give a whole number from 1 (weak) to 5 (strong), or None."
    )
    for opened in (disk_store, there):
        for act in (
            lambda to: to.link("a", "uses", "b", strength=strength),
            lambda to: to.links_from("a", strength=strength),
            lambda to: to.backlinks_to("a", strength=strength),
        ):
            with pytest.raises(InvalidError) as raised:
                act(opened)
            assert words == str(raised.value)
    asked = {"source": "a", "kind": "uses", "target": "b", "strength": strength}
    for path, body in (("/link", asked), ("/batch", {"calls": [["link", asked]]})):
        status, told, _ = Wire(served).ask("POST", path, body)
        assert (422, "InvalidError") == (status, told["error"])
        assert words in told["message"]
    assert not disk_store.links_from("a")


def test_what_is_no_number_is_not_told_the_range_of_64_bits(served):
    for value in (True, 2.5, "3", [1]):
        status, told, _ = Wire(served).ask("POST", "/shaky", {"limit": value})
        words = f"limit {value!r} is no whole number. Give a whole number."
        assert (422, words) == (status, told["message"])
    status, told, _ = Wire(served).ask("POST", "/shaky", {"limit": 1 << 63})
    assert (422, True) == (status, "to 9223372036854775807" in told["message"])


def in_python(store: GraphStore, place: Path, url: str, value: str) -> str:
    with pytest.raises(InvalidError) as raised:
        store.query("RETURN $n", n=json.loads(value))
    return str(raised.value)


def through_a_server(store: GraphStore, place: Path, url: str, value: str) -> str:
    opened = remote.connect(url, TOKENS.read)
    with pytest.raises(InvalidError) as raised:
        opened.query("RETURN $n", n=json.loads(value))
    opened.close()
    return str(raised.value)


def over_http(store: GraphStore, place: Path, url: str, value: str) -> str:
    wire = Wire(url, TOKENS.read)
    status, told, _ = wire.ask(
        "POST", "/query", b'{"cypher": "RETURN $n", "params": {"n": %b}}' % value.encode()
    )
    assert (422, "InvalidError") == (status, told["error"])
    assert told == wire.ask("GET", f"/query?cypher=RETURN%20$n&n={value}")[1]
    return str(told["message"])


def at_the_command_line(store: GraphStore, place: Path, url: str, value: str) -> str:
    result = CliRunner().invoke(
        app, ["query", str(place), "RETURN $n", "--param", f"n={value}"], env={"COLUMNS": "400"}
    )
    assert 1 == result.exit_code
    return result.output


def in_the_shell(store: GraphStore, place: Path, url: str, value: str) -> str:
    lines = f":param n {value}\nRETURN $n;\n"
    result = CliRunner().invoke(app, ["shell", str(place)], input=lines, env={"COLUMNS": "400"})
    assert 1 == result.exit_code
    return result.output


@pytest.mark.parametrize("value", [str(1 << 64), str(-(1 << 63) - 1)])
@pytest.mark.parametrize("door", [in_python, through_a_server, over_http, at_the_command_line, in_the_shell])
def test_a_parameter_beyond_64_bits_is_refused_and_not_rounded(
    disk_store: GraphStore, served: str, tmp_path: Path, door: Callable[..., str], value: str
) -> None:
    place = tmp_path / "other.gs"
    with graphstore.open(place):
        pass
    assert "does not fit into 64 bits" in door(disk_store, place, served, value)


# ---------------------------------------------------------------- what stands in an address


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("causes?id=a&depth=x", "no number"),
        ("causes?id=a&depth=1.5", "no number"),
        ("causes?id=a&depth=1&depth=2", "depth"),
        (f"causes?id=a&depth={1 << 63}", "out of range"),
        ("contradictions?settled=perhaps", "neither true nor false"),
        ("consolidation/consolidate?similar=nan", "no number"),
        ("consolidation/consolidate?similar=inf", "no number"),
        ("consolidation/consolidate?similar=1e999", "no number"),
        (f"causes?id=a&depth={'9' * 5000}", "no number"),
        ("walk?ids=a&direction=up", "direction"),
        ("query?cypher=RETURN%201&params=7", "no JSON object"),
        ("node?id=a&id=b", "no text"),
        ("events/patterns?share=1&share=2", "share"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_no_argument_is_refused_in_an_address(served, query, word):
    status, told, _ = Wire(served, TOKENS.read).ask("GET", f"/{query}")

    assert (422, "InvalidError") == (status, told["error"])
    assert word in told["message"]


def test_a_call_of_a_branch_without_one_is_refused(served):
    for body in (("/pull", {}), ("/batch", {"calls": [["pull", {}]]})):
        status, told, _ = Wire(served).ask("POST", *body)
        assert (422, True) == (status, "branch=" in told["message"])


NEEDED: dict[str, Any] = {
    "id": "a", "ids": ["a"], "old": 1, "new": 2, "source": "a", "target": "b", "kind": "uses", "content": {}, "patch": {}, "by": "b",
    "urls": ["/app.1.js"], "section": "memory", "outcome": "success", "layer": "daily", "value": 1.0,
}  # fmt: skip
"""What the other arguments of a call need to be, that a number is looked at; "x" where it is not here."""
NUMBERS = [
    (name, argument, hint)
    for name, call in sorted(contract.CALLS.items())
    for argument, hint in call.hints.items()
    if {int, float} & {hint, *get_args(hint)}
]


@pytest.mark.parametrize(
    ("name", "argument", "hint"), NUMBERS, ids=[f"{each[0]} {each[1]}" for each in NUMBERS]
)
def test_true_and_text_are_no_number_of_any_call(store, name, argument, hint):
    store.add_node("fact", {"n": 1}, id="a")
    store.revise("a", {"n": 2})
    store.add_node("fact", {"n": 1}, id="b")
    before, call = len(store.changes()), contract.CALLS[name]
    given = {each: NEEDED.get(each, "x") for each in call.needed}
    if name == "supersede":
        given["old"] = "a"
    for value in (True, "3") if float in {hint, *get_args(hint)} else (True, "3", 2.5):
        with pytest.raises(InvalidError) as raised:
            call.function(store, **{**given, argument: value})
        assert argument.removeprefix("its_") in str(raised.value)
        assert repr(value) in str(raised.value)
    assert before == len(store.changes())


WRONG: list[Any] = [
    None,
    True,
    7,
    -1,
    1.5,
    1 << 63,
    "",
    "x",
    [],
    [None],
    [[]],
    {},
    {"a": None},
    {"base64": 7},
    {"name": "x", "base64": "!"},
]


@pytest.fixture(scope="module")
def served_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for all calls: what one of them leaves behind must not make the next fail either."""
    with (
        graphstore.open(tmp_path_factory.mktemp("all") / "memory.gs") as store,
        serve_in_thread(store) as url,
    ):
        yield url


@pytest.mark.parametrize("name", sorted(contract.CALLS))
def test_no_argument_of_any_call_makes_it_fail(served_for_all, name):
    """Each argument of each call with values of each type; the others are left out, or text."""
    call, wire = contract.CALLS[name], Wire(served_for_all)
    for argument in call.parameters:
        for value in WRONG:
            body = {**dict.fromkeys(call.needed, "x"), argument: value}
            status, told, _ = wire.ask("POST", "/" + name.replace(".", "/"), body)
            assert status < 500, (argument, value, told)


TAGGED: list[Any] = [
    None, 7, "x", [], {}, {"tag": "t"}, {"tag": "t", "value": 7}, {"tag": [], "value": {"a": 1}}, {"tag": None, "value": 7},
    *({"tag": "t", "value": {"n": {"t": word}}} for word in (
        7, [], ["nope"], ["entity"], ["entity", {}, None, None, None], ["int", "x"], ["int", "9" * 5000], ["Decimal", "x"], ["UUID", "x"],
        ["timedelta", 10**12, 0, 0], ["datetime", "x"], ["set", [[1]]], ["dict", [1]], ["tuple", 7], ["time", "25:00"], ["int", str(1 << 70)],
    )),
]  # fmt: skip


@pytest.mark.parametrize("call", ["query", "query_tables"])
def test_what_is_no_parameter_of_a_query_is_refused(served, call):
    wire = Wire(served, TOKENS.read)
    for tagged in TAGGED:
        status, told, _ = wire.ask("POST", f"/{call}", {"cypher": "RETURN $n AS n", "tagged": tagged})
        assert (422, "InvalidError") == (status, told["error"]), (tagged, told)
    for name in ("self", "cypher", "limits"):
        for way in ({"params": {name: None}}, {"tagged": {"tag": None, "value": {name: None}}}):
            status, told, _ = wire.ask("POST", f"/{call}", {"cypher": "RETURN 1", **way})
            assert (400, "QueryError") == (status, told["error"]), (name, told)


def test_numbers_are_read_as_they_are_written():
    assert {"n": 1 << 70, "m": 7, "f": 0.5} == json_read("x", f'{{"n": {1 << 70}, "m": 7, "f": 0.5}}')
    assert {"n": "12345678901234567890123"} == json_read("x", '{"n": "12345678901234567890123"}')
    with pytest.raises(InvalidError, match="64-bit"):
        json_read("x", f"[{1 << 70}]", kept=True)
    with pytest.raises(InvalidError, match="not JSON"):
        json_read("x", "9" * 5000)


# ---------------------------------------------------------------- a name twice in one object


TWICE: list[tuple[str, str, str]] = [
    ("an argument", '{"kind": "fact", "content": {"n": 1}, "content": {"n": 2}}', "'content'"),
    ("in the content", '{"kind":"fact","content":{"n":1,"n":2}}', "'n'"),
    ("the same value", '{"kind": "fact", "content": {"n": 1, "n": 1}}', "'n'"),
    ("further within", '{"kind": "fact", "content": {"a": [{"b": {"n": 1, "m": 2, "n": 3}}]}}', "'n'"),
    ("written otherwise", '{"kind": "fact", "content": {"n": 1, "\\u006e": 2}}', "'n'"),
    ("beside a colon written so", '{"kind": "fact", "content": {"n": "\\u003A", "n": "\\u003a"}}', "'n'"),
    ("in a large body", '{"kind": "fact", "content": {"n": 1, "n": "%s"}}' % ("long: " * 100_000), "'n'"),
    ("very deep", '{"kind": "fact", "content": %s}' % ('{"n": 1, "n": ' * 300 + "1" + "}" * 300), "'n'"),
]


@pytest.mark.parametrize(("name", "body", "word"), TWICE, ids=[name for name, *_ in TWICE])
def test_a_server_refuses_a_name_that_is_twice_in_one_object(disk_store, served, name, body, word):
    for path, sent in (("/add_node", body), ("/batch", f'{{"calls": [["add_node", {body}]]}}')):
        status, told, _ = Wire(served).ask("POST", path, sent.encode())
        assert (422, "InvalidError") == (status, told["error"])
        assert f"the body has {word} twice in one object. Give each name once." == told["message"]
    assert not disk_store.changes()


def test_other_doors_refuse_a_name_that_is_twice_in_one_object(disk_store, served, tmp_path):
    twice = '{"n": 1, "n": 2}'
    status, told, _ = Wire(served).ask("GET", f"/query?cypher=RETURN%20$n&n={quote(twice)}")
    assert (422, "n has 'n' twice in one object. Give each name once.") == (status, told["message"])
    for loaded in ([twice], [twice, '{"n": 3}']):
        rows = [{"node_id": str(at), "content": each} for at, each in enumerate(loaded)]
        with pytest.raises(InvalidError, match="'n' twice in one object"):
            disk_store.bulk_load(versions=rows)
        with pytest.raises(InvalidError, match="'n' twice in one object"):
            disk_store.bulk_load(versions=pyarrow.Table.from_pylist(rows))
    for command in (
        ["add-node", served, "fact", twice],
        ["query", served, "RETURN $n", "--param", f"n={twice}"],
    ):
        result = CliRunner().invoke(app, command, env={"COLUMNS": "400", "GRAPHSTORE_TOKEN": TOKENS.write})
        assert 2 == result.exit_code, result.output
        assert "'n' twice in one object" in result.output
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    message = json.dumps(asked)[:-1] + ', "params": {"name": "search", "name": "get"}}'
    refused = message_of(message)
    assert 7 == refused["id"]
    assert refused["error"]["message"].startswith(
        "the message has 'name' twice in one object. Give each name once."
    )
    assert not disk_store.changes()


JSON_TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(':"\\ab', max_size=3),
    lambda each: (
        st.lists(each, max_size=3)
        | st.lists(st.tuples(st.text(':"ab', max_size=2), each), max_size=4).map(tuple)
    ),
    max_leaves=20,
)
"""Values of JSON; an object is a tuple of its names and values."""


def written(tree: Any, colon: str) -> str:
    if isinstance(tree, tuple):
        pairs = (f"{written(name, colon)} : {written(each, colon)}" for name, each in tree)
        return f"{{{' ,'.join(pairs)}}}"
    if isinstance(tree, list):
        return f"[{', '.join(written(each, colon) for each in tree)}]"
    return json.dumps(tree).replace(":", colon)


def has_twice(tree: Any) -> bool:
    if isinstance(tree, tuple):
        return len(dict(tree)) < len(tree) or any(has_twice(each) for _, each in tree)
    return isinstance(tree, list) and any(map(has_twice, tree))


@hypothesis.given(JSON_TREES, st.sampled_from([":", "\\u003a", "\\u003A"]))
def test_a_name_twice_is_found_wherever_it_is_and_nowhere_else(tree: Any, colon: str) -> None:
    text = written(tree, colon)
    if has_twice(tree):
        with pytest.raises(InvalidError, match="twice in one object"):
            json_read("x", text)
    else:
        assert json.loads(text) == json_read("x", text)
