from __future__ import annotations

import random

from graphstore.core.journal.block_checksums import BLOCK, UNKNOWN, BlockChecksums, checksums_of

SIZE = 1 << BLOCK
DATA = random.Random(7).randbytes(5 * SIZE + 1_234)


def followed(*ends: int) -> BlockChecksums:
    """Of the data, added up to each of these offsets in turn."""
    checksums, start = BlockChecksums(), 0
    for end in ends:
        checksums.add(0, start, DATA[start:end])
        start = end
    return checksums


def test_sums_are_those_of_the_bytes_in_whatever_pieces_these_came():
    ends = sorted(random.Random(8).sample(range(len(DATA)), 40))
    checksums = followed(*ends, SIZE * 4, len(DATA)) if ends[-1] < SIZE * 4 else followed(*ends, len(DATA))

    assert list(checksums_of(DATA)) == list(checksums.every(0, len(DATA)))
    assert [(SIZE, each) for each in checksums_of(DATA[: 5 * SIZE])] == [
        checksums.of(0, number) for number in range(5)
    ]
    assert (1_234, list(checksums_of(DATA))[5]) == checksums.of(0, 5)
    assert (0, UNKNOWN) == checksums.of(0, 6) == checksums.of(1, 0)


def test_sums_that_were_kept_go_on():
    checksums = BlockChecksums()
    checksums.load(0, 100, followed(100).every(0, 100))
    checksums.add(0, 100, DATA[100:])

    assert list(checksums_of(DATA)) == list(checksums.every(0, len(DATA)))


def test_a_block_that_was_cut_is_unknown_and_those_before_and_after_are_not():
    checksums = followed(len(DATA))
    checksums.add(1, 0, b"later")
    checksums.cut(0, 3 * SIZE + 7)
    checksums.add(0, 3 * SIZE + 7, DATA[3 * SIZE + 7 :])

    expected = list(checksums_of(DATA))
    assert [*expected[:3], UNKNOWN, *expected[4:]] == list(checksums.every(0, len(DATA)))
    assert (0, UNKNOWN) == checksums.of(1, 0)


def test_a_cut_between_two_blocks_leaves_nothing_unknown():
    checksums = followed(len(DATA))
    checksums.cut(0, 2 * SIZE)
    checksums.add(0, 2 * SIZE, DATA[2 * SIZE :])

    assert list(checksums_of(DATA)) == list(checksums.every(0, len(DATA)))


def test_what_was_left_out_is_unknown():
    checksums = BlockChecksums()
    checksums.add(0, SIZE + 1, DATA[SIZE + 1 :])

    assert [UNKNOWN, UNKNOWN, *list(checksums_of(DATA))[2:]] == list(checksums.every(0, len(DATA)))


def test_a_segment_that_was_rewritten_is_known_where_the_old_one_was_sound():
    size = 2 * SIZE + 777
    for sound in (False, True):
        checksums = followed(len(DATA))
        checksums.rewritten(0, DATA[:size], sound=sound)
        known = list(checksums_of(DATA[:size])) if sound else [UNKNOWN] * 3
        assert known == list(checksums.every(0, size))
