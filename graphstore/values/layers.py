"""The table of memory layers: the prefix of each, its time to live, and whether the cap may evict from it.

A chunk's scope and source determine its layer by their prefix, so the prefix of a layer never changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

from graphstore.errors import ConflictError, InvalidError
from graphstore.values.models import Json
from graphstore.values.period import MICROSECOND, Instant

CHUNK = "chunk"
"""The kind of memory's nodes."""
LONGEST = timedelta(days=365_000)
"""The longest time to live."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def _within_timedelta(seconds: object) -> object:
    """Limit seconds from JSON to the longest timedelta, beyond which a float would overflow; the store then refuses the value with its own message."""
    return min(seconds, 86_399_999_999_999) if isinstance(seconds, int | float) else seconds


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its name, the prefix of its sources (`name:` by convention), how long chunks are kept after they were recorded (None: no end), and
    whether it is permanent: then the cap never evicts from it.
    """

    name: str
    prefix: str
    ttl: Annotated[timedelta | None, BeforeValidator(_within_timedelta)] = None
    permanent: bool = False


BUILT_IN: Mapping[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("soul", "soul:", permanent=True),
        Layer("conversation", "conversation:", timedelta(days=30)),
        Layer("tool", "tool:", timedelta(days=14)),
        Layer("group", "group:", timedelta(days=60)),
        Layer("er1", "er1:", permanent=True),
        Layer("observation", "observation:", permanent=True),
    )
}


def table(kept: Json | None) -> dict[str, Layer]:
    """Return all layers by name: the built-in ones, then those a store defines."""
    return {**BUILT_IN, **{name: _layer(name, fields) for name, fields in (kept or {}).items()}}


def of_scope(layers: Mapping[str, Layer], scope: str) -> Layer | None:
    """Return the layer to which a scope or a source belongs; None if it is in none of these."""
    prefix = scope[: scope.find(":") + 1]
    return next((layer for layer in layers.values() if layer.prefix == prefix), None)


def over(layer: Layer | None, born: Instant, now: Instant) -> bool:
    """Return True if a chunk of this layer, recorded at `born`, has expired by `now`."""
    return layer is not None and layer.ttl is not None and born + layer.ttl // MICROSECOND <= now


def defined(layers: Mapping[str, Layer], layer: Layer) -> dict[str, Layer]:
    """Return the table with one layer added. Adding the same one again changes nothing.

    Raises InvalidError for an invalid layer, ConflictError for a name or a prefix that another layer has.
    """
    _check(layer)
    if layers.get(layer.name) == layer:
        return dict(layers)
    if layer.name in layers:
        raise ConflictError(
            f"layer {layer.name!r} is there already: {layers[layer.name]}. What a layer is never changes; choose another name."
        )
    for other in layers.values():
        if other.prefix == layer.prefix:
            raise ConflictError(
                f"prefix {layer.prefix!r} is that of layer {other.name!r}. Choose another prefix."
            )
    return {**layers, layer.name: layer}


def as_kept(layers: Mapping[str, Layer]) -> Json:
    """Return the layers that are not built in, as a store keeps them: the TTL in microseconds."""
    return {
        name: {
            "prefix": layer.prefix,
            "ttl": None if layer.ttl is None else layer.ttl // MICROSECOND,
            "permanent": layer.permanent,
        }
        for name, layer in layers.items()
        if name not in BUILT_IN
    }


def _layer(name: str, fields: Json) -> Layer:
    ttl = None if fields["ttl"] is None else fields["ttl"] * MICROSECOND
    return Layer(name, fields["prefix"], ttl, fields["permanent"])


def _check(layer: Layer) -> None:
    if not isinstance(layer, Layer):
        raise InvalidError(
            f"{layer!r} is no layer. Give Layer(name, prefix, ttl=timedelta(days=…), permanent=False)."
        )
    if not isinstance(layer.name, str) or not _NAME.fullmatch(layer.name):
        raise InvalidError(
            f"layer name {layer.name!r} is none. Give lower case letters, digits, `.`, `_` and `-`, such as 'notes'."
        )
    if (
        not isinstance(layer.prefix, str)
        or not layer.prefix.endswith(":")
        or not _NAME.fullmatch(layer.prefix[:-1])
    ):
        raise InvalidError(f"prefix {layer.prefix!r} is none. Give a name and a colon, such as 'notes:'.")
    if layer.ttl is not None and (
        not isinstance(layer.ttl, timedelta) or not timedelta(0) < layer.ttl <= LONGEST
    ):
        raise InvalidError(
            f"ttl {layer.ttl!r} is none. Give a timedelta above 0, of {LONGEST.days:,} days at most, or None for no end."
        )
    if layer.permanent and layer.ttl is not None:
        raise InvalidError(
            f"layer {layer.name!r} is permanent and has an end. Leave ttl out, or permanent=True."
        )
