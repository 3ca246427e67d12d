"""Compares the answers of this release with those of another one on random histories: `python -m lab releases --answers 5000000`.

Each release plays the same histories by `answers.py` in a process of its own, from its own commit. Since the rules of what holds and how it stands are others than
those of release 0.1, it differs from that one; `--commit` names one with the same rules.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

RELEASE_0_1 = "dd88351"
"""The last commit before the ledger."""
HERE = Path(__file__).parents[1]
_BATCH = 6
_SHOWN = 3


class Release:
    """A tree of the project, and the Python that runs it."""

    def __init__(self, tree: Path, python: str) -> None:
        self._tree, self._python = tree, python

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin to play histories."""
        return subprocess.Popen(
            [self._python, str(HERE / "lab" / "answers.py"), *arguments],
            env={**os.environ, "PYTHONPATH": str(self._tree), "GRAPHSTORE_PURE": "1"},
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._tree,
        )


def taken_out(commit: str, folder: Path) -> Path:
    """Put the tree of a commit into a folder. Returns the folder."""
    packed = subprocess.run(["git", "-C", str(HERE), "archive", commit], check=True, capture_output=True)
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as tree:
        tree.extractall(folder, filter="data")
    return folder


def played(both: tuple[Release, Release], *arguments: str) -> Iterator[tuple[Any, Any]]:
    """Let both releases play histories at the same time; give what each printed, line by line. Raises RuntimeError where one of them fails."""
    running = [release.started(*arguments) for release in both]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"lab/answers.py {' '.join(arguments)} failed, see above")
    for one, other in zip_longest(*(text.splitlines() for text in outputs), fillvalue="null"):
        yield json.loads(one), json.loads(other)


def compared(both: tuple[Release, Release], seeds: range, more: list[str], counts: Counter[str]) -> list[int]:
    """Compare some histories. Returns the seeds whose answers differ."""
    differing = []
    for old, new in played(both, "--first", str(seeds.start), "--count", str(len(seeds)), *more):
        seed, shape, answers = old
        counts["histories"] += 1
        counts[f"of shape {shape}"] += 1
        counts["answers compared"] += sum(count for count, _ in answers.values())
        if old != new:
            differing.append(seed)
    return differing


def show(both: tuple[Release, Release], seed: int, more: list[str]) -> None:
    """Print the first answers of a history that differ."""
    found = 0
    for old, new in played(both, "--first", str(seed), "--show", *more):
        if old != new:
            print(f"FOUND by --first {seed}:\n  {old}\n  {new}", flush=True)
            found += 1
            if found == _SHOWN:
                return


def main(arguments: list[str]) -> int:
    """Compare until there are enough answers. Returns 1 when any differ."""
    said = argparse.ArgumentParser(prog="python -m lab releases", description=__doc__)
    said.add_argument("--answers", type=int, default=100_000)
    said.add_argument("--first", type=int, default=0, help="the first seed")
    said.add_argument("--commit", default=RELEASE_0_1, help="of the other release")
    said.add_argument("--python", default=sys.executable, help="that runs the other release")
    told, more = said.parse_known_args(arguments)
    counts: Counter[str] = Counter()
    differing: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        old = Release(taken_out(told.commit, Path(folder)), told.python)
        both, first = (old, Release(HERE, sys.executable)), told.first
        while counts["answers compared"] < told.answers:
            found = compared(both, range(first, first + _BATCH), more, counts)
            for seed in found:
                show(both, seed, more)
            differing += found
            first += _BATCH
            print(f"seeds below {first}: {counts['answers compared']:,} answers", flush=True)
    print(
        f"{len(differing)} histories differ. "
        + ", ".join(f"{count:,} {what}" for what, count in counts.items())
    )
    return int(bool(differing))
