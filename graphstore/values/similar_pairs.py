"""Which of many sets of words have enough in common: all such pairs, without looking at each two of them.

Two sets of sizes m and n overlap by a fifth (Jaccard) exactly when they share at least (m + n) / 6 words. Such a pair shares a rare word, or
shares that many common ones. A rare word's few holders are looked at one by one. Common words are counted for all sets at once: a word's holders
are the bits of one number, and `least[k]` has the bits of the sets that share more than k of the words counted so far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

_PART_RARE = 1024  # a word is rare when one set in so many has it
_FEW = 8


def alike(sets: Sequence[frozenset[str]], rare: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield every two sets that overlap by a fifth or more, as their positions, the smaller first, in ascending order.

    `rare`: a word that at most so many sets have is a rare one; it changes the cost only. Pairs come as they are found: take as many as wanted.
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
    digits = f"{bits:b}"[::-1]  # finding in text costs less than taking the lowest bit off a long number
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)
