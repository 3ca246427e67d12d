"""Refuse forbidden Cypher texts before the engine gets them.

The engine's read-only transaction does not suffice: `COMMIT; CREATE …` leaves it, COPY … TO writes files, and CALL changes settings. So a text is read as
tokens (strings, comments and quoted names are not words), and only clauses known to read are allowed. The read-only transaction is the second barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphstore.errors import QueryError
from graphstore.graph.statement import CypherStatement, Token, arguments, edited, text_at

STARTS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "EXPLAIN", "PROFILE", "LOGICAL"})
"""The first words of a reading statement."""

WRITES = frozenset("CREATE MERGE DELETE DETACH SET REMOVE DROP ALTER INSERT FOREACH LOAD COPY".split())
"""Clauses that write or touch files."""

READING_CALLS = frozenset(
    """
    show_tables table_info show_connection show_functions show_indexes show_warnings show_sequences show_macros show_attached_databases
    show_loaded_extensions show_official_extensions show_projected_graphs projected_graph_info db_version query_fts_index query_vector_index page_rank pr
    weakly_connected_components wcc strongly_connected_components scc strongly_connected_components_kosaraju scc_ko k_core_decomposition kcore louvain
    """.split()
)
"""The procedures that only read."""

SIDE_EFFECTS = frozenset(
    {"NEXTVAL", "READ_CSV_PARALLEL", "READ_CSV_SERIAL", "READ_PARQUET", "READ_NPY", "READ_PANDAS"}
)


def refuse_limits(params: Mapping[str, Any], *more: str) -> None:
    """Refuse parameters of clients whose names would be taken for arguments of the query, and those named in `more`. Raises QueryError."""
    if taken := {"limits", "cypher", "self", *more} & params.keys():
        raise QueryError(f"no parameter of a query can be named {min(taken)}. Call it something else.")


def guard(statement: CypherStatement) -> None:
    """Refuse every text that could change the store, its settings or a file. Raises QueryError that names the word."""
    tokens = statement.tokens
    _check_wraps(tokens)
    prefixes = ("EXPLAIN", "PROFILE", "LOGICAL")
    first = next((token for token in tokens if token.text.upper() not in prefixes), tokens[0])
    if first.word not in STARTS:
        raise _refused(
            first.text,
            "A query starts with MATCH, OPTIONAL MATCH, UNWIND, WITH, RETURN, CALL, EXPLAIN or PROFILE.",
        )
    for at, token in enumerate(tokens):
        word, before, after = token.word, text_at(tokens, at - 1), text_at(tokens, at + 1)
        if not word or before == "." or (after == ":" and word != "CALL"):
            continue
        if word in WRITES and before not in (":", "|"):
            raise _refused(token.text, f"A property or variable of that name is written `{token.text}`.")
        if word == "CALL" and before not in (":", "|"):
            _guard_call(tokens, at + 1)
        if word in SIDE_EFFECTS and after == "(":
            raise _refused(token.text, "It has effects outside the query.")


_WRAPS = "TIMESTAMP_NS"


def _check_wraps(tokens: Sequence[Token]) -> None:
    for at, token in enumerate(tokens):
        before = text_at(tokens, at - 1)
        named = token.kind == "word" and before not in (".", ":", "|")
        if not named and (token.kind != "string" or before != ","):
            continue
        if token.text.strip("'\" ").upper().startswith(_WRAPS):
            raise QueryError(
                f"{token.text} is refused: it wraps around outside the years 1677 to 2262. TIMESTAMP holds microseconds in all years."
            )


def _guard_call(tokens: Sequence[Token], at: int) -> None:
    name = text_at(tokens, at)
    if name.lower() in READING_CALLS and text_at(tokens, at + 1) == "(":
        return
    raise _refused(
        f"CALL {name}", "Procedures that only read, such as show_tables() or query_fts_index(), are allowed."
    )


AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "COLLECT"})
_PROJECTION_ENDS = frozenset(
    {"MATCH", "OPTIONAL", "UNWIND", "CALL", "UNION", "WHERE", "ORDER", "SKIP", "LIMIT"}
)


def check_aggregates(statement: CypherStatement) -> None:
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


def _projections(tokens: Sequence[Token]) -> Iterator[list[list[Token]]]:
    """Yield the items of each RETURN and WITH, as lists of tokens."""
    items: list[list[Token]] | None = None
    depth = 0
    for at, token in enumerate(tokens):
        word = token.word if text_at(tokens, at - 1) != "." else ""
        if items is not None and depth == 0 and (word in _PROJECTION_ENDS or word in ("WITH", "RETURN")):
            yield items
            items = None
        if word in ("WITH", "RETURN") and depth == 0:
            items = [[]]
            continue
        depth += token.nesting
        if items is not None and depth == 0 and token.text == ",":
            items.append([])
        elif items is not None:
            items[-1].append(token)
    if items is not None:
        yield items


def _aggregates(item: list[Token]) -> Iterator[bool]:
    """Yield for each aggregate call in an item whether it is DISTINCT."""
    for at, token in enumerate(item):
        if token.word in AGGREGATES and text_at(item, at + 1) == "(":
            yield text_at(item, at + 2).upper() == "DISTINCT"


_UNTYPED = frozenset(
    """
    array_contains array_cross_product array_has cost element_at end_node id keys label labels list_any_value list_contains list_has list_product
    list_reverse_sort list_sum map map_extract map_keys map_values nodes properties relationships rels start_node struct_extract union_extract
    """.split()
)
"""Functions that end the process if an argument is a NULL without a type."""
_GOING_ON = frozenset(".[(+-*/%^|")
"""Marks after a token that make it only a part of its argument."""


def check_nulls(statement: CypherStatement, bound: Mapping[str, Any]) -> None:
    """Refuse a NULL, written or bound, for which the engine needs a type and otherwise ends the process. Raises QueryError."""
    tokens = statement.tokens
    nulls = {"NULL"} | {f"${name}" for name, value in bound.items() if value is None}
    nulls |= {
        after.text
        for one, then, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if then.text.upper() == "AS" and _null(one.text) in nulls
    }
    for at, token in enumerate(tokens):
        if token.kind != "word" or text_at(tokens, at - 1) in (".", ":", "|"):
            continue
        if token.word == "IN":
            given = [_bare(tokens[at + 1 :])]
        elif token.text.lower() in _UNTYPED and text_at(tokens, at + 1) == "(":
            given = [_bare(argument) for argument in arguments(tokens, at + 2)[0]]
        else:
            continue
        found = next((each for each in given if each in nulls), None)
        if found is not None:
            raise QueryError(
                f"{token.word} is refused for {found}: a NULL without a type there ends the engine. "
                "Give a value, leave the condition out, or say its type: CAST(NULL AS STRING[])."
            )


def _null(piece: str) -> str:
    return piece.upper() if piece.upper() == "NULL" else piece


def _bare(argument: Sequence[Token]) -> str | None:
    """Return the single token of an argument, without brackets around it; None if it has several."""
    start = 0
    while text_at(argument, start) == "(":
        start += 1
    if start == len(argument) or text_at(argument, start + 1) in _GOING_ON:
        return None
    return _null(argument[start].text)


AT_ONCE = 1_000_000
"""The most list elements, or hundreds of characters, that a function may produce in one step."""
_MAKING = frozenset({"range", "repeat", "lpad", "rpad"})
"""Functions that produce a list or a text of any length."""


def check_stoppable(statement: CypherStatement, bound: Mapping[str, Any]) -> None:
    """Refuse a text that produces a huge value in one step, since the engine cannot be interrupted then. Raises QueryError.

    Only numbers and parameters in the text are checked, not computed values.
    """
    tokens = statement.tokens
    for at, token in enumerate(tokens):
        name = token.text.lower()
        if token.kind != "word" or name not in _MAKING or text_at(tokens, at + 1) != "(":
            continue
        given = [_number(each, bound) for each in arguments(tokens, at + 2)[0]]
        first, last, step, *_ = [*given, None, None]
        if name != "range":
            size = (last or 0) // 100
        else:
            size = 0 if first is None or last is None else abs(last - first) // (abs(step or 1))
        if size > AT_ONCE:
            raise QueryError(
                f"{token.text}(…) would make too much at once, and cannot be stopped while it does. "
                f"At most {AT_ONCE:,} elements, or {AT_ONCE * 100:,} characters: UNWIND a smaller range, or several."
            )


def _number(argument: list[Token], bound: Mapping[str, Any]) -> int | None:
    """Return the whole number that an argument is, literal or as a parameter; None if it is anything else."""
    negative = text_at(argument, 0) == "-"
    rest = argument[negative:]
    if len(rest) != 1:
        return None
    value: Any = None
    if rest[0].kind == "number" and rest[0].text.isdigit():
        value = int(rest[0].text)
    elif rest[0].kind == "param":
        value = bound.get(rest[0].text[1:])
    return (-value if negative else value) if isinstance(value, int) else None


def _refused(word: str, hint: str) -> QueryError:
    return QueryError(f"{word!r} is refused: a query only reads; the store's verbs write. {hint}")


def widened(statement: CypherStatement, bound: Mapping[str, Any]) -> str:
    """Return the text with whole-number parameters cast to 64 bits wherever the engine takes an expression. Without a cast it uses 8 bits for small ones:
    list_sum([100, 100, 100]) returns 44."""
    types = {}
    for name, value in bound.items():
        if type(value) is int:
            types[name] = "INT64"
        elif isinstance(value, list) and type(value[0]) is int:
            types[name] = "INT64[]"
    tokens = statement.tokens
    if not types or any(token.word == "CALL" for token in tokens):
        return statement.text
    casts = []
    for at, token in enumerate(tokens):
        name, before = token.text[1:], text_at(tokens, at - 1).upper()
        if token.kind == "param" and name in types and before not in ("LIMIT", "SKIP"):
            casts.append((token.start, token.end, f"CAST({token.text} AS {types[name]})"))
    return edited(statement.text, casts)
