"""The graph of one view, built in an engine in memory: a query over it needs no temporal predicate.

What holds at (valid, tx) is found in the index and handed over through Arrow. Nothing that was learned after tx goes in.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.foundations import Resting, within_reach
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Happened, Raw, tombstone
from graphstore.core.index.shaky_spans import NO, NOT_KEPT
from graphstore.core.journal.line import dumps
from graphstore.core.tables import macros, unknown_names
from graphstore.core.tables.arrow_tables import (
    NodeTables,
    claim_columns,
    description_columns,
    end_columns,
    event_columns,
    fractions,
    holding,
    instants,
    numbers,
    read_bodies,
    texts,
    told_columns,
    truths,
)
from graphstore.core.tables.guard import LIMITS, Limits, parse
from graphstore.core.tables.once_each import PLACE, once_each
from graphstore.core.tables.projection import POOL, Pen, fill, link_table
from graphstore.core.tables.properties import FieldKind, chosen, field_kind, property_name
from graphstore.core.tables.result import Result
from graphstore.core.tables.texts import text
from graphstore.core.tables.workers import AnyEngine
from graphstore.errors import QueryError
from graphstore.values.event_fields import BODY
from graphstore.values.models import Json
from graphstore.values.period import Instant
from graphstore.values.vocabulary import Vocabulary

Ends = tuple[str, str]
Waiting = dict[str, list[tuple[Ends, list[int]]]]

LABELS = ("Node", "Absent", "Event")
_NODE, _ABSENT, _EVENT = range(3)
BASE = ("id", "kind", "key", "scope", "number", "text", "tags", "trigger", "source", "standing",
         "author", "told", "remainder", "valid_from", "valid_to", "tx_from", "content")  # fmt: skip
_EVENT_TEXTS = frozenset({"type", *(field.name for field in BODY if field.kind != "truth")})
RESERVED = frozenset(
    {*BASE, "recorded_at", "occurred_at", "first_seen", "last_seen", "_id", "_label", "_src", "_dst"}
)
_NO_PROPERTY = re.compile(r"Cannot find property (.+) for (.+?)\.?\Z", re.DOTALL)
_MANY = 0.1  # of all that rests on something: from then on what fell is followed to all that it shakes
_LABELS = frozenset(name.upper() for name in LABELS)
_NAMES = frozenset({"word", "quoted"})  # kinds of token
_OF_A_NODE = frozenset(
    {"COUNT", "COLLECT", "MIN", "MAX", "SUM", "AVG", "ID", "LABEL", "LABELS", "SIZE"}
)  # functions
_FITS: dict[str, tuple[str, ...]] = {"truth": ("truth",), "whole": ("whole",), "number": ("whole", "number")}
_COLUMN = 8 << 20  # what the engine takes at once for a column


def build(
    index: Index,
    raw: Raw,
    tables: NodeTables,
    valid: Instant,
    tx: Instant,
    vocabulary: Vocabulary,
    *,
    engine: Callable[[int, int], AnyEngine],
) -> ViewGraph:
    """The graph at (valid, tx), in what `engine` makes for so many bytes of memory and so many things. `raw` reads bodies, `tables` keeps what nodes say."""
    rows: list[int] = holding(index.r_from, index.r_to, index.r_tx, index.r_end, valid, tx).to_pylist()
    if index.gone:
        rows = [row for row in rows if index.r_ent[row] not in index.gone]
    link_rows: list[int] = holding(index.k_from, index.k_to, index.k_tx, index.k_end, valid, tx).to_pylist()
    labels = bytearray(b"\xff") * len(index.names)
    for row in rows:
        ent = index.r_ent[row]
        labels[ent] = _EVENT if index.is_event[ent] else _NODE
    node_rows = [row for row in rows if labels[index.r_ent[row]] == _NODE]
    nodes, ents = tables.of(numbers(node_rows)), [index.r_ent[row] for row in node_rows]
    events = [(index.r_ent[row], row) for row in rows if labels[index.r_ent[row]] == _EVENT]
    known = zip(labels, index.born, strict=False)  # others may come meanwhile, with a later tx
    absent = [ent for ent, (label, born) in enumerate(known) if label == 0xFF and born <= tx]
    for ent in absent:
        labels[ent] = _ABSENT

    fields = fields_of(orjson.loads(f"[{','.join(each or '{}' for each in nodes['content'].to_pylist())}]"))
    memory = memory_of(index, rows, link_rows) + len(fields.columns) * _COLUMN
    graph = ViewGraph(engine(memory, len(rows) + len(absent)), fields)
    driver = graph.driver
    try:
        shape = "".join(f",\n  `{each.name}` {each.type}" for each in fields.columns.values())
        graph.engine.run(text("view_node", driver=driver).replace("__FIELDS__", shape))
        graph.engine.run(text("view_absent", driver=driver))
        graph.engine.run(text("view_event", driver=driver))
    except BaseException:
        graph.close()
        raise

    uprights = partial(_uprights, Resting(index, valid, tx, raw), rows, link_rows)

    def node_table() -> pa.Table:
        nodes["standing"] = texts(uprights(ents))
        nodes["remainder"] = pc.less(nodes["told"], nodes["tx_from"])
        return pa.table(
            {name: nodes[name] for name in BASE}
            | {each.name: each.values for each in fields.columns.values()}
        )

    kinds = set(map(link_table, {*vocabulary.kinds, *index.l_kind}))
    graph.await_links(kinds, _link_groups(index, link_rows, labels), partial(link_columns, index, raw))
    graph.await_things(
        {
            "Node": lambda _: node_table(),
            "Event": lambda _: _Things(index, raw, events).event_table(valid, tx, uprights),
            "Absent": lambda mine: mine.with_fields(*_absent_table(index, raw, absent, valid, tx)),
        }
    )
    return graph


def _columns(name: str, driver: str) -> list[str]:
    """The columns of a table, by the text that makes it."""
    return re.findall(r"^  (\w+) (?!TO |Node )[A-Z]", text(name, driver=driver), re.MULTILINE)


def _uprights(resting: Resting, rows: list[int], link_rows: list[int], ents: list[int]) -> list[str]:
    """How some of the things that hold there stand: superseded can only be an event. `rows` and `link_rows`: all that hold there."""
    index, valid, tx = resting.index, resting.valid, resting.tx
    kept = index._shaken
    within = [ent for ent in ents if ent in index.rests and within_reach(index, ent, tx)]
    says = {ent: NOT_KEPT if kept is None else kept.says(ent, valid, tx) for ent in within}
    unknown = [ent for ent in within if says[ent] < 0]
    if len(unknown) > _MANY * len(index.rests):
        resting.take({index.r_ent[row]: row for row in rows}, link_rows)
        shaky = resting.shaken()
    else:
        shaky = {ent for ent in unknown if resting.is_shaky(ent)}
    return [
        "superseded"
        if index.is_event[ent]
        and (ent in index.successors or index._outside is not None)
        and index.superseded(ent, valid, tx)
        else "shaky"
        if (answer := says.get(ent, NO)) > 0 or (answer < 0 and ent in shaky)
        else "stands"
        for ent in ents
    ]


class ViewGraph:
    """The engine of one view. The table of a kind of link is made, and its links loaded, when a query first names that kind; the rows of a label, and
    links to them, when a query first may read it.

    It knows which fields its contents have, and names them when a query asks for another.
    """

    def __init__(
        self, engine: AnyEngine, fields: Fields, *, labels: tuple[str, ...] = LABELS, of_view: bool = True
    ) -> None:
        self.engine, self.driver = engine, engine.driver
        self._labels, self._of_view = labels, of_view
        self.load, self.close = engine.load, engine.close
        self._fields = fields
        self._waiting: Waiting = {}
        self._things: dict[str, Callable[[ViewGraph], pa.Table]] = {}
        self.identity = PLACE
        self.broken = False  # whether something was not loaded that should be
        self._unmade: set[str] = set()
        self._linked: frozenset[str] = frozenset()
        self._loading = threading.Lock()
        self._links: Callable[[list[int]], pa.Table]
        self._link_text = ""

    def await_links(
        self,
        tables: set[str],
        waiting: Waiting,
        links: Callable[[list[int]], pa.Table],
        made_by: str = "view_link",
    ) -> None:
        """The relationship tables, the links there are, what makes columns of them, and the text that makes a table."""
        self._unmade, self._waiting, self._links, self._link_text = tables, waiting, links, made_by
        self._linked = frozenset(waiting)

    def await_things(self, things: dict[str, Callable[[ViewGraph], pa.Table]]) -> None:
        """What makes the rows of the labels that are still empty, of this graph. None of it holds the graph: that goes with its last reader."""
        self._things = things

    def with_fields(self, absent: pa.Table, contents: list[Json]) -> pa.Table:
        """What does not stand, with the fields of its contents as columns, which its table is given."""
        for each in self._fields.of_absent(contents):
            more = text("view_field", driver=self.driver, TYPE=each.type)
            self.engine.run(more.replace("__FIELD__", each.name))
            absent = absent.append_column(each.name, each.values)
        return absent

    def query(
        self, cypher: str, params: Mapping[str, Any] | None = None, *, limits: Limits | None = LIMITS
    ) -> Result:
        """`Engine.query`. A column that is not there raises a QueryError that lists those that are."""
        self.make_ready(cypher, limits)
        written = macros.written_out(cypher, self._field, of_view=self._of_view, driver=self.driver)
        if self.identity != PLACE:
            written = once_each(parse(written, limits), self.identity).text
        try:
            return self.engine.query(written, params, limits=limits)
        except QueryError as error:
            missing = _NO_PROPERTY.search(str(error))
            if missing is None:
                raise unknown_names.in_a_view(error, self._labels, self._linked) from None
            raise QueryError(
                f"no property {missing[1]!r} for {missing[2]!r}. {self._known(missing[2], cypher)}"
            ) from error

    def _known(self, variable: str, cypher: str) -> str:
        """A sentence that lists the properties of what a variable of a text stands for: an event, a link, else a node."""
        name = re.escape(variable)
        if re.search(rf"\(\s*`?{name}`?\s*:\s*Event\b", cypher, re.IGNORECASE):
            return f"Event has {_listed(_columns('view_event', self.driver))}."
        if re.search(rf"\[\s*`?{name}`?\s*[:\]*{{]", cypher):
            return f"A link has {_listed(_columns(self._link_text, self.driver))}."
        return self._fields.known()

    def _field(self, variable: str, name: str) -> str:
        """The field of a node's content: its property, or what the content says where it has none of its own. `*` is no property but all of them, and
        `a/b` is within a map, as in the tables."""
        if name in self._fields.properties and name != "*" and "/" not in name:
            return f"{variable}.`{self._fields.properties[name]}`"
        if "." in name and not self._fields.left_out:
            return "CAST(NULL AS STRING)"
        return macros.in_content(variable, name, macros.kinds_of(self.engine, "Node", name))

    def make_ready(self, cypher: str | None, limits: Limits | None = LIMITS) -> ViewGraph:
        """Load what a text may read, of None everything but links."""
        with self._loading:  # a second thread waits until what it may read is loaded
            if self.broken:
                raise RuntimeError("the graph is not whole. Build it again")
            if self._waiting or self._unmade or self._things:
                labels = None if cypher is None else named_labels(cypher, limits)
                tables = frozenset() if cypher is None else named_tables(cypher, limits)
                try:
                    self._load(labels, tables)
                except BaseException:
                    self.broken = True
                    raise
        return self

    def _load(self, labels: frozenset[str] | None, tables: frozenset[str] | None) -> None:
        for table in sorted(self._unmade if tables is None else self._unmade & tables):
            self.engine.run(text(self._link_text, driver=self.driver, KIND=table))
            self._unmade.discard(table)
        with Pen() as pen:
            for label in [name for name in self._things if labels is None or name.upper() in labels]:
                things = self._things[label](self)
                pen.wait()
                del self._things[label]  # taken off as it is written, never twice
                pen.write(fill, self.engine, label, things)
            for table in [name for name in self._waiting if tables is None or name in tables]:
                self._load_table(pen, table, labels)
                if not self._waiting[table]:
                    del self._waiting[table]

    def _load_table(self, pen: Pen, table: str, labels: frozenset[str] | None) -> None:
        waiting = self._waiting[table]
        for group in [
            each for each in waiting if labels is None or labels.issuperset(map(str.upper, each[0]))
        ]:
            (source, target), rows = group
            if (source, target) != ("Node", "Node"):
                self.engine.run(
                    text("view_pair", driver=self.driver, KIND=table, SOURCE=source, TARGET=target)
                )
            links = self._links(rows)
            pen.wait()
            waiting.remove(group)  # taken off as it is written, never twice
            pen.write(fill, self.engine, table, links, group[0])


def named_tables(cypher: str, limits: Limits | None = LIMITS) -> frozenset[str] | None:
    """The relationship tables a text can read, in upper case; None when it may read any. In doubt it may."""
    tokens = parse(cypher, limits).tokens
    if any(word.upper() == "CALL" for kind, word in tokens if kind == "word"):
        return None
    if any(not mark.isascii() for kind, mark in tokens if kind == "mark"):
        return None  # dashes and arrow heads come in other shapes too
    words = [word for _, word in tokens] + ["", ""]
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
        while words[at] in (":", "|"):
            at += 1 + (words[at + 1] == ":")
            named.add(words[at].strip("`").upper())
            at += 1
    return frozenset(named)


def named_labels(cypher: str, limits: Limits | None = LIMITS) -> frozenset[str] | None:
    """The labels of what a text can read, in upper case, where it says them of each node, and each hop of each path; None when it may read any. In doubt
    it may."""
    tokens = parse(cypher, limits).tokens
    if any(kind == "word" and word.upper() == "CALL" for kind, word in tokens):
        return None
    if any(kind == "mark" and not mark.isascii() for kind, mark in tokens):
        return None
    kinds = [kind for kind, _ in tokens] + [""] * 3
    words = [word for _, word in tokens] + [""] * 3
    labels: set[str] = set()
    lists = 0
    for at, word in enumerate(words):
        lists += (word == "[") - (word == "]")
        if (word == "*" and lists) or (word in ("-", ">") and words[at + 1] in ("{", "+", "*")):
            return None  # a path of several hops, whose nodes have no label
        if (kinds[at], word) != ("mark", "("):
            continue
        to = at + 1 + (kinds[at + 1] in _NAMES)
        labelled = words[to] == ":"
        while words[to] in (":", "|"):
            to += 1 + (words[to + 1] == ":")
            labels.add(words[to].strip("`").upper() if kinds[to] in _NAMES else "")
            to += 1
        ended = words[to].upper() in (")", "{", "WHERE")
        if ended != labelled and not (ended and words[at - 1].upper() in _OF_A_NODE):
            return None
    return frozenset(labels) if labels <= _LABELS else None


# ------------------------------------------------------------------------------------------------ what holds


def memory_of(index: Index, rows: list[int], link_rows: list[int]) -> int:
    """The limit of the engine's memory; only what is used is taken."""
    content = sum(index.v_len[index.r_ver[row]] for row in rows)
    return 2 * POOL + 8192 * (len(rows) + len(link_rows) + len(index.names)) + 8 * content


class _Things:
    """Things of the index as columns, each with the row that shows it. Row -1: it held at no instant."""

    def __init__(self, index: Index, raw: Raw, shown: Iterable[tuple[int, int]]) -> None:
        self.index, self.raw = index, raw
        self.ents: list[int] = []
        self.versions: list[int] = []
        self.since, self.until, self.recorded = array("q"), array("q"), array("q")
        for ent, row in shown:
            born = index.born[ent]
            self.ents.append(ent)
            self.versions.append(index.r_ver[row] if row >= 0 else index.versions_of[ent][0])
            self.since.append(index.r_from[row] if row >= 0 else born)
            self.until.append(index.r_to[row] if row >= 0 else born)
            self.recorded.append(index.r_tx[row] if row >= 0 else born)
        self.bodies = read_bodies(raw, [(index.v_pos[ver], index.v_len[ver]) for ver in self.versions])
        for at, ent in enumerate(self.ents if index.gone else ()):
            self.bodies[at] = self.bodies[at] or tombstone(index, raw, ent)

    def table(self, standings: list[str]) -> pa.Table:
        """The rows as nodes that do not stand."""
        index, ents = self.index, self.ents
        return pa.table(
            {
                "id": texts([index.names[ent] for ent in ents]),
                "kind": texts([index.kind[ent] for ent in ents]),
                "key": texts([index.key[ent] for ent in ents]),
                "scope": texts([index.scope[ent] for ent in ents]),
                "number": numbers([index.v_num[ver] for ver in self.versions]),
                **description_columns(self.bodies),
                "standing": texts(standings),
                **told_columns(index, [index.v_op[ver] for ver in self.versions], self.recorded, named=False),
                "valid_from": instants(self.since),
                "valid_to": instants(self.until),
                "tx_from": instants(self.recorded),
                "content": texts(
                    [dumps(body["content"]).decode() if "content" in body else None for body in self.bodies]
                ),
            }
        )

    def event_table(
        self, valid: Instant, tx: Instant, uprights: Callable[[list[int]], list[str]]
    ) -> pa.Table:
        """The rows as events, with what (valid, tx) knows of their occurrences, and how they stand by `uprights`."""
        index, happened = self.index, Happened(self.index, self.raw, valid, tx)
        seen = [happened.seen(ent) for ent in self.ents]
        bodies = [_shown(happened, ent, body) for ent, body in zip(self.ents, self.bodies, strict=True)]
        types = [index.kind[ent] for ent in self.ents]
        return pa.table(
            {
                "id": texts([index.names[ent] for ent in self.ents]),
                "type": texts(types),
                "occurred_at": instants([first for first, _, _ in seen]),
                "first_seen": instants([first for first, _, _ in seen]),
                "last_seen": instants([last for _, last, _ in seen]),
                "count": numbers([count for _, _, count in seen]),
                "status": texts(
                    [happened.status(ent, body) for ent, body in zip(self.ents, self.bodies, strict=True)]
                ),
                **event_columns(types, bodies),
                "standing": texts(uprights(self.ents)),
                "author": texts(
                    [
                        index.o_author[op] if op >= 0 else None
                        for op in map(index.v_op.__getitem__, self.versions)
                    ]
                ),
                "tx_from": instants([index.born[ent] for ent in self.ents]),
            }
        )


def _absent_table(
    index: Index, raw: Raw, ents: list[int], valid: Instant, tx: Instant
) -> tuple[pa.Table, list[Json]]:
    """What is known and does not hold, with its last content known at tx; and the contents of those that are nodes, of others nothing."""
    found = _Things(index, raw, [(ent, _last_row(index, ent, valid, tx)) for ent in ents])
    happened = Happened(index, raw, valid, tx)
    contents: list[Json] = [
        {} if index.is_event[ent] else body.get("content", {})
        for ent, body in zip(ents, found.bodies, strict=True)
    ]
    for at, ent in enumerate(ents):
        if index.is_event[ent]:
            event = {
                name: value
                for name, value in _shown(happened, ent, found.bodies[at]).items()
                if name not in ("salt", "content")
            }
            found.bodies[at] = {
                "content": event,
                "text": event.get("description"),
                "source": event.get("source"),
                "trigger": None,
            }
    return found.table([index.standing(ent, valid, tx) for ent in ents]), contents


def _shown(happened: Happened, ent: int, body: Json) -> Json:
    """The body of an event with the metadata of its latest occurrence."""
    metadata = happened.latest(ent, body).get("metadata")
    return body if metadata == body.get("metadata") else {**body, "metadata": metadata}


def _last_row(index: Index, ent: int, valid: Instant, tx: Instant) -> int:
    """The row that shows an absent thing: the last one for that instant, or the last of all; -1 for none."""
    row = index.last_cover(ent, valid, tx)
    if row < 0:
        believed = index.believed(ent, tx)
        row = (
            believed[-1]
            if believed
            else max((r for r in index.rows_of[ent] if index.r_tx[r] <= tx), default=-1)
        )
    return row


# ----------------------------------------------------------------------------------------------------- links


def _link_groups(index: Index, rows: list[int], labels: bytearray) -> Waiting:
    """The link rows by the table they belong in and the labels they join."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for row in rows:
        link = index.k_link[row]
        group = (index.l_kind[link], labels[index.l_src[link]], labels[index.l_tgt[link]])
        groups.setdefault(group, []).append(row)
    waiting: Waiting = {}
    for (kind, source, target), members in groups.items():
        waiting.setdefault(link_table(kind), []).append(((LABELS[source], LABELS[target]), members))
    return waiting


def link_columns(index: Index, raw: Raw, rows: list[int]) -> pa.Table:
    links, claims = [index.k_link[row] for row in rows], [index.k_claim[row] for row in rows]
    bodies = read_bodies(raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims])
    return pa.table(
        {
            **end_columns(index, links),
            **claim_columns(index, bodies, links, claims),
            **told_columns(
                index, [index.c_op[claim] for claim in claims], [index.k_tx[row] for row in rows], named=False
            ),
            "valid_from": instants([index.k_from[row] for row in rows]),
            "valid_to": instants([index.k_to[row] for row in rows]),
            "tx_from": instants([index.k_tx[row] for row in rows]),
        }
    )


# -------------------------------------------------------------------------------------------- content fields


class _Column(NamedTuple):
    """A field of contents as a column: its name and type in Cypher, what its values are, and these."""

    name: str
    type: str
    kind: FieldKind
    values: pa.Array


class Fields:
    """The fields of the contents of nodes as columns, by field."""

    def __init__(self, columns: dict[str, _Column], left_out: int) -> None:
        self.columns = columns
        self.left_out = left_out
        self.absent: list[str] = []
        """The columns that only what does not stand has, once its rows are there."""

    @property
    def properties(self) -> dict[str, str]:
        """The column of each field."""
        return {field: column.name for field, column in self.columns.items()}

    def known(self) -> str:
        """A sentence that lists the available names."""
        names = _listed([*BASE, *self.properties.values()])
        rare = f" {self.left_out} rarer content fields are in content only." if self.left_out else ""
        only = f" Absent has these and {_listed(self.absent)}." if self.absent else ""
        return f"Node has {names}.{rare}{only} A content field that no node has here is no column."

    def of_absent(self, contents: list[Json]) -> list[_Column]:
        """The same fields of what does not stand, of the same types, and those that only it has. A value of another type is in content only."""
        names, _ = chosen(contents)
        taken = {name.casefold() for name in (*RESERVED, *self.properties.values())}
        found = []
        for name in [*self.columns, *(name for name in names if name not in self.columns)]:
            known, values = self.columns.get(name), [content.get(name) for content in contents]
            found.append(
                _column(known.name if known else property_name(name, taken), values, known and known.kind)
            )
        self.absent = [column.name for column in found[len(self.columns) :]]
        return found


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" if not name.isidentifier() else name for name in names)


def fields_of(contents: list[Json], only: Iterable[str] | None = None) -> Fields:
    """The fields of contents; with `only`, the columns of these alone."""
    names, left_out = chosen(contents)
    taken = {name.casefold() for name in RESERVED}
    return Fields(
        {
            name: _column(property_name(name, taken), [content.get(name) for content in contents])
            for name in (names if only is None else only)
        },
        left_out,
    )


def _column(name: str, values: list[Any], kind: FieldKind | None = None) -> _Column:
    """The column of a field. `kind`: what its values are, where it is to be the same as elsewhere; else what these agree on."""
    given = field_kind(values) if kind is None else kind
    if given == "text":
        return _Column(name, "STRING", given, texts([_text(value) for value in values]))
    if name.lower() not in _EVENT_TEXTS:
        fitting = values
        if kind is not None or given == "number":  # else they are all of it
            fitting = [
                value if value is None or field_kind((value,)) in _FITS.get(given, ()) else None
                for value in values
            ]
        if given == "truth":
            return _Column(name, "BOOL", given, truths(fitting))
        if given == "whole":
            return _Column(name, "INT64", given, numbers(fitting))
        if given == "number":
            return _Column(
                name,
                "DOUBLE",
                given,
                fractions([None if value is None else float(value) for value in fitting]),
            )
    return _Column(
        name, "STRING", "json", texts([None if value is None else dumps(value).decode() for value in values])
    )


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else dumps(value).decode()
