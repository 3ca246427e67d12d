"""The graph of one view, built in an engine in memory: a query over it needs no temporal predicate.

What holds at (valid, tx) is found in the index and handed over through Arrow. Nothing that was learned after tx goes in.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.foundations import Resting, within_reach
from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Happened, Raw, tombstone
from graphstore.core.index.shaky_spans import NO, NOT_KEPT
from graphstore.core.journal.line import dumps
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
from graphstore.core.tables.projection import POOL, Pen, fill, link_table
from graphstore.core.tables.properties import chosen, field_kind, property_name
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
_BASE = ("id", "kind", "key", "scope", "number", "text", "tags", "trigger", "source", "standing",
         "author", "told", "remainder", "valid_from", "valid_to", "tx_from", "content")  # fmt: skip
_EVENT_TEXTS = frozenset({"type", *(field.name for field in BODY if field.kind != "truth")})
_RESERVED = frozenset(
    {*_BASE, "recorded_at", "occurred_at", "first_seen", "last_seen", "_id", "_label", "_src", "_dst"}
)
_NO_PROPERTY = re.compile(r"Cannot find property (.+) for (.+?)\.?\Z", re.DOTALL)
_MANY = 0.1  # of all that rests on something: from then on what fell is followed to all that it shakes
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
    events = _Things(
        index, raw, [(index.r_ent[row], row) for row in rows if labels[index.r_ent[row]] == _EVENT]
    )
    known = zip(labels, index.born, strict=False)  # others may come meanwhile, with a later tx
    absent = [ent for ent, (label, born) in enumerate(known) if label == 0xFF and born <= tx]
    for ent in absent:
        labels[ent] = _ABSENT

    fields = _fields(orjson.loads(f"[{','.join(each or '{}' for each in nodes['content'].to_pylist())}]"))
    memory = _memory(index, rows, link_rows) + len(fields.columns) * _COLUMN
    graph = ViewGraph(engine(memory, len(rows) + len(absent)), fields)
    driver = graph.driver
    try:
        shape = "".join(f",\n  `{name}` {kind}" for name, kind, _ in fields.columns)
        graph.engine.run(text("view_node", driver=driver).replace("__FIELDS__", shape))
        graph.engine.run(text("view_absent", driver=driver))
        graph.engine.run(text("view_event", driver=driver))
        with Pen() as pen:
            nodes["standing"] = texts(_uprights(index, raw, ents, valid, tx))
            nodes["remainder"] = pc.less(nodes["told"], nodes["tx_from"])
            columns = {name: nodes[name] for name in _BASE} | {name: each for name, _, each in fields.columns}
            pen.write(fill, graph.engine, "Node", pa.table(columns))
            pen.write(
                fill,
                graph.engine,
                "Event",
                events.event_table(valid, tx),
            )
            pen.write(fill, graph.engine, "Absent", _absent_table(index, raw, absent, valid, tx))
    except BaseException:
        graph.close()
        raise
    kinds = set(map(link_table, {*vocabulary.kinds, *index.l_kind}))
    graph.await_links(kinds, _link_groups(index, link_rows, labels), partial(_links, index, raw))
    return graph


def _uprights(index: Index, raw: Raw, ents: list[int], valid: Instant, tx: Instant) -> list[str]:
    """How things that hold there stand: superseded can only be an event."""
    kept, resting = index._shaken, Resting(index, valid, tx, raw)
    within = [ent for ent in ents if ent in index.rests and within_reach(index, ent, tx)]
    says = {ent: NOT_KEPT if kept is None else kept.says(ent, valid, tx) for ent in within}
    unknown = [ent for ent in within if says[ent] < 0]
    if len(unknown) > _MANY * len(index.rests):
        shaky = {one.ent for one in resting.shaky_entities()}
    else:
        shaky = {ent for ent in unknown if resting.is_shaky(ent)}
    return [
        "superseded"
        if ent in index.successors and index.is_event[ent] and index.superseded(ent, valid, tx)
        else "shaky"
        if (answer := says.get(ent, NO)) > 0 or (answer < 0 and ent in shaky)
        else "stands"
        for ent in ents
    ]


class ViewGraph:
    """The engine of one view. The table of a kind of link is made, and its links loaded, when a query first names that kind.

    It knows which fields its contents have, and names them when a query asks for another.
    """

    def __init__(self, engine: AnyEngine, fields: _Fields) -> None:
        self.engine, self.driver = engine, engine.driver
        self.load, self.close = engine.load, engine.close
        self._fields = fields
        self._waiting: Waiting = {}
        self._unmade: set[str] = set()
        self._loading = threading.Lock()
        self._links: Callable[[list[int]], pa.Table]

    def await_links(self, tables: set[str], waiting: Waiting, links: Callable[[list[int]], pa.Table]) -> None:
        """The relationship tables, the links there are, and what makes columns of them."""
        self._unmade, self._waiting, self._links = tables, waiting, links

    def query(
        self, cypher: str, params: Mapping[str, Any] | None = None, *, limits: Limits | None = LIMITS
    ) -> Result:
        """`Engine.query`. A column that is not there raises a QueryError that lists those that are."""
        self._load(cypher, limits)
        try:
            return self.engine.query(cypher, params, limits=limits)
        except QueryError as error:
            missing = _NO_PROPERTY.search(str(error))
            if missing is None:
                raise
            raise QueryError(
                f"no property {missing[1]!r} for {missing[2]!r}. {self._fields.known()}"
            ) from error

    def _load(self, cypher: str, limits: Limits | None) -> None:
        with self._loading:  # a second thread waits until the tables it may name are loaded
            if not self._waiting and not self._unmade:
                return
            named = named_tables(cypher, limits)
            for table in sorted(self._unmade if named is None else self._unmade & named):
                self.engine.run(text("view_link", driver=self.driver, KIND=table))
                self._unmade.discard(table)
            if not self._waiting:
                return
            with Pen() as pen:
                for table in [name for name in self._waiting if named is None or name in named]:
                    self._load_table(pen, table)
                    del self._waiting[table]

    def _load_table(self, pen: Pen, table: str) -> None:
        waiting = self._waiting[table]
        while waiting:
            (source, target), rows = waiting[-1]
            if (source, target) != ("Node", "Node"):
                self.engine.run(
                    text("view_pair", driver=self.driver, KIND=table, SOURCE=source, TARGET=target)
                )
            links = self._links(rows)
            pen.wait()
            pen.write(
                fill, self.engine, table, links, waiting.pop()[0]
            )  # taken off as it is written, never twice


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


# ------------------------------------------------------------------------------------------------ what holds


def _memory(index: Index, rows: list[int], link_rows: list[int]) -> int:
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

    def event_table(self, valid: Instant, tx: Instant) -> pa.Table:
        """The rows as events, with what (valid, tx) knows of their occurrences."""
        index, happened = self.index, Happened(self.index, self.raw, valid, tx)
        seen = [happened.seen(ent) for ent in self.ents]
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
                **event_columns(types, self.bodies),
                "standing": texts(_uprights(index, self.raw, self.ents, valid, tx)),
                "tx_from": instants([index.born[ent] for ent in self.ents]),
            }
        )


def _absent_table(index: Index, raw: Raw, ents: list[int], valid: Instant, tx: Instant) -> pa.Table:
    """What is known and does not hold, with its last content known at tx."""
    found = _Things(index, raw, [(ent, _last_row(index, ent, valid, tx)) for ent in ents])
    for at, ent in enumerate(ents):
        if index.is_event[ent]:
            event = {
                name: value for name, value in found.bodies[at].items() if name not in ("salt", "content")
            }
            found.bodies[at] = {
                "content": event,
                "text": event.get("description"),
                "source": event.get("source"),
                "trigger": None,
            }
    return found.table([index.standing(ent, valid, tx) for ent in ents])


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


def _links(index: Index, raw: Raw, rows: list[int]) -> pa.Table:
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


class _Fields:
    """The fields of contents as columns: name, type in Cypher, values."""

    def __init__(self, columns: list[tuple[str, str, pa.Array]], left_out: int) -> None:
        self.columns = columns
        self.left_out = left_out

    def known(self) -> str:
        """A sentence that lists the available names."""
        names = ", ".join(
            f"`{n}`" if not n.isidentifier() else n for n in [*_BASE, *(name for name, _, _ in self.columns)]
        )
        rare = f" {self.left_out} rarer content fields are in content only." if self.left_out else ""
        return f"Node has {names}.{rare} A content field that no node has here is no column."


def _fields(contents: list[Json]) -> _Fields:
    names, left_out = chosen(contents)
    taken = {name.casefold() for name in _RESERVED}
    columns = []
    for name in names:
        column = property_name(name, taken)
        kind, values = _typed(
            [content.get(name) for content in contents], as_text=column.lower() in _EVENT_TEXTS
        )
        columns.append((column, kind, values))
    return _Fields(columns, left_out)


def _typed(values: list[Any], *, as_text: bool) -> tuple[str, pa.Array]:
    """The type of a field of all nodes, and its column."""
    kind = field_kind(values)
    if kind == "text":
        return "STRING", texts(values)
    if not as_text:
        if kind == "truth":
            return "BOOL", truths(values)
        if kind == "whole":
            return "INT64", numbers(values)
        if kind == "number":
            return "DOUBLE", fractions([None if value is None else float(value) for value in values])
    return "STRING", texts([None if value is None else dumps(value).decode() for value in values])
