"""Splits a Cypher text into tokens, so that words in strings, comments and quoted names do not count, and replaces parts of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from graphstore.errors import QueryError
from graphstore.graph.limits import LIMITS, QueryLimits

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>//[^\n\r]*(?:\r?\n|\Z) | /\*.*?\*/)
    | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<quoted>`[^`]*`)
    | (?P<param>\$(?:[^\W\d]\w*|\d+))
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\\'\"bBfFnNrRtT])|\\(.)", re.DOTALL)

_KEPT, _SHORT = 64, 4_096  # size of the cache, in texts; characters of the longest cached text
_CLAUSES = frozenset({"MATCH", "UNWIND", "WITH", "RETURN", "UNION", "CALL"})
_SIGNS = frozenset({"NOT", "-", "+"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")

Edit = tuple[int, int, str]
"""The start and end of a replaced part, and its new text."""


class Token(NamedTuple):
    """A token: a piece of a text that is not white space or a comment, and its start."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Return the end of the token."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """Return the token in upper case if it is a word, else ""."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def nesting(self) -> int:
        """Return 1 for an opening bracket, -1 for a closing one, else 0."""
        return (self.text in _OPENING) - (self.text in _CLOSING)


@dataclass(frozen=True)
class CypherStatement:
    """One statement as the engine gets it: without comments and final semicolon."""

    text: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens of the statement."""
        return tuple(tokens_of(self.text))

    @cached_property
    def params(self) -> frozenset[str]:
        """Return the names of its parameters."""
        return frozenset(token.text[1:] for token in self.tokens if token.kind == "param")


def parse(cypher: str, limits: QueryLimits | None = LIMITS) -> CypherStatement:
    """Read a text as tokens. Raises QueryError for no statement, several statements, an unfinished string, or a text beyond the limits."""
    if not isinstance(cypher, str):
        raise QueryError(f"a query is a text, not {type(cypher).__name__}.")
    if limits is not None and len(cypher) > limits.characters:
        raise _too_much("the query has", len(cypher), "characters", limits.characters)
    return (_parsed if len(cypher) <= _SHORT else _parsed.__wrapped__)(cypher, limits)


@lru_cache(maxsize=_KEPT)
def _parsed(cypher: str, limits: QueryLimits | None) -> CypherStatement:
    found: list[str] = []
    for match in _TOKEN.finditer(cypher):
        kind, piece = match.lastgroup, match.group()
        if kind == "string":
            _check_escapes(piece)
        elif kind == "mark":
            _check_mark(piece, cypher, match.start())
        found.append(" " if kind == "comment" else piece)
    statement = CypherStatement("".join(found).strip())
    while statement.tokens and statement.tokens[-1].text == ";":
        statement = CypherStatement(statement.text[: statement.tokens[-1].start].rstrip())
    if not statement.tokens:
        raise QueryError("the query is empty.")
    if any(token.text == ";" for token in statement.tokens):
        raise QueryError(
            "several statements in one text are refused. Run them one by one, without ';' between."
        )
    if limits is not None:
        _check_size(statement.tokens, limits)
    return statement


def _check_size(tokens: Sequence[Token], limits: QueryLimits) -> None:
    """Refuse a text that would take the engine's parser or binder too long, or too much stack, which ends the process."""
    if len(tokens) > limits.tokens:
        raise _too_much("the query has", len(tokens), "words, numbers and signs", limits.tokens)
    depth = cases = signs = clauses = 0
    most = {"brackets": 0, "CASE": 0, "signs": 0}
    for at, token in enumerate(tokens):
        word = token.word if text_at(tokens, at - 1) not in (".", ":") else ""
        depth = max(0, depth + token.nesting)
        if word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word in _CLAUSES:
            clauses += 1
        signs = signs + 1 if (word or token.text) in _SIGNS else 0
        most["brackets"] = max(most["brackets"], depth)
        most["CASE"] = max(most["CASE"], cases)
        most["signs"] = max(most["signs"], signs)
    for got, what, allowed in (
        (most["brackets"], "brackets within each other", limits.depth),
        (most["CASE"], "CASE within each other", limits.cases),
        (most["signs"], "NOT, - or + in a row", limits.signs),
        (clauses, "clauses", limits.clauses),
    ):
        if got > allowed:
            raise _too_much("the query has", got, what, allowed)


def _too_much(who: str, got: int, what: str, allowed: int) -> QueryError:
    return QueryError(
        f"{who} {got:,} {what}; at most {allowed:,} are allowed. "
        "Split it, or give what is long as a parameter: WHERE n.id IN $ids."
    )


def _check_escapes(string: str) -> None:
    for known, unknown in _ESCAPE.findall(string):
        if not known:
            raise QueryError(f"unknown escape '\\{unknown}' in the string {string}. Write '\\\\{unknown}'.")


def _check_mark(mark: str, cypher: str, at: int) -> None:
    what = {"'": "string", '"': "string", "`": "quoted name"}.get(mark)
    if cypher.startswith("/*", at):
        what = "comment"
    if what:
        raise QueryError(f"a {what} that starts at character {at + 1} never ends: {cypher[at : at + 30]!r}")
    if mark == "$":
        raise QueryError(f"'$' at character {at + 1} has no parameter name after it.")


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield all pieces of a text in order as (kind, text), white space and comments too; joined they are the text.

    Every text has pieces: the quote of an unfinished string is a `mark`.
    """
    for match in _TOKEN.finditer(text):
        yield str(match.lastgroup), match.group()


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens of a text."""
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), match.start())


def text_at(tokens: Sequence[Token], at: int) -> str:
    """Return the text of a token; "" if there is none."""
    return tokens[at].text if 0 <= at < len(tokens) else ""


def arguments(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """Return the arguments of a call whose first token is `at`, and the index after its bracket; 0 if the bracket is never closed."""
    given: list[list[Token]] = [[]]
    depth = 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += token.nesting
        if depth < 0:
            return given, place + 1
        if depth == 0 and token.text == ",":
            given.append([])
        else:
            given[-1].append(token)
    return given, 0


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with the edits applied."""
    found, last = [], 0
    for start, end, new in sorted(edits, key=lambda one: one[0]):
        found += [text[last:start], new]
        last = end
    return "".join([*found, text[last:]])


def split(script: str) -> list[str]:
    """Split a script into its statements, without comments."""
    pieces: list[str] = []
    found: list[str] = []
    for match in _TOKEN.finditer(script):
        kind, piece = match.lastgroup, match.group()
        if kind == "mark" and piece == ";":
            found.append("".join(pieces).strip())
            pieces = []
        else:
            pieces.append(" " if kind == "comment" else piece)
    found.append("".join(pieces).strip())
    return [statement for statement in found if statement]
