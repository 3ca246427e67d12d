"""A path as a sequence that shares its rest with others: ten thousand paths along one chain take the space of the chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class SharedPath(Sequence[T]):
    """A sequence of things, nearest first. Equal to a tuple or list of the same things."""

    __slots__ = ("_first", "_length", "_rest")

    def __init__(self, things: Sequence[T] = (), rest: SharedPath[T] | None = None) -> None:
        """Make a path of the things and then the rest."""
        for thing in reversed(things[1:]):
            rest = SharedPath((thing,), rest)
        self._first: T | None = things[0] if things else None
        self._rest = rest
        self._length = min(len(things), 1) + (0 if rest is None else len(rest))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        at: SharedPath[T] | None = self if self._length else None
        while at is not None:
            yield at._first  # type: ignore[misc]
            at = at._rest

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if at == 0 and self._length:
            return self._first  # type: ignore[return-value]
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedPath | tuple | list) or len(self) != len(other):
            return NotImplemented if not isinstance(other, SharedPath | tuple | list) else False
        return all(one == another for one, another in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedPath, (tuple(self),)


class SharedPaths(Generic[T]):
    """Makes shared paths from pairs: a path is `()`, or a thing and the path that continues from there. Paths with the same rest share it."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[
            int, tuple[Any, SharedPath[T]]
        ] = {}  # by the identity of the path, which is kept alive here

    def path_of(self, path: tuple[Any, ...], value_of: Callable[[Any], T]) -> SharedPath[T]:
        """Return the shared path for a non-empty path. `value_of` makes the value of a thing."""
        new = []
        while path and id(path) not in self._made:
            new.append(path)
            path = path[1]
        way = self._made[id(path)][1] if path else None
        for each in reversed(new):
            way = SharedPath([value_of(each[0])], way)
            self._made[id(each)] = (each, way)
        assert way is not None
        return way
