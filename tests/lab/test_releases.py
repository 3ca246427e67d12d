"""Answers equal those of release 0.1 on random histories, and one that differs is found."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from lab import releases
from tests.support.old_release import tree_of_old

pytestmark = [pytest.mark.rest, pytest.mark.in_process("plays histories in processes of its own")]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree_of_old(tmp_path_factory.mktemp("release"))


def test_answers_equal_those_of_release_0_1(capsys: pytest.CaptureFixture[str], tree: Path) -> None:
    assert releases.main(["--answers", "100000", "--first", "7"]) == 0, capsys.readouterr().out


def test_a_hub_of_many_and_a_long_chain_answer_as_in_release_0_1(tree: Path) -> None:
    both, counts = (
        (releases.Release(tree, sys.executable), releases.Release(releases.HERE, sys.executable)),
        Counter[str](),
    )

    assert (
        releases.compared(both, range(1), ["--shape", "hub", "--size", "5000", "--steps", "20"], counts) == []
    )
    assert (
        releases.compared(both, range(1), ["--shape", "chain", "--size", "2000", "--steps", "20"], counts)
        == []
    )
    assert counts["answers compared"] > 10_000


def test_an_answer_that_differs_is_found(
    capsys: pytest.CaptureFixture[str], tree: Path, tmp_path: Path
) -> None:
    tree = shutil.copytree(tree, tmp_path / "tree")
    with open(tree / "graphstore" / "__init__.py", "a") as file:
        file.write("\nfrom graphstore.core.read.view import View\nView.links_from = lambda self, id: []\n")
    both = releases.Release(tree, sys.executable), releases.Release(releases.HERE, sys.executable)

    assert releases.compared(both, range(1), [], Counter()) == [0]
    releases.show(both, 0, [])
    assert "FOUND by --first 0" in capsys.readouterr().out
