"""Flattens the graph of a view for tools with flat properties: what stands, what its links name, and one type for each property."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import orjson

from graphstore.graph.properties import chosen, field_kind, property_name
from graphstore.values.models import UPRIGHT, Coordinate, Json, Node
from graphstore.values.period import instant, iso
from graphstore.view.view import Reader

Label = Literal["Node", "Event", "Absent"]
PropertyKind = Literal["text", "texts", "truth", "whole", "number", "time"]
Kinds = dict[str, PropertyKind]

LABELS: tuple[Label, ...] = ("Node", "Event", "Absent")
LINK_KINDS: Kinds = {
    **dict.fromkeys(("id", "kind", "reason"), "text"),
    "strength": "whole",
    "history": "truth",
    **dict.fromkeys(
        ("confidence", "created_by", "metadata", "source_standing", "target_standing", "author"), "text"
    ),
    **dict.fromkeys(("valid_from", "valid_to", "tx_from", "recorded_at"), "time"),
}
_THING_KINDS: Kinds = {
    **dict.fromkeys(("number", "count"), "whole"),
    **dict.fromkeys(
        ("valid_from", "valid_to", "tx_from", "recorded_at", "occurred_at", "first_seen", "last_seen"), "time"
    ),
    "tags": "texts",
    "authorized": "truth",
}
_RESERVED = frozenset({*Node.model_fields, "told", "remainder", "occurred_at", "first_seen", "last_seen"})
_STRUCTURE = ("source", "target", "tx_to")
"""The ends of a link, and what a view cannot know: when a row will cease to be believed."""


@dataclass(frozen=True, slots=True)
class FlatThing:
    """A node or an event; of `properties` none is None."""

    id: str
    label: Label
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FlatLink:
    """A link and the labels of its ends."""

    kind: str
    source: FlatThing
    target: FlatThing
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FlatGraph:
    """Things and ties of a view, with the properties each label has, in order, and their types."""

    at: Coordinate
    things: list[FlatThing]
    ties: list[FlatLink]
    kinds: dict[Label, Kinds]


def flat_graph(view: Reader, reserved: Collection[str] = ()) -> FlatGraph:
    """The graph of a view, as `view.to_networkx` has it. Labels and content fields are those that `view.query` shows, and `content` is all of it.

    A content field named as one of `reserved` gets the prefix `c_`, as one does that is named as a property of every node.
    """
    view = view.fixed()  # all reads below use one coordinate
    graph = view.to_networkx()
    labels = {id: _label(attributes) for id, attributes in graph.nodes.items()}
    contents = [attributes["content"] for id, attributes in graph.nodes.items() if labels[id] == "Node"]
    fields = _fields(contents, reserved)
    things = {id: _thing(labels[id], attributes, fields) for id, attributes in graph.nodes.items()}
    ties = [
        FlatLink(attributes["kind"], things[source], things[target], _properties(attributes))
        for source, target, attributes in graph.edges(data=True)
    ]
    of_fields: Kinds = {field.name: field.kind for field in fields.values()}
    kinds: dict[Label, Kinds] = {label: {} for label in LABELS}
    for thing in things.values():
        known = kinds[thing.label]
        for name in thing.properties:
            if name not in known:
                known[name] = of_fields.get(name) or _THING_KINDS.get(name, "text")
    return FlatGraph(view.at, list(things.values()), ties, kinds)


def written(value: Any) -> Any:
    """A property as text where it is neither text, a whole number, a number nor a truth: a time in ISO 8601, a list as JSON."""
    if isinstance(value, (str, bool, int, float)):
        return value
    return json_text(value) if isinstance(value, list) else iso(instant(value))


def json_text(value: Any) -> str:
    """A value as JSON, keys sorted."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _label(attributes: Mapping[str, Any]) -> Label:
    upright = attributes["standing"] in UPRIGHT
    if "type" in attributes:
        return "Event" if upright or attributes["standing"] == "superseded" else "Absent"
    return "Node" if upright else "Absent"


class _Field(NamedTuple):
    """A content field as a property, and the function that converts its values."""

    name: str
    kind: PropertyKind
    as_property: Callable[[Any], Any]


def _fields(contents: list[Json], reserved: Collection[str]) -> dict[str, _Field]:
    """Return the content fields that become properties."""
    taken = {name.casefold() for name in (*_RESERVED, *reserved)}
    found = {}
    for field in chosen(contents)[0]:
        kind = field_kind(content.get(field) for content in contents)
        made = json_text if kind == "json" else float if kind == "number" else _unchanged
        found[field] = _Field(property_name(field, taken), "text" if kind == "json" else kind, made)
    return found


def _unchanged(value: Any) -> Any:
    return value


def _thing(label: Label, attributes: dict[str, Any], fields: dict[str, _Field]) -> FlatThing:
    properties = _properties(attributes)
    if label == "Node":
        for name, value in attributes["content"].items():
            if value is not None and name in fields:
                properties[fields[name].name] = fields[name].as_property(value)
    return FlatThing(attributes["id"], label, properties)


def _properties(attributes: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in attributes.items():
        if value is None or name in _STRUCTURE:
            continue
        if isinstance(value, dict):
            value = json_text(value)
        found[name] = list(value) if isinstance(value, tuple) else value
    return found
