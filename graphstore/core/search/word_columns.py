"""The words of versions in columns: the terms in order, and for each the versions that say it and how often.

What was indexed long ago lies in one set of columns, which may be a file; what came since is beside it as a list of terms in the order they were said,
small enough to be scanned, and is merged now and then.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.integer[Any]]

_SCANNED = 1 << 16  # terms said since, that are merged with a share of those before
_SHARE = 8
_AFTER = b"\xff"  # after all of UTF-8


class Posting(NamedTuple):
    """The versions that say a term, ascending, and how often each does."""

    versions: Numbers
    times: Numbers


class WordColumns:
    """The terms of the versions from number 0 on. It never changes.

    `starts` and `names`: the terms in the order of their bytes; `offsets`: where the postings of each begin; `lengths`: the number of terms by version.
    """

    def __init__(
        self, starts: Numbers, names: memoryview, offsets: Numbers, versions: Numbers, times: Numbers, lengths: Numbers
    ) -> None:  # fmt: skip
        self.starts, self.names, self.offsets = starts, names, offsets
        self.versions, self.times, self.lengths = versions, times, lengths

    @classmethod
    def of(
        cls, names: list[bytes], numbers: Numbers, versions: Numbers, times: Numbers, lengths: Numbers
    ) -> WordColumns:
        """Made of the number of a term for each posting; the postings of a term are in the order of versions. What no posting names is left out."""
        import numpy as np

        counts = np.bincount(numbers, minlength=len(names))
        kept = sorted(np.flatnonzero(counts).tolist(), key=names.__getitem__)
        rank = np.empty(len(names), dtype=np.uint32)
        rank[kept] = np.arange(len(kept), dtype=np.uint32)
        order = np.argsort(rank[numbers], kind="stable")
        whole = [names[at] for at in kept]
        often = times[order]
        return cls(
            np.cumsum([0, *map(len, whole)], dtype=np.int64),
            memoryview(b"".join(whole)),
            np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64),
            versions[order].astype(np.uint32),
            often.astype(np.uint8 if often.max(initial=0) < 256 else np.uint32),
            lengths.astype(np.uint32),
        )

    @classmethod
    def none(cls) -> WordColumns:
        """Of no version."""
        import numpy as np

        nothing = np.zeros(0, dtype=np.uint32)
        return cls.of([], nothing, nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def name(self, at: int) -> bytes:
        """The bytes of a term."""
        return bytes(self.names[self.starts[at] : self.starts[at + 1]])

    def all_names(self) -> list[bytes]:
        """All terms, in order."""
        whole = bytes(self.names)
        return [whole[start:stop] for start, stop in pairwise(self.starts.tolist())]

    def posting(self, term: str) -> Posting | None:
        """Where a term is."""
        coded = term.encode("utf-8", "surrogatepass")
        at = bisect_left(range(len(self)), coded, key=self.name)
        if at == len(self) or self.name(at) != coded:
            return None
        return Posting(*(column[self.offsets[at] : self.offsets[at + 1]] for column in (self.versions, self.times)))  # fmt: skip

    def beginning(self, term: str) -> Iterator[str]:
        """The terms that begin so."""
        coded, every = term.encode("utf-8", "surrogatepass"), range(len(self))
        first = bisect_left(every, coded, key=self.name)
        for at in range(first, bisect_left(every, coded + _AFTER, key=self.name)):
            yield self.name(at).decode("utf-8", "surrogatepass")

    def where(self, keeps: Any) -> WordColumns:
        """Only the postings of versions of which `keeps`, by version, is true: shorter where that is."""
        import numpy as np

        numbers = np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self.offsets))
        lengths = np.where(keeps, self.lengths[: len(keeps)], 0)
        there = self.versions < len(keeps)
        there[there] = keeps[self.versions[there]]
        return WordColumns.of(
            self.all_names(), numbers[there], self.versions[there], self.times[there], lengths
        )


class _Numbers(dict[str, int]):
    """Terms with their numbers, given out as they are met."""

    def __missing__(self, term: str) -> int:
        found = self[term] = len(self)
        return found


class FreshWords:
    """The terms of the versions from number `first` on, as they are said."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.numbers = _Numbers()
        self.said, self.owners, self.lengths = array("I"), array("I"), array("I")

    def add(self, terms: list[str]) -> None:
        """The terms of the next version."""
        self.said.extend(map(self.numbers.__getitem__, terms))
        self.owners.extend(repeat(self.first + len(self.lengths), len(terms)))
        self.lengths.append(len(terms))

    def posting(self, term: str) -> Posting | None:
        """Where a term is."""
        import numpy as np

        number = self.numbers.get(term)
        if number is None:
            return None
        owners = np.asarray(self.owners)[np.flatnonzero(np.asarray(self.said) == number)]
        return Posting(*np.unique(owners, return_counts=True))

    def beginning(self, term: str) -> Iterable[str]:
        """The terms that begin so."""
        return (each for each in self.numbers if each.startswith(term))

    def is_large(self, before: WordColumns) -> bool:
        """Whether it is to be merged."""
        return len(self.said) > _SCANNED + len(before.versions) // _SHARE

    def merged(self, before: WordColumns) -> WordColumns:
        """The columns of those before and these."""
        import numpy as np

        names = {name: at for at, name in enumerate(before.all_names())}
        coded = [term.encode("utf-8", "surrogatepass") for term in self.numbers]
        number = np.array([names.setdefault(name, len(names)) for name in coded], dtype=np.int64)
        span = self.first + len(self.lengths)
        pairs, often = np.unique(
            number[np.asarray(self.said)] * span + np.asarray(self.owners), return_counts=True
        )
        old = np.repeat(np.arange(len(before), dtype=np.int64), np.diff(before.offsets))
        return WordColumns.of(
            list(names),
            np.concatenate([old, pairs // max(span, 1)]),
            np.concatenate([before.versions, pairs % max(span, 1)]),
            np.concatenate([before.times, often]),
            np.concatenate([before.lengths, np.asarray(self.lengths)]),
        )


def together(postings: list[Posting]) -> Posting | None:
    """The postings of several forms of one word: each version once, with the form it says most often."""
    import numpy as np

    if len(postings) < 2:
        return postings[0] if postings else None
    versions, times = (np.concatenate(parts) for parts in zip(*postings, strict=True))
    order = np.argsort(versions, kind="stable")
    found, first = np.unique(versions[order], return_index=True)
    return Posting(found, np.maximum.reduceat(times[order], first))
