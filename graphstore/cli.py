"""The command line: a command per method of the store, under the same names.

Only typer is imported here; the store, rich and the engine come in when a command runs, so that `--help` answers at
once. For the same reason annotations are plain objects: as text (`from __future__`) typer takes 20 ms more over them.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_command_name
from typer.models import CommandInfo

from graphstore import (
    cli_branches,
    cli_common,
    cli_context,
    cli_doors,
    cli_files,
    cli_memory,
    cli_read,
    cli_sessions,
    cli_timeline,
    cli_topics,
    cli_write,
)  # fmt: skip
from graphstore.cli_common import with_as_of


class Door(TyperGroup):
    """Turns what the store refuses into one line on stderr and exit code 1."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # typer would import pydantic (60 ms) to make sense of a None here
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # not an option of typer's: that would import pydantic for any option that has a value
        if ctx.parent is None:
            args = cli_common.choose_branch(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        from graphstore.errors import GraphStoreError

        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (GraphStoreError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; what was committed is kept.", err=True)
            raise typer.Exit(130) from None


class Later(TyperCommand):
    """A command that is made when it is asked for; to list it, its name and what it does are enough.

    Typer would look at the annotations of each command whichever is asked for: a third of the time that `--help` took.
    """

    def __init__(self, command: Callable[..., None], **attrs: Any) -> None:
        self._command = command
        super().__init__(**attrs)

    @cached_property
    def _made(self) -> Any:
        info = CommandInfo(name=self.name, callback=with_as_of(self._command))
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)

    @property
    def params(self) -> Any:
        return self._made.params

    @params.setter
    def params(self, none: Any) -> None:
        """Typer sets what it saw of `_not_yet`."""

    @property
    def callback(self) -> Any:
        return self._made.callback

    @callback.setter
    def callback(self, none: Any) -> None:
        """As with `params`."""


def _not_yet() -> None:
    """What typer sees of a command until it is asked for."""


def _offer(group: typer.Typer, command: Callable[..., None], name: str = "") -> None:
    """Make a command part of a group, under its own name or another."""
    later: Any = partial(Later, command)  # typer only ever calls it
    group.command(name or get_command_name(command.__name__), cls=later, help=command.__doc__)(_not_yet)


app = typer.Typer(
    cls=Door,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What was true, what did we believe, what superseded it, and why.",
    epilog="graphstore --branch NAME COMMAND … reads and writes on a branch (or set GRAPHSTORE_BRANCH). Times are dates (midnight UTC) or ISO 8601 instants such as 2026-01-30T12:00:00Z. "
    "Exit codes: 0 done, 1 refused or problems found, 2 wrong usage.",
)
# In the order of --help.
COMMANDS: tuple[Callable[..., None], ...] = (
    cli_files.demo,
    cli_write.init,
    cli_write.add,
    cli_write.revise,
    cli_write.supersede,
    cli_write.end,
    cli_write.retract,
    cli_write.confirm,
    cli_write.fold,
    cli_write.consolidate,
    cli_write.link,
    cli_write.unlink,
    cli_write.event,
    cli_timeline.message,
    cli_write.resolve,
    cli_topics.memorize,
    cli_write.sweep,
    cli_sessions.reanalyze,
    cli_sessions.connect,
    cli_write.evict,
    cli_write.erase,
    cli_memory.remember,
    cli_memory.lifecycle,
    cli_memory.reembed,
    cli_read.show,
    cli_read.links,
    cli_read.history,
    cli_read.superseded,
    cli_read.causes,
    cli_read.effects,
    cli_read.walk,
    cli_read.path,
    cli_read.recall,
    cli_topics.topic,
    cli_topics.latest,
    cli_context.working,
    cli_context.context,
    cli_read.diff,
    cli_read.query,
    cli_doors.shell,
    cli_read.changes,
    cli_read.events,
    cli_timeline.timeline,
    cli_timeline.trace,
    cli_read.review,
    cli_read.shaky,
    cli_write.snapshot,
    cli_read.snapshots,
    cli_branches.branch,
    cli_branches.branches,
    cli_branches.compare,
    cli_branches.merge,
    cli_branches.delete_branch,
    cli_files.export,
    cli_files.restore,
    cli_files.verify,
    cli_files.stats,
    cli_files.retention,
    cli_files.trust,
    cli_doors.serve,
    cli_doors.mcp,
)
IMPORTS: dict[str, Callable[..., None]] = {
    "git": cli_files.import_git,
    "jsonl": cli_files.import_jsonl,
    "csv": cli_files.import_csv,
    "gasoline": cli_files.import_gasoline,
    "otlp": cli_files.import_otlp,
    "messages": cli_files.import_messages,
    "memobrain": cli_files.import_memobrain,
    "pi-brain": cli_files.import_pi_brain,
    "pi": cli_sessions.import_pi,
    "claude": cli_sessions.import_claude,
}
SESSIONS: dict[str, Callable[..., None]] = {
    "list": cli_sessions.list_sessions,
    "work": cli_sessions.work,
    "decisions": cli_sessions.decisions,
    "lessons": cli_sessions.lessons,
    "errors": cli_sessions.errors,
    "lineage": cli_sessions.lineage,
    "costs": cli_sessions.costs,
    "stats": cli_sessions.stats,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "import": ("Bring in history from elsewhere.", IMPORTS),
    "sessions": ("Sessions of coding agents.", SESSIONS),
    "memory": ("Look into memory.", {"stats": cli_memory.stats}),
    "index": ("Fill memory from files.", {"soul": cli_context.index_soul}),
}


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


for _command in COMMANDS:
    _offer(app, _command)
for _group, (_help, _commands) in GROUPS.items():
    _typer = typer.Typer(cls=Door, help=_help, no_args_is_help=True, rich_markup_mode=None)
    for _name, _command in _commands.items():
        _offer(_typer, _command, _name)
    app.add_typer(_typer, name=_group)


def main() -> None:
    """The `graphstore` command."""
    app(prog_name="graphstore")


if __name__ == "__main__":
    main()
