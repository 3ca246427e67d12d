"""What the shell answers: rows, the value they are of, and how they are shown and written into files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from graphstore.cli import common, pager, printing
from graphstore.cli.pager import SHOWN, echo
from graphstore.errors import ConflictError, InvalidError
from graphstore.graph.result import Result
from graphstore.memory.recall import Hit, Recalled
from graphstore.values.findings import Chain, Inspection, Step, Supersession, ViewDiff, manner
from graphstore.values.models import Event, Node
from graphstore.values.text import clean, line

MOST_ROWS = 50
"""Rows of a table that a terminal is shown."""
CELL = 240
"""Columns of a cell there."""


class Mode(StrEnum):
    """How answers are shown."""

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
        """What JSON is made of."""
        return self.result.legible() if self.value is None else self.value


# ---------------------------------------------------------------- answers of values


def of_value(found: Any, words: Callable[[], object] | None = None) -> ShellAnswer:
    """The answer of any value, as rows where it has some. `words`: prints it, or gives what is printed."""
    for kind, (columns, rows) in _ROWS.items():
        if isinstance(found, kind):
            return ShellAnswer(Result(columns, rows(found)), found, found)
    match found:
        case Recalled():
            columns = ("rank", "id", "kind", "says", "score", "strength", "found by")
            return ShellAnswer(Result(columns, [_hit_row(*each) for each in enumerate(found, 1)]), found)
        case ViewDiff():
            return of_difference(found)
        case dict():
            result = Result(("field", "value"), list(found.items()))
        case [BaseModel(), *_]:
            answer = of_models(type(found[0]), found)
            return answer if words is None else ShellAnswer(answer.result, found, words)
        case list():
            result = Result(("answer",), [(one,) for one in found])
        case BaseModel():
            result = Result(("field", "value"), _fields(found))
        case _:
            result = Result(("answer",), [(str(found),)])
    return ShellAnswer(result, found, found if words is None else words)


def _fields(found: BaseModel, *without: str) -> list[tuple[str, Any]]:
    return [(name, getattr(found, name)) for name in type(found).model_fields if name not in without]


def _kind(thing: Node | Event) -> str:
    return thing.type if isinstance(thing, Event) else thing.kind


def _step_row(step: Step) -> tuple[Any, ...]:
    thing = (step.node and step.node.id, step.node and printing.label(step.node))
    return (manner(step), *thing, step.who, step.why, step.since, step.recorded_at)


def _hit_row(rank: int, hit: Hit) -> tuple[Any, ...]:
    node, path = hit.node, "; ".join(map(str, hit.path)) or None
    return (rank, node.id, _kind(node), printing.label(node), round(hit.score, 4), hit.strength, path)


_Rows = Callable[[Any], list[tuple[Any, ...]]]
_ROWS: dict[type, tuple[tuple[str, ...], _Rows]] = {
    Inspection: (("field", "value"), lambda found: _fields(found.node, "links")),
    Supersession: (
        ("how", "id", "says", "who", "why", "since", "recorded_at"),
        lambda found: [_step_row(step) for step in found.chain],
    ),
    Chain: (
        ("depth", "id", "kind", "says", "reason"),
        lambda found: [
            (depth, thing.id, _kind(thing), printing.label(thing), reason)
            for thing, depth, reason in printing.walked(found)
        ],
    ),
}
"""Of each class of answers the columns, and the rows of one: of an inspection the fields of its thing, of a chain how many links away each thing is."""


def of_models(model: type[BaseModel], values: Iterable[BaseModel]) -> ShellAnswer:
    """The answer of some values of one model, a column for each field."""
    found, columns = list(values), list(model.model_fields)
    rows = [[getattr(value, name) for name in columns] for value in found]
    return ShellAnswer(Result(columns, rows), found, found)


def of_difference(found: ViewDiff) -> ShellAnswer:
    """The answer of what two coordinates differ in, a row for each thing and link."""
    fields = "; ".join
    things = [
        *_changed("node", found.added, found.removed),
        *(
            ("changed", "node", each.id, fields(f"{one.path}: {one.old} → {one.new}" for one in each.fields))
            for each in found.changed
        ),
        *_changed("event", found.events_added, found.events_removed),
        *_changed("link", found.links_added, found.links_removed),
    ]
    return ShellAnswer(
        Result(("change", "what", "id", "says"), things), found, None if found else "nothing differs."
    )


def _changed(what: str, added: Iterable[Any], removed: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    for change, things in (("added", added), ("removed", removed)):
        for each in things:
            yield change, what, each.id, str(each) if what == "link" else printing.label(each)


# ---------------------------------------------------------------- shown


@dataclass(slots=True)
class Output:
    """Where answers go. On a terminal long tables are cut and the time is shown; anywhere else everything is written, and only that."""

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
        cell = _short if self.terminal else printing.value_cell
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
        """What was refused, in one line."""
        message = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        coloured = self.terminal and not os.environ.get("NO_COLOR")
        typer.secho(f"error: {clean(message)}", fg="red" if coloured else None, err=True)


def _short(value: object) -> str:
    """A cell for people: the beginning of what is long."""
    return line(printing.value_cell(value), CELL)


def _took(answer: ShellAnswer, seconds: float) -> str:
    spent = f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
    if answer.words is not None and not isinstance(answer.words, list):
        return f"{spent}."  # one thing, printed in several lines
    rows = len(answer.result)
    return f"{rows:,} {'row' if rows == 1 else 'rows'}, {spent}."


def _markdown(answer: ShellAnswer) -> str:
    return printing.markdown_text(answer.result.columns, answer.result.tuples())


def _csv(answer: ShellAnswer) -> str:
    return printing.csv_text(answer.result.columns, answer.result.tuples())


def _json(answer: ShellAnswer) -> str:
    return printing.json_text(answer.document).decode()


_WRITERS: dict[Mode, Callable[[ShellAnswer], str]] = {
    Mode.json: _json,
    Mode.csv: _csv,
    Mode.markdown: _markdown,
}


# ---------------------------------------------------------------- written


def _parquet(answer: ShellAnswer) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    try:
        parquet.write_table(answer.result.to_arrow(), sink)
    except pa.ArrowException as error:
        raise InvalidError(
            f"these rows cannot be Parquet ({error}). Return single properties, or write .json."
        ) from None
    return bytes(sink.getvalue())


_FILES: dict[str, Callable[[ShellAnswer], bytes]] = {
    ".csv": lambda answer: _csv(answer).encode(),
    ".json": lambda answer: _json(answer).encode(),
    ".md": lambda answer: _markdown(answer).encode(),
    ".parquet": _parquet,
}


def write(answer: ShellAnswer, path: Path) -> int:
    """Write an answer into a new file, as its name ends: .csv, .json, .md or .parquet. Gives its size in bytes.

    Raises InvalidError for another ending, ConflictError for a file that is there; OSError, and nothing is left then.
    """
    if path.suffix.lower() not in _FILES:
        raise InvalidError.choice("ending of a file", path.suffix, _FILES)
    data = _FILES[path.suffix.lower()](answer)
    try:
        with open(path, "xb") as sink:
            sink.write(data)
    except FileExistsError:
        raise ConflictError(f"{path} exists. Choose another name, or remove it first.") from None
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return len(data)
