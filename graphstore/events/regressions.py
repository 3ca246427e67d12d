"""Detects that a metric has regressed, recovered, or settled on a new level. It is pure: one value against the known state of its metric."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, NamedTuple

from graphstore.errors import InvalidError

STEADY = 0.10  # largest share by which values of a steady state differ from their median


class Thresholds(NamedTuple):
    """Thresholds of a regression: more than `ratio` over its baseline (0.5: half as much again), and more than `margin` in its own unit."""

    ratio: float
    margin: float
    settle: int
    """The number of values whose median is a baseline. A new steady state takes twice as many."""


class Metric(NamedTuple):
    """Holds the state of one metric on one page."""

    name: str
    page: str | None = None
    baseline: float | None = None
    given: float | None = None
    """The baseline that the caller last gave. The same value again changes nothing, even if the metric has settled elsewhere since."""
    values: tuple[float, ...] = ()
    """The newest values, oldest first."""
    armed: bool = True
    """True if the next value over the limit is a regression: one per crossing."""
    regression: str | None = None
    """The event of the regression that is not over yet."""
    limit: float = math.inf
    """The regression is over at or below this value."""
    shift: str | None = None
    """The event of the latest shift of the baseline."""

    @property
    def subject(self) -> str:
        """Return the metric and its page as text. All regressions of a metric share it."""
        return self.name if self.page is None else f"{self.name} on {self.page}"


class Shifted(NamedTuple):
    """The baseline has changed."""

    old: float
    new: float
    learned: bool
    """True if it was computed from the values, and not set by the caller."""


class Regressed(NamedTuple):
    """The value is over the limit, and the previous one was not."""

    baseline: float
    value: float


class Recovered(NamedTuple):
    """The value is back under the limit of a regression."""

    limit: float
    value: float


Finding = Shifted | Regressed | Recovered


def measure(
    metric: Metric, value: float, thresholds: Thresholds, baseline: float | None = None
) -> tuple[Metric, list[Finding]]:
    """Add one value. Return the new state of the metric, and the findings in order. `baseline` sets the baseline."""
    found: list[Finding] = []
    if baseline is not None and baseline != metric.given:
        metric = metric._replace(given=baseline)
        if baseline != metric.baseline:
            if metric.baseline is not None:
                found.append(Shifted(metric.baseline, baseline, learned=False))
            metric = metric._replace(baseline=baseline, armed=True)
    values = (*metric.values, value)[-2 * thresholds.settle :]
    metric = metric._replace(values=values)
    if metric.baseline is None:
        if len(values) >= thresholds.settle:
            metric = metric._replace(baseline=median(values))
        return metric, found
    usual = metric.baseline
    metric, crossing = _cross(metric, usual, value, thresholds)
    found += crossing
    level = _settled(values, usual, thresholds)
    if level is not None:
        found.append(Shifted(usual, level, learned=True))
        metric = metric._replace(baseline=level, armed=True)
    return metric, found


def _cross(
    metric: Metric, baseline: float, value: float, thresholds: Thresholds
) -> tuple[Metric, list[Finding]]:
    limit = limit_of(baseline, thresholds)
    if value > limit:
        if metric.armed:
            return metric._replace(armed=False, limit=limit), [Regressed(baseline, value)]
        return metric, []
    if metric.regression is not None and value <= metric.limit:
        return metric._replace(armed=True, regression=None), [Recovered(metric.limit, value)]
    return metric._replace(armed=True), []


def limit_of(baseline: float, thresholds: Thresholds) -> float:
    """Return the highest value that is not a regression."""
    return max(baseline + abs(baseline) * thresholds.ratio, baseline + thresholds.margin)


def _settled(values: tuple[float, ...], baseline: float, thresholds: Thresholds) -> float | None:
    """Return the level on which the last values have settled, if it differs from the baseline."""
    if len(values) < 2 * thresholds.settle:
        return None
    level = median(values)
    if any(abs(value - level) > STEADY * abs(level) for value in values):
        return None
    return level if abs(level - baseline) > abs(baseline) * thresholds.ratio / 2 else None


def number_of(what: str, value: Any, *, least: float = -math.inf, most: float = math.inf) -> float:
    """Return the number if it is finite and in range. Raise InvalidError otherwise."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or not least <= value <= most
    ):
        at_least = "" if least == -math.inf else f" of at least {shown(least)}"
        span = at_least if most == math.inf else f" from {shown(least)} to {shown(most)}"
        raise InvalidError(f"{what} {value!r} is out of range. Give a finite number{span}.")
    return value


def is_time(name: str, unit: str | None) -> bool:
    """Return True if a metric is measured in milliseconds."""
    return unit == "ms" or (unit is None and name.endswith("_ms"))


def shown(value: float, unit: str = "") -> str:
    """Return a value as text: at most three decimals, followed by the unit."""
    rounded = round(value, 3)
    return f"{int(rounded) if rounded == int(rounded) else rounded}{unit}"


def label(name: str) -> str:
    """Return the display name of a metric: `lcp_ms` is LCP, `load_time_ms` is load time."""
    plain = name.removesuffix("_ms")
    if plain.isalpha() and len(plain) <= 4:
        return plain.upper()
    return plain.replace("_", " ")


def change(metric: Metric, verb: str, old: float, new: float, unit: str) -> str:
    """Return the sentence of a change: `LCP regressed: 1200ms → 2400ms on /dashboard`."""
    where = "" if metric.page is None else f" on {metric.page}"
    return f"{label(metric.name)} {verb}: {shown(old, unit)} → {shown(new, unit)}{where}"
