"""The graph of a view, or of many coordinates, in an engine in memory. Data is loaded when a query may first read it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from graphstore.errors import QueryError
from graphstore.graph import macros, unknown_names
from graphstore.graph.graph_from_rows import LABELS
from graphstore.graph.limits import LIMITS, QueryLimits
from graphstore.graph.once_each import PLACE, labels_at, once_each
from graphstore.graph.projection import Pen
from graphstore.graph.properties import FieldKind
from graphstore.graph.result import Result
from graphstore.graph.statement import Token, parse
from graphstore.graph.texts import text
from graphstore.graph.workers import AnyEngine

Ends = tuple[str, str]

BASE = ("id", "kind", "key", "scope", "number", "text", "tags", "trigger", "source", "standing",
         "author", "told", "remainder", "valid_from", "valid_to", "tx_from", "content")  # fmt: skip
_LABELS = frozenset(name.upper() for name in LABELS)
_NAMES = frozenset({"word", "quoted"})  # kinds of token
_OF_A_NODE = frozenset(
    {"COUNT", "COLLECT", "MIN", "MAX", "SUM", "AVG", "ID", "LABEL", "LABELS", "SIZE"}
)  # functions


def _columns(definition: str) -> list[str]:
    """Return the columns of a table from the statement that creates it."""
    return re.findall(r"^  (\w+) (?!TO |Node )[A-Z]", definition, re.MULTILINE)


class FieldColumn(NamedTuple):
    """A field of contents as a column: its name and type in Cypher, the kind of its values, and the values."""

    name: str
    type: str
    kind: FieldKind
    values: pa.Array


class Fields:
    """Holds the fields of the contents of nodes as columns, by field."""

    def __init__(self, columns: dict[str, FieldColumn], left_out: int) -> None:
        self.columns = columns
        self.left_out = left_out
        self.absent: list[str] = []
        """Columns that only Absent has, once its rows are loaded."""

    @property
    def properties(self) -> dict[str, str]:
        """Return the column name of each field."""
        return {field: column.name for field, column in self.columns.items()}

    def known(self) -> str:
        """Return a sentence that lists the available names."""
        names = _listed([*BASE, *self.properties.values()])
        rare = f" {self.left_out} rarer content fields are in content only." if self.left_out else ""
        only = f" Absent has these and {_listed(self.absent)}." if self.absent else ""
        return f"Node has {names}.{rare}{only} A content field that no node has here is no column."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" if not name.isidentifier() else name for name in names)


class Waiting(NamedTuple):
    """Holds what is loaded into a graph when a query may first read it. It must not refer to the graph, which ends with its last reader.

    `things`: functions that return the rows of a label. `tables`: relationship tables to be created, with `columns` in addition to the common ones.
    `groups`: links of a table by the labels of their ends, in the form that `links` converts to columns.
    """

    things: dict[str, Callable[[], pa.Table]]
    tables: set[str]
    columns: str
    groups: dict[str, list[tuple[Ends, list[Any]]]]
    links: Callable[[list[Any]], pa.Table]


class ViewGraph:
    """The engine of one view. The first query that names a kind of link creates its table and loads its links; the first that may read a label loads its rows,
    and links to them.

    It knows the fields of its contents and lists them when a query names another. `of_view`: True if it holds only what is believed at one tx. `identity`:
    the expression that identifies a link.
    """

    def __init__(
        self,
        engine: AnyEngine,
        fields: Fields,
        waiting: Waiting,
        *,
        labels: tuple[str, ...] = LABELS,
        of_view: bool = True,
        identity: str = PLACE,
    ) -> None:
        self.engine, self.close = engine, engine.close
        self._labels, self._of_view, self._identity = labels, of_view, identity
        self._fields, self._waiting = fields, waiting
        self.broken = False  # True if a load failed
        self._linked = frozenset(waiting.groups)
        self._loading = threading.Lock()

    def query(
        self, cypher: str, params: Mapping[str, Any] | None = None, *, limits: QueryLimits | None = LIMITS
    ) -> Result:
        """Run a text as `Engine.query` does. For an unknown column it raises a QueryError that lists the known ones."""
        self.make_ready(cypher, limits)
        written = macros.written_out(cypher, self._field, of_view=self._of_view)
        if self._identity != PLACE:
            written = once_each(parse(written, limits), self._identity).text
        try:
            return self.engine.query(written, params, limits=limits)
        except QueryError as error:
            raise unknown_names.in_a_view(
                error, self._labels, self._linked, lambda variable: self._known(variable, cypher)
            ) from None

    def _known(self, variable: str, cypher: str) -> str:
        """Return a sentence that lists the properties of what a variable stands for in a text: an event, a link, or else a node."""
        name = re.escape(variable)
        if re.search(rf"\(\s*`?{name}`?\s*:\s*Event\b", cypher, re.IGNORECASE):
            return f"Event has {_listed(_columns(text('view_event')))}."
        if re.search(rf"\[\s*`?{name}`?\s*[:\]*{{]", cypher):
            return f"A link has {_listed(_columns(self._link_table('LINK')))}."
        return self._fields.known()

    def _field(self, variable: str, name: str) -> str:
        """Return the expression for a field of a node's content: its property if it has one, else from the content. As in the tables, `*` means all fields,
        and `a/b` is within a map."""
        if name in self._fields.properties and name != "*" and "/" not in name:
            return f"{variable}.`{self._fields.properties[name]}`"
        if "." in name and not self._fields.left_out:
            return "CAST(NULL AS STRING)"
        return macros.in_content(self.engine, "Node", variable, name)

    def make_ready(self, cypher: str | None, limits: QueryLimits | None = LIMITS) -> ViewGraph:
        """Load what a text may read; for None all labels, but no links."""
        with self._loading:  # a second thread waits until its data is loaded
            if self.broken:
                raise RuntimeError("the graph is not whole. Build it again")
            waiting = self._waiting
            if waiting.groups or waiting.tables or waiting.things:
                labels = None if cypher is None else named_labels(cypher, limits)
                tables = frozenset() if cypher is None else named_tables(cypher, limits)
                try:
                    self._load(labels, tables)
                except BaseException:
                    self.broken = True
                    raise
        return self

    def _load(self, labels: frozenset[str] | None, tables: frozenset[str] | None) -> None:
        waiting = self._waiting
        for table in sorted(waiting.tables if tables is None else waiting.tables & tables):
            self.engine.run(self._link_table(table))
            waiting.tables.discard(table)
        with Pen() as pen:
            for label in [name for name in waiting.things if labels is None or name.upper() in labels]:
                pen.write(self._fill, label, waiting.things.pop(label)())
            for table in [name for name in waiting.groups if tables is None or name in tables]:
                for (source, target), rows in waiting.groups.pop(table):
                    if labels is not None and not labels.issuperset((source.upper(), target.upper())):
                        waiting.groups.setdefault(table, []).append(((source, target), rows))
                        continue
                    if (source, target) != ("Node", "Node"):
                        self.engine.run(text("view_pair", KIND=table, SOURCE=source, TARGET=target))
                    pen.write(self._fill, table, waiting.links(rows), (source, target))

    def _link_table(self, kind: str) -> str:
        return text("view_link", KIND=kind).replace("__FIELDS__", self._waiting.columns)

    def _fill(self, table: str, rows: pa.Table, pair: Ends | None = None) -> None:
        self.engine.copy(table, rows, pair=pair, is_empty=True)


def named_tables(cypher: str, limits: QueryLimits | None = LIMITS) -> frozenset[str] | None:
    """Return the relationship tables that a text can read, in upper case; None if it may read any. When unsure, None."""
    tokens = parse(cypher, limits).tokens
    if _is_odd(tokens):
        return None
    words = [token.text for token in tokens] + ["", ""]
    named: set[str] = set()
    for at, word in enumerate(words):
        if word != "-" or words[at - 1] == "]":
            continue
        if words[at + 1] != "[":
            if words[at + 1] in ("-", ">") or (words[at - 1], words[at + 1]) == (")", "("):
                return None
            continue
        at += 2
        if words[at] != ":":
            at += 1
        if words[at] != ":":
            return None
        named |= labels_at(words, at)[0]
    return frozenset(named)


def _is_odd(tokens: Sequence[Token]) -> bool:
    """Return True if a text calls procedures, or has other characters for dashes and arrow heads."""
    return any(
        token.word == "CALL" or (token.kind == "mark" and not token.text.isascii()) for token in tokens
    )


def named_labels(cypher: str, limits: QueryLimits | None = LIMITS) -> frozenset[str] | None:
    """Return the labels that a text can read, in upper case, if it names them for each node and each hop; None if it may read any. When unsure, None."""
    tokens = parse(cypher, limits).tokens
    if _is_odd(tokens):
        return None
    kinds = [token.kind for token in tokens] + [""] * 3
    words = [token.text for token in tokens] + [""] * 3
    labels: set[str] = set()
    lists = 0
    for at, word in enumerate(words):
        lists += (word == "[") - (word == "]")
        if (word == "*" and lists) or (word in ("-", ">") and words[at + 1] in ("{", "+", "*")):
            return None  # a path of several hops, whose inner nodes have no label
        if (kinds[at], word) != ("mark", "("):
            continue
        to = at + 1 + (kinds[at + 1] in _NAMES)
        labelled = words[to] == ":"
        found, to = labels_at(words, to)
        labels |= found
        ended = words[to].upper() in (")", "{", "WHERE")
        if ended != labelled and not (ended and words[at - 1].upper() in _OF_A_NODE):
            return None
    return frozenset(labels) if labels <= _LABELS else None
