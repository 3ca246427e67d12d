"""The shell: Cypher and short commands over one store that is only read, beside whoever writes it.

The way of a line: what was typed → a statement or a command → follow the writer, unless pinned → the view's public reads → an answer, shown.
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from graphstore import cli_common, shell_commands, shell_text
from graphstore.errors import GraphStoreError, QueryError
from graphstore.guard import WRITES, parse, pieces
from graphstore.shell_answers import Answer, Output

if TYPE_CHECKING:
    from graphstore.store import GraphStore
    from graphstore.view import View

# the engine lists every word of its grammar
_EVERY_WORD = re.compile(r" expecting \{[^}]{60,}\}")
PATIENCE = 1.0
"""Seconds from one Ctrl-C to the next that is raised: a query takes a moment to stop."""
WRITING = (
    "The shell only reads. Write with a command, such as graphstore add or graphstore revise, or in Python."
)


class Stopping:
    """Ctrl-C while something is answered: a KeyboardInterrupt, and never in the middle of what must not be left half done."""

    def __init__(self) -> None:
        self._held = self._waiting = False
        self._last = math.inf  # when one was raised last; this way none is

    @contextmanager
    def minded(self) -> Iterator[None]:
        """In this block Ctrl-C does nothing, but in what is `heard` of it. One handler for all: to change it leaves a moment for the other."""
        before = signal.signal(signal.SIGINT, self._come)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """In this block Ctrl-C is raised; those that follow at once are passed over, for the first is being seen to."""
        self._held = self._waiting = False
        self._last = -PATIENCE
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """From here on none is raised: one may have come at the very end of what is heard."""
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

    def __init__(self, trunk: GraphStore, name: str, output: Output) -> None:
        self.trunk, self.name, self.output = trunk, name, output
        self.branch: str | None = None
        self.valid: str | None = None
        self.tx: str | None = None
        self.tables = False
        self.params: dict[str, Any] = {}
        self.last: Answer | None = None
        """What was answered last, for :export."""
        self.stopping = Stopping()

    # ---------------------------------------------------------------- where it looks

    @property
    def store(self) -> GraphStore:
        """The line of belief that is looked at."""
        return self.trunk if self.branch is None else self.trunk.on(self.branch)

    def view(self) -> View:
        """The view at the shell's coordinate."""
        return cli_common.view_at(self.store, self.valid, self.tx)

    def view_at(self, at: str | None) -> View:
        """The view as of a time or a snapshot, on both axes; None: now."""
        return cli_common.view_at(self.store, at, at)

    def look(self, valid: str | None, tx: str | None) -> None:
        """Look from now on at that coordinate; None on an axis: now. Raises what `as_of` raises, and stays where it is then."""
        if tx is None:
            self.follow()
        seen = cli_common.view_at(self.store, valid, tx)
        self.valid, self.tx = valid, tx
        self.output.remark(f"{seen.at}.")

    def turn_to(self, branch: str | None) -> None:
        """Look from now on at a branch, or the trunk. Raises NotFoundError for an unknown one."""
        if branch is not None:
            self.trunk.on(branch)
        self.branch = branch

    def follow(self) -> int:
        """Follow the writer. Gives the number of transactions that are new."""
        with self.stopping.held():  # a reader stopped between two lines of the journal would know half of one
            return self.trunk.refresh()

    def prompt(self) -> str:
        """What stands before what is typed: the store, its branch, and the coordinate unless it is now."""
        name = self.name if self.branch is None else f"{self.name}/{self.branch}"
        return f"{name}{self._coordinate()}> "

    def _coordinate(self) -> str:
        if self.tables:
            return " (tables)"
        if self.valid is not None and self.valid == self.tx:
            return f" (as of {self.valid})"
        axes = (("valid", self.valid), ("tx", self.tx))
        told = ", ".join(f"{axis} {at}" for axis, at in axes if at is not None)
        return f" ({told})" if told else ""

    # ---------------------------------------------------------------- what it answers

    def run(self, line: str) -> bool:
        """Answer one statement or command. False when it was refused, which was said in one line. Raises Leave."""
        try:
            if self.tx is None:
                self.follow()
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

    def answer(self, line: str) -> Answer | None:
        """The answer of one statement or command; None of a command that has none. Raises GraphStoreError."""
        if shell_text.is_command(line):
            return shell_commands.obey(self, line)
        return self.query(line)

    def query(self, cypher: str) -> Answer:
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
        return Answer(found)

    def run_all(self, lines: Iterable[str], *, keep_going: bool = False) -> bool:
        """Answer all that some lines hold, as they come. False when something was refused: the first ends it, unless `keep_going`."""
        good = True
        try:
            for one in shell_text.inputs(lines):
                good = self.run(one) and good
                if not (good or keep_going):
                    break
        except shell_commands.Leave:
            pass
        return good


def _explained(error: QueryError, cypher: str) -> QueryError:
    said = _EVERY_WORD.sub("", str(error))
    written = {piece.upper() for kind, piece in pieces(cypher) if kind == "word"} & WRITES
    if written and "refused" in said:
        return QueryError(f"{said} {WRITING}")
    missing = "was given no value" in said
    return QueryError(f"{said} Give one with :param NAME VALUE." if missing else said)
