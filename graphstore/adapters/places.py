"""A thing that a framework overwrites in place is a node here: its path is the id, each state a version, and what is deleted has ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, ClassVar, Self
from urllib.parse import quote, unquote

from graphstore.errors import InvalidError, NotFoundError
from graphstore.store.store import Store
from graphstore.values.coordinates import OPEN
from graphstore.values.models import Node
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader

_LIKE_A_VERSION = re.compile(r"-(v\d+)$")
_UNRESERVED = "".join(map(chr, range(32, 127))).replace("/", "").replace("%", "")


class AtCoordinate:
    """An adapter of a store, or after `as_of` of a view, which it only reads."""

    _read_only: ClassVar[str]
    """The error of what writes at a coordinate, and of a second `as_of`."""

    def _use(self, store: Store) -> None:
        self._store: Store | None = store
        self._reader: Reader = store

    def as_of(self, *, valid: TimeLike | None = None, tx: TimeLike | None = None) -> Self:
        """Return the same at another coordinate, to be read only: what writes raises an error there."""
        past = copy(self)
        past._reader, past._store = self._writable.as_of(valid=valid, tx=tx), None
        return past

    @property
    def _writable(self) -> Store:
        if self._store is None:
            raise InvalidError(self._read_only)
        return self._store


def joined(parts: Iterable[str]) -> str:
    """A path of parts as one text, from which `parted` reads them again.

    >>> joined(("users", "a/b", "notes-v2"))
    'users/a%2Fb/notes%2Dv2'
    """
    path = "/".join(quote(part, safe=_UNRESERVED) for part in parts)
    return _LIKE_A_VERSION.sub(r"%2D\1", path)


def parted(path: str) -> tuple[str, ...]:
    """The parts of a path that `joined` made.

    >>> parted("users/a%2Fb/notes%2Dv2")
    ('users', 'a/b', 'notes-v2')
    """
    return tuple(map(unquote, path.split("/"))) if path else ()


def below(scope: str, *parts: str) -> str:
    """Return the scope of a path of parts below a scope.

    >>> below("team", "travel", "ana"), below("", "a/b")
    ('team/travel/ana', 'a%2Fb')
    """
    return "/".join(filter(None, (scope, joined(parts))))


def is_known(store: Store, id: str) -> bool:
    """Return True if anything was ever recorded under an id."""
    try:
        store.history(id)
    except NotFoundError:
        return False
    return True


def found(reader: Any, id: str, kind: str) -> Node | None:
    """The node of this kind as it stands at the reader's coordinate, or None."""
    try:
        node: Node = reader.node(id)
    except NotFoundError:
        return None
    return node if node.kind == kind else None


def put(
    store: Store,
    id: str,
    kind: str,
    content: Mapping[str, Any],
    *,
    scope: str = "",
    text: str | None = None,
    tags: Iterable[str] = (),
    source: str | None = None,
    valid_to: TimeLike | None = None,
) -> Node:
    """Say from now on this of `id`: added when it is new, else a version of it; what says the same already is left alone.

    Raises ConflictError where the id was erased, or is trusted more.
    """
    if not is_known(store, id):
        return store.add_node(
            kind, content, id=id, scope=scope, text=text, tags=tags, source=source, valid_to=valid_to
        )
    return store.revise(
        id,
        content,
        text=text,
        tags=tags,
        source=source,
        valid_from=store.at.valid,
        valid_to=OPEN if valid_to is None else valid_to,
    )


def remove(store: Store, node: Node, reason: str) -> None:
    """End what stands; that it was there stays readable at earlier times."""
    store.end(node.id, reason=reason)
