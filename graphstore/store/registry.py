"""Register the functions that can be called by name from elsewhere, with their effect on a store, and forward remote calls.

A function takes a view or a store as its first argument. If that is remote, the function does not run here: the connection calls it there, by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, ParamSpec, TypeVar

from graphstore.errors import InvalidError

P = ParamSpec("P")
R = TypeVar("R")
Scope = Literal["read", "write"]


class Registered(NamedTuple):
    """Holds a function with its call name. `files`: the parameters that are paths where it runs. `anywhere`: the wrapper that calls it where the store is."""

    name: str
    function: Callable[..., Any]
    scope: Scope
    files: frozenset[str]
    anywhere: Callable[..., Any]


class Elsewhere:
    """A store, or a view of one, in another process."""

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the answer to a call by name. `args` and `kwargs` follow the view or store."""
        raise NotImplementedError


watch: Callable[[str, Any, tuple[Any, ...], Mapping[str, Any], Callable[[], Any]], Any] | None = None
"""Runs each call of a room while a caller observes. Receives its name, the view or store, the arguments, and a function that performs it."""
_ITS = "its_"
_registered: dict[str, Registered] = {}


def registered() -> Mapping[str, Registered]:
    """Return every function registered so far, by name. Only imported modules have registered theirs."""
    return _registered


def read(
    room: str, *, files: tuple[str, ...] = (), here: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a function that only reads the view it receives. `here`: it uses only the public verbs, and always runs where it is called."""
    return _register(room, "read", files, here)


def write(
    room: str, *, files: tuple[str, ...] = (), here: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a function that writes to the store it receives; otherwise like `read`."""
    return _register(room, "write", files, here)


def _register(
    room: str, scope: Scope, files: tuple[str, ...], here: bool
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def mark(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{room}.{function.__name__}"
        first = next(iter(inspect.signature(function).parameters))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            reader = args[0] if args else kwargs.get(first)
            if not here and isinstance(reader, Elsewhere):
                rest = {given: value for given, value in kwargs.items() if given != first}
                asked = partial(reader._ask, name, args[1:], rest)
            else:
                asked = partial(function, *args, **kwargs)
            return asked() if watch is None else watch(name, reader, args, kwargs, asked)  # type: ignore[no-any-return]

        _registered[name] = Registered(name, function, scope, frozenset(files), call)
        return call

    return mark


def method(
    room: str, scope: Scope, made: Callable[..., Any], settings: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a method of an object that keeps its store in `_store`, under the room's name and its own. `made` returns the object for a store.

    `settings`: further parameters of `made`, by name with their annotations. The object of a remote store keeps them in `_settings`. They are sent with the arguments of
    the method, as `its_…`.
    """

    def mark(method: Callable[P, R]) -> Callable[P, R]:
        name = f"{room}.{method.__name__}"

        def direct(store: Any, *args: Any, **kwargs: Any) -> Any:
            chosen = {each: kwargs.pop(_ITS + each) for each in settings if _ITS + each in kwargs}
            return getattr(made(store, **chosen), method.__name__)(*args, **kwargs)

        direct.__doc__, direct.__module__, direct.__name__ = (
            method.__doc__,
            method.__module__,
            method.__name__,
        )
        signature = inspect.signature(method)
        own = list(signature.parameters.values())[1:]
        store = inspect.Parameter("store", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        more = [
            inspect.Parameter(
                _ITS + each, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
            for each, annotation in settings.items()
        ]
        direct.__signature__ = signature.replace(parameters=[store, *own, *more])  # type: ignore[attr-defined]
        _registered[name] = Registered(name, direct, scope, frozenset(), direct)

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            target: Any = args[0]
            if isinstance(target._store, Elsewhere):
                kept = target._settings.items() if settings else ()
                its = {_ITS + each: value for each, value in kept if value is not None}
                asked = partial(target._store._ask, name, args[1:], {**kwargs, **its})
            else:
                asked = partial(method, *args, **kwargs)
            return asked() if watch is None else watch(name, target._store, args, kwargs, asked)  # type: ignore[no-any-return]

        return call

    return mark


def only_here(store: object, what: str, instead: str) -> None:
    """Raise InvalidError for a remote store if `what` needs the store in its own process."""
    if isinstance(store, Elsewhere):
        refuse(store, what, instead)


def refuse(store: object, what: str, instead: str) -> NoReturn:
    """Raise InvalidError: `what` cannot be done through a server. `instead`: what to do."""
    raise InvalidError(f"{what} needs the store in its own process, and this is {store!r}. {instead}")
