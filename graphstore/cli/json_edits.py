"""Insert items into the text of a JSON file and remove them again, with every other byte as it was: comments, order, indentation and line ends stay.

Comments and trailing commas are accepted, as in the settings of several programs. An array or object that was empty gets a space or two before its closing
bracket. So a removal can tell it from one that the insertion made, and restores its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from graphstore.errors import InvalidError

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')
_INDENTED = re.compile(r"\n([ \t]+)[^\s/]")


@dataclass
class JsonPart:
    """A value in a text: from `start` to `end`, and of an array or object its items. An item of an object begins with its key."""

    start: int
    end: int
    value: Any
    items: list[JsonItem] = field(default_factory=list)

    @property
    def is_container(self) -> bool:
        """Return True for an array or object."""
        return isinstance(self.value, dict | list)


@dataclass
class JsonItem:
    """An item of an array (its key is its place) or a member of an object, which begins at `start` with its key."""

    key: str | int
    start: int
    part: JsonPart

    @property
    def end(self) -> int:
        """Return where it ends."""
        return self.part.end


def parsed(text: str) -> JsonPart:
    """Return the value of a text. Raises InvalidError, with the line, for what is no JSON."""
    start = _after_space(text, 0)
    try:
        part = _part(text, start)
    except RecursionError:
        raise InvalidError("it is nested too deep.") from None
    rest = _after_space(text, part.end)
    if rest < len(text):
        _refuse(text, rest, "there is more after its end")
    return part


def with_item(text: str, path: Sequence[str], item: Any) -> str:
    """Return the text with an item at the end of the array at a path of keys. What is missing of the path is made.

    Raises InvalidError where something else is on the path.
    """
    if not text:
        for key in reversed(path):
            item = {key: [item]} if key == path[-1] else {key: item}
        return f"{json.dumps(item, indent=2, ensure_ascii=False)}\n"
    part, depth = parsed(text), 0
    for place, key in enumerate(path):
        if not isinstance(part.value, dict):
            raise InvalidError(f"{'.'.join(path[:place]) or 'it'} is no JSON object.")
        found = _member(part, key)
        if found is None:
            for missing in reversed(path[place + 1 :]):
                item = {missing: [item]} if missing == path[-1] else {missing: item}
            return _inserted(text, part, depth, item if place + 1 < len(path) else [item], key)
        part, depth = found.part, depth + 1
    if not isinstance(part.value, list):
        raise InvalidError(f"{'.'.join(path)} is no JSON array.")
    return _inserted(text, part, depth, item)


def without_items(text: str, is_wanted: Callable[[Any], bool]) -> str:
    """Return the text without the items of arrays that are wanted, and without what an insertion made around them; empty if nothing is left."""
    while text:
        chain = next(_chains(parsed(text), is_wanted), None)
        if chain is None:
            break
        text = _removed(text, chain)
    return text


def _member(part: JsonPart, key: str) -> JsonItem | None:
    return next((each for each in reversed(part.items) if each.key == key), None)  # the last one counts


def _chains(part: JsonPart, is_wanted: Callable[[Any], bool]) -> Iterator[list[tuple[JsonPart, int]]]:
    """Yield the way to each wanted item of an array: containers with the places of their items, the outermost first."""
    for place, item in enumerate(part.items):
        if isinstance(part.value, list) and is_wanted(item.part.value):
            yield [(part, place)]
        for inner in _chains(item.part, is_wanted):
            yield [(part, place), *inner]


def _inserted(text: str, into: JsonPart, depth: int, value: Any, key: str | None = None) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    found = _INDENTED.search(text)
    unit = found[1] if found else "  "
    indent = line_end + unit * (depth + 1)
    said = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", indent)
    if key is not None:
        said = f"{json.dumps(key, ensure_ascii=False)}: {said}"
    if into.items:
        end = into.items[-1].end
        return f"{text[:end]},{indent}{said}{text[end:]}"
    within, rest = text[into.start + 1 : into.end - 1], text[into.end - 1 :]
    after = f"  {within}" if within else f" {line_end}{unit * depth}"
    return f"{text[: into.start + 1]}{indent}{said}{after}{rest}"


def _removed(text: str, chain: list[tuple[JsonPart, int]]) -> str:
    container, place = chain[-1]
    item = container.items[place]
    if place > 0:
        before = container.items[place - 1].end
        comma = before if text[before] == "," else text.rindex(",", before, item.start)
        return text[:comma] + text[item.end :]
    if len(container.items) > 1:
        return text[: item.start] + text[container.items[1].start :]
    begin, rest = text[: container.start + 1], text[container.end - 1 :]
    after = text[item.end : container.end - 1]
    if after.startswith("  "):
        return begin + after[2:] + rest
    if after.startswith(" "):
        return begin + rest
    return _removed(text, chain[:-1]) if len(chain) > 1 else ""


# ---------------------------------------------------------------- parsing


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _part(text: str, at: int) -> JsonPart:
    """Return the value that begins at a place."""
    if text[at : at + 1] in ("{", "["):
        return _container(text, at)
    found = _SCALAR.match(text, at)
    if found is None:
        _refuse(text, at, "a value is expected")
    try:
        return JsonPart(at, found.end(), json.loads(found[0], strict=True))
    except ValueError:
        _refuse(text, at, "a value is expected")


def _container(text: str, start: int) -> JsonPart:
    is_object = text[start] == "{"
    close, items, at = "}" if is_object else "]", list[JsonItem](), _after_space(text, start + 1)
    key: str | int
    while text[at : at + 1] != close:
        key, begin = len(items), at
        if is_object:
            name = _part(text, at)
            if not isinstance(name.value, str):
                _refuse(text, at, "a name is expected")
            key, at = name.value, _after_space(text, name.end)
            if text[at : at + 1] != ":":
                _refuse(text, at, "a colon is expected")
            at = _after_space(text, at + 1)
        part = _part(text, at)
        items.append(JsonItem(key, begin, part))
        at = _after_space(text, part.end)
        if text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
        elif text[at : at + 1] != close:
            _refuse(text, at, f"a comma or {close} is expected")
    value: Any = (
        {each.key: each.part.value for each in items} if is_object else [each.part.value for each in items]
    )
    return JsonPart(start, at + 1, value, items)


def _refuse(text: str, at: int, why: str) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    found = repr(text[at : at + 10]) if at < len(text) else "the end"
    raise InvalidError(f"line {line}: {why}, and there is {found}.")
