"""Commands that a server answers for those that are started beside it: what only reads, and names no file of its own."""

from __future__ import annotations

import contextvars
import io
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from typer.main import get_command_from_info
from typer.models import CommandInfo

from graphstore.cli import common
from graphstore.cli.commands import COMMANDS
from graphstore.cli.made import Command, function
from graphstore.cli.shown import SHOWN, Shown
from graphstore.errors import GraphStoreError

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

_OWN = ("path", "file", "place", "function", "embedder", "json")
"""Types of what lies where the command is started, or reads it."""


def answered(store: GraphStore, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a command prints and its exit code; None where it has to be done where it was started."""
    words, place = asked["words"], asked["store"]
    command = COMMANDS.get(" ".join(words[:place]))
    if command is None or not _is_for_here(command, words):
        return None
    return contextvars.copy_context().run(_done, store, command, words[place:], asked)


def _is_for_here(command: Command, words: list[str]) -> bool:
    if command.is_write or any(word == "-" or word.startswith("@") for word in words):
        return False
    flags = {"--" + name.replace("_", "-") for name, one in command.parameters.items() if one.type in _OWN}
    return not any(word.partition("=")[0] in flags for word in words)


def _done(
    store: GraphStore, command: Command, words: list[str], asked: Mapping[str, Any]
) -> dict[str, Any] | None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    environment = asked.get("environment") or {}
    common.HERE.set(store)
    SHOWN.set(Shown(out, err, bool(asked.get("terminal")), asked.get("columns"), environment))
    common.CHOSEN.set(environment.get("GRAPHSTORE_BRANCH") or None)
    try:
        code = _made(command.name).main(words, prog_name=command.name, standalone_mode=False)
    except (GraphStoreError, OSError) as error:
        common.say(f"error: {error}", err=True)
        code = 1
    except Exception:  # how it is used, and what goes wrong, is said where it was started
        return None
    return {"out": _text(out), "err": _text(err), "code": code or 0}


@cache
def _made(name: str) -> Any:
    info = CommandInfo(name=name, callback=function(COMMANDS[name]))
    return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written: io.BytesIO = stream.buffer  # type: ignore[assignment]
    return written.getvalue().decode()
