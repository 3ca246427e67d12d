"""Strategies that decide which of several statements about one thing counts. Each is a pure function that writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from graphstore.errors import InvalidError
from graphstore.values.keys import version_of
from graphstore.values.models import Value

OVERRIDING = frozenset({"supersedes", "transition", "corrects"})
"""The kinds of link by which one statement replaces another."""
DEFAULT = "latest_wins"


class TopicStatement(Protocol):
    """The properties of a statement that a strategy reads. `Node` has them."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> str | None: ...
    @property
    def valid_from(self) -> datetime: ...
    @property
    def recorded_at(self) -> datetime: ...


class StatementLink(Protocol):
    """The properties of a link between statements that a strategy reads. `Link` has them."""

    @property
    def source(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def target(self) -> str: ...


class Decision(Value):
    """What a strategy made of statements: the id that won, those that lost to it, those it cannot decide between, and why."""

    strategy: str
    won: str | None
    lost: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    why: str


Strategy = Callable[[Sequence[TopicStatement], Sequence[StatementLink]], Decision]
Choice = str | Strategy
"""A strategy, or its name."""


def latest_wins(statements: Sequence[TopicStatement], links: Sequence[StatementLink] = ()) -> Decision:
    """Choose the latest in valid time, then the last recorded, then the greatest id. A late record of an earlier time does not win."""
    order = sorted(statements, key=lambda each: (each.valid_from, each.recorded_at, each.id), reverse=True)
    won = order[0].id if order else None
    why = "it holds since the latest instant" if order else "there is nothing to choose from"
    if len(order) > 1 and order[0].valid_from == order[1].valid_from:
        later = order[0].recorded_at != order[1].recorded_at
        why = "it was recorded last of those that hold since then" if later else "its id comes last of equals"
    return Decision(strategy="latest_wins", won=won, lost=tuple(each.id for each in order[1:]), why=why)


def explicit_override(statements: Sequence[TopicStatement], links: Sequence[StatementLink] = ()) -> Decision:
    """Choose the one that no other replaces by a link. If several remain, leave them undecided."""
    known = {each.id for each in statements}
    replaced = {
        link.target
        for link in links
        if link.kind in OVERRIDING and {link.source, link.target} <= known and link.source != link.target
    }
    lost = tuple(each.id for each in statements if each.id in replaced)
    left = tuple(each.id for each in statements if each.id not in replaced)
    won = left[0] if len(left) == 1 else None
    why = "the others were replaced explicitly" if won and lost else "it is the only one"
    if not won:
        why = "none of these replaces the others by a link" if left else "there is nothing to choose from"
    return Decision(strategy="explicit_override", won=won, lost=lost, undecided=() if won else left, why=why)


def versioned_topics(statements: Sequence[TopicStatement], links: Sequence[StatementLink] = ()) -> Decision:
    """Choose the highest version number (`auth_v2` before `auth_v1`). Statements without a number, or with a shared highest one, stay undecided."""
    numbers = {each.id: version_of(each.key)[1] for each in statements}
    highest = max((number for number in numbers.values() if number is not None), default=None)
    best = [id for id, number in numbers.items() if number is not None and number == highest]
    unnumbered = [id for id, number in numbers.items() if number is None]
    lost = [id for id, number in numbers.items() if number is not None and number != highest]
    won = best[0] if len(best) == 1 else None
    why = f"it is version {highest}, the highest" if won else f"{len(best)} of them are version {highest}"
    if highest is None:
        why = "none of these has a version number" if numbers else "there is nothing to choose from"
    left = unnumbered if won else [*best, *unnumbered]
    return Decision(strategy="versioned_topics", won=won, lost=tuple(lost), undecided=tuple(left), why=why)


STRATEGIES: Mapping[str, Strategy] = {
    "latest_wins": latest_wins,
    "explicit_override": explicit_override,
    "versioned_topics": versioned_topics,
}


def strategy_for(
    choice: Choice | Mapping[str, Choice], topic: str, kinds: Collection[str] = ()
) -> tuple[str, Strategy]:
    """Return the strategy for a topic, with its name. From a mapping take that of the topic, else of the statements' only kind, else of `*`.

    Raise InvalidError for an unknown name, or a value that is not a strategy.
    """
    if isinstance(choice, Mapping):
        for each in choice.values():
            strategy_for(each, topic)  # a wrong name is refused for any topic
        only = next(iter(kinds)) if len(kinds) == 1 else "*"
        place = next((name for name in (topic, only, "*") if name in choice), None)
        return strategy_for(DEFAULT if place is None else choice[place], topic)
    if callable(choice):
        return getattr(choice, "__name__", type(choice).__name__), choice
    if choice not in STRATEGIES:
        raise InvalidError.choice("strategy", choice, STRATEGIES)
    return choice, STRATEGIES[choice]


def decide(
    choice: Choice | Mapping[str, Choice],
    topic: str,
    statements: Sequence[TopicStatement],
    links: Sequence[StatementLink] = (),
) -> Decision:
    """Apply the strategy for a topic. Raise InvalidError if a caller's own strategy does not return a Decision on these statements."""
    name, strategy = strategy_for(choice, topic, {each.kind for each in statements})
    found = strategy(statements, links)
    if not isinstance(found, Decision):
        raise InvalidError(f"strategy {name!r} gave {found!r}. Let it give a Decision.")
    known = {each.id for each in statements}
    named = {*found.lost, *found.undecided} | ({found.won} if found.won is not None else set())
    if not named <= known:
        raise InvalidError(
            f"strategy {name!r} decided on {min(named - known)!r}, which is none of the statements. Let it name only these."
        )
    return found
