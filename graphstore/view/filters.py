"""Filter found things: by kind, tag, key, scope, author, source and standing, and by when they began and were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from graphstore.errors import InvalidError
from graphstore.values import coordinates
from graphstore.values.inputs import ids
from graphstore.values.keys import slot_name
from graphstore.values.models import UPRIGHT, Event, Node, Standing
from graphstore.values.period import OPEN, Instant, TimeLike, instant
from graphstore.view.sight import Sight
from graphstore.view.view import Reader

__all__ = ["ANY", "Filters"]

ANY = "any"
STANDINGS = (*get_args(Standing), ANY)
_Values = frozenset[str]
_FIELDS = {"type": "kind"}


class Filters(NamedTuple):
    """Holds the criteria of a search. Of each set one value must match; an empty set matches all. Sources match by prefix. Periods are [since, until), in microseconds."""

    kind: _Values = frozenset()
    tag: _Values = frozenset()
    key: _Values = frozenset()
    scope: _Values = frozenset()
    author: _Values = frozenset()
    source: _Values = frozenset()
    standing: _Values = frozenset()
    since: Instant = -OPEN
    until: Instant = OPEN
    recorded_since: Instant = -OPEN
    recorded_until: Instant = OPEN

    @classmethod
    def from_question(
        cls,
        view: Reader,
        values: Mapping[str, Iterable[str] | str],
        times: Mapping[str, TimeLike | None],
        asked: Sequence[tuple[str, str]] = (),
        left_out: list[str] | None = None,
    ) -> Filters:
        """Return the filters of a caller and those written as `field:value` in the question. Raises InvalidError for an invalid one. `left_out`: gets what is wrong
        with those of the question that are left out; without it they are refused too."""
        sets = {name: set(ids(name, value)) for name, value in values.items()}
        given = dict(times)
        for field, value in asked:
            name = _FIELDS.get(field, field)
            try:
                if name in ("since", "until"):
                    view.instant_of(value, name)
                    given[name] = value
                elif name == "standing" and value not in STANDINGS:
                    raise InvalidError.choice("standing", value, STANDINGS)
                else:
                    sets.setdefault(name, set()).add(slot_name(value) if name == "key" else value)
            except InvalidError as error:
                if left_out is None:
                    raise
                left_out.append(f"{str(error).partition('. ')[0]}: {field}:{value} was left out")
        sets["key"] = set(map(slot_name, sets.get("key", ())))
        for each in sets.get("standing", ()):
            if each not in STANDINGS:
                raise InvalidError.choice("standing", each, STANDINGS)
        instants: dict[str, Instant] = {}
        for ends in (("since", "until"), ("recorded_since", "recorded_until")):
            first, last = (given.get(name) for name in ends)
            period = coordinates.between(
                first, last, lambda at, what, meaning: view.instant_of(at, what, meaning=meaning), ends
            )
            instants |= dict(zip(ends, period, strict=True))
        return cls(**{name: frozenset(value) for name, value in sets.items()}, **instants)  # type: ignore[arg-type]

    def saying(self, sight: Sight, text: str) -> set[int]:
        """Return the wanted entities that are believed and hold here by a version that contains all of a text; superseded events too."""
        index, fits = sight.index, self.fitting(sight)
        found = set()
        for row in sight.held_versions(sight.found(text, 1).saying()):
            ent = index.r_ent[row]
            if (not self.kind or index.kind[ent] in self.kind) and (fits is None or fits(ent, row)):
                found.add(ent)
        return found

    def admits(self, thing: Node | Event) -> bool:
        """Return True if a thing that was read matches. Standing is not checked."""
        if isinstance(thing, Event):
            kind, begins, scope = thing.type, thing.occurred_at, ""
        else:
            kind, begins, scope = thing.kind, thing.valid_from, thing.scope
        return (
            (not self.kind or kind in self.kind)
            and (not self.key or (isinstance(thing, Node) and thing.key in self.key))
            and (not self.scope or scope in self.scope)
            and (not self.author or thing.author in self.author)
            and (not self.tag or (isinstance(thing, Node) and not self.tag.isdisjoint(thing.tags)))
            and (not self.source or (thing.source or "").startswith(tuple(self.source)))
            and self.since <= instant(begins) < self.until
            and self.recorded_since <= instant(thing.recorded_at) < self.recorded_until
        )

    @property
    def of_the_past(self) -> bool:
        """Return True if things that do not stand may match."""
        return not self.standing <= UPRIGHT

    def fitting(self, sight: Sight) -> Callable[[int, int], bool] | None:
        """Return a predicate on an entity and one of its rows; None if all match. Kinds and standing are not checked."""
        if self._replace(kind=frozenset(), standing=frozenset()) == Filters():
            return None
        index, source = sight.index, tuple(self.source)

        def fits(ent: int, row: int) -> bool:
            if (self.key and index.key[ent] not in self.key) or (
                self.scope and index.scope[ent] not in self.scope
            ):
                return False
            if row < 0 or not self.since <= index.r_from[row] < self.until:
                return False
            op = index.v_op[index.r_ver[row]]
            recorded = index.o_told[op] if op >= 0 else index.born[ent]
            if not self.recorded_since <= recorded < self.recorded_until:
                return False
            if self.author and (op < 0 or index.o_author[op] not in self.author):
                return False
            if not (self.tag or source):
                return True
            body = sight.body_of(row)
            return (not self.tag or not self.tag.isdisjoint(body.get("tags") or ())) and (
                not source or (body.get("source") or "").startswith(source)
            )

        return fits
