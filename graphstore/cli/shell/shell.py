"""The shell: Cypher and short commands over one store that is only read, beside its writer.

The way of a line: what was typed → a statement or a command → follow the writer, unless pinned → the view's public reads → an answer, shown.
"""

from __future__ import annotations

import math
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from graphstore.cli import command_rows, commands, common
from graphstore.cli.shell import parser, schema
from graphstore.cli.shell.output import (
    Mode,
    Output,
    ShellAnswer,
    of_models,
    of_value,
    write,
)
from graphstore.errors import GraphStoreError, InvalidError, QueryError
from graphstore.graph.guard import WRITES
from graphstore.graph.result import Result
from graphstore.graph.statement import parse, pieces
from graphstore.values.findings import BranchInfo

if TYPE_CHECKING:
    from graphstore.store.counterfactual import Counterfactual
    from graphstore.store.store import Branch, GraphStore
    from graphstore.view.view import View

# the engine lists every word of its grammar
_EVERY_WORD = re.compile(r" expecting \{[^}]{60,}\}")
PATIENCE = 1.0
"""Seconds from one Ctrl-C to the next that is raised: a query takes a moment to stop."""
WRITING = "The shell only reads. Write with a command, such as graphstore add-node or graphstore revise, or in Python."


class Leave(Exception):
    """The shell is to end."""


class Stopping:
    """Ctrl-C while something is answered: a KeyboardInterrupt, and never in the middle of what must not be left half done."""

    def __init__(self) -> None:
        self._held = self._waiting = False
        self._last = math.inf  # when one was raised last; this way none is

    @contextmanager
    def minded(self) -> Iterator[None]:
        """In this block Ctrl-C does nothing, except in a `raised` block inside. One handler for all: to change it leaves a moment for the other."""
        before = signal.signal(signal.SIGINT, self._come)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """In this block Ctrl-C is raised; those that follow at once are passed over, for the first is being seen to."""
        self._held = self._waiting = False
        self._last = -PATIENCE
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """From here on none is raised: one may have come at the very end of a `raised` block."""
        self._last = math.inf

    @contextmanager
    def held(self) -> Iterator[None]:
        """In this block it waits for the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._waiting:
            self._waiting = False
            self._come()

    def _come(self, number: int = 0, frame: FrameType | None = None) -> None:
        now = time.monotonic()
        if self._held:
            self._waiting = True
        elif now - self._last >= PATIENCE:
            self._last = now
            raise KeyboardInterrupt


class Shell:
    """A store, where in it the shell looks, and how it answers. `name` is what the prompt calls the store."""

    def __init__(self, trunk: GraphStore | Branch, name: str, output: Output) -> None:
        self.trunk, self.name, self.output = trunk, name, output
        self.branch: str | None = None
        self.valid: str | None = None
        self.tx: str | None = None
        self.tables = False
        self.without: str | None = None
        """What is looked at as if it had never been recorded, such as `author=ben`."""
        self._counterfactual: tuple[object, Counterfactual] | None = None
        self.params: dict[str, Any] = {}
        self.last: ShellAnswer | None = None
        """The last answer, for :export."""
        self.stopping = Stopping()

    # ---------------------------------------------------------------- where it looks

    @property
    def store(self) -> GraphStore | Branch:
        """The line of belief that is looked at."""
        return self.trunk if self.branch is None else self.trunk.on(self.branch)

    def view(self) -> View:
        """The view at the shell's coordinate."""
        return self._looking(self.valid, self.tx)

    def view_at(self, at: str | None) -> View:
        """The view as of a time or a snapshot, on both axes; None: now."""
        return self._looking(at, at)

    def _looking(self, valid: str | None, tx: str | None) -> View:
        view = common.view_at(self.store, valid, tx)
        if self.without is None:
            return view
        return self.counterfactual(self.without).as_of(valid=view.at.valid, tx=view.at.tx)

    def counterfactual(self, without: str) -> Counterfactual:
        """Return the view without some operations. The last one is kept until something is written. Raises what `Store.without` raises."""
        from graphstore.store.counterfactual import arguments

        asked = without, self.branch, self.store.as_of().at.tx
        if self._counterfactual is None or self._counterfactual[0] != asked:
            self._counterfactual = asked, self.store.without(**arguments(without))
        return self._counterfactual[1]

    def refuse_counterfactual(self, what: str) -> None:
        """Raise InvalidError for what shows only what was recorded, while something is looked at as if it had not been."""
        if self.without is not None:
            raise InvalidError(
                f"{what} shows what was recorded, and you look at what would be believed without {self.without}. :now looks at what was recorded."
            )

    def move_to(self, valid: str | None, tx: str | None) -> None:
        """Look from now on at that coordinate; None on an axis: now. Raises what `as_of` raises, and stays where it is then."""
        if tx is None:
            self.follow_writer()
        seen = common.view_at(self.store, valid, tx)
        self.valid, self.tx = valid, tx
        self.output.remark(f"{seen.at}.")

    def turn_to(self, branch: str | None) -> None:
        """Look from now on at a branch, or the trunk. Raises NotFoundError for an unknown one."""
        if branch is not None:
            self.trunk.on(branch)
        self.branch = branch

    def follow_writer(self) -> int:
        """Follow the writer. Gives the number of transactions that are new."""
        with self.stopping.held():  # a reader stopped between two lines of the journal would know half of one
            return self.trunk.refresh()

    def prompt(self) -> str:
        """Return the text before the line that is typed: the store, its branch, and the coordinate unless it is now."""
        name = self.name if self.branch is None else f"{self.name}/{self.branch}"
        return f"{name}{self._coordinate()}> "

    def _coordinate(self) -> str:
        if self.tables:
            return " (tables)"
        if self.valid is not None and self.valid == self.tx and self.without is None:
            return f" (as of {self.valid})"
        axes = (("valid", self.valid), ("tx", self.tx), ("without", self.without))
        shown = ", ".join(f"{axis} {at}" for axis, at in axes if at is not None)
        return f" ({shown})" if shown else ""

    # ---------------------------------------------------------------- what it answers

    def run(self, line: str) -> bool:
        """Answer one statement or command. False when it was refused, after one line with the error. Raises Leave."""
        try:
            if self.tx is None:
                self.follow_writer()
            start = time.perf_counter()
            answer = self.answer(line)
            if answer is not None:
                self.last = self.last if answer.aside else answer
                self.output.show(answer, time.perf_counter() - start)
        except BrokenPipeError:
            raise
        except (GraphStoreError, OSError, typer.BadParameter) as error:
            self.output.error(error)
            return False
        return True

    def answer(self, line: str) -> ShellAnswer | None:
        """The answer of one statement or command; None of a command that has none. Raises GraphStoreError."""
        if parser.is_command(line):
            return obey(self, line)
        return self.query(line)

    def query(self, cypher: str) -> ShellAnswer:
        """The answer of one statement, with the parameters that it names. Raises QueryError."""
        known = parse(cypher).params & self.params.keys()
        params = {name: self.params[name] for name in known}
        try:
            found = (
                self.store.query_tables(cypher, **params)
                if self.tables
                else self.view().query(cypher, **params)
            )
        except QueryError as error:
            raise _explained(error, cypher) from None
        return ShellAnswer(found)

    def run_all(self, lines: Iterable[str], *, keep_going: bool = False) -> bool:
        """Answer all that some lines hold, as they come. False when something was refused: the first ends it, unless `keep_going`."""
        good = True
        try:
            for one in parser.inputs(lines):
                good = self.run(one) and good
                if not (good or keep_going):
                    break
        except Leave:
            pass
        return good


def _explained(error: QueryError, cypher: str) -> QueryError:
    message = _EVERY_WORD.sub("", str(error))
    written = {piece.upper() for kind, piece in pieces(cypher) if kind == "word"} & WRITES
    if written and "refused" in message:
        return QueryError(f"{message} {WRITING}")
    missing = "was given no value" in message
    return QueryError(f"{message} Give one with :param NAME VALUE." if missing else message)


# ---------------------------------------------------------------- the commands

Act = Callable[[Shell, str], ShellAnswer | None]
NOW, TRUNK = "now", "trunk"


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command: what it takes in words, and for each of these what may be completed there."""

    usage: str
    summary: str
    act: Act
    takes: tuple[str, ...] = ()
    least: int = 0
    """How many words it needs."""


# ---------------------------------------------------------------- where the shell looks


def _as_of(shell: Shell, at: str) -> None:
    shell.move_to(at or shell.valid, at or shell.tx)


def _valid(shell: Shell, at: str) -> None:
    shell.move_to(at or shell.valid, shell.tx)


def _tx(shell: Shell, at: str) -> None:
    shell.move_to(shell.valid, at or shell.tx)


def _now(shell: Shell, _: str) -> None:
    shell.without = None
    shell.move_to(None, None)


def _without(shell: Shell, words: str) -> ShellAnswer | None:
    asked = _asking(commands.COMMANDS["without"])
    if words.startswith("-"):
        return asked.act(shell, words)
    if not words:
        if shell.without is None:
            raise InvalidError("without what? Give source=, author=, id= or tx=: :without author=ben.")
        return of_value(shell.counterfactual(shell.without).counterfact)
    text = ",".join(_words(words))
    view = shell.counterfactual(text)
    shell.without, shell.tables = text, False
    shell.output.remark(
        f"{view.omitted} operations omitted, {len(view.left_out)} that need them left out. :without lists the difference, :now ends it."
    )
    return None


def _tables(shell: Shell, _: str) -> None:
    shell.refuse_counterfactual(":tables")
    shell.tables = True
    shell.output.remark("Cypher sees the whole history, periods as columns. :view goes back.")


def _view(shell: Shell, _: str) -> None:
    shell.tables = False
    shell.output.remark(f"Cypher sees the graph {shell.view().at}.")


def _branch(shell: Shell, name: str) -> ShellAnswer | None:
    if not name:
        return of_models(BranchInfo, shell.store.branches())
    named = [branch.name for branch in shell.store.branches()]
    shell.turn_to(None if name == TRUNK and TRUNK not in named else name)
    return None


def _refresh(shell: Shell, _: str) -> None:
    count = shell.follow_writer()
    shell.output.remark(f"{count:,} new transaction{'' if count == 1 else 's'}.")


# ---------------------------------------------------------------- the reads of the command line

_UsageError: Any = typer.BadParameter.__base__


def _asking(command: command_rows.Command) -> ShellCommand:
    """A reading command of the command line, run where the shell looks."""

    def act(shell: Shell, rest: str) -> ShellAnswer:
        one = command.arguments[0] if len(command.arguments) == 1 else None
        if one is not None and one.type in ("text", "id") and rest and "--" not in rest:
            values = {one.name: rest}  # it may have spaces
        else:
            try:
                values = command_rows.parsed(command, _words(rest))
            except _UsageError as error:
                raise InvalidError(f"{usage!r} cannot be asked so: {error.format_message()}") from None
        if not command.is_at:
            shell.refuse_counterfactual(f":{command.name}")
        if command.check is not None:
            command.check(values)
        asked = command_rows.CommandRun(command, shell.store, values, {"valid": shell.valid, "tx": shell.tx})
        asked.view = shell.view()
        found = asked.answer()
        return of_value(
            found, None if command.show is None and asked.words is None else lambda: asked.shown(found)
        )

    usage = f":{command.name} {command.usage}".strip()
    takes = tuple("id" if one.type in command_rows.ID_TYPES else one.type for one in command.arguments)
    least = sum(one.is_required for one in command.arguments)
    return ShellCommand(usage, command.summary, act, takes or ("option",), least)


def _below(over: str, names: list[str]) -> ShellCommand:
    """The commands of a group as one that takes their name first."""

    def act(shell: Shell, rest: str) -> ShellAnswer | None:
        name, _, words = rest.partition(" ")
        name = commands.UNLISTED.get(f"{over} {name}", f"{over} {name}")
        if name not in names:
            raise InvalidError.choice("command", name, names)
        return _READS[name].act(shell, words)

    listed = "|".join(name.removeprefix(f"{over} ") for name in names)
    return ShellCommand(f":{over} {listed}", f"what is known of {over}", act, (over,), 1)


def _diff(shell: Shell, rest: str) -> ShellAnswer:
    match _words(rest):
        case [_, old, new] if old.isdecimal() and new.isdecimal():
            return _asking(commands.COMMANDS["diff"]).act(shell, rest) or ShellAnswer(Result((), []))
        case [before, after]:
            one, other = (shell.view_at(None if at == NOW else at) for at in (before, after))
            return of_value(one.compare(other))
        case _:
            raise InvalidError(
                f"cannot compare {rest!r}. Give an id and two version numbers, or two times: :diff limits 1 3, "
                ":diff 2026-01-01 now."
            )


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:  # an apostrophe of its own
        return rest.split()


def _schema(shell: Shell, _: str) -> ShellAnswer:
    return schema.tables(shell.store) if shell.tables else schema.view(shell.view())


# ---------------------------------------------------------------- how the shell behaves


def _mode(shell: Shell, name: str) -> None:
    if name:
        shell.output.mode = _choice("mode", name, {mode.value: mode for mode in Mode})
    shell.output.remark(f"answers are shown as {shell.output.mode}.")


def _timing(shell: Shell, word: str) -> None:
    if word:
        shell.output.timing = _choice("timing", word, {"on": True, "off": False})
    shell.output.remark(f"timing is {'on' if shell.output.timing else 'off'}.")


def _choice(what: str, word: str, choices: Mapping[str, Any]) -> Any:
    if word.lower() not in choices:
        raise InvalidError.choice(what, word, choices)
    return choices[word.lower()]


def _export(shell: Shell, name: str) -> None:
    if shell.last is None:
        raise InvalidError("there is no answer to export yet. Ask something first.")
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise InvalidError(f"{name!r} is nowhere: {error} Write the whole path.") from None
    size = write(shell.last, path)
    shell.output.remark(f"{len(shell.last.result):,} rows written to {path}, {size:,} bytes.")


def _param(shell: Shell, rest: str) -> ShellAnswer | None:
    name, _, value = rest.partition(" ")
    name = name.removeprefix("$")
    if value:
        if not name.isidentifier():
            raise InvalidError(f"{name!r} cannot be the name of a parameter. Use letters, digits and _.")
        shell.params |= common.parameters([f"{name}={value.strip()}"])
        return None
    if name and name not in shell.params:
        raise InvalidError.choice("parameter", name, shell.params)
    params = {one: shell.params[one] for one in ([name] if name else shell.params)}
    return ShellAnswer(Result(("parameter", "value"), list(params.items())), params, aside=True)


def _recipe(shell: Shell, words: str) -> ShellAnswer:
    shell.refuse_counterfactual(":recipe")
    name, *given = shlex.split(words)
    if not name:
        raise InvalidError("which recipe?")
    return ShellAnswer(shell.store.recipe(name, valid=shell.valid, tx=shell.tx, **common.parameters(given)))


def _recipes(shell: Shell, _: str) -> ShellAnswer:
    found = [(one.name, " ".join(one.parameters), one.doc) for one in shell.store.recipes()]
    return ShellAnswer(Result(("recipe", "parameters", "what it answers"), found), aside=True)


def _help(shell: Shell, name: str) -> ShellAnswer:
    asked = [find(name)] if name else COMMANDS.values()
    return ShellAnswer(
        Result(("command", "what it does"), [(one.usage, one.summary) for one in asked]), aside=True
    )


def _quit(shell: Shell, _: str) -> None:
    raise Leave


_LISTED = (
    ShellCommand(":asof TIME|NAME", "look as of a time or a snapshot, on both axes", _as_of, ("coordinate",)),
    ShellCommand(":valid TIME", "look at the world as it was then", _valid, ("coordinate",)),
    ShellCommand(":tx TIME", "look at what the store knew then", _tx, ("coordinate",)),
    ShellCommand(":now", "look at the present again, and follow the writer", _now),
    ShellCommand(":without NAME=VALUE", "look as if what has this source, author, id or tx had never been recorded; alone: the difference", _without, ("option",)),
    ShellCommand(":branch [NAME]", "turn to a branch, or to the trunk; alone: the branches there are", _branch, ("branch",)),
    ShellCommand(":diff ID 1 3", "what changed between two versions; :diff TIME TIME: between two times", _diff, ("id|coordinate", "coordinate"), 2),
    ShellCommand(":schema", "labels, kinds, types, links and properties there are", _schema),
    ShellCommand(":tables", "ask the whole history, periods as columns", _tables),
    ShellCommand(":view", "ask the graph of the coordinate again", _view),
    ShellCommand(":recipe NAME [PARAMETER=VALUE …]", "ask a question that comes with the package", _recipe, ("recipe",), 1),
    ShellCommand(":recipes", "the questions that come with the package", _recipes),
    ShellCommand(":param [NAME VALUE]", "a value for $NAME, as JSON or as text; alone: those there are", _param, ("param",)),
    ShellCommand(":mode [MODE]", "show answers as table, json, csv or markdown", _mode, ("mode",)),
    ShellCommand(":export FILE", "write the last answer, all of it: .csv .json .parquet .md", _export, ("file",), 1),
    ShellCommand(":timing [on|off]", "show what each answer took", _timing, ("switch",)),
    ShellCommand(":refresh", "follow what was written meanwhile; done before each statement unless :asof or :tx is set", _refresh),
    ShellCommand(":help [COMMAND]", "this", _help, ("command",)),
    ShellCommand(":quit", "leave, as Ctrl-D does", _quit),
)  # fmt: skip
_OWN = {one.usage.split()[0]: one for one in _LISTED}
_ELSEWHERE = ("query", "sql", "export", "project", "lake follow")
_READS = {
    one.name: _asking(one)
    for one in commands.COMMANDS.values()
    if one.on == "store" and not one.is_write and one.name not in _ELSEWHERE
}
_BELOW = {over: [name for name in _READS if name.startswith(over + " ")] for over in ("sessions", "memory")}
_GROUPED = {over: _below(over, names) for over, names in _BELOW.items()}
COMMANDS: dict[str, ShellCommand] = {
    f":{name}": one for name, one in (_READS | _GROUPED).items() if " " not in name
} | _OWN
UNLISTED = {
    f":{old}": COMMANDS[f":{name}"] for old, name in commands.UNLISTED.items() if f":{name}" in COMMANDS
}
"""The commands by the other names they are understood by."""
_SHORT = {":q": ":quit", ":exit": ":quit", ":?": ":help", ":h": ":help"}


def find(name: str) -> ShellCommand:
    """The command of that name, with or without its colon. Raises InvalidError with the nearest."""
    plain = ":" + " ".join(name.lower().lstrip(": ").split())
    plain = _SHORT.get(plain, plain)
    command = UNLISTED.get(plain) or COMMANDS.get(plain)
    if command is None:
        raise InvalidError.choice("command", name, COMMANDS)
    return command


def obey(shell: Shell, line: str) -> ShellAnswer | None:
    """Do what a line says. Raises Leave when that is to end."""
    name, *more = line.strip().rstrip(";").split(maxsplit=1)
    rest = "".join(more)
    command = find(name)
    if len(rest.split()) < command.least or (rest and not command.takes and not command.least):
        raise InvalidError(f"{line.strip()!r} cannot be done. Write {command.usage}")
    return command.act(shell, rest)
