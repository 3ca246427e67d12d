"""Read JSON-RPC messages from standard input, one a line, and answer those that are invalid. The SDK would drop these without an answer."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from anyio import to_thread
from mcp.server.stdio import stdio_server

from graphstore.errors import InvalidError
from graphstore.mcp.sdk import check_message, error_message
from graphstore.values.inputs import distinct, may_lack_a_name

WITH_BATCHES, BEFORE_BATCHES = "2025-03-26", "2024-11-05"
"""Versions of the protocol."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what some programs put before UTF-8


async def standard_input() -> AsyncIterator[bytes]:
    """Yield the lines of standard input."""
    # duplicate the descriptor: at exit Python must not close a file that a thread still reads
    file: io.BufferedReader = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
    while text := await to_thread.run_sync(file.readline, abandon_on_cancel=True):
        yield text


@asynccontextmanager
async def conversation(lines: AsyncIterator[bytes]) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of requests and answers of a client. Invalid requests are answered too, since a client without an answer waits forever.

    The conversation ends when the client closes either end.
    """
    messages = _InputMessages(lines)
    try:
        async with stdio_server(stdin=messages) as (asked, answers):  # type: ignore[arg-type]
            messages.answers = answers
            yield asked, answers
    except* BrokenPipeError:
        pass


class _InputMessages:
    """Yields the valid messages among some lines. Answers the others itself."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            text = line.removeprefix(_BYTE_ORDER_MARK).strip().decode("utf-8", "replace")
            admitted = message_of(text) if text else ""
            if isinstance(admitted, dict):
                await self.answers.send(error_message(admitted))
            elif admitted:
                yield admitted


def message_of(text: str) -> str | dict[str, Any]:
    """Return a text that is a valid message, or the error with which to answer an invalid one.

    A client that starts with the protocol version that has batches gets the version before it: batches are not served.
    """
    refused = _refusal(text)
    if refused is not None:
        return refused
    if WITH_BATCHES not in text:
        return text
    message = json.loads(text)
    if message.get("method") == "initialize" and message["params"].get("protocolVersion") == WITH_BATCHES:
        message["params"]["protocolVersion"] = BEFORE_BATCHES
    return json.dumps(message)


def _refusal(text: str) -> dict[str, Any] | None:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _refused(None, PARSE_ERROR, "this is no JSON, or it is nested too deep")
    if isinstance(message, list):
        return _refused(None, INVALID_REQUEST, "batches are not served")
    id = message.get("id") if isinstance(message, dict) else None
    known = id if isinstance(id, str) or type(id) is int else None
    if known is None and isinstance(message, dict) and "method" in message and "id" in message:
        return _refused(None, INVALID_REQUEST, "the id of a request is a text or a whole number")
    if may_lack_a_name(text.encode(), message):
        try:
            json.loads(text, object_pairs_hook=distinct("the message"))
        except InvalidError as error:
            return _refused(known, INVALID_REQUEST, str(error).removesuffix("."))
    with suppress(ValueError):
        check_message(text)
        return None
    return _refused(known, INVALID_REQUEST, "this is no JSON-RPC 2.0 message, or a text in it is no Unicode")


def _refused(id: int | str | None, code: int, why: str) -> dict[str, Any]:
    error = {"code": code, "message": f"{why}. Send one message a line."}
    return {"jsonrpc": "2.0", "id": id, "error": error}
