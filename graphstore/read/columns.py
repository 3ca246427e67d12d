"""Holds what a transaction reads from the rows of a ledger, each part on first use: columns, lists of rows, and numbers by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from graphstore.values.period import Instant

Gap = tuple[Instant, Instant, Instant, int]  # tx, valid from, valid to, operation
K = TypeVar("K")
V = TypeVar("V")
Taken = tuple[int, Instant, Instant]  # a version (or ENDED) of which a bound removed a period, from, to
ENDED = -1
"""Stands in place of a version: an `end` removed the rest of a slot's value, so the slot is empty where that value would hold."""


class Mark(NamedTuple):
    """The number of rows in each group of columns: the state of a transaction, or how far a projection has followed."""

    entities: int = 0
    versions: int = 0
    rows: int = 0
    closings: int = 0
    links: int = 0
    claims: int = 0
    link_rows: int = 0
    link_closings: int = 0
    ops: int = 0
    seen: int = 0


class Count:
    """The number of rows of the columns that share it."""

    __slots__ = ("rows",)

    def __init__(self, rows: int) -> None:
        self.rows = rows


class LoadedColumn(dict[int, Any]):
    """Holds the values of a column that were read or added. `load` reads the row of a number into this column and others of its group."""

    __slots__ = ("_count", "_load")

    def __init__(self, count: Count, load: Callable[[int], object]) -> None:
        self._count, self._load = count, load

    def __missing__(self, number: int) -> Any:
        if not 0 <= number < self._count.rows:
            raise IndexError(f"there is no row {number}: there are {self._count.rows}")
        self._load(number)
        return self.get(number)

    def __len__(self) -> int:
        return self._count.rows


class Read(dict[K, V]):
    """Holds a value for each key, read on first use."""

    __slots__ = ("_load",)

    def __init__(self, load: Callable[[K], V]) -> None:
        self._load = load

    def __missing__(self, key: K) -> V:
        self[key] = found = self._load(key)
        return found


class Lists(dict[Any, list[V]], Generic[V]):
    """Holds a list for each key, such as the rows of a thing. Stored entries are read on first use; `added` has those that the transaction adds."""

    __slots__ = ("_any", "_load", "added")

    def __init__(self, load: Callable[[Any], Any], is_any: bool = True) -> None:
        self._load, self._any = load, is_any
        self.added: dict[Any, list[V]] = {}

    def __missing__(self, key: Any) -> list[V]:
        found: list[V] = self._load(key)
        for value in self.added.get(key, ()):
            found.append(value)
        self[key] = found
        return found

    def __contains__(self, key: object) -> bool:
        return bool(self[key])

    def __bool__(self) -> bool:
        return self._any or any(self.added.values())

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the list of a key, or the default if it is empty."""
        return self[key] or default

    def unread(self, keys: Iterable[Any]) -> list[Any]:
        """Return the keys whose lists were not read, each once."""
        return [key for key in dict.fromkeys(keys) if not dict.__contains__(self, key)]

    def have_none(self, key: Any) -> None:
        """Record that nothing is stored for a key, so that its list need not be read."""
        if not dict.__contains__(self, key):
            self[key] = [*self.added.get(key, [])]

    def add(self, key: Any, value: V) -> None:
        """Add a value to the list of a key."""
        self.added.setdefault(key, []).append(value)
        if dict.__contains__(self, key):
            self[key].append(value)

    def drop(self, key: Any) -> None:
        """Remove the value added last to the list of a key."""
        self.added[key].pop()
        if dict.__contains__(self, key):
            self[key].pop()


class Pieces(Lists[Taken]):
    """Holds what bounds have removed of each thing. A key has an entry if rows are stored for it, or if the transaction has set its list."""

    __slots__ = ()

    def __missing__(self, key: Any) -> list[Any]:
        found: list[Any] = self._load(key)
        if found:
            self[key] = found
        return found

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or bool(self[key])

    def get(self, key: Any, default: Any = None) -> Any:
        """Return what was removed of a thing, or the default if it has no entry."""
        return self[key] if key in self else default


class Occurrences:
    """Lists the occurrences of an event after its first report. It knows their number and the last one, and reads all when another one is used."""

    __slots__ = ("_all", "_count", "_last", "_load")

    def __init__(self, count: int, last: int, load: Callable[[], list[int]]) -> None:
        self._count, self._last, self._load = count, last, load
        self._all: list[int] | None = None if count else []

    def _read(self) -> list[int]:
        if self._all is None:
            self._all = self._load()
        return self._all

    def __len__(self) -> int:
        return self._count if self._all is None else len(self._all)

    def __getitem__(self, at: Any) -> Any:
        if self._all is None and at in (-1, self._count - 1):
            return self._last
        return self._read()[at]

    def append(self, number: int) -> None:
        """Add an occurrence."""
        if self._all is not None:
            self._all.append(number)
            return
        before = self._load
        self._load = lambda: [*before(), number]
        self._count, self._last = self._count + 1, number

    def pop(self) -> None:
        """Remove the last occurrence."""
        self._read().pop()


class NumbersByKey(dict[Any, int]):
    """Finds the number of a key, such as an id, on first use. `in` is False for a key without a number; `absent` has such keys that were already searched."""

    __slots__ = ("_find", "absent")

    def __init__(self, find: Callable[[Any], int | None]) -> None:
        self._find = find
        self.absent: set[Any] = set()

    def __missing__(self, key: Any) -> int:
        number: int | None = self.get(key)
        if number is None:
            raise KeyError(key)
        return number

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def get(self, key: Any, default: Any = None) -> int:
        """Return the number of a key, or the default."""
        number = dict.get(self, key)
        if number is None and key not in self.absent:
            try:
                number = self._find(key)
            except UnicodeEncodeError:  # no lone surrogate is stored
                number = None
            if number is not None:
                self[key] = number
            elif not isinstance(key, str) or key.isascii():  # else the same id may come in another spelling
                self.absent.add(key)
        return default if number is None else number
