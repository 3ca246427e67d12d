"""Whose word holds at each instant, for three lines drawn as text: what was, ours, theirs. A letter is what is said in a cell, a dot is nothing."""

from __future__ import annotations

from itertools import groupby

import pytest

from graphstore.values.threeway import StatedContent, StatedPiece, cells


def drawn(line: str) -> list[StatedPiece]:
    pieces, at = [], 0
    for word, run in groupby(line):
        stop = at + len(list(run))
        if word != ".":
            pieces.append(StatedPiece(at, stop, StatedContent(word.encode(), at)))
        at = stop
    return pieces


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("aaaa", "aaaa", "aabb", "aabb"),  # theirs alone
        ("aaaa", "bbaa", "aaaa", "bbaa"),  # ours alone
        ("aaaa", "bbaa", "aacc", "bbcc"),  # each on a side
        ("aaaa", "abba", "acca", "a??a"),  # both in the middle
        ("aaaa", "bbbb", "bbbb", "bbbb"),  # both alike
        ("aaaa", "..aa", "aa..", "...."),  # each took a side back
        ("aaaa", "....", "bbbb", "????"),  # taken back here, described anew there
        ("....", "aa..", "..bb", "aabb"),  # new on both sides, apart
        ("....", "aaa.", ".bbb", "a??b"),  # new on both sides, overlapping
        ("aaaa", "....", "....", "...."),
    ],
)
def test_whose_word_holds(base, ours, theirs, merged):
    found = ["."] * len(base)
    for cell in cells(drawn(base), drawn(ours), drawn(theirs)):
        word = {"ours": cell.ours, "theirs": cell.theirs, "conflict": StatedContent(b"?", 0)}[cell.outcome]
        found[cell.start : cell.stop] = [word.content.decode() if word else "."] * (cell.stop - cell.start)

    assert merged == "".join(found)


def test_cells_are_as_few_as_there_can_be():
    pieces = [StatedPiece(0, 2, StatedContent(b"a", 1)), StatedPiece(2, 4, StatedContent(b"a", 2))]

    assert [(0, 4)] == [cell.period for cell in cells(pieces, pieces, pieces)]
