"""Compute how knowledge loses weight with time: a formula that neither reads nor writes a store.

    life   = half_life · (1 + per_access · log2(1 + accesses)) · (1 + per_link · log2(1 + links))
             · for_importance ^ (2 · importance − 1) · (doubted + (1 − doubted) · confidence)
    weight = floor + (1 − floor) · 2 ^ (−age / life)

A fresh thing weighs 1, regardless of the other parameters. After one life, half of what is above the floor is gone; no weight is below the floor. Things
that are often looked up, well linked, important and certain live longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from graphstore.errors import InvalidError

__all__ = ["DAY", "Decay", "weight"]

DAY = 86_400.0
"""Seconds of a day; ages and half-lives are in days."""
_NEUTRAL = 0.5


@dataclass(frozen=True, slots=True)
class Decay:
    """The parameters of the formula, checked. `half_life` in days, of a thing of which nothing else is known; `for_importance` times as long when
    all-important; `doubted` is the part of it that is left at no confidence. `shaken`: what is left of the confidence in a thing that is shaky.

    Raises InvalidError for one out of range.
    """

    half_life: float = 90.0
    floor: float = 0.1
    per_access: float = 0.25
    per_link: float = 0.1
    for_importance: float = 2.0
    doubted: float = 0.25
    shaken: float = 0.5

    def __post_init__(self) -> None:
        _within("half_life", self.half_life, 0, math.inf, open_below=True)
        _within("floor", self.floor, 0, 1)
        _within("per_access", self.per_access, 0, math.inf)
        _within("per_link", self.per_link, 0, math.inf)
        _within("for_importance", self.for_importance, 1, math.inf)
        _within("doubted", self.doubted, 0, 1, open_below=True)
        _within("shaken", self.shaken, 0, 1)

    def weight(
        self,
        age: float,
        accesses: int = 0,
        links: int = 0,
        importance: float | None = None,
        confidence: float = 1.0,
    ) -> float:
        """Return the weight of a thing, from `floor` to 1, by the module's formula.

        `age` is in days since it was last affirmed; below 0 it counts as 0. `accesses` and `links` are counts; `importance` and `confidence` are from 0 to
        1. Without an importance it is neutral.
        """
        importance = _NEUTRAL if importance is None else importance
        read, tied = 1 + self.per_access * math.log2(1 + accesses), 1 + self.per_link * math.log2(1 + links)
        sure = self.doubted + (1 - self.doubted) * confidence
        life = self.half_life * read * tied
        life *= self.for_importance ** (2 * importance - 1) * sure
        return self.floor + (1 - self.floor) * math.exp2(-max(age, 0.0) / life)

    def __str__(self) -> str:
        return ", ".join(f"{each.name} {getattr(self, each.name):g}" for each in fields(self))


def weight(
    age: float,
    accesses: int = 0,
    links: int = 0,
    importance: float = _NEUTRAL,
    confidence: float = 1.0,
    **parameters: float,
) -> float:
    """Return the weight of a thing, with the `parameters` of a `Decay`."""
    return Decay(**parameters).weight(age, accesses, links, importance, confidence)


def share(value: object) -> float | None:
    """Return a number from 0 to 1 unchanged, None for anything else, since a content may hold anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return None
    return float(value)


def _within(name: str, value: object, least: float, most: float, *, open_below: bool = False) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if number and least <= value <= most and not (open_below and value == least):  # type: ignore[operator]
        return
    start = f"above {least:g}" if open_below else f"of at least {least:g}"
    end = "" if most == math.inf else f" and at most {most:g}"
    raise InvalidError(f"{name} {value!r} is out of range. Give a number {start}{end}.")
