"""The command line: a command per method of the store, under the same names.

Only typer is imported here; the store, rich and the engine come in when a command runs, so that `--help` answers at
once. For the same reason annotations are plain objects: as text (`from __future__`) typer takes 20 ms more over them.
"""

import atexit
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from graphstore.cli import command_rows, commands, common, serve_commands
from graphstore.cli.commands import GROUPS, INTERFACES, STORES, UNLISTED
from graphstore.values.doors import DOOR

# Commands that open an interface and stay.
BY_HAND: dict[str, Callable[..., None]] = {
    "serve": serve_commands.serve,
    "page": serve_commands.page,
    "mcp": serve_commands.mcp,
    "shell": serve_commands.shell,
}
UNDER = {
    "import": "Bring in history from elsewhere.",
    "sessions": "Sessions of coding agents.",
    "memory": "Look into memory.",
    "index": "Fill memory from files.",
    "lake": "The history as Delta tables, in a folder or an object store.",
    "token": "Tokens for who may see and do less, or not for ever.",
}
"""The commands that have commands below them."""
ALL = "all"
USUAL: dict[str, tuple[str, ...]] = {
    STORES: ("demo", "init", "import"),
    commands.READ: ("search", "get", "what-superseded", "why", "query"),
    commands.WRITE: ("add-node", "supersede", "link"),
    INTERFACES: ("shell", "page", "serve", "mcp"),
}
"""The commands that --help lists: those to begin with."""
_MORE = (
    "graphstore help COMMAND describes a command, as graphstore COMMAND --help does. "
    f"graphstore help GROUP lists a group of commands: {', '.join(GROUPS)}. graphstore help {ALL} lists every command."
)
_FIRST = re.compile(r"\.\s")  # what ends the first sentence of a docstring: a line may end there too


class CommandGroup(TyperGroup):
    """Lists commands by their groups, and turns what the store refuses into one line on stderr and exit code 1."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # typer would import pydantic (60 ms) to make sense of a None here
        return option

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        whole = cmd_name if ctx.parent is None else f"{self.name} {cmd_name}"
        known = UNLISTED.get(whole, whole).rpartition(" ")[2] if cmd_name not in self.commands else cmd_name
        return self.commands.get(known)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            _refuse_name(ctx, "command", name, self.commands)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        if ctx.parent is None:
            self.list_commands_of(USUAL, formatter)
            with formatter.indentation():
                formatter.write_paragraph()
                formatter.write_text(_MORE)
            return
        self.list_commands_of({"commands": tuple(self.commands)}, formatter)
        if self.name in GROUPS:
            others = [name for name in _commands_of(self.name) if name != self.name]
            ctx.parent.command.list_commands_of({f"more for {self.name}": others}, formatter)

    def list_commands_of(self, groups: Mapping[str, Sequence[str]], formatter: Any) -> None:
        """Write commands of this group under headings, each with what it does."""
        width = max(map(len, self.commands)) + 2
        for heading, names in groups.items():
            rows = [(name.ljust(width), _summary(self.commands[name])) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=width, col_spacing=0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # not an option of typer's: that would import pydantic for any option that has a value
        if ctx.parent is None:
            args = common.choose_branch(args)
            if args[:1] == ["help"]:
                args = self._help_on(ctx, args[1:])
        return super().parse_args(ctx, args)

    def _help_on(self, ctx: Any, words: list[str]) -> list[str]:
        """Return the words that print the help of a command; of a group of commands, print its list and end."""
        if not words or words[0].startswith("-") or self.get_command(ctx, words[0]) is not None:
            return [*words, "--help"]
        name = " ".join(words)
        if name not in GROUPS and name != ALL:
            _refuse_name(ctx, "group or command", name, {ALL, *GROUPS, *self.commands})
        formatter = ctx.make_formatter()
        chosen = GROUPS if name == ALL else (name,)
        self.list_commands_of({group: _commands_of(group) for group in chosen}, formatter)
        typer.echo(formatter.getvalue().strip("\n"))
        raise typer.Exit

    def invoke(self, ctx: Any) -> Any:
        from graphstore.errors import GraphStoreError

        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (GraphStoreError, OSError) as error:
            common.say(f"error: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; what was committed is kept.", err=True)
            raise typer.Exit(130) from None


def _refuse_name(ctx: Any, what: str, name: str, valid: Iterable[str]) -> None:
    """Refuse a word of the command line, with the valid ones and the nearest of them."""
    from graphstore.errors import InvalidError

    ctx.fail(str(InvalidError.choice(what, name, valid)))


def _summary(command: Any) -> str:
    return command.short_help or command.help or ""


def _commands_of(group: str) -> list[str]:
    return [name for name, its_group in GROUP_OF.items() if its_group == group]


class LazyCommand(TyperCommand):
    """A command that is made when it is asked for; to list it, its name and what it does are enough.

    Typer would look at the annotations of each command whichever is asked for: a third of the time that `--help` took.
    """

    def __init__(self, command: Callable[[], Callable[..., None]], **attrs: Any) -> None:
        self._command = command
        super().__init__(**attrs)

    @cached_property
    def _loaded(self) -> Any:
        info = CommandInfo(name=self.name, callback=self._command())
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)

    @property
    def params(self) -> Any:
        return self._loaded.params

    @params.setter
    def params(self, none: Any) -> None:
        """Typer sets what it saw of `_not_yet`."""

    @property
    def callback(self) -> Any:
        return self._loaded.callback

    @callback.setter
    def callback(self, none: Any) -> None:
        """As with `params`."""


def _not_yet() -> None:
    """Stand for a command until it is asked for: typer sees this."""


def _offer(group: typer.Typer, name: str, says: str, command: Callable[[], Callable[..., None]]) -> None:
    """Make a command part of a group. Lists have the first sentence of what it says."""
    later: Any = partial(LazyCommand, command)  # typer only ever calls it
    summary = _FIRST.split(says, 1)[0].rstrip(".") + "."
    group.command(name, cls=later, help=says, short_help=summary)(_not_yet)


app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What was true, what did we believe, what superseded it, and why.",
    epilog="graphstore --branch NAME COMMAND … reads and writes on a branch (or set GRAPHSTORE_BRANCH). At a terminal long answers are shown by $PAGER; graphstore --no-pager COMMAND … prints them. Times are dates (midnight UTC) or ISO 8601 instants such as 2026-01-30T12:00:00Z. "
    "Exit codes: 0 done, 1 refused or problems found, 2 wrong usage.",
)


def _version(asked: bool) -> None:
    if asked:
        from graphstore import __version__

        typer.echo(f"graphstore {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    pass


GROUP_OF: dict[str, str] = {}
"""The group of each command, which `graphstore help GROUP` lists."""


def _unchanged(command: Callable[..., None]) -> Callable[..., None]:
    return command


def _offer_all() -> None:
    below = {
        name: typer.Typer(cls=CommandGroup, help=says, no_args_is_help=True, rich_markup_mode=None)
        for name, says in UNDER.items()
    }
    for name, command in BY_HAND.items():
        GROUP_OF[name] = INTERFACES
        _offer(app, name, command.__doc__ or "", partial(_unchanged, command))
    for row in commands.COMMANDS.values():
        over, _, name = row.name.rpartition(" ")
        if over and over not in GROUP_OF:
            app.add_typer(below[over], name=over)
        GROUP_OF.setdefault(over or name, row.group)
        _offer(below[over] if over else app, name, row.summary, partial(command_rows.function, row))


_offer_all()


def _speak_every_language() -> None:
    """Print as an escape what the encoding of a console or a file lacks, and read what is piped in as UTF-8, which Windows would not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if sys.platform == "win32" and isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8")


def main() -> None:
    """The `graphstore` command."""
    _speak_every_language()
    if sys.argv[1:2] == ["hook"] and sys.argv[3:4] in (["start"], ["end"], ["import"]):
        from graphstore.cli import hooks

        hooks.run(*sys.argv[2:])  # does not return: a hook ends with 0, whatever its arguments are
    target = os.environ.get("GRAPHSTORE_SPANS")
    if target:
        from graphstore.remote import memory_spans

        memory_spans.instrument(None if target == "global" else memory_spans.to_file(target))
    DOOR.set("cli")
    try:
        app(prog_name="graphstore")
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """End the process without taking the interpreter apart, which takes longer than a short command. Returns if somebody else still needs it."""
    if not isinstance(code, int | None) or threading.active_count() > 1:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # nobody reads, or it was closed: Python knows how to end then
        return
    atexit._run_exitfuncs()
    os._exit(code or 0)


if __name__ == "__main__":
    main()
