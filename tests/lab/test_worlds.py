"""Things stand in random worlds as the oracle says, and a difference is found."""

from __future__ import annotations

import pytest

from lab import worlds
from tests.change.oracle import Oracle

pytestmark = [pytest.mark.rest, pytest.mark.in_process("tells an oracle what it tells the store")]


def test_things_stand_as_the_oracle_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert worlds.main(["--answers", "100000", "--first", "31"]) == 0, capsys.readouterr().out


def test_a_standing_that_differs_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = Oracle.words
    monkeypatch.setattr(Oracle, "words", lambda self, v, t: dict.fromkeys(words(self, v, t), "ended"))
    assert worlds.main(["--answers", "1"]) == 1
    assert "FOUND by --first 0" in capsys.readouterr().out
