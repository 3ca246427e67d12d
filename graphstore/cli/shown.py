"""Where a command shows what it says: on the streams of this process, or on those of one that was started beside its server."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple, TextIO

import typer


class Shown(NamedTuple):
    """Where a command shows what it says, when that is not this process's terminal: its two streams, and what is known of what is behind them."""

    out: TextIO
    err: TextIO
    is_terminal: bool
    columns: int | None
    environment: Mapping[str, str]


SHOWN: ContextVar[Shown | None] = ContextVar("shown", default=None)
PAGED: ContextVar[bool] = ContextVar("paged", default=True)
"""False where --no-pager was given."""


def echo(text: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    """Print text as it is."""
    shown = SHOWN.get()
    typer.echo(text, file=None if shown is None else shown.err if err else shown.out, nl=nl, err=err)
