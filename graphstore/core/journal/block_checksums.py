"""The CRC of each block of a journal's segments, made of bytes that have just been written, or read and verified.

So a block that is read for the first time is held against one number, and not each body in it against its own hash. Readers need no lock.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from zlib import crc32

BLOCK = 13  # of 8 KiB: one that is read for one body costs little, and few bodies lie in two
WITHIN = (1 << BLOCK) - 1
UNKNOWN = -1


class BlockChecksums:
    """Those of all segments, as far as each was followed."""

    def __init__(self) -> None:
        self._whole: dict[int, array[int]] = {}  # by segment, of each block that is full
        # how far each was followed, and the checksum of the block that has begun there
        self._begun: dict[int, tuple[int, int]] = {}

    def of(self, segment: int, number: int) -> tuple[int, int]:
        """How many bytes of a block are known, and their checksum or UNKNOWN."""
        size, begun = self._begun.get(segment, (0, UNKNOWN))  # first: meanwhile the block may get full
        whole = self._whole.get(segment, ())
        if number < len(whole):
            return 1 << BLOCK, whole[number]
        return (size & WITHIN, begun) if number == size >> BLOCK else (0, UNKNOWN)

    def every(self, segment: int, size: int) -> array[int]:
        """The checksums of the first bytes of a segment, the last block as far as it has begun."""
        followed, begun = self._begun.get(segment, (0, UNKNOWN))
        found = self._whole.get(segment, array("q"))[: size >> BLOCK]
        found.extend([UNKNOWN] * ((size >> BLOCK) - len(found)))
        if size & WITHIN:
            found.append(begun if followed == size else UNKNOWN)
        return found

    def add(self, segment: int, offset: int, data: bytes | memoryview) -> None:
        """Follow the bytes at an offset. Nothing is known of what was left out before them; what was behind them is there no more."""
        begun = self.cut(segment, offset)
        whole, view = self._whole[segment], memoryview(data)
        while view:
            part = view[: (1 << BLOCK) - (offset & WITHIN)]
            begun = UNKNOWN if begun == UNKNOWN else crc32(part, begun)
            offset, view = offset + len(part), view[len(part) :]
            if not offset & WITHIN:
                whole.append(begun)
                begun = 0
        self._begun[segment] = offset, begun

    def cut(self, segment: int, offset: int) -> int:
        """Forget what is behind an offset, and all later segments. Returns the checksum of the block that has begun there."""
        for later in [each for each in self._begun if each > segment]:
            del self._whole[later], self._begun[later]
        size, begun = self._begun.get(segment, (0, 0))
        if size != offset or segment not in self._whole:
            self._whole[segment] = self.every(segment, offset & ~WITHIN)
            begun = UNKNOWN if offset & WITHIN else 0
            self._begun[segment] = offset, begun
        return begun

    def rewritten(self, segment: int, data: bytes, *, sound: bool) -> None:
        """Take the bytes that are in place of a segment. `sound`: what they were made of was as it was written."""
        self.load(
            segment, len(data), checksums_of(data) if sound else [UNKNOWN] * (len(data) + WITHIN >> BLOCK)
        )

    def load(self, segment: int, size: int, checksums: Iterable[int]) -> None:
        """Take what `every` gave."""
        found = array("q", checksums)
        self._begun[segment] = size, found.pop() if size & WITHIN else 0
        self._whole[segment] = found


def checksums_of(data: bytes | memoryview) -> Iterable[int]:
    """The checksums of the blocks of some bytes that begin a block."""
    return (crc32(data[at : at + (1 << BLOCK)]) for at in range(0, len(data), 1 << BLOCK))
