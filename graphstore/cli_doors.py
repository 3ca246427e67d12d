"""Commands that open a door and stay: the shell."""

import sys
from typing import Annotated

import typer

from graphstore import cli_common
from graphstore.cli_common import Store, Tx, Valid, open_store


def shell(
    store: Store,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "-c", "--command", metavar="CYPHER", help="Answer this and end (may be repeated); :commands too."
        ),
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="How answers are shown: table, json, csv or markdown.")
    ] = "table",
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on after what is refused; the exit code is 1 all the same."),
    ] = False,
    valid: Valid = None,
    tx: Tx = None,
) -> None:
    """Ask in Cypher and short commands, line by line, beside whoever writes. Reads standard input when that is no terminal."""
    from graphstore.shell import Shell
    from graphstore.shell_answers import Mode, Output

    try:
        shown = Mode(mode)
    except ValueError:
        raise typer.BadParameter(f"unknown mode {mode!r}. Valid: {', '.join(Mode)}.") from None
    terminal = not command and sys.stdin.isatty() and sys.stdout.isatty()
    branch = cli_common.CHOSEN.get()
    cli_common.CHOSEN.set(None)  # the shell turns to it, and back
    with open_store(store, read_only=True) as opened:
        asked = Shell(opened, store.name, Output(terminal, shown, timing=terminal))
        asked.turn_to(branch)
        asked.valid, asked.tx = valid, tx
        asked.view()
        if terminal:
            from graphstore.shell_terminal import converse

            converse(asked)
            return
        lines = (line for one in command or () for line in f"{one}\n;\n".splitlines(keepends=True))
        if not asked.run_all(lines if command else sys.stdin, keep_going=keep_going):
            raise typer.Exit(1)
