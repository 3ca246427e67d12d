"""What the shell answers: rows, the value they are of, and how they are shown and written into files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from graphstore.cli import common, pager, printing
from graphstore.cli.pager import SHOWN, echo
from graphstore.errors import InvalidError
from graphstore.graph.result import Result
from graphstore.graph.result_files import KINDS, csv_text, save
from graphstore.ledger.files import new_file
from graphstore.memory.recall import Recalled
from graphstore.show.tables import fields_of, json_text, markdown_text, records_of, value_cell
from graphstore.values.findings import ViewDiff
from graphstore.values.text import clean, line

MOST_ROWS = 50
"""Rows of a table that a terminal is shown."""
CELL = 240
"""Columns of a cell there."""


class Mode(StrEnum):
    """Names how answers are shown."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


@dataclass(frozen=True, slots=True)
class ShellAnswer:
    """The rows of an answer, and the value they are of where it is more than rows: JSON and text are made of that."""

    result: Result
    value: Any = None
    words: Any = None
    aside: bool = False
    """About the shell itself: neither timed nor exported."""

    @property
    def document(self) -> Any:
        """Return what JSON is made of."""
        return self.result.legible() if self.value is None else self.value


# ---------------------------------------------------------------- answers of values


def of_value(found: Any, words: Callable[[], object] | None = None) -> ShellAnswer:
    """Return the answer of any value, as rows where it has some. `words`: prints it, or gives what is printed."""
    if records := records_of(found):
        return ShellAnswer(Result(*records), found, _words_of(found))
    match found:
        case dict():
            result = Result(("field", "value"), list(found.items()))
        case [BaseModel(), *_]:
            answer = of_models(type(found[0]), found)
            return answer if words is None else ShellAnswer(answer.result, found, words)
        case list():
            result = Result(("answer",), [(one,) for one in found])
        case BaseModel():
            result = Result(("field", "value"), fields_of(found))
        case _:
            result = Result(("answer",), [(str(found),)])
    return ShellAnswer(result, found, found if words is None else words)


def _words_of(found: Any) -> object:
    """Return what is printed for a value that has records; None where these are printed."""
    if isinstance(found, ViewDiff):
        return None if found else "nothing differs."
    return None if isinstance(found, Recalled) else found


def of_models(model: type[BaseModel], values: Iterable[BaseModel]) -> ShellAnswer:
    """Return the answer of some values of one model, a column for each field."""
    found, columns = list(values), list(model.model_fields)
    rows = [[getattr(value, name) for name in columns] for value in found]
    return ShellAnswer(Result(columns, rows), found, found)


# ---------------------------------------------------------------- shown


@dataclass(slots=True)
class Output:
    """Writes answers. On a terminal long tables are cut and the time is shown; anywhere else everything is written, and only that."""

    terminal: bool = False
    mode: Mode = Mode.table
    timing: bool = False

    def show(self, answer: ShellAnswer, seconds: float) -> None:
        """An answer and what it took."""
        with pager.paged() if self.terminal else nullcontext():
            self._show(answer, seconds)

    def _show(self, answer: ShellAnswer, seconds: float) -> None:
        for warning in answer.result.warnings:
            self.remark(f"warning: {warning}")
        if self.mode is Mode.table:
            self._table(answer)
        else:
            echo(_WRITERS[self.mode](answer), nl=False)
        if self.timing and not answer.aside:
            self.remark(_took(answer, seconds))

    def _table(self, answer: ShellAnswer) -> None:
        console = printing.console()
        if callable(answer.words):
            shown = answer.words()
            if shown is not None:
                printing.show(shown, console)
            return
        if answer.words is not None:
            several = isinstance(answer.words, list)
            shown = answer.words[: self._most] if several else answer.words
            printing.show(shown, console)
            self._hide(len(answer.words) - len(shown) if several else 0)
            return
        result = answer.result
        rows = result.tuples()[: self._most]
        cell = _short if self.terminal else value_cell
        printing.grid(
            result.columns,
            ([cell(value) for value in row] for row in rows),
            console,
        )
        self._hide(len(result) - len(rows))

    @property
    def _most(self) -> int | None:
        return MOST_ROWS if self.terminal and SHOWN.get() is None else None  # a pager shows all

    def _hide(self, more: int) -> None:
        if more:
            self.remark(f"… and {more:,} more rows (:mode and :export give all)")

    def remark(self, text: str) -> None:
        """Something beside the answers; not among them where a program reads them."""
        if self.terminal:
            printing.console().print(text, style="dim", soft_wrap=True)
        else:
            common.say(text, err=True)

    def error(self, error: BaseException) -> None:
        """Print what was refused, in one line."""
        message = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        coloured = self.terminal and not os.environ.get("NO_COLOR")
        typer.secho(f"error: {clean(message)}", fg="red" if coloured else None, err=True)


def _short(value: object) -> str:
    """A cell for people: the beginning of what is long."""
    return line(value_cell(value), CELL)


def _took(answer: ShellAnswer, seconds: float) -> str:
    spent = f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
    if answer.words is not None and not isinstance(answer.words, list):
        return f"{spent}."  # one thing, printed in several lines
    rows = len(answer.result)
    return f"{rows:,} {'row' if rows == 1 else 'rows'}, {spent}."


def _csv(answer: ShellAnswer) -> str:
    return csv_text(answer.result)


def _markdown(answer: ShellAnswer) -> str:
    return markdown_text(answer.result.columns, answer.result.tuples())


def _json(answer: ShellAnswer) -> str:
    return json_text(answer.document).decode()


_WRITERS: dict[Mode, Callable[[ShellAnswer], str]] = {
    Mode.json: _json,
    Mode.csv: _csv,
    Mode.markdown: _markdown,
}


# ---------------------------------------------------------------- written


_FILES: dict[str, Callable[[ShellAnswer], str]] = {".json": _json, ".md": _markdown}


def write(answer: ShellAnswer, path: Path) -> int:
    """Write an answer into a new file, as its name ends: .csv, .json, .jsonl, .md or .parquet. Returns its size in bytes.

    Raises InvalidError for another ending, ConflictError for a file that is there; what the disk refuses leaves nothing behind.
    """
    kind = path.suffix.lower()
    if kind in _FILES:
        with new_file(path) as sink:
            sink.write(_FILES[kind](answer).encode())
    elif kind in KINDS:
        save(answer.result, path)
    else:
        raise InvalidError.choice("ending of a file", path.suffix, (*_FILES, *KINDS))
    return path.stat().st_size
