"""Define what a judge receives, pairs of statements that may contradict each other, and what it returns.

The rules of `values/assertions.py` recognize two things with the same subject. A judge (a model, a person) can read, so it also receives pairs that are only similar in
words. It runs in a sweep, outside of any write, and its verdicts are inferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from graphstore.errors import InvalidError
from graphstore.values import sameness
from graphstore.values.models import Node
from graphstore.view import conflicts
from graphstore.view.sight import Sight
from graphstore.view.view import View

NEAREST = 10
"""The largest number of pairs, approximately, that a judge receives for one new thing."""
JUDGE = "judge"
"""The maker of the links that verdicts become."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes that stand, the newer one first. `about`: what both speak of, by the rules; None when they are only alike in words."""

    newer: Node
    older: Node
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the two of a pair contradict each other, and why: the reason of their link. One that says no needs no reason."""

    contradicts: bool
    reason: str = ""


class Judge(Protocol):
    """Reads pairs and returns a verdict on each, in their order. It runs outside of any write and may be slow."""

    def __call__(self, pairs: list[Pair], /) -> Iterable[Verdict]: ...


def verdicts(judge: Judge, pairs: list[Pair]) -> list[Verdict]:
    """Return the judge's verdict on each pair. Raises InvalidError for any other result, and what the judge raises."""
    found: Any = judge(list(pairs))
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise InvalidError(
            f"the judge gave {found!r}. It is to give a list of links.Verdict, one for each pair."
        )
    given = list(found)
    if len(given) != len(pairs):
        raise InvalidError(
            f"the judge gave {len(given)} verdicts on {len(pairs)} pairs. It is to give one for each pair, in their order. Nothing was written."
        )
    for number, each in enumerate(given, 1):
        _refuse_bad(number, each)
    return given


def _refuse_bad(number: int, verdict: Any) -> None:
    where = f"verdict {number} of the judge"
    if not isinstance(verdict, Verdict):
        raise InvalidError(
            f"{where} is {verdict!r}, no Verdict. Give links.Verdict(contradicts, reason). Nothing was written."
        )
    if not isinstance(verdict.contradicts, bool):
        raise InvalidError(
            f"{where} has contradicts {verdict.contradicts!r}. Give True or False. Nothing was written."
        )
    if not isinstance(verdict.reason, str) or (verdict.contradicts and not verdict.reason.strip()):
        raise InvalidError(
            f"{where} has reason {verdict.reason!r}. Say in words why the two contradict each other. Nothing was written."
        )


# ---- pairs ------------------------------------------------------------------------------------


def pairs_of(view: View, ids: Iterable[str]) -> list[Pair]:
    """Return the pairs to judge of these things: first those that the rules suspect, then those nearest in words, in the same scope. Pairs joined by a lifecycle or
    `contradicts` link, and pairs that state the same, are left out."""
    asked = list(ids)
    with view.reading() as sight:
        seen: set[frozenset[int]] = {frozenset(pair) for pair in conflicts.linked(sight)}
        return [pair for id in asked for pair in _pairs(sight, sight.entity(id), seen)]


def _pairs(sight: Sight, ent: int, seen: set[frozenset[int]]) -> Iterator[Pair]:
    row = sight.find(ent)
    if row < 0 or not conflicts.is_stated(sight, ent):
        return
    found = conflicts.contradictions(sight, settled=False, candidates=True, limit=NEAREST, of=ent)
    suspected = [each for each in found if each.link is None]
    taken = 0
    for each in suspected:
        both = frozenset((sight.entity(each.source.id), sight.entity(each.target.id)))
        if both not in seen and isinstance(each.source, Node) and isinstance(each.target, Node):
            seen.add(both)
            taken += 1
            yield Pair(each.source, each.target, each.about)
    for other in _alike(sight, ent, row):
        both = frozenset((ent, other))
        if taken < NEAREST and len(both) == 2 and both not in seen:
            seen.add(both)
            taken += 1
            yield _pair(sight, row, sight.find(other))


def _alike(sight: Sight, ent: int, row: int) -> list[int]:
    """Return the things nearest in words in the scope of a thing that state something else."""
    index, scope, said = sight.index, sight.scope(ent), conflicts.statement(sight, row)
    found = sight.found(
        said,
        NEAREST + 1,
        seen=lambda each: index.scope[each] == scope and conflicts.is_stated(sight, each),
    )
    return [
        other
        for other, _ in found.matches
        if other != ent and not sameness.same(said, conflicts.statement(sight, sight.find(other)))
    ]


def _pair(sight: Sight, one: int, other: int) -> Pair:
    newer, older = sorted((one, other), key=lambda row: conflicts.age(sight, row), reverse=True)
    entity = sight.index.r_ent
    return Pair(
        sight.node(newer, sight.upright(entity[newer])), sight.node(older, sight.upright(entity[older]))
    )
