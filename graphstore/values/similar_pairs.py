"""Find all pairs among many sets of words that have enough in common, without comparing every two of them.

Two sets of sizes m and n overlap by a fifth (Jaccard) exactly if they share at least (m + n) / 6 words. Such a pair shares a rare word, or that many common
ones. The few sets with a rare word are compared one by one. Common words are counted for all sets at once: the sets with a word are the bits of one number,
and `least[k]` has the bits of the sets that share more than k of the words counted so far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

_PART_RARE = 1024  # a word is rare if at most one set in this many has it
_FEW = 8


def alike(sets: Sequence[frozenset[str]], rare: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield every two sets that overlap by a fifth or more, as their positions, the smaller first, in ascending order.

    `rare`: a word in at most this many sets is rare; it changes only the cost. Pairs are yielded as they are found, so a caller may stop early.
    """
    if rare is None:
        rare = max(_FEW, len(sets) // _PART_RARE)
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(sets):
        for word in words:
            holders.setdefault(word, []).append(at)
    few = {word: which for word, which in holders.items() if 1 < len(which) <= rare}
    many = {word: _bits(which) for word, which in holders.items() if len(which) > max(rare, 1)}
    sizes = _Sizes(sets)
    for at, words in enumerate(sets):
        near = {other for word in words for other in _after(few.get(word), at)}
        common = [many[word] for word in words if word in many]
        if 5 * len(common) >= len(words):
            likely = sizes.sharing(common, len(words)) >> (at + 1)
            near.update(at + 1 + bit for bit in _positions(likely))
        for other in sorted(near):
            if 6 * len(words & sets[other]) >= len(words) + len(sets[other]):
                yield at, other


def _after(which: list[int] | None, at: int) -> list[int]:
    return which[bisect_right(which, at) :] if which else []


class _Sizes:
    """Groups the sets by their sizes."""

    def __init__(self, sets: Sequence[frozenset[str]]) -> None:
        of_size: dict[int, list[int]] = {}
        for at, words in enumerate(sets):
            of_size.setdefault(len(words), []).append(at)
        self.sizes = sorted(of_size)
        self.up_to: list[int] = []  # bits of the sets of at most that size
        bits = 0
        for size in self.sizes:
            bits |= _bits(of_size[size])
            self.up_to.append(bits)

    def sharing(self, common: list[int], size: int) -> int:
        """Return the sets that share enough of these words with one of `size` words, as bits."""
        enough = (size + self.sizes[-1] + 5) // 6  # for the largest
        least: list[int] = []
        for carry in common:
            for level, bits in enumerate(least):
                least[level] = bits | carry
                carry &= bits
                if not carry:
                    break
            else:
                if len(least) < enough:
                    least.append(carry)
        found = 0
        for level, bits in enumerate(least):
            fitting = bisect_right(self.sizes, 6 * (level + 1) - size)
            if fitting:
                found |= bits & self.up_to[fitting - 1]
        return found


def _bits(positions: Iterable[int]) -> int:
    raw = bytearray()
    for at in positions:
        if at >> 3 >= len(raw):
            raw.extend(bytes((at >> 3) - len(raw) + 1))
        raw[at >> 3] |= 1 << (at & 7)
    return int.from_bytes(raw, "little")


def _positions(bits: int) -> Iterator[int]:
    digits = f"{bits:b}"[::-1]  # searching text costs less than removing the lowest bit of a long number
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)
