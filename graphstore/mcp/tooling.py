"""Makes tools of methods. Decorators at the method state what the tool may do; its arguments are those of the method."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import cached_property, partial, wraps
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, create_task_group, sleep, to_thread
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo

from graphstore.errors import EngineError
from graphstore.graph import engine
from graphstore.mcp.desk import PAGED, Desk, OfConnection, Rare
from graphstore.mcp.schemas import input_schema, output_schema, read
from graphstore.mcp.sdk import CLIENT, Client
from graphstore.values.doors import through
from graphstore.values.text import clean

A = TypeVar("A")
T = TypeVar("T")

_TRIES = 3  # attempts at a call whose transaction was lost
_PROGRESS_SECONDS = 1.0
_WIRE: dict[str, Any] = {"mode": "json", "exclude_none": True, "by_alias": True}


class Traits(NamedTuple):
    """States what a tool may do, and how its arguments are read.

    Args:
        ids: the arguments that are ids. A unique beginning of a generated id is completed.
        rare: paging arguments that are accepted but not listed.
        slow: True if it may run for long.
        erases: True if it is offered only where erasing is allowed.
    """

    ids: Collection[str] = ()
    rare: Collection[str] = ()
    reads: bool = True
    destructive: bool = False
    idempotent: bool = False
    slow: bool = False
    erases: bool = False


def reading(
    *ids: str, rare: Collection[str] = (), slow: bool = False
) -> Callable[[Callable[..., A]], Callable[..., A]]:
    """Make a tool of a method that reads. A `ToolQuestion` as the first parameter becomes the arguments coordinate, budget and cursor."""
    return _marked(Traits(ids, rare, slow=slow))


def writing(
    *ids: str, destructive: bool = False, idempotent: bool = False, erases: bool = False
) -> Callable[[Callable[..., A]], Callable[..., A]]:
    """Make a tool of a method that writes."""
    return _marked(Traits(ids, (), False, destructive, idempotent, erases=erases))


def _marked(traits: Traits) -> Callable[[Callable[..., A]], Callable[..., A]]:
    def mark(method: Callable[..., A]) -> Callable[..., A]:
        answers_a_question = "question" in method.__code__.co_varnames[1:2]

        @wraps(method)
        def called(self: Tools, **given: Any) -> A:
            desk = self.desk
            given = {
                name: desk.whole(value) if name in traits.ids else value for name, value in given.items()
            }
            if not answers_a_question:
                return method(self, **given)
            page = {name: given.pop(name) for name in PAGED if name in given}
            return method(self, desk.question(method.__name__, given, **page), **given)

        called.traits = traits  # type: ignore[attr-defined]
        return called

    return mark


class Tools:
    """Base of the classes whose marked methods are tools."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk


class Tool:
    """One tool of the protocol. The types of its method are read when it is listed, and its arguments are checked when it is called."""

    def __init__(self, method: Callable[..., Any], titled: bool) -> None:
        self._method, self.name = method, method.__name__
        self.traits: Traits = method.traits  # type: ignore[attr-defined]
        self._title = self.name.replace("_", " ").capitalize() if titled else None

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(inspect.unwrap(self._method), eval_str=True)

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        """Return the arguments by name."""
        _, *own = self._signature.parameters.values()
        annotated = {each.name: (each.annotation, each.default) for each in own}
        if annotated.pop("question", None):
            annotated |= {
                name: (Rare if name in self.traits.rare else kind, default)
                for name, (kind, default) in PAGED.items()
            }
        return {
            name: FieldInfo.from_annotation(kind)
            if default is inspect.Parameter.empty
            else FieldInfo.from_annotated_attribute(kind, default)
            for name, (kind, default) in annotated.items()
        }

    @cached_property
    def _model(self) -> type[BaseModel]:
        fields: Any = {name: (field.annotation, field) for name, field in self.fields.items()}
        return create_model(f"{self.name}Arguments", **fields)

    @cached_property
    def _of_connection(self) -> dict[str, str]:
        """Return the arguments that a connection may have a default for, each with the name of the default."""
        return {
            name: mark.name
            for name, field in self.fields.items()
            for mark in field.metadata
            if isinstance(mark, OfConnection)
        }

    def _with_defaults(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with the defaults of its connection for those that it leaves out. An empty text is an argument."""
        missing = {name: of for name, of in self._of_connection.items() if given.get(name) is None}
        if not missing:
            return given
        defaults = self._desk.defaults()
        values = {name: getattr(defaults, of) for name, of in missing.items()}
        return {**given, **{name: value for name, value in values.items() if value is not None}}

    @property
    def _desk(self) -> Desk:
        tools: Tools = self._method.__self__  # type: ignore[attr-defined]
        return tools.desk

    def listed(self, said_once: str = "") -> dict[str, Any]:
        """Return the tool as a client lists it. Hints that equal the defaults of the protocol are left out."""
        traits = self.traits
        hints = {
            "readOnlyHint": traits.reads or None,
            "destructiveHint": None if traits.reads else traits.destructive,
            "idempotentHint": traits.idempotent or None,
        }
        tool = {
            "name": self.name,
            "title": self._title,
            "description": " ".join(f"{self._method.__doc__} {said_once}".split()),
            "inputSchema": input_schema(self.fields, self._with_defaults({})),
            "outputSchema": output_schema(self._signature.return_annotation),
            "annotations": {name: hint for name, hint in hints.items() if hint is not None},
        }
        return {name: value for name, value in tool.items() if value is not None}

    def call(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer: structured, and as text. Raises ValidationError for arguments of a wrong type, and what the store raises."""
        answer = self._answered(read(self._model, self._with_defaults(given)))
        texts = [answer.text(), *getattr(answer, "notes_beside", tuple)()]
        return {
            "content": [{"type": "text", "text": clean(text)} for text in texts],
            "structuredContent": answer.model_dump(**_WIRE),
        }

    @through("mcp")
    def _answered(self, arguments: dict[str, Any]) -> Any:
        """Return the answer of the method. Call it again if its transaction was lost because the server ended and another has replaced it."""
        for _ in range(_TRIES - 1):
            try:
                return self._method(**arguments)
            except EngineError as error:
                if error.outcome != "not kept":
                    raise
        return self._method(**arguments)


def tools_of(groups: Iterable[Tools], titled: bool) -> list[Tool]:
    """Return the tools of some groups, in the order in which their methods are defined."""
    return [
        Tool(getattr(group, name), titled)
        for group in groups
        for name, method in vars(type(group)).items()
        if hasattr(method, "traits")
    ]


# ---------------------------------------------------------------- in threads


class SlowCalls:
    """Runs slow calls, a limited number at once, so that threads remain for others. A call stops when its caller has disconnected."""

    def __init__(self, at_once: int) -> None:
        self._limiter = CapacityLimiter(at_once)
        self._running: set[threading.Event] = set()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread and return its result, reporting progress meanwhile. On cancellation the thread stops by itself."""
        stopping = threading.Event()
        self._running.add(stopping)
        try:
            return await reported(
                partial(
                    to_thread.run_sync, partial(_stoppable, work, stopping),
                    abandon_on_cancel=True, limiter=self._limiter,
                )
            )  # fmt: skip
        finally:
            stopping.set()
            self._running.discard(stopping)

    def stop(self) -> None:
        """Stop all running calls. Any thread may call this."""
        for stopping in list(self._running):
            stopping.set()


async def reported(work: Callable[[], Awaitable[T]]) -> T:
    """Return what a call gives. Meanwhile its client gets notifications of progress each second, if it asked for them."""
    failed = None
    async with create_task_group() as others:
        others.start_soon(_report, CLIENT.get())
        try:
            found = await work()
        except Exception as error:  # not out of the group, which would make a group of it
            failed = error
        others.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return found


async def _report(client: Client) -> None:
    began = monotonic()
    while True:
        await sleep(_PROGRESS_SECONDS)
        seconds = round(monotonic() - began, 1)
        with suppress(Exception):  # a client that has gone
            await client.report_progress(seconds, f"running for {seconds} s")


def _stoppable(work: Callable[[], T], stopping: threading.Event) -> T:
    with engine.stopped_by(stopping):
        return work()
