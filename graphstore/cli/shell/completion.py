"""What may come next in what was typed: a pure function of the text before the cursor and the names there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphstore.cli.shell.parser import COMMAND, FUNCTIONS, KEYWORDS, cut
from graphstore.cli.shell.schema import GraphVocabulary
from graphstore.graph.statement import pieces

Token = tuple[str, str]
Commands = Mapping[str, tuple[str, tuple[str, ...]]]
"""The name of each command, with what it does and what its words are."""
_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


class Suggestion(NamedTuple):
    """A text that may stand instead of the last `replaced` characters, and what it is."""

    text: str
    replaced: int
    summary: str = ""


def _none(_: str) -> list[tuple[str, str]]:
    return []


@dataclass(frozen=True, slots=True)
class Names:
    """The names that may be completed. `ids` and `files` are called with what was typed, and return each with what it is."""

    vocabulary: GraphVocabulary = field(default_factory=GraphVocabulary)
    commands: Commands = field(default_factory=dict)
    unlisted: Commands = field(default_factory=dict)
    """Other names of commands, offered where no listed one matches."""
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What a word of a command can be: `mode`, `branch`, `coordinate`, …"""
    params: Sequence[str] = ()
    ids: Callable[[str], list[tuple[str, str]]] = _none
    files: Callable[[str], list[tuple[str, str]]] = _none


def suggestions(before: str, names: Names) -> list[Suggestion]:
    """Return what may come next after the text before the cursor, in the order to offer it."""
    typed = cut(before)[1].lstrip()
    if typed.startswith(COMMAND):
        return list(_in_command(typed, names))
    return list(_in_cypher(typed, names))


# ---------------------------------------------------------------- commands


def _in_command(typed: str, names: Names) -> Iterator[Suggestion]:
    name, space, rest = typed.partition(" ")
    if not space:
        listed = list(_matching(name, _commands(names.commands)))
        yield from listed or _matching(name, _commands(names.unlisted))
        return
    _, takes = names.commands.get(name) or names.unlisted.get(name, ("", ()))
    if not takes:
        return
    words = rest.split(" ")
    whole = len(takes) == 1  # the name of a snapshot may have spaces
    word = rest if whole else words[-1]
    kinds = takes[0 if whole else min(len(words), len(takes)) - 1].split("|")
    for kind in kinds:
        if kind == "id":
            yield from _matching(word, names.ids(word))
        elif kind == "file":
            yield from _matching(word, names.files(word))
        else:
            yield from _matching(word, ((one, "") for one in names.words.get(kind, ())))


def _commands(commands: Commands) -> Iterator[tuple[str, str]]:
    return ((f"{name} " if takes else name, says) for name, (says, takes) in commands.items())


def _matching(typed: str, offered: Iterable[tuple[str, str]]) -> Iterator[Suggestion]:
    for text, says in offered:
        if text.strip("`").lower().startswith(typed.lower()):
            yield Suggestion(text, len(typed), says)


# ---------------------------------------------------------------- Cypher


def _in_cypher(typed: str, names: Names) -> Iterator[Suggestion]:
    every = list(pieces(typed))
    open_string = _open_string(every)
    if open_string is not None:
        typed = "".join(piece for _, piece in every[open_string + 1 :])
        yield from _in_string(_significant(every[:open_string]), typed, names)
        return
    last = every[-1] if every else ("space", "")
    if last[0] == "comment" and not typed.endswith("\n"):
        return
    at_word = last[0] in ("word", "param") or last == ("mark", "$")
    word = last[1] if at_word else ""
    before = _significant(every[:-1] if at_word else every)
    if word.startswith("$"):
        yield from _matching(word, ((f"${name}", "parameter") for name in names.params))
        return
    yield from _expected(before, word, names)


def _open_string(every: list[Token]) -> int | None:
    """Return where a string begins that has not ended."""
    return next((at for at, (kind, piece) in enumerate(every) if kind == "mark" and piece in "'\""), None)


def _significant(every: list[Token]) -> list[Token]:
    return [token for token in every if token[0] not in ("space", "comment")]


def _in_string(before: list[Token], typed: str, names: Names) -> Iterator[Suggestion]:
    about = next(
        (piece for kind, piece in reversed(before) if kind == "word" and piece.upper() not in KEYWORDS), ""
    )
    values = names.vocabulary.values.get(about)
    if values is not None:
        yield from _matching(typed, ((value, about) for value in values))
    else:
        yield from _matching(typed, names.ids(typed))


def _expected(before: list[Token], word: str, names: Names) -> Iterator[Suggestion]:
    """Yield what may follow some tokens: a label, a kind of link, a property, or a word of Cypher."""
    vocabulary = names.vocabulary
    last = before[-1][1] if before else ""
    bracket = _innermost(before)
    if last in (":", "|") and bracket != "{":
        offered: Iterable[str] = vocabulary.kinds if bracket == "[" else vocabulary.labels
        yield from _matching(
            word, ((_written(name), "link" if bracket == "[" else "label") for name in offered)
        )
    elif last == "." and len(before) > 1:
        yield from _properties(_labels_of(before).get(before[-2][1], set()), word, names)
    elif bracket == "{" and last in ("{", ","):
        yield from _properties(_label_of_pattern(before), word, names)
    elif last.upper() != "AS":
        yield from _words(before, word)


def _innermost(before: list[Token]) -> str:
    """The bracket that is open last, or nothing."""
    held: list[str] = []
    for kind, piece in before:
        if kind == "mark" and piece in "([{":
            held.append(piece)
        elif kind == "mark" and piece in ")]}" and held:
            held.pop()
    return held[-1] if held else ""


def _labels_of(before: list[Token]) -> dict[str, set[str]]:
    """Each variable with the labels that were written beside it, "[" of a link."""
    found: dict[str, set[str]] = {}
    for at, (kind, piece) in enumerate(before):
        if kind == "word" and at and before[at - 1][1] in ("(", "["):
            labels = found.setdefault(piece, {"["} if before[at - 1][1] == "[" else set())
            labels |= _labels_behind(before, at + 1)
    return found


def _labels_behind(before: list[Token], at: int) -> set[str]:
    labels = set()
    while at + 1 < len(before) and before[at][1] in (":", "|"):
        at += 1
        if before[at][0] in ("word", "quoted"):
            labels.add(before[at][1].strip("`"))
            at += 1
    return labels


def _label_of_pattern(before: list[Token]) -> set[str]:
    """The labels of the pattern whose map of properties is open: `(n:Node {`."""
    at = max(place for place, token in enumerate(before) if token == ("mark", "{"))
    opened = next((place for place in range(at - 1, -1, -1) if before[place][1] in ("(", "[")), at)
    labels = {"["} if before[opened][1] == "[" else set()
    start = opened + 1 + (before[opened + 1][0] == "word")
    return labels | _labels_behind(before, start)


def _properties(labels: set[str], word: str, names: Names) -> Iterator[Suggestion]:
    vocabulary = names.vocabulary
    known = [label for label in vocabulary.labels if label in labels]
    found: dict[str, str] = {}
    if "[" in labels:
        found |= dict.fromkeys(vocabulary.of_links, "link")
    else:
        for label in known or vocabulary.labels:
            for name in vocabulary.labels[label]:
                found[name] = f"{found[name]}, {label}" if name in found else label
        if not known:
            found |= {name: "link" for name in vocabulary.of_links if name not in found}
    yield from _matching(word, ((_written(name), of) for name, of in found.items()))


def _words(before: list[Token], word: str) -> Iterator[Suggestion]:
    upper = not word or word[0].isupper() or not word.islower()
    if word:
        variables = dict.fromkeys(name for name in _labels_of(before) if name not in KEYWORDS)
        yield from _matching(word, ((name, "variable") for name in variables))
    yield from _matching(word, ((name if upper else name.lower(), "") for name in KEYWORDS))
    if word:
        yield from _matching(word, ((f"{name}(", "function") for name in FUNCTIONS))


def _written(name: str) -> str:
    return name if _PLAIN.match(name) else f"`{name}`"
