"""The shell at a terminal: a line editor that knows Cypher, a history, completion, Ctrl-C and Ctrl-D. Needs `graphstore[shell]`."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import graphstore
from graphstore.cli.shell import parser, schema
from graphstore.cli.shell.completion import Names, suggestions
from graphstore.cli.shell.output import Mode
from graphstore.cli.shell.schema import GraphVocabulary
from graphstore.cli.shell.shell import COMMANDS, TRUNK, UNLISTED, Leave, Shell
from graphstore.errors import EngineError, GraphStoreError
from graphstore.graph.statement import pieces
from graphstore.values.period import when
from graphstore.values.text import clean, line

try:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.lexers import Lexer
    from prompt_toolkit.styles import Style
except ImportError as error:
    raise EngineError(
        f"the shell at a terminal needs prompt_toolkit ({error}). Install it with: pip install 'graphstore[shell]'"
    ) from None

STYLE = Style.from_dict(
    {
        "keyword": "ansiblue bold",
        "string": "ansigreen",
        "number": "ansimagenta",
        "param": "ansiyellow",
        "comment": "ansibrightblack",
        "label": "ansicyan",
        "command": "ansiyellow bold",
        "coordinate": "ansiyellow",
    }
)
_FILES = 50
_SAYS = 60


def converse(shell: Shell) -> None:
    """Read and answer until Ctrl-D or :quit. Ctrl-C stops a query that runs, and clears what is half written."""
    counts = shell.store.stats()
    listed = ", ".join(f"{counts[what]:,} {what}" for what in ("nodes", "events", "links"))
    shell.output.remark(
        f"{shell.name}: {listed}, last written {when(counts['last_tx'], 'never')}. "
        "Only read here; a statement ends with ;  :help lists the rest."
    )
    session, loading = _session(shell), threading.Thread(target=_load)
    loading.start()
    # a Ctrl-C at the prompt is a key; one that comes between two turns has nothing to stop
    with shell.stopping.minded():
        try:
            while _turn(session, shell, loading):
                pass
        finally:
            loading.join()  # the engine is not to be taken apart while it is loaded


def _turn(session: PromptSession[str], shell: Shell, loading: threading.Thread) -> bool:
    """Read and answer once. False when that was the last time."""
    try:
        text = session.prompt(handle_sigint=False)
    except EOFError:
        return False
    except KeyboardInterrupt:
        if not session.default_buffer.text:
            shell.output.remark("Ctrl-D or :quit leaves.")
        return True
    try:
        with shell.stopping.raised():
            with shell.stopping.held():
                loading.join()
            for one in parser.inputs(text.splitlines(keepends=True)):
                if not shell.run(one):
                    break  # what was pasted behind it may rest on it
    except KeyboardInterrupt:
        shell.stopping.end()
        shell.output.remark("stopped.")
    except Leave:
        return False
    return True


def _load() -> None:
    """Load the engine and what it loads, while the first statement is typed: an import that Ctrl-C cuts short cannot be made again."""
    driver: Any = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
    with suppress(GraphStoreError), graphstore.open(":memory:", driver=driver) as store:
        store.add_node("note", {})
        schema.view(store.as_of())
        importlib.import_module("pyarrow.parquet")


def _session(shell: Shell) -> PromptSession[str]:
    def prompt() -> StyleAndTextTuples:
        name, bracket, coordinate = shell.prompt().partition(" (")
        return [("", name), ("class:coordinate", bracket + coordinate)]

    def continued(width: int, *_: object) -> str:
        return " " * max(width - 3, 0) + ".. "

    half_written = Condition(lambda: not parser.is_complete(get_app().current_buffer.text))
    return PromptSession(
        prompt,
        multiline=half_written,
        prompt_continuation=continued,
        lexer=_Highlighting(),
        style=STYLE,
        completer=_Completing(shell),
        complete_while_typing=False,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        history=history(shell.output.remark),
        enable_suspend=True,
    )


# ---------------------------------------------------------------- history


def history_file() -> Path:
    """Return the file that keeps what was typed, in the user's state folder, never the store's."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "graphstore" / "shell_history"


def history(remark: Callable[[str], None]) -> History:
    """Return what was typed before, kept in a file that only its owner can read; in memory alone, after a remark, where there can be none."""
    try:
        path = history_file()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if sys.platform != "win32":  # where the folder of a user is closed to others
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        remark(f"note: what you type is not kept: {path}: {error.strerror}.")
        return InMemoryHistory()
    except RuntimeError as error:  # this user's home is unknown
        remark(f"note: what you type is not kept: {error}")
        return InMemoryHistory()
    return FileHistory(path)


# ---------------------------------------------------------------- highlighting


class _Highlighting(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = highlighted(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def highlighted(text: str) -> list[StyleAndTextTuples]:
    """The lines of a text as (style, piece)."""
    if parser.is_command(text):
        name, space, rest = text.partition(" ")
        return [[("class:command", name), ("", space + rest)]]
    lines: list[StyleAndTextTuples] = [[]]
    before = ""
    for kind, piece in pieces(text):
        first, *more = piece.split("\n")
        style = _style(kind, piece, before)
        lines[-1].append((style, first))
        lines += [[(style, part)] for part in more]
        before = piece if kind != "space" else before
    return lines


def _style(kind: str, piece: str, before: str) -> str:
    if kind in ("string", "number", "param", "comment"):
        return f"class:{kind}"
    if kind in ("word", "quoted") and before in (":", "|"):
        return "class:label"
    if kind == "word" and piece.upper() in parser.KEYWORDS and before != ".":
        return "class:keyword"
    return ""


# ---------------------------------------------------------------- completion


class _Completing(Completer):
    """Offers the names of the store, looked up again when it has changed or the shell looks elsewhere."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._known: tuple[object, GraphVocabulary] = (None, GraphVocabulary())

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        # a command needs none of the graph, which the first time takes a while to read
        none = parser.is_command(parser.cut(typed)[1])
        try:
            offered = suggestions(typed, self._names(GraphVocabulary() if none else self._vocabulary()))
        except (GraphStoreError, OSError):
            return  # the next statement says why
        for one in offered:
            yield Completion(
                one.text, -one.replaced, display=clean(one.text), display_meta=line(one.summary, _SAYS)
            )

    def _names(self, vocabulary: GraphVocabulary) -> Names:
        shell = self._shell
        return Names(
            vocabulary,
            {name: (command.summary, command.takes) for name, command in COMMANDS.items()},
            {name: (command.summary, command.takes) for name, command in UNLISTED.items()},
            {
                "mode": [mode.value for mode in Mode],
                "switch": ["on", "off"],
                "recipe": [recipe.name for recipe in shell.trunk.recipes()],
                "command": list(COMMANDS),
                "param": list(shell.params),
                "branch": [TRUNK, *(branch.name for branch in shell.trunk.branches())],
                "coordinate": [snapshot.name for snapshot in shell.trunk.snapshots()],
            },
            list(shell.params),
            self._ids,
            files,
        )

    def _vocabulary(self) -> GraphVocabulary:
        shell = self._shell
        written = shell.store.stats()["transactions"]
        place = (shell.branch, shell.valid, shell.tx, shell.tables, written)
        if self._known[0] != place:
            found = schema.of_tables(shell.store) if shell.tables else schema.of_view(shell.view())
            self._known = (place, found)
        return self._known[1]

    def _ids(self, prefix: str) -> list[tuple[str, str]]:
        return schema.ids(self._shell.view(), prefix)


def files(typed: str) -> list[tuple[str, str]]:
    """The files and folders whose path begins so."""
    folder, _, name = typed.rpartition("/")
    here = Path(f"{folder}/" if folder or typed.startswith("/") else ".")
    try:
        found = sorted(here.expanduser().iterdir())
    except (OSError, RuntimeError):  # there is no such home
        return []
    before = typed.removesuffix(name)
    return [
        (f"{before}{path.name}{'/' if path.is_dir() else ''}", "")
        for path in found
        if path.name.startswith(name) and (name or not path.name.startswith("."))
    ][:_FILES]
