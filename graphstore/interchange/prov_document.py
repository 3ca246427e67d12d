"""Exports the whole history as W3C PROV: versions are entities, operations activities, authors agents. Both periods are kept.

PROV has one time, that of the record: it is the tx. Valid time is in our own attributes `gs:validFrom` and `gs:validTo`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from graphstore.errors import InvalidError
from graphstore.interchange.history_tables import StoreHistory
from graphstore.interchange.xml_text import escaped, name_of
from graphstore.ledger.files import new_file
from graphstore.values.period import TimeLike
from graphstore.values.text import described, line
from graphstore.view.view import Reader

try:
    from prov.model import ProvDocument
except ImportError:
    raise InvalidError("PROV needs prov. Install it: pip install 'graphstore[prov]'") from None

__all__ = ["NAMESPACE", "export_prov", "prov_document"]

NAMESPACE = "urn:graphstore:"
WORDS = {
    **dict.fromkeys(("supersedes", "transition", "corrects"), "wasRevisionOf"),
    "derived_from": "wasDerivedFrom",
    "caused_by": "wasInfluencedBy",
    "part_of": "hadMember",
}
"""The kinds of links that PROV has a term for, used for believed links. Every link is an entity as well."""

_SYNTAXES: dict[str, dict[str, str]] = {
    "json": {"format": "json"},
    "xml": {"format": "xml"},
    "n": {"format": "provn"},
    "o": {"format": "rdf", "rdf_format": "turtle"},
}
_QUALIFIED = (
    ("qualifiedGeneration", "activity", "wasGeneratedBy"),
    ("qualifiedInvalidation", "activity", "wasInvalidatedBy"),
    ("qualifiedDerivation", "entity", "wasDerivedFrom"),
    ("qualifiedRevision", "entity", "wasRevisionOf", "wasDerivedFrom"),
)
"""Qualified relations of PROV-O, the property that leads to their object, and the plain terms of the same meaning."""
Row = dict[str, Any]


def export_prov(
    store: Reader, path: str | os.PathLike[str], *, syntax: str = "json", tx: TimeLike | None = None
) -> int:
    """Write what a store recorded up to `tx` (default: now) as PROV-JSON, PROV-XML, PROV-N (`n`) or PROV-O (`o`, Turtle). Gives the number of records.

    What XML cannot hold is `_xHHHH_` in all but JSON. The document is made in memory: about 3 KB and 0.1 ms a record. Raises ConflictError when `path` is
    there, InvalidError for a view or another syntax.
    """
    if syntax not in _SYNTAXES:
        raise InvalidError.choice("syntax of PROV", syntax, _SYNTAXES)
    with new_file(Path(path)) as sink:
        document = prov_document(store, tx, str if syntax == "json" else escaped)
        text = _turtle(document) if syntax == "o" else document.serialize(**_SYNTAXES[syntax])
        sink.write(text.encode())
    return len(document.records)


def _turtle(document: ProvDocument) -> str:
    """Return PROV-O that also has each qualified relation in its plain form, such as `prov:wasRevisionOf`, for queries that know only the first terms."""
    from prov.serializers.provrdf import ProvRDFSerializer
    from rdflib.namespace import PROV

    graph = ProvRDFSerializer(document).encode_document(document)
    for qualified, end, *plain in _QUALIFIED:
        for subject, relation in list(graph.subject_objects(PROV[qualified])):
            for name in plain:
                other = graph.value(relation, PROV[end])
                if other is not None:
                    graph.add((subject, PROV[name], other))
    return str(graph.serialize(format="turtle"))


def prov_document(
    store: Reader, tx: TimeLike | None = None, text: Callable[[str], str] = str
) -> ProvDocument:
    """The document of `export_prov`. `text` is applied to each text in it.

    Names are `gs:` and `node.`, `event.`, `version.`, `link.`, `operation.` or `agent.` before the id, in which all but ASCII letters, digits, `_`, `-` and `.`
    is `_xHHHH_`. A row of a version or link after the first of its name has `.2`, `.3` … behind it.
    """
    making = _Making(text)
    history = StoreHistory(store, tx)
    for name, make in (
        ("operations", making.operation),
        ("nodes", making.node),
        ("occurrences", making.occurrence),
        ("events", making.event),
        ("versions", making.version),
        ("links", making.link),
    ):
        for row in _rows(history, name):
            make(row)
    return making.document


def _rows(history: StoreHistory, name: str) -> Iterator[Row]:
    for part in history.parts(name):
        yield from part.to_pylist()


class _Making:
    """Builds a document row by row. Rows that others refer to come first."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self.document = ProvDocument()
        self.text = text
        self.gs = self.document.add_namespace("gs", NAMESPACE)
        self.authors: dict[str, Any] = {}  # by operation
        self.agents: dict[str, Any] = {}
        self.events: set[str] = set()
        self.again: dict[str, list[Any]] = defaultdict(list)
        self.rows: dict[tuple[str, str], int] = defaultdict(int)  # the number of rows of each name so far
        self.closed: dict[tuple[str, str], list[tuple[Any, int]]] = defaultdict(list)
        self.related: set[tuple[str, str, str]] = set()

    def operation(self, row: Row) -> None:
        said = f"{_spaced(row['verb'])} {row['subject'] or ''}".strip()
        by, why = row["author"], row["reason"]
        label = f"{said}{f' by {by}' if by else ''}{f', because {why}' if why else ''}"
        named = {"verb": "verb", "subject": "subject", "reason": "reason", "said": _LABEL}
        attributes = self._attributes({**row, "said": label}, **named)
        id = self._named("operation", row["id"])
        activity = self.document.activity(id, row["tx"], row["tx"], attributes)
        if row["author"] is not None:
            self.authors[row["id"]] = self._agent(row["author"])
            self.document.wasAssociatedWith(activity, self.authors[row["id"]])

    def node(self, row: Row) -> None:
        label = f"{row['id']} is of the kind {_spaced(row['kind'])}"
        attributes = self._attributes(
            {**row, "said": label}, kind="kind", key="key", scope="scope", said=_LABEL
        )
        self.document.entity(self._named("node", row["id"]), {"prov:type": self.gs["Node"], **attributes})

    def occurrence(self, row: Row) -> None:
        self.again[row["event_id"]].append(row["occurred_at"])

    def event(self, row: Row) -> None:
        id = row["id"]
        self.events.add(id)
        same = {name: name for name in row if name not in _PERIODS and name not in ("id", "agent")}
        attributes = self._attributes(row, **{**same, "description": _LABEL, "occurred_at": "occurredAt"})
        entity = self.document.entity(
            self._named("event", id), [("prov:type", self.gs["Event"]), *attributes.items()]
        )
        entity.add_attributes([("gs:occurredAgainAt", at) for at in self.again[id]])
        self._lifetime(entity, row)
        if row["agent"] is not None:
            self.document.wasAttributedTo(entity, self._agent(row["agent"]))

    def version(self, row: Row) -> None:
        said = row["text"] or line(described(orjson.loads(row["content"]), None), 240) or row["ref"]
        first, last = ({name: name for name in names.split()} for names in _VERSION)
        named = {**first, "said": _LABEL, **last, **_VALID}
        attributes = self._attributes({**row, "said": said}, **named)
        entity = self.document.entity(
            self._row("version", row["ref"]), [("prov:type", self.gs["Version"]), *attributes.items()]
        )
        entity.add_attributes([("gs:tag", self.text(tag)) for tag in row["tags"]])
        self.document.specializationOf(entity, self._named("node", row["node_id"]))
        self._lifetime(entity, row)
        operation = self._named("operation", row["opened_by"])
        for before, number in self.closed[row["opened_by"], row["node_id"]]:
            if number == row["number"]:
                self.document.wasDerivedFrom(entity, before, activity=operation)
            elif number < row["number"]:
                self.document.wasRevisionOf(entity, before, activity=operation)
        if row["closed_by"] is not None:
            self.closed[row["closed_by"], row["node_id"]].append((entity, row["number"]))

    def link(self, row: Row) -> None:
        source, target = self._end(row["source"]), self._end(row["target"])
        names = {name: name for name in ("kind", "reason", "strength", "confidence", "metadata")}
        because = f", because {row['reason']}" if row["reason"] else ""
        label = f"{row['source']} {_spaced(row['kind'])} {row['target']}{because}"
        named = {**names, "said": _LABEL, "created_by": "createdBy", **_VALID}
        attributes = self._attributes({**row, "said": label}, **named)
        ends = {"gs:from": source, "gs:to": target}
        entity = self.document.entity(
            self._row("link", row["id"]), [("prov:type", self.gs["Link"]), *ends.items(), *attributes.items()]
        )
        self._lifetime(entity, row)
        word = WORDS.get(row["kind"])
        if word is None or row["tx_to"] is not None or (word, row["source"], row["target"]) in self.related:
            return
        self.related.add((word, row["source"], row["target"]))
        if word == "hadMember":
            self.document.hadMember(target, source)
        elif word == "wasInfluencedBy":
            self.document.wasInfluencedBy(source, target)
        else:
            relate = getattr(self.document, word)
            relate(source, target, activity=self._named("operation", row["opened_by"]))

    def _lifetime(self, entity: Any, row: Row) -> None:
        """Add when and by which operation a row came to be believed, and ceased to be."""
        opened, closed = row["opened_by"], row["closed_by"]
        activity = None if opened is None else self._named("operation", opened)
        self.document.wasGeneratedBy(entity, activity, time=row["tx_from"])
        if row["tx_to"] is not None:
            end = None if closed is None else self._named("operation", closed)
            self.document.wasInvalidatedBy(entity, end, time=row["tx_to"])
        if opened in self.authors:
            self.document.wasAttributedTo(entity, self.authors[opened])

    def _attributes(self, row: Row, **names: str) -> Row:
        """Return the values of a row, under the names that PROV or this store has for them. Absent values are left out."""
        attributes = {}
        for column, name in names.items():
            if (value := row[column]) is not None:
                known = name if ":" in name else f"gs:{name}"
                attributes[known] = self.text(value) if isinstance(value, str) else value
        return attributes

    def _agent(self, name: str) -> Any:
        if name not in self.agents:
            self.agents[name] = self._named("agent", name)
            self.document.agent(self.agents[name], {"prov:label": self.text(name)})
        return self.agents[name]

    def _end(self, id: str) -> Any:
        return self._named("event" if id in self.events else "node", id)

    def _row(self, what: str, name: str) -> Any:
        self.rows[what, name] += 1
        count = self.rows[what, name]
        return self._named(what, name, f".{count}" if count > 1 else "")

    def _named(self, what: str, id: str, more: str = "") -> Any:
        return self.gs[f"{what}.{name_of(id)}{more}"]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


_LABEL = "prov:label"
_VALID = {"valid_from": "validFrom", "valid_to": "validTo"}
_VERSION = ("ref number content", "trigger source")
"""The columns of a version that keep their names, before its label and after it."""
_PERIODS = ("tx_from", "tx_to", "opened_by", "closed_by")
