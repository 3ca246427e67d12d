"""Holds what answers about sessions share: lines of text, time spans, sums of money."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from math import fsum
from typing import Any, ClassVar

from graphstore.values.models import Value
from graphstore.values.period import clocked, when

_CENTS = 6  # decimals of a sum of money; further ones are rounding noise


class SessionAnswer(Value):
    """What was found, one line each as text."""

    _listed: ClassVar[str]
    """The name of the field that holds it."""

    def _found(self) -> tuple[Value, ...]:
        found: tuple[Value, ...] = getattr(self, self._listed)
        return found

    def _nothing(self) -> str:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __bool__(self) -> bool:
        return bool(self._found())

    def __str__(self) -> str:
        return "\n".join(map(str, self._found())) or self._nothing()


def summed(amounts: Iterable[float]) -> float:
    """Return the sum of amounts of money, independent of their order."""
    return round(fsum(amounts), _CENTS)


def priced(amount: float, unpriced: int) -> str:
    """Return an amount of money as text: with "+" if a part has no price, and "unknown" if no part has one."""
    if not unpriced:
        return _money(amount)
    return f"{_money(amount)}+" if amount else "unknown"


def _money(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:,.4f}"


def span(since: datetime | None, until: datetime | None) -> str:
    """Return a time span as text. Its end has a clock: as a day, `until` would include it."""
    begins = f" since {when(since)}" if since else ""
    return f"{begins} until {clocked(until.replace(microsecond=0))}" if until else begins
