"""Commands made of calls: the parameters of a call are arguments and options, its answer is printed in words or as JSON.

A parameter has its type from the signature of the call and its words from `command_words`. `make references` writes the signatures into `signatures`,
so that help imports no store.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command_from_info
from typer.models import CommandInfo

from graphstore.cli import common, pager
from graphstore.cli.command_words import WORDS, Help
from graphstore.cli.signatures import SIGNATURES

if TYPE_CHECKING:
    from graphstore.graph.result import Result
    from graphstore.store.store import Branch, GraphStore
    from graphstore.view.view import View

NO_HELP = Help("")


@dataclass(frozen=True)
class Parameter:
    """A parameter as the command line takes it. `type`: a key of `_TYPES`, or the choices with a bar between them."""

    name: str
    type: str = "text"
    is_required: bool = False
    by_name: bool = False
    default: str = ""


@dataclass(frozen=True)
class Command:
    """A command that is a call.

    `call`: its name. `act`: what is done instead of calling it. `places`: the parameters given by place; by default those that are required.
    `words`: words of its own for parameters; one that the call does not have is the command's own. `without`: what it does not offer.
    `show`: gives what is printed for an answer, or prints it and gives None; by default the answer is printed. `check`: refuses values before the
    store is opened. `old`: names it had. `writes`, `creates`: how the store is opened, where the call does not say so; `at`: whether it is
    asked at a coordinate. `on`: what it is done on, an open `store`, the `place` of one, or nothing of the kind.
    """

    name: str
    group: str
    summary: str
    call: str
    act: "Callable[[CommandRun], Any] | None" = None
    show: "Callable[[CommandRun, Any], object] | None" = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    places: str | None = None
    words: Mapping[str, Help] = field(default_factory=dict)
    without: str = ""
    old: str = ""
    writes: Callable[[Mapping[str, Any]], bool] | None = None
    creates: bool = False
    at: bool | None = None
    on: str = "store"

    @property
    def _signature(self) -> tuple[str, str, str]:
        return SIGNATURES.get(self.call, ("read", "store", ""))

    @property
    def is_write(self) -> bool:
        """Return True if it may write."""
        return self._signature[0] == "write" or self.writes is not None

    @property
    def is_at(self) -> bool:
        """Return True if it is asked at a coordinate."""
        return self._signature[1] == "view" if self.at is None else self.at

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Those of the call that are offered, then the command's own."""
        found = {
            one.name: one
            for one in map(_parameter, self._signature[2].split())
            if one.name not in self.without.split()
        }
        for name in {**found, **self.words}:
            of, word = found.get(name, Parameter(name)), self.word(name)
            found[name] = Parameter(
                name, word.type or of.type, word.is_required or of.is_required, of.by_name, of.default
            )
        return found

    @cached_property
    def arguments(self) -> list[Parameter]:
        """The parameters that are given by place."""
        if self.places is not None:
            return [self.parameters[name] for name in self.places.split()]
        return [one for one in self.parameters.values() if one.is_required and not one.by_name]

    @property
    def usage(self) -> str:
        """Its arguments in short."""
        return " ".join(
            self._metavar(one) if one.is_required else f"[{self._metavar(one)}]" for one in self.arguments
        )

    def word(self, name: str) -> Help:
        """The words of a parameter."""
        own, common = self.words.get(name, NO_HELP), WORDS.get(name, NO_HELP)
        return Help(
            own.help or common.help,
            own.metavar or common.metavar,
            own.flag or common.flag,
            own.type or common.type,
            own.is_required,
        )

    def signature(self, *before: inspect.Parameter) -> inspect.Signature:
        """The command as a function that typer reads: `before`, then arguments and options."""
        needed = [one for one in self.parameters.values() if one.is_required and one not in self.arguments]
        free = [one for one in self.parameters.values() if one not in needed and one not in self.arguments]
        every = [
            *before,
            *(self._argument(one) for one in self.arguments),
            *(self._option(one) for one in [*needed, *free]),
        ]
        return inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in every])

    def _metavar(self, one: Parameter) -> str:
        return self.word(one.name).metavar or one.name.upper()

    def _argument(self, one: Parameter) -> inspect.Parameter:
        offered = typer.Argument(
            metavar=self._metavar(one), help=self.word(one.name).help, **_CHECKS.get(one.type, {})
        )
        return _offered(one, offered)

    def _option(self, one: Parameter) -> inspect.Parameter:
        word = self.word(one.name)
        text = (
            f"{word.help} [{one.default}]"
            if one.default and "[" not in word.help and one.type != "bool"
            else word.help
        )
        plain = "--" + one.name.replace("_", "-")
        metavar = None if "|" in one.type else word.metavar or _METAVARS.get(one.type)
        offered = typer.Option(word.flag or plain, metavar=metavar, help=text, **_CHECKS.get(one.type, {}))
        return _offered(one, offered)

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the call takes them; an absent one keeps the default of the call."""
        found = {}
        for name, value in arguments.items():
            one = self.parameters[name]
            if value is None or value == [] or (one.type == "bool" and value is False):
                continue
            found[name] = (
                one.default != "True"
                if one.type == "bool" and value is True
                else _CONVERSIONS.get(one.type, _plain)(value)
            )
        return found


def _parameter(text: str) -> Parameter:
    name, _, default = text.partition("=")
    name, _, type = name.partition(":")
    return Parameter(name.strip("-!"), type or "text", name.endswith("!"), name.startswith("-"), default)


def _offered(one: Parameter, offered: Any) -> inspect.Parameter:
    type: Any = _TYPES.get(one.type) or Enum(
        one.name, {choice: choice for choice in one.type.split("|")}, type=str
    )
    if one.is_required:
        default: Any = inspect.Parameter.empty
    elif one.type == "bool":
        default = False
    else:
        type, default = type | None, None
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type, offered]
    )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


_TYPES: dict[str, Any] = {
    "text": str, "id": str, "ids": list[str], "time": str, "json": str, "function": str, "embedder": str, "int": int, "float": float, "seconds": float, "bool": bool, "many": list[str],
    "path": Path, "file": Path, "place": Path, "side": bool | None,
}  # fmt: skip
ID_TYPES = ("id", "ids")
"""The types whose values are ids of what the store knows."""
_METAVARS = {"time": "TIME", "json": "OBJECT", "function": "MODULE:FUNCTION"}
_CHECKS: dict[str, dict[str, Any]] = {
    "file": {"exists": True, "dir_okay": False},
    "place": {"exists": True},
    "seconds": {"min": 0.01},
}
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "json": common.json_content,
    "function": common.function,
    "embedder": common.embedder,
}


# ---- done -------------------------------------------------------------------------------------


class CommandRun:
    """A command that is being done: its values, and the store and the view it is asked of."""

    def __init__(
        self,
        command: Command,
        store: "GraphStore | Branch",
        values: dict[str, Any],
        at: Mapping[str, str | None] = {},
    ) -> None:
        self.command, self.store, self.values = command, store, values
        self.valid, self.tx = at.get("valid"), at.get("tx")
        self.words: object = None
        """What is printed instead of the answer; a function prints it itself."""
        self.path, self.as_json, self.is_refused = Path(), False, False
        """Where the store is, whether JSON is wanted, and whether the exit code is 1."""

    @cached_property
    def view(self) -> "View":
        """The view at the coordinate."""
        return common.view_at(self.store, self.valid, self.tx)

    def answer(self) -> Any:
        """Do it, with every id whole."""
        for name, value in self.values.items():
            if self.command.parameters[name].type in ID_TYPES:
                self.values[name] = self.whole(value)
        return self.call() if self.command.act is None else self.command.act(self)

    @property
    def reader(self) -> Any:
        """Return what the call is asked of."""
        return self.view if self.command.is_at else self.store

    def call(self, *args: Any, **more: Any) -> Any:
        """The answer of the call to the values and more."""
        return self.ask(self.command.call, *args, **self.values, **more)

    def ask(self, name: str, /, *args: Any, **values: Any) -> Any:
        """The answer of another call."""
        if "." not in name:
            return getattr(self.reader, name)(*args, **values)
        from graphstore.remote import calls

        return calls.ask(name, self.reader, *args, **values)

    def whole(self, id: Any) -> Any:
        """An id that was typed, or several: a unique beginning of one is made whole."""
        from graphstore.values.generated_ids import whole

        return whole(lambda text: self.reader.whole_id(text), id)

    def pop(self, *names: str) -> Any:
        """Values that are not the call's: the one, or all of them; None where it was not given."""
        taken = [self.values.pop(name, None) for name in names]
        return taken[0] if len(taken) == 1 else taken

    def shown(self, found: Any) -> object:
        """Return what is printed for an answer; None where that is done."""
        if callable(self.words):
            return self.words()
        if self.words is not None or self.command.show is None:
            return found if self.words is None else self.words
        return self.command.show(self, found)

    def rows(self, found: "Result", format: str | None = None, file: str | None = None) -> Any:
        """Return the rows of a table, which are printed in that format, or written into a file."""
        for warning in found.warnings:
            common.say(f"warning: {warning}", err=True)
        if file is not None:
            from graphstore.graph.result_files import save

            save(found, Path(file))
            self.words = f"{len(found):,} rows in {file}"
            return {"file": file, "rows": len(found)}
        found.tuples()
        listed = found.legible()

        def show() -> None:
            from graphstore.cli import printing
            from graphstore.graph.result_files import csv_text

            if format == "json":
                printing.as_json(listed)
            elif format == "csv":
                pager.echo(csv_text(found), nl=False)
            else:
                printing.result_table(found.columns, found.tuples())

        self.words = show
        return listed

    def report_readers(self) -> None:
        """Print whose earlier answers contained what this command invalidated, on standard error."""
        if (tx := self.store.last_write) is None:
            return
        found: dict[str, list[str]] = {}
        for each in self.store.readers_of(tx=tx):
            found.setdefault(each.agent, []).append(each.id)
        for agent, ids in found.items():
            common.say(
                f"no longer holds in what was answered to {agent}: {', '.join(dict.fromkeys(ids))}", err=True
            )

    def report(self, found: Any) -> None:
        """Print an answer., and on standard error the coordinate that it is of, if one was asked for."""
        if (self.valid or self.tx) and "view" in vars(self):
            common.say(f"{self.view.at}.", err=True)
        for name, heading in _BESIDE.items():
            of = getattr(found, name, ())
            for each in of if isinstance(of, list | tuple) else ():
                common.say(f"{heading}: {each}", err=True)
        words = found if self.as_json else self.shown(found)
        if words is not None or self.as_json:
            common.answer(words, self.as_json)


def function(command: Command) -> Callable[..., None]:
    """The command as a function that typer reads."""

    def run(as_json: bool, store: Path = Path(), **arguments: Any) -> None:
        author = arguments.pop("author", None) if command.is_write else None
        axes = {axis: arguments.pop(axis, None) for axis in _AXES} if command.is_at else {}
        at = common.coordinate(**axes) if axes else {}
        values = command.values(arguments)
        if command.check is not None:
            command.check(values | {axis: time for axis, time in at.items() if time})
        writes = command.writes(values) if command.writes is not None else command.is_write
        opening: AbstractContextManager[Any] = nullcontext()
        if command.on == "store":
            opening = common.open_store(store, author=author, read_only=not writes, create=command.creates)
        with opening as opened:
            asked = CommandRun(command, opened, values, at)
            asked.path, asked.as_json = store, as_json
            found = asked.answer()
            with nullcontext() if command.is_write else pager.paged():
                asked.report(found)
            if command.is_write:
                asked.report_readers()
        if asked.is_refused:
            raise typer.Exit(1)

    options = [_common("as_json", common.Json, False)]
    if command.is_write:
        options.insert(0, _common("author", common.Author))
    if command.is_at:
        options[:0] = [_common(axis, annotation) for axis, annotation in _AXES.items()]
    made = command.signature(
        *([_common("store", common.Store, inspect.Parameter.empty)] if command.on else [])
    )
    run.__signature__ = made.replace(parameters=[*made.parameters.values(), *options])  # type: ignore[attr-defined]
    run.__doc__, run.__name__ = command.summary, command.name
    return run


def parsed(command: Command, words: list[str]) -> dict[str, Any]:
    """The values that words give to a command, with no store before them. Raises typer's usage errors."""
    arguments: dict[str, Any] = {}

    def keep(**values: Any) -> None:
        arguments.update(values)

    keep.__signature__ = command.signature()  # type: ignore[attr-defined]
    info = CommandInfo(name=command.name, callback=keep, add_help_option=False)
    made = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    made.main(words, prog_name=command.name, standalone_mode=False)
    return command.values(arguments)


def _common(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_AXES = {"valid": common.Valid, "tx": common.Tx, "as_of": common.AsOf}
_BESIDE = {
    "damaged": "left out",
    "unknown": "unknown field left out",
    "remarks": "note",
    "warnings": "warning",
}
"""Fields of an answer that are printed on standard error, each with its heading."""
