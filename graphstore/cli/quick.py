"""The command as it is started: what only reads a store that a server of this machine holds is answered by that server, in its words, and agents are served
there; all else is done here.

Nothing of the store, and not even the command line itself, is imported before it is known that it is needed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND = "/command"
"""Where a server answers commands."""
_WORDS = 2  # at most, of a command's name
_MEANT = ("GRAPHSTORE_BRANCH", "NO_COLOR", "TERM", "COLORTERM", "COLUMNS")


def main() -> None:
    """The `graphstore` command."""
    words = sys.argv[1:]
    code = _served(words[1:]) if words[:1] == ["mcp"] else _asked(words)
    if code is not None:
        sys.exit(code)
    from graphstore.cli import command_line

    command_line.main()


def __getattr__(name: str) -> Any:
    """What the command line has beside this."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from graphstore.cli import command_line

    return getattr(command_line, name)


def _served(words: list[str]) -> int | None:
    """Have the store's server serve an agent. The exit code of that; None where it does not."""
    if not words or words[0].startswith(("-", ":", "http:", "https:")) or "://" in words[0]:  # an address
        return None
    from graphstore.cli import agent_pipe

    return agent_pipe.run(words)


def _asked(words: list[str]) -> int | None:
    """Have the store's server answer. Its exit code; None where it does not."""
    at = _store_in(words)
    if at is None:
        return None
    place = Path(words[at])
    from graphstore.core.folder import server_file
    from graphstore.errors import GraphStoreError

    found = server_file.serving(place, wait=0)
    if found is None:
        return None
    import orjson

    from graphstore.remote.http_client import Connection

    body = orjson.dumps({"words": words, "store": at, **_terminal()})
    try:
        reply = Connection(*found).request("POST", COMMAND, body, accept="application/json")
    except GraphStoreError:
        return None
    answer: dict[str, Any] | None = orjson.loads(reply.body) if reply.status == 200 else None
    if answer is None:
        return None
    if sys.stdout.isatty() and "--no-pager" not in words[:1]:
        from graphstore.cli import pager

        pager.show(answer["out"])
    else:
        sys.stdout.buffer.write(answer["out"].encode())
        sys.stdout.flush()
    sys.stderr.buffer.write(answer["err"].encode())
    sys.stderr.flush()
    return int(answer["code"])


def _store_in(words: list[str]) -> int | None:
    """Which word is the folder of a served store, right after the name of a command; None where it is not so simple."""
    for at, word in enumerate(words[1 : 1 + _WORDS], 1):
        with suppress(OSError):  # a long question is no path
            if (Path(word) / "server.json").is_file():
                return at
    return None


def _terminal() -> dict[str, Any]:
    """What the answer depends on beside the words: the branch that the environment names, and where it is shown."""
    shown = sys.stdout.isatty()
    width = os.get_terminal_size(sys.stdout.fileno()).columns if shown else None
    return {
        "terminal": shown,
        "columns": width,
        "environment": {name: os.environ[name] for name in _MEANT if name in os.environ},
    }
