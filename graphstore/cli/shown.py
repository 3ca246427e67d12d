"""Where a command prints its answer: on standard output, or for a pager."""

from contextvars import ContextVar
from typing import NamedTuple, TextIO

import typer


class Shown(NamedTuple):
    """What a pager shows: the text, and the width of its terminal."""

    out: TextIO
    columns: int


SHOWN: ContextVar[Shown | None] = ContextVar("shown", default=None)
PAGED: ContextVar[bool] = ContextVar("paged", default=True)
"""False where --no-pager was given."""


def echo(text: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    """Print text as it is."""
    shown = SHOWN.get()
    typer.echo(text, file=None if shown is None or err else shown.out, nl=nl, err=err)
