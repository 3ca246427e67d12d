"""Each fuzzer for a short while, by a seed; and that it sees what it is there to see."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from lab.fuzz import Worker, changed, fuzz

pytestmark = [pytest.mark.rest, pytest.mark.in_process("damages files, and starts servers of its own")]


@pytest.mark.parametrize(
    ("target", "cases"),
    [("journal", 30), ("dump", 100), ("imports", 40), ("wire", 150), ("mcp", 100), ("cypher", 75)],
)
def test_no_change_leads_to_another_answer_or_to_an_end(target, cases):
    counts, found = fuzz(target, "5", minutes=3, cases=cases)

    assert [] == found
    assert cases == counts.total()


def test_a_case_is_known_by_its_seed_alone():
    data = bytes(range(256)) * 4

    assert changed(random.Random("journal-5-1"), data) == changed(random.Random("journal-5-1"), data)
    assert len({changed(random.Random(f"journal-5-{number}"), data) for number in range(50)}) > 40


@pytest.mark.parametrize(
    ("script", "what"),
    [
        (
            "import os, signal, sys; sys.stdin.readline(); os.kill(os.getpid(), signal.SIGSEGV)",
            "ended with -11",
        ),
        ("import sys, time; sys.stdin.readline(); time.sleep(60)", "no answer within"),
    ],
)
def test_a_crash_and_a_hang_are_found(tmp_path, monkeypatch, script, what):
    monkeypatch.setattr("lab.fuzz.PATIENCE", 3.0)
    (tmp_path / "errors").touch()
    worker = Worker("journal", tmp_path)
    worker._process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    word, told = worker.case("journal-5-1")
    worker.end()

    assert ("found", True) == (word, what in told)
