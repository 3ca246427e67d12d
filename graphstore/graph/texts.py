"""The Cypher texts of the package: all are in `cypher/*.cypher` and are found here by name.

A file has sections that start with `// name: links_from`; comment lines below describe the query, and the rest is its text. `// order:` names the columns
by which its rows are sorted if the text cannot sort them. `// macro: AS_OF(x)` sections define words for other texts, so that the temporal filter is
written once. `__KIND__` and similar holes are filled with names by `text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from graphstore.errors import InvalidError, QueryError
from graphstore.graph.statement import Edit, Token, arguments, edited, pieces, split, text_at, tokens_of
from graphstore.values.vocabulary import KINDS

_SECTION = re.compile(r"^// (name|macro): *(.+?) *$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HOLE = re.compile(r"__([A-Z]+(?:_[A-Z]+)*)__")
_MACRO = re.compile(r"(\w+)\((\w+(?:, *\w+)*)\)\Z")

LINK = "LINK"
"""The table of link kinds without their own; in a history, the rows of all links."""

Macros = Mapping[str, tuple[tuple[str, ...], str]]
"""The parameters and the text of each macro, by name."""


@dataclass(frozen=True)
class NamedText:
    """A named text: its description in a sentence or two, and the Cypher as in the file."""

    name: str
    doc: str
    body: str
    file: str
    order: tuple[str, ...] = ()
    """The columns by which its rows are sorted if the text cannot sort them."""

    @cached_property
    def text(self) -> str:
        """Return the Cypher with its macros expanded."""
        return expand(self.body, macros())


def folder() -> Path:
    """Return the folder of the .cypher files: in the installed package, or next to it in a checkout."""
    installed = Path(__file__).parents[1] / "_cypher"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "cypher"


@cache
def sections() -> Mapping[str, NamedText]:
    """Return all named texts, by name."""
    return {section.name: section for kind, section in _all() if kind == "name"}


@cache
def macros() -> Macros:
    """Return all macros, by name."""
    return {
        call[1]: (tuple(name.strip() for name in call[2].split(",")), section.body)
        for kind, section in _all()
        if kind == "macro" and (call := _MACRO.match(section.name))
    }


def _all() -> Iterator[tuple[str, NamedText]]:
    for path in sorted(folder().glob("*.cypher")):
        yield from _read(path.read_text(encoding="utf-8"), path.name)


def _read(content: str, file: str) -> Iterator[tuple[str, NamedText]]:
    """Yield ("name" or "macro", section) for each section of a file."""
    marks = list(_SECTION.finditer(content))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        block = content[mark.end() : following.start() if following else len(content)].strip("\n")
        lines = block.split("\n")
        count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
        notes = [line.removeprefix("//").strip() for line in lines[:count]]
        order = [line.removeprefix("order:") for line in notes if line.startswith("order:")]
        doc = " ".join(line for line in notes if not line.startswith("order:"))
        columns = tuple(column.strip() for line in order for column in line.split(","))
        yield mark[1], NamedText(mark[2], doc, "\n".join(lines[count:]).strip(), file, columns)


def expand(body: str, known: Macros) -> str:
    """Expand all calls of macros in `body`, also inside macros. Raises QueryError for a wrong number of arguments."""
    tokens = list(tokens_of(body))
    edits: list[Edit] = []
    at = 0
    while at < len(tokens):
        token, behind = tokens[at], text_at(tokens, at + 1)
        is_call = token.kind == "word" and token.text in known and behind == "("
        if not is_call or text_at(tokens, at - 1) in (".", ":"):
            at += 1
            continue
        given, at = call_at(body, tokens, at + 2)
        edits.append((token.start, tokens[at - 1].end, expand(called(token.text, given, known), known)))
    return edited(body, edits)


def call_at(text: str, tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    """Return the arguments of a call whose first token is `at`, and the index after its bracket."""
    given, behind = arguments(tokens, at)
    if not behind:
        raise QueryError("a bracket that is opened in the query is never closed.")
    return [text[each[0].start : each[-1].end] if each else "" for each in given], behind


def called(name: str, given: Sequence[str], known: Macros) -> str:
    """Return the text of a macro with the given arguments. Raises QueryError for a wrong number of them."""
    parameters, definition = known[name]
    if len(given) != len(parameters) or not all(given):
        raise QueryError(f"{name} takes ({', '.join(parameters)}), not ({', '.join(given)}).")
    values, found, before = dict(zip(parameters, given, strict=True)), list[str](), ""
    for kind, piece in pieces(definition):
        found.append(values[piece] if kind == "word" and piece in values and before != "." else piece)
        before = piece
    return "".join(found)


def text(name: str, **holes: str) -> str:
    """Return the text of that name with its holes filled: `text("link_table", KIND="SUPERSEDES")`.

    Raises InvalidError for an unknown name, and for a filling that is not a plain identifier.
    """
    if name not in sections():
        raise InvalidError.choice("query", name, sections())
    for hole, filling in holes.items():
        if not _NAME.match(filling):
            raise InvalidError(
                f"{filling!r} cannot be the {hole.lower()} of a query: use letters, digits and _ only."
            )
    return _HOLE.sub(lambda match: holes.get(match[1], match[0]), sections()[name].text)


def schema() -> list[str]:
    """Return the statements that create an empty store's tables: the fixed ones, LINK, and one for each kind with its own."""
    own = [kind.name.upper() for kind in KINDS.values() if kind.table]
    links = [text("link_table", KIND=name) for name in [LINK, *own]]
    return [statement for script in (text("schema"), *links) for statement in split(script)]
