"""Keep an agent's working state: a scratchpad for each user and thread, and a score of how well it does in each domain.

A scratchpad is a node with a version for each change; an outcome is an event. Both can be read as of every coordinate.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from graphstore.errors import InvalidError
from graphstore.events.correlation import microseconds
from graphstore.store import registry, upsert
from graphstore.store.upsert import NodePlace, entity, keep, kept_in
from graphstore.values.findings import Recorded
from graphstore.values.inputs import optional_text, text_of
from graphstore.values.models import Event, Node, Value
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store

__all__ = ["Expertise", "ExpertiseTracker", "append", "clear", "get", "set"]

PAD, DOMAIN, OUTCOME = "working_memory", "domain", "outcome"
_KEY = "scratchpad"
Outcome = Literal["success", "partial", "failure"]
WORTH: dict[str, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}
"""The worth of an outcome, 0 to 1."""
HALF_LIFE = timedelta(days=30)
"""After this time an outcome counts half."""
DOUBT = 2.0
"""The weight of the prior: the score begins at 0.5 as if this many outcomes had been half and half."""
WINDOW = timedelta(days=30)
STEADY = 0.05
"""A score that moved less than this within the window is steady."""
_FIRST = datetime.min.replace(tzinfo=UTC)


# ---- scratchpads ------------------------------------------------------------------------------


@registry.read("working")
def get(view: Reader, user: str, thread: str | None = None) -> Node | None:
    """The scratchpad that is seen in a thread: the thread's own, or else that of the user; None when neither holds anything.

    The text is in `.text`, whose it is in `.content`: it has a `thread` when it is the thread's own.
    """
    text_of("user", user), optional_text("thread", thread)
    return kept_in(view, _pad(user, thread), _pad(user, None)) if thread else kept_in(view, _pad(user, None))


@registry.write("working")
def set(store: Store, user: str, thread: str | None, text: str) -> Node:
    """Hold this text in the scratchpad of a thread, or of a user (`thread=None`), from now on. The same text again writes nothing."""
    text = text_of("text", text)
    content = {"user": text_of("user", user)} | ({"thread": text_of("thread", thread)} if thread else {})
    return keep(
        store,
        _pad(user, thread),
        content,
        text=text,
        key=_KEY,
        scope=_scope(user, thread),
        trigger=PAD,
        minor=True,
    ).node


@registry.write("working")
def append(store: Store, user: str, thread: str | None, text: str) -> Node:
    """Add a line to a scratchpad. A thread that has none begins with what is seen in it, that of its user, so that nothing vanishes."""
    text = text_of("text", text)
    with store.verb():
        before = get(store, user, thread)
        return set(store, user, thread, text if before is None else f"{before.text}\n{text}")


@registry.write("working")
def clear(store: Store, user: str, thread: str | None = None) -> bool:
    """Hold nothing any more in the scratchpad of a thread, or of a user. False: it held nothing. In the thread that of its user is seen again."""
    text_of("user", user), optional_text("thread", thread)
    return upsert.clear(store, _pad(user, thread), reason="cleared") is not None


def _pad(user: str, thread: str | None) -> NodePlace:
    return NodePlace(PAD, (user, thread or ""))


def _scope(user: str, thread: str | None) -> str:
    """Return the scope of a scratchpad. A slash in a name is escaped, so that no two scopes are equal."""
    names = (user,) if not thread else (user, thread)
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


# ---- expertise --------------------------------------------------------------------------------


class Expertise(Value):
    """How well it goes in a domain at a coordinate: `score` from 0 to 1, and by how much it moved over the `window` before.

    `weight` is what the outcomes count for by then, the older the less: a score of little weight says little.
    """

    domain: str
    score: float
    trend: float
    direction: Literal["rising", "falling", "steady"]
    outcomes: int
    weight: float
    latest: datetime | None
    window: timedelta

    def __str__(self) -> str:
        counted = f"{self.outcomes:,} {'outcome' if self.outcomes == 1 else 'outcomes'}"
        return f"{self.domain}: {self.score:.2f}, {self.direction} ({self.trend:+.2f} in {self.window.days} days), {counted}"


class ExpertiseTracker:
    """Scores the domains of an agent by their outcomes.

    The score is (d · 0.5 + Σ w · v · 2^(−age / half-life)) / (d + Σ w · 2^(−age / half-life)) over the outcomes up to the coordinate's valid time, with w
    the weight of an outcome, v its worth (success 1, partial 0.5, failure 0) and d = 2. It begins at 0.5, approaches 0 or 1 only with many outcomes of one
    kind, and returns to the middle when there are none. The trend is the score less that of a window ago, as known now.
    """

    def __init__(
        self, *, half_life: timedelta = HALF_LIFE, window: timedelta = WINDOW, agent: str | None = None
    ) -> None:
        for name, length in (("half_life", half_life), ("window", window)):
            if microseconds(length, name) == 0:
                raise InvalidError(f"{name} {length!r} is nothing. Give a timedelta above 0.")
        self.half_life, self.window = half_life, window
        self.agent = optional_text("agent", agent)

    def record(
        self,
        store: Store,
        domain: str,
        outcome: Outcome,
        *,
        weight: float = 1.0,
        note: str | None = None,
        occurred_at: TimeLike | None = None,
        id: str | None = None,
    ) -> Recorded:
        """Record an outcome as an event about the domain. Raises InvalidError for an unknown outcome or a weight that is not above 0."""
        return record_outcome(
            store, domain, outcome, weight=weight, note=note, occurred_at=occurred_at, id=id, agent=self.agent
        )

    def score(self, view: Reader, domain: str) -> Expertise:
        """Return the score of a domain at the view's coordinate. A domain without outcomes has the score 0.5 and the weight 0."""
        return expertise(view, domain, half_life=self.half_life, window=self.window, agent=self.agent)

    def scores(self, view: Reader) -> list[Expertise]:
        """Return the scores of all domains that have outcomes at the view's coordinate, best first."""
        return expertises(view, half_life=self.half_life, window=self.window, agent=self.agent)

    def _expertise(self, view: Reader, name: str) -> Expertise:
        at = view.at.valid
        outcomes = self._outcomes(view, name)
        now, weight = self._scored(outcomes, at)
        before = max(timedelta(0), min(self.window, at - _FIRST))  # not before the first datetime
        trend = now - self._scored(outcomes, at - before)[0]
        direction: Literal["rising", "falling", "steady"] = "steady"
        if abs(trend) >= STEADY:
            direction = "rising" if trend > 0 else "falling"
        latest = max((event.occurred_at for event in outcomes), default=None)
        return Expertise(
            domain=name, score=now, trend=trend, direction=direction, outcomes=len(outcomes), weight=weight, latest=latest, window=self.window,
        )  # fmt: skip

    def _outcomes(self, view: Reader, domain: str) -> list[Event]:
        with view.reading() as sight:
            ent = entity(sight, NodePlace(DOMAIN, (domain,)))
            if ent < 0 or sight.entity(sight.id(ent)) < 0:
                return []
            here = view.pinned(sight.valid, sight.tx)
            found = here.events(OUTCOME, related_to=sight.id(ent))
        return [
            event
            for event in found
            if event.metadata.get("domain") == domain
            and event.standing in ("stands", "shaky")
            and self.agent in (None, event.agent)
        ]

    def _scored(self, outcomes: list[Event], at: datetime) -> tuple[float, float]:
        """Return the score at an instant, and its weight."""
        total = worth = 0.0
        for event in outcomes:
            age = at - event.occurred_at
            if age < timedelta(0):
                continue
            counts = float(event.metadata["weight"]) * 0.5 ** (age / self.half_life)
            total += counts
            worth += counts * WORTH[event.metadata["outcome"]]
        return (DOUBT * 0.5 + worth) / (DOUBT + total), total


@registry.write("working")
def record_outcome(
    store: Store,
    domain: str,
    outcome: Outcome,
    *,
    weight: float = 1.0,
    note: str | None = None,
    occurred_at: TimeLike | None = None,
    id: str | None = None,
    agent: str | None = None,
) -> Recorded:
    """Note how something ended, as `ExpertiseTracker.record` does."""
    optional_text("agent", agent)
    name = text_of("domain", domain).strip()
    if outcome not in WORTH:
        raise InvalidError.choice("outcome", outcome, WORTH)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < 1e9:
        raise InvalidError(f"weight {weight!r} is out of range. Give a number above 0.")
    recorded: dict[str, Any] = {"domain": name, "outcome": outcome, "weight": weight}
    since = None if occurred_at is None else store.instant_of(occurred_at, "occurred_at")
    with store.verb():
        about = keep(store, NodePlace(DOMAIN, (name,)), {"domain": name}, text=name, since=since).node
        return store.record_event(
            OUTCOME,
            f"{name}: {outcome}" if note is None else f"{name}: {outcome}, {text_of('note', note)}",
            id=id,
            occurred_at=occurred_at,
            agent=agent,
            related_to=about.id,
            metadata=recorded,
        )


@registry.read("working")
def expertise(
    view: Reader,
    domain: str,
    *,
    half_life: timedelta = HALF_LIFE,
    window: timedelta = WINDOW,
    agent: str | None = None,
) -> Expertise:
    """How well it goes in a domain, as `ExpertiseTracker.score` returns it."""
    tracker = ExpertiseTracker(half_life=half_life, window=window, agent=agent)
    return tracker._expertise(view, text_of("domain", domain).strip())


@registry.read("working")
def expertises(
    view: Reader, *, half_life: timedelta = HALF_LIFE, window: timedelta = WINDOW, agent: str | None = None
) -> list[Expertise]:
    """How well it goes in each domain, as `ExpertiseTracker.scores` returns it."""
    tracker = ExpertiseTracker(half_life=half_life, window=window, agent=agent)
    found = [tracker._expertise(view, node.content["domain"]) for node in view.nodes(DOMAIN)]
    return sorted((one for one in found if one.outcomes), key=lambda one: (-one.score, one.domain))
