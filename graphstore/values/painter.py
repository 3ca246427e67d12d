"""The object that draws values as text, picture or graph. A value does not know what draws it: the package registers that, and it is loaded when a value is
first shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from graphstore.errors import InvalidError

TableDrawing = Callable[[Sequence[str], Sequence[Sequence[str]], int, Sequence[str]], str]
"""Draws a table from its columns, its first rows, the number of all rows, and notes."""


class Painter(Protocol):
    """Draws values and tables, as text for a terminal, HTML or Markdown."""

    plain: Callable[[Any], str]
    html: Callable[[Any], str]
    markdown: Callable[[Any], str]
    whole: Callable[[Any, str], str]
    table_plain: TableDrawing
    table_html: TableDrawing
    table_markdown: TableDrawing
    graph_html: Callable[[Sequence[Any], Sequence[tuple[str, Any, str]], str], str]
    steps_html: Callable[[str, Mapping[str, Sequence[tuple[Any, Any, Any]]], str], str]


_load: Callable[[], Painter] | None = None


def use(load: Callable[[], Painter]) -> None:
    """Register `load`, which returns the painter."""
    global _load
    _load = load


def painter() -> Painter:
    """Return the painter."""
    assert _load is not None
    return _load()


class Painted:
    """A value that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return painter().html(self)

    def _repr_markdown_(self) -> str:
        return painter().markdown(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, all of it, however large: the drawing alone as `.svg`, with its tables as `.html`. Raises InvalidError for another ending."""
        kind = Path(path).suffix.lower()
        if kind not in (".svg", ".html"):
            raise InvalidError.choice("ending of a picture", kind, (".svg", ".html"))
        text = painter().whole(self, kind)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
