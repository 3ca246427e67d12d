"""Items go into a JSON text and out again, and no other byte changes."""

from __future__ import annotations

import json
import re

import pytest

from graphstore.cli.json_edits import parsed, with_item, without_items
from graphstore.errors import InvalidError

TEXTS = [
    "{}", "{ }", "{\n}", "{\n}\n", '{"hooks": {}}', '{"hooks":{ } }', '{"hooks": {\n  }\n}', '{"hooks": {"Start": []}}', '{"hooks": {"Start": [ ]}}',
    '{"hooks": {"Start": [\n    ]}}', '{"a":1}', '{"a":1,"hooks":{"Start":[{"x":[1,{"y":"}]"}]}]},"b":[]}', '{\n\t"a": "ü\\n\\"",\n\t"hooks": {\n\t\t"Stop": [1]\n\t}\n}\n',
    '{\r\n    "a": 1,\r\n    "hooks": {}\r\n}\r\n', '// top\n{\n  "a": 1, // one\n  /* two */ "hooks": {\n    "Start": [\n      {"b": 2} // last\n    ],\n  },\n}\n// end',
    '{"hooks": {"Start": [ // none yet\n]}}', '\n\n  {"hooks": null_}'.replace("null_", "{}"), '{"hooks": {"Other": []}, "hooks": {"Start": [7]}}',
]  # fmt: skip


def plain(text: str) -> object:
    """The value of a text by the JSON of the standard library, without comments and trailing commas."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_inserted_goes_and_every_other_byte_is_as_it_was(text: str) -> None:
    once = with_item(text, ["hooks", "Start"], {"mine": [{"n": 1}]})
    twice = with_item(once, ["hooks", "End"], {"mine": []})

    expected = plain(text)
    assert isinstance(expected, dict)
    hooks = expected.setdefault("hooks", {})
    hooks.setdefault("Start", []).append({"mine": [{"n": 1}]})
    hooks.setdefault("End", []).append({"mine": []})
    assert expected == plain(twice) == parsed(twice).value
    assert text == without_items(twice, lambda item: isinstance(item, dict) and "mine" in item)


def test_an_absent_file_is_made_and_goes_again() -> None:
    made = with_item("", ["hooks", "Start"], "mine")

    assert '{\n  "hooks": {\n    "Start": [\n      "mine"\n    ]\n  }\n}\n' == made
    assert "" == without_items(with_item(made, ["hooks", "End"], "mine"), lambda item: item == "mine")


def test_what_somebody_added_meanwhile_stays() -> None:
    made = with_item(with_item('{"a": 1}\n', ["hooks", "Start"], "mine"), ["hooks", "Start"], "theirs")
    made = with_item(with_item(made, ["hooks", "Start"], "mine"), ["hooks", "Start"], "others")

    left = without_items(made, lambda item: item == "mine")

    assert {"a": 1, "hooks": {"Start": ["theirs", "others"]}} == json.loads(left)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1: a value is expected, and there is the end"),
        ('{\n"a" 1}', "line 2: a colon is expected, and there is '1}'"),
        ('{"a": 1\n "b": 2}', "line 2: a comma or } is expected"),
        ("[1, tru]", "line 1: a value is expected"),
        ("{} x", "line 1: there is more after its end"),
        ('{"a": 01}', "a value is expected"),
        ("{1: 2}", "line 1: a name is expected"),
        ("[" * 100_000, "it is nested too deep"),
    ],
)
def test_what_is_no_json_is_refused_with_the_line(text: str, why: str) -> None:
    with pytest.raises(InvalidError, match=re.escape(why)):
        with_item(text, ["hooks"], 1)


@pytest.mark.parametrize(("text", "why"), [("[]", "it is no JSON object"), ('{"hooks": []}', "hooks is no JSON object"), ('{"hooks": {"Start": 1}}', "hooks.Start is no JSON array")])  # fmt: skip
def test_another_shape_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidError, match=re.escape(why)):
        with_item(text, ["hooks", "Start"], 1)
