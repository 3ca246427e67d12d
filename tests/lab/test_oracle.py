"""The driver of the random programs: it counts what it does, is known by its seed, and sees an answer that is another."""

from __future__ import annotations

import pytest

from lab import oracle
from tests.change.oracle import Oracle

pytestmark = [pytest.mark.rest, pytest.mark.in_process("holds stores of its own beside the oracle")]


@pytest.fixture(autouse=True)
def uncounted():
    oracle.COUNTS.clear()


@pytest.mark.parametrize("name", [name for name in oracle.MACHINES if name != "ladybug"])
def test_a_batch_tells_and_compares(name):
    oracle.batch(name, f"{name}-1-0", 2, 15)

    assert oracle.COUNTS["verbs told"] > 5
    assert oracle.COUNTS["answers compared"] > 100


def test_a_batch_is_known_by_its_seed():
    oracle.batch("index", "index-1-0", 2, 15)
    first = oracle.COUNTS.copy()
    oracle.COUNTS.clear()
    oracle.batch("index", "index-1-0", 2, 15)

    assert first == oracle.COUNTS


def test_an_answer_that_is_another_is_found(monkeypatch, capsys):
    right = Oracle.history
    monkeypatch.setattr(Oracle, "history", lambda self, id, t: right(self, id, t)[:1])

    assert 1 == oracle.main(
        ["--operations", "1", "--only", "index", "--seed", "1", "--programs", "5", "--steps", "20"]
    )
    assert "FOUND by --seed index-1-0" in capsys.readouterr().out
