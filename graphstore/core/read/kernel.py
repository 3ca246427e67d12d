"""The read kernel: point reads in C, where it was built. Without it, or with GRAPHSTORE_PURE=1, each of these is None and the Python way answers.

The Python way is the truth: what is unusual the kernel leaves to it, by answering None.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from graphstore.core.journal.block_checksums import BLOCK
from graphstore.values.models import Link, Node, Value
from graphstore.values.period import BEGINNING, OPEN, Instant
from graphstore.values.text import STATEMENT

BUILT = "graphstore.core.read._kernel"
"""The extension that `_kernel.c` becomes."""

node: Callable[[Any, str, Instant, Instant], Node | None] | None = None
"""Of a core at (valid, tx): the node that stands there under exactly this id."""

links_from: Callable[[Any, str, Instant, Instant], list[Link] | None] | None = None
"""Of a core at (valid, tx): the links that hold there from a thing that no symmetric link has."""

backlinks_to: Callable[[Any, str, Instant, Instant], list[Link] | None] | None = None
"""As `links_from`, to a thing."""

node_of: Callable[[Any, int, str], Node | None] | None = None
"""Of a sight: a row of a node, with its standing, as a value."""

link_of: Callable[[Any, int], Link | None] | None = None
"""Of a sight: a row of a link as a value."""


def _load() -> None:
    global backlinks_to, link_of, links_from, node, node_of
    source = Path(__file__).with_name("_kernel.c")  # where it is not installed but worked on
    try:
        found: Any = import_module(BUILT)
        if source.exists() and source.stat().st_mtime > Path(found.__file__).stat().st_mtime:
            return  # made of an older source
    except (ImportError, OSError):
        return

    def model(of: type[Value]) -> tuple[type, dict[str, None], set[str]]:
        return of, dict.fromkeys(of.model_fields), of.made({}).__pydantic_fields_set__

    slots = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    found.set_up(
        model(Node),
        model(Link),
        tuple(BaseModel.__dict__[name] for name in slots),
        orjson.loads,
        datetime,
        UTC,
        STATEMENT,
        (BEGINNING, OPEN),
        BLOCK,
    )
    node, node_of, link_of = found.node, found.node_of, found.link_of
    links_from, backlinks_to = found.links_from, found.backlinks_to


if os.environ.get("GRAPHSTORE_PURE", "0") in ("", "0"):
    _load()
