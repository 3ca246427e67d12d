"""What draws the values. A value shows itself as text, a picture or a graph and does not know what draws it: the package names that, and it is loaded
when something is shown first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Table(Protocol):
    """Draws a table alone."""

    def __call__(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, notes: Sequence[str], /
    ) -> str: ...


class Painter(Protocol):
    """Draws values and tables, as text for a terminal, HTML or Markdown."""

    @property
    def plain(self) -> Callable[[Any], str]: ...
    @property
    def html(self) -> Callable[[Any], str]: ...
    @property
    def markdown(self) -> Callable[[Any], str]: ...
    @property
    def table_plain(self) -> Table: ...
    @property
    def table_html(self) -> Table: ...
    @property
    def table_markdown(self) -> Table: ...


_load: Callable[[], Painter] | None = None


def use(load: Callable[[], Painter]) -> None:
    """Let `load` give what draws."""
    global _load
    _load = load


def painter() -> Painter:
    """What draws."""
    assert _load is not None
    return _load()


class Painted:
    """Something a notebook shows as a picture."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return painter().html(self)

    def _repr_markdown_(self) -> str:
        return painter().markdown(self)
