"""The graph of many coordinates at once: a node for each of its rows, with both its periods, and a link wherever it joins two of them.

It answers a text that begins with FOR VALID_TIME, and a text that is asked at many instants: then each pattern of it gets the condition that what it matches
holds at the instant. A text of which that would not be sure to give what the graph of each coordinate gives is refused, and asked there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.tables import macros
from graphstore.core.tables.arrow_tables import instants, numbers, texts
from graphstore.core.tables.graph_from_rows import RowSource
from graphstore.core.tables.graph_source import (
    Bounds,
    LinkPeriod,
    NodePeriod,
    Span,
    links_as_table,
)
from graphstore.core.tables.guard import Limits, Statement, parse, pieces
from graphstore.core.tables.once_each import LINK_ID, Pattern, Token, condition, returns_all, tokens_of
from graphstore.core.tables.projection import link_table
from graphstore.core.tables.properties import property_name
from graphstore.core.tables.texts import text
from graphstore.core.tables.view_graph import (
    BASE,
    RESERVED,
    Fields,
    ViewGraph,
    Waiting,
    fields_of,
    memory_of,
    named_labels,
    named_tables,
)
from graphstore.core.tables.workers import AnyEngine
from graphstore.errors import QueryError
from graphstore.values.models import Json
from graphstore.values.period import BEGINNING, OPEN, Instant
from graphstore.values.vocabulary import Vocabulary

_OWN = ("row", "tx_to", "standing")
"""What only one of the two graphs has."""
_COLUMNS = tuple(name for name in BASE if name != "standing")
_PERIODS = frozenset({"id", "valid_from", "valid_to", "tx_from"})
_ALL_INSTANTS = frozenset({"FIELD", "MEET", "EXPLAIN", "PROFILE", "LOGICAL", "UNION", *macros.AXES})
_IN_ORDER = frozenset({"SUM", "AVG", "COLLECT", "LIMIT", "SKIP"})
"""What may depend on the order of the rows of a pattern of several things."""
_BEHIND = frozenset({"MATCH", "OPTIONAL", "WHERE", "UNWIND", "RETURN", "WITH", "ORDER"})


class DiffersError(QueryError):
    """The graph of each coordinate has another type, or another name, for a property than the graph of all of them."""


# ------------------------------------------------------------------------------------------------ the graph


def build(
    source: RowSource, span: Span, vocabulary: Vocabulary, *, engine: Callable[[int, int], AnyEngine]
) -> ViewGraph:
    """Build the graph of a span. Raises DiffersError when `span` names properties that are not of one type."""
    nodes, periods = source.nodes(), source.periods()
    contents = orjson.loads(f"[{','.join(each or '{}' for each in nodes['content'].to_pylist())}]")
    fields = fields_of(contents) if span.fields is None else _agreed(contents, span.fields)
    nodes["row"] = numbers([period.number for period in periods]).cast(pa.string())
    nodes["remainder"] = pc.less(nodes["told"], nodes["tx_from"])
    nodes["tx_to"] = _ends(periods, span)
    base = [name for name in _COLUMNS if span.fields is None or name in span.fields | _PERIODS]
    known, linked, content = source.size
    graph = ViewGraph(
        engine(memory_of(len(periods) + linked + known, content), len(periods)),
        fields,
        labels=("Node",),
        of_view=span.fields is None,
    )
    if span.fields is None:
        graph.identity = LINK_ID
    try:
        shape = "".join(f",\n  `{name}` {_type(nodes[name].type)}" for name in base)
        shape += "".join(f",\n  `{each.name}` {each.type}" for each in fields.columns.values())
        graph.engine.run(text("period_node", driver=graph.driver).replace("__FIELDS__", shape))
    except BaseException:
        graph.close()
        raise

    def node_table() -> pa.Table:
        own = {name: nodes[name] for name in ("row", "tx_to", *base)}
        return pa.table(own | {each.name: each.values for each in fields.columns.values()})

    of_node: dict[int, list[NodePeriod]] = {}
    for period in periods:
        of_node.setdefault(period.node, []).append(period)
    links = {
        link.number: link
        for link in source.link_periods()
        if link.source in of_node and link.target in of_node
    }
    waiting: Waiting = {}
    for link in links.values():
        waiting.setdefault(link_table(link.kind), [(("Node", "Node"), [])])[0][1].append(link.number)
    kinds = set(map(link_table, {*vocabulary.kinds, *source.kinds()}))
    graph.await_links(kinds, waiting, partial(_links, source, span, of_node, links), "period_link")
    graph.await_things({"Node": lambda _: node_table()})
    return graph


def _ends(periods: Sequence[NodePeriod | LinkPeriod], span: Span) -> pa.Array:
    """Until when rows are believed. Who asks at one tx does not know."""
    return instants([period.bounds.tx_to if span.axis == "tx" else OPEN for period in periods])


def _links(
    source: RowSource,
    span: Span,
    of_node: Mapping[int, list[NodePeriod]],
    links: Mapping[int, LinkPeriod],
    numbers: list[int],
) -> pa.Table:
    """The links of these rows, each from every row of its source to every row of its target that it meets."""
    joined, sources, targets = [], [], []
    for link in map(links.__getitem__, numbers):
        ends = [
            [each for each in of_node[end] if _meet(link.bounds, each.bounds)]
            for end in (link.source, link.target)
        ]
        for start, target in product(*ends):
            if _meet(link.bounds, start.bounds, target.bounds):
                joined.append(link)
                sources.append(str(start.number))
                targets.append(str(target.number))
    found = links_as_table(source.links([link.number for link in joined]))
    found = found.set_column(found.column_names.index("source"), "source", texts(sources))
    found = found.set_column(found.column_names.index("target"), "target", texts(targets))
    return found.append_column("tx_to", _ends(joined, span))


def _meet(*bounds: Bounds) -> bool:
    """Whether there is a coordinate that all have in common."""
    valid_from, valid_to, tx_from, tx_to = zip(*bounds, strict=True)
    return bool(max(valid_from) < min(valid_to) and max(tx_from) < min(tx_to))


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "STRING[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return "INT64" if pa.types.is_integer(kind) else "BOOLEAN" if pa.types.is_boolean(kind) else "STRING"


def _agreed(contents: list[Json], asked: frozenset[str]) -> Fields:
    """The fields that are asked for. Raises DiffersError where some coordinate has another type or name for one."""
    names = {name for content in contents for name in content}
    wanted = {name.casefold() for name in asked}
    taken = set(RESERVED)
    alone = {name: property_name(name, set(RESERVED)) for name in sorted(names)}
    chosen = [name for name, shown in alone.items() if shown.casefold() in wanted]
    fields = fields_of(contents, only=chosen)
    if fields.left_out:
        raise DiffersError("there are too many fields to be the same properties everywhere.")
    for name in sorted(names):
        if property_name(name, taken) != alone[name]:
            raise DiffersError(f"the field {name!r} is not the same property everywhere.")
    for name in chosen:
        kinds = {type(value) for content in contents if (value := content.get(name)) is not None}
        one = len(kinds) < 2 or kinds <= {list, dict}
        if not one or (kinds == {int} and fields.columns[name].kind != "whole"):
            raise DiffersError(f"the field {name!r} has values of several types.")
    return fields


# ------------------------------------------------------------------------------------- a text at many instants


class AtEach(NamedTuple):
    """A text with the condition that what it matches holds at $valid and is believed at $tx, and the properties that it may read."""

    text: str
    properties: frozenset[str]


def at_each(cypher: str, params: Mapping[str, Any]) -> AtEach | None:
    """The text for a graph of periods; None where that might give something else than the graph of a coordinate."""
    statement = parse(cypher)
    tokens = tokens_of(statement.text)
    if not _is_plain(cypher, params, statement, tokens):
        return None
    added: list[tuple[int, str]] = []
    names: set[str] = set()
    within: set[int] = set()  # where names stand in patterns
    properties = {after.text.strip("`") for one, after in pairwise(tokens) if one.text == "."}
    things = 0
    for at, token in enumerate(tokens):
        if token.word != "MATCH" or tokens[at - 1].text in (".", ":", "|"):
            continue
        pattern = Pattern(tokens, at + 1)
        if not pattern.read() or any(each.star >= 0 for each in pattern.relationships):
            return None
        if any(tokens[place].text == "=" for place in range(at + 1, pattern.end)):
            return None
        here: list[str] = []
        for place, name in _opened(tokens, at + 1, pattern.end):
            things += 1
            if name:
                within.add(place + 1)
            else:
                name = f"_thing{things}"
                added.append((tokens[place].start + 1, name))
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
    said, last = [], 0
    for place, more in sorted(added, key=lambda one: one[0]):
        said += [statement.text[last:place], more]
        last = place
    return AtEach("".join([*said, statement.text[last:]]), frozenset(properties))


def _is_plain(cypher: str, params: Mapping[str, Any], statement: Statement, tokens: list[Token]) -> bool:
    """Whether a text names the label Node of each node, the kinds of each link, and nothing that differs in a graph of periods."""
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


def _opened(tokens: list[Token], begin: int, end: int) -> Iterator[tuple[int, str]]:
    """Where the nodes and links of a pattern open, and what they are named."""
    depth = 0
    for place in range(begin, end):
        token = tokens[place]
        if depth == 0 and token.text in ("(", "["):
            then = tokens[place + 1]
            yield place, then.text if then.kind in ("word", "quoted") else ""
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))


def _are_read_by_property(tokens: list[Token], names: set[str], within: set[int]) -> bool:
    """Whether nothing of a node or a link is read but its properties, and how many there are."""
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


def begins_with_periods(cypher: Any) -> bool:
    """Whether a text begins with FOR VALID_TIME."""
    words = (
        (piece.upper() for kind, piece in pieces(cypher) if kind not in ("space", "comment"))
        if isinstance(cypher, str)
        else iter(())
    )
    return next(words, "") == "FOR" and next(words, "") == "VALID_TIME"


class Clause(NamedTuple):
    """What stands behind FOR VALID_TIME: two times, or one twice; None for no bound. And the text behind that."""

    since: Any
    until: Any
    text: str
    params: Mapping[str, Any]
    is_instant: bool = False


def clause_of(cypher: str, params: Mapping[str, Any], limits: Limits | None) -> Clause:
    """What FOR VALID_TIME says. Raises QueryError where that is not ALL, AS OF a time, or FROM a time TO a time."""
    cypher = parse(cypher, limits).text
    tokens = tokens_of(cypher)
    rest = tokens[2:]
    words = [token.word for token in rest]
    if words[:1] == ["ALL"]:
        size, times = 1, []
    elif words[:2] == ["AS", "OF"]:
        size, times = 3, rest[2:3]
    elif words[:1] == ["FROM"] and words[2:3] == ["TO"]:
        size, times = 4, [*rest[1:2], *rest[3:4]]
    else:
        size, times = 0, []
    if size == 0 or len(rest) <= size or any(each.kind not in ("string", "param") for each in times):
        raise QueryError(
            "FOR VALID_TIME is followed by ALL, AS OF '2026-01-01', or FROM '2026-01-01' TO '2026-02-01', each time in quotes or a parameter, and then by the query."
        )
    text = cypher[rest[size].start :]
    used, given = {name for kind, name in pieces(text) if kind == "param"}, dict(params)
    found = []
    for each in times:
        name = each.text[1:]
        if each.kind == "param" and name not in params:
            raise QueryError(f"the query has no value for ${name}. Give it: {name}='2026-01-01'.")
        found.append(params[name] if each.kind == "param" else each.text[1:-1])
        if each.kind == "param" and each.text not in used:
            given.pop(name, None)
    if not found:
        return Clause(None, None, text, given)
    return Clause(found[0], found[-1], text, given, is_instant=len(found) == 1)


def of_clause(since: Instant | None, until: Instant | None, tx: Instant) -> Span:
    """The span of a clause at a tx. Raises QueryError for one that is empty."""
    begin, end = BEGINNING if since is None else since, OPEN if until is None else until
    if begin >= end:
        raise QueryError(
            "FOR VALID_TIME FROM … TO … is empty. Give the earlier time first; the later one is not included."
        )
    return Span((begin, end), (tx, tx + 1))
