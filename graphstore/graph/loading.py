"""Load graphs of views: the rows of one or many coordinates become Arrow tables, which an engine loads when a query may read them.

The graph of many coordinates has a node for each row, with both its periods, and a link between each two rows that it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

from graphstore.errors import QueryError
from graphstore.graph.arrow_tables import field_column, instants, numbers, texts
from graphstore.graph.arrow_types import spelled_out
from graphstore.graph.graph_from_rows import ABSENT, EVENT, NODE, GraphSpan, Group, PeriodBounds, RowSource
from graphstore.graph.once_each import LINK_ID, PLACE
from graphstore.graph.projection import POOL, link_table
from graphstore.graph.properties import FieldKind, chosen, field_kind, property_name
from graphstore.graph.texts import text
from graphstore.graph.view_graph import BASE, Ends, FieldColumn, Fields, ViewGraph, Waiting
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
_TYPES = {"truth": "BOOL", "whole": "INT64", "number": "DOUBLE"}
_COLUMN = 8 << 20  # bytes that the engine takes at once for a column


OfNode = dict[int, list[tuple[int, PeriodBounds]]]
"""The periods of each node, by the numbers of nodes."""
MakeEngine = Callable[[int, int], AnyEngine]


def build(
    source: RowSource, span: GraphSpan | None, vocabulary: Vocabulary, *, engine: MakeEngine
) -> ViewGraph:
    """Build the graph of a coordinate, or with `span` that of many. `engine` returns an engine for a number of bytes and a number of things.

    Raises QueryError if the span names properties that have several types.
    """
    nodes, contents = source.nodes()
    asked = None if span is None else span.fields
    fields = fields_of(contents) if asked is None else _agreed(contents, asked)
    nodes |= {each.name: each.values for each in fields.columns.values()}
    known, links, content = source.size
    # a limit: the engine takes only what it uses
    memory = 2 * POOL + 8192 * (known + links + len(source.periods)) + 8 * content
    memory += len(fields.columns) * _COLUMN
    tables = set(map(link_table, {*vocabulary.kinds, *source.kinds}))
    made = engine(memory, max(known, len(source.periods)))
    try:
        if span is None:
            return _of_view(made, source, nodes, fields, tables)
        return _of_periods(made, source, span, nodes, fields, tables)
    except BaseException:
        made.close()
        raise


def _of_view(
    engine: AnyEngine, source: RowSource, nodes: dict[str, pa.Array], fields: Fields, tables: set[str]
) -> ViewGraph:
    engine.run(text("view_node", LABEL=NODE).replace("__FIELDS__", _declared(fields.columns.values())))
    engine.run(text("view_event"))

    def node_table() -> pa.Table:
        nodes["standing"] = texts(source.standings())
        return pa.table({name: nodes[name] for name in [*BASE, *fields.properties.values()]})

    things = {
        NODE: node_table,
        EVENT: source.events,
        ABSENT: lambda: _absent(engine, fields, *source.absent()),
    }
    groups = _by_table(source.groups())
    return ViewGraph(engine, fields, Waiting(things, tables, "", groups, source.links))


def _of_periods(
    engine: AnyEngine,
    source: RowSource,
    span: GraphSpan,
    nodes: dict[str, pa.Array],
    fields: Fields,
    tables: set[str],
) -> ViewGraph:
    periods, asked = source.periods, span.fields
    base = [name for name in BASE if name != "standing" and (asked is None or name in asked | _PERIODS)]
    nodes["row"] = texts([str(number) for number, *_ in periods])
    nodes["tx_to"] = _ends([bounds for *_, bounds in periods], span)
    shape = "".join(f",\n  `{name}` {spelled_out(nodes[name].type) or 'STRING'}" for name in base)
    engine.run(text("period_node").replace("__FIELDS__", shape + _declared(fields.columns.values())))
    of_node: OfNode = {}
    for number, node, bounds in periods:
        of_node.setdefault(node, []).append((number, bounds))
    columns = ["row", "tx_to", *base, *fields.properties.values()]
    return ViewGraph(
        engine,
        fields,
        Waiting(
            {NODE: lambda: pa.table({name: nodes[name] for name in columns})},
            tables,
            ",\n  tx_to TIMESTAMP",
            _by_table(_links_of_kinds(source, of_node)),
            lambda links: _links(source, span, of_node, links),
        ),
        labels=(NODE,),
        of_view=asked is None,
        identity=LINK_ID if asked is None else PLACE,
    )


def _declared(columns: Iterable[FieldColumn]) -> str:
    return "".join(f",\n  `{each.name}` {each.type}" for each in columns)


def _by_table(groups: dict[Group, list[Any]]) -> dict[str, list[tuple[Ends, list[Any]]]]:
    found: dict[str, list[tuple[Ends, list[Any]]]] = {}
    for (kind, source, target), rows in groups.items():
        found.setdefault(link_table(kind), []).append(((source, target), rows))
    return found


# -------------------------------------------------------------------------------------------- links of many coordinates


def _links_of_kinds(source: RowSource, of_node: OfNode) -> dict[Group, list[Any]]:
    """Group the periods of links between nodes by kind; the source drops them."""
    links, source.link_periods = source.link_periods, []
    found: dict[Group, list[Any]] = {}
    for link in links:
        if link[2] in of_node and link[3] in of_node:
            found.setdefault((link[1], NODE, NODE), []).append(link)
    return found


def _links(source: RowSource, span: GraphSpan, of_node: OfNode, links: Sequence[Any]) -> pa.Table:
    """Return the rows of links: one for each pair of a source row and a target row with which the link has a coordinate in common."""
    places, starts, targets, ends = [], [], [], []
    for place, (_, _, *joined, valid_from, valid_to, tx_from, tx_to) in enumerate(links):
        bounds = PeriodBounds(valid_from, valid_to, tx_from, tx_to)
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


def _ends(bounds: Sequence[PeriodBounds], span: GraphSpan) -> pa.Array:
    """Return the column of the ends of belief (`tx_to`). A query at one tx cannot know these: they are open."""
    return instants([each.tx_to if span.axis == "tx" else OPEN for each in bounds])


def _meet(*bounds: PeriodBounds) -> bool:
    """Return True if all have a coordinate in common."""
    valid_from, valid_to, tx_from, tx_to = zip(*bounds, strict=True)
    return bool(max(valid_from) < min(valid_to) and max(tx_from) < min(tx_to))


# -------------------------------------------------------------------------------------------- content fields


def _absent(engine: AnyEngine, fields: Fields, rows: pa.Table, contents: list[Json]) -> pa.Table:
    """Create the table of what does not stand, and return its rows with fields of contents as columns: the fields of nodes with the same types, and its own. A
    value of another type is only in `content`."""
    names, _ = chosen(contents)
    taken = {name.casefold() for name in (*RESERVED, *fields.properties.values())}
    columns = []
    for name in [*fields.columns, *(name for name in names if name not in fields.columns)]:
        known, values = fields.columns.get(name), [content.get(name) for content in contents]
        each = _column(known.name if known else property_name(name, taken), values, known and known.kind)
        columns.append(each)
        rows = rows.append_column(each.name, each.values)
        if known is None:
            fields.absent.append(each.name)
    engine.run(text("view_node", LABEL=ABSENT).replace("__FIELDS__", _declared(columns)))
    return rows


def fields_of(contents: list[Json], only: Iterable[str] | None = None) -> Fields:
    """Return the fields of contents; with `only`, columns of these alone."""
    names, left_out = chosen(contents)
    taken = {name.casefold() for name in RESERVED}
    return Fields(
        {
            name: _column(property_name(name, taken), [content.get(name) for content in contents])
            for name in (names if only is None else only)
        },
        left_out,
    )


def _column(name: str, values: list[Any], kind: FieldKind | None = None) -> FieldColumn:
    """Return the column of a field. `kind`: a required kind, to be the same as elsewhere; else the one on which the values agree."""
    given = field_kind(values) if kind is None else kind
    if given != "text" and name.lower() in _EVENT_TEXTS:
        given = "json"
    if given in _FITS and (kind is not None or given == "number"):  # else all values fit
        values = [
            value if value is None or field_kind((value,)) in _FITS[given] else None for value in values
        ]
    elif given == "text":
        values = list(map(_text, values))
    return FieldColumn(name, _TYPES.get(given, "STRING"), given, field_column(given, values))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else dumps(value).decode()


def _agreed(contents: list[Json], asked: frozenset[str]) -> Fields:
    """Return the requested fields. Raises QueryError if a field could have another type or property name at some coordinate."""
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
