"""Hides the differences between releases 1 and 2 of the MCP SDK. Handlers take and return JSON, as it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared import exceptions
from mcp.shared.message import SessionMessage

from graphstore.values.text import line

Json = dict[str, Any]
Handler = Callable[["Client", Json], Awaitable[Json]]

INVALID_PARAMS, INTERNAL_ERROR = types.INVALID_PARAMS, types.INTERNAL_ERROR
_NAMES = {
    "tools/list": "ListTools",
    "tools/call": "CallTool",
    "resources/list": "ListResources",
    "resources/templates/list": "ListResourceTemplates",
    "resources/read": "ReadResource",
    "prompts/list": "ListPrompts",
    "prompts/get": "GetPrompt",
    "completion/complete": "Complete",
    "logging/setLevel": "SetLevel",
}
"""The methods of the protocol that a server may answer, each with the name of its type in the SDK."""


class Client:
    """The client that sent the current request. Without a `context`, a caller in this process."""

    def __init__(self, context: Any = None) -> None:
        self._context = context
        self.session: Any = None if context is None else context.session

    @property
    def name(self) -> str:
        """Return the name that the client gave when it connected; `agent` if it gave none."""
        params = getattr(self.session, "client_params", None)
        if params is None:
            return "agent"
        info = params.client_info if hasattr(params, "client_info") else params.clientInfo
        return line(info.name) or "agent"

    @property
    def scope(self) -> Json:
        """Return the ASGI scope of the request; empty if it did not arrive over HTTP."""
        request = getattr(self._context, "request", None)
        return {} if request is None else request.scope

    async def report_progress(self, seconds: float, message: str) -> None:
        """Report the progress of the request, if the client asked for it."""
        if hasattr(self.session, "report_progress"):
            await self.session.report_progress(seconds, None, message)
            return
        meta = getattr(self._context, "meta", None)
        token = getattr(meta, "progressToken", None)
        if token is not None:
            request = str(self._context.request_id)
            await self.session.send_progress_notification(token, seconds, None, message, request)

    async def log(self, level: str, text: str) -> None:
        """Send a line of the log, unless the client has disconnected."""
        if self.session is not None:
            request = str(self._context.request_id)
            with suppress(Exception):
                await self.session.send_log_message(level, text, "graphstore", request)


CLIENT: ContextVar[Client] = ContextVar("client", default=Client())  # noqa: B039 - it has no state
"""The client whose request is being answered."""


def handle(server: Server[Any], method: str, handler: Handler) -> None:
    """Register the handler that answers a method of the protocol."""
    name = _NAMES[method]
    result: Any = getattr(types, f"{name}Result", types.EmptyResult)

    async def answered(context: Any, params: Any) -> Any:
        given = {} if params is None else params.model_dump(by_alias=True)
        return result.model_validate(await handler(Client(context), given))

    async def answered_in_release_1(request: Any) -> Any:
        found = await answered(protocol.request_context, getattr(request, "params", None))
        return types.ServerResult(found)  # type: ignore[operator]

    protocol: Any = server
    if hasattr(server, "request_handlers"):
        protocol.request_handlers[getattr(types, f"{name}Request")] = answered_in_release_1
    else:
        params = getattr(types, f"{name}RequestParams", types.PaginatedRequestParams)
        protocol.add_request_handler(method, params, answered)


def let_listen(server: Server[Any]) -> None:
    """Accept subscriptions to changes of the lists, if the release has them. No list ever changes."""
    with suppress(ImportError):
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        params = types.SubscriptionsListenRequestParams
        server.add_request_handler("subscriptions/listen", params, ListenHandler(InMemorySubscriptionBus()))


def refusal(message: str, code: int = INVALID_PARAMS, data: Any = None) -> Exception:
    """Return the error by which a handler refuses a request."""
    sdk: Any = exceptions
    error: Exception = (
        sdk.MCPError(code=code, message=message, data=data)
        if hasattr(sdk, "MCPError")
        else sdk.McpError(types.ErrorData(code=code, message=message, data=data))
    )
    return error


def check_message(text: str) -> None:
    """Raise ValueError if a text is not a JSON-RPC message."""
    sdk: Any = types
    if hasattr(sdk, "jsonrpc_message_adapter"):
        sdk.jsonrpc_message_adapter.validate_json(text, by_name=False)
    else:
        sdk.JSONRPCMessage.model_validate_json(text)


def error_message(answer: Json) -> SessionMessage:
    """Return an error answer as a message of the SDK. Its id may be null; release 1 leaves a null id out."""
    error: Any = types.JSONRPCError.model_construct(**{**answer, "error": types.ErrorData(**answer["error"])})
    if hasattr(types.JSONRPCMessage, "model_construct"):
        error = types.JSONRPCMessage.model_construct(root=error)
    return SessionMessage(error)
