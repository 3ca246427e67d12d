"""The parts of a saved index that stay in its file until they are touched: texts, lists of numbers, and dictionaries of them.

Each is a dictionary of what was touched or added since it was saved, so that reading a thing again costs what reading a list does. What lies in the
file never changes: an item is made from it when it is asked for first, and the one made first counts, whichever thread asked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, count, islice, pairwise
from operator import sub
from typing import Any, Self
from zlib import crc32

_NONE = b"\xff"  # a text that is None: no UTF-8
_LOW = (1 << 32) - 1


def owned(numbers: memoryview) -> array[int]:
    """A column of numbers that may grow, of one that lies in a file."""
    found = array(numbers.format)
    found.frombytes(_raw(numbers))
    return found


def _raw(numbers: memoryview) -> memoryview | bytes:
    return numbers.cast("B") if len(numbers) else b""


class Part(dict[Any, Any]):
    """A part of an index: what lies in the file, and beside it what was touched or added since."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def twin(self) -> Self:
        """A copy that shares what lies in the file."""
        fresh = type(self).__new__(type(self))
        vars(fresh).update(vars(self))
        own = {key: each[:] if isinstance(each, list) else each for key, each in dict.items(self)}
        dict.update(fresh, own)
        return fresh


# ------------------------------------------------------------------------------------- lists


class Items(Part):
    """A list of which the first `saved` items lie in a file. It grows at its end, and is cut there."""

    def __init__(self, saved: int) -> None:
        super().__init__()
        self.all_saved = self.saved = self.size = saved

    def made(self, at: int) -> Any:
        """An item as it was saved."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        """Whether nothing that was saved has been cut off."""
        return self.saved == self.all_saved

    def __missing__(self, at: int) -> Any:
        if at < 0 <= at + self.size:
            return self[at + self.size]
        if not 0 <= at < self.saved:
            raise IndexError(f"there is no item {at} of {self.size}")
        return self.setdefault(at, self.made(at))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(self.size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Items, list)) and list(self) == list(other)

    def count(self, item: object) -> int:
        """How many items are equal to this one."""
        return sum(map(item.__eq__, self))

    def append(self, item: Any) -> None:
        """Add an item at the end."""
        self[self.size] = item
        self.size += 1

    def extend(self, items: Iterable[Any]) -> None:
        """Add items at the end."""
        there = list(items)
        self.update(zip(count(self.size), there))
        self.size += len(there)

    def __delitem__(self, end: Any) -> None:
        for at in range(end.start, self.size):
            self.pop(at, None)
        self.size, self.saved = min(self.size, end.start), min(self.saved, end.start)


class _Plain(Items):
    """A list of what never changes: reading it from end to end keeps nothing."""

    def __iter__(self) -> Iterator[Any]:
        return chain(islice(self.all_made(), self.saved), map(self.__getitem__, range(self.saved, self.size)))

    def all_made(self) -> Iterable[Any]:
        """All items as they were saved."""
        raise NotImplementedError


class Texts(_Plain):
    """A list of texts, some of them None: where each begins, and the bytes of all."""

    def __init__(self, starts: memoryview, data: memoryview) -> None:
        super().__init__(len(starts) - 1)
        self.starts, self.data = starts, data

    def coded(self, at: int) -> memoryview:
        """The bytes of a text as it was saved."""
        return self.data[self.starts[at] : self.starts[at + 1]]

    def made(self, at: int) -> str | None:
        found = bytes(self.coded(at))
        return None if found == _NONE else found.decode()

    def all_made(self) -> Iterable[Any]:
        try:
            whole = str(self.data, "ascii")
        except UnicodeDecodeError:
            return map(self.made, range(len(self.starts) - 1))
        return (whole[start:stop] for start, stop in pairwise(self.starts))


class Coded(_Plain):
    """A list of a few texts that are repeated: the number of each in a table."""

    def __init__(self, codes: memoryview, table: list[Any]) -> None:
        super().__init__(len(codes))
        self.codes, self.table = codes, table

    def made(self, at: int) -> Any:
        return self.table[self.codes[at]]

    def all_made(self) -> Iterable[Any]:
        return map(self.table.__getitem__, self.codes)


class Subjects(_Plain):
    """The subjects of the operations: nearly all are names of things or links, which are in lists of their own."""

    def __init__(self, codes: memoryview, *tables: Texts) -> None:
        super().__init__(len(codes))
        self.codes, self.tables = codes, tables

    def made(self, at: int) -> Any:
        code = self.codes[at]
        return self.tables[code & 3].made(code >> 2)

    def numbers(self, start: int) -> Iterable[tuple[int, int]]:
        """The table and the number there of each subject that was saved, from one on."""
        return ((code & 3, code >> 2) for code in self.codes[start : self.saved])

    def all_made(self) -> Iterable[Any]:
        tables = [list(table.all_made()) for table in self.tables]
        return (tables[code & 3][code >> 2] for code in self.codes)


class Groups(Items):
    """A list of lists of numbers."""

    def __init__(self, starts: memoryview, numbers: memoryview) -> None:
        super().__init__(len(starts) - 1)
        self.starts, self.numbers = starts, numbers

    def made(self, at: int) -> list[int]:
        return self.numbers[self.starts[at] : self.starts[at + 1]].tolist()


# ------------------------------------------------------------------------------------- dictionaries


class Lists(Part):
    """A dictionary of lists by number: of numbers, or of tuples of `width` numbers. What was removed is None."""

    def __init__(self, starts: memoryview, numbers: memoryview, width: int = 1) -> None:
        super().__init__()
        self.saved = len(starts) - 1
        self.starts, self.numbers, self.width = starts, numbers, width

    def _lies(self, key: int) -> bool:
        return 0 <= key < self.saved and self.starts[key] < self.starts[key + 1]

    def __missing__(self, key: int) -> Any:
        if not self._lies(key):
            raise KeyError(key)
        flat = self.numbers[self.starts[key] : self.starts[key + 1]].tolist()
        return dict.setdefault(
            self, key, flat if self.width == 1 else list(zip(*[iter(flat)] * self.width, strict=True))
        )

    def get(self, key: int, default: Any = None) -> Any:
        found = dict.get(self, key, self)
        if found is self:
            return self[key] if self._lies(key) else default
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        found = dict.get(self, key, self)
        return self._lies(key) if found is self else found is not None

    def setdefault(self, key: int, default: Any = None) -> Any:
        found = self.get(key)
        if found is None:
            self[key] = found = default
        return found

    def pop(self, key: int, default: Any = None) -> Any:
        found = self.get(key, default)
        if key in self:
            del self[key]
        return found

    def __delitem__(self, key: int) -> None:
        if self._lies(key):
            self[key] = None
        else:
            dict.__delitem__(self, key)

    def __iter__(self) -> Iterator[int]:
        own = [key for key, there in dict.items(self) if there is not None]
        return iter(
            [
                *(key for key in range(self.saved) if self._lies(key) and not dict.__contains__(self, key)),
                *own,
            ]
        )

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __bool__(self) -> bool:
        return dict.__len__(self) > 0 or self.starts[self.saved] > 0


class Ids(Part):
    """The number of each name in a list of texts: hash and number of each name, in order."""

    def __init__(self, pairs: memoryview, names: Texts) -> None:
        super().__init__()
        self.pairs, self.names = pairs, names
        self.saved = len(pairs)

    def _found(self, name: object) -> int:
        if self.saved and isinstance(name, str):
            coded = name.encode("utf-8", "surrogatepass")
            pairs, names = self.pairs, self.names
            hashed = crc32(coded)
            place = bisect_left(pairs, hashed << 32)
            while place < len(pairs) and pairs[place] >> 32 == hashed:
                at: int = pairs[place] & _LOW
                if at < self.saved and names.data[names.starts[at] : names.starts[at + 1]] == coded:
                    self[name] = at
                    return at
                place += 1
        return -1

    def __missing__(self, name: str) -> int:
        found: int = self._found(name)
        if found < 0:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        found = dict.get(self, name)
        if found is None:
            found = self._found(name)
        return default if found < 0 else found

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or self._found(name) >= 0

    def __delitem__(self, name: str) -> None:
        at: int = self[name]
        self.saved = min(self.saved, at)
        dict.__delitem__(self, name)

    def __iter__(self) -> Iterator[str]:
        saved = islice(self.names.all_made(), self.saved)
        return chain(saved, [name for name, at in list(dict.items(self)) if at >= self.saved])

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return range(len(self))

    def items(self) -> Any:
        return list(zip(self, range(len(self)), strict=True))

    def __len__(self) -> int:
        fresh: list[int] = list(dict.values(self))
        return int(self.saved) + sum(at >= self.saved for at in fresh)


class Keyed(Part):
    """A dictionary of lists of numbers by text or texts: the hash of its key and each number, in order. `key_of` tells the key of a number."""

    def __init__(self, pairs: memoryview, key_of: Callable[[int], Any]) -> None:
        super().__init__()
        self.pairs, self.key_of = pairs, key_of

    def _found(self, key: Any) -> list[int] | None:
        there = [at for at in _alike(self.pairs, key_hash(key)) if self.key_of(at) == key]
        return dict.setdefault(self, key, there) if there else None

    def __missing__(self, key: Any) -> list[int]:
        found = self._found(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        found = dict.get(self, key)
        if found is None:
            found = self._found(key)
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def setdefault(self, key: Any, default: Any = None) -> Any:
        found = self.get(key)
        if found is None:
            self[key] = found = default
        return found

    def items(self) -> Any:
        for pair in self.pairs:
            self.get(self.key_of(pair & _LOW))
        return dict.items(self)


def _alike(pairs: memoryview, hashed: int) -> Iterator[int]:
    """The numbers that were saved with a hash, in order."""
    at = bisect_left(pairs, hashed << 32)
    while at < len(pairs) and pairs[at] >> 32 == hashed:
        yield pairs[at] & _LOW
        at += 1


def key_hash(key: str | tuple[str, ...]) -> int:
    """The hash of a text or of texts, the same in every process."""
    return crc32((key if isinstance(key, str) else "\n".join(key)).encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------------- saving


def pairs_of(keys: Iterable[Any], numbers: Iterable[int]) -> array[int]:
    """The hash of each key with its number, in order."""
    return array("Q", sorted(key_hash(key) << 32 | at for key, at in zip(keys, numbers, strict=True)))


def texts_of(texts: Sequence[str | None] | Texts) -> tuple[array[int], bytes]:
    """Texts as where each begins, and the bytes of all."""
    starts, saved = array("I", [0]), memoryview(b"")
    if isinstance(texts, Texts):
        starts = owned(texts.starts[: texts.saved + 1])
        saved = texts.data[: starts[-1]]
    fresh = [
        _NONE if text is None else text.encode()
        for text in map(texts.__getitem__, range(len(starts) - 1, len(texts)))
    ]
    starts.extend(islice(accumulate(map(len, fresh), initial=starts[-1]), 1, None))
    return starts, b"".join([saved, *fresh])


def codes_of(texts: Sequence[Any] | Coded) -> tuple[array[int], list[Any]]:
    """Repeated texts as the number of each in a table, and the table."""
    table: dict[Any, int] = {}
    first: Iterable[int] = ()
    if isinstance(texts, Coded):
        table = {text: code for code, text in enumerate(texts.table)}
        first = texts.codes[: texts.saved]
        texts = [texts[at] for at in range(texts.saved, len(texts))]
    fresh = array("I", [table.setdefault(text, len(table)) for text in texts])
    kind = "B" if len(table) <= 1 << 8 else "H" if len(table) <= 1 << 16 else "I"
    if isinstance(first, memoryview) and first.format == kind:
        codes = owned(first)
    else:
        codes = array(kind, first)
    codes.extend(fresh.tolist())
    return codes, list(table)


def groups_of(groups: Any, size: int, width: int = 1) -> tuple[array[int], array[int]]:
    """The first so many lists of a list or dictionary of lists, as where each begins, and what is in them all."""
    numbers = array("i" if width == 1 else "q")
    if isinstance(groups, list):
        numbers.extend(chain.from_iterable(groups))
        return array("I", accumulate(map(len, groups), initial=0)), numbers
    starts, saved, bottom = memoryview(array("I", [0])), 0, memoryview(numbers)[:0]
    if isinstance(groups, (Groups, Lists)):
        starts, saved, bottom = groups.starts, groups.saved, groups.numbers
    lengths = array("I", map(sub, starts[1 : saved + 1], starts[:saved]))
    lengths.frombytes(bytes(lengths.itemsize * (size - saved)))
    numbers, at = array(numbers.typecode), 0
    for key, there in sorted((key, there) for key, there in dict.items(groups) if key < size):
        flat = list(there or ()) if width == 1 else list(chain.from_iterable(there or ()))
        numbers.frombytes(_raw(bottom[at : starts[min(key, saved)]]))
        numbers.extend(flat)
        lengths[key] = len(flat)
        at = starts[min(key + 1, saved)]
    numbers.frombytes(_raw(bottom[at : starts[saved]]))
    return array("I", accumulate(lengths, initial=0)), numbers
