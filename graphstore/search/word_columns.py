"""Hold the words of the versions that are not sealed yet: a list of terms in reading order, small enough to be scanned."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.integer[Any]]


class Posting(NamedTuple):
    """The versions that contain a term, in ascending order, and how often each does."""

    versions: Numbers
    times: Numbers


class _Numbers(dict[str, int]):
    """Numbers terms in the order in which they first occur."""

    def __missing__(self, term: str) -> int:
        found = self[term] = len(self)
        return found


class FreshWords:
    """Holds the terms of the versions from number `first` on, in reading order."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.numbers = _Numbers()
        self.said, self.owners, self.lengths = array("I"), array("I"), array("I")

    def add(self, terms: list[str]) -> None:
        """Add the terms of the next version."""
        self.said.extend(map(self.numbers.__getitem__, terms))
        self.owners.extend(repeat(self.first + len(self.lengths), len(terms)))
        self.lengths.append(len(terms))

    def posting(self, term: str) -> Posting | None:
        """Return the versions that contain a term; None if there are none."""
        import numpy as np

        number = self.numbers.get(term)
        if number is None:
            return None
        owners = np.asarray(self.owners)[np.flatnonzero(np.asarray(self.said) == number)]
        return Posting(*np.unique(owners, return_counts=True))

    def beginning(self, term: str) -> Iterable[str]:
        """Return the terms that begin with `term`."""
        return (each for each in self.numbers if each.startswith(term))


def together(postings: list[Posting]) -> Posting | None:
    """Merge the postings of several forms of a word: each version once, with its most frequent form."""
    import numpy as np

    if len(postings) < 2:
        return postings[0] if postings else None
    versions, times = (np.concatenate(parts) for parts in zip(*postings, strict=True))
    order = np.argsort(versions, kind="stable")
    found, first = np.unique(versions[order], return_index=True)
    return Posting(found, np.maximum.reduceat(times[order], first))
