"""What the command line prints: the text and the tables that `show` makes of values, on a terminal or piped on; and JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graphstore.cli.pager import SHOWN, echo
from graphstore.show.paragraphs import paragraphs
from graphstore.show.tables import Grid, aligned, cell, column_widths, json_text, value_cell
from graphstore.values.text import clean

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST = 8
"""Columns of a terminal for each of a table: where there are less, a row is one long line, so that nothing is squeezed away."""
DRAWN = 1000
"""Rows of a table that are formatted to fit a terminal: a million would take minutes and gigabytes."""
_GAP = "   "
WIDEST = 60
"""Columns that a narrower cell is filled up to, in lines that are not formatted."""


def as_json(value: object) -> None:
    """Print `value` as one JSON document: see `json_text`."""
    echo(json_text(value), nl=False)


def console() -> Console:
    """Return the console for people: text as it is (no markup), a line each when it is piped on."""
    from rich.console import Console

    class Plain(Console):
        def print(self, *values: Any, **how: Any) -> None:
            super().print(*(clean(one) if isinstance(one, str) else one for one in values), **how)

    how: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    shown = SHOWN.get()
    if shown is None:
        return Plain(**how, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)
    return Plain(**how, file=shown.out, force_terminal=True, width=shown.columns)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], out: Console | None = None, indent: int = 0
) -> None:
    """Values under columns, with no lines around them; a column that is empty all the way down is left out. The rows of a query are `result_table`."""
    cells = [[cell(value) for value in row] for row in rows]
    shown = [number for number in range(len(columns)) if any(row[number] for row in cells)]
    out = out or console()
    if not cells:
        out.print("nothing.", style="dim")
        return
    grid(
        [columns[number] for number in shown],
        ([row[number] for number in shown] for row in cells),
        out,
        indent,
    )


def result_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The rows of a query, with every column it asked for, and NULL as `null`."""
    grid(columns, ([value_cell(value) for value in row] for row in rows))
    if not rows:
        console().print("no rows.", style="dim")


def grid(
    columns: Sequence[str], cells: Iterable[Sequence[str]], out: Console | None = None, indent: int = 0
) -> None:
    """Cells under columns, with no lines around them; a line a row where they are many or no terminal shows them. Columns without names have no head."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    out = out or console()
    rows = [[clean(each) for each in row] for row in cells]
    if len(rows) > DRAWN or not out.is_terminal or len(columns) * NARROWEST > out.width:
        out.file.writelines(_lines([clean(name) for name in columns], rows, indent))
        return
    drawn = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", show_header=any(columns)
    )
    for name in columns:
        drawn.add_column(Text(clean(name)), overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    out.print(Padding(drawn, (0, 0, 0, indent), expand=False))


def _lines(names: list[str], rows: list[list[str]], indent: int) -> Iterator[str]:
    """Yield rows as lines, a column as wide as its widest cell, up to `WIDEST`."""
    table = [names, *([" ".join(each.splitlines()) for each in row] for row in rows)]
    widths = column_widths(table, WIDEST)
    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    head, *body = aligned(table, widths, _GAP)
    for text in ([head, rule] if any(names) else []) + body:
        yield " " * indent + text + "\n"


def show(value: object, out: Console | None = None, most: int | None = None, indent: int = 0) -> None:
    """Print any answer of the store in words, or what `show.paragraphs` made of it; of a long story only the first `most` steps."""
    out = out or console()
    for block in value if isinstance(value, Iterator) else paragraphs(value, most):
        if isinstance(block, Grid):
            table(block.columns, block.rows, out, indent)
            continue
        *first, last = ((text, style or None) for text, style in block.parts)
        for text, style in ((" " * indent, None), *first):
            out.print(text, style=style, end="")
        out.print(last[0], style=last[1], soft_wrap=not block.is_folded)
