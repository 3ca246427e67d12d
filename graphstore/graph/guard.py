"""Reads a Cypher text before the engine does: its parameters, and whether it only reads.

The engine's read-only transaction is no guard by itself: `COMMIT; CREATE …` leaves it, COPY … TO writes files, CALL
changes settings. So a text is read as tokens (strings, comments and quoted names are not words) and only what is known
to read is let through; the read-only transaction is the second lock on the same door.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphstore.errors import QueryError
from graphstore.graph.limits import LIMITS, Limits

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

STARTS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "EXPLAIN", "PROFILE", "LOGICAL"})
"""The words a reading statement can start with."""

WRITES = frozenset(
    {
        "CREATE",
        "MERGE",
        "DELETE",
        "DETACH",
        "SET",
        "REMOVE",
        "DROP",
        "ALTER",
        "INSERT",
        "FOREACH",
        "LOAD",
        "COPY",
    }
)
"""The words that write or touch files wherever they stand as a clause."""

READING_CALLS = frozenset(
    [
        "show_tables",
        "table_info",
        "show_connection",
        "show_functions",
        "show_indexes",
        "show_warnings",
        "show_sequences",
        "show_macros",
        "show_attached_databases",
        "show_loaded_extensions",
        "show_official_extensions",
        "show_projected_graphs",
        "projected_graph_info",
        "db_version",
        "query_fts_index",
        "query_vector_index",
        "page_rank",
        "pr",
        "weakly_connected_components",
        "wcc",
        "strongly_connected_components",
        "scc",
        "strongly_connected_components_kosaraju",
        "scc_ko",
        "k_core_decomposition",
        "kcore",
        "louvain",
    ]
)
"""The procedures that only read."""

SIDE_EFFECTS = frozenset(
    {"NEXTVAL", "READ_CSV_PARALLEL", "READ_CSV_SERIAL", "READ_PARQUET", "READ_NPY", "READ_PANDAS"}
)


_KEPT, _SHORT = 64, 4_096  # so many texts that were read last, of at most so many characters
_CLAUSES = frozenset({"MATCH", "UNWIND", "WITH", "RETURN", "UNION", "CALL"})
_SIGNS = frozenset({"NOT", "-", "+"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as the engine will get it: no comments, no final semicolon."""

    text: str
    params: frozenset[str]
    tokens: tuple[tuple[str, str], ...]
    """(kind, text) of everything but white space and comments."""


def parse(cypher: str, limits: Limits | None = LIMITS) -> Statement:
    """Read a text as tokens. Raises QueryError for no statement, several statements, an unfinished string, or more than the limits allow."""
    if not isinstance(cypher, str):
        raise QueryError(f"a query is a text, not {type(cypher).__name__}.")
    if limits is not None and len(cypher) > limits.characters:
        raise _too_much("the query has", len(cypher), "characters", limits.characters)
    return (_parsed if len(cypher) <= _SHORT else _parsed.__wrapped__)(cypher, limits)


@lru_cache(maxsize=_KEPT)
def _parsed(cypher: str, limits: Limits | None) -> Statement:
    pieces: list[str] = []
    tokens: list[tuple[str, str]] = []
    params: set[str] = set()
    for match in _TOKEN.finditer(cypher):
        kind, piece = str(match.lastgroup), match.group()
        if kind == "comment":
            pieces.append(" ")
            continue
        pieces.append(piece)
        if kind == "space":
            continue
        if kind == "string":
            _check_escapes(piece)
        elif kind == "param":
            params.add(piece[1:])
        elif kind == "mark":
            _check_mark(piece, cypher, match.start())
        tokens.append((kind, piece))
    while tokens and tokens[-1] == ("mark", ";"):
        tokens.pop()
        last = len(pieces) - 1 - pieces[::-1].index(";")
        pieces[last] = " "
    if not tokens:
        raise QueryError("the query is empty.")
    if ("mark", ";") in tokens:
        raise QueryError(
            "several statements in one text are refused. Run them one by one, without ';' between."
        )
    if limits is not None:
        _check_size(tokens, limits)
    return Statement("".join(pieces).strip(), frozenset(params), tuple(tokens))


def refuse_limits(params: Mapping[str, Any], *more: str) -> None:
    """Refuse names among the parameters that others send, and `more`: they would be taken for arguments of the query. Raises QueryError."""
    if taken := {"limits", "cypher", "self", *more} & params.keys():
        raise QueryError(f"no parameter of a query can be named {min(taken)}. Call it something else.")


def _check_size(tokens: list[tuple[str, str]], limits: Limits) -> None:
    """Refuse what would take the engine's parser or binder too long, or too much stack: it ends the process, or never ends."""
    if len(tokens) > limits.tokens:
        raise _too_much("the query has", len(tokens), "words, numbers and signs", limits.tokens)
    depth = cases = signs = clauses = 0
    most = {"brackets": 0, "CASE": 0, "signs": 0}
    for at, (kind, piece) in enumerate(tokens):
        word = piece.upper() if kind == "word" and (not at or tokens[at - 1][1] not in ".:") else ""
        if kind == "mark":
            depth += (piece in "([{") - (piece in ")]}" and depth > 0)
        elif word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif word in _CLAUSES:
            clauses += 1
        signs = signs + 1 if (word or piece) in _SIGNS and kind in ("word", "mark") else 0
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
    """Every piece of a text in order, as (kind, text), white space and comments too: joined they are the text again.

    Any text has pieces: a string that never ends is a `mark` and the pieces behind it.
    """
    for match in _TOKEN.finditer(text):
        yield str(match.lastgroup), match.group()


def guard(statement: Statement) -> None:
    """Refuse every text that could change the store, its settings or a file. Raises QueryError naming the word."""
    tokens = statement.tokens
    _check_wraps(tokens)
    start = next(
        (i for i, (_, word) in enumerate(tokens) if word.upper() not in ("EXPLAIN", "PROFILE", "LOGICAL")), 0
    )
    first = tokens[start][1]
    if tokens[start][0] != "word" or first.upper() not in STARTS:
        raise _refused(
            first,
            "A query starts with MATCH, OPTIONAL MATCH, UNWIND, WITH, RETURN, CALL, EXPLAIN or PROFILE.",
        )
    for i, (kind, piece) in enumerate(tokens):
        if kind != "word":
            continue
        word = piece.upper()
        before = tokens[i - 1][1].upper() if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else ("mark", "")
        if before == "." or (after[1] == ":" and word != "CALL"):
            continue
        if word in WRITES and before not in (":", "|"):
            raise _refused(piece, f"A property or variable of that name is written `{piece}`.")
        if word == "CALL" and before not in (":", "|"):
            _guard_call(after, tokens[i + 2][1] if i + 2 < len(tokens) else "")
        if word in SIDE_EFFECTS and after[1] == "(":
            raise _refused(piece, "It has effects outside the query.")


_WRAPS = "TIMESTAMP_NS"


def _check_wraps(tokens: tuple[tuple[str, str], ...]) -> None:
    for (kind, piece), (_, before) in zip(tokens, (("mark", ""), *tokens), strict=False):
        named = kind == "word" and before not in (".", ":", "|")
        if (named or (kind == "string" and before == ",")) and piece.strip("'\" ").upper().startswith(_WRAPS):
            raise QueryError(
                f"{piece} is refused: it wraps around outside the years 1677 to 2262. TIMESTAMP holds microseconds in all years."
            )


def _guard_call(called: tuple[str, str], then: str) -> None:
    kind, name = called
    if kind == "word" and then == "(" and name.lower() in READING_CALLS:
        return
    raise _refused(
        f"CALL {name}", "Procedures that only read, such as show_tables() or query_fts_index(), are allowed."
    )


AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "COLLECT"})
_PROJECTION_ENDS = frozenset(
    {"MATCH", "OPTIONAL", "UNWIND", "CALL", "UNION", "WHERE", "ORDER", "SKIP", "LIMIT"}
)


def check_aggregates(statement: Statement) -> None:
    """Refuse a grouped projection in which another aggregate follows a DISTINCT one. Raises QueryError.

    kuzu 0.11.3 returns NULL or 0 for that other aggregate, and crashes when it is `collect`.
    """
    for items in _projections(statement.tokens):
        calls = [call for item in items for call in _aggregates(item)]
        grouped = any(not list(_aggregates(item)) for item in items)
        if not grouped or True not in calls:
            continue
        if False in calls[calls.index(True) :]:
            raise QueryError(
                "in one RETURN or WITH, an aggregate after a DISTINCT one would come back empty from this engine. "
                "Put count(DISTINCT …) behind the other aggregates, or count it in a WITH of its own."
            )


def _projections(tokens: tuple[tuple[str, str], ...]) -> Iterator[list[list[tuple[str, str]]]]:
    """Yield the items of each RETURN and WITH, as lists of tokens."""
    items: list[list[tuple[str, str]]] | None = None
    depth = 0
    for at, (kind, piece) in enumerate(tokens):
        word = piece.upper() if kind == "word" and (not at or tokens[at - 1][1] != ".") else ""
        if items is not None and depth == 0 and (word in _PROJECTION_ENDS or word in ("WITH", "RETURN")):
            yield items
            items = None
        if word in ("WITH", "RETURN") and depth == 0:
            items = [[]]
            continue
        if kind == "mark":
            depth += (piece in "([{") - (piece in ")]}")
        if items is not None and depth == 0 and piece == ",":
            items.append([])
        elif items is not None:
            items[-1].append((kind, piece))
    if items is not None:
        yield items


def _aggregates(item: list[tuple[str, str]]) -> Iterator[bool]:
    """For each aggregate called in an item, whether it is DISTINCT."""
    for at, (kind, piece) in enumerate(item):
        if kind == "word" and piece.upper() in AGGREGATES and item[at + 1 : at + 2] == [("mark", "(")]:
            yield item[at + 2 : at + 3] != [] and item[at + 2][1].upper() == "DISTINCT"


_UNTYPED = frozenset(
    """
    array_contains array_cross_product array_has cost element_at end_node id keys label labels list_any_value list_contains list_has list_product
    list_reverse_sort list_sum map map_extract map_keys map_values nodes properties relationships rels start_node struct_extract union_extract
    """.split()
)
"""Functions that end the process when an argument is a NULL without a type."""
_GOING_ON = frozenset(".[(+-*/%^|")
"""Marks behind a token with which an argument is more than that token."""


def check_nulls(statement: Statement, bound: Mapping[str, Any]) -> None:
    """Refuse a NULL, written or bound, where the engine needs its type and ends the process for want of it. Raises QueryError."""
    tokens = statement.tokens
    nulls = {"NULL"} | {f"${name}" for name, value in bound.items() if value is None}
    nulls |= {
        after
        for (_, piece), (_, word), (_, after) in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.upper() == "AS" and _null(piece) in nulls
    }
    for at, (kind, piece) in enumerate(tokens):
        word = piece.lower()
        behind = tokens[at + 1 : at + 2] == (("mark", "("),)
        if kind != "word" or (at and tokens[at - 1][1] in (".", ":", "|")):
            continue
        if word == "in":
            given = [_bare(tokens[at + 1 :])]
        elif word in _UNTYPED and behind:
            given = [_bare(argument) for argument in _arguments(tokens[at + 2 :])]
        else:
            continue
        found = next((each for each in given if each in nulls), None)
        if found is not None:
            raise QueryError(
                f"{piece.upper()} is refused for {found}: a NULL without a type there ends the engine. "
                "Give a value, leave the condition out, or say its type: CAST(NULL AS STRING[])."
            )


def _null(piece: str) -> str:
    return piece.upper() if piece.upper() == "NULL" else piece


def _bare(argument: Sequence[tuple[str, str]]) -> str | None:
    """Return the one token that an argument is, without brackets around it; None: it is more."""
    pieces = [piece for _, piece in argument]
    start = 0
    while pieces[start : start + 1] == ["("]:
        start += 1
    if not pieces[start:]:
        return None
    return None if {*pieces[start + 1 : start + 2]} & _GOING_ON else _null(pieces[start])


AT_ONCE = 1_000_000
"""Elements of a list, or hundreds of characters of a text, that a function may make in one step."""
_MAKING = frozenset({"range", "repeat", "lpad", "rpad"})
"""Functions that make a list or a text of any requested length."""


def check_stoppable(statement: Statement, bound: Mapping[str, Any]) -> None:
    """Refuse a text that makes something huge in one step: the engine cannot be interrupted there. Raises QueryError.

    Only what numbers and parameters say is seen, not what is computed.
    """
    tokens = statement.tokens
    for at, (kind, piece) in enumerate(tokens):
        name = piece.lower()
        if kind != "word" or name not in _MAKING or tokens[at + 1 : at + 2] != (("mark", "("),):
            continue
        first, last, step, *_ = [*(_number(each, bound) for each in _arguments(tokens[at + 2 :])), None, None]
        if name != "range":
            size = (last or 0) // 100
        else:
            size = 0 if first is None or last is None else abs(last - first) // (abs(step or 1))
        if size > AT_ONCE:
            raise QueryError(
                f"{piece}(…) would make too much at once, and cannot be stopped while it does. "
                f"At most {AT_ONCE:,} elements, or {AT_ONCE * 100:,} characters: UNWIND a smaller range, or several."
            )


def _arguments(tokens: tuple[tuple[str, str], ...]) -> Iterator[list[tuple[str, str]]]:
    """Yield the arguments of a call whose tokens begin behind its bracket."""
    argument: list[tuple[str, str]] = []
    depth = 0
    for token in tokens:
        depth += (token[1] in ("(", "[", "{")) - (token[1] in (")", "]", "}"))
        if depth < 0:
            break
        if depth == 0 and token == ("mark", ","):
            yield argument
            argument = []
        else:
            argument.append(token)
    yield argument


def _number(argument: list[tuple[str, str]], bound: Mapping[str, Any]) -> int | None:
    """Return the whole number that an argument is, as it stands or as a parameter; None: something else."""
    negative = argument[:1] == [("mark", "-")]
    match argument[1:] if negative else argument:
        case [("number", text)] if text.isdigit():
            value: Any = int(text)
        case [("param", name)]:
            value = bound.get(name[1:])
        case _:
            return None
    return (-value if negative else value) if isinstance(value, int) else None


def _refused(word: str, hint: str) -> QueryError:
    return QueryError(f"{word!r} is refused: a query only reads; the store's verbs write. {hint}")


def widened(statement: Statement, bound: Mapping[str, Any]) -> str:
    """Return the text with whole numbers cast to 64 bits, wherever the engine takes an expression: it takes a small one as 8 bits, and
    list_sum([100, 100, 100]) is 44 there."""
    types = {}
    for name, value in bound.items():
        if type(value) is int:
            types[name] = "INT64"
        elif isinstance(value, list) and type(value[0]) is int:
            types[name] = "INT64[]"
    if not types or ("word", "CALL") in {(kind, piece.upper()) for kind, piece in statement.tokens}:
        return statement.text
    pieces: list[str] = []
    before = ""
    for match in _TOKEN.finditer(statement.text):
        kind, piece = match.lastgroup, match.group()
        if kind == "param" and piece[1:] in types and before not in ("LIMIT", "SKIP"):
            pieces.append(f"CAST({piece} AS {types[piece[1:]]})")
        else:
            pieces.append(piece)
        if kind != "space":
            before = piece.upper()
    return "".join(pieces)


def split(script: str) -> list[str]:
    """Return the statements of a script, one by one, without comments."""
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
