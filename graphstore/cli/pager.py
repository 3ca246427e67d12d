"""Where a command prints its answer: on standard output; at a terminal what is long or wide by a pager as git does, `$PAGER` or less."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import StringIO
from typing import NamedTuple, TextIO

import typer

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LESS = "RFXS"  # styles are kept, one screen ends at once and stays, long lines are not folded


class Screen(NamedTuple):
    """Holds what a pager shows: the text, and the width of its terminal."""

    out: TextIO
    columns: int


SHOWN: ContextVar[Screen | None] = ContextVar("shown", default=None)
PAGED: ContextVar[bool] = ContextVar("paged", default=True)
"""False where --no-pager was given."""


def echo(text: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    """Print text as it is."""
    shown = SHOWN.get()
    typer.echo(text, file=None if shown is None or err else shown.out, nl=nl, err=err)


def is_wanted() -> bool:
    """Return True if answers go through a pager: standard output is a terminal, --no-pager was not given, and there is a pager."""
    return PAGED.get() and SHOWN.get() is None and sys.stdout.isatty() and bool(_command())


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed in the block by the pager, at its end, if it is longer or wider than the terminal."""
    if not is_wanted():
        yield
        return
    out = StringIO()
    width = shutil.get_terminal_size().columns
    token = SHOWN.set(Screen(out, width))
    try:
        yield
    finally:
        SHOWN.reset(token)
        show(out.getvalue())


def show(text: str) -> None:
    """Write a text to standard output; by the pager, where that is wanted and the text does not fit on the screen."""
    size = shutil.get_terminal_size()
    lines = _STYLE.sub("", text).splitlines()
    fits = len(lines) < size.lines and all(len(each) <= size.columns for each in lines)
    if fits or not is_wanted():
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the pager's
    try:
        with subprocess.Popen(
            _command(), stdin=subprocess.PIPE, env={"LESS": _LESS, "LESSCHARSET": "utf-8", **os.environ}
        ) as process:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it was left before the end
                process.stdin.write(text.encode())
                process.stdin.close()
    finally:
        signal.signal(signal.SIGINT, before)


def _command() -> list[str]:
    """The pager with its options; nothing where there is none."""
    if os.environ.get("TERM") == "dumb":
        return []
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    return words if words and words != ["cat"] and shutil.which(words[0]) else []
