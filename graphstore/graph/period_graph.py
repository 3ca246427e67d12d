"""Run texts over the graph of many coordinates: those with FOR VALID_TIME, and those that are asked at many instants.

In the latter each pattern gets the condition that its match holds at the instant. If that might not give the same answer as the graphs of the single
coordinates, the text is run on those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from graphstore.errors import QueryError
from graphstore.graph import macros
from graphstore.graph.graph_from_rows import GraphSpan
from graphstore.graph.limits import QueryLimits
from graphstore.graph.once_each import Pattern, condition, returns_all
from graphstore.graph.statement import CypherStatement, Edit, Token, edited, parse, text_at
from graphstore.graph.view_graph import named_labels, named_tables
from graphstore.values.period import BEGINNING, OPEN, Instant

_OWN = ("row", "tx_to", "standing")
"""Properties that only one of the two graphs has."""
_ALL_INSTANTS = frozenset({"FIELD", "MEET", "EXPLAIN", "PROFILE", "LOGICAL", "UNION", *macros.AXES})
_IN_ORDER = frozenset({"SUM", "AVG", "COLLECT", "LIMIT", "SKIP"})
"""Words whose result may depend on the order of rows, if a pattern has several things."""
_BEHIND = frozenset({"MATCH", "OPTIONAL", "WHERE", "UNWIND", "RETURN", "WITH", "ORDER"})


class AtEach(NamedTuple):
    """A text with the condition that its matches hold at $valid and are believed at $tx, and the properties that it may read."""

    text: str
    properties: frozenset[str]


def at_each(cypher: str, params: Mapping[str, Any]) -> AtEach | None:
    """Return the text for a graph of periods; None if its answer might differ from that of the graph of a coordinate."""
    statement = parse(cypher)
    tokens = statement.tokens
    if not _is_plain(cypher, params, statement):
        return None
    added: list[Edit] = []
    names: set[str] = set()
    within: set[int] = set()  # the indexes of names in patterns
    properties = {after.text.strip("`") for one, after in pairwise(tokens) if one.text == "."}
    things = 0
    for at, token in enumerate(tokens):
        if token.word != "MATCH" or text_at(tokens, at - 1) in (".", ":", "|"):
            continue
        pattern = Pattern(tokens, at + 1)
        if not pattern.read() or any(each.star >= 0 for each in pattern.relationships):
            return None
        if any(tokens[place].text == "=" for place in range(at + 1, pattern.end)):
            return None
        here: list[str] = []
        for place, name in pattern.opened:
            things += 1
            if name:
                within.add(place + 1)
            else:
                name = f"_thing{things}"
                added.append((tokens[place].end, tokens[place].end, name))
            here.append(name)
        properties |= {
            one.text.strip("`")
            for one, after in zip(tokens[at + 1 : pattern.end], tokens[at + 2 : pattern.end + 1], strict=True)
            if after.text == ":"
        }
        names |= set(here)
        added += condition(
            tokens, pattern.end, " AND ".join(f"AS_OF({name})" for name in dict.fromkeys(here))
        )
    if any(token.text.startswith("_thing") for token in tokens) or not things:
        return None
    if things > 1 and any(token.word in _IN_ORDER for token in tokens):
        return None
    if not _are_read_by_property(tokens, names, within):
        return None
    return AtEach(edited(statement.text, added), frozenset(properties))


def _is_plain(cypher: str, params: Mapping[str, Any], statement: CypherStatement) -> bool:
    """Return True if a text names the label Node for each node, kinds for each link, and nothing that differs in a graph of periods."""
    tokens = statement.tokens
    if named_labels(cypher) != frozenset({"NODE"}) or named_tables(cypher) is None:
        return False
    if {"valid", "tx"} & (statement.params | params.keys()) or returns_all(tokens):
        return False
    if any(token.word in _ALL_INSTANTS or token.text.strip("`").lower() in _OWN for token in tokens):
        return False
    pairs = pairwise(tokens)
    return not any(
        then.text == "{" and one.kind == "word" and one.word in ("EXISTS", "COUNT", "COLLECT")
        for one, then in pairs
    )


def _are_read_by_property(tokens: Sequence[Token], names: set[str], within: set[int]) -> bool:
    """Return True if the text reads only properties of nodes and links, and their number."""
    clause = ""
    padded = [*tokens, *[Token("", "", 0)] * 2]
    matching = False
    for at, token in enumerate(tokens):
        before, then = padded[at - 1] if at else padded[-1], padded[at + 1]
        if token.word in _BEHIND and before.text != ".":
            clause = "" if before.word in ("STARTS", "ENDS") else token.word
        matching = clause in ("MATCH", "OPTIONAL")
        if token.text == "(" and not matching and (then.text == ":" or padded[at + 2].text == ":"):
            return False  # a pattern as a condition
        if token.text not in names or token.kind not in ("word", "quoted") or at in within:
            continue
        first = at - 2 if before.word == "DISTINCT" else at - 1
        counted = then.text == ")" and padded[first].text == "(" and padded[first - 1].word == "COUNT"
        passed = (
            clause == "WITH"
            and (before.text == "," or before.word in ("WITH", "DISTINCT"))
            and (then.text == "," or then.word in _BEHIND)
        )
        if before.text != "." and then.text != "." and not counted and not passed:
            return False
    return True


# ------------------------------------------------------------------------------------------ FOR VALID_TIME


class Clause(NamedTuple):
    """Holds the times of FOR VALID_TIME (two, one twice, or None for no bound) and the text after it."""

    since: Any
    until: Any
    text: str
    params: Mapping[str, Any]
    is_instant: bool = False


def clause_of(cypher: str, params: Mapping[str, Any], limits: QueryLimits | None) -> Clause | None:
    """Parse FOR VALID_TIME; return None for a text that does not begin with it. Raises QueryError unless ALL, AS OF a time, or FROM a time TO a time follows."""
    statement = parse(cypher, limits)
    if [token.text.upper() for token in statement.tokens[:2]] != ["FOR", "VALID_TIME"]:
        return None
    rest = statement.tokens[2:]
    words = [token.word for token in rest]
    times: Sequence[Token] = ()
    if words[:1] == ["ALL"]:
        size = 1
    elif words[:2] == ["AS", "OF"]:
        size, times = 3, rest[2:3]
    elif words[:1] == ["FROM"] and words[2:3] == ["TO"]:
        size, times = 4, [*rest[1:2], *rest[3:4]]
    else:
        size = 0
    if size == 0 or len(rest) <= size or any(each.kind not in ("string", "param") for each in times):
        raise QueryError(
            "FOR VALID_TIME is followed by ALL, AS OF '2026-01-01', or FROM '2026-01-01' TO '2026-02-01', each time in quotes or a parameter, and then by the query."
        )
    asked = CypherStatement(statement.text[rest[size].start :])
    given = dict(params)
    found = []
    for each in times:
        name = each.text[1:]
        if each.kind == "param" and name not in params:
            raise QueryError(f"the query has no value for ${name}. Give it: {name}='2026-01-01'.")
        found.append(params[name] if each.kind == "param" else each.text[1:-1])
        if each.kind == "param" and name not in asked.params:
            given.pop(name, None)
    if not found:
        return Clause(None, None, asked.text, given)
    return Clause(found[0], found[-1], asked.text, given, is_instant=len(found) == 1)


def of_clause(since: Instant | None, until: Instant | None, tx: Instant) -> GraphSpan:
    """Return the span of a clause at a tx. Raises QueryError for an empty one."""
    begin, end = BEGINNING if since is None else since, OPEN if until is None else until
    if begin >= end:
        raise QueryError(
            "FOR VALID_TIME FROM … TO … is empty. Give the earlier time first; the later one is not included."
        )
    return GraphSpan((begin, end), (tx, tx + 1))
