"""Computes the cost of tokens from a price table that the user sets, for sessions that do not state the cost. The table is stored in the store."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from math import fsum
from typing import TYPE_CHECKING, Any

from graphstore.errors import InvalidError
from graphstore.sessions.segments_read import WorkPiece, number
from graphstore.store import registry
from graphstore.values.inputs import json_object
from graphstore.values.models import Json, Value
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

_KEPT = "sessions.prices"
_FIELDS = {"input": "tokensInput", "output": "tokensOutput", "cacheRead": "cacheRead", "cacheWrite": "cacheWrite"}  # fmt: skip
_MILLION = 1_000_000


class Prices(Value):
    """US dollars for a million tokens, by model: `{"claude-opus-*": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25}}`.

    A model is named whole, by a pattern with `*`, or with its provider before it (`anthropic/claude-*`); the longest that fits counts.
    """

    table: dict[str, dict[str, float]] = {}

    def __str__(self) -> str:
        lines = [
            f"{name}  {', '.join(f'{field} ${each:g}' for field, each in one.items())}"
            for name, one in self.table.items()
        ]
        return "\n".join(lines) or "No price is set: costs are what the sessions say."

    def cost(self, piece: WorkPiece) -> float:
        """What a piece of work cost: what its session says, else by the table."""
        if not piece.unpriced:
            return piece.number("metadata", "cost")
        return fsum(self.of_model(each)[0] for each in piece.objects("observations", "modelsUsed"))

    def is_unpriced(self, piece: WorkPiece) -> bool:
        """Whether neither its session nor the table says what all of it cost."""
        used = piece.objects("observations", "modelsUsed")
        return piece.unpriced and not (used and all(self.of_model(each)[1] for each in used))

    def of_model(self, used: Json) -> tuple[float, bool]:
        """What one model took cost, and whether that is known."""
        stated = number(used.get("cost"))
        if stated:
            return stated, True
        name, provider = str(used.get("model") or ""), str(used.get("provider") or "")
        fitting = [
            each for each in self.table if fnmatchcase(name, each) or fnmatchcase(f"{provider}/{name}", each)
        ]
        if not fitting:
            return 0.0, not any(number(used.get(field)) for field in _FIELDS.values())
        price = self.table[max(fitting, key=lambda each: (len(each.replace("*", "")), each))]
        return fsum(
            number(used.get(field)) * price.get(name, 0.0) for name, field in _FIELDS.items()
        ) / _MILLION, True


@registry.read("sessions")
def prices(view: Reader) -> Prices:
    """The prices that were set."""
    return Prices(table=view.setting(_KEPT) or {})


@registry.write("sessions")
def set_prices(store: Store, table: Mapping[str, Any]) -> Prices:
    """Set the prices of models, instead of those set before: US dollars for a million tokens, as `Prices` says. An empty table takes them away.

    Raises InvalidError for a price that is no number of 0 or more, and for another field than input, output, cacheRead and cacheWrite.
    """
    wanted = json_object("table", table)
    for model, price in wanted.items():
        if not isinstance(price, dict):
            raise InvalidError(
                f"price {price!r} of {model!r} is no object. Give such as {{'input': 3, 'output': 15}}."
            )
        for field, amount in price.items():
            if field not in _FIELDS:
                raise InvalidError.choice("field of a price", field, tuple(_FIELDS))
            is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
            if not (is_number and 0 <= amount < float("inf")):
                raise InvalidError(f"price {amount!r} ({field} of {model!r}) is no number of 0 or more.")
    found = Prices(table=wanted)
    if found != prices(store):
        store.keep_setting("set_prices", _KEPT, found.table)
    return found
