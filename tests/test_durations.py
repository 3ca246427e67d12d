"""The list of slow tests names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.durations import slow_functions

ROOT = Path(__file__).parents[1]


def test_each_slow_test_that_is_listed_exists() -> None:
    written = {
        file: set(
            re.findall(
                r"^ *(?:async )?def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
            )
        )
        for file in {listed.partition("::")[0] for listed in slow_functions()}
        if (ROOT / file).exists()
    }
    gone = [
        listed
        for listed in sorted(slow_functions())
        if listed.rpartition("::")[2] not in written.get(listed.partition("::")[0], ())
    ]
    assert not gone, "measure the tests again by `make durations`, or take these out of tests/durations.txt"
