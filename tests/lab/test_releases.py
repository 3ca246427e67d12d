"""Two releases that answer alike are found to, and an answer that differs is found."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from lab import releases

pytestmark = [pytest.mark.rest, pytest.mark.in_process("plays histories in processes of its own")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of this release."""
    for part in ("graphstore", "sql", "cypher"):
        shutil.copytree(releases.HERE / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def releases_of(tree: Path) -> tuple[releases.Release, releases.Release]:
    return releases.Release(tree, sys.executable), releases.Release(releases.HERE, sys.executable)


def test_a_release_answers_as_its_copy(tree: Path) -> None:
    counts: Counter[str] = Counter()

    assert releases.compared(releases_of(tree), range(2), [], counts) == []
    assert counts["answers compared"] > 10_000


def test_an_answer_that_differs_is_found(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    with open(tree / "graphstore" / "__init__.py", "a") as file:
        file.write("\nfrom graphstore.view.view import View\nView.links_from = lambda self, id: []\n")
    both = releases_of(tree)

    assert releases.compared(both, range(1), [], Counter()) == [0]
    releases.show(both, 0, [])
    assert "FOUND by --first 0" in capsys.readouterr().out
