"""The words of the versions that are not sealed yet: a list of terms in the order they were said, small enough to be scanned."""

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
    """The versions that say a term, ascending, and how often each does."""

    versions: Numbers
    times: Numbers


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
        """Return where a term is; None where it is nowhere."""
        import numpy as np

        number = self.numbers.get(term)
        if number is None:
            return None
        owners = np.asarray(self.owners)[np.flatnonzero(np.asarray(self.said) == number)]
        return Posting(*np.unique(owners, return_counts=True))

    def beginning(self, term: str) -> Iterable[str]:
        """Return the terms that begin so."""
        return (each for each in self.numbers if each.startswith(term))


def together(postings: list[Posting]) -> Posting | None:
    """Return the postings of several forms of one word: each version once, with the form it says most often."""
    import numpy as np

    if len(postings) < 2:
        return postings[0] if postings else None
    versions, times = (np.concatenate(parts) for parts in zip(*postings, strict=True))
    order = np.argsort(versions, kind="stable")
    found, first = np.unique(versions[order], return_index=True)
    return Posting(found, np.maximum.reduceat(times[order], first))
