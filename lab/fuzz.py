"""Fuzzers: bytes of the journal and its copies, dumps, files to import, and what comes over the wire, each changed in places that a seed draws.

A case is known by its seed alone. It runs in a process of its own, which is watched: a crash, a hang, an error that is not ours, or an answer
other than the truth is a find.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lab import end_with_parent

HERE = Path(__file__).parents[1]
TARGETS = ("journal", "dump", "imports", "wire", "mcp", "cypher")
PATIENCE = 60.0  # seconds a case may take


def changed(chance: random.Random, data: bytes) -> bytes:
    """The bytes with one to four changes: bits flipped, parts inserted, cut, doubled, moved, zeroed, or the end cut off."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = _change(chance, bytearray(data))
    return data


def _change(chance: random.Random, data: bytearray) -> bytes:
    size = len(data)
    at = chance.randrange(size) if size else 0
    length = min(chance.choice((1, 1, 2, 8, 64, 500)), max(size - at, 0))
    how = chance.choice(
        ("flip", "flip", "byte", "insert", "cut", "double", "zero", "end", "number", "hostile")
    )
    if how == "flip" and size:
        data[at] ^= 1 << chance.randrange(8)
    elif how == "byte" and size:
        data[at] = chance.randrange(256)
    elif how == "insert":
        data[at:at] = chance.randbytes(length or 1)
    elif how == "cut":
        del data[at : at + length]
    elif how == "double":
        data[at:at] = data[at : at + length]
    elif how == "zero":
        data[at : at + length] = bytes(length)
    elif how == "end":
        del data[at:]
    elif how == "number":
        places = [place for place in range(at, min(at + 2_000, size)) if 48 <= data[place] <= 57]
        if places:
            data[places[0] : places[0] + 1] = chance.choice(
                (b"-1", b"99999999999999999999", b"1e999", b"0.5", b"null")
            )
    elif how == "hostile":
        data[at : at + length] = chance.choice(HOSTILE)
    return bytes(data)


HOSTILE = (
    b"\xff\xfe", b"\x00", b'"', b"\\ud800", b"[" * 5_000, b'{"a":' * 2_000, b"\r\n\r\n", b"NaN", b"9" * 400, b"null", b"true", b"\n", b"}{", b"[]",
)  # fmt: skip


class Worker:
    """The process that does the cases of one target, begun anew after a crash or a hang."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target, self.folder = target, folder
        self._process: subprocess.Popen[str] | None = None

    def case(self, seed: str) -> tuple[str, str]:
        """What became of a case, as a word; and of a find, what it was."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(seed + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if line is None:
            self.end()
            return "found", f"no answer within {PATIENCE:g} s"
        if not line:
            code = process.wait()
            self._process = None
            return (
                "found",
                f"the process ended with {code}: {(self.folder / 'errors').read_text(errors='replace')[-1500:]}",
            )
        word, what = json.loads(line)
        return word, what

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            env = os.environ | {"PYTHONPATH": str(HERE), "PYTHONFAULTHANDLER": "1"}
            with open(self.folder / "errors", "wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "lab.cases", self.target, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=errors, text=True, env=env, preexec_fn=end_with_parent,
                )  # fmt: skip
        return self._process

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def fuzz(target: str, seed: str, *, minutes: float, cases: int = 10**9) -> tuple[Counter[str], list[str]]:
    """Do cases until the time is over: how many became what, and the finds with their seeds."""
    counts: Counter[str] = Counter()
    found: list[str] = []
    end = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory(prefix=f"lab-{target}-") as folder:
        worker = Worker(target, Path(folder))
        try:
            for number in range(cases):
                if time.monotonic() > end:
                    break
                each = seed if seed.count("-") == 2 else f"{target}-{seed}-{number}"
                word, what = worker.case(each)
                counts[word] += 1
                if word == "found":
                    found.append(f"{each}: {what}")
                    print(f"FOUND by --seed {each}: {what}", flush=True)
                if each == seed:
                    break
        finally:
            worker.end()
    return counts, found


def main(arguments: list[str]) -> int:
    """`python -m lab fuzz journal --minutes 1`. Returns 1 when anything was found."""
    said = argparse.ArgumentParser(prog="python -m lab fuzz")
    said.add_argument("target", choices=TARGETS)
    said.add_argument("--minutes", type=float, default=1)
    said.add_argument(
        "--seed", default=None, help="a run's seed, or the whole seed of one case (journal-17-3)"
    )
    told = said.parse_args(arguments)
    seed = told.seed or str(secrets.randbelow(10**9))
    counts, found = fuzz(told.target, seed, minutes=told.minutes)
    print(f"{told.target}, seed {seed}: {dict(counts)}")
    return int(bool(found))
