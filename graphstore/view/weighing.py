"""Compute the inputs of decay at a coordinate: the age of a thing, its lookups, its links, and its recorded importance."""

from __future__ import annotations

from typing import Any

import orjson

from graphstore.values.decay import DAY, Decay, share
from graphstore.view.sight import Sight

_DAY = DAY * 1_000_000  # in microseconds
_STRENGTHS = (1, 5)


class Weights:
    """Computes the weight of each thing that stands at a coordinate, from what was known and held there. Each weight is computed once."""

    def __init__(self, sight: Sight, decay: Decay) -> None:
        self._sight = sight
        self._decay = decay
        self._walked = frozenset(name for name, kind in sight.core.vocabulary.kinds.items() if kind.walked)
        self._known: dict[int, float] = {}
        self._accesses = sight.follow_lookups()

    def weight_of(self, ent: int) -> float:
        """Return the weight of a thing that stands."""
        found = self._known.get(ent)
        if found is None:
            found = self._known[ent] = self._weigh(ent)
        return found

    def _weigh(self, ent: int) -> float:
        sight, decay = self._sight, self._decay
        index = sight.index
        row = sight.find(ent)
        stated = self._stated(index.r_ver[row])
        rows = sight.links_around(ent, "out", self._walked)
        rows += sight.links_around(ent, "into", self._walked)
        importance = share(stated.get("importance"))
        if importance is None:
            importance = self._by_strength(rows)
        confidence = share(stated.get("confidence"))
        confidence = 1.0 if confidence is None else confidence
        if sight.upright(ent) == "shaky":
            confidence *= decay.shaken
        accesses = self._accesses.total(index.names[ent], sight.tx)
        return decay.weight(self._age(ent, row), accesses, len(rows), importance, confidence)

    def _age(self, ent: int, row: int) -> float:
        """Return the days since a thing was last affirmed: its row begins, it was confirmed, or it happened again."""
        sight, index = self._sight, self._sight.index
        last = index.r_from[row]
        if index.is_event[ent]:
            last = max(last, sight.happened.seen(ent)[1])
        if index.names[ent] in index.confirmed:
            confirmed = (index.o_tx[op] for op in index.confirmations(ent, sight.tx))
            last = max([last, *(at for at in confirmed if at <= sight.valid)])
        return (sight.valid - last) / _DAY

    def _stated(self, ver: int) -> dict[str, Any]:
        """Return the content of a version, or the metadata of an event, which may hold importance and confidence."""
        index = self._sight.index
        raw = self._sight.core.raw(index.v_pos[ver], index.v_len[ver])
        if b'"importance":' not in raw and b'"confidence":' not in raw:
            return {}
        body = orjson.loads(raw)
        stated = body.get("metadata" if index.is_event[index.v_ent[ver]] else "content", {})
        return stated if isinstance(stated, dict) else {}

    def _by_strength(self, rows: list[int]) -> float | None:
        """Return the strength of the strongest link as an importance from 0 (strength 1) to 1 (strength 5); None without any strength."""
        index = self._sight.index
        strongest = max((index.c_strength[index.k_claim[row]] for row in rows), default=0)
        least, most = _STRENGTHS
        return (strongest - least) / (most - least) if strongest else None
