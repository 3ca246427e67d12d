"""Standard input and output as the way to one client, who gets an answer to whatever it asks: a request that nobody can read is refused, since a client
whose request is passed over waits for ever.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from mcp_types.jsonrpc import jsonrpc_message_adapter

__all__ = ["conversation"]

_MARK = b"\xef\xbb\xbf"  # what some programs put before UTF-8


@asynccontextmanager
async def conversation() -> AsyncIterator[tuple[Any, Any]]:
    """The streams of what a client asks and of what it is answered. A client that reads no more has left, as one that writes no more."""
    lines = _Lines()
    try:
        async with stdio_server(stdin=lines) as (asked, answers):  # type: ignore[arg-type]
            lines.answers = answers
            yield asked, answers
    except* BrokenPipeError:
        pass


class _Lines:
    """The lines of standard input that are messages. To the others it answers itself."""

    def __init__(self) -> None:
        # a file of its own: one that a thread still reads from must not be closed when the process ends
        self._file: io.BufferedReader = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await to_thread.run_sync(self._file.readline, abandon_on_cancel=True):
            text = line.removeprefix(_MARK).strip().decode("utf-8", "replace")
            refused = _refusal(text) if text else None
            if refused is not None:
                await self.answers.send(SessionMessage(refused))
            elif text:
                yield text


def _refusal(text: str) -> JSONRPCError | None:
    """What is answered to a line that is no message; None where it is one."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        pass
    else:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return _refused(None, PARSE_ERROR, "this is no JSON, or it is nested too deep")
    if isinstance(said, list):
        return _refused(None, INVALID_REQUEST, "batches are not served")
    id = said.get("id") if isinstance(said, dict) else None
    known = id if isinstance(id, str) or type(id) is int else None
    return _refused(known, INVALID_REQUEST, "this is no JSON-RPC 2.0 message, or a text in it is no Unicode")


def _refused(id: int | str | None, code: int, why: str) -> JSONRPCError:
    said = ErrorData(code=code, message=f"{why}. Send one message a line.")
    return JSONRPCError(jsonrpc="2.0", id=id, error=said)
