"""How many random histories a test plays: a few in `make test`, some more in `make test-rest`, all in `make fuzz`."""

from __future__ import annotations

import os
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def seeds(quick: int, rest: int, fuzz: int) -> list[Any]:
    """Return the seeds of a test: the first `quick`, and marked `rest` those up to `rest`, or up to `fuzz` in `make fuzz`."""
    most = fuzz if PROFILE == "fuzz" else rest
    return [*range(quick), *(pytest.param(seed, marks=pytest.mark.rest) for seed in range(quick, most))]


def examples(count: int) -> int:
    """Return how many examples hypothesis draws: a tenth where the same test runs a second time, through a server."""
    return max(count // 10, 5) if PROFILE == "quick" else count
