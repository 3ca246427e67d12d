"""Find nodes by key and by tag in the rows of a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.keys import version_of


class Keyed(NamedTuple):
    """A node with its key."""

    number: int
    key: str


class Tagged(NamedTuple):
    """A version that has a tag."""

    number: int
    entity: int


class KnownName(NamedTuple):
    """A key or a tag, with the first node or version that has it."""

    is_tag: int
    first: int
    name: str


ENTITY_KEYED = Statement("entity_keyed", Keyed)
TAGGED = Statement("tagged", Tagged)
KNOWN_NAMES = Statement("known_names", KnownName)


class NameRows:
    """Finds the nodes and versions of one ledger by name."""

    def __init__(self, point: Point, index: Any) -> None:
        self._point, self._index = point, index

    def keyed(self, name: str) -> list[int]:
        """Return the nodes whose key is `name` or a version of it, in the order in which they were first known."""
        found = self._point.rows(ENTITY_KEYED, key=name)
        return [row.number for row in found if row.key == name or version_of(row.key)[0] == name]

    def tagged(self, name: str) -> list[int]:
        """Return the versions with the tag `name`, in the order in which they were recorded."""
        found = self._point.rows(TAGGED, tag=name)
        self._index.read_versions([row.number for row in found])
        return [row.number for row in found]

    def known(self) -> Iterator[str]:
        """Yield each name of everything known here once."""
        seen: set[str] = set()
        for row in self._point.rows(KNOWN_NAMES):
            key = row.name
            for name in (key,) if row.is_tag else (key, version_of(key)[0] or key):
                if name not in seen:
                    seen.add(name)
                    yield name
