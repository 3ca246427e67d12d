"""The benchmark of alarms holds its promises: a precision of 0.9, and the documents' own example."""

from __future__ import annotations

import sys

import pytest

from benchmarks import alarms

pytestmark = [pytest.mark.rest, pytest.mark.in_process("makes stores of its own")]


def test_candidates_are_right_nine_times_of_ten(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["alarms"])

    assert 0 == alarms.main()
    assert "4 of 4 ways of telling found" in capsys.readouterr().out
