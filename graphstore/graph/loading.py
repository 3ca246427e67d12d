"""Load the graphs of views: what rows have of a coordinate, or of many, becomes Arrow tables, which an engine takes when a query may read them.

The graph of many coordinates has a node for each row, with both its periods, and a link wherever it joins two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import orjson
import pyarrow as pa

from graphstore.errors import QueryError
from graphstore.graph.arrow_tables import fractions, instants, numbers, texts, truths
from graphstore.graph.graph_from_rows import RowSource
from graphstore.graph.graph_span import ABSENT, EVENT, LABELS, NODE, Bounds, Span
from graphstore.graph.once_each import LINK_ID
from graphstore.graph.projection import POOL, link_table
from graphstore.graph.properties import FieldKind, chosen, field_kind, property_name
from graphstore.graph.texts import text
from graphstore.graph.view_graph import BASE, Column, Fields, ViewGraph
from graphstore.graph.workers import AnyEngine
from graphstore.ledger.chain import dumps
from graphstore.values.event_fields import BODY
from graphstore.values.models import Json
from graphstore.values.period import OPEN
from graphstore.values.vocabulary import Vocabulary

_EVENT_TEXTS = frozenset({"type", *(field.name for field in BODY if field.kind != "truth")})
RESERVED = frozenset(
    {*BASE, "recorded_at", "occurred_at", "first_seen", "last_seen", "_id", "_label", "_src", "_dst"}
)
_PERIODS = frozenset({"id", "valid_from", "valid_to", "tx_from"})
_FITS: dict[str, tuple[str, ...]] = {"truth": ("truth",), "whole": ("whole",), "number": ("whole", "number")}
_COLUMN = 8 << 20  # what the engine takes at once for a column


OfNode = dict[int, list[tuple[int, Bounds]]]
"""The periods of each node, by their numbers."""


def build(
    source: RowSource, span: Span | None, vocabulary: Vocabulary, *, engine: Callable[[int, int], AnyEngine]
) -> ViewGraph:
    """Build the graph of a coordinate, or with `span` that of many, in what `engine` makes for so many bytes of memory and so many things.

    Raises QueryError when the span names properties that are not of one type.
    """
    nodes, periods = source.nodes(), source.periods
    contents = orjson.loads(f"[{','.join(each or '{}' for each in nodes['content'].to_pylist())}]")
    asked = None if span is None else span.fields
    fields = fields_of(contents) if asked is None else _agreed(contents, asked)
    known, links, content = source.size
    memory = memory_of(known + links + len(periods), content) + len(fields.columns) * _COLUMN
    graph = ViewGraph(
        engine(memory, max(known, len(periods))),
        fields,
        labels=LABELS if span is None else (NODE,),
        of_view=asked is None,
    )
    nodes |= {each.name: each.values for each in fields.columns.values()}
    wanted = BASE if asked is None else [name for name in BASE if name in asked | _PERIODS]
    base = [name for name in wanted if span is None or name != "standing"]
    if span is not None:
        nodes["row"] = texts([str(number) for number, *_ in periods])
        nodes["tx_to"] = _ends([bounds for *_, bounds in periods], span)
    try:
        _make_tables(graph, fields, {name: nodes[name].type for name in base if span is not None})
    except BaseException:
        graph.close()
        raise

    def node_table(_: ViewGraph) -> pa.Table:
        if span is None:
            nodes["standing"] = texts(source.standings())
        names = base if span is None else ["row", "tx_to", *base]
        return pa.table({name: nodes[name] for name in [*names, *fields.properties.values()]})

    of_node: OfNode = {}
    for number, node, bounds in periods if span is not None else ():
        of_node.setdefault(node, []).append((number, bounds))
    waiting: dict[str, list[tuple[tuple[str, str], list[Any]]]] = {}
    groups = source.groups() if span is None else _links_of_kinds(source, of_node)
    for (kind, *ends), rows in groups.items():
        waiting.setdefault(link_table(kind), []).append(((ends[0], ends[1]), rows))
    kinds = set(map(link_table, {*vocabulary.kinds, *source.kinds}))
    if span is None:
        graph.await_links(kinds, waiting, source.links, "view_link")
        graph.await_things(
            {
                NODE: node_table,
                EVENT: lambda _: source.events(),
                ABSENT: lambda mine: _with_fields(mine, fields, *source.absent()),
            }
        )
    else:
        graph.await_links(kinds, waiting, lambda links: _links(source, span, of_node, links), "period_link")
        graph.await_things({NODE: node_table})
        if asked is None:
            graph.identity = LINK_ID
    return graph


def _make_tables(graph: ViewGraph, fields: Fields, types: dict[str, pa.DataType]) -> None:
    """Make the tables of the labels. `types`: of the columns of a graph of periods; empty for that of one coordinate."""
    own = "".join(f",\n  `{each.name}` {each.type}" for each in fields.columns.values())
    if types:
        shape = "".join(f",\n  `{name}` {_type(kind)}" for name, kind in types.items())
        graph.engine.run(text("period_node").replace("__FIELDS__", shape + own))
        return
    graph.engine.run(text("view_node").replace("__FIELDS__", own))
    graph.engine.run(text("view_absent"))
    graph.engine.run(text("view_event"))


def memory_of(rows: int, content: int) -> int:
    """Return the limit of the engine's memory for so many rows and bytes of contents; only what is used is taken."""
    return 2 * POOL + 8192 * rows + 8 * content


# -------------------------------------------------------------------------------------------- links of many coordinates


def _links_of_kinds(source: RowSource, of_node: OfNode) -> dict[tuple[str, str, str], list[Any]]:
    """Return the periods of links between nodes, by their kinds. The source hands them over."""
    links, source.link_periods = source.link_periods, []
    found: dict[tuple[str, str, str], list[Any]] = {}
    for link in links:
        if link[2] in of_node and link[3] in of_node:
            found.setdefault((link[1], NODE, NODE), []).append(link)
    return found


def _links(source: RowSource, span: Span, of_node: OfNode, links: Sequence[Any]) -> pa.Table:
    """Make the rows of links, each from every row of its source to every row of its target that it meets."""
    places, starts, targets, ends = [], [], [], []
    for place, (_, _, *joined, valid_from, valid_to, tx_from, tx_to) in enumerate(links):
        bounds = Bounds(valid_from, valid_to, tx_from, tx_to)
        met = [[each for each in of_node[end] if _meet(bounds, each[1])] for end in joined]
        for (start, of_start), (target, of_target) in product(*met):
            if _meet(bounds, of_start, of_target):
                places.append(place)
                starts.append(str(start))
                targets.append(str(target))
                ends.append(bounds)
    found = source.links([number for number, *_ in links]).take(numbers(places))
    own = {"source": texts(starts), "target": texts(targets), "tx_to": _ends(ends, span)}
    return pa.table({**{name: found[name] for name in found.column_names}, **own})


def _ends(bounds: Sequence[Bounds], span: Span) -> pa.Array:
    """Make the column that says until when rows are believed. A query at one tx does not know that."""
    return instants([each.tx_to if span.axis == "tx" else OPEN for each in bounds])


def _meet(*bounds: Bounds) -> bool:
    """Return True if all have a coordinate in common."""
    valid_from, valid_to, tx_from, tx_to = zip(*bounds, strict=True)
    return bool(max(valid_from) < min(valid_to) and max(tx_from) < min(tx_to))


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "STRING[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return "INT64" if pa.types.is_integer(kind) else "BOOLEAN" if pa.types.is_boolean(kind) else "STRING"


# -------------------------------------------------------------------------------------------- content fields


def _with_fields(graph: ViewGraph, fields: Fields, absent: pa.Table, contents: list[Json]) -> pa.Table:
    """Add the fields of contents to what does not stand, as columns, which its table is given: the same fields as of nodes, of the same types, and those that
    only it has. A value of another type is in content only."""
    names, _ = chosen(contents)
    taken = {name.casefold() for name in (*RESERVED, *fields.properties.values())}
    for name in [*fields.columns, *(name for name in names if name not in fields.columns)]:
        known, values = fields.columns.get(name), [content.get(name) for content in contents]
        each = _column(known.name if known else property_name(name, taken), values, known and known.kind)
        more = text("view_field", TYPE=each.type)
        graph.engine.run(more.replace("__FIELD__", each.name))
        absent = absent.append_column(each.name, each.values)
        if known is None:
            fields.absent.append(each.name)
    return absent


def fields_of(contents: list[Json], only: Iterable[str] | None = None) -> Fields:
    """Return the fields of contents; with `only`, the columns of these alone."""
    names, left_out = chosen(contents)
    taken = {name.casefold() for name in RESERVED}
    return Fields(
        {
            name: _column(property_name(name, taken), [content.get(name) for content in contents])
            for name in (names if only is None else only)
        },
        left_out,
    )


def _column(name: str, values: list[Any], kind: FieldKind | None = None) -> Column:
    """Make the column of a field. `kind`: what its values are, where it is to be the same as elsewhere; else what these agree on."""
    given = field_kind(values) if kind is None else kind
    if given == "text":
        return Column(name, "STRING", given, texts([_text(value) for value in values]))
    if name.lower() not in _EVENT_TEXTS:
        fitting = values
        if kind is not None or given == "number":  # else they are all of it
            fitting = [
                value if value is None or field_kind((value,)) in _FITS.get(given, ()) else None
                for value in values
            ]
        if given == "truth":
            return Column(name, "BOOL", given, truths(fitting))
        if given == "whole":
            return Column(name, "INT64", given, numbers(fitting))
        if given == "number":
            return Column(
                name,
                "DOUBLE",
                given,
                fractions([None if value is None else float(value) for value in fitting]),
            )
    return Column(
        name, "STRING", "json", texts([None if value is None else dumps(value).decode() for value in values])
    )


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else dumps(value).decode()


def _agreed(contents: list[Json], asked: frozenset[str]) -> Fields:
    """Return the fields that are asked for. Raises QueryError where some coordinate has another type or name for one."""
    names = {name for content in contents for name in content}
    wanted = {name.casefold() for name in asked}
    taken = set(RESERVED)
    alone = {name: property_name(name, set(RESERVED)) for name in sorted(names)}
    chosen = [name for name, shown in alone.items() if shown.casefold() in wanted]
    fields = fields_of(contents, only=chosen)
    if fields.left_out:
        raise QueryError("there are too many fields to be the same properties everywhere.")
    for name in sorted(names):
        if property_name(name, taken) != alone[name]:
            raise QueryError(f"the field {name!r} is not the same property everywhere.")
    for name in chosen:
        kinds = {type(value) for content in contents if (value := content.get(name)) is not None}
        one = len(kinds) < 2 or kinds <= {list, dict}
        if not one or (kinds == {int} and fields.columns[name].kind != "whole"):
            raise QueryError(f"the field {name!r} has values of several types.")
    return fields
