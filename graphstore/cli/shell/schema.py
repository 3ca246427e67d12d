"""The labels, kinds, types, links and properties there are: as tables, and as names to complete."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphstore.cli.shell.output import ShellAnswer
from graphstore.graph.result import Result
from graphstore.graph.texts import text

if TYPE_CHECKING:
    from graphstore.store.store import Store
    from graphstore.view.view import View

LABELS = ("Node", "Event", "Absent")
SOME_LINK = "SUPERSEDES"
"""All kinds of link have the same properties, and this one is in every graph."""
Columns = dict[str, str]


def view(seen: View) -> ShellAnswer:
    """Return what the graph of a view holds, with how many there are of each."""
    labels = _counts(seen, "count_labels")
    columns = {label: columns_of(seen, label) for label in LABELS}
    link = columns_of(seen, SOME_LINK)
    kinds, types, links = (_counts(seen, name) for name in ("count_kinds", "count_types", "count_links"))
    rows = [
        *(("label", label, labels.get(label, 0), _listed(columns[label])) for label in LABELS),
        *(("kind of node", name, count, None) for name, count in kinds.items()),
        *(("type of event", name, count, None) for name, count in types.items()),
        *(("link", name, count, None) for name, count in links.items()),
        ("link", "(any)", sum(links.values()), _listed(link)),
    ]
    value: dict[str, Any] = {
        "labels": {label: {"count": labels.get(label, 0), "properties": columns[label]} for label in LABELS},
        "kinds": kinds,
        "types": types,
        "links": links,
        "link_properties": link,
    }
    return ShellAnswer(Result(("what", "name", "count", "properties"), rows), value)


def tables(store: Store) -> ShellAnswer:
    """The tables of the whole history and their columns."""
    found = [
        (str(name), str(kind).lower(), _columns_in_tables(store, str(name)))
        for name, kind in store.query_tables(text("tables_there_are")).tuples()
    ]
    link = next((columns for name, _, columns in found if name == SOME_LINK), {})
    rows = [
        (name, kind, "as any link" if kind == "rel" and columns == link else _listed(columns))
        for name, kind, columns in found
    ]
    rows.append(("(any link)", "rel", _listed(link)))
    value = {name: {"type": kind, "columns": columns} for name, kind, columns in found}
    return ShellAnswer(Result(("table", "type", "columns"), rows), value)


def columns_of(seen: View, label: str) -> Columns:
    """The properties of a label or a kind of link in a view's graph, and their types."""
    return _named(seen.query(text("columns_of", TABLE=label)))


def _columns_in_tables(store: Store, table: str) -> Columns:
    return _named(store.query_tables(text("columns_of", TABLE=table)))


def _named(found: Result) -> Columns:
    return {str(name): str(kind) for name, kind in found.tuples()}


def _counts(seen: View, name: str) -> dict[str, int]:
    return {str(each): int(count) for each, count in seen.query(text(name)).tuples()}


def _listed(columns: Columns) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


# ---------------------------------------------------------------- names to complete


@dataclass(frozen=True, slots=True)
class GraphVocabulary:
    """The names that Cypher may use at one place."""

    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Each label with its properties."""
    kinds: tuple[str, ...] = ()
    """The kinds of links, as Cypher writes them."""
    of_links: tuple[str, ...] = ()
    """The properties of any link."""
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What a property can be, for those that are one of a few."""


def of_view(seen: View) -> GraphVocabulary:
    """The names in the graph of a view."""
    return GraphVocabulary(
        {label: tuple(columns_of(seen, label)) for label in LABELS},
        tuple(kind.upper() for kind in seen.vocabulary.kinds),
        tuple(columns_of(seen, SOME_LINK)),
        {
            "kind": tuple(_counts(seen, "count_kinds")),
            "type": tuple(_counts(seen, "count_types")),
        },
    )


def of_tables(store: Store) -> GraphVocabulary:
    """The names in the tables of the whole history."""
    found = store.query_tables(text("tables_there_are")).tuples()
    nodes = [str(name) for name, kind in found if kind == "NODE"]
    links = [str(name) for name, kind in found if kind == "REL"]
    return GraphVocabulary(
        {name: tuple(_columns_in_tables(store, name)) for name in nodes},
        tuple(links),
        tuple(_columns_in_tables(store, SOME_LINK)),
    )


def ids(seen: View, prefix: str) -> list[tuple[str, str]]:
    """Some ids that begin so, each with what it names."""
    return [
        (str(id), " ".join(str(part) for part in (label, kind, statement) if part))
        for id, label, kind, statement in seen.query(text("ids_that_begin"), prefix=prefix).tuples()
    ]
